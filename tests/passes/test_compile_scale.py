"""Work of our own stages, from text to LLVM IR, for programs that repeat one thing: in proportion to the program.

Counted in executed lines of Python, so a busy machine changes nothing. LLVM's passes are chosen by length
(`test_jit.py`).
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from work import calls_made, lines_executed

from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

X = "parameters { real x; } "


def _sum(terms: list[str], symbol: str) -> str:
    return f"{X} model {{ target += -({f' {symbol} '.join(terms)}); }}"


PROGRAMS = {
    "parameters": lambda n: (
        f"parameters {{ {' '.join(f'real p{k};' for k in range(n))} }} "
        f"model {{ {' '.join(f'p{k} ~ normal(0, 1);' for k in range(n))} }}"
    ),
    "statements": lambda n: f"{X} model {{ real a = 0; {'a += x * 1.5; ' * n} target += -a; }}",
    "array of constants": lambda n: (
        f"{X} model {{ array[{n}] real a = {{{', '.join(['1.5'] * n)}}}; x ~ normal(sum(a), 1); }}"
    ),
    "row vector of parameters": lambda n: (
        f"{X} model {{ row_vector[{n}] a = [{', '.join(f'x * {k}.5' for k in range(n))}]; target += -dot_self(a); }}"
    ),
    "variables of one parameter": lambda n: (
        f"{X} model {{ real v0 = x; {' '.join(f'real v{k} = v{k - 1} * x + exp(x);' for k in range(1, n + 1))} "
        f"target += -v{n}; }}"
    ),
    "chain": lambda n: _sum(["x"] * n, "+"),
    "chain of elements": lambda n: (
        f"parameters {{ vector[5] x; }} model {{ target += -({' + '.join(f'x[{k % 5 + 1}]' for k in range(n))}); }}"
    ),
}


CASES = [(kind, level) for kind in PROGRAMS for level in (0, 3)]


@pytest.mark.parametrize(("kind", "level"), CASES)
def test_work_grows_as_the_program(kind: str, level: int) -> None:
    def work(count: int) -> int:
        def compile_both() -> None:
            compiler = Compiler(PROGRAMS[kind](count), "model.stan", CompileOptions(level))
            compiler.llvm_text("setup")
            compiler.llvm_text("gradient_propto")

        return lines_executed(compile_both)

    # Of constants short arrays have an op for each (`stan.FEW_NUMBERS`), and long ones so little work that what caches
    # forget meanwhile would count. Functions of many parameters are split, which all three should be, or none.
    smallest = 400 if kind == "array of constants" else 25 if kind == "parameters" else 50
    work(smallest)  # what is imported and made once
    base, once, twice = (work(n) for n in (smallest, 2 * smallest, 4 * smallest))
    # 2 if it is linear; a walk over all parameters for each makes it 2.08 already at these sizes
    assert twice - once < 2.03 * (once - base)


def test_work_of_lowering_elements_that_are_read_and_assigned() -> None:
    """Whether a variable is assigned later is not looked for among all that stands behind each place that reads it."""

    def work(count: int) -> int:
        statements = " ".join(f"v[{k % 5 + 1}] = v[{k % 3 + 1}] * x;" for k in range(count))
        text = f"{X} model {{ vector[5] v = rep_vector(x, 5); {statements} target += -dot_self(v); }}"
        compiler = Compiler(text, options=CompileOptions(0))
        assert compiler.program.functions is not None
        return lines_executed(lambda: compiler.module_at("loops", "gradient_propto"))

    work(2)
    base, once, twice = (work(n) for n in (100, 200, 400))
    assert twice - once < 2.03 * (once - base)


def _generated_programs() -> ModuleType:
    """The programs of `benchmarks/compile_time.py`."""
    path = Path(__file__).parents[2] / "benchmarks" / "generated_programs.py"
    spec = importlib.util.spec_from_file_location("generated_programs", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SHORT = {
    "indexing": 2.12,  # 2.2 where what reads memory was looked for again for each of the loops that write it
    "mixed": 2.4,  # 3.4 where each loop walked by what it became no part of, and each fused body for each of its stores
}
"""Kinds of generated programs that are long enough at 100 lines for work that is not in proportion to show: growth of
what is added for twice the length. It comes to 2 in long programs, as loops look a few hundred ops ahead."""


@pytest.mark.parametrize("kind", SHORT)
def test_work_of_generated_programs(kind: str) -> None:
    generated = _generated_programs()

    def work(lines: int) -> int:
        compiler = Compiler(generated.program_of(kind, lines))
        return calls_made(lambda: compiler.llvm_text("gradient_propto"))

    work(2)
    base, once, twice = (work(lines) for lines in (100, 200, 400))
    assert twice - once < SHORT[kind] * (once - base)


@pytest.mark.parametrize(("kind", "lines"), [("loop-body", 60), ("matrices", 200), ("vectors", 200)])
def test_work_of_twice_the_length(kind: str, lines: int) -> None:
    """A loop is not tried with all others, memory not looked at by each of its readers, what kernels have computed not
    by each write; rows have not all of the loops ahead of them."""
    generated = _generated_programs()

    def work(lines: int) -> int:
        compiler = Compiler(generated.program_of(kind, lines))
        return calls_made(lambda: compiler.llvm_text("gradient_propto"))

    work(20)
    assert work(2 * lines) < 2.2 * work(lines)  # 5.8, 2.3 and 2.7 where it was so


LINEAR = {
    "declarations": 1250, "assignments": 1250, "literals": 1250, "branches": 1250, "functions": 1250, "indexing": 1250,
    "mixed": 1250, "loops": 1250, "loop-body": 1250, "vectors": 1250, "matrices": 1250, "nests": 1250, "calls": 1250,
    "straight-line": 625, "densities": 320,
}  # fmt: skip
"""Kinds of generated programs, and from how many lines on what grows otherwise would show."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", LINEAR)
def test_work_of_long_programs(kind: str) -> None:
    """`benchmarks/compile_time.py` has more kinds, and up to 20,000 lines."""
    generated = _generated_programs()

    def work(lines: int) -> int:
        compiler = Compiler(generated.program_of(kind, lines))
        return calls_made(lambda: [compiler.llvm_text(unit) for unit in ("setup", "gradient_propto", "constrain")])

    work(100)
    # 2.5 for "indexing" where each loop looked at what all others write, 2.3 for "mixed" where each looked at 400 ops
    assert work(2 * LINEAR[kind]) < 2.15 * work(LINEAR[kind])
