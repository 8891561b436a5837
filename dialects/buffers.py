"""The types of the `rt` dialect, and how the definitions of its ops say that types of theirs belong together."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue, TypeAttribute
from xdsl.irdl import AnyAttr, ParamAttrConstraint, VarConstraint, eq
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.plain_attribute import PlainAttribute, plain_attribute


@plain_attribute
class BufferType(PlainAttribute, TypeAttribute):
    """`!rt.buf<f64>`: a pointer to elements of type f64, i32, i64, i8 or again a buffer."""

    name = "rt.buf"
    element: Attribute


@plain_attribute
class MarkType(PlainAttribute, TypeAttribute):
    """`!rt.mark`: a position of the arena."""

    name = "rt.mark"


NUMBER = IntegerAttr.constr(eq(i64))
"""A number of a site, a slot, ...: written without its type."""


def element() -> VarConstraint:
    """The type of an element; with `buffer_of`, what says that two types of an op belong together."""
    return VarConstraint("element type", AnyAttr())


def buffer_of(element: VarConstraint) -> ParamAttrConstraint[BufferType]:
    """The type of a buffer of such elements."""
    return ParamAttrConstraint(BufferType, (element,))


def expect_element(buffer: Attribute, value: Attribute) -> None:
    """Raises unless `value` is the element type of `buffer`."""
    assert isinstance(buffer, BufferType)
    if buffer.element != value:
        raise VerifyException(
            f"the elements of the buffer are of type {buffer.element}, but the value is of type {value}"
        )


def element_of(buffer: SSAValue) -> Attribute:
    """The type of the elements of a buffer."""
    assert isinstance(buffer.type, BufferType)
    return buffer.type.element
