"""Errors of a running program: the right exception, message, line; the same at every level, and never a crash."""

# ruff: noqa: E501  (Stan text in tables)
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from gradient_programs import DATA

from ulam.runtime.errors import DataError, FatalError, ProgramError, Rejection
from ulam.runtime.model import StanModel

pytestmark = pytest.mark.usefixtures("quick_code")

_HEAD = """data { int N; int K; int Z; vector[N] x; real s; array[5] int idx; array[N] int y; array[N] int b; matrix[N, K] A; }
transformed data { int more = N + 1; }
"""
_RANGE = "index {} out of range; expecting index to be between 1 and {}"

# Parameters, statements (the error is on the first line of the model that has no declaration: line 6), message.
FATAL: dict[str, tuple[str, str, str]] = {
    "read": ("vector[N] v;", "target += v[more];", _RANGE.format(5, 4)),
    "read-zero": ("vector[N] v;", "target += v[Z];", _RANGE.format(0, 4)),
    "read-smallest-int": ("vector[N] v;", "target += v[-2147483647 - 1];", _RANGE.format(-(2**31), 4)),
    "read-matrix-column": ("matrix[N, K] v;", "target += v[2, N];", _RANGE.format(4, 3)),
    "read-row": ("matrix[N, K] v;", "target += sum(v[more]);", _RANGE.format(5, 4)),
    "read-nested": ("array[2] matrix[2, 2] v;", "target += v[2, K, 1];", _RANGE.format(3, 2)),
    "read-in-loop": ("vector[N] v;", "for (i in 1:5) target += v[i];", _RANGE.format(5, 4)),
    "read-in-loop-from-zero": ("vector[N] v;", "for (i in 0:3) target += v[i];", _RANGE.format(0, 4)),
    "read-in-loop-shifted": ("vector[N] v;", "for (i in 1:N) target += v[i - 1];", _RANGE.format(0, 4)),
    "read-through-indices": ("vector[3] v;", "for (i in 1:5) target += v[idx[i]];", _RANGE.format(4, 3)),
    "write": ("vector[N] v;", "vector[N] u = v; u[more] = 1; target += u;", _RANGE.format(5, 4)),
    "write-in-loop": (
        "vector[N] v;",
        "vector[N] u = v; for (i in 1:N) u[i + 1] = v[i]; target += u;",
        _RANGE.format(5, 4),
    ),
    "write-in-endless-loop": (
        "vector[N] v;",
        "vector[N] u = v; int i = 1; while (1) { u[i] = v[1]; i += 1; } target += u;",
        _RANGE.format(5, 4),
    ),
    "write-nested": (
        "array[2] matrix[2, 2] v;",
        "array[2] matrix[2, 2] u = v; u[K, 1, 1] = 2; target += u[1, 1, 1];",
        _RANGE.format(3, 2),
    ),
    "gather": ("vector[3] v;", "target += v[idx];", _RANGE.format(4, 3)),
    "gather-write": ("vector[N] v;", "vector[N] u; u[{1, 7}] = v[1:2]; target += u;", _RANGE.format(7, 4)),
    "slice": ("vector[N] v;", "target += v[2:more];", _RANGE.format(5, 4)),
    "slice-from-zero": ("vector[N] v;", "target += v[Z:2];", _RANGE.format(0, 4)),
    "slice-to": ("vector[N] v;", "target += v[:more];", _RANGE.format(5, 4)),
    "slice-write": ("vector[N] v;", "vector[N] u; u[2:more] = v; target += u;", _RANGE.format(5, 4)),
    "slice-write-size": (
        "vector[N] v;",
        "vector[N] u; u[2:3] = v; target += u;",
        "sizes must match: 2 on the left, 4 on the right",
    ),
    "whole-size": ("vector[N] v;", "vector[K] u = v; target += u;", "sizes must match: 3 on the left, 4 on the right"),
    "whole-size-of-variable": (
        "vector[N] v;",
        "vector[K] u; u[1] = 1; u = v; target += u;",
        "sizes must match: 3 on the left, 4 on the right",
    ),
    "whole-size-in-loop": (
        "vector[N] v;",
        "vector[N] u = v; for (i in 1:2) u = u[1:3]; target += u;",
        "sizes must match",
    ),
    "row-size": ("vector[N] v;", "matrix[2, 2] u; u[1] = v'; target += sum(u);", "sizes must match"),
    "conditional-size": ("vector[N] v;", "vector[N] u = v[1] < 100 ? v[1:3] : v; target += u;", "sizes must match"),
    "negative-size": (
        "real a;",
        "vector[N - 9] u; u[1] = a; target += u;",
        "u: a size must not be negative, but N - 9 is -5",
    ),
    "negative-literal-size": (
        "real a;",
        "target += rep_vector(a, -2);",
        "rep_vector: a size must not be negative, but is -2",
    ),
    "elementwise": ("vector[N] v; vector[K] w;", "target += v + w;", "sizes must match, but they are 4 and 3"),
    "product": ("matrix[N, K] v; vector[N] w;", "target += v * w;", "columns of the left factor are 3"),
    "dot-product": ("vector[2] v;", "target += dot_product(v, x);", "sizes must match, but they are 2 and 4"),
    "ragged-array": (
        "real a;",
        "array[2] vector[2] q = {[a, a]', [a]'}; target += q[1];",
        "sizes must match, but they are 2 and 1",
    ),
    "ragged-matrix": ("real a;", "target += sum([[a, a], [a]]);", "sizes must match, but they are 2 and 1"),
    "append": ("vector[2] v;", "target += sum(append_col(v, A));", "sizes must match, but they are 2 and 4"),
    "reshape": ("vector[N] v;", "target += sum(to_matrix(v, 3, 2));", "4 elements do not fill a matrix of 6"),
    "head": ("vector[N] v;", "target += head(v, more);", "elements up to 5 asked for, but there are 4"),
    "segment": ("vector[N] v;", "target += segment(v, 4, 2);", "elements up to 5 asked for, but there are 4"),
    "segment-negative": ("vector[N] v;", "target += segment(v, 4, -2);", "must not be negative, but is -2"),
    "block": ("matrix[N, K] v;", "target += sum(block(v, 2, 1, 1, 4));", "position 1 with length 4 is out of range"),
    "block-negative": ("matrix[N, K] v;", "target += sum(block(v, 2, 1, -1, 2));", "must not be negative, but is -1"),
    "column": ("matrix[N, K] v;", "target += col(v, 4);", _RANGE.format(4, 3)),
    "density-sizes": (
        "vector[N] v; vector[K] w;",
        "v ~ normal(w, 1);",
        "sizes must match, but they are 4 and 3",
    ),
    "glm-sizes": ("vector[2] v;", "b ~ bernoulli_logit_glm(A, 0.1, v);", "3"),
    "multivariate-sizes": (
        "vector[2] v; matrix[3, 3] L;", "v ~ multi_normal_cholesky([0, 0]', L);",
        "multi_normal_cholesky_lpdf: the number of rows of L is 3, but must be 2",
    ),
    "triangular-sizes": ("matrix[3, 3] M; vector[2] v;", "target += mdivide_left_tri_low(M, v);", "3"),
    "not-square": (
        "matrix[2, 3] M;",
        "target += sum(cholesky_decompose(M));",
        "must be square, but has 2 rows and 3 columns",
    ),
    "division-by-zero": ("real a;", "target += a * (y[1] / y[2]);", "Integer division by zero"),
    "remainder-by-zero": ("real a;", "target += a * (y[1] % y[2]);", "Integer division by zero"),
    "minimum-of-nothing": ("real a;", "array[Z] int k; target += min(k) * a;", "must not be empty"),
    "fatal-error": ("real a;", 'fatal_error("bad ", x, " at ", N);', "bad [0.5,-1.2,0.3,2] at 4"),
}
REJECTIONS: dict[str, tuple[str, str, str]] = {
    "scalar": ("vector[N] v; real a;", "v ~ normal(a, -1);", "normal_lpdf: sigma is -1, but must be positive!"),
    "element-of-data": (
        "vector[N] v; real a;",
        "v ~ normal(a, x);",
        "normal_lpdf: sigma[2] is -1.2, but must be positive!",
    ),
    "element-of-parameter": ("vector[N] v;", "x ~ normal(0, [1, 2, v[1] - 10, 3]');", "normal_lpdf: sigma[3] is -10.3"),
    "not-a-number": ("vector[N] v;", "v ~ normal(0.0 / 0, 1);", "normal_lpdf: mu is nan, but must be finite!"),
    "discrete": ("real a;", "y ~ poisson(a - 10);", "poisson_lpmf: lambda is -10.3, but must be nonnegative!"),
    "in-loop": ("real a;", "for (n in 1:N) if (n == 3) x[n] ~ normal(0, a - 10);", "normal_lpdf: sigma is -10.3"),
    "explicit": ("real a;", "target += normal_lpdf(a | 0, a);", "normal_lpdf: sigma is -0.3"),
    "cholesky": ("real a;", "target += sum(cholesky_decompose([[1, 2], [2, a]]));", "cholesky_decompose"),
    "not-positive-definite": ("vector[2] v;", "v ~ multi_normal([0, 0]', [[1, 2], [2, 1]]);", "not positive definite"),
    "reject": ("real a;", 'if (a < 100) reject("a is ", a, " not ", N);', "a is -0.3 not 4"),
    "reject-in-loop": (
        "real a;",
        'for (n in 1:N) { if (n * a < -1) reject("n is ", n); target += lgamma(b[n] + 1) * a; }',
        "n is 4",
    ),
    "reject-ends-while": (
        "real a;",
        "real z = 1; for (n in 1:N) { int k = 0; while (z > a) { k += 1; if (k > 7) reject(k); } target += z; }",
        "8",
    ),
}


def _model(parameters: str, statements: str, level: int) -> StanModel:
    return StanModel(f"{_HEAD}parameters {{ {parameters} }}\nmodel {{\n\n{statements}\n}}\n", DATA, opt_level=level)


def _theta(model: StanModel) -> np.ndarray:
    return np.linspace(-0.3, 0.4, model.param_unc_num())


def _raises(model: StanModel, kind: type[ProgramError], message: str) -> None:
    theta = _theta(model)
    for evaluate in (model.log_density, model.log_density_gradient):
        with pytest.raises(kind) as caught:
            evaluate(theta)
        assert message in str(caught.value)
        assert caught.value.line == 6
        assert "(in '" in str(caught.value)


@pytest.mark.parametrize("name", FATAL)
def test_fatal(name: str) -> None:
    parameters, statements, message = FATAL[name]
    _raises(_model(parameters, statements, 3), FatalError, message)


@pytest.mark.parametrize("name", REJECTIONS)
def test_rejection(name: str) -> None:
    parameters, statements, message = REJECTIONS[name]
    _raises(_model(parameters, statements, 3), Rejection, message)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("name", ["read-in-loop-shifted", "write-in-loop", "gather", "density-sizes"])
def test_levels(name: str, level: int) -> None:
    parameters, statements, message = FATAL[name]
    _raises(_model(parameters, statements, level), FatalError, message)


def test_a_model_survives_its_errors() -> None:
    """After an error the same model evaluates again, and leaves nothing behind."""
    model = _model("vector[N] v;", "vector[N] u = v; int k = v[1] < 0 ? 9 : 2; u[k] = 1; target += sum(u .* v);", 3)
    good = np.array([0.1, 0.2, 0.3, 0.4])
    expected = model.log_density_gradient(good)
    for _ in range(50):
        with pytest.raises(FatalError):
            model.log_density_gradient(-good)
        value, gradient = model.log_density_gradient(good)
        assert value == expected[0]
        np.testing.assert_array_equal(gradient, expected[1])


def test_errors_inside_functions_name_their_own_line() -> None:
    program = """functions {
  real f(vector v, int k) {
    return v[k];
  }
}
parameters { vector[2] v; }
model {
  target += f(v, 3);
}
"""
    with pytest.raises(FatalError) as caught:
        StanModel(program).log_density(np.zeros(2))
    assert caught.value.line == 3


DATA_ERRORS: dict[str, tuple[str, dict[str, Any], str]] = {
    "lower-bound": ("vector<lower=0>[3] d;", {"d": [1, -2, 3]}, "d[2] is -2, but must be greater than or equal to 0"),
    "int-bounds": (
        "array[2] int<lower=1, upper=5> d;",
        {"d": [1, 6]},
        "d[2] is 6, but must be less than or equal to 5",
    ),
    "simplex": ("simplex[2] d;", {"d": [0.5, 0.6]}, "d: the sum is 1.1, but must be 1"),
    "simplex-element": ("simplex[2] d;", {"d": [1.5, -0.5]}, "d[2] is -0.5, but must be nonnegative!"),
    "simplexes of two dimensions": (
        "array[2, 1] simplex[2] d;", {"d": [[[0.5, 0.5]], [[0.5, 0.6]]]}, "d[2, 1]: the sum is 1.1, but must be 1"
    ),
    "elements of four": (
        "array[1, 2] cov_matrix[2] d;", {"d": [[[[1, 0], [0, 1]], [[1, 3], [2, 1]]]]},
        "d[1, 2]: an element is 2, but must equal the entry on the other side of the diagonal, 3"
    ),
    "simplexes": ("array[2] simplex[2] d;", {"d": [[0.5, 0.5], [0.5, 0.6]]}, "d[2]: the sum is 1.1, but must be 1"),
    "columns": ("column_stochastic_matrix[2, 2] d;", {"d": [[0, 0], [1, 2]]}, "d[, 2]: the sum is 2, but must be 1"),
    "empty": ("simplex[0] d;", {"d": []}, "d: the number of elements is 0, but must be at least 1"),
    "ordered": ("ordered[3] d;", {"d": [1, 3, 2]}, "d[3] is 2, but must be greater than the previous element, 3"),
    "covariance": ("cov_matrix[2] d;", {"d": [[1, 2], [2, 1]]}, "not positive definite"),
    "correlation": ("array[2] corr_matrix[2] d;", {"d": [[[1, 0], [0, 1]], [[1, 0], [0, 2]]]}, "d[2][2, 2] is 2"),
}


@pytest.mark.parametrize("name", DATA_ERRORS)
def test_constraints_of_data(name: str) -> None:
    declaration, data, message = DATA_ERRORS[name]
    # Ints are checked as they are read, since sizes may depend on them; the others when all data are there.
    with pytest.raises(DataError if "int<" in declaration or " int" in declaration else Rejection) as caught:
        StanModel(f"data {{\n{declaration}\n}}\nparameters {{ real a; }}\nmodel {{ }}\n", data)
    assert message in str(caught.value)
    assert "line 2," in str(caught.value)


BLOCKS: dict[str, tuple[str, str, int]] = {
    "transformed-data": ("transformed data { real q = 2;\nreal<upper=1> t = q; }\nparameters { real a; }\nmodel { }", "t is 2", 2),
    "transformed-data-index": ("transformed data { vector[2] q = [1, 2]'; int k = 3;\nreal t = q[k]; }\nparameters { real a; }\nmodel { }", _RANGE.format(3, 2), 2),
    "transformed-parameters": ("parameters { real a; }\ntransformed parameters {\nreal<lower=0> t = a - 9; }\nmodel { }", "t is -9.3", 3),
    "transformed-parameters-element": ("parameters { vector[3] v; }\ntransformed parameters {\nvector<lower=0>[3] t = exp(v); t[3] = -1; }\nmodel { }", "t[3] is -1", 3),
    "transformed-parameters-simplex": ("parameters { vector[3] v; }\ntransformed parameters {\nsimplex[3] t = v; }\nmodel { }", "t: ", 3),
    "crossed-bounds": ("transformed data { real u = 1; }\nparameters {\nreal<lower=5, upper=u> a; }\nmodel { }", "a: the lower bound is 5, but must be less than the upper bound, 1", 3),
    "size-of-bounds": ("transformed data { vector[2] u = [1, 2]'; }\nparameters {\nvector<lower=u>[3] a; }\nmodel { }", "a: the size is 3", 3),
    "index-argument": ("parameters { simplex[3] t; }\nmodel {\n4 ~ categorical(t); }", "categorical_lpmf: y is 4, but must be in the interval [1, 3]", 3),
    "index-argument-ordered": ("parameters { ordered[2] c; }\nmodel {\n4 ~ ordered_logistic(0, c); }", "ordered_logistic_lpmf: y is 4, but must be in the interval [1, 3]", 3),
    "multiplier": ("transformed data { real u = -1; }\nparameters {\nvector<multiplier=u>[3] a; }\nmodel { }", "sigma is -1", 3),
}  # fmt: skip


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name: str) -> None:
    program, message, line = BLOCKS[name]
    with pytest.raises(ProgramError) as caught:
        model = StanModel(program)
        model.log_density_gradient(_theta(model))
    assert message in str(caught.value)
    assert caught.value.line == line


def test_generated_quantities() -> None:
    model = StanModel("parameters { real a; }\nmodel { }\ngenerated quantities {\nreal<lower=5> g = a; }\n")
    theta = np.zeros(1)
    assert model.log_density(theta) == 0
    with pytest.raises(Rejection, match="g is 0, but must be greater than or equal to 5") as caught:
        model.param_constrain(theta, include_gq=True, rng=model.new_rng(1))
    assert caught.value.line == 4


def test_negative_sizes_of_parameters() -> None:
    with pytest.raises(DataError, match="must not be negative"):
        StanModel("data { int N; }\nparameters { vector[N] a; }\nmodel { }\n", {"N": -1})


SIZE_FIRST = """
functions { real first(vector w) { real a = 0; for (i in 1:2) a += sin(w[i]); return a; } }
data { int P; vector[2] x; }
"""
SIZES_BEFORE_VALUES = {
    "global": "transformed data {{ {} }} parameters {{ real p; }} model {{ target += p; }}",
    "local": "parameters {{ real p; }} model {{ {} target += p + sum(a); }}",
}


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("place", SIZES_BEFORE_VALUES)
def test_sizes_are_checked_before_the_value_is_computed(place: str, level: int) -> None:
    """As Stan does; also where a function is written in place between the declaration and the assignment."""
    declaration = "array[P] real a = append_array(rep_array(0.6, P, P)[1][2:], {first(x)});"
    program = SIZE_FIRST + SIZES_BEFORE_VALUES[place].format(declaration)
    with pytest.raises((DataError, FatalError), match="a: a size must not be negative, but P is -1"):
        StanModel(program, data={"P": -1, "x": [1.0, 2.0]}, opt_level=level).log_density([0.5])


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("target += hmm_marginal(A, C, c);", "hmm_marginal: the sum of rho is 3, but must be 1"),
        ("target += hmm_marginal(A, C, h);", "hmm_marginal: the sum of Gamma[1] is 3, but must be 1"),
        ("target += dirichlet_lpdf(h | z);", "dirichlet_lpdf: the number of elements of theta is 2, but must be 0"),
        ("target += multi_normal_lpdf(c | c, C);", "multi_normal_lpdf: cholesky_decompose: m is not symmetric"),
        ("target += sum(quad_form_sym(C, C));", "quad_form_sym: A[2, 1] is 3, but must equal the entry on the other"),
        (
            "target += hypergeometric_lpmf(1 | 2, 3, -1);",
            "hypergeometric_lpmf: N - n is 1, but must be in the interval",
        ),
    ],
)
def test_errors_inside_the_library_name_the_function_that_is_called(statement: str, message: str) -> None:
    data = {"A": [[1, 2, 3], [4, 5, 6]], "C": [[1, 2], [3, 4]], "c": [1, 2], "h": [0.5, 0.5], "z": []}
    program = f"""data {{ matrix[2, 3] A; matrix[2, 2] C; vector[2] c; vector[2] h; vector[0] z; }}
    parameters {{ real p; }} model {{ target += p; {statement} }}"""
    with pytest.raises(ProgramError) as caught:
        StanModel(program, data, opt_level=0).log_density(np.array([0.3]))
    assert str(caught.value).startswith(message)


def test_wrong_sizes_of_parameters_name_them_once() -> None:
    with pytest.raises(DataError) as caught:
        StanModel("data { int N; } parameters { simplex[N] q; } model { }", {"N": 0}, opt_level=0)
    assert caught.value.problems == [
        "variable 'q' has a wrong size: the size of a simplex must be positive, but N is 0 (in 'model.stan', line 1, "
        "column 41)"
    ]


@pytest.mark.parametrize(
    ("declaration", "value", "found"),
    [
        ("array[2, 3] real<upper=1> x", [[1, 1, 1], [3, 1, 1]], "x[2, 1] is 3"),
        ("array[2] vector<upper=p>[2] x", [[0, 0], [0, 3]], "x[2, 2] is 3"),
        ("matrix<lower=0>[2, 3] x", [[1, 1, 1], [1, 1, -1]], "x[2, 3] is -1"),
        ("array[2] matrix<upper=1>[2, 2] x", [[[1, 1], [1, 1]], [[1, 3], [1, 1]]], "x[2, 1, 2] is 3"),
        ("matrix<upper=[[1, 2], [3, 4]]>[2, 2] x", [[1, 2], [4, 4]], "x[2, 1] is 4"),
    ],
)
def test_elements_outside_of_bounds_have_all_their_indices(declaration: str, value: Any, found: str) -> None:
    plain = re.sub("<.*>", "", declaration).replace(" x", " y")
    program = f"data {{ {plain}; real p; }} transformed data {{ {declaration} = y; }}"
    with pytest.raises(Rejection, match=re.escape(f"{found}, but must be ")):
        StanModel(program, {"y": value, "p": 2}, opt_level=0)
