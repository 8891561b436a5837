"""From a scalar density of the library to a vectorised call.

A call expands, in this order, to: the size check of all non-scalar arguments; the `require_*` checks, in argument
order; guards (`if (outside) return value;`); the summands of the returned expression. A summand is evaluated at the
granularity of its arguments: those that depend on scalar arguments only are evaluated once and count N times; the
others share one loop. Where constants may be dropped, a summand without an autodiff argument is left out; a summand
`kept_with(x, a, b)` is x, and left out if neither a nor b depends on an autodiff argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace

from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, stan
from ulam.dialects.walk import ops_within
from ulam.library.catalog import KEPT_WITH
from ulam.library.functions import FunctionKind, kind_of
from ulam.library.records import record
from ulam.library.requirements import REQUIREMENTS
from ulam.passes.errors import NotSupportedError
from ulam.passes.rewriting import discard
from ulam.passes.to_loops.indexing import Selection
from ulam.passes.to_loops.indexing import select as select_part
from ulam.passes.to_loops.inlining import (
    actual_argument,
    as_formal,
    depends_on_autodiff,
    effective_autodiff,
    inline,
    is_unnormalized,
)
from ulam.passes.to_loops.lowering import CallFrame, Lowering, all_scalar, is_density, is_requirement
from ulam.passes.to_loops.requirements import check_requirement
from ulam.passes.to_loops.values import (
    Container,
    Value,
    buffer_type,
    for_each_position,
    in_buffer,
    inner_rank,
    peel,
    total,
)

OF_ARRAYS = frozenset({"require_cholesky_factor_of_arrays"})
"""What is asked for only where a call stands for several."""

ADD, SUB, NEG = stan.BINARY_OPERATORS["+"], stan.BINARY_OPERATORS["-"], stan.UNARY_OPERATORS["-"]


@record
class Template:
    """A density function taken apart. `needs`: op → the formals (by number) that it depends on."""

    checks: list[stan.CallOp] = field(default_factory=list)
    guards: list[stan.IfOp] = field(default_factory=list)
    summands: list[tuple[bool, SSAValue]] = field(default_factory=list)  # (negative, value)
    ops: list[Operation] = field(default_factory=list)
    needs: dict[Operation, frozenset[int]] = field(default_factory=dict)


def template_of(low: Lowering, function: stan.FuncOp) -> Template:
    """The template of a density function, made once for all units of a program."""
    if (found := low.templates.get(function)) is None:
        _spread_checks(low, function)
        found = low.templates[function] = _take_apart(function)
    return found


def _spread_checks(low: Lowering, function: stan.FuncOp) -> None:
    """Writes calls that give nothing in place: the checks of the function that is called are the density's own."""
    for op in list(function.body.block.ops):
        if not isinstance(op, stan.CallOp) or op.res is not None or is_requirement(op):
            continue
        assert op.definition is not None
        called = low.functions[op.definition.data].body.block
        values: dict[SSAValue, SSAValue] = dict(zip(called.args, op.arguments, strict=True))
        for inner in called.ops:
            if not isinstance(inner, stan.ReturnOp):
                function.body.block.insert_op_before(inner.clone(values), op)
        discard(op)


def _take_apart(function: stan.FuncOp) -> Template:
    template = Template()
    block = function.body.block
    for op in block.ops:
        template.needs[op] = _needs(template, op)
        if isinstance(op, stan.ReturnOp):
            assert op.value is not None
            _flatten(op.value, False, template.summands)
        elif isinstance(op, stan.IfOp) and isinstance(op.then.block.last_op, stan.ReturnOp):
            template.guards.append(op)
        elif is_requirement(op):
            assert isinstance(op, stan.CallOp)
            template.checks.append(op)
        else:
            template.ops.append(op)
    if not template.summands:
        raise NotSupportedError(f"density '{function.stan_name.data}' must end in one return", function.location)
    return template


def _needs(template: Template, op: Operation) -> frozenset[int]:
    found: set[int] = set()
    for inner in ops_within(op):
        for operand in inner.operands:
            owner = operand.owner
            if isinstance(owner, Operation):
                found |= template.needs.get(owner, frozenset())
            elif isinstance(owner.parent_op(), stan.FuncOp):
                found.add(operand.index)  # type: ignore[attr-defined]
    return frozenset(found)


def _flatten(value: SSAValue, negative: bool, summands: list[tuple[bool, SSAValue]]) -> None:
    """Summands over top-level `+` and `-`."""
    op = value.owner
    if isinstance(op, ADD | SUB):
        _flatten(op.operands[0], negative, summands)
        _flatten(op.operands[1], negative is not isinstance(op, SUB), summands)
    elif isinstance(op, NEG) and isinstance(op.operands[0].owner, ADD | SUB):
        _flatten(op.operands[0], not negative, summands)
    else:
        summands.append((negative, value))


# ---------------------------------------------------------------- expansion


@record
class Expansion:
    """One call being expanded."""

    low: Lowering
    op: stan.CallOp
    function: stan.FuncOp
    template: Template
    actuals: list[Value]
    autodiff: list[bool]
    unnormalized: bool
    vectorized: frozenset[int]  # formals whose actual has more dimensions than they
    count: SSAValue | None  # number of evaluations, i64; None if nothing is vectorised
    used: set[Operation] = field(default_factory=set)
    outside: SSAValue | None = None  # whether a guard on scalar arguments holds

    def is_elementwise(self, op: Operation) -> bool:
        """Whether an op of the template must be evaluated for every element."""
        return bool(self.template.needs[op] & self.vectorized)


def density(low: Lowering, op: stan.CallOp, *, to_target: bool = False) -> SSAValue | None:
    """Writes a call of a density; its value, or None if it was added to the target."""
    assert op.definition is not None
    function = low.functions[op.definition.data]
    if any(frame.function is function for frame in low.frames):
        raise NotSupportedError(f"recursive function '{function.stan_name.data}'", op.location)
    expansion = _prepare(low, op, function)
    frame = CallFrame(function, op.location, expansion.unnormalized)
    for formal, actual, bit in zip(function.body.block.args, expansion.actuals, expansion.autodiff, strict=True):
        low.env[formal] = actual
        frame.autodiff[formal] = bit
    low.frames.append(frame)
    location = low.builder.location
    result = _expand(expansion, to_target)
    low.builder.location = location
    low.frames.pop()
    return result


def _extra_rank(formal: object, actual: Value) -> int:
    if not isinstance(actual, Container):
        return 0
    rank = formal.rank.data + inner_rank(formal.element) if isinstance(formal, stan.ArrayType) else inner_rank(formal)  # type: ignore[arg-type]
    return len(actual.dims) - rank


def _prepare(low: Lowering, op: stan.CallOp, function: stan.FuncOp) -> Expansion:
    actuals: list[Value] = []
    vectorized: set[int] = set()
    shapes: list[Container] = []
    for n, (formal, ssa) in enumerate(zip(function.function_type.inputs, op.arguments, strict=True)):
        actual = low.value(ssa)
        if isinstance(actual, Container) and _extra_rank(formal, actual) > 0:
            vectorized.add(n)
            shapes.append(actual)
        elif isinstance(actual, Container):
            actual = actual_argument(low, function, n, actual, unchecked=op.unchecked is not None)
        elif isinstance(actual, SSAValue):
            actual = as_formal(low, actual, formal)
        actuals.append(actual)
    count = None
    if shapes:
        first = shapes[0]
        extra = [_extra_rank(t, a) for t, a in zip(function.function_type.inputs, actuals, strict=True)]
        leading = max(extra)
        first = next(a for a, e in zip(actuals, extra, strict=True) if e == leading)
        assert isinstance(first, Container)
        dims = first.dims[:leading]
        for actual, e in zip(actuals, extra, strict=True):
            if e and actual is not first:
                assert isinstance(actual, Container)
                for x, y in zip(dims, actual.dims[:e], strict=True):
                    low.check_equal_size(op.callee.data, x, y)
        count = total(low.builder, dims)
    template = template_of(low, function)
    if op.unchecked is not None:
        template = replace(template, checks=[])
    return Expansion(
        low,
        op,
        function,
        template,
        actuals,
        effective_autodiff(low, op),
        is_unnormalized(low, op),
        frozenset(vectorized),
        count,
    )


def _kept_summands(expansion: Expansion) -> list[tuple[bool, SSAValue]]:
    """The summands that are not dropped."""
    summands = expansion.template.summands
    if not expansion.unnormalized:
        return summands
    frame = expansion.low.frames[-1]
    return [
        (negative, value)
        for negative, value in summands
        if any(depends_on_autodiff(frame, decisive) for decisive in _decides(value))
    ]


def _decides(summand: SSAValue) -> Sequence[SSAValue]:
    """What a summand is kept for: itself, or what its `kept_with` names."""
    op = summand.owner
    if isinstance(op, stan.CallOp) and op.callee.data == KEPT_WITH:
        return op.operands[1:]
    return (summand,)


def _mark_used(expansion: Expansion, values: Sequence[SSAValue]) -> None:
    """Collects the ops of the template that `values` are computed by."""
    work = list(values)
    while work:
        op = work.pop().owner
        if not isinstance(op, Operation):
            continue
        while op.parent is not expansion.function.body.block:
            parent = op.parent_op()
            assert parent is not None
            op = parent
        if op in expansion.used:
            continue
        expansion.used.add(op)
        for inner in ops_within(op):
            work.extend(inner.operands)


def _is_term_call(expansion: Expansion, value: SSAValue) -> bool:
    """A summand that is itself a call of a density: expanded in place, not evaluated to a number."""
    op = value.owner
    return isinstance(op, stan.CallOp) and is_density(op) and value.has_one_use() and not expansion.is_elementwise(op)


def _expand(expansion: Expansion, to_target: bool) -> SSAValue | None:
    low, template = expansion.low, expansion.template
    builder = low.builder
    is_dropped = expansion.unnormalized and not any(expansion.autodiff)
    summands = [] if is_dropped else _kept_summands(expansion)
    calls = [v for negative, v in summands if not negative and _is_term_call(expansion, v)]
    plain = [(negative, v) for negative, v in summands if v not in calls]
    unkept = _unkept(expansion, {v for _, v in summands}, is_dropped)
    unkept_calls = [v for v in unkept if _is_term_call(expansion, v)]
    roots = [v for _, v in plain]
    roots += [a for c in template.checks for a in c.arguments]
    roots += [a for v in (*calls, *unkept_calls) for a in v.owner.operands]  # type: ignore[union-attr]
    roots += [v for v in unkept if v not in unkept_calls]
    roots += [g.condition for g in template.guards]
    _mark_used(expansion, roots)
    for guard in template.guards:
        expansion.used.add(guard)

    once = [op for op in template.ops if op in expansion.used and not expansion.is_elementwise(op)]
    checked = replace(expansion, used=set())
    _mark_used(checked, [a for c in template.checks for a in c.arguments])
    low.block_ops(op for op in once if op in checked.used)
    for check in template.checks:
        if expansion.is_elementwise(check) or (expansion.count is None and check.callee.data in OF_ARRAYS):
            continue
        low.op(check)
    low.block_ops(op for op in once if op not in checked.used)  # they may fail where a check does, with less to say
    values: list[SSAValue] = []

    def sink(value: SSAValue) -> None:
        if to_target:
            builder.insert(ad.TargetAddOp(value))
        else:
            values.append(value)

    _scalar_part(expansion, plain, sink)
    if expansion.count is not None:
        _element_part(expansion, plain, sink, to_target)
    for value in unkept_calls:
        assert isinstance(value.owner, stan.CallOp)
        density(low, value.owner)
    _evaluate(expansion, [v for v in unkept if v not in unkept_calls])
    for value in calls:
        call = value.owner
        assert isinstance(call, stan.CallOp)
        result = density(low, call, to_target=to_target)
        if result is not None:
            values.append(result)
    if to_target:
        return None
    result = builder.f64(0.0)
    for n, value in enumerate(values):
        result = value if n == 0 else builder.addf(result, value)
    return result


def _unkept(expansion: Expansion, kept: set[SSAValue], is_dropped: bool) -> list[SSAValue]:
    """Summands that are dropped but must be evaluated, as that may throw.

    Calls of densities have requirements of their own. Where all is dropped, nothing else may look at the arguments'
    sizes; scalars have none.
    """
    every = is_dropped and not all_scalar(expansion.function)
    return [v for _, v in expansion.template.summands if v not in kept and (every or _is_term_call(expansion, v))]


def _evaluate(expansion: Expansion, values: Sequence[SSAValue]) -> None:
    """Computes values, for each element where that matters, for the sake of their errors alone."""
    low = expansion.low
    ops = [value.owner for value in values if isinstance(value.owner, Operation)]
    for op in ops:
        if not expansion.is_elementwise(op):
            low.value(op.results[0])
    elementwise = [op.results[0] for op in ops if expansion.is_elementwise(op)]
    if not elementwise:
        return
    computed = _element_ops(expansion, elementwise, [], [])

    def body(k: SSAValue, elements: list[SSAValue], _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        _bind_elements(expansion, k, elements)
        low.block_ops(computed)
        for value in elementwise:
            low.value(value)
        return ()

    _loop(expansion, body, [])


def _signed(expansion: Expansion, negative: bool, value: SSAValue) -> SSAValue:
    builder = expansion.low.builder
    result = builder.to_real(expansion.low.scalar(value))
    return builder.negf(result) if negative else result


def _masked(expansion: Expansion, term: SSAValue, outside: SSAValue | None) -> SSAValue:
    builder = expansion.low.builder
    return term if outside is None else builder.select(outside, builder.f64(0.0), term)


def _guards(
    expansion: Expansion, elementwise: bool, add: Callable[[SSAValue], None], outside: SSAValue | None
) -> SSAValue | None:
    """Adds the values of guards; returns the condition that one of them holds (i1), None if there is none."""
    low, builder = expansion.low, expansion.low.builder
    for guard in expansion.template.guards:
        if expansion.is_elementwise(guard) is not elementwise:
            continue
        condition = builder.truth(low.scalar(guard.condition))
        block = guard.then.block
        terminator = block.last_op
        assert isinstance(terminator, stan.ReturnOp) and terminator.value is not None
        low.block_ops(op for op in block.ops if op is not terminator)
        value = builder.to_real(low.scalar(terminator.value))
        if outside is not None:
            condition_here = builder.both(condition, builder.invert(outside))
            add(builder.select(condition_here, value, builder.f64(0.0)))
            outside = builder.either(outside, condition)
        else:
            add(builder.select(condition, value, builder.f64(0.0)))
            outside = condition
    return outside


def _scalar_part(
    expansion: Expansion, summands: Sequence[tuple[bool, SSAValue]], sink: Callable[[SSAValue], None]
) -> None:
    """Guards and summands that depend on scalar arguments only: nothing where there is no element, even if infinite."""
    builder = expansion.low.builder
    count = expansion.count
    times = empty = None
    if count is not None:
        times, empty = builder.to_real(count), builder.cmpi("eq", count, builder.i64(0))

    def add(value: SSAValue) -> None:
        sink(value if times is None else _masked(expansion, builder.mulf(times, value), empty))

    outside = _guards(expansion, False, lambda value: sink(_masked(expansion, value, empty)), None)
    expansion.outside = outside
    for negative, value in summands:
        op = value.owner
        if isinstance(op, Operation) and expansion.is_elementwise(op):
            continue
        if not isinstance(op, Operation) and value.index in expansion.vectorized:  # type: ignore[attr-defined]
            continue
        add(_masked(expansion, _signed(expansion, negative, value), outside))


def _element_part(
    expansion: Expansion, summands: Sequence[tuple[bool, SSAValue]], sink: Callable[[SSAValue], None], to_target: bool
) -> None:
    """One loop over the elements: checks, guards, summands.

    Where errors must come in the program's order (`low.precise`), each check gets a loop of its own before.
    """
    low, template = expansion.low, expansion.template
    builder = low.builder
    checks = [c for c in template.checks if expansion.is_elementwise(c)]
    if low.precise:
        for check in checks:
            _scan(expansion, check)
        checks = []
    terms = [
        (negative, v)
        for negative, v in summands
        if (isinstance(v.owner, Operation) and expansion.is_elementwise(v.owner))
        or (not isinstance(v.owner, Operation) and v.index in expansion.vectorized)  # type: ignore[attr-defined]
    ]
    guards = [g for g in template.guards if expansion.is_elementwise(g)]
    if not (terms or guards or checks):
        return
    ops = _element_ops(expansion, [v for _, v in terms], checks, guards)

    def body(k: SSAValue, elements: list[SSAValue], carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        _bind_elements(expansion, k, elements)
        low.block_ops(ops)
        for check in checks:
            _check_element(expansion, check, k)
        found: list[SSAValue] = []
        outside = _guards(expansion, True, found.append, expansion.outside)
        for negative, value in terms:
            found.append(_masked(expansion, _signed(expansion, negative, value), outside))
        sum_: SSAValue | None = None
        for value in found:
            sum_ = value if sum_ is None else builder.addf(sum_, value)
        if sum_ is None:
            return carried
        if to_target:
            builder.insert(ad.TargetAddOp(sum_))
            return ()
        return (builder.addf(carried[0], sum_, reassociate=True),)

    results = _loop(expansion, body, [] if to_target else [builder.f64(0.0)])
    if not to_target:
        sink(results[0])


def _element_ops(
    expansion: Expansion, terms: Sequence[SSAValue], checks: Sequence[stan.CallOp], guards: Sequence[stan.IfOp]
) -> list[Operation]:
    """Ops of the template, in order, that have to be evaluated for every element."""
    needed = replace(expansion, used=set())
    roots = [*terms, *(a for c in checks for a in c.arguments), *(g.condition for g in guards)]
    _mark_used(needed, roots)
    for guard in guards:
        _mark_used(needed, [o for inner in ops_within(guard) for o in inner.operands])
    return [op for op in expansion.template.ops if op in needed.used and expansion.is_elementwise(op)]


def _scan(expansion: Expansion, check: stan.CallOp) -> None:
    """A loop of one check over all elements."""
    low = expansion.low
    ops = _element_ops(expansion, [], [check], [])

    def body(k: SSAValue, elements: list[SSAValue], _: Sequence[SSAValue]) -> Sequence[SSAValue]:
        _bind_elements(expansion, k, elements)
        low.block_ops(ops)
        _check_element(expansion, check, k)
        return ()

    _loop(expansion, body, [])


def _check_element(expansion: Expansion, check: stan.CallOp, k: SSAValue) -> None:
    """The check of element `k`, which the message names."""
    low = expansion.low
    if check.callee.data not in REQUIREMENTS or not all(isinstance(low.env[a], SSAValue) for a in check.arguments):
        low.op(check)
        return
    position = low.builder.add(k, low.builder.i64(1))
    arguments = [low.scalar(a) for a in check.arguments]
    check_requirement(low, check, arguments, position)


# ---------------------------------------------------------------- elements of arguments


def _loop(expansion: Expansion, body, initial: Sequence[SSAValue], *, cold: bool = False) -> Sequence[SSAValue]:  # noqa: ANN001
    """A loop over the elements of the vectorised arguments."""
    low = expansion.low
    builder = low.builder
    scalars = [
        a
        for n, a in enumerate(expansion.actuals)
        if n in expansion.vectorized and not inner_rank_of_formal(expansion, n)
    ]
    if len(scalars) == len(expansion.vectorized):
        containers = [a for a in scalars if isinstance(a, Container)]
        return for_each_position(builder, containers, body, initial, cold=cold)
    assert expansion.count is not None
    return builder.for_loop(
        builder.i64(0), expansion.count, lambda k, carried: body(k, [], carried), initial, cold=cold
    )


def inner_rank_of_formal(expansion: Expansion, n: int) -> int:
    """Dimensions of formal number `n`."""
    formal = list(expansion.function.function_type.inputs)[n]
    return formal.rank.data + inner_rank(formal.element) if isinstance(formal, stan.ArrayType) else inner_rank(formal)


def _bind_elements(expansion: Expansion, k: SSAValue, elements: Sequence[SSAValue]) -> None:
    """Gives the formals their values for element `k`."""
    low = expansion.low
    inputs = list(expansion.function.function_type.inputs)
    block = expansion.function.body.block
    remaining = iter(elements)
    for n in sorted(expansion.vectorized):
        actual = expansion.actuals[n]
        assert isinstance(actual, Container)
        if not elements or inner_rank_of_formal(expansion, n):
            if not inner_rank_of_formal(expansion, n):
                low.env[block.args[n]] = as_formal(low, actual.at([k]), inputs[n])
                continue
            base = actual if actual.cheap else low.own(actual)
            assert isinstance(base, Container)
            low.env[block.args[n]] = select_part(low, base, [Selection(k)], peel(base.type, 1))
        else:
            low.env[block.args[n]] = as_formal(low, next(remaining), inputs[n])


def vectorized_function(low: Lowering, op: stan.CallOp, function: stan.FuncOp, arguments: Sequence[Value]) -> Value:
    """Distribution functions over containers: `_lcdf` and `_lccdf` are sums, `_cdf` products, `_rng` containers."""
    builder = low.builder
    inputs = list(function.function_type.inputs)
    containers = [a for a in arguments if isinstance(a, Container)]
    for other in containers[1:]:
        low.check_equal_sizes(op.callee.data, containers[0], other)

    def element(values: Sequence[SSAValue]) -> SSAValue:
        iterator = iter(values)
        elements = [a if isinstance(a, SSAValue) else next(iterator) for a in arguments]
        scalars = [as_formal(low, e, t) for e, t in zip(elements, inputs, strict=True)]
        result = inline(low, function, scalars, op.location, False, effective_autodiff(low, op))
        assert isinstance(result, SSAValue)
        return result

    if kind_of(op.callee.data) is FunctionKind.RNG:
        assert op.res is not None
        first = containers[0]
        out = builder.alloc(total(builder, first.dims), buffer_type(op.res.type))

        def draw(k: SSAValue, values: list[SSAValue], _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            builder.store(element(values), out, k, initial=True)
            return ()

        for_each_position(builder, containers, draw)
        return in_buffer(builder, op.res.type, first.dims, out)
    is_product = kind_of(op.callee.data) is FunctionKind.CDF

    def accumulate(_: SSAValue, values: list[SSAValue], carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        term = element(values)
        combined = builder.mulf(carried[0], term) if is_product else builder.addf(carried[0], term, reassociate=True)
        return (combined,)

    return for_each_position(builder, containers, accumulate, [builder.f64(1.0 if is_product else 0.0)])[0]
