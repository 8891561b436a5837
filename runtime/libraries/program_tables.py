"""A compiled program as the tables that the C runtime reads (c/model/program.h), in memory or as LLVM IR constants.

The structures here are those of the header, field by field. What they hold is written once: `ProgramTables` fills them
for code in this process; `llvm_module` makes constants of the same structures, for a library that is linked.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from ulam.passes.units import UNITS, UnitKind
from ulam.runtime.names import INNER_RANK, UNCONSTRAINED_DIMS, GlobalVariable
from ulam.runtime.program import CompiledUnit

BRIDGESTAN_VERSION = (2, 9, 0)
"""Whose C interface is that of the libraries (c/shim/bridgestan.c)."""

BLOCKS = ("data", "transformed_data", "parameters", "transformed_parameters", "generated_quantities")
"""Blocks that declare variables, in the order of their numbers."""

TABLES = "ulam_linked_program"
"""The symbol of a linked library's tables."""


class ProgramSite(ctypes.Structure):
    """A place where a check may fail."""

    _fields_: ClassVar[Any] = [
        *[(name, ctypes.c_int32) for name in ("status", "line", "column")],
        *[(name, ctypes.c_char_p) for name in ("message", "file", "function")],
    ]


class ProgramUnit(ctypes.Structure):
    """Code of a unit."""

    _fields_: ClassVar[Any] = [
        ("name", ctypes.c_char_p),
        *[(name, ctypes.c_void_p) for name in ("evaluate", "bind", "prepare", "data_dims")],
        *[(name, ctypes.c_int64) for name in ("n_slots", "n_sites")],
        ("sites", ctypes.POINTER(ProgramSite)),
        *[(name, ctypes.c_int32) for name in ("draws", "loaded")],
    ]


class ProgramVariable(ctypes.Structure):
    """A variable of the program's blocks."""

    _fields_: ClassVar[Any] = [
        *[(name, ctypes.c_char_p) for name in ("name", "type", "declaration")],
        *[(name, ctypes.c_int32) for name in (
            "block", "is_int", "is_complex", "array_rank", "inner_rank", "is_bounded", "slot", "unconstrained_rank",
        )],
        ("shorter", ctypes.c_int32 * 2),
        ("field_ranks", ctypes.c_char_p),
    ]  # fmt: skip


LoadUnit = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
Notify = ctypes.CFUNCTYPE(None)
LOAD_INTERRUPTED = 2
"""What a `LoadUnit` returns where SIGINT ended it."""
PrintText = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)


class ProgramTable(ctypes.Structure):
    """A compiled program."""

    _fields_: ClassVar[Any] = [
        *[(name, ctypes.c_char_p) for name in ("name", "info")],
        ("n_variables", ctypes.c_int64),
        ("variables", ctypes.POINTER(ProgramVariable)),
        ("units", ctypes.POINTER(ProgramUnit)),
        ("load", LoadUnit),
        ("user", ctypes.c_void_p),
        ("interrupted", Notify),
        ("print", PrintText),
    ]


def entries(kind: UnitKind) -> tuple[str, ...]:
    """The functions that a unit's code has."""
    if not kind.is_bound:
        return ("prepare", "data_dims")
    return ("evaluate", "bind") if kind.has_bind else ("evaluate",)


class ProgramTables:
    """The tables of a program, without the code of its units at first. What they point to lives as long as this."""

    def __init__(self, metadata: Mapping[str, Any], info: str, load: Callable[..., int] | None = None) -> None:
        declared = [GlobalVariable.from_metadata(i, entry) for i, entry in enumerate(metadata["globals"])]
        variables = (ProgramVariable * len(declared))(*map(_variable, declared))
        self.units = (ProgramUnit * len(UNITS))(*(ProgramUnit(name=name.encode()) for name in UNITS))
        self.program = ProgramTable(
            name=f"{metadata['name']}_model".encode(),
            info=info.encode(),
            n_variables=len(declared),
            variables=variables,
            units=self.units,
        )
        self._kept: list[Any] = [variables]
        self.filled: set[str] = set()
        """Names of the units that were entered."""
        if load is not None:
            self.program.load = LoadUnit(load)

    @property
    def address(self) -> int:
        """Of the program."""
        return ctypes.addressof(self.program)

    def fill(self, name: str, compiled: CompiledUnit, addresses: Mapping[str, int]) -> None:
        """Enters a unit, and where its functions are, if they are in this process."""
        unit = self.units[list(UNITS).index(name)]
        sites = (ProgramSite * len(compiled.sites))(*map(_site, compiled.sites))
        self._kept.append(sites)
        for entry, address in addresses.items():
            setattr(unit, entry, address)
        unit.n_slots, unit.n_sites, unit.sites = compiled.n_slots, len(sites), sites
        unit.draws = compiled.draws
        self.filled.add(name)


def _variable(variable: GlobalVariable) -> ProgramVariable:
    rank, shorter = _unconstrained_form(variable)
    return ProgramVariable(
        name=variable.name.encode(),
        type=variable.type.encode(),
        declaration=variable.declaration().encode(),
        block=BLOCKS.index(variable.block),
        is_int=variable.element == "int",
        is_complex=variable.is_complex,
        array_rank=variable.array_rank,
        inner_rank=INNER_RANK[variable.inner],
        is_bounded=variable.element == "int" and variable.constraint == "bounds",
        slot=variable.slot,
        unconstrained_rank=rank,
        shorter=(ctypes.c_int32 * 2)(*shorter),
        field_ranks=bytes(ord("0") + rank for rank in variable.field_ranks),
    )


def _unconstrained_form(variable: GlobalVariable) -> tuple[int, Sequence[int]]:
    """The rank of the unconstrained form of an inner value, and, if that is 2, by how much it is smaller."""
    rank = INNER_RANK[variable.inner]
    rule = UNCONSTRAINED_DIMS.get(variable.constraint)
    if rule is None:
        return rank, (0, 0)
    sizes = (9, 8)[:rank]  # not at the edge of any rule
    dims = rule(*sizes)
    return len(dims), [size - dim for size, dim in zip(sizes, dims, strict=True)] if len(dims) == 2 else (0, 0)


def _site(entry: Mapping[str, Any]) -> ProgramSite:
    return ProgramSite(
        status=entry["status"],
        line=entry.get("line", 0),
        column=entry.get("column", 0),
        message=entry["message"].encode(),
        file=entry.get("file", "").encode(),
        function=entry.get("function", "").encode(),
    )


def info_text(lines: Iterable[str]) -> str:
    """What a library tells of itself: as BridgeStan does, which clients look at for threads, and `lines` of ours."""
    version = ".".join(map(str, BRIDGESTAN_VERSION))
    flags = {
        "STAN_THREADS": True,
        "STAN_MPI": False,
        "STAN_OPENCL": False,
        "STAN_NO_RANGE_CHECKS": False,
        "BRIDGESTAN_AD_HESSIAN": True,
    }
    told = [f"BridgeStan version: {version}", "Stan C++ Defines:"]
    told += [f"\t{name}={str(value).lower()}" for name, value in flags.items()]
    return "\n".join([*told, "Stan Compiler Details:", *(f"\t{line}" for line in lines)]) + "\n"


# ---------------------------------------------------------------- LLVM IR


def llvm_module(tables: ProgramTables) -> str:
    """The tables as a module that has them under `TABLES`. Units that were not filled are not in the library.

    Their functions are symbols, `UnitKind.symbol`, to be found by the linker.
    """
    symbols: dict[tuple[int, str], str] = {}
    for unit, kind in zip(tables.units, UNITS.values(), strict=True):
        for entry in entries(kind) if kind.name in tables.filled else ():
            symbols[ctypes.addressof(unit), entry] = f'@"{kind.symbol(entry)}"'
    writer = _Constants(symbols)
    type_, value = writer.constant(tables.program)
    writer.lines += [f"declare void {name}()" for name in symbols.values()]
    return "\n".join([*writer.lines, f"@{TABLES} = hidden global {type_} {value}"]) + "\n"


class _Constants:
    """Writes ctypes structures as constants. What they point to becomes globals of the module."""

    def __init__(self, symbols: Mapping[tuple[int, str], str]) -> None:
        self.lines: list[str] = []
        self._symbols = symbols
        self._texts: dict[bytes, str] = {}

    def constant(self, structure: ctypes.Structure) -> tuple[str, str]:
        """Type and value of a structure."""
        parts: list[tuple[str, str]] = []
        for name, kind, *_ in structure._fields_:
            value = getattr(structure, name)
            symbol = self._symbols.get((ctypes.addressof(structure), name))
            if symbol is not None:
                parts.append(("ptr", symbol))
            elif kind in (ctypes.c_int32, ctypes.c_int64):
                if isinstance(structure, ProgramUnit) and name == "loaded":  # what is there has functions
                    address = ctypes.addressof(structure)
                    value = int(any((address, entry) in self._symbols for entry in ("evaluate", "prepare")))
                parts.append((f"i{8 * ctypes.sizeof(kind)}", str(value)))
            elif kind is ctypes.c_char_p:
                parts.append(("ptr", self._text(value)))
            elif issubclass(kind, ctypes.Array):
                parts.append((f"[{len(value)} x i32]", f"[{', '.join(f'i32 {item}' for item in value)}]"))
            elif name == "units":
                parts.append(("ptr", self._table("global", value, len(UNITS))))
            elif name in _COUNTS:
                parts.append(("ptr", self._table("constant", value, getattr(structure, _COUNTS[name]))))
            else:  # what only a program in the process has
                parts.append(("ptr", "null"))
        return f"{{ {', '.join(type_ for type_, _ in parts)} }}", f"{{ {', '.join(map(' '.join, parts))} }}"

    def _table(self, kind: str, pointer: Any, count: int) -> str:
        rows = [self.constant(pointer[i]) for i in range(count)]
        if not rows:
            return "null"
        return self._global(kind, f"[{len(rows)} x {rows[0][0]}]", f"[{', '.join(map(' '.join, rows))}]")

    def _text(self, text: bytes | None) -> str:
        text = text or b""
        if text not in self._texts:
            escaped = "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in text)
            self._texts[text] = self._global("unnamed_addr constant", f"[{len(text) + 1} x i8]", f'c"{escaped}\\00"')
        return self._texts[text]

    def _global(self, kind: str, type_: str, value: str) -> str:
        name = f"@table.{len(self.lines)}"
        self.lines.append(f"{name} = private {kind} {type_} {value}")
        return name


_COUNTS = {"sites": "n_sites", "variables": "n_variables"}
"""Tables, and the fields that say how long they are."""
