"""Recursive functions against a search from each function."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ulam.dialects import stan
from ulam.passes.analysis.call_graph import recursive_functions
from ulam.runtime.compiler import CompileOptions, Compiler

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
