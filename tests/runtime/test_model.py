"""`StanModel` on a program whose units are written in C: BridgeStan's interface, errors, threads, pickling."""

from __future__ import annotations

import ctypes
import inspect
import itertools
import json
import math
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import program_in_c as in_c
import pytest

from ulam.runtime import model as model_module
from ulam.runtime import program as program_module
from ulam.runtime.errors import ArgumentError, DataError, FatalError, InitializationError, Rejection
from ulam.runtime.model import StanModel
from ulam.runtime.native import Context, Rng

THETA = np.array([1.0, 0.3, 0.1, 0.2, 0.3, -0.4, 0.5, 0.6])


@pytest.fixture(autouse=True)
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[in_c.ProgramInC]:
    program = in_c.ProgramInC()
    monkeypatch.setattr(model_module, "_compiler", lambda *_: program)
    monkeypatch.setattr(program_module, "load_object", in_c.Loaded)
    yield program


@pytest.fixture
def model(program: in_c.ProgramInC) -> StanModel:
    return StanModel("a program\n", in_c.DATA)


def expected(theta: np.ndarray, propto: bool, jacobian: bool) -> float:
    value = -0.5 * (theta[0] - in_c.SUM) ** 2 - math.exp(theta[1]) - 0.5 * theta[2:] @ theta[2:]
    return value + (theta[1] if jacobian else 0) + (0 if propto else in_c.FULL_CONSTANT)


def test_names_and_sizes(model: StanModel) -> None:
    assert model.name() == "c_model"
    assert model.param_num() == 8
    assert model.param_unc_num() == 8
    assert model.param_num(include_tp=True) == 9
    assert model.param_num(include_gq=True) == 13
    assert model.param_num(include_tp=True, include_gq=True) == 14
    assert model.param_names() == ["mu", "sigma", "a.1.1", "a.2.1", "a.1.2", "a.2.2", "a.1.3", "a.2.3"]
    assert model.param_unc_names() == ["mu", "sigma", "a.1.1", "a.1.2", "a.1.3", "a.2.1", "a.2.2", "a.2.3"]
    assert model.param_names(include_tp=True)[8:] == ["v"]
    assert model.param_names(include_gq=True)[8:] == ["m.1.1", "m.2.1", "m.1.2", "m.2.2", "u"]
    assert "llvmlite" in model.model_info()


def test_units_are_compiled_when_used(program: in_c.ProgramInC, model: StanModel) -> None:
    assert program.asked == ["setup"]
    model.log_density_gradient(THETA)
    model.log_density_gradient(THETA)
    assert program.asked == ["setup", "gradient_propto"]
    model.log_density(THETA, propto=False)
    assert program.asked == ["setup", "gradient_propto", "value_full"]
    assert model.compile_seconds > 0


@pytest.mark.parametrize("propto", [True, False])
@pytest.mark.parametrize("jacobian", [True, False])
def test_log_density_and_derivatives(model: StanModel, propto: bool, jacobian: bool) -> None:
    value = expected(THETA, propto, jacobian)
    assert model.log_density(THETA, propto=propto, jacobian=jacobian) == pytest.approx(value, rel=1e-14)
    sigma = math.exp(THETA[1])
    gradient = np.concatenate([[in_c.SUM - THETA[0], -sigma + jacobian], -THETA[2:]])
    got, got_gradient = model.log_density_gradient(THETA, propto=propto, jacobian=jacobian)
    assert got == pytest.approx(value, rel=1e-14)
    np.testing.assert_allclose(got_gradient, gradient, rtol=1e-14)
    hessian = np.diag(np.concatenate([[-1, -sigma], np.full(6, -1)]))
    got, got_gradient, got_hessian = model.log_density_hessian(THETA, propto=propto, jacobian=jacobian)
    np.testing.assert_allclose(got_gradient, gradient, rtol=1e-14)
    np.testing.assert_allclose(got_hessian, hessian, rtol=1e-14)
    direction = np.arange(8.0)
    got, product = model.log_density_hessian_vector_product(THETA, direction, propto=propto, jacobian=jacobian)
    assert got == pytest.approx(value, rel=1e-14)
    np.testing.assert_allclose(product, hessian @ direction, rtol=1e-14)
    _, zero = model.log_density_hessian_vector_product(THETA, np.zeros(8))
    np.testing.assert_array_equal(zero, 0)


def test_results_go_to_out(model: StanModel) -> None:
    out, square = np.zeros(8), np.zeros((8, 8))
    first = model.log_density_gradient(THETA)[1]
    assert model.log_density_gradient(THETA, out=out)[1] is out
    np.testing.assert_array_equal(out, first)
    second = model.log_density_gradient(THETA + 1)[1]
    assert second is not first and not np.array_equal(first, second)
    _, gradient, hessian = model.log_density_hessian(THETA, out_grad=out, out_hess=square)
    assert gradient is out and hessian is square
    assert model.param_constrain(THETA, out=out) is out


def test_methods_without_python_code_are_called_as_any(model: StanModel) -> None:
    """They have the signature of those in Python; names that nobody interned, and wrong ones, are read."""
    assert str(inspect.signature(model.log_density)) == "(theta_unc, *, propto=True, jacobian=True, time_limit=None)"
    assert list(inspect.signature(StanModel.log_density_gradient).parameters) == [
        "self", "theta_unc", "propto", "jacobian", "out", "time_limit",
    ]  # fmt: skip
    assert (StanModel.log_density.__doc__ or "").startswith("The log density of an unconstrained point.")
    for propto, jacobian in itertools.product((True, False), repeat=2):
        value, gradient = model.log_density_gradient(THETA, propto=propto, jacobian=jacobian)
        named = {"".join(["pro", "pto"]): propto, "".join(["jaco", "bian"]): jacobian}
        again, other = model.log_density_gradient(theta_unc=list(THETA), **named)  # pyright: ignore
        assert value == again == pytest.approx(model.log_density(THETA, **named), rel=1e-14)  # pyright: ignore
        np.testing.assert_array_equal(gradient, other)
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        ((), {}, "theta_unc"), ((THETA, THETA), {}, "positional"), ((THETA,), {"order": 1}, "order"),
        ((THETA,), {"propto": []}, "unhashable"),
    ]  # fmt: skip
    for arguments, keywords, message in wrong:
        with pytest.raises(TypeError, match=message):
            model.log_density_gradient(*arguments, **keywords)


def test_wrong_shapes(model: StanModel) -> None:
    for wrong in (np.zeros(7), np.zeros(9), np.zeros((8, 1)), np.float64(1), "text"):
        with pytest.raises(ArgumentError):
            model.log_density_gradient(wrong)  # pyright: ignore[reportArgumentType]
        with pytest.raises(ctypes.ArgumentError):
            model.log_density(wrong)  # pyright: ignore[reportArgumentType]
    for wrong in (np.zeros(7), np.zeros(8, dtype=np.float32)):
        with pytest.raises(ValueError, match="output array"):
            model.log_density_gradient(THETA, out=wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="same size"):
        model.param_constrain(THETA, out=np.zeros(9))
    with pytest.raises(ctypes.ArgumentError):
        model.param_unconstrain(np.zeros(8), out=np.zeros(9))
    assert model.log_density([1, 0, 0, 0, 0, 0, 0, 0]) == model.log_density(np.eye(8)[0])  # pyright: ignore


def test_constrain(model: StanModel) -> None:
    constrained = model.param_constrain(THETA)
    np.testing.assert_allclose(constrained, [1, math.exp(0.3), 0.1, -0.4, 0.2, 0.5, 0.3, 0.6])
    np.testing.assert_allclose(model.param_unconstrain(constrained), THETA)
    full = model.param_constrain(THETA, include_tp=True, include_gq=True, rng=model.new_rng(7))
    np.testing.assert_allclose(full[:8], constrained)
    np.testing.assert_allclose(full[8:13], [math.exp(0.6), 1, 3, 2, 4])
    assert full[13] == np.random.Generator(Rng(7).generator).random()
    with pytest.raises(ValueError, match="must specify rng"):
        model.param_constrain(THETA, include_gq=True)


def test_unconstrain_json(model: StanModel) -> None:
    values = {"mu": 1, "sigma": math.exp(0.3), "a": [[0.1, 0.2, 0.3], [-0.4, 0.5, 0.6]], "unused": "x"}
    np.testing.assert_allclose(model.param_unconstrain_json(values), THETA)
    np.testing.assert_allclose(model.param_unconstrain_json(json.dumps(values)), THETA)
    with pytest.raises(DataError) as caught:
        model.param_unconstrain_json({"mu": 1, "sigm": 2, "a": [[1, 2], [3, 4]]})
    assert len(caught.value.problems) == 2
    assert "did you mean 'sigm'" in caught.value.problems[0]
    with pytest.raises(Rejection, match="sigma is -1, but must be greater than or equal to 0"):
        model.param_unconstrain_json({**values, "sigma": -1})


def test_errors_name_function_value_and_place(model: StanModel) -> None:
    theta = THETA.copy()
    theta[0] = 200.5
    with pytest.raises(RuntimeError) as caught:
        model.log_density(theta)
    assert str(caught.value) == "normal_lpdf: mu is 200.5, but must be at most 100 (in 'c.stan', line 4, column 3)"
    assert isinstance(caught.value, Rejection) and caught.value.values[0] == 200.5
    theta[0] = -200
    with pytest.raises(FatalError, match="index out of range"):
        model.log_density_gradient(theta)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.line == 4


def test_data_constraint(program: in_c.ProgramInC) -> None:
    with pytest.raises(RuntimeError, match=r"z\[2\] is 3, but must be less than or equal to 1 \(in 'c.stan', line 1"):
        StanModel("a program\n", {**in_c.DATA, "z": [0, 3, 0]})


def test_all_data_problems_at_once(program: in_c.ProgramInC) -> None:
    with pytest.raises(DataError) as caught:
        StanModel("a program\n", {"N": 3, "z": [0, 1.5, 1], "x": [[1, 2, 3]], "S": 1})
    problems = caught.value.problems
    assert len(problems) == 2  # sizes are not trusted after a bad int variable
    assert "'z'" in problems[0] and "z[2] is 1.5" in problems[0]
    assert "'s' does not exist" in problems[1] and "did you mean 'S'?" in problems[1]


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere.stan"):
        StanModel(tmp_path / "nowhere.stan")
    with pytest.raises(FileNotFoundError, match="nowhere.json"):
        StanModel("a program\n", tmp_path / "nowhere.json")


def test_pickle(model: StanModel) -> None:
    again = pickle.loads(pickle.dumps(model))
    assert again.log_density(THETA) == model.log_density(THETA)
    assert again.seed == model.seed


def test_threads_share_a_model(model: StanModel) -> None:
    failures: list[object] = []

    def work(k: int) -> None:
        for i in range(300):
            theta = THETA + k + i / 1000
            value, gradient = model.log_density_gradient(theta)
            if value != pytest.approx(expected(theta, True, True), rel=1e-13) or gradient[0] != in_c.SUM - theta[0]:
                failures.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_an_error_gives_the_workspace_back(model: StanModel, monkeypatch: pytest.MonkeyPatch) -> None:
    model.log_density(THETA)
    made: list[Context] = []
    monkeypatch.setattr(model_module, "Context", lambda: made.append(Context()) or made[-1])
    for _ in range(5):
        with pytest.raises(Rejection):
            model.log_density(np.full(8, 200.0))
    assert not made


# ---------------------------------------------------------------- optimize


def test_optimize(model: StanModel) -> None:
    fit = model.optimize(jacobian=True, seed=1, tol_rel_obj=0)
    assert fit.converged and fit.status.startswith("converged")
    np.testing.assert_allclose(fit.unconstrained, [in_c.SUM, 0, 0, 0, 0, 0, 0, 0], atol=1e-5)
    assert fit.log_density == pytest.approx(-1)
    assert fit["sigma"] == pytest.approx(1, abs=1e-5)
    assert fit["a"].shape == (2, 3)
    np.testing.assert_allclose(fit["m"], [[1, 2], [3, 4]])
    assert fit.n_gradients >= fit.n_iterations > 0
    with pytest.raises(KeyError, match="sigma"):
        fit["tau"]
    text = str(fit)
    assert "a[2,3]" in text and "iterations" in text


def test_optimize_is_reproducible(model: StanModel) -> None:
    first, second = (model.optimize(jacobian=True, seed=5) for _ in range(2))
    np.testing.assert_array_equal(first.unconstrained, second.unconstrained)
    other = model.optimize(jacobian=True, seed=6)
    assert not np.array_equal(first.initial, other.initial)
    assert (np.abs(first.initial) < 2).all()


def test_initial_values(model: StanModel) -> None:
    np.testing.assert_array_equal(model.optimize(init=THETA, iter=1).initial, THETA)
    np.testing.assert_array_equal(model.optimize(init=0, iter=1).initial, 0)
    whole = {"mu": 1, "sigma": math.exp(0.3), "a": [[0.1, 0.2, 0.3], [-0.4, 0.5, 0.6]]}
    np.testing.assert_allclose(model.optimize(init=whole, iter=1).initial, THETA)
    part = model.optimize(init={"sigma": 2.0}, iter=1, seed=3).initial
    drawn = model.optimize(iter=1, seed=3).initial
    assert part[1] == pytest.approx(math.log(2))
    np.testing.assert_array_equal(np.delete(part, 1), np.delete(drawn, 1))
    with pytest.raises(DataError, match="no initial value"):
        model.optimize(init={"tau": 1})
    with pytest.raises(ArgumentError, match="init"):
        model.optimize(init=[1.0])
    with pytest.raises(InitializationError, match="at most 100"):
        model.optimize(init={"mu": 101, "sigma": 1, "a": [[0, 0, 0]] * 2})
    with pytest.raises(FatalError):
        model.optimize(init={"mu": -101})


def test_optimize_arguments(model: StanModel) -> None:
    with pytest.raises(ValueError, match="lbgfs"):
        model.optimize("lbgfs")
    with pytest.raises(TypeError, match="tolerance"):
        model.optimize(tolerance=1)


def test_csv(model: StanModel, tmp_path: Path) -> None:
    fit = model.optimize(jacobian=True, save_iterations=True)
    fit.to_csv(tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    body = [line for line in lines if not line.startswith("#")]
    assert body[0].split(",")[:4] == ["lp__", "converged__", "mu", "sigma"]
    assert len(body) == fit.n_iterations + 2
    last = [float(cell) for cell in body[-1].split(",")]
    assert last[0] == fit.log_density and last[1] == fit.code
    np.testing.assert_array_equal(last[2:], fit.constrained)
    assert lines[-1] == f"# {fit.message}"


@pytest.mark.parametrize(
    ("options", "told"),
    [({"data": 3}, "data must be a path, JSON text or a mapping, found int"), ({"seed": "x"}, "found 'x'"),
     ({"seed": -1}, "seed must be an int that is not negative, found -1"), ({"seed": 1.5}, "found 1.5"),
     ({"time_limit": -1}, "time_limit must be a positive number of seconds, found -1")],
)  # fmt: skip
def test_options_of_wrong_kinds(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        StanModel("parameters { real x; } model { x ~ normal(0, 1); }", **options)
