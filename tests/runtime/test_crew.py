"""Threads and processes that work for one call end when it is interrupted, and when it or its process ends."""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor

import pytest

import ulam
from ulam.runtime.crew import Crew
from ulam.runtime.interrupts import stoppable
from ulam.runtime.optimizers import multi_start
from ulam.runtime.optimizers.optimize import optimize
from ulam.runtime.optimizers.termination import Termination

pytestmark = [
    pytest.mark.usefixtures("quick_code"),
    pytest.mark.skipif(sys.platform != "linux", reason="other systems have no sockets with a name and without a file"),
]

ENDLESS_BEYOND_0 = """
parameters { real x; }
model { real s = x; while (s > 0) { s += 1e-300; } x ~ normal(-20, 1); }
"""
SECONDS = 30.0


def copy_of(pickled: bytes) -> Crew:
    """The crew in the process where a job arrives; this one will do."""
    crew = pickle.loads(pickled)
    assert isinstance(crew, Crew)
    return crew


@pytest.mark.parametrize("how", ["stop", "close"])
def test_members_elsewhere_hear_the_end(how: str) -> None:
    crew = Crew()
    pickled = pickle.dumps(crew)
    member = copy_of(pickled)
    assert member is not crew and not member.stopped.wait(0.1)
    assert copy_of(pickled) is member  # of many jobs
    getattr(crew, how)()
    assert member.stopped.wait(SECONDS)
    with pytest.raises(ulam.Interrupted):
        copy_of(pickled).run(lambda: None)  # that began later


def test_a_crew_that_was_stopped_before_it_travels() -> None:
    crew = Crew()
    crew.stop()
    assert copy_of(pickle.dumps(crew)).stopped.is_set()


def test_crews_of_other_machines_are_not_looked_for() -> None:
    function, (name, machine) = Crew().__reduce__()
    assert not function(name, f"not {machine}").stopped.wait(0.1)


def test_a_child_of_fork_does_not_keep_the_call_alive() -> None:
    crew = Crew()
    member = copy_of(pickle.dumps(crew))
    child = os.fork()
    if child == 0:
        time.sleep(SECONDS)
        os._exit(0)
    crew.close()
    try:
        assert member.stopped.wait(SECONDS / 2)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_the_process_of_the_call_is_killed() -> None:
    code = (
        "import pickle, time; from ulam.runtime.crew import Crew\n"
        "crew = Crew(); print(pickle.dumps(crew).hex(), flush=True); time.sleep(100)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        member = copy_of(bytes.fromhex(process.stdout.readline()))
        assert not member.stopped.is_set()
        process.kill()
    assert member.stopped.wait(SECONDS)


class Told(io.StringIO):
    """Standard error that sends SIGINT to this process, a little after the first start has ended."""

    def write(self, text: str) -> int:
        if "start 1 of" in text:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        return super().write(text)


def test_processes_end_when_the_call_is_interrupted() -> None:
    """Only this one gets the signal. The second start never ends by itself; the third is in the queue of the pool."""
    model, killed = ulam.StanModel(ENDLESS_BEYOND_0), threading.Event()
    inits = [[-20.5], [0.3], [0.5]]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        worker = pool.submit(os.getpid).result()
        watchdog = threading.Timer(SECONDS, lambda: (killed.set(), os.kill(worker, signal.SIGKILL)))
        watchdog.start()
        found = stoppable(
            lambda: multi_start.run(optimize, model, 3, pool, init=inits, refresh=1, file=Told(), algorithm="lbfgs"),
            kept=True,
        )
        assert found.termination is Termination.INTERRUPTED and abs(found.unconstrained[0] + 20) < 1e-3
        assert [start.number for start in found.starts] == [1]
        assert pool.submit(os.getpid).result() == worker  # it is free again
        watchdog.cancel()
    assert not killed.is_set()
