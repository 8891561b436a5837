"""Level 4: programs specialised on their data do what they did, and each data set has code of its own."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ulam.emit.object_cache import ObjectCache
from ulam.passes.known_data import specializing_on
from ulam.passes.optimize.specialize_data import Progression, progression_of
from ulam.passes.pipelines import run_pipeline
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.data import read_data
from ulam.runtime.errors import DataError, FatalError, Rejection
from ulam.runtime.model import StanModel
from ulam.runtime.native import Rng
from ulam.runtime.program import BoundProgram

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

GROUPS = """
data {
  int<lower=0> N;
  int<lower=1> K;
  array[N] int<lower=1, upper=K> J;
  array[N] int from2;
  vector[N] y;
  matrix[2, 3] X;
  real<lower=0> s;
  int<lower=0, upper=1> flag;
}
transformed data {
  int M = N %/% 2;
  array[M] int evens;
  for (m in 1 : M) {
    evens[m] = 2 * m;
  }
}
parameters {
  vector[K] a;
  vector[N + 1] b;
  real<lower=s> t;
}
transformed parameters {
  vector[M] picked;
  for (m in 1 : size(evens)) {
    picked[m] = b[evens[m]] * X[2, 3];
  }
}
model {
  for (n in 1 : N) {
    y[n] ~ normal(a[J[n]] + b[from2[n]], t);
  }
  if (flag) {
    a ~ normal(sum(picked), s);
  } else {
    a ~ student_t(3, 0, s);
  }
}
generated quantities {
  array[N] real simulated = normal_rng(a[J], s);
  real size_of_a = num_elements(a) + cols(X);
}
"""
DATA: dict[str, Any] = {
    "N": 4, "K": 3, "J": [1, 3, 3, 2], "from2": [2, 3, 4, 5], "y": [0.5, -1.25, 2.0, 0.0],
    "X": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]], "s": 0.75, "flag": 1,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ULAM_CACHE_DIR", str(tmp_path / "cache"))


def assert_same(text: str | Path, data: Any) -> None:
    """Level 4 against level 3, at two points."""
    models = [StanModel(text, data, opt_level=level, cache=False) for level in (3, 4)]
    size = models[0].param_unc_num()
    assert models[1].param_unc_num() == size
    for point in (np.sin(1.7 * np.arange(size)), 0.1 * np.cos(np.arange(size))):
        for propto in (True, False):
            expected, actual = (model.log_density_gradient(point, propto=propto) for model in models)
            np.testing.assert_allclose(actual[0], expected[0], rtol=1e-10)
            scale = max(1, np.max(np.abs(expected[1]), initial=0))
            np.testing.assert_allclose(actual[1], expected[1], rtol=0, atol=1e-10 * scale)
        written = [
            model.param_constrain(point, include_tp=True, include_gq=True, rng=model.new_rng(3)) for model in models
        ]
        np.testing.assert_allclose(written[1], written[0], rtol=1e-10)
        unconstrained = [
            model.param_unconstrain(value[: model.param_num()]) for model, value in zip(models, written, strict=True)
        ]
        np.testing.assert_allclose(unconstrained[1], unconstrained[0], rtol=1e-10)


@pytest.mark.parametrize("flag", [0, 1])
def test_same_results(flag: int) -> None:
    assert_same(GROUPS, {**DATA, "flag": flag})


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.json")))
def test_examples(name: str) -> None:
    assert_same(EXAMPLES / f"{name}.stan", str(EXAMPLES / f"{name}.json"))


def test_containers_without_elements() -> None:
    text = "data { int N; vector[N] y; array[N] int J; } parameters { vector[N] a; real b; } model { b ~ normal(0, 1); "
    text += "for (n in 1:N) target += a[J[n]] * y[n]; }"
    assert_same(text, {"N": 0, "y": [], "J": []})


# ---------------------------------------------------------------- the cache


FILES = 2
"""Of each unit: under the text, and under what it is compiled from."""


def entries() -> set[str]:
    return {path.name for path in ObjectCache().folder.glob("*.ulam")}


def gradient(data: Any, level: int = 4) -> list[float]:
    model = StanModel(GROUPS, data, opt_level=level)
    return model.log_density_gradient(np.full(model.param_unc_num(), 0.3))[1].tolist()


def test_cache_has_an_entry_for_each_data_set() -> None:
    first = gradient(DATA)
    after_first = entries()
    assert len(after_first) == 2 * FILES  # setup and gradient_propto
    changed = {**DATA, "J": [2, 3, 3, 1]}
    second = gradient(changed)
    assert len(entries() - after_first) == FILES  # setup knows no data
    assert first != second
    assert gradient(DATA) == first and gradient(changed) == second
    assert len(entries()) == 3 * FILES  # nothing was compiled again
    np.testing.assert_allclose(second, gradient(changed, level=3), rtol=1e-10)


def test_cache_below_level_4_knows_no_data() -> None:
    gradient(DATA, level=3)
    before = entries()
    gradient({**DATA, "s": 2.5}, level=3)
    assert entries() == before


def test_a_value_that_changes_code_changes_the_key() -> None:
    before: set[str] = set()
    for change in ({}, {"s": 0.5}, {"flag": 0}, {"X": [[1.0, 2.0, 3.0], [4.0, 5.0, 7.5]]}, {"y": [1.0, 2, 3, 4]}):
        gradient({**DATA, **change})
        assert len(entries()) == len(before) + FILES * (1 if before else 2)
        before = entries()


def test_pickling() -> None:
    model = StanModel(GROUPS, DATA, opt_level=4)
    point = np.full(model.param_unc_num(), -0.2)
    again: StanModel = pickle.loads(pickle.dumps(model))
    assert again.log_density_gradient(point)[1].tolist() == model.log_density_gradient(point)[1].tolist()
    assert "Optimization level: 4" in again.model_info()


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "change",
    [{"y": None}, {"y": [1.0, 2.0]}, {"N": -1}, {"N": 0.5}, {"J": [1, 2, 3, 4]}, {"J": [1, 2]}, {"s": -1.0}],
    ids=str,
)
def test_wrong_data(change: dict[str, Any]) -> None:
    data = {name: value for name, value in {**DATA, **change}.items() if value is not None}
    texts: list[str] = []
    for level in (3, 4):
        with pytest.raises((DataError, Rejection, FatalError)) as raised:
            StanModel(GROUPS, data, opt_level=level)
        texts.append(f"{raised.type.__name__}: {raised.value}")
    assert texts[0] == texts[1]


INDEXED = """
data { int N; array[N] int J; vector[N] y; }
parameters { vector[N] a; }
model { for (n in 1:N) target += a[J[n]]; target += y[J[1]]; }
generated quantities { real last = a[J[N]]; print("last ", J[N]); }
"""


@pytest.mark.parametrize("indices", [[2, 3, 4], [4, 1, 1], [0, 0, 0], [1, 2, 3]])
def test_errors_of_evaluations(indices: list[int]) -> None:
    told: list[list[str]] = []
    for level in (0, 3, 4):
        model = StanModel(INDEXED, {"N": 3, "J": indices, "y": [1.0, 2.0, 3.0]}, opt_level=level, cache=False)
        texts: list[str] = []
        point = np.zeros(3)
        for call in (
            lambda model=model, point=point: model.log_density(point),
            lambda model=model, point=point: model.log_density_gradient(point),
            lambda model=model, point=point: model.param_constrain(point, include_gq=True, rng=model.new_rng(1)),
        ):
            try:
                call()
                texts.append("fine")
            except FatalError as error:
                texts.append(str(error))
        told.append(texts)
    assert told[0] == told[1] == told[2]


# ---------------------------------------------------------------- what is known

DRAWN = """
transformed data { int K = DRAW; vector[K] z = rep_vector(2, K); }
parameters { vector[K] a; }
model { target += sum(a) * K * num_elements(z); }
"""


def specialized(text: str, data: Any = None, seed: int = 1) -> str:
    """The program after the pass, as Stan."""
    from ulam.emit.stan_text import print_module

    compiler = Compiler(text, options=CompileOptions(0))
    known = BoundProgram(Compiler(text), read_data(data), lambda: Rng(seed), print).known_data()
    module = compiler.module
    with specializing_on(known):
        run_pipeline(module, "specialize-data,verify-dominance")
    return print_module(module)


def test_transformed_data_are_known() -> None:
    printed = specialized(DRAWN.replace("DRAW", "1 + 2"))
    assert "vector[3] a;" in printed and "sum(a) * 3 * 3" in printed


def test_what_was_drawn_is_not_known() -> None:
    printed = specialized(DRAWN.replace("DRAW", "1 + poisson_rng(3)"))
    assert "vector[K] a;" in printed and "sum(a) * K * num_elements(z)" in printed
    for seed in (1, 2, 3):
        models = [StanModel(DRAWN.replace("DRAW", "1 + poisson_rng(3)"), seed=seed, opt_level=n) for n in (3, 4)]
        values = [model.log_density(np.ones(model.param_unc_num())) for model in models]
        assert values[0] == values[1]


def test_random_functions_that_are_not_called_do_not_matter() -> None:
    text = DRAWN.replace("DRAW", "(1 > 2) ? poisson_rng(3) : 3")
    assert "vector[3] a;" in specialized(text)


def test_a_local_variable_may_have_the_name_of_a_function_argument() -> None:
    text = """
    functions { real f(int N) { return N * 2.0; } }
    data { int N; }
    parameters { real x; }
    model { target += x * f(N + 1); }
    """
    assert "f(5 + 1)" in specialized(text, {"N": 5}) and "return N * 2.0" in specialized(text, {"N": 5})


def test_data_as_json_text_and_as_mapping_are_one_data_set() -> None:
    gradient(DATA)
    before = entries()
    gradient(json.dumps(DATA))
    assert entries() == before


@pytest.mark.parametrize(
    "values, expected",
    [
        ([], None), ([7], Progression(7, 0)), ([3, 3, 3], Progression(3, 0)), ([4, 5, 6], Progression(3, 1)),
        ([5, 3, 1], Progression(7, -2)), ([1, 2, 4], None), ([[2, 2], [2, 2]], Progression(2, 0)), ([[1, 2]], None),
        ([2**31 - 1, -(2**31)], None), ([-(2**31), 0], None), ([0.5, 0.5], Progression(0.5, 0)), ([0.5, 1.0], None),
        ([0.0, -0.0], None),
    ],
)  # fmt: skip
def test_progressions(values: list[Any], expected: Progression | None) -> None:
    kind = np.float64 if np.asarray(values).dtype == np.float64 and len(values) else np.int32
    assert progression_of(np.asarray(values, kind)) == expected


def test_dims_have_the_column_of_a_vector_and_the_row_of_a_row_vector() -> None:
    text = """
    data { vector[2] v; row_vector[3] r; array[4] vector[2] a; array[4, 5] row_vector[3] b; matrix[2, 3] m; }
    parameters { real x; }
    model { x ~ normal(0, 1); }
    generated quantities {
      array[2] int dims_v = dims(v); array[2] int dims_r = dims(r); array[3] int dims_a = dims(a);
      array[4] int dims_b = dims(b); array[2] int dims_m = dims(m);
      array[4] int sizes = {size(a), num_elements(a), size(b), num_elements(b)};
    }
    """
    data = {"v": np.ones(2), "r": np.ones(3), "a": np.ones((4, 2)), "b": np.ones((4, 5, 3)), "m": np.ones((2, 3))}
    assert_same(text, data)
    assert "dims(" not in specialized(text, data)
