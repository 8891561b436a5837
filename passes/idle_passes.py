"""Passes of units that have nothing to work on, told by the names of what is there: they are not even imported.

Importing a pass takes longer than running it on a small program. The names are those of ops, `loop:` before those of
ops inside of loops, the functions of `rt.math`, `costly` where one of these is a call, and `many` where there
are many ops. A unit that had many counts as having everything from then on: what of them there is takes longer to find
out, after each change, than the few passes that have no work there.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, cast

from xdsl.dialects import func

from ulam.dialects.walk import following_op
from ulam.library.costs import FunctionCost
from ulam.library.functions import function
from ulam.passes.pipelines import pipeline_parts
from ulam.passes.running import remembered
from ulam.passes.settled import SettledFunctions

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

Groups = tuple[frozenset[str], ...]
MANY = 1500
"""Operations of a unit from which on one of its functions may be too long."""


def _any(names: str) -> Groups:
    return (frozenset(names.split()),)


_SHARED = "inv_logit inv_logit_of_bounds exp_minus_magnitude"
_LOGARITHMS = "log1p_exp log_inv_logit log1m_inv_logit log_sum_exp log1p_exp_minus_magnitude"
UNIT_WORKS_ON: dict[str, Groups] = {
    "invariant-kernels": _any("loop:rt.kernel"),
    "batch-kernels": _any("loop:rt.kernel"),
    "share-kernels": _any("rt.kernel"),
    "inline-kernels": _any("rt.kernel"),
    "sort-rows": (*_any("loop:ad.accumulate"), *_any("loop:costly")),
    "unique-rows": _any("loop:rt.load"),
    "sum-arms": _any("loop:scf.if"),
    "unswitch-loops": (*_any("loop:scf.if"), *_any("loop:costly")),
    "lazy-comparisons": _any("loop:scf.if"),
    "carry-elements": (*_any("rt.alloc loop:rt.alloc"), *_any("loop:rt.store"), *_any("loop:rt.load")),
    "dead-stores": (*_any("rt.alloc loop:rt.alloc"), *_any("rt.store loop:rt.store")),
    "additions-in-place": (*_any("rt.alloc loop:rt.alloc"), *_any("loop:rt.store"), *_any("loop:arith.addf fma")),
    "split-memory": (*_any("rt.alloc"), *_any("arith.muli"), *_any("loop:rt.load")),
    "sink-fills": (*_any("scf.if"), *_any("rt.alloc"), *_any("loop:rt.load"), *_any("loop:rt.store rt.kernel")),
    "loops-from-guards": (*_any("scf.if loop:scf.if"), *_any("loop:ad.target_add")),
    "memory-from-guards": (*_any("scf.if"), *_any("rt.alloc"), *_any("loop:rt.store loop:ad.accumulate")),
    "loops-from-zero": _any("loop:arith.subi"),
    "data-divisors": (*_any("loop:arith.divf"), *_any("loop:arith.mulf")),
    "counted-sums": _any("loop:arith.addf loop:arith.subf fma"),
    "overwritten-memory": (*_any("rt.alloc loop:rt.alloc"), *_any("loop:rt.store rt.copy loop:rt.copy loop:rt.fill")),
    "carried-rows": (*_any("loop:scf.for"), *_any("log log_sum_exp")),
    "tabulate-by-index": (*_any("loop:costly"), *_any("loop:arith.extsi")),
    "branch-additions": (*_any("loop:scf.if"), *_any("exp log_sum_exp"), *_any("log log_sum_exp")),
    "invariant-sizes": (*_any("loop:arith.maxsi"), *_any("loop:arith.subi")),
    "coalesce-loops": (*_any("loop:scf.for loop:scf.if"), *_any("loop:ad.target_add")),
    "choose-nests": (*_any("loop:scf.for loop:scf.if"), *_any("loop:ad.target_add")),
    "interchange-loops": (*_any("loop:rt.alloc"), *_any("loop:scf.for")),
    "shared-divisors": _any("loop:arith.divf"),
    "share-arms": _any("loop:scf.if"),
    "invariant-loops": _any("loop:scf.for scf.if loop:scf.if"),
    "tabulate-invariants": _any("loop:scf.for loop:scf.if"),
    "powers-to-exponentials": _any("pow"),
    "logs-of-choices": (*_any("loop:rt.math"), *_any("loop:scf.if loop:arith.select")),
    "prefix-sums": (*_any("loop:scf.for"), *_any("loop:rt.load")),
    "private-rows": (*_any("rt.alloc"), *_any("loop:rt.store"), *_any("loop:rt.load")),
    "terms-at-stores": (*_any("rt.alloc"), *_any("loop:rt.store"), *_any("loop:ad.target_add")),
    "elements-at-reads": (*_any("rt.alloc"), *_any("loop:rt.store"), *_any("loop:ad.target_add")),
    "elements-by-index": (*_any("rt.alloc"), *_any("loop:rt.store"), *_any("loop:ad.target_add")),
    "normal-terms": _any("rt.kernel loop:rt.kernel"),
    "carry-stores": (*_any("sqrt"), *_any("loop:rt.store")),
    "cancel-inverses": _any("sqrt"),
    "scaled-log-sums": _any("log log_sum_exp"),
    "log-recursions": (*_any("log log_sum_exp"), *_any("loop:rt.store")),
    "log-sums-to-products": (*_any("log log_sum_exp"), *_any("exp log_sum_exp")),
    "linear-layouts": (*_any("loop:ad.target_add loop:arith.addf"), *_any("square loop:arith.mulf")),
    "scaled-factors": _any("rt.kernel"),
    "solved-columns": _any("rt.kernel"),
    "form-layouts": (*_any("loop:ad.target_add"), *_any("loop:arith.mulf")),
    "chosen-elements": (*_any("loop:scf.if"), *_any("loop:costly")),
    "elements-of-views": (*_any("loop:rt.view"), *_any("loop:rt.load")),
    "listed-products": (*_any("loop:scf.for"), *_any("loop:arith.addf fma"), *_any("loop:arith.extsi")),
    "products-ahead": (*_any("loop:scf.for"), *_any("loop:arith.mulf fma")),
    "design-products": (*_any("loop:scf.for"), *_any("loop:arith.mulf fma")),
    "columns-together": (*_any("loop:scf.for"), *_any("loop:arith.mulf fma")),
    "count-profile-entries": _any("ad.profile_begin"),
    "small-sizes": _any("loop:scf.for"),
    "strip-mine": _any("loop:scf.for loop:rt.alloc"),
    "share-parts": _any("many"),
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


class UnitNames:
    """What a unit has, looked up when somebody asks, and again when it may have changed."""

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._names: set[str] | None = None
        self._size = remembered(_Size)

    def forget(self) -> None:
        """The unit may have changed."""
        self._names = None

    def have_work_for(self, name: str, text: str) -> bool:
        """Whether a part of a pipeline has something to work on."""
        if self._size.was_many or not (works_on := _works_on(name, text)):
            return True
        names = self._names = _names(self._module) if self._names is None else self._names
        self._size.was_many = "many" in names
        return self._size.was_many or any(all(group & names for group in groups) for groups in works_on)


class _Size:
    """Whether a unit had many ops."""

    was_many = False


def _names(module: ModuleOp) -> set[str]:
    settled = remembered(SettledFunctions)
    found: set[str] = set()
    count = 0
    for op in module.body.block.ops:
        known = settled.known(op) if isinstance(op, func.FuncOp) else {}
        names = cast("_Names", known.get(_Names) or known.setdefault(_Names, _Names(op)))
        found |= names.found
        count += names.count
    return found | {"many"} if count > MANY else found


class _Names:
    """The names of what is in an op of a unit, a function, and how many ops that are."""

    def __init__(self, op: Operation) -> None:
        classes: _Classes = ({type(op)}, set())
        functions: tuple[set[str], set[str]] = (set(), set())
        self.count = 1 + _add_ops(op, 0, classes, functions)
        self.found: set[str] = set()
        for prefix, seen, called in zip(("", "loop:"), classes, functions, strict=True):
            self.found.update(prefix + cls.name for cls in seen)
            self.found |= called
            if any(function(name).cost is FunctionCost.CALL for name in called):
                self.found.add(f"{prefix}costly")


_LOOPS = frozenset(("scf.for", "scf.while"))
_Classes = tuple[set["type[Operation]"], set["type[Operation]"]]


def _add_ops(op: Operation, in_loop: int, classes: _Classes, functions: tuple[set[str], set[str]]) -> int:
    """Adds the classes of the ops inside of `op`, and the functions of `rt.math`: first those outside of loops, then
    those inside. Returns how many ops there are.
    """
    seen, called = classes[in_loop], functions[in_loop]
    count = 0
    for region in op.regions:
        block = region.first_block
        while block is not None:
            inner = block.first_op
            while inner is not None:
                count += 1
                cls = type(inner)
                seen.add(cls)
                if inner.regions:
                    count += _add_ops(inner, int(in_loop or cls.name in _LOOPS), classes, functions)
                elif cls.name == "rt.math":
                    called.add(inner.properties["function"].data)  # type: ignore[attr-defined]
                inner = following_op(inner)
            block = block.next_block
    return count
