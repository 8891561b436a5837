"""What the inner loops of a nest need not do once its rows run side by side (`strip_mine`).

    for j: s += -log1p_exp(z[i, j])                  for j: q = exp(-|z|), p = p * (1 + q), r += -max(z, 0)
    w = g(s)                                    →           slope[j] = (z < 0 ? q : 1) / (1 + q)
    for j: dz[i, j] += w * inv_logit(z[i, j])        w = g(r - log(p))
                                                     for j: dz[i, j] += w * slope[j]

Functions that a loop computes of what an earlier loop had exponentials of are computed there, and kept in memory of the
row. Sums of logarithms become the logarithm of a product: factors are in
[1, 2] (`log_factors`), so a product of some hundreds is a real. It has an error of 1e-16 for each factor, an absolute
one: so only where nothing needs the sum more exactly than that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i64
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant, constant_integer, is_same_integer, not_clamped
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.effects import UNKNOWN, Root, root, written_roots_within
from ulam.passes.loops.equal_loops import LoopComparison
from ulam.passes.loops.exponentials import INVERSES, LOGARITHMS
from ulam.passes.loops.log_factors import GENERAL, FactorWriter, SplitTerm
from ulam.passes.loops.tables import is_costly_function
from ulam.passes.rewriting import applied_to, discard, rebuild, replace_uses

MOST_FACTORS = 512
"""Of one product."""

_MOST_KEPT = 4
"""Values that a row keeps of each column."""

_TOLERANT = frozenset({
    "exp", "exp_minus_magnitude", "inv_logit", "log1p_exp", "log_inv_logit", "log1m_inv_logit", "log_sum_exp",
    "log1p_exp_minus_magnitude", "inv_logit_of_bounds",
})  # fmt: skip
"""Functions of an argument with an absolute error of 1e-16 that have no more than that, or as much relative to them."""

_REASSOCIATE: dict[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr([FastMathFlag.REASSOC])}
_STRICT: dict[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr("none")}


@record
class RowColumns:
    """Changes the inner loops right inside of a nest. `done`: what has been done, for those who read remarks."""

    nest: scf.ForOp
    products: list[tuple[scf.ForOp, int]] = field(default_factory=list[tuple[scf.ForOp, int]])
    """Loops that multiply, and how many iterations they may have."""
    done: list[str] = field(default_factory=list[str])

    @staticmethod
    def may_gain(nest: scf.ForOp) -> bool:
        """Whether there can be anything to do."""
        return any(
            isinstance(op, rt.MathOp) and op.function.data in LOGARITHMS
            for loop in _inner(nest)
            for op in loop.body.block.ops
        )

    def change(self) -> bool:
        """Whether anything has changed."""
        written = written_roots_within(self.nest)
        loops = list(_inner(self.nest))
        for n, later in enumerate(loops):
            for earlier in loops[:n]:
                if UNKNOWN not in written and _has_equal_range(earlier, later):
                    self._keep(_Pair(self.nest, earlier, later, written))
        for loop in loops:
            self._multiply(loop)
        return bool(self.done)

    def _keep(self, pair: _Pair) -> None:
        for op in pair.kept():
            pair.keep(op)
            self.done.append(f"{op.function.data} is kept for a later loop")

    # ------------------------------------------------------------ products

    def _multiply(self, loop: scf.ForOp) -> None:
        body = loop.body.block
        functions = {op.function.data for op in body.ops if isinstance(op, rt.MathOp)}
        if functions & GENERAL or not functions & LOGARITHMS:
            return
        for position, argument in enumerate(tuple(body.args[1:])):
            if argument.type != f64 or not _is_tolerant(loop.results[position], {}):
                continue
            additions = _additions(argument, terminator(body).operands[position])
            if additions and (found := _Product(loop, position, additions).write()) is not None:
                loop, count = found
                self.products.append((loop, MOST_FACTORS // count))
                self.done.append("sums of logarithms are logarithms of products")
                return


def _inner(nest: scf.ForOp) -> Iterator[scf.ForOp]:
    return (op for op in nest.body.block.ops if isinstance(op, scf.ForOp) and not rt.LoopAttr.is_cold(op))


# ---------------------------------------------------------------- what is kept


def _has_equal_range(first: scf.ForOp, second: scf.ForOp) -> bool:
    if constant_integer(first.lb) != 0 or constant_integer(second.lb) != 0:
        return False
    if constant_integer(first.step) != 1 or constant_integer(second.step) != 1:
        return False
    return is_same_integer(not_clamped(first.ub), not_clamped(second.ub))


class _Pair(LoopComparison):
    """Two loops over the same columns, one after the other."""

    def __init__(self, nest: scf.ForOp, earlier: scf.ForOp, later: scf.ForOp, written: set[Root]) -> None:
        super().__init__(earlier, later)
        self.nest, self.earlier, self.later, self.written = nest, earlier, later, written

    def kept(self) -> Iterator[rt.MathOp]:
        """Functions of the later loop that cost next to nothing in the earlier one."""
        found = 0
        for op in list(self.later.body.block.ops):
            if found < _MOST_KEPT and isinstance(op, rt.MathOp) and is_costly_function(op) and self._is_known(op):
                found += 1
                yield op

    def _is_known(self, op: rt.MathOp) -> bool:
        """Whether the earlier loop computes the function, or one of the same exponential."""
        for other in self.earlier.body.block.ops:
            if not isinstance(other, rt.MathOp) or not is_costly_function(other):
                continue
            if other.function.data == op.function.data and all(map(self.same, other.operands, op.operands)):
                return True
            if op.function.data in INVERSES and other.function.data in INVERSES | LOGARITHMS:
                one, two = _magnitude(other), _magnitude(op)
                if len(one) == len(two) and any(all(map(self.same, one, ends)) for ends in (two, two[::-1])):
                    return True
        return False

    def same(self, a: SSAValue, b: SSAValue) -> bool:
        """Whether both are the same, in spite of what the nest writes."""
        return super().same(a, b) and (a is b or not self._is_loaded_from_written(a))

    def _is_loaded_from_written(self, value: SSAValue) -> bool:
        op = value.owner
        return isinstance(op, rt.LoadOp | ad.KeptOp) and root(op.operands[0]) in self.written | {UNKNOWN}

    def keep(self, op: rt.MathOp) -> None:
        """Computes a function of the later loop in the earlier one."""
        limit = not_clamped(self.earlier.ub)
        zero = constant(0, i64)
        size = arith.MaxSIOp.create(operands=(limit, zero.result), result_types=(i64,))
        memory = rt.AllocOp(size.result, rt.BufferType(f64), location=op.location)
        self.nest.body.block.insert_ops_before([zero, size, memory], self.earlier)
        body = self.earlier.body.block
        end = terminator(body)
        computed = rt.MathOp(op.function.data, [self._in_earlier(v, end) for v in op.operands], location=op.location)
        body.insert_ops_before([computed, rt.StoreOp(computed.results[0], memory.res, body.args[0])], end)
        load = rt.LoadOp(memory.res, self.later.body.block.args[0], location=op.location)
        self.later.body.block.insert_op_before(load, op)
        replace_uses(op.results[0], load.res)
        discard(op)

    def _in_earlier(self, value: SSAValue, before: Operation) -> SSAValue:
        """What a value of the later loop is in the earlier one."""
        if not is_inside(value, self.later):
            return value
        for op in self.earlier.body.block.ops:
            for result in op.results:
                if result.type == value.type and self.same(result, value):
                    return result
        op = value.owner
        assert isinstance(op, arith.NegfOp | arith.SubfOp)  # `_is_known` has looked through these alone
        written = applied_to(op, [self._in_earlier(v, before) for v in op.operands])
        self.earlier.body.block.insert_op_before(written, before)
        return written.results[0]


def _magnitude(op: rt.MathOp) -> list[SSAValue]:
    """z, or x and y, of a function of exp(-|z|) or exp(-|x - y|); the same for -z, and for y - x."""
    if len(op.operands) == 2:
        return list(op.operands)
    z = op.operands[0]
    while isinstance(z.owner, arith.NegfOp):
        z = z.owner.operand
    return list(z.owner.operands) if isinstance(z.owner, arith.SubfOp) else [z]


# ---------------------------------------------------------------- products


def _additions(argument: SSAValue, end: SSAValue) -> list[arith.AddfOp]:
    """The additions that make `end` of what a loop carries, if nothing else reads what they give."""
    found: list[arith.AddfOp] = []
    value = argument
    while value is not end:
        use = value.first_use
        if use is None or not value.has_one_use() or not isinstance(op := use.operation, arith.AddfOp):
            return []
        if FastMathFlag.REASSOC not in op.fastmath.data or op.parent is not argument.owner:
            return []
        found.append(op)
        value = op.result
    return found if end.has_one_use() else []


def _is_tolerant(value: SSAValue, seen: dict[SSAValue, None]) -> bool:
    """Whether nothing that is made of a value needs more than an absolute error of 1e-16."""
    if value in seen:
        return True
    seen[value] = None
    for use in value.uses:
        op = use.operation
        if isinstance(op, arith.CmpfOp | ad.TargetAddOp) or (
            isinstance(op, rt.MathOp) and op.function.data in _TOLERANT
        ):
            continue
        if isinstance(op, scf.YieldOp):
            parent = op.parent_op()
            if not isinstance(parent, scf.IfOp | scf.ForOp) or not _is_tolerant(parent.results[use.index], seen):
                return False
            if isinstance(parent, scf.ForOp) and not _is_tolerant(parent.body.block.args[use.index + 1], seen):
                return False
        elif isinstance(op, arith.AddfOp | arith.SubfOp | arith.NegfOp | arith.SelectOp):
            if not _is_tolerant(op.results[0], seen):
                return False
        else:
            return False
    return True


class _Product:
    """A sum that a loop carries, as a rest and a product."""

    def __init__(self, loop: scf.ForOp, position: int, additions: list[arith.AddfOp]) -> None:
        self.loop, self.position, self.additions = loop, position, additions

    def write(self) -> tuple[scf.ForOp, int] | None:
        """The loop that multiplies, and how many factors an iteration has; None if there is nothing to gain."""
        body = self.loop.body.block
        writer = FactorWriter(body)
        terms = [(op, self._term(writer, op)) for op in self.additions]
        factors = [factor for _, term in terms for factor in term.factors]
        coefficients = {factor.coefficient for factor in factors}
        if len(coefficients) != 1 or any(factor.exponent is not None for factor in factors):
            return None  # what was written is dead
        ((number, by),) = coefficients
        if by is not None:
            return None
        end = terminator(body)
        product: SSAValue = body.insert_arg(f64, len(body.args))
        for op, term in terms:
            carried = op.lhs if isinstance(op.lhs.owner, Block) or op.lhs.owner in self.additions else op.rhs
            for factor in term.factors:
                multiplied = arith.MulfOp.create(
                    operands=(product, factor.value), result_types=(f64,), properties=_REASSOCIATE, location=op.location
                )
                body.insert_op_before(multiplied, op)
                product = multiplied.result
            if term.rest is None:
                replace_uses(op.result, carried)
                discard(op)
            else:
                op.operands[1 if carried is op.lhs else 0] = term.rest
        end.operands = (*end.operands, product)
        return self._results(number), len(factors)

    def _term(self, writer: FactorWriter, op: arith.AddfOp) -> SplitTerm:
        carried = op.lhs if isinstance(op.lhs.owner, Block) or op.lhs.owner in self.additions else op.rhs
        return writer.term(op.rhs if carried is op.lhs else op.lhs, op, ())

    def _results(self, number: float) -> scf.ForOp:
        outer = self.loop.parent
        assert outer is not None
        one = constant(1.0, f64)
        outer.insert_op_before(one, self.loop)
        types = [*(result.type for result in self.loop.results), f64]
        loop = rebuild(self.loop, [*self.loop.operands, one.result], types)
        assert isinstance(loop, scf.ForOp)
        rest, product = loop.results[self.position], loop.results[-1]
        logarithm = rt.MathOp("log", (product,), location=loop.location)
        factor = constant(number, f64)
        scaled = arith.MulfOp.create(
            operands=(logarithm.results[0], factor.result), result_types=(f64,), properties=_STRICT
        )
        total = arith.AddfOp.create(operands=(rest, scaled.result), result_types=(f64,), properties=_STRICT)
        outer.insert_ops_after([logarithm, factor, scaled, total], loop)
        for use in list(rest.uses):
            if use.operation is not total:
                use.operation.operands[use.index] = total.result
        return loop
