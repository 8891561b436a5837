"""Memory patterns: what is static, what the pass makes static, and that this is what is promoted to values."""

from __future__ import annotations

import pytest
from random_programs import DATA, random_program
from translation_validation import EXACT, Subject, compare
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, FileLineColLoc, ModuleOp
from xdsl.parser import Parser

from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.passes.optimize.memory_pattern_optimization import DYNAMIC, STATIC, memory_patterns, run_on
from ulam.passes.value_form import promote_variables, structure_exits
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

pytestmark = pytest.mark.usefixtures("quick_code")

PASS = "memory-pattern-optimization"
QUICK_UNITS = ("value_propto", "gradient_propto")


def module_of(text: str) -> ModuleOp:
    return Compiler(text, "model.stan", CompileOptions(0)).module


def test_patterns_with_reasons_and_places() -> None:
    text = """data { int N; matrix[N, N] Z; array[N] int no_reals; }
parameters { vector[N] p; }
transformed parameters {
  vector[N] never;
  matrix[N, N] A = Z;
  real b = A[1, 1];
  matrix[1, N] C = A[1 : 1, ];
  A[1 : 2,  : ] = 5 * Z[1 : 2];
  array[2] vector[N] e;
  for (n in 1 : N) { real scale = 2; e[1, n] = 3; }
  while (b > 3) A[ : , 2] = p;
}
model {
  vector[N] unused;
  vector[N] unassigned;
  target += sum(unassigned);
}
"""
    module = module_of(text)
    found = memory_patterns(module)
    assert [(m.name, m.pattern, m.reason) for m in found] == [
        ("Z", STATIC, "it is data"),
        ("p", STATIC, "it is a parameter"),
        ("never", STATIC, "never assigned"),
        ("A", DYNAMIC, "assigned in part: A[1:2, ] = ... and 1 more"),
        ("C", STATIC, "only assigned whole"),
        ("e", DYNAMIC, "assigned in part in the loop over n: e[1, n] = 3"),
        ("unused", STATIC, "nothing uses it, as the program is now"),
        ("unassigned", STATIC, "never assigned"),
    ]
    lines = [m.location.line.data for m in found if isinstance(m.location, FileLineColLoc)]
    assert lines == [1, 2, 4, 8, 7, 10, 14, 15]


def test_marks_are_read_back() -> None:
    module = module_of("model { vector[2] v = [1, 2]'; vector[2] w; for (i in 1 : 2) w[i] = v[i]; }")
    run_on(module)
    context = Context()
    context.load_dialect(stan.STAN)
    context.load_dialect(Builtin)
    again = Parser(context, str(module)).parse_module()
    again.verify()
    memory = [op.memory.data for op in ops_within(again) if isinstance(op, stan.DeclareOp) and op.memory is not None]
    assert memory == [STATIC, DYNAMIC]


CONSISTENT = """
functions {
  vector f(vector x) { vector[2] y = x; y[1] = 2; vector[2] z; if (x[1] > 0) return y; z = x; return z; }
}
transformed data { vector[3] a = [1, 2, 3]'; vector[3] b; b[1] = 2; b[2] = 3; b[3] = 4; vector[3] c; c[2] = 1; }
parameters { vector[2] p; }
transformed parameters { vector[2] t = p; vector[2] u = p; u[1] = 3; { vector[2] v = p; v[2] = 1; u = v; } }
model {
  vector[2] w; for (i in 1 : 2) { vector[2] x; x[1] = i; x[2] = p[1]; w = x; if (i == 2) break; w[1] = 2; }
  target += sum(w) + sum(f(p));
}
generated quantities { array[2] real r; r[1] = 1; r[2] = p[1]; array[2, 2] real q; q[1] = r; q[2] = r; }
"""


@pytest.mark.parametrize("text", [CONSISTENT, *map(random_program, range(8))])
def test_static_variables_are_promoted_and_dynamic_ones_are_not(text: str) -> None:
    module = module_of(text)
    run_on(module)
    found = memory_patterns(module)
    structure_exits.run_on(module)
    promote_variables.run_on(module)
    left = {op for op in ops_within(module) if isinstance(op, stan.DeclareOp)}
    defined = {op.var_name.data for op in ops_within(module) if isinstance(op, stan.DefineOp)}
    assert {m.pattern for m in found} == {STATIC, DYNAMIC}
    for pattern in found:
        declaration = pattern.declaration
        if pattern.reason.startswith("it is"):
            continue
        assert isinstance(declaration, stan.DeclareOp)
        promoted = declaration not in left or pattern.name in defined
        assert promoted == (pattern.pattern == STATIC), pattern.name


@pytest.mark.parametrize("seed", range(4))
def test_random_programs_stay(seed: int) -> None:
    assert Subject(random_program(seed), DATA, points=1).compare(PASS, EXACT, units=QUICK_UNITS).differences == []


ELEMENTS = """
functions {
  vector triple(real x) { vector[3] v; v[3] = x; print("in f ", x); v[1] = x * x; v[2] = sqrt(x); return v; }
  real g(real x) { if (x > 1) reject("g of ", x); return x; }
}
data { int N; vector[N] x; }
transformed data {
  vector[N] s; s[1 : N] = x;
  matrix[2, 2] M; M[1, 1] = 1; M[2, 2] = 4; M[2, 1] = 3; M[1, 2] = 2;
  print(M);
}
parameters { real a; vector<lower=0>[3] q; }
transformed parameters {
  vector[3] v; v[1] = a; print("v ", a); v[3] = g(a); v[2] = q[1];
  vector[N] w; w[1 : N] = x * a;
}
model {
  for (n in 1 : 3) {
    array[2] vector[2] e; e[1, 1] = q[n]; e[1, 2] = a; e[2, 1] = n; e[2, 2] = exp(a);
    e[1] ~ normal(e[2], 1);
  }
  target += sum(triple(q[2])) - dot_self(v) + sum(w);
}
generated quantities {
  vector[2] d; d[1] = normal_rng(a, 1); d[2] = uniform_rng(0, 1);
  array[2] int k; k[2] = bernoulli_rng(0.3); k[1] = poisson_rng(4);
  row_vector[2] r; r[1] = g(a + 0.5); r[2] = d[1];
}
"""


@pytest.mark.parametrize("size", [3, 0])
def test_values_output_draws_and_errors_stay(size: int) -> None:
    data = {"N": size, "x": [0.5] * size}
    assert compare(ELEMENTS, data, PASS, numerics=EXACT, points=4) == []


def test_error_texts_stay() -> None:
    """A slice of the wrong size: the text in transformed data and generated quantities, too."""
    blocks = {
        "transformed data": "transformed data {{ {0} }}",
        "transformed parameters": "parameters {{ real a; }} transformed parameters {{ {0} }}",
        "model": "parameters {{ real a; }} model {{ {0} target += sum(v); }}",
        "generated quantities": "parameters {{ real a; }} generated quantities {{ {0} }}",
    }
    for frame in blocks.values():
        body = frame.format("vector[N] v; v[1 : N] = x;")
        program = f"data {{ int N; int K; vector[K] x; }} {body}"
        for sizes in ((2, 3), (3, 3)):
            data = {"N": sizes[0], "K": sizes[1], "x": [1.0] * sizes[1]}
            assert compare(program, data, PASS, numerics=EXACT) == [], frame


def test_limit() -> None:
    body = "".join(f"v[{i}] = {i}; " for i in range(1, 9))
    module = module_of(f"model {{ vector[8] v; {body} }}")
    run_on(module, limit=7)
    assert [m.pattern for m in memory_patterns(module)] == [DYNAMIC]
    run_on(module, limit=8)
    assert [m.pattern for m in memory_patterns(module)] == [STATIC]


PARTS = """
data { int N; vector[N] x; matrix[N, 2] X; }
transformed data { matrix[2, N] T; T[2] = x'; T[1, ] = X[, 1]'; print(T); }
parameters { vector[N] a; }
transformed parameters { array[2] vector[N] t; t[2] = a; print("between"); t[1] = x .* a; }
model {
  matrix[N, 2] m; m[, 2] = exp(a); m[, 1] = x;
  matrix[N, 1] one; one[, 1] = a;
  matrix[N, 3] three; three[, 3] = a; three[, 1] = X[, 2]; three[, 2] = a .* a;
  array[2, 1] row_vector[N] deep; deep[2, 1] = a'; deep[1, 1] = x';
  array[2] matrix[N, 2] both; both[1] = X; both[2] = X;
  target += sum(m * [2, 3]') + sum(one) + sum(three * [1, 2, 3]') + sum(deep[2, 1] .* deep[1, 1]) + sum(both[2] .* m);
}
generated quantities { array[2, 2] int k; k[2] = {1, 2}; k[1] = {bernoulli_rng(0.5), 3}; }
"""


@pytest.mark.parametrize("size", [3, 0])
def test_rows_columns_and_elements_of_arrays(size: int) -> None:
    data = {"N": size, "x": [0.5] * size, "X": [[1.5, -1]] * size}
    assert compare(PARTS, data, PASS, numerics=EXACT, points=2) == []
    module = module_of(PARTS)
    run_on(module)
    assert {m.name: m.pattern for m in memory_patterns(module)} == dict.fromkeys(
        ("x", "X", "T", "a", "t", "m", "one", "three", "deep", "both"), STATIC
    )


@pytest.mark.parametrize(
    "statements",
    [
        "m[, 1] = x; m[, 1] = x;",  # one of them is not assigned
        "m[, 1] = x; m[2] = x[1:2]';",  # a row among columns
        "m[, 1] = x; m[1, 2] = 3;",
        "m[, 1] = x; m[, 2] = y;",  # its size may be another
        "m[, 1] = x; if (N > 2) m[, 2] = x;",
        "m[, 1] = x; real s = sum(m); m[, 2] = x + s;",
        "for (j in 1:2) m[, j] = x;",
        "m[, 1] = x; m[, K] = x;",
    ],
)
def test_parts_that_are_not_all_of_it(statements: str) -> None:
    module = module_of(
        f"data {{ int N; int K; vector[N] x; vector[K] y; }} model {{ matrix[N, 2] m; {statements} target += sum(m); }}"
    )
    run_on(module)
    assert {m.name: m.pattern for m in memory_patterns(module)}["m"] == DYNAMIC
