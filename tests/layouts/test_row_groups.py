"""Rows in groups of one weight and one arm: the kernel, against counting."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from kernel_calls import run

ROOM = 64


def grouped(kinds: list[int], arms: list[int]) -> tuple[Counter[tuple[int, int]], list[int], list[int]]:
    """How often each row counts, with its arm; the rows in their order; figures. `kinds`: equal for equal rows."""
    n = len(kinds)
    heads, counts = np.unique(kinds, return_index=True, return_counts=True)[1:] if n else (np.zeros(0), np.zeros(0))
    inputs = [heads.astype(np.int32), counts.astype(float), np.array(arms if any(arms) else [], np.int32)]
    sizes = {"n": n, "a": n if any(arms) else 0, "g": len(heads), "m": ROOM}
    *_, order, starts, weights, taken, figures = run("weigh_rows", inputs, sizes)
    found: Counter[tuple[int, int]] = Counter()
    for j in range(figures[0]):
        for row in order[starts[j] : starts[j + 1]]:
            assert arms[row] == taken[j]
            found[kinds[row], arms[row]] += int(weights[j])
    assert starts[figures[0]] == figures[1]
    return found, [int(row) for row in order[: figures[1]]], [int(figure) for figure in figures]


@pytest.mark.parametrize(("n", "kinds", "is_worth"), [(0, 1, 0), (1, 1, 0), (40, 2, 1), (900, 60, 1), (900, 10**6, 0)])
@pytest.mark.parametrize("arms", [0, 1, 2, 5])
def test_each_row_counts_as_often_as_it_is_there(n: int, kinds: int, is_worth: int, arms: int) -> None:
    rng = np.random.default_rng(n + kinds)
    rows = [int(kind) for kind in np.sort(rng.integers(0, kinds, n) ** 2 // kinds)]
    taken = [kind % arms if arms > 1 else arms for kind in rows]
    found, order, figures = grouped(rows, taken)
    assert found == Counter(zip(rows, taken, strict=True))
    assert figures[2] == is_worth or (n == 40 and arms > 1)
    assert figures[3] == (figures[2] or len(set(taken)) > 1)
    assert figures[4:] == [taken.count(0), len(set(taken))]
    if not figures[2]:
        assert order == sorted(range(n), key=lambda row: taken[row]), "rows stay in their order"


def test_rows_with_many_numbers_of_copies_are_in_groups_by_bits() -> None:
    kinds = [kind for kind in range(1, 60) for _ in range(kind)]
    found, order, figures = grouped(kinds, [0] * len(kinds))
    assert found == Counter((kind, 0) for kind in kinds)
    assert figures[:3] == [6, sum(kind.bit_count() for kind in range(1, 60)), 1]
    assert len(order) == figures[1]


def test_each_arm_has_the_groups_that_it_needs() -> None:
    """Weights that only one arm has cost no group in the other: 300 rows of 15 kinds, of 12 and of 8, are 15."""
    kinds = [kind for kind in range(15) for _ in range(24 if kind < 10 else 12)]
    found, order, figures = grouped(kinds, [int(kind < 10) for kind in kinds])
    assert found == Counter((kind, int(kind < 10)) for kind in kinds)
    assert figures == [2, 15, 1, 1, 60, 2]
    assert len(order) == 15


def test_groups_of_many_weights_and_arms_have_room() -> None:
    """Each of 16 bits in each of 5 arms would be more groups than there is room for: rows go as they are."""
    kinds = [0] * (2**16 - 1) + list(range(1, 400))
    found, _, figures = grouped(kinds, [kind % 5 for kind in kinds])
    assert figures[0] <= ROOM
    assert found == Counter((kind, kind % 5) for kind in kinds)


def test_rows_of_one_arm_have_all_groups_that_there_is_room_for() -> None:
    kinds = [kind for kind in range(101, 141) for _ in range(kind)]
    kinds += [1000 * kind + copy for kind in range(101, 141) for copy in range(9) for _ in range(kind)]
    _, order, figures = grouped(kinds, [0] * len(kinds))
    assert figures[:3] == [40, 400, 1]
    assert len(order) == 400


def test_weights_of_data_are_added_up_by_groups() -> None:
    weights = np.array([1.5, -2.0, 0.0, 2.5, -0.0, -1.0])
    sizes = {"n": 6, "row": 1}
    *_, kinds, known = run("weight_kinds", [weights], sizes)
    assert list(kinds) == [1, -1, 0, 1, 0, -1] and known[0] == 1
    for none in (np.nan, np.inf, -1e300):
        assert run("weight_kinds", [np.append(weights[:5], none)], sizes)[-1][0] == -1
    groups = np.array([0, 1, 2, 0, 2, 1], np.int32)
    *_, sums, counts = run("sum_weights", [weights, groups], sizes | {"g": 3})
    assert list(sums) == [4.0, -3.0, 0.0] and list(counts) == [1, 1, 1]
    heads = np.array([0, 1, 2], np.int32)
    inputs = [weights, np.array([2, 0, 1], np.int32), heads, sums]
    taken = {"n": 3, "row": 1, "t": 6, "g": 3}
    assert list(run("take_of_groups", inputs, taken, [1])[-1]) == [0.0, 4.0, -3.0]
    assert list(run("take_of_groups", inputs, taken, [0])[-1]) == [0.0, 1.5, -2.0]
