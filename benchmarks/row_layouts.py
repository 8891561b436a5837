"""Random programs of sums over rows, with random data: the levels and layouts against level 0.

    python benchmarks/row_layouts.py [--programs rows] [--first 0] [--count 300] [--data 1] [--pieces] [--interfaces 0]

`--programs`: sums over rows (`tests/oracles/row_programs.py`), loops inside of each other (`nest_programs.py`), groups
and their rows (`group_programs.py`), programs of all blocks as people write them (`applied_programs.py`), forward
algorithms (`state_programs.py`), rows of several outcomes (`outcome_programs.py`), or such as are independent given
their means (`component_programs.py`), rows that are affine in some columns (`affine_programs.py`). Each runs at level
0, at level 3 without layouts, at level 3 and at level 4, with `--data` different data, at points near 0, far out, and
where some parameters are at borders: 0, infinite, NaN, or such that their exponential over- or underflows.
`--pieces`: also at level 3 with limits so small that the program is taken to pieces, and has switches in its data.
`--interfaces N`: of every Nth program constrained parameters with quantities, the way back from them, products of the
Hessian, and the traced density, too.

Log densities and gradients have to agree to 1e-9 of the largest of them, what is not finite exactly in kind; far out,
where what has bounds has few digits left, and at borders to `FAR`, and where level 0 is finite. Rejections have to be
the same text, but for matrices that rounding alone makes none of a kind: levels 3 and 4 take no factor of what has been
multiplied from factors. Told are differences, and at the end how often which layout was taken. Where numbers of the
data cancel (an entry of 1e300) sums may overflow in another order: such differences are told, too. The exit status is 1
if there was any.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "oracles"))

from layout_programs import PROGRAMS

import ulam
from ulam.passes import data_switches, pieces

WAYS: dict[str, dict[str, Any]] = {
    "level 3 without layouts": {"opt_level": 3, "layouts": False},
    "level 3": {"opt_level": 3},
    "level 4": {"opt_level": 4},
}
PIECES = "level 3 in pieces"
BORDERS = (0.0, -0.0, 40.0, -40.0, 709.5, 720.0, -720.0, -750.0, 1e300, -1e300, 1e-300, math.inf, -math.inf, math.nan)
NEAR, FAR = 1e-9, 0.05
OTHER_DATA = 1_000_003
"""How far seeds of the data of a program are from each other."""

Array = np.ndarray[Any, Any]
Answer = Array | str


def answer(call: Callable[..., Any], *arguments: Any, **options: Any) -> Answer:
    """What a method gives, as one array, or the text of a rejection."""
    try:
        found = call(*arguments, **options)
    except ulam.UlamError as error:
        return f"rejected: {str(error).splitlines()[0][:200]}"
    return np.hstack(found) if isinstance(found, tuple) else np.atleast_1d(found)


def difference(found: Answer, expected: Answer, tolerance: float = NEAR) -> str:
    """What differs, or nothing."""
    if isinstance(expected, str):
        is_same = found == expected if isinstance(found, str) else False
        return "" if is_same or "not positive definite" in expected else _told(found, expected)
    if isinstance(found, str):
        return _told(found, expected)
    is_near = tolerance == NEAR
    if not is_near and not math.isfinite(expected[0]):
        return ""
    finite = np.isfinite(expected)
    with np.errstate(all="ignore"):
        size = max(1.0, float(np.abs(expected[finite]).max(initial=0)))
        wrong = finite & ~(np.abs(found - expected) <= tolerance * size)
    if is_near:
        wrong |= ~finite & ~((found == expected) | (np.isnan(found) & np.isnan(expected)))
    at = np.flatnonzero(wrong)[:4]
    return f"{wrong.sum()} numbers, of {at}: {found[at]} in place of {expected[at]}" if wrong.any() else ""


def _told(found: Answer, expected: Answer) -> str:
    one, other = (x if isinstance(x, str) else str(x[0]) for x in (found, expected))
    return f"{one} in place of {other}"


@contextlib.contextmanager
def small_pieces() -> Iterator[None]:
    """Any program is large, and has code of its own in the cache."""
    limits = mock.patch.multiple(pieces, SMALLEST_PROGRAM=10, LEAST=8, USUAL=20, MOST=40)
    with limits, mock.patch.object(data_switches, "LEAST_OPS", 1), tempfile.TemporaryDirectory() as folder:
        with mock.patch.dict("os.environ", ULAM_CACHE_DIR=folder):
            yield


def models_of(code: str, data: Mapping[str, Any], *, in_pieces: bool) -> dict[str, ulam.StanModel | str]:
    """The model at each level, or the text of an error."""

    def bound(**options: Any) -> ulam.StanModel | str:
        try:
            return ulam.StanModel(code, data, **options)
        except ulam.UlamError as error:
            return str(error)

    found = {way: bound(**options) for way, options in {"level 0": {"opt_level": 0}, **WAYS}.items()}
    if in_pieces:
        with small_pieces():
            found[PIECES] = bound(opt_level=3)
            if isinstance(model := found[PIECES], ulam.StanModel):
                answer(model.log_density_gradient, np.zeros(model.param_unc_num()))  # compiled here, if at all
    return found


def points_of(rng: np.random.Generator, count: int) -> Iterator[tuple[str, Array, float]]:
    """Points, what they are, and how near answers have to be."""
    for size in (0.3, 1.0):
        yield f"at {size}", rng.normal(0, size, count), NEAR
    yield "far out", rng.normal(0, 30, count), FAR
    for _ in range(3):
        point = rng.normal(0, 0.3, count)
        at = rng.integers(0, max(1, min(count, int(rng.choice([8, count])))), int(rng.integers(1, 4)))
        if count:
            point[at] = rng.choice(BORDERS, len(at))
        yield f"{dict(zip(at.tolist(), point[at].tolist(), strict=True)) if count else ''}", point, FAR


def densities(models: Mapping[str, ulam.StanModel], rng: np.random.Generator) -> Iterator[str]:
    """Differences of log densities and gradients."""
    base = models["level 0"]
    for where, point, tolerance in points_of(rng, base.param_unc_num()):
        with np.errstate(all="ignore"):
            expected = answer(base.log_density_gradient, point)
        for way, model in models.items():
            told = difference(answer(model.log_density_gradient, point), expected, tolerance)
            if told and model is not base:
                yield f"{way}, {where}: {told}"


def interfaces(models: Mapping[str, ulam.StanModel], rng: np.random.Generator) -> Iterator[str]:
    """Differences of what else models are asked for."""
    base, point = models["level 0"], rng.normal(0, 0.3, models["level 0"].param_unc_num())
    calls: dict[str, Callable[[ulam.StanModel], Answer]] = {
        "all terms": lambda model: answer(model.log_density, point, propto=False, jacobian=False),
        "quantities": lambda model: answer(
            model.param_constrain, point, include_tp=True, include_gq=True, rng=model.new_rng(7)
        ),
        "product of the Hessian": lambda model: answer(model.log_density_hessian_vector_product, point, np.cos(point)),
    }
    for name, call in calls.items():
        expected = call(base)
        for way, model in models.items():
            if model is not base and way != PIECES and (told := difference(call(model), expected, 10 * NEAR)):
                yield f"{way}, {name}: {told}"
    constrained = answer(models["level 3"].param_constrain, point)
    if not isinstance(constrained, str):
        back = answer(models["level 3"].param_unconstrain, constrained)
        if isinstance(back, str) or np.abs(back - point).max(initial=0) > 1e-6:
            yield f"level 3, unconstrained again: {back}"
    value = answer(base.log_density, point, propto=False)
    if not isinstance(value, str):
        traced = models["level 3"].track_density(point, propto=False)
        if told := difference(np.atleast_1d(traced.value), value):
            yield f"traced density: {told}"


def check(seed: int, taken: collections.Counter[str], asked: argparse.Namespace) -> list[str]:
    """What is different for a seed."""
    program_of, data_of = PROGRAMS[asked.programs]
    code = program_of(seed)
    rng = np.random.default_rng(seed)
    found: list[str] = []
    for number in range(asked.data):
        made = models_of(code, data_of(seed + number * OTHER_DATA), in_pieces=asked.pieces)
        base, models = made["level 0"], {way: m for way, m in made.items() if isinstance(m, ulam.StanModel)}
        for way, model in made.items():
            if isinstance(model, str) and (isinstance(base, ulam.StanModel) or model != base):
                found.append(f"{way}: {model[:300]}")
            elif isinstance(base, str) and isinstance(model, ulam.StanModel):
                found.append(f"{way}: a model in place of {base[:200]}")
        if isinstance(base, str):
            continue
        found += densities(models, rng)
        if asked.interfaces and number == 0 and seed % asked.interfaces == 0 and "level 3" in models:
            found += interfaces(models, rng)
        if "level 3" in models:
            taken.update(choice.layout for choice in models["level 3"].layout_choices() if choice.taken)
    return [f"{seed}, {told}" for told in found]


def main() -> int:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--programs", choices=PROGRAMS, default="rows")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--data", type=int, default=1, help="how many data a program gets")
    parser.add_argument("--pieces", action="store_true", help="programs are taken to pieces, too")
    parser.add_argument("--interfaces", type=int, default=0, metavar="N", help="of every Nth program all else, too")
    asked = parser.parse_args()
    taken: collections.Counter[str] = collections.Counter()
    differences = 0
    for seed in range(asked.first, asked.first + asked.count):
        try:
            found = check(seed, taken, asked)
        except Exception as error:
            found = [f"{seed}: {type(error).__name__}: {error}"]
        differences += bool(found)
        for line in found:
            print(line, flush=True)
    print(f"{asked.count} programs, {differences} with differences; layouts taken: {dict(taken)}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
