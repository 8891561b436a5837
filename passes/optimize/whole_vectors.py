"""From an expression of one iteration to one of all iterations: `a + b * x[n]`  →  `a + b * x`.

    x[n]       x, if the loop runs over all of it, else x[l:u]       x[n + 1]    x[l + 1:u + 1]
    x[J[n]]    x[J]                                                  X[n] * b    X * b
    exp(x[n])  exp(x)                                                x[n] * y[n] x .* y

`WholeVectors` writes the new expression into a block of its own, which the pass takes over if the whole statement
could be written; else it raises `Prevented` with the reason. Where a size or an index could throw although the loop has
no iteration, or a density looks at an argument that is the same for all elements, `guarded` is set: the statement then
needs `if (u >= l)` around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from xdsl.dialects.builtin import ArrayAttr, LocationAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.library.functions import kind_of
from ulam.library.records import record
from ulam.passes import variable_form as form
from ulam.passes.analysis.linear_forms import ONE, LinearForm
from ulam.passes.optimize.loop_span import Covered, Library, Local, LoopSpan, Prevented
from ulam.passes.optimize.static_autodiff import is_autodiff_formal, is_autodiff_place
from ulam.passes.rewriting import applied_to

BINARY, UNARY = stan.BINARY_OPERATORS, stan.UNARY_OPERATORS
ADD, SUB, MUL, DIV = (BINARY[symbol] for symbol in "+-*/")
POW = (BINARY["^"], BINARY[".^"])
NEG, PLUS, TRANSPOSE = UNARY["-"], UNARY["+"], UNARY["'"]
ELEMENTWISE = (BINARY["+"], BINARY["-"], BINARY[".*"], BINARY["./"])
_PURE = stan.Effect.READS_VAR | stan.Effect.THROWS
_INTS = stan.array_of(stan.INT, 1)
_REALS = stan.array_of(stan.REAL, 1)
_LINEAR = (stan.VECTOR, stan.ROW_VECTOR)


@record(eq=False, repr=False)
class WholeVectors:
    """Rewrites the expressions of one statement. `strict`: nothing of it may throw."""

    span: LoopSpan
    calls: stan.CallEffects
    library: Library
    locals: dict[SSAValue, Local]
    strict: bool
    location: LocationAttr
    block: Block = field(default_factory=Block)
    guarded: bool = False
    orientation: Attribute = stan.VECTOR
    _varies: dict[SSAValue, bool] = field(default_factory=dict)

    # ------------------------------------------------------------ building

    def emit(self, op: Operation) -> SSAValue:
        """Appends an op; its result."""
        self.block.add_op(op)
        return op.results[0]

    def operator(self, op_class: Callable[..., Operation], result: Attribute, *operands: SSAValue) -> SSAValue:
        return self.emit(op_class(*operands, result, location=self.location))

    def call(self, name: str, result: Attribute, *operands: SSAValue) -> SSAValue:
        """A call of a function of the library that is not written in the program."""
        types = [operand.type for operand in operands]
        if not self.library.gives(name, types, result):
            raise Prevented(f"{name} has no form for these arguments")
        bits = [int(self.is_autodiff(operand)) for operand in operands]
        definition = self.library.symbol(name, types)
        return self.emit(stan.CallOp(name, operands, result, bits, definition=definition, location=self.location))

    def is_autodiff(self, value: SSAValue) -> bool:
        """Stan's static rule: what comes from parameters, or from a real of transformed parameters or model."""
        op = value.owner
        if stan.scalar_of(value.type) == stan.INT:
            return False
        if isinstance(op, Block):
            function = op.parent_op()
            return isinstance(function, stan.FuncOp) and is_autodiff_formal(function, op.args.index(value))
        if isinstance(op, stan.ReadOp):
            declaration = self.span.facts.declaration(op.operands[0])
            return is_autodiff_place(declaration or self.span.loop)
        return any(self.is_autodiff(operand) for operand in op.operands)

    def risk(self, what: str) -> None:
        """Notes that something may throw although the loop has no iteration."""
        if self.strict:
            raise Prevented(f"{what} may be an error, which this block tells in its own order")
        self.guarded = True

    def count(self) -> SSAValue:
        """The number of iterations; may be negative unless the statement is guarded."""
        if not self.span.has_size:
            self.risk("a negative number of iterations")
        loop = self.span.loop
        if form.literal_of(loop.lower) == 1:
            return self.bound(loop.upper)
        location = self.location
        difference = self.operator(SUB, stan.INT, self.bound(loop.upper), self.bound(loop.lower))
        return self.operator(ADD, stan.INT, difference, self.emit(form.constant(1, location)))

    def bound(self, value: SSAValue) -> SSAValue:
        """One of the loop's bounds: evaluated anew if it is plain, else read from the variable that keeps it."""
        kept = self.span.bounds.get(value)
        return self._copy(value, {}) if kept is None else self.emit(form.read(kept, self.location))

    def _copy(self, value: SSAValue, mapping: dict[SSAValue, SSAValue]) -> SSAValue:
        """A copy of a plain expression at the end of the block."""
        if value in mapping:
            return mapping[value]
        op = value.owner
        if not isinstance(op, Operation) or not form.is_tree(op):
            return value
        for inner in ops_within(op):
            for operand in inner.operands:
                if _is_defined_outside(operand, op):
                    mapping[operand] = self._copy(operand, mapping)
        copy = op.clone(mapping)
        self.block.add_op(copy)
        mapping[value] = copy.results[_position(value)]
        return mapping[value]

    # ------------------------------------------------------------ what is the same in all iterations

    def varies(self, value: SSAValue) -> bool:
        """Whether an expression may have another value in each iteration."""
        found = self._varies.get(value)
        if found is None:
            found = self._varies[value] = self._find_varies(value)
        return found

    def _find_varies(self, value: SSAValue) -> bool:
        op = value.owner
        if value is self.span.index:
            return True
        if not isinstance(op, Operation) or not self._is_in_body(op):
            return False
        if isinstance(op, stan.ReadOp):
            return self._read_varies(op)
        for inner in ops_within(op):
            if inner is not op and isinstance(inner, stan.ReadOp) and self.varies(inner.results[0]):
                return True
            if any(_is_defined_outside(operand, op) and self.varies(operand) for operand in inner.operands):
                return True
        return False

    def _read_varies(self, op: stan.ReadOp) -> bool:
        variable = op.operands[0]
        local = self.locals.get(variable)
        if local is None and isinstance(variable.owner, stan.DeclareOp) and self._is_in_body(variable.owner):
            raise Prevented(f"{variable.owner.var_name.data} is computed by a statement that stays in the loop")
        return local is not None and local.each

    def _is_in_body(self, op: Operation) -> bool:
        return self.span.loop.is_ancestor(op)

    def same(self, value: SSAValue) -> SSAValue:
        """An expression that is the same in all iterations, evaluated once."""
        op = value.owner
        if not isinstance(op, Operation) or not self._is_in_body(op):
            return value
        if isinstance(op, stan.ReadOp) and (local := self.locals.get(op.operands[0])) is not None:
            return self._local(local)
        mapping: dict[SSAValue, SSAValue] = {}
        for inner in ops_within(op):
            effects = self.calls.of(inner)
            if effects & ~_PURE and form.is_tree(inner):
                raise Prevented("what it calls draws, prints or reads the target")
            if effects & stan.Effect.THROWS and not self._surely_fine(inner):
                self.risk("what it evaluates")
            if isinstance(inner, stan.ReadOp) and inner is not op and inner.operands[0] in self.locals:
                raise Prevented("a local variable is read under `?:`, `&&` or `||`")
            for operand in inner.operands:
                if _is_defined_outside(operand, op) and operand.owner is not op:
                    mapping[operand] = self.same(operand)
        copy = op.clone(mapping)
        self.block.add_op(copy)
        return copy.results[_position(value)]

    def _surely_fine(self, op: Operation) -> bool:
        """Whether an index is surely in range."""
        if not isinstance(op, stan.IndexOp) or any(kind.data not in ("single", "all") for kind in op.kinds):
            return False
        sizes = self.span.facts.sizes(op.value)
        indices = iter(op.indices)
        for kind, size in zip(op.kinds, sizes, strict=False):
            if kind.data == "single" and not self.span.facts.in_range(next(indices), size):
                return False
        return True

    def _local(self, local: Local) -> SSAValue:
        if local.variable is not None:
            return self.emit(form.read(local.variable, self.location))
        assert local.value is not None
        return local.value

    # ------------------------------------------------------------ what differs

    def each(self, value: SSAValue) -> SSAValue:
        """All values of an expression that varies: a container whose first dimension counts the iterations."""
        if value is self.span.index:
            raise Prevented(f"{self.span.loop.variable.data} itself is used as a number")
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, stan.ReadOp):
            return self._local(self.locals[op.operands[0]])
        if isinstance(op, stan.PromoteOp):
            return self._promoted(op)
        if isinstance(op, stan.IndexOp):
            return self._indexed(op)
        if isinstance(op, stan.CallOp):
            return self._called(op)
        if isinstance(op, (NEG, PLUS)):
            operand = self.linear(op.operands[0])
            return self.operator(type(op), operand.type, operand)
        if isinstance(op, (ADD, SUB, MUL, DIV, *ELEMENTWISE, *POW)):
            return self._binary(op)
        raise Prevented(_reason_of(op))

    def linear(self, value: SSAValue) -> SSAValue:
        """`each`, as a vector or row vector if the values are scalars: arithmetic needs them so."""
        return self.oriented(self.each(value))

    def oriented(self, whole: SSAValue) -> SSAValue:
        """A one-dimensional container as a vector (or row vector); matrices as they are."""
        wanted = self.orientation
        if whole.type in (wanted, stan.MATRIX):
            return whole
        if whole.type in _LINEAR:
            return self.operator(TRANSPOSE, wanted, whole)
        if whole.type in (_INTS, _REALS):
            op = whole.owner
            if isinstance(op, stan.PromoteOp) and op.parent is self.block:
                whole = op.operands[0]
                self.block.erase_op(op)
            return self.call("to_vector" if wanted == stan.VECTOR else "to_row_vector", wanted, whole)
        raise Prevented("arithmetic needs vectors, not arrays of containers")

    def _promoted(self, op: stan.PromoteOp) -> SSAValue:
        operand = op.operands[0]
        if op.results[0].type != stan.REAL or operand.type != stan.INT:
            raise Prevented("complex numbers are left as they are")
        whole = self.each(operand)
        return self.operator(stan.PromoteOp, _REALS, whole) if whole.type == _INTS else whole

    # ------------------------------------------------------------ indices

    def _indexed(self, op: stan.IndexOp) -> SSAValue:
        """`x[n]`, `x[n + c]`, `x[J[n]]`, with further indices that are the same in all iterations."""
        if self.varies(op.value):
            raise Prevented("an index is taken of something that is computed anew in each iteration")
        base = self.same(op.value)
        kinds, operands = self.whole_indices(op.kinds, op.indices, self.span.facts.sizes(op.value))
        if not kinds:
            return base
        type_ = stan.indexed(base.type, kinds)
        assert type_ is not None
        return self.emit(stan.IndexOp(base, tuple(kinds), operands, type_, location=self.location))

    def whole_indices(
        self, kinds: ArrayAttr[StringAttr], indices: Sequence[SSAValue], sizes: Sequence[LinearForm | None]
    ) -> tuple[list[str], list[SSAValue]]:
        """Kinds and operands that select what all iterations together select; trailing `:` are left out."""
        remaining = iter(indices)
        new_kinds: list[str] = []
        operands: list[SSAValue] = []
        found = False
        for number, kind in enumerate(kinds):
            taken = [next(remaining) for _ in range(stan.variables.INDEX_OPERANDS[kind.data])]
            if not any(self.varies(index) for index in taken):
                self._unvarying_index(kind.data, taken, sizes[number])
                new_kinds.append(kind.data)
                operands += [self.same(index) for index in taken]
                continue
            if found:
                raise Prevented("two indices of a container depend on the iteration")
            if kind.data != "single":
                raise Prevented("a range of indices depends on the iteration")
            if any(earlier != "single" for earlier in new_kinds):
                raise Prevented("columns are not taken one after the other")
            found = True
            new_kind, new_operands = self._varying_index(taken[0], sizes[number])
            new_kinds.append(new_kind)
            operands += new_operands
        while new_kinds and new_kinds[-1] == "all":
            new_kinds.pop()
        return new_kinds, operands

    def _unvarying_index(self, kind: str, indices: Sequence[SSAValue], size: LinearForm | None) -> None:
        if kind == "all" or (kind == "single" and self.span.facts.in_range(indices[0], size)):
            return
        self.risk("an index")

    def _varying_index(self, index: SSAValue, size: LinearForm | None) -> tuple[str, list[SSAValue]]:
        if (covered := self.covered(index, size)) is None:
            if not isinstance(index.owner, stan.IndexOp | stan.ReadOp):
                raise Prevented("an index is neither the iteration's number plus a constant nor read from an array")
            if self.strict:
                raise Prevented("an index read from an array may be an error, which this block tells in its own order")
            return "multiple", [self.each(index)]
        if covered.whole:
            return "all", []
        if self.strict and not covered.surely_inside:
            raise Prevented("an index may be an error, which this block tells in its own order")
        return "between", [self._end(index, bound) for bound in (self.span.loop.lower, self.span.loop.upper)]

    def _end(self, index: SSAValue, bound: SSAValue) -> SSAValue:
        """What `n + c` is at one end of the loop."""
        facts = self.span.facts
        value = facts.form(index).plus(facts.form(self.span.index), -1).plus(facts.form(bound))
        if not value.terms:
            return self.emit(form.constant(value.constant, self.location))
        return self._copy(index, {self.span.index: self.bound(bound)})

    def covered(self, index: SSAValue, size: LinearForm | None) -> Covered | None:
        """What `n + c` covers of a dimension of a size; None if the index is something else."""
        facts, loop = self.span.facts, self.span.loop
        number = facts.form(self.span.index)
        rest = facts.form(index).plus(number, -1)
        if any(atom is self.span.index for atom, _ in rest.terms) or not self._is_offset(index):
            return None
        first, last = rest.plus(facts.form(loop.lower)), rest.plus(facts.form(loop.upper))
        if size is None:
            return Covered(False, False, index)
        whole = first == ONE and last == size
        inside = facts.gap(loop) is not None and facts.is_at_least(first, ONE) and facts.is_at_least(size, last)
        return Covered(whole, whole or inside, index)

    def _is_offset(self, index: SSAValue) -> bool:
        """Whether an index is `n`, plus or minus what is the same in all iterations and cannot throw."""
        if index is self.span.index:
            return True
        op = index.owner
        if isinstance(op, (ADD, SUB)):
            left, right = op.operands
            if self.varies(left):
                return self._is_offset(left) and self._is_plain(right)
            return isinstance(op, ADD) and self._is_plain(left) and self._is_offset(right)
        return False

    def _is_plain(self, value: SSAValue) -> bool:
        """A literal, a variable or a sum of such, which the loop does not change."""
        op = value.owner
        if value is self.span.index:
            return False
        if not isinstance(op, Operation) or isinstance(op, stan.ConstantOp):
            return True
        if isinstance(op, stan.ReadOp):
            return op.operands[0] not in self.span.written
        return isinstance(op, (ADD, SUB)) and all(self._is_plain(operand) for operand in op.operands)

    # ------------------------------------------------------------ operators

    def _binary(self, op: Operation) -> SSAValue:
        left, right = op.operands
        if op.results[0].type == stan.INT:
            raise Prevented("there is no arithmetic on arrays of ints")
        if isinstance(op, MUL) and _is_container(left) and _is_container(right):
            if op.results[0].type != stan.REAL:
                raise Prevented("each row is multiplied by a container")
            return self._product(left, right)
        if stan.scalar_of(op.results[0].type) != stan.REAL:
            raise Prevented("complex numbers are left as they are")
        both = self.varies(left) and self.varies(right)
        wholes = [self.linear(v) if self.varies(v) else self.same(v) for v in (left, right)]
        if both and _is_container(left) != _is_container(right):
            return self._scaled(op, left, wholes)
        if not both and any(_is_container(v) and not self.varies(v) for v in (left, right)):
            raise Prevented("a container that is the same for all rows is combined with each row")
        result = next(whole.type for whole, v in zip(wholes, (left, right), strict=True) if self.varies(v))
        return self.operator(self._whole_operator(op, both), result, *wholes)

    def _whole_operator(self, op: Operation, both: bool) -> type[Operation]:
        """Stan's operator on containers for one on scalars."""
        if isinstance(op, MUL):
            return BINARY[".*"] if both else MUL
        if isinstance(op, DIV):
            return DIV if not both and self.varies(op.operands[0]) else BINARY["./"]
        return BINARY[".^"] if isinstance(op, POW) else type(op)

    def _scaled(self, op: Operation, left: SSAValue, wholes: Sequence[SSAValue]) -> SSAValue:
        """`x[n] * A[n]`: each row times a number of its own."""
        scale, rows = wholes if not _is_container(left) else reversed(wholes)
        if not isinstance(op, MUL) or rows.type != stan.MATRIX:
            raise Prevented("each row is combined with a number of its own")
        if self.orientation != stan.VECTOR:
            scale = self.operator(TRANSPOSE, stan.VECTOR, scale)
        return self.call("diag_pre_multiply", stan.MATRIX, scale, rows)

    def _product(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """`X[n] * b`  →  `X * b`; also of `dot_product(X[n], b)` and `dot_product(X[n], Y[n])`."""
        left, right = _untransposed(left), _untransposed(right)
        if not self.varies(left):
            left, right = right, left
        rows = self.each(left)
        if rows.type != stan.MATRIX:
            raise Prevented("the elements of an array of vectors do not make a matrix")
        if self.varies(right):
            others = self.each(right)
            if others.type != stan.MATRIX:
                raise Prevented("the elements of an array of vectors do not make a matrix")
            self.risk("the number of columns")
            return self.oriented(self.call("rows_dot_product", stan.VECTOR, rows, others))
        factor = self.same(right)
        if self._columns(left) is None or self._columns(left) != self._size(right):
            self.risk("the number of columns")
        if factor.type not in _LINEAR:
            raise Prevented("the elements of an array do not make a vector")
        if factor.type == stan.ROW_VECTOR:
            factor = self.operator(TRANSPOSE, stan.VECTOR, factor)
        return self.oriented(self.operator(MUL, stan.VECTOR, rows, factor))

    def _columns(self, row: SSAValue) -> LinearForm | None:
        op = row.owner
        if isinstance(op, stan.IndexOp) and [kind.data for kind in op.kinds] in (["single"], ["single", "all"]):
            return self.span.facts.sizes(op.value)[-1]
        return None

    def _size(self, vector: SSAValue) -> LinearForm | None:
        sizes = self.span.facts.sizes(vector)
        return sizes[0] if sizes else None

    # ------------------------------------------------------------ functions

    def _is_elementwise(self, op: stan.CallOp) -> bool:
        """Whether a function is one of scalars, called with scalars, or with rows and giving a row."""
        if not _is_container(op.results[0]):
            return not any(_is_container(operand) for operand in op.operands)
        return self.library.gives(op.callee.data, [stan.REAL] * len(op.operands), stan.REAL)

    def _called(self, op: stan.CallOp) -> SSAValue:
        """A function of scalars that Stan also has element-wise."""
        name = op.callee.data
        if op.user is not None or op.callback is not None:
            raise Prevented(f"{name.partition('.')[0]} is not a function of the library")
        if kind_of(name).is_summed:
            raise Prevented(f"{name} of containers is one number, not one for each element")
        if self.calls.of(op) & ~_PURE:
            raise Prevented(f"{name} draws random numbers")
        if name == "dot_product":
            return self._product(*op.operands)
        result = op.results[0].type
        if result != stan.REAL and not _is_container(op.results[0]):
            raise Prevented(f"{name} gives an int")
        if self.strict and self.calls.of(op) & stan.Effect.THROWS:
            raise Prevented(f"{name} may be an error, which this block tells in its own order")
        if not self._is_elementwise(op):
            raise Prevented(f"{name} has no element-wise form for these arguments")
        wholes = [self.linear(v) if self.varies(v) else self.same(v) for v in op.operands]
        wanted = next(whole.type for whole, v in zip(wholes, op.operands, strict=True) if self.varies(v))
        fits = not _is_container(op.results[0]) or wanted == stan.MATRIX
        if not fits or not self.library.has(op, [whole.type for whole in wholes], wanted):
            raise Prevented(f"{name} has no element-wise form for these arguments")
        return self.emit(call_like(op, wholes, wanted))


# ---------------------------------------------------------------- questions about ops


def _is_defined_outside(value: SSAValue, op: Operation) -> bool:
    """Whether a value that is used in `op` or its regions comes from outside of it."""
    owner = value.owner
    if isinstance(owner, Block):
        parent = owner.parent_op()
        return parent is None or not op.is_ancestor(parent)
    return not op.is_ancestor(owner)


def _position(value: SSAValue) -> int:
    """Which of its op's results a value is."""
    assert isinstance(value, OpResult)
    return value.index


def _is_container(value: SSAValue) -> bool:
    return stan.dimensions(value.type) > 0


def _untransposed(value: SSAValue) -> SSAValue:
    return value.owner.operands[0] if isinstance(value.owner, TRANSPOSE) else value


def _reason_of(op: Operation) -> str:
    if isinstance(op, form.LAZY):
        return "`?:`, `&&` and `||` choose anew in each iteration"
    symbol = getattr(op, "SYMBOL", "")
    return f"`{symbol}` has no form for whole containers here" if symbol else f"{op.name} has no form for containers"


def _kinds(names: Sequence[str]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(name) for name in names])


def call_like(op: stan.CallOp, operands: Sequence[SSAValue], result: Attribute) -> stan.CallOp:
    """The same call with containers for scalars: properties and the bits of the arguments stay."""
    return applied_to(op, operands, (result,))
