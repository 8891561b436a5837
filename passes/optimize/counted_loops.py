"""Counted loops: a `while` that counts up to a bound  →  a `for`.

    int n = 1;                          int n = 1;
    while (n <= N) {                    for (n_sym1__ in n : N) {
      y[n] ~ normal(mu, 1);      →        y[n_sym1__] ~ normal(mu, 1);
      n += 1;                           }
    }                                   if (n <= N) n = N + 1;

What knows loops over elements then knows this one. The condition compares the counter with what the body does not
change; the body adds 1 to the counter, once in every iteration, and does not leave the loop. It may do that anywhere:
behind it the counter is `n_sym1__ + 1`.

Idea: MLIR's upliftWhileToForLoop.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.walk import ops_of, ops_within
from ulam.library.records import record
from ulam.passes import variable_form as form
from ulam.passes.analysis.nesting import ancestor_in, terminator
from ulam.passes.analysis.scopes import own_bodies
from ulam.passes.remarks import remark
from ulam.passes.rewriting import copies, discard, replace_uses

_ADD, _SUB, _LE = (stan.BINARY_OPERATORS[symbol] for symbol in ("+", "-", "<="))
_BOUNDS = {"<=": (0, False), "<": (0, True), ">=": (1, False), ">": (1, True)}
"""Comparison → which of its operands is the counter, and whether the bound itself is left out."""
_COMPARISONS: dict[type[Operation], tuple[int, bool]] = {
    stan.BINARY_OPERATORS[symbol]: found for symbol, found in _BOUNDS.items()
}
_IN_CONDITIONS = stan.Effect.READS_VAR | stan.Effect.THROWS
_EXITS = stan.Effect.LEAVES_LOOP | stan.Effect.RETURNS


class CountedLoops(ModulePass):
    """Makes `for` loops of `while` loops that count."""

    name = "counted-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        names = form.FreshNames(op)
        for body in own_bodies(op):
            for loop in [inner for inner in ops_within(body) if isinstance(inner, stan.WhileOp)]:
                if (counted := _Counted.of(loop)) is not None:
                    remark(self.name, loop.location, "while", "it counts: it is a for", done=True)
                    counted.rewrite(names)


@record
class _Counted:
    """A loop that counts."""

    loop: stan.WhileOp
    counter: SSAValue
    bound: SSAValue
    """In the condition."""
    is_strict: bool
    step: stan.AssignOp
    """What adds 1, a statement of the body."""

    @staticmethod
    def of(loop: stan.WhileOp) -> _Counted | None:
        """None if it does not."""
        condition, body = loop.condition.block, loop.body.block
        compared = terminator(condition).operands[0].owner
        if type(compared) not in _COMPARISONS or not isinstance(compared, Operation) or loop.initial:
            return None
        at, is_strict = _COMPARISONS[type(compared)]
        counter = compared.operands[at].owner
        if not isinstance(counter, stan.ReadOp) or compared.operands[1 - at].type != stan.INT:
            return None
        variable, inside = counter.operands[0], list(ops_within(body))
        written = [op for op in inside if isinstance(op, stan.AssignOp)]
        steps = [op for op in written if op.var is variable]
        if len(steps) != 1 or steps[0].parent is not body or not _adds_one(steps[0]):
            return None
        if any(stan.effects_of(op) & _EXITS for op in inside) or not isinstance(terminator(body), stan.YieldOp):
            return None
        changed = {op.var for op in written}
        ahead = [op for op in ops_of(condition) if op is not counter]
        if any(op.regions or stan.effects_of(op) & ~_IN_CONDITIONS for op in ahead[:-1]):
            return None
        if any(isinstance(op, stan.ReadOp) and op.operands[0] in changed for op in ahead):
            return None
        return _Counted(loop, variable, compared.operands[1 - at], is_strict, steps[0])

    def rewrite(self, names: form.FreshNames) -> None:
        """Puts a `for` in the place of the loop, and what the counter is then behind it."""
        loop, location, block = self.loop, self.loop.location, self.loop.parent
        assert block is not None
        begin = form.read(self.counter, location)
        ahead, end = self._bound(location)
        block.insert_ops_before([begin, *ahead], loop)
        body = Block(arg_types=[stan.INT])
        self._count_by(body.args[0])
        for op in ops_of(loop.body.block):
            op.detach()
            body.add_op(op)
        name = names.fresh(_name(self.counter))
        counted = stan.ForOp(name, begin.results[0], end, Region(body), location=location)
        block.insert_op_before(counted, loop)
        if self._is_needed(begin):
            block.insert_ops_before(self._behind(location), loop)
        discard(loop)

    def _bound(self, location: LocationAttr) -> tuple[list[Operation], SSAValue]:
        """Computes the last value of the counter for which the body runs."""
        needed: set[SSAValue] = {self.bound}
        found: list[Operation] = []
        for op in reversed(ops_of(self.loop.condition.block)):
            if any(result in needed for result in op.results):
                needed.update(op.operands)
                found.append(op)
        mapping: dict[SSAValue, SSAValue] = {}
        ops = copies(found[::-1], mapping)
        end = mapping.get(self.bound, self.bound)
        if self.is_strict:
            ops += _with_1(_SUB, end, location)
            end = ops[-1].results[0]
        return ops, end

    def _count_by(self, number: SSAValue) -> None:
        """Lets the body read the number of an iteration, or one more, in the place of the counter."""
        body, step = self.loop.body.block, self.step
        value = step.value
        for op in list(ops_within(body)):
            if not isinstance(op, stan.ReadOp) or op.operands[0] is not self.counter:
                continue
            statement = ancestor_in(op, body)
            assert statement is not None and op.parent is not None
            if statement.is_before_in_block(step):
                replace_uses(op.results[0], number)
            else:
                more = _with_1(_ADD, number, op.location)
                op.parent.insert_ops_before(more, op)
                replace_uses(op.results[0], more[-1].results[0])
            discard(op)
        discard(step)
        form.erase_unused([value])

    def _is_needed(self, begin: stan.ReadOp) -> bool:
        """Whether something else than the loop reads the counter, or the program puts it out."""
        declaration = self.counter.owner
        if not isinstance(declaration, stan.DeclareOp) or form.is_global(declaration):
            return True
        others = (use.operation for use in self.counter.uses if not self.loop.is_ancestor(use.operation))
        return any(isinstance(op, stan.ReadOp) and op is not begin for op in others)

    def _behind(self, location: LocationAttr) -> list[Operation]:
        """Sets the counter, if there has been an iteration."""
        before = form.read(self.counter, location)
        ops, end = self._bound(location)
        some = _of_ints(_LE, before.results[0], end, location)
        again, last = self._bound(location)
        more = _with_1(_ADD, last, location)
        set_ = [*again, *more, form.assign(self.counter, more[-1].results[0], location), form.yield_(location)]
        arms = (Region(Block(set_)), Region(Block([form.yield_(location)])))
        return [before, *ops, some, stan.IfOp(some.results[0], *arms, location=location)]


def _of_ints(operator: type[Operation], left: SSAValue, right: SSAValue, location: LocationAttr) -> Operation:
    """A binary operator of two ints, whose result is one."""
    return operator(left, right, stan.INT, location=location)  # type: ignore[call-arg]


def _with_1(operator: type[Operation], value: SSAValue, location: LocationAttr) -> list[Operation]:
    """The ops of `value + 1`, or of another operator; the last one has the result."""
    one = form.constant(1, location)
    return [one, _of_ints(operator, value, one.results[0], location)]


def _adds_one(step: stan.AssignOp) -> bool:
    """Whether a statement is `n = n + 1`."""
    total = step.value.owner
    if step.indices or type(total) is not _ADD or not isinstance(total, Operation):
        return False
    numbers = [form.literal_of(operand) for operand in total.operands]
    reads = [operand.owner for operand in total.operands if isinstance(operand.owner, stan.ReadOp)]
    return 1 in numbers and any(read.operands[0] is step.var for read in reads)


def _name(variable: SSAValue) -> str:
    declaration = variable.owner
    return declaration.var_name.data if isinstance(declaration, stan.DeclareOp) else "n"
