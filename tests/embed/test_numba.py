"""Log densities in code that Numba compiles."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam

numba: Any = pytest.importorskip("numba")

sys.path.insert(0, str(Path(__file__).parent))
from models import expected, model, points, same_bits  # noqa: E402

from ulam.embed.numba import log_density_gradient  # noqa: E402

pytestmark = pytest.mark.embed


@pytest.mark.parametrize("name", ["schools", "refusing"])
def test_values_and_gradients_have_the_same_bits(name: str) -> None:
    function: Any = log_density_gradient(model(name))

    @numba.njit(parallel=True)
    def evaluate(at: Any) -> Any:
        values, gradients = np.empty(len(at)), np.empty_like(at)
        for i in numba.prange(len(at)):
            values[i] = function(at[i], gradients[i])
        return values, gradients

    at = points(name, 64)
    values, gradients = evaluate(at)
    for x, value, gradient in zip(at, values, gradients, strict=True):
        wanted = expected(name, x)
        assert same_bits(value, wanted[0]) and same_bits(gradient, wanted[1])
    own = np.empty(at.shape[1])
    assert same_bits(function(at[0], own), values[0]) and same_bits(own, gradients[0]), "from Python, too"


def test_loop() -> None:
    function: Any = log_density_gradient(model("schools"), propto=False, jacobian=False)

    @numba.njit
    def ascend(x: Any, steps: int, rate: float) -> Any:
        gradient, total = np.empty_like(x), 0.0
        for _ in range(steps):
            total += function(x, gradient)
            x = x + rate * gradient
        return x, total

    x, total = np.zeros(10), 0.0
    for _ in range(20):
        value, gradient = model("schools").log_density_gradient(x, propto=False, jacobian=False)
        total += value
        x = x + 0.01 * gradient
    found = ascend(np.zeros(10), 20, 0.01)
    np.testing.assert_allclose(found[0], x, rtol=1e-13)
    np.testing.assert_allclose(found[1], total, rtol=1e-13)


def test_errors() -> None:
    function: Any = log_density_gradient(model("refusing"))

    @numba.njit
    def evaluate(x: Any, gradient: Any) -> Any:
        return function(x, gradient)

    with pytest.raises(RuntimeError, match="fatal error in the Stan program"):
        evaluate(np.array([-11.0, 0.0]), np.empty(2))
    with pytest.raises(ValueError, match="not the number of unconstrained parameters"):
        evaluate(np.zeros(3), np.empty(3))
    with pytest.raises(ValueError, match="size of the point"):
        evaluate(np.zeros(2), np.empty(1))
    assert evaluate(np.array([2.0, 0.0]), np.empty(2)) == -np.inf


def test_arrays_of_other_kinds_are_refused() -> None:
    """Only the data of contiguous numbers of 64 bits can be handed over."""
    function: Any = log_density_gradient(model("schools"))

    @numba.njit
    def evaluate(x: Any, gradient: Any) -> Any:
        return function(x, gradient)

    x, gradient = np.zeros(10), np.empty(10)
    short = np.zeros(10, np.float32)
    for one, other in ((short, gradient), (x, short), (np.zeros(20)[::2], gradient)):
        with pytest.raises(Exception, match="float32|array"):
            evaluate(one, other)
        with pytest.raises(Exception, match="float32|array"):
            function(one, other)
    x.flags.writeable = False
    assert evaluate(x, gradient) == function(x, gradient) == model("schools").log_density_gradient(x)[0]
    with pytest.raises(Exception, match="array"):
        evaluate(gradient, x)


def test_code_that_outlives_the_function_does_not_end_the_process() -> None:
    own = ulam.StanModel("parameters { real x; } model { x ~ normal(0, 2); }", opt_level=0)
    scope = {"numba": numba, "function": log_density_gradient(own)}
    exec("@numba.njit\ndef evaluate(x, gradient):\n    return function(x, gradient)\n", scope)
    evaluate: Any = scope["evaluate"]
    wanted = own.log_density([1.0])
    assert evaluate(np.ones(1), np.empty(1)) == wanted
    scope["function"] = None
    del own
    gc.collect()
    try:
        assert evaluate(np.ones(1), np.empty(1)) == wanted
    except RuntimeError as error:
        assert "keep a reference" in str(error)


CACHED = """
import numba
import numpy as np
import ulam
from ulam.embed.numba import log_density_gradient

model = ulam.StanModel("parameters { real x; } model { x ~ normal(0, 2); }", opt_level=0)
function = log_density_gradient(model)

@numba.njit(cache=True)
def evaluate(x, gradient):
    return function(x, gradient)

try:
    print(evaluate(np.ones(1), np.empty(1)))
except RuntimeError as error:
    print(error)
"""


def test_code_that_numba_keeps_on_disk_does_not_end_the_process(tmp_path: Path) -> None:
    """A second process with the compiled code of the first, in which the function is that of a handle long gone."""
    (tmp_path / "program.py").write_text(CACHED, encoding="utf-8")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    printed = []
    for _ in range(2):
        command = [sys.executable, "-W", "ignore", "program.py"]
        finished = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert finished.returncode == 0, finished.stderr
        printed.append(finished.stdout.strip())
    assert printed[0] == "-0.125" and (printed[1] == "-0.125" or "do not cache" in printed[1])
