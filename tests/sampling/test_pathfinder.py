"""Pathfinder: exact for normal posteriors, reproducible by seed; paths, resampling, failures, output."""

from __future__ import annotations

import importlib.util
import io
import math
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ulam import InitializationError, PathfinderError, PathfinderResult, StanModel, TimeLimit
from ulam.runtime import cmdstan_csv
from ulam.runtime.crew import Crew
from ulam.runtime.optimizers.quasi_newton import LBFGSOptions
from ulam.runtime.parallel_jobs import SharedModel
from ulam.runtime.sampling.path import PathfinderPath, PathJob, run_path
from ulam.runtime.sampling.pathfinder import PathfinderSettings, pathfinder_inits
from ulam.tools import ulam_main

pytestmark = pytest.mark.usefixtures("quick_code")

GAUSSIAN = """
data { vector[3] m; cov_matrix[3] S; }
parameters { vector[3] x; }
model { x ~ multi_normal(m, S); }
generated quantities { array[2] matrix[1, 2] g; real drawn = normal_rng(0, 1); g[1] = [[x[1], x[2]]]; g[2] = -g[1]; }
"""
MEAN = np.array([1.0, -2.0, 30.0])
COVARIANCE = np.array([[2.0, 0.6, 0.0], [0.6, 0.5, 0.1], [0.0, 0.1, 4.0]])
DATA = {"m": MEAN, "S": COVARIANCE}

TWO_MODES = """
parameters { real<lower=0> s; real x; }
model { s ~ gamma(5, 2); target += log_mix(0.25, normal_lpdf(x | -10, 1), normal_lpdf(x | 10, 1)); }
"""


@pytest.fixture(scope="module")
def gaussian() -> StanModel:
    return StanModel(GAUSSIAN, DATA)


@pytest.fixture(scope="module")
def two_modes() -> StanModel:
    return StanModel(TWO_MODES)


def test_normal_posterior(gaussian: StanModel) -> None:
    """Resampled draws have the posterior's moments, those of `laplace`, whatever path they are from."""
    fit = gaussian.pathfinder(draws=8000, seed=1)
    exact = gaussian.laplace(draws=10, seed=1).approximation
    np.testing.assert_allclose(exact.covariance, COVARIANCE, rtol=1e-6, atol=1e-12)
    # Resampling with replacement has twice the variance, at most, where weights are even.
    errors = np.sqrt(2 * np.diag(COVARIANCE) / len(fit))
    assert (np.abs(fit["x"].mean(axis=0) - exact.mode) < 4 * errors).all()
    scale = np.sqrt(np.outer(np.diag(COVARIANCE), np.diag(COVARIANCE)))
    np.testing.assert_allclose(np.cov(fit["x"].T) / scale, COVARIANCE / scale, atol=4 * 2 * math.sqrt(2 / len(fit)))
    assert fit.khat < 0.7 and not fit.notes and fit.n_rejections == 0
    for k in range(0, len(fit), 1000):
        assert fit.log_p[k] == gaussian.log_density(fit.unconstrained_draws[k], propto=False, jacobian=True)
    # The density is normalised: its evidence is 1, and the ELBO is at most 0, up to the error of 25 draws.
    assert -0.5 < fit.elbo < 0.2


def test_draws_have_their_shapes(gaussian: StanModel) -> None:
    fit = gaussian.pathfinder(draws=7, num_paths=2)
    assert len(fit) == 7 and fit["x"].shape == (7, 3) and fit["g"].shape == (7, 2, 1, 2) and fit["drawn"].shape == (7,)
    np.testing.assert_array_equal(fit["g"][:, 1, 0], -fit["x"][:, :2])
    assert len(set(fit["drawn"])) == 7 and set(fit.path) <= {1, 2}
    with pytest.raises(KeyError, match="x, g, drawn"):
        fit["y"]


def test_result_depends_on_the_seed_only(gaussian: StanModel) -> None:
    class Late(Executor):
        """Runs nothing before its result is asked for."""

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            class Result(Future[Any]):
                def result(self, timeout: float | None = None) -> Any:
                    return fn(*args, **kwargs)

                def add_done_callback(self, fn: Any) -> None:
                    fn(self)

            return Result()

    one = gaussian.pathfinder(draws=20, seed=5)
    with ThreadPoolExecutor(1) as pool:
        others = [gaussian.pathfinder(draws=20, seed=5, executor=executor) for executor in (pool, Late(), None)]
    for other in others:
        np.testing.assert_array_equal(other.constrained_draws, one.constrained_draws)
        np.testing.assert_array_equal(other.path, one.path)
    assert not np.isclose(gaussian.pathfinder(draws=20, seed=6).log_p, one.log_p).any()
    # The first paths of a longer run are those of a shorter one.
    longer = gaussian.pathfinder(draws=20, seed=5, num_paths=6)
    assert [path.elbo for path in longer.paths[:4]] == [path.elbo for path in one.paths]


def test_processes(gaussian: StanModel) -> None:
    """What travels can be pickled, both ways."""
    import pickle

    settings = PathfinderSettings(num_draws=30).path()
    job = PathJob(SharedModel(gaussian), 2, 9, None, settings, Crew(), None)
    there = pickle.loads(pickle.dumps(job))
    back: PathfinderPath = pickle.loads(pickle.dumps(run_path(there)))
    here = run_path(job)
    assert back.draws is not None and here.draws is not None
    np.testing.assert_array_equal(back.draws.points, here.draws.points)


def test_single_path_is_not_resampled(gaussian: StanModel) -> None:
    fit = gaussian.pathfinder(num_paths=1, draws=30, seed=2)
    assert len(np.unique(fit.log_q)) == 30 and not fit.settings.psis_resample
    resampled = gaussian.pathfinder(num_paths=1, draws=30, psis_resample=True, seed=2)
    assert set(resampled.log_q) <= set(fit.log_q)
    fewer = gaussian.pathfinder(num_paths=1, draws=10, seed=2)
    np.testing.assert_array_equal(fewer.unconstrained_draws, fit.unconstrained_draws[:10])


def test_draws_of_all_paths(two_modes: StanModel) -> None:
    fit = two_modes.pathfinder(num_paths=3, draws=9, num_single_draws=40, psis_resample=False, seed=3)
    assert fit.path.tolist() == [1] * 40 + [2] * 40 + [3] * 40
    saved = two_modes.pathfinder(num_paths=3, draws=9, num_single_draws=40, save_single_paths=True, seed=3)
    assert len(saved) == 9 and [len(single) for single in saved.single_paths] == [40, 40, 40]
    for number, single in enumerate(saved.single_paths, 1):
        np.testing.assert_array_equal(single.unconstrained_draws, fit.unconstrained_draws[fit.path == number])
    quick = two_modes.pathfinder(num_paths=2, draws=9, calculate_lp=False)
    assert len(quick) == 18 and np.isnan(quick.log_p).all() and math.isnan(quick.khat)


def test_resampling_weighs_the_modes(two_modes: StanModel) -> None:
    """Half of the starts are in the basin of the mode with a quarter of the mass; resampling knows."""
    inits = [{"x": x, "s": 2.0} for x in (-9.0, -11.0, 9.0, 11.0)]
    fit = two_modes.pathfinder(init=inits, draws=20_000, num_single_draws=2000, seed=4)
    assert [path.best_iteration > 0 for path in fit.paths] == [True] * 4
    # The weights are those of each path's own density: the share of the lower mode is 1/4.
    assert (fit["x"] < 0).mean() == pytest.approx(0.25, abs=0.04)
    assert (fit["s"] > 0).all() and fit["s"].mean() == pytest.approx(2.5, abs=0.15)


def test_far_from_normal() -> None:
    fit = StanModel(
        "parameters { real<lower=0> x; real y; } model { x ~ cauchy(0, 1); y ~ normal(0, 1 / x); }"
    ).pathfinder()
    assert fit.khat > 0.7
    assert any("above 0.7" in note for note in fit.notes) and "k-hat" in str(fit)


def test_initial_points_of_chains(gaussian: StanModel, two_modes: StanModel) -> None:
    points = pathfinder_inits(gaussian, 5, seed=3)
    assert points.shape == (5, 3) and len(np.unique(points[:, 0])) == 5
    assert (np.abs(points - MEAN) < 6 * np.sqrt(np.diag(COVARIANCE))).all()
    np.testing.assert_array_equal(points, pathfinder_inits(gaussian, 5, seed=3))
    assert pathfinder_inits(gaussian, 1, seed=3).shape == (1, 3)
    assert all(math.isfinite(two_modes.log_density(point)) for point in pathfinder_inits(two_modes, 4, seed=1))


# ---------------------------------------------------------------- options and failures


def test_wrong_options(gaussian: StanModel) -> None:
    for options, text in (
        ({"num_paths": 0}, "num_paths must be at least 1, found 0"),
        ({"draws": 2.5}, "draws must be an integer, found 2.5"),
        ({"num_elbo_draws": 0}, "num_elbo_draws must be at least 1"),
        ({"max_lbfgs_iters": 0}, "max_lbfgs_iters must be at least 1"),
        ({"history_size": 0}, "history_size must be at least 1"),
        ({"tol_grad": -1}, "tol_grad must not be negative"),
        ({"refresh": -1}, "refresh must be at least 1"),
        ({"psis_resample": True, "calculate_lp": False}, "psis_resample needs the log density"),
        ({"psis_resample": "yes"}, "psis_resample must be True or False, found 'yes'"),
        ({"init": np.zeros((2, 3))}, "initial values for each of 4 paths, found 2"),
    ):
        with pytest.raises(ValueError, match=text):
            gaussian.pathfinder(**options)
    with pytest.raises(TypeError, match="iterations"):
        gaussian.pathfinder(iterations=3)
    with pytest.raises(ValueError, match="the model has none"):
        StanModel("generated quantities { real x = 1; }").pathfinder()


def test_settings_are_those_of_the_optimizer() -> None:
    settings, optimizer = PathfinderSettings(), LBFGSOptions()
    for name in ("init_alpha", "tol_obj", "tol_rel_obj", "tol_grad", "tol_rel_grad", "tol_param", "history_size"):
        assert getattr(settings, name) == getattr(optimizer, name)


def test_no_initial_point() -> None:
    nowhere = StanModel('parameters { real x; } model { reject("never ", x); }')
    with pytest.raises(InitializationError, match="all 4 paths failed:\n.*initialization failed between") as caught:
        nowhere.pathfinder()
    assert caught.value.model is nowhere and caught.value.point is not None
    with pytest.raises(InitializationError, match="^initialization failed between"):
        nowhere.pathfinder(num_paths=1)


def test_no_draws() -> None:
    """The density is finite in a ball only, far smaller than any normal density along the path."""
    tiny = StanModel("""parameters { vector[2] x; }
    model { if (dot_self(x) > 1e-8) reject("outside"); target += -dot_self(x) / 4; }""")
    with pytest.raises(PathfinderError, match="pathfinder failed: all 2 paths failed:\n  2 of 2: the log density is"):
        tiny.pathfinder(num_paths=2, init={"x": [1e-5, 0]})


def test_some_paths_fail() -> None:
    half = StanModel("""parameters { real x; } model { if (x < -1) reject("left ", x); x ~ normal(1, 0.1); }""")
    fit = half.pathfinder(init=[{"x": 1.2}, {"x": -5.0}], num_paths=2, draws=50)
    assert fit.paths[1].error and set(fit.path) == {1} and fit.notes[0].startswith("1 of 2 paths failed: ")
    assert "failed" in str(fit)


def test_rejected_draws(two_modes: StanModel) -> None:
    source = """parameters { real x; } model { x ~ normal(0, 1); if (x < -1.5) reject("low"); }
    generated quantities { real z = x; if (x > 1) reject("high ", x); }"""
    model = StanModel(source)
    fit = model.pathfinder(draws=400, num_elbo_draws=1, seed=3, init=0.5)
    assert (fit["x"] >= -1.5).all() and np.isfinite(fit.log_p).all()  # draws that are rejected have no weight
    high = fit["x"] > 1
    np.testing.assert_array_equal(np.isnan(fit["z"]), high)
    assert fit.n_rejections == high.sum() > 0 and "draws have NaN" in fit.notes[-1]


# ---------------------------------------------------------------- interrupts


def stopping(model: StanModel, monkeypatch: pytest.MonkeyPatch, after: int, error: type[BaseException]) -> None:
    """The log density raises an error from the call after so many on."""
    evaluate, calls = model.log_density, [0]

    def log_density(*args: Any, **options: Any) -> float:
        calls[0] += 1
        if calls[0] > after:
            raise error(0.1) if error is TimeLimit else error
        return evaluate(*args, **options)

    monkeypatch.setattr(model, "log_density", log_density)


@pytest.mark.parametrize(("after", "count"), [(60, 25), (100_000, 0), (400, 0)])
def test_interrupted_path(gaussian: StanModel, monkeypatch: pytest.MonkeyPatch, after: int, count: int) -> None:
    """It hands back what it has: the draws that judged the best normal density, or those of the result."""
    whole = run_path(job := PathJob(SharedModel(gaussian), 1, 1, None, PathfinderSettings().path(), Crew(), None))
    assert whole.draws is not None and whole.ended is None
    stopping(gaussian, monkeypatch, after, KeyboardInterrupt)
    path = run_path(job)
    assert path.draws is not None
    if count:
        assert len(path.draws) == count and path.ended is not None
    elif after > 10_000:
        assert path.ended is None and len(path.draws) == 1000
    else:
        searched = whole.n_densities - 1000  # the check of the initial point is not counted
        assert len(path.draws) == 400 - 1 - searched
        np.testing.assert_array_equal(path.draws.points, whole.draws.points[: len(path.draws)])


def test_interrupted_before_anything(gaussian: StanModel, monkeypatch: pytest.MonkeyPatch) -> None:
    stopping(gaussian, monkeypatch, 3, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        gaussian.pathfinder()


def test_time_limit(gaussian: StanModel, monkeypatch: pytest.MonkeyPatch) -> None:
    stopping(gaussian, monkeypatch, 60, TimeLimit)
    with pytest.raises(TimeLimit) as caught:
        gaussian.pathfinder(num_paths=1, draws=50, time_limit=100)
    fit = caught.value.result
    assert isinstance(fit, PathfinderResult) and len(fit) == 25 and fit.interrupted
    assert "Interrupted: 25 of" in " ".join(fit.notes)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, TimeLimit])
def test_stopped_amid_the_generated_quantities(
    gaussian: StanModel, monkeypatch: pytest.MonkeyPatch, stop: type[BaseException]
) -> None:
    """Draws that are complete are kept."""
    whole = gaussian.pathfinder(draws=30, seed=2)
    constrain, calls = gaussian.param_constrain, [0]

    def stopped(*args: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] == 13:
            raise TimeLimit(100.0) if stop is TimeLimit else stop
        return constrain(*args, **options)

    monkeypatch.setattr(gaussian, "param_constrain", stopped)
    if stop is TimeLimit:
        with pytest.raises(TimeLimit) as caught:
            gaussian.pathfinder(draws=30, seed=2, time_limit=100)
        fit = caught.value.result
    else:
        fit = gaussian.pathfinder(draws=30, seed=2)
    assert len(fit) == 12 and fit.interrupted and "Interrupted: 12 of 30" in fit.notes[0]
    np.testing.assert_array_equal(fit.constrained_draws, whole.constrained_draws[:12])


def test_run_that_was_ended_completes_soon(gaussian: StanModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its generated quantities may take long: draws that would come late are left out."""
    from ulam.runtime.sampling import pathfinder

    monkeypatch.setattr(pathfinder, "SECONDS_TO_COMPLETE", -1.0)
    assert len(gaussian.pathfinder(num_paths=1, draws=50)) == 50
    stopping(gaussian, monkeypatch, 60, KeyboardInterrupt)
    fit = gaussian.pathfinder(num_paths=1, draws=50)
    assert len(fit) == 1 and fit.interrupted and fit.notes[0].startswith("Interrupted: 1 of 25 draws")


# ---------------------------------------------------------------- output


def test_csv(gaussian: StanModel, tmp_path: Path) -> None:
    fit = gaussian.pathfinder(draws=5, seed=9, save_single_paths=True, num_single_draws=30)
    fit.to_csv(tmp_path / "draws.csv")
    content = cmdstan_csv.read(tmp_path / "draws.csv")
    assert content.names == ["lp_approx__", "lp__", "path__", *fit.names]
    np.testing.assert_array_equal(content.rows[:, 3:], fit.constrained_draws)
    np.testing.assert_array_equal(content.rows[:, :3], np.column_stack([fit.log_q, fit.log_p, fit.path]))
    assert content.settings["method"] == "pathfinder" and content.settings["num_psis_draws"] == "5"
    assert content.settings["num_paths"] == "4" and content.settings["seed"] == "9"
    fit.single_paths[0].to_csv(tmp_path / "single.csv")
    single = cmdstan_csv.read(tmp_path / "single.csv")
    assert single.names == ["lp_approx__", "lp__", *fit.names] and len(single.rows) == 30
    assert single.settings["num_paths"] == "1"


@pytest.mark.skipif(
    not any(importlib.util.find_spec(name) for name in ("arviz_base", "arviz")),
    reason="neither arviz-base nor arviz is installed",
)
def test_arviz(gaussian: StanModel) -> None:
    fit = gaussian.pathfinder(draws=5)
    data: Any = fit.to_arviz()
    np.testing.assert_array_equal(data["posterior"]["g"][0], fit["g"])
    np.testing.assert_array_equal(data["sample_stats"]["lp_approx"][0], fit.log_q)


def test_text(gaussian: StanModel) -> None:
    file = io.StringIO()
    fit = gaussian.pathfinder(draws=30, num_paths=2, refresh=1, file=file)
    assert [line.split(":")[0] for line in file.getvalue().splitlines()] == ["path 1 of 2", "path 2 of 2"]
    assert "x[2]" in str(fit) and "ELBO" in str(fit) and "<table>" in fit._repr_html_() and len(repr(fit)) < 1200


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, draws = tmp_path / "m.stan", tmp_path / "draws.csv"
    model.write_text(TWO_MODES)
    arguments = ["pathfinder", str(model), "--draws", "20", "--num-draws", "30", "--num-paths", "2", "-o", str(draws)]
    assert ulam_main.main([*arguments, "--save-single-paths", "--refresh", "1", "--init", '{"x": 9}']) == 0
    printed = capsys.readouterr()
    assert "k-hat" in printed.out and "path 1 of 2" in printed.err
    assert cmdstan_csv.read(draws).rows.shape == (20, 5)
    assert cmdstan_csv.read(tmp_path / "draws_path_2.csv").rows.shape == (30, 4)
    assert ulam_main.main([*arguments, "--no-psis-resample"]) == 0
    assert cmdstan_csv.read(draws).rows.shape == (60, 5)
    for wrong in (["--tol-grad", "-1"], ["--save-single-paths", "-o", "-"], ["--psis-resample", "--no-calculate-lp"]):
        assert ulam_main.main([*arguments, *wrong]) == 2
    capsys.readouterr()
    model.write_text('parameters { real x; } model { reject("never"); }')
    assert ulam_main.main(["pathfinder", str(model)]) == 1
    printed = capsys.readouterr().err
    assert "all 4 paths failed" in printed and "The first point that failed" in printed


PARTS = """
data { complex_vector[2] z; tuple(real, array[2] vector[2]) at; }
parameters { complex_vector[2] w; tuple(real, array[2] tuple(vector[2], complex)) t; }
model {
  target += -sum(abs(w - z).^2);
  t.1 ~ normal(at.1, 2);
  for (k in 1:2) { t.2[k].1 ~ normal(at.2[k], 1); target += -norm(t.2[k].2); }
}
generated quantities { tuple(int, complex_vector[2]) twice = (2, 2 * w); }
"""


def test_complex_numbers_and_tuples(tmp_path: Path) -> None:
    """In data, where paths begin, in draws by name and in CSV."""
    model = StanModel(PARTS, {"z": [1 + 2j, -3j], "at": (5.0, [[1.0, 2.0], [3.0, 4.0]])})
    begin = {"w": [1j, 2.0], "t": (1.0, [([0.0, 1.0], 1j), ([2.0, 3.0], 4 - 1j)])}
    found = model.pathfinder(init=begin, seed=3)
    assert np.mean(found["w"], axis=0) == pytest.approx([1 + 2j, -3j], abs=0.2)
    assert np.std(found["w"].imag, axis=0) == pytest.approx([math.sqrt(0.5)] * 2, rel=0.2)
    assert np.mean(found["t:2:1"], axis=0) == pytest.approx(np.array([[1.0, 2.0], [3.0, 4.0]]), abs=0.25)
    assert np.mean(found["t:2:2"], axis=0) == pytest.approx([0, 0], abs=0.2)
    assert np.mean(found["t:1"]) == pytest.approx(5, abs=0.5) and found["twice:2"] == pytest.approx(2 * found["w"])
    found.to_csv(tmp_path / "draws.csv")
    content = cmdstan_csv.read(tmp_path / "draws.csv")
    columns = [content.names.index(name) for name in ("w.2.real", "w.2.imag", "t:1", "t:2.2:2.imag", "twice:1")]
    expected = [found["w"][:, 1].real, found["w"][:, 1].imag, found["t:1"], found["t:2:2"][:, 1].imag, found["twice:1"]]
    assert content.rows[:, columns] == pytest.approx(np.array(expected).T, rel=1e-5, abs=1e-5)
