"""Runs mutated programs and odd data through ulam: nothing may come out but its own errors, in bounded time and memory.

Each function does one case and returns what went wrong, or None. `benchmarks/fuzz.py` runs many of them,
`test_fuzzing.py` a few.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from bridgestan_client import BridgeStanClient, ClientError
from data_readers import encoded
from program_mutations import mutant

import ulam
from ulam.frontend import syntax
from ulam.frontend.check.program import check_program
from ulam.frontend.diagnostics import DiagnosticError, render
from ulam.frontend.lower.program import lower_program
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.errors import ArgumentError, InternalCompilerError, UlamError
from ulam.runtime.interpreter_settings import compiling
from ulam.runtime.libraries.bridgestan_library import library_of

SECONDS = 60
"""The longest that one case may take, on a busy machine."""
RUN_SECONDS = 20
"""The longest that a call of a mutated program may take, which may be endless; the constructor runs a part of it."""
SLOW = "slow: "
"""How results begin that are no failures, but were ended."""


class TooLong(BaseException):
    """A case has not ended in time."""


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Ends what takes longer."""

    def end(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def told(error: BaseException) -> str:
    """An error, and where it was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace is not None else ""
    return f"{type(error).__name__} at {where}: {str(error)[:300]}"


# ---------------------------------------------------------------- the checker


def check(text: str, *, lower: bool = True) -> tuple[bool, str | None]:
    """Whether the checker takes a program, and what went wrong."""
    try:
        with within(SECONDS), compiling():
            source = Source(text, "mutant.stan")
            try:
                program = parse_program(source)
                found = check_program(program, source)
            except DiagnosticError as error:
                found = error.diagnostics
                for diagnostic in found:
                    assert render(diagnostic).startswith("mutant.stan:") or diagnostic.source.inclusions(0)
                    json.dumps(diagnostic.as_dict())
                return False, None if any(d.severity == "error" for d in found) else "refused without an error"
            for diagnostic in found:
                render(diagnostic)
            if lower:
                lower_program(program, source)
            return True, None
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return False, told(error)


def check_mutant(corpus: Sequence[str], seed: int, number: int) -> str | None:
    return check(mutant(corpus, seed, number))[1]


# ---------------------------------------------------------------- the compiler


def random_data(text: str, rng: random.Random) -> dict[str, Any]:
    """Values for the data block of a program that the checker takes: mostly fitting, small."""
    source = Source(text, "mutant.stan")
    with compiling():
        program = parse_program(source)
        check_program(program, source)
    data: dict[str, Any] = {}
    for declaration in program.data.statements if program.data is not None else ():
        if isinstance(declaration, syntax.Declaration):
            data[declaration.name] = _random_value(declaration.sized_type, data, rng)
    return data


def _random_value(sized: syntax.SizedType, data: dict[str, Any], rng: random.Random) -> Any:
    if sized.fields and not sized.array_sizes:
        return {str(n): _random_value(field, data, rng) for n, field in enumerate(sized.fields, 1)}
    sizes = [_size(size, data, rng) for size in (*sized.array_sizes, *sized.sizes)]
    if len(sized.sizes) == 1 and ("matrix" in str(sized.type)):
        sizes.append(sizes[-1])
    is_int = "int" in str(sized.type)

    def fill(rest: list[int]) -> Any:
        if rest:
            return [fill(rest[1:]) for _ in range(rest[0])]
        lower = _size(sized.constraint.lower, data, rng) if sized.constraint.lower is not None else 0
        return lower + rng.randrange(4) if is_int else lower + rng.choice((0.5, 1.0, rng.random(), rng.random()))

    return fill(sizes)


def _size(size: syntax.Expression | None, data: dict[str, Any], rng: random.Random) -> int:
    if isinstance(size, syntax.Promotion):
        return _size(size.operand, data, rng)
    if isinstance(size, syntax.IntLiteral):
        return min(int(size.text), 20)
    value = data.get(size.name) if isinstance(size, syntax.Variable) else None
    return min(value, 20) if isinstance(value, int) else 3


def compile_mutant(corpus: Sequence[str], seed: int, number: int) -> str | None:
    """Compiles and runs a mutant that the checker takes, at levels 0 and 3, with random data."""
    text = mutant(corpus, seed, number)
    if not check(text, lower=False)[0]:
        return None
    results: list[str] = []
    for level in (0, 3):
        try:
            with within(4 * SECONDS), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                data = random_data(text, random.Random(f"data {seed}:{number}"))
                results.append(run(text, data, level))
        except (InternalCompilerError, TooLong) as error:
            return f"level {level}: {told(error)}"
        except (UlamError, ArgumentError, MemoryError) as error:
            results.append(type(error).__name__)
        except Exception as error:
            return f"level {level}: {told(error)}"
    if "TimeLimit" in results:
        return f"{SLOW}{', '.join(results)}"
    if "MemoryError" in results:
        return None  # a level may need so much more
    return None if results[0] == results[1] else f"levels 0 and 3 differ: {results[0]}, {results[1]}"


def run(text: str, data: dict[str, Any], level: int, seconds: float = RUN_SECONDS) -> str:
    """What a program came to: "value", or the name of the error of its gradient. Other errors are raised."""
    # SIGALRM, as in `within`, does not leave native code: only a limit does.
    model = ulam.StanModel(text, data, opt_level=level, cache=False, capture_stan_prints=True, time_limit=3 * seconds)
    theta = np.linspace(-0.7, 0.9, model.param_unc_num())
    outcome = "value"
    try:
        model.log_density_gradient(theta, time_limit=seconds)
    except InternalCompilerError:
        raise
    except UlamError as error:
        outcome = type(error).__name__
    model.param_constrain(theta, include_tp=True, include_gq=True, rng=model.new_rng(1), time_limit=seconds)
    return outcome


# ---------------------------------------------------------------- data

DATA_PROGRAM = """
data {
  int n; int<lower=0> N; real x; real<lower=0> s; vector[N] v; row_vector[2] r; matrix[2, N] m; array[N] int a;
  array[2, 2] real b; array[2] vector[2] av; simplex[2] p; cov_matrix[2] c; tuple(int, vector[2]) t; array[0] int e;
}
parameters { real mu; }
model { mu ~ normal(x, 1); }
"""
DATA: dict[str, Any] = {
    "n": -1, "N": 2, "x": 0.5, "s": 1.0, "v": [1.0, 2.0], "r": [1, 2], "m": [[1, 2], [3, 4]], "a": [1, 2],
    "b": [[1, 2], [3, 4.5]], "av": [[1, 2], [3, 4]], "p": [0.5, 0.5], "c": [[1, 0], [0, 1]],
    "t": {"1": 3, "2": [1, 2]}, "e": [],
}  # fmt: skip


def _deep(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def _endless() -> list[Any]:
    value: list[Any] = [1]
    value.append(value)
    return value


class _Odd:
    """An object that NumPy asks for things and that does not have them."""

    def __array__(self, *_: object, **__: object) -> Any:
        raise RuntimeError("no array")

    def __len__(self) -> int:
        raise TypeError("no length")


def odd_values() -> list[Callable[[], Any]]:
    """What data may hold, from the ordinary to the absurd; made anew for each case."""
    plain: list[Any] = [
        None, True, False, 0, 1, -1, 2, 2**31 - 1, 2**31, -(2**31) - 1, 2**63, 10**400, 0.0, 1.5, -0.0, 1e308, 5e-324,
        math.nan, math.inf, -math.inf, 1j, "NaN", "Inf", "-Infinity", "1", "", "abc", "\0", b"1", [], [[]], [[], []],
        [[[]]], [1], [1, 2], [1.5, 2.5], [1, "NaN"], [1, None], [1, [2]], [[1], [2, 3]], [[1, 2], [3, 4]],
        {"1": 1, "2": [1, 2]}, {"1": 1}, {}, {"a": 1}, (1, 2), (3, [1.0, 2.0]), ((1, 2), (3, 4)), {1, 2}, range(2),
        "x" * 10_000, [1, 2] * 1000, [[1, 2]] * 1000, object(), print, type, Ellipsis, slice(1, 2),
    ]  # fmt: skip
    made: list[Callable[[], Any]] = [lambda value=value: value for value in plain]
    made += [lambda: _deep(70), lambda: _deep(3000), _endless, _Odd, lambda: iter([1, 2]), lambda: memoryview(b"12")]
    arrays: list[Callable[[], Any]] = [
        lambda: np.array(1), lambda: np.array([1, 2]), lambda: np.array([1.0, 2.0], dtype=np.float32),
        lambda: np.array([1, 2], dtype=np.uint8), lambda: np.array([1, 2], dtype=np.int8), lambda: np.float64(1.5),
        lambda: np.int64(2**40), lambda: np.uint64(2**64 - 1), lambda: np.bool_(True), lambda: np.array([True, False]),
        lambda: np.zeros((0,)), lambda: np.zeros((2, 0)), lambda: np.zeros((0, 2)), lambda: np.zeros((2, 2)),
        lambda: np.asfortranarray(np.ones((2, 2))), lambda: np.ones((4, 4))[::2, ::2], lambda: np.ones((2, 2)).T,
        lambda: np.array([1, 2], dtype=">i4"), lambda: np.array([1.0, 2.0], dtype=">f8"), lambda: np.ones(2, "f2"),
        lambda: np.ones(2, np.longdouble), lambda: np.array([1 + 2j, 3]), lambda: np.array(["1", "2"]),
        lambda: np.array(["NaN", "Inf"]), lambda: np.array([1, None], dtype=object),
        lambda: np.array([[1, 2], [3]], dtype=object),
        lambda: np.array(["2020-01-01"], dtype="M8[D]"), lambda: np.array([(1, 2.0)], dtype="i4,f8"),
        lambda: np.ma.array([1.0, 2.0], mask=[True, False]), lambda: np.ones((2, 1, 2)),
        lambda: np.void(b"ab"),
        lambda: np.array([1, np.nan, 3]), lambda: np.broadcast_to(np.array([1.0]), (2,)),
        lambda: np.array([], dtype=object),
    ]  # fmt: skip
    return made + arrays + _pandas_values()


def _pandas_values() -> list[Callable[[], Any]]:
    """Of pandas, where it is installed."""
    try:
        import pandas  # pyright: ignore[reportMissingImports]
    except ImportError:
        return []
    return [
        lambda: pandas.Series([1, 2]), lambda: pandas.Series([1, None]), lambda: pandas.Series(["a", "b"]),
        lambda: pandas.Series([1, 2], dtype="Int64"), lambda: pandas.Series([1, None], dtype="Int64"),
        lambda: pandas.DataFrame({"a": [1, 2], "b": [3, 4]}), lambda: pandas.Categorical(["a", "b"]),
        lambda: pandas.NA, lambda: pandas.Timestamp("2020-01-01"), lambda: pandas.Index([1, 2]),
    ]  # fmt: skip


JSON_PIECES = (
    '{ } [ ] , : " 0 1 -1 1.5 1e5 1e999 -0 00 +1 .5 1. 0x10 NaN Infinity -Infinity Inf -Inf nan NA null true false '
    "'a' \\ \\u0000 \\ud800 // /* # \x00 \ufffd \u00e9 \ufeff \"NaN\" \"\" [] {} [[]] [1,2] 2147483648 "
    "99999999999999999999"
).split(" ")  # fmt: skip


def data_case(seed: int, number: int, folder: Path) -> str | None:
    """One data set, right or wrong, given as a mapping, as JSON text or as a file; texts to a library, too."""
    rng = random.Random(f"data {seed}:{number}")
    data: Any = dict(DATA)
    if rng.random() < 0.5:
        values = odd_values()
        for _ in range(rng.choice((1, 1, 2, 4))):
            data[rng.choice([*DATA, "zz", "Nn", 1, None, "n:1", ""])] = rng.choice(values)()
        for name in rng.sample([*DATA], rng.choice((0, 0, 1, 3))):
            data.pop(name, None)
    else:
        data = _mutated_json(rng, json.dumps(DATA))
        if rng.random() < 0.5:
            file = folder / f"data_{number}.json"
            file.write_bytes(encoded(rng, data))
            data = str(file)
    refused = ""
    try:
        with within(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = ulam.StanModel(DATA_PROGRAM, data)
                model.log_density_gradient(np.array([0.5]))
            except (UlamError, ArgumentError, MemoryError, OSError) as error:
                if isinstance(error, InternalCompilerError):
                    return told(error)
                refused = str(error) or "refused"
            if isinstance(data, str) and not re.search("[\0\ud800-\udfff]", data):
                said = _said_by_library(data)
                if bool(said) != bool(refused):
                    return f"{data[:300]!r}: StanModel: {refused or 'taken'}; its library: {said or 'taken'}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return told(error)
    finally:
        if isinstance(data, str) and os.path.isfile(data) and Path(data).parent == folder:
            os.remove(data)
    return None


def _said_by_library(data: str) -> str:
    """Why a model of the library of DATA_PROGRAM cannot be made; empty if it can."""
    try:
        client = BridgeStanClient(library_of(DATA_PROGRAM, "model.stan", CompileOptions()), data.encode())
        client.gradient(np.array([0.5]))
        client.close()
    except ClientError as error:
        return str(error)
    return ""


def _mutated_json(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice((0, 1, 1, 1, 2, 5))):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            text = text[:at] + rng.choice(JSON_PIECES) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + rng.randrange(1, 8) :]
        elif kind == 2:
            text = text[:at] + rng.choice(JSON_PIECES) + text[at + rng.randrange(1, 4) :]
        else:
            text = text[:at] + text[at : at + 20] * rng.choice((2, 3, 300)) + text[at:]
    return text
