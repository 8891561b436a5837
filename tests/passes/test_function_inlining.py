"""function-inlining changes nothing that is seen: values, prints, draws, errors, bit by bit."""

# ruff: noqa: E501  (Stan text)
from __future__ import annotations

import io
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_programs import DATA, random_program
from translation_validation import EXACT, compare
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ulam.dialects import stan
from ulam.passes.analysis.call_graph import mark_unused
from ulam.passes.analysis.scopes import own_bodies
from ulam.passes.optimize.function_inlining import FunctionInlining
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.interpreter_settings import compiling
from ulam.runtime.model import StanModel

pytestmark = pytest.mark.usefixtures("quick_code")

PASS = "function-inlining"
REGRESSIONS = Path(__file__).parent.parent / "regressions"


def module_of(text: str) -> ModuleOp:
    return Compiler(text, "model.stan", CompileOptions(0)).module


def calls_left(text: str, **options: int) -> list[str]:
    """The user's functions that blocks still call, after the pass."""
    module = module_of(text)
    mark_unused(module)
    with compiling():
        FunctionInlining(**options).apply(Context(), module)
        module.verify()
    blocks = [op for op in module.walk() if isinstance(op, stan.BlockOp)]
    return [
        op.callee.data for b in blocks for op in b.walk() if isinstance(op, stan.CallOp) and op.user is not None
    ]  # fmt: skip


def same(text: str, data: dict[str, Any] | None = None) -> None:
    differences = compare(text, data, PASS, numerics=EXACT)
    assert not differences, "\n".join(differences)


# ---------------------------------------------------------------- programs

PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "lp_target": (
        """functions {
  real add_lp(real x) { real before = target(); target += x * 0.3; x ~ normal(0.1, 1.3); return target() - before; }
  real scaled_jacobian(real x) { if (x > 1) { jacobian += x; return 2; } jacobian += 0.1 * x; return exp(x); }
  void more_lp(real x) { if (x > 0) { target += x; return; } x ~ normal(0, 2); print("more ", target()); target += 0.1; }
  real sum_lp(real x) { target += sin(x); return normal_lpdf(x | 0, 1) + x; }
}
parameters { real a; real b; }
transformed parameters { real t = scaled_jacobian(a) + scaled_jacobian(b + 1.2); }
model {
  a ~ normal(0, 1);
  real r = add_lp(a + b);
  more_lp(b);
  more_lp(-b);
  real s = sum_lp(b);
  target += 1.1 * a;
  target += s;
  print("r ", r, " ", target());
  target += r + sum_lp(a) + sum_lp(b) * 2;
  target += add_lp(target());
}""",
        {},
    ),
    "early": (
        """functions {
  real f1(real x, int n) { for (i in 1:n) { if (i * 0.4 > x) return i + x; if (i == 3) continue; if (i == 7) break; print("i", i); } return -x; }
  real f2(real x) { real s = x; while (s < 10) { s += 0.7 + s * 0.1; if (s > 3 + x) return s; } return -1; }
  real f3(vector v) { for (e in v) { if (e > 0.5) return e * 2; } return sum(v); }
  real f4(matrix m) { real s = 0; for (i in 1:rows(m)) { for (j in 1:cols(m)) { if (m[i, j] > 1) return s + m[i, j]; s += m[i, j]; if (i + j > 4) break; } s *= 2; } return s; }
  void f5(int n) { for (i in 1:3) { if (i > n) return; print(i); } print("end"); if (n > 100) return; print("last"); }
  real f6(real x) { profile("p") { if (x > 0) return x; print("neg"); } return 2 * x; }
  real f7(real x) { if (x > 0) { return 1 + x; } else { return 1 - x; } }
  real f8(array[] real xs) { real r = 1; for (x in xs) { while (r < 3) { r += 0.5; if (x > r) return x - r; if (r > 2.2) break; } } return r; }
}
parameters { real a; vector[3] v; matrix[2, 3] m; }
transformed parameters { real u = f1(a, 9) + f2(a) * f3(v); vector[2] w = [f4(m), f7(a)]'; }
model { target += f1(v[1], 4) + f2(v[2]) - f3(v) + f4(m) * f6(a); f5(2); target += f7(v[3]) + f8({a, v[1]}); target += u + w[1]; }
generated quantities { real q = f8({3, 1}) + f1(0.2, 5) + f6(-1); f5(1); f5(5); }""",
        {},
    ),
    "lazy": (
        """functions {
  int yes(int i) { print("yes ", i); return i < 3; }
  int pos(real x) { real y = x * 2; if (y > 1) return 0; return y > 0; }
  real g(real x) { vector[2] z; z[1] = x; z[2] = x * x; return z[1] + z[2]; }
  real h(real x) { return x * x; }
  vector twice(vector v) { vector[size(v)] w = v; for (i in 1:size(v)) w[i] *= 2; return w; }
}
data { int N; }
parameters { real a; vector[3] v; }
model {
  int i = 0;
  while (yes(i) && pos(a) || i < 2) { i += 1; if (i == 2) continue; print("body", i); }
  real r = a > 0 ? g(a) : h(a) + h(h(a));
  vector[3] w = pos(v[1]) ? twice(v) : twice(twice(v));
  if (pos(a) && (pos(v[2]) || yes(7))) r += 1;
  if (!yes(1) || yes(4)) r += 2; else r += g(v[3]);
  target += r + sum(w) + (yes(5) ? 1.5 : h(v[2]));
  while (g(r) < 100) { r += 1 + h(r); }
  for (k in yes(1) : yes(2) + 2) { target += h(v[k]) * k; }
  for (x in twice(v)) target += g(x);
  array[yes(0) + 2] real z;
  z[yes(1)] = h(a);
  z[yes(0) + 1] = g(h(g(a)));
  z[3] = 1;
  w[yes(1):yes(2) + 2] = twice(v);
  print(g(a), " ", h(2), " ", twice([1, 2]'), yes(9));
  target += z[1] + z[2] + w[2];
}
generated quantities { array[N + 2] int q; for (j in 1:N + 2) q[j] = yes(j) || yes(j - 3); }""",
        {"N": 2},
    ),
    "propto": (
        """functions {
  real my_lpdf(real y, real mu, data real s) { return normal_lupdf(y | mu, s) + cauchy_lpdf(mu | 0, s); }
  real deep_lpdf(vector y, real mu, real s) { real acc = 0; for (i in 1:size(y)) acc += my_lupdf(y[i] | mu, 1.5); vector[2] q; q[1] = mu; q[2] = s; return acc + normal_lupdf(y | q[1], exp(q[2])) + my_lpdf(y[1] | mu, 2); }
  real plain(real y, real s) { return normal_lpdf(y | 0, s) + normal_lpdf(1.5 | 0, s); }
  real mass_lpmf(int n, real l) { if (n < 0) return negative_infinity(); return poisson_lupmf(n | exp(l)) + poisson_lupmf(3 | 2.5); }
  real rec_lpdf(real y, int n, real m) { if (n <= 0) return normal_lupdf(y | m, 2); return normal_lupdf(y | n, 3) + rec_lupdf(y * 0.5 | n - 1, m); }
  void all_lp(vector y, real m) { y ~ deep(m, 0.2); y ~ deep(0.5, 0.7); target += deep_lpdf(y | m, 0.7); m ~ my(1, 2); 3 ~ mass(m); }
}
data { vector[3] x; real d; int n; }
parameters { real a; real b; vector[2] c; }
model {
  a ~ my(b, d); d ~ my(b, 2); d ~ my(d, 2);
  target += my_lupdf(a | d, 1); target += my_lpdf(d | a, 1);
  x ~ deep(a, b); x ~ deep(d, b); x ~ deep(d, d); c ~ deep(d, d); target += deep_lupdf(x | d, 0.3);
  target += plain(a, 2) + plain(d, exp(b));
  n ~ mass(a); target += mass_lupmf(n | d) + mass_lpmf(n | b);
  a ~ rec(2, b); d ~ rec(2, d); target += rec_lpdf(d | 1, b);
  all_lp(x, a); all_lp(c, d); all_lp(x, d);
}
generated quantities { real l = my_lpdf(a | b, d) + deep_lpdf(x | a, b) + rec_lpdf(d | 1, b) + mass_lpmf(n | 0.3); }""",
        {"x": [0.1, -0.4, 1.2], "d": 0.6, "n": 2},
    ),
    "overload": (
        """functions {
  real f(int x) { print("hi"); return x; } real f(real x) { return x * 2; } real f(vector x) { return sum(x); } real f(array[] vector x) { return f(x[1]) + f(size(x)); }
  real later(real x);
  real early(real x) { return later(x) + 1; }
  real later(real x) { return x * 3; }
  int even(int n); int odd(int n) { if (n == 0) return 0; return even(n - 1); } int even(int n) { if (n == 0) return 1; return odd(n - 1); }
  int uses_even(int n) { int k = even(n); return k * 2 + succ(n); }
  int succ(int n) { return n + 1; }
  int fact(int n) { if (n <= 1) return succ(0); return n * fact(n - succ(0)); }
  tuple(real, vector) pair(real x, vector v) { if (x > 0) return (x, v); return (-x, v * x); }
  real first(tuple(real, vector) t) { return t.1 + t.2[1]; }
  array[,] real table(int n, real x) { array[n, 2] real r; for (i in 1:n) { r[i, 1] = x * i; r[i, 2] = i; } return r; }
  int unused(int x) { return 3; }
}
transformed data { int e = even(6) + uses_even(3); int k = unused(fact(5)); array[3, 2] real tab = table(3, 0.5); }
parameters { real a; vector[2] v; }
transformed parameters { array[2, 2] real tt = table(2, a); tuple(real, vector[2]) p = pair(a, v); }
model { target += f(1) + f(2.5) + f(a) + f(v) + f({v, v}) + early(a) + first(pair(a, v)) + first(pair(-2.5, [1, a]')); target += tt[1, 1] + p.1 + fact(4); }
generated quantities { real q = f(e) + f(3) + early(1); real s = first((1.5, [2, 3]')); int c = unused(f(1) > 0); { real y = f(2); } }""",
        {},
    ),
    "sizes": (
        """functions {
  int sz(int n) { print("size of ", n); return n + 1; }
  int cnt(array[] int xs) { array[3] int q; q[1] = xs[1]; q[2] = 1; q[3] = 0; return q[1] + q[2]; }
  vector mk(int n) { vector[n] v; for (i in 1:n) v[i] = i * 0.5; return v; }
  vector bad(int n) { print("bad"); vector[n] v = rep_vector(1, n); return v; }
  real lb(real x) { return x - 10; }
}
data { int N; array[sz(N)] int<lower=cnt({1, 2})> y; }
transformed data { int M = sz(N); vector[sz(M)] t = mk(M + 1); { array[cnt({1, 2})] int loc; loc[1] = sz(1); print(loc); } int K = 0; for (i in 1:2) K += cnt({i, 1}); array[K] real z = rep_array(1.5, K); vector[M] ok = mk(M) + bad(M); }
parameters { vector<lower=lb(2), upper=lb(20)>[cnt({1, 1})] a; real<lower=lb(a[1])> b; }
transformed parameters { vector<lower=lb(-5)>[sz(1)] u = mk(2) * a[1]; }
model { vector[sz(1)] loc = mk(2) + a; target += loc[1] - sum(loc) + u[1]; a ~ normal(0, 3); }
generated quantities { vector[sz(2)] g = mk(sz(1)) .* mk(3) + bad(3) ./ 1; array[cnt({0, 0}) + 1] int i = {sz(1), sz(2)}; }""",
        {"N": 2, "y": [3, 4, 5]},
    ),
    "rng": (
        """functions {
  real two_rng(real m) { real a = normal_rng(m, 1); if (a > m) return a; return normal_rng(a, 2); }
  real sq(real x) { return x * x; }
  real ign(real x) { return 3; }
  vector many_rng(int n) { vector[n] v; for (i in 1:n) { v[i] = two_rng(i); if (v[i] > 3) break; } return v; }
}
transformed data { real t = two_rng(1) + sq(normal_rng(0, 1)); }
parameters { real p; }
model { p ~ normal(t, 1); }
generated quantities { real a = sq(two_rng(0)); real b = ign(normal_rng(0, 1)); real c = two_rng(ign(two_rng(2))); vector[4] m = many_rng(4); int k = normal_rng(0, 1) > 0 ? bernoulli_rng(0.5) : poisson_rng(sq(2)); }""",
        {},
    ),
    "containers": (
        """functions {
  vector shift(vector v, real a) { vector[num_elements(v)] w = v + a; return w; }
  matrix outer(vector v, row_vector w) { return v * w; }
  real quad(matrix m, vector v) { return dot_product(v, m * v) + sum(m[1]) + quad_form(m, v); }
  real reads(vector v, array[] int idx) { real s = 0; for (i in idx) { s += v[i]; s *= v[1]; } return s + sum(v[idx]) + sum(v[2:]); }
  real lots(vector v) { real s = 0; for (i in 1:3) s += dot_product(v, v) * i + v[i] + std_normal_lpdf(v); return s; }
}
data { matrix[3, 3] X; array[2] int idx; vector[3] y; }
parameters { vector[3] v; real a; }
model {
  vector[3] u; u[1] = a; u[2] = v[2]; u[3] = 1;
  vector[3] k = shift(u, a); u[1] += 1;
  target += reads(u, idx) + reads(k, idx) + lots(u) + lots(v);
  u[2] = 7;
  target += quad(outer(u, v'), k) + quad(X, shift(X * v, 1)) + sum(shift(shift(u, a), 2));
  y ~ normal(shift(X * v, a), exp(a));
  matrix[3, 3] m = outer(v, u'); m[1, 2] = a; m = m * outer(k, k');
  target += sum(m) + lots(m[1]') + lots(m[, 2]) + lots(shift(m * v, a));
}""",
        {"X": [[1, 0.2, 0.3], [0.1, 2, 0.4], [0.5, 0.1, 1]], "idx": [3, 1], "y": [0.3, 0.1, 0.7]},
    ),
    "ode": (
        """functions {
  real rate(real x, real k) { real r = x * k; return -r; }
  vector rhs(real t, vector y, real k, real c) { vector[2] d; d[1] = rate(y[1], k); d[2] = rate(y[2], c) + normal_lpdf(y[1] | 0, 1); return d; }
  real integrand(real x, real k) { return rate(x, k); }
}
data { array[2] real ts; }
parameters { real<lower=0> k; }
model { array[2] vector[2] y = ode_rk45(rhs, [1, 0.5]', 0, ts, k, 0.3); target += sum(y[1]) + y[2][1] + rate(k, 2); }
""",
        {"ts": [0.5, 1.0]},
    ),
}
ERRORS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "index": (
        'functions { real f(vector w, int i) { vector[2] z = w; z[i] = 1; return z[i]; } } data { int i; int n; } generated quantities { print("a"); real r = f(rep_vector(1, n), i); print("b"); }',
        [{"i": 3, "n": 2}, {"i": 1, "n": 3}, {"i": 1, "n": 2}],
    ),
    "sized": (
        'functions { vector f(int n, int m) { vector[n] z = rep_vector(1, m); print("in f"); return z; } } data { int i; int n; int m; } generated quantities { print("a"); vector[i] r = f(n, m); { vector[i] q; q = f(n, m) + f(n, m); q[1:i] = f(n, m); } print("b"); }',
        [
            {"i": 3, "n": 2, "m": 2},
            {"i": -1, "n": 3, "m": 3},
            {"i": 1, "n": -2, "m": 2},
            {"i": 2, "n": 3, "m": 2},
            {"i": 2, "n": 2, "m": 2},
        ],
    ),
    "local": (
        'functions { vector f(int n, int m) { print("in f"); vector[n] z; z[1:2] = rep_vector(1, m); return z; } } data { int i; int n; int m; } generated quantities { print("a"); { vector[i] q = f(n, m); vector[i] p; p = f(n, m); print(q); } print("b"); }',
        [
            {"i": 3, "n": 2, "m": 2},
            {"i": -1, "n": 3, "m": 3},
            {"i": 1, "n": -2, "m": 2},
            {"i": 2, "n": 3, "m": 2},
            {"i": 2, "n": 2, "m": 2},
        ],
    ),
    "reject": (
        'functions { real f(real x) { if (x > 1) reject("too large: ", x); if (x < -1) fatal_error("small"); return sqrt(x) + normal_lpdf(x | 0, x); } } data { real x; } transformed data { real y = f(x); } parameters { real p; } model { target += f(p) + f(x); print("after"); real q = f(p * 3); print("x"); target += q; } generated quantities { real z = f(p); }',
        [{"x": 2}, {"x": -2}, {"x": 0.5}, {"x": -0.5}],
    ),
    "td": (
        "functions { array[] int f(array[] int x, int k) { array[size(x)] int z = x; z[k] = x[k] %/% (k - 2); return z; } } data { int k; } transformed data { array[3] int q = f({1, 2, 3}, k); array[2] int w = f({1, 2, 3}, 1); }",
        [{"k": 2}, {"k": 4}, {"k": 1}],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_does_the_same(name: str) -> None:
    same(*PROGRAMS[name])


@pytest.mark.parametrize(("name", "case"), [(name, n) for name, (_, data) in ERRORS.items() for n in range(len(data))])
def test_errors_stay(name: str, case: int) -> None:
    text, data = ERRORS[name]
    same(text, data[case])


@pytest.mark.parametrize("number", ["R01", "R02", "R03", "R04", "R05", "R16", "R23"])
def test_miscompilations_of_the_reference(number: str) -> None:
    text = next(REGRESSIONS.glob(f"{number}_*.stan")).read_text()
    data = {"R16": {"n": 3}, "R23": {"k": 1}}.get(number)
    assert not calls_left(text)
    same(text, data)


BUDGET = 10.0  # seconds, for all random programs together


@pytest.fixture(scope="module")
def deadline() -> float:
    return time.monotonic() + BUDGET


@pytest.mark.parametrize("seed", range(100, 130))
def test_random_program(seed: int, deadline: float) -> None:
    if time.monotonic() > deadline:
        pytest.skip("the time for random programs is used up")
    same(random_program(seed), DATA)


# ---------------------------------------------------------------- what is inlined


def test_all_calls_of_programs_are_inlined() -> None:
    for name in ("lp_target", "early", "lazy", "rng", "containers"):
        assert not calls_left(PROGRAMS[name][0]), name
    assert set(calls_left(PROGRAMS["overload"][0])) == {"even", "fact"}
    assert set(calls_left(PROGRAMS["propto"][0])) == {"rec_lpdf"}


NESTED = "".join(
    f"real f{n}(real x) {{ return f{n - 1}(x) + f{n - 1}(x + 1) * f{n - 1}(x + 2); }}\n" for n in range(1, 9)
)
EXPONENTIAL = f"""functions {{
  real f0(real x) {{ return sin(x); }}
  {NESTED} }}
parameters {{ real a; }}
model {{ target += f8(a) + f7(a); }}
"""


def test_growth_is_limited() -> None:
    before = sum(1 for _ in module_of(EXPONENTIAL).walk())
    for options in ({}, {"limit": 10**9}, {"limit": 10**9, "budget": 500}):
        module = module_of(EXPONENTIAL)
        with compiling():
            FunctionInlining(**options).apply(Context(), module)
        after = sum(1 for _ in module.walk())
        # Each inlined body brings variables for its result and arguments besides.
        assert after < before + 4 * options.get("budget", 5_000)
        assert options or after < 5_000
    assert calls_left(EXPONENTIAL) and calls_left(EXPONENTIAL, limit=10**9)


def test_long_programs_do_not_grow() -> None:
    """Beyond `longest` nothing is inlined, below only as far; functions that no block needs do not count."""
    unused = "real unused(real x) { return " + " + ".join(["x"] * 500) + "; }"
    short, long = (
        "functions { real twice(real x) { return 2 * x; } " + unused + " } parameters { real a; } "
        "model { target += twice(a); " + "target += a;" * times + " }"
        for times in (10, 1_000)
    )
    for program in (short, long):
        module = module_of(program)
        mark_unused(module)
        length = sum(1 for body in own_bodies(module) for _ in body.walk())
        assert bool(calls_left(program)) is (program is long)
        assert not calls_left(program, longest=length + 1000)
        assert calls_left(program, longest=length)


def test_limited_growth_keeps_the_meaning() -> None:
    small = EXPONENTIAL.replace("f8(a) + f7(a)", "f4(a) + f3(a)")
    for pipeline in (PASS, PASS + "{limit=20}", PASS + "{budget=100}", PASS + "{longest=200}"):
        differences = compare(small, {}, pipeline, numerics=EXACT)
        assert not differences, "\n".join(differences)


def test_remarks() -> None:
    with collect_remarks() as remarks:
        calls_left("functions { int f(int n) { return n; } } data { int n; array[f(n)] real x; } transformed data { int k = f(n); }")  # fmt: skip
    assert [str(r).partition(": ")[2] for r in remarks] == [
        "function-inlining: call of f: not done: there are no statements in this block",
        "function-inlining: call of f: done: its body, 1 ops, stands in place of the call",
    ]
    assert remarks[0].place == ("model.stan", 1, 62)


# ---------------------------------------------------------------- the lowering's part


def test_terms_of_the_target_do_not_wait_for_what_is_seen() -> None:
    text = """functions { real f(real x) { print("in f"); return normal_lpdf(x | 0, 1) + x; } }
        parameters { real a; }
        model { real r = f(a); print("after"); vector[1] v; v[1] = a; real s = std_normal_lpdf(v); v[1] = 7; target += r + s; }"""
    for level in (0, 2):
        out = io.StringIO()
        with redirect_stdout(out):
            value = StanModel(text, {}, opt_level=level).log_density(np.array([0.5]), propto=False)
        assert out.getvalue() == "in f\nafter\n"
        assert value == pytest.approx(-2 * 0.9189385332046728 - 0.25 + 0.5, abs=1e-12)
