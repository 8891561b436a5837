"""Loops over rows of data: what each iteration reads of the data, and that all it leaves behind are additions.

    for n: target += f(x[n], theta[g[n]]);  s += h(y[n])

The rows of such a loop may be taken in any order, in groups, or once for all that are equal: additions to the target,
to sums that the loop carries and to elements of memory may be made in any order, and the number of a row does nothing
but to find its data. A nest whose outer loop has nothing but the inner one is a loop over rows, too: one for each pair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i32
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import CMPI, constant_integer, known_constant, may_reassociate, not_clamped
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.library.statuses import LOCATE
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.carried_sums import lone_sum
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import DIVISIONS, PURE, UNKNOWN, Root, may_overlap, root, viewed
from ulam.passes.loops.index_forms import Form, IndexForms, plus
from ulam.passes.loops.tables import are_as_many_as_data, is_costly_function

_ACCESSES: dict[type[Operation], int] = {
    rt.LoadOp: 0,
    rt.StoreOp: 1,
    rt.FillOp: 0,
    ad.AccumulateOp: 0,
    ad.TakeOp: 0,
    ad.KeepOp: 0,
    ad.KeptOp: 0,
    rt.CopyOp: 0,
}
"""Memory op → which operand is the buffer."""

_NOT_REPEATED = (arith.DivfOp, scf.IfOp, rt.AllocOp, ad.TargetAddOp, ad.AccumulateOp)
_COLUMN_TYPES = (f64, i32)
_MOST_COLUMNS = 32
_USES_NUMBER = "it uses the number of a row"


class NoRows(Exception):
    """Why a loop is none over rows, for those who read remarks."""


@record(frozen=True)
class RowColumn:
    """Loads of one element of the data per row: `buffer[strides * variables + offset]`; of several by an inner loop.

    `may_be_missing`: some rows do not load it, and it may then not be there.
    """

    buffer: SSAValue
    strides: tuple[Form, ...]
    offset: Form
    loads: tuple[rt.LoadOp, ...]
    may_be_missing: bool
    across: Form | None = None
    """The distance of the elements that an inner loop reads, one for each iteration."""
    inner: scf.ForOp | None = None
    """The first such loop; others have as many iterations."""


@record(frozen=True)
class _Place:
    """Where loads find the data of a row."""

    buffer: SSAValue
    strides: tuple[Form, ...]
    offset: Form
    across: Form | None
    inner: scf.ForOp | None

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for loads of the same elements."""
        forms = (*self.strides, self.offset, self.across or {})
        bounds = None if self.inner is None else (_same(self.inner.lb), _same(not_clamped(self.inner.ub)))
        return self.buffer, bounds, *(tuple(sorted(form.items())) for form in forms)


@record
class LoopOverRows:
    """A loop over rows. Raises NoRows if it is none.

    `inner`: the loop inside, of a nest in which each pair of iterations is a row.
    """

    loop: scf.ForOp
    inner: scf.ForOp | None = None
    columns: list[RowColumn] = field(default_factory=list[RowColumn])
    computed: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    """Columns that are in no memory: what rows compute of their numbers and of data."""
    additions: list[ad.AccumulateOp] = field(default_factory=list[ad.AccumulateOp])
    """To memory that is there before and behind the loop."""
    sums: dict[int, int | None] = field(default_factory=dict[int, int | None])
    """Number of a value that the loop carries and adds to, or sets bits in → that of the inner loop's, if there is one.
    """
    branches: list[scf.IfOp] = field(default_factory=list[scf.IfOp])
    """Branches on what is data of the row."""
    numbers: set[SSAValue] = field(default_factory=set[SSAValue])
    """What is computed from the numbers of rows: where data are."""

    def __post_init__(self) -> None:
        if any(constant_integer(loop.step) != 1 for loop in self.loops):
            raise NoRows("it does not count by one")
        self.inner = _only_loop(self.loop)
        if self.inner is not None and any(is_inside(bound, self.loop) for bound in self.inner.operands[:3]):
            self.inner = None
        if self.inner is not None and constant_integer(self.inner.step) != 1:
            self.inner = None
        if self.inner is not None and not are_as_many_as_data(self.loops, ops_within(self.inner.body)):
            self.inner = None  # copies of the columns of all pairs would be far larger than the data
        self._slices = DataSlices()
        if self.inner is not None:
            try:
                self._find()
                return
            except NoRows:
                self.inner = None
                self.columns, self.additions, self.branches, self.computed = [], [], [], {}
                self.sums, self.numbers = {}, set()
        self._find()

    @property
    def loops(self) -> tuple[scf.ForOp, ...]:
        """The loop, and the one inside that counts rows, too."""
        return (self.loop,) if self.inner is None else (self.loop, self.inner)

    @property
    def body(self) -> Block:
        """What is done for a row."""
        return self.loops[-1].body.block

    def _find(self) -> None:
        self._forms = IndexForms(self.loop)
        if not all(self._slices.has_data_control(loop) for loop in self.loops):
            raise NoRows("the number of its iterations is not data")
        self._find_sums()
        self._find_effects()
        self._find_columns()

    # ------------------------------------------------------------ what is left behind

    def _find_sums(self) -> None:
        body = self.loop.body.block
        for k, (argument, end) in enumerate(zip(body.args[1:], terminator(body).operands, strict=True)):
            if end is argument:
                continue
            if self.inner is None:
                if lone_sum(self.loop, k) is None:
                    raise NoRows("an iteration needs what an earlier one computed")
                self.sums[k] = None
            else:
                self._find_inner_sum(k, argument, end)
        if self.inner is not None and not self._carries_only(self.inner, self.sums.values()):
            raise NoRows("an iteration needs what an earlier one computed")

    @staticmethod
    def _carries_only(loop: scf.ForOp, positions: Collection[int | None]) -> bool:
        """Whether all else that a loop carries stays what it is."""
        body = loop.body.block
        values = zip(body.args[1:], terminator(body).operands, strict=True)
        return all(end is argument or k in positions for k, (argument, end) in enumerate(values))

    def _find_inner_sum(self, k: int, argument: SSAValue, end: SSAValue) -> None:
        """What the inner loop adds is passed on to the outer one."""
        assert self.inner is not None
        position = _passed_on(self.inner, argument, end)
        if position is None:
            raise NoRows("the loop around does more than to count")
        inside = self.inner.body.block
        last = terminator(inside).operands[position]
        if last is inside.args[1 + position]:
            return
        if lone_sum(self.inner, position) is None:
            raise NoRows("an iteration needs what an earlier one computed")
        if position in self.sums.values():
            raise NoRows("a sum is passed on twice")
        self.sums[k] = position

    def _find_effects(self) -> None:
        """Nothing but additions reaches memory that others see, and nothing that is added to is read."""
        read: set[Root] = set()
        added: set[Root] = set()
        for op in ops_within(self.loop.body.block):
            cls = type(op)
            if self.inner is not None and op.parent is self.loop.body.block and _is_costly(op):
                raise NoRows("the loop around does more than to count")
            if isinstance(op, rt.CopyOp) and not _is_of_iteration(memory := root(op.source), self.loop):
                read.add(memory)
            if cls in _ACCESSES:
                source = root(op.operands[_ACCESSES[cls]])
                if _is_of_iteration(source, self.loop):
                    continue
                if isinstance(op, rt.LoadOp):
                    read.add(source)
                elif isinstance(op, ad.AccumulateOp) and source is not UNKNOWN:
                    added.add(source)
                    self.additions.append(op)
                else:
                    raise NoRows("it writes to memory that others read")
            elif isinstance(op, rt.CheckOp):
                if op.status is None or op.status.value.data != LOCATE:
                    raise NoRows("it has a check that must see the first row that fails")
                if not rt.HarmlessAttr.marks(op):
                    raise NoRows("it has a check on which it depends what may be read")
            elif (
                cls not in PURE
                and cls not in DIVISIONS
                and not isinstance(op, scf.ForOp | scf.IfOp | scf.YieldOp | ad.TargetAddOp | rt.AllocOp)
            ):
                raise NoRows(f"it has {op.name}")
        if any(may_overlap(source, target) for source in read for target in added):
            raise NoRows("it reads what it adds to")

    # ------------------------------------------------------------ what is read

    def _find_columns(self) -> None:
        self.numbers.update(loop.body.block.args[0] for loop in self.loops)
        found: dict[tuple[object, ...], list[rt.LoadOp]] = {}
        places: dict[tuple[object, ...], _Place] = {}
        self._visit(self.loop.body.block, found, places)
        if not found and not self.computed:
            raise NoRows("its iterations read no data of their own")
        for key, loads in found.items():
            if not any(self._is_needed(load.res) for load in loads):
                continue
            place = places[key]
            missing = all(not self._is_always_loaded(load) for load in loads)
            if missing and (place.inner is not None or not all(self.has_data_control(load) for load in loads)):
                raise NoRows("whether a row has some data depends on parameters, or is told by an inner loop")
            self.columns.append(
                RowColumn(place.buffer, place.strides, place.offset, tuple(loads), missing, place.across, place.inner)
            )
        if len(self.columns) + len(self.computed) > _MOST_COLUMNS:
            raise NoRows("its iterations read too many data")

    def _visit(
        self,
        block: Block,
        found: dict[tuple[object, ...], list[rt.LoadOp]],
        places: dict[tuple[object, ...], _Place],
    ) -> None:
        for op in block.ops:
            numbered = [k for k, operand in enumerate(op.operands) if operand in self.numbers]
            if isinstance(op, rt.LoadOp) and numbered:
                if self._is_gathered(op):
                    self.computed[op.res] = None
                    continue
                if self._depends_on_data(op) or self._is_place_of_data(op.res):
                    self.numbers.add(op.res)
                    continue
                place = self._place(op)
                found.setdefault(place.key, []).append(op)
                places.setdefault(place.key, place)
            elif isinstance(op, rt.CheckOp) and 0 not in numbered:
                continue  # the numbers in its message, which `locate` tells
            elif op.regions:
                if op is not self.inner and numbered:
                    raise NoRows(_USES_NUMBER)
                if isinstance(op, scf.IfOp) and self._slices.is_data(op.cond):
                    self.branches.append(op)
                for region in op.regions:
                    for inside in region.blocks:
                        self._visit(inside, found, places)
            elif numbered and (
                isinstance(op, rt.ViewOp)
                or type(op) in DIVISIONS
                or (type(op) in PURE and all(map(self._slices.is_data, op.results)))
            ):
                self.numbers.update(op.results)
            else:
                for k in numbered:
                    self._compute(op, k)

    def _depends_on_data(self, load: rt.LoadOp) -> bool:
        """Whether a row reads data where other data and its number say."""
        return self._slices.is_data(load.res) and self._forms.of(load.index) is None

    def _is_gathered(self, load: rt.LoadOp) -> bool:
        """Whether a row reads data at a place that other data of it are for."""
        if not self._slices.is_data(load.res) or load.res.type not in _COLUMN_TYPES or not self.is_made_once(load.res):
            return False
        work = [load.index]
        while work:
            op = work.pop().owner
            if isinstance(op, Block):
                return False
            if isinstance(op, rt.LoadOp):
                return self._is_place_of_data(op.res) and self._forms.of(op.index) is not None
            work += [operand for operand in op.operands if operand in self.numbers]
        return False

    def _is_place_of_data(self, value: SSAValue) -> bool:
        """Whether data of a row do nothing but to say where other data of it are: those are its columns, then."""
        uses = [use.operation for use in value.uses]
        if value.type == f64 or not uses:
            return False
        for op in uses:
            is_data = all(map(self._slices.is_data, op.results))
            if isinstance(op, rt.LoadOp) and is_data:
                continue
            if type(op) not in PURE or not is_data or not all(map(self._is_place_of_data, op.results)):
                return False
        return True

    def _compute(self, op: Operation, k: int) -> None:
        """Lets what an op uses of the number of a row be a column. Raises NoRows if it cannot be one."""
        value = op.operands[k]
        if isinstance(made := value.owner, arith.SIToFPOp) and made.input.type == i32:
            value = made.input  # which takes half of the memory
        if value.type not in _COLUMN_TYPES or not self.is_made_once(value) or self._is_number(value):
            raise NoRows(_USES_NUMBER)
        self.computed[value] = None

    def is_made_once(self, value: SSAValue) -> bool:
        """Whether an op of the row, not of a loop inside, computes a value, and data decide whether it does."""
        op = value.owner
        if not isinstance(op, Operation) or not self.has_data_control(op):
            return False
        around = op.parent_op()
        while isinstance(around, scf.IfOp):
            around = around.parent_op()
        return around in self.loops

    def _is_number(self, value: SSAValue) -> bool:
        """Whether nothing but the numbers of rows makes a value: of a single loop it differs from row to row."""
        if self.inner is not None or value is self.loop.body.block.args[0]:
            return self.inner is None
        op = value.owner
        if isinstance(op, Block | rt.LoadOp):
            return isinstance(op, Block)
        return all(self._is_number(operand) for operand in op.operands if is_inside(operand, self.loop))

    def _is_needed(self, value: SSAValue) -> bool:
        """Whether rows need a value otherwise than to compute what is a column itself."""
        if value in self.computed:
            return False
        for use in value.uses:
            op = use.operation
            is_data = type(op) in (rt.LoadOp, *PURE) and all(map(self._slices.is_data, op.results))
            if not is_data or any(map(self._is_needed, op.results)):
                return True
        return False

    def _place(self, load: rt.LoadOp) -> _Place:
        """Buffer, strides and offset of what a row loads."""
        buffer = viewed(load.buffer)
        if not isinstance(buffer.owner, rt.BoundOp | rt.ConstantsOp):
            raise NoRows("a row reads a parameter of its own")
        if load.res.type not in _COLUMN_TYPES:
            raise NoRows("a row reads data of another kind than reals and ints")
        form = self._forms.of(load.index)
        view = load.buffer
        while form is not None and isinstance(owner := view.owner, rt.ViewOp):
            offset = self._forms.of(owner.offset)
            form = None if offset is None else plus(form, offset)
            view = owner.buffer
        if form is None:
            raise NoRows("where the data of a row are is itself data")
        strides: list[Form] = []
        for loop in self.loops:
            stride, form = self._split(form, loop)
            strides.append(stride)
        across: Form | None = None
        inner = load.parent_op() if self.inner is None else None
        inner = inner if isinstance(inner, scf.ForOp) and inner is not self.loop else None
        if inner is not None:
            across, form = self._split(form, inner)
            if constant_integer(inner.step) != 1 or not self._slices.has_data_control(inner):
                raise NoRows("an inner loop that reads data of the row has bounds that are not data")
            bounds = inner.lb, not_clamped(inner.ub)
            if inner.parent is not self.body or any(is_inside(bound, self.loop) for bound in bounds):
                raise NoRows("an inner loop that reads data of the row depends on the row")
        values = [value for part in (*strides, form, across or {}) for value in self._forms.values_of(part)]
        if any(is_inside(value, self.loop) for value in values):
            raise NoRows("an inner loop reads data of the row")
        if not all(map(self._slices.is_data, values)):
            raise NoRows("where the data of a row are is not data")
        if any(count < 0 for part in (*strides, across or {}) for count in part.values()):
            raise NoRows("it reads data backwards")
        return _Place(buffer, tuple(strides), form, across or None, inner if across else None)

    def _split(self, form: Form, loop: scf.ForOp) -> tuple[Form, Form]:
        """What the variable of a loop is multiplied by in a form, and the rest."""
        number = self._forms.number(loop.body.block.args[0])
        own = {monomial: count for monomial, count in form.items() if number in monomial}
        rest = {monomial: count for monomial, count in form.items() if number not in monomial}
        if len(own) > 1:
            raise NoRows("the data of a row are not at equal distances")
        return {tuple(_without(monomial, number)): count for monomial, count in own.items()}, rest

    def write(self, form: Form) -> tuple[list[Operation], SSAValue]:
        """The ops that compute a stride or an offset, in front of the loop, and its value."""
        return self._forms.write(form)

    def _is_always_loaded(self, load: rt.LoadOp) -> bool:
        around = load.parent_op()
        if isinstance(around, scf.ForOp) and around not in self.loops:  # of as many elements as it has iterations
            return around.parent is self.body
        return around in self.loops

    def has_data_control(self, op: Operation) -> bool:
        """Whether an op computes data, and data alone decide whether a row does so."""
        parent = op.parent_op()
        while parent is not None and parent is not self.loop:
            if not self._slices.has_data_control(parent):
                return False
            parent = parent.parent_op()
        return all(map(self._slices.is_data, op.results))


def _is_of_iteration(memory: Root, loop: scf.ForOp) -> bool:
    """Whether memory is a loop's own, or in front of it, but written by each iteration that reads it: kept values."""
    if not isinstance(memory, SSAValue):
        return False
    if is_inside(memory, loop):
        return True
    made = memory.owner
    if not isinstance(made, rt.AllocOp) or made.stack is None or constant_integer(made.count) != 1:
        return False
    written: list[set[tuple[SSAValue, int]]] = []
    users = {use.operation for use in memory.uses}
    for op in ops_within(loop):
        if op not in users:
            continue
        users.discard(op)
        guards = _guards(op, loop)
        if guards is None:
            return False
        if isinstance(op, rt.StoreOp):
            written.append(guards)
        elif not isinstance(op, rt.LoadOp) or not any(each <= guards for each in written):
            return False
    return not users


def _guards(op: Operation, loop: scf.ForOp) -> set[tuple[SSAValue, int]] | None:
    """The conditions of the branches that an op stands in, with their arms; None if a loop is around it."""
    found: set[tuple[SSAValue, int]] = set()
    while (parent := op.parent_op()) is not loop:
        if not isinstance(parent, scf.IfOp) or op.parent is None:
            return None
        found.add((parent.cond, [region.block for region in parent.regions if region.blocks].index(op.parent)))
        op = parent
    return found


def _same(value: SSAValue) -> object:
    """Equal for equal constants, too."""
    number = constant_integer(value)
    return value if number is None else number


def _without(monomial: tuple[int, ...], number: int) -> Iterator[int]:
    """A monomial divided by one of its factors."""
    divided = False
    for factor in monomial:
        if factor == number and not divided:
            divided = True
        else:
            yield factor


def _is_costly(op: Operation) -> bool:
    """Whether it is better not done once for each row of a nest."""
    return is_costly_function(op) or isinstance(op, _NOT_REPEATED)


def _only_loop(loop: scf.ForOp) -> scf.ForOp | None:
    """The only op with regions in a loop's body, if it is a loop without loops inside."""
    inside = [op for op in loop.body.block.ops if op.regions]
    if len(inside) != 1 or not isinstance(inside[0], scf.ForOp):
        return None
    return None if any(isinstance(op, scf.ForOp) for op in ops_within(inside[0].body.block)) else inside[0]


def _passed_on(inner: scf.ForOp, argument: SSAValue, end: SSAValue) -> int | None:
    """The number of the inner loop's result that a loop goes on with, alone or added to what it carries."""
    if (position := _result_of(inner, end)) is not None:
        return position if inner.iter_args[position] is argument else None
    op = end.owner
    if isinstance(op, arith.AddfOp) and may_reassociate(op):
        for own, other in (op.operands, tuple(reversed(op.operands))):
            if own is argument and (position := _result_of(inner, other)) is not None:
                return position if known_constant(inner.iter_args[position]) == 0.0 else None
    if isinstance(op, arith.OrIOp):
        for own, other in (op.operands, tuple(reversed(op.operands))):
            if own is argument and (position := _result_of(inner, _tested(other))) is not None:
                return position if constant_integer(inner.iter_args[position]) == 0 else None
    return None


def _result_of(loop: scf.ForOp, value: SSAValue | None) -> int | None:
    """Which result of a loop a value is."""
    return value.index if isinstance(value, OpResult) and value.owner is loop else None


def _tested(value: SSAValue) -> SSAValue | None:
    """`flag`, of `!(flag == 0)` as a number."""
    widened = value.owner
    if not isinstance(widened, arith.ExtUIOp):
        return None
    inverted = widened.input.owner
    if not isinstance(inverted, arith.XOrIOp):
        return None
    for one, other in (inverted.operands, tuple(reversed(inverted.operands))):
        compared = other.owner
        if constant_integer(one) in (1, -1) and isinstance(compared, arith.CmpiOp):
            if compared.properties["predicate"] == CMPI["eq"] and constant_integer(compared.rhs) == 0:
                return compared.lhs
    return None
