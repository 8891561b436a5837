"""What `stan-opt` tells about passes: which there are, the IR around them, how long they take.

    $ stan-opt --timing -O3 model.stan
       ms     %  runs  pass
      9.3  61.2     1  repeat
      2.1  13.8     2    constant-propagation
    ...

Steps of a pass stand indented below it; its own time has theirs in it. Times are CPU times.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, TextIO, get_type_hints

from ulam.passes.running import PassObserver

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

# ---------------------------------------------------------------- which passes there are


def list_passes(*, as_json: bool = False) -> str:
    """All passes by name: what each is for, and its options with their types and defaults."""
    from ulam.passes.pipelines import OWN_PASSES, PASSES, pass_class

    told = [_told(name, pass_class(name)) for name in sorted({*PASSES, *OWN_PASSES.names()})]
    if as_json:
        return json.dumps(told, indent=2) + "\n"
    lines: list[str] = []
    for entry in told:
        lines += [entry["name"], f"    {entry['purpose']}"]
        for option in entry["options"]:
            default = f" = {json.dumps(option['default'])}" if "default" in option else ", required"
            lines.append(f"      {option['name']}: {option['type']}{default}")
    return "\n".join(lines) + "\n"


def _told(name: str, cls: type[ModulePass]) -> dict[str, Any]:
    """What is told about a pass. The first paragraph of its docstring is what it is for."""
    hints = get_type_hints(cls)
    options: list[dict[str, Any]] = []
    for option in fields(cls):
        type_ = hints[option.name]
        shown = type_.__name__ if isinstance(type_, type) else str(type_)
        told: dict[str, Any] = {"name": option.name.replace("_", "-"), "type": shown}
        if option.default is not MISSING:
            told["default"] = option.default
        options.append(told)
    purpose = " ".join((cls.__doc__ or "").partition("\n\n")[0].split())
    return {"name": name, "purpose": purpose, "options": options}


# ---------------------------------------------------------------- what passes do


class Observers(PassObserver):
    """Several observers as one: those of the later see what the earlier did not change."""

    def __init__(self, observers: list[PassObserver]) -> None:
        self.observers = observers

    def before(self, name: str, module: ModuleOp | None) -> None:
        for observer in self.observers:
            observer.before(name, module)

    def after(self, name: str, module: ModuleOp) -> None:
        for observer in reversed(self.observers):
            observer.after(name, module)


@dataclass
class Dumps(PassObserver):
    """Prints the IR around passes."""

    text_of: Callable[[ModuleOp], str]
    stream: TextIO
    before_all: bool
    after_all: bool
    after_change: bool
    _inside: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, "str | None"]])
    """The passes that are running, with the IR before them where it is needed."""

    def before(self, name: str, module: ModuleOp | None) -> None:
        wanted = module is not None and (self.before_all or self.after_change)
        text = self.text_of(module) if wanted and module is not None else None
        self._inside.append((name, text))
        if self.before_all and text is not None:
            self._print("Before", text)

    def after(self, name: str, module: ModuleOp) -> None:
        if self.after_all or self.after_change:
            text = self.text_of(module)
            if not self.after_change or text != self._inside[-1][1]:
                self._print("After", text)
        self._inside.pop()

    def _print(self, when: str, text: str) -> None:
        path = " > ".join(name for name, _ in self._inside)
        print(f"// -----// IR Dump {when} {path} //----- //\n{text}", file=self.stream, end="")


@dataclass
class Verifier(PassObserver):
    """Verifies the IR after each pass."""

    verify: Callable[[ModuleOp], None]

    def after(self, name: str, module: ModuleOp) -> None:
        self.verify(module)


@dataclass
class _Row:
    """A pass at its place among the steps of others, with all its runs there."""

    runs: int = 0
    seconds: float = 0.0
    steps: dict[str, _Row] = field(default_factory=dict[str, "_Row"])


class PassTimes(PassObserver):
    """The CPU time of each pass."""

    def __init__(self) -> None:
        from ulam.passes.pipelines import PASSES, pass_class

        for name in PASSES:  # else the first pass that has another as a step would pay for its import
            pass_class(name)
        self._top = _Row()
        self._inside: list[tuple[_Row, float]] = []

    def before(self, name: str, module: ModuleOp | None) -> None:
        around = self._inside[-1][0] if self._inside else self._top
        self._inside.append((around.steps.setdefault(name, _Row()), time.process_time()))

    def after(self, name: str, module: ModuleOp) -> None:
        row, begun = self._inside.pop()
        row.runs += 1
        row.seconds += time.process_time() - begun

    def report(self, *, as_json: bool = False) -> str:
        """The table; passes in the order in which they first ran."""
        if as_json:
            return json.dumps({"seconds": self._total, "passes": _as_json(self._top)}) + "\n"
        lines = [f"{'ms':>9} {'%':>5} {'runs':>5}  pass"]
        for depth, name, row in _rows(self._top, 0):
            share = 100 * row.seconds / self._total if self._total else 0.0
            lines.append(f"{1e3 * row.seconds:9.2f} {share:5.1f} {row.runs:5}  {'  ' * depth}{name}")
        lines.append(f"{1e3 * self._total:9.2f} {100.0 if self._total else 0.0:5.1f}        all passes")
        return "\n".join(lines) + "\n"

    @property
    def _total(self) -> float:
        return sum(row.seconds for row in self._top.steps.values())


def _rows(row: _Row, depth: int) -> Iterator[tuple[int, str, _Row]]:
    for name, step in row.steps.items():
        yield depth, name, step
        yield from _rows(step, depth + 1)


def _as_json(row: _Row) -> list[dict[str, Any]]:
    return [
        {"pass": name, "runs": step.runs, "seconds": step.seconds, "steps": _as_json(step)}
        for name, step in row.steps.items()
    ]
