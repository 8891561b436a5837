"""Which calls are written where their value is added to the target, summand by summand, instead of where they stand.

    real l = normal_lpdf(y | mu, 1);  target += l + cauchy_lpdf(mu | 0, 1);    two loops, none of them carries a sum

These are densities of the library whose value goes, perhaps through additions, into one addition to the target and
nowhere else, and calls of the program's functions that return such a sum. Nothing that is seen from outside may happen
in between: a call is not moved across prints, random draws, profiles or other uses of the target.

This changes the order of additions, so only levels that may re-associate do it. In the others a statement is *one*
addition: the target after it is the target before it plus the value that the statement has.
"""

from __future__ import annotations

from functools import cached_property

from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import stan
from ulam.dialects.stan import CallEffects, Effect, effects_of, effects_within
from ulam.passes.to_loops.lowering import is_density

_ADD = stan.BINARY_OPERATORS["+"]
_SEEN = Effect.PRINTS | Effect.DRAWS | Effect.READS_TARGET | Effect.ADDS_TARGET | Effect.ADDS_JACOBIAN | Effect.PROFILES


class TargetTerms:
    """The calls of one program, in value form, that may wait.

    A program has the same summands after its functions were inlined: a call waits if the calls in its body would.
    `whole`: no call waits, and what a statement or a parameter's Jacobian adds is one sum.
    """

    def __init__(self, functions: dict[str, stan.FuncOp], whole: bool = False) -> None:
        self.whole = whole
        self._functions = functions
        self._returning: dict[str, bool] = {}
        self._numbers: dict[Block, dict[Operation, tuple[int, int]]] = {}

    def waits_for(self, op: stan.CallOp) -> Operation | None:
        """The `stan.target_add` or `stan.return` that the call may wait for; None if it is written where it stands."""
        if (
            self.whole
            or op.res is None
            or not (is_density(op) or (op.user is not None and self._returns_terms(op.callee.data)))
        ):
            return None
        end = _end_of_sum(op.res)
        return end if end is not None and self._nothing_seen_between(op, end) else None

    def _returns_terms(self, symbol: str) -> bool:
        """Whether the result of a function of the program is a sum with a summand that waits for the `return`."""
        if (known := self._returning.get(symbol)) is not None:
            return known
        self._returning[symbol] = False  # for recursive functions: their result is a number
        function = self._functions[symbol]
        found = bool(function.body.blocks) and any(
            isinstance(op, stan.CallOp) and isinstance(self.waits_for(op), stan.ReturnOp)
            for op in function.body.block.ops
        )
        self._returning[symbol] = found
        return found

    # ------------------------------------------------------------ what happens in between

    def _nothing_seen_between(self, first: Operation, last: Operation) -> bool:
        block = first.parent
        assert block is not None
        if (numbers := self._numbers.get(block)) is None:
            numbers = self._numbers[block] = self._number(block)
        return numbers[first][1] == numbers[last][0]

    def _number(self, block: Block) -> dict[Operation, tuple[int, int]]:
        """How many ops with an effect that is seen stand before each op, and how many up to it."""
        numbers: dict[Operation, tuple[int, int]] = {}
        count = 0
        for op in block.ops:
            before = count
            simple = not op.regions and "user" not in op.properties
            if (effects_of(op) if simple else effects_within(op, self._calls)) & _SEEN:
                count += 1
            numbers[op] = (before, count)
        return numbers

    @cached_property
    def _calls(self) -> CallEffects:
        return CallEffects(f for f in self._functions.values() if f.library is None)


def _end_of_sum(value: SSAValue) -> Operation | None:
    """The addition to the target, or the return, that is the only use of a real, perhaps after additions."""
    block = value.owner.parent if isinstance(value.owner, Operation) else value.owner
    while isinstance(value.type, stan.RealType) and (use := value.get_user_of_unique_use()) is not None:
        if use.parent is not block:
            return None
        if isinstance(use, stan.TargetAddOp | stan.ReturnOp):
            return use
        if not isinstance(use, _ADD):
            return None
        value = use.results[0]
    return None
