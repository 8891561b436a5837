"""MLIR's `expected-error` comments: which messages a piece of input says it provokes, and whether it did.

    x = y;   // expected-error {{identifier 'y'}}
    // expected-error @+1 {{...}}    one line below; also @-2, @below, @above
A message matches if it contains the text. Messages without a known line match on any line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

EXPECTED = re.compile(
    r"expected-(?P<severity>error|warning|note|remark)\s*"
    r"(?:@(?P<where>[+-]\d+|above|below))?\s*\{\{(?P<text>.*?)\}\}"
)


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a run; `line` counts from 1 in the file, None if unknown."""

    line: int | None
    severity: str
    text: str


def expected_messages(text: str, first_line: int) -> list[Message]:
    """What the comments in a piece of input, which starts at `first_line` of its file, announce."""
    expected: list[Message] = []
    for number, line in enumerate(text.splitlines(), first_line):
        for match in EXPECTED.finditer(line):
            where = match["where"] or "+0"
            offset = {"below": 1, "above": -1}.get(where)
            target = number + (int(where) if offset is None else offset)
            expected.append(Message(target, match["severity"], match["text"]))
    return expected


def differences(expected: list[Message], reported: list[Message]) -> list[tuple[int | None, str]]:
    """Line and text of each disagreement; empty if all was as announced."""
    remaining = list(reported)
    problems: list[tuple[int | None, str]] = []
    for want in expected:
        for candidate in remaining:
            same_line = candidate.line is None or candidate.line == want.line
            if same_line and candidate.severity == want.severity and want.text in candidate.text:
                remaining.remove(candidate)
                break
        else:
            problems.append((want.line, f'expected {want.severity} "{want.text}" was not produced'))
    problems += [(message.line, f"unexpected {message.severity}: {message.text}") for message in remaining]
    return problems
