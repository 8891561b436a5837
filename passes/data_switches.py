"""Switches of a large program: what its data decide by a few ints, once for all of its statements.

    data { int<lower=1, upper=3> family; int<lower=0> K; ... }
    model {
      if (family == 1) y ~ normal(mu, s);
      else if (family == 2) y ~ gamma(s, s ./ mu);
      else ...
      if (K > 0) ...
    }

Programs that are written for many models at once have most of their code in branches that no data set takes. Code is
made for what the switches are, therefore: it holds for all data that have the same, and is kept under a key that has
them in it. Data are bound, and checked, by code for any data, which is compiled of the program without what is
evaluated later (`binding_program`).

The value of an int, or of an element of an array at a literal index, is known if it is checked to be between two
literals that are close to each other, or if it is handed to functions of the program and all that is done with it,
there and elsewhere, is to compare it with literals, or to ask whether it is 0. Of others (`K`), which may have any
value, the outcomes of such comparisons are known. Of an array whose elements functions compare with two literals or
more (`if (dist == 1) ... else if (dist == 2) ...`) it is known which values they have; what functions are given then is
found by `analysis/value_sets`. So it is of a row of an array that is checked to have few values: of all `has[3, m]`,
where a loop has `if (has[3, m] == 1)`. Rows alone, as of what was observed, make no switches of a program.

Small programs have no switches: they compile in no time, and would compile again for each.

Where no data are known, as in libraries, all branches are there. Of a large program with switches (`is_large`) this
code is made by few passes, since nearly none of it will ever run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue, Use

from ulam.dialects import stan
from ulam.dialects.op_making import append
from ulam.dialects.stan.expressions import COMPARISONS
from ulam.dialects.walk import ops_of, ops_within
from ulam.library.records import record
from ulam.passes.analysis.call_graph import called_by, reachable
from ulam.passes.analysis.scopes import own_bodies
from ulam.passes.analysis.value_sets import ValueSets, row_of
from ulam.passes.known_data import ANY_INDEX, Element, IntComparison, KnownSwitches
from ulam.passes.remarks import remark
from ulam.passes.rewriting import cloned, copies, discard, replace_uses, with_body
from ulam.passes.variable_form import Variable, constant, is_global, literal_of

NAME = "data-switches"
"""What remarks call it."""
LEAST_OPS = 500
"""Ops in branches that switches decide, with those of the functions called there, of programs that have switches."""
MOST_VALUES = 16
"""Of an int that is more than compared and known all the same, from the bounds that it is checked for."""

LARGE = 1_500
"""Ops of a program, those of its functions included, from which it is large."""

_DATA_BLOCKS = ("data", "transformed_data")
_COMPARING: dict[type[Operation], str] = {stan.BINARY_OPERATORS[symbol]: symbol for symbol in COMPARISONS}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NOT = stan.UNARY_OPERATORS["!"]
_OF_SIZES = frozenset(("size", "num_elements", "dims"))
_STORING = (stan.PrintOp, stan.ArrayOp, stan.AssignOp)
_CONDITIONS = frozenset[type]((stan.IfOp, stan.SelectOp, stan.AndOp, stan.OrOp))


@record(frozen=True)
class Switches:
    """Ints whose values are to be known, comparisons of others whose outcomes are, and arrays and rows of arrays whose
    elements are."""

    ints: Sequence[Element]
    outcomes: Sequence[IntComparison]
    kinds: Sequence[str]
    rows: Sequence[Element]


def switches_of(module: ModuleOp) -> Switches | None:
    """A program's switches; None if they decide little."""
    program = _program_of(module)
    uses = _Uses(program)
    ints = [element for element in uses.elements if uses.is_known(element)]
    comparisons = uses.comparisons(ints)
    deciding = [use for element in ints for value in uses.elements[element] for use in value.uses]
    deciding += [use for places in comparisons.values() for use in places]
    kinds = [name for name in uses.arrays if uses.tells_kinds(name)]
    deciding += [use for name in kinds for read in uses.arrays[name] for use in read.uses]
    rows = [row for row in uses.rows if uses.is_known_row(row)]
    return Switches(ints, list(comparisons), kinds, rows) if uses.decided_ops(deciding) >= LEAST_OPS else None


def is_large(module: ModuleOp) -> bool:
    """Whether a program has so much in branches of its switches that few passes are to make code for any data."""
    size = sum(1 for body in own_bodies(module) for _ in ops_within(body))
    if size < LARGE or switches_of(module) is None:
        return False
    message = f"{size} ops, {LARGE} or more, much of them in branches on data: for any data few passes make its code"
    remark(NAME, _program_of(module).location, "program", message, done=True)
    return True


def specialize_switches(module: ModuleOp, known: KnownSwitches) -> None:
    """Makes literals of what is known of the switches, in place, and takes out what no branch then reaches."""
    from ulam.passes.pipelines import run_pipeline

    program = _program_of(module)
    uses = _Uses(program)
    for comparison, places in uses.comparisons(()).items():
        if (outcome := known.outcomes.get(comparison)) is not None:
            for use in places:
                _decide(use, outcome)
    for element, values in uses.elements.items():
        if (number := known.ints.get(element)) is not None:
            for value in values:
                _replace(value, number)
    _fold(ValueSets(program, known.kinds, known.rows))
    told = sorted(f"{e.name}{list(e.indices) or ''} is {n}" for e, n in known.ints.items())
    remark(NAME, program.location, "program", f"its code is for data whose {', '.join(told)}", done=True)
    run_pipeline(module, "partial-evaluation{preserve-numerics=true},dead-code-elimination", skip_unused=True)


def _fold(sets: ValueSets) -> None:
    """Makes literals of comparisons, of functions of ints, and of arguments that have but one value."""
    for block in list(sets.bodies()):
        formals = [(formal, sets.of(formal)) for formal in block.args if formal.type == stan.INT]
        computed = [(result, sets.of(result)) for op in ops_within(block) for result in op.results if _is_folded(op)]
        for value, values in computed:
            if values is not None and len(values) == 1:
                _replace(value, next(iter(values)))
        for formal, values in formals:
            first = block.first_op
            if values is not None and len(values) == 1 and first is not None:
                literal = constant(next(iter(values)), first.location)
                block.insert_op_before(literal, first)
                replace_uses(formal, literal.res)


def _is_folded(op: Operation) -> bool:
    is_call = isinstance(op, stan.CallOp) and op.user is not None and op.res is not None and op.res.type == stan.INT
    return is_call or type(op) in _COMPARING or isinstance(op, stan.AndOp | stan.OrOp | _NOT)


def _replace(value: SSAValue, number: int) -> None:
    op = value.owner
    assert isinstance(op, Operation) and op.parent is not None
    literal = constant(number, op.location)
    op.parent.insert_op_before(literal, op)
    replace_uses(value, literal.res)
    if isinstance(op, stan.CallOp):  # of ints alone: it has no effects
        discard(op)


def _decide(use: Use, outcome: bool) -> None:
    """Writes the outcome of a comparison, or of what is asked whether it is 0, as a literal."""
    if (compared := _comparison(use)) is not None:
        _replace(compared, int(outcome))
        return
    op = use.operation
    assert op.parent is not None
    literal = constant(int(outcome), op.location)
    op.parent.insert_op_before(literal, op)
    op.operands[use.index] = literal.res


def binding_program(module: ModuleOp) -> ModuleOp:
    """A copy of a program that binds its data as the program does, and declares what it declares; without the
    statements that are evaluated for each draw, and functions that only these call."""
    program = _program_of(module)
    parts = ops_of(program.body.block)
    functions = {op.sym_name.data: op for op in parts if isinstance(op, stan.FuncOp)}
    blocks = {op: binding_ops(op) for op in parts if isinstance(op, stan.BlockOp)}
    run = (op for ops in blocks.values() for op in ops if not isinstance(op, stan.ParameterOp))  # which are declared
    called = set(reachable(run, functions))
    body, mapping = Block(), dict[SSAValue, SSAValue]()
    for op in parts:
        if isinstance(op, stan.BlockOp):
            inner = Block()
            for copy in copies(blocks[op], mapping):
                append(inner, copy)
            append(body, with_body(op, inner))
        elif not isinstance(op, stan.FuncOp) or op.sym_name.data in called:
            append(body, cloned(op, mapping))
    return ModuleOp([with_body(program, body)])


def binding_ops(block: stan.BlockOp) -> list[Operation]:
    """The ops of a block that bind data: of those behind the data, what global declarations need."""
    ops = ops_of(block.body.block)
    if block.kind.data in _DATA_BLOCKS:
        return ops
    needed: set[Operation] = set()
    work: list[Operation] = [op for op in ops if isinstance(op, Variable) and is_global(op)]
    while work:
        op = work.pop()
        if op not in needed:
            needed.add(op)
            inner = [part for part in ops_within(op) if part is not op] if op.regions else []
            owners = (operand.owner for part in (op, *inner) for operand in part.operands)
            work += [owner for owner in owners if isinstance(owner, Operation) and owner.parent is block.body.block]
    return [op for op in ops if op in needed]


def _program_of(module: ModuleOp) -> stan.ProgramOp:
    return next(op for op in module.body.block.ops if isinstance(op, stan.ProgramOp))


class _Uses:
    """How a program uses the ints of its data."""

    def __init__(self, program: stan.ProgramOp) -> None:
        self._checked: dict[str, float] = {}
        """Variables of ints of the data, and how many values each may have by what it is checked for."""
        self.elements: dict[Element, list[SSAValue]] = {}
        """Ints, and elements of arrays of them, that are read in blocks that do not bind data."""
        self.arrays: dict[str, list[SSAValue]] = {}
        """Arrays of ints that are read there."""
        self.rows: dict[Element, list[SSAValue]] = {}
        """Elements of such arrays of which some indices are literals, and others not."""
        parts = list(program.body.block.ops)
        self._functions = {op.sym_name.data: op for op in parts if isinstance(op, stan.FuncOp)}
        for part in parts:
            if isinstance(part, stan.BlockOp):
                (self._note_data if part.kind.data in _DATA_BLOCKS else self._note_reads)(part)
        self._sizes: dict[str, int] = {}

    def _note_data(self, block: stan.BlockOp) -> None:
        for op in block.body.block.ops:
            if isinstance(op, stan.DeclareOp) and is_global(op) and stan.scalar_of(op.res.type.element) == stan.INT:
                self._checked[op.var_name.data] = inf
            elif isinstance(op, stan.CheckOp) and op.var_name.data in self._checked:
                self._checked[op.var_name.data] = _values(op)

    def _note_reads(self, block: stan.BlockOp) -> None:
        for op in block.body.block.ops:
            if isinstance(op, stan.GlobalOp) and op.var_name.data in self._checked:
                for read in (use.operation for use in op.res.uses):
                    if isinstance(read, stan.ReadOp):
                        if read.res.type != stan.INT:
                            self.arrays.setdefault(op.var_name.data, []).append(read.res)
                        for index, value in _ints_of(read.res):
                            self.elements.setdefault(Element(op.var_name.data, index), []).append(value)
                        for row, value in _rows_of(read.res):
                            self.rows.setdefault(row, []).append(value)

    def is_known(self, element: Element) -> bool:
        """Whether the value of an int is to be known."""
        uses = [use for value in self.elements[element] for use in value.uses]
        if self._checked[element.name] > MOST_VALUES:
            in_functions = any(self._formal(use) is not None for use in uses)
            if not in_functions or not (self._are_compared(uses, set(), set()) or self._tell_kinds(uses)):
                return False
        return any(True for _ in self._decisions(uses, set()))

    def is_known_row(self, row: Element) -> bool:
        """Whether the values of a row are to be known: there are few by what is checked, and they decide something."""
        if self._checked[row.name] > MOST_VALUES:
            return False
        uses = [use for value in self.rows[row] for use in value.uses]
        return any(True for _ in self._decisions(uses, set()))

    def tells_kinds(self, name: str) -> bool:
        """Whether the elements of an array tell functions what to do, and are nothing else."""
        return self._tell_kinds(use for read in self.arrays[name] for use in read.uses)

    def _tell_kinds(self, uses: Iterable[Use]) -> bool:
        literals: set[int] = set()
        return self._are_compared(uses, literals, set(), may_be_stored=True) and len(literals) > 1

    def _are_compared(
        self, uses: Iterable[Use], literals: set[int], seen: set[SSAValue], *, may_be_stored: bool = False
    ) -> bool:
        """Whether all uses of ints are comparisons with literals, which are noted, conditions, and arguments that are
        no more; if they `may_be_stored`, arrays have them, too, and other variables.
        """
        for use in uses:
            op = use.operation
            inner: SSAValue | None = None
            if (against := _against(use)) is not None:
                literals.add(against[1])
            elif (formal := self._formal(use)) is not None:
                inner = formal
            elif may_be_stored and isinstance(op, stan.IndexOp) and not use.index:
                inner = op.res
            elif not isinstance(op, _STORING if may_be_stored else stan.PrintOp):
                if not isinstance(op, stan.CallOp) or op.callee.data not in _OF_SIZES:
                    return False
            if inner is not None and inner not in seen:
                seen.add(inner)
                if not self._are_compared(inner.uses, literals, seen, may_be_stored=may_be_stored):
                    return False
        return True

    def comparisons(self, without: Sequence[Element]) -> dict[IntComparison, list[Use]]:
        """Comparisons of ints with literals by which blocks decide something, and where they are."""
        found: dict[IntComparison, list[Use]] = {}
        for element, values in self.elements.items():
            if element in without:
                continue
            for use in (use for value in values for use in value.uses):
                against = _against(use)
                if against is not None and any(True for _ in self._decisions([use], set())):
                    found.setdefault(IntComparison(element, *against), []).append(use)
        return found

    def decided_ops(self, uses: Sequence[Use]) -> int:
        """Ops in branches that ints decide, with those of functions called there; those of a function count once."""
        inside: set[Operation] = set()
        for op in self._decisions(uses, set()):
            inside.update(part for region in op.regions for inner in region.block.ops for part in ops_within(inner))
        return sum(1 + self._called(op, set()) for op in inside)

    def _called(self, op: Operation, outer: set[str]) -> int:
        """Ops of the functions that an op calls."""
        count = 0
        for name in called_by(op):
            if name not in self._functions or name in outer:
                continue
            if name not in self._sizes:
                within = ops_within(self._functions[name])
                self._sizes[name] = sum(1 + self._called(part, outer | {name}) for part in within)
            count += self._sizes[name]
        return min(count, LEAST_OPS)

    def _decisions(self, uses: Iterable[Use], seen: set[SSAValue]) -> Iterator[Operation]:
        """The ops whose conditions depend on ints, by comparisons and logical operators, in functions as well."""
        for use in uses:
            op = use.operation
            formal = self._formal(use)
            if formal is not None:
                if formal not in seen:
                    seen.add(formal)
                    yield from self._decisions(formal.uses, seen)
            elif (compared := _comparison(use)) is not None:
                yield from self._decisions(compared.uses, seen)
            elif isinstance(op, stan.IndexOp) and not use.index:
                yield from self._decisions(op.res.uses, seen)
            elif _is_condition(use):
                if isinstance(op, stan.IfOp | stan.SelectOp):
                    yield op
                elif op.results:
                    yield from self._decisions(op.results[0].uses, seen)
                elif isinstance(outer := op.parent_op(), stan.AndOp | stan.OrOp):
                    yield from self._decisions(outer.res.uses, seen)

    def _formal(self, use: Use) -> SSAValue | None:
        """The argument inside of a function of the program that a value is handed to."""
        op = use.operation
        if not isinstance(op, stan.CallOp) or op.user is None or op.callback is not None:
            return None
        function = self._functions.get(op.callee.data)
        if function is None or not function.body.blocks:
            return None
        return function.body.block.args[use.index]


def _ints_of(read: SSAValue) -> Iterator[tuple[tuple[int, ...], SSAValue]]:
    """An int that is read, or those of an array that are read at literal indices, with these."""
    if read.type == stan.INT:
        yield (), read
        return
    for op in (use.operation for use in read.uses):
        if isinstance(op, stan.IndexOp) and op.res.type == stan.INT and op.value is read:
            index = [literal_of(operand) for operand in op.indices]
            if all(isinstance(number, int) for number in index):
                yield tuple(int(number or 0) for number in index), op.res


def _rows_of(read: SSAValue) -> Iterator[tuple[Element, SSAValue]]:
    """What is read of an array at some literal indices and some others."""
    for op in (use.operation for use in read.uses):
        if isinstance(op, stan.IndexOp) and op.value is read and (row := row_of(op)) is not None:
            if ANY_INDEX in row.indices and any(row.indices):
                yield row, op.res


def _against(use: Use) -> tuple[str, int] | None:
    """What an int is compared with, and how, the int on the left: with 0 where it is a condition."""
    op = use.operation
    if _comparison(use) is None:
        return ("!=", 0) if _is_condition(use) else None
    symbol, literal = _COMPARING[type(op)], literal_of(op.operands[1 - use.index])
    assert isinstance(literal, int)
    return _MIRRORED.get(symbol, symbol) if use.index else symbol, literal


def _values(check: stan.CheckOp) -> float:
    """How many values a check allows an int, where both bounds are literals."""
    low, high = (None if bound is None else literal_of(bound) for bound in (check.lower, check.upper))
    return high - low + 1 if isinstance(low, int) and isinstance(high, int) else inf


def _comparison(use: Use) -> SSAValue | None:
    """The result of a comparison with a literal."""
    op = use.operation
    if type(op) not in _COMPARING or not isinstance(literal_of(op.operands[1 - use.index]), int):
        return None
    return op.results[0]


def _is_condition(use: Use) -> bool:
    """Whether a value is only asked whether it is 0."""
    op = use.operation
    if type(op) in _CONDITIONS or isinstance(op, _NOT):
        return True
    return isinstance(op, stan.YieldOp) and isinstance(op.parent_op(), stan.AndOp | stan.OrOp)
