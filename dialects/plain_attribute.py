"""What defines ulam's own attributes: as xDSL's `irdl_attr_definition`, without functions that are compiled for each.

xDSL makes a dataclass of every attribute, which writes five functions and compiles them, and resolves its annotations
at once: half a millisecond for each. These classes share their functions, and their annotations are resolved when the
first instance is made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, cast, dataclass_transform

from xdsl.ir import ParametrizedAttribute
from xdsl.irdl import ParamAttrDef
from xdsl.irdl.attributes import check_attr_name
from xdsl.utils.runtime_final import runtime_final

from ulam.dialects.plain_instances import PlainInstances

_Class = TypeVar("_Class", bound=type[ParametrizedAttribute])


class PlainAttribute(ParametrizedAttribute, metaclass=PlainInstances):
    """The base of ulam's own attributes: an `isinstance` is as fast as with any other class."""


@dataclass_transform(frozen_default=True)
def plain_attribute(cls: _Class) -> _Class:
    """An attribute or type whose annotations are its parameters; see the module."""
    check_attr_name(cls)
    names = _parameters(cls)
    made: Any = cls
    made.get_irdl_definition = classmethod(_definition)
    made.__match_args__ = names
    made.__eq__, made.__hash__ = _comparison(names) if names else (_same_class, _constant(cls.name))
    made.__repr__ = _repr(names)
    made.__setattr__, made.__delattr__ = _set, _delete
    return cast("_Class", runtime_final(made))


def _parameters(cls: type) -> tuple[str, ...]:
    """The names of an attribute's parameters, those of its bases first."""
    return tuple(
        name
        for each in reversed(cls.__mro__)
        if issubclass(each, ParametrizedAttribute) and each is not ParametrizedAttribute
        for name, kind in each.__dict__.get("__annotations__", {}).items()
        if not str(kind).startswith(("ClassVar", "typing.ClassVar"))
    )


def _definition(cls: type[ParametrizedAttribute]) -> ParamAttrDef:
    """What xDSL knows of an attribute; made when first asked for."""
    found = ParamAttrDef.from_pyrdl(cls) if cls.__match_args__ else ParamAttrDef(cls.name, [])
    cast("Any", cls).get_irdl_definition = staticmethod(lambda: found)
    return found


def _comparison(names: tuple[str, ...]) -> tuple[Callable[..., Any], Callable[..., int]]:
    """Comparison and hash by value."""
    values = attrgetter(*names)

    def __eq__(self: Any, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __eq__, __hash__


def _same_class(self: Any, other: object) -> Any:
    return True if other.__class__ is self.__class__ else NotImplemented


def _constant(name: str) -> Callable[[Any], int]:
    """The hash of an attribute without parameters: the same in every process, another for each."""
    number = int.from_bytes(name.encode(), "big") % sys.hash_info.modulus
    return lambda self: number


def _repr(names: tuple[str, ...]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _set(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
