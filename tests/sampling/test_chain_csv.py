"""CmdStan's CSV files of draws: written block by block, read again whole or not, and by others that are installed."""

from __future__ import annotations

import errno
import resource
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from forks import in_child

from ulam.runtime.cmdstan_csv import CsvForm, rows_text
from ulam.runtime.errors import DataError
from ulam.runtime.sampling.chain_csv import (
    STATISTICS,
    ChainFile,
    ChainTable,
    CsvStream,
    chain_path,
    comments,
    read_chain,
)

NAMES = ["a", "b.1", "b.2"]
COLUMNS = [name for name in STATISTICS if name != "int_time"]
METRICS = {"diag": np.array([1.0, 2.0, 0.1]), "dense": np.diag([1.0, 2.0, 0.1]) + 0.01, "unit": None}

ADAPT = {"gamma": 0.05, "kappa": 0.75, "t0": 10.0, "init_buffer": 75, "term_buffer": 50, "window": 25}
SETTINGS: dict[str, Any] = {
    "warmup": 50, "thin": 1, "adapt": SimpleNamespace(**ADAPT), "target_accept": 0.9, "max_depth": 10, "step_size": 0.1,
    "step_size_jitter": 0.0, "integration_time": 1.0, "sampler": "nuts", "seed": 1, "init": "2", "adapts": True,
}  # fmt: skip


def _statistics(generator: np.random.Generator, count: int) -> dict[str, Any]:
    real = {name: generator.normal(size=count) for name in ("lp", "accept_stat", "stepsize", "energy")}
    return real | {"treedepth": np.full(count, 3), "n_leapfrog": np.full(count, 7), "divergent": np.arange(count) == 2}


def _write(path: Path, values: Any, metric: str = "diag", warmup: Any = None, chain: int = 1) -> None:
    generator = np.random.default_rng(chain)
    run = SETTINGS | {"draws": len(values), "save_warmup": warmup is not None, "metric": metric}
    form = CsvForm(tuple(comments(SimpleNamespace(**run), "m_model", path, chain)))
    stream = CsvStream(path, ChainTable(form, COLUMNS, NAMES))
    if warmup is not None:
        stream.append(warmup, _statistics(generator, len(warmup)))
    stream.adapted(0.5, METRICS[metric])
    half = len(values) // 2
    for block in (values[:half], values[half:]):
        stream.append(block, _statistics(generator, len(block)))
    stream.finish((0.1, 0.2), ["a note\nof two lines"])


@pytest.fixture
def values() -> Any:
    found = np.random.default_rng(3).normal(size=(100, 3)) * 10.0 ** np.arange(-150, 150, 100)
    found[0] = 1, -0.0, 1e23
    found[1] = np.nan, np.inf, -np.inf
    return found


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("saves_warmup", [False, True])
def test_read_again(tmp_path: Path, values: Any, metric: str, saves_warmup: bool) -> None:
    path = tmp_path / "out.csv"
    _write(path, values, metric, values[:50] if saves_warmup else None)
    found = read_chain(path)
    np.testing.assert_array_equal(found.columns(NAMES), values)
    np.testing.assert_array_equal(found.warmup[:, -3:], values[:50] if saves_warmup else np.empty((0, 3)))
    assert (found.names, found.step_size, found.seconds, found.is_whole) == (
        [*(f"{name}__" for name in COLUMNS), *NAMES], 0.5, (0.1, 0.2), True,
    )  # fmt: skip
    assert found.settings["num_samples"] == "100" and found.settings["stepsize"] == "0.1"
    expected = METRICS[metric]
    assert found.metric is None if expected is None else np.array_equal(np.asarray(found.metric), expected)
    with pytest.raises(DataError, match=r"out\.csv: no column c, d"):
        found.columns(["a", "c", "d"])


def _whole_rows(found: ChainFile, values: Any) -> bool:
    return np.array_equal(found.draws[:, -3:], values[: len(found.draws)], equal_nan=True)


@pytest.mark.parametrize("saves_warmup", [False, True])
def test_ended_by_force(tmp_path: Path, values: Any, saves_warmup: bool) -> None:
    """Wherever the writing ends, what is there is read up to the last row that is whole."""
    path, part = tmp_path / "out.csv", tmp_path / "part.csv"
    _write(path, values, warmup=values[::-1] if saves_warmup else None)
    whole = path.read_bytes()
    header = whole.index(b"lp__,")
    counts = []
    for end in [*range(header + 100, len(whole), 397), len(whole)]:
        part.write_bytes(whole[:end])
        found = read_chain(part)
        assert _whole_rows(found, values)
        assert not found.is_whole or end > len(whole) - 200
        counts.append(len(found.draws))
    assert counts == sorted(counts) and counts[-1] == len(values)
    part.write_bytes(whole[:header])
    with pytest.raises(DataError, match="there is no header"):
        read_chain(part)


def test_blocks_are_on_the_disk(tmp_path: Path, values: Any) -> None:
    path = tmp_path / "out.csv"
    stream = CsvStream(path, ChainTable(CsvForm(()), ["lp"], NAMES))
    for count in (10, 30, 100):
        before = len(read_chain(path).draws)
        stream.append(values[before:count], {"lp": np.zeros(count - before)})
        found = read_chain(path)
        assert len(found.draws) == count and _whole_rows(found, values)
    stream.close()


def test_full_disk(tmp_path: Path, values: Any) -> None:
    """What does not fit is an error with the name of the file, and nothing of that block is there."""
    path = tmp_path / "out.csv"

    def is_told() -> bool:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))  # for the whole process
        stream = CsvStream(path, ChainTable(CsvForm(()), ["lp"], NAMES))
        stream.append(values[:20], {"lp": np.zeros(20)})
        try:
            stream.append(values[20:], {"lp": np.zeros(80)})
        except OSError as error:
            return error.errno == errno.EFBIG and error.filename == str(path)
        return False

    assert in_child(is_told)
    found = read_chain(path)
    assert len(found.draws) == 20 and _whole_rows(found, values)
    assert path.read_bytes().endswith(b"\n")


def test_numbers() -> None:
    table = np.array([[1.0, -2.5, 1e22, 1e-5, 100.0], [np.nan, np.inf, -np.inf, 0.1, 10.05]])
    assert rows_text(table) == b"1,-2.5,1e+22,1e-05,100\nnan,inf,-inf,0.1,10.05\n"
    assert rows_text(table, 2) == b"1,-2.5,1e+22,1e-05,1e+02\nnan,inf,-inf,0.1,10\n"
    assert rows_text(table[:0]) == b""


def test_numbers_are_the_shortest_that_read_back() -> None:
    """As Python writes them, whatever their bits."""
    generator = np.random.default_rng(11)
    powers = 2.0 ** np.arange(-1074, 1024)
    tens = np.array([float(f"1e{k}") for k in range(-323, 309)])
    values: Any = np.concatenate([
        generator.integers(0, 2**63, 20000, dtype=np.uint64).view(np.float64), generator.normal(size=5000),
        np.exp(20 * generator.normal(size=5000)), powers, -np.nextafter(powers, 0), np.nextafter(powers[:-1], np.inf),
        tens, np.nextafter(tens, np.inf), -np.nextafter(tens, 0), np.arange(1, 500) * 5e-324, np.arange(-500, 500) / 8,
        generator.integers(-(2**60), 2**60, 2000).astype(float), generator.integers(0, 10**6, 2000) / 1000,
    ])  # fmt: skip
    expected = [repr(value).removesuffix(".0") for value in values.tolist()]
    assert rows_text(values[:, np.newaxis]).decode().split() == expected
    longest = np.full((3, 7), -1.7976931348623157e308)
    assert len(rows_text(longest)) == 25 * longest.size


def test_names_of_files() -> None:
    assert chain_path("a/out.csv", 2, 4) == Path("a/out_2.csv")
    assert chain_path("a/out.csv", 1, 1) == Path("a/out.csv")
    assert chain_path("out", 3, 4) == Path("out_3.csv")
    assert chain_path("out", 1, 1) == Path("out")


def test_other_files(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("lp__,a\n1,2\n3\n")
    with pytest.raises(DataError, match="a row is not 2 numbers"):
        read_chain(path)
    path.write_text("lp__,a\n1,2\n3,four\n")
    with pytest.raises(DataError, match="a row is not 2 numbers"):
        read_chain(path)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("saves_warmup", [False, True])
def test_other_readers(tmp_path: Path, values: Any, metric: str, saves_warmup: bool) -> None:
    """cmdstanpy and ArviZ read what is written."""
    values = np.clip(np.nan_to_num(values), -1e300, 1e300)
    paths = [str(tmp_path / f"out_{chain}.csv") for chain in (1, 2)]
    for chain, path in enumerate(paths, 1):
        _write(Path(path), values * chain, metric, values[:50] if saves_warmup else None, chain)
    cmdstanpy = pytest.importorskip("cmdstanpy")
    fit: Any = cmdstanpy.from_csv(paths)
    np.testing.assert_array_equal(fit.draws()[:, 1, -3:], 2 * values)
    assert fit.metric_type == f"{metric}_e" and (fit.step_size == 0.5).all() and fit.divergences.tolist() == [2, 2]
    if METRICS[metric] is not None:
        np.testing.assert_array_equal(fit.inv_metric[1], METRICS[metric])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arviz = pytest.importorskip("arviz")
        data: Any = arviz.from_cmdstan(paths, save_warmup=True)
    np.testing.assert_array_equal(data.posterior["b"][1], 2 * values[:, 1:])
    assert int(data.sample_stats["diverging"].sum()) == 4
