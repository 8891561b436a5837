"""An e-graph: many equal forms of an expression at once, so that rules need no order.

A class is a set of nodes that are known to be equal; the children of a node are classes. A rule does not replace what
it matches: it adds its result to the class. When nothing new is found, or there are enough nodes, the cheapest node
of each class is taken. After Willsey et al., "egg: Fast and extensible equality saturation", 2021; only what small
expression trees need, so the graph is rebuilt as a whole after each round.

    add("log", add("-", 1, x))  with  log(1 - x) -> log1m(x):   {log(1 - x), log1m(x)}
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from math import inf
from typing import NamedTuple

from xdsl.ir import Attribute, SSAValue

from ulam.dialects import stan
from ulam.library.records import record
from ulam.library.terms import Application, Name, Number, Term
from ulam.passes.analysis.literals import Literal, evaluate_function, evaluate_operator
from ulam.passes.optimize.rewrite_table import RewriteRule

LEAF, LITERAL = "leaf", "literal"

Binding = dict[str, int]
_SCALARS = (stan.INT, stan.REAL)
_SYMBOLS = {"neg": "-", "pos": "+"}
_SYMMETRIC = frozenset({"+", ".*", "==", "!="})


@record(slots=True, eq=False, repr=False)
class ENode:
    """One form of an expression. `origins`: the values of the program that have it, first one first.

    A node without origin comes from `rule`; it is written as `application` says, in place of `matched`.
    """

    head: str
    children: tuple[int, ...]
    type: Attribute
    detail: Hashable = None
    """What else tells nodes apart: a literal's value, the kinds of an index, whether a density drops constants."""
    origins: list[SSAValue] = field(default_factory=list)
    application: Application | None = None
    rule: RewriteRule | None = None
    matched: ENode | None = None


def _key(node: ENode) -> Hashable:
    return node.head, node.children, node.type, node.detail


def _merge(kept: ENode, twin: ENode) -> None:
    """Of two equal nodes one is enough; one of the program rather than one of a rule."""
    kept.origins += [origin for origin in twin.origins if origin not in kept.origins]


class EGraph:
    """The classes of one expression tree. A class is a number; `find` gives the one that stands for it now.

    `triangular`: names of global variables that are known to be triangular matrices; `is_data`: whether data alone
    decide a value of the program.
    """

    def __init__(
        self, triangular: frozenset[str] = frozenset(), is_data: Callable[[SSAValue], bool] = lambda value: False
    ) -> None:
        self.triangular = triangular
        self._is_data = is_data
        self._parents: list[int] = []
        self._classes: dict[int, list[ENode]] = {}
        self._types: list[Attribute] = []
        self._heads: dict[int, set[str]] = {}
        self._known: dict[Hashable, int] = {}
        self.literals: dict[int, Literal] = {}
        self.changed: set[int] = set()
        self.size = 0

    def find(self, number: int) -> int:
        while (parent := self._parents[number]) != number:
            self._parents[number] = self._parents[parent]
            number = parent
        return number

    def nodes(self, number: int) -> list[ENode]:
        return self._classes[self.find(number)]

    def type_of(self, number: int) -> Attribute:
        return self._types[number]

    def literal(self, number: int) -> Literal | None:
        return self.literals.get(self.find(number))

    def is_data(self, number: int) -> bool:
        """Whether a class has a form of the program that data alone decide."""
        return any(node.origins and self._is_data(node.origins[0]) for node in self.nodes(number))

    # ------------------------------------------------------------ growing

    def add(self, node: ENode) -> int:
        """The class of a node; an equal one that is there already takes over its origins."""
        node.children = tuple(map(self.find, node.children))
        key = _key(node)
        found = self._known.get(key)
        if found is not None:
            found = self.find(found)
            if node.origins:
                self._take_origins(found, node, key)
            return found
        number = len(self._parents)
        self._parents.append(number)
        self._classes[number] = [node]
        self._types.append(node.type)
        self._heads[number] = {node.head}
        self.changed.add(number)
        self._known[key] = number
        self.size += 1
        return self._folded(number, node)

    def _take_origins(self, number: int, node: ENode, key: Hashable) -> None:
        for other in self._classes[number]:
            if _key(other) == key:
                _merge(other, node)
                return

    def add_literal(self, value: Literal, origin: SSAValue | None = None) -> int:
        """The class of a number; reals are told apart by their bits, so that -0 is not 0."""
        type_ = stan.INT if isinstance(value, int) else stan.REAL
        number = self.add(ENode(LITERAL, (), type_, repr(value), [] if origin is None else [origin]))
        self.literals[number] = value
        return number

    def _folded(self, number: int, node: ENode) -> int:
        """An operator of literals is a literal, too."""
        if not node.children or node.type not in _SCALARS or number in self.literals:
            return number
        values = [self.literals[child] for child in node.children if child in self.literals]
        if len(values) < len(node.children):
            return number
        result = self._value(node, values)
        return number if result is None else self.union(number, self.add_literal(result))

    @staticmethod
    def _value(node: ENode, values: Sequence[Literal]) -> Literal | None:
        if node.head == "promote":
            return float(values[0])
        result = evaluate_operator(_SYMBOLS.get(node.head, node.head), values)
        return evaluate_function(node.head, values) if result is None and node.type == stan.REAL else result

    def union(self, first: int, second: int) -> int:
        """Notes that two classes are equal."""
        first, second = self.find(first), self.find(second)
        if first == second:
            return first
        self._parents[second] = first
        self._classes[first] += self._classes.pop(second)
        self._heads[first] |= self._heads.pop(second)
        self.changed.add(first)
        if second in self.literals:
            self.literals[first] = self.literals[second]
        return first

    def rebuild(self) -> None:
        """Finds the classes that have become equal, or literals, because their parts have."""
        while True:
            equal: list[tuple[int, int]] = []
            self._known = {}
            for number, nodes in self._classes.items():
                forms: dict[Hashable, ENode] = {}
                for node in nodes:
                    node.children = tuple(map(self.find, node.children))
                    key = _key(node)
                    if (twin := forms.setdefault(key, node)) is not node:
                        _merge(twin, node)
                    elif (other := self._known.setdefault(key, number)) != number:
                        equal.append((other, number))
                self._classes[number] = list(forms.values())
            for first, second in equal:
                self.union(first, second)
            if not equal and not self._fold_all():
                return

    def _fold_all(self) -> bool:
        before = len(self.literals)
        for number, nodes in self.classes():
            for node in nodes:
                if number not in self.literals and self.find(number) == number:
                    self._folded(number, node)
        return len(self.literals) > before

    # ------------------------------------------------------------ matching

    def all_matches(self, rules: Mapping[str, Sequence[CompiledRule]]) -> list[Match]:
        """Where rules match now, as far as a class or a part of it has changed since the last time."""
        deepest = max((rule.depth for candidates in rules.values() for rule in candidates), default=0)
        changed = self._with_users(self.changed, deepest)
        self.changed = set()
        found: list[Match] = []
        for number, nodes in self._classes.items():
            if number not in changed:
                continue
            for node in nodes:
                candidates = rules.get(node.head)
                if candidates is None:
                    continue
                heads = [self._heads[self.find(child)] for child in node.children]
                for rule in candidates:
                    if rule.may_match(heads):
                        found += [
                            Match(number, node, rule, binding)
                            for binding in self._match_node(rule, rule.rule.pattern, node, {})
                        ]
        return found

    def _with_users(self, numbers: set[int], levels: int) -> set[int]:
        """These classes, and all that have one of them as a part at most so many levels down."""
        users: dict[int, set[int]] = {}
        for number, nodes in self._classes.items():
            for node in nodes:
                for child in node.children:
                    users.setdefault(self.find(child), set()).add(number)
        level = {self.find(number) for number in numbers}
        found = set(level)
        for _ in range(levels):
            level = {user for number in level for user in users.get(number, ())} - found
            found |= level
        return found

    def _match(self, rule: CompiledRule, term: Term, number: int, binding: Binding) -> Iterator[Binding]:
        number = self.find(number)
        if isinstance(term, Name):
            bound = binding.get(term.name)
            if bound is not None:
                if bound == number:
                    yield binding
            elif rule.guards[term.name](self, number):
                yield {**binding, term.name: number}
        elif isinstance(term, Number):
            value = self.literals.get(number)
            if value is not None and value == term.value and not (value == 0 and str(value).startswith("-")):
                yield binding
        else:
            head = term.head
            for node in self._classes[number]:
                if node.head == head:
                    yield from self._match_node(rule, term, node, binding)

    def _match_node(self, rule: CompiledRule, term: Application, node: ENode, binding: Binding) -> Iterator[Binding]:
        if len(term.operands) != len(node.children):
            return
        found = False
        for match in self._match_all(rule, term.operands, node.children, binding):
            found = True
            yield match
        if len(node.children) != 2 or (found and all([isinstance(operand, Name) for operand in term.operands])):
            return  # two names may be swapped, which gives nothing new
        if term.function in _SYMMETRIC or (term.function == "*" and self._commutes(node)):
            yield from self._match_all(rule, term.operands, node.children[::-1], binding)

    def _match_all(
        self, rule: CompiledRule, terms: Sequence[Term], numbers: Sequence[int], binding: Binding
    ) -> Iterator[Binding]:
        if not terms:
            yield binding
            return
        for found in self._match(rule, terms[0], numbers[0], binding):
            yield from self._match_all(rule, terms[1:], numbers[1:], found)

    def _commutes(self, product: ENode) -> bool:
        return any(self.type_of(child) in _SCALARS for child in product.children)

    # ------------------------------------------------------------ choosing

    def cheapest(self, cost: Callable[[ENode, list[Attribute]], float]) -> dict[int, ENode]:
        """The node of each class with the smallest sum of costs; of equal ones that of the program.

        What a rule computes of data costs nothing: that is done once.
        """
        best: dict[int, ENode] = {}
        total: dict[int, float] = {}
        own = {
            node: 0.0 if self._is_of_data(node) else cost(node, [self.type_of(child) for child in node.children])
            for nodes in self._classes.values()
            for node in nodes
        }
        changed = True
        while changed:
            changed = False
            for number, nodes in self._classes.items():
                for node in nodes:
                    sum_ = own[node] + sum([total.get(self.find(child), inf) for child in node.children])
                    known = total.get(number, inf)
                    if sum_ < known - 1e-9 or (sum_ < known + 1e-9 and self._preferred(node, best.get(number))):
                        best[number], total[number] = node, sum_
                        changed = changed or sum_ < known - 1e-9
        return best

    def _is_of_data(self, node: ENode) -> bool:
        return not node.origins and bool(node.children) and all(map(self.is_data, node.children))

    def _preferred(self, node: ENode, other: ENode | None) -> bool:
        return other is not None and bool(node.origins) and not other.origins

    def classes(self) -> list[tuple[int, list[ENode]]]:
        """All classes as they are now."""
        return [(number, list(nodes)) for number, nodes in self._classes.items()]


Guard = Callable[[EGraph, int], bool]


class CompiledRule(NamedTuple):
    """A rule whose types have become predicates of classes. `parts`: heads that its operands must have, if any.

    `types`: which types an expression may have to be what a name stands for; names of any type are not there.
    `depth`: how many levels of parts the pattern looks at.
    """

    rule: RewriteRule
    guards: dict[str, Guard]
    parts: tuple[str | None, ...]
    types: dict[str, frozenset[Attribute]]
    depth: int

    def may_match(self, heads: Sequence[AbstractSet[str | None]]) -> bool:
        """Whether operands with these heads may be those of the pattern, in one order or the other."""
        parts = self.parts
        if len(parts) != len(heads):
            return False
        if len(parts) == 2:
            (one, other), (left, right) = parts, heads
            if (one is None or one in left) and (other is None or other in right):
                return True
            return (one is None or one in right) and (other is None or other in left)
        for part, found in zip(parts, heads, strict=True):
            if part is not None and part not in found:
                return False
        return True


class Match(NamedTuple):
    """A rule that matches a node of a class; what its names stand for."""

    number: int
    node: ENode
    rule: CompiledRule
    binding: Binding
