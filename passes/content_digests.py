"""Digests of ops: what they are, wherever they stand in a program's text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Attribute, Operation, SSAValue

from ulam.dialects import stan
from ulam.dialects.places import place_of
from ulam.dialects.walk import ops_within
from ulam.library.digests import sha256
from ulam.library.records import record

Place = tuple[str, int, int]


@record
class ContentDigest:
    """Of ops: `text` depends neither on their places nor on names of values. Places are in the order of the ops."""

    text: str
    places: list[Place]

    @classmethod
    def joined(cls, parts: Iterable[ContentDigest]) -> ContentDigest:
        """That of parts that share no values."""
        found = list(parts)
        places = dict.fromkeys(place for part in found for place in part.places)
        return cls(sha256("\n".join(part.text for part in found).encode()).hexdigest(), list(places))


class Digests:
    """Makes digests of ops, which must not change meanwhile; those of whole functions and blocks once."""

    def __init__(self, profile_number: Callable[[stan.ProfileOp], object] = lambda op: None) -> None:
        self._profile_number = profile_number
        self._texts: dict[Attribute, str] = {}
        self._by_identity: dict[int, tuple[Attribute, str]] = {}
        self._whole: dict[Operation, ContentDigest] = {}

    def whole(self, op: Operation) -> ContentDigest:
        """That of an op that is not changed meanwhile."""
        found = self._whole.get(op)
        if found is None:
            found = self._whole[op] = self.of([op])
        return found

    def of(self, roots: Sequence[Operation], within: str = "") -> ContentDigest:
        """That of ops that may share values, in order, with what they are part of."""
        numbers: dict[SSAValue, int] = {}
        places: dict[FileLineColLoc, None] = {}
        parts = [within]
        text = self._text
        for root in roots:
            for op in ops_within(root):
                location = place_of(op.location)
                if location is not None:
                    places[location] = None
                parts.append(op.name)
                if isinstance(op, stan.ProfileOp):
                    parts.append(str(self._profile_number(op)))
                for operand in op.operands:
                    number = numbers.get(operand)
                    parts.append(str(number) if number is not None else _outer_name(operand))
                for name, attribute in op.properties.items():
                    parts += (name, text(attribute))
                for name, attribute in op.attributes.items():
                    parts += (name, text(attribute))
                for result in op.results:
                    numbers[result] = len(numbers)
                    parts.append(text(result.type))
                for region in op.regions:
                    for block in region.blocks:
                        parts.append(f"^{len(block.args)}")
                        for argument in block.args:
                            numbers[argument] = len(numbers)
        digest = sha256("\n".join(parts).encode()).hexdigest()
        return ContentDigest(digest, [(p.filename.data, p.line.data, p.column.data) for p in places])

    def _text(self, attribute: Attribute) -> str:
        kept = self._by_identity.get(id(attribute))
        if kept is not None:
            return kept[1]
        text = self._texts.get(attribute)
        if text is None:
            text = self._texts[attribute] = str(attribute)
        self._by_identity[id(attribute)] = attribute, text  # which keeps the attribute, and so its identity
        return text


def _outer_name(variable: SSAValue) -> str:
    """What a value is called that none of the ops has as a result: variables have names of their own."""
    owner = variable.owner
    declares = isinstance(owner, stan.GlobalOp | stan.DeclareOp | stan.ParameterOp)
    return owner.var_name.data if declares else "?"
