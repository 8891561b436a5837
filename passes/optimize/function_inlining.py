"""Function inlining: a call of a function of the program  →  the body of the function.

    int b = incr(a);    →    int b; int inline_incr_return_sym1__; int inline_incr_y_sym2__;
                             inline_incr_y_sym2__ = 1;
                             inline_incr_return_sym1__ = a + inline_incr_y_sym2__;
                             b = inline_incr_return_sym1__;

The body stands where the call stood, which is its place in the order of evaluation, in lazy operands and conditions of
`while` too. Call by value: the arguments are evaluated before, once. A formal becomes a literal, another read of a
variable that nothing assigns meanwhile, a loop variable, or else a local variable. What the function declares is
declared afresh. Early returns become flags and branches first (`structure-exits`), so there is no one-trip loop.

Calls in an inlined body are told which of their arguments are autodiff and whether they drop constants at this call:
what the lowering finds out for bodies that it writes in place of a call itself (`call_context`).

What stays a call, with a remark:

* recursive functions, direct or mutual, and functions that are declared but not defined;
* a function of more than `limit` ops that is called from several places, and what goes beyond `budget`, the number of
  ops that the program may grow by, or makes it longer than `longest`: lowering writes such bodies in place, too;
* calls in data and parameters, whose blocks hold no statements, and those that sizes of output variables come from:
  they are evaluated apart from their block.

Functions whose calls are all inlined stay as they are, unused and marked as `inlined`. In the others, and in functions
that are passed to functions, calls are inlined unless that changes which arguments depend on autodiff formals.

Source: optimization levels documentation, "Function inlining".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, IntAttr, IntegerType, LocationAttr, ModuleOp, StringAttr, UnitAttr, i8
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.walk import ops_of, ops_within
from ulam.library.records import record
from ulam.passes.analysis.call_context import body_drops_constants, dependence
from ulam.passes.analysis.call_graph import recursive_functions
from ulam.passes.analysis.scopes import own_bodies
from ulam.passes.remarks import remark
from ulam.passes.rewriting import cloned, copies, discard, replace_uses
from ulam.passes.value_form import promote_variables, structure_exits
from ulam.passes.variable_form import FreshNames, assign, declare, erase_unused, mark_local, read

_SCALARS = (stan.INT, stan.REAL, stan.COMPLEX)
_WITHOUT_STATEMENTS = ("data", "parameters")
_BUDGET = 1_000
_LONGEST = 2_000
_REREAD_DISTANCE = 256  # ops between a variable's read and the call that are looked at for assignments

Bits = list[int]
"""For each argument of a call the autodiff formals, as bits, that it depends on; in blocks 1 or 0."""


@record(frozen=True)
class FunctionInlining(ModulePass):
    """Puts the bodies of the user's functions in the place of calls.

    `limit`: ops of a body that is inlined at several places; `budget`: ops that the program may grow by; `longest`: ops
    from which on it does not grow. What is gained in a long one is little beside what all that follows takes for its
    copies.
    """

    name = "function-inlining"

    limit: int = 200
    budget: int = _BUDGET
    longest: int = _LONGEST

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        length = sum(1 for body in own_bodies(op) for _ in ops_within(body))
        budget = min(self.budget, max(self.longest - length, 0))
        for program in op.body.block.ops:
            if isinstance(program, stan.ProgramOp):
                _Program(program, self.limit, budget).run()


# ---------------------------------------------------------------- functions that are inlined


@record(eq=False, repr=False)
class _Template:
    """A function ready for copying: one exit, at the end.

    `bits`: of the calls in its body, in program order, the formals that each argument depends on.
    """

    function: stan.FuncOp
    block: Block
    bits: list[Bits]
    size: int


def _template_of(function: stan.FuncOp) -> _Template:
    structured = cloned(function)
    structure_exits.run_on(structured)
    block = structured.body.block
    dependences = _dependences(structured)
    return _Template(function, block, [dependences[n] for n in range(len(dependences))], _size(block))


def _dependences(function: stan.FuncOp) -> dict[int, Bits]:
    """Of the calls in a function, numbered in program order, which formals their arguments depend on.

    Calls that are never reached have no entry.
    """
    calls = list(_calls(function.body.block))
    if not calls:
        return {}
    for n, call in enumerate(calls):
        stan.CallNumberAttr(IntAttr(n)).put(call)
    values = cloned(function)
    for call in calls:
        stan.CallNumberAttr.take(call)
    structure_exits.run_on(values)
    promote_variables.run_on(values)
    formals = values.body.block.args
    known: dict[SSAValue, int] = {formal: 1 << n for n, formal in enumerate(formals)}
    anything = (1 << len(formals)) - 1
    found: dict[int, Bits] = {}
    for op in _calls(values.body.block):
        if (number := stan.CallNumberAttr.of(op)) is not None:
            pairs = zip(op.arguments, _autodiff_bits(op), strict=True)
            found[number.number.data] = [dependence(argument, known, anything) if bit else 0 for argument, bit in pairs]
    return found


def _calls(block: Block) -> Iterator[stan.CallOp]:
    """All calls in a block, in program order."""
    for op in ops_within(block):
        if type(op) is stan.CallOp:
            yield op


def _autodiff_bits(call: stan.CallOp) -> Bits:
    return [int(bit) for bit in cast("DenseArrayBase[IntegerType]", call.autodiff).get_values()]


def _size(block: Block) -> int:
    return sum(1 for _ in ops_within(block))


# ---------------------------------------------------------------- the program


class _Program:
    """The functions of a program, and which of them are inlined."""

    def __init__(self, program: stan.ProgramOp, limit: int, budget: int) -> None:
        self.limit = limit
        ops = ops_of(program.body.block)
        functions = {op.sym_name.data: op for op in ops if isinstance(op, stan.FuncOp)}
        self.blocks = [op for op in ops if isinstance(op, stan.BlockOp)]
        self.functions = {name: op for name, op in functions.items() if op.library is None}
        self.recursive = recursive_functions(self.functions)
        self.places = dict.fromkeys(self.functions, 0)
        self._templates: dict[str, _Template] = {}
        self._sizes: dict[str, int] = {}
        self.left: dict[str, None] = {}  # functions that are called or passed on after inlining
        self.budget = budget

    def run(self) -> None:
        if not any(f.body.blocks for f in self.functions.values()):
            return
        bodies = [f.body.block for f in self.functions.values() if f.body.blocks]
        for block in (*bodies, *(b.body.block for b in self.blocks)):
            for call in _calls(block):
                if call.user is not None:
                    self.places[call.callee.data] += 1
        for block in self.blocks:
            self._block(block)
        self._functions_left()

    def _block(self, block: stan.BlockOp) -> None:
        inliner = _Inliner(self, FreshNames(block))
        if block.kind.data in _WITHOUT_STATEMENTS:
            inliner.kept = {call: "there are no statements in this block" for call in _calls(block.body.block)}
        else:
            inliner.kept = dict.fromkeys(_calls_behind_sizes(block), "its value decides the size of an output variable")
        inliner.run(block.body.block)
        inliner.tell()

    def _functions_left(self) -> None:
        """Inlines calls in the functions that are still called."""
        done: set[str] = set()
        while self.left:
            name = next(iter(self.left))
            del self.left[name]
            function = self.functions.get(name)
            if name in done or function is None or not function.body.blocks:
                continue
            done.add(name)
            self._function(function)
        for name, function in self.functions.items():
            if self.places[name] and name not in done:
                function.properties["inlined"] = UnitAttr()

    def _function(self, function: stan.FuncOp) -> None:
        if not any(call.user is not None for call in _calls(function.body.block)):
            for call in _calls(function.body.block):
                self.note_left(call)
            return
        if self.inlines(name := function.sym_name.data):
            self.template(name)  # of the function as it is
        if not any(self._may_inline(call) for call in _calls(function.body.block)):
            inliner = _Inliner(self, FreshNames(function))
            inliner.run(function.body.block)  # notes what is left, and why
            inliner.tell()
            return
        copy = cloned(function)
        budget, left = self.budget, dict(self.left)
        inliner = _Inliner(self, FreshNames(function))
        dependences = _dependences(function)
        calls = enumerate(_calls(copy.body.block))
        inliner.bits = {call: dependences[n] for n, call in calls if n in dependences}
        inliner.run(copy.body.block)
        expected = [inliner.bits.get(call) for call in _calls(copy.body.block)]
        if all(expected[n] == bits for n, bits in _dependences(copy).items()):
            inliner.tell()
            function.body.detach_block(function.body.block)
            function.body.add_block(copy.body.detach_block(copy.body.block))
            return
        self.budget, self.left = budget, left
        for call in _calls(function.body.block):
            self.note_left(call)
        name = function.stan_name.data
        message = "it would change which arguments depend on the function's autodiff arguments"
        remark(FunctionInlining.name, function.location, f"calls in {name}", message, done=False)

    def _may_inline(self, call: stan.CallOp) -> bool:
        """Whether a call is inlined unless others before it take the budget."""
        if call.user is None or not self.inlines(name := call.callee.data):
            return False
        return self.template(name).size <= self.budget

    def note_left(self, call: stan.CallOp) -> None:
        """Notes the functions that a call needs."""
        if call.user is not None:
            self.left[call.callee.data] = None
        if call.callback is not None:
            self.left[call.callback.data] = None

    # ------------------------------------------------------------ decisions

    def template(self, name: str) -> _Template:
        if (found := self._templates.get(name)) is None:
            found = self._templates[name] = _template_of(self.functions[name])
        return found

    def inlines(self, name: str) -> bool:
        """Whether calls of a function are inlined as far as the budget goes."""
        return self.reason_against(name) is None

    def reason_against(self, name: str) -> str | None:
        """Why calls of a function stay calls, whatever the budget."""
        function = self.functions[name]
        if not function.body.blocks:
            return "the function is declared but not defined"
        if name in self.recursive:
            return "the function calls itself, directly or through others"
        if self.places[name] > 1 and (size := self.size(name)) > self.limit:
            return f"its body of {size} ops is called from {self.places[name]} places (limit: {self.limit} ops)"
        return None

    def size(self, name: str) -> int:
        """Ops of a body in which all calls are inlined."""
        if (found := self._sizes.get(name)) is None:
            block = self.functions[name].body.block
            found = _size(block)
            for call in _calls(block):
                if call.user is not None and self.inlines(call.callee.data):
                    found += self.size(call.callee.data)
            self._sizes[name] = found
        return found


def _calls_behind_sizes(block: stan.BlockOp) -> list[stan.CallOp]:
    """The calls that the sizes of a block's output variables come from, through variables of the block too."""
    if block.kind.data == "model":
        return []
    top = block.body.block
    pending = [size.owner for op in top.ops if isinstance(op, stan.DeclareOp) and op.local is None for size in op.sizes]
    needed: dict[Operation, None] = {}
    while pending:
        op = pending.pop()
        while isinstance(op, Operation) and op.parent is not top:
            op = op.parent_op()
        if not isinstance(op, Operation) or op in needed:
            continue
        needed[op] = None
        for inner in ops_within(op):
            pending += [operand.owner for operand in inner.operands]
        if isinstance(op, stan.DeclareOp):
            pending += [use.operation for use in op.res.uses if isinstance(use.operation, stan.AssignOp)]
    return [inner for op in needed for inner in ops_within(op) if isinstance(inner, stan.CallOp)]


# ---------------------------------------------------------------- calls of one body


@record(eq=False, repr=False)
class _Inliner:
    """Inlines the calls in one block or function."""

    program: _Program
    names: FreshNames
    bits: dict[stan.CallOp, Bits] = field(default_factory=dict)
    kept: dict[stan.CallOp, str] = field(default_factory=dict)
    """Calls that stay, and why."""
    remarks: list[tuple[LocationAttr, str, str, bool]] = field(default_factory=list)

    def run(self, block: Block) -> None:
        """Inlines the calls in a region; inlined bodies are looked at in turn."""
        op = block.first_op
        while op is not None:
            for region in op.regions:
                self.run(region.block)
            if type(op) is stan.CallOp:
                if self._stays(op):
                    self.program.note_left(op)
                else:
                    op = self._inline(op)
                    continue
            op = op.next_op

    def _stays(self, call: stan.CallOp) -> bool:
        """Whether a call is not inlined; says why."""
        if call.user is None:
            return True
        program, name = self.program, call.callee.data
        against = self.kept.get(call) or program.reason_against(name)
        if against is None:
            growth = program.template(name).size
            if growth <= program.budget:
                program.budget -= growth
                self._remark(call, f"its body, {growth} ops, stands in place of the call", done=True)
                return False
            against = f"the program would grow by more than the budget ({growth} ops, {program.budget} are left)"
        self._remark(call, against, done=False)
        return True

    def _remark(self, call: stan.CallOp, message: str, *, done: bool) -> None:
        name = self.program.functions[call.callee.data].stan_name.data
        self.remarks.append((call.location, f"call of {name}", message, done))

    def tell(self) -> None:
        """Passes the remarks on: what was decided holds."""
        for location, subject, message, done in self.remarks:
            remark(FunctionInlining.name, location, subject, message, done=done)

    # ------------------------------------------------------------ one call

    def _inline(self, call: stan.CallOp) -> Operation | None:
        """Puts the body in place of the call; returns the op to go on with."""
        template = self.program.template(call.callee.data)
        writer = _Writer(call, template, self.names)
        writer.write()
        self._tell_calls(call, template, writer.body)
        block = call.parent
        assert block is not None
        if call.res is not None:
            result = writer.read_result()
            block.insert_op_before(result, call)
            replace_uses(call.res, result.results[0])
        arguments = list(call.operands)
        following = writer.first or call.next_op
        discard(call)
        erase_unused(arguments)
        return following

    def _tell_calls(self, call: stan.CallOp, template: _Template, body: list[Operation]) -> None:
        """Gives the calls in an inlined body their autodiff arguments and whether they drop constants."""
        outer = self._bits(call)
        drops = body_drops_constants(template.function, call.unnormalized is not None)
        inner = (op for top in body for op in ops_within(top) if type(op) is stan.CallOp)
        for op, formals in zip(inner, template.bits, strict=True):
            bits = self.bits[op] = [_through(argument, outer) for argument in formals]
            op.properties["autodiff"] = DenseArrayBase.from_list(i8, [int(bit != 0) for bit in bits])
            if not drops:
                op.properties.pop("unnormalized", None)

    def _bits(self, call: stan.CallOp) -> Bits:
        if (found := self.bits.get(call)) is None:
            found = _autodiff_bits(call)
        return found


def _through(formals: int, arguments: Bits) -> int:
    """What a set of formals depends on if the formals depend on `arguments`."""
    result = 0
    for n, bits in enumerate(arguments):
        if formals >> n & 1:
            result |= bits
    return result


# ---------------------------------------------------------------- writing a body

_Occurrence = Callable[[LocationAttr], list[Operation]]
"""Makes the ops for one use of a formal; the last one gives its value."""


class _Writer:
    """Writes the body of a function before a call of it. `body`: the copied statements."""

    def __init__(self, call: stan.CallOp, template: _Template, names: FreshNames) -> None:
        self.call = call
        self.template = template
        self.names = names
        self.body: list[Operation] = []
        self.first: Operation | None = None
        self._result: stan.DeclareOp | None = None
        self._mapping: dict[SSAValue, SSAValue] = {}
        self._occurrences: dict[SSAValue, _Occurrence] = {}  # formals that become ops at each use

    def write(self) -> None:
        """Writes the statements."""
        statements = ops_of(self.template.block)
        end = statements.pop()
        assert isinstance(end, stan.ReturnOp)
        written: list[Operation] = []
        inner_result = _result_of_exits(end)
        if end.value is not None:
            self._result = self._declare("return", end.value.type, self.call.location)
            written.append(self._result)
        if inner_result is not None:  # assigned where the function returns
            assert self._result is not None
            self._mapping[inner_result.res] = self._result.res
            statements = [op for op in statements if op is not inner_result and op is not end.operands[0].owner]
        for n, argument in enumerate(self.call.operands):
            written += self._formal(n, argument)
        self.body = copies(statements, self._mapping)
        self._rename()
        written += self.body
        if end.value is not None and inner_result is None:
            assert self._result is not None
            value = self._mapping.get(end.value, end.value)
            written.append(assign(self._result.res, value, end.location))
        assert self.call.parent is not None
        self.call.parent.insert_ops_before(written, self.call)
        self.first = written[0] if written else None
        self._substitute(written)

    def read_result(self) -> stan.ReadOp:
        """What stands for the call itself."""
        assert self._result is not None
        return read(self._result.res, self.call.location)

    # ------------------------------------------------------------ names

    def _fresh(self, name: str) -> str:
        return self.names.fresh(f"inline_{self.template.function.stan_name.data}_{name}")

    def _declare(self, name: str, type_: Attribute, location: LocationAttr) -> stan.DeclareOp:
        return declare(self._fresh(name), type_, location)

    def _rename(self) -> None:
        """Gives what the body declares names of its own; messages keep those of the source."""
        for top in self.body:
            for op in ops_within(top):
                if type(op) is not stan.DeclareOp:
                    continue
                old = op.var_name.data
                if op.source_name is None and not old.endswith("__") and op.res.type.element not in _SCALARS:
                    op.properties["source_name"] = op.var_name
                new = self._fresh(old.removesuffix("__"))
                op.properties["var_name"] = StringAttr(new)
                op.res.name_hint = new
                mark_local(op)

    # ------------------------------------------------------------ formals

    def _formal(self, n: int, argument: SSAValue) -> list[Operation]:
        """Decides what a formal becomes; the ops to put before the body."""
        formal = self.template.block.args[n]
        if formal.first_use is None:
            return []
        if not isinstance(argument.owner, Operation):
            self._mapping[formal] = argument
            return []
        if (literal := _literal_ops(argument.owner)) is not None:
            self._occurrences[formal] = lambda location: copies(literal, {})
            return []
        if isinstance(argument.owner, stan.ReadOp) and _holds_until(argument.owner, self.call):
            self._reread(formal, argument.owner.var)
            return []
        name = self.template.function.argument_names.data[n].data
        variable = self._declare(name, argument.type, self.call.location)
        self._reread(formal, variable.res)
        return [variable, assign(variable.res, argument, self.call.location)]

    def _reread(self, formal: SSAValue, variable: SSAValue) -> None:
        self._occurrences[formal] = lambda location: [read(variable, location)]

    def _substitute(self, written: list[Operation]) -> None:
        """Puts what formals become before each of their uses."""
        for op in [op for top in written for op in ops_within(top)]:
            for n, operand in enumerate(op.operands):
                if (occurrence := self._occurrences.get(operand)) is not None:
                    ops = occurrence(op.location)
                    assert op.parent is not None
                    op.parent.insert_ops_before(ops, op)
                    op.operands[n] = ops[-1].results[0]
                    if op is self.first:
                        self.first = ops[0]


def _result_of_exits(end: stan.ReturnOp) -> stan.DeclareOp | None:
    """The variable that `structure-exits` made for the result of a function with early returns."""
    if end.value is None or not isinstance(end.value.owner, stan.ReadOp):
        return None
    variable = end.value.owner.var.owner
    if isinstance(variable, stan.DeclareOp) and variable.var_name.data == structure_exits.RESULT:
        return variable
    return None


def _literal_ops(op: Operation) -> list[Operation] | None:
    """The ops of a literal, perhaps promoted."""
    if isinstance(op, stan.ConstantOp):
        return [op]
    if isinstance(op, stan.PromoteOp) and isinstance(inner := op.operands[0].owner, stan.ConstantOp):
        return [inner, op]
    return None


def _holds_until(variable_read: stan.ReadOp, call: stan.CallOp) -> bool:
    """Whether a variable surely has the value that was read when a call begins (and so until it ends)."""
    if variable_read.parent is not call.parent:
        return False
    seen = 0
    op = variable_read.next_op
    while op is not None and op is not call:
        for inner in ops_within(op):
            seen += 1
            if seen > _REREAD_DISTANCE or (isinstance(inner, stan.AssignOp) and inner.var is variable_read.var):
                return False
        op = op.next_op
    return op is call
