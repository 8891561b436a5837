"""Sizes of containers: what is checked where a variable is declared, and where an operation makes a new shape.

    parameters { simplex[K] q; }     K >= 1, as Stan demands; vectors need K >= 0 only
    matrix[N, M] x;                  N, M >= 0, and N * M elements must be so few that some machine could hold them

The rules are those of Stan 2.40. A shape is checked by a product of reals, which does not wrap. After the checks the
products of sizes that addresses and loops are made of fit into 64 bits, also where one of the sizes is 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from ulam.dialects import stan
from ulam.dialects.integers import INT_MAX
from ulam.library.statuses import FATAL
from ulam.passes.builder import MOST_SIZE
from ulam.passes.to_loops.lowering import Lowering
from ulam.passes.to_loops.shapes import size_count
from ulam.passes.to_loops.size_text import name_of_size
from ulam.passes.to_loops.values import buffer_type
from ulam.passes.variable_form import is_global

_LEAST_SIZES: dict[str, tuple[int, ...]] = {
    "simplex": (1,),
    "unit_vector": (2,),
    "sum_to_zero_vector": (1,),
    "sum_to_zero_matrix": (1, 1),
    "column_stochastic_matrix": (1, 0),
    "row_stochastic_matrix": (0, 1),
}
"""Constraint → the least sizes of a parameter, without its array dimensions; 0 for all others."""

_PLACES = {"column_stochastic_matrix": "rows", "row_stochastic_matrix": "columns"}


def declared_dims(low: Lowering, op: stan.DeclareOp | stan.ParameterOp) -> list[SSAValue]:
    """Sizes of a declared variable's dimensions, field by field of a tuple."""
    type_ = op.res.type.element
    constraint = op.constraint.data if isinstance(op, stan.ParameterOp) else "none"
    if low.globals_checked and is_global(op) and not isinstance(type_, stan.TupleType):
        return known_sizes(low, type_, op.sizes)
    return checked_sizes(low, op.told_name, type_, op.sizes, constraint, most=MOST_SIZE if is_global(op) else INT_MAX)


def known_sizes(low: Lowering, type_: Attribute, sizes: Sequence[SSAValue]) -> list[SSAValue]:
    """Sizes as i64 that were checked when the data were bound."""
    dims = plain_sizes(low, type_, sizes)
    for size in dims[: len(sizes)]:
        low.builder.limit(size, 0, MOST_SIZE)
    low.note_shape(dims)
    return dims


def plain_sizes(low: Lowering, type_: Attribute, sizes: Sequence[SSAValue]) -> list[SSAValue]:
    """Sizes as i64, which were checked before; square types get both."""
    dims = [low.size(ssa) for ssa in sizes]
    return dims + dims[-1:] * (size_count(type_, low.builder.location) - len(dims))


def checked_sizes(
    low: Lowering,
    name: str,
    type_: Attribute,
    sizes: Sequence[SSAValue],
    constraint: str = "none",
    *,
    most: int = INT_MAX,
) -> list[SSAValue]:
    """Sizes as i64, checked to be what a variable of the type, and a parameter of the constraint, needs, and not to be
    above `most`; square types get both sizes."""
    count = size_count(type_, low.builder.location)
    least = (0,) * len(sizes)
    if (special := _LEAST_SIZES.get(constraint)) is not None:
        least = (0,) * (len(sizes) - len(special)) + special
    subject = subject_of(low, name)
    dims = []
    for ssa, minimum in zip(sizes, least, strict=True):
        size = low.size(ssa)
        low.check_size(size, _demand(subject, constraint, minimum), name_of_size(ssa), least=minimum)
        if low.builder.range_of(size)[1] > most:
            few = low.builder.cmpi("sle", size, low.builder.i64(most))
            written = name_of_size(ssa) or "it"
            low.check(few, FATAL, f"{subject}: a size must be at most {most}, but {written} is {{0}}", size)
            low.builder.limit(size, 0, most)
        dims.append(size)
    if constraint == "cholesky_factor_cov" and len(sizes) >= 2 and count == len(sizes):
        _check_rows(low, subject, sizes[-2:], dims[-2:])
    dims += dims[-1:] * (count - len(dims))
    for field, part in _fields(subject, type_, dims):
        if len(part) > 1 and not isinstance(field[1], stan.TupleType):
            low.check_shape(field[0], part, 4 if buffer_type(field[1]).element == i32 else 8)
    return dims


def subject_of(low: Lowering, name: str) -> str:
    """What an error is about: the variable, or the function of the library that declares it."""
    return low.called_function() or name


_Field = tuple[tuple[str, Attribute], list[SSAValue]]


def _fields(name: str, type_: Attribute, dims: Sequence[SSAValue]) -> list[_Field]:
    """The containers that a variable consists of, by name, with their sizes."""
    if not isinstance(type_, stan.TupleType):
        return [((name, type_), list(dims))]
    found: list[_Field] = []
    rest = list(dims)
    for number, element in enumerate(type_.elements, 1):
        count = size_count(element, None)
        found += _fields(f"{name}.{number}", element, rest[:count])
        rest = rest[count:]
    return found


def _demand(name: str, constraint: str, least: int) -> str:
    if least == 0:
        return f"{name}: a size must not be negative"
    place = _PLACES.get(constraint)
    what = f"the number of {place} of a {constraint}" if place else f"the size of a {constraint}"
    return f"{name}: {what} must be " + ("positive" if least == 1 else f"at least {least}")


def _check_rows(low: Lowering, name: str, sizes: Sequence[SSAValue], dims: Sequence[SSAValue]) -> None:
    rows, columns = dims
    if rows is columns:
        return
    said = []
    for n, (ssa, text) in enumerate(zip(sizes, ("rows", "columns"), strict=True)):
        said.append(f"{name_of_size(ssa) or f'the number of {text}'} is {{{n}}}")
    message = f"{name}: a cholesky_factor_cov must have at least as many rows as columns, but {' and '.join(said)}"
    low.check(low.builder.cmpi("sge", rows, columns), FATAL, message, rows, columns)
