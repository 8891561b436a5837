"""`%load_ext ulam` and `%%stan` in IPython."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ulam

pytest.importorskip("IPython")

PROGRAM = "data { int N; }\nparameters { real x; }\nmodel { x ~ normal(0, N); }\n"


@pytest.fixture(scope="module")
def shell() -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell  # pyright: ignore[reportMissingImports]

    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    assert shell.run_cell("%load_ext ulam").success
    yield shell
    InteractiveShell.clear_instance()


def test_a_cell_becomes_a_program(shell: Any, capsys: Any) -> None:
    assert shell.run_cell(f"%%stan school -O 0\n{PROGRAM}").success
    assert "school(data) is a model, of int N" in capsys.readouterr().out
    program = shell.user_ns["school"]
    assert isinstance(program, ulam.StanProgram) and program.declarations("parameters") == ["real x"]
    assert "x ~ normal(0, N)" in program._repr_html_()
    found = shell.run_cell("school({'N': 2}).log_density_gradient([3.0])").result
    assert found[0] == -1.125 and found[1] == np.array([-0.75])
    assert shell.user_ns["school"]({"N": 2}).name() == "school_model"


def test_data_on_the_line(shell: Any) -> None:
    shell.user_ns["n"] = 5
    assert shell.run_cell(f"%%stan m -O 0 --data {{'N': n -3}}\n{PROGRAM}").success
    assert isinstance(shell.user_ns["m"], ulam.StanModel) and shell.user_ns["m"].log_density([3.0]) == -1.125


@pytest.mark.parametrize(
    "line, program, told",
    [
        ("bad", PROGRAM.replace("normal", "normall"), "            ^^^^^^^\n   help: did you mean 'normal'?"),
        ("bad", "model { x ~ }", "bad.stan:1:13: error: "),
        ("bad --data {'N': 1.5}", PROGRAM, "'N'"),
        ("bad --data", PROGRAM, "--data EXPR"),
        ("3x", PROGRAM, "a name of Python, found '3x'"),
        ("", PROGRAM, "NAME"),
        ("bad -O 7", PROGRAM, "opt_level must be an int from 0 to 4"),
    ],
)
def test_mistakes_are_shown_where_they_are(shell: Any, capsys: Any, line: str, program: str, told: str) -> None:
    """Without a traceback; the cell has failed, so that what follows is not run."""
    shell.user_ns.pop("bad", None)
    assert not shell.run_cell(f"%%stan {line}\n{program}").success and "bad" not in shell.user_ns
    out, err = capsys.readouterr()
    assert told in out + err and "Traceback" not in out + err and "notebook.py" not in out + err


def test_help(shell: Any) -> None:
    """What `%%stan?` shows."""
    text = shell.find_cell_magic("stan").__doc__
    assert "--data EXPR" in text and "ulam.StanProgram" in text and "-I FOLDER" in text


def test_nothing_is_loaded_before_it_is_used() -> None:
    code = (
        "import sys, ulam; ulam.StanModel; "
        "print([n for n in sys.modules if 'IPython' in n or n in ('ulam.notebook', 'ulam.runtime.stan_program')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
