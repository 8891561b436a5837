"""The Laplace approximation: exact for a normal posterior; its columns, modes, failures and output."""

from __future__ import annotations

import importlib.util
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ulam import CurvatureError, DataError, LaplaceResult, StanModel
from ulam.runtime import cmdstan_csv
from ulam.runtime.optimizers.laplace import ModeWarning, laplace
from ulam.tools import ulam_main

pytestmark = pytest.mark.usefixtures("quick_code")

GAUSSIAN = """
data { vector[2] m; cov_matrix[2] S; }
parameters { vector[2] x; }
transformed parameters { row_vector[2] twice = 2 * x'; }
model { x ~ multi_normal(m, S); }
generated quantities { array[2] matrix[1, 2] g; real drawn = normal_rng(0, 1); g[1, 1] = x'; g[2, 1] = twice; }
"""
MEAN = np.array([1.0, -2.0])
COVARIANCE = np.array([[2.0, 0.6], [0.6, 0.5]])
DATA = {"m": MEAN, "S": COVARIANCE}

SCALE = """
parameters { real<lower=0> sigma; }
model { sigma ~ gamma(5, 2); }
"""
"""On the log scale the mode is log(5 / 2) with the change of variables (curvature -5), log(2) without it."""


@pytest.fixture(scope="module")
def gaussian() -> StanModel:
    return StanModel(GAUSSIAN, DATA)


@pytest.fixture(scope="module")
def scale() -> StanModel:
    return StanModel(SCALE)


def normal_log_density(x: np.ndarray[Any, Any], mean: np.ndarray[Any, Any], covariance: np.ndarray[Any, Any]) -> float:
    deviation = x - mean
    quadratic = deviation @ np.linalg.solve(covariance, deviation)
    return float(-0.5 * (quadratic + np.log(np.linalg.det(2 * np.pi * covariance))))


def test_normal_posterior(gaussian: StanModel) -> None:
    fit = laplace(gaussian, {"x": MEAN}, draws=20_000, seed=1)
    np.testing.assert_allclose(fit.approximation.covariance, COVARIANCE, rtol=1e-7)
    np.testing.assert_array_equal(fit.approximation.mode, MEAN)
    errors = np.sqrt(np.diag(COVARIANCE) / len(fit))
    assert (np.abs(fit["x"].mean(axis=0) - MEAN) < 4 * errors).all()
    np.testing.assert_allclose(np.cov(fit["x"].T), COVARIANCE, atol=4 * 2 * math.sqrt(2 / len(fit)))
    constant = fit.approximation.log_normalizer
    for k in range(0, len(fit), 2500):
        expected = normal_log_density(fit["x"][k], fit.approximation.mode, fit.approximation.covariance)
        assert fit.log_q[k] + constant == pytest.approx(expected, abs=1e-9)
        assert fit.log_p[k] == gaussian.log_density(fit.unconstrained_draws[k], propto=True, jacobian=True)
    # For a normal posterior both differ by a constant: the approximation is exact.
    difference = fit.log_p - fit.log_q
    np.testing.assert_allclose(difference, difference[0], atol=1e-9)
    assert fit.approximation.log_kernel(MEAN) == 0
    np.testing.assert_allclose(laplace(gaussian, draws=1).approximation.mode, MEAN, atol=1e-4)


def test_draws_have_their_shapes(gaussian: StanModel) -> None:
    fit = laplace(gaussian, draws=7)
    assert len(fit) == 7 and list(fit.draws) == ["x", "twice", "g", "drawn"]
    assert fit["x"].shape == (7, 2) and fit["g"].shape == (7, 2, 1, 2) and fit["drawn"].shape == (7,)
    np.testing.assert_array_equal(fit["twice"], 2 * fit["x"])
    np.testing.assert_array_equal(fit["g"][:, 0, 0], fit["x"])
    np.testing.assert_array_equal(fit["g"][:, 1, 0], fit["twice"])
    assert len(set(fit["drawn"])) == 7
    with pytest.raises(KeyError, match="x, twice"):
        fit["y"]
    for k in range(7):
        np.testing.assert_array_equal(fit["x"][k], gaussian.param_constrain(fit.unconstrained_draws[k]))


def test_seeds(gaussian: StanModel) -> None:
    first, again, other = (laplace(gaussian, {"x": MEAN}, draws=3, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.constrained_draws, again.constrained_draws)
    assert not np.isclose(first.constrained_draws, other.constrained_draws).any()
    longer = laplace(gaussian, {"x": MEAN}, draws=5, seed=1)
    np.testing.assert_array_equal(longer.constrained_draws[:3], first.constrained_draws)


def test_jacobian(scale: StanModel) -> None:
    """The two settings approximate two densities, each at its own mode."""
    for jacobian, rate in ((True, 5.0), (False, 4.0)):
        fit = laplace(scale, jacobian=jacobian, draws=2)
        assert fit.approximation.mode[0] == pytest.approx(math.log(rate / 2), abs=1e-4)
        assert fit.approximation.covariance[0, 0] == pytest.approx(1 / rate, rel=1e-4)
        for k in (0, 1):
            point = fit.unconstrained_draws[k]
            assert fit.log_p[k] == scale.log_density(point, propto=True, jacobian=jacobian)


# ---------------------------------------------------------------- modes


def test_modes_of_all_kinds(scale: StanModel, tmp_path: Path) -> None:
    found = scale.optimize(jacobian=True)
    found.to_csv(tmp_path / "fit.csv")
    found.to_json(tmp_path / "fit.json")
    (tmp_path / "init.json").write_text(f'{{"sigma": {found["sigma"]!r}}}')
    modes = [
        found, {"sigma": found["sigma"]}, f'{{"sigma": {found["sigma"]!r}}}', str(tmp_path / "fit.csv"),
        tmp_path / "fit.csv", tmp_path / "fit.json", tmp_path / "init.json", found.to_dict(), None,
    ]  # fmt: skip
    expected = laplace(scale, found, draws=4, seed=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for mode in modes:
            fit = laplace(scale, mode, draws=4, seed=3)
            np.testing.assert_allclose(fit["sigma"], expected["sigma"], rtol=1e-4)
            assert not fit.notes


def test_last_row_of_saved_iterations_is_the_mode(scale: StanModel, tmp_path: Path) -> None:
    found = scale.optimize(jacobian=True, save_iterations=True)
    found.to_csv(tmp_path / "fit.csv")
    fit = laplace(scale, tmp_path / "fit.csv", draws=1)
    np.testing.assert_allclose(fit.approximation.mode, found.unconstrained, rtol=1e-12)


def test_mode_of_another_density(scale: StanModel, gaussian: StanModel, tmp_path: Path) -> None:
    found = scale.optimize()
    found.to_csv(tmp_path / "fit.csv")
    for mode in (found, tmp_path / "fit.csv", found.to_dict()):
        with pytest.warns(ModeWarning, match=r"optimized with jacobian=False, .* with jacobian=True: .* 0\.5 standard"):
            fit = laplace(scale, mode, draws=1)
        assert "jacobian=False" in fit.notes[0]
    with pytest.warns(ModeWarning, match="Was it optimized with the same setting, and did it converge"):
        laplace(scale, {"sigma": found["sigma"]}, draws=1)
    with warnings.catch_warnings():  # without constrained parameters both densities are the same
        warnings.simplefilter("error")
        laplace(gaussian, gaussian.optimize(), draws=1)


def test_wrong_modes(scale: StanModel, gaussian: StanModel, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sigma"):
        laplace(scale, {"tau": 1.0})
    with pytest.raises(FileNotFoundError, match=r"none\.json"):
        laplace(scale, tmp_path / "none.json")
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        laplace(scale, tmp_path / "none.csv")
    gaussian.optimize().to_csv(tmp_path / "other.csv")
    with pytest.raises(DataError, match="no column for parameter sigma"):
        laplace(scale, tmp_path / "other.csv")
    simplex = StanModel("parameters { simplex[3] p; } model { p ~ dirichlet([2, 3, 4]'); }")
    (tmp_path / "digits.csv").write_text("lp__,p.1,p.2,p.3\n-9,0.22222,0.33333,0.44444\n")
    with pytest.raises(DataError, match=r"digits\.csv: .*simplex.*few digits may not keep a constraint"):
        laplace(simplex, tmp_path / "digits.csv")
    with pytest.raises(ValueError, match="draws must be at least 1, found 0"):
        laplace(scale, draws=0)
    with pytest.raises(ValueError, match="refresh must be an integer, found 0.5"):
        laplace(scale, refresh=0.5)  # pyright: ignore[reportArgumentType]


def test_no_negative_definite_hessian() -> None:
    model = StanModel("parameters { real a; real b; } model { a + b ~ normal(0, 1); }")
    with pytest.raises(CurvatureError, match="flat along (a, b|b, a)"):
        laplace(model)
    ridge = StanModel("parameters { real a; } model { target += a^2; }")
    with pytest.raises(CurvatureError, match="curves upwards along a"):
        laplace(ridge, {"a": 0.0})


# ---------------------------------------------------------------- what fails


def test_rejected_draws_are_nan() -> None:
    """Of x below -1 the density rejects, above 1 the generated quantities: each is NaN in what failed."""
    source = """
    parameters { real x; }
    transformed parameters { real y = 2 * x; }
    model { x ~ normal(0, 1); if (x < -1) reject("low ", x); }
    generated quantities { real z = x; if (x > 1) reject("high ", x); }"""
    fit = laplace(StanModel(source), {"x": 0.0}, draws=400, seed=2)
    low, high = fit["x"] < -1, fit["x"] > 1
    assert low.any() and high.any() and not np.isnan(fit["x"]).any() and not np.isnan(fit["y"]).any()
    np.testing.assert_array_equal(np.isnan(fit.log_p), low)
    np.testing.assert_array_equal(np.isnan(fit["z"]), high)
    assert not np.isnan(fit.log_q).any() and fit.n_rejections == (low | high).sum()
    assert f"{fit.n_rejections} of 400 draws have NaN" in fit.notes[0]
    assert fit.summary()["z"]["mean"] == pytest.approx(fit["x"][~high].mean())


def test_log_density_that_is_not_asked_for(gaussian: StanModel) -> None:
    fit = laplace(gaussian, draws=3, calculate_lp=False)
    assert np.isnan(fit.log_p).all() and (fit.log_q < 0).all()


def test_interrupt_keeps_the_draws(gaussian: StanModel, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = laplace(gaussian, {"x": MEAN}, draws=5, seed=1)
    values = iter([1.0, 2.0, 3.0])

    def log_density(*_: object, **__: object) -> float:
        found = next(values, None)
        if found is None:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(gaussian, "log_density", log_density)
    fit = laplace(gaussian, {"x": MEAN}, draws=5, seed=1)
    assert len(fit) == 3 and fit.interrupted and fit.notes == ["Interrupted: 3 of 5 draws."]
    np.testing.assert_array_equal(fit.constrained_draws, whole.constrained_draws[:3])
    assert fit.log_p.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(KeyboardInterrupt):
        laplace(gaussian, {"x": MEAN}, draws=5, seed=1)


# ---------------------------------------------------------------- output


def test_summary(gaussian: StanModel) -> None:
    fit = laplace(gaussian, draws=101)
    row = fit.summary()["x.2"]
    values = np.sort(fit["x"][:, 1])
    expected = {"mean": values.mean(), "sd": values.std(ddof=1), "5%": values[5], "50%": values[50], "95%": values[95]}
    assert row == pytest.approx(expected)
    assert "x[2]" in str(fit) and "95%" in str(fit) and "<table>" in fit._repr_html_()


def test_csv(gaussian: StanModel, tmp_path: Path) -> None:
    fit = laplace(gaussian, draws=5, seed=9)
    fit.to_csv(tmp_path / "draws.csv")
    content = cmdstan_csv.read(tmp_path / "draws.csv")
    assert content.names == ["log_p__", "log_q__", *fit.names]
    assert content.names[2:6] == ["x.1", "x.2", "twice.1", "twice.2"]
    np.testing.assert_array_equal(content.rows[:, 2:], fit.constrained_draws)
    np.testing.assert_array_equal(content.rows[:, :2], np.column_stack([fit.log_p, fit.log_q]))
    text = (tmp_path / "draws.csv").read_text()
    assert "#   laplace\n#     mode = optimized\n#     jacobian = true (Default)\n#     draws = 5\n" in text
    assert content.settings["seed"] == "9" and content.settings["method"] == "laplace"


def test_cmdstanpy_reads_the_csv(scale: StanModel, tmp_path: Path) -> None:
    cmdstanpy = pytest.importorskip("cmdstanpy")
    scale.optimize(jacobian=True).to_csv(tmp_path / "mode.csv")
    fit = laplace(scale, tmp_path / "mode.csv", draws=6)
    fit.to_csv(tmp_path / "draws.csv")
    theirs = cmdstanpy.from_csv(str(tmp_path / "draws.csv"), method="laplace")
    np.testing.assert_array_equal(theirs.stan_variable("sigma"), fit["sigma"])
    np.testing.assert_array_equal(theirs.method_variables()["log_q__"], fit.log_q)


@pytest.mark.skipif(
    not any(importlib.util.find_spec(name) for name in ("arviz_base", "arviz")),
    reason="neither arviz-base nor arviz is installed",
)
def test_arviz(gaussian: StanModel) -> None:
    fit: LaplaceResult = laplace(gaussian, draws=5)
    data: Any = fit.to_arviz()
    np.testing.assert_array_equal(data["posterior"]["g"][0], fit["g"])
    np.testing.assert_array_equal(data["sample_stats"]["lp_approx"][0], fit.log_q)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "scale.stan"
    model.write_text(SCALE)
    mode, draws = tmp_path / "mode.csv", tmp_path / "draws.csv"
    assert ulam_main.main(["optimize", str(model), "--jacobian", "--output", str(mode)]) == 0
    capsys.readouterr()
    arguments = ["laplace", str(model), "--mode", str(mode), "--draws", "20", "--output", str(draws)]
    assert ulam_main.main([*arguments, "--refresh", "10"]) == 0
    printed = capsys.readouterr()
    assert printed.err.splitlines() == ["Calculating Hessian", "Generating draws", "iteration: 0", "iteration: 10"]
    assert "sigma" in printed.out and "95%" in printed.out
    assert cmdstan_csv.read(draws).rows.shape == (20, 3)
    assert ulam_main.main([*arguments, "--no-jacobian"]) == 0
    assert "ulam: warning: The mode was optimized with jacobian=True" in capsys.readouterr().err
    assert ulam_main.main(["laplace", str(model), "--mode", "nowhere.csv"]) == 1
    assert "nowhere.csv" in capsys.readouterr().err
    assert ulam_main.main(["laplace", str(model), "--draws", "0"]) == 2
    flat = tmp_path / "flat.stan"
    flat.write_text("parameters { real a; real b; } model { a + b ~ normal(0, 1); }")
    assert ulam_main.main(["laplace", str(flat)]) == 1
    assert "not negative definite" in capsys.readouterr().err
