"""`carried-data`: what loops carry of data alone is in tables; values, slopes and errors are those of level 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

HEAD = """
data { int I; int T; array[I, T] int y; vector[T] x; array[I] int size; int M; array[M] int from; vector[M] z; }
parameters { real a; real b; vector[3] t; }
"""
LOOPS = {
    "numbers so far, which a branch resets": """
      for (i in 1:I) { int s = 0; for (j in 1:T) {
        target += erf(a * s + b * (j - 1 - s));
        if (y[i, j] == 2) s = 0; else s += y[i, j]; } }""",
    "places in ragged data": """
      { int pos = 1; for (i in 1:I) {
        for (n in pos:(pos + size[i] - 1)) target += erf(z[n] * a - t[i % 3 + 1]);
        pos += size[i]; } }""",
    "a chain of places": """
      { int at = 1; for (i in 1:I) { target += erf(z[at] * b); at = from[at]; } }""",
    "sums of rows, and of reals": """
      { real r = 0.1; for (i in 1:I) {
        if (sum(y[i]) > 1) target += erf(a + r); else target += erf(b * r);
        for (j in 1:T) r += x[j] * y[i, j]; } }""",
    "counts in memory of a row": """
      for (i in 1:I) { array[T] int s; vector[T] v; s[1] = 0; v[1] = x[1];
        for (j in 2:T) { s[j] = s[j - 1] + y[i, j - 1]; v[j] = v[j - 1] * 0.5 + x[j] * s[j]; }
        for (j in 1:T) target += erf(a * s[j] + b * v[j]); }""",
    "memory that is written again": """
      for (i in 1:I) { array[T] int s = rep_array(i, T);
        for (j in 2:T) { target += erf(a * s[j - 1]); s[j] = s[j - 1] + y[i, j]; s[j - 1] = s[j] + 1; }
        target += erf(b * s[1]); }""",
    "a branch that chooses": """
      for (i in 1:I) { int k; real w; if (size[i] > 1) { k = 1 + size[i] % 3; w = 0.5; } else { k = 1; w = x[1]; }
        target += w * erf(t[k] * a); }""",
    "a number that parameters decide on": """
      { int s = 0; for (i in 1:I) { if (a * size[i] > 0.5) s += y[i, 1]; target += erf(b * s); } }""",
    "numbers that wrap": """
      { int s = 2147483000; for (i in 1:I) { target += erf(1e-9 * s * a); s += 400 * y[i, 1]; } }""",
}


def data(rows: int = 5, columns: int = 4, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 4, rows)
    m = max(1, int(sizes.sum()))
    return {
        "I": rows, "T": columns, "y": rng.integers(0, 3, (rows, columns)), "x": rng.normal(size=columns),
        "size": sizes, "M": m, "from": rng.integers(1, m + 1, m), "z": rng.normal(size=m),
    }  # fmt: skip


@pytest.fixture(scope="module")
def programs() -> tuple[ulam.StanProgram, ulam.StanProgram]:
    text = HEAD + "model {" + "".join(LOOPS.values()) + "}"
    return ulam.StanProgram(text, opt_level=0), ulam.StanProgram(text, opt_level=3)


KEPT = ("a number that parameters decide on", "memory that is written again")


@pytest.mark.parametrize("name", [name for name in LOOPS if name not in KEPT])
def test_no_loop_of_the_density_carries_it(name: str) -> None:
    """Loops of what is called for each evaluation carry neither ints nor what is added up of data."""
    text = Compiler(HEAD + f"model {{ {LOOPS[name]} }}", "m.stan", CompileOptions(3)).llvm_text("gradient_propto")
    evaluate = text.partition("@evaluate")[2].partition("\n}")[0]
    assert "phi i64" in evaluate  # the number of the iteration
    assert "phi i32" not in evaluate
    assert "store i32" not in evaluate


@pytest.mark.parametrize(("rows", "columns"), [(5, 4), (40, 9), (1, 1), (1, 0)])
def test_values_and_slopes_are_those_of_level_0(
    programs: tuple[ulam.StanProgram, ulam.StanProgram], rows: int, columns: int
) -> None:
    values = data(rows, max(columns, 1), rows)
    plain, tabulated = (program(values) for program in programs)
    for point in ([0.3, -0.7, 0.1, 2.0, -1.0], [-2.0, 0.5, 0.0, 0.3, 1.0]):
        value, gradient = plain.log_density_gradient(point)
        found, slopes = tabulated.log_density_gradient(point)
        np.testing.assert_allclose(found, value, rtol=1e-13)
        np.testing.assert_allclose(slopes, gradient, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("wrong", [{"size": [9] * 5}, {"from": [0] * 99}, {"from": [2**31 - 1] * 99}])
def test_places_outside_are_errors(programs: tuple[ulam.StanProgram, ulam.StanProgram], wrong: dict[str, Any]) -> None:
    """Nothing is read there when the tables are filled; the error is the one of level 0."""
    values = data()
    values |= {name: value[: len(values[name])] for name, value in wrong.items()}
    told: list[str] = []
    for program in programs:
        with pytest.raises(ulam.FatalError) as error:
            program(values).log_density_gradient([0.1, 0.2, 0.3, 0.4, 0.5])
        told.append(str(error.value))
    assert told[0] == told[1]
