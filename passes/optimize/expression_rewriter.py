"""One expression tree through the rules: into an e-graph, and the cheapest form back into the program.

An op of the tree that stays as it is keeps its place; only its operands change. A new op stands right before the op
whose form it replaces or is an operand of, so what may throw keeps its order. Nothing is written twice that the program
evaluates once, as values are shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from ulam.dialects import stan
from ulam.dialects.stan import Effect, effects_of
from ulam.dialects.walk import operand_tuple
from ulam.library.functions import kind_of
from ulam.library.records import record
from ulam.library.terms import Application, Name, Number, Term, head_of
from ulam.passes.optimize import library_calls
from ulam.passes.optimize.egraph import LEAF, LITERAL, CompiledRule, EGraph, ENode
from ulam.passes.optimize.rewrite_guards import compiled_rules
from ulam.passes.optimize.rewrite_table import OPERATOR_FUNCTIONS, RewriteRule, table
from ulam.passes.optimize.static_autodiff import StaticAutodiff
from ulam.passes.remarks import remark
from ulam.passes.rewriting import applied_to, discard, replace_uses
from ulam.passes.variable_form import Variable, constant, erase_unused, literal_of

if TYPE_CHECKING:
    from ulam.frontend.functions.library_calls import LibraryDefinitions

PASS = "partial-evaluation"
ROUNDS = 8
_LITERAL_PART: set[str | None] = {LITERAL}

_SCALARS = (stan.INT, stan.REAL)
_UNARY_HEADS = {"-": "neg", "+": "pos", "!": "!", "'": "'"}
_UNARY = {head: stan.UNARY_OPERATORS[symbol] for symbol, head in _UNARY_HEADS.items()}
_BINARY = stan.BINARY_OPERATORS
_SYMBOLS: dict[type[Operation], str] = {
    **{op_class: symbol for symbol, op_class in _BINARY.items()},
    **{op_class: head for head, op_class in _UNARY.items()},
}
_INNER: frozenset[type[Operation]] = frozenset((
    *_BINARY.values(), *_UNARY.values(), stan.PromoteOp, stan.CallOp, stan.IndexOp, stan.FieldOp, stan.TupleOp,
    stan.ArrayOp, stan.RowVectorOp,
))  # fmt: skip
_SILENT = Effect.THROWS | Effect.READS_VAR
_CALL_COST, _DENSITY_COST = 20.0, 100.0


@record(slots=True, eq=False, repr=False)
class OpPosition:
    """Where an op stands. `order` counts ops, `barrier` those before it with an effect that has an order.

    Of the last op of a tree: `size`, the barrier before the `oldest_throw`, and whether it `waits` for its user.
    """

    order: float
    barrier: int
    size: int = 1
    oldest_throw: int | None = None
    waits: bool = False
    joined: bool = False


def is_inner(op: Operation) -> bool:
    """Whether an op may be part of a tree: it has no effect whose order counts, other than that it may throw."""
    if type(op) not in _INNER or effects_of(op) & ~_SILENT:
        return False
    return not isinstance(op, stan.CallOp) or (op.user is None and op.callback is None and op.res is not None)


def joins_its_user(op: Operation) -> bool:
    """Whether the one use of an op's result is by an op of the same tree."""
    (result,) = op.results
    use = result.first_use
    if use is None or not result.has_one_use():
        return False
    return use.operation.parent is op.parent and is_inner(use.operation)


class _CannotPlaceError(Exception):
    """A form would need a value before it is there."""


@record(eq=False, repr=False)
class Rewriter:
    """Rewrites the trees of one program."""

    program: stan.ProgramOp
    preserve_numerics: bool
    budget: int
    triangular: frozenset[str] = field(init=False)
    _definitions: LibraryDefinitions | None = None
    _autodiff: StaticAutodiff = field(init=False)

    def __post_init__(self) -> None:
        self._autodiff = StaticAutodiff(self.program)
        self.triangular = _cholesky_factors(self.program)

    def rewrite(self, root: Operation, places: dict[Operation, OpPosition], retold: bool) -> None:
        """Rewrites the tree that ends in `root`."""
        if root.results[0].first_use is None:
            return
        rules = compiled_rules(self.preserve_numerics, retold)
        ops = _ops_of(root, places)
        heads = {op: _head(op) for op in ops}
        tree = _Tree(self, root, ops, places, retold)
        if any(_may_match(op, heads, rules) or _is_of_literals(op) for op in ops):
            tree.build(heads.values())
            tree.saturate(rules)
            tree.write_back()
        tree.near_miss()

    def definition(self, name: str, types: tuple[Attribute, ...]) -> str | None:
        """The symbol of the definition that a call means; it becomes part of the program."""
        if self._definitions is None:
            self._definitions = library_calls.definitions(self.program)
        return self._definitions.symbol(name, types)

    def is_data(self, value: SSAValue) -> bool:
        """Whether data alone decide a value, by the types of the program."""
        return not self._autodiff.of(value)

    def autodiff(self, operands: Sequence[SSAValue], replaced: stan.CallOp | None) -> list[int]:
        """The `autodiff` bits of a new call; those of the call that it replaces count for what came from it."""
        bits = [int(self._autodiff.of(operand)) for operand in operands]
        if replaced is None:
            return bits
        for argument, bit in zip(replaced.arguments, _bits(replaced), strict=True):
            within = _values_within(argument)
            concerned = [n for n, operand in enumerate(operands) if operand in within]
            if not bit or not any(bits[n] for n in concerned):
                for n in concerned:
                    bits[n] = bit
        return bits


def _cholesky_factors(program: stan.ProgramOp) -> frozenset[str]:
    """Variables that have the value of a Cholesky factor wherever they are read: of data and parameters."""
    return frozenset(
        op.var_name.data
        for block in program.body.block.ops
        if isinstance(block, stan.BlockOp) and block.kind.data in ("data", "parameters")
        for op in block.body.block.ops
        if isinstance(op, Variable)
        and op.constraint.data.startswith("cholesky_factor")
        and op.results[0].type == stan.VarType(stan.MATRIX)
    )


def _bits(call: stan.CallOp) -> Sequence[int]:
    return cast("Sequence[int]", cast("DenseArrayBase[IntegerType]", call.autodiff).get_values())


def _values_within(value: SSAValue) -> set[SSAValue]:
    found = {value}
    pending = [value]
    while pending:
        owner = pending.pop().owner
        if not isinstance(owner, Block) and type(owner) in _INNER:
            pending += [operand for operand in owner.operands if operand not in found]
            found.update(owner.operands)
    return found


def _ops_of(root: Operation, places: Mapping[Operation, OpPosition]) -> list[Operation]:
    """The ops of a tree in program order."""
    found, pending = {root}, [root]
    while pending:
        for operand in operand_tuple(pending.pop()):
            owner = operand.op if isinstance(operand, OpResult) else None
            if owner is None or (place := places.get(owner)) is None or not place.joined:
                continue
            if owner not in found:  # a rewrite may have made one value both operands of an op
                found.add(owner)
                pending.append(owner)
    return sorted(found, key=lambda op: places[op].order)


def _may_match(
    op: Operation, heads: Mapping[Operation, str], rules: Mapping[str, Sequence[CompiledRule]]
) -> bool:  # fmt: skip
    """Whether an op is of the kind of some rule's pattern, and its operands are of the kind of its operands."""
    candidates = rules.get(heads[op])
    if candidates is None:
        return False
    parts: list[set[str | None]] = []
    for value in operand_tuple(op):
        head = heads.get(value.op) if isinstance(value, OpResult) else None
        parts.append({head} if literal_of(value) is None else _LITERAL_PART)
    return any(rule.may_match(parts) and _fits(rule, rule.rule.pattern, op, heads, {}) for rule in candidates)


def _fits(
    rule: CompiledRule, pattern: Application, op: Operation, heads: Mapping[Operation, str], bound: dict[str, SSAValue]
) -> bool:
    """Whether the operands of an op may be what a rule's pattern has, as they are; `bound`: what names stand for."""
    terms, values = pattern.operands, op.operands
    if len(terms) != len(values):
        return False
    swapped = dict(bound) if len(terms) == 2 else {}
    if all([_is_like(rule, term, value, heads, bound) for term, value in zip(terms, values, strict=True)]):
        return True
    return len(terms) == 2 and all(
        [_is_like(rule, term, value, heads, swapped) for term, value in zip(terms, reversed(values), strict=True)]
    )


def _is_like(
    rule: CompiledRule, term: Term, value: SSAValue, heads: Mapping[Operation, str], bound: dict[str, SSAValue]
) -> bool:
    if isinstance(term, Name):
        types = rule.types.get(term.name)
        known = bound.setdefault(term.name, value)
        return (types is None or value.type in types) and (known is value or _may_be_equal(known, value))
    if isinstance(term, Number):
        return literal_of(value) == term.value
    owner = value.owner
    return not isinstance(owner, Block) and heads.get(owner) == term.head and _fits(rule, term, owner, heads, bound)


def _may_be_equal(one: SSAValue, other: SSAValue) -> bool:
    """Whether two expressions have the same form; reads are taken to be equal if they read the same variable."""
    if one is other:
        return True
    first, second = one.owner, other.owner
    if type(first) is not type(second) or not isinstance(first, Operation) or not isinstance(second, Operation):
        return literal_of(one) is not None and literal_of(one) == literal_of(other)
    if not first.operands or first.regions:
        return first.properties == second.properties
    return len(first.operands) == len(second.operands) and all(
        [_may_be_equal(a, b) for a, b in zip(first.operands, second.operands, strict=True)]
    )


def _is_of_literals(op: Operation) -> bool:
    operands = operand_tuple(op)
    for operand in operands:
        if literal_of(operand) is None:
            return False
    return bool(operands) and op.results[0].type in _SCALARS


def _head(op: Operation) -> str:
    """Under which name rules find an op."""
    if isinstance(op, stan.CallOp):
        name = op.callee.data
        name = OPERATOR_FUNCTIONS.get(name, name)
        meaning = None if op.definition is None else op.definition.data.partition(".")[0]
        return head_of(name, op.unchecked is not None, None if meaning in (None, op.callee.data) else meaning)
    symbol = _SYMBOLS.get(type(op))
    if symbol is None:
        return op.name.removeprefix("stan.")
    if symbol == ".^" or (symbol == "^" and op.operands[0].type != stan.MATRIX):
        return "pow"
    return symbol


def _detail(op: Operation) -> object:
    """What a node must have in common with another one besides its head."""
    if isinstance(op, stan.CallOp):
        return op.unnormalized is not None
    if isinstance(op, stan.IndexOp):
        return op.kinds
    return op.field if isinstance(op, stan.FieldOp) else None


# ---------------------------------------------------------------- costs


@cache
def _unit_cost(head: str, last: str | None) -> float:
    name, _, meaning = head.removeprefix("unchecked ").partition(" as ")
    costs = table().costs
    if meaning in costs:
        return costs[meaning]
    if kind_of(name).is_density:
        return _DENSITY_COST
    if (special := costs.get(f"{name}({last})")) is not None:
        return special
    known = costs.get(name)
    return known if known is not None else 0.1 if name in ("tuple", "array", "row_vector") else _CALL_COST


def cost(node: ENode, operands: list[Attribute]) -> float:
    """What a node costs without its operands; see the end of the table."""
    if node.head in (LEAF, LITERAL):
        return 0.0
    unit = _unit_cost(node.head, operands[-1].name.removeprefix("stan.") if operands else None)
    if unit == _DENSITY_COST:
        return unit
    types = (*operands, node.type)
    if node.head == "*" and not any(type_ in _SCALARS for type_ in operands):
        unit *= 2  # products are summed, too
    if stan.MATRIX in types:
        return unit * (1000.0 if node.head == "*" and operands[0] == operands[1] else 100.0)
    return unit if all(type_ in _SCALARS for type_ in types) else unit * 10.0


# ---------------------------------------------------------------- one tree


@record(eq=False, repr=False)
class _Tree:
    rewriter: Rewriter
    root: Operation
    ops: list[Operation]
    places: dict[Operation, OpPosition]
    retold: bool
    graph: EGraph = field(init=False)
    classes: dict[SSAValue, int] = field(default_factory=dict)
    _new: list[tuple[Operation, Operation]] = field(default_factory=list)  # (op, the op that it is to stand before)
    _operands: list[tuple[Operation, int, SSAValue]] = field(default_factory=list)
    _written: dict[ENode, tuple[float, SSAValue]] = field(default_factory=dict)
    _kept: set[Operation] = field(default_factory=set)
    _collapsed: dict[SSAValue, RewriteRule] = field(default_factory=dict)  # values that a part of them is equal to

    def build(self, heads: Iterable[str]) -> None:
        """Makes the e-graph of the tree as it is."""
        self.graph = EGraph(self.rewriter.triangular, self.rewriter.is_data)
        for op, head in zip(self.ops, heads, strict=True):
            value = op.results[0]
            children = tuple(self._class_of(operand) for operand in op.operands)
            node = ENode(head, children, value.type, _detail(op), [value])
            self.classes[value] = self.graph.add(node)

    def _class_of(self, value: SSAValue) -> int:
        known = self.classes.get(value)
        if known is None:
            known = self.classes[value] = self._leaf(value)
        return known

    def _leaf(self, value: SSAValue) -> int:
        """Two reads of a variable are the same if nothing was assigned between them."""
        owner = value.owner
        if isinstance(owner, stan.ConstantOp) and (literal := literal_of(value)) is not None:
            return self.graph.add_literal(literal, value)
        key: object = value
        if isinstance(owner, stan.ReadOp) and (place := self.places.get(owner)) is not None:
            key = (owner.operands[0], place.barrier)
        return self.graph.add(ENode(LEAF, (), value.type, key, [value]))

    # ------------------------------------------------------------ rules

    def saturate(self, rules: Mapping[str, Sequence[CompiledRule]]) -> None:
        """Adds what the rules say until nothing changes, or there are enough nodes."""
        graph = self.graph
        for _ in range(ROUNDS):
            found = graph.all_matches(rules)
            changed = False
            for match in found:
                number, node, rule = match.number, match.node, match.rule
                if graph.size > self.rewriter.budget:
                    remark(PASS, self.root.location, "expression", "it has too many forms to try all", done=False)
                    return graph.rebuild()
                result = self._instance(rule.rule.result, match.binding, rule, node)
                if result is not None and graph.type_of(result) == graph.type_of(number):
                    changed = changed or graph.find(result) != graph.find(number)
                    graph.union(number, result)
                    if isinstance(rule.rule.result, Name):
                        self._collapsed |= dict.fromkeys(node.origins, rule.rule)
            if not changed:
                return None
            graph.rebuild()
        return None

    def _instance(self, term: Term, binding: Mapping[str, int], rule: CompiledRule, matched: ENode) -> int | None:
        """The class of a rule's result; None if there is no such function for these types."""
        if isinstance(term, Name):
            return binding[term.name]
        if isinstance(term, Number):
            return self.graph.add_literal(term.value)
        children: list[int] = []
        for operand in term.operands:
            child = self._instance(operand, binding, rule, matched)
            if child is None:
                return None
            children.append(child)
        types = tuple(self.graph.type_of(child) for child in children)
        found = _types_of(term, types)
        if found is None:
            return None
        coerced = [self._coerced(child, type_) for child, type_ in zip(children, found[0], strict=True)]
        detail = None if term.function in _BINARY or term.function in _UNARY else False
        if kind_of(term.function).is_density:
            detail = matched.detail
        if None in coerced:
            return None
        node = ENode(
            term.head, tuple(c for c in coerced if c is not None), found[1], detail, application=term, rule=rule.rule,
            matched=matched,
        )  # fmt: skip
        return self.graph.add(node)

    def _coerced(self, number: int, type_: Attribute) -> int | None:
        if self.graph.type_of(number) == type_:
            return number
        literal = self.graph.literal(number)
        return self.graph.add_literal(float(literal)) if literal is not None and type_ == stan.REAL else None

    # ------------------------------------------------------------ back to ops

    def write_back(self) -> None:
        """Replaces the tree by its cheapest form, if it is another one."""
        best = self.graph.cheapest(cost)
        value = self.root.results[0]
        try:
            new = self._value(self.classes[value], self.root, value, best)
        except _CannotPlaceError:
            for op, _ in reversed(self._new):
                op.drop_all_references()
            return
        for op, before in self._new:
            assert before.parent is not None
            before.parent.insert_op_before(op, before)
        for op, index, operand in self._operands:
            op.operands[index] = operand
        if new is not value:
            replace_uses(value, new)
        if self._new or self._operands or new is not value:
            self._erase_replaced()

    def _value(self, number: int, before: Operation, wanted: SSAValue | None, best: Mapping[int, ENode]) -> SSAValue:
        """The value of a class for use by `before`: of equal ones in the program the one that stood there."""
        node = best[self.graph.find(number)]
        if wanted is not None and wanted not in node.origins and (rule := self._collapsed.get(wanted)) is not None:
            remark(PASS, before.location, "expression", rule.text, done=True)
        if node.head in (LEAF, LITERAL):
            if wanted is not None and wanted in node.origins:
                return wanted
            if node.head == LITERAL:
                return self._literal(node, before)
            return self._available(node.origins[0], before)
        if not node.origins:
            return self._application(node, before, best)
        if wanted not in node.origins:
            wanted = min(node.origins, key=self._order)
            if not self._is_available(wanted, before):
                return self._application(node, before, best)
        assert wanted is not None
        op = wanted.owner
        assert isinstance(op, Operation)
        if op not in self._kept:
            self._kept.add(op)
            for index, (child, operand) in enumerate(zip(node.children, op.operands, strict=True)):
                child = self.classes[operand] if operand in self.classes else child
                new = self._value(child, op, operand, best)
                if new is not operand:
                    self._operands.append((op, index, new))
        return wanted

    def _order(self, value: SSAValue) -> float:
        place = self.places.get(value.owner) if not isinstance(value.owner, Block) else None
        return -1.0 if place is None else place.order

    def _is_available(self, value: SSAValue, before: Operation) -> bool:
        return value.owner is before or self._order(value) < self.places[before].order

    def _available(self, value: SSAValue, before: Operation) -> SSAValue:
        if not self._is_available(value, before):
            raise _CannotPlaceError
        return value

    def _literal(self, node: ENode, before: Operation) -> SSAValue:
        op = constant(self.graph.literals[self.graph.find(self._number(node))], before.location)
        self._new.append((op, before))
        return op.res

    def _number(self, node: ENode) -> int:
        return self.graph.add(ENode(node.head, (), node.type, node.detail))

    def _application(self, node: ENode, before: Operation, best: Mapping[int, ENode]) -> SSAValue:
        """A new op: for a node that a rule has made, or a copy of one that stands further down."""
        order = self.places[before].order
        known = self._written.get(node)
        if known is not None and known[0] <= order:
            return known[1]
        operands = [self._value(child, before, None, best) for child in node.children]
        location = _location_of(node) or before.location
        if node.application is None:
            original = node.origins[0].owner
            assert isinstance(original, Operation)
            op = applied_to(original, operands, (node.type,))
            op.location = location
        else:
            op = self._op(node, node.application, operands, location)
        self._new.append((op, before))
        self.places[op] = OpPosition(order - 0.5, self.places[before].barrier)
        self._written[node] = (order, op.results[0])
        if node.application is not None and node.rule is not None:
            remark(PASS, location, f"'{node.application.function}'", node.rule.text, done=True)
        return op.results[0]

    def _op(self, node: ENode, term: Application, operands: Sequence[SSAValue], location: LocationAttr) -> Operation:
        if len(operands) == 1 and (unary := _UNARY.get(term.function)) is not None:
            return unary(operands[0], node.type, location=location)
        if len(operands) == 2 and (binary := _BINARY.get(term.function)) is not None:
            return binary(operands[0], operands[1], node.type, location=location)
        replaced = node.matched.origins[0].owner if node.matched is not None and node.matched.origins else None
        types = tuple(operand.type for operand in operands)
        bits = self.rewriter.autodiff(operands, replaced if isinstance(replaced, stan.CallOp) else None)
        return stan.CallOp(
            term.function,
            operands,
            node.type,
            bits,
            unnormalized=bool(node.detail),
            unchecked=term.unchecked,
            definition=self.rewriter.definition(term.meaning or term.function, types),
            location=location,
        )

    def _erase_replaced(self) -> None:
        """What has been replaced goes, also what may throw: its replacement does so instead.

        No rule leaves out a part of its pattern, so an op without use is one that another op stands for.
        """
        leaves: list[SSAValue] = []
        for op in reversed(self.ops):
            if op.results[0].first_use is None:
                leaves += op.operands
                discard(op)
        erase_unused(leaves)

    # ------------------------------------------------------------ what was not done

    def near_miss(self) -> None:
        """Tells why a density of a product is no GLM."""
        for op in self.ops:
            if op.parent is None or not isinstance(op, stan.CallOp) or _head(op) not in _linear_densities():
                continue
            product = next((v for a in op.arguments for v in _values_within(a) if _is_linear(v)), None)
            if product is None:
                continue
            assert isinstance(product.owner, Operation)
            left, right = (_type_text(operand.type) for operand in product.owner.operands)
            if not self.retold:
                why = "in this block errors keep their texts"
            elif (left, right) != ("matrix", "vector"):
                why = f"the product is one of a {left} and a {right}, not of a matrix and a vector"
            else:
                types = ", ".join(_type_text(argument.type) for argument in op.arguments)
                why = f"there is none for arguments ({types}) with this linear predictor"
            remark(PASS, op.location, f"'{op.callee.data}' as a GLM", why, done=False)


def _type_text(type_: Attribute) -> str:
    if isinstance(type_, stan.ArrayType):
        return f"array[{',' * (type_.rank.data - 1)}] {_type_text(type_.element)}"
    return type_.name.removeprefix("stan.")


def _is_linear(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, _BINARY["*"]) and all(operand.type not in _SCALARS for operand in owner.operands)


@cache
def _linear_densities() -> frozenset[str]:
    """Densities that have a GLM."""
    results = [(rule.pattern.head, rule.result) for rule in table().rules]
    return frozenset(head for head, result in results if isinstance(result, Application) and "_glm_" in result.function)


def _location_of(node: ENode) -> LocationAttr | None:
    """The place of the expression that a rule replaced."""
    matched = node.matched
    while matched is not None:
        if matched.origins and isinstance(matched.origins[0].owner, Operation):
            return matched.origins[0].owner.location
        matched = matched.matched
    return None


def _types_of(term: Application, types: tuple[Attribute, ...]) -> tuple[tuple[Attribute, ...], Attribute] | None:
    """The operand types and the result of an application."""
    library = library_calls.types()
    if len(types) == 2 and term.function in _BINARY:
        return library.binary_types(term.function, *types)
    if len(types) == 1 and term.function in _UNARY:
        symbol = next(s for s, head in _UNARY_HEADS.items() if head == term.function)
        result = library.unary_type(symbol, types[0])
        return None if result is None else (types, result)
    return library.call_types(term.meaning or term.function, types)
