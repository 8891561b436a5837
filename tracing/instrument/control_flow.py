"""From a function in variable form to its table: basic blocks, numbered values, jumps (see `graph`).

The function is only read. `traced_function` also tells where in it each block begins and which op each item is, for
`instrument`, which puts the `trace` ops there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, LocationAttr, StringAttr
from xdsl.ir import Block as IrBlock
from xdsl.ir import Operation, SSAValue

from ulam.dialects import stan, trace
from ulam.dialects.stan import Effect, effects_of
from ulam.passes.errors import NotSupportedError
from ulam.tracing.instrument.choices import Choice, Form
from ulam.tracing.instrument.flow import (
    Definition,
    Event,
    FlowBlock,
    FlowEdge,
    Hooked,
    TracedFunction,
    assign_slots,
    live_before,
    live_variables,
    place_arguments,
)
from ulam.tracing.instrument.graph import (
    FUNCTION,
    SKIPPED,
    VOID,
    Argument,
    Block,
    Edge,
    Graph,
    Item,
    Operand,
    ValueType,
)
from ulam.tracing.instrument.names import name_of, part_of_record, place_of, real_positions, value_type

UNASSIGNED = {"int": -(2**31), "bool": -(2**31), "real": float("nan")}


def traced_function(function: stan.FuncOp, symbol: str, names: Mapping[str, str], form: Form) -> TracedFunction:
    """The table of a function, to be called `symbol`. `names`: of functions in the source, by symbol."""
    return _Tracer(function, symbol, names, form).run()


def tilde_of(op: stan.CallOp) -> stan.TargetAddOp | None:
    """The addition to the target, if the call is that of a `~` statement."""
    use = None if op.res is None else op.res.get_user_of_unique_use()
    return use if isinstance(use, stan.TargetAddOp) and use.tilde is not None and use.parent is op.parent else None


@dataclass
class _Loop:
    """What `break` and `continue` mean; `step`: what a counted loop does before it jumps back."""

    exit: FlowBlock
    header: FlowBlock
    counter: Argument | None = None
    location: LocationAttr | None = None


class _Tracer:
    def __init__(self, function: stan.FuncOp, symbol: str, names: Mapping[str, str], form: Form) -> None:
        self.function = function
        self.names = names
        self.form = form
        outputs = function.function_type.outputs.data
        name = function.stan_name.data
        self.graph = Graph(
            symbol, name, function.sym_name.data, [], value_type(outputs[0]) if outputs else VOID,
            place=place_of(function.location),
        )  # fmt: skip
        self.blocks: list[FlowBlock] = []
        self.loops: list[_Loop] = []
        self.definitions: dict[SSAValue, Definition] = {}
        self.variables: dict[SSAValue, tuple[str, ValueType]] = {}
        self.operands: dict[int, list[SSAValue | Definition]] = {}  # id of an item → what it uses
        self.items: list[tuple[FlowBlock, Item, Operation | None, SSAValue | None]] = []
        self.extra_guards: list[tuple[FlowBlock, int, Operation]] = []
        self.additions: list[tuple[FlowBlock, Item, Operation]] = []
        self.left_out: set[Operation] = set()
        self.hooks: list[Hooked] = []
        self.returns: list[tuple[FlowBlock, Operation]] = []

    def run(self) -> TracedFunction:
        body = self.function.body.block
        data_only = self.function.data_only.get_values()
        for n, (formal, name) in enumerate(zip(body.args, self.function.argument_names, strict=True), 2):
            parameter = Argument(n, value_type(formal.type), name.data, bool(data_only[n - 2]))
            self.graph.parameters.append(parameter)
            self.definitions[formal] = parameter
        entry = self.new_block(("start", body))
        self.lay_out(entry)
        self.walk(body, entry)
        for block in self.blocks:
            for successor in block.successors:
                successor.before.append(block)
        self._drop_unread_declarations()
        place_arguments(self.blocks, self.variables)
        ops = self._number()
        self._rename()
        self._resolve()
        assign_slots(self.graph.symbol, self.blocks, [block for block, _ in self.returns], self.form)
        self.graph.blocks = [block.made for block in self.blocks]
        items: list[tuple[FlowBlock, int, Item, Operation | None, SSAValue | None]] = [
            (block, block.made.items.index(item), item, op, value)
            for block, item, op, value in self.items
            if op is not None and item in block.made.items
        ]
        guards = [
            (block, sum(event.item is not None for event in block.events[:n]), op) for block, n, op in self.extra_guards
        ]
        returns = self.returns if self.form.timing else []
        return TracedFunction(
            self.function, self.graph, self.blocks, ops, items, guards, self.additions, self.hooks, returns
        )  # fmt: skip

    # ------------------------------------------------------------ blocks and items

    def new_block(self, anchor: tuple[str, object], *, silent: bool = False) -> FlowBlock:
        return FlowBlock(Block(0), anchor, silent)

    def lay_out(self, block: FlowBlock) -> FlowBlock:
        self.blocks.append(block)
        block.made.number = len(self.blocks)
        return block

    def item(
        self,
        block: FlowBlock,
        kind: str,
        name: str,
        operands: list[SSAValue | Definition],
        type_: ValueType,
        op: Operation | None,
        value: SSAValue | None = None,
        *,
        derived: str = "",
        location: LocationAttr | None = None,
        choice: Choice | None = None,
    ) -> Item:
        """A further op of `block`."""
        place = place_of(op.location if op is not None else location)
        made = Item(0, kind, name, [], type_, place, derived=derived)
        if op is not None:
            effects = effects_of(op)
            made.throws = bool(effects & (Effect.THROWS | Effect.DRAWS))
            made.draws = bool(effects & Effect.DRAWS) and not op.properties.get("user")
            made.unnormalized = self.form.propto and isinstance(op, stan.CallOp) and op.unnormalized is not None
            is_kept = "draws" in self.form.recorded
            made.stream = 0 if is_kept and effects & Effect.DRAWS else None  # a slot: see `slots`
        if choice is not None:
            made.child, made.metadata = choice.child, dict(choice.metadata)
            self.hooks += [(block, op, value, number) for number in choice.hooks if op is not None]
        self.operands[id(made)] = operands
        block.events.append(Event("item", op, item=made))
        self.items.append((block, made, op, value))
        return made

    # ------------------------------------------------------------ the walk

    def walk(self, ir_block: IrBlock, current: FlowBlock | None) -> FlowBlock | None:
        """Adds the ops of `ir_block`; the block where control is afterwards, None if it never gets there."""
        for op in ir_block.ops:
            if current is None:
                return None
            current = self.op(op, current)
        return current

    def op(self, op: Operation, current: FlowBlock) -> FlowBlock | None:
        match op:
            case stan.ConstantOp():
                self.literal(op, current)
            case stan.PromoteOp() | stan.YieldOp() | stan.ConditionOp():
                pass
            case stan.ReadOp():
                current.events.append(Event("read", op, op.var, op.res))
            case stan.DeclareOp():
                self.declare(op, current)
            case stan.AssignOp():
                self.assign(op, current)
            case stan.ReturnOp():
                current.edges.append(FlowEdge(None, value=op.value, place=place_of(op.location)))
                self.returns.append((current, op))
                return None
            case stan.BreakOp():
                current.jump(self.loops[-1].exit).place = place_of(op.location)
                return None
            case stan.ContinueOp():
                self.next_iteration(current, self.loops[-1])
                return None
            case stan.IfOp():
                return self.branch(op, current)
            case stan.SelectOp():
                return self.select(op, current)
            case stan.AndOp() | stan.OrOp():
                return self.lazy(op, current)
            case stan.WhileOp():
                return self.while_(op, current)
            case stan.ForOp():
                return self.for_(op, current)
            case stan.ForEachOp():
                return self.for_each(op, current)
            case stan.ProfileOp():
                name = Operand(0, op.profile_name.data, ValueType("string"))
                choice = self.choice("special", "profile", op)
                if choice.how != "skip":
                    item = self.item(current, "special", "profile", [name], VOID, op, derived="void", choice=choice)
                    item.throws, item.draws, item.stream = False, False, None  # that is what is in it
                return self.walk(op.body.block, current)
            case stan.ScopeOp():
                return self.walk(op.body.block, current)
            case _ if op.regions:
                raise NotSupportedError(f"'{op.name}' cannot be traced yet", op.location)
            case _:
                self.plain(op, current)
        return current

    def literal(self, op: stan.ConstantOp, current: FlowBlock) -> None:
        """An operand of what uses it, or a node of its own."""
        value = op.value
        assert isinstance(value, IntegerAttr | FloatAttr | StringAttr)
        if isinstance(value, StringAttr):
            self.definitions[op.res] = Operand(0, value.data, ValueType("string"))
            return
        type_ = ValueType(value_type(op.res.type).base)
        operand = self.definitions[op.res] = Operand(0, value.value.data, type_)
        choice = self.choice("constant", "constant", op) if self.form.constants else Choice("skip")
        if choice.how != "skip":
            item = self.item(current, "constant", "constant", [operand], type_, op, derived="operand", choice=choice)
            self.definitions[op.res] = item

    def plain(self, op: Operation, current: FlowBlock) -> None:
        """An op without regions."""
        result = op.results[0] if op.results else None
        operands: list[SSAValue | Definition] = list(op.operands)
        if isinstance(op, stan.TargetAddOp | stan.JacobianAddOp | trace.JacobianOp):
            return self.addition(op, current)
        if isinstance(op, stan.CallOp) and (addition := tilde_of(op)) is not None:
            return self.tilde(op, addition, current)
        kind, name, truth = name_of(op, self.names)
        choice = self.choice(kind, name, op, part_of_record(op))
        if choice.how == "skip":
            return self.leave_out(op, current)
        if isinstance(op, stan.CallOp) and op.user is None:
            operands = self._literals(op)
        if isinstance(op, stan.CallOp) and op.callback is not None:
            functor = self.names.get(op.callback.data, op.callback.data)
            operands.insert(0, Operand(0, functor, FUNCTION))
        if isinstance(op, stan.FieldOp):
            operands.append(Operand(0, op.field.value.data, ValueType("int")))
        type_ = VOID if result is None else value_type(result.type, truth=truth)
        item = self.item(
            current, kind, name, operands, type_, op, result, derived="void" if type_ == VOID else "", choice=choice
        )  # fmt: skip
        if isinstance(op, stan.CallOp):
            item.symbol = op.callee.data
        if isinstance(op, stan.IndexOp):
            item.symbol = ",".join(kind.data for kind in op.kinds)
        if isinstance(op, trace.ConstrainOp):
            item.text = op.var_name.data
        if result is not None:
            self.definitions[result] = item

    def choice(self, kind: str, name: str, op: Operation, part: str = "") -> Choice:
        """What becomes of an op; `part`: which of `choices.KINDS` must be recorded."""
        if part and part not in self.form.recorded:
            return Choice("skip")
        return self.form.decide(kind, name, op)

    def leave_out(self, op: Operation, current: FlowBlock) -> None:
        """An op that is no node: what throws is still told apart, and its value is not known."""
        if effects_of(op) & (Effect.THROWS | Effect.DRAWS):
            self.extra_guards.append((current, len(current.events), op))
        for result in op.results:
            self.definitions[result] = Operand(0, None, SKIPPED)

    def tilde(self, op: stan.CallOp, addition: stan.TargetAddOp, current: FlowBlock) -> None:
        """A `~` statement: the call of its density. The addition follows at once."""
        symbol = op.callee.data
        operands = list[SSAValue | Definition](op.arguments) if op.user is not None else self._literals(op)
        name = (self.names.get(symbol, symbol) if op.user is not None else symbol).rpartition("_")[0]
        choice = self.choice("tilde", name, op, "tilde")
        if choice.how == "skip":
            self.left_out.add(addition)
            self.graph.left_out = True
            return self.leave_out(op, current)
        item = self.item(
            current, "tilde", name, operands, value_type(op.results[0].type), op, op.res, choice=choice
        )  # fmt: skip
        item.symbol, item.place = symbol, place_of(addition.location)
        item.observed = not op.autodiff.get_values()[0]
        self.additions.append((current, item, addition))

    def addition(self, op: Operation, current: FlowBlock) -> None:
        """`target += x`, `jacobian += x`, or the adjustment of a parameter."""
        if op in self.left_out or (self.additions and self.additions[-1][2] is op):
            return  # of the `~` statement before
        name = "target" if isinstance(op, stan.TargetAddOp) else "jacobian"
        choice = self.choice("target", name, op, "target")
        if choice.how == "skip":
            self.graph.left_out = True
            return self.leave_out(op, current)
        derived = "operand" if op.operands[0].type == stan.REAL else ""
        if isinstance(op, trace.JacobianOp):
            derived = ""
        elif name == "jacobian" and not self.form.jacobian:
            derived = "dropped"
        type_ = ValueType("real")
        item = self.item(current, "target", name, list(op.operands), type_, op, derived=derived, choice=choice)
        if isinstance(op, trace.JacobianOp):
            item.text = op.var_name.data
        self.additions.append((current, item, op))

    def _literals(self, op: stan.CallOp) -> list[SSAValue | Definition]:
        """The arguments of a call of the library; int literals where the function takes reals are reals."""
        operands: list[SSAValue | Definition] = list(op.arguments)
        literals = [
            n
            for n, a in enumerate(op.arguments)
            if a.type == stan.INT and isinstance(a.owner, stan.ConstantOp) and isinstance(self.definitions[a], Operand)
        ]
        if literals and op.res is not None:
            for n in real_positions(op.callee.data, [a.type for a in op.arguments], op.res.type, literals):
                literal = op.arguments[n].owner
                assert isinstance(literal, stan.ConstantOp) and isinstance(literal.value, IntegerAttr)
                operands[n] = Operand(0, float(literal.value.value.data), ValueType("real"))
        return operands

    # ------------------------------------------------------------ variables

    def declare(self, op: stan.DeclareOp, current: FlowBlock) -> None:
        type_ = value_type(op.res.type.element)
        self.variables[op.res] = (op.var_name.data, type_)
        if op.sizes:
            item = self.item(current, "special", "declare", list(op.sizes), type_, op, derived="declare")
            current.events[-1] = Event("declare", op, op.res, item=item)
        else:
            current.events.append(Event("declare", op, op.res))

    def assign(self, op: stan.AssignOp, current: FlowBlock) -> None:
        if not op.indices and not op.kinds.data:
            declaration = op.var.owner
            if isinstance(declaration, stan.DeclareOp) and declaration.sizes:
                self.extra_guards.append((current, len(current.events), op))
            current.events.append(Event("assign", op, op.var, op.value))
            return
        before = stan.ReadOp(op.var)
        current.events.append(Event("read", before, op.var, before.results[0]))
        kinds = ",".join(kind.data for kind in op.kinds)
        item = self.item(
            current, "special", "index_assign", [before.results[0], *op.indices, op.value],
            value_type(before.res.type), op, derived="assign",
        )  # fmt: skip
        item.symbol = kinds
        current.events[-1] = Event("update", op, op.var, item=item)

    # ------------------------------------------------------------ control flow

    def branch(self, op: stan.IfOp, current: FlowBlock) -> FlowBlock | None:
        then = self.lay_out(self.new_block(("start", op.then.block)))
        join = self.new_block(("after", op))
        then_end = self.walk(op.then.block, then)
        otherwise, otherwise_end = join, None
        if len(list(op.otherwise.block.ops)) > 1 or not isinstance(op.otherwise.block.last_op, stan.YieldOp):
            otherwise = self.lay_out(self.new_block(("start", op.otherwise.block)))
            otherwise_end = self.walk(op.otherwise.block, otherwise)
        self.decide_edges(current, op.condition, then, otherwise, op)
        for end in (then_end, otherwise_end):
            if end is not None:
                end.jump(join)
        if then_end is None and otherwise_end is None and otherwise is not join:
            return None
        return self.lay_out(join)

    @staticmethod
    def decide_edges(
        block: FlowBlock, condition: SSAValue | Item, then: FlowBlock, otherwise: FlowBlock, op: Operation
    ) -> tuple[FlowEdge, FlowEdge]:
        """A conditional jump: first the edge where the condition does not hold."""
        no, yes = block.jump(otherwise), block.jump(then)
        no.place = yes.place = place_of(op.location)
        no.condition = yes.condition = condition
        yes.holds = True
        return no, yes

    def select(self, op: stan.SelectOp, current: FlowBlock) -> FlowBlock:
        then = self.lay_out(self.new_block(("start", op.then.block)))
        then_end = self.walk(op.then.block, then)
        otherwise = self.lay_out(self.new_block(("start", op.otherwise.block)))
        otherwise_end = self.walk(op.otherwise.block, otherwise)
        self.decide_edges(current, op.condition, then, otherwise, op)
        join = self.lay_out(self.new_block(("after", op)))
        join.explicit.append(self.defined(op.res))
        for region, end in ((op.then, then_end), (op.otherwise, otherwise_end)):
            assert end is not None and region.block.last_op is not None
            end.jump(join, region.block.last_op.operands[0])
        return join

    def defined(self, value: SSAValue, name: str = "", *, truth: bool = False) -> Argument:
        """An argument of a block for a value that a region or an op with regions defines."""
        argument = Argument(0, value_type(value.type, truth=truth), name)
        self.definitions[value] = argument
        return argument

    def lazy(self, op: stan.AndOp | stan.OrOp, current: FlowBlock) -> FlowBlock:
        """`a && b`: `b` is a block of its own; the join gets its value, or the one that `a` has decided."""
        is_and = isinstance(op, stan.AndOp)
        right = self.lay_out(self.new_block(("start", op.right.block)))
        right_end = self.walk(op.right.block, right)
        join = self.lay_out(self.new_block(("after", op)))
        join.explicit.append(self.defined(op.res, truth=True))
        short = Operand(0, int(not is_and), ValueType("bool"))
        no, yes = self.decide_edges(current, op.left, *((right, join) if is_and else (join, right)), op)
        (no if is_and else yes).explicit = [short]
        assert right_end is not None and op.right.block.last_op is not None
        right_end.jump(join, op.right.block.last_op.operands[0])
        return join

    def while_(self, op: stan.WhileOp, current: FlowBlock) -> FlowBlock:
        header = self.lay_out(self.new_block(("start", op.condition.block)))
        current.jump(header)
        condition_end = self.walk(op.condition.block, header)
        assert condition_end is not None
        exit_ = self.new_block(("after", op))
        body = self.lay_out(self.new_block(("start", op.body.block)))
        end = op.condition.block.last_op
        assert isinstance(end, stan.ConditionOp)
        self.decide_edges(condition_end, end.condition, body, exit_, op)
        self.loops.append(_Loop(exit_, header))
        body_end = self.walk(op.body.block, body)
        self.loops.pop()
        if body_end is not None:
            body_end.jump(header)
        return self.lay_out(exit_)

    def next_iteration(self, block: FlowBlock, loop: _Loop) -> None:
        """Jumps back to the header; in a counted loop, with the next count."""
        if loop.counter is None:
            block.jump(loop.header)
            return
        one = Operand(0, 1, ValueType("int"))
        step = self.item(
            block, "call", "+", [loop.counter, one], ValueType("int"), None, derived="increment",
            location=loop.location,
        )  # fmt: skip
        block.jump(loop.header, step)

    def counted(
        self, op: stan.ForOp | stan.ForEachOp, current: FlowBlock, first: SSAValue | Definition, counter: Argument,
        test: tuple[str, str, SSAValue],
    ) -> FlowBlock:  # fmt: skip
        """The blocks of a counted loop; `test`: kind and name of what the header does with the count, and its limit."""
        header = self.lay_out(self.new_block(("none", op), silent=True))
        header.explicit.append(counter)
        current.jump(header, first)
        kind, name, limit = test
        uses: list[SSAValue | Definition] = [counter, limit] if kind == "call" else [limit, counter]
        more = self.item(header, kind, name, uses, ValueType("bool"), None, derived="condition", location=op.location)
        exit_ = self.new_block(("after", op))
        body = self.lay_out(self.new_block(("start", op.body.block)))
        self.decide_edges(header, more, body, exit_, op)
        if isinstance(op, stan.ForOp):
            body.counter = op.body.block.args[0]
        if isinstance(op, stan.ForEachOp):
            element = op.body.block.args[0]
            item = self.item(
                body, "special", "element", [op.container, counter], value_type(element.type), op, element
            )  # fmt: skip
            item.throws = item.draws = False
            item.stream = None
            self.definitions[element] = item
        loop = _Loop(exit_, header, counter, op.location)
        self.loops.append(loop)
        end = self.walk(op.body.block, body)
        if end is not None:
            self.next_iteration(end, loop)
        self.loops.pop()
        return self.lay_out(exit_)

    def for_(self, op: stan.ForOp, current: FlowBlock) -> FlowBlock:
        counter = self.defined(op.body.block.args[0], op.variable.data)
        return self.counted(op, current, op.lower, counter, ("call", "<=", op.upper))

    def for_each(self, op: stan.ForEachOp, current: FlowBlock) -> FlowBlock:
        first = Operand(0, 1, ValueType("int"))
        return self.counted(op, current, first, Argument(0, ValueType("int"), ""), ("special", "next", op.container))

    # ------------------------------------------------------------ numbers and names

    def _drop_unread_declarations(self) -> None:
        """A container's declaration is an op of its own only where its unassigned elements are read."""
        live = live_variables(self.blocks)
        for block in self.blocks:
            after = set().union(*(live[s] for s in block.successors))
            for n, event in enumerate(block.events):
                if event.kind == "declare" and event.item is not None and event.variable is not None:
                    if event.variable not in live_before(block, after, n + 1):
                        event.item = None

    def _number(self) -> dict[int, Operation]:
        number = 1 + len(self.graph.parameters)
        ops: dict[int, Operation] = {}
        for block in self.blocks:
            block.made.arguments = [argument for _, argument in block.phis] + block.explicit
            block.made.items = [event.item for event in block.events if event.item is not None]
            for argument in block.made.arguments:
                number += 1
                argument.index = number
            for event in block.events:
                if event.item is not None:
                    number += 1
                    event.item.index = number
                    if event.op is not None:
                        ops[number] = event.op
        return ops

    def _rename(self) -> None:
        """What each read gives, and what jumps pass on."""
        from ulam.tracing.instrument.flow import immediate_dominators

        dominators = immediate_dominators(self.blocks)
        at_end: dict[FlowBlock, dict[SSAValue, Definition]] = {}
        for block in self.blocks:
            state = dict(at_end.get(dominators[block], {}))
            state.update(block.phis)
            for event in block.events:
                if event.kind == "item":
                    continue
                assert event.variable is not None
                if event.kind == "read":
                    assert event.value is not None
                    self.definitions[event.value] = state.get(event.variable) or self._unassigned(event.variable)
                elif event.kind == "assign":
                    assert event.value is not None
                    state[event.variable] = self._as_operand(event.value)
                else:
                    state[event.variable] = event.item or self._unassigned(event.variable)
            at_end[block] = state
        self.at_end = at_end

    def _unassigned(self, variable: SSAValue) -> Operand:
        type_ = self.variables[variable][1]
        return Operand(0, UNASSIGNED.get(type_.base) if not type_.rank else None, type_)

    def _as_operand(self, value: SSAValue | Definition) -> Operand:
        """What a value is, through promotions."""
        if isinstance(value, Operand):
            return value
        if isinstance(value, Argument | Item):
            return Operand(value.index, None, value.type)
        owner = value.owner
        if isinstance(owner, stan.PromoteOp):
            inner = self._as_operand(owner.operand)
            type_ = value_type(value.type)
            if inner.type == SKIPPED:
                return inner
            if inner.index or not isinstance(inner.constant, int):
                return Operand(inner.index, inner.constant, type_)
            return Operand(0, float(inner.constant), type_)
        return self._as_operand(self.definitions[value])

    def _resolve(self) -> None:
        for block in self.blocks:
            for item in block.made.items:
                item.operands = [self._as_operand(used) for used in self.operands[id(item)]]
            state = self.at_end[block]
            for number, edge in enumerate(block.edges, 1):
                made = Edge(number, edge.target.made.number if edge.target is not None else 0, place=edge.place)
                if edge.target is None:
                    made.value = None if edge.value is None else self._as_operand(edge.value)
                else:
                    made.arguments = [
                        self._as_operand(state.get(variable) or self._unassigned(variable))
                        for variable, _ in edge.target.phis
                    ]
                    made.arguments += [self._as_operand(value) for value in edge.explicit]
                if edge.condition is not None:
                    made.condition = self._as_operand(edge.condition)
                    made.holds = edge.holds
                edge.made = made
            block.made.edges = [edge.made for edge in block.edges if edge.made is not None]
