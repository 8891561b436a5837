"""Many fits: the same wherever they ran, errors told by data set, lost workers, folders that are gone on with."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import BrokenExecutor, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.compiler import Compiler
from ulam.runtime.errors import ArgumentError, DataError
from ulam.runtime.studies.data_sets import digest_of
from ulam.runtime.studies.fit_many import StudyWarning
from ulam.runtime.studies.progress import StudyDisplay, StudyProgress
from ulam.runtime.studies.study import Study

pytestmark = pytest.mark.usefixtures("quick_code")

PROGRAM = """
data { int<lower=0> N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; }
model { mu ~ normal(0, 5); sigma ~ exponential(1); y ~ normal(mu, sigma); }
generated quantities { real y_new = normal_rng(mu, sigma); }
"""
SHORT: dict[str, Any] = {"chains": 2, "warmup": 60, "draws": 30}
QUIET: dict[str, Any] = {"progress": False, **SHORT}


def data_sets(count: int) -> list[dict[str, Any]]:
    generator = np.random.default_rng(7)
    return [{"N": 5, "y": generator.normal(k, 1, 5).tolist()} for k in range(count)]


def same(first: Study, second: Study) -> bool:
    """Whether both have the same fits, bit by bit."""
    assert first.finished == second.finished
    for a, b in zip(first, second, strict=True):
        assert (a.index, a.name, a.seed, a.names) == (b.index, b.name, b.seed, b.names)
        assert a.arrays.keys() == b.arrays.keys()
        for name in set(a.arrays) - {"seconds"}:
            assert np.array_equal(a.arrays[name], b.arrays[name], equal_nan=True), name
    return True


@pytest.fixture(scope="module")
def plain(request: pytest.FixtureRequest) -> list[Study]:
    return []


@pytest.fixture
def study(plain: list[Study]) -> Study:
    """Of six data sets; made once."""
    if not plain:
        plain.append(ulam.fit_many(PROGRAM, data_sets(6), seed=3, **QUIET))
    return plain[0]


# ---------------------------------------------------------------- results


def test_a_fit_is_what_the_model_alone_gives(study: Study) -> None:
    record = study[4]
    model = ulam.StanModel(PROGRAM, data=data_sets(6)[4], seed=record.seed)
    fit = model.sample(seed=record.seed, progress=False, **SHORT)
    assert np.array_equal(record["mu"], fit["mu"]) and np.array_equal(record["y_new"], fit["y_new"])
    assert record.names == fit.names and record.stats.keys() == fit.stats.keys()
    assert np.array_equal(record.fit["sigma"], fit["sigma"]) and record.fit.model.param_unc_num() == 2
    assert len(study) == 6 and not study.errors and not study.missing and "6 fitted" in str(study)
    assert [each.index for each in study] == list(range(6)) and study[-1].index == 5
    assert len({each.seed for each in study}) == 6


def test_the_same_bits_in_processes(study: Study) -> None:
    before = set(multiprocessing.active_children())
    found = ulam.fit_many(PROGRAM, data_sets(6), seed=3, executor="processes", workers=1, batch=4, **QUIET)
    assert same(found, study)
    assert set(multiprocessing.active_children()) == before


@pytest.mark.parametrize("method", ["optimize", "laplace", "pathfinder"])
def test_other_methods(method: str) -> None:
    options: dict[str, Any] = {} if method == "optimize" else {"draws": 20}
    found = ulam.fit_many(PROGRAM, data_sets(2), method, seed=3, progress=False, **options)
    record = found[1]
    model = ulam.StanModel(PROGRAM, data=data_sets(2)[1], seed=record.seed)
    fit = getattr(model, method)(seed=record.seed, **options)
    assert np.array_equal(record["mu"], fit["mu"])
    with pytest.raises(ArgumentError, match="no whole fit"):
        _ = record.fit


def own_method(model: ulam.StanModel, seed: int, point: float) -> dict[str, Any]:
    return {"value": model.log_density([point, 0.0]), "seed": seed}


def test_a_function_as_method_and_what_is_extracted() -> None:
    sets = data_sets(3)
    found = ulam.fit_many(PROGRAM, sets, own_method, point=0.5, progress=False)
    assert found[2]["value"] == ulam.StanModel(PROGRAM, data=sets[2]).log_density([0.5, 0.0])
    assert found[2]["seed"] == found[2].seed
    named = ulam.fit_many(PROGRAM, sets, extract=["mu"], **QUIET)
    assert named[0].names == ["mu"] and named[0]["mu"].shape == (2, 30)
    made = ulam.fit_many(PROGRAM, sets, extract=lambda fit: {"mean": fit["mu"].mean()}, **QUIET)
    assert made[0]["mean"] == named[0]["mu"].mean()


def test_names_and_files(tmp_path: Path) -> None:
    path = tmp_path / "third.json"
    path.write_text(json.dumps(data_sets(3)[2]))
    by_name = ulam.fit_many(PROGRAM, {"a": data_sets(3)[0], "b": str(path)}, **QUIET)
    assert [record.name for record in by_name] == ["a", "b"]
    listed = ulam.fit_many(PROGRAM, [data_sets(3)[0], path], **QUIET)
    assert listed[1].name == str(path) and np.array_equal(listed[1]["mu"], by_name[1]["mu"])


def test_memory_of_data_is_not_kept() -> None:
    """Data are asked for when their turn comes, a few ahead."""
    asked: list[int] = []
    done: list[int] = []

    class Lazy(list[Any]):
        def __getitem__(self, index: Any) -> Any:
            asked.append(index)
            assert len(set(asked)) - len(done) <= 8
            return data_sets(30)[index]

    ulam.fit_many(
        PROGRAM, Lazy([None] * 30), "optimize", workers=1, batch=1, progress=lambda update: done.append(update.index)
    )
    assert sorted(done) == list(range(30))


# ---------------------------------------------------------------- errors


def test_errors_of_data_sets_do_not_end_the_study(tmp_path: Path) -> None:
    sets: list[Any] = data_sets(5)
    sets[1] = {"N": -1, "y": []}
    sets[3] = tmp_path / "nowhere.json"
    updates: list[StudyProgress] = []
    found = ulam.fit_many(PROGRAM, sets, workers=1, **SHORT, progress=updates.append)
    assert set(found.errors) == {1, 3} and found.finished == {0, 2, 4}
    assert "DataError" in found.errors[1] and "nowhere.json" in found.errors[3]
    assert updates[-1].done == 5 and {update.index for update in updates if update.error} == {1, 3}
    with pytest.raises(ulam.StudyError, match="data set 1 has no fit: DataError.*'N' is -1"):
        _ = found[1]
    with pytest.raises(ulam.StudyError, match=r"data set 1 .*and 1 more") as raised:
        found.raise_errors()
    assert raised.value.index == 1
    with pytest.raises(ulam.StudyError, match=r"data set 1 \(.*nowhere.json\)"):
        ulam.fit_many(PROGRAM, sets[2:4], workers=1, errors="raise", **QUIET)
    assert "2 failed" in str(found) and "data set 3" in str(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "nuts"}, "method must be one of"),
        ({"drawz": 3}, "sample has no option 'drawz'"),
        ({"jobs": 3}, "workers="),
        ({"keep": False}, "give output"),
        ({"workers": 0}, "workers"),
        ({"batch": 0}, "batch"),
        ({"executor": "cluster"}, "executor must be one of 'threads', 'processes'"),
        ({"executor": 3}, "method submit"),
        ({"errors": "ignore"}, "errors must be"),
        ({"extract": "mu"}, "extract"),
        ({"seed": -1}, "seed"),
        ({"time_limit_each": -1}, "time_limit"),
        ({"datasets": {"N": 3, "y": [1, 2, 3]}}, r"datasets\['N'\]"),
        ({"datasets": "data.json"}, "datasets must be a sequence"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], message: str) -> None:
    arguments = {"datasets": data_sets(1), "progress": False} | options
    with pytest.raises(ArgumentError, match=message):
        ulam.fit_many(PROGRAM, **arguments)


def test_a_program_with_mistakes_ends_it_at_once() -> None:
    with pytest.raises(ulam.CompileError, match="normall"):
        ulam.fit_many("parameters { real x; } model { x ~ normall(0, 1); }", [{}], progress=False)


# ---------------------------------------------------------------- executors


class Unlike:
    """Has nothing but `submit`, and futures that can only be waited for."""

    class Job:
        def __init__(self, value: Any) -> None:
            self.value = value

        def result(self) -> Any:
            return self.value

    def submit(self, fn: Any, *arguments: Any) -> Any:
        return self.Job(fn(*arguments))


class Losing:
    """Loses the worker of a data set as often as `losses` says, and all that it holds with it."""

    def __init__(self, losses: dict[int, int], error: type[Exception]) -> None:
        self.losses, self.error, self.seen = losses, error, list[tuple[int, ...]]()

    def submit(self, fn: Any, plan: bytes, rest: bytes) -> Any:
        future: Future[Any] = Future()
        indices = tuple(each.index for each in pickle.loads(rest)[0])
        self.seen.append(indices)
        lost = [index for index in indices if self.losses.get(index, 0)]
        for index in lost:
            self.losses[index] -= 1
        if lost:
            future.set_exception(self.error("a worker ended"))
        else:
            future.set_result(fn(plan, rest))
        return future


def test_whatever_has_submit(study: Study) -> None:
    assert same(ulam.fit_many(PROGRAM, data_sets(6), seed=3, executor=Unlike(), **QUIET), study)


@pytest.mark.parametrize("batch", [1, 3])
def test_jobs_of_lost_workers_run_again(study: Study, batch: int) -> None:
    pool = Losing({1: 2, 4: 1}, ConnectionError)
    assert same(ulam.fit_many(PROGRAM, data_sets(6), seed=3, executor=pool, batch=batch, **QUIET), study)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_data_set_that_always_ends_its_worker_is_named(batch: int) -> None:
    pools: list[Losing] = []
    losses = {1: 1000}

    def make() -> Losing:
        pools.append(Losing(losses, BrokenExecutor))
        return pools[-1]

    found = ulam.fit_many(PROGRAM, data_sets(6), executor=make, batch=batch, **QUIET)
    assert found.errors.keys() == {1} and found.finished == {0, 2, 3, 4, 5}
    assert "its worker was lost 3 times, the last time: BrokenExecutor: a worker ended" in found.errors[1]
    assert sum(1 in each for pool in pools for each in pool.seen) == 3
    with pytest.raises(ulam.UlamError, match="give a function that makes it"):
        ulam.fit_many(PROGRAM, data_sets(2), executor=Losing({1: 1000}, BrokenExecutor), **QUIET)


def test_workers_that_never_begin_end_the_study() -> None:
    pools: list[Losing] = []

    def make() -> Losing:
        pools.append(Losing(dict.fromkeys(range(20), 1000), BrokenExecutor))
        return pools[-1]

    with pytest.raises(ulam.UlamError, match="the workers end before they have done anything.*a worker ended"):
        ulam.fit_many(PROGRAM, data_sets(20), executor=make, **QUIET)
    assert len(pools) < 10


def test_a_pool_whose_process_is_killed_is_made_anew(study: Study) -> None:
    killed: list[int] = []

    def kill(update: StudyProgress) -> None:
        if not killed:
            worker = multiprocessing.active_children()[-1]
            killed.append(worker.pid or 0)
            os.kill(killed[0], signal.SIGKILL)

    options = SHORT | {"executor": "processes", "workers": 1, "batch": 1}
    assert same(ulam.fit_many(PROGRAM, data_sets(6), seed=3, progress=kill, **options), study)
    assert killed


def test_errors_that_are_not_of_workers_end_the_study() -> None:
    with pytest.raises(ZeroDivisionError):
        ulam.fit_many(PROGRAM, data_sets(3), executor=Losing({1: 1}, ZeroDivisionError), **QUIET)


# ---------------------------------------------------------------- folders


def test_a_study_goes_on_in_its_folder(study: Study, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    ulam.fit_many(PROGRAM, data_sets(3), seed=3, output=folder, **QUIET)
    written = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert sorted(written) == ["fit-000000.ulam", "fit-000001.ulam", "fit-000002.ulam", "study.json"]
    updates: list[StudyProgress] = []
    found = ulam.fit_many(PROGRAM, data_sets(6), seed=3, output=folder, keep=False, progress=updates.append, **SHORT)
    assert same(found, study) and len(updates) == 3 and updates[-1].before == 3 and not found.records
    assert (folder / "fit-000001.ulam").stat().st_mtime_ns == written["fit-000001.ulam"]
    loaded = ulam.load_study(folder)
    assert same(loaded, study)
    assert np.array_equal(loaded[2].fit["mu"], study[2]["mu"]) and loaded[2].fit.model.param_unc_num() == 2
    assert np.array_equal(ulam.load(folder / "fit-000005.ulam")["sigma"], study[5]["sigma"])


def test_damaged_files_are_told_and_made_again(study: Study, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    ulam.fit_many(PROGRAM, data_sets(6), seed=3, output=folder, **QUIET)
    os.truncate(folder / "fit-000002.ulam", 900)
    (folder / "fit-000004.ulam").write_bytes((folder / "fit-000003.ulam").read_bytes())
    damaged = (folder / "fit-000005.ulam").read_bytes()
    (folder / "fit-000005.ulam").write_bytes(damaged[:-5000] + bytes([damaged[-5000] ^ 1]) + damaged[-4999:])
    with pytest.warns(StudyWarning, match="it is made again") as warned:
        found = ulam.fit_many(PROGRAM, data_sets(6), seed=3, output=folder, **QUIET)
    assert len(warned) == 3 and any("of another data set" in str(each.message) for each in warned)
    assert same(found, study) and same(ulam.load_study(folder), study)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 4}, "the seed"),
        ({"draws": 31}, "the options of the method"),
        ({"method": "optimize"}, "the method"),
        ({"model": PROGRAM.replace("5)", "6)")}, "the program"),
        ({"datasets": [*data_sets(2)[:1], data_sets(3)[2]]}, "data set 1"),
        ({"datasets": data_sets(1)}, "the number of data sets"),
        ({"extract": ["mu"]}, "extract"),
    ],
)
def test_a_folder_of_another_study_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    arguments: dict[str, Any] = {"model": PROGRAM, "datasets": data_sets(2), "seed": 3, "output": tmp_path, **QUIET}
    ulam.fit_many(**arguments)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    if change.get("method") == "optimize":
        for name in SHORT:
            arguments.pop(name)
    with pytest.raises(ArgumentError, match=f"is of another study: it differs in .*{said}"):
        ulam.fit_many(**(arguments | change))
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    inside: list[str] = []

    def again(update: StudyProgress) -> None:
        with pytest.raises(ArgumentError, match="is in use") as raised:
            ulam.fit_many(PROGRAM, data_sets(1), output=tmp_path, **QUIET)
        inside.append(str(raised.value))

    ulam.fit_many(PROGRAM, data_sets(1), output=tmp_path, progress=again, **SHORT)
    assert inside
    ulam.fit_many(PROGRAM, data_sets(1), output=tmp_path, **QUIET)


def test_failed_data_sets_are_written_and_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "late.json"
    folder = tmp_path / "study"
    sets: list[Any] = [data_sets(1)[0], path, {"N": 1}]
    found = ulam.fit_many(PROGRAM, sets, output=folder, **QUIET)
    assert found.errors.keys() == {1, 2} and ulam.load_study(folder).errors == found.errors
    assert "error-000001.json" in os.listdir(folder)
    path.write_text(json.dumps(data_sets(2)[1]))
    sets[2] = {"N": 0, "y": []}
    again = ulam.fit_many(PROGRAM, sets, output=folder, **QUIET)
    assert not again.errors and again.finished == {0, 1, 2} and "error-000001.json" not in os.listdir(folder)


def test_no_folder_of_a_study(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no folder of a study"):
        ulam.load_study(tmp_path)
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(DataError, match="damaged"):
        ulam.load_study(tmp_path)


def test_digests_tell_data_apart() -> None:
    assert digest_of({"y": [1.0, 2.5]}) == digest_of({"y": np.array([1.0, 2.5])})
    assert digest_of({"y": [1, 2], "x": 3}) == digest_of({"x": 3, "y": np.array([1, 2], np.int32)})
    different = [{"y": [1, 2]}, {"y": [2, 1]}, {"y": [[1, 2]]}, {"z": [1, 2]}, {"y": [1, 2], "z": 0}, {"y": "NaN"}]
    different += [{"y": {"1": 2}}, {"y": [[1], [2, 3]]}, {}]
    assert len({digest_of(each) for each in different}) == len(different)


# ---------------------------------------------------------------- ends


def test_a_time_limit_keeps_what_is_there(tmp_path: Path) -> None:
    slow = PROGRAM.replace("model {", "model { real s = 1; for (k in 1:2000) s += exp(-s * mu^2); ")
    sets = data_sets(3) + [{"N": 5, "y": [0] * 5}] * 2000
    ulam.fit_many(slow, sets[:1], "optimize", output=tmp_path, progress=False)
    threads = threading.active_count()
    found = ulam.fit_many(slow, sets, "optimize", output=tmp_path, workers=1, time_limit=1.0, progress=False)
    assert found.ended == "time limit" and 0 < len(found.finished) < 2003 and not found.errors
    assert found.missing and "the time limit was reached" in str(found)
    assert len(list(tmp_path.glob("fit-*.ulam"))) == len(found.finished)
    with pytest.raises(ulam.StudyError, match="ended before its turn"):
        _ = found[found.missing[-1]]
    assert threading.active_count() == threads


def test_a_limit_of_each_fit_is_its_error() -> None:
    endless = (
        "data { int n; } parameters { real x; } model { real s = 1; while (n > 0) s += 1e-300; x ~ normal(0, s); }"
    )
    found = ulam.fit_many(endless, [{"n": 0}, {"n": 1}, {"n": 0}], "optimize", time_limit_each=0.5, progress=False)
    assert found.finished == {0, 2} and found.errors[1] == "TimeLimit: the time limit of 0.5 s was reached"
    assert not found.ended


def test_an_interrupt_keeps_what_is_there() -> None:
    def interrupt(update: StudyProgress) -> None:
        if update.done == 3:
            os.kill(os.getpid(), signal.SIGINT)

    found = ulam.fit_many(PROGRAM, data_sets(4) * 50, workers=1, batch=1, progress=interrupt, **SHORT)
    assert found.ended == "interrupt" and 3 <= len(found.finished) < 200 and not found.errors
    assert found[0]["mu"].shape == (2, 30)


@pytest.mark.slow
def test_processes_end_with_the_study_and_with_the_caller() -> None:
    """Interrupted, the caller has what is there and no process; killed, its processes end, too."""
    code = """
import multiprocessing, os, signal, sys, ulam
def tell(update):
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)
    if sys.argv[1] == "interrupt" and update.done == 2: os.kill(os.getpid(), signal.SIGINT)
    if sys.argv[1] == "kill": os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    program = "data { real y; } parameters { real x; } model { x ~ normal(y, 1); }"
    options = {"executor": "processes", "workers": 1, "batch": 1, "progress": tell}
    study = ulam.fit_many(program, [{"y": k} for k in range(400)], "optimize", **options)
    print(study.ended, 2 <= len(study.finished) < 400, multiprocessing.active_children())
"""
    for how in ("interrupt", "kill"):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "script.py"
            script.write_text(code)
            done = subprocess.run([sys.executable, str(script), how], capture_output=True, text=True)
        lines = done.stdout.splitlines()
        if how == "interrupt":
            assert lines[-1] == "interrupt True []", done.stdout + done.stderr
        end = time.monotonic() + 30
        for pid in map(int, lines[0].split()):
            while Path(f"/proc/{pid}/cmdline").exists() and b"python" in Path(f"/proc/{pid}/cmdline").read_bytes():
                assert time.monotonic() < end, f"process {pid} is left"
                time.sleep(0.02)


def test_lines_and_bars_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("ulam.runtime.studies.progress.time.monotonic", lambda: now)
    shown = io.StringIO()
    display = StudyDisplay(shown)
    for done, error in ((1, ""), (2, "DataError: no\x1b[31m"), (3, "")):
        now += 4.0
        display(StudyProgress(done - 1, error, done, int(done > 1), 3, 0, now))
    display.close()
    assert shown.getvalue().splitlines() == [
        "data set 1: DataError: no\\x1b[31m",
        "2 of 3 data sets, 0.25 fits/s, 1 failed, 4 s left",
        "3 of 3 data sets, 0.25 fits/s, 1 failed",
    ]
    monkeypatch.setattr("ulam.runtime.terminal.color", "always")
    monkeypatch.setattr("ulam.runtime.sampling.progress.FIRST_SHOWN", 0.0)
    terminal = Terminal()
    display = StudyDisplay(terminal)
    display(StudyProgress(0, "", 3, 1, 3, 0, 2.0))
    display.close()
    assert "3 of 3 data sets, 1.5 fits/s, 1 failed" in terminal.getvalue()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def counted_compiles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    compiled = Compiler.compiled

    def counted(self: Compiler, name: str) -> Any:
        found.append(name)
        return compiled(self, name)

    monkeypatch.setattr(Compiler, "compiled", counted)
    return found


@pytest.mark.parametrize("has_folder", [True, False])
def test_a_program_is_compiled_once(has_folder: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By jobs that begin at the same time; without a folder for the cache, too."""
    if has_folder:
        monkeypatch.setenv("ULAM_CACHE_DIR", str(tmp_path))
    else:
        monkeypatch.setattr("ulam.runtime.cached_compiler.open_cache", lambda: None)
    found = counted_compiles(monkeypatch)
    program = f"data {{ real y; }} parameters {{ real x; }} model {{ x ~ normal(y, {1 + has_folder}); }}"
    study = ulam.fit_many(program, [{"y": k} for k in range(4)], "optimize", workers=4, batch=1, progress=False)
    assert not study.errors and len(found) == len(set(found)) > 1


def test_start_up_loads_nothing_of_it() -> None:
    code = (
        "import sys, ulam, ulam.runtime.model; print([m for m in sys.modules if 'studies' in m or 'matplotlib' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
