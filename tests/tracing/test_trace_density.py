"""Traces of models: `~`, `target +=` and Jacobian nodes, and the log density as the untraced program gives it."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gradient_programs_library import PROGRAMS

from ulam import DataError, Rejection, StanModel
from ulam.runtime.errors import ArgumentError
from ulam.runtime.names import by_name
from ulam.trace import (
    MISSING,
    ConstrainNode,
    DepthLimit,
    DrawNode,
    NestedCallNode,
    NestedTildeNode,
    Node,
    Scripted,
    TargetNode,
    TargetTerm,
    TildeNode,
    TraceContext,
    format_levels,
    load,
)
from ulam.tracing.nodes import ItemNode
from ulam.tracing.session import ModelRoot

EXAMPLES = Path(__file__).parents[2] / "examples"

U = """data { int<lower=0> N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; }
model {
  mu ~ normal(0, 10);
  sigma ~ lognormal(0, 1);
  y ~ uniform(mu - sigma, mu + sigma);
}
"""
N = """parameters { real a; }
model {
  real s = log(a);
  a ~ normal(0, 1);
  target += s;
}
"""
E = """data { vector[2] y; } parameters { real z; }
transformed parameters { real tau = exp(z); }
model { y ~ normal(0, tau); }
"""


def terms(node: NestedCallNode) -> list[TargetTerm]:
    """What adds to the target, in the frames that were entered, too."""
    found: list[TargetTerm] = []
    work: list[Node] = [node]
    while work:
        current = work.pop()
        if isinstance(current, TargetTerm):
            found.append(current)
        work += reversed(list(current.children))
    return found


def line_of(node: Node) -> int:
    assert node.span is not None
    return node.span.line


# ---------------------------------------------------------------- the programs of acceptance tests 13 to 15


def test_terms_of_u() -> None:
    """Acceptance test 13, the nodes."""
    model = StanModel(U, {"N": 3, "y": [0.1, 0.4, 5.0]})
    node = model.track_density([0.0, 0.0])
    jacobian, *tildes = terms(node)
    assert isinstance(jacobian, TargetNode)
    assert (jacobian.cause, jacobian.parameter, jacobian.value) == ("jacobian", "sigma", 0.0)
    assert jacobian.increment.value == 0.0
    assert [line_of(term) for term in tildes] == [4, 5, 6]
    assert [term.value for term in tildes] == pytest.approx(
        [-3.2215236261987186, -0.9189385332046727, -math.inf], rel=1e-12
    )
    assert [term.target_after for term in tildes] == pytest.approx(
        [-3.2215236261987186, -4.140462159403391, -math.inf], rel=1e-12
    )
    last = tildes[-1]
    assert isinstance(last, TildeNode)
    assert (last.distribution, last.observed) == ("uniform", True)
    assert last.left.value.tolist() == [0.1, 0.4, 5.0]
    assert [argument.value for argument in last.arguments] == [-1.0, 1.0]
    assert not any(term.observed for term in tildes[:-1] if isinstance(term, TildeNode))
    assert last.span is not None and (last.span.column, last.span.end_column) == (3, 38)
    assert node.value == -math.inf and node.trace.error is None


def test_listing_of_u() -> None:
    """The printed form of specification 2.6: transforms, adjustments and both signs of `~`."""
    node = StanModel(U, {"N": 1, "y": [0.5]}).track_density([0.0, 0.0])
    lines = format_levels(node).split("\n")
    assert lines[0].startswith("⟨log_prob⟩(⟨1⟩, ⟨[0.5]⟩, ⟨0.0⟩, ⟨0.0⟩) = ")
    assert lines[6:10] == [
        "  @6: [§1:%6] $(constrain)(@4) = 0.0",
        "  @7: [§1:%7] $(jacobian)(@5, ⟨0.0⟩) = 0.0",
        "  @8: [§1:%8] $(constrain)(@5, ⟨0.0⟩) = 1.0",
        "  @9: [§1:%9] @6 ~ ⟨normal⟩(⟨0.0⟩, ⟨10.0⟩) = -3.2215236261987186",
    ]
    assert "  @13: [§1:%13] @3 ⩪ ⟨uniform⟩(@11, @12) = -0.6931471805599453" in lines
    assert [n.parameter for n in node if isinstance(n, ConstrainNode)] == ["mu", "sigma"]


def test_nan_of_n() -> None:
    """Acceptance test 14, the nodes."""
    node = StanModel(N).track_density([-1.0])
    tilde, target = terms(node)
    assert (line_of(tilde), line_of(target)) == (4, 5)
    assert tilde.value == pytest.approx(-1.4189385332046727, rel=1e-12)
    assert isinstance(target, TargetNode) and target.cause == "target"
    assert math.isnan(target.value) and math.isnan(target.target_after) and math.isnan(node.value)
    born = target.increment
    assert str(born) == "@4" and math.isnan(born.value)


def test_rejection_of_e() -> None:
    """Acceptance test 15, the nodes."""
    node = StanModel(E, {"y": [1.0, 2.0]}).track_density([-800.0])
    error = node.trace.error
    assert error is not None and error.span is not None and error.span.line == 3
    assert "sigma is 0" in error.message
    assert node.value is MISSING
    *before, last = node
    assert isinstance(last, TildeNode) and last == error.node
    assert last.value is MISSING and last.target_after is MISSING
    assert all(n.value is not MISSING for n in before)
    scale = last.arguments[1]
    assert str(scale) == "@5" and scale.value == 0.0 and str(before[4]) == "@5: ⟨exp⟩(@4) = 0.0"
    assert line_of(before[4]) == 2


# ---------------------------------------------------------------- the untraced log density, bit for bit

CHOICES = ((False, True), (True, False))
"""propto and jacobian."""


def same_bits(a: Any, b: float) -> bool:
    return np.float64(a).tobytes() == np.float64(b).tobytes()


def check_bits(model: StanModel, choices: tuple[tuple[bool, bool], ...] = CHOICES) -> NestedCallNode:
    """Value of the root = log density of level 0 = sum of the terms in their order. Returns the last root."""
    theta = np.random.default_rng(1).uniform(-1, 1, model.param_unc_num())
    node = None
    for propto, jacobian in choices:
        node = model.track_density(theta, propto=propto, jacobian=jacobian)
        assert node.trace.error is None
        assert same_bits(node.value, model.log_density(theta, propto=propto, jacobian=jacobian)), (propto, jacobian)
        target = 0.0
        for term in terms(node):
            target += term.value
            assert same_bits(term.target_after, target)
    assert node is not None
    return node


SLOW_EXAMPLES = ("autoregressive", "gaussian_process", "hierarchical")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(path.stem, marks=[pytest.mark.slow] if path.stem in SLOW_EXAMPLES else [])
        for path in sorted(EXAMPLES.glob("*.stan"))
    ],
)
def test_examples(name: str) -> None:
    """Acceptance test 11, the values."""
    data = json.loads((EXAMPLES / f"{name}.json").read_text())
    check_bits(StanModel(EXAMPLES / f"{name}.stan", data, opt_level=0))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_the_gradient_tests(name: str) -> None:
    text, data = PROGRAMS[name]
    check_bits(StanModel(text, data, opt_level=0))


def test_local_variables_are_autodiff() -> None:
    """Constants that only local variables enter are kept by Stan's static rule, whatever the variables hold."""
    text = "parameters { real a; } model { real t = 0.5; 1 ~ normal(t, 2); a ~ normal(2, t); 3 ~ normal(0, 1); }"
    node = check_bits(StanModel(text, opt_level=0), ((True, True),))
    dropped = [term.value == 0.0 for term in terms(node)]
    assert dropped == [False, False, True]


CONSTRAINED = """data { int<lower=1> K; real<lower=0> b; }
transformed data { vector[K] up = rep_vector(b, K); }
parameters {
  real<lower=-b, upper=b> a;
  vector<lower=a, upper=up + 5>[K] v;
  array[2] simplex[K] s;
  ordered[K] o;
  cholesky_factor_corr[K] L;
  cov_matrix[K] S;
  matrix[2, K] M;
  array[2, 2] real<offset=a, multiplier=2> z;
  row_vector<upper=0>[K] r;
  real free;
}
transformed parameters {
  vector<lower=0>[K] w = exp(o);
  real<lower=0> t;
  t = sum(w) + square(free);
}
model {
  s[1] ~ dirichlet(w);
  to_vector(M) ~ normal(t, 1);
  target += v;
  S ~ wishart(K + 2, L * L');
  for (i in 1:2) z[i] ~ normal(0, 1);
}
"""


def test_constrained_parameters() -> None:
    """Each declared parameter has its adjustment, where it has a transform, and then its value."""
    model = StanModel(CONSTRAINED, {"K": 3, "b": 2.5}, opt_level=0)
    node = check_bits(model, ((False, True),))
    names = ["a", "v", "s", "o", "L", "S", "M", "z", "r", "free"]
    adjusted = [n.parameter for n in node if isinstance(n, TargetNode) and n.cause == "jacobian"]
    assert adjusted == [name for name in names if name not in ("M", "free")]
    theta = np.random.default_rng(1).uniform(-1, 1, model.param_unc_num())
    wanted = by_name(model.parameter_variables(), model.param_constrain(theta))
    found = {n.parameter: n for n in node if isinstance(n, ConstrainNode)}
    assert list(found) == names
    for name, constrained in found.items():
        assert np.array_equal(constrained.value, wanted[name]), name
        assert constrained.span is not None
        line = CONSTRAINED.split("\n")[constrained.span.line - 1]
        assert line[constrained.span.column - 1 : constrained.span.end_column - 1] == name
    container = next(n for n in terms(node) if isinstance(n, TargetNode) and n.cause == "target")
    assert container.increment.value.tolist() == found["v"].value.tolist()
    assert container.value == pytest.approx(float(np.sum(found["v"].value)), rel=1e-14)


FUNCTIONS = """functions {
  real mine_lpdf(vector y, real m) { real s = 0; for (i in 1:size(y)) s += cauchy_lupdf(y[i] | m, 2); return s; }
  void add_lp(vector y, real m) {
    y ~ normal(m, 1.5);
    if (target() < 0) target += 0.25 * target();
    y ~ mine(m);
  }
  real shift_jacobian(real x) { jacobian += 2 * x; return exp(x); }
  real down_lp(real x, int n) {
    if (n == 0) return x;
    target += x / n;
    return down_lp(x + 1, n - 1) + target();
  }
}
data { int N; vector[N] y; }
parameters { real m; real l; vector[2] u; }
transformed parameters { real e = shift_jacobian(l); jacobian += u; }
model {
  profile("likelihood") { y ~ mine(m); }
  add_lp(y, m);
  add_lp(u, l);
  m ~ normal(down_lp(e, 2) / 90, 1) T[-20, 40];
  for (i in 1:N) { if (y[i] < 0) continue; y[i] ~ normal(m, 1); }
  for (x in u) { x ~ normal(0, 1); }
  u[1] ~ gamma(2, 1) T[, 3];
}
"""


@pytest.fixture(scope="module")
def functions_model() -> StanModel:
    return StanModel(FUNCTIONS, {"N": 3, "y": [0.5, -0.2, 1.5]}, opt_level=0)


def test_functions_that_add_to_the_target(functions_model: StanModel) -> None:
    """`_lpdf` with `~`, `_lp`, `_jacobian`, recursion, `target()`, loops, truncation, profile."""
    theta = np.array([0.3, -0.4, 0.7, 0.9])
    for propto, jacobian in ((False, True), (True, False)):
        node = functions_model.track_density(theta, propto=propto, jacobian=jacobian)
        assert same_bits(node.value, functions_model.log_density(theta, propto=propto, jacobian=jacobian))
        added = sum(term.value for term in terms(node) if term.function == "jacobian")
        assert added == pytest.approx(2 * -0.4 + 0.7 + 0.9 if jacobian else 0.0, rel=1e-14)
        last = terms(node)[-1]
        assert same_bits(last.target_after, node.value)


def test_entered_densities(functions_model: StanModel) -> None:
    """A `~` of a user's density has the nodes of its call; data are seen through calls."""
    node = functions_model.track_density([0.3, -0.4, 0.7, 0.9])
    mine = [t for t in terms(node) if isinstance(t, TildeNode) and t.distribution == "mine"]
    assert len(mine) == 3
    assert [t.observed for t in mine] == [True, True, False]
    for tilde in mine:
        assert isinstance(tilde, NestedTildeNode)
        assert tilde[1].value == "mine_lpdf" and tilde[-1].value == tilde.value
        assert [argument.value for argument in tilde.call_arguments[1:]] == [a.value for a in tilde.arguments]
    assert [t.parent is not None and t.parent.function for t in mine] == ["log_prob", "add_lp", "add_lp"]
    in_loop = [t for t in terms(node) if isinstance(t, TildeNode) and line_of(t) == 23]
    assert [t.left.value for t in in_loop] == [0.5, 1.5] and all(t.observed for t in in_loop)


def test_truncation(functions_model: StanModel) -> None:
    """The normalisation of a truncated density is a term of the same statement."""
    node = functions_model.track_density([0.3, -0.4, 0.7, 0.9])
    density, normalization = [t for t in terms(node) if t.parent == node and line_of(t) == 22]
    assert isinstance(density, TildeNode) and isinstance(normalization, TargetNode)
    assert density.span == normalization.span
    assert density.span is not None
    text = FUNCTIONS.split("\n")[21][density.span.column - 1 : density.span.end_column - 1]
    assert text == "m ~ normal(down_lp(e, 2) / 90, 1) T[-20, 40]"


def test_how_many_ops_are_inserted(functions_model: StanModel) -> None:
    """Acceptance test 20, its constants: one op per block and at most three per op of the program."""
    constrained = StanModel(CONSTRAINED, {"K": 3, "b": 2.5}, opt_level=0)
    for model in (functions_model, constrained):
        compiled = model.traced_program.compiled(ModelRoot(), TraceContext())
        blocks = [block for graph in compiled.tables.graphs.values() for block in graph.blocks]
        items = [item for block in blocks for item in block.items]
        recording = re.findall(r"\btrace\.(?:block|value|container|guard|draws|sum) ", compiled.instrumented)
        assert len(recording) <= len(blocks) + 3 * len(items)
        assert compiled.instrumented.count("trace.block ") == sum(block.record > 0 for block in blocks)
        additions = sum(item.target_slot is not None for item in items)
        assert (
            compiled.instrumented.count("stan.target_add ")
            + compiled.instrumented.count("stan.jacobian_add ")
            + compiled.instrumented.count("trace.jacobian ")
            == additions
        )


def test_functions_as_roots(functions_model: StanModel) -> None:
    """The target of a tracked function starts at 0, and Jacobian adjustments count."""
    y = [0.5, -0.25]
    node = functions_model.track("add_lp", y, 0.5)
    assert isinstance(node, NestedCallNode)
    first, second, third = terms(node)
    wanted = -0.5 * sum(((v - 0.5) / 1.5) ** 2 + math.log(2 * math.pi * 1.5**2) for v in y)
    assert first.value == pytest.approx(wanted, rel=1e-13) and first.target_after == first.value
    assert second.value == 0.25 * first.value
    assert third.target_after == first.value + second.value + third.value
    jacobian = functions_model.track("shift_jacobian", 0.5)
    assert isinstance(jacobian, NestedCallNode)
    (term,) = terms(jacobian)
    assert term.function == "jacobian" and (term.value, term.target_after) == (1.0, 1.0)
    recursive = functions_model.track("down_lp", 1.0, 2)
    assert isinstance(recursive, NestedCallNode)
    assert [t.target_after for t in terms(recursive)] == [0.5, 2.5]
    assert recursive.value == 3.0 + 2.5 + 2.5


SOLVED = """functions {
  vector decay(real t, vector z, real k) { return -k * z; }
}
data { int N; array[N] real y; tuple(real, vector[2]) p; }
transformed data { real half = p.1 / 2; }
parameters { real m; real<lower=0> k; }
model {
  m ~ normal(p.1, half);
  y[1] ~ normal(ode_rk45(decay, p.2, 0, {1.0}, k)[1][1], 1);
}
"""


def test_higher_order_functions_and_tuples() -> None:
    model = StanModel(SOLVED, {"N": 4, "y": [0.1, 0.2, 0.3, 0.4], "p": {"1": 1.5, "2": [1.0, 2.0]}}, opt_level=0)
    node = check_bits(model, ((False, True),))
    names = [a.name for a in node.call_arguments]
    assert names == ["N", "y", "p.1", "p.2", "half", "m", "k"]
    assert [a.is_data for a in node.call_arguments] == [True] * 5 + [False] * 2
    (solver,) = [n for n in node if isinstance(n, ItemNode) and n.function == "ode_rk45"]
    assert str(solver.operands[0]) == "⟨decay⟩"
    theta = np.random.default_rng(1).uniform(-1, 1, 2)
    assert np.allclose(solver.value, [np.array([1.0, 2.0]) * math.exp(-math.exp(theta[1]))], atol=1e-4)


# ---------------------------------------------------------------- points, errors, other blocks


def test_bounds_out_of_order() -> None:
    model = StanModel("parameters { real b;\nreal<lower=2, upper=b> a; } model { }")
    for jacobian, kind in ((True, TargetNode), (False, ConstrainNode)):
        node = model.track_density([1.0, 0.5], jacobian=jacobian)
        error = node.trace.error
        assert error is not None and "the lower bound is 2" in error.message
        assert isinstance(error.node, kind) and error.node.item.text == "a" and line_of(error.node) == 2
        assert [n.value for n in node if isinstance(n, ConstrainNode) and n.parameter == "b"] == [1.0]


@pytest.mark.parametrize("overflow", ("stop", "ring", "spill", "edges"))
def test_what_is_kept_of_a_long_run(overflow: str) -> None:
    text = "data { int N; } parameters { real a; } model { for (n in 1:N) n * 0.001 ~ normal(a, 1); }"
    model = StanModel(text, {"N": 20_000})
    context = TraceContext(overflow=overflow, limit_bytes=1 << 30 if overflow != "ring" else 1 << 16)
    node = model.track_density([0.5], context=context)
    wanted = StanModel(text, {"N": 20_000}, opt_level=0).log_density(np.array([0.5]), propto=False)
    assert same_bits(node.value, wanted)
    last = next(n for n in (node[-k] for k in range(1, 20)) if isinstance(n, TildeNode))
    assert same_bits(last.target_after, wanted) and last.left.value == 20.0
    assert (node.trace.dropped > 0) == (overflow in ("ring", "edges"))


def test_the_example_of_the_guide(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    text = Path("docs/tracing.md").read_text().partition("## Models\n")[2]
    code, shown = (text.split(f"```{kind}\n")[1].split("```")[0] for kind in ("python", "text"))
    exec(code, {})
    assert capsys.readouterr().out == shown


def test_points_by_name() -> None:
    model = StanModel(U, {"N": 1, "y": [0.5]})
    named = model.track_density({"mu": 0.25, "sigma": 2.0})
    assert named.value == model.track_density([0.25, math.log(2.0)]).value
    assert [a.value for a in named.call_arguments[2:]] == [0.25, math.log(2.0)]


def test_wrong_points() -> None:
    model = StanModel(U, {"N": 1, "y": [0.5]})
    with pytest.raises(ArgumentError, match=r"theta must have shape \(2,\)"):
        model.track_density([0.0])
    with pytest.raises(DataError, match="sigma"):
        model.track_density({"mu": 0.25})
    with pytest.raises(ArgumentError, match="max_depth"):
        model.track_density([0.0, 0.0], context=DepthLimit(1))
    with pytest.raises(Rejection) as raised:
        StanModel(E, {"y": [1.0, 2.0]}).track_density([-800.0], on_error="raise")
    assert vars(raised.value)["trace"].error.span.line == 3


BLOCKS = """data { int N; }
transformed data { vector[N] d; for (n in 1:N) d[n] = uniform_rng(0, 1); }
parameters { real<lower=0> s; }
transformed parameters { real<lower=0> q = s * s; }
generated quantities { real g = q + uniform_rng(0, 1); real h = normal_lpdf(g | 0, s); }
"""


def test_other_blocks() -> None:
    model = StanModel(BLOCKS, {"N": 2}, seed=3)
    generated = model.track_generated_quantities([0.0], rng=Scripted([0.25]))
    assert [n.value for n in generated if getattr(n, "function", "") == "+"] == [1.25]
    assert not terms(generated) and generated.trace.draws_used == 1
    transformed = model.track_transformed_parameters({"s": 3.0})
    assert [n.value for n in transformed if getattr(n, "function", "") == "*"] == [pytest.approx(9.0)]
    again = [n.value for n in model.track_transformed_data() if isinstance(n, DrawNode)]
    assert again == model.bound_values()["d"].tolist()  # the model's own generator
    seeded = model.track_generated_quantities([0.3], rng=model.new_rng(5))
    sums = [n.value for n in seeded if getattr(n, "function", "") == "+"]
    assert sums == [model.param_constrain(np.array([0.3]), include_gq=True, rng=model.new_rng(5))[1]]
    data = model.track_transformed_data(rng=Scripted([0.25, 0.75]))
    draws = [n.value for n in data if isinstance(n, DrawNode)]
    assert draws == [0.25, 0.75] and [a.name for a in data.call_arguments] == ["N"]
    with pytest.raises(ArgumentError, match="rng="):
        model.track_generated_quantities([0.0])


def test_saved_and_loaded(tmp_path: Path, functions_model: StanModel) -> None:
    node = functions_model.track_density([0.3, -0.4, 0.7, 0.9])
    node.trace.save(tmp_path / "density.trace")
    loaded = load(tmp_path / "density.trace")
    assert format_levels(loaded) == format_levels(node)
    assert [t.span for t in terms(loaded)] == [t.span for t in terms(node)]
    assert [t.target_after for t in terms(loaded)] == [t.target_after for t in terms(node)]
