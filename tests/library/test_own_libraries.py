"""Libraries of other packages: folders of definitions, with densities, `~`, gradients, external functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.library import own_libraries
from ulam.library.own_libraries import OWN_LIBRARIES
from ulam.runtime.cached_compiler import CachedCompiler
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.externals import register_library

DEFINITIONS = """\
/* The Kumaraswamy distribution. */
real kumaraswamy_lpdf(real y, real a, real b) {
  require_positive(a);
  require_positive(b);
  if (y < 0 || y > 1) return negative_infinity();
  return log(a) + log(b) + (a - 1) * log(y) + (b - 1) * log1m(y ^ a);
}

real kumaraswamy_cdf(real y, real a, real b) {
  return 1 - (1 - y ^ a) ^ b;
}

real kumaraswamy_lccdf(real y, real a, real b) {
  return b * log1m(y ^ a);
}

real kumaraswamy_lcdf(real y, real a, real b) {
  return log1m((1 - y ^ a) ^ b);
}

real kumaraswamy_rng(real a, real b) {
  return (1 - (1 - uniform_rng(0, 1)) ^ inv(b)) ^ inv(a);
}

real softsign(real x) { return x / (1 + abs(x)); }

real cubed(real x);
"""

PROGRAM = """
data { int N; vector[N] y; }
parameters { real<lower=0> a; real<lower=0> b; }
model {
  y ~ kumaraswamy(a, b);
  y[1] ~ kumaraswamy(a, b) T[0.1, ];
  target += sum(softsign(y * b)) + cubed(a) - a - square(b);
}
generated quantities {
  array[N] real r = kumaraswamy_rng(rep_vector(a, N), b);
  real c = kumaraswamy_cdf(y[1] | a, b);
}
"""
Y = [0.2, 0.5, 0.7]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "definitions").mkdir()
    (tmp_path / "definitions" / "kumaraswamy.stan").write_text(DEFINITIONS)
    return tmp_path / "definitions"


CUBED = ulam.external(lambda x: x**3, lambda x, adjoint: 3 * x * x * adjoint)


def log_density(a: float, b: float) -> float:
    y = np.array(Y)
    terms = np.log(a) + np.log(b) + (a - 1) * np.log(y) + (b - 1) * np.log1p(-(y**a))
    truncated = terms[0] - b * np.log1p(-(0.1**a))
    return terms.sum() + truncated + (y * b / (1 + abs(y * b))).sum() + a**3 - a - b * b


@pytest.mark.parametrize("level", [pytest.param(0, marks=pytest.mark.slow), 3])
def test_a_distribution_of_a_folder(level: int, folder: Path) -> None:
    register_library("extra", folder, external={"cubed": CUBED})
    model = ulam.StanModel(PROGRAM, {"N": 3, "y": Y}, opt_level=level)
    point = np.log([1.3, 0.8])
    value, gradient = model.log_density_gradient(point, propto=False, jacobian=False)
    assert value == pytest.approx(log_density(1.3, 0.8), rel=1e-13)
    h = 1e-6
    slopes = [
        (log_density(*np.exp(point + step)) - log_density(*np.exp(point - step))) / (2 * h) for step in np.eye(2) * h
    ]
    assert gradient == pytest.approx(slopes, abs=1e-8)
    quantities = model.param_constrain(point, include_gq=True, rng=model.new_rng(3))
    assert all(0 < r < 1 for r in quantities[2:5]) and len(set(quantities[2:5])) == 3
    assert quantities[5] == pytest.approx(1 - (1 - 0.2**1.3) ** 0.8)
    told = r"kumaraswamy_lpdf: a is -1, but must be positive! \(in 'model.stan', line 1, column 9\)"
    with pytest.raises(ulam.Rejection, match=told):
        ulam.StanModel("model { 0.5 ~ kumaraswamy(-1, 2); }", opt_level=0).log_density([])


def refused(program: str) -> str:
    with pytest.raises(ulam.CompileError) as caught:
        ulam.StanModel(program, opt_level=0, cache=False)
    return str(caught.value)


def test_clashes_and_mistakes(folder: Path) -> None:
    call = "model { target += foo(1.0); }"
    file = folder / "kumaraswamy.stan"
    for text, told in (
        ("real normal_lpdf(real y, real m) { return 0; }", "defines 'normal_lpdf', which Stan's library or ulam's has"),
        ("real foo(real y) {\n  return 0;\n  }", "the definition of 'foo' does not end"),
        ("real foo(real y) { return nothing(y); }", "kumaraswamy.stan:1:27: error: there is no function 'nothing'"),
        ("real foo(real y);", "'foo' has no body, and its library no external function for it"),
        ("real bar(real y) { return 0; }", "there is no function 'foo'"),
    ):
        file.write_text(text)
        register_library("extra", folder)
        assert told in refused(call)
    file.write_text("real foo(real y) { return 2 * y; }")
    register_library("extra", folder)
    register_library("other", folder)
    assert "defines 'foo', which library 'extra' has already" in refused(call)
    register_library("other")
    assert ulam.StanModel(call, opt_level=0, cache=False).log_density([], propto=False) == 2.0


def test_the_programs_own_functions_go_first(folder: Path) -> None:
    register_library("extra", folder, external={"cubed": CUBED})
    read = ulam.StanModel("model { target += softsign(1.0); }", opt_level=0, cache=False)
    assert read.log_density([], propto=False) == 0.5
    own = "functions { real softsign(real x) { return 7; } } model { target += softsign(1.0); }"
    assert ulam.StanModel(own, opt_level=0, cache=False).log_density([], propto=False) == 7.0


def test_what_is_known_reads_no_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Any:
        pytest.fail("entry points were read")

    monkeypatch.setattr(OWN_LIBRARIES, "_entry_points", fail)
    own_libraries._forget()  # pyright: ignore[reportPrivateUsage]
    text = """
    functions { real mine_lpmf(int n, real p) { return n * p; } real other(real x) { return x; } }
    model { 3 ~ mine(0.5); 3 ~ poisson(0.5); target += other(normal_lpdf(0.5 | 0, 1)); }
    """
    ulam.StanModel(text, opt_level=0, cache=False).log_density([])


def test_a_library_may_have_the_other_kind_of_a_density(folder: Path) -> None:
    (folder / "kumaraswamy.stan").write_text("real poisson_lpdf(real y, real m) { return 7 * y * m; }")
    register_library("extra", folder)
    model = ulam.StanModel("model { 3 ~ poisson(2.0); 0.5 ~ poisson(2.0); }", opt_level=0, cache=False)
    assert model.log_density([], propto=False) == pytest.approx(3 * np.log(2) - 2 - np.log(6) + 7)


def test_cached_code_goes_with_the_library(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ULAM_CACHE_DIR", str(tmp_path / "cache"))
    file = folder / "kumaraswamy.stan"
    program = "model { target += foo(1.0); }"

    def value(definition: str) -> float:
        file.write_text(definition)
        register_library("extra", folder)
        return ulam.StanModel(program, opt_level=0).log_density([], propto=False)

    assert value("real foo(real y) { return 2 * y; }") == 2.0
    assert value("real foo(real y) { return 3 * y; }") == 3.0
    compiler = CachedCompiler(program, "model.stan", CompileOptions(0))
    compiler._compiler.module  # pyright: ignore[reportPrivateUsage]  # noqa: B018
    assert list(compiler.metadata()["libraries"]) == ["extra"]
    register_library("extra")
    with pytest.raises(ulam.CompileError, match="there is no function 'foo'"):
        ulam.StanModel(program, opt_level=0).log_density([], propto=False)


def test_units_are_found_by_content_for_the_same_version_of_a_library(folder: Path, compiled: list[str]) -> None:
    """Derivatives and kernels that come with a definition are not in the program."""
    (folder / "kumaraswamy.stan").write_text("real foo(real y) { return 2 * y; }")

    def made(comment: str, version: str) -> int:
        compiled.clear()
        register_library("extra", folder, version=version)
        ulam.StanModel(f"model {{ target += foo(1.0); }} // {comment}", opt_level=0).log_density([], propto=False)
        return len(compiled)

    assert made("one", "1") == 2
    assert made("two", "1") == 0
    assert made("three", "2") == 2


@pytest.mark.parametrize("level", [0, 3, 4])
def test_profile_blocks_of_libraries_are_no_regions_of_the_program(folder: Path, level: int) -> None:
    (folder / "kumaraswamy.stan").write_text('real foo(real y) { profile("inside") { return 2 * y; } }')
    register_library("extra", folder)
    text = 'parameters { real x; } model { profile("outside") { target += -square(foo(x)); } target += foo(x); }'
    model = ulam.StanModel(text, opt_level=level, cache=False)
    value, slope = model.log_density_gradient(np.array([0.3]))
    assert (value, slope[0]) == pytest.approx((0.24, -0.4))
    assert model.profiler is not None
    assert {row.name for row in model.profiler.rows()} == {"outside"}
