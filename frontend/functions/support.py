"""What the language has and this compiler has not yet: the one place that decides, for the type checker to report.

A call can be compiled if `library/*.stan` has a definition that fits, or there is a primitive of that name, or the
lowering makes the function itself. `tests/frontend/test_support.py` compares this with what the compiler does, over all
overloads.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from ulam.frontend.functions import definitions, higher_order, signatures
from ulam.frontend.stan_types import ArrayType, StanType, TupleType, has_complex, part_of
from ulam.library import catalog
from ulam.library.complex_functions import EACH_PART, OF_PARTS, is_made_of_parts
from ulam.library.derivatives import has_primitive
from ulam.library.functions import FunctionKind, named
from ulam.library.intrinsics import INTRINSICS

NOT_SUPPORTED = "not-supported"
"""The code of messages about what is not there yet."""


_SHOWN_SIGNATURES = 4
_LOG = "_log"


@cache
def unsupported_type(type_: StanType) -> tuple[str, str] | None:
    """What of a type is not supported, and what may be written instead; None if values of it can be compiled."""
    if isinstance(type_, ArrayType):
        return unsupported_type(type_.element)
    if isinstance(type_, TupleType):
        return next(filter(None, map(unsupported_type, type_.elements)), None)
    return None


def parts_of_jacobian(name: str) -> tuple[str, str] | None:
    """The functions of the library that one that ends in `_jacobian` is written with: the value, and what is added."""
    found = named(name)
    if found.kind is not FunctionKind.JACOBIAN or found.stem.endswith(_LOG):
        return None
    adjustment = FunctionKind.JACOBIAN.of(found.stem + _LOG)
    if not catalog.definitions(adjustment):
        return None  # for the library itself: `callback_jacobian` of the solvers
    return FunctionKind.CONSTRAIN.of(found.stem), adjustment


@cache
def supports_call(name: str, formals: tuple[StanType, ...]) -> bool:
    """Whether a call of the library's overload with these argument types can be compiled."""
    if any(map(unsupported_type, formals)):
        return False
    if (parts := parts_of_jacobian(name)) is not None:
        return all(definitions.resolve(part, formals) is not None for part in parts)
    if any(map(has_complex, formals)):
        if not is_made_of_parts(name):
            return definitions.resolve(name, formals) is not None
        return name not in EACH_PART or supports_call(name, tuple(map(part_of, formals)))
    if name in INTRINSICS or name in OF_PARTS or has_primitive(name):
        return True
    return definitions.resolve(name, formals) is not None


def supports_higher_order(name: str) -> bool:
    """Whether a function that takes functions can be compiled: it has one definition for all that it is called with."""
    if name in higher_order.LAPLACE:
        name = higher_order.laplace_definition(name)
    return name in INTRINSICS or bool(catalog.definitions(name))


def unsupported_call(name: str, formals: tuple[StanType, ...], result: StanType) -> tuple[str, str] | None:
    """Message and help for a call of a library function that cannot be compiled; None if it can."""
    if (problem := unsupported_type(result)) is not None:
        return f"{problem[0]} are not supported yet", problem[1]
    if supports_call(name, formals):
        return None
    found = signatures.overloads(name)
    supported = [s for s in found.all() if supports_call(name, s.arguments)] if found is not None else []
    if not supported:
        return f"the function '{name}' is not supported yet", "define it in the functions block, under another name"
    types = ", ".join(map(str, formals))
    shown = "; ".join(map(str, supported[:_SHOWN_SIGNATURES]))
    more = f"; and {len(supported) - _SHOWN_SIGNATURES} more" if len(supported) > _SHOWN_SIGNATURES else ""
    return f"'{name}' is not supported yet for ({types})", f"it is for {shown}{more}"


def unsupported_higher_order(name: str) -> tuple[str, str | None] | None:
    """The same for a function that takes functions."""
    return None if supports_higher_order(name) else (f"the function '{name}' is not supported yet", None)


@cache
def supports_name(name: str) -> bool:
    """Whether some overload of a library function can be compiled."""
    found = signatures.overloads(name)
    if found is None or found.higher_order():
        return supports_higher_order(name)
    return any(unsupported_type(s.result) is None and supports_call(name, s.arguments) for s in found.all())


def supported_names() -> Iterable[str]:
    """The functions of which some overload can be compiled."""
    return filter(supports_name, (*signatures.names(), *higher_order.names()))
