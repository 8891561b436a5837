"""Loops in branches: those of which data decide get layouts of rows, those of which parameters decide do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_outcomes, outcome
from xdsl.dialects.builtin import ModuleOp

import ulam
from ulam.dialects import rt
from ulam.passes.lowering_pipeline import lower
from ulam.passes.units import UNITS
from ulam.runtime.compiler import Compiler
from ulam.runtime.interpreter_settings import compiling

PROGRAM = """
data {
  int<lower=0> N; int<lower=0, upper=1> counts; int<lower=0> parts;
  array[counts ? N : 0] int<lower=0> y;
  array[N] int<lower=1, upper=5> g;
  vector[N] x;
}
parameters { real a; real b; vector[5] u; }
model {
  if (counts) {
    real twice = 2 * b;
    for (n in 1:N) y[n] ~ poisson(a + twice * x[n]);
  } else if (N > 3) {
    x ~ student_t(4, a + u[g], exp(b));
  }
  if (parts > 0) for (n in 1:N %/% parts) target += -log1p_exp(a * x[n]);
  if (a > 1 || b > 1) for (n in 1:N) target += -log1p_exp(b + u[g[n]] * x[n]);
}
"""
POINTS = np.array([[2, 0.1, 0, 0.1, 0.2, -0.1, 0.3], [0.9, -0.2, 0, -0.1, 0.2, -0.1, 0.3], [0, 1.5, 1, 2, 0, 0, 0]])


def data_of(n: int, counts: bool, parts: int, kinds: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    y = rng.integers(0, 3, n if counts else 0)
    x = rng.integers(0, kinds, n).astype(float)
    return {"N": n, "counts": int(counts), "parts": parts, "y": y, "g": rng.integers(1, 6, n), "x": x}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("branches") / "branches.stan"
    path.write_text(PROGRAM)
    return path


def answer(model: ulam.StanModel, point: Any) -> Any:
    """Log density and gradient, or the text of what rejects the point."""
    try:
        value, gradient = model.log_density_gradient(point)
    except ulam.Rejection as rejection:
        return str(rejection)
    return np.append(gradient, value)


def taken(model: ulam.StanModel) -> set[tuple[str, float]]:
    """Layouts and numbers of rows."""
    return {(choice.layout, choice.figures["rows"]) for choice in model.layout_choices() if choice.taken}


@pytest.mark.parametrize("parts", [0, 2])
@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("n", [0, 2, 600])
def test_density_and_gradient_are_those_of_level_0(program: Path, n: int, counts: bool, parts: int) -> None:
    data = data_of(n, counts, parts)
    model, plain = (ulam.StanModel(program, data, opt_level=level) for level in (3, 0))
    for point in POINTS:
        found, expected = answer(model, point), answer(plain, point)
        if isinstance(expected, str):
            assert found == expected
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-10 * (1 + n))
    # The loop that divides by `parts` stays, and that of a branch of which parameters decide.
    is_robust = not counts and n > 3
    rows = {(choice.layout, choice.figures["rows"]) for choice in model.layout_choices()}
    assert rows == {("unique rows", n * counts), ("unique rows", n * is_robust), ("rows by index", n * is_robust)}
    assert taken(model) == (rows - {("unique rows", 0), ("rows by index", n * is_robust)} if n == 600 else set())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_travels_as_before(program: Path, value: float) -> None:
    for counts in (True, False):
        model, plain = (ulam.StanModel(program, data_of(600, counts, 0), opt_level=level) for level in (3, 0))
        for position in (0, 1, 4):
            point = POINTS[1].copy()
            point[position] = value
            found, expected = answer(model, point), answer(plain, point)
            if isinstance(expected, str):
                assert found == expected
            else:
                np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-8)


def test_errors_name_the_first_row_of_the_users_order(program: Path) -> None:
    data = data_of(600, True, 0)
    data["x"][:7] = [1, 1, 1, 2, 2, 2, 0]
    model, plain = (ulam.StanModel(program, data, opt_level=level) for level in (3, 0))
    point = np.array([0.5, -0.2, 0, 0, 0, 0, 0])
    assert taken(model) == {("unique rows", 600)}
    assert answer(model, point) == answer(plain, point)
    assert "-0.3" in answer(model, point)


MEANS = """
data { int N; vector[N] x; array[N] int z; array[N] int<lower=0> y; }
parameters { real a; real b; real c; }
transformed parameters {
  vector[N] rate;
  for (n in 1:N) rate[n] = exp(a + b * x[n] + c * z[n]);
}
model { y ~ poisson(rate); }
"""


def test_means_that_are_filled_before_their_check(tmp_path: Path) -> None:
    (path := tmp_path / "means.stan").write_text(MEANS)
    rng = np.random.default_rng(2)
    data = {"N": 900, "x": np.round(rng.normal(size=900)), "z": rng.integers(0, 2, 900), "y": rng.poisson(2, 900)}
    model, plain = (ulam.StanModel(path, data, layouts=layouts) for layouts in (True, False))
    assert taken(model) == {("unique rows", 900)}
    for point in ([0.1, 0.2, -0.3], [900.0, 0, 0], [np.nan, 0, 0], [0, 0, -1000.0]):
        found, expected = answer(model, point), answer(plain, point)
        if isinstance(expected, str):
            assert found == expected
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-9)


INDICES = """
data { int N; array[N] int at; vector[N] x; }
parameters { real a; }
model {
  for (n in 1:4) {
    if (at[n] > N || x[at[n]] > a) target += -n * a;
    if (at[n] <= N && x[at[n]] > 1) print("row ", n);
    if (a > 0 && x[n + 1] > 0) target += a;
  }
}
"""


@pytest.mark.parametrize("level", range(5))
def test_operands_of_lazy_operators_are_not_read_early(tmp_path: Path, level: int, capfd: Any) -> None:
    (path := tmp_path / "indices.stan").write_text(INDICES)
    data = {"N": 4, "at": [1, 99, 3, -(2**31)], "x": [2.0, 0.0, 3.0, 4.0]}
    model = ulam.StanModel(path, data, opt_level=level)
    with pytest.raises(ulam.UlamError, match=r"index -2147483648 out of range"):
        model.log_density([-1.0])
    assert capfd.readouterr().out == "row 1\nrow 3\n"
    data["at"] = [1, 99, 3, 5]
    model = ulam.StanModel(path, data, opt_level=level)
    assert model.log_density([-1.0]) == 10.0
    with pytest.raises(ulam.UlamError, match=r"index 5 out of range"):
        model.log_density([1.0])


def test_the_first_condition_that_holds_decides_wherever_the_others_are_computed() -> None:
    """A distribution with a branch of its own in the last arm: both conditions were computed ahead, and the last one's
    outcome was taken for all rows."""
    program = ulam.StanProgram(
        "data { int N; vector[N] x; array[N] int seen; vector[N] t; }\n"
        "parameters { real a; real<lower=0> s; }\n"
        "model { for (n in 1:N) target += seen[n] == 1 ? lognormal_lpdf(t[n] | a * x[n], s)"
        " : lognormal_lccdf(t[n] | a * x[n], s); }"
    )
    rng = np.random.default_rng(4)
    times = rng.gamma(2, 1, 300)
    times[::7] = 0
    data = {"N": 300, "x": rng.standard_normal(300), "seen": rng.integers(0, 2, 300) * (times > 0), "t": times}
    model, plain = program(data), program(data, opt_level=0)
    value, gradient = model.log_density_gradient([0.2, -0.3])
    expected, slopes = plain.log_density_gradient([0.2, -0.3])
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-11)
    parts = next(choice for choice in model.layout_choices() if choice.layout == "parts of rows")
    assert parts.figures["parts"] == 3


SEVERAL = """
data {
  int<lower=0> N;
  array[N] int<lower=0> y; array[N] int<lower=0, upper=1> seen; array[N] int<lower=0, upper=3> site;
  array[3] int<lower=0, upper=1> is_open; vector[N] x;
}
parameters { real a; real b; vector[3] u; }
model {
  for (n in 1 : N) if (seen[n] && y[n] != 3) y[n] ~ poisson_log(a + b * x[n]);
  for (n in 1 : N) {
    if (site[n] > 0 && is_open[site[n]]) y[n] ~ poisson_log(u[site[n]]);
    else if (!seen[n] || (site[n] > 1 && y[n] > 2)) y[n] ~ neg_binomial_2_log(a, exp(b));
  }
}
"""


@pytest.mark.parametrize("n", [0, 1, 2000])
def test_several_conditions_of_a_row_are_one_branch_on_data(n: int) -> None:
    """What the second one reads is only there where the first one holds."""
    rng = np.random.default_rng(4)
    data = {
        "N": n, "y": rng.poisson(1.5, n), "seen": rng.integers(0, 2, n), "site": rng.integers(0, 4, n),
        "is_open": [1, 0, 1], "x": rng.integers(0, 2, n),
    }  # fmt: skip
    expected, found = (ulam.StanModel(SEVERAL, data, opt_level=level) for level in (0, 3))
    for special in (0.5, np.inf, np.nan, -700.0):
        point = np.array([0.2, special, 0.1, -0.3, 0.4])
        first, second = answer(expected, point), answer(found, point)
        if isinstance(first, str) or isinstance(second, str):
            assert first == second
        else:
            np.testing.assert_allclose(second, first, rtol=1e-10, atol=1e-10)
    if n == 2000:
        assert taken(found) == {(layout, 2000) for layout in ("parts of rows", "unique rows", "values by index")}


CHOSEN_MEANS = """
data {
  int<lower=0> N;
  array[N] int<lower=0, upper=1> seen; array[N] int<lower=0, upper=3> site;
  vector[3] rate; vector[N] x; vector[N] z; vector[N] w; vector[N] y;
}
parameters { real a; real b; real c; real<lower=0> s; }
model {
  for (n in 1 : N) {
    real mu = a + b * x[n];
    if (seen[n]) mu += c * z[n];
    else mu -= c;
    if (site[n] > 0) mu += 2 * b * rate[site[n]];
    y[n] ~ normal(mu, s);
  }
  for (n in 1 : N) y[n] ~ normal(seen[n] ? a : b * x[n] / w[n], s);
}
"""


@pytest.mark.parametrize("n", [0, 1, 300])
def test_means_that_data_choose_have_reduced_rows(n: int) -> None:
    """What an arm reads counts where it is taken: elsewhere it may be no number, or not be there."""
    rng = np.random.default_rng(8)
    seen, x = rng.integers(0, 2, n), rng.normal(size=n)
    data = {
        "N": n, "seen": seen, "site": rng.integers(0, 4, n), "rate": [0.5, -1.0, 2.0], "x": x,
        "z": np.where(seen, rng.normal(size=n), np.nan), "w": np.where(seen, 0.0, 2.0), "y": x + rng.normal(size=n),
    }  # fmt: skip
    expected, found = (ulam.StanModel(CHOSEN_MEANS, data, opt_level=level) for level in (0, 3))
    assert_same_outcomes(expected, found, at=2)
    assert taken(found) == ({("reduced rows", 300)} if n == 300 else set())
    if n == 300:
        data["y"][5] = np.nan
        models = [ulam.StanModel(CHOSEN_MEANS, data, opt_level=level) for level in (0, 3)]
        assert len({outcome(model, np.zeros(4)) for model in models}) == 1


ALIKE = """
data { int<lower=0> N; array[N] int<lower=0, upper=1> f; vector[N] x; vector[N] y; array[N] int<lower=0> k; }
parameters { real a; real b; real<lower=0> s; }
model {
  for (n in 1 : N) if (f[n]) y[n] ~ normal(a + b * x[n], s); else y[n] ~ normal(a, s);
  for (n in 1 : N) if (f[n]) k[n] ~ poisson_log(a + b * x[n]); else k[n] ~ poisson_log(b - x[n]);
  for (n in 1 : N) if (x[n] > a) x[n] ~ cauchy(a, s); else x[n] ~ cauchy(x[n] * b, s);
  for (n in 1 : N) if (f[n]) x[n] ~ normal(a, s); else x[n] ~ normal(a, 2 * s);
}
"""


@pytest.mark.parametrize("n", [0, 1, 2000])
def test_densities_in_both_arms_are_one_density(n: int) -> None:
    rng = np.random.default_rng(9)
    data = {
        "N": n, "f": rng.integers(0, 2, n), "x": rng.integers(0, 3, n) / 2.0, "y": rng.normal(size=n),
        "k": rng.poisson(1, n),
    }  # fmt: skip
    expected, found = (ulam.StanModel(ALIKE, data, opt_level=level) for level in (0, 3))
    assert_same_outcomes(expected, found, at=1)
    if n == 2000:
        assert {("reduced rows", 2000), ("unique rows", 2000)} <= taken(found)
        data["y"][7] = np.nan
        models = [ulam.StanModel(ALIKE, data, opt_level=level) for level in (0, 3)]
        assert len({outcome(model, np.zeros(3)) for model in models}) == 1


CENSORED = """
data { int N; vector[N] t, x; array[N] int<lower=0, upper=1> event; }
parameters { real<lower=0> shape; real a, b, late; }
model {
  for (n in 1 : N) {
    if (event[n] == 1) target += weibull_lpdf(t[n] | shape, exp(a + b * x[n]));
    else target += weibull_lccdf(t[n] | shape, exp(a + b * x[n]));
  }
  target += weibull_lpdf(late | shape, 2) + weibull_lccdf(late | shape, 3);
}
"""


def lowered(program: str, level: int) -> ModuleOp:
    """The unit of gradients."""
    with compiling():
        return lower(Compiler(program).program, UNITS["gradient_propto"], level).module


@pytest.mark.parametrize("level", [3, 4])
def test_powers_of_censored_times_are_exponentials(level: int) -> None:
    """Of 0, of what runs under, of a parameter at 0, where its slope depends on the shape."""
    rng = np.random.default_rng(8)
    event = rng.integers(0, 2, 60)
    times = np.where(event == 1, rng.exponential(1, 60), rng.choice([0.0, 5e-324, 1e-310, 1e-300, 0.1, 1, 1e3], 60))
    data = {"N": 60, "t": times, "x": rng.normal(size=60), "event": event}
    model, plain = (ulam.StanModel(CENSORED, data, opt_level=used) for used in (level, 0))
    functions = {op.function.data for op in lowered(CENSORED, level).walk() if isinstance(op, rt.MathOp)}
    assert "power_by_log" in functions
    assert "pow" not in functions
    points = [rng.normal(size=4) * size for size in (0.3, 1, 3) for _ in range(3)]
    points = [np.array([*point[:3], abs(point[3])]) for point in points]
    points += [np.array([np.log(shape), 0.2, 0.1, 0.0]) for shape in (0.5, 1, 2)]
    for point in points:
        (value, gradient), (found, slopes) = (each.log_density_gradient(point) for each in (plain, model))
        assert found == pytest.approx(value, rel=1e-11, nan_ok=True)
        finite = np.isfinite(gradient)
        assert finite.any()
        assert slopes[finite] == pytest.approx(gradient[finite], rel=1e-10)
    for each in (plain, model):
        with pytest.raises(ulam.UlamError, match="weibull_lccdf"):
            each.log_density_gradient([0.1, 0, 0, -1.0])


FAILURES = """
data { int N; array[N] int failed; vector[N] load; vector<lower=0>[N] hours; }
parameters { real<lower=0> shape; real a; real b; }
model {
  for (n in 1 : N) {
    real eta = a + b * load[n];
    if (failed[n]) hours[n] ~ weibull(shape, exp(eta));
    else target += weibull_lccdf(hours[n] | shape, exp(eta));
  }
}
"""


@pytest.mark.parametrize("kinds", [5, 400])
def test_copies_are_of_what_the_parts_of_rows_read(kinds: int) -> None:
    """The condition that made parts was copied, and the table of logarithms twice."""
    rng = np.random.default_rng(9)
    row = rng.integers(0, kinds, 400) if kinds < 400 else np.arange(400)
    hours, load = rng.gamma(2, 1, kinds)[row], rng.normal(size=kinds)[row]
    data = {"N": 400, "failed": rng.integers(0, 2, 400), "load": load, "hours": hours}
    model, plain = (ulam.StanModel(FAILURES, data, opt_level=level) for level in (3, 0))
    for point in ([0.1, 0.2, -0.3], [-0.5, 1.0, 0.4]):
        np.testing.assert_allclose(answer(model, point), answer(plain, point), rtol=1e-12)
    (figures,) = (choice.figures for choice in model.layout_choices() if choice.layout == "unique rows")
    if kinds < 400:
        different = len({*zip(row.tolist(), data["failed"].tolist(), strict=True)})
        assert figures["different"] == different
    assert figures["bytes"] == 4 * 8 * figures["computed"]  # load, hours, and their logarithms, two tables
