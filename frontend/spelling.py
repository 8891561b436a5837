"""Finds the name that was probably meant: edit distance with insertions, deletions, substitutions and swaps."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, candidates: Iterable[str], limit: int = 3) -> str | None:
    """The candidate with the smallest edit distance to `name`, at most `limit` and less than half of its length."""
    limit = min(limit, max(1, len(name) // 2)) if len(name) > 1 else 0
    best, best_distance = None, limit + 1
    for candidate in candidates:
        if abs(len(candidate) - len(name)) >= best_distance or candidate == name:
            continue
        distance = edit_distance(name, candidate)
        if distance < best_distance:
            best, best_distance = candidate, distance
    return best


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
