"""What the type checker takes the compiler can lower: for one overload of each function of the library, for types and
statements. `benchmarks/support_sweep.py` does it for all overloads. What is missing is reported, all of it at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from signature_programs import LibraryCall, at_fault, calls, checker_refuses

import ulam
from ulam.frontend.check.program import check_program
from ulam.frontend.diagnostics import Diagnostic, DiagnosticError
from ulam.frontend.functions import renamed_functions, signatures, support
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source
from ulam.frontend.stan_types import VECTOR
from ulam.library.intrinsics import INTRINSICS
from ulam.passes.to_loops import kernels, units  # noqa: F401  (registers intrinsics)
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.interpreter_settings import compiling
from ulam.tools.ulam_main import main

UNITS = ("setup", "gradient_full", "constrain")


def _sample() -> list[LibraryCall]:
    """Of each function one overload, chosen by a sum over the name."""
    taken: list[LibraryCall] = []
    for name in signatures.names():
        if group := list(calls([name])):
            taken.append(group[crc32(name.encode()) % len(group)])
    return taken


TAKEN = _sample()
GROUPS = [TAKEN[start : start + 48] for start in range(0, len(TAKEN), 48)]


def test_the_sample_has_both_ways() -> None:
    assert len(TAKEN) > 550 and {call.way for call in TAKEN} == {"value", "gradient"}


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: f"{group[0].signature.name}..")
def test_what_the_checker_takes_compiles(group: list[LibraryCall]) -> None:
    assert checker_refuses(group) is None
    assert [(str(call), why) for call, why in at_fault(group)] == []


@pytest.fixture
def without_erf(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The library as if `erf` had neither a primitive nor a definition for vectors."""
    had = support.supports_call.__wrapped__
    monkeypatch.setattr(
        support, "supports_call", lambda name, formals: (name, formals) != ("erf", (VECTOR,)) and had(name, formals)
    )
    yield


@pytest.mark.usefixtures("without_erf")
def test_an_overload_that_is_missing_is_reported() -> None:
    (call,) = (c for c in calls(["erf"]) if c.signature.arguments == (VECTOR,) and c.way == "gradient")
    assert checker_refuses([call]) == "not-supported: 'erf' is not supported yet for (vector)"


def test_the_table_of_intrinsics_is_what_the_lowering_has() -> None:
    of_stan = {name for name in kernels.INTRINSICS if signatures.exists(name) or name.startswith("reduce_sum")}
    assert of_stan - {"target"} == INTRINSICS - {"binomial_logit_rng"}  # for the library itself


# ---------------------------------------------------------------- types and statements

IN_MODEL = "parameters {{ real a; vector[2] v; matrix[2, 2] m; }} model {{ {} }}"

SUPPORTED = [
    "data { array[2] tuple(real, real) d; }",
    "transformed data { tuple(real, array[2] tuple(real, real)) d; }",
    "generated quantities { array[2] tuple(real, real) d; }",
    "parameters { tuple(real, vector[2]) t; }",
    "parameters { tuple(real<lower=0>, real) t; }",
    IN_MODEL.format("target += {(a, a), (a, 1)}[1].1;"),
    IN_MODEL.format("for (r in {(1, 2)}) target += a;"),
    IN_MODEL.format("tuple(vector[2], real) t; t.1[2] = a;"),
    IN_MODEL.format("array[2] tuple(real, real) t; t[1].1 = a;"),
    IN_MODEL.format("real b; tuple(real, real) t; (t.1, b) = (a, a);"),
    "functions { real f(array[] tuple(real, real) x) { return 1; } } " + IN_MODEL.format("target += f({(a, a)});"),
    "functions { array[] tuple(real, real) f(real x) { return {(x, x)}; } } " + IN_MODEL.format("target += f(a)[1].2;"),
    "data { complex z; }",
    "parameters { complex z; }",
    "generated quantities { complex_vector[2] z; }",
    "generated quantities { tuple(complex, real) z = (1, 1); }",
    "data { complex_matrix[2, 2] z; } transformed data { real q = get_real(z[1, 1]); }",
    IN_MODEL.format("complex z = 2i;"),
    IN_MODEL.format("target += abs(a + 2i);"),
    "functions { real f(complex z) { return 1; } } " + IN_MODEL.format("target += f(a);"),
    "data { tuple(real<lower=0>, real) t; }",
    IN_MODEL.format("tuple(tuple(real, real), real) t; t.1.1 = a; t.2 += a; target += t.1.1;"),
    IN_MODEL.format("vector[2] w; real b; real c; ((b, w[1]), c) = ((a, a), a); target += b;"),
    IN_MODEL.format("tuple(real, real) t = a > 0 ? (a, a) : (a, 2 * a); target += t.1; print(t);"),
    IN_MODEL.format("target += sum(m ^ 2) + sum(m ^ 2.5) + sum(m .^ 2);"),
    "functions { real f(array[] real y, int i, int j, complex z, tuple(int, complex_vector) t) { return abs(z); } } "
    + IN_MODEL.format("target += reduce_sum(f, {1.0}, 1, a + 1i, (1, [a, 2i]'));"),
    IN_MODEL.format("a ~ normal(0, 1) T[0, ]; v ~ normal(0, 1) T[, 3]; 2 ~ poisson(a) T[0, 5];"),
    "functions { real f_lpdf(real x, real m) { return 0; } real f_lcdf(real x, real m) { return 0; } "
    "real f_lccdf(real x, real m) { return 0; } } " + IN_MODEL.format("a ~ f(3) T[0, ]; a ~ f(3) T[1, 2];"),
    "functions { real f_lpdf(real x, vector m) { return 0; } real f_lcdf(real x, vector m) { return 0; } "
    "real f_lccdf(real x, vector m) { return 0; } } " + IN_MODEL.format("a ~ f(v) T[0, 1];"),
    # Functions that no block calls may use anything.
    "functions { complex f(complex z) { return z; } "
    "real g_jacobian(real x) { return lower_bound_jacobian(x, 0); } } "
    + IN_MODEL.format("target += a;"),
]


def messages(text: str) -> list[Diagnostic]:
    source = Source(text, "test.stan")
    try:
        with compiling():
            return check_program(parse_program(source), source)
    except DiagnosticError as error:
        return error.diagnostics


@pytest.mark.parametrize("text", SUPPORTED)
def test_what_is_supported_is_not_reported(text: str) -> None:
    assert [d for d in messages(text) if d.severity == "error"] == []
    compiler = Compiler(text, "test.stan", CompileOptions(opt_level=0))
    for unit in UNITS:
        compiler.llvm_text(unit)


@pytest.mark.usefixtures("without_erf")
def test_all_is_reported_at_once_and_the_model_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.stan"
    file.write_text(
        "functions { real f(vector v) { return sum(erf(v)); }\n real unused(vector v) { return sum(erf(v)); } }\n"
        "parameters { vector[2] v; }\n"
        "model { target += f(v);\ntarget += sum(erf(v)); }\n"
        "generated quantities { real u = undefined; }\n"
    )
    assert main(["check", str(file)]) == 1
    said = capsys.readouterr().err
    assert re.findall(r":(\d+):\d+: error: .* \[(.*)\]", said) == [
        ("1", "not-supported"), ("5", "not-supported"), ("6", "undeclared"),
    ]  # fmt: skip
    assert "it is for erf(int) => real" in said and "^^^" in said
    with pytest.raises(ulam.CompileError) as caught:
        ulam.StanModel(str(file), cache=False)
    assert str(caught.value) == said.rstrip("\n")


def test_what_only_a_pass_refuses_has_an_excerpt_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from ulam.dialects import stan
    from ulam.passes.errors import NotSupportedError
    from ulam.passes.to_loops.lowering import HANDLERS

    def refuse(low: object, op: stan.TargetAddOp) -> None:
        raise NotSupportedError("this is not supported yet", op.location)

    monkeypatch.setitem(HANDLERS, stan.TargetAddOp, refuse)
    (tmp_path / "part.stan").write_text("// a comment\n\n  target += x;\n")
    file = tmp_path / "model.stan"
    file.write_text("parameters { real x; }\nmodel {\n#include part.stan\n}\n")
    with pytest.raises(ulam.CompileError) as caught:
        ulam.StanModel(str(file), cache=False).log_density(np.array([0.5]))
    lines = str(caught.value).splitlines()
    assert lines[0] == f"{tmp_path}/part.stan:3:3: error: this is not supported yet [not-supported]"
    assert lines[1:3] == ["    3 |   target += x;", "      |   ^"]
    assert [d.as_dict()["line"] for d in caught.value.diagnostics] == [3]


# ---------------------------------------------------------------- to_int

TO_INT = """
data { real x; array[2] real y; array[2, 2] real z; int n; array[2] int m; }
transformed data {
  int k = to_int(x);
  array[2] int j = to_int(y);
}
parameters { real a; }
model { target += a * (k + 10 * j[1] + 100 * j[2] + 1000 * to_int(z)[2, 1] + to_int(n) + to_int(m)[2]); }
"""


def _data(**changed: object) -> str:
    return json.dumps({"x": 2.9, "y": [-1.9, 3.0], "z": [[1, 2], [0.99, 4]], "n": 5, "m": [6, 7], **changed})


@pytest.mark.parametrize("opt_level", [0, 3])
def test_to_int_truncates_and_refuses(opt_level: int) -> None:
    def evaluate(**changed: object) -> float:
        model = ulam.StanModel(TO_INT, _data(**changed), opt_level=opt_level)
        return model.log_density_gradient(np.array([1.0]))[0]

    assert evaluate() == 2 - 10 + 300 + 0 + 5 + 7
    assert evaluate(x=-2147483648.0) == -2147483648 + 302
    assert evaluate(x=-0.5, y=[0.5, 1e-300]) == 12
    for changed in ({"x": 3e9}, {"x": "NaN"}, {"x": "-Infinity"}, {"y": [0, 2147483648]}, {"z": [[-1e10, 0], [0, 0]]}):
        with pytest.raises(ulam.Rejection, match="to_int: x is .*, but must be between -2147483648 and 2147483647"):
            evaluate(**changed)


def test_to_int_is_for_data() -> None:
    assert [d.code for d in messages(IN_MODEL.format("int k = to_int(a);"))] == ["data-required"]


# ---------------------------------------------------------------- helps

FRONTEND = Path(support.__file__).parents[1]
_IN_QUOTES = re.compile(r"(?<![\w.])([a-z][a-z0-9]*(?:_[a-z0-9]+)+|square|floor|round|fmod)(?!\w)")


def test_helps_recommend_only_what_is_there() -> None:
    """Every name of a library function in the frontend's messages can be compiled."""
    supported = set(support.supported_names())
    known = {*signatures.names(), *support.higher_order.names()}
    named: set[str] = set()
    for path in FRONTEND.rglob("*.py"):
        for text in re.findall(r'"([^"\n]* [^"\n]*)"', path.read_text(encoding="utf-8")):
            named |= set(_IN_QUOTES.findall(text)) & known
    for table in (renamed_functions.REMOVED, renamed_functions.DEPRECATED):
        named |= {name for text in table.values() for name in re.findall(r"\w+", text)} & known
    assert {"to_int", "dot_product", "lmultiply", "fmod"} <= named
    assert named - supported == set()
    of_others = renamed_functions.OF_OTHER_LANGUAGES
    assert set(of_others.values()) <= supported and not set(of_others) & known
    distributions = {name.removesuffix("_lpdf").removesuffix("_lpmf") for name in supported}
    assert set(renamed_functions.DISTRIBUTIONS_OF_OTHER_LANGUAGES.values()) <= distributions


def test_suggestions_are_supported() -> None:
    """A name that is not known is never taken for one that cannot be compiled."""
    supported = set(support.supported_names())
    for name in sorted(known for known in signatures.names() if known not in supported):
        (message,) = messages(IN_MODEL.format(f"target += {name[:-1]}z(a);"))
        assert message.code == "undeclared-function"
        for suggested in re.findall(r"'(\w+)'", message.help or ""):
            assert suggested in supported, (name, message.help)
