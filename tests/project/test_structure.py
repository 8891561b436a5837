"""The folders import each other as they may, no modules import each other in a circle, and classes have names of their
own. `docs/list_structure.py` finds all of it; its options show what makes an arrow.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Which folders a folder may import; all kinds of imports count. What is no more needed is taken out.
ALLOWED = {
    "api": (
        "dialects dialects/rt dialects/stan library passes runtime runtime/building runtime/libraries "
        "runtime/optimizers runtime/sampling runtime/studies tracing tracing/diff tracing/explain tracing/export "
        "tracing/gradients tracing/tape tracing/update"
    ),
    "dialects": "dialects/rt dialects/stan",
    "dialects/rt": "dialects",
    "dialects/stan": "dialects library",
    "embed": "runtime",
    "emit": "dialects dialects/rt dialects/stan library",
    "frontend": "library",
    "frontend/check": "frontend frontend/functions library",
    "frontend/functions": "dialects/stan frontend frontend/check frontend/lower frontend/parse library",
    "frontend/lower": "dialects dialects/stan frontend frontend/check frontend/functions library",
    "frontend/parse": "frontend library",
    "library": "",
    "passes": "dialects dialects/rt dialects/stan library passes/analysis passes/loops passes/to_loops",
    "passes/analysis": "dialects dialects/stan library passes",
    "passes/autodiff": "dialects dialects/rt library passes passes/analysis passes/loops",
    "passes/loops": "dialects dialects/rt library passes passes/analysis",
    "passes/optimize": "dialects dialects/stan frontend/functions library passes passes/analysis passes/value_form",
    "passes/to_loops": "dialects dialects/rt dialects/stan library passes passes/analysis passes/autodiff passes/loops",
    "passes/value_form": "dialects dialects/stan library passes passes/analysis",
    "runtime": (
        "api dialects emit frontend frontend/check frontend/functions frontend/lower frontend/parse library passes "
        "passes/to_loops runtime/libraries runtime/modules runtime/optimizers runtime/profiling runtime/sampling "
        "tracing tracing/explain"
    ),
    "runtime/building": (
        "emit frontend frontend/check frontend/lower frontend/parse library runtime runtime/libraries"
    ),
    "runtime/html_report": "runtime runtime/profiling runtime/sampling passes",
    "runtime/libraries": "emit passes runtime",
    "runtime/modules": (
        "dialects dialects/rt dialects/stan emit frontend frontend/functions frontend/lower library passes "
        "passes/to_loops"
    ),
    "runtime/optimizers": "runtime",
    "runtime/profiling": "emit runtime",
    "runtime/sampling": "frontend library runtime runtime/html_report runtime/optimizers",
    "runtime/studies": "runtime runtime/optimizers runtime/sampling",
    "tools": (
        "api dialects dialects/stan emit frontend frontend/check frontend/lower frontend/parse passes "
        "passes/optimize runtime runtime/html_report runtime/libraries runtime/modules runtime/optimizers "
        "runtime/profiling runtime/sampling tools/cmdstan tracing tracing/explain tracing/tape"
    ),
    "tools/cmdstan": (
        "frontend frontend/check frontend/functions frontend/parse library runtime runtime/libraries "
        "runtime/optimizers runtime/sampling tools"
    ),
    "tracing": (
        "emit frontend frontend/functions frontend/parse passes passes/to_loops runtime runtime/optimizers "
        "tracing/explain tracing/export tracing/gradients tracing/instrument tracing/tape tracing/update"
    ),
    "tracing/diff": "runtime tracing tracing/export tracing/instrument tracing/tape",
    "tracing/explain": (
        "frontend frontend/functions frontend/parse library runtime runtime/optimizers tracing "
        "tracing/gradients tracing/instrument tracing/tape"
    ),
    "tracing/export": (
        "emit frontend frontend/parse library runtime runtime/profiling tracing tracing/instrument tracing/tape"
    ),
    "tracing/gradients": "dialects emit library passes/to_loops runtime tracing tracing/instrument tracing/tape",
    "tracing/instrument": (
        "dialects dialects/rt dialects/stan frontend/functions library passes passes/loops "
        "passes/to_loops passes/value_form"
    ),
    "tracing/tape": "dialects emit library runtime tracing/instrument",
    "tracing/update": "runtime tracing tracing/instrument tracing/tape",
}

# Circles that there still are, by the name of what has to be taken apart. They may only shrink.
CIRCLES: dict[str, str] = {}

SHARED_CLASS_NAMES = 8
"""So many public names of classes are those of several modules; may only shrink."""


@pytest.fixture(scope="module")
def structure() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield importlib.import_module("list_structure")


def test_folders_import_only_what_they_may(structure: ModuleType) -> None:
    found = {folder: set(targets) for folder, targets in structure.arrows().items()}
    allowed = {folder: set(targets.split()) for folder, targets in ALLOWED.items()}
    new = [f"{f} -> {t}" for f in found for t in sorted(found[f] - allowed.get(f, set()))]
    assert not new, f"new arrows, see python docs/list_structure.py --arrows FOLDER FOLDER: {new}"
    gone = [f"{f} -> {t}" for f in allowed for t in sorted(allowed[f] - found.get(f, set()))]
    assert not gone and set(allowed) == set(found), f"take out of ALLOWED: {gone or set(allowed) ^ set(found)}"


def test_circles_only_shrink(structure: ModuleType) -> None:
    found = [set(circle) for circle in structure.circles()]
    known = [set(modules.split()) for modules in CIRCLES.values()]
    for circle in found:
        assert any(circle <= other for other in known), f"a new circle: {sorted(circle)}"
    for name, modules in CIRCLES.items():
        stale = set(modules.split()).difference(*found)
        assert not stale, f"no more in the circle {name!r}, take them out of CIRCLES: {sorted(stale)}"


def test_one_walker() -> None:
    """xDSL's own walk takes time in proportion to the depth, for every op: `dialects/walk.py`."""
    code = [path for folder in {name.split("/")[0] for name in ALLOWED} for path in (ROOT / folder).rglob("*.py")]
    assert len(code) > 300
    walks = re.compile(r"(?<!self)\.walk\(\)")
    assert [str(path) for path in code if walks.search(path.read_text(encoding="utf-8"))] == []


def test_names_of_classes(structure: ModuleType) -> None:
    shared = structure.shared_class_names()
    assert len(shared) <= SHARED_CLASS_NAMES, f"{len(shared)}: {shared}"


def test_kinds_of_imports(structure: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those in functions, by name and for types are found; a circle of the latter is none."""
    (tmp_path / "pyproject.toml").write_text('[tool.setuptools.package-dir]\n"p" = "top"\n"p.low" = "low"\n')
    for name, text in {
        "top/__init__.py": "",
        "top/a.py": "from typing import TYPE_CHECKING\nimport os\nif TYPE_CHECKING:\n    from p.low import b\n",
        "low/__init__.py": "class Same: ...",
        "low/b.py": "def f():\n    from p.a import x\n    class Same: ...",
        "low/c.py": "from importlib import import_module\nx = import_module('p.low.d')\ny = import_module(f'p.{x}')\n",
        "low/d.py": "from . import c\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    cached = [structure.modules, structure.imports, structure._tree]
    monkeypatch.setattr(structure, "ROOT", tmp_path)
    try:
        for each in cached:
            each.cache_clear()
        found = {(each.source, each.target, each.kind.name) for each in structure.imports()}
        assert found == {
            ("p.a", "p.low.b", "TYPES"),
            ("p.low.b", "p.a", "LOCAL"),
            ("p.low.c", "p.low.d", "BY_NAME"),
            ("p.low.c", "p", "BY_NAME"),
            ("p.low.d", "p.low.c", "MODULE"),
        }
        assert structure.circles() == [["p.low.c", "p.low.d"]]
        assert structure.shared_class_names() == {"Same": ["p.low", "p.low.b"]}
        assert {folder: list(targets) for folder, targets in structure.arrows().items()} == {
            "low": ["top"],
            "top": ["low"],
        }
    finally:
        for each in cached:
            each.cache_clear()
