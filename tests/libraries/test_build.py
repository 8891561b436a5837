"""`ulam build`: what a library shows and needs, and that its numbers are those of `StanModel`, bit for bit."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bridgestan_client import R_NAMES, VERSION, ClientError
from elf_files import exports, needed
from ulam_header import CONSTANTS, STATISTICS, Options, SampledClient, header, initialized

import ulam
from ulam.runtime.errors import ArgumentError, CompileError
from ulam.runtime.libraries import build as build_module
from ulam.runtime.libraries import linkers
from ulam.runtime.libraries.archive import get_include
from ulam.runtime.libraries.build import build
from ulam.runtime.libraries.linkers import BuildError
from ulam.runtime.sampling.settings import METRICS, SamplingSettings
from ulam.tools.exits import EXIT_FAILURE, EXIT_OK
from ulam.tools.ulam_main import main

pytestmark = [
    pytest.mark.usefixtures("quick_code"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="libraries are built on Linux"),
]

PROGRAM = """
functions { real fold(int n, real x) { return n == 0 ? x : fold(n - 1, 0.5 * x); } }
data { int<lower=0> N; vector[N] y; }
transformed data { real shift = normal_rng(0, 1); }
parameters { real mu; real<lower=0> sigma; matrix[2, 3] b; }
transformed parameters { real m = fold(3, mu) + shift; }
model {
  if (sigma > 100) reject("sigma of ", sigma);
  mu ~ normal(0, 2);
  sigma ~ normal(0, 2);
  to_vector(b) ~ normal(mu, sigma);
  y ~ normal(m, sigma);
}
generated quantities {
  array[2] real z = normal_rng({mu, m}, sigma);
  if (mu > 3) reject("no quantities");
}
"""
DATA: dict[str, Any] = {"N": 3, "y": [0.5, -1, 2.25]}
SEED = 11


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    (folder / "levels.stan").write_text(PROGRAM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ULAM_CACHE_DIR", str(folder / "cache"))
        return build(folder / "levels.stan", folder / "levels.so", opt_level=0)


@pytest.fixture(scope="module")
def client(library: Path) -> SampledClient:
    return SampledClient(library, DATA, SEED)


@pytest.fixture(scope="module")
def model() -> ulam.StanModel:
    return ulam.StanModel(PROGRAM, DATA, seed=SEED, opt_level=0)


# ---------------------------------------------------------------- the file


def test_what_it_shows_is_what_the_headers_say(library: Path) -> None:
    text = header("bridgestan.h") + header("ulam.h")
    functions = set(re.findall(r"^\w[\w *]*?\b((?:bs|ulam)_\w+)\(", text, re.MULTILINE))
    assert {"bs_model_construct", "ulam_sample", "ulam_native_handle"} <= functions
    assert exports(library) == functions | {*VERSION, *R_NAMES}


def test_it_needs_the_c_library_alone(library: Path) -> None:
    assert {name.partition(".")[0] for name in needed(library)} <= {"libc", "libm"}


def test_any_number_of_libraries(library: Path, tmp_path: Path) -> None:
    """Memory of threads that must be there when a library is loaded would suffice for some thirty."""
    point = np.zeros(8)
    for k in range(100):
        path = tmp_path / f"copy_{k}.so"
        shutil.copyfile(library, path)
        client = SampledClient(path, DATA, SEED)
        client.gradient(point)
        client.close()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_headers_are_c_and_cpp(tmp_path: Path) -> None:
    source = tmp_path / "headers.c"
    source.write_text('#include "ulam.h"\nulam_sample_options o = ULAM_SAMPLE_OPTIONS;\n'
                      "ulam_sample_output p = ULAM_SAMPLE_OUTPUT;\n")  # fmt: skip
    for language in ("c", "c++") if shutil.which("c++") else ("c",):
        command = ["cc", "-x", language, "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{get_include()}"]
        done = subprocess.run([*command, "-fsyntax-only", source], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------- log density, generated quantities


def test_numbers_are_those_of_the_model(client: SampledClient, model: ulam.StanModel) -> None:
    assert client.names(True, True) == model.param_names(include_tp=True, include_gq=True)
    x = np.linspace(-0.5, 0.75, client.n)
    for propto in (False, True):
        expected = model.log_density_gradient(x, propto=propto)
        found = client.gradient(x, propto=propto)
        assert found[0] == expected[0] and np.array_equal(found[1], expected[1])
    rng = client.rng(5)
    expected = model.param_constrain(x, include_tp=True, include_gq=True, rng=model.new_rng(5))
    assert np.array_equal(client.constrain(x, True, True, rng), expected)
    with pytest.raises(ClientError, match=r"^sigma of 148\.4\d* \(in '.*levels.stan', line 8, column 20\)"):
        client.density(np.array([0.0, 5.0, *[0.0] * 6]))


def test_native_handle(client: SampledClient, model: ulam.StanModel) -> None:
    x, gradient, lp = np.linspace(0.5, -0.25, client.n), np.empty(client.n), ctypes.c_double()
    for jacobian in (True, False):
        function, user = client.native_handle(jacobian)
        arguments = (gradient.ctypes.data, ctypes.addressof(lp), user)
        assert function(client.n, x.ctypes.data, *arguments) == 0
        expected = model.log_density_gradient(x, jacobian=jacobian)
        assert lp.value == expected[0] and np.array_equal(gradient, expected[1])
        assert function(client.n + 1, x.ctypes.data, *arguments) == CONSTANTS["ULAM_POINT_WRONG_SIZE"]
        far = np.array([0.0, 5.0, *[0.0] * 6])
        assert function(client.n, far.ctypes.data, *arguments) == CONSTANTS["ULAM_POINT_REJECTED"]
    native = client.library.ulam_native_handle
    with client.message() as error:
        assert native(client.model, True, None, ctypes.addressof(lp), error) == -1
        assert client._take(error) == "function must not be NULL"  # pyright: ignore[reportPrivateUsage]


def test_sixteen_threads(library: Path, model: ulam.StanModel) -> None:
    client = SampledClient(library, DATA, SEED)  # of which no unit is bound yet
    points = np.random.default_rng(3).normal(size=(16, client.n)) / 2
    together = threading.Barrier(16)

    def work(k: int) -> tuple[list[float], Any]:
        together.wait()
        values = [client.gradient(points[(k + i) % 16])[0] for i in range(16)]
        return values, client.sample(chains=1, warmup=20, draws=5, seed=k, threads=1)["values"]

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(work, range(16)))
    expected = [model.log_density_gradient(point)[0] for point in points]
    for k, (values, draws) in enumerate(found):
        assert values == [expected[(k + i) % 16] for i in range(16)]
        fit = model.sample(chains=1, warmup=20, draws=5, seed=k, progress=False)
        assert np.array_equal(draws, fit.values, equal_nan=True)
    client.close()


# ---------------------------------------------------------------- sampling

OPTIONS = {
    "defaults": {},
    "dense": {"metric": "dense", "warmup": 300, "target_accept": 0.9, "adapt": {"window": 20, "gamma": 0.1}},
    "unit, hmc": {"metric": "unit", "sampler": "hmc", "integration_time": 1.5, "step_size_jitter": 0.25},
    "thin": {"thin": 3, "save_warmup": True, "warmup": 100, "draws": 50, "max_depth": 3},
    "no warmup": {"warmup": 0, "step_size": 0.125},
    "radius": {"init": 0.5, "draws": 10, "warmup": 10},
    "values": {"init": {"sigma": 1.5, "b": [[1, 2, 3], [4, 5, 6]]}, "draws": 10, "warmup": 10},
    "points": {"init": np.linspace(-0.5, 0.5, 16).reshape(2, 8), "draws": 10, "warmup": 10},
    "file": {"init": "init.json", "draws": 10, "warmup": 10},
    "large seed": {"seed": 2**40 + 3, "draws": 10, "warmup": 10},
}


def in_c(options: dict[str, Any]) -> dict[str, Any]:
    """The options of `StanModel.sample` as those of `ulam.h`."""
    import json

    found = dict(options)
    found |= found.pop("adapt", {})
    if (metric := found.get("metric")) is not None:
        found["metric"] = METRICS.index(metric)
    if "sampler" in found:
        found["sampler"] = CONSTANTS[f"ULAM_SAMPLE_{found['sampler'].upper()}"]
    match found.pop("init", None):
        case np.ndarray() as points:
            found["init_points"] = points
        case dict() as values:
            found["init"] = json.dumps(values).encode()
        case str() as path:
            found["init"] = path.encode()
        case None:
            pass
        case radius:
            found["init_radius"] = radius
    return found


@pytest.mark.parametrize("name", OPTIONS)
def test_draws_are_those_of_the_model(
    name: str, client: SampledClient, model: ulam.StanModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("init.json").write_text('{"mu": 0.25}')
    options = {"chains": 2, "warmup": 60, "draws": 40, "seed": 3, **OPTIONS[name]}
    found, fit = client.sample(**in_c(options)), model.sample(**options, progress=False)
    assert found["ended"] == 0
    kept = fit.settings.kept_warmup
    assert np.array_equal(found["values"][:, kept:], fit.values, equal_nan=True)
    assert np.array_equal(found["unconstrained"][:, kept:], fit.unconstrained)
    for k, statistic in enumerate(STATISTICS):
        assert np.array_equal(found["statistics"][:, kept:, k], fit.stats[statistic]), statistic
    if fit.warmup is not None:
        assert np.array_equal(found["unconstrained"][:, :kept], fit.warmup.unconstrained)
        assert np.array_equal(found["values"][:, :kept], fit.warmup.values, equal_nan=True)
    assert np.array_equal(found["step_sizes"], fit.step_size)
    assert fit.metric is None or np.array_equal(found["inv_metrics"], fit.metric)


def test_defaults_are_those_of_the_model() -> None:
    settings = SamplingSettings()
    expected: dict[str, Any] = {**asdict(settings), **asdict(settings.adapt)}
    expected |= {"metric": METRICS.index(settings.metric), "sampler": CONSTANTS["ULAM_SAMPLE_NUTS"], "init": None}
    expected |= {"size": ctypes.sizeof(Options), "step_size": 0, "threads": 0, "inv_metric": None, "init_points": None}
    expected["init_radius"] = float(settings.init)
    given = initialized(Options, "ULAM_SAMPLE_OPTIONS")
    assert {name: getattr(given, name) for name, _ in Options._fields_} == {
        name: expected[name] for name, _ in Options._fields_
    }


@pytest.mark.parametrize("threads", [1, 3])
def test_callback(threads: int, client: SampledClient) -> None:
    rows: dict[int, list[int]] = {1: [], 2: [], 3: []}
    means: list[float] = []

    def take(draw: Any) -> int:
        rows[draw.chain].append(draw.row)
        assert draw.is_warmup == (draw.row < 30)
        means.append(ctypes.c_double.from_address(draw.values).value)
        return 0

    options = {"chains": 3, "warmup": 30, "draws": 20, "save_warmup": 1, "threads": threads}
    found = client.sample(take, **options)
    assert rows == {chain: list(range(50)) for chain in (1, 2, 3)}
    assert sorted(means) == sorted(found["values"][..., 0].ravel())
    seen: list[int] = []
    assert client.sample(lambda draw: seen.append(draw.row) or len(seen) == 7, **options)["ended"] == 1
    assert len(seen) == 7


WRONG = {
    "chains must be at least 1, found 0": {"chains": 0},
    "draws must be at least 0, found -1": {"draws": -1, "rows": 5},
    "thin must be at least 1, found 0": {"thin": 0, "rows": 5},
    "max_depth must be from 1 to 60, found 61": {"max_depth": 61},
    "target_accept must be between 0 and 1, found 1": {"target_accept": 1.0},
    "step_size must be positive, found -1": {"step_size": -1.0},
    "step_size must be positive, found nan": {"step_size": float("nan")},
    "kappa must be positive, found inf": {"kappa": float("inf")},
    "metric must be from 0 to 2, found 3": {"metric": 3},
    "sampler must be from 0 to 1, found 2": {"sampler": 2},
    "size of the options must be ": {"size": 8},
    "rows must be at least 1000 for the draws of a chain, found 999": {"rows": 999},
    "init_points must be finite, found nan": {"init_points": np.full((4, 8), np.nan)},
    "chain 1: inv_metric must be finite and positive definite": {"inv_metric": np.full(8, -1.0)},
    "chain 1: initial values:1:2: not valid JSON": {"init": b"{"},
    "chain 1: initial values: no initial value is for a parameter": {"init": b'{"nu": 1}'},
    "chain 1: the radius of initial values must be a finite number": {"init_radius": -1.0},
    "chain 1: initialization failed at the initial values given: sigma of 400": {
        "init": b'{"mu": 0, "sigma": 400, "b": [[1, 2, 3], [4, 5, 6]]}'
    },
    "chain 1: sigma of 148.4": {"init_points": np.array([[0, 5, 0, 0, 0, 0, 0, 0]] * 4)},
}


@pytest.mark.parametrize("message", WRONG)
def test_errors_of_sampling(message: str, client: SampledClient) -> None:
    options = {"threads": 1, **WRONG[message]}
    with pytest.raises(ClientError, match="^" + re.escape(message)):
        client.sample(**options)


def test_nothing_to_sample_with(client: SampledClient) -> None:
    function = client.library.ulam_sample
    function.argtypes = [ctypes.c_void_p] * 4
    assert function(None, None, None, None) == -1
    assert function(client.model, None, None, None) == -1


@pytest.mark.parametrize("program", ["model {}", "generated quantities { real x = normal_rng(0, 1); }"])
def test_programs_without_parameters(program: str, tmp_path: Path) -> None:
    client = SampledClient(build(program, tmp_path / "nothing.so", opt_level=0))
    fit = ulam.StanModel(program, opt_level=0).sample(chains=2, draws=30, progress=False)
    assert np.array_equal(client.sample(chains=2, draws=30)["values"], fit.values)


# ---------------------------------------------------------------- without Python


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_program_in_c(library: Path, tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "examples" / "c" / "posterior.c"
    data = tmp_path / "data.json"
    data.write_text('{"N": 3, "y": [0.5, -1, 2.25]}')
    program = tmp_path / "posterior"
    subprocess.run(["cc", "-Wall", "-Werror", source, f"-I{get_include()}", library, f"-Wl,-rpath,{library.parent}",
                    "-o", program], check=True)  # fmt: skip
    done = subprocess.run([program, data], env={}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    fit = ulam.StanModel(PROGRAM, DATA, seed=1, opt_level=0).sample(seed=1, progress=False)
    rows = dict(line.split()[:2] for line in done.stdout.splitlines()[1:])
    found = {name: float(mean) for name, mean in rows.items() if name in fit.names}
    expected = {name: np.nanmean(fit.values[..., k]) for k, name in enumerate(fit.names) if name in found}
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-4) and len(found) == len(fit.names)
    wrong = subprocess.run([program, "nothing.json"], env={}, capture_output=True, text=True, timeout=60)
    assert wrong.returncode == 1 and "nothing.json" in wrong.stderr


# ---------------------------------------------------------------- building


def test_targets(tmp_path: Path) -> None:
    client = SampledClient(build("model {}", tmp_path / "any.so", target_cpu="generic", opt_level=0))
    assert "Processor: " in client.library.bs_model_info(client.model).decode()
    with pytest.raises(ArgumentError, match="no target 'z80'; there are native, generic"):
        build("model {}", tmp_path / "z80.so", target_cpu="z80")
    assert not (tmp_path / "z80.so").exists()


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.stan").write_text("model {}")
    command = ["build", "empty.stan", "--opt-level", "0"]
    assert main(command) == EXIT_OK
    assert capsys.readouterr().out == "empty_model.so\n"
    assert SampledClient(tmp_path / "empty_model.so").library.bs_name is not None
    for wrong, message in {
        ("--target-cpu", "z80"): "no target 'z80'; there are native, generic",
        ("-O4",): "opt_level=4 is for certain data",
        ("-o", "nowhere/x.so"): "the folder 'nowhere' does not exist",
    }.items():
        assert main([*command, *wrong]) != EXIT_OK
        assert message in capsys.readouterr().err
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(linkers, "find_spec", lambda name: None)
    assert main(command) == EXIT_FAILURE
    assert "there is no linker" in capsys.readouterr().err


def test_what_cannot_be_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match="opt_level=4 is for certain data"):
        build("model {}", opt_level=4)
    with pytest.raises(CompileError, match="undeclared|not declared|unknown"):
        build("model { target += x; }")
    with pytest.raises(OSError, match="nowhere"):
        build("model {}", tmp_path / "nowhere" / "model.so")
    monkeypatch.setattr(build_module, "archive_path", lambda: Path(os.devnull))
    with pytest.raises(BuildError, match="would need .*ulam_multiply.*, which neither ulam's C runtime nor"):
        build("parameters { matrix[2, 2] x; } model { target += sum(x * x); }", opt_level=0)
    assert os.listdir(tmp_path) == []


def test_large_programs_have_all_passes_of_a_level_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bool] = []

    class Seen(build_module.Compiler):
        def __init__(self, text: str, filename: str, options: Any) -> None:
            super().__init__(text, filename, options)
            found.append(options.may_have_few_passes)

    monkeypatch.setattr(build_module, "Compiler", Seen)
    for level in (None, 3):
        build("parameters { real x; } model { x ~ normal(0, 1); }", tmp_path / "x.so", cache=False, opt_level=level)
    assert found == [True, False]
