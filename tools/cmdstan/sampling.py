"""The method `sample`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ulam.runtime.errors import SamplingWarning
from ulam.runtime.sampling.chain_csv import METRIC_NAMES, ChainOutput, elapsed_lines
from ulam.runtime.sampling.fit import SampleFit
from ulam.runtime.sampling.settings import RULES
from ulam.tools.cmdstan.call import MethodCall, informed, say
from ulam.tools.cmdstan.parser import CommandLineError
from ulam.tools.cmdstan.progress import IterationLines
from ulam.tools.cmdstan.r_dump import values_file
from ulam.tools.cmdstan.settings import given_paths

_SAMPLE = "method.sample"
_HMC = f"{_SAMPLE}.algorithm.hmc"

_KINDS = {name: kind for kind, name in METRIC_NAMES.items()}


def sample(call: MethodCall) -> int:
    """Runs the chains; their draws go to files."""
    arguments = call.arguments
    chains, warmup = arguments[f"{_SAMPLE}.num_chains"], arguments[f"{_SAMPLE}.num_warmup"]
    is_fixed = arguments[f"{_SAMPLE}.algorithm"] == "fixed_param"
    _check_adaptation(call, is_fixed)
    model = call.model
    if not is_fixed and not model.param_unc_num():
        say("Model contains no parameters, running fixed_param sampler.")
        arguments.given[f"{_SAMPLE}.algorithm"], is_fixed = "fixed_param", True
    lines = IterationLines(call.refresh, chains, call.first)
    draws = arguments[f"{_SAMPLE}.num_samples"]
    lines.begin(0 if is_fixed else warmup, draws + (0 if is_fixed else warmup))
    files = ChainOutput(call.files(chains), call.form(), call.diagnostic_files(chains))
    call.write_config()
    own: dict[str, Any] = {"sampler": "fixed"} if is_fixed else _hamiltonian(call, chains)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)  # the notes say the same
        fit = model.sample(
            chains=chains, warmup=warmup, draws=draws, thin=arguments[f"{_SAMPLE}.thin"], seed=call.seed,
            init=call.init(chains), save_warmup=arguments[f"{_SAMPLE}.save_warmup"], keep=False, jobs=call.threads,
            progress=lines, output=files, first_chain=call.first, **own,
        )  # fmt: skip
    return _report(call, fit, chains)


def _check_adaptation(call: MethodCall, is_fixed: bool) -> None:
    adapt = call.arguments.below(f"{_SAMPLE}.adapt")
    if adapt["engaged"] and not is_fixed and not call.arguments[f"{_SAMPLE}.num_warmup"]:
        raise CommandLineError(
            "The number of warmup samples (num_warmup) must be greater than zero if adaptation is enabled.",
            "  Perhaps you meant adapt engaged=0?",
        )
    if adapt["save_metric"] and not adapt["engaged"]:
        raise CommandLineError("save_metric=1 writes what was adapted: it needs adapt engaged=1.")


def _hamiltonian(call: MethodCall, chains: int) -> dict[str, Any]:
    """The options of `StanModel.sample` that the algorithm hmc has."""
    arguments = call.arguments
    adapt = call.arguments.below(f"{_SAMPLE}.adapt")
    options: dict[str, Any] = {
        "target_accept": adapt["delta"],
        "adapt": {name: adapt[name] for name in adapt if name not in ("delta", "save_metric")},
        "metric": _metric(call, chains),
        "step_size": arguments[f"{_HMC}.stepsize"],
        "step_size_jitter": arguments[f"{_HMC}.stepsize_jitter"],
    }
    if arguments[f"{_HMC}.engine"] == "static":
        return options | {"sampler": "hmc", "integration_time": arguments[f"{_HMC}.engine.static.int_time"]}
    depth = arguments[f"{_HMC}.engine.nuts.max_depth"]
    return options | {"max_depth": depth if RULES["max_depth"].holds(depth) else 60}


def _metric(call: MethodCall, chains: int) -> Any:
    """The kind of the metric, or inverse ones to begin with."""
    name, file = call.arguments[f"{_HMC}.metric"], call.arguments[f"{_HMC}.metric_file"]
    if not file or name == "unit_e":
        return _KINDS[name]
    from ulam.runtime.sampling.sample import read_metric

    found: list[Any] = []
    n = call.model.param_unc_num()
    for path in given_paths(file, chains, call.first):
        try:
            array = np.asarray(read_metric(values_file(path)), dtype=np.float64)
        except (TypeError, ValueError):  # of NumPy
            array = np.empty(())
        expected = (n,) if name == "diag_e" else (n, n)
        if array.shape != expected:
            raise CommandLineError(
                f"Cannot get inverse metric from input file: {path} has inv_metric of shape {array.shape}, and "
                f"metric={name} needs {expected}."
            )
        found.append(array)
    return found


def _report(call: MethodCall, fit: SampleFit, chains: int) -> int:
    for chain, seconds in enumerate(fit.seconds.tolist()):
        say(["", *elapsed_lines(seconds)])
        if call.arguments[f"{_SAMPLE}.adapt.save_metric"] and not fit.is_fixed and not fit.ended:
            name = call.arguments[f"{_HMC}.metric"]
            metric = np.ones(call.model.param_unc_num()) if fit.metric is None else fit.metric[chain]
            record = {"stepsize": float(fit.step_size[chain]), "metric_type": name, "inv_metric": metric.tolist()}
            call.write_json("_metric", record, chains, chain)
    say("")
    informed(fit.notes)
    return 1 if fit.ended else 0
