"""Counted loops: a `while` that counts up to a bound  →  a `for`.

    int n = 1;                          int n = 1;
    while (n <= N) {                    for (n_sym1__ in n : N) {
      y[n] ~ normal(mu, 1);      →        y[n_sym1__] ~ normal(mu, 1);
      n += 1;                           }
    }                                   if (n <= N) n = N + 1;

What knows loops over elements then knows this one. The condition compares the counter with what the body does not
change; the body adds 1 to the counter, once in every iteration, and does not leave the loop. It may do that anywhere:
behind it the counter is `n_sym1__ + 1`. With `n < N` the last number is `N - 1`; where N may be the least int, which
has none before it, the loop stands in `if (n < N)`.

Idea: MLIR's upliftWhileToForLoop.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.integers import INT_MIN
from ulam.dialects.walk import ops_of, ops_within
from ulam.library.costs import COSTS, FunctionCost
from ulam.library.records import record
from ulam.passes import variable_form as form
from ulam.passes.analysis.nesting import ancestor_in, is_before, terminator
from ulam.passes.analysis.scopes import own_bodies
from ulam.passes.remarks import remark
from ulam.passes.rewriting import copies, discard, replace_uses

_ADD, _SUB, _LE, _LT = (stan.BINARY_OPERATORS[symbol] for symbol in ("+", "-", "<=", "<"))
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
        ahead, end = self._last(location)
        body = Block(arg_types=[stan.INT])
        self._count_by(body.args[0])
        for op in ops_of(loop.body.block):
            op.detach()
            body.add_op(op)
        name = names.fresh(_name(self.counter))
        written = [begin, *ahead, stan.ForOp(name, begin.results[0], end, Region(body), location=location)]
        is_needed = self._is_needed(begin)
        if self.is_strict and not _is_above_least(self.bound):
            written = self._if_some([*written, *(self._set(location) if is_needed else ())], location)
        elif is_needed:
            written += self._if_some(self._set(location), location)
        block.insert_ops_before(written, loop)
        discard(loop)

    def _bound(self, location: LocationAttr) -> tuple[list[Operation], SSAValue]:
        """Computes the bound of the condition."""
        needed: set[SSAValue] = {self.bound}
        found: list[Operation] = []
        for op in reversed(ops_of(self.loop.condition.block)):
            if any(result in needed for result in op.results):
                needed.update(op.operands)
                found.append(op)
        mapping: dict[SSAValue, SSAValue] = {}
        ops = copies(found[::-1], mapping)
        return ops, mapping.get(self.bound, self.bound)

    def _last(self, location: LocationAttr) -> tuple[list[Operation], SSAValue]:
        """Computes the last value of the counter for which the body runs: the least int has none before it."""
        ops, bound = self._bound(location)
        if not self.is_strict:
            return ops, bound
        ops += _with_1(_SUB, bound, location)
        return ops, ops[-1].results[0]

    def _count_by(self, number: SSAValue) -> None:
        """Lets the body read the number of an iteration, or one more, in the place of the counter."""
        body, step = self.loop.body.block, self.step
        value = step.value
        for op in list(ops_within(body)):
            if not isinstance(op, stan.ReadOp) or op.operands[0] is not self.counter:
                continue
            statement = ancestor_in(op, body)
            assert statement is not None and op.parent is not None
            if is_before(statement, step):
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

    def _if_some(self, ops: list[Operation], location: LocationAttr) -> list[Operation]:
        """Does something if there is an iteration."""
        before = form.read(self.counter, location)
        ahead, bound = self._bound(location)
        some = _of_ints(_LT if self.is_strict else _LE, before.results[0], bound, location)
        arms = (Region(Block([*ops, form.yield_(location)])), Region(Block([form.yield_(location)])))
        return [before, *ahead, some, stan.IfOp(some.results[0], *arms, location=location)]

    def _set(self, location: LocationAttr) -> list[Operation]:
        """Sets the counter to what it is behind the last iteration."""
        ops, bound = self._bound(location)
        if not self.is_strict:
            ops += _with_1(_ADD, bound, location)
            bound = ops[-1].results[0]
        return [*ops, form.assign(self.counter, bound, location)]


def _of_ints(operator: type[Operation], left: SSAValue, right: SSAValue, location: LocationAttr) -> Operation:
    """A binary operator of two ints, whose result is one."""
    return operator(left, right, stan.INT, location=location)  # type: ignore[call-arg]


def _with_1(operator: type[Operation], value: SSAValue, location: LocationAttr) -> list[Operation]:
    """The ops of `value + 1`, or of another operator; the last one has the result."""
    one = form.constant(1, location)
    return [one, _of_ints(operator, value, one.results[0], location)]


def _is_above_least(bound: SSAValue) -> bool:
    """Whether an int is known not to be the least of all: a literal, a size, data with a bound that is a literal."""
    literal = form.literal_of(bound)
    if literal is not None:
        return literal != INT_MIN
    op = bound.owner
    if isinstance(op, stan.CallOp):
        return op.user is None and op.callee.data in COSTS and COSTS[op.callee.data] is FunctionCost.SIZE
    variable = op.operands[0].owner if isinstance(op, stan.ReadOp) else None
    declared = _declaration(variable) if isinstance(variable, stan.GlobalOp) else None
    least = form.literal_of(declared.lower) if declared is not None and declared.lower is not None else None
    return least is not None and least > INT_MIN


def _declaration(variable: stan.GlobalOp) -> stan.DeclareOp | None:
    """The declaration of a variable of data."""
    program = variable.parent_op()
    while program is not None and not isinstance(program, stan.ProgramOp):
        program = program.parent_op()
    blocks = program.body.block.ops if program is not None else ()
    data = [op for op in blocks if isinstance(op, stan.BlockOp) and op.kind.data == "data"]
    declared = (op for block in data for op in block.body.block.ops if isinstance(op, stan.DeclareOp))
    return next((op for op in declared if op.var_name.data == variable.var_name.data), None)


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
