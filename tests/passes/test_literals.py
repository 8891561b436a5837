"""What is evaluated on literals at compile time is what the compiled program gives, bit by bit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ulam import StanModel
from ulam.passes.analysis.literals import _EXACT, evaluate_function

ROOTS = [4.0, 1.0, 9801.0, 2.0**60, 1e10]
POWERS = [(2.0, 3.0), (3.0, 33.0), (-2.0, 53.0), (10.0, 15.0), (7.0, 0.0), (-3.0, 3.0), (0.5, 2.0), (0.0, 0.0)]


def test_functions() -> None:
    names = list(_EXACT)
    calls = [f"{name}(x[{n}])" for n, name in enumerate(names, 1)]
    calls += [f"sqrt(r[{n}])" for n in range(1, len(ROOTS) + 1)]
    calls += [f"pow(b[{n}], e[{n}])" for n in range(1, len(POWERS) + 1)]
    model = StanModel(
        f"""data {{ vector[{len(names)}] x; vector[{len(ROOTS)}] r; vector[{len(POWERS)}] b; vector[{len(POWERS)}] e; }}
        generated quantities {{ array[{len(calls)}] real y = {{{", ".join(calls)}}}; }}""",
        {
            "x": [_EXACT[name][0] for name in names],
            "r": ROOTS,
            "b": [base for base, _ in POWERS],
            "e": [exponent for _, exponent in POWERS],
        },
        opt_level=0,
    )
    computed = model.param_constrain(np.empty(0), include_gq=True, rng=model.new_rng(1)).tolist()
    folded = [evaluate_function(name, [_EXACT[name][0]]) for name in names]
    folded += [evaluate_function("sqrt", [root]) for root in ROOTS]
    folded += [evaluate_function("pow", power) for power in POWERS]
    assert None not in folded[:-2], "of the last two one is no power of integers, and one is 0^0"
    for call, value, literal in zip(calls, computed, folded, strict=True):
        assert literal is None or (value == literal and math.copysign(1, value) == math.copysign(1, literal)), call


@pytest.mark.parametrize(
    ("name", "operands"),
    [("log", [2.0]), ("exp", [-0.0]), ("sqrt", [-1.0]), ("sqrt", [2.0]), ("sqrt", [0.25]),
     ("pow", [2.0, 60.0]), ("pow", [2.0, -1.0]), ("lgamma", [1.0]),
     ("sin", [-0.0]), ("fma", [1.0, 1.0, 1.0])],
)  # fmt: skip
def test_what_is_left_to_the_program(name: str, operands: list[float]) -> None:
    assert evaluate_function(name, operands) is None
