"""What a profiler records: regions, rows by name, nodes of the tree of regions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields

PHASES = ("data", "evaluation", "warm-up", "sampling", "optimization", "generated quantities", "other")
"""What a model was doing; numbered in this order."""


@dataclass(frozen=True, slots=True)
class Region:
    """A profile statement."""

    name: str
    file: str
    line: int
    column: int

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else ""


@dataclass
class ProfileRow:
    """What was recorded under a name by one thread. Times in seconds; `total_time` is the sum of the next two.

    These are the processor's time, and passes that took far longer than others count in them as usual ones do
    (c/profile_times.h): `outlier_passes`, `outlier_time` is what was taken off. `wall_time` is all of it on the clock.
    `kept_values` were put on the var stack for the reverse sweep; `other_values` is what containers there hold besides.
    `solver_steps` are those of solvers and refinements of integrals, `failed_steps` those that were taken back.
    """

    name: str
    thread_id: int
    phase: str
    forward_time: float = 0.0
    reverse_time: float = 0.0
    kept_values: int = 0
    other_values: int = 0
    passes: int = 0
    """Without a gradient."""
    gradient_passes: int = 0
    wall_time: float = 0.0
    outlier_passes: int = 0
    outlier_time: float = 0.0
    solver_steps: int = 0
    failed_steps: int = 0

    @property
    def total_time(self) -> float:
        return self.forward_time + self.reverse_time

    def add(self, other: ProfileRow) -> None:
        """Adds the times and counts of another row."""
        for name in _ADDED:
            setattr(self, name, getattr(self, name) + getattr(other, name))


_ADDED = tuple(entry.name for entry in fields(ProfileRow) if entry.name not in ("name", "thread_id", "phase"))


@dataclass
class ProfileNode(ProfileRow):
    """The same for one place in the tree of regions: what is nested in `children` is part of its times."""

    region: Region | None = None
    children: list[ProfileNode] = field(default_factory=list["ProfileNode"])

    @property
    def self_time(self) -> float:
        """What its children did not take."""
        return self.total_time - sum(child.total_time for child in self.children)


@dataclass(frozen=True, slots=True)
class Overhead:
    """Seconds that a pass through a region takes in a sweep: those counted as the region's time, and others."""

    inside: float
    outside: float


def walk(nodes: Sequence[ProfileNode]) -> Iterator[ProfileNode]:
    """Nodes and all below them, parents first."""
    for node in nodes:
        yield node
        yield from walk(node.children)
