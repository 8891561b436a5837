"""Where the functions of a file of definitions begin: files are scanned for heads of functions, never parsed whole."""

from __future__ import annotations

import re

_HEAD = re.compile(
    r"\n(?=[a-z])(?:array\[,*\] )?"
    r"(?:int|real|(?:complex_)?(?:vector|row_vector|matrix)|complex|void|tuple\([^)\n]*\)) (\w+)\("
)


def heads(text: str) -> list[tuple[str, int]]:
    """The functions that a file defines, or declares: names, and where they begin."""
    return [(match[1], match.start()) for match in _HEAD.finditer("\n" + text)]
