"""What data divide in loops is divided ahead of them: a factor that the loop does not change, or one that is data.

    for i: ... (b * x[i]) / 100 ...      →    c = b / 100      for i: ... c * x[i] ...
    for i: ... (b[g[i]] * x[i]) / s ...  →    for i: ... b[g[i]] * (x[i] / s) ...

What then depends on data alone becomes a table (`tabulate-data`), what does not change leaves the loop (`licm`), and
the slope of the quotient divides nothing in the loop either. Factors of parameters are divided by constants of ordinary
size only, so that nothing overflows which did not.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, func, scf
from xdsl.ir import Operation, SSAValue

from ulam.dialects.scalar_ops import known_constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import enclosing, is_inside
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import applied_to, discard, replace_uses

_LARGEST = 1e30
"""What constants are of ordinary size: from its inverse on."""


@record(frozen=True)
class DataDivisors(FunctionPass):
    """Divides factors, not products, by data in loops, of all functions or of the one that is named."""

    name = "data-divisors"

    def changes_function(self, function: func.FuncOp) -> bool:
        slices = DataSlices()
        changed = False
        for op in [op for op in ops_within(function) if type(op) is arith.DivfOp]:
            loop = enclosing(op, scf.ForOp)
            if isinstance(loop, scf.ForOp):
                changed = _divide_a_factor(op, loop, slices) or changed
        return changed


def _divide_a_factor(op: arith.DivfOp, loop: scf.ForOp, slices: DataSlices) -> bool:
    """Divides one of the factors of the dividend in its place; whether there is one."""
    dividend, divisor = op.operands
    if not slices.is_data(divisor) or slices.is_data(dividend):
        return False
    factors = list(_factors(op))
    chosen = next((factor for factor in factors if _may_leave(factor.value, divisor, loop)), None)
    if chosen is None:
        rows = (factor for factor in factors if is_inside(factor.value, loop) and slices.is_data(factor.value))
        chosen = next(rows, None)
    if chosen is None:
        return False
    write = OpWriter(op)
    value = write.put(applied_to(op, (chosen.value, divisor)))
    for product, index in reversed(chosen.path):  # which may stand in front of the divisor
        operands = list(product.operands)
        operands[index] = value
        value = write.put(applied_to(product, operands))
    remark_on(DataDivisors.name, op, "a factor is divided, not the product", done=True, subject="division")
    replace_uses(op.result, value)
    discard(op)
    for product, _ in chosen.path:
        discard(product)
    return True


@record(frozen=True)
class _Factor:
    """A factor, and the products on the way to it: which operands of them, the last product first."""

    value: SSAValue
    path: tuple[tuple[Operation, int], ...] = ()


def _factors(division: arith.DivfOp) -> Iterator[_Factor]:
    """The factors of a dividend: of products that nobody else uses, and that are computed where it is divided."""
    work = [_Factor(division.operands[0])]
    while work:
        factor = work.pop()
        op = factor.value.owner
        if not isinstance(op, arith.MulfOp | arith.NegfOp) or op.parent is not division.parent:
            continue
        if len(list(op.results[0].uses)) == 1:
            found = [_Factor(operand, (*factor.path, (op, k))) for k, operand in enumerate(op.operands)]
            yield from found
            work += found


def _may_leave(factor: SSAValue, divisor: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a factor divided by a number of ordinary size is the same in all iterations."""
    number = known_constant(divisor)
    return isinstance(number, float) and 1 / _LARGEST <= abs(number) <= _LARGEST and not is_inside(factor, loop)
