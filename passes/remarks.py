"""What passes tell about their work: per loop, variable and statement, what was done and what prevented more.

    with collect_remarks() as remarks:
        ...run passes...
    for remark in remarks: print(remark)

    model.stan:14:3: loop-vectorization: loop over n: done: 2 statements became whole-vector statements
    model.stan:20:3: loop-vectorization: loop over n: not done: mu[n - 1] depends on an earlier iteration

Passes call `remark(...)` wherever they decide; nothing is recorded unless somebody collects. Passes on what programs
are lowered to call `remark_on(...)` with the op that they decided about: its place is that of the user's statement, and
what it is about is named by its kind. Where only the message costs something, ask `collecting()` first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from xdsl.dialects.builtin import FileLineColLoc, LocationAttr, UnknownLoc
from xdsl.ir import Operation

from ulam.dialects.places import place_of
from ulam.library.records import record


@record(frozen=True, slots=True)
class Remark:
    """One decision. `subject`: what it is about (`loop over n`, `variable mu`, `call of f`); `message`: one clause."""

    pass_name: str
    done: bool
    subject: str
    message: str
    location: LocationAttr

    @property
    def place(self) -> tuple[str, int, int] | None:
        """File, line and column; None if they are not known."""
        if not isinstance(self.location, FileLineColLoc):
            return None
        return self.location.filename.data, self.location.line.data, self.location.column.data

    def __str__(self) -> str:
        where = "".join(f"{part}:" for part in self.place or ())
        verdict = "done" if self.done else "not done"
        return f"{where} {self.pass_name}: {self.subject}: {verdict}: {self.message}".lstrip()


_collected: ContextVar[list[Remark] | None] = ContextVar("remarks", default=None)


def remark(pass_name: str, location: LocationAttr, subject: str, message: str, *, done: bool) -> None:
    """Notes a decision of a pass, if anybody collects."""
    if (found := _collected.get()) is not None:
        found.append(Remark(pass_name, done, subject, message, location))


def collecting() -> bool:
    """Whether anybody collects."""
    return _collected.get() is not None


def remark_on(pass_name: str, op: Operation, message: str, *, done: bool, subject: str | None = None) -> None:
    """Notes a decision of a pass about a lowered op, if anybody collects.

    `subject` is named by the op's kind unless it is given: a loop, a branch, an expression.
    """
    if (found := _collected.get()) is not None:
        about = subject or _SUBJECTS.get(op.name, "expression")
        found.append(Remark(pass_name, done, about, message, place_of(op.location) or UnknownLoc()))


_SUBJECTS = {"scf.for": "loop", "scf.while": "loop", "scf.if": "branch", "func.func": "function"}
"""What lowered ops are to users; all others are expressions."""


@contextmanager
def collect_remarks() -> Iterator[list[Remark]]:
    """The remarks of all passes that run inside."""
    remarks: list[Remark] = []
    token = _collected.set(remarks)
    try:
        yield remarks
    finally:
        _collected.reset(token)
