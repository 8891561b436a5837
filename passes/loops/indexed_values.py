"""What rows of a loop compute of nothing but what they read at an index of the data: for `tabulate-by-index`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i1, i32, i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer
from ulam.dialects.walk import operand_tuple, ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import block_of, is_inside, terminator
from ulam.passes.loops.addends import addends, take_apart
from ulam.passes.loops.coalesced_rows import coalesced
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import Root, is_speculatable, may_overlap, root, written_roots_within
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.rows_of_loops import StripsOfRows
from ulam.passes.loops.shared_divisors import inverse_of, is_stepped
from ulam.passes.loops.tables import is_costly_function
from ulam.passes.rewriting import cloned, discard, replace_uses

_MOST = 600
"""Ops of a row: of longer ones a copy would take long to compile."""
_SUMS = (arith.AddiOp, arith.SubiOp)
_AFFINE = frozenset[type]((arith.AddfOp, arith.SubfOp, arith.NegfOp, arith.SelectOp, ad.TargetAddOp))
"""Ops that are affine in all of their operands that are reals."""

Indices = frozenset[SSAValue]
Flags = dict[int, list[tuple[arith.OrIOp, SSAValue]]]


@record
class IndexedValues:
    """What one index of rows decides, in the loop or in an arm of it."""

    block: Block
    place: SSAValue
    """Where tables have the values of a row: another one for each index."""
    makers: list[Operation]
    """What that is computed by, in order."""
    values: list[SSAValue]
    """What has a table."""
    additions: list[ad.TargetAddOp]
    """What is added to the target."""
    flags: Flags
    """What sets flags that the loop carries, by the number of the flag: where, and to what."""
    needed: list[Operation]
    """What all these are computed by, in order."""
    functions: int
    """How many of them cost something."""


class RowsByIndex:
    """A loop over rows of data, or one over strips of rows with a loop over these. `original`: what it was before it is
    changed, so that indices decide more of it.
    """

    def __init__(self, outer: scf.ForOp, strips: StripsOfRows | None, slices: DataSlices) -> None:
        self.outer, self.slices = outer, slices
        self.original = outer
        self.loop = outer if strips is None else _rows_of_strip(strips)
        self.body = self.loop.body.block
        self.first = outer.lb  # 0 of strips
        self.end = outer.ub if strips is None else strips.end.rhs
        self._blocks = dict.fromkeys(_with_arms(self.body, slices))
        self._written: set[Root] = written_roots_within(outer)
        self._known: dict[SSAValue, Indices | None] = {}
        self._costly: dict[SSAValue, bool] = {}

    def kinds(self) -> list[IndexedValues]:
        """What each index decides; nothing of loops that are not over rows, or where nothing costly is decided."""
        if not self._are_rows():
            return []
        keys = dict.fromkeys(self.key(op.results[0]) for op in self._ops() if is_costly_function(op))
        keys.pop(None, None)
        if not keys or (len(keys) == 1 and self._is_affine()):
            return []
        self.original = cloned(self.outer)
        self._multiply_by_inverses()
        self._take_sums_apart(keys)
        found = [each for key in keys if key is not None for each in self._values_of(key)]
        if not found:
            self._put_back()
        return found

    def _put_back(self) -> None:
        """Leaves the loop as it was."""
        assert self.outer.parent is not None
        self.outer.parent.insert_op_before(self.original, self.outer)
        for result, other in zip(self.outer.results, self.original.results, strict=True):
            replace_uses(result, other)
        discard(self.outer)

    def _are_rows(self) -> bool:
        outer, loop = self.outer, self.loop
        if constant_integer(loop.step) != 1 or rt.LoopAttr.kind_of(outer)[0] or coalesced(outer) is not None:
            return False
        return (
            self.slices.has_data_control(outer)
            and self.slices.has_data_control(loop)
            and sum(1 for _ in ops_within(self.body)) <= _MOST
        )

    def _ops(self) -> list[Operation]:
        """The ops of the loop and of its arms of which data decide; those of an arm behind what it is in."""
        return [op for block in self._blocks for op in block.ops]

    # ------------------------------------------------------------ what values depend on

    def key(self, value: SSAValue) -> SSAValue | None:
        """The one index that decides a value which is no data: the column that it is read of, or itself."""
        found = self._indices(value)
        if not found or self.slices.is_data(value):
            return None
        keys = {self._column(index) or index for index in found}
        return keys.pop() if len(keys) == 1 else None

    def _indices(self, value: SSAValue) -> Indices | None:
        """The indices of data by which a value is read; None if it depends on the row in another way."""
        if value not in self._known:
            self._known[value] = None  # while it is being found out
            self._known[value] = self._find_indices(value)
        return self._known[value]

    def _find_indices(self, value: SSAValue) -> Indices | None:
        if not is_inside(value, self.outer):
            return frozenset()
        op = value.owner
        if isinstance(op, Block) or op.parent not in self._blocks:
            return None
        if isinstance(op, rt.LoadOp):
            return self._read_by(op)
        found: Indices = frozenset()
        for operand in operand_tuple(op) if is_speculatable(op) and not op.regions else (self.body.args[0],):
            part = self._indices(operand)
            if part is None:
                return None
            found |= part
        return found

    def _read_by(self, load: rt.LoadOp) -> Indices | None:
        """The indices by which an element is read: of views, too."""
        if any(may_overlap(root(load.buffer), to) for to in self._written):
            return None
        buffer, places = load.buffer, [load.index]
        while isinstance(view := buffer.owner, rt.ViewOp):
            places.append(view.offset)
            buffer = view.buffer
        places = [place for place in places if is_inside(place, self.outer)]
        if is_inside(buffer, self.outer) or not all(map(self._is_index, places)):
            return None
        return frozenset(places)

    def _is_index(self, place: SSAValue) -> bool:
        """Whether a place in memory is data of the row, and not a function of its number."""
        return self.slices.is_data(place) and any(isinstance(op, rt.LoadOp) for op in self._makers([place]))

    def _column(self, index: SSAValue) -> SSAValue | None:
        """What an index is read of, if that is a single column of ints."""
        makers = self._makers([index])
        loads = [op for op in makers if isinstance(op, rt.LoadOp)]
        if len(loads) != 1 or loads[0].res.type != i32:
            return None
        uses_row = (op for op in makers if self.body.args[0] in op.operands and op is not loads[0])
        of_row = set(self._makers([loads[0].index]))
        return loads[0].res if all(op in of_row for op in uses_row) else None

    def _makers(self, values: Iterable[SSAValue]) -> list[Operation]:
        """What values are computed by in a row, in order."""
        found: set[Operation] = set()
        work = list(values)
        while work:
            op = work.pop().owner
            if isinstance(op, Operation) and op.parent in self._blocks and op not in found:
                found.add(op)
                work += op.operands
        return [op for op in self._ops() if op in found] if len(found) > 1 else list(found)

    def _is_affine(self) -> bool:
        """Whether what rows add is affine in their data, with what an index decides for coefficients: rows of the same
        index then have a mean, and are computed once as a whole (`unique-rows`).
        """
        return all(self._is_affine_in_row(op) for op in ops_within(self.body))

    def _is_affine_in_row(self, op: Operation) -> bool:
        of_row = [n for n, value in enumerate(operand_tuple(op)) if value.type == f64 and self._indices(value) is None]
        if not of_row or type(op) in _AFFINE or (op.results and self.slices.is_data(op.results[0])):
            return True
        if isinstance(op, rt.MathOp) and op.function.data == "fma":
            return not {0, 1}.issubset(of_row)
        return len(of_row) == 1 and (isinstance(op, arith.MulfOp) or (isinstance(op, arith.DivfOp) and of_row == [0]))

    # ------------------------------------------------------------ what is worth a table

    def _multiply_by_inverses(self) -> None:
        """Lets rows multiply by inverses of what an index decides, where they divide by it."""
        for op in [op for op in self._ops() if type(op) is arith.DivfOp]:
            if self.key(op.rhs) is not None and self._indices(op.lhs) is None and not is_stepped(op):
                write = OpWriter(op)
                product = write.real(arith.MulfOp, op.lhs, inverse_of(op.rhs, write))
                replace_uses(op.result, product)
                discard(op)

    def _take_sums_apart(self, keys: Collection[SSAValue | None]) -> None:
        """Adds what an index decides to the target on its own."""
        for op in [op for op in self._ops() if isinstance(op, ad.TargetAddOp)]:
            assert op.parent is not None
            parts = list(addends(op.value, op.parent))
            if len(parts) > 1 and any(isinstance(value, SSAValue) and self.key(value) in keys for value, _ in parts):
                take_apart(op, parts)

    def _values_of(self, key: SSAValue) -> list[IndexedValues]:
        """What an index decides, in the loop and in each arm."""
        if not self._reads_more(key):
            return []
        flags = self._flags(key)
        additions = [op for op in self._ops() if isinstance(op, ad.TargetAddOp) and self.key(op.value) is key]
        gone = {*additions, *(merge for found in flags.values() for merge, _ in found)}
        values = list(self._with_tables(key, gone))
        found: list[IndexedValues] = []
        for block in self._blocks:
            own = [value for value in values if block_of(value) is block]
            added = [op for op in additions if op.parent is block]
            each = self._in_block(block, key, own, added, flags if block is self.body else {})
            found += [] if each is None else [each]
        return found

    def _in_block(
        self, block: Block, key: SSAValue, values: list[SSAValue], additions: list[ad.TargetAddOp], flags: Flags
    ) -> IndexedValues | None:
        decided = [*values, *(op.value for op in additions), *(value for each in flags.values() for _, value in each)]
        indices = {index for value in decided for index in self._indices(value) or ()}
        place = self._place(key, self._makers(indices))
        if place is None or not any(map(self._is_worth, decided)):
            return None
        places = self._makers([place])
        needed = {*self._makers(decided), *places}
        functions = sum(is_costly_function(op) and not self.slices.is_data(op.results[0]) for op in needed)
        ops = [op for op in self._ops() if op in needed]
        return IndexedValues(block, place, places, values, additions, flags, ops, functions) if functions else None

    def _with_tables(self, key: SSAValue, gone: set[Operation]) -> Iterator[SSAValue]:
        """What rows need of what is costly. `gone`: what they do no more."""
        for value in (result for op in self._ops() for result in op.results):
            if value.type in (f64, i1) and self.key(value) is key and self._is_worth(value):
                users = (use.operation for use in value.uses)
                if not all(user in gone or self._is_part(user, key, gone) for user in users):
                    yield value

    def _is_part(self, user: Operation, key: SSAValue, gone: set[Operation]) -> bool:
        """Whether an op computes something else that the same index decides, which has a table."""
        if user.parent not in self._blocks or len(user.results) != 1 or self.key(user.results[0]) is not key:
            return False
        if user.results[0].type in (f64, i1):
            return True
        return all(use.operation in gone or self._is_part(use.operation, key, gone) for use in user.results[0].uses)

    def _is_worth(self, value: SSAValue) -> bool:
        """Whether a costly function, or a quotient, that an index decides is among what computes a value."""
        op = value.owner
        if not isinstance(op, Operation) or op.parent not in self._blocks or self.key(value) is None:
            return False
        if (known := self._costly.get(value)) is None:
            known = is_costly_function(op) or _divides(op) or any(map(self._is_worth, op.operands))
            self._costly[value] = known
        return known

    def _flags(self, key: SSAValue) -> Flags:
        """What an index decides of flags that begin with 0."""
        found: Flags = {}
        if self.loop is not self.outer:
            return found
        for k, end in enumerate(terminator(self.body).operands):
            if end.type == i64 and constant_integer(self.loop.iter_args[k]) == 0 and (merges := self._merges(end, key)):
                found[k] = merges
        return found

    def _merges(self, value: SSAValue, key: SSAValue) -> list[tuple[arith.OrIOp, SSAValue]]:
        op = value.owner
        if not isinstance(op, arith.OrIOp) or op.parent is not self.body or not value.has_one_use():
            return []
        found: list[tuple[arith.OrIOp, SSAValue]] = []
        for operand in op.operands:
            found += [(op, operand)] if self.key(operand) is key else self._merges(operand, key)
        return found

    def _place(self, key: SSAValue, makers: list[Operation]) -> SSAValue | None:
        """Where tables have the values of a row: at an index that differs for each of the column; at its own number, if
        that may not be so. `makers`: of the indices.
        """
        if key.type == i64:
            return key
        made = (op.results[0] for op in reversed(makers))
        return next((value for value in made if value.type == i64 and self._is_shifted(value, key)), None)

    def _is_shifted(self, index: SSAValue, column: SSAValue) -> bool:
        """Whether an index is a number of a column, and what all rows add to it."""
        while index is not column:
            op = index.owner
            if isinstance(op, arith.ExtSIOp):
                index = op.input
            elif isinstance(op, _SUMS) and not is_inside(op.rhs, self.outer):
                index = op.lhs
            else:
                return False
        return True

    def _reads_more(self, key: SSAValue) -> bool:
        """Whether rows read more than one column: else they are the same for each index as a whole (`unique-rows`)."""
        loads = [op for op in ops_within(self.body) if isinstance(op, rt.LoadOp) and is_inside(op.index, self.outer)]
        return any(op.res is not key and not self._is_index(op.index) for op in loads)


def _rows_of_strip(strips: StripsOfRows) -> scf.ForOp:
    """The last loop over the rows of a strip: what they add is computed there of what others have filled."""
    loops = [op for op in strips.loop.body.block.ops if type(op) is scf.ForOp and op.lb is strips.begin]
    return next((loop for loop in reversed(loops) if loop.ub is strips.end.result), strips.loop)


def _with_arms(block: Block, slices: DataSlices) -> Iterator[Block]:
    """A block, and the arms of which data decide in it."""
    yield block
    for op in block.ops:
        if type(op) is scf.IfOp and slices.is_data(op.cond):
            for region in op.regions:
                for arm in region.blocks:
                    yield from _with_arms(arm, slices)


def _divides(op: Operation) -> bool:
    return isinstance(op, arith.DivfOp) or (isinstance(op, rt.MathOp) and op.function.data == "inv")
