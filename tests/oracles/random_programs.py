"""Random Stan programs over a few scalars, vectors and a matrix: assignments of all kinds, loops, branches, functions.

Every assigned real passes through a bounded smooth function, so values stay moderate and derivatives exist wherever no
comparison of active values is close to equality.
"""

# ruff: noqa: E501  (Stan text in tables)
from __future__ import annotations

import random
import re
from collections.abc import Sequence

_FRAME = """functions {{
  real bounded(real a, vector w) {{
    if (a > 0.4) return sin(a) * w[1];
    real s = a;
    for (i in 1:num_elements(w)) {{ if (w[i] > 0.9) break; s = s * w[i] + 0.3; }}
    return tanh(s);
  }}
  vector mixed(vector w, real a) {{
    vector[3] z = w;
    z[2] = sin(z[1] * a);
    for (i in 2:num_elements(w)) z[i] += 0.5 * z[i - 1];
    return z;
  }}
  void add_lp(vector w, real a) {{ w ~ normal(a, 1.2); for (i in 1:2) target += w[i] * a; }}
  real mine_lpdf(vector w, real a) {{ real s = 0; for (i in 1:num_elements(w)) s += cauchy_lupdf(w[i] | a, 1 + square(a)); return s; }}
}}
data {{ int N; vector[N] x; array[4] int idx; real c; }}
parameters {{ real a; real b; vector[3] th; matrix[3, 3] M; }}
model {{
  real p = a; real q = c; real t = 0.5;
  vector[3] u = th; vector[3] v = x; matrix[3, 3] W = M;
  array[2] vector[3] A = {{th, x}};
{body}
  target += p * q + t + sum(u) + dot_product(v, v) + sum(W .* M) + sum(A[1]) - sum(square(A[2]));
}}
"""
DATA = {"N": 3, "x": [0.3, -0.7, 0.6], "idx": [2, 3, 1, 2], "c": 0.4}


# What a placeholder may become: `<index>`, `<scalar>` and `<vector>` (one level less deep), `<s>` and `<v>` (leaves), ...
_SCALAR_LEAVES = (
    "p", "q", "t", "a", "b", "c", "0.7", "th[<index>]", "u[<index>]", "v[<index>]", "W[<index>, <index>]", "x[<index>]",
    "A[<half>, <index>]", "<loop> * 0.2",
)  # fmt: skip
_SCALAR_FORMS = (
    "(<scalar> + <scalar>)", "(<scalar> - <scalar>)", "<scalar> * <scalar>", "sin(<scalar>)", "tanh(<scalar>)", "atan(<scalar>)",
    "<scalar> / (2 + square(<scalar>))", "dot_product(<v>, <v>)", "sum(<vector>)", "(<condition> ? <scalar> : <scalar>)",
    "bounded(<scalar>, <vector>)", "log_sum_exp(<scalar>, <scalar>)", "fmax(<scalar>, <scalar>)", "(W[<index>] * <v>)",
)  # fmt: skip
_VECTOR_LEAVES = ("u", "v", "th", "x", "W[, <index>]", "W[<index>]'", "v[idx[1:3]]", "A[1]", "A[2]", "A[<half>]")
_VECTOR_FORMS = (
    "(<vector> + <vector>)", "<vector> .* <vector>", "sin(<vector>)", "(<scalar> * <vector>)", "(W * u)", "mixed(<vector>, <scalar>)",
    "(0.3 * W * <vector>)", "[<scalar>, <s>, 0.1]'", "append_row((<vector>)[1:2], <s>)", "reverse(<vector>)", "(<vector> - <s>)",
    "cumulative_sum(<vector>)", "rep_vector(<scalar>, 3)",
)  # fmt: skip
_CONDITIONS = (
    "<compared> < 0.11", "<compared> > -0.23", "<compared> < b", "<compared> > v[1]", "<loop> < 2", "<loop> == 2",
    "(<condition> && t < 0.37)", "(q > 0.3 || <condition>)",
)  # fmt: skip
_STATEMENTS = (
    "<name> = sin(<expression>);", "<name> = 0.7 * tanh(<expression>);", "<name> += 0.3 * cos(<expression>);", "<names> = sin(<vectors>);",
    "<names>[<index>] = sin(<expression>);", "<names>[<index>] *= cos(<expression>);", "<names>[1:2] = tanh((<vectors>)[2:3]);",
    "<names>[{3, 1}] = sin(<vectors>)[idx[2:3]];", "W[<index>, <index>] = sin(<expression>);", "W[<index>] = tanh(<vectors>)';",
    "W[, <index>] = sin(<vectors>);", "W = tanh(W * M');", "W[1:2, 2:3] = W[2:3, 1:2];", "W[1:2, 2:3] = W[2:3, {3, 1}];", "W = sin(W + <scalar>);",
    "target += <expression>;", "target += sin(<vectors>);", "<s> ~ normal(<s>, 1.5);", "x ~ normal(<vectors>, exp(<s>));", "v = u;", "u = v;",
    "q = p;", "t = 1;", "u ~ normal(<vectors>, 2);", "for (n in 1:3) for (m in 1:n) target += normal_lpdf(x[n] * <s> | u[m] * <s>, exp(v[n]));",
    "for (n in 1:3) { vector[2] lp = [<expression>, <s>]'; for (m in 1:2) lp[m] += normal_lpdf(x[n] | u[m], exp(<s>)); target += log_sum_exp(lp); }",
    "add_lp(<vectors>, <s>);", "target += mine_lupdf(<vectors> | <s>);", "x ~ mine(<expression>);", "v = x;", "A[<half>] = sin(<vectors>);", "A[<half>, <index>] = sin(<expression>);", "A[1] = A[2];", "A = {v, u};",
)  # fmt: skip
_PLACEHOLDER = re.compile(r"<([a-z]+)>")


class Generator:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loops: list[str] = []
        self.fresh = 0
        self.budget = 14

    def program(self) -> str:
        body = self.statements(self.random.randint(4, 8), 1)
        return _FRAME.format(body=body)

    def new_name(self, prefix: str) -> str:
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    def fill(self, template: str, depth: int) -> str:
        """Replaces the placeholders of a template."""
        return _PLACEHOLDER.sub(lambda match: self.choose(match.group(1), depth), template)

    def pick(self, choices: Sequence[str], depth: int = 2) -> str:
        return self.fill(self.random.choice(choices), depth)

    def choose(self, placeholder: str, depth: int) -> str:
        if placeholder in ("expression", "vectors"):
            return self.choose({"expression": "scalar", "vectors": "vector"}[placeholder], 3)
        if placeholder == "scalar":
            leaf = depth <= 1 or self.random.random() < 0.2
            return self.pick(_SCALAR_LEAVES if leaf else _SCALAR_FORMS, depth - 1)
        if placeholder == "vector":
            leaf = depth <= 1 or self.random.random() < 0.3
            return self.pick(_VECTOR_LEAVES if leaf else _VECTOR_FORMS, depth - 1)
        if placeholder == "condition":
            return self.pick(_CONDITIONS if depth > 0 else _CONDITIONS[:4], depth - 1)
        loop = self.random.choice(self.loops) if self.loops else self.random.choice("123")
        choices: dict[str, Sequence[str]] = {
            "s": _SCALAR_LEAVES,
            "v": _VECTOR_LEAVES,
            "name": ("p", "q", "t"),
            "names": ("u", "v"),
            "half": ("1", "2"),
            "loop": (loop,),
            "index": (loop, f"4 - {loop}", f"idx[{loop}]", f"({loop} % 3) + 1", "1", "2", "3"),
            "compared": ("p", "q", "t", "a", "u[<index>]", "th[<index>]", "x[<index>]"),
        }
        return self.pick(choices[placeholder], 0)

    # ------------------------------------------------------------ statements

    def statements(self, count: int, depth: int, *, in_loop: bool = False) -> str:
        return "\n".join(self.statement(depth, in_loop) for _ in range(count))

    def statement(self, depth: int, in_loop: bool) -> str:
        self.budget -= 1
        if self.budget > 0 and depth < 4 and self.random.random() < 0.45:
            return self.compound(depth, in_loop)
        return "  " * depth + self.pick(_STATEMENTS)

    def compound(self, depth: int, in_loop: bool) -> str:
        pad = "  " * depth
        kind = self.random.choice(("for", "for", "if", "if", "else", "while", "while", "block", "foreach", "exit"))
        count = self.random.randint(1, 3)
        if kind == "for":
            name = self.new_name("i")
            bounds = self.pick(("1:3", "2:3", "1:1", "3:2", "<loop>:3"))
            self.loops.append(name)
            body = self.statements(count, depth + 1, in_loop=True)
            self.loops.pop()
            return f"{pad}for ({name} in {bounds}) {{\n{body}\n{pad}}}"
        if kind == "foreach":
            name = self.new_name("e")
            head = f"for ({name} in {self.pick(('u', 'v', 'x', 'W', 'A[1]'))})"
            first = self.fill(f"p = sin(p + {name} * <scalar>);", 2)
            return f"{pad}{head} {{\n{pad}  {first}\n{self.statements(count, depth + 1, in_loop=True)}\n{pad}}}"
        if kind == "while":
            name = self.new_name("k")
            stop = self.pick((f"{name} < 3", f"{name} < 2", f"{name} < 4 && q < 0.77", f"{name} < 3 && sum(u) < 1.3"))
            # The counter advances first, so that `continue` cannot run forever.
            body = f"{pad}  {name} += 1;\n{self.statements(count, depth + 1, in_loop=True)}"
            return f"{pad}{{ int {name} = 0;\n{pad}while ({stop}) {{\n{body}\n{pad}}} }}"
        if kind == "block":
            name = self.new_name("z")
            body = self.statements(count, depth + 1, in_loop=in_loop)
            first = self.fill(f"vector[3] {name} = <vector>;", 2)
            last = self.fill(f"{name}[2] = t; p = sin(dot_product({name}, <v>));", 2)
            return f"{pad}{{ {first}\n{body}\n{pad}  {last} }}"
        condition = self.choose("condition", 2)
        if kind == "exit" and in_loop:
            leave = self.random.choice(("break", "continue"))
            return f"{pad}if ({condition}) {{\n{self.statements(1, depth + 1)}\n{pad}  {leave};\n{pad}}}"
        text = f"{pad}if ({condition}) {{\n{self.statements(count, depth + 1, in_loop=in_loop)}\n{pad}}}"
        if kind == "else":
            text += f" else {{\n{self.statements(1, depth + 1, in_loop=in_loop)}\n{pad}}}"
        return text


def random_program(seed: int) -> str:
    """A program, always the same for a seed. Odd seeds: sizes that are only known when data are bound."""
    text = Generator(seed).program()
    if seed % 2:
        text = text.replace("real b; vector[3] th; matrix[3, 3] M;", "real b; vector[N] th; matrix[N, N] M;")
        text = text.replace(
            "  vector[3] u = th; vector[3] v = x; matrix[3, 3] W", "  vector[N] u = th; vector[N] v = x; matrix[N, N] W"
        )
        text = (
            text.replace("array[2] vector[3] A", "array[2] vector[N] A")
            .replace("in 1:3)", "in 1:N)")
            .replace("in 2:3)", "in 2:N)")
        )
    return text
