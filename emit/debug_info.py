"""Debug information of the emitted code: which of its instructions belong to which line of the Stan program.

With `EmitOptions(lines=True)` every instruction carries the place of the op that it was written for (`!dbg`), so that
the object file has a DWARF line table; nothing else of the text changes. An op of unknown place belongs to the one
around it; what belongs to no statement (reading the bound table, shadows) has line 0, as DWARF has it for such code.

Instructions of the reverse sweep have the discriminator REVERSE, which line tables keep beside the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xdsl.dialects import func
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Operation

from ulam.dialects.places import is_reverse, place_of
from ulam.dialects.walk import ops_within
from ulam.emit.llvm_text import Emit, FunctionEmitter, ModuleEmitter
from ulam.emit.object_file import REVERSE

if TYPE_CHECKING:
    from ulam.emit.llvm_text import EmitOptions

# DWARF has no number for Stan; the syntax of expressions in a debugger is then C's.
_LANGUAGE = "DW_LANG_C99"
_LAST_COLUMN = 0xFFFF  # LLVM has 16 bits for it; 0: not known
_FLAGS = ('!{i32 7, !"Dwarf Version", i32 5}', '!{i32 2, !"Debug Info Version", i32 3}')


def _quoted(text: str) -> str:
    """Text as LLVM's assembly has it."""
    return '"' + "".join(c if " " <= c <= "~" and c not in '"\\' else _escaped(c) for c in text) + '"'


def _escaped(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode())


class DebugModuleEmitter(ModuleEmitter):
    """A module with a compile unit and the files of its instructions."""

    def __init__(self, module: ModuleOp, options: EmitOptions, table: Mapping[type[Operation], Emit]) -> None:
        super().__init__(module, options, {kind: _placing(emit) for kind, emit in table.items()})
        self._main = self._main_file()
        self.unit = self._distinct(
            f"DICompileUnit(language: {_LANGUAGE}, file: !{self.file(self._main)}, producer: \"ulam\", "
            "isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug, nameTableKind: None)"
        )  # fmt: skip
        self.type = self.metadata.node("!DISubroutineType(types: !{null})")

    def _main_file(self) -> str:
        """The file of the first op that has one; LLVM wants a name even where no op has."""
        for op in ops_within(self.module):
            if (place := place_of(op.location)) is not None:
                return place.filename.data
        return "unknown"

    def _distinct(self, text: str) -> int:
        number = len(self.metadata.lines)
        self.metadata.lines.append(f"!{number} = distinct !{text}")
        return number

    def file(self, name: str) -> int:
        """The metadata node of a file; its name stays as the program has it, relative to where it was compiled."""
        return self.metadata.node(f'!DIFile(filename: {_quoted(name)}, directory: "")')

    def subprogram(self, function: func.FuncOp) -> int:
        """The node of a function, at the place it has or at the first line of the program."""
        place = place_of(function.location)
        file = self.file(place.filename.data if place is not None else self._main)
        line = place.line.data if place is not None else 0
        name = function.sym_name.data
        shown = f"{self.options.unit}.{name}" if self.options.unit else name
        return self._distinct(
            f"DISubprogram(name: {_quoted(shown)}, scope: !{file}, file: !{file}, "
            f"line: {line}, type: !{self.type}, unit: !{self.unit}, spFlags: DISPFlagDefinition | DISPFlagOptimized)"
        )

    def scope(self, subprogram: int, file: str, reverse: bool) -> int:
        """The scope of instructions of a function: with the file and sweep that they belong to."""
        if not reverse and file == self._main:
            return subprogram
        discriminator = REVERSE if reverse else 0
        return self.metadata.node(
            f"!DILexicalBlockFile(scope: !{subprogram}, file: !{self.file(file)}, discriminator: {discriminator})"
        )

    def location(self, subprogram: int, attribute: LocationAttr | None) -> int:
        """The node of a place within a function."""
        place = place_of(attribute)
        if place is None:
            return self.metadata.node(f"!DILocation(line: 0, scope: !{subprogram})")
        scope = self.scope(subprogram, place.filename.data, is_reverse(attribute))
        column = place.column.data if place.column.data <= _LAST_COLUMN else 0
        return self.metadata.node(f"!DILocation(line: {place.line.data}, column: {column}, scope: !{scope})")

    def function_emitter(self, function: func.FuncOp, ops: list[Operation], bound_is_constant: bool) -> FunctionEmitter:
        return DebugFunctionEmitter(self, function, ops, bound_is_constant)

    def flags_text(self) -> str:
        flags = ", ".join(f"!{self.metadata.node(flag)}" for flag in _FLAGS)
        return f"!llvm.dbg.cu = !{{!{self.unit}}}\n!llvm.module.flags = !{{{flags}}}"


class DebugFunctionEmitter(FunctionEmitter):
    """A function of which each instruction has its place."""

    def __init__(
        self, module: DebugModuleEmitter, function: func.FuncOp, ops: list[Operation], bound_is_constant: bool
    ) -> None:
        super().__init__(module, function, ops, bound_is_constant)
        self._module = module
        self._subprogram = module.subprogram(function)
        self._places: dict[int, tuple[LocationAttr, int]] = {}  # by identity: hashing an attribute takes longer
        self._place = module.location(self._subprogram, None)

    def attributes_text(self) -> str:
        return f"{super().attributes_text()} !dbg !{self._subprogram}"

    def line(self, text: str) -> None:
        # a phi's operands are completed later, and it is no instruction of the machine
        suffix = "" if " = phi " in text else f", !dbg !{self._place}"
        super().line(text + suffix)

    def emit_at_place(self, emit: Emit, op: Operation) -> None:
        """Writes an op, whose instructions get its place; without one, they have that of the op around it."""
        outer, cold = self._place, len(self.cold)
        if place_of(op.location) is not None:
            self._place = self._number(op.location)
        emit(self, op)
        for position in range(cold, len(self.cold)):
            text = self.cold[position]
            if text.startswith("  ") and ", !dbg !" not in text:
                self.cold[position] = f"{text}, !dbg !{self._place}"
        self._place = outer

    def _number(self, location: LocationAttr | None) -> int:
        found = self._places.get(id(location))
        if found is None:
            assert location is not None
            found = self._places[id(location)] = location, self._module.location(self._subprogram, location)
        return found[1]


def _placing(emit: Emit) -> Emit:
    def emit_at_place(e: DebugFunctionEmitter, op: Operation) -> None:
        e.emit_at_place(emit, op)

    return emit_at_place
