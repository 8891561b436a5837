"""Static loop unrolling: a loop with known bounds  →  its body, once for each iteration.

    for (i in 1:4) x += i;    →    x += 1; x += 2; x += 3; x += 4;

For a `for` whose bounds are int literals, or arithmetic of such, with at most `limit` iterations. The loop variable
becomes a literal in each copy. A loop over an empty range goes. Not unrolled: a body that leaves the loop by `break` or
`continue`, or that always returns (`loop_copies`).

Innermost loops first: they are the ones that run most often. An inner loop whose bounds hang on the loop variable of an
outer one (`for (j in 1:i)`) is looked at again in the copies of the outer body. `budget` is the number of ops that the
module may grow by; a loop that does not fit is kept, smaller ones after it may still be unrolled. So a nest of 8 loops
is unrolled from the inside as far as the budget goes.

`when=useful` is for the levels. A rolled loop is lowered well (fused, vectorised, with a single copy of each density),
so copies must enable something: they do if, with the loop variable known,

* a condition is decided: `if (i == 1)`, `i % 2 ? a : b`;
* an element of a literal is chosen: `{a, b, c}[i]`;
* an exponent becomes a literal: `x ^ i`, `pow(x, i)`;
* or there are at most 4 iterations with little to copy and no call of a density or function to repeat (elements
  assigned one by one then are what `memory-pattern-optimization` turns into a literal).

Source: optimization levels documentation, "Static loop unrolling".
"""

from __future__ import annotations

from dataclasses import field

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.scopes import own_bodies
from ulam.passes.optimize.loop_copies import int_literal, never_ends, spread_literal, without_end, write_copies
from ulam.passes.optimize.when import USEFUL, check_when
from ulam.passes.remarks import remark
from ulam.passes.variable_form import LOOPS, constant, erase_unused

_FEW_ITERATIONS = 4
_FEW_OPS = 24
"""Ops of a body that may be copied a few times without further reason."""

_POWERS = (stan.BINARY_OPERATORS["^"], stan.BINARY_OPERATORS[".^"])
_FOLDABLE = (
    stan.PromoteOp,
    *(stan.BINARY_OPERATORS[s] for s in ("+", "-", "*", "%", "%/%", "/", "==", "!=", "<", "<=", ">", ">=")),
    *(stan.UNARY_OPERATORS[s] for s in ("+", "-", "!")),
)
_LITERALS = (stan.ArrayOp, stan.RowVectorOp)


@record(frozen=True)
class StaticLoopUnrolling(ModulePass):
    """Writes out the iterations of loops with known bounds.

    `limit`: iterations of a loop; `budget`: ops that the module may grow by; `when`: always or useful.
    """

    name = "static-loop-unrolling"
    limit: int = 32
    budget: int = 4_000
    when: str = "always"

    def __post_init__(self) -> None:
        check_when(self.when)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op, self.limit, self.budget, only_useful=self.when == USEFUL)


def run_on(op: Operation, limit: int = 32, budget: int = 4_000, *, only_useful: bool = False) -> None:
    """Unrolls the loops of the program's own functions and blocks at or below `op`."""
    unroller = _Unroller(limit, budget, only_useful)
    for body in own_bodies(op):
        unroller.block(body.regions[0].blocks[0])
    unroller.tell()


@record(slots=True)
class _Found:
    """What is in a region: number of ops, whether it leaves the loop around it, whether it has loops that stayed."""

    size: int = 0
    leaves: bool = False
    has_loops: bool = False


@record(eq=False, repr=False)
class _Unroller:
    limit: int
    budget: int
    only_useful: bool
    verdicts: dict[tuple[LocationAttr, str], tuple[bool, str]] = field(
        default_factory=dict[tuple[LocationAttr, str], tuple[bool, str]]
    )

    def tell(self) -> None:
        """One remark per loop of the source: the last decision on any of its copies."""
        for (location, variable), (done, message) in self.verdicts.items():
            remark(StaticLoopUnrolling.name, location, f"loop over {variable}", message, done=done)

    def block(self, block: Block) -> _Found:
        """Unrolls the loops in a block, innermost first."""
        found = _Found()
        op = block.first_op
        while op is not None:
            following = op.next_op
            inside = self._inside(op)
            new = self._unroll(op, inside) if type(op) is stan.ForOp else None
            if new is None:
                found.size += 1 + inside.size
                if type(op) in LOOPS:
                    found.has_loops = True
                else:
                    found.leaves = found.leaves or inside.leaves or type(op) in (stan.BreakOp, stan.ContinueOp)
                    found.has_loops = found.has_loops or inside.has_loops
            elif inside.has_loops and new:
                following = new[0]  # loops in the copies may have literal bounds now
            else:
                found.size += sum(1 for copy in new for _ in ops_within(copy))
            op = following
        return found

    def _inside(self, op: Operation) -> _Found:
        found = _Found()
        for region in op.regions:
            part = self.block(region.block)
            found.size += part.size
            found.leaves = found.leaves or part.leaves
            found.has_loops = found.has_loops or part.has_loops
        return found

    def _unroll(self, loop: stan.ForOp, inside: _Found) -> list[Operation] | None:
        """Writes the iterations of a loop in its place; what they consist of, or None if the loop stays."""
        lower, upper = int_literal(loop.lower), int_literal(loop.upper)
        if lower is None or upper is None:
            return self._keep(loop, "its bounds are not literals")
        trips = max(upper - lower + 1, 0)
        if trips and (reason := self._reason_to_keep(loop, inside, trips)):
            return self._keep(loop, reason)
        block = loop.parent
        assert block is not None
        if trips:
            self.budget -= max(_growth(loop, inside, trips), 0)
        statements = without_end(loop.body.block)
        new: list[Operation] = []
        for number in range(lower, upper + 1):
            literal = constant(number, loop.location)
            block.insert_op_before(literal, loop)
            new += write_copies(statements, {loop.body.block.args[0]: literal.results[0]}, loop)
            spread_literal(literal)
        bounds = (loop.lower, loop.upper)
        block.erase_op(loop)
        erase_unused(bounds)
        message = f"{trips} iterations written out" if trips else "it has no iteration"
        self.verdicts[loop.location, loop.variable.data] = (True, message)
        return new

    def _reason_to_keep(self, loop: stan.ForOp, inside: _Found, trips: int) -> str | None:
        if inside.leaves:
            return "its body has a break or continue"
        if never_ends(loop.body.block):
            return "its body always returns"
        if trips > self.limit:
            return f"it has {trips} iterations, more than {self.limit}"
        if (growth := _growth(loop, inside, trips)) > self.budget:
            return f"{growth} more ops, but only {self.budget} are left of the budget"
        if self.only_useful and not is_useful(loop, inside.size, trips):
            return "with the loop variable known nothing becomes simpler"
        return None

    def _keep(self, loop: stan.ForOp, reason: str) -> None:
        self.verdicts[loop.location, loop.variable.data] = (False, reason)


def _growth(loop: stan.ForOp, inside: _Found, trips: int) -> int:
    """How many ops more there are after unrolling. Each use of the loop variable becomes a literal of its own."""
    uses = sum(1 for _ in loop.body.block.args[0].uses)
    return trips * (inside.size - 1 + uses) - inside.size - 1


# ---------------------------------------------------------------- what is useful


def is_useful(loop: stan.ForOp, size: int, trips: int) -> bool:
    """Whether a known loop variable lets other passes do something; see the module's docstring."""
    body = loop.body.block
    known: set[SSAValue] = {body.args[0]}  # values that are literals once the loop variable is one
    literals: set[SSAValue] = set()
    repeats_calls = False
    for op in ops_within(loop):
        if op is loop:
            continue
        if isinstance(op, stan.ConstantOp):
            literals.add(op.results[0])
        elif isinstance(op, _FOLDABLE):
            if all(o in known or o in literals for o in op.operands):
                (known if any(o in known for o in op.operands) else literals).add(op.results[0])
        if _decides(op, known):
            return True
        repeats_calls = repeats_calls or isinstance(op, LOOPS) or _calls_body(op)
    return trips <= _FEW_ITERATIONS and size <= _FEW_OPS and not repeats_calls


def _calls_body(op: Operation) -> bool:
    """Whether an op is a call whose body the lowering writes in its place."""
    return isinstance(op, stan.CallOp) and any(p in op.properties for p in ("definition", "user", "callback"))


def _decides(op: Operation, known: set[SSAValue]) -> bool:
    """Whether known values decide a branch, choose an element of a literal, or make an exponent a literal."""
    match op:
        case stan.IfOp() | stan.SelectOp() | stan.AndOp() | stan.OrOp():
            return op.operands[0] in known
        case stan.IndexOp():
            return isinstance(op.value.owner, _LITERALS) and any(index in known for index in op.indices)
        case stan.CallOp():
            return op.callee.data == "pow" and op.operands[1] in known
        case _:
            return isinstance(op, _POWERS) and op.operands[1] in known
