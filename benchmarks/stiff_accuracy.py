"""Stiff systems of the literature: how far the solvers are from references in extended precision.

    python benchmarks/stiff_accuracy.py [--only NAME] [--references] [--write]        (needs mpmath)

Robertson's reaction, van der Pol's oscillator with 1e6, HIRES and OREGO, with their sensitivities by the logarithms of
the parameters (tests/oracles/stiff_systems.py). The reference is a collocation at Radau's points in 64 bits of
mantissa, whose steps are as short as its polynomials' last coefficients ask for; done twice, with 9 and with 12 points,
and what the two differ by is printed. Errors of states are in units of the tolerance (relative and absolute together)
of each element, those of sensitivities in units of the relative one beside numbers of 1. With `--write` they become the
table in docs/accuracy.md; `--references` prints the references alone.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import mpmath as mp  # pyright: ignore[reportMissingImports]
import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "oracles"))

from stiff_systems import SYSTEMS, result  # noqa: E402

Numbers = npt.NDArray[Any]
REAL = np.longdouble
SOLVERS = ("ode_bdf_tol", "ode_adams_tol", "ode_adjoint_tol_ctl")
TOLERANCES = (1e-5, 1e-7, 1e-9)
SHORT = REAL(1e-11)
"""The last coefficients of a step, relative to the largest state so far; the end of a step is far more exact."""
SMALL = REAL(1e-12)
"""What counts of a state that has been 0 so far."""
IMAGINARY = REAL(1e-60)

DOCUMENT = Path(__file__).parents[1] / "docs" / "accuracy.md"
BEGIN, END = "<!-- begin: stiff systems, written by benchmarks/stiff_accuracy.py -->\n", "<!-- end: stiff systems -->"


def derivative(name: str, y: Numbers, p: Numbers) -> Numbers:
    """The right-hand sides of the systems, at each column of y."""
    if name == "robertson":
        first, second, third = p[0] * y[0], p[1] * y[1] * y[2], p[2] * y[1] ** 2
        return np.array([second - first, first - second - third, third])
    if name == "van_der_pol":
        return np.array([y[1], p[0] * ((1 - y[0] ** 2) * y[1] - y[0])])
    if name == "orego":
        first = p[0] * (y[1] + y[0] * (1 - p[2] * y[0] - y[1]))
        return np.array([first, (y[2] - (1 + y[0]) * y[1]) / p[0], p[1] * (y[0] - y[2])])
    c = {k: REAL(k) for k in ("1.71", "0.43", "8.32", "0.0007", "8.75", "10.03", "0.035", "1.12", "1.745", "0.69")}
    bound, released = p[0] * y[5] * y[7], p[1] * y[6]
    return np.array([
        -c["1.71"] * y[0] + c["0.43"] * y[1] + c["8.32"] * y[2] + c["0.0007"],
        c["1.71"] * y[0] - c["8.75"] * y[1],
        -c["10.03"] * y[2] + c["0.43"] * y[3] + c["0.035"] * y[4],
        c["8.32"] * y[1] + c["1.71"] * y[2] - c["1.12"] * y[3],
        -c["1.745"] * y[4] + c["0.43"] * (y[5] + y[6]),
        c["0.69"] * (y[3] + y[6]) + c["1.71"] * y[4] - c["0.43"] * y[5] - bound,
        bound - released,
        released - bound,
    ])  # fmt: skip


def jacobians(name: str, y: Numbers, p: Numbers) -> tuple[Numbers, Numbers]:
    """By the states, and by the logarithms of the parameters, at each column: exact, by imaginary steps."""
    by_state = [derivative(name, y + 1j * IMAGINARY * unit[:, None], p) for unit in np.eye(len(y))]
    by_log = [derivative(name, y + 0j, p * (1 + 1j * IMAGINARY * unit)) for unit in np.eye(len(p))]
    return np.imag(np.stack(by_state, 1)) / IMAGINARY, np.imag(np.stack(by_log, 1)) / IMAGINARY


class Collocation:
    """Radau's points in (0, 1]: integrals of the polynomials through them, and what makes their last coefficients."""

    def __init__(self, points: int) -> None:
        with mp.workdps(80):
            whole, before = _legendre(points), [*_legendre(points - 1), mp.mpf(0)]
            roots = mp.polyroots([a - b for a, b in zip(whole, before, strict=True)][::-1], maxsteps=500, extraprec=800)
            nodes = sorted((1 + mp.re(x)) / 2 for x in roots)
            powers = mp.matrix([[x**k for k in range(points)] for x in nodes])
            integrals = mp.matrix([[x ** (k + 1) / (k + 1) for k in range(points)] for x in nodes])
            bases = [_legendre(k)[::-1] for k in range(points + 1)]
            values = [[mp.polyval(basis, 2 * x - 1) for basis in bases] for x in [mp.mpf(0), *nodes]]
            self.integrals = _extended(integrals * mp.inverse(powers))
            self.last = _extended(mp.inverse(mp.matrix(values)))[-2:]


def _legendre(degree: int) -> list[Any]:
    """Coefficients of the polynomial, the constant one first."""
    before, found = [mp.mpf(0)], [mp.mpf(1)]
    for k in range(degree):
        raised = [mp.mpf(0), *((2 * k + 1) * c for c in found)]
        lowered = [*(k * c for c in before), *[mp.mpf(0)] * (len(raised) - len(before))]
        before, found = found, [(a - b) / (k + 1) for a, b in zip(raised, lowered, strict=True)]
    return found


def _extended(matrix: Any) -> Numbers:
    return np.array([[REAL(mp.nstr(x, 30)) for x in row] for row in matrix.tolist()])


def solved(matrix: Numbers, right: Numbers) -> Numbers:
    """Of linear equations, for each column; LAPACK has no extended precision."""
    size, rows = len(matrix), np.concatenate([matrix, right], 1)
    for k in range(size):
        pivot = k + int(np.argmax(np.abs(rows[k:, k])))
        rows[[k, pivot]] = rows[[pivot, k]]
        rows[k + 1 :, k:] -= (rows[k + 1 :, k] / rows[k, k])[:, None] * rows[k, k:]
    for k in reversed(range(size)):
        rows[k, size:] = (rows[k, size:] - rows[k, k + 1 : size] @ rows[k + 1 : size, size:]) / rows[k, k]
    return rows[:, size:]


def reference(name: str, points: int) -> tuple[Numbers, Numbers]:
    """The state at the end, and all sensitivities by the logarithms of the parameters."""
    start, parameters, last, *_ = SYSTEMS[name]
    rule, p, end = Collocation(points), np.array([REAL(repr(x)) for x in parameters]), REAL(repr(last))
    y, slopes = np.array([REAL(repr(x)) for x in start]), np.zeros((len(start), len(p)), dtype=REAL)
    largest, t, step = np.abs(y), REAL(0), REAL(1e-8)
    while t < end:
        step = min(step, end - t)
        moved = stages(name, y, p, step, rule, largest)
        if moved is None:
            step /= 4
            continue
        reached = np.maximum(largest, np.max(np.abs(y[:, None] + moved), 1))
        path = np.concatenate([y[:, None], y[:, None] + moved], 1)
        short = np.max(np.abs(path @ rule.last.T) / np.maximum(reached, SMALL)[:, None])
        if short > 10 * SHORT:
            step /= 2
            continue
        slopes = slopes + moved_slopes(name, y, slopes, p, step, rule, moved)
        y, t, largest = y + moved[:, -1], t + step, reached
        step *= min(REAL(3), REAL(0.9) * (SHORT / max(short, REAL(1e-40))) ** (REAL(1) / points))
    return y, slopes


def newton_matrix(by_state: Numbers, step: Any, rule: Collocation) -> Numbers:
    """Of what is asked of the stages, one behind the other, by how far they have moved."""
    size, _, points = by_state.shape
    blocks = -step * np.einsum("ij,abj->iajb", rule.integrals, by_state)
    return blocks.reshape(points * size, points * size) + np.eye(points * size, dtype=REAL)


def stages(
    name: str, y: Numbers, p: Numbers, step: Any, rule: Collocation, largest: Numbers
) -> Numbers | None:
    """By how much the state has moved at each point; None if Newton's method does not converge."""
    points = len(rule.integrals)
    moved = np.zeros((len(y), points), dtype=REAL)
    before = REAL(np.inf)
    for _ in range(12):
        at = y[:, None] + moved
        error = step * derivative(name, at, p) @ rule.integrals.T - moved
        by_state, _ = jacobians(name, at, p)
        change = solved(newton_matrix(by_state, step, rule), error.T.reshape(-1, 1)).reshape(points, len(y)).T
        moved = moved + change
        size = np.max(np.abs(change) / np.maximum(np.maximum(np.abs(y[:, None] + moved), largest[:, None]), SMALL))
        if not np.isfinite(size):
            return None
        if size < 1e-17 or (size < 1e-13 and size > before / 4):
            return moved
        before = size
    return None


def moved_slopes(
    name: str, y: Numbers, slopes: Numbers, p: Numbers, step: Any, rule: Collocation, moved: Numbers
) -> Numbers:
    """By how much the sensitivities move: linear equations with the same matrix."""
    by_state, by_log = jacobians(name, y[:, None] + moved, p)
    forced = np.einsum("abj,bk->jak", by_state, slopes) + np.moveaxis(by_log, -1, 0)
    right = step * np.einsum("ij,jak->iak", rule.integrals, forced)
    found = solved(newton_matrix(by_state, step, rule), right.reshape(-1, len(p)))
    return found.reshape(right.shape)[-1]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="the name of a system")
    parser.add_argument("--references", action="store_true", help="nothing else")
    parser.add_argument("--write", action="store_true", help="the table of the documentation")
    options = parser.parse_args()
    rows = []
    for name in SYSTEMS if not options.only else [options.only]:
        state, slopes = checked_reference(name)
        if not options.references:
            rows += measured(name, state, slopes)
    if options.write:
        text = DOCUMENT.read_text()
        before, after = text.partition(BEGIN)[0], text.partition(END)[2]
        head = "| system | solvers | " + " | ".join(f"{t:.0e}" for t in TOLERANCES) + " |"
        table = "\n".join([head, "|---|---|" + "--:|" * len(TOLERANCES), *rows])
        DOCUMENT.write_text(f"{before}{BEGIN}\n{table}\n\n{END}{after}")
    return 0


def checked_reference(name: str) -> tuple[Numbers, Numbers]:
    """The state and the sensitivities of its first element, by two rules; what they differ by is printed."""
    (state, slopes), (again, slopes_again) = (reference(name, points) for points in (9, 12))
    print(f"{name}: states {[np.format_float_scientific(v, precision=15) for v in again]}")
    print(f"    sensitivities of the first {[np.format_float_scientific(v, precision=15) for v in slopes_again[0]]}")
    differ = float(np.max(np.abs(state / again - 1))), float(np.max(np.abs(slopes[0] - slopes_again[0])))
    print(f"    9 and 12 points differ by {differ[0]:.1e} of the states, {differ[1]:.1e} of the sensitivities")
    return again, slopes_again[0]


def measured(name: str, state: Numbers, slopes: Numbers) -> list[str]:
    """Lines of the table: the largest errors in units of the tolerance, at each tolerance; equal ones once."""
    ratio = SYSTEMS[name][-1]
    solvers: dict[str, list[str]] = {}
    for solver in SOLVERS:
        cells = []
        for tolerance in TOLERANCES:
            found, gradient = result(name, solver, tolerance)
            of_state = np.max(np.abs(found - state) / (tolerance * (np.abs(state) + ratio)))
            of_slopes = np.max(np.abs(gradient - slopes) / tolerance)
            cells.append(f"{float(of_state):.2g}, {float(of_slopes):.2g}")
        solvers.setdefault(" | ".join(cells), []).append(solver.removesuffix("_tol").removesuffix("_tol_ctl"))
    lines = [f"| {name} | {', '.join(names)} | {cells} |" for cells, names in solvers.items()]
    print("\n".join(lines), flush=True)
    return lines


if __name__ == "__main__":
    sys.exit(main())
