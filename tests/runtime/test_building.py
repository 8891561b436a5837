"""Programs that are built in Python are those of text: the same modules, messages and numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.building.program import BuiltProgram
from ulam.runtime.compiler import CompileOptions, Compiler
from ulam.runtime.errors import ArgumentError, CompileError, Rejection

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


def plain(module: Any) -> str:
    return re.sub(r"loc\([^()]*\)|@\w+ \{", "", str(module))


def test_the_module_is_that_of_text() -> None:
    program = built()
    assert plain(program.module()) == plain(Compiler(BUILT, "m.stan", CompileOptions(0))._lowered_tree())  # pyright: ignore
    assert plain(program.module()) == plain(program.module())


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
    with pytest.raises(ArgumentError, match="a statement belongs to a block"):
        BuiltProgram().target(1)


def test_build_is_both() -> None:
    assert ulam.build.Program is BuiltProgram
    with pytest.raises(FileNotFoundError):
        ulam.build("nowhere.stan")
