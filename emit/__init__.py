"""From functions over buffers to machine code: LLVM IR as text, LLVM's passes, linking into the process.

One table from op class to text, in pieces: `scalar_ops`, `memory_ops`, `control_ops`, `primitives`, `vector_math`.
`jit` alone imports llvmlite; `object_cache` keeps object code on disk; `stan_text*` print the `stan` dialect back as
Stan. Imports `ulam.dialects`; `jit` and `object_cache` not even that, as they run without the compiler when the cache
answers. Begin with `llvm_text.py`.
"""
