"""Adjoints on the tape and control dependence: acceptance tests 8 to 12 of tracing, and `check_gradient`.

Test 11, every model of the suite, is marked slow; three fast ones run always. `benchmarks/gradient_check.py` has
posteriordb.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gradient_programs_library import PROGRAMS, point
from trace_programs import PROGRAM
from work import lines_executed

from ulam import StanModel, trace
from ulam.library import derivatives
from ulam.library.terms import Application
from ulam.passes.autodiff import partials, sweeps
from ulam.runtime.errors import ArgumentError, Rejection
from ulam.trace import (
    Axis,
    DepthLimit,
    NestedCallNode,
    NoDerivative,
    Only,
    Scripted,
    TraceContext,
    backward,
    dependents,
    forward,
)
from ulam.tracing.contexts import Action
from ulam.tracing.nodes import ItemNode

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = """functions {
  real p(real x) { real a = x * x; real b = a + 1; return a * b; }
  real f2(real x) { return sin(x) + 1; }
  real g(real x, real y) { return sin(x + cos(y)) + x * y; }
  real zero(real x) { return 0.0; }
  real h(real x, int n) {
    int i = 0;
    real r = zero(x);
    while (i < n) {
      r += x ^ i;
      i += 1;
    }
    return r;
  }
  real phi(real x) { return h(f2(g(2 * x, x / 2)), 4); }
  real diamonds(real x) {
    real y = x;
    for (i in 1:200) y = sin(y) + cos(y);
    return y;
  }
  real nested(real x, int n) { if (n == 0) return x; return sin(nested(x, n - 1)) + x; }
  vector recurrence(vector x) {
    vector[size(x)] y = x;
    for (i in 2:size(x)) y[i] = y[i - 1] * y[i] + sum(y[1:2]);
    return y;
  }
  real total(vector x) { return sum(x .* x); }
  real choose(real x, int n) {
    real r = x;
    if (n > 2) {
      if (x > 0) r = 2 * x; else r = 3 * x;
    }
    for (i in 1:n) {
      if (i == 3) continue;
      if (i == 5) break;
      r += i * x;
    }
    return x < 10 && n > 0 ? r : -r;
  }
  tuple(real, vector) split(real x, vector v) { return (x * 2, v * x); }
  real use(tuple(real, vector) t) { return t.1 * sum(t.2); }
  real tuples(real x, vector v) {
    tuple(real, vector[2]) t = split(x, v);
    if (x > 0) t = (x, v);
    tuple(real, tuple(int, real)) u = (x, (1, x * x));
    return use(t) + t.1 + u.2.2;
  }
  real quiet_lp(real x) { target += x * x; x ~ normal(0, 1); return sin(x); }
}"""
MODEL = """
data { int N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; simplex[3] s; cov_matrix[2] S; }
transformed parameters { real tau = exp(mu) + s[2]; }
model {
  y ~ normal(mu, sigma);
  target += s;
  sigma ~ lognormal(0, tau);
  mu ~ normal(0, 10) T[-3, ];
  real q = quiet_lp(mu);
  target += q * target();
  S ~ wishart(4, diag_matrix([1, 2]'));
}"""
DATA = {"N": 3, "y": [0.1, 0.4, 0.5]}


@pytest.fixture(scope="module")
def model() -> StanModel:
    return StanModel(FUNCTIONS)


@pytest.fixture(scope="module")
def density() -> StanModel:
    return StanModel(FUNCTIONS + MODEL, DATA)


# ---------------------------------------------------------------- values


def test_8_later_consumers_come_first(model: StanModel) -> None:
    """Acceptance test 8."""
    node = model.track("p", 3.0)
    assert node.value == 90.0
    assert node.trace.adjoint() == {"x": 114.0}
    assert isinstance(node, NestedCallNode)
    assert [n.adjoint for n in node] == [None, 114.0, 19.0, 9.0, 1.0, 1.0]


def test_9_each_node_of_a_chain_of_diamonds_once(model: StanModel) -> None:
    """Acceptance test 9."""
    node = model.track("diamonds", 0.3)
    assert isinstance(node, NestedCallNode)
    found = backward(node[-1])
    half = node[len(node) // 2]
    assert lines_executed(lambda: backward(node[-1])) < 3 * lines_executed(lambda: backward(half))
    positions = [n.at for n in found]
    assert len(found) > 600
    assert all(a > b for a, b in zip(positions, positions[1:], strict=False))


@pytest.mark.parametrize(
    ("name", "arguments", "gradient"),
    [
        ("f2", (42.0,), [-0.39998531498835127]),
        ("g", (2.0, 3.0), [3.5318543672416975, 1.924944707408176]),
        ("h", (2.4, 4), [23.08, None]),
        ("h", (11.11, 1), [0.0, None]),
        ("phi", (1.1,), [2.0732109225323643]),
    ],
)
def test_10_gradients_of_functions(model: StanModel, name: str, arguments: tuple, gradient: list) -> None:
    """Acceptance test 10."""
    found = list(model.track(name, *arguments).trace.adjoint().values())
    assert [g is None for g in found] == [g is None for g in gradient]
    for a, b in zip(found, gradient, strict=True):
        assert a is None or a == pytest.approx(b, rel=1e-12, abs=0)
    if name == "phi":
        assert model.track(name, *arguments).value == pytest.approx(14.385097738558159, rel=1e-12)


def test_12_slices_with_control(model: StanModel) -> None:
    """Acceptance test 12."""
    node = StanModel(PROGRAM).track("h", 2.0, 2)
    assert isinstance(node, NestedCallNode)
    both = Axis.PRECEDING | Axis.PARENT
    data = [23, 19, 18, 15, 14, 12, 11, 10, 7, 6, 4, 2]
    assert [n.at for n in backward(node[26], axis=both)] == data
    with_control = sorted([*data, 17, 16, 9, 8, 3], reverse=True)
    assert [n.at for n in backward(node[26], axis=both, control=True)] == with_control


# ---------------------------------------------------------------- control dependence


def test_what_a_jump_decided_on(model: StanModel) -> None:
    node = StanModel(PROGRAM).track("h", 2.0, 2)
    assert isinstance(node, NestedCallNode)
    assert dependents(node[17]) == []
    # the body, its jump back, and whether there is another turn
    assert [n.at for n in dependents(node[17], control=True)] == [18, 19, 20, 21, 22, 23, 24, 25]
    assert 26 not in [n.at for n in forward(node[8], control=True)[:-1]]
    inside = forward(node[8], control=True)
    assert [n.at for n in inside] == [*range(9, 27)]  # through @23, which the returned value is
    assert [n.at for n in forward(node[8])] == [9]


def test_forward_and_backward_are_inverse(model: StanModel) -> None:
    """What is in a node's slice has that node among what follows from it; one jump decided on each node."""
    node = model.track("choose", 0.5, 6)
    assert isinstance(node, NestedCallNode)
    following = {m.at: {b.at for b in forward(m, control=True)} for m in node}
    for other in node:
        assert all(other.at in following[m.at] for m in backward(other, control=True)), str(other)
    jumps = [m for m in node if isinstance(m, trace.JumpNode)]
    decided = [b.at for jump in jumps for b in dependents(jump, control=True)]
    assert len(decided) == len(set(decided)) > 20


def test_slices_across_calls(model: StanModel) -> None:
    """What the caller passed, and what that was made of."""
    node = model.track("nested", 0.5, 2)
    assert isinstance(node, NestedCallNode)
    inner = next(n for n in node if isinstance(n, NestedCallNode))
    both = Axis.PRECEDING | Axis.PARENT
    passed = [operand for operand in inner.operands if isinstance(operand, trace.Ref)]
    for parameter, operand in zip(inner.call_arguments, inner.operands, strict=True):
        expected = [operand.node] if isinstance(operand, trace.Ref) else []
        assert trace.referenced(parameter, Axis.PARENT) == trace.referenced(parameter, both) == expected
        assert trace.referenced(parameter, Axis.PRECEDING) == []
    outside = [n for n in backward(inner[-1], axis=both) if n.parent == node]
    assert {operand.node for operand in passed} <= set(outside)  # n, too: what it passes on is one less


def test_control_across_calls(model: StanModel) -> None:
    node = model.track("nested", 0.5, 2)
    assert isinstance(node, NestedCallNode)
    deepest = node
    while inner := [n for n in deepest if isinstance(n, NestedCallNode)]:
        deepest = inner[0]
    across = backward(deepest[-1], axis=Axis.PRECEDING | Axis.PARENT, control=True)
    jumps = [n for n in across if isinstance(n, trace.JumpNode)]
    assert len(jumps) == 3  # one per call
    start = next(n for n in node if isinstance(n, trace.JumpNode))
    found = dependents(start, across=True, control=True)
    assert deepest[-1] in forward(start, across=True, control=True)
    assert deepest[-1] not in found


# ---------------------------------------------------------------- adjoints


def test_a_container_that_is_changed_in_a_loop(model: StanModel) -> None:
    x, seed = np.array([1.0, 2, 3, 4, 5]), np.array([1.0, 2, 3, 4, 5])
    node = model.track("recurrence", x)
    found = node.trace.adjoint(seed)["x"]
    for n in range(5):
        step = 1e-6 * np.eye(5)[n]
        ends = [seed @ model.track("recurrence", x + sign * step).value for sign in (1, -1)]
        assert found[n] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-8)
    # Each state of the container has adjoints of its own: those of elements that are replaced are 0 before.
    assert isinstance(node, NestedCallNode)
    assigned = [n for n in node if isinstance(n, trace.SpecialCallNode) and n.function == "index_assign"]
    assert [n.adjoint[-1] for n in assigned[-2:]] == [assigned[-2].adjoint[-1], 5.0]
    np.testing.assert_array_equal(assigned[-1].adjoint, seed)
    np.testing.assert_array_equal(node[2].adjoint, found)
    assert [n.adjoint for n in reversed(assigned)][0].tolist() == seed.tolist()  # in any order


def test_work_of_deep_recursion_and_long_loops_is_linear(model: StanModel) -> None:
    def work(n: int) -> int:
        trace = model.track("nested", 0.3, n).trace
        return lines_executed(trace.adjoint)

    work(10)
    assert work(400) < 2.05 * work(200)


def test_tuples_pass_adjoints_on(model: StanModel) -> None:
    v = np.array([1.0, 2.0])
    found = model.track("tuples", 1.5, v).trace.adjoint()
    assert found["x"] == v.sum() + 1 + 2 * 1.5
    np.testing.assert_array_equal(found["v"], [1.5, 1.5])
    found = model.track("tuples", -1.5, v).trace.adjoint()  # 2 x * sum(x v) + 2 x + x * x
    assert found["x"] == pytest.approx(4 * -1.5 * v.sum() + 2 - 3)
    with pytest.raises(NoDerivative, match="let the context enter"):
        model.track("tuples", 1.5, v, context=Only()).trace.adjoint()


def test_versions_have_adjoints_of_their_own(model: StanModel) -> None:
    for name, before, after in (("h", (2.4, 4), (2.4, 3)), ("phi", (1.1,), (0.3,)), ("choose", (0.5, 6), (0.7, 4))):
        changed = dict(zip(("x", "n"), after, strict=False))
        version = model.track(name, *before).trace.update(**changed).trace
        assert version.adjoint() == model.track(name, *after).trace.adjoint()
    x = np.array([1.0, 2, 3, 4, 5])
    version = model.track("recurrence", x).trace.update(x=x / 2).trace
    expected = model.track("recurrence", x / 2).trace.adjoint(np.ones(5))
    np.testing.assert_array_equal(version.adjoint(np.ones(5))["x"], expected["x"])


def test_versions_of_log_densities_are_checked(density: StanModel) -> None:
    theta = np.random.default_rng(1).normal(size=density.param_unc_num())
    node = density.track_density(theta)
    version = node.trace.update(mu=0.5).trace
    theta[0] = 0.5
    expected = density.as_written.log_density_gradient(theta, propto=False)[1]
    np.testing.assert_allclose(version.adjoint(), expected, rtol=1e-12, atol=1e-13)
    assert version.check_gradient(differences=False)
    tau = next(n for n in node if isinstance(n, trace.PrimitiveCallNode) and n.function == "exp")
    with pytest.raises(ArgumentError, match="were changed"):
        node.trace.update({tau: 2.0}).trace.check_gradient()


def test_what_the_context_leaves_out(model: StanModel) -> None:
    """Gradients do not depend on how much is recorded, or there is an error."""
    expected = model.track("h", 0.99, 3000).trace.adjoint()
    for mode in ("edges", "spill"):
        context = TraceContext(overflow=mode, limit_bytes=65536 if mode == "spill" else 1 << 30)
        assert model.track("h", 0.99, 3000, context=context).trace.adjoint() == expected
    for mode in ("stop", "ring"):
        with pytest.raises(ArgumentError):
            model.track("h", 0.99, 3000, context=TraceContext(overflow=mode, limit_bytes=65536)).trace.adjoint()
    expected = model.track("nested", 0.3, 8).trace.adjoint()["x"]
    for depth in (1, 2, 6):
        assert model.track("nested", 0.3, 8, context=DepthLimit(depth)).trace.adjoint()["x"] == expected
    with_literals = model.track("nested", 0.3, 8, context=TraceContext(constants=True))
    assert with_literals.trace.adjoint()["x"] == expected

    class WithoutSines(TraceContext):
        def on_call(self, site: trace.Site, depth: int) -> Action:
            return trace.Skip() if site.name == "sin" else super().on_call(site, depth)

    with pytest.raises(ArgumentError):
        model.track("nested", 0.3, 8, context=WithoutSines()).trace.adjoint()
    without_values = model.track("nested", 0.3, 8, context=TraceContext(record=["tilde"])).trace
    with pytest.raises(ArgumentError, match="not kept"):
        without_values.adjoint()
    assert without_values.check_gradient(differences=False)


def test_adjoints_of_another_node(model: StanModel) -> None:
    node = model.track("phi", 1.1)
    assert isinstance(node, NestedCallNode)
    inner = next(n for n in node if isinstance(n, NestedCallNode) and n.function == "g")
    sine = next(n for n in inner if isinstance(n, trace.PrimitiveCallNode) and n.function == "sin")
    found = node.trace.adjoint(node=sine)
    x = 1.1
    assert found["x"] == pytest.approx(np.cos(2 * x + np.cos(x / 2)) * (2 - np.sin(x / 2) / 2), rel=1e-14)
    assert sine.adjoint == 1.0
    assert node[-1].adjoint == 0.0


def test_large_containers_are_copied_for_the_check_only(model: StanModel) -> None:
    x = np.linspace(0, 1, 100)
    node = model.track("total", x)
    with pytest.raises(ArgumentError, match=r"containers=\"copy\""):
        node.trace.adjoint()
    assert node.trace.check_gradient(differences=False)
    copied = model.track("total", x, context=TraceContext(containers="copy"))
    np.testing.assert_array_equal(copied.trace.adjoint()["x"], 2 * x)


def test_errors(model: StanModel, density: StanModel, tmp_path: Path) -> None:
    node = model.track("phi", 1.1)
    assert isinstance(node, NestedCallNode)
    with pytest.raises(ArgumentError, match="call trace.adjoint"):
        _ = node.adjoint
    with pytest.raises(ArgumentError, match="only reals"):
        node.trace.adjoint(node=node[1])
    with pytest.raises(ArgumentError, match="shape"):
        node.trace.adjoint(seed=np.ones(2))
    node.trace.save(tmp_path / "saved")
    with pytest.raises(ArgumentError, match="loaded from a file"):
        trace.load(tmp_path / "saved").trace.adjoint()
    failed = density.track_density(np.array([0.0, -800.0, 0, 0, 0, 0, 0]))
    assert failed.trace.error is not None
    with pytest.raises(ArgumentError, match="no value"):
        failed.trace.adjoint()


# ---------------------------------------------------------------- log densities


@pytest.mark.parametrize(
    ("context", "jacobian"), [(TraceContext(), True), (Only(), False)], ids=["entered", "primitive"]
)
def test_adjoints_of_a_log_density(density: StanModel, jacobian: bool, context: TraceContext) -> None:
    theta = np.random.default_rng(1).normal(size=density.param_unc_num())
    node = density.track_density(theta, jacobian=jacobian, context=context)
    found = node.trace.adjoint()
    expected = density.as_written.log_density_gradient(theta, propto=False, jacobian=jacobian)[1]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    data = next(n for n in node if isinstance(n, trace.ArgumentNode) and n.name == "y")
    mu, sigma = theta[0], np.exp(theta[1])
    # `target()` is read after the first terms, so these count more than once
    weight = 1 + np.sin(mu)
    np.testing.assert_allclose(data.adjoint, -weight * (np.array(DATA["y"]) - mu) / sigma**2, rtol=1e-12)


def test_draws_have_adjoints_but_pass_none_on() -> None:
    source = "functions { real f_rng(real a) { real u = uniform_rng(0, a); return u * u + a; } }"
    node = StanModel(source).track("f_rng", 3.0, rng=Scripted([0.5]))
    assert node.trace.adjoint() == {"a": 1.0}
    assert isinstance(node, NestedCallNode)
    (draw,) = (n for n in node if isinstance(n, trace.DrawNode))
    assert draw.adjoint == 3.0


# ---------------------------------------------------------------- check_gradient


def test_functions_are_checked(model: StanModel) -> None:
    for name, arguments in (("phi", (1.1,)), ("h", (2.4, 4)), ("nested", (0.4, 7)), ("choose", (0.5, 6))):
        check = model.track(name, *arguments).trace.check_gradient()
        assert check, str(check)
        assert set(check.errors) == {"level 0", "differences"}
        assert check.values["tape"] == check.values["level 0"]


def test_a_wrong_rule_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node whose pullback is wrong, in the call where it first happens; all else agrees with itself."""

    def planted(name: str) -> derivatives.Rule:
        rule = derivatives.rule(name)
        if name != "sin":
            return rule
        return derivatives.Rule(rule.arguments, (Application("neg", rule.partials),))

    monkeypatch.setattr(partials, "rule", planted)
    monkeypatch.setattr(partials, "_partials", partials._partials.__wrapped__)
    model = StanModel(FUNCTIONS + MODEL, DATA, cache=False)
    node = model.track("phi", 1.1)
    check = node.trace.check_gradient()
    assert check.wrong == ["differences"]
    assert isinstance(check.node, ItemNode) and check.node.parent is not None
    assert (check.node.function, check.node.parent.function) == ("sin", "g")
    assert "sin" in check.problem and ":4:" in check.problem
    of_density = model.check_gradient(np.random.default_rng(1).normal(size=model.param_unc_num()))
    assert not of_density
    assert of_density.node is not None and of_density.node.parent is not None
    assert of_density.node.parent.function == "quiet_lp"
    assert "mu" in str(of_density)


def test_the_example_of_the_guide(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "tracing.md").read_text().partition("## Gradients\n")[2]
    code, _, rest = text.partition("```python\n")[2].partition("```")
    monkeypatch.chdir(ROOT)
    exec(compile(code, "tracing.md", "exec"), {})
    assert capsys.readouterr().out.strip() == rest.partition("```text\n")[2].partition("```")[0].strip()


def test_a_wrong_sweep_is_not_blamed_on_an_op(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps.ReverseMode, "_needs_reverse_order", lambda *_: False)
    source = """data { int N; } parameters { vector[N] x; }
    model { vector[N] y = x; for (i in 2:N) y[i] = y[i - 1] * y[i]; target += y[N]; }"""
    model = StanModel(source, {"N": 4}, cache=False, opt_level=0)
    check = model.check_gradient(np.array([1.0, 2.0, 3.0, 4.0]))
    assert check.wrong == ["level 0"]
    assert check.node is None
    assert "put together" in str(check)


def test_solvers_agree_as_far_as_their_tolerances_go() -> None:
    def source(tolerance: str) -> str:
        return f"""functions {{ vector f(real t, vector z, real a) {{ return [a * z[2], -z[1] ^ 3]'; }} }}
        parameters {{ real a; }}
        model {{
          array[2] vector[2] z = ode_rk45_tol(f, [1, 0.5]', 0, {{1.5, 4}}, {tolerance}, 10000, a);
          target += z[2];
        }}"""

    assert StanModel(source("1e-13, 1e-13"), opt_level=0).check_gradient(np.array([1.5]), rtol=1e-8)
    loose = StanModel(source("1e-2, 1e-2"), opt_level=0).check_gradient(np.array([1.5]), rtol=1e-8)
    assert not loose
    assert "tolerances" in str(loose)


FAST = ["eight_schools"]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.stan"))
SOLVED = ("ode_", "integrate_ode")


def _check_at_five_points(model: StanModel, first: list[np.ndarray], rtol: float) -> None:
    """Acceptance test 11 of one model; points where the program rejects are drawn again."""
    rng = np.random.default_rng(11)
    points = list(first)
    done = 0
    for _ in range(50):
        theta = points.pop() if points else rng.uniform(-1, 1, model.param_unc_num())
        try:
            check = model.check_gradient(theta, rtol=rtol, differences=done == 0)
        except Rejection:
            continue
        assert check, str(check)
        traced, untraced = check.values["tape"], check.values["level 0"]
        assert traced == untraced or (np.isnan(traced) and np.isnan(untraced))
        done += 1
        if done == 5:
            return
    raise AssertionError(f"only {done} points are inside of the support")


@pytest.mark.parametrize(
    "name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in EXAMPLES]
)  # fmt: skip
def test_11_gradients_of_examples(name: str) -> None:
    """Acceptance test 11."""
    path = ROOT / "examples" / f"{name}.stan"
    _check_at_five_points(StanModel(path, path.with_suffix(".json")), [], 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_11_gradients_of_programs(name: str) -> None:
    """Acceptance test 11, for the programs that the gradients are tested with."""
    source, data = PROGRAMS[name]
    model = StanModel(source, data)
    rtol = 1e-8 if any(word in source for word in SOLVED) else 1e-12
    _check_at_five_points(model, [point(name, model.param_unc_num())], rtol)
