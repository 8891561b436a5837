"""Types and autodiff levels of expressions.

`check_expression` fills `type` and `ad_level` of a tree in place and wraps operands in `Promotion` nodes where the
language converts them. A subexpression that was reported has the type `ERROR`, which fits everywhere.
Source: Stan Reference Manual, "Expressions"; which expressions are autodiff: docs/architecture.md, "What ~ drops".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import isinf
from sys import float_info
from typing import Any

from ulam.frontend.check.call_kinds import resolve_call
from ulam.frontend.check.calls import callback_positions
from ulam.frontend.check.context import (
    ERROR,
    Checker,
    Origin,
    article,
    is_data,
    is_discrete,
    set_type,
)
from ulam.frontend.check.operators import check_operators
from ulam.frontend.diagnostics import shortened
from ulam.frontend.promotion import common_type, promote
from ulam.frontend.stan_types import (
    COMPLEX,
    COMPLEX_MATRIX,
    COMPLEX_ROW_VECTOR,
    COMPLEX_VECTOR,
    INT,
    MATRIX,
    REAL,
    ROW_VECTOR,
    VECTOR,
    VOID,
    ArrayType,
    StanType,
    TupleType,
    array_of,
)
from ulam.frontend.syntax import (
    AdLevel,
    ArrayLiteral,
    Binary,
    Call,
    Conditional,
    Expression,
    ImaginaryLiteral,
    Index,
    Indexed,
    IndexKind,
    IntLiteral,
    Parenthesized,
    RealLiteral,
    RowVectorLiteral,
    Span,
    StringLiteral,
    SyntaxNode,
    TupleLiteral,
    TupleProjection,
    Unary,
    Variable,
)
from ulam.library.functions import named, normalized_name

_LARGEST_INT = 2**31 - 1
REAL_TO_INT = "a real is not converted to an int; to_int converts data, floor and round give reals"
_OPERANDS_OF_CONTROL = "an int (0 is false, anything else is true)"

# What one index of a vector-like or matrix-like type gives: (row index, column index) → type, with True for a multiple
# index; column None for one index only.
_VECTOR_ELEMENT: dict[StanType, StanType] = {
    VECTOR: REAL,
    ROW_VECTOR: REAL,
    COMPLEX_VECTOR: COMPLEX,
    COMPLEX_ROW_VECTOR: COMPLEX,
}
_MATRIX_PARTS: dict[StanType, dict[tuple[bool, bool | None], StanType]] = {
    matrix: {
        (False, None): row,
        (True, None): matrix,
        (False, False): scalar,
        (False, True): row,
        (True, False): vector,
        (True, True): matrix,
    }
    for matrix, vector, row, scalar in (
        (MATRIX, VECTOR, ROW_VECTOR, REAL),
        (COMPLEX_MATRIX, COMPLEX_VECTOR, COMPLEX_ROW_VECTOR, COMPLEX),
    )
}


def check_expression(checker: Checker, expression: Expression) -> StanType:
    """Fills the tree and returns its type."""
    return _CHECKS[type(expression)](checker, expression)


def check_int(checker: Checker, expression: Expression, what: str) -> None:
    """Checks an expression that has to be an int; `what` begins the message: "a size"."""
    _require(checker, expression, (INT,), what, "an int")


def check_condition(checker: Checker, expression: Expression, what: str) -> None:
    """Checks the condition of `if`, `while` and `?:`."""
    _require(checker, expression, (INT,), what, _OPERANDS_OF_CONTROL)


def check_scalar(checker: Checker, expression: Expression, what: str) -> None:
    """Checks an expression that has to be an int or a real."""
    _require(checker, expression, (INT, REAL), what, "an int or a real")


def _require(checker: Checker, expression: Expression, allowed: tuple[StanType, ...], what: str, expected: str) -> None:
    type_ = check_expression(checker, expression)
    if type_ not in allowed and type_ is not ERROR:
        help = REAL_TO_INT if type_ == REAL and allowed == (INT,) and expected == "an int" else None
        checker.error(f"{what} must be {expected}, but this is {article(type_)}", expression.span, "wrong-type", help)


# ---------------------------------------------------------------- literals and variables


def _int_literal(checker: Checker, node: IntLiteral) -> StanType:
    digits = node.text.lstrip("0")
    if len(digits) > len(str(_LARGEST_INT)) or int(digits or "0") > _LARGEST_INT:
        shown = shortened(node.text)
        checker.error(
            f"{shown} does not fit in an int; the largest one is {_LARGEST_INT}", node.span, "int-too-large",
            f"write {shown}.0 for a real" if shown == node.text else "a real has a point, as in 1.0",
        )  # fmt: skip
    node.type = INT
    return INT


def _real_literal(checker: Checker, node: RealLiteral) -> StanType:
    if isinf(float(node.text)):
        checker.warning(
            f"{shortened(node.text)} is beyond the largest real, {float_info.max}, and becomes infinite", node.span,
            "infinite-literal", "write positive_infinity() if this is meant",
        )  # fmt: skip
    node.type = REAL
    return REAL


def _imaginary_literal(checker: Checker, node: ImaginaryLiteral) -> StanType:
    checker.check_supported_type(COMPLEX, node.span)
    node.type = COMPLEX
    return COMPLEX


def _string_literal(checker: Checker, node: StringLiteral) -> StanType:
    checker.error("a string is allowed only in print, reject, fatal_error and profile", node.span, "misplaced-string")
    node.type = ERROR
    return ERROR


def _variable(checker: Checker, node: Variable) -> StanType:
    symbol = checker.symbols.get(node.name)
    if symbol is None:
        node.type = ERROR
        _report_unknown_variable(checker, node.name, node.span)
        return ERROR
    node.type = symbol.type
    node.ad_level = checker.ad_level_of(symbol)
    if checker.in_sizes and symbol.origin not in (Origin.DATA, Origin.TRANSFORMED_DATA, Origin.FUNCTIONS):
        checker.error(
            f"sizes must be known from the data, but '{node.name}' is declared in {symbol.origin.value}",
            node.span,
            "size-not-data",
            "declare it in data or transformed data",
        )
        node.type = ERROR
        return ERROR
    return symbol.type


def _report_unknown_variable(checker: Checker, name: str, span: Span) -> None:
    if checker.is_function(normalized_name(name), of_others=False):
        message = f"'{name}' is a function and cannot be used as a value"
        checker.error(message, span, "function-as-value", f"call it: {name}(...)")
        return
    if not checker.first_report(name):
        return
    help = checker.suggestion(name, functions=False)
    if named(name).unnormalized:
        help = f"there is no function '{normalized_name(name)}'"
    checker.error(f"'{name}' is not declared here", span, "undeclared", help)


# ---------------------------------------------------------------- operators


def _operators(checker: Checker, node: Unary | Binary) -> StanType:
    return check_operators(checker, node, check_expression)


def _conditional(checker: Checker, node: Conditional) -> StanType:
    check_condition(checker, node.condition, "the condition of '?:'")
    then = check_expression(checker, node.then)
    otherwise = check_expression(checker, node.otherwise)
    if then is ERROR or otherwise is ERROR:
        return set_type(node, otherwise if then is ERROR else then)
    type_ = common_type(then, otherwise)
    if type_ is None:
        checker.error(
            f"the two values of '?:' must have one type, but these are {article(then)} and {article(otherwise)}",
            node.span,
            "conditional-type",
        )
        return set_type(node, ERROR)
    node.then = promote(node.then, type_)
    node.otherwise = promote(node.otherwise, type_)
    set_type(node, type_, node.then, node.otherwise)
    if not is_discrete(type_) and not is_data(node.condition):
        node.ad_level = AdLevel.AUTODIFF  # Stan promotes both values if the condition depends on a parameter
    return type_


def _parenthesized(checker: Checker, node: Parenthesized) -> StanType:
    node.type = check_expression(checker, node.inner)
    node.ad_level = node.inner.ad_level
    return node.type


# ---------------------------------------------------------------- containers


def _array_literal(checker: Checker, node: ArrayLiteral) -> StanType:
    if not node.elements:
        checker.error("an array literal needs at least one element", node.span, "empty-array")
        return set_type(node, ERROR)
    types = [check_expression(checker, element) for element in node.elements]
    if ERROR in types:
        return set_type(node, ERROR)
    common = types[0]
    for element, type_ in zip(node.elements, types, strict=True):
        joined = common_type(common, type_)
        if joined is None:
            checker.error(
                f"the elements of an array must have one type, but this is {article(type_)} after {article(common)}",
                element.span,
                "array-elements",
            )
            return set_type(node, ERROR)
        common = joined
    node.elements = [promote(element, common) for element in node.elements]
    return set_type(node, array_of(common), *node.elements)


def _row_vector_literal(checker: Checker, node: RowVectorLiteral) -> StanType:
    types = [check_expression(checker, element) for element in node.elements]
    if ERROR in types:
        return set_type(node, ERROR)
    of_rows = bool(types) and types[0] in (ROW_VECTOR, COMPLEX_ROW_VECTOR)
    common: StanType = ROW_VECTOR if of_rows else REAL
    for element, type_ in zip(node.elements, types, strict=True):
        joined = common_type(common, type_)
        if joined is None:
            wanted = "row vectors of a matrix literal" if of_rows else "elements of a row vector literal"
            needs = "row_vector" if of_rows else "int or real"
            checker.error(
                f"the {wanted} must all be {needs}, but this is {article(type_)}", element.span, "row-vector-elements"
            )
            return set_type(node, ERROR)
        common = joined
    node.elements = [promote(element, common) for element in node.elements]
    whole: dict[StanType, StanType] = {
        REAL: ROW_VECTOR,
        COMPLEX: COMPLEX_ROW_VECTOR,
        ROW_VECTOR: MATRIX,
        COMPLEX_ROW_VECTOR: COMPLEX_MATRIX,
    }
    return set_type(node, whole[common], *node.elements)


def _tuple_literal(checker: Checker, node: TupleLiteral) -> StanType:
    types = tuple(check_expression(checker, element) for element in node.elements)
    if not types:
        checker.error("a tuple needs at least one element", node.span, "empty-tuple")
    if not types or ERROR in types:
        return set_type(node, ERROR)
    return set_type(node, TupleType(types), *node.elements)


def _tuple_projection(checker: Checker, node: TupleProjection) -> StanType:
    check_expression(checker, node.base)
    return set_projection(checker, node)


def set_projection(checker: Checker, node: TupleProjection) -> StanType:
    """The type of `t.1`, when `t` is checked."""
    base = node.base.type
    if base is ERROR:
        return set_type(node, ERROR)
    if not isinstance(base, TupleType):
        checker.error(f"'.{node.field}' takes an element of a tuple, but this is {article(base)}", node.base.span,
                      "not-a-tuple")  # fmt: skip
        return set_type(node, ERROR)
    if not 1 <= node.field <= len(base.elements):
        checker.error(
            f"there is no element {node.field}: this tuple has {len(base.elements)}", node.span, "tuple-index",
            f"its type is {base}",
        )  # fmt: skip
        return set_type(node, ERROR)
    set_type(node, base.elements[node.field - 1], node.base)
    literal = node.base
    while isinstance(literal, Parenthesized):
        literal = literal.inner
    if isinstance(literal, TupleLiteral):
        node.ad_level = literal.elements[node.field - 1].ad_level
    return node.type


# ---------------------------------------------------------------- indexing


def _indexed(checker: Checker, node: Indexed) -> StanType:
    for index in node.indices:
        check_index(checker, index)
    check_expression(checker, node.base)
    return set_indexed(checker, node)


def check_index(checker: Checker, index: Index) -> None:
    """Fills one index; a plain expression of type `array[] int` makes it `MULTIPLE`."""
    if index.kind in (IndexKind.SINGLE, IndexKind.MULTIPLE):
        assert index.lower is not None
        type_ = check_expression(checker, index.lower)
        if type_ == _INDEX_ARRAY:
            index.kind = IndexKind.MULTIPLE
        elif type_ != INT and type_ is not ERROR:
            checker.error(
                f"an index must be an int, an array of int or a range, but this is {article(type_)}",
                index.lower.span,
                "index-type",
            )
        return
    for bound in (index.lower, index.upper):
        if bound is not None:
            check_int(checker, bound, "the bound of an index range")


_INDEX_ARRAY = array_of(INT)


def set_indexed(checker: Checker, node: Indexed) -> StanType:
    """The type of `x[i, j]`, when `x` and the indices are checked."""
    base = node.base.type
    if base is ERROR:
        return set_type(node, ERROR)
    multiple = tuple([index.kind is not IndexKind.SINGLE for index in node.indices])
    type_ = indexed_type(base, multiple)
    if type_ is None:
        depth = _dimensions(base)
        if depth == 0:
            message = f"{article(base)} cannot be indexed"
        else:
            indices = "one index" if depth == 1 else f"{depth} indices"
            message = f"{article(base)} takes at most {indices}, but there are {len(multiple)}"
        checker.error(message, node.span, "too-many-indices")
        return set_type(node, ERROR)
    return set_type(node, type_, node.base)


@cache
def indexed_type(base: StanType, multiple: tuple[bool, ...]) -> StanType | None:
    """The type of `base` with these indices (True: multiple); None if there are too many."""
    kept = 0
    position = 0
    if isinstance(base, ArrayType):
        position = min(base.rank, len(multiple))
        kept = sum(multiple[:position])
        if base.rank > len(multiple):
            return array_of(base.element, kept + base.rank - len(multiple))
        base = base.element
    rest = list(multiple[position:])
    if rest:
        inner: StanType | None = None
        if base in _VECTOR_ELEMENT and len(rest) == 1:
            inner = base if rest[0] else _VECTOR_ELEMENT[base]
        elif base in _MATRIX_PARTS and len(rest) <= 2:
            inner = _MATRIX_PARTS[base][rest[0], rest[1] if len(rest) == 2 else None]
        if inner is None:
            return None
        base = inner
    return array_of(base, kept)


def _dimensions(type_: StanType) -> int:
    """How many indices a type takes."""
    if isinstance(type_, ArrayType):
        return type_.rank + _dimensions(type_.element)
    return 1 if type_ in _VECTOR_ELEMENT else 2 if type_ in _MATRIX_PARTS else 0


# ---------------------------------------------------------------- calls


def check_arguments(checker: Checker, node: Call) -> None:
    """Checks the arguments of a call, except for those that name a function."""
    callbacks = callback_positions(node.name)
    for position, argument in enumerate(node.arguments):
        if position not in callbacks:
            check_expression(checker, argument)


def _call(checker: Checker, node: Call) -> StanType:
    check_arguments(checker, node)
    type_ = resolve_call(checker, node)
    if type_ == VOID:
        checker.error(
            f"'{node.name}' returns nothing and cannot be used as a value", node.span, "void-value",
            f"call it as a statement: {node.name}(...);",
        )  # fmt: skip
        node.type = ERROR
    return node.type


_CHECKS: dict[type[SyntaxNode], Callable[[Checker, Any], StanType]] = {
    IntLiteral: _int_literal,
    RealLiteral: _real_literal,
    ImaginaryLiteral: _imaginary_literal,
    StringLiteral: _string_literal,
    Variable: _variable,
    Unary: _operators,
    Binary: _operators,
    Conditional: _conditional,
    Parenthesized: _parenthesized,
    ArrayLiteral: _array_literal,
    RowVectorLiteral: _row_vector_literal,
    TupleLiteral: _tuple_literal,
    TupleProjection: _tuple_projection,
    Indexed: _indexed,
    Call: _call,
}
