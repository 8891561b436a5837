"""What a context wants of a traced clone, as the compiler asks for it; and its hooks, called while the clone runs."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ulam.runtime.errors import ArgumentError, UlamError
from ulam.tracing.contexts import Enter, Hook, HookFunction, Site, Skip, TraceContext
from ulam.tracing.instrument.choices import Choice, Form, Plan, Question
from ulam.tracing.instrument.graph import OPAQUE, ROOT, Graph, Place, ValueType
from ulam.tracing.tape.values import from_elements

_DERIVED_SPECIAL = ("declare", "index_assign", "element", "next", OPAQUE)
"""Special forms that are always nodes, so that they can have metadata only."""
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p)


class ContextError(UlamError):
    """A method or predicate of a context raised an exception while the clone was compiled: it is `__cause__`."""


class HookError(UlamError):
    """A hook raised an exception: it is `__cause__`."""


@dataclass(frozen=True)
class HookSite:
    """A function that is called at a site."""

    site: Site
    function: HookFunction


def site_of(kind: str, name: str, user: bool, place: Place | None) -> Site:
    """A site as contexts know it."""
    line, column = (0, 0) if place is None else (place.line, place.column)
    return Site(kind, name, user, line, column)


@contextmanager
def asking() -> Iterator[None]:
    """While a context is asked: what it raises is its own mistake, not the compiler's."""
    try:
        yield
    except ArgumentError:
        raise
    except Exception as error:
        raise ContextError(f"the context raised {type(error).__name__}: {error}") from error


class Choices:
    """A context's answers; `hooks` by number."""

    def __init__(self, context: TraceContext) -> None:
        self.context = context
        self.hooks: list[HookSite] = []

    def plan(self) -> Plan:
        """For the compiler."""
        return Plan(self.choose, self._form, self._failed, self.context, self.context.max_depth)

    @staticmethod
    def _form(context: TraceContext) -> Form:
        return Form(lambda *_: Choice(), context.record, context.constants, context.timing, context.max_copy)

    def choose(self, question: Question) -> Choice:
        """What becomes of an op."""
        with asking():
            return self._choose(question)

    def _choose(self, question: Question) -> Choice:
        context: TraceContext = question.state
        if question.depth == 1:
            return Choice("enter" if question.user else "primitive", context)
        site = site_of(question.kind, question.name, question.user, question.place)
        functions = context.hooks_of(site)
        answer: Any = None
        if question.kind in ("call", "tilde"):
            action = context.on_call(site, question.depth)
            if isinstance(action, Enter) and (question.user or question.higher_order):
                child = context.on_nested(site, context)
                if not isinstance(child, TraceContext):
                    raise ArgumentError(f"on_nested gives a TraceContext, not {type(child).__name__}")
                return Choice("enter", child, self._numbers(site, functions))
            answer = action if isinstance(action, Skip | Hook) else None
            further = None if isinstance(action, Skip) else context.on_primitive(site)
            if isinstance(answer, Hook):
                functions, answer = [*functions, answer.function], None
            answer = answer or further
        else:
            answer = context.on_constant(site) if question.kind == "constant" else context.on_special(site)
        if isinstance(answer, Skip):
            return Choice("skip")
        if isinstance(answer, Hook):
            functions, answer = [*functions, answer.function], None
        return Choice("primitive", None, self._numbers(site, functions), _metadata(answer, site))

    def _numbers(self, site: Site, functions: Sequence[HookFunction]) -> tuple[int, ...]:
        first = len(self.hooks)
        self.hooks += [HookSite(site, function) for function in functions]
        return tuple(range(first, len(self.hooks)))

    def _failed(self, question: Question, error: Exception) -> Choice:
        site = site_of(question.kind, question.name, question.user, question.place)
        with asking():
            answer = question.state.on_error(site, error)
        if answer is None:
            raise error
        return Choice("skip" if isinstance(answer, Skip) else "primitive")


def _metadata(answer: Any, site: Site) -> Mapping[str, Any]:
    if answer is None or isinstance(answer, Mapping):
        return answer or {}
    raise ArgumentError(f"{type(answer).__name__} is no answer for a {site.kind}: give None or a dictionary")


def add_metadata(graphs: Mapping[str, Graph], states: Mapping[str, TraceContext]) -> None:
    """What contexts say of sites, into the tables."""
    with asking():
        for symbol, graph in graphs.items():
            if symbol != ROOT:
                _describe(graph, states[symbol])


def _describe(graph: Graph, context: TraceContext) -> None:
    described = context.metadata or (lambda _: None)
    parameters = [*graph.parameters, *(a for block in graph.blocks for a in block.arguments)]
    for argument in parameters:
        argument.metadata = _static(described, context.on_argument, site_of("argument", argument.name, False, None))
    for block in graph.blocks:
        for item in block.items:
            site = site_of(item.kind, item.name, bool(item.child), item.place)
            asked = context.on_special if item.name in _DERIVED_SPECIAL else _nothing
            item.metadata = {**_static(described, asked, site), **item.metadata}
        for edge in block.edges:
            if edge.target:
                site = site_of("jump", f"§{edge.target}", False, None)
                edge.metadata = _static(described, context.on_jump, site)
            else:
                edge.metadata = _static(described, context.on_return, site_of("return", graph.name, False, None))


def _nothing(_: Site) -> None:
    return None


def _static(described: Callable[[Site], Any], asked: Callable[[Site], Any], site: Site) -> dict[str, Any]:
    return {**(described(site) or {}), **_metadata(asked(site), site)}


# ---------------------------------------------------------------- hooks


class Hooks:
    """The hooks of a clone, while it runs. `failure`: what one of them raised."""

    def __init__(self, hooks: Sequence[HookSite], types: Mapping[int, tuple[Sequence[ValueType], bool]]) -> None:
        self.hooks = hooks
        self.forms = {number: _form(*signature) for number, signature in types.items()}
        self.failure: BaseException | None = None
        self.failed: HookSite | None = None
        self.callback = CALLBACK(self._call)

    def error(self) -> HookError:
        """Of what was raised; interrupts are raised as they are."""
        failure, at = self.failure, self.failed
        assert failure is not None and at is not None
        if not isinstance(failure, Exception):
            raise failure
        where = f" in line {at.site.line}" if at.site.line else ""
        found = HookError(f"the hook of '{at.site.name}'{where} raised {type(failure).__name__}: {failure}")
        found.__cause__ = failure
        return found

    def _call(self, number: int, address: int) -> int:
        """Called by the program: `address` is that of the values, 8 bytes each."""
        hook = self.hooks[number]
        try:
            packed, has_result, containers = self.forms[number]
            values = packed.unpack(ctypes.string_at(address, packed.size))
            if containers is not None:
                values = _decoded(values, containers)
            if has_result:
                hook.function(hook.site, values[:-1], values[-1])
            else:
                hook.function(hook.site, values, None)
        except BaseException as error:  # raised again once the program has been left
            self.failure, self.failed = error, hook
            return 1
        return 0


def _form(types: Sequence[ValueType], has_result: bool) -> tuple[struct.Struct, bool, Sequence[ValueType] | None]:
    """How the values are packed; whether the last is the result; their types, if there are containers."""
    codes = "".join("q" * type_.slots if type_.rank or type_.is_int else "d" for type_ in types)
    return struct.Struct(f"={codes}"), has_result, types if any(type_.rank for type_ in types) else None


def _decoded(words: tuple[Any, ...], types: Sequence[ValueType]) -> tuple[Any, ...]:
    values: list[Any] = []
    at = 0
    for type_ in types:
        sizes = words[at + 1 : at + type_.slots]
        values.append(_contents(words[at], sizes, type_) if type_.rank else words[at])
        at += type_.slots
    return tuple(values)


def _contents(address: int, sizes: tuple[int, ...], type_: ValueType) -> Any:
    """A copy of a container's elements."""
    kind = np.dtype(np.int32 if type_.is_int else np.float64)
    count = int(np.prod(sizes))
    data = ctypes.string_at(address, count * kind.itemsize) if count else b""
    return from_elements(type_, sizes, np.frombuffer(data, kind).copy())
