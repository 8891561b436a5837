"""The functions of Stan's library that the lowering makes itself (`passes/to_loops`), for all types of arguments that
the language allows; a definition in `*.stan` goes before. The type checker asks this table whether a call can be
compiled.
"""

from __future__ import annotations

from ulam.library.kernels import OF_MATRIX, RANDOM

INTRINSICS = frozenset(
    """
    abs add append_array append_col append_row block col cols diag_matrix diagonal dims divide dot_product elt_divide
    elt_multiply head int_step logical_negation map_rect max mdivide_left mdivide_left_spd mdivide_left_tri_low
    mdivide_right mdivide_right_spd mdivide_right_tri_low min minus multiply num_elements plus pow reduce_sum
    reduce_sum_static rep_array rep_matrix rep_row_vector rep_vector reverse row rows segment size sort_asc sort_desc
    sort_indices_asc sort_indices_desc sub_col sub_row subtract sum tail to_array_1d to_array_2d to_int to_matrix
    to_row_vector to_vector transpose
""".split()
).union(RANDOM, OF_MATRIX)

INTERNAL_FUNCTIONS = {"gaussian_dlm_filter": "mmmvmvm"}
"""Functions that only definitions in `*.stan` can call, made by the lowering, too; their arguments, by the codes of
types in the signature table (`m` a matrix, `v` a vector). The result is a real."""
