"""CmdStan's CSV files of draws: one for each chain, written block by block while the chain runs, and read again.

CmdStan guide, "Stan CSV file format": settings as comments, the header, rows of warmup if they are saved, what was
adapted as comments, rows of draws, the times. A file whose writing was ended by force has all rows up to some one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.frontend.encoding import decoded
from ulam.runtime.cmdstan_csv import (
    CsvForm,
    Setting,
    csv_number,
    ending,
    parts_of,
    preamble,
    remark_text,
    write_table,
)
from ulam.runtime.errors import DataError
from ulam.runtime.named_text import NamedText
from ulam.runtime.output_files import GrowingFile, writing

if TYPE_CHECKING:
    from ulam.runtime.sampling.fit import ChainDraws, SampleFit
    from ulam.runtime.sampling.generated import GeneratedQuantities

Array = npt.NDArray[np.float64]

STATISTICS = ("lp", "accept_stat", "stepsize", "int_time", "treedepth", "n_leapfrog", "divergent", "energy")
"""Names of the sampler's statistics in the order of the columns, which have two underscores after them."""

ADAPTED = "Adaptation terminated"
_METRIC = {1: "Diagonal elements of inverse mass matrix:", 2: "Elements of inverse mass matrix:"}
_NO_METRIC = "No free parameters for unit metric"


def chain_path(path: str | os.PathLike[str], chain: int, chains: int) -> Path:
    """The file of a chain, counted from 1: that of several has its number before the suffix (`.csv`), as CmdStan's."""
    whole = Path(path)
    return whole if chains == 1 else whole.with_name(f"{whole.stem}_{chain}{whole.suffix or '.csv'}")


def chain_paths(path: str | os.PathLike[str], chains: int) -> list[Path]:
    """The files of all chains."""
    return [chain_path(path, chain, chains) for chain in range(1, chains + 1)]


@dataclass(frozen=True)
class ChainOutput:
    """The files of a run, one for each chain, and what they say; None: its settings.

    `latent`: files, again one for each chain, for the unconstrained parameters of each draw and their gradients.
    """

    paths: Sequence[str | os.PathLike[str]]
    form: CsvForm | None = None
    latent: Sequence[str | os.PathLike[str]] = ()

    def of(self, chain: int) -> ChainOutput:
        """What chain `chain`, counted from 0, writes."""
        return ChainOutput(self.paths[chain : chain + 1], self.form, self.latent[chain : chain + 1])


# ---------------------------------------------------------------- settings


METRIC_NAMES = {"unit": "unit_e", "diag": "diag_e", "dense": "dense_e"}
"""CmdStan's."""


def comments(
    settings: Any, model: str, path: str | os.PathLike[str], chain: int, is_fixed: bool = False
) -> Iterator[Setting]:
    """The settings of a chain's file, in CmdStan's nested form. `is_fixed`: the model has no parameters."""
    yield from preamble(model)
    yield 0, "method", "sample", "sample"
    yield 1, "sample", None, None
    yield 2, "num_samples", settings.draws, 1000
    yield 2, "num_warmup", settings.warmup, 1000
    yield 2, "save_warmup", settings.save_warmup, False
    yield 2, "thin", settings.thin, 1
    yield 2, "adapt", None, None
    yield 3, "engaged", settings.adapts and not is_fixed, True
    yield 3, "gamma", settings.adapt.gamma, 0.05
    yield 3, "delta", settings.target_accept, 0.8
    yield 3, "kappa", settings.adapt.kappa, 0.75
    yield 3, "t0", settings.adapt.t0, 10.0
    yield 3, "init_buffer", settings.adapt.init_buffer, 75
    yield 3, "term_buffer", settings.adapt.term_buffer, 50
    yield 3, "window", settings.adapt.window, 25
    yield 3, "save_metric", False, False
    if is_fixed:
        yield 2, "algorithm", "fixed_param", "hmc"
    else:
        yield from _hamiltonian(settings)
    yield 2, "num_chains", 1, 1
    yield from ending(settings.init, settings.seed, path, chain)


def _hamiltonian(settings: Any) -> Iterator[Setting]:
    engine = "static" if settings.sampler == "hmc" else "nuts"
    yield 2, "algorithm", "hmc", "hmc"
    yield 3, "hmc", None, None
    yield 4, "engine", engine, "nuts"
    yield 5, engine, None, None
    if engine == "static":
        yield 6, "int_time", settings.integration_time, 2 * np.pi
    yield 6, "max_depth", settings.max_depth, 10
    told = settings.sampler != "nutpie"  # whose metrics are its own: files say what they hold, which is none
    yield 4, "metric", METRIC_NAMES[settings.metric if told else "unit"], "diag_e"
    yield 4, "metric_file", "", ""
    yield 4, "stepsize", 1.0 if settings.step_size is None else settings.step_size, 1.0
    yield 4, "stepsize_jitter", settings.step_size_jitter, 0.0


# ---------------------------------------------------------------- writing


@dataclass(frozen=True)
class ChainTable:
    """The columns of a chain's file: statistics, then elements of a draw."""

    form: CsvForm
    statistics: Sequence[str]
    names: Sequence[str]

    def head(self) -> bytes:
        """Settings and header."""
        return self.form.head((*(f"{name}__" for name in self.statistics), *self.names))

    def rows(self, values: Array, statistics: Mapping[str, npt.NDArray[Any]]) -> Iterator[bytes]:
        """Rows of warmup or draws, some at a time: values (rows, names), and an array of each statistic."""
        return map(self.form.rows, parts_of([statistics[name] for name in self.statistics], values))


class CsvStream:
    """The file of one chain. What was appended is on the disk."""

    def __init__(self, path: str | os.PathLike[str], table: ChainTable) -> None:
        self._table = table
        self._file = GrowingFile(path)
        self._file.append(table.head())

    def append(self, values: Array, statistics: Mapping[str, npt.NDArray[Any]]) -> None:
        """Rows of warmup or draws."""
        self._file.append(b"".join(self._table.rows(values, statistics)))

    def adapted(self, step_size: float, metric: Array | None) -> None:
        """Between warmup and draws: the step size, and the inverse metric; None for the unit metric."""
        self._file.append(adaptation_text(step_size, metric).encode())

    def finish(self, seconds: Sequence[float], remarks: Iterable[str] = ()) -> None:
        """The times of warmup and draws, in seconds, and what else there is to say. Closes the file."""
        self._file.append(ending_text(seconds, remarks))
        self._file.close()

    def close(self) -> None:
        self._file.close()


def adaptation_text(step_size: float, metric: Array | None) -> str:
    """Step size and inverse metric as comments."""
    lines = [ADAPTED, f"Step size = {csv_number(step_size)}"]
    if metric is None or not metric.size:
        lines.append(_NO_METRIC)
    else:
        lines.append(_METRIC[metric.ndim])
        lines += [", ".join(map(csv_number, row)) for row in np.atleast_2d(metric).tolist()]
    return "".join(f"# {line}\n" for line in lines)


def elapsed_lines(seconds: Sequence[float]) -> list[str]:
    """What warmup and draws took, in CmdStan's words."""
    warmup, sampling = seconds
    times = ((" Elapsed Time: ", warmup, "Warm-up"), ("", sampling, "Sampling"), ("", warmup + sampling, "Total"))
    return [f"{before:15}{time:.6f} seconds ({phase})" for before, time, phase in times]


def ending_text(seconds: Sequence[float], remarks: Iterable[str] = ()) -> bytes:
    """The times and the remarks, as comments."""
    return "".join(f"# {line}\n" for line in ["", *elapsed_lines(seconds), ""]).encode() + remark_text(remarks)


def statistics_of(sampler: str, is_fixed: bool) -> tuple[str, ...]:
    """Those of the statistics that the files of a sampler, or of a model without parameters, have as columns."""
    if is_fixed:
        return STATISTICS[:2]
    return tuple(name for name in STATISTICS if name != ("treedepth" if sampler == "hmc" else "int_time"))


def write_fit(fit: SampleFit, path: str | os.PathLike[str], digits: int | None = None) -> list[Path]:
    """What `SampleFit.to_csv` does."""
    paths = chain_paths(path, fit.n_chains)
    for chain, place in enumerate(paths):
        with writing(place, binary=True) as file:
            for part in _parts(fit, place, chain, digits):
                file.write(part)
    return paths


def write_quantities(
    result: GeneratedQuantities, path: str | os.PathLike[str] | ChainOutput, digits: int | None = None
) -> list[Path]:
    """What `GeneratedQuantities.to_csv` does: the generated quantities only, as CmdStan's method has them."""
    given = path if isinstance(path, ChainOutput) else ChainOutput(chain_paths(path, result.n_chains))
    places, names = result.places(result.quantities)
    method = [
        (0, "method", "generate_quantities", "sample"),
        (1, "generate_quantities", None, None),
        (2, "fitted_params", result.source, None),
    ]
    for chain, place in enumerate(given.paths):
        settings = (*preamble(result.about.name), *method, *ending("2", result.seed, place, chain + 1))
        parts = parts_of([], result.values[chain][:, places])
        write_table(place, given.form or CsvForm(settings, digits), names, parts, result.notes)
    return [Path(place) for place in given.paths]


def _parts(fit: SampleFit, path: Path, chain: int, digits: int | None) -> Iterator[bytes]:
    settings = fit.settings
    if fit.n_draws != settings.kept_draws or (fit.warmup is None) == settings.save_warmup:
        settings = replace(settings, draws=fit.n_draws * settings.thin, save_warmup=fit.warmup is not None)
    about = comments(settings, fit.about.name, path, chain + settings.first_chain, fit.is_fixed)
    table = ChainTable(CsvForm(tuple(about), digits), statistics_of(settings.sampler, fit.is_fixed), fit.names)
    yield table.head()
    if fit.warmup is not None:
        yield from table.rows(fit.warmup.values[chain], _of_chain(fit.warmup, chain))
    if not fit.is_fixed:
        metric = None if fit.metric is None else fit.metric[chain]
        yield adaptation_text(float(fit.step_size[chain]), metric).encode()
    yield from table.rows(fit.values[chain], _of_chain(fit, chain))
    yield ending_text(fit.seconds[chain].tolist(), fit.notes)


def _of_chain(draws: ChainDraws, chain: int) -> dict[str, npt.NDArray[Any]]:
    return {name: values[chain] for name, values in draws.stats.items()}


# ---------------------------------------------------------------- reading


@dataclass(frozen=True)
class ChainFile:
    """What a chain's file has: settings by name (the last of a name counts), columns, rows of warmup and of draws.

    `is_whole`: whether the chain had ended when the file did.
    """

    path: str
    settings: dict[str, str]
    names: list[str]
    warmup: Array
    draws: Array
    step_size: float
    metric: Array | None
    seconds: tuple[float, float]
    is_whole: bool

    def columns(self, names: Sequence[str], with_warmup: bool = False) -> Array:
        """The draws of these columns, after those of warmup if asked. Raises DataError for one that is not there."""
        places = {name: k for k, name in enumerate(self.names)}
        missing = [name for name in names if name not in places]
        if missing:
            raise DataError([f"{self.path}: no column {', '.join(missing[:5])}{', ...' if len(missing) > 5 else ''}"])
        rows = np.concatenate([self.warmup, self.draws]) if with_warmup else self.draws
        return rows[:, [places[name] for name in names]]


def read_chain(path: str | os.PathLike[str] | NamedText) -> ChainFile:
    """A file of CmdStan's method `sample`, or of ours, whole or not. Raises DataError if it is none, OSError."""
    if isinstance(path, NamedText):
        name, content = path.name, path.text.encode()
    else:
        name = os.fspath(path)
        with open(path, "rb") as file:
            content = file.read()
    lines = content.split(b"\n")
    lines.pop()  # what is not the end of a line was not written to its end
    marks = [k for k, line in enumerate(lines) if line.startswith(b"#")]
    texts = {k: decoded(lines[k]).lstrip("#").strip() for k in marks}
    header = next((k for k, line in enumerate(lines) if line and not line.startswith(b"#")), None)
    if header is None:
        raise DataError([f"{name}: not a CSV file of CmdStan's form: there is no header"])
    names = decoded(lines[header]).strip().split(",")
    settings = dict(_settings(texts[k] for k in marks if k < header))
    adapts = settings.get("save_warmup") in ("true", "1") and settings.get("algorithm") != "fixed_param"
    unmarked = len(lines) if adapts else header
    begin = next((k for k in marks if k > header and texts[k].startswith(ADAPTED)), unmarked)
    adapted = _adapted([texts[k] for k in marks if k > begin])
    times = [texts[k] for k in marks if "seconds (" in texts[k]]
    return ChainFile(
        name,
        settings,
        names,
        _table(lines[header + 1 : begin], len(names), name),
        _table(lines[begin + 1 :], len(names), name),
        *adapted,
        (_seconds(times, "Warm-up"), _seconds(times, "Sampling")),
        is_whole=any("(Total)" in line for line in times),
    )


def _settings(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        key, equals, value = line.partition(" = ")
        if equals:
            yield key.strip(), value.replace("(Default)", "").strip()


def _adapted(lines: Sequence[str]) -> tuple[float, Array | None]:
    """Step size and inverse metric, of the comments that follow the end of the adaptation."""
    step, rank, rows = np.nan, 0, []
    for line in lines:
        if line.startswith("Step size"):
            step = float(line.partition("=")[2])
        elif line in _METRIC.values():
            rank = 1 if line == _METRIC[1] else 2
        elif rank:
            try:
                rows.append([float(cell) for cell in line.split(",")])
            except ValueError:
                break
    if not rows or len(rows) != (1 if rank == 1 else len(rows[0])) or any(len(row) != len(rows[0]) for row in rows):
        return step, None
    return step, np.array(rows[0] if rank == 1 else rows)


def _seconds(lines: Iterable[str], phase: str) -> float:
    for line in lines:
        if f"({phase})" in line:
            return float(line.replace("Elapsed Time:", "").split()[0])
    return np.nan


def _table(lines: Iterable[bytes], columns: int, name: str) -> Array:
    rows = [line for line in lines if line.strip() and not line.startswith(b"#")]
    if not rows:
        return np.empty((0, columns))
    try:
        table = np.loadtxt(rows, delimiter=",", dtype=np.float64, ndmin=2, comments=None)
    except ValueError:
        table = np.empty((0, 0))
    if table.shape[1:] != (columns,):
        raise DataError([f"{name}: not a CSV file of CmdStan's form: a row is not {columns} numbers"])
    return table
