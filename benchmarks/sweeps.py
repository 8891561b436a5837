"""What sweeps over programs share: shards, results that a stopped run goes on with, a limit of CPU time for each."""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

WAITING = 10
"""Times the CPU seconds that a child may take as time on the clock, if it waits or shares its processor."""


class Outcome(NamedTuple):
    """`answer` of a call is None if its child did not return one: `problem` is then what became of it."""

    answer: Any
    problem: str
    seconds: float
    """CPU time."""


def in_child(call: Callable[[], Any], seconds: float) -> Outcome:
    """Calls in a forked process, which may take so much CPU time; the answer travels as JSON."""
    sys.stdout.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _answer(call, seconds, writing)
    os.close(writing)
    with open(reading, "rb") as pipe:
        text = pipe.read()
    _, status, usage = os.wait4(child, 0)
    spent = usage.ru_utime + usage.ru_stime
    if text:
        return Outcome(json.loads(text), "", spent)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM):
        return Outcome(None, f"more than {seconds:g} s", spent)
    if os.WIFSIGNALED(status):
        return Outcome(None, f"killed by {signal.Signals(os.WTERMSIG(status)).name}", spent)
    return Outcome(None, f"exit status {os.WEXITSTATUS(status)}", spent)


def _answer(call: Callable[[], Any], seconds: float, writing: int) -> None:
    """The child's part, which never returns."""
    limit = max(1, round(seconds))
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(WAITING * limit)
    status = 1
    try:
        with open(writing, "wb") as pipe:
            pipe.write(json.dumps(call()).encode())
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


class Results:
    """One JSON object a line, each with a `name`; what is there already need not be done again."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
        self.rows: dict[str, dict[str, Any]] = {row["name"]: row for row in map(json.loads, lines)}

    def add(self, row: dict[str, Any]) -> None:
        self.rows[row["name"]] = row
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Those that all sweeps have."""
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT", help="names that contain one of these")
    parser.add_argument("--shard", default="1/1", metavar="K/N", help="each Nth program, from the Kth")
    parser.add_argument("--results", type=Path, metavar="FILE", help="what was found, which a stopped run goes on with")


def chosen(names: Sequence[str], options: argparse.Namespace) -> Iterator[str]:
    """Of all names those that the options ask for."""
    which, shards = map(int, options.shard.split("/"))
    if not 1 <= which <= shards:
        raise SystemExit(f"--shard {options.shard}: expected K/N with K from 1 to N")
    for name in names[which - 1 :: shards]:
        if not options.only or any(text in name for text in options.only):
            yield name


def sweep(
    names: Sequence[str], options: argparse.Namespace, examine: Callable[[str], dict[str, Any]]
) -> list[dict[str, Any]]:
    """The rows of all chosen names, each examined unless there is one already."""
    results = Results(options.results)
    asked = list(chosen(names, options))
    begun = time.monotonic()
    for number, name in enumerate(asked, 1):
        if name not in results.rows:
            results.add({"name": name, **examine(name)})
            if number % 50 == 0:
                print(f"{number} of {len(asked)} after {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    return [results.rows[name] for name in asked]


def report_differences(rows: Sequence[dict[str, Any]]) -> int:
    """Prints the problems of rows, and in which of them levels differ; 1 if any do."""
    for row in rows:
        if row.get("problem"):
            print(f"  {row['name']}: {row['problem']}")
    differing = [row for row in rows if row.get("differences")]
    print(f"{len(differing)} programs differ between levels:")
    for row in differing:
        for told in row["differences"]:
            print(f"  {row['name']}: {told}")
    return 1 if differing else 0
