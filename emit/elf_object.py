"""Objects into the process without LLVM: what a start from the cache needs of a linker.

The objects of our programs (x86-64 Linux, position independent) have code, constants, and relocations of four kinds.
`load` lays the sections out in memory of its own, with a jump and an address for each function from outside, and makes
the code executable. For all else, of which there is nothing today, it answers None: LLVM's linker does it then.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Callable
from typing import Any

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

_IDENTITY = b"\x7fELF\x02\x01\x01"  # 64 bits, little endian
_RELOCATABLE, _X86_64 = 1, 62
_PROGBITS, _SYMTAB, _RELA, _NOBITS = 1, 2, 4, 8
_WRITABLE, _ALLOCATED, _EXECUTABLE, _THREAD_LOCAL = 1, 2, 4, 0x400
_UNDEFINED, _FIRST_RESERVED = 0, 0xFF00
_GLOBAL, _COMMON = 1, 0xFFF2
# R_X86_64_...: the address itself; relative to the place; that of a jump to it; of a slot that has the address
_64, _PC32, _PLT32, _SLOTS = 1, 2, 4, (9, 41, 42)

_JUMP = b"\xff\x25"  # jmp *slot(%rip)
_JUMP_SIZE, _SLOT_SIZE = 8, 8


class ElfObject:
    """Machine code in the process. Addresses are valid while this object lives, which keeps what the code needs."""

    keeps: object = None

    def __init__(self, memory: mmap.mmap, symbols: dict[str, int]) -> None:
        self._memory = memory
        self._symbols = symbols

    def address(self, symbol: str) -> int:
        """Where the function `symbol` begins."""
        try:
            return self._symbols[symbol]
        except KeyError:
            from ulam.emit.errors import CodeGenerationError

            raise CodeGenerationError(f"'{symbol}' cannot be linked: the object has no such function") from None


def load(data: bytes, outside: Callable[[str], int | None]) -> ElfObject | None:
    """Links an object file into the process; None if LLVM has to. `outside` is where functions are that it calls."""
    if not sys.platform.startswith("linux") or platform.machine() != "x86_64":
        return None
    try:
        return _Linker(data, outside).linked()
    except (_Unknown, struct.error, IndexError, ValueError):
        return None


class _Unknown(Exception):
    """There is something in an object that is left to LLVM."""


class _Linker:
    def __init__(self, data: bytes, outside: Callable[[str], int | None]) -> None:
        self.data = data
        self.outside = outside
        identity, kind, machine, _, _, _, start, _, _, _, _, size, number, _ = _HEADER.unpack_from(data)
        if not identity.startswith(_IDENTITY) or (kind, machine, size) != (_RELOCATABLE, _X86_64, _SECTION.size):
            raise _Unknown
        self.sections = [_SECTION.unpack_from(data, start + k * size) for k in range(number)]
        self.places: dict[int, int] = {}
        """Offsets of sections in our memory."""
        self.slots: dict[int, int] = {}
        """Offsets of the slots of symbols: each has an address, and of those from outside the jump follows."""

    def linked(self) -> ElfObject:
        symbols, names = self._symbols()
        relocations = self._relocations()
        code_end, size = self._lay_out(symbols, relocations)
        memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for number, place in self.places.items():
            _, kind, _, _, offset, length, *_ = self.sections[number]
            if kind != _NOBITS:
                memory[place : place + length] = self._part(offset, length)
        addresses = self._addresses(symbols, names, base)
        for symbol, slot in self.slots.items():
            struct.pack_into("<Q", memory, slot, addresses[symbol])
            struct.pack_into("<2si", memory, self._jump(slot), _JUMP, slot - self._jump(slot) - 6)
        for place, symbol, kind, addend in relocations:
            target = addresses[symbol]
            if kind == _64:
                struct.pack_into("<Q", memory, place, target + addend)
                continue
            if kind in _SLOTS:
                target = base + self.slots[symbol]
            elif symbol in self.slots:
                target = base + self._jump(self.slots[symbol])
            struct.pack_into("<i", memory, place, target + addend - base - place)
        if _protect(base, code_end, mmap.PROT_READ | mmap.PROT_EXEC):
            raise _Unknown
        found = {
            names[k]: addresses[k]
            for k, (_, info, _, section, *_) in enumerate(symbols)
            if info >> 4 == _GLOBAL and section != _UNDEFINED
        }
        return ElfObject(memory, found)

    def _part(self, offset: int, length: int) -> bytes:
        found = self.data[offset : offset + length]
        if len(found) != length:
            raise _Unknown
        return found

    def _symbols(self) -> tuple[list[tuple[int, ...]], list[str]]:
        """The symbols, and their names."""
        tables = [entry for entry in self.sections if entry[1] == _SYMTAB]
        if len(tables) != 1:
            raise _Unknown
        _, _, _, _, offset, length, text, *_ = tables[0]
        symbols = list(_SYMBOL.iter_unpack(self._part(offset, length)))
        _, _, _, _, offset, length, *_ = self.sections[text]
        names = self._part(offset, length)
        return symbols, [names[entry[0] : names.index(0, entry[0])].decode() for entry in symbols]

    def _relocations(self) -> list[tuple[int, int, int, int]]:
        """Section and offset there, in one number; symbol, kind, addend. Only those of what is in memory."""
        found: list[tuple[int, int, int, int]] = []
        for _, kind, _, _, offset, length, _, number, *_ in self.sections:
            if kind == _RELA and self.sections[number][2] & _ALLOCATED:
                for place, info, addend in _RELOCATION.iter_unpack(self._part(offset, length)):
                    found.append((number << 32 | place, info >> 32, info & 0xFFFFFFFF, addend))
        if any(kind not in (_64, _PC32, _PLT32, *_SLOTS) for _, _, kind, _ in found):
            raise _Unknown
        return found

    def _lay_out(
        self, symbols: list[tuple[int, ...]], relocations: list[tuple[int, int, int, int]]
    ) -> tuple[int, int]:
        """Gives sections, slots and jumps their places: code and constants, then what is written to. Makes places of
        relocations those in memory. The end of the first part, and of all."""
        end = 0
        parts = [(k, entry) for k, entry in enumerate(self.sections) if entry[2] & _ALLOCATED]
        for number, (_, kind, flags, _, _, length, _, _, align, _) in parts:
            if kind not in (_PROGBITS, _NOBITS) or flags & _THREAD_LOCAL:
                raise _Unknown
            if not flags & _WRITABLE:
                end = _aligned(end, align)
                self.places[number] = end
                end += length
        needed = {
            symbol
            for _, symbol, kind, _ in relocations
            if kind in _SLOTS or (kind != _64 and symbols[symbol][3] == _UNDEFINED)
        }
        end = _aligned(end, _SLOT_SIZE)
        for symbol in sorted(needed):
            self.slots[symbol] = end
            end += _SLOT_SIZE + _JUMP_SIZE
        code_end = end = _aligned(end, mmap.PAGESIZE)
        for number, (_, _, flags, _, _, length, _, _, align, _) in parts:
            if flags & _WRITABLE:
                end = _aligned(end, align)
                self.places[number] = end
                end += length
        for k, (place, symbol, kind, addend) in enumerate(relocations):
            relocations[k] = (self.places[place >> 32] + (place & 0xFFFFFFFF), symbol, kind, addend)
        return code_end, max(end, 1)

    def _addresses(self, symbols: list[tuple[int, ...]], names: list[str], base: int) -> list[int]:
        """Where symbols are: 0 for those of sections that are not in memory."""
        found: list[int] = []
        for name, (_, _, _, section, value, _) in zip(names, symbols, strict=True):
            if section == _UNDEFINED:
                address = self.outside(name) if name else 0
                if address is None:
                    raise _Unknown
                found.append(address)
            elif section < _FIRST_RESERVED:
                found.append(base + self.places[section] + value if section in self.places else 0)
            elif section == _COMMON:
                raise _Unknown
            else:
                found.append(value)  # an absolute one, such as the name of the file
        return found

    @staticmethod
    def _jump(slot: int) -> int:
        return slot + _SLOT_SIZE


def _aligned(offset: int, align: int) -> int:
    return -(-offset // max(align, 1)) * max(align, 1)


def _protect(address: int, size: int, protection: int) -> int:
    function: Any = ctypes.CDLL(None).mprotect
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function(address, size, protection) if size else 0

