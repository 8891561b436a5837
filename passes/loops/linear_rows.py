"""Writes the reduction of the rows of a normal linear model, and what evaluations do with the reduced ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i1, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import CMPI, constant
from ulam.library.kernels import DESIGN_SIZES, DESIGN_STATE
from ulam.library.records import record
from ulam.passes.analysis.nesting import block_of, is_inside
from ulam.passes.loops.affine_rows import LinearTerm
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.unit_modules import take_slots
from ulam.passes.rewriting import applied_to, replace_uses

MOST_STRAIGHT = 6
"""So many shared coefficients are combined without loops."""
_LARGEST_SQUARES = 1e140
"""The sum of the squares of all coefficients is less, or rows go as they are; linear_design.c has its root."""
_REASONS = (
    "data that are not finite, or differ too much in size",
    "an index has too many values that no row has",
    "reduced rows would not be less work",
)  # in the order of linear_design.c
_FIGURES = ("rows", "groups", "coefficients", "bytes")
_REALS, _INTEGERS = rt.BufferType(f64), rt.BufferType(i64)

Leaf = tuple[SSAValue, ...]
Loops = tuple[scf.ForOp, ...]
Environment = dict[SSAValue, SSAValue]


@record
class LinearColumns:
    """The coefficients of a sum of terms: shared ones, those of loops inside of rows, those of groups."""

    shared: dict[Leaf, int]
    looped: dict[Loops, dict[Leaf, int]]
    own: dict[Leaf, int]
    key: SSAValue | None

    @staticmethod
    def of(terms: Sequence[LinearTerm]) -> LinearColumns | str:
        """The columns of terms; why there are none that could be reduced."""
        found = LinearColumns({}, {}, {}, None)
        for term in terms:
            if not term.leaf:
                continue
            if term.key is None:
                leaves = found.looped.setdefault(term.loops, {}) if term.loops else found.shared
            elif term.loops:
                return "a loop inside of rows reads coefficients of groups"
            elif found.key is not None and found.key is not term.key:
                return "several indices choose coefficients"
            else:
                found.key, leaves = term.key, found.own
            leaves.setdefault(term.leaf, len(leaves))
        return found if found.shared or found.looped or found.own else "it has no coefficients"


@record
class Square:
    """A multiple of a square that rows add to the target: how it is made of what is squared."""

    steps: list[tuple[Operation, int]]
    terms: list[LinearTerm]
    columns: LinearColumns


@record
class SquareSums:
    """A nest of which nothing is needed but what it adds to the target: squares, and what is the same in all rows."""

    loop: scf.ForOp
    around: list[scf.ForOp]
    squares: list[Square]
    constants: list[SSAValue]

    def summary(self) -> str:
        """What becomes of it, for remarks."""
        parts: list[str] = []
        for square in self.squares:
            columns = square.columns
            shared = f"{len(columns.shared)} shared coefficients"
            looped = " and those of loops" if columns.looped else ""
            own = f", {len(columns.own)} per group" if columns.own else ""
            parts.append(f"{shared}{looped}{own}")
        return f"its rows are reduced when data are bound: {'; '.join(parts)}"


@record
class _Copier:
    """Writes values once more, where those that `stays` accepts can be used as they are."""

    stays: Callable[[SSAValue], bool]

    def value(self, value: SSAValue, env: Environment, write: OpWriter) -> SSAValue:
        """A value, by what variables are in `env`."""
        if value in env:
            return env[value]
        if self.stays(value):
            return value
        op = value.owner
        assert isinstance(op, Operation) and not op.regions, value
        operands = [self.value(operand, env, write) for operand in op.operands]
        env[value] = write.put(applied_to(op, operands))
        return env[value]

    def product(self, factors: Sequence[SSAValue], env: Environment, write: OpWriter) -> SSAValue | None:
        """A product; None of nothing."""
        found: SSAValue | None = None
        for factor in factors:
            one = self.value(factor, env, write)
            found = one if found is None else write.real(arith.MulfOp, found, one)
        return found

    def loop(self, loop: scf.ForOp, env: Environment, write: OpWriter) -> tuple[Environment, OpWriter]:
        """A loop over the same range: what is known inside, and a writer there."""
        variable, inside = new_loop(write, self.value(loop.lb, env, write), self.value(loop.ub, env, write))
        return {**env, loop.body.block.args[0]: variable}, inside


def number(write: OpWriter, value: int) -> SSAValue:
    """A constant integer."""
    return write.put(constant(value, i64))


def new_loop(
    write: OpWriter, lower: SSAValue, upper: SSAValue, start: Sequence[SSAValue] = ()
) -> tuple[SSAValue, OpWriter]:
    """A loop by steps of 1 that carries values; its variable, and a writer inside."""
    body = Block(arg_types=[i64, *(value.type for value in start)])
    end = scf.YieldOp.create(operands=list(body.args[1:]))
    body.add_op(end)
    one = number(write, 1)
    loop = scf.ForOp.create(
        operands=[lower, upper, one, *start], result_types=[value.type for value in start], regions=[Region(body)]
    )
    write.before(loop)
    return body.args[0], OpWriter(end)


def _carry(inside: OpWriter, value: SSAValue) -> SSAValue:
    """Lets the loop of a writer carry a value; the loop's result."""
    end = inside.anchor
    end.operands = [value]
    loop = end.parent_op()
    assert loop is not None
    return loop.results[0]


@record
class _Reduced:
    """What `bind` leaves of a square."""

    used: SSAValue
    rows: SSAValue
    groups: SSAValue
    low: SSAValue
    shared: SSAValue
    own: SSAValue
    count: SSAValue
    """Of shared coefficients."""
    starts: dict[Loops, SSAValue]
    """Where those of loops begin."""
    trips: dict[Loops, list[SSAValue]] = field(default_factory=dict[Loops, list[SSAValue]])


def write_layout(statement: SquareSums, top: Block) -> None:
    """Puts a branch in the place of a nest: reduced rows if they may be used, else the nest."""
    loop = statement.loop
    ancestor: Operation = loop
    while ancestor.parent is not top:
        parent = ancestor.parent_op()
        assert parent is not None
        ancestor = parent
    reduced = [_Binding(statement, square, top, OpWriter(ancestor)).write() for square in statement.squares]
    write = OpWriter(loop)
    copier = _Copier(lambda value: not is_inside(value, loop))
    pairs = list(zip(statement.squares, reduced, strict=True))
    ok = write.both([_guard(square, found, copier, write) for square, found in pairs])
    then, otherwise = Block(), Block()
    branch = scf.IfOp.create(
        operands=[ok],
        result_types=[result.type for result in loop.results],
        regions=[Region(then), Region(otherwise)],
        location=loop.location,
    )
    write.before(branch)
    for result, new in zip(loop.results, branch.results, strict=True):
        replace_uses(result, new)
    loop.detach()
    otherwise.add_ops([loop, scf.YieldOp.create(operands=list(loop.results))])
    end = scf.YieldOp.create(operands=list(loop.iter_args))
    then.add_op(end)
    inside = OpWriter(end)
    for value in statement.constants:
        rows = inside.put(arith.SIToFPOp.create(operands=[reduced[0].rows], result_types=[f64]))
        term = inside.real(arith.MulfOp, rows, copier.value(value, {}, inside))
        inside.before(ad.TargetAddOp(term))
    for square, found in pairs:
        _Evaluation(square, found, copier, inside).write()


# ---------------------------------------------------------------- when data are bound


@record
class _Binding:
    """Writes what reduces the rows of a square, of data alone: `hoist-data` moves it."""

    statement: SquareSums
    square: Square
    top: Block
    write_to: OpWriter

    def write(self) -> _Reduced:
        write, columns = self.write_to, self.square.columns
        copier = _Copier(lambda value: block_of(value) is self.top)
        count = number(write, len(columns.shared))
        starts: dict[Loops, SSAValue] = {}
        trips: dict[Loops, list[SSAValue]] = {}
        for loops, leaves in columns.looped.items():
            starts[loops] = count
            trips[loops] = [_trips(loop, copier, write) for loop in loops]
            size = number(write, len(leaves))
            for trip in trips[loops]:
                size = write.put(integer(arith.MuliOp, size, trip))
            count = write.put(integer(arith.AddiOp, count, size))
        own = number(write, len(columns.own))
        width = write.put(integer(arith.AddiOp, count, number(write, len(columns.own) + 1)))
        state = write.put(rt.AllocOp(number(write, DESIGN_STATE), _INTEGERS))
        write.before(rt.KernelOp("design_begin", (state, own, count)))
        row = write.put(rt.AllocOp(width, _REALS, zero=True))
        _, turn = new_loop(write, number(write, 0), number(write, 2))
        self._write_rows(copier, turn, _Row(state, row, width, count, starts, trips))
        turn.before(rt.KernelOp("design_turn", (state, state)))
        sizes = write.put(rt.AllocOp(number(write, DESIGN_SIZES), _INTEGERS))
        write.before(rt.KernelOp("design_sizes", (state, sizes)))
        outcome, groups, low, shared_size, own_size, *figures = (
            write.put(rt.LoadOp(sizes, number(write, n))) for n in range(DESIGN_SIZES)
        )
        slot = take_slots(module_of(self.statement.loop), 1 + len(_FIGURES))
        location = self.statement.loop.location
        write.before(rt.LayoutOp("reduced rows", slot, _REASONS, _FIGURES, outcome, figures, location=location))
        shared = write.put(rt.AllocOp(shared_size, _REALS))
        own_rows = write.put(rt.AllocOp(own_size, _REALS))
        write.before(rt.KernelOp("design_tables", (state, shared, shared_size, own_rows, own_size)))
        is_used = write.put(
            arith.CmpiOp.create(
                operands=(outcome, number(write, 0)), result_types=(i1,), properties={"predicate": CMPI["eq"]}
            )
        )
        return _Reduced(is_used, figures[0], groups, low, shared, own_rows, count, starts, trips)

    def _write_rows(self, copier: _Copier, write: OpWriter, row: _Row) -> None:
        """The loops and branches around a row, and the row."""
        env: Environment = {}
        for branch, arm in self._branches():
            arms = [Block([scf.YieldOp.create()]), Block([scf.YieldOp.create()])]
            condition = copier.value(branch.cond, env, write)
            write.before(scf.IfOp.create(operands=[condition], regions=[Region(block) for block in arms]))
            end = arms[arm].last_op
            assert end is not None
            write, env = OpWriter(end), dict(env)
        for loop in self.statement.around:
            env, write = copier.loop(loop, env, write)
        self._write_row(copier, env, write, row)

    def _branches(self) -> list[tuple[scf.IfOp, int]]:
        """Branches around the nest, the outermost first, and in which arm it stands."""
        found: list[tuple[scf.IfOp, int]] = []
        current: Operation = self.statement.loop
        while current.parent is not self.top:
            parent = current.parent_op()
            assert isinstance(parent, scf.IfOp) and current.parent is not None
            found.append((parent, [region.block for region in parent.regions].index(current.parent)))
            current = parent
        return found[::-1]

    def _write_row(self, copier: _Copier, env: Environment, write: OpWriter, row: _Row) -> None:
        columns = self.square.columns
        own = len(columns.own)
        y = write.put(integer(arith.SubiOp, row.width, number(write, 1)))
        sums: dict[int, SSAValue] = {}
        by_loops: dict[Loops, list[LinearTerm]] = {}
        for term in self.square.terms:
            if term.loops:
                by_loops.setdefault(term.loops, []).append(term)
                continue
            column = -1 if not term.leaf else columns.own[term.leaf] if term.key else own + columns.shared[term.leaf]
            _add(sums, column, _coefficient(term, copier, env, write), write, negative=term.negative != bool(term.leaf))
        for column, value in sums.items():
            index = y if column < 0 else number(write, column)
            write.before(rt.StoreOp(value, row.buffer, index))
        for loops, terms in by_loops.items():
            self._write_loops(copier, env, write, row, loops, terms)
        key = number(write, 0) if columns.key is None else copier.value(columns.key, env, write)
        write.before(rt.KernelOp("design_row", (row.state, row.state, row.buffer, row.width, key)))

    def _write_loops(
        self, copier: _Copier, env: Environment, write: OpWriter, row: _Row, loops: Loops, terms: list[LinearTerm]
    ) -> None:
        """The columns of coefficients of loops inside of a row."""
        columns = self.square.columns
        leaves = columns.looped.get(loops, {})
        inner, inside = dict(env), write
        for loop in loops:
            inner, inside = copier.loop(loop, inner, inside)
        sums: dict[int, SSAValue] = {}
        for term in terms:
            column = leaves[term.leaf] if term.leaf else -1
            coefficient = _coefficient(term, copier, inner, inside)
            _add(sums, column, coefficient, inside, negative=term.negative != bool(term.leaf))
        y = inside.put(integer(arith.SubiOp, row.width, number(inside, 1)))
        first = number(inside, len(columns.own))
        if leaves:
            at = _position(loops, row.trips[loops], len(leaves), copier, inner, inside)
            at = inside.put(integer(arith.AddiOp, at, row.starts[loops]))
            first = inside.put(integer(arith.AddiOp, first, at))
        for column, value in sums.items():
            if column < 0:
                before = inside.put(rt.LoadOp(row.buffer, y))
                value = inside.real(arith.AddfOp, before, value)
                inside.before(rt.StoreOp(value, row.buffer, y))
            else:
                index = inside.put(integer(arith.AddiOp, first, number(inside, column)))
                inside.before(rt.StoreOp(value, row.buffer, index))


def module_of(op: Operation) -> ModuleOp:
    """The module that an op stands in."""
    current: Operation | None = op
    while current is not None and not isinstance(current, ModuleOp):
        current = current.parent_op()
    assert current is not None
    return current


@record
class _Row:
    """Where a row of the design is put together."""

    state: SSAValue
    buffer: SSAValue
    width: SSAValue
    count: SSAValue
    starts: dict[Loops, SSAValue]
    trips: dict[Loops, list[SSAValue]]


def _add(sums: dict[int, SSAValue], column: int, value: SSAValue, write: OpWriter, *, negative: bool) -> None:
    if column in sums:
        sums[column] = write.real(arith.SubfOp if negative else arith.AddfOp, sums[column], value)
    else:
        sums[column] = write.put(arith.NegfOp.create(operands=[value], result_types=[f64])) if negative else value


def _coefficient(term: LinearTerm, copier: _Copier, env: Environment, write: OpWriter) -> SSAValue:
    """The data of a term."""
    if term.moved:
        env = {**env, **{variable: env[row] for variable, row in term.moved}}
    found = copier.product(term.data, env, write)
    found = write.number(1.0) if found is None else found
    for divisor in term.divisors:
        found = write.real(arith.DivfOp, found, copier.value(divisor, env, write))
    return found


def _trips(loop: scf.ForOp, copier: _Copier, write: OpWriter) -> SSAValue:
    """How often a loop runs."""
    lower, upper = copier.value(loop.lb, {}, write), copier.value(loop.ub, {}, write)
    return write.put(integer(arith.MaxSIOp, write.put(integer(arith.SubiOp, upper, lower)), number(write, 0)))


def _position(
    loops: Loops, trips: list[SSAValue], leaves: int, copier: _Copier, env: Environment, write: OpWriter
) -> SSAValue:
    """Where the coefficients of an iteration begin, among those of its loops."""
    found = number(write, 0)
    for loop, trip in zip(loops, trips, strict=True):
        lower = copier.value(loop.lb, env, write)
        at = write.put(integer(arith.SubiOp, env[loop.body.block.args[0]], lower))
        found = write.put(integer(arith.AddiOp, write.put(integer(arith.MuliOp, found, trip)), at))
    return write.put(integer(arith.MuliOp, found, number(write, leaves)))


# ---------------------------------------------------------------- evaluations


def _leaf(leaf: Leaf, copier: _Copier, env: Environment, write: OpWriter) -> SSAValue:
    found = copier.product(leaf, env, write)
    assert found is not None
    return found


def _guard(square: Square, reduced: _Reduced, copier: _Copier, write: OpWriter) -> SSAValue:
    """Whether all coefficients are finite, and none is so large that rows could not be."""
    columns = square.columns
    total = write.number(0.0)
    env: Environment = {}
    for leaf in columns.shared:
        total = _plus_square(total, _leaf(leaf, copier, env, write), write)
    for loops, leaves in columns.looped.items():
        total = _squares_of_loops(total, loops, leaves, copier, write)
    if columns.own:
        j, inside = new_loop(write, number(write, 0), reduced.groups, [total])
        env = _of_group(columns, reduced, j, inside)
        sum_ = inside.anchor.operands[0]
        for leaf in columns.own:
            sum_ = _plus_square(sum_, _leaf(leaf, copier, env, inside), inside)
        total = _carry(inside, sum_)
    return write.both([reduced.used, write.compare("olt", total, _LARGEST_SQUARES)])


def _plus_square(total: SSAValue, value: SSAValue, write: OpWriter) -> SSAValue:
    return write.real(arith.AddfOp, total, write.real(arith.MulfOp, value, value), reassociate=True)


def _squares_of_loops(
    total: SSAValue, loops: Loops, leaves: dict[Leaf, int], copier: _Copier, write: OpWriter
) -> SSAValue:
    inner: Environment = {}
    inside, writers, sum_ = write, [], total
    for loop in loops:
        lower, upper = copier.value(loop.lb, inner, inside), copier.value(loop.ub, inner, inside)
        variable, inside = new_loop(inside, lower, upper, [sum_])
        inner = {**inner, loop.body.block.args[0]: variable}
        sum_ = inside.anchor.operands[0]
        writers.append(inside)
    for leaf in leaves:
        sum_ = _plus_square(sum_, _leaf(leaf, copier, inner, inside), inside)
    for writer in reversed(writers):
        sum_ = _carry(writer, sum_)
    return sum_


def _of_group(columns: LinearColumns, reduced: _Reduced, j: SSAValue, write: OpWriter) -> Environment:
    """The key of the j-th group."""
    assert columns.key is not None
    return {columns.key: write.put(integer(arith.AddiOp, j, reduced.low))}


@record
class _Evaluation:
    """Writes the reduced rows of a square: what they add to the target."""

    square: Square
    reduced: _Reduced
    copier: _Copier
    write_to: OpWriter

    def write(self) -> None:
        columns = self.square.columns
        values = self._values() if not columns.looped and len(columns.shared) <= MOST_STRAIGHT else None
        coefficients = self._buffer() if values is None else None
        if columns.own:
            self._write_groups(values, coefficients)
        if values is not None:
            self._write_straight(values)
        else:
            assert coefficients is not None
            self._write_triangle(coefficients)

    # ------------------------------------------------------------ coefficients, less those that fit best

    def _values(self) -> list[SSAValue]:
        write, columns = self.write_to, self.square.columns
        size = len(columns.shared)
        values: list[SSAValue] = []
        for n, leaf in enumerate(columns.shared):
            best = self._shared((size + 1) ** 2 + n, write)
            values.append(write.real(arith.SubfOp, _leaf(leaf, self.copier, {}, write), best))
        return values

    def _shared(self, index: int, write: OpWriter) -> SSAValue:
        return write.put(rt.LoadOp(self.reduced.shared, number(write, index)))

    def _buffer(self) -> SSAValue:
        write, columns, reduced = self.write_to, self.square.columns, self.reduced
        found = write.put(rt.AllocOp(reduced.count, _REALS))
        rows = write.put(integer(arith.AddiOp, reduced.count, number(write, 1)))
        best = write.put(integer(arith.MuliOp, rows, rows))
        for n, leaf in enumerate(columns.shared):
            value = _leaf(leaf, self.copier, {}, write)
            self._put_less_best(found, number(write, n), best, value, write)
        for loops, leaves in columns.looped.items():
            env: Environment = {}
            inside = write
            for loop in loops:
                env, inside = self.copier.loop(loop, env, inside)
            first = _position(loops, reduced.trips[loops], len(leaves), self.copier, env, inside)
            first = inside.put(integer(arith.AddiOp, first, reduced.starts[loops]))
            for n, leaf in enumerate(leaves):
                index = inside.put(integer(arith.AddiOp, first, number(inside, n)))
                self._put_less_best(found, index, best, _leaf(leaf, self.copier, env, inside), inside)
        return found

    def _put_less_best(
        self, buffer: SSAValue, index: SSAValue, best: SSAValue, value: SSAValue, write: OpWriter
    ) -> None:
        other = write.put(rt.LoadOp(self.reduced.shared, write.put(integer(arith.AddiOp, best, index))))
        write.before(rt.StoreOp(write.real(arith.SubfOp, value, other), buffer, index, initial=True))

    # ------------------------------------------------------------ rows

    def _add(self, row: SSAValue, write: OpWriter) -> None:
        """Adds to the target what a row with this residual does."""
        for op, at in reversed(self.square.steps):
            operands = [
                row if at in (-1, n) else self.copier.value(operand, {}, write) for n, operand in enumerate(op.operands)
            ]
            row = write.put(applied_to(op, operands))
        write.before(ad.TargetAddOp(row))

    def _write_straight(self, values: list[SSAValue]) -> None:
        write, n = self.write_to, len(values) + 1
        for i in range(n):
            row = self._shared(i * n + n - 1, write)
            for k in range(i, n - 1):
                row = _minus(row, self._shared(i * n + k, write), values[k], write)
            self._add(row, write)

    def _write_triangle(self, coefficients: SSAValue) -> None:
        write, count = self.write_to, self.reduced.count
        n = write.put(integer(arith.AddiOp, count, number(write, 1)))
        i, inside = new_loop(write, number(write, 0), n)
        first = inside.put(integer(arith.MuliOp, i, n))
        last = inside.put(rt.LoadOp(self.reduced.shared, inside.put(integer(arith.AddiOp, first, count))))
        k, innermost = new_loop(inside, i, count, [last])
        entry = innermost.put(rt.LoadOp(self.reduced.shared, innermost.put(integer(arith.AddiOp, first, k))))
        value = innermost.put(rt.LoadOp(coefficients, k))
        row = _carry(innermost, _minus(innermost.anchor.operands[0], entry, value, innermost))
        self._add(row, inside)

    def _write_groups(self, values: list[SSAValue] | None, coefficients: SSAValue | None) -> None:
        write, columns, reduced = self.write_to, self.square.columns, self.reduced
        own = len(columns.own)
        width = write.put(integer(arith.AddiOp, reduced.count, number(write, own + 1)))
        best = write.put(integer(arith.MuliOp, width, number(write, own)))
        j, inside = new_loop(write, number(write, 0), reduced.groups)
        env = _of_group(columns, reduced, j, inside)
        mine: list[SSAValue] = []
        for p, leaf in enumerate(columns.own):
            at = inside.put(integer(arith.AddiOp, best, number(inside, p)))
            mine.append(
                inside.real(arith.SubfOp, _leaf(leaf, self.copier, env, inside), self._of_group(at, j, inside))
            )
        for p in range(own):
            first = inside.put(integer(arith.MuliOp, width, number(inside, p)))
            end = inside.put(integer(arith.AddiOp, width, number(inside, -1)))
            row = self._of_group(inside.put(integer(arith.AddiOp, first, end)), j, inside)
            for q in range(p, own):
                row = _minus(row, self._of_group(_plus(first, q, inside), j, inside), mine[q], inside)
            first = _plus(first, own, inside)
            if values is not None:
                for k, value in enumerate(values):
                    row = _minus(row, self._of_group(_plus(first, k, inside), j, inside), value, inside)
            else:
                assert coefficients is not None
                k, innermost = new_loop(inside, number(inside, 0), reduced.count, [row])
                at = innermost.put(integer(arith.AddiOp, first, k))
                value = innermost.put(rt.LoadOp(coefficients, k))
                row = _carry(
                    innermost,
                    _minus(innermost.anchor.operands[0], self._of_group(at, j, innermost), value, innermost),
                )
            self._add(row, inside)

    def _of_group(self, index: SSAValue, j: SSAValue, write: OpWriter) -> SSAValue:
        """A number of the j-th group."""
        first = write.put(integer(arith.MuliOp, index, self.reduced.groups))
        return write.put(rt.LoadOp(self.reduced.own, write.put(integer(arith.AddiOp, first, j))))


def _plus(index: SSAValue, by: int, write: OpWriter) -> SSAValue:
    return write.put(integer(arith.AddiOp, index, number(write, by)))


def _minus(row: SSAValue, a: SSAValue, b: SSAValue, write: OpWriter) -> SSAValue:
    return write.real(arith.SubfOp, row, write.real(arith.MulfOp, a, b), reassociate=True)
