"""Parts of documents that scripts write, between markers: what the scripts `list_*.py` have in common."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path


def with_parts(document: str, script: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """The document with the parts of a script, by name, written anew. Raises ValueError where a marker is missing.

    `<!-- begin: NAME, written by docs/SCRIPT -->`, the part, `<!-- end: NAME, written by docs/SCRIPT -->`
    """
    for name, write in parts.items():
        begin, end = (f"<!-- {mark}: {name}, written by docs/{script} -->" for mark in ("begin", "end"))
        before, found, rest = document.partition(begin)
        _, ended, after = rest.partition(end)
        if not found or not ended:
            raise ValueError(f"the markers of {name} are missing")
        document = f"{before}{begin}\n\n{write()}\n\n{end}{after}"
    return document


def main(document: Path, script: str, updated: Callable[[str], str]) -> int:
    """Writes a document anew, or with `--check` says whether that would change it."""
    current = document.read_text(encoding="utf-8")
    wanted = updated(current)
    if "--check" in sys.argv[1:]:
        if current != wanted:
            print(f"{document.name} is not current; run python docs/{script}", file=sys.stderr)
        return int(current != wanted)
    document.write_text(wanted, encoding="utf-8")
    return 0


def write_pages(pages: Mapping[Path, str], script: str) -> int:
    """Writes whole documents, or with `--check` says which would change."""
    old = [page for page, text in pages.items() if not page.exists() or page.read_text(encoding="utf-8") != text]
    for page in old:
        if "--check" in sys.argv[1:]:
            print(f"{page.name} is not current; run python docs/{script}", file=sys.stderr)
        else:
            page.parent.mkdir(exist_ok=True)
            page.write_text(pages[page], encoding="utf-8")
    return int("--check" in sys.argv[1:] and bool(old))
