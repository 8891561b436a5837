"""Building and reading the variable form of the `stan` dialect: what the passes of the levels share.

In the variable form an expression is a tree of ops that stand in the block where the expression is evaluated, in the
order of evaluation; a variable is read where its value is used. Values never change: a read that stands before an
assignment keeps the value from before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    LocationAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from ulam.dialects import stan
from ulam.dialects.walk import ops_within, parent_of
from ulam.passes.analysis.bodies import bodies
from ulam.passes.analysis.nesting import enclosing, terminator
from ulam.passes.rewriting import discard, replace_uses

_LOCAL = UnitAttr()

Variable = stan.DeclareOp | stan.ParameterOp
DECLARATIONS = frozenset[type]((stan.DeclareOp, stan.ParameterOp))
"""The classes of `Variable`. `type(op) in ...`: a third of the time of `isinstance`, where all ops come by."""
DEFINES_VARIABLES = DECLARATIONS | {stan.GlobalOp}
LOOPS = (stan.ForOp, stan.ForEachOp, stan.WhileOp)
LAZY = (stan.SelectOp, stan.AndOp, stan.OrOp)
EXITS = frozenset[type]((stan.BreakOp, stan.ContinueOp, stan.ReturnOp))


# ---------------------------------------------------------------- building


def constant(value: int | float, location: LocationAttr) -> stan.ConstantOp:
    """An int or a real literal, by the type of `value`."""
    return stan.ConstantOp(value, location=location)


def declare(name: str, type_: Attribute, location: LocationAttr, sizes: Sequence[SSAValue] = ()) -> stan.DeclareOp:
    """A local variable. A container declared without sizes takes those of what is assigned to it."""
    return stan.DeclareOp(name, type_, sizes, local=True, location=location)


def assign(variable: SSAValue, value: SSAValue, location: LocationAttr) -> stan.AssignOp:
    """`variable = value`, the whole variable."""
    return stan.AssignOp(variable, value, location=location)


def read(variable: SSAValue, location: LocationAttr) -> stan.ReadOp:
    """The value of a variable."""
    return stan.ReadOp(variable, location=location)


def yield_(location: LocationAttr, *values: SSAValue) -> stan.YieldOp:
    """Ends a region."""
    return stan.YieldOp(*values, location=location)


class FreshNames:
    """Names of variables that a pass makes: `lcm_sym3__`. No name of the program ends in `__`, none is given twice."""

    def __init__(self, root: Operation) -> None:
        self._root = root
        self._taken: set[str] | None = None  # found when the first name is asked for
        self._count = 0

    def fresh(self, prefix: str) -> str:
        """The next free `<prefix>_sym<n>__`."""
        if self._taken is None:
            own = (body for body in bodies(self._root) if "library" not in body.properties)
            variables = (op for body in own for op in ops_within(body) if isinstance(op, Variable))
            self._taken = {op.var_name.data for op in variables if op.var_name.data.endswith("__")}
        while True:
            self._count += 1
            name = f"{prefix}_sym{self._count}__"
            if name not in self._taken:
                self._taken.add(name)
                return name


# ---------------------------------------------------------------- reading


def settle_sizes(declaration: stan.DeclareOp) -> None:
    """After an assignment went: a container that takes the sizes of what is assigned is empty if nothing is any more.
    Only what is never reached reads it."""
    if not declaration.takes_assigned_sizes:
        return
    uses = (use.operation for use in declaration.res.uses)
    if any(isinstance(use, stan.AssignOp) and not use.kinds.data for use in uses):
        return
    zero = constant(0, declaration.location)
    assert declaration.parent is not None
    declaration.parent.insert_op_before(zero, declaration)
    declaration.take_sizes([zero.res] * stan.dimensions(declaration.res.type.element))


def write_out_literals(within: Operation) -> None:
    """An op for each number of the long literals, and one for each of their parts, as of short ones."""
    for op in [inner for inner in ops_within(within) if isinstance(inner, stan.LiteralOp)]:
        parts: list[Operation] = [constant(number, op.location) for number in op.numbers]
        made = list(parts)
        for level, size in reversed(list(enumerate(op.shape))):
            type_ = stan.indexed(op.res.type, ("single",) * level)
            assert type_ is not None
            make = stan.ArrayOp if isinstance(type_, stan.ArrayType) else stan.RowVectorOp
            parts = [
                make([part.results[0] for part in parts[k : k + size]], type_, location=op.location)
                for k in range(0, len(parts), size)
            ]
            made += parts
        assert op.parent is not None
        op.parent.insert_ops_before(made, op)
        replace_uses(op.res, made[-1].results[0])
        discard(op)


def literal_of(value: SSAValue) -> int | float | None:
    """The number that an expression is: a literal, perhaps promoted, else None."""
    op = value.op if type(value) is OpResult else None
    cls = type(op)
    if cls is stan.ConstantOp:
        assert isinstance(op, stan.ConstantOp)
        number = op.properties["value"]
        return number.value.data if isinstance(number, (IntegerAttr, FloatAttr)) else None
    if cls is stan.PromoteOp and value.type == stan.REAL:
        assert isinstance(op, stan.PromoteOp)
        inner = literal_of(op.operands[0])
        return float(inner) if inner is not None else None
    return None


def is_statement(op: Operation) -> bool:
    """Whether an op stands for a statement (a declaration, assignment, loop, ...), not for part of an expression."""
    return not op.results or type(op) in DECLARATIONS


def is_global(declaration: Variable) -> bool:
    """Whether other blocks see a declared variable, or the program's output has it."""
    parent = parent_of(declaration)
    return type(parent) is stan.BlockOp and parent.kind.data != "model" and "local" not in declaration.properties


def is_tree(op: Operation) -> bool:
    """Whether an op is part of an expression and only that: it has results, and is neither declaration nor global."""
    return bool(op.results) and type(op) not in DEFINES_VARIABLES


def erase_unused(values: Iterable[SSAValue]) -> None:
    """Erases expressions that nothing uses any more and that have no effect but reading, leaves last."""
    pending = [value.owner for value in values]
    while pending:
        op = pending.pop()
        if isinstance(op, Block) or op.parent is None or not is_tree(op):
            continue
        if any(result.first_use is not None for result in op.results):
            continue
        if stan.effects_within(op) & ~stan.Effect.READS_VAR:
            continue
        operands = [operand.owner for inner in ops_within(op) for operand in inner.operands]
        block = op.parent
        block.erase_op(op)
        pending += operands


def errors_are_retold(op: Operation) -> bool:
    """Whether the text of an error at `op` comes from the unoptimised program.

    True in transformed parameters and model: an evaluation that fails there is run again as it was written (unit
    `locate`). A rewrite may then change an error's text, though not whether there is one.
    """
    bodies_ = (stan.BlockOp, stan.FuncOp)
    parent = op if isinstance(op, bodies_) else enclosing(op, bodies_)
    return type(parent) is stan.BlockOp and parent.kind.data in ("transformed_parameters", "model")


def mark_local(op: Operation) -> None:
    """Says of a declaration that moved to the top level of a program block that other blocks do not see it."""
    if isinstance(op, stan.DeclareOp):
        op.properties["local"] = _LOCAL


def splice_body(op: stan.ScopeOp | stan.ProfileOp) -> Operation | None:
    """Puts the ops of a local block in its place, as the frontend does; returns the op that is now where `op` was.

    What it declares at the top level of a program block is marked local. A closing yield goes with the block, and what
    follows a block that is left with `return`, `break` or `continue` is never reached and goes, too.
    """
    parent, body = op.parent, op.body.block
    assert parent is not None and not op.results
    local = isinstance(op.parent_op(), stan.BlockOp)
    ops = [inner for inner in body.ops if type(inner) is not stan.YieldOp]
    for inner in ops:
        inner.detach()
        parent.insert_op_before(inner, op)
        if local:
            mark_local(inner)
    following = ops[0] if ops else op.next_op
    parent.erase_op(op)
    if ops and type(ops[-1]) in EXITS:
        while (last := terminator(parent)) is not ops[-1]:
            parent.erase_op(last)
    return following
