"""Calls: which function a name and its arguments mean, and whether it may be called here.

Candidates are the user's functions and the library's signatures of that name together; the cheapest promotion wins.
Source: Stan Reference Manual, "Function argument promotion", "Function overloading", "Functions"; suffixes: ibid.,
"Special functions".
"""

from __future__ import annotations

from collections.abc import Sequence

from ulam.frontend.check.context import (
    Checker,
    Origin,
    article,
    highest_ad_level,
    is_data,
    is_discrete,
)
from ulam.frontend.check.externals import check_external_call
from ulam.frontend.functions import definitions, higher_order, signatures
from ulam.frontend.functions.signatures import Signature
from ulam.frontend.functions.support import unsupported_call, unsupported_type
from ulam.frontend.functions.type_codes import arguments_of, types_of
from ulam.frontend.promotion import promote, promotion_cost
from ulam.frontend.stan_types import INT, REAL, ArrayType, BasicType, StanType, array_of
from ulam.frontend.syntax import Call, CallKind, Expression, FunctionDefinition, Span
from ulam.library import catalog
from ulam.library.derivatives import has_primitive
from ulam.library.functions import FunctionKind, kind_of, normalized_name
from ulam.library.intrinsics import INTERNAL_FUNCTIONS
from ulam.library.records import record

_SHOWN_SIGNATURES = 4

_DRAWING = (Origin.TRANSFORMED_DATA, Origin.GENERATED_QUANTITIES)


@record(slots=True)
class Candidate:
    """An overload that a call fits; `definition` for functions of the user."""

    signature: Signature
    definition: FunctionDefinition | None = None


def callback_positions(name: str) -> tuple[int, ...]:
    """The positions of the arguments that name a function."""
    if name in higher_order.VARIADIC or name in higher_order.REDUCE_SUM:
        return (0,)
    name = normalized_name(name)
    if name in higher_order.LAPLACE:
        likelihood = higher_order.laplace_likelihood(name)
        return (0, 3) if likelihood is None else (len(arguments_of(likelihood)) + 1,)
    if not name.startswith(("integrate_", "algebra_solver", "map_rect")):
        return ()
    overloads = signatures.overloads(name)
    return (0,) if overloads is not None and overloads.higher_order() else ()


def apply_candidate(checker: Checker, node: Call, candidate: Candidate) -> StanType:
    """Writes the chosen function into the call: kind, types, promotions and autodiff level."""
    signature = candidate.signature
    arguments = node.arguments
    if candidate.definition is not None:
        checker.called(candidate.definition)
        if candidate.definition.body is None:
            check_external_call(checker, node, candidate.definition)
    elif not checker.library_mode:
        check_supported_call(checker, signature, [argument.type for argument in arguments], node.name_span)
    for position, formal in enumerate(signature.arguments):
        if arguments[position].type != formal:
            arguments[position] = promote(arguments[position], formal)
    if candidate.definition is None:
        node.kind = CallKind.LIBRARY
        node.formal_types = signature.arguments
    else:
        node.kind = CallKind.USER
        node.function = candidate.definition
        node.formal_types = signature.arguments
    node.type = signature.result
    if not is_discrete(signature.result):
        node.ad_level = highest_ad_level(arguments)
    return node.type


def check_supported_call(checker: Checker, signature: Signature, actuals: Sequence[StanType], span: Span) -> None:
    """Reports a call of a library function that cannot be compiled yet.

    An argument of a type that is not supported was reported where it came into the program.
    """
    if any(map(unsupported_type, actuals)):
        return
    if (problem := unsupported_call(signature.name, signature.arguments, signature.result)) is not None:
        checker.unsupported(problem[0], span, problem[1])


# ---------------------------------------------------------------- candidates


def cheapest_candidates(
    checker: Checker, name: str, arguments: list[Expression], types: tuple[StanType, ...] | None = None
) -> list[Candidate]:
    """The overloads of the smallest promotion cost that the arguments fit; more than one is ambiguous.

    `types` are those of what is passed if it is not the arguments themselves, but their entries.
    """
    types = tuple(argument.type for argument in arguments) if types is None else types
    written = checker.functions.get(name)
    if checker.library_mode:
        return _library_mode_candidates(name, types)
    # The program's own functions go before those of the same name in a library of another package.
    known = () if written and catalog.is_of_others(name) else signatures.cheapest(name, types)
    library = [Candidate(signature) for signature in known if _data_only_position(signature, arguments) is None]
    if not written:
        return library
    best: list[Candidate] = library
    best_cost = 1 << 30
    if library:
        cost = signatures.total_cost(types, library[0].signature.arguments)
        best_cost = best_cost if cost is None else cost
    for definition in written:
        if len(definition.arguments) != len(types):
            continue
        signature = signature_of(definition)
        cost = signatures.total_cost(types, signature.arguments)
        if cost is None or cost > best_cost or _data_only_position(signature, arguments) is not None:
            continue
        if cost < best_cost:
            best, best_cost = [], cost
        best.append(Candidate(signature, definition))
    return best


def signature_of(definition: FunctionDefinition) -> Signature:
    """The signature of a user's function."""
    return Signature(
        definition.name,
        tuple(argument.type for argument in definition.arguments),
        definition.result,
        tuple(position for position, argument in enumerate(definition.arguments) if argument.data_only),
    )


def _data_only_position(signature: Signature, arguments: list[Expression]) -> int | None:
    """The first argument that must be data and is not."""
    for position in signature.data_only:
        if not is_data(arguments[position]):
            return position
    return None


def _library_mode_candidates(name: str, types: tuple[StanType, ...]) -> list[Candidate]:
    """In library/*.stan: definitions of the library itself first, then the signature table, then broadcasting."""
    function = definitions.resolve(name, types)
    if function is not None:
        signature = signature_of(function.definition)
        if signatures.total_cost(types, signature.arguments) is not None:
            return [Candidate(signature)]
    if (codes := INTERNAL_FUNCTIONS.get(name)) is not None and types == types_of(codes):
        return [Candidate(Signature(name, types, REAL))]
    best = [Candidate(signature) for signature in signatures.cheapest(name, types)]
    if not best and has_primitive(name) and all(type_ in (INT, REAL) for type_ in types):
        return [Candidate(Signature(name, (REAL,) * len(types), REAL))]
    if best or function is None:
        return best
    return [Candidate(Signature(name, types, _broadcast_result(function.definition, types)))]


def _broadcast_result(definition: FunctionDefinition, types: tuple[StanType, ...]) -> StanType:
    """The result of applying a library function element by element."""
    if kind_of(definition.name).is_probability:
        return REAL
    formals = [argument.type for argument in definition.arguments]
    container = next(t for t, formal in zip(types, formals, strict=True) if promotion_cost(t, formal) is None)
    return _with_scalar(container, definition.result)


def _with_scalar(container: StanType, scalar: StanType) -> StanType:
    """The container with its scalars replaced: (`array[] int`, `real`) → `array[] real`."""
    if isinstance(container, ArrayType):
        return array_of(_with_scalar(container.element, scalar), container.rank)
    return scalar if container in (INT, REAL) or scalar == INT else container


# ---------------------------------------------------------------- where calls may stand


def check_placement(checker: Checker, node: Call, written: str) -> bool:
    """Reports calls that the block or function we are in does not allow, and a wrong or missing `|`.

    Returns whether it makes sense to look at the arguments.
    """
    if kind_of(written).is_probability:
        if not node.has_bar and len(node.arguments) > 1:
            checker.error(
                f"the first argument of '{written}' must be followed by '|', not by a comma",
                node.name_span, "bar-required", f"write {written}(y | ...)",
            )  # fmt: skip
    elif node.has_bar:
        checker.error(
            f"'{written}' is not a probability function and takes no '|'", node.name_span, "bar-not-allowed",
            "separate all arguments by commas",
        )  # fmt: skip
    if not checker.library_mode:
        _check_special_kind(checker, node, written)
    return kind_of(written).is_probability or not node.has_bar


def check_unnormalized(checker: Checker, written: str, span: Span) -> None:
    """Reports `_lupdf` and `_lupmf` where the log density is not known up to a constant only."""
    if checker.origin is not Origin.MODEL and not checker.kind().is_density:
        checker.error(
            f"'{written}' drops constants and can be used only in the model block and in _lpdf and _lpmf functions",
            span, "unnormalized-not-allowed", f"use '{normalized_name(written)}'",
        )  # fmt: skip


def _check_special_kind(checker: Checker, node: Call, written: str) -> None:
    kind, within = kind_of(written), checker.kind()
    if node.unnormalized:
        check_unnormalized(checker, written, node.name_span)
    elif kind is FunctionKind.RNG:
        if checker.in_sizes:
            checker.error("sizes cannot be random", node.name_span, "rng-in-size")
        elif checker.origin not in _DRAWING and within is not FunctionKind.RNG:
            checker.error(
                "random numbers can be drawn only in transformed data, generated quantities and functions whose name "
                "ends in _rng",
                node.name_span, "rng-not-allowed",
                "the model block says how likely values are, by '~' or 'target +='; declare a parameter for the value",
            )  # fmt: skip
    elif kind is FunctionKind.LP:
        if checker.origin is Origin.TRANSFORMED_PARAMETERS:
            checker.warning(
                "calling an _lp function in transformed parameters is deprecated", node.name_span, "lp-deprecated",
                "use a function whose name ends in _jacobian",
            )  # fmt: skip
        elif checker.origin is not Origin.MODEL and within is not FunctionKind.LP:
            checker.error(
                "functions whose name ends in _lp can be called only in the model block and in _lp functions",
                node.name_span, "target-not-allowed",
            )  # fmt: skip
    elif kind is FunctionKind.JACOBIAN:
        if checker.origin is not Origin.TRANSFORMED_PARAMETERS and within is not FunctionKind.JACOBIAN:
            checker.error(
                "functions whose name ends in _jacobian can be called only in transformed parameters and in "
                "_jacobian functions",
                node.name_span, "jacobian-not-allowed",
            )  # fmt: skip


def all_signatures(checker: Checker, name: str) -> list[Signature]:
    """The signatures of all functions of this name."""
    found = [signature_of(definition) for definition in checker.functions.get(name, ())]
    if checker.library_mode:
        found += [signature_of(function.definition) for function in definitions.overloads(name)]
    overloads = signatures.overloads(name)
    return found + (overloads.all() if overloads is not None else [])


def list_types(types: list[StanType]) -> str:
    """`(vector, real)`, for messages."""
    return f"({', '.join(map(str, types))})"


def report_ambiguous(
    checker: Checker, name: str, arguments: list[Expression], candidates: list[Signature], span: Span
) -> None:
    """Reports a call that two overloads fit equally well."""
    types = list_types([argument.type for argument in arguments])
    shown = "; ".join(map(str, candidates[:_SHOWN_SIGNATURES]))
    message = f"it is ambiguous which '{name}' takes {types}"
    checker.error(message, span, "ambiguous-call", f"these fit equally: {shown}")


def report_no_match(checker: Checker, name: str, arguments: list[Expression], span: Span) -> None:
    """Reports a call that no overload fits: what is wrong with respect to the closest ones."""
    candidates = all_signatures(checker, name)
    ranked = sorted(candidates, key=lambda signature: _mismatch_rank(signature, arguments))
    types = list_types([argument.type for argument in arguments])
    if not ranked:
        checker.error(f"there is no '{name}' for {types}", span, "no-matching-function")
        return
    arities = sorted({len(signature.arguments) for signature in candidates})
    if len(arguments) not in arities:
        counts = " or ".join(map(str, arities)) if len(arities) < 4 else f"{arities[0]} to {arities[-1]}"
        plural = "" if arities == [1] else "s"
        message = f"'{name}' takes {counts} argument{plural}, but {len(arguments)} are given"
        code, where = "argument-count", span
    else:
        message, code, where = _describe_mismatch(name, ranked[0], arguments, types, span)
    names = f"'{name}' has the signatures" if len(ranked) > 1 else "the signature is"
    more = f"; and {len(ranked) - _SHOWN_SIGNATURES} more" if len(ranked) > _SHOWN_SIGNATURES else ""
    shown = "; ".join(map(str, ranked[:_SHOWN_SIGNATURES]))
    checker.error(message, where, code, f"{names} {shown}{more}")


def _describe_mismatch(
    name: str, closest: Signature, arguments: list[Expression], types: str, span: Span
) -> tuple[str, str, Span]:
    """Message, code and place for the first argument that the closest signature does not take."""
    for position, (argument, formal) in enumerate(zip(arguments, closest.arguments, strict=True)):
        if promotion_cost(argument.type, formal) is None:
            found = f"argument {position + 1} is {article(argument.type)}, not {article(formal)}"
            return f"no '{name}' takes {types}: {found}", "argument-type", argument.span
        if position in closest.data_only and not is_data(argument):
            message = (
                f"argument {position + 1} of '{name}' must be data: it may not depend on parameters, local variables "
                "of the model or arguments that are not marked 'data'"
            )
            return message, "data-required", argument.span
    return f"no '{name}' takes {types}", "no-matching-function", span


def _mismatch_rank(signature: Signature, arguments: list[Expression]) -> tuple[int, int, int, int]:
    """Small for signatures that a call nearly fits: right number of arguments, few and late mismatches."""
    difference = abs(len(signature.arguments) - len(arguments))
    first, count, shape = len(arguments), 0, 0
    for position, (argument, formal) in enumerate(zip(arguments, signature.arguments, strict=False)):
        if promotion_cost(argument.type, formal) is None:
            first = min(first, position)
            count += 1
            shape += _rank_of(argument.type) != _rank_of(formal)
    return difference, count, -first, shape


def _rank_of(type_: StanType) -> int:
    if isinstance(type_, ArrayType):
        return type_.rank + _rank_of(type_.element)
    return {"vector": 1, "row_vector": 1, "matrix": 2}.get(type_.name, 0) if isinstance(type_, BasicType) else 0
