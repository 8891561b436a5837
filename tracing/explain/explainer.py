"""Explains the log density of a model at a point: which statement makes it infinite or NaN, and why.

    print(model.explain({"mu": 0, "sigma": 1}))
    model.explain(tries=100).tries.failures

The density is traced once, compiled as it was written. From the trace come the terms, the statements to blame, and
for each of these the elements and the node where a value stopped being finite.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.runtime.errors import ArgumentError, CompileError, FatalError, ProgramError, Rejection, UlamError
from ulam.runtime.names import unconstrained_positions
from ulam.runtime.optimizers.failed_evaluations import FailureTally
from ulam.runtime.optimizers.initial_values import Init, InitSource, read_init
from ulam.tracing.contexts import TraceContext
from ulam.tracing.explain.causes import Causes
from ulam.tracing.explain.explanation import Explanation
from ulam.tracing.explain.names import Names
from ulam.tracing.explain.parts import (
    WORDS,
    Cause,
    Parameter,
    QuotedStatement,
    Term,
    Tried,
    Tries,
    kind_of,
)
from ulam.tracing.explain.source import ProgramText
from ulam.tracing.explain.terms import Additions, terms_of
from ulam.tracing.gradients.adjoint import find_adjoints
from ulam.tracing.node_kinds import ConstrainNode, TargetTerm
from ulam.tracing.nodes import ItemNode, NestedCallNode, Node
from ulam.tracing.program_text import SourceText
from ulam.tracing.session import PRINTED

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel

Vector = np.ndarray[Any, np.dtype[np.float64]]

MOST_CAUSES = 3
"""Statements that are explained in full; the table has all."""


def explain(
    model: StanModel, theta: Init = None, *, propto: bool = False, jacobian: bool = True, tries: int = 1,
    seed: int | None = None,
) -> Explanation:  # fmt: skip
    """Why the log density of a model is what it is at a point.

    `theta`: what optimizers take as `init`: an unconstrained point, constrained values of some or all parameters (the
    rest is drawn), a radius for points drawn on the unconstrained scale; None is radius 2. `tries`: how many points
    are drawn; the first that fails is explained, and the failures of all are counted by statement. `propto` shows what
    `~` keeps and what it drops. `seed`: of the points; those that an optimizer with this seed would try.

    Raises ArgumentError or DataError if `theta` does not fit the model.
    """
    if isinstance(tries, bool) or not isinstance(tries, int) or tries < 1:
        raise ArgumentError(f"tries is {tries!r}, but must be at least 1")
    source = read_init(model, theta)
    points = Points(model, source, model.seed if seed is None else seed)
    explainer = Explainer(model, propto=propto, jacobian=jacobian)
    if tries == 1 or source.tries(model) == 1:
        return explainer.explain(points.next())
    return explainer.explain_tries(points, tries)


@dataclass
class Points:
    """The points that an initialization tries, one after the other."""

    model: StanModel
    source: InitSource
    seed: int

    def next(self) -> Vector | Rejection:
        """The next point; the Rejection if values that were given do not fit those drawn."""
        try:
            return self.source.draw(self.model, self.seed)
        except Rejection as rejection:
            return rejection


class Explainer:
    """Explains points of one model. Compiles its traced density once."""

    def __init__(self, model: StanModel, *, propto: bool = False, jacobian: bool = True) -> None:
        self.model = model
        self.propto, self.jacobian = propto, jacobian
        self.unsupported = ""
        """Why the program cannot be traced; empty if it can."""
        self.notes: list[str] = []
        self.names = Names(
            ProgramText(SourceText(*model.source, model.options.include_paths)),
            [variable.name for variable in model.parameter_variables()],
        )
        self.causes = Causes(self.names)
        self._context = TraceContext(containers="copy")

    # ------------------------------------------------------------ one point

    def explain(self, theta: Vector | Rejection) -> Explanation:
        """The explanation of a point."""
        if isinstance(theta, Rejection):
            cause = Cause("rejected", theta.text, self.causes.at(theta))
            return self._explanation("rejected", None, None, causes=[cause])
        printed: list[str] = []
        root = self.track(theta, printed)
        if root is None:
            return self._untraced(theta)
        error = root.trace.error
        value = None if error is not None else float(root.value)
        terms, guilty = terms_of(additions := Additions(root), self.names)
        causes = [self.causes.of_term(node) for node in guilty[:MOST_CAUSES]]
        outcome = "finite" if value is None else kind_of(value)
        gradient: Vector | None = None
        if error is not None:
            causes.insert(0, self.causes.of_error(error))
            outcome = causes[0].kind
        elif not causes and outcome != "finite" and (last := additions.first_not_finite()) is not None:
            causes = [self.causes.of_overflow(last)]
        elif outcome == "finite":
            outcome, gradient = self._gradient(theta, causes, root)
        if self.propto:
            self._add_dropped(theta, terms)
        found = self._explanation(outcome, value, theta, terms, causes, root)
        found.gradient = None if gradient is None else gradient.tolist()
        found.printed = "".join(printed)
        if outcome == "nan" and guilty and not any(math.isnan(float(node.value)) for node in guilty):
            found.notes.append("terms of +infinity and -infinity add up to NaN")
        if len(guilty) > MOST_CAUSES:
            more = len(guilty) - MOST_CAUSES
            found.notes.append(f"{more} more {'statement is' if more == 1 else 'statements are'} not finite")
        return found

    def track(self, theta: Vector, printed: list[str] | None = None) -> NestedCallNode | None:
        """The traced density; None, and `unsupported`, if the program cannot be traced.

        What the program prints is appended to `printed`, and shown nowhere.
        """
        if self.unsupported:
            return None
        lines: list[str] = []
        shown = PRINTED.set(lines.append)
        try:
            root = self._track(theta, self._context, self.propto)
            if root.trace.dropped and self._context.max_copy > self._small.max_copy:
                self._context = self._small
                lines.clear()
                root = self._track(theta, self._context, self.propto)
        except CompileError as error:
            self.unsupported = str(error).splitlines()[0]
            return None
        finally:
            PRINTED.reset(shown)
        if printed is not None:
            printed += lines
        if root.trace.dropped:
            self.notes = [f"the run is too long: {root.trace.dropped} of its nodes were not kept"]
        return root

    _small = TraceContext()
    """Without copies of large containers: for runs that have too many of them."""

    def _track(self, theta: Vector, context: TraceContext, propto: bool) -> NestedCallNode:
        return self.model.track_density(theta, propto=propto, jacobian=self.jacobian, context=context)

    def _gradient(
        self, theta: Vector, causes: list[Cause], root: NestedCallNode | None = None
    ) -> tuple[str, Vector | None]:
        """Whether the gradient is finite, too; with the trace, where it stops being so."""
        if not theta.size:
            return "finite", theta
        try:
            with redirect_stdout(io.StringIO()):  # what the program prints was printed before
                _, gradient = self.model.log_density_gradient(theta, propto=True, jacobian=self.jacobian)
        except ProgramError as error:
            kind = "failed" if isinstance(error, FatalError) else "rejected"
            causes.append(Cause(kind, f"computing the gradient: {error.text}", self.causes.at(error)))
            return kind, None
        if np.isfinite(gradient).all():
            return "finite", gradient
        broken = None if root is None else self._broken(root)
        causes.append(self.causes.of_gradient(gradient, self.model.param_unc_names(), broken))
        return "gradient", gradient

    def _broken(self, root: NestedCallNode) -> tuple[Node, int, Any] | None:
        """The node in the reverse pass where an adjoint stops being finite; None if that cannot be found out."""
        trace = root.trace
        try:
            find_adjoints(trace)
        except (UlamError, ArgumentError) as error:
            self.notes.append(f"where the gradient stops being finite is not known: {str(error).splitlines()[0]}")
            return None
        return None if trace.adjoints is None else trace.adjoints.broken

    def _add_dropped(self, theta: Vector, terms: list[Term]) -> None:
        """Adds to each term what it is with its constants."""
        shown = PRINTED.set(lambda _: None)
        try:
            root = self._track(theta, self._context, False)
        finally:
            PRINTED.reset(shown)
        full = {_key(term): term.increment for term in terms_of(Additions(root), self.names)[0]}
        for term in terms:
            term.full = full.get(_key(term))

    def _untraced(self, theta: Vector) -> Explanation:
        """What can be said without a trace."""
        causes: list[Cause] = []
        value: float | None = None
        gradient: Vector | None = None
        printed = io.StringIO()
        try:
            with redirect_stdout(printed):
                value = self.model.log_density(theta, propto=self.propto, jacobian=self.jacobian)
            outcome = kind_of(value)
            if outcome == "finite":
                outcome, gradient = self._gradient(theta, causes)
            else:
                causes.append(Cause(outcome, f"the log density is {WORDS[outcome]}", None))
        except ProgramError as error:
            outcome = "failed" if isinstance(error, FatalError) else "rejected"
            causes.append(Cause(outcome, str(error).partition(" (in '")[0], self.causes.at(error)))
        found = self._explanation(outcome, value, theta, causes=causes)
        found.gradient = None if gradient is None else gradient.tolist()
        found.printed = printed.getvalue()
        found.notes.append(f"the program cannot be traced, so its statements are not told apart: {self.unsupported}")
        return found

    def _explanation(
        self, outcome: str, value: float | None, theta: Vector | None, terms: list[Term] | None = None,
        causes: list[Cause] | None = None, root: NestedCallNode | None = None,
    ) -> Explanation:  # fmt: skip
        parameters = [] if theta is None else self._parameters(theta, root)
        return Explanation(
            self.model.source[1], outcome, value, self.propto, self.jacobian, parameters, terms or [], causes or [],
            notes=list(self.notes),
        )  # fmt: skip

    def _parameters(self, theta: Vector, root: NestedCallNode | None) -> list[Parameter]:
        """The point, with constrained values where these correspond one by one."""
        found = [Parameter(name, float(value)) for name, value in zip(self.model.param_unc_names(), theta, strict=True)]
        if root is None:
            return found
        transformed: dict[str, Any] = {}
        for node in islice(root.children, MOST_SEARCHED):
            if isinstance(node, ConstrainNode):
                transformed[node.parameter] = node.value
                if len(transformed) == len(self.model.parameter_variables()):
                    break
        places = np.arange(len(found))
        for name, at in unconstrained_positions(self.model.parameter_variables()).items():
            value = transformed.get(name.replace(":", "."))
            if isinstance(value, float | np.ndarray) and np.ndim(value) < 2 and np.size(value) == places[at].size:
                for place, constrained in zip(places[at], np.ravel(value), strict=True):
                    found[place].constrained = float(constrained)
        return found

    # ------------------------------------------------------------ several points

    def explain_tries(self, points: Points, total: int) -> Explanation:
        """The explanation of the first of several points that fails, with counts over all of them."""
        tally = FailureTally()
        statements: dict[tuple[str, int, int], QuotedStatement | None] = {}
        first: tuple[int, Vector | Rejection] | None = None
        last: Vector | Rejection | None = None
        for number in range(1, total + 1):
            last = theta = points.next()
            cause = self.first_cause(theta)
            if cause is None:
                continue
            first = first or (number, theta)
            at = cause.statement
            place = (at.file, at.line, at.column) if at is not None else ("", 0, 0)
            statements[place] = at
            tally.add(_brief(cause), *place)
        assert last is not None
        found = self.explain(last if first is None else first[1])
        failures = [
            Tried(reason.count, statements[reason.file, reason.line, reason.column], reason.ranges_text)
            for reason in tally.reasons
        ]
        found.tries = Tries(total, tally.count, 0 if first is None else first[0], points.source.describe(), failures)
        return found

    def first_cause(self, theta: Vector | Rejection) -> Cause | None:
        """The first cause of a point; None if all is well there."""
        if isinstance(theta, Rejection):
            return Cause("rejected", theta.text, self.causes.at(theta))
        root = self.track(theta)
        if root is None:
            return self._untraced(theta).culprit
        if (error := root.trace.error) is not None:
            return self.causes.of_error(error)
        if not math.isfinite(float(root.value)):
            node = first_not_finite(root)
            if node is None:
                return Cause(kind_of(float(root.value)), "", None)
            return self.causes.of_term(node) if not math.isfinite(float(node.value)) else self.causes.of_overflow(node)
        causes: list[Cause] = []
        self._gradient(theta, causes)  # without the place: to find it costs more than all else
        return causes[0] if causes else None


MOST_SEARCHED = 2000
"""Nodes at the beginning of the density among which the transforms of the parameters are."""


def first_not_finite(root: NestedCallNode) -> TargetTerm | None:
    """The addition that made the target of a run infinite or NaN."""
    return Additions(root).first_not_finite()


def count_statements(model: StanModel, points: Sequence[tuple[Vector, float]], tally: FailureTally) -> None:
    """Counts points where the log density is not finite by the statement of the program after which it is not.

    With constants, without the Jacobian adjustment, as initial points are checked. `points`: with the log density.
    """
    explainer = Explainer(model, jacobian=False)
    for theta, value in points:
        root = explainer.track(theta)
        node = None if root is None else first_not_finite(root)
        statement = None if node is None else explainer.names.statement_of(outermost(node).item.place)
        if node is None or statement is None:
            tally.add_value(value)
        else:
            reached = float(node.target_after)
            tally.add_statement(statement.text, reached, statement.file, statement.line, statement.column)


def outermost(node: ItemNode) -> ItemNode:
    """The op of the density itself that a node is, or is a part of."""
    while (parent := node.parent) is not None and not parent.is_root:
        node = parent
    return node


def _brief(cause: Cause) -> str:
    return f"{WORDS[cause.kind]}: {cause.summary}" if cause.kind in WORDS else cause.summary


def _key(term: Term) -> tuple[str, str, int, int, str]:
    return (term.kind, term.statement.file, term.statement.line, term.statement.column, term.parameter)
