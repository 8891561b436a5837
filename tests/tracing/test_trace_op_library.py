"""The ops of a traced program one by one: values with the bits of the run, pullbacks against central differences."""

import numpy as np
import pytest

from ulam import StanModel
from ulam.runtime.errors import FatalError, ProgramError, Rejection
from ulam.trace import NestedCallNode, Only, Scripted, TraceContext
from ulam.tracing.gradients.moves import is_move
from ulam.tracing.nodes import ItemNode

SCALARS = """functions {
  real helper(real x, data real y, int n) { return x * y + n; }
  real scalars(real x, real y, int n) {
    real a = x * x - y / x + -y;
    real b = x ^ n + pow(x, 2) + x ^ y + fma(x, y, a) + hypot(x, y);
    int k = n * 3 %/% 2 + n % 2;
    real c = exp(a) + log(x) + sqrt(x) + lgamma(x) + log_sum_exp(a, b) + inv_logit(y) + k;
    real d = normal_lpdf(x | y, 2.0) + poisson_lpmf(n | x) + student_t_lcdf(y | 3, x, 1.5);
    if (x > y && !(n == 3)) d += helper(x, 2.0, n);
    return c + d + fmax(x, y);
  }
}"""

CONTAINERS = """functions {
  real containers(vector v, matrix m, array[] real q, array[] int ii, real s) {
    vector[3] w = v * s + m * v;
    matrix[3, 3] p = m + m';
    array[3] vector[2] nested;
    w[2] = v[1] * s;
    w[{1, 3}] = v[2:3];
    p[2] = v';
    p[, 1] = w;
    p[{1, 2}, {2, 3}] = m[1:2, 1:2];
    array[2] matrix[2, 3] cube = {m[1:2], m[2:3]};
    cube[1, :, {3, 1}] = m[{3, 1}, 2:3];
    cube[{2, 1}, 1, {3, 2}] = {m[1, 1:2], m[2, 2:3]};
    for (i in 1:3) nested[i] = [w[i], q[i]]';
    vector[3] u = w[ii];
    real t = sum(cube[1]) + sum(cube[2, {2, 1}, 2]) + sum(cube[{1, 2}, 2, 2:3][2]) + sum(cube[2, 1]);
    t += p[2, 3] + sum(p[ii, 2]) + sum(p[2, ii]) + nested[2, 1] + sum(nested[ii, 2]);
    for (e in m) t += e * s;
    for (x in nested) t += x[2] ^ 2;
    row_vector[3] r = [s, w[1], w[2]];
    matrix[2, 3] stacked = [r, v'];
    array[2] vector[3] both = {u, w};
    matrix[3, 3] a = m * m' + diag_matrix(rep_vector(4, 3));
    return t + sum(stacked) + sum(both[2]) + log_determinant(a) + sum(a \\ u) + sum(r / a) + quad_form(a, u)
           + sum(cumulative_sum(q)) + dot_product(r, v) + sum(softmax(u)) + normal_lpdf(w | u, s)
           + multi_normal_lpdf(u | w, a) + sum(cholesky_decompose(a)) + sum(to_vector(stacked)) + sum(q);
  }
}"""

SOLVERS = """functions {
  vector decay(real t, vector y, vector theta, array[] int k) { return -theta .* y * k[1]; }
  real solvers(vector theta, vector y0, array[] real q, data array[] real ts) {
    array[2] vector[2] y = ode_rk45(decay, y0, 0.0, ts, theta, {1});
    array[2] vector[2] stiff = ode_bdf(decay, y0, 0.0, ts, theta * q[2], {1});
    return sum(y[2]) + sum(stiff[1]);
  }
}"""

THROWS = """functions {
  real pick(vector v, int i) { return v[i]; }
  vector put(vector v, int i, vector w) { vector[3] u = v; u[i:] = w; return u; }
  real density(real x, real s) {
    return normal_lpdf(x | 0, s);
  }
}"""


def _items(root):
    nodes = [root]
    while nodes:
        for node in nodes.pop().children:
            if isinstance(node, NestedCallNode):
                nodes.append(node)
            elif isinstance(node, ItemNode):
                yield node


def _values(node):
    return [operand.value for operand in node.operands]


def _tracked(source, name, *arguments, context=None, **options):
    context = context or TraceContext(containers="copy")
    return StanModel(source).track(name, *arguments, context=context, on_error="raise", **options)


def _containers():
    rng = np.random.default_rng(3)
    return rng.normal(size=3), rng.normal(size=(3, 3)), [0.5, 1.5, 2.5], [3, 1, 1], 1.25


CASES = {
    "scalars": lambda: _tracked(SCALARS, "scalars", 1.75, 0.5, 2),
    "not entered": lambda: _tracked(SCALARS, "scalars", 1.75, 0.5, 2, context=Only()),
    "containers": lambda: _tracked(CONTAINERS, "containers", *_containers()),
    "solvers": lambda: _tracked(SOLVERS, "solvers", [0.7, 1.3], [1.0, 2.0], [0.1, 0.4, -0.3], [0.5, 1.0]),
}


@pytest.fixture(scope="module", params=CASES)
def root(request):
    return CASES[request.param]()


def test_values_have_the_bits_of_the_run(root):
    library = root.trace.op_library
    count = 0
    for node in _items(root):
        found = library.value(node, _values(node))
        assert type(found) is type(node.value), str(node)
        assert np.array_equal(found, node.value, equal_nan=True), str(node)
        count += 1
    assert count > 10


def test_pullbacks_are_central_differences(root):
    library = root.trace.op_library
    rng = np.random.default_rng(1)
    checked = 0
    for node in _items(root):
        operands, value = _values(node), node.value
        if isinstance(value, int) or getattr(value, "dtype", None) == np.int32:
            assert library.pullback(node, operands, 1.0) == [None] * len(operands)
            continue
        cotangent = rng.normal(size=np.shape(value))[()]
        adjoints = library.pullback(node, operands, cotangent)
        for n, (operand, adjoint) in enumerate(zip(operands, adjoints, strict=True)):
            if adjoint is None or not np.all(np.isfinite(value)):
                continue
            assert np.shape(adjoint) == np.shape(operand)
            direction = rng.normal(size=np.shape(operand))[()]
            if node.function == "cholesky_decompose" or (node.function == "multi_normal_lpdf" and n == 2):
                direction = direction + direction.T  # a symmetric matrix stays one
            ends = [
                library.value(node, [*operands[:n], operand + step * direction, *operands[n + 1 :]])
                for step in (1e-6, -1e-6)
            ]
            expected = np.sum(cotangent * (ends[0] - ends[1])) / 2e-6
            assert np.sum(adjoint * direction) == pytest.approx(expected, rel=2e-6, abs=1e-7), str(node)
            checked += 1
    assert checked > 5


def test_what_stan_calls_data_has_no_adjoint():
    root = _tracked(SCALARS, "scalars", 1.75, 0.5, 2, context=Only())
    (call,) = (node for node in _items(root) if node.function == "helper")
    (x, y, n) = root.trace.op_library.pullback(call, _values(call), 3.0)
    assert (x, y, n) == (6.0, None, None)


def test_equal_ops_are_compiled_once():
    root = _tracked("functions { real f(real x) { return x * x + x * x * x - x * 2 + (x + x); } }", "f", 3.0)
    assert len(root.trace.op_library.names) == 4  # x * y, x + y, x * 2.0, x - y


@pytest.mark.parametrize(
    ("name", "arguments", "wrong"),
    [
        ("pick", ([1.0, 2.0], 2), {1: 3}),
        ("put", ([1.0, 2.0, 3.0], 2, [4.0, 5.0]), {1: 4}),
        ("put", ([1.0, 2.0, 3.0], 2, [4.0, 5.0]), {2: np.ones(3)}),
        ("density", (1.0, 2.0), {2: -1.0}),
    ],
)
def test_errors_are_those_of_the_program(name, arguments, wrong):
    model = StanModel(THROWS)
    root = model.track(name, *arguments)
    (node,) = (n for n in _items(root) if is_move(n.item) or n.function == "normal_lpdf")
    operands = _values(node)
    for position, value in wrong.items():
        operands[position] = value
    with pytest.raises(ProgramError) as caught:
        root.trace.op_library.value(node, operands)
    changed = [*arguments]
    for position, value in wrong.items():
        changed[1 if name == "density" else position] = value
    error = model.track(name, *changed).trace.error
    assert error is not None
    assert str(caught.value) == str(error.exception)
    assert type(caught.value) is (Rejection if name == "density" else FatalError)


def test_draws_draw_from_what_is_given():
    source = "functions { real f_rng(real a) { return uniform_rng(0, a); } }"
    root = _tracked(source, "f_rng", 3.0, rng=Scripted([0.25]))
    (draw,) = _items(root)
    library = root.trace.op_library
    assert library.pullback(draw, _values(draw), 1.0) == [None, None]
    assert draw.value == 0.75
