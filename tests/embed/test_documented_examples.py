"""What docs/embedding.md shows is run, section by section, with the real packages."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.embed

ROOT = Path(__file__).resolve().parents[2]
BEGINNING, *SECTIONS = re.split(
    r"^## ", (ROOT / "docs" / "embedding.md").read_text(encoding="utf-8"), flags=re.MULTILINE
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS: dict[str, tuple[str, ...]] = {
    "C": (), "ctypes": (), "cffi": ("cffi",), "Numba": ("numba",), "SciPy": ("scipy",), "JAX": ("jax", "blackjax"),
}  # fmt: skip
"""The packages of each section."""


def name_of(section: str) -> str:
    return section.splitlines()[0]


def test_every_section_is_known() -> None:
    assert [name_of(section) for section in SECTIONS] == list(NEEDS)
    assert all(BLOCK.search(section) for section in SECTIONS)


@pytest.mark.parametrize("section", SECTIONS, ids=name_of)
def test_section(section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in NEEDS[name_of(section)]:
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    scope: dict[str, Any] = {}
    blocks = [*BLOCK.findall(BEGINNING), *BLOCK.findall(section)]
    if name_of(section) == "ctypes":
        blocks.insert(0, ("python", "import ctypes\n"))
    for language, text in blocks:
        if language == "c":
            (tmp_path / "ascend.c").write_text(text, encoding="utf-8")
        elif language == "sh":
            if shutil.which("cc") is None:
                pytest.skip("there is no C compiler")
            subprocess.run(text, shell=True, check=True)
        else:
            assert language == "python"
            exec(compile(text, f"docs/embedding.md, {name_of(section)}", "exec"), scope)
    outcome = {name: scope[name] for name in ("status", "mode", "best", "gradients", "theta") if name in scope}
    if "mode" in outcome:
        assert abs(scope["model"].log_density_gradient(outcome["mode"])[1]).max() < 0.5
    if "theta" in outcome:
        assert outcome["theta"].shape[0] == 500 and outcome["gradients"].shape == (64, 10)
