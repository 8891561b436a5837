"""Kernels of a few rows, as many as are known, become straight code.

    rt.kernel cholesky_decompose(A, 2, L)    →    a = sqrt(A[0]); b = A[1] / a; c = sqrt(A[3] - b * b); ...

Small vectors and matrices then are values (`unroll-small`, `forward-stores`), reverse mode works on scalars, and a loop
over rows or groups that computes with them can be widened. What the kernel would refuse is a check, which like those of
domains tells only that there is an error; so units that print or draw keep their kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant, constant_integer
from ulam.dialects.walk import ops_within
from ulam.library.kernels import KERNELS
from ulam.library.records import record
from ulam.library.statuses import LOCATE
from ulam.passes.loops.checks import must_be_precise
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark
from ulam.passes.rewriting import discard
from ulam.passes.running import TellingPass

MOST_IN_LOOPS, MOST = 6, 4
"""Rows and columns of what becomes straight code: in a loop, which may then be widened, and outside of loops."""
_SYMMETRY_TOLERANCE = 1e-8
_INFINITY = float("inf")

Matrix = list[list[SSAValue]]
"""By rows."""


@record(frozen=True)
class InlineKernels(TellingPass):
    """Writes small kernels of `evaluate` out."""

    name = "inline-kernels"

    def changes(self, module: ModuleOp) -> bool:
        function = evaluate_of(module, self.name)
        kernels = [op for op in ops_within(function) if isinstance(op, rt.KernelOp) and op.function.data in _FORMS]
        if not kernels or must_be_precise(module):
            return False
        changed = False
        for op in kernels:
            most = MOST_IN_LOOPS if _in_loop(op) else MOST
            if (sizes := _sizes(op)) is not None and all(1 <= size <= most for size in sizes.values()):
                remark(self.name, op.location, f"'{op.function.data}'", "it is straight code", done=True)
                _Straight(op, sizes).write()
                discard(op)
                changed = True
        return changed


def _in_loop(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, scf.ForOp | scf.WhileOp):
        parent = parent.parent_op()
    return parent is not None


def _sizes(op: rt.KernelOp) -> dict[str, int] | None:
    """The sizes of a kernel's arguments by name; None unless all are known."""
    found: dict[str, int] = {}
    for parameter, argument in zip(KERNELS[op.function.data].parameters, op.arguments, strict=True):
        if parameter.kind == "size":
            size = constant_integer(argument)
            if size is None:
                return None
            found[parameter.size] = size
    return found


class _Straight:
    """Writes one kernel."""

    def __init__(self, op: rt.KernelOp, sizes: dict[str, int]) -> None:
        self.op, self.sizes = op, sizes
        self.writer = OpWriter(op)
        self.inputs: list[Matrix] = []
        self.outputs: list[tuple[SSAValue, int]] = []
        for parameter, argument in zip(KERNELS[op.function.data].parameters, op.arguments, strict=True):
            rows, _, columns = parameter.size.partition("*")
            if parameter.kind == "in":
                self.inputs.append(self._loaded(argument, sizes[rows], sizes[columns]))
            elif parameter.kind == "out":
                self.outputs.append((argument, sizes.get(rows, 1)))

    def write(self) -> None:
        result = _FORMS[self.op.function.data](self, *self.inputs)
        buffer, rows = self.outputs[0]
        initial = isinstance(buffer.owner, rt.AllocOp) and buffer.owner.parent is self.op.parent
        for i, row in enumerate(result):
            for j, value in enumerate(row):
                self.op.parent.insert_op_before(  # type: ignore[union-attr]
                    rt.StoreOp(value, buffer, self._index(i + j * rows), initial=initial), self.op
                )

    # ------------------------------------------------------------ scalars

    def _index(self, number: int) -> SSAValue:
        return self.writer.put(constant(number, i64))

    def _loaded(self, buffer: SSAValue, rows: int, columns: int) -> Matrix:
        return [
            [self.writer.put(rt.LoadOp(buffer, self._index(i + j * rows))) for j in range(columns)] for i in range(rows)
        ]

    def function(self, name: str, value: SSAValue) -> SSAValue:
        return self.writer.put(rt.MathOp(name, (value,), location=self.op.location))

    def times(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.writer.real(arith.MulfOp, a, b)

    def product(self, left: Sequence[SSAValue], right: Sequence[SSAValue]) -> SSAValue:
        """The sum of products of two rows."""
        total: SSAValue | None = None
        for a, b in zip(left, right, strict=True):
            term = self.times(a, b)
            total = term if total is None else self.writer.real(arith.AddfOp, total, term)
        return total if total is not None else self.writer.number(0)

    def without(self, value: SSAValue, left: Sequence[SSAValue], right: Sequence[SSAValue]) -> SSAValue:
        """A number minus the products of two rows."""
        for a, b in zip(left, right, strict=True):
            value = self.writer.real(arith.SubfOp, value, self.times(a, b))
        return value

    def check(self, conditions: Sequence[SSAValue]) -> None:
        """Leaves the function unless all conditions hold."""
        assert self.op.site is not None and self.op.parent is not None
        check = rt.CheckOp(self.writer.both(conditions), self.op.site, status=LOCATE, location=self.op.location)
        self.op.parent.insert_op_before(check, self.op)

    # ------------------------------------------------------------ matrices

    def factor(self, a: Matrix, *, symmetric: bool = True) -> tuple[Matrix, list[SSAValue]]:
        """The Cholesky factor of a matrix, by rows up to the diagonal, and the inverses of its diagonal."""
        writer, conditions = self.writer, list[SSAValue]()
        if symmetric:
            for i, row in enumerate(a):
                for j in range(i):
                    gap = self.function("abs", writer.real(arith.SubfOp, row[j], a[j][i]))
                    conditions.append(writer.compare("ole", gap, _SYMMETRY_TOLERANCE))
        factor: Matrix = []
        inverses: list[SSAValue] = []
        for i, row in enumerate(a):
            left: list[SSAValue] = []
            for j in range(i):
                left.append(self.times(self.without(row[j], left, factor[j][:j]), inverses[j]))
            pivot = self.without(row[i], left, left)
            conditions += [writer.compare("ogt", pivot, 0), writer.compare("olt", pivot, _INFINITY)]
            root = self.function("sqrt", pivot)
            factor.append([*left, root])
            inverses.append(self.function("inv", root))
        self.check(conditions)
        return factor, inverses

    def solve(self, factor: Matrix, inverses: Sequence[SSAValue], b: Sequence[SSAValue]) -> list[SSAValue]:
        """L^-1 b."""
        found: list[SSAValue] = []
        for i, value in enumerate(b):
            found.append(self.times(self.without(value, factor[i][:i], found), inverses[i]))
        return found

    def solve_transposed(self, factor: Matrix, inverses: Sequence[SSAValue], b: Sequence[SSAValue]) -> list[SSAValue]:
        """L'^-1 b."""
        n = len(b)
        found: dict[int, SSAValue] = {}
        for i in reversed(range(n)):
            below = range(i + 1, n)
            rest = self.without(b[i], [factor[k][i] for k in below], [found[k] for k in below])
            found[i] = self.times(rest, inverses[i])
        return [found[i] for i in range(n)]

    def inverses(self, factor: Matrix) -> list[SSAValue]:
        return [self.function("inv", row[i]) for i, row in enumerate(factor)]

    def filled(self, factor: Matrix) -> Matrix:
        """With zeros above the diagonal."""
        zero = self.writer.number(0)
        return [[*row, *[zero] * (len(factor) - len(row))] for row in factor]


def _transposed(matrix: Matrix) -> Matrix:
    return [list(column) for column in zip(*matrix, strict=True)]


def _cholesky(code: _Straight, a: Matrix) -> Matrix:
    return code.filled(code.factor(a)[0])


def _left_triangular(code: _Straight, L: Matrix, b: Matrix) -> Matrix:
    inverses = code.inverses(L)
    return _transposed([code.solve(L, inverses, column) for column in _transposed(b)])


def _right_triangular(code: _Straight, b: Matrix, L: Matrix) -> Matrix:
    inverses = code.inverses(L)
    return [code.solve_transposed(L, inverses, row) for row in b]


def _left_definite(code: _Straight, a: Matrix, b: Matrix) -> Matrix:
    L, inverses = code.factor(a)
    halves = (code.solve(L, inverses, column) for column in _transposed(b))
    return _transposed([code.solve_transposed(L, inverses, half) for half in halves])


def _right_definite(code: _Straight, b: Matrix, a: Matrix) -> Matrix:
    return _transposed(_left_definite(code, a, _transposed(b)))


def _log_determinant(code: _Straight, a: Matrix) -> Matrix:
    L, _ = code.factor(a)
    logs = [code.function("log", row[i]) for i, row in enumerate(L)]
    return [[code.times(code.product(logs, [code.writer.number(1)] * len(logs)), code.writer.number(2))]]


def _multiply(code: _Straight, a: Matrix, b: Matrix) -> Matrix:
    columns = _transposed(b)
    return [[code.product(row, column) for column in columns] for row in a]


def _times_transposed(code: _Straight, a: Matrix) -> Matrix:
    lower = [[code.product(row, other) for other in a[: i + 1]] for i, row in enumerate(a)]
    return [[lower[max(i, j)][min(i, j)] for j in range(len(a))] for i in range(len(a))]


_FORMS: dict[str, Callable[..., Matrix]] = {
    "cholesky_decompose": _cholesky,
    "mdivide_left_tri_low": _left_triangular,
    "mdivide_right_tri_low": _right_triangular,
    "mdivide_left_spd": _left_definite,
    "mdivide_right_spd": _right_definite,
    "log_determinant_spd": _log_determinant,
    "multiply": _multiply,
    "tcrossprod": _times_transposed,
    "crossprod": lambda code, a: _times_transposed(code, _transposed(a)),
}
"""Kernel → its result, of its matrices."""
