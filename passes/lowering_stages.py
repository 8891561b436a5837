"""The stages of lowering as passes, from the value form of the `stan` dialect to functions ready for emission.

`lowering_passes` declares their order for a unit. What they tell each other stands in the module: its attribute
`n_slots` is the number of slots of the bound table so far, `ad.gradient` asks for reverse mode.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.passes.autodiff.forward_mode import ForwardModePass
from ulam.passes.autodiff.reverse_mode import ReverseModePass
from ulam.passes.errors import WrongFormError
from ulam.passes.loops import cse, dce, fold, licm, loop_fusion, loop_hints, unroll_small
from ulam.passes.loops.checks import defer_checks, leave_location_open, must_be_precise, separate_data_checks
from ulam.passes.loops.count_profile_entries import CountProfileEntries
from ulam.passes.loops.hoist_data import hoist_data
from ulam.passes.loops.release_arena import ReleaseArena
from ulam.passes.loops.split_scatters import SplitScatters
from ulam.passes.loops.stack_buffers import StackBuffers
from ulam.passes.loops.tabulate_data import tabulate_data
from ulam.passes.loops.tabulate_invariants import tabulate_invariants
from ulam.passes.loops.thread_target import ThreadTarget
from ulam.passes.to_loops.programs import take_apart
from ulam.passes.to_loops.units import lower_unit
from ulam.passes.units import DEFAULT_UNIT, UNITS, UnitKind
from ulam.passes.value_form.structure_exits import StructureExits
from ulam.passes.walk import ops_within

REASSOCIATING_LEVEL = 3
"""From this level on sums may be re-associated."""


def lowering_passes(unit: UnitKind, opt_level: int) -> list[ModulePass]:
    """The passes that follow `convert-stan-to-loops{unit=...}`, in order."""
    reassociate = opt_level >= REASSOCIATING_LEVEL
    passes: list[ModulePass] = [Simplify()]
    if unit.has_bind:
        passes.append(HoistData())
    if unit.hot:
        passes += [LightenLoops(), FuseLoops(before_reverse_mode=True, reassociate=reassociate)]
    passes += [ReverseModePass(), CountProfileEntries()] if unit.counts_entries else [ReverseModePass()]
    if unit.gradient:
        passes += [cse.CommonSubexpressionElimination(), FuseLoops(reassociate=reassociate)]
    passes += [ThreadTarget(reassociate), dce.DeadOpElimination()]
    if unit.hessian:
        passes += [ForwardModePass(), Simplify()]
    if unit.gradient:
        passes.append(SplitScatters())
    return [
        *passes,
        ReleaseArena(),
        StackBuffers(),
        LoopHints(),
    ]


def slots_of(module: ModuleOp) -> int:
    """The number of bound slots that a unit needs so far."""
    attribute = module.attributes.get("n_slots")
    return attribute.value.data if isinstance(attribute, IntegerAttr) else 0


def set_slots(module: ModuleOp, count: int) -> None:
    """Notes the number of bound slots."""
    module.attributes["n_slots"] = IntegerAttr(count, i64)


def evaluate_of(module: ModuleOp, pass_name: str) -> func.FuncOp:
    """The function that is called for every evaluation. Raises WrongFormError if the module is no lowered unit."""
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == "evaluate":
            return op
    raise WrongFormError(pass_name, "there is no function 'evaluate'", ConvertStanToLoops.name)


@dataclass(frozen=True)
class ConvertStanToLoops(ModulePass):
    """Replaces a `stan.program` in value form by the functions of one of its units (see `units`)."""

    name = "convert-stan-to-loops"

    unit: str = DEFAULT_UNIT.name

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"unit must be one of {', '.join(UNITS)}, found '{self.unit}'")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in [o for o in op.body.block.ops if isinstance(o, stan.ProgramOp)]:
            self._require_value_form(program)
            unit = lower_unit(take_apart(program), UNITS[self.unit])
            program.detach()
            for function in list(unit.module.body.block.ops):
                function.detach()
                op.body.block.add_op(function)
            set_slots(op, unit.n_slots)

    def _require_value_form(self, program: stan.ProgramOp) -> None:
        for op in ops_within(program):
            if isinstance(op, stan.BreakOp | stan.ContinueOp | stan.ScopeOp):
                raise WrongFormError(self.name, f"there is a {op.name}", StructureExits.name)


@dataclass(frozen=True)
class Simplify(ModulePass):
    """Scalar clean-up, cheap enough to run always: fold, cse, licm, dce."""

    name = "simplify"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        fold.run_on(op)
        cse.run_on(op)
        licm.run_on(op)
        dce.run_on(op)


@dataclass(frozen=True)
class HoistData(ModulePass):
    """Moves what depends on data alone from `evaluate` to `bind`."""

    name = "hoist-data"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        set_slots(op, hoist_data(evaluate_of(op, self.name), slots_of(op)))


@dataclass(frozen=True)
class LightenLoops(ModulePass):
    """Checks of data, and costly work on data, run once; invariant checks run before loops, others set a flag; what
    outer loops repeat becomes a table. Nothing in units that print or draw: they stay precise.
    """

    name = "lighten-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if must_be_precise(op):
            return
        evaluate = evaluate_of(op, self.name)
        licm.run_on(evaluate, guarded=True)
        separated = separate_data_checks(evaluate)
        if tabulate_data(evaluate) or separated:
            dce.run_on(op)
            set_slots(op, hoist_data(evaluate, slots_of(op)))
        defer_checks(evaluate)
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                leave_location_open(function)
        cse.run_on(op)
        if tabulate_invariants(evaluate):
            dce.run_on(op)


@dataclass(frozen=True)
class FuseLoops(ModulePass):
    """Fewer loops in `evaluate`: small ones unrolled, others fused; what an iteration stored is not loaded again."""

    name = "fuse-loops"

    before_reverse_mode: bool = False
    reassociate: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.before_reverse_mode and unroll_small.run_on(evaluate_of(op, self.name)):
            fold.run_on(op)
            cse.run_on(op)
        if loop_fusion.run_on(evaluate_of(op, self.name), self.before_reverse_mode, self.reassociate):
            cse.run_on(op)
            if self.before_reverse_mode:  # else what is dead by now goes in the end
                dce.run_on(op)


@dataclass(frozen=True)
class LoopHints(ModulePass):
    """Marks loops that cannot be widened, and short sums."""

    name = "loop-hints"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        loop_hints.run_on(op)
