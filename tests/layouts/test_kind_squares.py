"""Rows of several kinds, to the sums of squares of each, by kernels: against NumPy, with no room to spare."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from kernel_calls import call, is_kept_behind, room_for
from numpy.typing import NDArray

from ulam.library.kernels import DESIGN_BLOCK, DESIGN_HELD, KINDS_SIZES, KINDS_STATE
from ulam.runtime.native import Context

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NO_KEY = -(2**63)


class Reduced:
    """The tables of rows [x | y] of kinds that `keys` tell, with data that are added up; what became of them."""

    def __init__(self, x: Floats, y: Floats, keys: Integers, sums: Floats) -> None:
        context, rows = Context(), np.hstack([x, y[:, None]])
        self.columns = x.shape[1]
        state, sizes = room_for(KINDS_STATE, np.int64), room_for(KINDS_SIZES, np.int64)
        call("kinds_begin", context, state, self.columns, keys.shape[1], sums.shape[1], len(y), self.columns + 1)
        blocks = [
            room_for(part.shape[1] * DESIGN_BLOCK, kind)
            for part, kind in ((rows, float), (keys, np.int64), (sums, float))
        ]
        views = [
            block[: part.shape[1] * DESIGN_BLOCK].reshape(-1, DESIGN_BLOCK)
            for block, part in zip(blocks, (rows, keys, sums), strict=True)
        ]
        views[0][:] = 0
        arguments = (blocks[0], views[0].size, blocks[1], views[1].size, blocks[2], views[2].size)
        turn = 0
        while turn < state[0]:
            for first in range(0, len(y), DESIGN_BLOCK):
                held = min(DESIGN_BLOCK, len(y) - first)
                for view, part in zip(views, (rows, keys, sums), strict=True):
                    view[:, :held] = part[first : first + held].T
                state[DESIGN_HELD] = held
                if held == DESIGN_BLOCK:
                    call("kinds_rows", context, state, state, *arguments)
            call("kinds_turn", context, state, state, *arguments)
            assert not views[0].any() and not state[DESIGN_HELD]
            turn += 1
        call("kinds_sizes", context, state, sizes)
        self.outcome, used, self.kinds, self.room, n, self.size, self.sums_from, self.rows = map(int, sizes[:8])
        assert used == (self.outcome == 0)
        self.turns = turn
        key_table, self.table = room_for(n, np.int64), room_for(self.size)
        call("kinds_tables", context, state, key_table, n, self.table, self.size)
        self.keys = key_table[:n].reshape(keys.shape[1], self.room)[:, : self.kinds].T
        self.sums = self.table[self.sums_from : self.size].reshape(sums.shape[1], self.room)[:, : self.kinds].T
        for buffer in (state, sizes, *blocks, key_table, self.table):
            assert is_kept_behind(buffer), "something wrote behind its end"

    def squares(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """The sum of squares of each kind, and half of its gradient."""
        b = np.zeros((self.columns, self.room))
        b[:, : self.kinds] = coefficients.T
        found, size, half = room_for(self.room), room_for(1), room_for(b.size)
        call("kind_squares", Context(), self.table, b, self.size, self.columns, self.room, found, size, half)
        assert size[0] == pytest.approx((coefficients**2).sum())
        for buffer in (found, size, half):
            assert is_kept_behind(buffer), "something wrote behind its end"
        return found[: self.kinds], half[: b.size].reshape(b.shape)[:, : self.kinds].T


def rows_of(n: int, columns: int, kinds: int, run: int) -> tuple[Floats, Floats, Integers]:
    """Rows of kinds of two keys, `run` of a kind one behind the other; the last kind has one row."""
    rng = np.random.default_rng(columns + run)
    kind = np.repeat(rng.integers(0, kinds, n // run + 1), run)[:n]
    kind[-1] = kinds
    return rng.normal(size=(n, columns)), rng.normal(size=n), np.column_stack([kind // 3 - 1, kind % 3])


@pytest.mark.parametrize(("kinds", "turns"), [(9, 2), (60, 3)])  # few are reduced while they are told
@pytest.mark.parametrize("run", [1, 3, 4, 70])
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 9])
def test_sums_of_squares_are_those_of_the_rows_of_a_kind(columns: int, run: int, kinds: int, turns: int) -> None:
    x, y, keys = rows_of(4000, columns, kinds, run)
    rng = np.random.default_rng(1)
    for offset in (0.0, 1e3):
        weights = rng.normal(size=(4000, 2))
        reduced = Reduced(x, y + offset, keys, weights)
        assert (reduced.outcome, reduced.turns, reduced.rows) == (0, turns, 4000)  # one row alone fits exactly
        assert len({*map(tuple, reduced.keys)}) == reduced.kinds == len({*map(tuple, keys)})
        b = rng.normal(size=(reduced.kinds, columns))
        squares, halves = reduced.squares(b)
        for k in range(reduced.kinds):
            own = (keys == reduced.keys[k]).all(axis=1)
            rests = x[own] @ b[k] - (y[own] + offset)
            assert squares[k] == pytest.approx(rests @ rests, rel=1e-10)
            np.testing.assert_allclose(halves[k], x[own].T @ rests, rtol=1e-9, atol=1e-10 * np.abs(rests).sum())
            np.testing.assert_allclose(reduced.sums[k], weights[own].sum(axis=0), rtol=1e-12, atol=1e-12)


def test_outcomes_far_from_0() -> None:
    """Against rational arithmetic, near the means."""
    rng = np.random.default_rng(2)
    y, keys = 1e8 + rng.normal(size=900), np.arange(900)[:, None] % 3
    reduced = Reduced(np.ones((900, 1)), y, keys, np.empty((900, 0)))
    means = np.array([[y[keys[:, 0] == k].mean() + 0.1] for k in range(3)])
    squares, halves = reduced.squares(means)
    for k in range(3):
        rests = [Fraction(value) - Fraction(means[k, 0]) for value in y[keys[:, 0] == k]]
        assert abs(float(Fraction(squares[k]) - sum(rest * rest for rest in rests))) < 1e-13 * squares[k]
        assert abs(float(Fraction(halves[k, 0]) + sum(rests))) < 1e-12 * abs(halves[k, 0])


def test_keys_that_rows_do_not_have_are_those_of_other_rows() -> None:
    """What is read by them is multiplied with 0."""
    _, y, keys = rows_of(2000, 1, 9, 1)
    keys[keys[:, 0] == 0, 1] = NO_KEY
    reduced = Reduced(np.ones((2000, 1)), y, keys, np.empty((2000, 0)))
    assert reduced.outcome == 0 and reduced.keys.min() == -1 and reduced.keys[:, 1].min() == 0


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e100, 1e-100])
def test_numbers_that_are_not_moderate_are_refused(value: float) -> None:
    x, y, keys = rows_of(2000, 2, 5, 1)
    x[700, 1] = value
    assert Reduced(x, y, keys, np.empty((2000, 0))).outcome == 1


def test_many_kinds_and_columns_far_from_0_are_refused() -> None:
    x, y, _ = rows_of(2000, 2, 5, 1)
    none = np.empty((2000, 0))
    assert Reduced(x, y, np.arange(2000)[:, None] // 3, none).outcome == 2
    assert Reduced(x[:6], y[:6], np.zeros((6, 1), np.int64), none[:6]).outcome == 2
    x[:, 0], x[:, 1] = 1, 1e6 + x[:, 1]
    assert Reduced(x, y, np.arange(2000)[:, None] % 3, none).outcome == 3
