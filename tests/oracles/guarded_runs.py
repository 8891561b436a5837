"""Runs programs with their data under guard pages, each in a process of its own, and says what went wrong.

    outcome = run_case(Case("seed 7", text, data_sets), RunOptions())

An access outside of its block ends that process; the run goes on behind it in a new one. What is reported: such
accesses, values that depend on what memory held before (found by filling new memory differently in a second
evaluation), differences between levels, and errors that are not ulam's own.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from guard_pages import GARBAGE, configure, counts, guarded_arrays

import ulam
from ulam.emit import jit
from ulam.runtime.errors import ArgumentError, InternalCompilerError, UlamError

QUICK = jit.Pipeline(speed=0, vectorize=False)
CLOSE = 1e-8
"""Relative difference of values and gradients of two levels that rounding explains."""


@dataclass(frozen=True)
class Case:
    """A program and data sets; `path`: where the program stands, for includes and messages."""

    name: str
    source: str
    data: Sequence[Any] = (None,)


@dataclass(frozen=True)
class RunOptions:
    """`levels` for every data set, `first_levels` for the first one beside these. `seconds`: of processor time, for one
    data set at one level. `whole_lines`: code as it is emitted for the runtime without guard pages.
    `second`: whether second derivatives are asked for, too.
    """

    levels: tuple[int, ...] = (0, 3)
    first_levels: tuple[int, ...] = (4,)
    seconds: float = 20.0
    gigabytes: int = 6
    whole_lines: bool = False
    second: bool = False
    seed: int = 1


@dataclass
class Outcome:
    """What was seen. Each entry of a list names the data set and level."""

    name: str
    runs: int = 0
    results: Counter[str] = field(default_factory=Counter)
    """Kinds of results: `value`, or the class of the error."""
    faults: list[dict[str, Any]] = field(default_factory=list)
    uninitialized: list[dict[str, Any]] = field(default_factory=list)
    differences: list[dict[str, Any]] = field(default_factory=list)
    unexpected: list[dict[str, Any]] = field(default_factory=list)
    stopped: list[dict[str, Any]] = field(default_factory=list)
    """Runs that took too long."""
    blocks: int = 0
    unguarded: int = 0

    @property
    def is_good(self) -> bool:
        return not (self.faults or self.uninitialized or self.differences or self.unexpected)

    def to_json(self) -> str:
        return json.dumps(vars(self))


# ---------------------------------------------------------------- in the child


def _numbers(array: Any) -> list[str]:
    """Numbers to the bit, as text (JSON has neither NaN nor infinities)."""
    return [float(x).hex() for x in np.ravel(array)]


def _evaluations(model: ulam.StanModel, options: RunOptions, theta: Any) -> Iterator[tuple[str, list[str]]]:
    """What is asked of a model; each is evaluated by the caller's turn."""
    value, gradient = model.log_density_gradient(theta)
    yield "gradient", _numbers([value, *gradient])
    yield "value", _numbers([model.log_density(theta, propto=False)])
    rng = model.new_rng(5)
    constrained = model.param_constrain(theta, include_tp=True, include_gq=True, rng=rng)
    yield "constrained", _numbers(constrained)
    parameters = model.param_constrain(theta)
    if np.all(np.isfinite(parameters)):
        yield "unconstrained", _numbers(model.param_unconstrain(parameters))
    if options.second and theta.size:
        yield "product", _numbers(model.log_density_hessian_vector_product(theta, np.ones(theta.size))[1])


def _filled_results(model: ulam.StanModel, options: RunOptions, garbage: int, left: bool) -> dict[str, Any]:
    """The results of all evaluations, the last of which may be an error, with new memory filled with `garbage`."""
    configure(left=left, garbage=garbage, whole_lines=options.whole_lines)
    size = model.param_unc_num()
    theta = np.random.default_rng(options.seed).uniform(-1, 1, size)
    found: dict[str, Any] = {}
    asked = _evaluations(model, options, theta)
    while True:
        try:
            name, numbers = next(asked)
        except StopIteration:
            return found
        except UlamError as error:
            return {**found, "error": [type(error).__name__, str(error)]}
        found[name] = numbers


def _run(case: Case, options: RunOptions, data: Any, level: int) -> dict[str, Any]:
    """One data set at one level: results under the first filling, and which differ under the second."""
    configure(garbage=GARBAGE[0], whole_lines=options.whole_lines)
    jit.HOT = QUICK if level == 0 else jit.Pipeline()
    try:
        model = ulam.StanModel(case.source, data, opt_level=level)
        found = _filled_results(model, options, GARBAGE[0], False)
        again = _filled_results(model, options, GARBAGE[1], True)
    except InternalCompilerError as error:
        return {"unexpected": f"{type(error).__name__}: {error}"}
    except (UlamError, ArgumentError) as error:
        return {"error": [type(error).__name__, str(error)]}
    except Exception as error:
        return {"unexpected": f"{type(error).__name__}: {error}"}
    changed = [name for name in {**found, **again} if found.get(name) != again.get(name)]
    if changed:
        found["uninitialized"] = [{name: [found.get(name), again.get(name)]} for name in changed]
    return found


def _child(case: Case, options: RunOptions, steps: Sequence[tuple[int, int]], report: int, errors: int) -> None:
    """Takes the steps one by one, and writes a line for each that was begun and each that was done."""

    def tell(line: Mapping[str, Any]) -> None:
        text = memoryview((json.dumps(line) + "\n").encode())
        while text:
            text = text[os.write(report, text) :]

    os.dup2(errors, 2)
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (options.gigabytes << 30, options.gigabytes << 30))
    with guarded_arrays():
        for data, level in steps:
            tell({"step": [data, level]})
            signal.setitimer(signal.ITIMER_VIRTUAL, options.seconds)
            before = counts()
            found = _run(case, options, case.data[data], level)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            blocks, unguarded = (after - b for after, b in zip(counts(), before, strict=True))
            tell({"step": [data, level], "found": found, "blocks": blocks, "unguarded": unguarded})


# ---------------------------------------------------------------- in the parent


def run_case(case: Case, options: RunOptions | None = None) -> Outcome:
    """All data sets of a program at all levels."""
    options = options or RunOptions()
    outcome = Outcome(case.name)
    results: dict[tuple[int, int], dict[str, Any]] = {}
    steps = [(d, level) for d in range(len(case.data)) for level in options.levels]
    steps[len(options.levels) : len(options.levels)] = [(0, level) for level in options.first_levels]
    with _cache_folder():
        while steps:
            done, begun, ended, errors = _in_child(case, options, steps)
            for line in done:
                step = tuple(line["step"])
                results[step] = line["found"]
                outcome.blocks += line["blocks"]
                outcome.unguarded += line["unguarded"]
            outcome.runs += len(done)
            steps = steps[len(done) :]
            if begun is None:
                break
            steps = steps[1:]
            outcome.runs += 1
            where = {"data": begun[0], "level": begun[1]}
            if ended in (-signal.SIGVTALRM, -signal.SIGXCPU):
                outcome.stopped.append(where)
            else:
                outcome.faults.append({**where, "ended": ended, "errors": errors[-2000:]})
    _judge(outcome, results)
    return outcome


class _cache_folder:
    """Compiled code of a case is found again by the next child, and then gone."""

    def __enter__(self) -> None:
        self.before = os.environ.get("ULAM_CACHE_DIR")
        self.folder = tempfile.mkdtemp(prefix="ulam-guard-")
        os.environ["ULAM_CACHE_DIR"] = self.folder

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.before is None:
            del os.environ["ULAM_CACHE_DIR"]
        else:
            os.environ["ULAM_CACHE_DIR"] = self.before


def _in_child(
    case: Case, options: RunOptions, steps: Sequence[tuple[int, int]]
) -> tuple[list[dict[str, Any]], tuple[int, int] | None, int, str]:
    """The lines of finished steps, the step that did not end, the child's exit status, what it wrote about its end."""
    receive, send = os.pipe()
    with tempfile.TemporaryFile() as errors:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if not child:
            status = 1
            try:
                os.close(receive)
                _child(case, options, steps, send, errors.fileno())
                status = 0
            finally:
                os._exit(status)
        os.close(send)
        with os.fdopen(receive) as lines:
            told = [json.loads(line) for line in lines if line.endswith("\n")]
        _, status = os.waitpid(child, 0)
        ended = os.waitstatus_to_exitcode(status)
        done = [line for line in told if "found" in line]
        begun = tuple(told[-1]["step"]) if told and "found" not in told[-1] else None
        if begun is None and ended != 0:
            begun = steps[len(done)] if len(done) < len(steps) else steps[-1]
        errors.seek(0)
        return done, begun, ended, errors.read().decode(errors="replace")  # pyright: ignore[reportReturnType]


def _judge(outcome: Outcome, results: Mapping[tuple[int, int], dict[str, Any]]) -> None:
    """Counts results and notes what is wrong with them."""
    for (data, level), found in results.items():
        where = {"data": data, "level": level}
        if "unexpected" in found:
            outcome.unexpected.append({**where, "error": found["unexpected"]})
            continue
        outcome.results[found["error"][0] if "error" in found else "value"] += 1
        if "uninitialized" in found:
            outcome.uninitialized.append({**where, "results": found["uninitialized"]})
        base = results.get((data, 0))
        if level and base is not None and "unexpected" not in base and (different := _difference(base, found)):
            outcome.differences.append({**where, "from level 0": different})


def _difference(base: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """How the results of two levels differ; empty if rounding explains it."""
    if base.get("error") != found.get("error"):
        return f"{base.get('error')} at level 0, else {found.get('error')}"
    for name in ("gradient", "value", "constrained", "unconstrained", "product"):
        if (name in base) != (name in found):
            return f"'{name}' at one of them only"
        a, b = (np.array([float.fromhex(x) for x in one.get(name, ())]) for one in (base, found))
        if a.shape != b.shape:
            return f"'{name}' has {a.size} numbers at level 0, else {b.size}"
        with np.errstate(invalid="ignore"):
            equal = (
                (a == b)
                | (np.isnan(a) & np.isnan(b))
                | (np.abs(a - b) <= CLOSE * (1 + np.abs(a[np.isfinite(a)]).max(initial=0)))
            )
        if not equal.all():
            at = int(np.flatnonzero(~equal)[0])
            return f"'{name}'[{at}] is {a[at]} at level 0, else {b[at]}"
    return ""
