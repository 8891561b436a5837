"""Functions of a program that are called, as they are large and written often: values are those in place."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

import ulam
from ulam.passes.remarks import collect_remarks
from ulam.passes.to_loops import repeated_functions

pytestmark = pytest.mark.usefixtures("quick_code")

FUNCTIONS = """
functions {
  vector predicted(matrix X, vector b, array[] int group, matrix M, int shift, int type) {
    vector[rows(X)] e;
    if (rows(b) > 0) e = X * b; else e = rep_vector(0.0, rows(X));
    if (type == 1) e += b[1]; else if (type == 2) e += b[1] - max(e);
    for (n in 1:rows(X)) e[n] += M[group[n], 1 + shift];
    return e;
  }
  vector linked(vector e, int family) {
    vector[rows(e)] mu;
    if (family == 1) mu = e;
    else if (family == 2) mu = exp(e);
    else reject("no family ", family);
    return mu;
  }
  real counts_lpmf(array[] int y, vector mu) { return poisson_log_lupmf(y | mu) + sum(mu); }
}
"""
DATA = "data { int N; matrix[N, 2] X; array[N] int group; array[4] int family; array[N] int count; vector[N] y; }"
PARAMETERS = "parameters { vector[2] b; matrix[3, 2] M; real<lower=0> s; }"
CALLS = """
model {
  vector[N] e = predicted(X, b, group, M, 0, 2);
  for (k in 1:3) { vector[N] f; if (k > 1) f = linked(e, family[k]); else f = e; y ~ normal(f, s); }
  y ~ normal(linked(predicted(X, 2 * b, group, M, 1, 1), 2), s);
  y ~ normal(linked(predicted(X + b[1], y[1:2], group, 2 * M, 1, 1), family[1]), s);
  y ~ normal(linked(X * [1, 2]' + y, family[1]), s);
}
generated quantities { vector[N] g = linked(predicted(X, b, group, M, 0, 0), family[2]); }
"""
PROGRAM = FUNCTIONS + DATA + PARAMETERS + CALLS
VALUES = {
    "N": 4,
    "X": [[0.1, 0.4], [-0.3, 0.2], [0.9, -0.6], [0.5, 0.7]],
    "group": [1, 3, 2, 3],
    "family": [1, 1, 2, 2],
    "count": [1, 0, 2, 3],
    "y": [0.3, -0.8, 1.2, 0.4],
}


def model(text: str, **changes: object) -> ulam.StanModel:
    """Without the pass that writes functions in place in the program."""
    return ulam.StanModel(text, {**VALUES, **changes}, passes="copy-propagation", cache=False)


def called(compiled: ulam.StanModel, unit: str = "gradient_propto") -> Counter[str]:
    module = compiled.module("lowered", unit)
    assert isinstance(module, ModuleOp)
    names = (op.callee.root_reference.data for op in module.walk() if isinstance(op, func.CallOp))
    return Counter(name for name in names if name.startswith("user."))


def test_values_gradients_quantities_and_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    theta = np.linspace(-0.4, 0.5, 9)
    found: list[np.ndarray] = []
    for budget in (10, 10**9):
        monkeypatch.setattr(repeated_functions, "BUDGET", budget)
        compiled = model(PROGRAM)
        value, gradient = compiled.log_density_gradient(theta)
        quantities = compiled.param_constrain(theta, include_gq=True, rng=compiled.new_rng(1))
        found.append(np.array([value, *gradient, *quantities]))
        calls = called(compiled)
        assert bool(calls) == (budget == 10)
        if budget == 10:
            versions = {name.partition(".forward")[0] for name in calls if ".forward" in name}
            assert {"user.predicted", "user.predicted.1", "user.predicted.2", "user.linked"} <= versions, calls
        with pytest.raises(ulam.UlamError, match="no family 7.*line 14"):
            model(PROGRAM, family=[1, 1, 7, 2]).log_density_gradient(theta)
    np.testing.assert_allclose(*found, rtol=1e-13)


def test_literals_that_tell_calls_apart_make_no_versions_of_large_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_functions, "BUDGET", 10)
    theta = np.linspace(-0.4, 0.5, 9)
    ends = ("0, 0", "0, 1", "0, 2", "0, 2")
    terms = " ".join(f"target += sum(predicted(X, b, group, M, {end}));" for end in ends)
    found: list[np.ndarray] = []
    for large, versions in ((10, {"user.predicted": 4}), (10**9, {"user.predicted": 1, "user.predicted.1": 1})):
        monkeypatch.setattr(repeated_functions, "LARGE", large)
        compiled = model(f"{FUNCTIONS}{DATA}{PARAMETERS} model {{ {terms} }}")
        value, gradient = compiled.log_density_gradient(theta)
        found.append(np.array([value, *gradient]))
        calls = {name.removesuffix(".forward"): n for name, n in called(compiled).items() if name.endswith("forward")}
        assert versions.items() <= calls.items()
    np.testing.assert_allclose(*found, rtol=1e-13)


def test_what_data_alone_decide_stays_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The factorials are computed when data are bound, unless the density leaves them out."""
    monkeypatch.setattr(repeated_functions, "BUDGET", 10)
    for statement, expected in (("target += counts_lpmf(count |", False), ("count ~ counts(", True)):
        terms = " ".join(f"{statement} X * b * {k}.5);" for k in range(4))
        with collect_remarks() as remarks:
            compiled = model(f"{FUNCTIONS}{DATA}{PARAMETERS} model {{ {terms} }}")
            assert any("counts" in name for name in called(compiled)) == expected
        told = [remark for remark in remarks if remark.subject == "function counts_lpmf"]
        assert [remark.done for remark in told] == [expected]
        assert "in 4 places" in told[0].message


PRIORS = """
functions {
  real prior_lpdf(vector z, vector scale, int family) {
    if (family == 1) return normal_lpdf(z | 0, scale);
    return inv_gamma_lpdf(exp(z) | 0.5 * scale, scale) + reverse(scale)[1];
  }
  real power(real x, int n);
  real power(real x, int n) { return n == 0 ? log(2) : x * power(x, n - 1); }
  vector powers(vector z, vector scale, int n) {
    vector[2] s = reverse(scale) * max({1, n});
    return !is_inf(scale[1]) ? s .* z : z * power(z[1], n);
  }
  vector weighted(vector z, vector y) { return z * sum(log(square(y) + 1)); }
}
data { vector<lower=0>[2] scale; int n; int family; }
parameters { vector[2] z; }
"""


@pytest.mark.parametrize(
    ("name", "term", "is_called"),
    [
        ("prior_lpdf", "prior_lpdf({k}.0 * z | scale, family)", True),
        ("powers", "sum(powers({k}.0 * z, scale, n))", True),
        ("weighted", "sum(weighted({k}.0 * z, scale))", False),
    ],
)
def test_what_is_no_work_on_data_is_called(
    name: str, term: str, is_called: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Constants of priors, decisions, calls of recursive functions, and what only moves; not functions of data."""
    found: list[np.ndarray] = []
    for budget in (10, 10**9):
        monkeypatch.setattr(repeated_functions, "BUDGET", budget)
        terms = " ".join(f"target += {term.format(k=k)};" for k in range(1, 5))
        compiled = ulam.StanModel(
            f"{PRIORS} model {{ {terms} }}",
            {"scale": [0.7, 1.3], "n": 4, "family": 2},
            passes="copy-propagation",
            cache=False,
        )
        value, gradient = compiled.log_density_gradient(np.array([0.3, -0.4]))
        found.append(np.array([value, *gradient]))
        assert any(name in symbol for symbol in called(compiled)) == (is_called and budget == 10)
    np.testing.assert_allclose(*found, rtol=1e-13)


@pytest.mark.parametrize(("places", "is_called"), [(2, False), (3, True)])
def test_two_copies_count_as_one(places: int, is_called: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    terms = " ".join(f"target += sum(powers({k}.0 * z, scale, n));" for k in range(places))
    for budget, expected in ((80, is_called), (30, True)):
        monkeypatch.setattr(repeated_functions, "BUDGET", budget)
        data = {"scale": [0.7, 1.3], "n": 4, "family": 2}
        compiled = ulam.StanModel(f"{PRIORS} model {{ {terms} }}", data, passes="copy-propagation", cache=False)
        assert any("powers" in name for name in called(compiled)) == expected


def test_what_is_not_differentiated_has_one_version_for_data_and_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_functions, "BUDGET", 10)
    designs = ("X", "2 * X", "b[1] * X", "X + b[2]")
    terms = " ".join(f"g += sum(predicted({design}, b, group, M, 0, 1));" for design in designs)
    compiled = model(f"{FUNCTIONS}{DATA}{PARAMETERS} transformed parameters {{ real g = 0; {terms} }}")
    assert called(compiled, "constrain") == {"user.predicted": 4}


@pytest.mark.parametrize("level", [0, 3])
def test_functions_that_call_the_next_one_twice(level: int) -> None:
    """Written in place, there would be 130,000 copies of the last one."""
    depth = 17
    functions = ["real f0(real x, int n) { return x * 1.5; }"]
    functions += [
        f"real f{k}(real x, int n) {{ return f{k - 1}(x, n) + f{k - 1}(x * 2, n); }}" for k in range(1, depth + 1)
    ]
    compiled = ulam.StanModel(
        f"functions {{ {' '.join(functions)} }} data {{ real d; }} transformed data {{ real t = f{depth}(d, 1); }} "
        f"parameters {{ real a; }} model {{ target += f{depth}(a, 1) - 2 * t; }}",
        {"d": 0.5},
        opt_level=level,
    )
    value, gradient = compiled.log_density_gradient(np.array([0.7]))
    slope = 1.5 * 3.0**depth
    np.testing.assert_allclose([value, *gradient], [-0.3 * slope, slope], rtol=1e-12)
