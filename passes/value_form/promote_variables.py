"""Promotion of variables to values: variable form  →  value form.

    int n = 0; for (i in 1:3) n = n + i;    →    %n = stan.for ... initial %zero { ... stan.yield %sum }

A variable becomes SSA values if it is only read whole and assigned whole; one that is assigned in part stays a
`stan.var`. Loops carry, and branches yield, only what they assign and what is read afterwards: a variable that every
iteration sets before it reads it, and that nothing reads after the loop, is not carried. A whole assignment to a sized
variable leaves a `stan.assert_shape` behind. Reading before the first assignment gives `stan.uninitialized`, which also
stays, unread, where a sized variable is not assigned at once: its sizes may be negative, which is an error.

Variables that other blocks see (top level of transformed data, transformed parameters and generated quantities) keep
their `stan.declare`, and their final value goes to a `stan.define` at the end of the block.

Expects `structure-exits` to have run. Method: SSA construction over structured control flow; two walks, the first
collects per region what it reads before assigning, may assign and surely assigns (sets of variables as bits of an
int), the second substitutes values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.ir.core import SSAValues
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.walk import operand_at
from ulam.library.records import record
from ulam.passes.analysis.bodies import Body, bodies
from ulam.passes.errors import WrongFormError
from ulam.passes.rewriting import discard, replace_uses
from ulam.passes.value_form.structure_exits import StructureExits

_SCALARS = (stan.INT, stan.REAL, stan.COMPLEX)
_KEPT_BLOCKS = ("data", "parameters")  # their variables are bound from outside
_LOCAL_BLOCKS = ("model",)  # their variables are seen by no other block
_EVERYTHING = -1  # the set of all variables


class PromoteVariables(ModulePass):
    """Makes values of variables that are read and assigned whole: the value form."""

    name = "promote-variables"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op)


def run_on(op: Operation) -> None:
    """Promotes the variables of all functions and blocks at or below `op`."""
    for body in bodies(op):
        if any(isinstance(inner, stan.DefineOp) for inner in body.body.block.ops):
            continue  # its variables are values by now
        if isinstance(body, stan.FuncOp):
            _Promoter(sees_globals=False).run(body)
        elif body.kind.data not in _KEPT_BLOCKS:
            _Promoter(sees_globals=body.kind.data not in _LOCAL_BLOCKS).run(body)


_JUMPS = frozenset[type]((stan.BreakOp, stan.ContinueOp))


@record(slots=True)
class _Variable:
    """A variable under promotion; `value` is its value at the point reached by the second walk."""

    declaration: stan.DeclareOp
    type: Attribute
    name: str
    value: SSAValue | None = None  # None: declared, not yet assigned
    uninitialized: SSAValue | None = None

    def current(self) -> SSAValue:
        return self.initial() if self.value is None else self.value

    def initial(self) -> SSAValue:
        """The value before the first assignment, made where the variable is declared."""
        if self.uninitialized is None:
            declaration = self.declaration
            op = stan.UninitializedOp(
                self.type,
                declaration.sizes,
                declaration.told_name if declaration.sizes else None,
                location=declaration.location,
            )
            op.results[0].name_hint = self.name
            assert declaration.parent is not None
            declaration.parent.insert_op_before(op, declaration)
            self.uninitialized = op.results[0]
        return self.uninitialized


@record(slots=True)
class _Event:
    """An op that touches variables, and the sets that it reads before assigning, may assign and surely assigns."""

    op: Operation
    reads: int
    may_assign: int
    assigns: int
    variable: int = -1  # of declarations, reads and assignments


@record
class _Promoter:
    """Promotes the variables of one function or block."""

    sees_globals: bool
    variables: list[_Variable] = field(default_factory=list[_Variable])
    number: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    events: dict[Block, list[_Event]] = field(default_factory=dict[Block, list[_Event]])

    def run(self, body: Body) -> None:
        block = body.regions[0].blocks[0]
        self._collect(block)
        if not self.variables:
            return
        exported = 0
        if self.sees_globals:
            for number, variable in enumerate(self.variables):
                declaration = variable.declaration
                if declaration.parent is block and "local" not in declaration.properties:
                    exported |= 1 << number
        self._substitute(block, exported)
        for number in _members(exported):
            variable = self.variables[number]
            declaration = variable.declaration
            block.add_op(stan.DefineOp(declaration.var_name, variable.current(), location=declaration.location))
        for number, variable in enumerate(self.variables):
            if not exported >> number & 1:
                discard(variable.declaration)

    # ------------------------------------------------------------ first walk

    def _collect(self, block: Block) -> tuple[int, int, int]:
        """Numbers the variables that `block` declares; what it reads before assigning, may assign, surely assigns."""
        events: list[_Event] = []
        reads = may_assign = assigns = 0
        op = block.first_op
        while op is not None:
            event = self._event(op)
            if event is not None:
                events.append(event)
                reads |= event.reads & ~assigns
                may_assign |= event.may_assign
                assigns |= event.assigns
            last, op = op, op.next_op
            if op is None and type(last) is stan.ReturnOp:
                may_assign, assigns = 0, _EVERYTHING  # nothing is seen after it
        if events:
            self.events[block] = events
        return reads, may_assign, assigns

    def _event(self, op: Operation) -> _Event | None:
        cls = type(op)
        if cls in _JUMPS:
            raise WrongFormError(PromoteVariables.name, f"there is a {op.name}", StructureExits.name)
        if cls is stan.ReadOp:
            if (number := self.number.get(operand_at(op, 0))) is None:
                return None
            return _Event(op, 1 << number, 0, 0, number)
        if cls is stan.AssignOp:
            if (number := self.number.get(operand_at(op, 0))) is None:
                return None
            return _Event(op, 0, 1 << number, 1 << number, number)
        if cls is stan.DeclareOp:
            if not is_promotable(op):
                return None
            assert isinstance(op, stan.DeclareOp)
            number = len(self.variables)
            type_ = op.results[0].type
            assert isinstance(type_, stan.VarType)
            self.variables.append(_Variable(op, type_.element, op.var_name.data))
            self.number[op.results[0]] = number
            return _Event(op, 0, 1 << number, 1 << number, number)
        return self._region_event(op) if op.regions else None

    def _region_event(self, op: Operation) -> _Event | None:
        if isinstance(op, stan.ScopeOp):
            raise WrongFormError(PromoteVariables.name, "there is a stan.scope", StructureExits.name)
        sets = [self._collect(region.block) for region in op.regions]
        if not any(region.block in self.events for region in op.regions):
            return None
        if isinstance(op, stan.IfOp):
            (reads, may, sure), (other_reads, other_may, other_sure) = sets
            return _Event(op, reads | other_reads, may | other_may, sure & other_sure)
        if isinstance(op, stan.WhileOp):
            (reads, may, sure), (body_reads, body_may, _) = sets
            return _Event(op, reads | body_reads & ~sure, may | body_may, sure)
        if isinstance(op, stan.ProfileOp):
            return _Event(op, *sets[0])
        reads = may = 0
        for region_reads, region_may, _ in sets:
            reads |= region_reads
            may |= region_may
        return _Event(op, reads, may, 0)

    # ------------------------------------------------------------ second walk

    def _substitute(self, block: Block, live: int) -> None:
        """Replaces reads and assignments in `block`; `live`: what is read after it."""
        events = self.events.get(block)
        if events is None:
            return
        live_after: list[int] = []
        for event in reversed(events):
            live_after.append(live)
            live = event.reads | live & ~event.assigns
        for event, live in zip(events, reversed(live_after), strict=True):
            op = event.op
            if event.variable >= 0:
                self._substitute_access(op, self.variables[event.variable])
            elif isinstance(op, stan.IfOp):
                self._branch(op, event, live)
            elif isinstance(op, stan.ForOp | stan.ForEachOp):
                self._loop(op, event, live)
            elif isinstance(op, stan.WhileOp):
                self._while(op, event, live)
            elif isinstance(op, stan.ProfileOp):
                self._profile(op, event, live)
            else:
                for region in op.regions:
                    self._substitute(region.block, 0)

    def _substitute_access(self, op: Operation, variable: _Variable) -> None:
        """A declaration, read or assignment."""
        if isinstance(op, stan.DeclareOp):
            variable.value = None
            if op.sizes:
                variable.initial()  # checks the sizes, where the program declares them
            return
        if isinstance(op, stan.ReadOp):
            replace_uses(op.results[0], variable.current())
        else:
            value = variable.value = self._shaped(op, variable)
            if value.name_hint is None:
                value.name_hint = variable.name
        discard(op)

    @staticmethod
    def _shaped(op: Operation, variable: _Variable) -> SSAValue:
        """The assigned value, its sizes checked where the variable has sizes."""
        value = op.operands[1]
        sizes = variable.declaration.sizes
        if not sizes or variable.type in _SCALARS:
            return value
        check = stan.AssertShapeOp(variable.declaration.told_name, value, sizes, location=op.location)
        assert op.parent is not None
        op.parent.insert_op_before(check, op)
        return check.results[0]

    # ------------------------------------------------------------ regions

    def _save(self, numbers: int) -> list[tuple[_Variable, SSAValue | None]]:
        return [(self.variables[n], self.variables[n].value) for n in _members(numbers)]

    @staticmethod
    def _restore(saved: list[tuple[_Variable, SSAValue | None]]) -> None:
        for variable, value in saved:
            variable.value = value

    def _branch(self, op: stan.IfOp, event: _Event, live: int) -> None:
        carried = [self.variables[n] for n in _members(event.may_assign & live)]
        saved = self._save(event.may_assign)
        for region in op.regions:
            self._substitute(region.block, live)
            _pass_on(region.block, carried)
            self._restore(saved)
        _set_results(op, carried)

    def _profile(self, op: stan.ProfileOp, event: _Event, live: int) -> None:
        carried = [self.variables[n] for n in _members(event.may_assign & live)]
        self._substitute(op.body.block, live)
        _pass_on(op.body.block, carried)
        _set_results(op, carried)

    def _loop(self, op: stan.ForOp | stan.ForEachOp, event: _Event, live: int) -> None:
        live |= event.reads
        carried = [self.variables[n] for n in _members(event.may_assign & live)]
        op.operands = (*op.operands, *(variable.current() for variable in carried))
        saved = self._save(event.may_assign)
        body = op.body.block
        _enter(body, carried)
        self._substitute(body, live)
        _pass_on(body, carried)
        self._restore(saved)
        _set_results(op, carried)

    def _while(self, op: stan.WhileOp, event: _Event, live: int) -> None:
        live |= event.reads
        carried = [self.variables[n] for n in _members(event.may_assign & live)]
        op.operands = (*op.operands, *(variable.current() for variable in carried))
        saved = self._save(event.may_assign)
        for block in (op.condition.block, op.body.block):
            _enter(block, carried)
            self._substitute(block, live)
            _pass_on(block, carried)
        self._restore(saved)
        _set_results(op, carried)


def is_promotable(declaration: Operation) -> bool:
    """Whether the variable is only read whole and assigned whole."""
    for use in declaration.results[0].uses:
        op = use.operation
        if type(op) is stan.AssignOp:
            if len(op.operands) != 2 or use.index != 0:
                return False
        elif type(op) is not stan.ReadOp:
            return False
    return True


def _members(numbers: int) -> Iterator[int]:
    """The elements of a set of variables, in the order of their declarations."""
    while numbers:
        lowest = numbers & -numbers
        yield lowest.bit_length() - 1
        numbers ^= lowest


def _enter(block: Block, carried: list[_Variable]) -> None:
    """Gives `block` an argument for each carried variable."""
    for variable in carried:
        argument = block.insert_arg(variable.type, len(block.args), variable.declaration.location)
        argument.name_hint = variable.name
        variable.value = argument


def _pass_on(block: Block, carried: list[_Variable]) -> None:
    """Lets the terminator of `block` pass the carried variables on."""
    end = block.last_op
    if isinstance(end, stan.YieldOp | stan.ConditionOp):
        if carried:
            end.operands = (*end.operands, *(variable.current() for variable in carried))
    elif carried or not isinstance(end, stan.ReturnOp):
        found = "nothing" if end is None else end.name
        raise ValueError(f"promote-variables: a region ends in {found}; run structure-exits first")


def _set_results(op: Operation, carried: list[_Variable]) -> None:
    """Gives `op` a result for each carried variable; that is their value from here on."""
    if not carried:
        return
    first = len(op.results)
    op.results = SSAValues((*op.results, *(OpResult(v.type, op, first + i) for i, v in enumerate(carried))))
    for variable, result in zip(carried, op.results[first:], strict=True):
        result.name_hint = variable.name
        variable.value = result
