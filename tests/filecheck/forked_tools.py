"""A test format of lit that runs our tools in forks of one process, instead of an interpreter for each command.

RUN lines that are pipelines of `stan-opt`, `ulam`, `filecheck` and `not` run here; lit's own shell has all others.
"""

from __future__ import annotations

import gc
import io
import os
import re
import shlex
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from typing import Any

import lit.formats
import lit.Test
import lit.TestRunner

_NUMBERED = re.compile(lit.TestRunner.kPdbgRegex)
"""A command with the place of its RUN line before it."""
_WARMING = "parameters { real x; } model { x ~ normal(0, 1); }"


def _filecheck(arguments: list[str]) -> int:
    from filecheck.main import main

    return main(["filecheck", *arguments]) or 0


def _stan_opt(arguments: list[str]) -> int:
    from ulam.tools.stan_opt import main

    return main(arguments) or 0


TOOLS: dict[str, Callable[[list[str]], int]] = {"stan-opt": _stan_opt, "filecheck": _filecheck}


@dataclass(frozen=True)
class Command:
    """One command of a pipeline. `fails`: it stands after `not`; `merged`: its errors go where its output goes."""

    tool: str
    arguments: list[str]
    fails: bool
    merged: bool


@cache
def warm() -> None:
    """Loads what the tools load for nearly every program."""
    from ulam.passes.pipelines import PASSES, pass_class

    for name in PASSES:
        pass_class(name)
    with redirect_stdout(io.StringIO()), tempfile.NamedTemporaryFile("w", suffix=".stan") as file:
        file.write(_WARMING)
        file.flush()
        assert _stan_opt([file.name, "-O3", "-t", "llvm"]) == 0
    import filecheck.main  # noqa: F401

    gc.collect()
    gc.freeze()  # so that collections in the forks do not copy what is there


class ForkedShTest(lit.formats.ShTest):
    """As `ShTest`, and faster where a script has nothing but our tools."""

    def execute(self, test: Any, litConfig: Any) -> Any:
        pipelines = None if litConfig.noExecute or test.config.unsupported else _script(test)
        if pipelines is None or not hasattr(os, "fork"):
            return super().execute(test, litConfig)
        warm()
        for line, pipeline in pipelines:
            passed, report = _run(pipeline, test.config)
            if not passed:
                return lit.Test.Result(lit.Test.FAIL, f"{line}\n{report}")
        return lit.Test.Result(lit.Test.PASS)


def _script(test: Any) -> list[tuple[str, list[Command]]] | None:
    """The RUN lines of a test as pipelines; None if there is anything else."""
    parsed = lit.TestRunner.parseIntegratedTestScript(test)
    if isinstance(parsed, lit.Test.Result) or test.getMissingRequiredFeatures() or test.isExpectedToFail():
        return None
    directory, base = lit.TestRunner.getTempPaths(test)
    own = {rule for rule, _ in test.config.substitutions}
    substitutions = lit.TestRunner.getDefaultSubstitutions(test, directory, base)
    kept = [pair for pair in substitutions if pair[0] not in own]  # the names of the tools stay as they are
    lines = [_NUMBERED.sub(r"\2", line).strip() for line in lit.TestRunner.applySubstitutions(parsed, kept)]
    pipelines = [(line, _pipeline(line)) for line in lines]
    return None if any(p is None for _, p in pipelines) else [(line, p) for line, p in pipelines if p is not None]


def _pipeline(line: str) -> list[Command] | None:
    """The commands of a line; None if it has other parts than our tools, `not`, `|` and `2>&1`."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.wordchars += "%{}=,:@[]$"
    lexer.commenters = ""
    commands: list[Command] = []
    words: list[str] = []
    for token in [*lexer, "|"]:
        if token != "|":
            words.append(token)
            continue
        merged = words[-3:] == ["2", ">&", "1"]
        words = words[:-3] if merged else words
        fails = words[:1] == ["not"]
        words = words[1:] if fails else words
        if not words or words[0] not in TOOLS or any(set(word) <= set("<>&;()") for word in words[1:]):
            return None
        commands.append(Command(words[0], words[1:], fails, merged))
        words = []
    return commands


def _run(pipeline: Sequence[Command], config: Any) -> tuple[bool, str]:
    """Runs the commands one after the other; whether all did what they should, and what they wrote if not."""
    given, report, passed = b"", [], True
    for number, command in enumerate(pipeline):
        status, output, errors = _fork(command, given, config)
        last = number == len(pipeline) - 1
        if (status != 0) != command.fails:
            passed = False
            report.append(f"{command.tool} ended with {status}")
        report += [errors.decode(errors="replace"), output.decode(errors="replace") if last else ""]
        given = output
    return passed, "\n".join(part for part in report if part)


def _fork(command: Command, given: bytes, config: Any) -> tuple[int, bytes, bytes]:
    """Runs a tool in a fork; its status, output and errors."""
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        source.write(given)
        source.flush()
        source.seek(0)
        child = os.fork()
        if not child:
            _become(command, source.fileno(), output.fileno(), errors.fileno(), config)
        _, status = os.waitpid(child, 0)
        output.seek(0)
        errors.seek(0)
        return os.waitstatus_to_exitcode(status), output.read(), errors.read()


def _become(command: Command, source: int, output: int, errors: int, config: Any) -> None:
    """The child's whole life."""
    status = 70
    try:
        os.dup2(source, 0)
        os.dup2(output, 1)
        os.dup2(output if command.merged else errors, 2)
        sys.stdin = open(0, encoding="utf-8", closefd=False)
        # Line by line, so that merged errors stand where they were written.
        sys.stdout, sys.stderr = (open(n, "w", buffering=1, encoding="utf-8", closefd=False) for n in (1, 2))
        os.environ.clear()
        os.environ.update(config.environment)
        os.chdir(config.test_exec_root)
        sys.argv = [command.tool, *command.arguments]
        status = TOOLS[command.tool](command.arguments)
    except SystemExit as exit_:
        status = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
        if isinstance(exit_.code, str):
            print(exit_.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
