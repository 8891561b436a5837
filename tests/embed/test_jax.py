"""Log densities in JAX: the same bits, all that JAX makes of functions, errors, lifetimes, threads."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam

jax: Any = pytest.importorskip("jax")

sys.path.insert(0, str(Path(__file__).parent))
from models import PROGRAMS, expected, model, points, same_bits  # noqa: E402

from ulam.embed.jax import log_density  # noqa: E402

pytestmark = pytest.mark.embed


@pytest.fixture(autouse=True, scope="module")
def double_precision() -> Iterator[None]:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def test_foreign_functions_are_what_is_used() -> None:
    """This XLA takes the handlers: were it not so, all tests here would be of the callback."""
    for callback, foreign in ((False, True), (None, True), (True, False)):
        text = jax.jit(log_density(model("schools"), callback=callback)).lower(np.zeros(10)).compile().as_text()
        assert ("ulam_xla_value" in text, "callback" in text) == (foreign, not foreign)


@pytest.mark.parametrize("callback", [None, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_have_the_same_bits(name: str, callback: bool | None) -> None:
    f = log_density(model(name), callback=callback)
    both = jax.value_and_grad(f)
    at = points(name, 64)
    wanted = [expected(name, x) for x in at]
    for run in (both, jax.jit(both)):
        value, gradient = run(at[3])
        assert same_bits(value, wanted[3][0]) and same_bits(gradient, wanted[3][1])
    assert same_bits(jax.jit(f)(at[4]), model(name).log_density(at[4]))
    for mapped in (jax.jit(jax.vmap(both)), jax.vmap(both), jax.vmap(jax.jit(both))):
        values, gradients = mapped(at)
        assert same_bits(values, [value for value, _ in wanted])
        assert same_bits(gradients, np.array([gradient for _, gradient in wanted]))
    values, gradients = jax.jit(jax.vmap(jax.vmap(both)))(at.reshape(4, 16, -1))
    assert same_bits(values.ravel(), [value for value, _ in wanted])


@pytest.mark.parametrize("options", [{"propto": False}, {"jacobian": False}, {"propto": False, "jacobian": False}])
def test_options(options: dict[str, Any]) -> None:
    x = points("schools", 2)[1]
    value, gradient = jax.value_and_grad(log_density(model("schools"), **options))(x)
    wanted = model("schools").log_density_gradient(x, **options)
    assert same_bits(value, wanted[0]) and same_bits(gradient, wanted[1])


def test_loops_and_branches() -> None:
    """A loop of JAX is the loop in Python."""
    gradient = jax.grad(log_density(model("logistic")))
    start = points("logistic", 1)[0]

    def climb(x: Any) -> Any:
        step = jax.lax.scan(lambda at, _: (at + 0.01 * gradient(at), None), x, None, length=50)[0]
        return jax.lax.cond(step[0] > 0, lambda at: at, lambda at: gradient(at), step)

    x = start
    for _ in range(50):
        x = x + 0.01 * model("logistic").log_density_gradient(x)[1]
    wanted = x if x[0] > 0 else model("logistic").log_density_gradient(x)[1]
    np.testing.assert_allclose(jax.jit(climb)(start), wanted, rtol=1e-12)  # XLA may fuse the addition


@pytest.mark.parametrize("callback", [None, True])
def test_second_derivatives(callback: bool | None) -> None:
    f = log_density(model("schools"), callback=callback)
    at = points("schools", 8)
    hessians = np.array([model("schools").log_density_hessian(x)[2] for x in at])
    for hessian in (jax.hessian(f), jax.jacrev(jax.grad(f)), jax.jacfwd(jax.grad(f))):
        np.testing.assert_allclose(jax.jit(hessian)(at[1]), hessians[1], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(jax.vmap(hessian)(at), hessians, rtol=1e-12, atol=1e-12)
    direction = np.arange(10.0)
    _, product = jax.jit(lambda x, v: jax.jvp(jax.grad(f), (x,), (v,)))(at[2], direction)
    np.testing.assert_array_equal(product, model("schools").log_density_hessian_vector_product(at[2], direction)[1])
    steepness = jax.grad(lambda x: (jax.grad(f)(x) ** 2).sum())  # reverse mode twice
    np.testing.assert_allclose(steepness(at[3]), 2 * hessians[3] @ jax.grad(f)(at[3]), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("third", [lambda f: jax.jacfwd(jax.hessian(f)), lambda f: jax.jacrev(jax.jacrev(jax.grad(f)))])
def test_third_derivatives_are_refused(third: Callable[[Any], Any]) -> None:
    with pytest.raises(NotImplementedError, match="third derivatives"):
        third(log_density(model("schools")))(points("schools", 1)[0])


def test_composition() -> None:
    """The gradient of what a user makes of a log density, by the chain rule."""
    f = log_density(model("logistic"))
    matrix = np.random.default_rng(1).normal(size=(4, 4))
    x = points("logistic", 1)[0]
    found = jax.jit(jax.grad(lambda y: 2.0 * f(matrix @ y) + (y**2).sum()))(x)
    wanted = 2 * matrix.T @ model("logistic").log_density_gradient(matrix @ x)[1] + 2 * x
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    single = jax.grad(f)(x.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_array_equal(
        single, model("logistic").log_density_gradient(x.astype(np.float32))[1].astype(np.float32)
    )


# ---------------------------------------------------------------- what goes wrong


def test_refused_points() -> None:
    both = jax.jit(jax.value_and_grad(log_density(model("refusing"))))
    with pytest.raises(ulam.Rejection):
        model("refusing").log_density_gradient(np.array([2.0, 0.0]))
    value, gradient = both(np.array([2.0, 0.0]))
    assert value == -np.inf and same_bits(gradient, [0, 0])
    value, product = jax.jvp(jax.grad(log_density(model("refusing"))), (np.array([2.0, 0.0]),), (np.ones(2),))
    assert same_bits(product, [0, 0])


def test_fatal_errors() -> None:
    x = np.array([[0.0, 0.0], [2.0, 0.0], [-11.0, 0.0]])
    with pytest.raises(Exception, match="ulam: a fatal error in the Stan program"):
        jax.block_until_ready(jax.jit(jax.vmap(log_density(model("refusing"))))(x))
    with pytest.raises(Exception, match="out of range"):
        jax.block_until_ready(jax.jit(jax.vmap(log_density(model("refusing"), callback=True)))(x))
    assert np.isfinite(jax.jit(log_density(model("refusing")))(x[0])), "the next call is as if nothing had been"


def test_wrong_arguments() -> None:
    f = log_density(model("schools"))
    for shape in ((9,), (), (10, 10)):
        with pytest.raises(ValueError, match=r"10 unconstrained parameters.*jax.vmap"):
            f(np.zeros(shape))
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(ValueError, match='jax.config.update\\("jax_enable_x64", True\\)'):
            f(np.zeros(10))
    finally:
        jax.config.update("jax_enable_x64", True)


def test_errors_of_data_are_raised_at_once() -> None:
    program = "data { real s; } parameters { real x; } model { 1 ~ normal(0, s); x ~ normal(0, 1); }"
    with pytest.raises(ulam.Rejection, match="sigma is -1"):
        log_density(ulam.StanModel(program, {"s": -1}, opt_level=0))


def fresh(scale: float) -> tuple[ulam.StanModel, float]:
    own = ulam.StanModel(
        "data { real s; } parameters { real x; } model { x ~ normal(0, s); }", {"s": scale}, opt_level=0
    )
    return own, own.log_density([1.0])


def test_what_is_compiled_keeps_the_model() -> None:
    kept = []
    for scale in (1.0, 2.0, 3.0, 4.0):
        own, wanted = fresh(scale)
        kept.append((jax.jit(log_density(own)), jax.jit(jax.grad(log_density(own))), wanted, scale))
        del own
    gc.collect()
    for f, gradient, wanted, scale in kept:
        assert f(np.ones(1)) == wanted and gradient(np.ones(1))[0] == -1 / scale**2


def test_code_that_outlives_the_function_fails_cleanly() -> None:
    own, wanted = fresh(2.0)
    f = log_density(own)
    compiled = jax.jit(f).lower(np.ones(1)).compile()
    assert compiled(np.ones(1)) == wanted
    del f, own
    jax.clear_caches()
    gc.collect()
    other, _ = fresh(5.0)
    also = jax.jit(log_density(other))  # may take the place of the one that is gone
    also(np.ones(1))
    try:
        value = compiled(np.ones(1))
    except Exception as error:
        assert "keep a reference" in str(error)
    else:
        assert value == wanted


def test_threads() -> None:
    both = jax.jit(jax.vmap(jax.value_and_grad(log_density(model("schools")))))
    at = points("schools", 256)
    wanted = both(at)
    with ThreadPoolExecutor(8) as pool:
        for values, gradients in pool.map(lambda _: both(at), range(64)):
            assert same_bits(values, wanted[0]) and same_bits(gradients, wanted[1])


# ---------------------------------------------------------------- BlackJAX


def test_blackjax() -> None:
    """Its sampler, with its adaptation, ends where ours does."""
    blackjax = pytest.importorskip("blackjax")
    own = model("schools")
    f = log_density(own)
    key, warmup_key, start_key = jax.random.split(jax.random.key(2), 3)
    adaptation = blackjax.window_adaptation(blackjax.nuts, f)
    start = jax.random.uniform(start_key, (10,), minval=-1.0, maxval=1.0)
    (state, parameters), _ = adaptation.run(warmup_key, start, num_steps=800)
    kernel = jax.jit(blackjax.nuts(f, **parameters).step)

    def step(at: Any, each: Any) -> Any:
        at, info = kernel(each, at)
        return at, (at.position, info.is_divergent)

    _, (draws, divergent) = jax.lax.scan(step, state, jax.random.split(key, 4000))
    assert draws.shape == (4000, 10) and divergent.mean() < 0.05
    theirs = np.array([own.param_constrain(x) for x in np.asarray(draws)])
    ours = own.sample(chains=2, draws=2000, seed=3)
    for index, name in enumerate(("mu", "tau")):
        wanted = ours[name].ravel()
        assert abs(theirs[:, index].mean() - wanted.mean()) < 0.15 * wanted.std(), name
        assert abs(theirs[:, index].std() / wanted.std() - 1) < 0.15, name
