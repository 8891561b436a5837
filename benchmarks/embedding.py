"""What a gradient costs where it is embedded, beside the native call itself: in a jitted loop of JAX, mapped over
points, and in Numba's loop.

python benchmarks/embedding.py [MODEL DATA] [--calls 100000] [--points 64] [--repeat 7]

CPU time of this process, all sides by turns, the best of each. Needs `pip install 'ulam[embed]'`. Bars: in the loop of
JAX less than 3 us above the native call; mapped, at most 1.3 times the loop in C.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import ulam
from ulam.embed.jax import log_density

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
STEP = 1e-9


def best(sides: dict[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    """Seconds of CPU time of each side, the best of `repeat` turns."""
    for run in sides.values():
        run()
    times: dict[str, float] = {}
    for _ in range(repeat):
        for name, run in sides.items():
            begin = time.process_time()
            run()
            times[name] = min(times.get(name, np.inf), time.process_time() - begin)
    return times


def native_loop(model: ulam.StanModel, x: np.ndarray, calls: int) -> Callable[[], Any]:
    """Points one after the other through the batch function: the loop is in C."""
    return own_loop(model, np.tile(x, (1000, 1)), calls // 1000)


def own_loop(model: ulam.StanModel, points: np.ndarray, times: int) -> Callable[[], Any]:
    """The batch function of the native handle, `times` times."""
    handle, gradients, values = model.native_handle(), np.empty_like(points), np.empty(len(points))
    function = handle.batch_function

    def run() -> None:
        given = (points.ctypes.data, gradients.ctypes.data, values.ctypes.data, handle.user_data)
        for _ in range(times):
            assert function(*points.shape, *given) == 0

    return run


def jax_loop(model: ulam.StanModel, x: np.ndarray, calls: int, callback: bool | None = None) -> Callable[[], Any]:
    """A jitted loop whose points follow from each other."""
    gradient = jax.value_and_grad(log_density(model, callback=callback))

    def body(_: Any, state: Any) -> Any:
        point, total = state
        value, slope = gradient(point)
        return point + STEP * slope, total + value

    loop = jax.jit(lambda start: jax.lax.fori_loop(0, calls, body, (start, 0.0)))
    start = jnp.asarray(x)
    return lambda: jax.block_until_ready(loop(start))


def empty_loop(x: np.ndarray, calls: int) -> Callable[[], Any]:
    """The same loop without the log density: what XLA's loop costs."""

    def body(_: Any, state: Any) -> Any:
        point, total = state
        return point + STEP * point, total + point[0]

    loop = jax.jit(lambda start: jax.lax.fori_loop(0, calls, body, (start, 0.0)))
    start = jnp.asarray(x)
    return lambda: jax.block_until_ready(loop(start))


def numba_loop(model: ulam.StanModel, x: np.ndarray, calls: int) -> Callable[[], Any]:
    """The same in Numba."""
    import numba

    from ulam.embed.numba import log_density_gradient

    function = log_density_gradient(model)

    @numba.njit
    def loop(start: Any) -> Any:
        point, slope, total = start.copy(), np.empty(start.size), 0.0
        for _ in range(calls):
            total += function(point, slope)
            point += STEP * slope
        return point, total

    return lambda: loop(x)


def mapped(model: ulam.StanModel, points: np.ndarray, times: int) -> dict[str, Callable[[], Any]]:
    """Many points at once: `vmap` inside of a loop, and our own loop in C."""
    gradient = jax.vmap(jax.value_and_grad(log_density(model)))

    def body(_: Any, state: Any) -> Any:
        at, total = state
        value, slope = gradient(at)
        return at + STEP * slope, total + value

    loop = jax.jit(lambda start: jax.lax.fori_loop(0, times, body, (start, jnp.zeros(len(points)))))
    start, tiled = jnp.asarray(points), np.tile(points, (16, 1))
    return {"vmap": lambda: jax.block_until_ready(loop(start)), "own loop in C": own_loop(model, tiled, times // 16)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default=str(EXAMPLES / "eight_schools.stan"))
    parser.add_argument("data", nargs="?", default=None)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--points", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    data = options.data or str(Path(options.model).with_suffix(".json"))
    model = ulam.StanModel(options.model, data if Path(data).exists() else None)
    x = np.random.default_rng(3).uniform(-1, 1, model.param_unc_num())
    calls = options.calls
    sides = {
        "native, loop in C": native_loop(model, x, calls),
        "JAX, jitted loop": jax_loop(model, x, calls),
        "JAX, the loop alone": empty_loop(x, calls),
        "Numba, loop": numba_loop(model, x, calls),
    }
    times = best(sides, options.repeat)
    print(f"{Path(options.model).stem}, {x.size} parameters, us per gradient of {calls} (CPU time)")
    for name, seconds in times.items():
        above = (seconds - times["native, loop in C"]) / calls * 1e6
        print(f"  {name:22}{seconds / calls * 1e6:9.3f}   above the native call {above:8.3f}")
    callbacks = jax_loop(model, x, calls // 100, callback=True)
    seconds = best({"callback": callbacks}, 3)["callback"]
    print(f"  {'JAX, host callback':22}{seconds / (calls // 100) * 1e6:9.3f}")
    points = np.random.default_rng(4).uniform(-1, 1, (options.points, x.size))
    times = best(mapped(model, points, max(1, calls // options.points // 16) * 16), options.repeat)
    per = times["vmap"], times["own loop in C"]
    print(f"vmap of {options.points} points: {per[0] / per[1]:.2f} times the loop in C")


if __name__ == "__main__":
    main()
