"""Sums of logarithms that loops add to the target become logarithms of products.

    for n: target += log(x[n])      →    p = 1; for n: p = p * x[n]
                                         target += log(p)
    for n: target += -log1p_exp(z)  →    p = 1; for n: p = p * (1 + exp(-|z|)), target += -max(z, 0)
                                         target -= log(p)

A factor costs one multiplication, a logarithm two dozen operations and a division. Factors are in [1, 2] (`log_factors`
says how), so a product of some hundreds is a real; loops are cut into pieces of so many iterations, between which a
large product is added to the target and begins again with 1. One product for each coefficient that logarithms have: a
number or what no loop changes. All loops of a function share it, so that short ones do not pay for a logarithm each.
Weights of groups of rows (`unique_rows`) are coefficients, too: each group has a product of its own.

The sum has an error of half a unit in the last place of a factor, 1e-16, for each of them, as adding logarithms has,
but absolute: a `log1p` of a tiny number does not keep its digits. Levels 3 and 4, on functions whose target is only
added to (no `target()`), behind reverse mode; loops that are never widened profit as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, f64, i1, i64
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.core import SSAValues
from xdsl.passes import ModulePass

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import CMPF, constant, constant_integer
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import block_of, enclosing, terminator
from ulam.passes.builder import WRAPS
from ulam.passes.loops.log_factors import Coefficient, Factor, FactorWriter, SplitTerm
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard
from ulam.passes.settled import EVALUATE

_LOG_2 = 0.6931471805599453
_PIECE = 256
"""Factors of one product in a piece of a loop: at most 2^256, and what it begins with is at most 2^500."""
_LARGE = 2.0**500
"""Products above this are added to the target."""
_REASSOCIATE: dict[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr([FastMathFlag.REASSOC])}
_STRICT: dict[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr("none")}


class Key(NamedTuple):
    """Which product; `is_exponent`: the sum of exponents that belongs to it."""

    coefficient: Coefficient
    is_exponent: bool


State = dict[Key, SSAValue]
"""The products so far."""


@record(frozen=True)
class LogsToProducts(ModulePass):
    """Makes logarithms of products of sums of logarithms in the loops of `evaluate`."""

    name = "logs-to-products"
    changes_only = EVALUATE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(evaluate_of(op, self.name))


def run_on(function: func.FuncOp) -> None:
    """Multiplies where a function adds logarithms to its target."""
    if any(type(op) is ad.TargetOp for op in ops_within(function)):
        return  # the target is read on the way
    additions = [op for op in ops_within(function) if type(op) is ad.TargetAddOp]
    multiplying = _Multiplying(function)
    for addition in additions:
        multiplying.consider(addition)
    if multiplying.terms:
        multiplying.thread()


@record
class _Multiplying:
    """The products of one function."""

    function: func.FuncOp
    terms: dict[Operation, SplitTerm] = field(default_factory=dict)
    """What additions to the target become."""
    keys: dict[Operation, dict[Key, None]] = field(default_factory=dict)
    """The products of which there are factors in the regions of an op, but those that end inside."""
    direct: dict[Operation, Counter[Coefficient]] = field(default_factory=dict)
    """How many factors an iteration of a loop has, without those of loops inside."""
    outer: set[Operation] = field(default_factory=set)
    """Loops that have loops with factors inside."""
    _writers: dict[Block, FactorWriter] = field(default_factory=dict)

    # ------------------------------------------------------------ finding factors

    def consider(self, addition: ad.TargetAddOp) -> None:
        """Takes the logarithms out of an addition to the target, if it stands in a loop."""
        around, block = self._around(addition), addition.parent
        if not around or block is None:
            return
        if (writer := self._writers.get(block)) is None:
            writer = self._writers[block] = FactorWriter(block)
        groups = [op.body.block for op in around if isinstance(op, scf.ForOp) and _is_over_groups(op)]
        term = writer.term(addition.value, addition, (self.function.body.block, *groups))
        loops = [op for op in around if isinstance(op, scf.ForOp)]
        count = Counter(factor.coefficient for factor in term.factors)
        direct = self.direct.setdefault(loops[0], Counter())
        if not count or max((direct + count).values()) > _PIECE:
            return  # what was written is dead
        direct += count
        self.outer.update(loops[1:])
        many = "a logarithm" if count.total() == 1 else f"{count.total()} logarithms"
        remark_on(LogsToProducts.name, addition, f"{many} per iteration became factors of a product", done=True)
        self.terms[addition] = term
        for key in _keys(term.factors):
            group = _group_of(key)
            for op in around:
                self.keys.setdefault(op, {})[key] = None
                if op is group:
                    break

    def _around(self, op: Operation) -> list[Operation]:
        """The ops around one, the innermost first; none if it is in no loop, or in what products cannot leave."""
        found: list[Operation] = []
        outer = op.parent_op()
        while outer is not None and outer is not self.function:
            if isinstance(outer, scf.ForOp):
                if rt.LoopAttr.is_cold(outer) or constant_integer(outer.step) != 1:
                    return []
            elif not isinstance(outer, scf.IfOp):
                return []
            found.append(outer)
            outer = outer.parent_op()
        return found if any(isinstance(each, scf.ForOp) for each in found) else []

    # ------------------------------------------------------------ multiplying

    def thread(self) -> None:
        """Writes the products, which loops carry and branches yield; their logarithms are added at the end."""
        block = self.function.body.block
        every = dict.fromkeys(key for keys in self.keys.values() for key in keys if _group_of(key) is None)
        _finish(block, self._block(block, _begin(block, every)))

    def _block(self, block: Block, state: State) -> State:
        op = block.first_op
        while op is not None:
            following = op.next_op
            if (term := self.terms.get(op)) is not None:
                for factor in term.factors:
                    state = _multiply(op, factor, state)
                if term.rest is not None:
                    block.insert_op_before(ad.TargetAddOp(term.rest, location=op.location), op)
                discard(op)
            elif (keys := self.keys.get(op)) is not None:
                parts = {key: state[key] for key in keys if _group_of(key) is not op}
                if isinstance(op, scf.ForOp):
                    state = {**state, **self._for(op, parts)}
                else:
                    assert isinstance(op, scf.IfOp)
                    state = {**state, **self._if(op, parts)}
            op = following
        return state

    def _if(self, op: scf.IfOp, state: State) -> State:
        if not op.false_region.blocks:
            op.false_region.add_block(Block((scf.YieldOp.create(location=op.location),)))
        for region in op.regions:
            end = self._block(region.block, state)
            _yield(region.block, [end[key] for key in state])
        return _results(op, state)

    def _for(self, op: scf.ForOp, state: State) -> State:
        assert op.parent is not None
        around = enclosing(op, scf.ForOp)
        if around is not None and self.direct.get(around):
            state = _empty(op.parent, op, state)
        op.operands = (*op.operands, *state.values())
        body = op.body.block
        inner: State = {key: body.insert_arg(value.type, len(body.args)) for key, value in state.items()}
        own = dict.fromkeys(key for key in self.keys[op] if _group_of(key) is op)
        inner = self._block(body, {**inner, **_begin(body, own)})
        _finish(body, {key: inner[key] for key in own})
        if op in self.outer and self.direct.get(op):
            inner = _empty(body, terminator(body), inner)
        _yield(body, [inner[key] for key in state])
        results = _results(op, state)
        if op in self.outer:
            return results
        most = max(self.direct[op].values())
        piece = 1 << (_PIECE // most).bit_length() - 1
        if _is_at_most(op, piece):
            following = op.next_op
            assert following is not None
            return _empty(op.parent, following, results)
        return _in_pieces(op, piece, list(state))


def _is_over_groups(loop: scf.ForOp) -> bool:
    return rt.LoopAttr.kind_of(loop)[0] == "groups"


def _group_of(key: Key) -> Operation | None:
    """The loop over groups of rows of which each has a product of its own; None if the function has it."""
    value = key.coefficient[1]
    block = None if value is None else block_of(value)
    around = None if block is None else block.parent_op()
    return around if isinstance(around, scf.ForOp) else None


def _begin(block: Block, keys: Iterable[Key]) -> State:
    """Products without factors, at the beginning of a block."""
    begin = block.first_op
    assert begin is not None
    state: State = {}
    for key in keys:
        new = constant(0, i64) if key.is_exponent else constant(1.0, f64)
        block.insert_op_before(new, begin)
        state[key] = new.result
    return state


def _finish(block: Block, state: State) -> None:
    """Adds the logarithms of products to the target, at the end of a block."""
    end = terminator(block)
    for key, value in state.items():
        if key.is_exponent:
            number = arith.SIToFPOp.create(operands=(value,), result_types=(f64,))
            two = constant(_LOG_2, f64)
            logarithm = arith.MulfOp.create(
                operands=(number.results[0], two.result), result_types=(f64,), properties=_STRICT
            )
            block.insert_ops_before([number, two, logarithm], end)
            value = logarithm.results[0]
        else:
            logarithm = rt.MathOp("log", (value,))
            block.insert_op_before(logarithm, end)
        _add(block, end, key.coefficient, logarithm.results[0])


def _keys(factors: tuple[Factor, ...]) -> Iterator[Key]:
    for factor in factors:
        yield Key(factor.coefficient, False)
        if factor.exponent is not None:
            yield Key(factor.coefficient, True)


def _multiply(op: Operation, factor: Factor, state: State) -> State:
    """The products with one factor more, written before an op."""
    block = op.parent
    assert block is not None
    product, exponent = Key(factor.coefficient, False), Key(factor.coefficient, True)
    multiplied = arith.MulfOp.create(
        operands=(state[product], factor.value), result_types=(f64,), properties=_REASSOCIATE, location=op.location
    )
    block.insert_op_before(multiplied, op)
    state = {**state, product: multiplied.results[0]}
    if factor.exponent is not None:
        added = arith.AddiOp.create(
            operands=(state[exponent], factor.exponent), result_types=(i64,), properties=WRAPS, location=op.location
        )
        block.insert_op_before(added, op)
        state[exponent] = added.results[0]
    return state


def _add(block: Block, before: Operation, coefficient: Coefficient, logarithm: SSAValue) -> None:
    """Adds a logarithm to the target, times its coefficient."""
    number, value = coefficient
    scales: list[SSAValue] = [] if value is None else [value]
    if number != 1.0:
        scale = constant(number, f64)
        block.insert_op_before(scale, before)
        scales.append(scale.result)
    for scale in scales:
        product = arith.MulfOp.create(operands=(logarithm, scale), result_types=(f64,), properties=_STRICT)
        block.insert_op_before(product, before)
        logarithm = product.results[0]
    block.insert_op_before(ad.TargetAddOp(logarithm), before)


def _empty(block: Block, before: Operation, state: State) -> State:
    """Adds the logarithms of large products to the target; these begin again with 1."""
    emptied = dict(state)
    for key, value in state.items():
        if key.is_exponent:
            continue
        bound = constant(_LARGE, f64)
        is_large = arith.CmpfOp.create(
            operands=(value, bound.result), result_types=(i1,), properties={"predicate": CMPF["ogt"], **_STRICT}
        )
        then, otherwise = Block(), Block()
        logarithm, one = rt.MathOp("log", (value,)), constant(1.0, f64)
        end = scf.YieldOp.create(operands=(one.result,))
        then.add_ops([logarithm, one, end])
        _add(then, end, key.coefficient, logarithm.results[0])
        otherwise.add_op(scf.YieldOp.create(operands=(value,)))
        branch = scf.IfOp.create(
            operands=(is_large.results[0],), result_types=(f64,), regions=[Region(then), Region(otherwise)]
        )
        block.insert_ops_before([bound, is_large, branch], before)
        emptied[key] = branch.results[0]
    return emptied


def _yield(block: Block, values: list[SSAValue]) -> None:
    end = terminator(block)
    end.operands = (*end.operands, *values)


def _results(op: Operation, state: State) -> State:
    """Further results of an op, one for each product."""
    first = len(op.results)
    more = [OpResult(value.type, op, first + n) for n, value in enumerate(state.values())]
    op.results = SSAValues((*op.results, *more))
    return dict(zip(state, more, strict=True))


def _is_at_most(loop: scf.ForOp, count: int) -> bool:
    """Whether a loop surely has no more iterations than so many."""
    lower, upper = constant_integer(loop.lb), constant_integer(loop.ub)
    if lower is not None and upper is not None:
        return upper - lower <= count
    end = loop.ub.owner
    for bound in end.operands if isinstance(end, arith.MinSIOp) else (loop.ub,):
        op = bound.owner
        if isinstance(op, arith.AddiOp) and op.lhs is loop.lb:
            span = constant_integer(op.rhs)
            if span is not None and span <= count:
                return True
    return False


def _in_pieces(loop: scf.ForOp, piece: int, keys: list[Key]) -> State:
    """Makes a nest of a loop, whose inner one has so many iterations; between these products are emptied."""
    assert loop.parent is not None
    size = constant(piece, i64, loop.location)
    loop.parent.insert_op_before(size, loop)
    types = [v.type for v in loop.iter_args]
    block = Block(arg_types=[i64, *types])
    limit = arith.AddiOp.create(operands=(block.args[0], size.result), result_types=(i64,), properties=WRAPS)
    end = arith.MinSIOp.create(operands=(limit.result, loop.ub), result_types=(i64,))
    region = loop.detach_region(loop.body)
    inner = scf.ForOp.create(
        operands=(block.args[0], end.result, loop.step, *block.args[1:]),
        result_types=types,
        regions=[region],
        attributes=loop.attributes,
        location=loop.location,
    )
    last = scf.YieldOp.create(operands=inner.results)
    block.add_ops([limit, end, inner, last])
    first = len(types) - len(keys)
    emptied = _empty(block, last, dict(zip(keys, inner.results[first:], strict=True)))
    last.operands = (*inner.results[:first], *emptied.values())
    outer = scf.ForOp.create(
        operands=(loop.lb, loop.ub, size.result, *loop.iter_args),
        result_types=types,
        regions=[Region(block)],
        location=loop.location,
    )
    loop.parent.insert_op_before(outer, loop)
    for old, new in zip(loop.results, outer.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    loop.detach()
    loop.erase()
    return dict(zip(keys, outer.results[first:], strict=True))
