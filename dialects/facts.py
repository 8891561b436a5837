"""Facts that passes leave for those after them, and for emission: attributes of ops that know nothing of them.

Each is an attribute class of the dialect that it belongs to, and stands on an op under its own name, which begins with
the dialect's: tools that do not know the dialect keep it.

    func.func @evaluate(%theta: !rt.buf<f64>) attributes {rt.entry = #rt.entry}

`put`, `of`, `take` and `marks` are the only ways to them. xDSL verifies attributes, but not what they stand on:
`passes/verify_facts.py` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from xdsl.ir import Attribute, Operation

from ulam.dialects.plain_attribute import PlainAttribute

if TYPE_CHECKING:
    from typing import Self


class Fact(PlainAttribute):
    """The base of these classes; `ON` are the classes of ops that may have the fact."""

    ON: ClassVar[tuple[type[Operation], ...]] = ()

    def put(self, op: Operation) -> None:
        """Notes the fact on `op`."""
        op.attributes[self.name] = self

    @classmethod
    def marks(cls, op: Operation) -> bool:
        """Whether `op` has the fact."""
        return cls.name in op.attributes

    @classmethod
    def of(cls, op: Operation) -> Self | None:
        """The fact, if `op` has it."""
        found = op.attributes.get(cls.name)
        return found if isinstance(found, cls) else None

    @classmethod
    def take(cls, op: Operation) -> Self | None:
        """The fact, which `op` no longer has then."""
        found = op.attributes.pop(cls.name, None)
        return found if isinstance(found, cls) else None

    def as_attributes(self) -> dict[str, Attribute]:
        """The attributes of an op that is made with the fact."""
        return {self.name: self}

    def verify_on(self, op: Operation) -> None:
        """Raises VerifyException where the fact cannot be true of `op`."""
