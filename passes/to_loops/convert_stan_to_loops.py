"""A `stan.program` in value form becomes the functions of one of its units, over scalars, buffers and loops.

`units` has what belongs to which unit; `lowering` how ops, one after the other, become loops.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.errors import WrongFormError
from ulam.passes.loops.unit_modules import set_slots
from ulam.passes.to_loops.programs import take_apart
from ulam.passes.to_loops.units import lower_unit
from ulam.passes.units import DEFAULT_UNIT, UNITS


@record(frozen=True)
class ConvertStanToLoops(ModulePass):
    """Replaces a `stan.program` in value form by the functions of one of its units."""

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
                raise WrongFormError(self.name, f"there is a {op.name}", "structure-exits")
