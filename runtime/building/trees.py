"""The tree of a built program, as the parser would have made it: no node stands in two places, and none too deep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

from ulam.frontend import syntax
from ulam.frontend.diagnostics import DiagnosticCollector, DiagnosticError
from ulam.frontend.parse.core import MAX_BRANCHES, MAX_NESTING
from ulam.frontend.parse.expressions import INFIX_POWERS, POWER_OPERATORS
from ulam.frontend.source import Source

MOST_NODES = 1_000_000
"""Of a program; `x = x * x` in a loop of Python doubles them each time."""

_NESTED = syntax.Expression, syntax.Statement

Node = TypeVar("Node", bound=syntax.SyntaxNode)


def copies(source: Source, nodes: Iterable[Node]) -> list[Node]:
    """Trees whose nodes are their own: the type checker fills each of them.

    Values of Python may be used many times, and so may their nodes. Raises DiagnosticError where the parser would for
    a text: expressions or statements are nested too deeply, or there are too many branches in a row.
    """
    copier = _Copier(source)
    return [copier.copy(node) for node in nodes]


class _Copier:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.count = 0

    def copy(self, root: Node) -> Node:
        made = _blank(root)
        pending: list[tuple[syntax.SyntaxNode, syntax.SyntaxNode, int, int]] = [(root, made, 0, 0)]

        def part(node: Any, name: str, value: Any, depth: int, branches: int) -> Any:
            if isinstance(value, list):
                return [part(node, name, each, depth, branches) for each in value]  # pyright: ignore
            if not isinstance(value, syntax.SyntaxNode) or isinstance(value, syntax.FunctionDefinition):
                return value
            copy = _blank(value)
            branches = branches + 1 if name == "otherwise" and type(value) is type(node) else 0
            deeper = isinstance(value, _NESTED) and not branches and not _continues_row(node, name, value)
            pending.append((value, copy, depth + deeper, branches))
            return copy

        while pending:
            node, copy, depth, branches = pending.pop()
            self._check(node, depth, branches)
            for name in _fields(type(node)):
                object.__setattr__(copy, name, part(node, name, getattr(node, name), depth, branches))
        return made

    def _check(self, node: syntax.SyntaxNode, depth: int, branches: int) -> None:
        self.count += 1
        if depth > MAX_NESTING:
            self._fail(
                node, f"expressions or statements are nested more than {MAX_NESTING} deep",
                "give names to parts of the expression, or move statements to a function",
            )  # fmt: skip
        if branches > MAX_BRANCHES:
            self._fail(node, f"more than {MAX_BRANCHES} branches in a row", "split the branches into groups, by ranges")
        if self.count > MOST_NODES:
            self._fail(
                node, f"the program has more than {MOST_NODES:,} expressions",
                "a value that is used twice is written twice: give it a variable, p.real(name, initial=value)",
            )  # fmt: skip

    def _fail(self, node: syntax.SyntaxNode, message: str, help: str) -> None:
        collector = DiagnosticCollector(self.source)
        collector.error(node.span, message, "nesting", help)
        raise DiagnosticError(collector.diagnostics)


def _continues_row(node: syntax.SyntaxNode, name: str, value: syntax.SyntaxNode) -> bool:
    """Whether a part stands beside its whole, not inside: operators in a row, `x[i][j]`, `t.1.2`."""
    if isinstance(node, syntax.Indexed | syntax.TupleProjection):
        return name == "base"
    if not isinstance(node, syntax.Binary) or not isinstance(value, syntax.Binary):
        return False
    if name == "right":
        return node.operator in POWER_OPERATORS and value.operator in POWER_OPERATORS
    return INFIX_POWERS[value.operator][0] >= INFIX_POWERS[node.operator][1] - 1


def _blank(node: Node) -> Node:
    return object.__new__(type(node))


@cache
def _fields(kind: type[syntax.SyntaxNode]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))  # pyright: ignore[reportArgumentType]
