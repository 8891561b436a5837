"""Containers that loops fill: the same values as those of assignments made one by one, in far less time."""

from __future__ import annotations

import numpy as np
import pytest
from work import lines_executed

from ulam import StanModel
from ulam.trace import NestedCallNode, TraceContext
from ulam.tracing.tape import frames
from ulam.tracing.tape.frames import fill_before

PROGRAM = """functions {
  vector plain(vector x) {
    int n = num_elements(x);
    vector[n] z;
    for (i in 1:n) z[i] = 2 * x[i];
    return z;
  }
  vector backwards(vector x) {
    int n = num_elements(x);
    vector[n] z = x;
    for (i in 1:n) { int j = n + 1 - i; z[j] = x[i] + 1; }
    return z;
  }
  vector repeated(vector x, array[] int at) {
    vector[3] z = rep_vector(0, 3);
    for (i in 1:num_elements(x)) z[at[i]] = x[i];
    return z;
  }
  vector sums(vector x) {
    vector[num_elements(x)] z = x;
    for (i in 2:num_elements(x)) z[i] = z[i - 1] + x[i];
    return z;
  }
  vector two(vector x) {
    int n = num_elements(x);
    vector[n] z;
    vector[n] w = x;
    for (i in 1:n) { z[i] = x[i]; w[i] = 3; z[i] = w[i] + 1; }
    return z + w;
  }
  vector constant(vector x, real c) {
    vector[num_elements(x)] z = x;
    for (i in 1:num_elements(x)) z[i] = c;
    for (i in 1:num_elements(x)) z[1] = i;
    return z;
  }
  vector with_a_branch(vector x) {
    vector[num_elements(x)] z = x;
    for (i in 1:num_elements(x)) { if (x[i] > 0) z[i] = -x[i]; else z[i] = 0; }
    return z;
  }
  vector stopped(vector x) {
    vector[num_elements(x)] z = x;
    for (i in 1:num_elements(x)) { z[i] = -x[i]; if (x[i] > 10) break; }
    return z;
  }
  matrix table(vector x) {
    int n = num_elements(x);
    matrix[n, 2 * n] m;
    for (i in 1:n) for (j in 1:2 * n) m[i, j] = x[i] * j;
    return m;
  }
  array[,] int ints(array[] int k) {
    array[size(k), size(k)] int m;
    for (i in 1:size(k)) for (j in 1:size(k)) m[j, i] = k[i] - j;
    return m;
  }
  array[] vector vectors(vector x) {
    array[2] vector[num_elements(x)] a;
    for (i in 1:num_elements(x)) a[2, i] = x[i];
    a[1] = a[2];
    return a;
  }
  real checked(vector x) {
    vector[num_elements(x)] z;
    for (i in 1:num_elements(x)) { z[i] = sqrt(x[i]); if (i > 20) reject("stop"); }
    return sum(z);
  }
}"""

X = np.random.default_rng(1).normal(size=30)
CALLS = [
    ("plain", (X,)), ("backwards", (X,)), ("repeated", (X, [1 + i % 3 for i in range(30)])), ("sums", (X,)),
    ("two", (X,)), ("constant", (X, 2.5)), ("with_a_branch", (X,)), ("stopped", (np.append(X, [11, 1, 2]),)),
    ("table", (X[:12],)), ("ints", (list(range(11)),)), ("vectors", (X,)), ("checked", (np.abs(X),)),
]  # fmt: skip

ONE_BY_ONE = {"with_a_branch", "stopped", "checked"}
"""Whose loops have more than one block, and are read assignment by assignment."""


@pytest.fixture(scope="module")
def model() -> StanModel:
    return StanModel(PROGRAM)


def values(root: object) -> list[object]:
    """Of some of the containers, the last one first."""
    assert isinstance(root, NestedCallNode)
    nodes = [node for node in root.children if node.type.rank]
    return [np.array(node.value) for node in nodes[:: -1 - len(nodes) // 10]]


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=[name for name, _ in CALLS])
def test_values_are_those_of_assignments_one_by_one(
    model: StanModel, name: str, arguments: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = TraceContext(containers="copy")
    fills: list[object] = []
    monkeypatch.setattr(frames, "fill_before", lambda *given: (fills.append(fill_before(*given)), fills[-1])[1])
    fast = values(model.track(name, *arguments, context=copies))
    assert any(fill is not None for fill in fills) is (name not in ONE_BY_ONE)
    monkeypatch.setattr(frames, "fill_before", lambda *_: None)
    slow = values(model.track(name, *arguments, context=copies))
    assert len(fast) == len(slow) > 0
    for one, other in zip(fast, slow, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_long_loop_is_read_at_once(model: StanModel) -> None:
    x = np.arange(100_000.0)
    root = model.track("plain", x, context=TraceContext(containers="copy"))
    assert isinstance(root, NestedCallNode)
    last = next(node for node in reversed(root.children) if isinstance(node.value, np.ndarray))
    values: list[object] = []
    assert lines_executed(lambda: values.append(last.value)) < 100_000
    np.testing.assert_array_equal(values[0], 2 * x)
