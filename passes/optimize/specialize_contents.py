"""What the contents of known arrays make trivial, for `specialize-data`; the program does not grow by them.

    x[J]            x, x[a:b], rep_vector(x[c], n)    J = {1, ..., n} for n elements of x; consecutive; all the same
    x .* c, x + c   x * 2.5, x + 2.5                  all elements of c are 2.5
    normal(mu, c)   normal(mu, 2.5)                   the same, of densities that are written for one element
    X * (b .* 0)    rep_vector(sum(b * 0), rows(X))   all elements of the second factor are 0, those of X are finite
    Z * b           rep_vector(sum(b * 0), rows(Z))   all elements of Z are 0
    X * b           X[, 2:3] * b[2:3] + sum(b[1:1] * 0)   all elements of the first column of X are 0, not of others

Only where nothing could throw: sizes are known to agree, indices to be in range. A scalar takes the place of a
container only if another operand has its size. Whatever a value is multiplied by, NaN and infinities travel:
`sum(b * 0)` is 0, or NaN where an element of `b` is not finite, as each row of the product is. The sign of such a zero
is not kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue

from ulam.dialects import stan
from ulam.dialects.integers import INT_MIN
from ulam.dialects.walk import ops_within
from ulam.library.functions import named
from ulam.passes.analysis.expression_text import expression_text
from ulam.passes.optimize import library_calls
from ulam.passes.optimize.static_autodiff import StaticAutodiff
from ulam.passes.remarks import collecting, remark
from ulam.passes.rewriting import replace_uses
from ulam.passes.variable_form import constant, erase_unused, literal_of

PASS = "specialize-data"
_BINARY = stan.BINARY_OPERATORS
_ADD, _SUB, _MUL, _DIV = (_BINARY[symbol] for symbol in "+-*/")
_ELEMENTWISE: dict[type[Operation], Any] = {_BINARY[".*"]: _MUL, _BINARY["./"]: _DIV, _ADD: _ADD, _SUB: _SUB}
"""Operators of containers of one size → the one that takes a scalar on the right."""
_NEG = stan.UNARY_OPERATORS["-"]
_LINEAR = (stan.VECTOR, stan.ROW_VECTOR, stan.MATRIX)
_MOST_PLACES = 2
_RETOLD = ("transformed_parameters", "model")
"""Blocks whose errors the program as written tells."""

Shape = tuple[int, ...]


class Knowledge(Protocol):
    """What `specialize-data` knows of the values that expressions have."""

    def value_of(self, value: SSAValue) -> Any:
        """The known value, as a NumPy array; None if it is not known."""

    def dims_of(self, value: SSAValue) -> Shape | None:
        """The known sizes."""

    def progression(self, container: SSAValue) -> Any:
        """`start` and `step` of the progression that a known container is; None if it is none."""


class ContentsFolding:
    """The work on one program."""

    def __init__(self, program: stan.ProgramOp, known: Knowledge) -> None:
        self._known = known
        self._program = program
        self._autodiff = StaticAutodiff(program)
        self._shapes: dict[SSAValue, Shape | None] = {}
        self._constants: dict[SSAValue, int | float | None] = {}

    def block(self, block: stan.BlockOp) -> None:
        """Folds what it can."""
        self._functions: dict[str, stan.FuncOp] | None = None
        for op in list(ops_within(block)):
            if op.parent is None:
                continue  # was part of an expression that is gone
            if isinstance(op, stan.IndexOp):
                self._gather(op)
            elif isinstance(op, _MUL) and [o.type for o in op.operands] == [stan.MATRIX, stan.VECTOR]:
                self._product(op)
            elif (scalar_form := _ELEMENTWISE.get(type(op))) is not None:
                self._elementwise(op, scalar_form)
            elif isinstance(op, stan.CallOp) and op.definition is not None and block.kind.data in _RETOLD:
                self._density(op)

    # ------------------------------------------------------------ what is known

    def _constant(self, value: SSAValue) -> int | float | None:
        """The number that all elements of a known container are, bit by bit."""
        if value in self._constants:
            return self._constants[value]
        found: int | float | None = None
        if isinstance(value.owner, stan.ReadOp | stan.FieldOp) and stan.dimensions(value.type):
            progression = self._known.progression(value)
            if progression is not None and not progression.step:
                start = progression.start
                if math.isfinite(start) and start != INT_MIN:
                    found = start
        self._constants[value] = found
        return found

    def _elements(self, value: SSAValue) -> Any:
        """The known elements of a container that is read whole."""
        is_read = isinstance(value.owner, stan.ReadOp | stan.FieldOp | stan.IndexOp)
        return self._known.value_of(value) if is_read else None

    def _shape(self, value: SSAValue) -> Shape | None:
        """The sizes of an expression, if they are known; of a scalar none."""
        if value not in self._shapes:
            self._shapes[value] = self._find_shape(value) if stan.dimensions(value.type) else ()
        return self._shapes[value]

    def _find_shape(self, value: SSAValue) -> Shape | None:
        op = value.owner
        if isinstance(op, stan.ReadOp | stan.FieldOp):
            return self._known.dims_of(value)
        if isinstance(op, stan.PromoteOp | _NEG):
            return self._shape(op.operands[0])
        if isinstance(op, _MUL) and all(operand.type in _LINEAR for operand in op.operands):
            left, right = map(self._shape, op.operands)
            if left is None or right is None or op.operands[0].type != stan.MATRIX:
                return None
            return (left[0], *right[1:])
        if type(op) in _ELEMENTWISE or isinstance(op, _MUL | _DIV):
            assert isinstance(op, Operation)
            found = [self._shape(operand) for operand in op.operands if stan.dimensions(operand.type)]
            return next((shape for shape in found if shape is not None), None)
        if isinstance(op, stan.IndexOp) and [kind.data for kind in op.kinds] == ["multiple"]:
            inner, indices = self._shape(op.value), self._shape(op.indices[0])
            return None if inner is None or indices is None else (*indices, *inner[1:])
        return None

    # ------------------------------------------------------------ rewriting

    def _gather(self, op: stan.IndexOp) -> None:
        """`x[J]` of a known array of indices."""
        if [kind.data for kind in op.kinds] != ["multiple"] or op.value.type == stan.MATRIX:
            return
        indices, shape = self._elements(op.indices[0]), self._shape(op.value)
        if indices is None or not indices.size:
            return
        if shape is None:
            self._tell(op, "the size of what is indexed is not known")
            return
        first, last = int(indices[0]), int(indices[-1])
        if indices.min() < 1 or indices.max() > shape[0]:
            return
        repeat = {stan.VECTOR: "rep_vector", stan.ROW_VECTOR: "rep_row_vector"}.get(op.value.type)
        if bool((indices == np.arange(first, first + indices.size)).all()):
            if first == 1 and last == shape[0]:
                self._replace(op, op.value, "the indices are all elements in order")
            else:
                self._replace(op, self._between(op, first, last), "the indices are consecutive")
        elif repeat is not None and bool((indices == first).all()):
            number = self._literal(first, op)
            element = self._insert(stan.IndexOp(op.value, ("single",), (number,), stan.REAL, location=op.location), op)
            whole = self._call(repeat, op.res.type, op, element, self._literal(indices.size, op))
            self._replace(op, whole, "the indices are all the same")
        else:
            self._tell(op, "the indices are neither consecutive nor all the same")

    def _between(self, op: stan.IndexOp, first: int, last: int) -> SSAValue:
        bounds = (self._literal(first, op), self._literal(last, op))
        return self._insert(stan.IndexOp(op.value, ("between",), bounds, op.res.type, location=op.location), op)

    def _elementwise(self, op: Operation, scalar_form: Callable[..., Operation]) -> None:
        """`x .* c` of a container all of whose elements are the same."""
        left, right = op.operands
        if left.type != right.type or left.type not in _LINEAR:
            return
        side = 1
        if (number := self._constant(right)) is None:
            side = 0
            if (number := self._constant(left)) is None:
                return
        shape = self._shape(left)
        if shape is None or shape != self._shape(right):
            self._tell(op, "all elements of an operand are the same, but the size of the other one is not known")
            return
        kind = _MUL if scalar_form is _MUL else scalar_form if side else type(op)
        operands = [left, right]
        operands[side] = self._literal(number, op)
        new = self._insert(kind(*operands, op.results[0].type, location=op.location), op)  # type: ignore[call-arg]
        self._replace(op, new, f"all elements of an operand are {number:g}")

    def _product(self, op: Operation) -> None:
        """`X * b` where each product of an element of X and one of b is a zero, or not finite in each row."""
        matrix, vector = op.operands
        elements, shape = self._elements(matrix), self._shape(vector)
        if elements is None or elements.ndim != 2 or not elements.size or shape != elements.shape[1:]:
            return
        factor = vector
        if not bool((elements == 0).all()):
            if not self._is_times_zero(vector):
                self._leave_columns(op, (elements == 0).all(axis=0))
                return
            if not bool(np.isfinite(elements).all()):
                self._tell(op, "the vector is something times 0, but not all elements of the matrix are finite")
                return
        else:
            zero = self._literal(0.0, op)
            factor = self._insert(_MUL(vector, zero, stan.VECTOR, location=op.location), op)  # type: ignore[call-arg]
        total = self._call("sum", stan.REAL, op, factor)
        rows = self._literal(elements.shape[0], op)
        self._replace(op, self._call("rep_vector", stan.VECTOR, op, total, rows), "all products are zeros")

    def _leave_columns(self, op: Operation, is_zero: np.ndarray) -> None:
        """`X * b` without the columns of X all elements of which are 0, if the others are in few places."""
        ends = np.flatnonzero(np.diff(is_zero)) + 1
        runs = list(zip((0, *ends), (*ends, len(is_zero)), strict=True))
        used = [run for run in runs if not is_zero[run[0]]]
        if len(used) == len(runs) or len(used) > _MOST_PLACES:
            return
        matrix, vector = op.operands
        products: list[SSAValue] = []
        zeros: list[SSAValue] = []
        for begin, end in runs:
            bounds = [self._literal(int(bound), op) for bound in (begin + 1, end)]
            part = self._insert(stan.IndexOp(vector, ("between",), bounds, stan.VECTOR, location=op.location), op)
            if is_zero[begin]:
                zero = self._literal(0.0, op)
                nothing = self._insert(_MUL(part, zero, stan.VECTOR, location=op.location), op)  # type: ignore[call-arg]
                zeros.append(self._call("sum", stan.REAL, op, nothing))
            else:
                kinds = ("all", "between")
                columns = stan.IndexOp(matrix, kinds, bounds, stan.MATRIX, location=op.location)
                product = type(op)(self._insert(columns, op), part, stan.VECTOR, location=op.location)  # type: ignore[call-arg]
                products.append(self._insert(product, op))
        total = products[0]
        for more in (*products[1:], *zeros):
            total = self._insert(_ADD(total, more, stan.VECTOR, location=op.location), op)  # type: ignore[call-arg]
        self._replace(op, total, "columns all elements of which are 0 are left out")

    @staticmethod
    def _is_times_zero(value: SSAValue) -> bool:
        """Whether it is something times 0."""
        op = value.owner
        return isinstance(op, _MUL) and any(o.type == stan.REAL and literal_of(o) == 0 for o in op.operands)

    def _density(self, op: stan.CallOp) -> None:
        """Arguments of a density of single elements, all elements of which are the same."""
        called = named(op.callee.data)
        if not called.kind.is_density or called.unnormalized or op.definition is None:
            return
        numbers = [self._constant(argument) for argument in op.arguments]
        if all(number is None for number in numbers):
            return
        definition = self._definitions().get(op.definition.data)
        formals = () if definition is None else definition.function_type.inputs.data
        if definition is None or any(stan.dimensions(formal) for formal in formals):
            return
        shapes = [self._shape(argument) for argument in op.arguments]
        kept = any(shape != () and number is None for shape, number in zip(shapes, numbers, strict=True))
        if None in shapes or not kept or len({shape for shape in shapes if shape}) != 1:
            self._tell(op, "all elements of an argument are the same, but no other is known to have its size")
            return
        self._tell(op, "what has the same value for all elements is one number", done=True)
        for position, number in enumerate(numbers):
            if number is not None:
                old = op.arguments[position]
                op.operands[position] = self._literal(float(number) if formals[position] == stan.REAL else number, op)
                erase_unused([old])

    # ------------------------------------------------------------ building

    def _definitions(self) -> dict[str, stan.FuncOp]:
        if self._functions is None:
            ops = self._program.body.block.ops
            self._functions = {op.sym_name.data: op for op in ops if isinstance(op, stan.FuncOp)}
        return self._functions

    def _literal(self, number: int | float, at: Operation) -> SSAValue:
        return self._insert(constant(number, at.location), at)

    def _call(self, name: str, result: Attribute, at: Operation, *operands: SSAValue) -> SSAValue:
        types = tuple(operand.type for operand in operands)
        bits = [int(self._autodiff.of(operand)) for operand in operands]
        definition = library_calls.definitions(self._program).symbol(name, types)
        return self._insert(stan.CallOp(name, operands, result, bits, definition=definition, location=at.location), at)

    @staticmethod
    def _insert(op: Operation, at: Operation) -> SSAValue:
        assert at.parent is not None
        at.parent.insert_op_before(op, at)
        return op.results[0]

    def _replace(self, op: Operation, by: SSAValue, message: str) -> None:
        """The op goes, and what only it used."""
        self._tell(op, message, done=True)
        self._shapes[by] = self._shape(op.results[0])
        replace_uses(op.results[0], by)
        operands = list(op.operands)
        assert op.parent is not None
        op.parent.erase_op(op)
        erase_unused(operands)

    @staticmethod
    def _tell(op: Operation, message: str, *, done: bool = False) -> None:
        if collecting():
            remark(PASS, op.location, expression_text(op.results[0]), message, done=done)
