"""Why a statement's contribution is not finite, or was refused: one `Cause` for each."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ulam.frontend import syntax
from ulam.library.functions import named
from ulam.runtime.errors import FatalError, ProgramError
from ulam.tracing.explain.birth import (
    Element,
    Followed,
    births,
    element_of,
    first_wrong,
    is_finite,
    slice_of,
    sources,
)
from ulam.tracing.explain.elements import ElementDensity, density, increments, reason, stan_type
from ulam.tracing.explain.names import Names, operand_text
from ulam.tracing.explain.parts import (
    WORDS,
    Cause,
    Elements,
    QuotedStatement,
    ShownElement,
    Step,
    kind_of,
    short_text,
)
from ulam.tracing.explain.terms import calls_of, kind_of_term, loop_values
from ulam.tracing.instrument.graph import ValueType
from ulam.tracing.node_kinds import ConstrainNode, TargetTerm, TildeNode
from ulam.tracing.nodes import ArgumentNode, Const, ItemNode, JumpNode, Node, Ref
from ulam.tracing.tape.values import MISSING, Digest
from ulam.tracing.trace import TraceError

SHOWN_ELEMENTS = 5
"""Of the guilty ones, and of the others."""

MOST_ELEMENTS = 10_000
"""Whose increments an explanation has."""

SHOWN_STEPS = 5
SHOWN_BIRTHS = 3

_SUBJECT = re.compile(r"(?:\w+: )?([A-Za-z]\w*)(?:\[([\d, ]+)\])?(?: is | has |\[)")
"""What the message of a check begins with: the argument, and perhaps which of its elements."""


_EXTREMES = {"min": np.argmin, "max": np.argmax}
"""What a truncation compares of a container."""


class Causes:
    """Makes causes from nodes of traces of one program."""

    def __init__(self, names: Names) -> None:
        self.names = names

    # ------------------------------------------------------------ terms

    def of_term(self, node: TargetTerm) -> Cause:
        """Of an addition to the target that is not finite."""
        kind = kind_of(float(node.value))
        cause = self._begun(kind, f"this statement adds {WORDS[kind]} to the log density", node)
        if kind_of_term(node.item, self.names) == "truncation" and (outside := self._truncated(node)):
            cause.message = f"the truncation of this statement adds {WORDS[kind]} to the log density"
            cause.notes.append(outside)
            return cause
        found = births(node)
        own = len(found) == 1 and found[0].node == node
        if not own:
            cause.births = [self.names.step(f) for f in found[:SHOWN_BIRTHS]]
            self._of_density(cause, found[0].node, at_birth=True)
            cause.slice = self._made_of(found[0], cause.elements)
        elif (missing := self._never_assigned(node)) is not None:
            cause.notes.append(missing)
        if isinstance(node, TildeNode) and cause.elements is None:
            self._of_density(cause, node, at_birth=own)
        return cause

    def of_overflow(self, node: TargetTerm) -> Cause:
        """Of a sum that is too large for a number, though its terms are finite."""
        return self._begun(
            kind_of(float(node.target_after)), "the sum of the log density overflows after this statement", node
        )

    def _begun(self, kind: str, message: str, node: ItemNode) -> Cause:
        return Cause(
            kind, message, self.names.statement_of(node.item.place), loop_values(node, self.names),
            calls_of(node, self.names),
        )  # fmt: skip

    def _made_of(self, birth: Followed, elements: Elements | None = None) -> list[Step]:
        """What went into the node where a value stopped being finite; of a density, into its guilty element."""
        found: list[Step] = []
        node = birth.node
        ways = sources(birth) if not isinstance(node, ConstrainNode) else []
        if elements is not None and isinstance(node, ItemNode):
            known = density(distribution_of(node), tuple(map(_type_of, node.operands)))
            guilty = next((n for n, value in enumerate(elements.increments) if not math.isfinite(value)), None)
            if known is not None and guilty is not None:
                ways = [(o, (guilty,) if part else None) for (o, _), part in zip(ways, known.by_element, strict=True)]
        for operand, element in ways:
            for followed in slice_of(operand, element, SHOWN_STEPS):
                step = self.names.step(followed)
                if len(found) < SHOWN_STEPS and not _is_plain_data(followed) and step not in found:
                    found.append(step)
        return found

    def _never_assigned(self, node: ItemNode) -> str | None:
        name = self.names.unassigned(node)
        return f"{name} was never assigned a value" if name else None

    def _truncated(self, node: TargetTerm) -> str:
        """Which bound of a truncation the variate is beyond, with both values; empty if it is within."""
        jump = next(
            (
                other
                for position in range(node.at - 1, 0, -1)
                if isinstance(other := node.trace.node(node.frame, position), JumpNode)
            ),
            None,
        )
        condition = None if jump is None else jump.condition
        if not isinstance(condition, Ref) or not isinstance(condition.node, ItemNode) or condition.value != 1:
            return ""
        compared, bound = condition.node.operands
        side = {"<": "below the lower", ">": "above the upper"}.get(condition.node.function)
        written = self.names.written_at(node.item.place)
        if side is None or written is None or not isinstance(written.node, syntax.Tilde):
            return ""
        element = None
        if isinstance(compared, Ref) and isinstance(compared.node, ItemNode):
            extreme = _EXTREMES.get(compared.node.function)
            if extreme is not None and isinstance(compared.node.operands[0].value, np.ndarray):
                compared = compared.node.operands[0]
                element = tuple(int(i) for i in np.unravel_index(extreme(compared.value), compared.value.shape))
        name = self.names.name(compared, element, written.node.variate)
        value = operand_text(compared, element_of(compared.value, element))
        return f"{name} = {value} is {side} bound of the truncation, {operand_text(bound, bound.value)}"

    # ------------------------------------------------------------ `~`

    def _of_density(self, cause: Cause, node: Node, *, at_birth: bool) -> None:
        """Adds the elements of a `~` statement, or of a call of a density of the library.

        `at_birth`: whether nothing that went in was wrong, so that its arguments tell what happened.
        """
        distribution = distribution_of(node)
        if not distribution or not isinstance(node, ItemNode):
            return
        operands = node.operands
        values = [operand.value for operand in operands]
        found = density(distribution, tuple(map(_type_of, operands)))
        if found is None or any(value is MISSING or isinstance(value, Digest) for value in values):
            return
        written = self._arguments_written(node, len(operands))
        if found.vectorised:
            cause.elements = self._elements(operands, found, distribution, values, written, at_birth)
        elif at_birth:
            name = self.names.name(operands[0], None, written[0])
            cause.notes.append(reason(found, distribution, values, 0, name, float(node.value)))
        if at_birth:
            cause.arguments = self._arguments(operands, found, written)

    def _arguments_written(self, node: ItemNode, count: int) -> list[syntax.Expression | None]:
        """The expressions of the operands of a density, the variate first."""
        found: list[syntax.Expression] = []
        if isinstance(node, TildeNode):
            statement = self.names.written_at(node.item.place)
            if statement is not None and isinstance(statement.node, syntax.Tilde):
                found = [statement.node.variate, *statement.node.arguments]
        elif isinstance(expression := self.names.expression(node), syntax.Call):
            found = expression.arguments
        return list(found) if len(found) == count else [None] * count

    def _elements(
        self, operands: Sequence[Ref | Const], found: ElementDensity, distribution: str, values: list[Any],
        written: list[syntax.Expression | None], at_birth: bool,
    ) -> Elements | None:  # fmt: skip
        each = increments(found, values)
        if each is None:
            return None
        most = SHOWN_ELEMENTS if at_birth else 1
        wrong = [n for n, value in enumerate(each) if not math.isfinite(value)]
        right = [n for n, value in enumerate(each) if math.isfinite(value)]
        shown: list[ShownElement] = []
        for n in (*wrong[:most], *right[:SHOWN_ELEMENTS]):
            name = self.names.name(operands[0], (n,), written[0])
            value = values[0][n] if isinstance(values[0], np.ndarray) else values[0]
            why = "" if math.isfinite(each[n]) else reason(found, distribution, values, n, name, each[n])
            shown.append(ShownElement(name, _plain(value), each[n], why))
        return Elements(len(each), len(wrong), shown, each[:MOST_ELEMENTS])

    def _arguments(
        self, operands: Sequence[Ref | Const], found: ElementDensity, written: list[syntax.Expression | None]
    ) -> list[str]:
        """The scalar arguments that are not literals: `alpha = mu - sigma = -1.0`."""
        texts: list[str] = []
        for formal, operand, expression in zip(found.names[1:], operands[1:], written[1:], strict=True):
            if isinstance(operand, Const) or operand.node.type.rank:
                continue
            name = self.names.name(operand, None, expression)
            value = operand_text(operand, operand.value)
            texts.append(f"{name} = {value}" if name == formal else f"{formal} = {name} = {value}")
        return texts

    # ------------------------------------------------------------ checks that failed

    def of_error(self, error: TraceError) -> Cause:
        """Of a run that an exception ended."""
        exception, node = error.exception, error.node
        message = error.message
        statement = None
        if isinstance(exception, ProgramError):
            message = str(exception).partition(" (in '")[0]
            statement = self.at(exception)
        cause = Cause("failed" if isinstance(exception, FatalError) else "rejected", message, statement)
        if not isinstance(node, ItemNode) or node.is_root:
            return cause
        if statement is None:
            cause.statement = self.names.statement_of(node.item.place)
        cause.loop, cause.calls = loop_values(node, self.names), calls_of(node, self.names)
        operand, element, formal = self._argument_named(node, message, exception)
        if operand is None:
            return cause
        cause.arguments = self._named(node, operand, element, formal)
        if isinstance(operand, Ref) and not is_finite(element_of(operand.value, element)):
            found = births(operand.node, element)
            cause.births = [self.names.step(f) for f in found[:SHOWN_BIRTHS]]
            cause.slice = self._made_of(found[0])
        else:
            cause.slice = [self.names.step(f) for f in slice_of(operand, element, SHOWN_STEPS)]
        return cause

    def at(self, exception: ProgramError) -> QuotedStatement | None:
        """The statement that an exception came from."""
        if exception.line <= 0:
            return None
        written = self.names.text.statement_around(exception.file, exception.line, exception.column)
        if written is None:
            return QuotedStatement("", exception.file, exception.line, exception.column)
        return self.names.text.quoted(written)

    def _argument_named(
        self, node: ItemNode, message: str, exception: Exception
    ) -> tuple[Ref | Const | None, Element, str]:
        """The operand that the message of a check is about, the element, and what the message calls it."""
        subject = _SUBJECT.match(message)
        name = subject[1] if subject is not None else ""
        element = tuple(int(i) - 1 for i in subject[2].split(",")) if subject is not None and subject[2] else None
        values = exception.values if isinstance(exception, ProgramError) else ()
        function = message.partition(": ")[0]
        told = named(function).stem if named(function).kind.is_density else function
        own = node.function in (told, function, "check") or not told.isidentifier()
        for formal, operand in zip(self._formals(node) if own else (), node.operands, strict=False):
            if formal == name:
                return operand, element, name
        candidates = [o for o in node.operands if isinstance(o, Ref)]
        for operand in candidates if own else ():
            if values and (at := _position(operand.value, values[0], element)) is not None:
                return operand, at or None, name
        candidates = [o for o in candidates if not _is_data(o)] or candidates
        return (candidates[0] if len(candidates) == 1 else None), None, name if own else ""

    def _formals(self, node: ItemNode) -> Sequence[str]:
        """The names that the called function has for its operands."""
        if isinstance(node, TildeNode):
            found = density(node.distribution, tuple(map(_type_of, node.operands)))
            return () if found is None else found.names
        from ulam.frontend.functions.definitions import resolve

        types = tuple(map(_type_of, node.operands))
        if any(t.base not in ("int", "real", "bool", "vector", "row_vector", "matrix") for t in types):
            return ()
        definition = resolve(node.function, tuple(map(stan_type, types)))
        return () if definition is None else [a.name for a in definition.definition.arguments]

    def _named(self, node: ItemNode, operand: Ref | Const, element: Element, formal: str) -> list[str]:
        """Which expression of the program is the argument, where its name is another one."""
        written: syntax.Expression | None = None
        found = self.names.written_at(node.item.place)
        number = next((n for n, other in enumerate(node.operands) if other == operand), 0)
        if found is not None and isinstance(found.node, syntax.Tilde):
            tilde = found.node
            written = tilde.variate if number == 0 else tilde.arguments[number - 1]
        name = self.names.name(operand, element, written)
        if node.function == "check" or not formal or isinstance(operand, Const):
            return []
        return (
            [f"{formal} of {distribution_of(node) or node.function} is {name}"]
            if formal != name.partition("[")[0]
            else []
        )

    # ------------------------------------------------------------ gradients

    def of_gradient(
        self, gradient: np.ndarray[Any, Any], names: Sequence[str], broken: tuple[Node, int, Any] | None
    ) -> Cause:
        """Of a gradient that is not finite where the value is. `broken`: as `Adjoints` has it."""
        wrong = np.flatnonzero(~np.isfinite(gradient))
        kind = kind_of(float(gradient[wrong[0]]))
        more = f", and not finite for {wrong.size - 1} more" if wrong.size > 1 else ""
        message = f"the gradient is {WORDS[kind]} for unconstrained '{names[int(wrong[0])]}'{more}"
        if broken is None:
            return Cause("gradient", message, None)
        node, number, passed = broken
        if not isinstance(node, ItemNode):
            return Cause("gradient", message, None)
        cause = self._begun("gradient", message, node)
        element = first_wrong(passed)
        operand = node.operands[number]
        own = element if np.shape(node.value) == np.shape(passed) else None
        step = self.names.step(Followed(node, own))
        derivative = float(element_of(passed, element))
        expressions = self._arguments_written(node, len(node.operands))
        name = self.names.name(operand, element, expressions[number])
        text = f"{step.text}; its derivative in {name} makes the adjoint {short_text(derivative)}"
        cause.births = [Step(text, step.expression, derivative, step.at)]
        cause.slice = [self.names.step(f) for f in slice_of(operand, element, SHOWN_STEPS)]
        return cause


def distribution_of(node: Node) -> str:
    """Of a `~` statement, or of a call such as `normal_lpdf(y | mu, sigma)`; empty for other nodes."""
    if isinstance(node, TildeNode):
        return node.distribution
    stem, kind, _ = named(node.function if isinstance(node, ItemNode) else "")
    return stem if kind.is_density else ""


def _is_data(operand: Ref) -> bool:
    return isinstance(operand.node, ArgumentNode) and operand.node.is_data


def _type_of(operand: Ref | Const) -> ValueType:
    return operand.node.type if isinstance(operand, Ref) else operand.type


def _is_plain_data(followed: Followed) -> bool:
    """Whether a node is a container of data: its name and size say nothing about a value."""
    whole = followed.element is None and isinstance(followed.value, np.ndarray)
    return whole and isinstance(followed.node, ArgumentNode)


def _position(value: Any, wanted: float, element: Element) -> Element:
    """Where in a value a number is: () for the scalar itself; None if it is not there."""
    if isinstance(value, np.ndarray):
        if element is not None:
            return element if len(element) <= value.ndim else None
        found = np.argwhere((value == wanted) | (np.isnan(value) & np.isnan(wanted)))
        return tuple(int(i) for i in found[0]) if len(found) else None
    if not isinstance(value, int | float):
        return None
    return () if value == wanted or (math.isnan(value) and math.isnan(wanted)) else None


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
