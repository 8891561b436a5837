"""Aliases of attributes where xDSL's parser wants them: before they are used.

`mlir-opt --mlir-print-debuginfo` prints `#loc1 = loc("m.stan":3:5)` behind the module that says `loc(#loc1)`.
"""

from __future__ import annotations

import re

_DEFINITION = re.compile(r"^([#!][\w.$-]+)[ \t]*=.*$", re.MULTILINE)
_NAME = re.compile(r"[#!][\w.$-]+")
_CODE = re.compile(r"^[ \t]*(?![#!/\s])", re.MULTILINE)


def with_aliases_first(text: str) -> str:
    """The same module with the definitions that stand behind code in front of it, in one line: others keep theirs."""
    code = _CODE.search(text)
    late = [] if code is None else list(_DEFINITION.finditer(text, code.start()))
    if not late:
        return text
    definitions = {found[1]: found[0] for found in late}
    for found in reversed(late):
        text = text[: found.start()] + text[found.end() :]
    return " ".join([*_in_order(definitions), text])


def _in_order(definitions: dict[str, str]) -> list[str]:
    """Those that others use first."""
    ordered: list[str] = []
    seen: set[str] = set()

    def add(name: str) -> None:
        seen.add(name)
        for used in _NAME.findall(definitions[name].partition("=")[2]):
            if used in definitions and used not in seen:
                add(used)
        ordered.append(definitions[name])

    for name in definitions:
        if name not in seen:
            add(name)
    return ordered
