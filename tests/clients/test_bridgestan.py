"""The real `bridgestan.StanModel` with libraries of ulam: every method against `ulam.StanModel`."""

from __future__ import annotations

import contextlib
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bridgestan_libraries import WAYS, library_for

import ulam

bridgestan: Any = pytest.importorskip("bridgestan")

PROGRAM = """
data { int<lower=0> N; array[N] vector[2] y; }
transformed data { real z = normal_rng(0, 1); }
parameters { real mu; real<lower=0> sigma; array[2] simplex[3] s; array[2, 3] real a; cov_matrix[2] C; }
transformed parameters { array[2] vector[2] p; for (i in 1:2) p[i] = [mu * i, sigma]'; }
model {
  for (n in 1:N) y[n] ~ normal(mu, sigma);
  for (i in 1:2) { s[i] ~ dirichlet([1, 2, 3]'); a[i] ~ std_normal(); }
  C ~ wishart(4, identity_matrix(2));
  print("mu = ", mu);
}
generated quantities { real g = normal_rng(mu, sigma); array[2] int q = {poisson_rng(3), poisson_rng(5)}; real w = z; }
"""
DATA: dict[str, Any] = {"N": 2, "y": [[1, 2], [3, 4.5]]}
SEED = 5
FLAGS = [(False, False), (True, False), (False, True), (True, True)]


@pytest.fixture(scope="module")
def model() -> ulam.StanModel:
    return ulam.StanModel(PROGRAM, DATA, seed=SEED)


@pytest.fixture(scope="module", params=WAYS)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return library_for(request.param, PROGRAM, DATA, tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def client(library: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of versions, of libraries that are open
        return bridgestan.StanModel(library, DATA, seed=SEED)


@pytest.fixture
def x(model: ulam.StanModel) -> Any:
    return np.random.default_rng(3).normal(size=model.param_unc_num())


def test_names_and_sizes(client: Any, model: ulam.StanModel, library: str) -> None:
    assert client.name().endswith("_model") and model.name().endswith("_model")
    assert "STAN_THREADS=true" in client.model_info()
    assert client.model_version() == tuple(map(int, bridgestan.__version__.split(".")))
    assert client.param_unc_num() == model.param_unc_num()
    assert client.param_unc_names() == model.param_unc_names()
    for tp, gq in FLAGS:
        options = {"include_tp": tp, "include_gq": gq}
        assert client.param_num(**options) == model.param_num(**options)
        assert client.param_names(**options) == model.param_names(**options)


@pytest.mark.parametrize("propto,jacobian", FLAGS)
def test_log_density(client: Any, model: ulam.StanModel, x: Any, propto: bool, jacobian: bool) -> None:
    options: dict[str, Any] = {"propto": propto, "jacobian": jacobian}
    close(client.log_density(x, **options), model.log_density(x, **options))
    for found, expected in (
        (client.log_density_gradient(x, **options), model.log_density_gradient(x, **options)),
        (client.log_density_hessian(x, **options), model.log_density_hessian(x, **options)),
        (
            client.log_density_hessian_vector_product(x, x, **options),
            model.log_density_hessian_vector_product(x, x, **options),
        ),
    ):
        for one, other in zip(found, expected, strict=True):
            close(one, other)


def close(found: Any, expected: Any) -> None:
    """Built code may be for another processor."""
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_transforms(client: Any, model: ulam.StanModel, x: Any) -> None:
    for tp, gq in FLAGS:
        options: dict[str, Any] = {"include_tp": tp, "include_gq": gq}
        found = client.param_constrain(x, rng=client.new_rng(8) if gq else None, **options)
        close(found, model.param_constrain(x, rng=model.new_rng(8) if gq else None, **options))
    values = client.param_constrain(x)
    close(client.param_unconstrain(values), x)
    by_name = {"mu": 1, "sigma": 2, "s": [[0.2, 0.3, 0.5]] * 2, "a": [[1, 2, 3], [4, 5, 6]], "C": [[2, 1], [1, 3]]}
    close(client.param_unconstrain_json(by_name), model.param_unconstrain_json(by_name))
    close(client.param_unconstrain_json(client_json(by_name)), model.param_unconstrain_json(by_name))
    with pytest.raises(ValueError, match="rng"):
        client.param_constrain(x, include_gq=True)


def client_json(values: dict[str, Any]) -> str:
    import json

    return json.dumps(values)


def test_initial_values(client: Any, model: ulam.StanModel) -> None:
    drawn = client.param_initialize(client.new_rng(4))
    assert (drawn == np.random.Generator(model.new_rng(4).generator).uniform(-2, 2, drawn.size)).all()
    given = client.param_initialize(client.new_rng(4), {"sigma": 3.0}, init_radius=0.1)
    close(client.param_constrain(given)[1], 3)
    assert np.abs(np.delete(given, 1)).max() < 0.1
    with pytest.raises(RuntimeError, match="initial value of 'sigma' is not in its support"):
        client.param_initialize(client.new_rng(4), {"sigma": -3.0})


def test_data_of_all_forms(library: str, tmp_path: Path) -> None:
    text = '{"N": 1, "y": [[0.5, 1.5]]}'
    path = tmp_path / "some.json"
    path.write_text(text)
    values = [
        bridgestan.StanModel(library, data, warn=False).log_density(np.full(15, 0.1))
        for data in (text, path, {"N": 1, "y": np.array([[0.5, 1.5]])})
    ]
    assert len(set(values)) == 1


def test_errors(client: Any, library: str, x: Any) -> None:
    for data, text in (
        (None, "data: variable 'N' does not exist"),
        ({"N": -1}, "data: variable 'N' is -1, but must be greater than or equal to 0"),
        ({"N": 1, "y": [1, 2]}, "mismatch in number dimensions declared and found"),
        ("{", "not valid JSON"),
    ):
        with pytest.raises(RuntimeError) as raised:
            bridgestan.StanModel(library, data, warn=False)
        assert text in str(raised.value) and "Traceback" not in str(raised.value)
    with pytest.raises(RuntimeError, match=r"normal_lpdf: mu is inf, but must be finite! \(in '.*', line 7, column "):
        client.log_density(x + np.inf)
    with pytest.raises(RuntimeError, match="sigma is -1, but must be greater than or equal to 0"):
        values = client.param_constrain(x)
        values[1] = -1
        client.param_unconstrain(values)
    with pytest.raises(RuntimeError, match="variable 'mu' does not exist"):
        client.param_unconstrain_json({"sigma": 1})


def test_printed_lines(client: Any, x: Any) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        client.log_density(x)
    assert shown.getvalue() == f"mu = {x[0]:g}\n"
