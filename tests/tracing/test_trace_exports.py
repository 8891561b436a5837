"""Acceptance test 20 of tracing, exports: DOT, SVG, JSON (also of test 18), Chrome trace, networkx."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import networkx
import pytest
from trace_programs import PROGRAM, UNIFORMS, H
from traced_random_programs import Generator, stan_text

from ulam import StanModel
from ulam.runtime.errors import ArgumentError
from ulam.trace import (
    Axis,
    DepthLimit,
    NestedCallNode,
    Scripted,
    Seeded,
    TraceContext,
    format_levels,
    from_json,
    functions,
    query,
    referenced,
    schema,
    track,
)
from ulam.tracing.export.svg_layout import Box, LaidOutFrame, laid_out
from ulam.tracing.saved import DamagedTrace

SVG = "{http://www.w3.org/2000/svg}"
LOOP_CARRIED = {("@7", "@4"), ("@15", "@11"), ("@23", "@19")}

MORE = """functions {
  vector filled(int n) {
    vector[n] v;
    matrix[2, n] m = rep_matrix(1.5, 2, n);
    array[0] int none;
    for (i in 1:n) v[i] = m[2, i] / (i - 1);
    for (x in v) print("x = ", x);
    return v;
  }
  real fails(real x) { real y = log(x); if (is_nan(y)) reject("no ", x); return y; }
  int recursive(int n) { return n <= 0 ? 0 : 1 + recursive(n - 1); }
  real gamma_of_rng(real a) { return gamma_rng(a, 1) + normal_rng(0, 1); }
}
"""

DENSITY = """data { int N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; }
model { mu ~ normal(0, 10); y ~ normal(mu, sigma); target += -sigma; }
"""


@pytest.fixture(scope="module")
def h() -> NestedCallNode:
    node = StanModel(PROGRAM).track("h", 2.0, 2)
    assert isinstance(node, NestedCallNode)
    return node


@pytest.fixture(scope="module")
def more() -> dict[str, Any]:
    """Traces with containers, an error, recursion, draws of several kinds, and a density."""
    program = functions(MORE)
    model = StanModel(DENSITY, {"N": 2, "y": [0.5, -1.5]}, opt_level=0)
    return {
        "filled": track(program.filled, 3),
        "large": track(program.filled, 100),
        "fails": track(program.fails, -1.0),
        "recursive": track(program.recursive, 30),
        "gamma": track(program.gamma_of_rng, 2.5, rng=Seeded(3)),
        "density": model.track_density([0.25, -400.0]),
    }


# ---------------------------------------------------------------- DOT


def dot_edges(text: str) -> list[tuple[str, str, str]]:
    return re.findall(r'^\s*"([^"]+)" -> "([^"]+)" \[(.*)\];$', text, re.MULTILINE)


def test_dot_of_h(h: NestedCallNode, tmp_path: Path) -> None:
    """20: data edges are those of `referenced`, with block arguments from the sources of their jumps."""
    text = h.to_dot(tmp_path / "h.dot")
    assert (tmp_path / "h.dot").read_text() == text == h.trace.to_dot()
    edges = dot_edges(text)
    data = {(user, used) for user, used, style in edges if "label=" in style and "style=" not in style}
    assert data >= LOOP_CARRIED
    assert data == {(f"@{n.position}", f"@{o.position}") for n in h for o in referenced(n)}
    jumps = {(user, used) for user, used, style in edges if "dashed" in style}
    assert jumps == {(f"@{p + 1}", f"@{p}") for p in (5, 9, 13, 17, 21, 25)}
    calls = {(user, used) for user, used, style in edges if "dotted" in style}
    assert calls == {("@4/@1", "@4"), ("@4/@2", "@2")}
    assert text.count("subgraph") == 2
    assert 'URL="model.stan#L8"' in text and r"model.stan:8: r += x ^ i;" in text


def test_numbers_of_operands(h: NestedCallNode) -> None:
    labels = {(user, used): style for user, used, style in dot_edges(h.to_dot())}
    assert labels["@10", "@2"] == 'label="1"' and labels["@10", "@6"] == 'label="2"'
    assert labels["@25", "@24"] == 'label="0"', "the condition"
    assert labels["@15", "@11"] == 'label="2"', "the second argument of the jump"


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not here")
def test_graphviz_takes_it(h: NestedCallNode, more: dict[str, Any], tmp_path: Path) -> None:
    """20: `dot -Tsvg` reads what is written."""
    for node in (h, *more.values()):
        node.to_dot(tmp_path / "t.dot", max_nodes=60)
        made = subprocess.run(["dot", "-Tsvg", tmp_path / "t.dot"], capture_output=True, text=True, timeout=60)
        assert made.returncode == 0 and not made.stderr, made.stderr
    made = subprocess.run(["dot", "-Tsvg"], input=h.to_dot(), capture_output=True, text=True, timeout=60)
    titles = [t.text for t in ElementTree.fromstring(made.stdout).iter(f"{SVG}title")]
    assert {f"{user}->{used}" for user, used in LOOP_CARRIED} <= set(titles)


def test_what_is_not_finite_is_red(more: dict[str, Any]) -> None:
    text = more["filled"].to_dot()
    red = [line for line in text.splitlines() if "#c62828" in line]
    assert any("= inf" in line for line in red) and all("inf" in line or "nan" in line for line in red)
    svg = ElementTree.fromstring(more["filled"].to_svg())
    bad = [g for g in svg.iter(f"{SVG}g") if "bad" in g.get("class", "").split()]
    assert len(bad) == len(red)


def test_the_middle_is_left_out() -> None:
    node = track(functions(PROGRAM).h, 1.0, 1000)
    assert isinstance(node, NestedCallNode)
    text = node.to_dot(max_nodes=30)
    shown = set(re.findall(r'^\s*"(@\d+)" \[label', text, re.MULTILINE))
    assert len(shown) == 30, "29 nodes and the mark"
    assert {"@1", "@8", "@8010"} <= shown and "@4000" not in shown
    assert "7,981 nodes: @16 to @7996" in text
    assert {end for edge in dot_edges(text) for end in edge[:2]} <= shown
    svg = node.to_svg(max_nodes=30)
    assert "7,981 nodes" in svg and ElementTree.fromstring(svg) is not None
    assert "3 nodes inside" in text, "there is no room for the call"
    everything = node.to_dot(max_nodes=None)
    assert len(re.findall(r'^\s*"@\d+" \[label', everything, re.MULTILINE)) == 8010
    with pytest.raises(ArgumentError, match="max_nodes"):
        node.to_dot(max_nodes=0)


def test_levels_of_pictures(h: NestedCallNode) -> None:
    assert h.to_dot(levels=1).count("label=") == 1 and "subgraph" not in h.to_dot(levels=1)
    assert h.to_dot(levels=2).count("subgraph") == 1
    assert "<svg" in h.to_svg(levels=1) and "@4/@1" not in h.to_svg(levels=2)
    assert h[10].to_dot().count("label=") == 1, "a node that is no call"
    inner = h[4].to_dot()
    assert '"@3"' in inner and '"@5"' not in inner
    primitive = track(functions(PROGRAM).f, 1.0, context=DepthLimit(1))
    assert "1.8414709848078965" in primitive.to_svg() and "1.8414709848078965" in primitive.to_dot()


# ---------------------------------------------------------------- SVG


def test_svg_of_h(h: NestedCallNode, tmp_path: Path) -> None:
    """20: well-formed XML, complete by itself, with what screen readers and pointers ask for."""
    text = h.to_svg(tmp_path / "h.svg")
    assert (tmp_path / "h.svg").read_text(encoding="utf-8") == text
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg" and root.get("role") == "img"
    ids = {element.get("id"): element for element in root.iter() if element.get("id")}
    assert [ids[name].tag for name in (root.get("aria-labelledby") or "").split()] == [f"{SVG}title", f"{SVG}desc"]
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text) == [], "nothing from the network"
    assert "prefers-color-scheme: dark" in text
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    for user, used in LOOP_CARRIED:
        assert any(title.startswith(f"{user} uses {used} ") for title in titles)
    assert sum(title.startswith("@") and " uses " not in title for title in titles) == 29, "one for each node"
    assert any("@10: [§3:%8] ⟨^⟩(@2, @6) = 1.0\nmodel.stan:8: r += x ^ i;" in title for title in titles)
    classes = Counter(path.get("class") for path in root.iter(f"{SVG}path"))
    assert classes["dashed"] == 6 and classes["dotted"] == 1


def test_picture_of_the_guide(h: NestedCallNode) -> None:
    """`docs/trace_of_h.svg` is what is drawn: `ulam trace model.stan --function h --args 2.0 2 -o trace_of_h.svg`."""
    picture = Path(__file__).resolve().parents[2] / "docs" / "trace_of_h.svg"
    assert picture.read_text(encoding="utf-8") == h.to_svg()


def frames_within(frame: LaidOutFrame) -> list[LaidOutFrame]:
    inner = [layer for layer in frame.layers if isinstance(layer, LaidOutFrame)]
    return [frame, *(found for one in inner for found in frames_within(one))]


def segments(frame: LaidOutFrame) -> list[tuple[Any, tuple[float, float], tuple[float, float]]]:
    found = []
    for line in frame.lines:
        found += [(line, a, b) for a, b in zip(line.points, line.points[1:], strict=False)]
    return found


@pytest.mark.parametrize("name", ["h", "geom", "filled", "recursive", "density", "wide", "random"])
def test_nothing_overlaps(name: str, h: NestedCallNode, more: dict[str, Any]) -> None:
    """Boxes are apart and inside their frames, and no line crosses a box of its frame."""
    from ulam.tracing.export.graph import Picture

    node = h if name == "h" else more.get(name)
    if name == "geom":
        node = track(functions(PROGRAM).geom_rng, 1, 0.5, rng=Scripted(UNIFORMS))
    if name == "random":
        node = track(functions(stan_text(Generator(11).program())).g0_rng, 2, 0.5, [1, -4, 5], rng=Seeded(1))
    if name == "wide":
        sums = " + ".join(f"x * {n}.5" for n in range(40))
        node = track(functions(f"functions {{ real wide(real x) {{ return {sums}; }} }}").wide, 2.0)
    assert node is not None
    top = laid_out(Picture(node))
    for frame in frames_within(top):
        boxes: list[Box] = list(frame.boxes)
        places = [(b.x, b.y, b.x + b.width, b.y + b.height) for b in boxes]
        for left, above, right, below in places:
            assert left >= frame.left and right <= frame.width and above > 0 and below <= frame.height
        ordered = sorted(places, key=lambda place: (place[1], place[0]))
        for one, other in zip(ordered, ordered[1:], strict=False):
            assert one[2] < other[0] or one[3] < other[1], "side by side, or one below the other"
        for number, layer in enumerate(frame.layers):
            if isinstance(layer, LaidOutFrame):
                assert frame.tops[number] + layer.height <= frame.height
                assert frame.left + layer.width <= frame.width
        for line, (ax, ay), (bx, by) in segments(frame):
            for box, (left, above, right, below) in zip(boxes, places, strict=True):
                if box in (line.user, line.used):
                    continue
                apart = max(ax, bx) < left or min(ax, bx) > right or max(ay, by) <= above or min(ay, by) >= below
                assert apart, f"{line.user.name} → {line.used.name} crosses {box.name}"
        for along in (0, 1):  # straight pieces of lines of two values do not lie on each other
            pieces = [
                (round(a[along], 2), *sorted((a[1 - along], b[1 - along])), id(line.used))
                for line, a, b in segments(frame)
                if line.lane >= 0 and a[along] == b[along]
            ]
            for one, other in zip(sorted(pieces), sorted(pieces)[1:], strict=False):
                assert one[0] != other[0] or one[3] == other[3] or other[1] >= one[2] - 0.1


def test_markup_in_text() -> None:
    node = track(functions('functions { void tell(int n) { print("<&>", n); } }').tell, 1)
    assert "&lt;&amp;&gt;" in node.to_svg()
    ElementTree.fromstring(node.to_svg())


# ---------------------------------------------------------------- JSON


def test_json_of_h(h: NestedCallNode, tmp_path: Path) -> None:
    """20: valid by the schema that is shipped. 18: what is read back has the same listings."""
    text = h.to_json()
    entry = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(entry, schema())
    assert list(entry)[:2] == ["version", "source"] and entry["version"] == 1
    assert [frame["function"] for frame in entry["frames"]] == ["trace.root", "h.traced", "zero.traced"]
    h.trace.to_json(tmp_path / "h.json")
    assert (tmp_path / "h.json").read_text() == text
    for source in (text, entry, tmp_path / "h.json", str(tmp_path / "h.json")):
        assert format_levels(from_json(source).root, 2) == H
    assert from_json(text).to_json() == text
    assert format_levels(from_json(text), 2) == H, "a trace prints as its root"


def test_json_of_everything(more: dict[str, Any]) -> None:
    for name, node in more.items():
        text = node.to_json()
        jsonschema.validate(json.loads(text, parse_constant=pytest.fail), schema())
        read = from_json(text)
        for style in ("seed", "full"):
            assert format_levels(read.root, style=style) == format_levels(node, style=style), name
        assert read.to_json() == text
        assert (read.error is None) == (node.trace.error is None)
        if read.error is not None and node.trace.error is not None:
            assert read.error.message == node.trace.error.message
            assert str(read.error.node) == str(node.trace.error.node)
        assert read.draws_used == node.trace.draws_used


def test_json_has_no_numbers_that_json_has_not(more: dict[str, Any]) -> None:
    text = more["filled"].to_json()
    values = [value for frame in json.loads(text)["frames"] for step in frame["values"] for value in step]
    assert "Infinity" in values and "NaN" not in [v for v in values if isinstance(v, float)]


def test_json_keeps_metadata(h: NestedCallNode) -> None:
    node = track(functions(PROGRAM).h, 2.0, 1, context=TraceContext(metadata=lambda site: {"line": site.line}))
    assert isinstance(node, NestedCallNode)
    node[4].metadata["cost"] = 1.5
    node[4].metadata["other"] = {1, 2}
    listing = format_levels(from_json(node.to_json()).root)
    assert listing == format_levels(node) and "cost = 1.5, other = {1, 2}" in listing


def test_json_of_traces_that_are_not_whole() -> None:
    function = functions(PROGRAM).h
    cut = track(function, 1.0, 300, context=TraceContext(limit_bytes=4096))
    assert format_levels(from_json(cut.to_json()).root, 2) == format_levels(cut, 2)
    edges = track(function, 1.0, 300, context=TraceContext(overflow="edges"))
    assert format_levels(from_json(edges.to_json()).root, 2) == format_levels(edges, 2)
    ring = track(function, 1.0, 50_000, context=TraceContext(limit_bytes=1 << 20, overflow="ring"))
    with pytest.raises(ArgumentError, match="beginning"):
        ring.to_json()


def test_limits(h: NestedCallNode, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="more than 20 nodes.*max_nodes"):
        h.to_json(max_nodes=20)
    assert h.to_json(tmp_path / "h.json", max_nodes=20) == "" and from_json(tmp_path / "h.json").root.value == 3.0
    with pytest.raises(ArgumentError, match="more than 1 calls.*max_calls"):
        h.to_chrome_trace(max_calls=1)


def test_damaged_json(h: NestedCallNode) -> None:
    """What is no trace is refused by a message, before the C code reads it."""
    good = json.loads(h.to_json())

    def changed(change: Any) -> str:
        entry = json.loads(json.dumps(good))
        change(entry)
        return json.dumps(entry)

    for text, told in (
        ("{", "not valid JSON"),
        (changed(lambda e: e.update(version=2)), "version"),
        (changed(lambda e: e.pop("frames")), "'frames' is missing"),
        (changed(lambda e: e["frames"][1]["values"].pop()), "values for each"),
        (changed(lambda e: e["frames"][1]["values"][0].pop()), "keeps 1 values, found 0"),
        (changed(lambda e: e["frames"][1]["blocks"].__setitem__(1, 99)), "99"),
        (changed(lambda e: e["frames"][1]["blocks"].__setitem__(1, 4)), "behind its end|no jump"),
        (changed(lambda e: e["frames"][2].update(caller=[1, 9])), "behind its end|not those of a call"),
        (changed(lambda e: e["frames"][2].update(function="h.traced")), "values for each|another function"),
        (changed(lambda e: e["frames"][1]["values"][1].__setitem__(0, "x")), "no trace"),
        (changed(lambda e: e["frames"].pop(0)), "caller|first frame"),
        (changed(lambda e: e["functions"]["h.traced"].pop("name")), "has no entry 'name'"),
        ("[]", "Is a directory|No such file|no trace|version"),
    ):
        with pytest.raises((DamagedTrace, OSError), match=told):
            from_json(text)


def test_json_of_many_calls() -> None:
    program = """functions {
      real sq(real x) { return x * x; }
      real s(int n) { real r = 0; for (i in 1:n) r += sq(i); return r; }
    }"""
    node = track(functions(program).s, 500)
    assert format_levels(from_json(node.to_json()).root) == format_levels(node)


# ---------------------------------------------------------------- Chrome trace, networkx


def check_chrome(text: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Names of the calls in order; the counters. Ends match beginnings, and time does not run back."""
    events = json.loads(text)["traceEvents"]
    stack, names, last = [], [], 0
    for event in events:
        if event["ph"] not in "BEC":
            assert event["ph"] == "M"
            continue
        assert event["ts"] >= last
        last = event["ts"]
        if event["ph"] == "B":
            stack.append(event["name"])
            names.append(event["name"])
        elif event["ph"] == "E":
            stack.pop()
    assert not stack
    return names, [event for event in events if event["ph"] == "C"]


def test_chrome_trace(h: NestedCallNode, more: dict[str, Any], tmp_path: Path) -> None:
    """20: beginnings and ends are balanced, also of runs that failed; the target is a counter."""
    h.to_chrome_trace(tmp_path / "h.json")
    assert (tmp_path / "h.json").read_text() == h.to_chrome_trace()
    assert check_chrome(h.to_chrome_trace())[0] == ["h", "zero"]
    assert check_chrome(h[4].to_chrome_trace())[0] == ["zero"]
    assert "tape" in json.loads(h.to_chrome_trace())["otherData"]["clock"]
    assert check_chrome(more["recursive"].to_chrome_trace())[0] == ["recursive"] * 31
    assert check_chrome(more["fails"].to_chrome_trace())[0] == ["fails"]
    with pytest.raises(ArgumentError, match="calls are exported"):
        h[5].to_chrome_trace()


def test_target_is_a_counter() -> None:
    node = StanModel(DENSITY, {"N": 2, "y": [0.5, -1.5]}, opt_level=0).track_density([0.25, 0.5])
    names, counters = check_chrome(node.to_chrome_trace())
    assert names == ["log_prob"] and len(counters) == 4
    assert counters[-1]["args"]["target"] == node.value
    assert all(math.isfinite(counter["args"]["target"]) for counter in counters)


def test_times_of_calls() -> None:
    node = track(functions(PROGRAM).geom_rng, 1, 0.5, rng=Scripted(UNIFORMS), context=TraceContext(timing=True))
    assert isinstance(node, NestedCallNode) and node.time is not None
    text = node.to_chrome_trace()
    assert json.loads(text)["otherData"]["clock"] == "time of the run"
    assert check_chrome(text)[0] == ["geom_rng", "rand_rng"] * 3
    events = [event for event in json.loads(text)["traceEvents"] if event["ph"] in "BE"]
    assert events[0]["ts"] == 0 and events[-1]["ts"] == pytest.approx(1e6 * node.time, abs=1e-3)


def test_json_of_other_contexts() -> None:
    for context in (
        TraceContext(timing=True),
        TraceContext(constants=True),
        TraceContext(max_depth=7),
        TraceContext(record={"draws"}),
        TraceContext(containers="none"),
        TraceContext(self_node=False),
    ):
        node = track(functions(MORE).recursive, 12, context=context)
        text = node.to_json()
        jsonschema.validate(json.loads(text), schema())
        assert format_levels(from_json(text).root) == format_levels(node)
        assert from_json(text).to_json() == text


def test_networkx(h: NestedCallNode) -> None:
    graph = h.to_networkx()
    assert isinstance(graph, networkx.MultiDiGraph)
    assert len(graph) == len(list(query(h, Axis.DESCENDANT))) == 29
    assert graph.nodes["@10"]["value"] == 1.0 and graph.nodes["@10"]["function"] == "^"
    assert graph.nodes["@4/@2"]["call"] == "@4" and graph.nodes["@10"]["node"] is h[10]
    data = [(user, used) for user, used, kind in graph.edges(data="kind") if kind == "data"]
    assert LOOP_CARRIED <= set(data)
    flow = networkx.MultiDiGraph(data)
    reached = {node.position for node in referenced(h[26])}
    assert networkx.descendants(flow, "@26") >= {f"@{p}" for p in reached}
    assert networkx.is_directed_acyclic_graph(flow)


def test_a_large_container_that_a_loop_changes() -> None:
    """Of more elements than are copied there is a digest; what becomes of it is not known."""
    program = functions("""functions {
      real s(int n) { matrix[n, n] m = rep_matrix(1, n, n); for (i in 1:n) m[i, i] = 2; return sum(m); }
    }""")
    node = track(program.s, 20)
    assert node.value == 420.0 and "$(index_assign)" in node.to_svg() and " = ?" in format_levels(node)
