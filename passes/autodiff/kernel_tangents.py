"""The tangents of kernels and of their pullbacks, by what `library/kernels.py` says of each (`Kernel.tangent`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ulam.dialects import ad, rt
from ulam.library.externals import is_external, name_in_program
from ulam.library.kernels import DUAL_STEP, KERNELS, PULLBACKS, Kernel
from ulam.passes.autodiff.kernel_formulas import FORMULAS, KernelFormula
from ulam.passes.autodiff.variation import kernel_flow
from ulam.passes.errors import NotSupportedError
from ulam.passes.kernel_buffers import buffer_size

if TYPE_CHECKING:
    from ulam.passes.autodiff.forward_mode import ForwardMode


def kernel_tangent(mode: ForwardMode, op: rt.KernelOp) -> None:
    """Behind a kernel, or a pullback, that writes what varies: what writes the tangents of that."""
    sources, destinations = kernel_flow(op)
    if not any(mode.variation.is_varied(buffer) for buffer in destinations):
        return
    name = op.function.data
    pullback_of = PULLBACKS.get(name)
    kernel = pullback_of or KERNELS[name]
    writer = _KernelTangent(mode, op, kernel)
    if pullback_of is None and not any(mode.tangent(buffer) is not None for buffer in sources):
        writer.clear()
    elif is_external(name):
        raise NotSupportedError(
            f"second derivatives of the external function '{name_in_program(name)}' are not known: it is given with "
            "a value and a first derivative only", op.location,
        )  # fmt: skip
    elif kernel.tangent == "order":
        writer.of_order() if pullback_of is None else writer.linear()
    elif mode.functions.reverse_follows:
        if (formula := FORMULAS.get(name)) is None:
            raise mode.unsupported(f"'{name}'", op)
        formula(KernelFormula(mode, op))
    elif kernel.tangent == "linear":
        writer.of_first() if pullback_of is None else writer.linear()
    elif pullback_of is not None:
        writer.dual_pullback()
    elif kernel.tangent == "dual":
        writer.dual()
    elif kernel.pullback is None:
        raise mode.unsupported(f"'{name}'", op)
    else:
        writer.by_function()


class _KernelTangent:
    """Writes the tangents of one kernel op."""

    def __init__(self, mode: ForwardMode, op: rt.KernelOp, kernel: Kernel) -> None:
        self.mode = mode
        self.builder = mode.builder
        self.op = op
        self.kernel = kernel
        self.arguments = list(zip(kernel.parameters, op.arguments, strict=False))
        self.sizes = {p.size: argument for p, argument in self.arguments if p.kind == "size"}

    def clear(self) -> None:
        """Outputs that do not vary, in buffers that do elsewhere."""
        for n in self.kernel.adjoints:
            parameter, argument = self.arguments[n]
            if parameter.kind != "in" and (tangent := self.mode.tangent(argument)) is not None:
                self.builder.fill(tangent, self.builder.f64(0.0), self._size(n))

    def of_order(self) -> None:
        """Sorting: the tangent of each element goes where the element went."""
        (_, source), (_, count), (_, out), (_, order) = self.arguments
        tangent = self.mode.tangent(out)
        if tangent is None:
            return
        builder = self.builder

        def body(i: SSAValue, _: object) -> tuple[()]:
            place = builder.value(arith.ExtSIOp, (builder.load(order, i),), i64)
            element = self.mode.load(source, place)
            builder.store(element or builder.f64(0.0), tangent, i)
            return ()

        builder.for_loop(builder.i64(0), count, body)

    def of_first(self) -> None:
        """A kernel that is linear in its first arguments, as many as it has outputs, which are all that varies."""
        outs = [argument for parameter, argument in self.arguments if parameter.kind == "out"]
        results = [self.mode.tangent(out) for out in outs]
        if all(result is None for result in results):
            return
        varying = [self._tangents(n) for n in range(len(outs))]
        results = [self.builder.alloc(self._size(-1)) if result is None else result for result in results]
        arguments = self.op.arguments[len(outs) : -len(outs)]
        self._call(self.op.function.data, [*varying, *arguments, *results], self.op)

    def _tangents(self, n: int) -> SSAValue:
        """A copy of the tangents of an argument."""
        builder, count = self.builder, self._size(n)
        tangents = builder.alloc(count)

        def copy(i: SSAValue, _: object) -> tuple[()]:
            tangent = self.mode.load(self.op.arguments[n], i) or builder.f64(0.0)
            builder.store(tangent, tangents, i, initial=True)
            return ()

        builder.for_loop(builder.i64(0), count, copy)
        return tangents

    def linear(self) -> None:
        """A pullback that is linear in the adjoints and depends on nothing else that varies."""
        count = len(self.arguments)
        adjoints = [self.mode.tangent_or_zero(adjoint) for adjoint in self.op.arguments[count:]]
        self._call(self.op.function.data, [*self.op.arguments[:count], *adjoints])

    def by_function(self) -> None:
        """A function of the runtime."""
        tangents = [self.mode.tangent_or_zero(self.arguments[n][1]) for n in self.kernel.adjoints]
        self._call(self.kernel.tangent, [*self.op.arguments, *tangents])

    def dual(self) -> None:
        """The kernel with dual numbers."""
        builder = self.builder
        arguments = list(self.op.arguments)
        outputs: list[int] = []
        for n in self.kernel.adjoints:
            if self.kernel.parameters[n].kind == "in":
                arguments[n] = self._packed(arguments[n], n)
            else:
                outputs.append(n)
                arguments[n] = builder.alloc(self._doubled(self._size(n)))
        self._call(f"{self.op.function.data}_dual", arguments, self.op)
        for n in outputs:
            if (tangent := self.mode.tangent(self.op.arguments[n])) is not None:
                self._unpack(arguments[n], n, lambda value, i, t=tangent: builder.store(value, t, i))

    def dual_pullback(self) -> None:
        """The pullback with dual numbers: what it adds to adjoints of inputs is added to their tangents."""
        builder = self.builder
        count = len(self.arguments)
        arguments = list(self.op.arguments)
        inputs: list[tuple[int, int]] = []
        for k, n in enumerate(self.kernel.adjoints):
            arguments[n] = self._packed(arguments[n], n)
            adjoint = arguments[count + k]
            if isinstance(adjoint.owner, rt.NullOp):
                continue
            if self.kernel.parameters[n].kind == "in":
                inputs.append((n, count + k))
                arguments[count + k] = builder.alloc(self._doubled(self._size(n)), zero=True)
            else:
                arguments[count + k] = self._packed(adjoint, n)
        self._call(f"{self.op.function.data}_dual", arguments)
        for n, k in inputs:
            if (tangent := self.mode.tangent(self.op.arguments[k])) is not None:
                self._unpack(arguments[k], n, lambda value, i, t=tangent: builder.insert(ad.AccumulateOp(t, i, value)))

    # ------------------------------------------------------------ dual numbers

    def _size(self, n: int) -> SSAValue:
        return buffer_size(self.builder, self.kernel.parameters[n].size, self.sizes)

    def _doubled(self, count: SSAValue) -> SSAValue:
        return self.builder.mul(count, self.builder.i64(2))

    def _packed(self, buffer: SSAValue, n: int) -> SSAValue:
        """Dual numbers: the elements of `buffer` (argument number `n` or its adjoint) and their tangents."""
        builder = self.builder
        count = self._size(n)
        packed = builder.alloc(self._doubled(count))
        step = builder.f64(DUAL_STEP)

        def body(i: SSAValue, _: object) -> tuple[()]:
            place = self._doubled(i)
            builder.store(builder.load(buffer, i), packed, place)
            tangent = self.mode.load(buffer, i)
            scaled = builder.f64(0.0) if tangent is None else builder.mulf(step, tangent)
            builder.store(scaled, packed, builder.add(place, builder.i64(1)))
            return ()

        builder.for_loop(builder.i64(0), count, body)
        return packed

    def _unpack(self, packed: SSAValue, n: int, use: Callable[[SSAValue, SSAValue], object]) -> None:
        builder = self.builder

        def body(i: SSAValue, _: object) -> tuple[()]:
            tangent = builder.load(packed, builder.add(self._doubled(i), builder.i64(1)))
            use(builder.mulf(builder.f64(1 / DUAL_STEP), tangent), i)
            return ()

        builder.for_loop(builder.i64(0), self._size(n), body)

    def _call(self, function: str, arguments: list[SSAValue], like: rt.KernelOp | None = None) -> None:
        throws, site = (False, None) if like is None else (like.throws is not None, like.site)
        self.builder.insert(rt.KernelOp(function, arguments, throws=throws, site=site))
