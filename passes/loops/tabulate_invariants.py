"""Costly expressions that an outer loop repeats for every iteration of an inner one become tables.

    for n: for k: ... log(theta[k]) ...    →    for k: table[k] = log(theta[k])      for n: for k: ... table[k] ...

What depends on inner loop variables, but not on that of an outer loop, nor on anything that loop changes, is computed
before the outer loop, once for each combination of the inner variables it depends on. The reverse sweep profits, too:
the derivative of `log` is taken once per entry. Mixtures, hidden Markov models and models of many groups live on this.

Runs on hot units when their loops are free of checks: it reads memory ahead of the loop that the program reads it in.
"""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, f64, i64
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.effects import Root, is_speculatable, may_overlap, root, written_roots_within
from ulam.passes.loops.tables import IterationTable, Loops, is_costly_function
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.running import TellingPass


class TabulateInvariants(TellingPass):
    """Computes what outer loops of `evaluate` would repeat once, into tables."""

    name = "tabulate-invariants"

    def changes(self, module: ModuleOp) -> bool:
        return tabulate_invariants(evaluate_of(module, self.name))


@record
class _Group:
    """Expressions computed by one new nest of loops, `inner`, in front of `outer`."""

    outer: scf.ForOp
    inner: Loops
    ops: list[Operation] = field(default_factory=list)


def tabulate_invariants(function: func.FuncOp) -> bool:
    """Makes tables in all loop nests of a function; whether there were any."""
    found = False
    for op in list(function.body.block.ops):
        if isinstance(op, scf.ForOp) and _Nest(op).tabulate():
            found = True
    return found


class _Nest:
    """One top-level loop."""

    def __init__(self, top: scf.ForOp) -> None:
        self.top = top
        self.written: set[Root] = written_roots_within(top)
        self._needs: dict[SSAValue, frozenset[scf.ForOp] | None] = {}
        self._costly: dict[SSAValue, bool] = {}
        self.groups: dict[tuple[scf.ForOp, Loops], _Group] = {}

    def tabulate(self) -> bool:
        inner = list(ops_within(self.top.body))
        if not any(isinstance(op, scf.ForOp) for op in inner):
            return False
        if any(isinstance(op, rt.CheckOp | rt.KernelOp | func.CallOp | scf.WhileOp) for op in inner):
            return False
        self._collect(self.top, ())
        for group in self.groups.values():
            told = f"a table, filled before the loop, has {_count(len(group.ops))} that each iteration repeats"
            remark_on(TabulateInvariants.name, group.outer, told, done=True)
            _write(group)
        return bool(self.groups)

    def _collect(self, op: Operation, loops: Loops) -> None:
        if isinstance(op, scf.ForOp):
            loops = (*loops, op)
            for inner in op.body.block.ops:
                self._collect(inner, loops)
        elif op.regions:
            return  # what runs under a condition stays there
        elif len(loops) > 1 and len(op.results) == 1 and op.results[0].type == f64:
            self._consider(op, loops)

    def _consider(self, op: Operation, loops: Loops) -> None:
        needs = self.needs(op.results[0])
        if not needs or not self._is_costly(op.results[0]):
            return
        outer = next((loop for loop in loops if loop not in needs), None)
        if outer is None:
            return
        inner = tuple(loop for loop in loops[loops.index(outer) + 1 :] if loop in needs)
        if not inner or any(is_inside(bound, outer) for loop in inner for bound in (loop.lb, loop.ub)):
            return
        if all(self._is_part(use.operation, needs, loops) for use in op.results[0].uses):
            return  # part of a larger expression that gets a table
        self.groups.setdefault((outer, inner), _Group(outer, inner)).ops.append(op)

    def _is_part(self, user: Operation, needs: frozenset[scf.ForOp], loops: Loops) -> bool:
        if (
            user.regions
            or len(user.results) != 1
            or user.results[0].type != f64
            or user.parent is not loops[-1].body.block
        ):
            return False
        return self.needs(user.results[0]) == needs

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


# ---------------------------------------------------------------- writing


def _write(group: _Group) -> None:
    outer = group.outer
    assert outer.parent is not None
    table = IterationTable(group.inner)
    memory = [table.allocate(op) for op in group.ops]
    outer.parent.insert_ops_before([*table.ops, *memory, _fill(group, table, memory)], outer)
    for op, allocated in zip(group.ops, memory, strict=True):
        table.read_instead(op, allocated.res)


def _fill(group: _Group, table: IterationTable, memory: list[rt.AllocOp]) -> Operation:
    """The nest that computes all entries."""
    blocks = [Block(arg_types=[i64]) for _ in group.inner]
    variables: list[SSAValue] = [block.args[0] for block in blocks]
    values: dict[SSAValue, SSAValue] = {
        loop.body.block.args[0]: variable for loop, variable in zip(group.inner, variables, strict=True)}  # fmt: skip
    body = blocks[-1]
    for op in _slice(group):
        body.add_op(op.clone(value_mapper=values))
    ops, index = table.entry(variables)
    body.add_ops(ops)
    for op, allocated in zip(group.ops, memory, strict=True):
        value = values[op.results[0]]
        body.add_op(rt.StoreOp(value, allocated.res, index, initial=True))
    nest: Operation | None = None
    for loop, block in zip(reversed(group.inner), reversed(blocks), strict=True):
        if nest is not None:
            block.add_op(nest)
        block.add_op(scf.YieldOp.create())
        nest = scf.ForOp.create(operands=(loop.lb, loop.ub, loop.step), regions=[Region(block)], location=loop.location)
    assert nest is not None
    return nest


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
