"""The methods `optimize`, `laplace` and `pathfinder`."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from ulam.runtime.cmdstan_csv import write_laplace, write_optimization, write_pathfinder
from ulam.runtime.errors import ArgumentError
from ulam.runtime.optimizers.progress import Progress, ending_lines
from ulam.runtime.parallel_jobs import job_seed
from ulam.tools.cmdstan.call import MethodCall, informed, say, write_json
from ulam.tools.cmdstan.parser import CommandLineError
from ulam.tools.cmdstan.r_dump import values_file


def optimize(call: MethodCall) -> int:
    """Looks for the mode; the last point, or all of them, go to a file."""
    arguments = call.arguments
    algorithm = arguments["method.optimize.algorithm"]
    options = arguments.below(f"method.optimize.algorithm.{algorithm}")
    own: dict[str, Any] = arguments.below("method.optimize")
    model, (path,) = call.model, call.files()
    call.write_config()
    result = model.optimize(
        algorithm, init=call.init(), seed=job_seed(call.seed, call.first), **own, **options,
        progress=Progress(call.refresh, sys.stdout) if call.refresh else None,
    )  # fmt: skip
    if not call.refresh or result.termination.stopped:
        say(ending_lines(result.termination))
    write_optimization(result, path, call.form())
    informed(result.notes)
    return 1 if result.termination.failed or result.termination.stopped else 0


def laplace(call: MethodCall) -> int:
    """Draws from the normal approximation at a mode that is given."""
    own = call.arguments.below("method.laplace")
    mode = own.pop("mode")
    if not mode:
        raise CommandLineError(
            "Missing mode argument, cannot get laplace sample without parameter estimates.",
            "  Perhaps you meant laplace mode=<file of optimize>?",
        )
    given = values_file(mode)
    model, (path,) = call.model, call.files()
    call.refuse_input(mode, path, "mode")
    call.write_config()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the notes say the same
        seed = job_seed(call.seed, call.first)
        result = model.laplace(given, seed=seed, refresh=call.refresh, file=sys.stdout, **own)
    write_laplace(result, path, call.form())
    for file in call.diagnostic_files(suffix=".json"):
        write_json(file, {"gradient": result.approximation.gradient, "Hessian": result.approximation.hessian})
    informed(result.notes)
    return 1 if result.interrupted else 0


def pathfinder(call: MethodCall) -> int:
    """Draws from normal approximations along paths."""
    own = call.arguments.below("method.pathfinder")
    model = call.model
    if not model.param_unc_num():
        raise ArgumentError("Model has 0 parameters, cannot run Pathfinder.")
    paths = own["num_paths"]
    (path,) = call.files()
    singles = call.files(paths, "_path") if own["save_single_paths"] and paths > 1 else []
    call.write_config()
    many, each = own.pop("num_psis_draws"), own.pop("num_draws")
    own["psis_resample"] = own["psis_resample"] and own["calculate_lp"] and paths > 1
    if own["psis_resample"] and many > each * paths:
        say(f"Warning: num_psis_draws={many} draws are resampled from num_draws * num_paths = {each * paths}.")
    with call.executor(paths) as executor:
        result = model.pathfinder(
            draws=many, num_single_draws=each, init=call.init(paths), seed=job_seed(call.seed, call.first),
            executor=executor, refresh=call.refresh, file=sys.stdout, **own,
        )  # fmt: skip
    write_pathfinder(result, path, call.form())
    for single in result.single_paths if singles else []:
        write_pathfinder(single, singles[single.paths[0].number - 1], call.form())
    informed(result.notes)
    return 1 if result.interrupted else 0
