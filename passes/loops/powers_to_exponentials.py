"""Powers of a base that a loop does not change, or that is data, become exponentials: its logarithm is taken once.

    for t: ... pow(a, n[t]) ...    →    l = log_of_base(a)      for t: ... power_by_log(a, n[t], l) ...
    for n: ... pow(t[n], a) ...    →    for n: ... power_by_log(t[n], a, log_of_base(t[n])) ...

`power_by_log` is exp(n l), which loops widen, while `pow` is a call; its derivative goes through l, so that what a
loop divides by a is divided once. At a = 0, at infinities and NaN it is `pow`, derivative included
(library/derivatives.txt). Elsewhere the two differ by |n l| units in the last place at most. Logarithms of data get
tables (`tabulate-data`).

Only where the base cannot be negative (`value_ranges`), and where the exponent changes and is no constant: for those
`pow` has shorter ways.
"""

from __future__ import annotations

from xdsl.dialects import func, scf
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import known_constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import enclosing, is_inside
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.loops.value_ranges import ValueRanges
from ulam.passes.remarks import remark
from ulam.passes.rewriting import discard, replace_uses

_LOOPS = (scf.ForOp, scf.WhileOp)


@record(frozen=True)
class PowersToExponentials(FunctionPass):
    """Makes exponentials of powers whose base a loop does not change, or is data, of all functions or of the one that
    is named.
    """

    name = "powers-to-exponentials"

    def changes_function(self, function: func.FuncOp) -> bool:
        changed = False
        powers = [op for op in ops_within(function) if isinstance(op, rt.MathOp) and op.function.data == "pow"]
        if powers:
            changed = _Powers(ValueRanges(function)).rewrite(powers) or changed
        return changed


class _Powers:
    """The powers of one function."""

    def __init__(self, ranges: ValueRanges) -> None:
        self.ranges = ranges
        self._slices = DataSlices()
        self._logs: dict[tuple[SSAValue, Operation], SSAValue] = {}

    def rewrite(self, powers: list[rt.MathOp]) -> bool:
        changed = False
        for op in powers:
            base, exponent = op.operands
            before = _outermost_without(base, op) or self._if_of_data(op)
            if before is None or known_constant(exponent) is not None:
                continue
            if not self.ranges.is_never_negative(base):
                remark(PowersToExponentials.name, op.location, "power", "the base may be negative", done=False)
                continue
            new = rt.MathOp("power_by_log", (base, exponent, self._log(base, before)), location=op.location)
            assert op.parent is not None
            op.parent.insert_op_before(new, op)
            replace_uses(op.res, new.res)
            discard(op)
            remark(PowersToExponentials.name, op.location, "power", "one logarithm of its base", done=True)
            changed = True
        return changed

    def _if_of_data(self, op: rt.MathOp) -> rt.MathOp | None:
        """A power in a loop whose base is data, and whose exponent is not."""
        base, exponent = op.operands
        in_loop = enclosing(op, scf.ForOp) is not None
        return op if in_loop and self._slices.is_data(base) and not self._slices.is_data(exponent) else None

    def _log(self, base: SSAValue, before: Operation) -> SSAValue:
        """The logarithm of a base, in front of a loop, or of the power."""
        found = self._logs.get((base, before))
        if found is None:
            new = rt.MathOp("log_of_base", (base,), location=before.location)
            assert before.parent is not None
            before.parent.insert_op_before(new, before)
            found = self._logs[base, before] = new.res
        return found


def _outermost_without(value: SSAValue, op: Operation) -> Operation | None:
    """The outermost loop around `op` that does not change a value; None if the innermost one does."""
    found: Operation | None = None
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, _LOOPS):
            if is_inside(value, parent):
                return found
            found = parent
        parent = parent.parent_op()
    return found
