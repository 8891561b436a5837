"""Solutions of differential equations that a program asks for often: each is written once, and is the same in place."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

import ulam
from ulam.passes.to_loops import shared_solutions

pytestmark = pytest.mark.usefixtures("quick_code")

FUNCTIONS = """
functions {
  vector f(real t, vector y, real a, tuple(vector, array[] int) b) {
    if (a > 50) reject("too fast: ", a);
    return -a * y + b.1 * y[1] * b.2[1];
  }
  vector residual(real t, vector y, vector yp, real a, tuple(vector, array[] int) b) { return yp - f(t, y, a, b); }
}
data { vector[2] y0; real c; int one; }
parameters { real<lower=0> a; vector[2] b; }
"""
SAME = 4


def program(solver: str) -> str:
    """Solutions of the same kind, and one each of data alone, of two varying arguments and of another start."""
    begin = "[1, -c]', 0, {0.5, 1}" if solver == "dae" else "0, {0.5, 1}"
    f = "residual" if solver == "dae" else "f"
    same = [f"y[{k + 1}] = {solver}({f}, y0 * {k + 1}, {begin}, a + {k}, (b, {{one}}));" for k in range(SAME)]
    lines = "\n  ".join(same)
    return f"""{FUNCTIONS}
transformed parameters {{
  array[{SAME + 3}, 2] vector[2] y;
  {lines}
  y[{SAME + 1}] = {solver}({f}, y0, {begin}, c, (y0, {{one}}));
  y[{SAME + 2}] = {solver}({f}, b, {begin}, c, (y0, {{one}}));
  y[{SAME + 3}] = {solver}({f}, y0, {begin}, c, (b, {{one}}));
}}
model {{ for (k in 1:{SAME + 3}) target += k * sum(y[k, 2]) + y[k, 1, 1]; }}
"""


DATA = {"y0": [1.0, 0.5], "c": 0.7, "one": 1}
POINT = [0.1, 0.3, 0.4]


def built(solver: str, level: int) -> ulam.StanModel:
    return ulam.StanModel(program(solver), DATA, opt_level=level, cache=False)


@pytest.mark.parametrize(("solver", "level"), [("ode_rk45", 0), ("ode_ckrk", 3)])
def test_values_and_derivatives(solver: str, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = built(solver, level)
    monkeypatch.setattr(shared_solutions, "FEW", 10**9)
    in_place = built(solver, level)
    for of in ("log_density_hessian", "log_density_gradient"):
        for found, expected in zip(getattr(shared, of)(POINT), getattr(in_place, of)(POINT), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    found, expected = (model.param_constrain(POINT, include_tp=True) for model in (shared, in_place))
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("unit", ["gradient_propto", "constrain"])
@pytest.mark.parametrize(
    ("solver", "solutions"),
    [("ode_rk45", ["dormand_prince"]), ("ode_adams", ["dormand_prince", "radau"]), ("dae", ["dae_radau"])],
)
def test_each_is_written_once(solver: str, solutions: list[str], unit: str) -> None:
    """For each set of arguments that sensitivities are asked for, of which there are none in generated quantities."""
    module = built(solver, 0).module("lowered", unit)
    assert isinstance(module, ModuleOp)
    written = [op.sym_name.data for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    called = Counter(op.callee.root_reference.data for op in module.walk() if isinstance(op, func.CallOp))
    for solution in solutions:
        versions = [name for name in written if f"{solution}_states" in name and ".shared" not in name]
        counts = sorted(called[name] for name in versions)
        assert counts == ([SAME + 3] if unit == "constrain" else [1, 1, SAME])  # data alone are solved when bound


@pytest.mark.parametrize("k", [2])
def test_errors_are_those_of_the_call(k: int) -> None:
    """What the program's function rejects is told there, what the solver refuses at the call of the solver."""
    text = program("ode_rk45_tol").replace("0.5, 1}, ", "0.5, 1}, 1e-8, 1e-8, 1000, ")
    line = next(n for n, line in enumerate(text.splitlines(), 1) if f"y[{k + 1}] =" in line)
    lines = text.splitlines()
    for change, message in (
        (f"a + {k + 20}", rf"is \d+, but must be at most max_num_steps.*line {line}, column"),
        (f"a + {k + 90}", "too fast: 9.*line 4, column"),
    ):
        changed = lines[line - 1].replace(f"a + {k}", change).replace(" 1000,", " 5,")
        model = ulam.StanModel("\n".join([*lines[: line - 1], changed, *lines[line:]]), DATA, opt_level=0, cache=False)
        for evaluate in (model.log_density_gradient, lambda at, m=model: m.param_constrain(at, include_tp=True)):
            with pytest.raises(ulam.Rejection, match=message):
                evaluate(POINT)
