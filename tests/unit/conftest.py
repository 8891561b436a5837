"""Fixtures of several test files."""

from __future__ import annotations

import gc

import pytest

from ulam.emit import jit

QUICK = jit.Pipeline(speed=0, vectorize=False)


def pytest_collection_finish() -> None:
    """What is there by now stays: it need not be looked at by each garbage collection, which would take a tenth of all
    time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


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
