"""A trace for Graphviz: a cluster for each call, edges from what uses to what is used.

    digraph "h" { ... "@7" -> "@4" [label="1"]; ... }

Data edges have the number of the operand; jumps are dashed, calls dotted. Arrows are drawn at the user's end, as data
flow, and time runs from top to bottom. Format: "The DOT Language", graphviz.org.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ulam.tracing.export.graph import (
    CALL,
    JUMP,
    MAX_NODES,
    Cluster,
    Gap,
    Link,
    Picture,
    is_bad,
    source_line,
    written,
)
from ulam.tracing.listing import line_of
from ulam.tracing.nodes import ArgumentNode, ControlFlowNode, Node

if TYPE_CHECKING:
    from ulam.tracing.trace import Trace

HEAD = """\
  graph [rankdir=BT, fontname="monospace", fontsize=11, nodesep=0.2, ranksep=0.3];
  node [shape=box, style="filled,rounded", fontname="monospace", fontsize=11, height=0.3, margin="0.08,0.04",
        color="#5b6675", fillcolor="#ffffff", fontcolor="#1d2530"];
  edge [dir=back, arrowsize=0.6, color="#5b6675", fontname="monospace", fontsize=9, fontcolor="#5b6675"];"""

_LINKS = {JUMP: 'style=dashed, color="#2f6fb5"', CALL: 'style=dotted, color="#7a4fb0"'}
_BAD = 'color="#c62828", fontcolor="#c62828", fillcolor="#fdecea"'


def to_dot(
    what: Node | Trace,
    path: str | os.PathLike[str] | None = None,
    *,
    levels: int | None = None,
    max_nodes: int | None = MAX_NODES,
) -> str:
    """The text for `dot`; written to `path` if that is given.

    `levels`: of calls, as in `print_levels`. Of traces with more than `max_nodes` nodes (None: any number) the middle
    is left out. Nodes have file and line as `URL` and in their `tooltip`.
    """
    picture = Picture(what, levels, max_nodes)
    return written("\n".join(_lines(picture)) + "\n", path)


def _lines(picture: Picture) -> Iterator[str]:
    node = picture.node
    yield f"digraph {_quoted(getattr(node, 'function', str(node)))} {{"
    yield HEAD
    if picture.top is None:
        yield f"  {_node(picture, 'root', node)}"
    else:
        yield from _clusters(picture, picture.top)
        for link in picture.links():
            yield f"  {_link(link)}"
        for cluster in picture.clusters:
            for later, earlier in _in_order(cluster):
                yield f"  {_quoted(later)} -> {_quoted(earlier)} [style=invis];"
    yield "}"


def _in_order(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Pairs that no edge need hold in the order of the tape: the head of a call and what follows, and a gap."""
    names = [m.name if isinstance(m, Gap) else cluster.path(m.at) for m in cluster.members]
    head = 1 + len(cluster.call.item.operands)
    if head < len(names):
        yield from ((names[head], name) for name in names[:head])
    for n, member in enumerate(cluster.members):
        if isinstance(member, Gap):
            yield from zip(names[n : n + 2], names[n - 1 : n + 1], strict=False)


def _clusters(picture: Picture, top: Cluster) -> Iterator[str]:
    """Clusters within clusters, without recursion: calls may be nested deeply."""
    stack: list[tuple[Cluster, Iterator[Node | Gap]]] = []

    def opened(cluster: Cluster) -> str:
        stack.append((cluster, iter(cluster.members)))
        span = picture.spans.of_function(cluster.call.trace, cluster.call.item.child)
        url = "" if span is None else f" URL={_quoted(f'{span.file}#L{span.line}')};"
        return (
            f"{'  ' * len(stack)}subgraph {_quoted('cluster_' + cluster.name)} {{ "
            f"label={_quoted(line_of(cluster.call, short=True))}; labeljust=l; labelloc=b; style=rounded; "
            f'color="#7a4fb0"; fontcolor="#7a4fb0";{url}'
        )

    yield opened(top)
    while stack:
        cluster, members = stack[-1]
        indent = "  " * (len(stack) + 1)
        member = next(members, None)
        if member is None:
            yield f"{'  ' * len(stack)}}}"
            stack.pop()
        elif isinstance(member, Gap):
            yield f'{indent}{_quoted(member.name)} [label={_quoted(member.text)}, shape=plaintext, style=""];'
        else:
            inside = cluster.inside.get(member.at)
            yield f"{indent}{_node(picture, cluster.path(member.at), member, inside)}"
            if inside is not None and inside.members:
                yield opened(inside)


def _node(picture: Picture, name: str, node: Node, inside: Cluster | None = None) -> str:
    label = line_of(node, short=True)
    if inside is not None and inside.hidden:
        label += f"\n… {inside.hidden:,} nodes inside"
    told = line_of(node)
    parts = [f"label={_quoted(label)}"]
    span = picture.spans.of(node)
    if span is not None:
        told += f"\n{span.file}:{span.line}: {source_line(node.trace, span)}"
        parts.append(f"URL={_quoted(f'{span.file}#L{span.line}')}")
    parts.append(f"tooltip={_quoted(told)}")
    if is_bad(node):
        parts.append(_BAD)
    elif isinstance(node, ControlFlowNode):
        parts.append('fillcolor="#eef4fb"')
    elif isinstance(node, ArgumentNode):
        parts.append('fillcolor="#f4f5f7"')
    return f"{_quoted(name)} [{', '.join(parts)}];"


def _link(link: Link) -> str:
    parts = [] if link.number is None else [f'label="{link.number}"']
    if link.kind in _LINKS:
        parts.append(_LINKS[link.kind])
    return f"{_quoted(link.user)} -> {_quoted(link.used)} [{', '.join(parts)}];"


def _quoted(text: str) -> str:
    """A string of the DOT language."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inner}"'
