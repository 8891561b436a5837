"""`library/functions.py`, the record of what a function is: names taken apart, and nobody else doing so."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from ulam import StanModel
from ulam.emit.primitives import PRIMITIVES
from ulam.frontend.functions import signatures
from ulam.frontend.functions.support import supports_call, unsupported_type
from ulam.frontend.stan_types import INT, MATRIX, REAL, VECTOR, array_of
from ulam.library import signature_table
from ulam.library.catalog import names
from ulam.library.costs import COSTS, WIDENED, FunctionCost
from ulam.library.derivatives import has_primitive
from ulam.library.functions import (
    FunctionKind,
    ending_of_distribution,
    function,
    kind_of,
    named,
    normalized_name,
    renamed,
)
from ulam.library.intrinsics import INTRINSICS
from ulam.library.kernels import KernelUse
from ulam.runtime.c_library import library

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = "api dialects docs emit frontend library passes runtime tools tracing".split()


@pytest.mark.parametrize("kind", [kind for kind in FunctionKind if kind.ending])
def test_a_name_and_its_parts(kind: FunctionKind) -> None:
    name = kind.of("my_own")
    assert named(name) == ("my_own", kind, kind.ending)
    assert kind_of(f"{name}.2") is kind  # the symbol of an overload
    assert normalized_name(name) == name and not named(name).unnormalized


def test_names_that_drop_constants() -> None:
    assert normalized_name("foo_lupdf") == "foo_lpdf" and kind_of("foo_lupdf") is FunctionKind.DENSITY
    assert normalized_name("foo_lupmf") == "foo_lpmf" and named("foo_lupmf").unnormalized


@pytest.mark.parametrize("name", ["lpdf", "_lpdf", "exp", "x", "log_lpdfs", "rng", "foo_rng_"])
def test_plain_names(name: str) -> None:
    assert named(name) == (name, FunctionKind.PLAIN, "")


def test_names_of_earlier_versions() -> None:
    assert ending_of_distribution("normal_ccdf_log") == "_ccdf_log"
    assert ending_of_distribution("normal_lupdf") == "_lupdf" and ending_of_distribution("inv_logit") == ""
    assert renamed("normal_log") == ["normal_lpdf", "normal_lpmf"] and renamed("normal_cdf_log") == ["normal_lcdf"]


def _endings() -> set[str]:
    kinds = [kind for kind in FunctionKind if kind is not FunctionKind.PLAIN]
    return {text for kind in kinds for text in (kind.value, kind.unnormalized_ending) if text}


def _tests_of_names(path: Path) -> list[str]:
    """Where a module compares how a text begins or ends with what tells the kind of a function."""
    found: list[str] = []
    methods = {"endswith", "startswith", "removesuffix", "removeprefix"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods:
            texts = {inner.value for a in node.args for inner in ast.walk(a) if isinstance(inner, ast.Constant)}
        elif isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):  # a list of endings
            texts = {inner.value for inner in ast.iter_child_nodes(node) if isinstance(inner, ast.Constant)}
        else:
            continue
        if len(texts & _endings()) > (not isinstance(node, ast.Call)):  # of a list, two
            found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def test_kinds_are_told_in_one_place() -> None:
    """No other module takes the name of a function apart, or lists the endings of names."""
    modules = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert len(modules) > 200
    others = [m for m in modules if m != ROOT / "library" / "functions.py"]
    assert [place for path in others for place in _tests_of_names(path)] == []
    assert _tests_of_names(ROOT / "library" / "functions.py")  # it would be found


# ---------------------------------------------------------------- totality


@pytest.mark.parametrize("name", "exp inv_logit logit fmax pi is_nan log_sum_exp size square".split())
def test_total_functions(name: str) -> None:
    assert function(name).is_total


@pytest.mark.parametrize(
    "name",
    [
        "log1p",  # has a requirement
        "Phi",
        "normal_lpdf",  # requires its arguments to be in range
        "choose",
        "max",  # of an empty array of ints
        "modulus",  # divides ints
        "mean",  # of nothing
        "softmax",
        "cholesky_decompose",
        "normal_rng",
        "ode_rk45",
        "callback_gradient",  # has no body to look at
        "no_function_at_all",
    ],
)
def test_functions_that_may_throw(name: str) -> None:
    assert not function(name).is_total


def _total_calls() -> list[tuple[str, str]]:
    """Calls of each total function of the language, of scalars and of one container: its name, the call."""
    letters = {REAL: "x", INT: "n", VECTOR: "v", MATRIX: "m", array_of(REAL, 1): "a"}
    calls: list[tuple[str, str]] = []
    for name in (n for n in signatures.names() if function(n).is_total):
        found = signatures.overloads(name)
        assert found is not None
        for signature in found.all():
            types = signature.arguments
            scalar = all(type_ in (REAL, INT) for type_ in types)
            if not (scalar or len(types) == 1) or any(type_ not in letters for type_ in types):
                continue
            if not supports_call(name, types) or unsupported_type(signature.result) is not None:
                continue
            given = "xyz"[: len(types)] if all(t == REAL for t in types) else [letters[t] for t in types]
            calls.append((name, f"{name}({', '.join(given)})"))
    return calls


def test_total_functions_never_throw() -> None:
    """All total functions of the language, at numbers of all sorts and of containers of several sizes, the empty one
    included. What is printed is computed."""
    calls = _total_calls()
    assert len(calls) > 150 and len({name for name, _ in calls}) > 70
    program = f"""transformed data {{
      array[12] real at = {{-1e300, -1.5, -1, -1e-300, 0, 1e-300, 0.5, 1, 2.5, 1e300, -1 / 0.0, not_a_number()}};
    }}
    generated quantities {{
      for (size in 0:2) for (i in 1:12) for (j in {{1, 5, 8, 12}}) {{
        int n = i - 6;
        real x = at[i]; real y = at[j]; real z = at[13 - i];
        vector[size] v = rep_vector(x, size);
        matrix[size, 2] m = rep_matrix(y, size, 2);
        array[size] real a = to_array_1d(v);
        {" ".join(f"print({call});" for _, call in calls)}
      }}
    }}"""
    model = StanModel(program, opt_level=0, cache=False)
    model.param_constrain(np.empty(0), include_gq=True, rng=model.new_rng(1))


def test_kernels_of_functions() -> None:
    """Each function that is told to be computed by a kernel has one in the C runtime, of that many arguments."""
    for name in ("svd_V", "normal_rng", "multi_normal_rng", "mdivide_left_spd", "sort_asc"):
        use = function(name).kernel
        assert use is not None and hasattr(library(), f"ulam_{use.name}"), name
    assert function("svd_V").kernel == KernelUse("svd", 2, "n min", square=False)
    assert [function(name).kernel for name in ("exp", "print_int", "hmm_latent_rng", "nothing")] == [None] * 4


def test_random_numbers_of_scalars_have_kernels() -> None:
    """All that Stan's signatures tell: the table of kernels has no list of them."""
    found: set[str] = set()
    for name in signature_table.names():
        signatures_of = signature_table.row(name)
        assert signatures_of is not None
        scalar = any(result in "ir" and set(codes) <= set("ir") for codes, result in signatures_of[1].items())
        if kind_of(name) is FunctionKind.RNG and scalar:
            found.add(name)
    assert len(found) > 35 and found == set(signature_table.scalar_rngs())
    assert all(hasattr(library(), f"ulam_{name}") for name in found)


@pytest.mark.parametrize(
    ("name", "cost"),
    [("rows", "SIZE"), ("to_vector", "PART"), ("square", "OPERATION"), ("exp", "CALL"), ("normal_lpdf", "CALL")],
)
def test_costs(name: str, cost: str) -> None:
    assert function(name).cost is FunctionCost[cost]


def test_widened_functions_are_those_that_are_no_calls() -> None:
    written = {name for name, form in PRIMITIVES.items() if form.kind in ("own", "inline", "intrinsic")}
    assert {name for name in written if function(name).cost is FunctionCost.CALL} == WIDENED


def test_costs_are_of_functions() -> None:
    known = {*signature_table.names(), *names(), *INTRINSICS, "fabs"}
    assert {name for name in COSTS if name not in known and not has_primitive(name)} == set()


def test_forms_for_ints() -> None:
    ints = ("abs", "append_array", "divide", "max", "rep_array", "sum", "cumulative_sum")
    assert all(function(name).has_int_form for name in ints)
    assert not any(function(name).has_int_form for name in ("exp", "mean", "poisson_lpmf", "rep_vector", "nothing"))
