"""Files that are no text, or text of another encoding, and includes without end: one message, with the mend."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import ulam
from ulam.frontend import source as sources
from ulam.frontend.check.program import check_program
from ulam.frontend.diagnostics import DiagnosticError, render, shortened
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source
from ulam.runtime.errors import UnusedNameWarning
from ulam.tools.ulam_main import main

PROGRAM = "data { int N; }\nparameters { real mu; }\nmodel { mu ~ normal(N, 1); }  // \u00e9\n"


def messages(text: str, name: str = "model.stan") -> list[str]:
    source = Source(text, name)
    try:
        return [render(d) for d in check_program(parse_program(source), source)]
    except DiagnosticError as error:
        return [render(d) for d in error.diagnostics]


FILES = {
    "utf-16 with a mark": (PROGRAM.encode("utf-16"), "UTF-16", "iconv -f UTF-16 -t UTF-8"),
    "utf-16 little": (PROGRAM.encode("utf-16-le"), "UTF-16", "iconv"),
    "utf-16 big": (PROGRAM.encode("utf-16-be"), "UTF-16", "iconv"),
    "utf-32": (PROGRAM.encode("utf-32"), "not text", "UTF-8"),
    "binary": (bytes(range(256)) * 40, "not text", "the file that was meant"),
    "machine code": (b"\x7fELF\x02\x01\x01" + b"\0" * 40 + bytes(range(200)), "not text", "UTF-8"),
    "nul bytes": (PROGRAM.replace("model", "\0model\0").encode(), "U+0000", "delete it"),
    "latin-1 in a name": ("data { real gr\u00fc\u00df; }\n".encode("latin-1"), "Latin-1", "iconv -f ISO-8859-1"),
}


@pytest.mark.parametrize(("content", "said", "mend"), FILES.values(), ids=FILES)
def test_a_file_that_is_no_program_has_one_message(
    content: bytes, said: str, mend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.stan"
    file.write_bytes(content)
    assert main(["check", str(file)]) == 1
    printed = capsys.readouterr().err
    assert printed.count("error:") == 1 and "warning" not in printed and len(printed.splitlines()) <= 4
    assert said in printed and "   help: " in printed and mend in printed
    with pytest.raises(ulam.CompileError) as caught:
        ulam.StanModel(file)
    assert str(caught.value) == printed.rstrip("\n")
    # The same file where it is included.
    outer = tmp_path / "outer.stan"
    outer.write_text('#include "model.stan"\n')
    assert main(["check", str(outer)]) == 1
    included = capsys.readouterr().err
    assert included.count("error:") == 1 and said in included and mend in included
    assert f"{outer}:1:1: error: the included file '{file}' cannot" in included or "included from" in included


@pytest.mark.parametrize(
    ("content", "warning"),
    [
        (PROGRAM.encode("utf-8-sig"), None),
        (PROGRAM.replace("\n", "\r\n").encode(), None),
        (PROGRAM.encode("latin-1"), "encoding"),
        (b"", "empty-program"),
        (b" \n\n", "empty-program"),
    ],
)
def test_files_that_run(
    content: bytes, warning: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.stan"
    file.write_bytes(content)
    assert main(["check", str(file)]) == 0
    printed = capsys.readouterr().err
    assert printed.count("warning:") == (warning is not None) and (warning is None or f"[{warning}]" in printed)
    assert warning is None or "   help: " in printed
    model = ulam.StanModel(file, {"N": 2} if content.strip() else None)
    assert model.param_unc_num() == bool(content.strip())


def test_a_name_of_other_letters_has_one_message() -> None:
    assert [m.splitlines()[0] for m in messages("data { real gr\u00f6\u00df\u00e9; }")] == [
        "model.stan:1:15: error: '\u00f6' is not a letter of Stan's names [invalid-name]"
    ]


# ---------------------------------------------------------------- data


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"N": 1}'.encode("utf-16"), "UTF-16"),
        (b'{"N\xff": 1, "a\xe9": 2}', "Latin-1"),
        (bytes(range(256)), "not text"),
        (b"", "empty"),
        (b"N <- 3\n", "jsonlite"),
        (b'{"N": NA}', "no missing values"),
        (b"{'N': 1}", "double quotes"),
        (b'{"N": 1,}', "comma too many"),
        (b'{"N": True}', "write 1"),
        (b'{"N": 1', "ends here"),
        (b'{"N": %s}' % (b"9" * 5000), ":1:7: not valid JSON"),
        (b'{"N": -nan}', 'write "NaN"'),
        (b'{"N": .5}', "digit before its point"),
    ],
)
def test_data_files_say_what_is_wrong_once(
    content: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, file = tmp_path / "model.stan", tmp_path / "data.json"
    program.write_text(PROGRAM)
    file.write_bytes(content)
    assert main(["log-density", str(program), "--data", str(file), "--unconstrained", "[0]"]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(f"ulam: error: {file}") and len(printed.splitlines()) == 1 and said in printed


# ---------------------------------------------------------------- includes


def _chain(folder: Path, count: int, times: int) -> Path:
    """Files that each include the next so many times."""
    for k in range(count):
        (folder / f"f{k}.stan").write_text(f"#include f{k + 1}.stan\n" * times)
    (folder / f"f{count}.stan").write_text("// the last\n")
    return folder / "f0.stan"


@pytest.mark.parametrize(("count", "times", "said"), [(1500, 1, "deep"), (24, 2, "more than 2000 files")])
def test_includes_have_limits(
    count: int, times: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = _chain(tmp_path, count, times)
    assert main(["check", str(first)]) == 1
    printed = capsys.readouterr().err
    assert printed.count("error:") == 1 and said in printed and "^^^^^" in printed
    assert printed.count("note: included from") == 5 and "files deep" in printed
    with pytest.raises(ulam.CompileError, match=said):
        ulam.StanModel(first)


def test_includes_have_a_limit_of_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_INCLUDED_TEXT", 1000)
    (tmp_path / "part.stan").write_text("// " + "x" * 300 + "\n")
    source = Source("#include part.stan\n" * 100 + "model { }", str(tmp_path / "model.stan"))
    assert len(source.text) < 3000
    assert ["have more than 1000 characters" in problem.message for problem in source.problems] == [True]


def test_a_file_is_read_once_however_often_it_is_included(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "part.stan").write_text("// part\n")
    read: list[str] = []
    original = sources.read_text
    monkeypatch.setattr(sources, "read_text", lambda path: read.append(os.fspath(path)) or original(path))
    assert Source("#include part.stan\n" * 50, str(tmp_path / "model.stan")).text.count("// part") == 50
    assert len(read) == 1


def test_limits_of_names_and_numbers_are_diagnostics() -> None:
    long = "a" * 100_000
    for text, said in (
        (f"#include {long}.stan\n", "cannot be read: File name too long"),
        (f"model {{ target += b{long}; }}", "is not declared here"),
        (f"model {{ target += {long}(1); }} // {long}b", "there is no function"),
        (f"model {{ int k = {'9' * 5000}; }}", "does not fit in an int"),
        (f"model {{ int k = 1; target += k.{'9' * 5000}; }}", "a tuple has no element 999"),
        (f"model {{ real x = {'9' * 6000}; }}", "does not fit in an int"),
        (f"model {{ real x = 1e{'9' * 6000}; }}", "becomes infinite"),
    ):
        (message,) = messages(text)
        first = message.splitlines()[0]
        assert said in first and len(message) < 1200 and first.startswith("model.stan:1:"), first
    assert messages(f"model {{ real {long} = 1; real {long}b = {'0' * 5000}1 + {'1' * 300}.0; }}") == []


def test_very_long_words_of_messages_are_cut() -> None:
    assert shortened(f"there is no '{'x' * 500}' here") == f"there is no '{'x' * 59}...' here"
    folders = "/".join(["folder"] * 100)
    assert shortened(f"searched: '{folders}'") == f"searched: '{folders}'"


def test_real_literals_beyond_the_largest_are_infinite() -> None:
    model = ulam.StanModel("parameters { real a; } model { target += a > 1e400 ? 0 : a; }")
    assert model.log_density(np.array([2.0])) == 2.0


# ---------------------------------------------------------------- nested data, unused names


def test_lists_in_lists_without_end() -> None:
    deep: object = 1.0
    for _ in range(3000):
        deep = [deep]
    endless: list[object] = [1.0]
    endless.append(endless)
    broad: list[object] = []
    broad += [broad, broad]
    text = "data { array[2] real y; real z; } parameters { real a; } model { }"
    for value in (deep, endless, broad, [deep, 1.0], (deep,), [1.0, [2.0, deep]]):
        with pytest.raises(ulam.DataError, match="variable 'y' "):
            ulam.StanModel(text, {"y": value, "z": 1.0})
    with pytest.raises(ulam.DataError, match="variable 'z' .*deep"):
        ulam.StanModel(text, json.dumps({"y": [1, 2]})[:-1] + ', "z": ' + "[" * 400 + "]" * 400 + "}")
    with pytest.raises(ulam.DataError, match="element 1 of a tuple"):
        ulam.StanModel("data { tuple(real, real) t; }", {"t": endless})


def test_unused_names_of_data_and_initial_values_are_warnings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "data { real sigma; } parameters { real mu; real tau; } transformed parameters { real nu = mu; } model { }"
    with pytest.warns(UnusedNameWarning, match="data: 'zz' is not declared in the data block"):
        model = ulam.StanModel(text, {"sigma": 1, "zz": 3})
    with pytest.raises(ulam.DataError), pytest.warns(UserWarning, match=r"'Sigma' \(did you mean 'sigma'\?\)"):
        ulam.StanModel(text, {"Sigma": 1})
    with pytest.warns(UserWarning, match=r"initial values: 'tua' \(did you mean 'tau'\?\) is not declared by the"):
        model.optimize(init={"mu": 0, "nu": 1, "tua": 2})
    file = tmp_path / "model.stan"
    file.write_text(text)
    status = main(["log-density", str(file), "--data", '{"sigma": 1, "zz": 3}', "--unconstrained", "[0, 0]"])
    printed = capsys.readouterr()
    assert status == 0 and json.loads(printed.out)
    assert printed.err == "ulam: warning: data: 'zz' is not declared in the data block and is ignored\n"
    for init, said in (
        ("abc", "initial values: 'abc' is no JSON text, and no file of this name exists"),
        (str(tmp_path), f"initial values: '{tmp_path}' is a folder, not a file"),
        ('{"mu": "x"}', "initial values: variable 'mu' must be a number"),
        ("[1, 2]", "initial values: must be one JSON object"),
    ):
        assert main(["optimize", str(file), "--data", '{"sigma": 1}', "--init", init]) == 1
        assert capsys.readouterr().err.startswith(f"ulam: error: {said}")
    assert main(["optimize", str(file), "--data", str(tmp_path)]) == 1
    assert "is a folder, not a file" in capsys.readouterr().err


def test_initial_values_out_of_their_support() -> None:
    model = ulam.StanModel("parameters { real<lower=0> sigma; } model { }")
    with pytest.raises(
        ulam.DataError, match="initial values: the initial value of 'sigma' is not in its support: sigma is -1"
    ):
        model.optimize(init={"sigma": -1})


@pytest.mark.parametrize("data", [{"N": 2**31 - 1}, {"N": 2**31 - 1, "x": []}])
def test_sizes_that_numpy_cannot_multiply(data: dict[str, object]) -> None:
    with pytest.raises(ulam.DataError, match="variable 'x' has sizes whose product is too large"):
        ulam.StanModel("data { int N; array[N, N, N, 0] int x; } parameters { real a; } model { }", data)
