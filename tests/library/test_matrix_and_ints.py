"""Functions of a matrix and an array of ints pair elements by their indices: one lies by column, the other by row."""

from __future__ import annotations

import numpy as np
import pytest

import ulam
from ulam.frontend.functions import signatures
from ulam.frontend.functions.type_codes import code_of
from ulam.library.functions import FunctionKind, named

pytestmark = pytest.mark.usefixtures("quick_code")

INTS = [[1, 0, 0], [1, 0, 1]]
REALS = [[0.55, 0.62, 0.94], [0.88, 0.71, 0.79]]  # in the domain of all of them


def pairs() -> list[tuple[str, bool]]:
    """All functions with such arguments, and whether the ints come first."""
    found = []
    for name in signatures.names():
        overloads = signatures.overloads(name)
        if overloads is None or named(name).kind is FunctionKind.RNG:
            continue
        codes = [tuple(map(code_of, signature.arguments)) for signature in overloads.all()]
        found += [(name, first) for first in (True, False) if (("2i", "m") if first else ("m", "2i")) in codes]
    return found


def test_elements_are_paired_by_their_indices() -> None:
    functions = pairs()
    assert len(functions) > 6
    quantities = loop = ""
    for k, (name, ints_first) in enumerate(functions):
        whole, element = ("e, m", "e[i, j], m[i, j]") if ints_first else ("m, e", "m[i, j], e[i, j]")
        nested = "ee, {m, (m + 1) / 2}" if ints_first else "{m, (m + 1) / 2}, ee"
        quantities += f"matrix[2, 3] a{k} = {name}({whole}); matrix[2, 3] b{k};\n"
        quantities += f"array[2] matrix[2, 3] c{k} = {name}({nested}); array[2] matrix[2, 3] d{k};\n"
        inner = element.replace("m[i, j]", "((m[i, j] + n - 1) / n)")
        loop += f"b{k}[i, j] = {name}({element}); for (n in 1:2) d{k}[n, i, j] = {name}({inner});\n"
    program = f"""data {{ matrix[2, 3] m; array[2, 3] int e; }}
    transformed data {{ array[2, 2, 3] int ee = {{e, e}}; }}
    generated quantities {{ {quantities} for (i in 1:2) {{ for (j in 1:3) {{ {loop} }} }} }}"""
    model = ulam.StanModel(program, {"m": REALS, "e": INTS}, opt_level=0)
    values = model.param_constrain([], include_gq=True, rng=model.new_rng(1))
    by_name = dict(zip(model.param_names(include_gq=True), values, strict=True))
    for name, value in by_name.items():
        if name[0] in "ac":
            other = {"a": "b", "c": "d"}[name[0]] + name[1:]
            function = functions[int(name[1:].partition(".")[0])]
            assert value == pytest.approx(by_name[other], rel=1e-12) and np.isfinite(value), (function, name)
