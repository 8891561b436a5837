"""Where reals of lowered code lie: an interval for each value, from how it is computed.

    exp(u) → [0, inf]      1 / (1 + exp(-|u|)) → [0, 1]      fma(p, square(x), s) → [0, inf], for p and s not below 0

A value is in its interval or NaN. Ends are whole numbers, rounded outward, so that no rounding of the computation can
leave the interval. Elements of memory that this function allocates have the hull of what is written to it, data what
they are declared to be.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import known_constant, predicate_of
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import terminator
from ulam.passes.loops.effects import UNKNOWN, Root, root, viewed, written_roots

Interval = tuple[float, float]

_INF = math.inf
ANY: Interval = (-_INF, _INF)
_NOTHING: Interval = (_INF, -_INF)
"""Of what is NaN only."""
_MOST = 1024.0
"""Ends beyond are infinite."""
_DEPTH = 60


class ValueRanges:
    """The intervals of the reals of a function, each found when it is first asked for."""

    def __init__(self, function: Operation) -> None:
        self._function = function
        self._known: dict[SSAValue, Interval] = {}
        self._memory: dict[Root, Interval] = {}
        self._writers: dict[Root, list[Operation]] | None = None
        self._depth = 0

    def of(self, value: SSAValue) -> Interval:
        """The interval of a real."""
        found = self._known.get(value)
        if found is None:
            self._known[value] = ANY  # while it is being found out
            if self._depth >= _DEPTH:
                return ANY
            self._depth += 1
            found = self._known[value] = _outward(self._find(value))
            self._depth -= 1
        return found

    def is_never_negative(self, value: SSAValue) -> bool:
        """Whether a real is at least 0, or NaN; it may be -0."""
        return self.of(value)[0] >= 0

    def _find(self, value: SSAValue) -> Interval:
        op = value.owner
        if isinstance(op, Block):
            return ANY
        if (known := known_constant(value)) is not None:
            return (float(known), float(known)) if known == known else _NOTHING
        if isinstance(op, arith.MulfOp):
            return self._product(*op.operands)
        if isinstance(op, rt.MathOp) and op.function.data == "fma":
            return _sum(self._product(*op.operands[:2]), self.of(op.operands[2]))
        if isinstance(op, rt.MathOp):
            return self._of_result(_FUNCTIONS.get(op.function.data), op)
        if type(op) in _ARITHMETIC:
            return self._of_result(_ARITHMETIC[type(op)], op)
        if isinstance(op, arith.SelectOp):
            return _hull(self._where(op.lhs, op.cond, True), self._where(op.rhs, op.cond, False))
        if isinstance(op, scf.IfOp):
            position = op.results.index(value)
            ends = [terminator(region.block).operands[position] for region in op.regions]
            return _hull(self._where(ends[0], op.cond, True), self._where(ends[1], op.cond, False))
        if isinstance(op, rt.LoadOp):
            return self._elements(op.buffer)
        if isinstance(op, arith.UIToFPOp):
            return (0.0, _INF)
        return ANY

    def _of_result(self, rule: Callable[..., Interval] | None, op: Operation) -> Interval:
        if rule is None:
            return ANY
        operands = [self.of(operand) for operand in op.operands]
        if any(low > high for low, high in operands) and rule is not _hull:
            return _NOTHING
        return rule(*operands)

    def _product(self, a: SSAValue, b: SSAValue) -> Interval:
        """The interval of a product: a square where both are the same, or one is a product with the other, too."""
        if a is b:
            return _square(self.of(a))
        for inner, other in ((a.owner, b), (b.owner, a)):
            if isinstance(inner, arith.MulfOp) and other in inner.operands:
                factor = inner.operands[1] if inner.operands[0] is other else inner.operands[0]
                return _times(self.of(factor), _square(self.of(other)))
        return _times(self.of(a), self.of(b))

    def _where(self, value: SSAValue, condition: SSAValue, holds: bool) -> Interval:
        """The interval of a value where a condition holds, or does not."""
        compare = condition.owner
        found = self.of(value)
        if not isinstance(compare, arith.CmpfOp):
            return found
        negated = value.owner if isinstance(value.owner, arith.NegfOp) else None
        subject = value if negated is None else negated.operand
        left, right = compare.operands
        predicate = predicate_of(compare)
        if left is subject and (limit := known_constant(right)) is not None:
            allowed = _allowed(predicate, float(limit), holds)
        elif right is subject and (limit := known_constant(left)) is not None:
            allowed = _allowed(_MIRRORED.get(predicate, ""), float(limit), holds)
        else:
            return found
        part = _both(self.of(subject), allowed)
        return part if negated is None else (-part[1], -part[0])

    # ------------------------------------------------------------ memory

    def _elements(self, buffer: SSAValue) -> Interval:
        """The hull of what is written to memory; what nobody wrote nobody reads. Of data: as they are declared."""
        if isinstance(bound := viewed(buffer).owner, rt.BoundOp):
            return (0.0, _INF) if rt.NeverNegativeAttr.marks(bound) else ANY
        source = root(buffer)
        found = self._memory.get(source)
        if found is None:
            self._memory[source] = ANY  # while it is being found out
            found = self._memory[source] = self._written(source)
        return found

    def _written(self, source: Root) -> Interval:
        if not isinstance(source, SSAValue) or not isinstance(alloc := source.owner, rt.AllocOp):
            return ANY
        writers = self._all_writers()
        if UNKNOWN in writers:
            return ANY
        found = (0.0, 0.0) if alloc.zero is not None else _NOTHING
        for op in writers.get(source, ()):
            if isinstance(op, rt.StoreOp | rt.FillOp):
                part = self.of(op.value)
            elif isinstance(op, rt.CopyOp) and op.source.type == op.destination.type:
                part = self._elements(op.source)
            else:
                return ANY
            found = _hull(found, part)
        return found

    def _all_writers(self) -> dict[Root, list[Operation]]:
        if self._writers is None:
            self._writers = {}
            for op in ops_within(self._function):
                if isinstance(op, ad.IndependentOp):  # says what the parameters are, and writes nothing
                    continue
                for written in written_roots(op):
                    self._writers.setdefault(written, []).append(op)
        return self._writers


# ---------------------------------------------------------------- intervals


def _outward(interval: Interval) -> Interval:
    low, high = interval
    if low > high:
        return _NOTHING
    low = math.floor(low) if -_MOST <= low <= _MOST else _INF if low == _INF else _MOST if low > 0 else -_INF
    high = math.ceil(high) if -_MOST <= high <= _MOST else -_INF if high == -_INF else -_MOST if high < 0 else _INF
    return float(low), float(high)


def _hull(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])


def _both(a: Interval, b: Interval) -> Interval:
    return max(a[0], b[0]), min(a[1], b[1])


_MIRRORED = {"olt": "ogt", "ogt": "olt", "ole": "oge", "oge": "ole"}


def _allowed(predicate: str, limit: float, holds: bool) -> Interval:
    """Where x lies if `x predicate limit` holds, or does not; that it may be NaN goes without saying."""
    if not holds:
        predicate = {"olt": "oge", "ogt": "ole", "ole": "ogt", "oge": "olt"}.get(predicate, "")
    if predicate in ("olt", "ole"):
        return (-_INF, limit)
    if predicate in ("ogt", "oge"):
        return (limit, _INF)
    return ANY


def _sum(a: Interval, b: Interval) -> Interval:
    low, high = a[0] + b[0], a[1] + b[1]
    return (-_INF if low != low else low), (_INF if high != high else high)


def _minus(a: Interval) -> Interval:
    return -a[1], -a[0]


def _times(a: Interval, b: Interval) -> Interval:
    if a[0] > a[1] or b[0] > b[1]:
        return _NOTHING
    corners = [0.0 if x == 0 or y == 0 else x * y for x in a for y in b]
    return min(corners), max(corners)


def _inverse(a: Interval) -> Interval:
    low, high = a
    if low < 0 < high:
        return ANY
    if low >= 0:  # -0 is one of it
        return ANY if low == 0 else (1 / high, 1 / low)
    return ANY if high == 0 else (1 / high, 1 / low)


def _quotient(a: Interval, b: Interval) -> Interval:
    low, high = _inverse(b)
    return ANY if (low, high) == ANY else _times(a, (low, high))


def _square(a: Interval) -> Interval:
    low, high = _times(a, a)
    return max(low, 0.0), high


def _magnitude(a: Interval) -> Interval:
    low = 0.0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))
    return low, max(abs(a[0]), abs(a[1]))


def _exp(a: Interval) -> Interval:
    return tuple(0.0 if x == -_INF else _INF if x > 700 else math.exp(x) for x in a)  # type: ignore[return-value]


def _log(a: Interval) -> Interval:
    return tuple(-_INF if x <= 0 else _INF if x == _INF else math.log(x) for x in a)  # type: ignore[return-value]


def _log1p(a: Interval) -> Interval:
    return tuple(-_INF if x <= -1 else _INF if x == _INF else math.log1p(x) for x in a)  # type: ignore[return-value]


def _positive_only(function: Callable[..., Interval]) -> Callable[..., Interval]:
    """Of functions whose result for arguments out of their domain is NaN or infinite: those in it."""
    return lambda *arguments: function(*arguments) if arguments[0][0] >= 0 else ANY


def _always(low: float, high: float) -> Callable[..., Interval]:
    return lambda *_: (low, high)


_ARITHMETIC: dict[type[Operation], Callable[..., Interval]] = {
    arith.AddfOp: _sum,
    arith.SubfOp: lambda a, b: _sum(a, _minus(b)),
    arith.DivfOp: _quotient,
    arith.NegfOp: _minus,
}

_FUNCTIONS: dict[str, Callable[..., Interval]] = {
    "exp": _exp,
    "exp2": _always(0, _INF),
    "log": _log,
    "log1p": _log1p,
    "log1m": lambda a: _log1p(_minus(a)),
    "log1p_exp": _always(0, _INF),
    "log_inv_logit": _always(-_INF, 0),
    "log1m_inv_logit": _always(-_INF, 0),
    "inv_logit": _always(0, 1),
    "inv_logit_of_bounds": _always(0, 1),
    "Phi": _always(0, 1),
    "tanh": _always(-1, 1),
    "square": _square,
    "sqrt": lambda a: (math.sqrt(max(a[0], 0.0)), math.sqrt(max(a[1], 0.0))),
    "inv": _inverse,
    "inv_square": _always(0, _INF),
    "inv_sqrt": _positive_only(lambda a: (0.0, _INF)),
    "fabs": _magnitude,
    "abs": _magnitude,
    "fmin": _hull,  # of a NaN and a number it is the number
    "fmax": _hull,
    "pow": _positive_only(lambda a, b: (0.0, _INF)),
    "power_by_log": _always(0, _INF),
    "hypot": _always(0, _INF),
    "value_of": lambda a: a,
    "fixed_value_of": lambda a: a,
}
