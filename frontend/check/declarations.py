"""Declarations: sizes, constraints, initial values, and what each block allows.

Source: Stan Reference Manual, "Data types and declarations", "Program blocks".
"""

from __future__ import annotations

from ulam.frontend.check.context import ERROR, Checker, Origin, article, contains_int
from ulam.frontend.check.expressions import REAL_TO_INT, check_expression, check_int
from ulam.frontend.promotion import promote, promotion_cost
from ulam.frontend.stan_types import COMPLEX, INT, REAL, ArrayType, StanType, TupleType, scalar_of
from ulam.frontend.syntax import Constraint, ConstraintKind, Declaration, Expression, SizedType, Variable

_SIZE_NAMES = {
    "vector": ("the size of a vector",),
    "row_vector": ("the size of a row_vector",),
    "complex_vector": ("the size of a complex_vector",),
    "complex_row_vector": ("the size of a complex_row_vector",),
    "matrix": ("the number of rows", "the number of columns"),
    "complex_matrix": ("the number of rows", "the number of columns"),
    "cholesky_factor_cov": ("the number of rows", "the number of columns"),
}
_SIZED_BY_PARAMETERS = (Origin.PARAMETERS, Origin.TRANSFORMED_PARAMETERS)


def check_declaration(checker: Checker, node: Declaration, *, is_global: bool, first_of_type: bool) -> None:
    """Checks a declaration and brings its name into scope. `first_of_type`: the sized type was not seen before.

    `real a, b;` makes two declarations that share their sized type, which is checked once.
    """
    sized = node.sized_type
    if first_of_type:
        check_sized_type(checker, sized, is_global=is_global)
        checker.check_supported_type(sized.type, sized.span)
    if is_global and checker.origin in _SIZED_BY_PARAMETERS and contains_int(sized.type):
        block = "parameters" if checker.origin is Origin.PARAMETERS else "transformed parameters"
        checker.error(
            f"'{node.name}' cannot hold ints: {block} are real", node.name_span, "int-parameter",
            "declare it in generated quantities, or as a local variable inside braces",
        )  # fmt: skip
    symbol = checker.declare(node.name, sized.type, node.name_span, is_global=is_global)
    if node.initial is None:
        return
    _warn_of_self_reference(checker, node)
    found = check_expression(checker, node.initial)
    if found is ERROR:
        return
    if promotion_cost(found, symbol.type) is None:
        checker.error(
            f"'{node.name}' is {article(symbol.type)} and cannot take {article(found)}",
            node.initial.span, "assignment-type", conversion_help(symbol.type, found),
        )  # fmt: skip
        return
    node.initial = promote(node.initial, symbol.type)


def conversion_help(target: StanType, value: StanType) -> str | None:
    """How to make a value of the type of the target, where Stan has a function for it."""
    if target == INT and value == REAL:
        return REAL_TO_INT
    if isinstance(value, ArrayType) and value.rank == 1 and scalar_of(value) in (INT, REAL):
        name = f"to_{target}"
        if name in ("to_vector", "to_row_vector") and value.element in (INT, REAL):
            return f"{name} converts an array"
    if isinstance(target, ArrayType) and target.rank == 1 and target.element == REAL and str(value).endswith("vector"):
        return "to_array_1d converts a vector"
    return None


def _warn_of_self_reference(checker: Checker, node: Declaration) -> None:
    if isinstance(node.initial, Variable) and node.initial.name == node.name:
        checker.warning(
            f"'{node.name}' is used in its own initial value, where it has none yet", node.initial.span,
            "self-declaration",
        )  # fmt: skip


def check_sized_type(checker: Checker, sized: SizedType, *, is_global: bool) -> None:
    """Checks the sizes and the constraint of a declared type, for a tuple those of its fields."""
    checker.in_sizes = is_global
    for size in sized.array_sizes:
        check_int(checker, size, "the size of an array")
    names = _SIZE_NAMES.get(sized.base, (f"the size of a {sized.base}",))
    for position, size in enumerate(sized.sizes):
        check_int(checker, size, names[min(position, len(names) - 1)])
    checker.in_sizes = False
    _check_constraint(checker, sized)
    for field in sized.fields:
        check_sized_type(checker, field, is_global=is_global)


def _check_constraint(checker: Checker, sized: SizedType) -> None:
    constraint = sized.constraint
    if constraint.kind is ConstraintKind.NONE:
        return
    constraint.lower = _bound(checker, sized, constraint.lower, "the lower bound")
    constraint.upper = _bound(checker, sized, constraint.upper, "the upper bound")
    constraint.offset = _bound(checker, sized, constraint.offset, "the offset")
    constraint.multiplier = _bound(checker, sized, constraint.multiplier, "the multiplier")
    if scalar_of(sized.type) == COMPLEX:
        checker.error("a complex variable cannot have a constraint", constraint.span, "complex-constraint")
    if sized.type == INT:
        _check_int_bounds(checker, constraint)


def _check_int_bounds(checker: Checker, constraint: Constraint) -> None:
    for bound in (constraint.lower, constraint.upper):
        if bound is not None and bound.type == REAL:
            checker.error("the bound of an int must be an int, but this is a real", bound.span, "int-bound")


def _bound(checker: Checker, sized: SizedType, bound: Expression | None, what: str) -> Expression | None:
    """Checks a bound: a scalar, or a container of the declared type; ints become reals where reals are bounded."""
    if bound is None:
        return None
    found = check_expression(checker, bound)
    declared = sized.type
    element = declared.element if isinstance(declared, ArrayType) else declared
    if found is ERROR or isinstance(element, TupleType):
        return bound
    if found in (INT, REAL):
        return promote(bound, REAL) if found == INT and scalar_of(declared) == REAL else bound
    if found != declared and not (found == element and isinstance(declared, ArrayType)):
        checker.error(
            f"{what} must be a scalar or {article(declared)} as the variable is, but this is {article(found)}",
            bound.span, "bound-type",
        )  # fmt: skip
    return bound
