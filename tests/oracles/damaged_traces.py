"""Saved traces with right checksums and wrong contents, and a reader that looks at all that a trace can be asked."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import struct
from pathlib import Path
from typing import Any

from ulam.trace import DamagedTrace, backward, dependents, format_levels, forward, load, referenced

DIGEST = hashlib.sha256().digest_size
NUMBERS = (0, 1, -1, 2, 7, 255, 1 << 20, (1 << 31) - 1, -(1 << 31), 1 << 40, (1 << 63) - 1, -(1 << 63), 1 << 70)
VALUES = (*NUMBERS, 0.5, 1e300, None, True, "", "x", [], {}, [1], {"real": "x"}, {"kind": "<f8"})


def parts_of(data: bytes) -> tuple[bytes, dict[str, Any], bytes]:
    """The first line without the length, the head, and the records."""
    line, _, rest = data[:-DIGEST].partition(b"\n")
    start, _, length = line.rpartition(b" ")
    return start, json.loads(rest[: int(length)]), rest[int(length) :]


def joined(start: bytes, head: Any, records: bytes) -> bytes:
    """The inverse of `parts_of`, with the checksum that belongs to it."""
    text = json.dumps(head).encode()
    whole = b"%s %d\n%s%s" % (start, len(text), text, records)
    return whole + hashlib.sha256(whole).digest()


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Where in nested lists and dictionaries something stands: container and key."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [(value, key) for key in keys] + [place for key in keys for place in _places(value[key])]


def _changed_head(head: Any, choose: random.Random) -> Any:
    head = copy.deepcopy(head)
    for _ in range(choose.choice((1, 1, 1, 2, 5))):
        container, key = choose.choice(_places(head))
        match choose.randrange(5):
            case 0:
                del container[key]
            case 1 if isinstance(container[key], int):
                container[key] += choose.choice((-1, 1, 2))
            case 2:
                container[key] = copy.deepcopy(choose.choice(_places(head)))[1]
            case 3:
                other, name = choose.choice(_places(head))
                container[key] = copy.deepcopy(other[name])
            case _:
                container[key] = copy.deepcopy(choose.choice(VALUES))
    return head


def _changed_records(records: bytes, choose: random.Random) -> bytes:
    made = bytearray(records)
    for _ in range(choose.choice((1, 1, 2, 8))):
        match choose.randrange(4):
            case 0 if made:
                made[choose.randrange(len(made))] ^= 1 << choose.randrange(8)
            case 1 if len(made) >= 4:
                at = 4 * choose.randrange(len(made) // 4)
                made[at : at + 4] = struct.pack("<q", choose.choice(NUMBERS[:-1]))[:4]
            case 2 if len(made) >= 8:
                at = 8 * choose.randrange(len(made) // 8)
                made[at : at + 8] = struct.pack("<q", choose.choice(NUMBERS[:-1]))
            case _:
                made = made[: choose.randrange(len(made) + 1)]
    return bytes(made)


def damaged(data: bytes, seed: int) -> bytes:
    """A saved trace with something changed, that is as it should be by its checksum."""
    choose = random.Random(seed)
    start, head, records = parts_of(data)
    if choose.random() < 0.5:
        head = _changed_head(head, choose)
    else:
        records = _changed_records(records, choose)
    return joined(start, head, records)


def look_at(path: Path, most: int = 300) -> None:
    """Reads a saved trace, and of all that it can be asked something: at most so many nodes."""
    root = load(path)
    nodes = [root]
    for node in nodes:
        if len(nodes) < most:
            nodes.extend(node.children[: most - len(nodes)])
    seen: list[Any] = []
    for node in nodes:
        seen += [str(node), repr(node), node.value, node.type, node.location, node.span, node.position, node.parent]
        seen += [node.operands, node.metadata, node.site_metadata, node.is_root]
    for node in nodes[:: max(1, len(nodes) // 20)]:
        seen += [str(node.ir), referenced(node), backward(node), dependents(node), forward(node)]
    if len(root) < most:
        seen += [format_levels(root), root.to_json(), root.to_dot()]
    seen += [root.trace.draws_used, root.trace.error]


def verdict(path: Path, data: bytes, seed: int) -> str:
    """What reading a damaged trace comes to: `read` or `damaged`. Other errors go on. `path`: where it is written."""
    path.write_bytes(damaged(data, seed))
    try:
        look_at(path)
    except DamagedTrace:
        return "damaged"
    return "read"
