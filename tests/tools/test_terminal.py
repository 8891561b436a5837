"""What terminals are shown: colours that add nothing to the text, and a line while a program is compiled."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ulam.runtime import compile_notice, terminal
from ulam.tools import messages, ulam_main

Capture = pytest.CaptureFixture[str]
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
BAD = "data { int N; }\nmodel {\n  y ~ normall(0, 1);\n  N = 2;\n}\n"


class Screen(io.StringIO):
    """A terminal that keeps what it is shown."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "color", "auto")
    monkeypatch.setattr(compile_notice, "shown_on", None)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture
def bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("bad.stan").write_text(BAD)
    return "bad.stan"


@pytest.mark.parametrize("words", [["check"], ["info"], ["optimize"], ["optimize", "--algorithm", "x"]])
def test_colours_add_nothing_to_the_text(bad: str, words: list[str], capsys: Capture) -> None:
    command, *rest = words
    status = ulam_main.main([command, bad, *rest])
    plain = capsys.readouterr().err
    assert "\x1b" not in plain
    assert ulam_main.main([command, bad, *rest, "--color", "always"]) == status
    shown = capsys.readouterr().err
    assert (shown != plain) == (words[-1] != "x"), "a wrong command line is told before its option is known"
    assert ESCAPES.sub("", shown) == plain
    if words[-1] != "x":
        assert "\x1b[1;31merror\x1b[0m" in shown and re.search(r"\x1b\[1;31m *\^+\x1b\[0m", shown)


@pytest.mark.parametrize(
    ("setting", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_surroundings(setting: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    screen = Screen()
    messages.show("m.stan:1:2: error: no [code]", screen)
    assert ("\x1b" in screen.getvalue()) == coloured
    assert ESCAPES.sub("", screen.getvalue()) == "m.stan:1:2: error: no [code]\n"
    pipe = io.StringIO()
    messages.show("m.stan:1:2: error: no [code]", pipe)
    assert pipe.getvalue() == "m.stan:1:2: error: no [code]\n"
    monkeypatch.setattr(terminal, "color", "never")
    assert not terminal.is_coloured(Screen()) and not terminal.is_decorated(Screen())


@pytest.mark.parametrize(
    "line",
    [
        "ulam: error: data: variable 'N' does not exist", "m.stan:1:2: warning: a: b [c-d]", "    4 |   x ~ f(1);",
        "      |       ^^^^^^", "   help: did you mean 'x'?", "   note: m.stan:1:1: here", "anything", "", "[red] 1",
        "x" * 300, "    4 | \t[bold]x",
    ],
)  # fmt: skip
def test_pieces_are_the_line(line: str) -> None:
    """No markup is read, and no long line is broken."""
    assert "".join(text for text, _ in messages.pieces(line)) == line
    screen = Screen()
    messages.show(line, screen)
    assert ESCAPES.sub("", screen.getvalue()).expandtabs() == f"{line}\n".expandtabs()


def test_control_characters_are_shown_escaped(capsys: Capture) -> None:
    assert ulam_main.main(["optimize", "a\x1b[2Jb.stan"]) == 1
    assert capsys.readouterr().err == "ulam: error: Stan program 'a\\x1b[2Jb.stan' does not exist\n"
    assert terminal.escaped("µ a\n\udcff\t") == "µ a\\n\\udcff\\t"


def test_output_without_the_characters() -> None:
    """In an old locale they are escaped, not an error."""
    code = "from ulam.tools.ulam_main import main; status = main(['--version']); print('µ'); raise SystemExit(status)"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and done.stdout.endswith("\\xb5\n"), done.stderr


def test_warnings_are_messages(bad: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    from ulam.tools import ulam_check

    def warn(*_: object) -> None:
        warnings.warn("beware", RuntimeWarning, stacklevel=1)

    monkeypatch.setattr(ulam_check.CheckCommand, "run", warn)
    assert ulam_main.main(["check", bad]) == 0
    assert capsys.readouterr().err == "ulam: warning: beware\n"


# ---------------------------------------------------------------- while a program is compiled


def shown_while(work: float, monkeypatch: pytest.MonkeyPatch, encoding: str = "utf-8") -> str:
    screen = Screen()
    screen.encoding = encoding  # type: ignore[misc]
    monkeypatch.setattr(compile_notice, "shown_on", screen)
    monkeypatch.setattr(compile_notice, "DELAY", 0.05)
    monkeypatch.setattr(compile_notice, "INTERVAL", 0.01)
    with compile_notice.compile_notice():
        time.sleep(work)
    return screen.getvalue()


def test_the_line_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = shown_while(0.2, monkeypatch)
    assert compile_notice.BRAILLE[1] in shown and " compiling, 0." in shown and "\n" not in shown
    assert shown.endswith(compile_notice.CLEAR)
    assert "compile-notice" not in {thread.name for thread in threading.enumerate()}
    assert shown_while(0, monkeypatch) == "", "what is quick shows nothing"
    assert shown_while(0.2, monkeypatch, "ascii").isascii()


def test_the_line_ends_with_an_error_and_with_the_last_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(compile_notice, "shown_on", screen)
    monkeypatch.setattr(compile_notice, "DELAY", 0.0)
    notice = compile_notice.compile_notice
    with pytest.raises(KeyboardInterrupt), notice():
        raise KeyboardInterrupt
    with notice(), notice():
        pass
    assert "compile-notice" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
def test_on_a_terminal(tmp_path: Path) -> None:
    """A model that is compiled: standard error is a terminal, standard output is not."""
    import pty

    code = (
        "import sys; from ulam.runtime import compile_notice as notice; notice.DELAY = 0; "
        "from ulam.tools.ulam_main import main; "
        "sys.exit(main(['log-density', '-', '--params', '1', '-O', '0', '--no-cache']))"
    )
    screen, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=side, text=True
    )
    out, _ = process.communicate("parameters { real x; } model { target += x; }")
    os.close(side)
    shown = b""
    while True:
        try:
            part = os.read(screen, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(screen)
    assert process.returncode == 0 and out == '{"log_density": 1.0, "gradient": [1.0]}\n'
    assert b"compiling" in shown and shown.endswith(b"\r\x1b[K")
