"""The pictures: traces, densities and ranks of a quantity, energies of a chain, draws of two parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ulam.runtime.html_report import svg_parts
from ulam.runtime.html_report.selection import Quantity
from ulam.runtime.html_report.svg_parts import Scale, drawn, limits, line, svg, text, x_axis, y_axis
from ulam.runtime.results import number_text

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

HEIGHT = 132
TRACE_WIDTH, DENSITY_WIDTH, RANK_WIDTH, PAIR_WIDTH, ENERGY_WIDTH = 430, 120, 260, 300, 260
PAIR_HEIGHT = 250

TRACE_POINTS, TRACE_MARKS, PAIR_DOTS, PAIR_CROSSES = 300, 200, 600, 400
"""What is drawn at most of a chain, and of a pair: a page must not grow with the number of draws."""

RANK_BINS, ENERGY_BINS, DENSITY_BINS = 20, 40, 96

_TOP, _BOTTOM = 6, HEIGHT - 20
_LOG_FROM = 10.0
"""Positive numbers whose 99% and 1% quantiles have a larger ratio are drawn by their logarithms."""


def colour(position: int) -> str:
    """The class of the chain that is drawn as the n-th."""
    return f"c{position % 8 + 1}"


# ---------------------------------------------------------------- traces


def trace(quantity: Quantity, chains: Sequence[int], divergent: Flags, label: str) -> str:
    """The draws of the chains one after the other, with marks where they diverged."""
    found = limits(quantity.draws[list(chains)])
    if found is None:
        return _nothing(TRACE_WIDTH, HEIGHT, label)
    count = quantity.draws.shape[1]
    y = Scale(*found, _BOTTOM, _TOP)
    x = Scale(1, max(count, 2), 56, TRACE_WIDTH - 12)

    def parts() -> Iterator[str]:
        yield from y_axis(y, 54, TRACE_WIDTH, 4)
        yield from x_axis(x, _BOTTOM + 1, count=4)
        for position, chain in enumerate(chains):
            draws = quantity.draws[chain]
            kept = thinned(draws)
            shown = np.where(np.isnan(draws[kept]), np.nan, y.places(np.nan_to_num(draws[kept], nan=found[0])))
            yield drawn(f"trace {colour(position)}", svg_parts.path(x.places(kept.astype(np.float64) + 1), shown))
        marks = _some(np.flatnonzero(divergent.any(axis=0)), TRACE_MARKS)
        if marks.size:
            places = x.places(marks.astype(np.float64) + 1)
            rows = np.stack([places, places, places], axis=1).ravel()
            ends = np.tile([_BOTTOM - 5.0, _BOTTOM + 1.0, np.nan], len(places))
            yield drawn("mark", svg_parts.path(rows, ends))

    return svg(TRACE_WIDTH, HEIGHT, label, parts(), "trace-picture")


def thinned(draws: Array) -> npt.NDArray[np.intp]:
    """Places of a chain that are drawn: all, or the smallest and the largest of each of many parts."""
    count = len(draws)
    if count <= TRACE_POINTS:
        return np.arange(count)
    size = -(-count // (TRACE_POINTS // 2))
    rows = np.full(-(-count // size) * size, np.nan)
    rows[:count] = draws
    rows = rows.reshape(-1, size)
    low, high = np.where(np.isnan(rows), np.inf, rows), np.where(np.isnan(rows), -np.inf, rows)
    begins = np.arange(len(rows)) * size
    kept = np.unique(np.concatenate([begins + low.argmin(axis=1), begins + high.argmax(axis=1), [count - 1]]))
    return kept[kept < count]


def density(quantity: Quantity, chains: Sequence[int], label: str) -> str:
    """The distribution of each chain, beside the trace and on its scale."""
    found = limits(quantity.draws[list(chains)])
    if found is None or quantity.is_constant:
        return svg(DENSITY_WIDTH, HEIGHT, label, [], "density-picture")
    y = Scale(*found, _BOTTOM, _TOP)
    curves = [_smoothed(quantity.draws[chain], found) for chain in chains]
    x = Scale(0, max(max(float(curve.max()) for curve in curves), 1e-300), 4, DENSITY_WIDTH - 4)
    places = y.places(_centres(found, DENSITY_BINS))

    def parts() -> Iterator[str]:
        yield line(4, _TOP, 4, _BOTTOM, "rule")
        for position, curve in enumerate(curves):
            yield drawn(f"curve {colour(position)}", svg_parts.path(x.places(curve), places))

    return svg(DENSITY_WIDTH, HEIGHT, label, parts(), "density-picture")


def _smoothed(draws: Array, found: tuple[float, float]) -> Array:
    """Shares of the draws in bins, with a normal kernel of Silverman's width."""
    known = draws[np.isfinite(draws)]
    counts = _counts(known, found, DENSITY_BINS)
    width = (found[1] / 2 - found[0] / 2) * 2 / DENSITY_BINS
    inside = known[(known >= found[0]) & (known <= found[1])]
    with np.errstate(all="ignore"):
        spread = 0.9 * float(inside.std()) * max(inside.size, 1) ** -0.2 / width if inside.size > 1 else 1.0
    spread = min(max(spread, 0.7), DENSITY_BINS / 4) if np.isfinite(spread) else 1.0
    reach = np.arange(-DENSITY_BINS, DENSITY_BINS + 1)
    kernel = np.exp(-0.5 * np.square(reach / spread))
    whole: Array = np.convolve(counts / max(known.size, 1), kernel / kernel.sum()).astype(np.float64)
    return whole[DENSITY_BINS : 2 * DENSITY_BINS]


def _centres(found: tuple[float, float], bins: int) -> Array:
    edges = _edges(found, bins)
    return edges[:-1] / 2 + edges[1:] / 2


def _edges(found: tuple[float, float], bins: int) -> Array:
    """Between equal parts; the whole may be too wide for a number."""
    share = np.arange(bins + 1) / bins
    return (1 - share) * found[0] + share * found[1]


def _counts(values: Array, found: tuple[float, float], bins: int) -> Array:
    """How many of the values are in each of equal parts; what is outside is left out."""
    places = Scale(*found, 0, bins).places(values)
    inside = (values >= found[0]) & (values <= found[1])
    return np.bincount(np.minimum(places[inside].astype(np.intp), bins - 1), minlength=bins).astype(np.float64)


# ---------------------------------------------------------------- ranks


def ranks(quantity: Quantity, chains: Sequence[int], size: float, label: str) -> str:
    """Where the draws of each chain stand among those of all: bars of one height if the chains agree.

    `size`: the effective sample size, which says how far from the line bars are by chance.
    """
    count = quantity.draws.shape[1]
    found = quantity.ranks[list(chains)]
    tables = [_counts(row[np.isfinite(row)], (0.0, 1.0), RANK_BINS) for row in found]
    expected = count / RANK_BINS
    worth = np.clip(size / quantity.draws.size, 1e-6, 1.0) if np.isfinite(size) else 1.0
    error = 2 * np.sqrt(expected * (1 - 1 / RANK_BINS) / worth)
    most = max(max(float(table.max()) for table in tables), expected + error, 1.0)
    room = (_BOTTOM - _TOP) / len(chains)
    x = Scale(0, 1, 24, RANK_WIDTH - 4)
    edges = x.places(np.linspace(0, 1, RANK_BINS + 1))

    def parts() -> Iterator[str]:
        for position, (chain, table) in enumerate(zip(chains, tables, strict=True)):
            base = _TOP + (position + 1) * room
            y = Scale(0, most, base, base - room + 3)
            high, low = y.place(expected + error), y.place(max(expected - error, 0))
            yield drawn(f"bars {colour(position)}", svg_parts.steps(edges, y.places(table), base))
            yield drawn("band", f"M{x.start} {high:.1f}H{x.end}V{low:.1f}H{x.start}z")
            yield line(x.start, y.place(expected), x.end, y.place(expected), "expected")
            yield text(x.start - 6, base - room / 2 + 4, str(chain + 1), "tick", "end")
        yield text(x.start, _BOTTOM + 14, "lowest rank", "tick")
        yield text(x.end, _BOTTOM + 14, "highest", "tick", "end")

    return svg(RANK_WIDTH, HEIGHT, label, parts(), "rank-picture")


# ---------------------------------------------------------------- energy


def energy(energies: Array, label: str) -> str:
    """The energies of a chain about their mean, and their steps from draw to draw."""
    with np.errstate(all="ignore"):
        marginal, transitions = energies - energies.mean(), np.diff(energies)
    found = limits(np.concatenate([marginal, transitions]))
    if found is None or not transitions.size:
        return _nothing(ENERGY_WIDTH, HEIGHT, label)
    largest = max(abs(found[0]), abs(found[1]))
    found = (-largest, largest)
    tables = [_counts(values, found, ENERGY_BINS) / max(len(values), 1) for values in (marginal, transitions)]
    x = Scale(*found, 6, ENERGY_WIDTH - 6)
    y = Scale(0, max(*(float(table.max()) for table in tables), 1e-300), _BOTTOM, _TOP)
    edges = x.places(_edges(found, ENERGY_BINS))

    def parts() -> Iterator[str]:
        for kind, table in zip(("marginal", "transition"), tables, strict=True):
            yield drawn(kind, svg_parts.steps(edges, y.places(table), _BOTTOM))
        yield line(x.start, _BOTTOM, x.end, _BOTTOM, "rule")
        yield from x_axis(x, _BOTTOM + 1, count=4)

    return svg(ENERGY_WIDTH, HEIGHT, label, parts(), "energy-picture")


# ---------------------------------------------------------------- pairs


def pair(one: Quantity, other: Quantity, divergent: Flags, label: str) -> str:
    """Draws of two parameters, those that diverged as crosses. What spans powers of ten is drawn by its logarithm."""
    names, values, scales = [], [], []
    for quantity, place in ((one, (58.0, PAIR_WIDTH - 6.0)), (other, (PAIR_HEIGHT - 40.0, 6.0))):
        name, numbers = _by_logarithm(quantity)
        found = limits(numbers)
        if found is None:
            return _nothing(PAIR_WIDTH, PAIR_HEIGHT, label)
        names.append(name)
        values.append(numbers)
        scales.append(Scale(*found, *place))
    known = np.isfinite(values[0]) & np.isfinite(values[1])
    flags = divergent.ravel()
    x, y = scales

    def parts() -> Iterator[str]:
        yield from y_axis(y, 56, PAIR_WIDTH, 4)
        yield from x_axis(x, PAIR_HEIGHT - 38, 6, 4)
        chosen = _some(np.flatnonzero(known & ~flags), PAIR_DOTS)
        yield drawn("dots", svg_parts.dots(x.places(values[0][chosen]), y.places(values[1][chosen])))
        chosen = _some(np.flatnonzero(known & flags), PAIR_CROSSES)
        marks = svg_parts.crosses(x.places(values[0][chosen]), y.places(values[1][chosen]), 3)
        yield drawn("crosses", marks)
        yield text((x.start + x.end) / 2, PAIR_HEIGHT - 8, names[0], "name", "middle")
        middle = (y.start + y.end) / 2
        turned = text(12, middle, names[1], "name", "middle")
        yield turned.replace("<text", f'<text transform="rotate(-90 12 {middle:g})"', 1)

    return svg(PAIR_WIDTH, PAIR_HEIGHT, label, parts(), "pair-picture")


def _by_logarithm(quantity: Quantity) -> tuple[str, Array]:
    values = quantity.draws.ravel()
    known = values[np.isfinite(values)]
    if known.size and known.min() > 0:
        low, high = np.quantile(known, (0.01, 0.99))
        if high > _LOG_FROM * low:
            return f"log₁₀ {quantity.name}", np.log10(values)
    return quantity.name, values


def _some(places: npt.NDArray[np.intp], most: int) -> npt.NDArray[np.intp]:
    """At most so many of the places, evenly spread."""
    if len(places) <= most:
        return places
    return places[np.linspace(0, len(places) - 1, most).astype(np.intp)]


def _nothing(width: float, height: float, label: str) -> str:
    return svg(width, height, label, [text(width / 2, height / 2, "no finite numbers", "tick", "middle")], "empty")


def described(quantity: Quantity) -> str:
    """A quantity in words, for those who do not see its pictures."""
    parts = [quantity.name]
    for name, said in (("mean", "mean"), ("sd", "standard deviation"), ("r_hat", "R-hat"), ("ess_bulk", "bulk ESS")):
        value = quantity.statistics.get(name)
        if value is not None:
            parts.append(f"{said} {number_text(value, 4)}")
    return ", ".join(parts)
