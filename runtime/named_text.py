"""What was read before, with the name that messages call it by; and whether a name is that of MLIR."""

from __future__ import annotations

import re

from ulam.library.records import record


@record(frozen=True)
class NamedText:
    """A program, data or a point that was read from standard input."""

    text: str
    name: str

    def __str__(self) -> str:
        return self.name


MODULE_SUFFIX = ".mlir"


def is_module(filename: str) -> bool:
    """Whether a program of this name is a module, and not Stan."""
    return filename.endswith(MODULE_SUFFIX)


_BEGIN_OF_MODULE = r'\s*(?://[^\n]*\n\s*|[#!][\w.$-]+[ \t]*=[^\n]*\n\s*)*"?builtin\.module\b'


def named_by_content(text: str, name: str) -> str:
    """The name of a program that is no file: of a module, what is one says so."""
    if is_module(name) or "builtin.module" not in text or re.match(_BEGIN_OF_MODULE, text) is None:
        return name
    return name + MODULE_SUFFIX
