"""Random programs of sums over rows, with random data: the levels and layouts against level 0.

    python benchmarks/row_layouts.py [--first 0] [--count 300] [--nests]

Each program (`tests/oracles/row_programs.py`) runs at level 0, at level 3 without layouts, at level 3 and at level 4,
with its data, at three points, one of them far out. Log densities and gradients have to agree to 1e-9 of the largest
of them, what is not finite exactly in kind; rejections have to be the same, but for matrices that rounding alone makes
none of a kind: levels 3 and 4 take no factor of what has been multiplied from factors. Told are differences, and at the
end how often which layout was taken. Where numbers of the data cancel (an entry of 1e300) sums may overflow in another
order: such differences are told, too. `--nests`: of loops inside of each other (`nest_programs.py`). The exit status
is 1 if there was any.
"""

from __future__ import annotations

import argparse
import collections
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "oracles"))

from nest_programs import nest_data, nest_program
from row_programs import row_data, row_program

import ulam

WAYS: dict[str, dict[str, Any]] = {
    "level 3 without layouts": {"opt_level": 3, "layouts": False},
    "level 3": {"opt_level": 3},
    "level 4": {"opt_level": 4},
}


def _answer(model: ulam.StanModel, point: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | str:
    """The log density and gradient, or that it was rejected."""
    try:
        value, gradient = model.log_density_gradient(point)
    except ulam.UlamError as error:
        return f"rejected: {str(error).splitlines()[0][:100]}"
    return np.array([value, *gradient])


def _differ(found: np.ndarray[Any, Any] | str, expected: np.ndarray[Any, Any] | str) -> bool:
    """Whether answers differ."""
    if isinstance(expected, str):
        return not isinstance(found, str) and "not positive definite" not in expected
    if isinstance(found, str):
        return True
    finite = np.isfinite(expected)
    if not np.array_equal(np.isfinite(found), finite) or not np.array_equal(
        np.nan_to_num(found[~finite]), np.nan_to_num(expected[~finite])
    ):
        return True
    size = max(1.0, float(np.abs(expected[finite]).max(initial=0)))
    return bool(np.abs(found[finite] - expected[finite]).max(initial=0) > 1e-9 * size)


def check(seed: int, taken: collections.Counter[str], *, nests: bool) -> list[str]:
    """What is different for a seed."""
    program, data = (nest_program(seed), nest_data(seed)) if nests else (row_program(seed), row_data(seed))
    base = ulam.StanModel(program, data, opt_level=0)
    rng = np.random.default_rng(seed)
    points = [rng.normal(0, size, base.param_unc_num()) for size in (0.3, 1.0, 30.0)]
    expected = [_answer(base, point) for point in points]
    found: list[str] = []
    for way, options in WAYS.items():
        model = ulam.StanModel(program, data, **options)
        for point, answer in zip(points, expected, strict=True):
            if _differ(other := _answer(model, point), answer):
                found.append(f"{seed}, {way}: {other} in place of {answer}")
        if way == "level 3":
            taken.update(choice.layout for choice in model.layout_choices() if choice.taken)
    return found


def main() -> int:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--nests", action="store_true", help="loops inside of each other")
    asked = parser.parse_args()
    taken: collections.Counter[str] = collections.Counter()
    differences = 0
    for seed in range(asked.first, asked.first + asked.count):
        try:
            found = check(seed, taken, nests=asked.nests)
        except Exception as error:
            found = [f"{seed}: {type(error).__name__}: {error}"]
        differences += bool(found)
        for line in found:
            print(line, flush=True)
    print(f"{asked.count} programs, {differences} with differences; layouts taken: {dict(taken)}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
