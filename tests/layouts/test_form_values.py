"""Rows of vectors, from these to what is linear in their numbers, by kernels of the runtime: against rational
arithmetic, with no room to spare.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from kernel_calls import call, is_kept_behind, room_for
from numpy.typing import NDArray

from ulam.library.kernels import FORMS_ROWS, FORMS_SIZES, FORMS_STATE
from ulam.runtime.native import Context

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def plan_of(shared: list[list[int]], keyed: list[list[int]]) -> Ints:
    """As runtime/c/reduced_forms.h has it, of the columns of each value, by kinds of coefficients."""
    starts = [np.cumsum([0, *map(len, kind)]) for kind in (shared, keyed)]
    return np.concatenate([*starts, *(np.array(value, np.int64) for kind in (shared, keyed) for value in kind)])


def reduced(rows: Floats, keys: Ints, own: int, plan: Ints, values: int) -> tuple[dict[str, int], Floats]:
    """The figures, and the table, with what nothing may write behind."""
    context = Context()
    n, columns = rows.shape
    state, sizes = room_for(FORMS_STATE, np.int64), room_for(FORMS_SIZES, np.int64)
    call("forms_begin", context, state, columns, n, own, 5)
    turn = 0
    while turn < state[0]:
        for i in range(n):
            call("forms_row", context, state, state, np.ascontiguousarray(rows[i]), columns, int(keys[i]))
        call("forms_turn", context, state, state, plan, plan.size, values)
        turn += 1
    call("forms_sizes", context, state, sizes)
    names = ("refused", "rows", "size", "n", "columns", "bytes", "low", "span")
    figures: dict[str, int] = dict(zip(names, map(int, sizes), strict=False))
    figures["is_twofold"] = figures["size"] == 2 * (figures["rows"] * columns + FORMS_ROWS)
    table = room_for(figures["size"])
    call("forms_table", context, state, table, figures["size"])
    for buffer in (state, sizes, table):
        assert is_kept_behind(buffer), "something wrote behind its end"
    return figures, table


def numbers_of(figures: dict[str, int], table: Floats) -> Any:
    """The columns of a table, exactly: with second numbers, or with means."""
    columns, left = figures["columns"], figures["rows"]
    behind = columns * left + FORMS_ROWS
    found = exact(table[: columns * left]).reshape(columns, left)
    if figures["is_twofold"]:
        return found + exact(table[behind : behind + columns * left]).reshape(columns, left)
    means = exact(table[behind : behind + columns])
    assert means[0] == 1
    means[0] = 0
    return found + np.outer(means, found[0])


def data(own: int, shared: int, offset: float, n: int = 90) -> tuple[Floats, Ints]:
    """Rows that begin with the number 1, and keys from 3 on."""
    rng = np.random.default_rng(own + shared)
    rows = rng.normal(size=(n, own + shared)) + offset
    rows[:, 0] = 1
    keys = rng.integers(3, 8, n)
    keys[:5] = np.arange(3, 8)
    return rows, keys


def exact(numbers: Any) -> Any:
    return np.vectorize(Fraction, otypes=[object])(numbers)


@pytest.mark.parametrize("own", [0, 1, 2])
@pytest.mark.parametrize("shared", [2, 3, 4, 5, 9])
@pytest.mark.parametrize("offset", [0.0, 100.0, 1e9])
def test_products_of_columns_are_those_of_all_rows(own: int, shared: int, offset: float) -> None:
    """Those of rows of groups, too; to twice the digits, or of few rows as well as doubles tell."""
    rows, keys = data(own, shared, offset)
    columns = own + shared
    plan = plan_of([list(range(columns))], [list(range(own))])
    figures, table = reduced(rows, keys, own, plan, 1)
    span = 5 if own else 0
    left = own * span + shared
    assert (figures["refused"], figures["rows"]) == (0, left)
    assert figures["is_twofold"] == (offset > (1000 if columns == 2 else 0))  # means of one column are taken out
    found = numbers_of(figures, table).T
    unit = Fraction(1, 10**28 if figures["is_twofold"] else 10**14)
    every = exact(rows)
    wrong, sizes = abs(found.T @ found - every.T @ every), abs(every).T @ abs(every)
    assert (wrong <= unit * sizes).all()
    for group in range(span if figures["is_twofold"] else 0):
        ours, theirs = found[group : own * span : span], every[keys == 3 + group]
        wrong = abs(ours.T @ ours - theirs.T @ theirs)[:own]
        assert (wrong <= unit * sizes[:own]).all()


@pytest.mark.parametrize("own", [0, 2])
def test_combinations_of_columns_have_twice_the_digits(own: int) -> None:
    """Outcomes without noise, of which coefficients leave nothing; a column of zeros is none."""
    rows, keys = data(own, 4, 0.0)
    columns = own + 4
    rows[:, -2] = 0
    for noise in (0.0, 2.0):
        rows[:, -1] = 3 * rows[:, 0] - 2 * rows[:, own + 1] + noise * np.random.default_rng(1).normal(size=len(rows))
        plan = plan_of([list(range(columns))], [list(range(own))])
        figures, _ = reduced(rows, keys, own, plan, 1)
        assert figures["is_twofold"] == (noise == 0)


@pytest.mark.parametrize("own", [0, 1, 3])
@pytest.mark.parametrize("shared", [2, 5, 8])
@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_values_are_exact_where_numbers_cancel(own: int, shared: int, offset: float) -> None:
    """Against rational arithmetic, else as exact as doubles are; and what pullbacks add is what products with the table
    are.
    """
    rows, keys = data(own, shared, offset)
    rng = np.random.default_rng(3)
    columns, values = own + shared, 3
    # the second value has a column twice, the third one no coefficient of groups
    of_all = [list(range(columns)), [columns - 1, 0, columns - 1], [own, columns - 1]]
    of_groups = [list(range(own)), list(range(own))[:1], []]
    plan = plan_of(of_all, of_groups)
    figures, table = reduced(rows, keys, own, plan, values)
    assert figures["is_twofold"] == (offset > 0)
    left, span = figures["rows"], figures["span"] if own else 0
    numbers = numbers_of(figures, table)
    first_shared = own * span
    entries = [sum(map(len, kind)) for kind in (of_all, of_groups)]
    shared_coefficients = rng.normal(size=entries[0])
    shared_coefficients[1:columns] -= shared_coefficients[1:columns].mean()  # offsets cancel
    keyed = np.full(entries[1] * span + FORMS_ROWS, np.nan)
    keyed[: entries[1] * span] = rng.normal(size=entries[1] * span)
    found = room_for(left * values)
    sizes = (figures["size"], plan.size, entries[0], keyed.size, values, columns, left, own, span)
    context = Context()
    call("form_values", context, table, plan, shared_coefficients, keyed, *sizes, found)
    assert is_kept_behind(found)
    at = [0, 0]
    weights = rng.normal(size=(left, values))
    slopes = [np.zeros(entries[0]), np.zeros(keyed.size)]
    for v in range(values):
        total, most = exact(np.zeros(left)), exact(np.zeros(left))
        for column in of_all[v]:
            term = numbers[column] * Fraction(float(shared_coefficients[at[0]]))
            total, most = total + term, most + abs(term)
            slopes[0][at[0]] = float(exact(weights[:, v]) @ numbers[column])
            at[0] += 1
        for column in of_groups[v]:
            mine = keyed[at[1] * span : (at[1] + 1) * span]
            each = np.concatenate([np.tile(mine, own), np.zeros(left - first_shared)])
            term = numbers[column] * exact(each)
            total, most = total + term, most + abs(term)
            products = (exact(weights[:, v]) * numbers[column])[:first_shared].reshape(own, span).sum(axis=0)
            slopes[1][at[1] * span : (at[1] + 1) * span] = products.astype(float)
            at[1] += 1
        ours = exact(found[: left * values].reshape(left, values)[:, v])
        assert (abs(ours - total) <= abs(total) / 2**52 + most / Fraction(2) ** (98 if offset else 49)).all()
    adjoints = [np.zeros(entries[0]), np.zeros(keyed.size)]
    weights = np.ascontiguousarray(weights.ravel())
    call(
        "form_values_pullback", context, table, plan, shared_coefficients, keyed, *sizes, found, np.zeros(1),
        *adjoints, weights,
    )  # fmt: skip
    scale = float(abs(numbers).sum()) * np.abs(weights).max()
    for ours, right in zip(adjoints, slopes, strict=True):
        np.testing.assert_allclose(ours, right, rtol=0, atol=1e-15 * scale)
    assert not adjoints[1][entries[1] * span :].any()
