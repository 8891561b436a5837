"""What each line of a fit's program costs: measured for the report, if the program and its data are at hand."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from ulam.runtime import terminal
from ulam.runtime.errors import Interrupted, TimeLimit, UlamError

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel
    from ulam.runtime.profiling.line_profile import LineProfile
    from ulam.runtime.sampling.fit import SampleFit

SECONDS = 0.5
"""How long gradients are sampled."""


def line_costs(fit: SampleFit) -> LineProfile | str:
    """The profile of gradients at a draw of the fit, by line; or a sentence that says why there is none."""
    if not fit.about.recipe.text:
        return "The fit was read from CSV files, which do not have the program: give it with --program and --data."
    if fit.is_fixed:
        return "The program has no parameters, so there is no log density to measure."
    if not fit.n_chains or not fit.n_draws:
        return "There is no draw at which the log density could be measured."
    return sampled(lambda: fit.model.with_lines, partial(_point, fit), SECONDS)


def sampled(
    load: Callable[[], StanModel], point: Callable[[StanModel], npt.NDArray[Any]], seconds: float
) -> LineProfile | str:
    """The profile of gradients of a model at a point, by line; or a sentence that says why there is none."""
    from ulam.runtime.profiling.line_profile import sample_lines

    try:
        with open(os.devnull, "w") as sink, terminal.programs_print_to(sink):  # it would print many times over
            model = load()
            found = sample_lines(model, point(model), seconds=seconds)
    except (Interrupted, TimeLimit):
        raise
    except (UlamError, ValueError, OSError) as error:
        return f"What the lines cost could not be measured: {str(error).rstrip('.')}."
    return found if found.total else "The measurement saw nothing of the program: it takes too little time."


def _point(fit: SampleFit, model: StanModel) -> npt.NDArray[Any]:
    """The draw in the middle of the first chain."""
    middle = fit.n_draws // 2
    if fit.unconstrained.shape[-1] == model.param_unc_num():
        return fit.unconstrained[0, middle]
    return model.param_unconstrain(fit.values[0, middle, : model.param_num()])
