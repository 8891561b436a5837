"""Programs of any length that repeat one thing, for measuring how the time of passes and of compiling grows."""

from __future__ import annotations

from collections.abc import Callable


def targets(n: int) -> str:
    """`n` increments of the target."""
    lines = [f"data {{ vector[{n}] y; }}", "parameters { real mu; real<lower=0> s; }", "model {"]
    return "\n".join([*lines, *(f"  target += normal_lpdf(y[{k}] | mu * {k}, s);" for k in range(1, n + 1)), "}\n"])


def branches(n: int) -> str:
    """`n` branches, each assigning what the next one reads."""
    lines = ["data { int N; }", "parameters { vector[3] theta; }", "model {", "  real x = theta[1];", "  int k = 0;"]
    for k in range(1, n + 1):
        lines += [f"  if (N > {k}) {{", f"    x = x * 0.5 + {k};", "    k += 1;", "  } else if (theta[2] > x) {"]
        lines += ["    x = theta[3] - x;", "  } else {", "    target += -x;", "  }"]
    return "\n".join([*lines, "  target += -square(x) - k;", "}\n"])


def nests(n: int) -> str:
    """`n` nests of loops and branches, 12 deep."""
    lines = ["data { int N; vector[N] y; }", "parameters { real a; }", "model {", "  real x = a;", "  int k;"]
    for number in range(1, n + 1):
        depth = 12
        for level in range(depth):
            indent = "  " * (level + 1)
            opening = (f"for (i{level} in 1:N) {{", f"if (x > {number} + {level}) {{", "while (x < k) {")[level % 3]
            lines.append(f"{indent}{opening}")
        lines.append(f"{'  ' * (depth + 1)}x = x * y[i0] + a * {number};")
        lines += ["  " * level + "}" for level in range(depth, 0, -1)]
        lines.append(f"  k = {number};")
    return "\n".join([*lines, "  target += -x;", "}\n"])


def calls(n: int) -> str:
    """`n` calls of one function with a loop, a branch and two ways out."""
    lines = ["functions {", "  real f(real x, int n) {", "    real y = x;", "    for (i in 1:n) {", "      y += y * i;"]
    lines += ["      if (y > 10) {", "        return y;", "      }", "    }", "    return -y;", "  }", "}"]
    lines += ["parameters { real x; }", "model {"]
    return "\n".join([*lines, *(f"  target += f(x * {k}, {k % 5 + 2});" for k in range(n)), "}\n"])


def declarations(n: int) -> str:
    """`n` variables of the model, every other one with a size."""
    lines = ["data { int N; }", "parameters { real a; }", "model {"]
    lines += [f"  real x{k} = a * {k};" if k % 2 else f"  vector[N] v{k} = rep_vector(a, N);" for k in range(n)]
    return "\n".join([*lines, f"  target += x{(n - 2) | 1};", "}\n"])


def assignments(n: int) -> str:
    """`n` assignments to a few variables, each of what others have."""
    lines = ["parameters { vector[4] theta; }", "model {", "  real x = theta[1];", "  real y = theta[2];"]
    lines.append("  real z = 1;")
    steps = ("x = y * {k} - z;", "y += x * theta[3];", "z = x - y / {k};")
    lines += ["  " + steps[k % 3].format(k=k + 1) for k in range(n)]
    return "\n".join([*lines, "  target += -square(x) - y - z;", "}\n"])


def indexing(n: int) -> str:
    """`n` assignments of elements and slices by elements and slices."""
    lines = ["data { int N; array[N] int g; matrix[N, N] A; }", "parameters { vector[N] b; }", "model {"]
    lines.append("  vector[N] v = b;")
    steps = ("v[{k}] = b[g[{k}]] * A[{k}, 1];", "v[1:{k}] = b[1:{k}] + v[1:{k}];", "v[g] = A[, {k}];")
    lines += ["  " + steps[k % 3].format(k=k + 1) for k in range(n)]
    return "\n".join([*lines, "  target += -dot_self(v);", "}\n"])


def profile_blocks(n: int) -> str:
    """`n` profile blocks with a density each."""
    lines = ["data { int N; vector[N] y; }", "parameters { real a; real<lower=0> s; }", "model {"]
    for k in range(n):
        lines += [f'  profile("p{k}") {{', f"    y ~ normal(a * {k}, s);", "  }"]
    return "\n".join([*lines, "}\n"])


def literals(n: int) -> str:
    """`n` lines of numbers: arrays, vectors and matrices of 20 each."""
    lines = ["transformed data {"]
    for k in range(n):
        numbers = ", ".join(f"{k}.{i}" for i in range(20))
        lines.append(f"  array[20] real x{k} = {{{numbers}}};" if k % 2 else f"  row_vector[20] x{k} = [{numbers}];")
    total = " + ".join(f"sum(x{k})" for k in range(0, n, max(1, n // 20)))
    return "\n".join([*lines, "}", "parameters { real a; }", f"model {{ a ~ normal({total}, 1); }}\n"])


def straight_line(n: int) -> str:
    """`n` assignments, each of values before it."""
    lines = ["parameters { vector[4] theta; }", "model {", "  real x0 = theta[1];"]
    for k in range(1, n + 1):
        lines.append(f"  real x{k} = x{k - 1} * theta[{k % 4 + 1}] + {k}.5 - exp(-square(x{max(0, k - 3)}));")
    return "\n".join([*lines, f"  target += x{n} - dot_self(theta);", "}\n"])


def loops(n: int) -> str:
    """`n` loops over data, every other one with a range of its own."""
    lines = ["data { int N; array[N] int M; vector[N] y; }", "parameters { vector[N] theta; real a; }", "model {"]
    for k in range(1, n + 1):
        upper = "N" if k % 2 else f"M[{k}]"
        lines.append(f"  for (i in 1:{upper}) {{")
        lines.append(f"    target += -square(y[i] - a * theta[i] - {k}.0);\n  }}")
    return "\n".join([*lines, "}\n"])


def densities(n: int) -> str:
    """`n` vectorised `~` statements of different families."""
    kinds = (
        "y{k} ~ normal(a * y1, s);", "y{k} ~ student_t(4, a, s);", "y{k} ~ cauchy(a, s);", "y{k} ~ logistic(a, s);",
        "y{k} ~ double_exponential(a, s);",
    )  # fmt: skip
    data = " ".join(f"vector[N] y{k};" for k in range(1, n + 1))
    lines = [f"data {{ int N; {data} }}", "parameters { real a; real<lower=0> s; }", "model {"]
    lines += ["  " + kinds[k % len(kinds)].format(k=k) for k in range(1, n + 1)]
    return "\n".join([*lines, "}\n"])


def functions(n: int) -> str:
    """`n` functions, each of which calls the one before it, once."""
    lines = ["functions {", "  real f0(real x) { return x; }"]
    for k in range(1, n + 1):
        lines.append(f"  real f{k}(real x) {{\n    real y = x * {k}.5;\n    return log1p_exp(f{k - 1}(y) + x);\n  }}")
    return "\n".join([*lines, "}", "parameters { real x; }", "model {", f"  target += -f{n}(x);", "}\n"])


def mixed(n: int) -> str:
    """`n` loops in 7.5 `n` lines: transformed parameters, containers written in loops, densities, branches."""
    lines = ["data { int N; vector[N] y; array[N] int<lower=1> g; }", "parameters { vector[N] b; real<lower=0> s; }"]
    lines += ["transformed parameters {", "  vector[N] m0 = b;"]
    half = n // 2
    for k in range(1, half + 1):
        lines += [f"  vector[N] m{k};", "  for (i in 1:N) {", f"    real z = m{k - 1}[i] * s;"]
        lines += [f"    z += {k}.0 * y[i];", f"    m{k}[i] = z / (1 + square(z));", "  }", ""]
    lines += ["}", "model {"]
    for k in range(half + 1, n + 1):
        lines += [
            "  for (i in 2:N) {",
            f"    if (g[i] > {k}) {{",
            f"      target += normal_lpdf(y[i] | m{half}[i], s);",
        ]
        lines += ["    } else {", f"      target += -square(b[i - 1] - m{min(k - half, half)}[i]);", "    }", "  }"]
        lines.append(f"  b ~ normal({k}, s);")
    return "\n".join([*lines, "}\n"])


def vectors(n: int) -> str:
    """`n` transformed parameters, vectors, each of the one before it."""
    lines = ["data { int N; vector[N] y; }", "parameters { vector[N] v0; }", "transformed parameters {"]
    steps = ("{v} .* y", "exp(-square({v}))", "{v} + {k} * v0", "cumulative_sum({v})")
    lines += [f"  vector[N] v{k} = {steps[k % 4].format(v=f'v{k - 1}', k=k)};" for k in range(1, n + 1)]
    return "\n".join([*lines, "}", f"model {{ y ~ normal(v{n}, 1); v0 ~ std_normal(); }}\n"])


def callers(n: int) -> str:
    """`n` functions, each of which calls three of those before it."""
    lines = ["functions {", "  real f0(real x) { return x; }"]
    for k in range(1, n + 1):
        called = " + ".join(f"f{j}({k}.5 * x)" for j in sorted({k - 1, k // 2, k // 3}))
        lines.append(f"  real f{k}(real x) {{ return tanh({called}); }}")
    return "\n".join([*lines, "}", "parameters { real x; }", "model {", f"  target += -f{n}(x);", "}\n"])


def depths(n: int) -> str:
    """Expressions in one another on `n` lines, 50 in each statement."""
    lines = ["parameters { vector[4] theta; }", "model {", "  real x = theta[1];"]
    while n > 0:
        depth = min(n, 50)
        lines += [f"  {'x = ' * (k == 0)}log1p_exp({k + 1}.5 * theta[{k % 4 + 1}] - (" for k in range(depth)]
        lines[-1] += f"x{'))' * depth};"
        n -= depth
    return "\n".join([*lines, "  target += -square(x);", "}\n"])


def blocks(n: int) -> str:
    """Blocks, branches and loops in one another on `n` lines, 25 in each."""
    lines = ["data { int N; }", "parameters { vector[4] theta; }", "model {", "  real x = theta[1];"]
    while n > 0:
        depth = min(n, 25)
        opening = ("{{ real x{k} = theta[2];", "if (x > {k}) {{", "for (i{k} in 1:N) {{")
        lines += ["  " + opening[k % 3].format(k=k) for k in range(depth)]
        lines[-1] += f" x += square(theta[3]) * x0; {'}' * depth}"
        n -= depth
    return "\n".join([*lines, "  target += -square(x);", "}\n"])


def loop_body(n: int) -> str:
    """A loop of `n` statements."""
    lines = ["data { int N; vector[N] y; matrix[N, 4] X; }", "parameters { vector[4] b; real<lower=0> s; }", "model {"]
    lines += ["  for (i in 1:N) {", "    real mu = b[1];"]
    steps = ("mu += X[i, {j}] * b[{j}] * {k};", "y[i] ~ normal(mu, s);", "target += -square(mu - {k});")
    lines += ["    " + steps[k % 3].format(k=k, j=k % 4 + 1) for k in range(n)]
    return "\n".join([*lines, "  }", "}\n"])


def sums(n: int) -> str:
    """One increment of the target by a sum of `n` terms."""
    lines = ["data { vector[10] y; }", "parameters { vector[10] a; real<lower=0> s; }", "model {", "  target += 0"]
    terms = ("- square(a[{j}] - {k})", "+ normal_lpdf(y[{j}] | a[{j}], s)", "- {k} * s * a[{j}]")
    lines += ["    " + terms[k % 3].format(k=k, j=k % 10 + 1) for k in range(n)]
    return "\n".join([*lines, "  ;", "}\n"])


def matrices(n: int) -> str:
    """`n` matrices of 2 by 2, each of products and sums of those before it."""
    lines = ["parameters { vector[4] a; }", "model {", "  matrix[2, 2] m0 = [[a[1], a[2]], [a[3], a[4]]];"]
    steps = ("m{j} * m0", "m{j}' + {k} * m0", "[[m{j}[1, 1], 0], [a[2], {k}]]", "m{j} .* m0 - {k}")
    lines += [f"  matrix[2, 2] m{k} = {steps[k % 4].format(j=k - 1, k=k)};" for k in range(1, n + 1)]
    return "\n".join([*lines, f"  target += -sum(m{n} .* m{n});", "}\n"])


def draws(n: int) -> str:
    """`n` quantities that are drawn."""
    lines = ["data { int N; }", "parameters { real a; real<lower=0> s; }", "model { a ~ std_normal(); }"]
    lines.append("generated quantities {")
    kinds = (
        "real q{k} = normal_rng(a, s);",
        "int q{k} = poisson_rng(s);",
        "array[N] real q{k} = normal_rng(rep_vector(a, N), s);",
        "real q{k} = exponential_rng(s) + {k};",
    )
    lines += ["  " + kinds[k % len(kinds)].format(k=k) for k in range(n)]
    return "\n".join([*lines, "}\n"])


def tables(n: int) -> str:
    """A literal of an array of `n` arrays, a line each."""
    rows = ",\n".join(f"    {{{k}.5, {k % 7}, -{k}, 1e-{k % 9}}}" for k in range(n))
    lines = ["transformed data {", f"  array[{n}, 4] real x = {{\n{rows}\n  }};", "}", "parameters { real a; }"]
    return "\n".join([*lines, "model { a ~ normal(sum(x[1]), 1); }\n"])


KINDS: dict[str, Callable[[int], str]] = {
    "targets": targets,
    "branches": branches,
    "nests": nests,
    "calls": calls,
    "declarations": declarations,
    "assignments": assignments,
    "indexing": indexing,
    "profile-blocks": profile_blocks,
    "literals": literals,
    "straight-line": straight_line,
    "loops": loops,
    "densities": densities,
    "functions": functions,
    "mixed": mixed,
    "vectors": vectors,
    "callers": callers,
    "depths": depths,
    "blocks": blocks,
    "loop-body": loop_body,
    "sums": sums,
    "matrices": matrices,
    "draws": draws,
    "tables": tables,
}
"""By name: a program of `n` times the same."""


def program_of(kind: str, lines: int) -> str:
    """A program of about `lines` lines."""
    make = KINDS[kind]
    short, long = (make(n).count("\n") for n in (8, 16))
    per_unit = (long - short) / 8
    return make(max(1, round((lines - short) / per_unit) + 8))
