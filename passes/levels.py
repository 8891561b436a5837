"""Passes and levels of one's own: registered in this process, or entry points of installed packages.

    @ulam.register_pass
    class Halve(ModulePass):
        name = "halve"
        REQUIRES = ("structure-exits",)
        ...

    ulam.register_level("mine", "function-inlining,halve", like=2)

In a package's `pyproject.toml`:

    [project.entry-points."ulam.passes"]
    halve = "my_package.passes:Halve"

    [project.entry-points."ulam.levels"]
    mine = "my_package.levels:MINE"          # a pipeline's text, or an OptimizationLevel

Imports nothing of the compiler: a start from the cache asks for a level's passes, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

from ulam.library.extension_points import ExtensionError, ExtensionPoint
from ulam.library.records import record
from ulam.passes.pipeline_order import pass_names
from ulam.passes.pipelines import (
    DEFAULT_LEVEL,
    LEVELS,
    OWN_PASSES,
    PASSES,
    PipelineError,
    did_you_mean,
    unknown_pass,
    without_anchor,
)

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    AnyPass = TypeVar("AnyPass", bound=type[ModulePass])

OWN_LEVELS = ExtensionPoint("ulam.levels", "level")
_NAME = re.compile(r"[a-z][a-z0-9-]*")


@record(frozen=True)
class OptimizationLevel:
    """A level of one's own: the passes that it runs, and the level that it is `like` in all else.

    Of that level it has what the program's passes do not say: how numbers are computed, and what becomes of the
    program's units (docs/optimization.md, "Pipelines of one's own").
    """

    passes: str
    like: int = DEFAULT_LEVEL

    def __post_init__(self) -> None:
        if not isinstance(self.passes, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise PipelineError(f"the passes of a level are the text of a pipeline, found {self.passes!r}")
        if isinstance(self.like, bool) or self.like not in LEVELS:
            raise PipelineError(f"a level is like one from {min(LEVELS)} to {max(LEVELS)}, found {self.like!r}")


def register_pass(pass_class: AnyPass) -> AnyPass:
    """Makes a pass known by its `name` in all pipelines of this process; may stand as a decorator.

    The class is an `xdsl.passes.ModulePass`. `REQUIRES`, if it has one, names passes that must come before it. A pass
    of that name that was registered before is replaced. Raises PipelineError for a name that ulam itself has.
    """
    name = getattr(pass_class, "name", None)
    if not isinstance(pass_class, type) or not callable(getattr(pass_class, "apply", None)):  # pyright: ignore
        raise PipelineError(f"a pass is a class that has `name` and `apply`, found {pass_class!r}")
    OWN_PASSES.register(_new_name("pass", name, PASSES), pass_class)
    return pass_class


def register_level(name: str, passes: str, *, like: int = DEFAULT_LEVEL) -> None:
    """Makes a level known: `opt_level=name` and `-O name` then run these passes; all else is `like` another level's.

    A level of that name that was registered before is replaced.
    """
    OWN_LEVELS.register(_new_name("level", name, {}), OptimizationLevel(passes, like))


def _new_name(kind: str, name: Any, taken: dict[str, Any]) -> str:
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise PipelineError(f"the name of a {kind} has small letters, digits and hyphens, found {name!r}")
    if name in taken:
        raise PipelineError(f"ulam has a {kind} '{name}': give it another name")
    return name


def find_level(name: str) -> OptimizationLevel:
    """The level of one's own of a name. Raises PipelineError if there is none, it is none, or has passes unknown."""
    try:
        found = OWN_LEVELS.find(name)
    except ExtensionError as error:
        raise PipelineError(str(error)) from error
    if found is None:
        raise PipelineError(f"unknown level '{name}'{did_you_mean(name, OWN_LEVELS.names())}")
    if not isinstance(found, str | OptimizationLevel):
        kind = type(found).__name__
        raise PipelineError(f"level '{name}' is of type {kind}, not a pipeline's text or an ulam.OptimizationLevel")
    level = OptimizationLevel(found) if isinstance(found, str) else found
    try:
        fingerprints(without_anchor(level.passes))
    except PipelineError as error:
        raise PipelineError(f"level '{name}': {error}") from error
    return level


def fingerprints(pipeline: str) -> list[str]:
    """What tells versions of the passes in a pipeline apart that are not ulam's own; for keys of the cache.

    Raises PipelineError if there is no pass of a name; imports none.
    """
    names = dict.fromkeys(name for name in pass_names(pipeline) if name not in PASSES)
    try:
        found = {name: OWN_PASSES.fingerprint(name) for name in names}
    except ExtensionError as error:
        raise PipelineError(str(error)) from error
    for name in (name for name in found if not found[name]):
        raise unknown_pass(name)
    return list(found.values())
