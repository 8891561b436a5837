"""Updates of traces of random programs (a part of acceptance test 18): each value of each op and argument, compared
with a full run.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trace_events import agrees, events
from traced_random_programs import Generator, Oracle, OutOfFuel, stan_text

from ulam.trace import (
    Axis,
    JumpNode,
    NestedCallNode,
    Replay,
    Scripted,
    diff,
    format_levels,
    from_json,
    functions,
    load,
    query,
    track,
)
from ulam.tracing.nodes import ItemNode

QUICK = 5


ALL = 500


class Intervening(Oracle):
    """Runs a program with the value of event number `number` set to `given`."""

    number, given = -1, None

    def note(self, *event: Any) -> Any:
        return super().note(*event[:-1], self.given) if len(self.log) == self.number else super().note(*event)


def ops(node: NestedCallNode) -> list[ItemNode | None]:
    """The nodes of the events of a trace; None for those that are no op that can be set."""
    found: list[ItemNode | None] = []
    for child in node.children:
        if isinstance(child, NestedCallNode):
            found += [None, *ops(child), child]
        elif isinstance(child, JumpNode):
            found += [None] if child.condition is not None else []
        elif isinstance(child, ItemNode) and child.function != "declare":
            found.append(None if child.function == "index_assign" else child)
    return found


def other_value(node: ItemNode, choose: random.Random) -> Any:
    if node.type.base == "bool":
        return choose.randint(0, 1)
    return choose.randint(-3, 4) if node.type.base == "int" else choose.choice([0.25, -1.0, 2.0, 0.75])


def check_arguments(function: Any, node: ItemNode, arguments: dict[str, Any], choose: random.Random) -> None:
    """Another argument: the version is what a run records with the same draws."""
    name = choose.choice(["n", "x", "w"])
    w = [*arguments["w"][:2], choose.randint(-5, 5)]
    value = {"n": choose.randint(1, 3), "x": choose.choice([0.25, -2.0, 0.5, 1.0]), "w": w}[name]
    made = node.trace.update(**{name: value})
    full = track(function, *(arguments | {name: value}).values(), rng=Replay(made.trace))
    assert format_levels(made.trace.root) == format_levels(full)
    assert made.trace.draws_used == full.trace.draws_used


def check_op(
    program: list[tuple[str, list[Any]]], node: NestedCallNode, arguments: dict[str, Any], choose: random.Random,
    tmp_path: Path,
) -> int:  # fmt: skip
    """Another value of an op: the version is what the interpreter does with that value."""
    nodes = ops(node)
    at = choose.randrange(len(nodes))
    chosen = nodes[at]
    if chosen is None:
        return 0
    value = other_value(chosen, choose)
    made = node.trace.update({chosen: value})
    uniforms = made.trace.draws.values.view(np.float64).tolist()
    oracle = Intervening(program, uniforms)
    oracle.number, oracle.given = at, value
    try:
        result = oracle.call(program[-1][0], *arguments.values())
    except (OutOfFuel, IndexError):  # beyond what the interpreter does
        return 0
    root = made.trace.root
    assert isinstance(root, NestedCallNode)
    found = events(root)
    assert len(found) == len(oracle.log)
    for event, expected in zip(found, oracle.log, strict=True):
        assert agrees(event, expected), (chosen, value)
    assert agrees((root.value,), (result,)) and next(oracle.draws, None) is None
    text = format_levels(made.trace.root)
    path = tmp_path / "version"
    made.trace.save(path)
    assert format_levels(load(path)) == text
    assert format_levels(from_json(made.trace.to_json()).root) == text
    assert [n.at for n in made.trace.find(function="+")] == [
        n.at for n in query(root, Axis.DESCENDANT) if isinstance(n, ItemNode) and n.function == "+"
    ]
    assert diff(node.trace, made.trace).identical == (text == format_levels(node.trace.root))
    return 1


def check(seed: int, tmp_path: Path) -> int:
    """Updates of one program; how many ops were set."""
    program = Generator(seed).program()
    choose = random.Random(seed)
    draws = [choose.random() for _ in range(2000)]
    arguments = {
        "n": choose.randint(1, 3), "x": choose.choice([0.5, -1.5, 3.0]), "w": [choose.randint(-5, 5) for _ in range(3)],
    }  # fmt: skip
    try:
        Oracle(program, draws).call(program[-1][0], *arguments.values())
    except (OutOfFuel, RecursionError, StopIteration):
        return 0
    function = getattr(functions(stan_text(program)), program[-1][0])
    node = track(function, *arguments.values(), rng=Scripted(draws))
    assert isinstance(node, NestedCallNode)
    before = format_levels(node.trace.root)
    for _ in range(3):
        check_arguments(function, node, arguments, choose)
    count = sum(check_op(program, node, arguments, choose, tmp_path) for _ in range(4))
    assert format_levels(node.trace.root) == before
    return count


@pytest.mark.parametrize("seed", range(QUICK))
def test_random_program(seed: int, tmp_path: Path) -> None:
    """A part of acceptance test 18."""
    check(seed, tmp_path)


@pytest.mark.slow
def test_many_random_programs(tmp_path: Path) -> None:
    """A part of acceptance test 18."""
    assert sum(check(seed, tmp_path) for seed in range(ALL)) > ALL
