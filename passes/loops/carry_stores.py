"""What an iteration stores and the next one loads is carried to it as a value.

    for t: x = load s[t - 1]          before = load s[lower - 1]
           y = f(x)              →    for t, x = before: y = f(x)
           store y, s[t]                                 store y, s[t]
                                                         yield y

The store stays. Only where that lets something cancel, a square root that the next iteration squares
(`cancel-inverses`): a chain of additions through memory is as fast, and its reverse faster, since what is taken from
memory and added is one operation with a product, and what is carried is not.

Only counted loops by steps of 1 with one store to that memory, at the top level of the body, at an element that moves
with the iteration; and loads there that nothing before them in the body keeps from running.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import CMPI, constant, constant_integer
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.accesses import Access, Kind, LoopAccesses
from ulam.passes.loops.effects import Effect, effect_within, is_speculatable, may_overlap, viewed
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.loops.squares import pair_up, squares_of
from ulam.passes.rewriting import discard, rebuild, replace_uses


@record(frozen=True)
class CarryStores(FunctionPass):
    """Carries what an iteration stores to the next one, of all functions or of the one that is named."""

    name = "carry-stores"

    def changes_function(self, function: func.FuncOp) -> bool:
        changed = False
        for loop in [inner for inner in ops_within(function) if type(inner) is scf.ForOp]:
            changed = _carry(loop) or changed
        return changed


def _carry(loop: scf.ForOp) -> bool:
    body = loop.body.block
    stores = [op for op in body.ops if isinstance(op, rt.StoreOp) and op.value.type == f64]
    if not stores or constant_integer(loop.step) != 1 or not any(isinstance(op, rt.LoadOp) for op in body.ops):
        return False
    accesses = LoopAccesses(loop)
    if not accesses.is_known:
        return False
    changed = False
    for store in stores:
        loads = _loads_of_next(store, accesses, loop)
        if any(_cancels(store.value, load.res) for load in loads) and (first := _before(loads[0], loop)) is not None:
            loop = _carried(loop, store, loads, first)
            changed = True
    return changed


def _loads_of_next(store: rt.StoreOp, accesses: LoopAccesses, loop: scf.ForOp) -> list[rt.LoadOp]:
    """The loads that read what the store of the iteration before wrote, and nothing else."""
    of_store = next(access for access in accesses.accesses if access.op is store)
    if of_store.element is None or not of_store.element.coefficient or not isinstance(of_store.root, SSAValue):
        return []
    if not isinstance(of_store.root.owner, rt.AllocOp):
        return []
    for access in accesses.accesses:
        if access.op is not store and access.kind is not Kind.READ and may_overlap(access.root, of_store.root):
            return []
    runs = _first_to_run(loop)
    return [
        access.op
        for access in accesses.accesses
        if isinstance(access.op, rt.LoadOp) and access.op in runs and _is_next(access, of_store)
    ]


def _cancels(stored: SSAValue, loaded: SSAValue) -> bool:
    """Whether what is done to a loaded value undoes what the stored one is the result of."""
    op = stored.owner
    if not isinstance(op, rt.MathOp) or op.function.data != "sqrt":
        return False
    pair_up(loaded)
    return bool(squares_of(loaded))


def _is_next(load: Access, store: Access) -> bool:
    one, other = store.element, load.element
    if load.root is not store.root or one is None or other is None or one.terms != other.terms:
        return False
    return one.coefficient == other.coefficient == one.constant - other.constant


def _first_to_run(loop: scf.ForOp) -> set[Operation]:
    """The ops of the body that surely run in the first iteration."""
    found: set[Operation] = set()
    for op in loop.body.block.ops:
        if effect_within(op) & (Effect.LEAVE | Effect.ORDERED):
            break
        found.add(op)
    return found


# ---------------------------------------------------------------- doing it


def _before(load: rt.LoadOp, loop: scf.ForOp) -> SSAValue | None:
    """What the first iteration would load, in front of the loop; None if its place cannot be computed there."""
    if not isinstance(viewed(load.buffer).owner, rt.AllocOp):
        return None
    mapping: dict[SSAValue, SSAValue] = {loop.body.block.args[0]: loop.lb}
    ops: list[Operation] = []
    if not (_copy(load.buffer, loop, mapping, ops) and _copy(load.index, loop, mapping, ops)):
        return None
    index = mapping.get(load.index, load.index)
    lower, upper = constant_integer(loop.lb), constant_integer(loop.ub)
    may_be_empty = lower is None or upper is None or lower >= upper
    if may_be_empty:  # behind every block of the arena there is some slack
        zero = constant(0, i64)
        runs = arith.CmpiOp.create(
            operands=(loop.lb, loop.ub), result_types=(i1,), properties={"predicate": CMPI["slt"]})  # fmt: skip
        either = arith.SelectOp.create(operands=(runs.result, index, zero.result), result_types=(i64,))
        ops += [zero, runs, either]
        index = either.results[0]
    new = rt.LoadOp(mapping.get(load.buffer, load.buffer), index, location=load.location)
    if may_be_empty:
        rt.AheadAttr().put(new)
    assert loop.parent is not None
    loop.parent.insert_ops_before([*ops, new], loop)
    return new.res


def _copy(value: SSAValue, loop: scf.ForOp, mapping: dict[SSAValue, SSAValue], ops: list[Operation]) -> bool:
    """Copies of what computes a value in the body, for the first iteration; whether that is possible."""
    if value in mapping or not is_inside(value, loop):
        return True
    op = value.owner
    if not isinstance(op, Operation) or op.regions:
        return False
    if not isinstance(op, rt.ViewOp) and not is_speculatable(op):
        return False
    if not all(_copy(operand, loop, mapping, ops) for operand in op.operands):
        return False
    ops.append(op.clone(mapping))
    return True


def _carried(loop: scf.ForOp, store: rt.StoreOp, loads: list[rt.LoadOp], first: SSAValue) -> scf.ForOp:
    body = loop.body.block
    argument = body.insert_arg(f64, len(body.args))
    for load in loads:
        replace_uses(load.res, argument)
        discard(load)
    end = terminator(body)
    end.operands = [*end.operands, store.value]
    new = rebuild(loop, [*loop.operands, first], [*(result.type for result in loop.results), f64])
    assert isinstance(new, scf.ForOp)
    return new
