"""Recursive functions against a search from each function; functions that no block needs."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ulam.dialects import stan
from ulam.passes.analysis.call_graph import mark_unused, recursive_functions
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

COUNT = 7
_CALLEES = st.lists(st.lists(st.integers(0, COUNT - 1), max_size=2), min_size=COUNT, max_size=COUNT)


@settings(max_examples=60)
@given(_CALLEES)
def test_recursive_are_the_functions_that_reach_themselves(callees: list[list[int]]) -> None:
    declared = "".join(f"real f{n}(real x);\n" for n in range(COUNT))
    bodies = (" + ".join(["x", *(f"f{called}(x)" for called in called_by)]) for called_by in callees)
    defined = "".join(f"real f{n}(real x) {{ return {body}; }}\n" for n, body in enumerate(bodies))
    module = Compiler(f"functions {{\n{declared}{defined}}}\n", options=CompileOptions(0)).module
    functions = {op.sym_name.data: op for op in module.walk() if isinstance(op, stan.FuncOp) and op.library is None}
    found = {functions[name].stan_name.data for name in recursive_functions(functions)}
    assert found == {f"f{n}" for n in range(COUNT) if n in _reached(n, callees)}


def _reached(start: int, callees: list[list[int]]) -> set[int]:
    found: set[int] = set()
    pending = list(callees[start])
    while pending:
        if (current := pending.pop()) not in found:
            found.add(current)
            pending += callees[current]
    return found


_UNUSED = """
functions {
  real inner(real x) { return 2 * x; }
  real called(real x) { return inner(x); }
  vector passed(real t, vector y) { return -y; }
  real alone(real x) { return other(x) + 1; }
  real other(real x) { return inner(x); }
}
"""
_BLOCKS = """
parameters { real x; }
model { target += called(x) + ode_rk45(passed, [x]', 0, {1.0})[1, 1]; }
"""


def _marked(text: str) -> set[str]:
    module = Compiler(text, options=CompileOptions(0)).module
    mark_unused(module)
    functions = [op for op in module.walk() if isinstance(op, stan.FuncOp)]
    assert all(op.inlined is None for op in functions if op.library is not None)
    return {op.stan_name.data for op in functions if op.inlined is not None}


def test_functions_that_no_block_needs_are_left_out() -> None:
    """Those that are called or passed on stay, and what they call; a collection of functions keeps all."""
    assert _marked(_UNUSED + _BLOCKS) == {"alone", "other"}
    assert not _marked(_UNUSED) and not _marked(_UNUSED + "model { }")
    optimized = Compiler(_UNUSED + _BLOCKS).module
    found = {op.stan_name.data: op for op in optimized.walk() if isinstance(op, stan.FuncOp) and op.library is None}
    assert any(isinstance(op, stan.CallOp) for op in found["alone"].walk())  # as it was written
