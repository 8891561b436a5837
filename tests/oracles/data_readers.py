"""The two readers of data, runtime/data.py and runtime/c/model/values.h, asked in the same way."""

from __future__ import annotations

import ctypes
import json
import math
import random
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ulam.runtime.c_library import library
from ulam.runtime.data import (
    Array,
    DataError,
    ValueProblem,
    bind_values,
    negative_size,
    read_data,
    warn_of_unused,
)
from ulam.runtime.libraries.program_tables import ProgramVariable
from ulam.runtime.names import INNER_RANK, Dims, GlobalVariable, to_compiled

_MESSAGE = 1 << 20


@dataclass
class Answer:
    """The values in the compiled order, and what was said: why there are none, or of names without a meaning."""

    said: str
    values: dict[str, Array] | None = None

    def same_values(self, other: Answer) -> bool:
        if self.values is None or other.values is None:
            return self.values is other.values
        return all(
            mine.dtype == found.dtype and mine.tobytes() == found.tobytes()
            for mine, found in zip(self.values.values(), other.values.values(), strict=True)
        )


def declared(name: str, kind: str, dims: Dims = (), constraint: str = "none") -> GlobalVariable:
    """A variable of type `kind`: `int`, `array[,] real`, ...; a field of an array of tuples is named `a[]:1`."""
    prefix, _, base = kind.rpartition("] ") if kind.startswith("array") else ("", "", kind)
    rank = prefix.count(",") + 1 if prefix else 0
    element = "int" if base == "int" else "real"
    inner = "scalar" if base in ("int", "real") else base
    ranks = tuple(part.count(",") + part.count("[") for part in name.split(":")[:-1])
    name = re.sub(r"\[,*\]", "", name)
    return GlobalVariable(
        0, name, "data", kind, element, rank, inner, constraint, 0, dims=dims, field_ranks=ranks)  # fmt: skip


def in_python(variables: Sequence[GlobalVariable], source: str, what: str = "data") -> Answer:
    values: dict[str, Array] = {}
    shapes = {variable.name: variable.dims for variable in variables}

    def dims_of(variable: GlobalVariable) -> Dims:
        dims = shapes[variable.name]
        if any(size < 0 for size in dims):
            raise ValueProblem(negative_size(variable, dims))
        return dims

    def store(variable: GlobalVariable, array: Array) -> None:
        values[variable.name] = to_compiled(variable, array) if variable.n_dims else array.reshape(1)

    try:
        given = read_data(source, what)
        bind_values(variables, given, dims_of, store)
    except (DataError, OSError) as error:
        return Answer(str(error))
    finally:
        for variable in variables:  # which binding may have changed
            variable.dims = shapes[variable.name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        names = [variable.name for variable in variables]
        warn_of_unused(given, names, "declared in the data block", names)
    return Answer("".join(str(warning.message) for warning in caught), values)


def in_c(variables: Sequence[GlobalVariable], source: str | bytes, what: str = "data") -> Answer:
    table = (ProgramVariable * (len(variables) + 1))()
    values: dict[str, Array] = {}
    for entry, variable in zip(table, variables, strict=False):
        entry.name, entry.type = variable.name.encode(), variable.type.encode()
        entry.declaration = variable.declaration().encode()
        entry.is_int = variable.element == "int"
        entry.field_ranks = bytes(ord("0") + rank for rank in variable.field_ranks)
        entry.array_rank, entry.inner_rank = variable.array_rank, INNER_RANK[variable.inner]
        dtype = np.int32 if entry.is_int else np.float64
        size = math.prod(variable.dims)
        values[variable.name] = np.zeros(size if 0 < size < 1 << 26 else 0, dtype)
    sizes = [size for variable in variables for size in variable.dims]
    dims = (ctypes.c_int64 * (len(sizes) + 1))(*sizes)
    room: Any = (ctypes.c_void_p * (len(variables) + 1))(*(array.ctypes.data for array in values.values()))
    message = ctypes.create_string_buffer(_MESSAGE)
    text = source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass")
    addresses = (ctypes.addressof(part) for part in (table, dims, room, message))
    first, *others = addresses
    status = library().ulam_try_values(text, what.encode(), first, len(variables), *others, _MESSAGE)
    said = message.value.decode("utf-8", "backslashreplace")
    return Answer(said, None if status else values)


# ---------------------------------------------------------------- the table of cases


def data_cases() -> list[dict[str, Any]]:
    """tests/reference/README.md says what they are."""
    table = Path(__file__).resolve().parent.parent / "reference" / "data_cases.jsonl"
    return [json.loads(line) for line in table.read_text().splitlines()]


def source_of(case: dict[str, Any]) -> str:
    """JSON text, or the name of a file in the working directory, which is made."""
    if "path" in case:
        return case["path"]
    if "file" in case:
        content = bytes.fromhex(case["file"]) if case.get("hex") else case["file"].encode()
        Path("data.json").write_bytes(content)
        return "data.json"
    piece, count = case.get("fill", ("", 0))
    return case["json"].replace("§", piece * count)


# ---------------------------------------------------------------- random cases

KINDS = ("int", "real", "vector", "row_vector", "matrix", "array[] int", "array[,] int", "array[] vector")
KINDS += ("array[] real", "array[,] real", "array[] matrix", "array[,,] real", "array[] row_vector")
LEAVES = (
    "0", "-0", "1", "-1", "7", "2147483647", "-2147483648", "2147483648", "-2147483649", "9007199254740993",
    "9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1" + "0" * 308,
    "17" + "9" * 307, "9" * 400, "0.0", "-0.0", "1.0", "1e5", "1E-5", "2.5", "-2.5e+3", "1e400", "-1e400", "1e-400",
    "4.9e-324", "2.4703282292062327e-324", "2.2250738585072014e-308", "1.7976931348623159e308", "0.1",
    "123456789012345678.9", "1" * 30 + ".5", "0." + "0" * 30 + "1", "NaN", "Infinity", "-Infinity", "Inf", "-Inf",
    '"NaN"', '"Inf"', '"-Infinity"', '"+inf"', '"1"', '""', '"\\u004eaN"', "null", "true", "false", "[]", "{}", "[1]",
    "[[]]", '{"1": 1}', '{"1": 1, "2": [1, 2]}', "[1, [2]]", "[NaN, null]",
)  # fmt: skip
WRONG = (
    "", "-", "+1", "01", "1.", ".5", "1e", "nan", "inf", "NA", "None", "Infi", "Inf2", "1 2", ",", "[", "]", "{", "}",
    '"', "'", "\\", "\0", "\t", "\n", "\x1f", "\ufeff", "é", "\ud800", "c(1)", "TRUE", "//", "#", ":", "1,",
)  # fmt: skip

OTHERS = ('"z"', '""', '"y"', '"é"', '"\\u0079"')


def _numbers(rng: random.Random, dims: Dims, is_int: bool) -> str:
    if dims:
        blank = rng.choice(("", "", " ", "\n"))
        return f"[{blank}{f',{blank}'.join(_numbers(rng, dims[1:], is_int) for _ in range(dims[0]))}]"
    if rng.random() < 0.05:
        return rng.choice(LEAVES)
    if is_int or rng.random() < 0.3:
        return str(rng.randrange(-5, 100))
    return repr(rng.choice((rng.gauss(0, 1), rng.uniform(-1, 1) * 10.0 ** rng.randrange(-320, 309), rng.random())))


def random_case(rng: random.Random) -> tuple[list[GlobalVariable], str]:
    """Variables and JSON text for them that is right in two of three cases."""
    variables: list[GlobalVariable] = []
    values: dict[str, list[str]] = {}
    for number in range(rng.randrange(1, 5)):
        name = rng.choice(("y", "N", "alpha", "x_long")) + ("" if number == 0 else str(number))
        if rng.random() < 0.25:
            name = f"t:{number + 1}"
        kind = rng.choice(KINDS)
        n_dims = declared(name, kind).n_dims
        dims = tuple(rng.choice((0, 1, 1, 2, 2, 3, 4)) for _ in range(n_dims))
        if rng.random() < 0.02 and dims:
            dims = (-1, *dims[1:])
        variables.append(declared(name, kind, dims))
        shown = tuple(max(size, 0) for size in dims)
        if rng.random() < 0.1:
            shown = tuple(rng.choice((0, 1, 2, 3)) for _ in range(rng.choice((n_dims, rng.randrange(4)))))
        base, _, field = name.partition(":")
        if rng.random() < 0.03:
            base = base.upper() + "_"
        value = _numbers(rng, shown, "int" in kind)
        if rng.random() < 0.96:
            values.setdefault(base, []).append(f'"{field}": {value}' if field and rng.random() < 0.97 else value)
    members = [
        f'"{name}": {f"{{{chr(44).join(parts)}}}" if parts[0].startswith(chr(34)) else parts[0]}'
        for name, parts in values.items()
    ]
    while rng.random() < 0.15:
        members.append(f"{rng.choice(OTHERS)}: {rng.choice(LEAVES)}")
    rng.shuffle(members)
    text = f"{{{', '.join(members)}}}"
    if rng.random() < 0.35:
        text = damaged(rng, text)
    return variables, text


def damaged(rng: random.Random, text: str) -> str:
    """Text with some pieces too many or too few."""
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at = rng.randrange(len(text) + 1)
        piece = rng.choice(rng.choice((LEAVES, WRONG)))
        kind = rng.randrange(4)
        if kind == 0:
            text = text[:at] + piece + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + rng.randrange(1, 8) :]
        elif kind == 2:
            text = text[:at] + piece + text[at + rng.randrange(1, 4) :]
        else:
            text = text[:at] + text[at : at + 20] * rng.choice((2, 3, 300)) + text[at:]
    return text


def reader_case(seed: int, number: int, file: Path) -> str | None:
    """One text, read by both as a file of some encoding, or as it is; what they do not agree on."""
    rng = random.Random(f"reader {seed}:{number}")
    variables, text = random_case(rng)
    as_text = "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text) and text.lstrip()[:1] in ("{", "[")
    if as_text and rng.random() < 0.5:
        source = text
    else:
        file.write_bytes(encoded(rng, text))
        source = str(file)
    python, c = in_python(variables, source), in_c(variables, source)
    if "nested too deeply" in c.said and text.count("[") + text.count("{") > 900:
        return None  # Python's limit depends on the depth of its stack, too
    said = python.said.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
    if said == c.said and python.same_values(c):
        return None
    kinds = [(variable.name, variable.type, variable.dims) for variable in variables]
    return f"{kinds} {text[:300]!r}: Python: {said[:300]} {python.values}; C: {c.said[:300]} {c.values}"


def encoded(rng: random.Random, text: str) -> bytes:
    """Text as the bytes of a file, of any encoding, or other bytes."""
    encoding = rng.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "binary"))
    if encoding == "binary":
        return bytes(rng.randrange(256) for _ in range(rng.randrange(200)))
    return text.encode(encoding, errors="replace" if encoding == "latin-1" else "surrogatepass")
