"""Library functions that a program calls become part of it.

    stan.call normal_lpdf(%y, %m, %s)   →   stan.func @normal_lpdf(...) library { ... }
                                            stan.call normal_lpdf(%y, %m, %s) definition "normal_lpdf"

The frontend does so itself. A module that was made in another way need not know where the library keeps what, nor which
functions transform the parameters that it declares.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.attributes import string
from ulam.dialects.walk import ops_within
from ulam.library.constraints import transform_functions
from ulam.passes.optimize import library_calls


class LinkLibrary(ModulePass):
    """Adds the definitions of the library functions that calls and declarations mean and the program does not have."""

    name = "link-library"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in op.body.block.ops:
            if isinstance(program, stan.ProgramOp):
                link(program)


def link(program: stan.ProgramOp) -> None:
    """Makes what a program needs of the library part of it."""
    linked = [op for op in ops_within(program) if isinstance(op, stan.CallOp | stan.ParameterOp | stan.CheckOp)]
    if not linked:
        return
    definitions = library_calls.definitions(program)
    functions = [op for op in program.body.block.ops if isinstance(op, stan.FuncOp)]
    there = {op.stan_name.data for op in functions if op.library is not None}
    for op in linked:
        if isinstance(op, stan.CallOp):
            if op.user is None and op.definition is None:
                symbol = definitions.symbol(op.callee.data, tuple(operand.type for operand in op.operands))
                if symbol is not None:
                    op.properties["definition"] = string(symbol)
            continue
        kind, lower, upper = op.constraint.data, op.lower is not None, op.upper is not None
        for name in transform_functions(
            kind, lower=lower, upper=upper, is_parameter=isinstance(op, stan.ParameterOp)
        ):  # fmt: skip
            if name not in there:
                definitions.add(name)
