"""`stan-opt --explain`: what the passes did and what prevented more, per source line, loop, variable and statement.

    model.stan
       14 |   for (n in 1 : N) {
              loop over n
                done      loop-vectorization: 2 statements became whole-vector statements
                not done  static-loop-unrolling: the number of iterations is not known

The remarks come from the passes (`ulam.passes.remarks`). The same remark is told once, however often it was made; those
about variables that passes made (`lcm_sym3__`) are left out. `--explain=json` prints every remark, a line each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from ulam.passes.remarks import Remark

if TYPE_CHECKING:
    from ulam.runtime.layout_choices import LayoutChoice

_OF_A_PASS = re.compile(r"\b\w+_sym\d+__")

LineOf = Callable[[str, int], "str | None"]
"""(file, line) → the text of the line, None if it is not known."""

_GREEN, _YELLOW, _BOLD, _RESET = "\033[32m", "\033[33m", "\033[1m", "\033[0m"


def explain(remarks: Iterable[Remark], line_of: LineOf, *, form: str = "text", styled: bool = False) -> str:
    """The report, in `form` `text` or `json`; `styled` for terminals."""
    if form == "json":
        lines = map(_json, _in_order(remarks))
    else:
        lines = _report(shown_remarks(remarks), line_of, styled)
    return "".join(f"{line}\n" for line in lines)


def shown_remarks(remarks: Iterable[Remark]) -> list[Remark]:
    """Those that users are told, by file and line, each once."""
    return [remark for remark in _in_order(remarks) if not _OF_A_PASS.search(remark.subject)]


def layout_remarks(choices: Iterable[LayoutChoice]) -> list[Remark]:
    """What binding data chose, as remarks."""
    from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

    return [
        Remark(
            "layouts", choice.taken, "data", choice.message,
            FileLineColLoc(StringAttr(choice.file), IntAttr(choice.line), IntAttr(choice.column)),
        )
        for choice in choices
    ]  # fmt: skip


def _in_order(remarks: Iterable[Remark]) -> list[Remark]:
    """The remarks by file, line and column; each once. Files come in the order of their first remark."""
    once: dict[tuple[object, ...], Remark] = {}
    for remark in remarks:
        once.setdefault(_key(remark), remark)
    unique = list(once.values())
    files: dict[str, int] = {}
    for remark in unique:
        if remark.place is not None:
            files.setdefault(remark.place[0], len(files))

    def place(remark: Remark) -> tuple[int, int, int]:
        if remark.place is None:
            return len(files), 0, 0
        file, line, column = remark.place
        return files[file], line, column

    return sorted(unique, key=place)


def _key(remark: Remark) -> tuple[object, ...]:
    """What makes two remarks the same: a column is not shown."""
    return remark.place and remark.place[:2], remark.pass_name, remark.done, remark.subject, remark.message


def _json(remark: Remark) -> str:
    file, line, column = remark.place or (None, None, None)
    return json.dumps(
        {
            "file": file,
            "line": line,
            "column": column,
            "subject": remark.subject,
            "pass": remark.pass_name,
            "done": remark.done,
            "message": remark.message,
        },
        ensure_ascii=False,
    )


def _report(ordered: Sequence[Remark], line_of: LineOf, styled: bool) -> Iterator[str]:
    if not ordered:
        yield "no pass had anything to decide"
    bold, reset = (_BOLD, _RESET) if styled else ("", "")
    for file, in_file in groupby(ordered, lambda r: r.place and r.place[0]):
        yield f"{bold}{file or 'without a place in the program'}{reset}"
        for line, in_line in groupby(in_file, lambda r: r.place and r.place[1]):
            if file is not None and line is not None:
                text = line_of(file, line)
                yield bold + f"{line:5} | {text or ''}".rstrip() + reset
            for subject, told in _by_subject(in_line).items():
                yield f"          {subject}"
                for remark in told:
                    yield f"            {_verdict(remark, styled)}{remark.pass_name}: {remark.message}"


def _by_subject(remarks: Iterable[Remark]) -> Mapping[str, list[Remark]]:
    """Remarks about the same loop, variable or statement together, in the order in which they were made."""
    subjects: dict[str, list[Remark]] = {}
    for remark in remarks:
        subjects.setdefault(remark.subject, []).append(remark)
    return subjects


def _verdict(remark: Remark, styled: bool) -> str:
    word = f"{'done' if remark.done else 'not done':10}"
    return f"{_GREEN if remark.done else _YELLOW}{word}{_RESET}" if styled else word
