"""Random well-typed Stan programs of all blocks, for translation validation.

    text = generate(seed)          # always the same for a seed
    model = StanModel(text, DATA)

A table of forms for each type: `<real>` stands for any expression of that type, `<:real>` for a variable that may be
assigned. Statements know their scope; local names come from a small pool, so that sibling scopes use the same name for
other types. Assigned numbers pass through bounded functions and stay moderate. Programs print, draw, reject, leave
loops and functions early, and have what passes look for: dead code, copies, constants, common and invariant
expressions, loops that unroll or vectorise, compositions with accurate forms.
"""

# ruff: noqa: E501  (Stan text in tables)
from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

DATA = {
    "N": 3, "K": 2, "x": [0.3, -0.7, 0.6], "y": [1, 0, 1], "idx": [2, 3, 1], "c": 0.4,
    "A": [[0.5, -0.2, 0.1], [0.3, 0.8, -0.6], [-0.1, 0.4, 0.7]],
    "items": 60, "bit": [0, 1, 1] * 20, "dose": [0.5, -0.25, 0.0, 1.5] * 15, "grp": [1, 2, 2, 3, 1] * 12, "far": [5, 1, 60] * 20,
    "own": [0.01 * k * k for k in range(60)], "won": [[k % 2, int(k % 3 == 0), 1] for k in range(60)],
}  # fmt: skip
_DATA_BLOCK = "data {\n  int N;\n  int K;\n  vector[N] x;\n  array[N] int y;\n  array[N] int idx;\n  real c;\n  matrix[N, N] A;\n"
_DATA_BLOCK += "  int items;\n  array[items] int bit;\n  vector[items] dose;\n  array[items] int grp;\n  array[items] int far;\n  vector[items] own;\n  array[items, 3] int won;\n}\n"


# ---------------------------------------------------------------- expressions

_FORMS: dict[str, Sequence[str]] = {
    "real": (
        "(<real> + <real>)", "(<real> - <real>)", "(<real> * <real>)", "(-<real>)", "(<real> * <real> + <real>)", "(<real> / (2 + square(<real>)))",
        "sin(<real>)", "tanh(<real>)", "atan(<real>)", "square(<real>)", "(<real> ^ 2)", "(<positive> ^ 0.5)", "pow(<positive>, 2)", "sqrt(<positive>)",
        "inv(<positive>)", "(1 / sqrt(<positive>))", "inv(sqrt(<positive>))", "log(<positive>)", "log(1 - <unit>)", "log(1 + <positive>)", "(exp(<unit>) - 1)",
        "log(1 + exp(<bounded>))", "log(exp(<bounded>) + exp(<bounded>))", "log(1 - exp(-<positive>))", "log(inv_logit(<real>))", "log(1 - inv_logit(<real>))",
        "(log(<unit>) - log(1 - <unit>))", "(1 - erf(<real>))", "log_sum_exp(<real>, <real>)", "log_mix(<unit>, <real>, <real>)", "fmax(<real>, <real>)",
        "abs(<real>)", "(<bool> ? <real> : <real>)", "(<bool> ? <real> : <real>)", "dot_product(<vector>, <vector>)", "dot_self(<vector>)", "sum(<vector> .* <vector>)",
        "(<row> * <vector>)", "sum(<vector>)", "mean(<vector>)", "log_sum_exp(<vector>)", "sum(<matrix>)", "trace(<matrix>)", "sum(<reals>)", "(<int> * <real>)",
        "(<real> + 0)", "(1 * <real>)", "(<real> * 0.5)", "(<vector>)[<index>]", "(<matrix>)[<index>, <index>]", "(<vector>)[2:3][<half>]", "lgamma(<positive>)",
        "normal_lpdf(<real> | <real>, <positive>)", "Phi(<real>)", "inv_logit(<real>)", "<tuple>.1", "fma(<real>, <real>, <real>)", "quad_form(<matrix>, <vector>)",
        "max({<real>, <real>})", "<call:real>", "<call:real>", "<call:real>", "<call:real>",
    ),
    "positive": ("(0.5 + square(<real>))", "exp(<bounded>)", "(1 + abs(tanh(<real>)))", "1.3", "2", "(0.2 + <unit>)"),
    "unit": ("inv_logit(<real>)", "(0.5 + 0.4 * sin(<real>))", "0.3", "inv_logit(-<real>)"),
    "bounded": ("sin(<real>)", "tanh(<real>)", "0.4", "-0.7"),
    "int": (
        "(<int> + <int>)", "(<int> - <int>)", "(<int> * <int>)", "(<int> %/% 2)", "(<int> % 3)", "(<int> %/% (1 + abs(<int>)))", "(<bool> ? <int> : <int>)",
        "min({<int>, <int>})", "abs(<int>)", "size(<ints>)", "num_elements(<vector>)", "rows(<matrix>)", "(-<int>)", "(<int> * <int> + <int>)", "(<ints>)[<index>]",
        "(<real> > <real>)", "sum(<ints>)", "(<int> == <int>)", "<pair>.2", "<call:int>", "<call:int>",
    ),
    "bool": (
        "(<real> < 0.11)", "(<real> > -0.23)", "(<real> < <real>)", "(<int> == 2)", "(<int> > <int>)", "(<index> < 2)", "(<bool> && <bool>)", "(<bool> || <bool>)",
        "!(<bool>)", "N > 2", "K == 2", "1", "0", "(<int> != 0)", "(<real> >= 0.05)",
    ),
    "index": ("1", "2", "3", "N", "K", "idx[<index>]", "(1 + abs(<int>) % 3)", "min({3, max({1, <int>})})", "(K + 1)", "(4 - <index>)"),
    "half": ("1", "2", "K", "(1 + <int> * 0)"),
    "vector": (
        "(<vector> + <vector>)", "(<vector> - <vector>)", "(<vector> .* <vector>)", "(<real> * <vector>)", "(<vector> / <positive>)", "(<matrix> * <vector>)",
        "(<row>)'", "sin(<vector>)", "exp(sin(<vector>))", "[<real>, <real>, <real>]'", "rep_vector(<real>, 3)", "(<vector>)[idx]", "(<vector>)[{3, 1, 2}]",
        "append_row((<vector>)[1:2], <real>)", "append_row((<vector>)[2:], <real>)", "append_row(<real>, (<vector>)[:2])", "(<matrix>)[, <index>]", "(<matrix>)[<index>]'",
        "to_vector(<reals>)", "cumulative_sum(<vector>)", "reverse(<vector>)", "(<bool> ? <vector> : <vector>)", "(<vector> + <real>)", "(<real> - <vector>)",
        "softmax(<vector>)", "log1p(square(<vector>))", "log(1 + exp(sin(<vector>)))", "diagonal(<matrix>)", "(<vector> ./ (2 + square(<vector>)))",
        "((<matrix>)' * <vector>)", "(-<vector>)", "(<vectors>)[<half>]", "(diag_matrix(<vector>) * <vector>)", "(<vector>)[1:3]", "<pair>.1", "<call:vector>", "<call:vector>",
    ),
    "row": ("(<vector>)'", "(<matrix>)[<index>]", "(<row> + <row>)", "(<real> * <row>)", "(<row> * <matrix>)", "[<real>, <real>, <real>]"),
    "matrix": (
        "(<matrix>)'", "(<matrix> * <matrix>)", "(<matrix> + <matrix>)", "(<matrix> .* <matrix>)", "(<real> * <matrix>)", "(<vector> * <row>)", "diag_matrix(<vector>)",
        "diag_pre_multiply(<vector>, <matrix>)", "tcrossprod(<matrix>)", "add_diag(<matrix>, <real>)", "tanh(<matrix>)", "(<matrix> + <real>)", "(<matrix>)[idx]",
        "(<matrix>)[{2, 1, 3}, {1, 3, 2}]", "[<row>, <row>, <row>]", "rep_matrix(<real>, 3, 3)", "(<matrix>)[1:3, 1:3]", "append_col(<vector>, (<matrix>)[, 1:2])",
    ),
    "ints": ("{<int>, <int>, <int>}", "(<ints>)[idx]", "reverse(<ints>)", "sort_asc(<ints>)", "rep_array(<int>, 3)", "(<ints>)[1:3]"),
    "reals": ("{<real>, <real>, <real>}", "to_array_1d(<vector>)", "(<reals>)[idx]", "rep_array(<real>, 3)"),
    "vectors": ("{<vector>, <vector>}", "(<vectors>)[{2, 1}]", "rep_array(<vector>, 2)"),
    "tuple": ("(<real>, <int>)", "(<real>, <int>)"),
    "pair": ("(<vector>, <int>)",),
}  # fmt: skip
_LEAVES: dict[str, Sequence[str]] = {
    "real": ("0.7", "-0.4", "1", "2", "0.25", "c", "x[<index>]"),
    "int": ("0", "1", "2", "3", "N", "K", "idx[<index>]", "y[<index>]"),
    "vector": ("x", "x", "rep_vector(0.3, 3)"),
    "row": ("x'",),
    "matrix": ("A",),
    "ints": ("idx", "y", "{3, 2, 1}"),
    "reals": ("{0.1, 0.2, -0.3}", "to_array_1d(x)"),
    "vectors": ("{x, x}",),
    "tuple": ("(0.3, 2)",),
    "pair": ("(x, 1)",),
    "index": ("1", "2", "3"),
    "half": ("1", "2"),
    "bool": ("0", "1", "N > 2", "c < 0.5", "K == 3"),
    "positive": ("1.3", "0.8"),
    "unit": ("0.3", "0.6"),
    "bounded": ("0.4", "-0.7"),
}  # fmt: skip
# Elements of variables in scope are leaves, too.
_ELEMENTS = {
    "real": (("vector", "[<index>]"), ("matrix", "[<index>, <index>]"), ("reals", "[<index>]"), ("vectors", "[<half>, <index>]"), ("tuple", ".1")),
    "int": (("ints", "[<index>]"), ("tuple", ".2"), ("pair", ".2")),
    "vector": (("matrix", "[, <index>]"), ("vectors", "[<half>]"), ("pair", ".1")),
    "row": (("matrix", "[<index>]"),),
}  # fmt: skip
_DRAWS = {
    "real": ("normal_rng(<real>, <positive>)", "uniform_rng(0, <positive>)", "beta_rng(2, <positive>)", "exponential_rng(<positive>)"),
    "int": ("bernoulli_rng(<unit>)", "poisson_rng(<positive>)", "binomial_rng(4, <unit>)", "categorical_rng(softmax(<vector>))"),
    "vector": ("to_vector(normal_rng(<vector>, <positive>))",),
    "reals": ("normal_rng(<vector>, 0.5)",),
}  # fmt: skip

# ---------------------------------------------------------------- statements

_SIZED = {
    "int": "int {}", "real": "real {}", "vector": "vector[<size>] {}", "row": "row_vector[<size>] {}", "matrix": "matrix[<size>, <size>] {}", "ints": "array[<size>] int {}",
    "reals": "array[<size>] real {}", "vectors": "array[2] vector[<size>] {}", "tuple": "tuple(real, int) {}", "pair": "tuple(vector[<size>], int) {}",
}  # fmt: skip
_UNSIZED = {
    "int": "int", "real": "real", "vector": "vector", "row": "row_vector", "matrix": "matrix", "ints": "array[] int", "reals": "array[] real",
    "vectors": "array[] vector", "tuple": "tuple(real, int)", "pair": "tuple(vector, int)",
}  # fmt: skip
# What a variable is assigned: bounded, so that loops do not let it grow.
_ASSIGNED = {
    "int": ("(<int>) % 7", "<int> % 5", "<int>", "3", "(<int>) %/% 2"),
    "real": ("sin(<real>)", "0.7 * tanh(<real>)", "<unit>", "sin(<real>) * <unit>", "0.5"),
    "vector": ("sin(<vector>)", "tanh(<vector>)", "softmax(<vector>)"),
    "row": ("sin(<row>)", "tanh(<row>)"),
    "matrix": ("sin(<matrix>)", "tanh(<matrix>)"),
    "ints": ("{(<int>) % 3, <int> % 4, 2}", "idx", "sort_asc({<int> % 5, 1, 2})"),
    "reals": ("sin(<reals>)", "{sin(<real>), 0.1, tanh(<real>)}"),
    "vectors": ("{sin(<vector>), tanh(<vector>)}",),
    "tuple": ("(sin(<real>), <int> % 5)",),
    "pair": ("(tanh(<vector>), <int> % 5)",),
}  # fmt: skip
_STATEMENTS = (
    "<:real> = <=real>;", "<:real> = <=real>;", "<:real> += 0.3 * cos(<real>);", "<:real> *= cos(<real>);", "<:int> = <=int>;", "<:int> += <index>;",
    "<:vector> = <=vector>;", "<:vector>[<at>] = <=real>;", "<:vector>[<at>] += 0.2 * sin(<real>);", "<:vector>[1:2] = sin((<vector>)[2:3]);", "<:vector>[{3, 1}] = tanh(<vector>)[idx[2:3]];",
    "<:vector>[idx] = sin(<vector>);", "<:matrix> = <=matrix>;", "<:matrix>[<at>, <at>] = <=real>;", "<:matrix>[<at>] = <=row>;", "<:matrix>[, <at>] = <=vector>;",
    "<:matrix>[1:2, 2:3] = tanh(<matrix>)[2:3, {3, 1}];", "<:ints>[<at>] = <int> % 4;", "<:ints> = <=ints>;", "<:reals>[<at>] = <=real>;", "<:reals> = <=reals>;",
    "<:row> = <=row>;", "<:row>[<at>] = <=real>;", "<:vectors>[<side>] = <=vector>;", "<:vectors>[<side>, <at>] = <=real>;", "<:tuple> = <=tuple>;", "<:pair> = <=pair>;",
    "<:vector> = <vector?>;", "<:real> = <real?>;", "<:matrix> = <matrix?>;", "<:int> = <int?>;", "<:real> = 0.5;", "<:int> = 2;",
    "for (<new> in 1:3) <:vector>[<new>] = sin(<real> + (<vector>)[<new>]);", "for (<new> in 1:N) <:vector>[<new>] += 0.1 * x[<new>] * sin(<real>);",
    "for (<new> in 1:N) <:vector>[<new>] = tanh((<vector?>)[idx[<new>]] * x[<new>]);", "for (<new> in 1:N) { <:real> += 0.1 * sin(<real>); <:vector>[<new>] = <=real>; }",
    "for (<new> in 1:3) for (<newer> in 1:3) <:matrix>[<new>, <newer>] = sin(<real> + <new> - <newer>);", "for (<new> in 1:N) <:ints>[<new>] = (<new> * <int>) % 5;",
    "for (<new> in <vector>) <:real> = sin(<:real> + <new>);", "for (<new> in <ints>) <:int> += <new> % 3;", "for (<new> in <matrix>) <:real> = sin(<:real> + <new>);",
)  # fmt: skip
_PRINTS = (
    'print("<word> ", <real>);',
    'print("<word> ", <int>, " ", <vector>);',
    "print(<matrix>);",
    'print("<word>");',
    'print(<ints>, " ", <reals>);',
    "print(<:real>);",
)
_TARGETS = (
    "target += <real>;", "target += sin(<vector>);", "x ~ normal(<vector>, <positive>);", "<vector> ~ normal(<real>, <positive>);", "<real> ~ normal(<real>, <positive>);",
    "y ~ bernoulli_logit(<vector>);", "y ~ bernoulli_logit(A * <vector> + <real>);", "y ~ bernoulli_logit(<real> + A * <vector>);", "x ~ normal(A * <vector> + <real>, <positive>);",
    "y ~ poisson_log(A * <vector> + <real>);", "y ~ bernoulli(inv_logit(<vector>));", "y ~ poisson(exp(sin(<vector>)));", "for (<new> in 1:N) y[<new>] ~ bernoulli_logit(<real> + x[<new>] * <real>);",
    # rows of data: equal ones, all different ones, branches and indices that are data
    "for (<new> in 1:items) target += -0.1 * square((<vector>)[grp[<new>]] - dose[<new>]);", "bit ~ bernoulli_logit(<real> + <real> * dose);",
    "for (<new> in 1:items) { if (bit[<new>] == 1) target += log1p_exp(<real> * dose[<new>]); else target += -square(own[<new>] - <real>) * 0.1; }",
    "for (<new> in 1:items) bit[<new>] ~ bernoulli_logit(<real> + (<vector>)[grp[<new>]] * dose[<new>]);", "for (<new> in 1:items) target += 0.1 * sin(own[far[<new>]] * <real> + bit[<new>]);",
    "for (<new> in 1:items) { real mu = 0; for (<newer> in 1:3) mu += won[<new>, <newer>] ? log(<unit>) : <real>; target += 0.1 * log_sum_exp(mu, <real>); }",
    "for (<new> in 1:items) for (<newer> in 1:3) won[<new>, <newer>] ~ bernoulli_logit(<real> + 0.5 * dose[<new>]);", "for (<new> in 2:items) target += 0.1 * tanh(<real> * dose[<new> - 1] - dose[<new>]);",
    # ternaries and chains of different distributions, and weights
    "for (<new> in 1:items) target += bit[<new>] == 1 ? normal_lpdf(dose[<new>] | <real>, <positive>) : logistic_lccdf(dose[<new>] | <real>, <positive>);",
    "for (<new> in 1:items) target += 0.2 * (grp[<new>] == 1 ? cauchy_lpdf(own[<new>] | <real>, <positive>) : grp[<new>] == 2 ? lognormal_lpdf(1 + own[<new>] | <real>, <positive>) : normal_lcdf(dose[<new>] | <real>, <positive>));",
    "for (<new> in 1:items) { if (grp[<new>] == 1) dose[<new>] ~ normal((<vector>)[grp[<new>]], <positive>); else if (bit[<new>] == 1) target += student_t_lpdf(dose[<new>] | 3, <real>, <positive>); else bit[<new>] ~ bernoulli_logit(<real>); }",
    "for (<new> in 1:items) target += own[<new>] * normal_lpdf(dose[<new>] | <real> + <real> * dose[<new>], <positive>) * 0.05;",
    "for (<new> in 1:items) target += (dose[<new>] > 0.2 ? exponential_lpdf(own[<new>] | <positive>) : <real>) + (bit[<new>] ? poisson_log_lpmf(grp[<new>] | <unit>) : 0.0);",
    "for (<new> in 1:N) x[<new>] ~ normal(<real> + <real> * x[<new>], <positive>);", "for (<new> in 1:N) target += normal_lpdf(x[<new>] | (<vector?>)[idx[<new>]], <positive>);",
    "for (<new> in 1:N) target += normal_lupdf((<vector>)[<new>] | <real>, <positive>);", "for (<new> in 1:3) { real mu = <real> * x[<new>]; mu += sin(<real>); x[<new>] ~ normal(mu, <positive>); }",
    "target += student_t_lpdf(x | 4, <vector>, <positive>);", "x ~ cauchy(<vector>, <positive>);", "<positive> ~ gamma(2, <positive>);", "<unit> ~ beta(2, <positive>);",
    "x ~ multi_normal(<vector>, add_diag(tcrossprod(<matrix>), 3));", "<real> ~ normal(0, 2) T[-50, ];", "target += normal_lpdf(<vector> | 0, 1) + <real>;", "<call:void>;", "<call:void>;",
    "x ~ mine(<real>);", "target += mine_lpdf(<vector> | <real>);", "target += mine_lupdf(<vector> | <real>);", "y ~ binomial(3, <unit>);", "y ~ binomial_logit(3, <vector>);",
    "for (<new> in 1:N) { if (y[<new>] == 1) target += log_inv_logit(<real>); else target += log1m_inv_logit(<real>); }", "y[<index>] ~ categorical(softmax(<vector>)[{1, 2, 3}]);",
    "target += log_mix(<unit>, normal_lpdf(<real> | 0, 1), normal_lpdf(<real> | <real>, <positive>));", "for (<new> in 1:N) y[<new>] ~ poisson_log((<vector?>)[<new>] + <real>);",
)  # fmt: skip
_TARGETS = tuple(text.replace("y[<index>] ~ categorical", "idx[<index>] ~ categorical") for text in _TARGETS)
_HAZARDS = (
    'if (<real> > 0.93) reject("<word> ", <real>);', "if (<bool> && <real> > 0.8) <:real> = x[<int> + 4];", "if (<real> < -0.95) { <:int> = <int> %/% (<int> * 0); }",
    'if (<int> > 6) fatal_error("<word> ", <int>);', "if (<real> > 0.9) { vector[3] bad = x[1:2]; <:real> = bad[1]; }", 'if (<int> == 4 && <real> > 0) reject("<word>");',
    "{ array[3] int at = <ints>; if (<real> > 0.7) <:real> = x[at[1] + 3]; }", "if (<real> > 0.85) <:real> = sum(cholesky_decompose(-<matrix>));",
)  # fmt: skip
_LP_STATEMENTS = (
    "target += <real>;", "target += sin(<vector>);", "<vector> ~ normal(<real>, <positive>);", "<real> ~ normal(<real>, <positive>);", "<unit> ~ beta(2, <positive>);",
    "<real> ~ cauchy(<real>, <positive>);", "<call:void>;",
)  # fmt: skip
_COMPOUND = (
    "for",
    "for",
    "foreach",
    "while",
    "while",
    "if",
    "if else",
    "else",
    "block",
    "block",
    "profile",
    "exit",
    "exit",
    "return",
)
_BOUNDS = (
    "1:3",
    "1:N",
    "2:3",
    "1:1",
    "3:2",
    "1:K",
    "K:N",
    "1:<index>",
    "<index>:3",
    "<index>:<index>",
    "1:size(<ints>)",
)
_REAL_TYPES = ("real", "real", "vector", "vector", "row", "matrix", "reals", "vectors")
_OUTPUT_TYPES = ("int", "int", "ints", *_REAL_TYPES)
_PARAMETERS = (
    ("real", "real", "a"), ("real", "real", "b"), ("vector", "vector[N]", "th"), ("matrix", "matrix[N, N]", "M"), ("real", "real<lower=0>", "s"),
    ("vector", "simplex[3]", "sx"), ("vectors", "array[2] vector[3]", "av"), ("real", "real<lower=a, upper=a + 2>", "lu"),
)  # fmt: skip

_FIXED_FUNCTIONS = """  real rec(real u, int n) {
    if (n <= 0 || n > 3) return sin(u);
    real w = 0.5 * rec(cos(u), n - 1);
    return w + rec(u, n - 2);
  }
  int over(int n) {
    <maybe print>
    if (n > 5) return n - 1;
    return n + 1;
  }
  real over(real u) {
    real v = tanh(u);
    while (v < 1) {
      v += 0.4;
      if (v > 0.7) return v;
    }
    return -v;
  }
  real mine_lpdf(vector w, real u) {
    real v = 0;
    for (i in 1:num_elements(w)) v += cauchy_lupdf(w[i] | u, 1 + square(u));
    return v;
  }
"""
# Functions see no data: those that a function names are its own.
_OWN_DATA = (
    ("N", "int N = 3;"), ("K", "int K = 2;"), ("x", "vector[3] x = [0.3, -0.7, 0.6]';"), ("y", "array[3] int y = {1, 0, 1};"),
    ("idx", "array[3] int idx = {2, 3, 1};"), ("c", "real c = 0.4;"), ("A", "matrix[3, 3] A = [[0.5, -0.2, 0.1], [0.3, 0.8, -0.6], [-0.1, 0.4, 0.7]];"),
)  # fmt: skip
_PLACEHOLDER = re.compile(r"<([a-z:=?]+)>")
_WORDS = ("alpha", "beta", "gamma", "delta")
_NAMES = tuple("fghklmpqrtuvwz") + ("u1", "w2", "z3", "t4")


def _loop_body(form: str, mark: str) -> range:
    """Where the index of a form's loop over `1:n` can be used: up to the end of the statement behind its head."""
    head = form.find(f"(<{mark}> in 1:")
    if head < 0:
        return range(0)
    depth, start = 0, form.index(")", head)
    for place in range(start, len(form)):
        depth += {"{": 1, "}": -1}.get(form[place], 0)
        if depth == 0 and form[place] in ";}":
            return range(start, place)
    return range(start, len(form))


class _NothingFits(Exception):
    """A form needs a variable that there is none of."""


@dataclass(frozen=True)
class _Function:
    name: str
    result: str  # a type, or "void"
    arguments: tuple[str, ...]
    kind: str = ""  # lp, rng


_FIXED_SIGNATURES = (
    _Function("rec", "real", ("real", "int")),
    _Function("over", "int", ("int",)),
    _Function("over", "real", ("real",)),
)


@dataclass
class _Scope:
    """Variables by type: what can be read, and what can be assigned."""

    readable: list[tuple[str, str]] = field(default_factory=list)
    assignable: list[tuple[str, str]] = field(default_factory=list)
    reused: list[tuple[str, str]] = field(default_factory=list)
    """Expressions, by type, that may come again."""


@dataclass(frozen=True)
class _Context:
    """Where a statement stands."""

    target: bool = False
    draws: bool = False
    result: str = ""  # of a function: what it returns; empty in a block
    loop: bool = False
    depth: int = 1


class ProgramGenerator:
    """Writes one program. Its tables are attributes: `structured_programs` has larger ones."""

    data_block = _DATA_BLOCK
    own_data = _OWN_DATA
    forms: Mapping[str, Sequence[str]] = _FORMS
    leaves: Mapping[str, Sequence[str]] = _LEAVES
    elements: Mapping[str, Sequence[tuple[str, str]]] = _ELEMENTS
    sized: Mapping[str, str] = _SIZED
    unsized: Mapping[str, str] = _UNSIZED
    assigned: Mapping[str, Sequence[str]] = _ASSIGNED
    statements: Sequence[str] = _STATEMENTS
    prints: Sequence[str] = _PRINTS
    targets: Sequence[str] = _TARGETS
    real_types: Sequence[str] = _REAL_TYPES
    output_types: Sequence[str] = _OUTPUT_TYPES
    given_parameters: Sequence[tuple[str, str, str]] = _PARAMETERS
    results: Sequence[str] = ("real", "real", "vector", "int", "void")
    argument_types: Sequence[str] = ("real", "int", "vector", "ints", "matrix")
    looped: Sequence[tuple[str, str]] = (("vector", "real"), ("ints", "int"), ("matrix", "real"), ("vectors", "vector"))

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.scopes: list[_Scope] = [_Scope()]
        self.functions: list[_Function] = []
        self.context = _Context()
        self.budget = 0
        self.inner_names: list[str] = []  # loop variables of the form that is being filled
        self.loop_indices: list[str] = []  # loop variables that surely are valid indices
        self.sizes = ("3", "N") if seed % 3 else ("N",)

    # ------------------------------------------------------------ whole programs

    def program(self) -> str:
        functions = [_FIXED_FUNCTIONS.replace("<maybe print>", self.random.choice(("", 'print("over ", n);')))]
        self.functions += _FIXED_SIGNATURES
        functions += [self.function(number) for number in range(self.random.randint(1, 3))]
        blocks = [
            "functions {\n" + "".join(functions) + "}\n",
            self.data_block,
            self.block("transformed data", _Context(draws=True), 1, 3),
            self.parameters(),
            self.block("transformed parameters", _Context(), 1, 3),
            self.model(),
            self.block("generated quantities", _Context(draws=True), 2, 4),
        ]
        return "".join(blocks)

    def parameters(self) -> str:
        chosen = [*self.given_parameters[:4], *(entry for entry in self.given_parameters[4:] if self.random.random() < 0.4)]
        self.scopes[0].readable += [(type_, name) for type_, _, name in chosen]
        return "parameters {\n" + "".join(f"  {sized} {name};\n" for _, sized, name in chosen) + "}\n"

    def block(self, name: str, context: _Context, least: int, most: int) -> str:
        """A block of declarations and statements; its variables stay visible, but not assignable."""
        self.context = context
        self.budget = self.random.randint(2, 7)
        prefix = "".join(word[0] for word in name.split())
        lines: list[str] = []
        for number in range(self.random.randint(least, most)):
            types = self.output_types if name != "transformed parameters" else self.real_types
            lines.append(self.declaration(self.random.choice(types), f"{prefix}{number}"))
            if self.random.random() < 0.5:
                lines.append(self.statement())
        lines += [self.statement() for _ in range(self.random.randint(1, 3))]
        self.scopes[0].assignable.clear()
        self.scopes[0].reused.clear()
        return name + " {\n" + "".join(lines) + "}\n"

    def model(self) -> str:
        self.context = _Context(target=True)
        self.budget = self.random.randint(6, 13)
        body = self.body(self.random.randint(3, 6))
        # Whatever the rest does, the density depends on the parameters.
        return "model {\n" + body + "  th ~ normal(0, 2);\n  target += -square(a) - 0.5 * square(b) + sum(sin(M));\n}\n"

    # ------------------------------------------------------------ functions

    def function(self, number: int) -> str:
        """A function that may call those before it."""
        result = self.random.choice(self.results)
        kind = "lp" if result == "void" else self.random.choice(("", "", "", "rng", "lp"))
        if kind == "lp" and result not in ("real", "void"):
            kind = ""
        name = f"fn{number}" + (f"_{kind}" if kind else "")
        types = [self.random.choice(self.argument_types) for _ in range(self.random.randint(1, 3))]
        arguments = [(type_, f"arg{position}") for position, type_ in enumerate(types)]
        outer, self.scopes = self.scopes, [_Scope(readable=arguments)]
        self.context = _Context(target=kind == "lp", draws=kind == "rng", result=result, depth=2)
        self.budget = self.random.randint(1, 5)
        body = self.body(self.random.randint(1, 3), leave=True)
        self.scopes = outer
        self.functions.append(_Function(name, result, tuple(types), kind))
        used = "".join(f"    {line}\n" for word, line in self.own_data if re.search(rf"\b{word}\b", body))
        declared = ", ".join(f"{self.unsized[type_]} {argument}" for type_, argument in arguments)
        return f"  {'void' if result == 'void' else self.unsized[result]} {name}({declared}) {{\n{used}{body}  }}\n"

    def return_statement(self) -> str:
        result = self.context.result
        return self.line("return;" if result == "void" else f"return {self.fill(f'<={result}>', 2)};")

    def call(self, result: str, depth: int) -> str:
        """A call of a function that may be called here."""
        allowed = {"", "rng" if self.context.draws else "", "lp" if self.context.target else ""}
        found = [f for f in self.functions if f.result == result and f.kind in allowed]
        if not found:
            raise _NothingFits
        function = self.random.choice(found)
        return f"{function.name}({', '.join(self.choose(type_, depth - 1) for type_ in function.arguments)})"

    # ------------------------------------------------------------ expressions

    def fill(self, form: str, depth: int) -> str:
        """A form with its placeholders replaced."""
        news: dict[str, str] = {}
        before = len(self.inner_names), len(self.loop_indices)
        for mark in ("new", "newer"):
            if f"<{mark}>" in form:
                news[mark] = self.new_name()
                self.inner_names.append(news[mark])
        bodies = {name: _loop_body(form, mark) for mark, name in news.items()}

        def put_in(match: re.Match[str]) -> str:
            self.loop_indices[before[1] :] = [name for name, body in bodies.items() if match.start() in body]
            return news.get(match[1]) or self.choose(match[1], depth)

        try:
            return _PLACEHOLDER.sub(put_in, form)
        finally:
            del self.inner_names[before[0] :], self.loop_indices[before[1] :]

    def choose(self, mark: str, depth: int) -> str:
        """What a placeholder stands for."""
        if mark.startswith(":"):
            return self.random.choice(self.assignable(mark[1:]))
        if mark.startswith("="):
            return self.fill(self.random.choice(self.assigned[mark[1:]]), depth)
        if mark.endswith("?"):
            return self.random.choice(self.readable(mark[:-1]) or [self.leaf(mark[:-1])])
        if mark.startswith("call:"):
            return self.call(mark[5:], depth)
        if mark in ("size", "word"):
            return self.random.choice(self.sizes if mark == "size" else _WORDS)
        if mark in ("at", "side"):  # an index on the left, which must not read what is assigned
            return self.leaf("index" if mark == "at" else "half")
        return self.expression(mark, depth)

    def expression(self, type_: str, depth: int) -> str:
        seen = [text for scope in self.scopes for kind, text in scope.reused if kind == type_]
        if seen and self.random.random() < 0.15:
            return self.random.choice(seen)
        if depth <= 0 or self.random.random() < 0.25:
            return self.leaf(type_)
        forms = self.forms[type_]
        if self.context.draws and self.random.random() < 0.15:
            forms = _DRAWS.get(type_, forms)
        for _ in range(10):
            try:
                text = self.fill(self.random.choice(forms), depth - 1)
            except _NothingFits:
                continue
            if not self.inner_names and "_rng(" not in text and "_lp(" not in text:
                self.scopes[-1].reused.append((type_, text))
            return text
        return self.leaf(type_)

    def leaf(self, type_: str) -> str:
        """A variable, an element of one, or a constant."""
        if type_ == "index" and self.loop_indices and self.random.random() < 0.6:
            return self.random.choice(self.loop_indices)
        names = self.readable(type_)
        elements = [name + part for kind, part in self.elements.get(type_, ()) for name in self.readable(kind)]
        chance = self.random.random()
        if names and chance < 0.6:
            return self.random.choice(names)
        if elements and chance < 0.8:
            return self.fill(self.random.choice(elements), 0)
        return self.fill(self.random.choice(self.leaves[type_]), 0)

    def readable(self, type_: str) -> list[str]:
        return [name for scope in self.scopes for kind, name in scope.readable if kind == type_]

    def assignable(self, type_: str) -> list[str]:
        found = [name for scope in self.scopes for kind, name in scope.assignable if kind == type_]
        if not found:
            raise _NothingFits
        return found

    def new_name(self) -> str:
        """A name that is not visible; siblings of this scope may have it."""
        taken = {name for scope in self.scopes for _, name in scope.readable} | {*self.inner_names, *self.loop_indices}
        return self.random.choice([name for name in _NAMES if name not in taken])

    # ------------------------------------------------------------ statements

    def line(self, text: str) -> str:
        return "  " * self.context.depth + text + "\n"

    def body(self, count: int, first: str = "", *, leave: bool = False) -> str:
        """Statements in a scope of their own; with `leave`, a return at the end."""
        self.scopes.append(_Scope())
        text = first + "".join(self.statement() for _ in range(count))
        if leave:
            text += self.return_statement()
        self.scopes.pop()
        return text

    def inner(self, count: int, *, loop: bool | None = None, first: str = "", leave: bool = False) -> str:
        """The body of a compound statement."""
        outer = self.context
        self.context = replace(outer, depth=outer.depth + 1, loop=outer.loop if loop is None else loop)
        text = self.body(count, first, leave=leave)
        self.context = outer
        return text

    def declaration(self, type_: str, name: str) -> str:
        """A variable with a value, or with one assigned in the next statement."""
        value = self.fill(f"<={type_}>", 3)
        declared = self.fill(self.sized[type_].format(name), 0)
        for kinds in (self.scopes[-1].readable, self.scopes[-1].assignable):
            kinds.append((type_, name))
        if self.random.random() < 0.2:
            return self.line(f"{declared};") + self.line(f"{name} = {value};")
        return self.line(f"{declared} = {value};")

    def statement(self) -> str:
        self.budget -= 1
        if self.budget > 0 and self.context.depth < 5 and self.random.random() < 0.45:
            return self.compound()
        is_local = len(self.scopes) > 1
        for _ in range(20):
            chance = self.random.random()
            if chance < 0.2 and is_local:
                return self.declaration(self.random.choice(list(self.sized)), self.new_name())
            table = self.statements
            if chance < 0.28:
                table = self.prints
            elif chance < 0.33:
                table = _HAZARDS
            elif chance < 0.7 and self.context.target:
                table = _LP_STATEMENTS if self.context.result else self.targets
            try:
                return self.line(self.fill(self.random.choice(table), 3))
            except _NothingFits:
                continue
        return self.line("{ real dead = 1; }")

    def compound(self) -> str:
        kind = self.random.choice(_COMPOUND)
        count = self.random.randint(1, 3)
        condition = self.expression("bool", 2)
        if kind == "for":
            return self.for_loop(count)
        if kind == "foreach":
            type_, element = self.random.choice(self.looped)
            name = self.new_name()
            head = self.fill(f"for ({name} in <{type_}>)", 1)
            return self.line(head + " {") + self.loop(count, (element, name)) + self.line("}")
        if kind == "while":
            name = self.new_name()
            stop = self.fill(
                self.random.choice((f"{name} < 3", f"{name} < 2", f"{name} < 4 && <bool>", f"(<bool>) && {name} < 3")),
                1,
            )
            # The counter advances first, so that `continue` cannot run forever.
            first = "  " * (self.context.depth + 1) + f"{name} += 1;\n"
            head = self.line(f"{{ int {name} = 0; while ({stop}) {{")
            return head + self.loop(count, ("int", name), first) + self.line("} }")
        if kind == "block":
            return self.line("{") + self.inner(count) + self.line("}")
        if kind == "profile":
            return self.line(f'profile("{self.random.choice(_WORDS)}") {{') + self.inner(count) + self.line("}")
        if kind == "exit" and self.context.loop:
            leave = self.line("  " + self.random.choice(("break;", "continue;")))
            return self.line(f"if ({condition}) {{") + self.inner(1) + leave + self.line("}")
        if kind in ("exit", "return") and self.context.result:
            return self.line(f"if ({condition}) {{") + self.inner(1, leave=True) + self.line("}")
        text = self.line(f"if ({condition}) {{") + self.inner(count)
        if kind == "else":
            text += self.line(f"}} else if ({self.expression('bool', 1)}) {{") + self.inner(1)
        if kind in ("else", "if else"):
            text += self.line("} else {") + self.inner(1)
        return text + self.line("}")

    def for_loop(self, count: int) -> str:
        name = self.new_name()
        bounds = self.fill(self.random.choice(_BOUNDS), 1)
        is_index = bounds in ("1:3", "1:N", "2:3", "1:1", "1:K", "K:N")
        if is_index:
            self.loop_indices.append(name)
        text = self.line(f"for ({name} in {bounds}) {{") + self.loop(count, ("int", name)) + self.line("}")
        if is_index:
            self.loop_indices.remove(name)
        return text

    def loop(self, count: int, variable: tuple[str, str], first: str = "") -> str:
        """The body of a loop over a variable."""
        self.scopes.append(_Scope(readable=[variable]))
        text = self.inner(count, loop=True, first=first)
        self.scopes.pop()
        return text


def generate(seed: int) -> str:
    """A program, always the same for a seed."""
    return ProgramGenerator(seed).program()
