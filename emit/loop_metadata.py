"""`!llvm.loop`: what LLVM is told about a loop, from what `loop-hints` has noted and from its number of iterations.

Of a loop whose number of iterations is known, LLVM would unroll the widened form by a divisor of that number, for which
the registers do not suffice, or write out all iterations instead of widening them: at levels 3 and 4 it stays as a loop
of an unknown number would be. Written out are short loops that cannot be widened, and short ones within others, which
can be widened without them.

What is left over after the last full vector is computed by a masked one where that takes less time than doing it one by
one. How much is left over depends on the processor, so it is decided here; without mask registers, loops that write
memory are not masked. Nor are nests, whose inner loops often have two or three iterations.

In long modules loops that only add to elements of memory do not run side by side at levels 3 and 4: LLVM makes three
loops of each, which are a tenth of a large program. Nothing waits for an addition there; from 0.7 to 1.35 times the
time, as a rule 1.05, was measured. Nor are loops widened there that move elements and compute next to nothing: memory
is what they wait for, and widening them is a tenth to a seventh of LLVM's time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import f64
from xdsl.ir import Operation

from ulam.dialects import ad, rt
from ulam.dialects.walk import ops_within
from ulam.emit.target import Vectors

if TYPE_CHECKING:
    from ulam.emit.llvm_text import FunctionEmitter

_FEW, _MANY = 4, 32
"""So many iterations LLVM may write out: of loops that can be widened, at least; of others, at most."""
_MASKING = 1.3
"""Time of a masked iteration of a cheap loop, in that of one without a mask."""
_ON_ALL = Vectors()
"""Where bits must not depend on the processor."""
_OF_FUNCTIONS = frozenset(("functions", "strip_of_functions"))
_NOT_LOSING = _OF_FUNCTIONS | {"serial", "cold", "groups"}
"""Loops that do not lose by the longest vectors, where LLVM would choose shorter ones."""
_MOVES = rt.LoadOp | rt.StoreOp | rt.ViewOp | ad.AccumulateOp | ad.TakeOp
_COMPUTES = arith.AddfOp | arith.SubfOp | arith.MulfOp | arith.NegfOp
_MOST_COMPUTED = 4
"""Operations on reals in a loop that moves elements."""
_LOOSE = 3
"""From this level on sums may be re-associated."""


def loop_metadata(e: FunctionEmitter, op: Operation, trips: int | None = None) -> str:
    """`!llvm.loop` of a loop: `cold` loops are neither widened nor unrolled; a counted loop makes progress.

    `trips`: the number of iterations, if it is known.
    """
    metadata = e.module.metadata
    # unrolling by a trip count unknown at compile time doubles the code of scalar loops and gains nothing
    hints = [metadata.node('!{!"llvm.loop.unroll.runtime.disable"}')]
    if type(op) is scf.ForOp:
        hints.append(metadata.node('!{!"llvm.loop.mustprogress"}'))
    kind, count = rt.LoopAttr.kind_of(op)
    kind = "masked_tail" if kind == "functions" else kind
    is_loose = e.module.options.opt_level >= _LOOSE
    vectors = e.vectors if is_loose else _ON_ALL
    lanes = vectors.lanes
    if kind == "cold":
        hints.append(metadata.node('!{!"llvm.loop.vectorize.enable", i1 false}'))
        hints.append(metadata.node('!{!"llvm.loop.unroll.disable"}'))
        hints.append(metadata.node('!{!"llvm.loop.distribute.enable", i1 false}'))
    elif kind == "serial" or (is_loose and e.module.is_long and _only_moves(op)):
        hints.append(metadata.node('!{!"llvm.loop.vectorize.enable", i1 false}'))
    elif (kind == "masked_tail" or _has_costly_rest(op, trips, lanes)) and (vectors.masks or not _writes(op)):
        kind = "masked_tail"
        hints.append(metadata.node('!{!"llvm.loop.vectorize.predicate.enable", i1 true}'))
    elif kind == "masked_tail":  # in their place few single ones
        hints.append(metadata.node('!{!"llvm.loop.interleave.count", i32 1}'))
    elif is_loose and _is_short_in_branch(op, kind, trips, lanes):
        hints.append(metadata.node('!{!"llvm.loop.interleave.count", i32 1}'))
    elif kind == "interleave" and (_carries_real(op) or not (is_loose and e.module.is_long)):
        hints.append(metadata.node(f'!{{!"llvm.loop.interleave.count", i32 {count}}}'))
    if is_loose and kind != "cold" and trips is not None and not _may_be_unrolled(op, kind, trips, lanes):
        hints.append(metadata.node('!{!"llvm.loop.unroll.disable"}'))
    return f", !llvm.loop !{metadata.distinct(', '.join(f'!{h}' for h in hints))}"


def has_longest_vectors(ops: Iterable[Operation]) -> bool:
    """Whether all loops of a function that may be widened evaluate functions, of its ops.

    LLVM is told of whole functions how long vectors are: of a loop it takes a length as an order, and complains on
    standard error where it cannot follow.
    """
    kinds = {rt.LoopAttr.kind_of(op)[0] for op in ops if type(op) is scf.ForOp}
    return not kinds.isdisjoint(_OF_FUNCTIONS) and kinds <= _NOT_LOSING


def _may_be_unrolled(op: Operation, kind: str, trips: int, lanes: int) -> bool:
    """Whether LLVM may write out the iterations: where widening them is impossible, or leaves much over.

    Right inside of a loop, which can then be widened; not in a branch of it, nor where elements are neighbours for the
    inner loop only.
    """
    if trips <= _FEW or trips > _MANY or kind == "columns":
        return trips <= _FEW
    around = op.parent_op()
    if kind == "serial" or (kind != "masked_tail" and isinstance(around, scf.ForOp)):
        return True
    is_top = isinstance(around, func.FuncOp)
    return is_top and kind != "masked_tail" and trips < 2 * lanes and trips % lanes != 0


def _is_short_in_branch(op: Operation, kind: str, trips: int | None, lanes: int) -> bool:
    """Whether a sum of few terms stands in a branch: LLVM would mask a vector, which takes longer than a rest."""
    is_short = kind == "interleave" and trips is not None and _FEW <= trips < 2 * lanes
    return is_short and isinstance(op.parent_op(), scf.IfOp)


def _carries_real(op: Operation) -> bool:
    """Whether a loop carries a real: only such a sum waits for the addition of the iteration before."""
    return any(result.type == f64 for result in op.results)


def _only_moves(op: Operation) -> bool:
    """Whether a loop moves elements of memory and computes next to nothing of them. Sums are no such loops."""
    if not isinstance(op, scf.ForOp) or _carries_real(op):
        return False
    computed = 0
    for inner in op.body.block.ops:
        computed += isinstance(inner, _COMPUTES)
        of_reals = any(value.type == f64 for value in (*inner.operands, *inner.results))
        if inner.regions or (of_reals and not isinstance(inner, _MOVES | _COMPUTES | arith.ConstantOp)):
            return False
    return computed <= _MOST_COMPUTED


def _writes(op: Operation) -> bool:
    """Whether a loop writes memory. Without mask registers some processors take dozens of steps for a masked store."""
    return any(isinstance(inner, rt.StoreOp | ad.AccumulateOp | ad.KeepOp | ad.TakeOp) for inner in ops_within(op))


def _has_costly_rest(op: Operation, trips: int | None, lanes: int) -> bool:
    """Whether what is left over after the last full vector, one by one, takes longer than masks for all iterations."""
    if trips is None or not isinstance(op.parent_op(), func.FuncOp):
        return False
    vectors, rest = divmod(trips, lanes)
    return vectors > 0 and rest > 0 and vectors + rest > _MASKING * (vectors + 1)
