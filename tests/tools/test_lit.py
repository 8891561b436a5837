"""Runs the lit suite, so that `python -m pytest` runs every test that there is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT / "tests" / "filecheck"
FOLDERS = sorted(path for path in SUITE.iterdir() if path.is_dir()) if SUITE.is_dir() else []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_lit(folder: Path) -> None:
    if not any(path.suffix in (".mlir", ".stan") for path in folder.rglob("*")):
        pytest.skip("no tests in this folder")
    command = [sys.executable, "-c", "from lit.main import main; main()", "-v", f"-j{os.cpu_count() or 1}", str(folder)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_one_file_in_a_fresh_checkout(tmp_path: Path) -> None:
    """`lit -v FILE` works where nothing has been built."""
    name = Path("tests", "filecheck", "passes", "cse.mlir")
    (tmp_path / name.parent).mkdir(parents=True)
    for path in (Path("lit.cfg.py"), Path("tests", "filecheck", "forked_tools.py"), name):
        shutil.copy(ROOT / path, tmp_path / path)
    command = [sys.executable, "-c", "from lit.main import main; main()", "-v", str(name)]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1200)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "Passed: 1" in finished.stdout
