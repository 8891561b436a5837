"""Lines of compiled code: the same code as without, exact lines, samples where the time goes, debuggers and `perf`."""

from __future__ import annotations

import gc
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ulam.emit.object_file import ObjectFile, ObjectFormatError
from ulam.runtime.c_library import library
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.errors import ArgumentError, Rejection
from ulam.runtime.model import StanModel
from ulam.runtime.profiling.line_profile import LineSampler, sample_lines
from ulam.runtime.profiling.line_table import CodePlace, LineTable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="lines are known on Linux only")
elffile = pytest.importorskip("elftools.elf.elffile")

# The line of each C function that this program calls is known: see CALLS.
PROGRAM = """functions {
  real twice(real x) {
    return 2
      * sinh(x);
  }
  real factorial(real x, int n) {
    if (n <= 1)
      return
        cosh(x);
    return n * factorial(x, n - 1);
  }
}
data {
  int N;
  vector[N] x;
  int n;
}
parameters {
  real a;
  real<lower=0> s;
  matrix[2, 2] m;
}
model {
  target += twice(a);
  s ~
    gamma(a ^ 2, 3);
  for (i in 1:N)
    x[i] ~ student_t(4, a, s);
  target += log_determinant(m);
  target += factorial(a, n);
}
"""
DATA: dict[str, Any] = {"N": 50, "x": np.linspace(-1, 1, 50), "n": 3}
THETA = np.array([0.3, 0.2, 2.0, 0.1, -0.1, 1.5])
FORWARD = {"sinh": 4, "cosh": 9, "lgamma": 25, "ulam_log_determinant": 29}
REVERSE = {"cosh": 4, "sinh": 9, "ulam_digamma": 25, "ulam_log_determinant_pullback": 29}

# One line has ten times the work of another.
UNEQUAL = """data { int N; vector[N] x; vector[10 * N] y; }
parameters { real a; }
model {
  target += sum(lgamma(exp(a * x)));
  target += sum(lgamma(exp(a * y)));
}
"""
UNEQUAL_DATA: dict[str, Any] = {"N": 100, "x": np.linspace(-1, 1, 100), "y": np.linspace(-1, 1, 1000)}
POINT = np.array([0.3])


def compiler(source: str, *, lines: bool, level: int = 3) -> Compiler:
    return Compiler(source, "program.stan", CompileOptions(level, lines=lines))


def sections(code: bytes) -> dict[str, bytes]:
    return {s.name: s.data() for s in elffile.ELFFile(io.BytesIO(code)).iter_sections()}


def relocations(code: bytes) -> list[tuple[str, int, int, int]]:
    """Of the code: name of the symbol or section, offset, type, addend."""
    elf = elffile.ELFFile(io.BytesIO(code))
    symbols = elf.get_section_by_name(".symtab")
    found: list[tuple[str, int, int, int]] = []
    section = elf.get_section_by_name(".rela.text")
    for entry in section.iter_relocations() if section is not None else ():
        symbol = symbols.get_symbol(entry["r_info_sym"])
        is_section = symbol["st_info"]["type"] == "STT_SECTION"
        name = elf.get_section(symbol["st_shndx"]).name if is_section else symbol.name
        found.append((name, entry["r_offset"], entry["r_info_type"], entry["r_addend"]))
    return found


# ---------------------------------------------------------------- the code


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("unit", ["gradient_propto", "value_full", "constrain", "setup", "hessian_vector_propto"])
def test_the_machine_code_is_the_same(unit: str, level: int) -> None:
    codes = [compiler(PROGRAM, lines=lines, level=level).unit(unit) for lines in (False, True)]
    without, with_lines = (sections(code) for code in codes)
    assert not [name for name in without if name.startswith(".debug")]
    assert ".debug_line" in with_lines
    assert len(without[".text"]) > 50
    names = [name for name in without if name.startswith((".text", ".rodata"))]
    assert {name: without[name] for name in names} == {name: with_lines[name] for name in names}
    assert relocations(codes[0]) == relocations(codes[1])


def test_the_llvm_text_differs_by_metadata_alone() -> None:
    def instructions(text: str) -> str:
        body = text[: text.index("attributes #0")]
        return re.sub(r"!\d+", "!", re.sub(r",? !dbg !\d+", "", body))

    without = compiler(PROGRAM, lines=False).llvm_text("gradient_propto")
    assert "!dbg" not in without and "!DI" not in without and "llvm.dbg" not in without
    with_lines = compiler(PROGRAM, lines=True).llvm_text("gradient_propto")
    assert instructions(without) == instructions(with_lines)
    unplaced = [
        line
        for line in with_lines[with_lines.index("define i32 @evaluate") : with_lines.index("attributes #0")].split("\n")
        if line.startswith("  ") and not re.search(r"!dbg !\d+| = phi | = alloca ", line)
    ]
    assert not [line for line in unplaced if "call i32" in line or "call double @sinh" in line]


def test_results_have_the_same_bits() -> None:
    plain = StanModel(PROGRAM, DATA)
    traced = StanModel(PROGRAM, DATA, lines=True)
    value, gradient = plain.log_density_gradient(THETA)
    with LineSampler(traced, interval=1e-4):
        for _ in range(100):
            again, same = traced.log_density_gradient(THETA)
            assert again == value
            assert same.tobytes() == gradient.tobytes()


def test_the_cache_keeps_both_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ULAM_CACHE_DIR", str(tmp_path))
    for _ in range(2):  # compiled, then read
        for lines in (True, False):
            model = StanModel(UNEQUAL, UNEQUAL_DATA, lines=lines)
            model.log_density_gradient(POINT)
            (unit,) = [u for u in model.loaded_units() if u.name == "gradient_propto"]
            assert hasattr(unit.loaded, "lines") == lines


# ---------------------------------------------------------------- exact lines


@pytest.mark.parametrize("level", [0, 3])
def test_each_call_has_the_line_of_its_statement(level: int) -> None:
    """The object's relocations say where each C function is called."""
    code = compiler(PROGRAM, lines=True, level=level).unit("gradient_propto")
    table = LineTable(code)
    found: dict[str, set[CodePlace | None]] = {}
    for name, offset, _, _ in relocations(code):
        found.setdefault(name.removesuffix("_fast"), set()).add(table.place(offset))
    expected: dict[str, set[CodePlace | None]] = {}
    for calls, reverse in ((FORWARD, False), (REVERSE, True)):
        for name, line in calls.items():
            expected.setdefault(name, set()).add(CodePlace("program.stan", line, reverse))
    for name, places in expected.items():
        assert places <= found[name], (name, found[name])
        lines = {place.line for place in found[name] if place is not None}
        assert lines == {place.line for place in places if place is not None}, name


def test_no_line_is_made_up() -> None:
    code = compiler(PROGRAM, lines=True).unit("gradient_propto")
    places = {r.place for r in LineTable(code).ranges}
    text = PROGRAM.splitlines()
    for place in places - {None}:
        assert place is not None and place.file == "program.stan"
        line = text[place.line - 1].strip()
        assert line not in ("", "}", "model {", "data {", "parameters {"), place


def test_ranges_cover_the_functions_once() -> None:
    code = compiler(PROGRAM, lines=True).unit("gradient_propto")
    ranges = LineTable(code).ranges
    assert all(a.end <= b.start for a, b in zip(ranges, ranges[1:], strict=False))
    functions = [f for f in ObjectFile(code).functions if not f.name.startswith("ulam.")]
    assert {"gradient_propto.evaluate", "gradient_propto.bind"} < {f.name for f in functions}
    for f in functions:
        covered = sum(max(0, min(r.end, f.offset + f.size) - max(r.start, f.offset)) for r in ranges)
        assert covered == f.size, f.name


def test_long_lines_and_names_of_any_characters() -> None:
    source = "parameters { real a; }\nmodel {" + " " * 70_000 + "target += sinh(a); }\n"
    name = 'größe "1"\\x.stan'
    code = Compiler(source, name, CompileOptions(lines=True)).unit("gradient_propto")
    places = {r.place for r in LineTable(code).ranges}
    assert CodePlace(name, 2, False) in places
    assert {place.file for place in places if place is not None} == {name}


def test_long_programs_have_functions_for_errors_elsewhere() -> None:
    statements = "".join(f"  target += student_t_lpdf(x[{k} + 1] | {k} + 1, a * {k}, s);\n" for k in range(60))
    source = f"parameters {{ vector[60] x; real a; real<lower=0> s; }}\nmodel {{\n{statements}}}\n"
    model = StanModel(source, lines=True, opt_level=0)
    code = ObjectFile(Compiler(source, options=CompileOptions(0, lines=True)).unit("gradient_propto"))
    assert len({f.section for f in code.functions}) > 1
    assert {f.name for f in code.functions} - {f.name for f in code.hot_functions} <= {
        f"ulam.fail.{n}" for n in range(5)
    }
    profile = sample_lines(model, np.zeros(62), seconds=0.2)
    assert {row.line for row in profile.rows} <= {1, *range(3, 63)}
    assert len(profile.rows) > 10


def test_other_object_formats_are_refused() -> None:
    with pytest.raises(ObjectFormatError, match="Linux only"):
        ObjectFile(b"\xcf\xfa\xed\xfe" + bytes(100))


# ---------------------------------------------------------------- samples


@pytest.mark.ordinary_runtime("opening and closing pages takes most of the time")
def test_shares_are_those_of_the_work() -> None:
    model = StanModel(UNEQUAL, UNEQUAL_DATA, lines=True)
    profile = sample_lines(model, POINT, seconds=1.5)
    few, many = profile.row(4), profile.row(5)
    assert few is not None and many is not None
    assert {row.line for row in profile.rows} <= {2, 4, 5}
    assert profile.rows[0] is many
    assert 7 < many.samples / few.samples < 14, profile
    assert few.share + many.share > 0.95
    assert profile.total == sum(row.samples for row in profile.rows) + profile.unattributed
    assert profile.total > 500
    for row in (few, many):
        assert row.text.startswith("target += sum(lgamma")
        assert row.forward + row.reverse == row.samples
        assert row.share == row.samples / profile.total
        # lgamma and digamma are C functions, and where nearly all of the time goes
        assert row.called > 0.5 * row.samples
        assert row.reverse > 0.1 * row.samples and row.forward > 0.1 * row.samples


@pytest.mark.ordinary_runtime("opening and closing pages takes most of the time")
def test_code_without_calls() -> None:
    source = """data { int N; }
    parameters { real a; }
    model {
      real z = a;
      for (n in 1:N) z = 0.5 * z + 1 / (2 + z);
      real w = a;
      for (n in 1:10 * N) w = 0.5 * w + 1 / (2 + w);
      target += z + w;
    }
    """
    profile = sample_lines(StanModel(source, {"N": 500}, lines=True), POINT, seconds=1.0)
    few, many = profile.row(5), profile.row(7)
    assert few is not None and many is not None
    assert 6 < many.samples / few.samples < 16, profile
    assert few.share + many.share > 0.9


def test_other_threads_are_sampled() -> None:
    model = StanModel(UNEQUAL, UNEQUAL_DATA, lines=True)
    model.log_density_gradient(POINT)
    with LineSampler(model) as sampler:
        threads = [threading.Thread(target=model.time_gradients, args=(POINT, 2000)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sampler.profile.total > 100
    assert sampler.profile.rows[0].line == 5


def test_python_between_evaluations_does_not_count() -> None:
    model = StanModel(UNEQUAL, UNEQUAL_DATA, lines=True)
    model.log_density_gradient(POINT)
    with LineSampler(model) as sampler:
        model.log_density_gradient(POINT)
        end = time.thread_time() + 0.3
        while time.thread_time() < end:
            pass
    profile = sampler.profile
    assert profile.outside > 100
    assert profile.total < 0.1 * profile.outside


def test_sleeping_does_not_count() -> None:
    model = StanModel(UNEQUAL, UNEQUAL_DATA, lines=True)
    model.log_density_gradient(POINT)
    with LineSampler(model) as sampler:
        model.log_density_gradient(POINT)
        time.sleep(0.3)
    # 1500 ticks, each of which wakes the thread for a moment
    assert sampler.profile.outside + sampler.profile.total < 750


def test_another_model_counts_as_outside() -> None:
    model, other = (StanModel(UNEQUAL, UNEQUAL_DATA, lines=True) for _ in range(2))
    model.log_density_gradient(POINT)
    with LineSampler(model) as sampler:
        other.time_gradients(POINT, 2000)
    assert sampler.profile.rows == []
    assert sampler.profile.outside > 20


def test_units_compiled_meanwhile_are_known() -> None:
    model = StanModel(UNEQUAL, UNEQUAL_DATA, lines=True)
    with LineSampler(model) as sampler:
        model.time_gradients(POINT, 2000)
    assert sampler.profile.rows[0].line == 5


@pytest.mark.ordinary_runtime("opening and closing pages takes most of the time")
def test_recursive_functions_and_hessians() -> None:
    model = StanModel(PROGRAM, {**DATA, "n": 800}, lines=True)
    with LineSampler(model) as sampler:
        for _ in range(500):
            model.log_density_hessian(THETA)
    counts = {row.line: row.samples for row in sampler.profile.rows}
    assert sum(counts.get(line, 0) for line in (6, 7, 8, 9, 10)) > 0.5 * sampler.profile.total


def test_evaluations_that_fail() -> None:
    source = 'parameters { real a; } model { if (a > 0) reject("no"); target += lgamma(exp(a)); }'
    model = StanModel(source, lines=True)
    with LineSampler(model) as sampler:
        for _ in range(200):
            with pytest.raises(Rejection):
                model.log_density_gradient(np.array([1.0]))
        model.time_gradients(np.array([-1.0]), 50_000)
    assert sampler.profile.rows[0].line == 1


def test_starting_and_stopping_while_others_evaluate() -> None:
    model = StanModel(UNEQUAL, UNEQUAL_DATA, lines=True)
    model.log_density_gradient(POINT)
    done = threading.Event()
    values: set[float] = set()

    def evaluate() -> None:
        while not done.is_set():
            values.add(model.log_density_gradient(POINT)[0])

    threads = [threading.Thread(target=evaluate) for _ in range(3)]
    for thread in threads:
        thread.start()
    total = 0
    for _ in range(100):
        with LineSampler(model, interval=1e-5) as sampler:
            time.sleep(0.003)
        total += sampler.profile.total
    done.set()
    for thread in threads:
        thread.join()
    assert len(values) == 1
    assert total > 100


# ---------------------------------------------------------------- signals

# Ticks that are on their way when sampling ends find a handler: the default action of SIGPROF ends the process.
STOPPED_OFTEN = """
import os, signal, sys, threading, time
import numpy as np
from ulam.runtime.model import StanModel
from ulam.runtime.profiling.line_profile import LineSampler

model = StanModel("parameters { vector[200] x; } model { x ~ normal(0, 1); }", lines=True)
point = np.linspace(0, 1, 200)
model.log_density_gradient(point)
done = threading.Event()


def evaluate():
    while not done.is_set():
        model.time_gradients(point, 100)


threads = [threading.Thread(target=evaluate) for _ in range(4)]
for thread in threads:
    thread.start()
for _ in range(300):
    with LineSampler(model, interval=1e-5):
        time.sleep(1e-4)
done.set()
for thread in threads:
    thread.join()
print("sampled", flush=True)
{signals}
os.kill(os.getpid(), signal.SIGPROF)
print("alive", flush=True)
"""


@pytest.mark.parametrize(
    ("signals", "printed", "code"),
    [
        ("", ["sampled"], -signal.SIGPROF),
        ("signal.signal(signal.SIGPROF, signal.SIG_IGN)", ["sampled", "alive"], 0),
        ("signal.signal(signal.SIGPROF, lambda *_: sys.exit(3))", ["sampled"], 3),
    ],
    ids=["default", "ignored", "handled"],
)
def test_late_ticks_and_signals_of_others(signals: str, printed: list[str], code: int) -> None:
    program = STOPPED_OFTEN.replace("{signals}", signals)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout.split()) == (code, printed), done.stderr


def test_the_previous_handler_is_restored_and_called_meanwhile() -> None:
    model = StanModel(UNEQUAL, UNEQUAL_DATA, lines=True)
    model.log_density_gradient(POINT)
    received: list[int] = []
    before = signal.signal(signal.SIGPROF, lambda number, _: received.append(number))
    try:
        with LineSampler(model) as sampler:
            os.kill(os.getpid(), signal.SIGPROF)
            model.time_gradients(POINT, 500)
        assert received == [signal.SIGPROF]
        assert sampler.profile.total > 10
        os.kill(os.getpid(), signal.SIGPROF)
        time.sleep(0.01)
        assert len(received) == 2
    finally:
        signal.signal(signal.SIGPROF, before)


def test_an_exception_ends_sampling() -> None:
    model = StanModel(UNEQUAL, UNEQUAL_DATA, lines=True)
    sampler = LineSampler(model)
    with pytest.raises(KeyError), sampler:
        model.time_gradients(POINT, 500)
        raise KeyError
    assert sampler.profile.total > 10
    with LineSampler(model):
        pass  # another one may begin


# ---------------------------------------------------------------- what is printed


def test_annotated_source_and_json(tmp_path: Path) -> None:
    profile = sample_lines(StanModel(UNEQUAL, UNEQUAL_DATA, lines=True), POINT, seconds=0.2)
    text = profile.annotated().splitlines()
    assert len(text) == len(UNEQUAL.splitlines())
    assert text[2] == "       | 3 | model {"
    assert re.fullmatch(r" [ \d]\d\.\d% \| 5 \|   target \+= sum\(lgamma\(exp\(a \* y\)\)\);", text[4])
    assert str(profile).endswith("%") and f"{profile.total} samples, one every 0.2 ms" in str(profile)
    path = tmp_path / "lines.json"
    read = json.loads(profile.to_json(path))
    assert json.loads(path.read_text()) == read
    assert set(read) == {"rows", "total", "unattributed", "outside", "lost", "interval"}
    assert read["rows"][0]["line"] == 5 and read["rows"][0]["file"] == "model.stan"
    assert read["lost"] == 0


def test_included_files(tmp_path: Path) -> None:
    (tmp_path / "costly.stan").write_text("real costly(vector v) {\n  return sum(lgamma(exp(v)));\n}\n")
    program = tmp_path / "program.stan"
    program.write_text(
        "functions {\n#include costly.stan\n}\ndata { int N; vector[N] x; }\nparameters { real a; }\n"
        "model { target += costly(a * x); }\n"
    )
    model = StanModel(program, {"N": 300, "x": np.linspace(-1, 1, 300)}, lines=True, include_paths=[tmp_path])
    profile = sample_lines(model, POINT, seconds=0.3)
    assert profile.rows[0].file == str(tmp_path / "costly.stan")
    assert profile.rows[0].line == 2
    assert profile.rows[0].text == "return sum(lgamma(exp(v)));"
    assert profile.row(2, str(tmp_path / "costly.stan")) is profile.rows[0]
    assert f"{tmp_path / 'costly.stan'}:" in profile.annotated().splitlines()


# ---------------------------------------------------------------- mistakes


def test_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = StanModel(UNEQUAL, UNEQUAL_DATA)
    with pytest.raises(ArgumentError, match=r"lines=True"):
        LineSampler(plain)
    model = StanModel(UNEQUAL, UNEQUAL_DATA, lines=True)
    with pytest.raises(ArgumentError, match="interval"):
        LineSampler(model, interval=0)
    with pytest.raises(ArgumentError, match="seconds"):
        sample_lines(model, POINT, seconds=0)
    sampler = LineSampler(model)
    with pytest.raises(ArgumentError, match="has ended"):
        _ = sampler.profile
    with sampler, pytest.raises(ArgumentError, match="another"), LineSampler(model):
        pass
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ArgumentError, match="Linux only"):
        StanModel(UNEQUAL, UNEQUAL_DATA, lines=True)


def test_without_the_library_that_reads_line_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    code = compiler(UNEQUAL, lines=True).unit("gradient_propto")
    monkeypatch.setitem(sys.modules, "elftools.elf.elffile", None)
    with pytest.raises(ArgumentError, match=r"ulam\[profile\]"):
        LineTable(code)


# ---------------------------------------------------------------- debuggers and perf

SCRIPT = """
import os
import numpy as np
from ulam.runtime.model import StanModel
model = StanModel({path!r}, {{"N": 3, "x": [1, 2, 3], "n": 3}}, lines={lines})
model.time_gradients(np.array([0.3, 0.2, 2.0, 0.1, -0.1, 1.5]), 3)
print(os.getpid())
"""


def run_script(tmp_path: Path, *prefix: str, lines: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
    program, script = tmp_path / "program.stan", tmp_path / "script.py"
    program.write_text(PROGRAM)
    script.write_text(SCRIPT.format(path=str(program), lines=lines))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}
    command = [*prefix, sys.executable, str(script)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
def test_gdb_shows_lines(tmp_path: Path) -> None:
    commands = [
        "set breakpoint pending on",
        "set debuginfod enabled off",
        "break ulam_log_determinant_fast",
        "run",
        "backtrace 2",
        "frame 1",
        "break ulam_log_determinant_pullback_fast",
        "continue",
        "backtrace 2",
    ]
    arguments = [part for command in commands for part in ("-ex", command)]
    shown = run_script(tmp_path, "gdb", "-q", "-nx", "-batch", *arguments, "--args").stdout
    frame = rf"#1 .* in gradient_propto\.evaluate \(\) at {re.escape(str(tmp_path))}/program\.stan:29"
    assert len(re.findall(frame, shown)) >= 2, shown
    assert re.search(r"^29\s+target \+= log_determinant\(m\);", shown, re.MULTILINE), shown


@pytest.mark.parametrize("lines", [True, False])
def test_perf_map(tmp_path: Path, lines: bool) -> None:
    program = run_script(tmp_path, lines=lines, ULAM_PERF="1", ULAM_CACHE_DIR=str(tmp_path / "cache"))
    assert program.stderr == ""
    path = Path(f"/tmp/perf-{program.stdout.strip()}.map")
    text = path.read_text()
    path.unlink()
    rows = [line.split(" ", 2) for line in text.splitlines()]
    names = {name for _, _, name in rows}
    assert {"setup.data_dims", "setup.prepare"} <= names
    assert (f"{tmp_path}/program.stan:29" in names) == lines
    assert (f"{tmp_path}/program.stan:29 (reverse)" in names) == lines
    assert lines or {"gradient_propto.evaluate", "gradient_propto.bind"} <= names
    spans = sorted((int(start, 16), int(size, 16)) for start, size, _ in rows)
    assert all(size > 0 for _, size in spans)
    assert all(start + size <= following for (start, size), (following, _) in zip(spans, spans[1:], strict=False))


def test_unloaded_code_is_forgotten() -> None:
    runtime = library()
    gc.collect()
    before = runtime.ulam_sampler_ranges()
    model = StanModel(UNEQUAL, UNEQUAL_DATA, lines=True)
    model.log_density_gradient(POINT)
    assert runtime.ulam_sampler_ranges() > before
    del model
    gc.collect()
    assert runtime.ulam_sampler_ranges() == before


def test_statements_with_layouts_have_their_lines_and_their_traces() -> None:
    """What computes them from other forms of the data counts for the line that they stand on."""
    source = """data { int N; int K; int J; matrix[N, K] X; matrix[N, J] Z; vector[N] y; array[N] int<lower=0> k; }
parameters { real a; real<lower=0> s; vector[K] b; vector[J] u; }
model {
  y ~ normal(a + X * b, s);
  k ~ poisson_log(Z * u);
}
"""
    rng = np.random.default_rng(4)
    n, sizes = 1500, {"N": 1500, "K": 60, "J": 90}
    groups = rng.integers(0, sizes["J"], n)
    design = {"X": rng.normal(size=(n, sizes["K"])), "Z": np.eye(sizes["J"])[groups]}
    data = {**sizes, **design, "y": rng.normal(size=n), "k": rng.poisson(2, n)}
    model = StanModel(source, data, opt_level=3, lines=True)
    assert {(choice.layout, choice.line) for choice in model.layout_choices() if choice.taken} == {
        ("reduced rows", 4),
        ("sparse columns", 5),
        ("unique rows", 5),
    }
    point = rng.normal(size=model.param_unc_num()) * 0.3
    profile = sample_lines(model, point, seconds=0.4)
    found = {row.line: row.share for row in profile.rows}
    assert min(found[4], found[5]) > 0.002
    assert found[4] + found[5] > 0.9
    written = model.track_density(point).value
    assert written == pytest.approx(model.log_density(point, propto=False), rel=1e-11)
