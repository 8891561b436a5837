"""Expressions and assignments whose sizes and indices the data decide, with what they must be.

Each form takes N and M; its rule gives its value as a multiple of p, or raises `Wrong` where there must be an error, or
gives None where either will do (a part of no elements at an edge). One program has all forms; the data's `which` names
one. Run as a program, this reads cases (JSON lines) and writes outcomes, so that a crash ends nothing but the process:
see `test_sizes`.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MEMORY = 3 << 30
V = (1.0, 2.0, 3.0, 4.0, 5.0)
"""The vector `v` is p times this, the matrix `A` (5 by 4) has p * (i + 10 j)."""
LARGE = 1 << 22
"""Elements that a machine has room for."""


class Wrong(Exception):
    """There must be an error."""


def need(condition: bool) -> None:
    if not condition:
        raise Wrong


def at(values: Sequence[float], i: int) -> float:
    need(1 <= i <= len(values))
    return values[i - 1]


def between(n: int, m: int, size: int = 5) -> range:
    """The indices of n:m."""
    if m < n:
        return range(0)
    need(1 <= n and m <= size)
    return range(n, m + 1)


def entry(i: int, j: int) -> float:
    need(1 <= i <= 5 and 1 <= j <= 4)
    return i + 10.0 * j


def part(first: int, count: int, size: int) -> range | None:
    """`count` indices from `first` on."""
    if count == 0:
        return None
    need(count > 0 and first >= 1 and first + count - 1 <= size)
    return range(first, first + count)


def many(*sizes: int) -> float:
    """The sum of so many ones."""
    product = 1
    for size in sizes:
        need(size >= 0)
        product *= size
    if product > LARGE:
        raise Wrong  # or slow: these cases are not asked for
    return float(product)


def head(count: int, size: int = 5) -> range:
    need(0 <= count <= size)
    return range(1, count + 1)


def total(indices: range | None, of: Callable[[int], float] = float) -> float | None:
    return None if indices is None else sum(of(i) for i in indices)


def one_hot(size: int, at_: int) -> float:
    need(size >= 1 and 1 <= at_ <= size)
    return many(size) and 1.0


def block(i: int, j: int, rows: int, columns: int) -> float | None:
    r, c = part(i, rows, 5), part(j, columns, 4)
    if r is None or c is None:
        return None
    return sum(entry(a, b) for a in r for b in c)


def both(n: int, m: int) -> float:
    return at(V, n) + at(V, m)


def sparse(column: int, start: int) -> float | None:
    """A sparse matrix of 2 by 2 whose second element is in a column, and whose second row begins at a place."""
    need(1 <= column <= 2)
    return None if start != 2 else 2.0


@dataclass(frozen=True)
class Form:
    """Stan's text, a real expression or statements that add to `r`; its rule."""

    text: str
    rule: Callable[[int, int], float | None]


FORMS = (
    Form("v[N]", lambda n, m: at(V, n)),
    Form("A[N, M]", entry),
    Form("sum(A[N])", lambda n, m: sum(entry(n, j) for j in range(1, 5))),
    Form("sum(A[:, M])", lambda n, m: sum(entry(i, m) for i in range(1, 6))),
    Form("sum(v[N:M])", lambda n, m: total(between(n, m))),
    Form("sum(v[{N, M}])", both),
    Form("sum(v[{N, M}][{1, 2}])", both),
    Form("sum(A[{N, M}, 1])", lambda n, m: entry(n, 1) + entry(m, 1)),
    Form("sum(A[N:M, 2])", lambda n, m: total(between(n, m), lambda i: entry(i, 2))),
    Form("sum(A[2, N:M])", lambda n, m: total(between(n, m, 4), lambda j: entry(2, j))),
    Form("sum(A[N:M, {1, 4}])", lambda n, m: total(between(n, m), lambda i: entry(i, 1) + entry(i, 4))),
    Form("sum(xs[N:M])", lambda n, m: total(between(n, m))),
    Form("sum(xs[{N, M}])", both),
    Form("sum(vs[N][2:M])", lambda n, m: (at((1, 1, 1), n), total(between(2, m)))[1]),
    Form("sum(vs[{1, N}, M])", lambda n, m: (at((1, 1, 1), n), 2 * at(V, m))[1]),
    Form("sum(vs[N:M, 2])", lambda n, m: 2.0 * len(between(n, m, 3))),
    Form("pair.1[N]", lambda n, m: at(V, n)),
    Form("sum(pair.2[N, 1:M])", lambda n, m: (at((1, 1, 1), n), float(len(between(1, m, 3))))[1]),
    Form("sum(head(v, N))", lambda n, m: total(head(n))),
    Form("sum(tail(v, N))", lambda n, m: total(head(n), lambda i: 6.0 - i)),
    Form("sum(head(xs, N))", lambda n, m: total(head(n))),
    Form("sum(tail(xs, N))", lambda n, m: total(head(n), lambda i: 6.0 - i)),
    Form("sum(segment(v, N, M))", lambda n, m: total(part(n, m, 5))),
    Form("sum(segment(xs, N, M))", lambda n, m: total(part(n, m, 5))),
    Form("sum(block(A, N, M, 2, 2))", lambda n, m: block(n, m, 2, 2)),
    Form("sum(block(A, 2, 2, N, M))", lambda n, m: block(2, 2, n, m)),
    Form("sum(sub_row(A, N, 2, M))", lambda n, m: block(n, 2, 1, m)),
    Form("sum(sub_col(A, 2, N, M))", lambda n, m: block(2, n, m, 1)),
    Form("sum(row(A, N)) + sum(col(A, M))", lambda n, m: (sum(entry(n, j) for j in range(1, 5)) + sum(
        entry(i, m) for i in range(1, 6)))),
    Form("sum(rep_vector(p, N))", lambda n, m: many(n)),
    Form("sum(rep_row_vector(p, N))", lambda n, m: many(n)),
    Form("sum(rep_matrix(p, N, M))", many),
    Form("sum(rep_matrix(v, N))", lambda n, m: 15 * many(n)),
    Form("sum(rep_array(p, N))", lambda n, m: many(n)),
    Form("sum(to_array_1d(rep_array(p, N, M)))", many),
    Form("sum(to_array_1d(rep_array(p, N, M, 2)))", lambda n, m: many(n, m, 2)),
    Form("p * sum(ones_vector(N)) + sum(zeros_vector(M))", lambda n, m: many(m) * 0 + many(n)),
    Form("p * sum(ones_row_vector(N)) + p * sum(ones_array(M))", lambda n, m: many(n) + many(m)),
    Form("p * sum(ones_int_array(N)) + sum(zeros_int_array(M))", lambda n, m: many(m) * 0 + many(n)),
    Form("p * sum(linspaced_vector(N, 1, 1))", lambda n, m: many(n)),
    Form("p * sum(linspaced_row_vector(N, 1, 1))", lambda n, m: many(n)),
    Form("p * sum(linspaced_array(N, 1, 1))", lambda n, m: many(n)),
    Form("p * sum(linspaced_int_array(N, 1, 1))", lambda n, m: many(n)),
    Form("p * sum(one_hot_vector(N, M))", one_hot),
    Form("p * sum(one_hot_row_vector(N, M))", one_hot),
    Form("p * sum(one_hot_array(N, M))", one_hot),
    Form("p * sum(one_hot_int_array(N, M))", one_hot),
    Form("sum(to_matrix(v, N, M))", lambda n, m: (need(n >= 0 and m >= 0 and n * m == 5), 15.0)[1]),
    Form("sum(to_matrix(xs, N, M))", lambda n, m: (need(n >= 0 and m >= 0 and n * m == 5), 15.0)[1]),
    Form("sum(to_matrix(v[2:1], N, M))", lambda n, m: (need(n >= 0 and m >= 0 and n * m == 0), 0.0)[1]),
    Form("sum(csr_matrix_times_vector(2, 2, [p, p]', {1, N}, {1, M, 3}, [1, 1]'))", sparse),
    Form("sum(head(v, N) + tail(v, M))", lambda n, m: (total(head(n)) or 0, head(m), need(n == m), sum(
        6.0 for _ in range(n)))[3]),
    Form("sum(v[order[N:M]])", lambda n, m: total(between(n, m))),
    Form("f(v[N:M])", lambda n, m: (need(len(between(n, m)) >= 1), n + m)[1]),
    Form("{ vector[5] w = v; w[N] = p; w[M] += p; r += sum(w); }", lambda n, m: (
        at(V, n), at(V, m), 15 - at(V, n) + 2)[2]),
    Form("{ vector[5] w = v; w[{N, M}] = [p, p]'; r += sum(w); }", lambda n, m: (
        15 - both(n, m) + (2 if n != m else 1 + at(V, n)))),
    Form("{ vector[5] w = v; w[N:M] = v[N:M] * 2; r += sum(w); }", lambda n, m: 15 + (total(between(n, m)) or 0)),
    Form("{ vector[5] w = v; w[2:3] = v[N:M]; r += sum(w); }", lambda n, m: (
        need(len(between(n, m)) == 2), 10.0 + n + m)[1]),
    Form("{ matrix[5, 4] B = A; B[N, M] = 0; r += sum(B); }", lambda n, m: 560 - entry(n, m)),
    Form("{ matrix[5, 4] B = A; B[N] = rep_row_vector(0, M); r += sum(B); }", lambda n, m: (
        need(m == 4), 560 - sum(entry(n, j) for j in range(1, 5)))[1]),
    Form("{ matrix[5, 4] B = A; B[N:M, 1] = A[N:M, 2]; r += sum(B); }", lambda n, m: 560 + 10.0 * len(between(n, m))),
    Form("{ matrix[5, 4] B = A; B[{N, 1}, {M, 2}] = A[1:2, 1:2] * 0; r += 0 * sum(B); }", lambda n, m: 0 * entry(n, m)),
    Form("{ array[3] vector[5] ws = vs; ws[N][M] = 0; r += sum(to_array_1d(ws[:, 1])) * 0; }", lambda n, m: 0 * (
        at((1, 1, 1), n) + at(V, m))),
    Form("{ tuple(array[5] real, vector[3]) t; t.1 = xs[N:M]; r += sum(t.1); }", lambda n, m: (
        need(len(between(n, m)) == 5), 15.0)[1]),
    Form("{ array[5] real ys = xs; ys[N:M] = xs[N:M]; ys[{M, N}] = {p, p}; r += 0 * sum(ys); }", lambda n, m: (
        between(n, m), 0 * both(n, m))[1]),
    Form("{ for (i in N:M) { if (i > 9) break; r += v[i]; } }", lambda n, m: (
        None if n > 9 else (need(n > m or (n >= 1 and (m <= 5))), total(range(n, m + 1)))[1])),
    Form("{ tuple(array[min(max(N, -3), 9)] real, vector[2]) t; r += p * size(t.1); }", lambda n, m: many(
        min(max(n, -3), 9))),
)  # fmt: skip

_GIVEN = """vector[5] v = p * [1, 2, 3, 4, 5]';
  matrix[5, 4] A = p * (rep_matrix([1, 2, 3, 4, 5]', 4) + rep_matrix([10, 20, 30, 40], 5));
  array[5] real xs = to_array_1d(v); array[5] int order = {1, 2, 3, 4, 5};
  array[3] vector[5] vs = rep_array(v, 3);
  tuple(array[5] real, array[3] vector[3]) pair = (xs, rep_array(rep_vector(p, 3), 3));"""


def _chain() -> str:
    lines = []
    for number, form in enumerate(FORMS):
        body = form.text if form.text.startswith("{") else f"r += {form.text};"
        lines.append(f"if (which == {number}) {{ {body} }}")
    return "\n  else ".join(lines)


PROGRAM = f"""functions {{
  real f(vector w) {{ return w[1] + w[num_elements(w)]; }}
  real all_forms(real p, int which, int N, int M) {{
  real r = 0; {_GIVEN}
  {_chain()}
  return r; }}
}}
data {{ int which; int N; int M; int late; }}
parameters {{ real p; }}
model {{ profile("forms") {{ if (!late) target += all_forms(p, which, N, M); }} target += -p^2 / 2; }}
generated quantities {{ real q = late ? all_forms(p, which, N, M) : 0; }}
"""
"""`late`: the form is evaluated in generated quantities, else in the model."""

SIZES = (-(2**31), -1, 0, 1, 2, 3, 5, 6, 65536, 2**31 - 1)
SWEEP = (
    ("gradient", 0, 10_000), ("gradient", 3, 10_000), ("late", 0, 10_000), ("late", 3, 2000), ("hessian", 0, 2000),
    ("optimize", 3, 300), ("gradient", 4, 50),
)  # fmt: skip
"""Ways to evaluate, levels, and of how many cases at most: at level 4 each is compiled anew."""


def expected(case: dict[str, object]) -> float | None:
    """The value of a form, as a multiple of p; raises Wrong."""
    return FORMS[int(str(case["which"]))].rule(int(str(case["N"])), int(str(case["M"])))


def is_fast(case: dict[str, object]) -> bool:
    """Whether nothing of hundreds of megabytes is made, or loops run for long: a size that only memory limits."""
    makers = ("rep_", "ones_", "zeros_", "linspaced_", "one_hot_")
    if not any(maker in FORMS[int(str(case["which"]))].text for maker in makers):
        return True
    n, m = (abs(int(str(case[name]))) for name in ("N", "M"))
    return max(n, m, n * m) <= LARGE


def run(case: dict[str, object]) -> dict[str, object]:
    """The outcome of one case: the value, or the error."""
    import numpy as np

    import ulam

    way, p = str(case["way"]), 0.5
    data = {**{name: case[name] for name in ("which", "N", "M")}, "late": int(way == "late")}
    try:
        model = ulam.StanModel(PROGRAM, data=data, opt_level=int(str(case["level"])))
        theta = np.array([p])
        if way == "late":
            return {"value": float(model.param_constrain(theta, include_gq=True, rng=model.new_rng(1))[1])}
        if way == "hessian":
            value, _, hessian = model.log_density_hessian(theta)
            return {"value": value + p * p / 2} if hessian[0, 0] == -1 else {"hessian": float(hessian[0, 0])}
        if way == "optimize":
            return {"value": p * float(model.optimize(init=theta).unconstrained[0])}
        value, gradient = model.log_density_gradient(theta)
        return {"value": value + p * p / 2, "slope": float(gradient[0]) + p}
    except ulam.UlamError as error:
        return {"error": str(error), "kind": type(error).__name__}


def main() -> None:
    """Reads cases from standard input, one per line."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
