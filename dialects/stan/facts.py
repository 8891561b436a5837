"""What passes note on ops of the `stan` dialect for passes after them."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.facts import Fact
from ulam.dialects.plain_attribute import plain_attribute
from ulam.dialects.stan.control_flow import ForOp, WhileOp
from ulam.dialects.stan.expressions import CallOp
from ulam.dialects.stan.program import BLOCK_KINDS, FuncOp, ProgramOp


@plain_attribute
class PeeledAttr(Fact):
    """The first iteration of the loop is written out in front of it."""

    name = "stan.peeled"
    ON = (ForOp, WhileOp)


@plain_attribute
class ProfiledBlocksAttr(Fact):
    """The kinds of blocks that are a profile region as a whole, declarations and transforms included."""

    name = "stan.profiled_blocks"
    ON = (ProgramOp,)
    kinds: ArrayAttr[StringAttr]

    def verify(self) -> None:
        if wrong := [kind.data for kind in self.kinds if kind.data not in BLOCK_KINDS]:
            raise VerifyException(f"{wrong[0]} is no kind of block")


@plain_attribute
class UntracedAttr(Fact):
    """The function records its calls; `function` is the symbol of the one that does not, for derivatives."""

    name = "stan.untraced"
    ON = (FuncOp,)
    function: StringAttr


@plain_attribute
class CallNumberAttr(Fact):
    """The number of the call in its function, in program order."""

    name = "stan.call_number"
    ON = (CallOp,)
    number: IntAttr
