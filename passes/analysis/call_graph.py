"""Which functions of a program are recursive, and which its blocks need."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ulam.dialects import stan
from ulam.dialects.attributes import UNIT
from ulam.dialects.walk import ops_of, ops_within
from ulam.library.constraints import transform_functions


def recursive_functions(functions: Mapping[str, stan.FuncOp]) -> frozenset[str]:
    """The functions, by their symbols, from which a chain of calls leads back to themselves.

    Functions that a call passes on count as called.
    """
    return in_cycles({name: _callees(function, functions) for name, function in functions.items()})


def in_cycles(callees: Mapping[str, Collection[str]]) -> frozenset[str]:
    """The names from which a chain of others, each of which is among `callees`, leads back to themselves.

    Source: Tarjan 1972, without recursion.
    """
    found: set[str] = {name for name, called in callees.items() if name in called}
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for root in callees:
        pending = [(root, iter(callees[root]))] if root not in numbers else []
        while pending:
            name, rest = pending[-1]
            if name not in numbers:
                numbers[name] = lowest[name] = len(numbers)
                stack.append(name)
                on_stack.add(name)
            following = next(rest, None)
            if following is None:
                pending.pop()
                if pending:
                    caller = pending[-1][0]
                    lowest[caller] = min(lowest[caller], lowest[name])
                if lowest[name] == numbers[name]:
                    component = [stack.pop()]
                    while component[-1] != name:
                        component.append(stack.pop())
                    on_stack.difference_update(component)
                    if len(component) > 1:
                        found.update(component)
            elif following not in numbers:
                pending.append((following, iter(callees[following])))
            elif following in on_stack:
                lowest[name] = min(lowest[name], numbers[following])
    return frozenset(found)


def _callees(function: stan.FuncOp, functions: Mapping[str, stan.FuncOp]) -> dict[str, None]:
    """The functions that the body of a function calls or passes on."""
    calls = [op for op in ops_within(function) if isinstance(op, stan.CallOp)]
    named = [call.callee for call in calls if call.user is not None]
    named += [call.callback for call in calls if call.callback is not None]
    return dict.fromkeys(name.data for name in named if name.data in functions)


def called_by(op: Operation) -> Iterator[str]:
    """Symbols of the functions that an op calls or passes on, those of the library included."""
    if isinstance(op, stan.CallOp):
        if op.user is not None:
            yield op.callee.data
        if op.definition is not None:
            yield op.definition.data
        if op.callback is not None:
            yield op.callback.data


def library_function(name: str, functions: Mapping[str, stan.FuncOp]) -> stan.FuncOp | None:
    """The function of the library that Stan calls so, among functions by their symbols: users' may have its name."""
    found = functions.get(name)
    if found is not None and found.library is not None:
        return found
    return next((op for op in functions.values() if op.library is not None and op.stan_name.data == name), None)


def _transforms_of(op: Operation, functions: Mapping[str, stan.FuncOp]) -> Iterator[str]:
    """Symbols of the functions by which a declaration transforms or checks its variable."""
    if isinstance(op, stan.ParameterOp | stan.CheckOp):
        names = transform_functions(
            op.constraint.data,
            lower=op.lower is not None,
            upper=op.upper is not None,
            is_parameter=isinstance(op, stan.ParameterOp),
        )
        for name in names:
            if (function := library_function(name, functions)) is not None:
                yield function.sym_name.data


def reachable(roots: Iterable[Operation], functions: Mapping[str, stan.FuncOp]) -> list[str]:
    """The functions that ops call, those of declared constraints among them, and those that they call, in the program's
    order.
    """
    return CalledFunctions(functions).reachable(roots)


class CalledFunctions:
    """Which functions ops call, found once for each; they must not change meanwhile."""

    def __init__(self, functions: Mapping[str, stan.FuncOp]) -> None:
        self._functions = functions
        self._of: dict[Operation, set[str]] = {}

    def reachable(self, roots: Iterable[Operation]) -> list[str]:
        """The functions that ops call, and those that they call, in the program's order."""
        found: set[str] = set()
        work = list(roots)
        while work:
            new = self._called(work.pop()) - found
            found |= new
            work += [self._functions[name] for name in new]
        return [name for name in self._functions if name in found]

    def _called(self, root: Operation) -> set[str]:
        """The functions that an op, or those inside of it, call themselves."""
        found = self._of.get(root)
        if found is None:
            functions = self._functions
            found = self._of[root] = {
                name
                for op in ops_within(root)
                if isinstance(op, stan.CallOp | stan.ParameterOp | stan.CheckOp)
                for name in (*called_by(op), *_transforms_of(op, functions))
                if name in functions
            }
        return found


def mark_unused(module: ModuleOp) -> None:
    """Marks the user's functions that no block needs, as collections of functions have many: passes leave them out.

    Programs of functions alone keep all.
    """
    for program in module.body.block.ops:
        if not isinstance(program, stan.ProgramOp):
            continue
        ops = ops_of(program.body.block)
        functions = {op.sym_name.data: op for op in ops if isinstance(op, stan.FuncOp)}
        blocks = [op for op in ops if isinstance(op, stan.BlockOp) and op.body.block.first_op is not None]
        needed = set(reachable(blocks, functions))
        for name, function in functions.items():
            if blocks and name not in needed and function.library is None:
                function.properties["inlined"] = UNIT
