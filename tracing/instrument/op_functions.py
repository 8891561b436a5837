"""Each op of a traced program as a function of its own: its value, and its pullback by the same rules as a gradient.

    %8 = stan.pow(%x, 2.0)    →    func @op7()                      slots of the bound table → slots of the bound table
                                   func @op7.pullback(theta, gradient, ...)    cotangent and operands → adjoints

Equal ops (class, properties, types, literals) share a function. The pullback is the gradient of the sum of the result
times the cotangent with respect to the real operands: reverse mode of the `ad` dialect writes it. Literals stay
literals, so that what is folded in the program is folded here.

Bound table: one slot per scalar operand; per container one for its elements and one per size. Behind the operands
stands the result, in the same way, or, of a pullback, the cotangent, and the target's adjoint for calls that add to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FunctionType,
    IntegerType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    f64,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt, stan
from ulam.dialects.scalar_ops import constant
from ulam.dialects.stan import Effect, effects_of
from ulam.dialects.walk import ops_within
from ulam.passes.builder import BUFFER_REAL
from ulam.passes.errors import LoweringError, NotSupportedError
from ulam.passes.loops.thread_target import target_as_value, thread_target
from ulam.passes.loops.unit_modules import set_slots
from ulam.passes.lowering_pipeline import lowering_passes
from ulam.passes.rewriting import applied_to
from ulam.passes.running import run_passes
from ulam.passes.to_loops.calls import inline
from ulam.passes.to_loops.check_sites import CheckSite
from ulam.passes.to_loops.outlined import CallGraph, Outlined
from ulam.passes.to_loops.programs import ProgramParts
from ulam.passes.to_loops.shared_functions import SharedFunctions
from ulam.passes.to_loops.units import FunctionWriter
from ulam.passes.to_loops.values import (
    Container,
    Value,
    buffer_type,
    element_type,
    for_each_element,
    in_buffer,
    materialize,
    total,
    write,
)
from ulam.passes.units import TRACE
from ulam.tracing.instrument.control_flow import value_type
from ulam.tracing.instrument.graph import ValueType

MOVES = (stan.IndexOp, stan.AssignOp, stan.ArrayOp, stan.RowVectorOp, stan.TupleOp, stan.FieldOp)
"""Ops that only move data: readers of traces do them themselves."""
_NOT_ALONE = (*MOVES, stan.TargetAddOp, stan.JacobianAddOp, stan.TargetOp, stan.DeclareOp, stan.PrintOp)


@dataclass(frozen=True)
class OpArgument:
    """An operand that is no literal: the `position`th of the op, in `slot` of the bound table."""

    position: int
    type: ValueType
    slot: int


@dataclass
class OpFunction:
    """One distinct op. `differentiable`: places in `arguments` whose adjoints the pullback gives, one after the other.

    `first` is the slot of the result or cotangent; `count`: operands of the op.
    """

    name: str
    function: stan.FuncOp
    op: Operation
    arguments: list[OpArgument]
    result: ValueType | None
    first: int
    count: int
    draws: bool
    adds_target: bool
    differentiable: list[int] = field(default_factory=list[int])

    @property
    def target_slot(self) -> int:
        """Where the target's adjoint is."""
        return self.first + (self.result.slots if self.result is not None else 0)

    @property
    def is_scalar(self) -> bool:
        """Whether it takes and gives ints and reals only."""
        passed = isinstance(self.op, stan.CallOp) and self.op.callback is not None
        containers = any(a.type.rank for a in self.arguments) or (self.result is not None and self.result.rank)
        return not passed and not containers and self.result is not None and not self.result.is_int

    @property
    def slots(self) -> int:
        """How many slots of the bound table it uses."""
        return self.target_slot + self.adds_target


@dataclass
class OpModule:
    """Lowered functions; those that cannot be lowered are in `failed`, with the reason."""

    module: ModuleOp
    sites: list[CheckSite]
    failed: dict[str, str]


class OpFunctions:
    """The distinct ops of a traced program, by name."""

    def __init__(self, functions: dict[str, stan.FuncOp]) -> None:
        self._user = functions
        self._calls = CallGraph(functions)
        self._by_text: dict[str, str] = {}
        self.by_name: dict[str, OpFunction] = {}

    def add(self, op: Operation, number: int = 0) -> str | None:
        """Name of the function for an op of a traced function; None if it has none.

        `number`: for that field of the tuple that it gives, from 1.
        """
        if isinstance(op, _NOT_ALONE) or op.regions:
            return None
        types = [*(o.type for o in op.operands), *(r.type for r in (() if number else op.results))]
        if not all(value_type(type_).base != "other" for type_ in types):
            return None
        function, places = _as_function(op, number)
        if any(value_type(type_).base == "other" for type_ in function.function_type.outputs):
            return None
        text = str(function)
        name = self._by_text.get(text)
        if name is None:
            name = self._by_text[text] = f"op{len(self._by_text)}"
            function.properties["sym_name"] = StringAttr(name)
            adds = isinstance(op, stan.CallOp) and op.user is not None and self._adds_target(op.callee.data)
            made = self.by_name[name] = _describe(name, function, op, places, adds)
            made.differentiable = self._differentiable(made)
        return name

    def _adds_target(self, symbol: str) -> bool:
        return bool(self._calls.target_ops(symbol) & {stan.TargetAddOp, stan.JacobianAddOp})

    def _differentiable(self, made: OpFunction) -> list[int]:
        if made.draws or ((made.result is None or made.result.is_int) and not made.adds_target):
            return []
        taken = [n for n, a in enumerate(made.arguments) if not a.type.is_int]
        op = made.op
        if isinstance(op, stan.CallOp):
            if op.callback is not None:
                return _autodiff(op, made.arguments, taken)
            if op.user is not None:
                data = self._user[op.callee.data].data_only
                bits = cast("DenseArrayBase[IntegerType]", data).get_values()
                return [n for n in taken if not bits[made.arguments[n].position]]
        return taken


def _autodiff(op: stan.CallOp, arguments: Sequence[OpArgument], taken: Sequence[int]) -> list[int]:
    """Of some arguments those that Stan's static rule calls autodiff."""
    bits = cast("DenseArrayBase[IntegerType]", op.autodiff).get_values()
    return [n for n in taken if bits[arguments[n].position]]


def _source(value: SSAValue) -> tuple[SSAValue, list[Operation]]:
    """What an operand is before promotions, and the ops that make it of that: of a literal, the literal too."""
    chain: list[Operation] = []
    while isinstance(owner := value.owner, stan.PromoteOp):
        chain.insert(0, owner)
        value = owner.operand
    return value, [owner, *chain] if isinstance(owner, stan.ConstantOp) else chain


def _as_function(op: Operation, number: int = 0) -> tuple[stan.FuncOp, list[int]]:
    """The op as the only one of a function, with a field of its result; which of its operands are arguments."""
    block = Block()
    operands: list[SSAValue] = []
    places: list[int] = []
    for position, operand in enumerate(op.operands):
        source, chain = _source(operand)
        made: list[SSAValue] = []
        if not isinstance(source.owner, stan.ConstantOp):
            made.append(block.insert_arg(source.type, len(block.args)))
            places.append(position)
        for part in chain:
            clone = applied_to(part, made[-1:])
            block.add_op(clone)
            made.append(clone.results[0])
        operands.append(made[-1])
    clone = applied_to(op, operands)
    block.add_op(clone)
    results = clone.results
    if number:
        taken = stan.FieldOp(results[0], number, location=op.location)
        block.add_op(taken)
        results = taken.results
    block.add_op(stan.ReturnOp(*results, location=op.location))
    inputs = [a.type for a in block.args]
    outputs = [r.type for r in results]
    function = stan.FuncOp("op", ["x"] * len(inputs), inputs, outputs, Region(block), location=op.location)
    return function, places


def _describe(name: str, function: stan.FuncOp, op: Operation, places: Sequence[int], adds_target: bool) -> OpFunction:
    arguments: list[OpArgument] = []
    slot = 0
    for position in places:
        type_ = value_type(_source(op.operands[position])[0].type)
        arguments.append(OpArgument(position, type_, slot))
        slot += type_.slots
    outputs = function.function_type.outputs.data
    result = value_type(outputs[0]) if outputs else None
    draws = bool(effects_of(op) & Effect.DRAWS)
    return OpFunction(name, function, op, arguments, result, slot, len(op.operands), draws, adds_target)


# ---------------------------------------------------------------- lowering


@dataclass(frozen=True)
class Setting:
    """What decides on a program's terms: whether constants are dropped, whether `jacobian +=` counts."""

    propto: bool = False
    jacobian: bool = True


def lower_values(program: ProgramParts, functions: Iterable[OpFunction], setting: Setting) -> OpModule:
    """`name()` for each function: from its operands' slots to the result's."""
    return _Lowering(program, setting).run(functions, _value)


def lower_pullbacks(program: ProgramParts, functions: Iterable[OpFunction], setting: Setting) -> OpModule:
    """`name(theta, gradient, 0)` for each function with differentiable operands: these are `theta`, its adjoints go to
    `gradient`; other operands, sizes and the cotangent are in slots. The result is the sum of result times cotangent,
    and of what the call adds to the target times the target's adjoint.

    What cannot be differentiated with respect to all reals is with respect to those that Stan calls autodiff.
    """
    return _Lowering(program, setting).run((f for f in functions if f.differentiable), _pullback)


class _Lowering:
    """Functions are lowered one by one, so that one that cannot be does not keep others from it."""

    def __init__(self, program: ProgramParts, setting: Setting) -> None:
        self.program = program
        self.propto, self.jacobian = setting.propto, setting.jacobian
        self.sites: list[CheckSite] = []
        self._outlined = Outlined(program.functions, whole_terms=True)

    def run(self, functions: Iterable[OpFunction], lower: Callable[[_Lowering, OpFunction], ModuleOp]) -> OpModule:
        made, failed = ModuleOp([]), dict[str, str]()
        for function in functions:
            try:
                module = self._lowered(function, lower)
            except (NotSupportedError, LoweringError) as error:
                failed[function.name] = str(error)
                continue
            for op in _renamed(module, function.name):
                op.detach()
                made.body.block.add_op(op)
        return OpModule(made, self.sites, failed)

    def _lowered(self, function: OpFunction, lower: Callable[[_Lowering, OpFunction], ModuleOp]) -> ModuleOp:
        try:
            return lower(self, function)
        except NotSupportedError:
            op = function.op
            if lower is not _pullback or not isinstance(op, stan.CallOp):
                raise
            fewer = _autodiff(op, function.arguments, function.differentiable)
            if fewer == function.differentiable:
                raise
            function.differentiable = fewer
            return lower(self, function)

    def reads_target(self, symbol: str) -> bool:
        """Whether a call may depend on what was added to the target before it; a model begins with nothing."""
        model = self.program.functions[symbol].model is not None
        return not model and stan.TargetOp in self._outlined.graph.target_ops(symbol)

    def writer(self, name: str, arguments: Sequence[Attribute]) -> tuple[FunctionWriter, ProgramParts]:
        outlined = Outlined({})
        outlined.graph, outlined.terms = self._outlined.graph, self._outlined.terms
        outlined.shared = SharedFunctions(self.program.functions)
        program = replace(self.program, outlined=outlined, profiled=False)
        writer = FunctionWriter(program, self.sites, name, arguments)
        writer.low.precise = True
        writer.low.propto = self.propto
        writer.low.jacobian = writer.builder.i1(True) if self.jacobian else None
        return writer, program

    def call(self, writer: FunctionWriter, function: OpFunction, arguments: Sequence[Value]) -> Value | None:
        low = writer.low
        bits = [not argument.type.is_int for argument in function.arguments]
        return inline(low, function.function, arguments, function.function.location, self.propto, bits)

    def finished(self, entry: func.FuncOp, program: ProgramParts, *requests: Operation) -> ModuleOp:
        module = ModuleOp([entry, *program.outlined.written])
        target_as_value(module)
        for request in requests:
            module.body.block.add_op(request)
        set_slots(module, 0)
        run_passes(Context(), module, lowering_passes(TRACE, 0))
        return module


def _renamed(module: ModuleOp, name: str) -> list[func.FuncOp]:
    """The functions of a module; those that only it calls get names that no other module has."""
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    inner = {f.sym_name.data: f"{f.sym_name.data}.{name}" for f in functions if not rt.EntryAttr.marks(f)}
    for function in functions:
        if (new := inner.get(function.sym_name.data)) is not None:
            function.properties["sym_name"] = StringAttr(new)
        for op in ops_within(function):
            if isinstance(op, func.CallOp) and (callee := inner.get(op.callee.root_reference.data)) is not None:
                op.properties["callee"] = SymbolRefAttr(callee)
    return functions


def _formals(function: OpFunction) -> list[Attribute]:
    return list(function.function.function_type.inputs)


def _sizes(writer: FunctionWriter, argument: OpArgument) -> list[SSAValue]:
    return [writer.builder.bound(argument.slot + 1 + n, i64) for n in range(argument.type.rank)]


def _bound(writer: FunctionWriter, argument: OpArgument, type_: Attribute) -> Value:
    """An operand from its slots."""
    builder = writer.builder
    if not argument.type.rank:
        return builder.bound(argument.slot, element_type(type_))
    buffer = builder.bound(argument.slot, buffer_type(type_))
    return in_buffer(builder, type_, _sizes(writer, argument), buffer, data_only=True)


def _value(lowering: _Lowering, function: OpFunction) -> ModuleOp:
    writer, program = lowering.writer(function.name, ())
    builder = writer.builder
    arguments = [_bound(writer, a, t) for a, t in zip(function.arguments, _formals(function), strict=True)]
    result = lowering.call(writer, function, arguments)
    if isinstance(result, Container):
        result = materialize(builder, result)
        buffer = builder.insert(rt.AllocBoundOp(total(builder, result.dims), buffer_type(result.type))).res
        write(builder, result, buffer, initial=True)
        _set_slots(writer, function.first, [buffer, *result.dims])
    elif result is not None:
        assert isinstance(result, SSAValue)
        _set_slots(writer, function.first, [result])
    return lowering.finished(writer.finish(), program)


def _set_slots(writer: FunctionWriter, first: int, values: Sequence[SSAValue]) -> None:
    for slot, value in enumerate(values, first):
        writer.builder.insert(rt.SetBoundOp(slot, value))


def pullback_name(name: str) -> str:
    """The symbol of the pullback of a function."""
    return f"{name}.pullback"


def _pullback(lowering: _Lowering, function: OpFunction) -> ModuleOp:
    op = function.op
    if isinstance(op, stan.CallOp) and op.user is not None and lowering.reads_target(op.callee.data):
        raise NotSupportedError(f"'{op.callee.data}' reads the target: let the context enter it", op.location)
    writer, program = lowering.writer(pullback_name(function.name), (BUFFER_REAL, i32))
    builder, low = writer.builder, writer.low
    low.differentiated = True
    theta, _ = writer.block.args
    formals = _formals(function)
    sizes = {n: _sizes(writer, function.arguments[n]) for n in function.differentiable}
    offsets: dict[int, SSAValue] = {}
    count = builder.i64(0)
    for n in function.differentiable:
        offsets[n] = count
        count = builder.add(count, total(builder, sizes[n]))
    point = builder.alloc(builder.add(count, builder.i64(1)))
    builder.insert(ad.IndependentOp(point, count))
    builder.copy(point, theta, count, initial=True)
    arguments: list[Value] = []
    for n, (argument, type_) in enumerate(zip(function.arguments, formals, strict=True)):
        if n not in offsets:
            arguments.append(_bound(writer, argument, type_))
        elif argument.type.rank:
            arguments.append(in_buffer(builder, type_, sizes[n], builder.view(point, offsets[n])))
        else:
            arguments.append(builder.load(point, offsets[n]))
    result = lowering.call(writer, function, arguments)
    entry = writer.finish(
        [_weighted(writer, function, result), builder.f64(0.0)], **ad.TargetPositionAttr.at(result=1).as_attributes()
    )
    _as_target(entry, function)
    request = ad.GradientOp(pullback_name(function.name))
    return lowering.finished(entry, program, request)


def _weighted(writer: FunctionWriter, function: OpFunction, result: Value | None) -> SSAValue:
    """The sum of the result times the cotangent."""
    builder = writer.builder
    if function.result is None or function.result.is_int:
        return builder.f64(0.0)
    if not isinstance(result, Container):
        assert isinstance(result, SSAValue)
        return builder.mulf(builder.bound(function.first, f64), result)
    cotangent = builder.bound(function.first, BUFFER_REAL)

    def add(k: SSAValue, element: SSAValue, sums: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return (builder.addf(sums[0], builder.mulf(builder.load(cotangent, k), element)),)

    return for_each_element(builder, materialize(builder, result), add, [builder.f64(0.0)])[0]


def _as_target(entry: func.FuncOp, function: OpFunction) -> None:
    """What is differentiated: of `return sum, target` the sum and, for calls that add to it, the target, weighted.

    What else is added to the target on the way does not count: it is the result already.
    """
    thread_target(entry, False)
    block = entry.body.block
    end = block.last_op
    assert isinstance(end, func.ReturnOp)
    wanted, target = end.operands
    made: list[Operation] = []
    if function.adds_target:
        adjoint = rt.BoundOp(function.target_slot, f64)
        product = arith.MulfOp(adjoint.results[0], target)
        made += [adjoint, product, summed := arith.AddfOp(wanted, product.result)]
        wanted = summed.result
    placeholder = constant(0.0, f64)
    made += [placeholder, ad.TargetAddOp(wanted)]
    block.insert_ops_before(made, end)
    end.operands = [placeholder.result]
    ad.TargetPositionAttr.at(result=0).put(entry)
    inputs = entry.function_type.inputs.data
    entry.properties["function_type"] = FunctionType.from_lists(inputs, [f64])
