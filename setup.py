"""The C runtime, compiled when the package is built; all else is in pyproject.toml.

Here only because NumPy's headers and its library of random distributions must be asked for their place.
"""

from pathlib import Path

import numpy
from setuptools import Extension, setup

sources = sorted(str(path) for path in Path("runtime/c").rglob("*.c"))
headers = sorted(str(path) for path in Path("runtime/c").glob("*.h"))
numpy_random = Path(numpy.__file__).parent / "random" / "lib"

setup(
    ext_modules=[
        Extension(
            "ulam.runtime._rt",
            sources=sources,
            depends=headers,
            include_dirs=["runtime/c", numpy.get_include()],
            library_dirs=[str(numpy_random)],
            libraries=["npyrandom", "m"],
            extra_compile_args=[
                "-std=gnu11",
                "-O3",
                "-g0",
                "-fno-math-errno",
                "-ffp-contract=off",  # the same bits on every CPU
                "-fcx-limited-range",  # complex numbers are dual numbers: no care for infinities
                "-fvisibility=hidden",
            ],
        )
    ]
)
