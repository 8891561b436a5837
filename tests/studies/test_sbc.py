"""`ulam.sbc`: what simulates, what ranks are kept, what they say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.errors import ArgumentError
from ulam.runtime.studies.calibration import CalibrationResult
from ulam.runtime.studies.sbc import RanksOf, elements_of
from ulam.runtime.studies.study import Study

pytestmark = pytest.mark.usefixtures("quick_code")

PROGRAM = """
data { int N; vector[N] y; }
parameters { real mu; }
model { mu ~ normal(0, 1); y ~ normal(mu, 1); }
generated quantities { matrix[2, 2] both = [[1, mu], [mu, 1]]; }
"""
SIMULATOR = """
transformed data { int N = 4; }
generated quantities {
  real mu = normal_rng(0, SCALE);
  vector[N] y;
  for (n in 1:N) y[n] = normal_rng(mu, 1);
  real unknown = 3;
}
"""
ITSELF = """
transformed data { real mu_ = normal_rng(0, 1); vector[4] y; for (n in 1:4) y[n] = normal_rng(mu_, 1); }
parameters { real mu; }
model { mu ~ normal(0, 1); y ~ normal(mu, 1); }
generated quantities { array[2] int below = {mu < mu_, mu > mu_}; }
"""
SHORT: dict[str, Any] = {"warmup": 100, "draws": 60, "thin": 3, "progress": False}


def simulate(generator: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any]]:
    mu = generator.normal()
    return {"N": 4, "y": generator.normal(mu, 1, 4)}, {"mu": mu, "both": [[1, mu], [mu, 1]]}


def test_a_function_simulates() -> None:
    found = ulam.sbc(PROGRAM, simulate, 12, seed=2, **SHORT)
    assert found.names == ["mu", "both.1.1", "both.1.2", "both.2.1", "both.2.2"] and found.levels == 21
    mu = found.ranks["mu"]
    assert mu.shape == (12,) and (mu >= 0).all() and (mu <= 20).all() and len(set(mu.tolist())) > 3
    assert np.array_equal(mu, found.ranks["both.1.2"])
    assert len(set(found.ranks["both.1.1"].tolist())) > 3  # a constant is below or not by chance
    record = found.study[3]
    data, values = simulate(np.random.default_rng(np.random.SeedSequence((2, 3, 1))))
    fit = ulam.StanModel(PROGRAM, data=data).sample(chains=1, seed=record.seed, **SHORT)
    assert mu[3] == (fit["mu"] < values["mu"]).sum()
    again = ulam.sbc(PROGRAM, simulate, 12, seed=2, workers=1, batch=5, quantities=["mu"], **SHORT)
    assert np.array_equal(again.ranks["mu"], mu) and again.names == ["mu"]


def test_a_program_simulates_and_a_wrong_prior_is_seen() -> None:
    right = ulam.sbc(PROGRAM, SIMULATOR.replace("SCALE", "1"), 30, **SHORT)
    assert right.ok and right.names == ["mu"] and right.problems == {}
    wrong = ulam.sbc(PROGRAM, SIMULATOR.replace("SCALE", "4"), 30, **SHORT)
    assert not wrong.ok and wrong.problems == {"mu": "draws vary too little"}
    assert "outside by" in str(wrong) and "1 of 1 quantities leave their band" in str(wrong)
    assert wrong.to_dict()["quantities"]["mu"]["found"] == "draws vary too little"


def test_a_program_that_simulates_its_own_data() -> None:
    found = ulam.sbc(ITSELF, n=10, less_than="below", **SHORT)
    assert found.names == ["below.1", "below.2"]
    assert (found.ranks["below.1"] + found.ranks["below.2"] == 20).all()
    assert len(set(found.ranks["below.1"].tolist())) > 3


def test_studies_of_simulations_go_on(tmp_path: Path) -> None:
    first = ulam.sbc(PROGRAM, simulate, 3, output=tmp_path, **SHORT)
    more = ulam.sbc(PROGRAM, simulate, 6, output=tmp_path, **SHORT)
    assert np.array_equal(more.ranks["mu"][:3], first.ranks["mu"]) and "3 of 6 fits were there" in more.study.notes[0]


def test_simulations_that_fail_are_told() -> None:
    def faulty(generator: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any]]:
        data, values = simulate(generator)
        return {**data, "N": 4 if values["mu"] < 0 else -1}, values

    found = ulam.sbc(PROGRAM, faulty, 8, **SHORT)
    assert found.study.errors and len(found.ranks["mu"]) == 8 - len(found.study.errors)
    assert f"{len(found.study.errors)} simulations failed" in str(found)
    with pytest.raises(ulam.StudyError, match="'nu' was simulated, and the model does not have it; it has mu, both"):
        ulam.sbc(PROGRAM, lambda generator: (simulate(generator)[0], {"nu": 1}), 1, **SHORT)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n must be"),
        ({"risk": 1}, "risk must be"),
        ({"method": "optimize"}, "must have draws"),
        ({"simulate": None}, "either simulate is given, or less_than"),
        ({"less_than": "below"}, "either simulate is given, or less_than"),
        ({"extract": ["mu"]}, "extract is no option of sbc"),
        ({"simulate": lambda generator: {}}, "two mappings"),
        ({"data": {}}, "data is for programs"),
        ({"quantities": ["nu"]}, "'nu', which is not simulated"),
        ({"simulate": PROGRAM, "data": {"N": 1, "y": [1]}}, "has no parameters"),
        ({"simulate": "generated quantities { real z = 1; }"}, "no generated quantity by the name"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ulam.sbc(PROGRAM, **({"simulate": simulate, "n": 2, **SHORT} | arguments))


def test_elements_and_ties() -> None:
    assert elements_of({"a": [[1, 2]], "b[2,1]": 3, "c.2": 4, "d": 5}) == {
        "a.1.1": 1, "a.1.2": 2, "b.2.1": 3, "c.2": 4, "d": 5,
    }  # fmt: skip

    class Fit:
        names = ["a", "b"]
        values = np.array([[[1.0, 1.0], [2.0, 1.0], [2.0, 1.0], [3.0, 1.0]]])

    counts = RanksOf()(Fit(), {"a": 2.0, "b": 1 + 1e-16})
    assert counts["a"].tolist() == [1, 2, 4] and counts["b"].tolist() == [0, 4, 4]
    Fit.values[0, 0, 0] = np.nan
    with pytest.raises(ulam.UlamError, match="NaN in some draws"):
        RanksOf()(Fit(), {"a": 2.0})


def of_ranks(ranks: Any) -> CalibrationResult:
    return CalibrationResult({"theta.1": np.asarray(ranks)}, 101, 0.05, Study("sample", len(ranks)))


def test_words_for_ranks() -> None:
    generator = np.random.default_rng(4)
    assert of_ranks(generator.integers(0, 101, 300)).ok
    assert of_ranks((100 * generator.beta(1, 1.6, 300)).astype(int)).found("theta.1") == "draws are too large"
    assert of_ranks((100 * generator.beta(1.6, 1, 300)).astype(int)).found("theta.1") == "draws are too small"
    assert of_ranks((100 * generator.beta(0.5, 0.5, 300)).astype(int)).found("theta.1") == "draws vary too little"
    assert of_ranks((100 * generator.beta(3, 3, 300)).astype(int)).found("theta.1") == "draws vary too much"


def test_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = of_ranks(np.random.default_rng(4).integers(0, 101, 50))
    points, difference, lower, upper = found.ecdf_difference("theta.1")
    assert ((lower <= difference) & (difference <= upper)).all() and len(points) == 100
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError):
        found.plot()
    monkeypatch.undo()
    pytest.importorskip("matplotlib")
    figure = found.plot(tmp_path / "sbc.png", names=["theta[1]"])
    assert (tmp_path / "sbc.png").stat().st_size > 1000 and figure.axes[0].get_title() == "theta[1]"
