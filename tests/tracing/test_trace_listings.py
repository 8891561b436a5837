"""Acceptance tests 1 to 7 of tracing: listings byte for byte, queries, places, contexts, draws."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from trace_programs import GEOM, GEOM_ONE_LEVEL, GEOM_TERNARY, PROGRAM, UNIFORMS, ZERO_INSIDE, F, H

from ulam import StanModel
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.errors import ArgumentError
from ulam.trace import (
    MISSING,
    Axis,
    Compose,
    DepthLimit,
    DrawsExhausted,
    NestedCallNode,
    Only,
    PrimitiveCallNode,
    Replay,
    Scripted,
    Seeded,
    TraceContext,
    backward,
    dependents,
    format_levels,
    forward,
    functions,
    print_levels,
    query,
    referenced,
    traced_ir,
    track,
)
from ulam.tracing.instrument.unit import find_function

S = Scripted(UNIFORMS)


@pytest.fixture(scope="module")
def model() -> StanModel:
    return StanModel(PROGRAM)


def positions(nodes) -> list[int]:
    return [node.position for node in nodes]


# ---------------------------------------------------------------- 1, 2: f


def test_listing_of_f(model: StanModel) -> None:
    node = model.track("f", 1.0)
    assert format_levels(node, 2) == F
    out = io.StringIO()
    print_levels(node, 2, file=out)
    assert out.getvalue() == F + "\n"
    assert format_levels(track(functions(PROGRAM).f, 1.0)) == F


def test_queries_of_f(model: StanModel) -> None:
    node = model.track("f", 1.0)
    assert isinstance(node, NestedCallNode)
    assert positions(referenced(node[5])) == [4]
    assert [(n, other.position) for n, other in referenced(node[5], numbered=True)] == [(1, 4)]
    assert [(n, other.position) for n, other in referenced(node[4], numbered=True)] == [(2, 3), (3, 2)]
    assert positions(backward(node[5])) == [4, 3, 2]
    assert positions(dependents(node[2])) == [3, 4]
    assert positions(forward(node[2])) == [3, 4, 5]


def test_places_of_f(model: StanModel) -> None:
    node = model.track("f", 1.0)
    assert isinstance(node, NestedCallNode)
    assert node[4].parent is node
    assert str(node[4].location) == "§1:%4"
    assert str(node[5].location) == "§1:&1"

    location = node[4].location
    assert location is not None
    add = node[4].ir[location]
    assert add.name == "stan.add"
    span = node[4].span
    assert span is not None
    assert PROGRAM.split("\n")[span.line - 1][span.column - 1 : span.end_column - 1] == "+"
    called = node[3].span
    assert called is not None
    assert PROGRAM.split("\n")[called.line - 1][called.column - 1 : called.end_column - 1] == "sin"


def test_equal_nodes(model: StanModel) -> None:
    node, other = model.track("f", 1.0), model.track("f", 1.0)
    assert isinstance(node, NestedCallNode) and isinstance(other, NestedCallNode)
    assert node[4] == node.children[3] == referenced(node[5])[0]
    assert len({node[4], node[4], node[3]}) == 2
    assert node[4] != other[4]


def test_indexing(model: StanModel) -> None:
    node = model.track("h", 2.0, 2)
    assert isinstance(node, NestedCallNode)
    assert node[-1] == node[26] and node[4].position == 4
    assert positions(node[[2, 3]]) == [2, 3]
    assert positions(node[2:5]) == [2, 3, 4]
    assert positions(node.children[1:4]) == [2, 3, 4]
    for wrong in (0, 27, -27):
        with pytest.raises(IndexError):
            node[wrong]


# ---------------------------------------------------------------- 3: h


def test_listing_of_h(model: StanModel) -> None:
    node = model.track("h", 2.0, 2)
    assert format_levels(node, 2) == H
    lines = H.split("\n")
    assert format_levels(node, 3).split("\n") == [*lines[:5], *ZERO_INSIDE.split("\n"), *lines[5:]]
    assert len(format_levels(node, 3).split("\n")) == 30
    assert node.value == 3.0


@pytest.mark.parametrize(("n", "count"), [(0, 10), (1, 18), (2, 26), (10, 90), (5000, 40010)])
def test_number_of_nodes_of_h(model: StanModel, n: int, count: int) -> None:
    node = model.track("h", 1.0, n)
    assert len(node.children) == count
    assert node.value == n


def test_far_positions_of_a_long_loop(model: StanModel) -> None:
    """Beyond one checkpoint: the nodes read from behind are those read from the front."""
    node = model.track("h", 1.0, 5000)
    assert isinstance(node, NestedCallNode)
    assert str(node[40010]) == "@40010: return @40007 = 5000.0"
    assert str(node[39998]) == "@39998: @39997#1 = 4999"
    assert [str(n) for n in node.children][39990:] == [str(node[p]) for p in range(39991, 40011)]
    assert str(node[40002]) == "@40002: ⟨^⟩(@2, @39998) = 1.0"


# ---------------------------------------------------------------- 4, 5: draws


def test_listing_of_geom(model: StanModel) -> None:
    node = model.track("geom_rng", 1, 0.5, rng=S)
    assert format_levels(node, 3) == GEOM
    assert format_levels(node, 1) == "⟨geom_rng⟩(⟨1⟩, ⟨0.5⟩) = 3"
    assert len(list(query(node, Axis.DESCENDANT))) == 34
    assert node.trace.draws_used == 3


def test_too_few_draws(model: StanModel) -> None:
    node = model.track("geom_rng", 1, 0.5, rng=Scripted(UNIFORMS[:2]))
    error = node.trace.error
    assert error is not None and error.type is DrawsExhausted
    assert node.value is MISSING
    assert error.node is not None and str(error.node).startswith("@2: ⟨uniform_rng⟩(⟨0.0⟩, ⟨1.0⟩) = ✗ ")
    kept = format_levels(node, 3).split("\n")
    expected = GEOM.split("\n")
    assert kept[1:11] == expected[1:11]
    assert kept[12:19] == expected[12:19]
    assert len(kept) == 20 and kept[11].startswith("  @8: [§3:%7] ⟨geom_rng⟩(@7, @3) = ✗ ")
    with pytest.raises(DrawsExhausted) as raised:
        model.track("geom_rng", 1, 0.5, rng=Scripted(UNIFORMS[:2]), on_error="raise")
    assert format_levels(raised.value.trace.root, 3) == "\n".join(kept)


def test_listing_with_a_join(model: StanModel) -> None:
    assert format_levels(model.track("geomt_rng", 1, 0.5, rng=S), 2) == GEOM_TERNARY
    lines = format_levels(model.track("geomb_rng", 1, 0.5, rng=S), 2).split("\n")
    assert lines[4] == "  @4: [§1:%4] ⟨bernoulli_rng⟩(@3) = 0"
    assert lines[5] == "  @5: [§1:&1] goto §3 since @4 == 0"


def test_replayed_draws(model: StanModel) -> None:
    first = model.track("geom_rng", 1, 0.05, rng=Seeded(3))
    again = model.track("geom_rng", 1, 0.05, rng=Replay(first.trace))
    assert format_levels(first) == format_levels(again)
    assert format_levels(model.track("geom_rng", 1, 0.05, rng=Seeded(3))) == format_levels(first)


# ---------------------------------------------------------------- 6, 7: contexts


def test_depth_limits(model: StanModel) -> None:
    node = model.track("geom_rng", 1, 0.5, context=DepthLimit(2), rng=S)
    assert isinstance(node, NestedCallNode)
    assert format_levels(node) == GEOM_ONE_LEVEL
    assert len(GEOM_ONE_LEVEL.split("\n")) == 10
    assert type(node[4]) is type(node[8]) is PrimitiveCallNode
    assert (node[4].value, node[8].value) == (0.7595635877474407, 3)
    root = model.track("geom_rng", 1, 0.5, context=DepthLimit(1), rng=S)
    assert type(root) is PrimitiveCallNode and len(root.children) == 0
    assert format_levels(root) == "⟨geom_rng⟩(⟨1⟩, ⟨0.5⟩) = 3"
    third = model.track("geom_rng", 1, 0.5, context=DepthLimit(3), rng=S)
    assert format_levels(third) == GEOM


def test_primitives_and_only(model: StanModel) -> None:
    node = model.track("h", 2.0, 2, context=TraceContext(primitives={"zero"}))
    assert isinstance(node, NestedCallNode)
    assert type(node[4]) is PrimitiveCallNode
    assert format_levels(node) == H
    geom = model.track("geom_rng", 1, 0.5, context=Only("geom_rng"), rng=S)
    assert isinstance(geom, NestedCallNode)
    assert type(geom[4]) is PrimitiveCallNode and isinstance(geom[8], NestedCallNode)
    both = Compose(Only("geom_rng"), TraceContext(primitives={"geom_*"}))
    assert format_levels(model.track("geom_rng", 1, 0.5, context=both, rng=S)) == GEOM_ONE_LEVEL


def test_metadata(model: StanModel) -> None:
    context = TraceContext(metadata=lambda site: {"cost": 1} if site.kind == "call" else None)
    node = model.track("h", 2.0, 1, context=context)
    assert isinstance(node, NestedCallNode)
    for line in format_levels(node, 2).split("\n")[1:]:
        assert line.endswith("  [cost = 1]") == (
            "⟨zero⟩(" in line or "⟨<⟩(" in line or "⟨^⟩(" in line or "⟨+⟩(" in line
        )
    node[5].metadata["seen"] = True
    assert str(node[5]) == "@5: goto §2 (⟨0⟩, @4)  [seen = True]"
    assert "cost" not in format_levels(model.track("h", 2.0, 1))


def test_hidden_self_node(model: StanModel) -> None:
    node = model.track("f", 1.0, context=TraceContext(self_node=False))
    assert format_levels(node) == "\n".join(line for line in F.split("\n") if "%1]" not in line)


def test_full_style(model: StanModel) -> None:
    lines = format_levels(model.track("h", 2.0, 1), 3, style="full").split("\n")
    assert lines[0] == "⟨h⟩(⟨2.0⟩, ⟨1⟩) = 1.0::real"
    assert "    @2: [Arg:§1:%2] @4#1 = 2.0::real" in lines
    assert "  @9: [§2:&2] goto §3 since @8 == true" in lines


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (("g", 1.0), "no function 'g'"),
        (("zerro", 1.0), "did you mean 'zero'?"),
        (("f",), "'f' takes 1 argument, not 0"),
        (("h", 1.0, 2.5), "'h': argument 'n' is int, but the real 2.5 was given"),
        (("f", "one"), "'f': argument 'x' is real, but the string 'one' was given"),
        (("f", None), "'f': argument 'x' is real, but a value of type NoneType was given"),
        (("f", [1.0]), "'f': argument 'x' is real, but an array of reals with the sizes [1] was given"),
        (("f", [[1.0], [1.0, 2.0]]), "'f': argument 'x' is real, but a ragged list was given"),
        (("h", 1.0, 2**40), "argument 'n' is int, but the int 1099511627776 was given, which does not fit 32 bits"),
        (("h", 1.0, 2**70), "argument 'n' is int, but the int 1180591620717411303424 was given, which does not fit"),
        (("geom_rng", 1, 0.5), "draws random numbers: give it some"),
    ],
)
def test_wrong_calls(model: StanModel, call: tuple, text: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(text)):
        model.track(*call)


def test_wrong_options(model: StanModel) -> None:
    with pytest.raises(ArgumentError, match="does not have: nothing"):
        model.track("f", 1.0, context=Only("nothing"))
    with pytest.raises(ArgumentError, match="keep or raise"):
        model.track("f", 1.0, on_error="ignore")
    with pytest.raises(ArgumentError, match="from 0 up to 1"):
        Scripted([1.5])
    with pytest.raises(ArgumentError, match="one string"):
        TraceContext(primitives="zero")
    with pytest.raises(ArgumentError, match="overflow is one of"):
        TraceContext(overflow="wrap")
    with pytest.raises(ValueError, match="at least one level"):
        format_levels(model.track("f", 1.0), 0)
    with pytest.raises(AttributeError, match="no function 'nothing'"):
        _ = functions(PROGRAM).nothing


# ---------------------------------------------------------------- what is left alone


def test_stored_functions_are_as_written(model: StanModel) -> None:
    """Lowering rewrites the program; what nodes show of it is a copy that nothing rewrites."""
    before = [
        str(function) for function in find_function(Compiler(PROGRAM, "model.stan", CompileOptions(0)).module, "h")
    ]
    node = model.track("h", 2.0, 2)
    assert isinstance(node, NestedCallNode)
    location = node[8].location
    assert location is not None
    op = node[8].ir[location]
    function = op
    while function.parent_op() is not None:
        function = function.parent_op()
    assert [str(function)] == before
    assert str(op.operands[0].owner).startswith("%0 = stan.read")


def test_number_of_ops_that_are_inserted(model: StanModel) -> None:
    """One per block, one per result, one before what may throw; for straight scalar code one per op and one in all."""
    for name, arguments in (("f", (1.0,)), ("h", (1.0, 2)), ("geom_rng", (1, 0.5)), ("geomb_rng", (1, 0.5))):
        text = traced_ir(getattr(functions(PROGRAM), name))
        graphs = model.track(name, *arguments, rng=S).trace.tape.tables.graphs
        blocks = sum(1 for g in graphs.values() for b in g.blocks if b.record)
        items = [item for g in graphs.values() for b in g.blocks for item in b.items]
        kept = sum(item.slot is not None for item in items)
        assert text.count("trace.block ") == blocks
        assert text.count("trace.value ") == kept
        assert text.count("trace.guard ") == sum(item.throws for item in items)
        assert sum(text.count(f"trace.{op} ") for op in ("block", "value", "guard")) <= blocks + 3 * len(items)
    clone = traced_ir(functions(PROGRAM).f).partition("stan.func @f.traced(")[2].partition("stan.return")[0]
    assert clone.count(" trace.") == 3  # its block, sin, +


def test_the_example_of_the_guide(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "tracing.md").read_text()
    code, shown = (text.split(f"```{kind}\n")[1].split("```")[0] for kind in ("python", "text"))
    exec(code, {})
    assert capsys.readouterr().out == shown
