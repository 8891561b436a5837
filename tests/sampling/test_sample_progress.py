"""How far chains are: plain lines, and a table on a terminal."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from io import StringIO
from typing import Any

import pytest

from ulam.runtime.sampling import progress
from ulam.runtime.sampling.chain import ChainProgress
from ulam.runtime.sampling.progress import SampleProgress, duration, line

UPDATE = ChainProgress(2, "warmup", 500, 2000, 250.0, 0.31234, 4, 1, 7000, 2, 2.5)


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_lines() -> None:
    assert line(UPDATE) == (
        "chain 2: warmup, iteration 500/2000, 250 draws/s, step size 0.312, depth 4, 1 divergence, 6 s left"
    )
    done = dataclasses.replace(UPDATE, phase="done", iteration=2000, divergences=0)
    assert line(done) == "chain 2: done in 2.50 s, step size 0.312, 0 divergences"
    assert "left" not in line(dataclasses.replace(UPDATE, draws_per_second=0.0))
    assert [duration(seconds) for seconds in (3.4, 240, 9000)] == ["3 s", "4 min", "2.5 h"]


def test_plain_lines_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a chain every few seconds, and that of its end."""
    file, now = StringIO(), 100.0
    monkeypatch.setattr("ulam.runtime.sampling.progress.time.monotonic", lambda: now)
    shown = SampleProgress(2, file)
    for now in (101.0, 104.9, 105.1, 105.2, 110.3):  # noqa: B007
        shown(UPDATE)
    shown(dataclasses.replace(UPDATE, chain=1, phase="done"))
    shown.close()
    lines = file.getvalue().splitlines()
    assert [text.partition(",")[0] for text in lines] == [
        "chain 2: warmup", "chain 2: warmup", "chain 1: done in 2.50 s",
    ]  # fmt: skip


def test_table_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST_SHOWN", 0.0)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_TABLES", 0.0)
    monkeypatch.setenv("COLUMNS", "80")
    file = Terminal()
    shown = SampleProgress(3, file)
    shown(UPDATE)
    shown(dataclasses.replace(UPDATE, chain=1, phase="sampling", iteration=1500))
    shown.close()
    shown.close()
    text = file.getvalue()
    assert "\x1b[?25h" in text, "the cursor is there again"
    last = text[text.rindex("divergent") :]
    for word in ("sampling", "1500/2000", "warmup", "500/2000", "0.312", "waiting", "250", "6 s"):
        assert word in last
    assert max(len(row) for row in last.split("\n")[1:5]) < 200


def test_runs_that_end_at_once_show_no_table() -> None:
    file = Terminal()
    shown = SampleProgress(1, file)
    shown(dataclasses.replace(UPDATE, chain=1, phase="done"))
    shown.close()
    assert file.getvalue() == ""


def test_rich_is_for_terminals() -> None:
    program = (
        "import sys, ulam.runtime.sampling.progress as p; from ulam.runtime.sampling.chain import ChainProgress;"
        "shown = p.SampleProgress(1); shown(ChainProgress(1, 'done', 1, 1, 1.0, 1.0, 1, 0, 1, 0, 1.0)); shown.close();"
        "print('rich' in sys.modules)"
    )
    done: Any = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n" and done.stderr.startswith("chain 1: done in")
