"""Long literals of numbers, which become constant data, against the same with an op for each number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ulam
from ulam.dialects import stan
from ulam.frontend.lower.literals import numbers_of
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source
from ulam.frontend.syntax import Print


def _numbers(count: int, start: int = 0) -> str:
    """Ints and reals, with and without a minus."""
    numbers = range(start, start + count)
    return ", ".join(f"{(-1) ** k}{f'.{k}' if k % 3 else ''}" if k % 7 else str(-k) for k in numbers)


ROWS = ", ".join(f"[{_numbers(12, 9 * r)}]" for r in range(3))
PROGRAM = f"""
functions {{
  real g(real x, int n) {{
    array[70] real w = {{{_numbers(70)}}};
    return n == 0 ? x : w[n] * g(x, n - 1) + x;
  }}
}}
transformed data {{
  array[4, 20] int counts = {{{", ".join(f"{{{', '.join(str(20 * r + k) for k in range(20))}}}" for r in range(4))}}};
  matrix[5, 14] a = [{", ".join(f"[{_numbers(14, 14 * r)}]" for r in range(5))}];
  array[2] matrix[3, 12] b = {{[{ROWS}], [{ROWS}]}};
}}
parameters {{
  vector[3] x;
}}
model {{
  array[66] real plain = {{{_numbers(66)}}};
  array[80] real mixed = {{{", ".join("x[2]" if k % 9 == 0 else f"{k}.25" for k in range(80))}}};
  matrix[2, 50] rows = [[{_numbers(50)}], [{", ".join("x[1]" if k == 3 else f"-{k}.5" for k in range(50))}]];
  mixed[5] = x[3];
  for (n in 1 : 3) {{
    row_vector[65] inner = [{_numbers(65)}];
    inner[n] = x[n];
    target += -dot_self(inner) * counts[n + 1, n];
  }}
  target += -1e-3 * square(g(x[1], 3)) + sum(a) * x[2] - dot_self(to_vector(rows)) * 1e-3;
  target += -dot_self(to_vector(mixed)) * 1e-4 - square(x[3]) * sum(b[2][ : , 3]) + plain[7] * x[1];
  x ~ normal(to_vector([{_numbers(70)}][4 : 6]), 2);
}}
generated quantities {{
  matrix[5, 14] c = a;
  array[2] matrix[3, 12] d = b;
  array[4, 20] int e = counts;
}}
"""


def _results(level: int) -> list[Any]:
    """Value and gradient, at level 3 with what is put out, at level 0 with a product of the Hessian."""
    model = ulam.StanModel(PROGRAM, opt_level=level, cache=False)
    point = np.array([0.3, -0.2, 0.7])
    value, gradient = model.log_density_gradient(point)
    if level:
        return [value, gradient, model.param_constrain(point, include_gq=True, rng=model.new_rng(1))]
    return [value, gradient, model.log_density_hessian_vector_product(point, np.array([1.0, -2.0, 0.5]))[-1]]


@pytest.mark.parametrize("level", [0, 3])
def test_values_and_derivatives_are_those_of_an_op_for_each_number(level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = _results(level)
    monkeypatch.setattr(stan, "FEW_NUMBERS", 10**9)
    for found, expected in zip(data, _results(level), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def _literal(text: str) -> Any:
    program = parse_program(Source(f"model {{ print({text}); }}", "m.stan"))
    assert program.model is not None
    statement = program.model.statements[0]
    assert isinstance(statement, Print)
    return numbers_of(statement.arguments[0])


@pytest.mark.parametrize(
    ("text", "values", "sizes"),
    [
        ("{1, -2, (3)}", [1, -2, 3], [3]),
        ("{{-1.5}, {-(2e3)}}", [-1.5, -2000.0], [2, 1]),
        ("{[1, 2], [3, 4]}", [1, 2, 3, 4], [2, 2]),
        ("[[1, 2, 3], [4, 5, 6]]", [1, 2, 3, 4, 5, 6], [2, 3]),
    ],
)
def test_numbers_are_read_as_written(text: str, values: list[float], sizes: list[int]) -> None:
    found = _literal(text)
    assert (found.values, found.sizes) == (values, sizes)


@pytest.mark.parametrize(
    "text", ["{1, 2 + 3}", "{{1}, {2, 3}}", "[[1, 2], [3]]", "{1i}", "{[1, 2]'}", "[]", "{sqrt(2)}"]
)
def test_other_elements_are_left(text: str) -> None:
    assert _literal(text) is None
