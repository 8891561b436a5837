"""`ulam bench` and what it stands on: turns, ratios with intervals, whether two models are one density."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from ulam.runtime.comparison import (
    agreement,
    differing_parameters,
    fitting_count,
    gradient_timer,
    interleaved,
    median_ratio,
    parameter_order,
)
from ulam.runtime.errors import Rejection
from ulam.runtime.model import StanModel
from ulam.tools import ulam_main
from ulam.tools.ulam_bench import PLACEMENT, _verdict  # pyright: ignore[reportPrivateUsage]

Capture = pytest.CaptureFixture[str]

DECLARED = "data { int N; vector[N] y; } parameters { real mu; real<lower=0> sigma; }"
VECTORIZED = f"{DECLARED} model {{ mu ~ normal(0, 1); y ~ normal(mu, sigma); }}"
LOOP = f"{DECLARED} model {{ for (n in 1:N) target += normal_lpdf(y[n] | mu, sigma); target += std_normal_lpdf(mu); }}"
SWAPPED = VECTORIZED.replace("real mu; real<lower=0> sigma;", "real<lower=0> sigma; real mu;")
OTHER = VECTORIZED.replace("normal(0, 1)", "normal(0, 2)")
RENAMED = re.sub(r"\bmu\b", "location", VECTORIZED)
DATA = {"N": 5, "y": [0.5, 1.0, 1.5, 3.0, -1.0]}


# ---------------------------------------------------------------- turns and ratios


class Clock:
    """Things that take a known time, and the order they are done in."""

    def __init__(self) -> None:
        self.done: list[tuple[str, int]] = []

    def timer(self, name: str, seconds: float):
        def run(count: int) -> float:
            self.done.append((name, count))
            return seconds * count

        return run


def test_versions_take_turns() -> None:
    clock = Clock()
    timing = interleaved(clock.timer("a", 2e-3), clock.timer("b", 1e-3), rounds=2, count=5)
    assert clock.done == [
        ("a", 1), ("b", 1),
        ("a", 3), ("b", 3), ("b", 2), ("a", 2),
        ("b", 3), ("a", 3), ("a", 2), ("b", 2),
    ]  # fmt: skip
    assert timing.counts == (5, 5)
    np.testing.assert_allclose(timing.seconds, [[2e-3, 1e-3]] * 2)
    assert timing.medians == pytest.approx((2e-3, 1e-3))
    assert (timing.ratio.value, timing.ratio.low, timing.ratio.high) == pytest.approx((0.5, 0.5, 0.5))


def test_rounds_of_one_gradient() -> None:
    clock = Clock()
    timing = interleaved(clock.timer("a", 1.0), clock.timer("b", 3.0), rounds=3, count=1)
    assert sum(count for name, count in clock.done if name == "a") == 1 + 3
    np.testing.assert_allclose(timing.seconds, [[1.0, 3.0]] * 3)


def test_a_steady_drift_cancels() -> None:
    now = 0.0

    def timer(cost: float):
        def run(count: int) -> float:
            nonlocal now
            before = now
            now += cost * count
            return cost * count * (1 + 0.1 * (before + now) / 2)  # the machine gets slower and slower

        return run

    ratio = interleaved(timer(1.0), timer(1.0), rounds=6, count=4).ratio
    assert ratio.value == pytest.approx(1.0, rel=1e-12) and ratio.high - ratio.low < 1e-12


@pytest.mark.parametrize("seconds", [1e-7, 3e-4, 2.0])
def test_count_that_fits(seconds: float) -> None:
    clock = Clock()
    assert fitting_count(clock.timer("a", seconds), 0.01) == max(1, round(0.01 / seconds))
    assert sum(count for _, count in clock.done) * seconds < max(0.05, 3 * seconds)


def test_interval_covers_the_ratio() -> None:
    """Of noisy rounds of a known ratio, in about 95% of 400 cases."""
    generator = np.random.default_rng(5)
    covered = 0
    for _ in range(400):
        first, second = np.exp(0.1 * generator.normal(size=(2, 40)))
        ratio = median_ratio(first, 1.25 * second)
        assert ratio.low <= ratio.value <= ratio.high and ratio.rounds == 40
        covered += ratio.low <= 1.25 <= ratio.high
    assert 0.90 <= covered / 400 <= 0.99


def test_verdicts() -> None:
    assert _verdict(1.5, 1.6) == "is slower than"
    assert _verdict(0.5, 0.6) == "is faster than"
    for low, high in ((0.9, 1.1), (1.001, 1.002), (1 + PLACEMENT / 2, 2.0), (0.5, 0.99)):
        assert _verdict(low, high) == "cannot be told apart in speed from"


@pytest.mark.ordinary_runtime("opening and closing pages takes most of the time")
def test_a_model_against_itself_and_against_more_work() -> None:
    more = VECTORIZED.replace("y ~ normal(mu, sigma);", "for (i in 1:200) y ~ student_t(3, mu * i, sigma);")
    first, second = StanModel(VECTORIZED, DATA), StanModel(more, DATA)
    theta = np.array([0.1, 0.2])
    ratio = interleaved(gradient_timer(first, theta), gradient_timer(second, theta), rounds=10).ratio
    assert ratio.low > 10


# ---------------------------------------------------------------- the same density?


def test_two_ways_to_write_a_density() -> None:
    first, second = StanModel(VECTORIZED, DATA), StanModel(LOOP, DATA)
    order = parameter_order(first, second)
    assert order is not None and order.tolist() == [0, 1]
    found = agreement(first, second, np.array([0.1, 0.2]), order)
    assert found.same and found.points == 5
    # What `~` drops.
    assert found.offset == pytest.approx(-6 * 0.5 * np.log(2 * np.pi), rel=1e-12)


def test_parameters_in_another_order() -> None:
    first, second = StanModel(VECTORIZED, DATA), StanModel(SWAPPED, DATA)
    order = parameter_order(first, second)
    assert order is not None and order.tolist() == [1, 0]
    found = agreement(first, second, np.array([0.1, 0.2]), order)
    assert found.same and found.offset == 0


def test_another_density() -> None:
    first, second = StanModel(VECTORIZED, DATA), StanModel(OTHER, DATA)
    order = parameter_order(first, second)
    assert order is not None
    found = agreement(first, second, np.array([0.1, 0.2]), order)
    assert not found.same and found.spread > 1e-3 and found.gradient > 1e-3


def test_other_parameters() -> None:
    first, second = StanModel(VECTORIZED, DATA), StanModel(RENAMED, DATA)
    assert parameter_order(first, second) is None
    assert differing_parameters(first, second) == (["mu"], ["location"])


def test_points_that_are_rejected() -> None:
    picky = VECTORIZED.replace("model {", 'model { if (mu != 0.1) reject("only there");')
    models = StanModel(picky, DATA), StanModel(VECTORIZED, DATA)
    order = parameter_order(*models)
    assert order is not None
    assert agreement(*models, np.array([0.1, 0.2]), order).points == 1
    with pytest.raises(Rejection, match="only there"):
        agreement(*models, np.array([0.2, 0.2]), order)


# ---------------------------------------------------------------- the command


def bench(*arguments: str) -> int:
    return ulam_main.main(["bench", *arguments, "--data", json.dumps(DATA), "--rounds", "4"])


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {"a": VECTORIZED, "loop": LOOP, "other": OTHER, "renamed": RENAMED}.items():
        Path(f"{name}.stan").write_text(text)


@pytest.mark.usefixtures("files")
def test_bench(capsys: Capture) -> None:
    assert bench("a.stan", "--vs", "loop.stan", "--gradients", "50") == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert lines[0].split() == ["version", "parameters", "per", "gradient", "compile", "time"]
    assert [line.split()[:2] for line in lines[1:3]] == [["a.stan", "2"], ["loop.stan", "2"]]
    assert re.search(r"^ratio +\S+; 95% interval \S+ to \S+$", printed.out, re.MULTILINE)
    assert "4 rounds that take turns, 50 gradients in each" in printed.out
    assert "differs by -5.51363, the same at 5 points" in printed.out


@pytest.mark.usefixtures("files")
def test_bench_of_different_models(capsys: Capture) -> None:
    assert bench("a.stan", "--vs", "other.stan", "--gradients", "5") == 0
    printed = capsys.readouterr()
    assert "warning: the versions are different densities" in printed.err
    assert "on average, by other amounts elsewhere" in printed.out
    assert bench("a.stan", "--vs", "renamed.stan", "--gradients", "5") == 0
    printed = capsys.readouterr()
    assert "only a.stan has mu; only renamed.stan has location" in printed.err
    assert "log density" not in printed.out and "ratio" in printed.out


@pytest.mark.usefixtures("files")
def test_bench_of_levels_as_json(capsys: Capture) -> None:
    Path("a.stan").write_text(VECTORIZED.replace("model {", 'model { print("here");'))
    assert bench("a.stan", "--vs-opt-level", "0", "--gradients", "5", "--json") == 0
    printed = capsys.readouterr()
    record = json.loads(printed.out)
    assert printed.err == "", "what a program prints is not shown"
    assert [version["name"] for version in record["versions"]] == ["a.stan -O3", "a.stan -O0"]
    for version in record["versions"]:
        assert len(version["rounds"]) == 4 and version["gradients_per_round"] == 5
        assert version["compile_seconds"] > 0 and version["seconds_per_gradient"] > 0
    assert record["agreement"]["same"] and record["warnings"] == []


@pytest.mark.usefixtures("files")
def test_bench_of_data(capsys: Capture) -> None:
    more = json.dumps({"N": 1000, "y": [0.5] * 1000})
    assert bench("a.stan", "--vs-data", more) == 0
    printed = capsys.readouterr().out
    assert "a.stan (2) is slower than a.stan (1)" in printed


@pytest.mark.usefixtures("files")
def test_bench_needs_another_version(capsys: Capture) -> None:
    assert bench("a.stan") == 2
    assert "give another version by --vs, --vs-data, --vs-opt-level or --vs-passes" in capsys.readouterr().err
    assert bench("a.stan", "--vs", "nowhere.stan") == 1
    assert "nowhere.stan" in capsys.readouterr().err
