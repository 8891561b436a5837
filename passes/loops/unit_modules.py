"""The module of a unit: its functions, and the number of bound slots, which stands in it from pass to pass."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import Operation

from ulam.dialects import rt
from ulam.dialects.places import place_of
from ulam.passes.errors import WrongFormError


def slots_of(module: ModuleOp) -> int:
    """The number of bound slots that a unit needs so far."""
    slots = rt.SlotsAttr.of(module)
    return 0 if slots is None else slots.count.data


def set_slots(module: ModuleOp, count: int) -> None:
    """Notes the number of bound slots."""
    rt.SlotsAttr(IntAttr(count)).put(module)


def take_slots(module: ModuleOp, count: int) -> int:
    """The first of so many new bound slots."""
    first = slots_of(module)
    set_slots(module, first + count)
    return first


def noted_layouts(module: ModuleOp) -> list[dict[str, Any]]:
    """What the `rt.layout` ops of `bind` note, as JSON: the statement's place, the layout, where outcome and figures
    are, the reasons that an outcome above 0 means.
    """
    bind = bind_of(module)
    found: list[dict[str, Any]] = []
    for op in bind.body.block.ops if bind is not None else ():
        if isinstance(op, rt.LayoutOp):
            place = place_of(op.location)
            where = ("", 0, 0) if place is None else (place.filename.data, place.line.data, place.column.data)
            found.append({
                "layout": op.layout.data,
                "slot": op.slot.value.data,
                "reasons": [reason.data for reason in op.reasons],
                "figures": [name.data for name in op.names],
                **dict(zip(("file", "line", "column"), where, strict=True)),
            })  # fmt: skip
    return found


def named_function(module: ModuleOp, name: str, pass_name: str) -> Operation:
    """The function of a name; without one the module, with all of them. Raises WrongFormError if there is none such."""
    return _function(module, name, pass_name) if name else module


def evaluate_of(module: ModuleOp, pass_name: str) -> func.FuncOp:
    """The function that is called for every evaluation. Raises WrongFormError if the module is no lowered unit."""
    return _function(module, "evaluate", pass_name)


def bind_of(module: ModuleOp) -> func.FuncOp | None:
    """The function that runs when data are bound; None before `hoist-data`."""
    functions = (op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    return next((op for op in functions if op.sym_name.data == "bind"), None)


def _function(module: ModuleOp, name: str, pass_name: str) -> func.FuncOp:
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == name:
            return op
    raise WrongFormError(pass_name, f"there is no function '{name}'", "convert-stan-to-loops")
