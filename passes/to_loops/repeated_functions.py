"""Which functions of a large program are functions of their own, instead of being written in place of every call.

Written in place, a function is optimised together with what is around it, and what it computes of data alone is
computed when data are bound: a sum over data, the factorials of counts. Constants of a prior are no reason to keep it
there, as there are no more of them than of terms that depend on parameters, nor are comparisons of numbers and
containers that are only taken apart. Where a large function is called from many places, all passes and LLVM go through
as many copies of it, forward and reverse; a function of its own has one of each for all calls with the same arguments
that are autodiff, and, unless it is very large, the same known integers. What calls a recursive function may be one as
any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property

from xdsl.dialects.builtin import UnknownLoc
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.library.requirements import REQUIREMENTS
from ulam.passes.analysis.call_context import body_drops_constants, dependence
from ulam.passes.analysis.call_graph import recursive_functions
from ulam.passes.remarks import remark
from ulam.passes.to_loops.function_sizes import FunctionSizes, written_as
from ulam.passes.to_loops.lowering import is_density
from ulam.passes.to_loops.values import Container, Value
from ulam.passes.variable_form import literal_of

BUDGET = 400
"""Ops that the copies of a function may have in all, before they are lowered, those of what it calls included."""
LARGE = 400
"""Ops of a function from which literals that tell calls apart are arguments as others: they do not make versions."""
ENDLESS = 100_000
"""Ops of all copies of a function from which it is one of its own at all levels, whatever it would gain in place: as
many take minutes, and where each function calls the next one twice, there are soon more than can be written."""
FEW = 2
"""Of so many copies all but the first count."""
_BLOCKS = {
    "setup": ("transformed_data",),
    "density": ("transformed_parameters", "model"),
    "constrain": ("transformed_parameters", "generated_quantities"),
}
"""The blocks whose calls are written in a unit, by what that computes."""
_FILLED = ("rep_vector", "rep_row_vector", "rep_matrix", "rep_array")
_MOVED = ("reverse", "head", "tail", "segment", "append_row", "append_col", "append_array")
_CHEAP = frozenset({"rows", "cols", "size", "num_elements", "dims", *_FILLED, *_MOVED})
"""Functions of the library whose calls with data alone are no work: what they give is read element by element."""
_LOOPS = stan.ForOp | stan.ForEachOp | stan.WhileOp


class RepeatedFunctions:
    """The functions of the program in one unit: in how many places each would be written, and how large it is."""

    def __init__(
        self,
        functions: dict[str, stan.FuncOp],
        blocks: dict[str, Block],
        computes: str,
        *,
        binds: bool,
        in_lanes: bool,
        in_place: bool = False,
    ) -> None:
        """`binds`: what depends on data alone is computed when data are bound. `in_lanes`: loops are widened, so what
        takes numbers alone is worth to be in place. `in_place`: none is called."""
        self._functions = functions
        self._roots = [blocks[name] for name in _BLOCKS.get(computes, ()) if name in blocks]
        self._binds = binds
        self._in_lanes = in_lanes
        self._in_place = in_place
        self.solves_once = computes == "density" and binds
        """Whether solutions that depend on data alone are computed when data are bound, not with optional output."""
        self._callees: dict[str, Counter[str]] = {}
        self._places: dict[str, int] | None = None
        self._told: set[str] = set()
        self._given: dict[str, int] = {}
        self._differing: dict[str, frozenset[int]] = {}
        self._works_on_data: dict[tuple[str, tuple[bool, ...], bool], bool] = {}

    def is_called(
        self, function: stan.FuncOp, arguments: Sequence[Value], autodiff: Sequence[bool], unnormalized: bool
    ) -> bool:
        """Whether a call of a function of the program that is not recursive is to be one."""
        if function.library is not None or function.model is not None:
            return False
        name = function.sym_name.data
        places, size = self._places_of(name), self._sizes.of(name)
        if size is None or (places - 1 if places <= FEW else places) * size < BUDGET:
            return False
        told = f"{size} ops in {places} places, "
        if places * size >= ENDLESS:
            self._tell(function, told + f"more than {ENDLESS}: a function of its own", True)
            return True
        if self._in_place or self._solves(name) or (self._binds and not any(autodiff)):
            return False
        if self._in_lanes and not any(isinstance(argument, Container) for argument in arguments):
            return False
        bits = tuple(map(bool, autodiff))
        if self._binds and self._has_work_on_data(function, bits, drops=body_drops_constants(function, unnormalized)):
            self._tell(function, told + "but some depend on data alone, and are computed when data are bound", False)
            return False
        self._tell(function, told + f"more than {BUDGET}: a function of its own", True)
        return True

    def differing(self, name: str) -> frozenset[int]:
        """The arguments of a large function that are not the same literal in all calls: it has no version for each."""
        if name not in self._differing:
            size = self._sizes.of(name)
            is_large = size is not None and size >= LARGE
            self._differing[name] = frozenset(self._found_differing(name)) if is_large else frozenset()
        return self._differing[name]

    def _found_differing(self, name: str) -> Iterator[int]:
        roots = [*self._roots, *(f.body for f in self._functions.values() if f.library is None)]
        calls = [op for root in roots for op in ops_within(root) if isinstance(op, stan.CallOp) and op.user is not None]
        columns = zip(*(op.arguments for op in calls if op.callee.data == name), strict=True)
        for n, column in enumerate(columns):
            if len({literal_of(value) for value in column}) > 1:
                yield n

    def places_with(self, callback: stan.FuncOp) -> int:
        """In how many places a function of the library would be written that is given this one of the program."""
        name = callback.sym_name.data
        if name not in self._given:
            inside = ((self._places_of(n), f.body) for n, f in self._functions.items() if f.library is None)
            roots = [(1, root) for root in self._roots]
            self._given[name] = sum(places * _given(root, name) for places, root in [*roots, *inside] if places)
        return self._given[name]

    def _solves(self, name: str) -> bool:
        """Whether a function of the library inside is given one of the program."""
        return self._sizes_without_solvers.of(name) is None

    def _tell(self, function: stan.FuncOp, message: str, done: bool) -> None:
        subject = f"function {function.stan_name.data}"
        if function.stan_name.data not in self._told:
            self._told.add(function.stan_name.data)
            remark("convert-stan-to-loops", function.location or UnknownLoc(), subject, message, done=done)

    # ------------------------------------------------------------ figures

    @cached_property
    def _recursive(self) -> frozenset[str]:
        """Functions of the program that are called in any case."""
        return recursive_functions({name: f for name, f in self._functions.items() if f.library is None})

    @cached_property
    def _sizes(self) -> FunctionSizes:
        return FunctionSizes(self._functions, lambda op: False, self._recursive)

    @cached_property
    def _sizes_without_solvers(self) -> FunctionSizes:
        return FunctionSizes(self._functions, lambda op: op.callback is not None, self._recursive)

    def _places_of(self, name: str) -> int:
        if self._places is None:
            self._places = {}
            calls = Counter[str]()
            for block in self._roots:
                calls.update(_called(block))
            self._spread(calls)
        return self._places.get(name, 0)

    def _spread(self, calls: Counter[str]) -> None:
        """Counts the calls of functions by others: each stands as often as its caller does."""
        assert self._places is not None
        for name in self._callers_first(calls):
            places = calls[name]
            self._places[name] = places
            for callee, times in self._callees_of(name).items():
                calls[callee] += places * times

    def _callers_first(self, calls: Counter[str]) -> list[str]:
        """What is called, in such an order; of recursive functions in any."""
        order: list[str] = []
        seen: set[str] = set()
        for root in calls:
            work = [(root, False)]
            while work:
                name, done = work.pop()
                if done:
                    order.append(name)
                elif name not in seen:
                    seen.add(name)
                    work.append((name, True))
                    work += [(callee, False) for callee in self._callees_of(name)]
        return order[::-1]

    def _callees_of(self, name: str) -> Counter[str]:
        if name not in self._callees:
            self._callees[name] = _called(self._functions[name].body)
        return self._callees[name]

    # ------------------------------------------------------------ work on data

    def _has_work_on_data(self, function: stan.FuncOp, autodiff: tuple[bool, ...], *, drops: bool) -> bool:
        """Whether its body, or that of a function of the program that it calls, does much with data alone.

        `drops`: densities in it leave out what does not depend on parameters.
        """
        key = (function.sym_name.data, autodiff, drops)
        if key not in self._works_on_data:
            self._works_on_data[key] = bool(function.body.blocks) and self._found_work(function, autodiff, drops)
        return self._works_on_data[key]

    def _found_work(self, function: stan.FuncOp, autodiff: tuple[bool, ...], drops: bool) -> bool:
        formals = function.body.block.args
        known: dict[SSAValue, int] = {formal: int(bit) for formal, bit in zip(formals, autodiff, strict=True)}
        anything = int(any(autodiff))
        for op in ops_within(function.body):
            if not isinstance(op, stan.CallOp) or op.callee.data in REQUIREMENTS or op.callee.data in _CHEAP:
                continue
            bits = tuple(bool(dependence(argument, known, anything)) for argument in op.arguments)
            if is_density(op) and not bits[0] and not (drops and op.unnormalized is not None):
                return True
            if bits and not any(bits):
                if self._is_work(op, function):
                    return True
            elif op.user is not None and op.callee.data not in self._recursive:
                callee = self._functions[op.callee.data]
                inner = body_drops_constants(callee, drops and op.unnormalized is not None)
                if self._has_work_on_data(callee, bits, drops=inner):
                    return True
        return False

    def _is_work(self, op: stan.CallOp, function: stan.FuncOp) -> bool:
        """Whether a call with data alone takes more time than one elementary function of a number."""
        if not all(map(_is_number, op.arguments)):
            return True
        callee = written_as(op)
        if callee is None:
            return not _is_of_ints(op) and _is_in_loop(op, function)
        return not self._only_decides(callee)

    def _only_decides(self, name: str) -> bool:
        """Whether a function compares numbers and computes with ints, one after the other."""
        for op in ops_within(self._functions[name].body):
            if isinstance(op, _LOOPS):
                return False
            if isinstance(op, stan.CallOp) and op.operands and not _is_of_ints(op):
                callee = written_as(op)
                if callee is None or callee in self._recursive or not self._only_decides(callee):
                    return False
        return True


def _is_number(value: SSAValue) -> bool:
    """Whether a value is a number, or as many as are written."""
    return isinstance(value.type, stan.IntType | stan.RealType) or isinstance(value.owner, stan.ArrayOp)


def _is_of_ints(op: stan.CallOp) -> bool:
    """Whether a call makes an int of ints, without a function of the program."""
    values = (*op.operands, *op.results)
    return op.user is None and all(isinstance(value.type, stan.IntType) for value in values)


def _is_in_loop(op: Operation, function: stan.FuncOp) -> bool:
    while (parent := op.parent_op()) is not None and parent is not function:
        if isinstance(parent, _LOOPS):
            return True
        op = parent
    return False


def _called(root: Block | Region) -> Counter[str]:
    """How often functions of the program are called inside."""
    found = Counter[str]()
    for op in ops_within(root):
        if isinstance(op, stan.CallOp) and op.user is not None:
            found[op.callee.data] += 1
    return found


def _given(root: Block | Region, callback: str) -> int:
    """How often functions of the library are called with a function of the program inside."""
    calls = (op for op in ops_within(root) if isinstance(op, stan.CallOp))
    return sum(op.callback is not None and op.callback.data == callback for op in calls)
