"""Ops of a trace that only move data: their values, and where each element of a value came from.

An element's way is found by moving positions instead of values: `np.arange` in place of each operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ulam.dialects.integers import wrapped
from ulam.library.size_messages import ASSIGNED_SIZES, EQUAL_SIZES, LITERAL, OUT_OF_RANGE
from ulam.tracing.instrument.graph import Item, ValueType
from ulam.tracing.tape.values import replaced, selected, unassigned


def _plain(value: Any) -> Any:
    """NumPy's scalars as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _index(item: Item, operands: Sequence[Any]) -> Any:
    return selected(operands[0], item.symbol.split(",") if item.symbol else [], operands[1:])


def _index_assign(item: Item, operands: Sequence[Any]) -> Any:
    return replaced([np.array(operands[0]), *operands[1:]], item.symbol.split(","))


def _array(item: Item, operands: Sequence[Any]) -> Any:
    return np.stack([np.asarray(operand) for operand in operands])


def place_of_element(type_: ValueType, count: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Where element number `count`, from 1, of a loop over a container is: a matrix goes column by column."""
    if type_.base == "matrix" and not type_.array_rank:
        return (count - 1) % shape[0], (count - 1) // shape[0]
    return (count - 1,)


def _element(item: Item, operands: Sequence[Any]) -> Any:
    container, count = operands
    return container[place_of_element(item.operands[0].type, int(count), container.shape)]


_MOVES: dict[tuple[str, str], Callable[[Item, Sequence[Any]], Any]] = {
    ("call", "index"): _index,
    ("special", "index_assign"): _index_assign,
    ("call", "array"): _array,
    ("call", "row_vector"): _array,
    ("special", "element"): _element,
}
"""Kind and name of an item: what it does with its operands."""


def is_move(item: Item) -> bool:
    """Whether an op only moves the elements of its operands."""
    return (item.kind, item.name) in _MOVES


def moved(item: Item, operands: Sequence[Any]) -> Any:
    """The value of such an op."""
    return _plain(_MOVES[item.kind, item.name](item, operands))


# ---------------------------------------------------------------- what throws


def violation(item: Item, operands: Sequence[Any], variable: str = "") -> str | None:
    """What is wrong with the operands of such an op, in the words of compiled programs; None: nothing is."""
    if item.name in ("array", "row_vector"):
        return _unequal(EQUAL_SIZES.format(LITERAL, "{}", "{}"), operands)
    kinds = item.symbol.split(",") if item.symbol else []
    if item.name == "index":
        return _out_of_range(kinds, operands[1:], np.shape(operands[0]))
    if item.name != "index_assign":
        return None
    container, *indices, value = operands
    if (problem := _out_of_range(kinds, indices, container.shape)) is not None:
        return problem
    part = np.zeros(np.shape(selected(container, kinds, indices)), bool)
    return _unequal(ASSIGNED_SIZES.format(variable, "{}", "{}"), [part, value])


def _unequal(message: str, values: Sequence[Any]) -> str | None:
    first = np.shape(values[0]) if values else ()
    for other in values[1:]:
        for a, b in zip(first, np.shape(other), strict=True):
            if a != b:
                return message.format(a, b)
    return None


def _out_of_range(kinds: Sequence[str], indices: Sequence[Any], shape: Sequence[int]) -> str | None:
    rest = list(indices)
    for kind, size in zip(kinds, shape, strict=False):
        bounds: list[int] = []
        if kind == "single":
            bounds = [int(rest.pop(0))]
        elif kind == "multiple":
            bounds = [int(i) for i in rest.pop(0)]
        elif kind != "all":
            lower = int(rest.pop(0)) if kind in ("between", "from") else 1
            upper = int(rest.pop(0)) if kind in ("between", "to") else size
            if lower <= upper:
                bounds = [lower, upper]
        wrong = next((i for i in bounds if not 1 <= i <= size), None)
        if wrong is not None:
            return OUT_OF_RANGE.format(wrong, size)
    return None


# ---------------------------------------------------------------- ops that the program does not have


def derived(item: Item, operands: Sequence[Any]) -> Any:
    """The value of an op of a table that has no op in the program: a count, a declaration."""
    if item.derived == "increment":
        return wrapped(int(operands[0]) + 1)
    if item.derived == "condition":
        first, second = operands
        if item.kind == "special":  # of a loop over a container: that, and the count
            type_ = item.operands[0].type
            return int(second <= (np.size(first) if type_.base == "matrix" and not type_.array_rank else len(first)))
        return int(first <= second)
    sizes = [max(int(size), 0) for size in operands]
    return unassigned(item.type, tuple(sizes + sizes[-1:] * (item.type.rank - len(sizes))))


def move_back(item: Item, operands: Sequence[Any], cotangent: Any) -> list[Any]:
    """What the adjoint of such an op's value adds to the adjoints of its operands; None for ints."""
    labels: list[Any] = []
    count = 0
    for operand in operands:
        if isinstance(operand, float | np.floating):
            labels.append(count)
            count += 1
        elif isinstance(operand, np.ndarray) and operand.dtype != np.int32:
            labels.append(np.arange(count, count + operand.size).reshape(operand.shape))
            count += operand.size
        else:
            labels.append(None)
    inputs = [operand if label is None else label for operand, label in zip(operands, labels, strict=True)]
    ways = np.asarray(moved(item, inputs))
    sums = np.zeros(count)
    np.add.at(sums, ways.reshape(-1), np.asarray(cotangent, float).reshape(-1))
    return [
        None if label is None else sums[label] if isinstance(label, np.ndarray) else float(sums[label])
        for label in labels
    ]  # fmt: skip
