"""From a `stan.program` in value form to the functions of one unit of a compiled program.

`units.UNITS` has them: `setup` (sizes, data checks, transformed data), log densities without and with derivatives,
`constrain` and `unconstrain`; `locate` and `locate_constrain` have every check where the program has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    FunctionType,
    ModuleOp,
    StringAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt, stan
from ulam.dialects.integers import INT_MAX
from ulam.dialects.walk import ops_of, ops_within
from ulam.library.statuses import FATAL
from ulam.passes.autodiff.called_functions import write_derivatives
from ulam.passes.builder import BUFFER_I64, BUFFER_REAL, MOST_SIZE, Builder
from ulam.passes.complex_types import whole_name
from ulam.passes.loops.thread_target import target_as_value
from ulam.passes.to_loops import (  # noqa: F401  (register handlers)
    callbacks,
    declared_checks,
    indexing,
    operators,
    part_intrinsics,
    piece_calls,
    printing,
    statements,
)
from ulam.passes.to_loops.calls import call as _call_handler  # noqa: F401  (registers handlers)
from ulam.passes.to_loops.check_sites import CheckSite
from ulam.passes.to_loops.int_ranges import int_ranges, is_never_negative
from ulam.passes.to_loops.lowering import Holder, Lowering, Storage
from ulam.passes.to_loops.outlined import Outlined
from ulam.passes.to_loops.parameters import (
    UnconstrainedReader,
    UnconstrainedWriter,
    transform_of,
    unconstrained_size,
    write_part,
)
from ulam.passes.to_loops.programs import Global, LoweredUnit, ProgramParts
from ulam.passes.to_loops.repeated_functions import RepeatedFunctions
from ulam.passes.to_loops.sizes import checked_sizes, declared_dims
from ulam.passes.to_loops.statements import begin_profile, end_profile
from ulam.passes.to_loops.tuple_arrays import ArraysOfTuples
from ulam.passes.to_loops.values import (
    Container,
    Tuple,
    Value,
    buffer_type,
    element_type,
    in_buffer,
    materialize,
    rank_of,
    total,
    write,
)
from ulam.passes.units import UnitKind

# ---------------------------------------------------------------- one function


class _Globals(dict[str, "Storage | Holder"]):
    """Global variables of a function being written; bound ones are fetched when they are first mentioned."""

    def __init__(self, fetch: Callable[[str], Holder]) -> None:
        super().__init__()
        self._fetch = fetch

    def __missing__(self, name: str) -> Holder:
        found = self[name] = self._fetch(name)
        return found


class FunctionWriter:
    """Writes one `func.func` of a unit."""

    def __init__(
        self,
        program: ProgramParts,
        sites: list[CheckSite],
        name: str,
        arguments: Sequence[Attribute],
        *,
        prepares: bool = False,
    ) -> None:
        self.program = program
        self.name = name
        self.block = Block(arg_types=arguments)
        self.builder = Builder(self.block)
        self.low = Lowering(self.builder, program.functions, sites, program.outlined)
        self.low.globals = _Globals(self._bound_global)
        self.low.profiles = program.profiles if program.profiled else None
        self.low.templates = program.templates
        self.low.piece_slot = program.piece_slot
        self.low.globals_checked = program.is_bound
        self.ranges = int_ranges(program) if program.is_bound else {}
        self.prepares = prepares
        self._positions: dict[Operation, int] = {}

    def finish(self, results: Sequence[SSAValue] = (), **attributes: Attribute) -> func.FuncOp:
        self.builder.emit(func.ReturnOp, results)
        self.builder.finish()
        type_ = FunctionType.from_lists([a.type for a in self.block.args], [r.type for r in results])
        return func.FuncOp.create(
            properties={"sym_name": StringAttr(self.name), "function_type": type_},
            attributes={**rt.EntryAttr().as_attributes(), **attributes},
            regions=[Region(self.block)],
        )

    # ------------------------------------------------------------ bound globals

    def _bound_global(self, name: str) -> Holder:
        """Data or transformed data, read from the bound table."""
        variable = self.program.globals[name]
        assert variable.slot is not None, f"variable '{name}' is not available here"
        type_ = variable.type
        n_dims = rank_of(type_)
        if not n_dims:
            scalar = self.builder.bound(variable.slot, element_type(type_))
            if (known := self.ranges.get(name)) is not None:
                self.builder.limit_everywhere(scalar, *known)
            return Holder(name, scalar)
        dims = self._bound_dims(variable, n_dims)
        buffer = self.builder.bound(variable.slot, buffer_type(type_))
        if buffer.type == BUFFER_REAL and self.program.is_bound and is_never_negative(variable):
            assert isinstance(buffer.owner, rt.BoundOp)
            rt.NeverNegativeAttr().put(buffer.owner)
        return Holder(name, in_buffer(self.builder, type_, dims, buffer, data_only=True))

    def _bound_dims(self, variable: Global, n_dims: int) -> list[SSAValue]:
        """Sizes of a bound container: recomputed from ints where that is simple, so that equal sizes are seen equal."""
        sizes = [*variable.sizes]
        sizes += [sizes[-1]] * (n_dims - len(sizes))
        result = []
        for n, size in enumerate(sizes):
            if _is_simple_size(size):
                result.append(self._at_entry(size))
            else:
                assert variable.slot is not None
                result.append(self.builder.bound(variable.slot + 1 + n, i64))
            self.builder.limit_everywhere(result[-1], 0, MOST_SIZE)
        self.low.note_shape(result, everywhere=True)
        return result

    def _at_entry(self, size: SSAValue) -> SSAValue:
        """A size as i64, computed in the function's prologue."""
        value = self._simple(size)
        return self.builder.index(value)

    def _simple(self, size: SSAValue) -> SSAValue:
        op = size.owner
        if isinstance(op, stan.ConstantOp):
            return self.builder.i32(op.value.value.data)  # type: ignore[union-attr]
        assert isinstance(op, stan.ReadOp)
        variable = op.var.owner
        assert isinstance(variable, stan.GlobalOp | stan.DeclareOp)
        holder = self.low.globals[variable.var_name.data]
        assert isinstance(holder, Holder) and isinstance(holder.value, SSAValue)
        return holder.value

    # ------------------------------------------------------------ demand

    def demand(self, values: Iterable[SSAValue | None]) -> None:
        """Lowers what `values` of some block are computed from, and nothing else of that block."""
        needed: set[Operation] = set()
        work = [v for v in values if v is not None]
        while work:
            op = work.pop().owner
            if not isinstance(op, Operation):
                continue
            while not isinstance(op.parent_op(), stan.BlockOp):
                parent = op.parent_op()
                assert parent is not None
                op = parent
            if op in needed:
                continue
            needed.add(op)
            for inner in ops_within(op):
                work.extend(inner.operands)
        if not needed:
            return
        for op in sorted(needed, key=self._position):
            if isinstance(op, stan.DeclareOp | stan.ParameterOp):
                self.low.env[op.res] = self.low.globals[op.var_name.data]
            else:
                self.low.op(op)

    def _position(self, op: Operation) -> int:
        """Where a top-level op of a block stands in the program."""
        if not self._positions:
            ops = (op for block in self.program.blocks.values() for op in block.ops)
            self._positions.update((op, n) for n, op in enumerate(ops))
        return self._positions[op]

    # ------------------------------------------------------------ blocks

    def data_block(self, *, check: bool) -> None:
        """Binds the variables of the data block; with `check`, their declared constraints."""
        for op in self.ops_of("data"):
            if isinstance(op, stan.DeclareOp):
                self.low.env[op.res] = self.low.globals[op.var_name.data]
                if check:
                    declared_dims(self.low, op)
            else:
                self.low.op(op)

    def independent(self, theta: SSAValue) -> SSAValue:
        """A copy of the unconstrained vector in the arena, declared as what a gradient is taken of.

        Arena memory may be read ahead of checks (see `loop_invariant_code_motion`), the caller's may not.
        """
        builder, low = self.builder, self.low
        count = builder.i64(0)
        for variable in self.globals_of("parameters"):
            op = variable.op
            assert isinstance(op, stan.ParameterOp)
            self.demand(op.sizes)
            count = builder.add(count, unconstrained_size(low, op, declared_dims(low, op)))
        # One element more: a parameter without elements at the end may be read at its beginning.
        copy = builder.alloc(builder.add(count, builder.i64(1)))
        builder.insert(ad.IndependentOp(copy, count))
        builder.copy(copy, theta, count, initial=True)
        return copy

    def parameters_block(self, theta: SSAValue) -> SSAValue:
        """Reads the parameters from the unconstrained vector; returns how many it takes (i64)."""
        reader = UnconstrainedReader(self.low, theta, self.arrays_of_tuples())
        with self._region("parameters"):
            for op in self.ops_of("parameters"):
                if isinstance(op, stan.ParameterOp):
                    reader.parameter(op)
                else:
                    self.low.op(op)
        return reader.offset

    def arrays_of_tuples(self) -> ArraysOfTuples:
        """Where the values of such parameters are."""

        def dims_of(op: stan.ParameterOp) -> list[SSAValue]:
            self.demand(op.sizes)
            return declared_dims(self.low, op)

        ops = [op for op in self.ops_of("parameters") if isinstance(op, stan.ParameterOp)]
        return ArraysOfTuples(ops, dims_of, unconstrained_size)

    @contextmanager
    def _region(self, kind: str) -> Iterator[None]:
        """A profile region of a whole block, if asked for. Not a branch: what the block defines is seen after it."""
        key = self.program.profiled_blocks.get(kind)
        if key is None or self.low.profiles is None:
            yield
            return
        begin = begin_profile(self.low, key)
        yield
        end_profile(self.low, begin)

    def run_block(self, kind: str) -> None:
        """All statements of a block; its global variables get storage unless they became values."""
        with self._region(kind):
            for op in self.ops_of(kind):
                self._statement(op, kind)

    def _statement(self, op: Operation, kind: str) -> None:
        if isinstance(op, stan.DeclareOp) and kind != "model" and op.local is None:
            if _is_assigned(op):
                self.low.op(op)
                storage = self.low.env[op.res]
                assert isinstance(storage, Storage)
                self.low.globals[op.var_name.data] = storage
            else:
                declared_dims(self.low, op)
        else:
            self.low.op(op)

    def ops_of(self, kind: str) -> list[Operation]:
        block = self.program.blocks.get(kind)
        return ops_of(block) if block is not None else []

    def global_value(self, name: str) -> Value:
        """The present value of a global variable."""
        found = self.low.globals[name]
        return found.value if isinstance(found, Holder) else self.low.read_storage(found)

    def globals_of(self, kind: str) -> list[Global]:
        return [g for g in self.program.globals.values() if g.block == kind]


def _is_assigned(op: stan.DeclareOp) -> bool:
    return any(isinstance(use.operation, stan.AssignOp | stan.ReadOp) for use in op.res.uses)


def _is_simple_size(size: SSAValue) -> bool:
    """A literal, or an int that is bound."""
    op = size.owner
    if isinstance(op, stan.ConstantOp):
        return True
    if not isinstance(op, stan.ReadOp):
        return False
    variable = op.var.owner
    return isinstance(variable, stan.GlobalOp) or (
        isinstance(variable, stan.DeclareOp) and _in_data_block(variable))  # fmt: skip


def _in_data_block(op: Operation) -> bool:
    parent = op.parent_op()
    return isinstance(parent, stan.BlockOp) and parent.kind.data == "data"


# ---------------------------------------------------------------- units


_WRITERS: dict[str, Callable[[ProgramParts, list[CheckSite], UnitKind], list[func.FuncOp]]] = {
    "setup": lambda program, sites, kind: [_data_dims(program, sites), _prepare(program, sites)],
    "density": lambda program, sites, kind: [_log_density(program, sites, kind)],
    "constrain": lambda program, sites, kind: [_constrain(program, sites)],
    "unconstrain": lambda program, sites, kind: [_unconstrain(program, sites)],
}


def lower_unit(program: ProgramParts, kind: UnitKind, *, whole_terms: bool = False) -> LoweredUnit:
    """The functions of a unit, before differentiation and hoisting. `whole_terms`: see `target_terms`."""
    sites: list[CheckSite] = []
    repeated = RepeatedFunctions(
        program.functions,
        program.blocks,
        kind.computes,
        binds=kind.has_bind,
        in_lanes=kind.hot,
        in_place=whole_terms and not kind.locating,
    )
    errors = "elsewhere" if kind.hot else "by call"
    outlined = Outlined(program.functions, whole_terms, of_data=not kind.has_bind, repeated=repeated, errors=errors)
    program = replace(program, outlined=outlined, profiled=kind.profiled, is_bound=kind.is_bound)
    functions = _WRITERS[kind.computes](program, sites, kind)
    module = ModuleOp([*functions, *program.outlined.written])
    target_as_value(module)
    program.outlined.tangents.write(module)
    write_derivatives(program.outlined.derivatives, module)
    if kind.gradient:
        module.body.block.add_op(ad.GradientOp("evaluate"))
    if kind.hessian:
        module.body.block.add_op(ad.HessianVectorOp("evaluate"))
    return LoweredUnit(kind, module, sites, program.n_slots)


def _log_density(program: ProgramParts, sites: list[CheckSite], kind: UnitKind) -> func.FuncOp:
    """`evaluate(theta, jacobian) -> log density`, with `ad.target_add` for what goes into the target.

    The result is a placeholder that `thread-target` replaces by the target.
    """
    writer = FunctionWriter(program, sites, "evaluate", (BUFFER_REAL, i32))
    low = writer.low
    low.propto = kind.propto
    low.precise = kind.locating
    low.told_elsewhere = kind.hot and not program.outlined.terms.whole  # what it makes possible changes last bits
    low.differentiated = kind.gradient or kind.locating
    theta, jacobian = writer.block.args
    low.jacobian = writer.builder.truth(jacobian)
    writer.parameters_block(writer.independent(theta))
    writer.run_block("transformed_parameters")
    writer.run_block("model")
    return writer.finish([writer.builder.f64(0.0)], **ad.TargetPositionAttr.at(result=0).as_attributes())


def _data_dims(program: ProgramParts, sites: list[CheckSite]) -> func.FuncOp:
    """`data_dims(k, out)`: sizes of global variable number k; for parameters then their unconstrained size.

    From the number of global variables on: checks the declared bounds of variable k less that number, int data; so
    that an int that sizes depend on is known to be wrong before they are.
    """
    writer = FunctionWriter(program, sites, "data_dims", (i64, BUFFER_I64))
    builder, low = writer.builder, writer.low
    number, out = writer.block.args

    def when(wanted: int, op: Operation, write: Callable[[], None]) -> None:
        def alone() -> Sequence[SSAValue]:
            outer_env, low.env = low.env, dict(low.env)
            builder.location = op.location
            write()
            low.env = outer_env
            return ()

        builder.if_else(builder.cmpi("eq", number, builder.i64(wanted)), alone)

    for variable in program.globals.values():
        if variable.part == 1:
            continue  # has the sizes of the real part
        if variable.part == 0 or rank_of(variable.type) or variable.block == "parameters":
            when(variable.number, variable.op, lambda variable=variable: _write_sizes(writer, variable, out))
    for op in writer.ops_of("data"):
        if isinstance(op, stan.CheckOp) and op.constraint.data == "bounds":
            checked = program.globals.get(op.var_name.data)
            if checked is not None and element_type(checked.type) == i32:
                wanted = program.n_variables + checked.number
                when(wanted, op, lambda op=op: (writer.demand(op.operands), low.op(op))[1])
    return writer.finish()


def _write_sizes(writer: FunctionWriter, variable: Global, out: SSAValue) -> None:
    builder, low, op = writer.builder, writer.low, variable.op
    is_parameter = variable.block == "parameters"
    constraint = op.constraint.data if is_parameter else "none"
    writer.demand(variable.sizes)
    name = variable.name if variable.part is None else whole_name(variable.name)
    dims = checked_sizes(low, name, variable.type, variable.sizes, constraint, most=MOST_SIZE)
    for n, size in enumerate(dims):
        builder.store(size, out, builder.i64(n))
    if variable.part is not None:
        builder.store(builder.i64(2), out, builder.i64(len(dims)))
        dims = [*dims, builder.i64(2)]
    if not is_parameter:
        return
    # Bounds do not change the count; they may depend on other parameters.
    count = total(builder, dims)
    if constraint not in ("none", "bounds", "offset_multiplier"):
        transform = transform_of(low, op, dims)
        count = transform.unconstrained_size
        assert transform.slice_size is not None
        few = builder.cmpi("sle", transform.slice_size, builder.i64(INT_MAX))
        message = f"{name}: a {constraint} of this size has {{0}} unconstrained values, more than an int can count"
        low.check(few, FATAL, message, transform.slice_size)
    builder.store(count, out, builder.i64(len(dims)))


def _prepare(program: ProgramParts, sites: list[CheckSite]) -> func.FuncOp:
    """`prepare()`: checks data, computes transformed data and binds them."""
    writer = FunctionWriter(program, sites, "prepare", (), prepares=True)
    builder, low = writer.builder, writer.low
    writer.data_block(check=True)
    writer.run_block("transformed_data")
    for variable in writer.globals_of("transformed_data"):
        assert variable.slot is not None
        value = low.own(writer.global_value(variable.name))
        assert not isinstance(value, Tuple)
        if isinstance(value, Container):
            value = materialize(builder, value)
            buffer = builder.insert(rt.AllocBoundOp(total(builder, value.dims), buffer_type(value.type))).res
            write(builder, value, buffer, initial=True)
            _set_bound(builder, variable.slot, buffer)
            for n, size in enumerate(value.dims):
                _set_bound(builder, variable.slot + 1 + n, size)
        else:
            _set_bound(builder, variable.slot, value)
    return writer.finish()


def _set_bound(builder: Builder, slot: int, value: SSAValue) -> None:
    builder.insert(rt.SetBoundOp(slot, value))


def _constrain(program: ProgramParts, sites: list[CheckSite]) -> func.FuncOp:
    """`evaluate(theta, out, include_tp, include_gq)`: writes constrained parameters and what else is asked for."""
    writer = FunctionWriter(program, sites, "evaluate", (BUFFER_REAL, BUFFER_REAL, i32, i32))
    builder = writer.builder
    theta, out, include_tp, include_gq = writer.block.args
    writer.parameters_block(theta)
    offset = _write_out(writer, "parameters", out, builder.i64(0))
    want_tp, want_gq = builder.truth(include_tp), builder.truth(include_gq)

    def beyond() -> Sequence[SSAValue]:
        writer.run_block("transformed_parameters")
        end = builder.if_else(
            want_tp,
            lambda: (_write_out(writer, "transformed_parameters", out, offset),),
            lambda: (offset,),
        )[0]

        def generated() -> Sequence[SSAValue]:
            writer.run_block("generated_quantities")
            _write_out(writer, "generated_quantities", out, end)
            return ()

        builder.if_else(want_gq, generated)
        return ()

    builder.if_else(builder.either(want_tp, want_gq), beyond)
    return writer.finish()


def _write_out(writer: FunctionWriter, kind: str, out: SSAValue, offset: SSAValue) -> SSAValue:
    """Writes the global variables of a block, one after the other; returns the position behind them."""
    builder = writer.builder
    for variable in writer.globals_of(kind):
        value = writer.global_value(variable.name)
        if variable.part is not None:
            write_part(builder, value, variable.part, out, offset)
            if variable.part == 1:
                count = total(builder, value.dims) if isinstance(value, Container) else builder.i64(1)
                offset = builder.add(offset, builder.mul(count, builder.i64(2)))
        elif isinstance(value, Container):
            target = builder.view(out, offset)
            if value.element_type == i32:
                value = operators.elementwise(value.type, [value], builder.to_real)
            write(builder, value, target, initial=True)
            offset = builder.add(offset, total(builder, value.dims))
        else:
            assert isinstance(value, SSAValue)
            builder.store(builder.to_real(value), out, offset, initial=True)
            offset = builder.add(offset, builder.i64(1))
    return offset


def _unconstrain(program: ProgramParts, sites: list[CheckSite]) -> func.FuncOp:
    """`evaluate(constrained, theta)`: the inverse of constraining."""
    writer = FunctionWriter(program, sites, "evaluate", (BUFFER_REAL, BUFFER_REAL))
    source, theta = writer.block.args
    target = UnconstrainedWriter(writer.low, source, theta, writer.arrays_of_tuples())
    for op in writer.ops_of("parameters"):
        if isinstance(op, stan.ParameterOp):
            target.parameter(op)
        else:
            writer.low.op(op)
    return writer.finish()
