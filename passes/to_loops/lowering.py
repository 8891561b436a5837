"""The state of one function being lowered from the `stan` dialect, and the walk over its ops.

Each op class has a handler, registered in `HANDLERS` by the modules `operators`, `indexing`, `statements`, `calls`
and `densities`. A handler reads the values of its operands with `low.value(ssa)` and gives the result with
`low.define(ssa, value)`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    ArrayAttr,
    FileLineColLoc,
    LocationAttr,
    StringAttr,
    UnitAttr,
    f64,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from ulam.dialects import ad, rt, stan
from ulam.dialects.integers import INT_MAX, INT_MIN
from ulam.dialects.walk import ops_within
from ulam.library.functions import FunctionKind, kind_of
from ulam.library.records import record
from ulam.library.size_messages import EQUAL_SIZES
from ulam.library.statuses import FATAL
from ulam.passes.analysis.nesting import ancestor_in, block_of, is_before
from ulam.passes.builder import BUFFER_REAL, Builder
from ulam.passes.errors import LoweringError, NotSupportedError
from ulam.passes.loops.effects import viewed
from ulam.passes.to_loops.check_sites import CheckSite, place_told
from ulam.passes.to_loops.last_assignments import LastAssignments
from ulam.passes.to_loops.size_text import name_of_size
from ulam.passes.to_loops.values import Container, Tuple, Value, buffer_type, in_buffer, materialize, total, write

if TYPE_CHECKING:
    from ulam.passes.to_loops.densities import Template
    from ulam.passes.to_loops.outlined import Outlined
    from ulam.passes.to_loops.subjects import Subject

MOST_BYTES = 2**47
"""No container is larger: it is all the memory that a program can have on the processors of today."""


@record(eq=False)
class Storage:
    """The memory of a variable that is assigned in part, or of a global one."""

    name: str
    type: Attribute
    dims: list[SSAValue]
    buffer: SSAValue


@record(eq=False)
class Holder:
    """A variable that holds a whole value: parameters, data, and globals of other blocks."""

    name: str
    value: Value


@record(eq=False)
class Closure:
    """A function of the program that was passed to one of the library, with the arguments that it gets besides.

    `autodiff`: which of these arguments Stan's static rule calls autodiff.
    """

    function: stan.FuncOp
    arguments: list[Value]
    autodiff: list[bool]


ProfileKey = tuple[str, str, int, int]
"""A profile statement: its name, file, line and column."""


def profile_key(name: StringAttr, place: LocationAttr) -> ProfileKey:
    """What tells a profile statement from others, by its name and place; copies of one are the same."""
    if isinstance(place, FileLineColLoc):
        return name.data, place.filename.data, place.line.data, place.column.data
    return name.data, "", 0, 0


@record
class CallFrame:
    """A function whose body is being written in place of a call."""

    function: stan.FuncOp
    location: LocationAttr | None
    unnormalized: bool
    to_target: bool = False
    """The result is added to the target, summand by summand, instead of being returned."""
    autodiff: dict[SSAValue, int] = field(default_factory=dict)
    """1 for the formals that are autodiff at this call and what depends on them, else 0: see `call_context`."""
    result: Value | None = None
    closure: Closure | None = None
    """What `callback` means in a function of the library: see `callbacks`."""
    told: dict[SSAValue, Subject] = field(default_factory=dict)
    """What errors call arguments, where it is not as the function calls them."""

    @property
    def any_autodiff(self) -> int:
        return int(any(self.autodiff[a] for a in self.function.body.block.args))


OpT = TypeVar("OpT", bound=Operation)
HANDLERS: dict[type[Operation], Callable[[Lowering, Any], None]] = {}
"""Op class → what lowers it."""


def handles(*op_classes: type[OpT]) -> Callable[[Callable[[Lowering, OpT], None]], Callable[[Lowering, OpT], None]]:
    """Registers a handler for op classes."""

    def register(handler: Callable[[Lowering, OpT], None]) -> Callable[[Lowering, OpT], None]:
        for op_class in op_classes:
            HANDLERS[op_class] = handler
        return handler

    return register


class Lowering:
    """One function being written. `functions`: symbol → `stan.func` of the program, library included."""

    def __init__(
        self, builder: Builder, functions: dict[str, stan.FuncOp], sites: list[CheckSite], outlined: Outlined
    ) -> None:
        self.builder = builder
        self.functions = functions
        self.sites = sites
        self.outlined = outlined
        self.env: dict[SSAValue, Value | Storage | Holder] = {}
        self.globals: dict[str, Storage | Holder] = {}
        self.frames: list[CallFrame] = []
        self.subjects: list[str] = []  # variables whose declared constraint is being checked
        self.precise = False  # whether errors must come in the program's order (see `checks`)
        self.told_elsewhere = False  # whether another unit tells what an error says
        self.propto = False  # whether this function drops constants at all
        self.profiles: dict[ProfileKey, int] | None = None  # regions by number; None: profiles do not count here
        self.differentiated = False  # whether a gradient of this function will be taken
        self.differentiated_again = False  # whether forward mode follows, and then a gradient
        self.jacobian: SSAValue | None = None  # i1: whether jacobian adjustments count
        self.deferred: set[SSAValue] = set()  # reals that are written where they are added to the target
        self.ranges: dict[SSAValue, tuple[SSAValue, SSAValue]] = {}  # loop variable (i64) → its first and last value
        self.piece_slot = 0  # the bound slot that has the table of pieces
        self.globals_checked = False  # whether sizes of global variables were checked when data were bound
        self.current: Operation | None = None  # the op that is being lowered
        self.templates: dict[stan.FuncOp, Template] = {}  # density functions taken apart
        self.assignments = LastAssignments()
        self._data: dict[SSAValue, bool] = {}
        self._memory_sites: dict[tuple[str, LocationAttr | None], int] = {}
        builder.new_shape = self.check_shape_of_result
        builder.memory_site = self.memory_site

    # ------------------------------------------------------------ walking

    def block_ops(self, ops: Iterable[Operation]) -> None:
        """Lowers ops in order."""
        for op in ops:
            self.op(op)

    def op(self, op: Operation) -> None:
        """Lowers one op."""
        handler = HANDLERS.get(type(op))
        if handler is None:
            raise NotSupportedError(f"'{op.name}' cannot be lowered yet", op.location)
        outer, outer_op = self.builder.location, self.current
        self.builder.location, self.current = self.place(op), op
        try:
            handler(self, op)
        except NotSupportedError as error:
            error.location = error.location or self.error_location()
            raise
        except (LoweringError, MemoryError):
            raise
        except Exception as error:
            raise LoweringError(error, self.error_location()) from error
        self.builder.location, self.current = outer, outer_op

    def place(self, op: Operation) -> LocationAttr | None:
        """Where what is written for `op` belongs in the user's program: the ops of library functions, to the call."""
        in_library = self.in_library()
        return self.builder.location if in_library else op.location or self.builder.location

    def value(self, ssa: SSAValue) -> Value:
        """The lowered value of an SSA value of the `stan` dialect."""
        found = self.env[ssa]
        assert not isinstance(found, Storage | Holder)
        return found

    def scalar(self, ssa: SSAValue) -> SSAValue:
        """The lowered value, which must be a scalar."""
        found = self.env[ssa]
        if not isinstance(found, SSAValue):
            raise NotSupportedError(
                f"a scalar is expected, but found a value of type {ssa.type}", self.builder.location
            )
        return found

    def container(self, ssa: SSAValue) -> Container:
        """The lowered value, which must be a container."""
        found = self.env[ssa]
        assert isinstance(found, Container), f"container expected, found {ssa.type}"
        return found

    def integer(self, ssa: SSAValue) -> SSAValue:
        """A Stan int as i64."""
        return self.builder.index(self.scalar(ssa))

    def size(self, ssa: SSAValue) -> SSAValue:
        """A Stan int as i64 that is checked to be a size, or was."""
        return self.builder.index_to_check(self.scalar(ssa))

    def define(self, ssa: SSAValue, value: Value) -> None:
        """Gives the result of an op, deciding whether a container is computed now or where it is used."""
        if isinstance(value, Container) and len(value.dims) > 1:
            self.check_shape_of_result(value.dims)
        if isinstance(value, Container) and not self._stays_lazy(ssa, value):
            value = materialize(self.builder, value, copy=bool(value.variables))
        self.env[ssa] = value

    # ------------------------------------------------------------ laziness

    def _stays_lazy(self, ssa: SSAValue, value: Container) -> bool:
        """Whether `value` may be computed where it is used.

        Not if that would repeat work, or if a variable that it reads may change before.
        """
        block = block_of(ssa)
        if not value.cheap:
            uses = list(ssa.uses)
            if len(uses) > 1 or (uses and uses[0].operation.parent is not block):
                return False
        return not value.variables or self._unchanged_until_used(ssa, value.variables, block)

    def _unchanged_until_used(self, ssa: SSAValue, variables: frozenset[object], block: Block | None) -> bool:
        last = _last_user(ssa, block)
        op = ssa.owner
        if last is None or isinstance(op, Block):
            return last is None
        current = op.next_op
        while current is not None:
            if variables & self.written(current):
                # An assignment reads its right-hand side before it writes, and copies where the two overlap.
                if current is last and isinstance(current, stan.AssignOp):
                    return True
                return False
            if current is last:
                return True
            current = current.next_op
        return False

    def written_between(self, variables: frozenset[object], first: Operation, last: Operation) -> bool:
        """Whether an op after `first` and before `last`, of the same block, assigns one of some variables."""
        current = first.next_op
        while current is not None and current is not last:
            if variables & self.written(current):
                return True
            current = current.next_op
        return False

    def written(self, op: Operation) -> frozenset[object]:
        """The variables (as their storage) that an op assigns, regions included."""
        if isinstance(op, stan.AssignOp):
            target = self.env.get(op.var)
            return frozenset((target,)) if target is not None else frozenset()
        if not op.regions:
            return frozenset()
        found: set[object] = set()
        for inner in ops_within(op):
            if isinstance(inner, stan.AssignOp) and (target := self._storage_named(inner.var)) is not None:
                found.add(target)
        return frozenset(found)

    def _storage_named(self, var: SSAValue) -> object | None:
        if var in self.env:
            return self.env[var]
        if isinstance(var.owner, stan.GlobalOp):
            return self.globals.get(var.owner.var_name.data)
        return None

    # ------------------------------------------------------------ data or not

    def is_data(self, value: Value) -> bool:
        """Whether a lowered value depends on data alone."""
        if isinstance(value, Container):
            return value.data_only
        if isinstance(value, Tuple):
            return all(self.is_data(f) for f in value.fields)
        if (known := self._data.get(value)) is None:
            known = self._data[value] = self._scalar_is_data(value)
        return known

    def _scalar_is_data(self, ssa: SSAValue) -> bool:
        if isinstance(ssa, BlockArgument):
            return ssa.type == i64 and ssa.index == 0 and ssa.owner is not self.builder.entry
        op = ssa.owner
        assert isinstance(op, Operation)
        if isinstance(op, arith.ConstantOp | rt.BoundOp):
            return True
        if op.regions or isinstance(op, rt.AllocOp | rt.KernelOp):
            return False
        return all(self.is_data(operand) for operand in op.operands)

    def in_range(self, index: SSAValue, size: SSAValue) -> bool:
        """Whether 1 <= index <= size is known: of ranges of integers, or a loop variable that runs from 1 to `size`."""
        if (most := self.builder.known.get(size)) is not None:
            low, high = self.builder.range_of(index)
            if low >= 1 and high <= most:
                return True
        if (bounds := self.ranges.get(index)) is None:
            return False
        known = self.builder.known
        first, last = known.get(bounds[0]), bounds[1]
        same = last is size or (last in known and size in known and known[last] <= known[size])
        return first is not None and first >= 1 and same

    # ------------------------------------------------------------ errors

    def check(
        self, ok: SSAValue, status: int, message: str, *values: SSAValue, location: LocationAttr | None = None
    ) -> None:
        """Leaves the function with an error unless `ok`; `message` has `{0}`... for `values`."""
        if self.builder.known.get(ok) == 1:
            return
        site = self.new_site(status, message, location)
        self.builder.insert(rt.CheckOp(ok, site, values, status))

    def new_site(self, status: int, message: str, location: LocationAttr | None = None) -> int:
        """A further entry of the site table; its number."""
        function = None if self.subjects else self.called_function()
        if function is not None and not message.startswith(f"{function}: "):
            message = f"{function}: {message}"
        self.sites.append(CheckSite(status, message, *place_told(location or self.error_location())))
        return len(self.sites) - 1

    def in_library(self) -> bool:
        """Whether what is lowered is the body of a library function."""
        return bool(self.frames) and self.frames[-1].function.library is not None

    def called_function(self) -> str | None:
        """The library's function that the program calls, where its body is being written: errors are about it."""
        found = None
        for frame in reversed(self.frames):
            if frame.function.library is None:
                break  # the program's function, perhaps called by the library
            found = frame.function.stan_name.data
        return found

    def error_location(self) -> LocationAttr | None:
        """The place in the user's program: inside library functions that of the call."""
        location = self.builder.location
        for frame in reversed(self.frames):
            if frame.function.library is None:
                break  # the program's function, perhaps called by the library
            location = frame.location
        return location

    def check_size(self, size: SSAValue, what: str, expression: str = "", *, least: int = 0) -> None:
        """Throws unless a size (i64, `size`) is an int that is not less than `least`; `what` says so, and
        `expression` is how the size is written, if it has a name."""
        builder = self.builder
        low, high = builder.range_of(size)
        if low >= least and high <= INT_MAX:
            return
        if high > INT_MAX:  # the int that it stands for is negative then
            ok = builder.cmpi("ule", builder.sub(size, builder.i64(least)), builder.i64(INT_MAX - least))
        else:
            ok = builder.cmpi("sge", size, builder.i64(least))
        self.check(ok, FATAL, f"{what}, but {expression + ' ' if expression else ''}is {{0:int}}", size)
        builder.limit_size(size, least)

    def check_shape(self, what: str, dims: Sequence[SSAValue], element_bytes: int = 8) -> None:
        """Throws if no machine can hold a container of these sizes (i64, not negative)."""
        builder = self.builder
        if builder.recall(_shape_key(dims)) is not None:
            return
        most = 1
        for size in dims:
            most *= max(1, builder.range_of(size)[1])
        if most > MOST_BYTES // element_bytes:
            one, count = builder.i64(1), None
            for size in dims:
                # A size of 0 counts as 1: products of some of the sizes are loop bounds and offsets, too.
                positive = size
                if builder.range_of(size)[0] < 1:
                    positive = builder.value(arith.MaxSIOp, (size, one), i64)
                factor = builder.to_real(positive)
                count = factor if count is None else builder.mulf(count, factor)
            assert count is not None
            ok = builder.cmpf("ole", count, builder.f64(float(MOST_BYTES // element_bytes)))
            shown = [*dims[:3], builder.mulf(count, builder.f64(float(element_bytes)))]
            sizes = " x ".join(f"{{{n}}}" for n in range(len(shown) - 1)) + (" x ..." if len(dims) > 3 else "")
            message = f"{what}: sizes {sizes} need {{{len(shown) - 1}}} bytes, more than any machine has"
            self.check(ok, FATAL, message, *shown)
        self.note_shape(dims)

    def note_shape(self, dims: Sequence[SSAValue], *, everywhere: bool = False) -> None:
        """From here to the end of the block, containers of these sizes, or of some of them, need no check."""
        shapes = [dims] if len(dims) > 5 else [s for r in range(2, len(dims) + 1) for s in combinations(dims, r)]
        for some in shapes:
            self.builder.remember(_shape_key(some), some[0], everywhere=everywhere)

    def check_shape_of_result(self, dims: Sequence[SSAValue]) -> None:
        """As `check_shape`, of what the current op computes."""
        self.check_shape(self.subject(), dims)

    def memory_site(self) -> int | None:
        """The entry of the site table that is told when there is no memory for what the current op computes."""
        if self.current is None:
            return None
        name = self.subject()
        if isinstance(self.current, stan.DeclareOp) and not self.frames:
            sizes = [name_of_size(size) or "" for size in self.current.sizes]
            name += f" of sizes {' x '.join(sizes)}" if all(sizes) else ""
        key = name, self.error_location()
        if (found := self._memory_sites.get(key)) is None:
            found = self._memory_sites[key] = self.new_site(FATAL, f"{name}: {{text}}")
        return found

    def subject(self) -> str:
        """What an error of the current op is about: the function or operator as the program has it."""
        if (function := self.called_function()) is not None:
            return function
        op = self.current
        if isinstance(op, stan.DeclareOp | stan.ParameterOp):
            return op.told_name
        if op is not None and isinstance(name := op.properties.get("var_name"), StringAttr):
            return name.data
        if isinstance(op, stan.CallOp):
            return op.callee.data
        return getattr(op, "SYMBOL", None) or "a container"

    def check_equal_sizes(self, function: str, a: Container, b: Container) -> None:
        """Throws unless two containers have the same shape."""
        for x, y in zip(a.dims, b.dims, strict=True):
            self.check_equal_size(function, x, y)

    def check_equal_size(self, function: str, x: SSAValue, y: SSAValue) -> None:
        """Throws unless two sizes of arguments of a function or operator are equal."""
        self.check_equal(x, y, EQUAL_SIZES.format(self.called_function() or function, "{0}", "{1}"))

    def check_equal(self, x: SSAValue, y: SSAValue, message: str) -> None:
        """Throws unless two i64 are equal."""
        if x is y:
            return
        known = self.builder.known
        if x in known and known.get(x) == known.get(y):
            return
        self.check(self.builder.cmpi("eq", x, y), FATAL, message, x, y)

    # ------------------------------------------------------------ memory

    def new_storage(self, name: str, type_: Attribute, dims: list[SSAValue], *, fill: bool = True) -> Storage:
        """Memory of a variable; unassigned reals are NaN, ints the smallest int."""
        count = total(self.builder, dims)
        buffer = self.builder.alloc(count, buffer_type(type_), variable=True)
        if fill:
            self.builder.fill(buffer, self.unassigned(type_), count, initial=True)
        return Storage(name, type_, dims, buffer)

    def unassigned(self, type_: Attribute) -> SSAValue:
        """What a variable of this type holds before it is assigned."""
        if buffer_type(type_).element == i32:
            return self.builder.i32(INT_MIN)
        return self.builder.f64(float("nan"))

    def read_storage(self, storage: Storage) -> Value:
        """The present value of a variable; a container that reads the variable's own memory."""
        if not storage.dims:
            return self.builder.load(storage.buffer, self.builder.i64(0))
        return in_buffer(
            self.builder, storage.type, storage.dims, storage.buffer, variables=frozenset((storage,)))  # fmt: skip

    def own(self, value: Value) -> Value:
        """The same value, containers in memory that nothing writes to again."""
        if isinstance(value, Container):
            return materialize(self.builder, value, copy=bool(value.variables))
        if isinstance(value, Tuple):
            return Tuple(value.type, [self.own(f) for f in value.fields])
        return value

    def handed_on(self, value: Value) -> Value:
        """As `own`, for what a loop carries or a branch yields: reals in memory of this evaluation.

        Differentiation gives all memory that meets in a loop or branch adjoints, which bound memory cannot have.
        """
        value = self.own(value)
        if isinstance(value, Tuple):
            return Tuple(value.type, [self.handed_on(f) for f in value.fields])
        if not isinstance(value, Container) or value.element_type != f64:
            return value
        assert value.buffer is not None
        owner = viewed(value.buffer).owner
        is_formal = owner is self.builder.entry and bool(self.frames)  # of a recursive function: data in some calls
        if isinstance(owner, Block):
            if not is_formal:
                return value
        elif owner.parent is not self.builder.entry and not isinstance(owner, rt.BoundOp):
            return value
        if isinstance(owner, rt.AllocOp):
            if not any(isinstance(use.operation, ad.IndependentOp) for use in owner.res.uses):
                owner.properties["variable"] = UnitAttr()  # stays in `evaluate`, whatever it holds
            return value
        count = total(self.builder, value.dims)
        buffer = self.builder.alloc(count, BUFFER_REAL, variable=True)
        write(self.builder, value, buffer, initial=True)
        return in_buffer(self.builder, value.type, value.dims, buffer, data_only=value.data_only)

    # ------------------------------------------------------------ flattening, for branches and loops

    def flatten(self, value: Value) -> list[SSAValue]:
        """A value as SSA values: scalars as they are, containers as buffer and sizes."""
        value = self.own(value)
        if isinstance(value, Container):
            assert value.buffer is not None
            return [value.buffer, *value.dims]
        if isinstance(value, Tuple):
            return [ssa for f in value.fields for ssa in self.flatten(f)]
        return [value]

    def unflatten(self, template: Value, parts: Iterable[SSAValue]) -> Value:
        """The inverse of `flatten`, for a value of the shape of `template`."""
        iterator = iter(parts)
        return self._rebuild(template, iterator)

    def _rebuild(self, template: Value, parts) -> Value:  # noqa: ANN001
        if isinstance(template, Container):
            buffer = next(parts)
            return in_buffer(self.builder, template.type, [next(parts) for _ in template.dims], buffer)
        if isinstance(template, Tuple):
            return Tuple(template.type, [self._rebuild(f, parts) for f in template.fields])
        return next(parts)


def _shape_key(dims: Sequence[SSAValue]) -> tuple[str, frozenset[tuple[SSAValue, int]]]:
    """Names the shapes that have these sizes, in whatever order."""
    return "shape", frozenset(Counter(dims).items())


def _last_user(ssa: SSAValue, block: Block | None) -> Operation | None:
    """The last op of `block` that needs `ssa`, directly or through containers computed from it; None if none does."""
    last: Operation | None = None
    work = [ssa]
    while work:
        current = work.pop()
        for use in current.uses:
            user = ancestor_in(use.operation, block) if block is not None else None
            if user is None:
                continue
            if last is None or is_before(last, user):
                last = user
            if user is use.operation:
                work.extend(r for r in user.results if isinstance(r.type, _CONTAINER_TYPES))
    return last


_CONTAINER_TYPES = (stan.VectorType, stan.RowVectorType, stan.MatrixType, stan.ArrayType, stan.TupleType)


def is_density(op: Operation) -> bool:
    """Whether it is a call of a density of the library."""
    return (
        isinstance(op, stan.CallOp)
        and op.definition is not None
        and op.callback is None
        and kind_of(op.callee.data).is_density
    )


def is_requirement(op: Operation) -> bool:
    """Whether an op of a library function is a `require_*` statement."""
    return isinstance(op, stan.CallOp) and kind_of(op.callee.data) is FunctionKind.REQUIREMENT


def all_scalar(function: stan.FuncOp) -> bool:
    """Whether all formals of a function are scalars."""
    return all(isinstance(t, stan.IntType | stan.RealType) for t in function.function_type.inputs)


def names(attribute: ArrayAttr[StringAttr]) -> list[str]:
    """The texts of an array of string attributes."""
    return [a.data for a in attribute]
