"""Scalar functions of the library at and beyond the borders of their domains, and elsewhere, against Stan Math.

    python benchmarks/further_points.py [--names REGEX] [--exact] [--list]     (needs stanli; with --exact mpmath)

Each overload of scalars is called at the points of tests/reference, with one argument or two replaced by others, those
that are special among them, and at random ones: what comes out (a value, NaN, an infinity, an error), the value and the
gradient are compared with those of `stanli`. With `--exact`, where values or slopes differ and extended
precision has the function (`scalar_accuracy.py`), that decides. Without `--list` only what differs and was not decided
for ulam is counted, by function; with it every such point is printed.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
import stanli  # pyright: ignore[reportMissingImports]

import ulam
from ulam.emit import jit
from ulam.frontend.functions import signatures
from ulam.frontend.functions.signatures import Signature
from ulam.frontend.stan_types import INT, REAL
from ulam.library.functions import FunctionKind, named
from ulam.runtime.errors import ProgramError, TimeLimit
from ulam.runtime.interrupts import limited

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "oracles"))

from signature_values import templates  # noqa: E402

Number = float | int
Point = tuple[Number, ...]
INF, NAN = math.inf, math.nan
REALS = (-INF, -1e10, -40.5, -3.0, -1.0, -0.3, -1e-10, 0.0, 1e-300, 1e-10, 0.5, 1.0, 2.0, 3.7, 30.0, 1e3, 1e10, INF,
         NAN)  # fmt: skip
INTS = (-3, -1, 0, 1, 2, 3, 7, 30, 100, 1000)
PAIRS: dict[bool, tuple[Number, ...]] = {True: (0, 1), False: (0.0, 1.0, INF, -1.0)}
RANDOM_POINTS = 12
IN_A_PROGRAM = 12
SECONDS = 1.0
VALUE_TOLERANCE, SLOPE_TOLERANCE = 1e-8, 1e-6
LONG = re.compile("beta_neg_binomial|wiener_l?c?cdf")
"""Series that take Stan Math up to a minute at such points."""
JACOBIAN = re.compile("_jacobian$")


@dataclass(frozen=True)
class Result:
    """A value, None for an error, and the gradient if there is one."""

    value: float | None
    gradient: np.ndarray | None = None

    @property
    def kind(self) -> str:
        if self.value is None:
            return "error"
        return "nan" if math.isnan(self.value) else "finite" if math.isfinite(self.value) else str(self.value)


@dataclass
class Tally:
    """What was found of an overload."""

    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)

    def differs(self, kind: str, signature: Signature, point: Point, ours: object, theirs: object) -> None:
        self.counts[kind] += 1
        shown = ", ".join(map(repr, point))
        self.lines.append(f"{kind}: {signature.name}({shown}): {ours}, Stan {theirs}")


def of_scalars(names: str) -> list[Signature]:
    """The overloads that are compared."""
    found = []
    for name in signatures.stan_names():
        overloads = signatures.overloads(name)
        if overloads is None or overloads.higher_order() or named(name).kind is FunctionKind.RNG:
            continue
        if not re.search(names, name) or LONG.search(name) or JACOBIAN.search(name):
            continue
        of = [s for s in overloads.all() if not s.data_only and s.arguments]
        found += [s for s in of if {*s.arguments, s.result} <= {INT, REAL}]
    return found


def points_of(signature: Signature) -> list[Point]:
    ints = [a == INT for a in signature.arguments]
    rows: list[Point] = []
    for row in templates(signature.name, signature.arguments):
        rows.append(tuple(round(float(v)) if whole else float(v) for v, whole in zip(row, ints, strict=True)))
    rows = list(dict.fromkeys(r for r in rows if all(abs(v) < 1e5 for v, whole in zip(r, ints, strict=True) if whole)))
    random = Random(str(signature))
    found = {repr(p): p for row in (rows[0], rows[-1]) for p in _replaced(row, ints)}  # NaN equals nothing
    for _ in range(RANDOM_POINTS):
        row = random.choice(rows)
        near = tuple(
            max(0, v + random.randint(-1, 9)) if whole else v * math.exp(random.gauss(0, 1))
            for v, whole in zip(row, ints, strict=True)
        )
        found[repr(near)] = near
    return list(found.values())


def _replaced(row: Point, ints: Sequence[bool]) -> Iterator[Point]:
    yield row
    for i, whole in enumerate(ints):
        for other in INTS if whole else REALS:
            yield (*row[:i], other, *row[i + 1 :])
    for j in range(len(row)):
        for i in range(j):
            for first in PAIRS[ints[i]]:
                for second in PAIRS[ints[j]]:
                    yield (*row[:i], first, *row[i + 1 : j], second, *row[j + 1 :])


class Program:
    """Calls in one program: a parameter says which is made, ints are found in a table by their places."""

    def __init__(self, calls: Sequence[Signature], points: Sequence[Sequence[Point]]) -> None:
        rows = [(s, p) for s, of in zip(calls, points, strict=True) for p in of]
        ints = {int(v) for s, p in rows for v, a in zip(p, s.arguments, strict=True) if a == INT}
        self.table, self.calls = sorted(ints) or [0], calls
        self.width = max(len(s.arguments) for s in calls)
        terms = [f"if (which == {k}) target += {_call(s)};" for k, s in enumerate(calls)]
        self.text = "\n".join([
            "functions { int at(real x) { int n = 0; while (n < x - 0.5) n += 1; return n; } }",
            f"transformed data {{ array[{len(self.table)}] int ints = {{{', '.join(map(str, self.table))}}}; }}",
            f"parameters {{ real which; {' '.join(f'real a{i};' for i in range(self.width))} }}",
            "model {", *terms, "}",
        ])  # fmt: skip

    def theta(self, number: int, point: Point) -> np.ndarray:
        values = [
            self.table.index(int(v)) + 1.0 if a == INT else v
            for v, a in zip(point, self.calls[number].arguments, strict=True)
        ]
        return np.array([number, *values, *[0.0] * (self.width - len(point))])


def _call(signature: Signature) -> str:
    arguments = [f"ints[at(a{i})]" if a == INT else f"a{i}" for i, a in enumerate(signature.arguments)]
    return _joined(signature.name, arguments)


def _joined(name: str, arguments: Sequence[str]) -> str:
    bar = named(name).kind.is_probability and len(arguments) > 1
    return f"{name}({arguments[0]} | {', '.join(arguments[1:])})" if bar else f"{name}({', '.join(arguments)})"


class Stan:
    """One overload in Stan Math: with autodiff variables where ints need not be known, and with doubles."""

    def __init__(self, signature: Signature, points: Sequence[Point]) -> None:
        self.program = Program([signature], [points])
        types = [str(a) for a in signature.arguments]
        formals = ", ".join(f"{t} a{i}" for i, t in enumerate(types))
        call = _joined(signature.name, [f"a{i}" for i in range(len(types))])
        code = f"functions {{ {signature.result} called({formals}) {{ return {call}; }} }}"
        self.model = self.function = None
        with suppress(RuntimeError):  # it lacks the function, in one of the two ways
            self.model = stanli.Model(stan_code=self.program.text, data={})
        with suppress(RuntimeError):
            self.function = stanli.Function("called", stan_code=code)

    def __call__(self, point: Point) -> list[Result]:
        """In each of the two ways."""
        found: list[Result] = []
        if self.model is not None:
            try:
                value, gradient = self.model.log_prob_grad(self.program.theta(0, point))
                found.append(Result(float(value), np.array(gradient)))
            except RuntimeError:
                found.append(Result(None))
        if self.function is not None:
            try:
                found.append(Result(float(np.asarray(self.function({f"a{i}": v for i, v in enumerate(point)})))))
            except (RuntimeError, ValueError):
                found.append(Result(None))
        return found


def compare(
    number: int, program: Program, model: ulam.StanModel, points: Sequence[Point], exact: Exact | None
) -> Tally:
    """One overload at its points."""
    signature, tally = program.calls[number], Tally()
    stan = Stan(signature, points)
    for point in points:
        if not (theirs := stan(point)):
            tally.counts["not in stanli"] += 1
            continue
        try:
            ours = Result(*limited(SECONDS, model.log_density_gradient, program.theta(number, point), propto=False))
        except TimeLimit:
            tally.counts["out of time"] += 1
            continue
        except ProgramError:
            ours = Result(None)
        tally.counts["points"] += 1
        if ours.kind in [t.kind for t in theirs]:
            if ours.kind == theirs[0].kind == "finite":
                _compare_numbers(tally, signature, point, ours, theirs[0], exact)
            continue
        truth = exact(signature, point) if exact else None
        if truth is not None and ours.value is not None and _close(ours.value, truth[0]):
            tally.counts["outcome decided"] += 1
        else:
            tally.differs("outcome", signature, point, ours.value, theirs[0].value)
    return tally


def _compare_numbers(
    tally: Tally, signature: Signature, point: Point, ours: Result, theirs: Result, exact: Exact | None
) -> None:
    assert ours.value is not None and theirs.value is not None and ours.gradient is not None
    truth: Sequence[float] | None = None
    tally.counts["values"] += 1
    if not _close(ours.value, theirs.value):
        truth = exact(signature, point) if exact else None
        if truth is not None and _close(ours.value, truth[0]):
            tally.counts["value decided"] += 1
        else:
            tally.differs("value", signature, point, ours.value, theirs.value)
    if theirs.gradient is None:
        return
    for i, argument in enumerate(signature.arguments):
        found, other = float(ours.gradient[i + 1]), float(theirs.gradient[i + 1])
        if argument == INT or not math.isfinite(other):
            continue
        tally.counts["slopes"] += 1
        if _close_slope(found, other):
            continue
        truth = truth or (exact(signature, point) if exact else None)
        if truth is not None and _close_slope(found, truth[i + 1]):
            tally.counts["slope decided"] += 1
        else:
            tally.differs("slope", signature, point, found, other)


def _close_slope(found: float, wanted: float) -> bool:
    return abs(found - wanted) <= SLOPE_TOLERANCE * max(1, abs(wanted))


def _close(found: float, wanted: float) -> bool:
    return found == wanted or abs(found - wanted) <= VALUE_TOLERANCE * max(abs(wanted), 1e-300)


class Exact:
    """Values and slopes in extended precision, where `scalar_accuracy.py` has the function."""

    def __init__(self) -> None:
        import scalar_accuracy

        self.accuracy = scalar_accuracy
        self.rows = {(row.name, len(row.kinds)): row for row in scalar_accuracy.ROWS}

    def __call__(self, signature: Signature, point: Point) -> Sequence[float] | None:
        """The value, and the slope by each argument (NaN by ints)."""
        row = self.rows.get((signature.name, len(point)))
        if row is None or any(a != INT for a in signature.arguments[: row.ints]) or not all(map(math.isfinite, point)):
            return None
        mpf = self.accuracy.mp.mpf
        numbers = (*map(int, point[: row.ints]), *map(mpf, point[row.ints :]))
        try:
            if not row.inside(*point):
                return None
            value, *slopes = map(float, self.accuracy.exact(row, numbers))
        except (ArithmeticError, ValueError, TypeError):
            return None  # outside of what the definition there can do
        return [value, *[NAN] * row.ints, *slopes]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--names", default="", help="only functions whose names have this regular expression in them")
    parser.add_argument("--exact", action="store_true", help="let extended precision decide")
    parser.add_argument("--list", action="store_true", help="print every point that differs")
    options = parser.parse_args(argv)
    jit.HOT = jit.Pipeline(speed=0, vectorize=False)
    exact = Exact() if options.exact else None
    chosen, total = of_scalars(options.names), Counter[str]()
    for start in range(0, len(chosen), IN_A_PROGRAM):
        calls = chosen[start : start + IN_A_PROGRAM]
        points = [points_of(s) for s in calls]
        program = Program(calls, points)
        model = ulam.StanModel(program.text, opt_level=0)
        for number, signature in enumerate(calls):
            tally = compare(number, program, model, points[number], exact)
            total += tally.counts
            differing = {k: tally.counts[k] for k in ("outcome", "value", "slope") if tally.counts[k]}
            if differing:
                print(f"{signature}: {differing}", flush=True)
            for line in tally.lines if options.list else ():
                print(f"    {line}", flush=True)
    print(f"{len(chosen)} overloads: {dict(sorted(total.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
