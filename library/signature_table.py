"""Reads `signature_table.txt`, the signatures of Stan's functions in codes: one line for each name, which is found when
it is asked for.

    name TAB data-only arguments TAB result=arguments arguments ...;result=arguments ...

`frontend/functions/type_codes.py` has the codes: `i` is an int, `r` a real; `.` stands for no arguments.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("signature_table.txt")
_SCALARS = re.compile(r"[ir]*")


@cache
def _text() -> str:
    return "\n" + TABLE.read_text(encoding="utf-8")


def row(name: str) -> tuple[str, dict[str, str]] | None:
    """Which arguments must be data, and codes of the arguments → code of the result; None if Stan has no such name."""
    text = _text()
    start = text.find(f"\n{name}\t")
    if start < 0:
        return None
    _, data_only, groups = text[start + 1 : text.find("\n", start + 1)].split("\t")
    results: dict[str, str] = {}
    for group in groups.split(";"):
        result, _, signatures = group.partition("=")
        for codes in signatures.split(" "):
            results["" if codes == "." else codes] = result
    return data_only, results


def exists(name: str) -> bool:
    """Whether Stan has a function of this name."""
    return f"\n{name}\t" in _text()


def names() -> list[str]:
    """The names of all functions, in the order of the table."""
    return re.findall(r"\n(\w+)\t", _text())


def scalar_rngs() -> list[str]:
    """The functions that draw one number, of scalars: of their signatures one has codes of scalars only."""
    return re.findall(r"\n(\w+_rng)\t[^\t\n]*\t(?:[^\n]*;)?[ir]=[ir.]+[ ;\n]", _text())


def scalar_form(name: str) -> tuple[str, str]:
    """Codes of the arguments and of the result of a function of scalars, to which ints are converted: `("rr", "r")`."""
    found = row(name)
    assert found is not None, name
    forms = {codes: result for codes, result in found[1].items() if _SCALARS.fullmatch(codes)}
    widest = "".join(map(max, *forms)) if len(forms) > 1 else next(iter(forms))  # i goes before r
    return widest, forms[widest]
