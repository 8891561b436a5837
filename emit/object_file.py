"""Object files in ELF: where the functions are, and a copy for debuggers that says where the sections were loaded.

Only what is needed of a format that LLVM writes and others read: 64 bits, little-endian, relocatable. What the line
table says is read by a library (see `runtime.line_table`).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cached_property

from ulam.library.records import record

REVERSE = 1
"""The discriminator that line tables have for instructions of the reverse sweep; all others have 0."""

MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian

# Offsets and layouts of the format, as in <elf.h>.
_SECTIONS_OFFSET, _SECTION_COUNT = 0x28, 0x3C
_SECTION = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, info, alignment, entry size
_SECTION_ADDRESS = 16  # offset of `address`
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
_SYMBOL_TABLE, _FUNCTION, _LOCAL = 2, 2, 0  # section type, symbol type, binding


class ObjectFormatError(Exception):
    """Object code that is not ELF of 64 bits, as on other systems than Linux."""


@record(frozen=True)
class FunctionSymbol:
    """A function: `offset` within the section number `section`, size in bytes."""

    name: str
    section: int
    offset: int
    size: int
    exported: bool


@record(frozen=True)
class _Section:
    type: int
    flags: int
    offset: int
    size: int
    link: int
    header: int


class ObjectFile:
    """The functions of an object file."""

    def __init__(self, code: bytes) -> None:
        if not code.startswith(MAGIC):
            raise ObjectFormatError("the source lines of compiled code are known on Linux only")
        self.code = code
        (start,) = struct.unpack_from("<Q", code, _SECTIONS_OFFSET)
        (count,) = struct.unpack_from("<H", code, _SECTION_COUNT)
        self._sections = [self._section(start + i * _SECTION.size) for i in range(count)]
        self.functions = self._functions()

    def _section(self, header: int) -> _Section:
        _, kind, flags, _, offset, size, link, *_ = _SECTION.unpack_from(self.code, header)
        return _Section(kind, flags, offset, size, link, header)

    def _functions(self) -> list[FunctionSymbol]:
        found: list[FunctionSymbol] = []
        for table in self._sections:
            if table.type != _SYMBOL_TABLE:
                continue
            names = self._sections[table.link].offset
            for position in range(table.offset, table.offset + table.size, _SYMBOL.size):
                name, info, _, section, value, size = _SYMBOL.unpack_from(self.code, position)
                if info & 0xF == _FUNCTION and section < len(self._sections):
                    found.append(FunctionSymbol(self._text(names + name), section, value, size, info >> 4 != _LOCAL))
        return found

    def _text(self, offset: int) -> str:
        return self.code[offset : self.code.index(b"\0", offset)].decode()

    @cached_property
    def code_section(self) -> int:
        """The number of the section that exported functions are in: LLVM puts all into one unless told otherwise.

        Functions that are called on errors alone, which have no lines, may be in another.
        """
        (only,) = {f.section for f in self.functions if f.exported}
        return only

    @property
    def hot_functions(self) -> list[FunctionSymbol]:
        """Those of `code_section`."""
        return [f for f in self.functions if f.section == self.code_section]

    def placed(self, addresses: Mapping[int, int]) -> bytes:
        """The file with the addresses at which sections were loaded: number of the section → address."""
        copy = bytearray(self.code)
        for number, address in addresses.items():
            struct.pack_into("<Q", copy, self._sections[number].header + _SECTION_ADDRESS, address)
        return bytes(copy)
