"""Lazy code motion: expressions are computed once, outside of loops, as late as possible.

    for (i in 1:10) { x = sqrt(10); y = sqrt(i); }        lcm_sym1__ = sqrt(10);
    z = sqrt(10);                                    →     for (i in 1:10) { x = lcm_sym1__; y = sqrt(i); }
                                                           z = lcm_sym1__;

The analyses are in `analysis/code_motion.py`. Moved or shared is what costs at least `least-cost` (an addition is 1, of
containers per element; `exp` 10; a product of matrices 100): lowering shares cheap scalars itself, and computes cheap
elements where they are used. Of nested expressions the largest is stored; a smaller one only where it is read beside
it. Not moved: errors past prints, draws and other errors; anything across a profile; anything into lazy operands.
With `preserve-numerics` densities are not shared, nor sums of them: the target gets their summands one by one, which
makes other last bits than their sum. Nothing else changes a bit.
Source: optimization levels documentation, "Lazy code motion".
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.library.records import record
from ulam.passes.analysis.code_motion import CodeMotion
from ulam.passes.analysis.expression_text import expression_text
from ulam.passes.analysis.expressions import DensityTerms, Expressions, NumberedExpression
from ulam.passes.analysis.flow_graph import FlowGraph, FlowNode, members
from ulam.passes.analysis.scopes import call_effects, functions, own_bodies
from ulam.passes.optimize.static_autodiff import StaticAutodiff
from ulam.passes.remarks import remark
from ulam.passes.rewriting import cloned, discard, replace_uses
from ulam.passes.variable_form import LOOPS, FreshNames, assign, declare, is_tree, read

_BOUND_FROM_OUTSIDE = ("data", "parameters")


@record(frozen=True)
class LazyCodeMotion(ModulePass):
    """Computes expressions once, outside of loops, as late as possible."""

    name = "lazy-code-motion"

    least_cost: int = 8
    preserve_numerics: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        calls = call_effects(op)
        terms = DensityTerms(functions(op)) if self.preserve_numerics else None
        names = FreshNames(op)
        static: dict[Operation, StaticAutodiff] = {}
        for body in own_bodies(op):
            if isinstance(body, stan.BlockOp) and body.kind.data in _BOUND_FROM_OUTSIDE:
                continue
            found = Expressions(FlowGraph(body), calls, self.least_cost, terms)
            if not found.candidates:
                continue
            motion = CodeMotion(found)
            _tell(motion)
            if motion.redundant:
                program = body.parent_op()
                if isinstance(program, stan.ProgramOp) and program not in static:
                    static[program] = StaticAutodiff(program)
                _Rewriter(motion, body.regions[0].block, names, static.get(program) if program else None).run()


class _Rewriter:
    """Does what the analyses found."""

    def __init__(self, motion: CodeMotion, block: Block, names: FreshNames, static: StaticAutodiff | None) -> None:
        self.motion = motion
        self.found = motion.found
        self.block = block
        self.names = names
        self.static = static
        self.variables: dict[int, stan.DeclareOp] = {}
        self.anchors = dict(self.found.statement_start)
        self.in_place: set[int] = set()  # statements in the midst of which something is stored
        self.settled: set[Operation] = set()  # what stands before the anchor of its statement; shared values, too

    def run(self) -> None:
        motion, nodes = self.motion, self.found.graph.nodes
        at_start: dict[FlowNode, list[NumberedExpression]] = {}
        at_end: dict[FlowNode, list[NumberedExpression]] = {}
        for node in nodes:
            number = node.number
            if bits := motion.at_start[number]:
                at_start[node] = motion.insertions(bits, motion.held[number], motion.live_at_start[number])[0]
            if bits := motion.at_end[number]:
                at_end[node] = motion.insertions(bits, motion.held_at_end[number], motion.used.after[number] or 0)[0]
        self._declare(
            [*motion.stored.values(), *(e.bit for found in (at_start, at_end) for v in found.values() for e in v)]
        )
        # Inserted expressions are copies of what stands in the program: made before that changes.
        starts = {node: self._copies(found, motion.held[node.number]) for node, found in at_start.items() if found}
        ends = {node: self._copies(found, motion.held_at_end[node.number]) for node, found in at_end.items() if found}
        for node in nodes:
            if node in starts:
                self._insert_at_start(node, starts[node][0])
            for op, _, _ in self.found.sets[node.number].events:
                if op in motion.gone:
                    continue
                if op in motion.redundant:
                    self._replace(op, motion.redundant[op])
                elif op in motion.stored:
                    self._store(op, motion.stored[op])
            if node in ends:
                self._insert_at_end(node, *ends[node])
        left_out = [op for op in self.found.occurrence_of if op in motion.gone or op in motion.redundant]
        for op in reversed(left_out):
            if op.parent is not None:  # else it went with the lazy op around it
                discard(op)
        first = self.block.first_op
        assert first is not None
        self.block.insert_ops_before(list(self.variables.values()), first)

    def _declare(self, bits: list[int]) -> None:
        """Makes the variables, in the order in which their expressions stand in the program."""
        for bit in sorted(set(bits)):
            op = self.found.candidates[bit].op
            variable = self.variables[bit] = declare(self.names.fresh("lcm"), op.results[0].type, op.location)
            if self.static is not None and not self.static.of(op.results[0]):
                variable.properties["data_only"] = UnitAttr()

    def _variable(self, bit: int) -> SSAValue:
        return self.variables[bit].results[0]

    # ------------------------------------------------------------ what stands in the program

    def _replace(self, op: Operation, bit: int) -> None:
        """An occurrence becomes a read."""
        new = read(self._variable(bit), op.location)
        assert op.parent is not None
        op.parent.insert_op_before(new, op)
        replace_uses(op.results[0], new.results[0])

    def _store(self, op: Operation, bit: int) -> None:
        """`v = e`  →  `lcm = e; v = lcm`, stored before the statement that `e` is part of, if nothing forbids."""
        variable = self._variable(bit)
        block = op.parent
        assert block is not None
        statement = self.found.statement_of[op]
        new = read(variable, op.location)
        block.insert_op_after(new, op)
        replace_uses(op.results[0], new.results[0])
        store = assign(variable, op.results[0], op.location)
        occurrence = self.found.occurrence_of[op]
        ordered = self.found.first_ordered.get(statement)
        quiet = not occurrence.expression.throws or ordered is None or ordered >= occurrence.start
        if statement in self.in_place or not quiet:
            self.in_place.add(statement)
            block.insert_op_after(store, op)
            return
        tree = self._tree(op)
        anchor = self.anchors[statement]
        while anchor in tree:
            following = anchor.next_op
            assert following is not None
            anchor = following
        self.anchors[statement] = anchor
        for part in tree:
            if part not in self.settled and self.found.statement_of.get(part, statement) == statement:
                part.detach()
                block.insert_op_before(part, anchor)
        block.insert_op_before(store, anchor)
        self.settled.update(tree)

    @staticmethod
    def _tree(root: Operation) -> dict[Operation, None]:
        """The ops of an expression in the block of its root, in order."""
        found = {root}
        pending = [root]
        while pending:
            for operand in pending.pop().operands:
                owner = operand.owner
                if not isinstance(owner, Block) and owner.parent is root.parent and is_tree(owner):
                    if owner not in found:
                        found.add(owner)
                        pending.append(owner)
        ordered: list[Operation] = []
        op: Operation | None = root
        while op is not None and len(ordered) < len(found):
            if op in found:
                ordered.append(op)
            op = op.prev_op
        return dict.fromkeys(reversed(ordered))

    # ------------------------------------------------------------ what is inserted

    def _copies(self, expressions: list[NumberedExpression], held: int) -> tuple[list[Operation], bool]:
        """The ops that compute and store what is inserted in a place; whether one may throw."""
        ops: list[Operation] = []
        throws = False
        for expression in expressions:
            new, value = self._copy(expression, held)
            ops += [*new, assign(self._variable(expression.bit), value, expression.op.location)]
            held |= 1 << expression.bit
            throws |= expression.throws
        return ops, throws

    def _copy(self, expression: NumberedExpression, held: int) -> tuple[list[Operation], SSAValue]:
        root = expression.op
        found = self.found.occurrence_of
        tree = {root}
        pending = [root]
        stored: dict[SSAValue, int] = {}
        while pending:
            for operand in pending.pop().operands:
                owner = operand.owner
                if isinstance(owner, Block) or owner not in found or owner in tree:
                    continue
                bit = found[owner].expression.bit
                if bit >= 0 and held >> bit & 1:
                    stored[operand] = bit
                else:
                    tree.add(owner)
                    pending.append(owner)
        ops: list[Operation] = []
        values: dict[SSAValue, SSAValue] = {}
        for op in sorted(tree, key=lambda o: found[o].position):
            for operand in op.operands:
                if operand in stored:
                    ops.append(read(self._variable(stored[operand]), op.location))
                    values[operand] = ops[-1].results[0]
            ops.append(cloned(op, values))
        return ops, ops[-1].results[0]

    def _insert_at_start(self, node: FlowNode, ops: list[Operation]) -> None:
        if node.ops:
            node.block.insert_ops_before(ops, self.anchors[self.found.statement_of[node.ops[0]]])
        else:
            node.block.add_ops(ops)

    def _insert_at_end(self, node: FlowNode, ops: list[Operation], throws: bool) -> None:
        last = node.ops[-1] if node.ops else None
        if last is None or not (last.regions or last.next_op is None and not is_tree(last)):
            node.block.add_ops(ops)
            return
        statement = self.found.statement_of[last]
        alone = statement not in self.in_place and not (throws and statement in self.found.first_ordered)
        node.block.insert_ops_before(ops, self.anchors[statement] if alone else last)


# ---------------------------------------------------------------- remarks


def _tell(motion: CodeMotion) -> None:
    found = motion.found
    reads: dict[int, int] = {}
    for op, bit in motion.redundant.items():
        if op not in motion.gone:
            reads[bit] = reads.get(bit, 0) + 1
    loops: dict[int, Operation] = {}
    for node in found.graph.nodes:
        if motion.at_end[node.number] and node.ops and isinstance(node.ops[-1], LOOPS):
            for bit in members(motion.at_end[node.number]):
                loops.setdefault(bit, node.ops[-1])
    for bit, count in reads.items():
        expression = found.candidates[bit]
        times = f"read at {count} place{'s' * (count > 1)}"
        how = "computed before the loop" if bit in loops else "computed once"
        _remark(expression, f"{how}, {times}", done=True)
    for loop in motion.loops:
        number = loop.decides.number
        body = motion.anticipated.before[loop.decides.successors[0].number] or 0
        known = (motion.anticipated.before[loop.first] or 0) | motion.held[number]
        for bit in members(body & found.throwing & ~loop.changed & ~known):
            _remark(
                found.candidates[bit], "stays in the loop: it may fail, and the loop may have no iteration", done=False
            )


def _remark(expression: NumberedExpression, message: str, *, done: bool) -> None:
    op = expression.op
    remark(LazyCodeMotion.name, op.location, expression_text(op.results[0]), message, done=done)
