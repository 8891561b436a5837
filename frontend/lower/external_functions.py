"""External functions of a program that did not come as text: a function without a body hands its arguments on.

    stan.func @f(x %x: !stan.real) -> (!stan.real)   →   stan.func @f(x %x: !stan.real) -> (!stan.real) {
                                                           %0 = stan.call external$f$r$r$s$p(%x) ...
                                                           stan.return %0 : !stan.real
                                                         }
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Block

from ulam.dialects import stan
from ulam.frontend import syntax
from ulam.frontend.functions.externals import ExternalProblem, declared
from ulam.frontend.lower.builder import stan_type
from ulam.frontend.stan_types import VOID
from ulam.library.externals import ExternalForm


def undefined_functions(program: stan.ProgramOp) -> list[stan.FuncOp]:
    """The program's functions without a body; those of the library that have none are known to the compiler."""
    functions = (op for op in program.body.block.ops if isinstance(op, stan.FuncOp))
    return [op for op in functions if op.library is None and not op.body.blocks]


def define_externals(functions: Iterable[stan.FuncOp], forms: Iterable[ExternalForm]) -> None:
    """Gives functions without a body their kernels. Raises ExternalProblem for one that is not given, or cannot be."""
    given = {form.name: form for form in forms}
    for function in functions:
        name = function.stan_name.data
        if (form := given.get(name)) is None:
            hint = f"give it: external={{'{name}': ulam.external(...)}}"
            raise ExternalProblem(f"'{name}' is declared but not defined", hint)
        kernel = declared(_declaration(function), form).kernel_name
        types = function.function_type
        result = types.outputs.data[0] if types.outputs.data else None
        block = Block(arg_types=types.inputs.data)
        autodiff = [int(not only) for only in function.data_only.get_values()]
        call = stan.CallOp(kernel, block.args, result, autodiff, location=function.location)
        block.add_ops([call, stan.ReturnOp(call.res, location=function.location)])
        function.body.add_block(block)


def _declaration(function: stan.FuncOp) -> syntax.FunctionDefinition:
    """The function as a program would declare it."""
    nowhere = syntax.Span(0, 0)
    types = function.function_type
    arguments = [
        syntax.FormalArgument(nowhere, name.data, stan_type(type_), bool(only))
        for name, type_, only in zip(
            function.argument_names, types.inputs.data, function.data_only.get_values(), strict=True
        )
    ]
    result = stan_type(types.outputs.data[0]) if types.outputs.data else VOID
    return syntax.FunctionDefinition(nowhere, function.stan_name.data, nowhere, result, arguments, None)
