"""`record`: dataclasses that cost next to nothing until they are used.

    @record(frozen=True, slots=True)
    class Place:
        line: int
        column: int = 0

`dataclasses.dataclass` writes the text of four to seven functions for each class and compiles them, a third of a
millisecond; a compiler has hundreds of such classes. A record is made of shared functions; only its `__init__` is
written, when some instances have been made: half of a compiler's classes never have more. Fields, defaults, `field`,
`__post_init__`, inheritance, comparison, hashes, `repr`, patterns, pickling and `dataclasses.fields`, `replace`,
`asdict` are as there; `order`, `InitVar` and `field(hash=...)` are not there. The base of a record may be a dataclass
without fields, as the one of xDSL's passes is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, field
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, cast, dataclass_transform, overload

_Class = TypeVar("_Class", bound=type)
_OWN = "__record_fields__"
"""Attribute of a record: its fields by name, those of its bases first. What has no default has an empty `field()`."""

_HAS_DEFAULT = "_of_class"  # parameters whose defaults are objects: `name=_of_class_name`


@overload
def record(cls: _Class, /) -> _Class: ...
@overload
def record(
    *, frozen: bool = False, eq: bool = True, repr: bool = True, slots: bool = False, kw_only: bool = False
) -> Callable[[_Class], _Class]: ...
@dataclass_transform(field_specifiers=(field,))
def record(
    cls: Any = None,
    /,
    *,
    frozen: bool = False,
    eq: bool = True,
    repr: bool = True,
    slots: bool = False,
    kw_only: bool = False,
) -> Any:
    """A class whose annotations are its fields; see the module."""
    if cls is None:
        return lambda made: _record(made, frozen, eq, repr, slots, kw_only)
    return _record(cls, frozen, eq, repr, slots, kw_only)


def _record(cls: Any, frozen: bool, eq: bool, shown: bool, slots: bool, kw_only: bool) -> Any:
    inherited: dict[str, Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited.update(base.__dict__.get(_OWN, ()))
    own = _declared(cls, kw_only)
    found = {**inherited, **own}
    if slots:
        cls = _with_slots(cls, [name for name in own if name not in inherited])
    setattr(cls, _OWN, found)
    cls.__dataclass_fields__ = _Fields()
    cls.__match_args__ = tuple(name for name, each in found.items() if each.init and each.kw_only is not True)
    _add(cls, "__init__", _first_init(cls, found, frozen))
    if shown:
        _add(cls, "__repr__", _repr([name for name, each in found.items() if each.repr]))
    if eq:
        values = _values([name for name, each in found.items() if each.compare])
        _add(cls, "__eq__", _eq(values))
        if frozen:
            _add(cls, "__hash__", _hash(values))
        elif cls.__dict__.get("__hash__") is None:
            cls.__hash__ = None
    if frozen:
        _freeze(cls, frozenset(found))
        if slots:
            _add(cls, "__getstate__", _state)
            _add(cls, "__setstate__", _set_state)
    return cls


def _add(cls: type, name: str, function: Any) -> None:
    """Sets a method that the class does not write itself."""
    if cls.__dict__.get(name) is None:
        function.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, function)


# ---------------------------------------------------------------- fields


def _declared(cls: type, kw_only: bool) -> dict[str, Field[Any]]:
    """The fields that the class itself declares. Defaults stay behind as attributes of the class."""
    found: dict[str, Field[Any]] = {}
    for name, kind in cls.__dict__.get("__annotations__", {}).items():
        if (kind if isinstance(kind, str) else str(kind)).startswith(("ClassVar", "typing.ClassVar")):
            continue
        given = cls.__dict__.get(name, MISSING)
        if isinstance(given, Field):
            if given.default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, given.default)
            found[name] = cast("Field[Any]", given)
        else:
            found[name] = field() if given is MISSING else field(default=given)
        if kw_only:
            found[name].kw_only = True
    return found


def _with_slots(cls: type, names: Sequence[str]) -> type:
    """The class once more, its fields in slots."""
    contents = {
        name: value for name, value in cls.__dict__.items() if name not in (*names, "__dict__", "__weakref__")
    }
    made = type(cls)(cls.__name__, cls.__bases__, {**contents, "__slots__": tuple(names)})
    made.__qualname__ = cls.__qualname__
    return made


class _Fields:
    """`__dataclass_fields__` of a record, which `dataclasses.fields` and others read: made when first asked for."""

    def __get__(self, instance: object, cls: type) -> dict[str, Field[Any]]:
        owner: Any = next(each for each in cls.__mro__ if _OWN in each.__dict__)
        kinds: dict[str, Any] = {}
        for each in reversed(owner.__mro__):
            kinds.update(each.__dict__.get("__annotations__", {}))
        copies: list[tuple[str, Any, Any]] = []  # a field belongs to one class
        for name, each in getattr(owner, _OWN).items():
            options: dict[str, Any] = {"init": each.init, "repr": each.repr, "compare": each.compare}
            options["default"] = each.default if each.default_factory is MISSING else MISSING
            options["default_factory"] = each.default_factory
            copies.append((name, kinds[name], field(**options, kw_only=each.kw_only is True)))
        told = {"__doc__": "Its fields."}  # without a text, dataclasses writes one, for most of the time of this
        made = dataclasses.make_dataclass(owner.__name__, copies, namespace=told, init=False, repr=False, eq=False)
        found: dict[str, Field[Any]] = made.__dataclass_fields__
        owner.__dataclass_fields__ = found
        return found


# ---------------------------------------------------------------- methods


_FEW = 8
"""Instances that are made without an `__init__` of the class's own: writing it takes as long as twenty do."""


def _first_init(cls: Any, found: dict[str, Field[Any]], frozen: bool) -> Any:
    """`__init__` for the first instances; then it writes the one that is there from then on."""
    made_so_far = 0

    def __init__(self: Any, /, *arguments: Any, **named: Any) -> None:
        nonlocal made_so_far
        made_so_far += 1
        if made_so_far <= _FEW and _fill(self, found, frozen, arguments, named):
            return
        made = _init(cls, found, frozen)
        cls.__init__ = made
        made(self, *arguments, **named)

    return __init__


def _fill(
    instance: Any, found: dict[str, Field[Any]], frozen: bool, arguments: tuple[Any, ...], named: dict[str, Any]
) -> bool:
    """What the `__init__` of a record does; False, and nothing is done, where the arguments do not fit."""
    values: dict[str, Any] = {}
    factories: list[str] = []
    position = used = 0
    for name, each in found.items():
        if each.init and each.kw_only is not True and position < len(arguments):
            values[name] = arguments[position]
            position += 1
        elif each.init and name in named:
            values[name] = named[name]
            used += 1
        elif each.default_factory is not MISSING:
            values[name] = each.default_factory
            factories.append(name)
        elif each.init:
            if each.default is MISSING:
                return False
            values[name] = each.default
    if position < len(arguments) or used < len(named):
        return False
    put = object.__setattr__ if frozen else setattr
    for name, value in values.items():
        put(instance, name, value() if name in factories else value)
    if hasattr(instance, "__post_init__"):
        instance.__post_init__()
    return True


def _init(cls: type, found: dict[str, Field[Any]], frozen: bool) -> Any:
    """The `__init__` of a record, compiled."""
    positional, named, lines = ["self"], list[str](), list[str]()
    names: dict[str, Any] = {"_absent": MISSING, "_set": object.__setattr__}
    for name, each in found.items():
        value = name
        if each.default_factory is not MISSING:
            names[f"_make_{name}"] = each.default_factory
            made = f"_make_{name}()"
            value = f"{made} if {name} is _absent else {name}" if each.init else made
            default = "=_absent"
        elif each.default is not MISSING:
            names[f"{_HAS_DEFAULT}_{name}"] = each.default
            default = f"={_HAS_DEFAULT}_{name}"
        else:
            default = ""
        if each.init:
            (named if each.kw_only is True else positional).append(name + default)
        elif each.default_factory is MISSING:
            continue  # an attribute of the class, or set by `__post_init__`
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = [*positional, *(["*", *named] if named else [])]
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"]), names)
    made = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__module__ = cls.__module__
    return made


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What is compared of an instance."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda instance: ()
    (only,) = names
    return lambda instance: (getattr(instance, only),)


def _eq(values: Callable[[Any], tuple[Any, ...]]) -> Any:
    def __eq__(self: Any, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Any:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _repr(names: Sequence[str]) -> Any:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _freeze(cls: Any, names: frozenset[str]) -> None:
    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__ = __setattr__
    cls.__delattr__ = __delattr__


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in getattr(self, _OWN)]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for name, value in zip(getattr(self, _OWN), state, strict=True):
        object.__setattr__(self, name, value)
