"""Files of values as R's `dump` writes them, which CmdStan takes, too (CmdStan guide, "RDump format for CmdStan").

Such a file is assignments, `name <- value`: a number, `c(...)`, a range `a:b`, `integer(0)`, or
`structure(c(...), .Dim = c(...))` with the values column by column.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ulam.frontend.encoding import read_text
from ulam.runtime.errors import DataError
from ulam.runtime.json_text import number_name
from ulam.runtime.named_text import NamedText

_ASSIGNMENT = re.compile(r"""(?:^|;)[ \t]*(?:"([^"\n]+)"|[`']([^`'\n]+)[`']|([A-Za-z.][\w.]*))\s*<-""", re.MULTILINE)
_COMMENT = re.compile(r"#[^\n]*")
_STRUCTURE = re.compile(r"structure\s*\((.*),\s*\.Dim\s*=\s*(.*)\)", re.DOTALL)
_VALUES = re.compile(r"c\s*\((.*)\)", re.DOTALL)
_EMPTY = re.compile(r"(?:integer|double|numeric)\s*\(\s*0?\s*\)|c\s*\(\s*\)")
_RANGE = re.compile(r"(-?\d+)L?\s*:\s*(-?\d+)L?")
_INTEGER = re.compile(r"[+-]?\d+L?")
_LONGEST_BLANK = 4096
"""Bytes among which is one of the first word, of files that are worth a look."""

_SPECIAL = {"NaN": math.nan, "Inf": math.inf, "-Inf": -math.inf, "+Inf": math.inf}


def values_file(path: str) -> str | NamedText:
    """A file of values as what reads values takes it: one of R's as JSON text, of any other the path."""
    with open(path, "rb") as file:
        begin = file.read(_LONGEST_BLANK).lstrip()[:1]
    if begin in (b"{", b"["):  # long files of JSON are not read twice
        return path
    text = read_text(path)
    if _ASSIGNMENT.search(text) is None:
        return path
    return NamedText(json.dumps(parse(text, path)), path)


def parse(text: str, name: str) -> dict[str, Any]:
    """The values of a file, whose name messages show. Raises DataError."""
    text = _COMMENT.sub("", text)
    found: dict[str, Any] = {}
    begins = [*_ASSIGNMENT.finditer(text)]
    ends = [*(later.start() for _, later in pairwise(begins)), len(text)]
    if begins and text[: begins[0].start()].strip():
        raise DataError([f"{name}: expected `name <- value`, found '{_shown(text)}'"])
    for begin, end in zip(begins, ends, strict=True):
        variable = begin[1] or begin[2] or begin[3]
        written = text[begin.end() : end].strip().rstrip(";").strip()
        try:
            found[variable] = _value(written)
        except ValueError as error:
            raise DataError([f"{name}: the value of {variable} is not one of R's numbers: {error}"]) from None
    return found


def _value(text: str) -> Any:
    if (whole := _STRUCTURE.fullmatch(text)) is not None:
        values, dims = _array(whole[1].strip()), _array(whole[2].strip())
        if not all(isinstance(size, int) for size in dims) or math.prod(dims) != len(values):
            raise ValueError(f".Dim is {dims}, of {len(values)} values")
        table = np.empty(len(values), dtype=object)
        table[:] = values
        return table.reshape(dims, order="F").tolist()
    if _VALUES.fullmatch(text) or _EMPTY.fullmatch(text) or _RANGE.fullmatch(text):
        return _array(text)
    return _number(text)


def _array(text: str) -> Sequence[Any]:
    if _EMPTY.fullmatch(text):
        return []
    if (ends := _RANGE.fullmatch(text)) is not None:
        first, last = int(ends[1]), int(ends[2])
        return list(range(first, last + 1) if first <= last else range(first, last - 1, -1))
    whole = _VALUES.fullmatch(text)
    return [_number(part.strip()) for part in (text if whole is None else whole[1]).split(",")]


def _number(text: str) -> Any:
    """A number as JSON has it; special ones by name."""
    if _INTEGER.fullmatch(text):
        return int(text.rstrip("L"))
    try:
        value = _SPECIAL[text] if text in _SPECIAL else float(text)
    except ValueError:
        raise ValueError(f"'{_shown(text)}'") from None
    return value if math.isfinite(value) else number_name(value)


def _shown(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 40 else words[:40] + "..."
