"""What was stored at a constant index is not loaded again, whatever was stored at others since.

    store x, v[0]; store y, v[1]; z = load v[0]    →    store x, v[0]; store y, v[1]; (z is x)

So small vectors that loops fill, once these are straight code, become values: the memory is dead if nobody else reads
it. In inner blocks, too, where what is around them writes nothing to that memory. One walk; `cse` forwards the last
store to a buffer only.
"""

from __future__ import annotations

from xdsl.dialects import func, scf
from xdsl.ir import Block, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer
from ulam.library.records import record
from ulam.passes.loops.effects import PURE, UNKNOWN, Root, root, written_roots, written_roots_within
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.rewriting import discard, replace_uses


@record(frozen=True)
class ForwardStores(FunctionPass):
    """Takes what was stored at constant indices for what is loaded, in all functions or in the one that is named."""

    name = "forward-stores"

    def changes_function(self, function: func.FuncOp) -> bool:
        forwarding = _Forwarding()
        for block in function.body.blocks:
            forwarding.block(block, {})
        return forwarding.changed


Contents = dict[Root, tuple[SSAValue, dict[int, SSAValue]]]
"""Memory → the buffer it was last written by, with the values at constant indices of that. All else is not known."""


class _Forwarding:
    def __init__(self) -> None:
        self.changed = False

    def block(self, block: Block, known: Contents) -> None:
        """Forwards in a block; `known` is what memory holds at its beginning."""
        op = block.first_op
        while op is not None:
            following = op.next_op
            if type(op) in PURE:
                pass  # most are
            elif isinstance(op, rt.StoreOp):
                self._store(op, known)
            elif isinstance(op, rt.LoadOp):
                self._load(op, known)
            elif isinstance(op, rt.CopyOp):
                self._copy(op, known)
            elif op.regions:
                _forget(known, written_roots_within(op))
                for region in op.regions:
                    for nested in region.blocks:
                        self.block(nested, _copy_of(known) if isinstance(op, scf.IfOp | scf.ForOp) else {})
            elif not isinstance(op, ad.IndependentOp):
                _forget(known, written_roots(op))
            op = following

    def _store(self, op: rt.StoreOp, known: Contents) -> None:
        source, index = root(op.buffer), constant_integer(op.index)
        if source is UNKNOWN:
            known.clear()
            return
        before = known.get(source)
        if index is None:
            known.pop(source, None)
        elif before is not None and before[0] is op.buffer:
            before[1][index] = op.value
        else:
            known[source] = (op.buffer, {index: op.value})

    def _load(self, op: rt.LoadOp, known: Contents) -> None:
        if (index := constant_integer(op.index)) is None:
            return
        buffer, values = known.get(root(op.buffer), (None, {}))
        if buffer is op.buffer and (value := values.get(index)) is not None:
            replace_uses(op.res, value)
            discard(op)
            self.changed = True

    def _copy(self, op: rt.CopyOp, known: Contents) -> None:
        count = constant_integer(op.count)
        buffer, values = known.get(root(op.source), (None, {}))
        copied: dict[int, SSAValue] = {}
        if count is not None and buffer is op.source:
            copied = {index: value for index, value in values.items() if 0 <= index < count}
        target = root(op.destination)
        _forget(known, {target})
        if copied and target is not UNKNOWN:
            known[target] = (op.destination, copied)


def _copy_of(known: Contents) -> Contents:
    return {source: (buffer, dict(values)) for source, (buffer, values) in known.items()}


def _forget(known: Contents, written: set[Root]) -> None:
    if UNKNOWN in written:
        known.clear()
    else:
        for source in written:
            known.pop(source, None)
