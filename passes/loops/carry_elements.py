"""What a loop adds to one element of memory, again and again, is carried as a value.

    for k: x = load mu[n]                      x = load mu[n]
           store f(x, k), mu[n]         →      for k, x: yield f(x, k)
                                               store x, mu[n]

So `mu[n] += X[n, k] * b[k]` is what a variable of the loop around would be: a sum, which is known to be one, is
reversed without its values, and rows whose memory nobody else reads need none (`private-rows`).

Only where the loop touches that memory at this one element, in every iteration, and reads it first. The element must
be there although the loop may have no iteration: it was accessed before, is one of a known number, or its index is the
variable of a loop over all elements.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer, not_clamped
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.effects import may_overlap, root
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard, rebuild, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE

Element = tuple[SSAValue, SSAValue]
"""A buffer and an index."""


class CarryElements(TellingPass):
    """Carries what loops of `evaluate` change in one element of memory as a value."""

    name = "carry-elements"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        loops = [op for op in ops_within(evaluate_of(module, self.name)) if type(op) is scf.ForOp]
        return any([_carry(loop) for loop in reversed(loops)])  # inner ones first


def _carry(loop: scf.ForOp) -> bool:
    """Carries the elements that a loop changes; whether there was one."""
    changed = False
    for element, ops in _accessed(loop).items():
        if isinstance(ops[0], rt.LoadOp) and not all(isinstance(op, rt.LoadOp) for op in ops):
            if _touches_only(loop, ops, element) and _is_there(element, loop):
                remark_on(CarryElements.name, loop, "the element that it changes is carried as a value", done=True)
                loop = _carried(loop, element, ops)
                changed = True
    return changed


def _accessed(loop: scf.ForOp) -> dict[Element, list[rt.LoadOp | rt.StoreOp]]:
    """The elements that are the same in all iterations, with what surely accesses them in each, in order."""
    found: dict[Element, list[rt.LoadOp | rt.StoreOp]] = {}
    for op in loop.body.block.ops:
        if not isinstance(op, rt.LoadOp | rt.StoreOp):
            continue
        value = op.res if isinstance(op, rt.LoadOp) else op.value
        if value.type == f64 and not is_inside(op.buffer, loop) and not is_inside(op.index, loop):
            found.setdefault((op.buffer, op.index), []).append(op)
    return found


def _touches_only(loop: scf.ForOp, ops: list[rt.LoadOp | rt.StoreOp], element: Element) -> bool:
    """Whether a loop accesses memory that an element is of by nothing but some ops."""
    memory = root(element[0])
    if not isinstance(memory, SSAValue) or not isinstance(memory.owner, rt.AllocOp):
        return False
    for op in ops_within(loop.body.block):
        if op not in ops:
            for operand in op.operands:
                if isinstance(operand.type, rt.BufferType) and may_overlap(root(operand), memory):
                    return False
    return True


def _is_there(element: Element, loop: scf.ForOp) -> bool:
    """Whether memory has an element in front of a loop, whose iterations may be the first to access it."""
    around: Operation | None = loop
    while isinstance(around, scf.ForOp | scf.IfOp):
        before = around.prev_op
        while before is not None:
            if isinstance(before, rt.LoadOp | rt.StoreOp) and (before.buffer, before.index) == element:
                return True
            before = before.prev_op
        around = around.parent_op()
    buffer, index = element
    if isinstance(alloc := buffer.owner, rt.AllocOp) and (place := constant_integer(index)) is not None:
        size = constant_integer(alloc.count)
        return size is not None and 0 <= place < size
    variable, offset = index, 0
    if isinstance(op := index.owner, arith.SubiOp) and (number := constant_integer(op.rhs)) is not None:
        variable, offset = op.lhs, number
    outer = loop.parent_op()
    while outer is not None:
        if isinstance(outer, scf.ForOp) and outer.body.block.args[0] is variable:
            first = constant_integer(outer.lb)
            alloc = buffer.owner
            if first is None or first < offset or not isinstance(alloc, rt.AllocOp):
                return False
            return _is_at_most(outer.ub, offset, alloc.count)
        outer = outer.parent_op()
    return False


def _is_at_most(end: SSAValue, offset: int, count: SSAValue) -> bool:
    """Whether the end of a loop, less an offset, is a number of elements."""
    end, count = not_clamped(end), not_clamped(count)
    if offset and isinstance(op := end.owner, arith.AddiOp):
        for one, other in (op.operands, tuple(op.operands)[::-1]):
            if constant_integer(one) == offset and not_clamped(other) is count:
                return True
    return end is count


def _carried(loop: scf.ForOp, element: Element, ops: list[rt.LoadOp | rt.StoreOp]) -> scf.ForOp:
    """The loop with a value for an element, which is loaded before and stored behind it."""
    body, block = loop.body.block, loop.parent
    assert block is not None
    first = rt.LoadOp(*element, location=loop.location)
    block.insert_op_before(first, loop)
    value: SSAValue = body.insert_arg(f64, len(body.args))
    for op in ops:
        if isinstance(op, rt.LoadOp):
            replace_uses(op.res, value)
        else:
            value = op.value
        discard(op)
    end = terminator(body)
    end.operands = [*end.operands, value]
    new = rebuild(loop, [*loop.operands, first.res], [*(result.type for result in loop.results), f64])
    assert isinstance(new, scf.ForOp) and new.parent is not None
    new.parent.insert_op_after(rt.StoreOp(new.results[-1], *element, location=loop.location), new)
    return new
