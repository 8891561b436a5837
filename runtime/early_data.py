"""Data compared with a program's declarations as soon as these are known: long before there is compiled code.

What is wrong is told in the words of `bind_values`, which runs here with the sizes that can be known without running
the program: whole numbers, and names of data. It runs again, with all of them, when there is code that has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ulam.runtime.data import Array, Values, bind_values
from ulam.runtime.names import INNER_RANK, Dims, GlobalVariable

if TYPE_CHECKING:
    from ulam.frontend import syntax

ELEMENTS = {"int": ("int", "scalar"), "real": ("real", "scalar")} | {
    inner: ("real", inner) for inner, rank in INNER_RANK.items() if rank
}
"""Type of the elements and kind of container for each written type without parts."""


def check_declared(program: syntax.Program, values: Values) -> None:
    """Raises DataError for values that surely do not fit what a program declares."""
    from ulam.frontend import syntax

    statements = program.data.statements if program.data is not None else ()
    declared = [statement for statement in statements if isinstance(statement, syntax.Declaration)]
    variables = [_variable(number, declaration) for number, declaration in enumerate(declared)]
    known = [variable for variable in variables if variable is not None]
    if len(known) < len(variables):  # tuples have other names in compiled code
        return
    sizes = [_written_sizes(declaration.sized_type) for declaration in declared]
    ints: dict[str, int] = {}

    def dims_of(variable: GlobalVariable) -> Dims | None:
        found = [_size(size, ints) for size in sizes[variable.index]]
        dims = tuple(size for size in found if size is not None)
        # A negative size is told with its reason when the program computes it.
        return dims if len(dims) == len(found) and min(dims, default=0) >= 0 else None

    def store(variable: GlobalVariable, array: Array) -> None:
        if variable.element == "int" and not variable.n_dims:
            ints[variable.name] = int(array)

    bind_values(known, values, dims_of, store)


def _variable(number: int, declaration: syntax.Declaration) -> GlobalVariable | None:
    """The variable as compiled code will declare it; None for what has parts."""
    from ulam.frontend.stan_types import ArrayType

    type_ = declaration.sized_type.type
    rank, inner = (type_.rank, type_.element) if isinstance(type_, ArrayType) else (0, type_)
    if str(inner) not in ELEMENTS:
        return None
    element, kind = ELEMENTS[str(inner)]
    return GlobalVariable(number, declaration.name, "data", str(type_), element, rank, kind, "none", -1)


def _written_sizes(declared: syntax.SizedType) -> Sequence[syntax.Expression]:
    """The sizes of all dimensions; a square matrix is declared with one for both of its."""
    inner = declared.sizes
    if len(inner) == 1 and "matrix" in str(declared.type):
        inner = [*inner, *inner]
    return [*declared.array_sizes, *inner]


def _size(size: syntax.Expression, ints: dict[str, int]) -> int | None:
    from ulam.frontend import syntax

    if isinstance(size, syntax.IntLiteral):
        return int(size.text) if len(size.text) < 10 else None
    return ints.get(size.name) if isinstance(size, syntax.Variable) else None
