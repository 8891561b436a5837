"""Acceptance test 19 of tracing: what is kept of long runs, in each way to do with too much; and what is not touched.

Times are measured by `benchmarks/tracing.py`.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damaged_traces import verdict
from trace_programs import PROGRAM, READING, H

from ulam import StanModel
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.errors import ArgumentError
from ulam.trace import MISSING, NestedCallNode, Seeded, TraceContext, format_levels, load
from ulam.tracing.nodes import ItemNode

LONG = 1_250_000
NODES = 10_000_010
MIB = 1 << 20


@pytest.fixture(scope="module")
def model() -> StanModel:
    return StanModel(PROGRAM)


def tracked(model: StanModel, n: int, overflow: str, limit: int = 1 << 30) -> NestedCallNode:
    node = model.track("h", 1.0, n, context=TraceContext(overflow=overflow, limit_bytes=limit))
    assert isinstance(node, NestedCallNode)
    return node


def test_a_long_run_in_each_mode(model: StanModel) -> None:
    whole = tracked(model, LONG, "stop")
    info = whole.trace.tape.recorder.info()
    assert whole.value == LONG
    assert len(whole) == NODES
    assert info.bytes <= 100 * MIB and info.dropped == 0
    expected = [str(whole[p]) for p in (6, 9_999_999, NODES)]

    ring = tracked(model, LONG, "ring", 16 * MIB)
    kept = ring.trace.tape.recorder.info()
    assert ring.value == LONG
    assert kept.bytes <= 18 * MIB
    assert len(ring) == NODES
    body = ring.body
    assert body is not None and body.gap is not None
    first, last = body.gap
    assert kept.dropped == last - first + 1
    assert [str(ring[p]) for p in (6, 9_999_999, NODES)] == expected
    with pytest.raises(IndexError):
        ring[first + 5]

    edges = tracked(model, LONG, "edges")
    few = edges.trace.tape.recorder.info()
    assert edges.value == LONG
    assert few.bytes + few.edge_bytes <= 4 * MIB
    assert [str(edges[p]) for p in (6, 9_999_999, NODES)] == expected

    spilled = tracked(model, LONG, "spill")
    assert spilled.trace.tape.recorder.info().bytes <= 4 * MIB
    assert spilled.value == LONG
    assert [str(spilled[p]) for p in (6, 9_999_999, NODES)] == expected


def test_what_is_beyond_the_limit_is_counted(model: StanModel) -> None:
    """In a third of the memory that it takes."""
    n = 1_400
    node = tracked(model, n, "stop", 8 * 4096)
    body = node.body
    assert body is not None and body.is_cut
    assert node.value == n
    assert len(node) < 8 * n + 10
    in_zero, around = 3, 2  # nodes of zero, and of the call itself: the function around it
    dropped = node.trace.dropped
    kept_records = body.steps
    assert dropped > 0 and kept_records > 0
    whole = tracked(model, n, "stop")
    assert [str(a) for a in node.children] == [str(whole[p]) for p in range(1, len(node) + 1)]
    assert in_zero + around + len(whole) > dropped


@pytest.mark.parametrize("overflow", ["stop", "ring", "edges", "spill"])
def test_modes_agree_where_nothing_overflows(model: StanModel, overflow: str) -> None:
    assert format_levels(model.track("h", 2.0, 2, context=TraceContext(overflow=overflow)), 2) == H


RECURSION = """functions {
  real deep(real x, int n) {
    real a = n > 0 ? deep(x + 1, n - 1) : x;
    real b = 0;
    for (i in 1:40) b += a * i;
    return b > 1e6 ? 1.0 : b;
  }
}
"""


@pytest.mark.parametrize("overflow", ["stop", "ring", "edges", "spill"])
def test_results_of_open_calls_are_not_lost(overflow: str) -> None:
    """Results go into records that were written long before: these must not be given away meanwhile."""
    model = StanModel(RECURSION)
    whole = model.track("deep", 0.5, 2000)
    context = TraceContext(overflow=overflow, limit_bytes=64 * 1024)
    node = model.track("deep", 0.5, 2000, context=context)
    assert node.value == whole.value
    assert isinstance(node, NestedCallNode) and isinstance(whole, NestedCallNode)
    for _ in range(20):
        assert str(node) == str(whole)
        node = next(c for c in node.children if isinstance(c, NestedCallNode))
        whole = next(c for c in whole.children if isinstance(c, NestedCallNode))


def test_untraced_code_is_what_it_was(tmp_path: Path) -> None:
    text = PROGRAM + "parameters { real a; } model { target += h(a, 3) + f(a); }\n"
    units = ("value_propto", "gradient_full", "constrain")
    script = (
        "import sys\nfrom ulam.runtime.compiler import Compiler\n"
        f"compiler = Compiler({text!r}, 'model.stan')\n"
        f"sys.stdout.write(''.join(compiler.llvm_text(unit) for unit in {units!r}))\n"
        "assert 'ulam.tracing.session' not in sys.modules\n"
    )
    alone = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    StanModel(text).track("h", 2.0, 3)
    compiler = Compiler(text, "model.stan", CompileOptions())
    assert "".join(compiler.llvm_text(unit) for unit in units) == alone


# ---------------------------------------------------------------- saved traces


def test_saved_trace(model: StanModel, tmp_path: Path) -> None:
    node = model.track("geom_rng", 1, 0.1, rng=Seeded(5))
    path = tmp_path / "geom.trace"
    node.trace.save(path)
    again = load(path)
    assert isinstance(node, NestedCallNode) and isinstance(again, NestedCallNode)
    assert format_levels(again) == format_levels(node)
    assert again.trace.draws_used == node.trace.draws_used
    assert again[4].span == node[4].span


@pytest.mark.parametrize("damage", ["cut", "changed", "other", "empty", "version", "order", "no version", "short"])
def test_damaged_trace(model: StanModel, tmp_path: Path, damage: str) -> None:
    from ulam.tracing.saved import VERSION, DamagedTrace

    path = tmp_path / "h.trace"
    model.track("h", 2.0, 2).trace.save(path)
    data = bytearray(path.read_bytes())
    if damage == "cut":
        data = data[:-100]
    elif damage == "changed":
        data[len(data) // 2] ^= 1
    elif damage == "version":
        data = data.replace(f"ULAM-TRACE {VERSION} ".encode(), b"ULAM-TRACE 99 ")
    elif damage == "order":
        data = data.replace(b" little ", b" big ")
    elif damage == "no version":
        data = data.replace(b" little ", b" middle ")
    elif damage == "short":
        data = data[:20]
    else:
        data = bytearray(b"something else" if damage == "other" else b"")
    path.write_bytes(data)
    with pytest.raises(DamagedTrace, match="damaged|no saved trace|version 99|big-endian"):
        load(path)


def test_wrong_contents_with_a_right_checksum(model: StanModel, tmp_path: Path) -> None:
    """Whatever a reader asks of them, the answer is a value or DamagedTrace. More: benchmarks/damaged_traces.py."""
    model.track("geom_rng", 1, 0.3, rng=Seeded(5)).trace.save(tmp_path / "draws")
    matrix = np.arange(6.0).reshape(2, 3)
    StanModel(READING).track("top", np.ones(3), matrix, [1, 2]).trace.save(tmp_path / "containers")
    verdicts = Counter(
        verdict(tmp_path / "changed", (tmp_path / name).read_bytes(), seed)
        for seed in range(40)
        for name in ("draws", "containers")
    )
    assert set(verdicts) == {"read", "damaged"} and verdicts["damaged"] > 10


def test_what_can_be_saved(model: StanModel, tmp_path: Path) -> None:
    """All that is whole: of edges, what a second run gives."""
    node = tracked(model, 2, "edges")
    node.trace.save(tmp_path / "edges")
    assert format_levels(load(tmp_path / "edges")) == format_levels(node)
    with pytest.raises(ArgumentError, match="only a trace whose beginning is kept"):
        model.track("h", 1.0, 30000, context=TraceContext(overflow="ring", limit_bytes=1 << 16)).trace.save(
            tmp_path / "r"
        )
    hidden = model.track("h", 2.0, 1, context=TraceContext(self_node=False))
    hidden.trace.save(tmp_path / "hidden")
    assert format_levels(load(tmp_path / "hidden")) == format_levels(hidden)


# ---------------------------------------------------------------- containers and errors

CONTAINERS = """functions {
  real norm(vector v, matrix m, array[,] int k) {
    vector[2] w = m * v;
    w[k[1, 2]] += 1;
    m_print(w);
    return dot_self(w) + sum(v);
  }
  void m_print(vector w) {
    print("w = ", w);
    if (w[1] < 0) reject("negative: ", w[1]);
  }
  real big(vector v) { vector[num_elements(v)] u = 2 * v; return u[5]; }
}
"""


def test_containers(capsys: pytest.CaptureFixture[str]) -> None:
    model = StanModel(CONTAINERS)
    matrix = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    node = model.track("norm", [1.0, 0.0, 2.0], matrix, [[1, 2], [2, 1]])
    assert capsys.readouterr().out == "w = [7,17]\n"
    assert format_levels(node, 2).split("\n") == [
        "⟨norm⟩(⟨[1.0, 0.0, 2.0]⟩, ⟨[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]⟩, ⟨[[1, 2], [2, 1]]⟩) = 341.0",
        "  @1: [Arg:§1:%1] norm",
        "  @2: [Arg:§1:%2] [1.0, 0.0, 2.0]",
        "  @3: [Arg:§1:%3] [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]",
        "  @4: [Arg:§1:%4] [[1, 2], [2, 1]]",
        "  @5: [§1:%5] ⟨*⟩(@3, @2) = [7.0, 16.0]",
        "  @6: [§1:%6] ⟨index⟩(@4, ⟨1⟩, ⟨2⟩) = 2",
        "  @7: [§1:%7] ⟨index⟩(@5, @6) = 16.0",
        "  @8: [§1:%8] ⟨+⟩(@7, ⟨1.0⟩) = 17.0",
        "  @9: [§1:%9] $(index_assign)(@5, @6, @8) = [7.0, 17.0]",
        "  @10: [§1:%10] ⟨m_print⟩(@9)",
        "  @11: [§1:%11] ⟨dot_self⟩(@9) = 338.0",
        "  @12: [§1:%12] ⟨sum⟩(@2) = 3.0",
        "  @13: [§1:%13] ⟨+⟩(@11, @12) = 341.0",
        "  @14: [§1:&1] return @13 = 341.0",
    ]


def test_large_containers() -> None:
    model = StanModel(CONTAINERS)
    v = np.arange(100.0)
    v[7] = np.nan
    node = model.track("big", v)
    assert isinstance(node, NestedCallNode)
    product = next(c for c in node.children if str(c).startswith("@4"))
    assert str(product) == "@4: ⟨*⟩(⟨2.0⟩, @2) = [0.0, 2.0, 4.0, …, 198.0] (n=100)"
    assert (product.value.nans, product.value.greatest) == (1, 198.0)
    copied = model.track("big", v, context=TraceContext(containers="copy"))
    assert isinstance(copied, NestedCallNode)
    assert np.array_equal(copied[4].value, 2 * v, equal_nan=True)


def test_a_run_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    model = StanModel(CONTAINERS)
    node = model.track("norm", [-1.0, 0.0, 0.0], np.eye(2, 3), [[1, 1], [1, 1]])
    assert node.trace.error is None
    node = model.track("norm", [-3.0, 0.0, 0.0], np.eye(2, 3), [[1, 1], [1, 1]])
    error = node.trace.error
    assert error is not None and error.message.startswith("negative: -2")
    assert node.value is MISSING and error.span is not None and error.span.line == 10
    lines = format_levels(node).split("\n")
    assert lines[-1] == "    @8: [§2:%7] $(reject)(⟨negative: ⟩, @7) = ✗ negative: -2"
    wrong = model.track("norm", [1.0, 1.0, 1.0], np.eye(2, 3), [[1, 9], [1, 1]])
    assert wrong.trace.error is not None and wrong.trace.error.node is not None
    assert str(wrong.trace.error.node).startswith("@7: ⟨index⟩(@5, @6) = ✗ ")
    capsys.readouterr()


# ---------------------------------------------------------------- long chains

CHAINS = """functions {
  real down(int n, real beta) { if (n == 0) return beta; return down(n - 1, beta); }
  real fill(int n) { vector[n] v; for (i in 1:n) v[i] = i; return sum(v); }
  real each(vector v) { real s = 0; for (e in v) s += e; return s; }
}
"""


def test_values_that_go_a_long_way() -> None:
    """An argument handed down through 5,000 calls; a container assigned 3,000 times; a count of 3,000."""
    model = StanModel(CHAINS)
    node = model.track("down", 5000, 0.5)
    inner: list[Any] = [node]
    while inner:
        assert isinstance(node := inner[0], NestedCallNode)
        inner = [child for child in node.children if isinstance(child, NestedCallNode)]
    assert isinstance(node, NestedCallNode)
    assert node[3].value == 0.5 and node.value == 0.5
    node = model.track("fill", 3000)
    assert isinstance(node, NestedCallNode)
    assigned = node[-2].operands[0].value
    assert np.array_equal(assigned, np.arange(1.0, 3001.0))
    with pytest.raises(ValueError, match="read-only"):
        assigned[0] = 5
    node = model.track("each", np.ones(3000))
    assert isinstance(node, NestedCallNode)
    assert (node[-4].value, node[-5].value) == (3001, 3000.0)


@pytest.mark.slow
def test_an_endless_recursion() -> None:
    model = StanModel("functions { int endless(int n) { return endless(n + 1); } }")
    node = model.track("endless", 1)
    error = node.trace.error
    assert error is not None and error.message.startswith("the stack is exhausted")
    assert isinstance(error.node, ItemNode) and error.node.frame.parent is not None
    assert error.node.arguments[0].value > 1000


def test_memory_is_used_again() -> None:
    model = StanModel(PROGRAM)
    node = model.track("h", 2.0, 2)
    address = node.trace.tape.recorder.address
    other = model.track("h", 2.0, 1)
    assert other.trace.tape.recorder.address != address  # both can be read
    assert node.value == 3.0 and other.value == 1.0
    node.trace.close()
    with pytest.raises(ArgumentError, match="closed"):
        _ = node.value
    assert model.track("h", 2.0, 2).trace.tape.recorder.address == address


def test_no_room_for_a_trace(model: StanModel) -> None:
    """A full disk is an error, not the end of the process; the next run has room again."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    context = TraceContext(overflow="spill", limit_bytes=1 << 20)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 21, hard))
    try:
        with pytest.raises(OSError, match="no room for the trace"):
            model.track("h", 1.0, 200_000, context=context)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    node = model.track("h", 1.0, 200_000, context=context)
    assert node.value == 200_000.0 and len(node.children) == 1_600_010


def test_blocks_that_are_longer_than_the_limit() -> None:
    """A record is in one piece: a limit below that is an error that says so."""
    sums = " ".join(f"s += x * {n};" for n in range(600))
    model = StanModel(f"functions {{ real f(real x) {{ real s = 0; {sums} return s; }} }}")
    with pytest.raises(ArgumentError, match="records 9[0-9]{3} bytes at once"):
        model.track("f", 1.0, context=TraceContext(limit_bytes=8192))
    for overflow in ("edges", "ring", "spill"):
        assert model.track("f", 1.0, context=TraceContext(overflow=overflow)).value == sum(range(600))
