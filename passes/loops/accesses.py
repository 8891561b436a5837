"""Where the iterations of a loop touch memory: each access with its root and, if that is linear, its element.

Two accesses of two loops over the same range are compared by the iterations in which they meet: what loop fusion asks.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from xdsl.dialects import arith, func, scf
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer
from ulam.dialects.walk import blocks_of, following_op, operand_tuple
from ulam.library.records import record
from ulam.passes.loops.effects import DIVISIONS, PURE, Root, may_overlap, root
from ulam.passes.loops.tables import is_costly_function


class Kind(Enum):
    """Additions to an element may be exchanged with each other, other writes may not."""

    READ = "read"
    WRITE = "write"
    ADD = "add"


@record(frozen=True, slots=True)
class Linear:
    """`coefficient * i + terms + constant`, with the loop's iteration variable `i` and values from outside of it."""

    coefficient: int
    terms: dict[SSAValue, int]
    constant: int

    def plus(self, other: Linear, sign: int) -> Linear:
        terms = dict(self.terms)
        for value, count in other.terms.items():
            terms[value] = terms.get(value, 0) + sign * count
        return Linear(
            self.coefficient + sign * other.coefficient,
            {value: count for value, count in terms.items() if count},
            self.constant + sign * other.constant,
        )

    def times(self, factor: int) -> Linear:
        terms = {value: factor * count for value, count in self.terms.items()} if factor else {}
        return Linear(factor * self.coefficient, terms, factor * self.constant)


@record(frozen=True, slots=True)
class Access:
    """`element` counts from the root's begin; None if it is not linear, or if there are several."""

    op: Operation
    kind: Kind
    root: Root
    element: Linear | None


# Memory op: kind, number of the buffer's operand, number of the index's.
_ELEMENTS: dict[type[Operation], tuple[Kind, int, int]] = {
    rt.LoadOp: (Kind.READ, 0, 1),
    rt.StoreOp: (Kind.WRITE, 1, 2),
    ad.AccumulateOp: (Kind.ADD, 0, 1),
    ad.TakeOp: (Kind.WRITE, 0, 1),
    ad.KeepOp: (Kind.WRITE, 0, 1),
    ad.KeptOp: (Kind.READ, 0, 1),
}
_WITHOUT_ACCESS = PURE | DIVISIONS | {scf.YieldOp, scf.ConditionOp, func.ReturnOp}


@record
class LoopAccesses:
    """All accesses of a counted loop. `is_known` is False if the loop may do more than compute, access and add to the
    target."""

    loop: scf.ForOp
    accesses: list[Access] = field(default_factory=list[Access])
    used: set[SSAValue] = field(default_factory=set[SSAValue])
    is_known: bool = True
    adds_to_target: bool = False
    has_regions: bool = False
    has_math: bool = False
    functions: set[str] = field(default_factory=set[str])
    """Costly ones that it calls."""
    size: int = 0
    _inside: set[SSAValue] = field(default_factory=set[SSAValue])
    _forms: dict[SSAValue, Linear | None] = field(default_factory=dict[SSAValue, Linear | None])

    def __post_init__(self) -> None:
        self.variable = self.loop.body.block.args[0]
        self._visit(self.loop.body.block)

    def extended(self, loop: scf.ForOp, begin: Operation) -> LoopAccesses:
        """The same of a loop that does what this one did, by the same ops, and then more, from an op on."""
        self.loop = loop
        self.size -= 1  # the end of the body is another one
        self._inside.update(loop.body.block.args)
        self._visit_from(begin)
        return self

    def _visit(self, block: Block) -> None:
        self._inside.update(block.args)
        self._visit_from(block.first_op)

    def _visit_from(self, op: Operation | None) -> None:
        while op is not None and self.is_known:
            self.size += 1
            self.used.update(operand_tuple(op))
            self._inside.update(op.results)
            cls = type(op)
            if cls in _ELEMENTS:
                kind, buffer, index = _ELEMENTS[cls]
                self._note(op, kind, op.operands[buffer], op.operands[index])
            elif cls in _WITHOUT_ACCESS:
                self.has_math = self.has_math or cls is rt.MathOp or cls is arith.DivfOp
                if type(op) is rt.MathOp and is_costly_function(op):
                    self.functions.add(op.function.data)
            elif isinstance(op, rt.CopyOp):
                self._note(op, Kind.WRITE, op.destination, None)
                self._note(op, Kind.READ, op.source, None)
            elif isinstance(op, rt.FillOp):
                self._note(op, Kind.WRITE, op.destination, None)
            elif cls is ad.TargetAddOp:
                self.adds_to_target = True
            elif cls is scf.ForOp or cls is scf.IfOp:
                self.has_regions = True
                for inner in blocks_of(op):
                    self._visit(inner)
            elif cls is not rt.AllocOp:
                self.is_known = False
            op = following_op(op)

    def _note(self, op: Operation, kind: Kind, buffer: SSAValue, index: SSAValue | None) -> None:
        element = self._linear(index) if index is not None else None
        base = root(buffer)
        while element is not None and isinstance(owner := buffer.owner, rt.ViewOp):
            offset = self._linear(owner.offset)
            element = element.plus(offset, 1) if offset is not None else None
            buffer = owner.buffer
        if element is not None and base is not buffer:
            element = Linear(element.coefficient, {**element.terms, buffer: 1}, element.constant)
        self.accesses.append(Access(op, kind, base, element))

    def _linear(self, value: SSAValue) -> Linear | None:
        if value is self.variable:
            return Linear(1, {}, 0)
        if value not in self._forms:
            self._forms[value] = self._find_linear(value)
        return self._forms[value]

    def _find_linear(self, value: SSAValue) -> Linear | None:
        if (number := constant_integer(value)) is not None:
            return Linear(0, {}, number)
        op = value.owner
        if isinstance(op, arith.AddiOp | arith.SubiOp):
            left, right = self._linear(op.operands[0]), self._linear(op.operands[1])
            if left is not None and right is not None:
                return left.plus(right, 1 if isinstance(op, arith.AddiOp) else -1)
            return None
        if value not in self._inside:
            return Linear(0, {value: 1}, 0)
        if isinstance(op, arith.MuliOp):
            left, right = self._linear(op.operands[0]), self._linear(op.operands[1])
            if left is not None and right is not None:
                for factor, other in ((left, right), (right, left)):
                    if not factor.coefficient and not factor.terms:
                        return other.times(factor.constant)
        return None


def meet_in_order(first: Access, second: Access, same_iteration: bool) -> bool:
    """Whether `second`, of a later loop over the same range, may run in the same iteration as `first`.

    It may if, wherever the two touch the same element, the first does so in the same iteration, or in an earlier one
    unless `same_iteration` is asked for.
    """
    if first.kind is Kind.READ and second.kind is Kind.READ:
        return True
    if first.kind is Kind.ADD and second.kind is Kind.ADD:
        return True
    if not may_overlap(first.root, second.root):
        return True
    if first.root is not second.root or first.element is None or second.element is None:
        return False
    one, other = first.element, second.element
    if one.coefficient != other.coefficient or one.terms != other.terms:
        return False
    distance = other.constant - one.constant  # coefficient * (iteration of the first - iteration of the second)
    if one.coefficient == 0:
        return distance != 0
    if distance == 0 or distance % one.coefficient != 0:
        return True
    return not same_iteration and distance * one.coefficient < 0
