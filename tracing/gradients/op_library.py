"""The ops of a traced program one by one: the value of an op for any operands, and its pullback.

    library = node.trace.op_library
    library.value(node, operands)                   raises ProgramError as the program would
    library.pullback(node, operands, cotangent)     what the cotangent adds to the adjoint of each operand

Operands are values as nodes have them. What only moves data is done here; all else is compiled, once per traced
program, when the first value, or the first pullback, is asked for (see `ulam.tracing.instrument.op_functions`).
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ulam.runtime.c_library import library
from ulam.runtime.errors import ArgumentError, ErrorSite, FatalError, UlamError
from ulam.runtime.interrupts import held
from ulam.runtime.native import Context, running
from ulam.runtime.program import compile_errors, load_object
from ulam.tracing.gradients.moves import derived, is_move, move_back, moved, violation
from ulam.tracing.instrument.graph import ROOT, Graph, Item, Place, ValueType
from ulam.tracing.nodes import ItemNode
from ulam.tracing.tape.frame_values import not_kept
from ulam.tracing.tape.values import MISSING, Digest, from_elements

if TYPE_CHECKING:
    from ulam.passes.to_loops.programs import ProgramParts
    from ulam.runtime.external_functions import Externals
    from ulam.runtime.native import Generator
    from ulam.tracing.instrument.op_functions import OpFunction, OpFunctions, OpModule

_T = TypeVar("_T")


class NoDerivative(UlamError):
    """An op of which the compiler cannot make a pullback."""


class _Loaded:
    """Functions of one kind (values or pullbacks) in the process."""

    def __init__(self, module: OpModule, externals: Externals | None) -> None:
        from ulam.emit import jit
        from ulam.emit.llvm_module import emit_module
        from ulam.emit.llvm_text import EmitOptions

        self.failed = module.failed
        self.sites = [ErrorSite.from_metadata(asdict(site)) for site in module.sites]
        text = emit_module(module.module, EmitOptions(0, jit.host().fused, inline_math=False, unit="trace"))
        self._object = load_object(jit.compile_object(text, jit.SCALAR), externals)
        self._entries: dict[str, int] = {}

    def entry(self, symbol: str) -> int:
        found = self._entries.get(symbol)
        if found is None:
            found = self._entries[symbol] = self._object.address(symbol)
        return found


class _ScalarPullback:
    """A pullback of reals and ints alone, with its memory: most ops of most tapes."""

    def __init__(self, function: OpFunction, entry: int) -> None:
        self._entry = entry
        self._ints = np.zeros(max(function.slots, 1), np.int64)
        self._reals = self._ints.view(np.float64)
        self._theta, self._gradient = np.zeros((2, len(function.differentiable) + 1))
        self._addresses = [a.ctypes.data for a in (self._ints, self._theta, self._gradient)]
        self._slots = [(a.slot, a.position, a.type.is_int) for a in function.arguments]
        self._taken = [function.arguments[n].position for n in function.differentiable]
        self._first, self._target = function.first, function.target_slot if function.adds_target else -1
        self._count = function.count

    def run(self, context: Context, operands: Sequence[Any], cotangent: float, target: float) -> int:
        """The status of a run; its results are kept until the next one."""
        for slot, position, is_int in self._slots:
            if is_int:
                self._ints[slot] = operands[position]
            else:
                self._reals[slot] = operands[position]
        for n, position in enumerate(self._taken):
            self._theta[n] = operands[position]
        self._reals[self._first] = cotangent
        if self._target >= 0:
            self._reals[self._target] = target
        table, theta, gradient = self._addresses
        status = context.run_gradient(context.address, self._entry, table, theta, gradient, 0)
        if context.output_length.value:
            context.take_output()
        return running(status)

    def adjoints(self) -> list[Any]:
        found: list[Any] = [None] * self._count
        for n, position in enumerate(self._taken):
            found[position] = float(self._gradient[n])
        return found


_Key = tuple[int, int]
"""An item, by identity, and a field of the tuple that it gives, or 0."""


class OpLibrary:
    """Values and pullbacks of the ops of a traced program. Any number of threads may use it, one at a time does.

    `program` gives the program in value form, when something is compiled; `ops` are those of each traced function by
    number of their value. `propto`: constants are dropped where the traced program did; `jacobian`: whether
    `jacobian +=` counts.
    """

    def __init__(
        self,
        program: Callable[[], ProgramParts],
        graphs: Mapping[str, Graph],
        ops: Mapping[str, Mapping[int, Any]],
        propto: bool = False,
        jacobian: bool = True,
        externals: Externals | None = None,
    ) -> None:
        self._externals = externals
        self._make_program = program
        self._graphs, self._ops = graphs, ops
        self._propto, self._jacobian = propto, jacobian
        self._lock = threading.RLock()
        self._functions: OpFunctions | None = None
        self._names: dict[_Key, str | None] = {}
        self._variables = {
            id(item): variable.owner.told_name
            for symbol, graph in graphs.items()
            for block in graph.blocks
            for item in block.items
            if item.name == "index_assign"
            and (variable := getattr(ops.get(symbol, {}).get(item.index), "var", None)) is not None
        }
        self._program: ProgramParts | None = None
        self._loaded: dict[str, _Loaded] = {}
        self._scalars: dict[_Key, _ScalarPullback] = {}
        self._context: Context | None = None
        self._memory = library()

    # ------------------------------------------------------------ what is called

    def value(self, node: ItemNode | Item, operands: Sequence[Any], rng: Any = None, *, whole: bool = False) -> Any:
        """The value of an op for these operands; None for ops without one. `rng`: what draws draw from, or makes it
        for the context that the op runs in.

        `whole`: of a call that was entered, the function as a whole.
        Raises ProgramError where the program would, and ArgumentError for ops that are no function of their operands:
        calls that were entered, prints, additions to the target.
        """
        item = _item(node)
        _require_kept(item, operands)
        if item.derived in ("increment", "condition", "declare"):
            return derived(item, operands)
        if is_move(item):
            problem = violation(item, operands, self._variables.get(id(item), ""))
            if problem is None:
                return moved(item, operands)
            place = item.place or Place("", 0, 0)
            raise FatalError(problem, "", place.file, place.line, place.column, ())
        with self._lock:
            function = self._function(item, whole)
            loaded = self._load("values", function)
            return self._run_value(loaded, function, item, operands[_callbacks(item) :], rng)

    def pullback(
        self,
        node: ItemNode | Item,
        operands: Sequence[Any],
        cotangent: Any,
        target: float = 0.0,
        *,
        whole: bool = False,
        number: int = 0,
    ) -> list[Any]:
        """For each operand what it gets: a float or an array of its shape; None where there is no derivative.

        Ints, literals, and arguments that Stan calls data have none. `target`: the adjoint of the target, for calls
        that add to it; `whole` as for `value`; `number`: of the tuple that a call of the library gives, the field that
        the cotangent is of. Raises NoDerivative for ops that the compiler cannot differentiate, and ProgramError where
        the op throws.
        """
        item = _item(node)
        if not whole and (scalar := self._scalars.get((id(item), number))) is not None:
            with self._lock:
                status = scalar.run(self._space(), operands, cotangent, target)
                if status:
                    raise self._error(self._loaded["pullbacks"], item, status)
                return scalar.adjoints()
        _require_kept(item, operands)
        if item.derived in ("increment", "condition", "declare"):
            return [None] * len(operands)
        if is_move(item):
            return [None] * len(operands) if item.type.is_int else move_back(item, operands, cotangent)
        with self._lock:
            from ulam.tracing.instrument.op_functions import pullback_name

            function = self._function(item, whole, number)
            if not function.differentiable or (item.type.is_int and not target):
                return [None] * len(operands)
            loaded = self._load("pullbacks", function)
            if function.is_scalar and not whole:
                entry = loaded.entry(pullback_name(function.name))
                self._scalars[id(item), number] = _ScalarPullback(function, entry)
                return self.pullback(item, operands, cotangent, target, number=number)
            first = _callbacks(item)
            return [None] * first + self._run_pullback(loaded, function, item, operands[first:], cotangent, target)

    @property
    def names(self) -> dict[str, str]:
        """The distinct ops: name of the function, and the op as text."""
        with self._lock:
            return {name: str(made.function) for name, made in self._all().by_name.items()}

    # ------------------------------------------------------------ compiling

    def _all(self) -> OpFunctions:
        if self._functions is None:
            from ulam.tracing.instrument.op_functions import OpFunctions

            self._functions = OpFunctions(self._lowerable().functions)
            counted = bool(self._graphs[ROOT].stub)
            for symbol, graph in self._graphs.items():
                ops = self._ops.get(symbol, {})
                for block in graph.blocks:
                    for item in block.items:
                        op = ops.get(item.index)
                        # where the depth is counted, some of its calls are not entered
                        is_nested = item.child and not (counted or self._graphs[item.child].opaque)
                        self._names[id(item), 0] = None
                        if op is not None and not is_nested:
                            for number in range(1 + _fields(op)):
                                self._names[id(item), number] = self._functions.add(op, number)
        return self._functions

    def _function(self, item: Item, whole: bool, number: int = 0) -> OpFunction:
        functions = self._all()
        if (id(item), 0) not in self._names:
            raise ArgumentError("the node is of another trace")
        name = self._names.get((id(item), number))
        if name is None and whole:
            name = self._whole(item)
        if name is None:
            raise ArgumentError(f"'{item.name}' is no function of its operands")
        return functions.by_name[name]

    def _whole(self, item: Item) -> str | None:
        """The function for an entered call; what was compiled before is compiled again with it."""
        functions = self._all()
        for symbol, graph in self._graphs.items():
            if any(item is other for block in graph.blocks for other in block.items):
                count = len(functions.by_name)
                name = functions.add(self._ops[symbol][item.index])
                if len(functions.by_name) > count:
                    self._loaded.clear()
                    self._scalars.clear()
                return name
        return None

    def _lowerable(self) -> ProgramParts:
        if self._program is None:
            self._program = _compiled(self._make_program)
        return self._program

    def _module_of(self, kind: str) -> _Loaded:
        if kind not in self._loaded:
            from ulam.tracing.instrument.op_functions import Setting, lower_pullbacks, lower_values

            lower = {"values": lower_values, "pullbacks": lower_pullbacks}[kind]
            functions = self._all().by_name.values()
            setting = Setting(self._propto, self._jacobian)

            def make() -> _Loaded:
                return _Loaded(lower(self._lowerable(), functions, setting), self._externals)

            self._loaded[kind] = _compiled(make)
        return self._loaded[kind]

    def _load(self, kind: str, function: OpFunction) -> _Loaded:
        loaded = self._module_of(kind)
        if (problem := loaded.failed.get(function.name)) is not None:
            raise NoDerivative(f"{problem} [{function.op.name.removeprefix('stan.')}]")
        return loaded

    # ------------------------------------------------------------ running

    def _space(self) -> Context:
        if self._context is None:
            self._context = Context()
        return self._context

    def _table(
        self, function: OpFunction, operands: Sequence[Any]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], list[Any]]:
        """The bound table with the operands, as ints and as reals; what must be kept while it is used."""
        ints = np.zeros(max(function.slots, 1), np.int64)
        reals = ints.view(np.float64)
        kept: list[Any] = []
        for argument in function.arguments:
            value, type_ = operands[argument.position], argument.type
            if type_.rank:
                elements = _elements(value, type_)
                kept.append(elements)
                ints[argument.slot] = elements.ctypes.data
                ints[argument.slot + 1 : argument.slot + 1 + type_.rank] = np.shape(value)
            elif type_.is_int:
                ints[argument.slot] = int(value)
            else:
                reals[argument.slot] = value
        return ints, reals, kept

    def _run_value(self, loaded: _Loaded, function: OpFunction, item: Item, operands: Sequence[Any], rng: Any) -> Any:
        ints, reals, _kept = self._table(function, operands)
        context = self._space()
        context.rng = cast("Generator | None", rng(context) if callable(rng) else rng)
        memory = self._memory.ulam_bound_memory_new() if function.result is not None and function.result.rank else None
        try:
            entry = loaded.entry(function.name)
            status = self._memory.ulam_run_bind(context.address, entry, ints.ctypes.data, memory)
            if running(status):
                raise self._error(loaded, item, status)
            return _result(function.result, ints, reals, function.first)
        finally:
            context.rng = None
            context.take_output()
            if memory:
                self._memory.ulam_bound_memory_free(memory)

    def _run_pullback(
        self, loaded: _Loaded, function: OpFunction, item: Item, operands: Sequence[Any], cotangent: Any,
        target: float,
    ) -> list[Any]:  # fmt: skip
        from ulam.tracing.instrument.op_functions import pullback_name

        ints, reals, kept = self._table(function, operands)
        if function.result is not None and function.result.rank:
            elements = _elements(np.asarray(cotangent, float), function.result)
            kept.append(elements)
            ints[function.first] = elements.ctypes.data
        elif function.result is not None:
            reals[function.first] = cotangent
        if function.adds_target:
            reals[function.target_slot] = target
        parts = [function.arguments[n] for n in function.differentiable]
        flat = [_elements(operands[a.position], a.type, pad=False) for a in parts]
        theta = np.concatenate([*flat, np.zeros(1)])
        gradient = np.zeros(len(theta))
        context = self._space()
        entry = loaded.entry(pullback_name(function.name))
        status = context.run_gradient(
            context.address, entry, ints.ctypes.data, theta.ctypes.data, gradient.ctypes.data, 0
        )
        context.take_output()
        if running(status):
            raise self._error(loaded, item, status)
        found: list[Any] = [None] * len(operands)
        offset = 0
        for argument, elements in zip(parts, flat, strict=True):
            piece = gradient[offset : offset + elements.size]
            offset += elements.size
            if argument.type.rank:
                found[argument.position] = from_elements(argument.type, np.shape(operands[argument.position]), piece)
            else:
                found[argument.position] = float(piece[0])
        return found

    def _error(self, loaded: _Loaded, item: Item, status: int) -> Exception:
        context = self._space()
        site = context.error_site
        if 0 <= site < len(loaded.sites):
            known = loaded.sites[site]
        else:
            known = ErrorSite(status, "the program failed", "", 0, 0, "")
        if item.place is not None:  # equal ops share a function, and their places differ
            known = replace(known, file=item.place.file, line=item.place.line, column=item.place.column)
        return known.error(status, context.error_values, context.message)


def _compiled(make: Callable[[], _T]) -> _T:
    from ulam.runtime.interpreter_settings import compiling

    def compiled() -> _T:
        with compile_errors(), compiling():
            return make()

    return held(compiled)


def _item(node: ItemNode | Item) -> Item:
    return node.item if isinstance(node, ItemNode) else node


def _fields(op: Any) -> int:
    """How many fields the tuple has that an op gives."""
    elements = getattr(op.results[0].type, "elements", ()) if op.results else ()
    return len(elements)


def _callbacks(item: Item) -> int:
    """How many of the first operands are functions that are passed: they are a part of the op."""
    return int(item.calls_function)


def _require_kept(item: Item, operands: Sequence[Any]) -> None:
    for operand, row in zip(operands, item.operands, strict=True):
        if row.type.base == "other":
            raise NoDerivative(f"'{item.name}' takes a tuple, which is not recorded: let the context enter the call")
        if isinstance(operand, Digest) or operand is MISSING:
            raise not_kept(item.name)


def _elements(value: Any, type_: ValueType, *, pad: bool = True) -> npt.NDArray[Any]:
    """In the order of compiled programs: matrices by column. Of no elements there is one more, to point to."""
    array = np.asarray(value, np.int32 if type_.is_int else np.float64)
    if type_.base == "matrix":
        array = np.swapaxes(array, -1, -2)
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat if flat.size or not pad else np.zeros(1, flat.dtype)


def _result(type_: ValueType | None, ints: npt.NDArray[np.int64], reals: npt.NDArray[np.float64], slot: int) -> Any:
    if type_ is None:
        return None
    if not type_.rank:
        return int(ints[slot : slot + 1].view(np.int32)[0]) if type_.is_int else float(reals[slot])
    sizes = tuple(int(size) for size in ints[slot + 1 : slot + 1 + type_.rank])
    count = int(np.prod(sizes))
    if not count:
        return np.zeros(sizes, np.int32 if type_.is_int else np.float64)
    kind = ctypes.c_int32 if type_.is_int else ctypes.c_double
    return from_elements(type_, sizes, np.array((kind * count).from_address(int(ints[slot]))))
