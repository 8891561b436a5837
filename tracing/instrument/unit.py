"""The unit `trace`: a function of the program, called once, with what it calls as far as a plan says recorded.

The unit is made of the program as it was written. Functions are cloned; those that are not traced stay what they are.
Its entry `evaluate()` finds the recorder in slot 0 of the bound table, and the arguments in the slots that follow.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ModuleOp,
    StringAttr,
    UnitAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import ad, stan, trace
from ulam.passes.errors import NotSupportedError
from ulam.passes.loops.effects import draws
from ulam.passes.loops.thread_target import target_as_value
from ulam.passes.loops.unit_modules import set_slots, slots_of
from ulam.passes.lowering_pipeline import lowering_passes
from ulam.passes.running import run_passes
from ulam.passes.strip_profiles import StripProfiles
from ulam.passes.to_loops.check_sites import CheckSite
from ulam.passes.to_loops.outlined import Outlined
from ulam.passes.to_loops.programs import ProgramParts, take_apart
from ulam.passes.to_loops.units import FunctionWriter
from ulam.passes.to_loops.values import Value, buffer_type, element_type, in_buffer, rank_of
from ulam.passes.units import TRACE
from ulam.passes.value_form import promote_variables, structure_exits
from ulam.passes.variable_form import write_out_literals
from ulam.tracing.instrument import lower_trace  # noqa: F401  (registers handlers)
from ulam.tracing.instrument.choices import MOST_CLONES, STATIC_DEPTH, Choice, Plan, Question
from ulam.tracing.instrument.control_flow import traced_function
from ulam.tracing.instrument.flow import TracedFunction
from ulam.tracing.instrument.graph import ROOT, Graph, ValueType, plain
from ulam.tracing.instrument.higher_order import first_order_function, is_higher_order, traced_higher_order
from ulam.tracing.instrument.instrument import hook_values, instrument
from ulam.tracing.instrument.lower_trace import RECORDER_SLOT
from ulam.tracing.instrument.names import place_of, value_type


@dataclass
class TraceUnit:
    """The lowered unit, the tables of its traced functions by symbol, and what `ir` shows of each.

    `states`: of the plan, by symbol; `hooked`: number of a hook → types of what it is called with, and whether the last
    of them is the result.
    """

    module: ModuleOp
    sites: list[CheckSite]
    n_slots: int
    graphs: dict[str, Graph]
    ops: dict[str, dict[int, Operation]]
    instrumented: list[stan.FuncOp] = field(default_factory=list[stan.FuncOp])
    states: dict[str, Any] = field(default_factory=dict[str, Any])
    hooked: dict[int, tuple[list[ValueType], bool]] = field(default_factory=dict[int, tuple[list[ValueType], bool]])

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers."""
        return draws(self.module)


def find_function(module: ModuleOp, name: str) -> list[stan.FuncOp]:
    """The functions of the user that are called `name` in the source; all of them for an empty name."""
    return [
        op
        for program in module.body.block.ops
        if isinstance(program, stan.ProgramOp)
        for op in program.body.block.ops
        if isinstance(op, stan.FuncOp) and op.library is None and op.body.blocks and name in ("", op.stan_name.data)
    ]


def trace_unit(module: ModuleOp, function: stan.FuncOp, plan: Plan, entry: str = ROOT) -> TraceUnit:
    """Makes the unit. The module, in variable form, is used up; `ops` are those of copies that nothing changes.

    `entry`: the traced function that `evaluate` calls, instead of that around the tracked one: its first argument is
    then the target so far. Numbers of blocks do not change.
    """
    clones = add_clones(module, function, plan)
    structure_exits.run_on(module)
    promote_variables.run_on(module)
    return clones.lower(entry)


def add_clones(module: ModuleOp, function: stan.FuncOp, plan: Plan) -> Clones:
    """Adds the traced clones of a function and of what it calls, and a function that calls it, to a program."""
    clones = Clones(module, function, plan)
    clones.make()
    StripProfiles().apply(Context(), module)
    return clones


@dataclass(frozen=True)
class _Reached:
    """A function to be traced: its clone's symbol, its depth, the state of the plan, and the call, for questions."""

    function: stan.FuncOp
    symbol: str
    depth: int
    state: Any
    question: Question | None


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
        self._first_order: dict[tuple[Any, ...], stan.FuncOp] = {}
        self.names = {symbol: op.stan_name.data for symbol, op in self.functions.items()}
        self.traced: dict[str, TracedFunction] = {}
        self.instrumented: list[stan.FuncOp] = []
        self.states: dict[str, Any] = {}
        self.stub = 0
        self._known_states: list[Any] = [plan.state]
        self._refused: dict[tuple[str, Any], Choice] = {}
        most = plan.most_depth
        self.counts_at_run_time = most is not None and (
            most > STATIC_DEPTH or most * sum(op.library is None for op in self.functions.values()) > MOST_CLONES
        )

    def make(self) -> None:
        """Traces what is reached from the function, and puts the clones into the program."""
        write_out_literals(self.program)
        root = self._root()
        while not self._trace_all(root):
            pass
        number = 0
        for traced in self.traced.values():
            for block in traced.blocks:
                if not block.silent:
                    number += 1
                    block.made.record = number
        callees: dict[str, str] = {}
        if self.counts_at_run_time:
            self.stub = number + 1
            callees = {symbol: self._add_counting(symbol) for symbol in self.traced if symbol != ROOT}
        for symbol, traced in self.traced.items():
            clones = instrument(traced, self.plan.form(self.states[symbol]).copied, callees)
            self.instrumented += clones
            if traced.function is root:
                self.program.body.block.erase_op(root, safe_erase=False)
            self.program.body.block.add_ops(clones)

    def _trace_all(self, root: stan.FuncOp) -> bool:
        """Makes the tables. Not, if a function cannot be traced and the plan has another choice: then once more."""
        self.traced.clear()
        self.states.clear()
        work: list[_Reached] = [_Reached(root, ROOT, 0, self.plan.state, None)]
        while work:
            current = work.pop()
            if current.symbol in self.traced:
                continue
            if len(self.traced) > MOST_CLONES:
                raise NotSupportedError(
                    f"more than {MOST_CLONES} traced functions: a smaller depth, or fewer functions"
                )
            reached: list[_Reached] = []
            form = replace(
                self.plan.form(current.state), decide=partial(self._decide, current, reached),
                jacobian=self.plan.jacobian,
                propto=self.plan.propto,
            )  # fmt: skip
            # of a copy: what readers are shown stays as it was written
            function = current.function
            copy = function if function is root else function.clone()
            try:
                if function in self._first_order.values():
                    self.traced[current.symbol] = traced_higher_order(copy, current.symbol, self.functions, form)
                else:
                    self.traced[current.symbol] = traced_function(copy, current.symbol, self.names, form)
            except NotSupportedError as error:
                if current.question is None:
                    raise
                refused = self.plan.failed(current.question, error)
                self._refused[function.sym_name.data, current.question.state] = replace(refused, child="")
                return False
            self.states[current.symbol] = current.state
            work += reversed(reached)
        return True

    def _decide(self, caller: _Reached, reached: list[_Reached], kind: str, name: str, op: Operation) -> Choice:
        """What becomes of an op of a function."""
        callee = None
        if isinstance(op, stan.CallOp) and op.user is not None:
            callee = self.functions[op.callee.data]
        depth = caller.depth + 1
        question = Question(
            kind, name, callee is not None, place_of(op.location), depth, caller.state, is_higher_order(op)
        )
        choice = self.plan.choose(question)
        if choice.how != "enter":
            return choice
        if callee is None:
            assert isinstance(op, stan.CallOp)
            callee = self._made_first_order(op)
        most = self.plan.most_depth
        if most is not None and not self.counts_at_run_time and depth >= most:
            return replace(choice, how="primitive")
        if (refused := self._refused.get((callee.sym_name.data, caller.state))) is not None:
            return refused
        child = self._symbol(callee, depth, choice.state)
        reached.append(_Reached(callee, child, depth, choice.state, question))
        return replace(choice, child=child)

    def _made_first_order(self, op: stan.CallOp) -> stan.FuncOp:
        """What stands for a call of a higher-order function: one for all that differ in their arguments only."""
        assert op.callback is not None
        key = (op.callee, op.definition, op.callback, op.captured, op.autodiff, tuple(o.type for o in op.operands))
        if (found := self._first_order.get(key)) is None:
            symbol = f"{op.callee.data}.{op.callback.data}.{len(self._first_order)}"  # names in programs have no points
            found = self._first_order[key] = first_order_function(op, symbol, self.functions)
            self.program.body.block.add_op(found)
        return found

    def _symbol(self, callee: stan.FuncOp, depth: int, state: Any) -> str:
        level = "" if self.plan.most_depth is None or self.counts_at_run_time else str(depth)
        if not any(state is known for known in self._known_states):
            self._known_states.append(state)
        number = next(n for n, known in enumerate(self._known_states) if known is state)
        return f"{callee.sym_name.data}.traced{level}" + (f".{number}" if number else "")

    def _add_counting(self, symbol: str) -> str:
        """A function that calls the traced clone, or, where too many calls are entered, the function itself."""
        traced, most = self.traced[symbol], self.plan.most_depth
        assert most is not None
        function = traced.function
        clone = function.clone()
        clone.properties["sym_name"] = StringAttr(f"{symbol}.counting")
        outputs = function.function_type.outputs.data
        block = Block(arg_types=function.function_type.inputs.data)
        clone.detach_region(clone.body)
        clone.add_region(Region(block))
        bits = _autodiff(function) if function.model is not None else [1] * len(block.args)
        entered, plain = (
            self._call_of(function, callee, block.args, bits) for callee in (StringAttr(symbol), function.sym_name)
        )
        for call in (entered, plain):  # as it was called itself
            call.properties["unnormalized"] = UnitAttr()
        location = function.location
        stub = trace.BlockOp(self.stub, 0, location=location)
        descend = trace.DescendOp(most - 1, location=location)
        ascend = trace.AscendOp(location=location)
        then = Region(Block([entered, ascend, stan.YieldOp(*entered.results, location=location)]))
        otherwise = Region(Block([stub, plain, stan.YieldOp(*plain.results, location=location)]))
        if outputs:
            branch = stan.SelectOp(descend.res, then, otherwise, outputs[0], location=location)
        else:
            branch = stan.IfOp(descend.res, then, otherwise, location=location)
        block.add_ops((descend, branch, stan.ReturnOp(*branch.results, location=location)))
        self.program.body.block.add_op(clone)
        return clone.sym_name.data

    @staticmethod
    def _call_of(
        function: stan.FuncOp, callee: StringAttr, arguments: Sequence[SSAValue], autodiff: Sequence[int]
    ) -> stan.CallOp:
        outputs = function.function_type.outputs.data
        result = outputs[0] if outputs else None
        return stan.CallOp(callee, arguments, result, autodiff, user=True, location=function.location)

    def _root(self) -> stan.FuncOp:
        """`f(x, ...)` as the only statement of a function with the same parameters."""
        function = self.function
        type_ = function.function_type
        block = Block(arg_types=type_.inputs.data)
        for argument, name in zip(block.args, function.argument_names, strict=True):
            argument.name_hint = name.data
        call = self._call_of(function, function.sym_name, block.args, _autodiff(function))
        block.add_ops((call, stan.ReturnOp(call.res, location=function.location)))
        root = stan.FuncOp(
            ROOT,
            function.argument_names.data,
            type_.inputs.data,
            type_.outputs.data,
            Region(block),
            data_only=function.data_only,
            location=function.location,
        )
        self.program.body.block.add_op(root)
        return root

    # ------------------------------------------------------------ lowering

    def lower(self, entry: str) -> TraceUnit:
        """The functions of the unit, ready for emission."""
        sites: list[CheckSite] = []
        program = take_apart(self.program)
        program.outlined = Outlined(program.functions, whole_terms=True)
        program.profiled = False
        writer = FunctionWriter(program, sites, "evaluate", ())
        writer.low.precise = True
        writer.low.propto = self.plan.propto
        if self.plan.jacobian:
            writer.low.jacobian = writer.builder.i1(True)
        slots = self._call(writer, program, entry)
        evaluate = writer.finish()
        module = ModuleOp([evaluate, *program.outlined.written])
        target_as_value(module)
        set_slots(module, slots)
        run_passes(Context(), module, lowering_passes(TRACE, 0))
        graphs = {symbol: traced.graph for symbol, traced in self.traced.items()}
        graphs[ROOT].stub = self.stub
        ops = {symbol: traced.ops for symbol, traced in self.traced.items()}
        hooked = {
            number: ([type_ for _, type_ in hook_values(op, value)], bool(value and value_type(value.type).slots))
            for traced in self.traced.values()
            for _, op, value, number in traced.hooks
        }
        return TraceUnit(
            module, sites, slots_of(module), graphs, ops, self.instrumented, self.states, hooked
        )  # fmt: skip

    def _call(self, writer: FunctionWriter, program: ProgramParts, entry: str) -> int:
        """Calls the traced function with the arguments of the bound table; how many slots that has."""
        from ulam.passes.to_loops.calls import inline

        root = program.functions[entry]
        slot = RECORDER_SLOT + 1
        bits = [bool(bit) for bit in _autodiff(self.function)]
        if entry != ROOT:
            writer.builder.insert(ad.TargetAddOp(writer.builder.bound(slot, f64)))
            slot += 1
            bits = [False] * len(root.function_type.inputs)
        arguments: list[Value] = []
        for type_ in root.function_type.inputs.data:
            arguments.append(_argument(writer, type_, slot, root))
            slot += 1 + rank_of(type_)
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
        parts.append(str(trace.SitesOp(symbol, json.dumps(plain(graph), separators=(",", ":")))))
    return "\n".join(parts) + "\n"
