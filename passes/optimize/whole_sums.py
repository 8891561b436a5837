"""From what each iteration adds up to one sum over all: `target += normal_lpdf(y[n] | mu[n], s)`  →  one density.

normal_lpdf(y[n] | mu[n], s)       normal_lpdf(y | mu, s)
w * normal_lpdf(y[n] | mu[n], s)   w * normal_lpdf(y | mu, s)
a * x[n]                           a * x, a vector whose entries are added
a                                  N ? N * a : 0, since a may be infinite
"""

from __future__ import annotations

from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.library.functions import kind_of
from ulam.library.records import record
from ulam.library.requirements import REQUIREMENTS
from ulam.passes import variable_form as form
from ulam.passes.optimize.loop_span import Prevented
from ulam.passes.optimize.whole_vectors import ADD, DIV, MUL, NEG, SUB, WholeVectors, call_like

_SCALARS = {stan.INT, stan.REAL}


@record(eq=False, repr=False)
class WholeSums(WholeVectors):
    """Rewrites what statements add to the target or to a variable."""

    def summands(self, value: SSAValue) -> list[SSAValue]:
        """What a number that is added up in all iterations comes to: reals, and containers to be summed."""
        op = value.owner
        if isinstance(op, (ADD, SUB)) and op.results[0].type == stan.REAL:
            if not any(_has_density(operand) for operand in op.operands):
                return [self._sum_of(value)]
            left, right = (self.summands(operand) for operand in op.operands)
            return [*left, *(self._negative(v) for v in right)] if isinstance(op, SUB) else [*left, *right]
        if isinstance(op, NEG) and _has_density(value):
            return [self._negative(v) for v in self.summands(op.operands[0])]
        if isinstance(op, stan.CallOp) and kind_of(op.callee.data).is_summed and self.varies(value):
            return [self._density(op)]
        if isinstance(op, (MUL, DIV)) and op.results[0].type == stan.REAL and _has_density(value):
            return self._weighted(op)
        return [self._sum_of(value)]

    def _weighted(self, op: Operation) -> list[SSAValue]:
        """`w * normal_lpdf(y[n] | ...)`, of a weight that is the same in all iterations."""
        left, right = op.operands
        if isinstance(op, DIV) or self.varies(left):
            if self.varies(right):
                raise Prevented("each term of the density has a weight of its own")
            terms, weight = self.summands(left), self.same(right)
            return [self.operator(type(op), term.type, term, weight) for term in terms]
        weight, terms = self.same(left), self.summands(right)
        return [self.operator(MUL, term.type, weight, term) for term in terms]

    def _negative(self, value: SSAValue) -> SSAValue:
        return self.operator(NEG, value.type, value)

    def _sum_of(self, value: SSAValue) -> SSAValue:
        if self.varies(value):
            return self.oriented(self.each(value)) if value.type == stan.REAL else self.each(value)
        single = self.same(value)
        count = self.count()
        if single.type != stan.REAL:
            return self.operator(MUL, single.type, count, single)
        total = self.operator(MUL, stan.REAL, self.operator(stan.PromoteOp, stan.REAL, count), single)
        if self.span.is_nonempty or form.literal_of(single) is not None:
            return total
        none = form.constant(0.0, self.location)
        some, without = (Region(Block([*ops, stan.YieldOp(v)])) for ops, v in (((), total), ((none,), none.res)))
        return self.emit(stan.SelectOp(count, some, without, stan.REAL, location=self.location))

    def _density(self, op: stan.CallOp) -> SSAValue:
        """A density (or distribution function) of all elements: the sum of those of each."""
        name = op.callee.data
        function = self.library.definition(op)
        if function is None:
            what = "is not a function of the library" if op.user is not None else "has no vectorised form"
            raise Prevented(f"{name.partition('.')[0]} {what}")
        if self.strict:
            raise Prevented(f"{name} may be an error, which this block tells in its own order")
        wholes: list[SSAValue] = []
        elementwise: set[int] = set()
        formals = function.function_type.inputs
        scalars = all(formal in _SCALARS for formal in formals)
        for number, (argument, formal) in enumerate(zip(op.operands, formals, strict=True)):
            vectorised = stan.dimensions(argument.type) > stan.dimensions(formal)
            if vectorised and not (scalars and self.varies(argument)):
                raise Prevented(f"{name} is vectorised in each iteration")
            if not self.varies(argument):
                wholes.append(self.same(argument))
                continue
            elementwise.add(number)
            wholes.append(self.each(argument))
        if scalars and all(wholes[n].type == stan.MATRIX for n in elementwise):
            # Entry by entry over all rows: one long vector.
            wholes = [self.call("to_vector", stan.VECTOR, w) if w.type == stan.MATRIX else w for w in wholes]
        types = [whole.type for whole in wholes]
        if not self.library.has(op, types, stan.REAL):
            shown = ", ".join(_type_text(type_) for type_ in types)
            raise Prevented(f"{name} has no vectorised form for ({shown})")
        if not self.span.is_nonempty and self._looks_at_scalars(function, op, elementwise):
            self.risk("an argument of the density")
        return self.emit(call_like(op, wholes, stan.REAL))

    def _looks_at_scalars(self, function: stan.FuncOp, op: stan.CallOp, elementwise: set[int]) -> bool:
        """Whether a vectorised density may throw, or add something, without any element."""
        formals = function.body.block.args
        literals: dict[SSAValue, int | float | None] = {}
        literals |= {formal: form.literal_of(actual) for formal, actual in zip(formals, op.operands, strict=True)}
        for inner in function.body.block.ops:
            if isinstance(inner, stan.ReturnOp):
                continue
            if not isinstance(inner, stan.IfOp) and not self.library.rejects(inner):
                continue
            if _formals_behind(inner, function) & elementwise:
                continue
            if not _is_met(inner, literals):
                return True
        return False


# ---------------------------------------------------------------- questions about ops


def _has_density(value: SSAValue) -> bool:
    """Whether a sum, product or negation has a density in it."""
    pending = [value]
    while pending:
        op = pending.pop().owner
        if isinstance(op, stan.CallOp) and kind_of(op.callee.data).is_summed:
            return True
        if isinstance(op, (ADD, SUB, MUL, DIV, NEG)):
            pending += op.operands
    return False


def _type_text(type_: Attribute) -> str:
    if isinstance(type_, stan.ArrayType):
        return f"array[{',' * (type_.rank.data - 1)}] {_type_text(type_.element)}"
    return getattr(type_, "name", "").removeprefix("stan.")


def _formals_behind(op: Operation, function: stan.FuncOp) -> set[int]:
    """The formals that an op at the top level of a function depends on."""
    found: set[int] = set()
    pending, seen = [op], {op}
    while pending:
        for inner in ops_within(pending.pop()):
            for operand in inner.operands:
                owner = operand.owner
                if isinstance(operand, BlockArgument):
                    if owner is function.body.block:
                        found.add(operand.index)
                elif isinstance(owner, Operation) and owner not in seen:
                    seen.add(owner)
                    pending.append(owner)
    return found


def _is_met(op: Operation, literals: dict[SSAValue, int | float | None]) -> bool:
    """Whether a requirement holds for the literals that it is about."""
    if not isinstance(op, stan.CallOp) or op.callee.data not in REQUIREMENTS:
        return False
    subject = literals.get(op.operands[0])
    conditions = REQUIREMENTS[op.callee.data].conditions
    if subject is None or len(op.operands) != 1:
        return False
    tests = {"gt": float.__gt__, "ge": float.__ge__, "lt": float.__lt__, "le": float.__le__, "eq": float.__eq__}
    return all(
        isinstance(c.operand, float | int) and c.comparison in tests
        and tests[c.comparison](float(subject), float(c.operand))
        for c in conditions
    )  # fmt: skip
