"""Passes on the `stan`, `ad` and lower dialects: what makes loops over buffers of a program, and gradients of them.

`optimize` has the passes of the levels, on the variable form of the `stan` dialect, with their analyses in `analysis`;
`value_form` and `to_loops` go from there to functions over buffers, `autodiff` derives the reverse sweep, `loops` works
on what comes out. Here stands what all of them share: `builder` writes ops, `rewriting` replaces them, `errors` is what
they raise. Begin with `pipelines.py`, the passes by name, and `lowering_pipeline.py`, the order in which they run.
"""
