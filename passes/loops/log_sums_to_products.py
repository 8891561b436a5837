"""Logarithms of sums of exponentials of sums of logarithms become logarithms of sums of products.

    for n: x = log(a[n]) + log(b[n])                     for n: s = a[n] * b[n] + c[n]
           y = log(c[n])                                        if s is in range: target += log(s), else bad = true
           m = max(x, y)                            →    if bad: for n: if s is not in range:
           target += m + log(exp(x - m) + exp(y - m))           what was there

Whatever m is, m + log(sum of exp(x_k - m)) is log(sum of exp(x_k)). What x_k is the logarithm of is known for
logarithms, their sums, constants, and elements of memory to which only such values are written: that memory gets a
twin, of what its elements are the logarithms of. So orders, loops and arrays in between do not matter.

Products may leave the range of numbers where sums of logarithms do not. What is below 0, and so has no logarithm, is
NaN in the product; sums that are NaN, or so large or small that a product might have lost something, go by the way
that the program has, in a second loop that as a rule has no iteration. So minus infinity, NaN and what is at the end of
the range stay what they were.

Two terms that are no such logarithms take one exponential, of their difference, as `log_sum_exp` of two numbers does.
So do two terms with weights (`log_mix`) that the loop does not change: logarithms of weights are taken ahead of it.
"""

from __future__ import annotations

import math

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import f64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant, constant_integer, known_constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import enclosing, is_inside, terminator
from ulam.passes.loops.effects import (
    BOUND,
    UNKNOWN,
    Root,
    is_speculatable,
    root,
    written_roots,
    written_roots_within,
)
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.loops.log_sums import LogSum, log_sum
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.second_loops import RANGE_BITS, is_sink, repeatable, roots_of, split
from ulam.passes.loops.value_ranges import ValueRanges
from ulam.passes.remarks import remark
from ulam.passes.rewriting import cloned, copies, discard, rebuild, replace_uses

_CONSTANT_BITS = 120.0
"""What a constant factor may be away from 1, in powers of 2."""
_BEYOND = 2.0
"""How far beyond the bound the logarithm of a factor may be that is too large."""


@record(frozen=True)
class LogSumsToProducts(FunctionPass):
    """Takes one logarithm of a sum of products, of all functions or of the one that is named."""

    name = "log-sums-to-products"

    def changes_function(self, function: func.FuncOp) -> bool:
        found = [op for op in ops_within(function) if log_sum(op) is not None]
        return bool(found) and _Rewriting(function).run(found)


# ---------------------------------------------------------------- what values are the logarithms of


@record
class _Factor:
    """A factor. `kind`: `value` itself; `complement`, 1 - value; `constant`; `twin` of a load; `exponential`.

    Of the first two no digit is lost, but for overflow; of the others that has to be seen.
    """

    kind: str
    value: SSAValue
    number: float = 0.0

    @property
    def is_exact(self) -> bool:
        return self.kind in ("value", "complement")


def _stored(value: SSAValue) -> SSAValue:
    """What was stored where a value is loaded, in the same block with nothing in between that may write there; else the
    value itself."""
    load = value.owner
    if not isinstance(load, rt.LoadOp):
        return value
    buffer, index = load.buffer, constant_integer(load.index)
    op = load.prev_op
    while op is not None:
        if isinstance(op, rt.StoreOp) and op.buffer is buffer:
            there = constant_integer(op.index)
            if op.index is load.index or (there is not None and there == index):
                return op.value
            if there is None or index is None:
                return value
        elif isinstance(op, rt.CopyOp) and op.destination is buffer:
            count = constant_integer(op.count)
            if index is None or count is None or index >= count:
                return value
            buffer = op.source
        elif not isinstance(op, ad.IndependentOp):
            written = written_roots_within(op)
            if UNKNOWN in written or not written.isdisjoint(roots_of(buffer)):
                return value
        op = op.prev_op
    return value


def _is_of_two(found: LogSum) -> bool:
    """Whether a sum has two terms, each with an exponential of its own."""
    of_two = len(found.terms) == 2 and found.weights is None and found.loop is None
    return of_two and isinstance(found.op, arith.AddfOp)


def _write_two(found: LogSum) -> None:
    """Two numbers need one exponential, of their difference."""
    block = found.op.parent
    assert block is not None
    new = rt.MathOp("log_sum_exp", found.terms, location=found.op.location)
    block.insert_op_before(new, found.op)
    replace_uses(found.op.results[0], new.results[0])
    discard(found.op)


def _has_fixed_weights(found: LogSum) -> bool:
    """Whether a loop does not change the weights of two terms, so that it need not take their logarithms."""
    loop = enclosing(found.op, scf.ForOp)
    return loop is not None and found.weights is not None and all(_is_fixed(w, loop) for w in found.weights)


def _is_fixed(value: SSAValue, around: Operation) -> bool:
    """Whether a value is the same wherever it is computed in a loop or branch, by one operation at most."""
    if not is_inside(value, around):
        return True
    op = value.owner
    return isinstance(op, Operation) and is_speculatable(op) and not any(is_inside(o, around) for o in op.operands)


def _write_mixture(found: LogSum) -> None:
    """Two numbers plus the logarithms of their weights, which are taken where these are known."""
    block, terms = found.op.parent, list[SSAValue]()
    assert block is not None and found.weights is not None
    for term, weight in zip(found.terms, found.weights, strict=True):
        before, around = found.op, found.op.parent_op()
        while isinstance(around, scf.ForOp | scf.IfOp) and _is_fixed(weight, around):
            before, around = around, around.parent_op()
        assert before.parent is not None
        if is_inside(weight, before):
            assert isinstance(weight.owner, Operation)
            before.parent.insert_op_before(computed := cloned(weight.owner), before)
            weight = computed.results[0]
        log = rt.MathOp("log", (weight,), location=found.op.location)
        before.parent.insert_op_before(log, before)
        total = arith.AddfOp(log.results[0], term, arith.FastMathFlagsAttr("none"), f64)
        block.insert_op_before(total, found.op)
        terms.append(total.result)
    _write_two(LogSum(found.op, terms))


class _Rewriting:
    """The rewriting of one function."""

    def __init__(self, function: Operation) -> None:
        self.function = function
        self.ranges = ValueRanges(function)
        self._products: dict[SSAValue, SSAValue] = {}
        self._twins: dict[SSAValue, SSAValue] = {}
        self._exact: dict[SSAValue, bool] = {}
        self._has_twin: dict[SSAValue, bool] = {}
        self._writers: dict[Root, list[Operation]] | None = None

    def run(self, ends: list[Operation]) -> bool:
        """Rewrites the sums that end with some ops; whether there was one. A term may be a sum that is rewritten."""
        changed = False
        for op in ends:
            found = log_sum(op) if op.parent is not None else None
            if found is None:
                continue
            reason = self._rewrite(found)
            if reason is not None and _is_of_two(found):
                _write_two(found)
                remark(LogSumsToProducts.name, found.op.location, "log_sum_exp", "one exponential of two", done=True)
                changed = True
                continue
            if reason is not None and _has_fixed_weights(found):
                _write_mixture(found)
                remark(LogSumsToProducts.name, found.op.location, "log_mix", "logarithms of fixed weights", done=True)
                changed = True
                continue
            changed = changed or reason is None
            remark(
                LogSumsToProducts.name, found.op.location, "log_sum_exp", reason or "logarithm of a sum of products",
                done=reason is None,
            )  # fmt: skip
        return changed

    def _rewrite(self, found: LogSum) -> str | None:
        """Rewrites a sum; why it does not if it does not."""
        outer = found.op.parent_op()
        uses = list(found.op.results[0].uses)
        if not isinstance(outer, scf.ForOp) or rt.LoopAttr.is_cold(outer):
            return "it is in no loop, or in a branch"
        if len(uses) != 1 or not is_sink(sink := uses[0].operation, outer):
            return "it is neither added to the target as it is, nor stored"
        logs = 0
        for term in found.terms:
            factors = self._factors(term, outer)
            if factors is None:
                return "a term is no sum of logarithms"
            logs += sum(factor.kind != "constant" and factor.kind != "exponential" for factor in factors)
        if not logs:
            return "a term is no sum of logarithms"
        if repeatable(sink.operands, outer, {}) is None:
            return "what it is computed from changes in the loop"
        total = self._sum(found, outer)
        split(outer, sink, found.op, total)
        return None

    # ------------------------------------------------------------ factors

    def _factors(self, value: SSAValue, loop: Operation) -> list[_Factor] | None:
        """The factors of the number whose logarithm a value is; None if there are none that are cheap."""
        value = _stored(value)
        op = value.owner
        if (known := known_constant(value)) is not None:
            is_in_range = abs(known) <= 0.69 * _CONSTANT_BITS or known == -math.inf or known != known
            return [_Factor("constant", value, math.exp(known))] if is_in_range else None
        if isinstance(op, rt.MathOp) and op.function.data in ("log", "log1m"):
            return [_Factor("value" if op.function.data == "log" else "complement", op.operands[0])]
        if isinstance(op, arith.AddfOp):
            left, right = (self._factors(operand, loop) for operand in op.operands)
            return None if left is None or right is None else left + right
        if isinstance(op, rt.LoadOp) and all(map(self._is_of_logs, roots_of(op.buffer))):
            return [_Factor("twin", value)]
        if not is_inside(value, loop) or (isinstance(op, rt.LoadOp) and root(op.buffer) is BOUND):
            return [_Factor("exponential", value)]
        return None

    def _is_of_logs(self, source: Root) -> bool:
        """Whether only logarithms, and constants, are written to the memory of a root."""
        if not isinstance(source, SSAValue) or not isinstance(source.owner, rt.AllocOp):
            return False
        found = self._has_twin.get(source)
        if found is None:
            self._has_twin[source] = False  # while it is being found out
            found = self._has_twin[source] = self._finds_logs(source)
        return found

    def _finds_logs(self, source: SSAValue) -> bool:
        writers = self._all_writers()
        if not writers.get(source):
            return False
        for op in () if UNKNOWN in writers else writers.get(source, ()):
            if isinstance(op, rt.StoreOp):
                factors = self._factors(op.value, self.function)
                if factors is None or op.value.type != f64:
                    return False
            elif isinstance(op, rt.CopyOp):
                if not all(map(self._is_of_logs, roots_of(op.source))):
                    return False
            elif not isinstance(op, rt.FillOp) or known_constant(op.value) is None:
                return False
        return UNKNOWN not in writers

    def _all_writers(self) -> dict[Root, list[Operation]]:
        if self._writers is None:
            self._writers = {}
            for op in ops_within(self.function):
                if not isinstance(op, ad.IndependentOp):
                    for written in written_roots(op):
                        self._writers.setdefault(written, []).append(op)
        return self._writers

    # ------------------------------------------------------------ products

    def _product(self, value: SSAValue, loop: Operation) -> SSAValue:
        """The number whose logarithm a value is, behind it; NaN if it is below 0, or may have lost something."""
        value = _stored(value)
        found = self._products.get(value)
        if found is not None:
            return found
        factors = self._factors(value, loop)
        assert factors is not None
        write = OpWriter.behind(value)
        exact = len(factors) <= 2 and all(factor.is_exact for factor in factors)
        constants = sum(factor.kind == "constant" for factor in factors)
        bits = (RANGE_BITS - _CONSTANT_BITS * constants) / max(len(factors) - constants, 1)
        bound = math.ldexp(1.0, max(int(bits), 0))
        numbers = [self._factor(factor, write, bound) for factor in factors]
        product = numbers[0]
        for number in numbers[1:]:
            product = write.real(arith.MulfOp, product, number)
        conditions: list[SSAValue] = []
        for factor, number in zip(factors, numbers, strict=True):
            if factor.kind == "constant" or (factor.kind == "twin" and len(factors) == 1):
                continue
            if not exact:
                conditions += [write.compare("oge", number, 1 / bound), write.compare("ole", number, bound)]
            elif not self.ranges.is_never_negative(number):
                conditions.append(write.compare("oge", number, 0.0))
        product = write.where(conditions, product, math.nan)
        self._products[value] = product
        return product

    def _factor(self, factor: _Factor, write: OpWriter, bound: float) -> SSAValue:
        """A factor. Exponentials are beyond the bound where they are too large, but finite: the product is not taken
        then, so its adjoint is 0, and 0 * infinity would be NaN."""
        match factor.kind:
            case "complement":
                return write.real(arith.SubfOp, write.number(1.0), factor.value)
            case "constant":
                return write.number(factor.number)
            case "exponential":
                outside = OpWriter.behind(factor.value)
                most = math.log(bound) + _BEYOND
                small = outside.where([outside.compare("ule", factor.value, most)], factor.value, most)
                return outside.put(rt.MathOp("exp", (small,)))
            case "twin":
                load = factor.value.owner
                assert isinstance(load, rt.LoadOp)
                return write.put(rt.LoadOp(self._twin(load.buffer), load.index))
            case _:
                return factor.value

    def _twin(self, buffer: SSAValue) -> SSAValue:
        """The memory of the numbers whose logarithms a buffer holds."""
        found = self._twins.get(buffer)
        if found is not None:
            return found
        op = buffer.owner
        assert isinstance(op, Operation) and op.parent is not None
        if isinstance(op, scf.IfOp):
            position = op.results.index(buffer)
            for region in op.regions:
                end = terminator(region.block)
                end.operands = [*end.operands, self._twin(end.operands[position])]
            new = rebuild(op, op.operands, [*(result.type for result in op.results), buffer.type])
            self._twins[new.results[position]] = new.results[-1]
            return new.results[-1]
        mapping = {} if isinstance(op, rt.AllocOp) else {op.operands[0]: self._twin(op.operands[0])}
        (copy,) = copies([op], mapping)
        op.parent.insert_op_after(copy, op)
        twin = self._twins[buffer] = copy.results[0]
        if isinstance(op, rt.AllocOp):
            for writer in self._all_writers().get(buffer, ()):
                self._write_twin(writer)
        return twin

    def _write_twin(self, writer: Operation) -> None:
        assert writer.parent is not None
        if isinstance(writer, rt.FillOp):
            known = known_constant(writer.value)
            assert known is not None
            value = constant(math.exp(known) if known < 700 else math.nan, f64)
            (copy,) = copies([writer], {writer.value: value.result, writer.destination: self._twin(writer.destination)})
            writer.parent.insert_ops_after([value, copy], writer)
        elif isinstance(writer, rt.CopyOp):
            mapping = {buffer: self._twin(buffer) for buffer in (writer.destination, writer.source)}
            (copy,) = copies([writer], mapping)
            writer.parent.insert_op_after(copy, writer)
        else:
            assert isinstance(writer, rt.StoreOp)
            value = self._product(writer.value, self.function)
            (copy,) = copies([writer], {writer.value: value, writer.buffer: self._twin(writer.buffer)})
            writer.parent.insert_op_after(copy, writer)

    # ------------------------------------------------------------ sums

    def _sum(self, found: LogSum, loop: Operation) -> SSAValue:
        """The sum of the products, in front of the logarithm of the sum of exponentials."""
        products = [self._product(term, loop) for term in found.terms]
        if found.loop is not None:
            return _carry_sum(found.loop, products[0])
        write = OpWriter(found.op)
        if found.weights is not None:
            pairs = zip(found.weights, products, strict=True)
            products = [write.real(arith.MulfOp, weight, product) for weight, product in pairs]
        total = products[0]
        for product in products[1:]:
            total = write.real(arith.AddfOp, total, product, reassociate=True)
        return total


def _carry_sum(loop: scf.ForOp, term: SSAValue) -> SSAValue:
    """Lets a loop add up a value of its iterations."""
    body = loop.body.block
    assert loop.parent is not None
    zero = constant(0.0, f64)
    loop.parent.insert_op_before(zero, loop)
    argument = body.insert_arg(f64, len(body.args))
    end = terminator(body)
    total = OpWriter(end).real(arith.AddfOp, argument, term, reassociate=True)
    end.operands = [*end.operands, total]
    new = rebuild(loop, [*loop.operands, zero.result], [*(result.type for result in loop.results), f64])
    return new.results[-1]
