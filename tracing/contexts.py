"""Contexts: what a trace records. Decided once for each site, when the traced clone is compiled.

TraceContext(primitives={"zero"}, metadata=lambda site: {"cost": 1} if site.kind == "call" else None)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ulam.frontend.functions.higher_order import REDUCE_SUM
from ulam.runtime.errors import ArgumentError
from ulam.tracing.instrument.choices import KINDS
from ulam.tracing.tape.recorder import MODES


@dataclass(frozen=True)
class Site:
    """A place of a traced function.

    `kind`: call, special, target, tilde (a `~` statement), constant, argument, jump or return; `user`: whether it calls
    a user's function; `line`, `column`: 0 where that is not known.
    """

    kind: str
    name: str
    user: bool
    line: int
    column: int


Predicate = Callable[[Site], bool]
_VALUES = frozenset(("values", "draws", "elements"))
_TERMS = frozenset(("tilde", "target"))
ALL = 1 << 62
"""Elements of containers that are copied, if all are."""
IN_PARTS = REDUCE_SUM | {"map_rect"}
"""Functions of the library that do nothing but call one of the program, in parts."""
HookFunction = Callable[[Site, tuple[Any, ...], Any], None]
"""Called during the run with the site, the values of the operands (those that are kept in traces) and the result."""


@dataclass(frozen=True)
class Enter:
    """The call is entered, if it is of a user's function, or of a higher-order one (see `TraceContext`)."""


@dataclass(frozen=True)
class Primitive:
    """The call is one node."""


@dataclass(frozen=True)
class Skip:
    """No node; where the value is used, it prints as `⟨?⟩`."""


@dataclass(frozen=True)
class Hook:
    """One node; `function` is called after each run of the op. What it raises ends the run, as an error of the trace.

    About a microsecond for each call. It may track other functions, but has no nodes of the run that calls it.
    """

    function: HookFunction


Action = Enter | Primitive | Skip | Hook


class TraceContext:
    """What to record.

    `primitives`: names (also with `*` and `?`) of user functions that are not entered, or a predicate over call sites.
    `enter`: if given, only these are entered. `reduce_sum` and `map_rect` are entered as functions of the program are;
    other higher-order functions of the library, as `ode_rk45`, where they are named here: they then have a node for
    each call of their function. `max_depth`: 1 records the tracked call alone, 2 also what happens in it; up to 4 a
    function has a clone for each depth, above calls are counted at run time.

    `record`: what is kept, besides the result, of `values` (results of ops; without them nodes are there, but have no
    value), `draws` (the same for random numbers), `elements` (containers after an assignment to some of their
    elements), and `tilde`, `target`, `checks`, `print` (without them these statements are no nodes). `constants`:
    literals are nodes (`[Const:§b:%i]`). `containers`: "digest" copies containers of up to `max_copy` elements, and
    keeps a digest of others; "copy" copies all; "none" keeps sizes only.

    `metadata`: from a site to a dictionary that each of its nodes begins with. `hooks`: from names of ops (with `*` and
    `?`), or from predicates over sites, to functions that are called after each run of the op (see `Hook`). `timing`:
    `time` of calls that are entered, in seconds.

    `limit_bytes`: how much is kept, and `overflow` what happens then: "stop", "ring", "spill" or "edges". `self_node`:
    whether listings show `@1`.

    Subclasses may override `can_enter` and the methods that begin with `on_`; they are asked once for each site.
    """

    def __init__(
        self,
        *,
        primitives: Collection[str] | Predicate = (),
        enter: Collection[str] | None = None,
        max_depth: int | None = None,
        record: Collection[str] = KINDS,
        containers: str = "digest",
        max_copy: int = 64,
        metadata: Callable[[Site], Mapping[str, Any] | None] | None = None,
        hooks: Mapping[str | Predicate, HookFunction] | None = None,
        timing: bool = False,
        limit_bytes: int = 1 << 30,
        overflow: str = "stop",
        self_node: bool = True,
        constants: bool = False,
    ) -> None:
        if isinstance(primitives, str) or isinstance(enter, str) or isinstance(record, str):
            raise ArgumentError("names are given as a set or list, not as one string")
        if max_depth is not None and max_depth < 1:
            raise ArgumentError(f"max_depth is {max_depth}, but at least the call itself is recorded")
        if unknown := sorted(set(record) - set(KINDS)):
            raise ArgumentError(f"record is a part of {', '.join(KINDS)}; it does not know {', '.join(unknown)}")
        if containers not in ("none", "digest", "copy"):
            raise ArgumentError(f"containers is none, digest or copy, not {containers!r}")
        if overflow not in MODES:
            raise ArgumentError(f"overflow is one of {', '.join(MODES)}, not {overflow!r}")
        if limit_bytes < 4096 or max_copy < 0:
            raise ArgumentError(f"limit_bytes ({limit_bytes}) is at least 4096, max_copy ({max_copy}) at least 0")
        for filter_, function in (hooks or {}).items():
            if not callable(function) or not (isinstance(filter_, str) or callable(filter_)):
                raise ArgumentError("hooks are functions, by names of ops or by predicates over sites")
        self.primitives = primitives if callable(primitives) else frozenset(primitives)
        self.enter = None if enter is None else frozenset(enter)
        self.max_depth = max_depth
        self.record = frozenset(record)
        self.max_copy = {"digest": max_copy, "copy": ALL, "none": -1}[containers]
        self.metadata = metadata
        self.hooks = dict(hooks or {})
        self.timing = timing
        self.limit_bytes = limit_bytes
        self.overflow = overflow
        self.self_node = self_node
        self.constants = constants

    # ------------------------------------------------------------ asked once for each site

    @property
    def keeps_all(self) -> bool:
        """Whether all nodes have their values, and what is added to the target has nodes."""
        return self.max_copy >= ALL and self.record >= _VALUES | _TERMS

    def copying(self) -> TraceContext:
        """The same nodes, but all of their values, and of all terms of the target: containers as copies, no limit."""
        found = copy(self)
        found.max_copy, found.limit_bytes, found.overflow = ALL, 1 << 40, "stop"
        found.record, found.hooks = self.record | _VALUES | _TERMS, {}
        return found

    def can_enter(self, site: Site, depth: int) -> bool:
        """Whether a call of a user's function, or of a higher-order one that `enter` names, is entered.

        `depth` is 1 for the tracked call, 2 for what it calls.
        """
        if callable(self.primitives):
            if self.primitives(site):
                return False
        elif any(fnmatchcase(site.name, pattern) for pattern in self.primitives):
            return False
        return self.enter is None or any(fnmatchcase(site.name, pattern) for pattern in self.enter)

    def on_call(self, site: Site, depth: int) -> Action:
        """What becomes of a call (of an operator, too) or a `~` statement: Enter, Primitive, Skip or Hook."""
        named = site.name in (self.enter or ()) and takes_function(site.name)
        is_wanted = site.user or named or (self.enter is None and site.name in IN_PARTS)
        return Enter() if is_wanted and self.can_enter(site, depth) else Primitive()

    def on_nested(self, site: Site, child_context: TraceContext) -> TraceContext:
        """The context of what happens in a call that is entered. Depth, overflow and limits are those of the root's."""
        return child_context

    def on_primitive(self, site: Site) -> Skip | Hook | Mapping[str, Any] | None:
        """Of a call that is not entered: None, Skip, Hook, or metadata of its nodes."""
        return None

    def on_special(self, site: Site) -> Skip | Hook | Mapping[str, Any] | None:
        """The same for checks, prints, declarations, assignments to elements, additions to the target."""
        return None

    def on_constant(self, site: Site) -> Skip | Mapping[str, Any] | None:
        """Of a literal, with `constants`: None, Skip, or metadata."""
        return None

    def on_argument(self, site: Site) -> Mapping[str, Any] | None:
        """Metadata of a parameter or an argument of a block."""
        return None

    def on_jump(self, site: Site) -> Mapping[str, Any] | None:
        """Metadata of a jump; its name is that of the block, as `§3`."""
        return None

    def on_return(self, site: Site) -> Mapping[str, Any] | None:
        """Metadata of a return."""
        return None

    def on_error(self, site: Site, exception: Exception) -> Primitive | Skip | None:
        """What becomes of a call whose function cannot be traced: None raises the exception."""
        return None

    # ------------------------------------------------------------ for the compiler

    def hooks_of(self, site: Site) -> list[HookFunction]:
        """The functions of `hooks` that are called at a site."""
        return [
            function
            for filter_, function in self.hooks.items()
            if (filter_(site) if callable(filter_) else site.name == filter_ or _matches(site.name, filter_))
        ]

    @property
    def leaves_out(self) -> bool:
        """Whether ops may happen that are no nodes, or have no value: by `record`, or by methods of one's own."""
        return self.record != frozenset(KINDS) or type(self) not in (TraceContext, DepthLimit, Only, Compose)

    @property
    def names(self) -> frozenset[str]:
        """The names of functions that it mentions, patterns apart, and what is primitive in any case."""
        named = set() if callable(self.primitives) else {n for n in self.primitives if not is_builtin(n)}
        return frozenset(n for n in named | set(self.enter or ()) if not set("*?[") & set(n))

    @property
    def compiled_key(self) -> tuple[Any, ...]:
        """Contexts of equal keys give the same clone. Functions, and classes of users, are told apart by identity."""
        primitives = id(self.primitives) if callable(self.primitives) else self.primitives
        by_class = id(self) if type(self) not in (TraceContext, DepthLimit, Only, Compose) else 0
        hooks = tuple((id(f) if callable(f) else f, id(function)) for f, function in self.hooks.items())
        return (
            primitives, self.enter, self.max_depth, self.max_copy, id(self.metadata), by_class, self.record, hooks,
            self.timing, self.constants,
        )  # fmt: skip


def _matches(name: str, pattern: str) -> bool:
    """Operators (`*`, `.*`) are no patterns."""
    return any(c.isalnum() for c in pattern) and fnmatchcase(name, pattern)


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
    """Two contexts in one: enters what both enter, skips what one of them skips; of metadata the second's win.

    Records what both record, and keeps what one of them wants in addition: hooks, literals, times.
    """

    def __init__(self, first: TraceContext, second: TraceContext) -> None:
        depths = [c.max_depth for c in (first, second) if c.max_depth is not None]
        super().__init__(
            max_depth=min(depths) if depths else None,
            record=first.record & second.record,
            metadata=self._metadata,
            hooks={**first.hooks, **second.hooks},
            timing=first.timing or second.timing,
            limit_bytes=min(first.limit_bytes, second.limit_bytes),
            overflow=second.overflow,
            self_node=first.self_node and second.self_node,
            constants=first.constants or second.constants,
        )
        self.max_copy = min(first.max_copy, second.max_copy)
        self.first, self.second = first, second

    def _metadata(self, site: Site) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        for context in (self.first, self.second):
            if context.metadata is not None:
                found.update(context.metadata(site) or {})
        return found

    def can_enter(self, site: Site, depth: int) -> bool:
        return self.first.can_enter(site, depth) and self.second.can_enter(site, depth)

    def on_call(self, site: Site, depth: int) -> Action:
        actions = self.first.on_call(site, depth), self.second.on_call(site, depth)
        for kind in (Skip, Hook, Primitive):
            found = [action for action in actions if isinstance(action, kind)]
            if found:
                return _both(found)
        return Enter()

    def on_nested(self, site: Site, child_context: TraceContext) -> TraceContext:
        first, second = self.first.on_nested(site, self.first), self.second.on_nested(site, self.second)
        return self if first is self.first and second is self.second else Compose(first, second)

    def on_error(self, site: Site, exception: Exception) -> Primitive | Skip | None:
        return self.first.on_error(site, exception) or self.second.on_error(site, exception)

    def _answers(self, method: str, site: Site) -> Any:
        """Of both: Skip wins, then hooks, then metadata, which are merged."""
        answers = [getattr(context, method)(site) for context in (self.first, self.second)]
        if any(isinstance(answer, Skip) for answer in answers):
            return Skip()
        hooks = [answer for answer in answers if isinstance(answer, Hook)]
        if hooks:
            return _both(hooks)
        found = {k: v for answer in answers if answer is not None for k, v in answer.items()}
        return found or None

    def on_primitive(self, site: Site) -> Skip | Hook | Mapping[str, Any] | None:
        return self._answers("on_primitive", site)

    def on_special(self, site: Site) -> Skip | Hook | Mapping[str, Any] | None:
        return self._answers("on_special", site)

    def on_constant(self, site: Site) -> Skip | Mapping[str, Any] | None:
        return self._answers("on_constant", site)

    def on_argument(self, site: Site) -> Mapping[str, Any] | None:
        return self._answers("on_argument", site)

    def on_jump(self, site: Site) -> Mapping[str, Any] | None:
        return self._answers("on_jump", site)

    def on_return(self, site: Site) -> Mapping[str, Any] | None:
        return self._answers("on_return", site)

    @property
    def leaves_out(self) -> bool:
        return self.first.leaves_out or self.second.leaves_out

    @property
    def names(self) -> frozenset[str]:
        return self.first.names | self.second.names

    @property
    def compiled_key(self) -> tuple[Any, ...]:
        return (self.first.compiled_key, self.second.compiled_key, self.max_copy, self.record)


def _both(actions: list[Any]) -> Any:
    """Hooks of both are called; of others they are equal."""
    if len(actions) == 1 or not isinstance(actions[0], Hook):
        return actions[0]
    functions = [action.function for action in actions]

    def call_all(site: Site, operands: tuple[Any, ...], value: Any) -> None:
        for function in functions:
            function(site, operands, value)

    return Hook(call_all)


def is_builtin(symbol: str) -> bool:
    """Whether a function of this name belongs to Stan's library, so that its calls are primitive."""
    from ulam.frontend.functions.signatures import exists

    return exists(symbol) or takes_function(symbol)


def takes_function(symbol: str) -> bool:
    """Whether it is a higher-order function of the library: a solver, `reduce_sum` and the like."""
    from ulam.frontend.functions.higher_order import captured, is_variadic

    return is_variadic(symbol) or bool(captured(symbol, 10)) or symbol == "map_rect"
