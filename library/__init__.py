"""Stan's function library, as data: no Python of the compiler is imported here.

`functions` tells what a function is by its name, and whether it may throw. `*.stan` define densities, distribution
functions, transforms and vector functions in Stan, one file per family; begin with continuous.stan, whose head states
the conventions; functions that Stan does not have are in extensions.stan. `catalog` finds a definition by name. What
they rely on are tables: `signature_table.txt` (Stan's functions), `derivatives.txt` (the primitives and their
derivatives, read by `derivatives`), `requirements` (what the `require_*` statements demand) and `kernels` (what is C).
`statuses` are what compiled code returns.
"""
