"""What functions demand of their arguments: `require_*` statements of the library, requirements of primitives."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import LocationAttr, i32
from xdsl.ir import SSAValue

from ulam.dialects import stan
from ulam.library.requirements import CONSTRAINT_TOLERANCE, NAN_IS_REFUSED, REQUIREMENTS, ArgumentReference
from ulam.library.statuses import REJECTION
from ulam.passes.to_loops.lowering import Lowering
from ulam.passes.to_loops.subjects import message_about, subject_of_requirement
from ulam.passes.to_loops.values import Container, Value, for_each_position

_INT_PREDICATES = {"gt": "sgt", "ge": "sge", "lt": "slt", "le": "sle", "eq": "eq"}
_REAL_PREDICATES = {"gt": "ogt", "ge": "oge", "lt": "olt", "le": "ole", "eq": "oeq"}
_UNORDERED_PREDICATES = {"gt": "ugt", "ge": "uge", "lt": "ult", "le": "ule", "eq": "ueq"}


def holds(low: Lowering, name: str, arguments: Sequence[SSAValue], *, nan_passes: bool = False) -> SSAValue:
    """Whether a requirement holds for scalar arguments (i1)."""
    builder = low.builder
    predicates = _UNORDERED_PREDICATES if nan_passes else _REAL_PREDICATES
    subject = arguments[0]
    result: SSAValue | None = None
    for condition in REQUIREMENTS[name].conditions:
        operand = condition.operand
        if not isinstance(operand, ArgumentReference) and subject.type == i32 and abs(operand) == float("inf"):
            continue
        bound = _bound(low, operand, arguments)
        if condition.comparison == "near":
            distance = builder.math("fabs", builder.subf(builder.to_real(subject), builder.to_real(bound)))
            ok = builder.cmpf("ole", distance, builder.f64(CONSTRAINT_TOLERANCE))
        elif condition.comparison == "above_or_fractional":
            x = builder.to_real(subject)
            fractional = builder.cmpf("une", x, builder.math("floor", x))
            ok = builder.either(builder.cmpf(predicates["gt"], x, builder.to_real(bound)), fractional)
        elif subject.type == i32 and (
            bound.type == i32 or builder.known.get(bound, 0.5) == int(builder.known.get(bound, 0))
        ):
            right = bound if bound.type == i32 else builder.i32(int(builder.known[bound]))
            ok = builder.cmpi(_INT_PREDICATES[condition.comparison], subject, right)
        else:
            ok = builder.cmpf(predicates[condition.comparison], builder.to_real(subject), builder.to_real(bound))
        result = ok if result is None else builder.both(result, ok)
    if result is None:
        if subject.type == i32 or REQUIREMENTS[name].conditions:
            return builder.i1(True)
        return builder.cmpf("ord", subject, subject)
    return result


def _bound(low: Lowering, operand: float | ArgumentReference, arguments: Sequence[SSAValue]) -> SSAValue:
    """The other side of a comparison."""
    if not isinstance(operand, ArgumentReference):
        return low.builder.f64(operand)
    bound = arguments[operand.position]
    return low.builder.addf(low.builder.to_real(bound), low.builder.f64(operand.plus)) if operand.plus else bound


def check_requirement(low: Lowering, op: stan.CallOp, arguments: Sequence[SSAValue], position: SSAValue | None) -> None:
    """The precise check: its error names the subject, its value and what it must be."""
    name, requirement = op.callee.data, REQUIREMENTS[op.callee.data]
    subject = subject_of_requirement(low, op)
    if position is not None:
        subject = subject.part(["single"], [position])
    message, values = message_about(low, subject, low.called_function() or name, requirement.phrase, arguments)
    low.check(holds(low, name, arguments), requirement.status, message, *values)


_SUBJECTS = {1: ("x",), 2: ("first argument", "second argument"), 3: ("a", "b", "x")}


def check_primitive(
    low: Lowering,
    name: str,
    arguments: Sequence[SSAValue],
    position: int,
    requirement: str,
    others: Sequence[float | ArgumentReference],
    location: LocationAttr | None,
) -> None:
    """What Stan demands of an argument of a primitive that the program itself calls."""
    values = [arguments[position], *(_bound(low, other, arguments) for other in others)]
    ok = holds(low, requirement, values, nan_passes=name not in NAN_IS_REFUSED)
    subject = _SUBJECTS[len(arguments)][position]
    message = f"{name}: {subject} is {{0}}, but {REQUIREMENTS[requirement].phrase}"
    low.check(ok, REJECTION, message, *values, location=location)


def require(low: Lowering, op: stan.CallOp) -> None:
    """A `require_*` statement of the library, on scalars or on every element of a container."""
    arguments = [low.value(a) for a in op.arguments]
    containers = [a for a in arguments if isinstance(a, Container)]
    if not containers:
        check_requirement(low, op, [a for a in arguments if isinstance(a, SSAValue)], None)
        return
    check_container(low, op, arguments, containers)


def check_container(
    low: Lowering, op: stan.CallOp, arguments: Sequence[Value], containers: Sequence[Container]
) -> None:
    """Checks every element."""
    builder = low.builder

    def scan(k: SSAValue, values: list[SSAValue], _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        iterator = iter(values)
        elements = [next(iterator) if isinstance(a, Container) else a for a in arguments]
        check_requirement(low, op, elements, builder.add(k, builder.i64(1)))  # type: ignore[arg-type]
        return ()

    for_each_position(builder, containers, scan)
