"""Writes the tables of commands and options into `docs/commands.md`, from `tools/options.py`.

python docs/list_commands.py            # rewrites the parts between the markers
python docs/list_commands.py --check    # exit status 1 if they are not current
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from written_parts import main, with_parts

from ulam.tools.commands import COMMANDS, STAN_OPT, help_rows
from ulam.tools.options import OPTIONS, flags, long_name, told

DOCUMENT = Path(__file__).with_name("commands.md")
SCRIPT = Path(__file__).name


def commands() -> str:
    """Each command, what it is given, and what it does."""
    lines = ["| command | what it does |", "|---|---|"]
    for name, command in COMMANDS.items():
        arguments = " ".join(["ulam", name, *(written for written, _ in help_rows(name)[0])])
        lines.append(f"| `{arguments}` | {command.help.splitlines()[0]} |")
    return "\n".join(lines)


def options() -> str:
    """Each option, what it means, and which commands take it."""
    lines = ["| option | meaning | commands |", "|---|---|---|"]
    for name, option in OPTIONS.items():
        takers = [command for command, entry in COMMANDS.items() if name in entry.names()]
        if option.argument or not takers:
            continue
        everywhere = len(takers) == len(COMMANDS)
        written = next(written for written, _ in help_rows(takers[0])[1] if long_name(name) in written)
        own = [
            f" {command}: {' '.join(filter(None, (differs.help, _default(name, command))))}"
            for command, differs in option.differs.items()
            if command in COMMANDS
        ]
        shown = written.replace("|", "\\|")
        lines.append(f"| `{shown}` | {told(name)}{''.join(own)} | {'all' if everywhere else ', '.join(takers)} |")
    return "\n".join(lines)


def stan_opt() -> str:
    """Each option of `stan-opt`, its other names, and what it means."""
    lines = ["| option | meaning |", "|---|---|"]
    for name, (written, meaning) in zip((*STAN_OPT.options, "color"), help_rows("stan-opt")[1], strict=True):
        others = " and ".join(f"`{other}`" for other in OPTIONS[name].old_names)
        assert any(flag.startswith(long_name(name)) for flag in flags(name))
        lines.append(f"| `{_cell(written)}` | {_cell(meaning)}{others and f' As {others}, too.'} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _default(name: str, command: str) -> str:
    """The default that a command has of its own."""
    own, general = told(name, command).partition("  [")[2], told(name).partition("  [")[2]
    return f"[{own}" if own != general else ""


PARTS: dict[str, Callable[[], str]] = {"commands": commands, "options": options, "stan-opt": stan_opt}


def updated(document: str) -> str:
    """The document with the parts between the markers written anew."""
    return with_parts(document, SCRIPT, PARTS)


if __name__ == "__main__":
    sys.exit(main(DOCUMENT, SCRIPT, updated))
