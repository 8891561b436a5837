"""`library/functions.py`, the record of what a function is: names taken apart, and nobody else doing so."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ulam.library.functions import (
    FunctionKind,
    ending_of_distribution,
    kind_of,
    named,
    normalized_name,
    renamed,
)

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = "api dialects docs emit frontend library passes runtime tools tracing".split()


@pytest.mark.parametrize("kind", [kind for kind in FunctionKind if kind.ending])
def test_a_name_and_its_parts(kind: FunctionKind) -> None:
    name = kind.of("my_own")
    assert named(name) == ("my_own", kind, kind.ending)
    assert kind_of(f"{name}.2") is kind  # the symbol of an overload
    assert normalized_name(name) == name and not named(name).unnormalized


def test_names_that_drop_constants() -> None:
    assert normalized_name("foo_lupdf") == "foo_lpdf" and kind_of("foo_lupdf") is FunctionKind.DENSITY
    assert normalized_name("foo_lupmf") == "foo_lpmf" and named("foo_lupmf").unnormalized


@pytest.mark.parametrize("name", ["lpdf", "_lpdf", "exp", "x", "log_lpdfs", "rng", "foo_rng_"])
def test_plain_names(name: str) -> None:
    assert named(name) == (name, FunctionKind.PLAIN, "")


def test_names_of_earlier_versions() -> None:
    assert ending_of_distribution("normal_ccdf_log") == "_ccdf_log"
    assert ending_of_distribution("normal_lupdf") == "_lupdf" and ending_of_distribution("inv_logit") == ""
    assert renamed("normal_log") == ["normal_lpdf", "normal_lpmf"] and renamed("normal_cdf_log") == ["normal_lcdf"]


def _endings() -> set[str]:
    kinds = [kind for kind in FunctionKind if kind is not FunctionKind.PLAIN]
    return {text for kind in kinds for text in (kind.value, kind.unnormalized_ending) if text}


def _tests_of_names(path: Path) -> list[str]:
    """Where a module compares how a text begins or ends with what tells the kind of a function."""
    found: list[str] = []
    methods = {"endswith", "startswith", "removesuffix", "removeprefix"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods:
            texts = {inner.value for a in node.args for inner in ast.walk(a) if isinstance(inner, ast.Constant)}
        elif isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):  # a list of endings
            texts = {inner.value for inner in ast.iter_child_nodes(node) if isinstance(inner, ast.Constant)}
        else:
            continue
        if len(texts & _endings()) > (not isinstance(node, ast.Call)):  # of a list, two
            found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def test_kinds_are_told_in_one_place() -> None:
    """No other module takes the name of a function apart, or lists the endings of names."""
    modules = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert len(modules) > 200
    others = [m for m in modules if m != ROOT / "library" / "functions.py"]
    assert [place for path in others for place in _tests_of_names(path)] == []
    assert _tests_of_names(ROOT / "library" / "functions.py")  # it would be found
