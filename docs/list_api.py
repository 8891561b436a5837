"""Writes `docs/api.md`: what `import ulam` and its modules offer, and how stable each name is.

python docs/list_api.py            # rewrites the part between the markers
python docs/list_api.py --check    # exit status 1 if it is not current

A name that `api/__init__.py` or another module of `api/` or `embed/` exports is stable unless PROVISIONAL has it.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

from written_parts import main, with_parts

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = Path(__file__).with_name("api.md")
SCRIPT = Path(__file__).name

PROVISIONAL: dict[str, frozenset[str]] = {
    "ulam": frozenset({"OptimizationLevel", "register_level", "register_pass"}),
    "ulam.build": frozenset({"Program"}),
    "ulam.StanModel": frozenset(
        {"assembly", "bridgestan_library", "from_module", "layout_choices", "llvm_ir", "module"}
    ),
    "ulam.StanProgram": frozenset({"bridgestan_library"}),
    "ulam.ir": frozenset("*"),
    "ulam.embed.cffi": frozenset("*"),
    "ulam.embed.jax": frozenset("*"),
    "ulam.embed.numba": frozenset("*"),
    "ulam.embed.scipy": frozenset("*"),
}
"""By module or class, what may change in a minor version without notice. A module that is so as a whole has "*"."""

INTERNAL: dict[str, frozenset[str]] = {
    "ulam.StanModel": frozenset(
        "as_written bound_values constrain_unit count_statements density_error density_gradient_unit enter_phase "
        "has_lines loaded_units new_context options output_layout parameter_variables recipe show_output source "
        "traced_program variable_names with_lines written_variables".split()
    ),
    "ulam.NativeHandle": frozenset({"compile", "fatal_point", "ticket"}),
    "ulam.Study": frozenset({"recipe", "sets"}),
    "ulam.SampleFit": frozenset({"places"}),
}
"""What parts of ulam ask of each other, by class: no part of the interface."""

WITHOUT_LIST = {
    "ulam.embed": "log densities in other compilers and libraries, a module for each: [embedding.md](embedding.md)",
    "ulam.notebook": "`%load_ext ulam` gives IPython and Jupyter the magic `%%stan`",
}
"""Modules that are loaded by others, and export no names."""


def module_names() -> list[str]:
    """The modules that `import ulam.NAME` is meant for, the package itself first."""
    files = sorted([*ROOT.glob("api/*.py"), *ROOT.glob("embed/*.py")])
    dotted = [".".join(("ulam", *path.relative_to(ROOT).with_suffix("").parts)) for path in files]
    return [name.replace("ulam.api", "ulam").removesuffix(".__init__") for name in dotted]


def exported(module: str) -> list[str]:
    """`__all__` of a module, which is not imported: what it embeds ulam in may not be installed."""
    (value,) = (
        node.value
        for node in ast.parse(_source(module).read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__"
    )
    return sorted((name for name in ast.literal_eval(value) if name != "__version__"), key=str.lower)


def _source(module: str) -> Path:
    folder, _, rest = module.removeprefix("ulam").lstrip(".").partition(".")
    for path in (ROOT / "api" / f"{folder or '__init__'}.py", ROOT / folder / f"{rest or '__init__'}.py"):
        if path.is_file():
            return path
    raise FileNotFoundError(module)


def stability(owner: str, name: str) -> str:
    """`stable` or `provisional`."""
    chosen = PROVISIONAL.get(owner, frozenset())
    return "provisional" if name in chosen or "*" in chosen else "stable"


def _told(docstring: str | None) -> str:
    """Its first sentence, as the cell of a table."""
    first = " ".join((docstring or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.!?:]) (?=[A-Z`])", first)[0].rstrip(":").replace("|", "\\|")


def _docstrings(module: str) -> dict[str, str | None]:
    """Of what a module defines that is not imported; of a variable, the text behind it."""
    body = ast.parse(_source(module).read_text(encoding="utf-8")).body
    found = {node.name: ast.get_docstring(node) for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node, behind in pairwise(body):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(targets[0], ast.Name) and isinstance(behind, ast.Expr) and isinstance(behind.value, ast.Constant):
            found[targets[0].id] = str(behind.value.value)
    return found


def _describe(module: ModuleType, name: str) -> str:
    return _told(getattr(module, name).__doc__)  # of a constant: of its class


def members(owner: type[Any]) -> Iterator[tuple[str, str]]:
    """The public methods and properties of a class, those that it inherits from us, too, with their first sentences."""
    hidden = INTERNAL.get(f"ulam.{owner.__name__}", frozenset())
    for name in sorted(dir(owner)):
        holder = next((base for base in owner.__mro__ if name in vars(base)), object)
        if name.startswith("_") or name in hidden or not holder.__module__.startswith("ulam"):
            continue
        value = inspect.getattr_static(owner, name)
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if inspect.isroutine(value) or isinstance(value, property) or hasattr(value, "func"):
            yield name, _told(value.__doc__)


def package() -> str:
    """The names of `ulam` itself."""
    module = import_module("ulam")
    lines = ["| name | what it is | |", "|---|---|---|"]
    for name in exported("ulam"):
        lines.append(f"| `{name}` | {_describe(module, name)} | {stability('ulam', name)} |")
        if name == "build":
            told = _told(module.build.Program.__doc__)
            lines.append(f"| `build.Program` | {told} docs/building.md | {stability('ulam.build', 'Program')} |")
    return "\n".join(lines)


def methods() -> str:
    """The methods of `StanModel`, and those of the other classes of `ulam`."""
    import ulam

    lines = ["| `StanModel` | | |", "|---|---|---|"]
    lines += [f"| `{name}` | {told} | {stability('ulam.StanModel', name)} |" for name, told in members(ulam.StanModel)]
    lines += ["", "| class | methods and properties |", "|---|---|"]
    for name in exported("ulam"):
        value = getattr(ulam, name)
        if not inspect.isclass(value) or value is ulam.StanModel or issubclass(value, Exception):
            continue
        own = [
            f"`{member}`{' (provisional)' * (stability(f'ulam.{name}', member) == 'provisional')}"
            for member, _ in members(value)
        ]
        if own:
            lines.append(f"| `{name}` | {', '.join(own)} |")
    return "\n".join(lines)


def modules() -> str:
    """The names of the modules beside it."""
    parts: list[str] = []
    for module in module_names()[1:]:
        said = _told(ast.get_docstring(ast.parse(_source(module).read_text(encoding="utf-8"))))
        if module in WITHOUT_LIST:
            parts.append(f"**`{module}`**: {WITHOUT_LIST[module]}.")
            continue
        names, docs = exported(module), _docstrings(module)
        if not set(names) <= set(docs):  # re-exports of what is ours
            loaded = import_module(module)
            docs = {name: _describe(loaded, name) for name in names}
        rows = [f"| `{name}` | {_told(docs[name])} | {stability(module, name)} |" for name in names]
        parts.append("\n".join([f"**`{module}`**: {said}\n", "| name | what it is | |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def updated(document: str) -> str:
    """The document with the parts between the markers written anew."""
    return with_parts(document, SCRIPT, {"package": package, "methods": methods, "modules": modules})


if __name__ == "__main__":
    sys.exit(main(DOCUMENT, SCRIPT, updated))
