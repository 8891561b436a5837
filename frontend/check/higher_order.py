"""Calls of library functions that take a function: solvers, integrators, `reduce_sum`, `map_rect`, Laplace.

Source: Stan Functions Reference, "Higher-Order Functions", "Embedded Laplace Approximation".
"""

from __future__ import annotations

from ulam.frontend.check.calls import check_unnormalized, report_ambiguous, signature_of
from ulam.frontend.check.context import (
    ERROR,
    Checker,
    article,
    highest_ad_level,
    is_data,
    is_discrete,
)
from ulam.frontend.diagnostics import Note
from ulam.frontend.functions import higher_order, signatures
from ulam.frontend.functions.type_codes import arguments_of, code_of, type_of
from ulam.frontend.promotion import promote, promotion_cost
from ulam.frontend.stan_types import INT, REAL, ArrayType, FunctionType, StanType
from ulam.frontend.syntax import Call, Expression, FunctionDefinition, Variable
from ulam.library.functions import DENSITIES, FunctionKind, kind_of, normalized_name
from ulam.library.records import record

Formals = tuple[tuple[bool, StanType], ...]  # (data only, type)

_NOT_PASSED = (FunctionKind.RNG, FunctionKind.LP, FunctionKind.JACOBIAN, *DENSITIES)


@record(slots=True)
class Mismatch:
    """Why a function or its arguments do not fit; `argument` is a position in the call."""

    argument: int
    reason: str
    code: str = "callback-type"


def resolve_higher_order(checker: Checker, node: Call) -> StanType:
    """Checks the callback and the other arguments; fills the node."""
    node.type = _result_type(node.name)
    if not node.arguments:
        checker.error(f"'{node.name}' needs a function as its first argument", node.span, "argument-count")
        return node.type
    overloads = callback_overloads(checker, node, 0)
    if overloads is None or any(argument.type is ERROR for argument in node.arguments[1:]):
        return node.type
    mismatch: Mismatch | None = None
    fitting: list[tuple[FunctionDefinition, Formals]] = []
    for definition in overloads:
        formals = _formals_for(node, definition)
        if isinstance(formals, Mismatch):
            mismatch = mismatch or formals
            continue
        found = check_formals(node.arguments[1:], formals, first=1)
        if found is None:
            fitting.append((definition, formals))
        else:
            mismatch = found
    if fitting:
        chosen = choose_overload(checker, node, 0, node.arguments[1:], fitting)
        if chosen is not None:
            _apply(node, *chosen)
            checker.called(chosen[0])
        return node.type
    assert mismatch is not None
    at_fault = node.arguments[mismatch.argument].span if mismatch.argument < len(node.arguments) else node.span
    is_below = checker.source.position(at_fault.start)[0] > checker.source.position(node.span.start)[0]
    notes = (Note("this argument", at_fault),) if is_below else ()
    span = node.span if is_below else at_fault
    checker.error(f"in the call of '{node.name}': {mismatch.reason}", span, mismatch.code, notes=notes)
    return node.type


def _result_type(name: str) -> StanType:
    if name in higher_order.VARIADIC:
        return type_of(higher_order.VARIADIC[name].result)
    if name in higher_order.REDUCE_SUM:
        return REAL
    overloads = signatures.overloads(name)
    assert overloads is not None
    return type_of(next(iter(overloads.results.values())))


def callback_overloads(checker: Checker, node: Call, position: int) -> list[FunctionDefinition] | None:
    """The user's functions that the argument names; reports if it does not name any."""
    argument = node.arguments[position]
    argument.type = ERROR
    name = normalized_name(argument.name) if isinstance(argument, Variable) else ""
    definitions = checker.functions.get(name)
    if definitions and name not in checker.symbols:
        if isinstance(argument, Variable) and argument.name != name:
            check_unnormalized(checker, argument.name, argument.span)
        return definitions
    if not isinstance(argument, Variable) or name in checker.symbols:
        message = f"argument {position + 1} of '{node.name}' must be the name of a function"
        checker.error(message, argument.span, "callback-name")
    elif checker.is_function(name):
        checker.error(
            f"argument {position + 1} of '{node.name}' must be a function of the functions block, "
            f"but '{name}' is a library function",
            argument.span, "callback-name", "write a function that calls it",
        )  # fmt: skip
    else:
        checker.error(
            f"there is no function '{argument.name}'", argument.span, "undeclared-function",
            checker.suggestion(name, functions=True),
        )  # fmt: skip
    return None


def _formals_for(node: Call, definition: FunctionDefinition) -> Formals | Mismatch:
    """What the call must pass after the callback; a mismatch if the callback itself does not fit."""
    own = tuple((argument.data_only, argument.type) for argument in definition.arguments)
    if node.name in higher_order.VARIADIC:
        variadic = higher_order.VARIADIC[node.name]
        required = arguments_of(variadic.formals)
        mismatch = check_callback(definition, required, type_of(variadic.callback_result))
        return mismatch or arguments_of(variadic.control) + own[len(required) :]
    if node.name in higher_order.REDUCE_SUM:
        return _reduce_sum_formals(node, definition, own)
    overloads = signatures.overloads(node.name)
    assert overloads is not None
    mismatch = None
    for signature in overloads.all():
        function = signature.arguments[0]
        assert isinstance(function, FunctionType)
        if len(own) != len(function.arguments):
            counts = f"{len(function.arguments)} arguments, but '{definition.name}' has {len(own)}"
            return Mismatch(0, f"the function must have {counts}")
        mismatch = check_callback(definition, function.arguments, function.result)
        if mismatch is None and len(signature.arguments) == len(node.arguments):
            return tuple(
                (position in signature.data_only, formal) for position, formal in enumerate(signature.arguments)
            )[1:]
    counts = " or ".join(str(len(signature.arguments)) for signature in overloads.all())
    return mismatch or Mismatch(
        len(node.arguments), f"it takes {counts} arguments, but {len(node.arguments)} are given", "argument-count"
    )


def _reduce_sum_formals(node: Call, definition: FunctionDefinition, own: Formals) -> Formals | Mismatch:
    if len(node.arguments) < 3:
        needs = "it needs a function, an array to slice and a grain size"
        return Mismatch(len(node.arguments), needs, "argument-count")
    sliced = node.arguments[1].type
    if not isinstance(sliced, ArrayType):
        return Mismatch(1, f"the sliced argument must be an array, but this is {article(sliced)}", "argument-type")
    if code_of(sliced.element) not in higher_order.REDUCE_SUM_ELEMENTS:
        return Mismatch(1, f"arrays of {sliced.element} cannot be sliced", "argument-type")
    if not own or not isinstance(own[0][1], ArrayType):
        return Mismatch(0, f"the first argument of '{definition.name}' must be an array, which is sliced")
    required = (own[0], (True, INT), (True, INT))
    mismatch = check_callback(definition, required, REAL, densities=True)
    return mismatch or (own[0], (False, INT), *own[3:])


def check_callback(
    definition: FunctionDefinition, required: Formals, result: StanType, *, densities: bool = False
) -> Mismatch | None:
    """Whether a function begins with the required formals, exactly, and returns what it must."""
    name = definition.name
    kind = kind_of(name)
    if kind in _NOT_PASSED and not (densities and kind.is_density):
        return Mismatch(0, f"'{name}' cannot be passed, because its name ends in {kind.ending}")
    if definition.result != result:
        returned = f"'{name}' returns {article(definition.result)}"
        return Mismatch(0, f"the function must return {article(result)}, but {returned}")
    if len(definition.arguments) < len(required):
        counts = f"{len(required)} arguments, but '{name}' has {len(definition.arguments)}"
        return Mismatch(0, f"the function must have at least {counts}")
    for number, (formal, (data_only, type_)) in enumerate(zip(definition.arguments, required, strict=False), 1):
        if formal.type != type_:
            return Mismatch(0, f"argument {number} of '{name}' must be {article(type_)}, but is {article(formal.type)}")
        if formal.data_only and not data_only:
            return Mismatch(0, f"argument {number} of '{name}' cannot be marked 'data'")
    return None


def check_formals(arguments: list[Expression], formals: Formals, first: int) -> Mismatch | None:
    """Whether the arguments fit; positions in the call begin at `first`."""
    if len(arguments) != len(formals):
        counts = f"it takes {len(formals) + first} arguments, but {len(arguments) + first} are given"
        return Mismatch(min(len(arguments), len(formals)) + first, counts, "argument-count")
    for position, (argument, (data_only, formal)) in enumerate(zip(arguments, formals, strict=True), first):
        if promotion_cost(argument.type, formal) is None:
            reason = f"argument {position + 1} must be {article(formal)}, but this is {article(argument.type)}"
            return Mismatch(position, reason, "argument-type")
        if data_only and not is_data(argument):
            reason = f"argument {position + 1} must be data, but this may depend on parameters"
            return Mismatch(position, reason, "data-required")
    return None


def choose_overload(
    checker: Checker,
    node: Call,
    position: int,
    arguments: list[Expression],
    fitting: list[tuple[FunctionDefinition, Formals]],
) -> tuple[FunctionDefinition, Formals] | None:
    """The overload of the callback at `position` with the cheapest promotions; reports a tie."""
    types = tuple(argument.type for argument in arguments)
    costs = [signatures.total_cost(types, tuple(type_ for _, type_ in formals)) or 0 for _, formals in fitting]
    best = [overload for overload, cost in zip(fitting, costs, strict=True) if cost == min(costs)]
    if len(best) == 1:
        return best[0]
    definition = best[0][0]
    candidates = [signature_of(overload) for overload, _ in best]
    report_ambiguous(checker, definition.name, arguments, candidates, node.arguments[position].span)
    return None


def function_type(definition: FunctionDefinition) -> FunctionType:
    """The type of a function as an argument."""
    return FunctionType(tuple((a.data_only, a.type) for a in definition.arguments), definition.result)


def _apply(node: Call, definition: FunctionDefinition, formals: Formals) -> None:
    callback = node.arguments[0]
    callback.type = function_type(definition)
    if isinstance(callback, Variable) and callback.name != definition.name:
        node.unnormalized = True  # `foo_lupdf` as callback: its constants may be dropped
        callback.name = definition.name
    node.callback = definition
    node.arguments[1:] = [
        promote(argument, formal) for argument, (_, formal) in zip(node.arguments[1:], formals, strict=True)
    ]
    node.formal_types = (callback.type, *(formal for _, formal in formals))
    if not is_discrete(node.type):
        node.ad_level = highest_ad_level(node.arguments[1:])
