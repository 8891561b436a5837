"""What a call means for the calls in the body of its function: autodiff arguments and dropped constants.

Stan's static rule says of each argument in a function's body whether it is autodiff if all formals were. At a call, an
argument in the body is autodiff only if it depends on a formal that is autodiff at this call. The lowering asks this of
one call after the other, `function-inlining` of all calls at once: both work on sets of formals as bits of an int.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ulam.dialects import stan
from ulam.library.functions import FunctionKind, kind_of


def dependence(value: SSAValue, known: dict[SSAValue, int], anything: int) -> int:
    """The formals that a value in a function's body depends on, for Stan's static rule. Value form.

    `known` gives the set of each formal, and remembers what was found. What is read from a variable, carried by a loop
    or chosen by a branch counts as depending on `anything`, the union over all formals; ints depend on none.
    """
    if (found := known.get(value)) is not None:
        return found
    if isinstance(value.type, stan.IntType):
        result = 0
    elif not isinstance(value.owner, Operation) or isinstance(value.owner, stan.ReadOp) or value.owner.regions:
        result = anything
    else:
        result = 0
        for operand in value.owner.operands:
            result |= dependence(operand, known, anything)
    known[value] = result
    return result


def body_drops_constants(function: stan.FuncOp, unnormalized: bool) -> bool:
    """Whether calls in the body of a user's function may drop constants, if the call itself is `unnormalized` or not.

    Only a density that is itself called unnormalised passes the dropping on; `_lp` functions, and a model, always do.
    """
    kind = kind_of(function.stan_name.data)
    return function.model is not None or kind is FunctionKind.LP or (unnormalized and kind.is_density)
