"""`log-recursions` and `scaled-log-sums`: values and slopes of recursions through log_sum_exp, at the ends of the range
and beyond.
"""

from __future__ import annotations

import numpy as np
import pytest

import ulam
from ulam.passes.loops.log_recursions import LogRecursions
from ulam.passes.loops.scaled_log_sums import ScaledLogSums
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

HEAD = "data { int T; int K; matrix[T, K] e; matrix[K, K] w; } parameters { vector[K] a; real s; } "

FORMS = {
    "terms in an array": """model {
      array[T, K] real g; array[K] real acc;
      for (k in 1:K) g[1, k] = e[1, k] + a[k];
      for (t in 2:T) for (k in 1:K) {
        for (j in 1:K) acc[j] = g[t - 1, j] + w[j, k] * s + a[j] + e[t, k] * s;
        g[t, k] = log_sum_exp(acc);
      }
      target += log_sum_exp(g[T]);
    }""",
    "vectors": """model {
      array[T] vector[K] f; array[K] vector[K] into;
      for (k in 1:K) into[k] = w[ , k] * s;
      f[1] = e[1]' + a;
      for (t in 2:T) for (k in 1:K) f[t, k] = e[t, k] * s + log_sum_exp(a + f[t - 1] + into[k]);
      target += log_sum_exp(f[T]);
    }""",
    "transformed parameters in a function": """model {
      target += forward(e, w * s, a, s);
    }""",
    "a row that is handed on": """model {
      vector[K] f = e[1]' + a;
      for (t in 2:T) {
        vector[K] next;
        for (k in 1:K) next[k] = log_sum_exp(f + w[ , k] * s + a) + e[t, k] * s;
        f = next;
      }
      target += log_sum_exp(f);
    }""",
    "a row that is made in two steps, with what is taken away": """model {
      vector[K] f = e[1]' + a;
      for (t in 2:T) {
        vector[K] h;
        for (k in 1:K) h[k] = log_sum_exp(f - w[ , k] * s);
        f = h - s * e[t]' + square(a) - a;
      }
      target += log_sum_exp(f);
    }""",
    "the last time first": """model {
      array[T] vector[K] b; array[K] real acc;
      for (k in 1:K) b[T, k] = a[k];
      for (i in 1:T - 1) {
        int t = T - i;
        for (j in 1:K) {
          for (k in 1:K) acc[k] = w[j, k] * s + e[t + 1, k] + b[t + 1, k];
          b[t, j] = log_sum_exp(acc) + a[j] * s;
        }
      }
      target += log_sum_exp(b[1] + e[1]');
    }""",
    "moves of their own each time": """model {
      matrix[T, K] g; array[K] real acc;
      for (k in 1:K) g[1, k] = e[1, k] + a[k];
      for (t in 2:T) for (k in 1:K) {
        for (j in 1:K) acc[j] = g[t - 1, j] + w[j, k] * s * t + e[t - 1, j];
        g[t, k] = log_sum_exp(acc);
      }
      target += log_sum_exp(g[T]) + g[1, 1];
    }""",
    "a choice the first time": """model {
      matrix[K, T] g;
      for (t in 1:T) for (k in 1:K) {
        real here = e[t, k] * s;
        g[k, t] = t == 1 ? here + a[k] : here + log_sum_exp(g[ , t - 1] + w[ , k] * s);
      }
      target += log_sum_exp(g[ , T]);
    }""",
    "two rows by turns": """model {
      vector[K] f; vector[K] next; vector[K] terms;
      for (k in 1:K) f[k] = e[1, k] + a[k];
      for (t in 2:T) {
        for (k in 1:K) {
          for (j in 1:K) terms[j] = f[j] + w[j, k] * s;
          next[k] = log_sum_exp(terms) + e[t, k] * s;
        }
        f = next;
      }
      target += log_sum_exp(f);
    }""",
    "a row that lacks observations": """model {
      vector[K] f = e[1]' + a; vector[K] next;
      for (t in 2:T) {
        for (k in 1:K) {
          next[k] = log_sum_exp(f + w[ , k] * s);
          if (e[t, 1] < 0.5) next[k] += e[t, k] * s - a[k];
        }
        f = next;
      }
      target += log_sum_exp(f);
    }""",
    "elements of which some are left as they are": """model {
      matrix[K, T] g;
      for (t in 1:T) for (k in 1:K) {
        real here = t == 1 ? a[k] : log_sum_exp(g[ , t - 1] + w[ , k] * s);
        if (e[t, k] > 0) here = e[t, k] * s + here;
        g[k, t] = here;
      }
      target += log_sum_exp(g[ , T]);
    }""",
    "a choice the first time, of rows by turns": """model {
      vector[K] f; vector[K] next;
      for (t in 1:T) {
        for (k in 1:K) {
          if (t == 1) next[k] = a[k]; else next[k] = log_sum_exp(to_vector(w[ , k]) * s + f);
          if (e[t, k] > -0.5) next[k] = next[k] + e[t, k] * s;
        }
        f = next;
      }
      target += log_sum_exp(f);
    }""",
    "rows that begin anew": """model {
      vector[K] f; vector[K] next;
      for (t in 1:T) {
        if (t == 1 || e[t, 1] > 0.8) f = a * s;
        for (k in 1:K) {
          next[k] = log_sum_exp(f + w[ , k] * s);
          if (e[t, K] > -0.5) next[k] += e[t, k] * s;
        }
        f = next;
        if (t == T || e[t + 1, 1] > 0.8) target += log_sum_exp(f);
      }
    }""",
    "a chain of states": """model {
      matrix[T, K] g;
      for (k in 1:K) g[1, k] = e[1, k] + a[k];
      for (t in 2:T) {
        g[t, 1] = log_sum_exp(g[t - 1, 1] + a[1], g[t - 1, K] + w[1, 1]) + e[t, 1] * s;
        for (k in 2:K) g[t, k] = log_sum_exp(g[t - 1, k] + a[k], g[t - 1, k - 1] + w[k - 1, k] * s) + e[t, k] * s;
      }
      target += log_sum_exp(g[T]);
    }""",
}
DONE_BY = {"a chain of states": ScaledLogSums.name, "rows that begin anew": ScaledLogSums.name}
FUNCTION = """functions {
  real forward(matrix e, matrix w, vector a, real s) {
    int T = rows(e); int K = cols(e);
    matrix[K, T] g; vector[K] acc;
    g[ , 1] = e[1]' + a;
    for (t in 2:T) for (k in 1:K) {
      real here = e[t, k] * s;
      for (j in 1:K) acc[j] = w[j, k] + g[j, t - 1];
      g[k, t] = here + log_sum_exp(acc + a);
    }
    return log_sum_exp(g[ , T]);
  }
} """

REVERSAL = np.array([[0, 0], [0, -800], [0, -800], [-5000, 0], [0, 0]], dtype=float)
"""A state that is as good as impossible becomes the only one: its weight may not be lost."""
INFINITE = np.array([[0, 0], [np.inf, 0], [0, 0], [0, 0]])
NOT_A_NUMBER = np.array([[0, 0], [np.nan, 0], [0, 0], [0, 0]])
APART = np.array([[0, -np.inf], [-np.inf, 0]])


def normal(*sizes: int, scale: float = 1.0) -> np.ndarray:
    """Numbers of both signs."""
    return np.random.default_rng(3).normal(size=sizes) * scale


CASES = {
    "one state": (normal(6, 1), normal(1, 1)),
    "one time": (normal(1, 3), normal(3, 3)),
    "no log of any size": (normal(7, 3), normal(3, 3)),
    "five states": (normal(4, 5), normal(5, 5)),
    "densities of 1e+-300": (normal(6, 3, scale=690), normal(3, 3)),
    "transitions of 1e+-300": (normal(6, 3), normal(3, 3, scale=690)),
    "densities beyond doubles": (normal(6, 3, scale=1e9), normal(3, 3)),
    "logarithms without a fraction": (normal(6, 3, scale=1e18), normal(3, 3)),
    "logarithms at the end of doubles": (normal(6, 3, scale=1e300), normal(3, 3)),
    "reversal": (REVERSAL, np.full((2, 2), -1.0)),
    "reversal of states apart": (REVERSAL, APART),
    "infinite": (INFINITE, np.zeros((2, 2))),
    "not a number": (NOT_A_NUMBER, np.zeros((2, 2))),
    "nothing possible": (np.full((4, 2), -np.inf), np.zeros((2, 2))),
}


def program(form: str) -> str:
    """The text of a form."""
    return (FUNCTION if "function" in form else "") + HEAD + FORMS[form]


@pytest.mark.parametrize("form", FORMS)
def test_is_done(form: str):
    name = DONE_BY.get(form, LogRecursions.name)
    for level, expected in ((2, False), (3, True)):
        with collect_remarks() as remarks:
            Compiler(program(form), "model.stan", CompileOptions(level)).llvm_text("gradient_propto")
        assert any(remark.pass_name == name and remark.done for remark in remarks) == expected


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_is_as_written(form: str, case: str):
    e, w = CASES[case]
    data = {"T": e.shape[0], "K": e.shape[1], "e": e, "w": w}
    point = np.append(np.linspace(-0.3, 0.4, e.shape[1]), 1.05)
    written, done = (
        ulam.StanModel(program(form), data=data, opt_level=level).log_density_gradient(point) for level in (0, 3)
    )
    assert done[0] == pytest.approx(written[0], rel=1e-10, nan_ok=True)
    scale = max(1.0, np.max(np.abs(written[1]), initial=0.0, where=np.isfinite(written[1])))
    np.testing.assert_allclose(done[1], written[1], rtol=1e-10, atol=1e-10 * scale)


def test_state_that_nothing_leads_to():
    """Its log_sum_exp has no slope, 0 / 0; all others are what they are without it."""
    e, w = np.zeros((4, 2)), np.array([[0, -np.inf], [0, -np.inf]])
    data = {"T": 4, "K": 2, "e": e, "w": w}
    fixed = program("terms in an array").replace("w[j, k] * s", "w[j, k]")
    points = np.array([0.3, -0.2, 1.0]), np.array([0.3 + 1e-6, -0.2, 1.0]), np.array([0.3 - 1e-6, -0.2, 1.0])
    model = ulam.StanModel(fixed, data=data)
    value, slopes = model.log_density_gradient(points[0])
    assert value == pytest.approx(ulam.StanModel(fixed, data=data, opt_level=0).log_density(points[0]), rel=1e-13)
    high, low = model.log_density(points[1]), model.log_density(points[2])
    assert slopes[0] == pytest.approx((high - low) / 2e-6, rel=1e-7)


def test_second_derivatives():
    data = {"T": 5, "K": 3, "e": normal(5, 3), "w": normal(3, 3)}
    point = np.array([0.1, -0.2, 0.3, 0.9])
    models = [ulam.StanModel(program("terms in an array"), data=data, opt_level=level) for level in (0, 3)]
    written, done = (model.log_density_hessian(point)[2] for model in models)
    np.testing.assert_allclose(done, written, rtol=1e-9, atol=1e-10)
