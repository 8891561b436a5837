"""Models of libraries take and refuse the data of the table that the readers are tested with, in the same words."""

from __future__ import annotations

import json
import random
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bridgestan_client import BridgeStanClient, ClientError
from data_readers import LEAVES, Answer, damaged, data_cases, declared, in_python, source_of

import ulam
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.data import read_data
from ulam.runtime.errors import DataError, UlamError
from ulam.runtime.libraries.bridgestan_library import library_of
from ulam.runtime.names import GlobalVariable, from_compiled
from ulam.runtime.native import Rng
from ulam.runtime.program import BoundProgram, load_object

pytestmark = pytest.mark.usefixtures("quick_code")

Declared = tuple[tuple[str, str, tuple[int, ...]], ...]


def cases() -> dict[Declared, list[dict[str, Any]]]:
    """The cases for each program that can be written: one `what` is all that a model's data can be."""
    found: dict[Declared, list[dict[str, Any]]] = defaultdict(list)
    for case in data_cases():
        variables = tuple((name, kind, tuple(dims)) for name, kind, dims in case["variables"])
        small = all(0 <= size < 100 and "[" not in name for name, _, dims in variables for size in dims)
        if variables and small and "what" not in case and has_all_fields(name for name, *_ in variables):
            found[variables].append(case)
    return found


def has_all_fields(names: Iterable[str]) -> bool:
    """Whether tuples have all fields from the first to one that is not it."""
    fields: dict[str, set[int]] = defaultdict(set)
    for name in names:
        while ":" in name:
            name, _, field = name.rpartition(":")
            fields[name].add(int(field))
    return all(len(found) > 1 and found == set(range(1, len(found) + 1)) for found in fields.values())


def type_text(kind: str, dims: tuple[int, ...]) -> str:
    prefix, _, base = kind.rpartition("] ") if kind.startswith("array") else ("", "", kind)
    rank = prefix.count(",") + 1 if prefix else 0
    array, inner = dims[:rank], dims[rank:]
    text = f"array[{', '.join(map(str, array))}] " if array else ""
    return text + base + (f"[{', '.join(map(str, inner))}]" if inner else "")


def declarations(variables: Declared) -> list[tuple[str, str]]:
    """Type and name of each variable as a program declares it; fields are gathered to tuples."""
    fields: dict[str, list[tuple[str, str, tuple[int, ...]]]] = defaultdict(list)
    plain: dict[str, str] = {}
    for name, kind, dims in variables:
        base, _, field = name.partition(":")
        if field:
            fields[base].append((field, kind, dims))
            plain[base] = ""
        else:
            plain[name] = type_text(kind, dims)
    for base, parts in fields.items():
        plain[base] = f"tuple({', '.join(text for text, _ in declarations(tuple(parts)))})"
    return [(text, name) for name, text in plain.items()]


def library_path(program: str) -> str:
    return library_of(program, "model.stan", CompileOptions(0), cache=False)


def answer(path: str, source: str) -> tuple[str, Any]:
    """What is said, and the values of the variables in BridgeStan's order, as generated quantities have them."""
    try:
        client = BridgeStanClient(path, source.encode())
    except ClientError as error:
        return str(error), None
    rng = client.rng(1)
    values = client.constrain(np.empty(0), gq=True, rng=rng)
    client.library.bs_rng_destruct(rng)
    client.close()
    return "", values


def outputs(variables: list[GlobalVariable], wanted: Answer) -> Any:
    if wanted.values is None:
        return None
    shaped = (from_compiled(v, wanted.values[v.name], v.dims) for v in variables)
    return np.concatenate([values.ravel(order="F") for values in shaped])


def test_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong: list[str] = []
    for variables, mine in cases().items():
        texts = declarations(variables)
        program = "data {\n" + "".join(f"{kind} {name};\n" for kind, name in texts) + "}\ngenerated quantities {\n"
        path = library_path(program + "".join(f"{kind} {name}_ = {name};\n" for kind, name in texts) + "}\n")
        globals_ = [declared(*variable) for variable in variables]
        for case in mine:
            source = source_of(case)
            wanted = in_python(globals_, source)
            said, values = answer(path, source)
            expected = outputs(globals_, wanted)
            silent = expected is not None  # of names that are not used, too
            same = values is expected if expected is None else np.array_equal(values, expected, equal_nan=True)
            if said != ("" if silent else wanted.said) or not same:
                wrong.append(f"{case}: {said} {values}, expected {wanted}")
    assert not wrong, "\n".join(wrong)
    assert sum(map(len, cases().values())) > 150


CHECKED = """
data {
  int<lower=0> N; int<lower=1, upper=4> K; vector<lower=0>[N] y; array[N] int<lower=0, upper=K> k; matrix[N, K] X;
  array[K] simplex[2] s; tuple(int<lower=0>, vector[K]) t; cov_matrix[2] S; real<lower=min(y)> z; array[N - 1] real w;
}
transformed data { real q = sum(y) / K; if (q > 50) reject("q is ", q); int j = k[N]; }
"""
DATA = (
    '{"N": 2, "K": 2, "y": [1, 2.5], "k": [1, 2], "X": [[1, 2], [3, 4]], "s": [[0.5, 0.5], [0.25, 0.75]], '
    '"t": {"1": 1, "2": [1, 2]}, "S": [[2, 1], [1, 2]], "z": 1.5, "w": [1]}'
)
OTHERS = (*LEAVES, "0", "1", "2", "3", "-1", "200", "0.5")


def changed(rng: random.Random, text: str) -> str:
    """Text with another value for one of its numbers."""
    places = [*re.finditer(r"(?<=[\[ ])[\d.]+(?=[],}])", text)]
    place = rng.choice(places)
    return text[: place.start()] + rng.choice(OTHERS) + text[place.end() :]


def test_changed_data() -> None:
    """Sizes that depend on others, bounds, checks: in the words of Python."""
    compiler, path = Compiler(CHECKED, "model.stan", CompileOptions(0)), library_path(CHECKED)
    load = cache(load_object)
    rng = random.Random(8)
    texts = [changed(rng, DATA) for _ in range(150)]
    texts += [changed(rng, text) for text in texts[:50]]
    wrong: list[str] = []
    refused = 0
    for text in texts:
        said = ""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                BoundProgram(compiler, read_data(text), lambda: Rng(9), print, load)
            except UlamError as error:
                said = str(error)
        refused += said != ""
        found = answer(path, text)[0]
        if found != said:
            wrong.append(f"{text}: {found}, expected {said}")
    assert not wrong, "\n".join(wrong)
    assert 50 < refused < 190


VARIABLES: Declared = (
    ("y", "real", ()),
    ("v", "vector", (2,)),
    ("m", "matrix", (2, 3)),
    ("a", "array[,] real", (2, 2)),
)
VALUES = {"y": 0.5, "v": [1, 2.5], "m": [[1, 2, 3], [4, 5, 6]], "a": [[1, 2], [3, "NaN"]]}


def test_damaged_parameters() -> None:
    """Parameters by name, in texts with pieces too many or too few."""
    program = "".join(f"{kind} {name};\n" for kind, name in declarations(VARIABLES))
    client = BridgeStanClient(library_path(f"parameters {{\n{program}}}\nmodel {{ y ~ std_normal(); }}"))
    rng = random.Random(5)
    n_refused = 0
    for _ in range(300):
        text = damaged(rng, json.dumps(VALUES)).replace("\0", "").encode("utf-8", "replace").decode()
        if not text.lstrip().startswith(("{", "[")):
            continue
        wanted = in_python([declared(*variable) for variable in VARIABLES], text, "parameter values")
        out = np.zeros(client.n)
        try:
            client.call("param_unconstrain_json", text.encode(), out.ctypes.data)
            assert wanted.values is not None, (text, wanted)
            assert np.array_equal(out, np.concatenate([*wanted.values.values()]), equal_nan=True), text
        except ClientError as error:
            n_refused += 1
            assert str(error) == wanted.said, text
    assert n_refused > 100
    client.close()


def test_initial_values_that_cannot_be_any() -> None:
    program = f"parameters {{ {''.join(f'{kind} {name};' for kind, name in declarations(VARIABLES))} }}"
    client, model = BridgeStanClient(library_path(program)), ulam.StanModel(program, opt_level=0)
    rng = client.rng(1)
    sources = [json.dumps({**VALUES, "y": "Inf"}), '{"b": 1, "c": 2, "Y": {}}', '{"v": 1}', '{"m": [1, "x"]']
    for source in sources:
        with pytest.raises(DataError) as wanted:
            model.optimize(init=source)
        with pytest.raises(ClientError) as found:
            client.call("param_initialize", source.encode(), rng, 2.0, 10, True, np.zeros(client.n).ctypes.data)
        assert str(found.value) == str(wanted.value)
    client.library.bs_rng_destruct(rng)
    client.close()
