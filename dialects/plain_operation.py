"""The base of ulam's own ops: xDSL's, with an `isinstance` and a hash that are as fast as those of any other class.

xDSL's base class is an ABC, whose `isinstance` runs in Python (`plain_instances`), as its hash by identity does. Passes
ask for both all the time.

An op's `assembly_format` is as in xDSL, but read when the op is first parsed or printed: compiling a model does
neither. What xDSL makes of a definition (`plain_operation` instead of `irdl_op_definition`) is made with the first
instance: a program has few of the ops. What reads operands, results, regions and properties by their names then becomes
a property of Python's (`plain_accessors`).
"""

from __future__ import annotations

from functools import cache
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, cast

from xdsl.ir.core import OpTraits
from xdsl.irdl import IRDLOperation, irdl_op_definition

from ulam.dialects.plain_accessors import plain_accessor
from ulam.dialects.plain_instances import PlainInstances

if TYPE_CHECKING:
    from xdsl.irdl import OpDef
    from xdsl.irdl.declarative_assembly_format import FormatProgram
    from xdsl.parser import Parser
    from xdsl.printer import Printer

_FORMATS: dict[str, str] = {}
"""Name of an op → its assembly format."""


class _Formatted(PlainInstances):
    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _Formatted:
        if (form := namespace.pop("assembly_format", None)) is not None:
            _FORMATS[namespace["name"]] = form
            namespace |= {"parse": classmethod(_parse), "print": _print}
        return super().__new__(cls, name, bases, namespace)


class PlainOperation(IRDLOperation, metaclass=_Formatted):
    """See above."""

    __hash__ = object.__hash__


_Class = TypeVar("_Class", bound=type[PlainOperation])
_defining = RLock()


def plain_operation(cls: _Class) -> _Class:
    """Defines an op when its definition is first asked for, as the first instance does; its traits are known before."""
    made: Any = cls
    found = [each.__dict__["traits"] for each in cls.__mro__ if "traits" in each.__dict__]
    if len(found) != 1:  # an op has those of its bases, too
        made.traits = OpTraits(lambda: tuple(trait for each in found for trait in each.gen_traits()))

    def define(_: type[PlainOperation]) -> OpDef:
        with _defining:
            if cls.__dict__["get_irdl_definition"] is undefined:
                irdl_op_definition(cls)
                for name, accessor in list(vars(cls).items()):
                    if (plain := plain_accessor(accessor)) is not None:
                        setattr(cls, name, plain)
        return cls.get_irdl_definition()

    made.get_irdl_definition = undefined = classmethod(define)
    return cast("_Class", cls)


def _parse(cls: type[PlainOperation], parser: Parser) -> PlainOperation:
    return _program(cls).parse(parser, cls)


def _print(op: PlainOperation, printer: Printer) -> None:
    _program(type(op)).print(printer, op)


def assembly_format(op: type[PlainOperation]) -> str | None:
    """How an op is written, as xDSL's declarative formats say it; None where the class has methods for it."""
    return _FORMATS.get(op.name)


@cache
def _program(op: type[PlainOperation]) -> FormatProgram:
    from dataclasses import replace

    from xdsl.irdl.declarative_assembly_format import FormatProgram

    from ulam.dialects.assembly import DIRECTIVES

    definition = replace(op.get_irdl_definition(), custom_directives=DIRECTIVES)
    return FormatProgram.from_str(_FORMATS[op.name], definition)
