"""What values of a trace are called in text: `y[3]`, `tau = exp(-800.0) = 0.0`, by the program's own names."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ulam.frontend import syntax
from ulam.tracing.explain.birth import (
    RESHAPES,
    Element,
    Followed,
    element_of,
    is_nan,
    reshaped,
    sources,
)
from ulam.tracing.explain.parts import QuotedStatement, Step, short_text
from ulam.tracing.explain.source import ProgramText, Written
from ulam.tracing.instrument.graph import Place, ValueType
from ulam.tracing.node_kinds import ConstrainNode
from ulam.tracing.nodes import ArgumentNode, Const, ItemNode, NestedCallNode, Node, Ref
from ulam.tracing.tape.values import value_text

OPERATORS = frozenset((
    "+", "-", "*", "/", "%", ".*", "./", "%/%", "\\", "^", ".^", "==", "!=", "<", "<=", ">", ">=",
))  # fmt: skip
REAL = ValueType("real")


class Names:
    """Names of nodes of the traces of one program. `parameters`: the names of the model's parameters."""

    def __init__(self, text: ProgramText, parameters: Collection[str] = ()) -> None:
        self.text = text
        self.parameters = frozenset(parameters)

    # ------------------------------------------------------------ names

    def name(
        self, operand: Ref | Const | Node, element: Element = None, written: syntax.Expression | None = None
    ) -> str:  # fmt: skip
        """The name of a value, or of an element of it.

        Without a name of its own it is called as it is `written`, or by its value.
        """
        node = operand.node if isinstance(operand, Ref) else operand
        if isinstance(node, Const):
            return self._written(written, element) or str(node)[1:-1]
        found = self._own_name(node, element)
        if found:
            return found
        expression = self.expression(node)
        return self._written(written if written is not None else expression, element) or f"the value of '{node}'"

    def _own_name(self, node: Node, element: Element) -> str:
        """The name of a variable, or of elements of one; empty if the node is none of these."""
        if isinstance(node, ArgumentNode):
            return indexed(node.name, element) if node.name else ""
        if not isinstance(node, ItemNode):
            return ""
        if isinstance(node, ConstrainNode):
            return indexed(node.parameter, element)
        if assigned := self.assigned(node):
            return indexed(assigned, element)
        if node.function == "index" and (element is not None or not node.type.rank):
            container, inner = sources(Followed(node, element))[0]
            if isinstance(container, Ref):
                return self._own_name(container.node, inner)
        if node.function == "index" and element is None and set(node.item.symbol.split(",")) == {"single"}:
            container, *indices = node.operands
            if isinstance(container, Ref):
                return self._own_name(container.node, tuple(int(i.value) - 1 for i in indices))
        if node.function in RESHAPES and element is not None and isinstance(node.operands[0], Ref):
            inner = reshaped(np.shape(node.operands[0].value), element[0])
            return self._own_name(node.operands[0].node, inner)
        return ""

    def assigned(self, node: ItemNode) -> str:
        """The variable that a node's value is assigned to directly; empty if there is none."""
        if node.function in ("index_assign", "declare"):
            found = self.text.statement(node.item.place)
            if found is not None and isinstance(found.node, syntax.Assignment):
                return self._base_name(found.node.target)
            return found.node.name if found is not None and isinstance(found.node, syntax.Declaration) else ""
        target = self.text.assigned_target(self.expression(node))
        return "" if target is None else target if isinstance(target, str) else self._target_text(target, node)

    def _target_text(self, target: syntax.Expression, node: ItemNode) -> str:
        """The left side of an assignment, with the values of loop variables as indices."""
        if not isinstance(target, syntax.Indexed) or not isinstance(target.base, syntax.Variable):
            return self.text.text(target.span)
        texts: list[str] = []
        for index in target.indices:
            value = index.lower if index.kind is not syntax.IndexKind.BETWEEN else None
            count = loop_counter(node, value.name) if isinstance(value, syntax.Variable) else None
            texts.append(self.text.text(index.span) if count is None else str(count))
        return f"{target.base.name}[{', '.join(texts)}]"

    @staticmethod
    def _base_name(target: syntax.Expression) -> str:
        while isinstance(target, syntax.Indexed | syntax.TupleProjection):
            target = target.base
        return target.name if isinstance(target, syntax.Variable) else ""

    def expression(self, node: Node) -> syntax.Expression | None:
        """The expression that a node has computed."""
        if not isinstance(node, ItemNode) or node.is_root:
            return None
        item = node.item
        same = [
            other
            for block in node.frame.graph.blocks
            for other in block.items
            if other.place == item.place and other.name == item.name
        ]
        number = next((n for n, other in enumerate(same) if other is item), 0)
        return self.text.expression(item.place, item.name, number)

    def _written(self, expression: syntax.Expression | None, element: Element) -> str:
        if expression is None:
            return ""
        text = self.text.text(expression.span)
        if element is None:
            return text
        if isinstance(expression, syntax.Variable | syntax.Call | syntax.Parenthesized | syntax.TupleProjection):
            return indexed(text, element)
        return indexed(f"({text})", element)

    # ------------------------------------------------------------ steps

    def step(self, followed: Followed) -> Step:
        """A node as a line: what was computed, with the values that went in, and what came out."""
        node, element = followed.node, followed.element
        result = number_text(followed.value, node.type)
        if isinstance(node, ArgumentNode):
            text = f"{self.name(node, element)} = {result}"
            return Step(f"{text}{self._kind(node)}", text, followed.value, None)
        assert isinstance(node, ItemNode)
        at = self.place(node)
        if isinstance(node, ConstrainNode):
            text = f"{self.name(node, element)} = {result}"
            free = node.operands[0].value
            scale = f" (unconstrained {number_text(free, REAL)})" if _differs(free, followed.value) else ""
            return Step(f"{text}, a parameter{scale}", text, followed.value, at)
        if node.function == "index_assign":
            text = f"{self.name(node, element)} = {result}"
            return Step(text, text, followed.value, at)
        if node.function == "declare":
            text = f"{self.name(node, element)} = {result}: never assigned"
            return Step(text, text, followed.value, at)
        expression = f"{self.applied(node, element)} = {result}"
        if missing := self.unassigned(node):
            expression += f": {missing} was never assigned"
        variable = self.assigned(node)
        text = f"{indexed(variable, element)} = {expression}" if variable else expression
        return Step(text, expression, followed.value, at)

    def _kind(self, node: ArgumentNode) -> str:
        """What a variable of the whole program is."""
        if node.frame.parent is None or node.frame.parent.parent is not None or not node.is_parameter:
            return ""
        return ", a parameter" if node.name in self.parameters else ", data"

    def applied(self, node: ItemNode, element: Element) -> str:
        """A call with the values of its operands: `exp(-800.0)`, `0.0 / 0.0`."""
        name = node.function
        if name == "index":
            return self._own_name(node, element) or self._written(self.expression(node), element)
        followed = {n: inner for n, (_, inner) in enumerate(sources(Followed(node, element)))}
        entered = isinstance(node, NestedCallNode) and node.body is not None
        texts = [
            operand_text(operand, element_of(operand.value, None if entered else followed.get(n)))
            for n, operand in enumerate(node.operands)
        ]
        if name in OPERATORS and len(texts) == 2:
            return f"{texts[0]} {name} {_bracketed(texts[1])}"
        if name in ("-", "+", "!") and len(texts) == 1:
            return f"{name}{_bracketed(texts[0])}"
        if name == "'" and len(texts) == 1:
            return f"{texts[0]}'"
        return f"{name}({', '.join(texts)})"

    def unassigned(self, node: ItemNode) -> str:
        """The variable without a value that a node uses; empty if there is none."""
        for n, operand in enumerate(node.operands):
            if not isinstance(operand, Const) or not is_nan(operand.value):
                continue
            used = self._operand_expression(node, n)
            return f"'{self.text.text(used.span)}'" if used is not None else "a variable"
        return ""

    def _operand_expression(self, node: ItemNode, number: int) -> syntax.Expression | None:
        expression = self.expression(node)
        if isinstance(expression, syntax.Call) and number < len(expression.arguments):
            return expression.arguments[number]
        if isinstance(expression, syntax.Binary):
            return expression.left if number == 0 else expression.right
        if isinstance(expression, syntax.Unary):
            return expression.operand
        written = self.text.statement(node.item.place)
        if expression is None and written is not None and isinstance(written.node, syntax.TargetIncrement):
            return written.node.value
        return None

    def place(self, node: Node) -> QuotedStatement | None:
        """The expression, or the statement, that a node is from, with carets."""
        expression = self.expression(node)
        if expression is not None:
            return self.text.quoted_span(expression.span)
        if not isinstance(node, ItemNode):
            return None
        return self.statement_of(node.item.place)

    def statement_of(self, place: Place | None) -> QuotedStatement | None:
        """The statement at a place, or around it; the bare place if it is in no statement of the program."""
        if place is None:
            return None
        written = self.written_at(place)
        if written is None:
            return QuotedStatement("", place.file, place.line, place.column)
        return self.text.quoted(written)

    def written_at(self, place: Place | None) -> Written | None:
        """The statement that begins at a place, else the innermost around it."""
        if place is None:
            return None
        return self.text.statement(place) or self.text.statement_around(place.file, place.line, place.column)


def loop_counter(node: Node, variable: str) -> int | None:
    """The value of a loop variable, seen from a node: of the loop that ran last, if several have the name."""
    frame, where = node.frame, node.where
    if where is None:
        return None
    found = [
        (frame.definition(argument.index, where).step, argument.index)
        for block in frame.graph.blocks
        if not block.record
        for argument in block.arguments
        if argument.name == variable
    ]
    step, index = max(found, default=(-1, 0))
    value = frame.value(index, where) if step >= 0 else None
    return value if isinstance(value, int) else None


def indexed(name: str, element: Element) -> str:
    """`x[2, 3]` for element (1, 2); indices in the name itself are joined: `x[1]` becomes `x[1, 2, 3]`."""
    if not element:
        return name
    inside = ", ".join(str(i + 1) for i in element)
    if name.endswith("]") and name[: name.find("[")].isidentifier():
        return f"{name[:-1]}, {inside}]"
    return f"{name}[{inside}]"


def number_text(value: Any, type_: ValueType) -> str:
    """A value, or an element of a container, as traces write it, reals with fewer digits."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return short_text(value)
    scalar = not isinstance(value, np.ndarray)
    return value_text(value, ValueType(type_.base if not type_.rank else "real") if scalar else type_)


def operand_text(operand: Ref | Const, value: Any) -> str:
    """An operand as a value."""
    type_ = operand.node.type if isinstance(operand, Ref) else operand.type
    return number_text(value, type_)


def _differs(free: Any, value: Any) -> bool:
    """Whether the unconstrained form of a scalar is another number."""
    return isinstance(free, float) and isinstance(value, float) and free != value


def _bracketed(text: str) -> str:
    return f"({text})" if text.startswith("-") else text
