"""Scalar functions in extended precision: the table of scalar_accuracy.py, to which scalar_distributions.py and
scalar_densities.py add rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import mpmath as mp  # pyright: ignore[reportMissingImports]
from mpmath import mpf  # pyright: ignore[reportMissingImports]

from ulam.library.functions import kind_of


@dataclass(frozen=True)
class Row:
    """A function: its arguments' kinds (ints first), the same in mpmath, its domain, points of its own."""

    name: str
    kinds: tuple[str, ...]
    exact: Callable[..., Any]
    inside: Callable[..., bool] = lambda *x: True
    points: tuple[tuple[float, ...], ...] = ()
    digits: int = 0
    expression: str = ""
    slopes: Callable[..., Sequence[Any]] | None = None
    """The value and the partials by formulas, where the definition takes long."""
    ints: int = field(init=False)
    reals: int = field(init=False)

    def __post_init__(self) -> None:
        ints = sum(kind in ("count", "total") for kind in self.kinds)
        object.__setattr__(self, "ints", ints)
        object.__setattr__(self, "reals", len(self.kinds) - ints)

    @property
    def text(self) -> str:
        """The call in the program."""
        arguments = [f"n[p, {i + 1}]" for i in range(self.ints)] + [f"x[p, {i + 1}]" for i in range(self.reals)]
        if self.expression:
            return self.expression.format(*arguments)
        if kind_of(self.name).is_probability and len(arguments) > 1:
            return f"{self.name}({arguments[0]} | {', '.join(arguments[1:])})"
        return f"{self.name}({', '.join(arguments)})"


def gamma_tails(a: Any, x: Any) -> tuple[Any, Any]:
    """Regularised P and Q, both to full relative precision: the power series, whose terms are positive."""
    if x <= 0:
        return mpf(0), mpf(1)
    extra = 30 + max(0, int((x - a * mp.log(x) + mp.loggamma(a)) / mp.log(10))) if x > a else 30
    with mp.extradps(min(extra, 3000)):
        term = total = mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))
        k = 1
        while term > total * mp.eps or k < x:
            term *= x / (a + k)
            total += term
            k += 1
        return +total, 1 - total


def beta_tails(a: Any, b: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """I_x(a, b) and its complement, y = 1 - x: the hypergeometric series with positive terms, on the smaller side."""
    if x <= 0:
        return mpf(0), mpf(1)
    if y <= 0:
        return mpf(1), mpf(0)
    if x * (a + b + 2) > a + 1:
        upper, lower = beta_tails(b, a, y, x)
        return lower, upper
    with mp.extradps(20):
        head = mp.exp(a * mp.log(x) + b * mp.log(y) - mp.loggamma(a) - mp.loggamma(b) + mp.loggamma(a + b)) / a
        term = total = mpf(1)
        k = 0
        while term > total * mp.eps:
            term *= (a + b + k) * x / (a + 1 + k)
            total += term
            k += 1
        return head * total, 1 - head * total


def normal_tail(z: Any) -> Any:
    """Pr(Z <= z), to full relative precision in the lower tail."""
    return mp.erfc(-z / mp.sqrt(2)) / 2


def log_of(lower: Any, upper: Any) -> Any:
    return mp.log(lower) if lower < 0.5 else mp.log1p(-upper)


def always(*x: float) -> bool:
    return True


ROWS: list[Row] = []


def add(name: str, kinds: str, exact: Callable[..., Any], inside: Callable[..., bool] = always, **more: Any) -> None:
    ROWS.append(Row(name, tuple(kinds.split()), exact, inside, **more))


def logit1p(x: Any) -> Any:
    return mp.log1p(mp.exp(x)) if x < 0 else x + mp.log1p(mp.exp(-x))


def small(limit: float) -> Callable[..., bool]:
    return lambda *x: all(abs(v) <= limit for v in x)


# ---- elementary functions
add("exp", "real", mp.exp, small(800))
add("expm1", "real", mp.expm1, small(800))
add("exp2", "real", lambda x: mp.power(2, x), small(1000))
add("log", "positive", mp.log)
add("log2", "positive", lambda x: mp.log(x, 2))
add("log10", "positive", mp.log10)
add("log1p", "real", mp.log1p, lambda x: x > -1, points=((-1 + 1e-9,), (-1 + 2.0**-53,)), digits=340)
add("log1m", "real", lambda x: mp.log1p(-x), lambda x: x < 1, points=((1 - 1e-9,), (1 - 2.0**-53,)), digits=340)
add("log1p_exp", "real", logit1p, small(800), digits=400)
add("inv_logit", "real", lambda x: 1 / (1 + mp.exp(-x)), small(700), digits=400)
add("log_inv_logit", "real", lambda x: -logit1p(-x), small(800), digits=400)
add("log1m_inv_logit", "real", lambda x: -logit1p(x), small(800), digits=400)
add("log1m_exp", "negative", lambda x: mp.log(-mp.expm1(x)), lambda x: x > -700, digits=340)
add("log_sum_exp", "real real", lambda x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y))), small(800), digits=800)
add(
    "log_diff_exp",
    "real real",
    lambda x, y: x + mp.log(-mp.expm1(y - x)),
    lambda x, y: x > y and x - y < 700,
    points=((1.0, 1 - 2.0**-53), (1e10, 1e10 - 1e-5)),
    digits=800,
)
add(
    "log_inv_logit_diff",
    "real real",
    lambda x, y: -logit1p(-x) + mp.log(-mp.expm1(y - x)) - logit1p(y),
    lambda x, y: x > y and abs(x) < 700 and abs(y) < 700,
    digits=800,
)
add(
    "log_mix",
    "unit real real",
    lambda t, x, y: max(x, y) + mp.log(t * mp.exp(x - max(x, y)) + (1 - t) * mp.exp(y - max(x, y))),
    lambda t, x, y: max(abs(x), abs(y)) < 800,
    digits=800,
)
add("lmultiply", "positive positive", lambda x, y: x * mp.log(y))
add("logit", "unit", lambda u: mp.log(u / (1 - u)))
add("inv_cloglog", "real", lambda x: -mp.expm1(-mp.exp(x)), lambda x: -700 < x < 6, digits=400)
add("square", "real", lambda x: x * x)
add("sqrt", "positive", mp.sqrt)
add("inv_sqrt", "positive", lambda x: 1 / mp.sqrt(x))
add("inv_square", "positive", lambda x: 1 / x**2)
add("cbrt", "positive", mp.cbrt)
add(
    "pow",
    "positive real",
    mp.power,
    lambda x, y: abs(y) < 300,
    points=((1e-200, 2.5), (1e-200, 1.5), (1e-300, 1.01), (2.0, -1074.0), (1e200, 1.3)),
)
add(
    "hypot",
    "real real",
    lambda x, y: mp.sqrt(x * x + y * y),
    lambda x, y: x != 0 or y != 0,
    points=((1e200, 1e200), (1e-200, 1e-200), (3e-300, 4e-300)),
)
add(
    "atan2",
    "real real",
    mp.atan2,
    lambda x, y: x != 0 and y != 0,
    points=((1e200, 1e200), (1e-200, 1e-200), (1e-300, 3e-300), (1e160, 1e-160)),
)
for name in ("sin", "cos", "tan"):
    add(name, "real", getattr(mp, name), digits=400)
for name in ("asin", "acos", "atanh"):
    add(name, "real", getattr(mp, name), lambda x: abs(x) < 1, points=((1 - 1e-9,), (-1 + 2.0**-53,)), digits=400)
add("atan", "real", mp.atan, points=((1e200,), (-1e300,)), digits=1000)
add("asinh", "real", mp.asinh, points=((1e200,), (-1e300,)), digits=1000)
add("acosh", "positive", mp.acosh, lambda x: x > 1, points=((1 + 2.0**-52,), (1.000001,), (1e300,)), digits=400)
for name in ("sinh", "cosh", "tanh"):
    add(name, "real", getattr(mp, name), small(300), digits=1000)

# ---- gamma, beta and their kin
NEAR_POLES = ((-1e-10,), (-1 + 1e-10,), (-2 - 1e-9,), (-2.5,), (-10.5,), (-50.3,), (-170.4,), (1 + 1e-10,), (2 - 1e-9,),
              (-2.4570247382208006,), (-2.7476826467274127,), (1.4616321449683622,), (-0.5040830082644554,),
              (1.0,), (2.0,), (3.0,), (171.0,), (1e15,))  # fmt: skip
NOT_A_POLE = lambda x: x > 0 or x != int(x)  # noqa: E731


add(
    "lgamma",
    "real",
    lambda x: mp.log(abs(mp.gamma(x))) if abs(x) < 1e4 else mp.re(mp.loggamma(x)),
    lambda x: NOT_A_POLE(x) and (x > -1e3),
    points=NEAR_POLES,
)
add("tgamma", "real", mp.gamma, lambda x: NOT_A_POLE(x) and -100 < x < 171, points=NEAR_POLES[:10])
add("digamma", "real", mp.digamma, lambda x: NOT_A_POLE(x) and x > -1e3, points=NEAR_POLES)
add(
    "trigamma",
    "real",
    lambda x: mp.polygamma(1, x),
    lambda x: NOT_A_POLE(x) and x > -1e3 and x < 1e100,
    points=NEAR_POLES,
)
add(
    "lbeta",
    "positive positive",
    lambda a, b: mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b),
    lambda a, b: 1e-150 < a < 1e150 and 1e-150 < b < 1e150,
    points=(
        (1.0, 1e10),
        (2.0, 3.0),
        (0.5, 1e15),
        (9.999, 10.001),
        (1e-9, 1.0),
        (1e-10, 1e-10),
        (1e17, 1e17),
        (5.0, 1e-18),
        (1.0, 1.0),
        (1.0, 1 + 1e-9),
        (2.0, 0.41421),
    ),
    digits=400,
)
add("beta", "shape shape", mp.beta)
add(
    "lchoose",
    "positive positive",
    lambda n, k: mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1),
    lambda n, k: k < n + 0.9 and n < 1e100,
    points=(
        (5.3, 1e-9),
        (5.3, 5.3 - 1e-9),
        (1e10, 3.0),
        (1e15, 5e14),
        (100.0, 99.999),
        (2.0, 1.0),
        (8.5, 8.5),
        (10.0, -0.5),
        (1.0, 1 + 1e-9),
        (1e5, 1e-12),
        (1e10, 1e-5),
    ),
    digits=400,
)
add(
    "log_falling_factorial",
    "positive positive",
    lambda x, n: mp.loggamma(x + 1) - mp.loggamma(x - n + 1),
    lambda x, n: n < x + 0.9 and x < 1e100,
    points=((1e10, 3.0), (1e6, 2.0), (5.0, 1e-9)),
    digits=400,
)
add(
    "log_rising_factorial",
    "positive positive",
    lambda x, n: mp.loggamma(x + n) - mp.loggamma(x),
    lambda x, n: 1e-100 < x < 1e100 and n < 1e100,
    points=((1e10, 3.0), (1e6, 2.0), (5.0, 1e-9)),
    digits=400,
)
add(
    "falling_factorial",
    "count shape",
    lambda n, x: mp.gamma(x + 1) / mp.gamma(x - n + 1),
    lambda n, x: n < 20,
    expression="falling_factorial({1}, {0})",
    points=((3, 1000.0), (2, 400.5), (3, 2.0), (4, 2.5)),
)
add(
    "rising_factorial",
    "count shape",
    lambda n, x: mp.rf(x, n),
    lambda n, x: n < 20,
    expression="rising_factorial({1}, {0})",
    points=((3, 1000.0), (2, 400.5), (3, 2.0), (4, 2.5)),
)
add(
    "lmgamma",
    "total shape",
    lambda n, x: n * (n - 1) * mp.log(mp.pi) / 4 + mp.fsum(mp.loggamma(x + mpf(1 - j) / 2) for j in range(1, n + 1)),
    lambda n, x: x > (n - 1) / 2,
)
add("gamma_p", "shape positive", lambda a, x: gamma_tails(a, x)[0], lambda a, x: x < 3000 and x > 1e-200)
add("gamma_q", "shape positive", lambda a, x: gamma_tails(a, x)[1], lambda a, x: x < 700 and x > 1e-200)
add("inc_beta", "shape shape unit", lambda a, b, x: beta_tails(a, b, x, 1 - x)[0])
add(
    "log_modified_bessel_first_kind",
    "moderate positive",
    lambda v, z: mp.log(mp.besseli(v, z)),
    lambda v, z: v > -1 and z < 1e4 and z > 1e-100,
    points=(
        (0.0, 1e-9),
        (2.0, 50.5),
        (0.0, 49.9),
        (0.0, 50.1),
        (30.0, 100.0),
        (30.0, 949.0),
        (30.0, 951.0),
        (-0.5, 3.0),
        (-0.9, 0.5),
        (0.5, 60.0),
        (10.0, 149.0),
        (10.0, 151.0),
    ),
)

# ---- error function and normal distribution
TAILS = (
    (0.0,),
    (1e-300,),
    (-37.6,),
    (-20.01,),
    (-19.99,),
    (1.01,),
    (0.99,),
    (-5.5,),
    (8.3,),
    (-8.3,),
    (26.0,),
    (-26.5,),
)
add("erf", "real", mp.erf, small(26), digits=400)
add("erfc", "real", mp.erfc, small(26), digits=400)
add("Phi", "real", normal_tail, small(38), points=TAILS, digits=700)
add(
    "Phi_approx",
    "moderate",
    lambda x: 1 / (1 + mp.exp(-(mpf(0.07056) * x**3 + mpf(1.5976) * x))),
    small(20),
    digits=700,
)
add(
    "std_normal_lcdf",
    "real",
    lambda x: log_of(normal_tail(x), normal_tail(-x)),
    small(1e4),
    points=TAILS,
    digits=1000,
    expression="std_normal_lcdf({0} | )",
)
add(
    "std_normal_lccdf",
    "real",
    lambda x: log_of(normal_tail(-x), normal_tail(x)),
    small(1e4),
    points=TAILS,
    digits=1000,
    expression="std_normal_lccdf({0} | )",
)


def normal_quantile(p: Any) -> Any:
    """By Newton's method on the log of the smaller tail."""
    if p == mpf("0.5"):
        return mpf(0)
    q, sign = (p, 1) if p < 0.5 else (1 - p, -1)
    x = mpf(float(-mp.sqrt(-2 * mp.log(q)))) if q < 0.01 else mp.sqrt(2) * mp.erfinv(2 * q - 1)
    for _ in range(60):
        step = mp.log(normal_tail(x) / q) * normal_tail(x) * mp.sqrt(2 * mp.pi) * mp.exp(x * x / 2)
        x -= step
        if abs(step) < abs(x) * mpf(10) ** (-mp.mp.dps + 8):
            break
    return sign * x


add(
    "inv_Phi",
    "unit",
    normal_quantile,
    points=((0.5 + 2.0**-53,), (0.25,), (0.75,), (0.5 - 1e-9,), (5e-324,), (1e-310,), (0.24,), (1e-5,), (0.024,)),
)
add(
    "inv_erfc",
    "unit",
    lambda x: -normal_quantile(x / 2) / mp.sqrt(2),
    points=((1.3,), (1.9999,), (1 + 2.0**-52,), (5e-324,)),
)
add(
    "std_normal_log_qf",
    "negative",
    lambda p: normal_quantile(mp.exp(p)),
    lambda p: p > -1e4,
    points=((-299.0,), (-301.0,), (-0.69,), (-0.71,), (-745.0,), (-1e-18,)),
    digits=100,
)
add(
    "lambert_w0",
    "real",
    lambda x: mp.lambertw(x).real,
    lambda x: x > -0.367879441171,
    points=((-0.3678,), (-0.36787944117,), (-0.3,), (-0.1,), (-0.3678794411,)),
)
add(
    "lambert_wm1",
    "unit",
    lambda x: mp.lambertw(-x, -1).real,
    lambda x: x < 0.367879441171,
    expression="lambert_wm1(-{0})",
    points=((0.3678,), (0.36787944117,), (0.3,), (0.1,), (0.3678794411,)),
)
