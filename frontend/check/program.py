"""The type checker: fills a parsed program in place, or reports what is wrong with it.

Here: the program as a whole, its blocks and its functions. Begin reading at `check_program`; the other parts are
`typechecker_context` (names in scope), `_declarations`, `_statements`, `_assignments`, `_tilde`, `_expressions`,
`_calls`, `_higher_order`, `_laplace`, `_second_order`; `signatures` has the library's functions.
Source: Stan Reference Manual, "Program blocks", "User-defined functions".
"""

from __future__ import annotations

from collections.abc import Sequence

from ulam.frontend.check.calls import signature_of
from ulam.frontend.check.context import (
    Checker,
    Origin,
    article,
    is_discrete,
)
from ulam.frontend.check.externals import check_external
from ulam.frontend.check.statements import Flow, check_block
from ulam.frontend.diagnostics import Diagnostic, DiagnosticError, Note, Severity
from ulam.frontend.functions import higher_order, signatures
from ulam.frontend.functions.definitions import DEFINITIONS_LOCK, LibraryFunction
from ulam.frontend.source import Source
from ulam.frontend.stan_types import REAL, VOID
from ulam.frontend.syntax import BlockStatement, FunctionDefinition, Program, Span
from ulam.library import catalog
from ulam.library.externals import ExternalForm
from ulam.library.functions import FunctionKind, kind_of, named


def check_program(program: Program, source: Source, externals: Sequence[ExternalForm] = ()) -> list[Diagnostic]:
    """Fills the tree in place and returns the warnings; raises `DiagnosticError` with all errors found.

    `externals`: the functions that are given, for those that the program declares without a body.
    """
    checker = Checker(source, externals={form.name: form for form in externals})
    for problem in source.problems:
        checker.warning(problem.message, Span(problem.start, problem.end), problem.code, problem.help)
    _warn_if_empty(checker, program)
    _register_functions(checker, program.functions)
    for definition in program.functions:
        _check_function(checker, definition)
    blocks = (
        (Origin.DATA, program.data),
        (Origin.TRANSFORMED_DATA, program.transformed_data),
        (Origin.PARAMETERS, program.parameters),
        (Origin.TRANSFORMED_PARAMETERS, program.transformed_parameters),
        (Origin.MODEL, program.model),
        (Origin.GENERATED_QUANTITIES, program.generated_quantities),
    )
    for origin, block in blocks:
        if block is not None:
            _check_program_block(checker, origin, block)
    if checker.second_order:
        from ulam.frontend.check.second_order import check_second_order

        check_second_order(checker)
    checker.report_unsupported()
    return _finish(checker)


def _warn_if_empty(checker: Checker, program: Program) -> None:
    blocks = (program.data, program.transformed_data, program.parameters, program.transformed_parameters)
    if program.functions or any(block is not None for block in (*blocks, program.model, program.generated_quantities)):
        return
    what = "this file is empty" if not checker.source.text.strip() else "this program has no block"
    checker.warning(what, program.span, "empty-program", "a program has blocks, as in `parameters { real x; }`")


def check_library_function(definition: FunctionDefinition, source: Source) -> list[Diagnostic]:
    """Checks one function of library/*.stan: calls mean the library's own definitions first."""
    checker = Checker(source, library_mode=True)
    _check_function(checker, definition)
    return _finish(checker)


def checked(function: LibraryFunction) -> FunctionDefinition:
    """The definition with types filled in. Definitions are shared by all programs of the process."""
    with DEFINITIONS_LOCK:
        if not function.checked:
            check_library_function(function.definition, function.source)
            function.checked = True
        return function.definition


def _finish(checker: Checker) -> list[Diagnostic]:
    if any(diagnostic.severity is Severity.ERROR for diagnostic in checker.diagnostics):
        raise DiagnosticError(checker.diagnostics)
    return checker.diagnostics


def _check_program_block(checker: Checker, origin: Origin, block: BlockStatement) -> None:
    """Checks a block; the variables at its top stay in scope for later blocks, except those of the model."""
    checker.origin = origin
    if origin is Origin.MODEL:
        with checker.scope():
            check_block(checker, block.statements)
    else:
        check_block(checker, block.statements, is_global=True)


# ---------------------------------------------------------------- functions


def _register_functions(checker: Checker, definitions: list[FunctionDefinition]) -> None:
    """Makes all functions known before any body is checked: they may call each other."""
    for definition in definitions:
        _check_function_name(checker, definition)
        known = checker.functions.setdefault(definition.name, [])
        same = [other for other in known if signature_of(other).arguments == signature_of(definition).arguments]
        if not same:
            _check_against_library(checker, definition)
            known.append(definition)
        elif _is_forward_declaration_of(same[0], definition):
            known[known.index(same[0])] = definition
            checker.warning(
                f"'{definition.name}' need not be declared before it is defined",
                same[0].name_span,
                "forward-declaration",
            )
        else:
            _report_redefinition(checker, definition, same[0])
    for known in checker.functions.values():
        for definition in known:
            if definition.body is None:
                check_external(checker, definition, len(known))


def _is_forward_declaration_of(earlier: FunctionDefinition, later: FunctionDefinition) -> bool:
    return earlier.body is None and later.body is not None and signature_of(earlier) == signature_of(later)


def _report_redefinition(checker: Checker, definition: FunctionDefinition, previous: FunctionDefinition) -> None:
    types = ", ".join(str(argument.type) for argument in definition.arguments)
    if definition.result != previous.result:
        message = f"two functions '{definition.name}({types})' differ only in what they return"
    else:
        message = f"'{definition.name}({types})' is defined twice"
    note = Note(f"'{definition.name}' is defined here", previous.name_span)
    checker.error(message, definition.name_span, "redefined-function", None, (note,))


def _check_against_library(checker: Checker, definition: FunctionDefinition) -> None:
    overloads = None if catalog.is_of_others(definition.name) else signatures.overloads(definition.name)
    if overloads is None or overloads.higher_order():
        return
    exact = overloads.exact(signature_of(definition).arguments)
    if exact is not None:
        checker.error(
            f"the library has this function already: {exact}", definition.name_span, "redefined-function",
            "choose another name, or other argument types",
        )  # fmt: skip


def _check_function_name(checker: Checker, definition: FunctionDefinition) -> None:
    name, span = definition.name, definition.name_span
    checker.check_identifier(name, span)
    if higher_order.is_variadic(name):
        checker.error(f"'{name}' is a function of the library that cannot be overloaded", span, "reserved-name")
    written = named(name)
    if written.unnormalized:
        checker.error(
            f"a function whose name ends in {written.ending} cannot be defined", span, "unnormalized-suffix",
            f"define '{written.normalized}'; '{name}' calls it without constant terms",
        )  # fmt: skip
    if written.kind.is_probability and definition.result != REAL:
        what = "nothing" if definition.result == VOID else article(definition.result)
        checker.error(f"'{name}' must return a real, but it returns {what}", span, "density-result")
    if written.kind.is_density:
        _check_variate(checker, definition)


def _check_variate(checker: Checker, definition: FunctionDefinition) -> None:
    discrete = kind_of(definition.name) is FunctionKind.MASS
    expected = "ints" if discrete else "reals"
    if not definition.arguments:
        checker.error(f"'{definition.name}' needs a first argument, the variate", definition.name_span, "variate-type")
        return
    variate = definition.arguments[0]
    if is_discrete(variate.type) is not discrete:
        other = (FunctionKind.DENSITY if discrete else FunctionKind.MASS).ending
        checker.error(
            f"the first argument of '{definition.name}' must be made of {expected}, but it is {article(variate.type)}",
            variate.span, "variate-type", f"a function of {'reals' if discrete else 'ints'} ends in {other}",
        )  # fmt: skip


def _check_function(checker: Checker, definition: FunctionDefinition) -> None:
    """Checks the arguments and the body of a function."""
    checker.origin = Origin.FUNCTIONS
    checker.function = definition
    with checker.scope():
        for argument in definition.arguments:
            origin = Origin.DATA if argument.data_only else Origin.FUNCTIONS
            checker.declare(argument.name, argument.type, argument.span, origin=origin, read_only=True)
            checker.check_supported_type(argument.type, argument.span)
        checker.check_supported_type(definition.result, definition.name_span)
        if definition.body is not None:
            flow = check_block(checker, definition.body.statements)
            if definition.result != VOID and flow is not Flow.RETURNS:
                checker.error(
                    f"'{definition.name}' does not return a value on every path", definition.name_span,
                    "missing-return", f"it must return {article(definition.result)}",
                )  # fmt: skip
    checker.function = None
