"""`inline-kernels`: kernels in straight code, in loops and outside, of matrices that they take and that they refuse."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import ulam
from ulam.passes.loops.inline_kernels import InlineKernels
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

pytestmark = pytest.mark.usefixtures("quick_code")

HEAD = """data {{ int N; array[N] vector[{n}] y; real e; int which; }}
parameters {{ vector[{n}] mu; vector<lower=0>[{n}] tau; real r; matrix[{n}, 2] B; }}
model {{
  matrix[{n}, {n}] S = 0.3 * mu * mu' + diag_matrix(tau);
  if (e != 0) {{ S[{n}, 1] = e; S[1, {n}] = r * e; }}
  mu ~ normal(0, 1);
"""

FORMS = {
    "densities of rows": "y ~ multi_normal(mu, S);",
    "densities by the factor": "y ~ multi_normal_cholesky(mu, cholesky_decompose(S));",
    "densities in a loop": "for (k in 1 : N) y[k] ~ multi_normal(r * mu, add_diag(S, square(y[k, 1])));",
    "a factor": "target += sum(cholesky_decompose(S) * B);",
    "systems": "target += sum(square(mdivide_left_spd(S, B))) + sum(mdivide_right_spd(B', S) * mu);",
    "triangular systems": "matrix[{n}, {n}] L = cholesky_decompose(S); "
    "target += sum(mdivide_left_tri_low(L, B)) + sum(mdivide_right_tri_low(B', L) * tau);",
    "determinant": "target += log_determinant_spd(S);",
    "products": "target += sum(square(tcrossprod(B))) + sum(crossprod(B) * [1, r]') + quad_form(S, mu);",
    "a process of rows": "for (k in 1 : N) target += log_determinant_spd(add_diag(S, square(y[k, 1]))) "
    "- sum(square(mdivide_left_spd(S, y[k])));",
}
N = 3


def program(n: int) -> str:
    """All forms, for n columns; data choose."""
    forms = (f"if (which == {k}) {{ {form.replace('{n}', str(n))} }}\n" for k, form in enumerate(FORMS.values()))
    return HEAD.format(n=n) + "".join(forms) + "}"


def kernels(text: str, level: int) -> list[str]:
    """Kernels of the gradient, and how many are told to be straight code."""
    with collect_remarks() as remarks:
        unit = Compiler(text, "model.stan", CompileOptions(level)).llvm_text("gradient_propto")
    calls = [line.partition("@ulam_")[2].partition("(")[0] for line in unit.splitlines() if " call " in line]
    assert any(remark.pass_name == InlineKernels.name and remark.done for remark in remarks) == (level > 2)
    return [call.removesuffix("_fast") for call in calls if call.endswith("_fast") or level < 3]


def test_there_are_no_calls() -> None:
    assert kernels(program(3), 3) == []
    assert "cholesky_decompose" in kernels(program(3), 2)


@functools.cache
def models(n: int, which: int, e: float = 0) -> list[ulam.StanModel]:
    """At levels 0 and 3."""
    y = np.random.default_rng(n).normal(size=(N, n))
    data = {"N": N, "y": y.tolist(), "e": e, "which": which}
    return [ulam.StanModel(program(n), data, opt_level=level) for level in (0, 3)]


@pytest.mark.parametrize("n", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 4, 5, 6))])
def test_gradients_are_those_of_level_0(n: int) -> None:
    generator = np.random.default_rng(n)
    for which in range(len(FORMS)):
        plain, straight = models(n, which)
        for _ in range(3):
            point = generator.normal(size=plain.param_unc_num())
            value, gradient = plain.log_density_gradient(point)
            found, found_gradient = straight.log_density_gradient(point)
            scale = N + float(np.abs(gradient).sum())
            assert found == pytest.approx(value, rel=1e-12, abs=1e-12 * scale)
            np.testing.assert_allclose(found_gradient, gradient, rtol=1e-10, atol=1e-10 * scale)


def told(model: ulam.StanModel, r: float) -> float | str:
    """The log density, or the text of a rejection."""
    n = (model.param_unc_num() - 1) // 4
    try:
        return float(model.log_density_gradient(np.array([0.3] * n + [0.1] * n + [r] + [0.2, -0.4] * n))[0])
    except ulam.Rejection as error:
        return str(error)


@pytest.mark.parametrize(("e", "r"), [(9.0, 1.0), (0.5, 2.0), (np.nan, 1.0), (np.inf, 1.0), (-np.inf, 1.0)])
def test_matrices_that_are_none(e: float, r: float) -> None:
    """Not positive definite, not symmetric, not numbers: the same text."""
    for which, name in enumerate(FORMS):
        plain, straight = (told(model, r) for model in models(3, which, e))
        if name != "products":
            assert isinstance(plain, str), name
        assert straight == plain or (isinstance(plain, float) and straight == pytest.approx(plain, nan_ok=True)), name


def test_units_that_print_keep_their_kernels() -> None:
    """Their errors come where the program has them."""
    text = HEAD.format(n=2) + 'print("here"); ' + FORMS["a factor"] + "}"
    with collect_remarks() as remarks:
        unit = Compiler(text, "model.stan", CompileOptions(3)).llvm_text("value_propto")
    assert not any(remark.pass_name == InlineKernels.name for remark in remarks)
    assert "cholesky_decompose" in unit


def test_larger_ones_are_kernels() -> None:
    text = HEAD.format(n=7) + FORMS["a factor"] + "}"
    assert "ulam_cholesky_decompose_fast" in Compiler(text, "model.stan", CompileOptions(3)).llvm_text("value_propto")
