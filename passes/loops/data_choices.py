"""Data that rows have where a branch of data is taken, written ahead of the branch.

if (c[n]) mu += a[g[n]] * z[n]    →    x = if c[n]: z[n] else: 0
                                       key = if c[n]: g[n] else: NO_KEY
                                       mu += a[key] * x
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects.scalar_ops import constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.op_writer import BlockEnd
from ulam.passes.rewriting import copies

NO_KEY = -(2**63)
"""In place of the index of a coefficient, in rows that have none; as equal_rows.h has it."""


@record
class DataChoices:
    """Data that rows have in one arm of a branch, and 0 in the other, written ahead of the branch."""

    written: list[Operation] = field(default_factory=list[Operation])
    _known: dict[tuple[object, ...], SSAValue] = field(default_factory=dict[tuple[object, ...], SSAValue])

    def put(
        self,
        choice: scf.IfOp | arith.SelectOp,
        arm: int,
        data: Sequence[SSAValue] = (),
        divisors: Sequence[SSAValue] = (),
        otherwise: float = 0.0,
    ) -> SSAValue:
        """A quotient of products of data, in one arm of a branch; a number in the other one."""
        key = (choice, arm, tuple(data), tuple(divisors), otherwise)
        if key not in self._known:
            self._known[key] = self._put(choice, arm, data, divisors, otherwise)
        return self._known[key]

    def _put(
        self,
        choice: scf.IfOp | arith.SelectOp,
        arm: int,
        data: Sequence[SSAValue],
        divisors: Sequence[SSAValue],
        otherwise: float,
    ) -> SSAValue:
        known: dict[SSAValue, SSAValue] = {}
        body = Block(copies(_needed([*data, *divisors], choice, arm), known))
        inside = BlockEnd(body)
        value: SSAValue = inside.put(constant(1.0, f64))
        for cls, factors in ((arith.MulfOp, data), (arith.DivfOp, divisors)):
            for factor in factors:
                value = inside.put(cls(value, known.get(factor, factor)))
        return self._write(choice, arm, body, value, constant(otherwise, f64))

    def put_key(self, branch: scf.IfOp, arm: int, key: SSAValue) -> SSAValue:
        """The index of a coefficient, or a condition as a number, in one arm of a branch."""
        known: dict[SSAValue, SSAValue] = {}
        body = Block(copies(_needed([key], branch, arm), known))
        value = known.get(key, key)
        if key.type == i1:
            value = BlockEnd(body).put(arith.ExtUIOp(value, i64))
        return self._write(branch, arm, body, value, constant(NO_KEY, i64))

    def _write(
        self, choice: scf.IfOp | arith.SelectOp, arm: int, body: Block, value: SSAValue, otherwise: arith.ConstantOp
    ) -> SSAValue:
        """The value of a block where an arm is taken, and a constant elsewhere."""
        body.add_op(scf.YieldOp.create(operands=[value]))
        blocks = [body, Block([otherwise, scf.YieldOp.create(operands=[otherwise.result])])]
        regions = [Region(block) for block in (blocks if arm == 0 else blocks[::-1])]
        made = scf.IfOp.create(
            operands=[choice.cond], result_types=[value.type], regions=regions, location=choice.location
        )
        assert choice.parent is not None
        choice.parent.insert_op_before(made, choice)
        self.written.append(made)
        return made.results[0]

    def take_back(self) -> None:
        """Erases what has been written."""
        for op in reversed(self.written):
            op.detach()
            op.erase()
        self.written.clear()
        self._known.clear()


def _needed(values: Sequence[SSAValue], choice: scf.IfOp | arith.SelectOp, arm: int) -> list[Operation]:
    """What computes values in an arm, in order."""
    if isinstance(choice, arith.SelectOp):
        return []
    found: set[Operation] = set()
    work = list(values)
    while work:
        value = work.pop()
        op = value.owner
        if isinstance(op, Operation) and op not in found and is_inside(value, choice):
            found.add(op)
            work += [operand for inner in ops_within(op) for operand in inner.operands]
    return [op for op in choice.regions[arm].block.ops if op in found]
