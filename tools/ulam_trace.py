"""`ulam trace`: runs a function or the log density of a program, shows what it did, or compares it with another run.

Reads saved traces, too. What is asked for goes to standard output or to a file, messages to standard error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Any

from ulam.runtime import terminal
from ulam.runtime.comparison import Vector, first_points
from ulam.runtime.errors import DataError
from ulam.runtime.json_text import json_line
from ulam.runtime.model import StanModel
from ulam.runtime.named_text import NamedText
from ulam.runtime.output_files import writing
from ulam.tools.exits import EXIT_FAILURE, EXIT_OK, UsageError
from ulam.tools.messages import tell
from ulam.tools.model_command import PointCommand
from ulam.tools.options import OPTIONS
from ulam.trace import diff, from_json, load
from ulam.tracing.contexts import TraceContext
from ulam.tracing.functions import functions, track
from ulam.tracing.listing import lines_of
from ulam.tracing.nodes import ItemNode
from ulam.tracing.saved import is_saved
from ulam.tracing.tape.recorder import Scripted, Seeded, Source

FORMATS = OPTIONS["format"].choices
"""What `--format` may be; the first is the default."""

SUFFIXES = {".txt": "text", ".json": "json", ".dot": "dot", ".gv": "dot", ".svg": "svg", ".stan": "stan"}
"""The format that the name of a file asks for."""


@dataclass(kw_only=True)
class TraceCommand(PointCommand):
    """The arguments of the command. `traced` is the model, or may be a saved trace."""

    traced: InitVar[Path | NamedText]
    model: Path | NamedText = field(init=False)
    function: str | None
    args: list[str] | None
    more_args: list[str] | None
    density: bool
    propto: bool
    jacobian: bool
    scripted: str | None
    levels: int | None
    style: str
    source: bool
    format: str | None
    max_nodes: int
    output: Path | None
    save: Path | None
    diff: Path | None
    rtol: float
    only: list[str] | None

    def __post_init__(self, traced: Path | NamedText) -> None:
        self.model = traced
        super().__post_init__()

    def run(self) -> int:
        if wrong := self._wrong_usage():
            raise UsageError(wrong)
        with terminal.programs_print_to(sys.stderr):  # what the program prints is no part of the trace
            node = self._node(self.model)
            other = None if self.diff is None else self._node(self.diff)
        if self.save is not None:
            node.trace.save(self.save)
        if other is not None:
            found = diff(node, other, self.rtol)
            self._put(json_line(found.to_dict()) if self._format == "json" else str(found))
        else:
            self._show(node)
        if node.trace.error is None:
            return EXIT_OK
        tell("error", f"the run failed: {node.trace.error.message}")
        return EXIT_FAILURE

    # ------------------------------------------------------------ what is asked for

    @property
    def _format(self) -> str:
        if self.format is not None:
            return self.format
        return FORMATS[0] if self.output is None else SUFFIXES.get(self.output.suffix.lower(), FORMATS[0])

    def _wrong_usage(self) -> str:
        self.initial()  # one point
        more, args = self.more_args or [], self.args or []
        unknown = [word for word in more if word.startswith("-") and not word[1:2].isdigit()]
        if unknown and unknown[0] != "-Infinity":
            return f"no such option: {unknown[0]}"
        for path in (self.model, self.diff):
            if isinstance(path, Path) and not path.exists():
                raise FileNotFoundError(f"'{path}' does not exist")
        if more and len(args) != 1:
            told = f"unexpected argument '{more[0]}'; those of the function stand after --args: --args {' '.join(more)}"
            return "write --args once" if args else told
        if self.diff is not None and self._format not in ("text", "json"):
            return f"a comparison is text or json, not {self._format}"
        given = [name for name, value in self._of_a_run if value]
        if is_trace(self.model) and (self.diff is None or is_trace(self.diff)):
            return f"{self.model} is a saved trace: there is no use for {given[0]}" if given else ""
        if (self.function is None) != self.density:
            return "say what to trace: --function NAME with --args, or --density"
        if self.density and self.args:
            return "--args are those of a --function; --density takes --unconstrained or --init"
        if self.function is not None and (self.unconstrained is not None or self.init is not None):
            return "--unconstrained and --init are for --density; a --function takes --args"
        return ""

    @property
    def _of_a_run(self) -> list[tuple[str, Any]]:
        """Options that a saved trace has no use for."""
        return [
            ("--function", self.function), ("--args", self.args), ("--density", self.density), ("--data", self.data),
            ("--unconstrained", self.unconstrained), ("--init", self.init), ("--scripted", self.scripted),
            ("--only", self.only),
        ]  # fmt: skip

    # ------------------------------------------------------------ runs

    def _node(self, file: Path | NamedText) -> ItemNode:
        """The trace in a file, or of a program."""
        if isinstance(file, Path) and is_trace(file):
            return read_trace(file)
        return self._function(file) if self.function is not None else self._density(file)

    def _context(self) -> TraceContext:
        """Records what the format has a use for: times of calls, all elements of containers."""
        timing, containers = self._format == "chrome", "copy" if self._format in ("json", "stan") else "digest"
        return TraceContext(enter=self.only or None, timing=timing, containers=containers)

    def _rng(self) -> Source:
        if self.scripted is None:
            return Seeded(self.seed)
        uniforms = json_value(self.scripted, "--scripted")
        if not isinstance(uniforms, list) or not all(isinstance(u, int | float) for u in uniforms):
            raise DataError(["--scripted: expected an array of numbers"])
        return Scripted(uniforms)

    def _function(self, program: Path | NamedText) -> ItemNode:
        """Functions need no data: the model is not compiled."""
        assert self.function is not None
        given = [*(self.args or []), *(self.more_args or [])]
        arguments = [json_value(text, f"--args, number {n}") for n, text in enumerate(given, 1)]
        known = functions(program, tuple(self.include_path or ()))
        return track(known[self.function], *arguments, context=self._context(), rng=self._rng())

    def _density(self, program: Path | NamedText) -> ItemNode:
        model = self.loaded(source=program)
        options: dict[str, Any] = {"propto": self.propto, "jacobian": self.jacobian, "context": self._context()}
        return model.track_density(self._point(model), **options)

    def _point(self, model: StanModel) -> Vector:
        """Unconstrained parameters."""
        if self.unconstrained is None:
            return first_points([model], self.initial(), self.seed)[0]
        return self.checked_points(model.param_unc_num())[0]

    # ------------------------------------------------------------ what is shown

    def _show(self, node: ItemNode) -> None:
        pictured = {"levels": self.levels, "max_nodes": self.max_nodes}
        match self._format:
            case "text":
                self._put_lines(lines_of(node, self.levels, self.style, self.source))
            case "dot":
                self._put(node.to_dot(**pictured))
            case "svg":
                self._put(node.to_svg(**pictured))
            case "stan":
                self._put(node.to_stan(max_nodes=self.max_nodes))
            case "json":
                self._put(node.to_json(self.output, max_nodes=None))
            case _:
                self._put(node.to_chrome_trace(self.output, max_calls=None))

    def _put(self, text: str) -> None:
        self._put_lines([text.removesuffix("\n")] if text else [])

    def _put_lines(self, lines: Iterable[str]) -> None:
        """To standard output, or to the file; what has been written there already comes as no lines."""
        if self.output is None:
            for line in lines:
                print(line)
            return
        if lines:
            with writing(self.output) as file:
                file.writelines(f"{line}\n" for line in lines)


def is_trace(path: Path | NamedText) -> bool:
    """Whether a file has a saved trace, or one in JSON."""
    return isinstance(path, Path) and path.is_file() and (is_saved(path) or path.suffix.lower() == ".json")


def read_trace(path: Path) -> ItemNode:
    """A saved trace, or one in JSON. Raises DamagedTrace."""
    return load(path) if is_saved(path) else from_json(path).root


def json_value(text: str, name: str) -> Any:
    """A number, or nested arrays of numbers."""
    try:
        value = json.loads(text)
    except ValueError:
        raise DataError([f"{name}: expected a number or an array in JSON, found '{text}'"]) from None
    if isinstance(value, dict | str | None):
        raise DataError([f"{name}: expected a number or an array, found {text}"])
    return value
