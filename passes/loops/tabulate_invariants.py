"""Costly expressions that an outer loop repeats for every iteration of an inner one become tables.

    for n: for k: ... log(theta[k]) ...    →    for k: table[k] = log(theta[k])      for n: for k: ... table[k] ...

What depends on inner loop variables, but not on that of an outer loop, nor on anything that loop changes, is computed
before the outer loop, once for each combination of the inner variables it depends on. The reverse sweep profits, too:
the derivative of `log` is taken once per entry. Mixtures, hidden Markov models and models of many groups live on this.

Runs on hot units when their loops are free of checks: it reads memory ahead of the loop that the program reads it in.
With `branches`, checks of domains do not matter, and what runs under conditions takes part:

    for n: if (y[n]) ... log(p) ...    →    bind: for n: if (y[n]) used = 1      if (used) v = log(p)      for n: ... v

Nothing is computed that the program would not compute: an entry is filled if an iteration asks for it, which must
depend on data alone. So no element is read that may not be there, and no `0 * infinity` is born in the reverse sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, f64, i1, i64
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import CMPF, CMPI, constant, constant_integer
from ulam.dialects.walk import ops_of, ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import Root, is_speculatable, may_overlap, root, written_roots_within
from ulam.passes.loops.tables import IterationTable, Loops, is_costly_function
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE


@record(frozen=True)
class TabulateInvariants(TellingPass):
    """Computes what outer loops of `evaluate` would repeat once, into tables; with `branches`, also what is repeated
    under conditions.
    """

    name = "tabulate-invariants"
    changes_only = EVALUATE

    branches: bool = False

    def changes(self, module: ModuleOp) -> bool:
        return tabulate_invariants(evaluate_of(module, self.name), branches=self.branches)


@record
class _Group:
    """Expressions of a block that are computed by one new nest of loops, `inner`, in front of `outer`.

    `around`: the loops that `outer` stands in. `is_sure`: if `outer` runs, all entries are asked for.
    """

    around: Loops
    outer: scf.ForOp
    inner: Loops
    block: Block
    is_sure: bool
    ops: list[Operation] = field(default_factory=list[Operation])
    used: _Flags | None = None


def tabulate_invariants(function: func.FuncOp, *, branches: bool = False) -> bool:
    """Makes tables in all loop nests of a function; whether there were any."""
    found = False
    slices = DataSlices() if branches else None
    for op in ops_of(function.body.block):
        if isinstance(op, scf.ForOp) and _Nest(op, slices).tabulate():
            found = True
    return found


class _Nest:
    """One top-level loop. `slices`: what of the function depends on data, if expressions leave branches, too."""

    def __init__(self, top: scf.ForOp, slices: DataSlices | None) -> None:
        self.top = top
        self.slices = slices
        self.written: set[Root] = written_roots_within(top)
        self._needs: dict[SSAValue, frozenset[scf.ForOp] | None] = {}
        self._costly: dict[SSAValue, bool] = {}
        self.groups: dict[tuple[scf.ForOp, Loops, Block | None], _Group] = {}

    def tabulate(self) -> bool:
        inner = list(ops_within(self.top.body))
        kinds = scf.ForOp if self.slices is None else scf.ForOp | scf.IfOp
        if not any(isinstance(op, kinds) for op in inner):
            return False
        if any(self._forbids(op) for op in inner):
            return False
        self._collect(self.top, ())
        groups = [group for group in self.groups.values() if group.is_sure or self._note_used(group)]
        for group in groups:
            _write(group)
        return bool(groups)

    def _forbids(self, op: Operation) -> bool:
        if isinstance(op, rt.CheckOp):
            return self.slices is None or not rt.HarmlessAttr.marks(op)
        return isinstance(op, rt.KernelOp | func.CallOp | scf.WhileOp)

    def _collect(self, op: Operation, loops: Loops) -> None:
        if isinstance(op, scf.ForOp):
            loops = (*loops, op)
            for inner in op.body.block.ops:
                self._collect(inner, loops)
        elif op.regions:
            if self.slices is not None and isinstance(op, scf.IfOp):
                for region in op.regions:
                    for block in region.blocks:
                        for inner in block.ops:
                            self._collect(inner, loops)
        elif len(op.results) == 1 and op.results[0].type == f64:
            self._consider(op, loops)

    def _consider(self, op: Operation, loops: Loops) -> None:
        needs = self.needs(op.results[0])
        if needs is None or not self._is_costly(op.results[0]):
            return
        outer = next((loop for loop in loops if loop not in needs), None)
        if outer is None:
            return
        place = loops.index(outer)
        inner = tuple(loop for loop in loops[place + 1 :] if loop in needs)
        if any(is_inside(bound, outer) for loop in inner for bound in (loop.lb, loop.ub)):
            return
        block = op.parent
        assert block is not None
        is_sure = self._is_sure(block, outer, inner) or (self.slices is None and not self._loads(op.results[0]))
        if not inner and (is_sure or self.slices is None):
            return  # a plain invariant
        if all(self._is_part(use.operation, needs, block) for use in op.results[0].uses):
            return  # part of a larger expression that gets a table
        key = (outer, inner, None if is_sure else block)
        if key not in self.groups:
            self.groups[key] = _Group(loops[:place], outer, inner, block, is_sure)
        self.groups[key].ops.append(op)

    def _is_sure(self, block: Block, outer: scf.ForOp, inner: Loops) -> bool:
        """Whether what `block` computes is asked for in all iterations of `inner` if `outer` has one."""
        op = block.parent_op()
        while op is not outer:
            assert op is not None
            if not isinstance(op, scf.ForOp):
                return False
            if op not in inner and any(is_inside(bound, outer) for bound in (op.lb, op.ub)):
                return False
            op = op.parent_op()
        return True

    def _note_used(self, group: _Group) -> bool:
        """Has `bind` find out which entries of a group are asked for; False if that does not depend on data alone."""
        loops = (*group.around, *group.inner)
        if any(is_inside(bound, self.top) for loop in loops for bound in (loop.lb, loop.ub)):
            return False
        op = group.block.parent_op()
        while self.slices is not None and op is not None and self.slices.has_data_control(op):
            if op is self.top:
                group.used = _Flags(self.top, group.block, loops, self.slices)
                return True
            op = op.parent_op()
        where = group.block.parent_op() or group.outer
        remark_on(TabulateInvariants.name, where, "whether it is taken depends on parameters", done=False)
        return False

    def _is_part(self, user: Operation, needs: frozenset[scf.ForOp], block: Block) -> bool:
        if user.regions or len(user.results) != 1 or user.results[0].type != f64 or user.parent is not block:
            return False
        return self.needs(user.results[0]) == needs

    def _loads(self, value: SSAValue) -> bool:
        """Whether a value is computed from loads within the nest."""
        work, seen = [value], {value}
        while work:
            owner = work.pop().owner
            if isinstance(owner, rt.LoadOp) and self.top.is_ancestor(owner):
                return True
            if isinstance(owner, Operation) and self.top.is_ancestor(owner):
                work += [operand for operand in owner.operands if operand not in seen]
                seen.update(owner.operands)
        return False

    # ------------------------------------------------------------ what a value depends on

    def needs(self, value: SSAValue) -> frozenset[scf.ForOp] | None:
        """The loops on whose variables a value depends; None if it depends on what the nest changes."""
        if value not in self._needs:
            self._needs[value] = None  # while it is being found out
            self._needs[value] = self._find_out(value)
        return self._needs[value]

    def _find_out(self, value: SSAValue) -> frozenset[scf.ForOp] | None:
        if not is_inside(value, self.top):
            return frozenset()
        if isinstance(value, BlockArgument):
            loop = value.owner.parent_op()
            return frozenset((loop,)) if isinstance(loop, scf.ForOp) and value.index == 0 else None
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, rt.LoadOp):
            source = root(op.buffer)
            if any(may_overlap(source, w) for w in self.written):
                return None
        elif not is_speculatable(op):
            return None
        found: frozenset[scf.ForOp] = frozenset()
        for operand in op.operands:
            part = self.needs(operand)
            if part is None:
                return None
            found |= part
        return found

    def _is_costly(self, value: SSAValue) -> bool:
        if not is_inside(value, self.top) or not isinstance(op := value.owner, Operation):
            return False
        if (known := self._costly.get(value)) is None:
            self._costly[value] = False
            costly = isinstance(op, arith.DivfOp) or is_costly_function(op)
            known = self._costly[value] = costly or any(self._is_costly(o) for o in op.operands)
        return known


def _count(expressions: int) -> str:
    return "an expression" if expressions == 1 else f"{expressions} expressions"


# ---------------------------------------------------------------- which entries are asked for


_EntryOf = Callable[[dict[SSAValue, SSAValue]], tuple[list[Operation], SSAValue]]


class _Flags:
    """A table with an element for each entry of a group: 1 if an iteration of `top` reaches `block` with it."""

    def __init__(self, top: scf.ForOp, block: Block, loops: Loops, slices: DataSlices) -> None:
        self._table = table = IterationTable(loops, moves=True)
        assert top.parent is not None and block.first_op is not None
        mark, one = constant(1.0, f64), constant(1, i64)
        block.insert_op_before(mark, block.first_op)
        ops = [*table.ops, one]

        def marked(count: SSAValue, entry: _EntryOf) -> SSAValue:
            """Memory of which what `entry` gives of the iterations that reach `block` is 1."""

            def note(original: Operation, copy: Operation, values: dict[SSAValue, SSAValue]) -> None:
                assert copy.parent is not None
                index_ops, index = entry(values)
                copy.parent.add_ops([*index_ops, rt.StoreOp(copy.results[0], memory.res, index)])

            memory = rt.AllocOp(count, rt.BufferType(f64), zero=True)
            ops.extend((memory, slices.copy(top, [mark], note)))
            return memory.res

        def of_all(values: dict[SSAValue, SSAValue]) -> tuple[list[Operation], SSAValue]:
            zero = constant(0, i64)
            return [zero], zero.result

        self._memory = self._some = marked(one.result, of_all)
        if table.count is not None:  # all of it: it is read where no entry is asked for, too
            self._memory = marked(table.count, table.entry_here)
        top.parent.insert_ops_before(ops, top)
        discard(mark)

    def is_used(self, block: Block, variables: Sequence[SSAValue]) -> SSAValue:
        """Whether the entry of `variables` is asked for, computed at the end of `block`."""
        ops, index = self._table.entry(variables)
        block.add_ops([*ops, *(marked := _is_marked(self._memory, index))])
        return marked[-1].results[0]

    def if_some(self, many: SSAValue, none: SSAValue, ops: list[Operation]) -> SSAValue:
        """An integer if any entries are asked for, else another one; what computes that is added to `ops`."""
        zero = constant(0, i64)
        marked = _is_marked(self._some, zero.result)
        either = arith.SelectOp.create(operands=(marked[-1].results[0], many, none), result_types=(i64,))
        ops += [zero, *marked, either]
        return either.result


def _is_marked(memory: SSAValue, index: SSAValue) -> list[Operation]:
    """Whether an element is 1: the result of the last op."""
    flag, one = rt.LoadOp(memory, index), constant(1.0, f64)
    is_one = arith.CmpfOp.create(
        operands=(flag.res, one.result),
        result_types=(i1,),
        properties={"predicate": CMPF["oeq"], "fastmath": arith.FastMathFlagsAttr("none")},
    )
    return [flag, one, is_one]


# ---------------------------------------------------------------- writing


def _write(group: _Group) -> None:
    outer = group.outer
    assert outer.parent is not None
    what = f"{_count(len(group.ops))} that each iteration repeats"
    kind = "a table, filled before the loop, has" if group.inner else "computed before the loop:"
    told = f"{kind} {what}" + ("" if group.is_sure else ", where an iteration asks for it")
    remark_on(TabulateInvariants.name, outer, told, done=True)
    if not group.inner:
        _write_values(group)
        return
    table = IterationTable(group.inner)
    if group.used is not None and table.count is not None:
        table.count = group.used.if_some(table.count, table.ops[0].results[0], table.ops)
    memory = [table.allocate(op) for op in group.ops]
    outer.parent.insert_ops_before([*table.ops, *memory, *_fill(group, table, memory)], outer)
    for op, allocated in zip(group.ops, memory, strict=True):
        table.read_instead(op, allocated.res)


def _write_values(group: _Group) -> None:
    """Each expression is one value in front of the loop."""
    block = Block()
    values = _compute(group, block, [loop.body.block.args[0] for loop in group.around], {})
    assert group.outer.parent is not None
    ops = ops_of(block)
    for op in ops:
        op.detach()
    group.outer.parent.insert_ops_before(ops, group.outer)
    for op, value in zip(group.ops, values, strict=True):
        replace_uses(op.results[0], value)
        discard(op)


def _compute(
    group: _Group, block: Block, variables: Sequence[SSAValue], values: dict[SSAValue, SSAValue]
) -> list[SSAValue]:
    """The group's expressions at the end of `block`, for an entry; 0 if nobody asks for it."""
    if group.used is None:
        block.add_ops(op.clone(value_mapper=values) for op in _slice(group))
        return [values[op.results[0]] for op in group.ops]
    used = group.used.is_used(block, variables)
    zero = constant(0.0, f64)
    block.add_op(zero)
    arm = Block([op.clone(value_mapper=values) for op in _slice(group)])
    arm.add_op(scf.YieldOp.create(operands=[values[op.results[0]] for op in group.ops]))
    otherwise = Block([scf.YieldOp.create(operands=[zero.result for _ in group.ops])])
    branch = scf.IfOp.create(
        operands=(used,), result_types=[f64 for _ in group.ops], regions=[Region(arm), Region(otherwise)]
    )
    block.add_op(branch)
    return list(branch.results)


def _fill(group: _Group, table: IterationTable, memory: list[rt.AllocOp]) -> list[Operation]:
    """The nest that computes all entries, and what it needs in front."""
    blocks = [Block(arg_types=[i64]) for _ in group.inner]
    variables: list[SSAValue] = [block.args[0] for block in blocks]
    mapped: dict[SSAValue, SSAValue] = {
        loop.body.block.args[0]: variable for loop, variable in zip(group.inner, variables, strict=True)}  # fmt: skip
    body = blocks[-1]
    values = _compute(group, body, [*(loop.body.block.args[0] for loop in group.around), *variables], mapped)
    ops, index = table.entry(variables)
    body.add_ops(ops)
    for value, allocated in zip(values, memory, strict=True):
        body.add_op(rt.StoreOp(value, allocated.res, index, initial=True))
    nest: Operation | None = None
    ends = [loop.ub for loop in group.inner]
    before: list[Operation] = []
    if group.is_sure:
        before, ends[0] = _end_if_it_runs(group)
    elif group.used is not None:
        ends[0] = group.used.if_some(ends[0], group.inner[0].lb, before)
    for loop, block, end in zip(reversed(group.inner), reversed(blocks), reversed(ends), strict=True):
        if nest is not None:
            block.add_op(nest)
        block.add_op(scf.YieldOp.create())
        nest = scf.ForOp.create(operands=(loop.lb, end, loop.step), regions=[Region(block)], location=loop.location)
    assert nest is not None
    return [*before, nest]


def _end_if_it_runs(group: _Group) -> tuple[list[Operation], SSAValue]:
    """The end of the outermost loop that fills the table: its beginning if no iteration asks for an entry."""
    loop = group.inner[0]
    ops: list[Operation] = []
    end = loop.ub
    for around in _loops_to(group.outer, group.block):
        if around not in group.inner and not _surely_runs(around):
            runs = arith.CmpiOp.create(
                operands=(around.lb, around.ub), result_types=(i1,), properties={"predicate": CMPI["slt"]}
            )
            either = arith.SelectOp.create(operands=(runs.result, end, loop.lb), result_types=(i64,))
            ops += [runs, either]
            end = either.result
    return ops, end


def _loops_to(outer: scf.ForOp, block: Block) -> Iterator[scf.ForOp]:
    """The loops that `block` stands in, up to `outer`."""
    op = block.parent_op()
    while isinstance(op, scf.ForOp):
        yield op
        op = op.parent_op() if op is not outer else None


def _surely_runs(loop: scf.ForOp) -> bool:
    lower, upper = constant_integer(loop.lb), constant_integer(loop.ub)
    return lower is not None and upper is not None and lower < upper


def _slice(group: _Group) -> list[Operation]:
    """What the group's expressions are computed from inside of `outer`, and they themselves, in an order that works."""
    done: dict[Operation, None] = {}

    def visit(op: Operation) -> None:
        if op in done:
            return
        for operand in op.operands:
            if isinstance(operand.owner, Operation) and is_inside(operand, group.outer):
                visit(operand.owner)
        done[op] = None

    for op in group.ops:
        visit(op)
    return list(done)
