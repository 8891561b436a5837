"""Memory that each iteration overwrites before it reads any of it is the iteration's own; copies of it are not needed.

    take p                                              for n: take p
    for n: for k: p[k] = f(n, k)                  →            for k: p[k] = f(n, k)
           q = copy of p; target += g(q)                       target += g(p)

    p = copy of q; for k: p[k] = f(p[k], k)       →     for k: p[k] = f(q[k], k)

    for k: q[k] = f(p[k], k); p = copy of q       →     for k: p[k] = f(p[k], k)

A container that a program declares ahead of its loops is then what one in the loop is: small rows become scalars, rows
become lanes, and the reverse keeps no copy for each iteration. Only memory that one loop touches, and that is filled as
a whole at first: by a loop over all its elements, a fill, a copy, at each index of a few, or part by part (`p[0]`, a
loop from 1 to K - 2, `p[K - 1]`). A copy is left out if
neither it nor what it was taken from is written afterwards, or if the next loop overwrites it, reading an element of it
before.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer, not_clamped
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import OpOrder, ancestor_in, block_of, is_before, is_inside
from ulam.passes.loops.effects import kernel_buffers, may_overlap, root, written_roots_within
from ulam.passes.loops.index_forms import Form, IndexForms, plus
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import applied_to, discard, innermost_arm, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE

MOST_ELEMENTS = 8


class OverwrittenMemory(TellingPass):
    """Gives iterations of loops of `evaluate` the memory that they overwrite, and leaves out copies."""

    name = "overwritten-memory"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        function = evaluate_of(module, self.name)
        owned, order = _own_memory(function), OpOrder()
        return any([owned, *(_leave_out(copy, order) for copy in _all(function, rt.CopyOp))])


def _all(function: func.FuncOp, kind: type[Operation]) -> list[Operation]:
    return [op for op in ops_within(function) if type(op) is kind]


# ---------------------------------------------------------------- what touches memory


def _touching(memory: SSAValue, handing_on: Operation | None = None) -> list[Operation] | None:
    """Ops that read and write memory, through views, too; None if others have it, but for one that hands it on."""
    found: list[Operation] = []
    for use in memory.uses:
        op = use.operation
        if isinstance(op, rt.ViewOp):
            seen = _touching(op.results[0])
            if seen is None:
                return None
            found += seen
        elif isinstance(op, rt.LoadOp | rt.FillOp | rt.CopyOp) or isinstance(op, rt.StoreOp) and use.index == 1:
            found.append(op)
        elif op is handing_on:
            found.append(op)
        elif isinstance(op, rt.KernelOp) and memory in kernel_buffers(op)[0]:
            found.append(op)
        else:
            return None
    return found


def _writes(op: Operation, memory: SSAValue) -> bool:
    return any(may_overlap(found, root(memory)) for found in written_roots_within(op))


def _loop_over(store: Operation, memory: SSAValue, count: SSAValue) -> scf.ForOp | None:
    """The loop that stores each element of memory in an iteration of its own, if the op is that store."""
    if not isinstance(store, rt.StoreOp) or store.buffer is not memory:
        return None
    loop = store.parent_op()
    if not isinstance(loop, scf.ForOp) or store.index is not loop.body.block.args[0]:
        return None
    is_whole = constant_integer(loop.lb) == 0 and constant_integer(loop.step) == 1 and loop.ub is count
    return loop if is_whole else None


# ---------------------------------------------------------------- an iteration's own


def _own_memory(function: func.FuncOp) -> bool:
    changed, order = False, OpOrder()
    for alloc in _all(function, rt.AllocOp):
        current: Operation | None = alloc
        while current is not None:
            current = _move_inside(current, order) or _part_with_last(current, order)
            changed = changed or current is not None
    return changed


def _move_inside(alloc: Operation, order: OpOrder) -> Operation | None:
    """Takes memory in the iterations of the loop that overwrite it; None if there is no such loop."""
    assert isinstance(alloc, rt.AllocOp)
    memory, block = alloc.res, alloc.parent
    ops = _touching(memory) if memory.type == rt.BufferType(f64) and alloc.variable is not None else None
    if not ops or block is None:
        return None
    fills = [op for op in ops if isinstance(op, rt.FillOp) and op.parent is block]
    inside = [op for op in ops if op not in fills]
    loops = {ancestor_in(op, block) for op in inside}
    loop = loops.pop() if len(loops) == 1 else None
    if not isinstance(loop, scf.ForOp) or not all(order.is_before(fill, loop) for fill in fills):
        return None
    if not _is_filled_first(alloc, inside, loop.body.block) and not _is_filled_by_parts(alloc, inside, loop):
        return None
    first = loop.body.block.first_op
    assert first is not None
    own = _taken_in(loop, alloc)
    for view in _views_outside(memory, loop):
        view.detach()
        loop.body.block.insert_op_before(view, first)
    for fill in fills:
        discard(fill)
    replace_uses(memory, own.res)
    discard(alloc)
    return own


def _part_with_last(alloc: Operation, order: OpOrder) -> Operation | None:
    """Takes memory of its own in the iterations of the loop that overwrites it last, behind others that touch it; None
    if there is no such loop.
    """
    assert isinstance(alloc, rt.AllocOp)
    memory = alloc.res
    ops = _touching(memory) if memory.type == rt.BufferType(f64) and alloc.variable is not None else None
    ops = [op for op in ops or () if not (isinstance(op, rt.FillOp) and op.parent is alloc.parent)]
    block = innermost_arm(ops, alloc.parent)
    if not ops or block is None:
        return None
    places = {place for op in ops if (place := ancestor_in(op, block)) is not None}
    last = order.last(places) if len(places) > 1 else None
    if not isinstance(last, scf.ForOp) or _views_outside(memory, last):
        return None
    if not _is_filled_first(alloc, [op for op in ops if last.is_ancestor(op)], last.body.block):
        return None
    own = _taken_in(last, alloc)
    for use in list(memory.uses):
        if last.is_ancestor(use.operation):
            use.operation.operands[use.index] = own.res
    return own


def _taken_in(loop: scf.ForOp, alloc: rt.AllocOp) -> rt.AllocOp:
    """Memory like another one, which each iteration of a loop takes first."""
    first = loop.body.block.first_op
    assert first is not None
    own = applied_to(alloc, (alloc.count,))
    loop.body.block.insert_op_before(own, first)
    remark_on(OverwrittenMemory.name, loop, "memory that an iteration overwrites is its own", done=True)
    return own


def _views_outside(memory: SSAValue, loop: scf.ForOp) -> list[Operation]:
    """The views of memory that stand in front of a loop, those of views behind them."""
    found: list[Operation] = []
    for use in memory.uses:
        view = use.operation
        if isinstance(view, rt.ViewOp) and not is_inside(view.res, loop):
            found += [view, *_views_outside(view.res, loop)]
    return found


def _is_filled_first(alloc: rt.AllocOp, ops: Sequence[Operation], body: Block) -> bool:
    """Whether an iteration writes all elements before it reads one."""
    places = {op: place for op in ops if (place := ancestor_in(op, body)) is not None}
    for op in ops:
        place = places[op]
        loop = _loop_over(op, alloc.res, alloc.count)
        is_filled = loop is not None and loop is place
        if isinstance(op, rt.FillOp | rt.CopyOp) and op is place:
            is_filled = op.destination is alloc.res and op.count is alloc.count
        if is_filled and all(other is op or is_before(place, places[other]) for other in ops):
            return True
    count = constant_integer(alloc.count)
    if count is None or not 0 < count <= MOST_ELEMENTS:
        return False
    stores = [op for op in ops if isinstance(op, rt.StoreOp) and op.buffer is alloc.res and op is places[op]]
    stored = {constant_integer(op.index): op for op in reversed(_in_order(stores, body))}
    reads = [places[op] for op in ops if not isinstance(op, rt.StoreOp)]
    firsts = [stored.get(k) for k in range(count)]
    return all(op is not None and all(is_before(op, read) for read in reads) for op in firsts)


def _is_filled_by_parts(alloc: rt.AllocOp, ops: Sequence[Operation], loop: scf.ForOp) -> bool:
    """Whether an iteration writes elements one behind the other, up to the last one, before it reads one."""
    body, forms = loop.body.block, IndexForms(loop)
    places = {op: place for op in ops if (place := ancestor_in(op, body)) is not None}
    stores = [op for op in ops if isinstance(op, rt.StoreOp)]
    writers = set(map(places.get, stores))
    end: Form = {}  # elements below are written: of a loop without an iteration it may be less than that
    for place in body.ops:
        if place not in writers:
            continue
        here = [op for op in stores if places[op] is place]
        part = _part_of(here[0], place, forms) if len(here) == 1 else None
        if part is None or part[0] != end:
            return False
        end = plus(end, part[1])
        if end == forms.of(alloc.count):
            return all(is_before(place, places[op]) for op in ops if op not in stores)
    return False


def _part_of(store: rt.StoreOp, place: Operation, forms: IndexForms) -> tuple[Form, Form] | None:
    """Where the elements begin that an op writes, and how many there are at least."""
    begin, count = forms.of(store.index), {(): 1}
    if begin is not None and isinstance(place, scf.ForOp) and store.parent is place.body.block:
        variable = (forms.number(place.body.block.args[0]),)
        lower, upper = forms.of(place.lb), forms.of(not_clamped(place.ub))
        if begin.get(variable) != 1 or constant_integer(place.step) != 1 or lower is None or upper is None:
            return None
        begin, count = plus(plus(begin, {variable: 1}, -1), lower), plus(upper, lower, -1)
    elif store is not place:
        return None
    buffer = store.buffer
    while begin is not None and isinstance(view := buffer.owner, rt.ViewOp):
        offset = forms.of(view.offset)
        begin = None if offset is None else plus(begin, offset)
        buffer = view.buffer
    return None if begin is None else (begin, count)


def _in_order(ops: Sequence[rt.StoreOp], body: Block) -> list[rt.StoreOp]:
    return [op for op in body.ops if isinstance(op, rt.StoreOp) and op in ops]


# ---------------------------------------------------------------- copies


def _leave_out(copy: Operation, order: OpOrder) -> bool:
    """Whether a copy was not needed, and is there no more."""
    assert isinstance(copy, rt.CopyOp)
    if _fill_destination(copy, order):
        return True
    alloc = copy.destination.owner
    is_whole = isinstance(alloc, rt.AllocOp) and alloc.parent is copy.parent and copy.count is alloc.count
    if not is_whole or copy.source.type != rt.BufferType(f64):
        return False
    assert isinstance(alloc, rt.AllocOp)
    ops = _touching(alloc.res, _handing_on(copy, alloc))
    return ops is not None and (_read_source(copy, alloc, ops) or _update_source(copy, alloc, ops))


def _handing_on(copy: rt.CopyOp, alloc: rt.AllocOp) -> Operation | None:
    """The end of the block that may hand on what was copied as well as the copy: memory that is as long."""
    source = copy.source.owner
    is_as_long = isinstance(source, rt.AllocOp) and source.count is alloc.count
    return alloc.parent.last_op if is_as_long and alloc.parent is not None else None


def _read_source(copy: rt.CopyOp, alloc: rt.AllocOp, ops: Sequence[Operation]) -> bool:
    """Reads what was copied instead of the copy, if neither is written any more."""
    source, block = root(copy.source), copy.parent
    assert block is not None
    if not isinstance(source, SSAValue) or block_of(source) is not block or not isinstance(source.owner, rt.AllocOp):
        return False
    if any(_writes(op, alloc.res) for op in ops if op is not copy):
        return False
    writers = _touching(source)
    if writers is None:
        return False
    for op in writers:
        place = ancestor_in(op, block)
        if place is None or (op is not copy and _writes(op, source) and not is_before(place, copy)):
            return False
    remark_on(OverwrittenMemory.name, copy, "what is copied is read instead of the copy", done=True)
    read = copy.source
    discard(copy)
    replace_uses(alloc.res, read)
    discard(alloc)
    return True


def _update_source(copy: rt.CopyOp, alloc: rt.AllocOp, ops: Sequence[Operation]) -> bool:
    """Reads what was copied where the next loop writes each element of the copy."""
    others = [op for op in ops if op is not copy and not (isinstance(op, rt.FillOp) and is_before(op, copy))]
    loop = next((found for op in others if (found := _loop_over(op, alloc.res, alloc.count)) is not None), None)
    block = copy.parent
    if loop is None or block is None or loop.parent is not block or not is_before(copy, loop):
        return False
    body = loop.body.block
    loads: list[rt.LoadOp] = []
    for op in others:
        if ancestor_in(op, body) is None:
            place = ancestor_in(op, block)
            if place is None or not is_before(loop, place):
                return False
        elif isinstance(op, rt.LoadOp) and op.buffer is alloc.res and op.index is body.args[0] and op.parent is body:
            loads.append(op)
        elif not isinstance(op, rt.StoreOp) or _loop_over(op, alloc.res, alloc.count) is not loop:
            return False
    stores = [op for op in others if isinstance(op, rt.StoreOp) and op.parent is body]
    if len(stores) != 1 or not all(is_before(load, stores[0]) for load in loads):
        return False
    if is_inside(copy.source, loop) or not _stays(copy, loop):
        return False
    for load in loads:
        load.operands[0] = copy.source
    discard(copy)
    remark_on(OverwrittenMemory.name, loop, "what is copied is read where the copy is overwritten", done=True)
    return True


def _fill_destination(copy: rt.CopyOp, order: OpOrder) -> bool:
    """Stores what a loop computes where it is copied to, if it touches nothing there but the elements that it sets."""
    alloc, block, memory = copy.source.owner, copy.parent, root(copy.destination)
    if not isinstance(alloc, rt.AllocOp) or alloc.parent is not block or not isinstance(memory, SSAValue):
        return False
    stores = [op for op in _touching(alloc.res) or () if op is not copy]
    loop = _loop_over(stores[0], alloc.res, copy.count) if len(stores) == 1 else None
    if loop is None or loop.parent is not block or not _is_there(copy.destination, loop, order):
        return False
    store, body = stores[0], loop.body.block
    for op in ops_within(loop):
        if not any(_is_of(operand, memory) for operand in op.operands):
            continue
        is_own = isinstance(op, rt.LoadOp | rt.StoreOp) and op.buffer is copy.destination and op.index is body.args[0]
        if not is_own or op.parent is not body or not is_before(op, store):
            return False
    between = loop.next_op
    while between is not None and between is not copy:
        for op in (between, *ops_within(between)):
            if any(_is_of(operand, memory) for operand in op.operands) and not isinstance(op, rt.ViewOp):
                return False
        between = between.next_op
    if between is None:
        return False
    assert isinstance(store, rt.StoreOp)
    stored = rt.StoreOp(store.value, copy.destination, store.index, location=store.location)
    body.insert_op_before(stored, store)
    for op in (store, copy, alloc):
        discard(op)
    remark_on(OverwrittenMemory.name, loop, "what would be copied is stored in its place", done=True)
    return True


def _is_there(buffer: SSAValue, loop: scf.ForOp, order: OpOrder) -> bool:
    """Whether memory is known ahead of a loop."""
    owner = buffer.owner
    if isinstance(owner, Operation) and owner.parent is loop.parent:
        return order.is_before(owner, loop)
    return not is_inside(buffer, loop)


def _is_of(value: SSAValue, memory: SSAValue) -> bool:
    return isinstance(value.type, rt.BufferType) and may_overlap(root(value), memory)


def _stays(copy: rt.CopyOp, loop: scf.ForOp) -> bool:
    """Whether what was copied is the same until the end of a loop; that writes the copy."""
    source = root(copy.source)
    if source is root(copy.destination):
        return False
    op = copy.next_op
    while op is not None:
        if any(may_overlap(found, source) for found in written_roots_within(op)):
            return False
        if op is loop:
            return True
        op = op.next_op
    return False
