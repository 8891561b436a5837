"""The kernel of recursions through log_sum_exp, against extended precision: ordinary rows, and what no double holds."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.oracles.kernel_calls import pull_back, random, run

Floats = NDArray[np.float64]
INFINITY = float("inf")


def double(x: Any) -> float:
    """An exact number, rounded."""
    return float(x)


def exact_rows(first: Floats, terms: Floats, moves: Floats, adjoints: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Rows, and the adjoints of terms, of moves of all times and of the first row, with as many digits as it takes."""
    times, states = terms.shape
    mpmath.mp.dps = 40
    rows = [[mpmath.mpf(x) for x in first]]
    shares = []
    for t in range(times):
        row, share = [], []
        for k in range(states):
            logs = [rows[-1][j] + mpmath.mpf(moves[j, k]) for j in range(states)]
            top = max(logs)
            if top == -mpmath.inf:
                row.append(top)
                share.append([mpmath.mpf(0)] * states)
                continue
            powers = [mpmath.exp(x - top) for x in logs]
            total = mpmath.fsum(powers)
            row.append(top + mpmath.log(total) + mpmath.mpf(terms[t, k]))
            share.append([power / total for power in powers])
        rows.append(row)
        shares.append(share)
    of_row = [mpmath.mpf(0)] * states
    of_terms, of_moves = np.zeros((times, states)), mpmath.zeros(states, states)
    for t in reversed(range(times)):
        of_row = [value + mpmath.mpf(adjoints[t, k]) for k, value in enumerate(of_row)]
        of_terms[t] = [double(value) for value in of_row]
        for j in range(states):
            for k in range(states):
                of_moves[j, k] += of_row[k] * shares[t][k][j]
        of_row = [mpmath.fsum(of_row[k] * shares[t][k][j] for k in range(states)) for j in range(states)]
    found = np.array([[double(x) for x in row] for row in rows[1:]]).reshape(times, states)
    moved = np.array([[double(of_moves[j, k]) for k in range(states)] for j in range(states)])
    return found, of_terms, moved, np.array([double(x) for x in of_row])


def reversal(size: float) -> Floats:
    """Terms by which a state that is as good as impossible becomes the only one."""
    terms = np.zeros((7, 2))
    terms[0:3, 1], terms[3:5, 0] = -size, -2 * size
    return terms


def moves_of(states: int, *impossible: tuple[int, int]) -> Floats:
    moves = np.log(np.abs(random(5, states, states)) + 0.1)
    for place in impossible:
        moves[place] = -INFINITY
    return moves


LEFT_TO_RIGHT = moves_of(3, (1, 0), (2, 0), (2, 1))
APART = moves_of(2, (0, 1), (1, 0))

CASES: dict[str, tuple[Floats, Floats, Floats]] = {
    "one state": (random(1, 1), random(2, 6, 1), moves_of(1)),
    "one time": (random(1, 3), random(2, 1, 3), moves_of(3)),
    "no time": (random(1, 3), random(2, 0, 3), moves_of(3)),
    "long": (random(1, 2), random(2, 1200, 2) - 5, moves_of(2)),
    "six states": (random(1, 6), 20 * random(2, 30, 6), moves_of(6)),
    "densities of 1e+-300": (random(1, 3), 690 * random(2, 9, 3), moves_of(3)),
    "densities of e+-1e9": (random(1, 3), 1e9 * random(2, 9, 3), moves_of(3)),
    "logarithms of 1e300": (random(1, 3), 1e300 * random(2, 9, 3), moves_of(3)),
    "moves of 1e+-300": (random(1, 3), random(2, 9, 3), 690 * moves_of(3)),
    "a first row of 1e+-300": (690 * random(1, 3), random(2, 9, 3), moves_of(3)),
    "left to right": (random(1, 3), 3 * random(2, 40, 3), LEFT_TO_RIGHT),
    "left to right, fading": (random(1, 3), np.tile([-40.0, -20.0, 0.0], (60, 1)), LEFT_TO_RIGHT),
    "only the first state": (np.array([0, -INFINITY, -INFINITY]), random(2, 9, 3), LEFT_TO_RIGHT),
    "states apart": (random(1, 2), random(2, 9, 2), APART),
    "impossible elements": (random(1, 2), np.array([[0, -INFINITY], [-INFINITY, 1], [2, 3]]), moves_of(2)),
    **{f"reversal of {size}": (random(1, 2), reversal(size), APART) for size in (100.0, 400.0, 500.0, 700.0, 5e4)},
    **{f"reversal of {size} with moves": (random(1, 2), reversal(size), moves_of(2)) for size in (300.0, 700.0, 5e4)},
}  # fmt: skip


def sizes_of(terms: Floats, by_row: int, by_state: int, asked: int | None = None) -> dict[str, int]:
    times, states = terms.shape
    return {"t": times, "k": states, "c": states**2, "u": 1, "by_from": states, "by_to": 1, "by_row": by_row,
            "by_state": by_state, "asked": times if asked is None else asked}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("asked", ["all, in columns", "all", "some", "last"])
def test_rows_and_adjoints(case: str, asked: str) -> None:
    first, terms, moves = CASES[case]
    times, states = terms.shape
    rows_asked = {"last": min(times, 1), "some": times // 2}.get(asked, times)
    sizes = sizes_of(terms, *((1, times) if asked == "all, in columns" else (states, 1)), rows_asked)
    inputs: list[Any] = [first, terms, moves.T]
    adjoints = random(7, times, states) * (random(8, times, 1) > 0.5)
    if asked == "last":
        adjoints[-1:] = 1 + random(7, states)
    adjoints[: times - rows_asked] = 0
    rows, of_terms, of_moves, of_first = exact_rows(first, terms, moves, adjoints)
    laid_out = (lambda x: x.T.ravel()) if asked == "all, in columns" else (lambda x: x[times - rows_asked :].ravel())
    found = run("log_recursion", inputs, sizes)[3]
    np.testing.assert_allclose(found, laid_out(rows), rtol=1e-13, atol=1e-13)
    given = [np.ascontiguousarray(laid_out(adjoints)), None, None, None, None]
    pulled = pull_back("log_recursion", inputs, sizes, given, [True] * 3)
    for actual, expected in zip(pulled, (of_first, of_terms.T.ravel(), of_moves.ravel()), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-11 * max(1.0, np.abs(adjoints).sum()))


def test_all_of_the_moves() -> None:
    """Moves of one time each are those of a recursion of one time, again and again."""
    first, terms, moves = random(1, 3), random(2, 5, 3), random(3, 5, 9)
    sizes = {**sizes_of(terms, 3, 1), "u": 5}
    found = run("log_recursion", [first, terms, moves], sizes)[3].reshape(5, 3)
    row = first
    for t in range(5):
        row = run("log_recursion", [row, terms[t : t + 1], moves[t : t + 1]], sizes_of(terms[:1], 3, 1))[3]
        np.testing.assert_allclose(found[t], row, rtol=1e-14, atol=1e-14)


def test_what_is_no_number_stays_none() -> None:
    """Rows behind it have none either, those before are what they were."""
    first, terms = random(1, 3), random(2, 6, 3)
    sizes = sizes_of(terms, 3, 1)
    inputs: list[Any] = [first, terms, moves_of(3)]
    before = run("log_recursion", inputs, sizes)[3].reshape(6, 3)
    for value in (np.nan, INFINITY):
        terms[2, 1] = value
        found = run("log_recursion", [first, terms, moves_of(3)], sizes)[3].reshape(6, 3)
        np.testing.assert_array_equal(found[:2], before[:2])
        assert not np.isfinite(found[3:]).any()
    moves = moves_of(3)
    moves[1, 2] = np.nan
    assert np.isnan(run("log_recursion", [first, random(2, 6, 3), moves.T], sizes)[3].reshape(6, 3)[:, 2]).all()
