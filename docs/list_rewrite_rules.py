"""Writes docs/rewrite-rules.md from the table of partial evaluation, passes/optimize/rewrite_rules.txt.

python docs/list_rewrite_rules.py
"""

from __future__ import annotations

from pathlib import Path

from ulam.passes.optimize.rewrite_table import RewriteRule, Section, table

DOCUMENT = Path(__file__).with_name("rewrite-rules.md")

HEAD = """# Rewrite rules

What the pass `partial-evaluation` puts in place of expressions. This file is made from the table
[passes/optimize/rewrite_rules.txt](../passes/optimize/rewrite_rules.txt), which the pass reads; `python
docs/list_rewrite_rules.py` writes it anew.

Names stand for any expression of the types given; the same name twice for equal expressions. `literal` is a number,
`triangular` a variable declared as a Cholesky factor in data or parameters, `data real` a real that data alone decide:
what is computed of it costs nothing, since that is done once. `+`, `.*`, `==`, `!=`, and `*` unless both sides are
containers, match either way round. Functions that are operators by another name (`transpose`, `multiply`, `pow`, ...)
are matched as those operators. Two reads of a variable are equal if it is not assigned between them.

* *same bits*: every value keeps its bits, NaN, infinities and -0 included. Level 2 has these rules only
  (`preserve-numerics`).
* *last bits*: the last bits may change, and what overflowed or lost all its digits may become right.
* *texts*: an error stays an error, with another text; only in transformed parameters and model, where the unoptimised
  program tells the text.

`unchecked f(x)` is f without the requirements that it states itself, as the pattern has none of them; `f(x) as g` has
the value of f, with the requirements and the dropped constants of the pattern (library/rewritten.stan).

No rule comes before another: all forms that follow from the rules are collected, and the cheapest is taken. Of rules
that only rearrange a sum the use is in what another rule then finds.

Beside the table, operators of literals are evaluated (ints in 32 bits, reals to finite values only, never a division of
ints by 0); of `?:`, `&&` and `||` with a literal on the left only what is evaluated remains; fields of tuples that are
written in place, and indices that select everything, go.
"""


def document() -> str:
    """The text of the document."""
    return "\n".join([HEAD, *(_section(section) for section in table().sections)])


def _section(section: Section) -> str:
    lines = [f"## {section.title}", ""]
    if section.rules:
        lines += ["| pattern | result | class | |", "|---|---|---|---|", *map(_row, section.rules), ""]
        lines += [f"Types: {_types(section)}.", ""]
    elif section.title == "Left out":
        lines += [*section.notes, ""]
    else:
        lines += [*section.notes, "", "| | cost |", "|---|---|"]
        by_cost: dict[float, list[str]] = {}
        for name, cost in table().costs.items():
            by_cost.setdefault(cost, []).append(_code(name))
        lines += [*(f"| {' '.join(names)} | {cost:g} |" for cost, names in sorted(by_cost.items())), ""]
    return "\n".join(lines)


def _row(rule: RewriteRule) -> str:
    pattern, _, result = rule.text.partition(" -> ")
    kind = ("same bits" if rule.same_bits else "last bits") + (", texts" if rule.changes_texts else "")
    return f"| {_code(pattern)} | {_code(result)} | {kind} | {_escaped(rule.comment)} |"


def _types(section: Section) -> str:
    names: dict[tuple[str, ...], list[str]] = {}
    for rule in section.rules:
        for name, types in rule.guards.items():
            if name not in names.setdefault(types, []):
                names[types].append(name)
    return "; ".join(f"{', '.join(map(_code, group))} {' or '.join(types)}" for types, group in names.items())


def _code(text: str) -> str:
    return f"`{_escaped(text)}`"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
