"""The `ad` dialect: differentiation at compile time.

`ad.gradient` asks for a gradient; the pass `reverse-mode` answers with an ordinary function in which only the ops
below remain, and which `forward-mode` can differentiate again. Terms: the *primal* is the original value, the
*adjoint* of a value is the derivative of the target with respect to it, the *shadow* of a buffer is the buffer of its
adjoints, the *tangent* of a value is its derivative along a direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IntAttr, LocationAttr, SymbolRefAttr, UnitAttr, f64, i1, i64
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.attributes import Number, number, units
from ulam.dialects.buffers import NUMBER, BufferType, buffer_of, element, element_of
from ulam.dialects.effects import ANYTHING, Effect, LowEffects
from ulam.dialects.facts import Fact
from ulam.dialects.op_making import give_parts
from ulam.dialects.plain_attribute import plain_attribute
from ulam.dialects.plain_operation import PlainOperation, plain_operation


@plain_operation
class GradientOp(PlainOperation):
    """Asks for reverse mode of `function`, whose result is its target: it is to give the gradient with respect to its
    `ad.independent`, too. `reverse-mode` answers in place; a buffer for the gradient becomes the second argument.

    ```mlir
    ad.gradient @example
    ```
    """

    name = "ad.gradient"
    function = prop_def(SymbolRefAttr)
    traits = traits_def(LowEffects(Effect.ORDERED))
    assembly_format = "$function attr-dict"

    def __init__(self, function: str, *, location: LocationAttr | None = None) -> None:
        give_parts(self, properties={"function": SymbolRefAttr(function)}, location=location)


@plain_operation
class HessianVectorOp(PlainOperation):
    """Asks for forward mode of the gradient of `function`: for the product of its Hessian with a direction, too.
    `forward-mode` answers in place; the direction becomes the second argument, a buffer for the product the fourth.

    ```mlir
    ad.hessian_vector @example
    ```
    """

    name = "ad.hessian_vector"
    function = prop_def(SymbolRefAttr)
    traits = traits_def(LowEffects(Effect.ORDERED))
    assembly_format = "$function attr-dict"

    def __init__(self, function: str, *, location: LocationAttr | None = None) -> None:
        give_parts(self, properties={"function": SymbolRefAttr(function)}, location=location)


@plain_operation
class IndependentOp(PlainOperation):
    """Declares the first `count` elements of `buffer` as the independent variables: what the gradient is taken of.

    ```mlir
    ad.independent %y, %n
    ```
    """

    name = "ad.independent"
    buffer = operand_def(BufferType(f64))
    count = operand_def(i64)
    traits = traits_def(LowEffects(ANYTHING))
    assembly_format = "$buffer `,` $count attr-dict"

    def __init__(self, buffer: SSAValue, count: SSAValue, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(buffer, count), location=location)


@plain_operation
class TargetAddOp(PlainOperation):
    """Adds to the target. Its adjoint is 1 everywhere, so the reverse of what feeds it needs no waiting.

    `thread-target` makes an ordinary carried value of it, before emission.

    ```mlir
    ad.target_add %x
    ```
    """

    name = "ad.target_add"
    value = operand_def(f64)
    traits = traits_def(LowEffects(Effect.ORDERED))
    assembly_format = "$value attr-dict"

    def __init__(self, value: SSAValue, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(value,), location=location)


@plain_operation
class TargetOp(PlainOperation):
    """The target so far: what `ad.target_add`s have added until here. `thread-target` replaces it by that sum.

    ```mlir
    %sum = ad.target
    ```
    """

    name = "ad.target"
    res = result_def(f64)
    traits = traits_def(LowEffects(Effect.ORDERED))
    assembly_format = "attr-dict"

    def __init__(self, *, location: LocationAttr | None = None) -> None:
        give_parts(self, result_types=(f64,), location=location)


@plain_operation
class AccumulateOp(PlainOperation):
    """`buffer[index] += value`. The only memory additions that may be re-associated (levels 3 and 4).

    ```mlir
    ad.accumulate %y[%i], %x
    ```
    """

    name = "ad.accumulate"
    buffer = operand_def(BufferType(f64))
    index = operand_def(i64)
    value = operand_def(f64)
    traits = traits_def(LowEffects(Effect.READ | Effect.WRITE))
    assembly_format = "$buffer `[` $index `]` `,` $value attr-dict"

    def __init__(
        self, buffer: SSAValue, index: SSAValue, value: SSAValue, *, location: LocationAttr | None = None
    ) -> None:
        give_parts(self, operands=(buffer, index, value), location=location)


@plain_operation
class TakeOp(PlainOperation):
    """Reads `buffer[index]` and clears it: the adjoint of an element that is overwritten.

    ```mlir
    %adjoint = ad.take %y[%i]
    ```
    """

    name = "ad.take"
    buffer = operand_def(BufferType(f64))
    index = operand_def(i64)
    res = result_def(f64)
    traits = traits_def(LowEffects(Effect.READ | Effect.WRITE))
    assembly_format = "$buffer `[` $index `]` attr-dict"

    def __init__(self, buffer: SSAValue, index: SSAValue, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(buffer, index), result_types=(f64,), location=location)


@plain_operation
class KeepOp(PlainOperation):
    """Keeps `value` of iteration `index` for the reverse sweep, in an array sized by the trip count.

    ```mlir
    ad.keep %y[%i], %x : f64
    ```
    """

    name = "ad.keep"
    T: ClassVar = element()
    array = operand_def(buffer_of(T))
    index = operand_def(i64)
    value = operand_def(T)
    traits = traits_def(LowEffects(Effect.WRITE))
    assembly_format = "$array `[` $index `]` `,` $value attr-dict `:` type($value)"

    def __init__(
        self, array: SSAValue, index: SSAValue, value: SSAValue, *, location: LocationAttr | None = None
    ) -> None:
        give_parts(self, operands=(array, index, value), location=location)


@plain_operation
class KeptOp(PlainOperation):
    """What `ad.keep` kept for iteration `index`.

    ```mlir
    %v = ad.kept %y[%i] : f64
    ```
    """

    name = "ad.kept"
    T: ClassVar = element()
    array = operand_def(buffer_of(T))
    index = operand_def(i64)
    res = result_def(T)
    traits = traits_def(LowEffects(Effect.READ))
    assembly_format = "$array `[` $index `]` attr-dict `:` type($res)"

    def __init__(self, array: SSAValue, index: SSAValue, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(array, index), result_types=(element_of(array),), location=location)


@plain_operation
class PushOp(PlainOperation):
    """Puts a record of `values` on the var stack, on top of the record `previous` (`rt.null` for the first).

    Used where no trip count is known: `while`, recursion, branches. The result is the new top.

    ```mlir
    %top = ad.push %y, %x, %i : f64, i64
    ```
    """

    name = "ad.push"
    previous = operand_def(BufferType(f64))
    values = var_operand_def()
    res = result_def(BufferType(f64))
    traits = traits_def(LowEffects(Effect.ALLOCATE))
    assembly_format = "$previous (`,` $values^ `:` type($values))? attr-dict"

    def __init__(self, previous: SSAValue, values: Sequence[SSAValue], *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(previous, *values), result_types=(previous.type,), location=location)


@plain_operation
class PopOp(PlainOperation):
    """Reads the record `record`; results: the record below it, then the values.

    ```mlir
    %below, %v, %k = ad.pop %y : !rt.buf<f64>, f64, i64
    ```
    """

    name = "ad.pop"
    record = operand_def(BufferType(f64))
    res = var_result_def()
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$record attr-dict `:` type($res)"

    def __init__(
        self, record: SSAValue, result_types: Sequence[Attribute], *, location: LocationAttr | None = None
    ) -> None:
        give_parts(self, operands=(record,), result_types=result_types, location=location)


def _profile(region: Number, named: Number, gradient: bool, reverse: bool) -> dict[str, Attribute]:
    return {"region": number(region), "named": number(named), **units(gradient=gradient, reverse=reverse)}


@plain_operation
class ProfileBeginOp(PlainOperation):
    """Enters the profile region `region`, whose name is that of region `named`. Always true, unless the same name is
    active from another statement: the context then has the message.

    What the region does is in an `scf.if` on the result, which has the attribute `ad.profile`: as nobody knows that the
    condition holds, nothing leaves or enters it, here or in LLVM. `gradient`: of a function that has a reverse sweep;
    `reverse`: of its half there.

    ```mlir
    %entered = ad.profile_begin 0 named 0 gradient
    ```
    """

    name = "ad.profile_begin"
    region = prop_def(NUMBER)
    named = prop_def(NUMBER)
    gradient = opt_prop_def(UnitAttr)
    reverse = opt_prop_def(UnitAttr)
    res = result_def(i1)
    traits = traits_def(LowEffects(Effect.ORDERED))
    assembly_format = "$region `named` $named (`gradient` $gradient^)? (`reverse` $reverse^)? attr-dict"

    def __init__(
        self,
        region: Number,
        named: Number,
        *,
        gradient: bool,
        reverse: bool = False,
        location: LocationAttr | None = None,
    ) -> None:
        give_parts(
            self, result_types=(i1,), properties=_profile(region, named, gradient, reverse), location=location
        )


@plain_operation
class ProfileEndOp(PlainOperation):
    """Leaves the profile region that `begin` entered.

    ```mlir
    ad.profile_end %ok, 0 named 0 gradient
    ```
    """

    name = "ad.profile_end"
    begin = operand_def(i1)
    region = prop_def(NUMBER)
    named = prop_def(NUMBER)
    gradient = opt_prop_def(UnitAttr)
    reverse = opt_prop_def(UnitAttr)
    traits = traits_def(LowEffects(Effect.ORDERED))
    assembly_format = "$begin `,` $region `named` $named (`gradient` $gradient^)? (`reverse` $reverse^)? attr-dict"

    def __init__(
        self,
        begin: SSAValue,
        region: Number,
        named: Number,
        *,
        gradient: bool,
        reverse: bool = False,
        location: LocationAttr | None = None,
    ) -> None:
        give_parts(
            self, operands=(begin,), properties=_profile(region, named, gradient, reverse), location=location
        )


@plain_operation
class ProfileEntriesOp(PlainOperation):
    """Counts values put on the var stack, for the innermost profile region: `kept` for the reverse sweep, `others`.

    ```mlir
    ad.profile_entries %n, %i
    ```
    """

    name = "ad.profile_entries"
    kept = operand_def(i64)
    others = operand_def(i64)
    traits = traits_def(LowEffects(Effect.ORDERED))
    assembly_format = "$kept `,` $others attr-dict"

    def __init__(self, kept: SSAValue, others: SSAValue, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(kept, others), location=location)


@plain_operation
class ProfileStepOp(PlainOperation):
    """Counts a step of a solver, or one that it rejects (`failed`), for the innermost profile region.

    ```mlir
    ad.profile_step failed
    ```
    """

    name = "ad.profile_step"
    failed = opt_prop_def(UnitAttr)
    traits = traits_def(LowEffects(Effect.ORDERED))
    assembly_format = "(`failed` $failed^)? attr-dict"

    def __init__(self, *, failed: bool, location: LocationAttr | None = None) -> None:
        give_parts(self, properties={"failed": UnitAttr()} if failed else {}, location=location)


@plain_attribute
class TargetPositionAttr(Fact):
    """Where a function has its target: `#ad.target_position<result 1, argument 2>`, or one of them.

    Numbers of the result that `thread-target` puts it into, and of the argument that is the target so far; -1: none.
    """

    name = "ad.target_position"
    ON = (func.FuncOp,)
    result: IntAttr
    argument: IntAttr

    @staticmethod
    def at(result: int = -1, argument: int = -1) -> TargetPositionAttr:
        """The fact that the target is there."""
        return TargetPositionAttr(IntAttr(result), IntAttr(argument))

    def verify_on(self, op: Operation) -> None:
        assert isinstance(op, func.FuncOp)
        type_ = op.function_type
        for what, place, types in (("result", self.result, type_.outputs), ("argument", self.argument, type_.inputs)):
            if place.data >= 0 and (place.data >= len(types) or types.data[place.data] != f64):
                raise VerifyException(f"{op.sym_name.data} has no {what} {place.data} of type f64 for the target")

    def print_parameters(self, printer: Printer) -> None:
        places = (("result", self.result.data), ("argument", self.argument.data))
        with printer.in_angle_brackets():
            printer.print_string(", ".join(f"{what} {place}" for what, place in places if place >= 0))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            places = {"result": -1, "argument": -1}
            while what := parser.parse_optional_keyword("result") or parser.parse_optional_keyword("argument"):
                places[what] = parser.parse_integer(allow_boolean=False, allow_negative=False)
                parser.parse_optional_punctuation(",")
        return tuple(map(IntAttr, places.values()))


@plain_attribute
class ProfileAttr(Fact):
    """The branch is what a profile region does: nothing leaves or enters it."""

    name = "ad.profile"
    ON = (scf.IfOp,)

    def verify_on(self, op: Operation) -> None:
        if not isinstance(op.operands[0].owner, ProfileBeginOp):
            raise VerifyException(f"the condition of a profile region is the result of {ProfileBeginOp.name}")


@plain_attribute
class SegmentsAttr(Fact):
    """The addition may be one for several rows: `#ad.segments<slot 12, key 0, first 1>`.

    Three slots of the bound table from `slot` have what binding data chose: which keys are equal in rows that are side
    by side (0 none, 1 all, 2 + k key k), the runs of such rows, and the first run of each block of rows, as the kernel
    `segment_rows` makes them. `key` says which of the keys the index of this addition is, `first` which iteration is
    the first row. Passes that give the rows another order or number let `bind` set the first slot to 0.
    """

    name = "ad.segments"
    ON = (AccumulateOp,)
    slot: IntAttr
    key: IntAttr
    first: IntAttr

    def verify(self) -> None:
        if self.slot.data < 0 or self.key.data < 0:
            raise VerifyException("numbers of slots and keys are not negative")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"slot {self.slot.data}, key {self.key.data}, first {self.first.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            parser.parse_keyword("slot")
            slot = parser.parse_integer(allow_boolean=False)
            parser.parse_punctuation(",")
            parser.parse_keyword("key")
            key = parser.parse_integer(allow_boolean=False)
            parser.parse_punctuation(",")
            parser.parse_keyword("first")
            return IntAttr(slot), IntAttr(key), IntAttr(parser.parse_integer(allow_boolean=False))


AD = Dialect(
    "ad",
    [
        GradientOp, HessianVectorOp, IndependentOp, TargetAddOp, TargetOp, AccumulateOp, TakeOp, KeepOp, KeptOp, PushOp,
        PopOp, ProfileBeginOp, ProfileEndOp, ProfileEntriesOp, ProfileStepOp,
    ],
    [TargetPositionAttr, ProfileAttr, SegmentsAttr],
)  # fmt: skip
