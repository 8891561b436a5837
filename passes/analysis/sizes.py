"""What is known of ints and of the sizes of containers at compile time, as linear forms: `2 * N + 1`.

    vector[N + 1] x;   for (n in 1:N) ... x[n + 1] ...      # x has as many entries as n + 1 reaches: N + 1

A form is a constant plus multiples of *atoms*, ints that keep their value: data, an int that is assigned once, an SSA
value, the size of a formal. Two forms that are equal have equal values wherever both can be evaluated. An int that is
assigned once counts also where it is read before: what is declared with the smallest int as its size throws.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ulam.dialects import stan
from ulam.dialects.integers import INT_MAX, INT_MIN
from ulam.dialects.stan.effects import takes_any_size
from ulam.dialects.walk import ops_within, result_of
from ulam.library.records import record
from ulam.passes.analysis.linear_forms import ONE, LinearForm, atom_of
from ulam.passes.analysis.nesting import enclosing
from ulam.passes.analysis.scopes import own_bodies
from ulam.passes.analysis.value_sizes import value_sizes
from ulam.passes.builder import MOST_SIZE
from ulam.passes.variable_form import DECLARATIONS, LOOPS, Variable, is_global, literal_of

_ADD, _SUB, _MUL = (stan.BINARY_OPERATORS[symbol] for symbol in "+-*")
_NEG = stan.UNARY_OPERATORS["-"]
_MATRIX_OF_ONE_SIZE = ("cholesky_factor_corr", "cholesky_factor_cov", "corr_matrix", "cov_matrix")
_INT_VARIABLE = stan.VarType(stan.INT)
_MAX_TERMS = 16


@record(eq=False, repr=False)
class _Uses:
    """How the program uses one variable."""

    declaration: Variable | None = None
    assignments: int = 0
    assigned: stan.AssignOp | None = None


@record(eq=False, repr=False)
class SizeFacts:
    """The ints and sizes of one program (or of loose functions and blocks), as it is when this is made.

    Passes may go on asking while they change statements, as long as no int gets another value.
    """

    root: Operation
    _uses: dict[Hashable, _Uses] = field(default_factory=dict)
    _forms: dict[SSAValue, LinearForm] = field(default_factory=dict)
    _of_variables: dict[Hashable, LinearForm | None] = field(default_factory=dict)
    _minima: dict[Hashable, int] = field(default_factory=dict)
    _maxima: dict[Hashable, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        declarations: list[Variable] = []
        for body in own_bodies(self.root):
            for op in ops_within(body):
                cls = type(op)
                if cls is stan.AssignOp:
                    assert isinstance(op, stan.AssignOp)
                    uses = self._uses_of(op.var)
                    uses.assignments += 1
                    uses.assigned = op
                elif cls in DECLARATIONS:
                    assert isinstance(op, Variable)
                    self._uses_of(result_of(op)).declaration = op
                    declarations.append(op)
        for declaration in declarations:
            self._learn_minima(declaration)

    def _uses_of(self, variable: SSAValue) -> _Uses:
        key = self.key(variable)
        if (uses := self._uses.get(key)) is None:
            uses = self._uses[key] = _Uses()
        return uses

    def key(self, variable: SSAValue) -> Hashable:
        """What names a variable in all blocks: its name if it is global, else itself."""
        op = variable.owner
        if isinstance(op, stan.GlobalOp) or (isinstance(op, Variable) and is_global(op)):
            name = op.properties["var_name"]
            assert isinstance(name, StringAttr)
            return name.data
        return variable

    def declaration(self, variable: SSAValue) -> Variable | None:
        """The declaration of a variable, in whichever block it is."""
        uses = self._uses.get(self.key(variable))
        return uses.declaration if uses is not None else None

    def _learn_minima(self, declaration: Variable) -> None:
        """Bounds of data, and that sizes of global variables are not negative: of `N + 1` that it does not wrap."""
        if not is_global(declaration):
            return
        in_data = _kind(declaration) == "data"
        if in_data and result_of(declaration).type == _INT_VARIABLE:
            key = self.key(result_of(declaration))
            if declaration.lower is not None and isinstance(lower := literal_of(declaration.lower), int):
                self._at_least(key, lower)
            if declaration.upper is not None and isinstance(upper := literal_of(declaration.upper), int):
                self._at_most(key, upper)
        for size in declaration.sizes:
            form = self.form(size)
            if form.constant >= 0 and len(form.terms) == 1:
                ((atom, count),) = form.terms
                if count == 1:
                    self._at_least(atom, -form.constant)
                    self._at_most(atom, MOST_SIZE - form.constant)

    def _at_least(self, atom: Hashable, value: int) -> None:
        self._minima[atom] = max(value, self._minima.get(atom, value))

    def _at_most(self, atom: Hashable, value: int) -> None:
        self._maxima[atom] = min(value, self._maxima.get(atom, value))

    # ------------------------------------------------------------ ints

    def form(self, value: SSAValue) -> LinearForm:
        """The form of an int; of what is not understood, the value itself is the atom."""
        found = self._forms.get(value)
        if found is None:
            found = self._form(value)
            if len(found.terms) > _MAX_TERMS:
                found = atom_of(value)
            self._forms[value] = found
        return found

    def _form(self, value: SSAValue) -> LinearForm:
        op = value.owner
        if isinstance(op, Block):
            return atom_of(value)
        literal = literal_of(value)
        if isinstance(literal, int):
            return LinearForm(literal)
        if isinstance(op, stan.ReadOp):
            return self._of_variable(op.operands[0]) or atom_of(value)
        if isinstance(op, (_ADD, _SUB)):
            return self.form(op.operands[0]).plus(self.form(op.operands[1]), -1 if isinstance(op, _SUB) else 1)
        if isinstance(op, _NEG):
            return self.form(op.operands[0]).times(-1)
        if isinstance(op, _MUL):
            left, right = self.form(op.operands[0]), self.form(op.operands[1])
            if not left.terms or not right.terms:
                return right.times(left.constant) if not left.terms else left.times(right.constant)
            return atom_of(("*", frozenset((left, right))))
        if isinstance(op, stan.CallOp) and len(op.operands) == 1 and op.user is None:
            return self._measured(op) or atom_of(value)
        return atom_of(value)

    def _of_variable(self, variable: SSAValue) -> LinearForm | None:
        """The form of a variable that has one value for as long as it is seen."""
        key = self.key(variable)
        if key in self._of_variables:
            return self._of_variables[key]
        self._of_variables[key] = None  # while its value is looked at: no way around
        uses = self._uses.get(key)
        found = None
        if uses is not None and uses.declaration is not None:
            if _kind(uses.declaration) == "data" and is_global(uses.declaration):
                found = atom_of(key)
            elif uses.assignments == 1 and uses.assigned is not None and _once(uses.declaration, uses.assigned):
                found = self.form(uses.assigned.operands[1])
                if any(isinstance(atom, SSAValue) for atom, _ in found.terms):
                    found = atom_of(key)
        self._of_variables[key] = found
        return found

    def _measured(self, op: stan.CallOp) -> LinearForm | None:
        """`size(x)`, `num_elements(x)`, `rows(x)`, `cols(x)`."""
        sizes = self.sizes(op.operands[0])
        inner = op.operands[0].type
        name = op.callee.data
        if name in ("size", "num_elements") and len(sizes) == 1:
            return sizes[0]
        if name == "size" and isinstance(inner, stan.ArrayType) and sizes:
            return sizes[0]
        if name in ("rows", "cols") and inner == stan.MATRIX:
            return sizes[0 if name == "rows" else 1]
        if (name, inner) in (("rows", stan.VECTOR), ("cols", stan.ROW_VECTOR)):
            return sizes[0]
        return None

    def minimum(self, form: LinearForm) -> int | None:
        """The least value that a form may have, None if nothing is known."""
        least = form.constant
        for atom, count in form.terms:
            known = self._minima.get(atom)
            if isinstance(atom, tuple) and atom[0] == "size":
                known = 0
            if known is None or count < 0:
                return None
            least += count * known
        return least

    def is_exact(self, form: LinearForm) -> bool:
        """Whether an int of this form surely is the sum that the form says: whether it cannot wrap."""
        low = high = form.constant
        for atom, count in form.terms:
            is_size = isinstance(atom, tuple) and atom[0] == "size"
            ends = (count * self._minima.get(atom, 0 if is_size else INT_MIN), count * self._maxima.get(atom, INT_MAX))
            low, high = low + min(ends), high + max(ends)
        return low >= INT_MIN and high <= INT_MAX

    def gap(self, loop: stan.ForOp) -> LinearForm | None:
        """`upper - lower`, None where one of them may wrap."""
        lower, upper = self.form(loop.lower), self.form(loop.upper)
        return upper.plus(lower, -1) if self.is_exact(lower) and self.is_exact(upper) else None

    # ------------------------------------------------------------ sizes

    def sizes(self, container: SSAValue) -> list[LinearForm | None]:
        """The sizes of a value's dimensions, outermost first: None where they are not known.

        Of an expression those that it has if it can be evaluated, see `value_sizes`.
        """
        op = container.owner
        rank = stan.dimensions(container.type)
        if isinstance(container, BlockArgument):
            return [atom_of(("size", container, number)) for number in range(rank)]
        assert isinstance(op, Operation)
        if isinstance(op, stan.ReadOp):
            return self.declared_sizes(op.operands[0])
        found = value_sizes(self, op) if rank else []
        return found if len(found) == rank else [None] * rank

    def fits(self, assignment: stan.AssignOp) -> bool:
        """Whether a whole assignment surely finds the sizes that the variable has."""
        if isinstance(stan.scalar_of(assignment.value.type), stan.TupleType):
            return False
        declared = self.declared_sizes(assignment.var)
        sizes = self.sizes(assignment.value)
        return all(one is not None and one == other for one, other in zip(declared, sizes, strict=True))

    def has_element(self, assignment: stan.AssignOp) -> bool:
        """Whether an assignment is to one element, a scalar, that the variable surely has."""
        sizes = self.declared_sizes(assignment.var)
        kinds = [kind.data for kind in assignment.kinds.data]
        return (
            kinds == ["single"] * len(sizes)
            and stan.dimensions(assignment.value.type) == 0
            and all(self.in_range(index, size) for index, size in zip(assignment.indices, sizes, strict=True))
        )

    def declared_sizes(self, variable: SSAValue) -> list[LinearForm | None]:
        """The sizes of a variable, as declared."""
        assert isinstance(variable.type, stan.VarType)
        rank = stan.dimensions(variable.type.element)
        declaration = self.declaration(variable)
        if declaration is None:
            return [None] * rank
        sizes: list[LinearForm | None] = [self.form(size) for size in declaration.sizes]
        if len(sizes) == rank - 1 and declaration.constraint.data in _MATRIX_OF_ONE_SIZE:
            sizes.append(sizes[-1])
        return sizes if len(sizes) == rank else [None] * rank

    def in_range(self, index: SSAValue, size: LinearForm | None) -> bool:
        """Whether an index is surely from 1 to `size`: a literal, or the variable of a loop around it."""
        if size is None:
            return False
        form = self.form(index)
        lowest = highest = form
        for atom, count in form.terms:
            loop = atom.owner.parent_op() if isinstance(atom, BlockArgument) else None
            if not isinstance(loop, stan.ForOp) or count != 1 or atom is not loop.body.block.args[0]:
                continue
            if self.gap(loop) is None:
                return False
            variable = LinearForm(0, frozenset(((atom, 1),)))
            lowest = lowest.plus(variable, -1).plus(self.form(loop.lower))
            highest = highest.plus(variable, -1).plus(self.form(loop.upper))
        return self.is_at_least(lowest, ONE) and self.is_at_least(size, highest)

    def is_at_least(self, form: LinearForm, other: LinearForm) -> bool:
        """Whether `form >= other` for sure, as sums that do not wrap."""
        least = self.minimum(form.plus(other, -1))
        return least is not None and least >= 0


def _kind(declaration: Operation) -> str:
    parent = declaration.parent_op()
    return parent.kind.data if isinstance(parent, stan.BlockOp) else ""


def _once(declaration: Operation, assigned: stan.AssignOp) -> bool:
    """Whether one assignment is executed once in the life of its variable: no loop is between them."""
    kinds = assigned.properties["kinds"]
    assert isinstance(kinds, ArrayAttr)
    return not kinds.data and enclosing(declaration, LOOPS) is enclosing(assigned, LOOPS)


class SizeFactsOnDemand:
    """What assignments surely do, by `SizeFacts` that are collected when first asked for."""

    def __init__(self, root: Operation) -> None:
        self._root = root
        self._facts: SizeFacts | None = None

    def fits(self, assignment: stan.AssignOp) -> bool:
        """Whether a whole assignment surely finds the sizes that the variable has."""
        if takes_any_size(assignment.var) or stan.dimensions(assignment.value.type) == 0:
            return not isinstance(stan.scalar_of(assignment.value.type), stan.TupleType)
        return self._known().fits(assignment)

    def succeeds(self, assignment: stan.AssignOp) -> bool:
        """Whether an assignment, whole or to an element, surely is no error."""
        return self._known().has_element(assignment) if assignment.kinds.data else self.fits(assignment)

    def _known(self) -> SizeFacts:
        if self._facts is None:
            self._facts = SizeFacts(self._root)
        return self._facts
