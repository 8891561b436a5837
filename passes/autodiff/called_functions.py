"""Writes the forward and the reverse versions of functions that are called (see `calls`)."""

from __future__ import annotations

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, SymbolRefAttr, f64
from xdsl.ir import Block, Operation, Region

from ulam.dialects import ad, rt
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.free_values import free_values
from ulam.passes.analysis.nesting import functions_of, terminator
from ulam.passes.autodiff.activity import Activity
from ulam.passes.autodiff.calls import RECORD, Derivative, Derivatives
from ulam.passes.autodiff.frames import ReverseFrame, pop_record
from ulam.passes.autodiff.rotate_loops import rotate_loops
from ulam.passes.autodiff.speculated_ops import speculated_ops
from ulam.passes.autodiff.sweeps import ReverseMode
from ulam.passes.rewriting import cloned


def write_derivatives(derivatives: Derivatives, module: ModuleOp) -> None:
    """Writes all that was asked for of the module's functions; drops functions that are not called any more."""
    functions = functions_of(module)
    while derivatives.pending:
        derivative = derivatives.pending.pop()
        for version in _written(derivatives, derivative, functions[derivative.function]):
            module.body.block.add_op(version)
            functions[version.sym_name.data] = version
    if derivatives.known:
        _drop_unused(module)


def _written(derivatives: Derivatives, derivative: Derivative, original: func.FuncOp) -> list[func.FuncOp]:
    """The forward and the reverse version."""
    function = cloned(original)
    block = function.body.block
    rotate_loops(block)
    returned = terminator(block)
    buffers = derivative.of_type(returned.operands, derivative.results, scalar=False)
    # What the caller takes for active has a shadow, whether it depends on the arguments or not.
    varied = [block.args[n] for n in derivative.operands] + [returned.operands[n] for n in buffers]
    useful = [returned.operands[n] for n in derivative.results]
    mode = ReverseMode(function, Activity(block, varied, useful), derivatives)
    mode.speculated = speculated_ops(block)
    reverse = _Split(mode, derivative).run()
    return [function, reverse]


def _drop_unused(module: ModuleOp) -> None:
    functions = functions_of(module)
    used: set[str] = set()
    work = [name for name, op in functions.items() if rt.EntryAttr.marks(op)]
    while work:
        name = work.pop()
        if name not in used:
            used.add(name)
            calls = (op for op in ops_within(functions[name]) if type(op) is func.CallOp)
            work += [op.callee.root_reference.data for op in calls]
    for name, function in functions.items():
        if name not in used:
            function.detach()
            function.erase(safe_erase=False)


@record
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
        frame = ReverseFrame(block, back, None, replay=True, loop=mode.function)
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
        guards = (op for op in self.mode.entry.ops if isinstance(op, rt.StackGuardOp))
        back.add_ops(guard.clone() for guard in guards)

    def _forward(self, end: Operation, frame: ReverseFrame) -> None:
        """Pushes the record at the end of the forward version, and pops it at the start of the reverse one."""
        block = self.mode.entry
        values = [value for value, _ in frame.pushed]
        null = rt.NullOp(RECORD)
        push = ad.PushOp(null.res, values)
        block.insert_ops_before([null, push], end)
        buffers = self.derivative.of_type(end.operands, self.derivative.results, scalar=False)
        shadows = [self.mode.shadows.of[end.operands[n]] for n in buffers]
        end.operands = [*end.operands, *shadows, push.res]
        pop_record(frame, frame.block.args[0])


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
    end = terminator(block)
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
