"""The C runtime, compiled when the package is built: as a library for Python, and on Linux as an archive (`libulam.a`)
that `ulam build` links into libraries that need neither Python nor NumPy. All else is in pyproject.toml.

Here because NumPy's headers and its library of random distributions must be asked for their place, and to build for one
level of the processor only: with `ULAM_RUNTIME_MARCH=x86-64-v2` (any `-march` of the C compiler) the runtime does not
choose code by the processor that it runs on.

An editable installation puts `editable` on Python's path, whose `ulam` has links to the folders of the checkout. The
hook of the import system that setuptools would make of the mapping in pyproject.toml is asked after the path: from the
folder above a checkout named `ulam`, the checkout would be found first, as a namespace package with nothing in it.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.editable_wheel import editable_wheel

shim = Path("runtime/c/shim/bridgestan.c")  # a library of its own, of which each program gets a copy
sources = sorted(str(path) for path in Path("runtime/c").rglob("*.c") if path.parent != shim.parent)
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


RUNTIME = "ulam.runtime._rt"
ARCHIVE = "ulam"
STANDALONE = [
    str(Path("runtime/c", name))
    for name in (
        "arena.c", "context.c", "context_pool.c", "external.c", "interrupts.c", "interrupts_none.c", "line_sampler.c",
        "print.c", "profile.c", "trace.c", "trace_contents.c", "trace_draws.c",
    )
]  # fmt: skip
"""Sources that are compiled once more for the archive: a library without Python leaves signals to its host, and takes
no room of threads that is there once for all libraries of a process. All that use ULAM_THREAD_LOCAL."""


def output_of(*command: str) -> str:
    """What a command prints, which must succeed."""
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def names(*options: str) -> set[str]:
    """Symbols of object files and archives, by `nm`."""
    rows = [line.split() for line in output_of("nm", "-g", *options).splitlines()]
    return {row[-1] for row in rows if len(row) > 1}  # other lines name files


class BuildRuntime(build_ext):
    """The runtime, and on Linux the archive beside it."""

    def build_extension(self, ext: Extension) -> None:
        super().build_extension(ext)
        if sys.platform.startswith("linux") and ext.name == RUNTIME:
            self._build_archive(ext, Path(self.get_ext_fullpath(ext.name)).parent)

    def copy_extensions_to_source(self) -> None:
        """Of an editable installation."""
        super().copy_extensions_to_source()
        for ext in self.extensions:
            built = Path(self.build_lib, *ext.name.split(".")).with_name(f"lib{ARCHIVE}.a")
            if built.exists():
                build_py: Any = self.get_finalized_command("build_py")
                self.copy_file(str(built), build_py.get_package_dir("ulam.runtime"))

    def _build_archive(self, ext: Extension, folder: Path) -> None:
        """What is compiled for the library, NumPy's distributions, and what of the compiler's own library they need."""
        compiler = self.compiler
        arguments = {"include_dirs": ext.include_dirs, "extra_postargs": ext.extra_compile_args, "depends": ext.depends}
        common = [source for source in ext.sources if source not in STANDALONE]
        objects = compiler.object_filenames(common, output_dir=self.build_temp)
        alone = os.path.join(self.build_temp, "standalone")
        objects += compiler.compile(STANDALONE, output_dir=alone, macros=[("ULAM_STANDALONE", "1")], **arguments)
        objects += compiler.compile([str(shim)], output_dir=alone, macros=[("ULAM_LINKED", "1")], **arguments)
        with tempfile.TemporaryDirectory() as work:
            numbers = str(numpy_random / "libnpyrandom.a")
            subprocess.run([*compiler.archiver[:1], "x", numbers], cwd=work, check=True)
            objects += sorted(str(path) for path in Path(work).iterdir())
            objects += self._helpers(objects, Path(work, "helpers.o"))
            archive = folder / f"lib{ARCHIVE}.a"
            archive.unlink(missing_ok=True)
            compiler.create_static_lib(objects, ARCHIVE, output_dir=str(folder))

    def _helpers(self, objects: list[str], place: Path) -> list[str]:
        """The functions that the compiler calls and has in a library of its own, linked into one object."""
        linker = list(takewhile(lambda word: not word.startswith("-"), self.compiler.compiler_so))  # `ccache gcc`
        library = output_of(*linker, "-print-libgcc-file-name").strip()
        wanted = names("-u", *objects) & names("--defined-only", library)
        if not wanted:
            return []
        undefined = [f"-Wl,-u,{name}" for name in sorted(wanted)]
        subprocess.run([*linker, "-r", "-nostdlib", "-o", str(place), *undefined, library], check=True)
        return [str(place)]


class EditableWheel(editable_wheel):
    """What `pip install -e` builds."""

    def finalize_options(self) -> None:
        if Path("editable", "ulam").is_dir():  # source distributions have no links
            self.distribution.package_dir = {"": "editable"}
        super().finalize_options()


setup(
    cmdclass={"build_ext": BuildRuntime, "editable_wheel": EditableWheel},
    options=options,
    ext_modules=[
        Extension(
            RUNTIME,
            sources=sources,
            depends=headers,
            include_dirs=["runtime/c", numpy.get_include()],
            library_dirs=[str(numpy_random)],
            libraries=["npyrandom"] if os.name == "nt" else ["npyrandom", "m"],
            extra_compile_args=flags,
            py_limited_api=limited,
            extra_link_args=link_flags,
        ),
        Extension(
            "ulam.runtime._calls",
            sources=["runtime/python_c/calls.c"],
            depends=["runtime/c/context.h"],
            include_dirs=["runtime/c", numpy.get_include()],
            extra_compile_args=flags,
            py_limited_api=limited,
            # Python's functions are in no library that it is linked with, whatever LDFLAGS say.
            extra_link_args=[*link_flags, "-Wl,-z,undefs"] if link_flags else [],
        ),
        Extension(
            "ulam.runtime._bridgestan",
            [str(shim)],
            depends=headers,
            include_dirs=["runtime/c", numpy.get_include()],
            extra_compile_args=flags,
            py_limited_api=limited,
            extra_link_args=link_flags,
        ),
    ],
)
