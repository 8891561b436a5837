"""The `rt` dialect: memory and run-time services below containers, next to `arith`, `scf` and `func`.

A container has become a buffer (a typed pointer without a size) and SSA integers for its sizes. Element order:
array dimensions outermost, the first slowest; then a matrix column by column. Indices count elements, from 0.
Every function implicitly has the context (arena, error slot, random numbers, print sink) and the table of bound data.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerType,
    LocationAttr,
    StringAttr,
    UnitAttr,
    f64,
    i1,
    i8,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.attributes import UNIT, Number, Text, Texts, number, string, texts, units
from ulam.dialects.buffers import (
    NUMBER,
    BufferType,
    MarkType,
    buffer_of,
    element,
    element_of,
    expect_element,
)
from ulam.dialects.effects import ANYTHING, Effect, LowEffects
from ulam.dialects.facts import Fact
from ulam.dialects.plain_attribute import plain_attribute
from ulam.dialects.plain_operation import PlainOperation, plain_operation
from ulam.dialects.unit_facts import EntryAttr, LoopAttr, PartAttr, SlotsAttr

_MARK = MarkType()
_TEXT = BufferType(i8)
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
        Operation.__init__(
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
        Operation.__init__(self, result_types=(_MARK,), location=location)


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
        Operation.__init__(self, operands=(mark,), location=location)


@plain_operation
class BoundOp(PlainOperation):
    """Slot `slot` of the bound table: data, transformed data and whatever was computed once when data were bound.

    Never changes while an evaluation runs; what a bound buffer holds does not change either.

    ```mlir
    %data = rt.bound 3 : !rt.buf<f64>
    ```
    """

    name = "rt.bound"
    slot = prop_def(NUMBER)
    res = result_def()
    traits = traits_def(LowEffects(Effect.READ_BOUND))
    assembly_format = "$slot attr-dict `:` type($res)"

    def __init__(self, slot: Number, result_type: Attribute, *, location: LocationAttr | None = None) -> None:
        Operation.__init__(self, result_types=(result_type,), properties={"slot": number(slot)}, location=location)


@plain_operation
class SetBoundOp(PlainOperation):
    """Writes slot `slot` of the bound table. Only in functions that run when data are bound.

    A buffer stored here must not come from the arena of an evaluation: see `rt.alloc_bound`.

    ```mlir
    rt.set_bound 3, %x : f64
    ```
    """

    name = "rt.set_bound"
    slot = prop_def(NUMBER)
    value = operand_def()
    traits = traits_def(LowEffects(Effect.ORDERED))
    assembly_format = "$slot `,` $value attr-dict `:` type($value)"

    def __init__(self, slot: Number, value: SSAValue, *, location: LocationAttr | None = None) -> None:
        Operation.__init__(self, operands=(value,), properties={"slot": number(slot)}, location=location)


@plain_operation
class LayoutOp(PlainOperation):
    """Notes which layout the data of a statement have got, or why it was not taken. Only when data are bound.

    `outcome`: 0 if it was taken, k for the k-th of `reasons`. It goes to slot `slot` of the bound table, `figures` to
    those behind, with the names `names`: facts of the data, as the number of rows. The place is that of the statement.

    ```mlir
    rt.layout "unique rows" slot 12 outcome %i of ["too few rows repeat"] figures ["rows"] (%n : i64)
    ```
    """

    name = "rt.layout"
    layout = prop_def(StringAttr)
    slot = prop_def(NUMBER)
    reasons = prop_def(ArrayAttr[StringAttr])
    names = prop_def(ArrayAttr[StringAttr])
    outcome = operand_def(i64)
    figures = var_operand_def(i64)
    traits = traits_def(LowEffects(Effect.ORDERED))
    assembly_format = (
        "$layout `slot` $slot `outcome` $outcome `of` $reasons `figures` $names "
        "`(` ($figures^ `:` type($figures))? `)` attr-dict"
    )

    def __init__(
        self,
        layout: Text,
        slot: Number,
        reasons: Texts,
        names: Texts,
        outcome: SSAValue,
        figures: Sequence[SSAValue] = (),
        *,
        location: LocationAttr | None = None,
    ) -> None:
        Operation.__init__(
            self,
            operands=(outcome, *figures),
            properties={
                "layout": string(layout),
                "slot": number(slot),
                "reasons": texts(reasons),
                "names": texts(names),
            },
            location=location,
        )

    def verify_(self) -> None:
        if len(self.names) != len(self.figures):
            raise VerifyException("each figure of a layout has a name")


@plain_operation
class AllocBoundOp(PlainOperation):
    """As `rt.alloc`, but the memory lives as long as the bound data.

    ```mlir
    %a = rt.alloc_bound %n site 3 : !rt.buf<f64>
    ```
    """

    name = "rt.alloc_bound"
    count = operand_def(i64)
    res = result_def(BufferType)
    site = opt_prop_def(NUMBER)
    traits = traits_def(LowEffects(Effect.ALLOCATE))
    assembly_format = "$count (`site` $site^)? attr-dict `:` type($res)"

    def __init__(
        self,
        count: SSAValue,
        result_type: Attribute,
        site: Number | None = None,
        *,
        location: LocationAttr | None = None,
    ) -> None:
        Operation.__init__(
            self,
            operands=(count,),
            result_types=(result_type,),
            properties={} if site is None else {"site": number(site)},
            location=location,
        )


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
        Operation.__init__(self, operands=(buffer, index), result_types=(element_of(buffer),), location=location)


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
        Operation.__init__(
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
        Operation.__init__(self, operands=(buffer, offset), result_types=(buffer.type,), location=location)


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
        Operation.__init__(
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
        Operation.__init__(
            self, operands=(destination, value, count), properties=_INITIAL if initial else {}, location=location
        )


@plain_operation
class MathOp(PlainOperation):
    """A pure function of scalars, by Stan's name (`exp`, `lgamma`, `inv_logit`, ...).

    What is known of each is data: its LLVM form in `emit/primitives.py`, its derivative in
    `library/derivatives.txt`.

    ```mlir
    %e = rt.math exp(%x) : (f64) -> f64
    ```
    """

    name = "rt.math"
    function = prop_def(StringAttr)
    arguments = var_operand_def()
    res = result_def()
    traits = traits_def(Pure())
    assembly_format = "custom<Word>($function) `(` $arguments `)` attr-dict `:` functional-type($arguments, $res)"

    def __init__(
        self,
        function: Text,
        arguments: Sequence[SSAValue],
        result_type: Attribute = f64,
        *,
        location: LocationAttr | None = None,
    ) -> None:
        Operation.__init__(
            self,
            operands=arguments,
            result_types=(result_type,),
            properties={"function": string(function)},
            location=location,
        )


@plain_operation
class CheckOp(PlainOperation):
    """Goes on if `ok`; else leaves the function with an error: site `site` of the program's site table, and `values`
    (up to four; f64 or integers) for its message.

    ```mlir
    rt.check %ok site 3 status 1 with %i, %n : i64, i64
    ```
    """

    name = "rt.check"
    ok = operand_def(i1)
    site = prop_def(NUMBER)
    status = opt_prop_def(NUMBER)
    """REJECTION, FATAL (also if absent) or LOCATE of `library/statuses.py`."""
    values = var_operand_def()
    traits = traits_def(LowEffects(Effect.LEAVE))
    assembly_format = "$ok `site` $site (`status` $status^)? (`with` $values^ `:` type($values))? attr-dict"

    def __init__(
        self,
        ok: SSAValue,
        site: Number,
        values: Sequence[SSAValue] = (),
        status: Number | None = None,
        *,
        location: LocationAttr | None = None,
    ) -> None:
        properties: dict[str, Attribute] = {"site": number(site)}
        if status is not None:
            properties["status"] = number(status)
        Operation.__init__(self, operands=(ok, *values), properties=properties, location=location)

    def verify_(self) -> None:
        if len(self.values) > 4:
            raise VerifyException("the message of a check has at most four values")


@plain_operation
class StackGuardOp(PlainOperation):
    """Leaves the function with a fatal error if the thread's stack is nearly full. At the start of recursive functions.

    ```mlir
    rt.stack_guard site 3
    ```
    """

    name = "rt.stack_guard"
    site = prop_def(NUMBER)
    traits = traits_def(LowEffects(Effect.LEAVE))
    assembly_format = "`site` $site attr-dict"

    def __init__(self, site: Number, *, location: LocationAttr | None = None) -> None:
        Operation.__init__(self, properties={"site": number(site)}, location=location)


@plain_operation
class KernelOp(PlainOperation):
    """A call of the C function `ulam_<function>(context, arguments...)` of the runtime.

    `throws`: the C function returns a status (0 fine), which is tested; an error takes site `site`. Such a kernel
    has no result. Effects, and the pullback of a differentiable kernel, are rows of `library/kernels.py`.

    ```mlir
    rt.kernel cholesky_decompose(%y, %n, %z) throws site 3 : (!rt.buf<f64>, i64, !rt.buf<f64>) -> ()
    ```
    """

    name = "rt.kernel"
    function = prop_def(StringAttr)
    throws = opt_prop_def(UnitAttr)
    site = opt_prop_def(NUMBER)
    arguments = var_operand_def()
    res = opt_result_def()
    traits = traits_def(LowEffects(ANYTHING))
    assembly_format = (
        "custom<Word>($function) `(` $arguments `)` (`throws` $throws^)? (`site` $site^)?"
        " attr-dict `:` functional-type($arguments, $res)"
    )

    def __init__(
        self,
        function: Text,
        arguments: Sequence[SSAValue],
        result_type: Attribute | None = None,
        *,
        throws: bool = False,
        site: Number | None = None,
        location: LocationAttr | None = None,
    ) -> None:
        properties: dict[str, Attribute] = {"function": string(function), **units(throws=throws)}
        if site is not None:
            properties["site"] = number(site)
        Operation.__init__(
            self,
            operands=arguments,
            result_types=() if result_type is None else (result_type,),
            properties=properties,
            location=location,
        )

    def verify_(self) -> None:
        if self.throws is not None and (self.site is None or self.res is not None):
            raise VerifyException("a kernel that throws has a site and no result")


@plain_operation
class StringOp(PlainOperation):
    """A constant text, zero-terminated UTF-8.

    ```mlir
    %s = rt.string "x = "
    ```
    """

    name = "rt.string"
    value = prop_def(StringAttr)
    res = result_def(BufferType(i8))
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict"

    def __init__(self, value: Text, *, location: LocationAttr | None = None) -> None:
        Operation.__init__(self, result_types=(_TEXT,), properties={"value": string(value)}, location=location)


@plain_operation
class ConstantsOp(PlainOperation):
    """The elements `values`, all finite, in memory of the compiled code: nothing writes there.

    It goes when the code does, so what is to last or gets adjoints is a copy of it.

    ```mlir
    %a = rt.constants array<f64: 1.5, 2.5> : !rt.buf<f64>
    ```
    """

    name = "rt.constants"
    values = prop_def(DenseArrayBase)
    res = result_def(BufferType)
    traits = traits_def(Pure())
    assembly_format = "qualified($values) attr-dict `:` type($res)"

    def __init__(self, values: DenseArrayBase, *, location: LocationAttr | None = None) -> None:
        Operation.__init__(
            self, result_types=(BufferType(values.elt_type),), properties={"values": values}, location=location
        )

    def verify_(self) -> None:
        expect_element(self.res.type, self.values.elt_type)
        if not all(map(isfinite, cast("DenseArrayBase[IntegerType]", self.values).get_values())):
            raise VerifyException("constants are finite: others cannot be read again")


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
        Operation.__init__(self, result_types=(result_type,), location=location)


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
        Operation.__init__(self, operands=(buffer,), result_types=(i1,), location=location)


@plain_attribute
class AheadAttr(Fact):
    """The load runs before what tells whether the element is there: it may read up to 64 bytes behind a block of the
    arena, and nothing depends on what it finds there.
    """

    name = "rt.ahead"
    ON = (LoadOp,)


@plain_attribute
class HarmlessAttr(Fact):
    """The check may come late: going on with a bad value computes nonsense, but nothing unsafe."""

    name = "rt.harmless"
    ON = (CheckOp,)


RT = Dialect(
    "rt",
    [
        AllocOp, MarkOp, ReleaseOp, BoundOp, SetBoundOp, LayoutOp, AllocBoundOp, LoadOp, StoreOp, ViewOp, CopyOp,
        FillOp, MathOp, CheckOp, StackGuardOp, KernelOp, StringOp, ConstantsOp, NullOp,
        IsNullOp,
    ],
    [BufferType, MarkType, EntryAttr, PartAttr, SlotsAttr, LoopAttr, AheadAttr, HarmlessAttr],
)  # fmt: skip
