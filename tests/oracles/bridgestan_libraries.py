"""Libraries with BridgeStan's interface for tests, in both ways: of this process, and built ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ulam

WAYS = ("process", "built")


def library_for(way: str, program: str, data: object, folder: Path) -> str:
    """The path of the program's library; skips the test where there is no linker."""
    if way == "process":
        return ulam.StanModel(program, data).bridgestan_library()  # pyright: ignore[reportArgumentType]
    source, target = folder / "program.stan", folder / "program_model.so"
    source.write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "ulam.tools.ulam_main", "build", os.fspath(source), "-o", os.fspath(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "linker" in done.stderr:
        pytest.skip(f"ulam build: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return os.fspath(target)
