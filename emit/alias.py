"""What each buffer may overlap with: roots, and the metadata that tells LLVM.

Memory is taken in distinct pieces: each `rt.alloc`, each `rt.alloc_bound`, each `rt.constants`, each buffer argument
of an entry point and each slot of the bound table is a *root*; `rt.view` stays within its root. Two different roots
never overlap, so that accesses to one carry `!noalias` for all others. Roots that a function only reads share one
scope: reads need not be told apart. A buffer that was itself loaded from memory, or comes from an argument of an
internal function, a branch or a loop, has no root and gets no scope; accesses of different element types never overlap
(`!tbaa`), wherever they point.

Releasing arena memory makes a later root reuse the bytes of an earlier one: emission puts a barrier there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import field

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.library.records import record

MAX_WRITTEN_ROOTS = 40
"""Beyond so many, written roots share the last scope: the lists of scopes grow with the square of their number."""

READ_ONLY = -1

# op → positions of the buffer operands that it writes
WRITTEN_OPERANDS: dict[type[Operation], tuple[int, ...]] = {
    rt.StoreOp: (1,),
    rt.CopyOp: (0,),
    rt.FillOp: (0,),
    ad.AccumulateOp: (0,),
    ad.TakeOp: (0,),
    ad.KeepOp: (0,),
}


class MetadataTable:
    """The numbered metadata of a module; equal nodes share a number."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._numbers: dict[str, int] = {}

    def node(self, text: str) -> int:
        """The number of the node `text` (such as `!{i64 1}`)."""
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.lines)
            self.lines.append(f"!{number} = {text}")
        return number

    def distinct(self, text: str) -> int:
        """A new node that refers to itself first, as scopes, domains and loops do; `text` is the rest of its list."""
        number = len(self.lines)
        rest = f", {text}" if text else ""
        self.lines.append(f"!{number} = distinct !{{!{number}{rest}}}")
        return number

    def element_type(self, name: str) -> int:
        """The access tag of elements of the type called `name`."""
        parent = self.node('!{!"ulam elements"}')
        element = self.node(f'!{{!"{name}", !{parent}, i64 0}}')
        return self.node(f"!{{!{element}, !{element}, i64 0}}")


@record
class RootTable:
    """The roots of one function: buffer → root, and which roots are written there."""

    roots: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Buffer → number of its root; buffers without a root are absent."""
    written: set[int] = field(default_factory=set[int])
    bound: set[int] = field(default_factory=set[int])
    """Roots that are slots of the bound table."""
    count: int = 0
    """How many the function itself works with."""


Functions = Mapping[str, "tuple[func.FuncOp, Sequence[Operation]]"]
"""Name → function, and its ops in the order of definition."""


def find_roots(function: func.FuncOp, ops: Sequence[Operation], bound_is_constant: bool) -> RootTable:
    """The roots of `function`, whose ops are `ops` in the order of definition."""
    return _RootFinder({}, bound_is_constant, _SharedParts(set())).visit(function, ops)


def find_all_roots(functions: Functions, changing_bound: Container[str]) -> dict[str, RootTable]:
    """The roots of all functions: parts (`rt.part`) are called with what is a root, or none, where they were."""
    tables: dict[str, RootTable] = {}
    callers = Counter(
        name for _, ops in functions.values() for op in ops if type(op) is func.CallOp for name in [_callee(op)]
    )
    shared = _SharedParts({name for name, (f, _) in functions.items() if rt.PartAttr.marks(f) and callers[name] > 1})
    pending = [name for name, (function, _) in functions.items() if not rt.PartAttr.marks(function)]
    while pending:
        for name in pending:
            finder = _RootFinder(functions, name not in changing_bound, shared)
            function, ops = functions[name]
            if name in shared.names:
                shared.begin(finder, function)
            finder.visit(function, ops)
            tables |= finder.tables
        pending = [name for name in shared.names if name not in tables and len(shared.calls[name]) == callers[name]]
    return tables


class _SharedParts:
    """Parts that are called in several places: what they are called with in each."""

    def __init__(self, names: set[str]) -> None:
        self.names = dict.fromkeys(sorted(names))
        self.calls: dict[str, list[list[tuple[int, bool] | None]]] = {name: [] for name in names}
        """For each call the root of each operand, and whether it is bound."""

    def begin(self, finder: _RootFinder, function: func.FuncOp) -> None:
        """The roots of a part's arguments: those that have one at each call, and differ in all of them."""
        calls = self.calls[function.sym_name.data]
        groups: list[set[tuple[int, int]]] = []
        members: list[list[SSAValue]] = []
        bound: list[bool] = []
        for n, argument in enumerate(function.args):
            roots = [call[n] for call in calls]
            if not all(roots):
                continue
            found = {(k, root[0]) for k, root in enumerate(roots) if root is not None}
            values: list[SSAValue] = [argument]
            is_bound = all(root is not None and root[1] for root in roots)
            for k in reversed(range(len(groups))):
                if groups[k] & found:
                    found |= groups.pop(k)
                    values += members.pop(k)
                    is_bound = bound.pop(k) and is_bound
            groups.append(found)
            members.append(values)
            bound.append(is_bound)
        for values, is_bound in zip(members, bound, strict=True):
            finder.begin(values, is_bound)


class _RootFinder:
    """Finds the roots of a function and of its parts, which share the numbers of these."""

    def __init__(self, functions: Functions, bound_is_constant: bool, shared: _SharedParts) -> None:
        self._functions = functions
        self._shared = shared
        self._bound_is_constant = bound_is_constant
        self._roots: dict[SSAValue, int] = {}
        self._bound: set[int] = set()
        self._slots: dict[int, int] = {}
        self._count = 0
        self.tables: dict[str, RootTable] = {}

    def begin(self, arguments: Sequence[SSAValue], is_bound: bool) -> None:
        """A root that arguments of the function have in common."""
        new = self._new()
        for argument in arguments:
            self._roots[argument] = new
        if is_bound:
            self._bound.add(new)

    def visit(self, function: func.FuncOp, ops: Sequence[Operation]) -> RootTable:
        """The table of a function; those of its parts are in `tables`, too."""
        table = RootTable(self._roots, bound=self._bound)
        for argument in function.args:
            if rt.EntryAttr.marks(function) and type(argument.type) is rt.BufferType:
                self._roots[argument] = self._new()
        for op in ops:
            kind = type(op)
            if kind is rt.AllocOp or kind is rt.AllocBoundOp or kind is rt.ConstantsOp:
                self._roots[op.results[0]] = self._new()
            elif kind is rt.BoundOp:
                if type(op.results[0].type) is rt.BufferType:
                    self._roots[op.results[0]] = self._of_slot(slot_of(op))
            elif kind is rt.ViewOp:
                self._same(op.results[0], op.operands[0])
            elif type(op) is func.CallOp and (part := self._part(op)) is not None:
                self._visit_part(op, *part)
            elif kind is rt.KernelOp or kind is func.CallOp:
                if kind is func.CallOp and (name := _callee(op)) in self._shared.names:
                    self._shared.calls[name].append([self._known(value) for value in op.operands])
                _mark_written(table, op.operands)
            elif (positions := WRITTEN_OPERANDS.get(kind)) is not None:
                operands = op.operands
                _mark_written(table, [operands[i] for i in positions])
        if self._bound_is_constant:
            table.written -= table.bound  # kernels read bound data only
        values = [*function.args, *(result for op in ops for result in op.results)]
        table.count = len({self._roots[value] for value in values if value in self._roots})
        self.tables[function.sym_name.data] = table
        return table

    def _new(self) -> int:
        self._count += 1
        return self._count - 1

    def _of_slot(self, slot: int) -> int:
        if slot not in self._slots:
            self._slots[slot] = self._new()
            self._bound.add(self._slots[slot])
        return self._slots[slot]

    def _same(self, value: SSAValue, other: SSAValue) -> None:
        root = self._roots.get(other)
        if root is not None:
            self._roots[value] = root

    def _part(self, op: func.CallOp) -> tuple[func.FuncOp, Sequence[Operation]] | None:
        found = self._functions.get(name := _callee(op))
        return found if found is not None and rt.PartAttr.marks(found[0]) and name not in self._shared.names else None

    def _known(self, value: SSAValue) -> tuple[int, bool] | None:
        root = self._roots.get(value)
        return None if root is None else (root, root in self._bound)

    def _visit_part(self, call: func.CallOp, function: func.FuncOp, ops: Sequence[Operation]) -> None:
        for argument, operand in zip(function.args, call.operands, strict=True):
            self._same(argument, operand)
        self.visit(function, ops)
        for result, returned in zip(call.results, ops[-1].operands, strict=True):
            self._same(result, returned)


def _callee(op: Operation) -> str:
    assert isinstance(op, func.CallOp)
    return op.callee.root_reference.data


def slot_of(op: Operation) -> int:
    """The slot of an `rt.bound` or `rt.set_bound`."""
    slot = op.properties["slot"]
    assert isinstance(slot, IntegerAttr)
    return slot.value.data


def _mark_written(table: RootTable, buffers: Iterable[SSAValue]) -> None:
    for buffer in buffers:
        root = table.roots.get(buffer)
        if root is not None:
            table.written.add(root)


class AliasScopes:
    """The text appended to loads and stores of one function."""

    def __init__(self, name: str, table: RootTable, metadata: MetadataTable, bound_is_constant: bool) -> None:
        self._metadata = metadata
        self._table = table
        self._constant = bound_is_constant
        self._suffixes: dict[int, str] = {}
        self._scope_of: dict[int, int] = {}
        self._all_scopes: list[int] = []
        self._make_scopes(name)

    def _make_scopes(self, name: str) -> None:
        table = self._table
        if table.count < 2 or not table.written:
            return
        domain = self._metadata.distinct(f'!"{name}"')
        written = sorted(table.written)
        for position, root in enumerate(written):
            if position < MAX_WRITTEN_ROOTS:
                self._all_scopes.append(self._metadata.distinct(f'!{domain}, !"buffer {root}"'))
            self._scope_of[root] = self._all_scopes[-1]
        if len(written) < table.count:
            scope = self._metadata.distinct(f'!{domain}, !"read only"')
            self._all_scopes.append(scope)
            self._scope_of[READ_ONLY] = scope

    def suffix(self, buffer: SSAValue) -> str:
        """Scope metadata for an access to `buffer`, beginning with a comma, or nothing."""
        root = self._table.roots.get(buffer)
        if root is None:
            return ""
        text = self._suffixes.get(root)
        if text is None:
            text = self._suffixes[root] = self._text(root)
        return text

    def _text(self, root: int) -> str:
        read_only = root not in self._table.written
        text = ""
        if self._constant and read_only and root in self._table.bound:
            text = f", !invariant.load !{self._metadata.node('!{}')}"
        scope = self._scope_of.get(READ_ONLY if read_only else root)
        if scope is None:
            return text
        text += f", !alias.scope !{self._metadata.node(f'!{{!{scope}}}')}"
        others = ", ".join(f"!{s}" for s in self._all_scopes if s != scope)
        if others:
            text += f", !noalias !{self._metadata.node(f'!{{{others}}}')}"
        return text
