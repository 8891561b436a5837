"""What passes note on modules, functions and loops, whatever is in them. Attributes of the `rt` dialect."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IntAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.facts import Fact
from ulam.dialects.plain_attribute import plain_attribute


@plain_attribute
class EntryAttr(Fact):
    """The function is called from outside: its buffers do not overlap, and it begins with an empty arena.

    func.func @evaluate(%theta: !rt.buf<f64>) attributes {rt.entry = #rt.entry}
    """

    name = "rt.entry"
    ON = (func.FuncOp,)


@plain_attribute
class PartAttr(Fact):
    """The function was part of others, which call it: what is known of memory at all its calls is known in it.

    func.func private @evaluate.part(%x: !rt.buf<f64>) attributes {rt.part = #rt.part}
    """

    name = "rt.part"
    ON = (func.FuncOp,)


@plain_attribute
class SitesAttr(Fact):
    """Errors of a call have sites of their own, which lie so far behind those that the function notes: `#rt.sites<12>`.

    func.call @library.f(%x) {rt.sites = #rt.sites<12>} : (f64) -> f64
    """

    name = "rt.sites"
    ON = (func.CallOp,)
    distance: IntAttr

    def verify(self) -> None:
        if self.distance.data <= 0:
            raise VerifyException(f"sites of a call lie behind those of the function, found {self.distance.data}")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_int(self.distance.data)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (IntAttr(parser.parse_integer(allow_boolean=False)),)


@plain_attribute
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


LOOP_KINDS = (
    "cold", "serial", "masked_tail", "functions", "strip_of_functions", "interleave", "columns", "groups", "kinds"
)  # fmt: skip


@plain_attribute
class LoopAttr(Fact):
    """How a loop is emitted: `#rt.loop<serial>`, `#rt.loop<interleave 4>`.

    `cold` ones run rarely: small code. The others are told by `loop-hints`: iterations of `serial` ones depend on each
    other; `masked_tail`: what is left over after the last full vector is one more, masked; `functions`: the same, and
    the longest vectors, since functions take most of the time; `strip_of_functions`: the longest vectors; `interleave`:
    so many sums run side by side; `columns`: inner loops whose elements are neighbours in memory, those of the loop
    around are not.
    `groups`: one over groups of rows, which is left as it is; what is inside is as good as outermost. `kinds`: one over
    what differs of an index of rows, for which no layout is looked for; its reverse is so, too.
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
