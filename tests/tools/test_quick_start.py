"""Command lines that are answered without typer: the same words and statuses as typer's, little is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ulam.tools import commands, quick_start, ulam_main

Capture = pytest.CaptureFixture[str]

HELP = [["--help"], *([name, "--help"] for name in commands.COMMANDS)]
BAD = "model { target += nothing; }\n"


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    texts = {
        "good": "parameters { real x; } model { x ~ normal(0, 1); }\n", "bad": BAD,
        "warned": "parameters { real x; } model { x ~ normal(0, 1); target += 1 / 2; }\n", "empty": "",
        "bytes": "\xff\xfe",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    return {name: str(tmp_path / name) for name in texts} | {"absent": str(tmp_path / "absent"), "dir": str(tmp_path)}


def _quickly(words: list[str]) -> int:
    answer = quick_start.quickly(words)
    assert answer is not None, words
    from ulam.tools.running import ended

    return ended(answer)


@pytest.mark.parametrize("columns", ["0", "7", "53", "79", "80", "200", "wide"])
def test_help_is_typers(columns: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for words in HELP:
        expected = (ulam_main.main(words), capsys.readouterr())
        assert (_quickly(words), capsys.readouterr()) == expected, words


def test_checks_are_typers(programs: dict[str, str], capsys: Capture) -> None:
    for names in (["good"], ["bad"], ["warned"], ["empty"], ["bytes"], ["absent"], ["dir"], ["good", "bad", "absent"]):
        words = ["check", *(programs[name] for name in names)]
        expected = (ulam_main.main(words), capsys.readouterr())
        assert (_quickly(words), capsys.readouterr()) == expected, words


@pytest.mark.parametrize(
    "words",
    [[], ["check"], ["check", "--json", "a"], ["check", "-"], ["check", ""], ["check", "a", "--help"], 
     ["--help", "check"], ["nothing", "--help"], ["sample", "--help", "x"], ["info", "a"], ["--version", "--help"]],
)  # fmt: skip
def test_all_others_are_left_to_typer(words: list[str]) -> None:
    assert quick_start.quickly(words) is None


START = "import sys; sys.argv[0] = 'ulam'; from ulam.tools.entry import ulam; status = ulam()\n"
SHOW = "print(status, *(name for name in sys.modules), file=sys.stderr)"
HEAVY = ("typer", "click", "rich", "numpy", "xdsl", "llvmlite", "platformdirs", "email", "importlib.metadata")
OF_CHECK = (*HEAVY, "ulam.emit", "ulam.runtime.model", "ulam.passes.optimize", "ulam.dialects.stan")
OF_HELP = (*OF_CHECK, "dataclasses", "ctypes", "json", "shutil", "ulam.frontend", "ulam.runtime", "ulam.passes")
OF_VERSION = (*OF_HELP, "pathlib", "textwrap", "ulam.tools.options", "ulam.tools.commands")


@pytest.mark.parametrize(
    ("words", "unwanted"),
    [(["--version"], OF_VERSION), (["--help"], OF_HELP), (["sample", "--help"], OF_HELP), (["check", "bad"], OF_CHECK)],
)
def test_little_is_imported(words: list[str], unwanted: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "bad").write_text(BAD)
    command = [sys.executable, "-c", START + SHOW, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    status, *modules = done.stderr.splitlines()[-1].split()
    assert status == ("1" if words[0] == "check" else "0") and done.stdout + done.stderr
    plain = [sys.executable, "-c", "import sys; print(*sys.modules)"]
    before = subprocess.run(plain, capture_output=True, text=True, cwd=tmp_path, check=True).stdout.split()
    found = set(modules) - set(before)
    assert not [name for name in found if name in unwanted or name.startswith(tuple(f"{each}." for each in unwanted))]


def test_completion_is_typers() -> None:
    environment = {**os.environ, "_ULAM_COMPLETE": "complete_bash", "COMP_WORDS": "ulam che", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, env=environment)
    assert "check" in done.stdout.split()
