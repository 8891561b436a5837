"""AD-level optimization: which variables need no gradient, and that the marks change no code."""

from __future__ import annotations

import numpy as np
import pytest
from random_programs import random_program
from xdsl.dialects.builtin import ModuleOp, UnitAttr

from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.passes.optimize import ad_level_optimization
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.model import StanModel


def module_of(text: str) -> ModuleOp:
    return Compiler(text, "model.stan", CompileOptions(0)).module


def marks(module: ModuleOp) -> dict[str, bool]:
    """Variable → whether it is marked, of all blocks and functions."""
    declarations = (op for op in ops_within(module) if isinstance(op, stan.DeclareOp))
    return {op.var_name.data: op.data_only is not None for op in declarations}


def marks_of(text: str) -> dict[str, bool]:
    module = module_of(text)
    ad_level_optimization.run_on(module)
    module.verify()
    return marks(module)


def test_loops_carry_gradients_backwards() -> None:
    found = marks_of("""
    parameters { real p; }
    model {
      real a = 0; real b = 0; real c = 0; real d = 0;
      for (i in 1 : 3) { a = b; b = c; c = i == 2 ? p : 0; d += i; }
      while (d > 0) { d -= 1; }
    }
    """)
    assert found == {"a": False, "b": False, "c": False, "d": True}


def test_transformed_parameters_pass_it_on_by_name() -> None:
    found = marks_of("""
    data { real y; }
    parameters { real p; }
    transformed parameters { real dull = y; real vivid = p; { real inner = p; real plain = dull; } }
    model { real a = dull; real b = vivid; vector[2] v = rep_vector(dull, 2); v[1] = b; }
    generated quantities { real g = y; }
    """)
    # Generated quantities have no gradient anyway, and are not marked.
    assert found == {
        "y": False, "dull": True, "vivid": False, "inner": False, "plain": True, "a": True, "b": False, "v": False,
        "g": False,
    }  # fmt: skip


def test_marks_of_an_earlier_run_go() -> None:
    module = module_of("parameters { real p; } model { real x = 1; real y = 2; }")
    ad_level_optimization.run_on(module)
    assert marks(module) == {"x": True, "y": True}
    other = module_of("parameters { real p; } model { real x = p; }")
    declared = next(op for op in ops_within(other) if isinstance(op, stan.DeclareOp))
    declared.properties["data_only"] = UnitAttr()
    ad_level_optimization.run_on(other)
    assert marks(other) == {"x": False}


def test_remarks_name_the_parameter_and_the_line() -> None:
    module = module_of("parameters { real p; }\nmodel {\n  real x;\n  x = p;\n  real z = x;\n}")
    with collect_remarks() as remarks:
        ad_level_optimization.run_on(module)
    assert [str(r) for r in remarks] == [
        "model.stan:3:8: ad-level-optimization: variable x: not done: line 4 assigns a value that depends on p",
        "model.stan:5:8: ad-level-optimization: variable z: not done: line 5 assigns a value that depends on p",
    ]


@pytest.mark.parametrize("seed", range(3))
def test_the_marks_change_no_code(seed: int) -> None:
    text = random_program(seed)
    plain, marked = (
        Compiler(text, "model.stan", CompileOptions(3, pipeline=p)).llvm_text("gradient_propto")
        for p in ("", "ad-level-optimization")
    )
    assert plain == marked


@pytest.mark.parametrize("seed", range(4))
def test_autodiff_bits_stay(seed: int) -> None:
    module = module_of(random_program(seed))
    before = [op.autodiff for op in ops_within(module) if isinstance(op, stan.CallOp)]
    ad_level_optimization.run_on(module)
    assert [op.autodiff for op in ops_within(module) if isinstance(op, stan.CallOp)] == before


def test_marked_transformed_parameters_do_not_move() -> None:
    """What is marked has the same value at all parameters, where no condition depends on them."""
    text = """
    functions { real mean2(real a, real b) { real s = a; s += b; return s / 2; } }
    data { real y; vector[3] w; }
    parameters { real p; vector[3] q; }
    transformed parameters {
      real a = mean2(y, 2); real b = mean2(y, p);
      vector[3] c = w; c[2] = a; vector[3] d = w; d[3] = q[1];
      real e = num_elements(q); real f = sum(append_row(w, c)); real g = (q, w).2[1]; real h = (q, w).1[1];
      real k = 0; for (x in w) k += x; real l = 0; for (x in q) l += x;
    }
    """
    found = marks_of(text)
    model = StanModel(text, {"y": 0.5, "w": [1, 2, 3]}, opt_level=0)
    names = model.param_names(include_tp=True)
    one, other = (model.param_constrain(np.full(4, t), include_tp=True) for t in (0.3, 0.7))
    for name, x, y in zip(names, one, other, strict=True):
        variable = name.partition(".")[0]
        if found.get(variable):
            assert x == y, name
    assert {v for v in "abcdefghkl" if found[v]} == set("acefgk")
