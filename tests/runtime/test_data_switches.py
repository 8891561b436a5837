"""Programs compiled for what a few ints of their data decide: the same results, and code that is made once for each."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.emit import jit
from ulam.passes import data_switches
from ulam.passes.data_switches import binding_program, switches_of
from ulam.passes.remarks import collect_remarks
from ulam.passes.units import UNITS
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.data import read_data
from ulam.runtime.model import Recipe, model_of

pytestmark = pytest.mark.usefixtures("quick_code")

PROGRAM = """
functions {
  real linked(real eta, int link) {
    if (link == 1) return eta;
    else if (link == 2) return exp(eta);
    else return inv_logit(eta);
  }
  real prior_lpdf(vector b, int dist, real scale) {
    if (dist == 0) return 0;
    if (dist == 1) return normal_lpdf(b | 0, scale);
    return student_t_lpdf(b | 3, 0, scale);
  }
}
data {
  int<lower=0> N;
  int<lower=0> K;
  matrix[N, K] X;
  vector<lower=0>[N] y;
  int<lower=1, upper=3> family;
  int link;
  array[2] int dist;
  int has_intercept;
  int<lower=0> trials;
}
transformed data {
  int heavy = family == 3 && K > 1;
}
parameters {
  vector[K] b;
  array[has_intercept ? 1 : 0] real a;
  real<lower=0> s;
}
transformed parameters {
  vector[N] mu = rep_vector(has_intercept == 1 ? a[1] : 0.5, N);
  if (K > 0) mu += X * b;
  for (n in 1:N) mu[n] = linked(mu[n], link);
}
model {
  if (family == 1) y ~ normal(mu, s);
  else if (family == 2) y ~ gamma(s, s ./ (abs(mu) + 0.1));
  else {
    if (heavy) y ~ student_t(4, mu, s);
    else y ~ double_exponential(mu, s);
  }
  target += prior_lpdf(b | dist[1], 2) + prior_lpdf([s]' | dist[2], 5);
  if (trials > N) target += trials * log(s) - trials * s;
}
generated quantities {
  vector[N] r = family == 2 ? y ./ mu : y - mu;
  real wide = trials > 3 ? s * trials : -s;
}
"""
FIRST = {"family": 1, "link": 1, "dist": [1, 0], "has_intercept": 1, "trials": 4}
OTHERS = [
    {"family": 2, "link": 2},
    {"family": 3, "link": 3, "dist": [0, 2]},
    {"family": 3, "has_intercept": 0},
    {"trials": 400},
]


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_switches, "LEAST_OPS", 1)


def data(rows: int = 7, columns: int = 2, **switches: Any) -> dict[str, Any]:
    rng = np.random.default_rng(rows + columns)
    return {
        **FIRST, "N": rows, "K": columns, "X": rng.normal(size=(rows, columns)), "y": rng.uniform(0.1, 3, rows),
        **switches,
    }  # fmt: skip


def results(model: ulam.StanModel) -> list[Any]:
    size = len(model.param_unc_names())
    point = np.random.default_rng(4).normal(size=size) * 0.5
    value, gradient = model.log_density_gradient(point)
    direction = np.arange(1.0, size + 1)
    product = model.log_density_hessian_vector_product(point, direction)
    quantities = model.param_constrain(point, include_tp=True, include_gq=True, rng=model.new_rng(3))
    return [value, gradient, *product, quantities, model.log_density(point, propto=False)]


def assert_same(found: list[Any], expected: list[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("switches", [{}, *OTHERS])
@pytest.mark.parametrize("columns", [0, 1, 3])
def test_results_are_those_of_level_0(switches: dict[str, Any], columns: int) -> None:
    given = data(columns=columns, **switches)
    assert_same(results(ulam.StanModel(PROGRAM, given)), results(ulam.StanModel(PROGRAM, given, opt_level=0)))


def test_what_is_known() -> None:
    options = CompileOptions(pieces=True)
    found = switches_of(Compiler(PROGRAM, options=options)._as_lowered)
    assert found is not None
    assert {(e.name, e.indices) for e in found.ints} == {("link", ()), ("family", ()), ("dist", (1,)), ("dist", (2,))}
    outcomes = {(c.element.name, c.symbol, c.literal) for c in found.outcomes}
    assert outcomes == {("has_intercept", "!=", 0), ("has_intercept", "==", 1), ("K", ">", 0), ("heavy", "!=", 0),
                        ("trials", ">", 3)}  # fmt: skip


def test_code_is_made_once_for_what_is_decided(compiled: list[str]) -> None:
    def made(**given: Any) -> list[str]:
        compiled.clear()
        model = ulam.StanModel(PROGRAM, data(**given))
        model.log_density_gradient(np.zeros(len(model.param_unc_names())) + 0.1)
        return compiled[:]

    assert made() == ["setup", "gradient_propto"]
    assert made() == made(rows=30, columns=5, trials=9, has_intercept=1) == []
    assert made(family=2) == made(columns=0) == ["gradient_propto"]
    assert made(trials=2) == []  # decides in generated quantities alone
    assert made(family=2, rows=3) == []


def test_only_what_is_reached_is_there() -> None:
    model = ulam.StanModel(PROGRAM, data(family=2))
    called = {stage: calls_of_model(str(model.module(stage))) for stage in ("written", "optimized")}
    assert {"gamma_lpdf", "student_t_lpdf", "normal_lpdf"} <= called["written"]
    assert "gamma_lpdf" in called["optimized"]
    assert not called["optimized"] & {"student_t_lpdf", "double_exponential_lpdf"}


def calls_of_model(text: str) -> set[str]:
    block = text[text.index("stan.block model") : text.index("stan.block generated_quantities")]
    return set(re.findall(r"stan.call (\w+)", block))


def test_data_are_bound_without_what_is_evaluated_later() -> None:
    program = PROGRAM.replace("int heavy = family == 3", "int heavy = third(family)").replace(
        "functions {", "functions {\n  int third(int kind) { return kind == 3; }"
    )
    compiler = Compiler(program, options=CompileOptions(pieces=True))
    written = binding_program(compiler._as_lowered)
    written.verify()
    functions = [op.sym_name.data for op in ops_within(written) if isinstance(op, stan.FuncOp)]
    assert functions == ["third"]
    declared = {op.var_name.data for op in ops_within(written) if isinstance(op, stan.DeclareOp | stan.ParameterOp)}
    assert {"N", "X", "heavy", "b", "a", "s", "mu", "r", "wide"} <= declared
    assert not any(isinstance(op, stan.TargetAddOp | stan.ForOp) for op in ops_within(written))


def test_programs_without_data_wait(compiled: list[str]) -> None:
    program = ulam.StanProgram(PROGRAM)
    assert compiled == ["setup"]
    for given in (data(), data(family=3)):
        assert_same(results(program(given)), results(ulam.StanModel(PROGRAM, given, opt_level=0)))


def test_models_elsewhere_are_the_same() -> None:
    model = ulam.StanModel(PROGRAM, data(family=2))
    assert_same(results(pickle.loads(pickle.dumps(model))), results(model))


def test_a_library_is_for_any_data(tmp_path: Path) -> None:
    """Also that of a model whose code is for its own."""
    import ctypes
    import json

    path = ulam.StanModel(PROGRAM, data(family=2)).bridgestan_library()
    library = ctypes.CDLL(path)
    library.bs_model_construct.restype = ctypes.c_void_p
    library.bs_log_density.argtypes = (
        [ctypes.c_void_p, ctypes.c_bool, ctypes.c_bool] + [ctypes.POINTER(ctypes.c_double)] * 2 + [ctypes.c_void_p]
    )
    other = data(family=1)
    text = json.dumps({key: np.asarray(value).tolist() for key, value in other.items()})
    handle = library.bs_model_construct(text.encode(), 1, None)
    assert handle
    point = np.full(4, 0.3)
    found = ctypes.c_double()
    pointer = point.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    assert library.bs_log_density(handle, True, True, pointer, ctypes.byref(found), None) == 0
    expected = ulam.StanModel(PROGRAM, other, opt_level=0).log_density(point)
    np.testing.assert_allclose(found.value, expected, rtol=1e-12)


LINES: dict[str, Callable[[str], str]] = {
    "elements that are not there": lambda condition: f"if ({condition}) target += x; else target += -x;",
    "in a loop": lambda condition: f"for (i in 1:3) {{ if ({condition}) target += i * x; }}",
    "both operands": lambda condition: f"if (k > 1 && {condition}) target += 2 * x; else if (!k) target += x;",
    "the other way round": lambda condition: f"target += ({condition} || 2 < k) ? x : -x;",
}
CONDITIONS = ("f[1] == 1", "f[2] > 0", "1 <= k", "k == f[1]", "f[k + 1] == 1", "k != 0", "!(k == 2)", "f[3] == 1")


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions(line: str, condition: str) -> None:
    """What is no switch stays as it is, errors of the unchosen arms' indices are not told, those of others are."""
    text = f"""
    data {{ int n; array[n] int f; int k; }}
    parameters {{ real<lower=-3, upper=3> x; }}
    model {{ {LINES[line](condition)} }}
    """
    for given in ({"n": 2, "f": [1, 0], "k": 1}, {"n": 3, "f": [0, 2, 1], "k": 2}, {"n": 0, "f": [], "k": 0}):
        found = [outcome(ulam.StanModel(text, given, opt_level=level)) for level in (0, 3)]
        assert found[0] == found[1]


def outcome(model: ulam.StanModel) -> Any:
    try:
        value, gradient = model.log_density_gradient(np.array([0.4]))
        return round(value, 9), gradient.round(9).tolist()
    except ulam.UlamError as error:
        return str(error)


ROWS = """
data {
  int M;
  int more;
  array[3, M] int<lower=0, upper=1> has;
  array[M, 2] int<lower=0, upper=5> kind;
  array[3, M] int any;
}
parameters { real<lower=0> x; real<lower=0> z; }
model {
  for (m in 1:(M + more)) {
    if (has[1, m] == 1) x ~ gamma(m + 1, 2);
    if (has[2, m] == 1 || has[3, m] == 1) z ~ lognormal(m, 1);
    else z ~ exponential(m);
    if (kind[m, 2] > 3) target += kind[m, 2] * x;
    if (any[1, m] == 1) x ~ weibull(2, m);
  }
  if (more > 3) target += x;
}
"""


def rows(
    has: list[list[int]], kind: list[list[int]], any_: list[list[int]] | None = None, more: int = 0
) -> dict[str, Any]:
    size = len(kind)
    return {"M": size, "more": more, "has": has, "kind": kind, "any": any_ or np.zeros((3, size), int).tolist()}


@pytest.mark.parametrize(
    "given",
    [
        rows([[0, 0], [0, 0], [0, 0]], [[4, 1], [0, 2]]),
        rows([[1, 1], [0, 0], [1, 1]], [[0, 4], [0, 5]]),
        rows([[0, 1], [1, 0], [0, 0]], [[5, 0], [0, 4]], [[1, 0], [0, 1], [0, 0]]),
        rows([[], [], []], []),
        rows([[0], [0], [0]], [[0, 0]], more=1),  # the index of the second iteration is out of range
        rows([[1], [1], [0]], [[0, 5]], more=1),
    ],
)
def test_rows_of_arrays(given: dict[str, Any]) -> None:
    def found(level: int) -> Any:
        try:
            return results(ulam.StanModel(ROWS, given, opt_level=level))
        except ulam.UlamError as error:
            return str(error)

    one, other = found(3), found(0)
    if isinstance(other, str):
        assert one == other
    else:
        assert_same(one, other)


def test_branches_that_no_element_of_a_row_takes_are_not_there(compiled: list[str]) -> None:
    def called(given: dict[str, Any]) -> set[str]:
        text = str(ulam.StanModel(ROWS, given).module("optimized"))
        return set(re.findall(r"stan.call (\w+)_l\w+", text[text.index("stan.block model") :]))

    none = rows([[0, 0], [0, 0], [0, 0]], [[1, 1], [0, 2]])
    assert called(none) == {"exponential", "weibull"}  # any int may be in `any`
    assert called(none | {"has": [[0, 1], [0, 0], [0, 0]]}) == {"gamma", "exponential", "weibull"}
    assert called(none | {"has": [[0, 0], [0, 0], [1, 1]]}) == {"lognormal", "weibull"}
    assert called(rows([[0] * 4, [0] * 4, [1, 0, 1, 1]], [[0, 0]] * 4)) == {"lognormal", "exponential", "weibull"}
    compiled.clear()
    for given in (none, rows([[0]] * 3, [[0, 1]]), rows([[0] * 3] * 3, [[0, 2], [0, 1], [5, 1]])):
        ulam.StanModel(ROWS, given).log_density_gradient(np.array([0.1, 0.2]))
    assert compiled == ["gradient_propto"]  # kind[m, 2] is 1 or 2, or 1, which decides no more


def test_drawn_data_are_not_known() -> None:
    text = """
    transformed data { int k = poisson_rng(3) > 2; }
    parameters { real x; }
    model { if (k == 1) x ~ normal(1, 1); else x ~ normal(-1, 1); }
    """
    for seed in range(4):
        found = [ulam.StanModel(text, seed=seed, opt_level=level).log_density([0.3]) for level in (0, 3)]
        np.testing.assert_allclose(found[0], found[1], rtol=1e-14)


@pytest.mark.parametrize("level", [0, 3, 4])
def test_profiles_keep_their_names(level: int) -> None:
    text = """
    functions { real twice(real x) { profile("in a function") { return 2 * x; } } }
    data { int k; vector[5] y; }
    parameters { real a; real b; }
    model {
      if (k == 1) { profile("one") { a ~ normal(0, 1); } }
      else { profile("two") { a ~ normal(0, 2); } }
      profile("three") { for (i in 1:5) y[i] ~ normal(b, 1); }
      target += -square(twice(b));
    }
    """
    model = ulam.StanModel(text, {"k": 2, "y": np.arange(5.0)}, opt_level=level)
    model.log_density_gradient(np.array([0.1, 0.2]))
    assert model.profiler is not None
    assert [row.name for row in model.profiler.rows()] == ["in a function", "two", "three"]


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are large from one op on, and so are modules for LLVM."""
    monkeypatch.setattr(data_switches, "LARGE", 1)
    monkeypatch.setattr(jit, "LARGE", replace(jit.LARGE, long_from=1))


def for_any_data(text: str, values: dict[str, Any], options: CompileOptions) -> ulam.StanModel:
    """A model whose code is that of a library."""
    return model_of(Recipe(text, "model.stan", read_data(values), 1, True, options, cache=False))


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("layouts", [True, False])
@pytest.mark.parametrize("switches", [{}, *OTHERS])
def test_few_passes_give_the_results_of_level_0(switches: dict[str, Any], layouts: bool) -> None:
    values = data(30, 3, **switches)
    model = for_any_data(PROGRAM, values, CompileOptions(layouts=layouts))
    assert_same(results(model), results(ulam.StanModel(PROGRAM, values, opt_level=0)))


REPEATED = """
data { int<lower=0> N; array[N] int<lower=0> y; int<lower=1, upper=2> family; vector[N] x; }
parameters { real a; real b; real<lower=0> phi; }
model {
  if (family == 1) y ~ poisson_log(a + b * x);
  else y ~ neg_binomial_2_log(a + b * x, phi);
}
"""


@pytest.mark.usefixtures("large")
def test_few_passes_find_equal_rows() -> None:
    """Terms of counts alone: costly functions of 500 rows would take as long as Stan's."""
    rng = np.random.default_rng(2)
    values = {"N": 400, "y": rng.poisson(3, 400), "family": 2, "x": rng.normal(size=400)}
    model = for_any_data(REPEATED, values, CompileOptions())
    assert any(choice.layout == "unique rows" and choice.taken for choice in model.layout_choices())
    assert_same(results(model), results(ulam.StanModel(REPEATED, values, opt_level=0)))


@pytest.mark.usefixtures("large")
def test_few_passes_reject_as_level_0() -> None:
    values = data(5, 2, family=2, link=2)
    model = for_any_data(PROGRAM, values, CompileOptions())
    point = np.full(model.param_unc_num(), -1e4)
    for one in (model, ulam.StanModel(PROGRAM, values, opt_level=0)):
        with pytest.raises(ulam.Rejection, match="alpha is 0, but must be positive"):
            one.log_density_gradient(point)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    ("options", "has_few"),
    [
        (CompileOptions(), True),
        (CompileOptions(few_passes=False), False),
        (CompileOptions(pieces=True), False),
        (CompileOptions(pipeline="dead-code-elimination"), False),
        (CompileOptions(opt_level=2), False),
        (CompileOptions(opt_level=0), False),
    ],
)
def test_few_passes_are_for_code_of_libraries(options: CompileOptions, has_few: bool) -> None:
    compiler, thorough = (
        Compiler(PROGRAM, options=options),
        Compiler(PROGRAM, options=replace(options, few_passes=False)),
    )
    assert (compiler.llvm_pipeline(UNITS["gradient_propto"]) is jit.LARGE) == has_few
    if not options.pieces:
        assert (compiler.llvm_text("gradient_propto") != thorough.llvm_text("gradient_propto")) == has_few


def test_few_passes_are_for_large_programs() -> None:
    one, other = (Compiler(PROGRAM, options=CompileOptions(few_passes=few)) for few in (True, False))
    assert one.llvm_text("gradient_propto") == other.llvm_text("gradient_propto")


@pytest.mark.usefixtures("large")
def test_few_passes_are_told() -> None:
    with collect_remarks() as remarks:
        Compiler(PROGRAM).llvm_text("gradient_propto")
    assert any(
        remark.pass_name == "data-switches" and "few passes make its code" in remark.message for remark in remarks
    )


def test_small_programs_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_switches, "LEAST_OPS", 10**6)
    assert Compiler(PROGRAM, options=CompileOptions(pieces=True)).metadata()["switches"] is None


CONSTRAINED = {
    "cov_matrix[2]": np.eye(2),
    "corr_matrix[2]": np.eye(2),
    "cholesky_factor_cov[2]": np.eye(2),
    "cholesky_factor_corr[2]": np.eye(2),
    "simplex[2]": np.array([0.5, 0.5]),
    "unit_vector[2]": np.array([0.0, 1.0]),
    "ordered[2]": np.array([1.0, 2.0]),
    "positive_ordered[2]": np.array([1.0, 2.0]),
    "sum_to_zero_vector[2]": np.array([-1.0, 1.0]),
    "sum_to_zero_matrix[2, 2]": np.zeros((2, 2)),
    "row_stochastic_matrix[2, 2]": np.eye(2),
    "column_stochastic_matrix[2, 2]": np.eye(2),
    "vector<lower=0, upper=2>[2]": np.array([1.0, 2.0]),
}


@pytest.mark.parametrize("declared", CONSTRAINED)
def test_declared_constraints_of_data(declared: str) -> None:
    """Data, transformed data, transformed parameters and quantities of each kind, and data that are not of it."""
    wide = "matrix" if CONSTRAINED[declared].ndim == 2 else "vector"
    of = "[2, 2]" if wide == "matrix" else "[2]"
    text = f"""
    data {{ int f; {declared} d; }}
    transformed data {{ {declared} e = d; }}
    parameters {{ real x; {declared} p; }}
    transformed parameters {{ {declared} t = p; }}
    model {{
      if (f == 1) x ~ normal(sum(d), 1); else if (f == 2) x ~ normal(sum(e), 2); else x ~ student_t(3, 0, 1);
      target += -dot_self(to_vector(t));
    }}
    generated quantities {{ {declared} q = t; {wide}{of} r = q; }}
    """
    value = CONSTRAINED[declared]
    models = [ulam.StanModel(text, {"f": 2, "d": value.tolist()}, opt_level=level) for level in (0, 3)]
    assert_same(*(results(model) for model in reversed(models)))
    texts = []
    for level in (0, 3):
        with pytest.raises(ulam.UlamError) as raised:
            ulam.StanModel(text, {"f": 2, "d": (5 - 4 * value).tolist()}, opt_level=level)
        texts.append(str(raised.value))
    assert texts[0] == texts[1]
