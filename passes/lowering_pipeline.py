"""What always follows the passes of a level: from the `stan` dialect to the functions that are emitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.context import Context

from ulam.dialects import stan
from ulam.passes.lowering_stages import REASSOCIATING_LEVEL, lowering_passes, set_slots, slots_of
from ulam.passes.to_loops.programs import Program, Unit, take_apart
from ulam.passes.to_loops.units import lower_unit
from ulam.passes.units import UnitKind
from ulam.passes.value_form import promote_variables, split_branch_chains, structure_exits

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_CONTEXT = Context()


def to_value_form(module: ModuleOp) -> Program:
    """`structure-exits`, `split-branch-chains` and `promote-variables`, in place; the program taken apart."""
    structure_exits.run_on(module)
    split_branch_chains.run_on(module)
    promote_variables.run_on(module)
    program = next(op for op in module.body.block.ops if isinstance(op, stan.ProgramOp))
    return take_apart(program)


def lower(program: Program, kind: UnitKind, opt_level: int) -> Unit:
    """A unit of the program, ready for emission."""
    unit = begin_unit(program, kind, opt_level)
    finish_unit(unit, opt_level)
    return unit


def begin_unit(program: Program, kind: UnitKind, opt_level: int) -> Unit:
    """A unit as loops over scalars: what the blocks of the program that belong to it become."""
    return lower_unit(program, kind, whole_terms=opt_level < REASSOCIATING_LEVEL)


def finish_unit(unit: Unit, opt_level: int, between: Callable[[], None] | None = None) -> None:
    """Everything else up to emission. What becomes of equal units is equal.

    `between` is called before each pass, and may end this by an exception.
    """
    set_slots(unit.module, unit.n_slots)
    for stage in lowering_passes(unit.kind, opt_level):
        if between is not None:
            between()
        stage.apply(_CONTEXT, unit.module)
    unit.n_slots = slots_of(unit.module)
