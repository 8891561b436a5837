"""How functions of the library are for complex arguments.

A complex number is a pair of reals in all that is compiled, a container of them a pair of containers: their parts (see
`frontend/lower/complex_parts.py`). Some functions do the same with each part; others are defined over complex numbers,
under a name of their own, in `complex.stan`, `fourier.stan` and `complex_eigen.stan`.
"""

from __future__ import annotations

PREFIX = "complex_"
"""Begins the names of the definitions for complex arguments: `complex_exp` is what `exp` is of a complex number."""

EACH_PART = frozenset(
    """
    add_diag append_array append_col append_row block col cumulative_sum diag_matrix diagonal head minus plus rep_array
    rep_matrix rep_row_vector rep_vector reverse row segment sized_as sub_col sub_row sum tail to_array_1d to_array_2d
    to_matrix to_row_vector to_vector trace transpose
""".split()
)
"""What they do with a part does not depend on the other: the result's parts are what they are of the parts."""

OF_SIZES = frozenset("cols dims num_elements rows size".split())
"""They ask for sizes only: those of the real part."""

OF_PARTS = frozenset("abs conj get_imag get_real norm arg to_complex polar".split())
"""Made of operations on the parts, where they are called: element by element in containers of any kind."""

OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "elt_multiply": ".*", "logical_eq": "==", "logical_neq": "!=",
}  # fmt: skip
"""Functions that are operators by another name."""

BY_DEFINITION = {"/": "divide", "./": "divide", "^": "pow", ".^": "pow"}
"""Operators that are calls of a function of complex scalars, element by element."""


def definition_name(name: str) -> str:
    """What the definition of a function of complex numbers is called."""
    return PREFIX + {"elt_divide": "divide"}.get(name, name)


def is_made_of_parts(name: str) -> bool:
    """Whether calls with complex arguments need no definition over complex numbers."""
    return name in EACH_PART or name in OF_SIZES or name in OF_PARTS or name in OPERATORS
