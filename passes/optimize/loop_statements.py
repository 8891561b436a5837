"""The statements of a loop's body, and what of the variables each touches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes import variable_form as form
from ulam.passes.analysis.linear_forms import LinearForm
from ulam.passes.analysis.nesting import ancestor_in
from ulam.passes.optimize.loop_span import LoopSpan
from ulam.passes.rewriting import discard

_Place = tuple[int, LinearForm]
"""A dimension, and the `c` of the `n + c` that it is indexed by."""


@record(eq=False, repr=False)
class LoopStatement:
    """One statement: `root` with the expressions that it alone uses, which stand before it."""

    root: Operation
    number: int
    ops: list[Operation]
    accesses: Counter[SSAValue] = field(default_factory=Counter)  # reads and assignments of each variable
    written: set[SSAValue] = field(default_factory=set)

    def __post_init__(self) -> None:
        for op in self.ops:
            for inner in ops_within(op):
                if isinstance(inner, stan.DeclareOp):
                    self.accesses[inner.results[0]] += 1
                    self.written.add(inner.results[0])
                for operand in inner.operands:
                    if isinstance(operand.type, stan.VarType):
                        self.accesses[operand] += 1
                if isinstance(inner, stan.AssignOp):
                    self.written.add(inner.operands[0])

    @property
    def touched(self) -> list[SSAValue]:
        """The variables that it reads, assigns or declares, each once."""
        return list(self.accesses)

    @property
    def is_declaration(self) -> bool:
        return isinstance(self.root, stan.DeclareOp)

    @property
    def is_local(self) -> bool:
        """Whether it is of use only to other statements of the body: the declaration of a variable or its value."""
        root = self.root
        if isinstance(root, stan.AssignOp):
            owner = root.operands[0].owner
            return isinstance(owner, Operation) and owner.parent is root.parent
        return self.is_declaration

    def depends_on(self, touched: dict[SSAValue, bool]) -> bool:
        """Whether it has to keep its order to what touches variables: variable → whether it assigns."""
        return any(v in touched and (touched[v] or v in self.written) for v in self.accesses)

    def note(self, touched: dict[SSAValue, bool]) -> None:
        """Adds what it does itself."""
        for variable in self.accesses:
            touched[variable] = touched.get(variable, False) or variable in self.written

    def erase(self) -> None:
        """Takes it out of the loop."""
        for op in reversed(self.ops):
            discard(op)


def statements_of(loop: stan.ForOp) -> list[LoopStatement] | None:
    """The statements of a loop's body; None if an expression does not stand right before the statement it is for."""
    block = loop.body.block
    found: list[LoopStatement] = []
    ops: list[Operation] = []
    for op in block.ops:
        if isinstance(op, stan.YieldOp):
            break
        ops.append(op)
        if form.is_tree(op) and any(result.first_use is not None for result in op.results):
            continue
        if not _is_closed(ops, block):
            return None
        found.append(LoopStatement(op, len(found), ops))
        ops = []
    return found if not ops else None


def _is_closed(ops: Sequence[Operation], block: Block) -> bool:
    """Whether the expressions among `ops` are used by `ops` only."""
    inside = set(ops)
    return all(
        ancestor_in(use.operation, block) in inside
        for op in ops
        if form.is_tree(op)
        for result in op.results
        for use in result.uses
    )


def variables_in_place(statements: Sequence[LoopStatement], span: LoopSpan) -> dict[SSAValue, str | None]:
    """For each variable that the body assigns: None if all accesses of an iteration are at `[n + c]`, always with the
    same `c` in the same dimension; else why not, as far as it can be told (or an empty text)."""
    places: dict[SSAValue, _Place] = {}
    found: dict[SSAValue, str | None] = dict.fromkeys(span.written)
    for statement in statements:
        for op in statement.ops:
            for inner in ops_within(op):
                for variable, kinds, indices in _accesses(inner):
                    if variable not in span.written or found[variable] is not None:
                        continue
                    place = _place(kinds, indices, span)
                    if place is None:
                        found[variable] = _told(variable, kinds, span)
                    elif places.setdefault(variable, place) != place:
                        found[variable] = _elsewhere(variable, places[variable], place, span)
    return found


def _accesses(op: Operation) -> list[tuple[SSAValue, Sequence[StringAttr], Sequence[SSAValue]]]:
    """The accesses that an op makes: of an assignment its own, of a read those of the indexing that uses it."""
    if isinstance(op, stan.AssignOp):
        return [(op.operands[0], op.kinds.data, op.operands[2:])]
    if not isinstance(op, stan.ReadOp):
        return []
    variable = op.operands[0]
    uses = [use.operation for use in op.results[0].uses]
    return [
        (variable, user.kinds.data, user.operands[1:])
        if isinstance(user, stan.IndexOp) and user.operands[0] is op.results[0]
        else (variable, (), ())
        for user in uses
    ]


def _place(kinds: Sequence[StringAttr], indices: Sequence[SSAValue], span: LoopSpan) -> _Place | None:
    """The first dimension that is indexed by `n + c`, with `c`."""
    position = 0
    number = span.facts.form(span.index)
    for dimension, kind in enumerate(kinds):
        if kind.data == "single":
            rest = span.facts.form(indices[position]).plus(number, -1)
            if not any(_moves(atom, span) for atom, _ in rest.terms):
                return dimension, rest
        position += stan.variables.INDEX_OPERANDS[kind.data]
    return None


def _moves(atom: object, span: LoopSpan) -> bool:
    """Whether an atom may have another value in each iteration."""
    if isinstance(atom, tuple):
        return any(_moves(part, span) for part in _parts(atom))
    if not isinstance(atom, SSAValue):
        return False
    owner = atom.owner
    inside = owner.parent_op() if isinstance(owner, Block) else owner
    return inside is span.loop or (inside is not None and span.loop.is_ancestor(inside))


def _parts(atom: tuple[object, ...]) -> list[object]:
    """The atoms within a product."""
    parts: list[object] = []
    for part in atom:
        if isinstance(part, SSAValue):
            parts.append(part)
        elif isinstance(part, frozenset):
            parts += [inner for factor in part if isinstance(factor, LinearForm) for inner, _ in factor.terms]
    return parts


def _told(variable: SSAValue, kinds: Sequence[StringAttr], span: LoopSpan) -> str:
    """What is wrong with an access that is not at `[n + c]`; empty for scalars."""
    name, n = name_of(variable), span.loop.variable.data
    if kinds:
        return f"{name} is not used at {name}[{n}] only"
    return f"all of {name} is used, which the loop assigns" if _is_container(variable) else ""


def _elsewhere(variable: SSAValue, one: _Place, other: _Place, span: LoopSpan) -> str:
    """What is wrong with two accesses that are at different places."""
    name, n = name_of(variable), span.loop.variable.data
    for dimension, rest in (other, one):
        if dimension == 0 and rest.constant and not rest.terms:
            sign = "-" if rest.constant < 0 else "+"
            return f"{name}[{n} {sign} {abs(rest.constant)}] depends on another iteration"
    return f"{name} is not used at {name}[{n}] only"


def name_of(variable: SSAValue) -> str:
    """The name of a variable."""
    op = variable.owner
    assert isinstance(op, Operation)
    name = op.properties.get("var_name")
    return name.data if isinstance(name, StringAttr) else "a variable"


def _is_container(variable: SSAValue) -> bool:
    assert isinstance(variable.type, stan.VarType)
    return stan.dimensions(variable.type.element) > 0
