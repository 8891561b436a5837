"""Traces: what one run of a function did, recorded by emitted code and read when it is asked for.

`session` compiles the instrumented clone (`instrument`) and runs it, `tape` has the records as frames, steps and
values, `nodes` and `node_kinds` are what users see, `trace` is all of a run. Readers are functions over nodes; `face`
has them as methods. Public names are in `ulam.trace`.
"""
