"""Running passes one after the other, those that a pass has inside included, and watching them.

    with observed_by(observer):
        run_passes(context, module, passes)

An observer sees every pass before and after it runs, the steps of a nested pipeline between the two of the pass that
has them. Nothing is done for it unless somebody observes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ulam.dialects.plain_instances import PlainInstances
from ulam.passes.settled import SettledFunctions

Memory = TypeVar("Memory")


class TellingPass(ModulePass, metaclass=PlainInstances):
    """A pass that can tell whether it changed the module."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.changes(op)

    @abstractmethod
    def changes(self, module: ModuleOp) -> bool:
        """Does the work; whether there was any."""


class PassObserver:
    """Sees the passes that run."""

    def before(self, name: str, module: ModuleOp | None) -> None:
        """A pass is about to run; on a program that was taken apart, where there is no module."""

    def after(self, name: str, module: ModuleOp) -> None:
        """It has run; not called if it failed."""


_OURS = "ulam."
_memory: ContextVar[dict[object, object] | None] = ContextVar("pass_memory", default=None)
_observer: ContextVar[PassObserver | None] = ContextVar("pass_observer", default=None)


@contextmanager
def observed_by(watching: PassObserver) -> Iterator[None]:
    """Shows all passes that run inside to an observer."""
    token = _observer.set(watching)
    try:
        yield
    finally:
        _observer.reset(token)


def observer() -> PassObserver | None:
    """Who observes at present."""
    return _observer.get()


@contextmanager
def remembering() -> Iterator[None]:
    """Passes that run inside, on one module, have a memory in common."""
    token = _memory.set({})
    try:
        yield
    finally:
        _memory.reset(token)


def remembered(kind: Callable[[], Memory]) -> Memory:
    """What passes before have noted in their common memory, made by `kind` if there is nothing; else something new."""
    memory = _memory.get()
    return kind() if memory is None else cast(Memory, memory.setdefault(kind, kind()))


def run_passes(
    context: Context, module: ModuleOp, entries: Iterable[ModulePass], between: Callable[[], None] | None = None
) -> bool:
    """Runs passes in order; whether one of them told that it changed something.

    `between` is called before each, and may end this by an exception.
    """
    changed = False
    settled = remembered(SettledFunctions)
    for entry in entries:
        if between is not None:
            between()
        with watched(entry.name, module):
            has_told = True
            if isinstance(entry, TellingPass):
                has_told = entry.changes(module)
                changed = changed or has_told
            elif type(entry).__module__.startswith(_OURS):
                entry.apply(context, module)
            else:
                _run_another(context, module, entry)
            if has_told:
                settled.forget_changed(entry)
    return changed


@contextmanager
def watched(name: str, module: ModuleOp) -> Iterator[None]:
    """Who observes is told of the pass `name` before what is done inside, and behind it unless it fails."""
    watching = _observer.get()
    if watching is not None:
        watching.before(name, module)
    yield
    if watching is not None:
        watching.after(name, module)


def _run_another(context: Context, module: ModuleOp, entry: ModulePass) -> None:
    """Runs a pass that is none of ours: its mistakes are told as its own. Raises OwnPassError."""
    from xdsl.utils.exceptions import VerifyException

    from ulam.passes.errors import NotSupportedError, OwnPassError

    try:
        entry.apply(context, module)
    except (NotSupportedError, MemoryError):
        raise
    except Exception as error:
        raise OwnPassError(f"pass '{entry.name}' failed: {type(error).__name__}: {error}") from error
    try:
        module.verify()
    except VerifyException as error:
        raise OwnPassError(f"pass '{entry.name}' left a module that breaks a rule: {error}") from error
