"""Reverse-mode differentiation, from ordinary IR to ordinary IR.

`activity` finds what needs an adjoint, `shadows` gives active buffers one, `sweeps` writes the reverse sweep, with
`rules` for single ops, `frames` for the values of the forward sweep that it needs, and `calls` and `called_functions`
for recursive functions. Runs between the stages of lowering, on functions over buffers; imports nothing of `lower`.
Begin with `reverse_mode.py`.
"""
