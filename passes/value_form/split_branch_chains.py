"""Long chains of branches, as `if ... else if ... else if ...`, become groups one after the other.

    if (c1) S1; else if (c2) S2; ... else if (c40) S40; else R;  →  rest = 0;
                                                                    if (c1) S1; ... else if (c40) S40; else rest = 1;
                                                                    if (rest) R;

What is nested as deep as a chain is long takes time in proportion to the square of the length: in reverse mode, where
each level keeps what all deeper ones need, and in LLVM. The same happens to `c1 ? e1 : c2 ? e2 : ...`, whose value is
assigned to a variable then, and to what `structure-exits` nests, as many `if (c) return e;` in a row.

The variable form without exits: from `structure-exits` to `promote-variables`.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.bodies import bodies
from ulam.passes.analysis.free_values import free_values
from ulam.passes.analysis.nesting import block_of, terminator
from ulam.passes.variable_form import DECLARATIONS, LAZY, assign, constant, declare, read, yield_

LONGEST = 40
"""Branches of a group. Shorter chains stay as they are."""

Branch = stan.IfOp | stan.SelectOp


class SplitBranchChains(ModulePass):
    """Makes groups, one after the other, of long chains of `else if` and `?:`."""

    name = "split-branch-chains"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op)


def run_on(op: Operation) -> None:
    """Splits the chains of all functions and blocks at or below `op`."""
    for body in bodies(op):
        branches = [inner for inner in ops_within(body) if isinstance(inner, Branch)]
        if len(branches) <= LONGEST:
            continue
        choices = [inner for inner in branches if isinstance(inner, stan.SelectOp)]
        for choice in [choice for choice in choices if _is_head(choice) and _is_long(choice)]:
            if not _is_declared_with(choice.res):
                _assign_chosen(choice)
        statements = [inner for inner in ops_within(body) if type(inner) is stan.IfOp]
        for statement in [statement for statement in statements if _is_head(statement) and _is_long(statement)]:
            _split(statement)


# ---------------------------------------------------------------- chains


def _next(branch: Branch) -> tuple[Block, Branch] | None:
    """The last thing that one of the regions of `branch` does, if that is a branch, too, and the region's block."""
    for region in (branch.otherwise, branch.then):
        block = region.block
        end = terminator(block)
        inner = end.prev_op
        # Guards of library densities end in a return.
        if type(end) is stan.YieldOp and type(inner) is type(branch) and isinstance(inner, Branch):
            if isinstance(inner, stan.SelectOp) and tuple(end.operands) != tuple(inner.results):
                continue
            return block, inner
    return None


def _is_head(branch: Branch) -> bool:
    """Whether no chain comes to `branch`; of choices, also whether it stands where statements may."""
    block, parent = branch.parent, branch.parent_op()
    assert block is not None
    if isinstance(branch, stan.SelectOp):
        if isinstance(parent, LAZY):
            return False  # in a chain, or where only expressions stand
        return not (isinstance(parent, stan.WhileOp) and parent.condition.block is block)
    if not isinstance(parent, stan.IfOp):
        return True
    following = _next(parent)
    return following is None or following[1] is not branch


def _is_long(branch: Branch) -> bool:
    length, following = 1, _next(branch)
    while following is not None and length <= LONGEST:
        length, following = length + 1, _next(following[1])
    return length > LONGEST


# ---------------------------------------------------------------- choices


def _is_declared_with(value: SSAValue) -> bool:
    """Whether a size or bound of a declaration is computed from `value`: units evaluate it without statements."""
    pending, seen = [value], {value}
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            if type(user) in DECLARATIONS:
                return True
            parent = user.parent_op() if isinstance(user, stan.YieldOp | stan.ConditionOp) else user
            new = [] if parent is None else [result for result in parent.results if result not in seen]
            seen.update(new)
            pending += new
    return False


def _assign_chosen(head: stan.SelectOp) -> None:
    """`stan.select`s to the end of the chain  →  `stan.if`s that assign what is chosen."""
    block = head.parent
    assert block is not None
    variable = declare("chosen__", head.res.type, head.location)
    block.insert_op_before(variable, head)
    chosen = read(variable.results[0], head.location)
    block.insert_op_after(chosen, head)
    head.res.replace_all_uses_with(chosen.results[0])
    pending = [head]
    while pending:
        select = pending.pop()
        inner = _next(select)
        for region in (select.then, select.otherwise):
            if inner is not None and region.block is inner[0]:
                _end(region.block, None, variable.results[0])
                pending.append(inner[1])  # pyright: ignore[reportArgumentType]
            else:
                _end(region.block, terminator(region.block).operands[0], variable.results[0])
        _as_statement(select)


def _end(block: Block, value: SSAValue | None, variable: SSAValue) -> None:
    """Ends a region without a value, which is assigned."""
    end = terminator(block)
    if value is not None:
        block.insert_op_before(assign(variable, value, end.location), end)
    block.insert_op_before(yield_(end.location), end)
    block.erase_op(end)


def _as_statement(select: stan.SelectOp) -> None:
    block = select.parent
    assert block is not None
    then, otherwise = (select.detach_region(region) for region in list(select.regions))
    statement = stan.IfOp(select.condition, then, otherwise, location=select.location)
    block.insert_op_before(statement, select)
    block.erase_op(select)


# ---------------------------------------------------------------- groups


def _split(head: stan.IfOp) -> None:
    """Moves what is nested more than `LONGEST` deep behind `head`, and so on with that."""
    outer, behind = head.parent, head
    assert outer is not None
    around: set[Block] = set()  # blocks of the current group, whose values what is moved cannot have
    length, following = 1, _next(head)
    while following is not None:
        block, inner = following
        around.add(block)
        region = block.parent
        assert region is not None and isinstance(inner, stan.IfOp)
        if length >= LONGEST and not any(block_of(value) in around for value in free_values(region)):
            behind, moved = _move_behind(block, inner, head, behind, outer)
            around, length = {moved}, 0
        length, following = length + 1, _next(inner)


def _move_behind(
    block: Block, inner: stan.IfOp, head: stan.IfOp, behind: stan.IfOp, outer: Block
) -> tuple[stan.IfOp, Block]:
    """What `block` does is done behind `behind` if a flag was set there; the new branch, and the block of it."""
    location = inner.location
    flag = declare("rest__", stan.INT, location)
    none = constant(0, location)
    outer.insert_ops_before((flag, none, assign(flag.results[0], none.results[0], location)), head)
    ops = [op for op in block.ops if op is not block.last_op]
    then = Block()
    for op in ops:
        op.detach()
        then.add_op(op)
    then.add_op(yield_(location))
    end, one = terminator(block), constant(1, location)
    block.insert_ops_before((one, assign(flag.results[0], one.results[0], location)), end)
    is_set = read(flag.results[0], location)
    guard = stan.IfOp(is_set.res, Region(then), Region(Block((yield_(location),))), location=location)
    outer.insert_ops_after((is_set, guard), behind)
    return guard, then
