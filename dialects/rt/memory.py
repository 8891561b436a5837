"""Blocks of the arena, their elements, views and copies of the `rt` dialect."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import (
    LocationAttr,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from ulam.dialects.attributes import UNIT, Number, number, units
from ulam.dialects.buffers import (
    NUMBER,
    BufferType,
    MarkType,
    buffer_of,
    element,
    element_of,
)
from ulam.dialects.effects import Effect, LowEffects
from ulam.dialects.facts import Fact
from ulam.dialects.op_making import give_parts
from ulam.dialects.plain_attribute import plain_attribute
from ulam.dialects.plain_operation import PlainOperation, plain_operation

_MARK = MarkType()
_INITIAL = {"initial": UNIT}


@plain_operation
class AllocOp(PlainOperation):
    """Takes `count` elements from the arena; all zero if `zero` is set, else undefined.

    The memory lives until the function's entry point returns, or until `rt.release` of an earlier mark.

    ```mlir
    %a = rt.alloc zero %n site 3 : !rt.buf<f64>
    ```
    """

    name = "rt.alloc"
    count = operand_def(i64)
    res = result_def(BufferType)
    zero = opt_prop_def(UnitAttr)
    variable = opt_prop_def(UnitAttr)
    """The storage of a Stan variable: may be written again after it was read. All other memory is written once."""
    stack = opt_prop_def(UnitAttr)
    """`count` is a constant; the memory lives in the function's frame, whichever block the op is in."""
    site = opt_prop_def(NUMBER)
    """What an error says if there is not so much memory."""
    traits = traits_def(LowEffects(Effect.ALLOCATE))
    assembly_format = (
        "(`zero` $zero^)? (`variable` $variable^)? (`stack` $stack^)? $count (`site` $site^)? attr-dict `:` type($res)"
    )

    def __init__(
        self,
        count: SSAValue,
        result_type: Attribute,
        *,
        zero: bool = False,
        variable: bool = False,
        stack: bool = False,
        site: Number | None = None,
        location: LocationAttr | None = None,
    ) -> None:
        properties = units(zero=zero, variable=variable, stack=stack) if zero or variable or stack else {}
        if site is not None:
            properties["site"] = number(site)
        give_parts(
            self, operands=(count,), result_types=(result_type,), properties=properties, location=location
        )


@plain_operation
class MarkOp(PlainOperation):
    """The arena's present position.

    ```mlir
    %m = rt.mark_arena
    ```
    """

    name = "rt.mark_arena"
    res = result_def(MarkType())
    traits = traits_def(LowEffects(Effect.ALLOCATE))
    assembly_format = "attr-dict"

    def __init__(self, *, location: LocationAttr | None = None) -> None:
        give_parts(self, result_types=(_MARK,), location=location)


@plain_operation
class ReleaseOp(PlainOperation):
    """Gives back all that was allocated since `mark`.

    ```mlir
    %m = rt.mark_arena
    rt.release %m
    ```
    """

    name = "rt.release"
    mark = operand_def(MarkType())
    traits = traits_def(LowEffects(Effect.ORDERED | Effect.WRITE))
    assembly_format = "$mark attr-dict"

    def __init__(self, mark: SSAValue, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(mark,), location=location)


@plain_operation
class LoadOp(PlainOperation):
    """`buffer[index]`.

    ```mlir
    %e = rt.load %y[%i] : f64
    ```
    """

    name = "rt.load"
    T: ClassVar = element()
    buffer = operand_def(buffer_of(T))
    index = operand_def(i64)
    res = result_def(T)
    traits = traits_def(LowEffects(Effect.READ))
    assembly_format = "$buffer `[` $index `]` attr-dict `:` type($res)"

    def __init__(self, buffer: SSAValue, index: SSAValue, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(buffer, index), result_types=(element_of(buffer),), location=location)


@plain_operation
class StoreOp(PlainOperation):
    """`buffer[index] = value`.

    ```mlir
    rt.store %x, %y[%i] initial : f64
    ```
    """

    name = "rt.store"
    T: ClassVar = element()
    value = operand_def(T)
    buffer = operand_def(buffer_of(T))
    index = operand_def(i64)
    initial = opt_prop_def(UnitAttr)
    """The element had no value before: its adjoint needs no clearing."""
    traits = traits_def(LowEffects(Effect.WRITE))
    assembly_format = "$value `,` $buffer `[` $index `]` (`initial` $initial^)? attr-dict `:` type($value)"

    def __init__(
        self,
        value: SSAValue,
        buffer: SSAValue,
        index: SSAValue,
        *,
        initial: bool = False,
        location: LocationAttr | None = None,
    ) -> None:
        give_parts(
            self, operands=(value, buffer, index), properties=_INITIAL if initial else {}, location=location
        )


@plain_operation
class ViewOp(PlainOperation):
    """The part of `buffer` that begins at element `offset`; shares its memory.

    ```mlir
    %rest = rt.view %y[%i] : !rt.buf<f64>
    ```
    """

    name = "rt.view"
    T: ClassVar = element()
    buffer = operand_def(buffer_of(T))
    offset = operand_def(i64)
    res = result_def(buffer_of(T))
    traits = traits_def(Pure())
    assembly_format = "$buffer `[` $offset `]` attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue, offset: SSAValue, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(buffer, offset), result_types=(buffer.type,), location=location)


@plain_operation
class CopyOp(PlainOperation):
    """Copies `count` elements; the two ranges do not overlap.

    ```mlir
    rt.copy %y to %z, %n initial : !rt.buf<f64>
    ```
    """

    name = "rt.copy"
    T: ClassVar = element()
    destination = operand_def(buffer_of(T))
    source = operand_def(buffer_of(T))
    count = operand_def(i64)
    initial = opt_prop_def(UnitAttr)
    """As for `rt.store`."""
    traits = traits_def(LowEffects(Effect.READ | Effect.WRITE))
    assembly_format = "$source `to` $destination `,` $count (`initial` $initial^)? attr-dict `:` type($source)"

    def __init__(
        self,
        destination: SSAValue,
        source: SSAValue,
        count: SSAValue,
        *,
        initial: bool = False,
        location: LocationAttr | None = None,
    ) -> None:
        give_parts(
            self, operands=(destination, source, count), properties=_INITIAL if initial else {}, location=location
        )


@plain_operation
class FillOp(PlainOperation):
    """Sets `count` elements to `value`.

    ```mlir
    rt.fill %y, %x, %n : f64
    ```
    """

    name = "rt.fill"
    T: ClassVar = element()
    destination = operand_def(buffer_of(T))
    value = operand_def(T)
    count = operand_def(i64)
    initial = opt_prop_def(UnitAttr)
    """As for `rt.store`."""
    traits = traits_def(LowEffects(Effect.WRITE))
    assembly_format = "$destination `,` $value `,` $count (`initial` $initial^)? attr-dict `:` type($value)"

    def __init__(
        self,
        destination: SSAValue,
        value: SSAValue,
        count: SSAValue,
        *,
        initial: bool = False,
        location: LocationAttr | None = None,
    ) -> None:
        give_parts(
            self, operands=(destination, value, count), properties=_INITIAL if initial else {}, location=location
        )


@plain_operation
class NullOp(PlainOperation):
    """The buffer that points nowhere: the end of a list of records.

    ```mlir
    %none = rt.null : !rt.buf<f64>
    ```
    """

    name = "rt.null"
    res = result_def(BufferType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($res)"

    def __init__(self, result_type: Attribute, *, location: LocationAttr | None = None) -> None:
        give_parts(self, result_types=(result_type,), location=location)


@plain_operation
class IsNullOp(PlainOperation):
    """Whether a buffer is `rt.null`.

    ```mlir
    %last = rt.is_null %y : !rt.buf<f64>
    ```
    """

    name = "rt.is_null"
    buffer = operand_def(BufferType)
    res = result_def(i1)
    traits = traits_def(Pure())
    assembly_format = "$buffer attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(buffer,), result_types=(i1,), location=location)


@plain_attribute
class AheadAttr(Fact):
    """The load runs before what tells whether the element is there: it may read up to 64 bytes behind a block of the
    arena, and nothing depends on what it finds there.
    """

    name = "rt.ahead"
    ON = (LoadOp,)
