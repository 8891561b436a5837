"""Equal loops and branches of a unit that is very long become one function, which is called where they were.

    scf.for ... { <50 operations on %y1, %m1> }            func.call @evaluate.shared(%y1, %m1)
    scf.for ... { <the same operations on %y2, %m2> }  →   func.call @evaluate.shared(%y2, %m2)
                                                           func.func private @evaluate.shared(%y, %m) {rt.part = ...}

A function of the program that is called in several places, or a model of several outcomes of the same kind, is written
in place each time; where the whole is long, LLVM's time is what a compile waits for. It is in proportion to what is
left here. What is computed, and in which order, stays as it is: the same bits.

Equal are ops whose names, properties, types and uses of each other are the same, and all constants but integers that
are only computed with, such as the number of an outcome. The first of them becomes the function; constants, and what
all read of the bound table, are copied into it, all other values are passed. The largest are shared first, then what is
equal in what is left. Nothing is taken out of a loop that LLVM may widen.

Sites of errors are no part of it where another unit tells which error comes first (`relocated`): checks that differ in
them only leave without one.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import FloatAttr, ModuleOp, SymbolRefAttr, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import rt
from ulam.dialects.attributes import number
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.library.statuses import LOCATE
from ulam.passes.idle_passes import MANY
from ulam.passes.loops.parts import COPIED, WRITES_BOUND, bring_in, part_of, takes_stack
from ulam.passes.remarks import remark_on

_LOOPS = scf.ForOp | scf.WhileOp
_LEAST_IN_LOOP = 150
"""Ops of what is called in each iteration of a loop."""
_NUMBERS = (i32, i64)
_WITH_KNOWN_NUMBERS = (scf.ForOp, rt.AllocOp, rt.CopyOp, rt.FillOp)
_MOST_NUMBERS = 8
"""Constants that a call passes since they are not the same in all."""


@record(frozen=True)
class ShareParts(ModulePass):
    """Shares equal loops and branches of at least `least` ops, in units of more than `above`.

    `relocated`: another unit tells which error comes first.
    """

    name = "share-parts"

    above: int = MANY
    least: int = 40
    relocated: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]
        whole = [f for f in functions if not any(isinstance(inner, WRITES_BOUND) for inner in ops_within(f.body))]
        found = _Candidates(self.least)
        total = sum(found.add(function) for function in whole)
        if total <= self.above:
            return
        sharing = _Sharing(op, self.relocated)
        for group in found.groups():
            sharing.share(group)
        if sharing.count and whole:
            message = f"{sharing.saved} of {total} operations, more than {self.above}, are calls of {sharing.count}"
            subject = f"function {whole[0].sym_name.data}"
            remark_on(self.name, whole[0], f"{message} functions now", done=True, subject=subject)


class _Candidates:
    """The loops and branches of some functions, by what is soon known of them."""

    def __init__(self, least: int) -> None:
        self._least = least
        self._found = defaultdict[tuple[int, int], list[Operation]](list)

    def add(self, function: func.FuncOp) -> int:
        """Notes those of a function; returns how many ops it has."""
        return self._of_block(function.body.block, in_loop=False)[0]

    def _of_block(self, block: Block, *, in_loop: bool) -> tuple[int, int, bool]:
        """How many ops a block has, a number that is the same for equal ones, and whether it has loops."""
        size, mix, has_loops = 0, 0, False
        for op in block.ops:
            if op.regions:
                ops, inner, loops = self._of_op(op, in_loop=in_loop)
                size += ops
                mix = hash((mix, inner))
                has_loops = has_loops or loops
            else:
                size += 1
                mix = hash((mix, op.name))
        return size, mix, has_loops

    def _of_op(self, op: Operation, *, in_loop: bool) -> tuple[int, int, bool]:
        size, mix, has_loops = 1, hash(op.name), isinstance(op, _LOOPS)
        for region in op.regions:
            for block in region.blocks:
                ops, inner, loops = self._of_block(block, in_loop=in_loop or isinstance(op, _LOOPS))
                size += ops
                mix = hash((mix, inner))
                has_loops = has_loops or loops
        is_large = size >= self._least and (not in_loop or (has_loops and size >= _LEAST_IN_LOOP))
        if is_large and isinstance(op, scf.IfOp | _LOOPS):
            self._found[size, mix].append(op)
        return size, mix, has_loops

    def groups(self) -> Iterator[list[Operation]]:
        """Those that may be equal, the largest first."""
        for key in sorted(self._found, key=lambda key: -key[0]):
            if len(self._found[key]) > 1:
                yield self._found[key]


@record
class _Form:
    """What an op is, but for the values that it has from outside: `free`, in the order of their first use; those that
    a part has copies of are `copied`.

    `numbers`: the uses of constant integers, which may differ; where memory or trip counts depend on one, it may not.
    """

    key: tuple[object, ...]
    free: list[SSAValue]
    copied: dict[SSAValue, None]
    numbers: list[tuple[Operation, int]]


def _form(op: Operation, relocated: bool) -> _Form:
    """The form of an op with all that it has inside."""
    known: dict[SSAValue, int] = {}
    slots: dict[tuple[int, Attribute], int] = {}
    form = _Form((), [], {}, [])
    key: list[object] = []
    for inner in ops_within(op):
        key.append(inner.name)
        for n, value in enumerate(inner.operands):
            owner = value.owner
            if value in known:
                key.append(known[value])
            elif isinstance(owner, rt.BoundOp):  # one value, read however often
                known[value] = slots.setdefault((owner.slot.value.data, value.type), len(known))
                form.free.append(value)
                key += (known[value], value.type)
            elif not isinstance(owner, COPIED):
                known[value] = len(known)
                form.free.append(value)
                key += (known[value], value.type)
            else:
                form.copied[value] = None
                may_differ = isinstance(owner, arith.ConstantOp) and value.type in _NUMBERS
                if may_differ and not isinstance(inner, _WITH_KNOWN_NUMBERS):
                    form.numbers.append((inner, n))
                    key.append(value.type)
                else:
                    key.append((owner.name, *_named(owner.properties)))
        key += [part for part in _named(inner.properties) if not (relocated and part[0] == "site")]
        key += _named(inner.attributes)
        for result in inner.results:
            known[result] = len(known)
            key.append(result.type)
        for region in inner.regions:
            for block in region.blocks:
                key.append(len(block.args))
                for argument in block.args:
                    known[argument] = len(known)
                    key.append(argument.type)
    form.key = tuple(key)
    return form


def _named(attributes: Mapping[str, Attribute]) -> list[tuple[str, object]]:
    """What tells them apart, by name: 0.0 and -0.0 are equal attributes, but not the same number."""
    return [
        (name, struct.pack("d", value.value.data) if isinstance(value, FloatAttr) else value)
        for name, value in sorted(attributes.items(), key=itemgetter(0))
    ]


class _Sharing:
    """Makes functions of equal ops of one module."""

    def __init__(self, module: ModuleOp, relocated: bool) -> None:
        self._module = module
        self._relocated = relocated
        self._replaced: dict[SSAValue, SSAValue] = {}
        self.count = 0
        self.saved = 0

    def share(self, candidates: Sequence[Operation]) -> None:
        """Shares those of some ops that are equal and still there."""
        there = [op for op in candidates if _function_of(op) is not None]
        if len(there) < 2:
            return
        equal = defaultdict[tuple[object, ...], list[tuple[Operation, _Form]]](list)
        for op in there:
            form = _form(op, self._relocated)
            equal[form.key].append((op, form))
        for instances in equal.values():
            returns_buffers = any(type(r.type) is rt.BufferType for r in instances[0][0].results)
            if len(instances) > 1 and not (returns_buffers and takes_stack(instances[0][0])):
                self._make([op for op, _ in instances], [form for _, form in instances])

    def _make(self, ops: Sequence[Operation], forms: Sequence[_Form]) -> None:
        """Makes a function of the first of equal ops, and calls of all."""
        numbers = _different_numbers(forms)
        if len(numbers) > _MOST_NUMBERS:
            return
        if self._relocated:
            _without_sites(ops)
        first, frees = ops[0], [[self._replaced.get(value, value) for value in form.free] for form in forms]
        passed = [n for n, column in enumerate(zip(*frees, strict=True)) if not _is_copied(column)]
        function = _function_of(first)
        assert function is not None
        name = f"{function.sym_name.data.partition('.shared')[0]}.shared{self.count or ''}"
        self.count += 1
        for k, op in enumerate(ops):
            constants = [column[k] for column in numbers]
            arguments = [*constants, *(self._replaced.get(frees[k][n], frees[k][n]) for n in passed)]
            self._call(op, name, arguments)
        body = Block([first], arg_types=[column[0].type for column in numbers])
        for argument, uses in zip(body.args, numbers.values(), strict=True):
            for op, n in uses:
                op.operands[n] = argument
        region = Region(body)
        bring_in(region, [*frees[0], *forms[0].copied], [frees[0][n] for n in passed])
        self._module.body.block.add_op(part_of(region, first.results, name, first))
        for op in ops[1:]:
            self.saved += sum(1 for _ in ops_within(op))
            op.erase(safe_erase=False)

    def _call(self, op: Operation, name: str, arguments: Sequence[SSAValue]) -> None:
        """Puts a call in the place of an op, which is left alone."""
        call = func.CallOp(SymbolRefAttr(name), arguments, [r.type for r in op.results])
        call.location = op.location
        assert op.parent is not None
        op.parent.insert_op_before(call, op)
        for result, other in zip(op.results, call.results, strict=True):
            other.name_hint = result.name_hint
            result.replace_all_uses_with(other)
            self._replaced[result] = other
        op.detach()


def _different_numbers(forms: Sequence[_Form]) -> dict[tuple[SSAValue, ...], list[tuple[Operation, int]]]:
    """The constants that are not the same in all of some equal ops, and where the first has them."""
    found = defaultdict[tuple[SSAValue, ...], list[tuple[Operation, int]]](list)
    known: dict[tuple[object, ...], tuple[SSAValue, ...]] = {}
    for uses in zip(*(form.numbers for form in forms), strict=True):
        values = tuple(op.operands[n] for op, n in uses)
        texts = tuple(value.owner.properties["value"] for value in values if isinstance(value.owner, Operation))
        if len(set(texts)) > 1:
            found[known.setdefault(texts, values)].append(uses[0])
    return found


def _is_copied(column: Sequence[SSAValue]) -> bool:
    """Whether values that equal ops use in the same place are copied: constants, and what is in the same slot."""
    owners = [value.owner for value in column]
    bound = [owner.slot.value.data for owner in owners if isinstance(owner, rt.BoundOp)]
    return isinstance(owners[0], COPIED) and (not bound or (len(bound) == len(owners) and len(set(bound)) == 1))


def _function_of(op: Operation) -> func.FuncOp | None:
    """The function that an op stands in; None if it is gone."""
    current: Operation | None = op
    while current is not None and not isinstance(current, func.FuncOp):
        current = current.parent_op()
    return current


def _without_sites(ops: Sequence[Operation]) -> None:
    """Takes sites from what fails in the first of equal ops where they are not the same in all."""
    for same in zip(*map(ops_within, ops), strict=True):
        first = same[0]
        if "site" in first.properties and len({op.properties.get("site") for op in same}) > 1:
            if isinstance(first, rt.AllocOp):
                del first.properties["site"]
            else:
                first.properties["site"] = number(-1)
            if isinstance(first, rt.CheckOp):
                first.properties["status"] = number(LOCATE)
