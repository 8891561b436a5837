"""Takes scattered additions out of loops that compute, so that the computing can be widened.

    for i: ... adj[idx[i]] += v      →    for blocks: for i: ... part[i - first] = v
                                                      for i: adj[idx[i]] += part[i - first]

Two iterations may add to the same element, so a loop with such additions stays scalar, with all the functions that it
evaluates. Only loops that evaluate functions worth it, and that read nothing of what they add to.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant
from ulam.dialects.walk import ops_within
from ulam.passes.builder import WRAPS
from ulam.passes.loops.effects import is_speculatable, may_overlap, root
from ulam.passes.loops.tables import is_costly_function

_BLOCK = 256
_SHIFT = 8


class SplitScatters(ModulePass):
    """Takes scattered additions out of loops that compute, so that the computing can be widened."""

    name = "split-scatters"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op)


def run_on(op: Operation) -> None:
    """Splits all loops at or below `op` that profit."""
    for loop in [o for o in ops_within(op) if isinstance(o, scf.ForOp)]:
        if not rt.LoopAttr.is_cold(loop) and (scatters := _scatters(loop)):
            _split(loop, scatters)


def _scatters(loop: scf.ForOp) -> list[ad.AccumulateOp]:
    """The additions of a loop to be taken out of it; none if that gains nothing or is not allowed."""
    body = loop.body.block
    scattered: list[ad.AccumulateOp] = []
    costly = False
    read: list[SSAValue] = []
    for op in body.ops:
        if isinstance(op, ad.AccumulateOp):
            if _depends_on_load(op.index, loop):
                scattered.append(op)
        elif isinstance(op, rt.MathOp):
            costly = costly or is_costly_function(op)
        elif isinstance(op, rt.LoadOp | ad.TakeOp | ad.KeptOp):
            read.append(op.operands[0])
        elif not isinstance(op, rt.StoreOp | ad.KeepOp | scf.YieldOp) and not is_speculatable(op):
            return []
    if not costly or not scattered:
        return []
    targets = [root(op.buffer) for op in scattered]
    if any(may_overlap(root(buffer), target) for buffer in read for target in targets):
        return []
    movable = all(_is_outside(op.buffer, loop) and _slice(op.index, loop) is not None for op in scattered)
    return scattered if movable else []


def _is_outside(value: SSAValue, loop: scf.ForOp) -> bool:
    owner = value.owner
    return owner is not loop.body.block if isinstance(owner, Block) else owner.parent is not loop.body.block


def _depends_on_load(index: SSAValue, loop: scf.ForOp) -> bool:
    ops = _slice(index, loop)
    return ops is None or any(isinstance(op, rt.LoadOp) for op in ops)


def _slice(index: SSAValue, loop: scf.ForOp) -> list[Operation] | None:
    """The ops of the body that an index is computed by, in order; None if it depends on what the loop carries."""
    found: dict[Operation, None] = {}

    def visit(value: SSAValue) -> bool:
        if _is_outside(value, loop) or value is loop.body.block.args[0]:
            return True
        op = value.owner
        if not isinstance(op, Operation) or not (isinstance(op, rt.LoadOp) or is_speculatable(op)):
            return False
        if op not in found:
            if not all(visit(operand) for operand in op.operands):
                return False
            found[op] = None
        return True

    return list(found) if visit(index) else None


def _split(loop: scf.ForOp, scatters: list[ad.AccumulateOp]) -> None:
    assert loop.parent is not None
    size = constant(_BLOCK, i64)
    parts = [rt.AllocOp(size.result, rt.BufferType(f64), stack=True) for _ in scatters]
    zero, one, shift, most = (constant(value, i64) for value in (0, 1, _SHIFT, _BLOCK - 1))
    span = arith.SubiOp.create(operands=(loop.ub, loop.lb), result_types=(i64,), properties=WRAPS)
    raised = arith.AddiOp.create(operands=(span.result, most.result), result_types=(i64,), properties=WRAPS)
    blocks = arith.ShRSIOp.create(operands=(raised.result, shift.result), result_types=(i64,))
    loop.parent.insert_ops_before([size, *parts, zero, one, shift, most, span, raised, blocks], loop)

    types = [v.type for v in loop.iter_args]
    block = Block(arg_types=[i64, *types])
    scaled = arith.MuliOp.create(operands=(block.args[0], size.result), result_types=(i64,), properties=WRAPS)
    first = arith.AddiOp.create(operands=(loop.lb, scaled.result), result_types=(i64,), properties=WRAPS)
    limit = arith.AddiOp.create(operands=(first.result, size.result), result_types=(i64,), properties=WRAPS)
    end = arith.MinSIOp.create(operands=(limit.result, loop.ub), result_types=(i64,))
    block.add_ops([scaled, first, limit, end])

    additions = _additions(loop, scatters, parts, first.result, end.result, one.result)
    for scatter, part in zip(scatters, parts, strict=True):
        position = arith.SubiOp.create(
            operands=(loop.body.block.args[0], first.result), result_types=(i64,), properties=WRAPS)  # fmt: skip
        store = rt.StoreOp(scatter.value, part.res, position.result, initial=True)
        loop.body.block.insert_ops_before([position, store], scatter)
        scatter.detach()
        scatter.erase()

    region = loop.detach_region(loop.body)
    inner = scf.ForOp.create(
        operands=(first.result, end.result, one.result, *block.args[1:]),
        result_types=types,
        regions=[region],
        attributes=loop.attributes,
        location=loop.location,
    )
    block.add_ops([inner, additions, scf.YieldOp.create(operands=inner.results)])
    outer = scf.ForOp.create(
        operands=(zero.result, blocks.result, one.result, *loop.iter_args),
        result_types=types,
        regions=[Region(block)],
        location=loop.location,
    )
    loop.parent.insert_op_before(outer, loop)
    for old, new in zip(loop.results, outer.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    loop.detach()
    loop.erase()


def _additions(
    loop: scf.ForOp,
    scatters: list[ad.AccumulateOp],
    parts: list[rt.AllocOp],
    first: SSAValue,
    end: SSAValue,
    one: SSAValue,
) -> scf.ForOp:
    """The loop that adds what a block has computed."""
    body = Block(arg_types=[i64])
    values: dict[SSAValue, SSAValue] = {loop.body.block.args[0]: body.args[0]}
    position = arith.SubiOp.create(operands=(body.args[0], first), result_types=(i64,), properties=WRAPS)
    body.add_op(position)
    copied: set[Operation] = set()
    for scatter, part in zip(scatters, parts, strict=True):
        ops = _slice(scatter.index, loop)
        assert ops is not None
        for op in ops:
            if op not in copied:
                copied.add(op)
                body.add_op(op.clone(value_mapper=values))
        value = rt.LoadOp(part.res, position.result)
        index = values.get(scatter.index, scatter.index)
        body.add_ops([value, ad.AccumulateOp(scatter.buffer, index, value.res, location=scatter.location)])
    body.add_op(scf.YieldOp.create())
    return scf.ForOp.create(operands=(first, end, one), regions=[Region(body)], location=loop.location)
