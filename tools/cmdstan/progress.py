"""Lines of progress in CmdStan's words, which its clients read."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ulam.runtime.sampling.chain import ChainProgress


class IterationLines:
    """A callback of `sample` that prints the iterations that CmdStan does: each `refresh`-th of a phase, and its first.

    Chains tell how far they are now and then, so several lines may come at once.
    """

    def __init__(self, refresh: int, chains: int, first: int) -> None:
        self.refresh, self.chains, self.first = refresh, chains, first
        self._told = [0] * chains

    def begin(self, warmup: int, total: int) -> None:
        """How many iterations there are, and how many of them are warmup."""
        self.warmup, self.total = warmup, total

    def __call__(self, progress: ChainProgress) -> None:
        chain = progress.chain - 1
        numbers = sorted({k for k in self._shown(self._told[chain], progress.iteration)})
        self._told[chain] = progress.iteration
        if numbers:
            try:
                sys.stdout.write("".join(self._line(chain, number) for number in numbers))
                sys.stdout.flush()
            except BrokenPipeError:  # the reader has gone: the chains go on, and what is said at the end tells
                self.refresh = 0

    def _shown(self, after: int, until: int) -> Iterator[int]:
        """Of the iterations after the one up to the other those that have lines."""
        if not self.refresh:
            return
        for start, end in ((0, self.warmup), (self.warmup, self.total)):
            first, last = max(after - start, 0), min(until, end) - start
            if first < 1 <= last:
                yield start + 1
            yield from (start + k for k in range((first // self.refresh + 1) * self.refresh, last + 1, self.refresh))
        if after < self.total <= until:
            yield self.total

    def _line(self, chain: int, number: int) -> str:
        which = f"Chain [{self.first + chain}] " if self.chains > 1 else ""
        width = len(str(max(self.total - 1, 1)))
        phase = "Warmup" if number <= self.warmup else "Sampling"
        return f"{which}Iteration: {number:>{width}} / {self.total} [{100 * number // self.total:>3}%]  ({phase})\n"
