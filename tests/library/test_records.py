"""Records: what a dataclass of the same text does, whether an instance was made before or not."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ulam.library.records import _FEW, record  # pyright: ignore[reportPrivateUsage]

Make = Callable[..., Any]


def _classes(make: Make) -> dict[str, Any]:
    """Classes of all kinds, made by `make`."""

    @make
    class Plain:
        a: int
        b: list[int] = field(default_factory=list)
        c: str = "c"
        limit: ClassVar[int] = 7

    @make(frozen=True)
    class Frozen:
        a: int
        hidden: int = field(default=3, repr=False, compare=False)

    @make(frozen=True, slots=True)
    class Slots:
        a: Any
        b: float = 1.5

    @make(slots=True, eq=False, repr=False)
    class Identity:
        a: int

    @make
    class Computed:
        a: int
        twice: int = field(init=False)
        seen: list[int] = field(init=False, default_factory=list)

        def __post_init__(self) -> None:
            self.twice = 2 * self.a

    @make(eq=False, slots=True, kw_only=True)
    class Base:
        span: int
        kind: str = "none"

    @make(eq=False, slots=True)
    class Derived(Base):
        left: int
        right: int = 0

    @make
    class Own:
        a: int

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = object.__hash__

    return {cls.__name__: cls for cls in (Plain, Frozen, Slots, Identity, Computed, Base, Derived, Own)}


DATACLASSES = _classes(dataclass)
ARGUMENTS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "Plain": [((1,), {}), ((1, [2]), {}), ((), {"c": "x", "a": 1}), ((), {}), ((1, [], "c", 4), {}), ((1,), {"a": 2})],
    "Frozen": [((1,), {}), ((1, 5), {}), ((2,), {"hidden": 3})],
    "Slots": [((1,), {}), (("x", 2.0), {}), (([],), {})],
    "Identity": [((1,), {})],
    "Computed": [((4,), {}), ((4, 5), {})],
    "Base": [((), {"span": 1}), ((1,), {})],
    "Derived": [((1,), {"span": 2}), ((1, 2), {"span": 2, "kind": "k"}), ((1,), {}), ((1, 2, 3), {"span": 1})],
    "Own": [((1,), {})],
}


def _outcome(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except (TypeError, FrozenInstanceError, AttributeError) as error:
        return type(error)


def _facts(cls: Any, arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> Iterator[Any]:
    """All that is asked of an instance."""
    first = _outcome(lambda: cls(*arguments[0], **arguments[1]))
    second = _outcome(lambda: cls(*arguments[0], **arguments[1]))
    for _ in range(_FEW):
        assert type(_outcome(lambda: cls(*arguments[0], **arguments[1]))) is type(second)
    yield first if isinstance(first, type) else type(first).__name__
    if isinstance(first, type):
        return
    yield _outcome(lambda: repr(first)) if cls.__name__ not in ("Identity", "Base", "Derived") else None
    yield first == second, first != second, first == 3
    yield _outcome(lambda: hash(first) == hash(second))
    yield {each.name: getattr(first, each.name) for each in dataclasses.fields(first)}
    yield dataclasses.is_dataclass(first), cls.__match_args__
    described = ("name", "type", "init", "repr", "compare", "default", "kw_only")
    yield [[getattr(each, name) for name in described] for each in dataclasses.fields(cls)]
    yield _outcome(lambda: dataclasses.asdict(first))
    yield _outcome(lambda: dataclasses.replace(first, a=9).a)
    yield _outcome(lambda: setattr(first, "a", 3))
    yield _outcome(lambda: delattr(first, "a"))
    yield isinstance(_outcome(lambda: setattr(first, "unknown", 3)), type), hasattr(first, "__dict__")
    yield str(inspect.signature(cls)).replace("Any", "").replace("_of_class_", "")
    copied = copy.copy(second)
    yield type(copied) is cls, getattr(copied, "a", None) == getattr(second, "a", None)


@pytest.mark.parametrize("made_before", [0, _FEW])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_a_dataclass_does(name: str, made_before: int) -> None:
    for arguments in ARGUMENTS[name]:
        records = _classes(record)
        for _ in range(made_before):
            _outcome(lambda cls=records[name], given=arguments: cls(*given[0], **given[1]))
        found, expected = (list(_facts(classes[name], arguments)) for classes in (records, DATACLASSES))
        if len(expected) > 1:
            assert found[-2].count("=") == expected[-2].count("=")  # the signature, but for what defaults are called
            del found[-2], expected[-2]
        assert found == expected, arguments


@record(frozen=True, slots=True)
class Pickled:
    a: int
    b: str = "b"


@record
class Loose:
    a: int


def test_what_was_pickled_is_compared_before_one_was_made() -> None:
    data = pickle.dumps([Pickled(1), Loose(2)])
    code = (
        f"import pickle, sys; sys.path[:0] = [sys.argv[1]]; import {__name__} as t; a, b = pickle.loads({data!r}); "
        "print(a, hash(a) == hash(a), b, b == b); print(a == t.Pickled(1), b == t.Loose(2), t.Loose(3) == b)"
    )
    root = Path(__file__).parents[__name__.count(".")]
    done = subprocess.run([sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["Pickled(a=1, b='b') True Loose(a=2) True", "True True False"]


def test_a_first_instance_in_many_threads() -> None:
    for _ in range(20):

        @record
        class Fresh:
            a: int
            b: list[int] = field(default_factory=list)

        made: list[Fresh] = []
        threads = [threading.Thread(target=lambda made=made, cls=Fresh: made.append(cls(1))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [Fresh(1, [])] * 8


def test_nothing_is_compiled_for_a_class_with_few_instances() -> None:
    @record
    class Unused:
        a: int

    for _ in range(_FEW):
        Unused(1)
        assert Unused.__init__.__code__.co_filename.endswith("records.py")
    Unused(1)
    assert Unused.__init__.__code__.co_filename == "<string>"
