"""Reading data: a path, JSON text or a mapping becomes one checked array for each variable that the program declares.

Rules of Stan's JSON reader (CmdStan guide, "JSON format for CmdStan"): numbers without point and exponent that fit
32 bits are ints; ints are accepted for reals, not the reverse; `"Inf"`, `"-Inf"`, `"NaN"` and the like stand for
numbers; nesting is row-major; an empty array fits every shape without elements, and a variable without elements may be
absent; names that the program does not declare are ignored, with a warning. All problems of all variables are reported
at once.
"""

from __future__ import annotations

import json
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ulam.dialects.integers import INT_MAX, INT_MIN
from ulam.frontend.encoding import problem_of, read_text
from ulam.frontend.spelling import nearest
from ulam.library.records import record
from ulam.runtime.errors import ArgumentError, DataError, UnusedNameWarning
from ulam.runtime.json_reader import kind_of, parse_json
from ulam.runtime.named_text import NamedText
from ulam.runtime.names import Dims, GlobalVariable

Array = npt.NDArray[Any]
DataSource = str | os.PathLike[str] | NamedText | Mapping[str, Any] | None

SPECIAL_NUMBERS = {
    **dict.fromkeys(("Inf", "Infinity"), math.inf),
    **dict.fromkeys(("-Inf", "-Infinity"), -math.inf),
    "NaN": math.nan,
}
_SHOWN_PATH = 200
SHOWN_PROBLEMS = 20
MAX_DEPTH = 64
"""No array of NumPy has more dimensions."""

DATA, INITIAL_VALUES, PARAMETER_VALUES = "data", "initial values", "parameter values"
"""What values are for: how messages call those that do not come from a file."""


def _is_name(text: str) -> bool:
    # compiled when it is needed: sets of all of Unicode take longest of all that a start from the cache would compile
    return re.fullmatch(r"[A-Za-z_\x80-\U0010FFFF][0-9A-Za-z_\x80-\U0010FFFF]*", text) is not None


class ValueProblem(Exception):
    """A value cannot be what its variable declares; the text says why."""


@record(frozen=True, slots=True)
class Values:
    """What was read: `name` for messages, the values by variable name, and whether they came as JSON text."""

    name: str
    values: Mapping[str, Any]
    is_json: bool


def read_data(source: DataSource, what: str = DATA) -> Values:
    """Reads values given as a path, as JSON text or as a mapping; None and an empty text are no values."""
    if source is None:
        return Values(what, {}, is_json=False)
    if isinstance(source, Mapping):
        return Values(what, source, is_json=False)
    if isinstance(source, NamedText):
        return Values(source.name, parse_json(checked_text(source.text, source.name), source.name), is_json=True)
    if not isinstance(source, str | os.PathLike):
        raise ArgumentError(f"{what} must be a path, JSON text or a mapping, found {type(source).__name__}")
    text = os.fspath(source)
    if not text.strip():
        return Values(what, {}, is_json=False)
    if isinstance(source, str) and text.lstrip()[0] in "{[":
        return Values(what, parse_json(text, what), is_json=True)
    return Values(text, parse_json(file_text(text, what), text), is_json=True)


def file_text(path: str, what: str) -> str:
    """The text of a file of values. Raises OSError if there is none, DataError if it is no text."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"{what}: '{path}' is a folder, not a file")
    try:
        exists = os.path.exists(path)
    except ValueError:  # a NUL in the name
        exists = False
    if not exists:
        if what == DATA:
            raise FileNotFoundError(f"data file '{path[:_SHOWN_PATH]}' does not exist")
        raise FileNotFoundError(f"{what}: '{path[:_SHOWN_PATH]}' is no JSON text, and no file of this name exists")
    return checked_text(read_text(path), path)


def checked_text(text: str, name: str) -> str:
    """The text of a file of values. Raises DataError if there is none, or if it is no text."""
    problem = problem_of(text)
    if not text.strip():
        raise DataError([f'{name}: this file is empty; without values it is {{}}, as in {{"N": 1}} with one'])
    if problem is not None:
        message = problem.message.replace("Stan programs are", "JSON is")
        raise DataError([f"{name}: {message}; {problem.help.replace('A Stan program', 'JSON')}"])
    return text


# ---------------------------------------------------------------- one value


def convert(variable: GlobalVariable, value: Any, is_json: bool) -> Array:
    """The value as an int32 or float64 array in the shape it came in. Raises ValueProblem."""
    array = _as_array(variable, value, is_json)
    if variable.element == "int":
        return _as_int(variable, array, value)
    if array.dtype.kind == "c":
        return np.stack((np.real(array), np.imag(array)), axis=-1)
    return np.array(array, dtype=np.float64)


def _as_array(variable: GlobalVariable, value: Any, is_json: bool) -> Array:
    """A numeric array (kinds i, u, f) from nested lists, numbers, or anything that numpy understands."""
    if value is None:
        raise ValueProblem("is null (None); Stan has no missing values")
    if isinstance(value, (list, tuple)) and _is_deep(value):
        raise ValueProblem(f"must be {_expected(variable)}, found lists more than {MAX_DEPTH} deep in one another")
    if isinstance(value, Mapping):
        raise ValueProblem(f"must be {_expected(variable)}, found a JSON object (that is how tuples are written)")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError):
        raise ValueProblem(_raggedness(variable, value)) from None
    except Exception as error:  # of an object that converts itself
        told = f"found a {type(value).__name__} that NumPy cannot read: {type(error).__name__}: {error}"
        raise ValueProblem(f"must be {_expected(variable)}, {told}") from error
    kind = array.dtype.kind
    if is_json and not isinstance(value, (int, float, str)):
        if _may_hold_bool(value):
            _refuse_bool(variable, value)
    elif is_json and isinstance(value, bool):
        raise ValueProblem(f"is {json.dumps(value)}; write 1 or 0")
    if kind in "iuf":
        return array
    if kind == "b":
        return array.astype(np.int32)
    if kind == "c" and variable.is_complex:
        return array
    if kind == "c":
        raise ValueProblem(f"must be {_expected(variable)}, found complex numbers")
    if kind in "UO":
        return _from_leaves(variable, array, value)
    raise ValueProblem(f"must be {_expected(variable)}, found an array of {array.dtype}")


def _from_leaves(variable: GlobalVariable, array: Array, value: Any) -> Array:
    """Element by element, for arrays with strings, very large integers or objects among their elements."""
    if isinstance(value, (list, tuple)):
        leaves = list(_leaves(value))
    elif isinstance(value, (str, int)):
        leaves = [((), value)]
    else:
        leaves = list(np.ndenumerate(array))
    numbers: list[int | float] = []
    for index, leaf in leaves:
        where = _element(variable.name, index)
        if isinstance(leaf, str):
            if leaf not in SPECIAL_NUMBERS:
                accepted = ", ".join(f'"{text}"' for text in SPECIAL_NUMBERS)
                raise ValueProblem(
                    f"must be {_expected(variable)}, but {where} is the text {leaf!r} (only {accepted} are)"
                )
            numbers.append(SPECIAL_NUMBERS[leaf])
        elif leaf is None:
            raise ValueProblem(f"has no value (null, None) at {where}")
        elif isinstance(leaf, Mapping):
            raise ValueProblem(f"must be {_expected(variable)}, but {where} is a JSON object")
        elif isinstance(leaf, complex) or not hasattr(leaf, "__float__"):
            raise ValueProblem(f"must be {_expected(variable)}, but {where} is {leaf!r}")
        else:
            numbers.append(leaf)
    whole = all(isinstance(number, (int, np.integer)) for number in numbers)
    fits = whole and all(INT_MIN <= number <= INT_MAX for number in numbers)
    if len(numbers) != array.size:
        raise ValueProblem(_raggedness(variable, value))
    try:
        return np.array(numbers, dtype=np.int64 if fits else np.float64).reshape(array.shape)
    except OverflowError:
        raise ValueProblem("holds an integer too large for a real") from None


def _as_int(variable: GlobalVariable, array: Array, value: Any) -> Array:
    if array.dtype.kind == "f":
        if array.size == 0:
            return array.astype(np.int32)
        index, number = _first_real(array, value)
        where = _element(variable.name, index)
        if number == int_or_none(number):
            is_int = INT_MIN <= number <= INT_MAX
            told = f" (write {int(number)}, without a point)" if is_int else ", outside the 32-bit range of int"
        else:
            told = ""
        raise ValueProblem(f"int variable contained non-int values: {where} is {_number(number)}{told}")
    outside = (array < INT_MIN) | (array > INT_MAX)
    if outside.any():
        index = tuple(int(i) for i in np.argwhere(outside)[0])
        where = _element(variable.name, index)
        raise ValueProblem(
            f"int variable contained non-int values: {where} is {array[index]}, outside the 32-bit range of int"
        )
    return np.array(array, dtype=np.int32)


def int_or_none(number: float) -> int | None:
    return int(number) if math.isfinite(number) else None


def _first_real(array: Array, value: Any) -> tuple[Dims, float]:
    """Index and value of the first element that was written as a real."""
    if isinstance(value, (list, tuple)):
        for index, leaf in _leaves(value):
            if isinstance(leaf, str):
                return index, SPECIAL_NUMBERS[leaf]
            if isinstance(leaf, float) or not INT_MIN <= leaf <= INT_MAX:
                return index, float(leaf)
    fractional = np.argwhere(array != np.floor(array))
    index = tuple(int(i) for i in fractional[0]) if len(fractional) else (0,) * array.ndim
    return index, float(array[index])


def _leaves(value: Any, index: Dims = ()) -> Iterator[tuple[Dims, Any]]:
    if isinstance(value, (list, tuple)):
        for position, item in enumerate(value):
            yield from _leaves(item, (*index, position))
    elif isinstance(value, np.ndarray):
        for position, item in np.ndenumerate(value):
            yield (*index, *position), item
    else:
        yield index, value


def _is_deep(value: Any) -> bool:
    """Whether lists are in one another more than `MAX_DEPTH` times. A list of numbers is not looked at by element."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner: dict[int, Any] = {}
        for found in level:
            if found and not {list, tuple}.isdisjoint(map(type, found)):
                inner.update((id(item), item) for item in found if isinstance(item, (list, tuple)))
        if not inner:
            return False
        level = [*inner.values()]
    return True


def _may_hold_bool(value: Any) -> bool:
    """Whether a list nest has a bool: decided from its innermost lists at the speed of `in`-like scans."""
    if not isinstance(value, list):
        return False
    if value and isinstance(value[0], list):
        return any(_may_hold_bool(item) for item in value)
    return bool in set(map(type, value))


def _refuse_bool(variable: GlobalVariable, value: Any) -> None:
    for index, leaf in _leaves(value):
        if isinstance(leaf, bool):
            where = _element(variable.name, index)
            raise ValueProblem(f"must be {_expected(variable)}, but {where} is {json.dumps(leaf)}; write 1 or 0")


def _raggedness(variable: GlobalVariable, value: Any) -> str:
    """Where a list nest is not rectangular."""
    shape: list[int] = []
    probe = value
    while isinstance(probe, (list, tuple)):
        shape.append(len(probe))
        probe = probe[0] if probe else None

    def first_difference(item: Any, depth: int, index: Dims) -> str | None:
        here = _element(variable.name, index)
        if isinstance(item, (list, tuple)) != (depth < len(shape)):
            return f"{here} is {kind_of(item)} where its neighbours are not"
        if depth == len(shape):
            return None
        if len(item) != shape[depth]:
            return f"{here} has {len(item)} elements, an earlier one has {shape[depth]}"
        for position, inner in enumerate(item):
            found = first_difference(inner, depth + 1, (*index, position))
            if found:
                return found
        return None

    difference = first_difference(value, 0, ())
    return f"non-rectangular array{': ' + difference if difference else ''}"


# ---------------------------------------------------------------- shapes


def check_dims(variable: GlobalVariable, array: Array, dims: Dims) -> Array:
    """The array in the declared shape. Raises ValueProblem with the declared and the found dimensions."""
    for size, text in zip(dims, variable.sizes or ("",) * len(dims), strict=False):
        if size < 0:
            raise ValueProblem(f"has a negative size: {text + ' is ' if text else ''}{size}")
    found = array.shape
    if found == dims:
        return array
    if array.size == 0 and math.prod(dims) == 0:
        return _without_elements(array, dims)
    declared = f"declared {variable.declaration()}"
    shapes = f"dims declared={_dims_text(dims)}; dims found={_dims_text(found)}"
    if len(found) != len(dims):
        hint = ""
        if not found and math.prod(dims) == 1:
            hint = f"; write {'[' * len(dims)}{json.dumps(array.item())}{']' * len(dims)}"
        raise ValueProblem(f"mismatch in number dimensions declared and found; {declared}; {shapes}{hint}")
    position = next(i for i, (want, have) in enumerate(zip(dims, found, strict=True)) if want != have)
    hint = "; the value looks transposed" if len(dims) == 2 and found == dims[::-1] else ""
    raise ValueProblem(f"mismatch in dimension declared and found; {declared}; position={position}; {shapes}{hint}")


def _without_elements(array: Array, dims: Dims) -> Array:
    """The array, which has no elements, in a shape with a size of 0."""
    try:
        return array.reshape(dims)
    except ValueError:  # NumPy multiplies the other sizes all the same
        message = f"has sizes whose product is too large, though one of them is 0: {_dims_text(dims)}"
        raise ValueProblem(message) from None


def bind_values(
    variables: Sequence[GlobalVariable],
    source: Values,
    dims_of: Callable[[GlobalVariable], Dims | None],
    store: Callable[[GlobalVariable, Array], None],
) -> None:
    """Checks and stores the value of each variable, in order; raises one DataError with all problems found.

    `dims_of` asks the program for the sizes of a variable, given what was stored before; None: they are not known yet.
    Once an int variable is wrong, sizes can no longer be trusted: later variables are then checked for presence and
    type only.
    """
    problems: list[str] = []
    sizes_known = True
    for variable in variables:
        try:
            dims = dims_of(variable) if sizes_known else None
            array = _value_of(variable, variables, source, dims)
            if dims is not None and array is not None:
                variable.dims = dims
                store(variable, check_dims(variable, array, dims))
        except ValueProblem as problem:
            problems.append(f"{source.name}: variable '{variable.name}' {_joined(str(problem))}")
            sizes_known = sizes_known and variable.element != "int"
    if problems:
        hidden = len(problems) - SHOWN_PROBLEMS
        if hidden > 0:
            problems[SHOWN_PROBLEMS:] = [f"... and {hidden} more"]
        raise DataError(problems)


def _value_of(
    variable: GlobalVariable, variables: Sequence[GlobalVariable], source: Values, dims: Dims | None
) -> Array | None:
    try:
        value = _given(source, variable)
    except KeyError:
        dtype = np.int32 if variable.element == "int" else np.float64
        if dims is not None and math.prod(dims) == 0:
            return _without_elements(np.empty(0, dtype=dtype), dims)
        if dims is None and variable.n_dims:
            return None  # may be without elements; cannot be told
        raise ValueProblem(_absence(variable, variables, source, dims)) from None
    return convert(variable, value, source.is_json)


def _given(source: Values, variable: GlobalVariable) -> Any:
    """The value given for a variable. For a field `t:1` of a tuple it is taken of `{"1": ...}`, or of a Python tuple;
    for one in an array of tuples the result is a list, of as many dimensions as that array has."""
    name, *fields = variable.fields

    def inside(value: Any, level: int, rank: int, where: str) -> Any:
        if level == len(fields):
            return value
        if rank and isinstance(value, (list, tuple, np.ndarray)):
            items: Iterable[Any] = value
            return [inside(item, level, rank - 1, _element(where, (n,))) for n, item in enumerate(items)]
        field = fields[level]
        if not rank and isinstance(value, Mapping):
            found = value[field]
        elif not rank and isinstance(value, tuple) and int(field) <= len(value):
            found = value[int(field) - 1]
        else:
            whose = "an array of tuples, each" if rank else "a tuple,"
            found = f"found {kind_of(value)} for '{where}'"
            raise ValueProblem(f'is element {field} of {whose} written {{"1": ..., "2": ...}}; {found}')
        return inside(found, level + 1, ranks[level + 1], f"{where}.{field}")

    ranks = (*(variable.field_ranks or (0,) * len(fields)), 0)
    return inside(source.values[name], 0, ranks[0], name)


def _absence(variable: GlobalVariable, variables: Sequence[GlobalVariable], source: Values, dims: Dims | None) -> str:
    shape = f" with dims {_dims_text(dims)}" if dims else ""
    text = f"does not exist; declared {variable.declaration()}{shape}"
    declared = {other.name.partition(":")[0] for other in variables}
    unused = [name for name in source.values if name not in declared]
    close = _similar(variable.name, unused)
    return f"{text}; did you mean '{close}'?" if close else text


def _similar(name: str, others: Iterable[str]) -> str | None:
    """The one of some names that was probably meant, or is the same but for capitals."""
    others = [other for other in others if isinstance(other, str)]  # pyright: ignore[reportUnnecessaryIsInstance]
    same = [other for other in others if other.lower() == name.lower() and other != name]
    return same[0] if same else nearest(name, others)


def warn_of_unused(source: Values, known: Iterable[str], where: str, meant: Iterable[str]) -> None:
    """Warns of names that mean nothing: `known` are those that do, `where` says what has them, `meant` are those that
    may have been meant."""
    names = {name.partition(":")[0] for name in known}
    unused = [str(name) for name in source.values if name not in names]
    if not unused:
        return
    missing = [name for name in dict.fromkeys(m.partition(":")[0] for m in meant) if name not in source.values]
    told = []
    for name in unused[:SHOWN_PROBLEMS]:
        close = _similar(name, missing) if _is_name(name) else None
        told.append(f"'{name[:_SHOWN_PATH]}'" + (f" (did you mean '{close}'?)" if close else ""))
    if len(unused) > SHOWN_PROBLEMS:
        told.append(f"and {len(unused) - SHOWN_PROBLEMS} more")
    verb = "is" if len(unused) == 1 else "are"
    warnings.warn(
        f"{source.name}: {', '.join(told)} {verb} not {where} and {verb} ignored", UnusedNameWarning, stacklevel=2
    )


def negative_size(variable: GlobalVariable, sizes: Sequence[int]) -> str:
    """Text for a variable whose declared sizes came out negative."""
    return f"has a negative size in its dims {_dims_text(tuple(sizes))}; declared {variable.declaration()}"


# ---------------------------------------------------------------- texts


def _joined(problem: str) -> str:
    return problem if problem.startswith(("is ", "has ", "must ", "does ", "holds ")) else f"- {problem}"


def _expected(variable: GlobalVariable) -> str:
    if variable.n_dims == 0:
        return "an integer" if variable.element == "int" else "a number"
    if variable.is_complex and not variable.shape:
        return "a pair of numbers"
    article = "an" if variable.type[0] in "aeiou" else "a"
    if variable.is_complex:
        return f"{article} {variable.type} of pairs of numbers"
    return f"{article} {variable.type} of {'integers' if variable.element == 'int' else 'numbers'}"


def _element(name: str, index: Dims) -> str:
    return f"{name}[{', '.join(str(i + 1) for i in index)}]" if index else name


def _dims_text(dims: Sequence[int]) -> str:
    return f"({','.join(map(str, dims))})"


def _number(number: float) -> str:
    return repr(float(number))
