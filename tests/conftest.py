"""Fixtures of several test files."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from ulam.emit import jit
from ulam.library import own_libraries
from ulam.passes import levels, pipelines
from ulam.runtime.c_library import RUNTIME_VARIABLE, library_path

# What terminals are shown must not depend on the one where the tests run.
os.environ["TERM"] = "xterm-256color"
os.environ.pop("NO_COLOR", None)
# Shells ignore SIGINT for what they start in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Where bytecode is not to be beside the sources, every process of the tests would compile all that it imports.
if sys.dont_write_bytecode and sys.pycache_prefix is None:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

# How long an example takes says how busy the machine is.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

QUICK = jit.Pipeline(speed=0, vectorize=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--guard-pages",
        choices=("right", "left"),
        help="run with a C runtime, built if need be, and arrays that have guard pages around every block, "
        "each at the right or the left end of its pages: an access outside ends the process",
    )


def _is_runtime_outdated() -> bool:
    """Whether this is an editable installation whose C code was changed after it was built."""
    if RUNTIME_VARIABLE in os.environ:
        return False
    root = Path(__file__).parents[1]
    built = library_path().absolute()
    sources = (path for path in (root / "runtime" / "c").rglob("*") if path.suffix in (".c", ".h"))
    return built.is_relative_to(root) and max(path.stat().st_mtime for path in sources) > built.stat().st_mtime


def pytest_configure(config: pytest.Config) -> None:
    if _is_runtime_outdated():
        raise pytest.UsageError("runtime/c has changed since it was built: python -m pip install -e '.[test]'")
    if side := config.getoption("--guard-pages"):
        import guard_pages

        guard_pages.use_guarded_runtime()
        guard_pages.configure(left=side == "left")
        guard_pages.guarded_arrays().__enter__()  # until the process ends


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--guard-pages"):
        for item in items:
            if (mark := item.get_closest_marker("ordinary_runtime")) is not None:
                item.add_marker(pytest.mark.skip(reason=f"with guard pages: {mark.args[0]}"))


def pytest_collection_finish() -> None:
    """What is there by now stays: it need not be looked at by each garbage collection, which would take a tenth of all
    time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """In a worker, a SIGINT that a test sends and does not hear fails this test: it would end the whole run."""
    try:
        return (yield)
    except KeyboardInterrupt as interrupt:
        if "PYTEST_XDIST_WORKER" not in os.environ:
            raise
        raise AssertionError("the test was interrupted") from interrupt


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """The passes, levels and libraries that a test registers are gone after it."""
    points = (pipelines.OWN_PASSES, levels.OWN_LEVELS, own_libraries.OWN_LIBRARIES)
    before = [dict(vars(point)["_registered"]) for point in points]
    yield
    for point, things in zip(points, before, strict=True):
        if vars(point)["_registered"] != things:
            vars(point)["_registered"] = things
            point.revision += 1
            own_libraries._forget()  # pyright: ignore[reportPrivateUsage]


@pytest.fixture(scope="session")
def _quick_cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("quick-code"))


@pytest.fixture
def quick_code(monkeypatch: pytest.MonkeyPatch, _quick_cache: str) -> None:
    """Compiles without LLVM's optimisations, where what we make is tested and not what LLVM makes of it.

    Halves the time of a test. What it compiles is cached apart. For whole files:
    `pytestmark = pytest.mark.usefixtures("quick_code")`.
    """
    monkeypatch.setattr(jit, "HOT", QUICK)
    monkeypatch.setenv("ULAM_CACHE_DIR", _quick_cache)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The names of the units that LLVM compiles, with a cache of its own."""
    monkeypatch.setenv("ULAM_CACHE_DIR", str(tmp_path / "cache"))
    made: list[str] = []
    compile_object = jit.compile_object

    def noted(text: str, *rest: Any, **options: Any) -> bytes:
        made.append(options.get("prefix", "").rstrip("."))
        return compile_object(text, *rest, **options)

    monkeypatch.setattr(jit, "compile_object", noted)
    return made
