"""The No-U-Turn sampler as it is published, by recursion over arrays: what the one in C is compared with.

Betancourt, "A Conceptual Introduction to Hamiltonian Monte Carlo" (2017), appendix A, with the criterion across the
halves of each tree. Random numbers are taken in the order in which the one in C takes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

LogDensity = Callable[[Any], tuple[float, Any]]


@dataclass
class State:
    q: Any
    p: Any
    v: Any
    g: Any
    lp: float
    energy: float


@dataclass
class Part:
    """A part of a trajectory, its points in the order in which they were made."""

    points: list[State]
    sample: State
    weight: float
    goes_on: bool = True


class Reference:
    """A chain with a metric: `inverse` is a matrix."""

    def __init__(
        self, density: LogDensity, inverse: Any, step: float, max_depth: int, rng: np.random.Generator
    ) -> None:
        self.density, self.inverse, self.step, self.max_depth, self.rng = density, inverse, step, max_depth, rng
        self.root = np.linalg.cholesky(inverse)

    def transition(self, q: Any) -> tuple[State, int, int, bool, float]:
        """The next state, and depth, leapfrog steps, whether it diverged, and the acceptance statistic."""
        lp, g = self.density(q)
        p = np.linalg.solve(self.root.T, self.rng.standard_normal(q.size))
        start = self._state(q, p, g, lp)
        self.steps, self.accepted, self.diverged, self.start = 0, 0.0, False, start.energy
        whole, depth, sample = [start], 0, start
        weight = 1.0
        while depth < self.max_depth:
            forwards = self.rng.random() > 0.5
            part = self._grow(whole[-1] if forwards else whole[0], depth, self.step if forwards else -self.step)
            if not part.goes_on:
                break
            depth += 1
            if self.rng.random() * weight < part.weight:
                sample = part.sample
            weight += part.weight
            turned = turns(whole if forwards else whole[::-1], part.points)
            whole = [*whole, *part.points] if forwards else [*part.points[::-1], *whole]
            if turned:
                break
        return sample, depth, self.steps, self.diverged, self.accepted / self.steps

    def _state(self, q: Any, p: Any, g: Any, lp: float) -> State:
        v = self.inverse @ p
        return State(q, p, v, g, lp, 0.5 * float(p @ v) - lp)

    def _leapfrog(self, z: State, step: float) -> State:
        p = z.p + 0.5 * step * z.g
        q = z.q + step * (self.inverse @ p)
        lp, g = self.density(q)
        return self._state(q, p + 0.5 * step * g, g, lp)

    def _grow(self, z: State, depth: int, step: float) -> Part:
        if depth == 0:
            new = self._leapfrog(z, step)
            self.steps += 1
            gained = self.start - new.energy
            if not gained >= -1000:
                self.diverged = True
                return Part([new], new, 0.0, False)
            self.accepted += min(1.0, math.exp(gained))
            return Part([new], new, math.exp(gained))
        first = self._grow(z, depth - 1, step)
        if not first.goes_on:
            return first
        second = self._grow(first.points[-1], depth - 1, step)
        if not second.goes_on:
            return second
        weight = first.weight + second.weight
        sample = second.sample if self.rng.random() * weight < second.weight else first.sample
        return Part(first.points + second.points, sample, weight, not turns(first.points, second.points))


def turns(first: list[State], second: list[State]) -> bool:
    """Whether two parts, the second behind the first, do not go on in the direction of their momenta."""

    def fine(begin: State, end: State, momenta: Any) -> bool:
        return bool(begin.v @ momenta > 0 and end.v @ momenta > 0)

    sums = [np.sum([z.p for z in part], axis=0) for part in (first, second)]
    return not (
        fine(first[0], second[-1], sums[0] + sums[1])
        and fine(first[0], second[0], sums[0] + second[0].p)
        and fine(first[-1], second[-1], sums[1] + first[-1].p)
    )
