"""Tells emission which loops cannot be widened, and which profit from several accumulators.

`functions`: the body evaluates functions; what is left over after the last full vector is then computed by one more,
masked, instead of by a scalar loop, which for few elements takes most of the time and whose code takes long to make;
and vectors are the longest that there are, also where LLVM would take shorter ones, if no loop of the function loses by
it: those that do little but load and store, since what is stored in other pieces than it is loaded waits for memory.
`strip_of_functions`: the same in strips of rows, whose loops are long, without masks.
In nests, whose inner loops often have two or three iterations, only loops that surely have more, only where the loop
around cannot be widened, and not below level 3. Loops of a known number of iterations: `emit/loop_metadata.py`, too.
`serial`: iterations depend on each other, may add to the same element, call functions of C, or the body branches; what
runs there is a chain of scalar operations, for which libm's functions are faster than our own widened ones (levels 3
and 4), and which long modules call. So are the few iterations of a loop that is written out within such a chain.
`interleave`: a short body that only sums, and evaluates no function in branches either, bound by the latency of the
addition unless several sums run side by side. `columns`: an inner loop of a known number of iterations that reads and
writes element after element, where the loop around would skip: it is widened itself, not written out for the loop
around. Many such iterations that sum are `interleave`.
Measured in docs/architecture.md, "Math functions".
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, may_reassociate
from ulam.dialects.walk import ops_within
from ulam.library.costs import WIDENED
from ulam.library.records import record
from ulam.passes.analysis.nesting import terminator
from ulam.passes.loops.carried_sums import sum_chain
from ulam.passes.loops.index_forms import IndexForms
from ulam.passes.loops.row_nests import WHERE
from ulam.passes.loops.tables import is_costly_function

_SERIAL_OPS = frozenset[type]((rt.KernelOp, rt.CheckOp, func.CallOp, rt.AllocOp, rt.MarkOp, rt.CopyOp, rt.FillOp))
_NOT_ONLY_ADDING = _SERIAL_OPS | {rt.StoreOp, scf.WhileOp}
FEW = 4
"""So many iterations of an inner loop are better written out than widened."""
_SHORT = 12
_LONG = 64
"""From so many iterations on a sum runs side by side as if their number were not known: two rounds of four vectors."""
_STRIP = 32
"""So many iterations of a loop around, at least, are one strip."""
_NOT_OF_C = WIDENED | {"pow", "power_of_outcome"}
_SERIAL = rt.LoopAttr.of_kind("serial")
_FUNCTIONS, _STRIP_OF_FUNCTIONS = rt.LoopAttr.of_kind("functions"), rt.LoopAttr.of_kind("strip_of_functions")
_INTERLEAVE, _COLUMNS = rt.LoopAttr.of_kind("interleave", 4), rt.LoopAttr.of_kind("columns")


@record(frozen=True)
class LoopHints(ModulePass):
    """Marks loops that cannot be widened, and short sums. `nests`: inner loops may have masked tails, too; `scatters`:
    loops whose iterations may add to the same element cannot be widened.
    """

    name = "loop-hints"

    nests: bool = False
    scatters: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op, self.nests, self.scatters)


def run_on(op: Operation, nests: bool = False, scatters: bool = False) -> None:
    """Marks the loops at or below `op` that are not marked yet."""
    for loop in ops_within(op):
        if type(loop) is scf.ForOp and rt.LoopAttr.kind_of(loop)[0] in ("", "kinds"):
            if _is_serial(loop) or (scatters and _scatters(loop)) or (nests and _is_few_within_serial(loop)):
                _SERIAL.put(loop)
            elif nests and _goes_along_memory(loop):
                (_INTERLEAVE if _is_long_sum(loop) else _COLUMNS).put(loop)
            elif _is_short_sum(loop.body.block):
                _INTERLEAVE.put(loop)
            elif any(map(is_costly_function, loop.body.block.ops)):
                if is_outermost(loop) or (nests and _is_wide_within_serial(loop)):
                    _FUNCTIONS.put(loop)
                elif nests and _is_strip(loop):
                    _STRIP_OF_FUNCTIONS.put(loop)


def is_outermost(loop: scf.ForOp) -> bool:
    """Whether no loop is around, unless that is one over groups of rows, which may choose among loops."""
    around = loop.parent_op()
    if isinstance(around, scf.IfOp) and isinstance(chooser := around.parent_op(), scf.ForOp):
        around = chooser
    return isinstance(around, func.FuncOp) or (around is not None and rt.LoopAttr.kind_of(around)[0] == "groups")


def _is_wide_within_serial(loop: scf.ForOp) -> bool:
    """Whether a loop has enough iterations for a vector, and what is around it cannot be widened in its place."""
    trips = _known_trips(loop)
    return trips is not None and trips > FEW and _is_within_serial(loop)


def _is_strip(loop: scf.ForOp) -> bool:
    """Whether a loop goes from the index of the loop around to its next one: `min(first + step, end)`."""
    around, end = loop.parent_op(), loop.ub.owner
    if not isinstance(around, scf.ForOp) or loop.lb is not around.body.block.args[0] or type(end) is not arith.MinSIOp:
        return False
    step = constant_integer(around.step)
    return step is not None and step >= _STRIP


def _is_few_within_serial(loop: scf.ForOp) -> bool:
    """Whether the iterations of a loop are written out, and then are a part of a chain."""
    trips = _known_trips(loop)
    return trips is not None and trips <= FEW and _is_within_serial(loop)


def _goes_along_memory(loop: scf.ForOp) -> bool:
    """Whether iterations of an inner loop of known length touch neighbours, and those of the loop around do not."""
    around, trips = loop.parent_op(), _known_trips(loop)
    if not isinstance(around, scf.ForOp) or trips is None or trips <= FEW:
        return False
    forms = IndexForms(around)
    is_apart = False
    for op in loop.body.block.ops:
        if (where := WHERE.get(type(op))) is None:
            continue
        form = forms.of(op.operands[where[1]])
        if form is None or forms.stride(form, loop.body.block.args[0]) not in (0, 1, -1):
            return False
        is_apart = is_apart or forms.stride(form) not in (0, 1, -1)
    return is_apart


def _is_long_sum(loop: scf.ForOp) -> bool:
    trips = _known_trips(loop)
    return trips is not None and trips >= _LONG and _is_short_sum(loop.body.block)


def _known_trips(loop: scf.ForOp) -> int | None:
    lower, upper, step = (constant_integer(value) for value in (loop.lb, loop.ub, loop.step))
    return None if lower is None or upper is None or not step else len(range(lower, upper, step))


def _is_within_serial(loop: scf.ForOp) -> bool:
    around = loop.parent_op()
    while isinstance(around, scf.IfOp):
        around = around.parent_op()
    return around is not None and rt.LoopAttr.kind_of(around)[0] == "serial"


def _is_serial(loop: scf.ForOp) -> bool:
    body = loop.body.block
    if any(type(op) in _SERIAL_OPS or (op.regions and not _only_adds(op)) for op in body.ops):
        return True
    return _carries_chain(loop) or any(map(_is_c_function, ops_within(body)))


def _is_c_function(op: Operation) -> bool:
    """Whether an op calls a function of C, which takes one element at a time; `pow` does so with some exponents."""
    return isinstance(op, rt.MathOp) and op.function.data not in _NOT_OF_C and is_costly_function(op)


def _scatters(loop: scf.ForOp) -> bool:
    """Whether iterations may add to the same element: LLVM cannot tell from an index that was loaded."""
    found: dict[SSAValue, bool] = {}

    def is_loaded(value: SSAValue) -> bool:
        op = value.owner
        if not isinstance(op, Operation) or not loop.is_ancestor(op):
            return False
        if value not in found:
            found[value] = False
            found[value] = isinstance(op, rt.LoadOp) or any(map(is_loaded, op.operands))
        return found[value]

    return any(type(op) is ad.AccumulateOp and is_loaded(op.index) for op in _branches_of(loop.body.block))


def _branches_of(block: Block) -> Iterator[Operation]:
    """The ops of a block and of the branches in it, without those of its loops."""
    for op in block.ops:
        yield op
        if type(op) is scf.IfOp:
            for region in op.regions:
                for arm in region.blocks:
                    yield from _branches_of(arm)


def _carries_chain(loop: scf.ForOp) -> bool:
    """Whether a real goes from one iteration to the next in another way than as a sum."""
    body = loop.body.block
    return any(
        argument.type == f64 and not _is_sum(argument, yielded)
        for argument, yielded in zip(body.args[1:], terminator(body).operands, strict=True)
    )


def _only_adds(op: Operation) -> bool:
    """Whether a branch or loop computes values and sums, and does nothing else."""
    for inner in ops_within(op):
        if type(inner) in _NOT_ONLY_ADDING and not rt.HarmlessAttr.marks(inner):
            return False
        if isinstance(inner, scf.ForOp) and _carries_chain(inner):
            return False
    return True


def _is_sum(argument: SSAValue, yielded: SSAValue) -> bool:
    """`argument + ...` and nothing else, also in branches, with re-association allowed; or merely passed on.

    A product is a sum here: of factors, with nothing added.
    """
    if yielded is argument:
        return True
    chain = sum_chain(argument, yielded, lambda op: isinstance(op, arith.AddfOp | arith.MulfOp) and may_reassociate(op))
    if chain is None:
        return False
    steps = set(chain.values())
    if len({type(op) for op in steps if isinstance(op, arith.AddfOp | arith.MulfOp)}) > 1:
        return False
    return all(
        use.operation in steps or isinstance(use.operation, scf.YieldOp) for value in chain for use in value.uses
    )


def _is_short_sum(body: Block) -> bool:
    count = sum(1 for _ in body.ops)
    has_sum = any(a.type == f64 for a in body.args[1:]) or any(type(op) is ad.AccumulateOp for op in body.ops)
    return count <= _SHORT and has_sum and not any(isinstance(op, rt.MathOp | arith.DivfOp) for op in ops_within(body))
