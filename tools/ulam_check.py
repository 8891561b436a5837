"""`ulam check` and `ulam info`: messages about a program, and what it declares."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulam.frontend.diagnostics import Diagnostic, DiagnosticError, render
from ulam.frontend.encoding import read_text
from ulam.frontend.source import Source
from ulam.runtime.interpreter_settings import compiling
from ulam.runtime.json_text import json_line, json_page
from ulam.runtime.named_text import NamedText, is_module, named_by_content
from ulam.runtime.output_files import write_text
from ulam.runtime.terminal import escaped
from ulam.tools.exits import EXIT_FAILURE, EXIT_OK
from ulam.tools.files import is_standard_output
from ulam.tools.messages import show

if TYPE_CHECKING:
    from ulam.frontend import syntax


def checked(program: Path | NamedText, include_paths: Sequence[Path] | None) -> tuple[syntax.Program, list[Diagnostic]]:
    """The typed tree of a program and warnings. Raises DiagnosticError or OSError.

    That of a module is the tree of what it prints as.
    """
    from ulam.frontend.check.program import check_program
    from ulam.frontend.parse.program import parse_program

    name = named_by_content(program.text, program.name) if isinstance(program, NamedText) else str(program)
    if is_module(name):
        text = program.text if isinstance(program, NamedText) else read_text(name)
        with compiling():
            return parse_program(Source(_as_stan(text, name), name)), []
    if isinstance(program, NamedText):
        source = Source(program.text, program.name, include_paths or ())
    else:
        source = Source.read(program, include_paths or ())
    with compiling():
        tree = parse_program(source)
        return tree, check_program(tree, source) or []


def _as_stan(text: str, name: str) -> str:
    """A module as Stan. Raises DiagnosticError where it breaks a rule."""
    from ulam.emit.stan_text import print_module
    from ulam.runtime.modules.reading import read_program

    return print_module(read_program(text, name))


@dataclass(kw_only=True)
class CheckCommand:
    """The arguments of `ulam check`."""

    models: list[Path | NamedText]
    json: str | None
    include_path: list[Path] | None

    def run(self) -> int:
        """Prints the messages of all files: text to standard error, JSON to standard output or to a file."""
        status, records = EXIT_OK, list[str]()
        for program in self.models:
            try:
                _, diagnostics = checked(program, self.include_path)
            except DiagnosticError as error:
                status = EXIT_FAILURE
                diagnostics = error.diagnostics
            except (OSError, UnicodeDecodeError) as error:
                status = EXIT_FAILURE
                reason = error.strerror if isinstance(error, OSError) else "not a text file in UTF-8"
                show(f"{escaped(str(program))}: error: cannot be read: {reason}")
                continue
            for diagnostic in diagnostics:
                if self.json is not None:
                    records.append(json_line(diagnostic.as_dict()) + "\n")
                if not is_standard_output(self.json):
                    show(render(diagnostic))
        if is_standard_output(self.json):
            sys.stdout.writelines(records)
        elif self.json is not None:
            write_text(self.json, "".join(records))
        return status


INFO_BLOCKS = {
    "inputs": "data",
    "parameters": "parameters",
    "transformed_parameters": "transformed_parameters",
    "generated_quantities": "generated_quantities",
}


@dataclass(kw_only=True)
class InfoCommand:
    """The arguments of `ulam info`."""

    model: Path | NamedText
    include_path: list[Path] | None

    def run(self) -> int:
        """Prints what a program declares as one JSON object."""
        try:
            program, _ = checked(self.model, self.include_path)
        except DiagnosticError as error:
            show(str(error))
            return EXIT_FAILURE
        sys.stdout.write(json_page(declarations(program, Path(str(self.model)).stem)))
        return EXIT_OK


def declarations(program: syntax.Program, name: str) -> dict[str, Any]:
    """What a program declares, by blocks."""
    report: dict[str, Any] = {"name": name}
    for title, block in INFO_BLOCKS.items():
        report[title] = dict(_declared(getattr(program, block)))
    report["functions"] = [
        {
            "name": definition.name,
            "result": str(definition.result),
            "arguments": [{"name": argument.name, "type": str(argument.type)} for argument in definition.arguments],
        }
        for definition in program.functions
        if definition.body is not None
    ]
    return report


def _declared(block: syntax.BlockStatement | None) -> Iterator[tuple[str, dict[str, Any]]]:
    from ulam.frontend import syntax

    for statement in block.statements if block is not None else ():
        if isinstance(statement, syntax.Declaration):
            kind = statement.sized_type.constraint.kind
            entry: dict[str, Any] = {"type": str(statement.sized_type.type)}
            if kind is not syntax.ConstraintKind.NONE:
                entry["constraint"] = kind.value
            yield statement.name, entry
