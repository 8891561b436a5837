"""What docs/threads-and-processes.md says of fork and of the interpreter lock; tests of threads are in
test_memory_and_threads.py, of spawned processes in tests/studies.
"""

from __future__ import annotations

import os
import pickle
import threading
import time

import numpy as np
import pytest
from forks import in_child

import ulam

pytestmark = [
    pytest.mark.usefixtures("quick_code"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork"),
]

PROGRAM = "parameters { vector[3] x; } model { x ~ normal(0, 1); }"
LONG = "parameters { real x; } model { real s = 0; for (k in 1:1000000) s += exp(-s * x); x ~ normal(s, 1); }"
SHORT = {"chains": 2, "warmup": 50, "draws": 20, "progress": False}
POINT = [0.5, -1.0, 2.0]


@pytest.fixture(scope="module")
def model() -> ulam.StanModel:
    return ulam.StanModel(PROGRAM)


def test_a_child_of_fork_evaluates_samples_and_compiles(model: ulam.StanModel) -> None:
    value, _ = model.log_density_gradient(POINT)
    fit = model.sample(**SHORT)  # whose threads have ended
    assert in_child(lambda: model.log_density_gradient(POINT)[0] == value)
    assert in_child(lambda: bool((model.sample(**SHORT)["x"] == fit["x"]).all()))
    other = PROGRAM.replace("1)", "3)")
    assert in_child(lambda: ulam.StanModel(other, cache=False).log_density(POINT) > value)
    assert model.log_density_gradient(POINT)[0] == value


def test_children_of_fork_stop_and_go_on(model: ulam.StanModel) -> None:
    """The thread that looks for short evaluations that are not had waited at fork: one child in ten waited for ever."""
    value = model.log_density(POINT)

    def evaluates() -> bool:
        limited = [model.log_density(POINT, time_limit=60) for _ in range(20)]
        return limited == [value] * 20

    for number in range(40):
        for _ in range(3):
            model.log_density(POINT)
        time.sleep(0.002 * (number % 8))
        assert in_child(evaluates)


def test_fork_while_another_thread_samples(model: ulam.StanModel) -> None:
    value, _ = model.log_density_gradient(POINT)
    model.sample(**SHORT)  # all is compiled: a fork beside that is another matter
    ended = threading.Event()

    def keep_sampling() -> None:
        while not ended.is_set():
            model.sample(**{**SHORT, "draws": 500})

    thread = threading.Thread(target=keep_sampling)
    thread.start()
    try:
        for _ in range(3):
            assert in_child(lambda: model.log_density_gradient(POINT)[0] == value)
            assert in_child(lambda: model.sample(**SHORT)["x"].shape == (2, 20, 3))
    finally:
        ended.set()
        thread.join()


def test_evaluations_release_the_interpreter_lock() -> None:
    model = ulam.StanModel(LONG)
    model.log_density([1.0])
    threads = [threading.Thread(target=model.log_density, args=([1.0],)) for _ in range(4)]
    for thread in threads:
        thread.start()
    steps = 0
    while any(thread.is_alive() for thread in threads):
        steps += 1
    assert steps > 50  # with the lock held there would be one or two for each thread


def test_results_and_models_travel(model: ulam.StanModel) -> None:
    again = pickle.loads(pickle.dumps(model))
    assert again.log_density(POINT) == model.log_density(POINT)
    fit = model.sample(**SHORT)
    assert np.array_equal(pickle.loads(pickle.dumps(fit))["x"], fit["x"])
