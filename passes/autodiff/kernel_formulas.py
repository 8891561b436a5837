"""The tangents of kernels where reverse mode follows, as in functions that the Laplace approximation differentiates in
place: written with kernels that have pullbacks, and so to be differentiated again, as often as needed.

    X = A^-1    →    X' = -X A' X

A solution X has that of A' X less for its right side, a Cholesky factor L is changed by L times the lower half of
L^-1 A' L^-T, exp(A) by a corner of the exponential of [A A'; 0 A], eigenvectors and singular vectors are turned.
Sources: C. Higham (2008), "Functions of Matrices", 3.1; A. Townsend (2016), "Differentiating the singular value
decomposition"; S. F. Walter, L. Lehmann (2012), "Algorithmic differentiation of linear algebra functions".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from ulam.dialects import rt
from ulam.library.kernels import KERNELS
from ulam.library.records import record
from ulam.passes.kernel_buffers import buffer_size

if TYPE_CHECKING:
    from ulam.passes.autodiff.forward_mode import ForwardMode

ONLY_VALUES = {"eigenvalues_sym": "eigendecompose_sym", "eigenvectors_sym": "eigendecompose_sym",
               "singular_values": "svd"}  # fmt: skip
"""Decompositions of which some results are kept for the pullback only: the kernels whose results these all are."""


@record
class Matrix:
    """A buffer with its sizes; columns lie one behind the other."""

    buffer: SSAValue
    rows: SSAValue
    columns: SSAValue


class KernelFormula:
    """One kernel op, whose tangents are being written behind it."""

    def __init__(self, mode: ForwardMode, op: rt.KernelOp) -> None:
        with_all_results(op)
        self.mode = mode
        self.builder = mode.builder
        self.op = op
        self.kernel = KERNELS[op.function.data]
        pairs = list(zip(self.kernel.parameters, op.arguments, strict=True))
        self.sizes = {p.size: argument for p, argument in pairs if p.kind == "size"}
        self.inputs = [n for n, (p, _) in enumerate(pairs) if p.kind == "in"]
        self.outputs = [n for n, (p, _) in enumerate(pairs) if p.kind == "out"]

    # ------------------------------------------------------------ what the op has

    def argument(self, n: int) -> Matrix:
        """Argument `n` of the op."""
        return Matrix(self.op.arguments[n], *self._shape(n))

    def tangents(self, n: int) -> Matrix:
        """Those of argument `n`, in a buffer of their own."""
        rows, columns = self._shape(n)
        return self.made(rows, columns, lambda i, j: self._tangent(n, self._place(rows, i, j)))

    def varies(self, n: int) -> bool:
        return self.mode.tangent(self.op.arguments[n]) is not None

    def write(self, n: int, element: Callable[[SSAValue, SSAValue], SSAValue]) -> None:
        """Writes the tangents of output `n`, if these are wanted."""
        out = self.mode.tangent(self.op.arguments[n])
        if out is not None:
            rows, columns = self._shape(n)
            self._fill(Matrix(out, rows, columns), element)

    def write_all(self, n: int, value: Matrix) -> None:
        self.write(n, lambda i, j: self.at(value, i, j))

    # ------------------------------------------------------------ matrices

    def made(self, rows: SSAValue, columns: SSAValue, element: Callable[[SSAValue, SSAValue], SSAValue]) -> Matrix:
        """A new matrix of the elements at (row, column)."""
        result = Matrix(self.builder.alloc(self.builder.mul(rows, columns)), rows, columns)
        self._fill(result, element, initial=True)
        return result

    def at(self, matrix: Matrix, i: SSAValue, j: SSAValue) -> SSAValue:
        return self.builder.load(matrix.buffer, self._place(matrix.rows, i, j))

    def by_kernel(self, name: str, inputs: list[SSAValue], sizes: list[SSAValue], like: Matrix) -> Matrix:
        """The result of a kernel, which is of the size of `like`."""
        out = self.builder.alloc(self.builder.mul(like.rows, like.columns))
        throws, site = (True, self.op.site) if KERNELS[name].throws else (False, None)
        self.builder.insert(rt.KernelOp(name, [*inputs, *sizes, out], throws=throws, site=site))
        return Matrix(out, like.rows, like.columns)

    def product(self, a: Matrix, b: Matrix) -> Matrix:
        like = Matrix(a.buffer, a.rows, b.columns)
        return self.by_kernel("multiply", [a.buffer, b.buffer], [a.rows, a.columns, b.columns], like)

    def transposed(self, a: Matrix) -> Matrix:
        return self.made(a.columns, a.rows, lambda i, j: self.at(a, j, i))

    def sum(self, a: Matrix, b: Matrix) -> Matrix:
        return self.made(a.rows, a.columns, lambda i, j: self.builder.addf(self.at(a, i, j), self.at(b, i, j)))

    def difference(self, a: Matrix, b: Matrix) -> Matrix:
        return self.made(a.rows, a.columns, lambda i, j: self.builder.subf(self.at(a, i, j), self.at(b, i, j)))

    def lower(self, a: Matrix) -> Matrix:
        """With zeros above the diagonal."""
        return self.made(a.rows, a.columns, lambda i, j: self.where("sge", i, j, self.at(a, i, j)))

    def symmetric(self, a: Matrix) -> Matrix:
        """The lower triangle on both sides."""
        builder = self.builder

        def element(i: SSAValue, j: SSAValue) -> SSAValue:
            is_below = builder.cmpi("sge", i, j)
            return self.at(a, builder.select(is_below, i, j), builder.select(is_below, j, i))

        return self.made(a.rows, a.columns, element)

    def trace(self, a: Matrix) -> SSAValue:
        builder = self.builder
        zero = builder.f64(0.0)
        (total,) = builder.for_loop(
            builder.i64(0), a.rows, lambda i, carried: (builder.addf(carried[0], self.at(a, i, i)),), [zero]
        )
        return total

    def where(self, predicate: str, i: SSAValue, j: SSAValue, value: SSAValue) -> SSAValue:
        """The value if the indices are so, else 0."""
        return self.builder.select(self.builder.cmpi(predicate, i, j), value, self.builder.f64(0.0))

    # ------------------------------------------------------------ places

    def _shape(self, n: int) -> tuple[SSAValue, SSAValue]:
        """Rows and columns; a vector is one column."""
        rows, _, columns = self.kernel.parameters[n].size.partition("*")
        one = self.builder.i64(1)
        return self._named(rows), self._named(columns) if columns else one

    def _named(self, size: str) -> SSAValue:
        return buffer_size(self.builder, size, self.sizes)

    def _place(self, rows: SSAValue, i: SSAValue, j: SSAValue) -> SSAValue:
        return self.builder.add(self.builder.mul(j, rows), i)

    def _tangent(self, n: int, place: SSAValue) -> SSAValue:
        return self.mode.load(self.op.arguments[n], place) or self.builder.f64(0.0)

    def _fill(self, out: Matrix, element: Callable[[SSAValue, SSAValue], SSAValue], *, initial: bool = False) -> None:
        builder = self.builder

        def body(k: SSAValue, _: object) -> tuple[()]:
            row = builder.binary(arith.RemSIOp, k, out.rows)
            column = builder.binary(arith.DivSIOp, k, out.rows)
            builder.store(element(row, column), out.buffer, k, initial=initial)
            return ()

        builder.for_loop(builder.i64(0), builder.mul(out.rows, out.columns), body)


def with_all_results(op: rt.KernelOp) -> None:
    """Makes a decomposition that keeps something for its pullback one that results in that, too."""
    name = op.function.data
    if (whole := ONLY_VALUES.get(name)) is None:
        return
    if name == "eigenvalues_sym":
        matrix, n, values, vectors = op.arguments
        op.operands = [matrix, n, vectors, values]
    op.properties["function"] = StringAttr(whole)


# ---------------------------------------------------------------- products and solutions


def _multiply(f: KernelFormula) -> None:
    a, b = f.argument(0), f.argument(1)
    parts = [f.product(f.tangents(0), b)] if f.varies(0) else []
    parts += [f.product(a, f.tangents(1))] if f.varies(1) else []
    f.write_all(f.outputs[0], parts[0] if len(parts) == 1 else f.sum(*parts))


def _solution(f: KernelFormula) -> None:
    """A X = B, or X A = B with B first."""
    name = f.op.function.data
    left = "left" in name
    matrix, right = (0, 1) if left else (1, 0)
    solution, change = f.argument(f.outputs[0]), f.tangents(right)
    if f.varies(matrix):
        slopes = f.tangents(matrix)
        if name.endswith("tri_low"):
            slopes = f.lower(slopes)
        change = f.difference(change, f.product(slopes, solution) if left else f.product(solution, slopes))
    inputs = [f.op.arguments[0], f.op.arguments[1]]
    inputs[right] = change.buffer
    f.write_all(f.outputs[0], f.by_kernel(name, inputs, list(f.op.arguments[2:4]), solution))


def _inverse(f: KernelFormula) -> None:
    inverse = f.argument(f.outputs[0])
    change = f.product(f.product(inverse, f.tangents(0)), inverse)
    f.write(f.outputs[0], lambda i, j: f.builder.negf(f.at(change, i, j)))


def _inverse_of_factored(f: KernelFormula) -> None:
    """(L L')^-1."""
    inverse, factor = f.argument(f.outputs[0]), f.lower(f.argument(0))
    half = f.product(f.product(inverse, f.product(f.lower(f.tangents(0)), f.transposed(factor))), inverse)
    f.write(f.outputs[0], lambda i, j: f.builder.negf(f.builder.addf(f.at(half, i, j), f.at(half, j, i))))


def _determinant(f: KernelFormula) -> None:
    slope = _relative_slope(f)
    f.write(f.outputs[0], lambda i, j: f.builder.mulf(f.at(f.argument(f.outputs[0]), i, j), slope))


def _log_determinant(f: KernelFormula) -> None:
    slope = _relative_slope(f)
    f.write(f.outputs[0], lambda i, j: slope)


def _relative_slope(f: KernelFormula) -> SSAValue:
    """tr(A^-1 A')."""
    tangents = f.tangents(0)
    n = tangents.rows
    return f.trace(f.by_kernel("mdivide_left", [f.op.arguments[0], tangents.buffer], [n, n], tangents))


def _matrix_exp(f: KernelFormula) -> None:
    builder = f.builder
    a, tangents = f.argument(0), f.tangents(0)
    n = a.rows
    twice = builder.add(n, n)

    def element(i: SSAValue, j: SSAValue) -> SSAValue:
        above, left = builder.cmpi("slt", i, n), builder.cmpi("slt", j, n)
        row, column = builder.select(above, i, builder.sub(i, n)), builder.select(left, j, builder.sub(j, n))
        corner = builder.select(above, f.at(tangents, row, column), builder.f64(0.0))
        on_diagonal = builder.select(above, left, builder.invert(left))
        return builder.select(on_diagonal, f.at(a, row, column), corner)

    blocks = f.made(twice, twice, element)
    found = f.by_kernel("matrix_exp", [blocks.buffer], [twice], blocks)
    f.write(f.outputs[0], lambda i, j: f.at(found, i, builder.add(j, n)))


# ---------------------------------------------------------------- decompositions


def _cholesky_factor(f: KernelFormula) -> None:
    builder = f.builder
    factor, slopes = f.argument(f.outputs[0]), f.symmetric(f.tangents(0))
    n = factor.rows

    def divided(matrix: Matrix) -> Matrix:
        return f.by_kernel("mdivide_left_tri_low", [factor.buffer, matrix.buffer], [n, n], matrix)

    solved = divided(f.transposed(divided(slopes)))

    def half(i: SSAValue, j: SSAValue) -> SSAValue:
        below = f.where("sgt", i, j, f.at(solved, i, j))
        return builder.select(builder.cmpi("eq", i, j), builder.mulf(builder.f64(0.5), f.at(solved, i, j)), below)

    f.write_all(f.outputs[0], f.product(factor, f.made(n, n, half)))


def _eigendecomposition(f: KernelFormula) -> None:
    """With M = V' A' V: w' = diag(M), V' = V K with K_ij = M_ij / (w_j - w_i)."""
    builder = f.builder
    vectors, values = (f.argument(n) for n in f.outputs)
    inner = f.product(f.transposed(vectors), f.product(f.symmetric(f.tangents(0)), vectors))
    zero = builder.i64(0)

    def rotation(i: SSAValue, j: SSAValue) -> SSAValue:
        return _rate(
            f, i, j, f.at(inner, i, j), builder.subf(f.at(values, j, zero), f.at(values, i, zero))
        )  # fmt: skip

    f.write_all(f.outputs[0], f.product(vectors, f.made(vectors.rows, vectors.rows, rotation)))
    f.write(f.outputs[1], lambda i, _: f.at(inner, i, i))


def _rate(f: KernelFormula, i: SSAValue, j: SSAValue, value: SSAValue, gap: SSAValue) -> SSAValue:
    """value / gap off the diagonal, else 0; vectors of equal values that nothing couples stay apart."""
    builder = f.builder
    zero, on_diagonal = builder.f64(0.0), builder.cmpi("eq", i, j)
    uncoupled = builder.select(builder.cmpf("oeq", value, zero), builder.cmpf("oeq", gap, zero), builder.i1(False))
    harmless = builder.select(on_diagonal, on_diagonal, uncoupled)
    return builder.divf(
        builder.select(on_diagonal, zero, value), builder.select(harmless, builder.f64(1.0), gap)
    )  # fmt: skip


def _singular_values(f: KernelFormula) -> None:
    """With P = U' A' V: s' = diag(P); U and V are turned, and leave the spaces of their columns if there is room."""
    values, left, right = (f.argument(n) for n in f.outputs)
    tangents = f.tangents(0)
    image = f.product(tangents, right)
    inner = f.product(f.transposed(left), image)
    f.write(f.outputs[0], lambda i, _: f.at(inner, i, i))
    _turned(f, f.outputs[1], left, values, inner, image)
    across = f.product(f.transposed(tangents), left)
    _turned(f, f.outputs[2], right, values, f.transposed(inner), across)


def _turned(f: KernelFormula, out: int, vectors: Matrix, values: Matrix, inner: Matrix, image: Matrix) -> None:
    """W' = W (P diag(s) + diag(s) P') / (s_j^2 - s_i^2) + (I - W W') image diag(1 / s)."""
    builder = f.builder
    zero, one = builder.i64(0), builder.f64(1.0)

    def rotation(i: SSAValue, j: SSAValue) -> SSAValue:
        a, b = f.at(values, i, zero), f.at(values, j, zero)
        change = builder.addf(builder.mulf(f.at(inner, i, j), b), builder.mulf(a, f.at(inner, j, i)))
        return _rate(f, i, j, change, builder.mulf(builder.subf(b, a), builder.addf(b, a)))

    turned = f.product(vectors, f.made(inner.rows, inner.columns, rotation))
    inside = f.product(vectors, f.product(f.transposed(vectors), image))
    is_tall = builder.cmpi("sgt", vectors.rows, vectors.columns)

    def element(i: SSAValue, j: SSAValue) -> SSAValue:
        rest = builder.subf(f.at(image, i, j), f.at(inside, i, j))
        scale = builder.select(is_tall, f.at(values, j, zero), one)
        outside = builder.divf(builder.select(is_tall, rest, builder.f64(0.0)), scale)
        return builder.addf(f.at(turned, i, j), outside)

    f.write(out, element)


def _orthogonal_factor(f: KernelFormula) -> None:
    """With X = A' R^-1 of as many columns as Q has and C = Q' X: Q' = X - Q (C - skew(C)), R' = Q' (A' - Q' R)."""
    builder = f.builder
    q, r = (f.argument(n) for n in f.outputs)
    tangents = f.tangents(0)
    k = q.columns
    x = f.by_kernel("mdivide_right", [tangents.buffer, r.buffer], [q.rows, k], q)  # the first columns come first
    across = f.transposed(q)
    c = f.product(across, x)

    def upper(i: SSAValue, j: SSAValue) -> SSAValue:
        doubled = builder.addf(f.at(c, i, j), f.at(c, j, i))
        return builder.select(builder.cmpi("eq", i, j), f.at(c, i, j), f.where("slt", i, j, doubled))

    change = f.difference(x, f.product(q, f.made(k, k, upper)))
    f.write_all(f.outputs[0], change)
    rest = f.product(across, f.difference(tangents, f.product(change, r)))
    f.write(f.outputs[1], lambda i, j: f.where("sle", i, j, f.at(rest, i, j)))


FORMULAS: dict[str, Callable[[KernelFormula], None]] = {
    "multiply": _multiply,
    **dict.fromkeys(
        ("mdivide_left", "mdivide_left_spd", "mdivide_left_tri_low",
         "mdivide_right", "mdivide_right_spd", "mdivide_right_tri_low"), _solution,
    ),
    **dict.fromkeys(("inverse", "inverse_spd"), _inverse),
    "chol2inv": _inverse_of_factored,
    "determinant": _determinant,
    **dict.fromkeys(("log_determinant", "log_determinant_spd"), _log_determinant),
    "matrix_exp": _matrix_exp,
    "cholesky_decompose": _cholesky_factor,
    **dict.fromkeys(("eigendecompose_sym", "eigenvalues_sym", "eigenvectors_sym"), _eigendecomposition),
    **dict.fromkeys(("svd", "singular_values"), _singular_values),
    "qr_thin": _orthogonal_factor,
}  # fmt: skip
