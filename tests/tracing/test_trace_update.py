"""Updates of traces: acceptance tests 16 and 17, and that a version is what a full run would record. Random programs:
test_trace_update_random.py.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trace_programs import GEOM, PROGRAM, UNIFORMS

from ulam import StanModel
from ulam.runtime.errors import ArgumentError
from ulam.trace import (
    MISSING,
    Axis,
    DepthLimit,
    NestedCallNode,
    Replay,
    Scripted,
    Seeded,
    TargetTerm,
    TildeNode,
    Trace,
    TraceContext,
    Update,
    diff,
    format_levels,
    forward,
    from_json,
    functions,
    load,
    query,
    track,
)
from ulam.tracing.nodes import ItemNode

MODEL = """functions {
  real normal2_lpdf(real x, real a, real b) { if (x > 2) return -x; return -square(x - a) / b; }
  real part_lp(real m, int k) {
    if (m > k) { target += -m; m ~ normal2(0, 1); } else target += m * 2;
    return target();
  }
  real fail(real x, int n) {
    real s = 0;
    array[3] real a = {1, 2, 3};
    for (i in 1:n) { s += a[i] * x; if (s > 10) reject("too much ", s); }
    return s;
  }
  vector scaled(vector v, real a) { vector[size(v)] w = v * a; w[1] = a; return w + 1; }
  real sums(vector v, real a, real b) {
    real s = sum(scaled(v, a)) * b;
    if (b > 3) s += sum(scaled(v, b));
    return s;
  }
  real grown(int n, real x) { vector[n] v = rep_vector(x, n); return sum(v); }
  real draws_rng(real a, int n) {
    real s = 0;
    for (i in 1:n) { real g = gamma_rng(a, 1); if (g > 2) s += normal_rng(g, 1); s += poisson_rng(a); }
    return s + uniform_rng(0, 1);
  }
  real two_rng(real a, int n) { return draws_rng(a, n) + draws_rng(2, 2); }
  real loop(int low, int high, real x) { real s = x; for (i in low:high) s += i * x; return s; }
  real loops(int n, real x) { real t = 0; for (i in 1:n) t += loop(1, i, x); return t; }
  void say(real x) { print("x is ", x); }
  real saying(real x) { say(x); return x + 1; }
  real long(real x, int n) { real s = 0; for (i in 1:n) s += 0.5 * i; return s + sin(x); }
}
data { int N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; vector[2] b; }
model {
  real z = part_lp(mu, 1);
  target += z * 0.001;
  sigma ~ lognormal(0, 1);
  z = part_lp(b[1], 0);
  y ~ normal(mu, sigma);
  for (i in 1:N) y[i] ~ normal(b[2], 2);
  target += b;
}
"""
THETA = [0.1, 0.2, 0.3, -0.4]


@cache
def model() -> StanModel:
    return StanModel(MODEL, data={"N": 100, "y": np.linspace(-1, 1, 100).tolist()})


@cache
def listed() -> Any:
    return functions(PROGRAM)


def listing(trace: Trace) -> str:
    return format_levels(trace.root)


def targets(trace: Trace) -> list[str]:
    """The target after each addition, as bits show it."""
    found = [n.target_after for n in query(trace.root, Axis.DESCENDANT) if isinstance(n, TargetTerm)]
    return ["missing" if after is MISSING else after.hex() for after in found]


def inner(node: Any, *positions: int) -> Any:
    for position in positions:
        assert isinstance(node, NestedCallNode)
        node = node[position]
    return node


# ---------------------------------------------------------------- acceptance tests 16 and 17


@pytest.mark.parametrize("in_place", [False, True])
def test_update_of_f(in_place: bool) -> None:
    """Acceptance test 16."""
    t = track(listed().f, 1.0)
    assert isinstance(t, NestedCallNode)
    before = listing(t.trace)
    made = t.update({t[2]: 2.0}, in_place=in_place)
    assert made.trace.root.value == 2.909297426825682
    assert {node.position for node in made.recomputed} == {3, 4}
    assert made.rerun_frames == made.flips == []
    assert [node.position for node in made.reused] == [1, 2, 5]
    assert listing(made.trace) == format_levels(track(listed().f, 2.0))
    assert (made.trace is t.trace) == in_place
    assert (listing(t.trace) == before) == (not in_place)
    assert listing(made.undo()) == before
    assert listing(t.trace) == before


def test_update_of_geom() -> None:
    """Acceptance test 17."""
    t = track(listed().geom_rng, 1, 0.5, rng=Scripted(UNIFORMS))
    made = t.trace.update(beta=0.3)
    assert made.trace.root.value == 3
    assert made.flips == [] and made.rerun_frames == []
    assert [node.function for node in made.recomputed if isinstance(node, ItemNode)] == ["<"] * 3
    assert listing(made.trace) == format_levels(track(listed().geom_rng, 1, 0.3, rng=Scripted(UNIFORMS)))

    made = t.trace.update(beta=0.76)
    root = made.trace.root
    assert isinstance(root, NestedCallNode)
    assert [flip.position for flip in made.flips] == [6] and made.flips[0].parent == root
    assert made.rerun_frames == [root]
    assert root.value == 1 and made.trace.draws_used == 1
    assert format_levels(root, 2).splitlines()[-3:] == [
        "  @5: [§1:%5] ⟨<⟩(@4, @3) = true", "  @6: [§1:&2] goto §2", "  @7: [§2:&1] return @2 = 1",
    ]  # fmt: skip
    assert listing(made.trace) == format_levels(track(listed().geom_rng, 1, 0.76, rng=Scripted(UNIFORMS)))
    assert format_levels(t, 2).splitlines()[0] == GEOM.splitlines()[0]


# ---------------------------------------------------------------- functions


def check_function(
    name: str, arguments: dict[str, Any], changed: dict[str, Any], rng: Any = None, context: Any = None
) -> Update:
    """The version is what a run records with these arguments; in place, and taken back, too; and back again."""
    node = model().track(name, *arguments.values(), rng=rng, context=context)
    trace, before = node.trace, listing(node.trace)
    made = trace.update(**changed)
    again = None if rng is None else Replay(made.trace)
    full = model().track(name, *(arguments | changed).values(), rng=again, context=context)
    wanted = listing(full.trace)
    assert listing(made.trace) == wanted
    assert made.trace.draws_used == full.trace.draws_used
    assert made.trace.failed == full.trace.failed and (made.trace.error is None) == (full.trace.error is None)
    assert listing(trace) == before
    done = trace.update(in_place=True, **changed)
    assert listing(trace) == wanted
    done.undo()
    assert listing(trace) == before
    if rng is None:
        assert listing(made.trace.update(**{k: arguments[k] for k in changed}).trace) == before
        assert listing(made.trace) == wanted
    return made


LARGE = np.arange(200.0)
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "an op throws": ("fail", {"x": 1.0, "n": 3}, {"x": 20.0}),
    "an op throws no more": ("fail", {"x": 20.0, "n": 3}, {"x": 1.0}),
    "it throws something else": ("fail", {"x": 20.0, "n": 3}, {"x": 21.0}),
    "an index out of range": ("fail", {"x": 1.0, "n": 3}, {"n": 5}),
    "it still throws": ("fail", {"x": 1.0, "n": 5}, {"x": 0.5}),
    "large containers": ("sums", {"v": LARGE, "a": 1.0, "b": 2.0}, {"a": 2.0}),
    "a call runs again with some": ("sums", {"v": LARGE, "a": 1.0, "b": 2.0}, {"b": 4.0}),
    "an element inside": ("scaled", {"v": LARGE, "a": 2.0}, {"v": np.where(LARGE == 50, 7, LARGE)}),
    "small containers": ("sums", {"v": LARGE[:5], "a": 1.0, "b": 4.0}, {"v": LARGE[1:6]}),
    "other sizes inside": ("grown", {"n": 3, "x": 2.0}, {"n": 100}),
    "a loop begins elsewhere": ("loop", {"low": 1, "high": 5, "x": 2.0}, {"low": 0, "high": 4}),
    "a loop is shorter": ("loop", {"low": 1, "high": 5, "x": 2.0}, {"low": 2}),
    "calls in a loop": ("loops", {"n": 4, "x": 2.0}, {"x": 0.1}),
    "more calls in a loop": ("loops", {"n": 4, "x": 2.0}, {"n": 6}),
    "a function that adds": ("part_lp", {"m": 1.5, "k": 1}, {"m": 3.0}),
    "a function that adds less": ("part_lp", {"m": 1.5, "k": 1}, {"k": 2}),
}


@pytest.mark.parametrize("case", CASES)
def test_update_is_a_full_run(case: str) -> None:
    check_function(*CASES[case])


@pytest.mark.parametrize("context", [TraceContext(), DepthLimit(2), DepthLimit(1), TraceContext(overflow="edges")])
def test_draws(context: TraceContext) -> None:
    """Gamma and Poisson draws take other numbers of numbers; frames that run again go on from the generator."""
    check_function("two_rng", {"a": 1.0, "n": 3}, {"a": 2.5}, Seeded(1), context)
    check_function("two_rng", {"a": 1.0, "n": 2}, {"n": 4}, Seeded(2), context)
    uniforms = np.random.default_rng(1).random(60).tolist()
    check_function("two_rng", {"a": 1.0, "n": 2}, {"a": 1.5}, Scripted(uniforms), context)


def test_draws_of_later_calls_stay() -> None:
    """More draws in a call that runs again are new ones: what follows has what it had."""
    node = model().track("two_rng", 1.0, 2, rng=Seeded(3))
    made = node.trace.update(n=4)
    assert inner(node, 5).value == inner(made.trace.root, 5).value
    assert made.trace.draws_used > node.trace.draws_used
    assert listing(node.trace.update(n=4).trace) == listing(made.trace)  # from the same state


def test_other_draws() -> None:
    node = model().track("draws_rng", 1.0, 2, rng=Seeded(3))
    same, other = node.trace.update(a=1.5), node.trace.update(a=1.5, rng=Seeded(8))
    assert listing(same.trace) != listing(other.trace)
    full = model().track("draws_rng", 1.5, 2, rng=Replay(other.trace))
    assert listing(other.trace) == listing(full.trace)
    with pytest.raises(ArgumentError, match="of a generator"):
        node.trace.update(a=1.5, rng=Scripted([0.5]))


def test_exhausted_draws() -> None:
    node = track(listed().geom_rng, 1, 0.5, rng=Scripted(UNIFORMS))
    made = node.trace.update(beta=0.1)
    full = track(listed().geom_rng, 1, 0.1, rng=Scripted(UNIFORMS))
    assert made.trace.error is not None and full.trace.error is not None
    assert made.trace.error.type is full.trace.error.type
    assert listing(made.trace) == listing(full.trace)


def test_only_what_changes() -> None:
    """Where a value is the old one, nothing more is done."""
    node = track(listed().h, 2.0, 3)
    made = node.trace.update(n=3)
    assert made.recomputed == frozenset()
    made = node.trace.update(x=2.5)
    assert {n.function for n in made.recomputed if isinstance(n, ItemNode)} == {"^", "+"}
    assert listing(made.trace) == format_levels(track(listed().h, 2.5, 3))
    powers = [n for n in made.recomputed if isinstance(n, ItemNode) and n.function == "^"]
    assert len(powers) == 3  # x ^ 0 is 1 as before: its sum is not evaluated
    assert len(made.recomputed) == 5


def test_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    node = model().track("saying", 1.0)
    assert "x is 1" in capsys.readouterr().out
    made = node.trace.update(x=2.0)
    assert made.trace.root.value == 3.0 and capsys.readouterr().out == ""


# ---------------------------------------------------------------- values that are set


def test_set_values_last() -> None:
    """What was set stays, also where its call runs again; operands of an op that was set are left alone."""
    node = track(listed().geom_rng, 1, 0.5, rng=Scripted(UNIFORMS))
    first = node.trace.update({inner(node, 4): 0.6})
    assert inner(first.trace.root, 4).value == 0.6 and inner(first.trace.root, 4, 2).value == UNIFORMS[0]
    second = first.trace.update(beta=0.55)
    assert second.trace.root.value == 3 and second.flips == []
    third = second.trace.update(beta=0.7)
    assert third.trace.root.value == 1 and [f.position for f in third.flips] == [6]
    assert inner(third.trace.root, 4).value == 0.6
    assert third.trace.update({inner(third.trace.root, 4): 0.8}).trace.root.value == 3


def test_set_in_a_call() -> None:
    """An argument of a call, a draw in it, and an argument of a block."""
    node = track(listed().geom_rng, 1, 0.5, rng=Scripted(UNIFORMS))
    made = node.trace.update({inner(node, 8, 3): 0.9})
    assert made.trace.root.value == 2 and [n.position for n in made.rerun_frames] == [8]
    assert inner(made.trace.root, 3).value == 0.5
    made = node.trace.update({inner(node, 8, 4, 2): 0.1})
    assert made.trace.root.value == 2 and inner(made.trace.root, 8, 4, 2).value == 0.1
    turn = track(listed().h, 2.0, 2)
    assert turn.trace.update({inner(turn, 15): 5.0}).trace.root.value == 7.0


def test_unused_settings() -> None:
    """What is set behind a jump that is not taken any more does not come to pass."""
    node = track(listed().geom_rng, 1, 0.5, rng=Scripted(UNIFORMS))
    later = inner(node, 8, 4, 2)
    made = node.trace.update({inner(node, 4): 0.1, later: 0.2})
    assert made.trace.root.value == 1 and made.unused == [later]


def test_updates_in_place_are_taken_back_in_order() -> None:
    node = track(listed().geom_rng, 1, 0.5, rng=Scripted(UNIFORMS))
    before = listing(node.trace)
    first = node.trace.update(in_place=True, beta=0.3)
    between = listing(node.trace)
    second = node.trace.update(in_place=True, beta=0.8)
    with pytest.raises(ArgumentError, match="before"):
        first.undo()
    second.undo()
    assert listing(node.trace) == between
    first.undo()
    assert listing(node.trace) == before
    with pytest.raises(ArgumentError, match="already"):
        first.undo()


def test_many_updates_in_place() -> None:
    """What can be taken back, and what is kept for that, is limited."""
    node = track(listed().geom_rng, 1, 0.5, rng=Scripted(UNIFORMS))
    before = listing(node.trace)
    made = [node.trace.update(in_place=True, beta=0.5 + 0.3 * (n % 2)) for n in range(1, 302)]
    for update in made[:200:-1]:
        update.undo()
    assert listing(node.trace) == listing(node.trace.update(beta=0.8).trace)
    with pytest.raises(ArgumentError, match="100 others"):
        made[200].undo()
    made = [node.trace.update(in_place=True, beta=0.5)]
    assert listing(node.trace) == before
    assert len(node.trace.tape.segments) <= 2 and len(node.trace.runs) <= 2


BAD: dict[str, tuple[Any, Any, str]] = {
    "a jump": (lambda t: t[6], 1, "a jump"),
    "a return": (lambda t: t[9], 1, "a return"),
    "the function": (lambda t: t[1], 1, "function itself"),
    "the call": (lambda t: t, 1, "was tracked"),
    "a condition": (lambda t: t[5], 0.5, "is a condition (true or false), but the real 0.5 was given"),
    "a condition that is 2": (lambda t: t[5], 2, "is a condition (true or false), but the int 2 was given"),
    "an int": (lambda t: t[2], 1.5, "'@2: 1' is int, but the real 1.5 was given"),
    "a container": (lambda t: t[3], [1.0, 2.0], "is real, but an array of reals with the sizes [2] was given"),
    "ragged": (lambda t: t[3], [[1.0], [1.0, 2.0]], "is real, but a ragged list was given"),
    "a text": (lambda t: t[3], "a", "is real, but the string 'a' was given"),
    "too large": (lambda t: t[2], 2**40, "is int, but the int 1099511627776 was given, which does not fit 32 bits"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_values(case: str) -> None:
    find, value, text = BAD[case]
    node = track(listed().geom_rng, 1, 0.5, rng=Scripted(UNIFORMS))
    with pytest.raises(ArgumentError, match=re.escape(text)):
        node.trace.update({find(node): value})


def test_bad_updates(tmp_path: Path) -> None:
    node = track(listed().geom_rng, 1, 0.5, rng=Scripted(UNIFORMS))
    other = track(listed().f, 1.0)
    vector = model().track("scaled", [1.0, 2.0, 3.0], 1.0)
    names: Any = {"beta": 1.0}
    word: Any = "new"
    for update, text in {
        (lambda: node.trace.update({inner(other, 2): 1.0})): "another trace",
        (lambda: node.trace.update(beat=1.0)): "did you mean 'beta'",
        (lambda: node.trace.update({inner(node, 3): 1.0}, beta=0.2)): "given twice",
        (lambda: node.trace.update(names)): "only nodes",
        (lambda: node.trace.update(beta=[1.0, 2.0])): "'geom_rng': argument 'beta' is real, but an array of reals",
        (lambda: vector.trace.update(v=[1.0])): r"with the sizes \[3\], but an array of reals with the sizes \[1\]",
        (lambda: node.trace.update(beta=1.0, rng=word)): "rng is",
        (lambda: inner(node, 8).update({})): "made of a trace",
    }.items():
        with pytest.raises(ArgumentError, match=text):
            update()
    node.trace.save(tmp_path / "t")
    with pytest.raises(ArgumentError, match="loaded"):
        load(tmp_path / "t").trace.update(beta=0.2)
    large = model().track("scaled", LARGE, 1.0)
    with pytest.raises(ArgumentError, match="digest"):
        large.trace.update({inner(large, 5): LARGE})
    short = model().track("loop", 1, 10_000, 1.0, context=TraceContext(limit_bytes=4096))
    with pytest.raises(ArgumentError, match="not whole"):
        short.trace.update(x=2.0)
    failed = model().track("fail", 20.0, 3)
    last = list(failed.children)[-1]
    with pytest.raises(ArgumentError):
        failed.trace.update({last: 1.0})
    node.trace.close()
    with pytest.raises(ArgumentError, match="closed"):
        node.trace.update(beta=0.2)


def test_partial_traces_run_again() -> None:
    """Where not all is recorded, changes of arguments run all again."""
    context = TraceContext(record=("values", "draws", "target"))
    made = check_function("sums", {"v": LARGE[:3], "a": 1.0, "b": 2.0}, {"a": 2.0}, None, context)
    assert made.rerun_frames == [made.trace.root]


CONTEXTS = [
    TraceContext(max_depth=8), TraceContext(max_depth=3), TraceContext(timing=True), TraceContext(constants=True),
    TraceContext(record=("values", "draws")),
]  # fmt: skip


@pytest.mark.parametrize("context", CONTEXTS)
def test_contexts(context: TraceContext, tmp_path: Path) -> None:
    """Depths that are counted, times, literals as nodes: as in a full run, also in one piece."""
    choose = random.Random(3)
    uniforms = [0.6 + 0.4 * choose.random() for _ in range(12)] + [0.1]
    node = track(listed().geom_rng, 1, 0.5, rng=Scripted(uniforms), context=context)
    for beta in (0.4, 0.999):
        made = node.trace.update(beta=beta)
        text = listing(made.trace)
        assert text == format_levels(track(listed().geom_rng, 1, beta, rng=Replay(made.trace), context=context))
        made.trace.save(tmp_path / "t")
        assert format_levels(load(tmp_path / "t")) == text == listing(from_json(made.trace.to_json()))


# ---------------------------------------------------------------- densities

CHANGES: list[Mapping[str, Any]] = [
    {"mu": 2.0}, {"mu": 0.2}, {"sigma": 1.0}, {"b": [-1.0, 3.0]}, {"mu": 3.0, "b": [3.0, 3.0]}, {"sigma": -800.0},
]  # fmt: skip


def at(changes: Mapping[str, Any], theta: list[float]) -> list[float]:
    b = changes.get("b", theta[2:])
    return [changes.get("mu", theta[0]), changes.get("sigma", theta[1]), *b]


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_density(number: int) -> None:
    """Target and listing are those of a full run, bit for bit, also from a version and back."""
    changes = CHANGES[number]
    trace = model().track_density(THETA).trace
    made = trace.update(**changes)
    full = model().track_density(at(changes, THETA)).trace
    assert listing(made.trace) == listing(full) and targets(made.trace) == targets(full)
    if full.root.value is not MISSING:
        assert made.delta == full.root.value - trace.root.value
    second = trace.update(mu=5.0).trace.update(**changes)
    full = model().track_density(at({"mu": 5.0, **changes}, THETA)).trace
    assert listing(second.trace) == listing(full) and targets(second.trace) == targets(full)
    back = second.trace.update(mu=THETA[0], sigma=THETA[1], b=THETA[2:])
    assert listing(back.trace) == listing(trace) and targets(back.trace) == targets(trace)


def test_density_in_one_piece(tmp_path: Path) -> None:
    """Saved versions, JSON, differences and gradients are those of a full run."""
    trace = model().track_density(THETA).trace
    made = trace.update(mu=2.0, b=[0.1, 0.2])
    full = model().track_density([2.0, THETA[1], 0.1, 0.2]).trace
    made.trace.save(tmp_path / "t")
    assert targets(load(tmp_path / "t").trace) == targets(full)
    assert targets(from_json(made.trace.to_json())) == targets(full)
    assert diff(made.trace, full).identical and not diff(trace, full).identical
    assert [a.at for a in made.trace.find(function="normal")] == [a.at for a in full.find(function="normal")]


def test_gradient_of_a_version() -> None:
    """The tape's gradient is checked at the version's point."""
    made = model().track_density(THETA, context=TraceContext(containers="copy")).trace.update(mu=0.6)
    found = made.trace.check_gradient(differences=False)
    assert found
    assert np.allclose(found.tape, model().log_density_gradient(np.array([0.6, *THETA[1:]]))[1], rtol=1e-10)


def test_markov_blanket() -> None:
    """The `~` nodes that are evaluated for a parameter are those that it leads to."""
    small = StanModel(
        "data { vector[2] y; } parameters { real m; real s; vector[2] z; } model { m ~ normal(0, 1);"
        " s ~ normal(0, 1); z ~ normal(m, exp(s)); y ~ normal(z, 1); }",
        data={"y": [0.5, 1.0]},
    )
    node = small.track_density([0.1, 0.2, 0.3, 0.4])
    for name, number, count in (("m", 3, 2), ("s", 4, 2), ("z", 5, 2)):
        changes: dict[str, Any] = {name: [1.0, 1.0] if name == "z" else 1.0}
        made = node.trace.update(**changes)
        evaluated = {n.position for n in made.recomputed if isinstance(n, TildeNode)}
        assert evaluated == {n.position for n in forward(inner(node, number)) if isinstance(n, TildeNode)}
        assert len(evaluated) == count


@pytest.mark.parametrize("in_place", [False, True])
def test_single_site_metropolis(in_place: bool) -> None:
    """A chain with updates is that with full evaluations, bit for bit."""
    names = ("mu", "sigma", "b")
    choose = np.random.default_rng(5)
    theta = {"mu": 0.1, "sigma": 0.2, "b": np.array([0.3, -0.4])}

    def whole() -> float:
        return model().track_density(np.concatenate([np.ravel(theta[name]) for name in names])).value

    trace = model().track_density(THETA).trace
    current, accepted = whole(), 0
    for step in range(45):
        name = names[step % 3]
        before = theta[name]
        proposed = before + 0.3 * choose.standard_normal(np.shape(before))
        threshold = math.log(choose.random())
        made = trace.update(in_place=in_place, **{name: proposed})
        theta[name] = proposed
        value = whole()
        assert made.trace.root.value.hex() == value.hex()
        if value - current > threshold:
            trace, current, accepted = made.trace, value, accepted + 1
            continue
        theta[name] = before
        if in_place:
            made.undo()
    assert trace.root.value.hex() == current.hex() and 5 < accepted < 45


def test_short_way_through_a_long_tape() -> None:
    """What does not depend on the change is not looked at."""
    node = model().track("long", 1.0, 200_000)
    made = node.trace.update(x=2.0)
    assert len(made.recomputed) == 2 and made.trace.root.value == model().track("long", 2.0, 200_000).value


def test_guide(capsys: pytest.CaptureFixture[str]) -> None:
    """The example of the guide prints what is printed there."""
    text = (Path(__file__).parents[2] / "docs" / "tracing.md").read_text().partition("## Changing a value\n")[2]
    code = text.partition("```python\n")[2].partition("```")[0]
    wanted = text.partition("```text\n")[2].partition("```")[0]
    exec(compile(code, "tracing.md", "exec"), {})
    assert capsys.readouterr().out == wanted
