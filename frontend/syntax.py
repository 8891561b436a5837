"""The abstract syntax tree of a Stan program.

One tree serves before and after type checking: the parser leaves `Expression.type` and the other fields marked
"type checker" at their defaults, the type checker fills them in place and inserts `Promotion` nodes.
Every node carries a `Span`, the characters of the source that it was read from. Nodes are equal only to themselves
(and an `__eq__` for each class would be a fifth of the time of importing this module).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, fields
from enum import Enum
from typing import TypeVar

from ulam.frontend.stan_types import VOID, StanType
from ulam.library.records import record


@record(slots=True, frozen=True)
class Span:
    """Half-open range of character offsets, [start, end), in the source text."""

    start: int
    end: int


class SyntaxNode:
    """Base of all nodes."""

    __slots__ = ()
    span: Span


# ---------------------------------------------------------------- expressions


class AdLevel(Enum):
    """Whether Stan's static rule calls an expression autodiff (`AUTODIFF`) or data (`DATA`).

    Decides what `~` and `_lupdf` drop (docs/architecture.md, "What ~ drops"); never changed by later passes.
    """

    DATA = "data"
    AUTODIFF = "autodiff"


@record(slots=True, kw_only=True, eq=False)
class Expression(SyntaxNode):
    """Base of expressions."""

    span: Span
    type: StanType = VOID  # type checker
    ad_level: AdLevel = AdLevel.DATA  # type checker


@record(slots=True, eq=False)
class IntLiteral(Expression):
    text: str  # digits as written, underscores removed


@record(slots=True, eq=False)
class RealLiteral(Expression):
    text: str


@record(slots=True, eq=False)
class ImaginaryLiteral(Expression):
    text: str  # without the `i`


@record(slots=True, eq=False)
class StringLiteral(Expression):
    """Only in print, reject, fatal_error and profile."""

    text: str


@record(slots=True, eq=False)
class Variable(Expression):
    name: str


@record(slots=True, eq=False)
class Unary(Expression):
    """Prefix `- + !` and postfix `'`."""

    operator: str
    operand: Expression


@record(slots=True, eq=False)
class Binary(Expression):
    """`|| && == != < <= > >= + - * / % .* ./ %/% \\ ^ .^` (`||` and `&&` are lazy)."""

    operator: str
    left: Expression
    right: Expression


@record(slots=True, eq=False)
class Conditional(Expression):
    """`condition ? then : otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression


class IndexKind(Enum):
    SINGLE = "single"  # x[i]       i is an int
    MULTIPLE = "multiple"  # x[idx]     idx is an array of int
    BETWEEN = "between"  # x[a:b]
    FROM = "from"  # x[a:]
    TO = "to"  # x[:b]
    ALL = "all"  # x[:] or x[]


@record(slots=True, eq=False)
class Index(SyntaxNode):
    """One index. The parser writes `SINGLE` for any plain expression; the type checker makes it `MULTIPLE`."""

    span: Span
    kind: IndexKind
    lower: Expression | None = None  # the expression of SINGLE and MULTIPLE; `a` of BETWEEN and FROM
    upper: Expression | None = None  # `b` of BETWEEN and TO


@record(slots=True, eq=False)
class Indexed(Expression):
    base: Expression
    indices: list[Index]


@record(slots=True, eq=False)
class TupleProjection(Expression):
    base: Expression
    field: int  # from 1


@record(slots=True, eq=False)
class ArrayLiteral(Expression):
    """`{a, b}`."""

    elements: list[Expression]


@record(slots=True, eq=False)
class RowVectorLiteral(Expression):
    """`[a, b]`; of row vectors it is a matrix literal."""

    elements: list[Expression]


@record(slots=True, eq=False)
class TupleLiteral(Expression):
    elements: list[Expression]


class CallKind(Enum):
    LIBRARY = "library"
    USER = "user"


@record(slots=True, eq=False)
class Call(Expression):
    """`f(a, b)`, `f(y | a, b)`, `target()`; also `~` statements refer to one through `Tilde.call`."""

    name: str
    arguments: list[Expression]
    name_span: Span
    has_bar: bool = False  # `f(y | ...)`
    kind: CallKind = CallKind.LIBRARY  # type checker
    function: FunctionDefinition | None = None  # type checker: the chosen overload of a user function
    callback: FunctionDefinition | None = None  # type checker: user function passed to a higher-order function
    covariance: FunctionDefinition | None = None  # type checker: that of a Laplace approximation's latent variables
    unnormalized: bool = False  # type checker: `_lupdf`, `_lupmf`, `~`: may drop constants
    formal_types: tuple[StanType, ...] = ()  # type checker: argument types of the chosen library signature


@record(slots=True, eq=False)
class Promotion(Expression):
    """An implicit conversion, inserted by the type checker: int → real → complex, element-wise in containers."""

    operand: Expression


@record(slots=True, eq=False)
class Parenthesized(Expression):
    """`(e)`. Kept for the formatter; has the type of `inner`."""

    inner: Expression


# ---------------------------------------------------------------- declarations


class ConstraintKind(Enum):
    NONE = "none"
    BOUNDS = "bounds"  # <lower=, upper=>, each may be absent
    OFFSET_MULTIPLIER = "offset_multiplier"  # <offset=, multiplier=>
    SIMPLEX = "simplex"
    ORDERED = "ordered"
    POSITIVE_ORDERED = "positive_ordered"
    UNIT_VECTOR = "unit_vector"
    SUM_TO_ZERO_VECTOR = "sum_to_zero_vector"
    SUM_TO_ZERO_MATRIX = "sum_to_zero_matrix"
    CHOLESKY_FACTOR_CORR = "cholesky_factor_corr"
    CHOLESKY_FACTOR_COV = "cholesky_factor_cov"
    CORR_MATRIX = "corr_matrix"
    COV_MATRIX = "cov_matrix"
    COLUMN_STOCHASTIC_MATRIX = "column_stochastic_matrix"
    ROW_STOCHASTIC_MATRIX = "row_stochastic_matrix"


@record(slots=True, eq=False)
class Constraint(SyntaxNode):
    span: Span
    kind: ConstraintKind
    lower: Expression | None = None
    upper: Expression | None = None
    offset: Expression | None = None
    multiplier: Expression | None = None


@record(slots=True, eq=False)
class SizedType(SyntaxNode):
    """A type as declared, with sizes: `array[N, M] matrix<lower=0>[R, C]`.

    `base` names the written type (`vector`, `simplex`, `cholesky_factor_corr`, ...); `sizes` are those in its own
    brackets (for `cholesky_factor_cov[M]` one or two), `array_sizes` those of `array[...]`, outermost first.
    """

    span: Span
    base: str
    array_sizes: list[Expression]
    sizes: list[Expression]
    constraint: Constraint
    fields: list[SizedType] = field(default_factory=list)  # of `tuple(...)`
    type: StanType = VOID  # the unsized type; set by the parser


# ---------------------------------------------------------------- statements


@record(slots=True, kw_only=True, eq=False)
class Statement(SyntaxNode):
    """Base of statements."""

    span: Span


@record(slots=True, eq=False)
class Declaration(Statement):
    """One declared name. `real a, b = 2;` becomes two Declarations with the same `sized_type` object."""

    sized_type: SizedType
    name: str
    name_span: Span
    initial: Expression | None = None


@record(slots=True, eq=False)
class Assignment(Statement):
    """`target op value`; `target` is a Variable, Indexed or TupleProjection of one; op is `= += -= *= /= .*= ./=`.

    `value` stays the written right-hand side; the lowering to the `stan` dialect reads compound operators as
    `target = target op value`.
    """

    target: Expression
    operator: str
    value: Expression


@record(slots=True, eq=False)
class TupleAssignment(Statement):
    """`(a, b[2], (c, d)) = e`."""

    targets: TupleLiteral
    value: Expression


@record(slots=True, eq=False)
class TargetIncrement(Statement):
    """`target += e;`"""

    value: Expression


@record(slots=True, eq=False)
class JacobianIncrement(Statement):
    """`jacobian += e;`"""

    value: Expression


@record(slots=True, eq=False)
class Truncation(SyntaxNode):
    """`T[lower, upper]`. The type checker chooses the distribution function that it calls: `formal_types` are those of
    its arguments, the bound first; `function` is its definition if the program has it."""

    span: Span
    lower: Expression | None
    upper: Expression | None
    formal_types: tuple[StanType, ...] = ()
    function: FunctionDefinition | None = None


@record(slots=True, eq=False)
class Tilde(Statement):
    """`y ~ normal(mu, sigma) T[l, u];`. `call` is made by the type checker: the unnormalised density, variate first."""

    variate: Expression
    distribution: str
    distribution_span: Span
    arguments: list[Expression]
    truncation: Truncation | None = None
    call: Call | None = None  # type checker


@record(slots=True, eq=False)
class CallStatement(Statement):
    """A call of a function without result."""

    call: Call


class PrintKind(Enum):
    PRINT = "print"
    REJECT = "reject"
    FATAL_ERROR = "fatal_error"


@record(slots=True, eq=False)
class Print(Statement):
    """`print(...)`, `reject(...)`, `fatal_error(...)`."""

    kind: PrintKind
    arguments: list[Expression]


@record(slots=True, eq=False)
class BlockStatement(Statement):
    statements: list[Statement]


@record(slots=True, eq=False)
class Profile(Statement):
    name: str
    statements: list[Statement]


@record(slots=True, eq=False)
class If(Statement):
    condition: Expression
    then: Statement
    otherwise: Statement | None = None


@record(slots=True, eq=False)
class While(Statement):
    condition: Expression
    body: Statement


@record(slots=True, eq=False)
class For(Statement):
    """`for (variable in lower:upper) body`."""

    variable: str
    variable_span: Span
    lower: Expression
    upper: Expression
    body: Statement


@record(slots=True, eq=False)
class ForEach(Statement):
    """`for (variable in container) body`: over arrays, and the entries of vectors and matrices (column-major)."""

    variable: str
    variable_span: Span
    container: Expression
    body: Statement


@record(slots=True, eq=False)
class Break(Statement):
    pass


@record(slots=True, eq=False)
class Continue(Statement):
    pass


@record(slots=True, eq=False)
class Return(Statement):
    value: Expression | None = None


@record(slots=True, eq=False)
class Empty(Statement):
    """`;`"""


# ---------------------------------------------------------------- program


@record(slots=True, eq=False)
class FormalArgument(SyntaxNode):
    span: Span
    name: str
    type: StanType
    data_only: bool = False  # declared `data T x`


@record(slots=True, eq=False)
class FunctionDefinition(SyntaxNode):
    """A function of the `functions` block, or of `library/*.stan`. `body` is None for a forward declaration, and for
    an external function, whose kernel is then `external` (see `library/externals.py`)."""

    span: Span
    name: str
    name_span: Span
    result: StanType  # VOID if it returns nothing
    arguments: list[FormalArgument]
    body: BlockStatement | None
    external: str | None = None  # type checker


@record(slots=True, eq=False)
class Program(SyntaxNode):
    """A whole program. A block that is not written is None; a block that is written but empty is an empty Block."""

    span: Span
    functions: list[FunctionDefinition] = field(default_factory=list)
    data: BlockStatement | None = None
    transformed_data: BlockStatement | None = None
    parameters: BlockStatement | None = None
    transformed_parameters: BlockStatement | None = None
    model: BlockStatement | None = None
    generated_quantities: BlockStatement | None = None


Node = TypeVar("Node", bound=SyntaxNode)


def nodes_below(node: SyntaxNode, kind: type[Node]) -> Iterator[Node]:
    """All nodes of a kind in a tree, in the order of the text; functions that calls refer to are not entered."""
    pending = [node]
    while pending:
        found = pending.pop()
        if isinstance(found, FunctionDefinition):
            continue
        if isinstance(found, kind):
            yield found
        parts: list[SyntaxNode] = []
        for each in fields(found):  # pyright: ignore[reportArgumentType]
            value = getattr(found, each.name)
            parts += [part for part in (value if isinstance(value, list) else (value,)) if isinstance(part, SyntaxNode)]
        pending += reversed(parts)
