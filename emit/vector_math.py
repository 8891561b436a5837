"""exp, log and their relatives as branch-free LLVM IR, which loops widen: scalar and vector forms give the same bits.

Each function is exact at 0, infinities and NaN, gives subnormal results, and is within 2 units in the last place
(measured in tests/library/test_vector_math.py, most stay below 1), 2.5 where there is no fused multiply-add.
Special cases are selects, never branches.

Method. exp: x = n log 2 + r with |r| <= log(2)/2, a polynomial in r, then scaling by 2^n in two exact steps, so that
results round once where they are subnormal. log: x = 2^k m with m in [sqrt(1/2), sqrt(2)), s = (m-1)/(m+1),
log m = 2 atanh(s) as a polynomial in s^2. The polynomials are Chebyshev fits in 60 digits; log 2 is split into a head
of 42 bits, whose products with exponents are exact, and a tail.
"""

from __future__ import annotations

from collections.abc import Callable

from ulam.emit.instruction_builder import INFINITY, NAN, InstructionBuilder, Value

LOG2_E = 1.4426950408889634
LOG_2 = 0.6931471805599453
LOG_2_HEAD = float.fromhex("0x1.62e42fefa3800p-1")
LOG_2_TAIL = float.fromhex("0x1.ef35793c76730p-45")

# Adding 1.5 * 2^52 leaves a double's nearest integer in its lowest bits.
ROUNDING = 1.5 * 2.0**52
ROUNDING_BITS = 0x4338000000000000
MANTISSA = (1 << 52) - 1
ONE_BITS = 0x3FF0000000000000
SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
EXPONENT_BIAS = 1023
TWO_TO_52_BITS = 0x4330000000000000
SMALLEST_NORMAL = 2.0**-1022

# (exp(r) - 1 - r) / r^2 on |r| <= log(2)/2: relative error of exp below 2^-61
EXP_COEFFICIENTS = (
    0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326141, 0.0013888888888883752,
    0.00019841269874800493, 2.4801587325533363e-05, 2.7557255425746435e-06, 2.7557273661348637e-07,
    2.5105206373957107e-08, 2.0914679376584005e-09,
)  # fmt: skip

# (2 atanh(s) / s - 2) / s^2 in s^2, for s^2 <= ((sqrt(2) - 1) / (sqrt(2) + 1))^2: relative error below 2^-57
LOG_COEFFICIENTS = (
    0.666666666666667, 0.39999999999899505, 0.28571428625975487, 0.2222221113479508, 0.18182889125261725,
    0.15331721600555942, 0.1461644968504464,
)  # fmt: skip

# the same for s^2 <= 0.2^2: relative error below 2^-60
LOG1P_COEFFICIENTS = (
    0.6666666666666666, 0.400000000000078, 0.2857142856733919, 0.22222223037807243, 0.18181738454723026,
    0.15388834677801927, 0.13210360485132383, 0.13604015707125902,
)  # fmt: skip


def _reduce(f: InstructionBuilder, x: Value) -> tuple[Value, Value, Value]:
    """x = n log 2 + r: the bits of n + ROUNDING, n, and r before its tail is taken off."""
    shifted = f.fma(x, LOG2_E, ROUNDING)
    n = shifted - ROUNDING
    return f.bits(shifted), n, f.fma(n, -LOG_2_HEAD, x)


def _exp_of(f: InstructionBuilder, x: Value) -> Value:
    """exp of a number in [-746, 710], or NaN."""
    bits, n, head = _reduce(f, x)
    r = f.fma(n, -LOG_2_TAIL, head)
    # 1 + r with what its rounding loses
    most = 1.0 + head
    rest = f.fma(n, -LOG_2_TAIL, head - (most - 1.0))
    one_plus = most + f.fma(r * r, f.polynomial(r, EXP_COEFFICIENTS), rest)
    # 2^n = 2^floor(n/2) * 2^(n - floor(n/2)), either a normal number
    both = bits - (ROUNDING_BITS - 2 * EXPONENT_BIAS)
    first = both >> 1
    second = both - first
    return (one_plus * f.real(first << 52)) * f.real(second << 52)


def exp(f: InstructionBuilder, x: Value) -> Value:
    """exp(x)."""
    return _exp_of(f, f.at_most(f.at_least(x, -746.0), 710.0))


def _exp_of_minus_absolute(f: InstructionBuilder, x: Value) -> Value:
    return _exp_of(f, f.at_least(-f.absolute(x), -746.0))


def exp_minus_magnitude(f: InstructionBuilder, x: Value) -> Value:
    """exp(-|x|): as n <= 0, 2^(n + 60) is one normal number, and what is subnormal rounds when 2^60 is taken off."""
    bits, n, head = _reduce(f, f.at_least(-f.absolute(x), -746.0))
    r = f.fma(n, -LOG_2_TAIL, head)
    most = 1.0 + head
    rest = f.fma(n, -LOG_2_TAIL, head - (most - 1.0))
    one_plus = most + f.fma(r * r, f.polynomial(r, EXP_COEFFICIENTS), rest)
    return (one_plus * f.real((bits - (ROUNDING_BITS - EXPONENT_BIAS - 60)) << 52)) * 2.0**-60


def log1p_exp_minus_magnitude(f: InstructionBuilder, x: Value) -> Value:
    """log(1 + exp(-|x|))."""
    return _log_of_one_plus_fraction(f, exp_minus_magnitude(f, x))


def expm1(f: InstructionBuilder, x: Value) -> Value:
    """exp(x) - 1, as 2 (2^(n-1) (r + e) + (2^(n-1) - 1/2)): half of it, so that 2^1024 does not occur."""
    bits, n, head = _reduce(f, f.at_most(f.at_least(x, -40.0), 710.0))
    tail = n * LOG_2_TAIL
    r = head - tail
    rest = (head - r) - tail
    e = f.fma(r * r, f.polynomial(r, EXP_COEFFICIENTS), f.fma(rest, r, rest))
    half_power = f.real((bits - (ROUNDING_BITS - EXPONENT_BIAS + 1)) << 52)
    constant, linear = half_power - 0.5, half_power * r
    total = constant + linear
    lost = linear - (total - constant)
    result = 2.0 * (total + f.fma(half_power, e, lost))
    return f.select(f.absolute(x) < 2.0**-54, x, result)


def _split(f: InstructionBuilder, u: Value) -> tuple[Value, Value]:
    """u = 2^k m with m in [sqrt(1/2), sqrt(2)): the biased k (an integer) and m."""
    shifted = f.bits(u) + (ONE_BITS - SQRT_HALF_BITS)
    return shifted >> 52, f.real((shifted & MANTISSA) + SQRT_HALF_BITS)


def _log_of_parts(f: InstructionBuilder, k: Value, g: Value, tail: Value) -> Value:
    """k log 2 + log(1 + g) + tail, for 1 + g in [sqrt(1/2), sqrt(2)) and a tail of some units in the last place."""
    s = g / (2.0 + g)
    z = s * s
    series = z * f.polynomial(z, LOG_COEFFICIENTS)
    half = 0.5 * (g * g)
    low = f.fma(s, half + series, f.fma(k, LOG_2_TAIL, tail))
    return f.fma(k, LOG_2_HEAD, g - (half - low))


def log(f: InstructionBuilder, x: Value) -> Value:
    """log(x)."""
    subnormal = x < SMALLEST_NORMAL
    biased, m = _split(f, f.select(subnormal, x * 2.0**54, x))
    bias = f.select(subnormal, 2.0**52 + EXPONENT_BIAS + 54, 2.0**52 + EXPONENT_BIAS)
    k = f.real(biased | TWO_TO_52_BITS) - bias
    g = m - 1.0
    s = g / (2.0 + g)
    z = s * s
    series = z * f.polynomial(z, LOG_COEFFICIENTS)
    half = 0.5 * (g * g)
    low = f.fma(s, half + series, k * LOG_2_TAIL)
    result = f.fma(k, LOG_2_HEAD, g - (half - low))
    special = f.select(x.equals(0.0), -INFINITY, f.select(x < 0.0, NAN, x))
    return f.select((x > 0.0) & (x < INFINITY), result, special)


def _log_of_sum(f: InstructionBuilder, u: Value, rest: Value, exact: Value) -> Value:
    """log(u + rest) for a normal u > 0 and a rest below its last place; `exact` is u + rest - 1 where u is near 1."""
    biased, m = _split(f, u)
    k = f.real(biased | TWO_TO_52_BITS) - (2.0**52 + EXPONENT_BIAS)
    near = biased.equals(EXPONENT_BIAS)
    g = f.select(near, exact, m - 1.0)
    # rest / u to the few digits that matter, as (2 rest / 2^k) / (2 m): 2^(1-k) is representable, or 0 where it may be
    scaled = rest * f.real((2 * EXPONENT_BIAS + 1 - biased) << 52)
    tail = f.select(near, 0.0, scaled * f.fma(0.5 * g, g - 1.0, 0.5))
    return _log_of_parts(f, k, g, tail)


def _log_of_one_plus(f: InstructionBuilder, x: Value) -> Value:
    """log1p for a finite x > -1; NaN and others give anything."""
    u = 1.0 + x
    most = u - 1.0
    return _log_of_sum(f, u, (x - most) + (1.0 - (u - most)), x)


def _log_of_one_plus_fraction(f: InstructionBuilder, z: Value) -> Value:
    """log1p on [0, 1], without taking numbers apart: 1 + z, or where z > 1/2 twice (1 + z) / 2."""
    upper = z > 0.5
    g = f.select(upper, f.fma(z, 0.5, -0.5), z)
    s = g / (2.0 + g)
    square = s * s
    series = square * f.polynomial(square, LOG1P_COEFFICIENTS)
    half = 0.5 * (g * g)
    low = f.fma(s, half + series, f.select(upper, LOG_2_TAIL, 0.0))
    return f.select(upper, LOG_2_HEAD, 0.0) + (g - (half - low))


def log1p(f: InstructionBuilder, x: Value) -> Value:
    """log(1 + x)."""
    special = f.select(x.equals(-1.0), -INFINITY, f.select(x < -1.0, NAN, x))
    regular = (x > -1.0) & (x < INFINITY)
    # -0 stays -0
    result = f.select(x.equals(0.0), x, _log_of_one_plus(f, x))
    return f.select(regular, result, special)


def log1m(f: InstructionBuilder, x: Value) -> Value:
    """log(1 - x)."""
    return log1p(f, -x)


def _quotient(f: InstructionBuilder, a: Value, b: Value, rest: Value) -> Value:
    """a / (b + rest), for a rest below the last place of b: one Newton step on the residual."""
    inverse = 1.0 / b
    q = a * inverse
    residual = f.fma(-q, rest, f.fma(-q, b, a))
    return f.fma(residual, inverse, q)


def inv_logit(f: InstructionBuilder, x: Value) -> Value:
    """1 / (1 + exp(-x)), with an exponential that cannot overflow."""
    z = _exp_of_minus_absolute(f, x)
    total = 1.0 + z
    return _quotient(f, f.select(x < 0.0, z, 1.0), total, z - (total - 1.0))


def log1p_exp(f: InstructionBuilder, x: Value) -> Value:
    """log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))."""
    return f.at_least(x, 0.0) + _log_of_one_plus_fraction(f, _exp_of_minus_absolute(f, x))


def log_inv_logit(f: InstructionBuilder, x: Value) -> Value:
    """log(inv_logit(x)) = -log1p_exp(-x)."""
    return -log1p_exp(f, -x)


def log1m_inv_logit(f: InstructionBuilder, x: Value) -> Value:
    """log(1 - inv_logit(x)) = -log1p_exp(x)."""
    return -log1p_exp(f, x)


def log1m_exp(f: InstructionBuilder, x: Value) -> Value:
    """log(1 - exp(x)): by expm1 where exp(x) > 1/2, else by log1p."""
    difference, power = -expm1(f, x), exp(f, x)
    sum_ = 1.0 - power
    tiny = x > -SMALLEST_NORMAL  # 1 - exp(x) = -x is subnormal
    near = x > -LOG_2
    u = f.select(near, f.select(tiny, difference * 2.0**54, difference), sum_)
    rest = f.select(near, 0.0, (1.0 - sum_) - power)
    result = _log_of_sum(f, u, rest, -power) + f.select(tiny, -54.0 * LOG_2, -0.0)
    special = f.select(x.equals(0.0), -INFINITY, f.select(x > 0.0, NAN, x))
    return f.select((x < 0.0) & (x > -INFINITY), result, f.select(x < 0.0, -0.0, special))


def log_sum_exp(f: InstructionBuilder, a: Value, b: Value) -> Value:
    """log(exp(a) + exp(b)) = max + log1p(exp(-|a - b|)); equal arguments, infinite ones too, differ by 0."""
    larger = f.select(a < b, b, a)
    distance = f.select(a.equals(b), 0.0, a - b)
    sum_ = _log_of_one_plus_fraction(f, _exp_of_minus_absolute(f, distance))
    return larger + f.select(distance.equals(distance), sum_, NAN)


def tanh(f: InstructionBuilder, x: Value) -> Value:
    """tanh(x) = e / (e + 2) = 1 - 2 / (e + 2) with e = expm1(2 |x|): the second form from 1/2 on."""
    magnitude = f.at_most(f.absolute(x), 20.0)
    e = expm1(f, 2.0 * magnitude)
    large = magnitude > 0.5
    total = e + 2.0
    quotient = _quotient(f, f.select(large, 2.0, e), total, e - (total - 2.0))
    return f.intrinsic("llvm.copysign.f64", f.select(large, 1.0 - quotient, quotient), x)


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "exp": exp,
    "exp_minus_magnitude": exp_minus_magnitude,
    "log1p_exp_minus_magnitude": log1p_exp_minus_magnitude,
    "log": log,
    "log1p": log1p,
    "expm1": expm1,
    "log1m": log1m,
    "inv_logit": inv_logit,
    "log1p_exp": log1p_exp,
    "log_inv_logit": log_inv_logit,
    "log1m_inv_logit": log1m_inv_logit,
    "log1m_exp": log1m_exp,
    "log_sum_exp": log_sum_exp,
    "tanh": tanh,
}

ARITY = {"log_sum_exp": 2}


def definition(name: str, fused: bool) -> tuple[str, set[str]]:
    """The text of `@ulam.<name>`, and the declarations of the intrinsics it calls."""
    f = InstructionBuilder(fused)
    names = ("x", "y")[: ARITY.get(name, 1)]
    result = FUNCTIONS[name](f, *(f.argument(n) for n in names))
    parameters = ", ".join(f"double %{n}" for n in names)
    head = f"define internal double @ulam.{name}({parameters}) alwaysinline #1 {{"
    return "\n".join([head, *f.lines, f"  ret double {result.name}", "}"]), f.intrinsics
