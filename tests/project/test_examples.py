"""The examples, from text and data to the estimate, against values computed with Stan 2.40.

reference/optimize.jsonl: log density (no constants, with Jacobian) and gradient at a start, and where Stan's L-BFGS
ends from there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ulam.runtime.errors import InternalCompilerError
from ulam.runtime.model import StanModel
from ulam.tools import ulam_main

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
MODELS = sorted(path.stem for path in EXAMPLES.glob("*.stan"))
REFERENCE: list[dict[str, Any]] = [
    json.loads(line) for line in (ROOT / "tests" / "reference" / "optimize.jsonl").read_text().splitlines()
]
# Where runs do not end at the same iteration: tolerance of the end point, relative to its largest entry.
LOOSE = {"hierarchical": 5e-2}
_models: dict[str, StanModel] = {}


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ULAM_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
    _models.clear()


def example(name: str) -> StanModel:
    if name not in _models:
        _models[name] = StanModel(EXAMPLES / f"{name}.stan", EXAMPLES / f"{name}.json")
    return _models[name]


@pytest.mark.parametrize("case", REFERENCE, ids=lambda case: case["model"])
def test_gradient_agrees_with_stan(case: dict[str, Any]) -> None:
    value, gradient = example(case["model"]).log_density_gradient(np.array(case["init"]))
    assert value == pytest.approx(case["init_log_density"], rel=1e-10)
    scale = np.abs(case["init_gradient"]).max()
    np.testing.assert_allclose(gradient, case["init_gradient"], rtol=1e-9, atol=1e-10 * scale)


@pytest.mark.parametrize("case", REFERENCE, ids=lambda case: case["model"])
def test_optimum_agrees_with_stan(case: dict[str, Any]) -> None:
    fit = example(case["model"]).optimize(init=case["init"], jacobian=True)
    assert fit.converged
    # Ours may go on for a few iterations: see docs/optimizers.md.
    assert -1e-10 * abs(case["log_density"]) <= fit.log_density - case["log_density"] < 1e-4
    end = LOOSE.get(case["model"], 1e-4)
    np.testing.assert_allclose(fit.unconstrained, case["end"], atol=end * np.abs(case["end"]).max())


@pytest.mark.parametrize("name", MODELS)
def test_value_agrees_with_gradient_and_differences(name: str) -> None:
    model = example(name)
    theta = np.random.default_rng(8).uniform(-1, 1, model.param_unc_num())
    for propto in (True, False):
        for jacobian in (True, False):
            value, gradient = model.log_density_gradient(theta, propto=propto, jacobian=jacobian)
            assert model.log_density(theta, propto=propto, jacobian=jacobian) == pytest.approx(value, rel=1e-13)
            direction = np.random.default_rng(9).normal(size=theta.size)
            points = [theta + step * direction for step in (-2e-4, -1e-4, 1e-4, 2e-4)]
            values = [model.log_density(point, propto=propto, jacobian=jacobian) for point in points]
            slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / 12e-4
            assert slope == pytest.approx(gradient @ direction, rel=1e-6, abs=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_constrain_and_unconstrain(name: str) -> None:
    model = example(name)
    theta = np.random.default_rng(10).uniform(-1, 1, model.param_unc_num())
    constrained = model.param_constrain(theta)
    assert constrained.shape == (model.param_num(),) == (len(model.param_names()),)
    np.testing.assert_allclose(model.param_unconstrain(constrained), theta, atol=1e-9)
    everything = model.param_constrain(theta, include_tp=True, include_gq=True, rng=model.new_rng(1))
    assert np.isfinite(everything).all()
    np.testing.assert_array_equal(everything[: constrained.size], constrained)


def test_optimize_command(capsys: pytest.CaptureFixture[str]) -> None:
    model = str(EXAMPLES / "eight_schools.stan")
    assert ulam_main.main(["optimize", model, "--data", model.replace(".stan", ".json"), "--jacobian"]) == 0
    printed = capsys.readouterr().out
    assert "theta[8]" in printed and "gradient evaluations" in printed


def test_second_model_comes_from_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    model = example("eight_schools")
    theta = np.linspace(-1, 1, 10)
    expected = model.log_density_gradient(theta)

    def refuse(*_: Any) -> Any:
        raise AssertionError("compiled again")

    monkeypatch.setattr("ulam.runtime.compiler.Compiler.compiled", refuse)
    again = StanModel(EXAMPLES / "eight_schools.stan", EXAMPLES / "eight_schools.json")
    value, gradient = again.log_density_gradient(theta)
    assert value == expected[0]
    np.testing.assert_array_equal(gradient, expected[1])
    with pytest.raises(InternalCompilerError, match="compiled again"):
        StanModel(EXAMPLES / "eight_schools.stan", EXAMPLES / "eight_schools.json", opt_level=0)
