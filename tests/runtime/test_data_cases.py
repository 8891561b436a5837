"""The two readers of data, in Python and in C, accept and refuse the same cases, in the same words."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_readers import Answer, data_cases, declared, in_c, in_python, random_case, reader_case, source_of

from ulam.runtime.data import SPECIAL_NUMBERS
from ulam.runtime.names import to_compiled

CASES = data_cases()


def number(value: Any) -> Any:
    if isinstance(value, list):
        return [number(inner) for inner in value]
    return SPECIAL_NUMBERS[value] if isinstance(value, str) else value


def expected(case: dict[str, Any]) -> Answer:
    if "error" in case:
        return Answer(case["error"])
    values = {}
    for name, kind, dims in case["variables"]:
        array = np.array(number(case["values"][name]), np.int32 if kind.endswith("int") else np.float64)
        variable = declared(name, kind, tuple(dims))
        values[variable.name] = to_compiled(variable, array.reshape(dims))
    return Answer(case.get("warning", ""), values)


@pytest.mark.parametrize("reader", [in_python, in_c])
def test_table(reader: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong: list[str] = []
    for case in CASES:
        variables = [declared(name, kind, tuple(dims)) for name, kind, dims in case["variables"]]
        answer, wanted = reader(variables, source_of(case), case.get("what", "data")), expected(case)
        if answer.said != wanted.said or not answer.same_values(wanted):
            wrong.append(f"{case}: {answer}")
    assert not wrong, "\n".join(wrong)


def test_table_has_all_kinds() -> None:
    assert sum("error" in case for case in CASES) > 100 and sum("values" in case for case in CASES) > 50


def test_random_texts(tmp_path: Path) -> None:
    found = [reader_case(11, number, tmp_path / "data.json") for number in range(300)]
    assert [problem for problem in found if problem] == []
    answers = [in_c(*random_case(random.Random(number))) for number in range(200)]
    accepted = sum(answer.values is not None for answer in answers)
    assert 40 < accepted < 160


def test_texts_that_are_no_utf8() -> None:
    """Only C can be given them."""
    answer = in_c([declared("y", "real")], b'{"y": 1, "\xe9": 2}')
    assert answer.values is None and answer.said.startswith("data: this is not UTF-8 text, but perhaps Latin-1; ")


def test_no_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.json").symlink_to("loop.json")
    (tmp_path / "here.json").write_text('{"y": 1}')
    for path in ("loop.json", "here.json/", "here.json/x", "./here.json", "a\tb.json", "é.json", "x" * 5000):
        variables = [declared("y", "real")]
        python, c = in_python(variables, path), in_c(variables, path)
        assert python.said == c.said and python.same_values(c), path


def test_decimal_points_of_other_locales(tmp_path: Path) -> None:
    """The C library's own functions read numbers by the locale of the process."""
    import locale

    before = locale.setlocale(locale.LC_NUMERIC)
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C"):
        try:
            locale.setlocale(locale.LC_NUMERIC, name)
            break
        except locale.Error:
            continue
    try:
        answer = in_c([declared("y", "real")], '{"y": 1234567890.12345678901234e-3}')
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)
    assert answer.values is not None and answer.values["y"][0] == 1234567890.12345678901234e-3
