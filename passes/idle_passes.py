"""Passes of units that have nothing to work on, told by the names of what is there: they are not even imported.

Importing a pass takes longer than running it on a small program. The names are those of ops, `loop:` before those of
ops inside of loops, the functions of `rt.math`, `costly` where one of these is a call, and `many` where there
are many ops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from ulam.library.costs import FunctionCost
from ulam.library.functions import function
from ulam.passes.pipelines import pipeline_parts

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Block, Operation

Groups = tuple[frozenset[str], ...]
MANY = 1500
"""Operations of a unit from which on one of its functions may be too long."""


def _any(names: str) -> Groups:
    return (frozenset(names.split()),)


_SHARED = "inv_logit inv_logit_of_bounds exp_minus_magnitude"
_LOGARITHMS = "log1p_exp log_inv_logit log1m_inv_logit log_sum_exp log1p_exp_minus_magnitude"
UNIT_WORKS_ON: dict[str, Groups] = {
    "share-kernels": _any("rt.kernel"),
    "inline-kernels": _any("rt.kernel"),
    "sort-rows": (*_any("loop:ad.accumulate"), *_any("loop:costly")),
    "unique-rows": _any("loop:rt.load"),
    "sum-arms": _any("loop:scf.if"),
    "share-arms": _any("loop:scf.if"),
    "tabulate-invariants": _any("loop:scf.for loop:scf.if"),
    "powers-to-exponentials": _any("pow"),
    "logs-of-choices": (*_any("loop:rt.math"), *_any("loop:scf.if loop:arith.select")),
    "carry-stores": (*_any("sqrt"), *_any("loop:rt.store")),
    "cancel-inverses": _any("sqrt"),
    "log-sums-to-products": (*_any("log log_sum_exp"), *_any("exp log_sum_exp")),
    "linear-layouts": (*_any("loop:ad.target_add"), *_any("square")),
    "sparse-designs": (*_any("loop:scf.for"), *_any("loop:arith.mulf")),
    "count-profile-entries": _any("ad.profile_begin"),
    "strip-mine": _any("loop:scf.for loop:rt.alloc"),
    "split-functions": _any("many"),
    "logs-to-products": _any(f"log log1p log1m {_LOGARITHMS}"),
    "share-exponentials": _any(f"{_SHARED} {_LOGARITHMS}"),
}
"""Pass → groups of names; it does nothing unless the unit has one of each group."""

_PASSES = re.compile(r'\bpasses="((?:[^"\\]|\\.)*)"')


@cache
def _works_on(name: str, text: str) -> tuple[Groups, ...]:
    """What a part of a pipeline works on: one of these. Nothing is known of it if there are none."""
    if name != "if-changed":
        return (UNIT_WORKS_ON[name],) if name in UNIT_WORKS_ON else ()
    asking = _PASSES.search(text)
    parts = [_works_on(*part) for part in pipeline_parts(asking[1])] if asking is not None else []
    return tuple(groups for part in parts for groups in part) if all(parts) else ()


def busy_parts(pipeline: str, module: ModuleOp) -> Iterator[str]:
    """The parts of a pipeline that have something to work on, each asked when its turn has come."""
    names: set[str] | None = None
    for name, text in pipeline_parts(pipeline):
        if works_on := _works_on(name, text):
            names = _names(module) if names is None else names
            if not any(all(group & names for group in groups) for groups in works_on):
                continue
        yield text
        names = None


def _names(module: ModuleOp) -> set[str]:
    found: set[str] = set()
    if _add_names(module, "", found) > MANY:
        found.add("many")
    return found


_LOOPS = frozenset(("scf.for", "scf.while"))


def _add_names(op: Operation, prefix: str, found: set[str]) -> int:
    """Returns how many ops there are."""
    return sum(_add_block(block, prefix, found) for region in op.regions for block in region.blocks)


def _add_block(block: Block, prefix: str, found: set[str]) -> int:
    op = block.first_op
    count = 0
    while op is not None:
        count += 1
        name = op.name
        found.add(prefix + name)
        if name == "rt.math":
            called: str = op.properties["function"].data  # type: ignore[attr-defined]
            found.add(called)
            if function(called).cost is FunctionCost.CALL:
                found.add(f"{prefix}costly")
        if op.regions:
            count += _add_names(op, "loop:" if name in _LOOPS else prefix, found)
        op = op.next_op
    return count
