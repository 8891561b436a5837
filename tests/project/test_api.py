"""What programs may use is exported in one way, described, typed, and said to be stable or not: docs/list_api.py."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ulam

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def listed() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield importlib.import_module("list_api")


def imported_for_types() -> dict[str, str]:
    """What `api/__init__.py` imports for type checkers: names and the modules that they are from."""
    tree = ast.parse((ROOT / "api" / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert all(name.asname == name.name for node in imports for name in node.names), "`x as x` is an export"
    return {name.name: str(node.module) for node in imports for name in node.names}


def test_lists_of_exports_agree() -> None:
    homes = {name: home for name, home in vars(ulam)["_HOMES"].items() if name != "load_ipython_extension"}
    assert homes == imported_for_types()
    assert sorted([*homes, "__version__"]) == sorted(ulam.__all__) and len(set(ulam.__all__)) == len(ulam.__all__)


def test_what_is_said_of_names_is_of_names_that_are_there(listed: ModuleType) -> None:
    classes = {f"ulam.{name}" for name in ulam.__all__}
    for owner, names in {**listed.PROVISIONAL, **listed.INTERNAL}.items():
        there = dir(getattr(ulam, owner.removeprefix("ulam."))) if owner in classes else listed.exported(owner)
        assert names - {"*"} <= set(there), owner
        assert owner in classes or owner in listed.module_names(), owner


def test_every_name_is_described(listed: ModuleType) -> None:
    rows = [line for part in ("package", "methods", "modules") for line in getattr(listed, part)().splitlines()]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows if row.startswith("| `")]
    assert [row for row in cells if not all(row) and row[0] != "`StanModel`"] == []
    assert {row[2] for row in cells if len(row) == 3 and row[0] != "`StanModel`"} == {"stable", "provisional"}


def _functions(value: Any) -> Iterator[Any]:
    """A function; the public functions and the constructor of a class, but of a record, whose fields say it."""
    if inspect.isfunction(value):
        yield value
    if inspect.isclass(value):
        for name in dir(value):
            if (name == "__init__" and not hasattr(value, "__record_fields__")) or not name.startswith("_"):
                found = inspect.getattr_static(value, name)
                found = found.fget if isinstance(found, property) else getattr(found, "func", found)
                if inspect.isfunction(found) and found.__module__.startswith("ulam"):
                    yield found


@pytest.mark.parametrize("module", ["ulam", "ulam.trace"])
def test_every_argument_and_result_is_typed(module: str) -> None:
    loaded = importlib.import_module(module)
    untyped: set[str] = set()
    for value in (getattr(loaded, name) for name in loaded.__all__):
        for function in _functions(value):
            signature = inspect.signature(function)
            parameters = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
            results = [] if function.__name__ == "__init__" else [signature.return_annotation]
            if inspect.Parameter.empty in [*(p.annotation for p in parameters), *results]:
                untyped.add(f"{function.__module__}.{function.__qualname__}")
    assert untyped == set()


def test_types_are_shipped() -> None:
    """Without the marker type checkers take no types from an installed package."""
    assert (ROOT / "api" / "py.typed").is_file() and (ROOT / "editable" / "ulam" / "py.typed").is_file()


@pytest.mark.parametrize("package", ["cffi", "jax", "numba", "scipy"])
def test_missing_packages_are_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for loaded in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"ulam.embed.{package}", raising=False)
    with pytest.raises(ImportError, match=rf"needs {package}.*pip install 'ulam\[embed\]'"):
        importlib.import_module(f"ulam.embed.{package}")
