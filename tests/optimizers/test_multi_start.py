"""Optimization from many starts: modes, executors, failures, interrupts."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ulam import InitializationError, MultiStartResult, StanModel
from ulam.runtime.crew import Crew
from ulam.runtime.errors import FatalError
from ulam.runtime.optimizers import multi_start
from ulam.runtime.optimizers.multi_start import Job, Start, find_modes, run_job
from ulam.runtime.optimizers.objective import ModelObjective
from ulam.runtime.optimizers.optimize import optimize
from ulam.runtime.optimizers.termination import Termination
from ulam.runtime.parallel_jobs import SharedModel, default_workers, job_seed
from ulam.tools import ulam_main

pytestmark = pytest.mark.usefixtures("quick_code")

TWO_MODES = """
parameters { real x; real y; }
model {
  target += log_mix(0.25, normal_lpdf(x | -5, 1), normal_lpdf(x | 5, 1));
  y ~ normal(x, 1);
  if (x > 50) reject("x is ", x);
}
generated quantities { real twice = 2 * x; }
"""


@pytest.fixture(scope="module")
def model() -> StanModel:
    return StanModel(TWO_MODES)


def found(result: Any) -> MultiStartResult:
    assert isinstance(result, MultiStartResult)
    return result


def test_modes(model: StanModel) -> None:
    fit = found(model.optimize(n_starts=12, init=10, seed=4))
    high, low = fit.modes
    assert fit["x"] == pytest.approx(5, abs=1e-3) and fit["twice"] == 2 * fit["x"]
    assert fit.log_density == high.log_density == max(start.result.log_density for start in fit.starts if start.result)
    assert high.log_density - low.log_density == pytest.approx(np.log(3), abs=1e-6)
    assert sorted(high.starts + low.starts) == list(range(1, 13)) and min(len(high.starts), len(low.starts)) > 1
    assert (high.distance, high.status) == (0, fit.status)
    assert low.distance == pytest.approx(10 * np.sqrt(2), rel=1e-3)
    for start in fit.starts:
        assert start.result is not None
        assert (start.number in high.starts) == (start.result["x"] > 0)
    assert not fit.notes


def test_a_start_can_be_repeated_alone(model: StanModel) -> None:
    fit = found(model.optimize(n_starts=5, init=10, seed=4))
    assert len({start.seed for start in fit.starts}) == 5 and fit.starts[0].seed == fit.run_seed == 4
    for start in fit.starts:
        alone = model.optimize(init=10, seed=start.seed)
        assert start.result is not None
        np.testing.assert_array_equal(alone.unconstrained, start.result.unconstrained)
        np.testing.assert_array_equal(alone.constrained, start.result.constrained)
    more = found(model.optimize(n_starts=8, init=10, seed=4))
    assert [start.seed for start in more.starts[:5]] == [start.seed for start in fit.starts]
    assert job_seed(5, 2) != job_seed(4, 2) < 2**32


class Done:
    """A future of an executor of one's own: nothing but `result`."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def result(self, timeout: float | None = None) -> Any:
        return self.make()


class OwnExecutor:
    """Runs a job that has travelled, when its result is asked for."""

    def submit(self, fn: Callable[..., Any], /, *arguments: Any) -> Done:
        job = pickle.dumps((fn, arguments))

        def make() -> Any:
            travelled, values = pickle.loads(job)
            return pickle.loads(pickle.dumps(travelled(*values)))

        return Done(make)


def test_executors_agree(model: StanModel) -> None:
    def outcome(executor: Any) -> list[Any]:
        fit = found(model.optimize(n_starts=6, init=10, seed=4, executor=executor, save_iterations=True))
        numbers = [
            (s.number, s.seed, s.result.unconstrained.tolist(), s.result.log_density, s.result.n_gradients, s.status,
             [value for value, _ in s.result.trajectory])
            for s in fit.starts if s.result
        ]  # fmt: skip
        return [*numbers, fit.constrained.tolist(), [mode.starts for mode in fit.modes]]

    expected = outcome(None)
    for workers in (1, 3):
        with ThreadPoolExecutor(workers) as threads:
            assert outcome(threads) == expected
    assert outcome(OwnExecutor()) == expected
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        assert outcome(processes) == expected


def test_a_model_travels_once_and_is_compiled_once(model: StanModel) -> None:
    shared = SharedModel(model)
    jobs = [Job(optimize, shared, n, n, None, {}, Crew()) for n in (1, 2)]
    first, second = (pickle.loads(pickle.dumps(job)) for job in jobs)
    assert first.shared is second.shared and first.shared.model is not model
    assert len(pickle.dumps(jobs[0])) < len(TWO_MODES) + 1000
    result = run_job(first).result
    assert result is not None and result.model is None  # what travels back has no model in it


# ---------------------------------------------------------------- failures


def test_failing_starts_are_recorded(model: StanModel) -> None:
    inits = [{"x": 4, "y": 4}, {"x": 100, "y": 0}, {"x": -4, "y": -4}, {"x": 200, "y": 0}]
    fit = found(model.optimize(n_starts=4, init=inits))
    assert [start.status == "failed" for start in fit.starts] == [False, True, False, True]
    assert "x is 100" in fit.starts[1].error
    assert [mode.starts for mode in fit.modes] == [[1], [3]]
    assert "2 of 4 starts failed" in fit.notes[-1]
    assert "failed" in str(fit) and "2 of 4 starts failed" in fit._repr_html_()


def test_all_starts_fail(model: StanModel) -> None:
    with pytest.raises(InitializationError) as failure:
        model.optimize(n_starts=3, init=np.full((3, 2), 100.0))
    lines = str(failure.value).splitlines()
    assert lines[0] == "all 3 starts failed:" and "3 of 3: " in lines[1] and "x is 100" in lines[1]


def test_errors_of_the_program_at_one_start() -> None:
    """An index out of range at one start does not lose the others; what is wrong for all is raised."""
    source = """
    data { vector[2] v; }
    parameters { real x; }
    model { x ~ normal(v[x > 3 ? 3 : 1], 1); }"""
    model = StanModel(source, {"v": [1, 2]})
    fit = found(model.optimize(n_starts=2, init=[[0.0], [4.0]]))
    assert fit["x"] == pytest.approx(1) and "index" in fit.starts[1].error
    with pytest.raises(FatalError):
        model.optimize(init=[4.0])
    with pytest.raises(FileNotFoundError, match=r"nowhere\.json"):
        model.optimize(n_starts=2, init="nowhere.json")


def test_a_lost_worker_loses_its_start(model: StanModel) -> None:
    class Losing:
        def __init__(self) -> None:
            self.count = 0

        def submit(self, fn: Callable[..., Any], /, *arguments: Any) -> Done:
            self.count += 1
            lost = self.count == 2

            def make() -> Any:
                if lost:
                    raise BrokenExecutor("a process ended")
                return fn(*arguments)

            return Done(make)

    fit = found(model.optimize(n_starts=3, executor=Losing()))  # pyright: ignore[reportArgumentType]
    assert [start.number for start in fit.starts if start.result is None] == [2]
    assert fit.starts[1].error == "its worker was lost: BrokenExecutor: a process ended"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"init": 0}, "init=0 makes all starts the same"),
        ({"init": np.int64(0)}, "init=0 makes all starts the same"),
        ({"init": [1.0, 2.0]}, "all starts the same"),
        ({"init": [[1.0, 2.0]]}, "each of 3 starts, found 1"),
        ({"init": [{"x": 1}, {"x": 2}]}, "each of 3 starts, found 2"),
        ({"progress": print}, "single run"),
    ],
)
def test_wrong_arguments(model: StanModel, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.optimize(n_starts=3, **arguments)


def test_a_start_that_did_not_converge_is_not_the_best() -> None:
    """Along x < 0 the density has a mode, for x > 0 it grows without bound."""
    source = "parameters { real x; } model { target += x < 0 ? -square(x + 2) : 100 * x; }"
    fit = found(StanModel(source).optimize(n_starts=2, init=[[-1.0], [1.0]], iter=5))
    assert fit.converged and fit["x"] == pytest.approx(-2)
    assert fit.modes[1].log_density > fit.log_density
    assert fit.notes[-1] == "Not converged, but at a higher log density: start 2."


# ---------------------------------------------------------------- interrupts


def test_interrupt_keeps_what_was_finished(model: StanModel) -> None:
    class Interrupted:
        def __init__(self) -> None:
            self.cancelled: list[int] = []

        def submit(self, fn: Callable[..., Any], /, job: Job) -> Done:
            def make() -> Any:
                if job.number == 3 and not job.crew.stopped.is_set():
                    raise KeyboardInterrupt
                return fn(job)

            return Done(make)

    fit = found(model.optimize(n_starts=5, init=10, seed=4, executor=Interrupted()))  # pyright: ignore[reportArgumentType]
    alone = found(model.optimize(n_starts=5, init=10, seed=4))
    assert fit.termination is Termination.INTERRUPTED and not fit.converged
    for k in (0, 1):
        kept, whole = fit.starts[k].result, alone.starts[k].result
        assert kept is not None and whole is not None
        np.testing.assert_array_equal(kept.unconstrained, whole.unconstrained)
    assert len(fit.starts) == 2  # those that had not begun did not begin


def test_interrupt_before_anything_was_found(model: StanModel) -> None:
    class Nothing:
        def submit(self, fn: Callable[..., Any], /, *arguments: Any) -> Done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.optimize(n_starts=2, executor=Nothing())  # pyright: ignore[reportArgumentType]


def test_no_interrupt_amid_the_locks_of_a_pool(model: StanModel) -> None:
    """KeyboardInterrupt in `submit` could end as RuntimeError: release unlocked lock."""
    inside: list[bool] = []

    class Pool(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            inside.append(True)
            os.kill(os.getpid(), signal.SIGINT)
            future = super().submit(fn, *args, **kwargs)
            inside.pop()
            return future

    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Pool(1) as pool:
        try:
            fit = found(model.optimize(n_starts=3, executor=pool))
            assert fit.termination is Termination.INTERRUPTED
        except KeyboardInterrupt:
            pass  # nothing was found yet
    assert not inside


def test_starts_under_way_are_told_to_end(model: StanModel, monkeypatch: pytest.MonkeyPatch) -> None:
    crew, evaluate = Crew(), ModelObjective.__call__

    def evaluated(self: ModelObjective, theta: Any) -> Any:
        if self.n_gradients == 4:
            crew.stop()
        return evaluate(self, theta)

    monkeypatch.setattr(ModelObjective, "__call__", evaluated)
    start = run_job(Job(optimize, SharedModel(model), 1, 4, None, {}, crew))
    assert start.result is not None and start.result.termination is Termination.INTERRUPTED
    assert start.result.n_gradients == 5  # the one that was stopped
    begun_later = run_job(Job(optimize, SharedModel(model), 2, 4, None, {}, crew))
    assert begun_later.result is None and begun_later.error == "Interrupted"


# ---------------------------------------------------------------- clusters, output, command line


def test_when_two_points_are_one_mode(model: StanModel) -> None:
    base = model.optimize(seed=4)

    def start(number: int, by: float, lower: float) -> Start:
        from dataclasses import replace

        moved = replace(base, unconstrained=base.unconstrained + by, log_density=base.log_density - lower)
        return Start(number, number, moved)

    size = np.abs(base.unconstrained).min()  # about 5: 1 % of it
    starts = [start(1, 0, 0), start(2, 0.009 * size, 9e-5), start(3, 0.02 * size, 0), start(4, 0, 2e-4)]
    assert [mode.starts for mode in find_modes(starts)] == [[1, 2], [3], [4]]


def test_output(model: StanModel, capsys: pytest.CaptureFixture[str]) -> None:
    fit = found(model.optimize(n_starts=4, init=10, seed=4, refresh=1))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert [line.split(":")[0] for line in printed.err.splitlines()] == [f"start {n} of 4" for n in (1, 2, 3, 4)]
    record = json.loads(fit.to_json())
    assert [start["number"] for start in record["starts"]] == [1, 2, 3, 4] and record["run_seed"] == 4
    assert record["modes"][0]["log_density"] == fit.log_density
    assert "mode" in str(fit) and "distance" in str(fit)
    assert fit.standard_errors()["twice"] == pytest.approx(2, rel=1e-3)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line(model: StanModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    file = Terminal()
    multi_start.run(optimize, model, 4, refresh=1, file=file, init=[[4.0, 4.0], [100.0, 0.0], [3.0, 3.0], [4.0, 2.0]])
    kept = file.getvalue().split("\n")
    assert [line.rpartition("\r\033[2K")[2][:12] for line in kept] == ["start 2 of 4", "start 4 of 4", ""]
    assert "start 3 of 4" in file.getvalue() and max(map(len, kept[0].split("\r\033[2K"))) < 40


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.stan"
    path.write_text(TWO_MODES)
    arguments = ["optimize", str(path), "--starts", "6", "--jobs", "2", "--init", "10", "--seed", "4"]
    assert ulam_main.main([*arguments, "--refresh", "1", "--output", str(tmp_path / "fit.csv")]) == 0
    printed = capsys.readouterr()
    assert "start 6 of 6: log density" in printed.err
    row = next(line for line in printed.out.splitlines() if line.startswith("2 "))
    assert row.split()[3] == "14.1"
    assert (tmp_path / "fit.csv").read_text().count("\nlp__,") == 1
    assert ulam_main.main([*arguments, "--json", "-"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert len(record["modes"]) == 2 and record["values"]["x"] == pytest.approx(5, abs=1e-3)


def test_default_workers() -> None:
    assert default_workers(1) == 1 and default_workers(10**6) == (os.cpu_count() or 1)
