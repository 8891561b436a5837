"""Acceptance test 20 of tracing, what is inserted: a bounded number of ops for each function of a corpus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from gradient_programs_control import PROGRAMS as GRADIENT_PROGRAMS
from trace_programs import PROGRAM
from traced_random_programs import Generator, stan_text
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ulam.dialects import stan, trace
from ulam.frontend.diagnostics import DiagnosticError
from ulam.passes.errors import NotSupportedError
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.errors import CompileError
from ulam.tracing.instrument.density import model_function
from ulam.tracing.instrument.graph import ROOT
from ulam.tracing.instrument.unit import Clones, Plan, add_clones, find_function

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDERS = ("examples", "docs", "tests/regressions", "tests/filecheck/frontend")


def programs() -> Iterator[tuple[str, str]]:
    """Name and text of the programs of the corpus."""
    yield "trace programs", PROGRAM
    for seed in range(20):
        yield f"random program {seed}", stan_text(Generator(seed).program())
    for name, (text, _) in GRADIENT_PROGRAMS.items():
        yield name, text
    for folder in FOLDERS:
        for path in sorted((REPOSITORY / folder).rglob("*.stan")):
            text = path.read_text(encoding="utf-8")
            if "// -----" not in text:
                yield str(path.relative_to(REPOSITORY)), text


def module_of(text: str, name: str) -> ModuleOp:
    return Compiler(text, f"{name}.stan", CompileOptions(0)).module


def count(op: Operation) -> int:
    return sum(1 for _ in op.walk())


def check(clones: Clones, name: str) -> int:
    """The bound, for each traced function on its own; how many there were."""
    for clone, traced in zip(clones.instrumented, clones.traced.values(), strict=True):
        ops = sum(item.derived not in ("increment", "condition") for b in traced.graph.blocks for item in b.items)
        ops += len(traced.guards)  # whole assignments, which check sizes
        returns = sum(not edge.target for block in traced.graph.blocks for edge in block.edges)
        inserted = count(clone) - count(traced.function)
        assert inserted <= 1 + returns + len(traced.graph.blocks) + 3 * ops, f"{traced.graph.symbol} of {name}"
    return len(clones.instrumented)


def test_every_function_of_the_corpus() -> None:
    """20: inserted ops ≤ functions + returns + blocks + 3·ops."""
    checked = models = 0
    refused: list[str] = []
    for name, text in programs():
        try:
            symbols = [function.sym_name.data for function in find_function(module_of(text, name), "")]
        except (CompileError, DiagnosticError):
            continue  # programs that show mistakes
        for symbol in symbols:
            module = module_of(text, name)
            function = next(f for f in find_function(module, "") if f.sym_name.data == symbol)
            try:
                checked += check(add_clones(module, function, Plan()), name)
            except NotSupportedError as error:
                refused.append(str(error))
        module = module_of(text, name)
        program = next(op for op in module.body.block.ops if isinstance(op, stan.ProgramOp))
        if any(isinstance(op, stan.BlockOp) and op.kind.data == "model" for op in program.body.block.ops):
            try:
                models += check(add_clones(module, model_function(module), Plan()), name)
            except NotSupportedError as error:
                refused.append(str(error))
    assert checked > 100 and models > 100
    assert len(refused) < 0.2 * (checked + models), refused


@pytest.mark.parametrize(
    "body",
    ["return x * y + 1;", "real z = sin(x); z = z * y; return z - exp(y) / x;", "return x > y;", "return -x;",
     "int i = 3; return i * x;"],
)  # fmt: skip
def test_straight_code_that_cannot_throw(body: str) -> None:
    """20: one op for each, beside the record of the block."""
    module = module_of(f"functions {{ real f(real x, real y) {{ {body} }} }}", "f")
    clones = add_clones(module, find_function(module, "f")[0], Plan())
    for clone, traced in zip(clones.instrumented, clones.traced.values(), strict=True):
        if traced.graph.symbol == ROOT:
            continue
        (block,) = traced.graph.blocks
        kinds = [type(op) for op in clone.walk() if op.name.startswith("trace.")]
        assert kinds == [trace.BlockOp] + [trace.ValueOp] * len(block.items)
        assert count(clone) - count(traced.function) == 1 + len(block.items)
