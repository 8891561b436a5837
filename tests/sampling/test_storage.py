"""Fits in files: what is saved is loaded, by this version and by later ones; what is damaged is a clear error.

`python tests/sampling/test_storage.py` writes the file of the first version of the format, once and for all.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import signal
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forks import in_child

import ulam
from ulam.runtime.errors import DataError
from ulam.runtime.sampling.fit import SampleFit
from ulam.runtime.sampling.storage import HEADER

FIRST = Path(__file__).parents[1] / "reference" / "fit_of_schema_1.ulam"
PROGRAM = """
data { int N; array[N] real y; matrix[2, 2] z; }
parameters { real mu; simplex[3] q; }
transformed parameters { tuple(real, vector[2]) t = (mu, [1, 2]'); }
model { y ~ normal(mu, 1); }
generated quantities { array[2, 2] int k = rep_array(N, 2, 2); real miss = 0.0 / (N - 2); }
"""
DATA: dict[str, Any] = {"N": 2, "y": [0.5, float("inf")], "z": np.array([[1.0, np.nan], [3.0, 4.0]])}


def sampled(**options: Any) -> SampleFit:
    model = ulam.StanModel(PROGRAM.replace("y ~ normal(mu, 1);", "y[1] ~ normal(mu, 1);"), data=DATA, opt_level=0)
    return model.sample(chains=2, warmup=60, draws=20, progress=False, **options)


@pytest.fixture(scope="module")
def fit() -> SampleFit:
    return sampled(save_warmup=True, metric="dense", adapt={"window": 10})


@pytest.fixture(scope="module")
def saved(fit: SampleFit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fits") / "fit.ulam"
    fit.save(path)
    return path


def assert_same(found: SampleFit, fit: SampleFit) -> None:
    for name in fit.draws:
        np.testing.assert_array_equal(found[name], fit[name])
    assert set(found.stats) == set(fit.stats)
    for name, values in fit.stats.items():
        np.testing.assert_array_equal(found.stats[name], values)
        assert found.stats[name].dtype == values.dtype
    for one, other in (
        (found.unconstrained, fit.unconstrained), (found.step_size, fit.step_size), (found.metric, fit.metric),
        (found.seconds, fit.seconds),
    ):  # fmt: skip
        np.testing.assert_array_equal(one, other)
    assert (found.settings, found.notes, found.ended, found.names) == (fit.settings, fit.notes, fit.ended, fit.names)
    assert str(found) == str(fit)


def test_what_is_saved_is_loaded(fit: SampleFit, saved: Path) -> None:
    found = ulam.load(saved)
    assert_same(found, fit)
    assert found.warmup is not None and fit.warmup is not None
    np.testing.assert_array_equal(found.warmup["q"], fit.warmup["q"])
    assert found["t"][1].shape == (2, 20, 2) and found.settings.adapt.window == 10


def test_saved_again(saved: Path, tmp_path: Path) -> None:
    ulam.load(saved).save(tmp_path / "again.ulam")
    assert_same(ulam.load(tmp_path / "again.ulam"), ulam.load(saved))


def test_the_model_is_made_when_it_is_asked_for(fit: SampleFit, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("compiled")

    with monkeypatch.context() as patch:
        patch.setattr(ulam.StanModel, "_setup", refuse)
        found = ulam.load(saved)
        assert str(found) and found._repr_html_() and found.to_json()
        with pytest.raises(AssertionError, match="compiled"):
            assert found.model
    point = fit.unconstrained[0, 0]
    np.testing.assert_array_equal(found.model.param_constrain(point), fit.model.param_constrain(point))
    assert found.model is found.model
    assert found.model.bound_values()["y"][1] == np.inf and np.isnan(found.model.bound_values()["z"][0, 1])


def test_runs_go_on_from_a_file(saved: Path) -> None:
    found = ulam.load(saved)
    more = found.model.sample(
        chains=2, warmup=0, draws=5, init=found, metric=found, step_size=found.step_size, progress=False
    )
    assert more["q"].shape == (2, 5, 3)


def test_other_shapes(tmp_path: Path) -> None:
    """A unit metric has no array; a run without warmup has none of it; data may be JSON."""
    model = ulam.StanModel(
        "data { real a; } parameters { real x; } model { x ~ normal(a, 1); }", '{"a": 1}', opt_level=0
    )
    for options in ({"metric": "unit"}, {"draws": 0}, {"chains": 1, "thin": 3}):
        fit = model.sample(**{"warmup": 20, "draws": 10, "progress": False, **options})
        fit.save(tmp_path / "fit.ulam")
        assert_same(ulam.load(tmp_path / "fit.ulam"), fit)
    fixed = ulam.StanModel("generated quantities { int x = 3; }", opt_level=0).sample(draws=10, progress=False)
    fixed.save(tmp_path / "fit.ulam")
    assert_same(ulam.load(tmp_path / "fit.ulam"), fixed)


def test_names_of_programs_that_are_no_text(tmp_path: Path) -> None:
    """Names of files may be any bytes."""
    path = tmp_path / os.fsdecode(b"caf\xe9.stan")
    path.write_text("parameters { real x; } model { x ~ std_normal(); }")
    ulam.StanModel(path, opt_level=0).sample(warmup=10, draws=5, progress=False).save(tmp_path / "fit.ulam")
    assert ulam.load(tmp_path / "fit.ulam").model.source[1] == str(path)


def test_arrays_that_do_not_fit(saved: Path, tmp_path: Path) -> None:
    def fewer(header: dict[str, Any]) -> None:
        del header["unconstrained_names"][0]

    def other(header: dict[str, Any]) -> None:
        header["variables"][0]["dims"] = [2]

    for change in (fewer, other):
        with pytest.raises(DataError, match="do not have the shapes of its variables"):
            ulam.load(rewritten(saved, tmp_path / "x.ulam", change))


def test_numpy_reads_it(saved: Path, fit: SampleFit) -> None:
    with np.load(saved, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["values"], fit.values)
        assert json.loads(archive[HEADER])["schema_version"] == 1


# ---------------------------------------------------------------- versions


def test_a_file_of_the_first_version() -> None:
    """Whatever becomes of the format, this file is read."""
    found = ulam.load(FIRST)
    assert found["q"].shape == (2, 20, 3) and found.warmup is not None and found.settings.metric == "dense"
    np.testing.assert_allclose(found["q"].sum(axis=-1), 1, rtol=1e-12)
    assert found["mu"][0, 0] == found.unconstrained[0, 0, 0] and found.summary()["k[1,2]"]["mean"] == 2
    assert found.model.param_unc_num() == 3


def rewritten(saved: Path, path: Path, change: Any) -> Path:
    """The file with another header."""
    with zipfile.ZipFile(saved) as archive, zipfile.ZipFile(path, "w") as other:
        for info in archive.infolist():
            content = archive.read(info)
            if info.filename == HEADER:
                header = json.loads(content)
                content = json.dumps(change(header) or header)
            other.writestr(info, content)
    return path


def test_other_versions(saved: Path, fit: SampleFit, tmp_path: Path) -> None:
    def later(header: dict[str, Any]) -> None:
        header["schema_version"] = 99
        header["ulam_version"] = "9.9"

    with pytest.raises(DataError, match=r"x\.ulam: a later version of ulam wrote it, 9\.9: this is"):
        ulam.load(rewritten(saved, tmp_path / "x.ulam", later))

    def more(header: dict[str, Any]) -> None:
        header["something"] = header["settings"]["something"] = header["variables"][0]["something"] = 1
        header["settings"]["adapt"]["something"] = header["program"]["options"]["something"] = 1

    assert_same(ulam.load(rewritten(saved, tmp_path / "y.ulam", more)), fit)

    def less(header: dict[str, Any]) -> None:
        del header["settings"]["step_size_jitter"], header["settings"]["adapt"]["kappa"]

    assert_same(ulam.load(rewritten(saved, tmp_path / "z.ulam", less)), fit)


# ---------------------------------------------------------------- files that are no fits


def test_other_files(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "x"
    for content in (b"", b"lp__,a\n1,2\n", pickle.dumps([1]), saved.read_bytes()[:-40]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"x: not a file that fit\.save wrote, or a part of one$"):
            ulam.load(path)
    np.savez(tmp_path / "a.npz", a=np.arange(3))
    with pytest.raises(DataError, match=r"a\.npz: not a file that fit\.save wrote$"):
        ulam.load(tmp_path / "a.npz")
    with pytest.raises(FileNotFoundError):
        ulam.load(tmp_path / "none")
    with pytest.raises(DataError, match="not a file that"):
        ulam.load(rewritten(saved, path, lambda header: {"format": "other"}))


def test_nothing_in_it_is_run(saved: Path, tmp_path: Path) -> None:
    """An array of objects, which NumPy would unpickle, is refused."""

    class Trap:
        def __reduce__(self) -> Any:
            return os._exit, (3,)

    with zipfile.ZipFile(saved) as archive, zipfile.ZipFile(tmp_path / "x", "w") as other:
        for info in archive.infolist():
            if info.filename != "seconds.npy":
                other.writestr(info, archive.read(info))
        with other.open("seconds.npy", "w") as member:
            np.lib.format.write_array(member, np.array([Trap()], dtype=object))
    with pytest.raises(DataError, match=r"damaged: seconds\.npy holds no numbers"):
        ulam.load(tmp_path / "x")


def test_damaged_files(saved: Path, fit: SampleFit, tmp_path: Path) -> None:
    """Whatever bytes are changed: a DataError, or the same fit where they do not matter."""
    content, path = saved.read_bytes(), tmp_path / "x"
    generator = np.random.default_rng(5)
    outcomes: dict[str, int] = {}
    for _ in range(300):
        damaged = bytearray(content)
        for place in generator.integers(0, len(content), generator.integers(1, 4)):
            damaged[place] = generator.integers(0, 256)
        path.write_bytes(bytes(damaged[: generator.integers(1, len(content)) if generator.random() < 0.1 else None]))
        try:
            found = ulam.load(path)
        except DataError as error:
            assert str(error).startswith(str(path))
            outcomes["error"] = outcomes.get("error", 0) + 1
        else:
            outcomes["loaded"] = outcomes.get("loaded", 0) + 1
            np.testing.assert_array_equal(found.values, fit.values)
    assert outcomes["error"] > 200, outcomes


def test_sizes_that_are_no_more_than_told(saved: Path, tmp_path: Path) -> None:
    """Sizes in a header ask for no memory that the file does not have."""
    with zipfile.ZipFile(saved) as archive, zipfile.ZipFile(tmp_path / "x", "w") as other:
        for info in archive.infolist():
            content = archive.read(info)
            if info.filename == "values.npy":
                content = content.replace(b"(2, 20,", b"(9999999, 99999,")[: len(content)]
            other.writestr(info, content)
    with pytest.raises(DataError, match="damaged"):
        ulam.load(tmp_path / "x")


def test_what_was_there_stays(fit: SampleFit, saved: Path, tmp_path: Path) -> None:
    """If a fit cannot be written to its end, the file is as it was, and nothing else is there."""
    path = tmp_path / "fit.ulam"
    path.write_bytes(saved.read_bytes())

    def is_told() -> bool:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))  # for the whole process
        try:
            fit.save(path)
        except OSError as error:
            return error.filename == str(path)
        return False

    assert in_child(is_told)
    assert path.read_bytes() == saved.read_bytes() and os.listdir(tmp_path) == ["fit.ulam"]


if __name__ == "__main__":
    sampled(save_warmup=True, metric="dense", adapt={"window": 10}).save(FIRST)
