"""The rules of the table with their types as predicates, by the head of their patterns."""

from __future__ import annotations

from functools import cache

from xdsl.ir import Attribute

from ulam.dialects import stan
from ulam.library.terms import Application, Number, Term
from ulam.passes.optimize.egraph import LEAF, LITERAL, CompiledRule, EGraph, Guard
from ulam.passes.optimize.rewrite_table import table

_TYPES: dict[str, Attribute] = {
    "int": stan.INT, "real": stan.REAL, "vector": stan.VECTOR, "row_vector": stan.ROW_VECTOR, "matrix": stan.MATRIX,
}  # fmt: skip


_DATA = "data "
_NO_TYPES = (("literal",), ("triangular",))


@cache
def compiled_rules(preserve_numerics: bool, retold: bool) -> dict[str, list[CompiledRule]]:
    """The rules that may be applied, by the head of the pattern."""
    found: dict[str, list[CompiledRule]] = {}
    for rule in table().rules:
        if (rule.same_bits or not preserve_numerics) and (retold or not rule.changes_texts):
            guards = {name: guard(types) for name, types in rule.guards.items()}
            parts = tuple(_head(operand) for operand in rule.pattern.operands)
            types = {name: _types(words) for name, words in rule.guards.items() if words not in _NO_TYPES}
            found.setdefault(rule.pattern.head, []).append(
                CompiledRule(rule, guards, parts, types, _depth(rule.pattern))
            )
    return found


def _head(term: Term) -> str | None:
    if isinstance(term, Application):
        return term.head
    return LITERAL if isinstance(term, Number) else None


def _depth(term: Term) -> int:
    return 1 + max(map(_depth, term.operands), default=0) if isinstance(term, Application) else 0


def type_named(word: str) -> Attribute:
    """The type that a word of the table means: `array[] vector`, `data real`."""
    word = word.removeprefix(_DATA)
    if word.startswith("array[] "):
        return stan.array_of(_TYPES[word.removeprefix("array[] ")], 1)
    return _TYPES[word]


@cache
def guard(words: tuple[str, ...]) -> Guard:
    """Whether a class is of one of the types, data alone if they say so, or a `literal`, or a `triangular` variable."""
    if words == ("literal",):
        return lambda graph, number: graph.literal(number) is not None
    if words == ("triangular",):
        return _is_triangular
    types = _types(words)
    if words[0].startswith(_DATA):
        return lambda graph, number: graph.type_of(number) in types and graph.is_data(number)
    return lambda graph, number: graph.type_of(number) in types


@cache
def _types(words: tuple[str, ...]) -> frozenset[Attribute]:
    return frozenset(map(type_named, words))


def _is_triangular(graph: EGraph, number: int) -> bool:
    """Whether a value is that of a global variable which the graph knows to be triangular."""
    for node in graph.nodes(number):
        owner = node.origins[0].owner if node.head == LEAF else None
        if isinstance(owner, stan.ReadOp) and isinstance(owner.operands[0].owner, stan.GlobalOp):
            return owner.operands[0].owner.var_name.data in graph.triangular
    return False
