"""Under guard pages no program reads or writes outside of its memory: what was found, and a few random programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from runtime_builds import c_compiler
from xdsl.dialects import func
from xdsl.ir import Operation

import ulam
from ulam.dialects import rt
from ulam.passes.analysis.effects_low import viewed
from ulam.passes.lower.pipeline import begin_unit, finish_unit
from ulam.runtime.compiler import CompileOptions, Compiler

HERE = Path(__file__).parent
SWEEP = HERE.parent.parent / "benchmarks" / "guard_pages.py"

# A view of memory that `bind` computes is read by `evaluate`: it must not be memory of one evaluation.
VIEWS = """
data { int N; int M; vector[N] x; }
parameters { real p; }
model {
  array[N] int at = N > 1 ? segment(append_array(rep_array(1, N), rep_array(2, N)), M, N) : rep_array(1, N);
  target += p * sum(x[at]);
  x ~ normal(p * (N > 1 ? cumulative_sum(x) : rep_vector(0.2, N)), 1);
  rep_array(1, N) ~ bernoulli_logit((p * x)[segment(append_array(rep_array(1, N), rep_array(2, N)), M, N)]);
}
"""


def lowered(text: str) -> list[Operation]:
    """All ops of the unit of a program that computes gradients, after all passes of level 0."""
    unit = begin_unit(Compiler(text, options=CompileOptions(0)).program, "gradient_propto", 0)
    finish_unit(unit, 0)
    return list(unit.module.walk())


def test_what_evaluations_read_is_in_memory_that_lasts() -> None:
    kept = [op.operands[0] for op in lowered(VIEWS) if isinstance(op, rt.SetBoundOp)]
    buffers = [value for value in kept if isinstance(value.type, rt.BufferType)]
    assert buffers and not [value for value in buffers if isinstance(viewed(value).owner, rt.AllocOp)]


def test_nothing_behind_a_check_that_surely_fails_runs_ahead_of_it() -> None:
    text = """data { array[2] int at; }
        model { array[2] int by = sort_desc(segment(append_array(at, at), 4, 2)); target += by[1]; }"""
    assert not [op for op in lowered(text) if isinstance(op, rt.KernelOp) and _function(op) == "bind"]
    with pytest.raises(ulam.FatalError, match="segment: elements up to 5 asked for, but there are 4"):
        ulam.StanModel(text, {"at": [1, 2]}, cache=False, opt_level=0).log_density_gradient(np.empty(0))


def _function(op: Operation) -> str:
    current: Operation | None = op
    while current is not None and not isinstance(current, func.FuncOp):
        current = current.parent_op()
    return "" if current is None else current.sym_name.data


needs_guard_pages = pytest.mark.skipif(
    sys.platform != "linux" or c_compiler() is None, reason="guard pages are for Linux; the runtime is built with them"
)


@needs_guard_pages
@pytest.mark.slow
def test_random_programs_stay_within_their_memory(tmp_path: Path) -> None:
    command = [sys.executable, str(SWEEP), "--programs", "40", "--results", str(tmp_path / "results.jsonl")]
    found = subprocess.run(command, capture_output=True, text=True, env={**os.environ})
    assert "accesses outside: 0; values that depend on memory's old contents: 0" in found.stdout, found.stdout
