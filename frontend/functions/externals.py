"""External functions as a program declares them: what is known of one that is given, put together with its
declaration (`library/externals.py`).
"""

from __future__ import annotations

import re

from ulam.frontend.functions.type_codes import code_of
from ulam.frontend.stan_types import INT, StanType
from ulam.frontend.syntax import FunctionDefinition
from ulam.library.externals import ExternalArgument, ExternalForm, ExternalFunction
from ulam.library.functions import FunctionKind, kind_of

_CODE = re.compile(r"\d*[irvwm]")
_SIZE = re.compile(r"(size|rows|cols)\((\w+)\)|dims\((\w+)\)\[(\d+)\]|(\w+)")
_IMPURE = (FunctionKind.RNG, FunctionKind.LP, FunctionKind.JACOBIAN)


class ExternalProblem(Exception):
    """Why a declaration cannot be that of an external function; `help` says the mend."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help


def declared(definition: FunctionDefinition, form: ExternalForm) -> ExternalFunction:
    """The external function that a declaration means, of which `form` is given. Raises ExternalProblem."""
    name = definition.name
    if kind_of(name) in _IMPURE:
        ending = kind_of(name).ending
        raise ExternalProblem(
            f"'{name}' cannot be an external function: what ends in {ending} is more than a function of its arguments",
            "define it, and have it call an external function",
        )
    arguments = [ExternalArgument(_code(name, a.type), a.data_only) for a in definition.arguments]
    result = ExternalArgument(_code(name, definition.result))
    names = {a.name: n for n, a in enumerate(definition.arguments)}
    sizes = _sizes(definition, form, names, arguments, result)
    return ExternalFunction(name, tuple(arguments), result, sizes, form.has_pullback)


def prototype(definition: FunctionDefinition) -> str | None:
    """The C function that a declaration asks for; None if it cannot be one."""
    try:
        arguments = tuple(ExternalArgument(_code("", a.type), a.data_only) for a in definition.arguments)
        result = ExternalArgument(_code("", definition.result))
    except ExternalProblem:
        return None
    function = ExternalFunction(definition.name, arguments, result, (), False)
    return function.prototype(names=tuple(a.name for a in definition.arguments))


def _code(name: str, type_: StanType) -> str:
    code = code_of(type_)
    if _CODE.fullmatch(code):
        return code
    raise ExternalProblem(
        f"'{name}' cannot be an external function: it has {type_}",
        "external functions have ints, reals, vectors, row vectors, matrices, and arrays of these",
    )


def _sizes(
    definition: FunctionDefinition,
    form: ExternalForm,
    names: dict[str, int],
    arguments: list[ExternalArgument],
    result: ExternalArgument,
) -> tuple[str, ...]:
    """The sizes of the result, in the codes that a kernel's name has."""
    shape = form.shape
    if len(shape) == 1 and (n := names.get(shape[0])) is not None and arguments[n].rank == result.rank > 0:
        return tuple(f"a{n}d{k}" for k in range(result.rank))
    if len(shape) != result.rank:
        found = f"{len(shape)} sizes were" if shape else "none was"
        raise ExternalProblem(
            f"the result of the external function '{form.name}' has {result.rank} sizes, but {found} given",
            "give them as shape= of ulam.external: an argument of the same type, or numbers, int arguments, size(x), "
            "rows(x), cols(x), dims(x)[1]",
        )
    return tuple(_size(definition, form.name, text, names, arguments) for text in shape)


def _size(
    definition: FunctionDefinition, name: str, text: str, names: dict[str, int], arguments: list[ExternalArgument]
) -> str:
    wrong = ExternalProblem(
        f"'{text}' is no size of the result of the external function '{name}'",
        "a size is a number, an int argument, or size(x), rows(x), cols(x), dims(x)[1] of an argument x",
    )
    match = _SIZE.fullmatch(text.replace(" ", ""))
    if match is None:
        raise wrong
    function, of, dims_of, which, plain = match.groups()
    if plain is not None and plain.isdecimal():
        return f"n{int(plain)}"
    n = names.get(plain or of or dims_of)
    if n is None:
        raise wrong
    if plain is not None:
        if definition.arguments[n].type != INT:
            raise wrong
        return f"i{n}"
    rank = arguments[n].rank
    if which is not None:
        position = int(which) - 1
    elif function == "size":
        position = 0
    else:
        position = rank - (2 if arguments[n].is_matrix and function == "rows" else 1)
    if not 0 <= position < rank:
        raise wrong
    return f"a{n}d{position}"
