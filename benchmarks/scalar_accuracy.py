"""Scalar functions and univariate distributions against extended precision: values and partial derivatives.

    python benchmarks/scalar_accuracy.py [--only PREFIX] [--points N] [--seed S] [--all]       (needs mpmath)

Every function is called at random arguments of all magnitudes and at the points of its table. The error of a value or
a partial derivative is relative. Its condition is how far the exact one moves when an argument moves by half a unit in
the last place; what is reported is worse than 1e-11 (or `--bar`) and than 100 times the condition, or is not finite
where the exact one is. With `--all` the worst of every function is printed, too.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Iterable
from typing import Any

import mpmath as mp  # pyright: ignore[reportMissingImports]
import numpy as np
from scalar_densities import ROWS
from scalar_functions import Row

import ulam

DIGITS = 60
SMALLEST, LARGEST = mp.mpf(2) ** -1022, mp.mpf(2) ** 1024
MAGNITUDES: dict[str, tuple[float, ...]] = {
    "real": (0.0, 1e-300, -1e-300, 1e-20, -1e-20, 1e-9, -1e-9, 1e-3, -1e-3, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 8.0, -8.0,
             20.0, -20.0, 38.0, -38.0, 100.0, -100.0, 750.0, -750.0, 1e5, -1e5, 1e10, -1e10, 1e160, -1e160),
    "moderate": (0.0, 1e-9, -1e-9, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 9.0, -9.0, 30.0, -30.0, 45.0, -45.0),
    "positive": (1e-300, 1e-160, 1e-20, 1e-9, 1e-3, 0.3, 1.0, 1.5, 2.0, 8.0, 30.0, 1e3, 1e6, 1e10, 1e17, 1e160),
    "shape": (1e-9, 1e-4, 0.01, 0.3, 1.0, 2.0, 9.5, 33.0, 250.0, 2000.0),
    "scale": (1e-5, 0.3, 1.0, 2.0, 25.0, 1e4),
    "location": (0.0, -3.0, 1.0, 700.0),
    "unit": (1e-300, 1e-20, 1e-9, 0.01, 0.3, 0.5, 0.7, 0.99, 1 - 1e-9, 1 - 2.0**-40),
    "negative": (-1e-300, -1e-20, -1e-9, -1e-3, -0.3, -0.6931471805599453, -1.0, -5.0, -40.0, -1e3, -1e10),
    "count": (0, 1, 2, 7, 40, 500),
    "total": (1, 2, 9, 60, 700),
}  # fmt: skip


def draw(kind: str, generator: random.Random) -> float:
    """A random argument of a kind, most of them of middling size."""
    sign = generator.choice([-1, 1])
    match kind:
        case "real":
            return sign * 10 ** generator.choice([generator.uniform(-3, 2.5), generator.uniform(-18, 12)])
        case "moderate":
            return sign * 10 ** generator.uniform(-3, 1.3)
        case "positive":
            return 10 ** generator.choice([generator.uniform(-2, 2.5), generator.uniform(-20, 17)])
        case "shape":
            return 10 ** generator.choice([generator.uniform(-1, 2), generator.uniform(-4, 3)])
        case "scale":
            return 10 ** generator.uniform(-2, 2)
        case "location":
            return sign * 10 ** generator.uniform(-2, 2)
        case "unit":
            return generator.choice([generator.uniform(0, 1), 10 ** generator.uniform(-12, 0)])
        case "negative":
            return -(10 ** generator.choice([generator.uniform(-2, 2.5), generator.uniform(-20, 5)]))
        case _:
            return generator.choice([generator.randrange(0, 30), generator.randrange(0, 600)])


def points(row: Row, count: int, seed: int) -> list[tuple[float, ...]]:
    """Those of the row, combinations of magnitudes, and random ones; within the function's domain."""
    generator = random.Random(f"{row.name} {seed}")
    fixed = list(itertools.product(*(MAGNITUDES[k] for k in row.kinds)))
    generator.shuffle(fixed)
    random_ones = [tuple(draw(k, generator) for k in row.kinds) for _ in range(4 * count)]
    chosen: Iterable[tuple[float, ...]] = [*row.points, *fixed[: 8 * count], *random_ones]
    inside = [p for p in dict.fromkeys(chosen) if row.inside(*p)]
    own = [p for p in inside if p in row.points]
    rest = [p for p in inside if p not in row.points]
    return own + rest[:count] + [p for p in random_ones if p in rest[count:]][:count]


def program(rows: list[Row]) -> str:
    """Row `which` at all points: values as a transformed parameter, their sum as the target."""
    branches = "\n".join(f"  if (which == {i + 1}) for (p in 1:P) value[p] = {row.text};" for i, row in enumerate(rows))
    return f"""data {{ int which; int P; array[P, 3] int n; }}
parameters {{ array[P] vector[5] x; }}
transformed parameters {{
  vector[P] value;
{branches}
}}
model {{ target += sum(value); }}"""


def evaluate(text: str, which: int, row: Row, at: list[tuple[float, ...]], level: int) -> list[tuple[float, ...] | str]:
    """The value and the partials at each point, or the message of an error."""
    ints = np.zeros((len(at), 3), dtype=int)
    reals = np.full((len(at), 5), 0.5)
    for i, point in enumerate(at):
        ints[i, : row.ints] = [int(v) for v in point[: row.ints]]
        reals[i, : len(point) - row.ints] = point[row.ints :]
    try:
        model = ulam.StanModel(text, data={"which": which, "P": len(at), "n": ints.tolist()}, opt_level=level)
        theta = reals.ravel()
        values = model.param_constrain(theta, include_tp=True)[theta.size :]
        gradient = model.log_density_gradient(theta, propto=False)[1].reshape(-1, 5)
    except ulam.UlamError as error:
        if len(at) == 1:
            return [str(error).split("\n")[0][:90]]
        middle = len(at) // 2
        return evaluate(text, which, row, at[:middle], level) + evaluate(text, which, row, at[middle:], level)
    return [(v, *g[: row.reals]) for v, g in zip(values, gradient, strict=True)]


def exact(row: Row, point: tuple[Any, ...]) -> tuple[Any, ...]:
    """The value and the partials."""
    ints, reals = point[: row.ints], list(point[row.ints :])
    least = min([abs(x) for x in reals if x] or [mp.mpf(1)])
    if row.slopes is not None:
        return tuple(row.slopes(*point))
    with mp.workdps(max(row.digits, DIGITS + int(max(0, -2 * mp.log10(least))))):
        out = [row.exact(*ints, *reals)]
        for i, x in enumerate(reals):
            size = max([abs(x), *([] if x else [abs(v) for v in reals])])
            step = (size or mp.mpf(1)) * mp.mpf(10) ** (-mp.mp.dps // 3)
            high, low = list(reals), list(reals)
            high[i], low[i] = x + step, x - step
            slope = (row.exact(*ints, *high) - row.exact(*ints, *low)) / (2 * step)
            noise = abs(out[0]) * mp.mpf(10) ** (10 - mp.mp.dps) / step
            out.append(slope if abs(slope) > noise else mp.nan)  # what the digits do not tell
    return tuple(mp.re(v) for v in out)


def errors(row: Row, point: tuple[float, ...], found: tuple[float, ...]) -> list[tuple[float, float, Any]]:
    """Relative error, condition and exact number, of the value and each partial."""
    ints = tuple(int(v) for v in point[: row.ints])
    reals = [mp.mpf(v) for v in point[row.ints :]]
    truth = exact(row, (*ints, *reals))
    moved = []
    for i, x in enumerate(reals):
        if x:
            others = list(reals)
            others[i] = x * (1 + mp.mpf(2) ** -53)
            moved.append(exact(row, (*ints, *others)))
    out = []
    for k, t in enumerate(truth):
        f = found[k]
        if mp.isnan(t):
            out.append((0.0, 1.0, t))
            continue
        if abs(t) >= LARGEST * (1 - mp.mpf(2) ** -54):
            error = 0.0 if f == (np.inf if t > 0 else -np.inf) else np.inf
        elif not np.isfinite(f):
            error = np.inf
        else:
            error = float(abs(mp.mpf(f) - t) / max(abs(t), SMALLEST))
        condition = max([float(abs(m[k] - t) / max(abs(t), SMALLEST)) for m in moved if not mp.isnan(m[k])] or [0.0])
        out.append((error, max(condition, 2.0**-53), t))
    return out


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of functions begin so; several by commas")
    parser.add_argument("--after", default="", help="only functions behind this one")
    parser.add_argument("--points", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bar", type=float, default=1e-11)
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--most", type=int, default=6, help="points printed per function")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    wanted = tuple(options.only.split(","))
    mp.mp.dps = DIGITS
    failures = 0
    rows = [row for row in ROWS if row.name.startswith(wanted)]
    names = [row.name for row in rows]
    for row in rows[names.index(options.after) + 1 if options.after else 0 :]:
        text = program([row])
        at = points(row, options.points, options.seed)
        bad: list[tuple[float, str]] = []
        worst = [(0.0, "")] * (row.reals + 1)
        for point, found in zip(at, evaluate(text, 1, row, at, options.level), strict=True):
            shown = ", ".join(f"{v!r}" for v in point)
            if isinstance(found, str):
                bad.append((float("inf"), f"{row.name}({shown}): {found}"))
                continue
            try:
                results = errors(row, point, found)
            except (ValueError, ArithmeticError, TypeError) as problem:
                print(f"{row.name}({shown}): no exact value: {problem!r:.60}", flush=True)
                continue
            for k, (error, condition, t) in enumerate(results):
                part = "value" if k == 0 else f"partial {k}"
                quotient = error / condition
                line = f"{row.name}({shown}) {part}: {found[k]!r}, exact {mp.nstr(t, 17)}, "
                line += f"error {error:.1e}, condition {condition:.1e}"
                if quotient > worst[k][0]:
                    worst[k] = (quotient, f"{error:.1e}/{condition:.1e}")
                if not error <= max(options.bar, 100 * condition):
                    bad.append((quotient, line))
        failures += len(bad)
        if bad or options.all:
            print(f"{row.name}: {len(bad)} of {len(at) * (row.reals + 1)}; worst quotients {worst}", flush=True)
        for _, line in sorted(bad, reverse=True)[: options.most]:
            print("   ", line, flush=True)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
