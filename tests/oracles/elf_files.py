"""What shared libraries show and need."""

from __future__ import annotations

from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection


def exports(path: Path) -> set[str]:
    """The symbols that a library defines for others."""
    with path.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        assert isinstance(table, SymbolTableSection)
        return {symbol.name for symbol in table.iter_symbols() if symbol["st_shndx"] != "SHN_UNDEF"} - {""}


def needed(path: Path) -> set[str]:
    """The libraries that it needs, but for the loader, which is a part of the C library."""
    with path.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".dynamic")
        assert isinstance(section, DynamicSection)
        names = {tag.needed for tag in section.iter_tags("DT_NEEDED")}  # pyright: ignore[reportAttributeAccessIssue]
        return {name for name in names if not name.startswith("ld-")}
