"""What functions cost, where they cost less than a call: the rows of a table. `functions.py` asks it.

The weights of the e-graph, which chooses between expressions of equal value, are finer: `optimize/rewrite_rules.txt`.
"""

from __future__ import annotations

from enum import Enum


class FunctionCost(Enum):
    """What a function takes for each element of its result."""

    SIZE = "asks for a size"
    PART = "picks or arranges elements"
    OPERATION = "an instruction or two"
    CALL = "more"


_NAMES = {
    FunctionCost.SIZE: "cols dims num_elements rows size",
    FunctionCost.PART: """
        append_array append_col append_row block col diagonal head rep_array rep_matrix rep_row_vector rep_vector
        reverse row segment sub_col sub_row tail to_array_1d to_array_2d to_complex to_int to_matrix to_row_vector
        to_vector
    """,
    FunctionCost.OPERATION: """
        abs ceil fabs fixed_value_of floor fma fmax fmin is_inf is_nan log_given log_of_zero round scaled_outcome square
        step trunc value_of
    """,
}

COSTS: dict[str, FunctionCost] = {name: cost for cost, names in _NAMES.items() for name in names.split()}
"""Of functions that are not here: CALL."""

WIDENED = frozenset(
    """
    copysign exp exp_minus_magnitude expm1 fdim inv inv_logit inv_logit_of_bounds inv_sqrt inv_square lmultiply log
    log1m log1m_exp log1m_inv_logit log1p log1p_exp log1p_exp_minus_magnitude log_diff_exp log_inv_logit log_of_base
    log_sum_exp multiply_log power_by_log sqrt tanh
    """.split()
)
"""Those of CALL that are computed for several rows at once (emit/primitives.py)."""
