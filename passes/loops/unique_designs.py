"""Rows of which a product of data and coefficients is made are computed once where they are equal, with a weight.

    for k: for n in 0:N: eta[n] += X[n + N * k] * b[k]       for g in 0:G:
    for n in 0:N: target += f(eta[n], y[n])             →      for k: for n in first[g]:first[g + 1]:
                                                                 eta[n] += X'[n + M * k] * b[k]
                                                               for n in first[g]:first[g + 1]:
                                                                 target += weight[g] * f(eta[n], y'[n])

As `unique-rows` does for single loops, whose groups of rows these are: here several loops, or nests, over the same rows
hand on what they compute of each row in memory that nothing else reads. `X'` and `y'` have M rows, one for all that are
equal; without enough equal rows there is one group of weight 1, and they are `X` and `y`. Products that a kernel makes
(`multiply`) are of M rows, ahead of the groups. Before reverse mode, which makes one body of the derivatives.

Rows with which nothing is done, since they do not take the arms of branches on data in which something is, are in no
group: their products are not computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i32, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import ancestor_in, is_before, terminator
from ulam.passes.loops.bound_forms import bound_ints
from ulam.passes.loops.checks import must_be_precise
from ulam.passes.loops.data_branches import lift_values, may_lift, outermost_loops, where_it_runs
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.hoist_data import hoist_data
from ulam.passes.loops.idle_rows import working_arms
from ulam.passes.loops.linear_rows import Copier, Environment
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.row_groups import RowGroups, Strided
from ulam.passes.loops.row_loops import NoRows
from ulam.passes.loops.rows_of_loops import ELEMENTS, RowElement, RowsOfLoops, made_by_products
from ulam.passes.loops.unit_modules import evaluate_of, set_slots, slots_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard, replace_uses, take_arm
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES


class UniqueDesigns(TellingPass):
    """Lets loops that hand on what they compute of rows of data run over rows that differ, with weights."""

    name = "unique-designs"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        evaluate = evaluate_of(module, self.name)
        top, slices = evaluate.body.block, DataSlices()
        loops = list(filter(_adds_to_target, outermost_loops(top, slices)))
        if not loops or must_be_precise(module):
            return False
        bound, products = bound_ints(module), made_by_products(evaluate)
        written: list[Operation] = []
        for loop in loops:
            if _is_in_groups(loop):
                continue  # of another one
            try:
                rows = RowsOfLoops.of(loop, bound, products)
                if not all(may_lift(op, top, slices) for op in (*rows.ops, *rows.products)):
                    raise NoRows("its data are known inside of a branch alone")
                if loop.parent is not top and rows.needs_data_itself():
                    raise NoRows("which data its rows read is known inside of a branch alone")
            except NoRows as why:
                if str(why):
                    remark_on(self.name, loop, f"equal rows are not looked for: {why}", done=False)
                continue
            writer = _Writer(rows, module, top)
            writer.write(slices)
            written += writer.before
            remark_on(self.name, rows.ops[-1], "equal rows are looked for when data are bound", done=True)
        if written:
            set_slots(module, hoist_data(evaluate, slots_of(module), written))
        return bool(written)


def _is_in_groups(loop: scf.ForOp) -> bool:
    around = loop.parent_op()
    return around is not None and rt.LoopAttr.kind_of(around)[0] == "groups"


def _adds_to_target(loop: scf.ForOp) -> bool:
    return not rt.LoopAttr.kind_of(loop)[0] and any(isinstance(op, ad.TargetAddOp) for op in ops_within(loop))


class _Writer(RowGroups):
    """Writes loops over rows as those over the rows of groups."""

    def __init__(self, rows: RowsOfLoops, module: ModuleOp, top: Block) -> None:
        super().__init__(module, rows.ops[-1])
        self.rows, self.top = rows, top
        self.gain_more_than_nest()
        block = rows.ops[-1].parent
        assert block is not None
        self.block = block
        self.working = working_arms(rows.loops, DataSlices()) if block is top else None
        """Where rows do something, if data say which ones do."""
        self.leaves_out = bool(self.working)

    def write(self, slices: DataSlices) -> None:
        """Changes all loops."""
        rows, place = self.rows, self._place(slices)
        end = rows.count
        if self.block is not self.top:
            self.top.insert_ops_before(self.before, place)
            end = where_it_runs(rows.ops[-1], end, self.zero, self.top)
            self.before = []
        self.count = self.integer(arith.MaxSIOp, end, self.zero)
        widths = {buffer: self._width(elements) for buffer, elements in rows.columns.items()}
        for product in rows.products:
            widths[product.arguments[0]] = product.arguments[3]
        columns = list(widths)
        flat = [
            Strided(self._filled(rows.columns[buffer]), self.one, self.one, self.zero, stays=True)
            if buffer in rows.missing
            else self._strided(buffer, widths[buffer])
            for buffer in columns
        ]
        taken = dict(zip(columns, self.layout(flat, arms=self._arms if self.working else None), strict=True))
        self.note()
        for op in self.before:
            for value in free_values_of_op(op):
                self._lift(value, place)
        self.top.insert_ops_before(self.before, place)
        for buffer, elements in rows.columns.items():
            for element in elements:
                self._move(element, taken[buffer])
        for element in rows.results:
            self._move(element, None)
        for op, loop, column in rows.chosen:
            product = integer(arith.MuliOp, column, self.left)
            place = integer(arith.AddiOp, product.results[0], loop.body.block.args[0])
            assert op.parent is not None
            op.parent.insert_ops_before([product, place], op)
            op.operands = [op.buffer, place.results[0]]
        for product in rows.products:
            x, b, _, inner, columns_of, out = product.arguments
            product.operands = [taken[x], b, self.left, inner, columns_of, out]
        self._write_groups()
        self._forget_branch()

    def _place(self, slices: DataSlices) -> Operation:
        """In front of which op of the top all is written."""
        rows = self.rows
        if self.block is self.top:
            return next(op for op in self.top.ops if op in rows.products or op is rows.ops[-1])
        for op in (*rows.products, *rows.ops):
            lift_values(op, self.top, slices)
        place = ancestor_in(rows.ops[-1], self.top)
        assert place is not None
        return place

    def _lift(self, value: SSAValue, place: Operation) -> None:
        """Lets a value of data be known in front of an op."""
        op = value.owner
        if not isinstance(op, Operation) or op.parent is not self.top or is_before(op, place):
            return
        for operand in op.operands:
            self._lift(operand, place)
        op.detach()
        self.top.insert_op_before(op, place)

    def _filled(self, elements: Sequence[RowElement]) -> SSAValue:
        """A table of what rows read where they read it, else 0."""
        table = self.lasting(self.count, elements[0].op.results[0].type, zero=True)
        for loop in dict.fromkeys(element.rows for element in elements):

            def store(_: Operation, copy: Operation, values: dict[SSAValue, SSAValue], loop: scf.ForOp = loop) -> None:
                assert copy.parent is not None
                copy.parent.add_op(rt.StoreOp(copy.results[0], table, values[loop.body.block.args[0]]))

            outer = ancestor_in(loop, self.block)
            assert outer is not None
            self.before.append(DataSlices().copy(outer, [each.op for each in elements if each.rows is loop], store))
        return table

    def _arms(self) -> SSAValue:
        """0 for each row with which something is done, -1 for others."""
        arms = self.alloc(self.count, i32)
        self.before.append(rt.FillOp(arms, self.put(constant(-1, i32)), self.count))
        for loop, blocks in (self.working or {}).items():
            marks = [constant(0, i32) for _ in blocks]
            for mark, block in zip(marks, blocks, strict=True):
                block.insert_op_before(mark, block.first_op or terminator(block))

            def store(_: Operation, copy: Operation, values: dict[SSAValue, SSAValue], loop: scf.ForOp = loop) -> None:
                assert copy.parent is not None
                copy.parent.add_op(rt.StoreOp(copy.results[0], arms, values[loop.body.block.args[0]]))

            outer = ancestor_in(loop, self.block)
            assert outer is not None
            self.before.append(DataSlices().copy(outer, marks, store))
            for mark in marks:
                discard(mark)
        return arms

    def _forget_branch(self) -> None:
        """A branch of which all rows of groups take one arm is none."""
        arms = [arm for blocks in (self.working or {}).values() for arm in blocks]
        branch = arms[0].parent_op() if len(arms) == 1 else None
        if isinstance(branch, scf.IfOp) and branch.parent_op() in self.rows.loops:
            take_arm(branch, branch.regions[[region.block for region in branch.regions].index(arms[0])])

    def _strided(self, buffer: SSAValue, width: SSAValue) -> Strided:
        across = self.zero if width is self.one else self.count
        return Strided(buffer, self.one, width, across, stays=True)

    def _width(self, elements: Sequence[RowElement]) -> SSAValue:
        """How many columns of a matrix are read: one more than the greatest number of one."""
        if all(not element.column for element in elements):
            return self.one
        scratch = Block([scf.YieldOp.create()])
        write = OpWriter(terminator(scratch))
        extent = write.put(rt.AllocOp(write.whole(2), rt.BufferType(i64), zero=True))
        for element in elements:
            inside, env = self._inside(element, write)
            copier = Copier(lambda value: ancestor_in(_op_of(value), self.block) not in self.rows.ops)
            names: Environment = {
                value: copier.value(value, env, inside) for value in element.forms.values_of(element.column)
            }
            ops, column = element.forms.write(element.column, names)
            for op in ops:
                inside.before(op)
            end = inside.put(integer(arith.AddiOp, column, inside.whole(1)))
            inside.before(rt.KernelOp("sparse_range", (extent, extent, inside.whole(0), end)))
        width = write.put(rt.LoadOp(extent, write.whole(1)))
        for op in list(scratch.ops)[:-1]:
            op.detach()
            self.before.append(op)
        return width

    def _inside(self, element: RowElement, write: OpWriter) -> tuple[OpWriter, Environment]:
        """Loops around an element whose numbers its column depends on."""
        needed = _loops_of(element.forms.values_of(element.column))
        copier = Copier(lambda value: ancestor_in(_op_of(value), self.block) not in self.rows.ops)
        env: Environment = {}
        for loop in reversed(list(_around(element.op, self.block))):
            if loop in needed:
                env, write = copier.loop(loop, env, write)
        return write, env

    def _move(self, element: RowElement, taken: SSAValue | None) -> None:
        """Lets a row read what is now its place."""
        op = element.op
        assert isinstance(op, rt.LoadOp) and op.parent is not None
        buffer = op.buffer if taken is None else taken
        index = op.index
        if element.column or buffer is not op.buffer:
            ops, index = element.forms.write(element.form, {self.rows.count: self.left})
            op.parent.insert_ops_before(ops, op)
        op.operands = [buffer, index]

    # ------------------------------------------------------------ the loops

    def _write_groups(self) -> None:
        rows = self.rows
        anchor = rows.ops[-1]
        assert anchor.next_op is not None
        place = anchor.next_op
        starts = [start for op in rows.ops for start in op.operands[3:]]
        results = [result for op in rows.ops for result in op.results]
        body = Block(arg_types=[i64, *(start.type for start in starts)])
        following = integer(arith.AddiOp, body.args[0], self.one)
        first, last = rt.LoadOp(self.starts, body.args[0]), rt.LoadOp(self.starts, following.results[0])
        weight = rt.LoadOp(self.weights, body.args[0])
        body.add_ops([following, first, last, weight])
        self._bound(first.res, last.res, body)
        for loop in rows.loops:
            for op in ops_within(loop):
                if isinstance(op, ad.TargetAddOp):
                    self._weigh(op, weight.res)
        around = scf.ForOp.create(
            operands=(self.zero, self.groups, self.one, *starts),
            result_types=[start.type for start in starts],
            regions=[Region(body)],
            location=anchor.location,
        )
        rt.LoopAttr.of_kind("groups").put(around)
        self.block.insert_op_before(around, place)
        for result, by in zip(results, around.results, strict=True):
            replace_uses(result, by)
        for op in rows.behind:
            op.detach()
            self.block.insert_op_before(op, place)
        carried = iter(body.args[1:])
        for op in rows.ops:
            op.detach()
            op.operands = [*op.operands[:3], *(next(carried) for _ in op.results)]
            body.add_op(op)
        body.add_op(scf.YieldOp.create(operands=results))

    def _bound(self, first: SSAValue, last: SSAValue, body: Block) -> None:
        """Lets loops over all rows be such over those of a group, in whose memory these begin at 0."""
        rows = self.rows
        size = integer(arith.SubiOp, last, first)
        body.add_op(size)
        if (strips := rows.strips) is not None:
            up, shift = constant(strips.size - 1, i64), constant(strips.size.bit_length() - 1, i64)
            more = integer(arith.AddiOp, size.results[0], up.result)
            count = arith.ShRSIOp.create(operands=(more.results[0], shift.result), result_types=(i64,))
            body.add_ops([up, shift, more, count])
            strips.loop.operands = [strips.loop.lb, count.result, *strips.loop.operands[2:]]
            begin = integer(arith.AddiOp, strips.begin, first)
            for use in list(strips.begin.uses):
                use.operation.operands[use.index] = begin.results[0]
            begin.operands = [strips.begin, first]
            strips.loop.body.block.insert_op_after(begin, _op_of(strips.begin))
            strips.end.operands = [strips.end.lhs, last]
        for loop in rows.loops:
            if strips is None or not strips.loop.is_ancestor(loop):
                loop.operands = [first, last, *loop.operands[2:]]
        for made in rows.memory:
            made.detach()
            made.operands = [size.results[0], *made.operands[1:]]
            body.add_op(made)
        for op in rows.handed:
            place = ELEMENTS[type(op)][1]
            moved = integer(arith.SubiOp, op.operands[place], first)
            assert op.parent is not None
            op.parent.insert_op_before(moved, op)
            op.operands[place] = moved.results[0]

    def _weigh(self, op: ad.TargetAddOp, weight: SSAValue) -> None:
        product = arith.MulfOp.create(
            operands=(weight, op.value), result_types=(f64,), properties=_STRICT, location=op.location
        )
        assert op.parent is not None
        op.parent.insert_op_before(product, op)
        op.operands[0] = product.results[0]


_STRICT = {"fastmath": arith.FastMathFlagsAttr("none")}


def _op_of(value: SSAValue) -> Operation:
    """The op that a value is computed by, or in whose body it is an argument."""
    owner = value.owner
    if isinstance(owner, Block):
        parent = owner.parent_op()
        assert parent is not None
        return parent
    return owner


def _around(op: Operation, block: Block) -> Iterator[scf.ForOp]:
    """The loops around an op, from inside out."""
    parent = op.parent_op()
    while parent is not None and op.parent is not block:
        if isinstance(parent, scf.ForOp):
            yield parent
        op, parent = parent, parent.parent_op()


def _loops_of(values: Sequence[SSAValue]) -> set[scf.ForOp]:
    """The loops whose numbers values depend on."""
    found: set[scf.ForOp] = set()
    work, seen = list(values), set[SSAValue]()
    while work:
        value = work.pop()
        if value in seen:
            continue
        seen.add(value)
        op = value.owner
        if isinstance(op, Block):
            loop = op.parent_op()
            if isinstance(loop, scf.ForOp):
                found.add(loop)
                work += [loop.lb, loop.ub]
        else:
            work += op.operands
    return found
