"""Values, gradients and error behaviour of the function library against tests/reference (see the README there)."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np
import pytest
from reference_programs import (
    Batch,
    Line,
    border_problem,
    chunks,
    expected_gradient,
    expected_value,
    lines,
    tolerances,
)

import ulam

# Arguments that are symmetric by contract: the derivative may be spread over the triangles in any way.
SYMMETRIC = {
    *((f, a) for f in ("multi_normal_lpdf", "multi_normal_prec_lpdf", "multi_student_t_lpdf", "lkj_corr_lpdf",
                       "wishart_lpdf", "inv_wishart_lpdf", "multi_gp_lpdf", "inverse_spd", "mdivide_left_spd",
                       "mdivide_right_spd", "quad_form_sym", "eigenvalues_sym", "log_determinant_spd",
                       "eigendecompose_sym.1", "eigendecompose_sym.2",
                       "lkj_cov_lpdf", "gaussian_dlm_obs_lpdf")
      for a in ("a", "b", "c", "d", "y", "V", "W", "S", "Sigma", "Omega", "A", "C0")),
}  # fmt: skip

# Where the reference itself is known to be off and a container call hides it from its own check, or where Stan's
# convention is not ours: looser tolerances (value, gradient), or None to skip the gradient.
LOOSER: dict[str, tuple[float, float | None]] = {
    "ordered_probit_lpmf": (1e-10, 1e-5),  # Stan's derivative of log Phi is an approximation
    "gamma_q": (1e-8, 1e-3),
    "gamma_p": (1e-8, 1e-3),
    "log_modified_bessel_first_kind": (1e-8, 1e-3),
    "trigamma": (1e-9, 1e-8),
    "csr_extract_w": (1e-12, None),  # the derivative of an entry that is 0
    "normal_lcdf": (1e-10, 1e-4),  # Stan's derivative is an approximation
    "std_normal_lcdf": (1e-10, 1e-4),
    "normal_lccdf": (1e-8, 1e-6),
    "von_mises_cdf": (1e-6, 1e-4),  # Stan's normal approximation for large concentrations
    "von_mises_lcdf": (1e-5, 1e-4),
    "von_mises_lccdf": (1e-5, 1e-4),
    "skew_normal_lcdf": (1e-8, None),  # in its lower tail Stan's derivative is 0
    "multi_normal_cholesky_lpdf": (1e-10, None),  # Stan gives the unread upper triangle a derivative
}

# Where the argument's own rounding decides the value near a zero: absolute tolerance.
ABSOLUTE = {"std_normal_log_qf": 1e-15}

# Differences from Stan that are ours on purpose: (function, reason).
OURS = {
    "uniform_cdf": "Stan gives 0 above the upper bound",
    "uniform_lcdf": "Stan gives minus infinity above the upper bound",
    "uniform_lccdf": "Stan gives 0 above the upper bound",
    "normal_lccdf": "Stan gives minus infinity from 8.25 standard deviations on",
    "std_normal_lccdf": "Stan gives minus infinity from 8.25 standard deviations on",
    "poisson_lccdf": "Stan gives minus infinity where it is below -37",
    "neg_binomial_lccdf": "Stan gives minus infinity where it is below -37",
    "neg_binomial_2_lccdf": "Stan gives minus infinity where it is below -37",
}


@cache
def _batches(size: int = 24) -> list[list[Line]]:
    """Lines of few functions together: a failure should say which."""
    return chunks(list(lines("functions.jsonl")), size)


def _label(batch: list[Line]) -> str:
    first, last = batch[0]["function"], batch[-1]["function"]
    return first if first == last else f"{first}..{last}"


OPTIMISED = 8
"""One in so many batches is compiled with LLVM's optimisations, which take most of the time; all of them if asked for
slow tests."""


@pytest.mark.parametrize("number", range(len(_batches())), ids=[_label(batch) for batch in _batches()])
def test_values_and_gradients(number: int, request: pytest.FixtureRequest) -> None:
    if number % OPTIMISED:
        request.getfixturevalue("quick_code")
    _check_batch(_batches()[number])


@pytest.mark.slow
@pytest.mark.parametrize("batch", _batches(), ids=_label)
def test_values_and_gradients_of_optimised_code(batch: list[Line]) -> None:
    _check_batch(batch)


def _check_batch(batch: list[Line]) -> None:
    program = Batch(batch)
    model = ulam.StanModel(program.text, data=json.dumps(program.data))
    problems = []
    for number, line in enumerate(batch):
        value, gradient = model.log_density_gradient(np.array(program.point(number)), propto=False)
        problems += _value_problems(line, value)
        problems += _gradient_problems(line, {n: gradient[s] for n, s in program.places[number].items()})
    assert not problems, "\n".join(problems)


def _describe(line: Line) -> str:
    return f"{line['function']} {line['signature']} at {[a['value'] for a in line['args'].values()]}"


def _value_problems(line: Line, value: float) -> list[str]:
    if "sign" in line.get("note", ""):
        return []
    expected = expected_value(line)
    tolerance = LOOSER.get(line["function"], tolerances(line))[0]
    same = value == expected or (math.isnan(value) and math.isnan(expected))
    close = same or abs(value - expected) <= tolerance * max(abs(expected), 1e-300)
    close |= abs(value - expected) <= ABSOLUTE.get(line["function"], 0)
    if close or (line["function"] in OURS and not math.isfinite(expected)) or abs(expected) < 1e-300 > abs(value):
        return []
    return [f"{_describe(line)}: {value!r}, expected {expected!r}"]


def _gradient_problems(line: Line, gradient: dict[str, np.ndarray]) -> list[str]:
    tolerance = LOOSER.get(line["function"], tolerances(line))[1]
    if tolerance is None or "sign" in line.get("note", ""):
        return []
    problems = []
    for name, found in gradient.items():
        wanted = [np.array(expected_gradient(line, name)), np.array(expected_gradient(line, name, doubt=False))]
        if (line["function"], name) in SYMMETRIC and line["args"][name]["type"].startswith("matrix"):
            found, *wanted = (_symmetric_sum(g) for g in (found, *wanted))
        if not any(_agree(found, w, tolerance) for w in wanted):
            problems.append(f"{_describe(line)}: d/d{name} {found.tolist()}, expected {wanted[0].tolist()}")
    return problems


def _symmetric_sum(gradient: np.ndarray) -> np.ndarray:
    size = math.isqrt(gradient.size)
    if size * size != gradient.size:
        return gradient
    square = gradient.reshape(size, size)
    return (square + square.T).ravel()


def _agree(found: np.ndarray, wanted: np.ndarray, tolerance: float) -> bool:
    """A derivative that is not finite in the reference need not match."""
    known = np.isfinite(wanted)
    return bool(np.all(np.abs(found - wanted)[known] <= tolerance * np.maximum(1, np.abs(wanted[known]))))


# ---------------------------------------------------------------- at and outside the border of the domain


@cache
def _domain_groups() -> list[list[Line]]:
    """Scalar calls, grouped by signature: they share one program, whose arguments are parameters where they can be."""
    groups: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines("domain_errors.jsonl"):
        simple = "args" in line and all(a["type"] in ("int", "real") for a in line["args"].values())
        if simple:
            groups[line["function"], line["signature"]].append(line)
    return list(groups.values())


def _domain_program(groups: list[list[Line]]) -> tuple[str, dict[str, Any]]:
    """The last parameter, `which`, chooses the line; ints are data, looked up by its number."""
    data: dict[str, Any] = {}
    declarations, terms = [], []
    for g, group in enumerate(groups):
        call = group[0]["expr"]
        for name, argument in group[0]["args"].items():
            array = f"{name}_{g}"
            values = [line["args"][name]["value"] for line in group]
            data[array] = [float(v) if isinstance(v, str) else v for v in values]
            declarations.append(f"array[{len(group)}] {argument['type']} {array};")
        for name in group[0]["args"]:
            call = _with_index(call, name, g)
        terms.append(f"if (group == {g}) target += {call};")
    text = "\n".join([
        "data {", *declarations, "}", "parameters { real group; real which; }", "model {", "int k = 1;",
        "while (k < which) k += 1;", *terms, "}",
    ])  # fmt: skip
    return text, data


def _with_index(call: str, name: str, group: int) -> str:
    return re.sub(rf"(?<![\w.]){name}(?![\w(])", f"{name}_{group}[k]", call)


DOMAIN_CHUNKS = [_domain_groups()[i : i + 8] for i in range(0, len(_domain_groups()), 8)]


@pytest.mark.usefixtures("quick_code")
@pytest.mark.parametrize("groups", DOMAIN_CHUNKS, ids=lambda g: _label([g[0][0], g[-1][0]]))
def test_border_of_the_domain(groups: list[list[Line]]) -> None:
    text, data = _domain_program(groups)
    model = ulam.StanModel(text, data=data)
    problems = []
    for g, group in enumerate(groups):
        for k, line in enumerate(group):
            if problem := border_problem(model, [float(g), float(k + 1)], line):
                problems.append(f"{_describe(line)}: {problem}")
    assert not problems, "\n".join(problems)
