"""Derivatives of functions that are called: of recursive ones, as all others are written in place.

    f(x, v) -> y    →    f.forward(x, v, v's shadow) -> (y, record)
                         f.reverse(record, y's adjoint) -> x's adjoint

The forward version computes the function and pushes one record of what its reverse needs. The reverse version takes the
record and the adjoints of real results; it adds to the shadows of buffer arguments and returns the adjoints of real
arguments. The shadow of a buffer that is a result is made in the forward version, and returned with it. A recursive
call inside becomes a call of the forward version, whose record goes into the record of the caller.

A pair is made for each choice of arguments and results that are active at a call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, SymbolRefAttr, f64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.passes.analysis.free_values import free_values
from ulam.passes.autodiff.activity import Activity, is_real
from ulam.passes.autodiff.frames import Frame
from ulam.passes.lower.builder import BUFFER_REAL
from ulam.passes.lower.lowering import NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ulam.passes.autodiff.reverse_mode import ReverseMode

RECORD = BUFFER_REAL
"""The type of the address of a record."""


@dataclass(frozen=True)
class Derivative:
    """A forward and a reverse version of `function`, for active operands and results by position."""

    function: func.FuncOp
    forward: SymbolRefAttr
    reverse: SymbolRefAttr
    operands: tuple[int, ...]
    results: tuple[int, ...]

    def of_type(self, values: Sequence[SSAValue], positions: Sequence[int], *, scalar: bool) -> list[int]:
        """Those of `positions` at which `values` has a scalar, or a buffer."""
        return [n for n in positions if (values[n].type == f64) == scalar]


@dataclass
class ForwardCall:
    """A call of a forward version, in the forward sweep."""

    derivative: Derivative
    record: SSAValue


class Derivatives:
    """The derivatives of the functions of a module, made when they are asked for."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self._functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp)}
        self._known: dict[tuple[str, tuple[int, ...], tuple[int, ...]], Derivative] = {}
        self._pending: list[Derivative] = []

    def of_call(self, op: func.CallOp, activity: Activity) -> Derivative | None:
        """The derivative of the function that `op` calls; None if none of its results is active."""
        operands = tuple(n for n, v in enumerate(op.operands) if is_real(v) and activity.is_active(v))
        results = tuple(n for n, v in enumerate(op.results) if is_real(v) and activity.is_active(v))
        if not results:
            return None
        name = op.callee.root_reference.data
        key = (name, operands, results)
        if (found := self._known.get(key)) is None:
            number = sum(known[0] == name for known in self._known)
            suffix = f".{number}" if number else ""
            forward, reverse = (SymbolRefAttr(f"{name}.{part}{suffix}") for part in ("forward", "reverse"))
            found = self._known[key] = Derivative(self._functions[name], forward, reverse, operands, results)
            self._pending.append(found)
        return found

    def complete(self) -> None:
        """Writes all that was asked for; drops functions that are not called any more."""
        while self._pending:
            self._write(self._pending.pop())
        if self._known:
            self._drop_unused()

    def _write(self, derivative: Derivative) -> None:
        from ulam.passes.autodiff.reverse_mode import ReverseMode

        function = derivative.function.clone()
        block = function.body.block
        returned = block.last_op
        assert returned is not None
        buffers = derivative.of_type(returned.operands, derivative.results, scalar=False)
        # What the caller takes for active has a shadow, whether it depends on the arguments or not.
        varied = [block.args[n] for n in derivative.operands] + [returned.operands[n] for n in buffers]
        useful = [returned.operands[n] for n in derivative.results]
        mode = ReverseMode(function, Activity(block, varied, useful), self)
        reverse = _Split(mode, derivative).run()
        self.module.body.block.add_ops([function, reverse])

    def _drop_unused(self) -> None:
        functions = {op.sym_name.data: op for op in self.module.body.block.ops if isinstance(op, func.FuncOp)}
        used: set[str] = set()
        work = [name for name, op in functions.items() if "entry" in op.attributes]
        while work:
            name = work.pop()
            if name not in used:
                used.add(name)
                calls = (op for op in functions[name].walk() if isinstance(op, func.CallOp))
                work += [op.callee.root_reference.data for op in calls]
        for name, function in functions.items():
            if name not in used:
                function.detach()
                function.erase(safe_erase=False)


@dataclass
class _Split:
    """Makes a copy of a function its forward version, and writes the reverse version beside it."""

    mode: ReverseMode
    derivative: Derivative

    def run(self) -> func.FuncOp:
        """The reverse version."""
        mode, derivative = self.mode, self.derivative
        block, builder = mode.entry, mode.builder
        formals = list(block.args)
        for n in derivative.of_type(formals, derivative.operands, scalar=False):
            mode.shadows.of[formals[n]] = block.insert_arg(formals[n].type, len(block.args))
        mode.shadows.make(block)
        mode.fuse_all(block)
        end = block.last_op
        assert isinstance(end, func.ReturnOp)
        results = list(end.operands)
        scalars = derivative.of_type(results, derivative.results, scalar=True)
        arguments = derivative.of_type(formals, derivative.operands, scalar=True)
        back = Block(arg_types=[RECORD, *(f64 for _ in scalars)])
        frame = Frame(block, back, None, replay=True, loop=mode.function)
        with builder.inside(back):
            self._guard(back)
            for n, adjoint in zip(scalars, back.args[1:], strict=True):
                mode.add(frame, results[n], adjoint)
            mode.reverse_block(block, frame)
            zero = builder.f64(0.0)
            builder.emit(func.ReturnOp, [mode.take(frame, formals[n]) or zero for n in arguments])
        self._forward(end, frame)
        builder.finish()
        _own_constants(back)
        _set_signature(mode.function, derivative.forward)
        return _function(back, derivative.reverse, mode.function)

    def _guard(self, back: Block) -> None:
        guard = next(op for op in self.mode.entry.ops if isinstance(op, rt.StackGuardOp))
        back.add_op(guard.clone())

    def _forward(self, end: Operation, frame: Frame) -> None:
        """Pushes the record at the end of the forward version, and pops it at the start of the reverse one."""
        block = self.mode.entry
        values = [value for value, _ in frame.pushed]
        null = rt.NullOp.create(result_types=(RECORD,))
        push = ad.PushOp.create(operands=(null.res, *values), result_types=(RECORD,))
        block.insert_ops_before([null, push], end)
        buffers = self.derivative.of_type(end.operands, self.derivative.results, scalar=False)
        shadows = [self.mode.shadows.of[end.operands[n]] for n in buffers]
        end.operands = [*end.operands, *shadows, push.res]
        pop = ad.PopOp.create(operands=(frame.block.args[0],), result_types=[RECORD, *(v.type for v in values)])
        first = frame.block.first_op
        assert first is not None
        frame.block.insert_op_before(pop, first)
        for (_, stand_in), popped in zip(frame.pushed, pop.results[1:], strict=True):
            stand_in.results[0].replace_all_uses_with(popped)


def _own_constants(block: Block) -> None:
    """Gives the reverse version copies of the constants that it shares with the forward version."""
    assert block.parent is None
    region = Region(block)
    copies: list[Operation] = []
    for value in free_values(region):
        owner = value.owner
        assert isinstance(owner, arith.ConstantOp | rt.BoundOp), f"{value} is not in the record"
        copy = owner.clone()
        copies.append(copy)
        for use in list(value.uses):
            if region.block.is_ancestor(use.operation):
                use.operation.operands[use.index] = copy.results[0]
    first = block.first_op
    assert first is not None
    block.insert_ops_before(copies, first)
    region.detach_block(block)


def _set_signature(function: func.FuncOp, name: SymbolRefAttr) -> None:
    block = function.body.block
    end = block.last_op
    assert end is not None
    type_ = FunctionType.from_lists([a.type for a in block.args], [o.type for o in end.operands])
    function.properties["sym_name"] = name.root_reference
    function.properties["function_type"] = type_


def _function(block: Block, name: SymbolRefAttr, like: func.FuncOp) -> func.FuncOp:
    empty = FunctionType.from_lists([], [])
    function = func.FuncOp.create(
        properties={"sym_name": StringAttr(""), "function_type": empty},
        regions=[Region(block)],
        location=like.location,
    )
    _set_signature(function, name)
    return function


def call_forward(op: func.CallOp, derivative: Derivative, shadows: dict[SSAValue, SSAValue]) -> Sequence[Attribute]:
    """Further result types of `op` as a call of the forward version, whose name and operands it gets."""
    buffers = [op.operands[n] for n in derivative.of_type(op.operands, derivative.operands, scalar=False)]
    if any(buffer not in shadows for buffer in buffers):
        what = "a container that is data in one case and depends on parameters in another cannot be differentiated yet"
        raise NotSupportedError(what, op.location)
    op.operands = [*op.operands, *(shadows[buffer] for buffer in buffers)]
    op.properties = {**op.properties, "callee": derivative.forward}
    made = derivative.of_type(op.results, derivative.results, scalar=False)
    return [*(op.results[n].type for n in made), RECORD]


def reverse_call(mode: ReverseMode, frame: Frame, op: Operation) -> None:
    """The reverse of a call: a call of the reverse version."""
    call = mode.shadows.calls.get(op)
    if call is None:
        return
    derivative = call.derivative
    scalars = derivative.of_type(op.results, derivative.results, scalar=True)
    arguments = derivative.of_type(op.operands, derivative.operands, scalar=True)
    adjoints = [mode.take(frame, op.results[n]) for n in scalars]
    if len(scalars) == len(derivative.results) and not any(adjoints):
        return
    zero = mode.builder.f64(0.0)
    operands = [mode.need(call.record, frame), *(a or zero for a in adjoints)]
    callee = {"callee": cast(Attribute, derivative.reverse)}
    results = mode.builder.emit(func.CallOp, operands, [f64] * len(arguments), callee).results
    for n, result in zip(arguments, results, strict=True):
        mode.add(frame, op.operands[n], result)
