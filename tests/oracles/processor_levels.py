"""Processes as on a processor with vectors of 128, 256 or 512 bits, whatever this one has above that.

subprocess.run(command, env=surroundings("v3"))          # AVX2 and no AVX-512

The runtime is built for the level, and LLVM, NumPy, its BLAS and glibc are told to use no more.
"""

from __future__ import annotations

import os
from importlib import import_module

from runtime_builds import build_runtime

# level: bits, OpenBLAS's name of such a core, what glibc is to do without, the first letters of NumPy's names of what
# NumPy is to do without
LEVELS = {
    "v2": (128, "Nehalem", ("AVX", "AVX2", "FMA", "FMA4", "AVX512F", "AVX512VL"), ("",)),
    "v3": (256, "Haswell", ("AVX512F", "AVX512VL"), ("AVX512", "X86_V4")),
    "v4": (512, "SkylakeX", (), ()),
}


def surroundings(level: str) -> dict[str, str]:
    """The environment variables for a level."""
    numpy_core = import_module("numpy._core._multiarray_umath")
    _, core, without, prefixes = LEVELS[level]
    disabled = [name for name in numpy_core.__cpu_dispatch__ if prefixes and name.startswith(prefixes)]
    present = [name for name in disabled if numpy_core.__cpu_features__.get(name)]
    return {
        **os.environ,
        "ULAM_TARGET_CPU": f"x86-64-{level}",
        "NPY_DISABLE_CPU_FEATURES": " ".join(present),
        "OPENBLAS_CORETYPE": core,
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=" + ",".join(f"-{name}" for name in without),
        "ULAM_RUNTIME": str(build_runtime((f"-march=x86-64-{level}", "-DULAM_ONE_PROCESSOR"))),
    }
