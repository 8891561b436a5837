"""Finds the name that was probably meant: edit distance with insertions, deletions, substitutions and swaps.

Of names that are as near as each other, one that begins alike is taken first, then one of the same length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

LONGEST = 200
"""No name that is longer is compared: that takes the product of the lengths."""


def nearest(
    name: str, candidates: Iterable[str], limit: int = 3, accept: Callable[[str], bool] | None = None
) -> str | None:
    """The candidate with the smallest edit distance to `name`, at most `limit` and less than half of its length.

    `accept` is asked, of the nearest first, whether a candidate may be named.
    """
    limit = min(limit, max(1, len(name) // 2)) if 1 < len(name) <= LONGEST else 0
    close: list[tuple[int, bool, int, int, str]] = []
    for number, candidate in enumerate(candidates):
        difference = abs(len(candidate) - len(name))
        if difference > limit or candidate == name:
            continue
        distance = edit_distance(name, candidate)
        if distance <= limit:
            close.append((distance, candidate[:1] != name[:1], difference, number, candidate))
    return next((entry[-1] for entry in sorted(close) if accept is None or accept(entry[-1])), None)


def edit_distance(first: str, second: str) -> int:
    """Optimal string alignment distance."""
    before_last: list[int] = []
    last = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        row = [i]
        for j, b in enumerate(second, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                cost = min(cost, before_last[j - 2] + 1)
            row.append(cost)
        before_last, last = last, row
    return last[-1]
