"""Terms of which few columns of ints decide have a loop of their own, whose rows are then mostly equal.

    for n: target += lgamma(y[n] + phi)             for n: target += f(y[n], x[n], u[g[n]])
           target += f(y[n], x[n], u[g[n]])    →    for n: target += lgamma(y[n] + phi)

Rows that differ in real covariates have few counts: what is costly and computed of these alone is computed once for
each count (`unique-rows`). Such a loop counts its rows by a slot of its own, so that nothing fuses it with the other.
Where its rows are not equal after all, it does what the one loop did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, i32, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant, constant_integer, not_clamped
from ulam.dialects.walk import ops_within
from ulam.library.costs import WIDENED
from ulam.library.records import record
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.addends import addends, take_apart
from ulam.passes.loops.bound_forms import bound_ints
from ulam.passes.loops.data_branches import outermost_loops
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import is_speculatable, viewed
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.rows_of_loops import StripsOfRows, strips_of
from ulam.passes.loops.tables import is_costly_function
from ulam.passes.loops.unit_modules import bind_of, evaluate_of, take_slots
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import copies, discard
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

_SUMS = (arith.AddiOp, arith.SubiOp)
_QUICK = frozenset(("exp", "expm1", "log", "log1p", "log1m", "inv_logit", "tanh"))
"""Functions that take no longer than to read an element at an index of the data once more, and to add to it."""


class SplitTerms(TellingPass):
    """Gives terms that few columns of ints decide loops of their own."""

    name = "split-terms"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        bind, top = bind_of(module), evaluate_of(module, self.name).body.block
        if bind is None:
            return False
        bound, slices = bound_ints(module), DataSlices()
        changed = False
        for outer in outermost_loops(top, slices):
            strips = strips_of(outer, bound)
            for loop in _row_loops(outer, strips):
                count = not_clamped(loop.ub) if strips is None else strips.end.rhs
                if isinstance(count.owner, rt.BoundOp) and (found := _Terms.of(loop, outer)) is not None:
                    _write(found, count.owner, module, bind, top)
                    remark_on(self.name, loop, "what its ints alone decide has a loop of its own", done=True)
                    changed = True
        return changed


def _row_loops(outer: scf.ForOp, strips: StripsOfRows | None) -> Iterator[scf.ForOp]:
    """The loops over rows that have terms."""
    if strips is None:
        is_of_rows = rt.LoopAttr.kind_of(outer)[0] != "kinds"
        if is_of_rows and constant_integer(outer.lb) == 0 and constant_integer(outer.step) == 1:
            yield outer
        return
    for op in outer.body.block.ops:
        if isinstance(op, scf.ForOp) and op.lb is strips.begin and op.ub is strips.end.result:
            yield op


@record
class _Terms:
    """Statements of a loop over rows, and what they are computed by, in order."""

    loop: scf.ForOp
    outer: scf.ForOp
    """The loop at the top: that over rows, or one over strips of rows."""
    statements: list[Operation]
    ops: list[Operation]

    @staticmethod
    def of(loop: scf.ForOp, outer: scf.ForOp) -> _Terms | None:
        """What is worth a loop of its own: all that the same columns of ints decide."""
        for op in list(loop.body.block.ops):
            if isinstance(op, ad.TargetAddOp):
                _take_apart(op, loop, outer)
        statements = [op for op in loop.body.block.ops if _is_statement(op)]
        found: dict[frozenset[SSAValue], list[Operation]] = {}
        for op in statements:
            columns = _columns(_needed([op], outer), loop)
            if columns:
                found.setdefault(columns, []).append(op)
        for columns, those in found.items():
            needed = _needed(those, outer)
            assert needed is not None
            ops = [op for op in ops_within(outer) if op in needed]
            if len(those) < len(statements) and _reads_more(loop, columns) and _is_worth(ops, those):
                return _Terms(loop, outer, those, ops)
        return None


def _is_statement(op: Operation) -> bool:
    if isinstance(op, ad.TargetAddOp):
        return True
    return (
        isinstance(op, scf.IfOp)
        and not op.results
        and any(isinstance(inner, ad.TargetAddOp) for inner in ops_within(op))
    )


def _needed(statements: list[Operation], outer: scf.ForOp) -> set[Operation] | None:
    """The ops of a nest that statements need, and these; None if they need others than pure and loads."""
    needed = set(statements)
    work = list(statements)
    while work:
        for value in free_values_of_op(work.pop()):
            op = value.owner
            if not is_inside(value, outer):
                continue
            if isinstance(op, Block):
                parent = op.parent_op()
                if not isinstance(parent, scf.ForOp) or value is not op.args[0] or not _is_row_loop(parent, statements):
                    return None
            elif op not in needed:
                needed.add(op)
                work.append(op)
    for op in needed:
        for inner in ops_within(op):
            if not isinstance(inner, rt.LoadOp | scf.IfOp | scf.YieldOp | ad.TargetAddOp) and not is_speculatable(
                inner
            ):
                return None
    return needed


def _is_row_loop(loop: scf.ForOp, statements: list[Operation]) -> bool:
    return statements[0].parent_op() is loop


def _reads_more(loop: scf.ForOp, columns: frozenset[SSAValue]) -> bool:
    """Whether rows read something else than some columns, too."""
    loads = [op for op in ops_within(loop) if isinstance(op, rt.LoadOp) and is_inside(op.index, loop)]
    return any(load.buffer not in columns and load.index in _numbers(loop) for load in loads)


def _numbers(loop: scf.ForOp) -> set[SSAValue]:
    """The number of a row, and what it is a sum with."""
    row = loop.body.block.args[0]
    return {row, *(use.operation.results[0] for use in row.uses if isinstance(use.operation, _SUMS))}


def _take_apart(op: ad.TargetAddOp, loop: scf.ForOp, outer: scf.ForOp) -> None:
    """Adds the addends of a sum on their own, if ints alone decide one that is costly."""
    found = list(addends(op.value, loop.body.block))
    if len(found) == 1 or op.parent is not loop.body.block:
        return
    if not any(_is_of_few(value, loop, outer) for value, _ in found if isinstance(value, SSAValue)):
        return
    take_apart(op, found)


def _is_of_few(value: SSAValue, loop: scf.ForOp, outer: scf.ForOp) -> bool:
    """Whether columns of ints decide a value that is costly."""
    op = value.owner
    if not isinstance(op, Operation) or not is_inside(value, loop):
        return False
    ops = _needed([op], outer)
    return bool(_columns(ops, loop)) and any(
        is_costly_function(inner) for each in ops or () for inner in ops_within(each)
    )


def _columns(ops: Iterable[Operation] | None, loop: scf.ForOp) -> frozenset[SSAValue]:
    """The columns of ints that ops read by the number of the row; none if they read something else of the row."""
    row = loop.body.block.args[0]
    found: set[SSAValue] = set()
    for op in ops or ():
        for inner in ops_within(op):
            if isinstance(inner, rt.LoadOp) and inner.index is row:
                if inner.res.type != i32 or not isinstance(inner.buffer.owner, rt.BoundOp) or inner is not op:
                    return frozenset()
                found.add(inner.buffer)
            elif row in inner.operands:
                return frozenset()
            elif isinstance(inner, rt.LoadOp) and is_inside(viewed(inner.buffer), loop):
                return frozenset()
    return frozenset(found)


def _is_worth(ops: list[Operation], statements: list[Operation]) -> bool:
    """Whether something costly is in them that nothing else needs, more so than what both loops would do."""
    own = set(ops)
    costly = [inner for op in ops for inner in ops_within(op) if is_costly_function(inner)]
    for op in ops:
        if op not in statements and any(map(is_costly_function, ops_within(op))):
            if any(_ancestor(use.operation, own) is None for result in op.results for use in result.uses):
                return False
    twice = len(_read_twice(ops, own))
    return any(not twice or _takes_longer(_name(op), twice) for op in costly)


def _read_twice(ops: list[Operation], own: set[Operation]) -> set[Operation]:
    """What is read at an index of the data for other statements, too, or for what these compute of it."""
    read_for: dict[Operation, set[Operation]] = {}  # what is computed of such reads
    found: set[Operation] = set()
    for op in ops:
        reads = {load for operand in op.operands for load in read_for.get(cast("Operation", operand.owner), ())}
        if isinstance(op, rt.LoadOp) and isinstance(op.index.owner, Operation):
            reads.add(op)
        if reads:
            read_for[op] = reads
            uses = (use for result in op.results for use in result.uses)
            if any(_ancestor(use.operation, own) is None for use in uses):
                found |= reads
    return found


def _takes_longer(name: str, reads: int) -> bool:
    """Whether a function takes longer than to read elements once more, and to add to them."""
    return name not in (_QUICK if reads == 1 else WIDENED)


def _name(op: Operation) -> str:
    assert isinstance(op, rt.MathOp)
    return op.function.data


def _ancestor(op: Operation, among: set[Operation]) -> Operation | None:
    current: Operation | None = op
    while current is not None and current not in among:
        current = current.parent_op()
    return current


def _write(terms: _Terms, count: rt.BoundOp, module: ModuleOp, bind: func.FuncOp, top: Block) -> None:
    """Moves statements into a loop of their own behind the nest."""
    write, slot = OpWriter(terminator(bind.body.block)), take_slots(module, 1)
    write.before(rt.SetBoundOp(slot, write.put(rt.BoundOp(count.slot.value.data, i64))))
    rows = rt.BoundOp(slot, i64)
    if (fact := rt.CoalescedAttr.of(count)) is not None:
        fact.put(rows)
    assert top.first_op is not None and terms.outer.parent is not None
    top.insert_op_before(rows, top.first_op)
    body = Block(arg_types=[i64])
    mapping: dict[SSAValue, SSAValue] = {terms.loop.body.block.args[0]: body.args[0]}
    body.add_ops([*copies(terms.ops, mapping), scf.YieldOp.create()])
    zero, one = constant(0, i64), constant(1, i64)
    own = scf.ForOp.create(
        operands=(zero.result, rows.res, one.result), regions=[Region(body)], location=terms.loop.location
    )
    terms.outer.parent.insert_ops_after([zero, one, own], terms.outer)
    for op in terms.statements:
        discard(op)
