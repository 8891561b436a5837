"""Traces: what one call of a function of the program did, op by op, as nodes that are made when they are asked for.

`session` tracks a call; `recorder` is the C recorder in Python (runtime/c/trace.h); `tape` finds records, `frames`
reads them as positions and values, `nodes` are what users see (`target_nodes`: those of log densities; `node_kinds`
chooses), `listing` prints, `queries` follow data. Public names are in `ulam.trace`.
"""
