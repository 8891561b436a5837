"""A `stan.program` in value form taken apart: its functions, blocks and global variables, and what the runtime is told.

The functions of a unit are written from this (`units`).
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ulam.dialects import stan
from ulam.dialects.stan.facts import profiles_of
from ulam.library.records import record
from ulam.passes.complex_types import part_number, whole_name
from ulam.passes.errors import NotSupportedError
from ulam.passes.loops.effects import draws
from ulam.passes.loops.unit_modules import noted_layouts
from ulam.passes.pieces import PIECE_FUNCTION
from ulam.passes.to_loops.check_sites import CheckSite
from ulam.passes.to_loops.lowering import ProfileKey, profile_key
from ulam.passes.to_loops.outlined import Outlined
from ulam.passes.to_loops.values import element_type, rank_of
from ulam.passes.units import UnitKind

if TYPE_CHECKING:
    from ulam.passes.to_loops.densities import Template

_BLOCKS = ("data", "transformed_data", "parameters", "transformed_parameters", "model", "generated_quantities")
_BOUND_BLOCKS = ("data", "transformed_data")


@record
class Global:
    """A variable declared at the top level of a block, in program order (`number`). The parts of a complex one,
    `z.real` and `z.imag`, have the same number."""

    name: str
    block: str
    op: stan.DeclareOp | stan.ParameterOp
    number: int
    slot: int | None  # data and transformed data: its slot; sizes of transformed data follow
    type: Attribute
    sizes: list[SSAValue]

    @property
    def part(self) -> int | None:
        """Of a part of a complex variable: 0 for the real one, 1 for the imaginary one."""
        return part_number(self.name)


@record
class ProgramParts:
    """A `stan.program` taken apart."""

    name: str
    functions: dict[str, stan.FuncOp]
    blocks: dict[str, Block]
    globals: dict[str, Global] = field(default_factory=dict)
    n_variables: int = 0
    """As the runtime counts them."""
    n_slots: int = 0
    profiles: dict[ProfileKey, int] = field(default_factory=dict[ProfileKey, int])
    """The profile statements, by number."""
    profiled_blocks: dict[str, ProfileKey] = field(default_factory=dict[str, ProfileKey])
    """Kinds of blocks that are a region as a whole."""
    profiled: bool = True
    """Whether the unit that is being lowered records profiles."""
    outlined: Outlined = field(default_factory=lambda: Outlined({}))
    """The recursive functions of the unit that is being lowered."""
    templates: dict[stan.FuncOp, Template] = field(default_factory=dict["stan.FuncOp", "Template"])
    """Density functions taken apart, for all units."""
    piece_slot: int = 0
    """The bound slot that says where the table of pieces is (`passes/pieces.py`)."""
    is_bound: bool = False
    """Whether the unit that is being lowered runs with data that were checked, for which all sizes were."""

    def add_globals(self, kind: str, op: stan.DeclareOp | stan.ParameterOp) -> None:
        """The variable that `op` declares at the top level of a block."""
        type_ = op.res.type.element
        slot = None
        if kind in _BOUND_BLOCKS:
            slot = self.n_slots
            self.n_slots += 1 + rank_of(type_)
        name = op.var_name.data
        number = self.n_variables - (part_number(name) == 1)
        self.globals[name] = Global(name, kind, op, number, slot, type_, [*op.sizes])
        self.n_variables = number + 1


@record
class LoweredUnit:
    """A lowered unit: the module, its site table, and how many bound slots it needs."""

    kind: UnitKind
    module: ModuleOp
    sites: list[CheckSite]
    n_slots: int

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers."""
        return draws(self.module)

    @property
    def layouts(self) -> list[dict[str, Any]]:
        """The layouts of data that it notes when data are bound, as JSON."""
        return noted_layouts(self.module)


def program_of(module: ModuleOp) -> stan.ProgramOp:
    """The program of a module."""
    return next(op for op in module.body.block.ops if isinstance(op, stan.ProgramOp))


def take_apart(program: stan.ProgramOp) -> ProgramParts:
    """Functions, blocks and global variables of a program."""
    result = ProgramParts(program.sym_name.data, {}, {})
    for op in program.body.block.ops:
        if isinstance(op, stan.FuncOp):
            result.functions[op.sym_name.data] = op
        elif isinstance(op, stan.BlockOp):
            result.blocks[op.kind.data] = op.body.block
    if (profiled := stan.ProfiledBlocksAttr.of(program)) is not None:
        for kind in profiled.kinds:
            key = result.profiled_blocks[kind.data] = (kind.data.replace("_", " "), "", 0, 0)
            result.profiles.setdefault(key, len(result.profiles))
    written = stan.ProfilesAttr.of(program)
    numbered = zip(written.names, written.places, strict=True) if written is not None else profiles_of(program)
    for name, place in numbered:
        result.profiles.setdefault(profile_key(name, place), len(result.profiles))
    for kind in _BLOCKS:
        for op in result.blocks[kind].ops if kind in result.blocks and kind != "model" else ():
            if not isinstance(op, stan.DeclareOp | stan.ParameterOp) or "local" in op.properties:
                continue
            result.add_globals(kind, op)
    if "model" in result.blocks and any(_calls_pieces(op) for op in result.blocks["model"].ops):
        result.piece_slot = result.n_slots
        result.n_slots += 1
    return result


def _calls_pieces(op: Operation) -> bool:
    return isinstance(op, stan.CallOp) and op.callee.data == PIECE_FUNCTION


# ---------------------------------------------------------------- metadata


def metadata(program: ProgramParts) -> dict[str, Any]:
    """What the runtime needs to know of the variables, as JSON."""
    return {
        "name": program.name,
        "n_slots": program.n_slots,
        "globals": [_describe(g) for g in program.globals.values() if g.part != 1],
        "profiles": [list(key) for key in program.profiles],
    }


_INNER = {stan.VectorType: "vector", stan.RowVectorType: "row_vector", stan.MatrixType: "matrix"}


def _describe(variable: Global) -> dict[str, Any]:
    type_ = variable.type
    try:
        element = "int" if element_type(type_) == i32 else "real"
    except NotSupportedError as error:
        error.location = variable.op.location
        raise
    name, n_dims = variable.name, rank_of(type_)
    if variable.part is not None:  # a number is two of its last dimension
        name, element, n_dims = whole_name(name), "complex", n_dims + 1
    rank = type_.rank.data if isinstance(type_, stan.ArrayType) else 0
    inner = _INNER.get(type(type_.element if rank else type_), "scalar")  # type: ignore[union-attr]
    return {
        "name": name.replace(".", ":"),  # fields of tuples as CmdStan names them
        "field_ranks": variable.op.array_ranks,
        "block": variable.block,
        "element": element,
        "array_rank": rank,
        "inner": inner,
        "n_dims": n_dims,
        "slot": variable.slot,
        "constraint": variable.op.constraint.data,
    }
