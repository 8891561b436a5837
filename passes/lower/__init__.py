"""From the `stan` dialect to functions over buffers, ready for emission.

First `structure_exits` and `promote_variables`, within the `stan` dialect. Then `programs` takes a program apart,
`units` writes functions, and `lowering` walks over its ops, with a handler for each class (`operators`, `indexing`,
`statements`, `calls`, `densities`, `parameters`). What follows works on arith, scf, func, rt and ad ops: clean-up
(`fold`, `cse`, ...), work that is done once (`hoist_data`, `tabulate_*`), loops (`checks`, `loop_fusion`, ...), memory
(`release_arena`, `stack_buffers`). Imports dialects, tables of the library and `passes.analysis`; of `autodiff` only
the entry points of `reverse_mode`. Begin with `stages.py`, which declares the order, and `values.py`, what a Stan value
becomes.
"""
