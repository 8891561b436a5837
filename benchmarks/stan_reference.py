"""Reference models: stanc's C++ compiled with Stan Math into shared libraries, kept by content hash.

Needs the `httpstan` package (its folder: the `stanc` binary, headers, libraries) and g++. Options as CmdStan's with
`-O3` and `-march=native`, or another processor that is chosen, and NDEBUG, which only helps the reference.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

HERE = Path(__file__).parent

FLAGS = (
    "-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-w",
    "-DNDEBUG", "-D_REENTRANT", "-DBOOST_DISABLE_ASSERTS", "-DBOOST_PHOENIX_NO_VARIADIC_EXPRESSION",
    # The libraries of httpstan are built against the older interface of the C++ library.
    "-D_GLIBCXX_USE_CXX11_ABI=0",
)  # fmt: skip
LIBRARIES = ("-lsundials_cvodes", "-lsundials_idas", "-lsundials_kinsol", "-lsundials_nvecserial", "-l:libtbb.so.2")
SHARED_SOURCES = ("reference_model.hpp", "reference_data.cpp")
MODEL_SOURCES = ("gradient_loop.hpp", "reference_model.cpp")


class BuildError(Exception):
    """A reference model cannot be built; the message is the tool's first error."""


def run(command: list[str], folder: Path, seconds: float = 3600) -> str:
    """Standard output of a tool, or BuildError with the first line that says what is wrong."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise BuildError(f"{Path(command[0]).name}: {problem}") from None
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        first = next((line for line in lines if "error" in line.lower()), lines[0])
        raise BuildError(f"{Path(command[0]).name}: {first}")
    return done.stdout


def find_httpstan(given: Path | None) -> Path | None:
    """The folder of the package with its `stanc`: as given, or as Python finds it."""
    if given is not None:
        candidates = [given, *given.glob("lib/python*/site-packages/httpstan")]
    else:
        from importlib.util import find_spec

        spec = find_spec("httpstan")
        candidates = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    return next((folder for folder in candidates if (folder / "stanc").exists()), None)


@dataclass
class ReferenceBuilder:
    """Builds reference models into `cache`."""

    httpstan: Path
    cache: Path
    stanc_options: tuple[str, ...] = ("--O1",)
    march: str = "native"
    _failures: dict[Path, BuildError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cache.mkdir(parents=True, exist_ok=True)

    @cached_property
    def compiler(self) -> str:
        found = shutil.which("g++")
        if found is None:
            raise BuildError("g++ is not installed")
        return found

    @cached_property
    def description(self) -> str:
        """What the reference is: for the head of a report."""
        stanc = run([str(self.httpstan / "stanc"), "--version"], self.cache).strip()
        compiler = run([self.compiler, "--version"], self.cache).splitlines()[0]
        return f"{stanc} {' '.join(self.stanc_options)}, {compiler}, {' '.join(self._options)}"

    def _key(self, *files: Path) -> str:
        """Hash of the tools, their options and the files' contents."""
        parts = [self.description, *(file.read_text(encoding="utf-8") for file in files)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    @property
    def _options(self) -> list[str]:
        return [f"-march={self.march}", *FLAGS]

    @property
    def _flags(self) -> list[str]:
        return [*self._options, "-isystem", str(self.httpstan / "include")]

    @cached_property
    def _prepared(self) -> Path:
        """The folder with the precompiled header and what else is the same for every model."""
        folder = self.cache / f"header-{self._key(*(HERE / name for name in SHARED_SOURCES))}"
        if not (folder / "ready").exists():
            folder.mkdir(exist_ok=True)
            for name in SHARED_SOURCES:
                shutil.copy(HERE / name, folder)
            run([self.compiler, *self._flags, "-c", "reference_data.cpp", "-o", "reference_data.o"], folder)
            header = "reference_model.hpp"
            run([self.compiler, *self._flags, "-x", "c++-header", header, "-o", f"{header}.gch"], folder)
            (folder / "ready").touch()
        return folder

    def library(self, model: Path) -> Path:
        """Where the shared library of a model is or will be."""
        sources = [HERE / name for name in (*SHARED_SOURCES, *MODEL_SOURCES)]
        return self.cache / f"{model.stem}-{self._key(*sources, model)}.so"

    def build(self, model: Path) -> Path:
        """The shared library of a model, built now if it is not in the cache. What failed is not tried again."""
        library = self.library(model)
        if library in self._failures:
            raise self._failures[library]
        if not library.exists():
            try:
                self._build(model, library)
            except BuildError as problem:
                self._failures[library] = problem
                raise
        return library

    def _build(self, model: Path, library: Path) -> None:
        prepared = self._prepared
        with tempfile.TemporaryDirectory(dir=self.cache) as name:
            folder = Path(name)
            options = [*self.stanc_options, "--name", "reference", "--print-cpp"]
            code = run([str(self.httpstan / "stanc"), *options, str(model)], folder)
            (folder / "model.hpp").write_text(code, encoding="utf-8")
            for source in MODEL_SOURCES:
                shutil.copy(HERE / source, folder)
            # The header that is found in the folder of shared files is the precompiled one.
            shared = ["-include", str(prepared / "reference_model.hpp")]
            model_file = '-DREFERENCE_MODEL="model.hpp"'
            run(
                [self.compiler, *self._flags, *shared, model_file, "-c", "reference_model.cpp", "-o", "model.o"], folder
            )
            objects = ["model.o", str(prepared / "reference_data.o")]
            places = [f"-L{self.httpstan / 'lib'}", f"-Wl,-rpath,{self.httpstan / 'lib'}"]
            run([self.compiler, "-shared", *objects, "-o", "model.so", *places, *LIBRARIES], folder)
            (folder / "model.so").replace(library)
