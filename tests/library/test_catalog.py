"""The library as data: its definitions are found, parse and type-check; the tables they rely on are complete.

The derivatives of primitives are checked here by central differences, independently of the compiler.
"""

from __future__ import annotations

import ctypes
import functools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ulam.dialects import rt
from ulam.emit.primitives import PRIMITIVES
from ulam.frontend.check.program import checked
from ulam.frontend.functions import definitions
from ulam.library import catalog, derivatives
from ulam.library.requirements import PRIMITIVE_REQUIREMENTS, REQUIREMENTS, ArgumentReference
from ulam.library.terms import Application, Name, Number, Term
from ulam.passes.autodiff.partials import SCALAR_OPS
from ulam.runtime import c_library

LIBRARY = Path(catalog.__file__).parent
FILES = sorted(LIBRARY.glob("*.stan"))
CALL = re.compile(r"\b(\w+)\s*\(")
COMPARISONS = {"gt", "ge", "lt", "le", "eq", "near", "above_or_fractional"}


# ---------------------------------------------------------------- definitions


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_every_definition_is_found(path: Path) -> None:
    text = path.read_text()
    heads = re.findall(r"^(?![/ *}\n])(?:tuple\([^)\n]*\) )?[^\n]*?(\w+)\(", text, re.MULTILINE)
    found = [d.name for name in catalog.names() for d in catalog.definitions(name) if d.file == path.name]
    assert sorted(heads) == sorted(found)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_offsets_point_at_the_text(path: Path) -> None:
    for name in catalog.names():
        for d in catalog.definitions(name):
            assert catalog.file_text(d.file)[d.offset :].startswith(d.text)
            assert d.text.endswith(("}", ";"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_definitions_type_check(path: Path) -> None:
    for name in catalog.names():
        for function in definitions.overloads(name):
            if function.source.name.endswith("/" + path.name):
                checked(function)


def test_no_definition_is_given_twice() -> None:
    """What the compiler provides is declared by each file that uses it."""
    for name in catalog.names():
        found = [f.definition for f in definitions.overloads(name)]
        heads = [tuple(a.type for a in definition.arguments) for definition in found if definition.body is not None]
        assert len(heads) == len(set(heads)), name


def test_an_unknown_name_has_no_definition() -> None:
    assert catalog.definitions("no_such_function") == ()


def test_every_density_has_a_comment_and_is_short() -> None:
    for name in catalog.names():
        if not name.endswith(("_lpdf", "_lpmf")):
            continue
        first = catalog.definitions(name)[0]
        before = catalog.file_text(first.file)[: first.offset].rstrip()
        assert before.endswith("*/"), f"{name} has no comment"
        for d in catalog.definitions(name):
            assert d.text.count("\n") <= 14, f"{name} is long"


# ---------------------------------------------------------------- requirements


def test_every_requirement_is_known() -> None:
    for name in catalog.names():
        for d in catalog.definitions(name):
            for callee in CALL.findall(d.text):
                if callee.startswith("require_"):
                    assert callee in REQUIREMENTS or catalog.definitions(callee), f"{name}: {callee}"


def test_requirements_are_well_formed() -> None:
    for name, requirement in REQUIREMENTS.items():
        assert not catalog.definitions(name), name
        positions = {int(p) for p in re.findall(r"\{(\d)\}", requirement.phrase)}
        used = {c.operand.position for c in requirement.conditions if isinstance(c.operand, ArgumentReference)}
        assert used <= positions, name
        assert {c.comparison for c in requirement.conditions} <= COMPARISONS


def test_requirements_of_primitives_name_primitives() -> None:
    for name, rows in PRIMITIVE_REQUIREMENTS.items():
        assert derivatives.has_primitive(name)
        for _, requirement, others in rows:
            operands = [c.operand for c in REQUIREMENTS[requirement].conditions]
            assert len(others) == max((o.position for o in operands if isinstance(o, ArgumentReference)), default=0)


# ---------------------------------------------------------------- derivatives


def test_primitives_have_no_definition_for_scalars() -> None:
    for name in derivatives.primitive_names():
        n = len(derivatives.rule(name).arguments)
        for function in definitions.overloads(name):
            formals = [str(a.type) for a in function.definition.arguments]
            assert function.definition.body is None or formals != ["real"] * n, name


def test_primitives_are_emitted() -> None:
    """What `emit.primitives` has no row for is a function of the C runtime."""
    assert set(derivatives.primitive_names()) <= set(PRIMITIVES)
    exported = c_library.library()
    targets = [form.target for form in PRIMITIVES.values() if form.kind == "runtime"]
    missing = [target for target in targets if not hasattr(exported, target)]
    assert not missing, "not in runtime/c, or not built: pip install -e ."


def test_rules_have_a_partial_for_each_argument_and_know_their_names() -> None:
    for name in (*derivatives.primitive_names(), *derivatives.op_names()):
        rule = derivatives.rule(name)
        assert len(rule.partials) == len(rule.arguments), name
        for partial in rule.partials:
            for term in _terms(partial):
                if isinstance(term, Name):
                    assert term.name in (*rule.arguments, "result", "adjoint"), name
                elif isinstance(term, Application) and term.function.isidentifier() and term.function != "neg":
                    assert term.function in PRIMITIVES, f"{name}: {term.function}"


def _terms(term: Term) -> list[Term]:
    return [term, *(t for o in term.operands for t in _terms(o))] if isinstance(term, Application) else [term]


POSITIVE, UNIT, REAL = (0.3, 1.7, 4.5), (0.1, 0.42, 0.93), (-2.3, -0.4, 0.7, 3.1)
POINTS: dict[str, list[tuple[float, ...]]] = {
    **{n: [(x,) for x in POSITIVE] for n in ("log", "log2", "log10", "sqrt", "inv_sqrt", "cbrt", "lgamma", "tgamma",
                                             "digamma", "trigamma", "tetragamma", "log1p", "lambert_w0")},
    **{n: [(x,) for x in UNIT] for n in ("log1m", "asin", "acos", "atanh", "inv_Phi", "inv_erfc")},
    "acosh": [(1.2,), (4.0,)],
    "log1m_exp": [(-0.2,), (-3.0,)],
    "lambert_wm1": [(-0.3,), (-0.05,)],
    "pow": [(0.4, 2.5), (1.7, -1.5), (3.0, 0.5), (2.0, 3.0), (-1.5, 2.0)],
    "log_of_base": [(x,) for x in POSITIVE],
    "log_given": [(0.4, -0.9)],
    "power_of_outcome": [(0.4, 2.5), (1.7, 0.5), (3.0, 1.0)],
    "power_by_log": [(0.4, 2.5, -0.9), (1.7, -1.5, 0.6), (3.0, 0.5, 1.2)],
    "fma": [(0.4, -2.0, 1.1)],
    "lmultiply": [(0.4, 2.0), (3.0, 0.2)],
    "multiply_log": [(0.4, 2.0), (3.0, 0.2)],
    "log_diff_exp": [(1.5, 0.3), (0.2, -4.0)],
    **{n: [(0.4, 2.0), (30.0, 0.1), (3.0, -1.5)] for n in ("lgamma_step", "digamma_step")},
    "normal_hazard_excess": [(-30.0,), (-4.0,), (-2.0,), (0.7,)],
    "normal_hazard": [(-30.0, -454.3212), (-4.0, -10.36), (0.7, -0.2774)],
    "log_scaled_Phi": [(-30.0,), (-4.0,), (0.7,)],
    "lbeta": [(0.4, 2.0), (30.0, 12.0)],
    "lchoose": [(7.5, 2.0), (40.0, 11.5)],
    "gamma_p": [(0.7, 0.4), (3.0, 5.5), (40.0, 35.0)],
    "gamma_q": [(0.7, 0.4), (3.0, 5.5), (40.0, 35.0)],
    **{f"log_gamma_{n}": [(0.7, 0.4), (3.0, 5.5), (40.0, 35.0), (2.0, 30.0), (500.0, 20.0)]
       for n in ("p", "q", "p_dx", "q_dx", "p_da", "q_da")},
    **{f"log_inc_beta{n}": [(0.7, 1.4, 0.3, 0.7), (5.0, 2.5, 0.8, 0.2), (20.0, 30.0, 0.45, 0.55),
                            (400.0, 2.0, 0.1, 0.9)]
       for n in ("", "_dx", "_da", "_db")},
    "inc_beta": [(0.7, 1.4, 0.3), (5.0, 2.5, 0.8), (20.0, 30.0, 0.45)],
    "inv_inc_beta": [(0.7, 1.4, 0.3), (5.0, 2.5, 0.8), (20.0, 30.0, 0.45)],
    **{f"bessel_{n}": [(0.0, 0.4), (1.0, 2.5), (3.0, 12.5)] for n in "jyik"},
    "ldexp": [(0.4, 3.0), (-1.5, -2.0)],
    "owens_t": [(0.4, 0.7), (-1.5, 2.5), (3.0, -0.2)],
    "log_skew_normal": [(0.4, 0.7), (-1.5, 2.5), (-1.5, -2.5), (2.0, -3.0), (-4.0, 1.2)],
    **{f"log_von_mises{n}": [(-3.0, 0.4, 0.7), (-1.5, 3.5, 12.5), (0.5, 2.5, 3.0)] for n in ("", "_dk")},
    **{f"von_mises_normalizer{n}": [(0.4,), (12.5,)] for n in ("", "_dk")},
    **{f"arith.{n}": [(-1.5, 2.0), (2.0, 0.7)] for n in ("addf", "subf", "mulf", "divf")},
    **{n: [(-1.5, 2.0), (2.0, 0.7)]
       for n in ("scaled_outcome", "hypot", "atan2", "log_sum_exp", "fmin", "fmax", "fdim", "fmod")},
}  # fmt: skip


@pytest.mark.parametrize("name", (*derivatives.primitive_names(), *derivatives.op_names()))
def test_derivatives_agree_with_central_differences(name: str) -> None:
    if name in ("value_of", "fixed_value_of", "log_of_zero"):
        pytest.skip("is there to have no derivative, or no finite value")
    rule = derivatives.rule(name)
    value = ARITHMETIC[name] if name in ARITHMETIC else FUNCTIONS[name]
    for point in POINTS.get(name, [(x,) for x in REAL]):
        names = dict(zip(rule.arguments, point, strict=True)) | {"result": value(*point)}
        for k, partial in enumerate(rule.partials):
            if name == "pow" and k == 1 and point[0] < 0:
                continue  # not real
            if name.startswith("log_inc_beta") and k == 3:
                continue  # moves with the one before
            if name == "ldexp" and k == 1 or name.startswith("bessel_") and k == 0:
                continue  # an int
            expected = _slope(value, point, k)
            assert _evaluate(partial, names) == pytest.approx(expected, rel=2e-8, abs=2e-8), (point, k)


def _slope(f: Callable[..., float], point: tuple[float, ...], k: int) -> float:
    """Central differences, twice extrapolated."""

    def difference(h: float) -> float:
        up, down = list(point), list(point)
        up[k] += h
        down[k] -= h
        if len(point) == 4 and k == 2:  # log_inc_beta: y is 1 - x
            up[3], down[3] = 1 - up[2], 1 - down[2]
        return (f(*up) - f(*down)) / (up[k] - down[k])

    h = 4e-3 * max(abs(point[k]), 0.05)
    d = [difference(h), difference(h / 2), difference(h / 4)]
    return (64 * d[2] - 20 * d[1] + d[0]) / 45


def _evaluate(term: Term, names: dict[str, float]) -> float:
    if isinstance(term, Number):
        return term.value
    if isinstance(term, Name):
        return names[term.name]
    if term.function == "?":
        return _evaluate(term.operands[1 if _evaluate(term.operands[0], names) else 2], names)
    operands = [_evaluate(o, names) for o in term.operands]
    return OPERATORS[term.function](*operands) if term.function in OPERATORS else FUNCTIONS[term.function](*operands)


OPERATORS: dict[str, Callable[..., float]] = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "/": lambda x, y: x / y,
    "==": lambda x, y: x == y, "!=": lambda x, y: x != y, "<": lambda x, y: x < y, "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y, ">=": lambda x, y: x >= y, "neg": lambda x: -x,
}  # fmt: skip


ARITHMETIC = {
    f"arith.{name}": OPERATORS[symbol]
    for name, symbol in {"addf": "+", "subf": "-", "mulf": "*", "divf": "/", "negf": "neg"}.items()
}


def test_ops_of_arithmetic_have_rows() -> None:
    assert derivatives.op_names() == list(ARITHMETIC)
    assert {op.name for op in SCALAR_OPS if op is not rt.MathOp} == set(ARITHMETIC)


def _of_runtime(name: str, *arguments: float) -> float:
    function = c_library.library()[PRIMITIVES[name].target]
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * len(arguments)
    return function(*arguments)


def _functions() -> dict[str, Callable[..., float]]:
    """Values of the primitives, from Python's own library or from the C runtime."""
    m = math
    found: dict[str, Any] = {
        n: getattr(m, n)
        for n in ("exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "pow", "hypot", "sin", "cos", "tan", "asin",
                  "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "fabs", "floor", "ceil",
                  "trunc", "fmod", "lgamma", "erf", "erfc", "exp2", "cbrt")
    }  # fmt: skip
    inv_logit = lambda x: 1 / (1 + m.exp(-x))  # noqa: E731
    log1p_exp = lambda x: max(x, 0.0) + m.log1p(m.exp(-abs(x)))  # noqa: E731
    log1m_exp = lambda x: m.log(-m.expm1(x))  # noqa: E731
    found |= {
        "exp_minus_magnitude": lambda x: m.exp(-abs(x)),
        "log1p_exp_minus_magnitude": lambda x: m.log1p(m.exp(-abs(x))),
        "log_given": lambda x, v: v, "inv_logit_of_bounds": inv_logit,
        "log1m": lambda x: m.log1p(-x), "inv_logit": inv_logit, "log1p_exp": log1p_exp,
        "log_inv_logit": lambda x: -log1p_exp(-x), "log1m_inv_logit": lambda x: -log1p_exp(x), "log1m_exp": log1m_exp,
        "log_sum_exp": lambda x, y: max(x, y) + m.log1p(m.exp(-abs(x - y))),
        "log_diff_exp": lambda x, y: x + log1m_exp(y - x),
        "lmultiply": lambda x, y: x * m.log(y), "multiply_log": lambda x, y: x * m.log(y),
        "square": lambda x: x * x, "inv": lambda x: 1 / x, "inv_sqrt": lambda x: 1 / m.sqrt(x),
        "inv_square": lambda x: 1 / (x * x), "fma": lambda x, y, z: x * y + z, "abs": abs, "round": m.floor,
        "step": lambda x: float(x >= 0), "fmin": min, "fmax": max, "fdim": lambda x, y: max(x - y, 0.0),
        "tgamma": m.gamma, "log_of_base": m.log,
        "power_by_log": lambda x, y, log_x: m.exp(y * log_x), "power_of_outcome": m.pow,
        "scaled_outcome": lambda x, y: x / y,
    }  # fmt: skip
    found |= {n: functools.partial(_of_runtime, n) for n, form in PRIMITIVES.items() if form.kind == "runtime"}
    return found


FUNCTIONS = _functions()
