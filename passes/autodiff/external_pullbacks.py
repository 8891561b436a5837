"""The reverse of calls of external functions (`library/externals.py`).

A pullback of somebody else's writes to memory of its own, which is added to the adjoints behind it: it need not know
which derivatives are wanted, nor that two arguments may be the same. It may fail, at the place of the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from ulam.dialects import ad, rt
from ulam.library.externals import ExternalArgument, external_function
from ulam.library.kernels import KERNELS, Kernel
from ulam.passes.errors import NotSupportedError
from ulam.passes.kernel_buffers import buffer_size

if TYPE_CHECKING:
    from ulam.passes.autodiff.frames import ReverseFrame
    from ulam.passes.autodiff.sweeps import ReverseMode


def external_pullback(r: ReverseMode, frame: ReverseFrame, op: rt.KernelOp, kernel: Kernel, inputs: list[int]) -> None:
    """Writes the call of the pullback; `inputs` are the positions of the arguments of reals."""
    function = external_function(op.function.data)
    name = function.pullback_name
    if name is None:
        raise NotSupportedError(
            f"the external function '{function.name}' was given without a derivative, so its arguments must be data: a "
            "gradient goes through this call. Give it a pullback", op.location,
        )  # fmt: skip
    builder = r.builder
    sizes = {p.size: a for p, a in zip(kernel.parameters, op.arguments, strict=True) if p.kind == "size"}
    sizes = {size: r.need(value, frame) for size, value in sizes.items()}
    result = next(n for n, p in enumerate(kernel.parameters) if p.kind == "out")
    arguments = [r.need(a, frame) for a in op.arguments[:result]]
    arguments += [r.shadow(op.arguments[result], frame), *(r.need(a, frame) for a in op.arguments[result + 1 :])]
    outputs = [p for p in KERNELS[name].parameters if p.kind == "out"]
    adjoints = [builder.alloc(buffer_size(builder, p.size, sizes)) for p in outputs]
    builder.insert(rt.KernelOp(name, [*arguments, *adjoints], throws=True, site=op.site))
    reals = [n for n, p in zip(inputs, _are_data(function.arguments), strict=True) if not p]
    for n, own, parameter in zip(reals, adjoints, outputs, strict=True):
        if r.is_active(op.arguments[n]):
            _add(r, r.shadow(op.arguments[n], frame), own, buffer_size(builder, parameter.size, sizes))


def _are_data(arguments: tuple[ExternalArgument, ...]) -> list[bool]:
    """Of the arguments of reals, which must be data."""
    return [a.data_only for a in arguments if not a.is_int]


def _add(r: ReverseMode, shadow: SSAValue, own: SSAValue, count: SSAValue) -> None:
    builder = r.builder

    def body(i: SSAValue, _: object) -> tuple[()]:
        builder.insert(ad.AccumulateOp(shadow, i, builder.load(own, i)))
        return ()

    builder.for_loop(builder.i64(0), count, body)
