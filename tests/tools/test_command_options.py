"""The tables of options and commands, and what the command line makes of them, over all commands."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from ulam.tools import commands, options, stan_opt, ulam_main
from ulam.tools.commands import COMMANDS
from ulam.tools.options import OPTIONS

Capture = pytest.CaptureFixture[str]
BUILT: dict[str, Any] = get_command(ulam_main.app).commands  # pyright: ignore[reportAttributeAccessIssue]
EACH_COMMAND = pytest.mark.parametrize("command", COMMANDS)


def command_class(command: str) -> Any:
    module, _, name = COMMANDS[command].runs.partition(":")
    return getattr(import_module(f"ulam.tools.{module}"), name)


def test_every_command_is_of_the_table() -> None:
    assert list(BUILT) == list(COMMANDS)
    used = {name for command in COMMANDS.values() for name in command.names()}
    assert used | set(commands.STAN_OPT.names()) == set(OPTIONS), "no row is for nothing"


@EACH_COMMAND
def test_every_option_is_of_the_table(command: str) -> None:
    """Names, defaults and limits that are parsed are those of the row."""
    parsed = {parameter.name: parameter for parameter in BUILT[command].params}
    assert set(parsed) - {"help"} == set(COMMANDS[command].names())
    for name in COMMANDS[command].names():
        option, parameter = OPTIONS[name], parsed[name]
        if option.argument:
            continue
        spelled = {spelling for flag in options.flags(name) for spelling in flag.split("/")}
        assert {*parameter.opts, *parameter.secondary_opts} == spelled
        assert parameter.default == option.default_in(command) or option.type in (list[str], list[Path])
        limited = parameter if hasattr(parameter, "min") else parameter.type  # by the version of typer
        limits = getattr(limited, "min", None), getattr(limited, "max", None)
        assert limits == (option.least, option.most)


def test_a_name_means_the_same_everywhere() -> None:
    """No spelling belongs to two options of one command, and only old names, and those that an option has in place of
    its own, to different ones of several commands.
    """
    owners: dict[str, str] = {}
    names = dict.fromkeys(name for command in COMMANDS.values() for name in command.names())
    for name in (name for name in names if not OPTIONS[name].name):
        for flag in (flag for flag in options.flags(name) if flag not in OPTIONS[name].old_names):
            for spelling in flag.split("/"):
                assert owners.setdefault(spelling, name) == name
    for command in (*COMMANDS.values(), commands.STAN_OPT):
        spelled = [flag for name in command.names() if not OPTIONS[name].argument for flag in options.flags(name)]
        assert len(set(spelled)) == len(spelled)
    shared = [name for name in OPTIONS if sum(name in command.names() for command in COMMANDS.values()) > 1]
    assert {name for name in shared if set(OPTIONS[name].differs) & set(COMMANDS)} == {
        "jacobian", "propto", "gradients", "output", "json", "unconstrained", "seed", "rows",
    }, "an option that differs between commands has a reason"  # fmt: skip
    for option in OPTIONS.values():
        assert set(option.differs) <= {*COMMANDS, "stan-opt"}


@EACH_COMMAND
def test_the_class_takes_the_options(command: str) -> None:
    kind = command_class(command)
    fields = {entry.name for entry in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set[str]()
    fields |= {"traced"} if command == "trace" else set()
    assert set(COMMANDS[command].names()) - {"color", "time_limit", "external"} <= fields  # see `execute`


@EACH_COMMAND
def test_help_has_each_option_and_nothing_unreadable(command: str, capsys: Capture) -> None:
    assert ulam_main.main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    for name in COMMANDS[command].names():
        option = OPTIONS[name]
        written = option.of if option.argument else options.long_name(name)
        assert option.hidden or re.search(rf"^ +.*{re.escape(written)}", shown, re.MULTILINE), name
        assert not any(old in shown for old in option.old_names)
    assert not re.search(r"[<{}]|range|\bstr\b|list\[", shown)


def test_choices_are_those_of_what_they_choose() -> None:
    from ulam.passes.pipelines import PROFILING
    from ulam.runtime.optimizers.algorithms import ALGORITHMS, algorithm_options
    from ulam.runtime.profiling.profile_csv import COLUMNS
    from ulam.tracing.listing import STYLES

    assert OPTIONS["algorithm"].choices == tuple(ALGORITHMS)
    assert OPTIONS["columns"].choices == tuple(COLUMNS)
    assert OPTIONS["style"].choices == tuple(STYLES)
    assert set(OPTIONS["auto"].choices) <= set(PROFILING)
    assert set(commands.OPTIMIZER_OPTIONS) == set(algorithm_options("lbfgs"))


@pytest.mark.parametrize(
    ("command", "name"), [(c, n) for c in COMMANDS for n in COMMANDS[c].names() if OPTIONS[n].choices]
)
def test_a_wrong_choice_is_told_at_once(command: str, name: str, tmp_path: Path, capsys: Capture) -> None:
    """Before anything is read: the program is not even there."""
    words = [command, str(tmp_path / "none.stan")][: 1 + len(COMMANDS[command].arguments)]
    assert ulam_main.main([*words, options.long_name(name), "none of these"]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"ulam: error: {options.long_name(name)} must be ") and "found 'none of these'" in told
    assert told.count("\n") == 1


@EACH_COMMAND
def test_wrong_usage(command: str, capsys: Capture) -> None:
    if COMMANDS[command].arguments:
        assert ulam_main.main([command]) == 2
        assert OPTIONS[COMMANDS[command].arguments[0]].of in capsys.readouterr().err
    assert ulam_main.main([command, "x.stan", "--nonsense"]) == 2
    assert "--nonsense" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("check --json m.stan", "check --json=- m.stan"),
        ("check m.stan --json", "check m.stan --json=-"),
        ("optimize m.stan --json - -d x", "optimize m.stan --json=- -d x"),
        ("optimize m.stan --json fit.json", "optimize m.stan --json=fit.json"),
        ("optimize m.stan --json --seed 3", "optimize m.stan --json=- --seed 3"),
        ("optimize m.stan --json=fit.txt", "optimize m.stan --json=fit.txt"),
        ("check -- --json", "check -- --json"),
    ],
)
def test_json_alone(given: str, meant: str) -> None:
    assert list(commands.with_values(given.split())) == meant.split()


def test_a_program_is_never_taken_for_an_output(tmp_path: Path, capsys: Capture) -> None:
    program = tmp_path / "m.stan"
    program.write_text("parameters { real x; }")
    assert ulam_main.main(["check", "--json", str(program)]) == 0
    assert program.read_text() == "parameters { real x; }"
    capsys.readouterr()


def test_a_file_behind_json(capsys: Capture) -> None:
    assert ulam_main.main(["optimize", "m.stan", "--json", "fit.txt"]) == 2
    assert "write --json=fit.txt if that is the file to be written" in capsys.readouterr().err
    for other in (["--json", "fit.json"], ["--json", "-"], ["--json", "--seed", "1"], ["--json=x", "y"]):
        assert commands.hint(["optimize", "m.stan", *other]) == ""


def test_stan_opt_shares_its_options(capsys: Capture) -> None:
    assert stan_opt.main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name in (*commands.STAN_OPT.options, "color"):
        assert all(flag in shown for both in options.flags(name) for flag in both.split("/"))
        assert " ".join(options.told(name, "stan-opt").split()[:3]) in " ".join(shown.split())


@pytest.mark.parametrize("words", [["--version"], ["optimize", "--help"], ["check", "m.stan"]], ids=" ".join)
def test_starting_is_quick(words: list[str], tmp_path: Path) -> None:
    """What is heavy is not imported where it is not needed."""
    (tmp_path / "m.stan").write_text("parameters { real x; } model { x ~ normal(0, 1); }")
    code = (
        f"import sys; from ulam.tools.ulam_main import main; status = main({words}); "
        "print(*(m for m in ('numpy', 'xdsl', 'llvmlite', 'rich.console') if m in sys.modules)); sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "", done
