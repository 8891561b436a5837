"""What the type checker reports: errors, warnings, and what was probably meant."""

from __future__ import annotations

import pytest
from checked_programs import DATA, check, errors, warnings

from ulam.frontend.check.program import check_program
from ulam.frontend.diagnostics import DiagnosticError
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source

FUNCTION_ERRORS = [
    ("real f(real a) { if (a > 0) return 1; }", "missing-return"),
    ("real f(real a) { while (a > 0) return 1; }", None),
    ("real f(real a) { while (1) { if (a > 0) return 1; } }", None),
    ("real f(real a) { while (1) { if (a > 0) break; } }", "missing-return"),
    ('real f(real a) { if (a > 0) return 1; else reject("no"); }', None),
    ("real f(real a) { for (i in 1:3) return 1; }", None),
    ("void f(real a) { return; }", None),
    ("void f(real a) { return 1; }", "misplaced-return"),
    ("real f(real a) { return; }", "misplaced-return"),
    ("int f(real a) { return a; }", "return-type"),
    ("void f(real a) { a = 1; }", "read-only"),
    ("void f(real a, real a) { }", "name-in-use"),
    ("void f(real a) { real a; }", "name-in-use"),
    ("real f(real a) { return 1; } real f(real b) { return 1; }", "redefined-function"),
    ("real f(real a) { return 1; } int f(real b) { return 1; }", "redefined-function"),
    ("real exp(real a) { return 1; }", "redefined-function"),
    ("real reduce_sum(real a) { return 1; }", "reserved-name"),
    ("real f(real a);", "undefined-function"),
    ("real f_lpdf(int a) { return 1; }", "variate-type"),
    ("real f_lpmf(real a) { return 1; }", "variate-type"),
    ("vector f_lpdf(real a) { return [1]'; }", "density-result"),
    ("real f_lupdf(real a) { return 1; }", "unnormalized-suffix"),
    ("real f() { return normal_rng(0, 1); }", "rng-not-allowed"),
    ("real f_rng() { return normal_rng(0, 1); }", None),
    ("void f(real a) { target += a; }", "target-not-allowed"),
    ("void f_lp(real a) { target += a; a ~ normal(0, 1); print(target()); }", None),
    ("void f(real a) { a ~ normal(0, 1); }", "target-not-allowed"),
    ("void f(real a) { jacobian += a; }", "jacobian-not-allowed"),
    ("void f_jacobian(real a) { jacobian += a; }", None),
    ("real f(real a) { return normal_lupdf(a | 0, 1); }", "unnormalized-not-allowed"),
    ("real f_lpdf(real a) { return normal_lupdf(a | 0, 1); }", None),
    ("void f(real a) { real<lower=0> b; }", "local-constraint"),
    ("void f(real static) { }", "reserved-name"),
    ("void f(real a__) { }", "reserved-name"),
    ("int f(int n) { array[n] real x; return g(n); } int g(int n) { return f(n); }", None),
]


MODEL_ERRORS = [
    ("break;", "not-in-loop"),
    ("for (i in 1:3) continue;", None),
    ("for (i in 1:3) i = 2;", "read-only"),
    ("for (N in 1:3) { }", "name-in-use"),
    ("for (i in 1:3) { } for (i in 1:3) { }", None),
    ("for (i in 1:x) { }", "wrong-type"),
    ("for (e in N) { }", "loop-container"),
    ("for (e in m) print(e + 1);", None),
    ("{ int i; } { int i; }", None),
    ("int i; { int i; }", "name-in-use"),
    ("if (x) { }", "wrong-type"),
    ("while (x) { }", "wrong-type"),
    ("x = 1;", "read-only"),
    ("p = 1;", "read-only"),
    ("print(y);", "undeclared"),
    ("print(y); print(y);", "undeclared"),
    ("y = 1;", "undeclared"),
    ("exp = 1;", "function-as-value"),
    ("print(exp);", "function-as-value"),
    ("print(x(1));", "not-a-function"),
    ("print(nosuch(1));", "undeclared-function"),
    ("int k = 1.5;", "assignment-type"),
    ("int k; k = x;", "assignment-type"),
    ("vector[N] w; w = r;", "assignment-type"),
    ("vector[N] w; w[1] = q[2]; w[1:2] = q[2:3];", None),
    ("vector[N] w; w[1:2][1] = 1;", "nested-multiple-index"),
    ("array[2] int k; k[k[1]] = 1;", "read-while-written"),
    ("int a; real b; (a, b) = (1, 2);", None),
    ("int a; real b; (a, b) = (1.5, 2);", "assignment-type"),
    ("int a; (a, a) = (1, 2);", "assigned-twice"),
    ("array[2] int a; (a[1], a[2]) = (1, 2);", "assigned-twice"),
    ("print(v[1, 2]);", "too-many-indices"),
    ("print(x[1]);", "too-many-indices"),
    ("print(v[x]);", "index-type"),
    ("print(v[1:x]);", "wrong-type"),
    ("print(v * v);", "operator-type"),
    ("print(!x);", "operator-type"),
    ("print(x ? 1 : 2);", "wrong-type"),
    ("print(N ? 1 : v);", "conditional-type"),
    ("print({1, v});", "array-elements"),
    ("print([1, v]);", "row-vector-elements"),
    ("print((1, 2).3);", "tuple-index"),
    ("print(2147483648);", "int-too-large"),
    ("print(normal_rng(0, 1));", "rng-not-allowed"),
    ("print(normal_lpdf(x, 0, 1));", "bar-required"),
    ("print(exp(x | 1));", "bar-not-allowed"),
    ("print(normal_lpdf(x | 0));", "argument-count"),
    ("print(normal_lpdf(m | 0, 1));", "argument-type"),
    ("print(quantile(q, 0.5));", "data-required"),
    ("exp(x);", "unused-result"),
    ("x ~ nosuch(1);", "undeclared-distribution"),
    ("x ~ normal_lpdf(0, 1);", "tilde-suffix"),
    ("x ~ normal(0);", "argument-count"),
    ("x ~ normal(0, 1) T[0, ];", None),
    ("x ~ normal(0, 1) T[v, ];", "wrong-type"),
    ("v ~ multi_normal(v, m) T[0, ];", "truncation"),
    ("jacobian += 1;", "jacobian-not-allowed"),
    ("return;", "misplaced-return"),
]


PROGRAM_ERRORS = [
    ("data { int N; vector[N] x; } parameters { vector[N] y; }", None),
    ("parameters { real y; vector[y] x; }", "size-not-data"),
    ("parameters { vector[2] y; } transformed parameters { vector[rows(y)] x; }", "size-not-data"),
    ("parameters { int n; }", "int-parameter"),
    ("transformed parameters { int n; }", "int-parameter"),
    ("transformed parameters { { int n; } }", None),
    ("data { vector[poisson_rng(3)] x; }", "rng-in-size"),
    ("data { real<lower=0, upper=1> x; int<lower=0.5> n; }", "int-bound"),
    ("data { complex<lower=1> z; }", "complex-constraint"),
    ("data { vector[2] l; vector<lower=l>[2] x; }", None),
    ("data { vector[2] l; real<lower=l> x; }", "bound-type"),
    ("data { real x; real x; }", "name-in-use"),
    ("data { real x; } model { real x; }", "name-in-use"),
    ("model { real x; } generated quantities { real x; }", None),
    ("transformed data { real x = y; real y; }", "undeclared"),
    ("transformed data { real x; x ~ normal(0, 1); }", "target-not-allowed"),
    ("transformed data { real x = normal_rng(0, 1); }", None),
    ("transformed data { real x = target(); }", "target-not-allowed"),
    ("transformed parameters { jacobian += 1; print(target()); }", None),
    ("generated quantities { real x = normal_lupdf(1 | 0, 1); }", "unnormalized-not-allowed"),
]


def assert_codes(program: str, code: str | None) -> None:
    """One error of this code; none for None."""
    if code is None:
        check(program)
    else:
        assert [d.code for d in errors(program)] == [code]


@pytest.mark.parametrize(("text", "code"), FUNCTION_ERRORS)
def test_errors_in_functions(text: str, code: str | None) -> None:
    assert_codes(f"functions {{ {text} }}", code)


@pytest.mark.parametrize(("text", "code"), MODEL_ERRORS)
def test_errors_in_the_model(text: str, code: str | None) -> None:
    assert_codes(DATA + f"model {{ {text} }}", code)


@pytest.mark.parametrize(("text", "code"), PROGRAM_ERRORS)
def test_errors_in_blocks(text: str, code: str | None) -> None:
    assert_codes(text, code)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("ode_rk45(rhs, y0, 0, ts, 1.0)", None),
        ("ode_rk45(rhs, y0, 0, ts, p)", None),
        ("ode_rk45(rhs, y0, 0, ts)", "argument-count"),
        ("ode_rk45(rhs, y0, 0, 1.0, p)", "argument-type"),
        ("ode_rk45_tol(rhs, y0, 0, ts, p, 1e-3, 10, 1.0)", "data-required"),
        ("ode_rk45(y0, y0, 0, ts)", "callback-name"),
        ("ode_rk45(exp, y0, 0, ts)", "callback-name"),
        ("ode_rk45(nosuch, y0, 0, ts)", "undeclared-function"),
        ("ode_rk45(other, y0, 0, ts)", "callback-type"),
        ("ode_rk45()", "argument-count"),
    ],
)
def test_higher_order_errors(call: str, code: str | None) -> None:
    program = f"""
        functions {{
          vector rhs(real t, vector y, real k) {{ return -k * y; }}
          vector other(real t, real y) {{ return [y]'; }}
        }}
        data {{ vector[1] y0; array[2] real ts; }}
        parameters {{ real p; }}
        model {{ print({call}); }}
    """
    assert_codes(program, code)


def test_ambiguous_call() -> None:
    program = """
        functions { real f(int a, real b) { return 1; } real f(real a, int b) { return 2; } }
        model { print(f(1, 2)); }
    """
    (error,) = errors(program)
    assert error.code == "ambiguous-call"
    assert error.help is not None and "f(int, real) => real" in error.help


def test_several_errors_without_cascades() -> None:
    found = errors("data { int N; vector[M] x; } model { real s = N + v; s = exp(y) + 1; target += s * nosuch(y); }")
    assert [(d.code, d.source.text[d.span.start : d.span.end]) for d in found] == [
        ("undeclared", "M"),
        ("undeclared", "v"),
        ("undeclared", "y"),
        ("undeclared-function", "nosuch"),
    ]


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("data { real sigma; } model { print(sgima); }", "did you mean 'sigma'?"),
        ("model { print(nomral_lpdf(1 | 0, 1)); }", "did you mean 'normal_lpdf'?"),
        ("model { 1 ~ poison(2); }", "did you mean 'poisson'?"),
        ("model { print(normal(1, 0, 1)); }", "'normal' is a distribution"),
        ("model { print(poisson_lpdf(1 | 2)); }", "this distribution has 'poisson_lpmf'"),
        ("model { print(fabs(1)); }", "write abs"),
        ("model { print(normal_log(1, 0, 1)); }", "write 'normal_lpdf'"),
    ],
)
def test_suggestions(text: str, help: str) -> None:
    (error,) = errors(text)
    assert error.help is not None and help in error.help


def test_closest_signatures_are_listed() -> None:
    (error,) = errors("data { matrix[2, 2] m; } model { print(normal_lpdf(1.0 | m, 1)); }")
    assert "argument 2 is a matrix" in error.message
    assert error.help is not None and "normal_lpdf(real, real, real) => real" in error.help


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("transformed data { int n = 3 / 2; }", ["int-division"]),
        ("data { matrix[2, 2] m; } transformed data { matrix[2, 2] a = m ^ 2; }", ["matrix-power"]),
        ("data { int n; } transformed data { int a = 1 < n < 3; }", ["chained-comparison"]),
        ("data { int n; } transformed data { int a = (1 < n) == 1; }", []),
        ("transformed data { int a = 1; a = a; }", ["self-assignment"]),
        ("functions { void f() { return; print(1); } }", ["unreachable"]),
        ("functions { real f(); real f() { return 1; } }", ["forward-declaration"]),
        ("", ["empty-program"]),
    ],
)
def test_warnings(text: str, codes: list[str]) -> None:
    assert warnings(text) == codes


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("data { matrix[2, 2] X; row_vector[2] b; } model { print(X * b); }", "transpose the right side, `* b'`"),
        ("data { matrix[2, 2] X; vector[2] b; } model { print((b + b) * X); }", "the left side, `(b + b)' *`"),
        ("data { vector[2] v; row_vector[2] w; } model { print(v + w); }", "transpose the right side, `+ w'`"),
        ("model { print('mu', 1); }", 'strings are in double quotes: "mu"'),
        ("model { print(sqr(2)); }", "did you mean 'square'?"),
        ("model { print(ln(2)); }", "did you mean 'log'?"),
        ("model { print(sqt(2)); }", "did you mean 'sqrt'?"),
        ("parameters { real x; } model { x ~ gaussian(0, 1); }", "did you mean 'normal'?"),
        (
            "functions { real foo_log(real y, real m) { return 0; } } parameters { real x; } model { x ~ foo(0); }",
            "rename 'foo_log' to 'foo_lpdf'",
        ),
        ("data { real x; } model { print(x % 2); }", "fmod"),
        ("parameters { real m; } model { m ~ normal(s, 1); real s = m; }", "declared below, in line 1"),
        ("data { int n; } model { for (i in 1:n / 2.0) print(i); }", "to_int"),
        ("data { int lower; } model { }", "as `lower_`"),
        ("data { int n; } model { n = 2; }", "a local variable"),
        ("parameters { real m; } generated quantities { m ~ normal(0, 1); }", "_rng"),
        ("model { real x = normal_rng(0, 1); }", "declare a parameter"),
    ],
)  # fmt: skip
def test_helps(text: str, help: str) -> None:
    source = Source(text, "test.stan")
    with pytest.raises(DiagnosticError) as caught:
        check_program(parse_program(source), source)
    (diagnostic,) = caught.value.diagnostics
    assert help in (diagnostic.help or "")


def test_the_statement_whose_brace_is_missing_is_named() -> None:
    text = """model {
  real x;
  for (n in 1:3) {
    if (n > 1) {
      x = n;
    }
    x = 2;
}
generated quantities {
}
"""
    source = Source(text, "test.stan")
    with pytest.raises(DiagnosticError) as caught:
        parse_program(source)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.help == "by its indentation, line 3 is not closed: `for (n in 1:3) {`"
    source = Source('model { print("not closed); }\n', "test.stan")
    with pytest.raises(DiagnosticError) as caught:
        parse_program(source)
    assert [d.code for d in caught.value.diagnostics] == ["unclosed-string"]
