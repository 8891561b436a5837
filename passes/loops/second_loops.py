"""Loops that do for some iterations, behind a loop, what that has left out.

for n: ... t ... y; add y       →   for n: ... t; ok = t is in range; add log(ok ? t : 1); bad |= !ok
                                    for n, if bad: ... t; ok = t is in range; if !ok: ... y; add y
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import CMPI, constant, known_constant
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import ancestor_in, is_inside, terminator
from ulam.passes.loops.accesses import LoopAccesses
from ulam.passes.loops.effects import (
    UNKNOWN,
    Effect,
    Root,
    effect_within,
    may_overlap,
    root,
    viewed,
    written_roots_within,
)
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.rewriting import copies, rebuild

RANGE_BITS = 900.0
"""Products and sums are trusted from 2^-900 to 2^900."""

Privates = dict[SSAValue, list[Operation]]
"""Memory from outside of a loop that its iterations use as their own → what makes it: allocation and fills."""


def is_sink(op: Operation, loop: scf.ForOp) -> bool:
    """Whether an op of a loop's body does with a value what a second loop can do for some iterations alone: it adds to
    the target, or stores to an element that no other iteration stores to, nor this loop loads."""
    if op.parent is not loop.body.block:
        return False
    if not isinstance(op, rt.StoreOp):
        return isinstance(op, ad.TargetAddOp)
    accesses = LoopAccesses(loop)
    here = next((access for access in accesses.accesses if access.op is op), None)
    if here is None or not accesses.is_known or here.element is None or not here.element.coefficient:
        return False
    others = (access for access in accesses.accesses if access is not here)
    return not any(may_overlap(access.root, here.root) for access in others)


def repeatable(values: Iterable[SSAValue], loop: scf.ForOp, privates: Privates) -> list[Operation] | None:
    """The ops of a loop's body that compute values, in order; None if they cannot run once more, behind the loop."""
    body = loop.body.block
    written = written_roots_within(loop)
    found: set[Operation] = set()
    pending = [value for value in values if is_inside(value, loop) and not isinstance(value.type, rt.BufferType)]
    ops: list[Operation] = []
    while pending or ops:
        if not ops:
            value = pending.pop()
            if value.owner is body:
                if value is not body.args[0]:
                    return None
                continue
            owner = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
            assert owner is not None
            op = ancestor_in(owner, body)
            assert op is not None
            ops.append(op)
        op = ops.pop()
        if op in found:
            continue
        if effect_within(op) & (Effect.ORDERED | Effect.LEAVE):
            return None
        found.add(op)
        pending += [free for free in free_values_of_op(op) if is_inside(free, loop)]
        for source in {source for buffer in _buffers(op) for source in roots_of(buffer)}:
            if isinstance(source, SSAValue) and (is_inside(source, loop) or source in written):
                if not is_inside(source, loop) and not _is_private(source, loop, privates):
                    return None
                ops += [writer for writer in body.ops if source in written_roots_within(writer)]
            elif source in written or UNKNOWN in written or (source is UNKNOWN and written):
                return None
    return [op for op in body.ops if op in found]


def _is_private(source: SSAValue, loop: scf.ForOp, privates: Privates) -> bool:
    """Whether memory is made right before a loop, without contents: another one can have the same."""
    alloc = source.owner
    if source in privates:
        return True
    if not isinstance(alloc, rt.AllocOp) or alloc.parent is not loop.parent:
        return False
    makes: list[Operation] = [alloc]
    op = alloc.next_op
    while op is not None and op is not loop:
        if isinstance(op, rt.FillOp) and op.destination is source and known_constant(op.value) is not None:
            makes.append(op)
        elif not isinstance(op, ad.IndependentOp) and source in written_roots_within(op):
            return False
        op = op.next_op
    privates[source] = makes
    return True


def _buffers(op: Operation) -> list[SSAValue]:
    return [
        operand for inner in ops_within(op) for operand in inner.operands if isinstance(operand.type, rt.BufferType)
    ]


def split(loop: scf.ForOp, sink: Operation, old: Operation, total: SSAValue) -> None:
    """Does with the logarithm of the total what is done with what it was, where it is in range; in a second loop the
    rest."""
    body = loop.body.block
    write = OpWriter(old)
    bound = math.ldexp(1.0, int(RANGE_BITS))
    ok = write.both([write.compare("oge", total, 1 / bound), write.compare("ole", total, bound)])
    privates: Privates = {}
    second, mapping = _second(loop, sink, ok, privates)
    safe = write.put(arith.SelectOp.create(operands=(ok, total, write.number(1.0)), result_types=(f64,)))
    log = write.put(rt.MathOp("log", (safe,), location=old.location))
    sink.operands = [log if operand is old.results[0] else operand for operand in sink.operands]
    # whether there is any that is not in range
    argument = body.insert_arg(i64, len(body.args))
    end = terminator(body)
    write = OpWriter(end)
    none, one = write.put(constant(0, i64)), write.put(constant(1, i64))
    bad = write.put(arith.SelectOp.create(operands=(ok, none, one), result_types=(i64,)))
    end.operands = [*end.operands, write.put(arith.OrIOp.create(operands=(argument, bad), result_types=(i64,)))]
    assert loop.parent is not None
    start = constant(0, i64)
    loop.parent.insert_op_before(start, loop)
    new = rebuild(loop, [*loop.operands, start.result], [*(result.type for result in loop.results), i64])
    assert isinstance(new, scf.ForOp) and new.parent is not None
    all_ok = arith.CmpiOp.create(
        operands=(new.results[-1], start.result), result_types=(i1,), properties={"predicate": CMPI["eq"]}
    )
    upper = arith.SelectOp.create(operands=(all_ok.result, new.lb, new.ub), result_types=(i64,))
    rest = scf.ForOp.create(
        operands=(new.lb, upper.results[0], new.step), regions=[Region(second)], location=new.location
    )
    for inner in ops_within(rest):
        if isinstance(inner, scf.ForOp):
            rt.LoopAttr.of_kind("cold").put(inner)
    own = [op for makes in privates.values() for op in copies(makes, mapping)]
    new.parent.insert_ops_after([all_ok, upper, *own, rest], new)
    for op in ops_within(rest):
        op.operands = [mapping.get(operand, operand) if operand in privates else operand for operand in op.operands]


def _second(
    loop: scf.ForOp, sink: Operation, ok: SSAValue, privates: Privates
) -> tuple[Block, dict[SSAValue, SSAValue]]:
    """The body of a loop that does what the first has left out, and what its values are copies of."""
    tests, everything = repeatable([ok], loop, privates), repeatable(sink.operands, loop, privates)
    assert tests is not None and everything is not None
    body = Block(arg_types=[i64])
    mapping: dict[SSAValue, SSAValue] = {loop.body.block.args[0]: body.args[0]}
    body.add_ops(copies(tests, mapping))
    if privates:  # which an iteration may read as one before has left it: all run
        body.add_ops(copies([op for op in everything if op not in set(tests)], mapping))
        tests = everything
    known = set(tests)
    otherwise = Block(copies([*(op for op in everything if op not in known), sink], mapping))
    otherwise.add_op(scf.YieldOp.create())
    body.add_op(
        scf.IfOp.create(operands=(mapping[ok],), regions=[Region(Block([scf.YieldOp.create()])), Region(otherwise)])
    )
    body.add_op(scf.YieldOp.create())
    return body, mapping


def roots_of(buffer: SSAValue) -> set[Root]:
    """The allocations that a buffer may be a part of; one that a branch gives is of either arm."""
    op = viewed(buffer).owner
    if isinstance(op, scf.IfOp):
        position = op.results.index(viewed(buffer))
        ends = [terminator(region.block).operands[position] for region in op.regions]
        return {found for end in ends for found in roots_of(end)}
    return {root(buffer)}
