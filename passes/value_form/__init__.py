"""The variable form of the `stan` dialect to its value form, in order: `structure_exits`, `split_branch_chains`,
`promote_variables`.
"""
