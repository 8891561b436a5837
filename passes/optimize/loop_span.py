"""What `whole_vectors` is told of a loop and of the program around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.library.derivatives import has_primitive
from ulam.library.records import record
from ulam.passes.analysis.linear_forms import ONE, LinearForm
from ulam.passes.analysis.sizes import SizeFacts
from ulam.passes.optimize import library_calls

if TYPE_CHECKING:
    from ulam.frontend.functions.library_calls import LibraryDefinitions


class Prevented(Exception):
    """Why an expression or a statement does not become a whole one: one clause, for the remark."""


@record
class Local:
    """A scalar that the loop's body declares, while its statements are rewritten: all its values at once.

    `each`: one value per iteration (a container), else one for all. `variable` is the new variable that holds it if it
    is read more than once, else `value` is the expression itself.
    """

    each: bool
    value: SSAValue | None
    variable: SSAValue | None


@record(eq=False, repr=False)
class LoopSpan:
    """The iterations: `for (n in lower:upper)`."""

    loop: stan.ForOp
    facts: SizeFacts
    written: frozenset[SSAValue]  # variables that the body assigns
    bounds: dict[SSAValue, SSAValue] = field(default_factory=dict)  # bound → variable that keeps its value

    @property
    def index(self) -> BlockArgument:
        return self.loop.body.block.args[0]

    @property
    def is_nonempty(self) -> bool:
        """Whether there is an iteration for sure: by the bounds, or since a loop around has one."""
        if (gap := self.facts.gap(self.loop)) is None:
            return False
        return any(self.facts.is_at_least(gap, known) for known in (LinearForm(0), *self._gaps_around()))

    def _gaps_around(self) -> Iterator[LinearForm]:
        parent = self.loop.parent_op()
        while parent is not None:
            if isinstance(parent, stan.ForOp) and (gap := self.facts.gap(parent)) is not None:
                yield gap
            parent = parent.parent_op()

    @property
    def has_size(self) -> bool:
        """Whether `upper - lower + 1` is not negative for sure."""
        gap = self.facts.gap(self.loop)
        return self.is_nonempty or (gap is not None and self.facts.is_at_least(gap.plus(ONE), LinearForm(0)))


@record(eq=False, repr=False)
class Library:
    """The functions of a program by their symbols, and what vectorised calls of the library's mean."""

    program: stan.ProgramOp
    functions: dict[str, stan.FuncOp]
    _rejecting: dict[str, bool] = field(default_factory=dict)

    @cached_property
    def _definitions(self) -> LibraryDefinitions:
        return library_calls.definitions(self.program)

    def has(self, op: stan.CallOp, types: Sequence[Attribute], result: Attribute) -> bool:
        """Whether Stan has this call with arguments of these types, and it means the same definition."""
        name = op.callee.data
        if not self.gives(name, types, result):
            return False
        return self.symbol(name, types) == (op.definition.data if op.definition is not None else None)

    def gives(self, name: str, types: Sequence[Attribute], result: Attribute) -> bool:
        """Whether Stan has a function for arguments of these types, with this result."""
        found = library_calls.types().call_types(name, tuple(types))
        return found is not None and found[1] == result

    def symbol(self, name: str, types: Sequence[Attribute]) -> str | None:
        """The definition that a call means; None if the conversion to loops knows the function."""
        return self._definitions.symbol(name, tuple(types))

    def definition(self, op: stan.CallOp) -> stan.FuncOp | None:
        """The function of the library that is called, if it is written in Stan."""
        return self.functions.get(op.definition.data) if op.definition is not None else None

    def rejects(self, op: Operation) -> bool:
        """Whether an op of a library function may throw: a requirement, `reject`, or a call of what has one.

        The functions that the conversion to loops knows check nothing when the library calls them.
        """
        for inner in ops_within(op):
            if isinstance(inner, stan.CallOp) and inner.definition is not None:
                if _has_container(inner) or self._function_rejects(inner.definition.data):
                    return True
            elif isinstance(inner, stan.CallOp) and not _has_container(inner) and has_primitive(inner.callee.data):
                continue
            elif stan.effects_of(inner) & stan.Effect.THROWS:
                return True
        return False

    def _function_rejects(self, symbol: str) -> bool:
        found = self._rejecting.get(symbol)
        if found is None:
            self._rejecting[symbol] = True  # what calls itself, for all that is known
            function = self.functions.get(symbol)
            found = self._rejecting[symbol] = function is None or any(map(self.rejects, function.body.block.ops))
        return found


@record
class Covered:
    """What an index `n + c` covers of a dimension over all iterations."""

    whole: bool
    surely_inside: bool
    index: SSAValue


def _has_container(op: Operation) -> bool:
    return any(stan.dimensions(operand.type) for operand in op.operands)
