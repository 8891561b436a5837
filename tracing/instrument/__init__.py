"""Tracing: clones of functions that record what they do.

`graph` is the table of a traced function, `control_flow` makes it of the `stan` dialect, `instrument` puts the `trace`
ops into the clone, `unit` lowers the clones to a unit of their own. Imports dialects and passes; begin with `graph`.
"""
