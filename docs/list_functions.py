"""Writes the lists of supported functions into `docs/language.md`, from what the compiler knows.

    python docs/list_functions.py            # rewrites the part between the two markers
    python docs/list_functions.py --check    # exit status 1 if it is not current
    python docs/list_functions.py --own      # shows the functions of library/extensions.stan, which are not in the list

Which they are, `ulam.frontend.functions.support` decides for the type checker. `tests/project/test_docs.py` compiles a
call of each.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Set
from functools import cache
from pathlib import Path

from written_parts import main, with_parts

from ulam.frontend.functions import signatures
from ulam.frontend.functions.higher_order import REDUCE_SUM, VARIADIC
from ulam.frontend.functions.support import supported_names, unsupported_call
from ulam.library.functions import CUMULATIVE, DENSITIES, FunctionKind, kind_of, named

LANGUAGE = Path(__file__).with_name("language.md")
SCRIPT = Path(__file__).name


def stan_functions() -> set[str]:
    """All functions of Stan's library that the type checker knows."""
    return {*signatures.stan_names(), *VARIADIC, *REDUCE_SUM}


@cache
def supported() -> frozenset[str]:
    """Those that can be compiled, for some types of arguments at least."""
    return frozenset(stan_functions() & set(supported_names()))


@cache
def overloads() -> tuple[int, list[str]]:
    """How many overloads Stan's functions have that take no functions, and those of them that are not supported."""
    number, missing = 0, []
    for found in map(signatures.overloads, signatures.stan_names()):
        assert found is not None
        if found.higher_order():
            continue
        number += len(found.results)
        missing += [str(s) for s in found.all() if unsupported_call(s.name, s.arguments, s.result) is not None]
    return number, missing


def _distributions(names: Iterable[str]) -> dict[str, set[str]]:
    """Name of a distribution → endings of its functions."""
    found: dict[str, set[str]] = {}
    for stem, kind, ending in map(named, names):
        if kind.is_of_distribution:
            found.setdefault(stem, set()).add(ending)
    return found


def _cell(known: Set[str], all_: Set[str], kinds: tuple[FunctionKind, ...]) -> str:
    """Suffixes that are supported; those that are not in brackets."""
    return " ".join(f"`{s}`" if s in known else f"({s})" for s in (kind.ending for kind in kinds) if s in all_) or "–"


def _distribution_table() -> list[str]:
    known, everything = _distributions(supported()), _distributions(stan_functions())
    groups = DENSITIES, CUMULATIVE, (FunctionKind.RNG,)
    lines = ["| distribution | density or mass | distribution functions | random numbers |", "|---|---|---|---|"]
    for name in sorted(everything):
        cells = [_cell(known.get(name, set()), everything[name], group) for group in groups]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _block(names: Iterable[str]) -> list[str]:
    return ["```text", *textwrap.wrap(" ".join(sorted(names)), 118, break_long_words=False), "```"]


def text() -> str:
    """What stands between the markers."""
    known, everything = supported(), stan_functions()
    plain = {n for n in everything if not kind_of(n).is_of_distribution and not kind_of(n).is_transform}
    transforms = {n for n in everything if kind_of(n).is_transform}
    number, missing = overloads()
    lines = [
        f"Of {len(everything)} functions in Stan's library, as told apart by name, {len(known)} are supported; of "
        f"their {number:,} overloads, {number - len(missing):,}.\n",
        "### Distributions\n",
        *_distribution_table(),
        "\n### Functions\n",
        *_block(plain & known),
        "\n### Constraint transforms as functions\n",
        *_block(transforms & known),
    ]
    if missing or known < everything:
        lines += ["\n### Missing\n", *_block(everything - known), "\n```text", *missing, "```"]
    return "\n".join(lines)


def updated(document: str) -> str:
    """The document with the part between the markers written anew."""
    return with_parts(document, SCRIPT, {"functions": text})


def own_signatures() -> list[str]:
    """All forms of the functions that Stan does not have."""
    own = sorted(set(signatures.names()) - set(signatures.stan_names()))
    found = [overloads for overloads in map(signatures.overloads, own) if overloads is not None]
    return [str(signature) for overloads in found for signature in overloads.all()]


if __name__ == "__main__":
    if "--own" in sys.argv[1:]:
        print(*own_signatures(), sep="\n")
        sys.exit()
    sys.exit(main(LANGUAGE, SCRIPT, updated))
