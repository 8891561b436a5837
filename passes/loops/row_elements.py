"""Elements of matrices that are filled ahead of a loop over rows, computed where rows read them.

    mu = X * B                                              for n: for d: m[d] = sum over k of X[n, k] * B[k, d]
    for n: for d: b[d] = y[n, d] - mu[n + N * d]    →              for d: b[d] = y[n, d] - m[d]

A matrix is a product that a kernel makes (`multiply`), or what loops store in it, or add up, element by element, of
other elements of such matrices, too. What rows read is then linear in parameters with data of the row as coefficients
(`form-layouts`).
"""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, is_same_integer
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.bound_forms import BoundForms
from ulam.passes.loops.copied_values import NotKnown, copied_value
from ulam.passes.loops.effects import Root, kernel_buffers, root, viewed
from ulam.passes.loops.filled_buffers import loops_around, stays_until, users
from ulam.passes.loops.index_forms import Form, IndexForms, known, plus, times
from ulam.passes.loops.linear_rows import carry, new_loop
from ulam.passes.loops.local_elements import local_element
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.rewriting import discard, replace_uses

_REALS = rt.BufferType(f64)
MOST_OPS = 300
"""Of the nests that compute an element, one from the other: each loop that reads it has them all inside. With more it
is no sum of few terms."""


def compute_elements(memory: rt.AllocOp, loop: scf.ForOp, bound: dict[int, SSAValue]) -> SSAValue | None:
    """Lets a loop over rows compute the row of a matrix that it reads; how far columns are apart, None if it cannot be
    done. What was written is left then. `bound`: what `bind` puts into slots.
    """
    loads = [op for op in users(memory, views=True) if loop.is_ancestor(op)]
    forms = IndexForms(loop)
    begin = loop.body.block.first_op
    assert begin is not None
    write = OpWriter(begin)
    try:
        elements = _Elements(loop, forms, _stride(loads, memory, forms), bound, is_across=_is_across(loads, forms))
        places = [elements.place(op.operands[1]) for op in loads]
        if not places or any(row != places[0][0] for row, _ in places):
            raise NotKnown
        row, width = (elements.written(form, write) for form in (places[0][0], elements.width(memory)))
        own = write.put(rt.AllocOp(write.put(integer(arith.MaxSIOp, width, write.whole(0))), _REALS))
        column, inside = new_loop(write, write.whole(0), width)
        place = (column, row) if elements.is_across else (row, column)
        inside.before(rt.StoreOp(elements.value(memory, *place, inside), own, column, initial=True))
    except NotKnown:
        return None
    for load, (_, form) in zip(loads, places, strict=True):
        before = OpWriter(load)
        replace_uses(load.results[0], before.put(rt.LoadOp(own, elements.written(form, before))))
        discard(load)
    return elements.stride


def compute_first_row(memory: rt.AllocOp, stride: SSAValue, branch: scf.IfOp, bound: dict[int, SSAValue]) -> None:
    """Lets what reads the first row of a matrix outside of a branch compute its elements, if that alone reads it there.

    The first row stands ahead where something is taken out of a loop (`one-step-loop-unrolling`).
    """
    found: list[tuple[rt.LoadOp, _Elements, Form]] = []
    try:
        for load in users(memory):
            if branch.is_ancestor(load) or not isinstance(load, rt.LoadOp):
                continue
            loop = _outermost_loop(load)
            if loop is None or load.buffer is not memory.res:
                return
            elements = _Elements(loop, IndexForms(loop), stride, bound)
            form = elements.forms.of(load.index)
            if form is None:
                return
            found.append((load, elements, _over(form, elements.forms.number(stride))))
        for load, elements, column in found:
            write = OpWriter(load)
            value = elements.value(memory, write.whole(0), elements.written(column, write), write)
            replace_uses(load.res, value)
            discard(load)
    except NotKnown:
        return


def _outermost_loop(op: Operation) -> scf.ForOp | None:
    found: scf.ForOp | None = None
    around = op.parent_op()
    while around is not None:
        found = around if isinstance(around, scf.ForOp) else found
        around = around.parent_op()
    return found


def writer_of(memory: rt.AllocOp) -> Operation | None:
    """What fills memory: a kernel that multiplies, or an op in loops, one for all elements; None if there is none."""
    found: list[Operation] = []
    for op in users(memory, views=True):
        if isinstance(op, rt.LoadOp | rt.ViewOp) or (
            isinstance(op, rt.KernelOp) and memory.res not in kernel_buffers(op)[1]
        ):
            continue
        if isinstance(op, rt.FillOp) and op.parent is memory.parent:
            continue  # ahead of the loops that then fill all of it
        found.append(op)
    if len(found) != 1:
        return None
    (writer,) = found
    if isinstance(writer, rt.KernelOp):
        return writer if writer.function.data == "multiply" and writer.parent is memory.parent else None
    is_sum = isinstance(writer, ad.AccumulateOp) and memory.zero is not None and writer.buffer is memory.res
    return writer if is_sum or (isinstance(writer, rt.StoreOp) and viewed(writer.buffer) is memory.res) else None


def _place_in_memory(writer: Operation, forms: IndexForms) -> Form | None:
    """Where an op that stores or adds writes, views included."""
    buffer, index = writer.operands[0:2] if isinstance(writer, ad.AccumulateOp) else writer.operands[1:3]
    total: Form | None = forms.of(index)
    while total is not None and isinstance(view := buffer.owner, rt.ViewOp):
        offset, buffer = forms.of(view.offset), view.buffer
        total = None if offset is None else plus(total, offset)
    return total


def shape_of(memory: rt.AllocOp, bound: dict[int, SSAValue]) -> tuple[SSAValue, SSAValue] | None:
    """How many rows and columns a matrix has, if a product or loops fill all of it column by column, or across; None
    if that is not known. `bound`: what `bind` puts into slots.
    """
    writer = writer_of(memory)
    if isinstance(writer, rt.KernelOp):
        return writer.arguments[2], writer.arguments[4]
    around = [] if writer is None else loops_around(writer, memory.parent)
    if writer is None or not around:
        return None
    forms = BoundForms(around[0], bound=bound)
    form = _place_in_memory(writer, forms)
    by_number = {forms.number(loop.body.block.args[0]): loop for loop in around}
    row = next((number for number in by_number if (form or {}).get((number,)) == 1), None)
    column = next((n for monomial in form or {} for n in monomial if n in by_number and n != row), None)
    if row is None or column is None or form is None:
        return None
    rows, columns = by_number[row].ub, by_number[column].ub
    ends = [forms.of(end) for end in (rows, columns, memory.count)]
    if None in ends or any(is_inside(side, around[0]) for side in (rows, columns)):
        return None
    of_rows, of_columns, size = (end or {} for end in ends)
    is_by_columns = form == plus({(row,): 1}, times(of_rows, {(column,): 1}))
    return (rows, columns) if is_by_columns and times(of_rows, of_columns) == size else None


def _stride(loads: list[Operation], memory: rt.AllocOp, forms: IndexForms) -> SSAValue:
    """What the numbers of columns are multiplied by; of a vector, which is one column, its length."""
    found: set[int] | None = None
    for load in loads:
        if not isinstance(load, rt.LoadOp) or load.buffer is not memory.res:
            raise NotKnown
        form = forms.of(load.index)
        for monomial in form or {}:
            if monomial and monomial != (forms.variable,):
                own = {factor for factor in monomial if not forms.is_variable(factor)}
                if own:  # none in what stands side by side
                    found = own if found is None else found & own
    if found is None:
        return memory.count
    if len(found) != 1:
        raise NotKnown
    return forms.factors[next(iter(found))]


def _is_across(loads: list[Operation], forms: IndexForms) -> bool:
    """Whether rows of a loop are columns of the matrix: their elements stand side by side."""
    form = forms.of(loads[0].operands[1]) if loads else None
    return form is not None and (forms.variable,) not in form


@record
class _Elements:
    """Writes elements of matrices in a loop over rows. `stride`: how far columns are apart."""

    loop: scf.ForOp
    forms: IndexForms
    stride: SSAValue
    bound: dict[int, SSAValue]
    is_across: bool = False
    """Whether rows of the loop are columns of matrices."""
    _n_ops: int = 0
    """Of the nests whose elements have been written."""

    def place(self, index: SSAValue) -> tuple[Form, Form]:
        """The row and the column of an index, of those that the loop sees; what is not multiplied by the stride is
        below it.
        """
        forms, loop = self.forms, self.loop
        form, stride = forms.of(index), forms.number(self.stride)
        if form is None:
            raise NotKnown
        if self.is_across:
            return self._place_across(form, stride)
        row: Form = {m: count for m, count in form.items() if m in ((), (forms.variable,))}
        offset = {(): row.get((), 0)}
        column = _over({m: count for m, count in form.items() if m not in row}, stride)
        least = known(plus(forms.of(loop.lb) or {}, offset))
        most = known(plus(plus(forms.of(loop.ub) or {}, offset), {(stride,): 1}, -1))
        if row.get((forms.variable,)) != 1 or least is None or least < 0 or most is None or most > 0:
            raise NotKnown
        return row, column

    def _place_across(self, form: Form, stride: int) -> tuple[Form, Form]:
        forms = self.forms
        row = _over({m: count for m, count in form.items() if forms.variable in m}, stride)
        column = {m: count for m, count in form.items() if forms.variable not in m}
        least, most = forms.bounds(column)
        first = known(forms.of(forms.loop.lb) or {})
        if row != {(forms.variable,): 1} or least is None or most is None or first is None or first < 0:
            raise NotKnown
        begin, end = known(least), known(plus(most, {(stride,): 1}, -1))
        if begin is None or begin < 0 or end is None or end >= 0:
            raise NotKnown
        return row, column

    def width(self, memory: rt.AllocOp) -> Form:
        """The number of columns that the loop sees."""
        shape = shape_of(memory, self.bound)
        if self.is_across and shape is None:
            raise NotKnown
        size = self.forms.of(memory.count if shape is None else shape[0 if self.is_across else 1])
        if size is None or (shape is not None and not is_same_integer(shape[0], self.stride)):
            raise NotKnown
        return _over(size, self.forms.number(self.stride)) if shape is None else size  # 1 of a vector

    def written(self, form: Form, write: OpWriter) -> SSAValue:
        """A form as a value."""
        ops, value = self.forms.write(form)
        for op in ops:
            write.before(op)
        return value

    def value(self, memory: rt.AllocOp, row: SSAValue, column: SSAValue, write: OpWriter) -> SSAValue:
        """The element of a row and a column."""
        writer = writer_of(memory)
        if writer is None:
            raise NotKnown
        if isinstance(writer, rt.KernelOp):
            return self._product(writer, row, column, write)
        around = loops_around(writer, memory.parent)
        if not around:
            raise NotKnown
        self._n_ops += sum(1 for _ in ops_within(around[0]))
        if self._n_ops > MOST_OPS or not stays_until(_read_in(around[0]), around[0], self.loop):
            raise NotKnown
        added = isinstance(writer, ad.AccumulateOp)
        value = writer.operands[2 if added else 0]
        filler = _Filler(self, around, writer, row, column)
        left = filler.set_variables(memory, write)
        if not added:
            if left:
                raise NotKnown
            return filler.copy(value, write)
        writers = [write]
        total = write.number(0.0)
        for loop in left:
            bounds = [filler.copy(bound, writers[-1]) for bound in (loop.lb, loop.ub)]
            variable, inside = new_loop(writers[-1], bounds[0], bounds[1], [total])
            filler.env[loop.body.block.args[0]] = variable
            total = inside.anchor.operands[0]
            writers.append(inside)
        total = writers[-1].real(arith.AddfOp, total, filler.copy(value, writers[-1]), reassociate=True)
        for inside in reversed(writers[1:]):
            total = carry(inside, total)
        return total

    def _product(self, kernel: rt.KernelOp, row: SSAValue, column: SSAValue, write: OpWriter) -> SSAValue:
        """An element of a product of matrices."""
        if not is_same_integer(kernel.arguments[2], self.stride):
            raise NotKnown
        left, right, rows, inner = kernel.arguments[:4]
        if not stays_until({root(left), root(right)}, kernel, self.loop):
            raise NotKnown
        first = write.put(integer(arith.MuliOp, column, inner))
        k, inside = new_loop(write, write.whole(0), inner, [write.number(0.0)])
        at = inside.put(integer(arith.AddiOp, row, inside.put(integer(arith.MuliOp, k, rows))))
        entry = inside.put(rt.LoadOp(left, at))
        other = inside.put(rt.LoadOp(right, inside.put(integer(arith.AddiOp, first, k))))
        product = inside.real(arith.MulfOp, entry, other)
        return carry(inside, inside.real(arith.AddfOp, inside.anchor.operands[0], product, reassociate=True))


def _read_in(loop: scf.ForOp) -> set[Root]:
    return {root(op.buffer) for op in ops_within(loop) if isinstance(op, rt.LoadOp)}


def _over(form: Form, factor: int) -> Form:
    """What is multiplied by a factor."""
    found: Form = {}
    for monomial, count in form.items():
        if monomial.count(factor) != 1:
            raise NotKnown
        found[tuple(each for each in monomial if each != factor)] = count
    return found


@record
class _Filler:
    """Loops that fill a matrix, and the element that is asked for."""

    elements: _Elements
    around: list[scf.ForOp]
    writer: Operation
    row: SSAValue
    column: SSAValue
    env: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def __post_init__(self) -> None:
        self.forms = IndexForms(self.around[0])
        self.place = _place_in_memory(self.writer, self.forms)

    def set_variables(self, memory: rt.AllocOp, write: OpWriter) -> list[scf.ForOp]:
        """Finds which iterations fill the element; the loops of which all do, an addition each."""
        forms, form = self.forms, self.place
        stride, size = forms.number(self.elements.stride), forms.of(memory.count)
        by_number = {forms.number(loop.body.block.args[0]): loop for loop in self.around}
        if form is None or any(constant_integer(loop.step) != 1 for loop in self.around):
            raise NotKnown
        own = {factor: by_number[factor] for monomial in form for factor in monomial if factor in by_number}
        if any(constant_integer(loop.lb) != 0 for loop in own.values()):
            raise NotKnown
        ends = {factor: forms.of(loop.ub) for factor, loop in own.items()}
        if len(own) == 1:
            ((number, loop),) = own.items()
            if form != {(number,): 1} or ends[number] != size:
                raise NotKnown
            place = self.row
            if not is_same_integer(self.elements.stride, memory.count):  # else it is a vector
                first = write.put(integer(arith.MuliOp, self.column, self.elements.stride))
                place = write.put(integer(arith.AddiOp, place, first))
            self.env[loop.body.block.args[0]] = place
        else:
            row = next((number for number in own if form.get((number,)) == 1), None)
            column = next((n for n in own if n != row and form == {(row,): 1, tuple(sorted((n, stride))): 1}), None)
            if len(own) != 2 or row is None or column is None or ends[row] != {(stride,): 1}:
                raise NotKnown
            if shape_of(memory, self.elements.bound) is None:
                raise NotKnown
            self.env[own[row].body.block.args[0]] = self.row
            self.env[own[column].body.block.args[0]] = self.column
        return [loop for loop in self.around if loop not in own.values()]

    def copy(self, value: SSAValue, write: OpWriter) -> SSAValue:
        """What a value in the loops is for the element."""
        return copied_value(value, self.env, self.around[0], write, self._other)

    def _other(self, load: rt.LoadOp, write: OpWriter) -> SSAValue | None:
        """The same element of another matrix that is filled ahead, or one of memory inside; None if it is none."""
        memory = viewed(load.buffer).owner
        if not isinstance(memory, rt.AllocOp) or load.buffer is not memory.res:
            return None
        if is_inside(memory.res, self.around[0]):
            return local_element(memory, self.copy(load.index, write), self.around[0], self.env, write)
        if self.forms.of(load.index) != self.place:
            return None
        try:
            return self.elements.value(memory, self.row, self.column, write)
        except NotKnown:
            return None
