"""`stan-opt`: reads Stan programs or MLIR, runs passes, prints the result: IR, or what a report was asked for.

Exit status: 0 done; 1 the input is wrong (messages on standard error); 2 wrong usage; 70 an error inside ulam.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ulam.passes.units import DEFAULT_UNIT, UNITS, UnitKind
from ulam.runtime import terminal
from ulam.runtime.errors import Interrupted
from ulam.runtime.named_text import NamedText
from ulam.runtime.output_files import check_writable, write_text
from ulam.tools.commands import EMPTY_NAME, STAN_OPT, with_values
from ulam.tools.exits import (
    EXIT_FAILURE,
    EXIT_OK,
    EXIT_USAGE,
    UsageError,
    can_show_all,
    discard_output,
    internal_error,
    interrupted,
    named,
)
from ulam.tools.files import overwritten
from ulam.tools.messages import show, tell
from ulam.tools.options import OPTIONS, STANDARD_STREAM, flags, long_name, told

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from ulam.passes.known_data import KnownData
    from ulam.passes.remarks import Remark
    from ulam.tools.stan_opt_passes import PassTimes
    from ulam.tools.verify_diagnostics import Message

SEPARATOR = re.compile(r"^[ \t]*// -----.*\n?", re.MULTILINE)


class InputError(Exception):
    """The input is wrong; the messages say where."""

    def __init__(self, messages: list[Message]) -> None:
        super().__init__(messages)
        self.messages = messages


@dataclass
class Piece:
    """A part of the input between `// -----` lines."""

    text: str
    first_line: int


@dataclass
class Run:
    """What the command line asks for."""

    name: str
    is_stan: bool
    passes: list[ModulePass]
    arguments: argparse.Namespace
    timing: PassTimes | None = None
    dumps: TextIO = field(default_factory=lambda: sys.stderr)


def main(argv: Sequence[str] | None = None, begin: Callable[[], None] | None = None) -> int:
    """The command. `begin` is called first, where an interrupt is already a message."""
    can_show_all(sys.stdout)
    try:
        if begin is not None:
            begin()
        from ulam.runtime.interpreter_settings import compiling
        from ulam.runtime.interrupts import as_command

        def run() -> int:
            with compiling():
                return _main(argv)

        return as_command(run)
    except BrokenPipeError:  # the reader of our output has gone
        discard_output()
        return EXIT_FAILURE
    except OSError as error:
        if (file := named(error).filename) is None:
            return internal_error("stan-opt", error)
        tell("error", f"{file}: {error.strerror}", "stan-opt")
        return EXIT_FAILURE
    except (KeyboardInterrupt, Interrupted):
        return interrupted("stan-opt")
    except Exception as error:
        return internal_error("stan-opt", error)


def _parser() -> argparse.ArgumentParser:
    """The command line, by the table of options."""
    parser = argparse.ArgumentParser("stan-opt", description=STAN_OPT.help)
    for name in STAN_OPT.names():
        option = OPTIONS[name]
        default, meaning = option.default_in("stan-opt"), told(name, "stan-opt")
        if option.argument:
            parser.add_argument(name, nargs="?", default=default, metavar=option.of, help=meaning)
        elif option.negatable:
            parser.add_argument(
                long_name(name), dest=name, action=argparse.BooleanOptionalAction, default=default, help=meaning
            )
        elif option.type is bool:
            parser.add_argument(*flags(name), dest=name, action="store_true", help=meaning)
        elif option.type in (list[Path], list[str]):
            parser.add_argument(*flags(name), dest=name, action="append", default=[], metavar=option.of, help=meaning)
        else:
            choices = tuple(UNITS) if name == "unit" else option.choices or None
            metavar = option.of or "|".join(option.choices)
            parser.add_argument(
                *flags(name), dest=name, choices=choices, default=default, metavar=metavar, help=meaning
            )
    return parser


def _main(argv: Sequence[str] | None) -> int:
    from ulam.passes.pipeline_order import check_order
    from ulam.passes.pipelines import PipelineError, parse_pipeline, pipeline_text

    try:
        arguments = _parser().parse_args(list(with_values(sys.argv[1:] if argv is None else argv)))
    except SystemExit as stop:
        return EXIT_OK if not stop.code else EXIT_USAGE
    terminal.color = arguments.color
    if arguments.version:
        print(_versions())
        return EXIT_OK
    if arguments.list_passes:
        return _list_passes(arguments)
    if arguments.external:
        from ulam.tools.external_functions import register_given

        try:
            register_given(arguments.external)
        except UsageError as error:
            tell("error", str(error), "stan-opt")
            return EXIT_USAGE
    pipeline = arguments.pass_pipeline
    try:
        text = _choose_passes(arguments)
        passes = parse_pipeline(text)
    except PipelineError as error:
        return _usage(str(error))
    if arguments.print_pipeline:
        print(pipeline_text(passes))
        return EXIT_OK
    if "specialize-data" in text and not _data_of(arguments, passes):
        what = "level 4" if pipeline is None else "specialize-data"
        return _usage(f"{what} specialises the program on its data: give them with --data FILE")
    is_stdin = arguments.input == STANDARD_STREAM
    if is_stdin and arguments.data == STANDARD_STREAM:
        return _usage("standard input can be read once, and both the input and --data are -")
    if wrong := _wrong_output(arguments):
        return wrong
    content = _content(arguments)
    if content is None:
        return EXIT_FAILURE
    given = arguments.input_format
    is_stan = given == "stan" or (given is None and arguments.input.endswith(".stan"))
    if is_stan and pipeline is not None:
        try:
            check_order(pipeline, ours=False)
        except PipelineError as error:
            return _usage(str(error))
    run = Run("<stdin>" if is_stdin else arguments.input, is_stan, passes, arguments)
    if arguments.timing:
        from ulam.tools.stan_opt_passes import PassTimes

        run.timing = PassTimes()
    pieces = list(_pieces(content)) if arguments.split_input_file else [Piece(content, 1)]
    if arguments.verify_diagnostics:
        return _verify_diagnostics(run, pieces)
    return _print_pieces(run, pieces)


def _content(arguments: argparse.Namespace) -> str | None:
    """The text of the input; data from standard input are read, too. None, which is told, if it cannot be read."""
    try:
        content = sys.stdin.read() if arguments.input == STANDARD_STREAM else _read(arguments.input)
        if arguments.data == STANDARD_STREAM:
            arguments.data = NamedText(sys.stdin.read(), "<stdin>")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        tell("error", f"cannot read '{arguments.input}': {reason}", "stan-opt")
        return None
    return content


def _choose_passes(arguments: argparse.Namespace) -> str:
    """The passes that run, as text. Raises PipelineError.

    The arguments get the level that numbers and units are like, and the passes of units that it has chosen.
    """
    from ulam.passes.levels import find_level
    from ulam.passes.pipeline_order import split
    from ulam.passes.pipelines import DEFAULT_LEVEL, LEVELS, PipelineError, level_pipeline

    asked = arguments.opt_level
    arguments.level, arguments.unit_passes = DEFAULT_LEVEL, None
    text = ""
    if asked is not None and asked.isdecimal():
        if (level := int(asked)) not in LEVELS:
            raise PipelineError(f"--opt-level must be {min(LEVELS)} to {max(LEVELS)}, or a level's name, found {asked}")
        arguments.level, text = level, level_pipeline(level)
    elif asked is not None:
        own = find_level(asked)
        arguments.level = own.like
        text, arguments.unit_passes = split(own.passes)
    return text if arguments.pass_pipeline is None else arguments.pass_pipeline


def _data_of(arguments: argparse.Namespace, passes: list[ModulePass]) -> str | NamedText | None:
    """The data that were given, on the command line or to a pass."""
    given = [arguments.data, *(getattr(entry, "data", None) for entry in passes)]
    return next((entry for entry in given if entry), None)


def _wrong_output(arguments: argparse.Namespace) -> int:
    """The exit status if the result cannot be written, after the message; else 0."""
    inputs = [("the input", arguments.input), ("--data", arguments.data or "")]
    for option, output in (("--output", arguments.output), ("--json", arguments.json)):
        if output is None or output == STANDARD_STREAM:
            continue
        if not output:
            return _usage(f"{option}: {EMPTY_NAME}")
        if (lost := overwritten(output, inputs, arguments.include_path)) is not None:
            return _usage(f"{option} '{output}' is {lost}, which would be lost")
        try:
            check_writable(output)
        except OSError as error:
            tell("error", f"cannot write '{output}': {error.strerror}", "stan-opt")
            return EXIT_FAILURE
    return EXIT_OK


def _list_passes(arguments: argparse.Namespace) -> int:
    from ulam.tools.stan_opt_passes import list_passes

    if wrong := _wrong_output(arguments):
        return wrong
    text = list_passes(as_json=arguments.json == STANDARD_STREAM)
    if arguments.json not in (None, STANDARD_STREAM):
        write_text(arguments.json, list_passes(as_json=True))
    _write(arguments.output, text)
    return EXIT_OK


def _versions() -> str:
    from importlib.metadata import version

    from ulam.runtime.versions import ulam_version

    return f"stan-opt (ulam {ulam_version()}, xDSL {version('xdsl')}, llvmlite {version('llvmlite')})"


def _write(output: str, text: str) -> None:
    if output == STANDARD_STREAM:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_text(output, text)


def _usage(message: str) -> int:
    tell("error", message, "stan-opt")
    return EXIT_USAGE


def _read(path: str) -> str:
    """The text of a file. Raises OSError, and ValueError with the mend if it is no text, or not in UTF-8."""
    from ulam.frontend.encoding import problem_of, read_text

    text = read_text(path).replace("\r\n", "\n")
    if (problem := problem_of(text)) is not None and (problem.is_fatal or not path.endswith(".stan")):
        raise ValueError(f"{problem.message}; {problem.help}")
    return text


def _pieces(text: str) -> Iterator[Piece]:
    start, line = 0, 1
    for separator in SEPARATOR.finditer(text):
        piece = text[start : separator.start()]
        yield Piece(piece, line)
        line += piece.count("\n") + separator[0].count("\n")
        start = separator.end()
    yield Piece(text[start:], line)


def _print_pieces(run: Run, pieces: list[Piece]) -> int:
    status = EXIT_OK
    results: list[str] = []
    for piece in pieces:
        try:
            results.append(_process(run, piece))
        except InputError as error:
            status = EXIT_FAILURE
            for message in error.messages:
                where = f"{run.name}:{message.line}: " if message.line is not None else f"{run.name}: "
                is_rendered = message.text.startswith(f"{run.name}:")
                show(message.text if is_rendered else f"{where}{message.severity}: {message.text}")
    output = ("" if run.arguments.explain == "json" else "// -----\n").join(results)
    _write(run.arguments.output, output)
    if run.timing is not None:
        run.dumps.write(run.timing.report(as_json=run.arguments.json == STANDARD_STREAM))
        if run.arguments.json not in (None, STANDARD_STREAM):
            write_text(run.arguments.json, run.timing.report(as_json=True))
    return status


def _verify_diagnostics(run: Run, pieces: list[Piece]) -> int:
    from ulam.tools.verify_diagnostics import differences, expected_messages

    status = EXIT_OK
    for piece in pieces:
        try:
            _process(run, piece)
            reported: list[Message] = []
        except InputError as error:
            reported = error.messages
        for line, problem in differences(expected_messages(piece.text, piece.first_line), reported):
            status = EXIT_FAILURE
            where = f"{run.name}:{line}" if line is not None else run.name
            show(f"{where}: error: {problem}")
    return status


# ---------------------------------------------------------------- one piece


def _process(run: Run, piece: Piece) -> str:
    """The text that a piece of input becomes. Raises InputError."""
    from ulam.passes.known_data import specializing_on
    from ulam.passes.remarks import collect_remarks
    from ulam.runtime.modules.reading import program_context

    context = program_context(allow_unregistered=run.arguments.allow_unregistered_dialect)
    module = _stan_module(run, piece) if run.is_stan else _mlir_module(run, piece, context)
    arguments = run.arguments
    reports: list[str] = []
    known = _known_data(run, piece) if run.is_stan else None
    with _Messages(run, piece), collect_remarks() as remarks, specializing_on(known), _observed(run):
        _verify(module)
        if arguments.debug_transformed_mir_pretty:
            reports.append(_mir_pretty(module))
        _run_passes(run, module, context)
        if arguments.debug_optimized_mir_pretty:
            reports.append(_mir_pretty(module))
        if arguments.debug_mem_patterns:
            reports.append(_memory_report(module))
        if arguments.explain is not None:
            if arguments.unit is not None or (run.passes and arguments.pass_pipeline is None):
                _lowered(module, UNITS[arguments.unit or DEFAULT_UNIT.name], arguments)
                if run.is_stan:
                    remarks += _chosen_layouts(run, piece)
            reports.append(_explanation(run, piece, remarks))
        return "\n".join(reports) if reports else _printed(run, module)


def _run_passes(run: Run, module: ModuleOp, context: Context) -> None:
    from ulam.passes.running import run_passes

    run_passes(context, module, run.passes)
    if run.passes:
        _verify(module)


def _observed(run: Run) -> AbstractContextManager[None]:
    """Passes that run inside are printed, verified and timed as the command line asks for."""
    asked = run.arguments
    dumps = asked.print_ir_before_all, asked.print_ir_after_all, asked.print_ir_after_change
    if not (any(dumps) or asked.verify_each or run.timing is not None):
        return nullcontext()
    from ulam.passes.running import PassObserver, observed_by
    from ulam.tools.stan_opt_passes import Dumps, Observers, Verifier

    observers: list[PassObserver] = []
    if any(dumps):
        observers.append(Dumps(lambda module: _mlir_text(module, asked), run.dumps, *dumps))
    if asked.verify_each:
        observers.append(Verifier(_verify))
    if run.timing is not None:
        observers.append(run.timing)  # innermost: the work of the others is no pass
    return observed_by(Observers(observers))


def _verify(module: ModuleOp) -> None:
    from ulam.runtime.modules.verification import verify

    verify(module)


def _stan_module(run: Run, piece: Piece) -> ModuleOp:
    from ulam.frontend.check.program import check_program
    from ulam.frontend.diagnostics import DiagnosticError, render
    from ulam.frontend.lower.program import lower_program
    from ulam.frontend.parse.program import parse_program
    from ulam.frontend.source import Source
    from ulam.passes.complex_to_pairs import split_complex
    from ulam.tools.verify_diagnostics import Message

    source = Source(piece.text, run.name, run.arguments.include_path, piece.first_line)
    try:
        program = parse_program(source)
        warnings = check_program(program, source)
        module = lower_program(program, source)
        split_complex(module)
    except DiagnosticError as error:
        plain = run.arguments.verify_diagnostics
        messages = [
            Message(d.source.position(d.span.start)[0], str(d.severity), d.message if plain else render(d))
            for d in error.diagnostics
        ]
        raise InputError(messages) from None
    if not run.arguments.verify_diagnostics:
        for warning in warnings:
            show(render(warning))
    return module


def _known_data(run: Run, piece: Piece) -> KnownData | None:
    """What the passes may take for known, if data were given."""
    data = _data_of(run.arguments, run.passes)
    if data is None:
        return None
    from ulam.runtime.errors import UlamError
    from ulam.tools.stan_opt_data import known_data
    from ulam.tools.verify_diagnostics import Message

    try:
        return known_data(piece.text, run.name, data, run.arguments.include_path)
    except (UlamError, OSError) as error:
        raise InputError([Message(None, "error", str(error))]) from None


def _mlir_module(run: Run, piece: Piece, context: Context) -> ModuleOp:
    from ulam.runtime.modules.reading import parse_mlir

    with _Messages(run, piece):
        return parse_mlir(piece.text, run.name, first_line=piece.first_line, context=context)


class _Messages:
    """Turns what xDSL and our passes raise for wrong input into InputError, with the line where it is known."""

    def __init__(self, run: Run, piece: Piece) -> None:
        self.run = run
        self.piece = piece

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        from xdsl.utils.exceptions import DiagnosticException, ParseError

        from ulam.dialects.places import place_of
        from ulam.tools.verify_diagnostics import Message

        if error is None or not isinstance(error, Exception):
            return
        line: int | None = None
        text = str(error).strip()
        if isinstance(error, ParseError):
            line = self.piece.first_line + self.piece.text.count("\n", 0, error.span.start)
            text = error.msg
        elif isinstance(error, DiagnosticException) or _is_unsupported(error):
            if (place := place_of(getattr(error, "location", None))) is not None:
                line = place.line.data
        else:
            return
        raise InputError([Message(line, "error", text)]) from None


def _is_unsupported(error: Exception) -> bool:
    """Whether a pass or the emitter says that it cannot do this: yet, on this machine, with a module of this form."""
    from ulam.emit.errors import CodeGenerationError, EmissionError, TargetError
    from ulam.passes.errors import NotSupportedError, WrongFormError

    return isinstance(error, (EmissionError, CodeGenerationError, NotSupportedError, TargetError, WrongFormError))


# ---------------------------------------------------------------- printing


def _mlir_text(module: ModuleOp, arguments: argparse.Namespace) -> str:
    from xdsl.printer import Printer

    stream = StringIO()
    printer = Printer(stream, print_generic_format=arguments.generic, print_debuginfo=arguments.locations)
    printer.print_op(module)
    return stream.getvalue() + "\n"


def _printed(run: Run, module: ModuleOp) -> str:
    arguments = run.arguments
    if arguments.target == "mlir":
        lowered = module if arguments.unit is None else _lowered(module, UNITS[arguments.unit], arguments)
        return _mlir_text(lowered, arguments)
    if arguments.target == "stan":
        from ulam.emit.stan_text import print_module

        return print_module(module)
    return _llvm_text(module, arguments, arguments.level)


def _mir_pretty(module: ModuleOp) -> str:
    from ulam.emit.mir_pretty import print_module

    return print_module(module)


def _memory_report(module: ModuleOp) -> str:
    from ulam.tools.stan_opt_memory import memory_report

    return memory_report(module)


def _explanation(run: Run, piece: Piece, remarks: list[Remark]) -> str:
    from ulam.tools.stan_opt_explain import explain

    if not run.passes and run.arguments.unit is None and run.arguments.explain == "text":
        return "no passes ran: choose them by -O or -p\n"

    def line_of(file: str, line: int) -> str | None:
        try:
            text, first = (piece.text, piece.first_line) if file == run.name else (_read(file), 1)
        except (OSError, ValueError):
            return None
        lines = text.splitlines()
        return lines[line - first] if first <= line < first + len(lines) else None

    styled = run.arguments.output == STANDARD_STREAM and terminal.is_coloured(sys.stdout)
    return explain(remarks, line_of, form=run.arguments.explain, styled=styled)


def _llvm_text(module: ModuleOp, arguments: argparse.Namespace, level: int) -> str:
    from ulam.emit.jit import compile_assembly, host
    from ulam.emit.llvm_module import emit_module
    from ulam.emit.llvm_text import EmitOptions

    unit = UNITS[arguments.unit or DEFAULT_UNIT.name]
    lowered = _lowered(module, unit, arguments)
    processor = host()
    options = EmitOptions(level, processor.fused, vectors=processor.vectors, lines=arguments.locations, unit=unit.name)
    llvm = emit_module(lowered, options)
    return llvm if arguments.target == "llvm" else compile_assembly(llvm)


def _lowered(module: ModuleOp, unit: UnitKind, arguments: argparse.Namespace) -> ModuleOp:
    """A module of functions: the module itself, or what a unit of its `stan.program` becomes."""
    if not any(op.name == "stan.program" for op in module.body.block.ops):
        return module
    from ulam.passes.lowering_pipeline import lower, to_value_form

    further = {"layouts": arguments.layouts, "chosen": arguments.unit_passes}
    return lower(to_value_form(module), unit, arguments.level, **further).module


def _chosen_layouts(run: Run, piece: Piece) -> list[Remark]:
    """What binding the data of `--data` chooses for gradients; nothing without data."""
    arguments = run.arguments
    if not arguments.data or not arguments.layouts:
        return []
    from ulam.runtime.model import StanModel
    from ulam.tools.stan_opt_explain import layout_remarks

    model = StanModel(
        NamedText(piece.text, run.name), arguments.data, opt_level=arguments.level, layouts=arguments.layouts,
        include_paths=tuple(arguments.include_path or ()), capture_stan_prints=False,
    )  # fmt: skip
    return layout_remarks(model.layout_choices())


if __name__ == "__main__":
    sys.exit(main())
