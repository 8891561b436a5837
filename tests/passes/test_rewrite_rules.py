"""Every row of the table of rewrite rules: it can be read, is applied to its own pattern, and keeps the values.

Each pattern becomes statements of a program, one for each combination of types that Stan accepts. The program with
partial evaluation must do what it does without: bit for bit where the row says so.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from translation_validation import CLOSE, EXACT, Subject, compare
from xdsl.context import Context

from ulam.frontend.check.program import check_program
from ulam.frontend.diagnostics import DiagnosticError
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source
from ulam.library.terms import TableError
from ulam.passes.optimize.partial_evaluation import PartialEvaluation
from ulam.passes.optimize.rewrite_guards import compiled_rules
from ulam.passes.optimize.rewrite_table import RewriteRule, read_table, table
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

ROOT = Path(__file__).resolve().parents[2]
UNITS = ("gradient_propto", "constrain")
BOUNDS = {"u": "lower=0.6, upper=0.9", "x": "lower=0.5, upper=1"}
DECLARATIONS = {
    "real": "real<{bounds}> {name};",
    "vector": "vector<{bounds}>[3] {name};",
    "row_vector": "row_vector<{bounds}>[3] {name};",
    "matrix": "matrix<{bounds}>[3, 3] {name};",
    "array[] real": "array[3] real<{bounds}> {name};",
    "array[] vector": "array[2] vector<{bounds}>[3] {name};",
    "array[] row_vector": "array[2] row_vector<{bounds}>[3] {name};",
    "triangular": "cholesky_factor_cov[3] {name};",
}
SPECIAL = {("T", "matrix"): "cov_matrix[3] {name};", ("c", "vector"): "ordered[2] {name};"}
ONE_ENTRY = {"columns_dot_product(x_vector, x_vector)", "rows_dot_product(x_row_vector, x_row_vector)"}
LITERALS = {"c": "0.75", "d": "0.375"}
INT_LITERALS = {"c": "7", "d": "2"}
CHUNK = 8

# Cost no less than their patterns: they are steps to other rules, see the tests below.
STEPS = {
    "X * b - t -> -t + X * b",
    "1 / x -> inv(x)",
    "1 ./ s -> inv(s)",
    "!(i == j) -> i != j",
    "(i - c) - d -> i - (c + d)",
}


# ---------------------------------------------------------------- programs


def combinations(rule: RewriteRule) -> Iterator[dict[str, str]]:
    """Types for the names of a rule."""
    names = list(rule.guards)
    for types in product(*(rule.guards[name] for name in names)):
        yield dict(zip(names, types, strict=True))


def instance(rule: RewriteRule, types: dict[str, str]) -> str:
    """The pattern with a variable for each name."""
    literals = INT_LITERALS if "int" in types.values() else LITERALS

    def replaced(match: re.Match[str]) -> str:
        name = match[0]
        if name not in types:
            return name
        return literals[name] if types[name] == "literal" else variable(name, types[name])

    pattern = rule.text.partition(" -> ")[0]
    return re.sub(r"\b[A-Za-z]\w*\b(?!\()", replaced, pattern)


def variable(name: str, type_: str) -> str:
    return f"{name}_{re.sub(r'[^a-z_]', '', type_)}"


KINDS = {"int": "int", "real": "real", "vector[3]": "sum", "row_vector[3]": "sum", "matrix[3, 3]": "sum"}


class Writer:
    """A program of many patterns. `declared`: its variables, as (name, type)."""

    def __init__(self) -> None:
        self.declared: dict[tuple[str, str], None] = {}
        self.transformed: list[str] = []
        self.model: list[str] = []
        self.generated: list[str] = []

    def add(self, rule: RewriteRule, types: dict[str, str]) -> bool:
        """Adds a pattern with names of these types, if Stan accepts it."""
        text = instance(rule, types)
        alone = Writer()
        alone.declared.update(dict.fromkeys(types.items()))
        for kind in KINDS:
            alone.transformed = [f"{{ {kind} r = {text}; }}"]
            if accepted(alone.text()):
                break
        else:
            return False
        self.declared.update(alone.declared)
        if text in ONE_ENTRY:
            kind = kind.replace("3", "1")
        name = f"r{len(self.transformed) + len(self.generated)}"
        if kind == "int":
            self.generated.append(f"int {name} = {text};")
            return True
        self.transformed.append(f"{kind} {name} = {text};")
        self.model.append(f"target += p * {name};" if kind == "real" else f"target += p * sum({name});")
        if "_lpdf" in text or "_lpmf" in text:
            dropping = re.sub("_lp([dm]f)", r"_lup\1", text)
            self.model.append(f"target += {dropping};")
        return True

    def text(self) -> str:
        data, parameters = "", "real p; "
        for name, type_ in self.declared:
            target = variable(name, type_)
            if type_ == "int":
                data += f"int {target}; "
            elif type_ == "array[] int":
                data += f"array[3] int {target}; "
            elif type_ != "literal":
                form = SPECIAL.get((name, type_), DECLARATIONS[type_.removeprefix("data ")])
                declared = form.format(bounds=BOUNDS.get(name, "lower=0.1, upper=0.5"), name=target) + " "
                if type_.startswith("data "):
                    data += declared
                else:
                    parameters += declared
        blocks = {
            "data": [data], "parameters": [parameters], "transformed parameters": self.transformed,
            "model": self.model, "generated quantities": self.generated,
        }  # fmt: skip
        return "\n".join(f"{name} {{\n  {chr(10).join(body)}\n}}" for name, body in blocks.items())

    def data(self) -> dict[str, object]:
        values: dict[str, object] = {}
        for name, type_ in self.declared:
            number = 3 if name in ("n", "i") else 1
            if type_ == "int":
                values[variable(name, type_)] = number
            elif type_ == "array[] int":
                values[variable(name, type_)] = [number, number, number]
            elif type_ == "data real":
                values[variable(name, type_)] = 0.3
            elif type_.startswith("data "):
                values[variable(name, type_)] = [0.2, 0.3, 0.4]
        return values


def accepted(text: str) -> bool:
    source = Source(text, "model.stan")
    try:
        check_program(parse_program(source), source)
    except DiagnosticError:
        return False
    return True


def applied(text: str, *, preserve_numerics: bool = False) -> list[str]:
    """The rules that partial evaluation of a program applies."""
    module = Compiler(text, options=CompileOptions(0)).module
    with collect_remarks() as remarks:
        PartialEvaluation(preserve_numerics=preserve_numerics).apply(Context(), module)
    module.verify()
    return [remark.message for remark in remarks if remark.done]


# ---------------------------------------------------------------- the rows

CHUNKS = [
    (section.title, numerics, rules[start : start + CHUNK])
    for section in table().sections
    for numerics in (EXACT, CLOSE)
    for rules in [[r for r in section.rules if r.same_bits is (numerics == EXACT)]]
    for start in range(0, len(rules), CHUNK)
]


@pytest.mark.parametrize(
    ("numerics", "rules"), [c[1:] for c in CHUNKS], ids=[f"{c[0]}-{c[1]}-{n}" for n, c in enumerate(CHUNKS)]
)
def test_rows_keep_the_values(numerics: str, rules: list[RewriteRule]) -> None:
    program = Writer()
    for rule in rules:
        alone = Writer()
        written = [types for types in combinations(rule) if alone.add(rule, types)]
        assert written, f"no types fit: {rule.text}"
        found = applied(alone.text(), preserve_numerics=numerics == EXACT)
        assert rule.text in found or rule.text in STEPS, f"not applied: {rule.text}\n{alone.text()}"
        for types in written:
            program.add(rule, types)
    subject = Subject(program.text(), program.data(), points=2)
    pipeline = "partial-evaluation{preserve-numerics=true}" if numerics == EXACT else "partial-evaluation"
    comparison = subject.compare(pipeline, numerics, units=UNITS)
    assert comparison.changed
    assert not comparison.differences, "\n".join(comparison.differences) + program.text()
    assert not any(event.error for event in subject.expected(UNITS)), subject.expected(UNITS)


@pytest.mark.parametrize("rule", table().rules, ids=lambda rule: rule.text)
def test_classes_decide_where_a_rule_applies(rule: RewriteRule) -> None:
    assert (rule in allowed(preserve_numerics=True, retold=True)) is rule.same_bits
    assert (rule in allowed(preserve_numerics=False, retold=False)) is not rule.changes_texts


def allowed(*, preserve_numerics: bool, retold: bool) -> list[RewriteRule]:
    return [c.rule for rules in compiled_rules(preserve_numerics, retold).values() for c in rules]


def test_steps_lead_to_other_rules() -> None:
    program = """
      data { int n; int m; int N; matrix[N, 2] X; vector[N] y; }
      parameters { real x; vector[2] b; real<lower=0> s; }
      model {
        y ~ normal(X * b - x, s);
        target += 1 / sqrt(x);
        if (!(!(n != m))) target += x;
        for (i in 1:((n - 7) - 7 + 14)) target += x;
      }"""
    found = applied(program)
    assert "normal_lpdf(z | alpha + X * b, sigma) -> unchecked normal_id_glm_lpdf(z | X, alpha, b, sigma)" in found
    assert "inv(sqrt(x)) -> inv_sqrt(x)" in found


def test_near_misses_are_explained() -> None:
    program = """
      data { int N; matrix[N, 2] X; vector[N] y; array[N] real z; }
      parameters { vector[2] b; real<lower=0> s; }
      model {
        y[1] ~ normal(X[1] * b, s);
        z ~ normal(X * b, s);
      }
      generated quantities { real l = normal_lpdf(y | X * b, s); }"""
    module = Compiler(program, options=CompileOptions(0)).module
    with collect_remarks() as remarks:
        PartialEvaluation().apply(Context(), module)
    assert [r.message for r in remarks if not r.done] == [
        "the product is one of a row_vector and a vector, not of a matrix and a vector",
        "there is none for arguments (array[] real, vector, real) with this linear predictor",
        "in this block errors keep their texts",
    ]


# ---------------------------------------------------------------- what must not change

GOOD = {"N": 3, "M": 3, "y": [0, 1, 1], "X": [[1, 2], [3, 4], [5, 6]], "z": [1, 2, 3], "s": 1.0}
INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    "statement",
    [
        "y ~ bernoulli_logit(a + X * b);",
        "y ~ bernoulli(inv_logit(X * b));",
        "y ~ poisson_log(X * b);",
        "y ~ poisson(exp(a + X * b));",
        "y ~ neg_binomial_2_log(a + X * b, s);",
        "y ~ neg_binomial_2(exp(a + X * b), s);",
        "y ~ binomial(y, inv_logit(X * b));",
        "z ~ normal(a + X * b, s);",
        "y ~ ordered_logistic(X * b, [0, 1]');",
    ],
)
def test_errors_stay_errors(statement: str) -> None:
    """A density throws after the rewrite where it did before, and only there; the text is the program's own."""
    program = f"""
      data {{ int N; int M; array[N] int y; matrix[M, 2] X; vector[M] z; real s; }}
      parameters {{ vector[2] b; real a; }}
      model {{ {statement} }}"""
    for change in (
        {}, {"y": [0, -1, 1]}, {"y": [9, 1, 1]}, {"N": 2, "y": [1, 1]}, {"s": -1.0},
        {"X": [[1, 2], [NAN, 4], [5, 6]]}, {"X": [[1, INF], [3, 4], [5, 6]]}, {"X": [[1e308, 1e308], [3, 4], [5, 6]]},
        {"z": [INF, 1, 1]}, {"N": 0, "M": 0, "y": [], "X": [], "z": []},
    ):  # fmt: skip
        subject = Subject(program, {**GOOD, **change}, points=[[0.5, 0.25, 0.125], [900, 0, 0]])
        comparison = subject.compare("partial-evaluation", CLOSE, units=("gradient_propto",))
        # Values are compared where nothing overflows; elsewhere they may have become right.
        found = [text for text in comparison.differences if "error" in text or (not change and "point 0" in text)]
        assert comparison.changed and not found, (change, found)


R_PROGRAMS = {
    "R9": ("data { int n; } generated quantities { int z = n == 0 ? 0 : 1 %/% 0; }", {"n": 0}),
    "R10": (
        "data { vector[5] v; int i; } generated quantities { real a = v[1:2][i]; }",
        {"v": [1, 2, 3, 4, 5], "i": 3},
    ),
    "R11": (
        "data { matrix[2, 2] A; matrix[2, 2] B; } generated quantities { matrix[2, 2] C = A * log(B); }",
        {"A": [[1, 2], [3, 4]], "B": [[5, 6], [7, 8]]},
    ),
    "R12": (
        "generated quantities { array[2] real m = {1, 2}; "
        "real d = dot_product(to_vector(normal_rng(m, 1)), to_vector(normal_rng(m, 1))); }",
        {},
    ),
    "R13": ("generated quantities { real a = 0.0 / 0.0; real b = 1e308 * 10.0; real c = 1.0 / 0.0; }", {}),
    "R14": ("generated quantities { int a = 2147483647 + 1; int b = 100000 * 100000; }", {}),
    "R15": (
        "data { int a; int b; int c; } generated quantities { int d = a * b + c; int s = 0; "
        "for (i in 1:(a * b + c)) s += i; }",
        {"a": 46341, "b": 46341, "c": -2147479010},
    ),
    "R18": ("data { int n; } generated quantities { vector[2] v = [1, 2]'; real a = (v[n], 1.5).2; }", {"n": 3}),
    "R19": ("data { int n; real x; } generated quantities { real r = n * log(x); }", {"n": 0, "x": 0.0}),
    "R20": (
        "parameters { vector[3] b; } transformed parameters { real r = categorical_lpmf(2 | softmax(b)); } "
        "generated quantities { vector[2] a = [1, -1]'; real q = categorical_lpmf(1 | inv_logit(a)); }",
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("program", "data"), R_PROGRAMS.values(), ids=list(R_PROGRAMS))
@pytest.mark.parametrize("pipeline", ["partial-evaluation", "partial-evaluation{preserve-numerics=true}"])
def test_miscompilations_of_the_reference_compiler(program: str, data: dict[str, object], pipeline: str) -> None:
    assert not compare(program, data, pipeline, numerics=EXACT if "preserve" in pipeline else CLOSE)


def test_infinite_log_odds_are_as_good_as_before() -> None:
    program = """
      data { array[3] int y; array[3] int n; vector[3] a; vector[3] b; }
      parameters { real p; }
      transformed parameters {
        real r = binomial_lpmf(y | n, inv_logit(a)) + p;
        real s = categorical_lpmf(2 | softmax(b)) + p;
      }
      model { target += p; }"""
    for a, b in (([INF, 0, -INF], [1, 2, -INF]), ([INF, 0, INF], [INF, 1, 2]), ([1, NAN, 1], [-INF] * 3)):
        data = {"y": [3, 2, 0], "n": [3, 4, 5], "a": a, "b": b}
        assert not Subject(program, data, points=1).compare("partial-evaluation", CLOSE).differences, (a, b)


def test_long_expressions_are_done_in_parts() -> None:
    terms = " + ".join(f"x[{n}] * {n}.5" for n in range(1, 400))
    program = f"parameters {{ vector[400] x; }} model {{ target += {terms}; }}"
    assert len(applied(program)) > 300


# ---------------------------------------------------------------- the table itself


@pytest.mark.parametrize(
    "line",
    ["f(x) -> g(y)  [same-bits]", "f(x) -> 1  [same-bits]", "f(x) -> x  [bits]", "f(z) -> z  [same-bits]", "f(x -> x",
     "f(x -> x  [same-bits]", "x -> x  [same-bits]"],
)  # fmt: skip
def test_wrong_lines_are_refused(line: str) -> None:
    with pytest.raises(TableError):
        read_table(f"== Section\nx, y: real\n{line}\n")


def test_document_is_current() -> None:
    spec = importlib.util.spec_from_file_location("list_rewrite_rules", ROOT / "docs" / "list_rewrite_rules.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (ROOT / "docs" / "rewrite-rules.md").read_text(encoding="utf-8")
    assert written == module.document(), "run python docs/list_rewrite_rules.py"
