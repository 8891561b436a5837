"""Calls of functions of complex numbers as Stan text: they take and give complex numbers, where the module has pairs.

    %0 = stan.call exp(%x, %y) definition "complex_exp"     →   get_real(exp(to_complex(x, y)))
    %1 = stan.field 1 of %0

Which arguments belong together is said by the names of the definition's formals, `z.real` and `z.imag`; whether a tuple
is a complex number, by the signatures of the function.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute

from ulam.dialects import stan
from ulam.emit.stan_text_syntax import COMPLEX_PARTS, POSTFIX, Text, tuple_text
from ulam.library import signature_table

_COMPLEX = {
    stan.REAL: stan.COMPLEX,
    stan.VECTOR: stan.COMPLEX_VECTOR,
    stan.ROW_VECTOR: stan.COMPLEX_ROW_VECTOR,
    stan.MATRIX: stan.COMPLEX_MATRIX,
}
_CODES = re.compile("[cVWM]")
_PARTS_OF = tuple(f"get_{part}" for part in COMPLEX_PARTS)


def joined(real: Text, imag: Text) -> Text:
    """The complex number, or container of them, with these parts."""
    whole = [_operand(text.text, name) for text, name in zip((real, imag), _PARTS_OF, strict=True)]
    if whole[0] is not None and whole[0] == whole[1]:
        return Text(whole[0], 0)
    return Text(f"to_complex({real.text}, {imag.text})", POSTFIX)


def _operand(text: str, name: str) -> str | None:
    """What is in the parentheses of a call of `name`, if the text is one."""
    inside = text.removeprefix(f"{name}(").removesuffix(")")
    if f"{name}({inside})" != text:
        return None
    depth = 0
    for character in inside:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            return None
    return inside


def with_complex_arguments(arguments: Sequence[Text], formals: Sequence[str]) -> list[Text]:
    """The arguments of a call; those of `z.real` and `z.imag` as one."""
    found: list[Text] = []
    for argument, formal in zip(arguments, formals, strict=True):
        if formal.endswith(f".{COMPLEX_PARTS[1]}"):
            found[-1] = joined(found[-1], argument)
        else:
            found.append(argument)
    return found


def result_in_text(name: str, type_: Attribute) -> Attribute:
    """The type of a call of a library function in the text, where that in the module is `type_`."""
    row = signature_table.row(name) if isinstance(type_, stan.TupleType) else None
    if row is None or not any(_CODES.search(code) for code in row[1].values()):
        return type_
    return _in_complex(type_)


def _in_complex(type_: Attribute) -> Attribute:
    if not isinstance(type_, stan.TupleType):
        return type_
    first, *others = type_.elements
    if isinstance(first, stan.TupleType) or others != [first]:
        return stan.TupleType(ArrayAttr([_in_complex(element) for element in type_.elements]))
    return stan.ArrayType(first.rank, _COMPLEX[first.element]) if isinstance(first, stan.ArrayType) else _COMPLEX[first]


def field_in_text(base: Text, type_: Attribute, number: int) -> Text:
    """A field of a value whose type is `type_` in the text."""
    if isinstance(type_, stan.TupleType):
        return Text(f"{base.within(POSTFIX)}.{number}", POSTFIX)
    return Text(f"{_PARTS_OF[number - 1]}({base.text})", POSTFIX)


def in_parts(name: str, type_: Attribute) -> str:
    """A variable with complex numbers as the tuple that the module has in its place."""
    if isinstance(type_, stan.TupleType):
        return tuple_text([in_parts(f"{name}.{number}", t) for number, t in enumerate(type_.elements, 1)])
    base = type_.element if isinstance(type_, stan.ArrayType) else type_
    return tuple_text([f"{part}({name})" for part in _PARTS_OF]) if base in _COMPLEX.values() else name
