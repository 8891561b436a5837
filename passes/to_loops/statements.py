"""Statements of the `stan` dialect in value form: variables, control flow, target, printing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt, stan
from ulam.dialects.walk import ops_of
from ulam.library.statuses import FATAL
from ulam.passes.analysis.nesting import terminator
from ulam.passes.errors import NotSupportedError
from ulam.passes.to_loops.indexing import Selection
from ulam.passes.to_loops.indexing import select as select_part
from ulam.passes.to_loops.lowering import Holder, Lowering, ProfileKey, Storage, handles, profile_key
from ulam.passes.to_loops.shapes import (
    carried_parts,
    check_shape,
    from_carried_parts,
    refuse_arrays_of_tuples,
    sizes_vary_as,
    unassigned_value,
)
from ulam.passes.to_loops.sizes import checked_sizes, declared_dims, plain_sizes
from ulam.passes.to_loops.values import (
    Container,
    Value,
    for_each_element,
    peel,
    rank_of,
)

# ---------------------------------------------------------------- variables


@handles(stan.DeclareOp)
def declare(low: Lowering, op: stan.DeclareOp) -> None:
    """A variable that stays a variable: one that is assigned in part."""
    type_ = op.res.type.element
    if isinstance(type_, stan.TupleType):
        raise NotSupportedError("assigning to a part of a field of a tuple is not supported yet", op.location)
    refuse_arrays_of_tuples(type_, op.location)
    low.env[op.res] = low.new_storage(op.told_name, type_, declared_dims(low, op))


@handles(stan.GlobalOp)
def global_(low: Lowering, op: stan.GlobalOp) -> None:
    low.env[op.res] = low.globals[op.var_name.data]


@handles(stan.ReadOp)
def read(low: Lowering, op: stan.ReadOp) -> None:
    variable = low.env[op.var]
    if isinstance(variable, Holder):
        low.env[op.res] = variable.value
        return
    assert isinstance(variable, Storage)
    value = low.read_storage(variable)
    if isinstance(value, Container) and low.assignments.is_before(op.var, op):
        value.variables = frozenset()  # it may be used where it lies
    low.define(op.res, value)


@handles(stan.UninitializedOp)
def uninitialized(low: Lowering, op: stan.UninitializedOp) -> None:
    type_ = op.res.type
    if op.var_name is None:
        sizes = [low.size(s) for s in op.sizes]
    else:
        sizes = checked_sizes(low, op.var_name.data, type_, op.sizes)
    low.env[op.res] = unassigned_value(low, type_, sizes)


@handles(stan.AssertShapeOp)
def assert_shape(low: Lowering, op: Operation) -> None:
    """The size check of a whole assignment to a variable that became a value; the sizes were checked where declared."""
    value = low.value(op.operands[0])
    name = op.properties["var_name"].data  # type: ignore[attr-defined]
    sizes = plain_sizes(low, op.results[0].type, op.operands[1:])
    low.define(op.results[0], check_shape(low, name, value, sizes))


@handles(stan.DefineOp)
def define_global(low: Lowering, op: Operation) -> None:
    """The final value of a global variable that became a value."""
    name = op.properties["var_name"].data  # type: ignore[attr-defined]
    low.globals[name] = Holder(name, low.own(low.value(op.operands[0])))


# ---------------------------------------------------------------- control flow


def carried(low: Lowering, initial: Sequence[SSAValue]) -> tuple[list[Value], list[SSAValue]]:
    """Initial values of carried variables: as values (shapes), and as SSA values."""
    values = [sizes_vary_as(low.handed_on(low.value(v)), low.value(v)) for v in initial]
    return values, [ssa for v in values for ssa in carried_parts(v, v)]


def _passed_on(low: Lowering, shapes: Sequence[Value], values: Sequence[SSAValue]) -> list[SSAValue]:
    return [p for s, v in zip(shapes, values, strict=True) for p in carried_parts(s, low.handed_on(low.value(v)))]


def region_ops(low: Lowering, block: Block, shapes: Sequence[Value]) -> list[SSAValue]:
    """Lowers a region; returns the carried parts of what its terminator passes on."""
    end = block.last_op
    low.block_ops(op for op in block.ops if op is not end)
    if not isinstance(end, stan.YieldOp):
        raise NotSupportedError("a region must end in stan.yield here", low.builder.location)
    return _passed_on(low, shapes, end.arguments)


def _bind(low: Lowering, arguments: Sequence[SSAValue], shapes: Sequence[Value], parts: Sequence[SSAValue]) -> None:
    iterator = iter(parts)
    for argument, shape in zip(arguments, shapes, strict=True):
        low.env[argument] = from_carried_parts(low, shape, iterator)


@handles(stan.IfOp)
def if_(low: Lowering, op: stan.IfOp) -> None:
    condition = low.builder.truth(low.scalar(op.condition))
    _branch(low, condition, list(op.res), op.then.block, op.otherwise.block)


@handles(stan.SelectOp)
def select(low: Lowering, op: stan.SelectOp) -> None:
    condition = low.builder.truth(low.scalar(op.condition))
    _branch(low, condition, [op.res], op.then.block, op.otherwise.block)


def _branch(low: Lowering, condition: SSAValue, results: list, then: Block, otherwise: Block) -> None:  # noqa: ANN001
    known = low.builder.known.get(condition)
    if known is not None:
        block = then if known else otherwise
        low.block_ops(ops_of(block)[:-1])
        for result, operand in zip(results, terminator(block).operands, strict=True):
            low.env[result] = low.value(operand)
        return
    if len(results) == 1 and _speculatable(then) and _speculatable(otherwise):
        low.block_ops(ops_of(then)[:-1])
        low.block_ops(ops_of(otherwise)[:-1])
        a, b = low.value(terminator(then).operands[0]), low.value(terminator(otherwise).operands[0])
        if isinstance(a, SSAValue) and isinstance(b, SSAValue):
            low.env[results[0]] = low.builder.select(condition, a, b)
            return
    shapes: list[list[Value]] = []

    def side(block: Block) -> Callable[[], Sequence[SSAValue]]:
        def write() -> Sequence[SSAValue]:
            low.block_ops(ops_of(block)[:-1])
            values = [sizes_vary_as(low.handed_on(low.value(v)), low.value(v)) for v in terminator(block).operands]
            shapes.append(values)
            return [p for v in values for p in low.flatten(v)]

        return write

    parts = low.builder.if_else(condition, side(then), side(otherwise))
    iterator = iter(parts)
    for result, shape, other in zip(results, *shapes, strict=True):
        low.env[result] = sizes_vary_as(low.unflatten(shape, iterator), shape, other)


_CHEAP = (stan.ConstantOp, stan.PromoteOp, stan.ReadOp, stan.YieldOp, stan.UNARY_OPERATORS["-"]) + tuple(
    stan.BINARY_OPERATORS[s] for s in ("+", "-", "*", "==", "!=", "<", "<=", ">", ">="))  # fmt: skip


def _speculatable(block: Block) -> bool:
    """Whether both sides of a branch may be computed and one chosen: a few scalar ops that cannot fail."""
    count = 0
    for op in block.ops:
        count += 1
        if count > 6 or type(op) not in _CHEAP:
            return False
        if any(
            isinstance(r.type, stan.VectorType | stan.RowVectorType | stan.MatrixType | stan.ArrayType | stan.TupleType)
            for r in op.results
        ):
            return False
    return True


@handles(stan.AndOp, stan.OrOp)
def lazy_logic(low: Lowering, op: stan.AndOp | stan.OrOp) -> None:
    builder = low.builder
    left = builder.truth(low.scalar(op.left))
    block = op.right.block

    def right() -> Sequence[SSAValue]:
        low.block_ops(ops_of(block)[:-1])
        return (builder.truth(low.scalar(terminator(block).operands[0])),)

    def shortcut() -> Sequence[SSAValue]:
        return (builder.i1(isinstance(op, stan.OrOp)),)

    if _speculatable(block):
        value = right()[0]
        condition = builder.both(left, value) if isinstance(op, stan.AndOp) else builder.either(left, value)
    elif isinstance(op, stan.AndOp):
        condition = builder.if_else(left, right, shortcut)[0]
    else:
        condition = builder.if_else(left, shortcut, right)[0]
    low.env[op.res] = builder.boolean(condition)


@handles(stan.ForOp)
def for_(low: Lowering, op: stan.ForOp) -> None:
    builder = low.builder
    lower = low.integer(op.lower)
    upper = low.integer(op.upper)
    shapes, initial = carried(low, op.initial)
    block = op.body.block

    def body(i: SSAValue, parts: Sequence[SSAValue]) -> Sequence[SSAValue]:
        variable = builder.truncate(i)
        low.env[block.args[0]] = variable
        low.ranges[i] = (lower, upper)
        _bind(low, block.args[1:], shapes, parts)
        return region_ops(low, block, shapes)

    results = builder.for_loop(lower, builder.add(upper, builder.i64(1)), body, initial)
    _bind(low, op.res, shapes, results)


@handles(stan.ForEachOp)
def for_each(low: Lowering, op: stan.ForEachOp) -> None:
    builder = low.builder
    container = low.own(low.value(op.container))
    assert isinstance(container, Container)
    shapes, initial = carried(low, op.initial)
    block = op.body.block
    element_type = block.args[0].type

    def iteration(element: Value, parts: Sequence[SSAValue]) -> Sequence[SSAValue]:
        low.env[block.args[0]] = element
        _bind(low, block.args[1:], shapes, parts)
        return region_ops(low, block, shapes)

    if not rank_of(element_type):
        results = for_each_element(builder, container, lambda _, element, parts: iteration(element, parts), initial)
    else:

        def body(i: SSAValue, parts: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return iteration(select_part(low, container, [Selection(i)], peel(container.type, 1)), parts)

        results = builder.for_loop(builder.i64(0), container.dims[0], body, initial)
    _bind(low, op.res, shapes, results)


@handles(stan.WhileOp)
def while_(low: Lowering, op: stan.WhileOp) -> None:
    builder = low.builder
    shapes, initial = carried(low, op.initial)
    types = [v.type for v in initial]
    before, after = Block(arg_types=types), Block(arg_types=types)
    condition_block, body_block = op.condition.block, op.body.block
    with builder.inside(before):
        _bind(low, condition_block.args, shapes, before.args)
        end = condition_block.last_op
        assert isinstance(end, stan.ConditionOp)
        low.block_ops(o for o in condition_block.ops if o is not end)
        passed = _passed_on(low, shapes, end.arguments)
        builder.emit(scf.ConditionOp, (builder.truth(low.scalar(end.condition)), *passed))
    with builder.inside(after):
        _bind(low, body_block.args, shapes, after.args)
        builder.emit(scf.YieldOp, region_ops(low, body_block, shapes))
    loop = builder.emit(scf.WhileOp, initial, types, regions=(Region(before), Region(after)))
    _bind(low, op.res, shapes, loop.results)


@handles(stan.ProfileOp)
def profile(low: Lowering, op: stan.ProfileOp) -> None:
    """The region's body, in a branch of its own: see `ad.profile_begin`. What it hands on is computed inside."""
    block = op.body.block
    end = block.last_op
    results = end.arguments if isinstance(end, stan.YieldOp) else ()
    ops = [o for o in block.ops if not isinstance(o, stan.YieldOp)]
    if low.profiles is None or profile_key(op.profile_name, op.location) not in low.profiles:  # of a library's function
        low.block_ops(ops)
        for result, value in zip(op.res, results, strict=True):
            low.env[result] = low.value(value)
        return
    builder = low.builder
    begin = begin_profile(low, profile_key(op.profile_name, op.location))
    shapes: list[Value] = []
    parts: list[SSAValue] = []

    def body() -> Sequence[SSAValue]:
        low.block_ops(ops)
        shapes.extend(sizes_vary_as(low.handed_on(low.value(v)), low.value(v)) for v in results)
        parts.extend(part for value in shapes for part in low.flatten(value))
        return parts

    handed_on = iter(builder.if_else(begin, body, lambda: [_placeholder(low, part.type) for part in parts]))
    branch = builder.block.last_op
    assert isinstance(branch, scf.IfOp)
    ad.ProfileAttr().put(branch)
    end_profile(low, begin)
    for result, shape in zip(op.res, shapes, strict=True):
        low.env[result] = low.unflatten(shape, handed_on)


def begin_profile(low: Lowering, key: ProfileKey) -> SSAValue:
    """Enters a region; a name that is active already is an error."""
    assert low.profiles is not None
    named = next(number for other, number in low.profiles.items() if other[0] == key[0])
    begin = low.builder.insert(ad.ProfileBeginOp(low.profiles[key], named, gradient=low.differentiated)).res
    low.check(begin, FATAL, "{text}")
    return begin


def end_profile(low: Lowering, begin: SSAValue) -> None:
    """Leaves the region."""
    entered = begin.owner
    assert isinstance(entered, ad.ProfileBeginOp)
    low.builder.insert(ad.ProfileEndOp(begin, entered.region, entered.named, gradient=entered.gradient is not None))


def _placeholder(low: Lowering, type_: Attribute) -> SSAValue:
    """A value for the side of a branch that is never taken."""
    if type_ == f64:
        return low.builder.f64(0.0)
    if isinstance(type_, rt.BufferType):
        return low.builder.insert(rt.NullOp(type_)).res
    return low.builder.i64(0) if type_ == i64 else low.builder.i32(0)


@handles(stan.ScopeOp)
def scope(low: Lowering, op: stan.ScopeOp) -> None:
    low.block_ops(op.body.block.ops)


@handles(stan.YieldOp)
def yield_(low: Lowering, op: Operation) -> None:
    """Only reached at the end of regions that pass nothing on."""
    assert not op.operands


# ---------------------------------------------------------------- target


@handles(stan.TargetOp)
def target(low: Lowering, op: stan.TargetOp) -> None:
    low.env[op.res] = low.builder.insert(ad.TargetOp()).res


def add_value_to_target(low: Lowering, value: Value) -> None:
    """`target += value`; entries of a container one by one."""
    builder = low.builder
    if isinstance(value, Container) and low.outlined.terms.whole:
        value = sum_of(low, value)
    if isinstance(value, Container):

        def body(_: SSAValue, element: SSAValue, __: Sequence[SSAValue]) -> Sequence[SSAValue]:
            builder.insert(ad.TargetAddOp(builder.to_real(element)))
            return ()

        for_each_element(builder, value, body)
        return
    assert isinstance(value, SSAValue)
    builder.insert(ad.TargetAddOp(builder.to_real(value)))


def sum_of(low: Lowering, value: Container) -> SSAValue:
    """The sum of the entries, in their order."""
    builder = low.builder

    def body(_: SSAValue, element: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return (builder.addf(carried[0], builder.to_real(element)),)

    return for_each_element(builder, value, body, [builder.f64(0.0)])[0]


@handles(stan.JacobianAddOp)
def jacobian_add(low: Lowering, op: stan.JacobianAddOp) -> None:
    value = low.value(op.value)
    if low.jacobian is not None:
        add_jacobian(low, value)


def add_jacobian(low: Lowering, value: Value) -> None:
    """Adds to the target where the Jacobian adjustment is asked for."""
    builder = low.builder
    if low.jacobian is None:
        return
    jacobian = low.jacobian
    if isinstance(value, Container) and low.outlined.terms.whole:
        value = sum_of(low, value)
    if isinstance(value, Container):

        def body(_: SSAValue, element: SSAValue, __: Sequence[SSAValue]) -> Sequence[SSAValue]:
            builder.insert(ad.TargetAddOp(builder.select(jacobian, element, builder.f64(0.0))))
            return ()

        for_each_element(builder, value, body)
        return
    assert isinstance(value, SSAValue)
    builder.insert(ad.TargetAddOp(builder.select(jacobian, value, builder.f64(0.0))))
