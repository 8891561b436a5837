"""Reading JSON text, with what Stan reads beyond JSON; what is no JSON is told with its place and what may be meant.

The reader in C (c/model/json_text.h) accepts and says the same.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from typing import Any

from ulam.runtime.errors import DataError

# A bare `Inf`, which Stan reads and JSON does not know; strings are matched first so that nothing in them is.
# Patterns of what is told of bad files: texts, which `re` compiles when they are needed.
_BARE_INFINITY = r'"(?:[^"\\]|\\.)*"|\bInf\b'
_INTEGER = r'"(?:[^"\\]|\\.)*"|-?(\d+)(\.\d+)?([eE][-+]?\d+)?'


class _NotJson(Exception):
    """What is wrong, and where (None: in all of it); `helped`: what is there instead may tell more."""

    def __init__(self, message: str, position: int | None, helped: bool) -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.helped = helped


def parse_json(text: str, name: str) -> dict[str, Any]:
    """JSON text to a dictionary. Raises DataError with line and column, or on a repeated name."""
    try:
        decoded = _with_infinities(text)
    except _NotJson as wrong:
        place, help = "", ""
        if (position := wrong.position) is not None:
            place = f":{text.count(chr(10), 0, position) + 1}:{position - text.rfind(chr(10), 0, position)}"
            help = _help(text, position) if wrong.helped else ""
        raise DataError([f"{name}{place}: not valid JSON: {wrong.message}{help}"]) from None
    if not isinstance(decoded, _Object):
        raise DataError([f'{name}: must be one JSON object {{"name": value, ...}}, found {kind_of(decoded)}'])
    if decoded.repeated:
        names = ", ".join(f"'{key}'" for key in decoded.repeated)
        raise DataError([f"{name}: variable defined more than once: {names}"])
    return decoded


def _with_infinities(text: str) -> Any:
    """What the text stands for, in which `Inf` may stand for `Infinity`."""
    try:
        return _decode(text)
    except _NotJson:
        spelled = re.sub(_BARE_INFINITY, lambda found: "Infinity" if found[0] == "Inf" else found[0], text)
        if spelled == text:
            raise
    try:
        return _decode(spelled)
    except _NotJson as wrong:
        longer = 0
        for found in re.finditer(_BARE_INFINITY, text):
            if wrong.position is None or found.start() + longer >= wrong.position:
                break
            longer += (found[0] == "Inf") * len("inity")
        position = None if wrong.position is None else wrong.position - longer
        raise _NotJson(wrong.message, position, wrong.helped) from None


def _decode(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        message, position = error.msg, error.pos
        if message.startswith("Illegal trailing comma"):  # Python 3.13 and newer; in the words of those before
            is_object = message.endswith("object")
            message = "Expecting property name enclosed in double quotes" if is_object else "Expecting value"
            position = len(text) - len(text[position + 1 :].lstrip(" \t\n\r"))
        raise _NotJson(message, position, True) from None
    except ValueError:  # an integer with more digits than Python reads
        most = sys.get_int_max_str_digits()
        long = (
            found.start(1)
            for found in re.finditer(_INTEGER, text)
            if found[1] and len(found[1]) > most and not (found[2] or found[3])
        )
        raise _NotJson("an integer with more digits than can be read", next(long, 0), False) from None
    except RecursionError:
        raise _NotJson("nested too deeply", None, False) from None


# What stands where a value is expected → what to write instead.
_NOT_JSON = {
    "NA": "Stan has no missing values: leave them out, and say in the data which there are",
    "None": "Stan has no missing values: leave them out, and say in the data which there are",
    "nan": 'write "NaN"',
    "inf": 'write "Infinity"',
    "True": "write 1", "TRUE": "write 1", "T": "write 1",
    "False": "write 0", "FALSE": "write 0", "F": "write 0",
    "'": 'strings and names are in double quotes, "',
    "c(": "an array is [1, 2, 3]",
    "structure(": "this is R's own format; write the data as JSON, as with jsonlite or cmdstanr::write_stan_json",
    "list(": "this is R's own format; write the data as JSON, as with jsonlite or cmdstanr::write_stan_json",
    "+": "a number has no plus sign",
    ".": "a number has a digit before its point, as in 0.5",
    "//": "JSON has no comments",
    "#": "JSON has no comments",
    "/*": "JSON has no comments",
    "]": "is there a comma too many before it?",
    "}": "is there a comma too many before it?",
}  # fmt: skip
_OTHER_FORMAT = r"\s*[A-Za-z.][\w.]*\s*<-"


def _help(text: str, position: int) -> str:
    """What may be meant by what is no JSON."""
    if re.match(_OTHER_FORMAT, text):
        return f"; {_NOT_JSON['list(']}"
    found = text[position : position + 12]
    if found[:1] == "-":
        found = found[1:]
    for wrong, help in _NOT_JSON.items():
        if found.startswith(wrong) and not (wrong.isalpha() and found[len(wrong) :][:1].isalnum()):
            return f"; {help}"
    return "; the text ends here" if not text[position:].strip() else ""


class _Object(dict[str, Any]):
    """A JSON object that remembers keys that were given more than once."""

    repeated: list[str]


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    result = _Object(pairs)
    result.repeated = []
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen and key not in result.repeated:
                result.repeated.append(key)
            seen.add(key)
    return result


def kind_of(value: Any) -> str:
    """What a value of JSON is, in messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (list, tuple)):
        return "an array"
    if isinstance(value, Mapping):
        return "an object"
    return "a text" if isinstance(value, str) else "a number"
