"""What a new version has gained on public programs, and whether variants of them keep it.

    python benchmarks/gain_of_variants.py --old OLD/bin/python --new NEW/bin/python --posteriordb DIR
        [--folder DIR] [--only FAMILY ...] [--opt-level 3] [--turns 9] [--repeats 1] [--results FILE]

The variants are programs in `benchmarks/variants`, FAMILY-LABEL.stan: densities of the kind of a posterior of
posteriordb with other names, loops where there were vectors and the other way around, terms in another order, one more
prior. Their heads name the posterior whose data they take, and what its data are called there. The gain is the time of
a gradient of the old version over that of the new one, both by turns (see `compare_versions.py`). A variant keeps the
gain if its own is 80% of that of the posterior's program, counted from 1, or if it takes at most 1.25 times as long as
that program does now: where the old version did well on a variant there is less to gain.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from compare_versions import Row, Version, geometric_mean, known, measure
from posteriordb import Posterior, posteriors

FOLDER = Path(__file__).parent / "variants"
KEPT = 0.8
NOISE = 0.1


@dataclass(frozen=True)
class Variant:
    """A program that takes the data of a posterior under other names."""

    path: Path
    posterior: str
    names: dict[str, str]

    @property
    def family(self) -> str:
        """What it is a variant of."""
        return self.path.stem.partition("-")[0]

    def with_data(self, of: Posterior) -> Posterior:
        """The variant as what can be measured."""
        data = {self.names.get(name, name): value for name, value in json.loads(of.data).items()}
        return Posterior(self.path.stem, self.path, json.dumps(data))


def variants(folder: Path) -> list[Variant]:
    """All of a folder."""
    found = []
    for path in sorted(folder.glob("*.stan")):
        head = dict(re.findall(r"^// (posterior|names of data): (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE))
        found.append(Variant(path, head["posterior"], json.loads(head.get("names of data", "{}"))))
    return found


def keeps(variant: Row, public: Row) -> bool:
    """Whether a variant has the gain of the public program."""
    gain, own = 1 / public.ratio(), 1 / variant.ratio()
    if gain <= 1 + NOISE:  # there is none
        return own >= 1 - NOISE
    now = [min(new for _, new in row.gradient) for row in (variant, public)]
    return own - 1 >= KEPT * (gain - 1) or now[0] <= now[1] / KEPT


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", required=True, help="interpreter of the old version's environment")
    parser.add_argument("--new", required=True, help="that of the new one")
    parser.add_argument("--posteriordb", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the variants are")
    parser.add_argument("--only", nargs="*", default=[], help="names of families, or parts of them")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--compile-turns", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.01, help="of a turn")
    parser.add_argument("--opt-level", type=int, default=3)
    parser.add_argument("--results", type=Path, help="a file of rows, which is continued")
    options = parser.parse_args()
    chosen = [v for v in variants(options.folder) if not options.only or any(text in v.family for text in options.only)]
    wanted = {variant.posterior for variant in chosen}
    public = {p.name: p for p in posteriors(options.posteriordb) if p.name in wanted}
    rows = known(options.results)
    pairs = [(Version(options.old), Version(options.new)) for _ in range(options.repeats)]
    failed: list[str] = []

    def measured(posterior: Posterior) -> Row | None:
        if posterior.name not in rows:
            row = measure(pairs, posterior, options)
            if isinstance(row, str):
                failed.append(f"{posterior.name}: {row}")
                return None
            rows[posterior.name] = row
            if options.results is not None:
                entry = {"name": row.name, "gradient": row.gradient, "compile": row.compile}
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")
        return rows[posterior.name]

    lost, gains = [], []
    shown: set[str] = set()
    print(f"{'':44} {'old ns':>10} {'new ns':>10} {'gain':>7}")
    for variant in chosen:
        of = public[variant.posterior]
        base, own = measured(of), measured(variant.with_data(of))
        if base is None or own is None:
            continue
        if base.name not in shown:
            shown.add(base.name)
            print(line(base.name, base), flush=True)
        kept = keeps(own, base)
        print(line(f"  {own.name}", own) + ("" if kept else "  LOST"), flush=True)
        gains.append(1 / own.ratio())
        if not kept:
            lost.append(own.name)
    for version in (version for pair in pairs for version in pair):
        version.close()
    for text in failed:
        print(f"FAILED {text}")
    if gains:
        print(f"{len(gains)} variants, geometric mean of their gains {geometric_mean(gains):.2f}")
    print(f"without {KEPT:.0%} of the gain: {', '.join(lost) or 'none'}")
    return 1 if lost or failed else 0


def line(name: str, row: Row) -> str:
    """Of the report."""
    old, new = (1e9 * min(pair[which] for pair in row.gradient) for which in (0, 1))
    return f"{name:44} {old:10.0f} {new:10.0f} {old / new:7.2f}"


if __name__ == "__main__":
    sys.exit(main())
