"""Programs that declare every kind of container in every block, with sizes that the data decide.

A program has all containers of a block; the data's `which` names the one whose sizes are N and M, and the others are
small, or not declared at all where they are local. Run as a program, this reads cases (JSON lines) and writes outcomes,
so that a crash ends nothing but the process: see `test_sizes`.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass

MEMORY = 3 << 30
"""Address space of the process that runs programs: what is larger must be an error."""

INT_MAX = 2**31 - 1
MOST_SIZE = INT_MAX - 2**20
MOST_BYTES = 2**47


def wrapped(value: int) -> int:
    """The int of 32 bits."""
    return (value + 2**31) % 2**32 - 2**31


@dataclass(frozen=True)
class Kind:
    """A container: its declaration with {n} and {m} for sizes and {x} for the name, its last element, and its sizes."""

    declaration: str
    last: str
    sizes: Callable[[int, int], tuple[int, ...]]


KINDS = (
    Kind("vector[{n}] {x}", "[{n}]", lambda n, m: (n,)),
    Kind("row_vector[{n}] {x}", "[{n}]", lambda n, m: (n,)),
    Kind("matrix[{n}, {m}] {x}", "[{n}, {m}]", lambda n, m: (n, m)),
    Kind("array[{n}] real {x}", "[{n}]", lambda n, m: (n,)),
    Kind("array[{n}, {m}] real {x}", "[{n}, {m}]", lambda n, m: (n, m)),
    Kind("array[{n}, {m}, 2] real {x}", "[{n}, {m}, 1]", lambda n, m: (n, m, 2)),
    Kind("array[{n}, {m}, {n}, {m}] real {x}", "[{n}, {m}, {n}, {m}]", lambda n, m: (n, m, n, m)),
    Kind("array[{n}] vector[{m}] {x}", "[{n}, {m}]", lambda n, m: (n, m)),
    Kind("array[{n}, 3] matrix[2, {m}] {x}", "[{n}, 3, 2, {m}]", lambda n, m: (n, 3, 2, m)),
    Kind("vector[{n} * {m}] {x}", "[{n} * {m}]", lambda n, m: (wrapped(n * m),)),
    Kind("vector[{n} + {m}] {x}", "[{n} + {m}]", lambda n, m: (wrapped(n + m),)),
    Kind("matrix[{n} - 1, {m} + 1] {x}", "[{n} - 1, {m} + 1]", lambda n, m: (wrapped(n - 1), wrapped(m + 1))),
)
"""What any block may declare."""

RESULTS = (
    ("rep_matrix(p, {n}, {m})", lambda n, m: (n, m)),
    ("rep_array(p, {n}, {m})", lambda n, m: (n, m)),
    ("(rep_vector(p, {n}) * rep_row_vector(1, {m}))", lambda n, m: (n, m)),
    ("append_row(rep_matrix(p, 1, {m}), rep_matrix(p, {n} - 1, {m}))", lambda n, m: (wrapped(n - 1), m)),
    ("rep_vector(p, {n})[rep_array(1, {m})]", lambda n, m: (n, m)),
    ("tcrossprod(rep_matrix(p, {n}, 1))", lambda n, m: (n, n)),
    ("diag_matrix(rep_vector(p, {n}))", lambda n, m: (n, n)),
)
"""Containers that no variable holds, and sizes that must be such: where one is 0 there is no last element."""


def _cov(n: int, m: int) -> int:
    return m * (m + 1) // 2 + (n - m) * m


PARAMETERS: tuple[tuple[str, tuple[int, ...], Callable[[int, int], int]], ...] = (
    ("vector<lower=0>[{n}] {x}", (0,), lambda n, m: n),
    ("array[{n}] real<upper=3> {x}", (0,), lambda n, m: n),
    ("matrix[{n}, {m}] {x}", (0, 0), lambda n, m: n * m),
    ("array[{n}] vector<offset=1>[{m}] {x}", (0, 0), lambda n, m: n * m),
    ("simplex[{n}] {x}", (1,), lambda n, m: n - 1),
    ("array[{m}] simplex[{n}] {x}", (1, 0), lambda n, m: (n - 1) * m),
    ("ordered[{n}] {x}", (0,), lambda n, m: n),
    ("positive_ordered[{n}] {x}", (0,), lambda n, m: n),
    ("unit_vector[{n}] {x}", (2,), lambda n, m: n),
    ("sum_to_zero_vector[{n}] {x}", (1,), lambda n, m: n - 1),
    ("sum_to_zero_matrix[{n}, {m}] {x}", (1, 1), lambda n, m: (n - 1) * (m - 1)),
    ("cholesky_factor_corr[{n}] {x}", (0,), lambda n, m: n * (n - 1) // 2),
    ("cholesky_factor_cov[{n}, {m}] {x}", (0, 0), _cov),
    ("cholesky_factor_cov[{n}] {x}", (0,), lambda n, m: _cov(n, n)),
    ("corr_matrix[{n}] {x}", (0,), lambda n, m: n * (n - 1) // 2),
    ("cov_matrix[{n}] {x}", (0,), lambda n, m: n * (n + 1) // 2),
    ("column_stochastic_matrix[{n}, {m}] {x}", (1, 0), lambda n, m: (n - 1) * m),
    ("row_stochastic_matrix[{n}, {m}] {x}", (0, 1), lambda n, m: n * (m - 1)),
)
"""Parameters: the least sizes, as Stan has them, and the number of unconstrained values."""

_DATA = "data { int which; int N; int M; }\n"


def _chosen(number: int, size: str) -> str:
    return f"(which == {number} ? {size} : 2)"


def _globals() -> str:
    lines = []
    for number, kind in enumerate(KINDS):
        n, m = _chosen(number, "N"), _chosen(number, "M")
        lines.append(kind.declaration.format(n=n, m=m, x=f"x{number}") + ";")
        last = kind.last.format(n="N", m="M")
        lines.append(f"if (which == {number} && num_elements(x{number}) > 0) x{number}{last} = 1;")
    declared = [line for line in lines if not line.startswith("if")]
    return "\n".join(declared + [line for line in lines if line.startswith("if")])


def _locals(*, used: bool) -> str:
    lines = []
    for number, kind in enumerate(KINDS):
        declaration = kind.declaration.format(n="N", m="M", x=f"x{number}")
        last = f"x{number}{kind.last.format(n='N', m='M')}"
        body = f"if (num_elements(x{number}) > 0) {{ {last} = p; r += {last} - p; }}" if used else ""
        lines.append(f"if (which == {number}) {{ {declaration}; {body} }}")
    return "\n".join(lines)


def _results() -> str:
    lines = []
    for number, (expression, _) in enumerate(RESULTS):
        value = expression.format(n="N", m="M")
        lines.append(f"if (which == {number}) r += 0 * sum(to_vector({_flat(value)}));")
    return "\n".join(lines)


def _flat(value: str) -> str:
    return f"to_array_1d({value})" if value.startswith("rep_array") else value


def _parameters() -> str:
    return "\n".join(
        declaration.format(n=_chosen(number, "N"), m=_chosen(number, "M"), x=f"x{number}") + ";"
        for number, (declaration, _, _) in enumerate(PARAMETERS)
    )


def _with_model(statements: str, *, functions: str = "", before: str = "") -> str:
    model = f"model {{ real r = 0; {statements}\n target += p + r; }}"
    return f"{functions}{_DATA}{before}parameters {{ real p; }}\n{model}"


_FUNCTION = "functions {{ real f(real p, int which, int N, int M) {{ real r = 0; {0}\n return r; }} }}\n"

PROGRAMS: dict[str, str] = {
    "transformed_data": _with_model("", before=f"transformed data {{ {_globals()} }}\n"),
    "parameters": f"{_DATA}parameters {{ real p; {_parameters()} }}\nmodel {{ target += p; }}",
    "transformed_parameters": (
        f"{_DATA}parameters {{ real p; }}\ntransformed parameters {{ {_globals()} }}\nmodel {{ target += p; }}"
    ),
    "model": _with_model(_locals(used=True)),
    "unused": _with_model(_locals(used=False)),
    "function": _with_model("r += f(p, which, N, M);", functions=_FUNCTION.format(_locals(used=True))),
    "results": _with_model(_results()),
    "generated_quantities": (
        f"{_DATA}parameters {{ real p; }}\nmodel {{ target += p; }}\ngenerated quantities {{ {_globals()} }}"
    ),
}
"""Block → program. At p = 0.3 the log density is 0.3, whatever the sizes."""


def count(block: str) -> int:
    """How many containers a program has."""
    return len(PARAMETERS) if block == "parameters" else len(RESULTS) if block == "results" else len(KINDS)


def run(case: dict[str, object]) -> dict[str, object]:
    """The outcome of one case: the value and the number of unconstrained parameters, or the error."""
    import numpy as np

    import ulam

    block, level = str(case["block"]), int(str(case["level"]))
    data = {name: case[name] for name in ("which", "N", "M")}
    try:
        model = ulam.StanModel(PROGRAMS[block], data=data, opt_level=level)
        theta = np.full(model.param_unc_num(), 0.3)
        if block == "parameters" and len(theta) < 20_000:
            theta = model.param_unconstrain(model.param_constrain(theta))
        value, gradient = model.log_density_gradient(theta, jacobian=False)
        if block == "generated_quantities":
            model.param_constrain(theta, include_gq=True, rng=model.new_rng(1))
        return {"value": value, "slope": float(gradient[0]), "unconstrained": len(theta)}
    except ulam.UlamError as error:
        return {"error": str(error), "kind": type(error).__name__}


def main() -> None:
    """Reads cases from standard input, one per line."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
