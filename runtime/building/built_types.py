"""Types of a program that is built in Python: with sizes and constraints for variables, as text for functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from ulam.frontend import syntax
from ulam.frontend.diagnostics import DiagnosticError
from ulam.frontend.parse.core import SyntaxProblem, parse_all
from ulam.frontend.parse.declared_types import TYPE_FORMS, TypeParser
from ulam.frontend.parse.lexer import END
from ulam.frontend.source import Source
from ulam.frontend.stan_types import VOID, StanType, TupleType, array_of
from ulam.runtime.errors import ArgumentError

if TYPE_CHECKING:
    from ulam.runtime.building.program import BuiltProgram
    from ulam.runtime.building.values import Operand

T = TypeVar("T")

_BOUNDS, _SHIFTS = ("lower", "upper"), ("offset", "multiplier")


class BuiltType:
    """A type with its sizes and constraints, made by `program.type` and `program.tuple_type`."""

    __slots__ = ("node", "program")

    def __init__(self, program: BuiltProgram, node: syntax.SizedType) -> None:
        self.program = program
        self.node = node

    @property
    def is_constrained(self) -> bool:
        """Whether it or a field of it has a constraint."""
        return any(
            each.constraint.kind is not syntax.ConstraintKind.NONE
            for each in syntax.nodes_below(self.node, syntax.SizedType)
        )


def sized_type(
    program: BuiltProgram,
    base: str,
    sizes: Sequence[Operand],
    array: Operand | tuple[Operand, ...],
    constraint: Mapping[str, Operand],
) -> BuiltType:
    """The type `array[array] base<constraint>[sizes]`."""
    form = TYPE_FORMS.get(base)
    if form is None:
        raise ArgumentError(f"there is no type '{base}'; types are {', '.join(TYPE_FORMS)}")
    if not form.fewest_sizes <= len(sizes) <= form.most_sizes:
        wanted = str(form.fewest_sizes) + f" to {form.most_sizes}" * (form.fewest_sizes < form.most_sizes)
        raise ArgumentError(f"'{base}' has {wanted} sizes, but {len(sizes)} are given")
    span = program.here()
    kind = form.constraint if not constraint else _kind(base, set(constraint))
    limits = {word: program.node(value) for word, value in constraint.items()}
    outer = _array_sizes(program, array)
    node = syntax.SizedType(
        span, base, outer, [program.node(size) for size in sizes], syntax.Constraint(span, kind, **limits), [],
        array_of(form.type, len(outer)),
    )  # fmt: skip
    return BuiltType(program, node)


def tuple_type(
    program: BuiltProgram, fields: Sequence[BuiltType | str], array: Operand | tuple[Operand, ...]
) -> BuiltType:
    """The type `array[array] tuple(fields)`."""
    if not fields:
        raise ArgumentError("a tuple has fields: types, or names of those without sizes")
    made = [sized_type(program, each, (), (), {}) if isinstance(each, str) else each for each in fields]
    if any(each.program is not program for each in made):
        raise ArgumentError("a type of another program")
    span = program.here()
    outer = _array_sizes(program, array)
    parts = [each.node for each in made]
    type_ = array_of(TupleType(tuple(part.type for part in parts)), len(outer))
    none = syntax.Constraint(span, syntax.ConstraintKind.NONE)
    return BuiltType(program, syntax.SizedType(span, "tuple", outer, [], none, parts, type_))


def _array_sizes(program: BuiltProgram, array: Operand | tuple[Operand, ...]) -> list[syntax.Expression]:
    return [program.node(size) for size in (array if isinstance(array, tuple | list) else (array,))]


def _kind(base: str, words: set[str]) -> syntax.ConstraintKind:
    if TYPE_FORMS[base].constraint is not syntax.ConstraintKind.NONE:
        raise ArgumentError(f"'{base}' is constrained by itself, it takes no bounds")
    if words <= set(_BOUNDS):
        return syntax.ConstraintKind.BOUNDS
    if words <= set(_SHIFTS) and base != "int":
        return syntax.ConstraintKind.OFFSET_MULTIPLIER
    raise ArgumentError(f"a constraint is lower and upper, or offset and multiplier, found {', '.join(sorted(words))}")


# ---------------------------------------------------------------- types of functions


def argument_type(text: str) -> tuple[bool, StanType]:
    """Whether the type of an argument is `data`, and the type: `data array[,] int`, `tuple(int, vector)`."""
    return _parsed(text, lambda parser: (parser.accept("data"), parser.unsized_type("an argument")), "an argument")


def result_type(text: str) -> StanType:
    """The type of a result, `void` included."""
    if text.strip() == "void":
        return VOID
    return _parsed(text, lambda parser: parser.unsized_type("a result"), "a result")


def _parsed(text: str, parse: Callable[[TypeParser], T], what: str) -> T:
    """A type as the parser reads it. Raises ArgumentError with the parser's message."""
    source = Source(text, what)
    parser = TypeParser(source)

    def whole() -> T:
        found = parse(parser)
        if parser.kinds[parser.at] != END:
            parser.fail_expected(f"the end of the type of {what}")
        return found

    problem: str | None = None
    try:
        return parse_all(source, parser, whole)
    except SyntaxProblem:  # has been reported to the collector
        problem = parser.collector.diagnostics[0].message
    except DiagnosticError as error:
        problem = error.diagnostics[0].message
    raise ArgumentError(f"{text!r} is no type of {what}: {problem}")
