"""Every container in every block with sizes from the data: a right value or an error that names it, never a crash."""

from __future__ import annotations

import json
import math
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import size_expressions
from size_programs import INT_MAX, KINDS, MOST_BYTES, MOST_SIZE, PARAMETERS, PROGRAMS, RESULTS, count, wrapped

import ulam

WORKER = Path(__file__).parents[1] / "oracles" / "size_programs.py"
SIZES = (-1, 0, 1, 3, 46341, 65537, 2**30, INT_MAX - 1, INT_MAX)
GLOBAL = ("transformed_data", "parameters", "transformed_parameters", "generated_quantities")
SMALL_BYTES = 1 << 26


def _outcomes(cases: list[dict[str, Any]], worker: Path = WORKER) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """What a process of its own makes of the cases."""
    text = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run(
        [sys.executable, str(worker)], input=text, capture_output=True, text=True, check=False, timeout=3600
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (done.returncode, cases[len(lines)], done.stderr[-2000:])
    for case, line in zip(cases, lines, strict=True):
        yield case, json.loads(line)


def _least_and_sizes(case: dict[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The least sizes that Stan demands, and the sizes."""
    which, n, m = case["which"], case["N"], case["M"]
    if case["block"] == "parameters":
        declaration, least, _ = PARAMETERS[which]
        return least, (n, m)[: len(least)] if "{m}" in declaration else (n,)
    sizes = (RESULTS[which][1] if case["block"] == "results" else KINDS[which].sizes)(n, m)
    return (0,) * len(sizes), sizes


def _is_possible(case: dict[str, Any]) -> bool | None:
    """Whether there must be a value; None: it depends on the machine's memory."""
    least, sizes = _least_and_sizes(case)
    if any(size < minimum for size, minimum in zip(sizes, least, strict=True)):
        return False
    unconstrained = 0
    if case["block"] == "parameters":
        declaration, _, unconstrained_of = PARAMETERS[case["which"]]
        if declaration.startswith("cholesky_factor_cov[{n}, {m}]") and case["N"] < case["M"]:
            return False
        unconstrained = unconstrained_of(case["N"], case["M"])
        if "matrix[{n}]" in declaration or "_factor_corr" in declaration or "_factor_cov[{n}]" in declaration:
            sizes = (case["N"], case["N"])
    if case["block"] in GLOBAL and any(size > MOST_SIZE for size in sizes):
        return False
    held = 8 * max(math.prod(max(size, 1) for size in sizes), unconstrained)
    if case["block"] == "results":
        held *= 4
    return True if held <= SMALL_BYTES else False if held > 4 * MOST_BYTES else None


def _check(case: dict[str, Any], outcome: dict[str, Any]) -> None:
    possible = _is_possible(case)
    if (error := outcome.get("error")) is not None:
        assert possible is not True, (case, outcome)
        is_memory = "memory" in error or "too large" in error
        if case["block"] != "results" and not is_memory:
            assert f"x{case['which']}" in error, (case, outcome)
        assert "internal error" not in error
        return
    assert possible is not False, (case, outcome)
    assert outcome["value"] == pytest.approx(0.3) and outcome["slope"] == 1.0, (case, outcome)
    if case["block"] == "parameters":
        others = sum(c(2, 2) for number, (_, _, c) in enumerate(PARAMETERS) if number != case["which"])
        own = PARAMETERS[case["which"]][2](case["N"], case["M"])
        assert outcome["unconstrained"] == 1 + own + others, (case, outcome)


def _cases(block: str, level: int, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    return [
        {"block": block, "level": level, "which": which, "N": n, "M": m}
        for which in range(count(block))
        for n in sizes
        for m in sizes
    ]


@pytest.mark.ordinary_runtime("guards need more address space than it has")
def test_sizes_of_containers() -> None:
    """A share of all cases: each container with each size once, at level 0, and some at level 3."""
    choose = random.Random(1)
    cases = []
    for level, blocks in ((0, tuple(PROGRAMS)), (3, ("model", "parameters"))):
        for block in blocks:
            everything = _cases(block, level, SIZES)
            cases += choose.sample(everything, 30)
    for case, outcome in _outcomes(cases):
        _check(case, outcome)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("block", PROGRAMS)
def test_sizes_of_containers_in_all_blocks(block: str, level: int) -> None:
    for case, outcome in _outcomes(_cases(block, level, SIZES)):
        _check(case, outcome)


# ---------------------------------------------------------------- expressions and indices


def _check_form(case: dict[str, Any], outcome: dict[str, Any]) -> None:
    form = size_expressions.FORMS[case["which"]].text
    try:
        wanted = size_expressions.expected(case)
    except size_expressions.Wrong:
        assert "error" in outcome and "internal error" not in outcome["error"], (form, case, outcome)
        return
    if wanted is None or case["way"] == "optimize":
        assert "internal error" not in outcome.get("error", ""), (form, case, outcome)
        return
    assert outcome.get("value") == pytest.approx(0.5 * wanted), (form, case, outcome)
    if "slope" in outcome:
        assert outcome["slope"] == pytest.approx(wanted), (form, case, outcome)


def _form_cases(way: str, level: int) -> list[dict[str, Any]]:
    sizes = size_expressions.SIZES
    every = [(which, n, m) for which in range(len(size_expressions.FORMS)) for n in sizes for m in sizes]
    cases = [{"which": which, "N": n, "M": m, "way": way, "level": level} for which, n, m in every]
    return [case for case in cases if size_expressions.is_fast(case)]


def test_expressions_with_sizes_and_indices_from_the_data() -> None:
    choose = random.Random(2)
    cases = [case for way in ("gradient", "late") for case in choose.sample(_form_cases(way, 0), 150)]
    for case, outcome in _outcomes(cases, Path(size_expressions.__file__)):
        _check_form(case, outcome)


@pytest.mark.slow
@pytest.mark.parametrize(("way", "level", "share"), size_expressions.SWEEP)
def test_expressions_with_all_sizes_and_indices(way: str, level: int, share: int) -> None:
    cases = _form_cases(way, level)
    chosen = random.Random(3).sample(cases, min(share, len(cases)))
    for case, outcome in _outcomes(chosen, Path(size_expressions.__file__)):
        _check_form(case, outcome)


INTS = """
data { int N; int M; array[3] int z; }
parameters { real p; }
model { array[4] real x = {1, 2, 3, 4}; target += x[N * N - 131069] * p; }
generated quantities {
  array[14] int o;
  o[1:8] = {N * N, N + M, N - M - M, -(-M - 1), (-M - 1) %/% -1, (-M - 1) % -1, abs(-M - 1), sum(z)};
  o[9] = 0;
  for (i in (M - 2):(M + 3)) o[9] += 1;
  o[10] = 0;
  for (i in (M - 2):M) o[10] += i;
  o[11] = size(rep_vector(1, N * N));
  o[12] = 2147483647 + 1;
  o[13] = (N + 1) * (N - 1) - N * N;
  o[14] = choose(65536, 2);
}
"""


@pytest.mark.parametrize("level", [0, 3])
def test_ints_wrap(level: int) -> None:
    n, most = 65537, INT_MAX
    model = ulam.StanModel(INTS, data={"N": n, "M": most, "z": [most, 2, 3]}, opt_level=level)
    found = model.param_constrain(np.array([0.3]), include_gq=True, rng=model.new_rng(1))[1:]
    least = -most - 1
    square = wrapped(n * n)
    by_operators = [square, wrapped(n + most), wrapped(n - 2 * most), least, least, 0, least, wrapped(most + 5)]
    # The loop from M - 2 to M + 3 has no iteration: its upper bound wraps.
    assert list(found) == [*by_operators, 0, wrapped(3 * most - 3), square, least, -1, 2147450880]
    # An index that wraps is one like any other.
    assert model.log_density(np.array([0.3])) == pytest.approx(0.3 * 4)
    with pytest.raises(ulam.FatalError, match="index -131069 out of range"):
        ulam.StanModel(INTS, data={"N": 0, "M": 1, "z": [0, 0, 0]}, opt_level=level).log_density(np.array([0.3]))


@pytest.mark.parametrize(("n", "x"), [(1000, 700.3), (1001, 501.0), (1001, 1e9), (5000, 2500.2), (3000, 1.3)])
def test_many_terms_of_the_multivariate_gamma_function(n: int, x: float) -> None:
    model = ulam.StanModel("data { int n; } parameters { real x; } model { target += lmgamma(n, x); }", {"n": n})
    terms = [math.lgamma(x + (1 - j) / 2) for j in range(1, n + 1)]
    expected = math.fsum([0.25 * math.log(math.pi) * n * (n - 1), *terms])
    assert model.log_density(np.array([x])) == pytest.approx(expected, rel=1e-14)
    step = 1e-4 * x
    slope = (model.log_density(np.array([x + step])) - model.log_density(np.array([x - step]))) / (2 * step)
    assert model.log_density_gradient(np.array([x]))[1][0] == pytest.approx(slope, rel=1e-4)


def test_wrong_int_data_are_the_one_error() -> None:
    program = "data { int<lower=0> N; vector[N] y; matrix[N, 2] g; } parameters { real a; } model { }"
    with pytest.raises(ulam.DataError) as caught:
        ulam.StanModel(program, data={"N": -3, "y": [1], "g": [[1, 2]]})
    (problem,) = caught.value.problems
    assert "'N' is -3, but must be greater than or equal to 0" in problem


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ("simplex[0] q;", "q: the number of elements is 0, but must be at least 1"),
        ("cholesky_factor_cov[2, 3] q;", "q: the number of columns is 3, but must be at most 2"),
        ("cov_matrix[0] q;", "q: the number of rows is 0, but must be at least 1"),
    ],
)
def test_errors_of_constant_sizes_name_the_variable_and_the_size(declaration: str, message: str) -> None:
    program = f"transformed data {{ {declaration} }} parameters {{ real p; }} model {{ target += p; }}"
    with pytest.raises(ulam.UlamError, match=re.escape(message)):
        ulam.StanModel(program, opt_level=0).log_density(np.array([0.3]))


LITTLE_MEMORY = """
import resource, ulam
resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))
program = "transformed data { matrix[100000, 10000] q; } parameters { real p; } model { target += p; }"
try:
    ulam.StanModel(program, opt_level=0, cache=False).log_density([0.3])
except ulam.FatalError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA")
def test_memory_for_constant_sizes_names_the_variable() -> None:
    command = [sys.executable, "-c", LITTLE_MEMORY]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.stdout.startswith("q: out of memory (8000000000 bytes wanted) (in 'model.stan', line 1"), done.stderr


def test_ints_of_data_that_are_too_large_reals() -> None:
    with pytest.raises(ulam.DataError, match=r"N is 1e\+300, outside the 32-bit range of int$"):
        ulam.StanModel("data { int N; } parameters { real p; } model { target += p; }", {"N": 1e300})


@pytest.mark.usefixtures("quick_code")
def test_structured_types_in_transformed_data() -> None:
    """Their numbers of unconstrained values are not those of parameters."""
    program = """transformed data {
      corr_matrix[2] a = [[1, 0], [0, 1]];
      cholesky_factor_cov[3, 2] b = [[1, 0], [0, 1], [1, 1]];
      column_stochastic_matrix[1, 2] c = [[1, 1]];
      array[1] cov_matrix[1] d = {[[2]]};
      simplex[1] e = [1]';
    }
    parameters { real x; }
    model { x ~ normal(a[1, 2] + b[1, 2], sum(d[1]) * sum(c[1]) / e[1]); }"""
    assert ulam.StanModel(program, opt_level=0).log_density([4.0]) == pytest.approx(-0.5)
