"""What is added to the target, addend by addend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects import arith
from xdsl.dialects.builtin import f64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.passes.rewriting import discard

_STRICT = {"fastmath": arith.FastMathFlagsAttr("none")}
Addend = tuple[SSAValue | rt.MathOp, bool]
"""A value, or an `fma` for its product, and whether it is subtracted."""


def addends(value: SSAValue, block: Block, *, negative: bool = False) -> Iterator[Addend]:
    """What is added up to a value that nothing else needs, in its block."""
    op = value.owner
    if isinstance(op, rt.MathOp) and op.function.data == "fma" and value.has_one_use() and op.parent is block:
        yield op, negative
        yield from addends(op.operands[2], block, negative=negative)
        return
    if not isinstance(op, arith.AddfOp | arith.SubfOp) or not value.has_one_use() or op.parent is not block:
        yield value, negative
        return
    yield from addends(op.lhs, block, negative=negative)
    yield from addends(op.rhs, block, negative=negative != isinstance(op, arith.SubfOp))


def take_apart(op: ad.TargetAddOp, found: Iterable[Addend]) -> list[ad.TargetAddOp]:
    """Adds each addend on its own in the place of all."""
    block = op.parent
    assert block is not None
    written: list[ad.TargetAddOp] = []
    for value, negative in found:
        if isinstance(value, rt.MathOp):
            product = arith.MulfOp.create(
                operands=value.operands[:2], result_types=(f64,), properties=_STRICT, location=value.location
            )
            block.insert_op_before(product, op)
            value = product.result
        if negative:
            negation = arith.NegfOp.create(operands=(value,), result_types=(f64,), properties=_STRICT)
            block.insert_op_before(negation, op)
            value = negation.results[0]
        written.append(ad.TargetAddOp(value, location=op.location))
        block.insert_op_before(written[-1], op)
    work: list[Operation] = [op]
    while work:  # what nothing needs any more would seem to need what is moved
        dead = work.pop()
        makers = [
            value.owner for value in dead.operands if isinstance(value.owner, arith.AddfOp | arith.SubfOp | rt.MathOp)
        ]
        discard(dead)
        work += [each for each in makers if each.results[0].first_use is None and each.parent is block]
    return written
