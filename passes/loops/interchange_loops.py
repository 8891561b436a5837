"""Loops that make a container anew from the one before, element by element, go inside of the loop over its elements.

    for k, m = m0: for n: new[n] = f(m[n], k, n)           for n: x = m0[n]
                   m = new                           →            for k: x = f(x, k, n)
                                                                  m[n] = x

So `for (k in 1:K) mu += b[k] * X[ , k]` is what `mu = X * b` is, a sum for each row, which layouts know, and which
needs no container for each step on the way back. Each element is computed as it was. Only where the steps do nothing
but that.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, f64, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant, constant_integer
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.effects import is_speculatable
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import applied_to, copies, discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE

_REALS = rt.BufferType(f64)


class InterchangeLoops(TellingPass):
    """Puts loops of `evaluate` that make containers step by step inside of the loops over their elements."""

    name = "interchange-loops"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        loops = [op for op in ops_within(evaluate_of(module, self.name)) if type(op) is scf.ForOp]
        found = [steps for loop in loops if (steps := _steps(loop)) is not None]
        for steps in found:
            _interchange(steps)
        return bool(found)


@record
class _Steps:
    """A loop whose iterations make a container of the one before."""

    loop: scf.ForOp
    elements: scf.ForOp
    made: rt.AllocOp
    store: rt.StoreOp
    loads: list[rt.LoadOp]
    """Of the element that there was."""


def _steps(loop: scf.ForOp) -> _Steps | None:
    """None if it is no such loop."""
    body = loop.body.block
    if [result.type for result in loop.results] != [_REALS]:
        return None
    made = terminator(body).operands[0].owner
    inner = [op for op in body.ops if op.regions]
    if len(inner) != 1 or not isinstance(elements := inner[0], scf.ForOp) or not isinstance(made, rt.AllocOp):
        return None
    others = [op for op in body.ops if op not in (made, elements) and not isinstance(op, scf.YieldOp)]
    if made.parent is not body or not all(map(_only_computes, others)) or not _is_over(elements, made, loop):
        return None
    inside = list(elements.body.block.ops)
    stores = [op for op in inside if isinstance(op, rt.StoreOp)]
    if elements.results or len(stores) != 1 or not all(_only_computes(op) for op in inside[:-1] if op not in stores):
        return None
    (store,) = stores
    index = elements.body.block.args[0]
    if store.index is not index or {use.operation for use in made.res.uses} != {store, terminator(body)}:
        return None
    loads = [use.operation for use in body.args[1].uses]
    are_own = all(isinstance(op, rt.LoadOp) and op.index is index and op.parent is store.parent for op in loads)
    if store.buffer is not made.res or not loads or not are_own:
        return None
    return _Steps(loop, elements, made, store, [op for op in loads if isinstance(op, rt.LoadOp)])


def _only_computes(op: Operation) -> bool:
    return isinstance(op, rt.LoadOp | rt.ViewOp) or is_speculatable(op)


def _is_over(elements: scf.ForOp, made: rt.AllocOp, loop: scf.ForOp) -> bool:
    """Whether a loop is over all elements of what an iteration makes, as many in each."""
    is_whole = constant_integer(elements.lb) == 0 and constant_integer(elements.step) == 1
    return is_whole and elements.ub is made.count and not is_inside(made.count, loop)


def _interchange(steps: _Steps) -> None:
    loop, block = steps.loop, steps.loop.parent
    assert block is not None
    rows = Block(arg_types=[steps.elements.body.block.args[0].type])
    inner = Block(arg_types=[loop.body.block.args[0].type, f64])
    row, (step, element) = rows.args[0], inner.args
    row.name_hint, step.name_hint = steps.elements.body.block.args[0].name_hint, loop.body.block.args[0].name_hint
    mapping: dict[SSAValue, SSAValue] = {loop.body.block.args[0]: step, steps.elements.body.block.args[0]: row}
    mapping.update((load.res, element) for load in steps.loads)
    left = (steps.made, steps.elements, steps.store, *steps.loads)
    for ops in (loop.body.block.ops, steps.elements.body.block.ops):
        inner.add_ops(copies([op for op in ops if op not in left and not isinstance(op, scf.YieldOp)], mapping))
    inner.add_op(scf.YieldOp.create(operands=(mapping.get(steps.store.value, steps.store.value),)))

    before = rt.LoadOp(loop.iter_args[0], row)
    along = scf.ForOp.create(
        operands=(loop.lb, loop.ub, loop.step, before.res),
        result_types=(f64,),
        regions=[Region(inner)],
        location=loop.location,
    )
    made = applied_to(steps.made, (steps.made.count,))
    store = rt.StoreOp(along.results[0], made.res, row, initial=True, location=steps.store.location)
    rows.add_ops([before, along, store, scf.YieldOp.create()])
    first, one = constant(0, i64), constant(1, i64)
    around = scf.ForOp.create(
        operands=(first.result, steps.made.count, one.result),
        regions=[Region(rows)],
        location=steps.elements.location,
    )
    block.insert_ops_before([first, one, made, around], loop)
    remark_on(InterchangeLoops.name, loop, "each element goes through all steps by itself", done=True)
    replace_uses(loop.results[0], made.res)
    discard(loop)
