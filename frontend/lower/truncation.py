"""Truncation of `~` statements, `y ~ d(...) T[a, b]`, as statements that normalise the density.

    if (y < a) target += -infinity;
    else if (y > b) target += -infinity;
    else target += -log_diff_exp(d_lcdf(b | ...), d_lcdf(a | ...));

Of a discrete distribution the bound `a` itself belongs to the interval: the mass up to `a - 1` is left out. A variate
that is a container is within the bounds if its smallest and largest entries are; its size counts if the parameters are
scalars, else each entry of the parameters has a mass of its own (with two bounds, unless the program's distribution
function is for containers alone).
Source: Stan Reference Manual, "Truncated distributions"; containers as stanc 2.39 does.
"""

from __future__ import annotations

from ulam.frontend import syntax
from ulam.frontend.promotion import promote
from ulam.frontend.stan_types import INT, REAL, ArrayType, BasicType, StanType, scalar_of
from ulam.frontend.syntax import AdLevel, Expression
from ulam.library.functions import FunctionKind
from ulam.library.records import record

INDEX = "index__"
"""Name of the loop variable; no name of a program ends like this."""


@record(slots=True)
class TruncatedDensity:
    """What the statements are made of."""

    call: syntax.Call
    tilde: syntax.Tilde

    @property
    def bounds(self) -> syntax.Truncation:
        assert self.tilde.truncation is not None
        return self.tilde.truncation

    @property
    def variate(self) -> Expression:
        return self.call.arguments[0]

    @property
    def parameters(self) -> list[Expression]:
        return self.tilde.arguments

    @property
    def discrete(self) -> bool:
        return scalar_of(self.variate.type) == INT

    # ------------------------------------------------------------ statements

    def normalization(self) -> syntax.Statement:
        lower, upper = self.bounds.lower, self.bounds.upper
        statement = self._mass_statement(lower, upper)
        if upper is not None:
            statement = self._outside(">", "max", upper, statement)
        if lower is not None:
            statement = self._outside("<", "min", lower, statement)
        return statement

    def _outside(self, operator: str, extremum: str, bound: Expression, inside: syntax.Statement) -> syntax.Statement:
        """`if (y operator bound) target += -infinity; else inside`."""
        span, variate = self.bounds.span, self.variate
        if _is_container(variate.type):
            variate = _library_call(extremum, [variate], variate.span, scalar_of(variate.type))
        condition = syntax.Binary(operator, variate, bound, span=span, type=INT)
        infinity = syntax.RealLiteral("inf", span=span, type=REAL)
        return syntax.If(condition, self._add_negative(infinity), inside, span=span)

    def _add_negative(self, value: Expression) -> syntax.Statement:
        span = self.bounds.span
        negated = syntax.Unary("-", value, span=span, type=REAL, ad_level=value.ad_level)
        return syntax.TargetIncrement(negated, span=span)

    def _mass_statement(self, lower: Expression | None, upper: Expression | None) -> syntax.Statement:
        """Subtracts the log of the probability of the interval."""
        parameters = self.parameters
        if lower is None:
            assert upper is not None
            return self._add_negative(self._sized(self._cumulative(FunctionKind.LOG_CDF, upper, parameters)))
        if upper is None:
            above = self._cumulative(FunctionKind.LOG_CCDF, self._below(lower), parameters)
            return self._add_negative(self._sized(above))
        containers = [p for p in parameters if _is_container(p.type)]
        if not containers or any(map(_is_container, self.bounds.formal_types)):
            return self._add_negative(self._sized(self._interval(lower, upper, parameters)))
        span = self.bounds.span
        index = syntax.Variable(INDEX, span=span, type=INT)
        entries = [_entry(p, index) if _is_container(p.type) else p for p in parameters]
        return syntax.For(
            INDEX,
            span,
            syntax.IntLiteral("1", span=span, type=INT),
            _library_call("size", [containers[0]], span, INT, AdLevel.DATA),
            self._add_negative(self._interval(lower, upper, entries)),
            span=span,
        )

    # ------------------------------------------------------------ expressions

    def _below(self, bound: Expression) -> Expression:
        if not self.discrete:
            return bound
        one = syntax.IntLiteral("1", span=bound.span, type=INT)
        return syntax.Binary("-", bound, one, span=bound.span, type=INT)

    def _interval(self, lower: Expression, upper: Expression, parameters: list[Expression]) -> Expression:
        masses = [
            self._cumulative(FunctionKind.LOG_CDF, upper, parameters),
            self._cumulative(FunctionKind.LOG_CDF, self._below(lower), parameters),
        ]
        return _library_call("log_diff_exp", masses, self.bounds.span, REAL)

    def _cumulative(self, kind: FunctionKind, bound: Expression, parameters: list[Expression]) -> Expression:
        """`d_lcdf(bound | parameters)`."""
        passed = [promote(a, t) for a, t in zip([bound, *parameters], self.bounds.formal_types, strict=True)]
        call = _library_call(kind.of(self.tilde.distribution), passed, self.tilde.distribution_span, REAL)
        if self.bounds.function is not None:
            call.kind, call.function = syntax.CallKind.USER, self.bounds.function
        return call

    def _sized(self, mass: Expression) -> Expression:
        """`mass`, times the number of variates if they share their parameters."""
        if not _is_container(self.variate.type) or any(_is_container(p.type) for p in self.parameters):
            return mass
        size = _library_call("size", [self.variate], mass.span, INT, AdLevel.DATA)
        count = syntax.Promotion(size, span=mass.span, type=REAL)
        return syntax.Binary("*", mass, count, span=mass.span, type=REAL, ad_level=mass.ad_level)


def _is_container(type_: StanType) -> bool:
    return not (isinstance(type_, BasicType) and type_.name in ("int", "real"))


def _entry(container: Expression, index: Expression) -> Expression:
    scalar = scalar_of(container.type)
    assert not isinstance(container.type, ArrayType) or container.type.rank == 1
    position = syntax.Index(index.span, syntax.IndexKind.SINGLE, index)
    return syntax.Indexed(container, [position], span=container.span, type=scalar, ad_level=container.ad_level)


def _library_call(
    name: str, arguments: list[Expression], span: syntax.Span, type_: StanType, ad_level: AdLevel | None = None
) -> syntax.Call:
    if ad_level is None:
        active = any(a.ad_level is AdLevel.AUTODIFF for a in arguments)
        ad_level = AdLevel.AUTODIFF if active and type_ != INT else AdLevel.DATA
    return syntax.Call(name, arguments, span, has_bar=True, span=span, type=type_, ad_level=ad_level)
