"""Sums of elements: containers that loops fill for a sum alone are not made.

    vector[N] ll;
    for (n in 1:N) {                                              for (n in 1:N) {
      ll[n] = normal_lpdf(y[n] | mu, sigma);              →         real ll_sym1__ = normal_lpdf(y[n] | mu, sigma);
    }                                                               target += ll_sym1__;
    target += sum(ll);                                            }

A local container whose elements each iteration of a loop, or of a nest, touches at its own place, `ll[n]`, and that
nothing else reads but one `sum` (of a matrix or a two-dimensional array: of each row in turn), which only the target
gets: the element becomes a scalar of the iteration, and is added to the target at its end. What follows then sees a
loop that adds to the target: it is vectorised, and its derivatives need no memory. The loops must provably reach all
elements, once each. What a container begins with, `rep_vector(0, N)`, the scalar does, too.

The additions come earlier and in another order (levels 3 and 4); not where the target is read on the way.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes import variable_form as form
from ulam.passes.analysis.linear_forms import ONE, LinearForm
from ulam.passes.analysis.nesting import ancestor_in, is_before
from ulam.passes.analysis.scopes import own_bodies
from ulam.passes.analysis.sizes import SizeFacts
from ulam.passes.remarks import remark
from ulam.passes.rewriting import discard, replace_uses

_ADD, _SUB = stan.BINARY_OPERATORS["+"], stan.BINARY_OPERATORS["-"]
_NEG = stan.UNARY_OPERATORS["-"]
_FILLED = ("rep_vector", "rep_row_vector", "rep_matrix", "rep_array")
_EXITS = stan.Effect.LEAVES_LOOP | stan.Effect.RETURNS | stan.Effect.PROFILES | stan.Effect.READS_TARGET


class SumsOfElements(ModulePass):
    """Adds to the target in loops what containers would be summed up for."""

    name = "sums-of-elements"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """All programs of a module."""
        for program in op.body.block.ops:
            if isinstance(program, stan.ProgramOp):
                run_on(program)


def run_on(program: stan.ProgramOp) -> bool:
    """Treats the containers of a program; whether there were any."""
    sums = [
        (body, op)
        for body in own_bodies(program)
        for op in ops_within(body)
        if isinstance(op, stan.CallOp) and op.callee.data == "sum" and op.user is None and _result(op).type == stan.REAL
    ]
    if not sums:
        return False
    facts, names = SizeFacts(program), form.FreshNames(program)
    changed = False
    for body, op in sums:
        if not any(stan.effects_of(inner) & stan.Effect.READS_TARGET for inner in ops_within(body)):
            changed = _treat(op, facts, names) or changed
    return changed


def _treat(total: stan.CallOp, facts: SizeFacts, names: form.FreshNames) -> bool:
    """Puts the additions of one sum into the loops that make its terms; whether that may be."""
    found = _Summed.of(total)
    if found is None:
        return False
    filled = _Filled.of(found, facts)
    if isinstance(filled, str):
        subject = f"variable {found.declaration.var_name.data}"
        remark(SumsOfElements.name, total.location, subject, filled, done=False)
        return False
    filled.rewrite(names)
    message = "its elements are added to the target where they are computed"
    remark(SumsOfElements.name, total.location, f"variable {found.declaration.var_name.data}", message, done=True)
    return True


@record(eq=False, repr=False)
class _Summed:
    """A container that is summed up for the target."""

    declaration: stan.DeclareOp
    total: stan.CallOp
    read: stan.ReadOp
    row: stan.IndexOp | None  # of each row in turn
    statement: Operation  # of the declaration's block: what sums up
    addition: stan.TargetAddOp
    negative: bool

    @staticmethod
    def of(total: stan.CallOp) -> _Summed | None:
        """What `sum(ll)` or `sum(ll[n])` sums up; None if that is no local container, or not for the target."""
        row = read = total.operands[0].owner
        if isinstance(row, stan.IndexOp):
            if [kind.data for kind in row.kinds.data] != ["single"] or not row.res.has_one_use():
                return None
            read = row.value.owner
        if not isinstance(read, stan.ReadOp) or not read.results[0].has_one_use():
            return None
        declaration = read.operands[0].owner
        if not isinstance(declaration, stan.DeclareOp) or form.is_global(declaration) or declaration.parent is None:
            return None
        addition, negative = _addition(total)
        statement = ancestor_in(total, declaration.parent)
        if addition is None or statement is None:
            return None
        return _Summed(
            declaration, total, read, row if isinstance(row, stan.IndexOp) else None, statement, addition, negative
        )


def _result(call: stan.CallOp) -> SSAValue:
    return call.results[0]


def _addition(total: stan.CallOp) -> tuple[stan.TargetAddOp | None, bool]:
    """The statement that adds a number to the target, alone or as a term; and whether it is subtracted."""
    value = _result(total)
    negative = False
    while value.has_one_use():
        use = next(iter(value.uses))
        op = use.operation
        if op.parent is not total.parent:
            break
        if isinstance(op, stan.TargetAddOp):
            return (op, negative) if op.tilde is None else (None, False)
        if isinstance(op, _NEG) or (isinstance(op, _SUB) and use.index == 1):
            negative = not negative
        elif not isinstance(op, (_ADD, _SUB)):
            break
        if op.results[0].type != stan.REAL:
            break
        value = op.results[0]
    return None, False


@record(eq=False, repr=False)
class _Filled:
    """The loops that make the elements of a container."""

    summed: _Summed
    innermost: stan.ForOp
    assignments: list[stan.AssignOp]
    elements: list[stan.IndexOp]
    beginning: stan.AssignOp | None

    @staticmethod
    def of(summed: _Summed, facts: SizeFacts) -> _Filled | str:
        """The loops; or why they cannot add to the target themselves."""
        assignments: list[stan.AssignOp] = []
        elements: list[stan.IndexOp] = []
        beginning: stan.AssignOp | None = None
        for use in summed.declaration.res.uses:
            op = use.operation
            if op is summed.read:
                continue
            if isinstance(op, stan.AssignOp) and use.index == 0:
                if op.kinds.data:
                    assignments.append(op)
                elif beginning is None and _fills(op, facts):
                    beginning = op
                else:
                    return "it is assigned as a whole"
            elif isinstance(op, stan.ReadOp) and op.results[0].has_one_use():
                reader = next(iter(op.results[0].uses)).operation
                if not isinstance(reader, stan.IndexOp) or reader.value is not op.results[0]:
                    return "it is read in another place"
                elements.append(reader)
            else:
                return "it is read in another place"
        places = {(tuple(kind.data for kind in op.kinds.data), tuple(op.indices)) for op in (*assignments, *elements)}
        if not assignments or len(places) != 1:
            return "its elements are touched in several places"
        ((kinds, indices),) = places
        filled = _innermost(summed, kinds, indices, facts)
        if isinstance(filled, str):
            return filled
        found = _Filled(summed, filled, assignments, elements, beginning)
        return found._obstacle(facts) or found

    def _obstacle(self, facts: SizeFacts) -> str | None:
        """What else speaks against it."""
        block = self.summed.declaration.parent
        assert block is not None
        outer = ancestor_in(self.innermost, block)
        assert outer is not None
        accesses = (*self.assignments, *self.elements)
        if not all(self.innermost.is_ancestor(op) for op in accesses):
            return "its elements are touched in several loops"
        if not is_before(outer, self.summed.statement):
            return "it is summed up before it is made"
        if any(stan.effects_of(inner) & _EXITS for inner in ops_within(outer)):
            return "iterations of its loop may be left"
        if self.beginning is not None and (self.beginning.parent is not block or not is_before(self.beginning, outer)):
            return "it is assigned as a whole"
        return None if self._sums_all(facts) else "it is not summed up in a loop over its rows"

    def _sums_all(self, facts: SizeFacts) -> bool:
        """Whether the sum is that of all elements: of the container, or of each row in a loop over them."""
        summed = self.summed
        if summed.row is None:
            return summed.addition.parent is summed.declaration.parent
        loop = summed.statement
        if not isinstance(loop, stan.ForOp) or summed.addition.parent is not loop.body.block:
            return False
        if any(stan.effects_of(inner) & _EXITS for inner in ops_within(loop)):
            return False
        sizes = facts.declared_sizes(summed.declaration.res)
        return summed.row.indices[0] is loop.body.block.args[0] and _covers(loop, sizes[0], facts)

    # ------------------------------------------------------------ doing it

    def rewrite(self, names: form.FreshNames) -> None:
        """Makes the element a scalar of the iteration, which ends with its addition to the target."""
        location = self.summed.total.location
        body = self.innermost.body.block
        variable = form.declare(names.fresh(self.summed.declaration.var_name.data), stan.REAL, location)
        assert body.first_op is not None
        first = body.first_op
        body.insert_op_before(variable, first)
        scalar = variable.results[0]
        if self.beginning is not None:
            filling = self.beginning.value.owner
            assert isinstance(filling, stan.CallOp)
            number = form.literal_of(filling.operands[0])
            assert number is not None
            value = form.constant(float(number), location)
            body.insert_ops_before([value, form.assign(scalar, value.res, location)], first)
            arguments = list(filling.operands)
            discard(self.beginning)
            discard(filling)
            form.erase_unused(arguments)
        for assignment in self.assignments:
            assert assignment.parent is not None
            assignment.parent.insert_op_before(form.assign(scalar, assignment.value, assignment.location), assignment)
            discard(assignment)
        for element in self.elements:
            _read_instead(element, scalar)
        self._add(body, scalar)
        self._forget_sum()

    def _add(self, body: Block, scalar: SSAValue) -> None:
        location = self.summed.addition.location
        value = form.read(scalar, location)
        ops: list[Operation] = [value]
        if self.summed.negative:
            ops.append(_NEG(value.results[0], stan.REAL, location=location))
        ops.append(stan.TargetAddOp(ops[-1].results[0], location=location))
        if isinstance(body.last_op, stan.YieldOp):
            body.insert_ops_before(ops, body.last_op)
        else:
            body.add_ops(ops)

    def _forget_sum(self) -> None:
        """Takes the sum out of what is added to the target."""
        summed = self.summed
        if summed.addition.value is _result(summed.total):
            discard(summed.addition)
        else:
            zero = form.constant(0.0, summed.total.location)
            assert summed.total.parent is not None
            summed.total.parent.insert_op_before(zero, summed.total)
            replace_uses(_result(summed.total), zero.res)
        for op in (summed.total, summed.row, summed.read):  # the index of a row is one that there is
            if op is not None:
                discard(op)


def _innermost(
    summed: _Summed, kinds: Sequence[str], indices: Sequence[SSAValue], facts: SizeFacts
) -> stan.ForOp | str:
    """The innermost loop of the nest over all elements; or why there is no such nest."""
    sizes = facts.declared_sizes(summed.declaration.res)
    if list(kinds) != ["single"] * len(sizes) or len(set(indices)) != len(sizes):
        return "its elements are touched in several places"
    loops: list[stan.ForOp] = []
    for index, size in zip(indices, sizes, strict=True):
        loop = index.owner.parent_op() if isinstance(index.owner, Block) else None
        if not isinstance(loop, stan.ForOp) or index is not loop.body.block.args[0]:
            return "its elements are touched in several places"
        if not _covers(loop, size, facts):
            return "its loop may not reach all elements"
        loops.append(loop)
    innermost = max(loops, key=_depth)
    around: Operation | None = innermost
    while around is not None and around.parent is not summed.declaration.parent:
        around = around.parent_op()
        if around not in loops:
            return "its loop may not reach all elements"
    return innermost if around is not None else "its loop may not reach all elements"


def _depth(op: Operation) -> int:
    outer = op.parent_op()
    return 0 if outer is None else 1 + _depth(outer)


def _covers(loop: stan.ForOp, size: LinearForm | None, facts: SizeFacts) -> bool:
    """Whether a loop is from 1 to a size."""
    return size is not None and facts.form(loop.lower) == ONE and facts.form(loop.upper) == size


def _fills(assignment: stan.AssignOp, facts: SizeFacts) -> bool:
    """Whether all elements are assigned the same literal, and nothing else can happen."""
    value = assignment.value.owner
    return (
        isinstance(value, stan.CallOp)
        and value.user is None
        and value.callee.data in _FILLED
        and value.res is not None
        and value.res.has_one_use()
        and form.literal_of(value.operands[0]) is not None
        and facts.fits(assignment)
    )


def _read_instead(element: stan.IndexOp, scalar: SSAValue) -> None:
    """Reads a scalar where an element was read."""
    whole = element.value.owner
    assert isinstance(whole, stan.ReadOp) and whole.parent is not None
    new = form.read(scalar, element.location)
    whole.parent.insert_op_before(new, whole)
    replace_uses(element.res, new.results[0])
    discard(element)
    discard(whole)
