"""What long modules have once: how memory is taken and how errors are noted, with what they do elsewhere. And results
of functions in one piece of memory, and how LLVM is asked to order instructions.
"""

from __future__ import annotations

import math
import struct
from dataclasses import replace

import llvmlite.binding as llvm
import pytest
from emission import Compiled, emit

from ulam.emit import jit
from ulam.emit.outlined_code import ALLOCATE, LONG_MODULE_OPS

ARITHMETIC = "\n".join(f"%e{n} = arith.addf %e{n - 1}, %x : f64" for n in range(1, LONG_MODULE_OPS))


def program(*, long: bool) -> str:
    """Two buffers, in the second of which stands x; %n may be too small, which is noticed in two places."""
    more = f"%e0 = arith.addf %x, %x : f64\n{ARITHMETIC}" if long else ""
    return f"""func.func @f(%n: i64, %x: f64) -> f64 attributes {{rt.entry = #rt.entry}} {{
      {more}
      %one = arith.constant 1 : i64
      %two = arith.constant 2 : i64
      %ok = arith.cmpi sge, %n, %one : i64
      rt.check %ok site 4 status 1 with %n, %x : i64, f64
      %a = rt.alloc zero %n : !rt.buf<f64>
      %more = arith.muli %n, %two : i64
      %fine = arith.cmpi sge, %more, %two : i64
      rt.check %fine site 4 status 1 with %n, %x : i64, f64
      %b = rt.alloc %n : !rt.buf<f64>
      rt.fill %b, %x, %n : f64
      %last = arith.subi %n, %one : i64
      %p = rt.load %a[%last] : f64
      %q = rt.load %b[%last] : f64
      %sum = arith.addf %p, %q : f64
      func.return %sum : f64
    }}"""


@pytest.mark.ordinary_runtime("asks where blocks of the arena are taken by code of the module")
@pytest.mark.parametrize("long", [False, True])
def test_long_modules_take_memory_and_note_errors_as_others_do(long: bool) -> None:
    function = Compiled(program(long=long), ["f64"])
    assert function(3, 0.5) == 0.5
    context = function.context.contents
    start = context.arena_cursor
    assert function(100, 2.0) == 2.0
    assert context.arena_cursor - start == 2 * 832  # whole blocks of 64 bytes
    assert function(1_000_000, 3.0) == 3.0  # more than a chunk
    assert function.call(0, 7.0)[0] == 1
    assert context.error_site == 4
    assert list(context.error_values)[:2] == [0.0, 7.0]


@pytest.mark.ordinary_runtime("asks where blocks of the arena are taken by code of the module")
def test_long_modules_have_both_once() -> None:
    text = emit(program(long=True))
    assert text.count("@ulam_arena_grow(ptr %context") == 1  # in the function that is called
    assert text.count(f"call ptr @{ALLOCATE}(") == 1  # for both buffers
    assert text.count("call i32 @ulam.fail.2(") == 1  # two checks that do the same
    short = emit(program(long=False))
    assert "ulam.allocate" not in short
    assert "ulam.fail" not in short


def test_functions_of_many_results_return_them_in_one_piece() -> None:
    many = 9
    sums = "\n".join(f"%s{n} = arith.addf %s{n - 1}, %x : f64" for n in range(1, many - 2))
    results = ", ".join(["%x", "%x", "%k", *(f"%s{n}" for n in range(many - 3))])
    types = ", ".join(["f64", "f64", "i64", *["f64"] * (many - 3)])
    text = f"""
    func.func @g(%x: f64, %k: i64) -> ({types}) {{
      %s0 = arith.addf %x, %x : f64
      {sums}
      func.return {results} : {types}
    }}
    func.func @f(%x: f64, %k: i64) -> ({types}) attributes {{rt.entry = #rt.entry}} {{
      %r:{many} = func.call @g(%x, %k) : (f64, i64) -> ({types})
      func.return {", ".join(f"%r#{n}" for n in range(many))} : {types}
    }}"""
    assert f"alloca [{many} x i64]" in emit(text)
    assert Compiled(text, types.split(", "))(1.5, -7) == (1.5, 1.5, -7, *(1.5 * n for n in range(2, many - 1)))


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The options that LLVM is given from now on."""
    found: list[str] = []
    real = llvm.set_option

    def noted(name: str, option: str) -> None:
        found.append(option)
        real(name, option)

    monkeypatch.setattr(llvm, "set_option", noted)
    return found


def test_long_modules_have_another_order_of_instructions(given: list[str]) -> None:
    filler = "\n".join(f"  %x{n} = add i64 %x{n - 1}, %x" for n in range(1, jit.LONG_MODULE))
    for lines, options in (("", []), (filler, ["-pre-RA-sched=list-burr", "-pre-RA-sched=default"])):
        given.clear()
        jit.compile_object(f"define i64 @f(i64 %x, i64 %x0) nounwind {{\n{lines}\n  ret i64 %x\n}}")
        assert [option for option in given if "sched" in option] == options


def test_very_long_modules_for_any_data_have_instructions_one_by_one(given: list[str]) -> None:
    """So has code that is generated without care, also behind them: LLVM's own default is not to be given back."""
    text = "define double @f(double %x, double %y) nounwind { \n %z = fadd double %x, %y \n ret double %z \n}"
    on_and_off = ["-fast-isel=true", "-fast-isel=false"]
    quick, plain = replace(jit.LARGE, quick_from=1), replace(jit.ONCE, speed=0)
    for pipeline, options in ((quick, on_and_off), (jit.LARGE, []), (plain, on_and_off), (jit.HOT, [])):
        given.clear()
        jit.compile_object(text, pipeline)
        assert [option for option in given if "isel" in option] == options


@pytest.mark.parametrize("compares", [True, False])
def test_blocks_with_many_comparisons_have_instructions_one_by_one(given: list[str], compares: bool) -> None:
    """Whose order would take seconds; they are counted behind LLVM's passes, which put blocks together."""
    step = """  %c{n} = fcmp {kind} double %x{m}, %y
  %s{n} = select i1 %c{n}, double %x{m}, double %y
  %x{n} = fmul double %s{n}, %x0
"""
    chain = "".join(step.format(n=n, m=n - 1, kind="ogt" if compares else "true") for n in range(1, 400))
    jit.compile_object(f"define double @f(double %x0, double %y) nounwind {{\n{chain}  ret double %x399\n}}")
    assert [option for option in given if "isel" in option] == ["-fast-isel=true", "-fast-isel=false"] * compares


def test_what_is_not_optimised_is_not_for_the_sake_of_functions_that_long_modules_have() -> None:
    text = emit(program(long=True).replace("func.func @f(", "func.func @bind("))
    assert ALLOCATE in text
    assert jit._in_proportion(text, jit.ONCE) == jit.VAST
    assert jit._in_proportion(emit(program(long=True)), jit.ONCE) == jit.ONCE


NUMBERS = [0.1, -0.0, 3.0, 1e-300, -1.5e300, math.inf, -math.inf, math.nan, 5e-324]


def stores_of_numbers(*, long: bool) -> str:
    """Writes `NUMBERS` to memory; the element at %n is the result."""
    constants = "\n".join(
        f"%c{k} = arith.constant {'0x' + struct.pack('>d', value).hex()} : f64\n%i{k} = arith.constant {k} : i64\n"
        f"rt.store %c{k}, %b[%i{k}] : f64"
        for k, value in enumerate(NUMBERS)
    )
    more = f"%e0 = arith.addf %x, %x : f64\n{ARITHMETIC}" if long else ""
    return f"""func.func @f(%n: i64, %x: f64) -> f64 attributes {{rt.entry = #rt.entry}} {{
      {more}
      %size = arith.constant {len(NUMBERS)} : i64
      %b = rt.alloc %size : !rt.buf<f64>
      {constants}
      %found = rt.load %b[%n] : f64
      func.return %found : f64
    }}"""


@pytest.mark.parametrize("long", [False, True])
def test_long_modules_store_numbers_without_a_pool_of_them(long: bool) -> None:
    """LLVM looks through the pool of a function for each real that is in it: in square time for long data."""
    function = Compiled(stores_of_numbers(long=long), ["f64"])
    found = [function(k, 0.0) for k in range(len(NUMBERS))]
    assert [struct.pack("d", value) for value in found] == [struct.pack("d", value) for value in NUMBERS]
    assert ("store double -0.0, " in emit(stores_of_numbers(long=long))) is not long
