"""SIGINT and time limits: what is stopped, what is raised, and that nothing is left changed."""

from __future__ import annotations

import ctypes
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.emit import jit, primitives
from ulam.runtime._calls import owned
from ulam.runtime.c_library import library
from ulam.runtime.interrupts import Limit, checkpoint, held, stoppable
from ulam.runtime.native import BoundData, Context
from ulam.runtime.optimizers.termination import Termination
from ulam.tools import ulam_main as command
from ulam.tracing.tape.recorder import Recorder

pytestmark = [
    pytest.mark.usefixtures("quick_code"),
    pytest.mark.skipif(sys.platform == "win32", reason="there is nothing to stop by"),
]

LOOP = "parameters { real x; } model { real s = x; while (s > -10) { s += 1e-300; } target += s; }"
RECURSIVE = """
functions { void f(real x) { f(x * 0.5); } }
parameters { real x; }
model { f(x); x ~ normal(0, 1); }
"""
RECURSIVE_ONCE = """
functions { void f(real x) { f(x * 0.5); } }
parameters { real x; }
model { x ~ normal(0, 1); }
generated quantities { f(x); }
"""
ENDLESS_DATA = """
data { real y; }
transformed data { real s = y; while (s < 1) { s = s * 0.5; } }
parameters { real x; }
model { x ~ normal(s, 1); }
"""
KERNELS = """
data { int n; }
parameters { real<lower=0> a; }
model {
  matrix[n, n] m = diag_matrix(rep_vector(n + a, n)) + 0.5;
  for (i in 1:20) target += sum(cholesky_decompose(add_diag(m, i * a)));
}
"""
BUSY = """
parameters { real x; }
model {
  for (n in 1:30) {
    profile("inner") {
      vector[100 * n] v = rep_vector(x, 100 * n);
      matrix[10, 10] m = diag_matrix(rep_vector(1 + square(x), 10));
      print("v ", v[1], " ", m[1, 1]);
      target += -sum(square(v)) - log_determinant_spd(m);
    }
  }
}
generated quantities { real z = normal_rng(x, 1); }
"""
SOON = 0.15


class Signal(ctypes.Structure):
    """A part of `struct sigaction`: its beginning is the handler."""

    _fields_ = [("handler", ctypes.c_void_p), ("rest", ctypes.c_char * 248)]


def handlers() -> list[int | None]:
    """The handlers of SIGINT and SIGURG, as the system has them."""
    found: list[int | None] = []
    for number in (signal.SIGINT, signal.SIGURG):
        action = Signal()
        ctypes.CDLL(None).sigaction(int(number), None, ctypes.byref(action))
        found.append(action.handler)
    return found


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    """Each test leaves the handlers and the number of threads as they were."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    before, threads = handlers(), threading.active_count()
    yield
    assert handlers() == before
    assert threading.active_count() == threads
    assert library().ulam_scope_depth() == 0
    checkpoint()  # a step outside of calls hears nothing that was meant for a call


def at(x: float) -> Any:
    """The point of a program with one parameter."""
    return np.array([x])


def interrupt(after: float = SOON) -> threading.Timer:
    """SIGINT for this process, later."""
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def raised(call: Callable[[], Any], kind: type[BaseException] = KeyboardInterrupt) -> Any:
    """What a call that is interrupted raises."""
    timer = interrupt()
    try:
        with pytest.raises(kind) as found:
            call()
        return found.value
    finally:
        timer.cancel()  # a call that ended too soon fails this test, and no other
        timer.join()


@pytest.fixture(scope="module")
def loop(_quick_cache: str) -> ulam.StanModel:
    return ulam.StanModel(LOOP)


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("program", [LOOP, RECURSIVE])
def test_endless_programs_are_interrupted(program: str, level: int) -> None:
    if program == RECURSIVE and level == 3:
        return  # the call has no effect, and is not there
    model = ulam.StanModel(program, opt_level=level)
    raised(lambda: model.log_density(at(0.3)))
    raised(lambda: model.log_density_gradient(at(0.3)))


@pytest.mark.parametrize("long_from", [0, jit.LONG_MODULE])
def test_endless_recursion_in_what_runs_once_is_interrupted(long_from: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "ONCE", replace(jit.ONCE, long_from=long_from))
    model = ulam.StanModel(RECURSIVE_ONCE, opt_level=0, cache=False)
    raised(lambda: model.param_constrain(at(0.3), include_gq=True, rng=model.new_rng(1)))


def test_kernels_are_interrupted_and_the_context_is_as_it_was() -> None:
    long, short = (ulam.StanModel(KERNELS, {"n": n}) for n in (1800, 20))  # seconds on a processor of 50 GFlop/s
    expected = short.log_density_gradient(at(0.3))
    raised(lambda: long.log_density_gradient(at(0.3)))
    with pytest.raises(ulam.TimeLimit):
        long.log_density_gradient(at(0.3), time_limit=SOON)
    value, gradient = short.log_density_gradient(at(0.3))
    assert value == expected[0] and np.array_equal(gradient, expected[1])


def test_binding_is_interrupted() -> None:
    raised(lambda: ulam.StanModel(ENDLESS_DATA, {"y": 0.5}))
    with pytest.raises(ulam.TimeLimit):
        ulam.StanModel(ENDLESS_DATA, {"y": 0.5}, time_limit=SOON)
    assert ulam.StanModel(ENDLESS_DATA, {"y": 2.0}).log_density(at(2.0)) == 0


def test_time_limits(loop: ulam.StanModel) -> None:
    def limited(call: Callable[[], Any]) -> ulam.TimeLimit:
        begun = time.monotonic()
        with pytest.raises(ulam.TimeLimit, match="0.1") as found:
            call()
        assert time.monotonic() - begun >= 0.1
        return found.value

    limited(lambda: loop.log_density(at(0.3), time_limit=0.1))
    limited(lambda: loop.log_density_gradient(at(0.3), time_limit=0.1))
    limited(lambda: loop.laplace(time_limit=0.1))
    limited(lambda: loop.track_density(at(0.3), time_limit=0.1))
    assert limited(lambda: loop.optimize(init=[0.0], time_limit=0.1)).result is None
    assert loop.log_density(at(-20.0), time_limit=100) == -20
    for wrong in (0, -1, float("nan"), True, "1"):
        with pytest.raises(ValueError, match="positive number of seconds"):
            loop.log_density(at(-20.0), time_limit=wrong)  # pyright: ignore[reportArgumentType]


def test_a_limit_that_has_passed_ends_the_shortest_call() -> None:
    """Also one that takes less time than its watcher needs to begin."""
    model = ulam.StanModel("parameters { real x; } model { x ~ normal(0, 1); }")
    calls: list[Callable[[], Any]] = [
        lambda: model.log_density(at(0.3), time_limit=1e-9),
        lambda: model.sample(chains=2, warmup=2, draws=2, progress=False, time_limit=1e-9),
    ]
    for call in calls * 20:
        with pytest.raises(ulam.TimeLimit):
            call()


def test_the_limit_that_ends_first_is_told() -> None:
    def inner() -> None:
        stoppable(lambda: time.sleep(0.05) or checkpoint(), Limit.of(100))

    with pytest.raises(ulam.TimeLimit, match=r"0\.01 s"):
        stoppable(inner, 0.01)


def test_the_best_result_is_kept() -> None:
    model = ulam.StanModel("parameters { vector[2] x; } model { x ~ normal(0, 1); }")
    assert model.optimize(init=[3.0, 4.0]).converged  # compiles
    count = [0]

    def progress(*_: Any) -> None:
        count[0] += 1
        time.sleep(0.2)

    with pytest.raises(ulam.TimeLimit) as found:
        model.optimize(init=[3.0, 4.0], time_limit=0.1, progress=progress)
    best = found.value.result
    assert best.termination is Termination.TIME_LIMIT and best.n_iterations == count[0] == 1
    timers: list[threading.Timer] = []

    def interrupted(*_: Any) -> None:
        timers.append(interrupt(0.05))  # there is a result now, however long the first iteration took
        time.sleep(0.2)
        timers[-1].join()

    fit = model.optimize(init=[3.0, 4.0], progress=interrupted)
    assert fit.termination is Termination.INTERRUPTED and fit.n_iterations == len(timers) == 1
    assert model.optimize(init=[3.0, 4.0]).converged


def test_many_starts_end_and_keep_what_they_have(loop: ulam.StanModel) -> None:
    inits = [[-20.0], [0.3], [-30.0], [0.5]]  # the second and the fourth never get anywhere
    with pytest.raises(ulam.TimeLimit) as found:
        loop.optimize(n_starts=4, init=inits, iter=3, time_limit=1.5)
    assert len(found.value.result.starts) == 4 and found.value.result.log_density <= -20
    timer = interrupt(0.3)
    fit = loop.optimize(n_starts=4, init=inits, iter=3)
    timer.join()
    assert fit.termination is Termination.INTERRUPTED and fit.log_density <= -20


def test_calls_of_other_threads_end_with_interrupted(loop: ulam.StanModel) -> None:
    """However late they begin: SIGINT is sent when both are in a call that can be stopped."""
    ends: list[BaseException] = []
    handles: dict[threading.Thread, int] = {}
    both_begun = threading.Barrier(3)

    def call(work: Callable[[], Any], late: float) -> None:
        handles[threading.current_thread()] = library().ulam_thread_handle()
        time.sleep(late)
        try:
            stoppable(lambda: (both_begun.wait(20), work()))
        except BaseException as error:
            ends.append(error)

    works = [(lambda: loop.log_density(at(0.3)), 0.0), (lambda: loop.optimize(init=[0.3]), 2 * SOON)]
    threads = [threading.Thread(target=call, args=work) for work in works]
    for thread in threads:
        thread.start()
    both_begun.wait(20)
    try:
        raised(lambda: time.sleep(60))
    finally:
        heard = [ended_by_itself(thread, handles[thread]) for thread in threads]
    assert heard == [True] * 2 and [type(end) for end in ends] == [ulam.Interrupted] * 2


def ended_by_itself(thread: threading.Thread, handle: int) -> bool:
    """Whether a thread ends soon; one that did not hear of SIGINT is stopped, for it would never end."""
    thread.join(20)
    if not thread.is_alive():
        return True
    library().ulam_thread_stop(handle, 1)
    thread.join(20)
    return False


def ends_in_a_thread(call: Callable[[Callable[[], None]], Any]) -> list[Any]:
    """How a call in another thread ends, which is given what sends SIGINT, and returns when the main thread heard."""
    ends: list[Any] = []
    heard = threading.Event()

    def sent() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert heard.wait(30)

    def work() -> None:
        try:
            ends.append(call(sent))
        except BaseException as error:
            ends.append(type(error))

    thread = threading.Thread(target=work)
    try:
        thread.start()
        time.sleep(20)
    except KeyboardInterrupt:
        pass  # what follows is the same if none was sent
    heard.set()
    if not ended_by_itself(thread, STOPPED_BY_TEST[0]):
        ends.append("not ended by SIGINT")
    return ends


STOPPED_BY_TEST: list[int] = [0]
"""The thread that `ends_in_a_thread` ends if SIGINT does not."""

BEYOND = """
parameters { real x; }
transformed parameters { real y = x; while (y > -10) { y += 1e-300; } }
model { target += y; }
"""
PUBLIC_CALLS: dict[str, Callable[[str], Callable[[], Any]]] = {
    "StanModel": lambda note: partial(ulam.StanModel, ENDLESS_DATA + note, {"y": 0.5}),
    "log_density": lambda note: partial(ulam.StanModel(LOOP + note).log_density, at(0.3)),
    "log_density_gradient": lambda note: partial(ulam.StanModel(LOOP + note).log_density_gradient, at(0.3)),
    "time_gradients": lambda note: partial(ulam.StanModel(LOOP + note).time_gradients, at(0.3), 3),
    "log_density_hessian": lambda note: partial(ulam.StanModel(LOOP + note).log_density_hessian, at(0.3)),
    "param_constrain": lambda note: partial(ulam.StanModel(BEYOND + note).param_constrain, at(0.3), include_tp=True),
    "optimize": lambda note: partial(ulam.StanModel(LOOP + note).optimize, init=[0.3]),
    "many starts": lambda note: partial(ulam.StanModel(LOOP + note).optimize, n_starts=2, init=0.3),
    "laplace": lambda note: partial(ulam.StanModel(LOOP + note).laplace, {"x": 0.3}, draws=3),
    "pathfinder": lambda note: partial(ulam.StanModel(LOOP + note).pathfinder, init={"x": 0.3}, num_paths=2),
    "generate_quantities": lambda note: partial(
        ulam.StanModel(BEYOND + note).generate_quantities, {"x": np.array([0.3])}
    ),
    "track_density": lambda note: partial(ulam.StanModel(LOOP + note).track_density, at(0.3)),
    "explain": lambda note: partial(ulam.StanModel(LOOP + note).explain, at(0.3)),
}


@pytest.mark.parametrize("name", PUBLIC_CALLS)
def test_a_call_in_a_thread_is_interrupted_from_its_first_line_on(name: str) -> None:
    """SIGINT when it enters its first function of another module, or one of the next: before anything is compiled."""
    for step in (1, random.Random(name).randrange(2, 40)):
        call = PUBLIC_CALLS[name](f"// {step}")

        def traced(sent: Callable[[], None], call: Callable[[], Any] = call, step: int = step) -> Any:
            steps = iter(range(1, 10**9))
            here = (
                "model.py", "constrained_model.py", "sampled_model.py", "second_order.py", "tracked_model.py",
                "interrupts.py",
                Path(__file__).name,
            )  # fmt: skip
            STOPPED_BY_TEST[0] = library().ulam_thread_handle()

            def on_call(frame: Any, *_: Any) -> None:
                code = frame.f_code
                is_other = Path(code.co_filename).name not in here and code.co_name != "is_loaded"
                if is_other and next(steps) == step:
                    sys.settrace(None)
                    sent()

            sys.settrace(on_call)
            try:
                return call()
            finally:
                sys.settrace(None)

        assert ends_in_a_thread(traced) == [ulam.Interrupted]


def test_an_interrupt_while_a_class_is_made() -> None:
    """As while a module is being imported: Python before 3.12 makes a RuntimeError of it."""

    class Interrupting:
        def __set_name__(self, *_: object) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stoppable(lambda: type("Made", (), {"attribute": Interrupting()}))


def test_sigint_after_the_last_step_of_a_call() -> None:
    assert ends_in_a_thread(lambda sent: stoppable(sent)) == [ulam.Interrupted]
    assert ends_in_a_thread(lambda sent: stoppable(lambda: sent() or "result", kept=True)) == ["result"]


@pytest.mark.parametrize("where", ["main", "other"])
def test_a_single_evaluation_is_interrupted_in_its_first_milliseconds(loop: ulam.StanModel, where: str) -> None:
    """Runs whose like was short begin without a handler: what comes before it is there is heard all the same."""
    for after in (0.001, 0.003, 0.006, 0.012, 0.018):
        begun, ended, sent = threading.Event(), threading.Event(), []

        def short_then_endless(_: Any = None, begun: threading.Event = begun) -> None:
            STOPPED_BY_TEST[0] = library().ulam_thread_handle()
            assert [loop.log_density(at(-20.0)) for _ in range(5)] == [-20.0] * 5
            begun.set()
            loop.log_density(at(0.3))

        def send(
            after: float = after,
            begun: threading.Event = begun,
            ended: threading.Event = ended,
            sent: list[bool] = sent,
        ) -> None:
            while not begun.wait(0.05):
                if ended.is_set():  # it failed before it began: a signal would end another test
                    return
            time.sleep(after)
            os.kill(os.getpid(), signal.SIGINT)
            if where == "main":
                if not ended.wait(20):
                    sent.append(True)
                    library().ulam_thread_stop(STOPPED_BY_TEST[0], 1)

        interval = sys.getswitchinterval()
        sys.setswitchinterval(30)  # who waits for `begun` goes on when the evaluation runs
        sender = threading.Thread(target=send)
        sender.start()
        try:
            if where == "other":
                assert ends_in_a_thread(short_then_endless) == [ulam.Interrupted]
            else:
                with pytest.raises(KeyboardInterrupt):
                    short_then_endless()
                assert not sent
        finally:
            sys.setswitchinterval(interval)
            ended.set()
            sender.join()


def test_a_handler_that_raises_nothing(loop: ulam.StanModel) -> None:
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    raised(lambda: loop.log_density(at(0.3)), ulam.Interrupted)
    assert heard == [signal.SIGINT]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_a_short_entry_that_turns_out_to_be_long(loop: ulam.StanModel) -> None:
    """Short runs take no share of the handlers; one that is long after all is found by the watcher."""
    assert [loop.log_density(at(-20.0)) for _ in range(5)] == [-20.0] * 5
    raised(lambda: loop.log_density(at(0.3)))


def test_the_host_keeps_default_and_ignored_signals(loop: ulam.StanModel) -> None:
    for action in (signal.SIG_IGN, signal.SIG_DFL):
        signal.signal(signal.SIGINT, action)
        seen: list[list[int | None]] = []
        stoppable(lambda seen=seen: seen.append(handlers()))
        assert (seen[0][0] or 0) == int(action)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_contexts_of_c_touch_no_handler(loop: ulam.StanModel) -> None:
    before = handlers()
    loop.log_density(at(-20.0))
    unit = next(unit for unit in loop.loaded_units() if unit.name == "value_propto")
    context, theta, seen = Context(stoppable=False), np.array([0.3]), []

    def run() -> None:
        context.run_value(context.address, unit.entry, unit.bound, theta.ctypes.data, 1)

    theta[0] = -11 + 1e-15  # ends at once
    run()
    seen.append(handlers())
    assert seen == [before] and context.value.value < -10


def test_steps_that_are_held_are_interrupted_at_checkpoints() -> None:
    done: list[str] = []

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        done.append("not interrupted here")
        checkpoint()
        done.append("but here")

    with pytest.raises(KeyboardInterrupt):
        stoppable(lambda: held(work))
    assert done == ["not interrupted here"]


def test_stops_at_random_moments_leave_everything_usable(capfd: pytest.CaptureFixture[str]) -> None:
    """Of a program that allocates, prints and has profile regions; what it computes afterwards has the same bits."""
    model, rng = ulam.StanModel(BUSY, capture_stan_prints=False), random.Random(1)
    expected, constrained = model.log_density_gradient(at(0.3)), model.new_rng(1)
    stopped = 0
    for _ in range(150):
        limit = rng.uniform(1e-5, 6e-4)
        try:
            model.log_density_gradient(at(0.3), time_limit=limit)
            model.param_constrain(at(0.3), include_gq=True, rng=constrained, time_limit=limit)
        except ulam.TimeLimit:
            stopped += 1
    assert stopped > 10
    value, gradient = model.log_density_gradient(at(0.3))
    assert value == expected[0] and np.array_equal(gradient, expected[1])
    assert np.isfinite(model.param_constrain(at(0.3), include_gq=True, rng=constrained)).all()
    assert model.profiler is not None and model.profiler.overhead().inside >= 0
    capfd.readouterr()


def test_rounding_of_the_caller_is_restored(loop: ulam.StanModel) -> None:
    libm = ctypes.CDLL("libm.so.6") if sys.platform == "linux" else None
    if libm is None:
        pytest.skip("fesetround is looked for on Linux")
    upward = {"x86_64": 0x800, "aarch64": 0x400000}.get(os.uname().machine)
    if upward is None:
        pytest.skip("the number of the rounding mode is not known here")
    libm.fesetround(upward)
    try:
        with pytest.raises(ulam.TimeLimit):
            loop.log_density(at(0.3), time_limit=0.05)
        assert libm.fegetround() == upward
    finally:
        libm.fesetround(0)


def test_a_child_of_fork_has_the_handlers_of_the_host() -> None:
    before = handlers()

    def child() -> int:
        pid = os.fork()
        if pid == 0:
            library().ulam_scope_leave(0)
            os._exit(handlers() != before)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert stoppable(child) == 0


@pytest.mark.parametrize("words", [["optimize"], ["log-density", "--unconstrained", "0.3"], ["profile", "--threads=2"]])
def test_commands_have_a_time_limit(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = tmp_path / "loop.stan", tmp_path / "out.csv"
    path.write_text(LOOP.replace("target += s;", 'profile("a") { target += s; }'))
    arguments = [words[0], str(path), *words[1:], "--time-limit", "0.5", "--output", str(output)]
    assert command.main([*arguments, *(["--init", '{"x": 0.3}'] if words[0] != "log-density" else [])]) == 124
    assert "the time limit of 0.5 s was reached" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [path]
    assert command.main(["optimize", str(path), "--time-limit", "0"]) == 2
    assert "--time-limit" in capsys.readouterr().err


INTERRUPTED_COMMANDS: dict[str, list[str]] = {
    "optimize": ["--init", '{"x": 0.3}'],
    "optimize --starts": ["--starts", "2", "--init", "0.1"],
    "laplace": ["--mode", '{"x": 0.3}'],
    "pathfinder": ["--init", '{"x": 0.3}'],
    "profile": ["--init", '{"x": 0.3}'],
    "bench": ["--vs-opt-level", "0", "--init", '{"x": 0.3}'],
    "trace": ["--density", "--unconstrained", "0.3"],
    "log-density": ["--unconstrained", "0.3"],
}


@pytest.mark.parametrize("name", INTERRUPTED_COMMANDS)
def test_an_interrupted_command_says_so(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In one line, where there is no result to show: typer would make a bare exit status of KeyboardInterrupt."""
    path = tmp_path / "loop.stan"
    path.write_text(LOOP.replace("target += s;", 'profile("a") { target += s; }'))
    output = [] if name in ("log-density", "bench") else ["--output", str(tmp_path / "out")]
    timer = interrupt(0.3)
    assert command.main([name.split()[0], str(path), "-O", "0", *INTERRUPTED_COMMANDS[name], *output]) == 130
    timer.join()
    assert capsys.readouterr().err == "ulam: interrupted\n"
    assert list(tmp_path.iterdir()) == [path]


def _bound() -> Any:
    return BoundData(4)


def _handle() -> Any:
    return ulam.StanModel("parameters { real x; } model { x ~ normal(0, 1); }").native_handle().keep_alive


@pytest.mark.parametrize("made", [_bound, Context, Recorder, _handle])
def test_an_interrupt_that_comes_while_memory_is_freed_is_heard(made: Callable[[], Any]) -> None:
    """In what Python runs when an object goes, `__del__` say, the exception would be told to nobody."""
    address = ctypes.cast(ctypes.CDLL(None)["raise"], ctypes.c_void_p).value
    assert address is not None
    going = [made(), owned(int(signal.SIGINT), address)]  # the last goes first
    with pytest.raises(KeyboardInterrupt):
        going.clear()
    assert not going


def test_no_python_code_runs_when_an_object_goes() -> None:
    """But for what shows lines to debuggers, which has to be before its code goes."""
    root = Path(__file__).resolve().parents[2]
    folders = ("api", "dialects", "embed", "emit", "frontend", "library", "passes", "runtime", "tools", "tracing")
    found = {
        str(path.relative_to(root))
        for folder in folders
        for path in (root / folder).rglob("*.py")
        if re.search(r"def __del__|weakref\.(?:finalize|ref|WeakMethod)\(", path.read_text(encoding="utf-8"))
    }
    assert found == {"runtime/profiling/loaded_code.py"}


def test_a_command_is_interrupted_before_it_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def resolved(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(command.TableCommand, "make_context", resolved)
    assert command.main(["check", "missing.stan"]) == 130
    assert capsys.readouterr().err == "ulam: interrupted\n"


@pytest.mark.parametrize("when", ["imported", "over"])
@pytest.mark.parametrize("name", ["ulam", "stan_opt"])
def test_a_console_script_is_interrupted_where_its_command_does_not_run(name: str, when: str, tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from types import SimpleNamespace\n"
        "from ulam.tools import entry\n"
        "def interrupt(*_): os.kill(os.getpid(), signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    )
    if when == "imported":
        code += f"sys.meta_path.insert(0, SimpleNamespace(find_spec=interrupt)); entry.{name}()"
    else:
        module = {"ulam": "ulam_main"}.get(name, name)
        code += f"sys.modules['ulam.tools.{module}'] = SimpleNamespace(main=lambda begin: 0)\n"
        code += f"entry.{name}(); interrupt()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (ended.returncode, ended.stderr) == (130, f"{name.replace('_', '-')}: interrupted\n")


def test_the_second_interrupt_ends_a_command(tmp_path: Path) -> None:
    """As where the first has to wait for LLVM, for which a loop stands here."""
    code = (
        "import signal, time; from ulam.runtime.interrupts import as_command, held\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "as_command(lambda: held(lambda: print('on', flush=True) or [sum(range(1000)) for _ in range(10**9)]))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stdout is not None and process.stdout.readline()
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == -signal.SIGINT


# ---------------------------------------------------------------- what may be left at any place

MASKED = {
    "arena", "context", "context_pool", "debugger", "external", "guard_pages", "interrupts", "memory", "print",
    "profile", "profile_times", "line_sampler", "native_handle", "trace", "trace_contents", "trace_draws",
    "trace_find",
}  # fmt: skip
"""Files of the C runtime that allocate, lock or print: between `ulam_mask` and `ulam_unmask`, or outside of runs."""
OUTSIDE_OF_RUNS = {"embed", "sampling", "model", "json", "shim"}
"""Folders of the C runtime whose functions make runs, or prepare them, and are not called by them."""

LEFT_ANYWHERE = re.compile(
    r"ulam_\w+|random_\w+|legacy_\w+|mem(cpy|move|set|cmp)|bcmp|c?(exp|log|sin|cos|tan|sqrt|pow|abs)f?|fabs|f(ma|max|min|mod)"
    r"|expm1|log1pf?|log(2|10)|exp(2|10)|cbrt|a(cos|sin|tan)h?|atan2|(sin|cos|tan)h|erfc?|[lt]gamma|lgamma_r|hypot|frexp|ldexp"
    r"|[jy]n|round|floor|ceil|trunc|rint|nearbyint|lround|logb|scalbn|copysign|_GLOBAL_OFFSET_TABLE_|__tls_get_addr"
    r"|__(mul|div)dc3|__popcountdi2|c(real|imag|arg)|__cpu_(indicator_init|model|features2)"
)
"""Functions that hold nothing, and take nothing: a signal may leave them."""


@pytest.mark.skipif(not (shutil.which("cc") and shutil.which("nm")), reason="there is no C compiler")
def test_kernels_hold_nothing(tmp_path: Path) -> None:
    """A kernel that allocates, locks, prints, or has variables of its own could not be left by a signal."""
    folder = Path(__file__).parents[2] / "runtime" / "c"
    sources = [path for path in sorted(folder.rglob("*.c")) if path.parent.name not in OUTSIDE_OF_RUNS]
    kernels = [path for path in sources if path.stem not in MASKED]
    assert len(kernels) > 20
    flags = ["-std=gnu11", "-O0", "-fPIC", f"-I{folder}", f"-I{np.get_include()}"]
    symbols: list[tuple[str, str, str]] = []
    for path in kernels:
        target = tmp_path / f"{path.parent.name}_{path.stem}.o"
        subprocess.run(["cc", *flags, "-c", str(path), "-o", str(target)], check=True)
        listed = subprocess.run(["nm", str(target)], capture_output=True, text=True, check=True).stdout.splitlines()
        symbols += [(path.name, line.split()[-2], line.split()[-1]) for line in listed]
    defined = {name for _, kind, name in symbols if kind in "TW"}
    for file, kind, name in symbols:
        assert kind != "U" or name in defined or LEFT_ANYWHERE.fullmatch(name), f"{file} uses {name}"
        assert kind not in "bBdDC", f"{file} has the variable {name}"


def test_emitted_code_calls_nothing_else() -> None:
    for name in primitives.LIBM:
        assert LEFT_ANYWHERE.fullmatch(name), name
