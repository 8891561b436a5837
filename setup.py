"""The C runtime, compiled when the package is built; all else is in pyproject.toml.

Here because NumPy's headers and its library of random distributions must be asked for their place, and to build for one
level of the processor only: with `ULAM_RUNTIME_MARCH=x86-64-v2` (any `-march` of the C compiler) the runtime does not
choose code by the processor that it runs on.

An editable installation puts `editable` on Python's path, whose `ulam` has links to the folders of the checkout. The
hook of the import system that setuptools would make of the mapping in pyproject.toml is asked after the path: from the
folder above a checkout named `ulam`, the checkout would be found first, as a namespace package with nothing in it.
"""

import os
import sys
import sysconfig
from pathlib import Path

import numpy
from setuptools import Extension, setup
from setuptools.command.editable_wheel import editable_wheel

sources = sorted(str(path) for path in Path("runtime/c").rglob("*.c"))
headers = sorted(str(path) for path in Path("runtime/c").rglob("*.h"))
numpy_random = Path(numpy.__file__).parent / "random" / "lib"

flags = [
    "-std=gnu11",
    "-O3",
    "-g0",
    "-fno-math-errno",
    "-ffp-contract=off",  # the same bits on every CPU
    "-fcx-limited-range",  # complex numbers are dual numbers: no care for infinities
    "-fvisibility=hidden",
]
# Symbols are bound at load: a signal may leave code at any place (runtime/c/interrupts.h), but not in the dynamic
# linker.
link_flags = ["-Wl,-z,now"] if sys.platform.startswith("linux") else []
options: dict[str, dict[str, str]] = {}
limited = not sysconfig.get_config_var("Py_GIL_DISABLED")
if limited:
    options["bdist_wheel"] = {"py_limited_api": "cp311"}  # the runtime uses nothing of Python: one wheel for all
if march := os.environ.get("ULAM_RUNTIME_MARCH"):
    flags += [f"-march={march}", "-DULAM_ONE_PROCESSOR"]
    options["build"] = {"build_base": f"build/{march}"}  # objects of other levels are not these


class EditableWheel(editable_wheel):
    """What `pip install -e` builds."""

    def finalize_options(self) -> None:
        if Path("editable", "ulam").is_dir():  # source distributions have no links
            self.distribution.package_dir = {"": "editable"}
        super().finalize_options()


setup(
    cmdclass={"editable_wheel": EditableWheel},
    options=options,
    ext_modules=[
        Extension(
            "ulam.runtime._rt",
            sources=sources,
            depends=headers,
            include_dirs=["runtime/c", numpy.get_include()],
            library_dirs=[str(numpy_random)],
            libraries=["npyrandom"] if os.name == "nt" else ["npyrandom", "m"],
            extra_compile_args=flags,
            py_limited_api=limited,
            extra_link_args=link_flags,
        )
    ],
)
