"""Reverse-mode differentiation of a function whose result is its target.

    evaluate(theta, ...) -> target    →    evaluate(theta, gradient, ...) -> target

The forward sweep is the function as it is. The reverse sweep is ordinary IR behind it, block by block in the opposite
order (see `sweeps`).
Source: A. Griewank, A. Walther, "Evaluating Derivatives", chapters 3 and 4.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import ad
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import functions_of
from ulam.passes.autodiff.activity import Activity
from ulam.passes.autodiff.called_functions import write_derivatives
from ulam.passes.autodiff.calls import Derivatives
from ulam.passes.autodiff.rotate_loops import rotate_loops
from ulam.passes.autodiff.speculated_ops import speculated_ops
from ulam.passes.autodiff.sweeps import ReverseMode


class ReverseModePass(ModulePass):
    """Makes gradient functions, one for every `ad.gradient`.

    Where nothing is asked for, `ad.independent` has served its purpose. What is computed for a loop that does not run
    has no slope, infinite or not (`speculated_ops`).
    """

    name = "reverse-mode"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = functions_of(op)
        for request in [o for o in op.body.block.ops if isinstance(o, ad.GradientOp)]:
            reverse_mode(functions[request.function.root_reference.data])
            request.detach()
            request.erase()
        for independent in [o for o in ops_within(op) if type(o) is ad.IndependentOp]:
            independent.detach()
            independent.erase()


def reverse_mode(function: func.FuncOp) -> None:
    """Makes the gradient function of `function`, in place. `ad.independent` names what the gradient is taken of.

    Functions of the same module that it calls get derivatives of their own (see `calls`).
    """
    module = function.parent_op()
    assert isinstance(module, ModuleOp)
    derivatives = Derivatives(functions_of(module))
    rotate_loops(function.body.block)
    independent = next(op for op in function.body.block.ops if isinstance(op, ad.IndependentOp))
    activity = Activity(function.body.block, [independent.buffer])
    mode = ReverseMode(function, activity, derivatives)
    mode.speculated = speculated_ops(function.body.block)
    mode.gradient(independent)
    write_derivatives(derivatives, module)


def reverse_in_place(
    block: Block, known: dict[SSAValue, int | float], derivatives: Derivatives
) -> tuple[SSAValue, SSAValue | None]:
    """Appends the reverse sweep of the number that `block` adds to the target last; returns it, and its gradient.

    `block` stands alone, before it becomes part of a function: what it takes from outside is constant. `known`: which
    of that are numbers. The addition to the target is gone afterwards. None if the gradient is 0. What it calls gets
    `derivatives`, which are to be written when these functions are complete.
    """
    function = func.FuncOp.create(
        properties={"sym_name": StringAttr(""), "function_type": FunctionType.from_lists([], [])},
        regions=[Region(block)],
    )
    rotate_loops(block)
    independent = next(op for op in block.ops if isinstance(op, ad.IndependentOp))
    theta = independent.buffer
    mode = ReverseMode(function, Activity(block, [theta]), derivatives)
    mode.builder.known.update(known)
    independent.detach()
    independent.erase()
    (target,) = (op for op in ops_within(block) if isinstance(op, ad.TargetAddOp))
    mode.sweep()
    mode.builder.finish()
    value = target.value  # that of a call is of its forward version by now
    target.detach()
    target.erase()
    function.body.detach_block(block)
    return value, mode.shadows.of.get(theta)
