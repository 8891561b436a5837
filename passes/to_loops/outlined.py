"""Functions that are written once as a `func.func` and called, where others are written in place of every call.

    real f(real x, vector v)  →  func.func @user.f(%x : f64, %v : !rt.buf<f64>, %size : i64) -> f64

These are recursive ones, which a chain of calls leads from back to themselves, and large ones that have many places
(`repeated_functions`). One version is written for each set of arguments that Stan calls autodiff, for whether the call
drops constants, and of those that need not be called for each set of known integers among the arguments.

Arguments and results are flattened: scalars as they are, containers as buffer and sizes, tuples field by field. The
memory of arguments is only read; that of results is new. What a function adds to the target is a further result; the
target before the call, and whether the Jacobian counts, are further arguments of functions that use them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, StringAttr, SymbolRefAttr, f64, i1, i32, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from ulam.dialects import ad, rt, stan
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.library.statuses import FATAL
from ulam.passes.autodiff.calls import OF_LIBRARY, Derivatives
from ulam.passes.autodiff.forward_mode import TangentFunctions
from ulam.passes.builder import Builder
from ulam.passes.errors import NotSupportedError
from ulam.passes.to_loops.lowering import CallFrame, Lowering
from ulam.passes.to_loops.repeated_functions import RepeatedFunctions
from ulam.passes.to_loops.shared_functions import SharedFunctions
from ulam.passes.to_loops.target_terms import TargetTerms
from ulam.passes.to_loops.values import Container, Tuple, Value, buffer_type, in_buffer, materialize, rank_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import LocationAttr

_TARGET_OPS = (stan.TargetAddOp, stan.JacobianAddOp, stan.TargetOp)


class CallGraph:
    """Who calls whom among the functions of a program; what they do to the target, callees included."""

    def __init__(self, functions: dict[str, stan.FuncOp]) -> None:
        self._callees: dict[str, set[str]] = {}
        self._own: dict[str, set[type[Operation]]] = {}
        for name, function in functions.items():
            # Library functions call only library functions, and those are not recursive.
            if function.library is None and function.body.blocks:
                self._scan(name, function)
        self._reached: dict[str, frozenset[str]] = {}

    def _scan(self, name: str, function: stan.FuncOp) -> None:
        callees = self._callees[name] = set[str]()
        own = self._own[name] = set[type[Operation]]()
        for op in ops_within(function.body):
            if isinstance(op, stan.CallOp):
                if op.user is not None:
                    callees.add(op.callee.data)
                if op.callback is not None:
                    callees.add(op.callback.data)
            elif isinstance(op, _TARGET_OPS):
                own.add(type(op))

    def reached(self, name: str) -> frozenset[str]:
        """The functions that a call of `name` may call in turn."""
        if (found := self._reached.get(name)) is None:
            seen: set[str] = set()
            work = list(self._callees.get(name, ()))
            while work:
                current = work.pop()
                if current not in seen:
                    seen.add(current)
                    work.extend(self._callees.get(current, ()))
            found = self._reached[name] = frozenset(seen)
        return found

    def is_recursive(self, name: str) -> bool:
        return name in self._callees and name in self.reached(name)

    def target_ops(self, name: str) -> set[type[Operation]]:
        """The kinds of ops on the target that running `name` may run."""
        return set().union(*(self._own.get(n, set()) for n in (name, *self.reached(name))))


@record(frozen=True)
class _Key:
    """What tells the versions of a function apart."""

    symbol: str
    unnormalized: bool
    autodiff: tuple[bool, ...]
    jacobian: bool
    differentiated_again: bool
    known: tuple[tuple[int, int], ...]
    """Integers among the flattened arguments, by position."""


@record
class _Version:
    """A function that has been written, or is being written: its symbol and its low-level signature."""

    symbol: str
    inputs: list[Attribute]
    outputs: list[Attribute]
    adds_target: bool
    reads_target: bool
    takes_jacobian: bool


class Outlined:
    """The functions of one unit that are called, written then: recursive, `repeated`, and `shared` ones of the library.

    `terms`: calls that may wait. `of_data`: calls with data alone are `shared`, too.
    """

    def __init__(
        self,
        functions: dict[str, stan.FuncOp],
        whole_terms: bool = False,
        of_data: bool = False,
        repeated: RepeatedFunctions | None = None,
    ) -> None:
        self.graph = CallGraph(functions)
        self.terms = TargetTerms(functions, whole_terms)
        self.written: list[func.FuncOp] = []
        self.tangents = TangentFunctions(reverse_follows=True)
        self.derivatives = Derivatives()
        """What functions of solvers call, where they are differentiated in place."""
        self.shared = SharedFunctions(functions, of_data=of_data)
        self._repeated = repeated
        self._versions: dict[_Key, _Version] = {}

    def is_called(
        self,
        low: Lowering,
        function: stan.FuncOp,
        arguments: Sequence[Value],
        unnormalized: bool,
        autodiff: Sequence[bool],
    ) -> bool:
        """Whether a call of a function of the program is one, not written in place."""
        if self.graph.is_recursive(function.sym_name.data):
            return True
        if self._repeated is None or any(frame.closure is not None for frame in low.frames):
            return False
        return self._repeated.is_called(function, arguments, autodiff, unnormalized)

    def call(
        self,
        low: Lowering,
        function: stan.FuncOp,
        arguments: Sequence[Value],
        unnormalized: bool,
        autodiff: Sequence[bool],
    ) -> Value | None:
        """Writes a call; returns its result."""
        builder = low.builder
        operands = [part for argument in arguments for part in low.flatten(argument)]
        known = {} if self.graph.is_recursive(function.sym_name.data) else _known_integers(builder, operands)
        unnormalized = unnormalized and all(f.unnormalized for f in low.frames)
        version = self._version(low, function, unnormalized, autodiff, known)
        if version.reads_target:
            operands.append(builder.insert(ad.TargetOp()).res)
        if version.takes_jacobian:
            assert low.jacobian is not None
            operands.append(low.jacobian)
        op = builder.emit(func.CallOp, operands, version.outputs, {"callee": SymbolRefAttr(version.symbol)})
        results = list(op.results)
        if version.adds_target:
            builder.insert(ad.TargetAddOp(results.pop()))
        outputs = function.function_type.outputs.data
        return _from_parts(builder, outputs[0], iter(results)) if outputs else None

    def call_shared(
        self,
        low: Lowering,
        function: stan.FuncOp,
        arguments: Sequence[Value],
        unnormalized: bool,
        autodiff: Sequence[bool],
        *,
        in_solver: bool,
    ) -> Value | None:
        """The same for a function of the library that need not be called; None if it can fail, and is not.

        A part of a solver that rejects nothing fails only if there is no memory for it: as of its first call.
        """
        known, written, sites = dict(self._versions), len(self.written), len(low.sites)
        self._version(low, function, unnormalized and all(f.unnormalized for f in low.frames), autodiff)
        if all(in_solver and site.status == FATAL for site in low.sites[sites:]):
            return self.call(low, function, arguments, unnormalized, autodiff)
        self.shared.failing.add(function.sym_name.data)
        del low.sites[sites:], self.written[written:]
        self._versions = known
        return None

    # ------------------------------------------------------------ writing

    def _version(
        self,
        low: Lowering,
        function: stan.FuncOp,
        unnormalized: bool,
        autodiff: Sequence[bool],
        known: Mapping[int, int] = MappingProxyType({}),
    ) -> _Version:
        name = function.sym_name.data
        target_ops = self.graph.target_ops(name)
        takes_jacobian = stan.JacobianAddOp in target_ops and low.jacobian is not None
        if function.library is not None and not unnormalized:  # then it drops nothing, whatever is autodiff
            autodiff = [True] * len(autodiff)
        bits, again = tuple(map(bool, autodiff)), low.differentiated_again
        key = _Key(name, unnormalized, bits, takes_jacobian, again, tuple(known.items()))
        if (found := self._versions.get(key)) is not None:
            return found
        inputs = [t for formal in function.function_type.inputs for t in _flat_types(formal, function.location)]
        outputs = [t for result in function.function_type.outputs for t in _flat_types(result, function.location)]
        reads_target = stan.TargetOp in target_ops
        adds_target = stan.TargetAddOp in target_ops or takes_jacobian
        number = sum(k.symbol == name for k in self._versions)
        version = _Version(
            ("user." if function.library is None else OF_LIBRARY) + name + (f".{number}" if number else ""),
            inputs + [f64] * reads_target + [i1] * takes_jacobian,
            outputs + [f64] * adds_target,
            adds_target,
            reads_target,
            takes_jacobian,
        )
        self._versions[key] = version
        self.written.append(self._write(low, function, version, key))
        return version

    def _write(self, low: Lowering, function: stan.FuncOp, version: _Version, key: _Key) -> func.FuncOp:
        block = Block(arg_types=version.inputs)
        builder = Builder(block)
        builder.location = function.location
        inner = Lowering(builder, low.functions, low.sites, self)
        inner.profiles, inner.templates = low.profiles, low.templates
        inner.propto, inner.precise, inner.differentiated = low.propto, low.precise, low.differentiated
        inner.differentiated_again = key.differentiated_again
        inner.jacobian = block.args[-1] if version.takes_jacobian else None
        frame = CallFrame(function, function.location, key.unnormalized)
        constants = dict(key.known)
        parts = iter([_argument(builder, argument, constants.get(n)) for n, argument in enumerate(block.args)])
        body = function.body.block
        for formal, bit in zip(body.args, key.autodiff, strict=True):
            value = _from_parts(builder, formal.type, parts)
            inner.env[formal] = value
            frame.autodiff[formal] = bit
            _name(value, formal.name_hint)
        if function.library is not None:
            inner.frames.extend(low.frames)
        inner.frames.append(frame)
        if self.graph.is_recursive(function.sym_name.data):
            told = f"function '{function.stan_name.data}' calls itself too often"
            builder.insert(rt.StackGuardOp(inner.new_site(FATAL, told, function.location)))
        inner.block_ops(body.ops)
        results = [] if frame.result is None else _results(inner, frame.result)
        argument = len(version.inputs) - 1 - version.takes_jacobian if version.reads_target else -1
        position = ad.TargetPositionAttr.at(len(results) if version.adds_target else -1, argument)
        has_target = version.reads_target or version.adds_target
        if version.adds_target:
            results.append(builder.f64(0.0))
        builder.emit(func.ReturnOp, results)
        builder.finish()
        return func.FuncOp.create(
            properties={
                "sym_name": StringAttr(version.symbol),
                "function_type": FunctionType.from_lists(version.inputs, version.outputs),
            },
            attributes=position.as_attributes() if has_target else {},
            regions=[Region(block)],
            location=function.location,
        )


def _results(low: Lowering, value: Value) -> list[SSAValue]:
    """A result, flattened; containers in memory that the call has taken itself."""
    if isinstance(value, Tuple):
        return [part for field in value.fields for part in _results(low, field)]
    if isinstance(value, Container):
        owned = low.own(value)
        assert isinstance(owned, Container) and owned.buffer is not None
        if not isinstance(owned.buffer.owner, rt.AllocOp | func.CallOp):
            owned = materialize(low.builder, owned, copy=True)
        return low.flatten(owned)
    return [value]


def _flat_types(type_: Attribute, location: LocationAttr | None) -> list[Attribute]:
    """The types of what a value of a Stan type is flattened to."""
    if isinstance(type_, stan.TupleType):
        return [t for field in type_.elements for t in _flat_types(field, location)]
    if isinstance(type_, stan.IntType):
        return [i32]
    if isinstance(type_, stan.RealType):
        return [f64]
    base = type_.element if isinstance(type_, stan.ArrayType) else type_
    if not rank_of(type_) or not isinstance(base, _ELEMENTS):
        raise NotSupportedError(f"recursive functions with values of type {type_} are not supported yet", location)
    return [buffer_type(type_), *[i64] * rank_of(type_)]


_ELEMENTS = (stan.IntType, stan.RealType, stan.VectorType, stan.RowVectorType, stan.MatrixType)


def _from_parts(builder: Builder, type_: Attribute, parts: Iterator[SSAValue]) -> Value:
    """The value of a Stan type whose flattened form `parts` gives."""
    if isinstance(type_, stan.TupleType):
        return Tuple(type_, [_from_parts(builder, field, parts) for field in type_.elements])
    first = next(parts)
    if not rank_of(type_):
        return first
    return in_buffer(builder, type_, [next(parts) for _ in range(rank_of(type_))], first)


def _known_integers(builder: Builder, operands: Sequence[SSAValue]) -> dict[int, int]:
    """The operands of a call that are known integers, by position."""
    found = {n: builder.known.get(operand) for n, operand in enumerate(operands) if operand.type in (i32, i64)}
    return {n: int(value) for n, value in found.items() if value is not None}


def _argument(builder: Builder, argument: SSAValue, known: int | None) -> SSAValue:
    """An argument as the function's body uses it: a constant if it is the same in all calls."""
    if known is None:
        return argument
    return builder.i32(known) if argument.type == i32 else builder.i64(known)


def _name(value: Value, hint: str | None) -> None:
    named = value.buffer if isinstance(value, Container) else value
    if isinstance(named, BlockArgument):
        named.name_hint = hint
