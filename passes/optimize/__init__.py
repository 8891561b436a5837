"""The passes of the optimization levels, on the variable form of the `stan` dialect.

None yet: the levels' pass lists in `passes/pipelines.py` are empty, and a level decides only how LLVM may treat
floating point. A pass here may import `ulam.dialects` and `ulam.passes.analysis`. Begin with CONTRIBUTING, "Adding a
pass", and `dialects/stan/effects.py`, which says what may be moved or removed.
"""
