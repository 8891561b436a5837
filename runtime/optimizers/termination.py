"""Why an optimizer ended: Stan's codes and texts, and names for them.

Codes from -1 to 40 and their texts are Stan's (`stan/optimization/bfgs.hpp`); those below -1 are our own.
"""

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
    LINE_SEARCH_FAILED = (
        -1,
        "line_search_failed",
        "Line search failed to achieve a sufficient decrease, no more progress can be made",
    )
    INTERRUPTED = (-2, "interrupted", "Interrupted")
    TIME_LIMIT = (-4, "time_limit", "Time limit reached")
    STEP_TOO_SMALL = (
        -3,
        "step_too_small",
        "Newton step became too small without an increase of the log density, no more progress can be made",
    )

    def __init__(self, code: int, label: str, text: str) -> None:
        self.code = code
        self.label = label
        self.text = text

    @property
    def converged(self) -> bool:
        """Whether one of the convergence tests holds; not so for the limit of iterations (code 40)."""
        return 0 < self.code < 40

    @property
    def stopped(self) -> bool:
        """Whether the run was ended from outside."""
        return self in (Termination.INTERRUPTED, Termination.TIME_LIMIT)

    @property
    def failed(self) -> bool:
        """Whether the optimizer could not go on, though neither converged nor told to end."""
        return self in (Termination.LINE_SEARCH_FAILED, Termination.STEP_TOO_SMALL)
