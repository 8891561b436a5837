"""What each unit of a program is compiled from, as a digest of the parts that it depends on, before any pass.

The cache is asked by it where it does not know a program's text: a changed statement costs the units that it is part
of, a comment or a line that stands elsewhere costs none. Whether a unit is what its digest says is checked by
`tests/passes/test_unit_digests.py`: without all other parts it is the same, byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from ulam.dialects import stan
from ulam.dialects.places import place_of
from ulam.dialects.walk import ops_of, ops_within
from ulam.library.digests import sha256
from ulam.library.records import record
from ulam.passes.analysis.call_graph import CalledFunctions
from ulam.passes.data_switches import binding_ops

Place = tuple[str, int, int]

NOT_COMPUTED = {
    "density": ("generated_quantities",),
    "constrain": ("model",),
    "unconstrain": ("transformed_parameters", "model", "generated_quantities"),
}
"""By what a unit computes, the blocks that it has nothing of. `setup` has what binds data, of all blocks."""


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


def unit_digests(module: ModuleOp) -> dict[str, ContentDigest] | None:
    """The digests of a program's units, by what they compute; None if units are not told apart by parts: those that
    have `profile` blocks share their numbers."""
    program = next(op for op in module.body.block.ops if isinstance(op, stan.ProgramOp))
    if any(isinstance(op, stan.ProfileOp) for op in ops_within(program)):
        return None
    parts = ops_of(program.body.block)
    functions = {op.sym_name.data: op for op in parts if isinstance(op, stan.FuncOp)}
    blocks = [op for op in parts if isinstance(op, stan.BlockOp)]
    digests, graph = Digests(), CalledFunctions(functions)

    def with_functions(roots: Sequence[Operation], rest: Iterable[ContentDigest]) -> ContentDigest:
        called = (digests.whole(functions[name]) for name in graph.reachable(roots))
        return ContentDigest.joined([*called, *rest])

    found: dict[str, ContentDigest] = {}
    for computed, left_out in NOT_COMPUTED.items():
        used = [block for block in blocks if block.kind.data not in left_out]
        found[computed] = with_functions(used, map(digests.whole, used))
    bound = {block: binding_ops(block) for block in blocks}
    # Parameters are declared, not computed: the functions of their constraints are not called.
    roots = [op for ops in bound.values() for op in ops if not isinstance(op, stan.ParameterOp)]
    found["setup"] = with_functions(roots, [digests.of(ops, block.kind.data) for block, ops in bound.items()])
    return found


class Digests:
    """Makes digests of ops, which must not change meanwhile; those of whole functions and blocks once."""

    def __init__(self) -> None:
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
