"""Partial evaluation: expressions become cheaper or more accurate ones of the same meaning.

    real a = 1 + 1;  real b = log(1 - a);  real c = a + b * 5;
    →    real a = 2;  real b = log1m(a);  real c = fma(b, 5, a);

    y ~ bernoulli(inv_logit(alpha + X * beta));    →    y ~ bernoulli_logit_glm(X, alpha, beta);

The rules are the rows of `rewrite_rules.txt`. Each expression tree becomes an e-graph (`egraph`), to which all rules
that match add their results until nothing new is found; then the cheapest form is taken, so no rule depends on which
one comes first. Operators of literals are evaluated with the others. Besides, without a table (`simplify_structure`):
the taken arm of `?:`, `&&` and `||` with a literal on the left, fields of tuples written in place, and indices that
select everything.

What keeps its place: statements, and everything with an effect that has an order (prints, draws, the target). Such
expressions are leaves of a tree, evaluated once where they stood. What may throw still does, between the same of
these effects; with another text only where the unoptimised program tells the errors. Lazy operands are trees of their
own. A value that is used more than once, or in another region, is a leaf too.

`preserve-numerics` leaves the rules out that may change a bit. `budget` is the number of nodes of a tree's e-graph; a
tree of more than a quarter of this is done in parts. Source: optimization levels documentation, "Partial evaluation".
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult

from ulam.dialects import stan
from ulam.dialects.stan import Effect, effects_of
from ulam.dialects.walk import blocks_of, following_op, operand_tuple
from ulam.library.records import record
from ulam.passes.analysis.scopes import Scope, bodies_of
from ulam.passes.optimize.expression_rewriter import OpPosition, Rewriter, is_inner, joins_its_user
from ulam.passes.optimize.scope_passes import ScopePass
from ulam.passes.optimize.simplify_structure import SIMPLIFIED, simplified
from ulam.passes.variable_form import errors_are_retold

_LEAVES = frozenset[type]((stan.ReadOp, stan.ConstantOp))


@record(frozen=True)
class PartialEvaluation(ScopePass):
    """Makes cheaper or more accurate expressions of the same meaning, by the rules of a table."""

    name = "partial-evaluation"
    preserve_numerics: bool = False
    budget: int = 200

    def work_on(self, module: ModuleOp, scopes: Sequence[Scope]) -> bool:
        rewriters: dict[stan.ProgramOp, Rewriter] = {}
        for body in bodies_of(scopes):
            program = body.parent_op()
            if isinstance(program, stan.ProgramOp):
                if (rewriter := rewriters.get(program)) is None:
                    rewriter = rewriters[program] = Rewriter(program, self.preserve_numerics, self.budget)
                _Walk(rewriter, errors_are_retold(body), max(1, self.budget // 4)).block(body.regions[0].block)
        return True


class _Walk:
    """A walk over one body in program order. A tree is rewritten when its last op, the root, has been reached."""

    def __init__(self, rewriter: Rewriter, retold: bool, largest: int) -> None:
        self._rewriter = rewriter
        self._retold = retold
        self._largest = largest
        self._places: dict[Operation, OpPosition] = {}
        self._barriers = 0

    def block(self, block: Block) -> None:
        self._barriers += 1
        op = block.first_op
        while op is not None:
            cls = type(op)
            if cls in SIMPLIFIED:
                simpler, op = simplified(op)
                if simpler:
                    continue
                assert op is not None
            following = following_op(op)
            place = self._places[op] = OpPosition(len(self._places), self._barriers)
            if cls in _LEAVES:
                pass
            elif is_inner(op):
                self._join(op, place)
            elif op.regions or effects_of(op) & ~(Effect.THROWS | Effect.READS_VAR):
                self._barriers += 1
            if op.regions:
                for inner in blocks_of(op):
                    self.block(inner)
                self._barriers += 1
            op = following

    def _join(self, op: Operation, place: OpPosition) -> None:
        """Makes the trees of the operands parts of one, unless something that throws would then change its place."""
        if effects_of(op) & Effect.THROWS:
            place.oldest_throw = place.barrier
        for operand in operand_tuple(op):
            part = self._places.get(operand.op) if isinstance(operand, OpResult) else None
            if part is None or not part.waits:
                continue
            part.waits = False
            if part.oldest_throw not in (None, place.barrier):
                self._rewrite(operand.owner)
                continue
            part.joined = True
            place.size += part.size
            place.oldest_throw = place.oldest_throw if part.oldest_throw is None else part.oldest_throw
        if place.size < self._largest and joins_its_user(op):
            place.waits = True
        else:
            self._rewrite(op)

    def _rewrite(self, root: object) -> None:
        assert isinstance(root, Operation)
        self._rewriter.rewrite(root, self._places, self._retold)
