"""Writes arith, scf and rt ops at an insertion point, folding what is already known.

Constants and reads of bound data go to the start of the function, each once, whatever block is being written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import LocationAttr, f64, i1, i32, i64
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.dialects.integers import INT_MAX, INT_MIN
from ulam.dialects.op_making import append, made
from ulam.dialects.scalar_ops import (
    CMPF,
    CMPI,
    compare_integers,
    compare_reals,
    constant,
    convert,
    negate,
    simplify,
    width_of,
)
from ulam.dialects.walk import result_of

OpT = TypeVar("OpT", bound=Operation)

BUFFER_REAL = rt.BufferType(f64)
BUFFER_INT = rt.BufferType(i32)
BUFFER_I64 = rt.BufferType(i64)
COLD = rt.LoopAttr.of_kind("cold").as_attributes()
"""Of a loop that seldom runs, or does little."""
_LARGE_BUFFER = 1 << 20
"""Elements of a buffer from which on an error says what there was no memory for, sizes known or not."""
_NO_FASTMATH = arith.FastMathFlagsAttr("none")
REASSOCIATE = arith.FastMathFlagsAttr([FastMathFlag.REASSOC])
_FAST: dict[str, Attribute] = {"fastmath": _NO_FASTMATH}
_REASSOCIATE: dict[str, Attribute] = {"fastmath": REASSOCIATE}
MOST_SIZE = INT_MAX - 2**20
"""The greatest size of a global variable. So an int that is such a size may be added to, and surely does not wrap."""

Range = tuple[int, int]
"""The least and the greatest value that an integer may have."""

_I32_RANGE: Range = (INT_MIN, INT_MAX)
_I64_RANGE: Range = (-(2**63), 2**63 - 1)
_WIDE: Range = (-(2**40), 2**40)
"""Sums and products within are computed in 64 bits without a thought of wrapping there."""

_CHECKED: Range = (INT_MIN - 2**20, 2**32 - 1)
"""Of these an index or size in 64 bits may be checked in place of the int of 32 bits that it stands for.

Above the greatest int it is out of range, and so is the negative int that it wraps to. Below the smallest int it is
negative, and wraps to an int that only a container of more than 16 GB has as an index.
"""

WRAPS: dict[str, Attribute] = {"overflowFlags": arith.IntegerOverflowAttr("none")}
"""Properties of integer ops that may overflow, as all of ours may."""

_WRAPPING = (arith.AddiOp, arith.SubiOp, arith.MuliOp)
_PROPERTIES: dict[type[Operation], dict[str, Attribute]] = {
    **dict.fromkeys(_WRAPPING, WRAPS),
    **dict.fromkeys((arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp), _FAST),
}


def _contains(outer: Range, inner: Range) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _product_range(a: Range, b: Range) -> Range:
    corners = (a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])
    return min(corners), max(corners)


_RANGES: dict[type[Operation], Callable[..., Range]] = {
    arith.AddiOp: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    arith.SubiOp: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    arith.MuliOp: _product_range,
    arith.MinSIOp: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    arith.MaxSIOp: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    arith.SelectOp: lambda _, a, b: (min(a[0], b[0]), max(a[1], b[1])),
    arith.ExtSIOp: lambda a: a,
    arith.ExtUIOp: lambda a: a if a[0] >= 0 else (0, 2**32 - 1),
    arith.TruncIOp: lambda a: a,
}
"""The range of an op's result, before it wraps, from those of its operands."""


class Builder:
    """One function under construction."""

    def __init__(self, entry: Block) -> None:
        self.entry = entry
        self.block = entry
        self.location: LocationAttr | None = None
        self._prologue: list[Operation] = []
        self._i64: dict[Any, SSAValue] = {}
        self._i32: dict[Any, SSAValue] = {}
        self._constants: dict[Attribute, dict[Any, SSAValue]] = {i64: self._i64, i32: self._i32, f64: {}, i1: {}}
        self._by_identity = {id(type_): made for type_, made in self._constants.items()}
        self._bound: dict[int, SSAValue] = {}
        self.known: dict[SSAValue, int | float] = {}
        self._scopes: list[dict[Any, Any]] = [{}]
        self.new_shape: Callable[[Sequence[SSAValue]], None] | None = None
        """Called with the sizes of a container before they are multiplied."""
        self.memory_site: Callable[[], int | None] | None = None
        """Gives the entry of the site table for running out of memory."""

    # ------------------------------------------------------------ plumbing

    def emit(
        self,
        op_class: type[Operation],
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: dict[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
        attributes: dict[str, Attribute] | None = None,
    ) -> Operation:
        """Writes an op of another dialect (arith, scf, func) at the present position."""
        op = made(op_class, operands, result_types, properties or {}, attributes or {}, regions, self.location)
        append(self.block, op)
        return op

    def insert(self, op: OpT) -> OpT:
        """Puts an op at the present position; it gets the present location."""
        if self.location is not None:
            op.location = self.location
        append(self.block, op)
        return op

    def value(
        self,
        op_class: type[Operation],
        operands: Sequence[SSAValue],
        result_type: Attribute,
        properties: dict[str, Attribute] | None = None,
    ) -> SSAValue:
        """Emits an op and returns its single result."""
        return result_of(self.emit(op_class, operands, (result_type,), properties))

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """Writes into `block` for a while; what is remembered there is forgotten at the end, and the place restored."""
        outer, location = self.block, self.location
        self.block = block
        self._scopes.append({})
        try:
            yield
        finally:
            self.block, self.location = outer, location
            self._scopes.pop()

    def remember(self, key: Any, value: SSAValue, *, everywhere: bool = False) -> SSAValue:
        """Notes a value for `recall`, until the block being written ends or for the whole function; returns it."""
        self._scopes[0 if everywhere else -1][key] = value
        return value

    def recall(self, key: Any) -> SSAValue | None:
        """What is remembered in this block or one around it."""
        for scope in reversed(self._scopes):
            if (found := scope.get(key)) is not None:
                return found
        return None

    def finish(self) -> None:
        """Puts constants and bound reads at the start of the function."""
        first = self.entry.first_op
        if first is None:
            self.entry.add_ops(self._prologue)
        else:
            self.entry.insert_ops_before(self._prologue, first)
        self._prologue = []

    def at_start(self, op: Operation) -> None:
        """Puts an op among those at the start of the function."""
        self._prologue.append(op)

    # ------------------------------------------------------------ constants

    def constant(self, value: int | float, type_: Attribute) -> SSAValue:
        """A constant, once per function."""
        key = value if value == value and value != 0 else repr(value)
        made = self._by_identity.get(id(type_))
        if made is None:  # to hash a type takes longer
            made = self._constants.setdefault(type_, {})
        if (found := made.get(key)) is None:
            op = constant(value, type_)
            self._prologue.append(op)
            found = made[key] = op.results[0]
            self.known[found] = value
        return found

    def i64(self, value: int) -> SSAValue:
        return self._i64.get(value) or self.constant(value, i64)

    def i32(self, value: int) -> SSAValue:
        return self._i32.get(value) or self.constant(value, i32)

    def i1(self, value: bool) -> SSAValue:
        return self.constant(int(value), i1)

    def f64(self, value: float) -> SSAValue:
        return self.constant(float(value), f64)

    def bound(self, slot: int, type_: Attribute) -> SSAValue:
        """Slot `slot` of the bound table, read once at the start of the function."""
        if (found := self._bound.get(slot)) is None:
            op = rt.BoundOp(slot, type_)
            self._prologue.append(op)
            found = self._bound[slot] = op.results[0]
        return found

    # ------------------------------------------------------------ ranges

    def limit(self, a: SSAValue, least: int, greatest: int) -> None:
        """Notes that an integer is in a range, from here to the end of the block being written."""
        low, high = self.range_of(a)
        self._scopes[-1]["range", a] = (max(low, least), min(high, greatest))

    def limit_everywhere(self, a: SSAValue, least: int, greatest: int) -> None:
        """As `limit`, of what is known at the start of the function."""
        low, high = self._scopes[0].get(("range", a), (least, greatest))
        self._scopes[0]["range", a] = (max(low, least), min(high, greatest))

    def limit_size(self, a: SSAValue, least: int) -> None:
        """Notes that an integer of 64 bits is a size, and what follows for the one that it is computed from."""
        self.limit(a, least, INT_MAX)
        greatest, op = INT_MAX, a.owner
        while isinstance(op, arith.AddiOp | arith.SubiOp):
            left, right = op.operands
            if (known := self.known.get(right)) is not None:
                a, change = left, -int(known) if isinstance(op, arith.AddiOp) else int(known)
            elif (known := self.known.get(left)) is not None and isinstance(op, arith.AddiOp):
                a, change = right, -int(known)
            else:
                return
            least, greatest, op = least + change, greatest + change, a.owner
            self.limit(a, least, greatest)

    def range_of(self, a: SSAValue, depth: int = 16) -> Range:
        """What is known of an integer's value: of loop variables, sizes, what was noted, and of sums of such."""
        if (x := self.known.get(a)) is not None:
            return int(x), int(x)
        for scope in reversed(self._scopes):
            if (found := scope.get(("range", a))) is not None:
                return found
        full = _I32_RANGE if a.type == i32 else (0, 1) if a.type == i1 else _I64_RANGE
        op = a.owner
        if isinstance(op, Block) or not depth or (rule := _RANGES.get(type(op))) is None:
            return full
        result = rule(*(self.range_of(operand, depth - 1) for operand in op.operands))
        if not (full[0] <= result[0] and result[1] <= full[1]):
            return full  # it may wrap
        self._scopes[-1]["range", a] = result
        return result

    # ------------------------------------------------------------ arithmetic

    def binary(
        self, op_class: type[Operation], a: SSAValue, b: SSAValue, properties: dict[str, Attribute] | None = None
    ) -> SSAValue:
        """An op of two operands and a result of one type, folded where constants tell its value."""
        x, y = self.known.get(a), self.known.get(b)
        if x is not None or y is not None:
            outcome = simplify(op_class, x, y, width_of(a.type))
            if outcome is not None:
                return a if outcome == "left" else b if outcome == "right" else self.constant(outcome, a.type)
        return self.value(op_class, (a, b), a.type, _PROPERTIES.get(op_class) if properties is None else properties)

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Integer sum (i32 or i64)."""
        return self.binary(arith.AddiOp, a, b)

    def sub(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Integer difference."""
        return self.binary(arith.SubiOp, a, b)

    def mul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Integer product."""
        return self.binary(arith.MuliOp, a, b)

    def addf(self, a: SSAValue, b: SSAValue, reassociate: bool = False) -> SSAValue:
        """Sum of reals; `reassociate`: terms of the sum may be added in another order."""
        return self.binary(arith.AddfOp, a, b, _REASSOCIATE if reassociate else _FAST)

    def subf(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.binary(arith.SubfOp, a, b)

    def mulf(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Product of reals; by -1.0 the negated factor."""
        if self.known.get(b) == -1.0:
            return self.negf(a)
        return self.negf(b) if self.known.get(a) == -1.0 else self.binary(arith.MulfOp, a, b)

    def divf(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.binary(arith.DivfOp, a, b)

    def negf(self, a: SSAValue) -> SSAValue:
        if (x := self.known.get(a)) is not None and (value := negate(x)) is not None:
            return self.f64(value)
        return self.value(arith.NegfOp, (a,), f64, _FAST)

    def cmpi(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """Comparison of integers, by the name of the predicate (`CMPI`)."""
        x, y = self.known.get(a), self.known.get(b)
        if x is not None and y is not None:
            return self.i1(compare_integers(predicate, int(x), int(y), width_of(a.type)))
        return self.value(arith.CmpiOp, (a, b), i1, {"predicate": CMPI[predicate]})

    def cmpf(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """Comparison of reals, by the name of the predicate (`CMPF`)."""
        x, y = self.known.get(a), self.known.get(b)
        if x is not None and y is not None:
            return self.i1(compare_reals(predicate, x, y))
        return self.value(arith.CmpfOp, (a, b), i1, {"predicate": CMPF[predicate], **_FAST})

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        """`condition ? a : b`, both of which are computed."""
        if a is b:
            return a
        if (known := self.known.get(condition)) is not None:
            return a if known else b
        return self.value(arith.SelectOp, (condition, a, b), a.type)

    def both(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Logical and."""
        return self.binary(arith.AndIOp, a, b)

    def either(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Logical or."""
        return self.binary(arith.OrIOp, a, b)

    def invert(self, a: SSAValue) -> SSAValue:
        """Logical not of an i1."""
        return self.binary(arith.XOrIOp, a, self.i1(True))

    def to_real(self, a: SSAValue) -> SSAValue:
        """i32 or i64 → f64."""
        if a.type == f64:
            return a
        if (x := self.known.get(a)) is not None:
            return self.f64(float(x))
        return self.recall(("real", a)) or self.remember(
            ("real", a), self.value(arith.SIToFPOp, (a,), f64))  # fmt: skip

    def truncate(self, a: SSAValue) -> SSAValue:
        """i64 → i32."""
        return self.converted(arith.TruncIOp, a, i32)

    def converted(self, op_class: type[Operation], a: SSAValue, type_: Attribute) -> SSAValue:
        """A conversion to another type of numbers."""
        if (x := self.known.get(a)) is not None and (value := convert(op_class, x, a.type, type_)) is not None:
            return self.constant(value, type_)
        return self.value(op_class, (a,), type_)

    def index(self, a: SSAValue) -> SSAValue:
        """i32 → i64: through sums, differences and products that surely do not wrap, so that loop indices stay plain
        to LLVM."""
        return self._extended(a, _I32_RANGE)

    def index_to_check(self, a: SSAValue) -> SSAValue:
        """As `index`, for an index or size that is checked next. It may be beyond the range of ints where the int of
        32 bits would fail the check, too (`_CHECKED`)."""
        return self._extended(a, _CHECKED)

    def _extended(self, a: SSAValue, within: Range) -> SSAValue:
        if a.type == i64:
            return a
        if (x := self.known.get(a)) is not None:
            return self.i64(int(x))
        least, greatest = within
        wide = self._wide(a)
        low, high = self.range_of(wide)
        if least <= low and high <= greatest:
            return wide
        return self.recall(("extended", a)) or self.remember(("extended", a), self.value(arith.ExtSIOp, (a,), i64))

    def _wide(self, a: SSAValue) -> SSAValue:
        """A value of 64 bits whose lower half is `a`."""
        if (x := self.known.get(a)) is not None:
            return self.i64(int(x))
        if (found := self.recall(("index", a))) is not None:
            return found
        op = a.owner
        if isinstance(op, rt.BoundOp):
            extension = arith.ExtSIOp.create(operands=(a,), result_types=(i64,))
            self._prologue.append(extension)
            self._scopes[0]["index", a] = extension.results[0]
            return extension.results[0]
        if isinstance(op, arith.TruncIOp) and _contains(_WIDE, self.range_of(op.operands[0])):
            result = op.operands[0]
        elif isinstance(op, _WRAPPING):
            left, right = self._wide(op.operands[0]), self._wide(op.operands[1])
            if _contains(_WIDE, _RANGES[type(op)](self.range_of(left), self.range_of(right))):
                result = self.binary(type(op), left, right)
            else:
                result = self.value(arith.ExtSIOp, (a,), i64)
        else:
            result = self.value(arith.ExtSIOp, (a,), i64)
        return self.remember(("index", a), result)

    def truth(self, a: SSAValue) -> SSAValue:
        """Stan's int (or real) as a condition: i1, true if not 0."""
        if a.type == i1:
            return a
        if isinstance(op := a.owner, arith.ExtUIOp):
            return op.operands[0]
        if a.type == f64:
            return self.cmpf("une", a, self.f64(0.0))
        return self.cmpi("ne", a, self.i32(0) if a.type == i32 else self.i64(0))

    def boolean(self, a: SSAValue) -> SSAValue:
        """i1 → Stan's int, 0 or 1."""
        return self.converted(arith.ExtUIOp, a, i32)

    # ------------------------------------------------------------ memory

    def alloc(
        self, count: SSAValue, type_: Attribute = BUFFER_REAL, *, zero: bool = False, variable: bool = False
    ) -> SSAValue:
        """Arena memory. `variable`: may be written again after it was read."""
        is_large = self.known.get(count, _LARGE_BUFFER) >= _LARGE_BUFFER
        site = self.memory_site() if is_large and self.memory_site is not None else None
        return self.insert(rt.AllocOp(count, type_, zero=zero, variable=variable, site=site)).results[0]

    def load(self, buffer: SSAValue, index: SSAValue) -> SSAValue:
        """An element of a buffer."""
        return result_of(self.insert(rt.LoadOp(buffer, index)))

    def store(self, value: SSAValue, buffer: SSAValue, index: SSAValue, *, initial: bool = False) -> None:
        """`initial`: the element had no value before."""
        self.insert(rt.StoreOp(value, buffer, index, initial=initial))

    def view(self, buffer: SSAValue, offset: SSAValue) -> SSAValue:
        """The part of a buffer from an element on."""
        if self.known.get(offset) == 0:
            return buffer
        return self.insert(rt.ViewOp(buffer, offset)).results[0]

    def copy(self, destination: SSAValue, source: SSAValue, count: SSAValue, *, initial: bool = False) -> None:
        """Copies elements; the buffers do not overlap."""
        self.insert(rt.CopyOp(destination, source, count, initial=initial))

    def fill(self, destination: SSAValue, value: SSAValue, count: SSAValue, *, initial: bool = False) -> None:
        """Sets elements to one value."""
        self.insert(rt.FillOp(destination, value, count, initial=initial))

    def math(self, function: str, *arguments: SSAValue) -> SSAValue:
        """A function of reals of `library/derivatives.txt`."""
        return self.insert(rt.MathOp(function, arguments)).results[0]

    # ------------------------------------------------------------ control flow

    def for_loop(
        self,
        lower: SSAValue,
        upper: SSAValue,
        body: Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]],
        initial: Sequence[SSAValue] = (),
        *,
        cold: bool = False,
    ) -> Sequence[SSAValue]:
        """`for (i = lower; i < upper; ++i)`; `body(i, carried)` returns the values to carry on."""
        types = [v.type for v in initial]
        block = Block(arg_types=[i64, *types])
        first, end = self.range_of(lower)[0], self.range_of(upper)[1]
        with self.inside(block):
            self._scopes[-1]["range", block.args[0]] = (first, max(first, end - 1))
            self.emit(scf.YieldOp, tuple(body(block.args[0], block.args[1:])))
        op = self.emit(
            scf.ForOp,
            (lower, upper, self.i64(1), *initial),
            types,
            regions=(Region(block),),
            attributes=COLD if cold else None,
        )
        return op.results

    def if_else(
        self,
        condition: SSAValue,
        then: Callable[[], Sequence[SSAValue]],
        otherwise: Callable[[], Sequence[SSAValue]] = tuple,
    ) -> Sequence[SSAValue]:
        """A branch; both sides return values of the same types."""
        regions: list[Region] = []
        types: list[Attribute] = []
        for side in (then, otherwise):
            block = Block()
            with self.inside(block):
                values = tuple(side())
                self.emit(scf.YieldOp, values)
            types = [v.type for v in values]
            regions.append(Region(block))
        return self.emit(scf.IfOp, (condition,), types, regions=regions).results
