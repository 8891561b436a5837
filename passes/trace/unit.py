"""The unit `trace`: a function of the program, called once, with what it calls as far as a plan says recorded.

The unit is made of the program as it was written. Functions are cloned; those that are not traced stay what they are.
Its entry `evaluate()` finds the recorder in slot 0 of the bound table, and the arguments in the slots that follow.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FunctionType, ModuleOp, StringAttr, UnitAttr, i8, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import stan, trace
from ulam.passes.errors import NotSupportedError
from ulam.passes.lower import promote_variables, structure_exits
from ulam.passes.lower.lowering import Site
from ulam.passes.lower.outlined import Outlined
from ulam.passes.lower.stages import lowering_passes, set_slots, slots_of
from ulam.passes.lower.thread_target import target_as_value
from ulam.passes.lower.units import FunctionWriter, Program, take_apart
from ulam.passes.lower.values import Value, buffer_type, element_type, in_buffer, rank_of
from ulam.passes.profiles import StripProfiles
from ulam.passes.trace import lower_trace  # noqa: F401  (registers handlers)
from ulam.passes.trace.control_flow import TracedFunction, traced_function
from ulam.passes.trace.graph import ROOT, Graph
from ulam.passes.trace.instrument import instrument
from ulam.passes.trace.lower_trace import RECORDER_SLOT

MOST_CLONES = 64
"""Traced functions of one unit; a depth limit makes one clone for each depth."""

Enters = Callable[[stan.CallOp, str, int], bool]
"""Whether to record what a call does: the call, the name of the function in the source, the depth (2: called by the
traced function)."""


@dataclass
class Plan:
    """What to record. `most_depth`: None for all depths. `copied`: elements of containers that are copied.

    `propto`: whether `~` statements of a model drop constants; `jacobian`: whether Jacobian adjustments count.
    """

    enters: Enters
    most_depth: int | None = None
    copied: int = 64
    propto: bool = False
    jacobian: bool = True


@dataclass
class TraceUnit:
    """The lowered unit, the tables of its traced functions by symbol, and what `ir` shows of each."""

    module: ModuleOp
    sites: list[Site]
    n_slots: int
    graphs: dict[str, Graph]
    ops: dict[str, dict[int, Operation]]
    instrumented: list[stan.FuncOp] = field(default_factory=list[stan.FuncOp])


def find_function(module: ModuleOp, name: str) -> list[stan.FuncOp]:
    """The functions of the user that are called `name` in the source; all of them for an empty name."""
    return [
        op
        for program in module.body.block.ops
        if isinstance(program, stan.ProgramOp)
        for op in program.body.block.ops
        if isinstance(op, stan.FuncOp) and op.library is None and op.body.blocks and name in ("", op.stan_name.data)
    ]


def trace_unit(module: ModuleOp, function: stan.FuncOp, plan: Plan) -> TraceUnit:
    """Makes the unit. The module, in variable form, is used up; `ops` are those of copies that nothing changes."""
    clones = add_clones(module, function, plan)
    structure_exits.run_on(module)
    promote_variables.run_on(module)
    return clones.lower()


def add_clones(module: ModuleOp, function: stan.FuncOp, plan: Plan) -> Clones:
    """Adds the traced clones of a function and of what it calls, and a function that calls it, to a program."""
    StripProfiles().apply(Context(), module)
    clones = Clones(module, function, plan)
    clones.make()
    return clones


class Clones:
    """The traced functions of a program: `traced` by symbol."""

    def __init__(self, module: ModuleOp, function: stan.FuncOp, plan: Plan) -> None:
        program = function.parent_op()
        assert isinstance(program, stan.ProgramOp)
        self.module = module
        self.program = program
        self.function = function
        self.plan = plan
        self.functions = {op.sym_name.data: op for op in program.body.block.ops if isinstance(op, stan.FuncOp)}
        self.names = {symbol: op.stan_name.data for symbol, op in self.functions.items()}
        self.traced: dict[str, TracedFunction] = {}
        self.instrumented: list[stan.FuncOp] = []

    def make(self) -> None:
        """Traces what is reached from the function, and puts the clones into the program."""
        root = self._root()
        work = [(root, ROOT, 0)]
        while work:
            function, symbol, depth = work.pop()
            if symbol in self.traced:
                continue
            if len(self.traced) > MOST_CLONES:
                raise NotSupportedError(
                    f"more than {MOST_CLONES} traced functions: a smaller depth, or fewer functions"
                )
            reached: list[tuple[stan.FuncOp, str, int]] = []

            def decide(call: stan.CallOp, depth: int = depth, reached: list = reached) -> str:  # noqa: ANN001
                callee = self.functions[call.callee.data]
                if not self._enters(call, callee, depth + 1):
                    return ""
                child = self._symbol(callee, depth + 1)
                reached.append((callee, child, depth + 1))
                return child

            # of a copy: what readers are shown stays as it was written
            copy = function if function is root else function.clone()
            self.traced[symbol] = traced_function(copy, symbol, self.names, decide, jacobian=self.plan.jacobian)
            work += reversed(reached)
        number = 0
        for traced in self.traced.values():
            for block in traced.blocks:
                if not block.silent:
                    number += 1
                    block.made.record = number
        for traced in self.traced.values():
            clone = instrument(traced, self.plan.copied)
            self.instrumented.append(clone)
            if traced.function is root:
                self.program.body.block.erase_op(root, safe_erase=False)
            self.program.body.block.add_op(clone)

    def _enters(self, call: stan.CallOp, callee: stan.FuncOp, depth: int) -> bool:
        most = self.plan.most_depth
        return (most is None or depth < most) and self.plan.enters(call, callee.stan_name.data, depth)

    def _symbol(self, callee: stan.FuncOp, depth: int) -> str:
        level = "" if self.plan.most_depth is None else str(depth)
        return f"{callee.sym_name.data}.traced{level}"

    def _root(self) -> stan.FuncOp:
        """`f(x, ...)` as the only statement of a function with the same parameters."""
        function = self.function
        type_ = function.function_type
        block = Block(arg_types=type_.inputs.data)
        for argument, name in zip(block.args, function.argument_names, strict=True):
            argument.name_hint = name.data
        call = stan.CallOp.create(
            operands=block.args,
            result_types=type_.outputs.data,
            properties={
                "callee": function.sym_name,
                "autodiff": DenseArrayBase.from_list(i8, _autodiff(function)),
                "user": UnitAttr(),
            },
            location=function.location,
        )
        block.add_ops((call, stan.ReturnOp.create(operands=call.results, location=function.location)))
        root = stan.FuncOp.create(
            properties={
                "sym_name": StringAttr(ROOT),
                "stan_name": StringAttr(ROOT),
                "function_type": FunctionType.from_lists(type_.inputs.data, type_.outputs.data),
                "argument_names": ArrayAttr(function.argument_names.data),
                "data_only": function.data_only,
            },
            regions=[Region(block)],
            location=function.location,
        )
        self.program.body.block.add_op(root)
        return root

    # ------------------------------------------------------------ lowering

    def lower(self) -> TraceUnit:
        """The functions of the unit, ready for emission."""
        sites: list[Site] = []
        program = take_apart(self.program)
        program.outlined = Outlined(program.functions, whole_terms=True)
        program.profiled = False
        writer = FunctionWriter(program, sites, "evaluate", ())
        writer.low.precise = True
        writer.low.propto = self.plan.propto
        if self.plan.jacobian:
            writer.low.jacobian = writer.builder.i1(True)
        slots = self._call(writer, program)
        evaluate = writer.finish()
        module = ModuleOp([evaluate, *program.outlined.written])
        target_as_value(module)
        set_slots(module, slots)
        for stage in lowering_passes("trace", 0):
            stage.apply(Context(), module)
        graphs = {symbol: traced.graph for symbol, traced in self.traced.items()}
        ops = {symbol: traced.ops for symbol, traced in self.traced.items()}
        return TraceUnit(module, sites, slots_of(module), graphs, ops, self.instrumented)

    def _call(self, writer: FunctionWriter, program: Program) -> int:
        """Calls the traced function with the arguments of the bound table; how many slots that has."""
        from ulam.passes.lower.calls import inline

        root = program.functions[ROOT]
        slot = RECORDER_SLOT + 1
        arguments: list[Value] = []
        for type_ in root.function_type.inputs.data:
            arguments.append(_argument(writer, type_, slot, root))
            slot += 1 + rank_of(type_)
        bits = [bool(bit) for bit in _autodiff(self.function)]
        inline(writer.low, root, arguments, root.location, self.plan.propto, bits)
        return slot


def _autodiff(function: stan.FuncOp) -> list[int]:
    """Which arguments are parameters of a model: constants are what does not depend on them."""
    if function.model is None:
        return [0] * len(function.data_only)
    return [int(not data) for data in function.data_only.get_values()]


def _argument(writer: FunctionWriter, type_: Attribute, slot: int, root: stan.FuncOp) -> Value:
    builder = writer.builder
    base = type_.element if isinstance(type_, stan.ArrayType) else type_
    if not isinstance(base, stan.IntType | stan.RealType | stan.VectorType | stan.RowVectorType | stan.MatrixType):
        raise NotSupportedError(f"functions with an argument of type {type_} cannot be traced yet", root.location)
    if not rank_of(type_):
        return builder.bound(slot, element_type(type_))
    sizes: list[SSAValue] = [builder.bound(slot + 1 + n, i64) for n in range(rank_of(type_))]
    return in_buffer(builder, type_, sizes, builder.bound(slot, buffer_type(type_)), data_only=True)


def instrumented_text(unit: TraceUnit) -> str:
    """The traced clones with their `trace` ops, in the form that they were lowered from, and their tables."""
    parts = [str(function) for function in unit.instrumented]
    for symbol, graph in unit.graphs.items():
        properties: dict[str, Attribute] = {
            "function": StringAttr(symbol),
            "table": StringAttr(json.dumps(graph.to_json(), separators=(",", ":"))),
        }
        parts.append(str(trace.SitesOp.create(properties=properties)))
    return "\n".join(parts) + "\n"
