"""The settings of a run of the sampler: names, defaults, what values they may have, and which sampler has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any

from ulam.runtime.errors import ArgumentError

SAMPLERS = ("nuts", "hmc", "nutpie", "fixed")
METRICS = ("unit", "diag", "dense")
"""Kinds of the metric, in the order of their numbers in c/sampling/metric.h."""
METRICS_OF_NUTPIE = ("diag", "low_rank")
MAX_ENERGY_ERROR = 1000.0
"""An iteration whose energy is off by more is divergent, as in Stan."""

_Check = Callable[[Any], bool]


@dataclass(frozen=True)
class _Rule:
    """What a setting may be. `samplers`: those that have it."""

    kind: Callable[[Any], Any]
    holds: _Check
    text: str
    samplers: tuple[str, ...] = SAMPLERS

    def checked(self, name: str, value: Any) -> Any:
        """The value as a plain number, or ArgumentError."""
        if self.kind is bool:
            if isinstance(value, (bool, int)) and value in (0, 1):
                return bool(value)
        elif isinstance(value, Integral if self.kind is int else Real) and not isinstance(value, bool):
            plain = self.kind(value)
            if self.holds(plain):
                return plain
        raise ArgumentError(f"{name} must be {self.text}, found {value!r}")


def _count(least: int) -> _Rule:
    text = "a positive int" if least == 1 else "an int that is not negative" if least == 0 else f"an int from {least}"
    return _Rule(int, lambda value: value >= least, text)


def _positive(*samplers: str) -> _Rule:
    return _Rule(float, lambda value: 0 < value < math.inf, "a positive number", samplers or SAMPLERS)


_YES_OR_NO = _Rule(bool, lambda value: True, "True or False")

RULES: dict[str, _Rule] = {
    "chains": _count(1),
    "warmup": _count(0),
    "draws": _count(0),
    "seed": _count(0),
    "first_chain": _count(0),
    "thin": _count(1),
    "target_accept": _Rule(float, lambda value: 0 < value < 1, "a number between 0 and 1"),
    "max_depth": _Rule(int, lambda value: 1 <= value <= 60, "an int from 1 to 60", ("nuts", "nutpie")),
    "step_size": _positive(),
    "step_size_jitter": _Rule(float, lambda value: 0 <= value <= 1, "a number from 0 to 1"),
    "integration_time": _positive("hmc"),
    "save_warmup": _YES_OR_NO,
    "keep": _YES_OR_NO,
}
"""Numbers and flags among the options of `StanModel.sample`."""

ADAPT_RULES: dict[str, _Rule] = {
    "gamma": _positive(),
    "kappa": _positive(),
    "t0": _positive(),
    "init_buffer": _count(0),
    "term_buffer": _count(0),
    "window": _count(1),
    "engaged": _YES_OR_NO,
}
"""The keys of the option `adapt`."""


@dataclass(frozen=True)
class Adaptation:
    """How warmup adapts, by Stan's names (Stan Reference Manual, "Automatic parameter tuning")."""

    gamma: float = 0.05
    kappa: float = 0.75
    t0: float = 10.0
    init_buffer: int = 75
    term_buffer: int = 50
    window: int = 25
    engaged: bool = True

    @staticmethod
    def of(given: Mapping[str, Any] | None) -> Adaptation:
        """The option `adapt`: a mapping with some of the names. Raises ArgumentError for others."""
        if given is None:
            return Adaptation()
        if not isinstance(given, Mapping):
            raise ArgumentError(f"adapt must be a mapping with {', '.join(ADAPT_RULES)}, found {given!r}")
        for name in given:
            if name not in ADAPT_RULES:
                raise ArgumentError(f"adapt has no setting {name!r}; it has {', '.join(ADAPT_RULES)}")
        return Adaptation(**{name: ADAPT_RULES[name].checked(f"adapt[{name!r}]", given[name]) for name in given})


@dataclass(frozen=True)
class SamplingSettings:
    """What all chains of a run share: the options of `StanModel.sample`, checked.

    `draws` and `warmup` count iterations, of which every `thin`-th is kept. `step_size` is None where none was given,
    `init` says in words where chains begin; random numbers of the first of them are those of chain `first_chain`.
    """

    chains: int = 4
    warmup: int = 1000
    draws: int = 1000
    seed: int = 1
    thin: int = 1
    target_accept: float = 0.8
    max_depth: int = 10
    metric: str = "diag"
    step_size: float | None = None
    step_size_jitter: float = 0.0
    integration_time: float = 2 * math.pi
    adapt: Adaptation = field(default_factory=Adaptation)
    save_warmup: bool = False
    keep: bool = True
    sampler: str = "nuts"
    init: str = "2"
    first_chain: int = 1

    @property
    def adapts(self) -> bool:
        """Whether warmup changes the step size and the metric."""
        return self.warmup > 0 and self.adapt.engaged

    @property
    def kept_draws(self) -> int:
        """Draws of each chain after thinning."""
        return -(-self.draws // self.thin)

    @property
    def kept_warmup(self) -> int:
        """Iterations of warmup of each chain that are saved."""
        return -(-self.warmup // self.thin) if self.save_warmup else 0


def checked_settings(
    *, sampler: str, metric: str, adapt: Mapping[str, Any] | None, init: str, **options: Any
) -> SamplingSettings:
    """The settings of options with these values. Raises ArgumentError for a value that cannot be, and for one of an
    option that the sampler does not have. None stands for a default.
    """
    if sampler not in SAMPLERS:
        raise ArgumentError(f"sampler must be one of {', '.join(map(repr, SAMPLERS))}, found {sampler!r}")
    defaults = {entry.name: entry.default for entry in fields(SamplingSettings)}
    own = METRICS_OF_NUTPIE if sampler == "nutpie" else METRICS
    if metric not in own:
        raise ArgumentError(f"sampler={sampler!r} has no metric {metric!r}; it has {', '.join(map(repr, own))}")
    if sampler == "nutpie" and adapt is not None:
        raise ArgumentError("sampler='nutpie' has no adapt: it adapts in a way of its own")
    found: dict[str, Any] = {}
    for name, value in options.items():
        if value is None:
            continue
        rule = RULES[name]
        found[name] = rule.checked(name, value)
        if sampler not in rule.samplers and found[name] != defaults[name]:
            others = " and ".join(map(repr, rule.samplers))
            have = "has" if len(rule.samplers) == 1 else "have"
            raise ArgumentError(f"sampler={sampler!r} has no {name}; {others} {have}")
    return SamplingSettings(sampler=sampler, metric=metric, adapt=Adaptation.of(adapt), init=init, **found)
