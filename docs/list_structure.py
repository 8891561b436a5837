"""Draws which folders of the project import which into `docs/architecture.md`; finds circles of modules, and names that
several classes have.

python docs/list_structure.py                  # rewrites the drawing between the two markers
python docs/list_structure.py --check          # exit status 1 if it is not current
python docs/list_structure.py --arrows [FOLDER FOLDER]
                                               # the arrows between folders; the imports that make one of them
python docs/list_structure.py --circles        # circles of modules; exit status 1 if there are any
python docs/list_structure.py --class-names    # public classes with the same name; exit status 1 if more than 8

Every import counts for arrows: at the level of the module, inside of functions, by name (`import_module`), for types
only. For circles those for types do not count, since they never run.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from written_parts import main as write_document
from written_parts import with_parts

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = Path(__file__).with_name("architecture.md")
SCRIPT = Path(__file__).name
MOST_SHARED_CLASS_NAMES = 8


class Kind(Enum):
    """How a module imports another."""

    MODULE = "at module level"
    LOCAL = "in a function"
    BY_NAME = "by name"
    TYPES = "for types"


@dataclass(frozen=True)
class Import:
    """`source` imports `target` (dotted names of modules, or of a package with modules that are named at run time)."""

    source: str
    target: str
    kind: Kind
    line: int


# ---------------------------------------------------------------- modules


@cache
def modules() -> dict[str, Path]:
    """The files of the package by dotted name, from the folders that pyproject.toml maps to it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, Path] = {}
    for package, folder in project["tool"]["setuptools"]["package-dir"].items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            inner = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join((package, *(part for part in inner if part != "__init__")))] = path
    return found


def folder_of(module: str) -> str:
    """The folder that arrows are drawn for: a top-level one, or one directly in it."""
    path = modules()[module]
    first, *inner = path.relative_to(ROOT).parent.parts
    return "/".join((first, *inner[:1]))


# ---------------------------------------------------------------- imports


class _Imports(ast.NodeVisitor):
    """Collects the imports of the project's own modules in a file."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.found: list[Import] = []
        self._kind = Kind.MODULE

    def _add(self, target: str, line: int, kind: Kind | None = None) -> None:
        while target and target not in modules():
            target = target.rpartition(".")[0]
        if target and target != self.module:
            self.found.append(Import(self.module, target, kind or self._kind, line))

    def visit_Import(self, node: ast.Import) -> None:  # noqa: N802
        for alias in node.names:
            self._add(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:  # noqa: N802
        base = node.module or ""
        if node.level:
            is_package = modules()[self.module].name == "__init__.py"
            parts = self.module.split(".")
            parts = parts[: len(parts) - node.level + is_package]
            base = ".".join([*parts, *filter(None, [node.module])])
        for alias in node.names:
            self._add(f"{base}.{alias.name}", node.lineno)

    def visit_Call(self, node: ast.Call) -> None:  # noqa: N802
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("import_module", "__import__") and node.args:
            text = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                self._add(text.value.rstrip("."), node.lineno, Kind.BY_NAME)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:  # noqa: N802
        if not ast.unparse(node.test).endswith("TYPE_CHECKING"):
            self.generic_visit(node)
            return
        self._within(Kind.TYPES, node.body)
        for statement in node.orelse:
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:  # noqa: N802
        self._within(Kind.LOCAL, list(ast.iter_child_nodes(node)))

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef  # noqa: N815

    def _within(self, kind: Kind, nodes: Iterable[ast.AST]) -> None:
        outer, self._kind = self._kind, kind if self._kind is not Kind.TYPES else Kind.TYPES
        for node in nodes:
            self.visit(node)
        self._kind = outer


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


@cache
def imports() -> tuple[Import, ...]:
    """All imports of modules of the project by others."""
    found: list[Import] = []
    for module in modules():
        visitor = _Imports(module)
        visitor.visit(_tree(module))
        found += visitor.found
    return tuple(found)


def arrows() -> dict[str, dict[str, list[Import]]]:
    """For each folder the others that it imports, with the imports."""
    found: dict[str, dict[str, list[Import]]] = {folder_of(module): {} for module in sorted(modules())}
    for each in imports():
        source, target = folder_of(each.source), folder_of(each.target)
        if source != target:
            found[source].setdefault(target, []).append(each)
    return found


# ---------------------------------------------------------------- circles


def circles() -> list[list[str]]:
    """The modules that import each other in a circle, largest first: the strongly connected components."""
    graph: dict[str, set[str]] = {module: set() for module in modules()}
    for each in imports():
        if each.kind is not Kind.TYPES:
            graph[each.source].add(each.target)
    found = [sorted(component) for component in components(graph) if len(component) > 1]
    return sorted(found, key=lambda circle: (-len(circle), circle))


def components(graph: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """Strongly connected components, each after those that it leads to (Tarjan)."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []

    def visit(node: str) -> Iterator[list[str]]:
        index[node] = lowest[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                yield from visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in stack:
                lowest[node] = min(lowest[node], index[other])
        if lowest[node] == index[node]:
            at = stack.index(node)
            component = stack[at:]
            del stack[at:]
            yield component

    for node in sorted(graph):
        if node not in index:
            yield from visit(node)


# ---------------------------------------------------------------- names of classes


def shared_class_names() -> dict[str, list[str]]:
    """Public names of classes that more than one module has, with the modules."""
    homes: dict[str, set[str]] = defaultdict(set)
    for module in modules():
        for node in ast.walk(_tree(module)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].add(module)
    return {name: sorted(found) for name, found in sorted(homes.items()) if len(found) > 1}


# ---------------------------------------------------------------- the drawing


def floors() -> list[list[str]]:
    """The folders from the top to the bottom: each above those that it imports, circles of folders side by side."""
    graph = {folder: set(targets) for folder, targets in arrows().items()}
    height: dict[str, int] = {}
    for component in components(graph):
        below = {height[target] for folder in component for target in graph[folder] if target in height}
        height.update(dict.fromkeys(component, max(below, default=-1) + 1))
    levels: dict[int, list[str]] = defaultdict(list)
    for folder, level in height.items():
        levels[level].append(folder)
    return [sorted(levels[level]) for level in sorted(levels, reverse=True)]


def drawing() -> str:
    """What stands between the markers: a line for each folder, a gap between floors."""
    found = arrows()
    place = {folder: number for number, level in enumerate(floors()) for folder in level}
    width = max(map(len, found))
    lines = ["```text"]
    for level in floors():
        for folder in level:
            shown = [
                f"({target})" if all(i.kind is not Kind.MODULE for i in found[folder][target]) else target
                for target in sorted(found[folder], key=lambda target: (place[target], target))
            ]
            lines += _wrapped(folder.ljust(width), shown)
        lines.append("")
    lines[-1] = "```"
    return "\n".join(lines)


def _wrapped(folder: str, targets: list[str]) -> list[str]:
    if not targets:
        return [folder.rstrip()]
    lines = [f"{folder} ──►"]
    for target in targets:
        if len(lines[-1]) + len(target) > 116:
            lines.append(" " * len(f"{folder} ──►"))
        lines[-1] += f" {target}"
    return lines


def updated(document: str) -> str:
    """The document with the drawing made anew."""
    return with_parts(document, SCRIPT, {"arrows": drawing})


# ---------------------------------------------------------------- the command


def _print_arrows(between: list[str]) -> int:
    for source, targets in arrows().items():
        for target, found in sorted(targets.items()):
            if not between:
                kinds = ", ".join(f"{sum(i.kind is kind for i in found)} {kind.value}" for kind in Kind)
                print(f"{source} -> {target}: {kinds}")
            elif between == [source, target]:
                for each in found:
                    path = modules()[each.source].relative_to(ROOT)
                    print(f"{path}:{each.line}: {each.target} {each.kind.value}")
    return 0


def _print_circles() -> int:
    found = circles()
    for circle in found:
        print(f"{len(circle)} modules: {' '.join(circle)}")
    print(f"{len(found)} circles")
    return int(bool(found))


def _print_class_names() -> int:
    found = shared_class_names()
    for name, homes in found.items():
        print(f"{name}: {' '.join(homes)}")
    print(f"{len(found)} names")
    return int(len(found) > MOST_SHARED_CLASS_NAMES)


def main(arguments: list[str]) -> int:
    """The command."""
    match arguments:
        case ["--arrows", *between]:
            return _print_arrows(between)
        case ["--circles"]:
            return _print_circles()
        case ["--class-names"]:
            return _print_class_names()
        case [] | ["--check"]:
            return write_document(DOCUMENT, SCRIPT, updated)
    print((__doc__ or "").strip(), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
