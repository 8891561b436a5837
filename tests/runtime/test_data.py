"""Reading data: Stan's JSON rules, messages, and the order of elements."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_readers import declared
from hypothesis import given, settings
from hypothesis import strategies as st

from ulam.runtime.data import Array, Values, bind_values, parse_json, read_data
from ulam.runtime.errors import DataError
from ulam.runtime.names import (
    GlobalVariable,
    compiled_positions,
    constrained_names,
    from_output,
    output_order,
    to_compiled,
    unconstrained_names,
)


def bind(variables: list[GlobalVariable], source: str | Mapping[str, Any]) -> dict[str, Array]:
    got: dict[str, Array] = {}
    values = Values("d.json", parse_json(source, "d.json"), True) if isinstance(source, str) else read_data(source)
    bind_values(variables, values, lambda v: v.dims, lambda v, array: got.update({v.name: array}))
    return got


def problem(kind: str, dims: tuple[int, ...], source: str | Mapping[str, Any]) -> str:
    with pytest.raises(DataError) as caught:
        bind([declared("y", kind, dims)], source)
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


def one(kind: str, dims: tuple[int, ...], source: str | Mapping[str, Any]) -> Array:
    return bind([declared("y", kind, dims)], source)["y"]


def test_all_problems_are_reported() -> None:
    variables = [declared("N", "int"), declared("a", "real"), declared("b", "vector", (2,)), declared("c", "real")]
    with pytest.raises(DataError) as caught:
        bind(variables, {"N": 2, "a": "x", "b": [1, 2, 3]})
    assert [name in text for name, text in zip("abc", caught.value.problems, strict=True)] == [True] * 3


def test_mappings_take_numpy() -> None:
    matrix = np.arange(6.0).reshape(2, 3)
    got = one("matrix", (2, 3), {"y": matrix.T.copy().T})
    np.testing.assert_array_equal(got, matrix)
    matrix[0, 0] = 99
    assert got[0, 0] == 0  # bound data do not change with the caller's array
    assert one("int", (), {"y": np.int64(4)}) == 4
    assert one("array[] int", (2,), {"y": np.array([True, False])}).tolist() == [1, 0]
    assert one("array[] int", (2,), {"y": (1, True)}).tolist() == [1, 1]
    assert one("vector", (2,), {"y": np.array([1, 2], dtype=np.uint8)}).tolist() == [1, 2]
    assert one("array[] vector", (2, 2), {"y": [np.ones(2), np.zeros(2)]}).tolist() == [[1, 1], [0, 0]]
    assert "y[1] is 0.5" in problem("array[] int", (2,), {"y": np.array([0.5, 1])})
    assert "y[2] is 3000000000" in problem("array[] int", (2,), {"y": np.array([0, 3_000_000_000])})
    assert "complex" in problem("real", (), {"y": 1j})
    assert "None" in problem("real", (), {"y": None})


def test_sources(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text('{"y": 1}')
    for source in (path, str(path), '{"y": 1}', ' \n{"y": 1}', {"y": 1}):
        assert read_data(source).values == {"y": 1}
    assert read_data(None).values == read_data("").values == {}
    with pytest.raises(FileNotFoundError, match=r"none\.json"):
        read_data(tmp_path / "none.json")
    path.write_bytes(b"\xff\xfe{")
    with pytest.raises(DataError, match="UTF-8"):
        read_data(path)


# ---------------------------------------------------------------- order of elements


def test_compiled_order() -> None:
    matrices = declared("y", "array[] matrix", (2, 2, 3))
    values = np.arange(12.0).reshape(2, 2, 3)
    assert to_compiled(matrices, values).tolist() == [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]


def test_names() -> None:
    assert list(constrained_names([declared("s", "real")])) == ["s"]
    assert list(constrained_names([declared("m", "matrix", (2, 2))])) == ["m.1.1", "m.2.1", "m.1.2", "m.2.2"]
    assert list(constrained_names([declared("a", "array[] vector", (2, 2))])) == ["a.1.1", "a.2.1", "a.1.2", "a.2.2"]
    assert list(constrained_names([declared("e", "vector", (0,))])) == []
    matrices = declared("m", "array[] matrix", (2, 2, 1))
    assert list(unconstrained_names([matrices])) == ["m.1.1.1", "m.1.2.1", "m.2.1.1", "m.2.2.1"]


@pytest.mark.parametrize(
    ("constraint", "dims", "unconstrained"),
    [
        ("none", (3,), (3,)),
        ("bounds", (2, 3), (2, 3)),
        ("simplex", (4,), (3,)),
        ("ordered", (4,), (4,)),
        ("unit_vector", (4,), (4,)),
        ("cholesky_factor_corr", (4, 4), (6,)),
        ("corr_matrix", (4, 4), (6,)),
        ("cov_matrix", (4, 4), (10,)),
        ("cholesky_factor_cov", (5, 3), (12,)),
        ("sum_to_zero_vector", (4,), (3,)),
        ("sum_to_zero_matrix", (4, 3), (3, 2)),
        ("column_stochastic_matrix", (4, 3), (3, 3)),
        ("row_stochastic_matrix", (4, 3), (4, 2)),
    ],
)
def test_unconstrained_dims(constraint: str, dims: tuple[int, ...], unconstrained: tuple[int, ...]) -> None:
    inner = "vector" if len(dims) == 1 else "matrix"
    assert declared("y", inner, dims, constraint).unconstrained_dims == unconstrained
    assert declared("y", f"array[] {inner}", (7, *dims), constraint).unconstrained_dims == (7, *unconstrained)


shapes = st.tuples(st.integers(0, 2), st.sampled_from(["real", "vector", "row_vector", "matrix"])).flatmap(
    lambda kind: st.tuples(
        st.just(kind),
        st.lists(st.integers(1, 3), min_size=kind[0] + 2, max_size=kind[0] + 2),
    )
)


@settings(max_examples=60)
@given(st.lists(shapes, min_size=1, max_size=4))
def test_output_order_agrees_with_names(kinds: list[tuple[tuple[int, str], list[int]]]) -> None:
    variables: list[GlobalVariable] = []
    for number, ((rank, base), sizes) in enumerate(kinds):
        kind = f"array[{',' * (rank - 1)}] {base}" if rank else base
        variable = declared(f"v{number}", kind)
        variable.dims = tuple(sizes[: variable.n_dims])
        variables.append(variable)
    # Compiled output in which each element holds its own name.
    compiled: list[str] = []
    for variable in variables:
        names = np.empty(variable.dims, dtype=object)
        for index in np.ndindex(*variable.dims):
            names[index] = ".".join([variable.name, *(str(i + 1) for i in index)])
        compiled += to_compiled(variable, names).tolist()
        assert (np.array(to_compiled(variable, names))[compiled_positions(variable)] == names).all()
    order = output_order(variables)
    output = np.array(compiled) if order is None else np.array(compiled)[order]
    expected = list(constrained_names(variables))
    assert output.tolist() == expected
    start = 0
    for variable in variables:
        part = from_output(variable, output[start : start + variable.size])
        assert part.shape == variable.dims
        start += variable.size
