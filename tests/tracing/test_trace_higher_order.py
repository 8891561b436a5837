"""Higher-order functions of the library that are entered: each call of their function is recorded."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ulam import StanModel
from ulam.runtime.errors import ArgumentError, Rejection
from ulam.trace import (
    MISSING,
    ArgumentNode,
    Axis,
    DepthLimit,
    Enter,
    JumpNode,
    NestedCallNode,
    NoDerivative,
    Only,
    PrimitiveCallNode,
    Site,
    SpecialCallNode,
    TraceContext,
    backward,
    diff,
    format_levels,
    from_json,
    load,
)

pytestmark = pytest.mark.usefixtures("quick_code")

PROGRAM = """functions {
  real rate(real k, real t) { return k * exp(-t); }
  vector decay(real t, vector y, real k) { return -rate(k, t) * y; }
  vector stiff(real t, vector y, real k) { return [-k * y[1] + y[2], -y[2]]'; }
  vector late(real t, vector y, real k) {
    if (t > 0.75) reject("late: ", t);
    return -k * y;
  }
  vector given(real t, vector y, array[] real theta, matrix A) { return theta[1] * A * y; }
  array[] real old(real t, array[] real y, array[] real theta, data array[] real x_r, data array[] int x_i) {
    return {theta[1] * y[1] + x_r[1] * x_i[1]};
  }
  array[] vector rk45(vector y, real k) { return ode_rk45(decay, y, 0, {0.5, 1.0}, k); }
  array[] vector ckrk(vector y, real k) { return ode_ckrk_tol(decay, y, 0, {0.5, 1.0}, 1e-4, 1e-4, 100, k); }
  array[] vector bdf(vector y, real k) { return ode_bdf(stiff, y, 0, {0.5, 1.0}, k); }
  array[] vector fails(vector y, real k) { return ode_rk45(late, y, 0, {0.5, 1.0}, k); }
  array[] vector few(vector y, real k) { return ode_rk45_tol(decay, y, 0, {50.0}, 1e-12, 1e-12, 3, k); }
  array[] vector more(vector y, real k) {
    array[2] real theta = {k, 1};
    return ode_rk45(given, y, 0, {1.0}, theta, diag_matrix(rep_vector(2, 2)));
  }
  array[,] real arrays(real k) { return integrate_ode_rk45(old, {1.0}, 0, {0.5}, {k}, {0.5}, {2}); }
  real chosen(real k) {
    real x = k;
    if (x > 1) return sum(ode_rk45(decay, [x, 1]', 0, {1.0}, k)[1]);
    return -x;
  }
  real part(array[] real x, int first, int last, real mu) { return normal_lpdf(x | mu, first + last); }
  real summed(array[] real x, real mu) { return reduce_sum(part, x, 1, mu); }
  vector job(vector shared, vector own, data array[] real x, data array[] int k) {
    print("job ", k[1]);
    if (own[1] < 0) reject("negative");
    return own[1] * shared + x[1];
  }
  vector mapped(vector shared, array[] vector own, data array[,] real x, data array[,] int k) {
    return map_rect(job, shared, own, x, k);
  }
  vector recursive(vector y, int n) {
    if (n == 0) return ode_rk45(decay, y, 0, {0.5}, 1.0)[1];
    return recursive(y, n - 1);
  }
}
"""
SOLVERS = ("ode_rk45", "ode_ckrk_tol", "ode_bdf", "ode_rk45_tol", "integrate_ode_rk45")
ALL = TraceContext(enter={"*", *SOLVERS, "reduce_sum", "map_rect"})
Y = [1.0, 2.0]


@pytest.fixture(scope="module")
def model() -> StanModel:
    return StanModel(PROGRAM)


def solvers(root: Any) -> Iterator[NestedCallNode]:
    """The calls of solvers that were entered."""
    for node in root.children:
        if isinstance(node, NestedCallNode):
            if node.item.calls_function:
                yield node
            else:
                yield from solvers(node)


def solver(root: Any) -> NestedCallNode:
    (found,) = solvers(root)
    return found


def calls(root: Any, name: str = "decay") -> list[PrimitiveCallNode]:
    return [node for node in solver(root) if isinstance(node, PrimitiveCallNode) and node.function == name]


def test_each_call_with_what_it_was_given(model: StanModel) -> None:
    root = model.track("rk45", Y, 2.0, context=ALL)
    node = solver(root)
    assert str(node).startswith("@5: ⟨ode_rk45⟩(⟨decay⟩, @2, ⟨0.0⟩, @4, @3) = [[")
    lines = [line.strip().partition(": ")[2] for line in format_levels(root, 3).split("\n") if "    @" in line]
    assert lines[:11] == [
        "[Arg:§1:%1] ode_rk45", "[Arg:§1:%2] decay", "[Arg:§1:%3] [1.0, 2.0]", "[Arg:§1:%4] 0.0",
        "[Arg:§1:%5] [0.5, 1.0]", "[Arg:§1:%6] 2.0", "[§1:&1] goto §2",
        "[§2:%7] $(opaque)(⟨t⟩, @3, @4, @5, @6) = 0.0",
        "[§2:%8] $(opaque)(⟨y⟩, @3, @4, @5, @6) = [1.0, 2.0]",
        "[§2:%9] ⟨decay⟩(@8, @9, @6) = [-2.0, -4.0]", "[§2:&1] goto §2",
    ]  # fmt: skip
    assert [line.split(" = ")[0] for line in lines[-3:]] == [
        "[§2:&2] goto §3", "[§3:%10] $(opaque)(⟨result⟩, @3, @4, @5, @6)", f"[§3:&1] return @{len(node) - 1}"
    ]  # fmt: skip
    np.testing.assert_array_equal(node.value, node[-1].value)
    np.testing.assert_array_equal(node.value, model.track("rk45", Y, 2.0).value)
    assert len(calls(root)) > 20
    for call in calls(root):
        assert isinstance(call, NestedCallNode)
        t, y, k = (operand.value for operand in call.arguments)
        np.testing.assert_array_equal(call.value, -(k * math.exp(-t)) * y)
        assert [inner.function for inner in call if isinstance(inner, NestedCallNode)] == ["rate"]
    line = next(n for n, line in enumerate(PROGRAM.split("\n"), 1) if "vector rk45(" in line)
    assert {span.line for inner in node if (span := inner.span) is not None} == {line}


def test_all_calls_are_there(model: StanModel) -> None:
    """As many as a hook counts, in their order."""
    seen: list[float] = []
    context = TraceContext(enter={"*", "ode_rk45"}, hooks={"decay": lambda site, values, value: seen.append(values[0])})
    root = model.track("rk45", Y, 2.0, context=context)
    assert seen == [call.arguments[0].value for call in calls(root)]
    exact = np.exp(-2 * (1 - np.exp(-0.5)))
    np.testing.assert_allclose(root.value[0], exact * np.array(Y), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "arguments", "function"),
    [("ckrk", (Y, 2.0), "decay"), ("bdf", (Y, 50.0), "stiff"), ("more", (Y, -0.5), "given"), ("arrays", (0.3,), "old")],
)
def test_other_solvers(model: StanModel, name: str, arguments: tuple[Any, ...], function: str) -> None:
    """The values are those of a run without records; the steps are in order of time but for those that are refused."""
    root = model.track(name, *arguments, context=ALL)
    np.testing.assert_array_equal(root.value, model.track(name, *arguments).value)
    found = calls(root, function)
    assert len(found) > 6
    plain = model.track(function, *(operand.value for operand in found[3].arguments))
    np.testing.assert_array_equal(found[3].value, plain.value)
    assert format_levels(found[3]).split("\n")[1:-1] == format_levels(plain).split("\n")[1:-1]


def test_entered_alone(model: StanModel) -> None:
    """Without the function: a node for each call; by a pattern, or by default, a solver is not entered."""
    root = model.track("rk45", Y, 2.0, context=TraceContext(enter={"ode_rk45"}))
    assert all(type(call) is PrimitiveCallNode for call in calls(root)) and len(calls(root)) > 20
    for context in (None, TraceContext(enter={"*"}), TraceContext(enter={"ode*"}), Only("decay")):
        found = next(model.track("rk45", Y, 2.0, context=context).trace.find(function="ode_rk45"))
        assert type(found) is PrimitiveCallNode
    with pytest.raises(ArgumentError, match="'sin' is a function of Stan's library: its calls .* cannot be entered$"):
        model.track("rk45", Y, 2.0, context=Only("sin"))

    class Mine(TraceContext):
        def on_call(self, site: Site, depth: int) -> Any:
            return Enter()

    assert len(calls(model.track("rk45", Y, 2.0, context=Mine()))) == len(calls(root))


@pytest.mark.parametrize("levels", [2, 3, 4, 5, 6])
def test_depth(model: StanModel, levels: int) -> None:
    """A solver is a level. From 5 on calls are counted at run time."""
    context = TraceContext(enter={"*", "ode_rk45"}, max_depth=levels)
    root = model.track("recursive", Y, 0, context=context)
    whole = format_levels(model.track("recursive", Y, 0, context=ALL))
    assert format_levels(root) == "\n".join(
        line for line in whole.split("\n") if (len(line) - len(line.lstrip())) // 2 < levels
    )
    assert isinstance(DepthLimit(levels), TraceContext)


# ---------------------------------------------------------------- runs that fail, and long ones


def test_a_function_that_rejects(model: StanModel) -> None:
    root = model.track("fails", Y, 2.0, context=ALL)
    error = root.trace.error
    assert error is not None and isinstance(error.exception, Rejection) and "late: 0.7" in str(error)
    last = calls(root, "late")[-1]
    assert isinstance(last, NestedCallNode) and last.threw and last.arguments[0].value > 0.75
    assert error.node is not None and error.node.parent == last
    assert all(call.arguments[0].value <= 0.75 for call in calls(root, "late")[:-1])


def test_a_solver_that_gives_up(model: StanModel) -> None:
    root = model.track("few", Y, 2.0, context=ALL)
    assert root.trace.error is not None and "ode_rk45_tol" in str(root.trace.error)
    found = calls(root)
    assert len(found) > 3 and all(np.isfinite(call.value).all() for call in found)
    assert not any(call.threw for call in found) and solver(root).threw
    assert isinstance(solver(root)[-1], PrimitiveCallNode | JumpNode)


@pytest.mark.parametrize("overflow", ["stop", "ring", "spill", "edges"])
def test_limits(model: StanModel, overflow: str) -> None:
    """What is kept is what a run without limit has there."""
    program = StanModel(PROGRAM.replace("1e-4, 1e-4, 100", "1e-13, 1e-13, 100000"))
    whole = solver(program.track("ckrk", Y, 2.0, context=ALL))
    context = TraceContext(enter=ALL.enter, limit_bytes=1 << 14, overflow=overflow)
    root = program.track("ckrk", Y, 2.0, context=context)
    node = solver(root)
    np.testing.assert_array_equal(root.value, whole.value)
    by_position = {n.at: n for n in whole}
    kept = [found for found in node if found.value is not MISSING]
    assert len(kept) > 50
    for found in kept:
        np.testing.assert_array_equal(found.value, by_position[found.at].value)
    positions = [found.at for found in kept if isinstance(found, SpecialCallNode) and found.type.rank]
    states = [n.at for n in whole if isinstance(n, SpecialCallNode) and n.type.rank]
    if overflow in ("spill", "edges"):
        assert format_levels(node) == format_levels(whole) and positions == states
    elif overflow == "ring":
        assert 10 < len(positions) < len(states) and positions[-10:] == states[-10:]
    else:
        assert 10 < len(positions) < len(states) and positions == states[: len(positions)]


def test_timing(model: StanModel) -> None:
    context = TraceContext(enter=ALL.enter, timing=True)
    root = model.track("rk45", Y, 2.0, context=context)
    node = solver(root)
    inner = [call.time for call in calls(root) if isinstance(call, NestedCallNode)]
    assert node.time is not None and 0 < sum(time or 0 for time in inner) <= node.time


# ---------------------------------------------------------------- everything else that is done with traces


def test_queries(model: StanModel) -> None:
    root = model.track("rk45", Y, 2.0, context=ALL)
    last = calls(root)[-1]
    assert isinstance(last, NestedCallNode)
    made_of = backward(last[-1], axis=Axis.PRECEDING | Axis.PARENT)
    names = {n.name for n in made_of if isinstance(n, ArgumentNode) and n.parent == root}
    assert names == {"y", "k"}  # through what the solver made
    with_control = backward(last[-1], axis=Axis.PRECEDING | Axis.PARENT, control=True)
    assert any(isinstance(n, JumpNode) for n in with_control)
    states = [n for n in solver(root) if isinstance(n, SpecialCallNode)]
    assert list(root.trace.find(function="opaque")) == states


def test_adjoints_are_those_of_the_whole(model: StanModel) -> None:
    seed = np.array([[1.0, -1.0], [0.5, 2.0]])
    plain = model.track("rk45", Y, 2.0).trace.adjoint(seed)
    root = model.track("rk45", Y, 2.0, context=ALL)
    found = root.trace.adjoint(seed)
    np.testing.assert_array_equal(found["y"], plain["y"])
    assert found["k"] == plain["k"] != 0
    inner = calls(root)[3]
    assert isinstance(inner, NestedCallNode) and inner.adjoint is None and inner[2].adjoint is None
    with pytest.raises(NoDerivative, match="a part of what the library did"):
        root.trace.adjoint(np.ones(2), node=inner)


def same_trace(a: Any, b: Any) -> None:
    assert format_levels(a) == format_levels(b)
    assert diff(a, b).identical


@pytest.mark.parametrize("in_place", [False, True])
def test_update(model: StanModel, in_place: bool) -> None:
    root = model.track("rk45", Y, 2.0, context=ALL)
    done = root.trace.update(k=2.5, in_place=in_place)
    same_trace(done.trace.root, model.track("rk45", Y, 2.5, context=ALL))
    assert [str(node.function) for node in done.rerun_frames] == ["ode_rk45"]
    state = next(node for node in solver(done.trace.root) if isinstance(node, SpecialCallNode))
    with pytest.raises(ArgumentError, match="a part of what the library did"):
        done.trace.update({state: 0.5})


def test_update_with_a_flip(model: StanModel) -> None:
    root = model.track("chosen", 0.5, context=ALL)
    same_trace(root.trace.update(k=1.5).trace.root, model.track("chosen", 1.5, context=ALL))
    assert isinstance(root, NestedCallNode)
    # op by op, for something else was set before
    comparison = next(node for node in root if isinstance(node, PrimitiveCallNode) and node.function == ">")
    flipped = root.trace.update({comparison: True}).trace
    whole = solver(model.track("rk45", Y, 2.0, context=ALL))
    assert str(solver(flipped.root)[8]) == str(whole[8])
    inner = calls(flipped.root)
    assert len(inner) > 5 and inner[0].arguments[1].value.tolist() == [0.5, 1.0]
    expected = model.track("decay", *(operand.value for operand in inner[2].arguments)).value
    np.testing.assert_array_equal(inner[2].value, expected)


def test_exports(model: StanModel, tmp_path: Path) -> None:
    root = model.track("rk45", Y, 2.0, context=ALL)
    same_trace(root, from_json(root.to_json()))
    root.trace.save(tmp_path / "trace")
    same_trace(root, load(tmp_path / "trace"))
    for export in (root.to_dot, root.to_svg, root.to_chrome_trace):
        assert "decay" in str(export())
    again = StanModel(root.to_stan(name="again"))  # the call of the solver is one there
    np.testing.assert_array_equal(again.track("again", Y, 2.0).value, root.value)


def test_where_two_runs_part(model: StanModel) -> None:
    first, second = (model.track("rk45", Y, k, context=ALL) for k in (2.0, 9.0))
    found = diff(first, second)
    assert found.first_divergent_edge is not None and found.result is not None
    counts = [len(calls(root)) for root in (first, second)]
    assert counts[0] < counts[1]


def test_in_a_model() -> None:
    program = PROGRAM + (
        "data { int N; array[N] real ts; array[N] vector[2] y; } parameters { real<lower=0> k; }\n"
        "transformed parameters { array[N] vector[2] z = ode_rk45(decay, [1, 2]', 0, ts, k); }\n"
        "model { for (n in 1:N) y[n] ~ normal(z[n], 0.1); }"
    )
    data = {"N": 2, "ts": [0.5, 1.0], "y": [[1.0, 1.5], [0.5, 1.0]]}
    model = StanModel(program, data)
    for theta in ([0.3], [1.1]):
        root = model.track_density(theta, context=ALL)
        assert root.value == model.track_density(theta).value and len(calls(root)) > 6
        np.testing.assert_array_equal(root.trace.adjoint(), model.track_density(theta).trace.adjoint())
        assert root.trace.check_gradient(rtol=1e-4)


def test_calls_are_in_order_of_the_run(model: StanModel) -> None:
    """Two solvers in one function have frames of their own."""
    program = PROGRAM.replace(
        "real chosen(real k) {",
        "real twice(real k) { return sum(ode_rk45(decay, [1, 2]', 0, {1.0}, k)[1])"
        " + sum(ode_rk45(stiff, [1, 2]', 0, {1.0}, k)[1]) + sum(ode_rk45(decay, [3, 4]', 0, {2.0}, k)[1]); }\n"
        "real chosen(real k) {",
    )
    root = StanModel(program).track("twice", 0.5, context=ALL)
    found = list(solvers(root))
    assert [node.arguments[0].value for node in found] == ["decay", "stiff", "decay"]
    symbols = [node.item.child for node in found]
    assert symbols[0] == symbols[2] != symbols[1]
    for a, b in itertools.pairwise(found):
        assert a.at < b.at
    assert [c.value.tolist() for c in found[2] if isinstance(c, NestedCallNode)][0] == [-1.5, -2.0]


def test_errors_of_contexts_name_what_is_wrong(model: StanModel) -> None:
    with pytest.raises(ArgumentError, match="does not have: nothing"):
        model.track("rk45", Y, 2.0, context=TraceContext(enter={"ode_rk45", "nothing"}))


def test_partial_sums(model: StanModel) -> None:
    """Entered by default; all of it is known."""
    x = [0.5, 1.0, -1.0]
    root = model.track("summed", x, 0.25)
    assert format_levels(root, 3).split("\n")[1:] == [
        "  @1: [Arg:§1:%1] summed",
        "  @2: [Arg:§1:%2] [0.5, 1.0, -1.0]",
        "  @3: [Arg:§1:%3] 0.25",
        f"  @4: [§1:%4] ⟨reduce_sum⟩(⟨part⟩, @2, ⟨1⟩, @3) = {root.value}",
        "    @1: [Arg:§1:%1] reduce_sum",
        "    @2: [Arg:§1:%2] part",
        "    @3: [Arg:§1:%3] [0.5, 1.0, -1.0]",
        "    @4: [Arg:§1:%4] 1",
        "    @5: [Arg:§1:%5] 0.25",
        "    @6: [§1:&1] goto §2",
        "    @7: [§2:%6] $(opaque)(⟨last⟩, @3) = 3",
        f"    @8: [§2:%7] ⟨part⟩(@3, ⟨1⟩, @7, @5) = {root.value}",
        "    @9: [§2:&1] goto §3 (@8)",
        f"    @10: [Arg:§3:%8] @9#1 = {root.value}",
        f"    @11: [§3:&1] return @10 = {root.value}",
        f"  @5: [§1:&1] return @4 = {root.value}",
    ]
    assert root.value == model.track("summed", x, 0.25, context=Only()).value
    plain = model.track("part", x, 1, 3, 0.25).trace.adjoint()
    adjoint = root.trace.adjoint()
    np.testing.assert_array_equal(adjoint["x"], plain["x"])
    assert adjoint["mu"] == plain["mu"] == model.track("summed", x, 0.25, context=Only()).trace.adjoint()["mu"]
    (call,) = calls(root, "part")
    assert call.adjoint == 1.0
    updated = root.trace.update(mu=0.5)
    same_trace(updated.trace.root, model.track("summed", x, 0.5))
    assert not updated.rerun_frames
    assert isinstance(call, NestedCallNode)
    assert root.trace.update({call[5]: 0.75}).trace.root.value == model.track("part", x, 1, 3, 0.75).value
    same_trace(root.trace.update(x=[0.5, 1.0, 3.0]).trace.root, model.track("summed", [0.5, 1.0, 3.0], 0.25))
    nothing = model.track("summed", [], 0.25)
    assert nothing.value == 0.0 and calls(nothing, "part") == []
    same_trace(nothing, from_json(nothing.to_json()))
    again = StanModel(root.to_stan(name="again"))
    assert again.track("again", x, 0.25).value == root.value


@pytest.mark.parametrize("propto", [False, True])
def test_partial_sums_of_a_model(propto: bool) -> None:
    program = """functions {
      real part_lpmf(array[] int n, int first, int last, vector eta) { return poisson_log_lupmf(n | eta[first:last]); }
      real full(array[] int n, int first, int last, vector eta) { return poisson_log_lpmf(n | eta[first:last]); }
    }
    data { array[4] int n; } parameters { vector[4] eta; }
    model { target += reduce_sum(part_lupmf, n, 1, eta) + reduce_sum(full, n, 1, eta); eta ~ std_normal(); }"""
    model = StanModel(program, {"n": [1, 0, 2, 5]}, opt_level=0)
    theta = np.array([0.1, -0.5, 0.3, 1.0])
    root = model.track_density(theta, propto=propto)
    value, gradient = model.log_density_gradient(theta, propto=propto)
    assert root.value == value and len(list(solvers(root))) == 2
    np.testing.assert_allclose(root.trace.adjoint(), gradient, rtol=1e-13)
    assert root.trace.check_gradient()


def test_jobs_in_their_order(model: StanModel, capsys: pytest.CaptureFixture[str]) -> None:
    own, x, k = [[1.0], [2.0], [-3.0]], [[0.1], [0.2], [0.3]], [[10], [20], [30]]
    root = model.track("mapped", [1.0, 2.0], own[:2], x[:2], k[:2])
    assert capsys.readouterr().out == "job 10\njob 20\n"
    np.testing.assert_allclose(root.value, [1.1, 2.1, 2.2, 4.2])
    found = calls(root, "job")
    assert [call.arguments[1].value.tolist() for call in found] == own[:2]
    assert [call.value.tolist() for call in found] == [root.value[:2].tolist(), root.value[2:].tolist()]
    root = model.track("mapped", [1.0, 2.0], own, x, k, context=ALL)
    assert root.trace.error is not None and "negative" in str(root.trace.error)
    assert [call.threw for call in calls(root, "job")] == [False, False, True]


def test_the_example_of_the_guide() -> None:
    text = (Path(__file__).parents[2] / "docs" / "tracing.md").read_text()
    (shown,) = [part for part in text.split("```") if "⟨ode_rk45⟩(" in part]
    program = """functions {
      vector decay(real t, vector y, real k) { return -k * y; }
      real solved(real k) { return ode_rk45(decay, [1]', 0, {0.5}, k)[1, 1]; }
    }"""
    root = StanModel(program).track("solved", 2.0, context=TraceContext(enter={"ode_rk45"}))
    assert shown.removeprefix("text\n") in format_levels(root)
