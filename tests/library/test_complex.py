"""Complex numbers: arithmetic and functions against Python's, gradients against differences, data and output."""

from __future__ import annotations

import cmath
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.names import by_name

pytestmark = pytest.mark.usefixtures("quick_code")

# ---------------------------------------------------------------- arithmetic and elementary functions

UNARY: Sequence[str] = "exp log log10 sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh".split()
BINARY = ("z + w", "z - w", "z * w", "z / w", "z ^ w", "conj(z) * w", "z == w ? z : w", "to_complex(arg(z), norm(w))")
FUNCTIONS = f"""
data {{ int N; array[N] complex z; array[N] complex w; }}
generated quantities {{
  array[N, {len(UNARY)}] complex f;
  array[N, {len(BINARY)}] complex g;
  for (n in 1:N) {{
    {' '.join(f'f[n, {k}] = {name}(z[n]);' for k, name in enumerate(UNARY, 1))}
    {' '.join(f'g[n, {k}] = {text.replace("z", "z[n]").replace("w", "w[n]")};' for k, text in enumerate(BINARY, 1))}
  }}
}}
"""


def _pairs(values: Any) -> Any:
    return np.stack((np.real(values), np.imag(values)), axis=-1).tolist()


def _outputs(model: ulam.StanModel, theta: Any = ()) -> dict[str, Any]:
    values = model.param_constrain(np.asarray(theta, float), include_tp=True, include_gq=True, rng=model.new_rng(1))
    return by_name(model.written_variables(), values)


@pytest.fixture(scope="module")
def points() -> tuple[Any, Any]:
    """Random points, points on the axes beside each branch point, with zeros of both signs, and sizes far from 1."""
    generator = np.random.default_rng(1)
    parts = generator.normal(size=(2, 40, 2)) * np.exp(generator.normal(size=(2, 40, 1)) * 2)
    random = parts[0] @ [1, 1j]
    axis = [complex(x, y) for x in (-2.5, -0.5, 0.5, 2.5) for y in (0.0, -0.0)]
    axis += [complex(x, y) for y in (-2.5, -0.5, 0.5, 2.5) for x in (0.0, -0.0)]
    far = [complex(1e-200, 1e-201), complex(-1e150, 3e149), complex(300, 2), complex(-300, -2), complex(1e-9, 1)]
    z = np.array([*random, *axis, *far])
    w = np.resize(parts[1] @ [1, 1j], len(z))
    w[:3] = z[:3]
    return z, w


@pytest.fixture(scope="module")
def found(points: tuple[Any, Any]) -> dict[str, Any]:
    z, w = points
    data = json.dumps({"N": len(z), "z": _pairs(z), "w": _pairs(w)})
    return _outputs(ulam.StanModel(FUNCTIONS, data, opt_level=0))


@pytest.mark.parametrize("name", UNARY)
def test_functions_are_those_of_c99(name: str, points: tuple[Any, Any], found: dict[str, Any]) -> None:
    computed = found["f"][:, UNARY.index(name)]
    for z, value in zip(points[0], computed, strict=True):
        try:
            expected = getattr(cmath, name)(z)
        except OverflowError:
            continue
        size = max(abs(expected), 1e-300)
        assert abs(value - expected) <= 2e-14 * size + (1e-16 if abs(z) < 1e100 else 0), (name, z, value, expected)
        for part, wanted in ((value.real, expected.real), (value.imag, expected.imag)):
            if abs(wanted) > 1e-14 * size:  # the side of the branch cut
                assert math.copysign(1, part) == math.copysign(1, wanted), (name, z, value, expected)


def test_operators(points: tuple[Any, Any], found: dict[str, Any]) -> None:
    z, w = points
    with np.errstate(all="ignore"):
        expected = [
            z + w, z - w, z * w, z / w, np.exp(w * np.log(z)), z.conj() * w, np.where(z == w, z, w),
            np.angle(z) + 1j * np.abs(w) ** 2,
        ]  # fmt: skip
    for text, computed, wanted in zip(BINARY, found["g"].T, expected, strict=True):
        usual = np.isfinite(wanted) & (np.abs(z) < 1e100)
        np.testing.assert_allclose(computed[usual], wanted[usual], rtol=1e-12, atol=1e-300, err_msg=text)


# ---------------------------------------------------------------- every place in a program

PROGRAM = """
functions {
  complex twice(complex z, real x) { return 2 * z * x; }
  complex power(complex z, int n) { return n == 0 ? 1 : z * power(z, n - 1); }
  tuple(complex, real) polar_form(complex z) { return (z / abs(z), abs(z)); }
}
data { int N; complex z0; complex_vector[N] zv; array[2] complex_row_vector[2] zr; complex_matrix[2, 3] zm; }
transformed data { complex_matrix[3, 2] zt = zm'; }
parameters {
  complex a; complex_vector[2] v; complex_matrix[2, 2] m; array[2] complex_row_vector[2] r;
  tuple(complex, real<lower=0>) t; array[2] tuple(complex_vector[2], real) at;
}
transformed parameters {
  complex_vector[2] p = m * v;
  p[2] += power(a, 3) * 2i;
  complex_matrix[2, 2] q = m;
  q[1, 2] = a;
  q[, 1] = v;
  array[2] complex b = {1, a};
}
model {
  target += -norm(a - z0) - norm(twice(a, 3)) - polar_form(p[1]).2;
  for (n in 1:2) target += -norm(p[n] - zv[n]) - sum(abs(r[n] - zr[n]).^2);
  target += -get_real(dot_self(to_vector(q))) - get_imag(sum(q * q));
  for (x in b) target += get_real(x / (x + 2));
  target += -norm(t.1) * t.2 - abs(a != 0 ? at[1].1[2] : a) - at[2].2 ^ 2 - norm(at[2].1[1] * at[1].1[1]);
  target += -get_real(prod(v)) + norm(q[2] * zt[1:2, 1]);
}
generated quantities {
  complex_matrix[2, 2] inverse_times = m / (m + 1);
  complex_row_vector[2] solved = r[1] / m;
  complex_vector[2] powers = v ^ 2 ./ v;
  print(a, " ", v, " ", zm, " ", b);
}
"""
DATA = {
    "N": 2, "z0": [1, -2], "zv": [[0.5, 1], [2, -1]], "zr": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]],
    "zm": [[[1, 0], [2, 1], [3, -1]], [[4, 2], [5, 0], [6, 0.5]]],
}  # fmt: skip


@pytest.fixture(scope="module", params=[pytest.param(0, marks=pytest.mark.slow), 3])
def model(request: pytest.FixtureRequest) -> ulam.StanModel:
    return ulam.StanModel(PROGRAM, json.dumps(DATA), opt_level=request.param, capture_stan_prints=False)


def test_gradients_and_hessians(model: ulam.StanModel) -> None:
    theta = np.random.default_rng(2).normal(size=model.param_unc_num())
    _, gradient = model.log_density_gradient(theta)
    _, _, hessian = model.log_density_hessian(theta)
    step = 1e-6 * np.eye(len(theta))
    differences = [(model.log_density(theta + e) - model.log_density(theta - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-6)
    beside = [[model.log_density_gradient(theta + s * e)[1] for s in (1, -1)] for e in step]
    slopes = [(after - before) / 2e-6 for after, before in beside]
    np.testing.assert_allclose(hessian, slopes, rtol=1e-5, atol=1e-5)


def test_names_values_and_back(model: ulam.StanModel) -> None:
    names = model.param_unc_names()
    assert names[:6] == ["a.real", "a.imag", "v.1.real", "v.1.imag", "v.2.real", "v.2.imag"]
    assert names[6:10] == ["m.1.1.real", "m.1.1.imag", "m.2.1.real", "m.2.1.imag"]
    assert names[22:25] == ["t:1.real", "t:1.imag", "t:2"] and names[25] == "at.1:1.1.real"
    theta = np.random.default_rng(3).normal(size=len(names))
    constrained = model.param_constrain(theta)
    np.testing.assert_allclose(model.param_unconstrain(constrained), theta, atol=1e-14)
    found = _outputs(model, theta)
    assert found["a"] == complex(*theta[:2])
    np.testing.assert_array_equal(found["m"].T.ravel(), theta[6:14].view(complex))
    expected = found["m"] @ found["v"] + [0, found["a"] ** 3 * 2j]
    np.testing.assert_allclose(found["p"], expected, rtol=1e-13)
    np.testing.assert_allclose(found["inverse_times"], found["m"] @ np.linalg.inv(found["m"] + 1), rtol=1e-10)
    np.testing.assert_allclose(found["solved"], found["r"][0] @ np.linalg.inv(found["m"]), rtol=1e-10)
    np.testing.assert_allclose(found["powers"], found["v"], rtol=1e-12)
    values = {name: _pairs(found[name]) for name in ("a", "v", "m", "r")}
    values["t"] = {"1": _pairs(found["t:1"]), "2": found["t:2"]}
    values["at"] = [{"1": _pairs(found["at:1"][n]), "2": found["at:2"][n]} for n in range(2)]
    np.testing.assert_allclose(model.param_unconstrain_json(json.dumps(values)), theta, atol=1e-14)


TRACED = """
data { complex d; }
parameters { complex z; complex_vector[2] v; }
model { target += -norm(exp(z) - d) - sum(abs(v * z)); }
"""


def test_containers_of_complex_numbers_in_tuples_are_printed_as_beside_them(
    quick_code: None, capfd: pytest.CaptureFixture[str]
) -> None:
    text = """
    transformed data {
      complex a = 1 + 2i;
      complex_vector[2] v = [a, 3]';
      array[2] tuple(complex, array[1] complex_vector[2]) t = {(a, {v}), (1, {2 * v})};
      print((a, {a, 2i}), " ", v, ((v, 1), 2), " ", t);
    }"""
    ulam.StanModel(text, opt_level=0, capture_stan_prints=False)
    v = "[(1,2),(3,0)]"
    assert capfd.readouterr().out == (
        f"((1,2),[(1,2),(0,2)]) {v}(({v},1),2) [((1,2),[{v}]),((1,0),[[(2,4),(6,0)]])]\n"
    )


def test_traces_have_both_parts() -> None:
    model = ulam.StanModel(TRACED, {"d": 1 + 2j}, opt_level=0)
    theta = np.array([0.3, -0.4, 1.0, 2.0, -1.0, 0.5])
    trace = model.track_density(theta)
    assert trace.value == pytest.approx(model.log_density(theta, propto=False), rel=1e-12)


def test_data_may_be_complex_arrays_of_numpy(model: ulam.StanModel) -> None:
    bound = model.bound_values()
    assert bound["z0"] == 1 - 2j and bound["zt"].shape == (3, 2)
    arrays = {name: bound[name] for name in ("N", "z0", "zv", "zr", "zm")}
    again = ulam.StanModel(PROGRAM, arrays, opt_level=0)
    np.testing.assert_array_equal(again.bound_values()["zt"], bound["zt"])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"z0": 1}, "mismatch in number dimensions declared and found"),
        ({"z0": [1, 2, 3]}, "mismatch in dimension declared and found"),
        ({"zv": [[1, 2]]}, "mismatch in dimension declared and found"),
        ({"z0": "x"}, "must be a pair of numbers"),
    ],
)
def test_wrong_data(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ulam.DataError, match=said):
        ulam.StanModel(PROGRAM, json.dumps(DATA | changed), opt_level=0)


# ---------------------------------------------------------------- transforms and decompositions

DECOMPOSITIONS = """
data { int n; int k; }
parameters { complex_vector[n] z; complex_matrix[k, k] A; matrix[k, k] B; }
model {
  complex_vector[n] f = fft(z);
  for (i in 1:n) target += -norm(f[i] - i) * i;
  complex_vector[k] w = eigenvalues(A);
  for (i in 1:k) target += -norm(w[i] - i);
}
generated quantities {
  complex_vector[n] f = fft(z);
  complex_vector[n] g = inv_fft(z);
  complex_matrix[k, k] h = inv_fft2(fft2(A));
  tuple(complex_matrix[k, k], complex_matrix[k, k]) s = complex_schur_decompose(A);
  tuple(complex_matrix[k, k], complex_vector[k]) e = eigendecompose(B);
  tuple(complex_matrix[k, k], vector[k], complex_matrix[k, k]) d = svd(A);
}
"""


OF_A_LENGTH = """
data { int n; }
parameters { complex_vector[n] z; }
model { complex_vector[n] f = fft(z); for (i in 1:n) target += get_real(f[i]) * i + get_imag(f[i]); }
generated quantities { complex_vector[n] f = fft(z); complex_vector[n] g = inv_fft(f); }
"""


def test_transforms_of_lengths_with_large_prime_factors(quick_code: None) -> None:
    """They are convolutions; their gradient is the transform of the weights."""
    for n in (101, 2 * 1009, 10007):
        model = ulam.StanModel(OF_A_LENGTH, json.dumps({"n": n}), opt_level=0)
        theta = np.random.default_rng(n).normal(size=2 * n)
        found, expected = _outputs(model, theta), np.fft.fft(theta[::2] + 1j * theta[1::2])
        assert np.linalg.norm(found["f"] - expected) <= 1e-13 * np.linalg.norm(expected)
        np.testing.assert_allclose(found["g"], found["z"], atol=1e-12)
        gradient = model.log_density_gradient(theta)[1]
        slopes = np.fft.fft(np.arange(1, n + 1) - 1j)  # of the sum of (i - 1j) f[i], whose real part is the target
        wanted = np.stack([slopes.real, -slopes.imag], axis=1).ravel()
        assert np.linalg.norm(gradient - wanted) <= 1e-13 * np.linalg.norm(wanted)


def test_transforms_and_decompositions(quick_code: None) -> None:
    for n, k in ((12, 3), (7, 4), (1, 1), (0, 0)):
        model = ulam.StanModel(DECOMPOSITIONS, json.dumps({"n": n, "k": k}), opt_level=1)
        theta = np.random.default_rng(n).normal(size=model.param_unc_num())
        found = _outputs(model, theta)
        if k:
            gradient = model.log_density_gradient(theta)[1]
            step = 1e-6 * np.eye(len(theta))
            differences = [(model.log_density(theta + e) - model.log_density(theta - e)) / 2e-6 for e in step]
            np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-4)
            np.testing.assert_allclose(found["f"], np.fft.fft(found["z"]), atol=1e-13)
            np.testing.assert_allclose(found["g"], np.fft.ifft(found["z"]), atol=1e-13)
        np.testing.assert_allclose(found["h"], found["A"], atol=1e-13)
        unitary, triangular = found["s:1"], found["s:2"]
        np.testing.assert_allclose(unitary @ triangular @ unitary.conj().T, found["A"], atol=1e-13)
        np.testing.assert_allclose(unitary.conj().T @ unitary, np.eye(k), atol=1e-13)
        assert not np.tril(triangular, -1).any()
        np.testing.assert_allclose(found["B"] @ found["e:1"], found["e:1"] * found["e:2"], atol=1e-12)
        np.testing.assert_allclose(found["d:2"], np.linalg.svd(found["A"])[1], atol=1e-13)
        left, right = found["d:1"], found["d:3"]
        np.testing.assert_allclose(left * found["d:2"] @ right.conj().T, found["A"], atol=1e-13)
        largest = left[np.argmax(np.abs(left), axis=0), np.arange(k)] if k else left.ravel()
        np.testing.assert_allclose(largest, np.abs(largest), atol=1e-14)  # which no rounding decides
