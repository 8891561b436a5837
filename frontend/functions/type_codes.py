"""Short codes of types, the alphabet of the signature table.

A basic type is one letter (`BASIC_CODES`), `array[,] real` is `2r`, `tuple(real, int)` is `(ri)`, a function of
`(vector, data array[] real) => vector` is `<v!1r>v`, where `!` marks an argument that must be data. Codes are
prefix-free, so that the arguments of a signature are the concatenation of their codes.
"""

from __future__ import annotations

import re
from functools import cache

from ulam.frontend.stan_types import (
    BASIC_TYPES,
    ArrayType,
    BasicType,
    FunctionType,
    StanType,
    TupleType,
    array_of,
)

BASIC_CODES = {
    "int": "i",
    "real": "r",
    "complex": "c",
    "vector": "v",
    "row_vector": "w",
    "matrix": "m",
    "complex_vector": "V",
    "complex_row_vector": "W",
    "complex_matrix": "M",
    "void": "_",
}

_BASIC_OF_CODE = {code: BASIC_TYPES[name] for name, code in BASIC_CODES.items()}
_RANK = re.compile(r"\d+")


@cache
def code_of(type_: StanType) -> str:
    """The code of a type; types that no library function takes (`error`, library functions) get `?`."""
    if isinstance(type_, BasicType):
        return BASIC_CODES.get(type_.name, "?")
    if isinstance(type_, ArrayType):
        return f"{type_.rank}{code_of(type_.element)}"
    if isinstance(type_, TupleType):
        return f"({''.join(map(code_of, type_.elements))})"
    if isinstance(type_, FunctionType):
        formals = "".join(("!" if data else "") + code_of(t) for data, t in type_.arguments)
        return f"<{formals}>{code_of(type_.result)}"
    raise TypeError(f"not a Stan type: {type_!r}")


@cache
def type_of(code: str) -> StanType:
    """The type of one code, the inverse of `code_of`."""
    type_, end = _read_type(code, 0)
    if end != len(code):
        raise ValueError(f"not the code of one type: {code!r}")
    return type_


@cache
def types_of(codes: str) -> tuple[StanType, ...]:
    """The types of a concatenation of codes; `!` marks are dropped."""
    return tuple(type_ for _, type_ in arguments_of(codes))


@cache
def arguments_of(codes: str) -> tuple[tuple[bool, StanType], ...]:
    """(data only, type) for each code of a concatenation."""
    arguments = []
    position = 0
    while position < len(codes):
        data_only = codes[position] == "!"
        type_, position = _read_type(codes, position + data_only)
        arguments.append((data_only, type_))
    return tuple(arguments)


def _read_type(codes: str, start: int) -> tuple[StanType, int]:
    """The type whose code begins at `start`, and where its code ends."""
    letter = codes[start]
    if letter.isdigit():
        rank = _RANK.match(codes, start)
        assert rank is not None
        element, end = _read_type(codes, rank.end())
        return array_of(element, int(rank.group())), end
    if letter == "(":
        end = _closing(codes, start, "(", ")")
        return TupleType(types_of(codes[start + 1 : end])), end + 1
    if letter == "<":
        end = _closing(codes, start, "<", ">")
        result, after = _read_type(codes, end + 1)
        return FunctionType(arguments_of(codes[start + 1 : end]), result), after
    if letter not in _BASIC_OF_CODE:
        raise ValueError(f"unknown type code {letter!r} in {codes!r}")
    return _BASIC_OF_CODE[letter], start + 1


def _closing(codes: str, start: int, opening: str, closing: str) -> int:
    """Position of the bracket that closes the one at `start`."""
    depth = 0
    for position in range(start, len(codes)):
        if codes[position] == opening:
            depth += 1
        elif codes[position] == closing:
            depth -= 1
            if depth == 0:
                return position
    raise ValueError(f"unbalanced {opening!r} in {codes!r}")
