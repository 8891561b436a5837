"""The command `ulam`: parses arguments, calls a function of `ulam.tools.ulam_*`, turns errors into messages.

Exit status: 0 done; 1 the program, the data or the run failed; 2 wrong usage; 70 an error inside ulam; 130 interrupted.
Everything but typer is imported when a command runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ulam.tools.exits import EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, internal_error

if TYPE_CHECKING:
    from ulam.runtime.errors import InitializationError

app = typer.Typer(
    name="ulam",
    help="Compiles Stan programs to native code and runs them.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

ModelFile = Annotated[Path, typer.Argument(help="A Stan program.", metavar="MODEL")]
DataFile = Annotated[str | None, typer.Option("--data", "-d", help="Data: a JSON file, or JSON text.")]
Level = Annotated[int, typer.Option("--opt-level", "-O", min=0, max=4, help="Optimization level.")]
IncludePath = Annotated[
    list[Path] | None, typer.Option("--include-path", "-I", help="Where to look for included files.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of all random numbers.")]
Refresh = Annotated[
    int | None,
    typer.Option(min=0, help="Show progress every so many iterations; 0: never (default: 100 on a terminal)."),
]
Rows = Annotated[int, typer.Option(min=0, help="Most rows of the table; 0: all.")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither use nor fill the cache of compiled code.")]


@app.command()
def optimize(
    model: ModelFile,
    data: DataFile = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the estimate as CmdStan's CSV.")] = None,
    json: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the result as JSON; -: to standard output, no table.")
    ] = None,
    algorithm: Annotated[str, typer.Option(help="lbfgs, bfgs or newton.")] = "lbfgs",
    jacobian: Annotated[
        bool, typer.Option("--jacobian/--no-jacobian", help="Mode over unconstrained parameters (MAP) instead of MLE.")
    ] = False,
    init: Annotated[
        str | None,
        typer.Option(help="Initial values: a radius (default 2), or a JSON file or text with some or all parameters."),
    ] = None,
    seed: Seed = 1234,
    iter: Annotated[int | None, typer.Option(min=1, show_default="2000", help="Most iterations.")] = None,
    init_alpha: Annotated[float | None, typer.Option(show_default="0.001", help="First step size.")] = None,
    tol_obj: Annotated[float | None, typer.Option(show_default="1e-12", help="Change of the log density.")] = None,
    tol_rel_obj: Annotated[
        float | None, typer.Option(show_default="1e4", help="Relative change, in units of 2.2e-16.")
    ] = None,
    tol_grad: Annotated[float | None, typer.Option(show_default="1e-8", help="Norm of the gradient.")] = None,
    tol_rel_grad: Annotated[
        float | None, typer.Option(show_default="1e7", help="Relative gradient, in units of 2.2e-16.")
    ] = None,
    tol_param: Annotated[float | None, typer.Option(show_default="1e-8", help="Change of the parameters.")] = None,
    history_size: Annotated[
        int | None, typer.Option(min=1, show_default="5", help="Steps that L-BFGS remembers.")
    ] = None,
    save_iterations: Annotated[bool, typer.Option("--save-iterations", help="CSV with a row per iteration.")] = False,
    starts: Annotated[int, typer.Option(min=1, help="Run from so many initial values; show the modes found.")] = 1,
    jobs: Annotated[int | None, typer.Option(min=1, help="Starts that run at a time (default: processors).")] = None,
    standard_errors: Annotated[
        bool, typer.Option("--standard-errors", help="Show standard errors, from the Hessian.")
    ] = False,
    refresh: Refresh = None,
    rows: Rows = 50,
    opt_level: Level = 3,
    include_path: IncludePath = None,
    no_cache: NoCache = False,
) -> int:
    """Finds the maximum-likelihood or MAP estimate."""
    from ulam.tools.ulam_optimize import OptimizeCommand

    options = {
        "iter": iter,
        "init_alpha": init_alpha,
        "tol_obj": tol_obj,
        "tol_rel_obj": tol_rel_obj,
        "tol_grad": tol_grad,
        "tol_rel_grad": tol_rel_grad,
        "tol_param": tol_param,
        "history_size": history_size,
    }
    command = OptimizeCommand(
        model=model,
        data=data,
        output=output,
        json=json,
        algorithm=algorithm,
        jacobian=jacobian,
        init=init,
        seed=seed,
        options=options,
        save_iterations=save_iterations,
        starts=starts,
        jobs=jobs,
        standard_errors=standard_errors,
        refresh=refresh,
        rows=rows,
        opt_level=opt_level,
        include_paths=tuple(include_path or ()),
        cache=not no_cache,
    )
    return command.run()


@app.command()
def laplace(
    model: ModelFile,
    data: DataFile = None,
    mode: Annotated[
        str | None,
        typer.Option(help="The mode: CSV or JSON of optimize, or JSON with the parameters (default: optimize first)."),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="How many draws.")] = 1000,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the draws as CmdStan's CSV.")] = None,
    jacobian: Annotated[
        bool, typer.Option("--jacobian/--no-jacobian", help="Approximate with the change of variables, or without.")
    ] = True,
    calculate_lp: Annotated[
        bool, typer.Option("--calculate-lp/--no-calculate-lp", help="Compute the log density of each draw.")
    ] = True,
    seed: Seed = 1234,
    refresh: Refresh = None,
    rows: Rows = 50,
    opt_level: Level = 3,
    include_path: IncludePath = None,
    no_cache: NoCache = False,
) -> int:
    """Draws from the normal approximation at the mode."""
    from ulam.tools.ulam_laplace import LaplaceCommand

    command = LaplaceCommand(
        model=model,
        data=data,
        mode=mode,
        draws=draws,
        output=output,
        jacobian=jacobian,
        calculate_lp=calculate_lp,
        seed=seed,
        refresh=refresh,
        rows=rows,
        opt_level=opt_level,
        include_paths=tuple(include_path or ()),
        cache=not no_cache,
    )
    return command.run()


@app.command()
def profile(
    model: ModelFile,
    data: DataFile = None,
    gradients: Annotated[int, typer.Option(min=1, help="Gradients at an initial point.")] = 1000,
    optimize: Annotated[bool, typer.Option("--optimize", help="Measure an optimization instead.")] = False,
    algorithm: Annotated[str, typer.Option(help="Of --optimize: lbfgs, bfgs or newton.")] = "lbfgs",
    draws: Annotated[int, typer.Option(min=0, help="Generated quantities so many times at the end.")] = 1,
    init: Annotated[
        str | None,
        typer.Option(help="Initial values: a radius (default 2), or a JSON file or text with some or all parameters."),
    ] = None,
    seed: Seed = 1234,
    threads: Annotated[
        int,
        typer.Option("--threads", "--chains", min=1, help="Threads that each do all of it, at points of their own."),
    ] = 1,
    auto: Annotated[
        str | None, typer.Option(help="Regions around statements, blocks or functions instead of profile statements.")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="CSV file; a number is added if a parallel run has written it.")
    ] = Path("profile.csv"),
    no_output: Annotated[bool, typer.Option("--no-output", help="Write no CSV file.")] = False,
    columns: Annotated[str, typer.Option(help="Columns of the CSV file: design or cmdstan.")] = "design",
    trace: Annotated[Path | None, typer.Option(help="Write the last passes as a Chrome trace.")] = None,
    flame: Annotated[Path | None, typer.Option(help="Write a flame graph: .svg, or .html with the table.")] = None,
    speedscope: Annotated[Path | None, typer.Option(help="Write JSON for speedscope.app.")] = None,
    json: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write all as JSON; -: to standard output, no table.")
    ] = None,
    by_phase: Annotated[bool, typer.Option("--by-phase", help="A row for each phase.")] = False,
    lines: Annotated[bool, typer.Option("--lines", help="Sample the program by line, without regions.")] = False,
    opt_level: Level = 3,
    include_path: IncludePath = None,
    no_cache: NoCache = False,
) -> int:
    """Measures the regions of a program that profile statements mark."""
    from ulam.tools.ulam_profile import ProfileCommand

    command = ProfileCommand(
        model=model,
        data=data,
        gradients=gradients,
        optimize=optimize,
        algorithm=algorithm,
        draws=draws,
        init=init,
        seed=seed,
        threads=threads,
        auto=auto,
        output=None if no_output else output,
        columns=columns,
        trace=trace,
        flame=flame,
        speedscope=speedscope,
        json=json,
        by_phase=by_phase,
        lines=lines,
        opt_level=opt_level,
        include_paths=tuple(include_path or ()),
        cache=not no_cache,
    )
    return command.run()


@app.command()
def bench(
    model: ModelFile,
    data: DataFile = None,
    vs: Annotated[Path | None, typer.Option(metavar="FILE", help="The other version (default: the same file).")] = None,
    vs_data: Annotated[str | None, typer.Option(help="Data of the other version (default: the same).")] = None,
    opt_level: Level = 3,
    vs_opt_level: Annotated[
        int | None, typer.Option(min=0, max=4, help="Optimization level of the other version (default: the same).")
    ] = None,
    gradients: Annotated[
        int | None,
        typer.Option(min=1, show_default="as many as take 10 ms", help="Gradients of each version in a round."),
    ] = None,
    rounds: Annotated[int, typer.Option(min=2, help="Rounds in which the versions take turns.")] = 40,
    init: Annotated[
        str | None,
        typer.Option(help="Where: a radius (default 2), or a JSON file or text with some or all parameters."),
    ] = None,
    seed: Seed = 1234,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
    include_path: IncludePath = None,
) -> int:
    """Times two versions of a model against each other."""
    from ulam.tools.ulam_bench import BenchCommand

    command = BenchCommand(
        model=model,
        data=data,
        vs=vs,
        vs_data=vs_data,
        opt_level=opt_level,
        vs_opt_level=vs_opt_level,
        gradients=gradients,
        rounds=rounds,
        init=init,
        seed=seed,
        json=json,
        include_paths=tuple(include_path or ()),
    )
    return command.run()


@app.command("log-density")
def log_density(
    model: ModelFile,
    params: Annotated[
        str,
        typer.Option(help="Unconstrained parameters: a JSON file or text with an array, or an array of arrays."),
    ],
    data: DataFile = None,
    jacobian: Annotated[bool, typer.Option("--jacobian/--no-jacobian", help="Add the change of variables.")] = True,
    propto: Annotated[bool, typer.Option("--propto/--no-propto", help="Drop constant terms.")] = True,
    seed: Seed = 1234,
    opt_level: Level = 3,
    include_path: IncludePath = None,
    no_cache: NoCache = False,
) -> int:
    """Prints the log density and its gradient as JSON.

    One line for each point of unconstrained parameters.
    """
    from ulam.tools.ulam_log_density import print_log_density

    return print_log_density(
        model,
        params,
        data,
        jacobian=jacobian,
        propto=propto,
        seed=seed,
        opt_level=opt_level,
        include_paths=tuple(include_path or ()),
        cache=not no_cache,
    )


@app.command(context_settings={"ignore_unknown_options": True})
def trace(
    model: Annotated[Path, typer.Argument(help="A Stan program, or a saved trace.", metavar="MODEL")],
    more_args: Annotated[list[str] | None, typer.Argument(hidden=True, metavar="JSON")] = None,
    data: DataFile = None,
    function: Annotated[str | None, typer.Option("--function", "-f", help="The function to call.")] = None,
    args: Annotated[
        list[str] | None, typer.Option(metavar="JSON...", help="Its arguments: numbers or arrays, in JSON.")
    ] = None,
    density: Annotated[bool, typer.Option("--density", help="Trace the log density of the model.")] = False,
    theta: Annotated[
        str | None,
        typer.Option(
            "--theta",
            "--unconstrained",
            help="Of --density: unconstrained parameters, numbers with commas, or a JSON file or text with an array.",
        ),
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(help="Of --density: a radius (default 2), or a JSON file or text with some or all parameters."),
    ] = None,
    jacobian: Annotated[bool, typer.Option("--jacobian/--no-jacobian", help="Add the change of variables.")] = True,
    propto: Annotated[bool, typer.Option("--propto/--no-propto", help="Drop constant terms.")] = False,
    seed: Seed = 1234,
    scripted: Annotated[
        str | None, typer.Option(metavar="JSON", help="Uniform numbers to draw, an array, instead of --seed.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Enter this function, and others so named, no others.")
    ] = None,
    levels: Annotated[
        int | None, typer.Option("--levels", "-n", min=1, show_default="all", help="Levels of calls that are shown.")
    ] = None,
    style: Annotated[str, typer.Option(help="seed, or full: with types and reasons.")] = "seed",
    source: Annotated[bool, typer.Option("--source", help="Show line and column of each node.")] = False,
    format: Annotated[
        str | None,
        typer.Option(show_default="by the name of the output, else text", help="text, json, dot, svg, chrome or stan."),
    ] = None,
    max_nodes: Annotated[
        int, typer.Option(min=1, help="Most nodes of dot, svg and stan; of pictures the middle is left out.")
    ] = 2000,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file.")] = None,
    save: Annotated[Path | None, typer.Option(help="Also save the trace, for later.")] = None,
    diff: Annotated[
        Path | None,
        typer.Option(metavar="OTHER", help="Show how another run differs: a saved trace, or a version of the program."),
    ] = None,
    rtol: Annotated[float, typer.Option(help="Of --diff: relative difference of reals that are the same.")] = 0,
    opt_level: Level = 3,
    include_path: IncludePath = None,
    no_cache: NoCache = False,
) -> int:
    """Shows what a function, or the log density, does: every operation, branch and call."""
    from ulam.tools.ulam_trace import TraceCommand

    command = TraceCommand(
        model=model,
        data=data,
        function=function,
        args=args or [],
        more_args=more_args or [],
        density=density,
        theta=theta,
        init=init,
        jacobian=jacobian,
        propto=propto,
        seed=seed,
        scripted=scripted,
        only=only or [],
        levels=levels,
        style=style,
        source=source,
        format=format,
        max_nodes=max_nodes,
        output=output,
        save=save,
        diff=diff,
        rtol=rtol,
        opt_level=opt_level,
        include_paths=tuple(include_path or ()),
        cache=not no_cache,
    )
    return command.run()


@app.command()
def explain(
    model: ModelFile,
    data: DataFile = None,
    init: Annotated[
        str | None,
        typer.Option(help="Where: a radius (default 2), or a JSON file or text with some or all parameters."),
    ] = None,
    unconstrained: Annotated[
        str | None,
        typer.Option(
            help="Where, as unconstrained parameters: numbers with commas, or a JSON file or text with an array."
        ),
    ] = None,
    tries: Annotated[
        int, typer.Option(min=1, help="Draw so many points; explain the first that fails, count all by statement.")
    ] = 1,
    seed: Seed = 1234,
    jacobian: Annotated[bool, typer.Option("--jacobian/--no-jacobian", help="Add the change of variables.")] = True,
    propto: Annotated[
        bool, typer.Option("--propto", help="Show what ~ keeps, and the constants that it drops.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
    opt_level: Level = 3,
    include_path: IncludePath = None,
    no_cache: NoCache = False,
) -> int:
    """Explains a log density that is NaN or infinite: the statement, its elements, where it began.

    Exit status 1 if the density, or its gradient, is not finite, or the point is rejected.
    """
    from ulam.tools.ulam_explain import ExplainCommand

    command = ExplainCommand(
        model=model,
        data=data,
        init=init,
        unconstrained=unconstrained,
        tries=tries,
        seed=seed,
        jacobian=jacobian,
        propto=propto,
        json=json,
        opt_level=opt_level,
        include_paths=tuple(include_path or ()),
        cache=not no_cache,
    )
    return command.run()


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(help="Stan programs.", metavar="FILE...")],
    json: Annotated[bool, typer.Option("--json", help="One JSON object per message.")] = False,
    include_path: IncludePath = None,
) -> int:
    """Reports syntax and type errors."""
    from ulam.tools.ulam_check import check_files

    return check_files(files, tuple(include_path or ()), as_json=json)


@app.command()
def info(
    file: Annotated[Path, typer.Argument(help="A Stan program.", metavar="FILE")], include_path: IncludePath = None
) -> int:
    """Prints what a program declares as JSON."""
    from ulam.tools.ulam_check import print_info

    return print_info(file, tuple(include_path or ()))


@app.command()
def doctor() -> int:
    """Shows versions, and whether compiling works here."""
    from ulam.tools.ulam_doctor import examine

    return examine()


def _version(value: bool) -> None:
    if value:
        from ulam.runtime.versions import ulam_version

        print(f"ulam {ulam_version()}")
        raise typer.Exit


@app.callback()
def _options(  # pyright: ignore[reportUnusedFunction]
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


# ---------------------------------------------------------------- running


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    try:
        status = app(args=list(argv) if argv is not None else None, prog_name="ulam", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else EXIT_OK
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILURE
    except (KeyboardInterrupt, typer.Abort):
        print("ulam: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except Exception as error:
        show = getattr(error, "show", None)
        if show is not None and hasattr(error, "exit_code"):  # typer's own: wrong usage
            show()
            return EXIT_USAGE
        return _failure(error)


def _failure(error: Exception) -> int:
    """A user's mistake is a message; anything else is a mistake of ours."""
    from ulam.runtime.errors import (
        ArgumentError,
        CompileError,
        InitializationError,
        InternalCompilerError,
        UlamError,
    )

    if isinstance(error, InternalCompilerError):
        return internal_error("ulam", error)
    if isinstance(error, CompileError):
        print(error, file=sys.stderr)
    elif isinstance(error, (UlamError, ArgumentError, NotImplementedError, MemoryError)):
        for line in str(error).splitlines() or [type(error).__name__]:
            print(f"ulam: error: {line}", file=sys.stderr)
        if isinstance(error, InitializationError):
            _explain(error)
    elif isinstance(error, OSError) and error.filename is not None:
        print(f"ulam: error: {error.filename}: {error.strerror}", file=sys.stderr)
    elif isinstance(error, OSError):
        print(f"ulam: error: {error}", file=sys.stderr)
    else:
        return internal_error("ulam", error)
    return EXIT_FAILURE


def _explain(error: InitializationError) -> None:
    """Shows why the first initial point failed, where that is known. The error itself was shown before."""
    try:
        found = error.explain()
    except Exception as problem:
        print(f"ulam: note: no explanation: {type(problem).__name__}: {problem}", file=sys.stderr)
        return
    if found is not None:
        from ulam.runtime.explain.terminal import print_explanation

        print("\nThe first point that failed:", file=sys.stderr)
        print_explanation(found, sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
