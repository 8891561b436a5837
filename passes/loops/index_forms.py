"""Where the iterations of a nest of loops touch memory, as polynomials in loop variables and sizes.

    x[(j - 1) * M + i]    →    M*j + i - M

Two iterations of the outer loop touch different elements where the polynomials of both say so: `i` alone, one element
for each row; `i` below the stride `M` of a column; or, in rows one behind the other, `T*i + j` with `j` below `T`. What
this takes of sizes, `T - 1 - (upper - 1) >= 0` and the like, is told as conditions, for those who can test them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import gcd

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects.scalar_ops import constant, constant_integer, not_clamped
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.builder import WRAPS

Monomial = tuple[int, ...]
"""Numbers of its factors, in order."""

Form = dict[Monomial, int]
"""Monomial → its coefficient, which is not 0."""

_DEGREE = 3
_DEPTH = 40
_SUMS = {arith.AddiOp: 1, arith.SubiOp: -1}


def plus(a: Form, b: Form, factor: int = 1) -> Form:
    """`a + factor * b`."""
    total = dict(a)
    for monomial, count in b.items():
        total[monomial] = total.get(monomial, 0) + factor * count
    return {monomial: count for monomial, count in total.items() if count}


def times(a: Form, b: Form) -> Form:
    """`a * b`."""
    product: Form = {}
    for one, count in a.items():
        for other, by in b.items():
            key = tuple(sorted((*one, *other)))
            product[key] = product.get(key, 0) + count * by
    return {monomial: count for monomial, count in product.items() if count}


def known(form: Form) -> int | None:
    """The number that a form is; None if it is not one."""
    return form.get((), 0) if not form.keys() - {()} else None


@record(frozen=True)
class ColumnForms:
    """`multiple * stride * ... + offset`."""

    stride: Monomial
    multiple: int
    offset: Form

    def number_of(self, form: Form) -> Form:
        """Which column a form is in: what stride and multiple are multiplied by."""
        rest = plus(form, self.offset, -1)
        strides = list(self.stride)
        quotient: Form = {}
        for monomial, count in rest.items():
            left = list(monomial)
            for factor in strides:
                left.remove(factor)
            quotient[tuple(left)] = count // self.multiple
        return quotient


@record
class IndexForms:
    """The forms of ints as seen from one loop. Products of what the loops do not change are left as they are.

    `partner`: a later loop over the same range, whose variable counts as that of the first. `narrow`: arithmetic of 32
    bits in the nest, a program's own, is taken to be exact; `extended` has the forms of its results, for those who can
    tell that it is.
    """

    loop: scf.ForOp
    partner: scf.ForOp | None = None
    narrow: bool = False
    extended: list[Form] = field(default_factory=list[Form])
    factors: list[SSAValue] = field(default_factory=list[SSAValue])
    ranges: dict[int, tuple[Form, Form]] = field(default_factory=dict[int, tuple[Form, Form]])
    """Variable of an inner loop → its least value, and its greatest."""
    _numbers: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    _forms: dict[SSAValue, Form | None] = field(default_factory=dict[SSAValue, Form | None])

    def __post_init__(self) -> None:
        self.variable = self.number(self.loop.body.block.args[0])
        lower, upper = self.of(self.loop.lb), self.of(self.loop.ub)
        assert lower is not None and upper is not None
        self.span = plus(upper, lower, -1)

    def of(self, value: SSAValue, depth: int = 0) -> Form | None:
        """The form of an int; None if it depends on what is computed in the nest otherwise."""
        if value not in self._forms:
            self._forms[value] = self._find(value, depth)
        return self._forms[value]

    def number(self, value: SSAValue) -> int:
        """The number of a value among the factors, a new one if it has none."""
        if (number := self._numbers.get(value)) is None:
            number = self._numbers[value] = len(self.factors)
            self.factors.append(value)
        return number

    def _find(self, value: SSAValue, depth: int) -> Form | None:
        if (number := constant_integer(value)) is not None:
            return {(): number} if number else {}
        op = value.owner
        found: Form | None = None
        if isinstance(op, Block):
            loop = op.parent_op()
            if (loop is self.loop or loop is self.partner) and value is op.args[0]:
                return {(self.variable,): 1}
            if isinstance(loop, scf.ForOp) and value is op.args[0] and self.is_inside(value):
                return self._of_inner_variable(loop, value)
        elif depth < _DEPTH and (value.type == i64 or (self.narrow and value.type == i32 and self.is_inside(value))):
            found = self._of_sum_or_product(op, depth + 1)
        if found is not None:
            return found
        return None if self.is_inside(value) else {(self.number(value),): 1}

    def is_inside(self, value: SSAValue) -> bool:
        """Whether a value is one of the loop's, or of its partner's."""
        return is_inside(value, self.loop) or (self.partner is not None and is_inside(value, self.partner))

    def _of_sum_or_product(self, op: Operation, depth: int) -> Form | None:
        if (sign := _SUMS.get(type(op))) is not None:  # type: ignore[arg-type]
            left, right = self.of(op.operands[0], depth), self.of(op.operands[1], depth)
            return plus(left, right, sign) if left is not None and right is not None else None
        if isinstance(op, arith.MuliOp):
            left, right = self.of(op.operands[0], depth), self.of(op.operands[1], depth)
            product = times(left, right) if left is not None and right is not None else None
            return product if product is not None and all(len(m) <= _DEGREE for m in product) else None
        if self.narrow and isinstance(op, arith.ExtSIOp | arith.TruncIOp):
            found = self.of(op.operands[0], depth)
            if found is not None and isinstance(op, arith.ExtSIOp) and self.is_inside(op.input):
                self.extended.append(found)
            return found
        return None

    def _of_inner_variable(self, loop: scf.ForOp, value: SSAValue) -> Form | None:
        lower, upper, step = self.of(loop.lb), self.of(limit_of(loop)), constant_integer(loop.step)
        if lower is None or upper is None or step is None or step <= 0:
            return None
        number = self.number(value)
        if not any(self.is_variable(factor) for form in (lower, upper) for m in form for factor in m):
            self.ranges[number] = lower, plus(upper, {(): 1}, -1)
        return {(number,): 1}

    def is_variable(self, factor: int) -> bool:
        """Whether a factor changes within the nest."""
        return self.is_inside(self.factors[factor])

    # ------------------------------------------------------------ which iterations meet

    def stride(self, form: Form, variable: SSAValue | None = None) -> int | None:
        """By how many elements neighbouring iterations are apart, of the loop or of the inner one that has `variable`.

        None if it is not known.
        """
        number = self.variable if variable is None else self.number(variable)
        of_loop = {m: count for m, count in form.items() if number in m}
        return 0 if not of_loop else of_loop.get((number,)) if len(of_loop) == 1 else None

    def apart(self, forms: Sequence[Form]) -> list[Form] | None:
        """Forms that must not be negative for different iterations to touch different elements; None: they may meet."""
        of_lane = [{m: count for m, count in form.items() if self.variable in m} for form in forms]
        if len(of_lane[0]) != 1 or any(part != of_lane[0] for part in of_lane):
            return None
        ((monomial, count),) = of_lane[0].items()
        rests = [{m: c for m, c in form.items() if self.variable not in m} for form in forms]
        if monomial == (self.variable,):
            if not any(self.is_variable(factor) for rest in rests for m in rest for factor in m):
                if all(_never_met(plus(rest, rests[0], -1), count) for rest in rests):
                    return []
            if (found := self._within_column(rests, abs(count))) is not None:
                return found
        stride = list(monomial)
        stride.remove(self.variable)
        if any(self.is_variable(factor) for factor in stride):
            return None
        return self._within_row(rests, tuple(stride), abs(count))

    def _within_column(self, rests: Sequence[Form], count: int) -> list[Form] | None:
        """`count * i`, with other variables times a stride that no distance of iterations reaches."""
        found = self.columns(rests)
        if found is None or (found.stride == () and found.multiple <= count):
            return None
        stride, multiple = found.stride, found.multiple
        farthest = times({(): count}, plus(self.span, {(): 1}, -1))
        return [plus(plus({stride: multiple}, farthest, -1), {(): 1}, -1)]

    def columns(self, rests: Sequence[Form]) -> ColumnForms | None:
        """What forms without the outer variable are multiples of, but for an offset that they share; None if nothing.

        It goes with the inner loops' variables, or, where there are none, makes the difference of the forms.
        """
        stride: Monomial | None = None
        multiple = 0
        for rest in rests:
            for monomial, c in rest.items():
                variables = [factor for factor in monomial if self.is_variable(factor)]
                if not variables:
                    continue
                others = tuple(factor for factor in monomial if not self.is_variable(factor))
                if len(variables) > 1 or (stride is not None and others != stride):
                    return None
                stride, multiple = others, gcd(multiple, c)
        if stride is None:
            differences = [plus(rest, rests[0], -1) for rest in rests]
            monomials = {monomial for form in differences for monomial in form}
            if len(monomials) != 1:
                return None
            (stride,) = monomials
            multiple = gcd(*(form.get(stride, 0) for form in differences))
        offsets = [_modulo(rest, stride, multiple, self.is_variable) for rest in rests]
        if any(offset != offsets[0] for offset in offsets):
            return None
        return ColumnForms(stride, multiple, offsets[0])

    def _within_row(self, rests: Sequence[Form], stride: Monomial, count: int) -> list[Form] | None:
        """`count * stride * i`, with everything else between 0 and `count * stride`."""
        conditions: list[Form] = []
        rows: set[int] = set()
        for rest in rests:
            row = rest.get(stride, 0) if stride else 0
            if row % count:
                return None
            rest = {m: c for m, c in rest.items() if m != stride or not stride}
            least, most = self.bounds(rest)
            if least is None or most is None:
                return None
            if not stride and (number := known(least)) is not None:
                row = number // count * count
                least, most = plus(least, {(): row}, -1), plus(most, {(): row}, -1)
            rows.add(row)
            conditions += [least, plus(plus({stride: count}, {(): 1}, -1), most, -1)]
        return conditions if len(rows) == 1 else None

    def bounds(self, form: Form) -> tuple[Form | None, Form | None]:
        """The least and the greatest value for all iterations of the inner loops; None if they are not known."""
        least: Form = {}
        most: Form = {}
        for monomial, count in form.items():
            variables = [factor for factor in monomial if self.is_variable(factor)]
            if not variables:
                least, most = plus(least, {monomial: count}), plus(most, {monomial: count})
                continue
            if len(monomial) > 1 or variables[0] not in self.ranges:
                return None, None
            low, high = self.ranges[variables[0]]
            if count < 0:
                low, high = high, low
            least, most = plus(least, low, count), plus(most, high, count)
        return least, most

    # ------------------------------------------------------------ as ops

    def rows_in(self, form: Form) -> tuple[Form, int, Form] | None:
        """`stride * (i + row) + column` as stride, row and column, for the outer variable `i`; None if it is not so.

        Of a stride that is a number, above 1, all rows are row 0: what is left over is part of the column.
        """
        of_lane = [m for m in form if self.variable in m]
        if len(of_lane) != 1:
            return None
        count = form[of_lane[0]]
        if of_lane[0] == (self.variable,) and abs(count) > 1:
            return {(): count}, 0, {m: c for m, c in form.items() if m != of_lane[0]}
        if count != 1:
            return None
        stride = list(of_lane[0])
        stride.remove(self.variable)
        if not stride or any(self.is_variable(factor) for factor in stride):
            return None
        key = tuple(stride)
        return {key: 1}, form.get(key, 0), {m: c for m, c in form.items() if self.variable not in m and m != key}

    def values_of(self, form: Form) -> list[SSAValue]:
        """The values that a form has as factors."""
        return [self.factors[number] for monomial in form for number in monomial]

    def write(self, form: Form, values: Mapping[SSAValue, SSAValue] | None = None) -> tuple[list[Operation], SSAValue]:
        """The ops that compute a form, and its value. `values`: those that are called otherwise there."""
        names = values or {}
        ops: list[Operation] = []

        def put(cls: type[Operation], left: SSAValue, right: SSAValue) -> SSAValue:
            op = cls.create(operands=(left, right), result_types=(i64,), properties=WRAPS)
            ops.append(op)
            return op.results[0]

        def number(value: int) -> SSAValue:
            op = constant(value, i64)
            ops.append(op)
            return op.result

        total: SSAValue | None = None

        def wide(value: SSAValue) -> SSAValue:
            if value.type == i64:
                return value
            op = arith.ExtSIOp.create(operands=(value,), result_types=(i64,))
            ops.append(op)
            return op.results[0]

        for monomial, count in sorted(form.items(), reverse=True):
            factors = [wide(names.get(self.factors[k], self.factors[k])) for k in monomial]
            if count != 1 or not factors:
                factors.append(number(count))
            product = factors[0]
            for factor in factors[1:]:
                product = put(arith.MuliOp, product, factor)
            total = product if total is None else put(arith.AddiOp, total, product)
        return ops, number(0) if total is None else total


def limit_of(loop: scf.ForOp) -> SSAValue:
    """The upper bound of a loop; `n` if it is `max(n, 0)`, from 0."""
    return not_clamped(loop.ub) if constant_integer(loop.lb) == 0 else loop.ub


def _never_met(difference: Form, count: int) -> bool:
    """Whether `count * d == difference` for no whole `d` but 0."""
    number = known(difference)
    return number is not None and (number == 0 or number % count != 0)


def _modulo(form: Form, stride: Monomial, multiple: int, is_variable: object) -> Form:
    """What is left of a form without multiples of the stride."""
    left = {m: c for m, c in form.items() if not any(is_variable(factor) for factor in m)}  # type: ignore[operator]
    if stride in left:
        left[stride] %= multiple
    return {m: c for m, c in left.items() if c}
