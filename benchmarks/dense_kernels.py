"""Kernels of dense linear algebra against OpenBLAS, one thread, by turns: microseconds of CPU time per call.

    python benchmarks/dense_kernels.py [--processor v2|v3|v4] [--sizes N ...] [--turns 5]   (needs scipy-openblas32, cc)

`plain` are the kernels of levels 0 to 2, `fast` those of levels 3 and 4; the quotient is OpenBLAS's time divided by
that of `fast`: above 1 is faster. `--processor` builds the runtime for a level of x86-64 and has OpenBLAS take its
kernels for such a processor. The other side of the pullback of a Cholesky factor is what it takes of BLAS: a product
with a triangle and two triangular systems.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "oracles"))
SIZES = (16, 24, 32, 48, 60, 64, 100, 128, 200, 256, 300, 500)
CORES = {"v2": "Nehalem", "v3": "Haswell", "v4": "SkylakeX"}
CALLER = """
#include <stdint.h>
#include <string.h>
#include <time.h>
typedef void function(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                      uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);
/* Seconds of CPU time of so many calls; before each, what the function overwrites is restored. */
double repeat(function *f, const uintptr_t *a, int64_t count, void *to, const void *from, int64_t bytes) {
  struct timespec begin, end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  for (int64_t i = 0; i < count; ++i) {
    if (bytes) memcpy(to, from, bytes);
    f(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15]);
  }
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}
"""
Floats = np.ndarray[Any, np.dtype[np.float64]]
Timed = Callable[[int], float]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processor", choices=CORES)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    if options.processor:
        from runtime_builds import build_runtime

        os.environ["OPENBLAS_CORETYPE"] = CORES[options.processor]
        built = build_runtime((f"-march=x86-64-{options.processor}", "-DULAM_ONE_PROCESSOR"))
        os.environ["ULAM_RUNTIME"] = str(built)
    sides = Sides()
    print(f"OpenBLAS for {sides.core}")
    print(f"{'kernel':28}{'size':>6}{'plain':>11}{'fast':>11}{'OpenBLAS':>11}{'quotient':>10}")
    for name in KERNELS:
        quotients: list[float] = []
        for n in options.sizes:
            plain, fast, other = best_by_turns(KERNELS[name](sides, n), options.turns)
            quotients.append(other / fast)
            times = "".join(f"{seconds * 1e6:11.2f}" for seconds in (plain, fast, other))
            print(f"{name:28}{n:6}{times}{other / fast:10.2f}", flush=True)
        mean = math.exp(sum(map(math.log, quotients)) / len(quotients))
        print(f"{name:28}{'':39}{mean:10.2f}  (geometric mean)")


def best_by_turns(sides: Sequence[Timed], turns: int, seconds: float = 0.004) -> list[float]:
    """Of each side, the smallest time of a call."""
    counts: list[int] = []
    for side in sides:
        count = 1
        while side(count) < seconds:
            count *= 2
        counts.append(count)
    best = [math.inf for _ in sides]
    for _ in range(turns):
        best = [min(b, side(count) / count) for b, side, count in zip(best, sides, counts, strict=True)]
    return best


class Sides:
    """Both libraries, and how they are called."""

    def __init__(self) -> None:
        import scipy_openblas32  # pyright: ignore[reportMissingImports]

        from ulam.runtime.c_library import library
        from ulam.runtime.native import Context

        self.runtime: Any = library()
        self.context = Context(stoppable=False)
        self.blas: Any = ctypes.CDLL(str(next(Path(scipy_openblas32.get_lib_dir()).glob("*openblas*"))))
        self.blas.scipy_openblas_set_num_threads(1)
        self.blas.scipy_openblas_get_corename.restype = ctypes.c_char_p
        self.core = self.blas.scipy_openblas_get_corename().decode()
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "caller.c")
            source.write_text(CALLER)
            made = source.with_suffix(".so")
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", str(source), "-o", str(made)], check=True)
            self.repeat: Any = ctypes.CDLL(str(made)).repeat
        self.repeat.restype = ctypes.c_double
        self.kept: list[Any] = []

    def timed(self, function: Any, arguments: Sequence[Any], restored: tuple[Floats, Floats] | None = None) -> Timed:
        """Times calls of a function; arrays are passed by address."""
        places = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
        words = (ctypes.c_uint64 * 16)(*places)
        self.kept += [*arguments, words, restored]
        to, source = (a.ctypes.data for a in restored) if restored else (0, 0)
        size = restored[0].nbytes if restored else 0
        return lambda count: self.repeat(
            function, words, ctypes.c_int64(count), ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_int64(size)
        )

    def own(self, name: str, arguments: Sequence[Any]) -> list[Timed]:
        """The kernel of levels 0 to 2, and that of levels 3 and 4."""
        every = [self.context.address, *arguments]
        return [self.timed(getattr(self.runtime, f"ulam_{name}{version}"), every) for version in ("", "_fast")]

    def of_blas(self, name: str, *arguments: Any, restored: tuple[Floats, Floats] | None = None) -> Timed:
        """A function of BLAS or LAPACK: characters, ints and reals are passed by address, too."""
        passed: list[Any] = []
        for a in arguments:
            if isinstance(a, str):
                a = np.frombuffer(a.encode(), np.uint8)
            elif isinstance(a, int):
                a = np.array([a], np.int32)
            elif isinstance(a, float):
                a = np.array([a])
            passed.append(a)
        return self.timed(getattr(self.blas, f"scipy_{name}_"), passed, restored)


def _matrix(seed: int, n: int, m: int | None = None) -> Floats:
    return np.random.default_rng(seed).standard_normal((n, m or n)).ravel()


def _covariance(n: int) -> Floats:
    places = np.arange(n) / 5
    return (np.exp(-0.5 * (places[:, None] - places) ** 2) + 0.1 * np.eye(n)).ravel()


def _factor(n: int) -> Floats:
    return np.asarray(np.linalg.cholesky(_covariance(n).reshape(n, n)), np.float64).ravel(order="F")


def _multiply(s: Sides, n: int) -> list[Timed]:
    a, b, c = _matrix(1, n), _matrix(2, n), np.zeros(n * n)
    return [*s.own("multiply", [a, b, n, n, n, c]), s.of_blas("dgemm", "N", "N", n, n, n, 1.0, a, n, b, n, 0.0, c, n)]


def _few_columns(s: Sides, n: int) -> list[Timed]:
    a, b, c = _matrix(1, n), _matrix(2, n, 10), np.zeros(n * 10)
    return [*s.own("multiply", [a, b, n, n, 10, c]), s.of_blas("dgemm", "N", "N", n, 10, n, 1.0, a, n, b, n, 0.0, c, n)]


def _solve(s: Sides, n: int) -> list[Timed]:
    t, b, x = _factor(n), _matrix(2, n), np.zeros(n * n)
    blas = s.of_blas("dtrsm", "L", "L", "N", "N", n, n, 1.0, t, n, x, n, restored=(x, b))
    return [*s.own("mdivide_left_tri_low", [t, b, n, n, x]), blas]


def _cholesky(s: Sides, n: int) -> list[Timed]:
    a, x = _covariance(n), np.zeros(n * n)
    return [*s.own("cholesky_decompose", [a, n, x]), s.of_blas("dpotrf", "L", n, x, n, 0, restored=(x, a))]


def _pullback(s: Sides, n: int) -> list[Timed]:
    a, t, b, x, adjoint = _covariance(n), _factor(n), _matrix(2, n), np.zeros(n * n), np.zeros(n * n)
    triangle = s.of_blas("dtrmm", "L", "L", "T", "N", n, n, 1.0, t, n, x, n, restored=(x, b))
    left = s.of_blas("dtrsm", "L", "L", "T", "N", n, n, 1.0, t, n, x, n, restored=(x, b))
    right = s.of_blas("dtrsm", "R", "L", "N", "N", n, n, 1.0, t, n, x, n, restored=(x, b))
    own = s.own("cholesky_decompose_pullback", [a, n, t, adjoint, b])
    return [*own, lambda count: triangle(count) + left(count) + right(count)]


def _solve_general(s: Sides, n: int) -> list[Timed]:
    a, b, x, lu = _matrix(1, n), _matrix(2, n), np.zeros(n * n), np.zeros(2 * n * n)
    pivots = np.zeros(n, np.int32)
    blas = s.of_blas("dgesv", n, n, lu, n, pivots, lu[n * n :], n, 0, restored=(lu, np.concatenate([a, b])))
    return [*s.own("mdivide_left", [a, b, n, n, x]), blas]


def _eigen(s: Sides, n: int) -> list[Timed]:
    a, v, w = _covariance(n), np.zeros(n * n), np.zeros(n)
    work, places = np.zeros(1 + 6 * n + 2 * n * n), np.zeros(3 + 5 * n, np.int32)
    blas = s.of_blas("dsyevd", "V", "L", n, v, n, w, work, work.size, places, places.size, 0, restored=(v, a))
    return [*s.own("eigendecompose_sym", [a, n, v, w]), blas]


KERNELS: dict[str, Callable[[Sides, int], list[Timed]]] = {
    "multiply": _multiply,
    "multiply, 10 columns": _few_columns,
    "mdivide_left_tri_low": _solve,
    "cholesky_decompose": _cholesky,
    "pullback of it": _pullback,
    "mdivide_left": _solve_general,
    "eigendecompose_sym": _eigen,
}

if __name__ == "__main__":
    main()
