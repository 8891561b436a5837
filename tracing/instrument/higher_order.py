"""Higher-order functions of the library, entered: solvers, `reduce_sum`, `map_rect`, which call one of the program.

What they do between these calls is not recorded. Their table says what a reader can know: three blocks,

    §1  it begins                 goes on to §2 or §3
    §2  it calls the function     goes on to §2 or §3: the arguments that it has made are values `opaque` of all that it
                                  was given; then the call
    §3  it is done                returns a value `opaque`

Of `reduce_sum` all is known: it makes one call, which §3 returns the value of, or none, and returns 0.

No condition decides on these jumps. The records of §1 and §3 are written around the call of the library's function,
that of §2 in a function that it calls instead. Where an implicit solver takes the function's Jacobian, there is one
call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block as IrBlock
from xdsl.ir import Operation, Region, SSAValue

from ulam.dialects import stan
from ulam.frontend.functions.higher_order import REDUCE_SUM
from ulam.tracing.instrument.choices import Form
from ulam.tracing.instrument.flow import FlowBlock, TracedFunction, assign_slots
from ulam.tracing.instrument.graph import (
    FUNCTION,
    OPAQUE,
    SKIPPED,
    Argument,
    Block,
    Edge,
    Graph,
    Item,
    Operand,
    ValueType,
)
from ulam.tracing.instrument.names import place_of, value_type


def is_higher_order(op: object) -> bool:
    """Whether an op calls a function of the library that is given one of the program."""
    return isinstance(op, stan.CallOp) and op.callback is not None


def is_partial_sum(op: object) -> bool:
    """Whether it calls `reduce_sum`."""
    return isinstance(op, stan.CallOp) and op.callee.data in REDUCE_SUM


def called_symbol(symbol: str) -> str:
    """What a traced higher-order function calls, by its symbol."""
    return f"{symbol}.called"


def first_order_function(op: stan.CallOp, symbol: str, functions: Mapping[str, stan.FuncOp]) -> stan.FuncOp:
    """A function `symbol` of the values that a higher-order function is given, which does nothing but call it."""
    assert op.callback is not None and op.captured is not None
    callback = functions[op.callback.data]
    captured = [bool(bit) for bit in op.captured.get_values()]
    own = iter(functions[op.definition.data].argument_names.data if op.definition is not None else ())
    added = iter(callback.argument_names.data[len(callback.argument_names) - sum(captured) :])
    names = [next(added if bit else own, StringAttr("")) for bit in captured]
    data_only = [int(not bit) for bit in op.autodiff.get_values()]
    types = [operand.type for operand in op.operands]
    block = IrBlock(arg_types=types)
    call = op.clone(dict(zip(op.operands, block.args, strict=True)))
    call.operands = block.args
    # By the name of what is called it is a density, or is not, and drops constants.
    return _function(op, symbol, callback.stan_name.data, names, types, data_only, block, call)


def called_function(callback: stan.FuncOp, symbol: str, unnormalized: bool) -> stan.FuncOp:
    """A function with the arguments of `callback`, which does nothing but call it."""
    types = list(callback.function_type.inputs.data)
    block = IrBlock(arg_types=types)
    outputs = callback.function_type.outputs.data
    call = stan.CallOp(
        callback.sym_name,
        block.args,
        outputs[0] if outputs else None,
        [1] * len(types),
        user=True,
        unnormalized=unnormalized,
        location=callback.location,
    )
    names, data_only = list(callback.argument_names.data), [int(bit) for bit in callback.data_only.get_values()]
    made = _function(call, symbol, callback.stan_name.data, names, types, data_only, block, call)
    stan.UntracedAttr(callback.sym_name).put(made)
    return made


def _function(
    like: stan.CallOp, symbol: str, name: str, names: list[StringAttr], types: list, data_only: list[int],
    block: IrBlock, call: stan.CallOp,
) -> stan.FuncOp:  # fmt: skip
    block.add_ops((call, stan.ReturnOp(call.res, location=like.location)))
    return stan.FuncOp(
        symbol,
        names,
        types,
        call.result_types,
        Region(block),
        stan_name=name,
        data_only=data_only,
        location=like.location,
    )


def traced_higher_order(
    function: stan.FuncOp, symbol: str, functions: Mapping[str, stan.FuncOp], form: Form
) -> TracedFunction:
    """The table of a higher-order function, to be called `symbol`; `function` is of `first_order_function`."""
    return _HigherOrder(function, symbol, functions, form).run()


class _HigherOrder:
    """Makes such a table: see above."""

    def __init__(
        self, function: stan.FuncOp, symbol: str, functions: Mapping[str, stan.FuncOp], form: Form
    ) -> None:  # fmt: skip
        call = function.body.block.first_op
        assert isinstance(call, stan.CallOp) and call.callback is not None and call.captured is not None
        assert call.res is not None
        self.function, self.call, self.form = function, call, form
        self.captured = [bool(bit) for bit in call.captured.get_values()]
        self.callback = functions[call.callback.data]
        self.called = called_function(self.callback, called_symbol(symbol), call.unnormalized is not None)
        types = [FUNCTION, *(value_type(operand.type) for operand in call.operands)]
        names = ["f", *(name.data for name in function.argument_names)]
        data_only = [True, *(bool(bit) for bit in function.data_only.get_values())]
        self.parameters = [
            Argument(number, *described)
            for number, described in enumerate(zip(types, names, data_only, strict=True), 2)
        ]
        self.graph = Graph(
            symbol, call.callee.data, function.sym_name.data, self.parameters, value_type(call.res.type),
            place=place_of(call.location), opaque=not is_partial_sum(call),
        )  # fmt: skip
        self.traced = TracedFunction(function, self.graph, [], {}, [], called=self.called)

    def run(self) -> TracedFunction:
        begin = FlowBlock(Block(1), ("start", self.function.body.block))
        calls = FlowBlock(Block(2), ("start", self.called.body.block))
        end = FlowBlock(Block(3), ("after", self.call))
        place = place_of(self.call.location)
        for block in (begin, calls):
            block.made.edges = [Edge(1, 2, place=place), Edge(2, 3, place=place)]
        self.traced.blocks = [begin, calls, end]
        self.graph.blocks = [block.made for block in self.traced.blocks]
        called = self._calls(calls)
        result = self._given(end, "result", self.call.results[0]) if self.graph.opaque else self._passed_on(called)
        end.made.edges = [Edge(1, 0, value=Operand(result.index, None, result.type), place=place)]
        assign_slots(self.graph.symbol, self.traced.blocks, [end], self.form)
        if self.form.timing:
            self.traced.returns.append((end, _last_op(self.function)))
        return self.traced

    def _next_index(self) -> int:
        return 2 + len(self.parameters) + len(self.traced.item_ops)

    def _item(self, block: FlowBlock, item: Item, op: Operation | None, value: SSAValue | None) -> Item:
        item.index = self._next_index()
        item.place = self.graph.place
        self.traced.item_ops.append((block, len(block.made.items), item, op, value))
        block.made.items.append(item)
        if op is not None:
            self.traced.ops[item.index] = op
        return item

    def _given(self, block: FlowBlock, what: str, value: SSAValue, of: Sequence[Argument] = ()) -> Item:
        """A value that the library has made `of` some of what it was given, or of all."""
        used = [Operand(p.index, None, p.type) for p in of or self.parameters[1:]]
        item = Item(0, "special", OPAQUE, [Operand(0, what, ValueType("string")), *used], value_type(value.type))
        return self._item(block, item, None, value)

    def _passed_on(self, called: Item | None) -> Argument:
        """The argument of the last block: the value of the call, or 0 if there was none."""
        begin, calls, end = self.graph.blocks
        type_ = self.graph.result
        argument = Argument(self._next_index(), type_, "")
        end.arguments.append(argument)
        value = Operand(0, None, SKIPPED) if called is None else Operand(called.index, None, type_)
        begin.edges[1].arguments, calls.edges = [Operand(0, 0.0, type_)], [calls.edges[1]]
        calls.edges[0] = replace(calls.edges[0], number=1, arguments=[value])
        return argument

    def _calls(self, block: FlowBlock) -> Item | None:
        """What the block of a call has; the call, unless it is left out."""
        call = self.called.body.block.first_op
        assert isinstance(call, stan.CallOp) and call.res is not None
        own = len(call.operands) - sum(self.captured)
        names, values = self.callback.argument_names.data[:own], call.operands[:own]
        if self.graph.opaque:
            given = [self._given(block, name.data, value) for name, value in zip(names, values, strict=True)]
        else:
            one = Operand(0, 1, ValueType("int"))
            given = [self.parameters[1], one, self._given(block, names[2].data, values[2], self.parameters[1:2])]
        added = [p for p, bit in zip(self.parameters[1:], self.captured, strict=True) if bit]
        name = self.callback.stan_name.data
        choice = self.form.decide("call", name, call)
        if choice.how == "skip":
            return None
        operands = [v if isinstance(v, Operand) else Operand(v.index, None, v.type) for v in (*given, *added)]
        item = Item(0, "call", name, operands, value_type(call.res.type), throws=True)
        item.unnormalized = self.form.propto and call.unnormalized is not None
        item.child, item.metadata, item.symbol = choice.child, dict(choice.metadata), call.callee.data
        self._item(block, item, call, call.res)
        self.traced.guards.append((block, len(block.made.items), _last_op(self.called)))
        self.traced.hooks += [(block, call, call.res, number) for number in choice.hooks]
        return item


def _last_op(function: stan.FuncOp) -> Operation:
    found = function.body.block.last_op
    assert found is not None
    return found
