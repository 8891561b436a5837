"""Explanations of statements: elements of vectorised ones, where values that are not finite began, loops, functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from explained_programs import at, culprit, elements, explained

from ulam import StanModel
from ulam.library import catalog
from ulam.library.functions import DENSITIES, function, named
from ulam.trace import NestedCallNode
from ulam.tracing.explain import explainer as explain_module
from ulam.tracing.explain.birth import births
from ulam.tracing.explain.elements import Interval, support
from ulam.tracing.nodes import ItemNode

MATRICES = """
data { matrix[2, 3] Y; array[2, 2] int k; array[3] int which; vector[4] v; }
parameters { real a; }
model {
  to_vector(Y) ~ uniform(a, 6.5);
  for (i in 1:2) Y[i] ~ uniform(0, 7.5);
  Y[:, 2] ~ uniform(0, 4.5);
  for (i in 1:2) k[i] ~ discrete_range(0, 3);
  v[which] ~ uniform(0, 30);
  v[2:] ~ uniform(0, 30);
  (v - 1) ~ uniform(0, 30);
}
"""


MATRICES_DATA = {"Y": [[1, 2, 8], [4, 5, 6]], "k": [[1, 2], [7, 3]], "which": [1, 4, 2], "v": [1, 20, 3, 40]}


def test_elements_have_the_names_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain_module, "MOST_CAUSES", 10)
    found = explained(MATRICES, MATRICES_DATA, [0.0])
    reasons = {at(cause).line: [e.reason for e in elements(cause).shown if e.reason] for cause in found.causes}
    assert reasons == {
        5: ["Y[1, 3] = 8.0 outside [0.0, 6.5]"],
        6: ["Y[1, 3] = 8.0 outside [0.0, 7.5]"],
        7: ["Y[2, 2] = 5.0 outside [0.0, 4.5]"],
        8: ["k[2, 1] = 7 outside [0, 3]"],
        9: ["v[4] = 40.0 outside [0.0, 30.0]"],
        10: ["v[4] = 40.0 outside [0.0, 30.0]"],
        11: ["(v - 1)[4] = 39.0 outside [0.0, 30.0]"],
    }
    assert [cause.loop for cause in found.causes] == [{}, {"i": 1}, {}, {"i": 2}, {}, {}, {}]
    names = [e.name for e in elements(found.causes[0]).shown]
    assert names == ["Y[1, 3]", "Y[1, 1]", "Y[2, 1]", "Y[1, 2]", "Y[2, 2]", "Y[2, 3]"]


def test_an_element_may_be_impossible_within_the_support() -> None:
    program = """data { array[3] int y; vector[3] x; } parameters { real s; }
transformed parameters { vector[3] p = inv_logit(x * s); }
model { y ~ bernoulli(p); }"""
    found = explained(program, {"y": [0, 1, 0], "x": [1, 1000, 1000]}, [1.0])
    assert elements(culprit(found)).shown[0].reason == "y[3] = 0 has log density -inf for theta = 1.0"
    assert elements(culprit(found)).guilty == 1


def test_a_scalar_left_side_has_no_elements() -> None:
    found = explained("parameters { real a; } model { a ~ uniform(0, 1); }", None, [2.0])
    cause = culprit(found)
    assert cause.elements is None and cause.notes == ["a = 2.0 outside [0.0, 1.0]"]


def test_elements_of_multivariate_densities() -> None:
    program = """data { array[2] vector[2] y; } parameters { real s; }
model { y ~ multi_student_t(3, [s, s]', identity_matrix(2)); y ~ dirichlet([s, 1]'); }"""
    found = explained(program, {"y": [[0, 1], [0.5, 0.5]]}, [2.0])
    shown = elements(culprit(found)).shown
    assert [e.name for e in shown] == ["y[1]", "y[2]"]
    assert shown[0].increment == -math.inf and math.isfinite(shown[1].increment)


# A variate outside, one inside, for arguments in the order of the library's definitions.
OUTSIDE: dict[str, tuple[list[float], list[float], list[float]]] = {
    "uniform": ([-1, 2], [-1.5, 2.5], [0.5]),
    "hypergeometric": ([5, 3, 4], [-1, 4], [1, 2]),
    "beta": ([2, 3], [-0.1, 1.1], [0.5]),
    "beta_proportion": ([0.3, 3], [-0.1, 1.1], [0.5]),
    "lognormal": ([0, 1], [-1, 0], [0.5]),
    "exponential": ([2], [-1], [0, 0.5]),
    "gamma": ([1, 2], [-1, 0], [0.5]),
    "inv_gamma": ([2, 1], [-1, 0], [0.5]),
    "chi_square": ([2], [-1], [0.5]),
    "inv_chi_square": ([2], [-1, 0], [0.5]),
    "scaled_inv_chi_square": ([2, 1], [-1, 0], [0.5]),
    "weibull": ([1, 2], [-1], [0.5]),
    "frechet": ([2, 1], [-1, 0], [0.5]),
    "rayleigh": ([1], [-1, 0], [0.5]),
    "loglogistic": ([1, 2], [-1, 0], [0.5]),
    "pareto": ([1.5, 2], [1.4], [1.5, 2]),
    "pareto_type_2": ([1.5, 2, 1], [1.4], [1.5, 2]),
    "wiener": ([1, 0.5, 0.5, 0], [0.4], [0.9]),
    "bernoulli": ([0.3], [-1, 2], [0, 1]),
    "bernoulli_logit": ([0.3], [-1, 2], [0, 1]),
    "binomial": ([3, 0.5], [-1, 4], [0, 3]),
    "binomial_logit": ([3, 0.5], [-1, 4], [0, 3]),
    "beta_binomial": ([3, 1, 2], [-1, 4], [0, 3]),
    "discrete_range": ([2, 4], [1, 5], [2, 4]),
    "poisson": ([2], [-1], [0, 3]),
    "poisson_log": ([2], [-1], [0, 3]),
    "neg_binomial": ([1, 2], [-1], [0, 3]),
    "neg_binomial_2": ([1, 2], [-1], [0, 3]),
    "neg_binomial_2_log": ([1, 2], [-1], [0, 3]),
    "beta_neg_binomial": ([1, 2, 3], [-1], [0, 3]),
    "yule_simon": ([1], [0], [1, 3]),
}  # fmt: skip


def _density(name: str, count: int) -> tuple[str, list[str], list[bool]]:
    """The library's function of so many arguments behind the bar, their names with the first, and which are ints."""
    from ulam.frontend.functions.definitions import overloads

    found = [f.definition for kind in DENSITIES for f in overloads(kind.of(name))]
    (definition,) = [d for d in found if len(d.arguments) == count + 1]
    types = [str(argument.type) for argument in definition.arguments]
    return definition.name, [a.name for a in definition.arguments], [t == "int" for t in types]


def test_supports_are_those_of_the_densities() -> None:
    """Of each that the definitions tell: within, the density is positive; outside, it is 0 or refused."""
    known = {n.stem for n in map(named, catalog.names()) if n.kind.is_density and function(n.normalized).support}
    assert {name for name in known if "_of_log_" not in name} == set(OUTSIDE)
    branches: list[str] = []
    points: list[tuple[int, float, bool]] = []
    for number, (name, (arguments, outside, inside)) in enumerate(OUTSIDE.items()):
        called, names, ints = _density(name, len(arguments))
        written = [str(int(a)) if is_int else repr(float(a)) for a, is_int in zip(arguments, ints[1:], strict=True)]
        branches.append(f"if (which == {number}) return {called}({'k' if ints[0] else 'y'} | {', '.join(written)});")
        interval = support(name, dict(zip(names[1:], arguments, strict=True)))
        assert isinstance(interval, Interval)
        for values, expected in ((outside, False), (inside, True)):
            for value in values:
                assert (value in interval) is expected, (name, value)
                points.append((number, value, expected))
    model = StanModel(
        "functions { real density(int which, real y, int k) {\n" + "\n".join(branches) + "\nreturn 0; } }"
    )
    for number, value, expected in points:
        k = int(value) if value == int(value) else 0
        node = model.track("density", number, float(value), k)
        reached = node.value if node.trace.error is None else -math.inf
        assert (reached > -math.inf) is expected, (list(OUTSIDE)[number], value)


FUNCTIONS = """functions {
  real g(real u, real v) {
    real w = u - v;
    return log(w) * 2;
  }
  real of_vector(vector v, int n) {
    vector[3] z;
    for (i in 1:n) {
      z[i] = g(v[i], 1) + v[i];
    }
    vector[3] q = z + 1;
    return sum(q) / 2 - 1;
  }
  real of_infinity(real x) {
    real big = exp(x);
    real r = big / big;
    return r - 1;
  }
  real unassigned(real x) {
    real r;
    return r + x;
  }
  real in_a_loop(real x) {
    real s = x;
    for (i in 1:3) {
      s = s - 1;
      s = sqrt(s);
    }
    return s;
  }
  real of_bounds(real x, real low) {
    real y = fmax(x, low);
    return log(y) + 0 * x;
  }
  real of_matrix(matrix m) {
    return sum(log(to_vector(m)));
  }
}"""


@pytest.fixture(scope="module")
def functions() -> StanModel:
    return StanModel(FUNCTIONS)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("of_vector", ([2, 0.5, 3], 3), [(4, "log", -0.5)]),
        ("of_infinity", (800.0,), [(15, "exp", 800.0), (16, "/", math.inf)]),
        ("in_a_loop", (2.5,), [(27, "sqrt", pytest.approx(-0.5259273564193048))]),
        ("of_bounds", (-1.0, -math.inf), [(33, "log", -1.0)]),
        ("of_matrix", (np.array([[1.0, 2.0], [-3.0, 4.0]]),), [(36, "log", -3.0)]),
    ],
)
def test_births(functions: StanModel, name: str, arguments: tuple[Any, ...], expected: list[Any]) -> None:
    root = functions.track(name, *arguments)
    assert isinstance(root, NestedCallNode)
    found = births(root[-1])
    places = [(f.node.span.line, f.node.function) for f in found if f.node.span and isinstance(f.node, ItemNode)]
    assert places == [(line, function) for line, function, _ in expected]
    for followed, (_, _, operand) in zip(found, expected, strict=True):
        value = followed.node.operands[0].value
        if isinstance(value, np.ndarray):
            assert followed.element is not None
            value = value.ravel(order="F")[followed.element[0]]
        assert value == operand


def test_a_variable_that_was_never_assigned(functions: StanModel) -> None:
    model = """parameters { real s; }
model {
  vector[2] v;
  real q;
  v[1] = s;
  target += sum(v);
  target += q;
  target += q + s;
}"""
    found = explained(model, None, [0.5])
    first, second, third = found.causes
    assert [b.text for b in first.births] == ["v[2] = nan: never assigned"]
    assert second.notes == ["'q' was never assigned a value"]
    assert [b.text for b in third.births] == ["nan + 0.5 = nan: 'q' was never assigned"]


def test_truncation() -> None:
    program = """data { vector[3] y; } parameters { real a; }
model {
  y ~ normal(a, 1) T[0, 2];
  for (n in 1:3)
    y[n] ~ normal(0, 1) T[1.5, ];
  a ~ normal(0, 1) T[-1, 1];
}"""
    found = explained(program, {"y": [1.6, 2.5, 1.2]}, [0.0])
    both = [(at(c).line, c.loop, c.notes) for c in found.causes]
    assert both == [
        (3, {}, ["y[2] = 2.5 is above the upper bound of the truncation, 2.0"]),
        (5, {"n": 3}, ["y[3] = 1.2 is below the lower bound of the truncation, 1.5"]),
    ]
    terms = {term.statement.line: term for term in found.terms}
    assert len(terms) == len(found.terms) == 3
    assert (terms[5].count, terms[5].not_finite, terms[5].worst) == (3, 1, {"n": 3})
    assert terms[5].truncation == -math.inf and terms[5].increment == -math.inf
    normal = -0.5 * math.log(2 * math.pi)
    assert terms[6].truncation == pytest.approx(0.381714, rel=1e-5)
    assert terms[6].increment == pytest.approx(normal + 0.381714, rel=1e-5) and terms[6].count == 1
    found = explained(program, {"y": [1.6, 1.9, 1.7]}, [0.0])
    terms = {term.statement.line: term for term in found.terms}
    mass = -math.log(0.5 * math.erfc(1.5 / math.sqrt(2)))
    each = [normal - 0.5 * y * y + mass for y in (1.6, 1.9, 1.7)]
    assert terms[5].increment == pytest.approx(sum(each)) and terms[5].truncation == pytest.approx(3 * mass)
    assert terms[5].worst == {"n": 2} and terms[5].worst_increment == pytest.approx(min(each))
    assert found.log_density == pytest.approx(sum(term.increment for term in found.terms))


LOOPS = """data { int N; vector[N] y; } parameters { real mu; real<lower=0> sigma; }
model {
  for (n in 1:N) y[n] ~ normal(mu * n, sigma);
  for (n in 1:N) for (k in 1:2) target += log(y[n] - k + mu);
  sigma ~ exponential(1);
}"""


def test_statements_in_loops_are_one_term() -> None:
    found = explained(LOOPS, {"N": 4, "y": [3, 4, 1.5, 9]}, [0.1, 0.0])
    target, normal, exponential, jacobian = found.terms
    assert (target.count, target.not_finite, target.worst) == (8, 1, {"n": 3, "k": 2})
    assert culprit(found).loop == {"n": 3, "k": 2} and culprit(found).births[0].expression == "log(-0.4) = nan"
    increments = [-0.5 * (y - 0.1 * k) ** 2 - 0.5 * math.log(2 * math.pi) for k, y in enumerate([3, 4, 1.5, 9], 1)]
    assert normal.increment == pytest.approx(sum(increments)) and normal.worst == {"n": 4}
    assert normal.worst_increment == pytest.approx(min(increments)) and normal.target_after == normal.increment
    assert exponential.increment == -1 and jacobian.label == "Jacobian of sigma"
    assert "n=3, k=2: NaN" in str(found) and "at n = 3, k = 2" in str(found)


USER = """functions {
  real foo_lpdf(vector y, real s) {
    real total = 0;
    for (i in 1:num_elements(y)) {
      real z = y[i] - s;
      total += log(z);
    }
    return total;
  }
  void penalty_lp(real x) {
    target += sqrt(x);
  }
}
data { vector[3] y; }
parameters { real s; }
model {
  y ~ foo(s);
  penalty_lp(s - 1);
}"""


def test_densities_and_functions_of_the_program() -> None:
    found = explained(USER, {"y": [2, 0.125, 3]}, [0.5])
    first, second = found.causes
    assert at(first).line == 17 and first.births[0].text == "log(-0.375) = nan"
    assert first.births[0].at is not None and first.births[0].at.line == 6
    assert [s.text for s in first.slice] == ["z = 0.125 - 0.5 = -0.375", "s = 0.5, a parameter", "y[2] = 0.125, data"]
    assert at(second).line == 11 and [call.line for call in second.calls] == [18]
    assert second.births[0].expression == "sqrt(-0.5) = nan"


def test_partial_sums() -> None:
    """Through `reduce_sum`, to what a NaN is made of; it is called at one place."""
    program = """functions {
      real part(array[] real y, int first, int last, real mu) { return normal_lpdf(y | log(mu - 5), 1); }
    }
    parameters { real mu; }
    model { target += reduce_sum(part, {1.0, 2.0}, 1, mu); }"""
    text = str(StanModel(program).explain([0.5]))
    assert "log(-4.5) = nan" in text and text.count("called at") == 1
    assert "mu is nan, but must be finite" in text


def test_nan_and_infinities_are_told_apart() -> None:
    program = """parameters { real a; }
model {
  real big = exp(a);
  target += big - big;
  target += -big;
  target += big;
  target += a;
}"""
    found = explained(program, None, [800.0])
    assert [cause.kind for cause in found.causes] == ["nan", "-inf", "+inf"]
    assert [term.statement.line for term in found.terms] == [4, 5, 6, 7]
    steps = [(step.text, step.at.line if step.at else 0) for step in found.causes[0].births]
    assert steps == [("big = exp(800.0) = inf", 3), ("inf - inf = nan", 4)]
    assert found.outcome == "nan"


def test_infinities_that_add_up_to_nan() -> None:
    program = """parameters { array[2] real<lower=0, upper=1> q; }
model {
  q ~ beta(0.5, 0.5);
  q ~ uniform(0, 0.25);
}"""
    found = explained(program, None, [0.0, 800.0])
    assert [cause.kind for cause in found.causes] == ["+inf", "-inf"] and found.outcome == "nan"
    assert [cause.summary for cause in found.causes] == [
        "q[2] = 1.0 has log density inf for alpha = 0.5, beta = 0.5", "q[1] = 0.5 outside [0.0, 0.25]"
    ]  # fmt: skip
    assert found.notes == ["terms of +infinity and -infinity add up to NaN"]


def test_parts_of_arguments_that_are_containers() -> None:
    program = "data { array[3] int k; } parameters { simplex[3] p; }\nmodel {\n  k ~ categorical(p);\n}"
    found = explained(program, {"k": [1, 2, 1]}, [-800.0, 0.0])
    first, third, second = elements(culprit(found)).shown
    assert first.reason.startswith("k[1] = 1 has log density -inf for theta = [0.0, 1.0, 2.118")
    assert (third.name, second.name) == ("k[3]", "k[2]") and elements(culprit(found)).guilty == 2


def test_rows_of_linear_models() -> None:
    program = """data { int N; matrix[N, 2] x; array[N] int y; } parameters { vector[2] b; }
model {
  y ~ poisson_log_glm(x, 0, b);
}"""
    found = explained(program, {"N": 3, "x": [[1, 2], [3, 400], [1, 1]], "y": [1, 2, 3]}, [1.0, 5.0])
    given = "x = [3.0, 400.0], alpha = 0.0, beta = [1.0, 5.0]"
    assert culprit(found).summary == f"y[2] = 2 has log density -inf for {given}"
    assert elements(culprit(found)).increments[0] == pytest.approx(11 - math.exp(11), rel=1e-10)


def test_a_sum_that_overflows() -> None:
    program = "parameters { real a; }\nmodel {\n  target += 1.5e308;\n  target += 1e308;\n}"
    found = explained(program, None, [0.0])
    assert found.outcome == "+inf" and at(culprit(found)).line == 4 and "overflows" in culprit(found).message
