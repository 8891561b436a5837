"""The `trace` dialect: what a traced function records while it runs.

A traced function is a clone; the trace ops stand beside its statements, in the `stan` dialect, and are lowered with
them.

    %t = trace.block {number = 3, slots = 3}         at the start of a basic block
    %8 = stan.pow(%x, %i)
    trace.value %t, %8 {slot = 0}                    after an op whose result is kept
    trace.guard %t {progress = 5}                    before an op that may throw
    trace.draws %t {slot = 1}                        before and after an op that draws random numbers

Only blocks and results are recorded. Operands, jumps, block arguments, calls and returns follow from the order of the
blocks and the program's `trace.sites`. A frame needs no record of its own: that of its first block begins it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Dialect, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.plain_operation import PlainOperation
from ulam.dialects.stan.effects import Effect, HasEffects


@irdl_attr_definition
class RecordType(ParametrizedAttribute, TypeAttribute):
    """`!trace.record`: the record of the basic block that runs."""

    name = "trace.record"


RECORD = RecordType()


class Records(HasEffects):
    """Keeps its place, as a print does."""

    EFFECTS = Effect.PRINTS


@irdl_op_definition
class SitesOp(PlainOperation):
    """The table of one traced function: `table` is what `ulam.passes.trace.graph.Graph.to_json` gives, as text.

    At the top level of the module. Nothing is made of it; readers have it from the session or from a saved trace.
    """

    name = "trace.sites"
    function = prop_def(StringAttr)
    table = prop_def(StringAttr)


@irdl_op_definition
class BlockOp(PlainOperation):
    """Begins the record of basic block `number`, with room for `slots` values of 8 bytes.

    `recorder` is there once the op has been lowered.
    """

    name = "trace.block"
    number = prop_def(IntegerAttr)
    slots = prop_def(IntegerAttr)
    recorder = opt_operand_def()
    res = result_def(RecordType)
    traits = traits_def(Records())

    def verify_(self) -> None:
        if self.number.value.data < 1 or self.slots.value.data < 0:
            raise VerifyException("blocks are numbered from 1, and have 0 or more slots")


@irdl_op_definition
class ValueOp(PlainOperation):
    """Keeps an int or a real in slot `slot` of `record`."""

    name = "trace.value"
    slot = prop_def(IntegerAttr)
    record = operand_def(RecordType)
    value = operand_def()
    traits = traits_def(Records())


@irdl_op_definition
class ContainerOp(PlainOperation):
    """Keeps a container: in slot `slot` where its contents are, its sizes in the slots that follow.

    Up to `most` elements are copied; of more there is a digest. Lowered, `value` is the buffer, and `recorder`, the
    number of elements and the sizes are there.
    """

    name = "trace.container"
    slot = prop_def(IntegerAttr)
    most = prop_def(IntegerAttr)
    record = operand_def(RecordType)
    value = operand_def()
    lowered = var_operand_def()
    traits = traits_def(Records())


@irdl_op_definition
class GuardOp(PlainOperation):
    """The op that follows may throw: notes in `record` how far the block has got (see `graph.Progress`)."""

    name = "trace.guard"
    progress = prop_def(IntegerAttr)
    record = operand_def(RecordType)
    traits = traits_def(Records())


@irdl_op_definition
class DrawsOp(PlainOperation):
    """Keeps how many random numbers the run has taken so far in slot `slot` of `record`.

    `recorder` is there once the op has been lowered.
    """

    name = "trace.draws"
    slot = prop_def(IntegerAttr)
    record = operand_def(RecordType)
    recorder = opt_operand_def()
    traits = traits_def(Records())


TRACE = Dialect("trace", [SitesOp, BlockOp, ValueOp, ContainerOp, GuardOp, DrawsOp], [RecordType])
