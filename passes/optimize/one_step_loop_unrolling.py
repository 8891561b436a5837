"""One-step loop unrolling: the first iteration of a loop is written out before it.

    for (i in a:b) S    →    if (b >= a) { S[i := a]; for (i in a + 1:b) S }
    while (c) S         →    if (c) { S; while (c) S }

What the first iteration evaluates is then surely evaluated before the others: lazy code motion may take an expression
that can fail out of the rest. The bounds of a `for` are values, computed once before it, so neither draws nor
assignments in the body change them. Where `a` is not a literal, `a + 1` could exceed the largest int; then the rest
stands in `if (b > a)`. With `a` the largest int itself there is no rest.

Comparisons of the loop variable with `a` are decided on the way: `i == 1` is 1 in the first iteration of a loop from 1
and 0 in the rest.

Not applied to a body that leaves the loop by `break` or `continue`, or that always returns (`loop_copies`), nor to the
rest of a loop that was already peeled (it is marked with the attribute `peeled`).

Innermost loops first, so each level of a nest doubles what is inside of it. `budget` is the number of ops that the
module may grow by: it ends the growth of deep nests, inner loops having been served first.

`when=useful`, for the levels, peels only where the first iteration enables something, since peeling doubles the code:

* the body surely evaluates an expression that does not change in the loop, may fail (else it is hoisted without
  peeling), and is worth hoisting: an operation on containers, a call that takes containers, or one of a function of the
  program (what a density of scalars computes, the lowering takes out of the lowered loop, though not its checks);
  with `elementwise=false`, as at levels 3 and 4, none that is computed element by element: there the lowered loop has
  a table of these, and stays one that can be fused with others;
* the body compares the loop variable with the lower bound.

Source: optimization levels documentation, "One step loop unrolling".
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.integers import INT_MAX
from ulam.dialects.stan import CallEffects, Effect
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.scopes import call_effects, own_bodies
from ulam.passes.optimize import library_calls
from ulam.passes.optimize.loop_copies import (
    int_literal,
    never_ends,
    spread_literal,
    without_end,
    write_copies,
)
from ulam.passes.optimize.when import USEFUL, check_when
from ulam.passes.remarks import remark
from ulam.passes.rewriting import discard, replace_uses
from ulam.passes.variable_form import LOOPS, constant, erase_unused, is_statement, literal_of, read, yield_

_PEELED = stan.PeeledAttr()
_EXTRA_OPS = 8
"""Ops that peeling adds besides the copy of the body: the branch with its condition and ends, `a + 1`."""

# Comparison with the loop variable on the left → what it gives in the first iteration, and in the rest.
_DECIDED = {"==": (1, 0), "!=": (0, 1), "<": (0, 0), "<=": (1, 0), ">": (0, 1), ">=": (1, 1)}
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARISONS: dict[type[Operation], str] = {stan.BINARY_OPERATORS[symbol]: symbol for symbol in _DECIDED}
_OPERATORS = tuple(stan.BINARY_OPERATORS.values())


@record(frozen=True)
class OneStepLoopUnrolling(ModulePass):
    """Writes out the first iteration of loops before them.

    `budget`: ops that the module may grow by; `when`: always or useful; `elementwise`: useful for what is computed
    element by element, too.
    """

    name = "one-step-loop-unrolling"
    budget: int = 2_000
    when: str = "always"
    elementwise: bool = True

    def __post_init__(self) -> None:
        check_when(self.when)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op, self.budget, only_useful=self.when == USEFUL, elementwise=self.elementwise)


def run_on(op: Operation, budget: int = 2_000, *, only_useful: bool = False, elementwise: bool = True) -> None:
    """Peels the loops of the program's own functions and blocks at or below `op`."""
    calls = call_effects(op) if only_useful else None
    peeler = _Peeler(budget, calls, elementwise)
    for body in own_bodies(op):
        peeler.block(body.regions[0].blocks[0])


@record(eq=False, repr=False)
class _Peeler:
    """`calls`: effects of functions, where only useful peeling is asked for; `elementwise`: for what is computed so."""

    budget: int
    calls: CallEffects | None
    elementwise: bool

    def block(self, block: Block) -> tuple[int, bool]:
        """Peels the loops in a block, innermost first; number of ops then, and whether it leaves the loop around."""
        size, leaves = 0, False
        op = block.first_op
        while op is not None:
            following = op.next_op
            inside, op_leaves = 0, type(op) in (stan.BreakOp, stan.ContinueOp)
            for region in op.regions:
                region_size, region_leaves = self.block(region.block)
                inside += region_size
                op_leaves = op_leaves or region_leaves
            if type(op) is stan.ForOp or type(op) is stan.WhileOp:
                before = self.budget
                self._loop(op, inside, op_leaves)
                inside += before - self.budget
            leaves = leaves or (op_leaves and type(op) not in LOOPS)
            size += 1 + inside
            op = following
        return size, leaves

    def _loop(self, loop: stan.ForOp | stan.WhileOp, size: int, leaves: bool) -> None:
        subject = f"loop over {loop.variable.data}" if isinstance(loop, stan.ForOp) else "while loop"
        if stan.PeeledAttr.marks(loop):
            return
        reason = self._reason_to_keep(loop, size, leaves)
        if reason is not None:
            remark(OneStepLoopUnrolling.name, loop.location, subject, reason, done=False)
            return
        self.budget -= size + _EXTRA_OPS
        _PEELED.put(loop)
        if isinstance(loop, stan.ForOp):
            _peel_for(loop)
        else:
            _peel_while(loop)
        remark(OneStepLoopUnrolling.name, loop.location, subject, "first iteration written out", done=True)

    def _reason_to_keep(self, loop: stan.ForOp | stan.WhileOp, size: int, leaves: bool) -> str | None:
        if leaves:
            return "its body has a break or continue"
        if never_ends(loop.body.block):
            return "its body always returns"
        if (growth := size + _EXTRA_OPS) > self.budget:
            return f"{growth} more ops, but only {self.budget} are left of the budget"
        if self.calls is not None and not (
            isinstance(loop, stan.ForOp)
            and _compared_with_lower(loop)
            or _invariant_that_throws(loop, self.calls, self.elementwise)
        ):
            return "the first iteration alone makes nothing simpler"
        return None


# ---------------------------------------------------------------- peeling


def _peel_for(loop: stan.ForOp) -> None:
    location = loop.location
    bounds = loop.lower, loop.upper
    lower, upper = _Bound(loop.lower, loop), _Bound(loop.upper, loop)
    block = loop.parent
    assert block is not None
    then = Block()
    block.insert_op_before(_branch(_compare(">=", upper, lower, loop), then, loop), loop)
    loop.detach()
    then.add_ops((loop, yield_(location)))

    compared = _compared_with_lower(loop)
    first = lower.value(loop)
    mapping: dict[SSAValue, SSAValue] = {loop.body.block.args[0]: first}
    write_copies(without_end(loop.body.block), mapping, loop)
    if lower.literal is not None and isinstance(first.owner, stan.ConstantOp):
        spread_literal(first.owner)
    for op, symbol in compared:
        copy, (in_first, in_rest) = mapping[op.results[0]].owner, _DECIDED[symbol]
        assert isinstance(copy, Operation)
        _decide(copy, in_first)
        _decide(op, in_rest)

    literal = int_literal(bounds[0])
    if literal == INT_MAX:
        discard(loop)
        erase_unused(bounds)
        return
    if literal is None:
        rest = Block()
        then.insert_op_before(_branch(_compare(">", upper, lower, loop), rest, loop), loop)
        loop.detach()
        rest.add_ops((loop, yield_(location)))
    start = lower.value(loop)
    one = constant(1, location)
    advanced = stan.BINARY_OPERATORS["+"](start, one.res, stan.INT, location=location)
    assert loop.parent is not None
    loop.parent.insert_ops_before((one, advanced), loop)
    loop.operands = (advanced.results[0], upper.value(loop))
    erase_unused(bounds)


def _peel_while(loop: stan.WhileOp) -> None:
    block = loop.parent
    end = loop.condition.block.last_op
    assert block is not None and isinstance(end, stan.ConditionOp)
    mapping: dict[SSAValue, SSAValue] = {}
    write_copies(without_end(loop.condition.block), mapping, loop)
    then = Block()
    block.insert_op_before(_branch(mapping.get(end.condition, end.condition), then, loop), loop)
    loop.detach()
    then.add_ops((loop, yield_(loop.location)))
    write_copies(without_end(loop.body.block), {}, loop)


class _Bound:
    """A bound of a loop, to be used several times: a literal or a variable that stays the same is written once more
    at each use, as the source would have it; any other value is used where it was computed."""

    def __init__(self, value: SSAValue, loop: stan.ForOp) -> None:
        self._value = value
        owner = value.owner
        self.literal = literal_of(value) if isinstance(owner, stan.ConstantOp) else None
        self._variable: SSAValue | None = None
        if isinstance(owner, stan.ReadOp) and _reads_the_same(owner, loop):
            self._variable = owner.var

    def value(self, before: Operation) -> SSAValue:
        """The bound, for use by `before` or by what follows it."""
        if self.literal is not None:
            again: Operation = constant(self.literal, before.location)
        elif self._variable is not None:
            again = read(self._variable, before.location)
        else:
            return self._value
        assert before.parent is not None
        before.parent.insert_op_before(again, before)
        return again.results[0]


def _reads_the_same(op: stan.ReadOp, loop: stan.ForOp) -> bool:
    """Whether reading the variable at the loop, or inside of it, gives what `op` reads."""
    if isinstance(op.var.owner, stan.GlobalOp):
        return True  # assigned in the block that declares it only
    current: Operation | None = op.next_op
    while current is not loop:
        if current is None or is_statement(current):
            return False
        current = current.next_op
    return not any(isinstance(inner, stan.AssignOp) and inner.var is op.var for inner in ops_within(loop))


def _compare(symbol: str, left: _Bound, right: _Bound, before: Operation) -> SSAValue:
    op = stan.BINARY_OPERATORS[symbol](left.value(before), right.value(before), stan.INT, location=before.location)
    assert before.parent is not None
    before.parent.insert_op_before(op, before)
    return op.results[0]


def _branch(condition: SSAValue, then: Block, loop: Operation) -> stan.IfOp:
    otherwise = Region(Block((yield_(loop.location),)))
    return stan.IfOp(condition, Region(then), otherwise, location=loop.location)


def _decide(comparison: Operation, result: int) -> None:
    """Replaces a comparison by its result."""
    assert comparison.parent is not None
    literal = constant(result, comparison.location)
    comparison.parent.insert_op_before(literal, comparison)
    replace_uses(comparison.results[0], literal.results[0])
    operands = tuple(comparison.operands)
    discard(comparison)
    erase_unused(operands)


# ---------------------------------------------------------------- what is useful


def _compared_with_lower(loop: stan.ForOp) -> list[tuple[Operation, str]]:
    """Comparisons of the loop variable with the lower bound, as if the loop variable stood on the left."""
    found: list[tuple[Operation, str]] = []
    for use in loop.body.block.args[0].uses:
        op = use.operation
        symbol = _COMPARISONS.get(type(op))
        if symbol is not None and _is_same(op.operands[1 - use.index], loop.lower):
            found.append((op, symbol if use.index == 0 else _MIRRORED[symbol]))
    return found


def _is_same(value: SSAValue, bound: SSAValue) -> bool:
    if value is bound:
        return True
    number = int_literal(bound)
    return number is not None and number == int_literal(value)


def _invariant_that_throws(loop: stan.ForOp | stan.WhileOp, calls: CallEffects, elementwise: bool) -> bool:
    """Whether every iteration evaluates an expression worth hoisting that may fail and does not change in the loop."""
    changes: set[SSAValue] = set()
    for op in ops_within(loop):
        if isinstance(op, stan.AssignOp):
            changes.add(op.var)
        elif isinstance(op, stan.DeclareOp):
            changes.add(op.results[0])
    varies: set[SSAValue] = set(loop.body.block.args)
    for op in loop.body.block.ops:
        effects = calls.of(op)
        is_invariant = (
            not op.regions
            and not effects & ~(Effect.READS_VAR | Effect.THROWS)
            and not any(operand in varies or operand in changes for operand in op.operands)
        )
        if not is_invariant:
            varies.update(op.results)
        elif effects & Effect.THROWS and _is_worth_hoisting(op) and (elementwise or not _is_of_elements(op)):
            return True
    return False


def _is_worth_hoisting(op: Operation) -> bool:
    on_containers = any(stan.dimensions(operand.type) for operand in op.operands)
    if isinstance(op, stan.CallOp):
        return bool(op.results) and (on_containers or "user" in op.properties or "callback" in op.properties)
    return isinstance(op, _OPERATORS) and on_containers


def _is_of_elements(op: Operation) -> bool:
    """Whether an op computes each element of a container from one of each of its operands."""
    if not stan.dimensions(op.results[0].type):
        return False
    if isinstance(op, stan.CallOp):
        if op.user is not None or op.callback is not None:
            return False
        found = library_calls.types().call_types(op.callee.data, (stan.REAL,) * len(op.operands))
        return found is not None and found[1] == stan.REAL
    containers = sum(bool(stan.dimensions(operand.type)) for operand in op.operands)
    return containers == 1 or not isinstance(op, tuple(stan.BINARY_OPERATORS[symbol] for symbol in "*/\\"))
