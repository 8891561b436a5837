"""Mutations of the text of modules, for `tests/tools/test_mutated_modules.py` and `benchmarks/fuzz.py`.

Each takes away, doubles, exchanges or changes a few tokens or lines, so that most results still parse: operands, types,
attributes and names from elsewhere in the module, ops moved, regions emptied.
"""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[%@#!^]?[\w.$]+|->|\s+|.', re.DOTALL)
_KINDS = (
    re.compile(r"%\w+$"),
    re.compile(r"![\w.]+$|f64$|i64$|i32$|i1$"),
    re.compile(r'-?\d[\d.e+]*$|"'),
    re.compile(r"[a-z_]+\.[a-z_]+$"),
    re.compile(r"[A-Za-z_]\w*$"),
)
PIPELINES: tuple[Sequence[str], ...] = (
    ("-p", ""),
    ("-p", "", "--generic"),
    ("-p", "", "-t", "llvm"),
    ("-O3",),
    ("-O2", "-t", "stan"),
    ("-O1", "-t", "llvm"),
    ("-p", "structure-exits,promote-variables,convert-stan-to-loops{unit=gradient_propto},simplify"),
    ("-p", "fold,cse,licm,dce,loop-fusion"),
    ("-p", "reverse-mode,simplify,thread-target,dce", "-t", "llvm"),
)


def _delete(r: random.Random, tokens: list[str]) -> None:
    del tokens[r.randrange(len(tokens))]


def _double(r: random.Random, tokens: list[str]) -> None:
    at = r.randrange(len(tokens))
    tokens.insert(at, tokens[at])


def _swap(r: random.Random, tokens: list[str]) -> None:
    a, b = r.randrange(len(tokens)), r.randrange(len(tokens))
    tokens[a], tokens[b] = tokens[b], tokens[a]


def _alike(r: random.Random, tokens: list[str]) -> None:
    """Puts another token of the same kind in the place of one: operand for operand, type for type."""
    kind = r.choice(_KINDS)
    places = [at for at, token in enumerate(tokens) if kind.match(token)]
    if places:
        tokens[r.choice(places)] = tokens[r.choice(places)]


def _lines(change: Callable[[random.Random, list[str]], None]) -> Callable[[random.Random, list[str]], None]:
    def apply(r: random.Random, tokens: list[str]) -> None:
        lines = "".join(tokens).splitlines(keepends=True)
        change(r, lines)
        tokens[:] = TOKEN.findall("".join(lines))

    return apply


def _move(r: random.Random, lines: list[str]) -> None:
    line = lines.pop(r.randrange(len(lines)))
    lines.insert(r.randrange(len(lines) + 1), line)


def _empty_region(r: random.Random, lines: list[str]) -> None:
    """Takes away what stands between the braces of a region."""
    opens = [at for at, line in enumerate(lines) if line.rstrip().endswith("{")]
    if not opens:
        return
    start = r.choice(opens)
    depth = 1
    for at in range(start + 1, len(lines)):
        depth += lines[at].count("{") - lines[at].count("}")
        if depth <= 0:
            del lines[start + 1 : at]
            return


_MUTATIONS = (
    _delete,
    _double,
    _swap,
    *[_alike] * 6,
    _lines(_move),
    _lines(_delete),
    _lines(_double),
    _lines(_empty_region),
)


def mutated(text: str, r: random.Random) -> str:
    """The module with one to three mutations."""
    tokens = TOKEN.findall(text)
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        if len(tokens) > 4:
            r.choice(_MUTATIONS)(r, tokens)
    return "".join(tokens)


def outcome(text: str, path: Path, options: Sequence[str]) -> tuple[int, str]:
    """Exit status and messages of `stan-opt` for a module, in this process."""
    from ulam.tools import stan_opt

    path.write_text(text)
    errors = io.StringIO()
    with redirect_stderr(errors), redirect_stdout(io.StringIO()):
        status = stan_opt.main([str(path), *options])
    return status, errors.getvalue()


def seeds(root: Path) -> list[str]:
    """Modules to begin with: those of the filecheck tests that are MLIR, piece by piece."""
    texts: list[str] = []
    for path in sorted((root / "tests" / "filecheck").rglob("*.mlir")):
        if path.name in ("invalid.mlir", "malformed.mlir", "errors.mlir"):
            continue
        plain = "\n".join(line for line in path.read_text().splitlines() if not line.strip().startswith("//"))
        texts += [piece for piece in plain.split("// -----") if piece.strip()]
    for name, options in _PROGRAMS:
        texts.append(_printed(root / "examples" / name, options))
    return texts


_PROGRAMS: tuple[tuple[str, Sequence[str]], ...] = (
    ("eight_schools.stan", ("-p", "")),
    ("eight_schools.stan", ("-p", "structure-exits,promote-variables")),
    ("linear_regression.stan", ("--unit", "gradient_propto")),
)


def _printed(path: Path, options: Sequence[str]) -> str:
    from ulam.tools import stan_opt

    text = io.StringIO()
    with redirect_stdout(text):
        assert stan_opt.main([str(path), *options]) == 0
    return text.getvalue()


def module_case(texts: Sequence[str], seed: int, number: int, folder: Path) -> str | None:
    """What is wrong with how a mutated module ends; None if it is done or refused."""
    r = random.Random(f"{seed} {number}")
    text, options = mutated(r.choice(texts), r), r.choice(PIPELINES)
    status, errors = outcome(text, folder / "module.mlir", options)
    return None if status in (0, 1) else f"status {status} of stan-opt {' '.join(options)}: {errors[:300]}"
