"""Calls every overload of every library function, and compares values, gradients and draws with what they must be.

    python benchmarks/signature_sweep.py [--names normal_] [--shard 1/8] [--second] [--points SEED] [--state FILE]

An overload of containers is compared with the call for each of its elements, every gradient with a central difference:
see `tests/oracles/signature_values.py` and `signature_checks.py`; with `--second` products of Hessians with directions
are compared with differences of gradients instead. With `--points` arguments are drawn around those of the reference
and of the tables, and these are tried where there is no value. Functions that are in FILE are not tried again.
Without LLVM's passes it takes about half an hour of CPU time for all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from ulam.emit import jit
from ulam.frontend.functions import signatures
from ulam.frontend.functions.signatures import Signature

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "oracles"))

from signature_checks import (  # noqa: E402
    IN_A_PROGRAM,
    can_be_tried,
    difference_problems,
    problems,
    second_difference_problems,
)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--names", default="", help="only functions whose name contains this")
    parser.add_argument("--shard", default="1/1", help="K/N: every Nth function, from the Kth")
    parser.add_argument("--each", type=int, default=0, help="only so many overloads of a function, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="for these")
    parser.add_argument("--points", type=int, default=0, metavar="SEED", help="draws other arguments")
    parser.add_argument("--state", type=Path, help="file with the functions that are done; read and written")
    parser.add_argument("--second", action="store_true", help="products of Hessians in the place of slopes")
    parser.add_argument("--optimized", action="store_true", help="with LLVM's passes")
    arguments = parser.parse_args(argv)
    if not arguments.optimized:
        jit.HOT = jit.Pipeline(speed=0, vectorize=False)
    shard, shards = map(int, arguments.shard.split("/"))
    done = set(arguments.state.read_text().split()) if arguments.state and arguments.state.exists() else set()
    names = [n for n in list(signatures.stan_names())[shard - 1 :: shards] if arguments.names in n and n not in done]
    tried = left = wrong = 0
    for together, group, omitted in _batches(names, arguments.each, arguments.seed):
        differences = second_difference_problems if arguments.second else difference_problems
        said = problems(group, differences, arguments.points)
        tried, left, wrong = tried + len(group), left + omitted, wrong + len(said)
        for line in said:
            print(line[:500], flush=True)
        if arguments.state:
            with arguments.state.open("a") as file:
                faulty = {line.partition("(")[0] for line in said}
                file.writelines(f"{name}\n" for name in together if name not in faulty)
    print(f"{tried} overloads tried, {left} left out, {wrong} wrong", flush=True)
    return 1 if wrong else 0


def _batches(names: Sequence[str], each: int, seed: int) -> Iterator[tuple[list[str], list[Signature], int]]:
    """Functions that share programs, their overloads, and how many cannot be tried."""
    together: list[str] = []
    group: list[Signature] = []
    omitted = 0
    for name in names:
        found = signatures.overloads(name)
        if found is None or found.higher_order():
            continue
        chosen = [s for s in found.all() if can_be_tried(s)]
        omitted += len(found.results) - len(chosen)
        if 0 < each < len(chosen):
            chosen = Random(f"{name} {seed}").sample(chosen, each)
        together.append(name)
        group += chosen
        if len(group) >= IN_A_PROGRAM:
            yield together, group, omitted
            together, group, omitted = [], [], 0
    if group:
        yield together, group, omitted


if __name__ == "__main__":
    sys.exit(main())
