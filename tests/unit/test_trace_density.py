"""Traces of models: `~`, `target +=` and Jacobian nodes, and the log density as the untraced program gives it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ulam import StanModel
from ulam.trace import (
    MISSING,
    ConstrainNode,
    NestedCallNode,
    Node,
    TargetNode,
    TargetTerm,
    TildeNode,
    format_levels,
)

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


def check_bits(model: StanModel, seed: int = 1) -> None:
    """Value of the root = log density of level 0 = sum of the terms in their order, for all four choices."""
    theta = np.random.default_rng(seed).uniform(-1, 1, model.param_unc_num())
    for propto in (False, True):
        for jacobian in (False, True):
            node = model.track_density(theta, propto=propto, jacobian=jacobian)
            assert node.trace.error is None
            wanted = model.log_density(theta, propto=propto, jacobian=jacobian)
            assert np.float64(node.value).tobytes() == np.float64(wanted).tobytes(), (propto, jacobian)
            target = 0.0
            for term in terms(node):
                target += term.value
                assert term.target_after == target or math.isnan(target)


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.stan")))
def test_examples(name: str) -> None:
    data = json.loads((EXAMPLES / f"{name}.json").read_text())
    check_bits(StanModel(EXAMPLES / f"{name}.stan", data, opt_level=0))


def model_of(text: str, data: dict[str, Any] | None = None) -> StanModel:
    return StanModel(text, data, opt_level=0)
