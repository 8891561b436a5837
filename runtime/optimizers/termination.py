"""Why an optimizer ended: Stan's codes and texts, and names for them."""

from __future__ import annotations

from enum import Enum


class Termination(Enum):
    """Why a run ended: Stan's code and text, and a name."""

    RUNNING = (0, "running", "Successful step completed")
    PARAMETERS = (10, "converged_parameters", "Convergence detected: absolute parameter change was below tolerance")
    OBJECTIVE = (
        20,
        "converged_objective",
        "Convergence detected: absolute change in objective function was below tolerance",
    )
    RELATIVE_OBJECTIVE = (
        21,
        "converged_relative_objective",
        "Convergence detected: relative change in objective function was below tolerance",
    )
    GRADIENT = (30, "converged_gradient", "Convergence detected: gradient norm is below tolerance")
    RELATIVE_GRADIENT = (
        31,
        "converged_relative_gradient",
        "Convergence detected: relative gradient magnitude is below tolerance",
    )
    MAX_ITERATIONS = (40, "max_iterations", "Maximum number of iterations hit, may not be at an optimum")
    INTERRUPTED = (-2, "interrupted", "Interrupted")
    LINE_SEARCH_FAILED = (
        -1,
        "line_search_failed",
        "Line search failed to achieve a sufficient decrease, no more progress can be made",
    )

    def __init__(self, code: int, label: str, text: str) -> None:
        self.code = code
        self.label = label
        self.text = text

    @property
    def converged(self) -> bool:
        return 0 < self.code < 40
