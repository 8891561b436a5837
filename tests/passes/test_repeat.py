"""`repeat`: passes that work on each scope by itself look again at those that have changed, and at callers of these."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects.builtin import ModuleOp

from ulam.dialects import stan
from ulam.passes.analysis.scopes import Scope
from ulam.passes.optimize.constant_propagation import ConstantPropagation
from ulam.passes.optimize.dead_code_elimination import DeadCodeElimination
from ulam.passes.optimize.scope_passes import ScopePass
from ulam.passes.pipelines import run_pipeline
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

PROGRAM = """
functions {
  real settled(real x) { return 2 * x; }
  real decided(real x) {
    int n = 1;
    int m = 0;
    if (n > 0) m = 3;
    if (m > 2) return square(x);
    return x;
  }
}
parameters { real x; }
model { target += settled(x) - decided(x); }
"""
PASSES = "constant-propagation,copy-propagation,partial-evaluation{preserve-numerics=true},dead-code-elimination"
REPEAT = f'repeat{{passes="{PASSES}" max=4}}'


def name(scope: Scope) -> str:
    return scope.stan_name.data if isinstance(scope, stan.FuncOp) else "blocks"


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """The scopes that a pass works on, each time it runs."""
    found: dict[str, list[list[str]]] = {}

    def watch(cls: type[ScopePass]) -> None:
        runs, work_on = found.setdefault(cls.name, []), cls.work_on

        def watched(self: ScopePass, module: ModuleOp, scopes: Sequence[Scope]) -> bool:
            runs.append([name(scope) for scope in scopes])
            return work_on(self, module, scopes)

        monkeypatch.setattr(cls, "work_on", watched)

    watch(ConstantPropagation)
    watch(DeadCodeElimination)
    return found


def as_written() -> ModuleOp:
    return Compiler(PROGRAM, options=CompileOptions(0)).module


def test_what_has_not_changed_is_not_looked_at_again(seen: dict[str, list[list[str]]]) -> None:
    run_pipeline(as_written(), f"{REPEAT},{REPEAT}")
    first, *later = seen["constant-propagation"]
    assert first == ["settled", "decided", "blocks"]
    assert later and all(scopes == ["decided"] for scopes in later)


def test_what_a_pass_leaves_no_work_in_is_not_looked_at_again(seen: dict[str, list[list[str]]]) -> None:
    module, alone = as_written(), as_written()
    run_pipeline(module, 'repeat{passes="constant-propagation,dead-code-elimination" max=4}')
    assert seen["constant-propagation"] == [["settled", "decided", "blocks"]]
    run_pipeline(alone, "constant-propagation")
    before = str(module)
    assert before != str(alone)  # the other pass changed something
    run_pipeline(module, "constant-propagation")
    assert str(module) == before


def test_callers_are_looked_at_where_a_function_has_changed(seen: dict[str, list[list[str]]]) -> None:
    run_pipeline(as_written(), 'repeat{passes="dead-code-elimination,constant-propagation" max=4}')
    assert len(seen["dead-code-elimination"]) > 1
    assert all(scopes == ["settled", "decided", "blocks"] for scopes in seen["dead-code-elimination"])


def test_the_result_is_that_of_passes_that_look_at_everything() -> None:
    repeated, alone = as_written(), as_written()
    run_pipeline(repeated, REPEAT)
    for _ in range(4):
        run_pipeline(alone, PASSES)
    assert str(repeated) == str(alone)
    assert "square" in str(repeated) and "stan.if" not in str(repeated)
