"""The signature table and the choice of overloads."""

from __future__ import annotations

from pathlib import Path

import pytest

from ulam.frontend.functions import generate_signature_table, signatures
from ulam.frontend.functions.type_codes import arguments_of, code_of, type_of
from ulam.frontend.promotion import common_type, promotion_cost
from ulam.frontend.stan_types import (
    COMPLEX,
    COMPLEX_VECTOR,
    INT,
    MATRIX,
    REAL,
    ROW_VECTOR,
    VECTOR,
    FunctionType,
    StanType,
    TupleType,
    array_of,
)

LIST = Path(__file__).parents[1] / "reference" / "stan_math_signatures_newest.txt"


def test_table_is_up_to_date() -> None:
    assert generate_signature_table.TABLE.read_text().splitlines() == generate_signature_table.table_lines(
        LIST.read_text()
    )


def test_every_signature_of_the_list_is_found() -> None:
    """Printed again, the table is the list; what must be data is not in the list outside of function types."""
    listed = set(LIST.read_text().splitlines())
    printed = set()
    for name in signatures.stan_names():
        overloads = signatures.overloads(name)
        assert overloads is not None
        for signature in overloads.all():
            printed.add(str(signatures.Signature(name, signature.arguments, signature.result)))
    assert printed == listed


@pytest.mark.parametrize("line", ["normal_lpdf(real, vector, array[] real) => real", "size(array[,,] matrix) => int"])
def test_exact_lookup(line: str) -> None:
    name = line.split("(")[0]
    overloads = signatures.overloads(name)
    assert overloads is not None
    (found,) = [s for s in overloads.all() if str(s) == line]
    assert overloads.exact(found.arguments) == found


def test_data_only_arguments() -> None:
    overloads = signatures.overloads("wiener_lpdf")
    assert overloads is not None
    assert {len(s.arguments): s.data_only for s in overloads.all()} == {5: (), 6: (), 7: (6,), 8: (), 9: (8,)}
    assert str(signatures.unique_cheapest("linspaced_vector", (INT, INT, REAL))) == (
        "linspaced_vector(data int, data real, data real) => vector"
    )


def test_unknown_names() -> None:
    assert signatures.overloads("normal") is None
    assert not signatures.exists("normal_lupdf")
    assert signatures.exists("normal_lpdf")
    assert len(signatures.stan_names()) == 564


@pytest.mark.parametrize(
    "type_",
    [
        INT,
        array_of(array_of(REAL, 2), 10),
        TupleType((REAL, array_of(TupleType((INT, MATRIX))))),
        FunctionType(((False, VECTOR), (True, array_of(REAL))), VECTOR),
    ],
)
def test_codes_round_trip(type_: StanType) -> None:
    assert type_of(code_of(type_)) == type_
    assert arguments_of("!" + code_of(type_) + "i") == ((True, type_), (False, INT))


@pytest.mark.parametrize(
    ("source", "target", "cost"),
    [
        (INT, INT, 0),
        (INT, REAL, 1),
        (REAL, COMPLEX, 1),
        (INT, COMPLEX, 2),
        (VECTOR, COMPLEX_VECTOR, 1),
        (array_of(INT, 2), array_of(REAL, 2), 1),
        (TupleType((INT, INT)), TupleType((REAL, COMPLEX)), 3),
        (REAL, INT, None),
        (array_of(INT), array_of(REAL, 2), None),
        (array_of(REAL), VECTOR, None),
        (VECTOR, ROW_VECTOR, None),
    ],
)
def test_promotion_cost(source: StanType, target: StanType, cost: int | None) -> None:
    assert promotion_cost(source, target) == cost


def test_common_type_is_symmetric_and_reached_by_both() -> None:
    types = [INT, REAL, COMPLEX, VECTOR, COMPLEX_VECTOR, array_of(INT), array_of(COMPLEX), TupleType((INT, COMPLEX)),
             TupleType((REAL, INT))]  # fmt: skip
    for first in types:
        for second in types:
            joined = common_type(first, second)
            assert joined == common_type(second, first)
            if joined is not None:
                assert promotion_cost(first, joined) is not None
                assert promotion_cost(second, joined) is not None
    assert common_type(TupleType((INT, COMPLEX)), TupleType((REAL, INT))) == TupleType((REAL, COMPLEX))


@pytest.mark.parametrize(
    ("operator", "left", "right", "expected"),
    [
        ("+", INT, INT, (INT, INT, INT)),
        ("+", INT, VECTOR, (REAL, VECTOR, VECTOR)),
        ("*", ROW_VECTOR, VECTOR, (ROW_VECTOR, VECTOR, REAL)),
        ("*", VECTOR, ROW_VECTOR, (VECTOR, ROW_VECTOR, MATRIX)),
        ("*", VECTOR, VECTOR, None),
        ("/", INT, INT, (INT, INT, INT)),
        ("/", REAL, INT, (REAL, REAL, REAL)),
        ("/", MATRIX, MATRIX, (MATRIX, MATRIX, MATRIX)),
        ("/", MATRIX, INT, (MATRIX, REAL, MATRIX)),
        ("%/%", INT, INT, (INT, INT, INT)),
        ("%/%", REAL, INT, None),
        ("%", REAL, INT, None),
        ("\\", MATRIX, VECTOR, (MATRIX, VECTOR, VECTOR)),
        ("^", INT, INT, (INT, INT, REAL)),
        (".^", VECTOR, INT, (VECTOR, INT, VECTOR)),
        ("&&", INT, INT, (INT, INT, INT)),
        ("&&", REAL, INT, None),
        ("<", INT, REAL, (INT, REAL, INT)),
        ("==", VECTOR, VECTOR, None),
        ("+", array_of(REAL), array_of(REAL), None),
        ("+", REAL, COMPLEX, (COMPLEX, COMPLEX, COMPLEX)),
    ],
)
def test_binary_operators(
    operator: str, left: StanType, right: StanType, expected: tuple[StanType, StanType, StanType] | None
) -> None:
    assert signatures.binary_operator(operator, left, right) == expected


@pytest.mark.parametrize(
    ("operator", "operand", "result"),
    [("-", INT, INT), ("-", array_of(VECTOR, 2), array_of(VECTOR, 2)), ("!", INT, INT), ("!", REAL, None),
     ("'", VECTOR, ROW_VECTOR), ("'", REAL, None)],
)  # fmt: skip
def test_unary_operators(operator: str, operand: StanType, result: StanType | None) -> None:
    found = signatures.unary_operator(operator, operand)
    assert found == (None if result is None else (operand, result))


@pytest.mark.parametrize(
    ("operator", "target", "value", "operand"),
    [
        ("+", REAL, INT, REAL),
        ("+", INT, REAL, None),
        ("*", MATRIX, MATRIX, MATRIX),
        ("*", VECTOR, MATRIX, None),
        ("*", ROW_VECTOR, MATRIX, MATRIX),
        ("/", VECTOR, INT, REAL),
        ("/", MATRIX, MATRIX, None),
        (".*", REAL, REAL, None),
        (".*", VECTOR, VECTOR, VECTOR),
        ("./", VECTOR, REAL, REAL),
    ],
)
def test_compound_assignment(operator: str, target: StanType, value: StanType, operand: StanType | None) -> None:
    assert signatures.compound_assignment(operator, target, value) == operand


def test_cheapest_overload_wins() -> None:
    (chosen,) = signatures.cheapest("bernoulli_lpmf", (array_of(INT), INT))
    assert chosen.arguments == (array_of(INT), REAL)
    (chosen,) = signatures.cheapest("atan2", (INT, VECTOR))
    assert chosen.result == VECTOR
    assert signatures.cheapest("normal_lpdf", (MATRIX, REAL, REAL)) == ()
