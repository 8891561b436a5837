"""The `rt` dialect: memory and run-time services below containers, next to `arith`, `scf` and `func`.

A container has become a buffer (a typed pointer without a size) and SSA integers for its sizes. Element order:
array dimensions outermost, the first slowest; then a matrix column by column. Indices count elements, from 0.
Every function implicitly has the context (arena, error slot, random numbers, print sink) and the table of bound data.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import ClassVar, cast

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i1,
    i8,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    AnyAttr,
    ParamAttrConstraint,
    VarConstraint,
    eq,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.effects import ANYTHING, Effect, LowEffects
from ulam.dialects.facts import Fact
from ulam.dialects.plain_operation import PlainOperation


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """`!rt.buf<f64>`: a pointer to elements of type f64, i32, i64, i8 or again a buffer."""

    name = "rt.buf"
    element: Attribute


@irdl_attr_definition
class MarkType(ParametrizedAttribute, TypeAttribute):
    """`!rt.mark`: a position of the arena."""

    name = "rt.mark"


NUMBER = IntegerAttr.constr(eq(i64))
"""A number of a site, a slot, ...: written without its type."""


def element() -> VarConstraint:
    """The type of an element; with `buffer_of`, what says that two types of an op belong together."""
    return VarConstraint("element type", AnyAttr())


def buffer_of(element: VarConstraint) -> ParamAttrConstraint[BufferType]:
    """The type of a buffer of such elements."""
    return ParamAttrConstraint(BufferType, (element,))


def expect_element(buffer: Attribute, value: Attribute) -> None:
    """Raises unless `value` is the element type of `buffer`."""
    assert isinstance(buffer, BufferType)
    if buffer.element != value:
        raise VerifyException(
            f"the elements of the buffer are of type {buffer.element}, but the value is of type {value}"
        )


@irdl_op_definition
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


@irdl_op_definition
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


@irdl_op_definition
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


@irdl_op_definition
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


@irdl_op_definition
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


@irdl_op_definition
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


@irdl_op_definition
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


@irdl_op_definition
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


@irdl_op_definition
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


@irdl_op_definition
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


@irdl_op_definition
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


@irdl_op_definition
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


@irdl_op_definition
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

    def verify_(self) -> None:
        if len(self.values) > 4:
            raise VerifyException("the message of a check has at most four values")


@irdl_op_definition
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


@irdl_op_definition
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

    def verify_(self) -> None:
        if self.throws is not None and (self.site is None or self.res is not None):
            raise VerifyException("a kernel that throws has a site and no result")


@irdl_op_definition
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


@irdl_op_definition
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

    def verify_(self) -> None:
        expect_element(self.res.type, self.values.elt_type)
        if not all(map(isfinite, cast("DenseArrayBase[IntegerType]", self.values).get_values())):
            raise VerifyException("constants are finite: others cannot be read again")


@irdl_op_definition
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


@irdl_op_definition
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


@irdl_attr_definition
class EntryAttr(Fact):
    """The function is called from outside: its buffers do not overlap, and it begins with an empty arena.

    func.func @evaluate(%theta: !rt.buf<f64>) attributes {rt.entry = #rt.entry}
    """

    name = "rt.entry"
    ON = (func.FuncOp,)


@irdl_attr_definition
class SlotsAttr(Fact):
    """How many slots of the bound table the functions of the module use: `#rt.slots<3>`."""

    name = "rt.slots"
    ON = (ModuleOp,)
    count: IntAttr

    def verify(self) -> None:
        if self.count.data < 0:
            raise VerifyException(f"a number of slots is not negative, found {self.count.data}")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_int(self.count.data)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (IntAttr(parser.parse_integer(allow_boolean=False)),)


LOOP_KINDS = ("cold", "serial", "masked_tail", "interleave")


@irdl_attr_definition
class LoopAttr(Fact):
    """How a loop is emitted: `#rt.loop<serial>`, `#rt.loop<interleave 4>`.

    `cold` ones run rarely: small code. The others are told by `loop-hints`: iterations of `serial` ones depend on each
    other; `masked_tail`: what is left over after the last full vector is one more, masked; `interleave`: so many sums
    run side by side.
    """

    name = "rt.loop"
    ON = (scf.ForOp, scf.WhileOp)
    kind: StringAttr
    count: IntAttr

    def verify(self) -> None:
        if self.kind.data not in LOOP_KINDS:
            raise VerifyException(f"a loop is {', '.join(LOOP_KINDS)}, found {self.kind.data}")
        if (self.kind.data == "interleave") != (self.count.data > 1):
            raise VerifyException("two or more sums of a loop are interleaved, and of no other kind of loop")

    @staticmethod
    def of_kind(kind: str, count: int = 0) -> LoopAttr:
        """The fact for a loop of this kind."""
        return LoopAttr(StringAttr(kind), IntAttr(count))

    @classmethod
    def kind_of(cls, op: Operation) -> tuple[str, int]:
        """What is noted on a loop, and how many sums run side by side; '' if nothing is."""
        found = cls.of(op)
        return ("", 0) if found is None else (found.kind.data, found.count.data)

    @classmethod
    def is_cold(cls, op: Operation) -> bool:
        """Whether `op` is a loop that runs rarely."""
        return cls.kind_of(op)[0] == "cold"

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.kind.data + (f" {self.count.data}" if self.count.data else ""))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            kind = parser.parse_identifier()
            count = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
            return StringAttr(kind), IntAttr(count or 0)


@irdl_attr_definition
class AheadAttr(Fact):
    """The load runs before what tells whether the element is there: it may read up to 64 bytes behind a block of the
    arena, and nothing depends on what it finds there.
    """

    name = "rt.ahead"
    ON = (LoadOp,)


@irdl_attr_definition
class HarmlessAttr(Fact):
    """The check may come late: going on with a bad value computes nonsense, but nothing unsafe."""

    name = "rt.harmless"
    ON = (CheckOp,)


RT = Dialect(
    "rt",
    [
        AllocOp, MarkOp, ReleaseOp, BoundOp, SetBoundOp, AllocBoundOp, LoadOp, StoreOp, ViewOp, CopyOp, FillOp,
        MathOp, CheckOp, StackGuardOp, KernelOp, StringOp, ConstantsOp, NullOp,
        IsNullOp,
    ],
    [BufferType, MarkType, EntryAttr, SlotsAttr, LoopAttr, AheadAttr, HarmlessAttr],
)  # fmt: skip
