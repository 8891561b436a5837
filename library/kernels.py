"""The kernels of the C runtime: what `rt.kernel "name"` calls, as a table.

Convention. Kernel `name` is the C function `ulam_name(context, arguments...)` of runtime/c, at levels 3 and 4 that of
`FAST` with other bits. With `throws` it returns a status (0 fine, 1 a rejection, 2 fatal), has left its message in the
context, and its outputs are then undefined. Matrices are column-major. Outputs overlap no input. Arguments are written
`kind:type[size]`, in order:

    in      a buffer that is read
    out     a buffer that is written, all of it: the result
    kept    a buffer that is written, too, for the pullback (and for nothing else, unless the caller likes)
    value   a scalar
    other   a size, by the name that the bracketed sizes use; i64

A kernel with a `pullback` is differentiable. The pullback is the C function `ulam_<pullback>(context, the same
arguments..., adjoints...)`, returns nothing and does not throw. It has one adjoint for each f64 buffer (in, out, kept),
in order, of the buffer's size: adjoints of inputs are added to, those of outputs only read. Any of them may be null:
an input then needs no derivative, an output has none. Adjoints of two inputs may be the same buffer.
The pullback of a `dual` kernel has a version `ulam_<pullback>_dual`, too. Dual numbers are pairs of doubles, value and
tangent times `DUAL_STEP`, one beside the other.
Where only one triangle of an argument is read (`cholesky_decompose`, `normal_terms`, triangular solves), the adjoint
goes there.

External functions have rows, too, which their kernels' names tell (`library/externals.py`). The pullback of one is a
kernel like others: it throws, and writes adjoints of its own, which are added behind it.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import Any

from ulam.library.externals import external_function, is_external, is_pullback
from ulam.library.records import record
from ulam.library.signature_table import scalar_form, scalar_rngs

DUAL_STEP = 2.0**-332
"""Its square is far below what a double has room for beside 1 (see runtime/c/dense.h)."""

_ARGUMENT = re.compile(r"(\w+):(\w+)(?:\[(.*)\])?")


@record(frozen=True)
class KernelParameter:
    """One argument of a kernel."""

    kind: str
    """`in`, `out`, `kept`, `value` or `size`."""
    element: str
    """`f64`, `i32`, `i64` or `i8`."""
    size: str
    """Number of elements of a buffer, as a product over size names (`n*n`) and minima (`min(m,n)`), of a strided column
    the last one's place; name of a size."""

    @property
    def is_buffer(self) -> bool:
        return self.kind in ("in", "out", "kept")


@record(frozen=True)
class Kernel:
    """A row of the table."""

    arguments: str
    """As above; of random scalars the function's name, whose signature has them."""
    throws: bool = False
    pullback: str | None = None
    tangent: str = "dual"
    """How the derivative of a differentiable kernel along a direction is found. `dual`: by `ulam_<name>_dual`, the same
    with dual numbers in place of reals, as it is for all pullbacks but those of the next two; `order`: a result's
    element has the tangent of the element that it was; `linear`: by the same kernel of the first arguments' tangents,
    as many as it has outputs; else the C function `ulam_<tangent>(context, the same arguments, tangents...)`,
    with a tangent for each f64 buffer, those of outputs written (null: not wanted). `none`: not at all."""
    effects: str = ""
    """`""`: its result depends on its inputs only; `"rng"`: draws, ordered; `"print"`: prints, ordered."""

    @cached_property
    def parameters(self) -> tuple[KernelParameter, ...]:
        parameters: list[KernelParameter] = []
        for text in self.arguments.split():
            match = _ARGUMENT.fullmatch(text)
            assert match is not None, text
            kind, element, size = match.groups()
            is_size = kind not in ("in", "out", "kept", "value")
            parameters.append(KernelParameter("size" if is_size else kind, element, kind if is_size else size or "1"))
        return tuple(parameters)

    @property
    def adjoints(self) -> tuple[int, ...]:
        """Positions of the arguments that have an adjoint, in the order in which the pullback takes them."""
        return tuple(i for i, p in enumerate(self.parameters) if p.is_buffer and p.element == "f64")


def _differentiable(arguments: str, pullback: str, throws: bool = False, tangent: str = "dual") -> Kernel:
    return Kernel(arguments, throws=throws, pullback=pullback, tangent=tangent)


_SQUARE = "in:f64[n*n] n:i64 out:f64[n*n]"
_SQUARE_TO_SCALAR = "in:f64[n*n] n:i64 out:f64[1]"
_LEFT = "in:f64[n*n] in:f64[n*m] n:i64 m:i64 out:f64[n*m]"  # A, B: A^-1 B
_RIGHT = "in:f64[m*n] in:f64[n*n] m:i64 n:i64 out:f64[m*n]"  # B, A: B A^-1
_VECTORS_THEN_VALUES = "in:f64[n*n] n:i64 out:f64[n*n] {}:f64[n]"
_SVD = "in:f64[m*n] m:i64 n:i64 out:f64[min(m,n)] {0}:f64[m*min(m,n)] {0}:f64[n*min(m,n)]"  # singular values, U, V

_DENSE: dict[str, Kernel] = {
    "multiply": _differentiable(
        "in:f64[m*k] in:f64[k*n] m:i64 k:i64 n:i64 out:f64[m*n]", "multiply_pullback"
    ),
    "tcrossprod": _differentiable("in:f64[m*k] m:i64 k:i64 out:f64[m*m]", "tcrossprod_pullback"),
    "crossprod": _differentiable("in:f64[m*k] m:i64 k:i64 out:f64[k*k]", "crossprod_pullback"),
    "cholesky_decompose": _differentiable(_SQUARE, "cholesky_decompose_pullback", throws=True),
    "chol2inv": _differentiable(_SQUARE, "chol2inv_pullback"),
    # A = L L', B: the squared lengths of L^-1 B's columns; the sum of the logarithms of L's diagonal
    "normal_terms": _differentiable(
        "in:f64[n*n] in:f64[n*m] n:i64 m:i64 out:f64[m] out:f64[1] kept:f64[n*n] kept:f64[n*m]",
        "normal_terms_pullback", throws=True
    ),
    "mdivide_left_tri_low": _differentiable(_LEFT, "mdivide_left_tri_low_pullback"),
    "mdivide_right_tri_low": _differentiable(_RIGHT, "mdivide_right_tri_low_pullback"),
    "mdivide_left": _differentiable(_LEFT, "mdivide_left_pullback"),
    "mdivide_right": _differentiable(_RIGHT, "mdivide_right_pullback"),
    "mdivide_left_spd": _differentiable(_LEFT, "mdivide_left_spd_pullback", throws=True),
    "mdivide_right_spd": _differentiable(_RIGHT, "mdivide_right_spd_pullback", throws=True),
    "inverse": _differentiable(_SQUARE, "inverse_pullback"),
    "inverse_spd": _differentiable(_SQUARE, "inverse_pullback", throws=True),
    "determinant": _differentiable(_SQUARE_TO_SCALAR, "determinant_pullback"),
    "log_determinant": _differentiable(_SQUARE_TO_SCALAR, "log_determinant_pullback"),
    "log_determinant_spd": _differentiable(_SQUARE_TO_SCALAR, "log_determinant_spd_pullback", throws=True),
    "eigenvalues_sym": _differentiable(
        "in:f64[n*n] n:i64 out:f64[n] kept:f64[n*n]", "eigenvalues_sym_pullback", True, "eigenvalues_sym_tangent"
    ),
    "eigenvectors_sym": _differentiable(
        _VECTORS_THEN_VALUES.format("kept"), "eigendecompose_sym_pullback", True, "eigendecompose_sym_tangent"
    ),
    "eigendecompose_sym": _differentiable(
        _VECTORS_THEN_VALUES.format("out"), "eigendecompose_sym_pullback", True, "eigendecompose_sym_tangent"
    ),
    "singular_values": _differentiable(_SVD.format("kept"), "svd_pullback", True, "svd_tangent"),
    "svd": _differentiable(_SVD.format("out"), "svd_pullback", True, "svd_tangent"),
    "qr_thin": _differentiable(
        "in:f64[m*n] m:i64 n:i64 out:f64[m*min(m,n)] out:f64[min(m,n)*n]", "qr_thin_pullback"
    ),
    "matrix_exp": _differentiable(_SQUARE, "matrix_exp_pullback"),
    # y, F, G, V, W, m0, C0: the log density; states before the observations of each time
    "gaussian_dlm_filter": _differentiable(
        "in:f64[r*t] in:f64[n*r] in:f64[n*n] in:f64[r] in:f64[n*n] in:f64[n] in:f64[n*n] r:i64 t:i64 n:i64 "
        "out:f64[1] kept:f64[n*t] kept:f64[n*n*t]", "gaussian_dlm_filter_pullback"
    ),
}  # fmt: skip

# `kept` is the order: out[i] is in[order[i]], from 0.
_SORTING: dict[str, Kernel] = {
    "sort_asc": _differentiable("in:f64[n] n:i64 out:f64[n] kept:i32[n]", "sort_pullback", True, "order"),
    "sort_desc": _differentiable("in:f64[n] n:i64 out:f64[n] kept:i32[n]", "sort_pullback", True, "order"),
    "sort_asc_int": Kernel("in:i32[n] n:i64 out:i32[n]"),
    "sort_desc_int": Kernel("in:i32[n] n:i64 out:i32[n]"),
    "sort_indices_asc": Kernel("in:f64[n] n:i64 out:i32[n]", throws=True),
    "sort_indices_desc": Kernel("in:f64[n] n:i64 out:i32[n]", throws=True),
    "sort_indices_asc_int": Kernel("in:i32[n] n:i64 out:i32[n]"),
    "sort_indices_desc_int": Kernel("in:i32[n] n:i64 out:i32[n]"),
}

# Draws of containers, or with arguments that are some. Those of scalars are found in Stan's signatures.
_RNGS: dict[str, str] = {
    "binomial_logit": "value:i32 value:f64 out:i32[1]",
    "categorical": "in:f64[n] n:i64 out:i32[1]",
    "categorical_logit": "in:f64[n] n:i64 out:i32[1]",
    "ordered_logistic": "value:f64 in:f64[n] n:i64 out:i32[1]",
    "ordered_probit": "value:f64 in:f64[n] n:i64 out:i32[1]",
    "multinomial": "in:f64[n] n:i64 value:i32 out:i32[n]",
    "multinomial_logit": "in:f64[n] n:i64 value:i32 out:i32[n]",
    "dirichlet": "in:f64[n] n:i64 out:f64[n]",
    "dirichlet_multinomial": "in:f64[n] n:i64 value:i32 out:i32[n]",
    "multi_normal": "in:f64[n] in:f64[n*n] n:i64 out:f64[n]",
    "multi_normal_cholesky": "in:f64[n] in:f64[n*n] n:i64 out:f64[n]",
    "multi_student_t": "value:f64 in:f64[n] in:f64[n*n] n:i64 out:f64[n]",
    "multi_student_t_cholesky": "value:f64 in:f64[n] in:f64[n*n] n:i64 out:f64[n]",
    "lkj_corr": "value:i32 value:f64 out:f64[value*value]",  # the first argument is the size
    "lkj_corr_cholesky": "value:i32 value:f64 out:f64[value*value]",
    "wishart": "value:f64 in:f64[n*n] n:i64 out:f64[n*n]",
    "wishart_cholesky": "value:f64 in:f64[n*n] n:i64 out:f64[n*n]",
    "inv_wishart": "value:f64 in:f64[n*n] n:i64 out:f64[n*n]",
}


class _ScalarRng(Kernel):
    """A random number: scalars, the result. What they are is found in Stan's signature. There is one for each function
    of scalars whose name ends in _rng and whose result is one."""

    @cached_property
    def parameters(self) -> tuple[KernelParameter, ...]:
        arguments, result = scalar_form(self.arguments)
        values = (KernelParameter("value", _SCALARS[code], "1") for code in arguments)
        return (*values, KernelParameter("out", _SCALARS[result], "1"))


_SCALARS = {"r": "f64", "i": "i32"}


RANDOM: dict[str, Kernel] = {
    **{name: _ScalarRng(name, throws=True, effects="rng") for name in scalar_rngs()},
    **{f"{name}_rng": Kernel(text, throws=True, effects="rng") for name, text in _RNGS.items()},
}

# `kind` of print_begin: 0 print, 1 reject, 2 fatal_error; of a container: 0 array, 1 vector, 2 row_vector, 3 matrix.
_PRINTING: dict[str, Kernel] = {
    "print_begin": Kernel("value:i32", effects="print"),
    "print_string": Kernel("in:i8", effects="print"),
    "print_int": Kernel("value:i32", effects="print"),
    "print_real": Kernel("value:f64", effects="print"),
    "print_container_int": Kernel("in:i32 value:i32 in:i64 value:i32", effects="print"),
    "print_container_real": Kernel("in:f64 value:i32 in:i64 value:i32", effects="print"),
    "print_container_complex": Kernel("in:f64 in:f64 value:i32 in:i64 value:i32", effects="print"),
    "print_end": Kernel("", effects="print"),
}

_COLUMN = "[(n-1)*row+(k-1)*column+1]"
# Layouts of rows of data (layouts.c, equal_rows.c). Element c of row r of a column is at r * row + c * column,
# for c below k; `s` is one more than the number of segments.
_GROUP = f"in:{{}}{_COLUMN} n:i64 k:i64 row:i64 column:i64 in:i32[n] value:i64 value:i64 kept:i32[n] out:i64[1]"
_TAKE = "in:{0}[t] in:i32[n] n:i64 k:i64 row:i64 column:i64 t:i64 out:{0}[n*k]"
_LAYOUTS: dict[str, Kernel] = {
    # a column, the groups so far, how many of these, the most groups: groups that are equal in this column, too, which
    # may be in the memory of those so far
    "group_reals": Kernel(_GROUP.format("f64")),
    "group_ints": Kernel(_GROUP.format("i32")),
    # 1 if a sample of rows leaves it open that many are equal, else -1
    "sample_reals": Kernel(f"in:f64{_COLUMN} n:i64 k:i64 row:i64 column:i64 out:i64[1]"),
    # of each group its first row, and how many rows it has
    "group_heads": Kernel("in:i32[n] n:i64 g:i64 out:i32[g] out:i32[g]"),
    # a place for each row, or none: how many different ones, -1 if one is below 0 or not below n; one more than the
    # last; how many rows have one
    "count_places": Kernel("in:i32[n] n:i64 out:i64[3]"),
    # places below s, and how many differ: in their order the first row of each, and how many rows it has
    "place_heads": Kernel("in:i32[n] n:i64 s:i64 g:i64 out:i32[g] out:i32[g]"),
    # keys of k scatters, how many use each, what a row costs besides: the order of rows, runs of equal ones, the first
    # of each block, figures
    "segment_rows": Kernel(
        "in:i32[n*k] n:i64 k:i64 in:i32[k] work:i64 r:i64 b:i64 out:i32[n] out:i32[r] out:i64[b] out:i64[4]"
    ),
    # a column of any length `t`, n of its rows
    "take_reals": Kernel(_TAKE.format("f64")),
    "take_ints": Kernel(_TAKE.format("i32")),
}

# Designs of normal linear models, when data are bound (passes/loops/linear_rows.py). Calls read and write their state.
DESIGN_STATE = 26
DESIGN_HELD = 1  # the number of rows that its block has
DESIGN_BLOCK = 64  # of so many
DESIGN_SIZES = 12
_DESIGN_BLOCK = f"in:i64[{DESIGN_STATE}] kept:i64[{DESIGN_STATE}] kept:f64[n] n:i64 in:i64[{DESIGN_BLOCK}]"
_DESIGNS: dict[str, Kernel] = {
    "design_key": Kernel("in:i64[n] kept:i64[n] n:i64 value:i64"),
    "design_groups": Kernel("in:i64[n] kept:i64[n] n:i64"),
    "design_begin": Kernel(f"kept:i64[{DESIGN_STATE}] own:i64 shared:i64 entries:i64 saved:i64 value:i64 in:i64[2]"),
    "design_rows": Kernel(_DESIGN_BLOCK),
    "design_turn": Kernel(_DESIGN_BLOCK),
    "design_sizes": Kernel(f"in:i64[{DESIGN_STATE}] out:i64[{DESIGN_SIZES}]"),
    "design_tables": Kernel(f"in:i64[{DESIGN_STATE}] out:f64[n] n:i64 out:f64[m] m:i64"),
    # both tables, shared coefficients, those of groups: the sum of the squares of rows, that of coefficients; halves of
    # the gradient of the first
    "reduced_squares": _differentiable(
        "in:f64[s] in:f64[t] in:f64[shared] in:f64[own*groups] s:i64 t:i64 shared:i64 own:i64 groups:i64 "
        "out:f64[2] kept:f64[shared] kept:f64[own*groups]",
        "reduced_squares_pullback",
    ),
}

# The same of rows whose scales differ, by kinds (passes/loops/kind_binding.py).
KINDS_STATE = 25
KINDS_SIZES = 11
_KINDS_BLOCK = (
    f"in:i64[{KINDS_STATE}] kept:i64[{KINDS_STATE}] kept:f64[n] n:i64 in:i64[keys] keys:i64 in:f64[sums] sums:i64"
)
_KINDS: dict[str, Kernel] = {
    "kinds_begin": Kernel(f"kept:i64[{KINDS_STATE}] columns:i64 keys:i64 sums:i64 rows:i64 saved:i64"),
    "kinds_rows": Kernel(_KINDS_BLOCK),
    "kinds_turn": Kernel(_KINDS_BLOCK),
    "kinds_sizes": Kernel(f"in:i64[{KINDS_STATE}] out:i64[{KINDS_SIZES}]"),
    "kinds_tables": Kernel(f"in:i64[{KINDS_STATE}] out:i64[n] n:i64 out:f64[m] m:i64"),
    # the table, coefficients: the sum of the squares of the rows of each kind, that of coefficients; halves of the
    # gradients of the first
    "kind_squares": _differentiable(
        "in:f64[t] in:f64[columns*room] t:i64 columns:i64 room:i64 out:f64[room] out:f64[1] kept:f64[columns*room]",
        "kind_squares_pullback",
    ),
}

# Rows of which quadratic forms are added up, when data are bound (passes/loops/row_forms.py), likewise.
FORMS_STATE = 20
FORMS_SIZES = 8
FORMS_ROWS = 4  # are read at a time
_FORMS: dict[str, Kernel] = {
    "forms_begin": Kernel(f"kept:i64[{FORMS_STATE}] columns:i64 rows:i64 own:i64 quarters:i64"),
    "forms_row": Kernel(f"in:i64[{FORMS_STATE}] kept:i64[{FORMS_STATE}] in:f64[n] n:i64 value:i64"),
    # and which columns values are made of
    "forms_turn": Kernel(f"in:i64[{FORMS_STATE}] kept:i64[{FORMS_STATE}] in:i64[p] p:i64 values:i64"),
    "forms_sizes": Kernel(f"in:i64[{FORMS_STATE}] out:i64[{FORMS_SIZES}]"),
    # the factor of a symmetric positive definite matrix and 1; NaN and 0 if it is none
    "factor_if_positive": Kernel("in:f64[n*n] n:i64 out:f64[n*n] out:i64[1]"),
    # L, B by rows: L^-1 B by rows, where L is a lower triangle; how often its columns were added to the first one
    "solve_columns": Kernel("in:f64[n*n] in:f64[n*m] n:i64 m:i64 out:f64[n*m] out:f64[m]"),
    "forms_table": Kernel(f"in:i64[{FORMS_STATE}] out:f64[n] n:i64"),
    # the table, which columns values are made of, coefficients of all rows and of groups: the values of each row
    "form_values": _differentiable(
        "in:f64[t] in:i64[p] in:f64[s] in:f64[k] t:i64 p:i64 s:i64 k:i64 values:i64 columns:i64 rows:i64 own:i64 "
        "span:i64 out:f64[rows*values]",
        "form_values_pullback",
    ),
}

# Rows of data in groups of one weight (runtime/c/row_groups.c), and weights that data give them (row_weights.c).
_ROW_GROUPS: dict[str, Kernel] = {
    # a column: the kind of each weight; 1, or -1 if rows have to stay apart
    "weight_kinds": Kernel("in:f64[(n-1)*row+1] n:i64 row:i64 out:i32[n] out:i64[1]"),
    # a column, the groups of rows: the sum of each group, and 1
    "sum_weights": Kernel("in:f64[(n-1)*row+1] n:i64 row:i64 in:i32[n] g:i64 out:f64[g] out:i32[g]"),
    # a column, weights of rows, the groups of rows: the mean of each group
    "group_means": Kernel("in:f64[(n-1)*row+1] n:i64 row:i64 in:f64[(n-1)*by+1] by:i64 in:i32[n] g:i64 out:f64[g]"),
    # a column of length `t`, n rows in an order, first rows of groups, a number of each, and whether these are to be
    # taken
    "take_of_groups": Kernel("in:f64[t] in:i32[n] n:i64 row:i64 t:i64 in:i32[g] in:f64[g] g:i64 value:i64 out:f64[n]"),
    "flatten_reals": Kernel(f"in:f64{_COLUMN} n:i64 k:i64 row:i64 column:i64 out:f64[n*k]"),
    "flatten_ints": Kernel(f"in:i32{_COLUMN} n:i64 k:i64 row:i64 column:i64 out:i32[n*k]"),
    # first rows of equal ones and how many; the arm that each row takes, or none: rows in groups, where these start,
    # their weights and arms; figures
    "weigh_rows": Kernel(
        "in:i32[g] in:i32[g] in:i32[a] a:i64 n:i64 g:i64 m:i64 out:i32[n] out:i64[m+1] out:f64[m] out:i64[m] "
        "out:i64[6]",
        throws=True,
    ),
}

_PIECES = {
    # The sum of the pieces of a large program, by the table at an address, and its gradient; of values and their places
    "evaluate_pieces": _differentiable(
        "in:f64[n] in:i64[m] n:i64 m:i64 value:i64 out:f64[1] kept:f64[n]",
        "evaluate_pieces_pullback",
        throws=True,
        tangent="none",
    ),
}

# Products of data, sparse or not, and coefficients (runtime/c/design_products.c): columns of x begin at `offsets`,
# neighbours in one are `stride` apart.
SPARSE_FIGURES = 9
LISTED_HEAD = 10
LISTED_FIGURES = (3, 8, 9)  # of it: columns, entries, bytes
_SPARSE: dict[str, Kernel] = {
    "sparse_range": Kernel("in:i64[2] kept:i64[2] value:i64 value:i64"),
    # the entries of each column, figures
    "sparse_columns": Kernel(
        f"in:f64 in:i64[k] k:i64 stride:i64 in:i64[2] out:i64[k] out:i64[{SPARSE_FIGURES}]"
    ),
    "sparse_rows": Kernel(
        f"in:f64 in:i64[k] k:i64 stride:i64 in:i64[2] in:i64[k] in:i64[{SPARSE_FIGURES}] "
        "out:i64[d] d:i64 out:i32[n] n:i64 out:f64[w] w:i64"
    ),
    # the head of rows that have nothing but entries
    "listed_rows": Kernel(f"in:i32[n] n:i64 in:f64[m] m:i64 rows:i64 out:i64[{LISTED_HEAD}]", throws=True),
    "design_product": _differentiable(
        "in:f64[k] k:i64 in:f64 in:i64 in:i32 in:f64 value:i64 m:i64 out:f64[m]", "design_product_pullback",
        tangent="linear",
    ),
    "design_products": _differentiable(
        "in:f64[k] in:f64[k] k:i64 in:f64 in:i64 in:i32 in:f64 value:i64 m:i64 out:f64[m] out:f64[m]",
        "design_products_pullback", tangent="linear",
    ),
}  # fmt: skip


_RECURSIONS = {
    # rows of logarithms, each of the one before (runtime/c/log_recursion.c): the row before the first, what is added to
    # each element, to each term of its sum
    "log_recursion": _differentiable(
        "in:f64[k] in:f64[t*k] in:f64[c*u] t:i64 k:i64 c:i64 u:i64 by_from:i64 by_to:i64 by_row:i64 "
        "by_state:i64 asked:i64 out:f64[asked*k] kept:f64[t*k] kept:f64[t*k] kept:f64[c*u] kept:f64[2*t]",
        "log_recursion_pullback",
    ),
}  # fmt: skip


class _Table(dict[str, Kernel]):
    """The table; a row of an external function is made of the kernel's name when it is looked up."""

    def __missing__(self, name: str) -> Kernel:
        if not is_external(name):
            raise KeyError(name)
        return _of_external(name)

    def get(self, name: str, default: Any = None) -> Any:
        """As of a dictionary."""
        return _of_external(name) if is_external(name) else super().get(name, default)


@lru_cache(maxsize=1024)
def _of_external(name: str) -> Kernel:
    function, pullback = external_function(name), is_pullback(name)
    further = None if pullback else function.pullback_name
    return Kernel(function.parameters(pullback=pullback), throws=True, pullback=further, tangent="none")


KERNELS: dict[str, Kernel] = _Table(
    {
        **_DENSE, **_SORTING, **RANDOM, **_PRINTING, **_LAYOUTS, **_DESIGNS, **_KINDS, **_FORMS, **_ROW_GROUPS,
        **_PIECES, **_SPARSE, **_RECURSIONS,
    }
)  # fmt: skip

FAST: frozenset[str] = frozenset(_DENSE) | {kernel.pullback for kernel in _DENSE.values() if kernel.pullback}
"""What is called at levels 3 and 4 as `ulam_<name>_fast`: other bits, by fused multiply-adds and other orders."""

PULLBACKS: dict[str, Kernel] = {kernel.pullback: kernel for kernel in KERNELS.values() if kernel.pullback is not None}
"""Pullback → a kernel that it is of; all that share one have the same arguments."""


# ---------------------------------------------------------------- functions that are made of a kernel


@record(frozen=True)
class KernelUse:
    """How a function of the library uses its kernel: which output is the result, as what."""

    name: str
    output: int = 0
    shape: str | None = None
    """Of a function of one matrix: its result's sizes, by the kernel's names of sizes; "" for a scalar."""
    square: bool = True
    """Whether that matrix must be."""

    @property
    def kernel(self) -> Kernel:
        return KERNELS[self.name]


OF_MATRIX: dict[str, KernelUse] = {
    "cholesky_decompose": KernelUse("cholesky_decompose", 0, "n n"),
    "chol2inv": KernelUse("chol2inv", 0, "n n"),
    "inverse": KernelUse("inverse", 0, "n n"),
    "inverse_spd": KernelUse("inverse_spd", 0, "n n"),
    "determinant": KernelUse("determinant", 0, ""),
    "log_determinant": KernelUse("log_determinant", 0, ""),
    "log_determinant_spd": KernelUse("log_determinant_spd", 0, ""),
    "eigenvalues_sym": KernelUse("eigenvalues_sym", 0, "n"),
    "eigenvectors_sym": KernelUse("eigenvectors_sym", 0, "n n"),
    "matrix_exp": KernelUse("matrix_exp", 0, "n n"),
    "singular_values": KernelUse("singular_values", 0, "min", square=False),
    "svd_U": KernelUse("svd", 1, "m min", square=False),
    "svd_V": KernelUse("svd", 2, "n min", square=False),
    "qr_thin_Q": KernelUse("qr_thin", 0, "m min", square=False),
    "qr_thin_R": KernelUse("qr_thin", 1, "min n", square=False),
}
"""Functions of one matrix, each an output of a kernel."""

OF_ONE_DECOMPOSITION: dict[str, str] = {
    name: "eigendecompose_sym" for name in ("eigenvalues_sym", "eigenvectors_sym", "eigendecompose_sym")
}
"""Kernels that compute a part of what another one does, and keep the rest, in buffers of the same sizes."""


OF_COLUMNS: dict[str, str] = {
    "mdivide_left_tri_low": "m",
    "mdivide_left": "m",
    "mdivide_left_spd": "m",
    "multiply": "n",
    "normal_terms": "m",
}
"""Kernels of which each column of the result depends on the same column of an input alone, by the name of the size that
tells how many columns these two have.
"""  # fmt: skip


def kernel_of(function: str) -> KernelUse | None:
    """The kernel that computes a function of the library: one by another name, or that of its name."""
    if function in OF_MATRIX:
        return OF_MATRIX[function]
    return KernelUse(function) if function in KERNELS and function not in _PRINTING else None
