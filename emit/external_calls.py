"""Calls of external functions: C functions of somebody else's, by the convention of `library/externals.py`.

What is undefined in an object is the symbol `ulam_<kernel>`; whoever loads the object says where that function is. No
signal may leave such a function half-way: the runtime masks them around the call (runtime/c/external.c).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ulam.emit.errors import EmissionError
from ulam.emit.llvm_text import symbol
from ulam.emit.memory_ops import set_memory
from ulam.library.externals import SYMBOL, external_function, is_pullback
from ulam.library.kernels import KERNELS

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

    from ulam.emit.llvm_text import FunctionEmitter
    from ulam.library.kernels import KernelParameter


def external_call(e: FunctionEmitter, op: Operation, kernel: str) -> str:
    """Writes the call of kernel `kernel`; the name of the status that it returned."""
    operands = e.operands(op)
    parameters = KERNELS[kernel].parameters
    sizes = {p.size: e.names[a] for p, a in zip(parameters, operands, strict=True) if p.kind == "size"}
    _declare(e)
    e.line("call void @ulam_external_begin(ptr %context)")
    arguments: list[tuple[str, str]] = []
    for parameter, operand in zip(parameters, operands, strict=True):
        if is_pullback(kernel) and parameter.kind == "out":
            _clear(e, operand, parameter, sizes)
        arguments.append(_passed(e, operand, parameter))
    returned, status = e.temporary(), e.temporary()
    name = symbol(SYMBOL + kernel)
    e.module.declare(SYMBOL + kernel, f"declare i32 {name}({', '.join(t for t, _ in arguments)}) #0")
    e.line(f"{returned} = call i32 {name}({', '.join(f'{t} {a}' for t, a in arguments)})")
    text = e.module.string(external_function(kernel).name)
    e.line(f"{status} = call i32 @ulam_external_end(ptr %context, i32 {returned}, ptr {text})")
    return status


def trampolines(functions: Mapping[str, str]) -> str:
    """LLVM IR of functions that have the symbols which compiled code calls, and call the C functions of others.

    `functions`: kernel → symbol of the C function.
    """
    lines: list[str] = []
    declared: dict[str, str] = {}
    for kernel, target in functions.items():
        types = [_c_type(parameter) for parameter in KERNELS[kernel].parameters]
        if declared.setdefault(target, ", ".join(types)) != ", ".join(types):
            raise EmissionError(f"'{target}' is called with two different types")
        passed = ", ".join(f"{t} %{n}" for n, t in enumerate(types))
        lines.append(f"define hidden i32 {symbol(SYMBOL + kernel)}({passed}) #0 {{")
        lines.append(f"  %result = tail call i32 {symbol(target)}({passed})\n  ret i32 %result\n}}")
    head = [f"declare i32 {symbol(target)}({types}) #0" for target, types in declared.items()]
    return "\n".join([*head, *lines, "attributes #0 = { nounwind }"]) + "\n"


def _c_type(parameter: KernelParameter) -> str:
    if parameter.kind == "size":
        return "i64"
    if parameter.kind == "value":
        return "i32"
    return "double" if parameter.kind == "in" and parameter.size == "1" else "ptr"


def _declare(e: FunctionEmitter) -> None:
    e.module.declare("ulam_external_begin", "declare void @ulam_external_begin(ptr) #0")
    e.module.declare("ulam_external_end", "declare i32 @ulam_external_end(ptr, i32, ptr) #0")


def _passed(e: FunctionEmitter, operand: SSAValue, parameter: KernelParameter) -> tuple[str, str]:
    """Type and value of an argument: a buffer of one real that is read is that real."""
    t, name = e.type(operand), e.names[operand]
    if parameter.kind != "in" or parameter.size != "1":
        return t, name
    value = e.temporary()
    e.line(f"{value} = load double, ptr {name}, align 8")
    return "double", value


def _clear(e: FunctionEmitter, operand: SSAValue, parameter: KernelParameter, sizes: dict[str, str]) -> None:
    """Zeros in a buffer of reals."""
    count = "8"
    for factor in parameter.size.split("*"):
        product = e.temporary()
        e.line(f"{product} = mul i64 {count}, {sizes.get(factor, factor)}")
        count = product
    set_memory(e, e.names[operand], count)
