"""Logarithms of what exponentials have made are known without taking them.

    log(exp(u))                    →  u
    log(inv_logit(u))              →  log_inv_logit(u)          log1m(inv_logit(u))  →  log1m_inv_logit(u)
    lmultiply(k, inv_logit(u))     →  k * log_inv_logit(u)
    c ? log_inv_logit(u) : log1m_inv_logit(u)   →   log_inv_logit(c ? u : -u)
    log(c ? inv_logit(u) : 1 - inv_logit(u))    →   log_inv_logit(c ? u : -u)

Lowered code alone shows most of them: the transform of a parameter with a lower bound 0, or between 0 and 1, and the
density that takes its logarithm. The transform of the latter, `(u < 0 ? e : 1) / (1 + e)` with e = exp(-|u|), becomes
`inv_logit(u)` again, and `log1p(e)`, of its Jacobian, `log1p_exp_minus_magnitude(u)`: the derivatives of all these are
`inv_logit`, and `share-exponentials` makes one exponential of them.

What the exponential makes 0, 1 or infinity keeps its logarithm: -infinity or infinity, whatever u is; and that its
slope, which is infinite where a probability has become 1 (`log_of_zero`, `inv_logit_of_bounds`), or 1 / x overflows
(`log_given`). Otherwise results are nearer to the truth than those of rounded arguments: log1m(theta) for theta near 1.

An exponential of which nothing is needed but whether it is positive and finite, as of a mean that a density checks, is
not computed: `exp(u) > 0` is `u > -745.13`, exactly where it is rounded to 0.

What one arm of a branch in a loop takes the logarithm of, and the other one that of 1 less it, stays for
`logs-of-choices`, which makes one logarithm of both. Levels 3 and 4.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import known_constant, predicate_of
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import enclosing, is_inside, terminator
from ulam.passes.loops.effects import is_speculatable
from ulam.passes.loops.exponentials import BlockWriter
from ulam.passes.loops.tables import is_costly_function
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE


@record(frozen=True)
class LogsOfTransforms(TellingPass):
    """Writes logarithms of exponentials and of probabilities without a logarithm of their values."""

    name = "logs-of-transforms"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        return run_on(evaluate_of(module, self.name))


def run_on(function: func.FuncOp) -> bool:
    """Rewrites a function, operands before their users, and what stands in branches before these; whether any."""
    changed = False
    ops = list(ops_within(function))
    branches = [op for op in ops if type(op) is scf.IfOp]
    for op in (*(op for op in ops if type(op) is not scf.IfOp), *reversed(branches)):
        rule = _RULES.get(type(op))
        if rule is None or op.parent is None:
            continue
        if (new := rule(op)) is not None:
            replace_uses(op.results[0], new)
            discard(op)
            changed = True
    return changed


_INVERSES = ("inv_logit", "inv_logit_of_bounds")
_LOGIT_OF_0, _LOGIT_OF_1 = -745.1332191019412, 37.42994775023705
"""From where on `inv_logit` is 0 or 1. What of it shares an exponential with others is 1 earlier."""


def _function(value: SSAValue, *names: str) -> SSAValue | None:
    """The argument of one of the functions, if a value is what that gives."""
    op = value.owner
    return op.operands[0] if isinstance(op, rt.MathOp) and op.function.data in names else None


def _is_below_zero(condition: SSAValue, value: SSAValue) -> bool:
    op = condition.owner
    return (
        isinstance(op, arith.CmpfOp) and predicate_of(op) == "olt" and op.lhs is value and known_constant(op.rhs) == 0.0
    )


def _minus_magnitude(value: SSAValue) -> SSAValue | None:
    """u, if a value is `u < 0 ? u : -u`."""
    op = value.owner
    if not isinstance(op, arith.SelectOp):
        return None
    u, negated = op.lhs, op.rhs.owner
    is_magnitude = isinstance(negated, arith.NegfOp) and negated.operand is u and _is_below_zero(op.cond, u)
    return u if is_magnitude else None


# ---------------------------------------------------------------- what transforms are


def _divided(op: Operation) -> SSAValue | None:
    """(u < 0 ? e : 1) / (1 + e) → inv_logit_of_bounds(u)."""
    numerator, denominator = (operand.owner for operand in op.operands)
    if not isinstance(numerator, arith.SelectOp) or not isinstance(denominator, arith.AddfOp):
        return None
    power = numerator.lhs
    u = _function(power, "exp_minus_magnitude")
    if u is None or known_constant(numerator.rhs) != 1.0 or not _is_below_zero(numerator.cond, u):
        return None
    one, other = denominator.operands
    if (known_constant(one) != 1.0 or other is not power) and (known_constant(other) != 1.0 or one is not power):
        return None
    return _before(op).function("inv_logit_of_bounds", u)


def _plus_zero(op: Operation) -> SSAValue | None:
    """What is not negative, -0 neither, plus 0 is itself."""
    for value, other in (op.operands, tuple(op.operands)[::-1]):
        made = value.owner
        if known_constant(other) == 0.0 and isinstance(made, rt.MathOp) and made.function.data in ("exp", *_INVERSES):
            return value
    return None


def _exp(op: rt.MathOp) -> SSAValue | None:
    u = _minus_magnitude(op.operands[0])
    return None if u is None else _before(op).function("exp_minus_magnitude", u)


def _log1p(op: rt.MathOp) -> SSAValue | None:
    u = _function(op.operands[0], "exp_minus_magnitude")
    return None if u is None else _before(op).function("log1p_exp_minus_magnitude", u)


# ---------------------------------------------------------------- their logarithms


def _log(op: rt.MathOp) -> SSAValue | None:
    x = op.operands[0]
    if _is_chosen_from(op, x, "log1m"):
        return None
    if (whole := _without(x)) is not None:
        return _log_of_rest(op, whole, x)
    if isinstance(x.owner, arith.SelectOp):
        return _log_of_choice(op, x.owner)
    return _log_of(op, x, None)


def _log1m(op: rt.MathOp) -> SSAValue | None:
    x = op.operands[0]
    if _is_chosen_from(op, x, "log"):
        return None
    if (whole := _without(x)) is None:
        return _log_of_rest(op, x, None)
    if (u := _function(whole, *_INVERSES)) is None:
        return None
    write = _before(op)
    least = write.function("log_of_zero", write.difference(x, 1.0))
    return write.choice(write.equal(x, 1.0), least, write.function("log_inv_logit", u))


def _multiply_log(op: rt.MathOp) -> SSAValue | None:
    factor, x = op.operands
    logarithm = _log_of(op, x, factor)
    return None if logarithm is None else _before(op).product(factor, logarithm)


def _without(x: SSAValue) -> SSAValue | None:
    """p, if a value is 1 - p."""
    op = x.owner
    if isinstance(op, arith.SubfOp):
        return op.rhs if known_constant(op.lhs) == 1.0 else None
    if isinstance(op, arith.NegfOp) and isinstance(less := op.operand.owner, arith.SubfOp):
        return less.lhs if known_constant(less.rhs) == 1.0 else None
    return None


def _is_chosen_from(op: rt.MathOp, x: SSAValue, other: str) -> bool:
    """Whether one arm of a branch takes a logarithm of what iterations compute, and the other arm the `other` one."""
    branch = op.parent_op()
    loop = None if branch is None else enclosing(branch, (scf.ForOp, scf.WhileOp))
    if not isinstance(branch, scf.IfOp) or loop is None or not is_inside(x, loop):
        return False
    found = (use.operation for use in x.uses if isinstance(use.operation, rt.MathOp))
    return any(f.function.data == other and f.parent is not op.parent and f.parent_op() is branch for f in found)


def _log_of_choice(op: rt.MathOp, choice: arith.SelectOp) -> SSAValue | None:
    """log(c ? p : 1 - p), or the other way round; what `logs-of-choices` adds for the rounding of 1 - p is in it."""
    p, is_first = (choice.lhs, True) if _without(choice.rhs) is choice.lhs else (choice.rhs, False)
    if not is_first and _without(choice.lhs) is not choice.rhs:
        return None
    if (u := _function(p, "inv_logit")) is None:
        return None
    remark_on(LogsOfTransforms.name, op, "the logarithm of a probability is that of its logit", done=True)
    _forget_rounding(op, choice.cond, p)
    write = _before(op)
    ends = [write.number(_LOGIT_OF_0), write.number(-_LOGIT_OF_1)]
    arguments = [u, write.negated(u)]
    if not is_first:
        ends.reverse()
        arguments.reverse()
    z, end = write.choice(choice.cond, *arguments), write.choice(choice.cond, *ends)
    return write.choice(write.compared("ole", z, end), write.number(-inf), write.function("log_inv_logit", z))


def _forget_rounding(op: rt.MathOp, condition: SSAValue, p: SSAValue) -> None:
    """Takes what the rounding of 1 - p has lost away from a sum with a logarithm, where a condition chooses that."""
    for use in list(op.results[0].uses):
        total = use.operation
        if not isinstance(total, arith.AddfOp):
            continue
        constant_part = _function(total.operands[1 - use.index], "value_of")
        lost = constant_part.owner if constant_part is not None else None
        if not isinstance(lost, arith.SelectOp) or lost.cond is not condition:
            continue
        parts = [part.owner for part in (lost.lhs, lost.rhs) if known_constant(part) != 0.0]
        if len(parts) == 1 and isinstance(rest := parts[0], arith.SubfOp) and rest.rhs is p:
            replace_uses(total.result, op.results[0])
            discard(total)


def _log_of(op: rt.MathOp, x: SSAValue, factor: SSAValue | None) -> SSAValue | None:
    """log(x); with a factor what that is to be multiplied by, where 0 * log(0) is 0."""
    write = _before(op)
    is_exponential = (u := _function(x, "exp")) is not None
    whole = _without(x) if factor is not None else None
    if not is_exponential and (u := _function(x if whole is None else whole, *_INVERSES)) is None:
        return None
    assert u is not None
    told = "of an exponential is its argument" if is_exponential else "of a probability is that of its logit"
    remark_on(LogsOfTransforms.name, op, f"the logarithm {told}", done=True)
    least = write.number(-inf)
    if factor is not None:
        is_none = write.equal(factor, 0.0)
        if whole is not None and _function(whole, "inv_logit") is None:  # no slope is infinite where the factor is 0
            least = write.function("log_of_zero", write.choice(is_none, write.number(1.0), x))
        least = write.choice(is_none, write.number(0.0), least)
    if not is_exponential:
        logarithm = write.function("log_inv_logit" if whole is None else "log1m_inv_logit", u)
        if _function(x, "inv_logit") is not None:
            logarithm = write.function("log_given", x, logarithm)
        is_zero = write.equal(x, 0.0)
        if whole is not None and _function(whole, "inv_logit") is not None:
            is_zero = write.compared("oge", u, write.number(_LOGIT_OF_1))
        return write.choice(is_zero, least, logarithm)
    logarithm = write.choice(write.equal(x, inf), write.number(inf), write.function("log_given", x, u))
    return write.choice(write.equal(x, 0.0), least, logarithm)


def _log_of_rest(op: rt.MathOp, p: SSAValue, rest: SSAValue | None) -> SSAValue | None:
    """log(1 - p), of 1 - p itself or, without that, as log1m has it: the infinite slope at p = 1 has another sign."""
    u = _function(p, *_INVERSES)
    if u is None:
        return None
    remark_on(LogsOfTransforms.name, op, "the logarithm of a probability is that of its logit", done=True)
    write = _before(op)
    if _function(p, "inv_logit") is not None:  # whose slope is 0 where it is 1
        least, is_one = write.number(-inf), write.compared("oge", u, write.number(_LOGIT_OF_1))
    else:
        least = write.function("log_of_zero", write.difference(p, 1.0) if rest is None else rest)
        is_one = write.equal(p, 1.0)
    return write.choice(is_one, least, write.function("log1m_inv_logit", u))


# ---------------------------------------------------------------- checks of exponentials

_EXP_IS_0, _EXP_IS_FINITE = -745.1332191019412, 709.782712893384
"""Up to the first it is 0, up to the second finite."""


def _compared(op: Operation) -> SSAValue | None:
    """A comparison of exp(u) with 0 or an infinity as one of u, if all that is done with exp(u) are such."""
    assert isinstance(op, arith.CmpfOp)
    if (u := _function(op.lhs, "exp")) is None or not all(_is_check(use.operation) for use in op.lhs.uses):
        return None
    write, is_above_0 = _before(op), predicate_of(op) == "ogt" and known_constant(op.rhs) == 0.0
    if is_above_0:
        return write.compared("ogt", u, write.number(_EXP_IS_0))
    if predicate_of(op) == "olt":
        return write.compared("ole", u, write.number(_EXP_IS_FINITE))
    return write.compared("ord", u, u)


def _is_check(op: Operation) -> bool:
    if not isinstance(op, arith.CmpfOp):
        return False
    limit, predicate = known_constant(op.rhs), predicate_of(op)
    is_ordered = predicate == "ord" and op.lhs is op.rhs
    return is_ordered or (predicate, limit) in (("ogt", 0.0), ("oge", 0.0), ("ogt", -inf), ("olt", inf))


# ---------------------------------------------------------------- choices between them

_SIGNS = {"log_inv_logit": (False, False), "log1m_inv_logit": (False, True), "log1p_exp": (True, True)}
"""As log_inv_logit(z) or, with True first, its negative; with True second, z is the negative of the argument."""
_FEW = 6
"""Operations that an arm may have beside."""


def _chosen(op: Operation) -> SSAValue | None:
    """c ? log_inv_logit(u) : log1m_inv_logit(u) → log_inv_logit(c ? u : -u)."""
    if isinstance(op, scf.IfOp):
        if len(op.results) != 1 or not all(_computes_little(region) for region in op.regions):
            return None
        condition = op.cond
        one, other = (terminator(region.block).operands[0] for region in op.regions)
    else:
        condition, one, other = op.operands
    functions = [made for made in (one.owner, other.owner) if isinstance(made, rt.MathOp)]
    if len(functions) < 2 or not all(made.function.data in _SIGNS for made in functions):
        return None
    if not one.has_one_use() or not other.has_one_use():
        return None
    (left, left_argument), (right, right_argument) = (_SIGNS[made.function.data] for made in functions)
    if left is not right or isinstance(op, arith.SelectOp) and any(made.parent is not op.parent for made in functions):
        return None
    remark_on(LogsOfTransforms.name, op, "a choice of logarithms is the logarithm of a choice", done=True)
    if isinstance(op, scf.IfOp):
        assert op.parent is not None
        for region in op.regions:
            for inner in list(region.block.ops):
                if not isinstance(inner, scf.YieldOp):
                    inner.detach()
                    op.parent.insert_op_before(inner, op)
    write = _before(op)
    arguments = [
        write.negated(made.operands[0]) if is_negative else made.operands[0]
        for made, is_negative in zip(functions, (left_argument, right_argument), strict=True)
    ]
    result = write.function("log_inv_logit", write.choice(condition, *arguments))
    return write.negated(result) if left else result


def _computes_little(region: Region) -> bool:
    """Whether an arm computes one function, and little else."""
    if not region.blocks:
        return False
    ops = list(region.block.ops)[:-1]
    functions = sum(is_costly_function(op) or isinstance(op, arith.DivfOp) for op in ops)
    return functions <= 1 and len(ops) <= _FEW and all(is_speculatable(op) for op in ops)


class _Writer(BlockWriter):
    """Writes in front of an op."""

    def function(self, name: str, *arguments: SSAValue) -> SSAValue:
        new = rt.MathOp(name, arguments, location=self.before.location)
        self.block.insert_op_before(new, self.before)
        return new.results[0]

    def equal(self, x: SSAValue, number: float) -> SSAValue:
        return self._compare("oeq", x, self._number(number))

    def compared(self, predicate: str, x: SSAValue, y: SSAValue) -> SSAValue:
        return self._compare(predicate, x, y)

    def choice(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._select(condition, a, b)

    def negated(self, x: SSAValue) -> SSAValue:
        return self._negated(x)

    def product(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._real(arith.MulfOp, a, b)

    def difference(self, x: SSAValue, number: float) -> SSAValue:
        return self._real(arith.SubfOp, x, self._number(number))

    def number(self, value: float) -> SSAValue:
        return self._number(value)


def _before(op: Operation) -> _Writer:
    assert op.parent is not None
    return _Writer(op.parent, op)


_FUNCTIONS: dict[str, Callable[[rt.MathOp], SSAValue | None]] = {
    "exp": _exp,
    "log1p": _log1p,
    "log": _log,
    "log1m": _log1m,
    "lmultiply": _multiply_log,
    "multiply_log": _multiply_log,
}


def _math(op: Operation) -> SSAValue | None:
    assert isinstance(op, rt.MathOp)
    rule = _FUNCTIONS.get(op.function.data)
    return None if rule is None else rule(op)


_RULES: dict[type[Operation], Callable[[Operation], SSAValue | None]] = {
    arith.DivfOp: _divided,
    arith.AddfOp: _plus_zero,
    arith.CmpfOp: _compared,
    arith.SelectOp: _chosen,
    scf.IfOp: _chosen,
    rt.MathOp: _math,
}
