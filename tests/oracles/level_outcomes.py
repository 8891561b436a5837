"""What models make of points, where levels are compared."""

from __future__ import annotations

import numpy as np

import ulam


def outcome(model: ulam.StanModel, point: np.ndarray) -> tuple[float, np.ndarray] | str:
    """The log density and its gradient, or the text of a rejection."""
    try:
        return model.log_density_gradient(point)
    except ulam.Rejection as error:
        return str(error)


def assert_same_outcomes(first: ulam.StanModel, second: ulam.StanModel, at: int) -> None:
    """Rejections, values and gradients agree near 0, and where the parameter `at` is not finite, or huge."""
    generator = np.random.default_rng(1)
    for special in (None, None, np.inf, np.nan, 1e200):
        point = generator.normal(0, 0.3, first.param_unc_num())
        if special is not None:
            point[at] = special
        assert_same_at(first, second, point)


def assert_same_at(first: ulam.StanModel, second: ulam.StanModel, point: np.ndarray) -> None:
    """Rejections, values and gradients agree at a point."""
    one, other = outcome(first, point), outcome(second, point)
    if isinstance(one, str) or isinstance(other, str):
        assert one == other
        return
    values, others = (np.array([value, *slopes]) for value, slopes in (one, other))
    np.testing.assert_array_equal(np.isfinite(values), np.isfinite(others))
    finite = np.isfinite(values)
    scale = max(1.0, float(np.abs(values[finite]).max(initial=0)))
    np.testing.assert_allclose(others[finite], values[finite], rtol=0, atol=1e-10 * scale)


def assert_same_products(first: ulam.StanModel, second: ulam.StanModel, generator: np.random.Generator) -> None:
    """Products of the Hessian with a vector agree, at a point near 0."""
    point, direction = generator.normal(size=(2, first.param_unc_num())) / 10
    products = [model.log_density_hessian_vector_product(point, direction)[1] for model in (first, second)]
    np.testing.assert_allclose(products[1], products[0], rtol=1e-9, atol=1e-9 * np.abs(products[0]).max())
