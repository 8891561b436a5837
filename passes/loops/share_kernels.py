"""Kernels that are called with the same inputs are called once.

    rt.kernel svd(%a, %m, %n, %u, %s, %v)   →   rt.kernel svd(%a, %m, %n, %u, %s, %v), and %u for %x
    rt.kernel svd(%a, %m, %n, %x, %y, %z)

So for functions of a matrix that have one decomposition: its eigenvalues and its eigenvectors become the two results of
`eigendecompose_sym` (`OF_ONE_DECOMPOSITION` of library/kernels.py). The later call may stand in a region behind the
earlier one; in between nothing writes the inputs, and what the two write nobody else writes.

The adjoints of a shared result are added up before the pullback, not after it: numbers may differ in their last bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import ad, rt
from ulam.dialects.attributes import string
from ulam.dialects.walk import ops_within
from ulam.library.kernels import KERNELS, OF_ONE_DECOMPOSITION
from ulam.passes.loops.effects import UNKNOWN, Root, functions, root, written_roots
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard, replace_uses

Key = tuple[object, ...]


class ShareKernels(ModulePass):
    """Calls kernels once for the same inputs."""

    name = "share-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            run_on(function)


def run_on(function: func.FuncOp) -> None:
    """Shares the kernels of a function."""
    names = Counter(_shared_name(op) for op in ops_within(function) if is_determined(op))
    if max(names.values(), default=0) > 1:
        sharing = _Sharing(function)
        for block in function.body.blocks:
            sharing.block(block, _Known())


def is_determined(op: Operation) -> bool:
    """Whether it is a kernel whose results depend on its inputs only, all of which are in buffers and values.

    Pullbacks, which add to what they write, are no rows of the table.
    """
    if type(op) is not rt.KernelOp or op.res is not None:
        return False
    kernel = KERNELS.get(op.function.data)
    return kernel is not None and not kernel.effects


def _shared_name(op: Operation) -> str:
    assert isinstance(op, rt.KernelOp)
    return OF_ONE_DECOMPOSITION.get(op.function.data, op.function.data)


def _parts(op: rt.KernelOp) -> tuple[list[SSAValue], dict[str, SSAValue]]:
    """What a kernel reads, and the buffers that it writes: by their sizes, or, if two have the same, by position."""
    parameters = KERNELS[op.function.data].parameters
    read: list[SSAValue] = []
    written: list[tuple[str, SSAValue]] = []
    for parameter, argument in zip(parameters, op.operands, strict=True):
        if parameter.kind in ("out", "kept"):
            written.append((parameter.size, argument))
        else:
            read.append(argument)
    by_size = dict(written)
    if len(by_size) == len(written):
        return read, by_size
    return read, {str(position): argument for position, (_, argument) in enumerate(written)}


def _writes(op: Operation) -> set[Root]:
    """Roots of what an op writes, but for its regions: of kernels, their results."""
    if type(op) is rt.KernelOp and op.function.data in KERNELS:
        kinds = KERNELS[op.function.data].parameters
        return {root(a) for p, a in zip(kinds, op.operands, strict=True) if p.kind in ("out", "kept")}
    if type(op) is ad.IndependentOp:  # at the beginning: nothing that is computed
        return set()
    return written_roots(op)


def _all_writes(op: Operation) -> Iterator[Root]:
    for inner in ops_within(op):
        yield from _writes(inner)


class _Known:
    """Kernels of a block whose inputs are as they were; those that it does not have, the block around it has.

    Kept by what they read, so that a write forgets what it may touch without a look at all the rest.
    """

    def __init__(self, outer: _Known | None = None) -> None:
        self._outer = outer
        self._kernels: dict[Key, rt.KernelOp] = {}
        self._reading: dict[Root, list[Key]] = {}
        self._forgotten: set[Root] = set()  # roots of which no reader from outside is known any more
        self._all_forgotten = False

    def __bool__(self) -> bool:
        return bool(self._kernels) or (not self._all_forgotten and bool(self._outer))

    def find(self, key: Key, read: set[Root]) -> rt.KernelOp | None:
        """The kernel with a key, which reads memory with these roots."""
        scope: _Known | None = self
        while scope is not None:
            if (found := scope._kernels.get(key)) is not None:
                return found
            if scope._all_forgotten or not scope._forgotten.isdisjoint(read):
                return None
            scope = scope._outer
        return None

    def add(self, key: Key, read: set[Root], op: rt.KernelOp) -> None:
        """Notes a kernel."""
        self._kernels[key] = op
        for source in read:
            self._reading.setdefault(source, []).append(key)

    def forget(self, written: set[Root]) -> None:
        """Drops kernels whose inputs may have changed when buffers with these roots were written."""
        if UNKNOWN in written:
            self._kernels.clear()
            self._reading.clear()
            self._all_forgotten = True
        elif written:
            for source in (*written, UNKNOWN):
                self._forgotten.add(source)
                for key in self._reading.pop(source, ()):
                    self._kernels.pop(key, None)


class _Sharing:
    """The kernels of one function."""

    def __init__(self, function: func.FuncOp) -> None:
        self.writers = Counter(_all_writes(function))

    def block(self, block: Block, known: _Known) -> None:
        """Shares kernels of a block; `known` are those before it."""
        op = block.first_op
        while op is not None:
            following = op.next_op
            if op.regions:
                if known:
                    known.forget(set(_all_writes(op)))
                for region in op.regions:
                    for inner in region.blocks:
                        self.block(inner, _Known(known))
                if not isinstance(op, scf.IfOp | scf.ForOp):
                    known.forget({UNKNOWN})
            elif is_determined(op):
                assert isinstance(op, rt.KernelOp)
                self._kernel(op, known)
            elif known:
                known.forget(_writes(op))
            op = following

    def _kernel(self, op: rt.KernelOp, known: _Known) -> None:
        read, written = _parts(op)
        known.forget(_writes(op))
        if not all(self._is_own(buffer) for buffer in written.values()):
            return
        key: Key = (_shared_name(op), *map(id, read))
        sources = {root(value) for value in read if isinstance(value.type, rt.BufferType)}
        earlier = known.find(key, sources)
        if earlier is None:
            known.add(key, sources, op)
            return
        results = _parts(earlier)[1]
        told = f"'{op.function.data}' of the same arguments is computed once"
        remark_on(ShareKernels.name, op, told, done=True)
        if earlier.function != op.function:
            self._decompose(earlier, read, results)
        for place, buffer in written.items():
            replace_uses(buffer, results[place])
        discard(op)

    def _is_own(self, buffer: SSAValue) -> bool:
        """Whether a buffer is memory that only this kernel writes."""
        return isinstance(buffer.owner, rt.AllocOp) and self.writers[buffer] == 1 and not self.writers[UNKNOWN]

    @staticmethod
    def _decompose(op: rt.KernelOp, read: list[SSAValue], results: dict[str, SSAValue]) -> None:
        """Makes the kernel one that gives all parts of the decomposition as results."""
        name = OF_ONE_DECOMPOSITION[op.function.data]
        arguments: list[SSAValue] = []
        inputs = iter(read)
        for parameter in KERNELS[name].parameters:
            arguments.append(results[parameter.size] if parameter.kind in ("out", "kept") else next(inputs))
        op.operands = arguments
        op.properties["function"] = string(name)
