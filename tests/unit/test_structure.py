"""The folders import each other as they may, no modules import each other in a circle, and classes have names of their
own. `docs/list_structure.py` finds all of it; its options show what makes an arrow.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Which folders a folder may import; all kinds of imports count. What is no more needed is taken out.
ALLOWED = {
    "api": "runtime runtime/explain runtime/optimizers runtime/trace",
    "dialects": "dialects/stan",
    "dialects/stan": "dialects",
    "emit": "dialects dialects/stan library",
    "frontend": "dialects/stan library",
    "library": "",
    "passes": "dialects dialects/stan passes/analysis passes/optimize",
    "passes/analysis": "dialects dialects/stan library passes passes/optimize",
    "passes/autodiff": "dialects library passes passes/analysis",
    "passes/lower": "dialects dialects/stan library passes passes/analysis passes/autodiff",
    "passes/optimize": "dialects/stan frontend library passes passes/analysis passes/lower",
    "passes/trace": "dialects dialects/stan frontend passes passes/lower",
    "runtime": (
        "api dialects emit frontend library passes passes/lower runtime/explain runtime/optimizers runtime/trace "
    ),
    "runtime/explain": "frontend passes/trace runtime runtime/optimizers runtime/trace",
    "runtime/optimizers": "runtime runtime/explain",
    "runtime/trace": "emit frontend library passes passes/lower passes/trace runtime",
    "tools": (
        "dialects dialects/stan emit frontend passes passes/lower passes/optimize runtime runtime/explain "
        "runtime/optimizers runtime/trace "
    ),
}

# Circles that there still are, by the name of what has to be taken apart. They may only shrink.
CIRCLES = {
    "tracing": """
        ulam.runtime.cmdstan_csv ulam.runtime.explain.birth ulam.runtime.explain.causes
        ulam.runtime.explain.elements ulam.runtime.explain.explainer ulam.runtime.explain.explanation
        ulam.runtime.explain.names ulam.runtime.explain.source ulam.runtime.explain.supports
        ulam.runtime.explain.terms ulam.runtime.explain.text ulam.runtime.flame_graph
        ulam.runtime.optimizers.initial_values ulam.runtime.optimizers.multi_start ulam.runtime.optimizers.optimize
        ulam.runtime.optimizers.result ulam.runtime.profile_csv ulam.runtime.profile_report
        ulam.runtime.profile_views ulam.runtime.profiler ulam.runtime.program ulam.runtime.results
        ulam.runtime.trace.copying ulam.runtime.trace.export.chrome ulam.runtime.trace.export.dot
        ulam.runtime.trace.export.formats ulam.runtime.trace.export.graph ulam.runtime.trace.export.json
        ulam.runtime.trace.export.networkx ulam.runtime.trace.export.stan ulam.runtime.trace.export.stan_expressions
        ulam.runtime.trace.export.svg ulam.runtime.trace.export.svg_labels ulam.runtime.trace.export.svg_layout
        ulam.runtime.trace.find ulam.runtime.trace.functions ulam.runtime.trace.gradients.adjoint
        ulam.runtime.trace.gradients.gradient_check ulam.runtime.trace.gradients.op_library
        ulam.runtime.trace.listing ulam.runtime.trace.node_kinds ulam.runtime.trace.nodes ulam.runtime.trace.queries
        ulam.runtime.trace.saved ulam.runtime.trace.session ulam.runtime.trace.target_nodes ulam.runtime.trace.terms
        ulam.runtime.trace.trace ulam.runtime.trace.update.full_values ulam.runtime.trace.update.interpret
        ulam.runtime.trace.update.propagation ulam.runtime.trace.update.update ulam.runtime.trace.update.values
        ulam.runtime.trace.version ulam.runtime.traced_code
    """,
    "calls": """
        ulam.passes.lower.callbacks ulam.passes.lower.calls ulam.passes.lower.densities
    """,
    "interrupts": """
        ulam.runtime.interrupts ulam.runtime.native
    """,
}

SHARED_CLASS_NAMES = 23
"""So many public names of classes are those of several modules; may only shrink, to 10 and below."""


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
