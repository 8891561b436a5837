"""Checks in loops, which keep a loop from being vectorised: what may become of them, and what not.

`separate-data-checks` gives the checks that depend on data alone a loop of their own, which then runs once, when data
are bound. `defer-checks` turns the others, as far as nothing unsafe follows from going on, into a flag that is tested
behind the loop. So a hot unit may notice an error late or early, but never misses one: it leaves with status LOCATE,
and the runtime runs the unit `locate`, in which every check stands where the program has it, to say which error comes
first.
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ulam.dialects import rt
from ulam.dialects.attributes import number
from ulam.dialects.walk import ops_within
from ulam.library.kernels import KERNELS, PULLBACKS
from ulam.library.statuses import LOCATE, REJECTION
from ulam.passes.loops.effects import functions
from ulam.passes.running import remembered
from ulam.passes.settled import SettledFunctions


def must_be_precise(module: ModuleOp) -> bool:
    """Whether a unit prints or draws: then its effects and errors must come in order in the unit itself."""
    settled = remembered(SettledFunctions)
    for function in functions(module):
        known = settled.known(function)
        if must_be_precise not in known:
            known[must_be_precise] = _has_ordered(function)
        if known[must_be_precise]:
            return True
    return False


def _has_ordered(function: func.FuncOp) -> bool:
    for op in ops_within(function):
        cls = type(op)
        if cls is rt.StringOp or (cls is rt.KernelOp and _is_ordered(op)):
            return True
    return False


def _is_ordered(op: Operation) -> bool:
    assert isinstance(op, rt.KernelOp)
    name = op.function.data
    kernel = KERNELS.get(name)
    return name not in PULLBACKS and (kernel is None or bool(kernel.effects))


def is_deferrable(check: rt.CheckOp) -> bool:
    """Domain checks."""
    return check.status is not None and check.status.value.data in (REJECTION, LOCATE)


def leave_open(op: Operation) -> None:
    """Takes its site from an op that has one: which error it is another unit tells."""
    if "site" not in op.properties:
        return
    if isinstance(op, rt.AllocOp):
        del op.properties["site"]
    else:
        op.properties["site"] = number(-1)
    if isinstance(op, rt.CheckOp):
        op.properties["status"] = number(LOCATE)
