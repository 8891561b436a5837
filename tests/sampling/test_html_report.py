"""The report as a page: well-formed, complete in one file, escaped, and there for every fit, however odd."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.data import Values
from ulam.runtime.errors import DataError, TimeLimit
from ulam.runtime.html_report import figures, svg_parts
from ulam.runtime.html_report.selection import CHAINS_DRAWN, Shown
from ulam.runtime.html_report.verdict import BAD, CARE, GOOD, NONE, checks, verdict
from ulam.runtime.model import Recipe
from ulam.runtime.names import GlobalVariable
from ulam.runtime.sampling.aligned_numbers import aligned_rows
from ulam.runtime.sampling.chain_files import fit_of_files
from ulam.runtime.sampling.fit import SampleFit
from ulam.runtime.sampling.model_description import ModelDescription
from ulam.runtime.sampling.settings import SamplingSettings
from ulam.tools import ulam_main

VOID = {"meta", "link", "br", "img", "input", "hr"}
PROGRAM = """data { int N; vector[N] y; }
parameters { real mu; real<lower=0> s; vector[2] b; }
model { // <b>&
  y ~ normal(mu, s); b ~ normal(0, s);
}
"""


class Reader(HTMLParser):
    """Reads a page, and says what is wrong with it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.problems: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.pictures: list[dict[str, str | None]] = []
        self.words: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        self.close()
        self.problems += [f"<{tag}> is not closed" for tag in self.open]
        self.problems += [f"two of {name}" for name in set(self.ids) if self.ids.count(name) > 1]
        self.problems += [f"no {name}" for name in self.links if name.startswith("#") and name[1:] not in self.ids]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.add(tag)
        self.ids += [found["id"] or ""] if "id" in found else []
        for name in ("href", "src", "srcset", "data", "action", "poster"):
            if name in found:
                self.links.append(found[name] or "")
        if tag == "svg":
            self.pictures.append(found)
        if any(name.startswith("on") for name in found):
            self.problems.append(f"a script in {tag}")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> where another one should be")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)


def read(text: str) -> tuple[Reader, str]:
    """The page and its words. It must be whole, and fetch nothing."""
    reader = Reader(text)
    assert not reader.problems and all(link.startswith("#") for link in reader.links)
    assert not re.search(r"https?:|url\(|@import|//[a-z]", re.sub(r"<code>.*?</code>", "", text.split("<main", 1)[0]))
    assert not reader.tags & {"iframe", "object", "embed", "link", "img", "base", "form", "audio", "video"}
    assert "default-src 'none'" in text
    for picture in reader.pictures:
        assert picture.get("aria-label") or picture.get("aria-hidden") == "true"
    assert not re.search(r'(?:nan|inf)[ "]', "".join(re.findall(r' d="[^"]*"| [xy]="[^"]*"', text)))
    return reader, " ".join("".join(reader.words).split())


def made(
    values: Any, names: list[str] | None = None, *, stats: Any = None, warmup: Any = None, **about: Any
) -> SampleFit:
    """A fit of these values (chains, draws, elements), without a model."""
    values = np.asarray(values, dtype=np.float64)
    chains, draws, count = values.shape
    names = [f"x{k}" for k in range(count)] if names is None else names
    variables = [GlobalVariable(-1, n, "parameters", "real", "real", 0, "scalar", "none", -1) for n in names]
    recipe = Recipe(
        about.pop("text", ""), about.pop("filename", ""), Values("", {}, False), 1, True, CompileOptions(), False
    )

    def make() -> Any:
        raise DataError(["there is no model"])

    described = ModelDescription(about.pop("name", "odd_model"), variables, names, recipe, make)
    rng = np.random.default_rng(1)
    found = {
        "lp": rng.normal(size=(chains, draws)), "energy": rng.normal(size=(chains, draws)),
        "divergent": np.zeros((chains, draws), dtype=bool), "treedepth": np.full((chains, draws), 3),
        "accept_stat": np.full((chains, draws), 0.8), "n_leapfrog": np.full((chains, draws), 7),
    }  # fmt: skip
    return SampleFit(
        described, values, values, found | (stats or {}), warmup, np.full(chains, 0.5), None,
        about.pop("settings", SamplingSettings(chains=chains)), np.ones((chains, 2)), about.pop("notes", ()),
        about.pop("ended", ""),
    )  # fmt: skip


def noise(*shape: int) -> Any:
    return np.random.default_rng(2).normal(size=shape)


@pytest.fixture(scope="module")
def fit() -> SampleFit:
    model = ulam.StanModel(PROGRAM, data={"N": 3, "y": [1.0, 2.5, 3.0]}, opt_level=0)
    return model.sample(warmup=200, draws=150, progress=False)


# ---------------------------------------------------------------- what is there


def test_all_parts(fit: SampleFit, tmp_path: Path) -> None:
    text = fit.report(tmp_path / "r.html", costs=False, title="A <title> & 'more'")
    assert (tmp_path / "r.html").read_text() == text
    reader, words = read(text)
    parts = ("diagnostics", "summary", "traces", "energy", "pairs", "program", "settings", "versions")
    assert all(part in reader.ids for part in parts) and "A <title> & 'more'" in words
    kinds = [picture.get("class") for picture in reader.pictures]
    drawn = 1 + len(fit.names)
    assert [kinds.count(kind) for kind in ("trace-picture", "density-picture", "rank-picture")] == [drawn] * 3
    assert kinds.count("energy-picture") == 4 and kinds.count("pair-picture") == 6
    assert verdict(fit).sentence in words and "E-BFMI" in words and "numpy" in words and "mu ~" not in words
    assert "y ~ normal(mu, s);" in words and "// <b>&" in words
    for name in ("lp__", "mu", "s", "b[1]", "b[2]"):
        assert re.search(rf'<th class="l" scope="row">{re.escape(name)}</th><td', text)


def test_the_command(fit: SampleFit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    fit.save("f.ulam")
    fit.to_csv("f.csv")
    assert ulam_main.main(["report", "f.ulam", "--no-costs", "--title", "T"]) == 0
    out = capsys.readouterr().out
    assert verdict(fit).sentence in out and "report.html" in out
    assert "<title>T</title>" in Path("report.html").read_text()
    files = [f"f_{chain}.csv" for chain in range(1, 5)]
    assert ulam_main.main(["report", *files, "-o", "c.html", "--rows", "2"]) == 0
    _, words = read(Path("c.html").read_text())
    assert "CSV files, which do not have the program" in words and "2 are shown" in words
    assert "CSV files, of Stan 2." in words and "first_chain1" in words and "nan" not in words
    for wrong, told in (
        (["f.ulam", "f_1.csv"], "give it alone"), (["f.ulam", "--data", "{}"], "has its own"),
        (["f_1.csv", "--data", "{}"], "--program"),
    ):  # fmt: skip
        assert ulam_main.main(["report", *wrong]) == 2 and told in capsys.readouterr().err


@pytest.mark.ordinary_runtime("opening and closing pages takes most of the time")
def test_lines_and_their_costs(fit: SampleFit, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("elftools")
    monkeypatch.setattr("ulam.runtime.html_report.line_costs.SECONDS", 0.05)
    text = fit.report()
    _, words = read(text)
    if "could not be measured" in words:
        pytest.skip("no samples by line here")
    shares = [float(share) for share in re.findall(r"<td>([\d.]+)%</td>", text)]
    assert "samples" in words and shares and 1 < sum(shares) <= 100.5


def test_why_there_are_no_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    several = noise(2, 50, 2)
    assert "there is no model" in read(made(several, text="parameters {}").report())[1]
    assert "no parameters" in read(made(np.zeros((1, 5, 0)), text="model {}").report())[1]

    def limited(_: Any) -> Any:
        raise TimeLimit(1.0)

    monkeypatch.setattr("ulam.runtime.html_report.write.line_costs", limited)
    with pytest.raises(TimeLimit):
        made(several).report()


def test_everything_is_escaped() -> None:
    bad = '<script>alert("&")</script>\x00\x1b[31m'
    text = made(
        noise(2, 60, 2), [bad, "b]]>"], notes=[bad], text=f"// {bad}\n/* <i>\n</i> */ model {{}}", filename=f"/x/{bad}",
        name=bad, ended="interrupt",
    ).report(costs=False, title=bad)  # fmt: skip
    reader, words = read(text)
    assert text.count("<script") == 1 and text.count("</script") == 1 and "\x00" not in text and "\x1b" not in text
    assert '<script>alert("&")</script>' in words and "<i>" in words and "i" not in reader.tags


@pytest.mark.slow
def test_in_a_browser(tmp_path: Path) -> None:
    """It has nothing to complain of, but runs no other script; a click sorts the summary, words narrow it."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs Chromium")
    text = made(noise(4, 500, 12)).report(costs=False)
    clicks = (
        "var b = document.querySelectorAll('#summary-table thead button'); b[1].click();"
        "var i = document.getElementById('summary-filter'); i.value = 'X1'; i.dispatchEvent(new Event('input'));"
    )
    path = tmp_path / "r.html"
    clicked = text.replace("</body>", f"<script>{clicks}</script></body>")
    path.write_text(clicked, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", f"--user-data-dir={tmp_path}"]

    def opened() -> subprocess.CompletedProcess[str]:
        words = [browser, *options, "--dump-dom", path.as_uri()]
        return subprocess.run(words, capture_output=True, text=True, timeout=60)

    assert "Refused to execute" in (refused := opened()).stderr or "violates" in refused.stderr
    path.write_text(re.sub(r"script-src '[^']*'", "script-src 'unsafe-inline'", clicked), encoding="utf-8")
    done = opened()
    assert "CONSOLE" not in done.stderr
    table = done.stdout.partition('id="summary-table"')[2].partition("</table>")[0]
    rows = re.findall(r'<tr( hidden="")?><th class="l" scope="row">(\S+)</th><td>([^<]*)</td>', table)
    means = [float(mean) for _, _, mean in rows]
    assert means == sorted(means, reverse=True) and len(means) == 13
    assert {name for hidden, name, _ in rows if not hidden} == {"x1", "x10", "x11"}
    assert "3 of 13 rows" in done.stdout


# ---------------------------------------------------------------- odd fits


def constant() -> SampleFit:
    return made(np.concatenate([noise(4, 40, 1), np.full((4, 40, 1), 2.5), np.zeros((4, 40, 1))], axis=2))


def with_nan() -> SampleFit:
    values = noise(4, 40, 3)
    values[1, 3:20, 0], values[..., 1], values[0, 5, 2] = np.nan, np.nan, np.inf
    return made(values)


def huge() -> SampleFit:
    values = noise(2, 40, 4)
    values[..., 0] = np.clip(values[..., 0], -1, 1) * 1.7e308
    values[..., 1] = 1 + 1e-16 * values[..., 1]
    values[..., 2] *= 1e-310
    values[..., 3] = np.tan(values[..., 3] * 10) ** 9
    return made(values, stats={"energy": 1.7e308 * np.clip(noise(2, 40), -1, 1), "lp": np.full((2, 40), -np.inf)})


def only_warmup() -> SampleFit:
    stats = {"lp": noise(2, 30), "divergent": np.zeros((2, 30))}
    return made(np.empty((2, 0, 2)), warmup=(noise(2, 30, 2), noise(2, 30, 2), stats))


def without_statistics() -> SampleFit:
    fit = made(noise(3, 30, 2))
    fit.stats = {"lp": fit.stats["lp"]}
    return fit


ODD: dict[str, tuple[Callable[[], SampleFit], str]] = {
    "constant": (constant, "always 2.5"),
    "nan": (with_nan, "not finite"),
    "huge": (huge, "R-hat"),
    "one chain": (lambda: made(noise(1, 200, 2)), "one chain"),
    "one draw": (lambda: made(noise(4, 1, 2)), "unknown"),
    "two draws": (lambda: made(noise(1, 2, 1)), "x0"),
    "no draws": (lambda: made(np.empty((4, 0, 2))), "no draws"),
    "warmup only": (only_warmup, "only those of the warmup"),
    "no parameters": (lambda: made(np.empty((2, 10, 0))), "no two parameters"),
    "no statistics": (without_statistics, "no energy"),
    "many chains": (lambda: made(noise(30, 20, 2)), "Of 30 chains the 8"),
    "never moved": (lambda: made(np.repeat(noise(4, 1, 2), 50, axis=1), stats={"lp": np.ones((4, 50))}), "never moved"),
    "all divergent": (lambda: made(noise(2, 900, 2), stats={"divergent": np.ones((2, 900))}), "of which 400"),
    "ints": (lambda: made(np.round(noise(2, 90, 2))), "x1"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ODD)
def test_odd_fits(name: str) -> None:
    make, told = ODD[name]
    fit = make()
    assert told in read(fit.report(costs=False))[1]
    shown = Reader(fit._repr_html_())
    assert not shown.problems and verdict(fit).sentence in "".join(shown.words)


def test_size_does_not_grow_with_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn is thinned, and of many values a part is drawn."""
    few, many = (len(made(noise(4, draws, 3)).report(costs=False)) for draws in (1000, 10_000))
    assert many < 1.2 * few
    wide = made(noise(4, 20, 1000))
    text = wide.report(costs=False)
    reader, words = read(text)
    assert len(text) < 1_000_000 and text.count('<th class="l" scope="row">x') >= 1000
    assert [picture.get("class") for picture in reader.pictures].count("trace-picture") == 16
    assert "Of 1,001 rows 10 are shown" in read(wide.report(costs=False, rows=10))[1]


# ---------------------------------------------------------------- what is said


def test_verdicts() -> None:
    good = made(noise(4, 1000, 2))
    assert verdict(good).level == GOOD and not verdict(good).first
    assert {row.level for row in checks(good)} == {GOOD}
    apart = made(noise(4, 1000, 2) + np.arange(4)[:, None, None])
    assert verdict(apart).level == BAD and "do not agree" in verdict(apart).sentence and verdict(apart).first
    diverged = made(noise(4, 1000, 2), stats={"divergent": np.eye(4, 1000)})
    assert verdict(diverged).level == BAD and next(checks(diverged)).level == BAD
    both = made(apart.values, stats={"divergent": np.eye(4, 1000)})
    assert "do not agree" in verdict(both).sentence and "target_accept" in verdict(both).first  # the cause first
    assert verdict(made(noise(1, 1000, 2))).level == CARE
    assert verdict(made(np.empty((2, 0, 1)))).level == NONE


def test_shares_are_percentages() -> None:
    for count, told in ((1, "(0.1%)"), (500, "(50%)"), (995, "(99.5%)"), (1000, "(100%)")):
        flags = (np.arange(1000) < count).reshape(2, 500)
        assert told in made(noise(2, 500, 1), stats={"divergent": flags}).diagnose().problems[0].found


def test_what_mixes_worst_is_drawn_first() -> None:
    values = noise(4, 300, 40)
    values[..., 33] += 2 * np.arange(4)[:, None]
    values[..., 12] = np.cumsum(values[..., 12], axis=1)
    shown = Shown(made(values))
    assert {quantity.name for quantity in shown.quantities[1:3]} == {"x33", "x12"}
    assert {one.name for pair in shown.pairs for one in pair} >= {"x33", "x12"}
    twice = made(np.repeat(noise(2, 50, 1), 3, axis=2))
    assert [(one.name, other.name) for one, other in Shown(twice).pairs] == [("x0", "lp__")]
    late = noise(20, 50, 1)
    late[17] += 5
    assert 17 in Shown(made(late)).chains and len(Shown(made(late)).chains) == CHAINS_DRAWN


def test_ranks_are_means_of_ties() -> None:
    values = np.array([[[1.0], [2.0]], [[2.0], [4.0]]])
    assert Shown(made(values)).quantity(0).ranks.tolist() == [[0.125, 0.5], [0.5, 0.875]]


def test_thinned_traces_keep_extremes() -> None:
    draws = noise(1, 5000, 1)[0, :, 0]
    draws[1234] = np.nan
    kept = figures.thinned(draws)
    assert len(kept) <= figures.TRACE_POINTS + 2 and (np.diff(kept) > 0).all()
    assert {int(np.nanargmin(draws)), int(np.nanargmax(draws))} <= set(kept.tolist())


def test_paths_are_where_the_numbers_are() -> None:
    """Steps of tenths do not add up their errors."""
    x, y = np.linspace(0, 400, 300), 50 + 40 * np.sin(np.arange(300.0))
    y[7] = np.nan
    ends: list[tuple[float, float]] = []
    for run in svg_parts.path(x, y).split("M")[1:]:
        begin, _, steps = run.partition("l")
        numbers = np.array([float(number) for number in re.findall(r"-?\d*\.?\d+", begin)])[:2]
        moves = np.array([float(number) for number in re.findall(r"-?\d*\.?\d+", steps)]).reshape(-1, 2)
        ends += [tuple(numbers), *map(tuple, numbers + np.cumsum(moves, axis=0))]
    known = ~np.isnan(y)
    np.testing.assert_allclose(ends, np.stack([x[known], y[known]], axis=1), atol=0.0501)


@pytest.mark.parametrize("low, high", [(0, 1), (-3e-7, 2e-7), (1e9, 1.0001e9), (-1e308, 1e308), (5e-324, 1e-320)])
def test_ticks(low: float, high: float) -> None:
    found = svg_parts.ticks(low, high, 4)
    texts = svg_parts.tick_texts(found)
    assert len(found) <= 10 and len(set(texts)) == len(found) and all(low <= value <= high for value in found)
    for text, value in zip(texts, found, strict=True):
        assert float(text.replace("−", "-").replace(",", "")) == pytest.approx(value, rel=1e-6, abs=1e-12 * abs(high))


def test_numbers_are_aligned() -> None:
    """As many digits as the spread gives sense to, the points of a column in one line."""
    table = made(noise(4, 1000, 3) * [1, 150, 1e-3] + [0, 5000, 1]).summary()
    rows = {row[0]: dict(zip(table.columns, row[1:], strict=True)) for row in aligned_rows(table)}
    assert [len(rows[name]["sd"].strip()) for name in ("x0", "x1", "x2")] == [4 + (table["x0"]["sd"] < 1), 3, 8]
    for column in ("mean", "sd", "5%"):
        cells = [row[column] for row in rows.values()]
        points = [cell.find(".") if "." in cell else len(cell.strip()) for cell in cells]
        assert len({len(cell) - point for cell, point in zip(cells, points, strict=True)}) == 1
    for name, row in rows.items():
        assert float(row["mean"]) == pytest.approx(table[name]["mean"], abs=0.01 * table[name]["sd"])


# ---------------------------------------------------------------- files


def test_fits_of_files(fit: SampleFit, tmp_path: Path) -> None:
    paths = fit.to_csv(tmp_path / "f.csv")
    again = fit_of_files(paths)
    assert (again.values == fit.values).all() and again.names == fit.names
    assert str(again.summary()) == str(fit.summary())
    assert str(again.diagnose()) == str(fit.diagnose()) and again["b"].shape == (4, 150, 2)
    assert again.settings.target_accept == 0.8 and again.settings.warmup == 200
    assert fit_of_files(paths, fit.model).model is fit.model
    with pytest.raises(DataError, match="the program is not known"):
        _ = again.model
    lines = paths[1].read_text().splitlines(keepends=True)
    rows = [k for k, line in enumerate(lines) if not line.startswith("#")]
    paths[1].write_text("".join(lines[: rows[101]]))
    short = fit_of_files(paths)
    assert short.n_draws == 100 and len(short.notes) == 2
    paths[1].write_text("".join(lines).replace("mu", "nu"))
    with pytest.raises(DataError, match="other columns"):
        fit_of_files(paths)
    with pytest.raises(DataError, match="no column for mu"):
        fit_of_files(paths[1:2], fit.model)


def test_names_in_files(tmp_path: Path) -> None:
    """Of tuples, complex numbers, and arrays of which a part is there."""
    path = tmp_path / "c.csv"
    path.write_text("lp__,a.1.1,a.2.1,a.1.2,a.2.2,t:1.1,t:1.2,z.real,z.imag,p.2,p.3\n" + "1,1,2,3,4,5,6,7,8,9,10\n" * 9)
    fit = fit_of_files([path])
    assert fit["a"].shape == (1, 9, 2, 2) and fit["a"][0, 0].tolist() == [[1, 3], [2, 4]]
    assert fit["t"][0].shape == (1, 9, 2) and {"z.real", "p.2"} <= set(fit.draws)
    path.write_text("# method = optimize\nlp__,a\n1,1\n")
    with pytest.raises(DataError, match="'optimize'"):
        fit_of_files([path])


def test_nothing_is_loaded_before_it_is_used() -> None:
    code = "import sys, ulam; ulam.SampleFit, ulam.load; print([name for name in sys.modules if 'html_report' in name])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
