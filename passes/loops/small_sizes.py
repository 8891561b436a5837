"""The heaviest nest over rows has versions for few components: where a size that `bind` knows is 2 or 3.

    for n: { for k in 0:K: a(n, k); for k in 0:K: b(n, k) }
    →   if K == 2: for n: { a(n, 0); a(n, 1); b(n, 0); b(n, 1) }
        else if K == 3: for n: { a(n, 0); ...; b(n, 2) }
        else: the nest as it was

Columns, lags and states are such: K is data, and a loop of two iterations costs more than what it does. In straight
code the elements of a row are values, and LLVM widens the loop over rows. A version is code that takes time to compile,
so there are few: of one nest, whose inner loops all have the same number of iterations, and within a budget of ops.
Ahead of reverse mode, so that derivatives are straight code, too: what is read at the same place in all rows is read
ahead of them, and its adjoint is a sum that the loop carries. Where inner loops evaluate functions, rows side by side
(`strip-mine`) are as fast or faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, i1
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.dialects.effects import Effect
from ulam.dialects.scalar_ops import CMPI, INTEGER_OPS, constant, constant_integer, simplify, width_of
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.effects import UNKNOWN, effect_within, root, written_roots_within
from ulam.passes.loops.row_nests import CALLS
from ulam.passes.loops.tables import is_costly_function
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.loops.unroll_small import unroll
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import cloned, discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE

SIZES = (2, 3)
_OF_PLACES = (*INTEGER_OPS, arith.ExtSIOp, arith.ConstantOp)
_MOST_OPS = 200
"""In the straight code of all versions together."""


class SmallSizes(TellingPass):
    """Gives the heaviest nest over rows of `evaluate` versions for few components."""

    name = "small-sizes"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        block = evaluate_of(module, self.name).body.block
        nest = max(_outermost_loops(block), key=_weight, default=None)
        if nest is None or (size := _common_size(nest)) is None or not _gains(nest):
            return False
        return _give_versions(nest, size)


def _outermost_loops(block: Block) -> Iterator[scf.ForOp]:
    """The loops over rows of a block and of its branches that stand in no other loop, and may run often."""
    for op in block.ops:
        if type(op) is scf.ForOp:
            if rt.LoopAttr.kind_of(op)[0] not in ("cold", "groups", "kinds"):
                yield op
        elif type(op) is scf.IfOp:
            for region in op.regions:
                if region.blocks:
                    yield from _outermost_loops(region.block)


def _inner_loops(nest: scf.ForOp) -> list[scf.ForOp]:
    return [op for op in ops_within(nest.body.block) if isinstance(op, scf.ForOp)]


def _common_size(nest: scf.ForOp) -> SSAValue | None:
    """The bound integer of which alone the number of iterations of every inner loop is made; None if there is none."""
    has_calls = any(isinstance(op, (*CALLS, scf.WhileOp)) for op in ops_within(nest.body.block))
    if has_calls or constant_integer(nest.ub) is not None:
        return None
    found: set[SSAValue] = set()
    for loop in _inner_loops(nest):
        if constant_integer(loop.step) != 1:
            return None
        sizes = [size for end in (loop.lb, loop.ub) if constant_integer(end) is None for size in _made_of(end)]
        if not sizes:
            return None
        found.update(sizes)
    (size,) = found if len(found) == 1 else (None,)
    return size if size is not None and size not in _made_of(nest.ub) and isinstance(size.owner, rt.BoundOp) else None


def _gains(nest: scf.ForOp) -> bool:
    """Whether straight code is faster than rows side by side (`strip-mine`): not where inner loops evaluate functions,
    unless rows need each other, and not where rows read or add to what data decide about, which stays scalar then.
    """
    ops = list(ops_within(nest.body.block))
    if any(isinstance(op, rt.LoadOp) and not _is_data(op.buffer) and _is_loaded(op.index, nest) for op in ops):
        return False
    is_costly = any(is_costly_function(op) for loop in _inner_loops(nest) for op in loop.body.block.ops)
    return not is_costly or _needs_other_rows(nest, ops)


def _is_data(buffer: SSAValue) -> bool:
    base = root(buffer)
    return isinstance(base, SSAValue) and isinstance(base.owner, rt.BoundOp)


def _is_loaded(index: SSAValue, nest: scf.ForOp) -> bool:
    """Whether an index is computed of what a row loads."""
    op = index.owner
    if not isinstance(op, Operation) or not is_inside(index, nest):
        return False
    return isinstance(op, rt.LoadOp) or any(_is_loaded(operand, nest) for operand in op.operands)


def _needs_other_rows(nest: scf.ForOp, ops: list[Operation]) -> bool:
    """Whether rows hand memory on, or a row may read memory from outside that rows write."""
    if any(isinstance(argument.type, rt.BufferType) for argument in nest.body.block.args):
        return True
    read = {root(op.buffer) for op in ops if isinstance(op, rt.LoadOp) and not is_inside(op.buffer, nest)}
    return not read.isdisjoint(written_roots_within(nest))


def _made_of(value: SSAValue) -> Iterator[SSAValue]:
    """What an integer is computed of, but for constants."""
    op = value.owner
    if isinstance(op, (*INTEGER_OPS, arith.ExtSIOp)):
        for operand in op.operands:
            yield from _made_of(operand)
    elif constant_integer(value) is None:
        yield value


def _number(value: SSAValue, size: SSAValue, is_: int) -> int | None:
    """What an integer is if a size is known; None if more than that decides."""
    if value is size:
        return is_
    op = value.owner
    if isinstance(op, arith.ExtSIOp):
        return _number(op.input, size, is_)
    if not isinstance(op, INTEGER_OPS):
        return constant_integer(value)
    a, b = (_number(operand, size, is_) for operand in op.operands)
    if a is None or b is None:
        return None
    found = simplify(type(op), a, b, width_of(value.type))
    return a if found == "left" else found if isinstance(found, int) else None


def _weight(nest: scf.ForOp) -> int:
    """What the inner loops of a nest have to do, in ops; places are often computed ahead of them in the end."""
    return sum(1 for loop in _inner_loops(nest) for op in loop.body.block.ops if not isinstance(op, _OF_PLACES))


def _straight_size(loop: scf.ForOp, iterations: int) -> int:
    """How many ops a nest has with so many iterations of each inner loop written out."""
    size = 0
    for op in loop.body.block.ops:
        is_loop = isinstance(op, scf.ForOp)
        size += 1 + (_straight_size(op, iterations) * iterations if is_loop else sum(1 for _ in ops_within(op)))
    return size


def _give_versions(nest: scf.ForOp, size: SSAValue) -> bool:
    left, chosen = _MOST_OPS, list[int]()
    for number in SIZES:
        needed = _straight_size(nest, number)
        if needed <= left:
            left -= needed
            chosen.append(number)
    if not chosen:
        told = f"its inner loops stay: {_straight_size(nest, SIZES[0])} ops without them are too much code"
        remark_on(SmallSizes.name, nest, told, done=False)
        return False
    numbers = " and ".join(map(str, chosen))
    told = f"versions for inner loops of {numbers} iterations, {_MOST_OPS - left} of at most {_MOST_OPS} ops"
    remark_on(SmallSizes.name, nest, told, done=True)
    choice = _choice(nest, size, chosen)
    assert nest.parent is not None
    nest.parent.insert_ops_before(choice, nest)
    for old, new in zip(nest.results, choice[-1].results, strict=True):
        replace_uses(old, new)
    discard(nest)
    return True


def _choice(nest: scf.ForOp, size: SSAValue, numbers: list[int]) -> list[Operation]:
    """The nest, or the versions for some sizes and the nest for all others; the last op has the results.

    All sizes are compared ahead: it can be told there which of the versions runs, if any.
    """
    has_rows = _compared("slt", nest.lb, nest.ub)
    ahead: list[Operation] = [has_rows]
    tests: list[SSAValue] = []
    for number in numbers:
        literal = constant(number, size.type, nest.location)
        is_size = _compared("eq", size, literal.result)
        test = arith.AndIOp.create(operands=(is_size.result, has_rows.result), result_types=(i1,))
        ahead += [literal, is_size, test]
        tests.append(test.results[0])
    chosen: Operation = cloned(nest)
    for number, test in reversed(list(zip(numbers, tests, strict=True))):
        arms = [Region(Block(_yielding(ops))) for ops in (_version(nest, size, number), [chosen])]
        chosen = scf.IfOp.create(operands=(test,), result_types=nest.result_types, regions=arms, location=nest.location)
    return [*ahead, chosen]


def _compared(predicate: str, a: SSAValue, b: SSAValue) -> arith.CmpiOp:
    return arith.CmpiOp.create(operands=(a, b), result_types=(i1,), properties={"predicate": CMPI[predicate]})


def _yielding(ops: Sequence[Operation]) -> list[Operation]:
    return [*ops, scf.YieldOp.create(operands=ops[-1].results, location=ops[-1].location)]


def _version(nest: scf.ForOp, size: SSAValue, number: int) -> list[Operation]:
    """The nest with constants for all that the size decides, and without inner loops."""
    literals: list[Operation] = []
    mapping: dict[SSAValue, SSAValue] = {}
    for value in free_values_of_op(nest):
        if constant_integer(value) is None and (known := _number(value, size, number)) is not None:
            literals.append(literal := constant(known, value.type, nest.location))
            mapping[value] = literal.result
    copy = cloned(nest, mapping)
    for loop in reversed(_inner_loops(copy)):  # inner ones first
        ends = [constant_integer(end) for end in (loop.lb, loop.ub)]
        if None not in ends:
            unroll(loop, range(*ends))  # type: ignore[arg-type]
    return [*literals, *_taken_ahead(copy, size, number), copy]


def _taken_ahead(nest: scf.ForOp, size: SSAValue, number: int) -> list[Operation]:
    """Takes loads that are the same in all rows, of which there is one at least, out of a nest that stands nowhere yet:
    the adjoint of what is loaded is then a sum that the nest carries. What may not be reached stays."""
    written = written_roots_within(nest)
    loads: list[Operation] = []
    if UNKNOWN in written:
        return loads
    for op in list(nest.body.block.ops):
        if effect_within(op) & Effect.LEAVE:
            break
        if not isinstance(op, rt.LoadOp) or is_inside(op.buffer, nest) or root(op.buffer) in written:
            continue
        if (place := _number(op.index, size, number)) is not None:
            index = constant(place, op.index.type, op.location)
            op.operands[1] = index.result
            op.detach()
            loads += [index, op]
    return loads
