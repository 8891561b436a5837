"""What the type checker writes into the tree; library functions, spelling, work. Errors: test_type_errors.py."""

from __future__ import annotations

import pytest
from checked_programs import DATA, check, errors, expression
from work import lines_executed

from ulam.frontend import syntax
from ulam.frontend.check.program import check_library_function, check_program
from ulam.frontend.diagnostics import DiagnosticError
from ulam.frontend.lower.program import lower_program
from ulam.frontend.parse.program import parse_functions, parse_program
from ulam.frontend.source import Source
from ulam.frontend.spelling import edit_distance, nearest
from ulam.frontend.stan_types import INT, REAL, array_of
from ulam.frontend.syntax import AdLevel

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
