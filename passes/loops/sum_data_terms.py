"""What loops add to the target of data alone is one number, which is computed when data are bound.

    for n: target += lchoose(N[n], y[n])       s = 0;  for n: s += lchoose(N[n], y[n])
           target += f(y[n], theta)        →   for n: target += f(y[n], theta)
                                               target += s

Sums are taken apart where an addend of data is costly. Only where data alone decide on the iterations (`data_slices`).
`hoist-data` moves what comes first to `bind`.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, f64, i64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant
from ulam.dialects.walk import ops_of
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.addends import addends, take_apart
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.tables import is_costly_within
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.rewriting import discard
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE


class SumDataTerms(TellingPass):
    """Adds up terms of data in loops of `evaluate` ahead of the loops. The order of sums is another one then."""

    name = "sum-data-terms"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        return sum_data_terms(evaluate_of(module, self.name))


def sum_data_terms(function: func.FuncOp) -> bool:
    """Takes terms of data out of all nests of loops at the top of a function; whether there were any."""
    slices = DataSlices()
    found = False
    for op in ops_of(function.body.block):
        if isinstance(op, scf.ForOp | scf.IfOp):
            terms: list[ad.TargetAddOp] = []
            _collect(op, op, slices, terms, in_loop=False)
            if terms:
                _sum(op, terms, slices)
                found = True
    return found


def _collect(nest: Operation, op: Operation, slices: DataSlices, terms: list[ad.TargetAddOp], *, in_loop: bool) -> None:
    """Terms that vary with the iterations of a nest, as far as only data decide whether they run."""
    if type(op) is ad.TargetAddOp:
        if in_loop:
            terms += [term for term in _alone(op, nest, slices) if _varies(term.value, nest, slices)]
    elif slices.has_data_control(op):
        for region in op.regions:
            for block in region.blocks:
                for inner in ops_of(block):
                    _collect(nest, inner, slices, terms, in_loop=in_loop or isinstance(op, scf.ForOp))


def _varies(value: SSAValue, nest: Operation, slices: DataSlices) -> bool:
    return is_inside(value, nest) and slices.is_data(value)


def _alone(op: ad.TargetAddOp, nest: Operation, slices: DataSlices) -> list[ad.TargetAddOp]:
    """The addition, or one for each addend if a costly one is data."""
    assert op.parent is not None
    found = list(addends(op.value, op.parent))
    for value, _ in found if len(found) > 1 else ():
        if isinstance(value, SSAValue) and _varies(value, nest, slices) and is_costly_within(value, nest, {}):
            return take_apart(op, found)
    return [op]


def _sum(nest: Operation, terms: list[ad.TargetAddOp], slices: DataSlices) -> None:
    block = nest.parent
    assert block is not None
    zero, one = constant(0, i64), constant(1, i64)
    memory = rt.AllocOp(one.result, rt.BufferType(f64), zero=True)
    block.insert_ops_before([zero, one, memory], nest)

    def add(original: Operation, copy: Operation, values: dict[SSAValue, SSAValue]) -> None:
        assert isinstance(copy, ad.TargetAddOp) and copy.parent is not None
        before = rt.LoadOp(memory.res, zero.result)
        after = arith.AddfOp(before.res, copy.value, arith.FastMathFlagsAttr("none"), f64)
        copy.parent.insert_ops_before([before, after, rt.StoreOp(after.result, memory.res, zero.result)], copy)
        discard(copy)

    block.insert_op_before(slices.copy(nest, terms, add), nest)
    total = rt.LoadOp(memory.res, zero.result)
    block.insert_ops_after([total, ad.TargetAddOp(total.res, location=terms[0].location)], nest)
    for term in terms:
        discard(term)
