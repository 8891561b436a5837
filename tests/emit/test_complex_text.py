"""`-t stan` of functions of complex numbers: what is printed is Stan, and gives the same values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from ulam.emit.stan_text import print_module
from ulam.frontend.functions.type_codes import type_of
from ulam.frontend.stan_types import TupleType
from ulam.library import signature_table
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.model import StanModel

pytestmark = pytest.mark.usefixtures("quick_code")

ARGUMENTS = {
    "i": "1", "r": "x[{0}]", "v": "x[{0}:{1}]", "w": "x[{0}:{1}]'", "m": "hermitian(x[{0}:{1}], 0)",
    "c": "to_complex(x[{0}], x[{1}])", "V": "to_complex(x[{0}:{1}], 0.5 - x[{0}:{1}])",
    "W": "to_complex(x[{0}:{1}]', x[{0}])", "M": "to_complex(hermitian(x[{0}:{1}], 0), hermitian(x[{0}:{1}], 1))",
    "1c": "{{to_complex(x[{0}], x[{1}]), to_complex(x[{1}], 0.3)}}",
}  # fmt: skip
RESULTS = {
    "i": "{0}", "r": "{0}", **dict.fromkeys(("v", "w", "m", "1r"), "sum({0})"),
    **dict.fromkeys(("c",), "(get_real({0}) + 2 * get_imag({0}))"),
    **dict.fromkeys(("V", "W", "M", "1c"), "(sum(get_real({0})) + 2 * sum(get_imag({0})))"),
}  # fmt: skip
OTHER_SIZES = {"to_matrix", "to_array_2d"}
"""Of as many ints as rows and columns."""

PROGRAM = """functions {{
  matrix hermitian(vector y, int is_imag) {{
    return is_imag ? [[0, y[2]], [-y[2], 0]] : [[3 + y[1], y[2]], [y[2], 2 - y[1]]];
  }}
}}
parameters {{ vector[8] x; }}
transformed parameters {{
  vector[{count}] value;
{statements}
}}"""


def codes_in(signature: str) -> Iterator[str]:
    """The codes of the arguments, which are prefix-free; of others than those above an empty one."""
    while signature:
        code = next((c for c in ARGUMENTS if signature.startswith(c)), "")
        yield code
        signature = signature[len(code) :] if code else ""


def of_result(code: str, call: str) -> str | None:
    """A number that all of a result is in."""
    type_ = type_of(code)
    if isinstance(type_, TupleType):
        parts = [RESULTS.get(part) for part in code[1:-1]]
        return None if None in parts else " + ".join(p.format(f"{call}.{n}") for n, p in enumerate(parts, 1) if p)
    return RESULTS[code].format(call) if code in RESULTS else None


def calls() -> Iterator[str]:
    """Of each function that takes or gives complex numbers, one call for each kind of result."""
    for name in signature_table.names():
        row = signature_table.row(name)
        assert row is not None
        seen: set[str] = set()
        for signature, result in row[1].items():
            codes = list(codes_in(signature))
            is_complex = not {*signature, *result}.isdisjoint("cVWM")
            if not is_complex or "" in codes or result in seen or (name in OTHER_SIZES and codes.count("i") > 1):
                continue
            arguments = [ARGUMENTS[code].format(1 + 2 * (n % 3), 2 + 2 * (n % 3)) for n, code in enumerate(codes)]
            if (text := of_result(result, f"{name}({', '.join(arguments)})")) is not None:
                seen.add(result)
                yield text


FEW = ("exp(", "fft(", "divide(")
"""Of scalars, of containers whole and element by element."""


@pytest.mark.parametrize(
    ("names", "level"),
    [(FEW, 0), pytest.param(("",), 0, marks=pytest.mark.slow), pytest.param(("",), 3, marks=pytest.mark.slow)],
)
def test_printed_calls_of_complex_functions_are_stan_and_give_the_same(names: tuple[str, ...], level: int) -> None:
    texts = [text for text in calls() if any(name in text for name in names)]
    assert len(texts) > (3 if names == FEW else 100)
    program = PROGRAM.format(
        count=len(texts), statements="\n".join(f"  value[{n}] = {text};" for n, text in enumerate(texts, 1))
    )
    printed = print_module(Compiler(program, "model.stan", CompileOptions(level)).module)
    point = np.linspace(0.2, 0.7, 8)
    expected, found = (
        StanModel(t, opt_level=0).param_constrain(point, include_tp=True)[8:] for t in (program, printed)
    )
    assert np.isfinite(expected).any()
    wrong = [
        f"{text}: {b}, not {a}"
        for text, a, b in zip(texts, expected, found, strict=True)
        if not np.isclose(a, b, rtol=1e-10, atol=1e-12, equal_nan=True)
    ]
    assert not wrong, "\n".join(wrong)
