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


def assert_same_products(first: ulam.StanModel, second: ulam.StanModel, generator: np.random.Generator) -> None:
    """Products of the Hessian with a vector agree, at a point near 0."""
    point, direction = generator.normal(size=(2, first.param_unc_num())) / 10
    products = [model.log_density_hessian_vector_product(point, direction)[1] for model in (first, second)]
    np.testing.assert_allclose(products[1], products[0], rtol=1e-9, atol=1e-9 * np.abs(products[0]).max())
