"""What passes note on ops of the `stan` dialect for passes after them."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.facts import Fact
from ulam.dialects.plain_attribute import plain_attribute
from ulam.dialects.stan.control_flow import ForOp, WhileOp
from ulam.dialects.stan.expressions import CallOp, TupleOp
from ulam.dialects.stan.program import BLOCK_KINDS, FuncOp, ProgramOp


@plain_attribute
class PeeledAttr(Fact):
    """The first iteration of the loop is written out in front of it."""

    name = "stan.peeled"
    ON = (ForOp, WhileOp)


@plain_attribute
class ProfiledBlocksAttr(Fact):
    """The kinds of blocks that are a profile region as a whole, declarations and transforms included:
    `#stan.profiled_blocks<["model"]>`.
    """

    name = "stan.profiled_blocks"
    ON = (ProgramOp,)
    kinds: ArrayAttr[StringAttr]

    def verify(self) -> None:
        if wrong := [kind.data for kind in self.kinds if kind.data not in BLOCK_KINDS]:
            raise VerifyException(f"{wrong[0]} is no kind of block")


@plain_attribute
class UntracedAttr(Fact):
    """The function records its calls; `#stan.untraced<"f">` names the one that does not, for derivatives."""

    name = "stan.untraced"
    ON = (FuncOp,)
    function: StringAttr


@plain_attribute
class CallNumberAttr(Fact):
    """The number of the call in its function, in program order: `#stan.call_number<#builtin.int<3>>`."""

    name = "stan.call_number"
    ON = (CallOp,)
    number: IntAttr


@plain_attribute
class ComplexPairAttr(Fact):
    """The fields are the real and the imaginary part of complex numbers."""

    name = "stan.complex_pair"
    ON = (TupleOp,)

    def verify_on(self, op: Operation) -> None:
        if len({operand.type for operand in op.operands}) != 1 or len(op.operands) != 2:
            raise VerifyException("a complex number has two parts of the same type")
