"""What the type checker writes into the tree, and what it reports."""

from __future__ import annotations

import pytest
from work import lines_executed

from ulam.frontend import syntax
from ulam.frontend.check.program import check_library_function, check_program
from ulam.frontend.diagnostics import Diagnostic, DiagnosticError
from ulam.frontend.functions.support import NOT_SUPPORTED
from ulam.frontend.lower.program import lower_program
from ulam.frontend.parse.program import parse_functions, parse_program
from ulam.frontend.source import Source
from ulam.frontend.spelling import edit_distance, nearest
from ulam.frontend.stan_types import INT, REAL, array_of
from ulam.frontend.syntax import AdLevel


def check(text: str) -> syntax.Program:
    """The typed tree. What is only not supported yet is typed all the same."""
    source = Source(text, "test.stan")
    program = parse_program(source)
    try:
        check_program(program, source)
    except DiagnosticError as error:
        if mistakes(error):
            raise
    return program


def mistakes(error: DiagnosticError) -> list[Diagnostic]:
    return [d for d in error.diagnostics if d.severity == "error" and d.code != NOT_SUPPORTED]


def errors(text: str) -> list[Diagnostic]:
    with pytest.raises(DiagnosticError) as caught:
        check(text)
    return mistakes(caught.value)


def warnings(text: str) -> list[str]:
    source = Source(text, "test.stan")
    return [d.code for d in check_program(parse_program(source), source)]


DATA = """
data {
  int N; int K;
  array[N] int n; array[N] real xs; array[N, K] int table;
  real x; vector[N] v; row_vector[N] r; matrix[N, K] m; array[K] vector[N] vs; array[K] matrix[N, K] ms;
}
parameters { real p; vector[N] q; matrix[N, K] pm; }
"""


def expression(text: str) -> syntax.Expression:
    """The expression, checked in a model block after `DATA`."""
    program = check(DATA + f"model {{ print({text}); }}")
    assert program.model is not None
    statement = program.model.statements[0]
    assert isinstance(statement, syntax.Print)
    return statement.arguments[0]


# ---------------------------------------------------------------- types of expressions


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("1", "int"),
        ("1.5", "real"),
        ("2i", "complex"),
        ("N + 1", "int"),
        ("N + 1.0", "real"),
        ("2 ^ 3", "real"),
        ("N / 2", "int"),
        ("m * v'", None),
        ("m' * v", "vector"),
        ("v * r", "matrix"),
        ("r * v", "real"),
        ("-table", "array[,] int"),
        ("x > 1 && N == 2", "int"),
        ("N > 1 ? 1 : 2.5", "real"),
        ("{1, 2}", "array[] int"),
        ("{{1, 2.5}, {3, 4}}", "array[,] real"),
        ("{v, q}", "array[] vector"),
        ("[1, 2]", "row_vector"),
        ("[]", "row_vector"),
        ("[[1, 2], r]", "matrix"),
        ("[1, 2i]", "complex_row_vector"),
        ("(1, 2.5, v)", "tuple(int, real, vector)"),
        ("(1, 2.5, v).2", "real"),
        ("exp(1)", "real"),
        ("exp(v)", "vector"),
        ("size(vs)", "int"),
        ("sum(n)", "int"),
        ("to_matrix(v, N, 1)", "matrix"),
        ("rep_array(v, 3)", "array[] vector"),
        ("normal_lpdf(v | 0, 1)", "real"),
        ("bernoulli_lpmf(n | 0.3)", "real"),
        ("svd(m).2", "vector"),
        ("pi()", "real"),
    ],
)
def test_types(text: str, type_: str | None) -> None:
    if type_ is None:
        assert [d.code for d in errors(DATA + f"model {{ print({text}); }}")] == ["operator-type"]
    else:
        assert str(expression(text).type) == type_


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("v[1]", "real"),
        ("v[1:2]", "vector"),
        ("v[n]", "vector"),
        ("v[:]", "vector"),
        ("r[:2]", "row_vector"),
        ("m[1]", "row_vector"),
        ("m[1, 2]", "real"),
        ("m[1, :]", "row_vector"),
        ("m[:, 1]", "vector"),
        ("m[1:2]", "matrix"),
        ("m[n, 2:]", "matrix"),
        ("table[1]", "array[] int"),
        ("table[n]", "array[,] int"),
        ("table[:, 1]", "array[] int"),
        ("vs[1, 2]", "real"),
        ("vs[:, 2]", "array[] real"),
        ("vs[n][1, 2]", "real"),
        ("ms[:, 1, n]", "array[] row_vector"),
        ("ms[1][2][3]", "real"),
    ],
)
def test_types_of_indexed(text: str, type_: str) -> None:
    assert str(expression(text).type) == type_


def test_index_kinds() -> None:
    node = expression("ms[n, 1, 2:3]")
    assert isinstance(node, syntax.Indexed)
    assert [index.kind for index in node.indices] == [
        syntax.IndexKind.MULTIPLE,
        syntax.IndexKind.SINGLE,
        syntax.IndexKind.BETWEEN,
    ]


def test_promotions_are_written_into_the_tree() -> None:
    node = expression("N + x")
    assert isinstance(node, syntax.Binary)
    assert isinstance(node.left, syntax.Promotion)
    assert node.left.type == REAL
    assert node.left.operand.type == INT
    assert isinstance(node.right, syntax.Variable)

    array = expression("{1, 2.5}")
    assert isinstance(array, syntax.ArrayLiteral)
    assert [type(e) for e in array.elements] == [syntax.Promotion, syntax.RealLiteral]

    call = expression("normal_lpdf(n | 0, x)")
    assert isinstance(call, syntax.Call)
    assert call.formal_types == (array_of(REAL), REAL, REAL)
    assert [type(a) for a in call.arguments] == [syntax.Promotion, syntax.Promotion, syntax.Variable]

    comparison = expression("N < x")  # the library compares ints with reals as they are
    assert isinstance(comparison, syntax.Binary)
    assert isinstance(comparison.left, syntax.Variable)


def test_promotion_of_assigned_and_returned_values() -> None:
    program = check(
        """
        functions { real one() { return 1; } }
        data { int N; }
        transformed data { real a = N; real<lower=0> b; b = 2; b += N; array[2] real c = {1, 2}; }
        """
    )
    body = program.functions[0].body
    assert body is not None
    returned = body.statements[0]
    assert isinstance(returned, syntax.Return) and isinstance(returned.value, syntax.Promotion)
    assert program.transformed_data is not None
    a, b, assigned, added, c = program.transformed_data.statements
    assert isinstance(a, syntax.Declaration) and isinstance(a.initial, syntax.Promotion)
    assert isinstance(b, syntax.Declaration) and isinstance(b.sized_type.constraint.lower, syntax.Promotion)
    assert isinstance(assigned, syntax.Assignment) and isinstance(assigned.value, syntax.Promotion)
    assert isinstance(added, syntax.Assignment) and isinstance(added.value, syntax.Promotion)
    assert isinstance(c, syntax.Declaration) and isinstance(c.initial, syntax.Promotion)
    assert c.initial.type == array_of(REAL)


# ---------------------------------------------------------------- autodiff levels


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("p", AdLevel.AUTODIFF),
        ("x", AdLevel.DATA),
        ("1.5", AdLevel.DATA),
        ("x + p", AdLevel.AUTODIFF),
        ("x + N", AdLevel.DATA),
        ("q[1]", AdLevel.AUTODIFF),
        ("p > 1", AdLevel.DATA),
        ("p > 1 ? x : x", AdLevel.AUTODIFF),
        ("p > 1 ? 1 : 2", AdLevel.DATA),
        ("N > 1 ? x : x", AdLevel.DATA),
        ("N > 1 ? x : p", AdLevel.AUTODIFF),
        ("{x, p}", AdLevel.AUTODIFF),
        ("rows(pm)", AdLevel.DATA),
        ("exp(p)", AdLevel.AUTODIFF),
        ("normal_lpdf(x | 0, 1)", AdLevel.DATA),
        ("normal_lpdf(x | p, 1)", AdLevel.AUTODIFF),
        ("target()", AdLevel.AUTODIFF),
        ("(x, p).1", AdLevel.DATA),
        ("(x, p).2", AdLevel.AUTODIFF),
    ],
)
def test_autodiff_levels(text: str, level: AdLevel) -> None:
    assert expression(text).ad_level is level


def test_autodiff_level_follows_the_block_and_the_qualifier() -> None:
    program = check(
        """
        functions { void f(real a, data real b, int c) { real d = b; print(a, b, c, d); } }
        transformed data { real t = 1; print(t); }
        parameters { real p; }
        transformed parameters { real tp = 2; print(tp); }
        model { real local = 1; int k = 1; print(local, k); }
        generated quantities { real g = p; print(p, tp, g); }
        """
    )

    def levels(block: syntax.BlockStatement | None) -> list[bool]:
        assert block is not None
        printed = block.statements[-1]
        assert isinstance(printed, syntax.Print)
        return [argument.ad_level is AdLevel.AUTODIFF for argument in printed.arguments]

    assert levels(program.functions[0].body) == [True, False, False, True]
    assert levels(program.transformed_data) == [False]
    assert levels(program.transformed_parameters) == [True]
    assert levels(program.model) == [True, False]
    assert levels(program.generated_quantities) == [False, False, False]


# ---------------------------------------------------------------- calls


def test_tilde_makes_the_unnormalised_call() -> None:
    program = check(DATA + "model { n ~ poisson(p); q ~ normal(0, 1); }")
    assert program.model is not None
    first, second = program.model.statements
    assert isinstance(first, syntax.Tilde) and isinstance(second, syntax.Tilde)
    assert first.call is not None and second.call is not None
    assert first.call.name == "poisson_lpmf"
    assert first.call.unnormalized
    assert second.call.name == "normal_lpdf"
    assert [type(a) for a in second.call.arguments] == [syntax.Variable, syntax.Promotion, syntax.Promotion]
    assert second.call.ad_level is AdLevel.AUTODIFF
    assert second.arguments[0].type == INT  # as written


def test_tilde_prefers_the_mass_function_for_ints() -> None:
    program = check(
        """
        functions { real f_lpdf(real y, real a) { return 0; } real f_lpmf(int y, real a) { return 0; } }
        model { 1 ~ f(2); 1.0 ~ f(2); }
        """
    )
    assert program.model is not None
    names = [s.call.name for s in program.model.statements if isinstance(s, syntax.Tilde) and s.call is not None]
    assert names == ["f_lpmf", "f_lpdf"]


def test_unnormalised_name() -> None:
    call = expression("normal_lupdf(x | p, 1)")
    assert isinstance(call, syntax.Call)
    assert (call.name, call.unnormalized, call.kind) == ("normal_lpdf", True, syntax.CallKind.LIBRARY)


def test_overloads_of_users() -> None:
    program = check(
        """
        functions {
          real f(int a) { return 1; }
          real f(real a) { return 2; }
          real f(array[] real a) { return 3; }
          real normal_lpdf(real y, array[,] real a) { return 4; }
          int even(int n) { return n == 0 ? 1 : odd(n - 1); }
          int odd(int n) { return n == 0 ? 0 : even(n - 1); }
        }
        transformed data {
          print(f(1), f(1.5), f({1, 2}), normal_lpdf(1 | {{1}}), normal_lpdf(1 | 0, 1), even(3));
        }
        """
    )
    assert program.transformed_data is not None
    printed = program.transformed_data.statements[0]
    assert isinstance(printed, syntax.Print)
    calls = [a for a in printed.arguments if isinstance(a, syntax.Call)]
    chosen = [None if c.function is None else program.functions.index(c.function) for c in calls]
    assert chosen == [0, 1, 2, 3, None, 4]
    assert [c.kind for c in calls].count(syntax.CallKind.LIBRARY) == 1


def test_forward_declaration_means_the_definition() -> None:
    program = check("functions { real f(real a); real g() { return f(1); } real f(real a) { return a; } }")
    body = program.functions[1].body
    assert body is not None
    returned = body.statements[0]
    assert isinstance(returned, syntax.Return) and isinstance(returned.value, syntax.Call)
    assert returned.value.function is program.functions[2]


def test_higher_order_functions() -> None:
    program = check(
        """
        functions {
          vector rhs(real t, vector y, real k, data array[] real d) { return -k * y; }
          real part_lpmf(array[] int slice, int start, int end, real rate) { return poisson_lupmf(slice | rate); }
          array[] real old(real t, array[] real y, array[] real th, data array[] real xr, data array[] int xi) {
            return y;
          }
        }
        data { array[3] int n; array[3] real ts; }
        parameters { real<lower=0> k; }
        model {
          array[3] vector[2] y = ode_rk45(rhs, [1, 2]', 0, ts, k, {1.0});
          target += reduce_sum(part_lupmf, n, 1, k);
          array[3, 1] real z = integrate_ode_rk45(old, {1.0}, 0, ts, {k}, {1.0}, {1});
        }
        """
    )
    assert program.model is not None
    y, total, z = program.model.statements
    assert isinstance(y, syntax.Declaration) and isinstance(y.initial, syntax.Call)
    assert y.initial.callback is program.functions[0]
    assert y.initial.ad_level is AdLevel.AUTODIFF
    assert isinstance(total, syntax.TargetIncrement) and isinstance(total.value, syntax.Call)
    assert total.value.callback is program.functions[1]
    assert isinstance(z, syntax.Declaration) and isinstance(z.initial, syntax.Call)
    assert z.initial.callback is program.functions[2]


# ---------------------------------------------------------------- errors

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


# ---------------------------------------------------------------- library functions


def check_library(text: str) -> syntax.FunctionDefinition:
    source = Source(text, "library/test.stan")
    (definition,) = parse_functions(source)
    check_library_function(definition, source)
    return definition


def test_library_functions_may_require_and_redefine() -> None:
    definition = check_library("real exp(real x) { require_positive(x); require_sizes(x, {1}); return exp(x); }")
    assert definition.body is not None
    required = definition.body.statements[0]
    assert isinstance(required, syntax.CallStatement)
    assert required.call.name == "require_positive"


def test_library_calls_prefer_the_catalogue() -> None:
    definition = check_library("real f_lpdf(real y, real mu) { return normal_lpdf(y | mu, 1); }")
    assert definition.body is not None
    returned = definition.body.statements[0]
    assert isinstance(returned, syntax.Return) and isinstance(returned.value, syntax.Call)
    assert returned.value.formal_types == (REAL, REAL, REAL)


def test_library_errors_are_reported() -> None:
    source = Source("real f(real x) { return nosuch(x); }", "library/test.stan")
    (definition,) = parse_functions(source)
    with pytest.raises(DiagnosticError, match="nosuch"):
        check_library_function(definition, source)


# ---------------------------------------------------------------- spelling and speed


@pytest.mark.parametrize(
    ("first", "second", "distance"), [("", "", 0), ("abc", "abc", 0), ("abc", "acb", 1), ("abc", "xbcd", 2)]
)
def test_edit_distance(first: str, second: str, distance: int) -> None:
    assert edit_distance(first, second) == edit_distance(second, first) == distance


def test_nearest_needs_some_likeness() -> None:
    assert nearest("sigma", ["sgima", "mu"]) == "sgima"
    assert nearest("mu", ["tau", "nu"]) == "nu"
    assert nearest("alpha", ["omega", "x"]) is None


def test_work_is_linear() -> None:
    def work(loops: int) -> int:
        loop = "for (i in 1:N) { real a{0} = exp(v[i]) * N; target += normal_lpdf(xs[i] | a{0} * p, a{0} ^ 2); }\n"
        text = DATA + "model {\n" + "".join(loop.replace("{0}", str(k)) for k in range(loops)) + "}"
        source = Source(text, "test.stan")
        program = parse_program(source)
        return lines_executed(lambda: check_program(program, source))

    work(1)
    assert work(200) < 2.05 * work(100)


@pytest.mark.parametrize("row", ["a + {}a", "n + {}n", "n - {}a", "a ^ {}a", "(a > 0) && {}(a > 0)", "- {}a"])
def test_operators_in_a_row_take_linear_work_and_no_stack(row: str) -> None:
    repeated, last = row.split("{}")

    def work(count: int) -> int:
        text = f"data {{ int n; }} parameters {{ real a; }} model {{ target += {repeated * count}{last}; }}"
        source = Source(text, "test.stan")
        program = parse_program(source)

        def check_and_lower() -> None:
            check_program(program, source)
            lower_program(program, source)

        return lines_executed(check_and_lower)

    work(1)
    assert work(1000) < 2.3 * work(500)


# ---------------------------------------------------------------- what was probably meant


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
