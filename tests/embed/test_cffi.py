"""Log densities as functions of cffi."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cffi")

sys.path.insert(0, str(Path(__file__).parent))
from models import expected, model, points, same_bits  # noqa: E402

import ulam  # noqa: E402
from ulam.embed.cffi import DECLARATION, ffi, log_density_gradient  # noqa: E402

pytestmark = pytest.mark.embed


def test_values_and_gradients_have_the_same_bits() -> None:
    density = log_density_gradient(model("refusing"))
    gradient, value = np.empty(2), ffi.new("double *")
    for x in points("refusing", 30):
        status = density.function(
            density.n, ffi.from_buffer("double[]", x), ffi.from_buffer("double[]", gradient), value, density.user
        )
        wanted = expected("refusing", x)
        assert status == (1 if wanted[0] == -np.inf else 0)
        if status == 0:
            assert same_bits(value[0], wanted[0]) and same_bits(gradient, wanted[1])


def test_keeps_the_model() -> None:
    own = ulam.StanModel("parameters { real x; } model { x ~ normal(0, 2); }", opt_level=0)
    density, wanted = log_density_gradient(own), own.log_density([1.0])
    del own
    gc.collect()
    x, gradient, value = ffi.new("double[]", [1.0]), ffi.new("double[]", 1), ffi.new("double *")
    assert density.function(1, x, gradient, value, density.user) == 0 and value[0] == wanted and gradient[0] == -0.25


def test_declaration_for_others() -> None:
    """The type in an `FFI` of somebody else's."""
    cffi: Any = pytest.importorskip("cffi")
    other = cffi.FFI()
    other.cdef(DECLARATION)
    density = log_density_gradient(model("schools"))
    function = other.cast("ulam_log_density", density.handle.address)
    x, gradient, value = other.new("double[10]"), other.new("double[10]"), other.new("double *")
    assert function(10, x, gradient, value, other.cast("void *", density.handle.user_data)) == 0
    assert value[0] == model("schools").log_density_gradient(np.zeros(10))[0]
