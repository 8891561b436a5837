"""`StanModel` on compiled programs: errors with their place, prints, data-only work, caches, data of every shape."""

from __future__ import annotations

import ctypes
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime import model as model_module
from ulam.runtime.cached_compiler import open_cache
from ulam.runtime.native import Rng


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ULAM_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


SHAPES = """
data {
  int N;
  array[N] int i;
  array[2, N] real a;
  vector[N] v;
  row_vector[N] r;
  matrix[2, N] m;
  array[2] matrix[N, 2] am;
  array[3] vector[N] av;
}
parameters { real x; }
model { x ~ normal(0, 1); }
generated quantities {
  real i_last = i[N];
  real a_12 = a[1, 2];
  real v_2 = v[2];
  real r_2 = r[2];
  real m_12 = m[1, 2];
  real am_231 = am[2, 3, 1];
  real av_32 = av[3, 2];
  array[2] matrix[N, 2] out = am;
  array[2, N] real out2 = a;
}
"""


def test_every_shape_arrives_as_written() -> None:
    n = 3
    generator = np.random.default_rng(1)
    data = {
        "N": n,
        "i": [5, 6, 7],
        "a": generator.normal(size=(2, n)),
        "v": generator.normal(size=n),
        "r": generator.normal(size=n),
        "m": generator.normal(size=(2, n)),
        "am": generator.normal(size=(2, n, 2)),
        "av": generator.normal(size=(3, n)).tolist(),
    }
    model = ulam.StanModel(SHAPES, data)
    names = model.param_names(include_gq=True)
    values = model.param_constrain(np.zeros(1), include_gq=True, rng=model.new_rng(1))
    got = dict(zip(names, values, strict=True))
    assert got["i_last"] == 7
    assert got["a_12"] == data["a"][0, 1]
    assert got["v_2"] == data["v"][1] and got["r_2"] == data["r"][1]
    assert got["m_12"] == data["m"][0, 1]
    assert got["am_231"] == data["am"][1, 2, 0]
    assert got["av_32"] == data["av"][2][1]
    for index in np.ndindex(2, n, 2):
        assert got[".".join(["out", *(str(k + 1) for k in index)])] == data["am"][index]
    for index in np.ndindex(2, n):
        assert got[".".join(["out2", *(str(k + 1) for k in index)])] == data["a"][index]


def test_sizes_from_transformed_data() -> None:
    program = """
    data { int N; array[N] int y; }
    transformed data { int K = sum(y); array[0] real nothing; }
    parameters { vector[K] b; simplex[K + 1] p; }
    model { b ~ normal(0, 1); }
    """
    model = ulam.StanModel(program, {"N": 2, "y": [1, 2]})
    assert model.param_unc_names() == ["b.1", "b.2", "b.3", "p.1", "p.2", "p.3"]
    assert model.param_num() == 7
    assert ulam.StanModel(program, {"N": 0}).param_num() == 1


def test_data_errors() -> None:
    program = (
        "data {\n  int<lower=1> N;\n  vector<upper=10>[N] y;\n}\nparameters { real x; }\nmodel { y ~ normal(x, 1); }\n"
    )
    with pytest.raises(ulam.UlamError, match=r"'N' is 0.*\(in 'model.stan', line 2, column"):
        ulam.StanModel(program, {"N": 0, "y": []})
    with pytest.raises(ulam.UlamError, match=r"y\[2\] is 11.*\(in 'model.stan', line 3, column"):
        ulam.StanModel(program, {"N": 2, "y": [1, 11]})
    with pytest.raises(ulam.DataError, match="'y' has a wrong size.*-1"):
        ulam.StanModel(program.replace("<lower=1>", ""), {"N": -1, "y": []})
    with pytest.raises(ulam.DataError, match="'N' does not exist"):
        ulam.StanModel(program)


def test_compile_errors() -> None:
    with pytest.raises(ulam.CompileError, match="model.stan:2:3: error: ") as caught:
        ulam.StanModel("model {\n  y = 1;\n}\n")
    assert len(caught.value.diagnostics) == 1
    with pytest.raises(ulam.CompileError):
        ulam.StanModel("not a program;")


def test_domain_error_names_function_and_place() -> None:
    program = "parameters {\n  real s;\n}\nmodel {\n  1.5 ~ normal(0, s);\n}\n"
    model = ulam.StanModel(program)
    with pytest.raises(ulam.Rejection, match=r"normal_lpdf: .*-2.*\(in 'model.stan', line 5, column") as caught:
        model.log_density_gradient(np.array([-2.0]))
    assert caught.value.line == 5


def test_index_error_is_fatal() -> None:
    program = "data { int k; } parameters { vector[3] x; }\nmodel { target += x[k]; }\n"
    assert ulam.StanModel(program, {"k": 2}).log_density(np.arange(3.0)) == 1
    model = ulam.StanModel(program, {"k": 4})
    for _ in range(2):  # what depends on data only fails when bound, and is raised by every evaluation
        with pytest.raises(ulam.FatalError, match="4"):
            model.log_density(np.arange(3.0))
    with pytest.raises(ulam.FatalError):
        model.optimize()
    np.testing.assert_array_equal(model.param_constrain(np.arange(3.0)), [0, 1, 2])


def test_reject_carries_its_text() -> None:
    program = """parameters { real x; }
    model {
      if (x > 1) reject("x = ", x, " is too large");
      if (x < -1) fatal_error("x is far too small");
      x ~ normal(0, 1);
    }
    """
    model = ulam.StanModel(program)
    assert model.log_density(np.array([0.5])) == -0.125
    with pytest.raises(ulam.Rejection, match="x = 2 is too large"):
        model.log_density(np.array([2.0]))
    with pytest.raises(ulam.FatalError, match="x is far too small"):
        model.log_density_gradient(np.array([-2.0]))
    always = ulam.StanModel('parameters { real x; }\nmodel { reject("never"); }\n')
    with pytest.raises(ulam.Rejection, match="never"):
        always.log_density(np.zeros(1))
    with pytest.raises(ulam.InitializationError, match="after 100 attempts:\n  100 of 100: never"):
        always.optimize()


def test_prints(capfd: pytest.CaptureFixture[str]) -> None:
    program = 'parameters { real x; }\nmodel { print("x is ", x); x ~ normal(0, 1); }\n'
    ulam.StanModel(program).log_density(np.array([0.5]))
    assert capfd.readouterr().out == "x is 0.5\n"
    ulam.StanModel(program, capture_stan_prints=False).log_density(np.array([0.25]))
    assert capfd.readouterr().out == "x is 0.25\n"


def test_random_transformed_data_follow_the_seed() -> None:
    program = """transformed data { real c = normal_rng(0, 1); }
    parameters { real x; }
    model { x ~ normal(c, 1); }
    generated quantities { real c_out = c; real z = normal_rng(x, 1); }
    """

    def constant(seed: int) -> float:
        model = ulam.StanModel(program, seed=seed)
        return model.param_constrain(np.zeros(1), include_gq=True, rng=model.new_rng(1))[1]

    assert constant(1) == constant(1) != constant(2)
    model = ulam.StanModel(program)
    rng = model.new_rng(3)
    first, second = (model.param_constrain(np.zeros(1), include_gq=True, rng=rng)[2] for _ in range(2))
    assert first != second
    assert model.param_constrain(np.zeros(1), include_gq=True, rng=model.new_rng(3))[2] == first


def test_two_models_in_two_threads() -> None:
    programs = [f"parameters {{ vector[20] x; }}\nmodel {{ x ~ normal({k}, {k} + 1); }}\n" for k in range(3)]
    models = [ulam.StanModel(program) for program in programs]
    theta = np.linspace(-1, 1, 20)
    expected = [model.log_density_gradient(theta) for model in models]
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(500):
            value, gradient = models[k].log_density_gradient(theta)
            if value != expected[k][0] or not np.array_equal(gradient, expected[k][1]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k % 3,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_first_use_from_many_threads() -> None:
    model = ulam.StanModel("parameters { real x; }\nmodel { x ~ normal(0, 2); }\n")
    values: list[float] = []
    threads = [threading.Thread(target=lambda: values.append(model.log_density(np.ones(1)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == [-0.125] * 8


def test_pickled_models_work_elsewhere() -> None:
    data = {"N": 3, "y": np.array([1.0, 2.0, 4.0]), "unused": object}
    program = "data { int N; vector[N] y; }\nparameters { real m; }\nmodel { y ~ normal(m, 1); }\n"
    model = ulam.StanModel(program, data)
    again = pickle.loads(pickle.dumps(model))
    assert again.log_density(np.zeros(1)) == model.log_density(np.zeros(1)) == -10.5


def test_c_arrays_and_pointers() -> None:
    model = ulam.StanModel("parameters { vector[3] x; }\nmodel { x ~ normal(0, 1); }\n")
    theta = (ctypes.c_double * 3)(1, 2, 3)
    out = (ctypes.c_double * 3)()
    pointer = ctypes.cast(theta, ctypes.POINTER(ctypes.c_double))
    assert model.log_density(theta) == model.log_density(pointer) == -7  # pyright: ignore[reportArgumentType]
    model.log_density_gradient(pointer, out=out)  # pyright: ignore[reportArgumentType]
    assert list(out) == [-1, -2, -3]
    with pytest.raises(ctypes.ArgumentError):
        model.log_density((ctypes.c_int * 3)(1, 2, 3))  # pyright: ignore[reportArgumentType]


def test_levels_agree() -> None:
    program = (
        "data { int N; vector[N] y; }\nparameters { real m; real<lower=0> s; }\nmodel { y ~ student_t(4, m, s); }\n"
    )
    data = {"N": 50, "y": np.linspace(-3, 5, 50)}
    theta = np.array([0.3, -0.2])
    reference, gradient = ulam.StanModel(program, data, opt_level=0).log_density_gradient(theta)
    for level in (1, 2, 3, 4):
        value, other = ulam.StanModel(program, data, opt_level=level).log_density_gradient(theta)
        assert value == (reference if level < 3 else pytest.approx(reference, rel=1e-13))
        np.testing.assert_allclose(other, gradient, rtol=1e-11)


@pytest.mark.ordinary_runtime("addresses are not used again, so the table of blocks grows")
def test_memory_stays_flat() -> None:
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("needs /proc")
    program = "parameters { vector[50] x; }\nmodel { for (n in 1:50) { x[n] ~ normal(sin(x[51 - n]), 1); } }\n"
    model = ulam.StanModel(program)
    theta = np.linspace(-1, 1, 50)

    def resident() -> int:
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(2000):
        model.log_density_gradient(theta)
    before = resident()
    for _ in range(50_000):
        model.log_density_gradient(theta)
    assert resident() - before < 1 << 20


# ---------------------------------------------------------------- cache


def test_cache_follows_includes_and_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ULAM_CACHE_DIR", str(tmp_path / "cache"))
    included, main = tmp_path / "prior.stan", tmp_path / "main.stan"
    main.write_text("parameters { real x; }\nmodel {\n#include prior.stan\n}\n")
    included.write_text("x ~ normal(0, 1);")
    first = ulam.StanModel(main).log_density(np.ones(1))
    entries = set(os.listdir(tmp_path / "cache"))
    assert ulam.StanModel(main).log_density(np.ones(1)) == first == -0.5
    assert set(os.listdir(tmp_path / "cache")) == entries
    included.write_text("x ~ normal(0, 2);")
    assert ulam.StanModel(main).log_density(np.ones(1)) == -0.125
    ulam.StanModel(main, opt_level=0).log_density(np.ones(1))
    # Units are there by the text and by what they are compiled from: for that, an include has not changed `setup`.
    assert len(os.listdir(tmp_path / "cache")) == 3 * len(entries) - 1


def test_damaged_entries_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("ULAM_CACHE_DIR", str(folder))
    program = "parameters { real x; }\nmodel { x ~ normal(0, 1); }\n"
    assert ulam.StanModel(program).log_density(np.ones(1)) == -0.5
    for name in os.listdir(folder):
        content = bytearray((folder / name).read_bytes())
        content[len(content) // 2] ^= 255
        (folder / name).write_bytes(content)
    assert ulam.StanModel(program).log_density(np.ones(1)) == -0.5


def test_untrusted_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("ULAM_CACHE_DIR", str(folder))
    with pytest.warns(RuntimeWarning, match="not cached"):
        assert open_cache() is None
    with pytest.warns(RuntimeWarning):
        ulam.StanModel("parameters { real x; }\nmodel { }\n").log_density(np.ones(1))
    assert not os.listdir(folder)


@pytest.mark.parametrize(
    ("body", "draws"),
    [
        ("real t = normal_rng(0, 1);", True),
        ("real t = mine_rng();", True),
        ("real t = not_rng(2);", False),  # as a name only
        ("", False),
    ],
)
def test_a_generator_is_made_for_transformed_data_that_draw(
    body: str, draws: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for what its text looks like: NumPy's generators take a part of every cached start."""
    made: list[int] = []

    class Counted(Rng):
        def __init__(self, seed: int, stream: int = 0) -> None:
            made.append(seed)
            super().__init__(seed, stream)

    monkeypatch.setattr(model_module, "Rng", Counted)
    program = (
        "functions { real mine_rng() { return uniform_rng(0, 1); } real not_rng(real x) { return x; } }"
        f"transformed data {{ {body} }} parameters {{ real mu; }} model {{ mu ~ normal(0, 1); }}"
        "generated quantities { real y = normal_rng(mu, 1); }"
    )
    for _ in range(2):  # compiled, and from the cache
        ulam.StanModel(program, seed=7, opt_level=0)
    assert made == [7] * (2 * draws)
