"""The table of commands, their help, and command lines as they are given.

A command lists the names of its options, rows of `options.py`, and the class that takes them as fields.

Imports nothing but a little of the standard library: every start of `ulam` pays for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ulam.tools.options import OPTIONS, STANDARD_STREAM, flags, long_name, told, told_name, written


class Command(NamedTuple):
    """A command: `runs` is the module below `ulam.tools` and the class in it whose fields are the options.

    `is_for_programs`: what it prints without an output is read by other programs.
    """

    runs: str
    help: str
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    is_for_programs: bool = False

    def names(self) -> tuple[str, ...]:
        """All that the command takes."""
        return (*self.arguments, *self.options, "color")


_COMPILING = ("opt_level", "passes", "include_path", "external", "cache", "layouts", "time_limit")
_POINT = ("init", "unconstrained", "seed")
_STOPPING = (
    "iter", "init_alpha", "tol_obj", "tol_rel_obj", "tol_grad", "tol_rel_grad", "tol_param", "history_size",
)  # fmt: skip

COMMANDS: dict[str, Command] = {
    "sample": Command(
        "ulam_sample:SampleCommand",
        "Draws from the posterior.",
        ("model",),
        (
            "data", "chains", "warmup", "draws", "seed", "init", "thin", "sampler", "target_accept", "max_depth",
            "integration_time", "metric", "step_size", "step_size_jitter", "adapt", "save_warmup", "keep", "jobs",
            "progress", "output", "save", "json", "rows", *_COMPILING,
        ),
    ),
    "optimize": Command(
        "ulam_optimize:OptimizeCommand",
        "Finds the maximum-likelihood or MAP estimate.",
        ("model",),
        (
            "data", "algorithm", "jacobian", *_POINT, *_STOPPING, "starts", "jobs", "standard_errors", "output", "json",
            "save_iterations", "rows", "refresh", *_COMPILING,
        ),
    ),
    "laplace": Command(
        "ulam_laplace:LaplaceCommand",
        "Draws from the normal approximation at the mode.",
        ("model",),
        ("data", "mode", "jacobian", "draws", "calculate_lp", "seed", "output", "rows", "refresh", *_COMPILING),
    ),
    "pathfinder": Command(
        "ulam_pathfinder:PathfinderCommand",
        "Draws from normal approximations along paths of an optimizer.",
        ("model",),
        (
            "data", "num_paths", "draws", "num_single_draws", "num_elbo_draws", "psis_resample", "calculate_lp",
            "max_lbfgs_iters", *_POINT, *_STOPPING[1:], "jobs", "output", "save_single_paths", "rows", "refresh",
            *_COMPILING,
        ),
    ),
    "generate-quantities": Command(
        "ulam_generate_quantities:GenerateQuantitiesCommand",
        "Computes generated quantities for draws of the parameters.",
        ("model",),
        ("data", "draws_files", "seed", "output", "rows", *_COMPILING),
    ),
    "report": Command(
        "ulam_report:ReportCommand",
        "Writes a page to look at: whether a fit can be trusted, traces, ranks, costs of lines.",
        ("fits",),
        ("output", "program", "data", "costs", "title", "rows", "include_path", "external", "time_limit"),
    ),
    "profile": Command(
        "ulam_profile:ProfileCommand",
        "Measures the regions of a program that profile statements mark.",
        ("model",),
        (
            "data", "gradients", "optimize", "algorithm", "quantities", *_POINT, "threads", "auto", "lines", "by_phase",
            "output", "no_output", "columns", "trace", "flame", "speedscope", "json", *_COMPILING,
        ),
    ),
    "bench": Command(
        "ulam_bench:BenchCommand",
        "Times two versions of a model against each other.",
        ("model",),
        (
            "data", "vs", "vs_data", "vs_opt_level", "vs_passes", "gradients", "rounds", *_POINT, "json", "opt_level",
            "passes", "include_path", "external", "layouts", "time_limit",
        ),
    ),
    "log-density": Command(
        "ulam_log_density:LogDensityCommand",
        "Prints the log density and its gradient as JSON.\n\nOne line for each point. Numbers that JSON does not have "
        'are "NaN", "Infinity" and "-Infinity", as in Stan\'s data files.',
        ("model",),
        ("data", *_POINT, "jacobian", "propto", "output", *_COMPILING),
        is_for_programs=True,
    ),
    "trace": Command(
        "ulam_trace:TraceCommand",
        "Shows what a function, or the log density, does: every operation, branch and call.",
        ("traced", "more_args"),
        (
            "data", "function", "args", "density", *_POINT, "jacobian", "propto", "scripted", "only", "levels", "style",
            "source", "format", "max_nodes", "output", "save", "diff", "rtol", *_COMPILING,
        ),
    ),
    "explain": Command(
        "ulam_explain:ExplainCommand",
        "Explains a log density that is NaN or infinite: the statement, its elements, where it began.\n\n"
        "Exit status 1 if the density, or its gradient, is not finite, or the point is rejected.",
        ("model",),
        ("data", *_POINT, "tries", "jacobian", "propto", "json", *_COMPILING),
    ),
    "explain-compile": Command(
        "ulam_explain_compile:ExplainCompileCommand",
        "Shows what each pass made of a program: its IR, time and remarks, and the assembly of its loops.",
        ("model",),
        ("data", "html", "unit", "costs", "title", "seed", *_COMPILING),
    ),
    "build": Command(
        "ulam_build:BuildCommand",
        "Builds a shared library with the C interfaces of BridgeStan and ulam.h, and prints its path.",
        ("model",),
        ("output", "target_cpu", *_COMPILING),
    ),
    "check": Command(
        "ulam_check:CheckCommand", "Reports syntax and type errors.", ("models",), ("json", "include_path", "external")
    ),
    "info": Command(
        "ulam_check:InfoCommand", "Prints what a program declares as JSON.", ("model",), ("include_path", "external")
    ),
    "cmdstan-home": Command(
        "cmdstan.home:CmdstanHomeCommand",
        "Writes a folder that cmdstanpy and other clients of CmdStan take for it, and prints their environment.",
        ("folder",),
    ),
    "cmdstan": Command(
        "ulam_cmdstan:CmdStanCommand",
        "Runs a program with CmdStan's command line: ulam cmdstan MODEL help.",
        ("model", "words"),
        ("include_path", "external", "opt_level", "passes", "cache", "layouts"),
    ),
    "doctor": Command("ulam_doctor:DoctorCommand", "Shows versions, and whether compiling works here."),
}  # fmt: skip

STAN_OPT = Command(
    "stan_opt:main",
    "Reads .stan or .mlir, runs passes, prints the result.",
    ("input",),
    (
        "input_format", "output", "opt_level", "pass_pipeline", "data", "unit", "target", "generic", "locations",
        "list_passes", "print_pipeline", "print_ir_before_all", "print_ir_after_all", "print_ir_after_change", "timing",
        "json", "verify_each", "explain", "layouts", "debug_transformed_mir_pretty", "debug_optimized_mir_pretty",
        "debug_mem_patterns", "split_input_file", "verify_diagnostics", "allow_unregistered_dialect", "include_path",
        "external", "version",
    ),
)  # fmt: skip
"""The command `stan-opt`."""

OPTIMIZER_OPTIONS = _STOPPING
STOPPING_OPTIONS = _STOPPING[1:]
"""Those that go to the optimizer as they are; None is its own default. Pathfinder has a limit of iterations of its own.
"""


def help_rows(command: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Arguments and options as help lists them: how it is written, and what it means."""
    entry = STAN_OPT if command == "stan-opt" else COMMANDS[command]
    arguments = [(written(name), OPTIONS[name].help) for name in entry.arguments if not OPTIONS[name].hidden]
    options = [name for name in entry.names() if not OPTIONS[name].argument and not OPTIONS[name].hidden]
    return arguments, [(written(name), told(name, command)) for name in options]


def with_values(arguments: Sequence[str]) -> Iterator[str]:
    """The command line with a value for each option that stands alone.

    An option that takes several files is written before each of them. What follows an option that stands alone is its
    value only if it is `-` or ends as the files of that option do, so that `ulam check --json model.stan` never takes
    the program for the file to be written.
    """
    alone = {
        long_name(name): (option.alone, f".{name}", option.writes) for name, option in OPTIONS.items() if option.alone
    }
    several = {long_name(name): option.several for name, option in OPTIONS.items() if option.several}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in several and rest and rest[0].lower().endswith(several[word]):
            while rest and rest[0].lower().endswith(several[word]):
                yield f"{word}={rest.pop(0)}"
            continue
        if word == "--":
            yield from (word, *rest)
            return
        if word in alone:
            value, ending, is_file = alone[word]
            if is_file and rest and (rest[0] == STANDARD_STREAM or rest[0].lower().endswith(ending)):
                value = rest.pop(0)
            word = f"{word}={value}"
        yield word


EMPTY_NAME = "give the name of a file"
"""What is wrong with a file whose name is empty."""


def empty_name(words: Sequence[str]) -> str:
    """The message for a command line on which the name of a file is empty, or '' if none is."""
    named = {flag for name, option in OPTIONS.items() if option.reads or option.writes for flag in flags(name)}
    before = ""
    for word in words:
        flag, equals, value = word.partition("=")
        if word == "--":
            break
        if flag in named and equals and not value:
            return f"{flag}: {EMPTY_NAME}"
        if not word:
            asked = before.partition("=")[0]
            told = asked if asked in named else "" if asked.startswith("-") else "''"
            return told and f"{told}: {EMPTY_NAME}"
        before = word
    return ""


def hint(arguments: Sequence[str]) -> str:
    """What may be meant by a command line that cannot be read, or ''."""
    for word, following in pairwise(arguments):
        if any(option.alone and option.writes and word == long_name(name) for name, option in OPTIONS.items()):
            if not following.startswith("-") and list(with_values([word, following])) != [f"{word}={following}"]:
                return f"write {word}={following} if that is the file to be written"
    return ""


def wrong_choice(command: str, values: Mapping[str, Any]) -> str:
    """The message for a value that is none of an option's choices, or '' if all are."""
    for name in COMMANDS[command].names():
        choices, value = OPTIONS[name].choices, values.get(name)
        if choices and value is not None and value not in choices:
            return f"{long_name(name)} must be {', '.join(choices[:-1])} or {choices[-1]}, found '{value}'"
    return ""


def files(command: str, values: Mapping[str, Any], *, written: bool) -> Iterator[tuple[str, str]]:
    """The files that a command line names, to read or to write: the option's name as told, and the file."""
    for name in COMMANDS[command].names():
        option, value = OPTIONS[name], values.get(name)
        if value is None or not (option.writes if written else option.reads):
            continue
        for entry in value if isinstance(value, list) else [value]:
            yield told_name(name), str(entry)
