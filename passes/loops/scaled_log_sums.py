"""Elements that `log_sum_exp` makes of each other are kept as numbers with an exponent of their own.

    for t: for k:                                         for t: for k:
      for j: acc[j] = g[t-1, j] + w[j, k] + e        →      m = max over j of x[t-1, j] + xw[j, k]
      g[t, k] = log_sum_exp(acc)                            s = sum over j of n[t-1, j] nw[j, k] 2^(256 (x + xw - m))
                                                            n[t, k], x[t, k] = s * exp(e), m, in range again

Memory takes part if its elements come to depend on themselves through a log_sum_exp, as the forward algorithm of a
hidden Markov model has it, in whichever loops, orders and memory in between: it has two twins, such that what it would
hold is log(n) + 256 log(2) x, with n from 2^-128 to 2^128 and x a whole number. Sums of logarithms are products, and
what is added to all terms of a sum is a factor of the sum. The recursion has neither exponentials nor logarithms then;
those of what it does not depend on are in front of it (`scaled_tables`). Nothing over- or underflows, whatever is
multiplied.

0 has an x below all, infinity one above all; NaN is NaN. x depends on no parameter by a derivative: where it steps, n
steps with it. Who reads such memory otherwise has the logarithm back. The slope of log_sum_exp where all terms are
minus infinity is 0 / 0, that of a sum of products a number: what only such an element made NaN is its limit.

For what is no row that a kernel makes of all of the one before (`log_recursions`). Rows that loops hand on, as vectors
that are assigned whole are, have memory by then (`carried_rows`). Not where other ops than loads, stores and copies
touch it.

The exponents are those of extended-range arithmetic (Smith, Olver and Lozier, Extended-Range Arithmetic and Normalized
Legendre Polynomials, ACM TOMS 7, 1981); the recursion in the linear domain is Rabiner's (Proc. IEEE 77, 1989).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeGuard

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import known_constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import ancestor_in, is_inside, terminator
from ulam.passes.loops.effects import (
    UNKNOWN,
    Effect,
    Root,
    effect_within,
    root,
    viewed,
    written_roots_within,
)
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.loops.log_sums import LogSum, log_sum
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.scaled_numbers import PRODUCT_BITS, Scaled, ScaledWriter
from ulam.passes.loops.scaled_tables import tabulated
from ulam.passes.remarks import remark
from ulam.passes.rewriting import copies, discard, replace_uses


@record(frozen=True)
class ScaledLogSums(FunctionPass):
    """Keeps what log_sum_exp makes of itself as numbers with exponents, of all functions or the one that is named."""

    name = "scaled-log-sums"

    def changes_function(self, function: func.FuncOp) -> bool:
        changed = False
        sums = _sums_of(function)
        if sums:
            memory = _Memory(function, sums)
            if memory.members:
                _Rewriting(function, memory).run()
                changed = True
            for found in sums.values():
                if memory.handed_on(found):
                    message = "elements are in memory that a loop hands on, or that more than loads and stores touch"
                    remark(ScaledLogSums.name, found.op.location, "log_sum_exp", message, done=False)
        return changed


def handed_on_loads(function: func.FuncOp) -> list[rt.LoadOp]:
    """What log_sum_exp in loops of a function read of memory of which nothing is known."""
    sums = _sums_of(function)
    memory = _Memory(function, sums) if sums else None
    return [load for found in sums.values() for load in memory.handed_on(found)] if memory is not None else []


def _sums_of(function: func.FuncOp) -> dict[Operation, LogSum]:
    return {found.op: found for inner in ops_within(function) if (found := _sum_at(inner)) is not None}


def _sum_at(op: Operation) -> LogSum | None:
    """A log_sum_exp without weights, whose loop, if it has one, only adds up and reads."""
    found = log_sum(op)
    if found is None or found.weights is not None:
        return None
    return None if found.loop is not None and effect_within(found.loop) & ~Effect.READ else found


# ---------------------------------------------------------------- what depends on what


class _Memory:
    """The memory of a function whose elements may be logarithms, and who writes it.

    `members`: what comes to depend on itself through a log_sum_exp.
    """

    def __init__(self, function: func.FuncOp, sums: dict[Operation, LogSum]) -> None:
        self.sums = sums
        self.writers: dict[SSAValue, list[Operation]] = {}
        self._known: set[SSAValue] = set()
        self._find_writers(function)
        self.members: set[SSAValue] = set()
        edges = {source: set(self._sources_of(source)) for source in self._known}
        for source in self._known:
            if (source, True) in _reached(source, edges):
                self.members.add(source)

    def is_known(self, source: object) -> bool:
        """Whether all that touches an allocation is known, and can be done for its twins."""
        return source in self._known

    def _find_writers(self, function: func.FuncOp) -> None:
        strange: set[object] = set()
        for op in ops_within(function):
            if isinstance(op, rt.AllocOp):
                if op.res.type == rt.BufferType(f64):
                    self._known.add(op.res)
            elif isinstance(op, rt.StoreOp | rt.FillOp | rt.CopyOp):
                buffer = op.buffer if isinstance(op, rt.StoreOp) else op.destination
                source = root(buffer)
                if isinstance(source, SSAValue):
                    self.writers.setdefault(source, []).append(op)
                if isinstance(op, rt.CopyOp) and not isinstance(root(op.source), SSAValue):
                    strange.add(source)
                if isinstance(op, rt.FillOp) and known_constant(op.value) is None:
                    strange.add(source)
            elif not isinstance(op, rt.LoadOp | rt.ViewOp):
                strange |= {root(operand) for operand in op.operands if isinstance(operand.type, rt.BufferType)}
        if UNKNOWN in strange:
            self._known.clear()
        self._known = {source for source in self._known if source not in strange and self.writers.get(source)}
        self._close_under_copies()

    def _close_under_copies(self) -> None:
        """What is copied from or to memory that is not known is not known either."""
        while True:
            lost = {
                pair[1 - side]
                for source in self.writers
                for op in self.writers[source]
                if isinstance(op, rt.CopyOp)
                for pair in [(source, root(op.source))]
                for side in (0, 1)
                if pair[side] not in self._known and pair[1 - side] in self._known
            }
            if not lost:
                return
            self._known -= lost

    def _sources_of(self, source: SSAValue) -> Iterator[tuple[SSAValue, bool]]:
        """The memory that elements are made of, each with whether it is by a log_sum_exp."""
        for op in self.writers[source]:
            if isinstance(op, rt.StoreOp):
                yield from self._read(op.value, False)
            elif isinstance(op, rt.CopyOp):
                found = root(op.source)
                assert isinstance(found, SSAValue)
                yield found, False

    def _read(self, value: SSAValue, summed: bool) -> Iterator[tuple[SSAValue, bool]]:
        op = value.owner
        if isinstance(op, rt.LoadOp):
            source = root(op.buffer)
            if isinstance(source, SSAValue) and source in self._known:
                yield source, summed
        elif isinstance(op, Operation) and op in self.sums:
            for term in self.sums[op].terms:
                yield from self._read(term, True)
        elif isinstance(op, arith.AddfOp):
            for operand in op.operands:
                yield from self._read(operand, summed)
        elif is_fma(op):
            yield from self._read(op.operands[2], summed)

    def divide_sums(self, function: func.FuncOp) -> None:
        """Makes two operations of each that multiplies and adds to what is known as a number with an exponent."""
        for op in list(ops_within(function)):
            if is_fma(op) and not self.is_plain(op.operands[2]):
                write = OpWriter(op)
                product = write.real(arith.MulfOp, op.operands[0], op.operands[1])
                replace_uses(op.results[0], write.real(arith.AddfOp, product, op.operands[2]))
                discard(op)

    def is_plain(self, value: SSAValue, *, in_sum: bool = False) -> bool:
        """Whether no summand of a value is known as a number with an exponent: elements of members, and, where a sum
        reads them over and over, of other memory with twins.
        """
        op = value.owner
        if isinstance(op, rt.LoadOp):
            source = root(op.buffer)
            return source not in self.members and not (in_sum and self.is_known(source))
        if isinstance(op, Operation) and op in self.sums:
            return False
        if is_fma(op):
            return self.is_plain(op.operands[2], in_sum=in_sum)
        return not isinstance(op, arith.AddfOp) or all(self.is_plain(one, in_sum=in_sum) for one in op.operands)

    def handed_on(self, found: LogSum) -> list[rt.LoadOp]:
        """What a sum in a loop reads of memory of which nothing is known."""
        if not isinstance(found.op.parent_op(), scf.ForOp):
            return []
        loads: list[rt.LoadOp] = []
        pending, seen = list(found.terms), set[SSAValue]()
        while pending:
            op = pending.pop().owner
            if isinstance(op, arith.AddfOp) or is_fma(op):
                pending += op.operands
            elif isinstance(op, rt.LoadOp):
                source = root(op.buffer)
                if source is UNKNOWN:
                    loads.append(op)
                if isinstance(source, SSAValue) and source not in seen:
                    seen.add(source)
                    pending += [op.value for op in self.writers.get(source, ()) if isinstance(op, rt.StoreOp)]
        return loads

    def reads_members(self, found: LogSum) -> bool:
        """Whether a sum is one of elements of members, in memory in between too."""
        pending = [source for term in found.terms for source, _ in self._read(term, False)]
        seen: set[SSAValue] = set()
        while pending:
            source = pending.pop()
            if source in self.members:
                return True
            if source not in seen:
                seen.add(source)
                pending += [other for other, summed in self._sources_of(source) if not summed]
        return False


def is_fma(op: Operation | Block) -> TypeGuard[rt.MathOp]:
    """Whether an op multiplies and adds."""
    return isinstance(op, rt.MathOp) and op.function.data == "fma"


_Edges = dict[SSAValue, set[tuple[SSAValue, bool]]]


def _reached(start: SSAValue, edges: _Edges) -> set[tuple[SSAValue, bool]]:
    found: set[tuple[SSAValue, bool]] = set()
    pending = [(start, False)]
    while pending:
        source, summed = pending.pop()
        for other, by_sum in edges.get(source, ()):
            state = (other, summed or by_sum)
            if state not in found:
                found.add(state)
                pending.append(state)
    return found


# ---------------------------------------------------------------- rewriting


class _Rewriting:
    """The rewriting of one function."""

    def __init__(self, function: func.FuncOp, memory: _Memory) -> None:
        self.function = function
        self.memory = memory
        self._scaled: dict[SSAValue, Scaled] = {}
        self._twins: dict[SSAValue, Scaled] = {}
        self._stores: list[Operation] = []

    def run(self) -> None:
        self.memory.divide_sums(self.function)
        sums = [found for found in self.memory.sums.values() if self.memory.reads_members(found)]
        for source in self.memory.members:
            self._twin(source)
        logarithms = [(found.op, self._of(found.op.results[0])) for found in sums]
        for op, scaled in logarithms:
            replace_uses(op.results[0], ScaledWriter.behind(scaled.scale).logarithm(scaled))
            message = "sum of products of numbers with exponents of their own"
            remark(ScaledLogSums.name, op.location, "log_sum_exp", message, done=True)
        for op in self._stores:
            discard(op)
        for op in list(ops_within(self.function)):  # those that only sums have read are dead
            if isinstance(op, rt.LoadOp) and root(op.buffer) in self.memory.members:
                scaled = self._of(op.res)
                replace_uses(op.res, ScaledWriter.behind(scaled.scale).logarithm(scaled))

    # ------------------------------------------------------------ memory

    def _twin(self, buffer: SSAValue) -> Scaled:
        """The memory of the numbers and of the exponents of a buffer."""
        found = self._twins.get(buffer)
        if found is not None:
            return found
        op = buffer.owner
        assert isinstance(op, rt.AllocOp | rt.ViewOp) and op.parent is not None
        pair: list[SSAValue] = []
        sources = (None, None) if isinstance(op, rt.AllocOp) else self._twin(op.operands[0]).both
        for source in sources:
            (copy,) = copies([op], {} if source is None else {op.operands[0]: source})
            op.parent.insert_op_after(copy, op)
            pair.append(copy.results[0])
        found = self._twins[buffer] = Scaled(pair[0], pair[1])
        if isinstance(op, rt.AllocOp):
            for writer in self.memory.writers[buffer]:
                self._write_twin(writer)
                if buffer in self.memory.members:
                    self._stores.append(writer)
        return found

    def _write_twin(self, writer: Operation) -> None:
        assert writer.parent is not None
        if isinstance(writer, rt.CopyOp):
            pairs = zip(self._twin(writer.destination).both, self._twin(writer.source).both, strict=True)
            mappings = [{writer.destination: to, writer.source: source} for to, source in pairs]
        elif isinstance(writer, rt.FillOp):
            scaled = self._constant(writer.value, ScaledWriter(writer))
            pairs = zip(self._twin(writer.destination).both, scaled.both, strict=True)
            mappings = [{writer.destination: to, writer.value: value} for to, value in pairs]
        else:
            assert isinstance(writer, rt.StoreOp)
            pairs = zip(self._twin(writer.buffer).both, self._of(writer.value).both, strict=True)
            mappings = [{writer.buffer: to, writer.value: value} for to, value in pairs]
        for mapping in mappings:
            (copy,) = copies([writer], mapping)
            writer.parent.insert_op_after(copy, writer)

    # ------------------------------------------------------------ values

    def _constant(self, value: SSAValue, write: ScaledWriter) -> Scaled:
        known = known_constant(value)
        assert known is not None
        return write.constant(float(known))

    def _of(self, value: SSAValue) -> Scaled:
        """The number and the exponent whose logarithm a value is, behind it."""
        found = self._scaled.get(value)
        if found is None:
            found = self._scaled[value] = self._make(value)
        return found

    def _make(self, value: SSAValue) -> Scaled:
        op = value.owner
        if isinstance(op, Operation) and op in self.memory.sums:
            return self._sum(op)
        if known_constant(value) is not None:
            return self._constant(value, ScaledWriter.behind(value))
        if isinstance(op, rt.LoadOp) and self.memory.is_known(root(op.buffer)):
            twin = self._twin(op.buffer)
            write = ScaledWriter.behind(value)
            number, scale = (write.put(rt.LoadOp(part, op.index)) for part in twin.both)
            return Scaled(number, scale)
        if isinstance(op, arith.AddfOp) and not self.memory.is_plain(value):
            return self._product(list(op.operands), ScaledWriter.behind(value))
        write = ScaledWriter.behind(value)
        return tabulated([value], write.anchor, self.memory.members) or write.exponential(value)

    def _product(self, summands: list[SSAValue], write: ScaledWriter, *others: Scaled, normal: bool = True) -> Scaled:
        """The product of what summands are the logarithms of: one exponential for all that are not known as such."""
        plain = [value for value in summands if self.memory.is_plain(value, in_sum=not normal)]
        factors = [*others, *(self._of(value) for value in summands if value not in plain)]
        if plain:
            ahead = tabulated(plain, write.anchor, self.memory.members)
            factors.append(ahead or write.exponential(write.total(plain)))
        return write.product(factors, normal=normal)

    # ------------------------------------------------------------ sums

    def _sum(self, op: Operation) -> Scaled:
        """The sum whose logarithm a log_sum_exp is, in front of it."""
        found = log_sum(op)  # loops may have become others
        assert found is not None
        terms = [_summands(term, found.loop) for term in found.terms]
        if found.loop is not None:
            common = [value for value in terms[0] if not is_inside(value, found.loop)]
        else:
            counts = Counter(terms[0])
            for others in terms[1:]:
                counts &= Counter(others)
            common = list(counts.elements())
        for term in terms:
            for value in common:
                term.remove(value)
        write = ScaledWriter(op)
        total = self._loop_sum(found.loop, terms[0]) if found.loop is not None else self._sum_of(terms, write)
        return self._product(common, write, total)

    def _sum_of(self, terms: list[list[SSAValue]], write: ScaledWriter) -> Scaled:
        products = [self._product(term, write, normal=False) for term in terms]
        top = products[0].scale
        for product in products[1:]:
            top = write.larger(top, product.scale)
        equal = [write.equal(product.scale, products[0].scale) for product in products[1:]]

        def plain(inside: ScaledWriter) -> list[SSAValue]:
            return [inside.total([product.number for product in products])]

        def aligned(inside: ScaledWriter) -> list[SSAValue]:
            return [inside.total([inside.aligned(product, top) for product in products])]

        total = write.branch(write.both(equal), plain, aligned)[0] if equal else products[0].number
        return Scaled(total, top, PRODUCT_BITS)

    def _loop_sum(self, loop: scf.ForOp, term: list[SSAValue]) -> Scaled:
        """The sum over a loop: one for the largest scale, and the loop, which also adds up."""
        product = self._product(term, ScaledWriter(terminator(loop.body.block)), normal=False)
        write = ScaledWriter(loop)
        ends = _loop_over(
            loop, _needed_for(product.scale, loop), write, [write.lowest(), write.number(math.inf)],
            lambda inside, before, of: [
                inside.larger(before[0], of(product.scale)), inside.smaller(before[1], of(product.scale))
            ],
        )  # fmt: skip
        top = ends[0]

        def plain(inside: ScaledWriter) -> Sequence[SSAValue]:
            return _loop_over(
                loop, _needed_for(product.number, loop), inside, [inside.number(0.0)],
                lambda write, before, of: [write.total([before[0], of(product.number)])],
            )  # fmt: skip

        def aligned(inside: ScaledWriter) -> Sequence[SSAValue]:
            needed = _needed_for(product.number, loop) | _needed_for(product.scale, loop)
            return _loop_over(
                loop, needed, inside, [inside.number(0.0)],
                lambda write, before, of: [write.total([
                    before[0], write.aligned(Scaled(of(product.number), of(product.scale)), top)
                ])],
            )  # fmt: skip

        (total,) = write.branch(write.equal(*ends), plain, aligned)
        return Scaled(total, top, PRODUCT_BITS)


_Of = Callable[[SSAValue], SSAValue]


def _loop_over(
    loop: scf.ForOp,
    needed: set[Operation],
    write: ScaledWriter,
    starts: Sequence[SSAValue],
    step: Callable[[ScaledWriter, Sequence[SSAValue], _Of], list[SSAValue]],
) -> Sequence[SSAValue]:
    """Another loop with some of the ops of a loop's body, which carries values from `starts` on by `step`."""
    body = Block(arg_types=[i64, *(start.type for start in starts)])
    mapping: dict[SSAValue, SSAValue] = {loop.body.block.args[0]: body.args[0]}
    body.add_ops(copies([op for op in loop.body.block.ops if op in needed], mapping))
    end = scf.YieldOp.create()
    body.add_op(end)
    end.operands = step(ScaledWriter(end), body.args[1:], lambda value: mapping.get(value, value))
    new = scf.ForOp.create(
        operands=(loop.lb, loop.ub, loop.step, *starts), result_types=[start.type for start in starts],
        regions=[Region(body)], location=loop.location,
    )  # fmt: skip
    write.before(new)
    return new.results


def _needed_for(value: SSAValue, loop: scf.ForOp) -> set[Operation]:
    """The ops of a loop's body that compute a value."""
    body = loop.body.block
    found: set[Operation] = set()
    pending = [value]
    while pending:
        value = pending.pop()
        if not is_inside(value, loop) or isinstance(value.owner, Block):
            continue
        op = ancestor_in(value.owner, body)
        assert op is not None
        if op not in found:
            found.add(op)
            pending += free_values_of_op(op)
    return found


def _summands(value: SSAValue, loop: scf.ForOp | None) -> list[SSAValue]:
    """What a sum adds up, elements that a loop before has stored for this one included."""
    op = value.owner
    if isinstance(op, arith.AddfOp):
        left, right = (_summands(operand, loop) for operand in op.operands)
        return left + right
    if isinstance(op, rt.LoadOp) and loop is not None and (stored := _stored_for(op, loop)) is not None:
        return _summands(stored, loop)
    return [value]


@record
class Stored:
    """An element that a loop before has stored: by which op, in which loop, which ops of its body compute the value."""

    store: rt.StoreOp
    loop: scf.ForOp
    needed: list[Operation]


def _stored_for(load: rt.LoadOp, loop: scf.ForOp) -> SSAValue | None:
    """What an element is that a loop before has stored for this one: computed once more, in this one."""
    stored = stored_before(load, loop)
    if stored is None:
        return None
    mapping: dict[SSAValue, SSAValue] = {stored.loop.body.block.args[0]: loop.body.block.args[0]}
    assert load.parent is not None
    load.parent.insert_ops_before(copies(stored.needed, mapping), load)
    return mapping.get(stored.store.value, stored.store.value)


def stored_before(load: rt.LoadOp, loop: scf.ForOp) -> Stored | None:
    """Where an element is from that a loop with the same bounds has stored right before, and could compute again."""
    alloc = viewed(load.buffer).owner
    if alloc is not load.buffer.owner or not isinstance(alloc, rt.AllocOp) or load.index is not loop.body.block.args[0]:
        return None
    stores = [use.operation for use in load.buffer.uses if not isinstance(use.operation, rt.LoadOp)]
    store = stores[0]
    before = store.parent_op()
    if len(stores) != 1 or not isinstance(store, rt.StoreOp) or not isinstance(before, scf.ForOp):
        return None
    bounds = all(getattr(before, name) is getattr(loop, name) for name in ("lb", "ub", "step"))
    if not bounds or before.parent is not loop.parent or store.index is not before.body.block.args[0]:
        return None
    among = _needed_for(store.value, before)
    needed = [op for op in before.body.block.ops if op in among]
    between: set[Root] = set()
    op: Operation | None = before
    while op is not None and op is not loop:
        between |= written_roots_within(op)
        op = op.next_op
    if op is None or any(effect_within(inner) & ~(Effect.READ) for inner in needed):
        return None
    reads: set[Root] = set()
    for inner in (inner for top in needed for inner in ops_within(top)):
        if isinstance(inner, rt.LoadOp):
            reads |= _roots(inner.buffer)
    if UNKNOWN in between | reads or reads & (between | written_roots_within(loop)):
        return None
    if any(argument in before.body.block.args[1:] for inner in needed for argument in free_values_of_op(inner)):
        return None
    return Stored(store, before, needed)


def _roots(buffer: SSAValue) -> set[Root]:
    """What a buffer may be a part of; of one that a loop hands on, what it begins with and what iterations leave."""
    found, pending, seen = set[Root](), [buffer], set[SSAValue]()
    while pending:
        buffer = viewed(pending.pop())
        if buffer in seen:
            continue
        seen.add(buffer)
        loop = buffer.owner.parent_op() if isinstance(buffer.owner, Block) else None
        if isinstance(buffer, BlockArgument) and isinstance(loop, scf.ForOp):
            pending += [loop.iter_args[buffer.index - 1], terminator(loop.body.block).operands[buffer.index - 1]]
        else:
            found.add(root(buffer))
    return found
