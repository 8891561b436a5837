"""Programs that are built in Python are those of text: the same modules, messages and numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import random_programs
import structured_programs
from rebuilt_programs import plain, rebuilt

import ulam
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source
from ulam.runtime.building.program import BuiltProgram
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.errors import ArgumentError, CompileError, Rejection
from ulam.runtime.externals import forms

EXTERNAL = {"ex": ulam.external(lambda x, n: x * n[0], lambda x, n, adjoint: adjoint * n[0])}

BUILT = """functions {
  real scaled(real x, data array[,] int n) {
    while (x > 3) {
      break;
    }
    return x * n[1, 1];
  }
  void say(real x) {
    print("x is ", x);
  }
}
data {
  int<lower=1> N;
  array[N, 2] int<lower=0, upper=9> k;
  vector<offset=1, multiplier=2>[N] y;
}
transformed data {
  matrix[2, 2] A = [[1, 2.5], [-3, 1e-3]];
  array[3] int few = {1, 2, 3};
}
parameters {
  real m;
  simplex[3] s;
  array[2] cov_matrix[2] V;
}
transformed parameters {
  vector[N] eta = m + y;
  eta[1] = -eta[2];
  jacobian += m;
}
model {
  if (m > 0 && !(m == 2)) {
    m ~ normal(0, 1) T[0, ];
  } else if (m < -1) {
    target += normal_lpdf(m | 0, 1);
  } else {
    reject("no ", m);
  }
  for (n in 1:N) {
    y[n] ~ normal(scaled(m, k), n);
    continue;
  }
  for (e in few) {
    target += m ^ e;
  }
  profile("all") {
    target += sum((A * A')[:, 1] .* (A \\ A)[1:2, 2]) + (m > 1 ? s[1] : s[few[2]]) + few[1] %/% 2 + few[2] % 2;
  }
  {
    say(m);
  }
}
generated quantities {
  vector[N] e2 = eta ./ (eta .^ 2.0);
  tuple(int, int) t = (few[1], 2);
  real inf = negative_infinity();
}
"""


def built() -> BuiltProgram:
    p = BuiltProgram("m")
    fn = p.fn
    with p.function("scaled", "real", x="real", n="data array[,] int") as scaled:
        with p.while_(scaled.x > 3):
            p.break_()
        p.return_(scaled.x * scaled.n[1, 1])
    with p.function("say", x="real") as say:
        p.print("x is ", say.x)
    with p.data:
        N = p.int("N", lower=1)
        k = p.int("k", array=(N, 2), lower=0, upper=9)
        y = p.vector("y", N, offset=1, multiplier=2)
    with p.transformed_data:
        A = p.matrix("A", 2, 2, initial=p.row(p.row(1, 2.5), p.row(-3, np.float64(1e-3))))
        few = p.int("few", array=3, initial=[1, 2, 3])
    with p.parameters:
        m = p.real("m")
        s = p.declare("simplex", "s", 3)
        p.declare("cov_matrix", "V", 2, array=2)
    with p.transformed_parameters:
        eta = p.vector("eta", N, initial=m + y)
        eta[1] = -eta[2]
        p.jacobian(m)
    with p.model:
        with p.if_((m > 0) & ~(m == 2)):
            m.follows(fn.normal(0, 1), lower=0)
        with p.else_if(m < -1):
            p.target(fn.normal_lpdf(m, 0, 1))
        with p.else_():
            p.reject("no ", m)
        with p.for_(1, N, "n") as n:
            y[n].follows(fn.normal(scaled(m, k), n))
            p.continue_()
        with p.foreach(few, "e") as e:
            p.target(m**e)
        with p.profile("all"):
            p.target(
                fn.sum((A * A.T)[:, 1].times(A.solve(A)[1:2, 2]))
                + p.if_else(m > 1, s[1], s[few[2]])
                + few[1] // 2
                + few[2] % 2
            )
        with p.scope():
            p.run(say(m))
    with p.generated_quantities:
        p.vector("e2", N, initial=eta.over(eta.power(2.0)))
        p.tuple("t", ["int", "int"], initial=(few[1], 2))
        p.real("inf", initial=-np.inf)
    return p


def test_the_module_is_that_of_text() -> None:
    program = built()
    assert plain(program.module()) == plain(Compiler(BUILT, "m.stan", CompileOptions(0))._lowered_tree())  # pyright: ignore
    assert plain(program.module()) == plain(program.module())


EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/*.stan"))
LANGUAGE = """
functions {
  real ex(real x, data array[] int n);
  int odd(int n);
  int even(int n) { if (n == 0) return 1; return odd(n - 1); }
  int odd(int n) { if (n == 0) return 0; else { return even(n - 1); } }
  tuple(real, array[] vector) pair(tuple(int, matrix) t, complex z) {
    return (t.1 + get_real(z), {t.2[1]', t.2[ : , 1]});
  }
  vector rate(real t, vector y, real k) { return -k * y; }
  real hat_lpdf(real y, real w) { return y > w ? negative_infinity() : log1m(abs(y) / w) - log(w); }
  real hat_rng(real w) { return uniform_rng(-w, w); }
}
data {
  int<lower=1> N;
  array[2] tuple(int<lower=0>, array[N] vector<lower=-1, upper=1>[2]) pairs;
  complex z;
  complex_matrix[2, 2] C;
}
transformed data { int e = even(4); }
parameters {
  real<offset=1, multiplier=2> m;
  array[N, 2] real<lower=0> s;
  tuple(simplex[3], cholesky_factor_cov[3, 2]) t;
  column_stochastic_matrix[2, 3] P;
  sum_to_zero_vector[4] q;
}
transformed parameters {
  array[2] vector[2] path = ode_rk45(rate, [1.0, 2.0]', 0.0, {1.0, 2.0}, m);
  jacobian += log(s[1, 1]);
}
model {
  real total = 0;
  int k;
  array[2] vector[2] w;
  vector[2] u = [1, 2]';
  (total, w) = pair((1, [[1, 2], [3, 4]]), z * 2i);
  (total, (k, u[1])) = (total, (2, 0.5));
  total += ex(m, {1, 2});
  w[1] .*= u;
  u[1:2] /= 3;
  u[{2, 1}] -= u[ : 2] + w[2][1 : ];
  while (k > 0) { k -= 1; if (k == 1) { continue; } else if (k == 0) break; }
  for (each in w) { target += sum(each) ^ 2 ^ 0.5; }
  profile("p") { m ~ hat(3); s[1] ~ exponential(1); s[1, 2] ~ exponential(2) T[0.1, m + 4]; }
  { real total2 = -(m - 1) * +2 - (!k || k && 1) + k %/% 3 + k % 3; target += total2; }
  target += hat_lupdf(m | 2) + target() + get_real(sum(C[1])) + t.1[2];
  if (m > 100) fatal_error("far ", m, (1, m)); else reject("never");
  ;
}
generated quantities { real y = hat_rng(2); print("y ", y, {(1, 2.5)}, pairs[1].2[1]); }
"""


def module_of(text: str, **options: Any) -> str:
    return plain(Compiler(text, "m.stan", CompileOptions(0, **options))._lowered_tree())  # pyright: ignore


def rebuilt_from(text: str) -> BuiltProgram:
    return rebuilt(parse_program(Source(text, "m.stan")), external=EXTERNAL)


@pytest.mark.parametrize("text", [LANGUAGE, structured_programs.generate(1)])
def test_all_of_the_language_can_be_built(text: str) -> None:
    """Programs that are built again from their trees have the same modules."""
    assert plain(rebuilt_from(text).module()) == module_of(text, externals=forms(EXTERNAL))


@pytest.mark.parametrize(
    "text", [*(path.read_text() for path in EXAMPLES[:3]), *map(random_programs.random_program, range(3))]
)
def test_what_is_printed_has_the_same_module(text: str) -> None:
    program = rebuilt_from(text)
    assert plain(program.module()) == module_of(program.stan())


def mistakes() -> BuiltProgram:
    p = BuiltProgram()
    with p.data:
        v = p.vector("v", 3)
    with p.model:
        with p.for_(v, 3):  # a loop
            p.target(v.field(1))  # a field
        with p.if_(v):  # a branch
            pass
        with p.else_if(v):  # another
            pass
    return p


def test_places_of_blocks_and_parts() -> None:
    with pytest.raises(CompileError) as raised:
        mistakes().module()
    lines = Path(__file__).read_text().splitlines()
    wanted = [next(at for at, line in enumerate(lines, 1) if line.endswith(f"  # {what}"))
              for what in ("a loop", "a field", "a branch", "another")]  # fmt: skip
    found = [int(line) for line in re.findall(r"test_building\.py:(\d+):\d+: error", str(raised.value))]
    assert found == wanted


def test_updates_in_place_are_assignments() -> None:
    p = BuiltProgram()
    with p.parameters:
        a = p.real("a")
    with p.model:
        total = p.real("total", initial=0)
        w = p.vector("w", 2, initial=p.row(1, 2).T)
        with p.for_(1, 3) as i:
            total += a * i
        w[1] += total
        w[1:2] *= 2
        w.set(w, ".*=")
        value = a + 1
        value -= 2  # no variable: a new value
        p.assign((total, w[2]), (w[1], value))
        p.target(total + w[2])
    assert "total = total + a * i1_;" in p.stan()
    model = p.model_with(cache=False, opt_level=0)
    assert model.log_density(np.array([2.0])) == (2 * (1 + 12)) ** 2 + 1


def test_rows_are_long_and_nesting_is_not() -> None:
    p = BuiltProgram()
    with p.parameters:
        a = p.real("a")
    long = deep = double = a
    for each in range(3000):
        long = long + each
    with p.model:
        p.target(long)
    p.module()
    for _ in range(300):
        deep = p.fn.exp(deep)
    with p.model:
        p.target(deep)
    with pytest.raises(CompileError, match="nested more than 200 deep"):
        p.module()
    for _ in range(199):
        double = double * double
    p = BuiltProgram()
    q = double
    with pytest.raises(CompileError, match="nested more than|more than 1,000,000 expressions"), q.program.model:
        q.program.target(q)
        q.program.module()


def test_what_is_printed_is_the_program() -> None:
    data = {"N": 2, "k": [[1, 2], [3, 4]], "y": [0.5, 1.5]}
    models = [ulam.StanModel(text, data, opt_level=0, cache=False) for text in (BUILT, built().stan())]
    models.append(built().model_with(data, opt_level=0, cache=False))
    at = np.linspace(0.2, 0.9, models[0].param_unc_num())
    names = [model.param_names(include_tp=True, include_gq=True) for model in models]
    assert names[0] == names[1] == names[2]
    assert len({model.log_density(at) for model in models}) == 1


def line_of(text: str) -> int:
    return Path(__file__).read_text().splitlines().index(text) + 1


def test_messages_are_those_of_text_at_places_in_python() -> None:
    p = BuiltProgram()
    with p.parameters:
        a = p.real("a")
        b = p.vector("b", 2)
    with p.model:
        p.target(p.fn.square("text") + b % a)
        a.follows(p.fn.normol(0, 1))
        b.set(unknown(p))
    with pytest.raises(CompileError) as raised:
        p.module()
    text = "parameters { real a; vector[2] b; } model { target += b % a; a ~ normol(0, 1); b = nothing; }"
    with pytest.raises(CompileError) as of_text:
        ulam.StanModel(text)
    messages = {each.code: each.message for each in raised.value.diagnostics}
    for each in of_text.value.diagnostics:
        assert messages[each.code] == each.message
    line = line_of("        a.follows(p.fn.normol(0, 1))")
    shown = f":{line}:19: error: there is no distribution 'normol'"
    assert "test_building.py" in str(raised.value) and shown in str(raised.value)
    assert "        a.follows(p.fn.normol(0, 1))\n      |                   ^^^^^^^^^^^^^^^^^" in str(raised.value)


def unknown(p: BuiltProgram) -> Any:
    from ulam.frontend import syntax
    from ulam.runtime.building.values import BuiltValue

    return BuiltValue(p, syntax.Variable("nothing", span=p.here()))


def test_errors_at_run_time_name_the_python_code() -> None:
    p = BuiltProgram()
    with p.parameters:
        a = p.real("a")
    with p.model:
        a.follows(p.fn.normal(0, -1))
    line = line_of("        a.follows(p.fn.normal(0, -1))")
    with pytest.raises(Rejection, match=rf"test_building.py', line {line},"):
        p.model_with(cache=False, opt_level=0).log_density(np.zeros(1))


def test_a_value_is_used_many_times_and_a_program_continued() -> None:
    p = BuiltProgram()
    with p.parameters:
        a = p.real("a")
    shared = a * 2
    with p.model:
        p.target(shared + shared)
    assert p.model_with(cache=False, opt_level=0).log_density(np.array([3.0])) == 12
    with p.model:
        p.target(shared)
    assert p.model_with(cache=False, opt_level=0).log_density(np.array([3.0])) == 18


def in_model(use: Callable[[BuiltProgram, Any], object]) -> Callable[[], None]:
    def run() -> None:
        p = BuiltProgram()
        with p.parameters:
            a = p.real("a")
        with p.model:
            use(p, a)

    return run


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda p, a: bool(a > 1), TypeError, "no truth in Python"),
        (lambda p, a: list(a), TypeError, "no elements in Python"),
        (lambda p, a: a + object(), ArgumentError, "a value of the program, a number"),
        (lambda p, a: a.follows(a), ArgumentError, "written as a call"),
        (lambda p, a: p.real("for"), ArgumentError, "'for' is a reserved word of Stan"),
        (lambda p, a: p.real("a b"), ArgumentError, "cannot be the name of a variable"),
        (lambda p, a: p.declare("matrix", "x", 1), ArgumentError, "'matrix' has 2 sizes, but 1 are given"),
        (lambda p, a: p.declare("matrx", "x", 1), ArgumentError, "there is no type 'matrx'"),
        (lambda p, a: p.declare("simplex", "x", 1, lower=0), ArgumentError, "constrained by itself"),
        (lambda p, a: p.real("x", lower=0, offset=1), ArgumentError, "lower and upper, or offset and multiplier"),
        (lambda p, a: p.real("x", lower=0), ArgumentError, "a local variable: it cannot be constrained"),
        (lambda p, a: p.tuple("x", ["int", p.type("simplex", 2)]), ArgumentError, "cannot be constrained"),
        (lambda p, a: p.declare(p.type("int"), "x", array=2), ArgumentError, "a type that is complete"),
        (lambda p, a: (a + 1).set(2), ArgumentError, "cannot be assigned to"),
        (lambda p, a: p.assign((a, a + 1), (1, 2)), ArgumentError, "cannot be assigned to"),
        (lambda p, a: a.set(2, "**="), ArgumentError, "no operator of assignment"),
        (lambda p, a: p.print('say "x"'), ArgumentError, "no quotation marks"),
        (lambda p, a: p.target([]), ArgumentError, "without elements"),
        (lambda p, a: p.else_().__enter__(), ArgumentError, "else_ follows the branch"),
        (lambda p, a: p.data.__enter__(), ArgumentError, "inside of another"),
        (lambda p, a: a[1:3:2], ArgumentError, "no step"),
        (lambda p, a: BuiltProgram().fn.exp(a), ArgumentError, "another program"),
    ],
)
def test_what_cannot_be_written(use: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        in_model(use)()


def test_statements_belong_to_blocks() -> None:
    p = BuiltProgram()
    with pytest.raises(ArgumentError, match="a statement belongs to a block"):
        p.target(1)
    with p.data, pytest.raises(ArgumentError, match="belongs to block transformed data"):
        p.print("x")
    with p.parameters, pytest.raises(ArgumentError, match="get theirs from outside"):
        p.real("x", initial=1)


@pytest.mark.parametrize("text", ["rael", "real]", "", "real x", "vector[3]", "simplex", "data data int"])
def test_types_of_functions_are_read_as_in_text(text: str) -> None:
    with pytest.raises(ArgumentError, match="is no type of an argument"):
        BuiltProgram().declare_function("f", "void", x=text)


def test_build_is_both() -> None:
    assert ulam.build.Program is BuiltProgram
    with pytest.raises(FileNotFoundError):
        ulam.build("nowhere.stan")
