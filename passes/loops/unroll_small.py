"""Small loops with a known number of iterations become straight code.

    for j in 0:2 { s += a[j] }   →   s += a[0]; s += a[1]

Two to four iterations, and little to repeat: LLVM takes milliseconds for a loop and next to nothing for a few ops more.
A body that is little more than one inner loop is repeated, too: the inner loops then stand side by side, for
`loop-fusion`, as in the product of a matrix of few columns and a vector. Innermost first.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant, constant_integer
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.loops.effects import functions
from ulam.passes.loops.unit_modules import named_function
from ulam.passes.rewriting import cloned, discard, replace_uses
from ulam.passes.running import TellingPass

_SIZE = 20
"""Ops that the straight code may have, for each of the iterations that a loop has at most."""


@record(frozen=True)
class UnrollSmall(TellingPass):
    """Makes straight code of loops of up to `most` iterations, of all functions or of the one that is named.

    `inner`: of those alone that stand in another loop, and are not cold.
    """

    name = "unroll-small"

    function: str = ""
    most: int = 4
    inner: bool = False

    def changes(self, module: ModuleOp) -> bool:
        return run_on(named_function(module, self.function, self.name), self.most, self.inner)


def run_on(op: Operation, most: int = 4, inner: bool = False) -> bool:
    """Unrolls in every function at or below `op`; whether there was anything."""
    changed = False
    for function in functions(op):
        for block in function.body.blocks:
            changed = _visit(block, most, inner) or changed
    return changed


def _visit(block: Block, most: int, inside: bool) -> bool:
    changed = False
    op = block.first_op
    while op is not None:
        following = op.next_op
        for region in op.regions:
            for inner in region.blocks:
                changed = _visit(inner, most, inside) or changed
        if type(op) is scf.ForOp and not (inside and not _is_hot_inner(op)):
            values = _iterations(op)
            if values is not None and 2 <= len(values) <= most and _is_small(op, len(values), _SIZE * most):
                unroll(op, values)
                changed = True
        op = following
    return changed


def _is_hot_inner(loop: scf.ForOp) -> bool:
    return not rt.LoopAttr.is_cold(loop) and isinstance(loop.parent_op(), scf.ForOp)


def _iterations(op: scf.ForOp) -> range | None:
    lower, upper, step = map(constant_integer, op.operands[:3])
    if lower is None or upper is None or step is None or step <= 0:
        return None
    return range(lower, upper, step)


def _is_small(op: Operation, count: int, most: int) -> bool:
    size = loops = 0
    for inner in ops_within(op):
        size += 1
        loops += bool(inner.regions)
        if size * count > most or loops > 2 or type(inner) is scf.WhileOp:
            return False
    return True


def unroll(op: scf.ForOp, values: range) -> None:
    """Writes the iterations of a loop out, in its place."""
    block, body = op.parent, op.body.block
    end = body.last_op
    assert block is not None and end is not None
    carried: list[SSAValue] = list(op.iter_args)
    for value in values:
        index = constant(value, i64)
        block.insert_op_before(index, op)
        mapping: dict[SSAValue, SSAValue] = dict(zip(body.args, (index.result, *carried), strict=True))
        for inner in body.ops:
            if inner is not end:
                block.insert_op_before(cloned(inner, mapping), op)
        carried = [mapping.get(v, v) for v in end.operands]
    for result, by in zip(op.results, carried, strict=True):
        replace_uses(result, by)
    discard(op)
