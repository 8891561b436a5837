"""`ulam check` and `ulam info`: messages about a program, and what it declares."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ulam.frontend.diagnostics import Diagnostic, DiagnosticError, render
from ulam.frontend.source import Source
from ulam.runtime.compiler import compiling
from ulam.tools.exits import EXIT_FAILURE, EXIT_OK

if TYPE_CHECKING:
    from ulam.frontend import ast


def checked(path: Path, include_paths: Sequence[Path]) -> tuple[ast.Program, list[Diagnostic]]:
    """The typed tree of a program and warnings. Raises DiagnosticError or OSError."""
    from ulam.frontend.parser import parse_program
    from ulam.frontend.typechecker import check_program

    source = Source.read(path, include_paths)
    with compiling():
        program = parse_program(source)
        return program, check_program(program, source) or []


def check_files(files: Sequence[Path], include_paths: Sequence[Path], as_json: bool) -> int:
    """Prints the messages of all files: text to standard error, JSON lines to standard output."""
    status = EXIT_OK
    for path in files:
        try:
            _, diagnostics = checked(path, include_paths)
        except DiagnosticError as error:
            status = EXIT_FAILURE
            diagnostics = error.diagnostics
        except (OSError, UnicodeDecodeError) as error:
            status = EXIT_FAILURE
            reason = error.strerror if isinstance(error, OSError) else "not a text file in UTF-8"
            print(f"{path}: error: cannot be read: {reason}", file=sys.stderr)
            continue
        for diagnostic in diagnostics:
            if as_json:
                print(json.dumps(diagnostic.as_dict()))
            else:
                print(render(diagnostic), file=sys.stderr)
    return status


INFO_BLOCKS = {
    "inputs": "data",
    "parameters": "parameters",
    "transformed_parameters": "transformed_parameters",
    "generated_quantities": "generated_quantities",
}


def print_info(path: Path, include_paths: Sequence[Path]) -> int:
    """Prints what a program declares as one JSON object."""
    try:
        program, _ = checked(path, include_paths)
    except DiagnosticError as error:
        print(error, file=sys.stderr)
        return EXIT_FAILURE
    report: dict[str, Any] = {"name": path.stem}
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
    print(json.dumps(report, indent=2))
    return EXIT_OK


def _declared(block: ast.Block | None) -> Iterator[tuple[str, dict[str, Any]]]:
    from ulam.frontend import ast

    for statement in block.statements if block is not None else ():
        if isinstance(statement, ast.Declaration):
            kind = statement.sized_type.constraint.kind
            entry: dict[str, Any] = {"type": str(statement.sized_type.type)}
            if kind is not ast.ConstraintKind.NONE:
                entry["constraint"] = kind.value
            yield statement.name, entry
