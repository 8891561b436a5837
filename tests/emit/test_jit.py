"""Code generation and loading: errors, lifetime, threads, and that loading needs no compiler."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
from pathlib import Path
from textwrap import dedent

import emission
import pytest
from work import lines_executed

from ulam.emit import jit
from ulam.emit.errors import CodeGenerationError
from ulam.passes.units import UNITS
from ulam.runtime.compiler import Compiler, llvm_pipeline

DOUBLE_IT = """
func.func @f(%x: f64) -> f64 attributes {rt.entry = #rt.entry} {
  %r = arith.addf %x, %x : f64
  func.return %r : f64
}
"""


def test_text_that_is_not_llvm_ir() -> None:
    with pytest.raises(CodeGenerationError, match="refused"):
        jit.compile_object("define nonsense")
    with pytest.raises(CodeGenerationError, match="refused"):
        jit.verify("define i32 @f() { ret i64 0 }")


def test_what_an_exception_holds_is_given_back_in_order() -> None:
    """Compiles that were ended, with their frames in cycles: contexts outlive their modules. In another process."""
    code = """
import gc
from ulam.emit import jit

def stop():
    raise KeyboardInterrupt

gc.disable()
for when in range(100):
    calls = iter([lambda: None] * (when % 2) + [stop])
    try:
        jit.compile_object("define i32 @f() { ret i32 0 }", between=lambda: next(calls)())
    except KeyboardInterrupt as error:
        error.itself = error
    gc.collect()
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_missing_symbols_are_an_error_not_a_crash() -> None:
    data = jit.compile_object(
        """declare i32 @ulam_no_such_kernel()
        define i32 @f() {
          %r = call i32 @ulam_no_such_kernel()
          ret i32 %r
        }"""
    )
    with pytest.raises(CodeGenerationError, match="'f' cannot be linked"):
        jit.load_object(data).address("f")


def test_damaged_objects_are_refused() -> None:
    data = jit.compile_object(emission.emit(DOUBLE_IT))
    with pytest.raises(CodeGenerationError):
        jit.load_object(data[:100]).address("f")


def test_missing_runtime_library() -> None:
    with pytest.raises(CodeGenerationError, match="runtime library"):
        jit.load_object(b"", "no/such/library.so")


def test_code_lives_as_long_as_its_handle() -> None:
    data = jit.compile_object(emission.emit(DOUBLE_IT))
    handles = [jit.load_object(data) for _ in range(20)]
    addresses = {handle.address("f") for handle in handles}
    assert len(addresses) == 20
    function = handles[7].function("f", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double, ctypes.c_void_p)
    del handles[8:], handles[:7]
    out = ctypes.c_double()
    assert function(None, None, 4.5, ctypes.addressof(out)) == 0
    assert out.value == 9.0


def test_threads_compile_and_load_at_once() -> None:
    text = emission.emit(DOUBLE_IT)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(5):
                assert jit.load_object(jit.compile_object(text)).address("f")
        except BaseException as error:  # reported by the main thread
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_loading_imports_neither_xdsl_nor_the_frontend(tmp_path: Path) -> None:
    path = tmp_path / "object.o"
    path.write_bytes(jit.compile_object(emission.emit(DOUBLE_IT)))
    program = (
        "import sys; from pathlib import Path; from ulam.emit import jit; "
        "assert jit.load_object(Path(sys.argv[1]).read_bytes()).address('f'); "
        "print(sorted(m for m in sys.modules if m.split('.')[0] == 'xdsl' or m.startswith('ulam.frontend')))"
    )
    run = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_targets_other_than_objects() -> None:
    text = emission.emit(DOUBLE_IT)
    assert "define" in jit.optimized_text(text)
    assert "f:" in jit.compile_assembly(text)


def test_work_of_emission_is_linear() -> None:
    def work(count: int) -> int:
        body = "\n".join(f"%x{i + 1} = arith.addf %x{i}, %x0 : f64" for i in range(count))
        module = emission.parse(
            "func.func @f(%x0: f64) -> f64 attributes {rt.entry = #rt.entry} "
            f"{{\n{body}\nfunc.return %x{count} : f64\n}}"
        )
        return lines_executed(lambda: emission.emit_module(module, emission.EmitOptions(2)))

    work(1)
    assert work(400) < 2.05 * work(200)


def straight_line(length: int) -> str:
    """A function of one block: `length` stores of values of their own."""
    lines = ["define i32 @f(ptr noalias %context, ptr noalias %out) {"]
    for k in range(length):
        lines += [f"  %p{k} = getelementptr double, ptr %out, i64 {k}", f"  store double {k}.5, ptr %p{k}, align 8"]
    return "\n".join([*lines, "  ret i32 0", "}", ""])


def test_long_functions_get_passes_of_linear_time() -> None:
    chosen = jit._in_proportion  # pyright: ignore[reportPrivateUsage]
    assert chosen(straight_line(jit.BLOCK_LIMIT // 2 - 1), jit.HOT) is jit.HOT
    assert chosen(straight_line(jit.BLOCK_LIMIT // 2), jit.HOT) is jit.VAST
    short = "".join(f"b{k}:\n" + "  %x = add i32 1, 1\n" * 100 for k in range(jit.FUNCTION_LIMIT // 100))
    assert chosen(f"define void @f() {{\n{short}}}\n", jit.ONCE) is jit.ONCE
    assert chosen(f"define void @f() {{\n{short}}}\ndefine void @g() {{\n{short}}}\n", jit.ONCE) is jit.ONCE
    assert chosen(f"define void @f() {{\n{short}  ret void\n}}\n", jit.ONCE) is jit.VAST


def test_code_of_long_functions_does_the_same() -> None:
    count = jit.BLOCK_LIMIT
    out = (ctypes.c_double * count)()
    loaded = jit.load_object(jit.compile_object(straight_line(count)))
    assert loaded.function("f", ctypes.c_void_p, ctypes.c_void_p)(None, ctypes.addressof(out)) == 0
    assert list(out) == [k + 0.5 for k in range(count)]


def test_what_checks_and_copies_once_is_not_optimised() -> None:
    """A unit of such functions alone takes the pipeline without passes; one with arithmetic in loops does not."""
    chosen = jit._in_proportion  # pyright: ignore[reportPrivateUsage]
    rest = "parameters { real m; } model { m ~ normal(0, 1); }"
    checks = f"data {{ int N; vector<lower=0>[N] y; }} {rest}"
    sums = f"data {{ int N; vector[N] y; }} transformed data {{ real s = sum(exp(y)); }} {rest}"
    for program, expected in ((checks, jit.VAST), (sums, jit.ONCE)):
        compiler = Compiler(program)
        assert chosen(compiler.llvm_text("setup"), jit.ONCE) is expected
        assert chosen(compiler.llvm_text("gradient_propto"), jit.HOT) is jit.HOT


def products(count: int) -> str:
    """A function that adds up `count` products, and that of the last two numbers."""
    lines = ["define double @f(double %x, double %y) {", "  %s0 = fmul contract double %x, %x"]
    for k in range(count):
        lines += [f"  %p{k} = fmul contract double %s{k}, %y", f"  %s{k + 1} = fadd contract double %p{k}, %x"]
    return "\n".join([*lines, f"  ret double %s{count}", "}", ""])


def test_long_modules_that_run_seldom_get_plain_code_where_bits_may_differ() -> None:
    """Products and sums are then not fused: neither in short modules nor at levels 0 to 2 is that so."""
    long = jit.LONG_MODULE // 2

    def is_fused(count: int, pipeline: jit.Pipeline) -> bool:
        return "vfmadd" in jit.compile_assembly(products(count), pipeline, processor="x86-64-v3")

    constrain, gradient = UNITS["constrain"], UNITS["gradient_propto"]
    assert is_fused(long, llvm_pipeline(constrain, 2))
    assert is_fused(long, llvm_pipeline(gradient, 3))
    assert is_fused(100, llvm_pipeline(constrain, 3))
    assert not is_fused(long, llvm_pipeline(constrain, 3))
    loaded = jit.load_object(jit.compile_object(products(long), llvm_pipeline(constrain, 3)))
    address = loaded.address("f")
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)(address)(1.0, 0.5) == 2.0


def test_parts_of_a_vector_a_known_distance_apart_are_widened() -> None:
    """Adjoints of two vectors of parameters lie so; how many iterations there are is loaded."""
    text = dedent("""
    define void @evaluate(ptr noalias %counts, ptr noalias %x, ptr noalias %theta) {
    entry:
      %n = load i64, ptr %counts
      br label %for
    for:
      %i = phi i64 [ 0, %entry ], [ %next, %body ]
      %more = icmp slt i64 %i, %n
      br i1 %more, label %body, label %end
    body:
      %from = getelementptr inbounds double, ptr %x, i64 %i
      %v = load double, ptr %from
      %first = getelementptr inbounds double, ptr %theta, i64 %i
      %other = getelementptr inbounds double, ptr %first, i64 85
      %a = load double, ptr %first
      %c = fadd double %a, %v
      store double %c, ptr %first
      %b = load double, ptr %other
      %d = fadd double %b, %v
      store double %d, ptr %other
      %next = add nsw i64 %i, 1
      br label %for
    end:
      ret void
    }
    """)
    assert " x double>" in jit.optimized_text(text)
