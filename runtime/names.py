"""Global variables of a program: their shapes, the names of their elements, and the order of elements.

Compiled code keeps a container as: array dimensions outermost, the first slowest; then a matrix column by column.
Constrained values go to and come from users in BridgeStan's order: all dimensions column-major, the first index
fastest, array dimensions included. The two differ for arrays of containers and for arrays of two or more dimensions.
Unconstrained values are in the order in which parameters are read, array element by array element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from ulam.library.records import record

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Dims = tuple[int, ...]

INNER_RANK = {"scalar": 0, "vector": 1, "row_vector": 1, "matrix": 2}


def _lower_triangle(size: int) -> int:
    return size * (size - 1) // 2


def _cholesky_factor_cov(rows: int, columns: int) -> Dims:
    return (_lower_triangle(columns) + columns + (rows - columns) * columns,)


# Dimensions of the unconstrained form of one (inner) value, from the dimensions of the constrained one. Kinds of
# constraint that are absent keep their dimensions. Stan Reference Manual, "Constraint transforms".
UNCONSTRAINED_DIMS: dict[str, Callable[..., Dims]] = {
    "simplex": lambda size: (max(size - 1, 0),),
    "sum_to_zero_vector": lambda size: (max(size - 1, 0),),
    "sum_to_zero_matrix": lambda rows, columns: (max(rows - 1, 0), max(columns - 1, 0)),
    "cholesky_factor_corr": lambda rows, columns: (_lower_triangle(rows),),
    "cholesky_factor_cov": _cholesky_factor_cov,
    "corr_matrix": lambda rows, columns: (_lower_triangle(rows),),
    "cov_matrix": lambda rows, columns: (rows + _lower_triangle(rows),),
    "column_stochastic_matrix": lambda rows, columns: (max(rows - 1, 0), columns),
    "row_stochastic_matrix": lambda rows, columns: (rows, max(columns - 1, 0)),
}


@record(slots=True)
class GlobalVariable:
    """One entry of the metadata's `globals`. `dims` is known once the data are bound."""

    index: int
    name: str
    block: str
    type: str  # as in Stan, without sizes: `array[] vector`
    element: str  # "int" or "real"
    array_rank: int
    inner: str  # "scalar", "vector", "row_vector", "matrix"
    constraint: str
    slot: int  # of data and transformed data, else -1
    sizes: tuple[str, ...] = ()  # size expressions as written, where the compiler gives them
    dims: Dims = ()

    @staticmethod
    def from_metadata(index: int, entry: Mapping[str, Any]) -> GlobalVariable:
        slot = entry.get("slot")
        return GlobalVariable(
            index=index,
            name=entry["name"],
            block=entry["block"],
            type=entry.get("type") or _type_text(entry),
            element=entry["element"],
            array_rank=int(entry["array_rank"]),
            inner=entry["inner"],
            constraint=entry.get("constraint") or "none",
            slot=-1 if slot is None else int(slot),
            sizes=tuple(entry.get("sizes", ())),
        )

    @property
    def n_dims(self) -> int:
        return self.array_rank + INNER_RANK[self.inner]

    @property
    def size(self) -> int:
        return math.prod(self.dims)

    @property
    def unconstrained_dims(self) -> Dims:
        rule = UNCONSTRAINED_DIMS.get(self.constraint)
        inner = self.dims[self.array_rank :]
        return self.dims[: self.array_rank] + (inner if rule is None else rule(*inner))

    def declaration(self) -> str:
        """`y: array[N] vector[K]`-like text for messages."""
        sizes = f" with sizes ({', '.join(self.sizes)})" if self.sizes else ""
        return f"{self.type} {self.name}{sizes}"


def _type_text(entry: Mapping[str, Any]) -> str:
    """The unsized type as Stan writes it."""
    base = entry["element"] if entry["inner"] == "scalar" else entry["inner"]
    rank = int(entry["array_rank"])
    return f"array[{',' * (rank - 1)}] {base}" if rank else base


def constrained_names(variable: GlobalVariable) -> Iterable[str]:
    """`a.1.1`, `a.2.1`, ...: column-major over all dimensions."""
    if not variable.dims:
        return (variable.name,)
    ranges = [range(1, size + 1) for size in reversed(variable.dims)]
    return (f"{variable.name}.{'.'.join(map(str, reversed(index)))}" for index in product(*ranges))


def bracket_name(name: str) -> str:
    """`theta[2,1]` for `theta.2.1`."""
    base, *indices = name.split(".")
    return f"{base}[{','.join(indices)}]" if indices else base


def unconstrained_names(variable: GlobalVariable) -> Iterable[str]:
    """Names in the order of the unconstrained vector: array elements one after the other, each column-major.

    BridgeStan names arrays of containers column-major throughout, which is not the order of its values; here every
    name belongs to the value at its position.
    """
    dims = variable.unconstrained_dims
    if not dims:
        return (variable.name,)
    arrays = [range(1, size + 1) for size in dims[: variable.array_rank]]
    inner = [range(1, size + 1) for size in reversed(dims[variable.array_rank :])]
    return (
        f"{variable.name}.{'.'.join(map(str, outer + element[::-1]))}"
        for outer in product(*arrays)
        for element in product(*inner)
    )


def compiled_positions(variable: GlobalVariable) -> npt.NDArray[np.intp]:
    """An array of the variable's own shape that holds, for each element, its position in the compiled order."""
    import numpy as np

    positions = np.arange(variable.size, dtype=np.intp)
    if variable.inner == "matrix":
        *arrays, rows, columns = variable.dims
        return positions.reshape((*arrays, columns, rows)).swapaxes(-1, -2)
    return positions.reshape(variable.dims)


def output_order(variables: Sequence[GlobalVariable]) -> npt.NDArray[np.intp] | None:
    """`order` such that `compiled[order]` is in BridgeStan's order; None if the two are the same."""
    import numpy as np

    if not any(variable.array_rank and variable.n_dims > 1 for variable in variables):
        return None
    parts: list[npt.NDArray[np.intp]] = []
    start = 0
    for variable in variables:
        parts.append(compiled_positions(variable).ravel(order="F") + start)
        start += variable.size
    return np.concatenate(parts)


def to_compiled(variable: GlobalVariable, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array of the variable's shape, as a flat one in the compiled order."""
    if variable.inner == "matrix":
        return values.swapaxes(-1, -2).ravel()
    return values.ravel()


def from_compiled(variable: GlobalVariable, flat: npt.NDArray[Any], dims: Dims) -> npt.NDArray[Any]:
    """What `to_compiled` was given: an array of the variable's own shape, for its sizes `dims`."""
    if variable.inner == "matrix":
        *arrays, rows, columns = dims
        return flat.reshape((*arrays, columns, rows)).swapaxes(-1, -2)
    return flat.reshape(dims)


def from_output(variable: GlobalVariable, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The slice of a vector in BridgeStan's order that belongs to the variable, in the variable's own shape."""
    return values.reshape(variable.dims, order="F")


def by_name(variables: Sequence[GlobalVariable], values: npt.NDArray[Any]) -> dict[str, Any]:
    """A vector in BridgeStan's order by variable: floats for scalars, else arrays of the variables' own shapes.

    Leading dimensions (draws) are kept: `values` of shape (draws, n) give arrays of shape (draws, ...).
    """
    found: dict[str, Any] = {}
    start = 0
    for variable in variables:
        part = values[..., start : start + variable.size]
        start += variable.size
        if variable.n_dims or values.ndim > 1:
            # Column-major over the variable's dimensions only: reverse them, and give them back in order.
            leading = part.ndim - 1
            reverse = part.reshape(part.shape[:-1] + variable.dims[::-1])
            axes = (*range(leading), *range(leading + len(variable.dims) - 1, leading - 1, -1))
            found[variable.name] = reverse.transpose(axes)
        else:
            found[variable.name] = float(part[0])
    return found
