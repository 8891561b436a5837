"""Statements of the `stan` dialect in value form: variables, control flow, target, printing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import StringAttr, f64, i32
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt, stan
from ulam.passes.lower.builder import BUFFER_I64
from ulam.passes.lower.lowering import FATAL, REJECTION, Holder, Lowering, NotSupportedError, Storage, handles
from ulam.passes.lower.values import (
    Container,
    Tuple,
    Value,
    broadcast,
    for_each_element,
    materialize,
    peel,
    rank_of,
)

# ---------------------------------------------------------------- variables


@handles(stan.DeclareOp)
def declare(low: Lowering, op: stan.DeclareOp) -> None:
    """A variable that stays a variable: one that is assigned in part."""
    type_ = op.res.type.element  # type: ignore[attr-defined]
    if isinstance(type_, stan.TupleType):
        raise NotSupportedError("variables of tuple type are not supported yet", op.location)
    low.env[op.res] = low.new_storage(op.var_name.data, type_, declared_dims(low, op))


def declared_dims(low: Lowering, op: stan.DeclareOp | stan.ParameterOp) -> list[SSAValue]:
    """Sizes of a declared variable's dimensions as i64, checked not to be negative; square types get both sizes."""
    dims = []
    for ssa in op.sizes:
        size = low.integer(ssa)
        if size not in low.builder.known and not low.is_size(size):
            ok = low.builder.cmpi("sge", size, low.builder.i64(0))
            low.check(ok, FATAL, f"{op.var_name.data}: a size must not be negative, but is {{0}}", size)
        dims.append(size)
    type_ = op.res.type.element  # type: ignore[attr-defined]
    if len(dims) < rank_of(type_):
        dims.append(dims[-1])
    return dims


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
    if isinstance(value, Container) and _is_final(op.var, op):
        value.variables = frozenset()
    low.define(op.res, value)


def _is_final(var: SSAValue, read: Operation) -> bool:
    """Whether nothing is assigned to a variable after `read`: the value may then be used where it lies."""
    declaration = var.owner
    if isinstance(declaration, stan.GlobalOp):
        return True  # assigned in the block that declares it only
    assert isinstance(declaration, Operation)
    block = declaration.parent
    here = _ancestor_in(read, block)
    for use in var.uses:
        if isinstance(use.operation, stan.AssignOp):
            there = _ancestor_in(use.operation, block)
            if here is None or there is None or there is here or here.is_before_in_block(there):
                return False
    return True


def _ancestor_in(op: Operation, block: Block | None) -> Operation | None:
    current: Operation | None = op
    while current is not None and current.parent is not block:
        current = current.parent_op()
    return current


@handles(stan.UninitializedOp)
def uninitialized(low: Lowering, op: stan.UninitializedOp) -> None:
    type_ = op.res.type
    if isinstance(type_, stan.TupleType):
        raise NotSupportedError("variables of tuple type are not supported yet", op.location)
    value = low.unassigned(type_)
    if not rank_of(type_):
        low.env[op.res] = value
        return
    dims = [low.integer(s) for s in op.sizes]
    if len(dims) < rank_of(type_):
        dims.append(dims[-1])
    low.env[op.res] = broadcast(low.builder, type_, dims, value, True)


@handles(stan.AssertShapeOp)
def assert_shape(low: Lowering, op: Operation) -> None:
    """The size check of a whole assignment to a variable that became a value."""
    value = low.value(op.operands[0])
    if isinstance(value, Container):
        sizes = [low.integer(s) for s in op.operands[1:]]
        if len(sizes) < len(value.dims):
            sizes.append(sizes[-1])
        name = op.properties["var_name"].data  # type: ignore[attr-defined]
        for declared, found in zip(sizes, value.dims, strict=True):
            low.check_equal(declared, found, f"assign to {name}: sizes must match: {{0}} declared, {{1}} on the right")
        value.dims = sizes
    low.define(op.results[0], value)


@handles(stan.DefineOp)
def define_global(low: Lowering, op: Operation) -> None:
    """The final value of a global variable that became a value."""
    name = op.properties["var_name"].data  # type: ignore[attr-defined]
    low.globals[name] = Holder(name, low.own(low.value(op.operands[0])))


# ---------------------------------------------------------------- control flow


def carried(low: Lowering, initial: Sequence[SSAValue]) -> tuple[list[Value], list[SSAValue]]:
    """Initial values of carried variables: as values (shapes), and as SSA values (a container is its buffer)."""
    values = [low.handed_on(low.value(v)) for v in initial]
    return values, [ssa for v in values for ssa in _parts(v)]


def _parts(value: Value) -> list[SSAValue]:
    """Scalars, and the buffers of containers: sizes of carried containers do not change."""
    if isinstance(value, Container):
        assert value.buffer is not None
        return [value.buffer]
    if isinstance(value, Tuple):
        return [p for f in value.fields for p in _parts(f)]
    return [value]


def _with_parts(low: Lowering, shapes: Sequence[Value], parts: Sequence[SSAValue]) -> list[Value]:
    """Values of the given shapes made of SSA values."""
    from ulam.passes.lower.values import in_buffer

    iterator = iter(parts)

    def rebuild(shape: Value) -> Value:
        if isinstance(shape, Container):
            return in_buffer(low.builder, shape.type, shape.dims, next(iterator))
        if isinstance(shape, Tuple):
            return Tuple(shape.type, [rebuild(f) for f in shape.fields])
        return next(iterator)

    return [rebuild(s) for s in shapes]


def region_ops(low: Lowering, block: Block) -> list[SSAValue]:
    """Lowers a region; returns the carried parts of what its terminator passes on."""
    terminator = block.last_op
    low.block_ops(op for op in block.ops if op is not terminator)
    if terminator is None or not isinstance(terminator, stan.YieldOp):
        raise NotSupportedError("a region must end in stan.yield here", block.parent_op().location if block.parent_op() else None)  # type: ignore[union-attr]
    return [p for v in terminator.arguments for p in _parts(low.handed_on(low.value(v)))]


def _bind(low: Lowering, arguments: Sequence[SSAValue], shapes: Sequence[Value], parts: Sequence[SSAValue]) -> None:
    for argument, value in zip(arguments, _with_parts(low, shapes, parts), strict=True):
        low.env[argument] = value


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
        terminator = block.last_op
        low.block_ops(o for o in block.ops if o is not terminator)
        assert terminator is not None
        for result, operand in zip(results, terminator.operands, strict=True):
            low.env[result] = low.value(operand)
        return
    if len(results) == 1 and _speculatable(then) and _speculatable(otherwise):
        low.block_ops(list(then.ops)[:-1])
        low.block_ops(list(otherwise.ops)[:-1])
        a, b = low.value(then.last_op.operands[0]), low.value(otherwise.last_op.operands[0])  # type: ignore[union-attr]
        if isinstance(a, SSAValue) and isinstance(b, SSAValue):
            low.env[results[0]] = low.builder.select(condition, a, b)
            return
    shapes: list[list[Value]] = []

    def side(block: Block) -> Callable[[], Sequence[SSAValue]]:
        def write() -> Sequence[SSAValue]:
            terminator = block.last_op
            assert terminator is not None
            low.block_ops(o for o in block.ops if o is not terminator)
            values = [low.handed_on(low.value(v)) for v in terminator.operands]
            shapes.append(values)
            return [p for v in values for p in low.flatten(v)]

        return write

    parts = low.builder.if_else(condition, side(then), side(otherwise))
    iterator = iter(parts)
    for result, shape in zip(results, shapes[0], strict=True):
        low.env[result] = low.unflatten(shape, iterator)


_CHEAP = (stan.ConstantOp, stan.PromoteOp, stan.ReadOp, stan.YieldOp, stan.UNARY_OPERATORS["-"]) + tuple(
    stan.BINARY_OPERATORS[s] for s in ("+", "-", "==", "!=", "<", "<=", ">", ">="))  # fmt: skip


def _speculatable(block: Block) -> bool:
    """Whether both sides of a branch may be computed and one chosen: a few scalar ops that cannot fail."""
    count = 0
    for op in block.ops:
        count += 1
        if count > 6 or type(op) not in _CHEAP:
            return False
        if any(isinstance(r.type, stan.VectorType | stan.RowVectorType | stan.MatrixType | stan.ArrayType | stan.TupleType) for r in op.results):
            return False
    return True


@handles(stan.AndOp, stan.OrOp)
def lazy_logic(low: Lowering, op: stan.AndOp | stan.OrOp) -> None:
    builder = low.builder
    left = builder.truth(low.scalar(op.left))
    block = op.right.block

    def right() -> Sequence[SSAValue]:
        low.block_ops(list(block.ops)[:-1])
        return (builder.truth(low.scalar(block.last_op.operands[0])),)  # type: ignore[union-attr]

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
        return region_ops(low, block)

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
        return region_ops(low, block)

    if not rank_of(element_type):
        results = for_each_element(builder, container, lambda _, element, parts: iteration(element, parts), initial)
    else:
        from ulam.passes.lower.indexing import Selection
        from ulam.passes.lower.indexing import select as select_part

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
        terminator = condition_block.last_op
        assert isinstance(terminator, stan.ConditionOp)
        low.block_ops(o for o in condition_block.ops if o is not terminator)
        passed = [p for v in terminator.arguments for p in _parts(low.handed_on(low.value(v)))]
        builder.emit(scf.ConditionOp, (builder.truth(low.scalar(terminator.condition)), *passed))
    with builder.inside(after):
        _bind(low, body_block.args, shapes, after.args)
        builder.emit(scf.YieldOp, region_ops(low, body_block))
    loop = builder.emit(scf.WhileOp, initial, types, regions=(Region(before), Region(after)))
    _bind(low, op.res, shapes, loop.results)


@handles(stan.ProfileOp)
def profile(low: Lowering, op: stan.ProfileOp) -> None:
    block = op.body.block
    terminator = block.last_op
    low.block_ops(o for o in block.ops if o is not terminator)
    if isinstance(terminator, stan.YieldOp):
        for result, value in zip(op.res, terminator.arguments, strict=True):
            low.env[result] = low.value(value)
    elif terminator is not None:
        low.op(terminator)


@handles(stan.ScopeOp)
def scope(low: Lowering, op: stan.ScopeOp) -> None:
    low.block_ops(op.body.block.ops)


@handles(stan.YieldOp)
def yield_(low: Lowering, op: Operation) -> None:
    """Only reached at the end of regions that pass nothing on."""
    assert not op.operands


@handles(stan.ReturnOp)
def return_(low: Lowering, op: stan.ReturnOp) -> None:
    if op.value is None:
        return
    frame = low.frames[-1]
    if not frame.to_target:
        frame.result = low.own(low.value(op.value))
        return
    from ulam.passes.lower.calls import add_to_target

    add_to_target(low, op.value)


# ---------------------------------------------------------------- target


@handles(stan.TargetAddOp)
def target_add(low: Lowering, op: stan.TargetAddOp) -> None:
    from ulam.passes.lower.calls import add_to_target

    add_to_target(low, op.value)


@handles(stan.TargetOp)
def target(low: Lowering, op: stan.TargetOp) -> None:
    low.env[op.res] = low.builder.value(ad.TargetOp, (), f64)


def add_value_to_target(low: Lowering, value: Value) -> None:
    """`target += value`; entries of a container one by one."""
    builder = low.builder
    if isinstance(value, Container):

        def body(_: SSAValue, element: SSAValue, __: Sequence[SSAValue]) -> Sequence[SSAValue]:
            builder.emit(ad.TargetAddOp, (builder.to_real(element),))
            return ()

        for_each_element(builder, value, body)
        return
    assert isinstance(value, SSAValue)
    builder.emit(ad.TargetAddOp, (builder.to_real(value),))


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
    if isinstance(value, Container):

        def body(_: SSAValue, element: SSAValue, __: Sequence[SSAValue]) -> Sequence[SSAValue]:
            builder.emit(ad.TargetAddOp, (builder.select(jacobian, element, builder.f64(0.0)),))
            return ()

        for_each_element(builder, value, body)
        return
    assert isinstance(value, SSAValue)
    builder.emit(ad.TargetAddOp, (builder.select(jacobian, value, builder.f64(0.0)),))


# ---------------------------------------------------------------- printing

_PRINT_KINDS = {"print": 0, "reject": 1, "fatal_error": 2}
_INNER_KINDS = {stan.VectorType: 1, stan.RowVectorType: 2, stan.MatrixType: 3}


@handles(stan.PrintOp)
def print_(low: Lowering, op: stan.PrintOp) -> None:
    kind = op.kind.data
    builder = low.builder
    _kernel(low, "print_begin", builder.i32(_PRINT_KINDS[kind]))
    for argument in op.arguments:
        literal = argument.owner
        if isinstance(literal, stan.ConstantOp) and isinstance(literal.value, StringAttr):
            text = builder.value(rt.StringOp, (), rt.BufferType(i32), {"value": literal.value})
            _kernel(low, "print_string", text)
        else:
            _print_value(low, low.value(argument))
    _kernel(low, "print_end")
    if kind != "print":
        low.check(builder.i1(False), REJECTION if kind == "reject" else FATAL, "{text}", location=op.location)


def _kernel(low: Lowering, function: str, *arguments: SSAValue) -> None:
    low.builder.emit(rt.KernelOp, arguments, (), {"function": StringAttr(function)})


def _print_value(low: Lowering, value: Value) -> None:
    builder = low.builder
    if isinstance(value, Container):
        value = materialize(builder, value)
        assert value.buffer is not None
        dims = builder.alloc(builder.i64(len(value.dims)), BUFFER_I64)
        for n, size in enumerate(value.dims):
            builder.store(size, dims, builder.i64(n), initial=True)
        what = "int" if value.element_type == i32 else "real"
        inner = builder.i32(_INNER_KINDS.get(type(value.inner), 0))
        _kernel(low, f"print_container_{what}", value.buffer, builder.i32(len(value.dims)), dims, inner)
    elif isinstance(value, Tuple):
        raise NotSupportedError("printing tuples is not supported yet", builder.location)
    else:
        _kernel(low, "print_int" if value.type == i32 else "print_real", value)


