"""Contexts: what is recorded, what is entered, hooks, times; asked once for each site, when the clone is compiled."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pytest

from ulam import StanModel
from ulam.passes.errors import NotSupportedError
from ulam.runtime.errors import ArgumentError, CompileError
from ulam.trace import (
    MISSING,
    Axis,
    Compose,
    Const,
    ConstantNode,
    ContextError,
    ControlFlowNode,
    DepthLimit,
    DrawNode,
    Enter,
    Hook,
    HookError,
    NestedCallNode,
    Node,
    Only,
    Primitive,
    PrimitiveCallNode,
    Replay,
    Scripted,
    Site,
    Skip,
    TraceContext,
    format_levels,
    is_builtin,
    load,
    query,
)
from ulam.tracing.instrument.graph import ValueType
from ulam.tracing.nodes import ItemNode

PROGRAM = """functions {
  real half(real x) { return x / 2; }
  real twice(real x) { return half(4 * x); }
  real deep(int n) { return n == 0 ? 0.5 : 1 + deep(n - 1); }
  vector fill(int n) {
    vector[n] v = rep_vector(0, n);
    for (i in 1:n) v[i] = log(i);
    if (n > 2) print("n is ", n);
    return v;
  }
  real draw_rng(real x) { return normal_rng(x, 1) + x; }
  real loop(int n) {
    real s = 0;
    for (i in 1:n) { if (i > 2) s += twice(i); else s -= 1; }
    return s;
  }
  array[] vector pairs(int n) { array[2] vector[n] a = {fill(n), fill(n) + 1}; return a; }
}
data { int N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; }
model { mu ~ normal(0, 2); y ~ normal(mu, sigma); target += -mu ^ 2; }
"""


@pytest.fixture(scope="module")
def model() -> StanModel:
    return StanModel(PROGRAM, data={"N": 2, "y": [0.5, 1.5]})


def nodes_of(root: Node) -> list[Node]:
    return list(query(root, Axis.DESCENDANT))


def names_of(root: Node) -> list[str]:
    return [str(getattr(node, "function", type(node).__name__)) for node in nodes_of(root)]


# ---------------------------------------------------------------- record


def test_values_are_left_out(model: StanModel) -> None:
    whole = model.track("loop", 4)
    bare = model.track("loop", 4, context=TraceContext(record={"checks"}))
    assert bare.value == whole.value == 12.0  # the result is always there
    assert [n.location for n in nodes_of(bare)] == [n.location for n in nodes_of(whole)]
    assert "⟨/⟩(@2, ⟨2.0⟩) = ?" in format_levels(bare)
    assert bare.trace.tape.recorder.info().bytes == whole.trace.tape.recorder.info().bytes  # chunks
    used = [node.trace.tape.recorder.chunk(0)[1] for node in (bare, whole)]
    assert used[0] < used[1] / 1.5


def test_draws_are_left_out(model: StanModel) -> None:
    context = TraceContext(record={"values"})
    node = model.track("draw_rng", 1.0, rng=Scripted([0.5]), context=context)
    assert isinstance(node, NestedCallNode) and isinstance(node[3], DrawNode)
    assert node[3].value is MISSING and node[4].value == 2.0
    node = model.track("draw_rng", 1.0, rng=Scripted([0.5]), context=TraceContext(record={"draws"}))
    assert isinstance(node, NestedCallNode) and node[3].value == 1.0 and node[4].value is MISSING
    assert model.track("draw_rng", 1.0, rng=Replay(node.trace)).value == 2.0


def test_prints_and_elements_are_left_out(model: StanModel, capsys: pytest.CaptureFixture[str]) -> None:
    whole = model.track("fill", 3)
    assert capsys.readouterr().out == "n is 3\n"
    context = TraceContext(record={"values"})
    node = model.track("fill", 3, context=context)
    assert capsys.readouterr().out == "n is 3\n"  # it prints all the same
    assert "print" in names_of(whole) and "print" not in names_of(node)
    assignments = [[n for n in nodes_of(root) if str(n).find("index_assign") > 0] for root in (whole, node)]
    assert len(assignments[0]) == len(assignments[1]) == 3
    np.testing.assert_allclose(assignments[0][-1].value, np.log([1, 2, 3]))
    assert assignments[1][-1].value is MISSING
    np.testing.assert_allclose(node.value, np.log([1, 2, 3]))


def test_densities_without_terms(model: StanModel) -> None:
    whole = model.track_density(np.array([0.3, 0.1]))
    for part, count in ({"tilde"}, 2), ({"target"}, 2), (set(), 0):
        node = model.track_density(np.array([0.3, 0.1]), context=TraceContext(record={"values", *part}))
        kinds = [n.item.kind for n in nodes_of(node) if isinstance(n, ItemNode)]
        assert sum(kind in ("tilde", "target") for kind in kinds) == count
        assert node.value == whole.value


def test_containers_without_contents(model: StanModel) -> None:
    node = model.track("fill", 3, context=TraceContext(containers="none"))
    assert node.value is MISSING and "rep_vector⟩(⟨0.0⟩, @2) = ?" in format_levels(node)


# ---------------------------------------------------------------- constants


def test_literals_as_nodes(model: StanModel) -> None:
    node = model.track("twice", 3.0, context=TraceContext(constants=True))
    assert (
        format_levels(node)
        == """⟨twice⟩(⟨3.0⟩) = 6.0
  @1: [Arg:§1:%1] twice
  @2: [Arg:§1:%2] 3.0
  @3: [Const:§1:%3] 4.0
  @4: [§1:%4] ⟨*⟩(@3, @2) = 12.0
  @5: [§1:%5] ⟨half⟩(@4) = 6.0
    @1: [Arg:§1:%1] half
    @2: [Arg:§1:%2] 12.0
    @3: [Const:§1:%3] 2.0
    @4: [§1:%4] ⟨/⟩(@2, @3) = 6.0
    @5: [§1:&1] return @4 = 6.0
  @6: [§1:&1] return @5 = 6.0"""
    )
    assert isinstance(node, NestedCallNode) and isinstance(node[3], ConstantNode) and node[3].value == 4
    assert model.track("loop", 4, context=TraceContext(constants=True)).value == model.track("loop", 4).value


# ---------------------------------------------------------------- hooks


def test_hooks_are_called_with_values(model: StanModel) -> None:
    seen: list[tuple] = []
    context = TraceContext(hooks={"half": lambda *call: seen.append(call), "rep_*": lambda *call: seen.append(call)})
    node = model.track("loop", 4, context=context)
    assert node.value == model.track("loop", 4).value
    assert [(site.name, site.line, values, value) for site, values, value in seen] == [
        ("half", 3, (12.0,), 6.0), ("half", 3, (16.0,), 8.0),
    ]  # fmt: skip
    seen.clear()
    model.track("fill", 2, context=context)
    [(_, values, value)] = seen
    assert values == (0.0, 2) and value.tolist() == [0.0, 0.0]


def test_hooks_of_containers_and_operators(model: StanModel) -> None:
    seen: list[tuple] = []
    by_line = TraceContext(hooks={lambda site: site.line == 17 and site.kind == "call": lambda *c: seen.append(c)})
    node = model.track("pairs", 3, context=by_line)
    names = [site.name for site, _, _ in seen]
    assert names == ["fill", "fill", "+", "array"]
    np.testing.assert_array_equal(seen[2][1][0], seen[1][2])
    np.testing.assert_array_equal(seen[3][2], node.value)
    multiplied: list[tuple] = []
    model.track("twice", 3.0, context=TraceContext(hooks={"*": lambda _, values, value: multiplied.append(values)}))
    assert multiplied == [(4.0, 3.0)]


def test_what_a_hook_raises_ends_the_run(model: StanModel) -> None:
    def refuse(site: Site, values: tuple, value: float) -> None:
        if value > 7:
            raise ValueError("too much")

    context = TraceContext(hooks={"half": refuse})
    node = model.track("loop", 4, context=context)
    assert node.value is MISSING
    error = node.trace.error
    assert error is not None and error.type is HookError and "too much" in error.message and "line 3" in error.message
    assert "⟨half⟩(@3) = 6.0" in format_levels(node)  # what was before is there
    with pytest.raises(HookError) as raised:
        model.track("loop", 4, context=context, on_error="raise")
    assert isinstance(raised.value.__cause__, ValueError) and raised.value.trace is not None
    assert model.track("loop", 2, context=context).value == -2.0

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.track("loop", 4, context=TraceContext(hooks={"half": interrupt}))
    assert model.track("loop", 4).value == 12.0


def test_a_hook_may_track(model: StanModel) -> None:
    inner: list[float] = []
    context = TraceContext(hooks={"half": lambda site, values, value: inner.append(model.track("deep", 2).value)})
    node = model.track("loop", 4, context=context)
    assert inner == [2.5, 2.5] and node.value == 12.0
    assert format_levels(node) == format_levels(model.track("loop", 4))


def test_hooks_are_not_called_by_replays(model: StanModel) -> None:
    calls: list[float] = []
    context = TraceContext(overflow="edges", hooks={"half": lambda site, values, value: calls.append(value)})
    node = model.track("loop", 4, context=context)
    assert format_levels(node) == format_levels(model.track("loop", 4)) and calls == [6.0, 8.0]


# ---------------------------------------------------------------- times


def test_times_of_calls(model: StanModel, tmp_path) -> None:
    start = time.perf_counter()
    node = model.track("loop", 2000, context=TraceContext(timing=True))
    elapsed = time.perf_counter() - start
    assert isinstance(node, NestedCallNode) and node.time is not None and 0 < node.time <= elapsed
    calls = [n for n in node.children if isinstance(n, NestedCallNode)]
    assert len(calls) == 1998 and all(n.time is not None and n.time >= 0 for n in calls)
    assert sum(n.time or 0 for n in calls) <= node.time
    intervals = [n.interval for n in calls]
    assert all(a is not None and b is not None and a[1] <= b[0] for a, b in zip(intervals, intervals[1:], strict=False))
    untimed = model.track("loop", 4)
    assert isinstance(untimed, NestedCallNode) and untimed.time is None
    node.trace.save(tmp_path / "trace")
    assert load(tmp_path / "trace").time == node.time


# ---------------------------------------------------------------- methods


class Answers(TraceContext):
    """Answers from a dictionary: name of a site → what its method gives. `asked`: by method."""

    def __init__(self, answers: dict, **options) -> None:
        super().__init__(**options)
        self.answers = answers
        self.asked: list[tuple[str, Site]] = []

    def _answer(self, method: str, site: Site):
        self.asked.append((method, site))
        return self.answers.get((method, site.name))

    def on_call(self, site: Site, depth: int):
        return self._answer("call", site) or super().on_call(site, depth)

    def on_primitive(self, site: Site):
        return self._answer("primitive", site)

    def on_special(self, site: Site):
        return self._answer("special", site)

    def on_constant(self, site: Site):
        return self._answer("constant", site)

    def on_argument(self, site: Site):
        return self._answer("argument", site)

    def on_jump(self, site: Site):
        return self._answer("jump", site)

    def on_return(self, site: Site):
        return self._answer("return", site)


def test_calls(model: StanModel) -> None:
    calls: list[tuple] = []
    answers = {("call", "half"): Primitive(), ("call", "log"): Hook(lambda *call: calls.append(call))}
    context = Answers(answers)
    node = model.track("twice", 3.0, context=context)
    assert isinstance(node, NestedCallNode) and type(node[4]) is PrimitiveCallNode and node[4].value == 6.0
    model.track("fill", 2, context=context)
    assert [(values, value) for _, values, value in calls] == [((1,), 0.0), ((2,), math.log(2))]
    forced = Answers({("call", "half"): Enter()}, enter=())
    assert isinstance(model.track("twice", 3.0, context=forced)[4], NestedCallNode)  # pyright: ignore


def test_calls_that_are_skipped(model: StanModel) -> None:
    node = model.track("twice", 3.0, context=Answers({("call", "half"): Skip()}))
    assert (
        format_levels(node)
        == """⟨twice⟩(⟨3.0⟩) = 6.0
  @1: [Arg:§1:%1] twice
  @2: [Arg:§1:%2] 3.0
  @3: [§1:%3] ⟨*⟩(⟨4.0⟩, @2) = 12.0
  @4: [§1:&1] return ⟨?⟩"""
    )
    node = model.track("loop", 3, context=Answers({("primitive", ">"): Skip()}))
    assert " since ⟨?⟩ == false" in format_levels(node) and node.value == 4.0


def test_metadata_of_all_kinds(model: StanModel) -> None:
    kinds = {
        ("primitive", "log"): {"cost": 20}, ("special", "index_assign"): {"writes": 1}, ("special", "print"): {"io": 1},
        ("argument", "v"): {"loop": True}, ("jump", "§2"): {"back": 1}, ("return", "fill"): {"end": 1},
        ("constant", "constant"): {"c": 1},
    }  # fmt: skip
    context = Answers(kinds, constants=True, metadata=lambda site: {"l": site.line} if site.name == "log" else None)
    node = model.track("fill", 3, context=context)
    text = format_levels(node)
    for line in (" = 0.0  [l = 7, cost = 20]", "[writes = 1]", "[io = 1]", "[loop = True]", "[back = 1]"):
        assert line in text, line
    assert text.endswith("[end = 1]") and "[Const:§1:%3] 0.0  [c = 1]" in text
    asked = {method for method, _ in context.asked}
    assert asked == {"call", "primitive", "special", "constant", "argument", "jump", "return"}
    before = len(context.asked)
    model.track("fill", 2, context=context)
    assert len(context.asked) == before  # not at run time


def test_contexts_of_what_is_called(model: StanModel) -> None:
    class Inside(TraceContext):
        def on_nested(self, site: Site, child_context: TraceContext) -> TraceContext:
            return TraceContext(constants=True) if site.name == "half" else child_context

    text = format_levels(model.track("twice", 3.0, context=Inside()))
    assert "⟨*⟩(⟨4.0⟩, @2)" in text and "    @3: [Const:§1:%3] 2.0" in text


def test_functions_that_cannot_be_traced(model: StanModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A context may leave a call primitive that cannot be entered."""
    from ulam.tracing.instrument import unit

    real = unit.traced_function

    def failing(function, symbol, names, form):
        if function.stan_name.data == "half":
            raise NotSupportedError("half of it cannot be traced", function.location)
        return real(function, symbol, names, form)

    monkeypatch.setattr(unit, "traced_function", failing)
    seen: list[tuple] = []

    class Careful(TraceContext):
        def on_error(self, site: Site, exception: Exception):
            seen.append((site.name, str(exception)))
            return Primitive()

    with pytest.raises(CompileError, match="half of it"):
        model.track("loop", 3, context=TraceContext(max_copy=63))
    node = model.track("loop", 3, context=Careful())
    assert node.value == 4.0 and len(seen) == 1 and seen[0][0] == "half"
    assert "⟨half⟩(@3) = 6.0" in format_levels(node)


def test_mistakes_of_contexts(model: StanModel) -> None:
    class Broken(TraceContext):
        def can_enter(self, site: Site, depth: int) -> bool:
            return 1 / (depth - 2) > 0

    with pytest.raises(ContextError, match="ZeroDivisionError"):
        model.track("twice", 3.0, context=Broken())
    with pytest.raises(ContextError, match="KeyError"):
        model.track("twice", 3.0, context=TraceContext(metadata=lambda site: {}["x"]))
    with pytest.raises(ArgumentError, match="no answer for a jump"):
        model.track("fill", 3, context=Answers({("jump", "§2"): Skip()}))
    with pytest.raises(ArgumentError, match="does not know value"):
        TraceContext(record={"value"})
    with pytest.raises(ArgumentError, match="one string"):
        TraceContext(record="values")
    with pytest.raises(ArgumentError, match="none, digest or copy"):
        TraceContext(containers="some")


# ---------------------------------------------------------------- depth


def test_depths_that_are_counted(model: StanModel, tmp_path) -> None:
    """Above 4, calls are counted at run time; what is printed is the same as with a clone for each depth."""
    for most in (1, 2, 4, 5, 6, 30):
        node = model.track("deep", 8, context=DepthLimit(most))
        assert node.value == 8.5
        depth = 0
        inner: Node = node
        while isinstance(inner, NestedCallNode):
            depth += 1
            inner = next(n for n in inner.children if getattr(n, "function", "") == "deep") if depth < 9 else inner[2]
        assert depth == min(most - 1, 9)
    counted = model.track("deep", 3, context=DepthLimit(5))
    assert format_levels(counted) == format_levels(model.track("deep", 3))
    node = model.track("loop", 5, context=DepthLimit(5))
    assert format_levels(node) == format_levels(model.track("loop", 5))
    cut = model.track("deep", 8, context=DepthLimit(6))
    cut.trace.save(tmp_path / "trace")
    assert format_levels(load(tmp_path / "trace")) == format_levels(cut)
    assert format_levels(cut) == "\n".join(
        line for line in format_levels(model.track("deep", 8)).split("\n") if not line.startswith("  " * 6)
    )
    assert [n.position for n in cut.trace.find(function="deep")] == [6] * 5


def test_depths_of_many_functions() -> None:
    """Where clones for each depth would be more than 64, calls are counted as well."""
    chain = " ".join(f"real f{n}(real x) {{ return f{n + 1}(x) + {n}; }}" for n in range(20))
    model = StanModel(f"functions {{ real f20(real x) {{ return x; }} {chain} }}")
    for most in (3, 4):
        node = model.track("f0", 1.0, context=DepthLimit(most))
        assert bool(node.trace.tape.tables.stub) == (most == 4)
        assert node.value == 191.0 and sum(isinstance(n, NestedCallNode) for n in nodes_of(node)) == most - 2


DENSITIES = """functions {
  real my_lpdf(real x, real m) { return normal_lupdf(x | m, 2.0) + inner_lupdf(x | m); }
  real inner_lpdf(real x, real m) { return cauchy_lupdf(x | m, 3.0); }
  real add_lp(real x) { x ~ student_t(3, 0, 1); return 0; }
}
data { real y; }
parameters { real mu; }
model { mu ~ my(0); y ~ my(mu); target += my_lupdf(mu | 1); real q = add_lp(mu); }
"""


@pytest.mark.parametrize("propto", [True, False])
def test_depths_of_densities(propto: bool) -> None:
    """Constants are dropped where the program drops them, however deep it is recorded."""
    model = StanModel(DENSITIES, data={"y": 0.5})
    theta = np.array([0.7])
    expected = model.log_density(theta, propto=propto)
    for most in (2, 4, 9):
        node = model.track_density(theta, propto=propto, context=DepthLimit(most))
        assert node.value == pytest.approx(expected, rel=1e-14)


# ---------------------------------------------------------------- composed, and keys


def test_composed_contexts(model: StanModel) -> None:
    seen: list[str] = []
    first = Answers({("primitive", "*"): {"a": 1, "b": 1}, ("return", "twice"): {"r": 1}})
    second = Answers({("primitive", "*"): {"b": 2}, ("call", "/"): Hook(lambda site, *_: seen.append(site.name))})
    node = model.track("twice", 3.0, context=Compose(first, second))
    text = format_levels(node)
    assert "⟨*⟩(⟨4.0⟩, @2) = 12.0  [a = 1, b = 2]" in text and text.endswith("[r = 1]") and seen == ["/"]
    assert len(nodes_of(model.track("twice", 3.0, context=Compose(Only("twice"), TraceContext())))) == 5
    timed = model.track("twice", 3.0, context=Compose(TraceContext(timing=True), TraceContext(constants=True)))
    assert isinstance(timed, NestedCallNode) and timed.time is not None and "[Const:" in format_levels(timed)
    both = Compose(TraceContext(record={"values", "draws"}), TraceContext(record={"draws", "print"}))
    assert both.record == {"draws"}


def test_keys_tell_contexts_apart() -> None:
    def hook(*_: object) -> None:
        return None

    class Mine(TraceContext):
        pass

    different = [
        TraceContext(), TraceContext(record={"values"}), TraceContext(constants=True), TraceContext(timing=True),
        TraceContext(hooks={"f": hook}), TraceContext(hooks={"g": hook}), TraceContext(hooks={"f": lambda *_: None}),
        TraceContext(max_depth=3), TraceContext(containers="none"), TraceContext(primitives={"f"}), Only("f"), Mine(),
        Mine(), TraceContext(metadata=hook),
    ]  # fmt: skip
    assert len({context.compiled_key for context in different}) == len(different)
    assert TraceContext(max_depth=3).compiled_key == DepthLimit(3).compiled_key
    assert TraceContext(hooks={"f": hook}).compiled_key == TraceContext(hooks={"f": hook}).compiled_key
    assert TraceContext(overflow="ring", limit_bytes=1 << 20).compiled_key == TraceContext().compiled_key


# ---------------------------------------------------------------- what else nodes tell

DETAILS = """functions {
  real g(real x) {
    real y = x;
    profile("part") {
      y = exp(y);
    }
    for (i in 1:3) {
      if (i == 2) break;
      y += i;
    }
    return y > 5 ? y : -y;
  }
  real total(vector v) { return sum(v); }
  real both() { return total([1, 2]') + total([1, 2]'); }
}
"""


def test_places_of_jumps_and_profiles() -> None:
    root = StanModel(DETAILS).track("g", 0.5)
    assert isinstance(root, NestedCallNode) and root.value == -(math.exp(0.5) + 1)
    lines = DETAILS.split("\n")
    words = []
    for node in root.children:
        if isinstance(node, ControlFlowNode) and node.span is not None:
            words.append(lines[node.span.line - 1][node.span.column - 1 : node.span.end_column - 1])
    assert words == ["for", "if", "for", "if", "break", "y", "return"]
    assert "$(profile)(⟨part⟩)" in format_levels(root)
    assert format_levels(root, source=True).split("\n")[-1].endswith("(model.stan:11:5)")


def test_equal_literals() -> None:
    root = StanModel(DETAILS).track("both")
    arguments = [c.arguments[0] for c in root.trace.find(function="row_vector") if isinstance(c, PrimitiveCallNode)]
    assert arguments[0] == arguments[1] == Const(1.0, ValueType("real")) and len(set(arguments)) == 1
    a, b, c = (Const(np.array(values), ValueType("vector")) for values in ([1.0, 2.0], [1.0, 2.0], [1.0, 3.0]))
    assert a == b != c and hash(a) == hash(b)


SOLVERS = """functions {
  vector decay(real t, vector y, real k) { return -k * y; }
  array[] vector solved(vector y) { return ode_rk45(decay, y, 0, {1.0, 2.0}, 2.0); }
}
"""


def test_solvers_are_primitive() -> None:
    """With the function that they are given as their first operand, unless `enter` names them (test_trace_solvers)."""
    model = StanModel(SOLVERS)
    root = model.track("solved", [1.0, 2.0])
    assert isinstance(root, NestedCallNode)
    solver = next(root.trace.find(function="ode_rk45"))
    assert type(solver) is PrimitiveCallNode
    assert str(solver.arguments[0]) == "⟨decay⟩" and solver.arguments[0].value == "decay"
    np.testing.assert_allclose(root.value[:, 0], np.exp([-2.0, -4.0]), rtol=1e-5)
    with pytest.raises(ArgumentError, match="'sin' is a function of Stan's library: its calls .* cannot be entered$"):
        model.track("solved", [1.0, 2.0], context=Only("sin"))
    assert model.track("solved", [1.0, 2.0], context=TraceContext(primitives={"ode_rk45"})).value.shape == (2, 2)
    assert is_builtin("ode_rk45") and is_builtin("sin") and is_builtin("reduce_sum") and not is_builtin("decay")


def test_the_example_of_the_guide(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "tracing.md").read_text()
    examples = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    names: dict = {}
    exec(next(example for example in examples if "class Draws" in example), names)
    program = "functions { real rand_rng() { return uniform_rng(0, 1); } real g_rng() { return 2 * rand_rng(); } }"
    node = StanModel(program).track("g_rng", rng=Scripted([0.25]), context=names["Draws"]())
    assert node.value == 0.5 and capsys.readouterr().out == "line 1: 0.25\n"


def test_no_gradient_without_all_terms(model: StanModel) -> None:
    """A `~` statement that is no node would be missing from the gradient on the tape."""
    node = model.track_density(np.array([0.3, 0.1]), context=Answers({("call", "normal"): Skip()}))
    assert node.value == model.track_density(np.array([0.3, 0.1])).value
    with pytest.raises(ArgumentError, match="not all that is added to the target was recorded"):
        node.trace.adjoint()
