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
equal in what is left. Nothing is taken out of a loop that LLVM may widen: of what stands in a loop, nests of loops, and
what is so large that a call beside it is nothing.

Sites of errors are no part of it where another unit tells which error comes first (`relocated`): checks that differ in
them only leave without one.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from math import inf
from operator import itemgetter

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import FloatAttr, ModuleOp, SymbolRefAttr, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import rt
from ulam.dialects.walk import operand_tuple, ops_within
from ulam.library.records import record
from ulam.passes.idle_passes import MANY
from ulam.passes.loops.checks import leave_open
from ulam.passes.loops.parts import COPIED, WRITES_BOUND, bring_in, part_of, takes_stack
from ulam.passes.remarks import remark_on

_LOOPS = scf.ForOp | scf.WhileOp
_LEAST_IN_LOOP = 150
"""Ops of what is called in each iteration of a loop."""
_LEAST_NEST = 25
"""The same of a nest of loops."""
_CONSTANTS = frozenset(COPIED) - {rt.BoundOp}
_LEAST_WITH_LOOP = 4
"""Ops of what has a loop and is shared: one that LLVM widens costs as much time as hundreds of other operations."""
_NUMBERS = (i32, i64)
_WITH_KNOWN_NUMBERS = (scf.ForOp, rt.AllocOp, rt.CopyOp, rt.FillOp)
_MOST_NUMBERS = 8
"""Constants that a call passes since they are not the same in all."""
_MOST_VALUES = 512
"""What depends on more from outside, or uses more constant integers, is not shared: all that is around it depends on
the same, and would be as long to tell."""


@record(frozen=True)
class ShareParts(ModulePass):
    """Shares equal loops, and branches of at least `least` ops or with a loop, in units of more than `above`.

    `relocated`: another unit tells which error comes first.
    """

    name = "share-parts"

    above: int = MANY
    least: int = 40
    relocated: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]
        whole = [f for f in functions if not any(type(inner) in WRITES_BOUND for inner in ops_within(f.body))]
        found = _Candidates(self.least)
        total = sum(found.add(function) for function in whole)
        if total <= self.above:
            return
        sharing = _Sharing(op, self.relocated)
        for group in found.groups(self.relocated):
            sharing.share(group)
        if sharing.count and whole:
            message = f"{sharing.saved} of {total} operations, more than {self.above}, are calls of {sharing.count}"
            subject = f"function {whole[0].sym_name.data}"
            remark_on(self.name, whole[0], f"{message} functions now", done=True, subject=subject)


class _Candidates:
    """The loops and branches of some functions, by what is soon known of them."""

    def __init__(self, least: int) -> None:
        self._least = least
        self._found = defaultdict[tuple[int, int], list[_Instance]](list)

    def add(self, function: func.FuncOp) -> int:
        """Notes those of a function; returns how many ops it has."""
        self._function = function.sym_name.data
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
        size, mix, has_inner, is_loop = 1, hash(op.name), False, isinstance(op, _LOOPS)
        for region in op.regions:
            for block in region.blocks:
                ops, inner, loops = self._of_block(block, in_loop=in_loop or is_loop)
                size += ops
                mix = hash((mix, inner))
                has_inner = has_inner or loops
        has_loops = has_inner or is_loop
        if isinstance(op, scf.IfOp | _LOOPS):
            is_nest = has_inner and is_loop
            if size >= (self._least_in_loop(has_loops, is_nest) if in_loop else self._least_outside(has_loops)):
                self._found[size, mix].append(_Instance(op, self._function))
        return size, mix, has_loops

    def _least_outside(self, has_loops: bool) -> int:
        return min(self._least, _LEAST_WITH_LOOP) if has_loops else self._least

    def _least_in_loop(self, has_loops: bool, is_nest: bool) -> float:
        """What is called in each iteration: beside a nest a call is nothing."""
        return _LEAST_NEST if is_nest else _LEAST_IN_LOOP if has_loops else inf

    def groups(self, relocated: bool) -> list[list[_Instance]]:
        """Those that are equal, the largest first."""
        forms = _Forms(relocated)
        groups: list[list[_Instance]] = []
        for key in sorted(self._found, key=lambda key: -key[0]):
            if len(self._found[key]) < 2:
                continue
            equal = defaultdict[int, list[_Instance]](list)
            for instance in self._found[key]:
                if (form := forms.of(instance.op)) is not None:
                    equal[form.key].append(_Instance(instance.op, instance.function, form))
            groups += [group for group in equal.values() if len(group) > 1]
        return groups


@record
class _Form:
    """What an op is, but for the values that it has from outside: `free`, in the order of their first use.

    `key` is a number that equal ones have in common. `numbers`: all uses of constant integers that may differ, in
    order; where memory or trip counts depend on one, it may not.
    """

    key: int
    free: list[SSAValue]
    numbers: list[Attribute]


@record
class _Instance:
    """A loop or branch, and the name of the function that it is written in."""

    op: Operation
    function: str
    form: _Form | None = None


class _Forms:
    """The forms of ops with regions, each made once, of those inside: work in proportion to the ops, however deep.

    Values have numbers within an op and its own blocks, in the order of definition and first use; of an op inside that
    has regions, its key counts, and the numbers of what it has from outside.
    """

    def __init__(self, relocated: bool) -> None:
        self._relocated = relocated
        self._keys: dict[tuple[object, ...], int] = {}
        self._forms: dict[Operation, _Form | None] = {}

    def of(self, op: Operation) -> _Form | None:
        """The form of an op; None if it depends on too much."""
        if op not in self._forms:
            self._forms[op] = self._made(op)
        return self._forms[op]

    def _made(self, root: Operation) -> _Form | None:
        known: dict[SSAValue, int] = {}
        form = _Form(0, [], [])
        key: list[object] = []
        self._add(root, key, known, form)
        for region in root.regions:
            for block in region.blocks:
                key.append(len(block.args))
                _define(block.args, key, known)
                for op in block.ops:
                    if not op.regions:
                        self._add(op, key, known, form)
                        _define(op.results, key, known)
                    elif (inner := self.of(op)) is not None:
                        key.append(inner.key)
                        for value in inner.free:
                            if value not in known:
                                known[value] = len(known)
                                form.free.append(value)
                            key.append(known[value])
                        form.numbers += inner.numbers
                        _define(op.results, key, known)
                    else:
                        return None
        if max(len(form.free), len(form.numbers)) > _MOST_VALUES:
            return None
        form.key = self._keys.setdefault(tuple(key), len(self._keys))
        return form

    def _add(self, op: Operation, key: list[object], known: dict[SSAValue, int], form: _Form) -> None:
        """Adds an op, without what is in it."""
        key.append(op.name)
        for value in operand_tuple(op):
            if value in known:
                key.append(known[value])
            elif type(value.owner) not in _CONSTANTS:
                key += (len(known), value.type)
                known[value] = len(known)
                form.free.append(value)
            elif _may_differ(value, op):
                key.append(value.type)
                form.numbers.append(_constant(value))
            else:
                key += (type(value.owner), *_named(_owner(value).properties))
        if type(op) not in _CONSTANTS:
            key += [part for part in _named(op.properties) if not (self._relocated and part[0] == "site")]
        if op.attributes:
            key += _named(op.attributes)


def _define(values: Sequence[SSAValue], key: list[object], known: dict[SSAValue, int]) -> None:
    """Gives numbers to values; constants are what they are wherever they stand."""
    for value in values:
        key.append(value.type)
        if type(value.owner) not in _CONSTANTS:
            known[value] = len(known)


def _owner(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation)
    return value.owner


def _constant(value: SSAValue) -> Attribute:
    return _owner(value).properties["value"]


def _may_differ(value: SSAValue, user: Operation) -> bool:
    """Whether a constant may be another one in what is shared by a call."""
    return (
        type(value.owner) is arith.ConstantOp and value.type in _NUMBERS and not isinstance(user, _WITH_KNOWN_NUMBERS)
    )


@record
class _Uses:
    """What an op takes from outside: `free` values, in the order of their first use, and constants, which are `copied`.

    `numbers`: the uses of constant integers that may differ.
    """

    free: dict[SSAValue, None]
    copied: dict[SSAValue, None]
    numbers: list[tuple[Operation, int]]


def _uses(root: Operation, stand_ins: Container[SSAValue]) -> _Uses:
    """The uses of an op with all that it has inside; `stand_ins` are arguments in the place of constant integers."""
    uses = _Uses({}, {}, [])
    inside: set[SSAValue] = set()
    for op in ops_within(root):
        for n, value in enumerate(operand_tuple(op)):
            if type(value.owner) in _CONSTANTS:
                if value not in inside:
                    uses.copied[value] = None
                if _may_differ(value, op):
                    uses.numbers.append((op, n))
            elif value in stand_ins:
                uses.numbers.append((op, n))
            elif value not in inside:
                uses.free[value] = None
        inside.update(op.results)
        for region in op.regions:
            for block in region.blocks:
                inside.update(block.args)
    return uses


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
        self._gone: set[Operation] = set()
        self._stand_ins: set[SSAValue] = set()
        self.count = 0

    @property
    def saved(self) -> int:
        """How many ops are no longer there."""
        return len(self._gone)

    def share(self, group: Sequence[_Instance]) -> None:
        """Shares those of some equal ops that are still there."""
        there = [instance for instance in group if instance.op not in self._gone]
        if len(there) < 2 or _different_columns(there) > _MOST_NUMBERS:
            return
        first = there[0].op
        if not (any(type(r.type) is rt.BufferType for r in first.results) and takes_stack(first)):
            self._make([instance.op for instance in there], there[0].function)

    def _make(self, ops: Sequence[Operation], function: str) -> None:
        """Makes a function of the first of equal ops, and calls of all."""
        all_uses = [_uses(op, self._stand_ins) for op in ops]
        numbers = self._different_numbers([uses.numbers for uses in all_uses])
        if self._relocated:
            _without_sites(ops)
        first, frees = ops[0], [list(uses.free) for uses in all_uses]
        passed = [n for n, column in enumerate(zip(*frees, strict=True)) if not _is_copied(column)]
        name = f"{function}.shared{self.count or ''}"
        self.count += 1
        for k, op in enumerate(ops):
            constants = [column[k] for column in numbers]
            arguments = [*constants, *(self._replaced.get(frees[k][n], frees[k][n]) for n in passed)]
            self._call(op, name, arguments)
        frees[0] = [self._replaced.get(value, value) for value in frees[0]]
        body = Block([first], arg_types=[column[0].type for column in numbers])
        for argument, uses in zip(body.args, numbers.values(), strict=True):
            self._stand_ins.add(argument)
            for op, n in uses:
                op.operands[n] = argument
        region = Region(body)
        bring_in(region, [*frees[0], *all_uses[0].copied], [frees[0][n] for n in passed])
        self._module.body.block.add_op(part_of(region, first.results, name, first))
        for op in ops[1:]:
            self._gone.update(ops_within(op))
            op.erase(safe_erase=False)

    def _different_numbers(
        self, all_uses: Sequence[Sequence[tuple[Operation, int]]]
    ) -> dict[tuple[SSAValue, ...], list[tuple[Operation, int]]]:
        """The constants that are not the same in all of some equal ops, and where the first has them."""
        found = defaultdict[tuple[SSAValue, ...], list[tuple[Operation, int]]](list)
        known: dict[tuple[object, ...], tuple[SSAValue, ...]] = {}
        for uses in zip(*all_uses, strict=True):
            values = tuple(op.operands[n] for op, n in uses)
            names = tuple(value if value in self._stand_ins else _constant(value) for value in values)
            if len(set(names)) > 1 or values[0] in self._stand_ins:
                found[known.setdefault(names, values)].append(uses[0])
        return found

    def _call(self, op: Operation, name: str, arguments: Sequence[SSAValue]) -> None:
        """Puts a call in the place of an op, which is left alone."""
        assert op.parent is not None
        arguments = [_ahead_of(op, value) for value in arguments]
        call = func.CallOp(SymbolRefAttr(name), arguments, [r.type for r in op.results])
        call.location = op.location
        op.parent.insert_op_before(call, op)
        for result, other in zip(op.results, call.results, strict=True):
            other.name_hint = result.name_hint
            result.replace_all_uses_with(other)
            self._replaced[result] = other
        op.detach()


def _ahead_of(op: Operation, value: SSAValue) -> SSAValue:
    """A value, or a copy in front of an op if it is a constant inside of that."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp) or not op.is_ancestor(owner):
        return value
    copy = owner.clone()
    assert op.parent is not None
    op.parent.insert_op_before(copy, op)
    return copy.results[0]


def _different_columns(instances: Sequence[_Instance]) -> int:
    """How many constants are not the same in all of some equal ops."""
    columns = zip(*(instance.form.numbers for instance in instances if instance.form is not None), strict=True)
    return len({column for column in columns if len(set(column)) > 1})


def _is_copied(column: Sequence[SSAValue]) -> bool:
    """Whether values that equal ops use in the same place are copied: constants, and what is in the same slot."""
    owners = [value.owner for value in column]
    bound = [owner.slot.value.data for owner in owners if isinstance(owner, rt.BoundOp)]
    return isinstance(owners[0], COPIED) and (not bound or (len(bound) == len(owners) and len(set(bound)) == 1))


def _without_sites(ops: Sequence[Operation]) -> None:
    """Takes sites from what fails in the first of equal ops where they are not the same in all."""
    for same in zip(*map(ops_within, ops), strict=True):
        first = same[0]
        if "site" in first.properties and len({op.properties.get("site") for op in same}) > 1:
            leave_open(first)
