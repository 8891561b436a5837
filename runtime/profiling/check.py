"""Whether a profile of gradients can be trusted: what its regions add up to, against the time of the gradient itself.

Three times of one gradient are compared, all of the processor: what the profile recorded, what its run took as a whole,
and what the gradient took in rounds afterwards. Where the first is not within 10% of the last, the other tells why.
"""

from __future__ import annotations

from dataclasses import dataclass

from ulam.runtime.profiling.profiler import Profiler
from ulam.runtime.profiling.report import merged, time_text

AGREEMENT = 0.1
"""How far, relatively, the recorded gradient may be from the measured one without a reason given."""


@dataclass(frozen=True)
class RecordedGradient:
    """Seconds per gradient: `in_regions` and `outside` of them as recorded, and of the whole `run`, without outliers.

    The methods are given the seconds per gradient that were measured afterwards.
    """

    in_regions: float
    outside: float
    run: float
    outlier_passes: int
    outlier_time: float
    processor_share: float
    """Which part of the time on the clock the threads had a processor."""
    threads: int

    @property
    def recorded(self) -> float:
        return self.in_regions + self.outside

    def reason(self, measured: float) -> str:
        """Why the recorded gradient is not the measured one; empty if it is."""
        if abs(self.recorded / measured - 1) <= AGREEMENT:
            return ""
        if abs(self.run / measured - 1) > AGREEMENT:
            if self.threads > 1:
                return f"each of the {self.threads} threads has a point of its own, and they share the memory"
            return (
                f"the run took {time_text(self.run)} per gradient, the rounds after it {time_text(measured)}: the "
                "machine's speed changed"
            )
        return f"{time_text(self.run - self.recorded)} of each gradient pass before and after what is recorded"

    def facts(self, measured: float) -> list[tuple[str, str]]:
        """Lines of the report."""
        reason = self.reason(measured)
        lines = [
            (
                "recorded",
                f"{time_text(self.recorded)} per gradient, {100 * self.recorded / measured:.0f}% of the one measured"
                f"{': ' if reason else ''}{reason}; "
                f"{time_text(self.in_regions)} of it in regions",
            )
        ]
        if self.processor_share < 1 - AGREEMENT:
            lines.append(("processor", f"{100 * self.processor_share:.0f}% of the time on the clock; times are its"))
        if self.outlier_passes:
            lines.append(
                (
                    "outliers",
                    f"{self.outlier_passes} evaluations took {time_text(self.outlier_time)} longer than usual ones, "
                    "not counted above",
                )
            )
        return lines


def recorded_gradient(profiler: Profiler, run: float, threads: int = 1) -> RecordedGradient | None:
    """What the profile recorded per gradient; None if it recorded no evaluations.

    `run`: seconds of the processor per gradient in the run that was recorded.
    """
    roots = [root for root in merged(profiler.evaluations()) if root.phase == "evaluation" and root.passes]
    if not roots:
        return None
    root = roots[0]
    inside = sum(child.total_time for child in root.children) / root.passes
    return RecordedGradient(
        in_regions=inside,
        outside=max(0.0, root.total_time / root.passes - inside),
        run=run - root.outlier_time / root.passes,
        outlier_passes=root.outlier_passes,
        outlier_time=root.outlier_time,
        processor_share=min(1.0, (root.total_time + root.outlier_time) / root.wall_time) if root.wall_time else 1.0,
        threads=threads,
    )
