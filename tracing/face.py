"""What users call on nodes and traces, in one place: each method asks the reader that does it.

Nodes and traces know the tape; the readers (listings, queries, exports, derivatives, updates) are functions over them.
The classes below have no objects. Their methods are put into `Node`, `ItemNode` and `Trace` when this module is
imported, which `ulam.trace` and the models' `track` do; for the type checker they are base classes of these.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from ulam.runtime.errors import ArgumentError
from ulam.tracing.export.graph import MAX_NODES
from ulam.tracing.nodes import ItemNode, Node
from ulam.tracing.trace import Trace

if TYPE_CHECKING:
    from networkx import MultiDiGraph

    from ulam.tracing.gradients.gradient_check import GradientCheck
    from ulam.tracing.program_text import Span
    from ulam.tracing.tape.recorder import Source
    from ulam.tracing.update.update import Update

FilePath = str | os.PathLike[str]

_Methods = TypeVar("_Methods", bound=type)


def _of(target: type) -> Callable[[_Methods], _Methods]:
    """Puts the methods of a class, and of those that it is made of, into another one."""

    def attach(methods: _Methods) -> _Methods:
        for source in reversed(methods.__mro__[:-1]):
            for name, value in vars(source).items():
                if callable(value) or isinstance(value, property):
                    setattr(target, name, value)
        return methods

    return attach


class Exports:
    """Methods of traces and of nodes: of a node, it and what is below it is written. Files are in UTF-8."""

    __slots__ = ()

    def to_dot(
        self, path: FilePath | None = None, *, levels: int | None = None, max_nodes: int | None = MAX_NODES
    ) -> str:
        """The text for Graphviz's `dot`; written to `path` if that is given.

        `levels`: of calls, as in `print_levels`. Of more than `max_nodes` nodes (None: any number) the middle is left
        out. Raises ArgumentError.
        """
        from ulam.tracing.export.dot import to_dot

        return to_dot(cast("Node | Trace", self), path, levels=levels, max_nodes=max_nodes)

    def to_svg(
        self, path: FilePath | None = None, *, levels: int | None = None, max_nodes: int | None = MAX_NODES
    ) -> str:
        """A picture for browsers, complete by itself; arguments as for `to_dot`."""
        from ulam.tracing.export.svg import to_svg

        return to_svg(cast("Node | Trace", self), path, levels=levels, max_nodes=max_nodes)

    def to_json(self, path: FilePath | None = None, *, max_nodes: int | None = 1_000_000) -> str:
        """The whole trace as JSON, which `from_json` reads; also that of a node.

        With a path it is written piece by piece, whatever its size, and the text returned is empty; else `max_nodes`
        (None: any number) is the limit. Raises ArgumentError beyond it, and for a trace whose beginning was not kept.
        """
        from ulam.tracing.export.trace_json import to_json

        return to_json(cast("Node | Trace", self), path, max_nodes=max_nodes)

    def to_chrome_trace(self, path: FilePath | None = None, *, max_calls: int | None = 500_000) -> str:
        """Calls, and the target, for chrome://tracing, Perfetto or speedscope.

        With a path it is written piece by piece, and the text returned is empty; else `max_calls` is the limit. Raises
        ArgumentError beyond it.
        """
        from ulam.tracing.export.chrome import to_chrome_trace

        return to_chrome_trace(cast("Node | Trace", self), path, max_calls=max_calls)

    def to_networkx(self, *, levels: int | None = None, max_nodes: int | None = None) -> MultiDiGraph[str]:
        """A `networkx.MultiDiGraph`, edges from what uses to what is used. Raises ArgumentError without networkx."""
        from ulam.tracing.export.networkx_graph import to_networkx

        return to_networkx(cast("Node | Trace", self), levels=levels, max_nodes=max_nodes)

    def to_stan(self, path: FilePath | None = None, *, name: str | None = None, max_nodes: int | None = 10_000) -> str:
        """What the call did, as a program without branches: see `stan`. Raises ArgumentError."""
        from ulam.tracing.export.stan import to_stan

        return to_stan(cast("Node | Trace", self), path, name=name, max_nodes=max_nodes)


@_of(Node)
class NodeMethods(Exports):
    """Methods of nodes."""

    __slots__ = ()

    def __str__(self) -> str:
        from ulam.tracing.listing import line_of

        return line_of(cast("Node", self), short=True)

    @property
    def whole_value(self) -> Any:
        """Its value, where that is a tuple or complex, too: a tuple of Python, a complex number, an array of them.

        Of an array of tuples a tuple has, field by field, the arrays. MISSING as for `value`, and for complex
        containers that are too large to keep.
        """
        from ulam.tracing.tuple_text import whole_value

        return whole_value(cast("Node", self))

    @property
    def adjoint(self) -> Any:
        """The derivative of what `trace.adjoint` was asked for with respect to its value: a float, or an array.

        0.0 if the one does not depend on the other; None for what has no derivative: ints, jumps. Raises ArgumentError
        before `trace.adjoint` was called.
        """
        from ulam.tracing.gradients.adjoint import adjoint_of

        return adjoint_of(cast("Node", self))


@_of(ItemNode)
class ItemMethods:
    """Methods of ops."""

    __slots__ = ()

    def update(self, changes: Mapping[Node, Any] | None = None, /, **options: Any) -> Update:
        """Of the tracked call: `Trace.update`."""
        node = cast("ItemNode", self)
        if not node.is_root:
            raise ArgumentError("updates are made of a trace: use node.trace.update({node: value})")
        return node.trace.update(changes, **options)


@_of(Trace)
class TraceMethods(Exports):
    """Methods of traces."""

    __slots__ = ()

    def find(
        self, *, nonfinite: bool = False, function: str | Collection[str] | None = None,
        span: Span | int | Sequence[int] | None = None, between: Sequence[Any] | None = None,
    ) -> Iterator[Node]:  # fmt: skip
        """The ops that satisfy all that is given, one by one, in the order of the tape.

        `nonfinite`: the value is NaN or infinite, or has an element that is. `function`: names of what is called (of
        operators and special forms, too), also with `*` and `?`. `span`: what stands in a line, in lines from one to
        another, or overlaps a `Span`. `between`: scalars from one number up to another, or what is on the tape from one
        node up to another. Raises ArgumentError.
        """
        from ulam.tracing.find import find

        return find(cast("Trace", self), nonfinite, function, span, between)

    def adjoint(self, seed: Any = 1.0, node: Node | None = None) -> Any:
        """The derivative of the result, or of another node's value, with respect to all values of the run.

        Afterwards each node has its `adjoint`. Returns the gradient: of a log density, a vector in the order of the
        unconstrained parameters; of a function, a dictionary by name of its parameters, with None for ints. `seed`:
        what the adjoint of the value itself is, for a container an array of its shape. Raises ArgumentError for what
        was not kept whole (`TraceContext(containers="copy")` keeps large containers), and NoDerivative for functions
        that the compiler cannot differentiate.
        """
        from ulam.tracing.gradients.adjoint import find_adjoints

        return find_adjoints(cast("Trace", self), seed, node)

    def check_gradient(self, rtol: float = 1e-12, *, differences: bool = True) -> GradientCheck:
        """Compares the gradient on the tape with the compiled one and with central differences.

        True if all agree; else the result, printed, names the first node whose pullback is not its derivative. Of a log
        density the compiled gradients are those at level 0 and at the model's own level. A trace with digests of large
        containers is recorded once more, with copies.
        """
        from ulam.tracing.gradients.gradient_check import check_gradient

        return check_gradient(cast("Trace", self), rtol, differences)

    def update(
        self,
        changes: Mapping[Node, Any] | None = None,
        /,
        *,
        rng: Source | Literal["replay"] = "replay",
        in_place: bool = False,
        **arguments: Any,
    ) -> Update:
        """Changes values, and works out anew only what depends on them: `trace.update({node: 2.0}, beta=0.3)`.

        `changes`: values by node; `arguments`: of the tracked function, by name. An argument of the function is changed
        as if the function had been called so; an op, an argument of a block or of a call further down gets its value
        instead of what it would have. The result is a new version of the trace, equal to what a run would record with
        these values and the same draws. Calls where a condition changes run again: with the draws that they had, and,
        when these are used up, with those that the run would have taken next. `rng`: a source of others instead, for
        what is drawn again. `in_place`: this trace becomes the new version; `undo` of the result takes that back.

        Raises ArgumentError for what has no value of its own, values of another type or size, and traces that are not
        whole.
        """
        from ulam.tracing.update.update import update

        return update(cast("Trace", self), changes, rng, in_place, arguments)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace to a file; `load` reads it."""
        from ulam.tracing.saved import save

        save(cast("Trace", self), path)
