"""Which values ints can have, across functions: arms that no call reaches go, and nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import ulam
from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.passes import data_switches
from ulam.passes.analysis.value_sets import ValueSets
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

pytestmark = pytest.mark.usefixtures("quick_code")

FUNCTIONS = """
  int is_simple(int kind, int way) {
    if (kind == 1 && way == 1) return 1;
    if (kind == 2 && (way == 1 || way == 3)) return 2 - 1;
    return 0;
  }
  int twice(int n) { return n > 20 ? n : twice(2 * n); }
  int counted(int n) { int s = 0; for (k in 1:n) s += k; return s; }
  real shape(real x, int kind) {
    if (kind == 1) return x;
    else if (kind == 2) return exp(x);
    else if (kind == 3) return square(x);
    return log1p_exp(x);
  }
  real numeric(real x, array[] int ids) {
    int kind = ids[1];
    return shape(x, kind) + 0.5;
  }
  real term(real x, int kind, int way) {
    if (is_simple(kind, way)) return shape(x, kind);
    array[2] int ids = {kind, way};
    return numeric(x, ids) * 2;
  }
"""
PROGRAM = f"""
functions {{ {FUNCTIONS} }}
data {{ int n; array[n] int kind; array[n] int at; int way; }}
parameters {{ real<lower=-2, upper=2> x; }}
model {{
  for (i in 1:n) target += term(x * i, kind[at[i]], way == 1);
  if (n == 0) target += x;
}}
"""


def data(*kind: int, way: int = 1) -> dict[str, Any]:
    return {"n": len(kind), "kind": list(kind), "at": list(range(len(kind), 0, -1)), "way": way}


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_switches, "LEAST_OPS", 1)


def compared(module: ModuleOp, name: str) -> set[int]:
    """The literals that what is left of a function compares with."""
    (function,) = (op for op in ops_within(module) if isinstance(op, stan.FuncOp) and op.sym_name.data == name)
    comparisons = (op for op in ops_within(function) if op.name == "stan.eq")
    return {int(op.operands[1].owner.properties["value"].value.data) for op in comparisons}  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", [(1, 1), (2,), (1, 2, 2), (3, 1), (4,), (), tuple(range(40)), (-7, 2)])
@pytest.mark.parametrize("way", [1, 2])
def test_results_are_those_of_level_0(kind: tuple[int, ...], way: int) -> None:
    found = []
    for level in (0, 3):
        model = ulam.StanModel(PROGRAM, data(*kind, way=way), opt_level=level)
        found.append(model.log_density_gradient(np.array([0.3])))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-11)


def test_arms_that_no_call_reaches_go() -> None:
    def left(*kind: int, way: int = 1) -> set[int]:
        compiler = Compiler(PROGRAM, options=CompileOptions(pieces=True))
        model = ulam.StanModel(PROGRAM, data(*kind, way=way))
        known = model._program.known_to_compiler(model.options)
        assert known is not None
        compiler.specialize(known)
        return compared(compiler._as_decided, "shape")

    assert left(1, 2, 1) == {1, 2}
    assert left(2, 2) == left(1, 1) == left() == set()
    assert left(3) == left(1, 3) == {1, 3}  # an array has the values of all of its elements
    assert left(2, 3, 4, way=2) == {2, 3}
    assert left(*range(30)) == {1, 2, 3}


def sets_of(text: str, **known: frozenset[int]) -> dict[str, frozenset[int] | None]:
    """Of what a model hands to functions `told_NAME`."""
    module = Compiler(text, options=CompileOptions(0))._as_lowered
    program = next(op for op in module.body.block.ops if isinstance(op, stan.ProgramOp))
    sets = ValueSets(program, known)
    return {
        name.removeprefix("told_"): sets.of(function.body.block.args[0])
        for name, function in sets.functions.items()
        if name.startswith("told_") and function.body.block.args[0] in sets._given
    }


EXPRESSIONS = {
    "a": {1, 4},
    "a * 2 - 1": {1, 7},
    "a > 3": {0, 1},
    "a > 0": {1},
    "a > 0 || b": {1},
    "a < 0 && b": {0},
    "b || a": {1},
    "b && a": {0, 1},
    "!a": {0},
    "a == 1 ? 7 : a": {7, 1, 4},
    "a > 4 ? b : 3": {3},
    "c[b]": {2},
    "c[1:2][b]": {2},
    "is_simple(a, 1)": {0, 1},
    "is_simple(c[1], 3)": {1},
    "twice(a)": {32},
    "counted(a)": None,
    "b": None,
    "a %/% (a - 1)": None,
    "a * c[1] * a * 100000000": {200000000, 800000000, -1094967296},
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions(expression: str) -> None:
    text = f"""
    functions {{ {FUNCTIONS} real told_it(int k) {{ return k; }} }}
    data {{ int a; int b; array[3] int c; }}
    parameters {{ real x; }}
    model {{ target += told_it({expression}) * x; }}
    """
    expected = EXPRESSIONS[expression]
    assert sets_of(text, a=frozenset((1, 4)), c=frozenset((2,)))["it"] == (expected and frozenset(expected))


LOCALS = {
    "int k = a;": {1},
    "int k; if (b == 1) k = a;": None,
    "int k; k = a; if (b > 0) k = 2;": None,
    "int k = a; k += 1;": None,
    "array[2] int k = {a, 3};": {1, 3},
    "array[2] int k = {a, 3}; k[1] = b;": None,
    "array[2] int k; for (j in 1:2) k[j] = a;": None,
    "int k = a; while (x > k) { target += -x; break; }": {1},
}


@pytest.mark.parametrize("line", LOCALS)
def test_local_variables(line: str) -> None:
    told = "k[1]" if "array" in line else "k"
    text = f"""
    functions {{ real told_it(int k) {{ return k; }} }}
    data {{ int a; int b; }}
    parameters {{ real x; }}
    model {{ {line} target += told_it({told}) * x; }}
    """
    expected = LOCALS[line]
    assert sets_of(text, a=frozenset((1,)))["it"] == (expected and frozenset(expected))


def test_what_is_not_reached_is_not_handed_on() -> None:
    text = """
    functions {
      real told_first(int k) { return k; }
      real told_never(int k) { return told_first(k); }
      real chosen(int k) {
        if (k == 1) return told_first(k);
        if (k > 1) return told_never(k);
        return 0;
      }
      vector told_passed(int k, vector x, array[] int j) { return x * k * j[1]; }
      vector step(real t, vector x, int told) { return x * told_step(told); }
      real told_step(int k) { return k; }
    }
    data { int a; }
    parameters { vector[1] x; }
    model {
      target += chosen(a) * x[1];
      target += sum(ode_rk45(step, x, 0, {1.0}, a)[1]);
    }
    """
    assert sets_of(text, a=frozenset((1,))) == {"first": {1}, "step": None}
    assert sets_of(text, a=frozenset((1, 5))) == {"first": {1, 5}, "never": {1, 5}, "step": None}
