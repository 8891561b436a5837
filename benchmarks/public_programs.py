"""Public Stan programs: do all compile, and do values, gradients and quantities agree with another implementation.

    python benchmarks/public_programs.py --programs TABLE.tsv --checkouts DIR [--extracted DIR] [--oracle PYTHON]
        [--level 3] [--seconds 240] [--only TEXT ...] [--shard 1/4] [--results FILE]

TABLE.tsv has a column `program` (see `public_sources.py`), DIR bare repositories `OWNER+NAME/repo`. Each program is
compiled to machine code (transformed data, gradient, transformed parameters and generated quantities) in a process of
its own. With data that lie beside it, or else random ones, and at two points, it is compared with `stanli` and
`bridgestan`, which the Python given as `--oracle` has: the log density relative to what is above 1, the gradient to its
largest entry, each transformed parameter and generated quantity relative to what is above 1. Generated quantities of
programs that draw random numbers are left out, and programs whose transformed data do. Log densities that differ by the
same number at both points have other constants: which ones `~` drops is in tests/reference/unnormalized.jsonl, by Stan
Math; such a number is printed, and is no difference.

Differences above 1e-8 that are known, and how each was settled, are in `public_programs.tsv` beside this file. The exit
status is 1 if a program does not compile, or if there is a difference that is not in that table.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from public_sources import PublicProgram, Repositories
from random_data import Array, NoData, random_data
from sweeps import add_options, in_child, sweep

import ulam
from ulam.runtime.compiler import load_stages
from ulam.runtime.named_text import NamedText

SETTLED = Path(__file__).with_suffix(".tsv")
NAME = "program.stan"
TOLERANCE = 1e-8
ATTEMPTS = 12
SCALES = (0.5, 0.1, 1.0)
SHAPES: tuple[Callable[[Array], Array], ...] = (np.asarray, np.abs, lambda theta: np.cumsum(np.abs(theta)))
"""For programs that have positive or growing parameters and do not say so."""

ORACLE = """
import json, os, signal, sys
import numpy as np
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # what programs print
import stanli
for line in sys.stdin:
    task = json.loads(line)
    signal.setitimer(signal.ITIMER_PROF, 120)
    try:
        model = stanli.bridgestan_model(stan_code=task["code"], data=task["data"], include_paths=task["folders"])
        found = []
        for theta in task["points"]:
            row = {}
            try:
                value, gradient = model.log_density_gradient(np.array(theta))
                row["value"], row["gradient"] = float(value), gradient.tolist()
            except Exception as error:
                row["error"] = str(error)[:200]
            try:
                names = model.param_names(include_tp=True, include_gq=True)
                values = model.param_constrain(np.array(theta), include_tp=True, include_gq=True, rng=model.new_rng(1))
                row["quantities"] = dict(zip(names, values.tolist()))
            except Exception as error:
                row["quantities_error"] = str(error)[:200]
            found.append(row)
        answer = {"points": found}
    except Exception as error:
        answer = {"error": str(error)[:300]}
    signal.setitimer(signal.ITIMER_PROF, 0)
    answers.write(json.dumps(answer) + "\\n")
"""

UNSUPPORTED = re.compile(r"unsupported function (\w+)|: (\w+) takes \d+ arguments and an op holds")
DEFINITIONS = {
    "int_step": "int int_step_(real x) { return x > 0; }",
    "symmetrize_from_lower_tri": """
matrix symmetrize_from_lower_tri_(matrix x) {
  matrix[rows(x), rows(x)] y;
  for (i in 1:rows(x)) for (j in 1:rows(x)) y[i, j] = x[max(i, j), min(i, j)];
  return y;
}""",
    "log_mix": """
real log_mix_(real p, real a, real b) { return log_sum_exp(log(p) + a, log1m(p) + b); }
real log_mix_(vector p, vector a) { return log_sum_exp(log(p) + a); }
real log_mix_(vector p, array[] real a) { return log_sum_exp(log(p) + to_vector(a)); }
real log_mix_(vector p, array[] vector a) {
  real total = 0;
  for (each in a) total += log_sum_exp(log(p) + each);
  return total;
}""",
    "gaussian_dlm_obs": """
real gaussian_dlm_obs__lpdf(matrix y, matrix F, matrix G, matrix V, matrix W, vector m0, matrix C0) {
  vector[rows(m0)] m = m0;
  matrix[rows(C0), cols(C0)] C = C0;
  real total = 0;
  for (t in 1:cols(y)) {
    vector[rows(m)] a = G * m;
    matrix[rows(C), cols(C)] R = G * C * G' + W;
    matrix[rows(y), rows(y)] Q = F' * R * F + V;
    vector[rows(y)] e = y[, t] - F' * a;
    matrix[rows(m), rows(y)] A = R * F * inverse(Q);
    total += -0.5 * (rows(y) * log(2 * pi()) + log_determinant(Q) + e' * inverse(Q) * e);
    m = a + A * e;
    C = R - A * Q * A';
  }
  return total;
}
real gaussian_dlm_obs__lpdf(matrix y, matrix F, matrix G, vector V, matrix W, vector m0, matrix C0) {
  return gaussian_dlm_obs__lpdf(y | F, G, diag_matrix(V), W, m0, C0);
}""",
    "determinant": """
real determinant_(matrix x) {
  matrix[rows(x), rows(x)] rest = x;
  real product = 1;
  for (k in 1:rows(x)) {
    product *= rest[k, k];
    for (i in (k + 1):rows(x)) {
      real factor = rest[i, k] / rest[k, k];
      for (j in (k + 1):rows(x)) rest[i, j] -= factor * rest[k, j];
    }
  }
  return product;
}""",
    "hmm_marginal": """
real hmm_marginal_(matrix log_omega, matrix Gamma, vector rho) {
  vector[rows(log_omega)] alpha = log(rho) + log_omega[, 1];
  for (n in 2:cols(log_omega)) {
    vector[rows(log_omega)] next;
    for (k in 1:rows(log_omega)) next[k] = log_sum_exp(alpha + log(Gamma[, k])) + log_omega[k, n];
    alpha = next;
  }
  return log_sum_exp(alpha);
}""",
}
"""Functions that the other implementation does not have, by name."""


def with_definition(code: str, name: str) -> str:
    """The program with a function of its own instead of one of the library."""
    code = re.sub(rf"(?<![\w.]){name}(?=\s*\()", f"{name}_", code)
    block = re.search(r"^\s*functions\s*\{", code, re.MULTILINE)
    if block is None:
        return f"functions {{\n{DEFINITIONS[name]}\n}}\n{code}"
    return f"{code[: block.end()]}\n{DEFINITIONS[name]}\n{code[block.end() :]}"


class Oracle:
    """Another implementation, in a process that is started again if it ends."""

    def __init__(self, python: str) -> None:
        self._python = python
        self._start()

    def _start(self) -> None:
        command, pipe = [self._python, "-c", ORACLE], subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)

    def __call__(self, **task: Any) -> dict[str, Any]:
        """What it answers; functions that it does not have are given to it, if they are known."""
        answer = self._answer(task)
        for _ in DEFINITIONS:
            missing = UNSUPPORTED.search(answer.get("error") or answer["points"][0].get("error", ""))
            name = missing and (missing[1] or missing[2])
            if name not in DEFINITIONS:
                break
            task["code"] = with_definition(task["code"], name)
            answer = self._answer(task)
        return answer

    def _answer(self, task: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self._start()
            return {"error": f"the process ended with {status}"}
        return json.loads(line)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--programs", type=Path, required=True, metavar="TABLE.tsv")
    parser.add_argument("--checkouts", type=Path, required=True, metavar="DIR", help="bare repositories")
    parser.add_argument("--extracted", type=Path, metavar="DIR", help="their files, kept for the next run")
    parser.add_argument("--oracle", metavar="PYTHON", help="one with stanli and bridgestan")
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=240, help="CPU time that a program may take")
    add_options(parser)
    options = parser.parse_args(argv)
    with options.programs.open(encoding="utf-8", newline="") as file:
        names = [row["program"] for row in csv.DictReader(file, delimiter="\t")]
    load_stages()
    oracle = None if options.oracle is None else Oracle(options.oracle)
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["ULAM_CACHE_DIR"] = os.path.join(temporary, "cache")  # models have the code of their program from it
        repositories = Repositories(options.checkouts, options.extracted or Path(temporary))
        rows = sweep(names, options, lambda name: examined(name, repositories, options, oracle))
    return report(rows, settled())


def settled() -> dict[str, str]:
    """How differences were settled, by program."""
    if not SETTLED.exists():
        return {}
    with SETTLED.open(encoding="utf-8", newline="") as file:
        return {row["program"]: row["settled"] for row in csv.DictReader(file, delimiter="\t")}


def examined(
    name: str, repositories: Repositories, options: argparse.Namespace, oracle: Oracle | None
) -> dict[str, Any]:
    """What became of a program: `problem` if it does not compile, else how far it was compared and how it agrees."""
    try:
        program = repositories.program(name)
    except FileNotFoundError as error:
        return {"problem": f"not found: {error}"}
    outcome = in_child(lambda: evaluated(program, options.level), options.seconds)
    row: dict[str, Any] = {"seconds": round(outcome.seconds, 2)}
    if outcome.answer is None:
        return {**row, "problem": outcome.problem}
    ours = outcome.answer
    row |= {key: ours[key] for key in ("problem", "data", "note") if key in ours}
    if oracle is not None and ours.get("points"):
        thetas = [point["theta"] for point in ours["points"]]
        theirs = oracle(code=program.code, data=ours["text"], points=thetas, folders=list(program.folders))
        row |= compared(program, ours["points"], theirs)
    return row


def evaluated(program: PublicProgram, level: int) -> dict[str, Any]:
    """In a child: compiles a program, finds data that it takes, evaluates it."""
    try:
        compiled = ulam.StanProgram(NamedText(program.code, NAME), opt_level=level, include_paths=program.folders)
    except ulam.UlamError as error:
        return {"problem": str(error)[:300]}
    note = ""
    for attempt in range(-1, ATTEMPTS):
        try:
            data = random_data(program.code, NAME, program.folders, attempt) if attempt >= 0 else program.data
        except NoData as error:
            note = f"no data: {error}"
            continue
        if data is None:
            continue
        text = data if isinstance(data, str) else json.dumps(data)
        try:
            model = compiled(text)
            points = [point for k in range(2) if (point := _point(model, k)) is not None]
        except (ulam.UlamError, ValueError) as error:
            note = str(error)[:200]
            continue
        if points:
            return {"points": points, "text": text, "data": "given" if attempt < 0 else f"random {attempt}"}
        note = note or "no point with a finite density"
    return {"data": "none", "note": note}


def _point(model: Any, number: int) -> dict[str, Any] | None:
    """The `number`th point with a finite density and what is there; first tried are those of the reference values."""
    for shape, scale in itertools.product(SHAPES, SCALES):
        theta = scale * shape(np.sin(1.7 * np.arange(1, model.param_unc_num() + 1) + 0.9 * number))
        try:
            value, gradient = model.log_density_gradient(theta)
        except ulam.UlamError:
            continue
        if not math.isfinite(value):
            continue
        found = {"theta": theta.tolist(), "value": value, "gradient": gradient.tolist()}
        try:
            names = model.param_names(include_tp=True, include_gq=True)
            values = model.param_constrain(theta, include_tp=True, include_gq=True, rng=model.new_rng(1))
            transformed = model.param_names(include_tp=True)
            found |= {"quantities": dict(zip(names, values.tolist(), strict=True)), "transformed": transformed}
        except ulam.UlamError as error:
            found["quantities_error"] = str(error)[:200]
        return found
    return None


def compared(program: PublicProgram, ours: list[dict[str, Any]], theirs: dict[str, Any]) -> dict[str, Any]:
    """Largest differences over the points; what could not be compared."""
    if "error" in theirs:
        return {"oracle": theirs["error"]}
    text = re.sub(r"(?s)/\*.*?\*/|//[^\n]*", "", program.code)
    draws_before = "_rng" in text.partition("transformed data")[2].partition("parameters")[0]
    if draws_before:
        return {"oracle": "random numbers in transformed data"}
    worst = {"value": 0.0, "gradient": 0.0, "quantities": 0.0}
    where, missing, refused = "", 0, []
    n_points = n_quantities = 0
    for mine, other in zip(ours, theirs["points"], strict=True):
        if "error" in other:
            refused.append(other["error"])
            continue
        n_points += 1
        worst["value"] = max(worst["value"], difference([mine["value"]], [other["value"]]))
        worst["gradient"] = max(worst["gradient"], difference(mine["gradient"], other["gradient"]))
        if "quantities" not in mine or "quantities" not in other:
            if ("quantities" in mine) != ("quantities" in other):
                refused.append(mine.get("quantities_error") or other["quantities_error"])
            continue
        asked = mine["transformed"] if "_rng" in text else list(mine["quantities"])
        for name in asked:
            if name not in other["quantities"]:
                missing += 1
                continue
            n_quantities += 1
            error = difference([mine["quantities"][name]], [other["quantities"][name]])
            if error > worst["quantities"]:
                worst["quantities"], where = error, name
    row: dict[str, Any] = {"points": n_points, "quantities": n_quantities, "differences": worst}
    if worst["value"] > TOLERANCE and worst["gradient"] <= TOLERANCE and n_points == len(ours) > 1:
        row["constant"] = ours[0]["value"] - theirs["points"][0]["value"]
        moved = [point["value"] - row["constant"] for point in ours]
        worst["value"] = max(
            difference([x], [point["value"]]) for x, point in zip(moved, theirs["points"], strict=True)
        )
    return row | {key: x for key, x in (("where", where), ("missing", missing), ("refused", refused[:1])) if x}


def difference(found: list[float], expected: list[float]) -> float:
    """The largest, relative to the largest finite number expected if that is above 1; infinite for other specials."""
    a, b = np.array(found), np.array(expected)
    if a.shape != b.shape:
        return math.inf
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return math.inf
    scale = max(1.0, float(np.max(np.abs(b[finite]), initial=0)))
    return float(np.max(np.abs(a[finite] - b[finite]), initial=0)) / scale


def report(rows: Sequence[dict[str, Any]], known: dict[str, str]) -> int:
    """Prints what was found; 1 if a program did not compile or differs in a way that is not settled."""
    uncompiled = [row for row in rows if row.get("problem")]
    compared_rows = [row for row in rows if row.get("points")]
    differing = [row for row in compared_rows if max(row["differences"].values()) > TOLERANCE]
    points, quantities = (sum(row[key] for row in compared_rows) for key in ("points", "quantities"))
    print(f"{len(rows)} programs, {len(rows) - len(uncompiled)} compiled")
    for row in uncompiled:
        print(f"  {row['name']}: {row['problem']}")
    print(
        f"{len(compared_rows)} compared at {points} points, {quantities} quantities, {len(differing)} programs differ:"
    )
    for row in differing:
        errors = ", ".join(f"{what} {error:.1e}" for what, error in row["differences"].items() if error > TOLERANCE)
        print(f"  {row['name']}: {errors} {row.get('where', '')}: {known.get(row['name'], 'NOT SETTLED')}")
    for row in compared_rows:
        if "constant" in row:
            print(f"  {row['name']}: a constant of {row['constant']:.6g}")
    left = Counter(row.get("oracle") or row.get("note") or "" for row in rows if not row.get("points"))
    print(f"{sum(left.values())} not compared:")
    for reason, count in left.most_common():
        print(f"  {count}  {reason}")
    return 1 if uncompiled or any(row["name"] not in known for row in differing) else 0


if __name__ == "__main__":
    sys.exit(main())
