"""Profiles without touching the program: regions put around statements, blocks or functions.

Runs before the passes of the levels, for which the edges of a region are barriers.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, FileLineColLoc, LocationAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.walk import ops_of
from ulam.library.records import record
from ulam.passes.analysis.bodies import bodies
from ulam.passes.variable_form import EXITS, Variable, is_statement, yield_

_EXECUTED = ("transformed_data", "parameters", "transformed_parameters", "model", "generated_quantities")


@record(frozen=True)
class InsertProfiles(ModulePass):
    """Puts a region around each statement at the top level of a block, around each block, or around the body of each of
    the user's functions: `each` is `statement`, `block` or `function`.

    Where statements have regions, so have the declarations of the parameters block with their transforms.
    """

    name = "insert-profiles"

    each: str = "statement"

    def __post_init__(self) -> None:
        if self.each not in ("statement", "block", "function"):
            raise ValueError(f"each must be 'statement', 'block' or 'function', found '{self.each}'")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in op.body.block.ops:
            if not isinstance(program, stan.ProgramOp):
                continue
            kinds = {"block": _EXECUTED, "statement": ("parameters",), "function": ()}[self.each]
            stan.ProfiledBlocksAttr(ArrayAttr(map(StringAttr, kinds))).put(program)
        for body in bodies(op):
            if isinstance(body, stan.FuncOp):
                if self.each == "function" and body.library is None:
                    _around(body.body.block, body.stan_name.data, body.location)
            elif self.each == "statement" and body.kind.data in _EXECUTED:
                _each_statement(body.body.block, body.kind.data.replace("_", " "))
        note_profiles(op)


def note_profiles(module: ModuleOp) -> None:
    """Notes which profiles there are, before passes take out what is never reached: by that they are numbered."""
    for op in module.body.block.ops:
        if isinstance(op, stan.ProgramOp):
            stan.ProfilesAttr.note(op)


def _around(block: Block, name: str, location: LocationAttr) -> None:
    ops = ops_of(block)
    if ops:
        _wrap(ops, name, location)


def _each_statement(block: Block, kind: str) -> None:
    """A statement has the ops of its expressions in front of it. Declarations stay outside: they are seen after it."""
    group: list[Operation] = []
    for op in ops_of(block):
        if isinstance(op, stan.GlobalOp):
            continue
        group.append(op)
        if not is_statement(op):
            continue
        if not isinstance(op, Variable):
            place = op.location
            line = place.line.data if isinstance(place, FileLineColLoc) else 0
            _wrap(group, f"{kind}, line {line}", op.location)
        group = []


def _wrap(ops: list[Operation], name: str, location: LocationAttr) -> None:
    first = ops[0]
    block = first.parent
    assert block is not None
    body = Block()
    profile = stan.ProfileOp(name, Region(body), location=location)
    block.insert_op_before(profile, first)
    for op in ops:
        op.detach()
        body.add_op(op)
    if type(ops[-1]) not in EXITS:
        body.add_op(yield_(location))
