"""Loops of which data say how often they run, inside of other loops: what of them are rows of one loop.

    for j in 0:J: a = u[j]; for k in first[j]:last[j]: target += f(x[k], a)

Each pair (j, k) is a row. It may leave nothing behind but additions to the target, sums that the target gets, and flags
of checks; what it needs of the loops around, it has to be able to compute anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from math import isfinite

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i1, i32, i64
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, known_constant, predicate_of
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.affine_rows import target_additions
from ulam.passes.loops.carried_sums import lone_sum
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import DIVISIONS, PURE, may_overlap, offsets, root, viewed, written_roots_within
from ulam.passes.loops.linear_layouts import are_squares, carried_additions
from ulam.passes.loops.repeated_values import Repeatable
from ulam.passes.loops.sum_chains import only_use
from ulam.passes.loops.tables import is_costly_function

MOST_OPS = 400
"""Of a nest: it is there twice then."""
_ELEMENTS = (f64, i32)
_OF_ROWS = (
    rt.LoadOp, rt.StoreOp, rt.FillOp, rt.AllocOp, rt.KernelOp, rt.CheckOp, ad.TargetAddOp, ad.AccumulateOp,
    scf.ForOp, scf.IfOp, scf.YieldOp,
)  # fmt: skip
_WRITES = {rt.StoreOp: 1, rt.FillOp: 0, ad.AccumulateOp: 0}


class _Unfit(Exception):
    """Rows of a loop stay in the nest."""


def loops_of_rows(outer: scf.ForOp, slices: DataSlices) -> Iterator[scf.ForOp]:
    """The loops of a nest whose iterations are rows: innermost ones whose bounds are data of the loops around, and
    others that add to the target themselves. The loops inside of one belong to its rows.
    """
    if constant_integer(outer.step) != 1 or not slices.has_data_control(outer):
        return
    last: scf.ForOp | None = None
    for op in ops_within(outer.body):
        if last is not None and last.is_ancestor(op):
            continue
        if isinstance(op, scf.ForOp) and constant_integer(op.step) == 1 and slices.has_data_control(op):
            is_of_rows = is_ragged(op, outer) or any(isinstance(inner, ad.TargetAddOp) for inner in op.body.block.ops)
            if is_of_rows and not any(_is_ragged_in(inner, op) for inner in ops_within(op.body)):
                last = op
                yield op


def is_ragged(loop: scf.ForOp, outer: scf.ForOp) -> bool:
    """Whether a nest computes the bounds of a loop inside."""
    return is_inside(loop.lb, outer) or is_inside(loop.ub, outer)


def _is_ragged_in(op: Operation, around: scf.ForOp) -> bool:
    return isinstance(op, scf.ForOp) and is_ragged(op, around)


@record
class SumOfRows:
    """A sum that the loop carries for the target: what is added, and what becomes of it on the way there."""

    additions: list[tuple[Operation, SSAValue]]
    steps: list[tuple[Operation, int]]
    """Ops, each with the number of the operand that comes from the one before."""
    end: ad.TargetAddOp | None
    """What adds it, if it adds nothing else."""

    @property
    def factors(self) -> list[SSAValue]:
        """What the sum is multiplied or divided by."""
        return [op.operands[1 - at] for op, at in self.steps if len(op.operands) > 1]


@record
class RaggedRows:
    """A loop whose iterations are rows, in a nest. Raises _Unfit if its rows may not stand in a loop of their own."""

    outer: scf.ForOp
    loop: scf.ForOp
    slices: DataSlices
    path: list[scf.ForOp] = field(default_factory=list[scf.ForOp])
    """The loops around it, the outermost first."""
    branches: list[tuple[scf.IfOp, scf.ForOp, bool]] = field(default_factory=list[tuple[scf.IfOp, scf.ForOp, bool]])
    """Branches around it: each with the loop that stands in it next, and whether its condition holds there."""
    columns: list[Operation] = field(default_factory=list[Operation])
    """What reads or computes data of a row."""
    looped: dict[Operation, scf.ForOp] = field(default_factory=dict[Operation, scf.ForOp])
    """What reads data of a row in a loop inside, as over the columns of a design."""
    flags: dict[int, int] = field(default_factory=dict[int, int])
    """What it carries, flags → which flags of the nest they are parts of."""
    sums: list[SumOfRows] = field(default_factory=list["SumOfRows"])
    uses_number: bool = False
    """Whether a row needs its number for more than to find its data, and coefficients."""
    has_key: bool = False
    """Whether its number tells a coefficient that other rows with this number have, too."""
    repeated: list[tuple[ad.TargetAddOp, SSAValue]] = field(default_factory=list[tuple[ad.TargetAddOp, SSAValue]])
    """What adds to the target beside the loop as many times a value as the loop has rows; and the value."""

    def __post_init__(self) -> None:
        self._find_path()
        for position, result in enumerate(self.loop.results):
            if result.type == f64:
                self.sums.append(_sum_of(self.loop, position))
            else:
                self._find_flag(position)
        self._find_effects()
        self._find_columns()
        self._find_repeated()

    def _find_path(self) -> None:
        current: Operation | None = self.loop
        inner = self.loop
        while current is not self.outer:
            assert current is not None
            region, current = current.parent_region(), current.parent_op()
            if isinstance(current, scf.ForOp):
                self.path.insert(0, inner := current)
            elif isinstance(current, scf.IfOp):
                self.branches.append((current, inner, region is current.true_region))
            else:
                raise _Unfit
            if not self.slices.has_data_control(current) or (
                isinstance(current, scf.ForOp) and constant_integer(current.step) != 1
            ):
                raise _Unfit

    def is_worth_it(self) -> bool:
        """Whether its rows may get a layout."""
        variables = tuple(loop.body.block.args[0] for loop in (*self.path, self.loop))
        if self._is_costly:
            is_fit = not self.uses_number and all(map(self._is_weight, self.factors))
            return is_fit and (self.is_ragged or self._reads_by_some(variables))
        values = [op.value for op in target_additions(self.loop)]
        values += [value for found in self.sums for _, value in found.additions]
        return are_squares(self.outer, values, variables, self.slices, of_one_row=self.is_ragged)

    def _reads_by_some(self, variables: tuple[SSAValue, ...]) -> bool:
        """Whether rows read parameters by the numbers of some loops: nests of these alone have no layouts then. Where
        they read some by all of them no two rows are equal.
        """
        read = {
            op.index
            for op in ops_within(self.outer)
            if isinstance(op, rt.LoadOp) and not self.slices.is_data_buffer(op.buffer)
        }
        return 0 < len(read.intersection(variables)) < len(variables)

    @property
    def are_reduced_alone(self) -> bool:
        """Whether its rows may be reduced in a nest of their own: bounds of loops are there ahead of branches around
        them, and nothing that multiplies them may be infinite.
        """
        bounds = [(bound, branch) for branch, loop, _ in self.branches for bound in (loop.lb, loop.ub)]
        if self._is_costly or any(is_inside(bound, branch) for bound, branch in bounds):
            return False
        return all(known_constant(factor) is not None for factor in self.factors)

    @property
    def is_ragged(self) -> bool:
        """Whether iterations of the loops around have different numbers of rows."""
        return is_ragged(self.loop, self.outer)

    @property
    def factors(self) -> list[SSAValue]:
        """What its sums are multiplied or divided by, each once."""
        return list(dict.fromkeys(factor for found in self.sums for factor in found.factors))

    def _is_weight(self, value: SSAValue) -> bool:
        """Whether all that a group adds may have a factor, instead of their sum: it is finite, or `bind` finds out."""
        number = known_constant(value)
        if number is not None:
            return isfinite(number)
        return self.slices.is_data(value) and is_inside(value, self.outer)

    # ------------------------------------------------------------ flags

    def _find_flag(self, position: int) -> None:
        if not is_flag(self.loop, position):
            raise _Unfit
        if (flag := flag_of(self.loop.results[position], self.outer)) is None:
            raise _Unfit
        self.flags[position] = flag

    # ------------------------------------------------------------ effects

    def _find_effects(self) -> None:
        """Rows leave nothing behind but additions to the target, and read nothing that the nest writes."""
        if not leaves_additions_alone(self.loop, self.outer):
            raise _Unfit
        if not self.sums and not any(isinstance(op, ad.TargetAddOp) for op in ops_within(self.loop.body)):
            raise _Unfit

    def _find_repeated(self) -> None:
        assert self.loop.parent is not None
        for op in self.loop.parent.ops:
            if isinstance(op, ad.TargetAddOp) and (value := self._times_rows(op.value)) is not None:
                self.repeated.append((op, value))

    def _times_rows(self, value: SSAValue) -> SSAValue | None:
        """`x`, of `rows == 0 ? 0 : rows * x`, with or without the choice, which keeps what is infinite from nothing."""
        op = value.owner
        if isinstance(op, arith.SelectOp) and known_constant(op.lhs) == 0.0 and isinstance(op.cond.owner, arith.CmpiOp):
            compared = op.cond.owner
            if predicate_of(compared) != "eq" or known_constant(compared.rhs) != 0 or compared.lhs is not self.loop.ub:
                return None
            op = op.rhs.owner
        if not isinstance(op, arith.MulfOp) or constant_integer(self.loop.lb) != 0:
            return None
        for number, factor in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            made = number.owner
            if isinstance(made, arith.SIToFPOp) and made.input is self.loop.ub:
                return factor
        return None

    # ------------------------------------------------------------ columns

    def _find_columns(self) -> None:
        self._numbered: set[SSAValue] = {self.loop.body.block.args[0]}
        self._is_costly = any(is_costly_function(op) for op in ops_within(self.loop.body))
        self._keys: set[tuple[SSAValue, ...]] = set()
        self._visit(self.loop.body.block, in_loop=False, in_branch=False)
        if self._keys.intersection(_place_of(op) for op in self.columns if isinstance(op, rt.LoadOp)):
            raise _Unfit  # a parameter for each element of the data

    def _visit(self, block: Block, *, in_loop: bool, in_branch: bool) -> None:
        """`in_branch`: of which parameters decide."""
        for op in block.ops:
            is_numbered = any(operand in self._numbered for operand in op.operands)
            if isinstance(op, scf.ForOp | scf.IfOp):
                if is_numbered:
                    raise _Unfit
                is_loop = isinstance(op, scf.ForOp)
                is_varied = not is_loop and not self.slices.has_data_control(op)
                for region in op.regions:
                    for inside in region.blocks:
                        self._visit(inside, in_loop=in_loop or is_loop, in_branch=in_branch or is_varied)
            elif not is_numbered:
                continue
            elif self._is_key(op):
                self.has_key = True
                self._keys.add(_place_of(op))
            elif not op.results or not all(map(self._is_found_by_number, op.results)):
                raise _Unfit  # a parameter of the row
            elif not in_loop and not in_branch and self._is_column(op):
                self.columns.append(op)
            elif not in_branch and self._is_looped(op):
                loop = op.parent_op()
                assert isinstance(loop, scf.ForOp)
                self.looped[op] = loop
            else:
                self.uses_number = self.uses_number or isinstance(op, rt.LoadOp) or op.results[0].type in (f64, i1)
                if op.results[0].type != f64:
                    self._numbered.update(op.results)

    def _is_key(self, op: Operation) -> bool:
        """Whether an op reads what iterations of the loops around have at a number."""
        if not isinstance(op, rt.LoadOp) or self.slices.is_data_buffer(op.buffer):
            return False
        if not self._is_costly:  # rows that are reduced have few such numbers
            is_of_all = not self.is_ragged and op.index is self.loop.body.block.args[0]
            return is_of_all and not is_inside(op.buffer, self.outer)
        if is_inside(viewed(op.buffer), self.outer) or not all(map(self.slices.is_data, _place_of(op))):
            return False
        return not any(map(self._is_of_group, _place_of(op)))

    def _is_of_group(self, place: SSAValue) -> bool:
        """Whether a place is computed with the number of the group itself: no other one has the element then."""
        work, seen = [place], set[SSAValue]()
        while work:
            value = work.pop()
            if value is self.outer.body.block.args[0]:
                return True
            op = value.owner
            if value not in seen and is_inside(value, self.outer) and isinstance(op, Operation) and type(op) in PURE:
                seen.add(value)
                work += op.operands
        return False

    def _is_found_by_number(self, value: SSAValue) -> bool:
        op = value.owner
        return isinstance(op, rt.ViewOp) or self.slices.is_data(value)

    def _is_looped(self, op: Operation) -> bool:
        """Whether an op reads data in a loop inside, which is the same for all rows. Rows without functions need no
        copy of them: they are reduced.
        """
        loop = op.parent_op()
        if not self._is_costly or not isinstance(op, rt.LoadOp) or op.res.type != f64:
            return False
        if not isinstance(loop, scf.ForOp) or loop.parent is not self.loop.body.block:
            return False
        if constant_integer(loop.step) != 1:
            return False
        return self.slices.has_data_control(loop) and not any(is_inside(end, self.outer) for end in (loop.lb, loop.ub))

    def _is_column(self, op: Operation) -> bool:
        return isinstance(op, rt.LoadOp | arith.SIToFPOp) and op.results[0].type in _ELEMENTS


def _place_of(op: Operation) -> tuple[SSAValue, ...]:
    """Where a load reads: its index, and the offsets of the views that it reads."""
    assert isinstance(op, rt.LoadOp)
    return (op.index, *offsets(op.buffer))


def leaves_additions_alone(loop: scf.ForOp, outer: scf.ForOp) -> bool:
    """Whether a loop in a nest leaves nothing behind but additions to the target, and what it carries, and reads
    nothing that the nest writes.
    """
    written = written_roots_within(outer)
    for op in ops_within(loop.body):
        if type(op) not in PURE and type(op) not in DIVISIONS and not isinstance(op, _OF_ROWS):
            return False
        at = _WRITES.get(type(op))
        if at is not None and not is_inside(viewed(op.operands[at]), loop):
            return False
        if isinstance(op, rt.LoadOp) and not is_inside(viewed(op.buffer), loop):
            if any(may_overlap(root(op.buffer), other) for other in written):
                return False
    return True


def rows_of_nest(outer: scf.ForOp, slices: DataSlices) -> list[RaggedRows]:
    """The loops of a nest whose rows get a loop of their own."""
    found: list[RaggedRows] = []
    if sum(1 for _ in ops_within(outer)) > MOST_OPS:
        return []
    repeated: set[ad.TargetAddOp] = set()
    for loop in loops_of_rows(outer, slices):
        try:
            rows = RaggedRows(outer, loop, slices)
            rows.repeated = [(op, value) for op, value in rows.repeated if op not in repeated]
            if rows.is_worth_it() and all(map(Repeatable(outer, variables_of(rows.path)).has, read_from_around(rows))):
                found.append(rows)
                repeated.update(op for op, _ in rows.repeated)
        except _Unfit:
            continue
    return found


def variables_of(loops: Iterable[scf.ForOp]) -> frozenset[SSAValue]:
    """The numbers of iterations of loops."""
    return frozenset(loop.body.block.args[0] for loop in loops)


def read_from_around(rows: RaggedRows) -> dict[SSAValue, None]:
    """What rows read that is computed in the nest, but in front of their loop."""
    read = [operand for op in ops_within(rows.loop.body) for operand in op.operands]
    read += [*(value for _, value in rows.repeated), *rows.factors]
    return {value: None for value in read if is_inside(value, rows.outer) and not is_inside(value, rows.loop)}


# ---------------------------------------------------------------- what loops carry


def _sum_of(loop: scf.ForOp, position: int) -> SumOfRows:
    """The sum that a loop carries, if it goes to the target. Raises _Unfit if it does not."""
    additions = [(addition.op, addition.value) for addition in carried_additions(loop, position)]
    if not additions or known_constant(loop.iter_args[position]) != 0:
        raise _Unfit
    found = SumOfRows(additions, [], None)
    value: SSAValue = loop.results[position]
    is_alone = True
    while True:
        use = only_use(value)
        if use is None or use.operation.parent is not loop.parent:
            raise _Unfit
        op = use.operation
        if isinstance(op, ad.TargetAddOp):
            return replace(found, end=op) if is_alone else found
        if isinstance(op, arith.SubfOp) and use.index == 1:
            found.steps.append((arith.NegfOp.create(operands=[value], result_types=[f64]), 0))
        elif isinstance(op, arith.MulfOp | arith.NegfOp) or (isinstance(op, arith.DivfOp) and use.index == 0):
            found.steps.append((op, use.index))
        elif not isinstance(op, arith.AddfOp | arith.SubfOp):
            raise _Unfit
        is_alone = is_alone and not isinstance(op, arith.AddfOp | arith.SubfOp)
        value = op.results[0]


def is_flag(loop: scf.ForOp, position: int) -> bool:
    """Whether a loop carries a number there, from 0 on, in which it only sets bits."""
    body = loop.body.block
    argument, end = body.args[1 + position], terminator(body).operands[position]
    if argument.type != i64 or known_constant(loop.iter_args[position]) != 0:
        return False
    return end is argument or lone_sum(loop, position) is not None


def flag_of(value: SSAValue, outer: scf.ForOp) -> int | None:
    """The flag of a nest that is set where a flag is that a loop inside has set; None if it is none."""
    fails_if = True
    while value.owner is not outer:
        if not value.has_one_use():
            return None
        use = next(iter(value.uses))
        op = use.operation
        if isinstance(op, arith.CmpiOp) and known_constant(op.rhs) == 0 and use.index == 0 and fails_if:
            if predicate_of(op) not in ("eq", "ne"):
                return None
            fails_if = predicate_of(op) == "ne"
        elif isinstance(op, arith.XOrIOp) and known_constant(op.operands[1 - use.index]) in (1, -1, True):
            fails_if = not fails_if
        elif isinstance(op, scf.YieldOp):
            around = op.parent_op()
            if isinstance(around, scf.ForOp) and not (fails_if and is_flag(around, use.index)):
                return None
            assert around is not None
            value = around.results[use.index]
            continue
        elif not isinstance(op, arith.OrIOp | arith.ExtUIOp if fails_if else arith.AndIOp):
            return None
        value = op.results[0]
    if not fails_if:
        return None
    assert isinstance(value, OpResult)
    return value.index
