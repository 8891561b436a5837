"""Tables of a program: what Python writes is what C reads, in memory and as constants."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import pytest
from bridgestan_client import BridgeStanClient

import ulam
from ulam.emit import jit
from ulam.passes.units import UNITS
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.libraries import program_tables
from ulam.runtime.libraries.program_tables import BLOCKS, BRIDGESTAN_VERSION, ProgramTables, llvm_module
from ulam.runtime.names import UNCONSTRAINED_DIMS

C = Path(__file__).resolve().parents[2] / "runtime" / "c"
HEADER = re.sub(r"/\*.*?\*/", "", (C / "model" / "program.h").read_text(encoding="utf-8"), flags=re.S)

pytestmark = pytest.mark.usefixtures("quick_code")


def enumeration(prefix: str) -> list[str]:
    return re.findall(rf"\b{prefix}_(\w+)", next(e for e in re.findall(r"enum \{(.*?)\}", HEADER, re.S) if prefix in e))


def test_numbers_are_those_of_the_header() -> None:
    assert [name.lower() for name in enumeration("ULAM_UNIT")] == list(UNITS)
    assert [name.lower() for name in enumeration("ULAM_BLOCK")] == list(BLOCKS)
    numbers = re.findall(r"BRIDGESTAN_(?:MAJOR|MINOR|PATCH) = (\d+)", (C / "model" / "bridgestan.h").read_text())
    assert tuple(map(int, numbers)) == BRIDGESTAN_VERSION


@pytest.mark.parametrize(
    "name, structure",
    [
        ("site", program_tables.ProgramSite),
        ("unit", program_tables.ProgramUnit),
        ("variable", program_tables.ProgramVariable),
        ("", program_tables.ProgramTable),
    ],
)
def test_structures_are_those_of_the_header(name: str, structure: Any) -> None:
    """Names, order and sizes of the fields."""
    end = f"ulam_program_{name}" if name else "ulam_program"
    body = re.findall(r"typedef struct (?:\w+ )?\{((?:(?!typedef struct).)*?)\} (\w+);", HEADER, re.S)
    fields = next(text for text, found in body if found == end)
    told: list[tuple[str, int]] = []
    for declaration in filter(str.strip, fields.split(";")):
        if "(*" in declaration:
            told.append((re.findall(r"\(\*(\w+)\)", declaration)[0], 8))
            continue
        kind, names = re.match(r"\s*((?:const )?\w+)\s+(.*)", declaration, re.S).groups()  # pyright: ignore[reportOptionalMemberAccess]
        size = {"int32_t": 4}.get(kind, 8)
        for field in names.split(","):
            field, count = re.match(r"\s*\**(\w+)(?:\[(\d+)\])?", field).groups()  # pyright: ignore[reportOptionalMemberAccess]
            told.append((field, (8 if "*" in names else size) * int(count or 1)))
    assert told == [(field, getattr(structure, field).size) for field, *_ in structure._fields_]


def test_names_of_all_transforms() -> None:
    """C makes them from the tables and the program's sizes, Python by rules of its own."""
    sized = {
        "simplex": "simplex[K]", "sum_to_zero_vector": "sum_to_zero_vector[K]",
        "sum_to_zero_matrix": "sum_to_zero_matrix[K, 3]", "cholesky_factor_corr": "cholesky_factor_corr[K]",
        "cholesky_factor_cov": "cholesky_factor_cov[K + 1, K]", "corr_matrix": "corr_matrix[K]",
        "cov_matrix": "cov_matrix[K]", "column_stochastic_matrix": "column_stochastic_matrix[K, 2]",
        "row_stochastic_matrix": "row_stochastic_matrix[2, K]", "real": "real", "vector": "vector<lower=0>[K]",
        "matrix": "matrix[K, 2]",
    }  # fmt: skip
    assert set(UNCONSTRAINED_DIMS) <= set(sized)
    declared = "".join(
        f"{text} a_{name}; array[K - 1, 3] {text} b_{name};\n"
        for name, text in sized.items()
    )
    program = f"data {{ int K; }} parameters {{ {declared} }}"
    program += "generated quantities { tuple(real, array[2] vector[K]) t = (1.0, rep_array(rep_vector(1, K), 2)); }"
    for size in (1, 3):
        model = ulam.StanModel(program, {"K": size}, opt_level=0)
        client = BridgeStanClient(model.bridgestan_library(), {"K": size})
        assert client.unconstrained_names() == model.param_unc_names()
        assert client.names(gq=True) == model.param_names(include_gq=True)


def test_tables_as_constants() -> None:
    """A module that LLVM accepts, with the texts as they are, all units loaded, functions by their symbols."""
    program = 'parameters { real x; } model { if (x > 3) reject("a text, \N{GREEK SMALL LETTER MU}"); }'
    compiler = Compiler(program, "a\\b.stan", CompileOptions(opt_level=0))
    tables = ProgramTables(compiler.metadata(), "info\n")
    for name in UNITS:
        tables.fill(name, compiler.compiled(name), {})
    text = llvm_module(tables)
    jit.verify(text)
    assert "@ulam_linked_program = hidden global" in text
    assert 'ptr @"setup.data_dims"' in text and 'declare void @"gradient_full.bind"()' in text
    assert r"a\5Cb.stan\00" in text
    assert ctypes.cast(tables.address, ctypes.POINTER(program_tables.ProgramTable)).contents.n_variables == 1
