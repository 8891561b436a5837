"""Under guard pages no program reads or writes outside of its memory: what was found, and a few random programs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from runtime_builds import c_compiler, extension
from xdsl.dialects import func
from xdsl.ir import Operation

import ulam
from ulam.dialects import rt
from ulam.passes.loops.effects import viewed
from ulam.passes.lowering_pipeline import begin_unit, finish_unit
from ulam.passes.units import UNITS
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

ORACLES = Path(__file__).parents[1] / "oracles"
SWEEP = ORACLES.parent.parent / "benchmarks" / "guard_pages.py"

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
    unit = begin_unit(Compiler(text, options=CompileOptions(0)).program, UNITS["gradient_propto"], 0)
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


def test_whatever_the_runtime_allocates_goes_through_what_guards_it() -> None:
    """Builds with guard pages replace these functions; others that allocate would go unnoticed."""
    sources = Path(ulam.runtime.native.__file__).parent / "c"
    replaced = set(re.findall(r"#define (\w+)\(", (sources / "guard_malloc.h").read_text()))
    asking = re.compile(r"\b(?!ulam_|array_)(\w*alloc\w*|mmap|strn?dup|v?asprintf|getline|open_memstream)\(")
    files = [path for path in sources.rglob("*.[ch]") if not path.name.startswith("guard_")]
    found = {name for path in files for name in asking.findall(path.read_text())}
    assert {"malloc", "calloc", "realloc", "mmap"} <= found <= replaced


def test_other_builds_take_sources_and_flags_of_the_installation() -> None:
    settings = extension()
    assert any(source.endswith("guard_pages.c") for source in settings["sources"])
    assert "-ffp-contract=off" in settings["extra_compile_args"] and settings["libraries"]


needs_guard_pages = pytest.mark.skipif(
    sys.platform != "linux" or c_compiler() is None, reason="guard pages are for Linux; the runtime is built with them"
)


@needs_guard_pages
@pytest.mark.slow
def test_random_programs_stay_within_their_memory(tmp_path: Path) -> None:
    command = [sys.executable, str(SWEEP), "--programs", "40", "--results", str(tmp_path / "results.jsonl")]
    found = subprocess.run(command, capture_output=True, text=True, env={**os.environ})
    assert "accesses outside: 0; values that depend on memory's old contents: 0" in found.stdout, found.stdout


GUARDED_MEMORY = """
import ctypes, sys
import guard_pages
guard_pages.use_guarded_runtime()
with guard_pages.guarded_arrays():
    import numpy as np, ulam
    from ulam.runtime.c_library import library
    from ulam.runtime.native import BoundData, Context
    from ulam.trace import TraceContext

    def size(address):
        assert guard_pages.block_bytes(address) >= 0, "not guarded"
        return guard_pages.block_bytes(address)

    context, data, array = Context(), BoundData(3), np.zeros(5)
    assert size(context.address) >= 88 and size(data.address) == 8 * data.slots and size(array.ctypes.data) == 40
    model = ulam.StanModel('''parameters { real x; }
        model { vector[3] v = rep_vector(x, 3); for (i in 1:9) { profile("a") { v[1 + i % 3] += x; } }
        target += sum(v); }
        generated quantities { real y = normal_rng(x, 1); print(y); }''', cache=False)
    for overflow in ("stop", "ring", "spill", "edges"):
        limits = TraceContext(overflow=overflow)
        trace = model.track_density(np.zeros(1), context=limits).trace
        base, used = trace.tape.recorder.chunk(0)
        assert size(base) == trace.tape.recorder.chunk_bytes >= used > 0
    sys.stdout.write("all guarded")
    sys.stdout.flush()
    ctypes.string_at(base + size(base), 1)
"""


@needs_guard_pages
@pytest.mark.slow
def test_memory_of_contexts_tables_arrays_and_traces_is_guarded() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ORACLES)}
    found = subprocess.run([sys.executable, "-c", GUARDED_MEMORY], capture_output=True, text=True, env=environment)
    assert found.stdout == "all guarded", found.stderr
    assert found.returncode == -signal.SIGSEGV
    assert re.search(r"guard pages: access at byte (\d+) of a block of \1 bytes", found.stderr)
