"""Writes options, convergence tests and reasons to end into `docs/optimizers.md`, from `runtime/optimizers`.

python docs/list_optimizers.py            # rewrites the parts between the markers
python docs/list_optimizers.py --check    # exit status 1 if they are not current
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from written_parts import main, with_parts

from ulam.runtime.cmdstan_csv import setting_text
from ulam.runtime.optimizers.algorithms import ALGORITHMS
from ulam.runtime.optimizers.termination import Termination

DOCUMENT = Path(__file__).with_name("optimizers.md")
SCRIPT = Path(__file__).name

# The tests in the order in which they are made, with what has to be small. f: log density, g: gradient, x: point.
TESTS = [
    (Termination.OBJECTIVE, "tol_obj", "abs(f_k - f_(k-1)) < tol_obj"),
    (Termination.GRADIENT, "tol_grad", "norm(g_k) < tol_grad"),
    (Termination.PARAMETERS, "tol_param", "norm(x_k - x_(k-1)) < tol_param"),
    (Termination.MAX_ITERATIONS, "iter", "k >= iter"),
    (
        Termination.RELATIVE_OBJECTIVE,
        "tol_rel_obj",
        "abs(f_k - f_(k-1)) / max(abs(f_k), abs(f_(k-1)), 1) < tol_rel_obj * eps",
    ),
    (Termination.RELATIVE_GRADIENT, "tol_rel_grad", "g_k' H_k g_k / max(abs(f_k), 1) < tol_rel_grad * eps"),
]


def _defaults(algorithm: str) -> dict[str, Any]:
    return {option.name: option.default for option in fields(ALGORITHMS[algorithm].options)}


def options() -> str:
    """The options of all algorithms with their defaults."""
    defaults = {name: value for algorithm in ALGORITHMS for name, value in _defaults(algorithm).items()}
    lines = [f"| option | default | {' | '.join(ALGORITHMS)} |", f"|---|---|{'---|' * len(ALGORITHMS)}"]
    for name, value in defaults.items():
        takes = ("yes" if name in _defaults(algorithm) else "–" for algorithm in ALGORITHMS)
        lines.append(f"| `{name}` | {setting_text(value)} | {' | '.join(takes)} |")
    return "\n".join(lines)


def tests() -> str:
    """The convergence tests with their defaults."""
    defaults = _defaults("bfgs")
    lines = ["| order | test | default | code | status |", "|---|---|---|---|---|"]
    lines += [
        f"| {order} | `{formula}` | {setting_text(defaults[name])} | {end.code} | `{end.label}` |"
        for order, (end, name, formula) in enumerate(TESTS, 1)
    ]
    return "\n".join(lines)


def ends() -> str:
    """The reasons to end that are not convergence."""
    lines = ["| code | status | text |", "|---|---|---|"]
    others = [end for end in Termination if not end.converged and end is not Termination.RUNNING]
    lines += [f"| {end.code} | `{end.label}` | {end.text} |" for end in others]
    return "\n".join(lines)


PARTS: dict[str, Callable[[], str]] = {"options": options, "tests": tests, "ends": ends}


def updated(document: str) -> str:
    """The document with the parts between the markers written anew."""
    return with_parts(document, SCRIPT, PARTS)


if __name__ == "__main__":
    sys.exit(main(DOCUMENT, SCRIPT, updated))
