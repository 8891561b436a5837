"""Normal densities along a path: the covariance is that of BFGS updates written out; draws and densities fit it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ulam.runtime.optimizers.line_search import Point
from ulam.runtime.sampling.path_approximation import PathHistory

Array = np.ndarray[Any, Any]


class Quadratic:
    """Minus the log of a normal density, with the gradient."""

    def __init__(self, size: int, seed: int) -> None:
        generator = np.random.default_rng(seed)
        root = generator.normal(size=(size, size))
        self.precision, self.mean = root @ root.T + np.eye(size), generator.normal(size=size)
        self.generator = generator

    def point(self, x: Array | None = None) -> Point:
        x = self.generator.normal(size=self.mean.size) if x is None else x
        gradient = self.precision @ (x - self.mean)
        return Point(x, 0.5 * float((x - self.mean) @ gradient), gradient)


def updated(diagonal: Array, pairs: list[tuple[Array, Array]]) -> Array:
    """The inverse Hessian after BFGS updates, one by one (Nocedal and Wright, formula 6.17)."""
    matrix, one = np.diag(diagonal), np.eye(diagonal.size)
    for s, z in pairs:
        left = one - np.outer(s, z) / (s @ z)
        matrix = left @ matrix @ left.T + np.outer(s, s) / (s @ z)
    return matrix


@pytest.mark.parametrize(("size", "history", "steps"), [(1, 5, 1), (2, 5, 3), (4, 5, 4), (12, 5, 9), (30, 3, 8)])
def test_covariance_is_that_of_bfgs(size: int, history: int, steps: int) -> None:
    target = Quadratic(size, seed=size)
    points = [target.point() for _ in range(steps + 1)]
    path = PathHistory(points[0], history)
    diagonal = np.ones(size)
    for old, new in zip(points, points[1:], strict=False):
        path.add(new)
        s, z = new.x - old.x, new.gradient - old.gradient
        # Gilbert and Lemaréchal, formula 4.9, element by element.
        a, b = sum(z * z * diagonal), sum(s * s / diagonal)
        diagonal = np.array([
            (s @ z) / (a / d + z_i**2 - a * (s_i / d) ** 2 / b) for d, z_i, s_i in zip(diagonal, z, s, strict=True)
        ])  # fmt: skip
    pairs = [(new.x - old.x, new.gradient - old.gradient) for old, new in zip(points, points[1:], strict=False)]
    expected = updated(diagonal, pairs[-history:])
    found = path.approximation()
    assert found is not None
    root = found.draws(np.eye(size)) - found.mean  # each row: the root times a unit vector
    np.testing.assert_allclose(root.T @ root, expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_allclose(found.mean, points[-1].x - expected @ points[-1].gradient, rtol=1e-9, atol=1e-9)
    normal = target.generator.normal(size=(3, size))
    for draw, value in zip(found.draws(normal), found.log_density(normal), strict=True):
        deviation = draw - found.mean
        determinant = np.linalg.slogdet(2 * math.pi * expected)[1]
        quadratic = deviation @ np.linalg.solve(expected, deviation)
        assert value == pytest.approx(-0.5 * (quadratic + determinant), rel=1e-7)


def test_start_is_a_unit_normal() -> None:
    target = Quadratic(3, seed=1)
    start = target.point()
    found = PathHistory(start, 5).approximation()
    assert found is not None and found.log_scale == 0
    np.testing.assert_array_equal(found.mean, start.x - start.gradient)
    normal = np.ones((1, 3))
    np.testing.assert_array_equal(found.draws(normal)[0], found.mean + 1)
    assert found.log_density(normal)[0] == pytest.approx(-1.5 * (1 + math.log(2 * math.pi)))


def test_steps_without_curvature_do_not_count() -> None:
    """Along them the density curves upwards, or not at all: what is known stays."""
    target = Quadratic(3, seed=2)
    start, second = target.point(), target.point()
    path = PathHistory(start, 5)
    path.add(second)
    before = path.approximation()
    upwards = Point(second.x + 0.1, second.value, second.gradient - 0.1)
    path.add(upwards)
    path.add(upwards)  # no step at all
    after = path.approximation()
    assert before is not None and after is not None
    np.testing.assert_array_equal(after.alpha, before.alpha)
    np.testing.assert_array_equal(after.root, before.root)
