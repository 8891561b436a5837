"""Values of tuple type in listings of traces."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.errors import ArgumentError
from ulam.trace import MISSING, NestedCallNode, format_levels, functions, track

pytestmark = pytest.mark.usefixtures("quick_code")

PROGRAM = """
functions {
  real f(tuple(real, array[] tuple(int, vector)) t, int k) { return t.1 * t.2[k].2[1]; }
  tuple(real, vector) g(vector v) { return (sum(v), v * 2); }
  real deep(tuple(real, real) t, int n) { if (n == 0) return t.1 + t.2; return deep(t, n - 1); }
}
data { array[2] tuple(int, vector[2]) d; }
parameters { tuple(real, array[2] tuple(real, vector[2])) q; }
model {
  tuple(real, vector[2]) h = g(q.2[2].2);
  target += f((q.1, d), 2) + h.1 + sum(h.2) + deep((q.1, 1), 100);
}
"""


def test_tuples_show_their_fields() -> None:
    model = ulam.StanModel(PROGRAM, {"d": [(1, [1, 2]), (2, [3, 4])]}, opt_level=0)
    text = format_levels(model.track_density(np.arange(7.0)))
    lines = text.splitlines()
    assert "⟨g⟩(@" in text and "= (11.0, [10.0, 12.0])" in text
    assert "[Arg:§1:%2] (0.0, ([1, 2], [[1.0, 2.0], [3.0, 4.0]]))" in text
    tuples = [line for line in lines if "tuple" in line or "field" in line]
    assert tuples and not any(line.endswith("?") for line in tuples)


COMPLEX = """
functions {
  complex_vector f(complex z, array[] tuple(int, complex) t) {
    complex_vector[2] v = [exp(z), t[1].2]';
    v[1] *= z;
    return v;
  }
  void told(complex z) {
    if (is_nan(get_real(z))) reject(z);
  }
}
data { tuple(complex, real) d; }
parameters { complex a; complex_vector[2] v; array[2] tuple(complex, simplex[2]) q; }
model {
  complex_vector[2] b = f(a * d.1, {(1, q[1].1), (2, a)});
  told(b[1]);
  target += -sum(abs(b).^2) - norm(q[2].1 * q[1].2[1]) - norm(v[1] / a) - abs(v[2]);
}
"""


@pytest.fixture(scope="module")
def complex_model() -> ulam.StanModel:
    return ulam.StanModel(COMPLEX, {"d": (1 + 1j, 2.0)}, opt_level=0)


def test_complex_numbers_show_both_parts_as_one(complex_model: ulam.StanModel) -> None:
    text = format_levels(complex_model.track_density(np.linspace(0.1, 0.9, 12)))
    assert "= 0.1 + 0.17272727272727273i" in text  # a
    assert "([1, 2], [" in text and not any(line.endswith("?") for line in text.splitlines())


def test_complex_and_tuple_arguments(complex_model: ulam.StanModel) -> None:
    node = complex_model.track("f", 1 + 2j, [(1, 2 + 1j), (2, 3)])
    assert str(node).endswith("= [-6.074657727766451 + 0.2093179044911917i, 2.0 + 1.0i]")
    assert isinstance(node, NestedCallNode)
    update = node.trace.update({node[2]: 2.0})
    assert str(update.trace.root) == str(complex_model.track("f", 2 + 2j, [(1, 2 + 1j), (2, 3)]))
    for wrong, said in [
        ([1.0, 2.0], "'z' is complex, but an array of reals with the sizes [2] was given"),
        ("x", "'z' is complex, but"),
    ]:
        with pytest.raises(ArgumentError, match=re.escape(said)):
            complex_model.track("f", wrong, [(1, 2j)])
    with pytest.raises(ArgumentError, match="'t' is a tuple of 2, but a tuple of 3 was given"):
        complex_model.track("f", 1, (1, 2, 3))


def test_adjoints_go_through_complex_numbers_and_tuples(complex_model: ulam.StanModel) -> None:
    assert complex_model.check_gradient(np.linspace(0.1, 0.9, 12))


def test_a_trace_with_tuples_can_be_written_as_stan() -> None:
    model = ulam.StanModel(
        "functions { real f(complex z, tuple(complex, array[] complex) t) { return norm(z * t.1 + t.2[1]); } }\n"
        "parameters { complex a; tuple(real<lower=0>, complex) p; }\n"
        "model { target += -f(a, (p.2, {a, 1i})) - p.1; }",
        opt_level=0,
    )
    node = model.track_density(np.linspace(0.1, 0.9, 5))
    written = ulam.StanModel(node.to_stan(name="g"), opt_level=0)
    assert written.track("g", *[operand.value for operand in node.operands]).value == node.value


RESULTS = """
functions {
  complex turned(complex z, real a) { return z * to_complex(cos(a), sin(a)); }
  complex_vector spread(vector x) { return fft(x); }
  complex_matrix square(complex_matrix m) { return m * m'; }
  array[] complex both(complex z) { return {z, 2 * z}; }
  tuple(complex_vector, tuple(int, complex)) nested(complex_vector z) { return (2 * z, (3, z[1])); }
  array[] tuple(complex, int) pairs(complex z) { return {(z, 1), (2 * z, 2)}; }
  complex first(complex z, int n) {
    complex r = z;
    for (i in 1:n) {
      if (i > 2) return r;
      r *= z;
    }
    return r;
  }
}
"""


@pytest.mark.parametrize(
    ("name", "arguments", "wanted"),
    [
        ("turned", (1 + 2j, 0.0), 1 + 2j),
        ("spread", ([1.0, 2.0, 3.0, 4.0],), [10, -2 + 2j, -2, -2 - 2j]),
        ("square", (np.array([[1, 2j], [3, 4]]),), [[-3, 3 + 8j], [3 + 8j, 25]]),
        ("both", (1j,), [1j, 2j]),
        ("nested", (np.array([1j, 2]),), ([2j, 4], (3, 1j))),
        ("pairs", (1 + 2j,), ([1 + 2j, 2 + 4j], [1, 2])),
        ("first", (1 + 1j, 4), -2 + 2j),
        ("first", (1 + 1j, 1), 2j),
    ],
)
def test_complex_results_of_functions(name: str, arguments: tuple[object, ...], wanted: object) -> None:
    node = track(functions(RESULTS)[name], *arguments)
    assert not any(line.endswith("?") for line in format_levels(node).splitlines())
    assert isinstance(node, NestedCallNode) and node.value is MISSING
    assert_same(node.whole_value, wanted)


def assert_same(found: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple):
        assert isinstance(found, tuple)
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-14)


def test_values_that_are_no_tuples_are_whole(complex_model: ulam.StanModel) -> None:
    node = complex_model.track("f", 1 + 2j, [(1, 2 + 1j), (2, 3)])
    assert isinstance(node, NestedCallNode) and node[2].whole_value == node[2].value == 1.0
