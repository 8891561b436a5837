"""The table of CmdStan's arguments: names, kinds, defaults, what values they may have, what they mean.

The tree is that of the CmdStan guide ("Command-Line Interface Overview" and the chapters of the methods). A *value* is
given as `name=value`; a *group* is opened by its name; a *choice* is given as `name=option`, and what follows are the
arguments of that option. Imports nothing of ulam: `help` is answered from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

KINDS = {int: "int", float: "double", bool: "boolean", str: "string"}
"""What help texts call the types of values."""


@dataclass(frozen=True)
class ArgumentRule:
    """What a value may be: its type, whether a number of that type is fine, and how that is told."""

    type: type
    holds: Callable[[Any], bool]
    text: str


@dataclass(frozen=True)
class ArgumentValue:
    """`name=value`."""

    name: str
    rule: ArgumentRule
    default: Any
    help: str

    @property
    def valid(self) -> str:
        """What values there may be, in words."""
        return self.rule.text.format(name=self.name)


@dataclass(frozen=True)
class ArgumentGroup:
    """A name that opens a group of arguments, or an option of a choice with its own."""

    name: str
    help: str
    members: tuple[Argument, ...] = ()
    missing: str = ""
    """Of an option that there is not: what to use instead."""


@dataclass(frozen=True)
class ArgumentChoice:
    """`name=option`."""

    name: str
    help: str
    options: tuple[ArgumentGroup, ...]
    default: str

    def option(self, name: str) -> ArgumentGroup | None:
        """The option of this name."""
        return next((option for option in self.options if option.name == name), None)


Argument = ArgumentValue | ArgumentGroup | ArgumentChoice


# ---------------------------------------------------------------- rules

_LARGEST = (1 << 31) - 1

_COUNT = ArgumentRule(int, lambda value: 0 <= value <= _LARGEST, f"0 <= {{name}} <= {_LARGEST}")
_POSITIVE_COUNT = ArgumentRule(int, lambda value: 0 < value <= _LARGEST, f"0 < {{name}} <= {_LARGEST}")
_POSITIVE = ArgumentRule(float, lambda value: 0 < value < math.inf, "0 < {name}")
_INNER_SHARE = ArgumentRule(float, lambda value: 0 < value < 1, "0 < {name} < 1")
_SHARE = ArgumentRule(float, lambda value: 0 <= value <= 1, "0 <= {name} <= 1")
_FLAG = ArgumentRule(bool, lambda value: True, "0, 1, false, true")
_INPUT = ArgumentRule(str, lambda value: True, "Path to an existing file")
_OUTPUT = ArgumentRule(str, lambda value: bool(value), "Path of a file in an existing folder")
_OPTIONAL_OUTPUT = ArgumentRule(str, lambda value: True, "Path of a file in an existing folder")
_INIT = ArgumentRule(str, lambda value: bool(value), "A number that is not negative, or the path to an existing file")
_SEED = ArgumentRule(
    int, lambda value: -1 <= value < 1 << 32, "An integer from 0 to 4294967295, or -1 for one that the time makes"
)
_DIGITS = ArgumentRule(int, lambda value: -1 <= value <= 18, "0 to 18, or -1 for as many as a number needs")
_THREADS = ArgumentRule(
    int, lambda value: value == -1 or 0 < value <= _LARGEST, "0 < {name}, or -1 for one for each processor"
)


# ---------------------------------------------------------------- the tree

_LINE_SEARCH = (
    ArgumentValue("init_alpha", _POSITIVE, 0.001, "Step size of the first line search"),
    ArgumentValue("tol_obj", _POSITIVE, 1e-12, "Converged at this change of the log density"),
    ArgumentValue("tol_rel_obj", _POSITIVE, 1e4, "Converged at this relative change, in units of 2.2e-16"),
    ArgumentValue("tol_grad", _POSITIVE, 1e-8, "Converged at this norm of the gradient"),
    ArgumentValue("tol_rel_grad", _POSITIVE, 1e7, "Converged at this relative gradient, in units of 2.2e-16"),
    ArgumentValue("tol_param", _POSITIVE, 1e-8, "Converged at this change of the parameters"),
)
_LBFGS = (*_LINE_SEARCH, ArgumentValue("history_size", _POSITIVE_COUNT, 5, "Steps that L-BFGS remembers"))

_SAMPLE = ArgumentGroup(
    "sample",
    "Draws from the posterior by Hamiltonian Monte Carlo",
    (
        ArgumentValue("num_samples", _COUNT, 1000, "Iterations after warmup"),
        ArgumentValue("num_warmup", _COUNT, 1000, "Iterations of warmup"),
        ArgumentValue("save_warmup", _FLAG, False, "Also write the draws of the warmup?"),
        ArgumentValue("thin", _POSITIVE_COUNT, 1, "Write every so many-th iteration"),
        ArgumentGroup(
            "adapt",
            "How warmup adapts",
            (
                ArgumentValue("engaged", _FLAG, True, "Does warmup adapt?"),
                ArgumentValue("gamma", _POSITIVE, 0.05, "Regularization scale of the step size's adaptation"),
                ArgumentValue("delta", _INNER_SHARE, 0.8, "Acceptance that the step size is adapted to"),
                ArgumentValue("kappa", _POSITIVE, 0.75, "Relaxation exponent of the step size's adaptation"),
                ArgumentValue("t0", _POSITIVE, 10.0, "Offset of its iterations"),
                ArgumentValue("init_buffer", _COUNT, 75, "Iterations before the metric is adapted"),
                ArgumentValue("term_buffer", _COUNT, 50, "Iterations after the metric is adapted"),
                ArgumentValue("window", _POSITIVE_COUNT, 25, "Iterations of the first window of the metric"),
                ArgumentValue("save_metric", _FLAG, False, "Write step size and metric to a JSON file?"),
            ),
        ),
        ArgumentChoice(
            "algorithm",
            "The sampler",
            (
                ArgumentGroup(
                    "hmc",
                    "Hamiltonian Monte Carlo",
                    (
                        ArgumentChoice(
                            "engine",
                            "How long trajectories are",
                            (
                                ArgumentGroup(
                                    "static",
                                    "All of one length",
                                    (ArgumentValue("int_time", _POSITIVE, 2 * math.pi, "That length, in time"),),
                                ),
                                ArgumentGroup(
                                    "nuts",
                                    "The no-U-turn sampler",
                                    (ArgumentValue("max_depth", _POSITIVE_COUNT, 10, "Largest depth of a tree"),),
                                ),
                            ),
                            "nuts",
                        ),
                        ArgumentChoice(
                            "metric",
                            "The mass matrix",
                            (
                                ArgumentGroup("unit_e", "The identity"),
                                ArgumentGroup("diag_e", "A diagonal matrix"),
                                ArgumentGroup("dense_e", "A dense matrix"),
                            ),
                            "diag_e",
                        ),
                        ArgumentValue("metric_file", _INPUT, "", "The inverse metric to begin with, inv_metric, JSON"),
                        ArgumentValue("stepsize", _POSITIVE, 1.0, "The step size to begin with"),
                        ArgumentValue("stepsize_jitter", _SHARE, 0.0, "Share by which step sizes vary at random"),
                    ),
                ),
                ArgumentGroup("fixed_param", "Parameters stay as they are; generated quantities are drawn"),
            ),
            "hmc",
        ),
        ArgumentValue("num_chains", _POSITIVE_COUNT, 1, "How many chains"),
    ),
)

_OPTIMIZE = ArgumentGroup(
    "optimize",
    "Finds the maximum-likelihood or MAP estimate",
    (
        ArgumentChoice(
            "algorithm",
            "The optimizer",
            (
                ArgumentGroup("bfgs", "BFGS with a line search", _LINE_SEARCH),
                ArgumentGroup("lbfgs", "L-BFGS with a line search", _LBFGS),
                ArgumentGroup("newton", "Newton's method"),
            ),
            "lbfgs",
        ),
        ArgumentValue("jacobian", _FLAG, False, "Add the change of variables: MAP instead of MLE?"),
        ArgumentValue("iter", _POSITIVE_COUNT, 2000, "Most iterations"),
        ArgumentValue("save_iterations", _FLAG, False, "Write a row for each iteration?"),
    ),
)

_LAPLACE = ArgumentGroup(
    "laplace",
    "Draws from the normal approximation at a mode",
    (
        ArgumentValue("mode", _INPUT, "", "The mode: a CSV file of optimize, or JSON with the parameters"),
        ArgumentValue("jacobian", _FLAG, True, "Add the change of variables?"),
        ArgumentValue("draws", _POSITIVE_COUNT, 1000, "How many draws"),
        ArgumentValue("calculate_lp", _FLAG, True, "Compute the log density of each draw?"),
    ),
)

_PATHFINDER = ArgumentGroup(
    "pathfinder",
    "Draws from normal approximations along paths of L-BFGS",
    (
        *_LBFGS,
        ArgumentValue("num_psis_draws", _POSITIVE_COUNT, 1000, "Draws that are resampled from those of all paths"),
        ArgumentValue("num_paths", _POSITIVE_COUNT, 4, "How many paths"),
        ArgumentValue("save_single_paths", _FLAG, False, "Also write the draws of each path?"),
        ArgumentValue("psis_resample", _FLAG, True, "Resample the draws of all paths by importance?"),
        ArgumentValue("calculate_lp", _FLAG, True, "Compute the log density of each draw? Resampling needs it"),
        ArgumentValue("max_lbfgs_iters", _POSITIVE_COUNT, 1000, "Most iterations of a path"),
        ArgumentValue("num_draws", _POSITIVE_COUNT, 1000, "Draws of each path"),
        ArgumentValue("num_elbo_draws", _POSITIVE_COUNT, 25, "Draws that judge a normal density"),
    ),
)

_GENERATE_QUANTITIES = ArgumentGroup(
    "generate_quantities",
    "Computes generated quantities for draws of the parameters",
    (
        ArgumentValue("fitted_params", _INPUT, "", "Draws of the parameters: a CSV file of sample"),
        ArgumentValue("num_chains", _POSITIVE_COUNT, 1, "How many chains, each with a file of its own"),
    ),
)

_LOG_PROB = ArgumentGroup(
    "log_prob",
    "The log density, up to a constant, and its gradient at given parameters",
    (
        ArgumentValue("unconstrained_params", _INPUT, "", "Unconstrained parameters, params_r, JSON"),
        ArgumentValue("constrained_params", _INPUT, "", "Parameters: JSON, or a CSV file of sample"),
        ArgumentValue("jacobian", _FLAG, True, "Add the change of variables?"),
    ),
)

_DIAGNOSE = ArgumentGroup(
    "diagnose",
    "Compares gradients with finite differences",
    (
        ArgumentChoice(
            "test",
            "What is tested",
            (
                ArgumentGroup(
                    "gradient",
                    "The gradient of the log density",
                    (
                        ArgumentValue("epsilon", _POSITIVE, 1e-6, "Step of the finite differences"),
                        ArgumentValue("error", _POSITIVE, 1e-6, "Largest difference that is no failure"),
                    ),
                ),
            ),
            "gradient",
        ),
    ),
)

_VARIATIONAL = ArgumentGroup(
    "variational",
    "Not there: use pathfinder",
    missing="Error: the method variational is not there. Use pathfinder: method=pathfinder",
)

METHOD = ArgumentChoice(
    "method",
    "What to do; method= may be left out",
    (_SAMPLE, _OPTIMIZE, _VARIATIONAL, _DIAGNOSE, _GENERATE_QUANTITIES, _PATHFINDER, _LOG_PROB, _LAPLACE),
    "sample",
)

TREE = ArgumentGroup(
    "",
    "",
    (
        METHOD,
        ArgumentValue("id", _COUNT, 1, "Number of the chain, or of the first of several"),
        ArgumentGroup("data", "Data", (ArgumentValue("file", _INPUT, "", "The data, JSON"),)),
        ArgumentValue("init", _INIT, "2", "x: initial values between -x and x; 0: all 0; else a JSON file with values"),
        ArgumentGroup("random", "Random numbers", (ArgumentValue("seed", _SEED, -1, "Their seed"),)),
        ArgumentGroup(
            "output",
            "Files and console",
            (
                ArgumentValue("file", _OUTPUT, "output.csv", "The result; _1 and so on is added for several chains"),
                ArgumentValue("diagnostic_file", _OPTIONAL_OUTPUT, "", "Unconstrained parameters and gradients"),
                ArgumentValue("refresh", _COUNT, 100, "Iterations between lines of progress; 0: none"),
                ArgumentValue("sig_figs", _DIGITS, -1, "Significant digits of numbers in CSV files"),
                ArgumentValue("profile_file", _OPTIONAL_OUTPUT, "profile.csv", "What profile statements recorded"),
                ArgumentValue("save_cmdstan_config", _FLAG, False, "Write these arguments to a JSON file?"),
            ),
        ),
        ArgumentValue(
            "num_threads", _THREADS, 1, "Chains or paths that run at a time; STAN_NUM_THREADS sets the default"
        ),
    ),
)


# ---------------------------------------------------------------- walks


def members(node: Argument) -> tuple[Argument, ...]:
    """What is directly below an argument."""
    if isinstance(node, ArgumentGroup):
        return node.members
    return node.options if isinstance(node, ArgumentChoice) else ()


def walk(node: Argument = TREE, path: str = "") -> Iterator[tuple[str, Argument]]:
    """All arguments below this one with their paths, `method.sample.adapt.delta`."""
    for member in members(node):
        below = f"{path}.{member.name}" if path else member.name
        yield below, member
        yield from walk(member, below)


@cache
def index() -> Mapping[str, Argument]:
    """All arguments by their paths."""
    return dict(walk())


@dataclass
class Arguments:
    """A command line that was read: `arguments["method.sample.num_samples"]`, which is the default if none is given."""

    given: dict[str, Any] = field(default_factory=dict[str, Any])

    def __getitem__(self, path: str) -> Any:
        if path in self.given:
            return self.given[path]
        node = index()[path]
        assert not isinstance(node, ArgumentGroup)
        return node.default

    @property
    def method(self) -> str:
        """The name of the method."""
        return self["method"]

    def of_method(self, path: str) -> Any:
        """An argument of the method that was chosen: `adapt.delta`."""
        return self[f"method.{self.method}.{path}"]

    def below(self, path: str) -> dict[str, Any]:
        """The values that are directly in a group, by their names."""
        return {
            member.name: self[f"{path}.{member.name}"]
            for member in members(index()[path])
            if isinstance(member, ArgumentValue)
        }
