"""Contexts: what a trace records. Decided once for each call site, when the traced clone is compiled.

TraceContext(primitives={"zero"}, metadata=lambda site: {"cost": 1} if site.kind == "call" else None)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ulam.runtime.errors import ArgumentError
from ulam.runtime.trace.recorder import MODES


@dataclass(frozen=True)
class Site:
    """An op of a traced function. `kind`: call, special, target, tilde; `user`: whether it calls a user's function."""

    kind: str
    name: str
    user: bool
    line: int
    column: int


Predicate = Callable[[Site], bool]
ALL = 1 << 62
"""Elements of containers that are copied, if all are."""


class TraceContext:
    """What to record.

    `primitives`: names (also with `*` and `?`) of user functions that are not entered, or a predicate over call sites.
    `enter`: if given, only these are entered. `max_depth`: 1 records the tracked call alone, 2 also what happens in it.
    `containers`: "digest" copies containers of up to `max_copy` elements, and keeps a digest of others; "copy" copies
    all. `metadata`: from a site to a dictionary that each of its nodes begins with. `limit_bytes`: how much is kept,
    and `overflow` what happens then: "stop", "ring", "spill" or "edges". `self_node`: whether listings show `@1`.

    Subclasses may override `can_enter`.
    """

    def __init__(
        self,
        *,
        primitives: Collection[str] | Predicate = (),
        enter: Collection[str] | None = None,
        max_depth: int | None = None,
        containers: str = "digest",
        max_copy: int = 64,
        metadata: Callable[[Site], Mapping[str, Any] | None] | None = None,
        limit_bytes: int = 1 << 30,
        overflow: str = "stop",
        self_node: bool = True,
    ) -> None:
        if isinstance(primitives, str) or isinstance(enter, str):
            raise ArgumentError("names are given as a set or list, not as one string")
        if max_depth is not None and max_depth < 1:
            raise ArgumentError(f"max_depth is {max_depth}, but at least the call itself is recorded")
        if containers not in ("digest", "copy"):
            raise ArgumentError(f"containers is digest or copy, not {containers!r}")
        if overflow not in MODES:
            raise ArgumentError(f"overflow is one of {', '.join(MODES)}, not {overflow!r}")
        if limit_bytes < 4096 or max_copy < 0:
            raise ArgumentError(f"limit_bytes ({limit_bytes}) is at least 4096, max_copy ({max_copy}) at least 0")
        self.primitives = primitives if callable(primitives) else frozenset(primitives)
        self.enter = None if enter is None else frozenset(enter)
        self.max_depth = max_depth
        self.max_copy = max_copy if containers == "digest" else ALL
        self.metadata = metadata
        self.limit_bytes = limit_bytes
        self.overflow = overflow
        self.self_node = self_node

    def copying(self) -> TraceContext:
        """The same, but keeps everything: containers as copies, and without a limit."""
        found = copy(self)
        found.max_copy, found.limit_bytes, found.overflow = ALL, 1 << 40, "stop"
        return found

    def can_enter(self, site: Site, depth: int) -> bool:
        """Whether a call of a user's function is entered; `depth` is 1 for the tracked call, 2 for what it calls."""
        if callable(self.primitives):
            if self.primitives(site):
                return False
        elif any(fnmatchcase(site.name, pattern) for pattern in self.primitives):
            return False
        return self.enter is None or any(fnmatchcase(site.name, pattern) for pattern in self.enter)

    @property
    def names(self) -> frozenset[str]:
        """The names that it mentions, patterns apart."""
        named = set() if callable(self.primitives) else set(self.primitives)
        return frozenset(n for n in named | set(self.enter or ()) if not set("*?[") & set(n))

    @property
    def compiled_key(self) -> tuple[Any, ...]:
        """Contexts of equal keys give the same clone."""
        primitives = id(self.primitives) if callable(self.primitives) else self.primitives
        by_class = id(self) if type(self) not in (TraceContext, DepthLimit, Only, Compose) else 0
        return (primitives, self.enter, self.max_depth, self.max_copy, id(self.metadata), by_class)


def Default() -> TraceContext:
    """Enters all functions of the program."""
    return TraceContext()


class DepthLimit(TraceContext):
    """Enters `levels` levels: 2 is the tracked call and what happens in it."""

    def __init__(self, levels: int) -> None:
        super().__init__(max_depth=levels)


class Only(TraceContext):
    """Enters the functions named, and no others."""

    def __init__(self, *names: str) -> None:
        super().__init__(enter=names)


class Compose(TraceContext):
    """Two contexts in one: enters what both enter; of metadata the second's win."""

    def __init__(self, first: TraceContext, second: TraceContext) -> None:
        depths = [c.max_depth for c in (first, second) if c.max_depth is not None]

        def metadata(site: Site) -> Mapping[str, Any] | None:
            found: dict[str, Any] = {}
            for context in (first, second):
                if context.metadata is not None:
                    found.update(context.metadata(site) or {})
            return found or None

        super().__init__(
            max_depth=min(depths) if depths else None,
            metadata=metadata,
            limit_bytes=min(first.limit_bytes, second.limit_bytes),
            overflow=second.overflow,
            self_node=first.self_node and second.self_node,
        )
        self.max_copy = min(first.max_copy, second.max_copy)
        self.first, self.second = first, second

    def can_enter(self, site: Site, depth: int) -> bool:
        return self.first.can_enter(site, depth) and self.second.can_enter(site, depth)

    @property
    def names(self) -> frozenset[str]:
        return self.first.names | self.second.names

    @property
    def compiled_key(self) -> tuple[Any, ...]:
        return (self.first.compiled_key, self.second.compiled_key, self.max_copy)


def is_builtin(symbol: str) -> bool:
    """Whether a function of this name belongs to Stan's library, so that its calls are primitive."""
    from ulam.frontend.signatures import exists

    return exists(symbol)
