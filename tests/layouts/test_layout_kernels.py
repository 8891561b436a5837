"""The kernels of layouts of data: equal rows, rows in the order of an index, copies; against NumPy."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from kernel_calls import call, run
from numpy.typing import NDArray

from ulam.runtime.c_library import library
from ulam.runtime.native import Context

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


@pytest.mark.parametrize("different", [2, 63, 64, 65, 300])
@pytest.mark.parametrize("n", [400, 40_000])
def test_numbers_of_few_kinds_are_told_apart_by_all_of_their_bits(n: int, different: int) -> None:
    """Some differ in their lowest bits alone, some in their sign; the last kind comes late."""
    rng = np.random.default_rng(different)
    values = np.concatenate([np.arange(different // 2).view(np.float64), -rng.random(different - different // 2)])
    column, before = values[rng.integers(0, different - 1, n)], rng.integers(0, 7, n).astype(np.int32)
    column[-1] = values[-1]
    groups, count = grouped([before, column], n)
    table = np.concatenate([bits(before), bits(column)], axis=1)
    _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    assert count == len(first)
    assert np.array_equal(np.sort(first)[groups], first[inverse.ravel()]), "groups are numbered as they begin"


@pytest.mark.parametrize("differs", [False, True])
@pytest.mark.parametrize("kind", [np.int32, np.float64])
def test_columns_that_say_nothing_new_leave_groups_as_they_are(differs: bool, kind: type) -> None:
    n = 40_000
    first = np.random.default_rng(5).integers(0, 900, n).astype(np.int32)
    second = (7 * first - 40).astype(kind)
    second[-1] += differs
    groups, count = grouped([first, second], n)
    alone, kinds = grouped([first], n)
    assert count == kinds + differs
    assert np.array_equal(groups[:-1], alone[:-1])
    assert groups[-1] == (kinds if differs else alone[-1])


@pytest.mark.parametrize("kind", [np.int32, np.float64])
@pytest.mark.parametrize("columns", [1, 2])
def test_many_groups_are_found_part_by_part(kind: type, columns: int) -> None:
    """So many that one hash table would be larger than caches, of numbers too far apart for a table of ints."""
    n, rng = 120_000, np.random.default_rng(columns)
    kinds = np.unique(rng.integers(-(2**31), 2**31 - 1, 30_000, dtype=np.int64)).astype(kind)
    found = [rng.choice(kinds, n)]
    if columns == 2:
        found.insert(0, rng.integers(0, 2, n).astype(np.int32))
    groups, count = grouped(found, n)
    table = np.stack([bits(column).ravel() for column in found], axis=1)
    _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    assert count == len(first) > 25_000
    expected = np.argsort(np.argsort(first))[inverse.ravel()]
    assert np.array_equal(groups, expected), "numbered as they begin"
    assert grouped(found, count - 1)[1] == -1
    for last in (found[-1], found[-1] % 2):  # as columns of one matrix, one of which says nothing new
        groups, count = grouped([np.stack([found[-1], last, found[0]], axis=1).astype(kind)], n)
        assert count == len(first)
        assert np.array_equal(groups, expected)


@pytest.mark.parametrize("kinds", [200, 10**9])
def test_a_sample_of_measurements_tells_whether_to_look_for_equal_rows(kinds: int) -> None:
    x = np.random.default_rng(1).integers(0, kinds, (40_000, 3)).astype(float)
    x[:, :2] = 1.0
    sizes = {"n": 40_000, "k": 3, "row": 1, "column": 40_000}
    *_, known = run("sample_reals", [x.ravel(order="F")], sizes)
    assert known[0] == (1 if kinds == 200 else -1)


@pytest.mark.parametrize("zeros, copies, known", [(0.1, 1, -1), (0.4, 1, -1), (0.7, 1, 1), (0.1, 4, 1), (0, 3, 1)])
def test_one_large_group_does_not_pass_for_many_equal_rows(zeros: float, copies: int, known: int) -> None:
    """As of censored outcomes: `zeros` are the part of rows that are 0, all others have `copies` each."""
    n, rng = 1_000_000, np.random.default_rng(3)
    x = rng.permutation(np.repeat(rng.normal(size=n // copies + 1), copies)[:n])
    x[rng.random(n) < zeros] = 0
    *_, told = run("sample_reals", [x], {"n": n, "k": 1, "row": 1, "column": n})
    assert told[0] == known


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


def segmented(keys: Sequence[Column], uses: list[int], work: int = 0) -> tuple[Column, list[int], list[int], list[int]]:
    """The order of rows, the runs, the first run of each block, and figures."""
    n = len(keys[0])
    sizes = {"n": n, "k": len(keys), "work": work, "r": n // 4 + n // 64 + 2, "b": (n + 63) // 64 + 1}
    table = [np.concatenate(keys).astype(np.int32), np.array(uses, np.int32)]
    *_, order, runs, first, figures = run("segment_rows", table, sizes)
    return order, runs.tolist(), first.tolist(), figures.tolist()


@pytest.mark.parametrize(
    ("n", "kinds", "ordered"),
    [
        (7, 7, False),
        (700, 5, False),
        (700, 5, True),
        (60_000, 300, False),
        (500_000, 9000, False),
        (500_000, 9000, True),
    ],
)
@pytest.mark.parametrize("far", [1, 100_003])
def test_equal_keys_come_side_by_side(n: int, kinds: int, ordered: bool, far: int) -> None:
    keys = np.random.default_rng(n).integers(-kinds // 2, kinds // 2 + 1, n) * far
    if ordered:
        keys = np.sort(keys)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    by_begin = np.argsort(np.argsort(first))[inverse]  # numbers in the order in which keys begin
    order, runs, blocks, figures = segmented([keys], [3])
    if n < 100:
        assert figures == [0, 0, 0, 0]
        return
    assert np.array_equal(order, np.argsort(by_begin, kind="stable"))
    assert figures == [1, ordered, len(first), np.bincount(by_begin).max()]
    begins = sorted({*np.flatnonzero(np.diff(keys[order], prepend=keys[order[0]] - 1)).tolist(), *range(0, n, 64)})
    assert runs[: len(begins) + 1] == [*begins, n]
    assert blocks == [*np.searchsorted(begins, np.arange(0, n, 64)), len(begins)]
    values = np.random.default_rng(1).standard_normal((n, 2))
    sizes = {"n": n, "k": 2, "row": 2, "column": 1, "t": 2 * n}
    assert np.array_equal(run("take_reals", [values.ravel(), order], sizes)[-1], values[order].ravel(order="F"))


@pytest.mark.parametrize(("work", "run", "taken"), [(5, 1, False), (5, 4, False), (5, 300, True), (200, 300, False)])
def test_an_order_is_for_rows_that_wait_and_compute_little(work: int, run: int, taken: bool) -> None:
    """Additions to other elements than the row before hardly cost more than a sum."""
    keys = np.random.default_rng(2).integers(0, 50, 6000 // run + 1).repeat(run)[:6000]
    order, *_, figures = segmented([keys], [1], work)
    assert (figures[0] == 1) is taken
    assert taken or np.array_equal(order, np.arange(6000))


@pytest.mark.parametrize(("run", "taken"), [(3, False), (14, True), (100, True)])
def test_rows_of_several_additions_wait_for_shorter_runs(run: int, taken: bool) -> None:
    """Fewer of them are on their way at once, so that few runs are side by side: answers of people to `run` items."""
    people, items = np.arange(7000) // run, np.arange(7000) % run
    order, *_, figures = segmented([items, people], [2, 1], 9)
    assert figures[0] == (2 if taken else 0), "what items add is summed, of people row by row"
    assert not taken or np.array_equal(order, np.argsort(items, kind="stable"))


def test_the_key_that_leaves_least_to_add_is_taken() -> None:
    rng = np.random.default_rng(6)
    few, many = rng.integers(0, 9, 125).repeat(32), rng.permutation(4000)
    for keys, outcome in (([few, few + 1], 1), ([few, many], 2), ([many, few], 3), ([many, many], 0)):
        order, _, _, figures = segmented(keys, [1, 1])
        assert figures[0] == outcome
        expected = np.arange(4000)
        if outcome:
            begins = np.unique(few, return_index=True)[1]
            expected = np.argsort(np.argsort(np.argsort(begins))[few], kind="stable")
        assert np.array_equal(order, expected)


def test_small_numbers_in_several_columns_do_not_collide() -> None:
    """A table that has its entries in few places takes a hundred times as long."""
    rng = np.random.default_rng(8)
    kinds = rng.integers(0, 200 * 200, 160_000)
    crossed, mixed = [kinds % 200, kinds // 200], [kinds % 200 * np.pi, kinds // 200 * np.e]
    seconds: list[list[float]] = [[], []]
    for _ in range(3):
        for taken, columns in zip(seconds, (crossed, mixed), strict=True):
            start = time.process_time()
            found = grouped([column.astype(columns[0].dtype) for column in columns], len(kinds))
            taken.append(time.process_time() - start)
            assert found[1] == len(np.unique(kinds))
    assert min(seconds[0]) < 10 * min(seconds[1])


def test_more_rows_than_32_bits_count_are_left_alone() -> None:
    """Nothing of them is read."""
    n, context = 2**31, Context()

    def call(name: str, *arguments: Any) -> int:
        function = getattr(library(), f"ulam_{name}")
        function.restype = ctypes.c_int32
        pointers = [ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else a for a in arguments]
        return function(
            ctypes.c_void_p(context.address), *(ctypes.c_int64(a) if isinstance(a, int) else a for a in pointers)
        )

    count, figures = np.array([5]), np.full(9, 5)
    call("group_reals", None, n, 1, 1, 0, None, 1, n, None, count)
    assert count[0] == -1
    runs, first = np.zeros(2, np.int32), np.zeros(2, np.int64)
    call("segment_rows", None, n, 1, None, 5, 2, 2, None, runs, first, figures)
    assert figures[0] == 0, "there is no other order"
    call("sparse_columns", None, None, 1, 1, np.array([0, n]), np.zeros(1, np.int64), figures)
    assert list(figures[:3]) == [2, n, 1]
    assert call("weigh_rows", None, None, None, 0, n, 0, 64, None, None, None, None, figures) == 2
    assert "2147483648 rows" in context.message


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


NO_PLACE = np.iinfo(np.int32).min


@pytest.mark.parametrize(("n", "most"), [(1, 1), (7, 3), (5000, 40), (5000, 5000)])
@pytest.mark.parametrize("some", [1.0, 0.4, 0.0])
def test_heads_are_the_first_rows_of_places(n: int, most: int, some: float) -> None:
    rng = np.random.default_rng(n)
    places = np.where(rng.uniform(size=n) < some, rng.integers(0, most, n), NO_PLACE).astype(np.int32)
    here = np.flatnonzero(places != NO_PLACE)
    expected, first, counts = np.unique(places[here], return_index=True, return_counts=True)
    _, figures = run("count_places", [places], {"n": n})
    assert figures.tolist() == [len(expected), expected[-1] + 1 if len(expected) else 0, len(here)]
    _, heads, rows = run("place_heads", [places], {"n": n, "s": int(figures[1]), "g": int(figures[0])})
    assert np.array_equal(heads, here[first]) and np.array_equal(rows, counts)


@pytest.mark.parametrize("wrong", [-1, 5, 2**31 - 1, NO_PLACE + 1])
def test_places_below_0_and_beyond_the_rows_are_not_counted(wrong: int) -> None:
    _, figures = run("count_places", [np.array([0, 1, wrong, 1, 0], np.int32)], {"n": 5})
    assert figures.tolist() == [-1, 0, 0]


def test_places_are_counted_again_in_the_same_memory() -> None:
    context, n = Context(), 1 << 20
    places, figures = np.arange(n, dtype=np.int32), np.zeros(3, np.int64)
    heads, rows = np.zeros(n, np.int32), np.zeros(n, np.int32)
    for _ in range(3):
        call("count_places", context, places, n, figures)
        assert figures.tolist() == [n, n, n]
        call("place_heads", context, places, n, n, n, heads, rows)
        assert np.array_equal(heads, places) and rows.min() == rows.max() == 1
