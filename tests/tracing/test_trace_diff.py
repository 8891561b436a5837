"""Acceptance test 20 of tracing, differences of two runs."""

from __future__ import annotations

import json
import math

import pytest
from trace_programs import PROGRAM, UNIFORMS

from ulam import StanModel
from ulam.runtime.errors import ArgumentError
from ulam.trace import DepthLimit, NestedCallNode, Scripted, TraceContext, diff, from_json, functions, track

SCHOOLS = """data { int<lower=0> N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; }
model {
  mu ~ normal(0, 10);
  sigma ~ lognormal(0, 1);
  y ~ normal(mu, sigma);
}
"""


@pytest.fixture(scope="module")
def model() -> StanModel:
    return StanModel(PROGRAM)


def test_first_divergent_edge_of_h(model: StanModel) -> None:
    """20: @24, `false` and `true`."""
    found = diff(model.track("h", 2.0, 2), model.track("h", 2.0, 3))
    edge = found.first_divergent_edge
    assert edge is not None and edge.node is not None and edge.node.position == 24
    assert edge.values == ("false", "true")
    assert (str(edge.a), str(edge.b)) == ("@25: goto §4 since @24 == false", "@25: goto §3")
    assert not found.identical and found.parted == 1
    assert [(d.a.position, d.a.value, d.b.value, d.delta) for d in found.arguments] == [(3, 2, 3, 1.0)]
    assert [d.a.position for d in found.values] == [24], "all before is the same"
    assert found.result is not None and (found.result.a.value, found.result.b.value) == (3.0, 7.0)
    text = str(found)
    assert "@24: ⟨<⟩(@22, @3) is false in a, true in b" in text and "model.stan:7:" in text
    assert len(text.splitlines()) < 20
    entry = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert entry["first_divergent_edge"]["node"]["path"] == "@24"
    assert entry["first_divergent_edge"]["values"] == ["false", "true"]


def test_no_difference(model: StanModel) -> None:
    found = diff(model.track("h", 2.0, 2), model.track("h", 2.0, 2).trace)
    assert found.identical and "no difference" in str(found) and found.to_dict()["identical"]
    assert found.first_divergent_edge is None and not found.values


def test_values_at_two_points(model: StanModel) -> None:
    a, b = model.track("h", 2.0, 3), model.track("h", 2.5, 3)
    assert isinstance(a, NestedCallNode) and isinstance(b, NestedCallNode)
    found = diff(a, b)
    expected = [
        n.at for n, m in zip(a, b, strict=True) if n.value != m.value and type(n).__name__ == "PrimitiveCallNode"
    ]
    assert [d.a.position for d in found.values] == expected == [18, 19, 26, 27]
    assert not found.divergences and found.differing == 4
    assert [d.delta for d in found.values] == [b[p].value - a[p].value for p in expected]


def test_rtol(model: StanModel) -> None:
    a, b = model.track("h", 2.0, 3), model.track("h", 2.0 * (1 + 1e-9), 3)
    assert diff(a, b).differing == 4 and diff(a, b, rtol=1e-6).identical
    with pytest.raises(ArgumentError, match="rtol"):
        diff(a, b, rtol=-1)


def test_calls_are_aligned_by_path(model: StanModel) -> None:
    a = model.track("geom_rng", 1, 0.5, rng=Scripted(UNIFORMS))
    b = model.track("geom_rng", 1, 0.5, rng=Scripted([0.75, 0.3]))
    found = diff(a, b)
    assert found.first_divergent_edge is not None and found.first_divergent_edge.node is not None
    assert found.to_dict()["first_divergent_edge"]["node"]["path"] == "@8/@5"
    assert found.first_divergent_edge.values == ("false", "true")
    paths = [entry["node"]["path"] for entry in found.to_dict()["values"]]
    assert paths == ["@4/@2", "@4", "@8/@4/@2", "@8/@4", "@8/@5", "@8"], "in the order in which they are known"


def test_a_run_that_ended_early(model: StanModel) -> None:
    a = model.track("geom_rng", 1, 0.5, rng=Scripted(UNIFORMS))
    b = model.track("geom_rng", 1, 0.5, rng=Scripted(UNIFORMS[:2]))
    for first, second, values in ((a, b, ("true", "ended")), (b, a, ("ended", "true"))):
        found = diff(first, second)
        assert found.first_divergent_edge is not None
        assert found.first_divergent_edge.values == values and "the run ended here" in str(found)


def test_terms_of_target() -> None:
    """Ordered by |Δ|, infinite ones first."""
    model = StanModel(SCHOOLS, {"N": 3, "y": [0.1, 0.4, 5.0]}, opt_level=0)
    a, b = model.track_density([0.0, 0.0]), model.track_density([0.5, 0.5])
    found = diff(a, b)
    assert len(found.terms) == 4
    for term in found.terms:
        assert term.a is not None and term.b is not None
        assert term.delta == term.b.value - term.a.value
    assert [abs(t.delta) for t in found.terms] == sorted((abs(t.delta) for t in found.terms), reverse=True)
    assert math.fsum(t.delta for t in found.terms) == pytest.approx(b.value - a.value, rel=1e-12)
    names = [line.split("  ")[1] for line in str(found).splitlines() if line.startswith("  model.stan")]
    assert "y ~ normal(mu, sigma);" in str(found) and "Jacobian term of sigma" in str(found), names
    worst = diff(a, model.track_density([0.0, -800.0], on_error="keep")).terms[0]
    assert not math.isfinite(worst.delta)


def test_two_versions_of_a_program(model: StanModel) -> None:
    """Aligned by lines: the third is new, and one line has one more op."""
    other = PROGRAM.replace("  real zero", "  // new\n  real zero").replace("r += x ^ i;", "r += 1; r += x ^ i;")
    changed = StanModel(other)
    found = diff(model.track("h", 2.0, 2), changed.track("h", 2.0, 2))
    assert [(d.a.position, d.b.position, d.a.value, d.b.value) for d in found.values] == [
        (11, 12, 1.0, 2.0), (19, 21, 3.0, 5.0),
    ]  # fmt: skip
    assert not found.divergences
    found = diff(model.track("h", 2.0, 2), changed.track("h", 2.0, 3))
    assert found.first_divergent_edge is not None
    first, second = found.first_divergent_edge.nodes
    assert first is not None and second is not None and (first.position, second.position) == (24, 26)
    assert found.first_divergent_edge.values == ("false", "true")


def test_a_branch_that_only_one_version_has(model: StanModel) -> None:
    other = StanModel(PROGRAM.replace("r += x ^ i;", "if (i > 0) r += x ^ i;"))
    found = diff(model.track("h", 2.0, 2), other.track("h", 2.0, 2))
    edge = found.first_divergent_edge
    assert edge is not None and edge.a is not None and edge.b is not None
    assert (edge.a.position, edge.is_decided) == (10, False) and "not in the other" in str(found)


def test_terms_of_two_versions() -> None:
    data = {"N": 3, "y": [0.1, 0.4, 5.0]}
    a = StanModel(SCHOOLS, data, opt_level=0).track_density([0.0, 0.5])
    changed = SCHOOLS.replace("  sigma ~", "  target += -1;\n  sigma ~").replace("normal(0, 10)", "normal(0, 5)")
    found = diff(a, StanModel(changed, data, opt_level=0).track_density([0.0, 0.5]))
    told = {(t.a is None, t.b is None): t.delta for t in found.terms if t.delta}
    assert told[True, False] == -1.0, "a term that the first does not have"
    assert told[False, False] == pytest.approx(math.log(2)), "mu ~ normal(0, 5)"
    assert sum(t.delta == 0 for t in found.terms) == 3


def test_saved_and_depth_limited_traces(model: StanModel) -> None:
    node = model.track("h", 2.0, 2)
    assert diff(node, from_json(node.to_json())).identical
    limited = model.track("h", 2.0, 2, context=DepthLimit(2))
    assert not diff(node, limited).values
    assert diff(model.track("f", 1.0, context=DepthLimit(1)), model.track("f", 2.0)).result is not None


def test_what_is_refused(model: StanModel) -> None:
    node = model.track("h", 2.0, 2)
    assert isinstance(node, NestedCallNode)
    with pytest.raises(ArgumentError, match="'h' and 'f'"):
        diff(node, model.track("f", 1.0))
    with pytest.raises(ArgumentError, match="calls are compared"):
        diff(node[5], node[5])
    ring = track(functions(PROGRAM).h, 1.0, 50_000, context=TraceContext(limit_bytes=1 << 20, overflow="ring"))
    with pytest.raises(ArgumentError, match="beginning"):
        diff(ring, ring)


def test_a_million_nodes(model: StanModel) -> None:
    a, b = model.track("h", 1.0, 125_000), model.track("h", 1.0, 125_001)
    found = diff(a, b)
    assert found.first_divergent_edge is not None and found.first_divergent_edge.node is not None
    assert found.first_divergent_edge.node.position == 1_000_008


def test_many_short_calls() -> None:
    """Counted at once or followed one by one: the same numbers, and the same first differences."""
    program = functions("""functions {
      real sq(real x) { real y = x * x; int k = 3; return y + k * 0; }
      real s(real x, int n) { real r = 0; for (i in 1:n) r += sq(x < 0.5 ? i : x) - sq(i); return r; }
    }""")
    a, b = track(program.s, 2.0, 50), track(program.s, 3.0, 50)
    one_by_one = diff(a, b, limit=10**6)
    assert one_by_one.differing == len(one_by_one.values) == 50 * 5
    for limit in (0, 1, 7):
        found = diff(a, b, limit=limit)
        assert (found.differing, found.compared) == (one_by_one.differing, one_by_one.compared)
        assert [d.to_dict() for d in found.values] == [d.to_dict() for d in one_by_one.values[:limit]]
    assert diff(a, track(program.s, 2.0, 50)).identical


def test_a_run_and_what_was_changed_in_it(model: StanModel) -> None:
    """Of an update, what was worked out anew and differs."""
    node = model.track("h", 2.0, 3)
    assert isinstance(node, NestedCallNode)
    changed = node.trace.update({node[2]: 2.5}).trace
    assert diff(changed, model.track("h", 2.5, 3)).identical
    assert [d.a.position for d in diff(node, changed).values] == [18, 19, 26, 27]
