"""Structured exits: `break`, `continue` and early `return`  →  flags and branches.

    for (i in 1:N) { if (c) break; S }  →  running = 1 <= N; i = 1;
                                           while (running) { if (c) running = 0;
                                                             else { S; running = i < N; i += 1; } }

* Where one branch of an `if` always leaves, what follows the `if` moves into the other branch: no flag is needed.
* Else an exit clears a flag, and what follows, up to the end of the body that is left, runs only if the flag is set.
  `running__` of a loop is cleared by break and return; `proceed__` of one iteration by continue, too.
* A `for` that can be left becomes a `while`. Its bounds are evaluated once. The last iteration clears the flag before
  the loop variable is advanced, so an upper bound that is the largest int ends the loop as it should.
* Early returns assign `result__`; one `stan.return` stays, at the end of the function. `result__` is declared without
  sizes: it takes those of what is assigned.
* Local blocks (`stan.scope`) are dissolved; what they declare at the top level of a program block is marked `local`.

Library densities whose only early returns are guards at their top level, `if (c) return v;`, keep these: their
lowering hoists them.
"""

from __future__ import annotations

from dataclasses import field

from xdsl.context import Context
from xdsl.dialects.builtin import (
    LocationAttr,
    ModuleOp,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.walk import ops_of
from ulam.library.functions import kind_of
from ulam.library.records import record
from ulam.passes.analysis.bodies import Body, bodies
from ulam.passes.analysis.nesting import terminator
from ulam.passes.variable_form import assign, constant, declare, read, splice_body, yield_

_BREAK, _CONTINUE, _RETURN = 1, 2, 4
_EXITS: dict[type[Operation], int] = {stan.BreakOp: _BREAK, stan.ContinueOp: _CONTINUE, stan.ReturnOp: _RETURN}
_LOOPS = (stan.ForOp, stan.ForEachOp, stan.WhileOp)

RESULT = "result__"
"""Name of the variable for the result of a function with early returns."""


class StructureExits(ModulePass):
    """Makes flags and branches of `break`, `continue` and early `return`."""

    name = "structure-exits"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op)


def run_on(op: Operation) -> None:
    """Structures all functions and blocks at or below `op`."""
    for body in bodies(op):
        _Structurer(body).run()


# ---------------------------------------------------------------- what is left


@record
class _Flag:
    """An int variable, 1 until an exit clears it; declared only if something tests it."""

    name: str
    declaration: stan.DeclareOp | None = None

    def variable(self, location: LocationAttr) -> SSAValue:
        if self.declaration is None:
            self.declaration = declare(self.name, stan.INT, location)
        return self.declaration.results[0]


@record
class _Frame:
    """The function, or a loop, whose body is being structured.

    `markers` are the exit ops inside that concern it; they stay in place until it is known which flags are tested.
    """

    running: _Flag = field(default_factory=lambda: _Flag("running__"))
    proceed: _Flag = field(default_factory=lambda: _Flag("proceed__"))
    markers: list[Operation] = field(default_factory=list[Operation])

    def flag(self, exits: int) -> _Flag:
        """The flag that tells whether any of `exits` was taken."""
        return self.proceed if exits & _CONTINUE else self.running


# ---------------------------------------------------------------- moving ops


def _rest_of(block: Block, first: Operation | None) -> list[Operation]:
    """`first` and what follows, without a closing yield."""
    ops: list[Operation] = []
    while first is not None:
        ops.append(first)
        first = first.next_op
    if ops and type(ops[-1]) is stan.YieldOp:
        ops.pop()
    return ops


def _move_to_end(ops: list[Operation], block: Block, location: LocationAttr) -> None:
    """Appends `ops` to `block`, whose closing yield (if any) they replace; `block` ends in a terminator again."""
    last = block.last_op
    if last is not None and type(last) is stan.YieldOp:
        block.erase_op(last)
    for op in ops:
        op.detach()
        block.add_op(op)
    if not ops or (type(ops[-1]) is not stan.YieldOp and type(ops[-1]) not in _EXITS):
        block.add_op(yield_(location))


def _erase(ops: list[Operation]) -> None:
    """Erases ops that nothing else uses, the last first."""
    for op in reversed(ops):
        op.detach()
        op.erase()


class _Structurer:
    """Structures one function or block."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.block = body.regions[0].blocks[0]
        self.exits: dict[Operation, int] = {}  # op → exits that leave it; only ops that have some
        self.leaving: dict[Operation, int] = {}  # loop → exits in its body that concern it
        self.touched: set[Operation] = set()  # ops with anything to do inside
        self.never_falls: set[Block] = set()  # blocks whose end is not reached
        self.frames: list[_Frame] = []

    def run(self) -> None:
        self._scan(self.block)
        if isinstance(self.body, stan.FuncOp):
            self._function(self.body)
        elif self.touched:
            self._structure(self.block)

    # ------------------------------------------------------------ finding exits

    def _scan(self, block: Block) -> int:
        """Dissolves scopes, and finds the exits that leave `block`."""
        mask = 0
        falls = True
        op = block.first_op
        while op is not None:
            if op.regions:
                if type(op) is stan.ScopeOp:
                    op = splice_body(op)
                    continue
                op_mask, op_falls = self._scan_op(op)
                mask |= op_mask
                falls = falls and op_falls
            elif (bit := _EXITS.get(type(op))) is not None:
                mask |= bit
                falls = False
                while block.last_op is not op:
                    _erase([terminator(block)])
                break
            if not falls:
                _erase(_rest_of(block, op.next_op))
                if block.last_op is op:
                    block.add_op(yield_(op.location))
                break
            op = op.next_op
        if not falls:
            self.never_falls.add(block)
        return mask

    def _scan_op(self, op: Operation) -> tuple[int, bool]:
        """The exits that leave `op`, and whether what follows it is reached."""
        mask = 0
        falls = True
        touched = len(self.touched)
        if isinstance(op, _LOOPS):
            body = op.body.block
            if inner := self._scan(body):
                self.leaving[op] = inner
                self.touched.add(op)
                mask = inner & _RETURN
        elif isinstance(op, stan.IfOp):
            then, otherwise = op.then.block, op.otherwise.block
            mask = self._scan(then) | self._scan(otherwise)
            falls = not (then in self.never_falls and otherwise in self.never_falls)
        elif isinstance(op, stan.ProfileOp):
            mask = self._scan(op.body.block)
            falls = op.body.block not in self.never_falls
        if mask:
            self.exits[op] = mask
        if mask or len(self.touched) > touched:
            self.touched.add(op)
        return mask, falls

    # ------------------------------------------------------------ functions

    def _function(self, function: stan.FuncOp) -> None:
        is_density = "library" in function.properties and kind_of(function.stan_name.data).is_density
        if is_density and self._returns_are_guards():
            for op in ops_of(self.block):
                if op in self.touched and op not in self.exits:
                    self._structure_op(op)
            return
        last = self.block.last_op
        ends_in_return = last is not None and type(last) is stan.ReturnOp
        frame = _Frame()
        self.frames.append(frame)
        self._structure(self.block)
        self.frames.pop()
        if (last := self.block.last_op) is not None and type(last) is stan.YieldOp:
            self.block.erase_op(last)
        if not (ends_in_return and len(frame.markers) == 1 and frame.markers[0].parent is self.block):
            self._single_return(function, frame)

    def _returns_are_guards(self) -> bool:
        """Whether the only exits are a last `return` and, at the top level, `if (c) return v;`."""
        last = self.block.last_op
        if last is None or type(last) is not stan.ReturnOp:
            return False
        for op in self.block.ops:
            if op not in self.exits:
                continue
            if not isinstance(op, stan.IfOp) or op in self.leaving:
                return False
            then, otherwise = op.then.block, op.otherwise.block
            if type(then.last_op) is not stan.ReturnOp or type(otherwise.first_op) is not stan.YieldOp:
                return False
            if any(inner in self.exits or type(inner) is stan.AssignOp for inner in then.ops):
                return False
        return True

    def _single_return(self, function: stan.FuncOp, frame: _Frame) -> None:
        """Replaces the returns by assignments to `result__`, and returns that at the end."""
        outputs = function.function_type.outputs.data
        location = function.location
        result = declare(RESULT, outputs[0], location) if outputs else None
        for marker in frame.markers:
            block = marker.parent
            assert block is not None
            if result is not None:
                block.insert_op_before(
                    assign(result.results[0], marker.operands[0], marker.location), marker)  # fmt: skip
            self._clear(frame.running, marker)
            block.erase_op(marker)
        self._declare_flag(frame.running, self.block, self.block.first_op)
        if result is None:
            self.block.add_op(stan.ReturnOp(location=location))
            return
        if self.block.first_op is None:
            self.block.add_op(result)
        else:
            self.block.insert_op_before(result, self.block.first_op)
        current = read(result.results[0], location)
        self.block.add_ops((current, stan.ReturnOp(current.res, location=location)))

    # ------------------------------------------------------------ statements

    def _structure(self, block: Block) -> None:
        """Structures the statements of `block`; exits become markers, and what follows them is made conditional."""
        self._nest_rests(block)
        op = block.first_op
        while op is not None:
            following = op.next_op
            if type(op) in _EXITS:
                self._mark(op)
                if following is None:
                    block.add_op(yield_(op.location))
                return
            if op in self.touched:
                exits = self.exits.get(op, 0)
                if exits and isinstance(op, stan.IfOp) and self._absorb_rest(block, op):
                    return
                self._structure_op(op)
                if exits:
                    self._guard_rest(block, following, exits)
                    return
            op = following

    def _structure_op(self, op: Operation) -> None:
        """Structures what is inside `op`."""
        if isinstance(op, stan.ForOp | stan.ForEachOp):
            self._for(op)
        elif isinstance(op, stan.WhileOp):
            self._while(op)
        else:
            for region in op.regions:
                self._structure(region.block)

    def _nest_rests(self, block: Block) -> None:
        """What follows each `if` with one branch that leaves moves into its other branch: of many in a row the last one
        first, so that each op is moved once.
        """
        absorbing: list[stan.IfOp] = []
        op = block.first_op
        while op is not None and type(op) not in _EXITS:
            if op in self.touched and self.exits.get(op, 0):
                if not isinstance(op, stan.IfOp) or self._leaves(op.then) == self._leaves(op.otherwise):
                    break
                absorbing.append(op)
            op = op.next_op
        for branch in reversed(absorbing):
            if rest := _rest_of(block, branch.next_op):
                other = branch.otherwise if self._leaves(branch.then) else branch.then
                _move_to_end(rest, other.block, branch.location)

    def _leaves(self, region: Region) -> bool:
        return region.block in self.never_falls

    def _absorb_rest(self, block: Block, op: stan.IfOp) -> bool:
        """If a branch of `op` always leaves: structures both, one of which has what follows (`_nest_rests`)."""
        then_leaves, otherwise_leaves = self._leaves(op.then), self._leaves(op.otherwise)
        if not then_leaves and not otherwise_leaves:
            return False
        if then_leaves and otherwise_leaves:
            _erase(_rest_of(block, op.next_op))
        self._structure(op.then.block)
        self._structure(op.otherwise.block)
        if block.last_op is op:
            block.add_op(yield_(op.location))
        return True

    def _guard_rest(self, block: Block, first: Operation | None, exits: int) -> None:
        """Makes `first` and what follows depend on the flag that `exits` clear."""
        rest = _rest_of(block, first)
        if not rest:
            return
        location = rest[0].location
        flag = self.frames[-1].flag(exits)
        current = read(flag.variable(location), location)
        then = Block()
        guard = stan.IfOp(current.res, Region(then), Region(Block((yield_(location),))), location=location)
        block.insert_op_before(current, rest[0])
        _move_to_end(rest, then, location)
        block.insert_op_after(guard, current)
        if guard.next_op is None:
            block.add_op(yield_(location))
        self._structure(then)

    def _mark(self, op: Operation) -> None:
        """Notes an exit with the bodies that it leaves."""
        if type(op) is stan.ReturnOp:
            for frame in self.frames:
                frame.markers.append(op)
        else:
            self.frames[-1].markers.append(op)

    # ------------------------------------------------------------ loops

    def _enter(self, body: Block) -> _Frame:
        """Structures the body of a loop."""
        frame = _Frame()
        self.frames.append(frame)
        self._structure(body)
        self.frames.pop()
        return frame

    def _leave(self, frame: _Frame, body: Block) -> None:
        """Lets the exits in `body` clear the flags that are tested; break and continue are done with."""
        for marker in frame.markers:
            if type(marker) is not stan.ContinueOp:
                self._clear(frame.running, marker)
            self._clear(frame.proceed, marker)
            if type(marker) is not stan.ReturnOp:
                assert marker.parent is not None
                marker.parent.erase_op(marker)
        self._declare_flag(frame.proceed, body, body.first_op)

    @staticmethod
    def _clear(flag: _Flag, marker: Operation) -> None:
        if flag.declaration is None:
            return
        zero = constant(0, marker.location)
        assert marker.parent is not None
        marker.parent.insert_ops_before(
            (zero, assign(flag.declaration.results[0], zero.results[0], marker.location)), marker)  # fmt: skip

    @staticmethod
    def _declare_flag(flag: _Flag, block: Block, before: Operation | None) -> None:
        """Declares `flag`, if it is tested, with value 1."""
        if flag.declaration is None:
            return
        location = flag.declaration.location
        one = constant(1, location)
        ops = (flag.declaration, one, assign(flag.declaration.results[0], one.results[0], location))
        if before is None:
            block.add_ops(ops)
        else:
            block.insert_ops_before(ops, before)

    def _while(self, loop: stan.WhileOp) -> None:
        """`while (c) body`  →  `while (running && c) body`, if it can be left."""
        body = loop.body.block
        frame = self._enter(body)
        if self.leaving.get(loop, 0) & (_BREAK | _RETURN):
            location = loop.location
            variable = frame.running.variable(location)
            assert loop.parent is not None
            self._declare_flag(frame.running, loop.parent, loop)
            condition = loop.condition.block
            end = condition.last_op
            assert isinstance(end, stan.ConditionOp)
            right = Block()
            for op in ops_of(condition)[:-1]:
                op.detach()
                right.add_op(op)
            right.add_op(yield_(end.location, end.condition))
            current = read(variable, location)
            both = stan.AndOp(current.res, Region(right), location=end.location)
            condition.insert_ops_before((current, both), end)
            end.operands = both.results
        self._leave(frame, body)

    def _for(self, loop: stan.ForOp | stan.ForEachOp) -> None:
        body = loop.body.block
        exits = self.leaving.get(loop, 0)
        if exits & (_BREAK | _RETURN):
            self._for_to_while(loop, exits)
        else:
            self._leave(self._enter(body), body)

    def _for_to_while(self, loop: stan.ForOp | stan.ForEachOp, exits: int) -> None:
        """See the module's docstring for the form."""
        location = loop.location
        before, lower, upper, container = _bounds(loop)
        frame = _Frame()
        running = frame.running.variable(location)
        name = loop.variable.data if container is None else "position__"
        index = declare(name, stan.INT, location)
        enters = stan.BINARY_OPERATORS["<="](lower, upper, stan.INT, location=location)
        assert frame.running.declaration is not None
        before += [
            index,
            assign(index.results[0], lower, location),
            frame.running.declaration,
            enters,
            assign(running, enters.results[0], location),
        ]

        region = loop.detach_region(loop.body)
        body = region.block
        current = read(index.results[0], location)
        first: list[Operation] = [current]
        element = current.results[0]
        if container is not None:
            first.append(stan.IndexOp(container, ("single",), (element,), body.args[0].type, location=location))
            element = first[-1].results[0]
        element.name_hint = loop.variable.data
        body.args[0].replace_all_uses_with(element)
        body.erase_arg(body.args[0])
        self._structure_counted(
            frame, body, exits, _Step(current.results[0], upper, index.results[0], running, location)
        )
        assert body.first_op is not None
        body.insert_ops_before(first, body.first_op)

        test = read(running, location)
        condition = Block((test, stan.ConditionOp(test.res, location=location)))
        before.append(stan.WhileOp(Region(condition), region, location=location))
        assert loop.parent is not None
        loop.parent.insert_ops_before(before, loop)
        loop.parent.erase_op(loop)

    def _structure_counted(self, frame: _Frame, body: Block, exits: int, step: _Step) -> None:
        """Structures the body of a former `for` and gives it the step to the next iteration.

        Without `continue` the step is one more statement at the end; with it, it runs unless the loop was left.
        """
        self.frames.append(frame)
        if exits & _CONTINUE:
            self._structure(body)
            location = step.location
            test = read(step.running, location)
            then = Block((*step.ops(), yield_(location)))
            guard = stan.IfOp(test.res, Region(then), Region(Block((yield_(location),))), location=location)
            assert body.last_op is not None
            body.insert_ops_before((test, guard), body.last_op)
        else:
            if body not in self.never_falls:
                assert body.last_op is not None
                body.insert_ops_before(step.ops(), body.last_op)
            self._structure(body)
        self.frames.pop()
        self._leave(frame, body)


@record
class _Step:
    """`running = current < upper; index = current + 1;`"""

    current: SSAValue
    upper: SSAValue
    index: SSAValue
    running: SSAValue
    location: LocationAttr

    def ops(self) -> list[Operation]:
        location = self.location
        more = stan.BINARY_OPERATORS["<"](self.current, self.upper, stan.INT, location=location)
        one = constant(1, location)
        advanced = stan.BINARY_OPERATORS["+"](self.current, one.res, stan.INT, location=location)
        return [
            more,
            assign(self.running, more.results[0], location),
            one,
            advanced,
            assign(self.index, advanced.results[0], location),
        ]


def _bounds(loop: stan.ForOp | stan.ForEachOp) -> tuple[list[Operation], SSAValue, SSAValue, SSAValue | None]:
    """Ops to put before the loop, lower and upper bound, and the container of a for-each.

    A matrix is visited column by column, as `to_vector` lays it out.
    """
    if isinstance(loop, stan.ForOp):
        return [], loop.lower, loop.upper, None
    location = loop.location
    before: list[Operation] = []
    container = loop.container
    if container.type == stan.MATRIX:
        before.append(_call("to_vector", container, stan.VECTOR, location))
        container = before[-1].results[0]
    one = constant(1, location)
    size = _call("size", container, stan.INT, location)
    return [*before, one, size], one.results[0], size.results[0], container


def _call(name: str, argument: SSAValue, type_: Attribute, location: LocationAttr) -> stan.CallOp:
    return stan.CallOp(name, (argument,), type_, (0,), location=location)
