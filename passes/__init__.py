"""Passes on the `stan`, `ad` and lower dialects: what makes loops over buffers of a program, and gradients of them.

`lower` goes from the `stan` dialect to what is emitted, `autodiff` derives the reverse sweep, `optimize` is for the
passes of the levels, `analysis` answers questions and changes nothing. Here stands what all of them share: `builder`
writes ops, `rewriting` replaces them, `errors` is what they raise. May import `ulam.dialects`, and the tables of
`ulam.library`; `autodiff` and `analysis` nothing of `lower`. Begin with `pipelines.py`, the passes by name, and
`lower/stages.py`, the order in which they run.
"""
