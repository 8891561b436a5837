"""Layouts of the data: whether they are found, what they gain, what they must not touch, and what binding them costs.

    python benchmarks/layouts.py [NAME ...] [--rounds 7]
    python benchmarks/layouts.py [NAME ...] --bind [--least 1000] [--most 10000000]

The programs are in `benchmarks/layouts`, of other forms than public ones. The head of each says what is expected of
which layouts, and how its data are made:

    // expect: rows by index                  (a layout that is taken; `none`: none may be)
    // data: N = 20000; J = 300; g = index(N, J); y = counts(N, 3); x = normal(N)
    // bind: J = N // 20                      (optional: other statements where binding is measured)
    // other: y ~ poisson(...); a ~ ...       (the same model in another form, in the place of its block)

Statements are Python: `index(n, k)` are random ints from 1 to k, `bits(n)`, `counts(n, mean)`, `normal(n, ...)`; `rng`
and `np` are there, too. Times are CPU time of a gradient with and without layouts, by turns in one process, the best of
the rounds; values and gradients of both are compared at random points. Of the other form the times are told, too, and
whether the gain is kept: whether each of the two has 80% of the gain of the other, or takes at most 1.25 times as
long. With `--bind`, the first variable of the data goes from 10^3 to 10^7 by tens, each in a process of its own. Told
are the CPU time per row of binding the gradient's unit, in all, and less that without layouts in ns and in gradients
without layouts (less 1 ms); the memory that layouts keep, in bytes per row, and by how much binding raises the most
that the process has, less that without layouts (Linux). The exit status is 1 if what is expected is not so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ulam

FOLDER = Path(__file__).parent / "layouts"
NONE = "none"


def _statements(recipe: str) -> dict[str, str]:
    """The names and what they are."""
    parts = [statement.partition("=") for statement in recipe.split(";") if statement.strip()]
    return {name.strip(): text for name, _, text in parts}


@dataclass(frozen=True)
class Case:
    """A program with the data that its head describes."""

    path: Path
    expected: str
    recipe: str
    of_binding: str
    other: str
    """The same model in another form; empty if there is none."""

    @staticmethod
    def read(path: Path) -> Case:
        """The case of a file."""
        head = dict(re.findall(r"^// (expect|data|bind|other): (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE))
        return Case(path, head["expect"], head["data"], head.get("bind", ""), head.get("other", ""))

    def data(self, rows: int | None = None) -> dict[str, Any]:
        """The data; `rows`: another value of the first variable."""
        rng = np.random.default_rng(20)
        names: dict[str, Any] = {
            "rng": rng,
            "np": np,
            "index": lambda n, k: rng.integers(1, k + 1, n),
            "bits": lambda n: rng.integers(0, 2, n),
            "counts": lambda n, mean: rng.poisson(mean, n),
            "normal": lambda *shape: rng.standard_normal(shape),
        }
        found: dict[str, Any] = {}
        others = _statements(self.of_binding) if rows is not None else {}
        for name, text in _statements(self.recipe).items():
            value = rows if rows is not None and not found else eval(others.get(name, text), names)
            found[name] = names[name] = value
        return found

    def model(self, data: dict[str, Any], *, layouts: bool, other: bool = False) -> ulam.StanModel:
        """The model with or without layouts, as it is written or in the other form."""
        program = self.path.read_text(encoding="utf-8")
        if other:
            program = f"{program[: program.index('model {')]}model {{ {self.other} }}"
        return ulam.StanModel(program, data, layouts=layouts)


def difference_of(pair: list[ulam.StanModel], rng: np.random.Generator) -> float:
    """The largest difference of log densities and gradients, in that of the largest of these."""
    worst = 0.0
    for _ in range(3):
        point = rng.normal(0, 0.3, pair[0].param_unc_num())
        (value, gradient), (other, slopes) = (model.log_density_gradient(point) for model in pair)
        size = max(1.0, abs(other), float(np.abs(slopes).max(initial=0)))
        worst = max(worst, abs(value - other) / size, float(np.abs(gradient - slopes).max(initial=0)) / size)
    return worst


def _keeps(times: list[float]) -> bool:
    """Whether two forms of a model, of each its time with and without layouts, are as fast or gain as much."""
    if len(times) == 2:
        return True
    gained = sorted((times[1] / times[0], times[3] / times[2]))
    return max(times[0], times[2]) <= 1.25 * min(times[0], times[2]) or gained[0] - 1 >= 0.8 * (gained[1] - 1)


def gains(cases: list[Case], rounds: int) -> bool:
    """Prints a row for each case; whether all is as expected."""
    fine = True
    print("| program | expected | rows | with, us | without | gain | other form | gain | kept | difference | layouts |")
    print("|---|---|--:|--:|--:|--:|--:|--:|---|--:|---|")
    for case in cases:
        data = case.data()
        forms = [False, True] if case.other else [False]
        models = [case.model(data, layouts=layouts, other=other) for other in forms for layouts in (True, False)]
        pair = models[:2]
        rng = np.random.default_rng(1)
        point = rng.normal(0, 0.3, pair[0].param_unc_num())
        best = [np.inf] * len(models)
        count = max(1, int(0.02 / max(pair[1].time_gradients(point, 2) / 2, 1e-8)))
        for _ in range(rounds):
            for k, model in enumerate(models):
                best[k] = min(best[k], model.time_gradients(point, count) / count)
        difference = max(difference_of(pair, rng), difference_of(models[-2:], rng))
        choices = pair[0].layout_choices()
        taken = {choice.layout for choice in choices if choice.taken}
        as_expected = (not taken if case.expected == NONE else case.expected in taken) and difference < 1e-10
        kept = _keeps(best)
        fine = fine and as_expected and kept
        others = f"{best[2] * 1e6:.1f} | {best[3] / best[2]:.2f} | {'yes' if kept else 'NO'}" if case.other else " | |"
        said = "; ".join(choice.message for choice in choices) or "none"
        rows = next(iter(data.values()))
        print(
            f"| {case.path.stem} | {case.expected}{'' if as_expected else ' (NOT SO)'} | {rows} | {best[0] * 1e6:.1f} |"
            f" {best[1] * 1e6:.1f} | {best[1] / best[0]:.2f} | {others} | {difference:.0e} | {said} |",
            flush=True,
        )
    return fine


def _peak() -> int:
    """The most bytes of memory that the process has had since the last reset (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(re.findall(r"VmHWM:\s*(\d+)", status)[0])


def _reset_peak() -> int:
    """Lets the most be what it is now; what that is."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _peak()


def _bind(case: Case, rows: int) -> dict[str, Any]:
    """What binding takes in this process, per row."""
    kinds = (False, True)
    for layouts in kinds:
        case.model(case.data(1000), layouts=layouts).layout_choices()  # compiles
    data = case.data(rows)
    seconds, most, kept, gradient = [np.inf, np.inf], [0, 0], 0, np.inf
    size = sum(np.asarray(value).size * (4 if np.asarray(value).dtype.kind == "i" else 8) for value in data.values())
    for layouts in kinds:
        model = case.model(data, layouts=layouts)
        for _ in range(3 if rows > 100_000 else 9):
            del model
            model = case.model(data, layouts=layouts)
            before = _reset_peak()
            start = time.process_time()
            model.layout_choices()
            seconds[layouts] = min(seconds[layouts], time.process_time() - start)
            most[layouts] = max(most[layouts], _peak() - before)
        kept = sum(choice.figures.get("bytes", 0) for choice in model.layout_choices())
        if not layouts:
            point = np.random.default_rng(1).normal(0, 0.3, model.param_unc_num())
            gradient = min(model.time_gradients(point, 1) for _ in range(3))
    bound = seconds[True] - seconds[False]
    return {
        "ns in all": seconds[True] / rows * 1e9, "ns": bound / rows * 1e9,
        "gradients": max(0.0, bound - 1e-3) / gradient, "bytes": kept / rows, "of data": kept / size,
        "more": (most[True] - most[False]) / rows, "more of data": (most[True] - most[False]) / size,
    }  # fmt: skip


def bindings(cases: list[Case], least: int, most: int) -> None:
    """Prints a row for each case and number of rows."""
    print("| program | rows | ns per row | by layouts | gradients | bytes per row | of the data | peak | of the data |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for case in cases:
        rows = least
        while rows <= most:
            command = [sys.executable, __file__, case.path.stem, "--bind-one", str(rows)]
            # as where data are bound once, memory of any size is new each time
            given = os.environ | {"MALLOC_MMAP_THRESHOLD_": str(1 << 17)}
            ended = subprocess.run(command, text=True, stdout=subprocess.PIPE, env=given)
            if ended.returncode == -signal.SIGKILL or ended.stdout.strip() == "null":
                print(f"| {case.path.stem} | {rows} | more memory than this machine has | | | | | | |", flush=True)
                break
            ended.check_returncode()
            answer = json.loads(ended.stdout)
            figures = " | ".join(f"{figure:.2f}" for figure in answer.values())
            print(f"| {case.path.stem} | {rows} | {figures} |", flush=True)
            rows *= 10


def main() -> int:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--bind", action="store_true")
    parser.add_argument("--least", type=int, default=1000)
    parser.add_argument("--most", type=int, default=10_000_000)
    parser.add_argument("--bind-one", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    cases = [Case.read(path) for path in sorted(FOLDER.glob("*.stan")) if not asked.names or path.stem in asked.names]
    if asked.bind_one:
        try:
            print(json.dumps(_bind(cases[0], asked.bind_one)))
        except MemoryError:
            print("null")
        return 0
    if asked.bind:
        bindings([case for case in cases if case.expected != NONE], asked.least, asked.most)
        return 0
    return 0 if gains(cases, asked.rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
