"""Lowers calls of the embedded Laplace approximation: takes tuples of arguments apart and calls the covariance.

    laplace_marginal(likelihood, (a, b), block_size, covariance, (c, d), (control))

is a call of library/laplace.stan's function with the closure of `likelihood` over a and b, the block size, the matrix
`covariance(c, d)` and the elements of `control`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Attribute, SSAValue

from ulam.dialects import stan
from ulam.frontend import syntax
from ulam.frontend.functions import higher_order
from ulam.frontend.functions.type_codes import arguments_of
from ulam.frontend.lower.builder import dialect_type
from ulam.frontend.stan_types import INT, MATRIX, VECTOR, FunctionType, StanType, TupleType

if TYPE_CHECKING:
    from ulam.frontend.lower.expressions import ExpressionLowering

Argument = tuple[SSAValue, bool]
"""A value, and whether it is autodiff."""


def laplace_call(low: ExpressionLowering, e: syntax.Call, result: Attribute | None) -> stan.CallOp:
    """The call of the library's function."""
    assert e.covariance is not None
    written = [a for a in e.arguments if not isinstance(a.type, FunctionType)]
    if e.callback is not None:
        likelihood, count = low.functions.user_symbol(e.callback), 1
        captured = _elements(low, written[0])
    else:
        name = higher_order.laplace_likelihood_function(e.name)
        codes = higher_order.laplace_likelihood(e.name)
        assert name is not None and codes is not None
        formals = tuple(type_ for _, type_ in arguments_of(codes))
        likelihood, count = low.functions.library_symbol(name, (VECTOR, *formals)), len(formals)
        captured = [(low.lower(a), _is_autodiff(a)) for a in written[:count]]
    block_size, arguments, *control = written[count:]
    own: list[Argument] = [(low.lower(block_size), False), _covariance(low, e.covariance, arguments)]
    types: tuple[StanType, ...] = (INT, MATRIX)
    for given in control:
        own += _elements(low, given)
        types += tuple(type_ for _, type_ in arguments_of(higher_order.LAPLACE_CONTROL))
    values = [*captured, *own]
    call = stan.CallOp(
        e.name,
        [value for value, _ in values],
        result,
        [int(bit) for _, bit in values],
        unnormalized=e.unnormalized,
        callback=likelihood,
        captured=[int(n < len(captured)) for n in range(len(values))],
        definition=low.functions.library_symbol(higher_order.laplace_definition(e.name), types),
    )
    return low.emit(call, e.span)


def _covariance(low: ExpressionLowering, function: syntax.FunctionDefinition, given: syntax.Expression) -> Argument:
    values = _elements(low, given)
    bits = [int(bit) for _, bit in values]
    symbol = low.functions.user_symbol(function)
    call = stan.CallOp(symbol, [value for value, _ in values], stan.MATRIX, bits, user=True)
    return low.value(call, given.span), any(bits)


def _elements(low: ExpressionLowering, given: syntax.Expression) -> list[Argument]:
    """The elements of a tuple: those of a literal one by one, of the types that the tuple is promoted to."""
    type_ = given.type
    assert isinstance(type_, TupleType)
    inner = given
    while isinstance(inner, syntax.Promotion | syntax.Parenthesized):
        inner = inner.operand if isinstance(inner, syntax.Promotion) else inner.inner
    if isinstance(inner, syntax.TupleLiteral):
        pairs = zip(inner.elements, type_.elements, strict=True)
        return [(low.coerce(x.span, low.lower(x), dialect_type(t)), _is_autodiff(x)) for x, t in pairs]
    whole = low.lower(given)
    bit = _is_autodiff(given)
    return [(low.value(stan.FieldOp(whole, n), given.span), bit) for n in range(1, len(type_.elements) + 1)]


def _is_autodiff(e: syntax.Expression) -> bool:
    return e.ad_level is syntax.AdLevel.AUTODIFF
