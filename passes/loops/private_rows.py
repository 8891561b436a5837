"""Memory of which each iteration of a loop needs its own part alone: the iteration takes that for itself.

    for n: for k: g[n, k] = f(n, k)                    for n: take p
    for n: target += log_sum_exp(g[n])         →              for k: p[k] = f(n, k)
                                                              target += log_sum_exp(p)

A container that one loop fills and another over the same range reads, row by row: the loops become one, and rows need
no more than one after the other. A copy that loops then change is such a loop, too. What follows then sees what it
would see of a variable of the loop: small rows become scalars, the loop adds to the target alone, and its reverse needs
no memory of the whole.

Which elements an iteration touches is found by `row_memory`. Not applied where another place touches the memory, where
iterations may touch the same element, or where loops cannot become one (`loop_fusion`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, f64, i64
from xdsl.ir import BlockArgument, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant, constant_integer, is_same_integer
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import OpOrder, ancestor_in, is_inside
from ulam.passes.builder import WRAPS
from ulam.passes.loops.accesses import Access, Kind, meet_in_order
from ulam.passes.loops.bound_forms import BoundForms, bound_ints
from ulam.passes.loops.effects import Root, viewed
from ulam.passes.loops.index_forms import IndexForms, known, limit_of, plus
from ulam.passes.loops.linear_rows import new_loop
from ulam.passes.loops.loop_fusion import CountedLoop, Fusion
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.row_memory import MemoryUses, places_of
from ulam.passes.loops.tables import is_costly_function
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import applied_to, discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE


class PrivateRows(TellingPass):
    """Lets iterations take memory for themselves instead of a part of what all share."""

    name = "private-rows"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        evaluate = evaluate_of(module, self.name)
        order = OpOrder()
        copies = [op for op in ops_within(evaluate) if type(op) is rt.CopyOp and _is_then_changed(op, order)]
        for copy in copies:
            _write_as_loop(copy)
        return run_on(evaluate, bound_ints(module)) or bool(copies)


def run_on(function: func.FuncOp, bound: dict[int, SSAValue]) -> bool:
    """Changes the loops of a function; whether there was anything to do. `bound`: what `bind` puts into slots."""
    changed = False
    while shared := [op for op in _allocations(function) if _may_be_private(MemoryUses.of(op))]:
        fusion = _FusionOfRows(bound)
        for block in function.body.blocks:
            fusion.visit(block)
        taken = [op for op in shared if take_inside(op, bound)]
        changed = changed or fusion.changed or bool(taken)
        if not taken:
            break
        # Loops inside of a loop may become one now that their memory is the iteration's own.
    return changed


def _allocations(function: func.FuncOp) -> list[Operation]:
    return [op for op in ops_within(function) if type(op) is rt.AllocOp]


def _is_then_changed(copy: rt.CopyOp, order: OpOrder) -> bool:
    """Whether all elements are copied to memory that loops behind then change, and nothing else accesses."""
    alloc, block = copy.destination.owner, copy.parent
    if not isinstance(alloc, rt.AllocOp) or alloc.res.type != rt.BufferType(f64):
        return False
    if block is None or alloc.parent is not block:
        return False
    if not is_same_integer(copy.count, alloc.count):
        return False
    if any(isinstance(op := use.operation, rt.CopyOp) and op is not copy for use in alloc.res.uses):
        return False
    others = [op for use in alloc.res.uses if (op := use.operation) is not copy and not isinstance(op, rt.FillOp)]
    loops = [ancestor_in(op, block) for op in others]
    if not all(isinstance(loop, scf.ForOp) and order.is_before(copy, loop) for loop in loops):
        return False
    return any(isinstance(op, rt.StoreOp) for op in others)


def _write_as_loop(copy: rt.CopyOp) -> None:
    """Puts a loop over elements in the place of a copy: it may become one with those behind."""
    write = OpWriter(copy)
    variable, inside = new_loop(write, write.whole(0), copy.count)
    inside.before(rt.StoreOp(inside.put(rt.LoadOp(copy.source, variable)), copy.destination, variable))
    discard(copy)


def _may_be_private(uses: MemoryUses | None) -> bool:
    """Whether it is worth while to find out which elements iterations touch."""
    if uses is None:
        return False
    return len(uses.loops) > 1 or any(access.op.parent is not uses.loops[0].body.block for access in uses.accesses)


# ---------------------------------------------------------------- two loops become one


class _FusionOfRows(Fusion):
    """Fuses loops of which the second reads, row by row, what the first has filled for it alone."""

    def __init__(self, bound: dict[int, SSAValue]) -> None:
        super().__init__(before_reverse_mode=True, reassociate=True)
        self._bound = bound
        self._rows: dict[SSAValue, tuple[set[scf.ForOp], bool | None]] = {}

    def is_wanted(self, first: CountedLoop, second: CountedLoop, absorb: bool) -> bool:
        if absorb or first.accesses.adds_to_target or not self.is_possible(first, second):
            return False
        written = first.written_outside
        passed = {memory: rows for memory in written if (rows := self._passed_on(memory, first, second)) is not None}
        if not any(passed.values()):  # as `loop-fusion` has it, but for what a loop with branches or loops adds up
            straight = first if second.accesses.has_regions else second
            if first.accesses.has_regions == second.accesses.has_regions:
                # Branches one behind the other on what fills memory in steps: the loop that reads it comes next.
                return self._fill_in_turn(first, second) and _only_branches(first.op) and _only_branches(second.op)
            # Rows with loops inside run side by side, too, if they do nothing but add to the target.
            if _is_costly(straight.op) and not (straight is second and second.only_adds_to_target()):
                return False
        # What only adds to the target has its reverse in the same loop, and is to stay so.
        if second.only_adds_to_target():
            return bool(passed) and len(passed) == len(written)
        return bool(passed) or any(_is_read_in_order(memory, first, second) for memory in written)

    @staticmethod
    def _fill_in_turn(first: CountedLoop, second: CountedLoop) -> bool:
        """Whether the second of two loops changes the elements that the first one has set."""
        written = first.summary.written
        if not written or written != second.summary.written:
            return False
        return all(_is_read_in_order(memory, first, second) for memory in written)

    def keeps_order(self, first: CountedLoop, second: CountedLoop) -> bool:
        met = {
            a.root
            for a in first.accesses.accesses
            for b in second.accesses.accesses
            if not meet_in_order(a, b, self.before_reverse_mode)
            and not _is_newer(b.root, a)
            and not _is_newer(a.root, b)
        }
        return all(self._passed_on(memory, first, second) is not None for memory in met)

    def _passed_on(self, memory: Root, first: CountedLoop, second: CountedLoop) -> bool | None:
        """Whether an iteration has more than an element at hand of memory that the two loops alone touch, in parts of
        their iterations; None if it is no such memory.
        """
        if not isinstance(memory, SSAValue):
            return None
        if memory not in self._rows:
            self._rows[memory] = self._found(memory)
        loops, are_rows = self._rows[memory]
        return are_rows if loops == {first.op, second.op} else None

    def _found(self, memory: SSAValue) -> tuple[set[scf.ForOp], bool | None]:
        """The loops that touch memory, and what `_passed_on` says of them."""
        uses = MemoryUses.of(memory.owner) if isinstance(memory.owner, rt.AllocOp) else None
        if uses is None or len(uses.loops) != 2:
            return set(), None
        places = places_of(uses, self._bound)
        return {*uses.loops}, None if isinstance(places, str) else places.are_rows(uses)

    def fuse(self, first: scf.ForOp, second: scf.ForOp, late: list[Operation]) -> scf.ForOp:
        self._rows.clear()
        return super().fuse(first, second, late)


def _only_branches(loop: scf.ForOp) -> bool:
    """Whether a loop has branches, and no loops inside."""
    inside = {type(op) for op in ops_within(loop.body.block) if op.regions}
    return inside == {scf.IfOp}


def _is_costly(loop: scf.ForOp) -> bool:
    """Whether it gains much by being widened: others may stand beside loops, which are not."""
    return any(isinstance(op, arith.DivfOp) or is_costly_function(op) for op in loop.body.block.ops)


def _is_newer(memory: Root, access: Access) -> bool:
    """Whether an iteration takes memory for itself, and the access is of what the iteration before has handed on."""
    if not isinstance(access.op, rt.LoadOp) or not isinstance(memory, SSAValue):
        return False
    handed = viewed(access.op.buffer)
    loop = handed.owner.parent_op() if isinstance(handed, BlockArgument) else None
    return isinstance(loop, scf.ForOp) and isinstance(memory.owner, rt.AllocOp) and is_inside(memory, loop)


def _is_read_in_order(memory: Root, first: CountedLoop, second: CountedLoop) -> bool:
    """Whether the second of two loops reads elements in the iterations in which the first writes them."""
    ones, others = ([a for a in loop.accesses.accesses if a.root is memory] for loop in (first, second))
    reads = any(access.kind is Kind.READ for access in others)
    return reads and all(meet_in_order(one, other, True) for one in ones for other in others)


def take_inside(alloc: Operation, bound: dict[int, SSAValue]) -> bool:
    """Gives each iteration of the loop memory of its own for what it accesses; whether that may be."""
    uses = MemoryUses.of(alloc)
    if uses is None or len(uses.loops) != 1 or not isinstance(alloc, rt.AllocOp):
        return False
    (loop,) = uses.loops
    places = places_of(uses, bound)
    if isinstance(places, str):
        remark_on(PrivateRows.name, alloc, f"its parts stay in one piece of memory: {places}", done=False)
        return False
    if not places.are_rows(uses):
        return False
    _settle_bounds(loop, places.forms)
    _align(loop, [access.op for access in uses.accesses], bound)
    places = places_of(uses, bound)
    first = loop.body.block.first_op
    assert first is not None and not isinstance(places, str)
    ops, size = places.forms.write(places.size)
    if known(places.size) is None:  # of a size that is below 0 nothing was touched
        zero = constant(0, i64)
        clamped = arith.MaxSIOp.create(operands=(size, zero.result), result_types=(i64,))
        ops += [zero, clamped]
        size = clamped.results[0]
    private = applied_to(alloc, (size,))
    ops.append(private)
    if uses.fill is not None:
        ops.append(applied_to(uses.fill, (private.res, uses.fill.value, size)))
    loop.body.block.insert_ops_before(ops, first)
    for access, element in zip(uses.accesses, places.elements, strict=True):
        block = access.op.parent
        assert block is not None
        index_ops, index = places.forms.write(element)
        stored = access.op.operands[:1] if isinstance(access.op, rt.StoreOp) else ()
        new = applied_to(access.op, (*stored, private.res, index))
        block.insert_ops_before([*index_ops, new], access.op)
        for old, result in zip(access.op.results, new.results, strict=True):
            replace_uses(old, result)
        discard(access.op)
    if uses.fill is not None:
        discard(uses.fill)
    remark_on(PrivateRows.name, loop, "what an iteration alone needs of a container is its own", done=True)
    return True


def _settle_bounds(loop: scf.ForOp, forms: IndexForms) -> None:
    """Lets loops inside that take as many steps in all iterations, `i * T - (i - 1) * T`, say so."""
    for inner in ops_within(loop.body.block):
        if not isinstance(inner, scf.ForOp) or not is_inside(inner.ub, loop):
            continue
        form = forms.of(limit_of(inner))
        if form is None or any(forms.is_inside(value) for value in forms.values_of(form)):
            continue
        ops, limit = forms.write(form)
        assert inner.parent is not None
        inner.parent.insert_ops_before(ops, inner)
        inner.operands[1] = limit


def _align(loop: scf.ForOp, accesses: Sequence[Operation], bound: dict[int, SSAValue]) -> None:
    """Gives loops inside that access an iteration's memory, and take equally many steps, the same begin and end."""
    forms = BoundForms(loop, narrow=True, bound=bound)
    ends: dict[tuple[object, ...], SSAValue] = {}
    for inner in list(loop.body.block.ops):
        if not isinstance(inner, scf.ForOp) or constant_integer(inner.step) != 1:
            continue
        if not any(inner.is_ancestor(op) for op in accesses):
            continue
        lower, upper = constant_integer(inner.lb), forms.of(limit_of(inner))
        if lower is None or upper is None or any(map(forms.is_inside, forms.values_of(upper))):
            continue
        steps = tuple(sorted(plus(upper, {(): lower}, -1).items()))
        if steps in ends:
            inner.operands[1] = ends[steps]
        elif lower:
            count = arith.SubiOp.create(operands=(inner.ub, inner.lb), result_types=(i64,), properties=WRAPS)
            loop.body.block.insert_op_before(count, inner)
            inner.operands[1] = ends[steps] = count.results[0]
        else:
            ends[steps] = inner.operands[1] = limit_of(inner)
        if lower:
            _begin_at_zero(inner, lower)


def _begin_at_zero(loop: scf.ForOp, lower: int) -> None:
    """Counts the iterations of a loop from 0 instead of `lower`."""
    body = loop.body.block
    offset, zero = constant(lower, i64), constant(0, i64)
    index = arith.AddiOp.create(operands=(body.args[0], offset.result), result_types=(i64,), properties=WRAPS)
    body.args[0].replace_all_uses_with(index.results[0])
    index.operands[0] = body.args[0]
    first = body.first_op
    assert first is not None and loop.parent is not None
    body.insert_ops_before([offset, index], first)
    loop.parent.insert_op_before(zero, loop)
    loop.operands[0] = zero.result
