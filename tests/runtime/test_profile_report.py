"""Reports of profiles: CSV in both forms and by several chains, tables, records, traces, speedscope, flame graphs."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from ulam.runtime.errors import ArgumentError, DataError
from ulam.runtime.model import StanModel
from ulam.runtime.profiling import flame_graph
from ulam.runtime.profiling.profile_csv import COLUMNS, profile_csv, read_profile_csv, write_profile_csv
from ulam.runtime.profiling.profiler import Profiler, in_phase
from ulam.runtime.profiling.records import Overhead, ProfileNode, ProfileRow, Region, walk
from ulam.runtime.profiling.report import fitted, merged, profile_record, region_table, time_text, tree_table

pytestmark = pytest.mark.usefixtures("quick_code")

PROGRAM = """parameters { vector[3] b; real<lower=0> s; }
transformed parameters { vector[3] c; profile("outer") { profile("inner, first") { c = exp(b); } c = c * s; } }
model { for (n in 1:3) { profile("loop") { target += -square(c[n]); } } profile("prior") { s ~ normal(0, 1); } }
generated quantities { real z; profile("gq \\\\ <&>") { z = normal_rng(0, s); } }
"""
THETA = np.array([0.1, -0.2, 0.3, 0.4])
GRADIENTS, DRAWS = 12, 5


@pytest.fixture(scope="module")
def profiler() -> Profiler:
    model = StanModel(PROGRAM, profile_events=1000)
    for _ in range(GRADIENTS):
        model.log_density_gradient(THETA)
    for _ in range(DRAWS):
        model.param_constrain(THETA, include_tp=True, include_gq=True, rng=model.new_rng(1))
    assert model.profiler is not None
    return model.profiler


def made(name: str, forward: float, reverse: float, gradients: int, children: Any = (), line: int = 1) -> ProfileNode:
    node = ProfileNode(name, 1, "evaluation", forward, reverse, region=Region(name, "f.stan", line, 1))
    node.gradient_passes = gradients
    node.children = list(children)
    return node


# ---------------------------------------------------------------- CSV

DESIGN = (
    "name,thread_id,time_total,forward_time,reverse_time,chain_stack_total,nochain_stack_total,no_autodiff_passes,"
    "autodiff_passes"
)
CMDSTAN = (
    "name,thread_id,total_time,forward_time,reverse_time,chain_stack,no_chain_stack,autodiff_calls,no_autodiff_calls"
)


@pytest.mark.parametrize(("columns", "header"), [("design", DESIGN), ("cmdstan", CMDSTAN)])
def test_csv(profiler: Profiler, tmp_path: Path, columns: str, header: str) -> None:
    path = profiler.to_csv(tmp_path / "profile.csv", columns=columns)
    lines = path.read_text().splitlines()
    assert lines[0] == header
    found = {row["name"]: row for row in csv.DictReader(io.StringIO(path.read_text()))}
    assert list(found) == ["outer", "inner, first", "loop", "prior", "gq \\\\ <&>"]
    assert lines[2].startswith('"inner, first",')
    with_gradient, without = list(COLUMNS[columns])[-2:][:: 1 if columns == "cmdstan" else -1]
    counts = {name: (int(row[without]), int(row[with_gradient])) for name, row in found.items()}
    assert counts == {
        "outer": (DRAWS, GRADIENTS),
        "inner, first": (DRAWS, GRADIENTS),
        "loop": (0, 3 * GRADIENTS),
        "prior": (0, GRADIENTS),
        "gq \\\\ <&>": (DRAWS, 0),
    }
    # All digits: what is read is what was recorded, as far as there are columns for it.
    for read, row in zip(read_profile_csv(path), profiler.rows(), strict=True):
        assert read == replace(row, wall_time=0.0, outlier_passes=0, outlier_time=0.0)


def test_csv_quotes_names(tmp_path: Path) -> None:
    names = ["a,b", 'a "b"', "a\nb", "#a", ""]
    path = tmp_path / "p.csv"
    rows = [ProfileRow(name, 7, "", 0.25, 1e-9, 3, 4, 5, 6) for name in names]
    path.write_text(profile_csv(rows, "cmdstan"))
    assert read_profile_csv(path) == rows


def test_csv_as_cmdstan_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(f"{CMDSTAN}\na,b,140475847071552,0.0378336,0.0375202,0.000313417,12192,0,12192,1\n")
    assert read_profile_csv(path) == [
        ProfileRow("a,b", 140475847071552, "", 0.0375202, 0.000313417, 12192, 0, 1, 12192)
    ]
    path.write_text(f"{DESIGN}\nglm,140475847071552,0.0378336,0.0375202,0.000313417,12192,0,1,12192\n")
    assert read_profile_csv(path) == [
        ProfileRow("glm", 140475847071552, "", 0.0375202, 0.000313417, 12192, 0, 1, 12192)
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a profile: the header must be"),
        ("name,thread_id\n", "not a profile"),
        (f"{DESIGN}\na,1,2\n", "p.csv:2: 9 columns are needed, found 3"),
        (f"{DESIGN}\na,1,2,1,1,0,0,0,x\n", "p.csv:2: autodiff_passes must be a whole number, found 'x'"),
        (f"{CMDSTAN}\na,1,2,long,1,0,0,0,0\n", "p.csv:2: forward_time must be a number, found 'long'"),
    ],
)
def test_csv_that_is_none(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_profile_csv(path)


def test_csv_columns_are_known(profiler: Profiler, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="columns must be 'design' or 'cmdstan', found 'stan'"):
        profiler.to_csv(tmp_path / "p.csv", columns="stan")
    assert not list(tmp_path.iterdir())


def test_chains_do_not_overwrite_each_other(tmp_path: Path) -> None:
    path = tmp_path / "profile.csv"
    path.write_text("of an earlier run")
    time.sleep(0.02)  # the clock of a file system has steps of some milliseconds
    chains = [Profiler([Region("p", "f.stan", 1, 1)]) for _ in range(3)]
    time.sleep(0.02)
    assert [chain.to_csv(path).name for chain in chains] == ["profile.csv", "profile_2.csv", "profile_3.csv"]
    assert [chain.to_csv(path).name for chain in chains] == ["profile.csv", "profile_2.csv", "profile_3.csv"]
    time.sleep(0.02)
    assert Profiler([]).to_csv(path).name == "profile.csv", "a later run replaces the file"
    time.sleep(0.02)
    assert chains[0].to_csv(path).name == "profile_4.csv", "which is not this chain's any more"
    assert {file.name for file in tmp_path.iterdir()} == {"profile.csv", *(f"profile_{n}.csv" for n in (2, 3, 4))}


def test_chains_that_end_at_one_moment(tmp_path: Path) -> None:
    chains = [Profiler([]) for _ in range(8)]
    time.sleep(0.02)
    paths: list[Path] = []
    barrier = threading.Barrier(len(chains))

    def write(chain: Profiler) -> None:
        barrier.wait()
        paths.append(write_profile_csv(chain, tmp_path / "p.csv"))

    threads = [threading.Thread(target=write, args=(chain,)) for chain in chains]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(paths)) == len(chains) == len(list(tmp_path.iterdir()))
    assert {path.read_text() for path in paths} == {f"{DESIGN}\n"}


def test_csv_to_what_is_no_file(profiler: Profiler, tmp_path: Path) -> None:
    assert profiler.to_csv(os.devnull) == Path(os.devnull)
    assert not Path(os.devnull).is_file()
    link, target = tmp_path / "link.csv", tmp_path / "target.csv"
    target.write_text("old")
    os.utime(target, (0, 0))
    link.symlink_to(target)
    profiler.to_csv(link)
    assert link.is_symlink() and target.read_text().startswith(DESIGN)
    with pytest.raises(FileNotFoundError, match="nowhere' does not exist: .*p.csv'$"):
        profiler.to_csv(tmp_path / "nowhere" / "p.csv")


# ---------------------------------------------------------------- tables and records


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0"), (3.14159e-9, "3.14 ns"), (9.996e-9, "10.0 ns"), (1.234e-7, "123 ns"), (9.9996e-7, "1.00 µs"),
     (5e-5, "50.0 µs"), (0.25, "250 ms"), (0.99996, "1.00 s"), (123.4, "123 s")],
)  # fmt: skip
def test_times_have_three_digits(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


def test_tree(profiler: Profiler) -> None:
    header, rows, _ = tree_table(profiler)
    assert header == ("phase and region", "total", "self", "%", "passes")
    assert [(row[0], row[4]) for row in rows] == [
        ("evaluation", str(GRADIENTS)),
        ("  outer", str(GRADIENTS)),
        ("    inner, first", str(GRADIENTS)),
        ("  loop", str(3 * GRADIENTS)),
        ("  prior", str(GRADIENTS)),
        ("generated quantities", str(DRAWS)),
        ("  outer", str(DRAWS)),
        ("    inner, first", str(DRAWS)),
        ("  gq \\\\ <&>", str(DRAWS)),
    ]
    shares = {row[0]: float(row[3]) for row in rows}
    assert shares["evaluation"] + shares["generated quantities"] == pytest.approx(100, abs=0.11)


def test_table_shows_what_is_needed(profiler: Profiler) -> None:
    header, rows, left = region_table(profiler)
    wanted = ["name", "place", "total", "wall", "forward", "reverse", "%", "gradients", "others", "per pass", "kept"]
    assert header == wanted and left == [0, 1]
    assert rows[1][1] == "2:58"
    header, rows, _ = region_table(profiler, by_phase=True)
    assert [row[2] for row in rows] == [
        "evaluation", "generated quantities", "evaluation", "generated quantities", "evaluation", "evaluation",
        "generated quantities",
    ]  # fmt: skip
    assert "raw" in region_table(profiler, overhead=Overhead(1e-9, 1e-9))[0]


def test_lines_of_automatic_regions() -> None:
    long = "target += " + " - ".join(["square(a)"] * 20) + ";"
    model = StanModel(f"parameters {{ real a; }}\nmodel {{\n  a ~ normal(0, 1);\n  {long}\n}}", profile="statements")
    model.log_density_gradient(np.zeros(1))
    assert model.profiler is not None
    header, rows, _ = region_table(model.profiler)
    program = {row[0]: row[header.index("program")] for row in rows}
    assert program["model, line 3"] == "a ~ normal(0, 1);" and program["parameters"] == ""
    assert program["model, line 4"] == long[:47] + "…"


def test_narrow_terminals_get_fewer_columns() -> None:
    header = ["name", "total", "others", "kept", "program"]
    rows = [["a" * 10, "1.00 µs", "1", "2", "target += normal_lpdf(y | mu, sigma);"]]
    for width in range(45, 100):
        shown, (cells,), left = fitted(header, rows, [0, 4], width)
        assert shown[:2] == ["name", "total"] and left == [0, shown.index("program")]
        assert sum(max(len(a), len(b)) for a, b in zip(shown, cells, strict=True)) + 3 * len(shown) + 1 <= width
    assert fitted(header, rows, [0, 4], 200) == (header, rows, [0, 4])
    assert fitted(header, rows, [0, 4], 58)[0] == ["name", "total", "others", "program"], "kept goes first"
    shown, (cells,), _ = fitted(header, rows, [0, 4], 50)
    assert shown == ["name", "total", "program"] and cells[2] == "target += normal_lpdf(…"
    assert fitted(header, rows, [0, 4], 10)[0] == ["name", "total"]


def test_threads_are_added_up() -> None:
    model = StanModel('parameters { real a; } model { profile("p") { profile("q") { a ~ normal(0, 1); } } }')
    profiler = model.profiler
    assert profiler is not None
    threads = [threading.Thread(target=model.time_gradients, args=(np.zeros(1), 10 * k)) for k in (1, 2)]
    model.log_density_gradient(np.zeros(1))
    profiler.reset()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (root,) = merged(profiler.evaluations())
    assert [node.gradient_passes for node in walk(root.children)] == [30, 30]
    assert root.children[0].total_time == pytest.approx(sum(row.total_time for row in profiler.rows()[:2]), rel=1e-12)
    # Merging leaves what it merged alone.
    assert sum(root.passes for root in profiler.evaluations()) == 30
    header, rows, _ = region_table(profiler)
    assert [row[header.index("gradients")] for row in rows if row[0] == "p"] in (["10", "20"], ["20", "10"])


def test_values_of_nested_regions_count_for_the_outer_ones() -> None:
    model = StanModel(
        """parameters { real<lower=0> s; }
        model {
          profile("outer") {
            matrix[3, 3] K;
            profile("inner") { K = gp_exp_quad_cov({1.0, 2.0, 3.0}, 1.0, s); }
            target += -sum(square(cholesky_decompose(K + identity_matrix(3))));
          }
        }"""
    )
    model.log_density_gradient(np.zeros(1))
    assert model.profiler is not None
    (outer,) = model.profiler.tree()
    (inner,) = outer.children
    assert inner.kept_values > 0 and inner.other_values > 0
    assert outer.kept_values > inner.kept_values and outer.other_values > inner.other_values


def test_cost_of_timers_is_subtracted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pass has `inside` of its own in its time, and all of those below it."""
    from ulam.runtime.profiling import profiler as module

    inner = made("inner", 10.0, 6.0, 2)
    data_only = made("data", 8.0, 0.0, 2)
    outer = made("outer", 100.0, 50.0, 1, [inner, data_only])
    root = ProfileNode("evaluation", 1, "evaluation", 200.0, passes=1, children=[outer])
    module._correct(root, Overhead(1.0, 0.5))  # pyright: ignore[reportPrivateUsage]
    assert (inner.forward_time, inner.reverse_time) == (8.0, 4.0)
    assert (data_only.forward_time, data_only.reverse_time) == (6.0, 0.0), "no reverse half, no timer there"
    assert (outer.forward_time, outer.reverse_time) == (100 - 1 - 2 * 1.5 - 2 * 1.5, 50 - 1 - 2 * 1.5)
    assert root.forward_time == 200 - 1.5 * (2 + 2 + 2 + 1 + 1)
    assert made("short", 0.5, 0.5, 1).forward_time == 0.5
    short = made("short", 0.5, 0.5, 1)
    module._correct(short, Overhead(1.0, 0.5))  # pyright: ignore[reportPrivateUsage]
    assert (short.forward_time, short.reverse_time) == (0.0, 0.0)


def test_correction_by_what_was_measured(profiler: Profiler) -> None:
    overhead = profiler.overhead()
    assert 0 < overhead.inside < 60e-9 and 0 <= overhead.outside < 60e-9
    for raw, corrected in zip(profiler.rows(), profiler.rows(overhead=overhead), strict=True):
        assert 0 <= corrected.total_time < raw.total_time
        assert corrected.gradient_passes == raw.gradient_passes


def test_record(profiler: Profiler, tmp_path: Path) -> None:
    text = profiler.to_json(tmp_path / "p.json")
    record = json.loads(text)
    assert (tmp_path / "p.json").read_text() == text and record == profiler.to_dict()
    assert [row["name"] for row in record["rows"] if row["phase"] == "evaluation"] == [
        "outer", "inner, first", "loop", "prior",
    ]  # fmt: skip
    tree = next(tree for tree in record["trees"] if tree["phase"] == "evaluation")
    assert tree["passes"] == GRADIENTS
    (inner,) = tree["children"][0]["children"]
    assert (inner["name"], inner["line"], inner["children"]) == ("inner, first", 2, [])
    assert inner["program"].startswith("transformed parameters {")
    assert tree["self_time"] == pytest.approx(tree["total_time"] - sum(c["total_time"] for c in tree["children"]))
    corrected = profile_record(profiler, Overhead(1e-9, 1e-9))["rows"]
    assert all(row["corrected_total_time"] < row["total_time"] for row in corrected)


def test_print(profiler: Profiler, capsys: pytest.CaptureFixture[str]) -> None:
    profiler.print()
    printed = capsys.readouterr().out
    assert "inner, first" in printed and "phase and region" in printed
    model = StanModel('parameters { real a; } model { if (a > 5) { profile("p") { a ~ normal(0, 1); } } }')
    assert model.profiler is not None
    model.profiler.print()
    assert capsys.readouterr().out == "no region was entered\n"
    model = StanModel(
        """parameters { real a; }
        model { if (a > 5) { profile("far") { a ~ normal(0, 1); } } profile("p") { a ~ exponential(1); } }"""
    )
    assert model.profiler is not None
    model.log_density_gradient(np.ones(1))
    model.profiler.print()
    assert capsys.readouterr().out.endswith("\nnever entered: far\n")


# ---------------------------------------------------------------- views


def test_chrome_trace(profiler: Profiler, tmp_path: Path) -> None:
    profiler.to_chrome_trace(tmp_path / "t.json")
    trace = json.loads((tmp_path / "t.json").read_text())
    names = [event for event in trace["traceEvents"] if event["ph"] == "M"]
    assert {event["name"] for event in names} == {"process_name", "thread_name"}
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(events) == len(profiler.events()) == 6 * 2 * GRADIENTS + 3 * DRAWS
    assert min(event["ts"] for event in events) == 0
    assert {event["pid"] for event in events} == {os.getpid()}
    for row in profiler.rows():
        of_name = [event for event in events if event["name"] == row.name]
        assert {event["cat"] for event in of_name} == {"forward", *(["reverse"] if row.gradient_passes else [])}
        found = sum(event["dur"] for event in of_name)
        assert found == pytest.approx(1e6 * row.wall_time, abs=1e-3 * len(of_name))
    # Parents come first; what is within one of them ends no later than it does.
    open_ends: list[float] = []
    deepest = 0
    for event in events:
        start, end = round(1e3 * event["ts"]), round(1e3 * (event["ts"] + event["dur"]))
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1]
        open_ends.append(end)
        deepest = max(deepest, len(open_ends))
    assert deepest == 2
    assert events[0]["args"] == {"phase": "evaluation", "place": "model.stan:2:39"}


def test_trace_needs_single_passes() -> None:
    model = StanModel('parameters { real a; } model { profile("p") { a ~ normal(0, 1); } }')
    assert model.profiler is not None
    with pytest.raises(ArgumentError, match="profile_events"):
        model.profiler.to_chrome_trace()


def test_speedscope(profiler: Profiler) -> None:
    """The fields and types of speedscope's schema, and its times."""
    document = json.loads(profiler.to_speedscope())
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    for frame in frames:
        assert isinstance(frame["name"], str)
        assert set(frame) <= {"name", "file", "line", "col"} and all(
            frame[k] > 0 for k in ("line", "col") if k in frame
        )
    assert len({json.dumps(frame) for frame in frames}) == len(frames)
    roots = [root for root in profiler.evaluations() if root.children]
    longest = max(roots, key=lambda root: root.total_time)
    assert document["profiles"][document["activeProfileIndex"]]["name"].startswith(longest.phase)
    assert [profile["name"] for profile in document["profiles"]] == [f"{r.phase}, thread {r.thread_id}" for r in roots]
    for profile, root in zip(document["profiles"], roots, strict=True):
        assert (profile["type"], profile["unit"], profile["startValue"]) == ("sampled", "seconds", 0)
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= number < len(frames) for sample in profile["samples"] for number in sample)
        assert profile["endValue"] == pytest.approx(sum(profile["weights"]))
        assert profile["endValue"] == pytest.approx(root.total_time, rel=1e-9)
        stacks = [[frames[number]["name"] for number in sample] for sample in profile["samples"]]
        assert [root.phase, "outer", "inner, first"] in stacks


SVG = "{http://www.w3.org/2000/svg}"


def boxes(svg: str) -> list[tuple[str, float, float, float]]:
    """Name, left edge, width and top of each box."""
    found: list[tuple[str, float, float, float]] = []
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        body = next(rect for rect in group.iter(f"{SVG}rect") if rect.get("class") == "body")
        left, width, top = (float(body.get(key, "")) for key in ("x", "width", "y"))
        found.append((group.get("data-name", ""), left, width, top))
    return found


def test_flame_graph(profiler: Profiler, tmp_path: Path) -> None:
    svg = profiler.to_flame_graph(tmp_path / "p.svg", title="a <b> & 'c'")
    assert (tmp_path / "p.svg").read_text() == svg
    found = boxes(svg)
    names = ["outer", "inner, first", "loop", "prior"]
    assert [name for name, *_ in found] == [
        "all phases", "evaluation", *names, "generated quantities", "outer", "inner, first", "gq \\\\ <&>",
    ]  # fmt: skip
    roots = {root.name: root for root in profiler.evaluations() if root.children}
    whole = sum(root.total_time for root in roots.values())
    width = found[0][2]
    times = {node.name: node.total_time for node in walk([roots["evaluation"]])}
    for name, _, size, _ in found[1:6]:
        assert size == pytest.approx(width * times[name] / whole, abs=0.02)
    for (_, left, size, top), (_, inner, inner_size, inner_top) in ((found[0], found[1]), (found[2], found[3])):
        assert inner_top > top and left - 0.02 <= inner and inner + inner_size <= left + size + 0.02
    titles = [title.text or "" for title in ElementTree.fromstring(svg).iter(f"{SVG}title")]
    assert "12 passes with gradient, 0 without" in titles[2] and "model.stan:2:39" in titles[2]
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", svg) == [], "nothing from the network"


def test_flame_graph_as_a_page(profiler: Profiler, tmp_path: Path) -> None:
    profiler.to_flame_graph(tmp_path / "p.html", title="A model")
    text = (tmp_path / "p.html").read_text()
    assert text.startswith("<!doctype html>") and "<title>A model</title>" in text
    assert text.count("<svg ") == 1 and "<td" in text and "gq \\\\ &lt;&amp;&gt;" in text
    assert boxes(text[text.index("<svg ") : text.index("</svg>") + 6])


def test_script_stands_in_svg_and_html_as_it_is() -> None:
    assert not set("<&") & set(flame_graph.SCRIPT)


def test_colours_follow_from_the_name() -> None:
    colours = {flame_graph._colours(made(name, 1, 1, 1))[0] for name in ("a", "b", "cholesky", "kernel")}  # pyright: ignore[reportPrivateUsage]
    assert len(colours) == 4
    again = flame_graph._colours(made("a", 5, 2, 9, line=7))  # pyright: ignore[reportPrivateUsage]
    assert again == flame_graph._colours(made("a", 1, 1, 1))  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("room", "text"), [(400, "likelihood  12.5%"), (100, "likelihood"), (60, "likel…"), (40, "lik…"), (20, "")]
)
def test_names_are_cut_to_fit(room: float, text: str) -> None:
    label = flame_graph.label("likelihood", "12.5%", room)
    assert label == text
    assert len(label) * flame_graph.CHARACTER <= room


def test_names_that_xml_cannot_have() -> None:
    model = StanModel('parameters { real a; } model { profile("bell \x07 é") { a ~ normal(0, 1); } }')
    model.log_density_gradient(np.zeros(1))
    assert model.profiler is not None
    assert boxes(model.profiler.to_flame_graph())[1][0] == "bell \ufffd é"


def test_flame_graph_of_nothing() -> None:
    assert boxes(Profiler([]).to_flame_graph()) == []


def test_optimization_is_a_phase() -> None:
    model = StanModel('parameters { real a; } model { profile("p") { a ~ normal(0, 1); } }')
    profiler = model.profiler
    assert profiler is not None
    with in_phase("warm-up"):
        model.log_density_gradient(np.zeros(1))
    fit = model.optimize(seed=1)
    model.log_density_gradient(np.zeros(1))
    passes = {row.phase: row.gradient_passes for row in profiler.rows(by_phase=True)}
    assert passes == {"warm-up": 1, "optimization": fit.n_gradients, "evaluation": 1}


def test_starts_in_other_threads_are_of_the_same_phase() -> None:
    model = StanModel('parameters { real a; } model { profile("p") { a ~ normal(0, 1); } }')
    assert model.profiler is not None
    with ThreadPoolExecutor(2) as executor:
        model.optimize(seed=1, n_starts=4, executor=executor)
    model.optimize(seed=1, n_starts=4)
    assert {row.phase for row in model.profiler.rows(by_phase=True)} == {"optimization"}
    model.log_density(np.zeros(1))
    assert {row.phase for row in model.profiler.rows(by_phase=True)} == {"optimization", "evaluation"}
