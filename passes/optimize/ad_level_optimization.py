"""AD-level optimization: variables through which no gradient flows are marked `data_only`, printed as `data`.

    data { real y; } model { real x = y + 1; }    →    model { data real x = y + 1; }

In transformed parameters, the model and the program's own functions; the variables of the other blocks have no gradient
anyway. A value carries a gradient if it is computed from one that does, and is not an int or made of ints. It begins
with parameters, with `target()`, with calls that may read the target, and in functions with the formals that are not
declared `data`. A variable carries one if any assignment to it, whole or in part, assigns a value that does. Conditions
do not count: they choose between values. Tuples count as a whole, but a field taken out of a tuple that is written
there is that field.

The marks are for the reader: reverse mode finds out for each value of the lowered program, more precisely, whether it
needs an adjoint (`passes/autodiff/activity.py`), whatever is marked here. `autodiff` of calls is never changed: it
decides, by Stan's static rule, which constants `~` drops.

Method: values that carry a gradient are followed to their uses, each once.

Source: optimization levels documentation, "Auto-differentiation level optimization".
"""

from __future__ import annotations

from dataclasses import field

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.stan import CallEffects, Effect
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.bodies import Body
from ulam.passes.analysis.scopes import call_effects, own_bodies
from ulam.passes.optimize.memory_pattern_optimization import UNUSED
from ulam.passes.remarks import remark
from ulam.passes.variable_form import is_global

_BLOCKS = ("transformed_parameters", "model")
_MARK = UnitAttr()


class AdLevelOptimization(ModulePass):
    """Marks variables through which no gradient flows as `data`."""

    name = "ad-level-optimization"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op)


def run_on(op: Operation) -> None:
    """Marks the variables of all programs and functions at or below `op`; marks of an earlier run go first."""
    calls = call_effects(op)
    with_gradient: dict[str, str] = {}
    for body in own_bodies(op):
        if isinstance(body, stan.FuncOp):
            _mark(body, _Gradients(calls, {}))
        elif body.kind.data == "parameters":
            with_gradient |= {d.var_name.data: d.var_name.data for d in ops_within(body) if type(d) is stan.ParameterOp}
        elif body.kind.data in _BLOCKS:
            found = _Gradients(calls, with_gradient)
            _mark(body, found)
            with_gradient |= found.declared
        else:
            for declaration in ops_within(body):
                declaration.properties.pop("data_only", None)


@record(slots=True)
class _Origin:
    """Where the gradient of a value comes from: a parameter or formal, and the last assignment on the way."""

    name: str
    assignment: Operation | None = None


@record(eq=False, repr=False)
class _Gradients:
    """The values of one function or block that carry a gradient. `globals`: variables of other blocks that do, with
    the parameter that they depend on."""

    calls: CallEffects
    globals: dict[str, str]
    origins: dict[SSAValue, _Origin] = field(default_factory=dict[SSAValue, _Origin])
    pending: list[SSAValue] = field(default_factory=list[SSAValue])
    declared: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, value: SSAValue, origin: _Origin) -> None:
        if value not in self.origins and _has_reals(value.type):
            self.origins[value] = origin
            self.pending.append(value)

    def start(self, body: Body) -> None:
        """The values that a gradient begins with."""
        if isinstance(body, stan.FuncOp):
            is_data = body.data_only.get_values()
            names = body.argument_names.data
            for argument, data, name in zip(body.body.block.args, is_data, names, strict=True):
                if not data:
                    self.add(argument, _Origin(name.data))
        for op in ops_within(body):
            if isinstance(op, stan.GlobalOp):
                if (name := self.globals.get(op.var_name.data)) is not None:
                    self.add(op.results[0], _Origin(name))
            elif op.results and self.calls.of(op) & Effect.READS_TARGET:
                self.add(op.results[0], _Origin("the target"))

    def follow(self) -> None:
        """From the values found to all that are computed from them."""
        while self.pending:
            value = self.pending.pop()
            for use in value.uses:
                self._use(use.operation, use.index, self.origins[value])

    def _use(self, op: Operation, index: int, origin: _Origin) -> None:
        match op:
            case stan.AssignOp():
                if index == 1:
                    self.add(op.var, _Origin(origin.name, op))
            case stan.YieldOp():
                parent = op.parent_op()
                if isinstance(parent, stan.SelectOp):
                    self.add(parent.res, origin)
            case stan.ForEachOp():
                self.add(op.body.block.args[0], origin)
            case stan.FieldOp():
                written = op.value.owner
                if not isinstance(written, stan.TupleOp) or written.operands[op.field.value.data - 1] in self.origins:
                    self.add(op.res, origin)
            case stan.TupleOp():
                # Fields of it that were met before this element was known to carry a gradient.
                self.add(op.res, origin)
                for use in op.res.uses:
                    if isinstance(use.operation, stan.FieldOp):
                        self._use(use.operation, use.index, origin)
            case _:
                for result in op.results:
                    self.add(result, origin)


def _mark(body: Body, gradients: _Gradients) -> None:
    """Marks the variables of a function or block."""
    gradients.start(body)
    gradients.follow()
    for op in ops_within(body):
        if not isinstance(op, stan.DeclareOp):
            continue
        op.properties.pop("data_only", None)
        name, subject = op.var_name.data, f"variable {op.var_name.data}"
        origin = gradients.origins.get(op.results[0])
        if origin is None:
            op.properties["data_only"] = _MARK
            reason = "needs no gradient" if op.results[0].first_use is not None or is_global(op) else UNUSED
            remark(AdLevelOptimization.name, op.location, subject, reason, done=True)
        else:
            if is_global(op):
                gradients.declared[name] = origin.name
            remark(AdLevelOptimization.name, op.location, subject, _reason(origin), done=False)


def _reason(origin: _Origin) -> str:
    assignment = origin.assignment
    place = assignment.location if assignment is not None else None
    line = f"line {place.line.data} assigns" if isinstance(place, FileLineColLoc) else "it is assigned"
    return f"{line} a value that depends on {origin.name}"


def _has_reals(type_: Attribute) -> bool:
    """Whether a value or variable of a type can carry a gradient."""
    if isinstance(type_, stan.VarType):
        type_ = type_.element
    scalar = stan.scalar_of(type_)
    if isinstance(scalar, stan.TupleType):
        return any(_has_reals(element) for element in scalar.elements)
    return scalar in (stan.REAL, stan.COMPLEX)
