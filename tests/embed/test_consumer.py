"""What ulam exports is typed well enough for programs that are checked strictly."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.embed

HERE = Path(__file__).parent


@pytest.fixture(autouse=True, scope="module")
def pyright_runs() -> None:
    """It is installed, and has the JavaScript engine that it loads when it first runs."""
    if shutil.which("pyright") is None or subprocess.run(["pyright", "--version"], capture_output=True).returncode:
        pytest.skip("pyright does not run here")


@pytest.mark.parametrize("program", ["consumer.py", "embedding_consumer.py"])
def test_strict_types_of_a_consumer(program: str, tmp_path: Path) -> None:
    """The package as it is installed, from a folder of somebody else's."""
    shutil.copy(HERE / program, tmp_path)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict", "include": [program]}))
    command = ["pyright", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert finished.returncode == 0 and "0 errors, 0 warnings" in finished.stdout, finished.stdout + finished.stderr


def test_strict_types_find_a_mistake(tmp_path: Path) -> None:
    """The types say something: without the marker `py.typed` all would be unknown."""
    (tmp_path / "wrong.py").write_text("import ulam\n\nulam.StanModel('m.stan', optlevel=2).log_density('x').real\n")
    command = ["pyright", "--pythonpath", sys.executable, "wrong.py"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert finished.returncode == 1 and "optlevel" in finished.stdout
