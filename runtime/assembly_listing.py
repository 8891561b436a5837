"""Assembly with the line of the program that each instruction is of, and its loops.

    assembly = read_assembly(text)        # as LLVM prints it, with line tables
    for loop in assembly.loops: print(loop.lines, loop.instructions)

Loops are the natural loops of the flow graph: a block that is jumped back to and dominates where from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise
from typing import NamedTuple

from ulam.library.records import record

Place = tuple[str, int]


class AssemblyLine(NamedTuple):
    """An instruction or a label; `depth`: in how many loops it stands."""

    text: str
    place: Place | None
    depth: int
    is_label: bool


@record(frozen=True)
class AssemblyLoop:
    """An innermost loop. `ranges`: first and last lines of its blocks in the listing."""

    function: str
    ranges: tuple[tuple[int, int], ...]
    depth: int
    instructions: int
    places: tuple[Place, ...]
    """The lines of the program that it computes, those with most instructions first."""
    registers: str
    """The widest vectors that it computes with, as `zmm`; "" if it works on scalars."""
    calls: tuple[str, ...]


@record
class Assembly:
    """The functions of a module."""

    lines: list[AssemblyLine] = field(default_factory=list[AssemblyLine])
    loops: list[AssemblyLoop] = field(default_factory=list[AssemblyLoop])


_Line = tuple[str, Place | None, bool]
"""Text, place, whether it is a label."""

_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'\s*\.file\s+(\d+)\s+(?:"(?P<folder>(?:[^"\\]|\\.)*)"\s+)?"(?P<name>(?:[^"\\]|\\.)*)"')
_LABEL = re.compile(r"^([\w.$\"@<>, ]+):")
_TARGET = re.compile(r"(\.L?BB\d+_\d+|LBB\d+_\d+)\b")
_ENDS = re.compile(r"(?:j\w+|b|b\.\w+|cbn?z|tbn?z|retq?|ud2|br)(?:\s|$)")
"""What ends a basic block."""
_LEAVES = re.compile(r"(?:jmpq?|b|retq?|ud2|br)(?:\s|$)")
"""Behind which nothing runs on."""
_CALL = re.compile(r"(?:callq?|bl)\s+\"?([\w.$]+)")
_WIDE = (("zmm", re.compile(r"%zmm")), ("ymm", re.compile(r"%ymm")), ("2d", re.compile(r"\bv\d+\.2d\b")))
_PACKED = re.compile(r"v?(?:add|sub|mul|div|max|min|sqrt|fn?m\w+)pd\b")
_HIDDEN_LABELS = (".Ltmp", ".Lfunc_", "Ltmp", "Lfunc_")
_ESCAPED = re.compile(r"\\([0-7]{1,3})|\\(.)")


def _unescaped(text: str) -> str:
    """A name as `.file` writes it: bytes beyond ASCII in octal."""
    whole = _ESCAPED.sub(lambda found: chr(int(found[1], 8)) if found[1] else found[2], text)
    return whole.encode("latin-1", "replace").decode("utf-8", "replace")


def read_assembly(text: str) -> Assembly:
    """The instructions of all functions; directives and tables of constants are left out."""
    result = Assembly()
    files: dict[str, str] = {}
    body: list[_Line] = []
    place: Place | None = None
    is_code = False
    for line in text.splitlines():
        if found := _FILE.match(line):
            files[found[1]] = _unescaped(found["name"])
        elif found := _LOC.match(line):
            place = (files.get(found[1], ""), int(found[2])) if found[2] != "0" else None
        elif line.lstrip().startswith((".text", ".section")):
            is_code = ".text" in line
            _add_function(result, body)
            body, place = [], None
        elif not is_code:
            continue
        elif found := _LABEL.match(line):
            label = found[1].strip('"')
            if label.startswith(_HIDDEN_LABELS):
                continue
            if not _TARGET.match(label):
                _add_function(result, body)
                body, place = [], None
            body.append((f"{label}:", None, True))
        elif (instruction := line.strip()) and not instruction.startswith((".", "#", "//", ";")):
            mnemonic, _, operands = instruction.partition("\t")
            body.append((f"{mnemonic:7} {operands}".rstrip(), place, False))
    _add_function(result, body)
    return result


@record
class _Block:
    """A basic block: lines `first` to `last` of a function."""

    first: int
    last: int
    successors: list[int] = field(default_factory=list[int])


def _blocks(body: Sequence[_Line]) -> list[_Block]:
    """The basic blocks of a function; the first is where it begins."""
    starts = [0]
    for number, (_, _, is_label) in enumerate(body):
        if number and (is_label or (not body[number - 1][2] and _ENDS.match(body[number - 1][0]))):
            starts.append(number)
    blocks = [_Block(first, last - 1) for first, last in pairwise([*starts, len(body)])]
    labels = {body[block.first][0][:-1]: number for number, block in enumerate(blocks) if body[block.first][2]}
    for number, block in enumerate(blocks):
        text = body[block.last][0]
        falls = not _LEAVES.match(text)
        if _ENDS.match(text) and (found := _TARGET.search(text)) is not None and found[1] in labels:
            block.successors.append(labels[found[1]])
        if falls and number + 1 < len(blocks):
            block.successors.append(number + 1)
    return blocks


def _dominators(blocks: list[_Block]) -> dict[int, int]:
    """The immediate dominator of each block that is reached (Cooper, Harvey and Kennedy, 2001)."""
    order: list[int] = []
    seen, pending = {0}, [(0, iter(blocks[0].successors))]
    while pending:
        block, successors = pending[-1]
        following = next((other for other in successors if other not in seen), None)
        if following is None:
            order.append(block)
            pending.pop()
        else:
            seen.add(following)
            pending.append((following, iter(blocks[following].successors)))
    place = {block: number for number, block in enumerate(order)}
    predecessors: dict[int, list[int]] = {block: [] for block in order}
    for block in order:
        for other in blocks[block].successors:
            predecessors[other].append(block)
    found, changed = {0: 0}, True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            new: int | None = None
            for other in predecessors[block]:
                if other in found:
                    new = other if new is None else _common(found, place, new, other)
            if new is not None and found.get(block) != new:
                found[block], changed = new, True
    return found


def _common(dominators: dict[int, int], place: dict[int, int], one: int, other: int) -> int:
    while one != other:
        while place[one] < place[other]:
            one = dominators[one]
        while place[other] < place[one]:
            other = dominators[other]
    return one


def _loops(blocks: list[_Block]) -> dict[int, set[int]]:
    """The natural loops: the block that each begins with, and all its blocks."""
    dominators = _dominators(blocks)

    def dominates(one: int, other: int) -> bool:
        while other != one and other:
            other = dominators[other]
        return other == one

    predecessors: dict[int, list[int]] = {}
    for number in dominators:
        for other in blocks[number].successors:
            predecessors.setdefault(other, []).append(number)
    loops: dict[int, set[int]] = {}
    for block in dominators:
        for head in blocks[block].successors:
            if dominates(head, block):
                members, pending = loops.setdefault(head, {head}), [block]
                while pending:
                    if (inner := pending.pop()) not in members:
                        members.add(inner)
                        pending += predecessors.get(inner, [])
    return loops


def _add_function(result: Assembly, body: Sequence[_Line]) -> None:
    if all(is_label for _, _, is_label in body):
        return
    blocks, start = _blocks(body), len(result.lines)
    loops = _loops(blocks)
    for number, block in enumerate(blocks):
        depth = sum(number in members for members in loops.values())
        for text, place, is_label in body[block.first : block.last + 1]:
            result.lines.append(AssemblyLine(text, place, depth, is_label))
    for head, members in sorted(loops.items()):
        if not any(other in members for other in loops if other != head):
            ranges: list[tuple[int, int]] = []
            for block in (blocks[n] for n in sorted(members)):
                first = ranges.pop()[0] if ranges and ranges[-1][1] + 1 == start + block.first else start + block.first
                ranges.append((first, start + block.last))
            result.loops.append(_loop(result, body[0][0].rstrip(":"), tuple(ranges)))


def _loop(result: Assembly, function: str, ranges: tuple[tuple[int, int], ...]) -> AssemblyLoop:
    lines = [line for first, last in ranges for line in result.lines[first : last + 1]]
    code = [line for line in lines if not line.is_label]
    counts: dict[Place, int] = {}
    for line in code:
        if line.place is not None:
            counts[line.place] = counts.get(line.place, 0) + 1
    text = "\n".join(line.text for line in code)
    wide = next((name for name, form in _WIDE if form.search(text)), "")
    if not wide and any(_PACKED.match(line.text) for line in code):
        wide = "xmm"
    calls = tuple(dict.fromkeys(found[1] for line in code if (found := _CALL.match(line.text))))
    places = tuple(sorted(counts, key=lambda place: -counts[place]))
    return AssemblyLoop(function, ranges, lines[0].depth, len(code), places, wide, calls)
