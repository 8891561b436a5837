"""The table of options of `ulam` and `stan-opt`, the table of commands, and how they are told in help texts.

An option has one row: its names, its type, its default and what it means are the same in every command that takes it.
Where a command must differ, `differs` of that row says so. A command lists the names of its options, and the class
that takes them as fields.

Imports nothing but a little of the standard library: every start of `ulam` pays for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

STANDARD_STREAM = "-"
"""As a file: standard input, or standard output."""
STANDARD_OUTPUT = "/dev/stdout"
"""What `-` is to an output."""


SAME: Any = object()


class Difference(NamedTuple):
    """What is different in one command: a sentence that follows the help text, another default and how it is shown."""

    help: str = ""
    default: Any = SAME
    shown: str = ""


class Option(NamedTuple):
    """A row of the table; its key, with dashes, is the long name, unless it has another `name`.

    `type` is what a value becomes, a list for what may be given more than once; `of` a word for a value. `reads` and
    `writes` say that the value is a file, which may be `-`. `alone` is the value if the option stands without one.
    `shown` describes a default of None. `several`: how files end of which any number may follow the option.
    """

    help: str
    type: Any = str
    of: str = ""
    default: Any = None
    shown: str = ""
    short: str = ""
    old_names: tuple[str, ...] = ()
    negatable: bool = False
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    reads: bool = False
    writes: bool = False
    alone: str | None = None
    argument: bool = False
    hidden: bool = False
    several: str = ""
    differs: Mapping[str, Difference] = MappingProxyType({})
    name: str = ""

    def default_in(self, command: str) -> Any:
        """The default: that of the row, unless the command has one of its own."""
        own = self.differs.get(command)
        return self.default if own is None or own.default is SAME else own.default


OPTIONS: dict[str, Option] = {
    # Programs and data.
    "model": Option("A Stan program; -: standard input.", Path, "MODEL", argument=True, reads=True),
    "models": Option("Stan programs; -: standard input.", list[Path], "MODEL", argument=True, reads=True),
    "traced": Option(
        "A Stan program, or a saved trace; -: standard input.", Path, "MODEL", argument=True, reads=True
    ),
    "folder": Option("A folder to write to.", Path, "DIR", argument=True),
    "more_args": Option("Further arguments of the function.", list[str], "JSON", argument=True, hidden=True),
    "words": Option(
        "CmdStan's arguments, as in sample num_chains=4 data file=data.json.", list[str], "ARGUMENT...", argument=True,
        hidden=True,
    ),
    "data": Option(
        "Data: a JSON file, or JSON text.", of="DATA", short="-d", reads=True,
        differs={"stan-opt": Difference("What level 4 specialises on.")},
    ),
    "include_path": Option("Where to look for included files.", list[Path], "FOLDER", short="-I"),
    # Compiling.
    "opt_level": Option(
        "Optimization level: 0 to 4, or the name of one of your own.", of="LEVEL", shown="3", short="-O",
        differs={"stan-opt": Difference(shown="no passes, and units as at level 3")},
    ),
    "passes": Option(
        "Passes to run instead of those of a level, with commas between them, as stan-opt takes them.", of="PIPELINE",
        shown="those of the level",
    ),
    "external": Option(
        "Functions that programs declare without a body: a Python file with `ulam.external` functions by their names, "
        "or a C function, LIB.so:SYMBOL, with NAME= before it if it has another name; or a folder of Stan definitions.",
        list[str], "FUNCTIONS",
    ),
    "cache": Option("Use the cache of compiled code.", bool, default=True, negatable=True),
    "layouts": Option(
        "Give the data layouts when they are bound: equal rows once, rows in the order of an index (levels 3 and 4).",
        bool, default=True, negatable=True,
    ),
    "target_cpu": Option(
        "The processor to build for: native, this machine's; generic, all of its architecture; or a level of x86-64, "
        "as x86-64-v3.", of="CPU", default="native",
    ),
    "time_limit": Option(
        "Stop after so many seconds, and exit with status 124; the best result so far is shown and written.", float,
        "SECONDS", shown="none",
    ),
    # Points, densities, random numbers.
    "init": Option(
        "Constrained values of some or all parameters, a JSON file or text; or a radius of random ones. Of sample also "
        "an array, with values for each chain; a file of its --save; pathfinder: its draws.",
        of="VALUES", shown="2", reads=True,
    ),
    "unconstrained": Option(
        "Unconstrained parameters instead: numbers with commas, or a JSON file or text with an array.",
        of="POINT", reads=True, old_names=("--params", "--theta"),
        differs={"log-density": Difference("An array of arrays is several points.")},
    ),
    "jacobian": Option(
        "Add the change of variables: the density of the unconstrained parameters.", bool, default=True, negatable=True,
        differs={"optimize": Difference("MAP instead of MLE.", default=False)},
    ),
    "propto": Option(
        "Drop the terms that are constant in the parameters.", bool, default=False, negatable=True,
        differs={
            "log-density": Difference(default=True),
            "explain": Difference("Shows what ~ keeps, and the constants that it drops."),
        },
    ),
    "seed": Option(
        "Seed of all random numbers.", int, "N", 1234, least=0, differs={"sample": Difference(default=1)}
    ),
    # Optimizers.
    "algorithm": Option("The optimizer.", default="lbfgs", choices=("lbfgs", "bfgs", "newton")),
    "iter": Option("Most iterations.", int, "N", shown="2000", least=1),
    "init_alpha": Option("First step size.", float, "X", shown="0.001"),
    "tol_obj": Option("Converged at this change of the log density.", float, "X", shown="1e-12"),
    "tol_rel_obj": Option("Converged at this relative change, in units of 2.2e-16.", float, "X", shown="1e4"),
    "tol_grad": Option("Converged at this norm of the gradient.", float, "X", shown="1e-8"),
    "tol_rel_grad": Option("Converged at this relative gradient, in units of 2.2e-16.", float, "X", shown="1e7"),
    "tol_param": Option("Converged at this change of the parameters.", float, "X", shown="1e-8"),
    "history_size": Option("Steps that L-BFGS remembers.", int, "N", shown="5", least=1),
    "save_iterations": Option("Write a row for each iteration.", bool, default=False),
    "starts": Option("Run from so many initial values; show the modes found.", int, "N", 1, least=1),
    "jobs": Option("Starts, paths or chains that run at a time.", int, "N", shown="processors", least=1),
    "standard_errors": Option("Show standard errors, from the Hessian.", bool, default=False),
    "mode": Option(
        "The mode: CSV or JSON of optimize, or JSON with the parameters.", of="MODE", shown="optimize first", reads=True
    ),
    "draws": Option("How many draws; of sample in each chain, before thinning.", int, "N", 1000, least=1),
    "draws_files": Option(
        "Draws of the parameters: a CSV file for each chain.", list[Path], "FILES", reads=True, name="draws",
        several=".csv",
    ),
    "fits": Option(
        "A fit that --save of ulam sample wrote, or CSV files, ours or CmdStan's, one for each chain.", list[Path],
        "FITS", argument=True, reads=True,
    ),
    # Samplers.
    "chains": Option("How many chains.", int, "N", 4, least=1),
    "warmup": Option("Iterations of each chain that adapt the sampler.", int, "N", 1000, least=0),
    "thin": Option("Keep every so many-th draw.", int, "N", 1, least=1),
    "sampler": Option(
        "nuts; hmc with trajectories of one length; nutpie (an extra) for --metric low_rank; fixed: parameters stay.",
        default="nuts", choices=("nuts", "hmc", "nutpie", "fixed"),
    ),
    "target_accept": Option("Acceptance that the step size is adapted to; Stan's delta.", float, "X", 0.8),
    "max_depth": Option("Largest depth of a tree, of nuts.", int, "N", 10, least=1, most=60),
    "integration_time": Option("Length of a trajectory, of hmc.", float, "X", shown="6.28"),
    "metric": Option(
        "Kind of the metric: unit, diag, dense; or a JSON file with inv_metric, or one of --save, to begin with.",
        of="METRIC",
        default="diag",
    ),
    "step_size": Option("Step size to begin with.", float, "X", shown="1"),
    "step_size_jitter": Option("Share by which the step size varies, 0 to 1.", float, "X", 0.0),
    "adapt": Option(
        "A setting of the adaptation: gamma, kappa, t0, init_buffer, term_buffer, window; engaged=0: none.", list[str],
        "NAME=VALUE",
    ),
    "save_warmup": Option("Also keep the draws of the warmup.", bool, default=False),
    "keep": Option("Keep the draws in memory; else they are in the files of --output only.", bool, default=True,
        negatable=True),
    "progress": Option("Show how far each chain is.", bool, default=True, negatable=True),
    "num_paths": Option("How many paths, each from initial values of its own.", int, "N", 4, least=1),
    "num_single_draws": Option(
        "Draws of each path.", int, "N", shown="as --draws", least=1, old_names=("--num-draws",)
    ),
    "num_elbo_draws": Option("Draws that judge a normal density.", int, "N", 25, least=1),
    "max_lbfgs_iters": Option("Most iterations of a path.", int, "N", 1000, least=1),
    "psis_resample": Option(
        "Resample the draws of all paths by importance.", bool, shown="with several paths", negatable=True
    ),
    "save_single_paths": Option(
        "Also write the draws of each path, to files with _path_1 and so on.", bool, default=False
    ),
    "calculate_lp": Option("Compute the log density of each draw.", bool, default=True, negatable=True),
    # Profiles and comparisons.
    "gradients": Option(
        "How many gradients are timed.", int, "N", 1000, least=1,
        differs={"bench": Difference("In each round.", default=None, shown="as many as take 10 ms")},
    ),
    "optimize": Option("Measure an optimization instead of gradients.", bool, default=False),
    "quantities": Option(
        "Compute generated quantities so many times at the end.", int, "N", 1, least=0, old_names=("--draws",)
    ),
    "threads": Option(
        "Threads that each do all of it, at points of their own.", int, "N", 1, least=1, old_names=("--chains",)
    ),
    "auto": Option(
        "Regions around these instead of profile statements.", choices=("statements", "blocks", "functions")
    ),
    "by_phase": Option("A row for each phase.", bool, default=False),
    "lines": Option("Sample the program by line, without regions.", bool, default=False),
    "columns": Option("Columns of the CSV file.", default="design", choices=("design", "cmdstan")),
    "vs": Option("The other version.", Path, "MODEL", shown="the same file", reads=True),
    "vs_data": Option("Data of the other version.", of="DATA", shown="the same", reads=True),
    "vs_opt_level": Option("Optimization level of the other version.", of="LEVEL", shown="the same"),
    "vs_passes": Option("Passes of the other version.", of="PIPELINE", shown="the same"),
    "rounds": Option("Rounds in which the versions take turns.", int, "N", 40, least=2),
    # Explanations.
    "tries": Option(
        "Draw so many points; explain the first that fails, count all by statement.", int, "N", 1, least=1
    ),
    # Traces.
    "function": Option("The function to call.", of="NAME", short="-f"),
    "args": Option("Its arguments: numbers or arrays, in JSON.", list[str], "JSON..."),
    "density": Option("Trace the log density of the model.", bool, default=False),
    "scripted": Option("Uniform numbers to draw, an array, instead of --seed.", of="JSON"),
    "only": Option("Enter this function, and others so named, no others.", list[str], "NAME"),
    "levels": Option("Levels of calls that are shown.", int, "N", shown="all", short="-n", least=1),
    "style": Option("How text is written; full: with types and reasons.", default="seed", choices=("seed", "full")),
    "source": Option("Show line and column of each node.", bool, default=False),
    "format": Option(
        "What is written.", shown="by the name of the output, else text",
        choices=("text", "json", "dot", "svg", "chrome", "stan"),
    ),
    "max_nodes": Option(
        "Most nodes of dot, svg and stan; of pictures the middle is left out.", int, "N", 2000, least=1
    ),
    "diff": Option(
        "Show how another run differs: a saved trace, or a version of the program.", Path, "OTHER", reads=True
    ),
    "rtol": Option("Of --diff: relative difference of reals that are the same.", float, "X", 0.0),
    # Reports.
    "program": Option("The program that CSV files are of, to show it with its costs.", Path, "MODEL", reads=True),
    "costs": Option("Measure what each line of the program costs.", bool, default=True, negatable=True),
    "html": Option(
        "Write a page: the program beside its IR after each pass, and its assembly; -: standard output.", Path, "FILE",
        writes=True,
    ),
    "title": Option("Title of the page.", of="TEXT", shown="the program's name"),
    # What is shown and written.
    "output": Option(
        "Write the result to this file; -: standard output.", Path, "FILE", short="-o", writes=True,
        differs={
            "optimize": Difference("As CmdStan's CSV."),
            "laplace": Difference("As CmdStan's CSV."),
            "sample": Difference("As CmdStan's CSV while the chains run: FILE_1 and so on for several."),
            "pathfinder": Difference("As CmdStan's CSV."),
            "generate-quantities": Difference("As CmdStan's CSV, one for each chain."),
            "report": Difference(default=Path("report.html")),
            "profile": Difference(
                "As CSV; a number is added if a parallel run has written it.", default=Path("profile.csv")
            ),
            "build": Difference(default=None, shown="NAME_model.so in this folder"),
            "stan-opt": Difference(default=STANDARD_STREAM),
        },
    ),
    "no_output": Option("Write no CSV file.", bool, default=False),
    "json": Option(
        "JSON instead of text; or, with a name (=FILE, or one that ends in .json), JSON in that file, too.",
        of="FILE", writes=True, alone=STANDARD_STREAM,
        differs={
            "check": Difference("A line for each message."),
            "stan-opt": Difference("Of --list-passes and --timing."),
        },
    ),
    "trace": Option("Write the last passes as a Chrome trace.", Path, "FILE", writes=True),
    "flame": Option("Write a flame graph: .svg, or .html with the table.", Path, "FILE", writes=True),
    "speedscope": Option("Write JSON for speedscope.app.", Path, "FILE", writes=True),
    "save": Option("Also save all of the result, for ulam.load or ulam trace.", Path, "FILE", writes=True),
    "rows": Option(
        "Most rows of the table; 0: all.", int, "N", 50, least=0, differs={"report": Difference(default=2000)}
    ),
    "refresh": Option(
        "Show progress every so many iterations; 0: never.", int, "N", shown="100 on a terminal, else 0", least=0
    ),
    "color": Option("Colours and progress.", default="auto", choices=("auto", "always", "never")),
    # stan-opt.
    "input": Option(
        "A .stan or .mlir file; -: standard input, as MLIR.", of="INPUT", default=STANDARD_STREAM, argument=True
    ),
    "input_format": Option(
        "What the input is, if its name does not say so.", short="-f", choices=("stan", "mlir"), name="format"
    ),
    "pass_pipeline": Option(
        "Passes to run: a{option=value option=value},b,... or builtin.module(a,b,...).", of="PIPELINE", short="-p",
        old_names=("--passes",),
    ),
    "target": Option("What to print.", default="mlir", short="-t", choices=("mlir", "stan", "llvm", "asm")),
    "unit": Option(
        "Lower this unit of a Stan program.", of="UNIT", shown="gradient_propto with -t llvm and asm, else none",
        differs={"explain-compile": Difference(default="gradient_propto")},
    ),
    "list_passes": Option("Print what passes there are, with their options, and stop.", bool, default=False),
    "print_pipeline": Option("Print the pipeline and stop.", bool, default=False),
    "print_ir_before_all": Option(
        "Print the IR before each pass, and each step of a pass, to standard error.", bool, default=False,
        old_names=("--mlir-print-ir-before-all",),
    ),
    "print_ir_after_all": Option(
        "Print the IR after each pass, and each step of a pass, to standard error.", bool, default=False,
        old_names=("--mlir-print-ir-after-all",),
    ),
    "print_ir_after_change": Option(
        "Print the IR after those that change it, to standard error.", bool, default=False,
        old_names=("--mlir-print-ir-after-change",),
    ),
    "timing": Option(
        "Show the CPU time of each pass, and of each step of a pass, on standard error.", bool, default=False,
        old_names=("--mlir-timing",),
    ),
    "verify_each": Option("Verify the IR, dominance included, after each pass.", bool, default=False),
    "explain": Option(
        "Print, per line of the program, what passes did and not; json: a line for each remark.",
        choices=("text", "json"), alone="text",
    ),
    "debug_transformed_mir_pretty": Option("Print the program as it is before the passes.", bool, default=False),
    "debug_optimized_mir_pretty": Option("Print the program as it is after the passes.", bool, default=False),
    "debug_mem_patterns": Option("Print which containers are static, and why others are not.", bool, default=False),
    "split_input_file": Option("Treat parts between `// -----` lines one by one.", bool, default=False),
    "verify_diagnostics": Option("Check messages against `expected-error {{...}}` comments.", bool, default=False),
    "allow_unregistered_dialect": Option("Accept ops of unknown dialects.", bool, default=False),
    "generic": Option(
        "Print ops in generic syntax.", bool, default=False, old_names=("--print-op-generic", "--mlir-print-op-generic")
    ),
    "locations": Option(
        "Print locations (-t llvm, asm: lines).", bool, default=False,
        old_names=("--print-debuginfo", "--mlir-print-debuginfo"),
    ),
    "version": Option("Show the versions, and stop.", bool, default=False),
}  # fmt: skip


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


# ---------------------------------------------------------------- names and help


def long_name(name: str) -> str:
    """`--opt-level` of `opt_level`."""
    own = OPTIONS[name].name if name in OPTIONS else ""
    return f"--{(own or name).replace('_', '-')}"


def flags(name: str) -> tuple[str, ...]:
    """All spellings of an option, the old ones last: `-o`, `--output`; a negatable one as `--a/--no-a`."""
    option = OPTIONS[name]
    shown = f"{long_name(name)}/{long_name(f'no_{name}')}" if option.negatable else long_name(name)
    return (*filter(None, (option.short,)), shown, *option.old_names)


def told_name(name: str) -> str:
    """What a message calls it."""
    option = OPTIONS[name]
    return option.of if option.argument else long_name(name)


def help_rows(command: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Arguments and options as help lists them: how it is written, and what it means."""
    entry = STAN_OPT if command == "stan-opt" else COMMANDS[command]
    arguments = [(_written(name), OPTIONS[name].help) for name in entry.arguments if not OPTIONS[name].hidden]
    options = [name for name in entry.names() if not OPTIONS[name].argument and not OPTIONS[name].hidden]
    return arguments, [(_written(name), told(name, command)) for name in options]


def _written(name: str) -> str:
    option = OPTIONS[name]
    many = "..." if option.argument and option.type == list[Path] else ""
    if option.argument:
        return option.of + many
    names = [*filter(None, (option.short,)), long_name(name)]
    if option.negatable:
        return f"{', '.join(names)} / {long_name(f'no_{name}')}"
    value = "|".join(option.choices) or option.of
    value = f"[={value}]" if option.alone is not None else f" {value}" if value else ""
    return ", ".join(names) + value


def told(name: str, command: str = "") -> str:
    """What an option means, in a command or in general, with its default and limits."""
    option = OPTIONS[name]
    own = option.differs.get(command)
    facts = []
    default = option.default_in(command)
    if option.negatable:
        facts.append(f"default: {long_name(name if default else f'no_{name}')}")
    elif default is not None and option.type is not bool:
        facts.append(f"default: {default}")
    elif shown := (own.shown if own is not None else "") or option.shown:
        facts.append(f"default: {shown}")
    if option.least is not None and option.most is not None:
        facts.append(f"{option.least} to {option.most}")
    elif option.least:
        facts.append(f"at least {option.least}")
    text = f"{option.help} {own.help}" if own is not None and own.help else option.help
    return f"{text}  [{'; '.join(facts)}]" if facts else text


# ---------------------------------------------------------------- what was given


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
