"""The processor that code is made for: this machine's, or a level of its architecture.

    ULAM_TARGET_CPU=x86-64-v3 ulam optimize MODEL     # as on a machine with AVX2 and without AVX-512
    ulam build --target-cpu generic MODEL             # for all machines of the architecture

Vectors have 128 bits at level 2 and below, 256 at level 3, 512 at level 4. The levels are those of the x86-64 psABI,
"Low Level System Information". What is run here must be what this machine has, what is built for others need not be.
CPU and features are part of the key of cached code.
"""

from __future__ import annotations

import os

from ulam.emit.errors import TargetError
from ulam.library.records import record

VARIABLE = "ULAM_TARGET_CPU"

NATIVE, GENERIC = "native", "generic"
"""This machine; what every machine of its architecture has."""

_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_V4 = (*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
LEVELS = {"x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}
"""Levels by LLVM's names of them, each with LLVM's names of what it has."""


@record(frozen=True)
class Vectors:
    """Vectors of a processor, in doubles: of those that LLVM chooses by itself, and the longest that loops may ask for.

    `masks`: there are mask registers.
    """

    lanes: int = 8
    longest: int = 8
    masks: bool = True


@record(frozen=True)
class Host:
    """A processor, by LLVM's names."""

    triple: str
    cpu: str
    features: str

    @property
    def fused(self) -> bool:
        """Whether it has a fused multiply-add instruction."""
        return "+fma" in self.features.split(",") or self.triple.startswith(("aarch64", "arm64"))

    @property
    def vectors(self) -> Vectors:
        """Of Intel's processors with AVX-512, LLVM takes vectors of 256 bits (`TuningPrefer256Bit` in its X86.td)."""
        features = self.features.split(",")
        longest = 8 if "+avx512f" in features else 4 if "+avx2" in features else 2
        takes_longest = self.cpu.startswith("znver") or "-prefer-256-bit" in features
        return Vectors(longest if takes_longest else min(longest, 4), longest, "+avx512vl" in features)


def chosen(machine: Host) -> Host:
    """`machine`, or the level of it that the environment asks for. Raises TargetError where it has not got that."""
    level = os.environ.get(VARIABLE, "")
    if not level:
        return machine
    if level not in LEVELS:
        raise TargetError(f"{VARIABLE}={level}: there is no such level; there are {', '.join(LEVELS)}")
    missing = [f"+{name}" for name in LEVELS[level] if f"+{name}" not in machine.features.split(",")]
    if missing:
        raise TargetError(f"{VARIABLE}={level}: this machine ({machine.cpu}) is without {', '.join(missing)}")
    return _of_level(machine, level)


def named(machine: Host, name: str) -> Host:
    """What `name` means on machines like this one: one of `target_names`. Raises TargetError for others."""
    if name == NATIVE:
        return machine
    if name == GENERIC:
        return Host(machine.triple, "x86-64" if _is_x86(machine) else "generic", "")
    if name not in target_names(machine):
        raise TargetError(f"there is no target '{name}'; there are {', '.join(target_names(machine))}")
    return _of_level(machine, name)


def target_names(machine: Host) -> tuple[str, ...]:
    """What code can be made for here."""
    return (NATIVE, GENERIC, *(LEVELS if _is_x86(machine) else ()))


def _is_x86(machine: Host) -> bool:
    return machine.triple.startswith("x86_64")


def _of_level(machine: Host, level: str) -> Host:
    features = [f"+{name}" for name in LEVELS[level]]
    # LLVM's choice for level 4 would be vectors of 256 bits
    return Host(machine.triple, level, ",".join([*features, "-prefer-256-bit"]))
