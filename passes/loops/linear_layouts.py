"""Sums of squares of what is linear in parameters, with coefficients that are data, become sums of a few squares.

    for n: target += -0.5 * square((y[n] - (a + b * x[n])) / s)
→   bind:      R, c = the orthogonal reduction of the rows [1, x[n] | y[n]]
    evaluate:  for i: target += -0.5 * square((c[i] - (R[i, 0] * a + R[i, 1] * b)) / s)

The rows are reduced by orthogonal transformations when data are bound (runtime/c/linear_design.c). Coefficients of
groups, `u[g[n]]`, stay apart: a few rows for each group, the rest of them shared. Where scales differ between groups,
`s[g[n]]`, so do all reduced rows, a triangle for each kind of rows (`kind_binding`, `kind_evaluation`). Where the
reduced rows would not be fewer, where data are not finite, and for coefficients that are not, or so large that sums
could overflow, the loop runs as it was. Loops of which something else is needed than such sums, the target or others,
are left alone; nests ahead that only fill what they read (`filled_buffers`) run where they do.

Idea: sufficient statistics of a normal linear model, by QR and not by cross products, so that nothing cancels (Golub,
1965; Lawson and Hanson, 1974).
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import may_reassociate
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import block_of, is_inside
from ulam.passes.loops.affine_rows import Arms, DataChoices, Nest, row_op, target_additions
from ulam.passes.loops.data_branches import outermost_loops
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import PURE, viewed
from ulam.passes.loops.filled_buffers import MemoryChanges, memory_filled_by
from ulam.passes.loops.hoist_data import hoist_data
from ulam.passes.loops.linear_flags import Flags
from ulam.passes.loops.linear_rows import (
    KeyedSum,
    KindColumns,
    LinearColumns,
    RowKinds,
    Square,
    SquareSums,
    are_of_different_lengths,
)
from ulam.passes.loops.linear_terms import LinearTerm, Terms
from ulam.passes.loops.row_scales import RowScales
from ulam.passes.loops.sum_chains import chain_of
from ulam.passes.loops.unit_modules import evaluate_of, set_slots, slots_of
from ulam.passes.remarks import remark_on
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

_INFINITE = float("inf")
MOST_TERMS, TERMS_OF_SQUARE = 256, 8
"""How many terms the squares of one unit may have that are reduced, and what a square counts besides its own: so many
add 10,000 ops and 8,000 lines of LLVM IR, two seconds of compiling."""
NO_ROOM = "as many terms as may be are reduced already: each lets a program be compiled for longer"


@record(frozen=True)
class LinearLayouts(TellingPass):
    """Reduces the rows of normal linear models when data are bound; `early`: tells what was done alone."""

    name = "linear-layouts"
    changes_only = ENTRIES

    early: bool = False

    def changes(self, module: ModuleOp) -> bool:
        function = evaluate_of(module, self.name)
        slices, changes = DataSlices(), MemoryChanges()
        written: list[Operation] = []
        room = MOST_TERMS
        for loop in outermost_loops(function.body.block, slices):
            found = _statement(loop, slices, changes, room)
            if found is None:
                continue
            if isinstance(found, SquareSums):
                room -= _size_of(found)
            elif found is NO_ROOM:
                room = 0
            done = isinstance(found, SquareSums)
            if done or not self.early:
                remark_on(self.name, loop, found.summary() if isinstance(found, SquareSums) else found, done=done)
            if isinstance(found, SquareSums):
                from ulam.passes.loops.kind_evaluation import write_kinds  # seldom needed
                from ulam.passes.loops.linear_evaluation import write_layout

                written += (write_kinds if found.has_kinds else write_layout)(found, function.body.block)
        if written:
            set_slots(module, hoist_data(function, slots_of(module), written))
        return bool(written)


def _size_of(found: SquareSums) -> int:
    return sum(TERMS_OF_SQUARE + len(square.terms) for square in found.squares)


def _statement(
    loop: scf.ForOp, slices: DataSlices, changes: MemoryChanges, room: int = MOST_TERMS
) -> SquareSums | str | None:
    """What a nest adds up; why it stays, None if it has no sum of squares. `room`: for how many terms."""
    additions: list[_Addition] = [_Addition(op, op.value) for op in target_additions(loop)]
    for position in range(len(loop.results)):
        additions += carried_additions(loop, position)
    if not additions:
        return None
    around = _around(row_op(additions[0].op), loop)
    rows = tuple(inner.body.block.args[0] for inner in around)
    nest = Nest(loop, rows, slices, DataChoices(), changes=changes, may_vary=True)
    scales = RowScales(nest)
    addends = [addend for addition in additions for addend in _addends(addition.addend(nest), scales)]
    paths = [(addend, _path(addend, scales)) for addend in addends]
    if all(path is None for _, path in paths):
        scales.take_back()
        return None
    found = _squares(loop, around, nest, scales, additions, paths) if room else NO_ROOM
    if isinstance(found, SquareSums) and _size_of(found) > room:
        found = NO_ROOM
    if not isinstance(found, SquareSums):
        scales.take_back()
    return found


def squares_of_rows(loop: scf.ForOp, slices: DataSlices) -> list[ad.TargetAddOp]:
    """What a nest adds to the target that may be the squares of reduced rows, and what belongs to these: numbers that
    all rows share, and data, in the blocks of squares.
    """
    additions = target_additions(loop)
    around = _around(row_op(additions[0]), loop) if additions else []
    if not around:
        return []
    rows = tuple(inner.body.block.args[0] for inner in around)
    nest = Nest(loop, rows, slices, DataChoices(), may_vary=True)
    scales = RowScales(nest)
    found = SquareSums(loop, around, [], [], {}, [], [], scales)
    squares, others = list[ad.TargetAddOp](), list[ad.TargetAddOp]()
    for op in additions:
        addends = _addends(_Addition(op, op.value).addend(nest), scales)
        paths = [(addend, _path(addend, scales)) for addend in addends]
        if all(_may_be_reduced(found, addend, path) for addend, path in paths):
            (squares if any(path for _, path in paths) else others).append(op)
    scales.take_back()
    blocks = {op.parent for op in squares}
    return squares + [op for op in others if op.parent in blocks]


def _may_be_reduced(found: SquareSums, addend: _Addend, path: _Path | None) -> bool:
    """Whether what is added up is a square of what is linear in coefficients that several rows have, or beside one."""
    nest = found.scales.nest
    if path is None:
        return _put_beside(found, addend, found.scales)
    steps, residual = path
    terms = nest.terms_in(addend.arms, residual)
    if terms is None or _is_of_one_row(terms, steps, nest):
        return False
    return isinstance(LinearColumns.of(terms), LinearColumns)


def are_reduced(loop: scf.ForOp, slices: DataSlices) -> bool:
    """Whether rows of a nest are reduced as they are."""
    return fills_if_reduced(loop, slices) is not None


def fills_if_reduced(loop: scf.ForOp, slices: DataSlices) -> dict[scf.ForOp, bool] | None:
    """Nests ahead that fill what rows of a nest read, each with whether something else reads that, too, if the rows are
    reduced as they are; None if they are not.
    """
    found = _statement(loop, slices, MemoryChanges())
    if not isinstance(found, SquareSums):
        return None
    found.scales.take_back()
    return found.fills


def are_squares(
    outer: scf.ForOp, values: list[SSAValue], rows: tuple[SSAValue, ...], slices: DataSlices, *, of_one_row: bool
) -> bool:
    """Whether values that rows of a nest add up are squares of what is linear in coefficients, all of which several
    rows have, and otherwise data or the same in all rows. `rows`: the variables of the loops that count them;
    `of_one_row`: whether the number of the innermost is that of a row.
    """
    nest = Nest(outer, rows, slices, DataChoices())
    scales = RowScales(nest)
    found = SquareSums(outer, [], [], [], {}, [], [], scales)
    are_any = is_fit = False
    for addend in [each for value in values for each in _addends(_Addend(value, None), scales)]:
        if (path := _path(addend, scales)) is None:
            is_fit = _put_beside(found, addend, scales)
        else:
            steps, residual = path
            terms = nest.terms(residual)
            is_fit = terms is not None and not (of_one_row and _is_of_one_row(terms, steps, nest))
            is_fit = is_fit and isinstance(LinearColumns.of(terms or []), LinearColumns)
            are_any = True
        if not is_fit:
            break
    scales.take_back()
    return are_any and is_fit


_Steps = list[tuple[Operation, int]]
_Path = tuple[_Steps, SSAValue]


def _is_of_one_row(terms: Terms, steps: _Steps, nest: Nest) -> bool:
    """Whether a coefficient, or what a square is multiplied by, is another one in each row."""
    factors = (op.operands[1 - at] for op, at in steps if at >= 0 and not isinstance(op, rt.MathOp | arith.NegfOp))
    return any(term.is_of_one_row(nest.rows) for term in terms) or any(
        nest.rows[-1] in nest.keys_of(factor) for factor in factors
    )


def _squares(
    loop: scf.ForOp,
    around: list[scf.ForOp],
    nest: Nest,
    scales: RowScales,
    additions: list[_Addition],
    paths: list[tuple[_Addend, _Path | None]],
) -> SquareSums | str | None:
    """What a nest adds up, by its addends with their paths to squares."""
    slices = nest.slices
    block = row_op(additions[0].op).parent
    if any(row_op(addition.op).parent is not block for addition in additions) or not around:
        return "what it adds up is in several loops"
    if any(not slices.is_data(inner.lb) or not slices.is_data(inner.ub) for inner in around):
        return "how often it runs depends on parameters"
    if (reason := _other_effect(loop, nest)) is not None:
        return reason
    is_each_alone = len(around) == 1 or are_of_different_lengths(around)
    found = SquareSums(loop, around, [], [], {}, [], [], scales)
    refused: list[str] = []
    for addend, path in paths:
        into = addend.into
        if path is None:
            if not _put_beside(found, addend, scales):
                return "it adds up something else, too, that rows differ in"
            continue
        steps, residual = path
        terms = nest.terms_in(addend.arms, residual)
        if terms is None:
            return "what is squared is not linear in parameters with data as coefficients"
        if is_each_alone and _is_of_one_row(terms, steps, nest):
            return None  # each row has a coefficient or a scale of its own: there is nothing to gain
        columns = LinearColumns.of(terms)
        if isinstance(columns, str):
            refused.append(columns)
            columns = LinearColumns({}, {}, {}, None, [])
        found.squares.append(Square(steps, terms, columns, into))
    if refused and not found.has_kinds:
        return refused[0]
    known = {_identity(term) for square in found.squares for term in square.terms}
    flags = Flags(nest, scales, known, sums=found.sums)
    read = _read_by_leaves(found)
    fills = {filler: fill.stays or not read.isdisjoint(memory_filled_by(filler)) for filler, fill in nest.fills.items()}
    if not flags.are_kept(loop) or not all(
        stays or flags.of_fill(nest.fills[filler]).are_kept(filler) for filler, stays in fills.items()
    ):
        return "its rows check more than whether they are finite"
    if not all(map(flags.is_finite, scales.weighted)):
        return "its rows have weights, and what is squared may be infinite where they are 0"
    found.fills, found.checked = fills, list(flags.checked)
    if is_each_alone and any(nest.rows[-1] in nest.keys_of(factor) for factor in found.keyed_factors):
        return None
    if found.has_kinds and (reason := _find_keys(found)) is not None:
        return reason
    scales.keep_to_arms()
    return found


def _find_keys(found: SquareSums) -> str | None:
    """Finds the keys by which rows are of one kind; why there are none."""
    nest, key_of = found.scales.nest, dict[SSAValue, SSAValue]()
    for factor in found.keyed_factors:
        for key in nest.keys_of(factor):
            if (arms := nest.arms_of(block_of(key))) is None:
                return "an index of scales is computed in a loop inside of rows"
            key_of[key] = nest.put_key_in(arms, key)
    for square in found.squares:
        columns = KindColumns.of(square.terms)
        if isinstance(columns, str):
            return columns
        if not all(nest.has_fixed_bounds(loop) for loops in columns.looped for loop in loops):
            return "rows whose scales differ have different numbers of coefficients"
        square.kinds = columns
    found.keys = RowKinds.of(found.squares, key_of)
    return None


def _read_by_leaves(found: SquareSums) -> set[object]:
    """What makes the memory that coefficients are read of: evaluations need it, too."""
    read: set[object] = set()
    nests = (found.loop, *found.scales.nest.fills)
    work = [value for square in found.squares for term in square.terms for value in term.leaf]
    seen = set(work)
    while work:
        value = work.pop()
        op = value.owner
        if not isinstance(op, Operation) or not any(is_inside(value, nest) for nest in nests):
            continue
        if isinstance(op, rt.LoadOp):
            read.add(viewed(op.buffer).owner)
        more = [value for value in op.operands if value not in seen]
        seen.update(more)
        work += more
    return read


def _put_beside(found: SquareSums, addend: _Addend, scales: RowScales) -> bool:
    """Whether what is added up is no square, but data, or the same in all rows; then it is one of the sums."""
    nest, value, into, weight = scales.nest, addend.value, addend.into, addend.weight
    if nest.is_shared(value):
        if weight is None and not addend.arms:
            found.constants.append((value, into))
        else:
            factors = () if weight is None else (weight,)
            found.products.append((value, addend.where_taken(factors, nest), into))
    elif nest.is_data(value):
        found.data.append((addend.where_taken((addend.times_weight(value, scales),), nest), into))
    elif nest.is_of_keys(value):
        taken = nest.put_in(addend.arms, () if weight is None else (weight,)) if addend.arms else weight
        found.keyed.append(KeyedSum(value, taken, into))
    elif (parts := scales.of_logarithm(value)) is not None:
        return all(_put_beside(found, replace(addend, value=part), scales) for part in parts)
    else:
        return False
    return True


@record(frozen=True)
class _Addend:
    """What is added up: a value, times the weight of the row if there is one; to what (see `_Addition`)."""

    value: SSAValue
    into: int | None
    weight: SSAValue | None = None
    place: SSAValue | None = None
    """What is computed of both; ahead of it ops may be written."""
    arms: Arms = ()
    """Where rows have it; without any all do."""

    def where_taken(self, data: tuple[SSAValue, ...], nest: Nest) -> SSAValue:
        """A product of data in rows that have it, 0 in others."""
        if not self.arms:
            (value,) = data
            return value
        return nest.put_in(self.arms, data)

    def of(self, value: SSAValue) -> _Addend:
        """A part of the value."""
        return replace(self, value=value)

    def less_weight(self, scales: RowScales) -> _Addend | None:
        """With one factor less that is data of the row and one of its weights; None if there is none."""
        nest, op = scales.nest, self.value.owner
        if not isinstance(op, arith.MulfOp) or not is_inside(self.value, nest.outer) or nest.is_data(self.value):
            return None
        for factor, rest in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if nest.is_data(factor) and not nest.is_shared(factor):
                place = self.place or self.value
                return replace(self, value=rest, weight=self.times_weight(factor, scales), place=place)
        return None

    def times_weight(self, value: SSAValue, scales: RowScales) -> SSAValue:
        """A value of the row, weighted."""
        if self.weight is None:
            return value
        assert self.place is not None
        return scales.product(self.place, self.weight, value)


@record(frozen=True)
class _Addition:
    """An op that adds a value: to the target, or to the sum that is a result of the nest."""

    op: Operation
    value: SSAValue
    into: int | None = None

    def addend(self, nest: Nest) -> _Addend:
        """What it adds, in the rows that do."""
        return _Addend(self.value, self.into, arms=nest.arms_of(self.op.parent) or ())


def carried_additions(loop: scf.ForOp, position: int) -> list[_Addition]:
    """What a nest adds to a number that it carries; none if it does something else with it, or the order counts."""
    if loop.results[position].type != f64 or (chain := chain_of(loop, position)) is None:
        return []
    found: list[_Addition] = []
    values: set[SSAValue] = {loop.body.block.args[1 + position]}
    for op in loop.body.block.ops:
        if isinstance(op, scf.ForOp):
            for k, start in enumerate(op.iter_args):
                if start in values:
                    values.add(op.results[k])
                    found += [replace(addition, into=position) for addition in carried_additions(op, k)]
        elif op in chain:
            if not isinstance(op, arith.AddfOp) or not may_reassociate(op):
                return []
            values.add(op.result)
            found.append(_Addition(op, op.operands[1 - chain[op]], position))
    return found


def _around(op: Operation, outer: scf.ForOp) -> list[scf.ForOp]:
    """The loops from `outer` to an op inside of it; none if there is something else around it."""
    found: list[scf.ForOp] = []
    current = op.parent_op()
    while isinstance(current, scf.ForOp):
        found.append(current)
        if current is outer:
            return found[::-1]
        current = current.parent_op()
    return []


def _addends(addend: _Addend, scales: RowScales) -> list[_Addend]:
    """What is added up to a value, each with its weight."""
    nest = scales.nest
    while (chosen := scales.of_positive(addend.value)) is not None:
        addend = addend.of(chosen)
    value, op = addend.value, addend.value.owner
    if isinstance(op, arith.AddfOp | arith.SubfOp) and is_inside(value, nest.outer) and not nest.is_shared(value):
        second = scales.negated(op) if isinstance(op, arith.SubfOp) else op.rhs
        return [*_addends(addend.of(op.lhs), scales), *_addends(addend.of(second), scales)]
    if (
        isinstance(op, rt.MathOp)
        and op.function.data == "fma"
        and not nest.is_shared(value)
        and is_inside(value, nest.outer)
    ):
        product = scales.product(value, op.arguments[0], op.arguments[1])
        return [*_addends(addend.of(product), scales), *_addends(addend.of(op.arguments[2]), scales)]
    if (weighted := addend.less_weight(scales)) is not None:
        return _addends(weighted, scales)
    return [addend]


def _path(addend: _Addend, scales: RowScales) -> tuple[list[tuple[Operation, int]], SSAValue] | None:
    """How a value is a multiple of a square, the multiplier the same in all rows, or those of the same keys: the ops,
    each with the operand that comes from the next (-1: all do), and what is squared, without a factor that these rows
    share, and with the root of the weight of the row.
    """
    nest = scales.nest
    steps: list[tuple[Operation, int]] = []
    squared = False
    while is_inside(addend.value, nest.outer) and isinstance(op := addend.value.owner, Operation):
        at = _step(op, nest)
        squaring = at == -1 or (isinstance(op, rt.MathOp) and at == 0)
        if at is None and not squared and (weighted := addend.less_weight(scales)) is not None:
            addend = weighted
            continue
        if at is None or (squaring and squared):
            break
        squared = squared or squaring
        steps.append((op, at))
        addend = addend.of(op.operands[max(at, 0)])
    if not squared:
        return None
    value = addend.value
    if (scaled := scales.of_residual(value)) is not None:
        product, value = scaled
        steps.append((product, 0))
    if addend.weight is not None:
        assert addend.place is not None
        value = scales.with_weight(addend.place, value, addend.weight)
    return steps, value


def _step(op: Operation, nest: Nest) -> int | None:
    if isinstance(op, rt.MathOp):
        return 0 if op.function.data == "square" else None
    if isinstance(op, arith.MulfOp):
        if op.lhs is op.rhs:
            return -1
        shared = [nest.is_shared(operand) for operand in op.operands]
        if shared[0] == shared[1]:
            shared = [nest.is_common(operand) for operand in op.operands]
        return None if shared[0] == shared[1] else _of_factor(op, shared.index(False), nest)
    if isinstance(op, arith.DivfOp):
        return _of_factor(op, 0, nest) if nest.is_common(op.rhs) else None
    return 0 if isinstance(op, arith.NegfOp) else None


def _of_factor(op: Operation, at: int, nest: Nest) -> int | None:
    """The operand that is multiplied by what rows share; of data that is a coefficient, if it can be."""
    is_scale = nest.is_shared(op.operands[1 - at]) or not nest.is_data(op.operands[at])
    return at if is_scale or nest.terms(op.results[0]) is None else None


_HARMLESS = (scf.ForOp, scf.IfOp, scf.YieldOp, rt.LoadOp, rt.AllocOp, rt.ViewOp, ad.TargetAddOp)
_IN_CHOICES = (rt.LoadOp, scf.IfOp, scf.YieldOp)
_LOCAL = (rt.StoreOp, rt.FillOp, ad.AccumulateOp)


def _other_effect(loop: scf.ForOp, nest: Nest) -> str | None:
    """What else a nest does than computing in memory of its own, and adding to the target."""
    for op in ops_within(loop):
        if isinstance(op, scf.IfOp) and not _gives_values(op) and nest.arms_of(op.true_region.block) is None:
            return "it has a branch"
        if type(op) in PURE or isinstance(op, _HARMLESS):
            continue
        if isinstance(op, rt.CheckOp):
            return "it checks something that is not known before"
        if not isinstance(op, _LOCAL):
            return "it does something else than computing"
        buffer = op.operands[1] if isinstance(op, rt.StoreOp) else op.operands[0]
        if not is_inside(buffer, loop):
            return "something else reads what it computes"
    return None


def _gives_values(op: scf.IfOp) -> bool:
    """Whether a branch does nothing but to choose what it gives."""
    return bool(op.results) and all(type(inner) in PURE or isinstance(inner, _IN_CHOICES) for inner in ops_within(op))


def _identity(term: LinearTerm) -> LinearTerm:
    """What a term is but for its sign."""
    return replace(term, negative=False)
