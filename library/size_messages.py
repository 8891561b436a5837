"""What errors of indices and sizes say: one wording for each check, wherever it is made."""

from __future__ import annotations

OUT_OF_RANGE = "accessing element out of range. index {} out of range; expecting index to be between 1 and {}"
"""Index, size."""

ASSIGNED_SIZES = "assign to {}: sizes must match: {} on the left, {} on the right"
"""Variable; a size of it, or of the part that is assigned, and that of the value."""

EQUAL_SIZES = "{}: sizes must match, but they are {} and {}"
"""Function or operator, and the sizes of two of its arguments."""

LITERAL = "container literal"
"""What `EQUAL_SIZES` calls `{a, b}` and `[a, b]`."""

FACTOR_SIZES = "{}: columns of the left factor are {}, but rows of the right factor are {}"
"""Operator or function, columns, rows."""

SIDE_SIZES = "{}: columns of the left side are {}, but rows of the right side are {}"
"""A division by a matrix, columns, rows."""

SQUARE = "{}: the matrix must be square, but has {} rows and {} columns"
"""Function, rows, columns."""
