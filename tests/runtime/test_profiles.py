"""Profile statements: counts, nesting, errors, threads, and that they change nothing else."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

import numpy as np
import pytest

from ulam.runtime.c_library import library
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.errors import ArgumentError, FatalError, Rejection
from ulam.runtime.model import StanModel
from ulam.runtime.native import Context
from ulam.runtime.profiling.profiler import Profiler, in_phase
from ulam.runtime.profiling.records import ProfileRow, walk

pytestmark = pytest.mark.usefixtures("quick_code")

REGRESSION = """data { int N; int K; matrix[N, K] X; vector[N] y; }
parameters { vector[K] b; real<lower=0> sigma; }
"""
DATA = {"N": 40, "K": 3, "X": np.random.default_rng(1).normal(size=(40, 3)), "y": np.linspace(-1, 2, 40)}
THETA = np.array([0.1, -0.2, 0.3, 0.4])


def profiled(source: str, data: Any = None, **options: Any) -> tuple[StanModel, Profiler]:
    model = StanModel(source, data, **options)
    assert model.profiler is not None
    return model, model.profiler


def rows(profiler: Profiler) -> dict[str, ProfileRow]:
    found = {row.name: row for row in profiler.rows()}
    assert len(found) == len(profiler.rows()), "one thread"
    return found


def counts(profiler: Profiler) -> dict[str, tuple[int, int]]:
    return {name: (row.passes, row.gradient_passes) for name, row in rows(profiler).items()}


# ---------------------------------------------------------------- the examples of the design document


def test_model_block_and_likelihood() -> None:
    model, profiler = profiled(
        REGRESSION
        + """model {
          profile("priors") { sigma ~ normal(0, 1); b ~ normal(0, 1); }
          profile("likelihood") { y ~ normal(X * b, sigma); }
        }""",
        DATA,
    )
    for _ in range(7):
        model.log_density_gradient(THETA)
    model.log_density(THETA)
    model.log_density(THETA)
    assert counts(profiler) == {"priors": (2, 7), "likelihood": (2, 7)}
    for row in profiler.rows():
        assert row.total_time == row.forward_time + row.reverse_time
        assert row.forward_time > 0 and row.reverse_time > 0
        assert row.thread_id == threading.get_native_id()


def test_same_name_twice_adds_up() -> None:
    model, profiler = profiled(
        REGRESSION
        + """model {
          profile("model") { sigma ~ normal(0, 1); b ~ normal(0, 1); }
          profile("model") { y ~ normal(X * b, sigma); }
        }""",
        DATA,
    )
    model.log_density_gradient(THETA)
    assert counts(profiler) == {"model": (0, 2)}


def test_loops() -> None:
    model, profiler = profiled(
        """data { int N; array[N] real x; } parameters { real<lower=0> alpha; real<lower=0> rho; real<lower=0> sigma; }
        transformed parameters {
          matrix[N, N] L_K;
          matrix[N, N] K;
          profile("gp") { K = gp_exp_quad_cov(x, alpha, rho); }
          real sq_sigma = square(sigma);
          for (n in 1:N) { profile("add diagonal") { K[n, n] = K[n, n] + sq_sigma; } }
          profile("cholesky") { L_K = cholesky_decompose(K); }
        }
        model { target += -sum(square(L_K * rep_vector(1, N))); }""",
        {"N": 6, "x": np.linspace(0, 1, 6)},
    )
    plain = StanModel(profiled_text(model), {"N": 6, "x": np.linspace(0, 1, 6)}, profile=False)
    theta = np.array([0.1, -0.3, 0.2])
    found = model.log_density_gradient(theta)
    for _ in range(4):
        model.log_density_gradient(theta)
    expected = plain.log_density_gradient(theta)
    assert found[0] == pytest.approx(expected[0], rel=1e-13)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-12)
    assert plain.profiler is None
    assert counts(profiler) == {"gp": (0, 5), "add diagonal": (0, 30), "cholesky": (0, 5)}
    assert rows(profiler)["gp"].other_values > 0


@pytest.mark.parametrize("profile", [False, "statements"])
@pytest.mark.parametrize("level", [0, 3])
def test_errors_of_programs_without_their_statements(profile: bool | str, level: int) -> None:
    program = """parameters { real x; } model { profile("p") { if (x > 0) reject("no ", x); } }"""
    model = StanModel(program, profile=profile, opt_level=level)
    with pytest.raises(Rejection, match=r"^no 1 "):
        model.log_density(np.array([1.0]))


def profiled_text(model: StanModel) -> str:
    return model.source[0]


def test_nesting() -> None:
    model, profiler = profiled(
        REGRESSION
        + """model {
          profile("model") {
            profile("prior") { sigma ~ normal(0, 1); b ~ normal(0, 1); }
            profile("likelihood") { y ~ normal(X * b, sigma); }
          }
        }""",
        DATA,
    )
    for _ in range(3):
        model.log_density_gradient(THETA)
    (outer,) = profiler.tree()
    assert outer.name == "model" and [child.name for child in outer.children] == ["prior", "likelihood"]
    assert 0 <= outer.self_time <= outer.total_time
    assert outer.total_time >= sum(child.total_time for child in outer.children)
    assert {node.gradient_passes for node in walk([outer])} == {3}


def test_one_name_twice_active_is_an_error_with_both_places() -> None:
    model, _ = profiled(
        """parameters { real b; }
        model {
          profile("likelihood") {
            b ~ normal(0, 1);
            profile("likelihood") { target += b; }
          }
        }"""
    )
    message = "profile 'likelihood' is active already: it was entered in line 3, and again in line 5"
    with pytest.raises(FatalError, match=message):
        model.log_density_gradient(np.zeros(1))
    with pytest.raises(FatalError, match=message):  # and again: nothing stays active
        model.log_density(np.zeros(1))


def test_functions_in_several_blocks() -> None:
    model, profiler = profiled(
        """functions { real myfunc(vector alpha) { profile("myfunc") { return sum(exp(alpha)); } } }
        transformed data { real c = myfunc([0.5, 1]'); }
        parameters { vector[2] alpha; }
        model { real x = myfunc(alpha); target += -x * x; }
        generated quantities { real x = myfunc(alpha); }"""
    )
    model.log_density_gradient(np.zeros(2))
    for _ in range(4):
        model.param_constrain(np.zeros(2), include_gq=True, rng=model.new_rng(1))
    by_phase = {row.phase: (row.passes, row.gradient_passes) for row in profiler.rows(by_phase=True)}
    assert by_phase == {"data": (1, 0), "evaluation": (0, 1), "generated quantities": (4, 0)}
    assert counts(profiler) == {"myfunc": (5, 1)}


# ---------------------------------------------------------------- beyond it


def test_recursion_counts_every_pass_and_the_time_of_the_outermost() -> None:
    model, profiler = profiled(
        """functions { real f(real x, int n) { profile("f") { if (n == 0) return x; return exp(-f(0.5 * x, n - 1)); }} }
        parameters { real a; } model { target += f(a, 4); }"""
    )
    value, gradient = model.log_density_gradient(np.array([0.3]))
    assert counts(profiler) == {"f": (0, 5)}
    (node,) = profiler.tree()
    assert not node.children
    step = 1e-6
    slope = (model.log_density(np.array([0.3 + step])) - model.log_density(np.array([0.3 - step]))) / (2 * step)
    assert gradient[0] == pytest.approx(slope, rel=1e-8)
    assert value == pytest.approx(model.log_density(np.array([0.3])), rel=1e-15)


def test_while_and_rejected_evaluations() -> None:
    model, profiler = profiled(
        """parameters { real a; }
        model {
          int i = 0;
          profile("outer") {
            while (i < 3) { i += 1; profile("inner") { target += -square(a) * i; } }
            if (a > 10) { profile("failing") { reject("too much"); } }
          }
        }"""
    )
    gradient = model.log_density_gradient(np.array([0.5]))[1]
    assert gradient[0] == pytest.approx(-6.0)
    with pytest.raises(Rejection, match="too much"):
        model.log_density_gradient(np.array([11.0]))
    assert counts(profiler) == {"outer": (0, 1), "inner": (0, 3), "failing": (0, 0)}


def test_phases() -> None:
    model, profiler = profiled('parameters { real a; } model { profile("p") { a ~ normal(0, 1); } }')
    model.log_density_gradient(np.zeros(1))
    with in_phase("optimization"):
        model.log_density_gradient(np.zeros(1))
        model.log_density_gradient(np.zeros(1))
    assert {row.phase: row.gradient_passes for row in profiler.rows(by_phase=True)} == {
        "evaluation": 1,
        "optimization": 2,
    }
    profiler.reset()
    assert profiler.rows() == []


def test_threads_have_rows_of_their_own() -> None:
    model, profiler = profiled('parameters { real a; } model { profile("p") { a ~ normal(0, 1); } }')
    barrier = threading.Barrier(3)

    def run(count: int) -> None:
        barrier.wait()
        for _ in range(count):
            model.log_density_gradient(np.zeros(1))
        barrier.wait()

    threads = [threading.Thread(target=run, args=(10 * k,)) for k in (1, 2)]
    for thread in threads:
        thread.start()
    barrier.wait()
    barrier.wait()
    for thread in threads:
        thread.join()
    assert sorted(row.gradient_passes for row in profiler.rows()) == [10, 20]


def test_events() -> None:
    model, profiler = profiled(
        'parameters { real a; } model { profile("p") { a ~ normal(0, 1); profile("q") { target += -exp(a); } } }',
        profile_events=6,
    )
    for _ in range(5):
        model.log_density_gradient(np.zeros(1))
    events = profiler.events()
    assert len(events) == 6
    assert [(event.region, event.reverse) for event in events[-4:]] == [(1, 0), (0, 0), (1, 1), (0, 1)]
    assert all(event.ticks > 0 for event in events)


def test_automatic_regions() -> None:
    source = REGRESSION + "model {\n  b ~ normal(0, 1);\n  y ~ normal(X * b, sigma);\n}"
    expected = StanModel(source, DATA).log_density_gradient(THETA)
    names = {
        "statements": ["parameters", "model, line 4", "model, line 5"],
        "blocks": ["transformed data", "parameters", "transformed parameters", "model"],
    }
    for each, regions in names.items():
        model, profiler = profiled(source, DATA, profile=each, layouts=False)  # reduced rows have nothing to keep
        value, gradient = model.log_density_gradient(THETA)
        assert value == pytest.approx(expected[0], rel=1e-14)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-12)
        assert [row.name for row in profiler.rows()] == regions
        assert rows(profiler)[regions[-1]].kept_values > 0
    with pytest.raises(ArgumentError, match="profile must be"):
        StanModel(source, DATA, profile="lines")


def test_automatic_regions_of_functions() -> None:
    model, profiler = profiled(
        """functions { real f(real x) { return x * x; } void g(real x) { if (x > 5) reject("x"); } }
        parameters { real a; } model { g(a); target += -f(a) - f(2 * a); }""",
        profile="functions",
    )
    assert model.log_density_gradient(np.ones(1))[1][0] == pytest.approx(-10)
    assert counts(profiler) == {"f": (0, 2), "g": (0, 1)}


# ---------------------------------------------------------------- cost


def test_programs_without_regions_have_nothing_of_it() -> None:
    from ulam.runtime.compile_options import CompileOptions
    from ulam.runtime.compiler import Compiler

    source = REGRESSION + "model { y ~ normal(X * b, sigma); }"
    assert StanModel(source, DATA).profiler is None
    marked = source.replace("y ~", 'profile("p") { y ~').replace("sigma); }", "sigma); } }")
    for unit in ("gradient_propto", "value_full", "constrain"):
        assert "profile" not in Compiler(source).llvm_text(unit)
    assert "ulam_profile_begin" in Compiler(marked).llvm_text("gradient_propto")
    assert "profile" not in Compiler(marked, options=CompileOptions(profile="off")).llvm_text("gradient_propto")


def test_cost_of_a_pair() -> None:
    """Two readings of the processor's clock, which take up to 25 ns each, and a few steps; no system call."""
    inside, outside = Context().profile_overhead()
    assert (inside + outside) * library().ulam_seconds_per_tick() < 150e-9


@pytest.mark.ordinary_runtime("closing pages takes most of the time")
def test_regions_add_up_to_the_whole() -> None:
    """Disjoint regions, of a model of 10 µs and more."""
    n = 20_000
    model, profiler = profiled(
        """data { int N; vector[N] x; vector[N] y; } parameters { real a; real b; real<lower=0> s; }
        model {
          vector[N] mu;
          profile("mu") { mu = a + b * exp(-square(x)); }
          profile("likelihood") { y ~ student_t(4, mu, s); }
        }""",
        {"N": n, "x": np.linspace(-1, 1, n), "y": np.linspace(-1, 1, n)},
    )
    out = np.empty(3)
    model.log_density_gradient(np.array([0.1, 0.2, 0.3]), out=out)
    profiler.reset()
    start = time.thread_time()
    for _ in range(50):
        model.log_density_gradient(np.array([0.1, 0.2, 0.3]), out=out)
    outside = time.thread_time() - start
    (whole,) = profiler.evaluations()
    assert whole.passes == 50
    assert 0.95 * whole.total_time < sum(node.total_time for node in whole.children) <= whole.total_time
    assert 0.5 * outside < whole.total_time < 1.01 * outside


# ---------------------------------------------------------------- without

PROFILED = """functions {
  real f(real x) {
    profile("early") { if (x > 0) return x; }
    profile("last") { return -x; }
  }
}
data { int N; vector[N] y; }
transformed data { profile("data") { real sum_y = sum(y); print(sum_y); } real mean_y = mean(y); }
parameters { real m; real<lower=0> s; vector[N] z; }
model {
  profile("declares") { real w = m + mean_y; profile("inner") { w ~ normal(0, 1); } }
  for (n in 1:N) { profile("iteration") { y[n] ~ normal(z[n] + m, s); } }
  for (n in 1:N) { profile("leaves") { if (z[n] > 3) break; target += f(z[n]); profile("at once") { continue; } } }
}
generated quantities { real g; profile("g") { g = f(m); } }
"""


@pytest.mark.parametrize("level", [0, 3])
def test_nothing_is_left_of_regions_that_are_off(level: int) -> None:
    """The code of a program with `profile=False` is that of the program without profile statements."""
    plain = re.sub(r'profile\("[^"]*"\)', lambda match: " " * len(match[0]), PROFILED)  # all else in its place
    off = Compiler(PROFILED, options=CompileOptions(level, profile="off"))
    never = Compiler(plain, options=CompileOptions(level))
    for unit in ("setup", "gradient_propto", "constrain"):
        assert off.llvm_text(unit) == never.llvm_text(unit)


# ---------------------------------------------------------------- steps of solvers

SOLVERS = """
functions {
  vector decay(real t, vector y, real k) { return -k * y; }
  vector residual(real t, vector y, vector yp, real k) { return yp + k * y; }
  vector root(vector y, real k, int wrong) { return wrong ? y * not_a_number() : y .* y - k; }
  real integrand(real x, real xc, array[] real k, array[] real x_r, array[] int x_i) { return exp(-x * k[1]); }
}
data { int wrong; }
transformed data { array[0] real x_r; array[0] int x_i; }
parameters { real<lower=0> k; }
model {
  profile("all") {
    profile("loose") { target += ode_rk45_tol(decay, [1.0]', 0, {1.0}, 1e-3, 1e-3, 1000, k)[1][1]; }
    profile("tight") { target += ode_rk45_tol(decay, [1.0]', 0, {1.0}, 1e-10, 1e-10, 1000, k)[1][1]; }
    profile("dae") { target += dae(residual, [1.0]', [-k]', 0, {1.0}, k)[1][1]; }
    profile("integral") { target += integrate_1d(integrand, 0, 1, {k}, x_r, x_i); }
  }
  profile("root") { target += solve_newton(root, [1.0]', k, wrong)[1]; }
  profile("none") { target += -k; }
}
"""


def test_steps_of_solvers_are_counted() -> None:
    model, profiler = profiled(SOLVERS, {"wrong": 0}, opt_level=0)
    for _ in range(3):
        model.log_density_gradient(np.array([0.3]))
    found = rows(profiler)
    assert found["tight"].solver_steps > 2 * found["loose"].solver_steps > 0 == found["loose"].solver_steps % 3
    inner = ("loose", "tight", "dae", "integral")
    assert all(found[name].solver_steps for name in (*inner, "root"))
    assert found["all"].solver_steps == sum(found[name].solver_steps for name in inner)
    assert found["none"].solver_steps == found["none"].failed_steps == 0


def test_solvers_give_up_quickly_where_a_function_is_nan() -> None:
    model, profiler = profiled(SOLVERS, {"wrong": 1}, opt_level=0)
    with pytest.raises(Rejection):
        model.log_density_gradient(np.array([0.3]))
    taken = rows(profiler)["root"]
    assert taken.solver_steps == 0 < taken.failed_steps < 60
