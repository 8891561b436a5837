"""Data that were bound, their layouts, and constants of the program, of the `rt` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntAttr,
    IntegerType,
    LocationAttr,
    StringAttr,
    i8,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.attributes import Number, Text, Texts, number, string, texts
from ulam.dialects.buffers import (
    NUMBER,
    BufferType,
    expect_element,
)
from ulam.dialects.effects import Effect, LowEffects
from ulam.dialects.facts import Fact
from ulam.dialects.op_making import give_parts
from ulam.dialects.plain_attribute import plain_attribute
from ulam.dialects.plain_operation import PlainOperation, plain_operation

_TEXT = BufferType(i8)


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
        give_parts(self, result_types=(result_type,), properties={"slot": number(slot)}, location=location)


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
        give_parts(self, operands=(value,), properties={"slot": number(slot)}, location=location)


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
        give_parts(
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


@plain_attribute
class NeverNegativeAttr(Fact):
    """No number in the slot is below 0: so it is declared. Numbers may be NaN.

    %times = rt.bound 3 {rt.never_negative = #rt.never_negative} : !rt.buf<f64>
    """

    name = "rt.never_negative"
    ON = (BoundOp,)


@plain_attribute
class ReducedAttr(Fact):
    """The first arm computes from reduced rows what the loops of the second do, and runs only where these have an
    iteration.
    """

    name = "rt.reduced"
    ON = (scf.IfOp,)


@plain_attribute
class CoalescedAttr(Fact):
    """Whether one loop over all rows runs in the place of a nest: slot 12, of `#rt.coalesced<12>`, says so.

    On what evaluations read there, and on what says which layouts the rows of that loop have got.

    %are_rows = rt.bound 12 {rt.coalesced = #rt.coalesced<12>} : i1
    """

    name = "rt.coalesced"
    ON = (BoundOp, LayoutOp)
    slot: IntAttr

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_int(self.slot.data)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (IntAttr(parser.parse_integer(allow_boolean=False, allow_negative=False)),)


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
        give_parts(
            self,
            operands=(count,),
            result_types=(result_type,),
            properties={} if site is None else {"site": number(site)},
            location=location,
        )


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
        give_parts(self, result_types=(_TEXT,), properties={"value": string(value)}, location=location)


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
        give_parts(
            self, result_types=(BufferType(values.elt_type),), properties={"values": values}, location=location
        )

    def verify_(self) -> None:
        expect_element(self.res.type, self.values.elt_type)
        if not all(map(isfinite, cast("DenseArrayBase[IntegerType]", self.values).get_values())):
            raise VerifyException("constants are finite: others cannot be read again")
