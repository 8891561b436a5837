"""Writes `docs/passes.md`: every pass with what it does, its options, what it needs before it, the levels that have it,
and an example from its lit test.

python docs/list_passes.py            # rewrites the page
python docs/list_passes.py --check    # exit status 1 if it is not current

The test of a pass is the file named as the pass below `tests/filecheck`, the example a function or a program in it that
the pass changes: the input as it stands there, and what `stan-opt` makes of it with the arguments of the RUN line.
"""

from __future__ import annotations

import inspect
import io
import json
import re
import shlex
import sys
import textwrap
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import get_type_hints

from list_dialects import field_texts
from list_levels import single_passes, steps
from written_parts import write_pages
from xdsl.passes import ModulePass

from ulam.passes.lowering_pipeline import lowering_pipeline
from ulam.passes.pipeline_order import VALUE_FORM, requires
from ulam.passes.pipelines import LEVELS, PASSES, level_pipeline, parse_pipeline, pass_class
from ulam.passes.units import UNITS
from ulam.tools.stan_opt import main as stan_opt

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests" / "filecheck"
PAGE = Path(__file__).with_name("passes.md")
SCRIPT = Path(__file__).name

LINES = 48
"""Of an example, before and after together: the first that has no more is shown, else the shortest."""

WIDTH, LONGEST = 220, 60
"""How long lines are, and how many of them there are, that an example has at most."""

HEAD = f"""# The passes

Every pass that `stan-opt -p` and the option `--passes` know, with an example from its test: before is what stands in
the test, after is what `stan-opt` prints. `python docs/{SCRIPT}` writes this page anew.
[optimization.md](optimization.md) says what the levels do with them, and shows those of the levels on programs;
CONTRIBUTING.md, "Adding a pass", how one is written. `stan-opt --list-passes` lists them with their options.
"""

FOLDERS = {
    "optimize": ("Stan to Stan", "On programs as they are written, in the variable form of the `stan` dialect."),
    "value_form": ("From variables to values", "What every program goes through before it is lowered."),
    "to_loops": ("From values to loops", ""),
    "loops": ("On loops", "On what programs are lowered to: `arith`, `scf`, `func`, `rt` and `ad`."),
    "autodiff": ("Differentiation", ""),
    "": ("Others", ""),
}
"""Where modules of passes are: the heading, and what holds of all there."""

# ---------------------------------------------------------------- examples


@dataclass(frozen=True)
class Example:
    """What a pass makes of a part of its test. `command`: the arguments of `stan-opt`."""

    path: Path
    command: str
    said: str
    before: str
    after: str


def test_of(name: str) -> Path | None:
    """The lit test of a pass: that among those of passes, else elsewhere."""
    found = [path for path in TESTS.rglob(f"{name}.*") if path.suffix in (".mlir", ".stan")]
    return min(found, key=lambda path: (path.parent.name != "passes", str(path)), default=None)


def _run_line(name: str, text: str) -> list[str]:
    """The arguments of `stan-opt` in the first RUN line that names the pass."""
    for line in re.findall(r"^// RUN: stan-opt (.*?)(?: 2>&1.*)?(?: \|.*)?$", text, re.MULTILINE):
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", line):
            return shlex.split(line)
    raise ValueError(f"no RUN line names {name}")


def _printed(arguments: list[str]) -> str:
    """What `stan-opt` prints; on standard error, if that is all."""
    output, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors):
        status = stan_opt(arguments)
    if status:
        raise ValueError(f"stan-opt {shlex.join(arguments)}: {errors.getvalue()}")
    return errors.getvalue() if errors.getvalue() and "print-analysis" in " ".join(arguments) else output.getvalue()


_FUNCTION = re.compile(r"^( *)((?:func|stan)\.func (?:private )?@\"?([\w.$]+)\"?.*?^\1\})$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^\s*//.*\n", re.MULTILINE)
_HIDDEN = re.compile(r"// *(?:RUN|[A-Z0-9-]*CHECK[\w-]*|[A-Z]+(?:-\w+)?):|// -----")


def _without_comments(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", _COMMENT.sub("", text)).strip("\n")


def _said(text: str, position: int) -> str:
    """The comment right above a place."""
    lines: list[str] = []
    for line in reversed(text[:position].splitlines()):
        stripped = line.strip()
        if not stripped.startswith("//"):
            break
        if _HIDDEN.match(stripped) is None:
            lines.append(stripped.lstrip("/ "))
    return " ".join(reversed(lines))


def _parts(text: str) -> dict[str, tuple[str, str]]:
    """The functions of a module: name → what is said of it, its text."""
    return {
        found[3]: (_said(text, found.start()), _without_comments(textwrap.dedent(found[0])))
        for found in _FUNCTION.finditer(text)
    }


@cache
def example(name: str) -> Example | None:
    """The example of a pass; None if it has no test."""
    if (path := test_of(name)) is None:
        return None
    text = path.read_text(encoding="utf-8")
    given = _run_line(name, text)
    shown = [part for part in given if part not in ("%s", "--split-input-file", "--verify-each")]
    command = " ".join(_quoted(part.replace("%S/", "")) for part in shown)
    if "--verify-diagnostics" in given:  # nothing is printed: the input has what is said
        piece = _split(text)[0]
        said = re.sub(r"^// (?:RUN|CHECK).*\n", "", piece, flags=re.MULTILINE).strip("\n")
        return Example(path.relative_to(ROOT), command, "", said, "")
    arguments = [str(path) if part == "%s" else part.replace("%S", str(path.parent)) for part in given]
    place = arguments.index("-p")
    without = [*arguments[:place], *arguments[place + 2 :]]
    found = list(_candidates(path, text, _printed(arguments), _printed(without)))
    changed = [each for does, each in found if does] or [each for _, each in found]
    sizes = [each.before.count("\n") + each.after.count("\n") + 2 for each in changed]
    fitting = [k for k, size in enumerate(sizes) if size <= LINES]
    return replace(changed[fitting[0] if fitting else sizes.index(min(sizes))], command=command)


def _quoted(part: str) -> str:
    return f"'{part}'" if re.search(r"[{}= \"]", part) else part


def _split(text: str) -> list[str]:
    return re.split(r"^// -----.*\n", text, flags=re.MULTILINE)


def _candidates(path: Path, text: str, output: str, unchanged: str) -> Iterator[tuple[bool, Example]]:
    """Functions of a test in MLIR, programs of one in Stan; and whether the pass changes each.

    `unchanged` is what is printed without it.
    """
    pieces, printed, plain = _split(text), _split(output), _split(unchanged)
    if not len(pieces) == len(printed) == len(plain):
        pieces, printed, plain = [text], [output], [unchanged]
    where = path.relative_to(ROOT)
    for piece, result, same in zip(pieces, printed, plain, strict=True):
        if path.suffix == ".mlir" and "builtin.module" not in piece:
            before, after, unchanged_parts = _parts(piece), _parts(result), _parts(same)
            new = [after[key][1] for key in after if key not in before]
            for key, (said, body) in before.items():
                if key in after:
                    changed = after[key][1] != unchanged_parts[key][1]
                    yield changed, Example(where, "", said, body, "\n\n".join([after[key][1], *new]))
        else:
            code = _CODE.search(piece)
            said = _said(piece, code.start() if code is not None else 0)
            after_text = _without_comments(_LIBRARY.sub("", result))
            yield result != same, Example(where, "", said, _without_comments(piece), after_text)


_CODE = re.compile(r"^(?!//|\s*$)", re.MULTILINE)
_LIBRARY = re.compile(r"^( *)stan\.func [^\n]* library \{\n.*?^\1\}\n", re.MULTILINE | re.DOTALL)
"""Functions of the library, which are not what an example is about."""


# ---------------------------------------------------------------- the page


@cache
def _levels() -> dict[str, list[int]]:
    """Name of a pass → the levels at which it runs, for a model or to lower one of its units."""
    found: dict[str, list[int]] = {}
    for level in LEVELS:
        lowering = [lowering_pipeline(unit, level) for unit in UNITS.values()]
        entries = [*single_passes(level_pipeline(level)), *parse_pipeline(VALUE_FORM)]
        names = {entry.name for entry in entries}
        for pipeline in lowering:
            names |= set(re.findall(r"[a-z]+(?:-[a-z]+)*", pipeline)) & set(PASSES)
            names |= {entry.name for entry in steps(pipeline)}
        for name in (*names, "convert-stan-to-loops", *(["repeat"] if "repeat{" in level_pipeline(level) else [])):
            if level not in found.setdefault(name, []):
                found[name].append(level)
    return found


def _told_levels(name: str) -> str:
    levels = _levels().get(name, [])
    if not levels:
        return "none"
    if levels == list(LEVELS):
        return "all"
    return ", ".join(map(str, levels))


def _options(cls: type[ModulePass]) -> Iterator[str]:
    hints, texts = get_type_hints(cls), field_texts(cls)
    rows: list[str] = []
    for option in fields(cls):
        type_ = hints[option.name]
        kind = type_.__name__ if isinstance(type_, type) else str(type_).replace("|", "\\|")
        default = f"`{json.dumps(option.default)}`" if option.default is not MISSING else "required"
        told = texts.get(option.name, "").replace("|", "\\|")
        rows.append(f"| `{option.name.replace('_', '-')}` | {kind} | {default} | {told} |")
    if rows:
        yield "| option | type | default | |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def _section(name: str) -> Iterator[str]:
    cls = pass_class(name)
    yield f"### `{name}`\n"
    yield f"{inspect.cleandoc(cls.__doc__ or '')}\n"
    home = PASSES[name].partition(":")[0]
    before = ", ".join(f"`{other}`" for other in requires(name)) or "nothing"
    file = f"{home.replace('.', '/').removeprefix('ulam/')}.py"
    yield f"Levels: {_told_levels(name)}. Needs before it: {before}. In `{file}`.\n"
    yield from _options(cls)
    found = example(name)
    if found is None:
        raise ValueError(f"{name} has no test: write tests/filecheck/passes/{name}.mlir")
    kind = "mlir" if found.path.suffix == ".mlir" else "stan"
    output = "stan" if "-t stan" in found.command else "text" if "print-analysis" in found.command else "mlir"
    yield f"`stan-opt {found.command}`, from [{found.path.name}](../{found.path}){found.said and f': {found.said}'}\n"
    yield f"```{kind}\n{_narrow(found.before)}\n```\n"
    if found.after:
        yield f"becomes\n\n```{output}\n{_narrow(found.after)}\n```\n"


def _narrow(text: str) -> str:
    """Without the ends of very long lines, as of tables in texts, and the middle of very many."""
    lines = [line if len(line) <= WIDTH else f"{line[:WIDTH]} ..." for line in text.splitlines()]
    if len(lines) > LONGEST:
        lines = [*lines[: LONGEST - 12], "...", *lines[-12:]]
    return "\n".join(lines)


def page() -> str:
    """The text of the page."""
    homes: dict[str, list[str]] = {folder: [] for folder in FOLDERS}
    for name, home in PASSES.items():
        folder = home.removeprefix("ulam.passes.").split(".")[0] if home.startswith("ulam.passes.") else ""
        homes[folder if folder in FOLDERS else ""].append(name)
    contents = [
        "\n".join(textwrap.wrap(f"**{FOLDERS[folder][0]}**: {_links(names)}", 119, break_long_words=False,
                                break_on_hyphens=False)) + "\n"
        for folder, names in homes.items()
    ]  # fmt: skip
    lines = [HEAD, *contents]
    for folder, names in homes.items():
        heading, about = FOLDERS[folder]
        lines.append(f"## {heading}\n")
        if about:
            lines.append(f"{about}\n")
        lines += [line for name in sorted(names) for line in _section(name)]
    return "\n".join(lines).rstrip() + "\n"


def _links(names: list[str]) -> str:
    return ", ".join(f"[`{name}`](#{name})" for name in sorted(names))


def pages() -> dict[Path, str]:
    """The page with its text."""
    return {PAGE: page()}


if __name__ == "__main__":
    sys.exit(write_pages(pages(), SCRIPT))
