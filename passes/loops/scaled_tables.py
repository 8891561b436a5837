"""Numbers with exponents that a recursion does not depend on are computed in front of it, in a nest of their own.

    for t: for k: ... exp(e(t, k)) ...      →      for t: for k: table[t, k] = exp(e(t, k))
                                                   for t: for k: ... table[t, k] ...

The first nest is one of rows that do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import ancestor_in, is_inside
from ulam.passes.loops.effects import UNKNOWN, Effect, Root, effect_within, root, written_roots_within
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.scaled_numbers import Scaled, ScaledWriter
from ulam.passes.loops.tables import IterationTable, Loops
from ulam.passes.rewriting import copies


def tabulated(values: Sequence[SSAValue], at: Operation, recursive: set[SSAValue]) -> Scaled | None:
    """What the sum of values is the logarithm of, read from a table in front of `at`; None if they are in no loop that
    writes `recursive` memory, or cannot be computed ahead of it.
    """
    loops = _nest(at, recursive)
    if not loops:
        return None
    needed = needed_ahead(values, loops)
    if needed is None:
        return None
    ops_of = {loop: [op for op in loop.body.block.ops if op in needed] for loop in loops}
    varying = tuple(loop for loop in loops if loop.body.block.args[0] in needed)
    if not varying:
        mapping: dict[SSAValue, SSAValue] = {}
        write = ScaledWriter(loops[0])
        for op in copies([op for ops in ops_of.values() for op in ops], mapping):
            write.before(op)
        return write.exponential(write.total([mapping.get(value, value) for value in values]))
    outer = OpWriter(loops[0])
    # The outermost loop, as a rule the longest, innermost: its iterations run side by side.
    order = (*varying[1:], varying[0])
    table = IterationTable(order)
    for op in table.ops:
        outer.before(op)
    numbers, scales = outer.put(table.allocate(at)), outer.put(table.allocate(at))
    variables: list[SSAValue] = []
    mapping = {}
    first: scf.ForOp | None = None
    block: Block | None = None
    for loop in order:
        body = Block(arg_types=[i64])
        mapping[loop.body.block.args[0]] = body.args[0]
        variables.append(body.args[0])
        new = scf.ForOp.create(operands=(loop.lb, loop.ub, loop.step), regions=[Region(body)], location=loop.location)
        if block is None:
            first = new
        else:
            block.add_ops([new, scf.YieldOp.create()])
        block = body
    assert first is not None and block is not None
    for needed_ops in ops_of.values():
        block.add_ops(copies(needed_ops, mapping))
    end = scf.YieldOp.create()
    block.add_op(end)
    write = ScaledWriter(end)
    scaled = write.exponential(write.total([mapping.get(value, value) for value in values]))
    ops, index = table.entry(variables)
    for op in ops:
        write.before(op)
    for part, value in zip((numbers, scales), scaled.both, strict=True):
        write.before(rt.StoreOp(value, part, index, initial=True))
    outer.before(first)
    here = OpWriter(at)
    ops, index = table.entry_here()
    for op in ops:
        here.before(op)
    return Scaled(here.put(rt.LoadOp(numbers, index)), here.put(rt.LoadOp(scales, index)))


def _nest(at: Operation, recursive: set[SSAValue]) -> Loops:
    """The loops around an op, from the outermost that writes some of the memory; none if there is something else in
    between, or bounds change inside.
    """
    loops: list[scf.ForOp] = []
    found: Loops = ()
    parent = at.parent_op()
    while isinstance(parent, scf.ForOp):
        loops.insert(0, parent)
        if written_roots_within(parent) & recursive:
            found = tuple(loops)
        parent = parent.parent_op()
    if not found or any(is_inside(bound, found[0]) for loop in found for bound in (loop.lb, loop.ub, loop.step)):
        return ()
    return found


def needed_ahead(values: Sequence[SSAValue], loops: Loops) -> set[Operation | SSAValue] | None:
    """The ops in the bodies of loops that compute values, and the variables of loops that these read; None if they
    cannot run ahead of the loops."""
    written: set[Root] = written_roots_within(loops[0])
    bodies = [loop.body.block for loop in loops]
    variables = {body.args[0] for body in bodies}
    found: set[Operation | SSAValue] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if value in variables:
            found.add(value)
            continue
        if not is_inside(value, loops[0]):
            continue
        if isinstance(value.owner, Block):
            return None
        op = next((op for body in reversed(bodies) if (op := ancestor_in(value.owner, body)) is not None), None)
        if op is None or op in loops or effect_within(op) & ~Effect.READ:
            return None
        if op not in found:
            found.add(op)
            pending += free_values_of_op(op)
            reads = {root(inner.buffer) for inner in ops_within(op) if isinstance(inner, rt.LoadOp)}
            if reads & written or UNKNOWN in reads | written:
                return None
    return found
