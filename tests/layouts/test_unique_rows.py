"""Equal rows of data are computed once: the same log density and gradient, where it pays, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.passes.lowering_pipeline import lower
from ulam.passes.units import UNITS
from ulam.runtime.compiler import Compiler
from ulam.runtime.interpreter_settings import compiling

FORMS = """
data {
  int<lower=0> N; int<lower=0> J; int<lower=0> T; int<lower=1> K;
  array[N] int<lower=0, upper=9> y;
  vector[N] x;
  array[N] int<lower=1, upper=K> g;
  array[N] int<lower=0, upper=1> seen;
  array[N] real late;
  matrix[J, T] shocks;
  array[J, T] int<lower=0, upper=1> won;
}
parameters { real a; real b; vector[K] u; real<lower=0> s; }
model {
  u ~ normal(0, 1);
  for (n in 1:N) y[n] ~ poisson_log(a + b * x[n] + u[g[n]]);
  for (n in 1:N) {
    if (seen[n] == 1) target += logistic_lpdf(late[n] | a, s);
    else target += logistic_lccdf(2 | b, s);
  }
  for (j in 1:J) for (t in 1:T) won[j, t] ~ bernoulli_logit(a + b * shocks[j, t]);
}
"""


def data_of(n: int, kinds: int, seed: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    seen = rng.integers(0, 2, n)
    return {
        "N": n, "J": n, "T": 3, "K": 4, "y": rng.integers(0, kinds, n), "g": rng.integers(1, 5, n), "seen": seen,
        "x": rng.integers(0, kinds, n).astype(float), "late": rng.integers(0, kinds, n).astype(float),
        "shocks": rng.integers(0, kinds, (n, 3)).astype(float), "won": rng.integers(0, 2, (n, 3)),
    }  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "forms.stan"
    path.write_text(FORMS)
    return path


def assert_same(program: Path, data: dict[str, Any], points: np.ndarray, **options: Any) -> ulam.StanModel:
    """Level 3 agrees with level 0; the model of level 3."""
    model, plain = ulam.StanModel(program, data=data, **options), ulam.StanModel(program, data=data, opt_level=0)
    for point in points:
        (value, gradient), (expected, slopes) = model.log_density_gradient(point), plain.log_density_gradient(point)
        assert value == pytest.approx(expected, rel=1e-11, nan_ok=True)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-9, atol=1e-10 * (1 + data["N"]))
        assert model.log_density(point) == pytest.approx(expected, rel=1e-11, nan_ok=True)
    return model


def unique_rows(model: ulam.StanModel) -> list[Any]:
    """What became of the loops over rows."""
    return [choice for choice in model.layout_choices() if choice.layout == "unique rows"]


POINTS = np.random.default_rng(0).normal(size=(3, 7)) * 0.4


def test_equal_rows_are_computed_once(program: Path) -> None:
    model = assert_same(program, data_of(2000, 3), POINTS)
    choices = unique_rows(model)
    assert all(choice.taken for choice in choices)
    assert [choice.figures["rows"] for choice in choices] == [2000, 2000, 6000]
    assert [choice.figures["different"] for choice in choices] == [24, 4, 6], "y counts as 0 or not, and by its mean"
    (parts,) = [choice for choice in model.layout_choices() if choice.layout == "parts of rows"]
    others = 2000 - data_of(2000, 3)["seen"].sum()
    assert parts.taken and parts.figures == {"rows": 2000, "else": others, "parts": 2}


def test_rows_are_parted_by_a_branch_on_data(program: Path) -> None:
    data = data_of(500, 3)
    data["late"] = np.random.default_rng(1).normal(size=500)
    data["seen"] = np.arange(500) % 50 == 3
    model = assert_same(program, data, POINTS)
    assert [choice.taken for choice in model.layout_choices() if choice.layout == "parts of rows"] == [True]


def test_rows_that_differ_stay_as_they_are(program: Path) -> None:
    data = data_of(500, 3)
    rng = np.random.default_rng(1)
    data |= {"x": rng.normal(size=500), "late": rng.normal(size=500), "shocks": rng.normal(size=(500, 3))}
    data["seen"] = np.ones(500, int)  # the others are all equal, whatever `late` is
    model = assert_same(program, data, POINTS)
    choices = unique_rows(model)
    assert [choice.taken for choice in choices] == [False, False, False]
    assert "few" in choices[0].reason


@pytest.mark.parametrize("n", [0, 1, 9])
def test_few_rows(program: Path, n: int) -> None:
    assert_same(program, data_of(n, 2), POINTS)


def test_values_that_are_no_numbers_travel_as_before(program: Path) -> None:
    points = np.array([[1e306, 1e306, 0, 0, 0, 0, 0.0], [800, 0, 0, 0, 0, 0, 0.0], [0, 0, 0, 0, 0, 0, -800.0]])
    data = data_of(2000, 3)
    model, plain = ulam.StanModel(program, data=data), ulam.StanModel(program, data=data, opt_level=0)
    for point in points:
        results: list[object] = []
        for each in (model, plain):
            try:
                results.append(each.log_density(point))
            except ulam.Rejection as error:
                results.append(str(error))
        first, second = results
        assert first == second or (first != first and second != second) or first == pytest.approx(second, rel=1e-11)


def test_the_error_of_a_row_is_that_of_the_first_in_the_users_order(tmp_path: Path) -> None:
    path = tmp_path / "errors.stan"
    path.write_text(
        "data { int N; array[N] int y; vector[N] x; } parameters { real a; }\n"
        "model { for (n in 1:N) y[n] ~ poisson(x[n] + a); }\n"
    )
    data = {"N": 400, "y": [2] * 400, "x": [5.0, 1.0, 5.0, 2.0] * 100}
    errors = []
    for level in (0, 3):
        model = ulam.StanModel(path, data=data, opt_level=level)
        with pytest.raises(ulam.Rejection) as error:
            model.log_density_gradient([-1.5])
        errors.append(str(error.value))
    assert errors[0] == errors[1]
    assert "-0.5" in errors[1]


CHAIN = """
data {
  int<lower=0> N;
  array[N] int<lower=1, upper=4> kind;
  array[N] int<lower=0, upper=9> y;
  vector[N] x;
}
parameters { real a; real b; }
model {
  for (n in 1:N) {
    real eta = a + b * x[n];
    if (kind[n] == 1) y[n] ~ poisson_log(eta);
    else if (kind[n] == 2) target += poisson_log_lpmf(y[n] + 1 | eta);
    else if (kind[n] == 3) y[n] ~ binomial_logit(9, eta);
    else target += -log1p_exp(eta);
  }
}
"""


def test_data_that_several_arms_read_alone(tmp_path: Path) -> None:
    path = tmp_path / "chain.stan"
    path.write_text(CHAIN)
    rng = np.random.default_rng(7)
    n = 900
    x = rng.integers(0, 3, n).astype(float)
    data = {"N": n, "kind": rng.integers(1, 5, n), "y": rng.integers(0, 4, n), "x": x}
    for repeated in (True, False):
        data["x"] = x if repeated else rng.normal(size=n)
        model = assert_same(path, data, POINTS[:, :2])
        assert unique_rows(model)[0].taken == repeated
        (parts,) = [choice for choice in model.layout_choices() if choice.layout == "parts of rows"]
        assert parts.taken and parts.figures["parts"] == 4 and parts.figures["else"] == (data["kind"] == 4).sum()


@pytest.mark.parametrize("text", [FORMS, CHAIN])
def test_what_is_written_has_the_types_that_ops_want(text: str) -> None:
    with compiling():
        lower(Compiler(text).program, UNITS["gradient_propto"], 3).module.verify()


def test_arms_that_keep_values_for_their_derivatives(tmp_path: Path) -> None:
    path = tmp_path / "arms.stan"
    path.write_text(
        "data { int N; array[N] int code; vector[N] t; } parameters { real a; real<lower=0> s; }\n"
        "model { for (n in 1:N) {\n"
        "  if (code[n] == 1) t[n] ~ logistic(a, s);\n"
        "  else if (code[n] == 2) target += logistic_lccdf(t[n] | a, s);\n"
        "  else target += log_diff_exp(logistic_lcdf(t[n] + 1 | a, s), logistic_lcdf(t[n] | a, s)); } }\n"
    )
    rng = np.random.default_rng(4)
    data = {"N": 400, "code": rng.integers(1, 4, 400), "t": rng.normal(size=400)}
    model = assert_same(path, data, rng.normal(size=(2, 2)))
    assert [choice.taken for choice in model.layout_choices() if choice.layout == "parts of rows"] == [True]


def test_branches_that_are_alike_for_all_rows_may_stand_around_those_on_data(tmp_path: Path) -> None:
    """`ordered_logistic` asks first whether there is one category alone: its rows were not parted by category."""
    path = tmp_path / "ordered.stan"
    path.write_text(
        "data { int N; int C; array[N] int y; vector[N] x; } parameters { real b; real c; }\n"
        "model { vector[C - 1] cuts = cumulative_sum(rep_vector(exp(c), C - 1)); y ~ ordered_logistic(b * x, cuts); }\n"
    )
    rng = np.random.default_rng(4)
    data = {"N": 400, "C": 5, "y": rng.integers(1, 6, 400), "x": rng.normal(size=400)}
    for categories in (5, 1):
        data |= {"C": categories, "y": np.minimum(data["y"], categories)}
        model = assert_same(path, data, rng.normal(size=(2, 2)))
        (parts,) = [choice for choice in model.layout_choices() if choice.layout == "parts of rows"]
        assert parts.taken == (categories == 5)
        assert categories == 1 or parts.figures["parts"] == 3


NUMBERED = """
data { int N; int J; int T; array[J, T] int<lower=0, upper=1> y; array[J] real w; array[J, 3] int from; vector[50] z; }
parameters { real a; real b; }
model {
  for (j in 1:J) {
    int s = 0;
    for (t in 1:T) {
      target += erf(a * s + b * (t - 1 - s));
      if (y[j, t] == 1) target += erf(b * (t + 0.5) + w[j]);
      s += y[j, t];
    }
  }
  for (j in 1:J) target += erf(a * z[from[j, 2] + min(j, 2)] + b);
}
"""


def numbered(rows: int, kinds: int) -> dict[str, Any]:
    rng = np.random.default_rng(rows)
    own = rng.integers(0, kinds, rows)
    return {
        "J": rows, "T": 6, "N": 6 * rows, "y": (own[:, None] >> np.arange(6)) % 2, "w": own % 2 + 0.5,
        "from": rng.integers(1, 4, (rows, 3)), "z": rng.normal(size=50),
    }  # fmt: skip


@pytest.mark.parametrize("rows", [0, 1, 3, 100])
def test_what_rows_compute_of_their_numbers_is_a_column(tmp_path: Path, rows: int) -> None:
    """Numbers of what has been so far, times, and data at places that other data and the number of the row say."""
    path = tmp_path / "numbered.stan"
    path.write_text(NUMBERED)
    model = assert_same(path, numbered(rows, 4), POINTS[:, :2])
    choices = unique_rows(model)
    assert [choice.figures["rows"] for choice in choices] == [6 * rows, rows]
    assert [choice.taken for choice in choices] == [rows == 100] * 2


def test_the_number_of_a_row_alone_is_no_column() -> None:
    """Rows that differ by their number are never equal: they are not looked for."""
    text = "data { int N; vector[N] x; } parameters { real a; } model { for (n in 1:N) target += erf(a * n + x[n]); }"
    assert "group_heads" not in Compiler(text, "m.stan").llvm_text("gradient_propto")


WEIGHTED = """
data { int<lower=0> N; array[N] int<lower=0> y; vector[N] x; vector[N] w; vector[N] v; array[N] int<lower=0> cut; }
parameters { real a; real b; }
model {
  for (n in 1:N) target += w[n] * poisson_log_lpmf(y[n] | a + b * x[n]);
  for (n in 1:N) if (cut[n] > 0) target += v[n] * log_inv_logit(a * x[n]); else target += v[n] * log1m_inv_logit(b);
}
"""


def test_rows_that_differ_in_a_factor_alone_are_equal() -> None:
    """Weights are added up, whatever they are, those of one sign: what they multiply may be infinite."""
    rng = np.random.default_rng(12)
    n = 400
    data = {
        "N": n, "y": rng.integers(0, 3, n), "x": rng.integers(-1, 2, n).astype(float), "cut": rng.integers(0, 2, n),
        "w": rng.exponential(1, n) * rng.integers(-1, 2, n), "v": rng.exponential(1, n),
    }  # fmt: skip
    program, plain = ulam.StanProgram(WEIGHTED), ulam.StanProgram(WEIGHTED, opt_level=0)
    for weights, kinds in ((data["w"], 27), (np.abs(data["w"]), 18), (data["v"], 9), (data["v"] * 1e300, None)):
        given = data | {"w": weights}
        model, expected = program(given), plain(given)
        first, second = unique_rows(model)
        assert first.taken is (kinds is not None) and second.taken
        assert second.figures["computed"] == 4
        assert kinds is None or (first.figures["different"] <= kinds and first.figures["groups"] == 1)
        for point in ([0.3, -0.4], [800.0, 0.1], [np.inf, 1.0], [0.1, np.nan], [-800.0, 800.0]):
            found = []
            for each in (model, expected):
                try:
                    found.append(each.log_density_gradient(np.array(point)))
                except ulam.Rejection as rejection:
                    found.append((str(rejection), np.zeros(2)))
            (value, gradient), (other, slopes) = found
            if isinstance(other, str):
                assert value == other
                continue
            assert value == pytest.approx(other, rel=1e-11, nan_ok=True)
            np.testing.assert_allclose(gradient, slopes, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize(
    "row",
    [
        "w[n] * poisson_log_lpmf(y[n] | a + b * w[n])",
        "w[n] * poisson_log_lpmf(y[n] | a) + log_inv_logit(b * x[n])",
        "square(w[n]) * log_inv_logit(b * x[n])",
        "log_inv_logit(b * x[n]) + w[n]",
    ],
)
def test_what_is_no_factor_of_all_that_a_row_adds_is_compared(row: str) -> None:
    text = WEIGHTED.split("model")[0] + f"model {{ for (n in 1:N) target += {row}; }}"
    rng = np.random.default_rng(5)
    data = {
        "N": 300,
        "y": rng.integers(0, 2, 300),
        "x": rng.integers(0, 2, 300).astype(float),
        "w": rng.normal(size=300),
    }
    data |= {"v": data["w"], "cut": data["y"]}
    model, plain = ulam.StanModel(text, data), ulam.StanModel(text, data, opt_level=0)
    point = np.array([0.2, -0.3])
    assert model.log_density(point) == pytest.approx(plain.log_density(point), rel=1e-11)
    np.testing.assert_allclose(
        model.log_density_gradient(point)[1], plain.log_density_gradient(point)[1], rtol=1e-10, atol=1e-10
    )
    assert not any(choice.taken for choice in unique_rows(model)) or "log_inv_logit(b * x[n])" in row


CARRIED = {
    "a counter": "int kept = 0; for (j in 1:N) { kept += 2; target += normal_lpdf(y[j] | a * kept, 1); }",
    "a sum": "real kept = 0; for (j in 1:N) { kept += x[j]; target += normal_lpdf(y[j] | a * kept, 1); }",
    "the row before": "real kept = 0; for (j in 1:N) { target += normal_lpdf(y[j] | a * kept, 1); kept = x[j]; }",
    "of both rows": "real kept = 0; for (j in 1:N) { kept += x[i] * x[j]; target += normal_lpdf(y[i] | a * kept, 1); }",
    "nothing": "for (j in 1:N) target += normal_lpdf(y[i] | a * exp(x[j]), 1);",
    "a branch": "for (j in 1:N) if (x[i] > x[j]) target += -square(x[i] - x[j]) * exp(a);",
}
"""What goes from one iteration of an inner loop to the next."""


@pytest.mark.parametrize("inner", CARRIED)
def test_pairs_of_all_rows(inner: str) -> None:
    """Of loops over all pairs the inner one may carry something; nothing is made that is larger than the data."""
    code = "data { int N; vector[N] x; vector[N] y; } parameters { real a; } model { for (i in 1:N) { BODY } }"
    rng = np.random.default_rng(7)
    data = {"N": 150, "x": rng.integers(-3, 4, 150) / 4, "y": rng.integers(-3, 4, 150) / 4}
    model, plain = (ulam.StanModel(code.replace("BODY", CARRIED[inner]), data, opt_level=level) for level in (3, 0))
    for point in ([0.3], [-1.5]):
        value, gradient = plain.log_density_gradient(point)
        assert model.log_density_gradient(point)[0] == pytest.approx(value, rel=1e-11)
        assert model.log_density_gradient(point)[1] == pytest.approx(gradient, rel=1e-11)
    assert sum(choice.figures.get("bytes", 0) for choice in model.layout_choices()) <= 2 * 150 * 16


@pytest.mark.parametrize("level", [3, 4])
def test_branches_that_are_alike_for_all_pairs_of_a_row(level: int) -> None:
    """The condition stands in front of the inner loop, whose pairs it puts into parts."""
    code = (
        "data { int N; int K; array[N] int count; matrix[N, K] X; } parameters { real a; } model { for (n in 1:N) { "
        "real kept = 0; int times = 0; for (k in 1:K) { kept += X[n, k]; times += k; "
        "if (count[n] == 0) target += poisson_log_lpmf(count[n] | 0.1 * (a + kept / (1 + times))); } } }"
    )
    rng = np.random.default_rng(1)
    data = {"N": 300, "K": 3, "count": rng.poisson(1, 300), "X": rng.integers(-2, 3, (300, 3)) / 2}
    model, plain = (ulam.StanModel(code, data, opt_level=used) for used in (level, 0))
    for point in ([0.1], [-2.0]):
        (value, gradient), (found, slopes) = (each.log_density_gradient(point) for each in (plain, model))
        assert found == pytest.approx(value, rel=1e-11)
        assert slopes == pytest.approx(gradient, rel=1e-11)


def test_loops_of_reduce_sum_have_layouts() -> None:
    """What it gives is chosen by a branch on whether there are rows at all."""
    program = """
    functions {
      real part_lpmf(array[] int y, int first, int last, array[] int g, vector a, real b) {
        real sum_of_part = 0;
        for (n in first : last) sum_of_part += poisson_log_lupmf(y[n - first + 1] | a[g[n]] + b * (g[n] > 2));
        return sum_of_part;
      }
    }
    data { int N; array[N] int y; array[N] int<lower=1, upper=3> g; }
    parameters { vector[3] a; real b; }
    model { target += reduce_sum(part_lupmf, y, 10, g, a, b); }
    """
    rng = np.random.default_rng(3)
    for n in (0, 2000):
        data = {"N": n, "y": rng.poisson(1, n), "g": rng.integers(1, 4, n)}
        expected, found = (ulam.StanModel(program, data, opt_level=level) for level in (0, 3))
        point = rng.normal(size=4)
        value, gradient = expected.log_density_gradient(point)
        assert found.log_density(point) == pytest.approx(value, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(found.log_density_gradient(point)[1], gradient, rtol=1e-10, atol=1e-10)
        assert any(choice.taken and choice.layout == "unique rows" for choice in found.layout_choices()) == (n > 0)


BINOMIALS = {
    "direct": "n ~ binomial(N, inv_logit(a[g] + b * x));",
    "filled": "vector[R] p; for (r in 1:R) p[r] = inv_logit(a[g[r]] + b * x[r]); n ~ binomial(N, p);",
    "by_rows": "for (r in 1:R) n[r] ~ binomial(N[r], inv_logit(a[g[r]] + b * x[r]));",
}


@pytest.mark.parametrize("how", BINOMIALS)
def test_binomials_of_log_odds_have_no_branches(how: str) -> None:
    """Rows without successes or failures are not apart; their log odds may be infinite."""
    code = (
        "data { int R, K; array[R] int N, n, g; vector[R] x; } parameters { vector[K] a; real b; } "
        f"model {{ {BINOMIALS[how]} }}"
    )
    rng = np.random.default_rng(2)
    trials, g = rng.integers(0, 3, 900), rng.integers(1, 6, 900)
    successes = np.where(g == 1, 0, np.where(g == 2, trials, rng.binomial(trials, 0.5)))
    data = {"R": 900, "K": 5, "N": trials, "n": successes, "g": g, "x": rng.integers(0, 3, 900) / 2}
    model, plain = (ulam.StanModel(code, data, opt_level=level) for level in (3, 0))
    assert {choice.layout for choice in model.layout_choices() if choice.taken} == {"unique rows"}
    assert not any(choice.layout == "parts of rows" for choice in model.layout_choices())
    points = rng.normal(size=(4, 6))
    points[1, :2], points[2, :2], points[3, :] = (-np.inf, np.inf), (-800, 800), 0
    for point in points:
        (value, gradient), (found, slopes) = (each.log_density_gradient(point) for each in (plain, model))
        assert found == pytest.approx(value, rel=1e-12)
        assert slopes == pytest.approx(gradient, rel=1e-12, abs=1e-12)


ABOVE_ZERO = {
    "poisson": "y[n] ~ poisson(exp(a + b * x[n])) T[1, ];",
    "neg_binomial_2": "y[n] ~ neg_binomial_2(exp(a + b * x[n]), phi) T[1, ];",
    "hurdle": """if (y[n] == 1) target += log(p);
        else { target += log1m(p); y[n] ~ poisson(exp(a + b * x[n])) T[1, ]; }""",
}


@pytest.mark.parametrize("how", ABOVE_ZERO)
def test_counts_above_zero_need_no_incomplete_functions(how: str) -> None:
    """Level 3 evaluates logarithms and exponentials, near 0 and where all mass is above it."""
    code = (
        "data { int N; array[N] int y; vector[N] x; } parameters { real a, b; real<lower=0> phi; "
        f"real<lower=0, upper=1> p; }} model {{ for (n in 1:N) {{ {ABOVE_ZERO[how]} }} }}"
    )
    rng = np.random.default_rng(5)
    data = {"N": 600, "y": 1 + rng.poisson(1, 600), "x": rng.integers(0, 3, 600) / 2}
    model, plain = (ulam.StanModel(code, data, opt_level=level) for level in (3, 0))
    evaluate = model.llvm_ir("gradient_propto")
    assert "gamma_p" not in evaluate
    assert "inc_beta" not in evaluate
    assert any(choice.layout == "unique rows" and choice.taken for choice in model.layout_choices())
    for point in ([0.1, 0.2, 0.3, 0.1], [-20, 1, -3, 2], [5, 0.5, 5, 0], [2, -9, 1, 1]):
        (value, gradient), (found, slopes) = (each.log_density_gradient(np.array(point)) for each in (plain, model))
        assert found == pytest.approx(value, rel=1e-11)
        assert slopes == pytest.approx(gradient, rel=1e-9, abs=1e-9)
