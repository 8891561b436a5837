"""Designs, from their rows to the sum of squares, by kernels of the runtime: against NumPy, with no room to spare."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from kernel_calls import call, is_kept_behind, room_for
from numpy.typing import NDArray

from ulam.library.kernels import DESIGN_BLOCK, DESIGN_HELD, DESIGN_SIZES, DESIGN_STATE
from ulam.runtime.native import Context

Floats = NDArray[np.float64]


def reduced_squares(
    X: Floats, own: Floats, keys: NDArray[np.int64], y: Floats, b: Floats, u: Floats
) -> tuple[float, Floats, Floats]:
    """The sum of squares, and half of its gradient."""
    context = Context()
    n, shared = X.shape
    state, sizes = room_for(DESIGN_STATE, np.int64), room_for(DESIGN_SIZES, np.int64)
    known = np.array([n, 0])
    entries = own.shape[1] + shared + 1
    call("design_begin", context, state, own.shape[1], shared, entries, entries, 1, known)
    rows, turn = np.hstack([own, X, y[:, None]]), 0
    block, of_rows = room_for(rows.shape[1] * DESIGN_BLOCK), room_for(DESIGN_BLOCK, np.int64)
    columns = block[: rows.size // n * DESIGN_BLOCK].reshape(-1, DESIGN_BLOCK)
    columns[:] = 0
    while turn < state[0]:
        for first in range(0, n, DESIGN_BLOCK):
            held = min(DESIGN_BLOCK, n - first)
            columns[:, :held], of_rows[:held] = rows[first : first + held].T, keys[first : first + held]
            state[DESIGN_HELD] = held
            if held == DESIGN_BLOCK:
                call("design_rows", context, state, state, block, columns.size, of_rows)
        call("design_turn", context, state, state, block, columns.size, of_rows)
        assert not columns.any() and not state[DESIGN_HELD]
        turn += 1
    call("design_sizes", context, state, sizes)
    _, used, _, groups, _, room, s, t = map(int, sizes[:8])
    assert used, "these designs have tables"
    table, group_table, mine = room_for(s), room_for(t), np.zeros(own.shape[1] * room)
    for q in range(own.shape[1]):
        mine[q * room : q * room + groups] = u[:, q]
    call("design_tables", context, state, table, s, group_table, t)
    sums, half, mine_half = room_for(2), room_for(shared), room_for(mine.size)
    call(
        "reduced_squares", context, table, group_table, b, mine, s, t, shared, own.shape[1], room, sums, half,
        mine_half,
    )  # fmt: skip
    for buffer in (state, sizes, block, of_rows, table, group_table, sums, half, mine_half):
        assert is_kept_behind(buffer), "something wrote behind its end"
    assert sums[1] == pytest.approx(b @ b + (u**2).sum())
    halves = mine_half[: mine.size].reshape(own.shape[1], room)[:, :groups].T
    return float(sums[0]), half[:shared], halves


@pytest.mark.parametrize("width", [0, 1, 2])
@pytest.mark.parametrize("shared", [1, 6, 7, 8, 15, 16, 31, 32, 40])
def test_sums_of_squares_are_those_of_all_rows(shared: int, width: int) -> None:
    rng = np.random.default_rng(shared)
    for n, offset in ((400, 0.0), (2000, 100.0)):
        X, own = rng.normal(size=(n, shared)) + offset, rng.normal(size=(n, width))
        keys = rng.integers(0, 11, n)
        keys[:11] = np.arange(11)
        b, u, y = rng.normal(size=shared), rng.normal(size=(11 if width else 0, width)), rng.normal(size=n) + offset
        total, half, halves = reduced_squares(X, own, keys, y, b, u)
        effects = (own * u[keys]).sum(axis=1) if width else 0.0
        rests = X @ b + effects - y
        assert total == pytest.approx(rests @ rests, rel=1e-10)
        scale = np.abs(X.T) @ np.abs(rests)
        assert (np.abs(half - X.T @ rests) <= 1e-11 * scale + 1e-12).all()
        for g in range(11 if width else 0):
            mine = own[keys == g].T @ rests[keys == g]
            np.testing.assert_allclose(halves[g], mine, rtol=1e-9, atol=1e-9 * np.abs(rests).sum())


UNIT = 2.0**-53
SHAPES = {
    # columns, whether they nearly depend on each other, how far they are from 0, and y is
    "scattered": (3, False, 0.0, 0.0),
    "y far from 0": (3, False, 0.0, 1e8),
    "columns far from 0": (3, False, 1e4, 0.0),
    "columns and y far from 0": (3, False, 1e8, 1e8),
    "columns that nearly depend": (3, True, 0.0, 0.0),
    "many columns far from 0": (18, False, 100.0, 0.0),
    "many columns that nearly depend": (18, True, 0.0, 0.0),
}


@pytest.mark.parametrize("width", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_errors_are_small_beside_what_rows_add_up(shape: str, width: int) -> None:
    """Against rational arithmetic, where numbers of the data cancel: at coefficients that fit, 0, and others."""
    columns, depend, offset, of_y = SHAPES[shape]
    rng = np.random.default_rng(5)
    n = 600
    X = np.column_stack([np.ones(n), rng.normal(size=(n, columns)) + offset])
    if depend:
        X[:, 2] = X[:, 1] + 1e-8 * X[:, 2]
    own, keys = rng.normal(size=(n, width)) + offset * 1e-6, np.arange(n) % 4
    y = of_y + X[:, 1:] @ rng.normal(size=columns) + rng.normal(size=n)
    y -= 0 if of_y else y.mean()
    grouped = [np.where(keys == g, own[:, 0], 0) for g in range(4)] if width else []
    best = np.asarray(np.linalg.lstsq(np.column_stack([X, *grouped]), y, rcond=None)[0], np.float64)
    b, u = best[: X.shape[1]], best[X.shape[1] :].reshape(len(grouped), width)
    near = 1e-9 * rng.normal(size=b.size)
    for units, coefficients, effects in (
        (4, b, u), (4, b * (1 + near), u), (16, 0 * b, 0 * u), (16, 1e-3 * b, u), (16, rng.normal(size=b.size), -u),
        (16, -2 * b, u),
    ):  # fmt: skip
        total, half, halves = reduced_squares(X, own, keys, y, coefficients, effects)
        rests, most = exact_rests(X, own, keys, y, coefficients, effects)
        sizes = np.abs([float(rest) for rest in rests]) + UNIT * most
        assert abs(float(Fraction(total) - sum(rest * rest for rest in rests))) <= units * UNIT * (sizes @ most)
        for k in range(b.size):
            slope = sum((Fraction(x) * rest for x, rest in zip(X[:, k].tolist(), rests, strict=True)), Fraction(0))
            assert abs(float(Fraction(float(half[k])) - slope)) <= units * UNIT * (np.abs(X[:, k]) @ most)
        for g, column in enumerate(grouped):
            slope = sum((Fraction(x) * rest for x, rest in zip(column.tolist(), rests, strict=True)), Fraction(0))
            assert abs(float(Fraction(float(halves[g, 0])) - slope)) <= units * UNIT * (np.abs(column) @ most)


def exact_rests(
    X: Floats, own: Floats, keys: NDArray[np.int64], y: Floats, b: Floats, u: Floats
) -> tuple[list[Fraction], Floats]:
    """What rows leave of y, with the opposite sign; the sums of the sizes of what that is made of."""
    rests: list[Fraction] = []
    most: list[float] = []
    for i in range(y.size):
        numbers, factors = [*X[i].tolist(), *own[i].tolist()], [*b.tolist(), *(u[keys[i]].tolist() if len(u) else [])]
        parts = [Fraction(x) * Fraction(factor) for x, factor in zip(numbers, factors, strict=True)]
        rests.append(sum(parts, -Fraction(float(y[i]))))
        most.append(float(abs(Fraction(float(y[i]))) + sum(map(abs, parts))))
    return rests, np.array(most)
