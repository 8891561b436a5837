"""exp, log and relatives: accuracy against 64-bit-mantissa references, special values, same bits in any position."""

from __future__ import annotations

import re
from collections.abc import Callable

import emission
import numpy as np
import pytest

from ulam.emit import jit
from ulam.emit.vector_math import ARITY, FUNCTIONS, definition

L = np.longdouble
INF, NAN = np.inf, np.nan

pytestmark = pytest.mark.skipif(np.finfo(L).nmant < 63, reason="needs an extended long double as reference")


def _log1p_exp(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _log1m_exp(x: np.ndarray) -> np.ndarray:
    value = np.where(x > -0.6931, np.log(-np.expm1(x)), np.log1p(-np.exp(np.minimum(x, 0))))
    return np.where(x > 0, L(NAN), value)


def _inv_logit(x: np.ndarray) -> np.ndarray:
    power = np.exp(-np.abs(x))
    return np.where(x < 0, power, 1) / (1 + power)


REFERENCE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp,
    "exp_minus_magnitude": lambda x: np.exp(-np.abs(x)),
    "log1p_exp_minus_magnitude": lambda x: np.log1p(np.exp(-np.abs(x))),
    "log": np.log,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "log1m": lambda x: np.log1p(-x),
    "inv_logit": _inv_logit,
    "log1p_exp": _log1p_exp,
    "log_inv_logit": lambda x: -_log1p_exp(-x),
    "log1m_inv_logit": lambda x: -_log1p_exp(x),
    "log1m_exp": _log1m_exp,
    "tanh": np.tanh,
}

# largest error allowed, in units in the last place
LIMITS = {
    "exp": 0.8, "exp_minus_magnitude": 0.8, "log": 0.85, "log1p": 0.9, "log1m": 0.9, "expm1": 1.2, "inv_logit": 1.5,
    "tanh": 1.6,
}  # fmt: skip
DEFAULT_LIMIT = 1.8
# Without a fused multiply-add, products round before they are added: half a unit in the last sum, a quarter before it.
UNFUSED = 0.75


def limit(name: str) -> float:
    return LIMITS.get(name, DEFAULT_LIMIT) + (0.0 if jit.host().fused else UNFUSED)


TINY = np.finfo(float).smallest_subnormal
SPECIAL = np.array([
    0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, TINY, -TINY, 2.0**-1022, -(2.0**-1022),
    np.finfo(float).max, np.finfo(float).min, 709.782712893384, 709.7827128933841, -745.1332191019411,
    -745.1332191019412, -708.4, 0.5, 2.0, -37.0, -40.0, 37.0, np.log(2), -np.log(2), 1e-17, -1e-17, 2.0**-53, 2.0**-54,
    -(2.0**-54), 2.0**53, 1e300,
])  # fmt: skip


def arguments() -> np.ndarray:
    """Wide, around 0, around ±1, all magnitudes, and the special ones with their neighbours."""
    rng = np.random.default_rng(20240613)
    n = 40_000
    magnitudes = np.exp(rng.uniform(-745, 709, n))
    near_one = np.concatenate([1 + 2.0**-k * rng.uniform(-1, 1, 300) for k in range(1, 53)])
    with np.errstate(over="ignore"):
        neighbours = [np.nextafter(SPECIAL, INF), np.nextafter(SPECIAL, -INF)]
    return np.concatenate([
        rng.normal(size=n) * 3, rng.uniform(-746, 711, n), magnitudes, -magnitudes, rng.uniform(-1, 1, n),
        1 + rng.normal(size=n) / 10, near_one, near_one - 1, -near_one, SPECIAL, *neighbours,
    ])  # fmt: skip


def errors_in_ulp(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Distance to the exact value in units of the last place of its double; infinite where the kind is another."""
    rounded = exact.astype(float)
    unit = np.spacing(np.abs(np.where(np.isfinite(rounded), rounded, 1.0))).astype(L)
    error = np.abs(got.astype(L) - exact) / unit
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    plain = np.isfinite(rounded) & np.isfinite(got)
    return np.where(same & ~plain, 0, np.where(plain, error, INF)).astype(float)


def test_every_function_has_a_reference() -> None:
    assert set(REFERENCE) == {name for name in FUNCTIONS if ARITY.get(name, 1) == 1}


@pytest.mark.parametrize("name", REFERENCE)
def test_accuracy(name: str) -> None:
    x = arguments()
    with np.errstate(all="ignore"):
        error = errors_in_ulp(emission.elementwise(name)(x), REFERENCE[name](x.astype(L)))
    worst = int(np.argmax(error))
    assert error[worst] <= limit(name), f"{name}({x[worst]!r}): {error[worst]} ulp"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_alone_and_in_a_vector_the_bits_are_the_same(name: str) -> None:
    rng = np.random.default_rng(7)
    arity = ARITY.get(name, 1)
    xs = [np.concatenate([SPECIAL, rng.normal(size=301) * 30]) for _ in range(arity)]
    function = emission.elementwise(name, arity)
    together = function(*xs)
    alone = np.concatenate([function(*(x[i : i + 1] for x in xs)) for i in range(len(xs[0]))])
    assert together.tobytes() == alone.tobytes()


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("exp", [0.0, -0.0, INF, -INF, NAN, 710.0, -746.0], [1, 1, INF, 0, NAN, INF, 0]),
        ("log", [1.0, 0.0, -0.0, INF, -1.0, -INF, NAN], [0, -INF, -INF, INF, NAN, NAN, NAN]),
        ("log1p", [0.0, -1.0, INF, -2.0, -INF, NAN], [0, -INF, INF, NAN, NAN, NAN]),
        ("expm1", [0.0, INF, -INF, NAN, TINY, 710.0], [0, INF, -1, NAN, TINY, INF]),
        ("inv_logit", [0.0, INF, -INF, NAN], [0.5, 1, 0, NAN]),
        ("log1p_exp", [INF, -INF, NAN, 1e300], [INF, 0, NAN, 1e300]),
        ("log1m_exp", [0.0, 1.0, NAN, -INF, -TINY], [-INF, NAN, NAN, 0, np.log(TINY)]),
        ("log_inv_logit", [INF, -INF, NAN], [0, -INF, NAN]),
        ("tanh", [0.0, INF, -INF, NAN, TINY], [0, 1, -1, NAN, TINY]),
    ],
)
def test_special_values(name: str, x: list[float], expected: list[float]) -> None:
    np.testing.assert_array_equal(emission.elementwise(name)(np.array(x)), np.array(expected, dtype=float))


@pytest.mark.parametrize("name", ["log1p", "expm1", "tanh"])
def test_the_sign_of_zero_stays(name: str) -> None:
    result = emission.elementwise(name)(np.array([0.0, -0.0]))
    assert list(np.signbit(result)) == [False, True]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (0.0, 0.0, np.log(2)), (INF, INF, INF), (-INF, -INF, -INF), (-INF, 3.0, 3.0), (3.0, -INF, 3.0),
        (INF, -INF, INF), (NAN, 1.0, NAN), (1.0, NAN, NAN), (1e300, 1.0, 1e300), (INF, NAN, NAN),
    ],
)  # fmt: skip
def test_log_sum_exp_special_values(a: float, b: float, expected: float) -> None:
    result = emission.elementwise("log_sum_exp", 2)(np.array([a]), np.array([b]))
    np.testing.assert_allclose(result, [expected], rtol=2.0**-52)


def test_log_sum_exp_accuracy() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 20_000)) * 20
    got = emission.elementwise("log_sum_exp", 2)(a, b)
    exact = np.logaddexp(a.astype(L), b.astype(L))
    assert np.max(np.abs(got - exact) / np.maximum(np.abs(exact), np.maximum(abs(a), abs(b)))) < 3e-16


def test_log_diff_exp_special_values() -> None:
    a = np.array([-INF, 2.0, 2.0, INF, 3.0, 1.0, NAN])
    b = np.array([-INF, 2.0, 3.0, INF, -INF, 0.0, 0.0])
    got = emission.elementwise("log_diff_exp", 2)(a, b)
    np.testing.assert_allclose(got, [-INF, -INF, NAN, NAN, 3.0, np.log(np.e - 1), NAN], rtol=1e-15)


@pytest.mark.parametrize("name", REFERENCE)
@pytest.mark.skipif(not jit.host().triple.startswith("x86_64"), reason="asks for a processor without the instruction")
def test_without_fused_multiply_add(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = jit.Host(jit.host().triple, "x86-64", "")
    monkeypatch.setattr(jit, "host", lambda: plain)
    assert "llvm.fma" not in definition(name, fused=False)[0]
    x = arguments()
    with np.errstate(all="ignore"):
        error = errors_in_ulp(emission.elementwise(name)(x), REFERENCE[name](x.astype(L)))
    worst = int(np.argmax(error))
    assert error[worst] <= 3, f"{name}({x[worst]!r}): {error[worst]} ulp"


def test_definitions_are_free_of_branches_and_calls() -> None:
    for name in FUNCTIONS:
        text, _ = definition(name, fused=True)
        assert " br " not in text and "phi" not in text
        assert set(re.findall(r"call double @([\w.]+)", text)) <= {"llvm.fma.f64", "llvm.fabs.f64", "llvm.copysign.f64"}


LOOP = """
func.func @f(%y: !rt.buf<f64>, %n: i64) -> f64 attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %z = arith.constant 0.0 : f64
  %total = scf.for %i = %zero to %n step %one iter_args(%sum = %z) -> (f64) : i64 {
    %v = rt.load %y[%i] : f64
    %e = rt.math exp(%v) : (f64) -> f64
    %l = rt.math log1p(%e) : (f64) -> f64
    %next = arith.addf %sum, %l fastmath<reassoc> : f64
    scf.yield %next : f64
  }
  func.return %total : f64
}
"""


@pytest.mark.skipif("+avx2" not in jit.host().features, reason="looks for AVX registers")
def test_a_loop_over_exp_and_log1p_is_widened() -> None:
    text = emission.emit(LOOP, emission.LOOSE)
    assembly = jit.compile_assembly(text)
    assert re.search(r"vdivpd\s.*%[yz]mm", assembly), "the division of log1p is not a vector division"
    assert "call" not in assembly.replace("callq", "call").split("f:")[1].split("ret")[0]


def test_a_widened_sum_is_right() -> None:
    y = np.random.default_rng(5).normal(size=1003) * 4
    total = emission.Compiled(LOOP, ["f64"], emission.LOOSE)(y, len(y))
    assert total == pytest.approx(float(np.sum(np.logaddexp(0, y))), rel=1e-14)
