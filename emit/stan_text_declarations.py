"""What printing as Stan asks of declarations: what defines them, who sees them, and how far a local scope reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator

from ulam.dialects import stan
from ulam.emit.stan_text_expressions import EXPRESSIONS
from ulam.library.externals import is_external

DECLARATIONS = (stan.DeclareOp, stan.ParameterOp)


def definition_of(op: stan.DeclareOp | stan.ParameterOp) -> Operation | None:
    """The assignment that directly follows a declaration, to be written in one line with it."""
    later = op.next_op
    while later is not None and later.results and type(later) in EXPRESSIONS:
        if op.results[0] in later.operands:
            return None
        later = later.next_op
    if isinstance(later, stan.AssignOp) and later.operands[0] is op.results[0] and not later.kinds.data:
        return later
    return None


def is_global(op: Operation) -> bool:
    return isinstance(op, DECLARATIONS) and "local" not in op.properties and isinstance(op.parent_op(), stan.BlockOp)


def is_output(op: Operation) -> bool:
    """Whether a variable is one of a block that others see, or that is put out."""
    block = op.parent_op()
    return is_global(op) and isinstance(block, stan.BlockOp) and block.kind.data != "model"


def hands_on(body: Block) -> bool:
    """Whether a function does nothing but hand its arguments on to an external one."""
    first = body.first_op
    return isinstance(first, stan.CallOp) and is_external(first.callee.data) and first.next_op is body.last_op


def declared_tuples(ops: Iterable[Operation]) -> dict[Operation, list[stan.DeclareOp | stan.ParameterOp]]:
    """The fields of each tuple that is declared for others to see, by the first of them."""
    found: dict[str, list[stan.DeclareOp | stan.ParameterOp]] = {}
    for op in ops:
        if isinstance(op, DECLARATIONS) and op.field_ranks is not None and is_output(op):
            found.setdefault(op.var_name.data.partition(".")[0], []).append(op)
    return {fields[0]: fields for fields in found.values()}


def can_declare_first(block: stan.BlockOp) -> bool:
    """Whether the sizes of a block's global variables depend on earlier blocks only."""
    ops = block.body.block.ops
    if any(isinstance(op, stan.DefineOp) for op in ops):
        return False
    pending = [size.owner for op in ops if is_global(op) for size in op.operands]
    while pending:
        op = pending.pop()
        if isinstance(op, Block) or op.regions or isinstance(op, DECLARATIONS):
            return False
        pending += [operand.owner for operand in op.operands]
    return True


class LocalScopes:
    """Where `{` and `}` go around variables that are local although declared at the top level of a block.

    A scope reaches to the last use of what it declares. Where a global variable is declared in between, there is none.
    """

    def __init__(self, block: Block, needs_braces: Callable[[Operation], bool], *, is_needed: bool = True) -> None:
        self.first: set[Operation] = set()
        self.last: set[Operation] = set()
        ops = list(block.ops)
        parent = block.parent_op()
        has_globals = isinstance(parent, stan.BlockOp) and parent.kind.data != "model"
        if not is_needed or not has_globals or not any(needs_braces(op) for op in ops):
            return
        places = {op: number for number, op in enumerate(ops)}
        number = 0
        while number < len(ops):
            end = self._end(ops, places, number) if needs_braces(ops[number]) else None
            if end is not None:
                self.first.add(ops[number])
                self.last.add(ops[end])
                number = end
            number += 1

    @staticmethod
    def _end(ops: list[Operation], places: dict[Operation, int], start: int) -> int | None:
        end, number = start, start
        while number <= end:
            op = ops[number]
            if isinstance(op, DECLARATIONS) and "local" not in op.properties:
                return None
            for result in op.results:
                for use in result.uses:
                    user: Operation | None = use.operation
                    while user is not None and user not in places:
                        user = user.parent_op()
                    if user is not None:
                        end = max(end, places[user])
            number += 1
        if ops[end].has_trait(IsTerminator):
            end -= 1
        return end
