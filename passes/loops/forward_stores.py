"""What was stored at a constant index is not loaded again, whatever was stored at others since.

    store x, v[0]; store y, v[1]; z = load v[0]    →    store x, v[0]; store y, v[1]; (z is x)

So small vectors that loops fill, once these are straight code, become values: the memory is dead if nobody else reads
it. In inner blocks, too, where what is around them writes nothing to that memory; behind a branch what its arms have
stored, or left as it was, is what the branch gives:

    store x, v[0]; if c: store y, v[0]           store x, v[0]; z = if c: store y, v[0]; yield y
    z = load v[0]                           →                           else: yield x

One walk; `cse` forwards the last store to a buffer only.
"""

from __future__ import annotations

from xdsl.dialects import func, scf
from xdsl.ir import Block, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer
from ulam.library.records import record
from ulam.passes.analysis.nesting import terminator
from ulam.passes.loops.effects import PURE, UNKNOWN, Root, root, written_roots, written_roots_within
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.rewriting import discard, rebuild, replace_uses


@record(frozen=True)
class ForwardStores(FunctionPass):
    """Takes what was stored at constant indices for what is loaded, in all functions or in the one that is named."""

    name = "forward-stores"

    def changes_function(self, function: func.FuncOp) -> bool:
        forwarding = _Forwarding()
        for block in function.body.blocks:
            forwarding.block(block, {})
        return forwarding.changed


_Renamed = dict[SSAValue, SSAValue]
"""Results of branches that have got further ones → the same of the new op."""


@record
class _Branch:
    """A branch behind which elements are what one of its arms has left there."""

    op: scf.IfOp
    renamed: _Renamed

    def given(self, values: tuple[Content, Content]) -> SSAValue:
        """A result that is one of two values, by the arm that is taken."""
        first, second = (_value(value, self.renamed) for value in values)
        if first is second:
            return first
        for region, value in zip(self.op.regions, (first, second), strict=True):
            end = terminator(region.block)
            end.operands = [*end.operands, value]
        before = list(self.op.results)
        new = rebuild(self.op, list(self.op.operands), [*(result.type for result in before), first.type])
        assert isinstance(new, scf.IfOp)
        self.op = new
        self.renamed.update(zip(before, new.results, strict=False))
        return new.results[-1]


@record
class _Choice:
    """What an element is behind a branch: a result of it, which is written once it is asked for."""

    branch: _Branch
    values: tuple[Content, Content]
    written: SSAValue | None = None


def _value(content: Content, renamed: _Renamed) -> SSAValue:
    """What an element is."""
    if isinstance(content, _Choice):
        if content.written is None:
            content.written = content.branch.given(content.values)
        content = content.written
    while content in renamed:
        content = renamed[content]
    return content


Content = SSAValue | _Choice
Contents = dict[Root, tuple[SSAValue, dict[int, Content]]]
"""Memory → the buffer it was last written by, with the values at constant indices of that. All else is not known."""


class _Forwarding:
    def __init__(self) -> None:
        self.changed = False
        self._renamed: _Renamed = {}

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
            elif isinstance(op, scf.IfOp):
                self._branch(op, known)
            elif op.regions:
                _forget(known, written_roots_within(op))
                for region in op.regions:
                    for nested in region.blocks:
                        self.block(nested, _copy_of(known) if isinstance(op, scf.ForOp) else {})
            elif not isinstance(op, ad.IndependentOp):
                _forget(known, written_roots(op))
            op = following

    def _branch(self, op: scf.IfOp, known: Contents) -> None:
        ends: list[Contents] = []
        for region in op.regions:
            ends.append(_copy_of(known))
            for nested in region.blocks:
                self.block(nested, ends[-1])
        written = written_roots_within(op)
        _forget(known, written)
        if not all(region.blocks for region in op.regions):
            return
        branch, (first, second) = _Branch(op, self._renamed), ends
        for source in set(written) & first.keys() & second.keys():
            (buffer, ones), (same, others) = first[source], second[source]
            if buffer is same:
                chosen = {n: (one, others[n]) for n, one in ones.items() if n in others}
                known[source] = buffer, {n: _Choice(branch, values) for n, values in chosen.items()}

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
            replace_uses(op.res, _value(value, self._renamed))
            discard(op)
            self.changed = True

    def _copy(self, op: rt.CopyOp, known: Contents) -> None:
        count = constant_integer(op.count)
        buffer, values = known.get(root(op.source), (None, {}))
        copied: dict[int, Content] = {}
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
