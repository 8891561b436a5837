"""The C runtime from Python: contexts, the arena, bound data, errors, printing and random numbers."""

from __future__ import annotations

import ctypes
import gc
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ulam.library.kernels import KERNELS
from ulam.library.statuses import FATAL
from ulam.runtime import c_library
from ulam.runtime.native import BoundData, Context, ContextPool, Rng, new_rng

POINTER = ctypes.c_void_p
ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, POINTER, POINTER)


def c_function(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(c_library.library(), name)
    function.restype = result
    function.argtypes = arguments
    return function


grow = c_function("ulam_arena_grow", POINTER, POINTER, ctypes.c_int64)
release = c_function("ulam_arena_release", None, POINTER, POINTER)
alloc_bound = c_function("ulam_alloc_bound", POINTER, POINTER, ctypes.c_int64)


class Arena:
    """The allocation that emitted code does inline."""

    def __init__(self, address: int) -> None:
        self.address = address
        self.cursor = POINTER.from_address(address)
        self.end = POINTER.from_address(address + 8)

    def take(self, size: int) -> int:
        size = (size + 63) // 64 * 64
        start = self.cursor.value
        assert start is not None and self.end.value is not None
        if start + size > self.end.value:
            return grow(self.address, size)
        self.cursor.value = start + size
        return start


def run(context: Context, body: Any, bound: int = 0) -> int:
    """Runs a Python function as an entry point of a program."""
    failure: list[BaseException] = []

    def entry(ctx: int, table: int) -> int:
        try:
            return body(ctx) or 0
        except BaseException as error:
            failure.append(error)
            return 2

    callback = ENTRY(entry)
    address = ctypes.cast(callback, POINTER).value
    assert address is not None
    status = context.run_plain(address, bound)
    if failure:
        raise failure[0]
    return status


# ------------------------------------------------------------------------------------------------ the arena


def test_blocks_do_not_overlap() -> None:
    context = Context()
    random = np.random.default_rng(1)

    def body(ctx: int) -> None:
        arena, blocks = Arena(ctx), []
        for size in random.integers(1, 60_000, 300):
            start = arena.take(int(size))
            assert start % 64 == 0
            ctypes.memset(start, len(blocks) % 251, int(size))
            blocks.append((start, int(size)))
        for number, (start, size) in enumerate(blocks):
            content = ctypes.string_at(start, size)
            assert content == bytes([number % 251]) * size

    assert run(context, body) == 0


@pytest.mark.ordinary_runtime("each block is in pages of its own")
def test_mark_and_release_across_chunks() -> None:
    context = Context()

    def body(ctx: int) -> None:
        arena = Arena(ctx)
        first = arena.take(100)
        mark = arena.cursor.value
        for _ in range(50):
            assert arena.cursor.value == mark
            for _ in range(10):
                ctypes.memset(arena.take(50_000), 255, 50_000)
            release(ctx, mark)
        assert arena.take(64) == mark
        assert ctypes.string_at(first, 4) is not None

    assert run(context, body) == 0
    assert context.arena_bytes < 20 * 500_000


@pytest.mark.ordinary_runtime("no memory is kept")
def test_memory_is_kept_up_to_the_limit() -> None:
    context = Context(keep_bytes=1 << 20)
    run(context, lambda ctx: grow(ctx, 600_000) and 0)
    kept = context.arena_bytes
    assert 600_000 <= kept <= 1 << 20
    for _ in range(20):
        run(context, lambda ctx: grow(ctx, 300_000) and 0)
    assert context.arena_bytes <= 1 << 20
    run(context, lambda ctx: grow(ctx, 100 << 20) and 0)
    assert context.arena_bytes <= 1 << 20


@pytest.mark.ordinary_runtime("no memory is kept")
def test_one_chunk_after_growing() -> None:
    """An evaluation that is repeated does not grow again."""
    context = Context()
    grown: list[int] = []

    def body(ctx: int) -> None:
        arena = Arena(ctx)
        for _ in range(40):
            before = arena.end.value
            arena.take(30_000)
            grown[-1] += arena.end.value != before

    for _ in range(3):
        grown.append(0)
        run(context, body)
    assert grown[0] > 0 and grown[1:] == [0, 0]


def test_out_of_memory_is_an_error() -> None:
    context = Context()
    grow_address = ctypes.cast(grow, POINTER).value
    assert grow_address is not None
    # The entry is the C function itself: it never returns, so no Python frame is jumped over. Its second argument,
    # the table of bound data, is the number of bytes.
    assert context.run_plain(grow_address, 1 << 61) == FATAL
    assert "out of memory" in context.message
    assert run(context, lambda ctx: 0) == 0 and context.message == ""


def test_pool_gives_each_taker_its_own() -> None:
    pool = ContextPool(keep=2)
    taken = [pool.take() for _ in range(4)]
    assert len({context.address for context in taken}) == 4
    for context in taken:
        pool.give(context)
    assert pool.take() in taken[2:]
    with pool.context(new_rng(1)) as outer, pool.context() as inner:
        assert outer is not inner and outer.rng is not None and inner.rng is None
    assert outer.rng is None


def test_threads() -> None:
    pool, failures = ContextPool(), []

    def work(number: int) -> None:
        for _ in range(50):
            with pool.context() as context:

                def body(ctx: int) -> None:
                    start = Arena(ctx).take(100_000)
                    ctypes.memset(start, number, 100_000)
                    if ctypes.string_at(start, 100_000) != bytes([number]) * 100_000:
                        failures.append(number)

                run(context, body)  # fmt: skip

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# ------------------------------------------------------------------------------------------------ bound data


def test_bound_slots() -> None:
    data = BoundData(2)
    data.set_int(0, -7)
    data.set_real(1, 2.5)
    before = data.address
    data.ensure_slots(1000)
    assert data.slots >= 1000 and data.address != before
    array = np.arange(6.0)
    data.set_array(999, array)
    assert (data.get_int(0), data.get_real(1), data.get_pointer(999)) == (-7, 2.5, array.ctypes.data)
    assert ctypes.c_int64.from_address(before).value == -7  # a reader of the old table goes on
    with pytest.raises(IndexError):
        data.set_int(5000, 1)
    with pytest.raises(ValueError, match="contiguous"):
        data.set_array(0, np.zeros((4, 4))[:, 1])


@pytest.mark.ordinary_runtime("arrays are in blocks of their own with guard pages")
@pytest.mark.parametrize("kind", [np.float64, np.int32])
def test_bound_arrays_begin_with_a_line_of_the_cache(kind: type) -> None:
    data = BoundData(1)
    for first in range(64 // np.dtype(kind).itemsize):
        array = np.arange(3000, dtype=kind)[first:]
        data.set_array(0, array)
        address = data.get_pointer(0)
        assert address % 64 == 0
        element = ctypes.c_double if kind is np.float64 else ctypes.c_int32
        assert list((element * array.size).from_address(address)) == list(array)


def test_memory_of_bound_data() -> None:
    data, context = BoundData(1), Context()
    places: list[int] = []

    def entry(ctx: int, table: int) -> int:
        for _ in range(100):
            places.append(alloc_bound(ctx, 5000))
            ctypes.memset(places[-1], len(places), 5000)
        return 0

    callback = ENTRY(entry)
    assert context.run_bind(ctypes.cast(callback, POINTER).value or 0, data) == 0
    assert all(ctypes.string_at(p, 5000) == bytes([i + 1]) * 5000 for i, p in enumerate(places))


def test_memory_of_bound_data_outside_binding() -> None:
    context = Context()
    assert context.run_plain(ctypes.cast(alloc_bound, POINTER).value or 0, 64) == FATAL


# ------------------------------------------------------------------------------------------------ printing

begin = c_function("ulam_print_begin", None, POINTER, ctypes.c_int32)
end = c_function("ulam_print_end", None, POINTER)
text = c_function("ulam_print_string", None, POINTER, ctypes.c_char_p)
real = c_function("ulam_print_real", None, POINTER, ctypes.c_double)
integer = c_function("ulam_print_int", None, POINTER, ctypes.c_int32)
reals = c_function("ulam_print_container_real", None, POINTER, POINTER, ctypes.c_int32, POINTER, ctypes.c_int32)
ints = c_function("ulam_print_container_int", None, POINTER, POINTER, ctypes.c_int32, POINTER, ctypes.c_int32)
ARRAY, VECTOR, ROW_VECTOR, MATRIX = range(4)


def printed(context: Context, values: Any, dims: tuple[int, ...], kind: int) -> str:
    array = np.ascontiguousarray(values)
    sizes = np.array(dims or (0,), dtype=np.int64)
    show = ints if array.dtype == np.int32 else reals
    begin(context.address, 0)
    show(context.address, array.ctypes.data, len(dims), sizes.ctypes.data, kind)
    end(context.address)
    return context.take_output()


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1.0, "1"), (0.1, "0.1"), (1 / 3, "0.333333"), (1e6, "1e+06"), (123456.7, "123457"), (-0.0, "-0"),
     (1e-5, "1e-05"), (float("nan"), "nan"), (float("inf"), "inf"), (-float("inf"), "-inf")],
)  # fmt: skip
def test_print_real(value: float, expected: str) -> None:
    context = Context()
    begin(context.address, 0)
    text(context.address, b"x = ")
    real(context.address, value)
    integer(context.address, -3)
    end(context.address)
    assert context.take_output() == f"x = {expected}-3\n"
    assert context.take_output() == ""


def test_print_containers() -> None:
    context = Context()
    six = np.arange(1.0, 7)
    assert printed(context, six, (6,), VECTOR) == "[1,2,3,4,5,6]\n"
    assert printed(context, six, (0,), VECTOR) == "[]\n"
    assert printed(context, six, (2, 3), MATRIX) == "[[1,3,5],[2,4,6]]\n"
    assert printed(context, six, (2, 3), ARRAY) == "[[1,2,3],[4,5,6]]\n"
    assert printed(context, six, (3, 2), ROW_VECTOR) == "[[1,2],[3,4],[5,6]]\n"
    assert printed(context, np.arange(8.0), (2, 2, 2), MATRIX) == "[[[0,2],[1,3]],[[4,6],[5,7]]]\n"
    assert printed(context, np.arange(4, dtype=np.int32), (2, 2), ARRAY) == "[[0,1],[2,3]]\n"


def test_reject_sets_the_message() -> None:
    context = Context()
    begin(context.address, 1)
    text(context.address, b"bad value: ")
    real(context.address, 0.5)
    end(context.address)
    assert context.message == "bad value: 0.5" and context.take_output() == ""


def test_print_sink() -> None:
    context, lines = Context(), []
    context.set_print_sink(lines.append)
    printed(context, np.arange(3.0), (3,), VECTOR)
    assert lines == ["[0,1,2]\n"] and context.output_length.value == 0
    context.set_print_sink(None)
    assert printed(context, np.arange(1.0), (1,), VECTOR) == "[0]\n"


# ------------------------------------------------------------------------------------------------ random numbers


def test_rng_is_numpys_stream() -> None:
    from numpy.random import PCG64DXSM, Generator, SeedSequence

    expected = Generator(PCG64DXSM(SeedSequence((5, 0)))).standard_normal(20)
    np.testing.assert_array_equal(draw(new_rng(5), "std_normal_rng", (), 20), expected)


def draw(rng: Rng, name: str, arguments: tuple[float, ...], count: int) -> Any:
    """Draws of a distribution with a scalar result."""
    kernel = KERNELS[name]
    types = {"f64": ctypes.c_double, "i32": ctypes.c_int32}
    result = types[kernel.parameters[-1].element]()
    function = getattr(c_library.library(), f"ulam_{name}")
    function.restype = ctypes.c_int32
    context = Context()
    context.rng = rng
    values = [types[p.element](v) for p, v in zip(kernel.parameters, arguments, strict=False)]
    draws = []
    for _ in range(count):
        status = function(POINTER(context.address), *values, ctypes.byref(result))
        if status:
            raise ValueError(f"{status}: {context.message}")
        draws.append(result.value)
    return np.array(draws)


def test_seeds_streams_and_pickle() -> None:
    first = draw(new_rng(1), "normal_rng", (0, 1), 5)
    np.testing.assert_array_equal(first, draw(new_rng(1), "normal_rng", (0, 1), 5))
    assert not np.any(first == draw(new_rng(2), "normal_rng", (0, 1), 5))
    assert not np.any(first == draw(new_rng(1, stream=1), "normal_rng", (0, 1), 5))
    rng = new_rng(3)
    draw(rng, "uniform_rng", (0, 1), 7)
    copy = pickle.loads(pickle.dumps(rng))
    np.testing.assert_array_equal(draw(copy, "normal_rng", (0, 1), 5), draw(rng, "normal_rng", (0, 1), 5))
    with pytest.raises(ValueError, match="negative"):
        new_rng(-1)


def test_rng_survives_its_name() -> None:
    context = Context()
    context.rng = new_rng(4)
    gc.collect()
    result = ctypes.c_double()
    assert c_library.library().ulam_std_normal_rng(POINTER(context.address), ctypes.byref(result)) == 0
    assert np.isfinite(result.value)


def test_no_rng_is_fatal() -> None:
    context = Context()
    result = ctypes.c_double()
    assert c_library.library().ulam_std_normal_rng(POINTER(context.address), ctypes.byref(result)) == FATAL
    assert "std_normal_rng: a random number generator is needed" in context.message


def test_uniform_is_the_documented_formula() -> None:
    from numpy.random import PCG64DXSM, Generator, SeedSequence

    u = Generator(PCG64DXSM(SeedSequence((9, 2)))).random(10)
    np.testing.assert_array_equal(draw(new_rng(9, 2), "uniform_rng", (-1.5, 4.0), 10), -1.5 + (4.0 - -1.5) * u)


CONTINUOUS = [
    ("normal_rng", (1, 2), "norm", (1, 2)), ("cauchy_rng", (1, 2), "cauchy", (1, 2)),
    ("student_t_rng", (3.5, 1, 2), "t", (3.5, 1, 2)), ("lognormal_rng", (0.3, 0.5), "lognorm", (0.5, 0, np.exp(0.3))),
    ("double_exponential_rng", (1, 2), "laplace", (1, 2)), ("logistic_rng", (1, 2), "logistic", (1, 2)),
    ("gumbel_rng", (1, 2), "gumbel_r", (1, 2)), ("skew_normal_rng", (1, 2, -3), "skewnorm", (-3, 1, 2)),
    ("exp_mod_normal_rng", (1, 2, 0.4), "exponnorm", (1 / 0.8, 1, 2)), ("exponential_rng", (2.5,), "expon", (0, 0.4)),
    ("gamma_rng", (0.7, 2), "gamma", (0.7, 0, 0.5)), ("inv_gamma_rng", (2.5, 3), "invgamma", (2.5, 0, 3)),
    ("weibull_rng", (1.5, 2), "weibull_min", (1.5, 0, 2)), ("frechet_rng", (2.5, 2), "invweibull", (2.5, 0, 2)),
    ("rayleigh_rng", (2,), "rayleigh", (0, 2)), ("chi_square_rng", (3,), "chi2", (3,)),
    ("inv_chi_square_rng", (3,), "invgamma", (1.5, 0, 0.5)),
    ("scaled_inv_chi_square_rng", (3, 2), "invgamma", (1.5, 0, 6)), ("loglogistic_rng", (2, 3), "fisk", (3, 0, 2)),
    ("pareto_rng", (2, 3), "pareto", (3, 0, 2)), ("pareto_type_2_rng", (1, 2, 3), "lomax", (3, 1, 2)),
    ("beta_rng", (0.5, 2), "beta", (0.5, 2)), ("beta_proportion_rng", (0.2, 5), "beta", (1, 4)),
    ("uniform_rng", (-1, 3), "uniform", (-1, 4)), ("von_mises_rng", (0.5, 2), "vonmises", (2, 0.5)),
]  # fmt: skip
DISCRETE = [
    ("bernoulli_rng", (0.3,), "binom", (1, 0.3)), ("bernoulli_logit_rng", (-0.5,), "binom", (1, 1 / (1 + np.exp(0.5)))),
    ("binomial_rng", (20, 0.3), "binom", (20, 0.3)), ("binomial_rng", (200, 0.6), "binom", (200, 0.6)),
    ("binomial_logit_rng", (10, 0.5), "binom", (10, 1 / (1 + np.exp(-0.5)))),
    ("beta_binomial_rng", (10, 2, 3), "betabinom", (10, 2, 3)), ("poisson_rng", (3.3,), "poisson", (3.3,)),
    ("poisson_rng", (33,), "poisson", (33,)), ("poisson_log_rng", (1.2,), "poisson", (np.exp(1.2),)),
    ("neg_binomial_rng", (2.5, 0.5), "nbinom", (2.5, 1 / 3)), ("neg_binomial_2_rng", (5, 2.5), "nbinom", (2.5, 1 / 3)),
    ("neg_binomial_2_log_rng", (np.log(5), 2.5), "nbinom", (2.5, 1 / 3)),
    ("beta_neg_binomial_rng", (3, 4, 2), "betanbinom", (3, 4, 2)), ("yule_simon_rng", (3,), "yulesimon", (3,)),
    ("hypergeometric_rng", (5, 8, 6), "hypergeom", (14, 8, 5)), ("discrete_range_rng", (-2, 4), "randint", (-2, 5)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "distribution", "shape"), CONTINUOUS)
def test_continuous_distribution(name: str, arguments: Any, distribution: str, shape: Any) -> None:
    stats = pytest.importorskip("scipy.stats")
    draws = draw(new_rng(17), name, arguments, 4000)
    if name == "von_mises_rng":
        draws = np.angle(np.exp(1j * (draws - arguments[0]))) + arguments[0]
    assert stats.kstest(draws, getattr(stats, distribution)(*shape).cdf).pvalue > 1e-3


@pytest.mark.parametrize(("name", "arguments", "distribution", "shape"), DISCRETE)
def test_discrete_distribution(name: str, arguments: Any, distribution: str, shape: Any) -> None:
    stats = pytest.importorskip("scipy.stats")
    draws = draw(new_rng(18), name, arguments, 4000).astype(int)
    values = np.arange(draws.min(), draws.max() + 1)
    expected = getattr(stats, distribution)(*shape).pmf(values) * len(draws)
    observed = np.bincount(draws - draws.min(), minlength=len(values))
    common = expected > 5
    statistic = float(np.sum((observed[common] - expected[common]) ** 2 / expected[common]))
    assert stats.chi2(max(int(common.sum()) - 1, 1)).sf(statistic) > 1e-3


def test_skew_double_exponential() -> None:
    draws = draw(new_rng(19), "skew_double_exponential_rng", (1, 2, 0.3), 20_000)
    assert np.mean(draws < 1) == pytest.approx(0.3, abs=0.015)
    assert np.mean(1 - draws[draws < 1]) == pytest.approx(2 / (2 * 0.7), rel=0.05)
    assert np.mean(draws[draws > 1] - 1) == pytest.approx(2 / (2 * 0.3), rel=0.05)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("normal_rng", (np.inf, 1), "normal_rng: Location parameter is inf, but must be finite!"),
        ("normal_rng", (0, -1), "normal_rng: Scale parameter is -1, but must be positive finite!"),
        ("uniform_rng", (1, 1), "Upper bound parameter is 1, but must be greater"),
        ("bernoulli_rng", (1.5,), r"Probability parameter is 1.5, but must be in the interval \[0, 1\]!"),
        ("binomial_rng", (-1, 0.5), "Population size parameter is -1"),
        ("poisson_rng", (np.nan,), "Rate parameter is nan"),
        ("poisson_rng", (2.0**30,), "less than"),
        ("poisson_rng", (0.0,), "Rate parameter is 0, but must be positive!"),
        ("poisson_log_rng", (np.nan,), "Log rate parameter is nan"),
        ("poisson_log_rng", (-np.inf,), "Log rate parameter is -inf, but must be finite!"),
        ("poisson_log_rng", (21.0,), "less than 30"),
        ("neg_binomial_2_rng", (1e-300, 1e300), "divided by the precision parameter is 0"),
        ("neg_binomial_2_log_rng", (800.0, 1.0), "divided by the inverse dispersion is inf"),
        ("neg_binomial_2_rng", (1e30, 1), "came from gamma distribution"),
        ("hypergeometric_rng", (20, 3, 4), "at most the population size"),
    ],
)
def test_rng_arguments(name: str, arguments: tuple[float, ...], message: str) -> None:
    with pytest.raises(ValueError, match=f"1: .*{message}"):
        draw(new_rng(1), name, arguments, 1)


@pytest.fixture
def context() -> Iterator[Context]:
    context = Context()
    context.rng = new_rng(23)
    yield context


def draw_container(context: Context, name: str, arguments: list[Any], out: Any) -> Any:
    """One draw into `out`; arrays go by address, each followed by what the kernel takes next."""
    parameters = KERNELS[name].parameters
    scalars = {"f64": ctypes.c_double, "i32": ctypes.c_int32, "i64": ctypes.c_int64}
    given = [
        POINTER(value.ctypes.data) if isinstance(value, np.ndarray) else scalars[p.element](value)
        for p, value in zip(parameters, [*arguments, out], strict=True)
    ]
    function = getattr(c_library.library(), f"ulam_{name}")
    function.restype = ctypes.c_int32
    if function(POINTER(context.address), *given):
        raise ValueError(context.message)
    return out.copy()


def test_categorical(context: Context) -> None:
    theta = np.array([0.2, 0.0, 0.5, 0.3])
    for name, given in (("categorical_rng", theta), ("categorical_logit_rng", np.log(theta + 1e-300))):
        out = np.zeros(1, np.int32)
        draws = [int(draw_container(context, name, [given, 4], out)[0]) for _ in range(4000)]
        np.testing.assert_allclose(np.bincount(draws, minlength=5)[1:] / 4000, theta, atol=0.03)
    with pytest.raises(ValueError, match="not a valid simplex"):
        draw_container(context, "categorical_rng", [np.array([0.5, 0.6]), 2], np.zeros(1, np.int32))


def test_containers_are_checked_as_in_stan(context: Context) -> None:
    """Cut points are needed, no trials are fine, factors are lower triangular with a positive diagonal."""
    for name in ("ordered_logistic_rng", "ordered_probit_rng"):
        with pytest.raises(ValueError, match="Size of cut points parameter is 0, but must be positive!"):
            draw_container(context, name, [0.3, np.zeros(0), 0], np.zeros(1, np.int32))
    for name in ("multinomial_rng", "multinomial_logit_rng", "dirichlet_multinomial_rng"):
        drawn = draw_container(context, name, [np.array([0.4, 0.6]), 2, 0], np.ones(2, np.int32))
        np.testing.assert_array_equal(drawn, 0)
    for factor, message in (([1.0, 0.5, 0.0, 0.0], "positive"), ([1.0, 0.5, 0.3, 1.0], "not lower triangular")):
        columns, mu, out = np.array(factor), np.zeros(2), np.zeros(2)
        for name, arguments, result in (
            ("multi_normal_cholesky_rng", [mu, columns, 2], out),
            ("multi_student_t_cholesky_rng", [3.0, mu, columns, 2], out),
            ("wishart_cholesky_rng", [3.0, columns, 2], np.zeros(4)),
        ):
            with pytest.raises(ValueError, match=f"{name}: .*{message}"):
                draw_container(context, name, arguments, result)


def test_multinomial(context: Context) -> None:
    theta = np.array([0.2, 0.0, 0.5, 0.3])
    draws = np.array(
        [draw_container(context, "multinomial_rng", [theta, 4, 100], np.zeros(4, np.int32)) for _ in range(500)]
    )
    assert np.all(draws.sum(axis=1) == 100) and np.all(draws[:, 1] == 0)
    np.testing.assert_allclose(draws.mean(axis=0) / 100, theta, atol=0.01)


def test_dirichlet(context: Context) -> None:
    alpha = np.array([0.001, 2.0, 3.0])
    draws = np.array([draw_container(context, "dirichlet_rng", [alpha, 3], np.zeros(3)) for _ in range(4000)])
    np.testing.assert_allclose(draws.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(draws.mean(axis=0), alpha / alpha.sum(), atol=0.015)
    tiny = draw_container(context, "dirichlet_rng", [np.full(3, 1e-5), 3], np.zeros(3))
    assert np.isfinite(tiny).all() and tiny.max() == pytest.approx(1)


def test_multi_normal(context: Context) -> None:
    mu, factor = np.array([1.0, -2.0]), np.array([[2.0, 0.0], [0.6, 0.8]])
    for name, given in (("multi_normal_cholesky_rng", factor), ("multi_normal_rng", factor @ factor.T)):
        column_major = given.T.copy()
        draws = np.array([draw_container(context, name, [mu, column_major, 2], np.zeros(2)) for _ in range(8000)])
        np.testing.assert_allclose(draws.mean(axis=0), mu, atol=0.1)
        np.testing.assert_allclose(np.cov(draws.T), factor @ factor.T, atol=0.2)


def test_lkj(context: Context) -> None:
    draws = np.array([draw_container(context, "lkj_corr_rng", [4, 1.5], np.zeros(16)) for _ in range(3000)])
    matrices = draws.reshape(-1, 4, 4)
    np.testing.assert_allclose(np.linalg.norm(matrices - matrices.transpose(0, 2, 1)), 0, atol=1e-12)
    assert np.all(np.linalg.eigvalsh(matrices) > 0)
    # Marginally, (r + 1) / 2 is beta(eta - 1 + K / 2) on both sides.
    variance = 1 / (2 * (1.5 - 1 + 2) + 1)
    for i, j in ((0, 1), (0, 3), (2, 3)):
        assert np.var(matrices[:, i, j]) == pytest.approx(variance, rel=0.15)


def test_wishart(context: Context) -> None:
    scale = np.array([[2.0, 0.5], [0.5, 1.0]])
    draws = np.array([draw_container(context, "wishart_rng", [7.0, scale, 2], np.zeros(4)) for _ in range(4000)])
    np.testing.assert_allclose(draws.mean(axis=0).reshape(2, 2), 7 * scale, rtol=0.1, atol=0.3)
    draws = np.array([draw_container(context, "inv_wishart_rng", [7.0, scale, 2], np.zeros(4)) for _ in range(4000)])
    np.testing.assert_allclose(draws.mean(axis=0).reshape(2, 2), scale / (7 - 2 - 1), rtol=0.15, atol=0.05)


# ------------------------------------------------------------------------------------------------ the stack


def test_stack_limit_is_within_the_threads_stack() -> None:
    limits: list[tuple[int, int]] = []

    def work() -> None:
        def body(ctx: int) -> None:
            here = ctypes.c_int()
            limits.append((POINTER.from_address(ctx + 88).value or 0, ctypes.addressof(here)))

        run(Context(), body)

    work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert all(limit > 0 for limit, _ in limits) and limits[0][0] != limits[1][0]


def test_stack_exhausted_is_fatal() -> None:
    context = Context()
    exhausted = c_function("ulam_stack_exhausted", ctypes.c_int32, POINTER)
    assert run(context, lambda ctx: exhausted(ctx)) == FATAL
    assert "calls itself too often" in context.message
