"""The conversion of the `stan` dialect to functions over buffers.

`programs` takes a program apart, `units` makes the functions of a unit, and `lowering` walks over its ops, with a
handler for each class (`operators`, `indexing`, `statements`, `calls`, `densities`, `parameters`). Begin with `values`,
what a Stan value becomes.
"""
