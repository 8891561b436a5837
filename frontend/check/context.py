"""What the parts of the type checker share: the names in scope, where in the program we are, the messages so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import Enum
from types import MappingProxyType, TracebackType

from ulam.frontend.diagnostics import Diagnostic, Note, Severity
from ulam.frontend.functions import higher_order, signatures
from ulam.frontend.functions.renamed_functions import DISTRIBUTIONS_OF_OTHER_LANGUAGES, OF_OTHER_LANGUAGES
from ulam.frontend.functions.support import NOT_SUPPORTED, supports_name, unsupported_type
from ulam.frontend.source import Source
from ulam.frontend.spelling import nearest
from ulam.frontend.stan_types import INT, ArrayType, BasicType, StanType, TupleType
from ulam.frontend.syntax import AdLevel, Call, Expression, FunctionDefinition, Span, Variable
from ulam.library import own_libraries
from ulam.library.externals import ExternalForm
from ulam.library.functions import FunctionKind, kind_of, named
from ulam.library.records import record

# The type of an expression that was reported already: fits everywhere, so that one mistake gives one message.
ERROR = BasicType("error")


class Origin(Enum):
    """The block in which something is declared, or in which we are."""

    FUNCTIONS = "functions"
    DATA = "data"
    TRANSFORMED_DATA = "transformed data"
    PARAMETERS = "parameters"
    TRANSFORMED_PARAMETERS = "transformed parameters"
    MODEL = "model"
    GENERATED_QUANTITIES = "generated quantities"


# Stan's static rule: what is declared here is autodiff, unless it is of ints.
_AUTODIFF_ORIGINS = {Origin.FUNCTIONS, Origin.PARAMETERS, Origin.TRANSFORMED_PARAMETERS, Origin.MODEL}


@record(slots=True)
class Symbol:
    """A variable, loop variable or function argument."""

    name: str
    type: StanType
    origin: Origin
    span: Span
    is_global: bool = False  # declared at the top of a block other than model
    read_only: bool = False  # loop variables and function arguments
    ad_level: AdLevel = AdLevel.DATA


@record(slots=True)
class Checker:
    """The state of one run of the type checker."""

    source: Source
    library_mode: bool = False
    externals: Mapping[str, ExternalForm] = MappingProxyType({})  # those that are given, by name
    diagnostics: list[Diagnostic] = field(default_factory=list)
    symbols: dict[str, Symbol] = field(default_factory=dict)
    functions: dict[str, list[FunctionDefinition]] = field(default_factory=dict)
    origin: Origin = Origin.FUNCTIONS
    function: FunctionDefinition | None = None  # whose body we are in
    loop_depth: int = 0
    in_sizes: bool = False  # in a size of a global declaration
    second_order: list[Call] = field(default_factory=list)  # calls that differentiate their callback twice
    scopes: list[list[str]] = field(default_factory=list)
    # By the function in whose body they stand (None: in a block): what is not supported there, and what it calls.
    not_supported: dict[FunctionDefinition | None, list[Diagnostic]] = field(default_factory=dict)
    calls: dict[FunctionDefinition | None, set[FunctionDefinition]] = field(default_factory=dict)
    _reported: set[str] = field(default_factory=set)

    # ---------------------------------------------------------------- messages

    def error(self, message: str, span: Span, code: str, help: str | None = None, notes: tuple[Note, ...] = ()) -> None:
        """Records an error; checking goes on."""
        self.diagnostics.append(Diagnostic(Severity.ERROR, message, span, self.source, code, help, notes))

    def warning(self, message: str, span: Span, code: str, help: str | None = None) -> None:
        """Records a warning."""
        self.diagnostics.append(Diagnostic(Severity.WARNING, message, span, self.source, code, help))

    # ---------------------------------------------------------------- what is not supported yet

    def unsupported(self, message: str, span: Span, help: str | None) -> None:
        """Records what the compiler refuses. It is an error if what we are in can be reached from a block."""
        if self.library_mode:
            return
        found = self.not_supported.setdefault(self.function, [])
        line = self.source.position(span.start)[0]
        if any(d.message == message and self.source.position(d.span.start)[0] == line for d in found):
            return
        found.append(Diagnostic(Severity.ERROR, message, span, self.source, NOT_SUPPORTED, help))

    def check_supported_type(self, type_: StanType, span: Span) -> None:
        """Reports a type that values cannot have yet, where it comes into the program."""
        problem = unsupported_type(type_)
        if problem is not None:
            self.unsupported(f"{problem[0]} are not supported yet", span, problem[1])

    def called(self, definition: FunctionDefinition) -> None:
        """Notes that what we are in calls a function of the program."""
        self.calls.setdefault(self.function, set()).add(definition)

    def report_unsupported(self) -> None:
        """Makes errors of what is not supported in blocks and in the functions that they call."""
        reached: set[FunctionDefinition | None] = {None}
        pending: list[FunctionDefinition | None] = [None]
        while pending:
            caller = pending.pop()
            self.diagnostics += self.not_supported.get(caller, ())
            new = self.calls.get(caller, set()) - reached
            reached |= new
            pending += new

    # ---------------------------------------------------------------- scopes

    def scope(self) -> _Scope:
        """Names declared inside end with the `with` statement."""
        return _Scope(self)

    def declare(
        self,
        name: str,
        type_: StanType,
        span: Span,
        *,
        origin: Origin | None = None,
        is_global: bool = False,
        read_only: bool = False,
    ) -> Symbol:
        """Brings a variable into scope; a second one of the same name is an error (Stan has no shadowing)."""
        origin = origin or self.origin
        autodiff = origin in _AUTODIFF_ORIGINS and not is_discrete(type_)
        symbol = Symbol(name, type_, origin, span, is_global, read_only, AdLevel.AUTODIFF if autodiff else AdLevel.DATA)
        self.check_identifier(name, span)
        previous = self.symbols.get(name)
        if previous is not None:
            self.error(
                f"'{name}' is declared already",
                span,
                "name-in-use",
                "a variable cannot have the name of another one that can be seen from here",
                (Note(f"'{name}' is declared here", previous.span),),
            )
            return symbol
        if (written := named(name)).unnormalized:
            self.error(
                f"the name of a variable cannot end in '{written.ending}'", span, "unnormalized-suffix",
                "this suffix calls a density without its constant terms",
            )  # fmt: skip
        if name in self._reported:
            self._say_declared_below(symbol)
        self.symbols[name] = symbol
        if self.scopes:
            self.scopes[-1].append(name)
        return symbol

    def _say_declared_below(self, symbol: Symbol) -> None:
        """Adds to the report of a name that was not declared there that it is declared later."""
        message = f"'{symbol.name}' is not declared here"
        for number, found in enumerate(self.diagnostics):
            if found.message == message and found.span.start < symbol.span.start:
                line = self.source.position(symbol.span.start)[0]
                help = f"it is declared below, in line {line}; declare it before it is used"
                self.diagnostics[number] = replace(found, help=help)

    def check_identifier(self, name: str, span: Span) -> None:
        """Reports names that Stan reserves."""
        if name.endswith("__"):
            self.error(
                f"'{name}' cannot be a name: names that end in two underscores are reserved", span, "reserved-name"
            )
        elif name in RESERVED_WORDS:
            self.error(f"'{name}' cannot be a name: it is a reserved word", span, "reserved-name")

    # ---------------------------------------------------------------- where we are

    def kind(self) -> FunctionKind:
        """That of the function whose body we are in; outside of functions that of plain ones."""
        return FunctionKind.PLAIN if self.function is None else kind_of(self.function.name)

    def ad_level_of(self, symbol: Symbol) -> AdLevel:
        """Stan's static rule for a variable, here."""
        return AdLevel.DATA if self.origin is Origin.GENERATED_QUANTITIES else symbol.ad_level

    def is_function(self, name: str, *, of_others: bool = True) -> bool:
        """Whether `name` (normalised, not `_lupdf`) is a function of the user or of the library.

        Without `of_others` libraries of other packages are not read for it.
        """
        if name in self.functions or signatures.exists(name) or higher_order.is_variadic(name):
            return True
        if self.library_mode or not of_others or own_libraries.found() is not None:
            return False
        own_libraries.read()  # libraries of other packages: nobody else has this name
        return signatures.exists(name)

    def distributions(self) -> list[str]:
        """The names of all distributions, for suggestions."""
        return [named(n).stem for n in (*self.functions, *signatures.names()) if kind_of(n).is_density]

    def first_report(self, name: str) -> bool:
        """Whether a name that is not declared was not reported yet; each is reported once."""
        if name in self._reported:
            return False
        self._reported.add(name)
        return True

    def suggestion(self, name: str, *, functions: bool) -> str | None:
        """ "did you mean 'mu'?", if some name in scope is close."""
        if not functions:
            found = nearest(name, self.symbols)
        else:
            found = OF_OTHER_LANGUAGES.get(name)
            if found is None:
                names = (*self.functions, *signatures.names(), *higher_order.names())
                found = nearest(name, names, accept=lambda known: known in self.functions or supports_name(known))
        return f"did you mean '{found}'?" if found else None

    def suggested_distribution(self, name: str) -> str | None:
        """The same for the name of a distribution."""
        found = DISTRIBUTIONS_OF_OTHER_LANGUAGES.get(name)
        if found is None:
            found = nearest(name, self.distributions())
        return f"did you mean '{found}'?" if found else None


class _Scope:
    """The extent of the names declared inside a `with` statement."""

    __slots__ = ("checker",)

    def __init__(self, checker: Checker) -> None:
        self.checker = checker

    def __enter__(self) -> None:
        self.checker.scopes.append([])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in self.checker.scopes.pop():
            del self.checker.symbols[name]


# Kept for later by the language (Reference Manual, "Reserved names"); the parser knows the other keywords.
RESERVED_WORDS = frozenset(
    "generated quantities transformed repeat until then true false typedef struct var export extern static auto".split()
)


def article(type_: StanType) -> str:
    """The type with its article, for messages."""
    text = str(type_)
    return f"an {text}" if text[0] in "aeiou" else f"a {text}"


def highest_ad_level(expressions: Iterable[Expression]) -> AdLevel:
    """Autodiff if one of them is."""
    for expression in expressions:
        if expression.ad_level is AdLevel.AUTODIFF:
            return AdLevel.AUTODIFF
    return AdLevel.DATA


def set_type(expression: Expression, type_: StanType, *parts: Expression) -> StanType:
    """Sets the type, and the autodiff level from that of the parts."""
    expression.type = type_
    if type_ is not INT and highest_ad_level(parts) is AdLevel.AUTODIFF and not is_discrete(type_):
        expression.ad_level = AdLevel.AUTODIFF
    return type_


def is_discrete(type_: StanType) -> bool:
    """Whether all scalars in a value of this type are ints."""
    if isinstance(type_, ArrayType):
        return is_discrete(type_.element)
    if isinstance(type_, TupleType):
        return all(map(is_discrete, type_.elements))
    return type_ == INT


def contains_int(type_: StanType) -> bool:
    """Whether some scalar in a value of this type is an int."""
    if isinstance(type_, ArrayType):
        return contains_int(type_.element)
    if isinstance(type_, TupleType):
        return any(map(contains_int, type_.elements))
    return type_ == INT


def is_data(expression: Expression) -> bool:
    """Whether an argument can be passed where data are required.

    An int is never autodiff, but `p > 0.5` and `p > 0.5 ? 1 : 2` are no data if `p` is a parameter.
    """
    pending = [expression]
    while pending:
        part = pending.pop()
        if part.ad_level is AdLevel.AUTODIFF:
            return False
        if is_discrete(part.type) and not isinstance(part, Call):
            pending += parts_of(part)
    return True


def variables_of(expression: Expression) -> list[Variable]:
    """All variables in an expression, in order of appearance."""
    found: list[Variable] = []
    pending = [expression]
    while pending:
        part = pending.pop()
        if isinstance(part, Variable):
            found.append(part)
        else:
            pending += reversed(parts_of(part))
    return found


def parts_of(expression: Expression) -> list[Expression]:
    """The direct subexpressions."""
    parts: list[Expression] = []
    for name in ("operand", "left", "right", "condition", "then", "otherwise", "base", "inner"):
        part = getattr(expression, name, None)
        if isinstance(part, Expression):
            parts.append(part)
    for name in ("elements", "arguments"):
        parts += getattr(expression, name, ())
    for index in getattr(expression, "indices", ()):
        parts += [bound for bound in (index.lower, index.upper) if bound is not None]
    return parts
