"""Random Stan programs over a few scalars, vectors and a matrix: assignments of all kinds, loops, branches, functions.

Every assigned real passes through a bounded smooth function, so values stay moderate and derivatives exist wherever no
comparison of active values is close to equality.
"""

from __future__ import annotations

import random

SIZE = 3
_SCALARS = ("p", "q", "t")
_VECTORS = ("u", "v")
_BOUNDED = ("sin", "tanh", "atan", "cos")

_FRAME = """functions {{
  real bounded(real a, vector w) {{
    if (a > 0.4) return sin(a) * w[1];
    real s = a;
    for (i in 1:3) {{ if (w[i] > 0.9) break; s = s * w[i] + 0.3; }}
    return tanh(s);
  }}
  vector mixed(vector w, real a) {{
    vector[3] z = w;
    z[2] = sin(z[1] * a);
    for (i in 2:3) z[i] += 0.5 * z[i - 1];
    return z;
  }}
}}
data {{ vector[3] x; array[4] int idx; real c; }}
parameters {{ real a; real b; vector[3] th; matrix[3, 3] M; }}
model {{
  real p = a; real q = c; real t = 0.5;
  vector[3] u = th; vector[3] v = x; matrix[3, 3] W = M;
  array[2] vector[3] A = {{th, x}};
{body}
  target += p * q + t + sum(u) + dot_product(v, v) + sum(W .* M) + sum(A[1]) - sum(square(A[2]));
}}
"""
DATA = {"x": [0.3, -0.7, 0.6], "idx": [2, 3, 1, 2], "c": 0.4}


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

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def new_name(self, prefix: str) -> str:
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    # ------------------------------------------------------------ expressions

    def index(self) -> str:
        """An int from 1 to 3."""
        if self.loops and self.chance(0.6):
            name = self.random.choice(self.loops)
            return self.pick(name, f"4 - {name}", f"idx[{name}]", f"({name} % 3) + 1")
        return self.pick("1", "2", "3", "idx[4]")

    def scalar(self, depth: int = 2) -> str:
        if depth == 0 or self.chance(0.2):
            return self.pick(*_SCALARS, "a", "b", "c", "0.7", f"th[{self.index()}]", f"u[{self.index()}]", f"v[{self.index()}]",
                             f"W[{self.index()}, {self.index()}]", f"x[{self.index()}]", f"A[{self.pick('1', '2')}, {self.index()}]",
                             *(f"{name} * 0.2" for name in self.loops))  # fmt: skip
        left, right = self.scalar(depth - 1), self.scalar(depth - 1)
        return self.pick(
            f"({left} + {right})", f"({left} - {right})", f"{left} * {right}", f"{self.pick(*_BOUNDED)}({left})",
            f"{left} / (2 + square({right}))", f"dot_product({self.vector(0)}, {self.vector(0)})", f"sum({self.vector(1)})",
            f"({self.condition()} ? {left} : {right})", f"bounded({left}, {self.vector(1)})", f"log_sum_exp({left}, {right})",
            f"fmax({left}, {right})", f"W[{self.index()}] * {self.vector(0)}",
        )  # fmt: skip

    def vector(self, depth: int = 1) -> str:
        if depth == 0 or self.chance(0.3):
            return self.pick("u", "v", "th", "x", f"W[, {self.index()}]", f"W[{self.index()}]'", "v[idx[1:3]]", "A[1]", "A[2]", f"A[{self.pick('1', '2')}]")
        left, right = self.vector(depth - 1), self.vector(depth - 1)
        return self.pick(
            f"({left} + {right})", f"{left} .* {right}", f"sin({left})", f"({self.scalar(1)} * {left})", "W * u", f"mixed({left}, {self.scalar(1)})",
            f"(0.3 * W * {left})", f"[{self.scalar(1)}, {self.scalar(0)}, 0.1]'", f"append_row({left}[1:2], {self.scalar(0)})", f"reverse({left})",
            f"({left} - {self.scalar(0)})", f"cumulative_sum({left})", f"rep_vector({self.scalar(1)}, 3)",
        )  # fmt: skip

    def condition(self) -> str:
        left = self.pick(*_SCALARS, "a", f"u[{self.index()}]", f"th[{self.index()}]", f"x[{self.index()}]")
        simple = f"{left} {self.pick('<', '>')} {self.pick('0.11', '-0.23', 'b', 'v[1]')}"
        if self.loops and self.chance(0.3):
            simple = f"{self.random.choice(self.loops)} {self.pick('<', '>', '==')} 2"
        return f"({simple} {self.pick('&&', '||')} {self.pick('q', 't')} < 0.37)" if self.chance(0.2) else simple

    # ------------------------------------------------------------ statements

    def statements(self, count: int, depth: int, *, in_loop: bool = False) -> str:
        return "\n".join(self.statement(depth, in_loop) for _ in range(count))

    def statement(self, depth: int, in_loop: bool) -> str:
        self.budget -= 1
        pad = "  " * depth
        if self.budget > 0 and depth < 4 and self.chance(0.45):
            return self.compound(depth, in_loop)
        i, j = self.index(), self.index()
        return pad + self.pick(
            f"{self.pick(*_SCALARS)} = sin({self.scalar()});", f"{self.pick(*_SCALARS)} = 0.7 * tanh({self.scalar()});",
            f"{self.pick(*_SCALARS)} += 0.3 * cos({self.scalar()});", f"{self.pick(*_VECTORS)} = sin({self.vector()});",
            f"{self.pick(*_VECTORS)}[{i}] = sin({self.scalar()});", f"{self.pick(*_VECTORS)}[{i}] *= cos({self.scalar()});",
            f"{self.pick(*_VECTORS)}[1:2] = tanh({self.vector()}[2:3]);", f"{self.pick(*_VECTORS)}[{{3, 1}}] = sin({self.vector()})[idx[2:3]];",
            f"W[{i}, {j}] = sin({self.scalar()});", f"W[{i}] = tanh({self.vector()})';", f"W[, {j}] = sin({self.vector()});",
            "W = tanh(W * M');", f"W[1:2, 2:3] = W[2:3, {self.pick('1:2', '{3, 1}')}];", f"W = sin(W + {self.scalar(1)});",
            f"target += {self.scalar()};", f"target += sin({self.vector()});", f"{self.scalar(0)} ~ normal({self.scalar(0)}, 1.5);",
            f"x ~ normal({self.vector()}, exp({self.scalar(0)}));", "v = u;", "u = v;", "q = p;", "t = 1;", "v = x;",
            f"A[{self.pick('1', '2')}] = sin({self.vector()});", f"A[{self.pick('1', '2')}, {i}] = sin({self.scalar()});", "A[1] = A[2];", "A = {v, u};",
        )  # fmt: skip

    def compound(self, depth: int, in_loop: bool) -> str:
        pad = "  " * depth
        kind = self.pick("for", "for", "if", "if", "else", "while", "while", "block", "foreach", "exit")
        count = self.random.randint(1, 3)
        if kind == "for":
            name = self.new_name("i")
            bounds = self.pick("1:3", "2:3", "1:1", "3:2", f"{self.loops[-1]}:3" if self.loops else "1:3")
            self.loops.append(name)
            body = self.statements(count, depth + 1, in_loop=True)
            self.loops.pop()
            return f"{pad}for ({name} in {bounds}) {{\n{body}\n{pad}}}"
        if kind == "foreach":
            name = self.new_name("e")
            container = self.pick("u", "v", "x", "W", "A[1]")
            body = self.statements(count, depth + 1, in_loop=True)
            return f"{pad}for ({name} in {container}) {{\n{pad}  p = sin(p + {name} * {self.scalar(1)});\n{body}\n{pad}}}"
        if kind == "while":
            name = self.new_name("k")
            # The counter advances first, so that `continue` cannot run forever.
            stop = self.pick(f"{name} < 3", f"{name} < 2", f"{name} < 4 && q < 0.77", f"{name} < 3 && sum(u) < 1.3")
            body = self.statements(count, depth + 1, in_loop=True)
            return f"{pad}{{ int {name} = 0;\n{pad}while ({stop}) {{\n{pad}  {name} += 1;\n{body}\n{pad}}} }}"
        if kind == "block":
            name = self.new_name("z")
            body = self.statements(count, depth + 1, in_loop=in_loop)
            return f"{pad}{{ vector[3] {name} = {self.vector()};\n{body}\n{pad}  {name}[2] = t; p = sin(dot_product({name}, {self.vector(0)})); }}"
        if kind == "exit":
            if not in_loop:
                return f"{pad}p = sin({self.scalar()});"
            return f"{pad}if ({self.condition()}) {{\n{self.statements(1, depth + 1)}\n{pad}  {self.pick('break', 'continue')};\n{pad}}}"
        then = self.statements(count, depth + 1, in_loop=in_loop)
        text = f"{pad}if ({self.condition()}) {{\n{then}\n{pad}}}"
        if kind == "else":
            text += f" else {{\n{self.statements(1, depth + 1, in_loop=in_loop)}\n{pad}}}"
        return text


def random_program(seed: int) -> str:
    """A program, always the same for a seed."""
    return Generator(seed).program()
