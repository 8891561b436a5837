"""Lags of an autoregression are columns of reduced rows, however the program reads them."""

from __future__ import annotations

import numpy as np
import pytest

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

LAGS = {
    "one by one": "{ real m = a; for (l in 1:P) m += phi[l] * y[t - l]; y[t] ~ normal(m, s); }",
    "reversed slice": "y[t] ~ normal(a + dot_product(phi, reverse(y[(t - P):(t - 1)])), s);",
    "reversed segment": "y[t] ~ normal(a + dot_product(reverse(segment(y, t - P, P)), phi), s);",
    "reversed row": "y[t] ~ normal(a + reverse(z[(t - P):(t - 1)]) * phi, s);",
    "reversed array": "y[t] ~ normal(a + dot_product(to_vector(reverse(x[(t - P):(t - 1)])), phi), s);",
    "reversed coefficients": "y[t] ~ normal(a + z[(t - P):(t - 1)] * reverse(phi), s);",
    "backwards": "{ int b = N + P + 1 - t; real m = a; for (l in 1:P) m += phi[l] * y[b - l]; y[b] ~ normal(m, s); }",
}
PROGRAM = """
data { int N; int P; vector[N] y; }
transformed data { row_vector[N] z = y'; array[N] real x = to_array_1d(y); }
parameters { real a; vector[P] phi; real<lower=0> s; }
model { for (t in (P + 1):N) %s }
"""


def _models(level: int, names: list[str]) -> list[ulam.StanModel]:
    data = {"N": 300, "P": 3, "y": np.random.default_rng(4).normal(1, 1, 300)}
    return [ulam.StanModel(PROGRAM % LAGS[name], data, opt_level=level) for name in names]


def test_all_forms_have_reduced_rows() -> None:
    (expected,), found = _models(0, ["one by one"]), _models(3, list(LAGS))
    point = np.random.default_rng(1).normal(0, 0.3, expected.param_unc_num())
    value, slopes = expected.log_density_gradient(point)
    for name, model in zip(LAGS, found, strict=True):
        other, others = model.log_density_gradient(point)
        np.testing.assert_allclose([other, *others], [value, *slopes], rtol=1e-10, err_msg=name)
        assert any(choice.taken and choice.layout == "reduced rows" for choice in model.layout_choices()), name


def test_slices_that_are_not_there_are_told_as_before() -> None:
    """`y[t - P]` before the first element: the error is that of level 0."""
    texts: set[str] = set()
    for level in (0, 3):
        program = PROGRAM.replace("(P + 1):N", "P:N") % LAGS["reversed slice"]
        model = ulam.StanModel(program, {"N": 10, "P": 3, "y": np.ones(10)}, opt_level=level)
        with pytest.raises(ulam.UlamError) as caught:
            model.log_density(np.zeros(5))
        texts.add(str(caught.value))
    assert len(texts) == 1, texts
