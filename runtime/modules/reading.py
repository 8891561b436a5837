"""A program that comes as MLIR instead of Stan: `m.mlir`, or the text of a module that was made in the process.

    module = read_program(text, "m.mlir")         # verified; DiagnosticError says where a rule is broken

The module holds one `stan.program`, in variable form, as `stan-opt m.stan` prints it and passes of levels take it, or
in value form, past them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ulam.frontend.diagnostics import Diagnostic, DiagnosticError, Severity
from ulam.frontend.source import Source
from ulam.frontend.syntax import Span

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp

    from ulam.library.externals import ExternalForm

CODE = "invalid-module"


def program_context(*, allow_unregistered: bool = False) -> Context:
    """A context with the dialects of programs and units; each is imported when it is used."""
    from xdsl.context import Context

    from ulam.runtime.modules.known_dialects import DIALECTS, load_dialect

    context = Context(allow_unregistered=allow_unregistered)
    for name in DIALECTS:
        context.register_dialect(name, partial(load_dialect, name))
    return context


def parse_mlir(text: str, name: str, *, first_line: int = 1, context: Context | None = None) -> ModuleOp:
    """The module of a text. Raises xDSL's ParseError."""
    from ulam.runtime.modules.mlir_aliases import with_aliases_first
    from ulam.runtime.modules.mlir_parser import LocatingParser

    return LocatingParser(context or program_context(), with_aliases_first(text), name, first_line).parse_module()


def read_program(text: str, filename: str, externals: Sequence[ExternalForm] = ()) -> ModuleOp:
    """The verified module of a program, whose functions without a body are `externals`. Raises DiagnosticError."""
    from xdsl.utils.exceptions import DiagnosticException, ParseError

    from ulam.dialects.places import place_of
    from ulam.runtime.modules.verification import InvalidModuleError

    try:
        module = parse_mlir(text, filename)
        verify_program(module)
        _define_externals(module, externals, text, filename)
        return module
    except ParseError as error:
        raise _diagnostic(error.msg, text, filename, _line_of(error)) from None
    except (InvalidModuleError, DiagnosticException) as error:
        place = place_of(getattr(error, "location", None))
        inside = place is not None and place.filename.data == filename
        message = str(error) if place is None or inside else f"{_place_text(place)}: {error}"
        raise _diagnostic(message, text, filename, place.line.data if inside and place is not None else 1) from None


def _define_externals(module: ModuleOp, externals: Sequence[ExternalForm], text: str, filename: str) -> None:
    from ulam.dialects import stan
    from ulam.dialects.places import place_of
    from ulam.frontend.functions.externals import ExternalProblem
    from ulam.frontend.lower.external_functions import define_externals, undefined_functions

    program = next(op for op in module.body.block.ops if isinstance(op, stan.ProgramOp))
    for function in undefined_functions(program):
        try:
            define_externals([function], externals)
        except ExternalProblem as problem:
            place = place_of(function.location)
            inside = place is not None and place.filename.data == filename
            line = place.line.data if inside and place is not None else 1
            raise _diagnostic(f"{problem}; {problem.help}", text, filename, line) from None


def _place_text(place: Any) -> str:
    return f"{place.filename.data}:{place.line.data}:{place.column.data}"


def _line_of(error: Any) -> int:
    """The line of a parse error: that of the text with its aliases in front, which has as many lines."""
    return error.span.input.content.count("\n", 0, error.span.start) + 1


def verify_program(module: ModuleOp) -> None:
    """Raises InvalidModuleError for a module that breaks a rule, or does not hold one program."""
    from ulam.dialects import stan
    from ulam.runtime.modules.verification import InvalidModuleError, verify

    verify(module)
    found = [op for op in module.body.block.ops if isinstance(op, stan.ProgramOp)]
    if len(found) == 1:
        others = [op for op in module.body.block.ops if op is not found[0]]
        if others:
            raise InvalidModuleError(f"a model's module holds a stan.program alone, found {others[0].name}", others[0])
        return
    if found:
        raise InvalidModuleError("a second stan.program: a model is one", found[1])
    low = any(op.name == "func.func" for op in module.body.block.ops)
    hint = "; a unit that has been lowered is none: `stan-opt -t llvm` emits it" if low else ""
    raise InvalidModuleError(f"a model's module holds a stan.program, and there is none{hint}", module)


def _diagnostic(message: str, text: str, filename: str, line: int) -> DiagnosticError:
    lines = text.split("\n")
    line = min(max(line, 1), len(lines))
    start = sum(len(before) + 1 for before in lines[: line - 1])
    shown = lines[line - 1]
    begin = start + len(shown) - len(shown.lstrip())
    span = Span(begin, max(start + len(shown.rstrip()), begin))
    return DiagnosticError([Diagnostic(Severity.ERROR, " ".join(message.split()), span, Source(text, filename), CODE)])


def is_in_value_form(module: ModuleOp) -> bool:
    """Whether a program is past the passes of levels: variables have become values."""
    from ulam.dialects import stan
    from ulam.dialects.walk import ops_within

    carrying = (stan.IfOp, stan.ForOp, stan.ForEachOp, stan.WhileOp)
    return any(
        isinstance(op, stan.DefineOp | stan.UninitializedOp) or (isinstance(op, carrying) and op.results)
        for op in ops_within(module)
    )
