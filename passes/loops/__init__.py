"""Passes on functions over arith, scf, `rt` and `ad` ops, which know nothing of Stan, and their analyses.

Clean-up (`fold`, `cse`, `licm`, `dce`), work that is done once (`hoist_data`, `tabulate_*`), loops (`checks`,
`loop_fusion`, `unroll_small`, ...), memory (`release_arena`, `stack_buffers`). What an op does stands in `effects`.
"""
