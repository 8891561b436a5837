"""Which loops over rows add up quadratic forms of the rows' data.

    for n: b[k] = y[n, k] - mu[k] for all k;  z = L^-1 b;  target += -0.5 * (sum over k of z[k]^2) - log_det

A real of a row has a *degree* in the data of the row, among which there is the number 1: what all rows share has degree
0 (`log_det`), what is linear in parameters with data as coefficients has degree 1 (`b[k]`), and so has what is a shared
multiple, a sum, a solution of linear equations of such reals; products and squares of these have degree 2. A sum of the
second degree over rows is that over any other rows for which the sums of products of data are the same. What is of
less than the degree of its sum counts as a product with the number 1 of the row (`missing`).

What memory in the loop holds has the degree of all that is stored there.
"""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, is_same_integer, known_constant
from ulam.dialects.walk import ops_within
from ulam.library.kernels import KERNELS
from ulam.library.records import record
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.affine_rows import Nest
from ulam.passes.loops.effects import BOUND, PURE, UNKNOWN, kernel_buffers, root, viewed, written_roots
from ulam.passes.loops.filled_buffers import memory_filled_by, users
from ulam.passes.loops.linear_flags import Flags
from ulam.passes.loops.linear_terms import LinearTerm, Terms

ANY = -1
"""The degree of 0, which is a form of any."""
_SUMS = (arith.AddfOp, arith.SubfOp)
_STORES = (rt.StoreOp, ad.AccumulateOp, rt.FillOp)
_STAYS = (scf.ForOp, scf.YieldOp, rt.LoadOp, rt.AllocOp, rt.ViewOp)
_SOLVED = {"mdivide_left_tri_low": (0, 1), "mdivide_left": (0, 1), "mdivide_left_spd": (0, 1),
           "mdivide_right_tri_low": (1, 0), "mdivide_right": (1, 0), "mdivide_right_spd": (1, 0)}  # fmt: skip
"""Kernels that solve linear equations: which argument is the matrix, which the right side."""
_NORMAL_TERMS = {4: 2, 5: 0, 6: 0, 7: 1}
"""The degrees of what `normal_terms` writes, by positions, where its right side has the first."""


_NO_FORM = "what it adds up is no quadratic form of the rows' data"


class Unfit(Exception):
    """Why a loop adds up something else; `memory`: of outside, that its rows read."""

    def __init__(self, reason: str, memory: rt.AllocOp | None = None) -> None:
        super().__init__(reason)
        self.memory = memory


@record
class RowForms:
    """What a loop adds up, if these are quadratic forms.

    `linear`: values of degree 1 by which the others are computed, as sums of terms; `missing`: operands of ops, each
    with how many degrees it has less than it counts for.
    """

    loop: scf.ForOp
    nest: Nest
    linear: dict[SSAValue, Terms] = field(default_factory=dict[SSAValue, Terms])
    missing: list[tuple[Operation, int, int]] = field(default_factory=list[tuple[Operation, int, int]])
    moderate: list[SSAValue] = field(default_factory=list[SSAValue])
    """What all rows share and checks ask for, besides coefficients."""
    divisors: list[SSAValue] = field(default_factory=list[SSAValue])
    """What all rows share and rows divide by: where it is 0 their sum is none of these forms."""
    fixed: list[Operation] = field(default_factory=list[Operation])
    """Ops right in the loop that do the same in all rows, and nothing but computing."""
    matrices: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Triangles of equations, with their sizes: those on the diagonal are divisors, too."""
    checked: dict[SSAValue, Terms] = field(default_factory=dict[SSAValue, Terms])
    """What checks alone ask for, of the same data as others."""
    holding: list[rt.CheckOp] = field(default_factory=list[rt.CheckOp])
    """Checks of rows, which hold for all."""
    asked: list[SSAValue] = field(default_factory=list[SSAValue])
    """What rows check of what all of them share, as that a scale is positive: conditions that have to hold."""


def row_forms(loop: scf.ForOp, nest: Nest) -> RowForms:
    """What a loop adds up. Raises Unfit."""
    return _Analysis(RowForms(loop, nest)).run()


@record
class _Analysis:
    found: RowForms
    degrees: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Of reals, of what loops carry, and of memory in the loop."""
    same: dict[SSAValue, bool] = field(default_factory=dict[SSAValue, bool])
    written: set[object] = field(default_factory=set[object])
    _moderate: dict[SSAValue, bool] = field(default_factory=dict[SSAValue, bool])
    _factors: dict[SSAValue, list[SSAValue]] = field(default_factory=dict[SSAValue, list[SSAValue]])

    def is_fixed(self, op: Operation) -> bool:
        """Whether an op in the loop does the same in all rows, and nothing but computing."""
        if isinstance(op, rt.AllocOp):
            return self._of_memory(op) in (0, ANY) and self.is_same(op.count)
        if isinstance(op, rt.KernelOp):
            memory = [viewed(buffer).owner for buffer in kernel_buffers(op)[1]]
            return all(isinstance(alloc, rt.AllocOp) and self.is_fixed(alloc) for alloc in memory)
        if isinstance(op, scf.ForOp):
            inner = (inner for inner in ops_within(op.body.block) if not isinstance(inner, scf.YieldOp))
            return all(map(self.is_fixed, inner)) and all(map(self.is_same, op.results))
        if isinstance(op, _STORES):
            alloc = viewed(_written_place(op)[0]).owner
            values = (value for value in op.operands if not isinstance(value.type, rt.BufferType))
            return isinstance(alloc, rt.AllocOp) and self.is_fixed(alloc) and all(map(self.is_same, values))
        if isinstance(op, rt.ViewOp):
            return self._holds_same(op.res)
        return (
            (type(op) in PURE or isinstance(op, (rt.LoadOp, rt.CheckOp)))
            and all(self.is_same(value) for value in op.operands if not isinstance(value.type, rt.BufferType))
            and all(map(self.is_same, op.results))
        )

    def run(self) -> RowForms:
        """What the loop adds up."""
        found, loop = self.found, self.found.loop
        for op in ops_within(loop):
            self.written |= _written_outside(op, loop)
        degrees = [self.of(op.value) for op in ops_within(loop) if isinstance(op, ad.TargetAddOp)]
        if max(degrees, default=0) != 2:
            raise Unfit("it adds up no quadratic form of the rows' data" if max(degrees, default=0) < 2 else _NO_FORM)
        for op in ops_within(loop):
            self._allow(op)
            self._find_missing(op)
        flags = _RowFlags(found.nest, None, set(), analysis=self)
        if not flags.are_kept(loop):
            raise Unfit("it hands on from row to row")
        for op in ops_within(loop):
            if isinstance(op, rt.CheckOp) and not self.is_same(op.ok):
                if not rt.HarmlessAttr.marks(op) or not flags.holds(op.ok):
                    raise Unfit("its rows check more than whether they are finite")
                found.holding.append(op)
        found.fixed = self._fixed_ahead()
        return found

    def _fixed_ahead(self) -> list[Operation]:
        """The fixed ops that only need what stands ahead of the loop, or others of them."""
        found: dict[Operation, None] = {}
        for op in self.found.loop.body.block.ops:
            needed = free_values_of_op(op)
            if self.is_fixed(op) and all(v.owner in found or not is_inside(v, self.found.loop) for v in needed):
                found[op] = None
        return list(found)

    def _allow(self, op: Operation) -> None:
        """Raises where an op does something else than computing, or by the number of the row."""
        if isinstance(op, scf.ForOp):
            bounds_stay = all(self.is_same(bound) for bound in (op.lb, op.ub)) and constant_integer(op.step) == 1
            if op is not self.found.loop and not bounds_stay:
                raise Unfit("an inner loop has other ends in each row")
        elif isinstance(op, _STORES):
            buffer, index = _written_place(op)
            if not isinstance(alloc := viewed(buffer).owner, rt.AllocOp) or not is_inside(alloc.res, self.found.loop):
                raise Unfit("something else reads what it computes")
            self._element_is_same(buffer, index)
            self._of_memory(alloc)
        elif isinstance(op, rt.KernelOp):
            for buffer in kernel_buffers(op)[1]:
                if not isinstance(alloc := viewed(buffer).owner, rt.AllocOp) or not is_inside(
                    alloc.res, self.found.loop
                ):
                    raise Unfit("something else reads what it computes")
                self._of_memory(alloc)
        elif isinstance(op, scf.IfOp):
            raise Unfit("it has a branch")
        elif not (isinstance(op, (*_STAYS, ad.TargetAddOp, rt.CheckOp)) or type(op) in PURE):
            raise Unfit("it does something else than computing")

    def _element_is_same(self, buffer: SSAValue, index: SSAValue | None) -> None:
        while True:
            if index is not None and not self.is_same(index):
                raise Unfit("which element it computes depends on the row")
            if not isinstance(view := buffer.owner, rt.ViewOp) or not is_inside(buffer, self.found.loop):
                return
            buffer, index = view.buffer, view.offset

    def is_moderate(self, value: SSAValue) -> bool:
        """Whether a real of a row is finite and has room for squares wherever coefficients, and `moderate`, have."""
        if value not in self._moderate:
            self._moderate[value] = True  # for what memory has is computed of what it had
            self._moderate[value] = self._is_moderate(value)
        return self._moderate[value]

    def _is_moderate(self, value: SSAValue) -> bool:
        if value in self.found.linear or known_constant(value) == 0:
            return True
        if self.is_same(value):
            self.found.moderate.append(value)
            return self.found.nest.facts(value) is not None
        op = value.owner
        if isinstance(op, _SUMS):
            return self.is_moderate(op.lhs) and self.is_moderate(op.rhs)
        if isinstance(op, arith.NegfOp):
            return self.is_moderate(op.operand)
        alloc = viewed(op.buffer).owner if isinstance(op, rt.LoadOp) else None
        if not isinstance(alloc, rt.AllocOp) or not is_inside(alloc.res, self.found.loop):
            return self._is_like_others(value)
        writers = [user for user in users(alloc) if not isinstance(user, rt.LoadOp) and not _fills_constant(user)]
        stored = [op.operands[_stored_position(op)] for op in writers if isinstance(op, _STORES)]
        return len(stored) == len(writers) and all(map(self.is_moderate, stored))

    def _is_like_others(self, value: SSAValue) -> bool:
        """Whether a value is linear in coefficients, which evaluations look at, with data as others have them."""
        terms, loop = self.found.nest.terms(value), self.found.loop
        if terms is None or self.found.nest.fills:
            return False
        known = [(*term.data, *term.divisors) for found in self.found.linear.values() for term in found]
        for term in terms:
            numbers = (*term.data, *term.divisors)
            if term.moved or term.is_of_one_row(self.found.nest.rows):
                return False
            if numbers and not any(are_all_alike(numbers, others, loop) for others in known):
                return False
        self.found.checked[value] = terms
        return True

    # ------------------------------------------------------------ what is the same in all rows

    def is_same(self, value: SSAValue) -> bool:
        """Whether a value is computed alike in all rows, of what they share."""
        if not is_inside(value, self.found.loop):
            return True
        if value not in self.same:
            self.same[value] = False
            self.same[value] = self._is_same(value)
        return self.same[value]

    def _is_same(self, value: SSAValue) -> bool:
        if isinstance(value, BlockArgument):
            loop = value.owner.parent_op()
            if loop is self.found.loop or not isinstance(loop, scf.ForOp):
                return False
            if value.index == 0:
                return self.is_same(loop.lb) and self.is_same(loop.ub)
            end = terminator(loop.body.block).operands[value.index - 1]
            return self._carries_same(value, loop.iter_args[value.index - 1], end)
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, rt.LoadOp):
            return self.is_same(op.index) and self._holds_same(op.buffer)
        if isinstance(op, scf.ForOp):
            position = op.results.index(value)
            bounds = (op.lb, op.ub, op.iter_args[position])
            return all(map(self.is_same, bounds)) and self.is_same(op.body.block.args[position + 1])
        return type(op) in PURE and all(map(self.is_same, op.operands))

    def _carries_same(self, carried: SSAValue, start: SSAValue, end: SSAValue) -> bool:
        """Whether what a loop carries is the same if it was so in the iteration before."""
        if not self.is_same(start):
            return False
        before = dict(self.same)
        self.same[carried] = True
        if self.is_same(end):
            return True
        self.same = before
        return False

    def _holds_same(self, buffer: SSAValue) -> bool:
        memory = buffer
        while isinstance(view := memory.owner, rt.ViewOp) and is_inside(memory, self.found.loop):
            if not self.is_same(view.offset):
                return False
            memory = view.buffer
        if is_inside(viewed(buffer), self.found.loop):
            alloc = viewed(buffer).owner
            return isinstance(alloc, rt.AllocOp) and self._of_memory(alloc) in (0, ANY)
        return self._stays(buffer)

    def _stays(self, buffer: SSAValue) -> bool:
        """Whether the loop does not write to memory of outside."""
        source = root(buffer)
        is_known = source is BOUND or source is not UNKNOWN
        return is_known and source not in self.written and UNKNOWN not in self.written

    # ------------------------------------------------------------ degrees

    def of(self, value: SSAValue) -> int:
        """The degree of a real. Raises Unfit if it has none."""
        if value not in self.degrees:
            self.degrees[value] = self._of(value)
        return self.degrees[value]

    def _of(self, value: SSAValue) -> int:
        if known_constant(value) == 0:
            return ANY
        if self.is_same(value):
            return 0
        if isinstance(value, BlockArgument):
            return self._of_carried(value)
        if (terms := self.found.nest.terms(value)) is None:
            return self._of_computed(value)
        if factors := self._shared_factors(value):
            before = dict(self.degrees), dict(self.same), dict(self.found.linear), list(self.found.divisors)
            try:
                degree = self._of_computed(value)
                self.found.moderate += factors
                return degree
            except Unfit:
                self.degrees, self.same, self.found.linear, self.found.divisors = before
        return self._of_terms(value, terms)

    def _of_terms(self, value: SSAValue, terms: Terms) -> int:
        """That of a sum of terms."""
        rows = self.found.nest.rows
        if (own := next((term for term in terms if term.is_of_one_row(rows)), None)) is not None:
            raise Unfit("rows have coefficients of their own", self._filled_ahead(own))
        if fills := self.found.nest.fills:
            memory = [each for filler in fills for each in memory_filled_by(filler)]
            raise Unfit("loops ahead compute what it reads", memory[0] if memory else None)
        self.found.linear[value] = terms
        return 1

    def _shared_factors(self, value: SSAValue) -> list[SSAValue]:
        """What depends on parameters and multiplies sums in a value: their terms are better added up before, for
        numbers may cancel there, and products with each of them would be rounded.
        """
        if value not in self._factors:
            self._factors[value] = self._find_shared_factors(value)
        return self._factors[value]

    def _find_shared_factors(self, value: SSAValue) -> list[SSAValue]:
        op, nest = value.owner, self.found.nest
        if not isinstance(op, Operation) or self.is_same(value):
            return []
        if isinstance(op, scf.ForOp):
            return self._shared_factors(terminator(op.body.block).operands[op.results.index(value)])
        if not isinstance(op, (*_SUMS, arith.NegfOp, arith.MulfOp, arith.DivfOp, rt.MathOp)):
            return []
        found = list(dict.fromkeys(factor for operand in op.operands for factor in self._shared_factors(operand)))
        is_product = isinstance(op, arith.MulfOp) or (isinstance(op, rt.MathOp) and op.function.data == "fma")
        pairs = [op.operands[:2], op.operands[1::-1]] if is_product else []
        for factor, other in pairs:
            terms = nest.terms(other) or []
            is_sum = len(terms) > 1 or any(term.loops for term in terms)
            if is_sum and self.is_same(factor) and not nest.is_data(factor) and nest.facts(factor) is not None:
                found.append(factor)
        return found

    def _of_computed(self, value: SSAValue) -> int:
        """That of what is computed of other reals."""
        op = value.owner
        if isinstance(op, rt.LoadOp) and isinstance(alloc := viewed(op.buffer).owner, rt.AllocOp):
            if not is_inside(alloc.res, self.found.loop):
                raise Unfit("what it reads is not linear in parameters with data as coefficients", alloc)
            self._element_is_same(op.buffer, op.index)
            return self._of_memory(alloc)
        if isinstance(op, scf.ForOp):
            return self.of(op.body.block.args[op.results.index(value) + 1])
        if isinstance(op, _SUMS):
            return _joined([self.of(op.lhs), self.of(op.rhs)])
        if isinstance(op, arith.MulfOp):
            return _product(self.of(op.lhs), self.of(op.rhs))
        if isinstance(op, arith.NegfOp):
            return self.of(op.operand)
        if isinstance(op, arith.DivfOp) and self.is_same(op.rhs):
            self.found.divisors.append(op.rhs)
            return self.of(op.lhs)
        if isinstance(op, rt.MathOp) and op.function.data == "square":
            return _product(*[self.of(op.arguments[0])] * 2)
        if isinstance(op, rt.MathOp) and op.function.data == "fma":
            a, b, c = map(self.of, op.arguments)
            return _joined([_product(a, b), c])
        if isinstance(op, arith.SelectOp) and self.is_same(op.cond):
            return _joined([self.of(op.lhs), self.of(op.rhs)])
        raise Unfit(_NO_FORM)

    def _filled_ahead(self, term: LinearTerm) -> rt.AllocOp | None:
        """Memory of outside that the coefficient of a row is read of."""
        for value in term.leaf:
            load = value.owner
            alloc = viewed(load.buffer).owner if isinstance(load, rt.LoadOp) and not self.is_same(value) else None
            if isinstance(alloc, rt.AllocOp):
                return alloc
        return None

    def _of_carried(self, argument: BlockArgument) -> int:
        """The degree of a real that an inner loop carries."""
        loop = argument.owner.parent_op()
        if not isinstance(loop, scf.ForOp) or argument.index == 0:
            raise Unfit(_NO_FORM)
        at = argument.index - 1
        return self._settle(argument, [loop.iter_args[at], terminator(loop.body.block).operands[at]])

    def _settle(self, what: SSAValue, parts: list[SSAValue]) -> int:
        """The degree of what may be computed of itself: what is so with it has to be so for it."""
        before = dict(self.degrees), dict(self.same), dict(self.found.linear)
        self.degrees[what] = ANY
        guess = _joined([self.of(part) for part in parts])
        self.degrees, self.same, self.found.linear = before
        self.degrees[what] = guess
        if _joined([self.of(part) for part in parts]) not in (guess, ANY):
            raise Unfit(_NO_FORM)
        return guess

    def _find_missing(self, op: Operation) -> None:
        """Notes which operands of an op that adds up, stores or hands on have less than the degree of all of it."""
        degree, positions = 2, [0]
        if isinstance(op, (*_SUMS, arith.SelectOp)):
            degree, positions = self._degree_of_sum(op.results[0]), [0, 1] if isinstance(op, _SUMS) else [1, 2]
        elif isinstance(op, rt.MathOp) and op.function.data == "fma":
            degree, positions = self._degree_of_sum(op.res), [2]
            if degree > 0 and (less := _product(self.of(op.arguments[0]), self.of(op.arguments[1]))) < degree:
                self._note(op, 0, degree, less)
        elif isinstance(op, _STORES):
            buffer, _ = _written_place(op)
            alloc = viewed(buffer).owner
            assert isinstance(alloc, rt.AllocOp)
            degree, positions = self._of_memory(alloc), [_stored_position(op)]
        elif isinstance(op, scf.ForOp) and op is not self.found.loop:
            self._find_missing_of_loop(op)
            return
        elif not isinstance(op, ad.TargetAddOp):
            return
        for position in positions:
            if degree > 0 and op.operands[position].type == f64:
                self._note(op, position, degree, self.of(op.operands[position]))

    def _degree_of_sum(self, value: SSAValue) -> int:
        """0 of what nothing is computed of by its degree."""
        return 0 if value in self.found.linear else self.degrees.get(value, 0)

    def _find_missing_of_loop(self, loop: scf.ForOp) -> None:
        end = terminator(loop.body.block)
        for n, argument in enumerate(loop.body.block.args[1:]):
            if (degree := self.degrees.get(argument, 0)) > 0:
                self._note(loop, 3 + n, degree, self.of(loop.iter_args[n]))
                self._note(end, n, degree, self.of(end.operands[n]))

    def _note(self, op: Operation, position: int, degree: int, found: int) -> None:
        if found not in (degree, ANY):
            self.found.missing.append((op, position, degree - found))

    def _of_memory(self, alloc: rt.AllocOp) -> int:
        """The degree of all that memory in the loop holds."""
        if alloc.res in self.degrees:
            return self.degrees[alloc.res]
        values: list[SSAValue] = []
        kernels: list[rt.KernelOp] = []
        for op in users(alloc):
            if isinstance(op, _STORES):
                values.append(op.operands[_stored_position(op)])
            elif isinstance(op, rt.KernelOp):
                if any(viewed(buffer).owner is alloc for buffer in kernel_buffers(op)[1]):
                    kernels.append(op)
            elif not isinstance(op, rt.LoadOp):
                raise Unfit("it does something else than computing")
        if not kernels:
            return self._settle(alloc.res, values)
        self.degrees[alloc.res] = ANY  # what kernels compute of themselves is none of it
        of_kernels = [self._of_kernel(kernel, alloc) for kernel in kernels]
        self.degrees[alloc.res] = _joined([*of_kernels, *map(self.of, values)])
        return self.degrees[alloc.res]

    def _of_kernel(self, op: rt.KernelOp, written: rt.AllocOp) -> int:
        """The degree of what a kernel writes to memory."""
        name, inputs = op.function.data, kernel_buffers(op)[0]
        kernel = KERNELS[name]
        numbers = [a for a in op.arguments if not isinstance(a.type, rt.BufferType)]
        if kernel.effects or not all(map(self.is_same, numbers)):
            raise Unfit("it does something else than computing")
        if all(self._holds_same(buffer) for buffer in inputs):
            return 0
        if name == "multiply":
            return _product(*[self._of_buffer(buffer) for buffer in inputs])
        if name == "normal_terms" and self._holds_same(inputs[0]):
            at = [n for n, argument in enumerate(op.arguments) if viewed(argument).owner is written]
            return sum(_NORMAL_TERMS[n] * max(self._of_buffer(inputs[1]), 0) for n in at)
        if name not in _SOLVED:
            raise Unfit(f"'{name}' of a row is not linear in it")
        matrix, right = (op.arguments[position] for position in _SOLVED[name])
        if not self._holds_same(matrix):
            raise Unfit("its rows have a matrix each")
        self.found.matrices[matrix] = op.arguments[2 if name.startswith("mdivide_left") else 3]
        return self._of_buffer(right)

    def _of_buffer(self, buffer: SSAValue) -> int:
        if self._holds_same(buffer):
            return 0
        alloc = viewed(buffer).owner
        if not isinstance(alloc, rt.AllocOp) or not is_inside(alloc.res, self.found.loop):
            raise Unfit("a kernel reads the data of a row where they are")
        return self._of_memory(alloc)


@record
class _RowFlags(Flags):
    """Flags of rows whose values are linear by what loops and memory of a row make of them."""

    analysis: _Analysis | None = None

    def is_finite(self, value: SSAValue) -> bool:
        """Whether a value of a row is finite."""
        assert self.analysis is not None
        return self.analysis.is_moderate(value)

    def holds(self, condition: SSAValue) -> bool:
        """Whether a condition is true in all rows; one that all rows share is asked ahead of them."""
        assert self.analysis is not None
        if super().holds(condition):
            return True
        if not self.analysis.is_same(condition) or self.nest.facts(condition) is None:
            return False
        self.analysis.found.asked.append(condition)
        return True


def are_all_alike(some: tuple[SSAValue, ...], others: tuple[SSAValue, ...], loop: scf.ForOp) -> bool:
    """Whether values are computed alike, one by one."""
    return len(some) == len(others) and all(are_alike(a, b, loop) for a, b in zip(some, others, strict=True))


def are_alike(one: SSAValue, other: SSAValue, loop: scf.ForOp) -> bool:
    """Whether two values are computed alike: by the same functions of values of outside, of the row, and of the numbers
    of inner loops of the same range.
    """
    if one is other:
        return True
    if not (is_inside(one, loop) and is_inside(other, loop)):
        return is_same_integer(one, other)
    a, b = one.owner, other.owner
    if isinstance(a, Block) and isinstance(b, Block):
        first, second = a.parent_op(), b.parent_op()
        if not isinstance(first, scf.ForOp) or not isinstance(second, scf.ForOp) or one is not a.args[0]:
            return False
        pairs = zip(first.operands[:3], second.operands[:3], strict=True)
        return other is b.args[0] and all(are_alike(x, y, loop) for x, y in pairs)
    if isinstance(a, Block) or isinstance(b, Block) or type(a) is not type(b) or a.properties != b.properties:
        return False
    return not a.regions and are_all_alike(tuple(a.operands), tuple(b.operands), loop)


def _joined(degrees: list[int]) -> int:
    """The degree of a sum."""
    return max(degrees, default=ANY)


def _product(one: int, other: int) -> int:
    return ANY if ANY in (one, other) else one + other


def _stored_position(op: Operation) -> int:
    return 0 if isinstance(op, rt.StoreOp) else 2 if isinstance(op, ad.AccumulateOp) else 1


def _fills_constant(op: Operation) -> bool:
    return isinstance(op, rt.FillOp) and known_constant(op.value) is not None


def _written_place(op: Operation) -> tuple[SSAValue, SSAValue | None]:
    if isinstance(op, rt.StoreOp):
        return op.operands[1], op.operands[2]
    return op.operands[0], op.operands[1] if isinstance(op, ad.AccumulateOp) else None


def _written_outside(op: Operation, loop: scf.ForOp) -> set[object]:
    """Roots of memory that an op writes: of a kernel those of its results alone."""
    if isinstance(op, rt.KernelOp):
        return {root(buffer) for buffer in kernel_buffers(op)[1]}
    return set() if op.regions else set(written_roots(op))
