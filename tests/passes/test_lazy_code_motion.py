"""lazy-code-motion changes neither what a program does nor its errors, computes less, and takes linear time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from program_generator import DATA, generate
from stan_interpreter import Interpreter, _OutOfFuel
from stan_programs import build, programs
from translation_validation import EXACT, Subject
from work import lines_executed
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ulam.dialects import stan
from ulam.passes import verify_dominance
from ulam.passes.analysis.code_motion import CodeMotion
from ulam.passes.analysis.expressions import Expressions
from ulam.passes.analysis.flow_graph import FlowGraph
from ulam.passes.optimize.lazy_code_motion import LazyCodeMotion
from ulam.passes.remarks import collect_remarks
from ulam.passes.value_form import promote_variables, structure_exits
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

pytestmark = pytest.mark.usefixtures("quick_code")

_SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)


def _run(module: ModuleOp, fuel: int) -> tuple[Any, list[Any]]:
    function = next(op for op in module.walk() if isinstance(op, stan.FuncOp))
    interpreter = Interpreter(fuel)
    result = interpreter.call(function, [5, 0, 2], [7, 8, 9])
    return result, interpreter.printed


@settings(max_examples=100, suppress_health_check=_SLOW)
@given(programs)
def test_random_function_does_the_same(program: list[Any]) -> None:
    module = build(program)
    try:
        expected = _run(module, 5_000)
    except _OutOfFuel:
        assume(False)
        raise
    LazyCodeMotion(least_cost=1).apply(Context(), module)
    module.verify()
    verify_dominance.run_on(module)
    assert _run(module, 100_000) == expected
    LazyCodeMotion(least_cost=1).apply(Context(), module)
    assert _run(module, 100_000) == expected
    structure_exits.run_on(module)
    promote_variables.run_on(module)
    module.verify()
    assert _run(module, 100_000) == expected


@pytest.mark.parametrize("seed", range(3))
def test_random_program_keeps_its_bits(seed: int) -> None:
    pipeline = "lazy-code-motion{least-cost=1 preserve-numerics=true}"
    subject = Subject(generate(7000 + seed), DATA, points=1)
    assert subject.compare(pipeline, EXACT, units=("gradient_propto", "constrain")).differences == []


FAILING = """
functions {
  real check(real x, real bound) { if (x > bound) reject("beyond ", bound); return 2 * x; }
}
data { int N; int first; }
parameters { real x; vector[2] v; }
transformed parameters {
  real y = 0;
  for (n in 1:N) { y += check(x, 1); if (n > 1) break; }
  print("y ", y);
  if (first) y += check(x, 0.5); else print("not first");
  y += check(x, 0.5);
}
model {
  x ~ normal(0, 1);
  for (n in 1:2) { print(n); target += check(x, 0.2) + [1, 2] * v; }
}
generated quantities {
  real z = first ? check(x, 0.1) : 0;
  for (n in 1:N) z += check(x, 0.15) * check(x, 0.1);
  while (check(x, 0.15) > z) z += 1;
}
"""


@pytest.mark.parametrize("n", [0, 3])
@pytest.mark.parametrize("first", [0, 1])
def test_errors_keep_their_place(n: int, first: int) -> None:
    points = [[x, 0.1, 0.2] for x in (0.05, 0.12, 0.17, 0.3, 0.7, 2.0)]
    subject = Subject(FAILING, {"N": n, "first": first}, points=points)
    assert subject.compare("lazy-code-motion{least-cost=1 preserve-numerics=true}", EXACT).differences == []
    assert subject.compare("one-step-loop-unrolling,lazy-code-motion{preserve-numerics=true}", EXACT).differences == []


SHARED = """
functions {
  matrix cov(vector x, real s) { return add_diag(tcrossprod(to_matrix(x, size(x), 1)), s); }
}
data { int N; vector[N] x; vector[N] y; matrix[N, N] A; }
parameters { real<lower=0> s; vector[N] b; }
model {
  vector[N] mu;
  for (n in 1:N) {
    if (x[n] > 0) continue;
    mu = A * b;
    target += normal_lpdf(y[n] | mu[n], s) + sum(exp(b));
  }
  y ~ multi_normal(A * b, cov(x, s));
  y ~ multi_normal(A * b + 1, cov(x, s));
  target += x[1] < 0 ? sum(A * b) : 0;
}
generated quantities {
  array[2] vector[N] z;
  for (i in 1:2) {
    z[i] = cholesky_decompose(cov(x, s)) * b;
    if (i == 2) break;
    z[i] += cholesky_decompose(cov(x, s)) * x;
  }
}
"""


def test_containers_are_shared() -> None:
    data = {"N": 3, "x": [-0.5, 0.4, -1.0], "y": [1.0, 0.0, 2.0], "A": [[1, 2, 3], [0, 1, 0.5], [0.2, 0, 1]]}
    subject = Subject(SHARED, data)
    assert subject.compare("lazy-code-motion{preserve-numerics=true}", EXACT).differences == []
    module = Compiler(SHARED, "model.stan", CompileOptions(0, pipeline="lazy-code-motion")).module
    names = [op.callee.data for op in module.walk() if isinstance(op, stan.CallOp) and op.user is not None]
    assert names == ["cov", "cov"]  # one in the model, one in the generated quantities


def _motion(text: str) -> CodeMotion:
    module = Compiler(text, "model.stan", CompileOptions(0, pipeline="")).module
    block = next(op for op in module.walk() if isinstance(op, stan.BlockOp) and op.kind.data == "model")
    return CodeMotion(Expressions(FlowGraph(block), stan.CallEffects(()), 8))


def test_analyses() -> None:
    motion = _motion("parameters { real p; } model { real x = 1; if (p > 0) x = exp(p); target += exp(p); }")
    graph = motion.found.graph
    before, then, otherwise, after = (node.number for node in graph.nodes[:4])
    assert motion.anticipated.after[before] == 1
    assert motion.available.before[after] == 0
    assert motion.available.after[then] == 1
    assert motion.postponable.before[then] == motion.postponable.before[otherwise] == 1
    assert motion.postponable.before[after] == 0
    assert motion.used.after[then] == 1
    assert motion.used.before[otherwise] == 0
    assert motion.at_end[otherwise] == 1


def test_remarks() -> None:
    text = """
    data { int N; matrix[2, 2] A; } parameters { vector[2] v; }
    model { for (n in 1:N) target += sum(A * v) + sum(exp(v)); target += sum(tanh(v)) * sum(tanh(v)); }
    """
    with collect_remarks() as remarks:
        Compiler(text, "model.stan", CompileOptions(0, pipeline="lazy-code-motion")).module  # noqa: B018
    said = [f"{r.subject}: {r.message}" for r in remarks]
    assert "sum(exp(v)): computed before the loop, read at 1 place" in said
    assert (
        "sum(tanh(v)): computed once, read at 2 places" in said
        or "sum(tanh(v)): computed once, read at 1 place" in said
    )
    assert "(A * v): stays in the loop: it may fail, and the loop may have no iteration" in said


_STATEMENTS = {
    "different": "s += exp(p * {i}.5) * sin(x[1]);\n",
    "killed": "s += exp(s * 0.5) + exp(s * 0.5) + sin(p + {i});\n",
    "twice": "s += exp(p * {half}.5);\n",
    "loops": "for (i in 1:N) s += exp(p * {half}.5) * sin(x[1]) + exp(s);\n",
    "branches": "if (s > {i}) s += exp(p * {i}.5) + exp(s); else s += exp(p * {half}.5);\n",
}


@pytest.mark.parametrize("kind", _STATEMENTS)
def test_work_is_linear(kind: str) -> None:
    def work(count: int) -> int:
        body = "".join(_STATEMENTS[kind].format(i=i, half=i // 2) for i in range(count))
        text = f"data {{ int N; vector[N] x; }} parameters {{ real p; }} model {{ real s = 0; {body} target += s; }}"
        module = Compiler(text, "model.stan", CompileOptions(0, pipeline="")).module
        return lines_executed(lambda: LazyCodeMotion().apply(Context(), module))

    work(1)
    assert work(100) < 2.05 * work(50)
