"""A trace as a graph of networkx, which is not needed for anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ulam.runtime.errors import ArgumentError
from ulam.tracing.export.graph import Gap, Picture
from ulam.tracing.listing import line_of
from ulam.tracing.nodes import ItemNode, Node

if TYPE_CHECKING:
    from networkx import MultiDiGraph

    from ulam.tracing.trace import Trace


def to_networkx(what: Node | Trace, *, levels: int | None = None, max_nodes: int | None = None) -> MultiDiGraph[str]:
    """A `networkx.MultiDiGraph`: nodes are named by the positions that lead to them, `@4/@2`.

    Nodes have `node` (that of the trace), `kind` (its class), `function` (of calls), `value`, `text`, `call` (the name
    of the call around, empty at the top); edges lead from what uses to what is used and have `kind` (data, jump or
    call) and `number` (of the operand). Of more than `max_nodes` nodes the middle is left out. Raises ArgumentError
    without networkx.
    """
    try:
        import networkx
    except ImportError:
        raise ArgumentError("to_networkx needs the package networkx: pip install networkx") from None
    picture = Picture(what, levels, max_nodes)
    graph: MultiDiGraph[str] = networkx.MultiDiGraph()
    if picture.top is None:
        graph.add_node("root", **_attributes(picture.node, ""))
        return graph
    for cluster in picture.clusters:
        for member in cluster.members:
            if isinstance(member, Gap):
                graph.add_node(member.name, kind="Gap", text=member.text, call=cluster.name)
            else:
                graph.add_node(cluster.path(member.at), **_attributes(member, cluster.name))
    for link in picture.links():
        graph.add_edge(link.user, link.used, kind=link.kind, number=link.number)
    return graph


def _attributes(node: Node, call: str) -> dict[str, Any]:
    function = {"function": node.function} if isinstance(node, ItemNode) else {}
    return {
        "node": node, "kind": type(node).__name__, "value": node.value, "text": line_of(node), "call": call, **function
    }  # fmt: skip
