"""Scalar ops as the emitter writes them: arithmetic, comparisons, conversions, constants, functions, rounding."""

from __future__ import annotations

import ctypes
import math
import re

import numpy as np
import pytest
from emission import LOOSE, STRICT, Compiled, emit

from ulam.emit import jit
from ulam.emit.primitives import PRIMITIVES

INT_MIN = -(2**31)


def binary(op: str, operands: str, result: str) -> str:
    return f"""func.func @f(%a: {operands}, %b: {operands}) -> {result} attributes {{rt.entry = #rt.entry}} {{
      %r = {op} %a, %b : {operands}
      func.return %r : {result}
    }}"""


def unary(op: str, operand: str, result: str) -> str:
    return f"""func.func @f(%a: {operand}) -> {result} attributes {{rt.entry = #rt.entry}} {{
      %r = {op} %a : {operand} to {result}
      func.return %r : {result}
    }}"""


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("addi", 2**31 - 1, 1, INT_MIN),
        ("subi", INT_MIN, 1, 2**31 - 1),
        ("muli", 2**30, 4, 0),
        ("divsi", -7, 2, -3),
        ("divsi", INT_MIN, -1, INT_MIN),
        ("divsi", 7, -1, -7),
        ("remsi", -7, 2, -1),
        ("remsi", INT_MIN, -1, 0),
        ("andi", 12, 10, 8),
        ("ori", 12, 10, 14),
        ("xori", 12, 10, 6),
        ("shli", 3, 4, 48),
        ("shrsi", -16, 2, -4),
        ("minsi", -3, 2, -3),
        ("maxsi", -3, 2, 2),
    ],
)
def test_integer_arithmetic(op: str, a: int, b: int, expected: int) -> None:
    function = Compiled(binary(f"arith.{op}", "i32", "i32"), ["i32"])
    assert function(ctypes.c_int32(a), ctypes.c_int32(b)) == expected


@pytest.mark.parametrize("divisor", [-1, 3])
def test_division_by_a_constant(divisor: int) -> None:
    function = Compiled(
        f"""func.func @f(%a: i32) -> i32 attributes {{rt.entry = #rt.entry}} {{
          %b = arith.constant {divisor} : i32
          %r = arith.divsi %a, %b : i32
          func.return %r : i32
        }}""",
        ["i32"],
    )
    assert function(ctypes.c_int32(7)) == (-7 if divisor == -1 else 2)
    assert function(ctypes.c_int32(INT_MIN)) == (INT_MIN if divisor == -1 else -715827882)


@pytest.mark.parametrize(
    ("op", "expected"),
    [("addf", 3.75), ("subf", -0.75), ("mulf", 3.375), ("divf", 1.5 / 2.25), ("minnumf", 1.5), ("maxnumf", 2.25)],
)
@pytest.mark.parametrize("level", [STRICT, LOOSE])
def test_real_arithmetic(op: str, expected: float, level: int) -> None:
    assert Compiled(binary(f"arith.{op}", "f64", "f64"), ["f64"], level)(1.5, 2.25) == expected


@pytest.mark.parametrize(
    ("predicate", "a", "b", "expected"),
    [
        ("olt", 1.0, 2.0, True),
        ("oeq", math.nan, math.nan, False),
        ("une", math.nan, 1.0, True),
        ("uno", math.nan, 1.0, True),
    ],
)
def test_real_comparison(predicate: str, a: float, b: float, expected: bool) -> None:
    assert Compiled(binary(f"arith.cmpf {predicate},", "f64", "i1"), ["i1"])(a, b) is expected


def test_integer_comparison() -> None:
    function = Compiled(binary("arith.cmpi slt,", "i32", "i1"), ["i1"])
    assert function(ctypes.c_int32(-1), ctypes.c_int32(0)) is True
    function = Compiled(binary("arith.cmpi ult,", "i32", "i1"), ["i1"])
    assert function(ctypes.c_int32(-1), ctypes.c_int32(0)) is False


@pytest.mark.parametrize(
    ("op", "source", "target", "value", "expected"),
    [
        ("extsi", "i32", "i64", -5, -5),
        ("extui", "i1", "i32", True, 1),
        ("trunci", "i64", "i32", 2**32 + 7, 7),
        ("sitofp", "i32", "f64", -3, -3.0),
        ("fptosi", "f64", "i32", -3.9, -3),
        ("fptosi", "f64", "i32", 1e300, 2**31 - 1),
        ("fptosi", "f64", "i32", math.nan, 0),
        ("bitcast", "f64", "i64", 1.0, 0x3FF0000000000000),
    ],
)
def test_conversions(op: str, source: str, target: str, value: float, expected: float) -> None:
    kinds = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "i1": ctypes.c_bool, "f64": ctypes.c_double}
    assert Compiled(unary(f"arith.{op}", source, target), [target])(kinds[source](value)) == expected


@pytest.mark.parametrize("value", [0.1, -0.0, 1e-310, math.inf, -math.inf, math.nan, math.pi, 1e22, 123.5, -2.0])
def test_real_constants_keep_their_bits(value: float) -> None:
    text = f"0x{int(np.float64(value).view(np.uint64)):016X}"
    function = Compiled(
        f"""func.func @f() -> f64 attributes {{rt.entry = #rt.entry}} {{
          %r = arith.constant {text} : f64
          func.return %r : f64
        }}""",
        ["f64"],
    )
    assert np.float64(function()).tobytes() == np.float64(value).tobytes()


def test_math_of_other_libraries() -> None:
    text = """func.func @f(%x: f64) -> f64 attributes {{rt.entry = #rt.entry}} {{
      %r = rt.math "{0}"(%x) : (f64) -> f64
      func.return %r : f64
    }}"""
    for name, x, expected in (("lgamma", 4.5, math.lgamma(4.5)), ("sin", 2.0, math.sin(2.0)), ("inv_sqrt", 4.0, 0.5)):
        assert Compiled(text.format(name), ["f64"])(x) == pytest.approx(expected, rel=1e-15)
    assert Compiled(text.format("digamma"), ["f64"])(1.0) == pytest.approx(-0.5772156649015329, rel=1e-14)
    assert Compiled(text.format("step"), ["f64"])(-1.0) == 0.0
    assert Compiled(text.format("step"), ["f64"])(0.0) == 1.0


@pytest.mark.parametrize("y", [2.0, 3.0, -1.0, 0.5, 1.7, 0.0])
@pytest.mark.parametrize("x", [2.5, -0.0, 0.0, math.inf, -math.inf, math.nan, 1e-200, 1.0])
def test_power_is_the_same_for_constant_and_variable_exponents(x: float, y: float) -> None:
    variable = Compiled(
        """func.func @f(%x: f64, %y: f64) -> f64 attributes {rt.entry = #rt.entry} {
          %r = rt.math pow(%x, %y) : (f64, f64) -> f64
          func.return %r : f64
        }""",
        ["f64"],
    )
    constant = Compiled(
        f"""func.func @f(%x: f64) -> f64 attributes {{rt.entry = #rt.entry}} {{
          %y = arith.constant {y!r} : f64
          %r = rt.math pow(%x, %y) : (f64, f64) -> f64
          func.return %r : f64
        }}""",
        ["f64"],
    )
    assert np.float64(variable(x, y)).tobytes() == np.float64(constant(x)).tobytes()
    expected = math.copysign(math.inf, x) if x == 0 and y < 0 else math.pow(x, y)
    np.testing.assert_allclose(variable(x, y), expected, rtol=5e-16)


ROUNDING = """
func.func @f(%x: !rt.buf<f64>, %y: !rt.buf<f64>, %n: i64) -> f64 attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %z = arith.constant 0.0 : f64
  %total = scf.for %i = %zero to %n step %one iter_args(%sum = %z) -> (f64) : i64 {
    %a = rt.load %x[%i] : f64
    %b = rt.load %y[%i] : f64
    %p = arith.mulf %a, %b : f64
    %e = rt.math exp(%p) : (f64) -> f64
    %next = arith.addf %sum, %e : f64
    scf.yield %next : f64
  }
  func.return %total : f64
}
"""


def test_strict_levels_round_every_operation() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 1001))
    exp = Compiled(
        """func.func @f(%x: f64) -> f64 attributes {rt.entry = #rt.entry} {
          %r = rt.math exp(%x) : (f64) -> f64
          func.return %r : f64
        }""",
        ["f64"],
    )
    expected = 0.0
    for a, b in zip(x, y, strict=True):
        expected += exp(float(a * b))
    results = {Compiled(ROUNDING, ["f64"], level)(x, y, 1001) for level in (0, 1, 2)}
    assert results == {expected}
    assert Compiled(ROUNDING, ["f64"], LOOSE)(x, y, 1001) == pytest.approx(expected, rel=1e-13)


@pytest.mark.skipif("+avx2" not in jit.host().features, reason="narrow registers")
def test_strict_sums_are_widened_all_but_the_additions() -> None:
    optimized = jit.optimized_text(emit(ROUNDING, STRICT))
    assert "x double> @llvm.fma" in optimized
    assert "call double @llvm.vector.reduce.fadd" in optimized
    assert "reassoc" not in optimized


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("addi", 2**31 - 1, 1, INT_MIN),
        ("subi", INT_MIN, 1, 2**31 - 1),
        ("muli", 65536, 65536, 0),
        ("minsi", -3, 2, -3),
        ("maxsi", -3, 2, 2),
        ("addi", 5, 0, 5),
    ],
)
def test_constant_integers_are_computed_with_wrapping(op: str, a: int, b: int, expected: int) -> None:
    text = f"""func.func @f() -> i32 attributes {{rt.entry = #rt.entry}} {{
      %a = arith.constant {a} : i32
      %b = arith.constant {b} : i32
      %r = arith.{op} %a, %b : i32
      func.return %r : i32
    }}"""
    assert f"store i32 {expected}, ptr %out.0" in emit(text)
    assert Compiled(text, ["i32"])() == expected


@pytest.mark.parametrize("level", [STRICT, LOOSE])
@pytest.mark.parametrize("name", PRIMITIVES)
def test_all_that_a_primitive_calls_is_declared(name: str, level: int) -> None:
    arguments = [f"%x{k}" for k in range(PRIMITIVES[name].arity)]
    text = emit(
        f"""func.func @f({", ".join(f"{a}: f64" for a in arguments)}) -> f64 attributes {{rt.entry = #rt.entry}} {{
          %r = rt.math "{name}"({", ".join(arguments)}) : ({", ".join("f64" for _ in arguments)}) -> f64
          func.return %r : f64
        }}""",
        level,
    )
    known = set(re.findall(r"^(?:declare|define)[^@]*@([\w.]+)\(", text, re.MULTILINE))
    assert set(re.findall(r"call [^@]*@([\w.]+)\(", text)) <= known
