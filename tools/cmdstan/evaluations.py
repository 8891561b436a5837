"""The methods `generate_quantities`, `log_prob` and `diagnose`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ulam.frontend.encoding import read_text
from ulam.runtime.cmdstan_csv import write_table
from ulam.runtime.errors import DataError, ProgramError, UlamError
from ulam.runtime.named_text import NamedText
from ulam.runtime.optimizers.initial_values import initial_point
from ulam.runtime.optimizers.line_search import Vector
from ulam.runtime.optimizers.objective import ModelObjective
from ulam.runtime.sampling.chain import INIT_STREAM, chain_stream
from ulam.runtime.sampling.chain_csv import ChainOutput, read_chain, write_quantities
from ulam.tools.cmdstan.call import MethodCall, check_readable, informed, say
from ulam.tools.cmdstan.parser import CommandLineError
from ulam.tools.cmdstan.r_dump import values_file
from ulam.tools.cmdstan.settings import numbered_paths

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel


def generate_quantities(call: MethodCall) -> int:
    """Generated quantities of the draws in files, one for each chain."""
    own = call.arguments.below("method.generate_quantities")
    given, chains = own["fitted_params"], own["num_chains"]
    if not given:
        raise CommandLineError(
            "Missing fitted_params argument, cannot run generate_quantities without fitted sample.",
            "  Perhaps you meant generate_quantities fitted_params=<CSV file of sample>?",
        )
    draws = numbered_paths(given, chains, call.first)
    for path in draws:
        check_readable(path)
    model, paths = call.model, call.files(chains)
    for path, source in zip(paths, draws, strict=True):
        call.refuse_input(source, path, "fitted_params")
    call.write_config()
    with call.executor(chains) as executor:
        result = model.generate_quantities(
            draws, seed=call.seed, first_chain=call.first, executor=executor, with_warmup=True
        )
    if not result.quantities:
        raise UlamError("Model doesn't generate any quantities of interest.")
    write_quantities(result, ChainOutput(paths, call.form()))
    informed(result.notes)
    return 1 if result.interrupted else 0


# ---------------------------------------------------------------- log_prob


OLD_DIGITS = 6
"""Digits of numbers where an older version of CmdStan is asked for: its clients compare them as text."""


def log_prob(call: MethodCall) -> int:
    """Log density and gradient at given points, a row for each."""
    own = call.arguments.below("method.log_prob")
    unconstrained, constrained = own["unconstrained_params"], own["constrained_params"]
    if bool(unconstrained) == bool(constrained):
        raise CommandLineError(
            "Cannot specify both input files of both constrained and unconstrained parameter values."
            if unconstrained
            else "No input parameter files provided, cannot calculate log probability density.",
            "  Perhaps you meant log_prob constrained_params=<file> or log_prob unconstrained_params=<file>?",
        )
    check_readable(unconstrained or constrained)
    model, (path,) = call.model, call.files()
    call.refuse_input(unconstrained or constrained, path, "parameter")
    points = _unconstrained(model, unconstrained) if unconstrained else _constrained(model, constrained)
    call.write_config()
    rows = np.empty((len(points), 1 + model.param_unc_num()))
    for row, point in zip(rows, points, strict=True):
        row[0], row[1:] = model.log_density_gradient(point, jacobian=own["jacobian"])
    columns = ["lp__", *(f"g_{name}" for name in model.param_unc_names())]
    form = call.form()
    if form.without and form.digits is None:
        form = replace(form, digits=OLD_DIGITS)
    write_table(path, form, columns, [rows])
    return 0


def _unconstrained(model: StanModel, path: str) -> list[Vector]:
    from ulam.tools.model_command import read_points

    given = values_file(path)
    points = read_points(NamedText(read_text(path), path) if isinstance(given, str) else given)
    for point in points:
        if len(point) != model.param_unc_num():
            raise DataError(
                [
                    "Incorrect number of unconstrained parameters provided! "
                    f"Model has {model.param_unc_num()} parameters but {len(point)} were found."
                ]
            )
    return points


def _constrained(model: StanModel, path: str) -> list[Vector]:
    if path.endswith(".csv"):
        return [model.param_unconstrain(row) for row in read_chain(path).columns(model.param_names())]
    return [model.param_unconstrain_json(values_file(path))]


# ---------------------------------------------------------------- diagnose


def diagnose(call: MethodCall) -> int:
    """Compares the gradient at one point with finite differences; the status is 1 if an element differs too much."""
    own = call.arguments.below("method.diagnose.test.gradient")
    model, (path,) = call.model, call.files()
    call.write_config()
    objective = ModelObjective(model, jacobian=True)
    stream = chain_stream(call.first, INIT_STREAM)
    point = initial_point(objective, call.init(), call.seed, stream, as_sampled=True).x
    value, gradient = model.log_density_gradient(point)
    differences = [_difference(model, point, k, own["epsilon"]) for k in range(len(point))]
    error = gradient - differences
    lines = ["", f" Log probability={value:.6g}", ""]
    lines += _table(point, gradient, differences, error)
    say(["TEST GRADIENT MODE", *lines])
    write_table(path, call.form(), [], [], lines)
    return int(not (np.abs(error) <= own["error"]).all())


def _difference(model: StanModel, point: Vector, k: int, step: float) -> float:
    """The central difference of the log density in one direction; NaN where a side has no density."""
    sides = point.copy(), point.copy()
    sides[0][k] += step
    sides[1][k] -= step
    try:
        above, below = (model.log_density(side, propto=False) for side in sides)
    except ProgramError:
        return np.nan
    return (above - below) / (2 * step)


def _table(point: Vector, gradient: Vector, differences: list[float], error: Vector) -> Iterator[str]:
    titles = ("value", "model", "finite diff", "error")
    yield f"{'param idx':>10}{''.join(f'{title:>16}' for title in titles)}"
    for k, row in enumerate(zip(point, gradient, differences, error, strict=True)):
        yield f"{k:>10}{''.join(f'{number:>16.6g}' for number in row)}"
