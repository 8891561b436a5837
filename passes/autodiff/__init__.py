"""Differentiation, from ordinary IR to ordinary IR: reverse mode, and forward mode over it.

`activity` finds what needs an adjoint, `shadows` gives active buffers one, `sweeps` writes the reverse sweep, with
`rules` for single ops, `frames` for the values of the forward sweep that it needs, and `calls` and `called_functions`
for recursive functions. `forward_mode` differentiates the result once more: `variation` finds what has a tangent,
`tangent_rules` and `kernel_tangents` say which. Runs between the stages of lowering, on functions over buffers; imports
nothing of `lower`. Begin with `reverse_mode.py`, then `forward_mode.py`.
"""
