"""The `trace` dialect: what a traced function records while it runs.

A traced function is a clone; the trace ops stand beside its statements, in the `stan` dialect, and are lowered with
them.

    %t = trace.block 3 slots 3                       at the start of a basic block
    %8 = stan.pow %x, %i : (!stan.real, !stan.int) -> !stan.real
    trace.value %t[0] = %8 : !stan.real              after an op whose result is kept
    trace.guard %t progress 5                        before an op that may throw
    trace.draws %t[1]                                before and after an op that draws random numbers

A model's density is traced as a function whose parameters are data and unconstrained parameters; `trace.constrain` and
`trace.jacobian` are the transforms.

Only blocks and results are recorded. Operands, jumps, block arguments, calls and returns follow from the order of the
blocks and the program's `trace.sites`. A frame needs no record of its own: that of its first block begins it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import LocationAttr, StringAttr
from xdsl.ir import Attribute, Dialect, Operation, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import EffectInstance, MemoryEffectKind, Pure
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.attributes import Number, Text, number, segments, string
from ulam.dialects.buffers import NUMBER
from ulam.dialects.op_making import give_parts
from ulam.dialects.plain_attribute import PlainAttribute, plain_attribute
from ulam.dialects.plain_operation import PlainOperation, plain_operation
from ulam.dialects.stan import syntax
from ulam.dialects.stan.effects import Effect, HasEffects, Throws
from ulam.dialects.stan.type_attributes import INT, REAL

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from typing import Self

    from xdsl.parser import Parser
    from xdsl.printer import Printer


@plain_attribute
class RecordType(PlainAttribute, TypeAttribute):
    """`!trace.record`: the record of the basic block that runs."""

    name = "trace.record"


RECORD = RecordType()


class Records(HasEffects):
    """Keeps its place, as a print does, and reads what it keeps."""

    EFFECTS = Effect.PRINTS

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        return {EffectInstance(MemoryEffectKind.READ), EffectInstance(MemoryEffectKind.WRITE)}


class Adjusts(HasEffects):
    """Adds to the target, and throws where bounds are out of order."""

    EFFECTS = Effect.THROWS | Effect.ADDS_JACOBIAN


@plain_operation
class SitesOp(PlainOperation):
    """The table of one traced function: `table` is what `ulam.tracing.instrument.graph.Graph.to_json` gives, as text.

    At the top level of the module. Nothing is made of it; readers have it from the session or from a saved trace.

    ```mlir
    trace.sites f.traced "{}"
    ```
    """

    name = "trace.sites"
    function = prop_def(StringAttr)
    table = prop_def(StringAttr)
    traits = traits_def(Records())
    assembly_format = "custom<Word>($function) $table attr-dict"

    def __init__(self, function: Text, table: Text, *, location: LocationAttr | None = None) -> None:
        give_parts(self, properties={"function": string(function), "table": string(table)}, location=location)


@plain_operation
class BlockOp(PlainOperation):
    """Begins the record of basic block `number`, with room for `slots` values of 8 bytes.

    `recorder` is there once the op has been lowered.

    ```mlir
    %b = trace.block 3 slots 3
    ```
    """

    name = "trace.block"
    number = prop_def(NUMBER)
    slots = prop_def(NUMBER)
    recorder = opt_operand_def()
    res = result_def(RECORD)
    traits = traits_def(Records())
    assembly_format = "$number `slots` $slots (`recorder` $recorder^ `:` type($recorder))? attr-dict"

    def __init__(
        self, block: Number, slots: Number, recorder: SSAValue | None = None, *, location: LocationAttr | None = None
    ) -> None:
        give_parts(
            self,
            operands=() if recorder is None else (recorder,),
            result_types=(RECORD,),
            properties={"number": number(block), "slots": number(slots)},
            location=location,
        )

    def verify_(self) -> None:
        if self.number.value.data < 1 or self.slots.value.data < 0:
            raise VerifyException("blocks are numbered from 1, and have 0 or more slots")


@plain_operation
class ValueOp(PlainOperation):
    """Keeps an int or a real in slot `slot` of `record`.

    ```mlir
    trace.value %record[0] = %x : !stan.real
    ```
    """

    name = "trace.value"
    slot = prop_def(NUMBER)
    record = operand_def(RECORD)
    value = operand_def()
    traits = traits_def(Records())
    assembly_format = "$record `[` $slot `]` `=` $value attr-dict `:` type($value)"

    def __init__(
        self, record: SSAValue, slot: Number, value: SSAValue, *, location: LocationAttr | None = None
    ) -> None:
        give_parts(self, operands=(record, value), properties={"slot": number(slot)}, location=location)


@plain_operation
class ContainerOp(PlainOperation):
    """Keeps a container: in slot `slot` where its contents are, its sizes in the slots that follow.

    Up to `most` elements are copied; of more there is a digest. Lowered, `value` is the buffer, and `recorder`, the
    number of elements and the sizes are there.

    ```mlir
    trace.container %record[0] = %v most 64 : !stan.vector
    ```
    """

    name = "trace.container"
    slot = prop_def(NUMBER)
    most = prop_def(NUMBER)
    record = operand_def(RECORD)
    value = operand_def()
    lowered = var_operand_def()
    traits = traits_def(Records())
    assembly_format = (
        "$record `[` $slot `]` `=` $value `most` $most"
        " attr-dict `:` type($value) (`with` $lowered^ `:` type($lowered))?"
    )

    def __init__(
        self,
        record: SSAValue,
        slot: Number,
        value: SSAValue,
        most: Number,
        lowered: Sequence[SSAValue] = (),
        *,
        location: LocationAttr | None = None,
    ) -> None:
        give_parts(
            self,
            operands=(record, value, *lowered),
            properties={"slot": number(slot), "most": number(most)},
            location=location,
        )


@plain_operation
class GuardOp(PlainOperation):
    """The op that follows may throw: notes in `record` how far the block has got (see `graph.Progress`).

    ```mlir
    trace.guard %record progress 5
    ```
    """

    name = "trace.guard"
    progress = prop_def(NUMBER)
    record = operand_def(RECORD)
    traits = traits_def(Records())
    assembly_format = "$record `progress` $progress attr-dict"

    def __init__(self, record: SSAValue, progress: Number, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(record,), properties={"progress": number(progress)}, location=location)


@plain_operation
class DrawsOp(PlainOperation):
    """Keeps how many random numbers the run has taken so far in slot `slot` of `record`.

    `recorder` is there once the op has been lowered.

    ```mlir
    trace.draws %record[1]
    ```
    """

    name = "trace.draws"
    slot = prop_def(NUMBER)
    record = operand_def(RECORD)
    recorder = opt_operand_def()
    traits = traits_def(Records())
    assembly_format = "$record `[` $slot `]` (`recorder` $recorder^ `:` type($recorder))? attr-dict"

    def __init__(
        self, record: SSAValue, slot: Number, recorder: SSAValue | None = None, *, location: LocationAttr | None = None
    ) -> None:
        give_parts(
            self,
            operands=(record,) if recorder is None else (record, recorder),
            properties={"slot": number(slot)},
            location=location,
        )


@plain_operation
class HookOp(PlainOperation):
    """Calls hook number `number` of the recorder with `values`: scalars and containers.

    Lowered, the recorder comes first, and a container is its buffer and its sizes.

    ```mlir
    trace.hook 3(%n, %v : !stan.int, !stan.vector)
    ```
    """

    name = "trace.hook"
    number = prop_def(NUMBER)
    values = var_operand_def()
    traits = traits_def(Records())
    assembly_format = "$number `(` ($values^ `:` type($values))? `)` attr-dict"

    def __init__(self, hook: Number, values: Sequence[SSAValue], *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=values, properties={"number": number(hook)}, location=location)


@plain_operation
class TimeOp(PlainOperation):
    """Keeps what the clock says in slot `slot` of `record`.

    ```mlir
    trace.time %record[2]
    ```
    """

    name = "trace.time"
    slot = prop_def(NUMBER)
    record = operand_def(RECORD)
    traits = traits_def(Records())
    assembly_format = "$record `[` $slot `]` attr-dict"

    def __init__(self, record: SSAValue, slot: Number, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(record,), properties={"slot": number(slot)}, location=location)


@plain_operation
class DescendOp(PlainOperation):
    """1 if fewer than `most` calls are entered, which are one more then; else 0.

    ```mlir
    %deeper = trace.descend 5 : !stan.int
    ```
    """

    name = "trace.descend"
    most = prop_def(NUMBER)
    recorder = opt_operand_def()
    res = result_def()
    traits = traits_def(Records())
    assembly_format = "$most (`recorder` $recorder^ `:` type($recorder))? attr-dict `:` type($res)"

    def __init__(
        self,
        most: Number,
        result_type: Attribute = INT,
        recorder: SSAValue | None = None,
        *,
        location: LocationAttr | None = None,
    ) -> None:
        give_parts(
            self,
            operands=() if recorder is None else (recorder,),
            result_types=(result_type,),
            properties={"most": number(most)},
            location=location,
        )


@plain_operation
class AscendOp(PlainOperation):
    """A call that was entered is over.

    ```mlir
    trace.ascend
    ```
    """

    name = "trace.ascend"
    recorder = opt_operand_def()
    traits = traits_def(Records())
    assembly_format = "(`recorder` $recorder^ `:` type($recorder))? attr-dict"

    def __init__(self, recorder: SSAValue | None = None, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=() if recorder is None else (recorder,), location=location)


class _TransformOp(PlainOperation):
    """What both halves of a parameter's transform share: the declaration, as `stan.parameter` has it.

    `unconstrained`: a real for a scalar, a vector for a container. `declared`: the variable's type.
    """

    var_name = prop_def(StringAttr)
    constraint = prop_def(StringAttr)
    declared = prop_def(Attribute)
    unconstrained = operand_def()
    lower = opt_operand_def()
    upper = opt_operand_def()
    offset = opt_operand_def()
    multiplier = opt_operand_def()
    sizes = var_operand_def(INT)
    res = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        unconstrained: SSAValue,
        name: Text,
        constraint: Text,
        declared: Attribute,
        bounds: Sequence[SSAValue | None],
        sizes: Sequence[SSAValue],
        *,
        location: LocationAttr | None = None,
    ) -> None:
        given = [bound for bound in bounds if bound is not None]
        properties: dict[str, Attribute] = {
            "var_name": string(name),
            "constraint": string(constraint),
            "declared": declared,
            "operandSegmentSizes": segments(1, *(bound is not None for bound in bounds), len(sizes)),
        }
        result = declared if type(self) is ConstrainOp else REAL
        give_parts(
            self,
            operands=(unconstrained, *given, *sizes),
            result_types=(result,),
            properties=properties,
            location=location,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = syntax.parse_word(parser)
        value = parser.parse_unresolved_operand()
        sizes = syntax.parse_sizes(parser)
        constraint, groups = syntax.parse_constrained(parser, ("declared",))
        parser.parse_keyword("declared")
        declared = parser.parse_type()
        attributes = syntax.parse_rest(parser)
        parser.parse_punctuation(":")
        unconstrained = parser.resolve_operand(value, parser.parse_type())
        parser.parse_punctuation("->")
        return cls.build(
            operands=[unconstrained, *groups, sizes],
            result_types=[parser.parse_type()],
            properties={"var_name": name, "constraint": constraint, "declared": declared},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        syntax.print_word(printer, self.var_name.data)
        printer.print_string(" ")
        printer.print_operand(self.unconstrained)
        syntax.print_list_in(printer, self.sizes, "[]")
        syntax.print_constrained(printer, self)
        printer.print_string(" declared ")
        printer.print_attribute(self.declared)
        syntax.print_rest(printer, self)
        printer.print_string(" : ")
        printer.print_attribute(self.unconstrained.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.res.type)

    def verify_(self) -> None:
        if type(self) is ConstrainOp and self.res.type != self.declared:
            raise VerifyException(f"the value of a {self.declared} is no {self.res.type}")


@plain_operation
class ConstrainOp(_TransformOp):
    """A parameter's value.

    ```mlir
    %sigma = trace.constrain sigma %x bounds lower(%y : !stan.real) declared !stan.real : !stan.real -> !stan.real
    ```
    """

    name = "trace.constrain"
    traits = traits_def(Throws())


@plain_operation
class JacobianOp(_TransformOp):
    """Adds the log of the absolute Jacobian determinant of a transform to the target; gives what it added.

    ```mlir
    %added = trace.jacobian sigma %x bounds lower(%y : !stan.real) declared !stan.real : !stan.real -> !stan.real
    ```
    """

    name = "trace.jacobian"
    traits = traits_def(Adjusts())


@plain_operation
class SumOp(PlainOperation):
    """The sum of the entries of a container, in their order: what `target += container` adds.

    ```mlir
    %sum = trace.sum %v : (!stan.vector) -> !stan.real
    ```
    """

    name = "trace.sum"
    container = operand_def()
    res = result_def()
    traits = traits_def(Pure())
    assembly_format = "$container attr-dict `:` functional-type($container, $res)"

    def __init__(self, container: SSAValue, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(container,), result_types=(REAL,), location=location)


TRACE = Dialect(
    "trace",
    [
        SitesOp, BlockOp, ValueOp, ContainerOp, GuardOp, DrawsOp, HookOp, TimeOp, DescendOp, AscendOp, ConstrainOp,
        JacobianOp, SumOp,
    ],
    [RecordType],
)  # fmt: skip
