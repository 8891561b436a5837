"""Which slices there are: bounds of all kinds, of sizes from 0 on, against what the language says of each."""

from __future__ import annotations

import itertools
import re

import pytest

import ulam

LOWER = {"n": lambda n, k: n, "k": lambda n, k: k, "n - 1": lambda n, k: n - 1, "0": lambda n, k: 0, "": lambda n, k: 1}
UPPER = {"n": lambda n, k: n, "k": lambda n, k: k, "n - 1": lambda n, k: n - 1, "0": lambda n, k: 0, "": lambda n, k: n}
FORMS = tuple(itertools.product(LOWER, UPPER))
USES = {
    "read": "target += sum(s[<part>]);",
    "write": "s[<part>] = rep_vector(2, max({0, (<upper>) - (<lower>) + 1})); target += sum(s);",
    "row": "target += sum(matrices[<part>, 1]);",
    "loop": "for (i in <lower>:<upper>) s[i] = 2; target += sum(s);",
}
PROGRAM = """data { int n; int k; int which; }
parameters { real m; }
model {
  vector[<size>] s = rep_vector(1, n);
  matrix[<size>, 2] matrices = rep_matrix(1, n, 2);
  <statements>
}
"""


def _program(use: str, size: str) -> str:
    statements: list[str] = []
    for number, (lower, upper) in enumerate(FORMS):
        named = {"part": f"{lower}:{upper}", "lower": lower or "1", "upper": upper or "n"}
        text = re.sub(r"<(\w+)>", lambda match, named=named: named[match[1]], USES[use])
        statements.append(f"if (which == {number}) {{ {text} }}")
    return PROGRAM.replace("<size>", size).replace("<statements>", "\n  ".join(statements))


def _expected(use: str, n: int, k: int, form: tuple[str, str]) -> float | str:
    """The target, or the part of the error that says which index is wrong: of a slice one that is written."""
    lower, upper = LOWER[form[0]](n, k), UPPER[form[1]](n, k)
    if lower <= upper:
        written = [bound for bound, text in zip((lower, upper), form, strict=True) if text]
        for index in range(lower, upper + 1) if use == "loop" else written:
            if not 1 <= index <= n:
                return f"index {index} out of range; expecting index to be between 1 and {n}"
    selected = max(0, upper - lower + 1)
    return float(n + selected if use in ("write", "loop") else selected)


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize(("use", "size"), [*((use, "n") for use in USES), ("read", "0"), ("write", "0")])
def test_bounds_of_slices(use: str, size: str, level: int) -> None:
    program = ulam.StanProgram(_program(use, size), opt_level=level)
    for n, k, (which, form) in itertools.product((0, 1, 2), (0, 1, 3), enumerate(FORMS)):
        if size == "0" and n > 0:
            continue
        model = program({"n": n, "k": k, "which": which})
        expected = _expected(use, n, k, form)
        if isinstance(expected, str):
            with pytest.raises(ulam.UlamError, match=expected):
                model.log_density([0.5])
        else:
            assert model.log_density([0.5]) == expected, (n, k, form)


def test_bounds_of_slices_with_known_data() -> None:
    """Level 4, where sizes and bounds are constants."""
    for lower, upper in (("n", "n"), ("n", ""), ("0", "n"), ("k", "k")):
        which = FORMS.index((lower, upper))
        model = ulam.StanModel(_program("loop", "n"), {"n": 0, "k": 0, "which": which}, opt_level=4)
        with pytest.raises(ulam.UlamError, match="index 0 out of range"):
            model.log_density([0.5])
