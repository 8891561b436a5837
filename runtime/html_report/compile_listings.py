"""The listings of a compile as data for a script: each line of text once, listings as lists of their numbers.

    {"files": ["model.stan"], "lines": [["%0 = ...", 0, 14], ...],
     "stages": {"7": {"name": "cse", "ids": [0, 3, ...], "new": [[2, 5]], "gone": [[2, [17, 18]]]}}, "loops": [...]}

`new` are ranges of lines that the listing before did not have, `gone` lines of that one, with the place where they
stood. Programs may be large: beyond LINES lines a listing is cut, beyond ROOM lines in all those are left out that
changed least, but for the ends of phases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ulam.runtime.compile_record import MACHINE, CompileRecord, IrLine, changed_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ulam.runtime.assembly_listing import AssemblyLoop

LINES = 2_500
"""Of one listing."""

ROOM = 30_000
"""Lines of all listings together."""

WIDTH = 400
"""Characters of a line."""

LOOPS = 60
"""Hot loops that are shown, the deepest and longest."""

_WRITTEN_ANEW = ("convert-stan-to-loops",)
"""Behind which nothing of the listing before is left to be compared with; so is machine code."""


class Listings:
    """What of the record's listings the page has. `shares`: of lines in the time of a gradient, by file and line."""

    def __init__(self, record: CompileRecord, shares: Mapping[tuple[str, int], float]) -> None:
        self._record = record
        self._shares = shares
        self._files = {name: number for number, name in enumerate(record.sources)}
        self._numbers: dict[tuple[str, int, int], int] = {}
        kept = [k for k, run in enumerate(record.runs) if run.listing is not None]
        self._changes: dict[int, list[tuple[str, int, int, int, int]]] = {}
        before: list[IrLine] = []
        for k in kept:
            after = record.runs[k].listing or []
            if before and record.runs[k].name not in _WRITTEN_ANEW and record.runs[k].phase != MACHINE:
                self._changes[k] = changed_lines(before[:LINES], after[:LINES])
            before = after
        self._kept = self._chosen(kept)
        left_out = len(kept) - len(self._kept)
        cut = sum(len(record.runs[k].listing or ()) > LINES for k in self._kept)
        notes: list[str] = []
        if cut:
            notes.append(f"Of {cut} long listings the first {LINES:,} lines are shown.")
        unprinted = sum(run.listing is None and run.changed is not False and not run.has_steps for run in record.runs)
        if left_out + unprinted:
            runs = left_out + unprinted
            words = f"{runs} runs of passes" if runs > 1 else "one run of a pass"
            notes.append(f"The IR after {words} was left out, as the program is large.")
        self.note = " ".join(notes)

    def has(self, run: int) -> bool:
        """Whether the listing behind a run is on the page."""
        return run in self._kept

    def _chosen(self, kept: list[int]) -> set[int]:
        """The ends of phases; then what changed most, as long as there is room."""
        ends = {self._record.runs[k].phase: k for k in kept}
        first = set(ends.values()) | set(kept[:1])
        room = ROOM - sum(self._size(k) for k in first)
        chosen = set(first)
        for k in sorted(set(kept) - first, key=lambda k: -self._changed(k)):
            if self._size(k) <= room:
                room -= self._size(k)
                chosen.add(k)
        return chosen

    def _size(self, run: int) -> int:
        return min(LINES, len(self._record.runs[run].listing or ()))

    def _changed(self, run: int) -> int:
        return sum(b - a + d - c for kind, a, b, c, d in self._changes.get(run, []) if kind != "equal")

    # ------------------------------------------------------------ data

    def data(self) -> dict[str, Any]:
        """What the script reads."""
        stages: dict[str, Any] = {}
        before: list[IrLine] = []
        previous = -1
        for k, run in enumerate(self._record.runs):
            if run.listing is None:
                continue
            if k in self._kept:
                ids = [self._number(line) for line in run.listing[:LINES]]
                stage = {"name": run.name, "ids": ids, "cut": max(0, len(run.listing) - LINES)}
                if k in self._changes:
                    stage |= self._differences(self._changes[k], before)
                if previous >= 0 and previous not in self._kept:
                    stage["skipped"] = True
                stages[str(k)] = stage
            before, previous = run.listing, k
        loops = [self._loop(loop) for loop in self._hot_loops()]
        lines = [[text, file, line] if line else text for text, file, line in self._numbers]
        return {"files": list(self._files), "lines": lines, "stages": stages, "loops": loops}

    def _differences(self, codes: list[tuple[str, int, int, int, int]], before: list[IrLine]) -> dict[str, Any]:
        """Ranges that are new, and lines that are gone with the place in the new listing where they stood."""
        new = [[c, d] for kind, _, _, c, d in codes if kind in ("insert", "replace") and d > c]
        gone = [
            [c, [self._number(line) for line in before[a:b]]]
            for kind, a, b, c, _ in codes
            if kind in ("delete", "replace") and b > a
        ]
        return {"new": new, "gone": gone}

    def _number(self, line: IrLine) -> int:
        file, number = line.place or ("", 0)
        text = line.text if len(line.text) <= WIDTH else f"{line.text[:WIDTH]} …"
        key = (text, self._files[file], number) if file in self._files else (text, 0, 0)
        return self._numbers.setdefault(key, len(self._numbers))

    def _hot_loops(self) -> list[AssemblyLoop]:
        """Loops of what is evaluated, not of what runs once; those of the lines that cost most first."""
        loops = [loop for loop in self._record.assembly.loops if loop.function.rpartition(".")[2] != "bind"]
        chosen = sorted(loops, key=lambda loop: (-self._share(loop), -loop.depth, -loop.instructions))[:LOOPS]
        return sorted(chosen, key=lambda loop: -self._share(loop))

    def _share(self, loop: AssemblyLoop) -> float:
        """The share of the line that most of the loop's instructions are of."""
        return self._shares.get(loop.places[0], 0.0) if loop.places else 0.0

    def _loop(self, loop: AssemblyLoop) -> dict[str, Any]:
        lines = self._record.assembly.lines
        ids = [
            self._number(IrLine(line.text, line.place))
            for first, last in loop.ranges
            for line in lines[first : last + 1]
        ]
        return {
            "function": loop.function, "depth": loop.depth, "instructions": loop.instructions, "ids": ids,
            "registers": loop.registers, "calls": list(loop.calls), "share": round(self._share(loop), 3),
            "places": [[self._files[file], line] for file, line in loop.places if file in self._files],
        }  # fmt: skip

