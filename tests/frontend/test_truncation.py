"""Which distribution function a truncated `~` calls: of the program's own, one whose arguments fit after conversion."""

from __future__ import annotations

import numpy as np
import pytest

import ulam

FUNCTIONS = """
functions {
  real of_vector_lpdf(real y, vector m) { return normal_lpdf(y | m, 1); }
  real of_vector_lcdf(real y, vector m) { return normal_lcdf(y | m, 1); }
  real of_vector_lccdf(real y, vector m) { return normal_lccdf(y | m, 1); }
  real of_int_lpdf(real y, real m) { return normal_lpdf(y | m, 1); }
  real of_int_lcdf(real y, int m) { return normal_lcdf(y | m, 1); }
  real of_int_lccdf(real y, int m) { return normal_lccdf(y | m, 1); }
  real of_real_lpmf(int y, real m) { return poisson_lpmf(y | m); }
  real of_real_lcdf(real y, real m) { return exponential_lcdf(y | m); }
  real of_real_lccdf(real y, real m) { return exponential_lccdf(y | m); }
  real of_both_lpdf(real y, vector m) { return normal_lpdf(y | m, 1); }
  real of_both_lcdf(real y, vector m) { return normal_lcdf(y | m, 1); }
  real of_both_lcdf(real y, real m) { return normal_lcdf(y | m, 1); }
  real of_both_lccdf(real y, vector m) { return normal_lccdf(y | m, 1); }
}
"""

CASES = [
    (
        "0.5 ~ of_vector(v) T[0, 1];",
        "normal_lpdf(0.5 | v, 1) - log_diff_exp(normal_lcdf(1 | v, 1), normal_lcdf(0 | v, 1))",
    ),
    ("0.5 ~ of_vector(v) T[0, ];", "normal_lpdf(0.5 | v, 1) - normal_lccdf(0 | v, 1)"),
    (
        "0.5 ~ of_int(2) T[0, 1];",
        "normal_lpdf(0.5 | 2, 1) - log_diff_exp(normal_lcdf(1 | 2, 1), normal_lcdf(0 | 2, 1))",
    ),
    ("2 ~ of_real(4) T[ , 3];", "poisson_lpmf(2 | 4) - exponential_lcdf(3 | 4)"),
    (
        "2 ~ of_real(p) T[1, 3];",
        "poisson_lpmf(2 | p) - log_diff_exp(exponential_lcdf(3 | p), exponential_lcdf(1 - 1 | p))",
    ),
    (
        "0.5 ~ of_both(v) T[0, 1];",
        "normal_lpdf(0.5 | v, 1) - log_diff_exp(normal_lcdf(1 | v[1], 1), normal_lcdf(0 | v[1], 1))"
        " - log_diff_exp(normal_lcdf(1 | v[2], 1), normal_lcdf(0 | v[2], 1))",
    ),
    (
        "v ~ of_each(v) T[-3, 3];",
        "sum(v) - log_diff_exp(sum(v) + 3, sum(v) - 3)",
    ),
]

OF_EACH = """
functions {
  real of_each_lpdf(vector y, vector m) { return sum(y); }
  real of_each_lcdf(real y, vector m) { return y + sum(m); }
  real of_each_lccdf(real y, vector m) { return 1; }
}
"""


@pytest.fixture(scope="module")
def cases() -> ulam.StanModel:
    """All statements in one program: `which` says which statement, `written` whether it is the one written out."""
    branches = "\n".join(
        f"if (which == {n}) {{ if (written == 1) {{ target += {written}; }} else {{ {statement} }} }}"
        for n, (statement, written) in enumerate(CASES)
    )
    functions = FUNCTIONS.rstrip().removesuffix("}") + OF_EACH.split("{", 1)[1]
    text = f"{functions} parameters {{ real which; real written; real p; vector[2] v; }} model {{ {branches} }}"
    return ulam.StanModel(text, opt_level=0)


@pytest.mark.parametrize("number", range(len(CASES)), ids=[statement for statement, _ in CASES])
def test_mass_of_the_interval(cases: ulam.StanModel, number: int) -> None:
    found, wanted = (
        cases.log_density_gradient(np.array([number, written, 0.7, 0.3, -0.4]), propto=False) for written in (0.0, 1.0)
    )
    assert np.isfinite(wanted[0])
    assert found[0] == pytest.approx(wanted[0], rel=1e-13)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-12)
