"""The module of a unit: its functions, and the number of bound slots, which stands in it from pass to pass."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import Operation

from ulam.dialects import rt
from ulam.passes.errors import WrongFormError


def slots_of(module: ModuleOp) -> int:
    """The number of bound slots that a unit needs so far."""
    slots = rt.SlotsAttr.of(module)
    return 0 if slots is None else slots.count.data


def set_slots(module: ModuleOp, count: int) -> None:
    """Notes the number of bound slots."""
    rt.SlotsAttr(IntAttr(count)).put(module)


def named_function(module: ModuleOp, name: str, pass_name: str) -> Operation:
    """The function of a name; without one the module, with all of them. Raises WrongFormError if there is none such."""
    return _function(module, name, pass_name) if name else module


def evaluate_of(module: ModuleOp, pass_name: str) -> func.FuncOp:
    """The function that is called for every evaluation. Raises WrongFormError if the module is no lowered unit."""
    return _function(module, "evaluate", pass_name)


def _function(module: ModuleOp, name: str, pass_name: str) -> func.FuncOp:
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == name:
            return op
    raise WrongFormError(pass_name, f"there is no function '{name}'", "convert-stan-to-loops")
