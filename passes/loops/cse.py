"""Common subexpressions: an op that computes what a dominating op has computed is replaced by that.

* Pure ops; the operands of commutative ones in either order. Constants are compared bit by bit (0.0 is not -0.0).
* `rt.load`, if no op in between may write the buffer; a load after a store to the same element gives what was stored.
  So for `ad.kept` and `ad.keep`.
* `rt.check` of a condition that a dominating check has found true; a loop that checks what one before it has checked
  (`passed_checks`).

One walk per function over a scoped table. What a loop may write is forgotten before its body is entered.
"""

from __future__ import annotations

import struct
from dataclasses import field

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import COMMUTATIVE, SYMMETRIC_PREDICATES, predicate_of
from ulam.dialects.walk import blocks_of, following_op, operand_tuple, result_of
from ulam.library.records import record
from ulam.passes.loops.effects import (
    ANYTHING_BITS,
    DIVISIONS,
    EFFECT_BITS,
    PURE,
    UNKNOWN,
    Effect,
    Root,
    root,
    written_roots,
)
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.loops.passed_checks import checks_of
from ulam.passes.rewriting import discard, replace_uses

Key = tuple[object, ...]

_COMPARISONS = (arith.CmpiOp, arith.CmpfOp)
_TYPED_BY_OPERANDS = COMMUTATIVE | {
    arith.SubiOp, arith.SubfOp, arith.DivfOp, arith.NegfOp, arith.CmpiOp, arith.CmpfOp, arith.SelectOp, rt.ViewOp,
}  # fmt: skip
_WRITE = int(Effect.WRITE)
_REPLACEABLE = PURE | DIVISIONS


@record(frozen=True)
class Cse(FunctionPass):
    """Shares common subexpressions, and what was stored or loaded before, in all functions or in the one named."""

    name = "cse"
    settles = True

    def changes_function(self, function: func.FuncOp) -> bool:
        eliminator = _Eliminator()
        eliminator.function(function)
        return eliminator.changed


class _Loads:
    """What elements of buffers are known to hold, in a block; what it does not say, the block around it does.

    Kept by root, so that a write forgets what it may touch without a look at all the rest.
    """

    def __init__(self, outer: _Loads | None = None) -> None:
        self._outer = outer
        self._of: dict[Root, dict[tuple[int, int], SSAValue]] = {}
        self._forgotten: set[Root] = set()  # roots of which nothing from outside is known any more
        self._all_forgotten = False

    def find(self, source: Root, element: tuple[int, int]) -> SSAValue | None:
        """The value of the element (buffer and index) of a buffer with the root `source`, if it is known."""
        scope: _Loads | None = self
        while scope is not None:
            if (found := scope._of.get(source, {}).get(element)) is not None:
                return found
            if scope._all_forgotten or source in scope._forgotten:
                return None
            scope = scope._outer
        return None

    def add(self, source: Root, element: tuple[int, int], value: SSAValue) -> None:
        """The element now holds `value`."""
        self._of.setdefault(source, {})[element] = value

    def forget(self, written: set[Root]) -> None:
        """Drops what may have changed when buffers with these roots were written."""
        if UNKNOWN in written:
            self._of.clear()
            self._all_forgotten = True
            return
        for source in (*written, UNKNOWN):
            self._of.pop(source, None)
            self._forgotten.add(source)


@record
class _Eliminator:
    """The tables for one function."""

    known: dict[Key, Operation] = field(default_factory=dict[Key, Operation])
    scope: list[Key] = field(default_factory=list[Key])  # keys of `known`, in the order in which they came
    loads: _Loads = field(default_factory=lambda: _Loads())
    writes: dict[Operation, set[Root]] = field(default_factory=dict[Operation, set[Root]])  # of ops with regions
    numbers: dict[Attribute, int] = field(default_factory=dict[Attribute, int])
    number_by_id: dict[int, tuple[int, Attribute]] = field(default_factory=dict[int, tuple[int, Attribute]])
    passed: dict[Key, set[Root]] = field(default_factory=dict[Key, set[Root]])
    """Loops that only check, and the memory that they read."""
    changed: bool = False
    binds: bool = False  # the function writes the bound table: reads of it are not all the same

    def function(self, function: func.FuncOp) -> None:
        for block in function.body.blocks:
            self._summarise(block)
        if len(function.body.blocks) == 1:
            self._block(function.body.block)

    def _summarise(self, block: Block) -> set[Root]:
        """Roots of the buffers that `block` may write; noted for each op with regions."""
        roots: set[Root] = set()
        op = block.first_op
        while op is not None:
            cls = type(op)
            if cls in _REPLACEABLE:
                pass  # most are
            elif op.regions:
                inner = written_roots(op)
                for nested in blocks_of(op):
                    inner |= self._summarise(nested)
                self.writes[op] = inner
                roots |= inner
            elif EFFECT_BITS.get(cls, ANYTHING_BITS) & _WRITE:
                roots |= written_roots(op)
            elif cls is rt.SetBoundOp:
                self.binds = True
            op = following_op(op)
        return roots

    # ------------------------------------------------------------ the walk

    def _block(self, block: Block) -> None:
        outer = len(self.scope)
        known = self.known
        passed = frozenset(self.passed)
        op = block.first_op
        while op is not None:
            following = following_op(op)
            cls = type(op)
            if cls in _REPLACEABLE:
                if cls is not rt.BoundOp or not self.binds:
                    key = self._constant_key(op) if cls is arith.ConstantOp else self._key(op)
                    if (same := known.get(key)) is None:
                        known[key] = op
                        self.scope.append(key)
                    else:
                        for result, by in zip(op.results, same.results, strict=True):
                            replace_uses(result, by)
                        self._discard(op)
            elif cls is rt.LoadOp or cls is ad.KeptOp:
                self._load(op)
            elif op.regions:
                self._regions(op)
            elif cls is rt.CheckOp:
                self._check(op)
            elif EFFECT_BITS.get(cls, ANYTHING_BITS) & _WRITE:
                self._write(op)
            op = following
        while len(self.scope) > outer:
            del self.known[self.scope.pop()]
        if self.passed:
            for key in self.passed.keys() - passed:
                del self.passed[key]

    def _check(self, op: Operation) -> None:
        condition, *_ = operand_tuple(op)
        key: Key = (rt.CheckOp, id(condition))
        if key in self.known:
            self._discard(op)
        else:
            self.known[key] = op
            self.scope.append(key)

    def _load(self, op: Operation) -> None:
        buffer, index = operand_tuple(op)
        source = root(buffer)
        found = self.loads.find(source, (id(buffer), id(index)))
        if found is None:
            self.loads.add(source, (id(buffer), id(index)), result_of(op))
        else:
            replace_uses(result_of(op), found)
            self._discard(op)

    def _discard(self, op: Operation) -> None:
        self.changed = True
        discard(op)

    def _forget(self, written: set[Root]) -> None:
        if written:
            self.loads.forget(written)
            for key, read in list(self.passed.items()):
                if UNKNOWN in written or UNKNOWN in read or not read.isdisjoint(written):
                    del self.passed[key]

    def _write(self, op: Operation) -> None:
        self._forget(written_roots(op))
        if isinstance(op, rt.StoreOp):
            value, buffer, index = operand_tuple(op)
            self.loads.add(root(buffer), (id(buffer), id(index)), value)
        elif isinstance(op, ad.KeepOp):
            buffer, index, value = operand_tuple(op)
            self.loads.add(root(buffer), (id(buffer), id(index)), value)

    def _regions(self, op: Operation) -> None:
        written = self.writes[op]
        if type(op) is scf.ForOp and (checks := checks_of(op)) is not None:
            key, read = checks
            if key in self.passed:
                self._discard(op)
                return
            self.passed[key] = read
        if type(op) is not scf.IfOp:
            self._forget(written)
        before = self.loads
        for block in blocks_of(op):
            self.loads = _Loads(before)
            self._block(block)
        self.loads = before
        self._forget(written)

    # ------------------------------------------------------------ keys

    def _key(self, op: Operation) -> Key:
        cls = type(op)
        key: list[object] = list(map(id, operand_tuple(op)))
        properties = op.properties
        if cls in COMMUTATIVE or (cls in _COMPARISONS and predicate_of(op) in SYMMETRIC_PREDICATES):
            key.sort()  # type: ignore[call-overload]
        key.append(cls)
        if properties:
            for name in sorted(properties) if len(properties) > 1 else properties:
                key.append(self._number(properties[name]))
        if cls not in _TYPED_BY_OPERANDS:
            key.append(-1)  # tells properties from types
            for result in op.results:
                key.append(self._number(result.type))
        return tuple(key)

    def _constant_key(self, op: Operation) -> Key:
        value = op.properties["value"]
        type_ = self._number(result_of(op).type)
        if isinstance(value, IntegerAttr):
            return (arith.ConstantOp, type_, value.value.data)
        if isinstance(value, FloatAttr):
            return (arith.ConstantOp, type_, struct.pack("<d", value.value.data))
        return (arith.ConstantOp, type_, value)

    def _number(self, attribute: Attribute) -> int:
        """A number for each different attribute. Hashing one is slow, so its identity is tried first."""
        found = self.number_by_id.get(id(attribute))
        if found is None:
            number = self.numbers.setdefault(attribute, len(self.numbers))
            # The attribute is kept: its identity must not go to another one.
            found = self.number_by_id[id(attribute)] = (number, attribute)
        return found[0]
