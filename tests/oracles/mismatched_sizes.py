"""Calls and expressions whose arguments have sizes that the data decide: what one level refuses, all must.

The cases are the patterns of all rewrite rules and the densities of the library, with every combination of types. Each
dimension of each variable is an int of the data of its own; a case is run with sizes that fit, and with each of them
changed. A program has many cases, the data's `which` names one. Values are increasing, sum to 1, and matrices are
identities, so that as many calls as possible have no error but that of a size.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

import ulam
from ulam.frontend.check.program import check_program
from ulam.frontend.diagnostics import DiagnosticError
from ulam.frontend.functions import signatures
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source
from ulam.passes.optimize.rewrite_table import RewriteRule, table

SIZE = 3
LITERALS = {"c": "0.75", "d": "0.375"}
DECLARATIONS = {
    "int": "int {x}",
    "array[] int": "array[{x}_1] int {x}",
    "real": "real {x}",
    "array[] real": "array[{x}_1] real {x}",
    "vector": "vector[{x}_1] {x}",
    "row_vector": "row_vector[{x}_1] {x}",
    "matrix": "matrix[{x}_1, {x}_2] {x}",
    "triangular": "cholesky_factor_cov[{x}_1, {x}_2] {x}",
    "array[] vector": "array[{x}_1] vector[{x}_2] {x}",
    "array[] row_vector": "array[{x}_1] row_vector[{x}_2] {x}",
}
DIMENSIONS = {type_: form.count("{x}_") for type_, form in DECLARATIONS.items()}
MANY_OVERLOADS = 20


@dataclass(frozen=True)
class Case:
    """`expression` is a real: what is added to the target. `variables`: name → type."""

    label: str
    expression: str
    variables: tuple[tuple[str, str], ...]

    @property
    def is_density(self) -> bool:
        return re.search(r"_lp[dm]f\(", self.expression) is not None

    def sizes(self) -> list[str]:
        return [f"{name}_{n}" for name, type_ in self.variables for n in range(1, DIMENSIONS[type_] + 1)]


def of_rules(rules: Iterable[RewriteRule] | None = None) -> Iterator[Case]:
    """The patterns of the rules."""
    for rule in table().rules if rules is None else rules:
        names = list(rule.guards)
        for types in product(*(rule.guards[name] for name in names)):
            chosen = dict(zip(names, types, strict=True))
            if any(type_ not in (*DECLARATIONS, "literal") for type_ in types):
                continue
            pattern = rule.text.partition(" -> ")[0]
            text = re.sub(
                r"\b[A-Za-z]\w*\b(?!\()",
                lambda match, chosen=chosen: _variable(match[0], chosen.get(match[0])),
                pattern,
            )
            variables = tuple((_variable(n, t), t) for n, t in chosen.items() if t != "literal")
            yield from _accepted(f"{rule.text} {types}", text, variables)


def _variable(name: str, type_: str | None) -> str:
    return name if type_ is None else LITERALS[name] if type_ == "literal" else f"{name}_{re.sub('[^a-z]', '', type_)}"


def of_densities() -> Iterator[Case]:
    """Calls of the densities that take containers; of those with very many overloads, one of the sequences for all."""
    for name in signatures.names():
        found = signatures.overloads(name)
        if not name.endswith(("_lpdf", "_lpmf")) or found is None:
            continue
        overloads = list(found.all())
        left_out = {"array[] real", "row_vector"} if len(overloads) > MANY_OVERLOADS else set()
        for signature in overloads:
            types = [str(t) for t in signature.arguments]
            if sum(DIMENSIONS.get(t, 0) > 0 for t in types) < 2 or not set(types) <= set(DECLARATIONS) - left_out:
                continue
            variables = tuple((f"a{n}_{re.sub('[^a-z]', '', t)}", t) for n, t in enumerate(types))
            first, *rest = (x for x, _ in variables)
            yield from _accepted(str(signature), f"{name}({first} | {', '.join(rest)})", variables)


def _accepted(label: str, text: str, variables: tuple[tuple[str, str], ...]) -> Iterator[Case]:
    """The case, if Stan accepts it and sizes could differ."""
    if not any(DIMENSIONS[type_] for _, type_ in variables):
        return
    for kind in ("real r = {0};", "real r = sum({0});", "real r = sum(to_vector({0}));"):
        case = Case(label, kind.partition(" = ")[2].rstrip(";").format(text), variables)
        if _is_accepted(program([case], "data", "unused")):
            yield case
            return


def _is_accepted(text: str) -> bool:
    source = Source(text, "model.stan")
    try:
        found = check_program(parse_program(source), source)
    except DiagnosticError:
        return False
    return not any(diagnostic.severity == "error" for diagnostic in found)


# ---------------------------------------------------------------- programs

WAYS = ("data", "parameters")
"""Where the real variables are declared."""
USES = ("used", "unused", "dropping")
"""Whether a case's value is added to the target, is assigned to a variable that nothing reads, or may be dropped."""


def variables_of(cases: Sequence[Case]) -> dict[str, str]:
    return {name: type_ for case in cases for name, type_ in case.variables}


def program(cases: Sequence[Case], way: str, use: str) -> str:
    sizes, data, parameters = "", "", "real p; "
    for name, type_ in variables_of(cases).items():
        sizes += "".join(f"int {name}_{n}; " for n in range(1, DIMENSIONS[type_] + 1))
        declaration = DECLARATIONS[type_].format(x=name) + "; "
        if way == "parameters" and "int" not in type_:
            parameters += declaration
        else:
            data += declaration
    lines = []
    for number, case in enumerate(cases):
        text = re.sub(r"_lp([dm])f\(", r"_lup\1f(", case.expression) if use == "dropping" else case.expression
        statement = f"real r = {text};" if use == "unused" else f"target += {text};"
        lines.append(f"if (which == {number}) {{ {statement} }}")
    model = "\n  ".join(lines)
    blocks = {"data": f"int which; {sizes}{data}", "parameters": parameters, "model": f"\n  target += p;\n  {model}"}
    return "".join(f"{name} {{ {body} }}\n" for name, body in blocks.items())


def values(cases: Sequence[Case], way: str, which: int, change: dict[str, int]) -> tuple[dict[str, Any], list[float]]:
    """Data, and values of the unconstrained parameters."""
    data: dict[str, Any] = {"which": which}
    theta = [0.3]
    for name, type_ in variables_of(cases).items():
        dims = [change.get(f"{name}_{n}", SIZE) for n in range(1, DIMENSIONS[type_] + 1)]
        data.update({f"{name}_{n}": size for n, size in enumerate(dims, 1)})
        value = np.ones(dims, int) if "int" in type_ else _reals(type_, dims)
        if way == "data" or "int" in type_:
            data[name] = value.tolist()
        elif type_ == "triangular":
            rows, columns = dims
            theta += [0.0] * (columns * (columns + 1) // 2 + (rows - columns) * columns)
        else:
            theta += (value.T if type_ == "matrix" else value).ravel().tolist()
    return data, theta


def _reals(type_: str, dims: Sequence[int]) -> Any:
    if type_ in ("matrix", "triangular"):
        return np.eye(dims[0], dims[1])
    if not dims:
        return np.array(0.5)
    last = dims[-1]
    return np.broadcast_to(np.arange(1, last + 1) / (last * (last + 1) / 2), dims).copy()


# ---------------------------------------------------------------- outcomes


def outcome(text: str, data: dict[str, Any], theta: Sequence[float], level: int) -> tuple[str, float]:
    """The error, "" if there is none, and the value."""
    try:
        model = ulam.StanModel(text, data=data, opt_level=level)
        return "", float(model.log_density_gradient(np.array(theta))[0])
    except ulam.UlamError as error:
        return f"{type(error).__name__}: {error}", math.nan


def changes(case: Case) -> Iterator[dict[str, int]]:
    """Sizes that differ from those that fit: one of them at a time, smaller and larger, and all together."""
    yield {}
    for size in case.sizes():
        yield {size: SIZE - 1}
        yield {size: SIZE + 1}


def differences(cases: Sequence[Case], way: str, use: str, levels: Sequence[int]) -> Iterator[str]:
    """Cases that a level refuses and another one does not, or with other values; `used` at level 0 is right."""
    right = program(cases, way, "used")
    asked = program(cases, way, use)
    for which, case in enumerate(cases):
        for change in changes(case):
            data, theta = values(cases, way, which, change)
            error, value = outcome(right, data, theta, 0)
            for level in levels:
                found, other = outcome(asked, data, theta, level)
                told = f"{case.label} as {way}, {use}, {change}, level {level}"
                if bool(found) is not bool(error):
                    yield f"{told}: {found or 'no error'}; expected {error or 'no error'}"
                elif (
                    use == "used"
                    and not math.isclose(value, other, rel_tol=1e-10, abs_tol=1e-10)
                    and not (math.isnan(value) and math.isnan(other))
                ):
                    yield f"{told}: {other}, expected {value}"
