"""Acceptance test 18 of tracing: traces of random programs against an interpreter of its own."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from trace_events import agrees, events
from traced_random_programs import Generator, Oracle, OutOfFuel, stan_text

from ulam.trace import (
    Digest,
    NestedCallNode,
    Node,
    Ref,
    Replay,
    Scripted,
    format_levels,
    from_json,
    functions,
    load,
    track,
)
from ulam.tracing.tape.values import same

QUICK = 60
ALL = 500


def check(seed: int, tmp_path: Path) -> int:
    """Traces one program; how many events there were."""
    program = Generator(seed).program()
    choose = random.Random(seed)
    draws = [choose.random() for _ in range(2000)]
    name, n, x = program[-1][0], choose.randint(1, 3), choose.choice([0.5, -1.5, 3.0])
    w = [choose.randint(-5, 5) for _ in range(3)]
    oracle = Oracle(program, draws)
    try:
        value = oracle.call(name, n, x, w)
    except (OutOfFuel, RecursionError, StopIteration):
        return 0
    text = stan_text(program)
    function = getattr(functions(text), name)
    node = track(function, n, x, w, rng=Scripted(draws))
    assert isinstance(node, NestedCallNode), text
    assert node.trace.error is None, (text, node.trace.error)
    found = events(node)
    for number, (event, expected) in enumerate(zip(found, oracle.log, strict=False)):
        assert agrees(event, expected), f"event {number}: {event}, expected {expected}\n{text}\n{format_levels(node)}"
    assert len(found) == len(oracle.log), text
    assert agrees((node.value,), (value,))
    listing = format_levels(node)
    check_references(node)
    path = tmp_path / "trace"
    node.trace.save(path)
    assert format_levels(load(path)) == listing
    assert format_levels(from_json(node.to_json()).root) == listing
    assert format_levels(track(function, n, x, w, rng=Replay(node.trace))) == listing
    return len(found)


def check_references(node: Node) -> None:
    """Operands come from before, and are worth what their node is."""
    for child in node.children:
        for operand in child.operands:
            if isinstance(operand, Ref):
                assert operand.node.at < child.at
        if isinstance(child, NestedCallNode):
            for parameter, operand in zip(child.call_arguments, child.arguments, strict=True):
                value = operand.value
                assert isinstance(value, Digest) or same(parameter.value, value) or parameter.value == value
            check_references(child)


@pytest.mark.parametrize("seed", range(QUICK))
def test_random_program(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


@pytest.mark.slow
def test_many_random_programs(tmp_path: Path) -> None:
    counts = [check(seed, tmp_path) for seed in range(ALL)]
    assert sum(count > 0 for count in counts) > ALL * 0.8
    assert max(counts) > 500
