"""The emitter, by what the code does: control flow, errors, memory, adjoint ops, compiled, run and compared. Scalars:
test_scalar_ops.py.
"""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from emission import LOOSE, Compiled, emit, parse

from ulam.emit import jit
from ulam.emit.errors import EmissionError
from ulam.emit.llvm_module import emit_module
from ulam.emit.llvm_text import EmitOptions
from ulam.runtime import c_library

COLLATZ = """
func.func @f(%start: i64) -> i64 attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %three = arith.constant 3 : i64
  %last, %steps = scf.while (%x = %start, %n = %zero) : (i64, i64) -> (i64, i64) {
    %go = arith.cmpi sgt, %x, %one : i64
    scf.condition(%go) %x, %n : i64, i64
  } do {
  ^bb0(%x: i64, %n: i64):
    %rest = arith.remsi %x, %two : i64
    %odd = arith.cmpi eq, %rest, %one : i64
    %next = scf.if %odd -> (i64) {
      %t = arith.muli %x, %three : i64
      %u = arith.addi %t, %one : i64
      scf.yield %u : i64
    } else {
      %h = arith.divsi %x, %two : i64
      scf.yield %h : i64
    }
    %m = arith.addi %n, %one : i64
    scf.yield %next, %m : i64, i64
  }
  func.return %steps : i64
}
"""


def test_while_and_if() -> None:
    assert Compiled(COLLATZ, ["i64"])(27) == 111
    assert Compiled(COLLATZ, ["i64"], pipeline=jit.ONCE)(1) == 0


NESTED = """
func.func @f(%n: i64, %m: i64) -> (i64, f64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %x0 = arith.constant 1.0 : f64
  %half = arith.constant 0.5 : f64
  %count, %x = scf.for %i = %zero to %n step %one iter_args(%c = %zero, %x = %x0) -> (i64, f64) : i64 {
    %d, %y = scf.for %j = %i to %m step %one iter_args(%d = %c, %y = %x) -> (i64, f64) : i64 {
      %p = arith.muli %i, %j : i64
      %e = arith.addi %d, %p : i64
      %z = arith.mulf %y, %half : f64
      %q = arith.addf %z, %x0 : f64
      scf.yield %e, %q : i64, f64
    }
    scf.yield %d, %y : i64, f64
  }
  func.return %count, %x : i64, f64
}
"""


@pytest.mark.parametrize(("n", "m"), [(0, 5), (4, 3), (7, 9), (3, 0)])
def test_nested_loops(n: int, m: int) -> None:
    count, x = 0, 1.0
    for i in range(n):
        for j in range(i, m):
            count, x = count + i * j, x * 0.5 + 1
    assert Compiled(NESTED, ["i64", "f64"])(n, m) == (count, x)


def test_carried_values_may_swap() -> None:
    function = Compiled(
        """func.func @f(%n: i64) -> (i64, i64) attributes {rt.entry = #rt.entry} {
          %zero = arith.constant 0 : i64
          %one = arith.constant 1 : i64
          %a, %b = scf.for %i = %zero to %n step %one iter_args(%x = %zero, %y = %one) -> (i64, i64) : i64 {
            scf.yield %y, %x : i64, i64
          }
          func.return %a, %b : i64, i64
        }""",
        ["i64", "i64"],
    )
    assert function(3) == (1, 0)
    assert function(4) == (0, 1)


CALLS = """
func.func @factorial(%n: i64) -> (i64, f64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %half = arith.constant 0.5 : f64
  %ok = arith.cmpi sge, %n, %zero : i64
  rt.check %ok site 4 status 1 with %n : i64
  %end = arith.cmpi eq, %n, %zero : i64
  %r, %x = scf.if %end -> (i64, f64) {
    scf.yield %one, %half : i64, f64
  } else {
    %m = arith.subi %n, %one : i64
    %s, %y = func.call @factorial(%m) : (i64) -> (i64, f64)
    %t = arith.muli %s, %n : i64
    %z = arith.addf %y, %half : f64
    scf.yield %t, %z : i64, f64
  }
  func.return %r, %x : i64, f64
}
func.func @f(%n: i64) -> (i64, f64) attributes {rt.entry = #rt.entry} {
  %r, %x = func.call @factorial(%n) : (i64) -> (i64, f64)
  func.return %r, %x : i64, f64
}
"""


def test_recursive_calls_with_several_results() -> None:
    assert Compiled(CALLS, ["i64", "f64"])(10) == (3628800, 5.5)


def test_an_error_passes_through_callers() -> None:
    function = Compiled(CALLS, ["i64", "f64"])
    status, _ = function.call(-3)
    assert status == 1
    assert function.context.contents.error_site == 4
    assert function.context.contents.error_values[0] == -3.0


def test_check_values_of_all_types() -> None:
    function = Compiled(
        """func.func @f(%x: f64, %i: i32, %l: i64, %t: i1) attributes {rt.entry = #rt.entry} {
          %never = arith.constant false
          rt.check %never site 9 with %x, %i, %l, %t : f64, i32, i64, i1
          func.return
        }"""
    )
    status, _ = function.call(1.5, ctypes.c_int32(-2), 3, ctypes.c_bool(True))
    assert status == 2
    assert function.context.contents.error_site == 9
    assert list(function.context.contents.error_values) == [1.5, -2.0, 3.0, 1.0]


def test_arena_memory_is_zeroed_released_and_grows() -> None:
    function = Compiled(
        """func.func @f(%n: i64, %rounds: i64) -> f64 attributes {rt.entry = #rt.entry} {
          %zero = arith.constant 0 : i64
          %one = arith.constant 1 : i64
          %x = arith.constant 1.5 : f64
          %z = arith.constant 0.0 : f64
          %total = scf.for %k = %zero to %rounds step %one iter_args(%t = %z) -> (f64) : i64 {
            %mark = rt.mark_arena
            %a = rt.alloc zero %n : !rt.buf<f64>
            %last = arith.subi %n, %one : i64
            %old = rt.load %a[%last] : f64
            rt.fill %a, %x, %n : f64
            %new = rt.load %a[%last] : f64
            rt.release %mark
            %b = rt.alloc zero %n : !rt.buf<f64>
            %clean = rt.load %b[%last] : f64
            rt.release %mark
            %s1 = arith.addf %old, %new : f64
            %s2 = arith.addf %s1, %clean : f64
            %s = arith.addf %t, %s2 : f64
            scf.yield %s : f64
          }
          func.return %total : f64
        }""",
        ["f64"],
    )
    start = function.context.contents.arena_cursor
    assert function(5, 3) == 4.5
    assert function.context.contents.arena_cursor == start
    assert function(1_000_000, 3) == 4.5  # larger than the first chunk


def test_copy_view_store_of_each_element_type() -> None:
    for t, kind, value in (("f64", np.float64, 2.5), ("i32", np.int32, -7), ("i64", np.int64, 2**40)):
        function = Compiled(
            f"""func.func @f(%a: !rt.buf<{t}>, %b: !rt.buf<{t}>, %n: i64) -> {t} attributes {{rt.entry = #rt.entry}} {{
              %two = arith.constant 2 : i64
              %one = arith.constant 1 : i64
              rt.copy %a to %b, %n : !rt.buf<{t}>
              %v = rt.view %b[%two] : !rt.buf<{t}>
              %x = rt.load %v[%one] : {t}
              rt.store %x, %b[%one] : {t}
              func.return %x : {t}
            }}""",
            [t],
        )
        a, b = np.array([0, 1, 2, value, 4], dtype=kind), np.zeros(5, dtype=kind)
        assert function(a, b, 5) == value
        assert list(b) == [0, value, 2, value, 4]


def test_bound_table() -> None:
    function = Compiled(
        """func.func @bind() attributes {rt.entry = #rt.entry} {
          %one = arith.constant 1 : i64
          %three = arith.constant 3 : i64
          %n = rt.bound 4 : i32
          %x = rt.bound 5 : f64
          %zero = arith.constant 0 : i32
          %t = arith.cmpi sgt, %n, %zero : i32
          rt.set_bound 1, %n : i32
          rt.set_bound 3, %t : i1
          %a = rt.alloc_bound %three : !rt.buf<f64>
          rt.set_bound 0, %a : !rt.buf<f64>
          %before = func.call @read(%one) : (i64) -> (f64)
          rt.store %x, %a[%one] : f64
          %after = func.call @read(%one) : (i64) -> (f64)
          rt.set_bound 2, %after : f64
          func.return
        }
        func.func @f(%i: i64) -> (i32, f64, i1, f64) attributes {rt.entry = #rt.entry} {
          %r = func.call @read(%i) : (i64) -> (f64)
          %n = rt.bound 1 : i32
          %x = rt.bound 2 : f64
          %t = rt.bound 3 : i1
          func.return %n, %x, %t, %r : i32, f64, i1, f64
        }
        func.func @read(%i: i64) -> f64 {
          %a = rt.bound 0 : !rt.buf<f64>
          %x = rt.load %a[%i] : f64
          func.return %x : f64
        }""",
        ["i32", "f64", "i1", "f64"],
    )
    library = c_library.library()
    memory = library.ulam_bound_memory_new()
    for n, x in ((-4, 2.5), (6, 3.5)):
        ctypes.c_int32.from_buffer(function.bound, 32).value = n
        ctypes.c_double.from_buffer(function.bound, 40).value = x
        bind = function.loaded.address("bind")
        assert library.ulam_run_bind(function.context, bind, ctypes.addressof(function.bound), memory) == 0
        assert function(1) == (n, x, n > 0, x)
    library.ulam_bound_memory_free(memory)


def test_accumulate_and_take() -> None:
    function = Compiled(
        """func.func @f(%a: !rt.buf<f64>, %index: !rt.buf<i64>, %n: i64, %x: f64) -> f64
          attributes {rt.entry = #rt.entry} {
          %zero = arith.constant 0 : i64
          %one = arith.constant 1 : i64
          scf.for %i = %zero to %n step %one : i64 {
            %j = rt.load %index[%i] : i64
            ad.accumulate %a[%j], %x
          }
          %r = ad.take %a[%one]
          func.return %r : f64
        }""",
        ["f64"],
        LOOSE,
    )
    a, index = np.zeros(3), np.array([1, 1, 0, 1, 2], dtype=np.int64)
    assert function(a, index, 5, 0.5) == 1.5
    assert list(a) == [0.5, 0.0, 0.5]


def test_values_kept_for_the_reverse_sweep() -> None:
    function = Compiled(
        """func.func @f(%n: i64, %limit: i64) -> i64 attributes {rt.entry = #rt.entry} {
          %zero = arith.constant 0 : i64
          %one = arith.constant 1 : i64
          %flags = rt.alloc %n : !rt.buf<i1>
          scf.for %i = %zero to %n step %one : i64 {
            %t = arith.cmpi slt, %i, %limit : i64
            ad.keep %flags[%i], %t : i1
          }
          %count = scf.for %i = %zero to %n step %one iter_args(%c = %zero) -> (i64) : i64 {
            %t = ad.kept %flags[%i] : i1
            %e = arith.extui %t : i1 to i64
            %d = arith.addi %c, %e : i64
            scf.yield %d : i64
          }
          func.return %count : i64
        }""",
        ["i64"],
    )
    assert function(100, 37) == 37


def test_records_come_back_in_reverse_order() -> None:
    function = Compiled(
        """func.func @f(%n: i64) -> f64 attributes {rt.entry = #rt.entry} {
          %zero = arith.constant 0 : i64
          %one = arith.constant 1 : i64
          %ten = arith.constant 10.0 : f64
          %start = arith.constant 0.0 : f64
          %null = rt.null : !rt.buf<f64>
          %top = scf.for %i = %zero to %n step %one iter_args(%below = %null) -> (!rt.buf<f64>) : i64 {
            %x = arith.sitofp %i : i64 to f64
            %even = arith.trunci %i : i64 to i1
            %record = ad.push %below, %x, %even : f64, i1
            scf.yield %record : !rt.buf<f64>
          }
          %rest, %digits = scf.while (%r = %top, %d = %start) : (!rt.buf<f64>, f64) -> (!rt.buf<f64>, f64) {
            %end = rt.is_null %r : !rt.buf<f64>
            %true = arith.constant true
            %go = arith.xori %end, %true : i1
            scf.condition(%go) %r, %d : !rt.buf<f64>, f64
          } do {
          ^bb0(%r: !rt.buf<f64>, %d: f64):
            %below, %x, %odd = ad.pop %r : !rt.buf<f64>, f64, i1
            %y = scf.if %odd -> (f64) {
              %z = arith.mulf %d, %ten : f64
              %s = arith.addf %z, %x : f64
              scf.yield %s : f64
            } else {
              scf.yield %d : f64
            }
            scf.yield %below, %y : !rt.buf<f64>, f64
          }
          func.return %digits : f64
        }""",
        ["f64"],
    )
    assert function(8) == 7531.0


def test_kernel_that_throws() -> None:
    function = Compiled(
        """func.func @f(%a: !rt.buf<f64>, %l: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
          rt.kernel cholesky_decompose(%a, %n, %l) throws site 6
            : (!rt.buf<f64>, i64, !rt.buf<f64>) -> ()
          func.return
        }"""
    )
    a, factor = np.array([[4.0, 2.0], [2.0, 5.0]]), np.zeros((2, 2))
    function(a, factor, 2)
    np.testing.assert_allclose(factor, [[2.0, 1.0], [0.0, 2.0]])  # column by column
    status, _ = function.call(-a, factor, 2)
    assert status == 1
    assert function.context.contents.error_site == 6


def test_text_constants() -> None:
    text = emit(
        """func.func @f() -> !rt.buf<i8> attributes {rt.entry = #rt.entry} {
          %s = rt.string "tau \\22=\\22 "
          %t = rt.string "tau \\22=\\22 "
          func.return %s : !rt.buf<i8>
        }"""
    )
    assert text.count('c"tau \\22=\\22 \\00"') == 1


@pytest.mark.parametrize("trips", [0, 1, 2])
def test_loops_of_constant_length(trips: int) -> None:
    function = Compiled(
        f"""func.func @f(%x: f64) -> (f64, i64) attributes {{rt.entry = #rt.entry}} {{
          %zero = arith.constant 0 : i64
          %one = arith.constant 1 : i64
          %k = arith.constant {trips} : i64
          %n = arith.addi %k, %one : i64
          %y, %j = scf.for %i = %one to %n step %one iter_args(%v = %x, %l = %zero) -> (f64, i64) : i64 {{
            %w = arith.addf %v, %v : f64
            scf.yield %w, %i : f64, i64
          }}
          %same = arith.cmpi eq, %k, %one : i64
          %z = scf.if %same -> (f64) {{
            %m = arith.negf %y : f64
            scf.yield %m : f64
          }} else {{
            scf.yield %y : f64
          }}
          func.return %z, %j : f64, i64
        }}""",
        ["f64", "i64"],
    )
    sign = -1 if trips == 1 else 1
    assert function(1.5) == (sign * 1.5 * 2**trips, trips)


@pytest.mark.parametrize("size", ["%n", "%four"])
def test_buffers_allocated_together_do_not_overlap(size: str) -> None:
    function = Compiled(
        f"""func.func @f(%n: i64, %x: f64) -> (f64, f64, f64) attributes {{rt.entry = #rt.entry}} {{
          %zero = arith.constant 0 : i64
          %three = arith.constant 3 : i64
          %four = arith.constant 4 : i64
          %y = arith.addf %x, %x : f64
          %a = rt.alloc {size} : !rt.buf<f64>
          rt.fill %a, %x, %four : f64
          %b = rt.alloc zero {size} : !rt.buf<f64>
          %c = rt.alloc {size} : !rt.buf<f64>
          rt.fill %c, %y, %four : f64
          %p = rt.load %a[%three] : f64
          %q = rt.load %b[%zero] : f64
          %r = rt.load %c[%zero] : f64
          func.return %p, %q, %r : f64, f64, f64
        }}""",
        ["f64", "f64", "f64"],
    )
    assert function(4, 1.5) == (1.5, 0.0, 3.0)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%r = rt.math bessel(%x) : (f64) -> f64", "'bessel' is not supported yet"),
        ("%r = rt.math exp(%x, %x) : (f64, f64) -> f64", "'exp' takes"),
        ("ad.target_add %x", "must be gone before emission"),
        ("%r = arith.floordivsi %n, %n : i64", "has no LLVM form"),
    ],
)
def test_what_cannot_be_emitted_is_named(body: str, message: str) -> None:
    module = parse(f"func.func @f(%x: f64, %n: i64) attributes {{rt.entry = #rt.entry}} {{\n{body}\nfunc.return\n}}")
    with pytest.raises(EmissionError, match=message):
        emit_module(module, EmitOptions(2))


def test_names_are_kept_and_unique() -> None:
    text = emit(
        """func.func @f(%mu: f64) -> f64 attributes {rt.entry = #rt.entry} {
          %sigma = arith.addf %mu, %mu : f64
          %t = arith.cmpf olt, %mu, %sigma : f64
          %r = scf.if %t -> (f64) {
            %sigma_1 = arith.addf %mu, %sigma : f64
            scf.yield %sigma_1 : f64
          } else {
            %then = arith.mulf %mu, %sigma : f64
            scf.yield %then : f64
          }
          func.return %r : f64
        }"""
    )
    assert "%sigma = fadd double %mu, %mu" in text
    jit.verify(text)
