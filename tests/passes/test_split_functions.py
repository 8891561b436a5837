"""Parts of long functions compute what the whole function does, bit by bit, and know of their memory what it knew."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ulam
from ulam.emit import jit
from ulam.passes import idle_passes, lowering_pipeline
from ulam.passes.loops.split_functions import SplitFunctions
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

PROGRAM = """
functions {
  real walk(real x, int n) { return n == 0 ? x : walk(x * 0.5, n - 1) + sin(x); }
}
data { int<lower=0> N; int kind; int K; vector[N] y; array[N] int<lower=1, upper=K> g; matrix[N, K] X; }
transformed data { vector[N] z = 2 * y; }
parameters { real a; real<lower=0> s; vector[K] b; simplex[3] w; cholesky_factor_corr[2] L; }
transformed parameters {
  vector[N] m;
  for (n in 1:N) { vector[3] t = w * b[g[n]]; m[n] = a + sum(t) * y[n]; }
}
model {
  vector[N] eta = X * b;
  real total = 0;
  if (kind == 1) {
    vector[2] u = L * b[1:2];
    target += normal_lpdf(y | eta, s) - dot_self(u);
    if (a > 0) { for (n in 1:N) total += log1p_exp(m[n]); b ~ std_normal(); }
    else { total += walk(a, 3); }
  } else if (kind == 2) {
    for (n in 1:N) { if (y[n] > 0) target += student_t_lpdf(y[n] | 3, eta[n], s); else target += -abs(m[n]); }
    b ~ student_t(4, 0, s);
    while (total < 3) total += exp(a) + s;
  } else {
    matrix[K, K] S = add_diag(X' * X * s, 1.0);
    b ~ multi_normal(rep_vector(a, K), S);
    z ~ cauchy(m, s);
  }
  if (s > 50) reject("too large: ", s);
  target += total * mean(z);
  L ~ lkj_corr_cholesky(2);
}
generated quantities { vector[K] twice = 2 * b; real q = kind == 1 ? sum(m) : prod(w) + L[2, 1]; }
"""
QUICK = jit.Pipeline(speed=0, vectorize=False)
SPLIT = "split-functions{above=10 most=24 least=4}"


def data(kind: int) -> dict[str, object]:
    rng = np.random.default_rng(3)
    return {
        "N": 7, "K": 3, "kind": kind, "y": rng.normal(size=7).tolist(), "g": [1, 2, 3, 1, 2, 3, 3],
        "X": rng.normal(size=(7, 3)).tolist(),
    }  # fmt: skip


@pytest.fixture(params=[0, pytest.param(3, marks=pytest.mark.slow)])
def level(request: pytest.FixtureRequest) -> int:
    return request.param


def split_everything(monkeypatch: pytest.MonkeyPatch, split: str = SPLIT) -> None:
    written = lowering_pipeline.lowering_pipeline

    def with_parts(*args: object, **options: object) -> str:
        return written(*args, **options).replace("split-functions", split)  # type: ignore[arg-type]

    monkeypatch.setattr(lowering_pipeline, "lowering_pipeline", with_parts)
    monkeypatch.setattr(idle_passes, "MANY", 0)


def test_split_functions_compute_the_same(level: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [0.3 * np.sin(1.7 * np.arange(1, 9) + shift) for shift in (0.0, 2.0)]

    def everything() -> list[np.ndarray]:
        models = [ulam.StanModel(PROGRAM, data(kind), opt_level=level) for kind in (1, 2, 3)]
        with pytest.raises(ulam.Rejection, match="too large: 54.598"):
            models[0].log_density(np.array([0, 4, 0, 0, 0, 0, 0, 0.0]))
        return [result for model in models for theta in points for result in results(model, theta)]

    monkeypatch.setattr(jit, "HOT", QUICK)
    monkeypatch.setenv("ULAM_CACHE_DIR", str(tmp_path / "whole"))
    whole = everything()
    split_everything(monkeypatch)
    monkeypatch.setenv("ULAM_CACHE_DIR", str(tmp_path / "parts"))
    for one, other in zip(whole, everything(), strict=True):
        if level == 0:
            np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def results(model: ulam.StanModel, theta: np.ndarray) -> list[np.ndarray]:
    value, gradient = model.log_density_gradient(theta)
    quantities = model.param_constrain(theta, include_tp=True, include_gq=True, rng=model.new_rng(1))
    return [np.array([value]), gradient, quantities]


def test_parts_know_what_their_memory_overlaps_with(monkeypatch: pytest.MonkeyPatch) -> None:
    def scoped(text: str) -> float:
        accesses = re.findall(r"^  .*(?:load|store) double.*!tbaa.*$", text, re.M)
        known = [line for line in accesses if "!noalias" in line or "!invariant.load" in line]  # what is never written
        return len(known) / len(accesses)

    whole = Compiler(PROGRAM).llvm_text("gradient_propto")
    split_everything(monkeypatch, "split-functions{above=10 most=200 least=60}")
    with collect_remarks() as remarks:
        parts = Compiler(PROGRAM).llvm_text("gradient_propto")
    assert parts.count("define internal i32 @evaluate.part") > 2
    assert scoped(parts) >= 0.98 * scoped(whole) > 0.5
    (remark,) = (r for r in remarks if r.pass_name == "split-functions" and r.subject == "function evaluate")
    assert "parts became functions" in remark.message


@pytest.mark.parametrize(("most", "least"), [(0, 0), (1, 1), (1, 10**9)])
def test_parts_of_any_size(most: int, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "HOT", QUICK)
    monkeypatch.setattr(idle_passes, "MANY", 0)
    text = "parameters { real x; } model { x ~ normal(0, exp(x)); if (x > 0) target += sin(x); }"
    passes = "convert-stan-to-loops,simplify,reverse-mode,thread-target,split-functions"
    whole, parts = (
        ulam.StanModel(text, passes=passes + options, cache=False)
        for options in ("", f"{{above=1 most={most} least={least}}}")
    )
    theta = np.array([0.3])
    assert parts.log_density_gradient(theta) == whole.log_density_gradient(theta)
    assert (".part" in str(parts.module("lowered"))) == (least < 10**9)


def test_short_functions_stay_whole() -> None:
    assert SplitFunctions().above == idle_passes.MANY
    assert ".part" not in Compiler(PROGRAM, options=CompileOptions(opt_level=0)).llvm_text("value_propto")
