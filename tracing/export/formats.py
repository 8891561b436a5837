"""What traces and their nodes can be written as; each form has a module beside this one, read when it is asked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from networkx import MultiDiGraph

FilePath = str | os.PathLike[str]

MAX_NODES = 2000
"""Nodes that a picture shows unless one asks for more."""


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

        return to_dot(self, path, levels=levels, max_nodes=max_nodes)

    def to_svg(
        self, path: FilePath | None = None, *, levels: int | None = None, max_nodes: int | None = MAX_NODES
    ) -> str:
        """A picture for browsers, complete by itself; arguments as for `to_dot`."""
        from ulam.tracing.export.svg import to_svg

        return to_svg(self, path, levels=levels, max_nodes=max_nodes)

    def to_json(self, path: FilePath | None = None, *, max_nodes: int | None = 1_000_000) -> str:
        """The whole trace as JSON, which `from_json` reads; also that of a node.

        With a path it is written piece by piece, whatever its size, and the text returned is empty; else `max_nodes`
        (None: any number) is the limit. Raises ArgumentError beyond it, and for a trace whose beginning was not kept.
        """
        from ulam.tracing.export.json import to_json

        return to_json(self, path, max_nodes=max_nodes)

    def to_chrome_trace(self, path: FilePath | None = None, *, max_calls: int | None = 500_000) -> str:
        """Calls, and the target, for chrome://tracing, Perfetto or speedscope.

        With a path it is written piece by piece, and the text returned is empty; else `max_calls` is the limit. Raises
        ArgumentError beyond it.
        """
        from ulam.tracing.export.chrome import to_chrome_trace

        return to_chrome_trace(self, path, max_calls=max_calls)

    def to_networkx(self, *, levels: int | None = None, max_nodes: int | None = None) -> MultiDiGraph[str]:
        """A `networkx.MultiDiGraph`, edges from what uses to what is used. Raises ArgumentError without networkx."""
        from ulam.tracing.export.networkx import to_networkx

        return to_networkx(self, levels=levels, max_nodes=max_nodes)

    def to_stan(self, path: FilePath | None = None, *, name: str | None = None, max_nodes: int | None = 10_000) -> str:
        """What the call did, as a program without branches: see `stan`. Raises ArgumentError."""
        from ulam.tracing.export.stan import to_stan

        return to_stan(self, path, name=name, max_nodes=max_nodes)
