"""Memory that loops alone access: which elements iterations touch, and whether each touches some of its own.

    g[(i - 1) * T + j]    →    row i - 1 of T elements, column j - 1

Which elements these are is told by polynomials in loop variables and sizes (`index_forms`): rows of a stride,
`T*i + j`, columns, `M*j + i`, or one element for each iteration. A program's indices are computed in 32 bits; that they
are exact is shown, not assumed (`is_exact`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import f64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.library.records import record
from ulam.passes.analysis.nesting import ancestor_in, is_before
from ulam.passes.loops.bound_forms import BoundForms
from ulam.passes.loops.index_forms import Form, IndexForms, known, plus, times


@record
class MemoryAccess:
    """A load or a store; `path`: the index, and offsets of the views that lead there."""

    op: Operation
    path: tuple[SSAValue, ...]

    def form(self, forms: IndexForms) -> Form | None:
        """Which element it is."""
        total: Form = {}
        for part in self.path:
            if (form := forms.of(part)) is None:
                return None
            total = plus(total, form)
        return total


@record
class MemoryUses:
    """All that touches memory which loops alone access, the fill ahead of them aside."""

    fill: rt.FillOp | None
    accesses: list[MemoryAccess]
    loops: list[scf.ForOp]

    @staticmethod
    def of(alloc: Operation) -> MemoryUses | None:
        """None if it takes no memory for reals, or if others than loops of its block use that, or only one op does."""
        if not isinstance(alloc, rt.AllocOp) or alloc.res.type != rt.BufferType(f64):
            return None
        fills: list[rt.FillOp] = []
        accesses: list[MemoryAccess] = []
        block = alloc.parent
        if block is None or not _collect(alloc.res, (), fills, accesses) or len(accesses) < 2 or len(fills) > 1:
            return None
        loops: list[scf.ForOp] = []
        for access in accesses:
            loop = ancestor_in(access.op, block)
            if not isinstance(loop, scf.ForOp):
                return None
            if loop not in loops:
                loops.append(loop)
        fill = fills[0] if fills else None
        if fill is not None and not _is_whole(fill, alloc, loops):
            return None
        return MemoryUses(fill, accesses, loops)


def _collect(
    buffer: SSAValue, path: tuple[SSAValue, ...], fills: list[rt.FillOp], accesses: list[MemoryAccess]
) -> bool:
    """Whether nothing but loads, stores, fills and views of such use a buffer; adds them to the lists."""
    for use in buffer.uses:
        op = use.operation
        if isinstance(op, rt.ViewOp):
            if not _collect(op.results[0], (*path, op.offset), fills, accesses):
                return False
        elif isinstance(op, rt.LoadOp) or (isinstance(op, rt.StoreOp) and use.index == 1):
            accesses.append(MemoryAccess(op, (*path, op.index)))
        elif isinstance(op, rt.FillOp) and not path:
            fills.append(op)
        else:
            return False
    return True


def _is_whole(fill: rt.FillOp, alloc: rt.AllocOp, loops: Sequence[scf.ForOp]) -> bool:
    """Whether a fill sets all of the memory to one value ahead of the loops."""
    return fill.parent is alloc.parent and fill.count is alloc.count and all(is_before(fill, loop) for loop in loops)


# ---------------------------------------------------------------- memory of an iteration


@record
class MemoryPlaces:
    """Where in its own memory an iteration finds what it accesses."""

    forms: IndexForms
    size: Form
    elements: list[Form]

    def are_rows(self, uses: MemoryUses) -> bool:
        """Whether there is more than an element that is at hand in an iteration anyway: several, or in loops inside."""
        bodies = {loop.body.block for loop in uses.loops}
        return known(self.size) != 1 or any(access.op.parent not in bodies for access in uses.accesses)


def places_of(uses: MemoryUses, bound: dict[int, SSAValue]) -> MemoryPlaces | str:
    """The places of all accesses in memory of one iteration; or why there are none."""
    loop, *partners = uses.loops
    partner = partners[0] if partners else None
    seen = BoundForms(loop, partner, narrow=True, bound=bound)
    elements = [form for access in uses.accesses if (form := access.form(seen)) is not None]
    if len(elements) < len(uses.accesses):
        return "which element an iteration touches depends on data or parameters"
    conditions = seen.apart(elements)
    if conditions is None or not all(is_never_negative(form) for form in conditions):
        return "an iteration may touch what another one touches"
    if seen.extended and not is_exact(seen, uses, elements):
        return "its indices may leave the range of an int"
    forms = IndexForms(loop, partner, narrow=True)
    elements = [form for access in uses.accesses if (form := access.form(forms)) is not None]
    found = _in_rows(forms, elements) or _in_columns(forms, elements)
    if found is None or any(forms.is_inside(value) for value in forms.values_of(found.size)):
        return "the part of an iteration is not known before the loop"
    return found


def is_never_negative(form: Form) -> bool:
    return (number := known(form)) is not None and number >= 0


def is_exact(seen: IndexForms, uses: MemoryUses, elements: Sequence[Form]) -> bool:
    """Whether the arithmetic of 32 bits that indices are made of surely is exact.

    A row begins where the one before ends, the first one at 0. As the last element of each row is touched, and lies in
    memory, whose size is an int, no row's begin or end is beyond the ints either. What ends up between the two is
    exact, however it was computed.
    """
    for access, element in zip(uses.accesses, elements, strict=True):
        loop = uses.loops[0]
        found = seen.rows_in(element)
        if found is None or not loop.is_ancestor(access.op) or not always_runs(access.op, loop):
            continue
        stride, row, column = found
        most = seen.bounds(column)[1]
        last = plus(stride, {(): 1}, -1)
        if most is None or (lower := known(seen.of(loop.lb) or {})) is None:
            continue
        begin = times(stride, {(seen.variable,): 1})
        if (width := known(stride)) is None:
            begin = plus(begin, stride, row)
            is_first = most == last and lower + row == 0
        else:
            offset = known(plus(most, last, -1))
            begin = plus(begin, {(): offset or 0})
            is_first = offset is not None and width * lower + offset == 0
        if not is_first:
            continue
        if all(_lies_in_row(seen, form, begin, stride) for form in seen.extended):
            return True
    return False


def always_runs(op: Operation, loop: scf.ForOp) -> bool:
    """Whether an op runs for all elements of the loops between it and `loop`."""
    parent = op.parent_op()
    while isinstance(parent, scf.ForOp) and parent is not loop:
        parent = parent.parent_op()
    return parent is loop


def _lies_in_row(seen: IndexForms, form: Form, begin: Form, stride: Form) -> bool:
    """Whether an int is from the begin of an iteration's row to its end, or is a loop's variable, or the one before."""
    if len(form.keys() - {()}) == 1 and form.get((), 0) in (0, -1):
        ((monomial, count),) = ((m, c) for m, c in form.items() if m)
        least = seen.of(seen.loop.lb) if monomial == (seen.variable,) else seen.ranges.get(monomial[0], ({(): -1},))[0]
        if len(monomial) == 1 and count == 1 and is_never_negative(plus(least or {}, {(): form.get((), 0)})):
            return True
    least, most = seen.bounds(plus(form, begin, -1))
    if least is None or most is None or any(seen.variable in m for m in (*least, *most)):
        return False
    if not is_never_negative(least) and least != stride:
        return False
    return is_never_negative(plus(stride, most, -1)) or is_never_negative(plus({(): 1}, most, -1))


def _rests(forms: IndexForms, elements: Sequence[Form]) -> tuple[Form, list[Form]]:
    """What goes with the outer loop's variable in the first form, and the others without their parts of that kind."""
    parts = [{m: c for m, c in form.items() if forms.variable in m} for form in elements]
    if any(part != parts[0] for part in parts):
        return {}, []
    return parts[0], [plus(form, part, -1) for form, part in zip(elements, parts, strict=True)]


def _in_rows(forms: IndexForms, elements: Sequence[Form]) -> MemoryPlaces | None:
    """`stride * (i + row) + column`: the place is the column, and there are `stride` of them."""
    rows = [forms.rows_in(form) for form in elements]
    if not all(rows):
        return None
    found = [row for row in rows if row is not None]
    stride = found[0][0]
    if any(row[:2] != found[0][:2] for row in found):
        return None
    columns = [column for _, _, column in found]
    if (width := known(stride)) is not None:  # all rows are row 0: what is left over is part of the column
        least = [known(low) if (low := forms.bounds(column)[0]) is not None else None for column in columns]
        begins = {None if number is None else number // width * width for number in least}
        if None in begins or len(begins) != 1:
            return None
        columns = [plus(column, {(): begin or 0}, -1) for column in columns for begin in begins]
    return MemoryPlaces(forms, stride, columns)


def _in_columns(forms: IndexForms, elements: Sequence[Form]) -> MemoryPlaces | None:
    """`i + stride * column`: the place is the column, of which there are as many as loops inside reach."""
    of_row, rests = _rests(forms, elements)
    if of_row != {(forms.variable,): 1}:
        return None
    if all(rest == rests[0] for rest in rests) and not any(
        forms.is_variable(factor) for monomial in rests[0] for factor in monomial
    ):
        return MemoryPlaces(forms, {(): 1}, [{} for _ in rests])
    if (found := forms.columns(rests)) is None:
        return None
    columns = [found.number_of(rest) for rest in rests]
    least = _same_or(min, [forms.bounds(column)[0] for column in columns])
    most = _same_or(max, [forms.bounds(column)[1] for column in columns])
    if least is None or most is None or (first := known(least)) is None or first < 0:
        return None
    return MemoryPlaces(forms, plus(most, {(): 1}), columns)


def _same_or(choose: Callable[[Iterable[int]], int], found: Sequence[Form | None]) -> Form | None:
    """The form that all are, or the one of numbers that is chosen."""
    if any(form is None for form in found):
        return None
    forms = [form for form in found if form is not None]
    if all(form == forms[0] for form in forms):
        return forms[0]
    numbers = [known(form) for form in forms]
    if any(number is None for number in numbers):
        return None
    chosen = choose(number for number in numbers if number is not None)
    return {(): chosen} if chosen else {}
