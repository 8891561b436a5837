"""The documentation is true: its programs compile (or do not, where it says so), its commands run and print what it
shows, its Python session gives these results, its lists are current, its links and paths exist.

Console blocks are compared with `...` for what is left out. Numbers may differ in the last digits shown, times and
counts of iterations altogether; names of SSA values and numbers of metadata are not compared.
"""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ulam.frontend.functions.signatures import Overloads

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
COMMANDS = {"stan-opt": "ulam.tools.stan_opt", "ulam": "ulam.tools.ulam_main"}
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
UNSTABLE = ("time", "iterations", "evaluations", "gradient norm", "y_new")
AS_PRINTED = ("-t stan", "--debug-", "--explain")  # other output of stan-opt is IR
OPTIMIZED = re.compile(r"^```stan (-[pO][^\n]*)\n(.*?)^```\n+```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OP = re.compile(r"\b(?:arith|scf|func|rt|ad|stan)\.\w+|\b(?:fmul|fadd|fsub|load|br|define|fcmp|phi)\b")


def blocks(kind: str) -> list[tuple[str, str]]:
    """(name, text) of all fenced blocks of a kind."""
    found = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            if match[2].strip() == kind:
                line = text.count("\n", 0, match.start()) + 1
                indented = re.sub(rf"^{match[1]}", "", match[3], flags=re.MULTILINE)
                found.append((f"{document.name}:{line}", indented))
    return found


def parametrize(kind: str) -> pytest.MarkDecorator:
    found = blocks(kind)
    return pytest.mark.parametrize("text", [text for _, text in found], ids=[name for name, _ in found])


def list_functions() -> ModuleType:
    return _script("list_functions")


def _script(name: str) -> ModuleType:
    """A script of docs/, which finds its neighbours as if it were run."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        patch.setitem(sys.modules, name, module)  # for dataclasses
        spec.loader.exec_module(module)
    return module


# ---------------------------------------------------------------- commands


@cache
def run(command: str) -> tuple[int, str]:
    """Exit status and output of a command of ours, from the root of the checkout."""
    echoed, _, command = command.rpartition(" | ")
    name, *arguments = shlex.split(command)
    invocation = [sys.executable, "-m", COMMANDS[name], *arguments]
    given = "\n".join([*shlex.split(echoed)[1:], ""])  # of `echo`
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}  # as users have it
    finished = subprocess.run(
        invocation, cwd=ROOT, input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    return finished.returncode, finished.stdout


@parametrize("console")
def test_console(text: str) -> None:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        status, printed = run(command)
        fails = " check " in command or "ulam: error:" in shown or " explain " in command
        assert status == (1 if fails else 0), printed
        if command.startswith("stan-opt") and not any(option in command for option in AS_PRINTED):
            # The text of the IR changes with every improvement; what kinds of ops there are must be so.
            assert set(OP.findall(shown)) <= set(OP.findall(printed))
        else:
            assert_alike(shown, printed)


def assert_alike(shown: str, printed: str) -> None:
    """The same lines, with `...` for any number of them, up to the precision of numbers."""
    expected, actual = shown.splitlines(), printed.splitlines()
    if "..." not in (line.strip() for line in expected):
        assert [_without_numbers(line) for line in expected] == [_without_numbers(line) for line in actual]
        for line, other in zip(expected, actual, strict=True):
            if not any(word in line for word in UNSTABLE):
                numbers = [float(n) for n in NUMBER.findall(other)]
                assert [float(n) for n in NUMBER.findall(line)] == pytest.approx(numbers, rel=1e-3), line
        return
    remaining = iter(actual)
    for line in expected:
        if line.strip() != "...":
            assert any(" ".join(other.split()) == " ".join(line.split()) for other in remaining), f"not printed: {line}"


def _without_numbers(line: str) -> str:
    """The line but its numbers; of a line that may differ, what stands before them."""
    text = NUMBER.sub("#", " ".join(line.split()))
    return text.partition("#")[0] if any(word in line for word in UNSTABLE) else text


def test_readme_has_the_command_of_the_continuous_integration() -> None:
    commands = [text.strip() for _, text in blocks("sh")]
    calls = (ROOT / ".ci" / "run").read_text().splitlines()
    assert commands[1] in calls
    assert commands[0].startswith("pip install . && ulam sample examples/")
    for path in re.findall(r"examples/\S+", commands[0]):
        assert (ROOT / path).is_file()


# ---------------------------------------------------------------- Python and Stan


SESSIONS = [path for path in DOCUMENTS if ">>>" in path.read_text(encoding="utf-8")]


@pytest.mark.ordinary_runtime("shares of time are not those of the work")
@pytest.mark.parametrize("document", SESSIONS, ids=lambda path: path.name)
def test_python_session(document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    parts = (text for name, text in blocks("python") if name.startswith(f"{document.name}:"))
    session = "\n".join(text for text in parts if ">>>" in text)
    test = doctest.DocTestParser().get_doctest(session, {}, document.name, document.name, 0)
    assert len(test.examples) > 5
    report: list[str] = []
    options = doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
    failures, _ = doctest.DocTestRunner(optionflags=options).run(test, out=report.append)
    assert not failures, "".join(report)


@parametrize("stan supported")
def test_supported_program(text: str) -> None:
    from ulam.runtime.compiler import Compiler

    for unit in ("setup", "gradient_propto", "constrain"):
        assert Compiler(text).llvm_text(unit)


OPTIMIZED_PROGRAMS = OPTIMIZED.findall((ROOT / "docs" / "optimization.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("options", "program", "shown"), OPTIMIZED_PROGRAMS, ids=[o for o, _, _ in OPTIMIZED_PROGRAMS])
def test_example_of_a_pass(
    options: str, program: str, shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from ulam.tools.stan_opt import main

    path = tmp_path / "example.stan"
    path.write_text(program)
    assert main([str(path), *shlex.split(options), "--verify-each", "--debug-optimized-mir-pretty"]) == 0
    assert capsys.readouterr().out == shown


def test_every_pass_of_a_level_has_its_example() -> None:
    lists = _script("list_levels")
    document = lists.DOCUMENT.read_text(encoding="utf-8")
    assert lists.updated(document) == document, "run python docs/list_levels.py"
    named = {name for options, _, _ in OPTIMIZED_PROGRAMS for name in re.findall(r"[a-z]+(?:-[a-z]+)+", options)}
    assert lists.passes() <= named | {"specialize-data"}


@pytest.mark.parametrize("script", ["list_optimizers", "list_commands", "list_structure", "list_api"])
def test_tables_are_current(script: str) -> None:
    lists = _script(script)
    document = lists.DOCUMENT.read_text(encoding="utf-8")
    assert lists.updated(document) == document, f"run python docs/{script}.py"


@pytest.mark.parametrize("script", ["list_dialects", pytest.param("list_passes", marks=pytest.mark.slow)])
def test_pages_are_current(script: str) -> None:
    for page, text in _script(script).pages().items():
        assert page.read_text(encoding="utf-8") == text, f"run python docs/{script}.py"


def test_every_pass_has_its_entry() -> None:
    """That examples are what `stan-opt` prints takes longer to find out: see `test_pages_are_current`."""
    from ulam.passes.pipeline_order import requires
    from ulam.passes.pipelines import PASSES

    page = (ROOT / "docs" / "passes.md").read_text(encoding="utf-8")
    entries = dict(re.findall(r"^### `([\w-]+)`\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL))
    assert set(entries) == set(PASSES), "run python docs/list_passes.py"
    for name, entry in entries.items():
        before = re.search(r"Needs before it: (.*?)\. In", entry, re.DOTALL)
        assert before is not None and re.findall(r"`([\w-]+)`", before[1]) == list(requires(name)), name
        (test,) = re.findall(r"\(\.\./(tests/filecheck/[^)]*)\)", entry)
        code = [line.strip() for line in (ROOT / test).read_text(encoding="utf-8").splitlines()]
        shown = FENCE.findall(entry)[-2 if "\nbecomes\n" in entry else -1][2]
        assert {line.strip() for line in shown.splitlines()} <= {"...", "", *code}, f"{name}: run docs/list_passes.py"


def test_defaults_of_the_command_are_those_of_the_optimizers() -> None:
    from dataclasses import fields

    from ulam.runtime.optimizers.algorithms import ALGORITHMS
    from ulam.tools.options import OPTIONS

    for option in fields(ALGORITHMS["lbfgs"].options):
        assert float(OPTIONS[option.name].shown) == option.default


def test_lists_of_functions_are_current() -> None:
    lists = list_functions()
    document = lists.LANGUAGE.read_text(encoding="utf-8")
    assert lists.updated(document) == document, "run python docs/list_functions.py"
    assert lists.overloads()[1] == [], "what the list of signatures has can be called"
    said = re.search(r"All (\d+) functions of Stan's library", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert said is not None and len(lists.supported()) == len(lists.stan_functions()) == int(said[1])


# ---------------------------------------------------------------- every listed function can be called

ARGUMENTS = {
    "int": "i", "real": "x", "vector": "v", "row_vector": "w", "matrix": "m", "array[] int": "ai", "array[] real": "ax",
    "array[] vector": "av", "array[] row_vector": "aw", "array[] matrix": "am", "array[,] int": "aai",
    "array[,] real": "aax", "complex": "z", "complex_vector": "zv", "complex_row_vector": "zw", "complex_matrix": "zm",
}  # fmt: skip
DATA = (
    "int i; real x; vector[3] v; row_vector[3] w; matrix[3, 3] m; array[3] int ai; array[3] real ax; "
    "array[3] vector[3] av; array[3] row_vector[3] aw; array[3] matrix[3, 3] am; array[3, 3] int aai; "
    "array[3, 3] real aax; complex z; complex_vector[3] zv; complex_row_vector[3] zw; complex_matrix[3, 3] zm;"
)
CALLS_PER_PROGRAM = 60


def calls_of(name: str) -> list[str]:
    """Calls of a function, one for each of its simplest overloads."""
    from ulam.frontend.functions import signatures

    overloads = signatures.overloads(name)
    assert overloads is not None
    found = [s for s in overloads.all() if all(str(a) in ARGUMENTS for a in s.arguments)]
    found.sort(key=lambda s: (len(s.arguments), sum(str(a).startswith(("array", "complex")) for a in s.arguments)))
    calls = []
    for signature in found[:40]:
        first, *rest = [ARGUMENTS[str(a)] for a in signature.arguments] or [""]
        bar = " | " if name.endswith(("_lpdf", "_lpmf", "_cdf", "_lcdf", "_lccdf")) else ", "
        calls.append(f"{name}({first}{bar if rest else ''}{', '.join(rest)})")
    return calls


def lowers(calls: list[str]) -> bool:
    from ulam.frontend.diagnostics import DiagnosticError
    from ulam.runtime.compiler import Compiler

    blocks: dict[str, list[str]] = {"transformed parameters": [], "generated quantities": []}
    for call in calls:
        block = "transformed parameters" if "_jacobian(" in call else "generated quantities"
        blocks[block].append(f"print({call});")
    text = "\n".join([f"data {{ {DATA} }}", *(f"{name} {{ {' '.join(found)} }}" for name, found in blocks.items())])
    try:
        Compiler(text).llvm_text("constrain")
    except DiagnosticError as error:
        assert {diagnostic.code for diagnostic in error.diagnostics} == {"not-supported"}
        return False
    return True


def _takes_functions(overloads: Overloads | None) -> bool:
    """Functions that take functions have tests of their own."""
    return overloads is None or overloads.higher_order()


@pytest.mark.parametrize("part", range(10))
def test_every_listed_function_can_be_called(part: int) -> None:
    from ulam.frontend.functions import signatures

    names = [n for n in sorted(list_functions().supported()) if not _takes_functions(signatures.overloads(n))][part::10]
    assert len(names) <= CALLS_PER_PROGRAM
    candidates = {name: calls_of(name) for name in names}
    assert all(candidates.values())
    if lowers([calls[0] for calls in candidates.values()]):
        return
    missing = [name for name, calls in candidates.items() if not any(lowers([call]) for call in calls)]
    assert not missing


# ---------------------------------------------------------------- links and paths


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_paths_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    outside = FENCE.sub("", text)
    for target in re.findall(r"\]\(([^)#]+)\)", outside):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), target
    folders = "api|benchmarks|dialects|docs|emit|examples|frontend|library|passes|runtime|tests|tools|tracing"
    for path in re.findall(rf"`((?:{folders})/[\w./-]*)`", outside):
        assert (ROOT / path).exists() or "NAME" in path, path
