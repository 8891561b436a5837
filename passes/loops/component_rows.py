"""Loops over the components of rows, with a loop over the rows inside, seen from the rows.

    for k: s = inv(sigma[k])                              for k: S[k] = inv(sigma[k])
           target += -n * log(sigma[k])              →    for n: for k: target += -square((y[n, k] - mu[k]) * S[k])
           for n: target += -square((y[n, k] - mu[k]) * s)

So columns of outcomes have densities one after the other. What rows of a number of components add up may be a
quadratic form of their data (`form-layouts`), which a row of one component alone has not. The loop over the rows goes
in front of the nest, for those who look at it; it is written by those who then use it (`write_rest` has what else the
nest does), or erased.

Only where all components have the same rows, which leave nothing behind but additions to the target and flags.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer
from ulam.dialects.walk import ops_of, ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.bound_forms import BoundForms, is_asked_by
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.flat_rows import by_columns
from ulam.passes.loops.linear_rows import new_loop
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.ragged_rows import MOST_OPS, flag_of, is_flag, leaves_additions_alone
from ulam.passes.loops.repeated_values import Repeatable, computed
from ulam.passes.loops.rows_alone import with_rows_alone
from ulam.passes.loops.unused_ops import discard_unused
from ulam.passes.rewriting import copies, discard, replace_uses

_REALS = rt.BufferType(f64)


@record
class ComponentRows:
    """A nest of a loop over components and one over rows, and the rows by themselves."""

    nest: scf.ForOp
    """As it was."""
    components: scf.ForOp
    """The same where its rows hand nothing on: itself, or a copy in front of it."""
    inner: scf.ForOp
    """The loop over rows there."""
    rows: scf.ForOp
    """The loop over rows with one over components inside, in front of the nest."""
    tables: list[Operation]
    """What fills memory with what components have."""

    def write_rest(self, write: OpWriter) -> list[SSAValue]:
        """What the nest does besides its rows; what it gives where these set no flags."""
        (rest,) = copies([self.components], {})
        same = dict(zip(ops_within(self.components), ops_within(rest), strict=True))
        write.before(rest)
        inner = same[self.inner]
        for result, start in zip(inner.results, inner.operands[3:], strict=True):
            replace_uses(result, start)
        discard(inner)
        assert isinstance(rest, scf.ForOp)
        discard_unused(rest)
        return list(rest.results)

    def erase_copy(self) -> None:
        """Takes the copy of the nest away."""
        if self.components is not self.nest:
            discard(self.components)

    def erase(self) -> None:
        """Takes everything away that stands in front of the nest, but for the rows."""
        for op in reversed(self.tables):
            discard(op)
        self.erase_copy()


def component_rows(nest: scf.ForOp, slices: DataSlices, bound: dict[int, SSAValue]) -> ComponentRows | None:
    """The rows of a nest, or of a loop over all elements of a matrix, seen from them; None if it has no loop over
    components outside. `bound`: what `bind` puts into slots.
    """
    if (columns := by_columns(nest, bound)) is not None:
        found = component_rows(columns, slices, bound)
        if found is None or found.components is not columns:
            discard(columns)
        return None if found is None else replace(found, nest=nest)
    if not _may_have_rows(nest, slices):
        return None
    components = with_rows_alone(nest, bound) or nest
    inner = _loop_over_rows(components, slices)
    if inner is not None:
        return _Writer(nest, components, inner, bound).write()
    if components is not nest:
        discard(components)
    return None


def _may_have_rows(nest: scf.ForOp, slices: DataSlices) -> bool:
    """Whether a nest counts something by steps of one, and does not carry anything but flags."""
    if constant_integer(nest.step) != 1 or not slices.has_data_control(nest):
        return False
    if not all(is_flag(nest, position) for position in range(len(nest.results))):
        return False
    return bool(_additions(nest.body.block, nest)) and sum(1 for _ in ops_within(nest)) <= MOST_OPS


def _additions(block: Block, components: scf.ForOp) -> list[scf.ForOp]:
    """The loops that add to the target, for each component, or for each if something holds for all of them."""
    found: list[scf.ForOp] = []
    for op in ops_of(block):
        if isinstance(op, scf.ForOp) and any(isinstance(inner, ad.TargetAddOp) for inner in ops_within(op)):
            found.append(op)
        elif isinstance(op, scf.IfOp) and not is_inside(op.cond, components):
            found += [loop for arm in op.regions if arm.blocks for loop in _additions(arm.block, components)]
    return found


def _loop_over_rows(components: scf.ForOp, slices: DataSlices) -> scf.ForOp | None:
    """The loop inside that adds to the target and reads data, if that is one and has the same rows for all components:
    others add priors.
    """
    found = [loop for loop in _additions(components.body.block, components) if _reads_data(loop, slices)]
    if len(found) != 1:
        return None
    (inner,) = found
    if constant_integer(inner.step) != 1 or not slices.has_data_control(inner):
        return None
    if any(is_inside(bound, components) and constant_integer(bound) is None for bound in (inner.lb, inner.ub)):
        return None
    if not all(slices.is_data(branch.cond) for branch, _ in _branches_around(inner, components)):
        return None
    if not all(is_flag(inner, n) and flag_of(result, components) is not None for n, result in enumerate(inner.results)):
        return None
    number = components.body.block.args[0]
    if not leaves_additions_alone(inner, components):
        return None
    can = Repeatable(components, frozenset([number]))
    return inner if all(map(can.has, _read_from_around(inner, components))) else None


def _reads_data(loop: scf.ForOp, slices: DataSlices) -> bool:
    return any(isinstance(op, rt.LoadOp) and slices.is_data_buffer(op.buffer) for op in ops_within(loop))


def _branches_around(inner: scf.ForOp, components: scf.ForOp) -> list[tuple[scf.IfOp, bool]]:
    """The branches around a loop in a nest, each with whether its condition holds there."""
    found: list[tuple[scf.IfOp, bool]] = []
    region, around = inner.parent_region(), inner.parent_op()
    while around is not components:
        assert isinstance(around, scf.IfOp)
        found.append((around, region is around.true_region))
        region, around = around.parent_region(), around.parent_op()
    return found


def _read_from_around(inner: scf.ForOp, components: scf.ForOp) -> list[SSAValue]:
    """What rows read that is computed for the component, outside of them."""
    read = dict.fromkeys(operand for op in ops_within(inner.body) for operand in op.operands)
    return [value for value in read if is_inside(value, components) and not is_inside(value, inner)]


@record
class _Writer:
    """Writes the loop over rows in front of a nest."""

    nest: scf.ForOp
    components: scf.ForOp
    inner: scf.ForOp
    bound: dict[int, SSAValue]

    def write(self) -> ComponentRows:
        """Writes it, and what fills memory that it reads."""
        components, inner = self.components, self.inner
        write = OpWriter(components)
        tables, stored = self._write_tables(write)
        starts = [write.whole(0)] * len(inner.results)
        first, end = (computed(bound, {}, components, write) for bound in (inner.lb, inner.ub))
        row, inside = new_loop(write, first, self._end((first, end), write), starts)
        rows = _loop_of(inside, inner)
        component, innermost = new_loop(inside, components.lb, components.ub, rows.body.block.args[1:])
        loop = _loop_of(innermost, components)
        known: dict[SSAValue, SSAValue] = {components.body.block.args[0]: component, inner.body.block.args[0]: row}
        known.update(zip(inner.body.block.args[1:], loop.body.block.args[1:], strict=True))
        for value, memory in stored.items():
            known[value] = innermost.put(rt.LoadOp(memory, _place(component, components, innermost)))
        for value in _read_from_around(inner, components):
            computed(value, known, components, innermost)
        for op in copies(list(ops_of(inner.body.block))[:-1], known):
            innermost.before(op)
        innermost.anchor.operands = [known.get(value, value) for value in terminator(inner.body.block).operands]
        inside.anchor.operands = list(loop.results)
        _read_directly(loop)
        return ComponentRows(self.nest, components, inner, rows, tables)

    def _write_tables(self, write: OpWriter) -> tuple[list[Operation], dict[SSAValue, SSAValue]]:
        """Fills memory with the reals that are computed for each component, so that rows need not compute them; what
        is written, and which memory has which of them.
        """
        components = self.components
        read = _read_from_around(self.inner, components)
        wanted = [value for value in read if value.type == f64 and not isinstance(value.owner, rt.LoadOp)]
        if not wanted:
            return [], {}
        bounds = components.lb, components.ub
        count = write.trip_count(*bounds)
        stored: dict[SSAValue, SSAValue] = {value: write.put(rt.AllocOp(count, _REALS)) for value in wanted}
        component, inside = new_loop(write, components.lb, self._end(bounds, write))
        known: dict[SSAValue, SSAValue] = {components.body.block.args[0]: component}
        place = _place(component, components, inside)
        for value, memory in stored.items():
            inside.before(rt.StoreOp(computed(value, known, components, inside), memory, place, initial=True))
        memories = [memory.owner for memory in stored.values() if isinstance(memory.owner, Operation)]
        return [*memories, _loop_of(inside, components)], stored

    def _end(self, bounds: tuple[SSAValue, SSAValue], write: OpWriter) -> SSAValue:
        """Where a loop ends that has no iteration unless the branches around the rows are taken."""
        first, end = bounds
        forms = BoundForms(self.inner, narrow=True, bound=self.bound)
        for branch, holds in _branches_around(self.inner, self.components):
            if not (holds and is_asked_by(branch.cond, bounds, forms)):
                ends = (end, first) if holds else (first, end)
                end = write.put(arith.SelectOp.create(operands=(branch.cond, *ends), result_types=(i64,)))
        return end


def _read_directly(loop: scf.ForOp) -> None:
    """Lets a loop read elements of views that each component has in the memory behind these."""
    for view in [op for op in ops_of(loop.body.block) if isinstance(op, rt.ViewOp)]:
        for load in [use.operation for use in view.res.uses]:
            if isinstance(load, rt.LoadOp):
                place = OpWriter(load).put(integer(arith.AddiOp, view.offset, load.index))
                load.operands = [view.buffer, place]
        if not view.res.first_use:
            discard(view)


def _loop_of(inside: OpWriter, like: scf.ForOp) -> scf.ForOp:
    """The loop that a writer is in, at the place of another one in the program."""
    loop = inside.anchor.parent_op()
    assert isinstance(loop, scf.ForOp)
    loop.location = like.location
    return loop


def _place(component: SSAValue, components: scf.ForOp, write: OpWriter) -> SSAValue:
    """Where memory has what belongs to a component."""
    if constant_integer(components.lb) == 0:
        return component
    return write.put(integer(arith.SubiOp, component, components.lb))
