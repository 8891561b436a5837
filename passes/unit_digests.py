"""What each unit of a program is compiled from, as a digest of the parts that it depends on, before any pass.

The cache is asked by it where it does not know a program's text: a changed statement costs the units that it is part
of, a comment or a line that stands elsewhere costs none. Whether a unit is what its digest says is checked by
`tests/passes/test_unit_digests.py`: without all other parts it is the same, byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ulam.dialects import stan
from ulam.dialects.walk import ops_of
from ulam.passes.analysis.call_graph import CalledFunctions
from ulam.passes.content_digests import ContentDigest, Digests
from ulam.passes.data_switches import binding_ops
from ulam.passes.to_loops.lowering import profile_key
from ulam.passes.to_loops.programs import program_of, take_apart

NOT_COMPUTED = {
    "density": ("generated_quantities",),
    "constrain": ("model",),
    "unconstrain": ("transformed_parameters", "model", "generated_quantities"),
}
"""By what a unit computes, the blocks that it has nothing of. `setup` has what binds data, of all blocks."""


def unit_digests(module: ModuleOp) -> dict[str, ContentDigest]:
    """The digests of a program's units, by what they compute."""
    program = program_of(module)
    taken = take_apart(program)
    functions, profiles = taken.functions, taken.profiles
    blocks = [op for op in ops_of(program.body.block) if isinstance(op, stan.BlockOp)]
    digests = Digests(lambda op: profiles.get(profile_key(op.profile_name, op.location)))
    graph = CalledFunctions(functions)
    named = ContentDigest(repr([name for name, *_ in profiles]), [])  # each name has the number of its first profile

    def with_functions(roots: Sequence[Operation], rest: Iterable[ContentDigest]) -> ContentDigest:
        called = (digests.whole(functions[name]) for name in graph.reachable(roots))
        return ContentDigest.joined([named, *called, *rest])

    found: dict[str, ContentDigest] = {}
    for computed, left_out in NOT_COMPUTED.items():
        used = [block for block in blocks if block.kind.data not in left_out]
        found[computed] = with_functions(used, map(digests.whole, used))
    bound = {block: binding_ops(block) for block in blocks}
    # Parameters are declared, not computed: the functions of their constraints are not called.
    roots = [op for ops in bound.values() for op in ops if not isinstance(op, stan.ParameterOp)]
    found["setup"] = with_functions(roots, [digests.of(ops, block.kind.data) for block, ops in bound.items()])
    return found
