"""Rows side by side: values, gradients and errors are those of the loops as they are written, for all sizes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ulam
from ulam.tools import stan_opt

pytestmark = pytest.mark.usefixtures("quick_code")

# Parameters by columns; sums over columns that go on into a function of the row; totals of all rows; data by rows.
COLUMNS = """
data {
  int<lower=0> M;
  int<lower=0> T;
  array[M, T] int<lower=0, upper=1> y;
  vector<lower=0, upper=1>[M] seen;
}
parameters {
  matrix[M, T] z;
  vector[T] b;
  real<lower=0> s;
}
model {
  for (i in 1 : M) {
    real a = bernoulli_logit_lpmf(y[i] | z[i] * s + b');
    target += seen[i] * a + (1 - seen[i]) * log_sum_exp(a, -s);
  }
}
"""

# Rows one behind the other; a state that each column takes from the last; additions to groups of rows.
STATES = """
data {
  int<lower=0> M;
  int<lower=0> T;
  int<lower=1> G;
  array[M] int<lower=1, upper=G> group;
  array[M] vector[T] x;
}
parameters {
  array[M] vector[T] z;
  vector[G] g;
  real<lower=0> s;
}
model {
  for (i in 1 : M) {
    real state = g[group[i]];
    for (t in 1 : T) {
      state = 0.5 * state + log1p_exp(x[i, t] * z[i, t]);
      target += -square(state - s);
    }
  }
}
"""
# Branches with loops in both arms, one of them in a branch of its own, that data and parameters decide about.
ARMS = """
data {
  int<lower=0> M;
  int<lower=0> T;
  array[M, T] int<lower=0, upper=1> y;
  vector<lower=0, upper=1>[M] seen;
}
parameters {
  matrix[M, T] z;
  vector[T] b;
  real<lower=0> s;
}
model {
  for (i in 1 : M) {
    if (seen[i] > 0.3) {
      target += bernoulli_logit_lpmf(y[i] | z[i] * s + b');
    } else {
      real a = bernoulli_logit_lpmf(y[i] | z[i]);
      target += log_sum_exp(a, -s);
      if (a < s) {
        for (j in 1 : T) {
          target += -exp(b[j] * a);
        }
      }
    }
  }
}
"""
# Straight code: what is left of short inner loops is memory of the row, of which data choose an element.
CHOICES = """
data {
  int<lower=0> M;
  int<lower=0> T;
  array[M] int<lower=1, upper=3> y;
  array[M] int<lower=1, upper=5> group;
}
parameters {
  vector[5] a;
  vector[2] step;
}
model {
  a ~ normal(T, 1);
  for (i in 1 : M) {
    vector[3] steps;
    steps[1] = 0;
    steps[2] = a[group[i]] - step[1];
    steps[3] = exp(a[group[i]]) - step[2];
    vector[3] score = cumulative_sum(steps);
    target += score[y[i]] - log_sum_exp(score);
  }
}
"""
# What loops read changes between them; a tiny sum whose every digit counts; functions of columns in two loops.
TWICE = """
data {
  int<lower=0> M;
  int<lower=0> T;
}
parameters {
  matrix[M, T] z;
  real<lower=0> s;
}
model {
  for (i in 1 : M) {
    vector[T] v = z[i]';
    real a = 0;
    real rare = 0;
    real b = 0;
    for (j in 1 : T) {
      a += -log1p_exp(v[j]);
      rare += -log1p_exp(v[j] - 45);
    }
    for (j in 1 : T) {
      v[j] = s * v[j];
    }
    for (j in 1 : T) {
      b += inv_logit(v[j]) + inv_logit(-z[i, j]);
    }
    target += log_sum_exp(a, -s) + b * a;
    if (T > 0) {
      target += log1m_exp(rare);
    }
  }
}
"""
# Rows of different lengths: memory as long as the row, states, sums, and additions to what rows have in common.
UNEVEN = """
data {
  int<lower=0> M;
  int<lower=0> T;
  array[M] int<lower=0, upper=T> m;
  array[M] int<lower=1> first;
  array[M] int<lower=1> y;
}
parameters {
  vector[T + 9] beta;
  vector[M] theta;
}
model {
  for (i in 1 : M) {
    vector[m[i]] own = segment(beta, first[i], m[i]);
    vector[m[i] + 1] p = softmax(cumulative_sum(append_row(rep_vector(0.1, 1), theta[i] - own)));
    real state = theta[i];
    real total = 0;
    for (j in 1 : m[i]) {
      state = 0.5 * state + own[j] * p[j];
      total += log1p_exp(beta[first[i] + m[i] - j] * state);
    }
    target += log(p[y[i]]) - total;
  }
}
"""
# Sizes by an index of the row, of which rows may be equal: a loop over groups of them is around that over rows.
GRADED = """
data {
  int<lower=0> M;
  int<lower=0> T;
  array[M] int<lower=1, upper=9> item;
  array[M] int<lower=1, upper=30> person;
  array[M] int<lower=1> y;
  array[9] int<lower=0, upper=T> m;
  array[9] int<lower=1> first;
}
parameters {
  vector[T + 9] beta;
  vector[30] theta;
  vector[9] alpha;
}
model {
  for (i in 1 : M) {
    int k = m[item[i]];
    vector[k] steps = theta[person[i]] * alpha[item[i]] - segment(beta, first[item[i]], k);
    target += categorical_lpmf(y[i] | softmax(cumulative_sum(append_row(rep_vector(0.0, 1), steps))));
  }
}
"""
# Sums of logarithms that need an absolute precision only: rows that are seen, and rows that need not be there.
UNSEEN = COLUMNS.replace(
    "target += seen[i] * a + (1 - seen[i]) * log_sum_exp(a, -s);",
    "if (seen[i] > 0.5) { target += a - s; } else { target += log_sum_exp(a, -s); }",
)
# The largest of a row's ints beside them.
LARGEST = UNSEEN.replace("seen[i] > 0.5", "T > 0 && max(y[i]) == 1")
ROWS, WIDTHS = (0, 7, 8, 64, 130), (0, 1, 5, 17)


def _columns_data(rows: int, width: int) -> dict[str, object]:
    rng = np.random.default_rng(rows * 100 + width)
    return {
        "M": rows,
        "T": width,
        "y": rng.integers(0, 2, (rows, width)).tolist(),
        "seen": rng.uniform(size=rows).tolist(),
    }


def _states_data(rows: int, width: int) -> dict[str, object]:
    rng = np.random.default_rng(rows * 100 + width)
    group = rng.integers(1, 4, rows).tolist()
    return {"M": rows, "T": width, "G": 3, "group": group, "x": rng.normal(size=(rows, width)).tolist()}


def _choices_data(rows: int, width: int) -> dict[str, object]:
    rng = np.random.default_rng(rows * 100 + width)
    y, group = (rng.integers(1, most + 1, rows).tolist() for most in (3, 5))
    return {"M": rows, "T": width, "y": y, "group": group}


def _sizes(rows: int, width: int) -> dict[str, object]:
    return {"M": rows, "T": width}


def _uneven_data(rows: int, width: int, least: int = 1) -> dict[str, object]:
    rng = np.random.default_rng(rows * 100 + width)
    lengths = rng.integers(min(least, width), width + 1, rows)
    return {
        "M": rows,
        "T": width,
        "m": lengths.tolist(),
        "first": rng.integers(1, 10, rows).tolist(),
        "y": (rng.integers(0, lengths + 1) + 1).tolist(),
    }


def _graded_data(rows: int, width: int) -> dict[str, object]:
    """Of even widths most rows are equal to others."""
    rng = np.random.default_rng(rows * 100 + width)
    m = rng.integers(min(1, width), width + 1, 9)
    different = max(1, rows // 8) if width % 2 == 0 else max(1, rows)
    item, person = rng.integers(1, 10, different), rng.integers(1, 31, different)
    y = rng.integers(0, m[item - 1] + 1) + 1
    own = np.arange(rows) % different
    return {
        "M": rows,
        "T": width,
        "item": item[own],
        "person": person[own],
        "y": y[own],
        "m": m,
        "first": rng.integers(1, 10, 9),
    }


PROGRAMS = {
    "graded": (GRADED, _graded_data),
    "uneven": (UNEVEN, _uneven_data),
    "unseen": (UNSEEN, _columns_data),
    "largest": (LARGEST, _columns_data),
    "twice": (TWICE, _sizes),
    "columns": (COLUMNS, _columns_data),
    "arms": (ARMS, _columns_data),
    "states": (STATES, _states_data),
    "choices": (CHOICES, _choices_data),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_size_gives_what_level_1_gives(name: str) -> None:
    program, data_of = PROGRAMS[name]
    for rows, width in itertools.product(ROWS, WIDTHS):
        data = data_of(rows, width)
        plain, mined = (ulam.StanModel(program, data, opt_level=level) for level in (1, 3))
        point = np.random.default_rng(width).normal(size=plain.param_unc_num())
        expected, expected_gradient = plain.log_density_gradient(point)
        value, gradient = mined.log_density_gradient(point)
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-12), (rows, width)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-11, atol=1e-12, err_msg=f"{rows} x {width}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_known_sizes_give_what_level_1_gives(name: str) -> None:
    """The stride of the rows is a number then."""
    program, data_of = PROGRAMS[name]
    plain, mined = (ulam.StanModel(program, data_of(40, 7), opt_level=level) for level in (1, 4))
    point = np.random.default_rng(1).normal(size=plain.param_unc_num())
    for found, expected in zip(mined.log_density_gradient(point), plain.log_density_gradient(point), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_run_side_by_side(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So that the other tests test something."""
    file = tmp_path / "model.stan"
    file.write_text(PROGRAMS[name][0])
    assert stan_opt.main([str(file), "-O3", "--unit", "gradient_propto", "--explain=json"]) == 0
    remarks = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert any(remark["pass"] == "strip-mine" and remark["done"] for remark in remarks)


def test_rows_without_iterations_among_others() -> None:
    plain, mined = (ulam.StanModel(UNEVEN, _uneven_data(40, 6, least=0), opt_level=level) for level in (1, 3))
    point = np.random.default_rng(1).normal(size=plain.param_unc_num())
    for found, expected in zip(mined.log_density_gradient(point), plain.log_density_gradient(point), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def test_rows_in_groups_are_as_long_as_the_longest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether rows are equal or not: what their sizes are is found ahead of the loop over groups."""
    for width in (4, 5):
        model = ulam.StanModel(GRADED, _graded_data(300, width))
        assert [choice.taken for choice in model.layout_choices() if choice.layout == "unique rows"] == [width == 4]
    file = tmp_path / "model.stan"
    file.write_text(GRADED)
    assert stan_opt.main([str(file), "-O3", "--unit", "gradient_propto", "--explain=json"]) == 0
    remarks = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert any("as long as the longest" in remark["message"] for remark in remarks if remark["done"])


def test_products_of_more_factors_than_a_real_can_hold() -> None:
    data = _columns_data(9, 1100)
    plain, mined = (ulam.StanModel(UNSEEN, data, opt_level=level) for level in (1, 3))
    point = np.zeros(plain.param_unc_num())  # every factor is 2
    for found, expected in zip(mined.log_density_gradient(point), plain.log_density_gradient(point), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (UNSEEN, {"inv_logit is kept for a later loop", "sums of logarithms are logarithms of products"}),
        # `rare` is read with relative precision, `a` too (`b * a`)
        (TWICE, {"inv_logit is kept for a later loop"}),
    ],
)
def test_what_inner_loops_need_not_do(
    program: str, expected: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.stan"
    file.write_text(program)
    assert stan_opt.main([str(file), "-O3", "--unit", "gradient_propto", "--explain=json"]) == 0
    remarks = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = {remark["message"] for remark in remarks if remark["pass"] == "strip-mine" and remark["done"]}
    assert {message for message in found if "run side by side" not in message} == expected


@pytest.mark.parametrize(
    ("program", "data_of"),
    [
        (COLUMNS, _columns_data),
        (UNSEEN, _columns_data),
        (TWICE, _sizes),
        (UNEVEN, _uneven_data),
        (ARMS, _columns_data),
        (CHOICES, _choices_data),
    ],
)
@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan, 1e300, -1e300, 0.0, -0.0])
def test_values_that_are_no_numbers_stay_in_their_row(
    program: str, data_of: Callable[[int, int], dict[str, object]], special: float
) -> None:
    plain, mined = (ulam.StanModel(program, data_of(65, 5), opt_level=level) for level in (1, 3))
    point = np.random.default_rng(3).normal(size=plain.param_unc_num())
    point[point.size // 2 if program == CHOICES else 7] = special  # of a few rows only
    outcomes = [_outcome(model, point) for model in (plain, mined)]
    assert outcomes[0][0] == outcomes[1][0]
    np.testing.assert_allclose(outcomes[1][1], outcomes[0][1], rtol=1e-11, atol=1e-12)


def _outcome(model: ulam.StanModel, point: np.ndarray) -> tuple[str, np.ndarray]:
    """The message of an error; the log density and its gradient."""
    try:
        value, gradient = model.log_density_gradient(point)
    except ulam.Rejection as error:
        return str(error), np.zeros(0)
    return "", np.array([value, *gradient])
