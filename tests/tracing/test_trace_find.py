"""`trace.find` gives what a walk over all nodes gives, in the same order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from work import lines_executed

from ulam import StanModel
from ulam.runtime.errors import ArgumentError
from ulam.trace import MISSING, Axis, Digest, NestedCallNode, Node, TraceContext, query

PROGRAM = """functions {
  real logs(real x) { return log(x) + x; }
  real nested(int n) { return n > 0 ? logs(n - 2) + nested(n - 1) : 0; }
  real many(int n) {
    real s = 0;
    for (i in 1:n) {
      s += logs(i - 2) * 2;
      if (i % 3 == 0) s = nested(2) - 1;
    }
    vector[4] v = rep_vector(s, 4);
    v[2] = negative_infinity();
    vector[100] w = rep_vector(s, 100) / 0;
    return sum(v) + sum(w);
  }
  real fails(int n) {
    real s = log(n - 1.5) + logs(-1);
    if (n > 3) reject("n is ", n);
    return s + fails(n + 1) * log(-2);
  }
  real grows(real x, int n) {
    real r = 1;
    for (i in 1:n) r = r * x;
    return r;
  }
}
"""


@pytest.fixture(scope="module")
def model() -> StanModel:
    return StanModel(PROGRAM)


def all_nodes(root: Node) -> list[Node]:
    return list(query(root, Axis.DESCENDANT))


def is_made(node: Node) -> bool:
    """Whether a value is made here, and kept."""
    item = getattr(node, "item", None)
    return item is not None and item.slot is not None and node.value is not MISSING


def is_nonfinite(node: Node) -> bool:
    if not is_made(node):
        return False
    value = node.value
    if isinstance(value, Digest):
        return bool(value.nans or value.infinities)
    return not bool(np.all(np.isfinite(value)))


def line(node: Node) -> int:
    return 0 if node.span is None else node.span.line


@pytest.mark.parametrize("overflow", ["stop", "spill", "edges"])
@pytest.mark.parametrize("call", [("many", 7), ("fails", 1)])
def test_values_that_are_not_finite(model: StanModel, call: tuple, overflow: str) -> None:
    root = model.track(*call, context=TraceContext(overflow=overflow))
    expected = [node for node in all_nodes(root) if is_nonfinite(node)]
    assert expected and list(root.trace.find(nonfinite=True)) == expected


def test_by_name(model: StanModel) -> None:
    root = model.track("many", 7)
    nodes = all_nodes(root)
    for names in ("log", "*", ["<=", "nested"], "l*", ["index_assign"], "goto"):
        wanted = [names] if isinstance(names, str) else names
        expected = [n for n in nodes if getattr(n, "function", None) in (["log", "logs"] if names == "l*" else wanted)]
        assert list(root.trace.find(function=names)) == expected
        assert bool(expected) == (names != "goto")


def test_by_place(model: StanModel) -> None:
    root = model.track("many", 7)
    nodes = [n for n in all_nodes(root) if getattr(n, "item", None) is not None]
    assert list(root.trace.find(span=2)) == [n for n in nodes if line(n) == 2]
    assert list(root.trace.find(span=(2, 3))) == [n for n in nodes if line(n) in (2, 3)]
    multiplications = list(root.trace.find(function="*"))
    assert list(root.trace.find(span=multiplications[0].span)) == multiplications
    assert list(root.trace.find(span=2, nonfinite=True)) == [n for n in nodes if line(n) == 2 and is_nonfinite(n)]


def test_between(model: StanModel) -> None:
    root = model.track("many", 7)
    nodes = all_nodes(root)
    scalars = [n for n in nodes if is_made(n) and isinstance(n.value, int | float)]
    assert list(root.trace.find(between=(-1, 0.75))) == [n for n in scalars if -1 <= n.value <= 0.75]
    calls = list(root.trace.find(function="logs"))
    begin, end = calls[1], calls[4]
    ops = [n for n in nodes[nodes.index(begin) : nodes.index(end) + 1] if getattr(n, "item", None) is not None]
    assert list(root.trace.find(between=(begin, end))) == ops


def test_the_end_of_a_long_run(model: StanModel) -> None:
    """Of a ring the beginning is gone: what is found is there, at its position."""
    whole = model.track("grows", 1.1, 30000)
    found = list(whole.trace.find(nonfinite=True))
    assert len(found) == 30000 - math.floor(math.log(1.7976931348623157e308) / math.log(1.1))
    ring = model.track("grows", 1.1, 30000, context=TraceContext(overflow="ring", limit_bytes=1 << 16))
    kept = list(ring.trace.find(nonfinite=True))
    assert isinstance(ring, NestedCallNode) and 0 < len(kept) < len(found)
    assert [n.position for n in kept] == [n.position for n in found[-len(kept) :]]


def test_it_is_lazy(model: StanModel) -> None:
    root = model.track("grows", 1.1, 30000)
    found = root.trace.find(function="*")
    assert lines_executed(lambda: next(found)) < 10_000
    assert next(root.trace.find(function="*")).position == 9


def test_wrong_questions(model: StanModel) -> None:
    trace = model.track("grows", 1.1, 3).trace
    other = model.track("grows", 1.1, 3)
    with pytest.raises(ArgumentError, match="two values"):
        trace.find(between=(1,))
    with pytest.raises(ArgumentError, match="same trace"):
        trace.find(between=(other, other))
    with pytest.raises(ArgumentError, match="two numbers, or two nodes"):
        trace.find(between=("a", "b"))
    with pytest.raises(ArgumentError, match="finite"):
        trace.find(between=(0, 1), nonfinite=True)


def test_after_an_update(model: StanModel) -> None:
    """What was changed is found by its new value."""
    root = model.track("logs", -1.0)
    found = list(root.trace.find(nonfinite=True))
    assert [n.position for n in found] == [3, 4]
    update = root.trace.update(x=2.0)
    assert list(update.trace.find(nonfinite=True)) == []
    assert [n.value for n in update.trace.find(between=(0.5, 5))] == [math.log(2), math.log(2) + 2]
    assert [n.position for n in root.trace.find(nonfinite=True)] == [3, 4]
