"""Work of our own stages for values that the next one reads twice: in proportion to how many there are.

Passes that follow operands without remembering where they have been take twice as long for each further value, so a
program of 40 such lines would never be compiled. Counted in calls of Python functions.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from work import calls_made

from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

REALS = (
    "real x{k} = x{p} + x{p} * w;",
    "real x{k} = w - (x{p} - (w - x{p}));",
    "real x{k} = x{p} * (x{p} * w);",
    "real x{k} = x{p} > w ? x{p} + w : x{p} * 2;",
    "real x{k}; if (x{p} > w) x{k} = x{p} + w; else x{k} = x{p} + 2 * w;",
    "real x{k} = log(x{p}) + log(x{p} + w);",
    "real x{k} = log_sum_exp(x{p}, x{p} + w);",
    "int i{k} = i{p} && (i{p} || z[n] > {k}); real x{k} = x{p} + w * i{k};",
    "if (z[n] == {k}) acc += x0 * w; else acc += -x0;",
    "if (z[n] == {k}) acc *= 1 + square(x0); else acc *= 2 + square(x0) * w;",
)
"""A further value `k` of the value `p` before it, or a further step of `acc`."""

VECTORS = (
    "vector[N] v{k} = v{p} + v{p} .* y;",
    "vector[N] v{k} = exp(v{p}) - v{p};",
    "vector[N] v{k} = v{p}; v{k}[2:N] += v{p}[1:N - 1];",
)


def _program(chains: list[str]) -> str:
    return "\n".join([
        "data { int<lower=1> N; vector[N] y; array[N] int z; }",
        "parameters { real a; vector[N] b; }",
        "model {",
        *chains,
        "}",
    ])  # fmt: skip


def _chain(step: str, length: int) -> str:
    steps = " ".join(step.format(k=k, p=k - 1) for k in range(1, length + 1))
    last = f"x{length}" if "x{k}" in step else "acc"
    return f"real w = y[n]; real x0 = a; int i0 = n; real acc = 1; {steps} target += -square({last});"


def in_loops(length: int) -> str:
    return _program([f"for (n in 1:N) {{ {_chain(step, length)} }}" for step in REALS])


def of_vectors(length: int) -> str:
    return _program([
        f"{{ vector[N] v0 = b; {' '.join(step.format(k=k, p=k - 1) for k in range(1, length + 1))} "
        f"target += -dot_self(v{length}); }}"
        for step in VECTORS
    ])  # fmt: skip


@pytest.mark.parametrize("program", [in_loops, of_vectors])
def test_work_grows_as_the_program(program: Callable[[int], str]) -> None:
    def work(length: int) -> int:
        def compile_both() -> None:
            compiler = Compiler(program(length), "model.stan", CompileOptions(3))
            compiler.llvm_text("setup")
            compiler.llvm_text("gradient_propto")

        return calls_made(compile_both)

    work(2)  # what is imported and made once
    short, long = work(4), work(12)  # 3 times as long: 9 times the work would be in square of it
    assert long < 7 * short


def _functions_that_call_twice(first: str, length: int) -> str:
    calls = (f"real f{k}(real x) {{ return f{k - 1}(x * 1.5) + f{k - 1}(x * 0.7); }}" for k in range(1, length + 1))
    blocks = (first, *calls)
    return "\n".join(
        [
            "functions {",
            *blocks,
            f"}} parameters {{ real<lower=0> x; }} model {{ target += f{length}(x) - square(x); }}",
        ]
    )


LEAVES = {
    "rejects": 'real f0(real x) { if (x > 9) reject("too large"); return x * 1.1; }',
    "integrates": """
        real g(real x, real xc, array[] real th, array[] real xr, array[] int xi) { return exp(-th[1] * x); }
        real f0(real x) { return integrate_1d(g, 0, 1, {x}, {0.0}, {0}, 1e-8); }""",
}


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize(("unit", "shortest"), [("locate", 10), ("gradient_propto", 17)])
def test_functions_that_call_twice(leaf: str, unit: str, shortest: int) -> None:
    """As many copies as there would be could not be written: not of a density, nor to find which error comes first."""

    def work(length: int) -> int:
        program = _functions_that_call_twice(LEAVES[leaf], length)
        return calls_made(lambda: Compiler(program, "model.stan", CompileOptions(0)).llvm_text(unit))

    work(shortest)
    assert work(2 * shortest) < 7 * work(shortest)
