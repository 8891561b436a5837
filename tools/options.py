"""The table of options of `ulam` and `stan-opt`, and how an option is told in help texts.

An option has one row: its names, its type, its default and what it means are the same in every command that takes it.
Where a command must differ, `differs` of that row says so. `commands.py` has the commands that take them.

Imports nothing but a little of the standard library: every start of `ulam` pays for it.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def written(name: str) -> str:
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
