"""The programs of tests/regressions and what their comments say to expect."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "regressions"
PROGRAMS = sorted(FOLDER.glob("*.stan"))


def expectations(text: str) -> dict[str, str]:
    return dict(
        re.findall(r"^\s*// (data|point|error|rejects|value|outputs|prints|generates|fails): (.*)$", text, re.MULTILINE)
    )
