"""Translation validation: a program compiled with passes must do what it does without any.

    differences = compare(program_text, data, "copy-propagation")    # a pipeline, or a level
    assert not differences, "\\n".join(differences)

Compared with level 0 are log density (with and without constants and Jacobian), gradient, constrained parameters with
transformed parameters and generated quantities (same random numbers, and as many of them), what is printed, and errors:
when the model is loaded, at an evaluation, in generated quantities.

`EXACT`, for level 2: values and text bit by bit, gradients to 1e-12. `CLOSE`, for levels 3 and 4: numbers to 1e-10,
also those in texts. Tolerances count against the largest entry of a variable or gradient, and at least against 1: what
a small result of a program of moderate numbers is the sum of. Where CLOSE numbers differ, and those of level 0 change
as well once parameters or data move by 1e-8, a branch (or the last printed digit) hangs on it: such a difference is
discarded. What is lowered from equal units is equal, and lowered once; a pipeline that leaves the module as it is, or
makes of it what another one made, needs no run.
"""

from __future__ import annotations

import io
import json
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property, lru_cache
from itertools import zip_longest
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ulam.emit import jit
from ulam.passes import verify_dominance, verify_facts
from ulam.passes.known_data import specializing_on
from ulam.passes.pipelines import LEVELS, PASSES, level_pipeline, parse_pipeline, pass_class
from ulam.passes.to_loops.programs import LoweredUnit
from ulam.passes.units import UnitKind
from ulam.runtime import model as runtime_model
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler, EmittedUnit, UnitObject
from ulam.runtime.data import read_data
from ulam.runtime.errors import UlamError
from ulam.runtime.interpreter_settings import compiling
from ulam.runtime.model import StanModel

EXACT = "exact"
CLOSE = "1e-10"
GRADIENT_TOLERANCE = 1e-12
CLOSE_TOLERANCE = 1e-10

PERTURBATION = 1e-8
JUMP = 1e-5
"""What a perturbation of 1e-8 changes by more than this, hangs on a branch (or is as ill-conditioned as one)."""

ALL_UNITS = ("value_propto", "value_full", "gradient_propto", "gradient_full", "constrain")
QUICK = jit.Pipeline(speed=0, vectorize=False)  # LLVM is not what is tested; it keeps the bits at every speed
_NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*(?:e[+-]?\d+)?|nan|inf)(?![\w.])")

Floats = npt.NDArray[np.float64]


# ---------------------------------------------------------------- observations


@dataclass
class Event:
    """What one call did: text that it printed, its error, or its values by variable."""

    label: str
    output: str = ""
    error: str = ""
    values: dict[str, Floats] = field(default_factory=dict)
    draws: str = ""
    """State of the random number generator afterwards."""


def _observe(label: str, call: Callable[[Event], None]) -> Event:
    event = Event(label)
    sink = io.StringIO()
    with redirect_stdout(sink), np.errstate(all="ignore"):
        try:
            call(event)
        except UlamError as error:
            event.error = f"{type(error).__name__}: {error}"
    event.output = sink.getvalue()
    return event


def _by_variable(names: Sequence[str], values: Floats) -> dict[str, Floats]:
    positions: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        positions.setdefault(name.partition(".")[0], []).append(position)
    return {name: values[where] for name, where in positions.items()}


def _evaluations(model: StanModel, points: Sequence[Floats], units: Sequence[str]) -> Iterator[Event]:
    for number, theta in enumerate(points):
        for unit in units:
            if unit == "constrain":
                continue
            for jacobian in (True, False):
                yield _observe(f"{unit}, jacobian={jacobian}, point {number}", _density(model, theta, unit, jacobian))
        if "constrain" in units:
            for tp, gq in ((False, False), (True, False), (True, True)):
                label = f"param_constrain(include_tp={tp}, include_gq={gq}), point {number}"
                yield _observe(label, _constrain(model, theta, tp, gq))


def _density(model: StanModel, theta: Floats, unit: str, jacobian: bool) -> Callable[[Event], None]:
    propto = unit.endswith("propto")

    def call(event: Event) -> None:
        if unit.startswith("value"):
            event.values["log density"] = np.array([model.log_density(theta, propto=propto, jacobian=jacobian)])
        else:
            value, gradient = model.log_density_gradient(theta, propto=propto, jacobian=jacobian)
            event.values = {"log density": np.array([value]), "gradient": gradient}

    return call


def _constrain(model: StanModel, theta: Floats, tp: bool, gq: bool) -> Callable[[Event], None]:
    def call(event: Event) -> None:
        rng = model.new_rng(7)
        try:
            written = model.param_constrain(theta, include_tp=tp, include_gq=gq, rng=rng)
            event.values = _by_variable(model.param_names(include_tp=tp, include_gq=gq), written)
        finally:
            event.draws = str(rng.generator.state)

    return call


# ---------------------------------------------------------------- comparison


def event_differences(before: Event, after: Event, numerics: str) -> list[str]:
    """Where two runs of the same call differ."""
    found: list[str] = []
    if not same_text(before.output, after.output, numerics):
        found.append(f"printed {after.output!r}, level 0 {before.output!r}")
    if not same_text(before.error, after.error, numerics):
        found.append(f"error {after.error!r}, level 0 {before.error!r}")
    if before.draws != after.draws:
        found.append("more or fewer random numbers were drawn")
    if not before.error and not after.error:
        found += _value_differences(before.values, after.values, numerics)
    return [f"{before.label}: {text}" for text in found]


def same_text(before: str, after: str, numerics: str) -> bool:
    """Whether two texts are equal, with CLOSE up to the numbers in them."""
    if before == after:
        return True
    if numerics == EXACT or _NUMBER.sub("#", before) != _NUMBER.sub("#", after):
        return False
    pairs = zip(_NUMBER.findall(before), _NUMBER.findall(after), strict=True)
    return all(_is_close(float(a), float(b)) for a, b in pairs)


def _is_close(a: float, b: float) -> bool:
    return a == b or (a != a and b != b) or abs(a - b) <= CLOSE_TOLERANCE * max(abs(a), abs(b), 1.0)


def _value_differences(before: Mapping[str, Floats], after: Mapping[str, Floats], numerics: str) -> list[str]:
    if list(before) != list(after):
        return [f"variables {list(after)}, level 0 {list(before)}"]
    found: list[str] = []
    finite = "log density" not in before or bool(np.isfinite(before["log density"]).all())
    for name, old in before.items():
        new = after[name]
        if name == "gradient" and not finite:
            continue  # a derivative of nothing
        if old.shape != new.shape:
            found.append(f"{name} has shape {new.shape}, level 0 {old.shape}")
        elif numerics == EXACT and name != "gradient":
            if not _same_bits(old, new):
                found.append(f"{name} is {new.tolist()}, level 0 {old.tolist()}")
        else:
            tolerance = GRADIENT_TOLERANCE if numerics == EXACT else CLOSE_TOLERANCE
            if (worst := distance(old, new)) > tolerance:
                found.append(f"{name} is {new.tolist()}, level 0 {old.tolist()}, relative difference {worst:.1e}")
    return found


def _same_bits(old: Floats, new: Floats) -> bool:
    bits = np.ascontiguousarray(old).view(np.int64) == np.ascontiguousarray(new).view(np.int64)
    return bool((bits | (np.isnan(old) & np.isnan(new))).all())


def distance(old: Floats, new: Floats) -> float:
    """The largest difference, against the largest entry and at least 1; infinite where one is finite only."""
    with np.errstate(all="ignore"):
        same = (old == new) | (np.isnan(old) & np.isnan(new))
        if same.all():
            return 0.0
        if not np.isfinite(np.concatenate([old[~same], new[~same]])).all():
            return np.inf
        scale = max(1.0, float(np.max(np.abs(old[np.isfinite(old)]), initial=0.0)))
        return float(np.max(np.abs(old[~same] - new[~same]))) / scale


# ---------------------------------------------------------------- programs


class _Build(Compiler):
    """A subject compiled with certain options."""

    def __init__(self, subject: Subject, options: CompileOptions) -> None:
        super().__init__(subject.text, subject.filename, options)
        self._subject = subject

    @cached_property
    def module(self) -> ModuleOp:
        with compiling():
            module = self._subject.written.clone()
            with specializing_on(self._known_data):
                _run(module, self.options.passes)
            return module

    @cached_property
    def _as_written(self) -> Compiler:
        return self._subject.unoptimised

    def _compile(self, kind: UnitKind) -> UnitObject:
        unit = self._lower(kind)
        return UnitObject(self._subject.code(unit.text, kind.prefix), unit.sites, unit.n_slots, unit.draws)

    def _emit(self, unit: LoweredUnit) -> EmittedUnit:
        """Equal units are lowered once: most passes leave most units of a program as they are."""
        known = self._subject.units.setdefault((unit.kind.name, self.options.opt_level), [])
        for before, lowered in known:
            same = before.n_slots == unit.n_slots and before.sites == unit.sites
            if same and same_module(before.module, unit.module):
                return lowered
        before = replace(unit, module=unit.module.clone(), sites=list(unit.sites))
        known.append((before, super()._emit(unit)))
        return known[-1][1]


def _run(module: ModuleOp, pipeline: str) -> None:
    from xdsl.context import Context

    passes = parse_pipeline(pipeline)
    for entry in passes:
        entry.apply(Context(), module)
    if passes:
        module.verify()
        verify_facts.run_on(module)
        verify_dominance.run_on(module)


def same_module(first: ModuleOp, second: ModuleOp) -> bool:
    """Whether two modules are equal: ops, their attributes and places, how values connect them."""
    numbers: dict[SSAValue, int] = {}
    for one, other in zip_longest(first.walk(), second.walk()):
        if one is None or other is None or one.name != other.name or one.location != other.location:
            return False
        if one.properties != other.properties or one.attributes != other.attributes:
            return False
        if len(one.operands) != len(other.operands) or len(one.results) != len(other.results):
            return False
        if any(numbers.get(a) != numbers.get(b) for a, b in zip(one.operands, other.operands, strict=True)):
            return False
        if [len(region.blocks) for region in one.regions] != [len(region.blocks) for region in other.regions]:
            return False
        defined = [(*one.results,), (*other.results,)]
        for region, counterpart in zip(one.regions, other.regions, strict=True):
            for block, twin in zip(region.blocks, counterpart.blocks, strict=True):
                if len(block.args) != len(twin.args) or len([*block.ops]) != len([*twin.ops]):
                    return False
                defined = [defined[0] + block.args, defined[1] + twin.args]
        for value, twin_value in zip(*defined, strict=True):
            if value.type != twin_value.type:
                return False
            numbers[value] = numbers[twin_value] = len(numbers)
    return True


@dataclass
class Comparison:
    """`differences` between level 0 and a pipeline; `changed`: whether its passes did anything."""

    differences: list[str] = field(default_factory=list)
    changed: bool = True
    discarded: int = 0


class Subject:
    """A program with its data, and what it does at level 0."""

    def __init__(
        self,
        text: str,
        data: Mapping[str, Any] | str | None = None,
        *,
        points: int | Sequence[Sequence[float]] = 2,
        seed: int = 1,
        filename: str = "model.stan",
    ) -> None:
        self.text = text
        self.data = json.loads(data) if isinstance(data, str) else dict(data or {})
        self.seed = seed
        self.filename = filename
        self._points = points
        self._code: dict[tuple[str, str], bytes] = {}
        self.units: dict[tuple[str, int], list[tuple[LoweredUnit, EmittedUnit]]] = {}
        self._observed: list[tuple[ModuleOp, tuple[str, ...], list[Event]]] = []
        self.unoptimised = _Build(self, CompileOptions(0))

    @cached_property
    def written(self) -> ModuleOp:
        """The module before all passes. Raises what is wrong with the program."""
        return Compiler(self.text, self.filename, CompileOptions(0)).module

    def code(self, llvm: str, prefix: str) -> bytes:
        """Object code of a unit's LLVM IR."""
        if (found := self._code.get((llvm, prefix))) is None:
            found = self._code[llvm, prefix] = jit.compile_object(llvm, QUICK, prefix=prefix)
        return found

    # ------------------------------------------------------------ runs

    def _load(self, build: Compiler, data: Mapping[str, Any]) -> StanModel:
        with patch.object(runtime_model, "_compiler", lambda *_: build):
            values = read_data(dict(data))
            recipe = runtime_model.Recipe(self.text, self.filename, values, self.seed, True, build.options, False)
            return runtime_model.model_of(recipe)

    def observe(
        self, build: Compiler, units: Sequence[str], data: Mapping[str, Any] | None = None, perturb: int = 0
    ) -> list[Event]:
        """What the program does; with `perturb`, at points moved a little, differently for every number."""
        loaded: list[StanModel] = []
        load = _observe("load", lambda _: loaded.append(self._load(build, self.data if data is None else data)))
        if not loaded:
            return [load]
        points = self.points(loaded[0].param_unc_num())
        if perturb:
            moves = np.random.default_rng(perturb)
            points = [theta + PERTURBATION * moves.choice((-1.0, 1.0), len(theta)) for theta in points]
        return [load, *_evaluations(loaded[0], points, units)]

    def points(self, size: int) -> list[Floats]:
        """Unconstrained points to evaluate at."""
        if isinstance(self._points, int):
            draws = np.random.default_rng(self.seed)
            return [draws.uniform(-1.5, 1.5, size) for _ in range(self._points)]
        return [np.array(point, dtype=np.float64) for point in self._points]

    def _observe_once(self, build: Compiler, units: Sequence[str]) -> list[Event]:
        """As `observe`; what another pipeline made the same module of, is not run again."""
        if build.options.wants_data or build.options.opt_level >= 3:  # emission differs
            return self.observe(build, units)
        for module, known_units, events in self._observed:
            if known_units == tuple(units) and same_module(module, build.module):
                return events
        events = self.observe(build, units)
        self._observed.append((build.module, tuple(units), events))
        return events

    @cached_property
    def _at_level_0(self) -> dict[tuple[str, ...], list[Event]]:
        return {}

    def expected(self, units: Sequence[str] = ALL_UNITS) -> list[Event]:
        """What the program does at level 0."""
        key = tuple(units)
        if key not in self._at_level_0:
            self._at_level_0[key] = self.observe(self.unoptimised, units)
        return self._at_level_0[key]

    # ------------------------------------------------------------ comparison

    def compare(
        self, pipeline: str | int, numerics: str | None = None, *, units: Sequence[str] = ALL_UNITS
    ) -> Comparison:
        """What a pipeline, or a level, changes."""
        level = pipeline if isinstance(pipeline, int) else 0
        chosen = None if isinstance(pipeline, int) else pipeline
        options = CompileOptions(level, pipeline=chosen, few_passes=False)  # all that the level declares
        exact = (numerics or numerics_of(pipeline)) == EXACT
        build = _Build(self, options)
        try:
            changed = options.wants_data or not same_module(build.module, self.written)
        except Exception as error:  # a pass failed
            return Comparison([f"{type(error).__name__}: {error}\n{_last_frames(error)}"])
        if not changed and level < 3:  # emission is that of level 0
            return Comparison(changed=False)
        before, after = self.expected(units), self._observe_once(build, units)
        result = Comparison(changed=changed)
        if len(before) != len(after):
            result.differences += event_differences(before[0], after[0], EXACT if exact else CLOSE)
            return result
        for position, (old, new) in enumerate(zip(before, after, strict=True)):
            found = event_differences(old, new, EXACT if exact else CLOSE)
            if found and not exact and self.hangs(position, units):
                result.discarded += 1
            else:
                result.differences += found
        return result

    def hangs(self, position: int, units: Sequence[str] = ALL_UNITS) -> bool:
        """Whether an event at level 0 changes with the perturbed parameters or data."""
        before = self.expected(units)[position]
        for events in self.perturbed(units):
            if position >= len(events):
                return True
            after = events[position]
            texts = same_text(before.output, after.output, CLOSE) and _shape(before.error) == _shape(after.error)
            if not texts or before.values.keys() != after.values.keys():
                return True
            if any(distance(old, after.values[name]) > JUMP for name, old in before.values.items()):
                return True
        return False

    def perturbed(self, units: Sequence[str] = ALL_UNITS) -> Iterator[list[Event]]:
        for number in range(1, 5):
            yield self.observe(self.unoptimised, units, perturb=number)
        for sign in (-1, 1):
            data = {name: _moved(value, 1 + sign * PERTURBATION) for name, value in self.data.items()}
            yield self.observe(self.unoptimised, units, data)


def _shape(text: str) -> str:
    return _NUMBER.sub("#", text)


def _moved(value: Any, factor: float) -> Any:
    if isinstance(value, list):
        return [_moved(element, factor) for element in value]
    return value * factor if isinstance(value, float) else value


def _last_frames(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return "".join(f"  {frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}\n" for frame in frames)


# ---------------------------------------------------------------- what to compare with


def numerics_of(pipeline: str | int) -> str:
    """EXACT for levels 0 to 2, and for pipelines whose passes all keep the bits; else CLOSE."""
    if isinstance(pipeline, int):
        return EXACT if pipeline < 3 else CLOSE
    return EXACT if all(_keeps_bits(str(entry.spec())) for entry in parse_pipeline(pipeline)) else CLOSE


def _keeps_bits(spec: str) -> bool:
    """A pass of levels 1 and 2, or one that none of the levels has yet and that has no choice in the matter."""
    specs = {level: {str(entry.spec()) for entry in _entries(level)} for level in LEVELS}
    if spec in specs[1] | specs[2]:
        return True
    if spec in specs[3] | specs[4]:
        return False
    entry = parse_pipeline(spec)[0]
    return bool(getattr(entry, "preserve_numerics", True))


def _entries(level: int) -> list[Any]:
    """The passes of a level, those that it repeats included."""
    return [entry for entry in parse_pipeline(level_pipeline(level)) if entry.name in PASSES]


def single_passes() -> list[str]:
    """The passes of the levels, each as a pipeline of its own; with `preserve-numerics` as well, where they have it."""
    names = [name for name, place in PASSES.items() if place.startswith("ulam.passes.optimize.")]
    found: list[str] = []
    for name in names:
        options = {option.name: option for option in fields(cast(Any, pass_class(name)))}
        if any(option.default is MISSING and option.default_factory is MISSING for option in options.values()):
            continue  # of other passes, such as `repeat`
        found.append(name)
        if "preserve_numerics" in options:
            found.append(name + "{preserve-numerics=true}")
    return found


# ---------------------------------------------------------------- the short form


@lru_cache(maxsize=8)
def _subject(text: str, data: str, points: int, seed: int) -> Subject:
    return Subject(text, data, points=points, seed=seed)


def compare(
    program_text: str,
    data: Mapping[str, Any] | None,
    pipeline: str | int,
    *,
    numerics: str | None = None,
    points: int = 2,
    seed: int = 1,
) -> list[str]:
    """Where a program with a pass pipeline, or at a level, differs from level 0; empty if nowhere."""
    subject = _subject(program_text, json.dumps(dict(data or {})), points, seed)
    return subject.compare(pipeline, numerics).differences
