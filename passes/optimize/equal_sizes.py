"""Whether two sizes of the variable form are provably equal, and whether a value has the sizes of a declaration.

vector[N] v; ... v[1:N] = e;      `N` is read twice; nothing assigns it in between
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from ulam.dialects import stan
from ulam.passes.optimize.loop_copies import int_literal

_INT_OPERATORS = tuple(stan.BINARY_OPERATORS[symbol] for symbol in ("+", "-", "*"))
_ELEMENTWISE = tuple(stan.BINARY_OPERATORS[symbol] for symbol in ("+", "-", ".*", "./", ".^"))
_FILLED = {"rep_vector": 1, "rep_row_vector": 1, "rep_matrix": 2, "rep_array": 0,
           "zeros_vector": 1, "ones_vector": 1, "zeros_row_vector": 1, "ones_row_vector": 1}  # fmt: skip
"""Function → how many sizes it takes last; 0: all but the first argument."""


def declared_dims(declaration: stan.DeclareOp) -> list[SSAValue]:
    """Sizes of a variable's dimensions, as values; square types give theirs twice. Empty if none are declared."""
    sizes = list(declaration.sizes)
    assert isinstance(declaration.res.type, stan.VarType)
    if sizes and len(sizes) < stan.dimensions(declaration.res.type.element):
        sizes.append(sizes[-1])
    return sizes


def same_int(left: SSAValue, right: SSAValue) -> bool:
    """Whether two ints are provably equal. False says nothing."""
    if left is right:
        return True
    number = int_literal(left)
    if number is not None:
        return number == int_literal(right)
    one, other = left.owner, right.owner
    if isinstance(one, stan.ReadOp) and isinstance(other, stan.ReadOp):
        return _same_unchanging_variable(one.var, other.var)
    if isinstance(one, _INT_OPERATORS) and type(one) is type(other):
        assert isinstance(other, Operation)
        return all(same_int(a, b) for a, b in zip(one.operands, other.operands, strict=True))
    return False


def _same_unchanging_variable(left: SSAValue, right: SSAValue) -> bool:
    """Whether reads of two variables, wherever they stand, give the same: one variable that is assigned once at most.

    The one assignment must stand where the variable is declared: in a loop inside of that it could run again. (Reading
    an int before its first assignment gives the smallest one, which is no size.)
    """
    one, other = left.owner, right.owner
    if isinstance(one, stan.GlobalOp) and isinstance(other, stan.GlobalOp):
        return one.var_name == other.var_name
    if left is not right or not isinstance(one, stan.DeclareOp):
        return False
    assignments = [use.operation for use in left.uses if isinstance(use.operation, stan.AssignOp)]
    return len(assignments) <= 1 and all(op.parent is one.parent for op in assignments)


def is_whole_slice(op: stan.AssignOp, declaration: stan.DeclareOp) -> bool:
    """Whether the indices of an assignment provably name all elements of the variable, in order."""
    operands = iter(op.indices)
    dims = declared_dims(declaration)
    if not dims:
        return False
    for kind, size in zip(op.kinds.data, dims, strict=False):
        match kind.data:
            case "all":
                pass
            case "from":
                if int_literal(next(operands)) != 1:
                    return False
            case "to":
                if not same_int(next(operands), size):
                    return False
            case "between":
                first, last = next(operands), next(operands)
                if int_literal(first) != 1 or not same_int(last, size):
                    return False
            case _:
                return False
    return True


def value_has_sizes(value: SSAValue, dims: Sequence[SSAValue]) -> bool:
    """Whether a container provably has the given sizes, if computing it does not throw."""
    op = value.owner
    if isinstance(op, stan.ReadOp):
        declaration = op.var.owner
        return isinstance(declaration, stan.DeclareOp) and _all_same(declared_dims(declaration), dims)
    if isinstance(op, stan.CallOp) and (count := _FILLED.get(op.callee.data)) is not None:
        return _all_same(op.operands[-count:] if count else op.operands[1:], dims)
    if isinstance(op, _ELEMENTWISE):
        return any(stan.dimensions(part.type) and value_has_sizes(part, dims) for part in op.operands)
    if isinstance(op, (stan.UNARY_OPERATORS["-"], stan.PromoteOp)):
        return value_has_sizes(op.operands[0], dims)
    if isinstance(op, stan.UNARY_OPERATORS["'"]):
        return value_has_sizes(op.operands[0], dims[::-1])
    if isinstance(op, (stan.ArrayOp, stan.RowVectorOp)) and len(dims) == 1:
        return int_literal(dims[0]) == len(op.operands)
    return False


def _all_same(left: Sequence[SSAValue], right: Sequence[SSAValue]) -> bool:
    return len(left) == len(right) and all(same_int(a, b) for a, b in zip(left, right, strict=True))
