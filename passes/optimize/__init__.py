"""The passes of the optimization levels, on the variable form of the `stan` dialect.

Which of them a level runs is in `passes/pipelines.py`; `docs/optimization.md` shows what each does. A pass here may
import `ulam.dialects` and `ulam.passes.analysis`. Begin with CONTRIBUTING, "Adding a pass", and
`dialects/stan/effects.py`, which says what may be moved or removed.
"""
