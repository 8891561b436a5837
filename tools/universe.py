"""Our dialects and passes for xDSL's own tools: the entry point `xdsl.universe`, which `xdsl-opt` reads.

    stan-opt model.stan | xdsl-opt -p structure-exits,promote-variables,convert-stan-to-loops,stan-cse

What has the name of one of xDSL's own begins with `stan-` there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from xdsl.universe import XDSL_UNIVERSE, Universe

from ulam.passes.pipelines import OWN_PASSES, PASSES, pass_class
from ulam.runtime.modules.known_dialects import OWN_DIALECTS, load_dialect

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

PREFIX = "stan-"


def shown_name(name: str) -> str:
    """What a pass or a dialect is called in the tools of xDSL."""
    taken = name in XDSL_UNIVERSE.all_passes or name in XDSL_UNIVERSE.all_dialects
    return PREFIX + name if taken else name


def _pass(name: str) -> type[ModulePass]:
    cls, shown = pass_class(name), shown_name(name)
    return cls if shown == name else type(cls.__name__, (cls,), {"name": shown, "__doc__": cls.__doc__})


_PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    shown_name(name): partial(_pass, name) for name in (*PASSES, *OWN_PASSES.names())
}

UNIVERSE = Universe(
    all_dialects={shown_name(name): partial(load_dialect, name) for name in OWN_DIALECTS},
    all_passes=_PASSES,
)
