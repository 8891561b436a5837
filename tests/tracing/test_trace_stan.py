"""Traces written as Stan programs: compiled and called with the same arguments, they give the same bits."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from trace_programs import PROGRAM, UNIFORMS
from traced_random_programs import Generator, Oracle, OutOfFuel, stan_text

from ulam import StanModel
from ulam.runtime.errors import ArgumentError
from ulam.trace import (
    DepthLimit,
    NestedCallNode,
    Node,
    PrimitiveCallNode,
    Scripted,
    Seeded,
    TraceContext,
    functions,
    track,
)
from ulam.tracing.nodes import ItemNode
from ulam.tracing.tape.values import MISSING, same

VARIETY = """functions {
  vector filled(int n) {
    vector[n] v;
    matrix[2, n] m = rep_matrix(1.5, 2, n);
    for (i in 1:n) v[i] = m[2, i] / (i - 1);
    for (x in m) v[1] += x;
    m[1] = m[2, 1:n];
    m[:, 2] = m[:, 1] * -2.5;
    return m' * [1e300, 1e10]' + v;
  }
  real promoted(int n) {
    real a = n;
    array[2] int k = {n, 4};
    array[2] real w = k;
    array[0] int none;
    real unset;
    return a / 2 + n / 2 + w[2] / k[1] + size(none) + (n > 2 && a < 9 ? 1 : 0.5) + (is_nan(unset) ? 0.1 : 0);
  }
  array[] real kept(array[] real x, int n) {
    array[size(x)] real y = x;
    array[size(x)] real z = y;
    for (i in 1:n) { y[i] = z[i] * 2; z = y; y[i] += 1; }
    return append_array(y, z);
  }
  tuple(real, int) unknown(real x) { return (x, 1); }
  real uses_unknown(real x) { tuple(real, int) p = unknown(x); return p.1; }
  void tell(int n) { print("n = ", n); }
  real quiet_NaN() { return not_a_number() - negative_infinity(); }
  real dist_lpdf(real y, real m) { return normal_lupdf(y | m, 1) - 0.5; }
  int extreme() { int i = -2147483647; return i - 1; }
  real fails(real x) { real y = log(x); if (is_nan(y)) reject("no ", x); return y; }
  real index_fails(array[] real x) { return x[4]; }
  real drawn_rng(int n) {
    vector[n] v = multi_normal_cholesky_rng(rep_vector(0, n), identity_matrix(n));
    return sum(v) * categorical_rng([0.25, 0.75]') + normal_rng(0, 1);
  }
}
"""


@pytest.fixture(scope="module")
def variety() -> Any:
    return functions(VARIETY)


def name_of(text: str) -> str:
    return re.findall(r"^  \S.* (\w+)\([^;{]*\) \{$", text, re.MULTILINE)[-1]


def check(node: ItemNode, arguments: Sequence[Any]) -> str:
    """Compiles what a trace is written as, and runs it at the same arguments; its text."""
    text = node.to_stan()
    found = track(functions(text)[name_of(text)], *arguments)
    assert found.trace.error is None, (text, found.trace.error)
    assert same(found.value, node.value), f"{found.value} for {node.value}:\n{text}"
    body = text[text.rindex(f" {name_of(text)}(") :]
    assert not re.search(r"^\s*(if|for|while|else)\b", body, re.MULTILINE), "a straight line"
    return text


def computed(node: Node) -> list[tuple[str, Any]]:
    """Name and value of all ops of a trace, in order; of calls that were entered, what is inside."""
    found: list[tuple[str, Any]] = []
    for child in node.children:
        if isinstance(child, NestedCallNode):
            found += computed(child)
        elif isinstance(child, PrimitiveCallNode):
            found.append((child.function, child.value))
    return found


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("f", (1.0,)), ("h", (2.0, 2)), ("h", (-0.3, 9)), ("geom_rng", (1, 0.5)), ("geomt_rng", (1, 0.5)),
     ("geomb_rng", (1, 0.5))],
)  # fmt: skip
def test_functions_of_the_listings(name: str, arguments: tuple[Any, ...]) -> None:
    node = track(functions(PROGRAM)[name], *arguments, rng=Scripted(UNIFORMS))
    text = check(node, arguments)
    again = track(functions(text)[name_of(text)], *arguments)
    ours = [(op, value) for op, value in computed(node) if not op.endswith("_rng")]
    assert computed(again) == ours, "the same ops with the same values"


def test_text_of_h(tmp_path: Path) -> None:
    node = track(functions(PROGRAM).h, 2.0, 2)
    text = node.to_stan(tmp_path / "h.stan")
    assert (tmp_path / "h.stan").read_text() == text
    assert "real h_trace(real x, int n) {" in text and "// @25: goto §4 since @24 == false" in text
    assert "    real v11 = 0.0 + v10;  // line 8\n" in text
    assert "real other(real x, int n) {" in node.to_stan(name="other")
    assert isinstance(node, NestedCallNode) and "real zero_trace(real x) {" in node[4].to_stan()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("filled", (3,)), ("promoted", (3,)), ("kept", ([1.5, -2.0, 0.1], 2)), ("kept", ([], 0)), ("quiet_NaN", ()),
     ("extreme", ()), ("dist_lpdf", (0.3, 1.1)), ("drawn_rng", (2,))],
)  # fmt: skip
def test_variety(variety: Any, name: str, arguments: tuple[Any, ...]) -> None:
    check(track(variety[name], *arguments, rng=Seeded(7)), arguments)


def test_literals_as_nodes() -> None:
    check(track(functions(PROGRAM).h, 2.0, 2, context=TraceContext(constants=True)), (2.0, 2))
    check(track(functions(PROGRAM).h, 2.0, 2, context=TraceContext(max_depth=1000)), (2.0, 2))


def test_functions_that_are_not_entered_come_along(variety: Any) -> None:
    node = track(functions(PROGRAM).h, 2.0, 3, context=DepthLimit(2))
    assert "real zero(real x) { return 0.0; }" in check(node, (2.0, 3))


def test_prints_once_more(variety: Any, capsys: pytest.CaptureFixture[str]) -> None:
    text = track(variety.tell, 3).to_stan()
    track(functions(text)[name_of(text)], 3)
    assert capsys.readouterr().out == "n = 3\n" * 2


def test_a_run_that_failed_fails_once_more(variety: Any) -> None:
    for name, arguments in (("fails", (-1.0,)), ("index_fails", ([1.0, 2.0],))):
        node = track(variety[name], *arguments)
        text = node.to_stan()
        again = track(functions(text)[name_of(text)], *arguments)
        assert again.value is MISSING and node.trace.error is not None and again.trace.error is not None
        assert again.trace.error.message == node.trace.error.message
    cut = track(functions(PROGRAM).geom_rng, 1, 0.5, rng=Scripted(UNIFORMS[:1]))
    text = cut.to_stan()
    assert track(functions(text).geom_trace, 1, 0.5).trace.error is not None


@pytest.mark.parametrize("propto", [False, True])
def test_density(propto: bool) -> None:
    program = """functions {
      real my_lpdf(vector y, real m, real s) { return normal_lupdf(y | m, s) - 1; }
      real sq(real x) { return x * x; }
    }
    data { int N; vector[N] y; array[N] int k; }
    parameters { real mu; real<lower=0> sigma; simplex[3] p; }
    transformed parameters { real z = sq(mu); }
    model {
      mu ~ normal(z, 10);
      y ~ my(mu, sigma);
      k ~ poisson_log(mu);
      target += -sigma;
      target += y;
      p ~ dirichlet([1, 2, 3]');
    }
    """
    model = StanModel(program, {"N": 2, "y": [0.5, -1.5], "k": [1, 3]}, opt_level=0)
    node = model.track_density([0.25, 0.5, 0.1, 0.2], propto=propto)
    assert isinstance(node, NestedCallNode)
    text = check(node, [argument.value for argument in node.call_arguments])
    assert ("normal_lpdf(" in text) == (not propto) and "Jacobian term of sigma" in text


def test_what_is_refused(variety: Any) -> None:
    h = functions(PROGRAM).h
    for node, told in (
        (track(h, 1.0, 2000), "max_nodes"),
        (track(h, 1.0, 2, context=DepthLimit(1)), "entered"),
        (track(h, 1.0, 300, context=TraceContext(limit_bytes=4096)), "limit_bytes"),
        (track(functions("functions { complex z(real x) { return x; } }").z, 1.0), "type that traces do not keep"),
    ):
        with pytest.raises(ArgumentError, match=told):
            node.to_stan()
    large = track(variety.drawn_rng, 70, rng=Seeded(1))
    with pytest.raises(ArgumentError, match="containers='copy'"):
        large.to_stan()
    copied = track(variety.drawn_rng, 70, rng=Seeded(1), context=TraceContext(containers="copy"))
    check(copied, (70,))


def check_random(seed: int) -> int:
    program = Generator(seed).program()
    choose = random.Random(seed)
    draws = [choose.random() for _ in range(2000)]
    name, arguments = program[-1][0], (choose.randint(1, 3), choose.choice([0.5, -1.5, 3.0]), [1, -4, 5])
    oracle = Oracle(program, draws)
    try:
        oracle.call(name, *arguments)
    except (OutOfFuel, RecursionError, StopIteration):
        return 0
    node = track(functions(stan_text(program))[name], *arguments, rng=Scripted(draws))
    if len(oracle.log) > 400:
        return 0
    check(node, arguments)
    return len(oracle.log)


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed: int) -> None:
    check_random(seed)


@pytest.mark.slow
def test_many_random_programs() -> None:
    counts = [check_random(seed) for seed in range(200)]
    assert sum(count > 0 for count in counts) > 100
