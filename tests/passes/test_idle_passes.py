"""Passes that are left out because there is nothing for them would have changed nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ulam.passes import idle_passes
from ulam.passes.idle_passes import UNIT_WORKS_ON, UnitNames
from ulam.passes.loops.exponentials import LOGARITHMS, OTHERS
from ulam.passes.loops.log_factors import GENERAL
from ulam.passes.pipelines import PASSES, pipeline_parts
from ulam.runtime.compiler import Compiler

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

PROGRAMS = {
    "straight": "parameters { real<lower=0> s; vector[3] x; } model { x ~ normal(0, s); s ~ cauchy(0, 1); }",
    "choices": (
        "data { int N; array[N] int<lower=0, upper=1> y; vector[N] x; } parameters { real a; real<lower=0> s; } "
        "model { for (n in 1:N) { real p = inv_logit(a + s * x[n]); "
        "if (y[n] == 1) target += log(p); else target += log1m(p); target += -sqrt(s) * x[n]^2; } }"
    ),
    "nest": (
        "data { int N; int K; matrix[N, K] x; } parameters { simplex[K] w; ordered[K] m; } "
        "model { for (n in 1:N) { vector[K] l; for (k in 1:K) l[k] = log(w[k]) - square(x[n, k] - m[k]) / 2; "
        "target += log_sum_exp(l); } }"
    ),
    "kernels": (
        "data { int N; vector[N] y; array[N] real x; } parameters { real<lower=0> r; } "
        "model { y ~ multi_normal(rep_vector(0, N), add_diag(gp_exp_quad_cov(x, 1.0, r), 0.1)); }"
    ),
}


def busy_parts(pipeline: str, module: ModuleOp) -> list[str]:
    names = UnitNames(module)
    return [text for name, text in pipeline_parts(pipeline) if names.have_work_for(name, text)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_left_out_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left_out = Compiler(PROGRAMS[name]).llvm_text("gradient_propto")
    monkeypatch.setattr(UnitNames, "have_work_for", lambda names, name, text: True)
    assert Compiler(PROGRAMS[name]).llvm_text("gradient_propto") == left_out


def test_the_table_names_passes_and_what_they_look_for() -> None:
    assert set(UNIT_WORKS_ON) <= set(PASSES)
    assert UNIT_WORKS_ON["logs-to-products"] == (LOGARITHMS | GENERAL,)
    assert UNIT_WORKS_ON["share-exponentials"] == (LOGARITHMS | OTHERS,)


def test_a_part_is_left_out_with_what_would_have_followed() -> None:
    module = Compiler(PROGRAMS["straight"]).module
    parts = busy_parts('fold,if-changed{passes="cancel-inverses{function=evaluate}" then="dce"},cse', module)
    assert parts == ["fold", "cse"]
    both = 'if-changed{passes="cancel-inverses,loop-fusion" then="dce"}'
    assert busy_parts(both, module) == [both]


def test_a_unit_of_many_ops_counts_as_having_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "cancel-inverses,share-kernels,logs-to-products"
    assert busy_parts(text, Compiler(PROGRAMS["straight"]).module) == []
    monkeypatch.setattr(idle_passes, "MANY", 0)
    assert busy_parts(text, Compiler(PROGRAMS["straight"]).module) == text.split(",")
