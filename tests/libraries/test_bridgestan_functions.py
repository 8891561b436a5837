"""BridgeStan's C interface to programs of this process: all functions, called without a client, against `StanModel`."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from bridgestan_client import PROTOTYPES, R_NAMES, VERSION, BridgeStanClient, ClientError

import ulam
from ulam.runtime.errors import DataError
from ulam.runtime.libraries.program_tables import BRIDGESTAN_VERSION

pytestmark = pytest.mark.usefixtures("quick_code")

PROGRAM = """
data { int<lower=0> N; array[N] vector[2] y; array[2, 3] int k; tuple(real, array[2] int) t; }
transformed data { real z = normal_rng(0, 1); print("z is set"); }
parameters {
  real mu; real<lower=0> sigma; array[2] simplex[3] s; cov_matrix[2] C; array[2, 3] real a; array[2] matrix[2, 3] m;
  array[0] real none;
  array[2] tuple(real<lower=0>, simplex[3], array[2, 1] tuple(vector[2], complex)) w;
}
transformed parameters {
  array[2] vector[2] p;
  array[2] tuple(vector[2], real) r;
  for (i in 1:2) (p[i], r[i]) = ([mu * i, sigma]', (w[i].3[2, 1].1, w[i].1));
  if (mu > 8) reject("p of ", mu);
}
model {
  if (mu < -8) target += y[N + k[2, 3]][1];
  for (n in 1:N) y[n] ~ normal(mu + t.1, sigma);
  for (i in 1:2) { s[i] ~ dirichlet([1, 2, 3]'); to_vector(m[i]) ~ std_normal(); a[i] ~ std_normal(); }
  for (v in w) { v.1 ~ std_normal(); for (u in v.3) target += -dot_self(u[1].1) - norm(u[1].2); }
  C ~ wishart(4, identity_matrix(2));
  print("mu = ", mu);
}
generated quantities {
  real g = normal_rng(mu, sigma);
  array[2, 2] int q;
  for (i in 1:2) for (j in 1:2) q[i, j] = poisson_rng(3.0 * i + j);
  real copied = z;
  if (mu > 7) reject("q of ", mu);
}
"""
DATA: dict[str, Any] = {
    "N": 2, "y": [[1, 2], [3, 4.5]], "k": [[1, 2, 3], [4, 5, 6]], "t": {"1": 0.5, "2": [7, 8]},
}  # fmt: skip
VALUES: dict[str, Any] = {
    "mu": 1, "sigma": 2, "s": [[0.25, 0.25, 0.5], [0.125, 0.125, 0.75]], "C": [[2, 1], [1, 3]],
    "a": [[1, 2, 3], [4, 5, 6]], "m": [[[1, 2, 3], [4, 5, 6]], [[1, 2, 3], [4, 5, 7]]], "none": [],
    "w": [
        {"1": k, "2": [0.5, 0.25, 0.25], "3": [[{"1": [k, 2], "2": [3, -1]}], [{"1": [4, 5], "2": [0.5, k]}]]}
        for k in (1, 2)
    ],
}  # fmt: skip
PRINT = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)


@pytest.fixture(scope="module")
def model() -> ulam.StanModel:
    return ulam.StanModel(PROGRAM, DATA, seed=7, opt_level=0)


@pytest.fixture(scope="module")
def printed(model: ulam.StanModel) -> Iterator[list[bytes]]:
    """What the program prints goes there."""
    told: list[bytes] = []
    callback = PRINT(lambda text, length: told.append(ctypes.string_at(text, length)))
    library = ctypes.CDLL(model.bridgestan_library())
    assert library.bs_set_print_callback(callback, None) == 0
    yield told
    assert library.bs_set_print_callback(None, None) == 0


@pytest.fixture(scope="module")
def client(model: ulam.StanModel, printed: list[bytes]) -> BridgeStanClient:
    return BridgeStanClient(model.bridgestan_library(), DATA, seed=7)


@pytest.fixture
def x(model: ulam.StanModel) -> Any:
    return np.random.default_rng(3).normal(size=model.param_unc_num())


def same(found: Any, expected: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_what_a_model_tells(model: ulam.StanModel, client: BridgeStanClient) -> None:
    library = client.library
    assert tuple(ctypes.c_int.in_dll(library, name).value for name in VERSION) == BRIDGESTAN_VERSION
    assert library.bs_name(client.model).decode() == model.name()
    info = library.bs_model_info(client.model).decode()
    assert info.startswith("BridgeStan version: 2.9.0\n") and "STAN_THREADS=true" in info and "ulam: " in info
    assert client.n == model.param_unc_num()
    assert client.unconstrained_names() == model.param_unc_names()
    for tp in (False, True):
        for gq in (False, True):
            assert client.size(tp, gq) == model.param_num(include_tp=tp, include_gq=gq)
            assert client.names(tp, gq) == model.param_names(include_tp=tp, include_gq=gq)
    assert library.bs_param_names(client.model, 1, 1) is not None
    first, again = (ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(("bs_param_unc_names", library)) for _ in "12")
    assert first(client.model) == again(client.model)  # it is the model's, not the caller's


@pytest.mark.parametrize("propto", [True, False])
@pytest.mark.parametrize("jacobian", [True, False])
def test_densities(model: ulam.StanModel, client: BridgeStanClient, x: Any, propto: bool, jacobian: bool) -> None:
    options: dict[str, Any] = {"propto": propto, "jacobian": jacobian}
    v = np.ascontiguousarray(x[::-1])
    assert client.density(x, **options) == model.log_density(x, **options)
    assert same(client.gradient(x, **options), model.log_density_gradient(x, **options))
    if propto:
        assert same(client.hessian(x, **options), model.log_density_hessian(x, **options))
        expected = model.log_density_hessian_vector_product(x, v, **options)
        assert same(client.hessian_vector(x, v, **options), expected)


def test_transforms(model: ulam.StanModel, client: BridgeStanClient, x: Any) -> None:
    for tp in (False, True):
        found = client.constrain(x, tp)
        assert (found == model.param_constrain(x, include_tp=tp)).all()
    values = client.constrain(x)
    assert (client.unconstrain(values) == model.param_unconstrain(values)).all()
    assert (client.unconstrain_json(VALUES) == model.param_unconstrain_json(VALUES)).all()


def test_random_numbers(model: ulam.StanModel, client: BridgeStanClient, x: Any) -> None:
    """The same stream for a seed, the largest too, in generated quantities, transformed data and initial values."""
    for seed in (0, 5, 2**32 - 1):
        own, rng = model.new_rng(seed), client.rng(seed)
        for _ in range(2):
            found = client.constrain(x, tp=True, gq=True, rng=rng)
            assert (found == model.param_constrain(x, include_tp=True, include_gq=True, rng=own)).all()
        client.library.bs_rng_destruct(rng)
    rng = client.rng(11)
    drawn = client.initialize(None, rng)
    expected = np.random.Generator(model.new_rng(11).generator).uniform(-2, 2, client.n)
    assert (drawn == expected).all()
    partly = client.initialize({"mu": 1.5, "C": VALUES["C"]}, rng, radius=0.5)
    written = dict(zip(client.names(), client.constrain(partly), strict=True))
    assert written["mu"] == 1.5
    assert [written[f"C.{i}.{j}"] for i in (1, 2) for j in (1, 2)] == pytest.approx([2, 1, 1, 3])
    places = client.unconstrained_names()
    others = [partly[places.index(name)] for name in places if not name.startswith(("mu", "C."))]
    assert 0 < np.abs(others).max() < 0.5
    assert (client.initialize(VALUES, rng) == client.unconstrain_json(VALUES)).all()
    assert not client.initialize(None, rng, radius=0).any()
    client.library.bs_rng_destruct(rng)


def test_errors_are_those_of_the_model(model: ulam.StanModel, client: BridgeStanClient, x: Any) -> None:
    """Their texts, with places; JSON that is wrong, values that are, points where a check fails."""
    path = model.bridgestan_library()
    for data in (None, {**DATA, "N": -1}, {**DATA, "y": [1, 2]}, {**DATA, "k": 1.5, "t": 1}):
        with pytest.raises(DataError) as expected:
            ulam.StanModel(PROGRAM, data, opt_level=0)
        with pytest.raises(ClientError) as found:
            BridgeStanClient(path, data)
        assert str(found.value) == str(expected.value)
    for wrong in (b"{", b"[]", b'{"N": }', b"\xff", b"{" * 5000, b"nothing.json"):
        with pytest.raises(ClientError):
            BridgeStanClient(path, wrong)
    pairs = [(client.unconstrain_json, model.param_unconstrain_json)]
    for values in ({"mu": 1}, {**VALUES, "sigma": -1}, {**VALUES, "C": [[1, 2], [2, 1]]}):
        check_same_error(pairs, values)
    at = client.unconstrained_names().index("mu")
    for value, calls in {
        np.inf: [(client.density, model.log_density), (client.gradient, model.log_density_gradient)],
        9.0: [
            (client.hessian, model.log_density_hessian),
            (lambda x: client.constrain(x, tp=True), lambda x: model.param_constrain(x, include_tp=True)),
        ],
        7.5: [
            (
                lambda x: client.constrain(x, gq=True, rng=client.rng(1)),
                lambda x: model.param_constrain(x, include_gq=True, rng=model.new_rng(1)),
            )
        ],
        -9.0: [(lambda x: client.hessian_vector(x, x), lambda x: model.log_density_hessian_vector_product(x, x))],
    }.items():
        x[at] = value
        check_same_error(calls, x)
    negative = model.param_constrain(np.zeros(client.n))
    negative[client.names().index("sigma")] = -1
    check_same_error([(client.unconstrain, model.param_unconstrain)], negative)
    rng = client.rng(2)
    for values, text in {
        "sigma": ({"sigma": -1}, "the initial value of 'sigma' is not in its support: sigma is -1, but must be"),
        "other": ({"other": -1}, "no initial value is for a parameter of the model (mu, sigma, s, C, a, m, none, w:1,"),
        "mu": ({"mu": 9}, "initialization failed between (-2, 2) after 3 attempts: the last one: p of 9"),
        "all": ({**VALUES, "mu": 9}, "initialization failed at the initial values given: p of 9"),
        "inf": ({"mu": "Inf"}, "the initial value of 'mu' is not finite"),
    }.values():
        with pytest.raises(ClientError) as raised:
            client.initialize(values, rng, tries=3)
        assert text in str(raised.value)
    for radius, tries in ((-1.0, 1), (np.nan, 1), (2.0, 0)):
        with pytest.raises(ClientError):
            client.initialize(None, rng, radius, tries)


def check_same_error(pairs: Any, *arguments: Any) -> None:
    for ours, expected in pairs:
        with pytest.raises(ClientError) as found:
            ours(*arguments)
        with pytest.raises(ulam.UlamError) as raised:
            expected(*arguments)
        assert str(found.value) == str(raised.value)


def test_nothing_where_something_must_be(client: BridgeStanClient) -> None:
    """NULL for every pointer of every function: an error, or nothing where none can be told. Freeing it is fine."""
    library = client.library
    for name, (result, kinds) in PROTOTYPES.items():
        if name in ("bs_set_print_callback", "bs_model_construct", "bs_rng_construct"):
            continue
        nothing = [None if kind in (ctypes.c_void_p, ctypes.c_char_p) else 1 for kind in kinds]
        assert getattr(library, name)(*nothing) in ((-1,) if result is ctypes.c_int else (None,))
        if result is not ctypes.c_int or kinds[-1] is not ctypes.c_void_p or len(kinds) < 4:
            continue
        if kinds[0] is ctypes.c_void_p:  # with a model, the others NULL
            with client.message() as error:
                assert getattr(library, name)(client.model, *nothing[1:-1], error) == -1
                text = ctypes.c_char_p.from_address(error).value
                assert text is not None and b"must not be NULL" in text
                library.bs_free_error_msg(ctypes.c_void_p.from_address(error).value)
            assert getattr(library, name)(client.model, *nothing[1:]) == -1
    assert library.bs_model_construct(b"{", 1, None) is None
    for name in R_NAMES:
        getattr(library, name)(*[None] * 10)


def test_r_functions(client: BridgeStanClient, x: Any) -> None:
    """Every argument is an address. Errors are told as a text, which R copies, and as its address, to free it by."""
    library, count = client.library, ctypes.c_int()
    model, yes = ctypes.c_void_p(client.model), ctypes.c_int(1)

    def call(name: str, *arguments: Any) -> None:
        def address(a: Any) -> Any:
            return a.ctypes.data_as(ctypes.c_void_p) if isinstance(a, np.ndarray) else ctypes.byref(a)

        getattr(library, f"bs_{name}_R")(*map(address, arguments))

    numbers = [ctypes.c_int() for _ in VERSION]
    call("version", *numbers)
    assert tuple(number.value for number in numbers) == BRIDGESTAN_VERSION
    text = ctypes.c_char_p()
    for name, arguments, expected in (
        ("name", (), library.bs_name(client.model)),
        ("model_info", (), library.bs_model_info(client.model)),
        ("param_names", (yes, yes), library.bs_param_names(client.model, True, True)),
        ("param_unc_names", (), library.bs_param_unc_names(client.model)),
    ):
        call(name, model, *arguments, text)
        assert text.value == expected
    call("param_num", model, yes, yes, count)
    assert count.value == client.size(True, True)
    call("param_unc_num", model, count)
    assert count.value == client.n

    rs_own = ctypes.c_char_p(b"R's own text")
    code, message, address = ctypes.c_int(5), ctypes.c_char_p(rs_own.value), ctypes.c_void_p(1)
    value, out, wide = ctypes.c_double(), np.empty(client.n), np.empty((client.n, client.n))
    direction = np.ones(client.n)
    rng = ctypes.c_void_p()
    call("rng_construct", ctypes.c_int(4), rng, message, address)
    assert rng.value and not address.value
    told = (code, message, address)

    def checked(name: str, *arguments: Any) -> None:
        code.value = 5
        call(name, model, *arguments, *told)
        assert code.value == 0 and not address.value and message.value == rs_own.value

    values = np.empty(client.size(True, True))
    checked("param_constrain", yes, yes, x, values, rng)
    assert (values == client.constrain(x, True, True, client.rng(4))).all()
    plain = client.constrain(x)
    checked("param_unconstrain", plain, out)
    assert (out == client.unconstrain(plain)).all()
    json_text = ctypes.c_char_p(str(VALUES).replace("'", '"').encode())
    checked("param_unconstrain_json", json_text, out)
    assert (out == client.unconstrain_json(VALUES)).all()
    checked("param_initialize", json_text, rng, ctypes.c_double(2), ctypes.c_int(10), yes, out)
    assert (out == client.unconstrain_json(VALUES)).all()
    checked("log_density", yes, yes, x, value)
    assert value.value == client.density(x)
    checked("log_density_gradient", yes, yes, x, value, out)
    assert same((value.value, out), client.gradient(x))
    checked("log_density_hessian", yes, yes, x, value, out, wide)
    assert same((value.value, out, wide), client.hessian(x))
    checked("log_density_hessian_vector_product", yes, yes, x, direction, value, out)
    assert same((value.value, out), client.hessian_vector(x, direction))

    x[client.unconstrained_names().index("mu")] = np.inf
    call("log_density", model, yes, yes, x, value, *told)
    assert code.value == -1 and b"p of inf" in (message.value or b"")
    assert ctypes.string_at(address.value or 0) == message.value
    call("free_error_msg", address)
    call("rng_destruct", rng)
    made = ctypes.c_void_p()
    call("model_construct", ctypes.c_char_p(b"{"), ctypes.c_int(1), made, message, address)
    assert not made.value and b"not valid JSON" in (message.value or b"")
    call("free_error_msg", address)
    data = ctypes.c_char_p(str(DATA).replace("'", '"').encode())
    call("model_construct", data, ctypes.c_int(1), made, message, address)
    assert made.value and not address.value
    call("model_destruct", made)


def test_printed_lines(client: BridgeStanClient, printed: list[bytes], x: Any) -> None:
    """To the callback, and to standard output without one; once for each evaluation, with the order kept."""
    printed.clear()
    client.hessian(x)
    value = f"mu = {x[0]:g}".encode()
    assert printed == [value, b"\n"]
    BridgeStanClient(client.library._name, DATA).close()
    assert printed[2:] == [b"z is set", b"\n"]


def test_one_model_in_many_threads(model: ulam.StanModel, printed: list[bytes], x: Any) -> None:
    """A new one, whose units are first used by all at once."""
    client = BridgeStanClient(model.bridgestan_library(), DATA, seed=7)
    points = [x * scale for scale in np.linspace(0.1, 1, 16)]

    def work(point: Any) -> Any:
        rng = client.rng(9)
        found = []
        for _ in range(5):
            found = [*client.gradient(point), client.constrain(point, True, True, rng), client.names(True, True)]
            with pytest.raises(ClientError, match="p of inf"):
                client.density(np.full(client.n, np.inf))
        client.library.bs_rng_destruct(rng)
        return found

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(work, points))
    alone = work(points[3])
    assert same(found[3], alone)
    client.close()


def test_library_outlives_the_model_and_is_of_this_process_only(x: Any) -> None:
    program = "data { real y; } parameters { real mu; } model { y ~ normal(mu, 1); }"
    model = ulam.StanModel(program, {"y": 1}, opt_level=0)
    path = model.bridgestan_library()
    assert ulam.StanModel(program, {"y": 2}, opt_level=0).bridgestan_library() == path
    assert ulam.StanModel(program.replace("1)", "2)"), {"y": 1}, opt_level=0).bridgestan_library() != path
    del model
    assert ulam.StanProgram(program, opt_level=0).bridgestan_library() == path
    client = BridgeStanClient(path, {"y": 4})
    assert client.density(np.array([1.0])) == -4.5
    code = f"""if True:
        import ctypes
        library = ctypes.CDLL({path!r})
        error = ctypes.c_char_p()
        construct = library.bs_model_construct
        construct.restype = ctypes.c_void_p
        assert construct(None, 1, ctypes.byref(error)) is None
        print(error.value.decode())
        assert library.bs_param_num(None, 0, 0) == -1
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "part of the process of ulam that made it" in done.stdout


def test_level_with_data(x: Any) -> None:
    """Code that is for the data of a model only is not the library's."""
    program = "data { int N; vector[N] y; } parameters { real mu; } model { y ~ normal(mu, 1); }"
    model = ulam.StanModel(program, {"N": 1, "y": [1]}, opt_level=4)
    client = BridgeStanClient(model.bridgestan_library(), {"N": 2, "y": [1, 2]})
    assert client.density(np.array([1.0])) == -0.5


def test_errors_of_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be compiled is an error of the call that needs it, without a traceback, and is tried again."""
    model = ulam.StanModel("parameters { real x; } model { x ~ std_normal(); }", opt_level=0)
    client = BridgeStanClient(model.bridgestan_library())
    code = model._program.code  # pyright: ignore[reportPrivateUsage]
    whole = code.unit

    def fail(name: str) -> Any:
        raise MemoryError if name == "value_propto" else RuntimeError("LLVM is\nnot in the mood")

    with monkeypatch.context() as patch:
        patch.setattr(code, "unit", fail)
        texts = {client.density: "MemoryError", client.gradient: "RuntimeError: LLVM is\nnot in the mood"}
        for call, text in texts.items():
            with pytest.raises(ClientError) as raised:
                call(np.zeros(1))
            assert str(raised.value) == text

        def interrupt(name: str) -> Any:
            raise KeyboardInterrupt

        patch.setattr(code, "unit", interrupt)
        with pytest.raises(KeyboardInterrupt):
            client.density(np.zeros(1))
    assert code.unit == whole
    assert client.gradient(np.ones(1))[1] == [-1.0]
