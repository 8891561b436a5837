"""`bin/stanc` of a CmdStan home: checks a program, and tells what it declares and calls as JSON.

The keys of `--info` are those of stanc3 (its `Info`): variables with their scalar type and number of dimensions,
library functions and distributions by name, included files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from ulam.frontend import syntax
from ulam.frontend.encoding import read_text
from ulam.frontend.functions.support import NOT_SUPPORTED
from ulam.frontend.source import Source
from ulam.frontend.stan_types import ArrayType, StanType, TupleType, scalar_of
from ulam.library.functions import kind_of, named
from ulam.runtime.json_text import json_page
from ulam.runtime.versions import STAN_PATCH, STAN_VERSION, ulam_version
from ulam.tools.cmdstan.stanc_messages import UNDEFINED, checked
from ulam.tools.cmdstan.stanc_options import STANC_OPTIONS, StancArguments, parse
from ulam.tools.exits import EXIT_FAILURE, EXIT_OK, UsageError

BLOCKS = {
    "inputs": "data",
    "parameters": "parameters",
    "transformed parameters": "transformed_parameters",
    "generated quantities": "generated_quantities",
}

_INNER = {"matrix": 2, "vector": 1, "row_vector": 1}


def run(words: Sequence[str]) -> int:
    """The command; the exit status. Raises UsageError."""
    arguments = parse(words)
    if "version" in arguments.flags:
        print(f"stanc3 v{STAN_VERSION}.{STAN_PATCH} (ulam {ulam_version()})")
        return EXIT_OK
    if "help" in arguments.flags:
        print("Usage: stanc [option] ... model_file.stan\n")
        print("\n".join(f"  --{name}" for name, option in STANC_OPTIONS.items() if option.kind != "missing"))
        return EXIT_OK
    if len(arguments.programs) != 1:
        raise UsageError("give one program")
    (program,) = arguments.programs
    source = named_source(program, arguments)
    ignored = [UNDEFINED] if "allow-undefined" in arguments.flags else []
    ignored += [NOT_SUPPORTED] if "info" in arguments.flags else []  # what is declared is known all the same
    tree, messages = checked(source, *ignored)
    for message in messages:
        print(message, file=sys.stderr)
    if tree is None:
        return EXIT_FAILURE
    if "info" in arguments.flags:
        sys.stdout.write(json_page(information(tree, source)))
    return EXIT_OK


def named_source(program: str, arguments: StancArguments) -> Source:
    """The program by the name that messages are to show; files that it includes are found beside it all the same."""
    name = arguments.values.get("filename-in-msg", program)
    return Source(read_text(program), name, [os.path.dirname(os.path.abspath(program)), *arguments.include_paths])


def information(program: syntax.Program, source: Source) -> dict[str, Any]:
    """What `--info` tells of a typed program."""
    functions, distributions = _called(program)
    return {
        **{title: dict(_declared(getattr(program, block))) for title, block in BLOCKS.items()},
        "functions": sorted(functions),
        "distributions": sorted(distributions),
        "included_files": [str(path) for path in source.included_files],
    }


def _declared(block: syntax.BlockStatement | None) -> Iterator[tuple[str, dict[str, Any]]]:
    for statement in block.statements if block is not None else ():
        if isinstance(statement, syntax.Declaration):
            yield statement.name, _described(statement.sized_type.type)


def _described(type_: StanType) -> dict[str, Any]:
    """Scalar type and number of dimensions; of a tuple the descriptions of its elements."""
    rank = type_.rank if isinstance(type_, ArrayType) else 0
    element = type_.element if isinstance(type_, ArrayType) else type_
    if isinstance(element, TupleType):
        return {"type": [_described(each) for each in element.elements], "dimensions": rank}
    rank += _INNER.get(str(element).removeprefix("complex_"), 0)
    return {"type": str(scalar_of(element)), "dimensions": rank}


def _called(program: syntax.Program) -> tuple[set[str], set[str]]:
    """Names of the library's functions and distributions that a program calls."""
    functions, distributions = set[str](), set[str]()
    blocks = [definition.body for definition in program.functions]
    blocks += [program.data, program.transformed_data, program.parameters, program.transformed_parameters,
               program.model, program.generated_quantities]  # fmt: skip
    for block in filter(None, blocks):
        functions.update(each.kind.value for each in syntax.nodes_below(block, syntax.Print))
        for call in syntax.nodes_below(block, syntax.Call):
            if call.kind is syntax.CallKind.LIBRARY and call.name != "target":
                kind = kind_of(call.name)
                (distributions if kind.is_probability else functions).add(_told_name(call))
    return functions, distributions


def _told_name(call: syntax.Call) -> str:
    """The function's name; that of a density that drops constants says so."""
    name = named(call.name)
    return name.stem + name.kind.unnormalized_ending if call.unnormalized and name.kind.is_density else call.name
