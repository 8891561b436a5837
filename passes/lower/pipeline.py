"""What always follows the passes of a level: from the `stan` dialect to the functions that are emitted."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from ulam.dialects import ad, stan
from ulam.passes.lower import (
    cse,
    dead_code_elimination,
    fold,
    loop_invariant_code_motion,
    promote_variables,
    structure_exits,
)
from ulam.passes.lower.hoist_data import hoist_data
from ulam.passes.lower.thread_target import run_on as thread_target
from ulam.passes.lower.units import Program, Unit, lower_unit, take_apart

_HOISTED = ("value", "gradient", "constrain")


def to_value_form(module: ModuleOp) -> Program:
    """`structure-exits` and `promote-variables`, in place; the program taken apart."""
    structure_exits.run_on(module)
    promote_variables.run_on(module)
    program = next(op for op in module.body.block.ops if isinstance(op, stan.ProgramOp))
    return take_apart(program)


def lower(program: Program, name: str, opt_level: int) -> Unit:
    """A unit of the program, ready for emission."""
    unit = lower_unit(program, name)
    module = unit.module
    simplify(module)
    if name.startswith(_HOISTED):
        unit.n_slots = hoist_data(module, unit.n_slots)
    if name.startswith("gradient"):
        from ulam.passes.autodiff.reverse_mode import reverse_mode

        for function in list(module.body.block.ops):
            if isinstance(function, func.FuncOp) and "target_result" in function.attributes:
                reverse_mode(function)
        cse.run_on(module)
    elif name.startswith("value"):
        for op in [op for op in module.walk() if isinstance(op, ad.IndependentOp)]:
            op.detach()
            op.erase()
    thread_target(module, reassociate=opt_level >= 3)
    dead_code_elimination.run_on(module)
    return unit


def simplify(module: ModuleOp) -> None:
    """Scalar clean-up, cheap enough to run always."""
    fold.run_on(module)
    cse.run_on(module)
    loop_invariant_code_motion.run_on(module)
    dead_code_elimination.run_on(module)
