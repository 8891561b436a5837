"""Generated quantities of draws that there are: those of the fit they are from; sources of draws, failures, output."""

from __future__ import annotations

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ulam import DataError, StanModel
from ulam.runtime import cmdstan_csv
from ulam.runtime.errors import ArgumentError
from ulam.runtime.sampling.chain import quantities_rng
from ulam.runtime.sampling.fit import SampleFit
from ulam.tools import ulam_main

pytestmark = pytest.mark.usefixtures("quick_code")

PARAMETERS = """
data { int N; }
parameters { simplex[3] p; array[2] matrix[N, 2] m; real<lower=0> s; }
"""
DENSITY = "model { s ~ gamma(5, 2); for (k in 1 : 2) to_vector(m[k]) ~ normal(0, s); }"
MODEL = f"""{PARAMETERS}
transformed parameters {{ real twice = 2 * s; }}
{DENSITY}
generated quantities {{
  array[2] vector[3] g; int n = poisson_rng(twice); real z = normal_rng(0, 1);
  g[1] = p; g[2] = s * p;
}}
"""
LATER = f"""{PARAMETERS}
generated quantities {{ real y = normal_rng(m[2, 1, 2], s); real log_lik = log(s); vector[3] q = p; }}
"""


@pytest.fixture(scope="module")
def model() -> StanModel:
    return StanModel(MODEL, {"N": 1})


@pytest.fixture(scope="module")
def later() -> StanModel:
    return StanModel(LATER, {"N": 1})


@pytest.fixture(scope="module")
def fit(model: StanModel) -> SampleFit:
    return model.sample(chains=3, warmup=200, draws=90, thin=3, seed=7, progress=False)


def parameters(fit: SampleFit) -> dict[str, Any]:
    return {name: fit[name] for name in ("p", "m", "s")}


def test_those_of_the_fit(model: StanModel, fit: SampleFit) -> None:
    """With the fit's seed all values are the fit's own, random ones among them, whatever runs the chains."""
    with ThreadPoolExecutor(1) as pool:
        for found in (model.generate_quantities(fit, seed=7), model.generate_quantities(fit, seed=7, executor=pool)):
            np.testing.assert_array_equal(found.values, fit.values)
    other = model.generate_quantities(fit, seed=8)
    np.testing.assert_array_equal(other["g"], fit["g"])
    assert not np.isclose(other["z"], fit["z"]).any()
    assert other["z"].shape == (3, 30) and other["g"].shape == (3, 30, 2, 3)
    assert other.quantities == ["g", "n", "z"] and list(other.summary())[:2] == ["g[1,1]", "g[2,1]"]


def test_each_draw_has_random_numbers_of_its_own(later: StanModel, fit: SampleFit) -> None:
    found = later.generate_quantities(fit, seed=3)
    for chain, draw in ((0, 0), (1, 5), (2, 29)):
        rng = quantities_rng(3, chain + 1, 3 * draw)
        point = fit.unconstrained[chain, draw]
        alone = later.param_constrain(point, include_tp=True, include_gq=True, rng=rng)
        np.testing.assert_array_equal(found.values[chain, draw], alone)
    np.testing.assert_array_equal(found["q"], fit["p"])
    assert len(np.unique(found["y"])) == found["y"].size


def test_arrays_by_name(later: StanModel, fit: SampleFit) -> None:
    named = parameters(fit)
    found = later.generate_quantities(named, seed=3)
    np.testing.assert_allclose(found.unconstrained, fit.unconstrained, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found["log_lik"], np.log(fit["s"]), rtol=1e-12)
    np.testing.assert_allclose(found["m"], fit["m"], rtol=1e-12)
    one = later.generate_quantities({name: draws[1] for name, draws in named.items()}, seed=3)
    assert one["m"].shape == (1, 30, 2, 1, 2)
    np.testing.assert_array_equal(one["log_lik"][0], found["log_lik"][1])
    posterior = later.generate_quantities(SimpleNamespace(posterior=named), seed=3)
    np.testing.assert_array_equal(posterior["y"], found["y"])


def test_other_fits(later: StanModel, model: StanModel) -> None:
    approximate = model.pathfinder(draws=20, seed=1)
    found = later.generate_quantities(approximate)
    np.testing.assert_array_equal(found["q"][0], approximate["p"])
    optimum = model.optimize(jacobian=True, init=0.1)
    np.testing.assert_allclose(later.generate_quantities(optimum)["q"][0, 0], optimum["p"])


def test_fit_with_other_bounds(fit: SampleFit) -> None:
    """The constrained values are what counts."""
    bounded = StanModel(
        PARAMETERS.replace("<lower=0>", "<lower=-1, upper=50>") + "generated quantities { real t = s; }", {"N": 1}
    )
    found = bounded.generate_quantities(fit)
    np.testing.assert_allclose(found["t"], fit["s"], rtol=1e-9)
    narrow = StanModel(PARAMETERS.replace("<lower=0>", "<lower=0, upper=1e-3>"), {"N": 1})
    with pytest.raises(DataError, match=r"of a SampleFit|a SampleFit of .*: chain 1, draw 1: .*1e-03|0\.001"):
        narrow.generate_quantities(fit)


def test_what_is_no_source_of_draws(later: StanModel, fit: SampleFit) -> None:
    named = parameters(fit)
    cases: tuple[tuple[Any, type[Exception], str], ...] = (
        (3, ArgumentError, "draws must be a fit, arrays by name .* found int"),
        (np.zeros((2, 3)), ArgumentError, "found ndarray"),
        ({"p": named["p"], "s": named["s"]}, DataError, "no array for parameter 'm'"),
        (
            named | {"p": named["p"][..., :2]},
            DataError,
            r"'p' must have shape .* draws, 3\), found \(3, 30, 2\)",
        ),
        (named | {"s": named["s"][0]}, DataError, "different numbers of chains and draws"),
        (named | {"p": named["p"] + 1}, DataError, "chain 1, draw 1: .*simplex"),
        (StanModel("parameters { real x; } model { x ~ std_normal(); }").optimize(), DataError, "other parameters: x"),
    )
    for given, error, text in cases:
        with pytest.raises(error, match=text):
            later.generate_quantities(given)


# ---------------------------------------------------------------- files


def written(fit: SampleFit, folder: Path, digits: int = 17) -> list[Path]:
    """CSV files with the parameters of a fit, as CmdStan writes them: one for each chain, warmup before the draws."""
    names = ["lp__", "accept_stat__", *fit.model.param_names()]
    count = len(names) - 2
    paths: list[Path] = []
    for k, rows in enumerate(fit.values[..., :count], 1):
        lines = ["# method = sample", "#     save_warmup = true", "#     algorithm = hmc (Default)", ",".join(names)]
        lines += [",".join(["-1", "1", *(f"{v + 1:.{digits}g}" for v in row)]) for row in rows[:2]]
        lines += ["# Adaptation terminated", "# Step size = 0.8"]
        lines += [",".join(["-1", "1", *(f"{value:.{digits}g}" for value in row)]) for row in rows]
        paths.append(folder / f"draws_{k}.csv")
        paths[-1].write_text("\n".join([*lines, "# ", "#  Elapsed Time: 1 seconds (Total)", ""]))
    return paths


def test_csv_files(later: StanModel, fit: SampleFit, tmp_path: Path) -> None:
    paths = written(fit, tmp_path)
    found = later.generate_quantities(paths, seed=3)
    np.testing.assert_array_equal(found["q"].shape, (3, 30, 3))
    np.testing.assert_allclose(found["log_lik"], np.log(fit["s"]), rtol=1e-12)
    one = later.generate_quantities(str(paths[0]), seed=3)
    np.testing.assert_array_equal(one["y"][0], found["y"][0])


def test_our_own_files(later: StanModel, model: StanModel, fit: SampleFit, tmp_path: Path) -> None:
    """Of each method that writes draws."""
    found = later.generate_quantities(fit.to_csv(tmp_path / "fit.csv"), seed=3)
    np.testing.assert_allclose(found["log_lik"], np.log(fit["s"]), rtol=1e-12)
    approximate = model.pathfinder(draws=10, seed=1)
    approximate.to_csv(tmp_path / "pathfinder.csv")
    normal = model.laplace(seed=2, draws=10)
    normal.to_csv(tmp_path / "laplace.csv")
    for result, name in ((approximate, "pathfinder.csv"), (normal, "laplace.csv")):
        again = later.generate_quantities(tmp_path / name)
        np.testing.assert_allclose(again["m"][0], result["m"], rtol=1e-12)
        np.testing.assert_allclose(again["log_lik"][0], np.log(result["s"]), rtol=1e-12)


def test_wrong_csv_files(later: StanModel, fit: SampleFit, tmp_path: Path) -> None:
    paths = written(fit, tmp_path, digits=4)
    with pytest.raises(DataError, match=r"draws_1\.csv.*simplex.*few digits may not keep a constraint"):
        later.generate_quantities(paths)
    (tmp_path / "other.csv").write_text("lp__,s\n-1,2\n")
    with pytest.raises(DataError, match=r"other\.csv: no column p\.1, p\.2, p\.3"):
        later.generate_quantities(tmp_path / "other.csv")
    text = written(fit, tmp_path)[0].read_text().splitlines()
    (tmp_path / "short.csv").write_text("\n".join([*text[:20], ""]))
    with pytest.raises(DataError, match="chains must have as many draws each, found 12 in .*short.csv, 30 in"):
        later.generate_quantities([tmp_path / "short.csv", tmp_path / "draws_2.csv"])
    (tmp_path / "empty.csv").write_text("\n".join([*text[:4], ""]))
    with pytest.raises(DataError, match="empty.csv: no draws"):
        later.generate_quantities(tmp_path / "empty.csv")
    with pytest.raises(FileNotFoundError):
        later.generate_quantities(tmp_path / "none.csv")


# ---------------------------------------------------------------- failures


def test_what_is_rejected_is_nan() -> None:
    source = """parameters { real x; } transformed parameters { real y = x; if (x < -1) reject("low"); }
    generated quantities { real z = x; if (x > 1) reject("high ", x); }"""
    model = StanModel(source)
    x = np.linspace(-2, 2, 41)
    found = model.generate_quantities({"x": x})
    np.testing.assert_array_equal(np.isnan(found["z"][0]), (x > 1) | (x < -1))
    np.testing.assert_array_equal(np.isnan(found["y"][0]), x < -1)
    np.testing.assert_array_equal(found["x"][0], x)
    assert found.n_rejections == 20 and "20 of 41 draws have NaN, the first for: " in found.notes[0]
    assert "low" in found.notes[0]


def test_interrupt_keeps_what_is_done(model: StanModel, fit: SampleFit, monkeypatch: pytest.MonkeyPatch) -> None:
    from ulam.runtime.sampling import generated

    monkeypatch.setattr(generated, "BLOCK_DRAWS", 10)
    compute, blocks = generated.draw_quantities, {"done": 0}

    def stopped(*arguments: Any) -> Any:
        blocks["done"] += 1
        if blocks["done"] == 5:
            raise KeyboardInterrupt
        return compute(*arguments)

    monkeypatch.setattr(generated, "draw_quantities", stopped)
    with ThreadPoolExecutor(1) as pool:
        found = model.generate_quantities(fit, seed=7, executor=pool)
    # Chain 1 has 30 draws, chain 2 ten, chain 3 all.
    assert found.interrupted and found["z"].shape == (3, 10) and found.notes[0].startswith("Interrupted: 10 of 30")
    np.testing.assert_array_equal(found.values, fit.values[:, :10])
    blocks["done"] = 4
    with pytest.raises(KeyboardInterrupt), ThreadPoolExecutor(1) as pool:
        model.generate_quantities(fit, seed=7, executor=pool)


# ---------------------------------------------------------------- output


def test_csv_of_the_quantities(later: StanModel, fit: SampleFit, tmp_path: Path) -> None:
    found = later.generate_quantities(fit, seed=3)
    paths = found.to_csv(tmp_path / "out.csv")
    assert [Path(path).name for path in paths] == ["out_1.csv", "out_2.csv", "out_3.csv"]
    content = cmdstan_csv.read(paths[1])
    assert content.names == ["y", "log_lik", "q.1", "q.2", "q.3"] and content.settings["id"] == "2"
    np.testing.assert_array_equal(content.rows[:, 0], found["y"][1])
    assert content.settings["method"] == "generate_quantities"


@pytest.mark.skipif(
    not any(importlib.util.find_spec(name) for name in ("arviz_base", "arviz")),
    reason="neither arviz-base nor arviz is installed",
)
def test_arviz(later: StanModel, fit: SampleFit) -> None:
    found = later.generate_quantities(fit, seed=3)
    data: Any = found.to_arviz(posterior_predictive=["y"])
    np.testing.assert_array_equal(data["posterior_predictive"]["y"], found["y"])
    np.testing.assert_array_equal(data["log_likelihood"]["log_lik"], found["log_lik"])
    again = later.generate_quantities(fit.to_xarray(), seed=3)
    np.testing.assert_allclose(again["log_lik"], found["log_lik"], rtol=1e-12)


def test_text(later: StanModel, fit: SampleFit) -> None:
    found = later.generate_quantities(fit)
    assert "log_lik" in str(found) and "s  " not in str(found).split("draws")[0] and "<table>" in found._repr_html_()
    assert len(repr(found)) < 500


def test_command(fit: SampleFit, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(path) for path in written(fit, tmp_path)]
    program, output = tmp_path / "later.stan", tmp_path / "gq.csv"
    program.write_text(LATER)
    arguments = ["generate-quantities", str(program), "--data", '{"N": 1}', "--seed", "3"]
    assert ulam_main.main([*arguments, "--draws", *paths, "-o", str(output)]) == 0
    printed = capsys.readouterr().out
    assert "3 x 30" in printed and "log_lik" in printed and str(tmp_path / "gq_3.csv") in printed
    assert cmdstan_csv.read(tmp_path / "gq_3.csv").rows.shape == (30, 5)
    for words, status, text in (
        ([], 2, "--draws: give CSV files"),
        (["--draws", *paths, "-o", "-"], 2, "several chains go to several files"),
        (["--draws", str(tmp_path / "none.csv")], 1, "none.csv"),
        (["--draws", str(program)], 1, "not a CSV file"),
    ):
        assert ulam_main.main([*arguments, *words]) == status
        assert text in capsys.readouterr().err
    program.write_text(PARAMETERS)
    assert ulam_main.main([*arguments, "--draws", *paths]) == 1
    assert "no generated quantities" in capsys.readouterr().err


NESTED = """
data { array[2] tuple(complex, int) at; }
parameters { tuple(real<lower=0>, array[2] tuple(simplex[2], complex)) q; complex_vector[2] z; array[2] complex a; }
transformed parameters {
  array[2] tuple(complex, tuple(real, complex_vector[2])) w;
  for (i in 1:2) w[i] = (a[i] * at[i].1, (q.1, i * z));
  w[2].2.2[1] += 1i;
}
model {
  target += -norm(q.2[1].2) - norm(q.2[2].2) - q.1 - sum(square(abs(z))) - norm(w[1].1) - norm(w[2].1);
}
generated quantities {
  tuple(complex_matrix[2, 2], int) g = (z * z', at[2].2);
  tuple(complex, real) e = (w[2].2.2[1], 1);
}
"""


def test_complex_numbers_in_tuples(tmp_path: Path) -> None:
    """They come back from files, and what depends on them is computed as in the program."""
    model = StanModel(NESTED, {"at": [(1 + 1j, 4), (2, 5)]}, opt_level=0)
    fit = model.sample(chains=1, warmup=100, draws=20, seed=2, progress=False)
    z, a, (matrix, five), (element, _) = fit["z"], fit["a"], fit["g"], fit["e"]
    np.testing.assert_allclose(matrix, z[..., :, None] * z[..., None, :], rtol=1e-14)  # the transpose is no adjoint
    np.testing.assert_allclose(element, 2 * z[..., 0] + 1j, rtol=1e-14)
    np.testing.assert_array_equal(five, 5)
    np.testing.assert_allclose(fit["w"][0], a * [1 + 1j, 2], rtol=1e-14)
    path = fit.to_csv(tmp_path / "fit.csv")
    again = model.generate_quantities(path, seed=1)
    np.testing.assert_allclose(again.unconstrained, fit.unconstrained, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(again["g"][0], matrix, rtol=1e-12)
    header = next(line for line in (tmp_path / "fit.csv").read_text().splitlines() if line.startswith("lp__"))
    for name in ("q:2.1:1.2", "q:2.2:2.imag", "z.2.real", "a.1.imag", "w.2:2:2.1.imag", "g:1.2.1.real", "g:2"):
        assert f",{name}," in f"{header},"
