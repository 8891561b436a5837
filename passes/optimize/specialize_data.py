"""Specialisation on the data: what is known once the data are bound becomes literals.

    data { int N; array[N] int J; vector[N] y; }              with N = 3, J = {1, 2, 3}
    parameters { vector[N] a; }
    model { for (n in 1:N) y[n] ~ normal(a[J[n]], J[2]); }

becomes

    data { int N; array[3] int J; vector[3] y; }
    parameters { vector[3] a; }
    model { for (n in 1:3) y[n] ~ normal(a[n], 2); }

* Reads of ints and reals of the data become literals; so do reads of single elements at literal indices, which unrolled
  loops have. NaN, infinities and the smallest int, which no literal denotes, stay reads.
* An element of an index array at an index that varies becomes arithmetic where the array is constant or an
  arithmetic progression, and the index surely in range: `J[n]` with J = {4, 5, 6} becomes `n + 3`.
* `size`, `num_elements`, `rows`, `cols`, `dims` of containers whose sizes are known become literals, and so do the
  sizes of all global declarations.
* What the contents of whole containers make trivial is written without them: `specialize_contents`.

Transformed data count as data, for they are computed once, too; not if random numbers were drawn for them. The blocks
stay as they are otherwise: data are bound and checked the usual way, by the unit `setup`, which is not specialised. The
result is a program for these data only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.integers import INT_MAX, INT_MIN
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.known_data import KnownData, data_to_specialize_on
from ulam.passes.optimize.specialize_contents import PASS, ContentsFolding
from ulam.passes.remarks import remark
from ulam.passes.rewriting import replace_uses
from ulam.passes.variable_form import Variable, constant, erase_unused, is_global, literal_of

NESTING = 8  # how deep an index expression is looked into
_ADD, _SUB, _MUL = (stan.BINARY_OPERATORS[symbol] for symbol in ("+", "-", "*"))
_NEG = stan.UNARY_OPERATORS["-"]

_DATA_BLOCKS = ("data", "transformed_data")
"""What setting up a model runs, which is not specialised."""

Interval = tuple[int, int]


@record(frozen=True)
class SpecializeData(ModulePass):
    """Makes literals of data and of their sizes. The data are those that `specializing_on` gives.

    `data`: their file, for `stan-opt`, which reads it and gives what is known.
    """

    name = PASS

    data: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = data_to_specialize_on()
        if known is None:
            remark(self.name, op.location, "program", "the data are not known", done=False)
            return
        run_on(op, known)


def run_on(module: ModuleOp, known: KnownData) -> None:
    """Specialises the programs of a module, in place."""
    for program in module.body.block.ops:
        if not isinstance(program, stan.ProgramOp):
            continue
        work = Specialization(known)
        contents = ContentsFolding(program, work)
        for block in list(program.body.block.ops):
            if isinstance(block, stan.BlockOp):
                work.block(block)
                if block.kind.data not in _DATA_BLOCKS:
                    contents.block(block)


@record(frozen=True)
class Progression:
    """All elements of a container: element n, from 1, is `start + step * n`; only ints have a step."""

    start: int | float
    step: int


def progression_of(values: Any) -> Progression | None:
    """The progression that a NumPy array is, if it is one and its arithmetic stays within 32 bits."""
    flat = values.ravel()
    if not flat.size:
        return None
    first = flat[0].item()
    if isinstance(first, float):
        same = bool((flat.view("int64") == flat[:1].view("int64")).all())  # -0.0 is not 0.0
        return Progression(first, 0) if same else None
    step = flat[1].item() - first if flat.size > 1 else 0
    start = first - step
    if step and (values.ndim > 1 or abs(step) * flat.size > INT_MAX or abs(start) > INT_MAX):
        return None
    is_even = bool((flat[1:].astype("int64") - flat[:-1] == step).all())
    return Progression(start, step) if is_even else None


class Specialization:
    """The work on one program."""

    def __init__(self, known: KnownData) -> None:
        self.known = known
        self._progressions: dict[str, Progression | None] = {}
        self._arrays: dict[SSAValue, Any] = {}  # values that are arrays known element by element, such as `dims(x)`
        self._dims: dict[SSAValue, tuple[int, ...]] = {}  # of local variables

    def block(self, block: stan.BlockOp) -> None:
        is_data = block.kind.data == "data"
        literals = 0
        for op in list(ops_within(block)):
            if op.parent is None:
                continue  # was part of an expression that is a literal now
            if isinstance(op, Variable):
                self._declaration(op)
            elif is_data:
                continue
            elif isinstance(op, stan.ReadOp | stan.FieldOp):
                literals += self._read(op)
            elif isinstance(op, stan.IndexOp):
                literals += self._index(op)
            elif isinstance(op, stan.CallOp) and op.callee.data in _SIZES:
                literals += self._size(op)
        for array in self._arrays:
            if array.first_use is None and isinstance(array.owner, stan.ArrayOp):
                _erase(array.owner)
        self._arrays.clear()
        if literals:
            found = f"{literals} {'read is' if literals == 1 else 'reads are'} known"
            remark(SpecializeData.name, block.location, f"block {block.kind.data}", found, done=True)

    # ------------------------------------------------------------ what is known

    def _name(self, value: SSAValue) -> str | None:
        """The name under which the value that is read here is known: `x`, of a tuple's field `t:1`."""
        op = value.owner
        if isinstance(op, stan.ReadOp) and isinstance(variable := op.var.owner, stan.GlobalOp):
            return variable.var_name.data
        if isinstance(op, stan.FieldOp) and (name := self._name(op.value)) is not None:
            return f"{name}:{op.field.value.data}"
        return None

    def value_of(self, value: SSAValue) -> Any:
        """The known value of an expression, as an array; None if it is not known."""
        op = value.owner
        if isinstance(op, stan.IndexOp):
            outer = self.value_of(op.value)
            if outer is None or any(kind.data != "single" for kind in op.kinds):
                return None
            index = self._literal_index(op.indices, outer.shape)
            return None if index is None else outer[index]
        if (found := self._arrays.get(value)) is not None:
            return found
        name = self._name(value)
        return None if name is None else self.known.values.get(name)

    def dims_of(self, value: SSAValue) -> tuple[int, ...] | None:
        """The known sizes of an expression; None if they are not known."""
        op = value.owner
        if isinstance(op, stan.ReadOp) and op.var in self._dims:
            return self._dims[op.var]
        if (name := self._name(value)) is not None:
            return self.known.dims.get(name)
        found = self.value_of(value)
        return None if found is None else found.shape

    def _literal_index(self, indices: Sequence[SSAValue], shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """Single indices as Python's, if all are literals in range."""
        result: list[int] = []
        for operand, size in zip(indices, shape, strict=False):
            number = literal_of(operand)
            if not isinstance(number, int) or not 1 <= number <= size:
                return None
            result.append(number - 1)
        return tuple(result)

    # ------------------------------------------------------------ rewriting

    def _declaration(self, op: Variable) -> None:
        """Sizes of global declarations become literals; those of local ones are remembered if they are."""
        type_ = op.res.type.element
        if not op.sizes or isinstance(type_, stan.TupleType):
            return
        if isinstance(type_, stan.ArrayType) and isinstance(type_.element, stan.TupleType):
            return
        if is_global(op) and (dims := self.known.dims.get(op.var_name.data)) is not None:
            self._set_sizes(op, dims)
            self._dims[op.res] = dims
            return
        sizes = [literal_of(size) for size in op.sizes]
        sizes += [sizes[-1]] * (stan.dimensions(type_) - len(sizes))
        # A container without elements takes the size of what is assigned to it.
        if all(isinstance(size, int) and size > 0 for size in sizes):
            self._dims[op.res] = tuple(int(size) for size in sizes if size is not None)

    def _set_sizes(self, op: Variable, dims: Sequence[int]) -> None:
        old = list(op.sizes)
        for number, (size, value) in enumerate(zip(old, dims, strict=False)):
            if literal_of(size) is None:
                literal = constant(value, op.location)
                _insert_before(literal, op)
                op.operands[number] = literal.res
        erase_unused(old)

    def _read(self, op: stan.ReadOp | stan.FieldOp) -> bool:
        """A read of a known scalar."""
        value = self.value_of(op.res)
        return value is not None and value.ndim == 0 and _replace(op, value.item(), op.res.type)

    def _index(self, op: stan.IndexOp) -> bool:
        """`x[i]` of a known container."""
        if op.res.type not in (stan.INT, stan.REAL):
            return False
        value = self.value_of(op.res)
        if value is not None:
            return value.ndim == 0 and _replace(op, value.item(), op.res.type)
        container = self.value_of(op.value)
        if container is None or not container.size or len(op.indices) != container.ndim:
            return False
        if any(kind.data != "single" for kind in op.kinds):
            return False
        ranges = [self._interval(index) for index in op.indices]
        if any(r is None or r[0] < 1 or r[1] > size for r, size in zip(ranges, container.shape, strict=True)):
            return False  # an index may be out of range, and then it is an error
        progression = self.progression(op.value)
        if progression is None:
            return False
        if not progression.step:
            return _replace(op, progression.start, op.res.type)
        return self._as_arithmetic(op, progression)

    def progression(self, container: SSAValue) -> Progression | None:
        """What all elements of a container are, if it is read whole and is known to be a progression."""
        name = self._name(container)
        if name is None:
            return None
        if name not in self._progressions:
            values = self.known.values.get(name)
            self._progressions[name] = None if values is None else progression_of(values)
        return self._progressions[name]

    def _as_arithmetic(self, op: stan.IndexOp, progression: Progression) -> bool:
        """`J[n]` as `start + step * n`."""
        start, step = int(progression.start), progression.step
        result = op.indices[0]
        if step != 1:
            result = self._binary(_MUL, result, step, op)
        if start > 0:
            result = self._binary(_ADD, result, start, op)
        elif start < 0:
            result = self._binary(_SUB, result, -start, op)
        replace_uses(op.res, result)
        _erase(op)
        return True

    @staticmethod
    def _binary(kind: Callable[..., Operation], left: SSAValue, right: int, at: Operation) -> SSAValue:
        literal = constant(right, at.location)
        result = kind(left, literal.res, stan.INT, location=at.location)
        _insert_before(literal, at)
        _insert_before(result, at)
        return result.results[0]

    def _interval(self, value: SSAValue, depth: int = NESTING) -> Interval | None:
        """Between which ints a value surely is."""
        if isinstance(value, BlockArgument):
            loop = value.block.parent_op()
            if not isinstance(loop, stan.ForOp) or value.index:
                return None
            lower, upper = literal_of(loop.lower), literal_of(loop.upper)
            return (lower, upper) if isinstance(lower, int) and isinstance(upper, int) else None
        number = literal_of(value)
        if isinstance(number, int):
            return number, number
        op = value.owner
        if not depth or not isinstance(op, _ADD | _SUB | _MUL) or value.type != stan.INT:
            return None
        left, right = (self._interval(operand, depth - 1) for operand in op.operands)
        if left is None or right is None:
            return None
        ends = [_ARITHMETIC[type(op)](x, y) for x in left for y in right]
        found = min(ends), max(ends)
        return found if INT_MIN <= found[0] and found[1] <= INT_MAX else None

    def _size(self, op: stan.CallOp) -> bool:
        """`size(x)` and the like."""
        if len(op.operands) != 1 or stan.dimensions(op.operands[0].type) == 0:
            return False
        if stan.scalar_of(op.operands[0].type) not in (stan.INT, stan.REAL):
            return False
        dims = self.dims_of(op.operands[0])
        if dims is None or op.res is None:
            return False
        name = op.callee.data
        if name == "dims":
            return self._dims_array(op, _with_columns(op.operands[0].type, dims))
        number = _SIZES[name](op.operands[0].type, dims)
        return number is not None and _replace(op, number, op.res.type)

    def _dims_array(self, op: stan.CallOp, dims: tuple[int, ...]) -> bool:
        assert op.res is not None
        literals = [constant(size, op.location) for size in dims]
        array = stan.ArrayOp([literal.res for literal in literals], op.res.type, location=op.location)
        for new in (*literals, array):
            _insert_before(new, op)
        self._arrays[array.res] = np.array(dims)
        replace_uses(op.res, array.res)
        _erase(op)
        return True


def _with_columns(type_: Attribute, dims: tuple[int, ...]) -> tuple[int, ...]:
    """What `dims` gives: a vector has one column, a row vector one row."""
    inner = type_.element if isinstance(type_, stan.ArrayType) else type_
    if inner == stan.VECTOR:
        return (*dims, 1)
    return (*dims[:-1], 1, dims[-1]) if inner == stan.ROW_VECTOR else dims


def _rows(type_: Attribute, dims: tuple[int, ...]) -> int | None:
    return 1 if type_ in (stan.ROW_VECTOR, stan.COMPLEX_ROW_VECTOR) else dims[0] if _is_linear(type_) else None


def _cols(type_: Attribute, dims: tuple[int, ...]) -> int | None:
    return 1 if type_ in (stan.VECTOR, stan.COMPLEX_VECTOR) else dims[-1] if _is_linear(type_) else None


def _size(type_: Attribute, dims: tuple[int, ...]) -> int:
    return math.prod(dims) if _is_linear(type_) else dims[0]


def _num_elements(type_: Attribute, dims: tuple[int, ...]) -> int:
    return math.prod(dims)


def _is_linear(type_: Attribute) -> bool:
    return not isinstance(type_, stan.ArrayType)


_SIZES: dict[str, Any] = {
    "size": _size, "num_elements": _num_elements, "rows": _rows, "cols": _cols, "dims": None,
}  # fmt: skip
"""Library functions of a container's sizes → what they give, from its type and dims."""

_ARITHMETIC: dict[type, Any] = {_ADD: int.__add__, _SUB: int.__sub__, _MUL: int.__mul__}


def _insert_before(op: Operation, at: Operation) -> None:
    block = at.parent
    assert isinstance(block, Block)
    block.insert_op_before(op, at)


def _replace(op: stan.ReadOp | stan.FieldOp | stan.IndexOp | stan.CallOp, value: Any, type_: Attribute) -> bool:
    """The op's result becomes a literal, if one denotes the value."""
    assert op.res is not None
    if type_ == stan.INT:
        if not INT_MIN < value <= INT_MAX:
            return False
        literal = constant(int(value), op.location)
    elif type_ == stan.REAL and math.isfinite(value):
        literal = constant(float(value), op.location)
    else:
        return False
    _insert_before(literal, op)
    replace_uses(op.res, literal.res)
    _erase(op)
    return True


def _erase(op: Operation) -> None:
    """Erases an op that is known not to throw, and what only it used."""
    operands = list(op.operands)
    block = op.parent
    assert block is not None
    block.erase_op(op)
    erase_unused(operands)
