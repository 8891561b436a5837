"""Rows that a loop hands on, and of which log_sum_exp makes the next one, are rows of one memory.

    for t, f = f0: if c[t]: g = s  else: g = f            h[0] = f0
                   for k: n[k] = log_sum_exp(g + w)    →  for t: if c[t]: g = copy of s  else: g = copy of h[t]
                   yield n                                       for k: h[t + 1, k] = log_sum_exp(g + w)

As if the program had kept all of them, which their reverse does in any case: `scaled-log-sums` then sees what is made
of what. A row that a branch chooses is a copy. For forward algorithms that begin anew now and then, as with each one of
many individuals; where rows are all made in one way a kernel makes them (`log-recursions`).
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import f64
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.scaled_log_sums import handed_on_loads
from ulam.passes.loops.tables import bounded
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard, replace_uses

_REALS = rt.BufferType(f64)


@record(frozen=True)
class CarriedRows(FunctionPass):
    """Keeps rows that loops hand on in one memory, of all functions or the one that is named."""

    name = "carried-rows"

    def changes_function(self, function: func.FuncOp) -> bool:
        rows = _Rows()
        loads = handed_on_loads(function)
        if not loads or not all(rows.find(_whole(load.buffer)) for load in loads) or rows.size is None:
            return False
        if any(is_inside(rows.size, op) for op, _ in (*rows.choices, *rows.carried)):
            return False
        for branch, position in rows.choices:
            _copy_choice(branch, position, rows.size)
        for loop, position in rows.carried:
            _keep(loop, position, rows.size)
            remark_on(CarriedRows.name, loop, "rows that it hands on are kept, one behind the other", done=True)
        return True


def _whole(buffer: SSAValue) -> SSAValue:
    """What a view is a part of."""
    while isinstance(view := buffer.owner, rt.ViewOp):
        buffer = view.buffer
    return buffer


class _Rows:
    """Rows that are handed on, those that they are made of, and how long they are: all alike."""

    def __init__(self) -> None:
        self.choices: dict[tuple[scf.IfOp, int], None] = {}
        self.carried: dict[tuple[scf.ForOp, int], None] = {}
        self.size: SSAValue | None = None

    def find(self, row: SSAValue) -> bool:
        """Adds a row and what may become it; False if something else is among that."""
        op = row.owner
        if isinstance(op, rt.AllocOp):
            self.size = self.size or op.count
            return self.size is op.count and op.res.type == _REALS
        if isinstance(row, BlockArgument):
            loop = row.owner.parent_op()
            return isinstance(loop, scf.ForOp) and self._find_carried(loop, row.index - 1)
        assert isinstance(row, OpResult)
        if isinstance(op, scf.ForOp):
            return self._find_carried(op, row.index)
        if not isinstance(op, scf.IfOp):
            return False
        if (op, row.index) not in self.choices:
            self.choices[(op, row.index)] = None
            return all(self.find(terminator(region.block).operands[row.index]) for region in op.regions)
        return True

    def _find_carried(self, loop: scf.ForOp, position: int) -> bool:
        if (loop, position) in self.carried:
            return True
        self.carried[(loop, position)] = None
        made_of = (loop.iter_args[position], terminator(loop.body.block).operands[position])
        return constant_integer(loop.step) == 1 and all(map(self.find, made_of))


def _copy_choice(branch: scf.IfOp, position: int, size: SSAValue) -> None:
    """Lets the arms of a branch copy the row that they choose."""
    row = OpWriter(branch).put(rt.AllocOp(size, _REALS, location=branch.location))
    for region in branch.regions:
        end = terminator(region.block)
        OpWriter(end).before(rt.CopyOp(row, end.operands[position], size, initial=True))
    replace_uses(branch.results[position], row)


def _keep(loop: scf.ForOp, position: int, size: SSAValue) -> None:
    """Keeps each row that a loop hands on behind the one before."""
    write, body = OpWriter(loop), loop.body.block
    assert body.first_op is not None
    zero = write.whole(0)
    trips = write.put(integer(arith.MaxSIOp, write.put(integer(arith.SubiOp, loop.ub, loop.lb)), zero))
    rows = write.put(integer(arith.AddiOp, trips, write.whole(1)))
    end = write.put(integer(arith.MuliOp, trips, size))
    ops: list[Operation] = []
    total = bounded(write.put(integer(arith.MuliOp, rows, size)), [rows, size], ops)
    for op in ops:
        write.before(op)
    memory = write.put(rt.AllocOp(total, _REALS, variable=True))
    write.before(rt.CopyOp(write.put(rt.ViewOp(memory, zero)), loop.iter_args[position], size))
    inside = OpWriter(body.first_op)
    number = inside.put(integer(arith.SubiOp, body.args[0], loop.lb))
    begin = inside.put(integer(arith.MuliOp, number, size))
    before = inside.put(rt.ViewOp(memory, begin))
    following = inside.put(rt.ViewOp(memory, inside.put(integer(arith.AddiOp, begin, size))))
    made = terminator(body).operands[position]
    if isinstance(alloc := made.owner, rt.AllocOp) and alloc.parent is body:
        replace_uses(made, following)
        discard(alloc)
    else:
        OpWriter(terminator(body)).before(rt.CopyOp(following, made, size))
    replace_uses(body.args[1 + position], before)
    replace_uses(loop.results[position], OpWriter.behind(loop.results[position]).put(rt.ViewOp(memory, end)))
