"""Which values of a nest of loops are linear in what depends on parameters, with coefficients that are data.

    for n: r = y[n] - (a + b * x[n] + u[g[n]] * z[n] + sum over k of X[n, k] * c[k])

The *rows* of the nest are its innermost iterations. A value of a row is a sum of terms, each a product of data of that
row and of a *leaf*, which is the same in all rows (`a`, `b`), in all rows with the same integer of the data, its *key*
(`u[g[n]]` by `g[n]`), or for each iteration of loops inside of the row (`c[k]`). A term without a leaf is data. Where a
branch of data gives a value, its terms are those of both arms, with data that are 0 where an arm is not taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, is_same_integer, known_constant, not_clamped
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import block_of, is_inside, terminator
from ulam.passes.loops.coalesced_rows import is_of_layouts
from ulam.passes.loops.data_choices import DataChoices
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import BOUND, PURE, UNKNOWN, root, viewed, written_roots_within
from ulam.passes.loops.filled_buffers import (
    MemoryChanges,
    are_elements,
    covers,
    fills_alone,
    fills_before,
    fills_memory_of,
    is_behind,
    loops_around,
    same_index,
)
from ulam.passes.loops.linear_terms import LinearTerm, Terms, negated, plus, times

MOST_TERMS = 200
"""Of one value: what is longer is left alone."""
MOST_FILLS = 16
"""Nests that fill what rows read, and what these read: each layout has a copy of them where it may not be used."""


Arm = tuple[scf.IfOp | arith.SelectOp, int]
"""A choice by data, and which arm of it is taken."""
Arms = tuple[Arm, ...]
"""Of branches in arms of others, the innermost first: all of them are taken."""
_IN_CHOICES = frozenset((*PURE, rt.LoadOp, scf.IfOp, scf.YieldOp))
"""What branches that give values may do."""


@record(frozen=True)
class _Facts:
    """What a value is computed from: the variables of loops of the nest; whether parameters are among it, and keys."""

    variables: frozenset[SSAValue] = frozenset()
    varied: bool = False
    keys: frozenset[SSAValue] = frozenset()
    direct: frozenset[SSAValue] = frozenset()
    """Variables that it depends on otherwise than by keys."""

    def with_operand(self, other: _Facts) -> _Facts:
        """Of what is computed from something else, too."""
        return _Facts(
            self.variables | other.variables,
            self.varied or other.varied,
            self.keys | other.keys,
            self.direct | other.direct,
        )


@record
class Nest:
    """A nest of loops, whose `rows` are the variables of the loops around `inner`."""

    outer: scf.ForOp
    rows: tuple[SSAValue, ...]
    slices: DataSlices
    choices: DataChoices | None = None
    """What writes data of branches; None: rows with branches have no terms."""
    fills: dict[scf.ForOp, MeansAhead] = field(default_factory=dict[scf.ForOp, "MeansAhead"])
    """Nests ahead of this one that do nothing but to fill buffers that it reads."""
    stays: bool = False
    """Whether these nests stay where they are: others may read what they fill, too."""
    changes: MemoryChanges = field(default_factory=MemoryChanges)
    """Of the function: the same for all nests that a pass looks at."""
    may_vary: bool = False
    """Whether loops inside of rows may have other bounds in each, as those over the entries of sparse rows."""
    _facts: dict[SSAValue, _Facts | None] = field(default_factory=dict[SSAValue, "_Facts | None"])
    _terms: dict[SSAValue, Terms | None] = field(default_factory=dict[SSAValue, "Terms | None"])
    _fillers: dict[tuple[SSAValue, ...], Nest] = field(default_factory=dict[tuple[SSAValue, ...], "Nest"])
    """Nests that fill buffers, by their rows: what is read from one of them several times is looked at once."""
    _places: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Variables of their rows, and which of these each row reads."""
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

    def is_common(self, value: SSAValue) -> bool:
        """Whether a value is the same in all rows that have the same keys; of a single loop each row has its number."""
        found = self.facts(value)
        if found is None or (len(self.rows) == 1 and self.rows[0] in found.keys):
            return False
        return found.direct.difference(found.keys).isdisjoint(self.rows)

    def is_of_keys(self, value: SSAValue) -> bool:
        """Whether a value is such a one, and not the same in all rows."""
        return self.is_common(value) and not self.is_shared(value)

    def keys_of(self, value: SSAValue) -> frozenset[SSAValue]:
        """The keys that a value depends on."""
        found = self.facts(value)
        return frozenset() if found is None else found.keys

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
            return self._find_variable(loop) if isinstance(loop, scf.ForOp) and value.index == 0 else None
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, rt.LoadOp):
            return self._find_load(op)
        if isinstance(op, scf.IfOp):
            return self._find_choice(op)
        if isinstance(op, arith.SelectOp) and self.is_data(op.cond):
            return self._chosen_by(op.cond, op.operands[1:])
        if type(op) not in PURE:
            return None
        facts = _Facts()
        for operand in op.operands:
            if (found := self.facts(operand)) is None:
                return None
            facts = facts.with_operand(found)
        return facts

    def _find_variable(self, loop: scf.ForOp) -> _Facts | None:
        """Of the number of an iteration: inside of a row, with what bounds are computed from that are the row's own."""
        variables: frozenset[SSAValue] = frozenset((loop.body.block.args[0],))
        for bound in (loop.lb, loop.ub) if variables.isdisjoint(self.rows) else ():
            found = self.facts(bound)
            if found is None or found.varied:
                return None
            variables |= found.variables
        return _Facts(variables, direct=variables)

    def _find_load(self, op: rt.LoadOp) -> _Facts | None:
        found = self.facts(op.index)
        if found is None or found.varied or not self._reads_what_stays(op.buffer):
            return None
        if self._is_bound(op.buffer):
            return self._with_offsets(found, op.buffer)
        found = self._with_offsets(found, op.buffer)
        if found is None or found.variables.isdisjoint(self.rows):
            return None if found is None else _Facts(found.variables, True, direct=found.variables)
        places = [place for place in (op.index, *self._offsets(op.buffer)) if not self.is_shared(place)]
        key = self._key(places[0]) if len(places) == 1 else None
        direct = found.variables.difference(self.rows)
        return None if key is None else _Facts(found.variables, True, frozenset((key,)), direct)

    def _find_choice(self, op: scf.IfOp) -> _Facts | None:
        """Of what a branch of data gives."""
        if self.choices is None or not all(type(inner) in _IN_CHOICES for inner in ops_within(op)):
            return None
        if not self.is_data(op.cond):
            return None
        facts = self._chosen_by(op.cond, [end for region in op.regions for end in terminator(region.block).operands])
        return None if facts is None or any(is_inside(key, op) for key in facts.keys) else facts

    def _chosen_by(self, condition: SSAValue, values: Sequence[SSAValue]) -> _Facts | None:
        """Of what data choose of values: the condition is a key of what parameters give."""
        facts = _Facts()
        for value in values:
            if (found := self.facts(value)) is None:
                return None
            facts = facts.with_operand(found)
        found = self.facts(condition)
        if found is None or not facts.varied or self.is_shared(condition):
            return None if found is None else facts.with_operand(found)
        return _Facts(facts.variables | found.variables, True, facts.keys | {condition}, facts.direct)

    def _with_offsets(self, facts: _Facts, buffer: SSAValue) -> _Facts | None:
        """With what the offsets of views in the nest are computed from, as of a segment of data that each row has."""
        for place in self._offsets(buffer):
            offset = self.facts(place)
            if offset is None or offset.varied:
                return None
            facts = facts.with_operand(offset)
        return facts

    def _offsets(self, buffer: SSAValue) -> list[SSAValue]:
        """The offsets of views in the nest."""
        found: list[SSAValue] = []
        while isinstance(owner := buffer.owner, rt.ViewOp) and is_inside(buffer, self.outer):
            found.append(owner.offset)
            buffer = owner.buffer
        return found

    def _is_bound(self, buffer: SSAValue) -> bool:
        return root(buffer) is BOUND or isinstance(viewed(buffer).owner, rt.ConstantsOp)

    def _reads_what_stays(self, buffer: SSAValue) -> bool:
        """Whether the nest does not write to a buffer, which is one of outside."""
        if self._written is None:
            self._written = set(written_roots_within(self.outer))
        source = root(buffer)
        outside = not is_inside(viewed(buffer), self.outer)
        return outside and source is not UNKNOWN and source not in self._written and UNKNOWN not in self._written

    def _key(self, index: SSAValue) -> SSAValue | None:
        """The integer of the row that an index is computed from: itself, if it is computed of several ones that rows
        share with others; None if it is another one in each row.
        """
        whole, work, parts = index, [index], dict[SSAValue, None]()
        while work:
            op = work[-1].owner
            value = work.pop()
            if isinstance(op, (arith.AddiOp, arith.SubiOp, arith.MuliOp)):
                work += [operand for operand in op.operands if not self.is_shared(operand)]
            elif value.type == i64:
                parts[value] = None
            else:
                return None
        if len(parts) == 1:
            return next(iter(parts))
        return None if self.rows[-1] in parts else whole

    # ------------------------------------------------------------ linear forms

    def leave_out(self, values: Iterable[SSAValue]) -> None:
        """Takes values for 0."""
        self._terms.update((value, []) for value in values)

    def terms(self, value: SSAValue) -> Terms | None:
        """A real of a row as a sum of terms; None if it is not linear, or too long."""
        if value not in self._terms:
            found = self._terms_of(value)
            self._terms[value] = found if found is None or len(found) <= MOST_TERMS else None
        return self._terms[value]

    def _terms_of(self, value: SSAValue) -> Terms | None:
        facts = self.facts(value)
        if facts is not None:
            if not facts.varied:
                return [] if known_constant(value) == 0 else [LinearTerm(data=(value,))]
            is_whole = not self._is_sum(value) and not isinstance(value.owner, scf.IfOp)
            if facts.variables.isdisjoint(self.rows) and is_whole:
                return [LinearTerm(leaf=(value,))]
        op = value.owner
        if not isinstance(op, Operation):
            return None
        if isinstance(op, rt.MathOp) and op.function.data == "fma":
            return plus(self._product(op.arguments[0], op.arguments[1]), self.terms(op.arguments[2]))
        if isinstance(op, arith.AddfOp):
            return plus(self.terms(op.lhs), self.terms(op.rhs))
        if isinstance(op, arith.SubfOp):
            return plus(self.terms(op.lhs), negated(self.terms(op.rhs)))
        if isinstance(op, arith.NegfOp):
            return negated(self.terms(op.operand))
        if isinstance(op, arith.MulfOp):
            return self._product(op.lhs, op.rhs)
        if isinstance(op, arith.DivfOp):
            return self._quotient(op.lhs, op.rhs)
        if isinstance(op, scf.ForOp):
            return self._loop_sum(op, value)
        if isinstance(op, rt.LoadOp):
            return self._loaded(op, facts)
        if isinstance(op, scf.IfOp):
            position = op.results.index(value)
            return self._chosen(op, tuple(terminator(region.block).operands[position] for region in op.regions))
        if isinstance(op, arith.SelectOp):
            return self._chosen(op, (op.lhs, op.rhs))
        return None

    def _chosen(self, op: scf.IfOp | arith.SelectOp, values: tuple[SSAValue, ...]) -> Terms | None:
        """What data choose of two values: the terms of each where it is taken, and those of both in any case."""
        if self.choices is None or is_of_layouts(op.cond) or not self.is_data(op.cond):
            return None
        if not all(type(inner) in _IN_CHOICES for inner in ops_within(op)):
            return None
        arms = [self.terms(value) for value in values]
        if any(terms is None for terms in arms):
            return None
        first, second = (terms or [] for terms in arms)
        found: Terms = []
        alone: Terms = []
        rest = list(second)  # a term may be there twice, in the other arm once
        for term in first:
            if term in rest:
                rest.remove(term)
                found.append(term)
            else:
                alone.append(term)
        for arm, terms in enumerate((alone, rest)):
            for term in terms:
                chosen = self.only_in(((op, arm),), term)
                if chosen is None:
                    return None
                found.append(chosen)
        return found

    def terms_in(self, arms: Arms, value: SSAValue) -> Terms | None:
        """A real of a row where arms of branches of data are taken, and 0 elsewhere; without any, of all rows."""
        terms = self.terms(value)
        if not arms or terms is None:
            return terms
        found = [self.only_in(arms, term) for term in terms]
        return [term for term in found if term is not None] if None not in found else None

    def arms_of(self, block: Block | None) -> Arms | None:
        """The arms of branches of data, of which the outermost stands in a row itself, that a block is in; None if
        something else is around.
        """
        found: list[Arm] = []
        while block is not None and isinstance(branch := block.parent_op(), scf.IfOp):
            if self.choices is None or not self._may_choose(branch.cond):
                return None
            found.append((branch, [region.block for region in branch.regions].index(block)))
            block = branch.parent
        return tuple(found) if block is not None and isinstance(block.parent_op(), scf.ForOp) else None

    def _may_choose(self, condition: SSAValue) -> bool:
        return not is_of_layouts(condition) and is_inside(condition, self.outer) and self.is_data(condition)

    def put_in(
        self, arms: Arms, data: tuple[SSAValue, ...] = (), divisors: tuple[SSAValue, ...] = (), otherwise: float = 0.0
    ) -> SSAValue:
        """A quotient of products of data where arms are taken, and a number elsewhere; known ahead of them."""
        assert self.choices is not None
        value = self.choices.put(*arms[0], data, divisors, otherwise)
        for arm in arms[1:]:
            value = self.choices.put(*arm, (value,), otherwise=otherwise)
        return value

    def put_key_in(self, arms: Arms, key: SSAValue) -> SSAValue:
        """A key where arms are taken, and NO_KEY elsewhere; known ahead of them."""
        for branch, arm in arms:
            assert self.choices is not None and isinstance(branch, scf.IfOp)
            key = self.choices.put_key(branch, arm, key)
        return key

    def only_in(self, taken: Arms, term: LinearTerm) -> LinearTerm | None:
        """A term where arms are taken; elsewhere its data are 0, and what it reads in the arms is not read."""
        outermost, _ = taken[-1]
        assert self.choices is not None
        if term.loops or term.moved:
            # its data are found by variables of other loops
            if any(is_inside(value, outermost) for value in (*term.data, *term.divisors, *term.leaf)):
                return None
            return replace(term, data=(*term.data, self.put_in(taken)))
        where = term.where
        if isinstance(outermost, scf.IfOp) and any(is_inside(value, outermost) for value in term.leaf):
            if term.key is None:
                return None
            where = self.put_key_in(taken, term.key if where is None else where)
        data = self.put_in(taken, term.data, term.divisors)
        return replace(term, data=(data,), divisors=(), where=where)

    def _is_sum(self, value: SSAValue) -> bool:
        """Whether a value of inside is a sum: its terms may be those of other values, too."""
        return is_inside(value, self.outer) and isinstance(value.owner, (arith.AddfOp, arith.SubfOp))

    def _product(self, a: SSAValue, b: SSAValue) -> Terms | None:
        first, second = self.terms(a), self.terms(b)
        if first is None or second is None:
            return None
        if len(first) > 1:
            first, second = second, first
        if len(first) > 1:
            return None
        products = [times(one, other) for one in first for other in second]
        return [found for found in products if found is not None] if None not in products else None

    def _quotient(self, a: SSAValue, b: SSAValue) -> Terms | None:
        if not self.is_data(b):
            return None
        found = self.terms(a)
        return None if found is None else [replace(term, divisors=(*term.divisors, b)) for term in found]

    def _loop_sum(self, loop: scf.ForOp, value: SSAValue) -> Terms | None:
        """A sum that a loop inside of a row carries."""
        if not is_inside(value, self.outer) or not (self.may_vary or self.has_fixed_bounds(loop)):
            return None
        position = loop.results.index(value)
        body = loop.body.block
        steps = self._steps(terminator(body).operands[position], body.args[position + 1])
        start = self.terms(loop.iter_args[position])
        if steps is None or start is None:
            return None
        if not self.has_fixed_bounds(loop) and not self._may_vary(loop, steps):
            return None
        return start + [replace(term, loops=(loop, *term.loops)) for term in steps]

    def _steps(self, value: SSAValue, carried: SSAValue) -> Terms | None:
        """What is added to a carried value; None if something else is done to it."""
        if value is carried:
            return []
        op = value.owner
        if isinstance(op, arith.SubfOp):
            return plus(self._steps(op.lhs, carried), negated(self.terms(op.rhs)))
        if isinstance(op, rt.MathOp) and op.function.data == "fma":
            return plus(self._product(op.arguments[0], op.arguments[1]), self._steps(op.arguments[2], carried))
        if not isinstance(op, arith.AddfOp):
            return None
        first = self._steps(op.lhs, carried)
        if first is not None:
            return plus(first, self.terms(op.rhs))
        return plus(self.terms(op.lhs), self._steps(op.rhs, carried))

    def _may_vary(self, loop: scf.ForOp, steps: Terms) -> bool:
        """Whether rows may have so many iterations each, as data say: an integer of the data tells each coefficient."""
        bounds = [self.facts(bound) for bound in (loop.lb, loop.ub)]
        are_data = all(bound is not None and not bound.varied for bound in bounds)
        return are_data and constant_integer(loop.step) == 1 and all(term.key or not term.leaf for term in steps)

    def has_fixed_bounds(self, loop: scf.ForOp) -> bool:
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
        alloc = viewed(load.buffer).owner
        if not isinstance(alloc, rt.AllocOp) or not are_elements(writers := self.changes.writers(alloc)):
            return None
        ahead = not is_inside(alloc.res, self.outer)
        if ahead and not any(isinstance(op, ad.AccumulateOp) for op in writers):
            # what is read has been stored since, which `fills_alone` makes sure of
            writers = [op for op in writers if op.parent is not alloc.parent]
        if len(writers) != 1:
            return None
        (writer,) = writers
        added = isinstance(writer, ad.AccumulateOp)
        if not (added and alloc.zero is not None) and not isinstance(writer, rt.StoreOp):
            return None
        if load.buffer is not (writer.operands[0] if added else writer.operands[1]):
            return None  # not the same part of the memory
        around = loops_around(writer, alloc.parent)
        reader = loops_around(row_op(load), self.outer.parent if ahead else alloc.parent)
        if not around or not reader or (not added and len(around) != 1):
            return None
        if ahead and (reader[0] is not self.outer or not self._is_filled(around[0])):
            return None
        if not ahead and not is_behind(reader[0], around[0]):
            return None
        filler = around[-1]
        variable, index = filler.body.block.args[0], writer.operands[1] if added else writer.operands[2]
        moves = ((variable, loop.body.block.args[0]) for loop in reader if covers(filler, loop))
        moved = next((pair for pair in moves if pair[1] in self.rows and same_index(index, load.index, pair)), None)
        if moved is None and ahead and index is variable and self._is_listed(load, alloc, filler):
            moved = variable, load.index
        if moved is None or self._places.setdefault(*moved) is not moved[1]:
            return None  # rows read several elements
        value = writer.operands[2] if added else writer.operands[0]
        outer, rows = (around[0], moved[:1]) if ahead else (self.outer, (*self.rows, variable))
        inside = self._filler(outer, rows)
        if inside is None or not all(inside.has_fixed_bounds(loop) for loop in around[:-1]):
            return None
        terms = inside.terms(value)
        is_of_row = moved[1] in self.rows
        if terms is None or ((around[:-1] or not is_of_row) and any(term.key is not None for term in terms)):
            return None  # elements of groups are coefficients of these
        if ahead:
            self._add_fill(around[0], reader[0], inside, moved)
        for loop in reversed(around[:-1]):
            terms = [replace(term, loops=(loop, *term.loops)) for term in terms]
        return [replace(term, moved=(*term.moved, moved)) for term in terms]

    def _is_listed(self, load: rt.LoadOp, alloc: rt.AllocOp, filler: scf.ForOp) -> bool:
        """Whether data of each row say which element it reads, of memory that a nest fills as a whole."""
        facts, block = self.facts(load.index), block_of(load.index)
        if facts is None or facts.varied or block is None or not isinstance(block.parent_op(), scf.ForOp):
            return False
        is_whole = constant_integer(filler.lb) == 0 and constant_integer(filler.step) == 1
        is_whole = is_whole and is_same_integer(not_clamped(filler.ub), not_clamped(alloc.count))
        return is_whole and load.buffer is alloc.res and not self.is_shared(load.index)

    def _is_filled(self, filler: scf.ForOp) -> bool:
        """Whether what a nest ahead stores would be the same where this one is."""
        if self.stays:
            return fills_before(filler, self.outer, self.changes)
        return fills_memory_of(filler, self.outer, self.changes)

    def _filler(self, outer: scf.ForOp, rows: tuple[SSAValue, ...]) -> Nest | None:
        """A nest that fills a buffer; None if there are too many."""
        if rows not in self._fillers:
            if len(self._fillers) == MOST_FILLS:
                return None
            self._fillers[rows] = Nest(
                outer,
                rows,
                self.slices,
                stays=self.stays,
                changes=self.changes,
                may_vary=self.may_vary,
                _fillers=self._fillers,
                _places=self._places,
            )
        return self._fillers[rows]

    def _add_fill(self, filler: scf.ForOp, reader: scf.ForOp, inside: Nest, moved: tuple[SSAValue, SSAValue]) -> None:
        """Notes a nest ahead whose memory rows read, and those that fill what it reads itself."""
        stays = not fills_alone(filler, reader, self.changes)
        self.fills |= {
            loop: replace(fill, moved=(*fill.moved, moved), stays=stays or fill.stays)
            for loop, fill in {**inside.fills, filler: MeansAhead(inside)}.items()
        }


@record(frozen=True)
class MeansAhead:
    """A nest that fills a buffer. `moved`: its row's variable and that of the rows that read it, as those of terms."""

    nest: Nest
    moved: tuple[tuple[SSAValue, SSAValue], ...] = ()
    stays: bool = False
    """Whether something else reads the buffer, too."""


def row_op(op: Operation) -> Operation:
    """The op of a row that another one is: itself, or the outermost of the branches of its loop that it stands in."""
    while isinstance(parent := op.parent_op(), scf.IfOp) and isinstance(parent.parent_op(), scf.ForOp | scf.IfOp):
        op = parent
    return op


def target_additions(loop: scf.ForOp) -> list[ad.TargetAddOp]:
    """All additions to the target within a loop."""
    return [op for op in ops_within(loop) if isinstance(op, ad.TargetAddOp)]
