"""Functions that are written once as a `func.func` and called, where others are written in place of every call.

    real f(real x, vector v)  →  func.func @user.f(%x : f64, %v : !rt.buf<f64>, %size : i64) -> f64

These are recursive ones, which a chain of calls leads from back to themselves, and large ones that have many places
(`repeated_functions`). One version is written for each set of arguments that Stan calls autodiff (where there are
derivatives, or the call drops constants), for whether the call drops constants, and of those that need not be called
for each set of known integers among the arguments.

Arguments and results are flattened: scalars as they are, containers as buffer and sizes, tuples field by field. The
memory of arguments is only read; that of results is new. What a function adds to the target is a further result; the
target before the call, and whether the Jacobian counts, are further arguments of functions that use them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, IntAttr, StringAttr, SymbolRefAttr, f64, i1, i32, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from ulam.dialects import ad, rt, stan
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.library.statuses import FATAL
from ulam.passes.analysis.call_graph import in_cycles
from ulam.passes.autodiff.calls import OF_LIBRARY, Derivatives
from ulam.passes.autodiff.forward_mode import TangentFunctions
from ulam.passes.builder import Builder
from ulam.passes.errors import NotSupportedError
from ulam.passes.loops.checks import leave_open
from ulam.passes.to_loops.check_sites import CheckSite, place_told
from ulam.passes.to_loops.lowering import CallFrame, Closure, Lowering
from ulam.passes.to_loops.repeated_functions import RepeatedFunctions
from ulam.passes.to_loops.shared_functions import SharedFunctions
from ulam.passes.to_loops.shared_solutions import chain, closure, constant, frames_with, is_shared
from ulam.passes.to_loops.target_terms import TargetTerms
from ulam.passes.to_loops.values import Container, Tuple, Value, buffer_type, in_buffer, materialize, rank_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import LocationAttr

ErrorsOfShared = Literal["none", "elsewhere", "by call"]

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
        # Not by what each reaches: in a chain of functions that is all behind it.
        self._recursive = in_cycles({name: called & self._callees.keys() for name, called in self._callees.items()})

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

    def is_recursive(self, name: str) -> bool:
        return name in self._recursive

    def target_ops(self, name: str) -> set[type[Operation]]:
        """The kinds of ops on the target that running `name` may run."""
        return self._target_ops.get(name, set())

    @cached_property
    def _target_ops(self) -> dict[str, set[type[Operation]]]:
        callers: dict[str, list[str]] = {}
        for name, called in self._callees.items():
            for callee in called:
                callers.setdefault(callee, []).append(name)
        found = {name: set(own) for name, own in self._own.items()}
        work = [name for name, own in found.items() if own]
        while work:
            name = work.pop()
            for caller in callers.get(name, ()):
                if not found[name] <= found[caller]:
                    found[caller] |= found[name]
                    work.append(caller)
        return found


@record(frozen=True)
class _Key:
    """What tells the versions of a function apart."""

    symbol: str
    unnormalized: bool
    autodiff: tuple[bool, ...]
    jacobian: bool
    differentiated_again: bool
    known: tuple[tuple[int, float], ...]
    """Integers among the flattened arguments that are known, and of solutions the reals, by position."""
    told: str | None = None
    """What errors of a function of the library are about, where it has some: the one that the program calls."""
    callback: tuple[str, tuple[bool, ...], tuple[Attribute, ...]] | None = None
    """The function of the program that it calls (`shared_solutions`), and what that is called with besides."""


@record
class _Version:
    """A function that has been written, or is being written: its symbol and its low-level signature."""

    symbol: str
    inputs: list[Attribute]
    outputs: list[Attribute]
    adds_target: bool
    reads_target: bool
    takes_jacobian: bool
    sites: range = range(0)
    """The entries of the site table that errors have as of its first call, where further calls have others."""
    place: tuple[str, int, int] = ("", 0, 0)
    """That of its first call: errors that are told elsewhere, as those of `reject`, are told there at all calls."""
    is_called: bool = False


class Outlined:
    """The functions of one unit that are called, written then: recursive, `repeated`, and `shared` ones of the library.

    `terms`: calls that may wait. `of_data`: calls with data alone are `shared`, too. `errors`: of which `shared`
    functions that can fail is so: those of none, of all since another unit tells the error, or of each call where the
    function is not differentiated.
    """

    def __init__(
        self,
        functions: dict[str, stan.FuncOp],
        whole_terms: bool = False,
        of_data: bool = False,
        repeated: RepeatedFunctions | None = None,
        errors: ErrorsOfShared = "none",
    ) -> None:
        self.graph = CallGraph(functions)
        self.terms = TargetTerms(functions, whole_terms)
        self.written: list[func.FuncOp] = []
        self.tangents = TangentFunctions(reverse_follows=True)
        self.derivatives = Derivatives()
        """What functions of solvers call, where they are differentiated in place."""
        self.shared = SharedFunctions(functions, of_data=of_data)
        self._repeated = repeated
        self._errors = errors
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
        operands = [part for argument in arguments for part in low.flatten(argument)]
        return self._call(low, function, self._version(low, function, unnormalized, autodiff, operands), operands)

    def _call(self, low: Lowering, function: stan.FuncOp, version: _Version, operands: list[SSAValue]) -> Value | None:
        builder = low.builder
        if version.reads_target:
            operands.append(builder.insert(ad.TargetOp()).res)
        if version.takes_jacobian:
            assert low.jacobian is not None
            operands.append(low.jacobian)
        op = builder.emit(func.CallOp, operands, version.outputs, {"callee": SymbolRefAttr(version.symbol)})
        if distance := _sites_of_call(low, version):
            rt.SitesAttr(IntAttr(distance)).put(op)
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

        A part of a solver that rejects nothing fails only if there is no memory for it.
        """
        known, written, sites = dict(self._versions), len(self.written), len(low.sites)
        operands = [part for argument in arguments for part in low.flatten(argument)]
        version = self._version(low, function, unnormalized, autodiff, operands)
        if any(not in_solver or site.status != FATAL for site in low.sites[sites:]):
            if not self._tells_errors(low):
                self.shared.failing.add(function.sym_name.data)
                del low.sites[sites:], self.written[written:]
                self._versions = known
                return None
            self._leave_open(low, version, sites, written)
        return self._call(low, function, version, operands)

    def _tells_errors(self, low: Lowering) -> bool:
        """Whether an error of a function that is called is told as that of the program's call."""
        if self._errors == "by call":
            return all(frame.closure is None for frame in low.frames)
        return self._errors == "elsewhere"

    def call_solution(
        self, low: Lowering, function: stan.FuncOp, arguments: Sequence[Value], autodiff: Sequence[bool]
    ) -> Value | None:
        """The same for a solution of a differential equation; None if it is written in place."""
        if self._errors == "none" or not is_shared(low, function, arguments, self._repeated):
            return None
        given = closure(low)
        operands = [part for argument in arguments for part in low.flatten(constant(low, argument))]
        passed = [part for argument in given.arguments for part in low.flatten(constant(low, argument))]
        written, sites = len(self.written), len(low.sites)
        version = self._version(low, function, False, autodiff, operands + passed, given)
        self._leave_open(low, version, sites, written)
        return self._call(low, function, version, operands + passed)

    def _leave_open(self, low: Lowering, version: _Version, sites: int, written: int) -> None:
        """Takes the errors from what has been written since, where another unit tells them."""
        if self._errors != "elsewhere" or len(low.sites) == sites:
            return
        for op in (op for new in self.written[written:] for op in ops_within(new)):
            leave_open(op)
        del low.sites[sites:]
        version.sites = range(0)

    # ------------------------------------------------------------ writing

    def _version(
        self,
        low: Lowering,
        function: stan.FuncOp,
        unnormalized: bool,
        autodiff: Sequence[bool],
        operands: Sequence[SSAValue],
        given: Closure | None = None,
    ) -> _Version:
        """The version that a call with these operands is to call, written if it is not there.

        `given`: the function of the program that it calls; the last operands are what that is called with besides.
        """
        name = function.sym_name.data
        types = (i32, i64) if given is None else (i32, i64, f64)
        known = {} if self.graph.is_recursive(name) else _known(low.builder, operands, types)
        if self._repeated is not None and function.library is None and known:
            differing = self._repeated.differing(name)
            known = {n: value for n, value in known.items() if _argument_of(function, n) not in differing}
        unnormalized = unnormalized and all(f.unnormalized for f in low.frames)
        target_ops = self.graph.target_ops(name)
        takes_jacobian = stan.JacobianAddOp in target_ops and low.jacobian is not None
        if not unnormalized and (function.library is not None or not low.differentiated):
            autodiff = [True] * len(autodiff)  # it drops nothing, whatever is autodiff
        bits, again = tuple(map(bool, autodiff)), low.differentiated_again
        inputs = [t for formal in function.function_type.inputs for t in _flat_types(formal, function.location)]
        callback = None
        if given is not None:
            passed = tuple(operand.type for operand in operands[len(inputs) :])
            callback = given.function.sym_name.data, tuple(map(bool, given.autodiff)), passed
            inputs += passed
        key = _Key(name, unnormalized, bits, takes_jacobian, again, tuple(known.items()), None, callback)
        of_call = replace(key, told=low.called_function() if given is None else chain(low))
        if (found := self._versions.get(key) or self._versions.get(of_call)) is not None:
            return found
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
        first = len(low.sites)
        self.written.append(self._write(low, function, version, key, given))
        if function.library is not None and self._errors == "by call" and len(low.sites) > first:
            version.sites, version.place = range(first, len(low.sites)), place_told(low.error_location())
            self._versions[of_call] = self._versions.pop(key)
        return version

    def _write(
        self, low: Lowering, function: stan.FuncOp, version: _Version, key: _Key, given: Closure | None
    ) -> func.FuncOp:
        block = Block(arg_types=version.inputs)
        builder = Builder(block)
        builder.location = function.location
        inner = Lowering(builder, low.functions, low.sites, self)
        inner.profiles, inner.templates = low.profiles, low.templates
        inner.propto, inner.precise, inner.differentiated = low.propto, low.precise, low.differentiated
        inner.told_elsewhere = low.told_elsewhere
        inner.differentiated_again = key.differentiated_again
        inner.jacobian = block.args[-1] if version.takes_jacobian else None
        in_library = function.library is not None
        frame = CallFrame(function, low.builder.location if in_library else function.location, key.unnormalized)
        constants = dict(key.known)
        parts = iter([_argument(builder, argument, constants.get(n)) for n, argument in enumerate(block.args)])
        body = function.body.block
        for formal, bit in zip(body.args, key.autodiff, strict=True):
            value = _from_parts(builder, formal.type, parts)
            inner.env[formal] = value
            frame.autodiff[formal] = bit
            _name(value, formal.name_hint)
        if given is not None:
            own = Closure(given.function, [inner.unflatten(a, parts) for a in given.arguments], given.autodiff)
            inner.frames.extend(frames_with(low.frames, own))
        elif in_library:
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


def _sites_of_call(low: Lowering, version: _Version) -> int:
    """How far behind the sites of a version those of a call lie, which are added here; 0 of the first call."""
    is_first, version.is_called = not version.is_called, True
    if is_first or not version.sites:
        return 0
    first, end, here = version.sites.start, len(low.sites), place_told(low.error_location())
    for site in low.sites[first : version.sites.stop]:
        place = here if site.place == version.place else site.place
        low.sites.append(CheckSite(site.status, site.message, *place))
    return end - first


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


def _argument_of(function: stan.FuncOp, position: int) -> int:
    """Which argument of a function the operand at a position is of."""
    inputs = function.function_type.inputs.data
    ends = accumulate(len(_flat_types(formal, function.location)) for formal in inputs)
    return next((n for n, end in enumerate(ends) if position < end), len(inputs))


def _known(builder: Builder, operands: Sequence[SSAValue], types: Sequence[Attribute]) -> dict[int, float]:
    """The operands of a call that are known numbers of these types, by position."""
    found = {n: builder.known.get(operand) for n, operand in enumerate(operands) if operand.type in types}
    return {n: value for n, value in found.items() if value is not None}


def _argument(builder: Builder, argument: SSAValue, known: float | None) -> SSAValue:
    """An argument as the function's body uses it: a constant if it is the same in all calls."""
    if known is None:
        return argument
    if argument.type == f64:
        return builder.f64(known)
    return builder.i32(int(known)) if argument.type == i32 else builder.i64(int(known))


def _name(value: Value, hint: str | None) -> None:
    named = value.buffer if isinstance(value, Container) else value
    if isinstance(named, BlockArgument):
        named.name_hint = hint
