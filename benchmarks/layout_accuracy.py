"""Log densities and gradients of normal linear models with and without layouts, against 50 digits (needs mpmath).

    python benchmarks/layout_accuracy.py [--rows 300] [--seeds 2] [--all]

Designs of condition numbers from 1e2 to 1e10, nearly collinear, with offsets, of very large and small scales, each for
columns that the program writes out, in a matrix (up to 20), and beside coefficients of groups; points near the
coefficients that fit best (these, by parts in 1e9 and in 1e3 away), and far away. Errors of log densities and gradients
are relative to the sum of the sizes of what is added up, in units of 2^-53; told is the largest of a design by levels 0
and 3, and what became of the layout. Level 3 is worse where near the fit its error is more than 4 times that of level
0 and a unit, or elsewhere above 1e-11; then the exit status is 1. Without --all such rows are told alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Any

import mpmath as mp  # pyright: ignore[reportMissingImports]
import numpy as np

import ulam

UNIT = 2.0**-53
Array = np.ndarray[Any, Any]

HEAD = """data { int N; int K; int J; matrix[N, K] X; vector[N] y; array[N] int<lower=1, upper=J> g; }
parameters { real a; vector[K] b; vector[J] u; real s; }
"""
PROGRAMS = {
    "written out": "model { y ~ normal(a + b[1] * X[:, 1] + b[2] * X[:, 2], s); }",
    "matrix": "model { y ~ normal(a + X * b, s); }",
    "groups": "model { y ~ normal(a + X * b + u[g], s); }",
}
GROUPS = 7
NEAR = 3
FAR_LIMIT = 1e-11


def conditioned(rng: np.random.Generator, n: int, k: int, condition: float) -> Array:
    """A matrix with singular values from 1 down to 1 / condition."""
    left, right = (np.linalg.qr(rng.standard_normal((size, k)))[0] for size in (n, k))
    return np.sqrt(n) * (left * np.geomspace(1, 1 / condition, k)) @ right.T


Maker = Callable[[np.random.Generator, int, int], tuple[Array, Array]]


def designs() -> Iterator[tuple[str, Maker]]:
    """Named ways to make X and y."""

    def noisy(make: Callable[[np.random.Generator, int, int], Array], offset: float = 0.0, scale: float = 1.0) -> Maker:
        def made(rng: np.random.Generator, n: int, k: int) -> tuple[Array, Array]:
            x = make(rng, n, k)
            fit = x @ rng.standard_normal(k)
            noise = (np.std(fit) or 1.0) * rng.standard_normal(n)
            return x * scale, fit + noise + offset

        return made

    for power in (2, 4, 6, 8, 10):
        yield f"condition 1e{power}", noisy(lambda rng, n, k, c=10.0**power: conditioned(rng, n, k, c))
    for power in (4, 8):
        away = 10.0**power
        yield f"offset 1e{power} in X", noisy(lambda rng, n, k, d=away: rng.standard_normal((n, k)) + d)
        yield f"offset 1e{power} in y", noisy(lambda rng, n, k: rng.standard_normal((n, k)), away)
        yield f"offset 1e{power} in both", noisy(lambda rng, n, k, d=away: rng.standard_normal((n, k)) + d, away)
    for power in (-60, -8, 8, 60):
        yield f"scale 1e{power}", noisy(lambda rng, n, k: rng.standard_normal((n, k)), scale=10.0**power)

    def twice(rng: np.random.Generator, n: int, k: int) -> Array:
        x = rng.standard_normal((n, k))
        x[:, -1] = x[:, 0]
        return x

    def nearly(rng: np.random.Generator, n: int, k: int) -> Array:
        return twice(rng, n, k) + 1e-8 * rng.standard_normal((n, k))

    def exactly(rng: np.random.Generator, n: int, k: int) -> tuple[Array, Array]:
        x = rng.standard_normal((n, k))
        return x, x @ rng.standard_normal(k)

    def polynomials(rng: np.random.Generator, n: int, k: int) -> Array:
        return 100.0 * np.vander(rng.random(n) + 1, k + 1, increasing=True)[:, 1:]

    yield "a column twice", noisy(twice)
    yield "a column nearly twice", noisy(nearly)
    yield "powers of a column", noisy(polynomials)
    yield "no noise", exactly
    yield "mostly zeros", noisy(lambda rng, n, k: np.eye(k)[rng.integers(0, k, n)])


def points(rng: np.random.Generator, full: Array, y: Array) -> Iterator[Array]:
    """Coefficients at which errors are looked for: NEAR of them near those that fit best, then others."""
    best = np.linalg.lstsq(full, y, rcond=None)[0]
    spread = np.abs(best).max(initial=1e-300)
    for size in (0.0, 1e-9, 1e-3):
        yield best * (1 + size * rng.standard_normal(best.size))
    yield best + spread * rng.standard_normal(best.size)
    yield rng.standard_normal(best.size)


def exact(full: Array, y: Array, coefficients: Array, s: float) -> tuple[list[Any], list[Any]]:
    """The log density without constants, and its gradient; the sums of the sizes of what is added up."""
    rows = [[mp.mpf(float(v)) for v in row] for row in full]
    b, sigma = [mp.mpf(float(v)) for v in coefficients], mp.mpf(s)
    value, size = mp.mpf(0), mp.mpf(0)
    slopes, sizes = [mp.mpf(0)] * len(b), [mp.mpf(0)] * len(b)
    for row, response in zip(rows, y, strict=True):
        z = (mp.mpf(float(response)) - mp.fdot(row, b)) / sigma
        largest = (abs(mp.mpf(float(response))) + mp.fsum(abs(x * c) for x, c in zip(row, b, strict=True))) / sigma
        value -= z * z / 2
        size += (abs(z) + largest * UNIT) * largest
        for k, x in enumerate(row):
            slopes[k] += x * z / sigma
            sizes[k] += abs(x) * largest / sigma
    n = len(rows)
    of_scale, its_size = (-2 * value - n) / sigma, (2 * size + n) / sigma
    return [value - n * mp.log(sigma), *slopes, of_scale], [size + n, *sizes, its_size]


def worst_errors(name: str, maker: Maker, n: int, k: int, seed: int) -> tuple[Array, str]:
    """The largest errors near the fit, and elsewhere, by levels 0 and 3; what became of the layout."""
    rng = np.random.default_rng(seed)
    x, y = maker(rng, n, k)
    g = rng.integers(0, GROUPS, n)
    groups = GROUPS if name == "groups" else 0
    data = {"N": n, "K": k, "J": max(groups, 1), "X": x, "y": y, "g": g % max(groups, 1) + 1}
    full = np.hstack([np.ones((n, 1)), x, np.eye(GROUPS)[g][:, :groups]])
    models = [ulam.StanModel(HEAD + PROGRAMS[name], data, opt_level=level) for level in (0, 3)]
    errors = np.zeros((2, 2))
    for at, coefficients in enumerate(points(rng, full, y)):
        s = float(np.std(y - full @ coefficients) or 1.0)
        theta = np.concatenate([coefficients, np.zeros(models[0].param_unc_num() - coefficients.size - 1), [s]])
        right, sizes = exact(full, y, coefficients, s)
        for level, model in enumerate(models):
            value, gradient = model.log_density_gradient(theta)
            found = np.concatenate([[value], gradient[: coefficients.size], gradient[-1:]])
            worst = max(abs(mp.mpf(float(v)) - e) / m for v, e, m in zip(found, right, sizes, strict=True))
            errors[int(at >= NEAR), level] = max(errors[int(at >= NEAR), level], float(worst))
    choices = [choice for choice in models[1].layout_choices() if choice.layout == "reduced rows"]
    return errors / UNIT, "; ".join("taken" if choice.taken else choice.reason for choice in choices) or "none"


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--all", action="store_true")
    asked = parser.parse_args()
    mp.mp.dps = 50
    told, wrong = 0, 0
    print("| design | program | columns | near: 0 | near: 3 | far: 0 | far: 3 | layout |")
    print("|---|---|--:|--:|--:|--:|--:|---|")
    for label, maker in designs():
        for name, k in (("written out", 2), ("matrix", 2), ("matrix", 8), ("matrix", 20), ("groups", 3)):
            errors, layouts = np.zeros((2, 2)), ""
            for seed in range(asked.seeds):
                found, layouts = worst_errors(name, maker, asked.rows, k, seed)
                errors = np.maximum(errors, found)
            (near, near_with), (_, far_with) = errors
            is_wrong = bool(near_with > 4 * near + 1 or far_with > FAR_LIMIT / UNIT)
            told, wrong = told + 1, wrong + is_wrong
            if is_wrong or asked.all:
                figures = " | ".join(f"{error:.2g}" for error in errors.ravel())
                print(f"| {label}{' (WORSE)' * is_wrong} | {name} | {k} | {figures} | {layouts} |", flush=True)
    print(f"\n{told} designs, {wrong} worse than level 0")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
