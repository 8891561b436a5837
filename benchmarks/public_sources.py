"""Where public programs are: files of repositories, Stan blocks of pages, with the data that lie beside them.

A program is named as in a table of public programs: `OWNER/NAME/PATH` or `OWNER+NAME/PATH` is a file of a repository,
`docs/PAGE.qmd#N` the Nth fenced block, from 0, of that page of stan-dev/docs (the User's Guide's, if several books have
one of that name). Arrays are written as they are since
Stan 2.33.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

KEPT = (".stan", ".stanfunctions", ".json", ".qmd")
DOCS = "stan-dev/docs"
BLOCK = re.compile(r"^ *```+[^`\n]*\n(.*?)^ *```+ *$", re.MULTILINE | re.DOTALL)
INCLUDED = re.compile(r"^\s*#include\s+[<\"]?(?P<file>[^\s>\"]+)", re.MULTILINE)

TYPES = r"(?:int|real|vector|row_vector|matrix|simplex|ordered|positive_ordered|unit_vector|corr_matrix|cov_matrix"
TYPES += r"|cholesky_factor_corr|cholesky_factor_cov)"
BRACKETS = r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]"
OLD_DECLARATION = re.compile(
    rf"(?<![\w\]])(?P<type>{TYPES} *(?:<[^;\n]*?>)? *(?:{BRACKETS})?) +(?P<name>\w+) *(?P<sizes>{BRACKETS})(?=\s*[;=])"
)
OLD_FORMAL = re.compile(rf"(?<![\w\]])(?P<type>{TYPES})\s*\[(?P<commas>[\s,]*)\](?=\s+\w+\s*[,()])")

EXTERNAL = {
    "vector CODOLS(matrix X, vector y);": (
        "vector CODOLS(matrix X, vector y) { return mdivide_left_spd(crossprod(X), X' * y); }"
    ),
}
"""Functions that a package gives in C++: the declaration, and one in Stan with the same values."""


@dataclass(frozen=True)
class PublicProgram:
    """`folders` are those that includes are looked up in; `data` is JSON text, None if there are none beside it."""

    name: str
    code: str
    folders: tuple[str, ...]
    data: str | None


@dataclass(frozen=True)
class Repositories:
    """Bare repositories `checkouts/OWNER+NAME/repo`, whose files are written to `extracted` when first needed."""

    checkouts: Path
    extracted: Path

    def program(self, name: str) -> PublicProgram:
        """Raises FileNotFoundError if it is not there."""
        if name.startswith("docs/"):
            return self._block(name)
        owner, _, rest = name.partition("+" if "+" in name.partition("/")[0] else "/")
        repository, _, path = rest.partition("/")
        root = self.folder(f"{owner}/{repository}")
        file = root / re.sub(r"\(.*\)$", "", path)  # a note on how it was tried
        code = with_new_arrays(file.read_text(encoding="utf-8"))
        for declaration, definition in EXTERNAL.items():
            code = code.replace(declaration, definition)
        return PublicProgram(name, code, include_folders(root, file, code), data_beside(file))

    def folder(self, repository: str) -> Path:
        """The files of a repository."""
        target = self.extracted / repository.replace("/", "+")
        if not target.exists():
            git_dir = self.checkouts / repository.replace("/", "+") / "repo"
            if not git_dir.exists():
                raise FileNotFoundError(f"{git_dir}: no repository")
            git = ["git", f"--git-dir={git_dir}"]
            listed = subprocess.run(
                [*git, "ls-tree", "-r", "-z", "--name-only", "HEAD"], check=True, capture_output=True
            )
            paths = [path for path in listed.stdout.decode().split("\0") if path.endswith(KEPT)]
            archive = subprocess.run([*git, "archive", "HEAD", *paths], check=True, capture_output=True).stdout
            target.mkdir(parents=True)
            subprocess.run(["tar", "-x", "-C", str(target)], input=archive, check=True)
        return target

    @cached_property
    def _pages(self) -> dict[str, Path]:
        paths = sorted(self.folder(DOCS).rglob("*.qmd"), key=lambda path: ("users-guide" in str(path), path))
        return {path.name: path for path in paths}

    def _block(self, name: str) -> PublicProgram:
        page, _, number = name.removeprefix("docs/").partition("#")
        if page not in self._pages:
            raise FileNotFoundError(f"{page}: no such page")
        path = self._pages[page]
        blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
        if int(number) >= len(blocks):
            raise FileNotFoundError(f"{name}: the page has {len(blocks)} blocks")
        return PublicProgram(name, with_new_arrays(blocks[int(number)]), (str(path.parent),), None)


def include_folders(root: Path, file: Path, code: str) -> tuple[str, ...]:
    """The program's own folder, and those of a repository that have what it includes."""
    folders = [file.parent]
    pending = [code]
    while pending:
        for found in INCLUDED.finditer(pending.pop()):
            wanted = found["file"].lstrip("/")
            if any((folder / wanted).exists() for folder in folders):
                continue
            for path in sorted(root.rglob(Path(wanted).name)):
                if str(path).endswith("/" + wanted):
                    folders.append(path.parents[wanted.count("/")])
                    pending.append(path.read_text(encoding="utf-8"))
                    break
    return tuple(map(str, folders))


def with_new_arrays(code: str) -> str:
    """The program with `array[N] real x;` for `real x[N];`."""
    code = OLD_DECLARATION.sub(r"array\g<sizes> \g<type> \g<name>", code)
    return OLD_FORMAL.sub(r"array[\g<commas>] \g<type>", code)


def data_beside(file: Path) -> str | None:
    """The JSON file of data with a program's name, if it is one."""
    for suffix in (".data.json", ".json"):
        beside = file.with_suffix(suffix)
        if beside.exists():
            text = beside.read_text(encoding="utf-8")
            try:
                return text if isinstance(json.loads(text), dict) else None
            except ValueError:
                return None
    return None
