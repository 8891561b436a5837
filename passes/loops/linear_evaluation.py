"""Writes what evaluations do with the reduced rows of a normal linear model, in the place of its loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import known_constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import in_order, is_inside, terminator
from ulam.passes.loops.filled_buffers import is_behind, memory_filled_by, tests_of, users
from ulam.passes.loops.linear_binding import Binding
from ulam.passes.loops.linear_rows import (
    MOST_STRAIGHT,
    Copier,
    Environment,
    KeyedLeaf,
    Leaf,
    Reduced,
    Square,
    SquareSums,
    carry,
    new_loop,
)
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.rewriting import applied_to, copies, replace_uses

LARGEST_SQUARES = 1e140
"""The sum of the squares of all coefficients is less, or rows go as they are; linear_design.c has its root."""
_LARGEST_SCALE = 1e70
_REALS = rt.BufferType(f64)
Sums = dict[int, SSAValue]
"""Memory of sums that are no additions to the target."""


def write_layout(statement: SquareSums, top: Block) -> list[Operation]:
    """Puts a branch in the place of a nest: reduced rows if they may be used, else the nest. Returned is what is to be
    done when data are bound, which stands ahead of it.
    """
    loop, ancestor = statement.loop, ancestor_of(statement.loop, top)
    before = ancestor.prev_op
    bindings = [Binding(statement, square, top, OpWriter(ancestor)) for square in statement.squares]
    reduced = [binding.write() for binding in bindings]
    data = bindings[0].sums()
    written = list(ops_between(before, ancestor))
    write = OpWriter(loop)
    copier = copier_outside(statement)
    evaluations = [_evaluation(square, found, copier) for square, found in zip(statement.squares, reduced, strict=True)]
    conditions = [evaluation.begin(write) for evaluation in evaluations]
    conditions += conditions_of(statement, copier, {}, write, of_keys=False)

    def write_squares(inside: OpWriter, sums: Sums) -> None:
        for evaluation in evaluations:
            evaluation.write(inside, sums)

    write_sums(statement, write.both(conditions), reduced[0].rows, data, write_squares)
    return written


def ancestor_of(loop: scf.ForOp, top: Block) -> Operation:
    """The op of the top that a nest stands in, or is."""
    ancestor: Operation = loop
    while ancestor.parent is not top:
        parent = ancestor.parent_op()
        assert parent is not None
        ancestor = parent
    return ancestor


def copier_outside(statement: SquareSums) -> Copier:
    """Copies what the nest, and those that fill what it reads, compute."""
    nests = (statement.loop, *statement.fills)
    return Copier(lambda value: not any(is_inside(value, nest) for nest in nests))


def write_sums(
    statement: SquareSums,
    ok: SSAValue,
    rows: SSAValue,
    data: Sequence[SSAValue],
    write_squares: Callable[[OpWriter, Sums], None],
) -> None:
    """Puts a branch in the place of the nest: sums of a number of rows and of data, and what is written for squares, if
    something holds, else the nest.
    """
    loop, copier, end = statement.loop, copier_outside(statement), scf.YieldOp.create()
    _branch_around(statement, ok, end, OpWriter(loop))
    inside = OpWriter(end)
    sums = {into: inside.put(rt.AllocOp(inside.whole(1), _REALS, zero=True)) for into in statement.sums}
    for value, into in statement.constants:
        count = inside.put(arith.SIToFPOp.create(operands=[rows], result_types=[f64]))
        term = inside.real(arith.MulfOp, count, copier.value(value, {}, inside))
        add_to_sum(sums, into, term, inside)
    for value, (_, into) in zip(data, statement.data, strict=False):
        add_to_sum(sums, into, value, inside)
    for value, (common, _, into) in zip(data[len(statement.data) :], statement.products, strict=True):
        add_to_sum(sums, into, inside.real(arith.MulfOp, value, copier.value(common, {}, inside)), inside)
    write_squares(inside, sums)
    totals = list(loop.iter_args)
    for into, buffer in sums.items():
        total = inside.put(rt.LoadOp(buffer, inside.whole(0)))
        totals[into] = inside.real(arith.AddfOp, totals[into], total, reassociate=True)
    end.operands = [*totals, *(start for nest in statement.nests[1:] for start in nest.iter_args)]


def conditions_of(
    statement: SquareSums, copier: Copier, env: Environment, write: OpWriter, *, of_keys: bool
) -> list[SSAValue]:
    """What has to hold of scales and factors that all rows share, or of those of keys, which are in `env`."""
    found: list[SSAValue] = []
    is_of_keys = statement.scales.nest.is_of_keys
    for value in statement.scales.shared:
        if is_of_keys(value) == of_keys:
            scale = copier.value(value, env, write)
            found += [write.compare("ogt", scale, 1 / _LARGEST_SCALE), write.compare("olt", scale, _LARGEST_SCALE)]
    factors = {value: divides for value, divides in _factors(statement).items() if is_of_keys(value) == of_keys}
    if of_keys:
        factors = {value: divides for value, divides in factors.items() if not _is_moderate(value, statement)}
    return found + _finite_factors(factors, copier, env, write)


def _is_moderate(value: SSAValue, statement: SquareSums) -> bool:
    """Whether a value is finite and not 0, or a logarithm, since evaluations find scales moderate anyway."""
    op = value.owner
    if value in statement.scales.shared:
        return True
    if isinstance(op, arith.NegfOp):
        return _is_moderate(op.operand, statement)
    if not isinstance(op, rt.MathOp) or op.function.data not in ("inv", "log", "sqrt"):
        return False
    return op.arguments[0] in statement.scales.shared


def _factors(statement: SquareSums) -> dict[SSAValue, bool]:
    """What rows are multiplied with, and whether they are divided by it."""
    factors: dict[SSAValue, bool] = {common: False for common, _, _ in statement.products}
    factors |= {each.value: False for each in statement.keyed}
    for op, at in (step for square in statement.squares for step in square.steps):
        if at == -1 or not isinstance(op, arith.MulfOp | arith.DivfOp):
            continue
        other = op.operands[1 - at]
        if known_constant(other) is None:
            factors[other] = factors.get(other, False) or (isinstance(op, arith.DivfOp) and at == 0)
    return factors


def _finite_factors(factors: dict[SSAValue, bool], copier: Copier, env: Environment, write: OpWriter) -> list[SSAValue]:
    """Whether what rows are multiplied with is finite, and what they are divided by is not 0.

    Reduced rows, and sums of the data, may be 0 where rows of the data are not, or the other way round, and 0 times
    infinity is no number.
    """
    found: list[SSAValue] = []
    for factor, divides in factors.items():
        value = copier.value(factor, env, write)
        size = write.put(rt.MathOp("abs", (value,)))
        found.append(write.compare("olt", size, math.inf))
        if divides:
            found.append(write.compare("ogt", size, 0.0))
    return found


def _branch_around(statement: SquareSums, ok: SSAValue, end: scf.YieldOp, write: OpWriter) -> None:
    """Puts the nest into the second arm of a branch, and `end` into the first."""
    loop = statement.loop
    gives = [result for nest in statement.nests for result in nest.results]
    otherwise = Block()
    branch = scf.IfOp.create(
        operands=[ok],
        result_types=[result.type for result in gives],
        regions=[Region(Block([end])), Region(otherwise)],
        location=loop.location,
    )
    rt.ReducedAttr().put(branch)
    write.before(branch)
    for test in (test for fill in statement.nests[1:] for test in tests_of(fill) or []):
        if is_behind(loop, test):
            test.detach()
            write.before(test)
    for result, new in zip(gives, branch.results, strict=True):
        replace_uses(result, new)
    loop.detach()
    otherwise.add_ops([loop, scf.YieldOp.create(operands=gives)])
    copied: dict[SSAValue, SSAValue] = {}
    for fill, stays in statement.fills.items():
        if not stays:
            _move_fill(fill, loop, copied)
        elif not is_product(fill):
            copy_fill(fill, loop, copied)
    read_copies(loop, copied)


def is_product(fill: scf.ForOp) -> bool:
    """Whether elements take a loop each, as those of a product with a matrix: then they are not computed twice."""
    return any(isinstance(op, scf.ForOp) for op in ops_within(fill.body))


def _move_fill(fill: scf.ForOp, reader: scf.ForOp, copied: dict[SSAValue, SSAValue]) -> None:
    """Puts a nest, and the memory that it fills, in front of the one that reads it. `copied`: copies of memory."""
    assert reader.parent is not None
    for op in [*_memory_ops(fill), fill]:
        op.detach()
        reader.parent.insert_op_before(op, reader)
    read_copies(fill, copied)


def copy_fill(fill: scf.ForOp, reader: scf.ForOp, copied: dict[SSAValue, SSAValue]) -> None:
    """Puts a copy of a nest, and of the memory that it fills, in front of one that reads it."""
    assert reader.parent is not None
    ahead = [op for op in _memory_ops(fill) if is_behind(fill, op)]
    reader.parent.insert_ops_before(copies([*ahead, fill], copied), reader)


def _memory_ops(fill: scf.ForOp) -> list[Operation]:
    """The memory that a nest fills, and what uses it in its block, in order."""
    found = dict.fromkeys(op for alloc in memory_filled_by(fill) for op in (alloc, *users(alloc, views=True)))
    return in_order(op for op in found if op.parent is fill.parent)


def read_copies(nest: scf.ForOp, copied: dict[SSAValue, SSAValue]) -> None:
    """Lets a nest read copies of memory."""
    for op in ops_within(nest) if copied else ():
        if isinstance(op, rt.LoadOp | rt.ViewOp):
            op.operands = [copied.get(operand, operand) for operand in op.operands]


def ops_between(before: Operation | None, behind: Operation) -> Iterator[Operation]:
    """The ops of a block behind one, or from its first one on, up to another one."""
    assert behind.parent is not None
    op = behind.parent.first_op if before is None else before.next_op
    while op is not None and op is not behind:
        yield op
        op = op.next_op


def add_to_sum(sums: Sums, into: int | None, value: SSAValue, write: OpWriter) -> None:
    """Adds to the target, or to a sum."""
    write.before(ad.TargetAddOp(value) if into is None else ad.AccumulateOp(sums[into], write.whole(0), value))


def add_scaled(
    square: Square,
    value: SSAValue,
    copier: Copier,
    write: OpWriter,
    sums: Sums,
    *,
    is_row: bool = False,
    env: Environment | None = None,
) -> None:
    """Adds what a row does; or what rows do whose squares add up to a value, in which factors that stand in the square
    count twice. `env`: the keys of these rows.
    """
    is_squared = is_row
    for op, at in reversed(square.steps):
        if not is_row and (at == -1 or isinstance(op, rt.MathOp)):
            is_squared = True
            continue
        if not is_squared and isinstance(op, arith.NegfOp):
            continue
        for _ in range(1 if is_squared else 2):
            operands = [
                value if at in (-1, n) else copier.value(operand, dict(env or {}), write)
                for n, operand in enumerate(op.operands)
            ]
            value = write.put(applied_to(op, operands))
    add_to_sum(sums, square.into, value, write)


def leaf_value(leaf: Leaf, copier: Copier, env: Environment, write: OpWriter) -> SSAValue:
    found = copier.product(leaf, env, write)
    assert found is not None
    return found


def _plus(total: SSAValue | None, value: SSAValue, write: OpWriter) -> SSAValue:
    return value if total is None else write.real(arith.AddfOp, total, value, reassociate=True)


def _evaluation(square: Square, reduced: Reduced, copier: Copier) -> _StraightEvaluation | _KernelEvaluation:
    kind = _StraightEvaluation if square.columns.are_few else _KernelEvaluation
    return kind(square, reduced, copier)


@record
class _StraightEvaluation:
    """Writes what the reduced rows of a few coefficients do, and those of groups."""

    square: Square
    reduced: Reduced
    copier: Copier

    def begin(self, write: OpWriter) -> SSAValue:
        """Whether reduced rows may be used: all coefficients are finite, none so large that rows could not be."""
        self._values = [leaf_value(leaf, self.copier, {}, write) for leaf in self.square.columns.shared]
        total = write.number(0.0)
        for value in self._values:
            total = _plus(total, write.real(arith.MulfOp, value, value), write)
        if self.square.columns.own:
            _, inside, mine = self._group(write, [total])
            (sum_,) = inside.anchor.operands
            for value in mine:
                sum_ = _plus(sum_, inside.real(arith.MulfOp, value, value), inside)
            total = carry(inside, sum_)
        return write.both([self.reduced.used, write.compare("olt", total, LARGEST_SQUARES)])

    def write(self, write: OpWriter, sums: Sums) -> None:
        """Adds up what rows do; by the kernel where numbers cancel."""
        arms = [Block([scf.YieldOp.create()]), Block([scf.YieldOp.create()])]
        write.before(scf.IfOp.create(operands=[self.reduced.by_kernel], regions=[Region(block) for block in arms]))
        exactly, plainly = (OpWriter(terminator(block)) for block in arms)
        kernel = _KernelEvaluation(self.square, self.reduced, self.copier)
        kernel.call(exactly)
        kernel.write(exactly, sums)
        for op in ops_within(arms[0]):
            if isinstance(op, scf.ForOp):
                rt.LoopAttr.of_kind("cold").put(op)  # it hands coefficients to a kernel that takes longer with each
        self._write_plainly(plainly, sums)

    def _write_plainly(self, write: OpWriter, sums: Sums) -> None:
        n = len(self._values) + 1
        less = [
            write.real(arith.SubfOp, value, self._shared(n * n + k, write)) for k, value in enumerate(self._values)
        ]  # coefficients, less those that fit best
        if self.square.columns.own:
            self._write_groups(less, write, sums)
        if len(less) > MOST_STRAIGHT:
            self._write_triangle(less, write, sums)
            return
        total: SSAValue | None = None
        for i in reversed(range(n)):
            row = self._shared(i * n + n - 1, write)
            for k in range(i, n - 1):
                product = write.real(arith.MulfOp, self._shared(i * n + k, write), less[k])
                row = write.real(arith.SubfOp, row, product, reassociate=True)
            total = _plus(total, write.real(arith.MulfOp, row, row), write)
        assert total is not None
        add_scaled(self.square, total, self.copier, write, sums)

    def _write_triangle(self, less: list[SSAValue], write: OpWriter, sums: Sums) -> None:
        """By loops, which LLVM may write out."""
        n = len(less) + 1
        coefficients = write.put(rt.AllocOp(write.whole(n - 1), _REALS))
        for k, value in enumerate(less):
            write.before(rt.StoreOp(value, coefficients, write.whole(k), initial=True))
        i, inside = new_loop(write, write.whole(0), write.whole(n))
        first = inside.put(integer(arith.MuliOp, i, inside.whole(n)))
        last = inside.put(integer(arith.AddiOp, first, inside.whole(n - 1)))
        start = inside.put(rt.LoadOp(self.reduced.shared, last))
        k, innermost = new_loop(inside, i, inside.whole(n - 1), [start])
        entry = innermost.put(rt.LoadOp(self.reduced.shared, innermost.put(integer(arith.AddiOp, first, k))))
        product = innermost.real(arith.MulfOp, entry, innermost.put(rt.LoadOp(coefficients, k)))
        (before,) = innermost.anchor.operands
        row = carry(innermost, innermost.real(arith.SubfOp, before, product, reassociate=True))
        add_scaled(self.square, row, self.copier, inside, sums, is_row=True)

    def _group(self, write: OpWriter, start: Sequence[SSAValue] = ()) -> tuple[SSAValue, OpWriter, list[SSAValue]]:
        """A loop over groups: which one it is, a writer inside, its coefficients."""
        columns = self.square.columns
        assert columns.key is not None
        j, inside = new_loop(write, write.whole(0), self.reduced.groups, start)
        key, places = inside.put(integer(arith.AddiOp, j, self.reduced.low)), self.reduced.places
        return j, inside, [places.coefficient(leaf, key, self.copier, inside) for leaf in columns.own]

    def _write_groups(self, less: list[SSAValue], write: OpWriter, sums: Sums) -> None:
        own, columns = len(self.square.columns.own), len(self.square.columns.own) + len(less) + 1
        j, inside, mine = self._group(write)
        mine = [
            inside.real(arith.SubfOp, value, self._of_group(own * columns + p, j, inside))
            for p, value in enumerate(mine)
        ]
        for p in range(own):
            row = self._of_group((p + 1) * columns - 1, j, inside)
            for q, value in list(enumerate([*mine, *less]))[p:]:
                product = inside.real(arith.MulfOp, self._of_group(p * columns + q, j, inside), value)
                row = inside.real(arith.SubfOp, row, product, reassociate=True)
            add_scaled(self.square, row, self.copier, inside, sums, is_row=True)

    def _of_group(self, number: int, j: SSAValue, write: OpWriter) -> SSAValue:
        """A number of the j-th group."""
        first = write.put(integer(arith.MuliOp, write.whole(number), self.reduced.room))
        return write.put(rt.LoadOp(self.reduced.own, write.put(integer(arith.AddiOp, first, j))))

    def _shared(self, index: int, write: OpWriter) -> SSAValue:
        return write.put(rt.LoadOp(self.reduced.shared, write.whole(index)))


@record
class _KernelEvaluation:
    """The same where data say how many coefficients there are: by a kernel, which is handed all of them."""

    square: Square
    reduced: Reduced
    copier: Copier

    def begin(self, write: OpWriter) -> SSAValue:
        """Whether the sum, which is computed here, may be used."""
        self.call(write)
        squares = write.put(rt.LoadOp(self._sums, write.whole(1)))
        return write.both([self.reduced.used, write.compare("olt", squares, LARGEST_SQUARES)])

    def call(self, write: OpWriter) -> None:
        """Computes the sum, and that of the squares of coefficients."""
        columns, reduced = self.square.columns, self.reduced
        count = reduced.places.count
        own = reduced.own_columns if columns.chosen else write.whole(len(columns.own))
        size = write.put(integer(arith.MuliOp, own, reduced.room))
        shared, mine = self._shared(write), self._of_groups(size, write)
        self._sums = write.put(rt.AllocOp(write.whole(2), _REALS))
        halves = (write.put(rt.AllocOp(count, _REALS)), write.put(rt.AllocOp(size, _REALS)))
        sizes = (reduced.shared_size, reduced.own_size, count, own, reduced.room)
        arguments = (reduced.shared, reduced.own, shared, mine, *sizes, self._sums, *halves)
        write.before(rt.KernelOp("reduced_squares", arguments, location=self.square.steps[0][0].location))

    def write(self, write: OpWriter, sums: Sums) -> None:
        """Adds up what rows do."""
        total = write.put(rt.LoadOp(self._sums, write.whole(0)))
        add_scaled(self.square, total, self.copier, write, sums)

    def _shared(self, write: OpWriter) -> SSAValue:
        """The coefficients that are the same in all rows."""
        columns, places = self.square.columns, self.reduced.places
        found = write.put(rt.AllocOp(places.count, _REALS))
        self._put_leaves(columns.shared, found, write.whole(0), {}, write)
        for loops, leaves in columns.looped.items():
            env: Environment = {}
            inside = write
            for loop in loops:
                only_if = self.reduced.used if loop is loops[0] else None
                env, inside = self.copier.loop(loop, env, inside, only_if)
            first = places.of_loops(loops, len(leaves), self.copier, env, inside)
            self._put_leaves(leaves, found, first, env, inside)
        for n, key in enumerate(columns.chosen):
            low, span = places.ranges[n]
            none = write.whole(0)
            end = arith.SelectOp.create(operands=[self.reduced.used, span, none], result_types=[i64])
            j, inside = new_loop(write, none, write.put(end))
            number = inside.put(integer(arith.AddiOp, j, low))
            values = [places.coefficient(leaf, number, self.copier, inside) for leaf in key.leaves]
            put_values(values, found, places.of_key(n, j, len(values), inside), inside)
        return found

    def _of_groups(self, size: SSAValue, write: OpWriter) -> SSAValue:
        """Those of groups: one number of all groups behind the other."""
        columns, reduced = self.square.columns, self.reduced
        found = write.put(rt.AllocOp(size, _REALS, zero=bool(columns.own or columns.chosen)))
        self._put_groups(columns.own, reduced.groups, found, write)
        for key, is_of_groups in zip(columns.chosen, reduced.places.of_groups, strict=True):
            groups = arith.SelectOp.create(operands=[is_of_groups, reduced.groups, write.whole(0)], result_types=[i64])
            self._put_groups(key.leaves, write.put(groups), found, write)
        return found

    def _put_groups(self, leaves: Iterable[KeyedLeaf], groups: SSAValue, found: SSAValue, write: OpWriter) -> None:
        for n, leaf in enumerate(leaves):
            first = write.put(integer(arith.MuliOp, write.whole(n), self.reduced.room))
            j, inside = new_loop(write, write.whole(0), groups)
            key = inside.put(integer(arith.AddiOp, j, self.reduced.low))
            value = self.reduced.places.coefficient(leaf, key, self.copier, inside)
            put_values([value], found, inside.put(integer(arith.AddiOp, first, j)), inside)

    def _put_leaves(
        self, leaves: Iterable[Leaf], buffer: SSAValue, first: SSAValue, env: Environment, write: OpWriter
    ) -> None:
        put_values([leaf_value(leaf, self.copier, dict(env), write) for leaf in leaves], buffer, first, write)


def put_values(values: Sequence[SSAValue], buffer: SSAValue, first: SSAValue, write: OpWriter) -> None:
    """Stores values side by side."""
    for n, value in enumerate(values):
        index = write.put(integer(arith.AddiOp, first, write.whole(n))) if n else first
        write.before(rt.StoreOp(value, buffer, index, initial=True))
