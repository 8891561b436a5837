"""Global variables of a program: their shapes, the names of their elements, and the order of elements.

Compiled code keeps a container as: array dimensions outermost, the first slowest; then a matrix column by column.
Constrained values go to and come from users in BridgeStan's order: all dimensions column-major, the first index
fastest, array dimensions included. The two differ for arrays of containers and for arrays of two or more dimensions.
Unconstrained values are in the order in which parameters are read, array element by array element.

A field of a tuple is a variable of its own, `t:1`. Of an array of tuples `a` the field `a:1` has the array's dimensions
first. To users its elements go tuple by tuple, arrays of tuples row by row: `a.1:1`, `a.1:2`, `a.2:1`, `a.2:2`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, product
from typing import TYPE_CHECKING, Any

from ulam.library.records import record

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Dims = tuple[int, ...]

COMPLEX_PARTS = ("real", "imag")
"""What follows the name of a complex number where its parts have names of their own."""

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
    element: str  # "int", "real" or "complex": then the last of `dims` is 2, for real and imaginary part
    array_rank: int
    inner: str  # "scalar", "vector", "row_vector", "matrix"
    constraint: str
    slot: int  # of data and transformed data, else -1
    sizes: tuple[str, ...] = ()  # size expressions as written, where the compiler gives them
    dims: Dims = ()
    field_ranks: Dims = ()
    """Of a field of a tuple, the dimensions of the array of tuples that each number of its name is taken of."""

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
            field_ranks=tuple(entry.get("field_ranks", ())),
        )

    @property
    def n_dims(self) -> int:
        return self.array_rank + INNER_RANK[self.inner] + self.is_complex

    @property
    def is_complex(self) -> bool:
        return self.element == "complex"

    @property
    def shape(self) -> Dims:
        """The sizes of a container as the program declares them: a complex number counts as one."""
        return self.dims[:-1] if self.is_complex else self.dims

    def parts(self) -> tuple[GlobalVariable, ...]:
        """The variables of compiled code that hold this one: two, of reals, for complex numbers."""
        if not self.is_complex:
            return (self,)
        slots = (self.slot, self.slot + self.n_dims if self.slot >= 0 else -1)
        return tuple(
            replace(self, name=f"{self.name}.{part}", element="real", slot=slot, dims=self.shape)
            for part, slot in zip(COMPLEX_PARTS, slots, strict=True)
        )

    @property
    def size(self) -> int:
        return math.prod(self.dims)

    @property
    def unconstrained_dims(self) -> Dims:
        rule = UNCONSTRAINED_DIMS.get(self.constraint)
        inner = self.dims[self.array_rank :]
        return self.dims[: self.array_rank] + (inner if rule is None else rule(*inner))

    @property
    def fields(self) -> list[str]:
        """The name in parts: `t`, `1`, `2` of `t:1:2`."""
        return self.name.split(":")

    def declaration(self) -> str:
        """`y: array[N] vector[K]`-like text for messages."""
        sizes = f" with sizes ({', '.join(self.sizes)})" if self.sizes else ""
        return f"{self.type} {self.name}{sizes}"


def _type_text(entry: Mapping[str, Any]) -> str:
    """The unsized type as Stan writes it."""
    base = entry["element"] if entry["inner"] == "scalar" else entry["inner"]
    if entry["element"] == "complex" and entry["inner"] != "scalar":
        base = f"complex_{base}"
    rank = int(entry["array_rank"])
    return f"array[{',' * (rank - 1)}] {base}" if rank else base


def _runs(variables: Sequence[GlobalVariable]) -> Iterator[tuple[GlobalVariable, Dims]]:
    """The variables in the order of output. One in an array of tuples comes once for each of them, with its index."""

    def within(fields: Sequence[GlobalVariable], level: int, index: Dims) -> Iterator[tuple[GlobalVariable, Dims]]:
        first = fields[0]
        if level == len(first.field_ranks):
            yield first, index
            return
        sizes = first.dims[len(index) : len(index) + first.field_ranks[level]]
        by_field = [list(group) for _, group in groupby(fields, lambda field: field.fields[level + 1])]
        for inner in product(*map(range, sizes)):
            for group in by_field:
                yield from within(group, level + 1, index + inner)

    tuples: dict[str, list[GlobalVariable]] = {}
    for variable in variables:
        if variable.field_ranks:
            tuples.setdefault(variable.fields[0], []).append(variable)
    for variable in variables:
        if not variable.field_ranks:
            yield variable, ()
        elif (found := tuples.pop(variable.fields[0], None)) is not None:
            yield from within(found, 0, ())


def _run_name(variable: GlobalVariable, index: Dims) -> str:
    """`a.2:1`: the field of one of the tuples of an array."""
    name, *fields = variable.fields
    start = 0
    for rank, field in zip(variable.field_ranks, fields, strict=True):
        name = f"{'.'.join([name, *(str(i + 1) for i in index[start : start + rank])])}:{field}"
        start += rank
    return name


def constrained_names(variables: Sequence[GlobalVariable]) -> Iterator[str]:
    """`a.1.1`, `a.2.1`, ...: column-major over all dimensions, tuple by tuple."""
    for variable, tuple_index in _runs(variables):
        name = _run_name(variable, tuple_index) if variable.field_ranks else variable.name
        ranges = [range(1, size + 1) for size in reversed(variable.shape[len(tuple_index) :])]
        for index in product(*ranges):
            yield from _with_parts(variable, ".".join([name, *map(str, reversed(index))]))


def _with_parts(variable: GlobalVariable, name: str) -> Sequence[str]:
    """`z.1.real` and `z.1.imag` of an element of a complex variable."""
    return [f"{name}.{part}" for part in COMPLEX_PARTS] if variable.is_complex else [name]


def bracket_name(name: str) -> str:
    """`theta[2,1]` for `theta.2.1`, `a[1]:2[3]` for `a.1:2.3`."""
    parts = (part.split(".") for part in name.split(":"))
    return ":".join(f"{base}[{','.join(indices)}]" if indices else base for base, *indices in parts)


def _unconstrained_run(variable: GlobalVariable, skipped: int) -> Iterator[Dims]:
    """The indices of the unconstrained form, without the first dimensions, in the order of the values."""
    dims = variable.unconstrained_dims[:-1] if variable.is_complex else variable.unconstrained_dims
    arrays = map(range, dims[skipped : variable.array_rank])
    inner = [range(size) for size in reversed(dims[variable.array_rank :])]
    return (outer + element[::-1] for outer in product(*arrays) for element in product(*inner))


def unconstrained_names(variables: Sequence[GlobalVariable]) -> Iterator[str]:
    """Names in the order of the unconstrained vector: array elements one after the other, each column-major.

    BridgeStan names arrays of containers column-major throughout, which is not the order of its values; here every
    name belongs to the value at its position.
    """
    for variable, tuple_index in _runs(variables):
        name = _run_name(variable, tuple_index) if variable.field_ranks else variable.name
        for index in _unconstrained_run(variable, len(tuple_index)):
            yield from _with_parts(variable, ".".join([name, *(str(i + 1) for i in index)]))


def unconstrained_positions(variables: Sequence[GlobalVariable]) -> dict[str, npt.NDArray[np.intp] | slice]:
    """Where each variable's unconstrained values lie in the vector of all, those of its array elements in order."""
    import numpy as np

    counts = [math.prod(variable.unconstrained_dims) for variable in variables]
    if not any(any(variable.field_ranks) for variable in variables):
        ends = [sum(counts[: n + 1]) for n in range(len(counts))]
        return {v.name: slice(end - n, end) for v, n, end in zip(variables, counts, ends, strict=True)}
    parts: dict[str, list[npt.NDArray[np.intp]]] = {variable.name: [] for variable in variables}
    start = 0
    for variable, index in _runs(variables):
        size = math.prod(variable.unconstrained_dims[len(index) :])
        parts[variable.name].append(np.arange(start, start + size, dtype=np.intp))
        start += size
    return {name: np.concatenate(found) if found else np.empty(0, np.intp) for name, found in parts.items()}


def part_positions(variables: Sequence[GlobalVariable]) -> list[npt.NDArray[np.intp]]:
    """The same of each variable of compiled code: of a complex one both parts, whose values lie side by side."""
    import numpy as np

    every = np.arange(sum(math.prod(variable.unconstrained_dims) for variable in variables))
    places = unconstrained_positions(variables)
    counted = [(every[places[variable.name]], len(variable.parts())) for variable in variables]
    return [place[n::count] for place, count in counted for n in range(count)]


def output_positions(variables: Sequence[GlobalVariable]) -> dict[str, npt.NDArray[np.intp]]:
    """Where the elements of each variable are in a vector in BridgeStan's order, in the variable's own shape."""
    import numpy as np

    found = {variable.name: np.empty(variable.dims, dtype=np.intp) for variable in variables}
    start = 0
    for variable, index in _runs(variables):
        dims = variable.dims[len(index) :]
        size = math.prod(dims)
        run = np.arange(start, start + size, dtype=np.intp)
        if variable.is_complex:  # the two parts are neighbours
            found[variable.name][index] = np.moveaxis(run.reshape((2, *dims[:-1]), order="F"), 0, -1)
        else:
            found[variable.name][index] = run.reshape(dims, order="F")
        start += size
    return found


def compiled_positions(variable: GlobalVariable) -> npt.NDArray[np.intp]:
    """An array of the variable's own shape that holds, for each element, its position in the compiled order."""
    import numpy as np

    return from_compiled(variable, np.arange(variable.size, dtype=np.intp), variable.dims)


def output_order(variables: Sequence[GlobalVariable]) -> npt.NDArray[np.intp] | None:
    """`order` such that `compiled[order]` is in BridgeStan's order; None if the two are the same."""
    import numpy as np

    if not any(v.array_rank and len(v.shape) > 1 or any(v.field_ranks) for v in variables):
        return None
    order = np.empty(sum(variable.size for variable in variables), dtype=np.intp)
    positions = output_positions(variables)
    start = 0
    for variable in variables:
        order[positions[variable.name]] = compiled_positions(variable) + start
        start += variable.size
    return order


def to_compiled(variable: GlobalVariable, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array of the variable's shape, as a flat one in the compiled order."""
    if variable.inner == "matrix":
        return values.swapaxes(*_matrix_axes(variable)).ravel()
    return values.ravel()


def _matrix_axes(variable: GlobalVariable) -> tuple[int, int]:
    return (-2, -3) if variable.is_complex else (-1, -2)


def from_compiled(variable: GlobalVariable, flat: npt.NDArray[Any], dims: Dims) -> npt.NDArray[Any]:
    """What `to_compiled` was given: an array of the variable's own shape, for its sizes `dims`."""
    if variable.inner == "matrix":
        rank = variable.array_rank
        rows, columns = dims[rank : rank + 2]
        return flat.reshape((*dims[:rank], columns, rows, *dims[rank + 2 :])).swapaxes(*_matrix_axes(variable))
    return flat.reshape(dims)


def from_output(variable: GlobalVariable, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The slice of a vector in BridgeStan's order that belongs to the variable, in the variable's own shape."""
    return as_numbers(variable, values).reshape(variable.shape, order="F")


def as_numbers(variable: GlobalVariable, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values of a variable, the parts of complex numbers one beside the other, as complex numbers."""
    import numpy as np

    return np.ascontiguousarray(values, np.float64).view(np.complex128) if variable.is_complex else values


def by_name(variables: Sequence[GlobalVariable], values: npt.NDArray[Any]) -> dict[str, Any]:
    """A vector in BridgeStan's order by variable: numbers for scalars, else arrays of the variables' own shapes.

    Leading dimensions (draws) are kept: `values` of shape (draws, n) give arrays of shape (draws, ...).
    """
    in_tuples = any(any(variable.field_ranks) for variable in variables)
    positions = output_positions(variables) if in_tuples else {}
    found: dict[str, Any] = {}
    start = 0
    for variable in variables:
        if in_tuples:
            part = as_numbers(variable, values[..., positions[variable.name]])
            part = part[..., 0] if variable.is_complex else part
            found[variable.name] = part if variable.shape or values.ndim > 1 else part.item()
            continue
        part = as_numbers(variable, values[..., start : start + variable.size])
        start += variable.size
        dims = variable.shape
        if dims or values.ndim > 1:
            # Column-major over the variable's dimensions only: reverse them, and give them back in order.
            leading = part.ndim - 1
            reverse = part.reshape(part.shape[:-1] + dims[::-1])
            axes = (*range(leading), *range(leading + len(dims) - 1, leading - 1, -1))
            found[variable.name] = reverse.transpose(axes)
        else:
            found[variable.name] = part[0].item()
    return found


def of_name(values: Mapping[str, Any], name: str) -> Any:
    """The value of a name in `by_name`; of a tuple, a tuple of the values of its fields. Raises KeyError."""
    if name in values:
        return values[name]
    numbers = {int(n[len(name) + 1 :].partition(":")[0]) for n in values if n.startswith(f"{name}:")}
    if not numbers:
        raise KeyError(f"{name!r}; the model has {', '.join(values)}")
    return tuple(of_name(values, f"{name}:{number}") for number in sorted(numbers))
