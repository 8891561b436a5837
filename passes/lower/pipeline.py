"""What always follows the passes of a level: from the `stan` dialect to the functions that are emitted."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from ulam.dialects import ad, stan
from ulam.passes.lower import (
    cse,
    dead_code_elimination,
    fold,
    loop_fusion,
    loop_hints,
    loop_invariant_code_motion,
    promote_variables,
    release_arena,
    structure_exits,
)
from ulam.passes.lower.checks import defer_checks, leave_location_open, must_be_precise, separate_data_checks
from ulam.passes.lower.hoist_data import hoist_data
from ulam.passes.lower.tabulate_data import tabulate_data
from ulam.passes.lower.tabulate_invariants import tabulate_invariants
from ulam.passes.lower.thread_target import run_on as thread_target
from ulam.passes.lower.units import Program, Unit, lower_unit, take_apart

_HOT = ("value", "gradient")
_HOISTED = (*_HOT, "constrain")


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
    hot = name.startswith(_HOT) and not must_be_precise(module)
    if name.startswith(_HOISTED):
        unit.n_slots = hoist_data(module, unit.n_slots)
    if hot:
        unit.n_slots = lighten_loops(module, unit.n_slots)
        fuse_loops(module, before_reverse_mode=True, reassociate=opt_level >= 3)
    if name.startswith("gradient"):
        from ulam.passes.autodiff.reverse_mode import reverse_mode

        reverse_mode(evaluate_of(module))
        cse.run_on(module)
        fuse_loops(module, before_reverse_mode=False, reassociate=opt_level >= 3)
    else:
        for op in [op for op in module.walk() if isinstance(op, ad.IndependentOp)]:
            op.detach()
            op.erase()
    thread_target(module, reassociate=opt_level >= 3)
    dead_code_elimination.run_on(module)
    release_arena.run_on(module)
    loop_hints.run_on(module)
    return unit


def lighten_loops(module: ModuleOp, n_slots: int) -> int:
    """Checks of data, and costly work on data, run once; invariant checks run before loops, others set a flag.

    What outer loops repeat becomes a table.

    Returns the number of bound slots then needed.
    """
    evaluate = evaluate_of(module)
    loop_invariant_code_motion.run_on(evaluate, guarded=True)
    separated = separate_data_checks(evaluate)
    if tabulate_data(evaluate) or separated:
        dead_code_elimination.run_on(module)
        n_slots = hoist_data(module, n_slots)
    defer_checks(evaluate)
    for function in module.body.block.ops:
        if isinstance(function, func.FuncOp) and (function is evaluate or "entry" not in function.attributes):
            leave_location_open(function)
    cse.run_on(module)
    if tabulate_invariants(evaluate):
        dead_code_elimination.run_on(module)
    return n_slots


def fuse_loops(module: ModuleOp, *, before_reverse_mode: bool, reassociate: bool) -> None:
    """Fewer loops; what one iteration stored and then loads again is used directly."""
    if loop_fusion.run_on(evaluate_of(module), before_reverse_mode, reassociate):
        cse.run_on(module)
        dead_code_elimination.run_on(module)


def evaluate_of(module: ModuleOp) -> func.FuncOp:
    """The function that is called for every evaluation."""
    return next(op for op in module.body.block.ops if isinstance(op, func.FuncOp) and op.sym_name.data == "evaluate")


def simplify(module: ModuleOp) -> None:
    """Scalar clean-up, cheap enough to run always."""
    fold.run_on(module)
    cse.run_on(module)
    loop_invariant_code_motion.run_on(module)
    dead_code_elimination.run_on(module)
