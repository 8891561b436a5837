"""Which values of a nest of loops are linear in what depends on parameters, with coefficients that are data.

    for n: r = y[n] - (a + b * x[n] + u[g[n]] * z[n] + sum over k of X[n, k] * c[k])

The *rows* of the nest are its innermost iterations. A value of a row is a sum of terms, each a product of data of that
row and of a *leaf*, which is the same in all rows (`a`, `b`), in all rows with the same integer of the data, its *key*
(`u[g[n]]` by `g[n]`), or for each iteration of loops inside of the row (`c[k]`). A term without a leaf is data.
"""

from __future__ import annotations

from dataclasses import field, replace

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, is_same_integer, known_constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import ancestor_in, is_inside, terminator
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import BOUND, PURE, UNKNOWN, root, viewed, written_buffers, written_roots_within

MOST_TERMS = 200
"""Of one value: what is longer is left alone."""


@record(frozen=True)
class LinearTerm:
    """A product: a sign, data of the row, a leaf; for each iteration of `loops`, the outermost first."""

    negative: bool = False
    data: tuple[SSAValue, ...] = ()
    divisors: tuple[SSAValue, ...] = ()
    """What it is divided by: data, too."""
    leaf: tuple[SSAValue, ...] = ()
    key: SSAValue | None = None
    loops: tuple[scf.ForOp, ...] = ()
    moved: tuple[tuple[SSAValue, SSAValue], ...] = ()
    """Variables of loops that filled a buffer of an element per row, and those of the rows that they stand for."""

    def is_of_one_row(self, rows: tuple[SSAValue, ...]) -> bool:
        """Whether the leaf is another one in each row: whether the key is their variable, or stands for it."""
        key = self.key
        for variable, stands_for in self.moved if len(rows) == 1 else ():
            key = stands_for if key is variable else key
        return key is rows[-1]


Terms = list[LinearTerm]


@record(frozen=True)
class _Facts:
    """What a value is computed from: the variables of loops of the nest; whether parameters are among it, and keys."""

    variables: frozenset[SSAValue] = frozenset()
    varied: bool = False
    keys: frozenset[SSAValue] = frozenset()


@record
class Nest:
    """A nest of loops, whose `rows` are the variables of the loops around `inner`."""

    outer: scf.ForOp
    rows: tuple[SSAValue, ...]
    slices: DataSlices
    fills: dict[scf.ForOp, None] = field(default_factory=dict[scf.ForOp, None])
    """Loops ahead of the nest whose only purpose may be to fill buffers that it reads."""
    _facts: dict[SSAValue, _Facts | None] = field(default_factory=dict[SSAValue, "_Facts | None"])
    _written: set[object] | None = None

    # ------------------------------------------------------------ what values are

    def is_data(self, value: SSAValue) -> bool:
        """Whether a value depends on data alone."""
        found = self.facts(value)
        return found is not None and not found.varied

    def is_shared(self, value: SSAValue) -> bool:
        """Whether a value is the same in all rows."""
        found = self.facts(value)
        return found is not None and found.variables.isdisjoint(self.rows)

    def facts(self, value: SSAValue) -> _Facts | None:
        """What a value is computed from; None if that cannot be told, or cannot be computed somewhere else."""
        if value not in self._facts:
            self._facts[value] = None
            self._facts[value] = self._find(value)
        return self._facts[value]

    def _find(self, value: SSAValue) -> _Facts | None:
        if not is_inside(value, self.outer):
            return _Facts(varied=not self.slices.is_data(value))
        if isinstance(value, BlockArgument):
            loop = value.owner.parent_op()
            return _Facts(frozenset((value,))) if isinstance(loop, scf.ForOp) and value.index == 0 else None
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, rt.LoadOp):
            return self._find_load(op)
        if type(op) not in PURE:
            return None
        variables: frozenset[SSAValue] = frozenset()
        keys: frozenset[SSAValue] = frozenset()
        varied = False
        for operand in op.operands:
            if (found := self.facts(operand)) is None:
                return None
            variables, keys, varied = variables | found.variables, keys | found.keys, varied or found.varied
        return _Facts(variables, varied, keys)

    def _find_load(self, op: rt.LoadOp) -> _Facts | None:
        found = self.facts(op.index)
        if found is None or found.varied or not self._reads_what_stays(op.buffer):
            return None
        if self._is_bound(op.buffer):
            return found
        if found.variables.isdisjoint(self.rows):
            return _Facts(found.variables, True)
        key = self._key(op.index)
        return None if key is None else _Facts(found.variables, True, frozenset((key,)))

    def _is_bound(self, buffer: SSAValue) -> bool:
        return root(buffer) is BOUND or isinstance(viewed(buffer).owner, rt.ConstantsOp)

    def _reads_what_stays(self, buffer: SSAValue) -> bool:
        """Whether the nest does not write to a buffer, which is one of outside."""
        if self._written is None:
            self._written = set(written_roots_within(self.outer))
        source = root(buffer)
        while isinstance(owner := buffer.owner, rt.ViewOp):
            if is_inside(owner.res, self.outer):
                return False
            buffer = owner.buffer
        outside = not is_inside(viewed(buffer), self.outer)
        return outside and source is not UNKNOWN and source not in self._written and UNKNOWN not in self._written

    def _key(self, index: SSAValue) -> SSAValue | None:
        """The integer of the row that an index is computed from; None if there are several."""
        while True:
            op = index.owner
            if not isinstance(op, (arith.AddiOp, arith.SubiOp, arith.MuliOp)):
                return index if index.type == i64 else None
            others = [operand for operand in op.operands if not self.is_shared(operand)]
            if len(others) != 1:
                return None
            index = others[0]

    # ------------------------------------------------------------ linear forms

    def terms(self, value: SSAValue) -> Terms | None:
        """A real of a row as a sum of terms; None if it is not linear, or too long."""
        found = self._terms(value)
        return found if found is None or len(found) <= MOST_TERMS else None

    def _terms(self, value: SSAValue) -> Terms | None:
        facts = self.facts(value)
        if facts is not None:
            if not facts.varied:
                return [] if known_constant(value) == 0 else [LinearTerm(data=(value,))]
            if facts.variables.isdisjoint(self.rows) and not self._is_sum(value):
                return [LinearTerm(leaf=(value,))]
        op = value.owner
        if not isinstance(op, Operation):
            return None
        if isinstance(op, rt.MathOp) and op.function.data == "fma":
            return _sum(self._product(op.arguments[0], op.arguments[1]), self._terms(op.arguments[2]))
        if isinstance(op, arith.AddfOp):
            return _sum(self._terms(op.lhs), self._terms(op.rhs))
        if isinstance(op, arith.SubfOp):
            return _sum(self._terms(op.lhs), _negated(self._terms(op.rhs)))
        if isinstance(op, arith.NegfOp):
            return _negated(self._terms(op.operand))
        if isinstance(op, arith.MulfOp):
            return self._product(op.lhs, op.rhs)
        if isinstance(op, arith.DivfOp):
            return self._quotient(op.lhs, op.rhs)
        if isinstance(op, scf.ForOp):
            return self._loop_sum(op, value)
        if isinstance(op, rt.LoadOp):
            return self._loaded(op, facts)
        return None

    def _is_sum(self, value: SSAValue) -> bool:
        """Whether a value of inside is a sum: its terms may be those of other values, too."""
        return is_inside(value, self.outer) and isinstance(value.owner, (arith.AddfOp, arith.SubfOp))

    def _product(self, a: SSAValue, b: SSAValue) -> Terms | None:
        first, second = self._terms(a), self._terms(b)
        if first is None or second is None:
            return None
        if len(first) > 1:
            first, second = second, first
        if len(first) > 1:
            return None
        products = [_times(one, other) for one in first for other in second]
        return [found for found in products if found is not None] if None not in products else None

    def _quotient(self, a: SSAValue, b: SSAValue) -> Terms | None:
        if not self.is_data(b):
            return None
        found = self._terms(a)
        return None if found is None else [replace(term, divisors=(*term.divisors, b)) for term in found]

    def _loop_sum(self, loop: scf.ForOp, value: SSAValue) -> Terms | None:
        """A sum that a loop inside of a row carries."""
        if not is_inside(value, self.outer) or not self._has_fixed_bounds(loop):
            return None
        position = loop.results.index(value)
        body = loop.body.block
        steps = self._steps(terminator(body).operands[position], body.args[position + 1])
        start = self._terms(loop.iter_args[position])
        if steps is None or start is None:
            return None
        return start + [replace(term, loops=(loop, *term.loops)) for term in steps]

    def _steps(self, value: SSAValue, carried: SSAValue) -> Terms | None:
        """What is added to a carried value; None if something else is done to it."""
        if value is carried:
            return []
        op = value.owner
        if isinstance(op, arith.SubfOp):
            return _sum(self._steps(op.lhs, carried), _negated(self._terms(op.rhs)))
        if isinstance(op, rt.MathOp) and op.function.data == "fma":
            return _sum(self._product(op.arguments[0], op.arguments[1]), self._steps(op.arguments[2], carried))
        if not isinstance(op, arith.AddfOp):
            return None
        first = self._steps(op.lhs, carried)
        if first is not None:
            return _sum(first, self._terms(op.rhs))
        return _sum(self._terms(op.lhs), self._steps(op.rhs, carried))

    def _has_fixed_bounds(self, loop: scf.ForOp) -> bool:
        """Whether a loop inside of a row has the same iterations in all rows, as data say."""
        bounds = [self.facts(bound) for bound in (loop.lb, loop.ub)]
        return constant_integer(loop.step) == 1 and all(
            bound is not None and not bound.varied and not bound.variables for bound in bounds
        )

    def _loaded(self, op: rt.LoadOp, facts: _Facts | None) -> Terms | None:
        """An element of a vector of parameters that a key chooses, or of a buffer that the nest itself has filled."""
        if facts is not None:
            if (found := self._filled(op)) is not None:
                return found
            return [LinearTerm(leaf=(op.res,), key=next(iter(facts.keys)))] if len(facts.keys) == 1 else None
        return self._filled(op)

    def _filled(self, load: rt.LoadOp) -> Terms | None:
        """What loops before have added up, or stored, in the element that a row reads: one per row, by its variable."""
        alloc = load.buffer.owner
        if not isinstance(alloc, rt.AllocOp):
            return None
        ahead = not is_inside(alloc.res, self.outer)
        writers = [use.operation for use in alloc.res.uses if alloc.res in written_buffers(use.operation)]
        if ahead:  # what is read has been stored since
            writers = [op for op in writers if not isinstance(op, rt.FillOp)]
        if len(writers) != 1 or not _only_loaded_and_written(alloc):
            return None
        (writer,) = writers
        added = isinstance(writer, ad.AccumulateOp)
        if not (added and alloc.zero is not None) and not isinstance(writer, rt.StoreOp):
            return None
        around = _loops_around(writer, alloc.parent)
        reader = _loops_around(load, self.outer.parent if ahead else alloc.parent)
        if not around or not reader or (not added and len(around) != 1):
            return None
        filler, row = around[-1], reader[0]
        if ahead and (len(around) > 1 or row is not self.outer or not _fills_alone(filler, row)):
            return None
        if not ahead and not _is_behind(row, around[0]):
            return None
        index = writer.operands[1] if added else writer.operands[2]
        if not _covers(filler, row) or constant_integer(filler.step) != 1 or constant_integer(row.step) != 1:
            return None
        moved = (filler.body.block.args[0], row.body.block.args[0])
        if moved[1] not in self.rows or not _same_index(index, load.index, moved):
            return None
        if not all(self._has_fixed_bounds(loop) for loop in around[:-1]):
            return None
        value = writer.operands[2] if added else writer.operands[0]
        outer, rows = (filler, moved[:1]) if ahead else (self.outer, (*self.rows, moved[0]))
        inside = Nest(outer, rows, self.slices)
        terms = inside.terms(value)
        if terms is None or (around[:-1] and any(term.key is not None for term in terms)):
            return None
        if ahead:
            self.fills |= {**inside.fills, filler: None}
        for loop in reversed(around[:-1]):
            terms = [replace(term, loops=(loop, *term.loops)) for term in terms]
        return [replace(term, moved=(*term.moved, moved)) for term in terms]


def _loops_around(op: Operation, block: Block | None) -> list[scf.ForOp]:
    """The loops between an op and a block, the outermost first; none if there is something else."""
    found: list[scf.ForOp] = []
    current = op
    while current.parent is not block:
        parent = current.parent_op()
        if not isinstance(parent, scf.ForOp):
            return []
        found.append(parent)
        current = parent
    return found[::-1]


def _covers(filler: scf.ForOp, row: scf.ForOp) -> bool:
    """Whether one loop runs for all that another one does."""
    first, second = constant_integer(filler.lb), constant_integer(row.lb)
    begins = is_same_integer(filler.lb, row.lb) or (first is not None and second is not None and first <= second)
    return begins and is_same_integer(filler.ub, row.ub)


def _fills_alone(filler: scf.ForOp, reader: scf.ForOp) -> bool:
    """Whether all that a loop does is to store in memory that only another one reads, behind it, in its block or in a
    branch there; and nothing between them writes to what it reads.
    """
    ancestor = None if filler.parent is None else ancestor_in(reader, filler.parent)
    if filler.results or ancestor is None or not _is_behind(ancestor, filler):
        return False
    read: set[object] = set()
    for op in ops_within(filler):
        if isinstance(op, rt.LoadOp):
            read.add(root(op.buffer))
        elif isinstance(op, rt.StoreOp):
            alloc = op.buffer.owner
            users = [use.operation for use in op.buffer.uses if use.operation is not op]
            if not isinstance(alloc, rt.AllocOp) or alloc.parent is not filler.parent:
                return False
            loads = [user for user in users if not (isinstance(user, rt.FillOp) and _is_behind(filler, user))]
            if not all(isinstance(user, rt.LoadOp) and reader.is_ancestor(user) for user in loads):
                return False
        elif type(op) not in PURE and not isinstance(op, (scf.ForOp, scf.YieldOp)):
            return False
    between = filler.next_op
    while between is not None and between is not ancestor:
        written = written_roots_within(between)
        if UNKNOWN in written or UNKNOWN in read or not written.isdisjoint(read):
            return False
        between = between.next_op
    return True


def _is_behind(op: Operation, other: Operation) -> bool:
    """Whether an op of a block follows another one of it."""
    following = other.next_op
    while following is not None and following is not op:
        following = following.next_op
    return following is op


def _only_loaded_and_written(alloc: rt.AllocOp) -> bool:
    return all(isinstance(use.operation, (rt.LoadOp, rt.StoreOp, rt.FillOp, ad.AccumulateOp)) for use in alloc.res.uses)


def _same_index(one: SSAValue, other: SSAValue, moved: tuple[SSAValue, SSAValue]) -> bool:
    """Whether two indices are the same function of two variables."""
    if one is moved[0] or other is moved[1]:
        return one is moved[0] and other is moved[1]
    if one is other or is_same_integer(one, other):
        return True
    first, second = one.owner, other.owner
    if isinstance(first, Block) or isinstance(second, Block) or type(first) is not type(second):
        return False
    if not isinstance(first, (arith.AddiOp, arith.SubiOp)):
        return False
    return all(_same_index(a, b, moved) for a, b in zip(first.operands, second.operands, strict=True))


def _times(one: LinearTerm, other: LinearTerm) -> LinearTerm | None:
    if one.key is not None and other.key is not None and one.key is not other.key:
        return None
    if (one.loops and other.loops) or (one.moved and other.moved and one.moved != other.moved):
        return None
    return LinearTerm(
        one.negative != other.negative,
        (*one.data, *other.data),
        (*one.divisors, *other.divisors),
        (*one.leaf, *other.leaf),
        one.key if one.key is not None else other.key,
        one.loops or other.loops,
        one.moved or other.moved,
    )


def _negated(terms: Terms | None) -> Terms | None:
    return None if terms is None else [replace(term, negative=not term.negative) for term in terms]


def _sum(first: Terms | None, second: Terms | None) -> Terms | None:
    return None if first is None or second is None else first + second


def target_additions(loop: scf.ForOp) -> list[ad.TargetAddOp]:
    """All additions to the target within a loop."""
    return [op for op in ops_within(loop) if isinstance(op, ad.TargetAddOp)]
