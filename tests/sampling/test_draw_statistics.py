"""Statistics of draws against those of arviz-stats: a table of its values, and itself where it is installed.

`python tests/sampling/test_draw_statistics.py` writes the table anew.
"""

from __future__ import annotations

import gc
import json
import math
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ulam.runtime.sampling import draw_statistics as statistics
from ulam.runtime.sampling.draw_statistics import Columns

TABLE = Path(__file__).parents[1] / "reference" / "sample_statistics.jsonl"
PROBABILITIES = (0.05, 0.3, 0.5, 0.95)
SIZES = ((4, 1000), (4, 101), (2, 50), (1, 100), (1, 20), (3, 7), (2, 4), (2, 5), (2, 3), (1, 1))

Draws = npt.NDArray[np.float64]


def _uniform(count: int, seed: int) -> Draws:
    """Numbers that are the same everywhere: by a congruential generator, in integers."""
    state, numbers = seed, []
    for _ in range(count + 10):
        state = (state * 1103515245 + 12345) % 2**31
        numbers.append(state / 2**31)
    return np.array(numbers[10:])


def _chains(kind: str, chains: int, draws: int) -> Draws:
    """Draws of one kind of chain."""
    size = chains * draws
    noise = np.sum([_uniform(size, seed) for seed in range(1, 13)], axis=0).reshape(chains, draws) - 6  # nearly normal
    if kind.startswith("autoregressive"):
        weight = float(kind.split()[1])
        for k in range(1, draws):
            noise[:, k] += weight * noise[:, k - 1]
    match kind:
        case "constant":
            noise[:] = 2.5
        case "one of its own":
            noise = np.where(np.arange(chains)[:, None] == 0, 1.0, 0.0) + np.zeros((1, draws))
            noise[:, : draws // 2] += 0.5
        case "binary":
            noise = (noise > 0).astype(float)
        case "rare":
            noise = (noise > 1.7).astype(float)
        case "counts":
            noise = np.floor(np.abs(2 * noise))
        case "nan":
            noise[-1, draws // 2] = math.nan
        case "infinite":
            noise[0, draws // 2] = math.inf
        case "shifted":
            noise += np.arange(chains)[:, None]
        case "scaled":
            noise *= 1 + 3.0 * np.arange(chains)[:, None]
        case "heavy tails":
            noise = np.tan(np.pi * (_uniform(size, 3).reshape(chains, draws) - 0.5))
        case "alternating":
            noise = np.where(np.arange(draws) % 2, 1.0, -1.0) + np.zeros((chains, 1))
        case "tiny":
            noise *= 1e-18
        case _:
            pass
    return noise


KINDS = (
    "independent", "autoregressive 0.9", "autoregressive -0.7", "autoregressive 0.999", "constant", "one of its own",
    "binary", "rare", "counts", "nan", "infinite", "shifted", "scaled", "heavy tails", "alternating", "tiny",
)  # fmt: skip


def _ours(draws: Draws) -> dict[str, float]:
    column = Columns(draws[np.newaxis])
    found = {
        name: getattr(column, name)[0]
        for name in ("rhat", "ess_bulk", "ess_tail", "ess_mean", "mcse_mean", "mcse_sd", "mad", "mean", "sd")
    }
    for probability in PROBABILITIES:
        found[f"quantile {probability}"] = column.quantile(probability)[0]
        found[f"ess_quantile {probability}"] = column.ess_quantile(probability)[0]
        found[f"mcse_quantile {probability}"] = column.mcse_quantile(probability)[0]
    return {name: float(value) for name, value in found.items()} | {"bfmi": float(statistics.bfmi(draws)[0])}


def _theirs(draws: Draws) -> dict[str, float]:
    """The same by arviz-stats."""
    from arviz_stats.base import array_stats  # pyright: ignore[reportMissingImports]
    from scipy.stats import median_abs_deviation  # pyright: ignore[reportMissingImports]

    axes: dict[str, Any] = {"chain_axis": 0, "draw_axis": 1}
    found = {"rhat": array_stats.rhat(draws, **axes)}
    for method in ("bulk", "mean"):
        found[f"ess_{method}"] = array_stats.ess(draws, method=method, **axes)
    found["ess_tail"] = array_stats.ess(draws, method="tail", prob=(0.05, 0.95), **axes)
    for method in ("mean", "sd"):
        found[f"mcse_{method}"] = array_stats.mcse(draws, method=method, **axes)
    found |= {"mad": median_abs_deviation(draws.ravel()), "mean": draws.mean(), "sd": draws.std()}
    for probability in PROBABILITIES:
        found[f"quantile {probability}"] = np.quantile(draws, probability)
        found[f"ess_quantile {probability}"] = array_stats.ess(draws, method="quantile", prob=probability, **axes)
        found[f"mcse_quantile {probability}"] = array_stats.mcse(draws, method="quantile", prob=probability, **axes)
    enough = draws.shape[1] > 1
    found["bfmi"] = np.atleast_1d(array_stats.bfmi(draws, **axes))[0] if enough else math.nan
    return {name: float(value) for name, value in found.items()}


def _cases() -> Iterator[tuple[str, int, int]]:
    return ((kind, *size) for size in SIZES for kind in KINDS)


def _differences(ours: dict[str, float], theirs: dict[str, float]) -> list[str]:
    assert set(ours) == set(theirs)
    scale = theirs["sd"] if math.isfinite(theirs["sd"]) else 0
    return [
        f"{name}: {ours[name]!r} is not {theirs[name]!r}"
        for name in theirs
        if not np.isclose(ours[name], theirs[name], rtol=1e-10, atol=1e-10 * scale, equal_nan=True)
        and not (name == "rhat" and min(ours[name], theirs[name]) > 1e8)  # within a chain there is rounding only
    ]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values_of_arviz_stats() -> None:
    """Those in the table."""
    rows = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]
    assert [(row["kind"], row["chains"], row["draws"]) for row in rows] == list(_cases())
    wrong = [
        f"{row['kind']} {row['chains']}x{row['draws']}: {difference}"
        for row in rows
        for difference in _differences(_ours(_chains(row["kind"], row["chains"], row["draws"])), row["values"])
    ]
    assert not wrong, "\n".join(wrong)
    known = sum(not math.isnan(value) for row in rows for value in row["values"].values())
    assert known > 1500  # and not NaN everywhere


@pytest.mark.filterwarnings("ignore")
def test_arviz_stats_itself() -> None:
    pytest.importorskip("arviz_stats")
    generator = np.random.default_rng()  # any draws
    for chains, draws in ((4, 250), (4, 251), (2, 11), (5, 30)):
        walk = np.cumsum(generator.normal(size=(chains, draws)), axis=1)
        noise = generator.normal(size=(chains, draws))
        for sample in (noise, walk, noise + 0.1 * walk, np.round(noise), np.exp(4 * noise)):
            assert not _differences(_ours(sample), _theirs(sample)), sample.tolist()


def test_shapes() -> None:
    """Functions of arrays give what is left of the shape; each quantity is as if it were alone."""
    draws = np.stack([_chains(kind, 4, 101) for kind in KINDS], axis=2).reshape(4, 101, 4, 4)
    for function in (statistics.rhat, statistics.ess_tail, statistics.mcse_sd, statistics.mad):
        found = function(draws)
        assert found.shape == (4, 4)
        alone = [function(draws.reshape(4, 101, -1)[..., k]) for k in range(16)]
        np.testing.assert_allclose(found.ravel(), alone, rtol=1e-12)
    assert isinstance(statistics.ess_bulk(draws[..., 0, 0]), float)
    assert statistics.bfmi(draws[..., 0, 0]).shape == (4,)
    with pytest.raises(ValueError, match=r"\(chains, draws, \.\.\.\), found \(101,\)"):
        statistics.rhat(draws[0, :, 0, 0])


def test_no_draws() -> None:
    for shape in ((4, 0, 3), (4, 5, 0)):
        empty = Columns(np.empty(shape).transpose(2, 0, 1))
        for name in ("mean", "sd", "mad", "rhat", "ess_bulk", "mcse_mean"):
            assert np.isnan(getattr(empty, name)).all()
        assert np.isnan(empty.quantile(0.5)).all()


def test_draws_are_left_as_they_are() -> None:
    draws = _chains("independent", 4, 100)
    before = draws.copy()
    _ours(draws)
    assert (draws == before).all()


def test_memory() -> None:
    """What is worked out for some columns is gone with them, and not only when Python looks for circles."""
    for draws in (100, 101):
        columns = Columns(_chains("independent", 4, draws)[np.newaxis])
        assert np.isfinite(columns.rhat + columns.ess_bulk + columns.ess_tail + columns.mad).all()
        left = weakref.ref(columns)
        gc.disable()
        try:
            del columns
            assert left() is None
        finally:
            gc.enable()


def _write() -> None:
    with np.errstate(all="ignore"):
        rows = [
            {"kind": kind, "chains": chains, "draws": draws, "values": _theirs(_chains(kind, chains, draws))}
            for kind, chains, draws in _cases()
        ]
    TABLE.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    _write()
