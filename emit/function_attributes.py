"""Groups of LLVM's attributes for functions, by their number."""

from __future__ import annotations

HOT = "#0"
PURE = "#1"
"""Depends on its arguments alone."""
RARE = "#2"
SMALL = "#3"
"""Runs once: small code."""
PLAIN = "#4"
"""Runs once and computes little: code as it is written."""
PART = "#5"
"""Was made a function of its own since the one that it was in is too long."""
LONG_VECTORS = ' "prefer-vector-width"="512"'
"""Behind a group: vectors of 512 bits where LLVM would choose shorter ones."""

GROUPS = """\
attributes #0 = { nounwind }
attributes #1 = { nounwind willreturn memory(none) }
attributes #2 = { nounwind cold }
attributes #3 = { nounwind minsize optsize }
attributes #4 = { nounwind noinline optnone }
attributes #5 = { nounwind noinline }
"""
