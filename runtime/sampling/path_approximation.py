"""Normal densities along the path of L-BFGS, as Pathfinder draws from them.

Zhang, Carpenter, Gelman and Vehtari (2022), "Pathfinder: Parallel quasi-Newton variational inference", Journal of
Machine Learning Research 23(306). The mean is a quasi-Newton step from the iterate, the covariance the inverse Hessian
that L-BFGS approximates there: a diagonal matrix and one of low rank, so that nothing of size n x n is ever made.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ulam.runtime.optimizers.line_search import Point

Vector = npt.NDArray[np.float64]

LARGEST_CURVATURE = 1e12
"""A step counts if z.z / z.s is at most this, of its change s and that of the gradient z (Algorithm 3 there)."""

LOG_TWO_PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class LowRankNormal:
    """The normal density with covariance `A^(1/2) (I + Q (L L' - I) Q') A^(1/2)`, A the diagonal matrix of `alpha`.

    `q` is Q, (n, k) with orthonormal columns; `root` is L, lower triangular.
    """

    mean: Vector
    alpha: Vector
    q: Vector
    root: Vector

    @property
    def log_scale(self) -> float:
        """Half the log of the covariance's determinant."""
        return float(np.log(np.diag(self.root)).sum() + 0.5 * np.log(self.alpha).sum())

    def draws(self, normal: Vector) -> Vector:
        """Draws, a row for each row of independent standard normal numbers (Algorithm 4 there)."""
        change = self.root - np.eye(self.root.shape[0])
        return self.mean + np.sqrt(self.alpha) * (normal + normal @ self.q @ change.T @ self.q.T)

    def log_density(self, normal: Vector) -> Vector:
        """The log density at `draws(normal)`."""
        return -self.log_scale - 0.5 * (np.square(normal).sum(axis=1) + normal.shape[1] * LOG_TWO_PI)


class PathHistory:
    """The diagonal matrix and the last steps of a path, updated with each iterate; `value` of a point is minus log p.

    The diagonal is that of Gilbert and Lemaréchal (1989), formula 4.9, as in Algorithm 3 of Pathfinder: not the
    multiple of the identity that the optimizer itself uses. Steps without positive curvature are left out.
    """

    def __init__(self, start: Point, length: int) -> None:
        self._last = start
        self._alpha = np.ones(start.x.size)
        self._steps: deque[tuple[Vector, Vector]] = deque(maxlen=length)

    def add(self, point: Point) -> None:
        """Takes in the next iterate."""
        s, z = point.x - self._last.x, point.gradient - self._last.gradient
        self._last = point
        z_s, z_z = float(z.dot(s)), float(z.dot(z))
        if not (z_s > 0 and z_z <= LARGEST_CURVATURE * z_s):
            return
        self._steps.append((s, z))
        alpha = self._alpha
        a, b = float(z.dot(alpha * z)), float(s.dot(s / alpha))
        with np.errstate(all="ignore"):
            new = z_s / (a / alpha + np.square(z) - (a / b) * np.square(s / alpha))
        if np.isfinite(new).all() and (new > 0).all():
            self._alpha = new

    def approximation(self) -> LowRankNormal | None:
        """The normal density at the last iterate; None if rounding leaves no covariance.

        The inverse Hessian is formula II.1 of Pathfinder, from Byrd, Nocedal and Schnabel (1994), theorem 2.2; its
        factors are those of formula II.3, with -R^(-1) S' in place of S'.
        """
        alpha, point = self._alpha, self._last
        scale = np.sqrt(alpha)
        q: Vector = np.empty((alpha.size, 0))
        root: Vector = np.empty((0, 0))
        if self._steps:
            s = np.array([step for step, _ in self._steps])
            z = np.array([change for _, change in self._steps])
            scaled = z * scale
            products = s @ z.T
            try:
                b = -np.linalg.solve(np.triu(products), s)
                middle = scaled @ scaled.T + np.diag(np.diag(products))
                zero, one = np.zeros_like(middle), np.eye(len(s))
                q, r = np.linalg.qr(np.vstack([scaled, b / scale]).T)
                inner = r @ np.block([[zero, one], [one, middle]]) @ r.T
                root = np.asarray(np.linalg.cholesky(inner + np.eye(r.shape[0])), dtype=np.float64)
            except np.linalg.LinAlgError:
                return None
        step = scale * point.gradient
        inside = q.T @ step
        step = step + q @ (root @ (root.T @ inside) - inside)
        found = LowRankNormal(point.x - scale * step, alpha, q, root)
        return found if np.isfinite(found.mean).all() and math.isfinite(found.log_scale) else None
