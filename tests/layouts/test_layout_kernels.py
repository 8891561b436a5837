"""The kernels of layouts of data: equal rows, rows in the order of an index, copies; against NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from kernel_calls import run
from numpy.typing import NDArray

Column = NDArray[Any]


def grouped(columns: Sequence[Column], most: int) -> tuple[NDArray[np.int32], int]:
    """The group of each row, and how many there are. Columns are of one element per row, or column-major matrices."""
    n = len(columns[0])
    groups, known = np.zeros(n, np.int32), 1
    for column in columns:
        kind = "group_reals" if column.dtype == np.float64 else "group_ints"
        width = column.shape[1] if column.ndim == 2 else 1
        sizes = {"n": n, "k": width, "row": 1, "column": n}
        *_, groups, count = run(kind, [column.ravel(order="F"), groups], sizes, [known, most])
        known = int(count[0])
    return groups, known


def bits(column: Column) -> NDArray[np.int64]:
    return (column.view(np.int64) if column.dtype == np.float64 else column.astype(np.int64)).reshape(len(column), -1)


def columns_of(rng: np.random.Generator, n: int) -> list[Column]:
    return [
        rng.integers(-2, 3, n).astype(np.int32),
        rng.choice(np.array([0.0, -0.0, np.nan, np.inf, 1.0]), n),
        rng.choice(np.array([1.0, 2.0]), (n, 3)),
    ]


@pytest.mark.parametrize("n", [1, 7, 5000, 40_000])
def test_rows_are_equal_where_all_bits_of_all_columns_are(n: int) -> None:
    columns = columns_of(np.random.default_rng(n), n)
    groups, count = grouped(columns, n)
    table = np.concatenate([bits(column) for column in columns], axis=1)
    _, first, inverse, rows = np.unique(table, axis=0, return_index=True, return_inverse=True, return_counts=True)
    assert count == len(first)
    _, heads, weights = run("group_heads", [groups], {"n": n, "g": count})
    assert np.array_equal(heads, np.sort(first)), "groups are numbered as they begin"
    assert np.array_equal(heads[groups], first[inverse.ravel()])
    assert np.array_equal(weights[groups], rows[inverse.ravel()])


def test_too_many_groups_are_given_up() -> None:
    x = np.arange(3000.0) % 2000
    assert grouped([x], 1999)[1] == -1
    assert grouped([x], 2000)[1] == 2000
    assert grouped([x, x], 1999)[1] == -1, "what was given up stays so"


@pytest.mark.parametrize(("unique", "found"), [(100_000, False), (10_000, True), (3, True)])
def test_a_sample_tells_where_hardly_any_rows_repeat(unique: int, found: bool) -> None:
    values = np.random.default_rng(4).permutation(np.arange(100_000.0) % unique)
    for order in (values, np.sort(values)):
        assert (grouped([order], 100_000)[1] == unique) is found


@pytest.mark.parametrize("n", [0, 1, 6, 3000])
@pytest.mark.parametrize("segments", [1, 40])
def test_rows_in_the_order_of_an_index(n: int, segments: int) -> None:
    index = np.random.default_rng(n).integers(1, segments + 1, n).astype(np.int32)
    for given in (index, np.sort(index)):
        _, order, starts, figures = run("order_rows", [given], {"n": n, "s": segments + 1})
        assert np.array_equal(order, np.argsort(given, kind="stable"))
        counts = np.bincount(given, minlength=segments + 1)[1:]
        assert np.array_equal(starts, [0, *np.cumsum(counts)])
        is_sorted = bool(np.all(given[:-1] <= given[1:]))
        assert list(figures) == [1, is_sorted, np.count_nonzero(counts), counts.max(initial=0)]


@pytest.mark.parametrize("wrong", [0, -7, 5, 2**31 - 1])
def test_an_index_out_of_range_orders_nothing(wrong: int) -> None:
    index = np.array([3, 1, wrong, 2], np.int32)
    _, order, starts, figures = run("order_rows", [index], {"n": 4, "s": 5})
    assert list(order) == [0, 1, 2, 3] and not starts.any() and figures[0] == 0


@pytest.mark.parametrize("by_rows", [False, True])
def test_copies_in_an_order(by_rows: bool) -> None:
    matrix = np.random.default_rng(5).standard_normal((9, 4))
    order = np.array([8, 0, 0, 3], np.int32)
    strides = {"row": 4, "column": 1} if by_rows else {"row": 1, "column": 9}
    sizes = {"n": 4, "k": 4, "t": 36, **strides}
    flat = matrix.ravel(order="C" if by_rows else "F")
    assert np.array_equal(run("take_reals", [flat, order], sizes)[-1], matrix[order].ravel(order="F"))
    ints = np.arange(36, dtype=np.int32).reshape(9, 4)
    flat = ints.ravel(order="C" if by_rows else "F")
    assert np.array_equal(run("take_ints", [flat, order], sizes)[-1], ints[order].ravel(order="F"))
