"""Memory patterns: which containers are *static*, one value with one dense adjoint, and why the others are *dynamic*.

    matrix[N, M] A = f(x);  real b = A[10, 10];    static: assigned whole, its elements and slices are only read
    A[10, 10] = 5;                                 dynamic: assigned in part

A container of reals is static if every assignment to it assigns the whole of it; data and parameters are. It then
becomes a value (`promote-variables` asks the same question of a variable): it is fused with what computes and what uses
it, and has an adjoint of its own for each assignment. A dynamic one stays memory that is written in place. The pass
notes the pattern on the declaration (`memory`), and first makes more containers static where that changes no value:

    v[:] = e;   A[1:N, 1:M] = e;                    →    v = e;   A = e;
    vector[3] v; v[1] = a; v[3] = c; v[2] = b;      →    vector[3] v; v = [a, b, c]';
    matrix[2, N] m; m[1] = r; m[2] = s;             →    matrix[2, N] m; m = [r, s];
    matrix[N, 2] m; m[, 1] = x; m[, 2] = y;         →    matrix[N, 2] m; m = append_col(x, y);

* A slice is the whole container if its ends are provably those declared: equal literals, or the same variable while
  it does not change. The error of a wrong size may read differently then; where
  errors are not told by the unoptimised program (`errors_are_retold`), the sizes of `e` must provably be those
  declared. (`v[:]` is treated as the whole variable anyway.)
* Elements become a literal if literal indices name each element once, in the block of the declaration, before anything
  reads the container; no profile begins in between; and only if the container is then static. The right-hand sides stay
  where they are, so order and errors do. At most `limit` elements. So do the rows of a matrix and the elements of an
  array of containers, of any size, if those assigned provably have it; a few columns are put side by side. Columns that
  a loop assigns stay as they are, if the loop is not unrolled.

Source: the design of static matrices in Stan ("static_matrices").
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import field
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.stan.variables import MEMORY_PATTERNS
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.bodies import Body
from ulam.passes.analysis.linear_forms import ONE, LinearForm
from ulam.passes.analysis.scopes import own_bodies
from ulam.passes.analysis.sizes import SizeFacts
from ulam.passes.optimize.loop_copies import int_literal
from ulam.passes.remarks import remark
from ulam.passes.value_form.promote_variables import is_promotable
from ulam.passes.variable_form import LOOPS, Variable, assign, erase_unused, errors_are_retold, is_global

STATIC, DYNAMIC = MEMORY_PATTERNS

UNUSED = "nothing uses it, as the program is now"
"""Told of variables that other passes may have made needless."""

_GIVEN = {"data": "it is data", "parameters": "it is a parameter"}


@record(frozen=True)
class MemoryPatternOptimization(ModulePass):
    """Notes which containers are static, and makes more of them so.

    `limit`: elements of a literal that is made of assignments to elements.
    """

    name = "memory-pattern-optimization"
    limit: int = 64

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op, self.limit)


@record(frozen=True, slots=True)
class MemoryPattern:
    """The pattern of a container. `reason` is one clause; `location` is that of the assignment that makes it dynamic,
    else that of the declaration."""

    name: str
    pattern: str
    reason: str
    location: LocationAttr
    declaration: Variable


def run_on(op: Operation, limit: int = 64) -> None:
    """Makes containers static where it can, and marks the declarations at or below `op`."""
    facts: SizeFacts | None = None
    for body in own_bodies(op):
        in_part = [o for o in ops_within(body) if type(o) is stan.AssignOp and o.kinds.data]
        if in_part:
            facts = facts or SizeFacts(op)
            _whole_assignments(in_part, facts)
            _element_assignments(body, limit, facts)
    for found in memory_patterns(op):
        found.declaration.properties["memory"] = StringAttr(found.pattern)
        if found.reason in _GIVEN.values():
            continue  # nothing was decided
        remark(
            MemoryPatternOptimization.name,
            found.declaration.location,
            f"variable {found.name}",
            f"{found.pattern}: {found.reason}",
            done=found.pattern == STATIC,
        )


def memory_patterns(op: Operation) -> list[MemoryPattern]:
    """The patterns of all containers of reals in the program's own functions and blocks, in program order."""
    found: list[MemoryPattern] = []
    for body in own_bodies(op):
        given = _GIVEN.get(body.kind.data) if isinstance(body, stan.BlockOp) else None
        in_part: dict[SSAValue, list[stan.AssignOp]] = {}
        declarations: list[Variable] = []
        for inner in ops_within(body):
            if isinstance(inner, Variable):
                if has_pattern(inner.results[0].type):
                    declarations.append(inner)
                else:
                    inner.properties.pop("memory", None)
            elif isinstance(inner, stan.AssignOp) and inner.indices:
                in_part.setdefault(inner.var, []).append(inner)
        found += (_pattern(d, given, in_part.get(d.results[0], ())) for d in declarations)
    return found


def has_pattern(type_: Attribute) -> bool:
    """Whether variables of a type are containers of reals."""
    if isinstance(type_, stan.VarType):
        type_ = type_.element
    return stan.dimensions(type_) > 0 and stan.scalar_of(type_) in (stan.REAL, stan.COMPLEX)


def _pattern(declaration: Variable, given: str | None, in_part: Sequence[stan.AssignOp]) -> MemoryPattern:
    name = declaration.var_name.data
    if not is_promotable(declaration):
        first = in_part[0]
        reason = f"assigned in part{_around(first, declaration)}: {assignment_text(first)}"
        if len(in_part) > 1:
            reason += f" and {len(in_part) - 1} more"
        return MemoryPattern(name, DYNAMIC, reason, first.location, declaration)
    uses = [use.operation for use in declaration.results[0].uses]
    is_assigned = any(isinstance(use, stan.AssignOp) for use in uses)
    unassigned = "never assigned" if uses or is_global(declaration) else UNUSED
    reason = given or ("only assigned whole" if is_assigned else unassigned)
    return MemoryPattern(name, STATIC, reason, declaration.location, declaration)


# ---------------------------------------------------------------- assignments as text


def assignment_text(op: stan.AssignOp) -> str:
    """`A[1:10, ] = 5`, with `...` for what is neither a literal nor a name."""
    operands = iter(op.indices)
    indices: list[str] = []
    for kind in op.kinds.data:
        match kind.data:
            case "between":
                indices.append(f"{_value_text(next(operands))}:{_value_text(next(operands))}")
            case "from":
                indices.append(f"{_value_text(next(operands))}:")
            case "to":
                indices.append(f":{_value_text(next(operands))}")
            case "all":
                indices.append("" if len(op.kinds.data) > 1 else ":")
            case _:
                indices.append(_value_text(next(operands)))
    name = op.var.owner.var_name.data if isinstance(op.var.owner, Variable) else "..."
    return f"{name}[{', '.join(indices)}] = {_value_text(op.value)}"


def _value_text(value: SSAValue) -> str:
    op = value.owner
    while isinstance(op, stan.PromoteOp):
        value = op.operands[0]
        op = value.owner
    if isinstance(op, Block):
        return value.name_hint or "..."
    if isinstance(op, stan.ConstantOp) and not isinstance(op.value, StringAttr):
        return f"{op.value.value.data:g}" if op.results[0].type == stan.REAL else str(op.value.value.data)
    if isinstance(op, stan.ReadOp) and isinstance(op.var.owner, Variable | stan.GlobalOp):
        return op.var.owner.var_name.data
    return "..."


def _around(op: Operation, declaration: Operation) -> str:
    """The innermost loop that an assignment stands in, if it is inside of where the variable is declared."""
    parent = op.parent_op()
    while parent is not None and parent is not declaration.parent_op():
        if isinstance(parent, stan.ForOp | stan.ForEachOp):
            return f" in the loop over {parent.variable.data}"
        if isinstance(parent, LOOPS):
            return " in a while loop"
        parent = parent.parent_op()
    return ""


# ---------------------------------------------------------------- slices that are the whole


def _is_whole_slice(op: stan.AssignOp, facts: SizeFacts) -> bool:
    """Whether the indices of an assignment provably name all elements of the variable, in order."""
    operands = iter(op.indices)
    for kind, size in zip(op.kinds.data, facts.declared_sizes(op.var), strict=False):
        first = last = None
        match kind.data:
            case "all":
                continue
            case "from":
                first, last = facts.form(next(operands)), size
            case "to":
                first, last = ONE, facts.form(next(operands))
            case "between":
                first, last = facts.form(next(operands)), facts.form(next(operands))
            case _:
                return False
        if first != ONE or size is None or last != size:
            return False
    return True


def _whole_assignments(in_part: Sequence[stan.AssignOp], facts: SizeFacts) -> None:
    """`v[1:N] = e`  →  `v = e`, where `N` is the size of `v`."""
    for op in in_part:
        if not _is_whole_slice(op, facts):
            continue
        whole = assign(op.var, op.value, op.location)
        if op.indices and not errors_are_retold(op) and not facts.fits(whole):
            whole.erase()
            continue
        indices = tuple(op.indices)
        assert op.parent is not None
        op.parent.insert_op_before(whole, op)
        op.parent.erase_op(op)
        erase_unused(indices)


# ---------------------------------------------------------------- elements that make a literal


MOST_COLUMNS = 8
"""How many columns are put side by side: each but the first two copies those before it."""


@record(eq=False, repr=False)
class _Elements:
    """What happens to a variable whose elements, or parts along one dimension, are assigned one by one."""

    declaration: stan.DeclareOp
    dims: list[int]
    """Sizes of the dimensions that the assignments index."""
    is_by_column: bool = False
    assignments: dict[tuple[int, ...], stan.AssignOp] = field(default_factory=dict[tuple[int, ...], stan.AssignOp])


def _element_assignments(body: Body, limit: int, facts: SizeFacts) -> None:
    """`v[1] = a; v[2] = b;`  →  `v = [a, b]'`, for a `v` of two elements."""
    place = {op: number for number, op in enumerate(ops_within(body))}
    profiles = [number for op, number in place.items() if isinstance(op, stan.ProfileOp)]
    for op in [op for op in place if isinstance(op, stan.DeclareOp)]:
        elements = _elements(op, limit, facts)
        if elements is None:
            continue
        first, last = (f(place[a] for a in elements.assignments.values()) for f in (min, max))
        taken = set(elements.assignments.values())
        others = (use.operation for use in op.results[0].uses if use.operation not in taken)
        if any(place[other] < last for other in others) or _any_between(profiles, first, last):
            continue
        _assign_literal(elements, next(a for a in taken if place[a] == last))


def _any_between(numbers: Sequence[int], first: int, last: int) -> bool:
    return bisect_right(numbers, first) != bisect_right(numbers, last)


def _elements(declaration: stan.DeclareOp, limit: int, facts: SizeFacts) -> _Elements | None:
    """The assignments to a variable, if they name each of its elements once and nothing else assigns in part."""
    assert isinstance(declaration.res.type, stan.VarType)
    type_ = declaration.res.type.element
    if stan.scalar_of(type_) not in (stan.REAL, stan.INT) or not declaration.sizes:
        return None
    sizes = facts.declared_sizes(declaration.res)
    if len(sizes) != stan.dimensions(type_):
        return None
    assigned = [use.operation for use in declaration.results[0].uses]
    in_part = [op for op in assigned if isinstance(op, stan.AssignOp) and op.kinds.data]
    if not in_part or (found := _indexed(declaration, in_part[0], sizes)) is None:
        return None
    for op in in_part:
        index = _literal_index(op, found.dims, len(sizes), by_column=found.is_by_column)
        if index is None or index in found.assignments or op.parent is not declaration.parent:
            return None
        whole = sizes[:1] if found.is_by_column else sizes[len(found.dims) :]
        if any(size is None or size != other for size, other in zip(whole, facts.sizes(op.value), strict=True)):
            return None
        found.assignments[index] = op
    most = min(limit, MOST_COLUMNS) if found.is_by_column else limit
    return found if len(found.assignments) == prod(found.dims) <= most else None


def _indexed(declaration: stan.DeclareOp, op: stan.AssignOp, sizes: Sequence[LinearForm | None]) -> _Elements | None:
    """Which dimensions an assignment indexes: the first ones, or the columns; their sizes must be literals."""
    assert isinstance(declaration.res.type, stan.VarType)
    kinds = [kind.data for kind in op.kinds.data]
    is_by_column = declaration.res.type.element == stan.MATRIX and kinds == ["all", "single"]
    indexed = sizes[1:] if is_by_column else sizes[: kinds.count("single")]
    known = [size.constant for size in indexed if size is not None and not size.terms and size.constant > 0]
    return _Elements(declaration, known, is_by_column) if known and len(known) == len(indexed) else None


def _literal_index(op: stan.AssignOp, dims: Sequence[int], rank: int, *, by_column: bool) -> tuple[int, ...] | None:
    """The element or part that an assignment is to, counted from 1; None if it is another kind of part, may be several
    or none, or is not known."""
    expected = ["all", "single"] if by_column else ["single"] * len(dims)
    kinds = [kind.data for kind in op.kinds.data]
    if kinds[: len(expected)] != expected or kinds[len(expected) :] != ["all"] * (len(kinds) - len(expected)):
        return None
    index = tuple(number for i in op.indices if (number := int_literal(i)) is not None)
    in_range = len(index) == len(dims) and all(1 <= i <= size for i, size in zip(index, dims, strict=True))
    return index if in_range and len(kinds) <= rank else None


def _assign_literal(elements: _Elements, last: stan.AssignOp) -> None:
    """Assigns the elements at once, in place of the last assignment."""
    variable = elements.declaration.results[0]
    assert isinstance(variable.type, stan.VarType) and last.parent is not None
    values = {index: op.value for index, op in elements.assignments.items()}
    if elements.is_by_column:
        ops = list(_side_by_side([values[(n,)] for n in range(1, elements.dims[0] + 1)], last.location))
    else:
        ops = list(_literal(variable.type.element, elements.dims, (), values, last.location))
    last.parent.insert_ops_before((*ops, assign(variable, ops[-1].results[0], last.location)), last)
    for op in elements.assignments.values():
        indices = tuple(op.indices)
        assert op.parent is not None
        op.parent.erase_op(op)
        erase_unused(indices)


def _side_by_side(columns: Sequence[SSAValue], location: LocationAttr) -> Iterator[Operation]:
    """The ops that make a matrix of its columns; the last one gives it."""
    if len(columns) == 1:
        yield _call("to_matrix", columns, location)
        return
    matrix = columns[0]
    for column in columns[1:]:
        op = _call("append_col", (matrix, column), location)
        yield op
        matrix = op.results[0]


def _call(name: str, operands: Sequence[SSAValue], location: LocationAttr) -> Operation:
    """A call of a function of the library that gives a matrix and looks at no types of data."""
    return stan.CallOp(name, operands, stan.MATRIX, (0,) * len(operands), location=location)


def _literal(
    type_: Attribute,
    dims: Sequence[int],
    index: tuple[int, ...],
    values: dict[tuple[int, ...], SSAValue],
    location: LocationAttr,
) -> Iterator[Operation]:
    """The ops that make the part of a container at `index`; the last one gives it."""
    inner = stan.indexed(type_, ("single",))
    assert inner is not None
    parts: list[SSAValue] = []
    for number in range(1, dims[0] + 1):
        part = (*index, number)
        if len(dims) == 1:
            parts.append(values[part])
            continue
        *before, op = _literal(inner, dims[1:], part, values, location)
        yield from before
        yield op
        parts.append(op.results[0])
    if isinstance(type_, stan.ArrayType):
        yield stan.ArrayOp(parts, type_, location=location)
        return
    written = stan.ROW_VECTOR if type_ == stan.VECTOR else type_
    row = stan.RowVectorOp(parts, written, location=location)
    yield row
    if written != type_:
        yield stan.UNARY_OPERATORS["'"](row.res, type_, location=location)
