"""Rows of logarithms, each made of the one before by `log_sum_exp`, are computed by a kernel of the runtime.

    for t: for k:                                         terms[t, k] = e;  moves[j, k] = w
      for j: acc[j] = g[t-1, j] + w[j, k] + e      →      rt.kernel log_recursion(g[0], terms, moves, ..., rows)
      g[t, k] = log_sum_exp(acc)                          g[1:] = rows

The forward algorithm of a hidden Markov model, in whichever direction; `g` may as well be one row that is assigned
whole in each iteration. What is added, or taken away, may depend on t, j and k in any way, but not on rows. All of it
is computed ahead, in loops whose iterations do not wait for each other; the kernel (runtime/c/log_recursion.c)
multiplies by matrices instead of taking exponentials and logarithms, and keeps rows alone for the way back.

Only where each element of a row is a sum over all of the row before, and nothing else touches that memory meanwhile:
`scaled-log-sums` has other recursions. The recursion in the linear domain is Rabiner's (Proc. IEEE 77, 1989).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer, not_clamped
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import terminator
from ulam.passes.loops.bound_forms import BoundForms, bound_ints
from ulam.passes.loops.effects import PURE, UNKNOWN, functions, root, viewed, written_roots_within
from ulam.passes.loops.index_forms import Form, IndexForms, known, plus, times
from ulam.passes.loops.linear_rows import new_loop
from ulam.passes.loops.log_sums import LogSum, log_sum
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.scaled_log_sums import is_fma, stored_before
from ulam.passes.loops.scaled_tables import needed_ahead
from ulam.passes.loops.tables import IterationTable, Loops
from ulam.passes.loops.unit_modules import named_function
from ulam.passes.remarks import remark
from ulam.passes.rewriting import copies, discard, replace_uses
from ulam.passes.running import TellingPass

_REALS = rt.BufferType(f64)


@record(frozen=True)
class LogRecursions(TellingPass):
    """Has a kernel compute rows of logarithms, each log_sum_exp of the one before, in all functions or a named one."""

    name = "log-recursions"

    function: str = ""

    def changes(self, module: ModuleOp) -> bool:
        return run_on(named_function(module, self.function, self.name), bound_ints(module))


def run_on(op: Operation, bound: dict[int, SSAValue]) -> bool:
    """Rewrites in every function at or below `op`; whether there was anything. `bound`: what `bind` has computed."""
    changed = False
    for function in functions(op):
        for store in [inner for inner in ops_within(function) if isinstance(inner, rt.StoreOp)]:
            found = _recursion(store, bound)
            if found is not None:
                _Rewriting(found).run()
                message = "a kernel computes the rows, as products with matrices"
                remark(LogRecursions.name, found.sum.location, "log_sum_exp", message, done=True)
                changed = True
    return changed


# ---------------------------------------------------------------- what is a recursion


@record(frozen=True)
class _Summand:
    """The product of one or two values, added or taken away."""

    factors: tuple[SSAValue, ...]
    negative: bool = False


@record
class _Recursion:
    """The loops over rows, over the elements of one, and over those of the row before; what is added to each element,
    and to each term of its sum.
    """

    times: scf.ForOp
    states: scf.ForOp
    sources: scf.ForOp
    store: rt.StoreOp
    load: rt.LoadOp
    sum: Operation
    terms: list[_Summand]
    moves: list[_Summand]
    is_contiguous: bool = False
    """Whether rows are one behind the other in memory."""
    handed_on: Operation | None = None
    """What makes the row that was written the one that is read, if these are two: a copy, or the end of the loop."""
    only_last: bool = False
    """Whether nobody else reads a row but the last one."""

    @property
    def loops(self) -> Loops:
        return (self.times, self.states, self.sources)


def _recursion(store: rt.StoreOp, bound: dict[int, SSAValue]) -> _Recursion | None:
    """The recursion whose elements an op stores."""
    states = store.parent_op()
    times = states.parent_op() if isinstance(states, scf.ForOp) else None
    if not isinstance(states, scf.ForOp) or not isinstance(times, scf.ForOp) or store.value.type != f64:
        return None
    summands = _summands(store.value)
    sums = [found for value in summands if (found := _sum_in_loop(value)) is not None]
    if len(sums) != 1:
        return None
    (found,) = sums
    exponents, sources = _terms(found)
    written = written_roots_within(times)
    loads = [op for summand in exponents if isinstance(op := _alone(summand), rt.LoadOp)]
    loads = [load for load in loads if root(load.buffer) in written or load.buffer.owner is times.body.block]
    if len(loads) != 1 or UNKNOWN in written:
        return None
    (load,) = loads
    recursion = _Recursion(
        times, states, sources, store, load, found.op,
        [summand for summand in summands if summand != _Summand((found.op.results[0],))],
        [summand for summand in exponents if summand != _Summand((load.res,))],
    )  # fmt: skip
    return recursion if _has_rows(recursion, bound) and _is_ahead(recursion) and _is_alone(recursion) else None


def _summands(value: SSAValue, negative: bool = False) -> list[_Summand]:
    op = value.owner
    if isinstance(op, arith.NegfOp):
        return _summands(op.operand, not negative)
    if isinstance(op, arith.SubfOp) or (isinstance(op, arith.AddfOp) and log_sum(op) is None):
        signs = (negative, negative != isinstance(op, arith.SubfOp))
        return [found for part, sign in zip(op.operands, signs, strict=True) for found in _summands(part, sign)]
    if is_fma(op):
        return [_Summand((op.operands[0], op.operands[1]), negative), *_summands(op.operands[2], negative)]
    return [_Summand((value,), negative)]


def _alone(summand: _Summand) -> Operation | Block | None:
    """What makes a summand that is added as it is."""
    return summand.factors[0].owner if len(summand.factors) == 1 and not summand.negative else None


def _sum_in_loop(summand: _Summand) -> LogSum | None:
    op = _alone(summand)
    found = log_sum(op) if isinstance(op, Operation) else None
    return found if found is not None and found.loop is not None and found.weights is None else None


def _terms(found: LogSum) -> tuple[list[_Summand], scf.ForOp]:
    """What the terms of a sum add up, and the loop in which they do: a loop before may have stored them."""
    (value,), loop = found.terms, found.loop
    assert loop is not None
    summands = _summands(value)
    if len(summands) == 1 and isinstance(value.owner, rt.LoadOp):
        stored = stored_before(value.owner, loop)
        if stored is not None:
            return _summands(stored.store.value), stored.loop
    return summands, loop


def _has_rows(r: _Recursion, bound: dict[int, SSAValue]) -> bool:
    """Whether elements are those of rows, each of which is made of all of the one before."""
    if any(constant_integer(loop.step) != 1 for loop in r.loops):
        return False
    forms = BoundForms(r.times, bound=bound)
    written = _Place.of(r.store.buffer, r.store.index, r.states, forms)
    read = _Place.of(r.load.buffer, r.load.index, r.sources, forms)
    row, sources, rows = (_trips(loop, forms) for loop in (r.states, r.sources, r.times))
    if written is None or read is None or row is None or row != sources or r.states.lb is not r.sources.lb:
        return False
    if written.by_state != read.by_state or written.by_row != read.by_row:
        return False
    if not written.by_row:
        r.only_last = True
        return written.is_whole() and read.is_whole() and _is_handed_on(r, forms, row)
    if root(r.store.buffer) is not root(r.load.buffer) or plus(written.begin, read.begin, -1) != written.by_row:
        return False
    r.is_contiguous = written.by_state == {(): 1} and written.by_row == row
    r.only_last = _is_last_only(r, written, forms, row)
    if written.by_state == {(): 1} and written.by_row in (row, times(row, {(): -1})):
        return True
    # Columns: states are further apart than all times, that of the row before the first included.
    return rows is not None and written.by_row == {(): 1} and (known(plus(written.by_state, rows, -1)) or 0) > 0


def _trips(loop: scf.ForOp, forms: BoundForms) -> Form | None:
    """How often a loop runs, if it does at all."""
    upper = forms.made(loop.ub)
    lower, upper_form = forms.of(loop.lb), forms.of(not_clamped(upper) if constant_integer(loop.lb) == 0 else upper)
    return None if lower is None or upper_form is None else plus(upper_form, lower, -1)


@record(frozen=True)
class _Place:
    """Where elements of rows are: `by_row * t + by_state * k + begin`, from the begin of the memory on."""

    by_row: Form
    by_state: Form
    begin: Form

    def is_whole(self) -> bool:
        """Whether there is one row, from the begin on."""
        return not self.by_row and self.by_state == {(): 1} and not self.begin

    @staticmethod
    def of(buffer: SSAValue, index: SSAValue, states: scf.ForOp, forms: IndexForms) -> _Place | None:
        """The place of an element whose state is the variable of a loop."""
        form = _from_begin(buffer, index, forms)
        if form is None:
            return None
        variables = (forms.variable, forms.number(states.body.block.args[0]))
        parts: list[Form] = [{}, {}, {}]
        for monomial, count in form.items():
            inside = [factor for factor in monomial if forms.is_variable(factor)]
            if len(inside) > 1 or not set(inside) <= set(variables):
                return None
            others = list(monomial)
            if inside:
                others.remove(inside[0])
            parts[variables.index(inside[0]) if inside else 2][tuple(others)] = count
        return _Place(*parts)


def _from_begin(buffer: SSAValue, index: SSAValue, forms: IndexForms) -> Form | None:
    """The index of an element from the begin of the memory on that a buffer is a view of."""
    form = forms.of(index)
    while form is not None and isinstance(view := buffer.owner, rt.ViewOp):
        offset = forms.of(view.offset)
        form = plus(form, offset) if offset is not None else None
        buffer = view.buffer
    return form


def _is_last_only(r: _Recursion, written: _Place, forms: BoundForms, row: Form) -> bool:
    """Whether nothing but the recursion reads a row before the last: all other readers take its elements one by one."""
    memory = root(r.store.buffer)
    if not isinstance(memory, SSAValue):
        return False
    upper = forms.of(not_clamped(forms.made(r.times.ub)))
    if upper is None or constant_integer(r.states.lb) != 0 or not _runs_once(r.times, memory.owner):
        return False
    last = plus(written.begin, times(written.by_row, plus(upper, {(): 1}, -1)))
    pending = [memory]
    while pending:
        buffer = pending.pop()
        for use in buffer.uses:
            op = use.operation
            if isinstance(op, rt.ViewOp):
                pending.append(op.results[0])
            elif op is r.load or _only_writes(op, buffer):
                continue
            elif not isinstance(op, rt.LoadOp) or not _is_of_row(op, last, written.by_state, forms, row):
                return False
    return True


def _runs_once(op: Operation, made: Operation | Block) -> bool:
    """Whether nothing but branches stands around an op in the block in which memory is taken."""
    if not isinstance(made, rt.AllocOp):
        return False
    around: Operation | None = op
    while around is not None and around.parent is not made.parent:
        around = around.parent_op()
        if not isinstance(around, scf.IfOp):
            return False
    return around is not None


def _only_writes(op: Operation, buffer: SSAValue) -> bool:
    if isinstance(op, rt.CopyOp):
        return op.source is not buffer
    return isinstance(op, rt.StoreOp | rt.FillOp) and (not isinstance(op, rt.StoreOp) or op.buffer is buffer)


def _is_of_row(load: rt.LoadOp, begin: Form, by_state: Form, forms: BoundForms, row: Form) -> bool:
    """Whether an element that a loop over a row reads, whose first one is at `begin`, is one of that row."""
    form = _from_begin(load.buffer, load.index, forms)
    loop = load.parent_op()
    while isinstance(loop, scf.ForOp) and form is not None:
        variable = (forms.number(loop.body.block.args[0]),)
        if plus(form, begin, -1) == times(by_state, {variable: 1}):
            return constant_integer(loop.lb) == 0 and constant_integer(loop.step) == 1 and _trips(loop, forms) == row
        loop = loop.parent_op()
    return False


def _is_handed_on(r: _Recursion, forms: BoundForms, row: Form) -> bool:
    """Whether the row is written to memory of its own, which becomes, whole, what the next iteration reads."""
    block = r.times.body.block
    written = r.store.buffer.owner
    if constant_integer(r.states.lb) != 0 or not isinstance(written, rt.AllocOp) or written.parent is not block:
        return False
    if r.load.buffer.owner is block:
        end = terminator(block)
        (position,) = (n for n, argument in enumerate(block.args[1:]) if argument is r.load.buffer)
        r.handed_on = end
        return end.operands[position] is r.store.buffer and forms.of(written.count) == row
    handed = [op for op in block.ops if isinstance(op, rt.CopyOp) and root(op.destination) is root(r.load.buffer)]
    if len(handed) != 1 or not isinstance(r.load.buffer.owner, rt.AllocOp):
        return False
    (copy,) = handed
    r.handed_on = copy
    at = list(block.ops)
    is_row = copy.source is r.store.buffer and copy.destination is r.load.buffer and forms.of(copy.count) == row
    return is_row and at.index(r.states) < at.index(copy)


def _is_ahead(r: _Recursion) -> bool:
    """Whether all that is added can be computed ahead; what is the same for all terms of a sum is added to the sum."""
    places = [r.load.index, *([] if r.handed_on else [r.load.buffer, r.store.index, r.store.buffer])]
    if needed_ahead(places, r.loops) is None:
        return False
    moves: list[_Summand] = []
    terms: list[_Summand] = []
    for summand in [*r.terms, *r.moves]:
        needed = needed_ahead(summand.factors, r.loops)
        if needed is None:
            return False
        (moves if r.sources.body.block.args[0] in needed else terms).append(summand)
    r.terms, r.moves = terms, moves
    return True


def _is_alone(r: _Recursion) -> bool:
    """Whether the loops touch rows for the recursion only."""
    rows = {root(r.store.buffer), root(r.load.buffer), viewed(r.load.buffer)}
    for op in ops_within(r.times):
        if op in (r.store, r.load, r.handed_on) or isinstance(op, rt.ViewOp):
            continue
        touched = {root(v) for v in op.operands if isinstance(v.type, rt.BufferType)} & rows
        is_of_one_time = isinstance(op, rt.FillOp) and r.handed_on is not None and op.destination is r.store.buffer
        if touched and not is_of_one_time:
            return False
    return _is_for(r.load.res, r.store)


def _is_for(value: SSAValue, store: rt.StoreOp) -> bool:
    """Whether a value is computed for what an op stores, and for nothing else."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            op = use.operation
            if op is store:
                continue
            if isinstance(op, rt.StoreOp):
                if not isinstance(op.buffer.owner, rt.AllocOp) or op.value is not value:
                    return False
                readers = [other.operation for other in op.buffer.uses]
                if not all(isinstance(reader, rt.LoadOp | rt.StoreOp) for reader in readers):
                    return False
                pending += [reader.res for reader in readers if isinstance(reader, rt.LoadOp)]
            elif isinstance(op, scf.YieldOp):
                parent = op.parent_op()
                assert parent is not None
                pending.append(parent.results[use.index])
                if isinstance(parent, scf.ForOp):
                    pending.append(parent.body.block.args[1 + use.index])
                elif not isinstance(parent, scf.IfOp):
                    return False
            elif type(op) in PURE:
                pending += op.results
            else:
                return False
    return True


# ---------------------------------------------------------------- rewriting


@record
class _Nest:
    """A nest of loops that is being written, or none: writers in front of each inner loop, and of the end of the
    innermost; new values for those of the recursion's loops, and the depths where new ones are computed.
    """

    writers: list[OpWriter]
    variables: list[SSAValue] = field(default_factory=list[SSAValue])
    """Of the loops, outermost first."""
    mapping: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    depths: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    @property
    def inside(self) -> OpWriter:
        return self.writers[-1]

    def copy(self, op: Operation) -> None:
        """Writes a copy, in as few loops as may be."""
        values = [self.mapping.get(value, value) for value in free_values_of_op(op)]
        depth = max((self.depths.get(value, 0) for value in values), default=0)
        (new,) = copies([op], self.mapping)
        self.writers[depth].before(new)
        for result in new.results:
            self.depths[result] = depth


class _Rewriting:
    """Puts the kernel and its tables in front of the loops."""

    def __init__(self, r: _Recursion) -> None:
        self.r = r
        self.write = OpWriter(r.times)
        self.size = self._table(r.times, r.states)
        self.times, self.states = self.size.trips
        self.any_rows = self.write.compare_integers("sgt", self.times, self.write.whole(0))

    def run(self) -> None:
        r, write = self.r, self.write
        first = self._first()
        terms, _ = self._values(r.terms, (r.states, r.times))
        varying = self._varying(r.moves)
        moves, table = self._values(r.moves, tuple(loop for loop in (r.sources, r.states, r.times) if loop in varying))
        one, zero = write.whole(1), write.whole(0)
        columns, move_times = one, self.times if r.times in varying else one
        by_state, by_source = zero, zero
        if r.states in varying:
            by_state, columns = one, self.states
        if r.sources in varying:
            by_source, columns = columns, write.put(integer(arith.MuliOp, columns, self.states))
        asked, rows = self.times, self._room(self.size)
        if r.only_last:
            asked, rows = self._if_rows(one, zero), write.put(rt.AllocOp(self.states, _REALS))
        twice = write.put(integer(arith.AddiOp, self.times, self.times))
        kept = [self._room(self.size), self._room(self.size), self._room(table), write.put(rt.AllocOp(twice, _REALS))]
        sizes = [self.times, self.states, columns, move_times, by_source, by_state, self.states, one, asked]
        write.before(rt.KernelOp("log_recursion", [first, terms, moves, *sizes, rows, *kept], location=r.sum.location))
        if (position := self._position()) is not None:
            self._leave_last(rows, position)
        elif isinstance(r.handed_on, rt.CopyOp):
            self._copy_last(rows, r.handed_on.destination)
            discard(r.handed_on)
        else:
            self._write_rows(rows)
        discard(r.store)

    # ------------------------------------------------------------ tables

    def _table(self, *loops: scf.ForOp) -> IterationTable:
        table = IterationTable(loops)
        for op in table.ops:
            self.write.before(op)
        return table

    def _room(self, table: IterationTable) -> SSAValue:
        return self.write.put(table.allocate(self.r.sum) if table.loops else rt.AllocOp(self.write.whole(1), _REALS))

    def _varying(self, summands: Sequence[_Summand]) -> set[scf.ForOp]:
        needed = needed_ahead([value for summand in summands for value in summand.factors], self.r.loops)
        assert needed is not None
        return {loop for loop in self.r.loops if loop.body.block.args[0] in needed}

    def _copy(self, values: Sequence[SSAValue], nest: _Nest) -> list[SSAValue]:
        """Values for the iterations of a nest instead of those that the loops are in."""
        needed = needed_ahead(values, self.r.loops)
        assert needed is not None
        for loop in self.r.loops:
            for op in loop.body.block.ops:
                if op in needed and op.results[0] not in nest.mapping:
                    nest.copy(op)
        return [nest.mapping.get(value, value) for value in values]

    def _nest(self, *loops: scf.ForOp) -> _Nest:
        """Loops over the same iterations, which run only if there is a row."""
        if not loops:
            return _Nest([self.write])
        nest, write = _Nest([]), self.write
        for depth, loop in enumerate(loops):
            upper = loop.ub if depth else self._if_rows(loop.ub, loop.lb)
            variable, write = new_loop(write, loop.lb, upper)
            if depth:
                around = variable.owner.parent_op()  # type: ignore[union-attr]
                assert around is not None
                nest.writers[-1] = OpWriter(around)
            nest.writers.append(write)
            nest.variables.append(variable)
            nest.mapping[loop.body.block.args[0]] = variable
            nest.depths[variable] = depth
        return nest

    def _if_rows(self, value: SSAValue, otherwise: SSAValue) -> SSAValue:
        select = arith.SelectOp.create(operands=(self.any_rows, value, otherwise), result_types=(value.type,))
        return self.write.put(select)

    def _first(self) -> SSAValue:
        """The row before the first."""
        r = self.r
        buffer = self.write.put(rt.AllocOp(self.states, _REALS))
        nest = self._nest(r.sources)
        (variable,) = nest.variables
        nest.mapping[r.times.body.block.args[0]] = r.times.lb
        source, write = r.load.buffer, nest.inside
        if r.handed_on is None:
            (source,) = self._copy([source], nest)
        elif (position := self._position()) is not None:
            source = r.times.iter_args[position]
        (index,) = self._copy([r.load.index], nest)
        place = write.put(integer(arith.SubiOp, variable, r.sources.lb))
        write.before(rt.StoreOp(write.put(rt.LoadOp(source, index)), buffer, place, initial=True))
        return buffer

    def _values(self, summands: Sequence[_Summand], loops: Loops) -> tuple[SSAValue, IterationTable]:
        """Memory with the sum of products for each iteration of some loops."""
        table = self._table(*loops)
        buffer = self._room(table)
        nest = self._nest(*loops)
        write = nest.inside
        total: SSAValue | None = None
        for summand in summands:
            factors = self._copy(summand.factors, nest)
            value = factors[0] if len(factors) == 1 else write.real(arith.MulfOp, *factors)
            if total is not None:
                total = write.real(arith.SubfOp if summand.negative else arith.AddfOp, total, value)
            else:
                total = write.put(arith.NegfOp(value)) if summand.negative else value
        ops, index = table.entry(nest.variables)
        for op in ops:
            write.before(op)
        write.before(rt.StoreOp(write.number(0.0) if total is None else total, buffer, index, initial=True))
        return buffer, table

    # ------------------------------------------------------------ rows

    def _write_rows(self, rows: SSAValue) -> None:
        r = self.r
        if r.only_last:
            self._write_last(rows)
            return
        if r.is_contiguous:
            nest = self._nest()
            for loop in (r.times, r.states):
                nest.mapping[loop.body.block.args[0]] = loop.lb
            buffer, index = self._copy([r.store.buffer, r.store.index], nest)
            assert self.size.count is not None
            count = self._if_rows(self.size.count, self.write.whole(0))
            view = self.write.put(rt.ViewOp(buffer, self._if_rows(index, self.write.whole(0))))
            self.write.before(rt.CopyOp(view, rows, count, location=r.store.location))
            return
        nest = self._nest(r.times, r.states)
        buffer, index = self._copy([r.store.buffer, r.store.index], nest)
        write = nest.inside
        ops, place = self.size.entry(nest.variables)
        for op in ops:
            write.before(op)
        write.before(rt.StoreOp(write.put(rt.LoadOp(rows, place)), buffer, index, location=r.store.location))

    def _write_last(self, rows: SSAValue) -> None:
        r, write = self.r, self.write
        last = write.put(integer(arith.SubiOp, r.times.ub, write.whole(1)))
        nest = self._nest(r.states)
        nest.mapping[r.times.body.block.args[0]] = last
        buffer, index = self._copy([r.store.buffer, r.store.index], nest)
        (state,), inside = nest.variables, nest.inside
        inside.before(rt.StoreOp(inside.put(rt.LoadOp(rows, state)), buffer, index, location=r.store.location))

    def _position(self) -> int | None:
        """Which of the values that the loop hands on is the row, if it is one."""
        carried = self.r.times.body.block.args[1:]
        return next((n for n, argument in enumerate(carried) if argument is self.r.load.buffer), None)

    def _leave_last(self, rows: SSAValue, position: int) -> None:
        """The last row is what the loop hands on to what is behind it, or the one before the first."""
        r, write = self.r, self.write
        buffer = write.put(rt.AllocOp(self.states, _REALS, variable=True))
        zero = write.whole(0)
        write.before(rt.CopyOp(buffer, r.times.iter_args[position], self._if_rows(zero, self.states)))
        self._copy_last(rows, buffer)
        replace_uses(r.times.results[position], buffer)
        terminator(r.times.body.block).operands[position] = r.load.buffer

    def _copy_last(self, rows: SSAValue, buffer: SSAValue) -> None:
        """The last row is what is left, if there is one."""
        write = self.write
        zero = write.whole(0)
        write.before(rt.CopyOp(buffer, rows, self._if_rows(self.states, zero), location=self.r.store.location))
