"""Samples posteriors of posteriordb and compares them with its reference draws.

    python benchmarks/posteriors.py --posteriordb DIR --results FILE [--only NAME ...] [--seed N] [--again]
    python benchmarks/posteriors.py --posteriordb DIR --write-table

Of each element of each parameter the mean, the standard deviation and the quantiles at 5% and 95% are compared, in
units of the Monte Carlo standard errors of both sides: z. A line for each posterior; what is in FILE already is not run
again. At the end, and in the exit status: |z| is below 4 for 99% of all quantities, above 4 for at most one of a
posterior, and never above 6.

A fit says of itself when it is not to be relied on. It is then sampled again with the next seed, twice at most, and the
line says so: where R-hat is above 1.05 (a chain is still where it began), and where iterations were divergent, with
`target_accept=0.99`, as the reference draws of such posteriors were made.

The reference draws (10 chains of 1,000 that are nearly independent) are kept as their summaries, in
`reference_posteriors.csv`; `--write-table` makes that file from the draws of a checkout of posteriordb. posteriordb and
its reference draws have the BSD-3-Clause licence, (c) the posteriordb authors.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from posteriordb import posteriors

TABLE = Path(__file__).with_name("reference_posteriors.csv")
QUANTITIES = ("mean", "sd", "q5", "q95")
HEADER = ("posterior", "parameter", *QUANTITIES, *(f"mcse_{quantity}" for quantity in QUANTITIES))

LARGE, SHARE_BELOW_LARGE, LARGEST = 4.0, 0.99, 6.0
"""What is judged: so many of all |z| are below LARGE, at most one of a posterior is above, and none above LARGEST."""

CONVERGED, REPEATS = 1.05, 2
"""A fit with a larger R-hat is sampled again, so often at most."""
DEFAULT_TARGET, CAREFUL_TARGET = 0.8, 0.99
"""The acceptance that is aimed at: first, and after divergent iterations."""

Array = npt.NDArray[np.float64]


def described(draws: Array) -> tuple[Array, Array]:
    """The quantities of draws of shape (chains, draws, elements), and their standard errors, both (elements, 4)."""
    from ulam.runtime.sampling.draw_statistics import mcse_mean, mcse_quantile, mcse_sd

    flat = draws.reshape(-1, draws.shape[-1])
    values = [flat.mean(axis=0), flat.std(axis=0), *np.quantile(flat, (0.05, 0.95), axis=0)]
    errors = [mcse_mean(draws), mcse_sd(draws), mcse_quantile(draws, 0.05), mcse_quantile(draws, 0.95)]
    return np.transpose(values), np.transpose(errors)


@dataclass
class Reference:
    """The summary of a posterior's reference draws: names of elements, quantities and their errors, (elements, 4)."""

    names: list[str]
    values: Array
    errors: Array


def read_table() -> dict[str, Reference]:
    """The summaries by posterior."""
    rows: dict[str, list[dict[str, str]]] = {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["posterior"], []).append(row)
    return {
        posterior: Reference(
            [row["parameter"] for row in found],
            np.array([[float(row[q]) for q in QUANTITIES] for row in found]),
            np.array([[float(row[f"mcse_{q}"]) for q in QUANTITIES] for row in found]),
        )
        for posterior, found in rows.items()
    }


def write_table(folder: Path) -> None:
    """Summarises the reference draws of a checkout."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for posterior, names, draws in _reference_draws(folder):
            for name, values, errors in zip(names, *described(draws), strict=True):
                numbers = [f"{value:.7g}" for value in values] + [f"{error:.4g}" for error in errors]
                writer.writerow([posterior, name, *numbers])


def _reference_draws(folder: Path) -> Iterator[tuple[str, list[str], Array]]:
    base = folder / "posterior_database" / "reference_posteriors" / "draws" / "draws"
    names = {
        info["reference_posterior_name"]: path.stem
        for path in sorted((folder / "posterior_database" / "posteriors").glob("*.json"))
        if (info := json.loads(path.read_text(encoding="utf-8"))).get("reference_posterior_name")
    }
    for reference, posterior in sorted(names.items(), key=lambda item: item[1]):
        archive = base / f"{reference}.json.zip"
        if archive.exists():
            with zipfile.ZipFile(archive) as z:
                chains = json.loads(z.read(z.namelist()[0]))
            elements = list(chains[0])
            yield posterior, elements, np.array([[chain[name] for name in elements] for chain in chains]).swapaxes(1, 2)


def elements(fit: Mapping[str, Any] | Any, names: Sequence[str]) -> Array:
    """Draws of elements named as `theta[1,2]`, (chains, draws, elements)."""
    columns: list[Array] = []
    for name in names:
        base, _, indices = name.rstrip("]").partition("[")
        place = tuple(int(index) - 1 for index in re.findall(r"\d+", indices))
        columns.append(fit[base][(..., *place)])
    return np.stack(columns, axis=-1)


def deviations(fit: Any, reference: Reference) -> Array:
    """z of each element and quantity, (elements, 4)."""
    values, errors = described(elements(fit, reference.names))
    return (values - reference.values) / np.hypot(errors, reference.errors)


def compare(code: str, data: str, reference: Reference, seed: int) -> dict[str, Any]:
    """Samples with the default settings, and compares."""
    import ulam
    from ulam.runtime.sampling.draw_statistics import ess_bulk, rhat

    model = ulam.StanModel(code, data=data)
    target_accept = DEFAULT_TARGET
    repeats = 0
    while True:
        began = time.process_time()
        fit = model.sample(seed=seed + repeats, target_accept=target_accept, progress=False)
        seconds = time.process_time() - began
        drawn = elements(fit, reference.names)
        worst_rhat = float(np.max(rhat(drawn)))
        divergent = int(fit.stats["divergent"].sum())
        is_fine = worst_rhat < CONVERGED and (not divergent or target_accept == CAREFUL_TARGET)
        if is_fine or repeats == REPEATS:
            break
        repeats += 1
        target_accept = CAREFUL_TARGET if divergent else target_accept
    z = deviations(fit, reference)
    worst = int(np.abs(z).max(axis=1).argmax())
    return {
        "z": [[round(float(value), 3) for value in row] for row in z],
        "worst": f"{QUANTITIES[int(np.abs(z[worst]).argmax())]} of {reference.names[worst]}",
        "rhat": round(worst_rhat, 4),
        "repeats": repeats,
        "ess": round(float(np.min(ess_bulk(drawn)))),
        "divergent": divergent,
        "target_accept": target_accept,
        "seconds": round(seconds, 2),
    }


def judge(results: Mapping[str, Any]) -> list[str]:
    """What is not as it should be, a line each."""
    problems = [f"{name}: {found['error']}" for name, found in results.items() if "error" in found]
    tables = {name: np.abs(np.array(found["z"])) for name, found in results.items() if "z" in found}
    for name, z in tables.items():
        if not (z <= LARGEST).all():
            problems.append(f"{name}: |z| is {z.max():.1f}, above {LARGEST:g}")
        elif (z > LARGE).sum() > 1:
            problems.append(f"{name}: {(z > LARGE).sum()} |z| are above {LARGE:g}")
    every = np.concatenate([z.ravel() for z in tables.values()]) if tables else np.empty(0)
    if every.size and (share := float((every < LARGE).mean())) < SHARE_BELOW_LARGE:
        problems.append(f"|z| is below {LARGE:g} for {share:.2%} of {every.size} quantities only")
    return problems


def line(name: str, found: Mapping[str, Any]) -> str:
    """A result as a line."""
    if "error" in found:
        return f"{name:<48} {found['error']}"
    z = np.abs(np.array(found["z"]))
    again = f", {found['repeats'] + 1} times sampled, target {found['target_accept']:g}" if found["repeats"] else ""
    return (
        f"{name:<48} |z| {z.max():5.2f} ({found['worst']}), R-hat {found['rhat']:.3f}, ESS {found['ess']}, "
        f"{found['divergent']} divergent, {found['seconds']:.1f} s{again}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posteriordb", type=Path, required=True)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="run what is in the file of results, too")
    parser.add_argument("--write-table", action="store_true")
    options = parser.parse_args(arguments)
    if options.write_table:
        write_table(options.posteriordb)
        return 0
    if options.results is None:
        parser.error("give --results FILE")
    results: dict[str, Any] = json.loads(options.results.read_text()) if options.results.exists() else {}
    references = read_table()
    for posterior in posteriors(options.posteriordb):
        name = posterior.name
        if name not in references or (options.only and name not in options.only):
            continue
        if name not in results or options.again:
            try:
                results[name] = compare(posterior.code, posterior.data, references[name], options.seed)
            except Exception as error:
                results[name] = {"error": f"{type(error).__name__}: {error}"[:200]}
            options.results.write_text(json.dumps(results))
        print(line(name, results[name]), flush=True)
    chosen = {name: found for name, found in results.items() if not options.only or name in options.only}
    problems = judge(chosen)
    every = np.concatenate([np.abs(np.array(found["z"])).ravel() for found in chosen.values() if "z" in found] or [[]])
    if every.size:
        print(f"{len(chosen)} posteriors, {every.size} quantities, |z| above {LARGE:g}: {(every > LARGE).sum()}")
    print("\n".join(problems) or "all as it should be")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
