"""What passes note on ops of the `stan` dialect for passes after them."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, IntAttr, LocationAttr, StringAttr
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.facts import Fact
from ulam.dialects.plain_attribute import plain_attribute
from ulam.dialects.stan.control_flow import ForOp, ProfileOp, WhileOp
from ulam.dialects.stan.expressions import CallOp, TupleOp
from ulam.dialects.stan.program import BLOCK_KINDS, FuncOp, ProgramOp
from ulam.dialects.walk import ops_within


def profiles_of(program: ProgramOp) -> list[tuple[StringAttr, LocationAttr]]:
    """Names and places of the profile statements that a program has now."""
    own = [op for op in program.body.block.ops if not isinstance(op, FuncOp) or op.library is None]
    return [(op.profile_name, op.location) for part in own for op in ops_within(part) if type(op) is ProfileOp]


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
class ProfilesAttr(Fact):
    """The profile statements that the program was written with, by whose order they are numbered: a name and a place
    for each, `#stan.profiles<["inner"], [loc("m.stan":3:5)]>`. Passes may take out what is never reached.
    """

    name = "stan.profiles"
    ON = (ProgramOp,)
    names: ArrayAttr[StringAttr]
    places: ArrayAttr[LocationAttr]

    @classmethod
    def note(cls, program: ProgramOp) -> None:
        """Puts it on a program that has some."""
        found = profiles_of(program)
        if found:
            cls(ArrayAttr(name for name, _ in found), ArrayAttr(place for _, place in found)).put(program)

    def verify(self) -> None:
        if len(self.names) != len(self.places):
            raise VerifyException(f"{len(self.names)} names and {len(self.places)} places")


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
