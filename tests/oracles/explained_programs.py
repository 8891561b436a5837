"""Explanations of programs given as text, and their parts."""

from __future__ import annotations

from typing import Any

from ulam import StanModel
from ulam.tracing.explain.explanation import Explanation
from ulam.tracing.explain.parts import Cause, Elements, QuotedStatement


def culprit(explanation: Explanation) -> Cause:
    cause = explanation.culprit
    assert cause is not None
    return cause


def at(cause: Cause) -> QuotedStatement:
    assert cause.statement is not None
    return cause.statement


def elements(cause: Cause) -> Elements:
    assert cause.elements is not None
    return cause.elements


def explained(text: str, data: Any = None, theta: Any = None, **options: Any) -> Explanation:
    return StanModel(text, data).explain(theta, **options)
