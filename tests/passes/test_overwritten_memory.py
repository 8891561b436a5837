"""`overwritten-memory`: what iterations overwrite is their own; values and slopes are those of level 1."""

from __future__ import annotations

import numpy as np
import pytest

import ulam
from ulam.passes.loops.overwritten_memory import OverwrittenMemory
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

HEAD = "data { int N; int K; vector[N] x; } parameters { vector[K] a; real b; } "
OWN = {
    "a loop over all": (
        "array[K] real p; "
        "for (n in 1:N) { for (k in 1:K) p[k] = normal_lpdf(x[n] | a[k], exp(b)); target += -log_sum_exp(p); }"
    ),
    "a vector": (
        "vector[K] p; "
        "for (n in 1:N) { p = a; for (k in 1:K) p[k] += normal_lpdf(x[n] | b * k, 1); target += -log_sum_exp(p); }"
    ),
    "a vector of the iteration": (
        "for (n in 1:N) { vector[K] p = a; for (k in 1:K) p[k] += normal_lpdf(x[n] | b * p[k], 1); "
        "target += -log_sum_exp(p); }"
    ),
    "each element": (
        "vector[2] p; for (n in 1:N) { p[1] = b * x[n]; p[2] = a[1]; p[1] += 1; target += -log_sum_exp(p); }"
    ),
    "a fill": (
        "vector[K] p; "
        "for (n in 1:N) { p = rep_vector(b, K); if (K > 1) p[2] = a[2] * x[n]; target += -log_sum_exp(p); }"
    ),
    "written again after it was read": (
        "vector[K] p; for (n in 1:N) { for (k in 1:K) p[k] = a[k] * x[n]; target += -log_sum_exp(p); "
        "p[1] = b; target += -square(sum(p)); }"
    ),
}
SHARED = {
    "one element less": (
        "vector[K] p = a; for (n in 1:N) { for (k in 2:K) p[k] = a[k] * x[n] + p[k - 1]; target += -log_sum_exp(p); }"
    ),
    "read before": (
        "vector[K] p = a; for (n in 1:N) { target += -log_sum_exp(p); for (k in 1:K) p[k] = b * x[n] + a[k]; }"
    ),
    "read behind the loop": (
        "vector[K] p = a; for (n in 1:N) { for (k in 1:K) p[k] = a[k] * x[n]; target += -log_sum_exp(p); } "
        "target += -square(sum(p));"
    ),
    "some elements": (
        "vector[2] p = [b, b]'; "
        "for (n in 1:N) { p[1] = b * x[n]; target += -log_sum_exp(p); if (x[n] > 0) p[2] = x[n]; }"
    ),
    "the copy is written": (
        "vector[K] p = a; for (n in 1:N) { vector[K] q = p; for (k in 1:K) p[k] = q[k] * x[n]; q[1] = b; "
        "target += -log_sum_exp(q) - square(sum(p)); }"
    ),
    "a neighbour": (
        "for (n in 1:N) { vector[K] p = a; for (k in 1:K - 1) p[k] += p[k + 1] * x[n]; target += -log_sum_exp(p); }"
    ),
}


def takes_it_inside(program: str) -> bool:
    with collect_remarks() as remarks:
        Compiler(program, "model.stan", CompileOptions(3)).llvm_text("gradient_propto")
    return any(remark.pass_name == OverwrittenMemory.name and remark.done for remark in remarks)


@pytest.mark.parametrize("name", [*OWN, *SHARED])
def test_values_and_slopes_are_those_of_level_1(name: str) -> None:
    """Also of loops without an iteration, and of one element."""
    program = HEAD + f"model {{ {(OWN | SHARED)[name]} }}"
    assert takes_it_inside(program) == (name in OWN)
    generator = np.random.default_rng(5)
    for rows, width in ((4, 3), (1, 1), (0, 2), (9, 2)):
        if width < 2 and "2]" in program.partition("model")[2]:
            continue
        data = {"N": rows, "K": width, "x": generator.normal(size=rows)}
        plain, own = (ulam.StanModel(program, data, opt_level=level) for level in (1, 3))
        point = generator.normal(size=width + 1)
        value, gradient = plain.log_density_gradient(point)
        found, slopes = own.log_density_gradient(point)
        np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(slopes, gradient, rtol=1e-11, atol=1e-13)
