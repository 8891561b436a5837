"""Log densities and gradients of normal models with and without layouts, against 50 digits (needs mpmath).

    python benchmarks/layout_accuracy.py [--rows 300] [--seeds 2] [--only WORD] [--all]

Designs of condition numbers from 1e2 to 1e10, nearly collinear, with offsets, of very large and small scales; each for
sums of squares (columns that the program writes out, in a matrix, beside coefficients of groups) and for sums of
quadratic forms (vectors with one mean, with means that are linear in the columns, and with those of groups). Points are
near the coefficients that fit best (these, and by parts in 1e9 and 1e3 away), as far from these as draws of a posterior
are, and elsewhere: 0, small, large, random. Errors of log densities and gradients are relative to the sum of the sizes
of what is added up, in units of 2^-53; told is the largest at a kind of points by levels 0 and 3, and what became of
layouts. Level 3 is worse where its error is more than twice that of level 0 and a unit, or above 1e-10; then the exit
status is 1. Without --all such rows are told alone. The last lines have the worst ratios: errors below a unit counted
as one, and as they are, where level 0 has any.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mpmath as mp  # pyright: ignore[reportMissingImports]
import numpy as np

import ulam

UNIT = 2.0**-53
MOST = 1e-10
WORSE = 2.0
GROUPS = 7
Array = np.ndarray[Any, Any]
_exact = np.vectorize(mp.mpf, otypes=[object])
_log = np.vectorize(mp.log, otypes=[object])


# ------------------------------------------------------------ designs


def conditioned(rng: np.random.Generator, n: int, k: int, condition: float) -> Array:
    """A matrix with singular values from 1 down to 1 / condition."""
    left, right = (np.linalg.qr(rng.standard_normal((size, k)))[0] for size in (n, k))
    return np.sqrt(n) * (left * np.geomspace(1, 1 / condition, k)) @ right.T


@dataclass(frozen=True)
class Design:
    """How columns are made, and what y is besides what random coefficients make of these."""

    columns: Callable[[np.random.Generator, int, int], Array]
    offset: float = 0.0
    scale: float = 1.0
    noise: float = 1.0
    centred: bool = False

    def made(self, rng: np.random.Generator, n: int, k: int, outcomes: int) -> tuple[Array, Array]:
        """X, and y of so many outcomes."""
        x = self.columns(rng, n, k)
        fit = x @ rng.standard_normal((k, outcomes))
        fit = fit - fit.mean(axis=0) if self.centred else fit
        size = np.std(fit, axis=0)
        noise = np.where(size > 0, size, 1.0) * rng.standard_normal((n, outcomes))
        return x * self.scale, fit + self.noise * noise + self.offset


def _normal(rng: np.random.Generator, n: int, k: int) -> Array:
    return rng.standard_normal((n, k))


def _twice(rng: np.random.Generator, n: int, k: int) -> Array:
    x = rng.standard_normal((n, k))
    x[:, -1] = x[:, 0]
    return x


def designs() -> Iterator[tuple[str, Design]]:
    """Named designs."""
    for power in (2, 3, 4, 6, 8, 10):
        yield f"condition 1e{power}", Design(lambda rng, n, k, c=10.0**power: conditioned(rng, n, k, c))
    for power in (2, 4, 8):
        away = 10.0**power
        yield f"offset 1e{power} in X", Design(lambda rng, n, k, d=away: _normal(rng, n, k) + d)
        yield f"offset 1e{power} in y", Design(_normal, away)
        yield f"offset 1e{power} in both", Design(lambda rng, n, k, d=away: _normal(rng, n, k) + d, away)
        yield f"offset 1e{power} in X only", Design(lambda rng, n, k, d=away: _normal(rng, n, k) + d, centred=True)
    for power in (-60, -8, 8, 60):
        yield f"scale 1e{power}", Design(_normal, scale=10.0**power)
    yield "a column far from 0", Design(lambda rng, n, k: _normal(rng, n, k) + 30 * (np.arange(k) == 0))
    yield "a column twice", Design(_twice)
    yield "a column nearly twice", Design(lambda rng, n, k: _twice(rng, n, k) + 1e-8 * _normal(rng, n, k))
    yield (
        "powers of a column",
        Design(lambda rng, n, k: 100.0 * np.vander(rng.random(n) + 1, k + 1, increasing=True)[:, 1:]),
    )
    yield "no noise", Design(_normal, noise=0.0)
    yield "mostly zeros", Design(lambda rng, n, k: np.eye(k)[rng.integers(0, k, n)])


# ------------------------------------------------------------ what is added up

Answer = tuple[Array, Array]
"""A log density with its gradient, of 50 digits; the sums of the sizes of what is added up to these."""


@dataclass(frozen=True)
class Squares:
    """y ~ normal(a + X b + u[g], s): parameters a, b, u, s."""

    program: str
    outcomes = 1
    groups: int = 0

    def source(self) -> str:
        """The program."""
        return (
            "data { int N; int K; int J; matrix[N, K] X; vector[N] y; array[N] int<lower=1, upper=J> g; } "
            f"parameters {{ real a; vector[K] b; vector[J] u; real s; }} model {{ {self.program} }}"
        )

    def data(self, x: Array, y: Array, rng: np.random.Generator) -> tuple[dict[str, Any], Array]:
        """The data, and all columns with coefficients."""
        n, k = x.shape
        g = rng.integers(0, max(self.groups, 1), n)
        data = {"N": n, "K": k, "J": max(self.groups, 1), "X": x, "y": y[:, 0], "g": g + 1}
        return data, np.hstack([np.ones((n, 1)), x, np.eye(max(self.groups, 1))[g][:, : self.groups]])

    def parameters(self, coefficients: Array, scales: Array, size: int) -> tuple[Array, Array]:
        """The point with these coefficients; the places in it that `exact` tells the gradient of."""
        b = coefficients[:, 0]
        return np.concatenate([b, np.zeros(size - b.size - 1), scales]), np.array([*range(b.size), size - 1])

    def exact(self, full: Array, y: Array, coefficients: Array, scales: Array) -> Answer:
        """The log density and its gradient."""
        n = len(full)
        rows, b, right, (s,) = _exact(full), _exact(coefficients[:, 0]), _exact(y[:, 0]), _exact(scales)
        z, most = (right - rows @ b) / s, (abs(right) + abs(rows) @ abs(b)) / s
        value, size = -(z @ z) / 2, (abs(z) + most * UNIT) @ most
        found = [value - n * mp.log(s), *(z @ rows / s), (-2 * value - n) / s]
        return np.array(found), np.array([size + n * (1 + abs(mp.log(s))), *(most @ abs(rows) / s), (2 * size + n) / s])


@dataclass(frozen=True)
class Forms:
    """y[n] ~ multi_normal(a + B x[n] + u[g[n]], diag(s) C diag(s)): parameters a, B, u, s."""

    program: str
    outcomes: int
    has_columns: bool = True
    groups: int = 0

    def source(self) -> str:
        """The program."""
        return (
            "data { int N; int K; int P; int J; matrix[N, P] X; array[N] vector[K] y; matrix[K, K] C; "
            "array[N] int g; } "
            "parameters { vector[K] a; matrix[K, P] B; array[J] vector[K] u; vector[K] s; } "
            f"model {{ {self.program} }}"
        )

    def correlations(self) -> Array:
        """C."""
        return 0.5 * np.eye(self.outcomes) + 0.5

    def data(self, x: Array, y: Array, rng: np.random.Generator) -> tuple[dict[str, Any], Array]:
        """The data, and all columns with coefficients."""
        x = x if self.has_columns else x[:, :0]
        g = rng.integers(0, max(self.groups, 1), len(x))
        sizes = {"N": len(x), "K": self.outcomes, "P": x.shape[1], "J": self.groups}
        data = {**sizes, "X": x, "y": y, "C": self.correlations(), "g": g + 1}
        return data, np.hstack([np.ones((len(x), 1)), x, np.eye(max(self.groups, 1))[g][:, : self.groups]])

    def parameters(self, coefficients: Array, scales: Array, size: int) -> tuple[Array, Array]:
        """The point with these coefficients, one row of them for each column; all of its places."""
        return np.concatenate([coefficients.ravel(), scales]), np.arange(size)

    def exact(self, full: Array, y: Array, coefficients: Array, scales: Array) -> Answer:
        """The log density and its gradient."""
        n, k = y.shape
        rows, b, right, s = map(_exact, (full, coefficients, y, scales))
        z, most = (right - rows @ b) / s, (abs(right) + abs(rows) @ abs(b)) / s
        inverted: Any = mp.matrix(self.correlations().tolist()) ** -1
        inverse = np.array(inverted.tolist(), dtype=object).reshape(k, k)
        forms, of_sizes, of_forms = z @ inverse, most @ abs(inverse), abs(z) @ abs(inverse)
        value, size = -(z * forms).sum() / 2 - n * _log(s).sum(), (abs(z) * of_sizes).sum()
        value -= n * mp.log(mp.det(mp.matrix(self.correlations().tolist()))) / 2
        size += n * (k + abs(_log(s)).sum()) + UNIT * (most * of_sizes).sum()
        of_scales = ((z * forms).sum(0) - n) / s
        scale_sizes = ((of_sizes * abs(z) + of_forms * most + UNIT * most * of_sizes).sum(0) + n) / s
        found = [value, *(rows.T @ forms / s).ravel(), *of_scales]
        return np.array(found), np.array([size, *(abs(rows).T @ of_sizes / s).ravel(), *scale_sizes])


Model = Squares | Forms
OF_X = "for (i in 1 : N) y[i] ~ multi_normal(a + B * X[i]', quad_form_diag(C, s));"
OF_GROUPS = "for (i in 1 : N) y[i] ~ multi_normal(a + B * X[i]' + u[g[i]], quad_form_diag(C, s));"
MODELS: dict[str, tuple[Model, int]] = {
    "written out, 2 columns": (Squares("y ~ normal(a + b[1] * X[:, 1] + b[2] * X[:, 2], s);"), 2),
    "matrix, 2 columns": (Squares("y ~ normal(a + X * b, s);"), 2),
    "matrix, 8 columns": (Squares("y ~ normal(a + X * b, s);"), 8),
    "matrix, 20 columns": (Squares("y ~ normal(a + X * b, s);"), 20),
    "groups, 3 columns": (Squares("y ~ normal(a + X * b + u[g], s);", GROUPS), 3),
    "vectors": (Forms("y ~ multi_normal(a, quad_form_diag(C, s));", 3, has_columns=False), 2),
    "vectors, 2 columns": (Forms(OF_X, 2), 2),
    "vectors, 8 columns": (Forms(OF_X, 3), 8),
    "vectors of groups": (Forms(OF_GROUPS, 3, has_columns=False, groups=GROUPS), 2),
    "vectors of groups, 2 columns": (Forms(OF_GROUPS, 2, groups=GROUPS), 2),
}
"""Each with how many columns it has."""


# ------------------------------------------------------------ points

NEAR, POSTERIOR, FAR = KINDS = ("near", "posterior", "far")


def points(rng: np.random.Generator, full: Array, y: Array) -> Iterator[tuple[str, Array]]:
    """Coefficients at which errors are looked for, by kinds."""
    best = np.linalg.lstsq(full, y, rcond=None)[0]
    left = np.std(y - full @ best, axis=0)
    spread = np.abs(best).max(initial=1e-300)
    _, singular, directions = np.linalg.svd(full, full_matrices=False)
    kept = np.where(singular > 1e-14 * singular[0], singular, np.inf)
    for size in (0.0, 1e-9, 1e-3):
        yield NEAR, best * (1 + size * rng.standard_normal(best.shape))
    for _ in range(3):
        yield POSTERIOR, best + directions.T @ (rng.standard_normal(best.shape) / kept[:, None]) * left
    yield FAR, np.zeros(best.shape)
    yield FAR, 1e-6 * rng.standard_normal(best.shape)
    yield FAR, 1e-3 * best
    yield FAR, rng.standard_normal(best.shape)
    yield FAR, best + spread * rng.standard_normal(best.shape)
    yield FAR, 1e3 * spread * rng.standard_normal(best.shape)


def worst_errors(model: Model, design: Design, n: int, columns: int, seed: int) -> tuple[Array, str]:
    """The largest errors at each kind of points by levels 0 and 3; what became of the layout."""
    rng = np.random.default_rng(seed)
    data, full = model.data(*(made := design.made(rng, n, columns, model.outcomes)), rng)
    y = made[1]
    compiled = [ulam.StanModel(model.source(), data, opt_level=level) for level in (0, 3)]
    errors = np.zeros((len(KINDS), 2))
    for kind, coefficients in points(rng, full, y):
        left = np.std(y - full @ coefficients, axis=0)
        scales = np.where(left > 0, left, 1.0)
        theta, places = model.parameters(coefficients, scales, compiled[0].param_unc_num())
        right, sizes = model.exact(full, y, coefficients, scales)
        for level, program in enumerate(compiled):
            value, gradient = program.log_density_gradient(theta)
            found = _exact(np.array([value, *gradient[places]]))
            error = float(max(abs(found - right) / sizes))
            errors[KINDS.index(kind), level] = max(errors[KINDS.index(kind), level], error)
    choices = [choice for choice in compiled[1].layout_choices() if choice.layout == "reduced rows"]
    return errors / UNIT, "; ".join("taken" if choice.taken else choice.reason for choice in choices) or "none"


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", default="", help="designs and programs whose name has this in it")
    parser.add_argument("--all", action="store_true")
    asked = parser.parse_args()
    mp.mp.dps = 50
    told, wrong, worst, bare, largest = 0, 0, 0.0, dict.fromkeys(KINDS, 0.0), 0.0
    print(f"| design | program | {' | '.join(f'{kind}: 0 | {kind}: 3' for kind in KINDS)} | layout |")
    print(f"|---|---|{'--:|' * 2 * len(KINDS)}---|")
    for label, design in designs():
        for name, (model, columns) in MODELS.items():
            if asked.only not in f"{label}, {name}":
                continue
            errors, layouts = np.zeros((len(KINDS), 2)), ""
            for seed in range(asked.seeds):
                found, layouts = worst_errors(model, design, asked.rows, columns, seed)
                errors = np.maximum(errors, found)
            ratio = float((errors[:, 1] / np.maximum(errors[:, 0], 1)).max())
            for kind, (plain, reduced) in zip(KINDS, errors, strict=True):
                bare[kind] = max(bare[kind], float(reduced / plain) if plain else 0.0)
            worst, largest = max(worst, ratio), max(largest, float(errors[:, 1].max()))
            is_wrong = bool(ratio > WORSE or errors[:, 1].max() > MOST / UNIT)
            told, wrong = told + 1, wrong + is_wrong
            if is_wrong or asked.all:
                figures = " | ".join(f"{error:.2g}" for error in errors.ravel())
                print(f"| {label}{' (WORSE)' * is_wrong} | {name} | {figures} | {layouts} |", flush=True)
    print(f"\n{told} designs, {wrong} worse than level 0; largest error at level 3: {largest * UNIT:.1e}")
    of_kinds = ", ".join(f"{kind} {ratio:.2g}" for kind, ratio in bare.items())
    print(f"worst ratio to level 0: {worst:.2g}; errors below a unit as they are: {of_kinds}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
