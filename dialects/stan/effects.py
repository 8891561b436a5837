"""What the ops of the `stan` dialect do besides computing their results.

Every op declares its own effects by the trait `HasEffects` (calls by `HasCallEffects`, which asks the callee); passes
ask `effects_of` or `effects_within`, never a list of op names. Order matters between two ops if their effects
conflict (`conflict`): errors, prints and random draws are never removed, added or reordered.

    effects_of(call @normal_rng) == Effect.DRAWS | Effect.THROWS
"""

from __future__ import annotations

from enum import IntFlag
from functools import lru_cache
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, OpResult
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, OpTrait

from ulam.dialects.walk import operand_tuple, ops_within
from ulam.library.functions import FunctionKind, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from xdsl.ir import Operation, SSAValue


class Effect(IntFlag):
    """One bit per kind of effect. Reading a value has none: only variables, the target and the world outside count."""

    NONE = 0
    PRINTS = 1
    THROWS = 2  # may reject or fail: domain errors, index and size errors, `reject`, `fatal_error`
    DRAWS = 4  # random numbers
    READS_TARGET = 8
    ADDS_TARGET = 16
    ADDS_JACOBIAN = 32
    READS_VAR = 64
    WRITES_VAR = 128
    PROFILES = 256  # enters or leaves a profile
    LEAVES_LOOP = 512  # break, continue: what follows in the loop's body is not executed
    RETURNS = 1024

    if not TYPE_CHECKING:  # sets of effects are plain ints: to make a member of every combination takes much longer
        __and__, __or__, __invert__ = int.__and__, int.__or__, int.__invert__
        __rand__, __ror__ = int.__rand__, int.__ror__  # else asked for `int | Effect`


_EXITS = Effect.LEAVES_LOOP | Effect.RETURNS
_ORDERED = Effect.PRINTS | Effect.THROWS | Effect.DRAWS | Effect.PROFILES | _EXITS
_TARGET_ADDS = Effect.ADDS_TARGET | Effect.ADDS_JACOBIAN
_READS_ONLY = Effect.READS_VAR | Effect.READS_TARGET

_READ = EffectInstance(MemoryEffectKind.READ)
_WRITE = EffectInstance(MemoryEffectKind.WRITE)


class HasEffects(MemoryEffect):
    """Declares effects on an op class; also what xDSL's own passes (dce, cse) are told."""

    EFFECTS: Effect = Effect.NONE

    @classmethod
    def stan_effects(cls, op: Operation) -> Effect:
        return cls.EFFECTS

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        effects = cls.stan_effects(op)
        instances: set[EffectInstance] = set()
        if effects & _READS_ONLY:
            instances.add(_READ)
        if effects & ~_READS_ONLY:
            instances.add(_WRITE)
        return instances


class Throws(HasEffects):
    """May reject or fail, and does nothing else."""

    EFFECTS = Effect.THROWS


class ThrowsOnMismatch(HasEffects):
    """Binary operators: two containers may differ in size, an int divisor may be zero; otherwise they never throw."""

    @classmethod
    def stan_effects(cls, op: Operation) -> Effect:
        left, right = operand_tuple(op)
        if _is_scalar(left.type) or _is_scalar(right.type):
            divides_ints = op.name in ("stan.div", "stan.mod", "stan.int_div") and right.type.name == "stan.int"
            # `matrix ^ int` multiplies a square matrix; `x / m` and `m \ x` of scalars and matrices do not exist.
            return Effect.THROWS if divides_ints or op.name == "stan.pow" and not _is_scalar(left.type) else Effect.NONE
        return Effect.THROWS


class ReadsVariable(HasEffects):
    EFFECTS = Effect.READS_VAR


class WritesVariable(HasEffects):
    """An assignment throws where sizes differ or an index is out of range.

    Never of a scalar to a whole variable, nor to one that takes any size.
    """

    @classmethod
    def stan_effects(cls, op: Operation) -> Effect:
        operands = operand_tuple(op)
        if len(operands) == 2:
            variable, value = operands
            if _is_scalar(value.type) or takes_any_size(variable):
                return Effect.WRITES_VAR
        return Effect.WRITES_VAR | Effect.THROWS


class DefinesVariable(HasEffects):
    """Gives a global variable its final value."""

    EFFECTS = Effect.WRITES_VAR


class DeclaresVariable(HasEffects):
    """A declaration gives the variable its initial value, and throws on negative sizes."""

    @classmethod
    def stan_effects(cls, op: Operation) -> Effect:
        return Effect.WRITES_VAR | Effect.THROWS if op.operands else Effect.WRITES_VAR


class ChecksSizes(HasEffects):
    """Throws on sizes that a declared variable cannot have; harmless for a value that no variable declares."""

    @classmethod
    def stan_effects(cls, op: Operation) -> Effect:
        return Effect.THROWS if op.operands and "var_name" in op.properties else Effect.NONE


class AddsTarget(HasEffects):
    EFFECTS = Effect.ADDS_TARGET


class AddsJacobian(HasEffects):
    EFFECTS = Effect.ADDS_JACOBIAN


class ReadsTarget(HasEffects):
    EFFECTS = Effect.READS_TARGET


class Profiles(HasEffects):
    EFFECTS = Effect.PROFILES


class LeavesLoop(HasEffects):
    EFFECTS = Effect.LEAVES_LOOP


class Returns(HasEffects):
    EFFECTS = Effect.RETURNS


class IsLoop(OpTrait):
    """Break and continue inside end here."""


class PrintsOrThrows(HasEffects):
    """`print` prints, `reject` and `fatal_error` throw."""

    @classmethod
    def stan_effects(cls, op: Operation) -> Effect:
        kind = op.properties["kind"]
        return Effect.PRINTS if isinstance(kind, StringAttr) and kind.data == "print" else Effect.THROWS


class HasCallEffects(HasEffects):
    """A call has the effects of its callee, as far as the kind of function tells.

    For a user's function whose body is not looked at, these are an upper bound: it may print and throw; only `_rng`
    draws, only `_lp` touches the target, only `_jacobian` and `_lp` the Jacobian adjustment (Stan's own rule).
    """

    @classmethod
    def stan_effects(cls, op: Operation) -> Effect:
        callee = op.properties["callee"]
        assert isinstance(callee, StringAttr)
        name = callee.data
        if "user" in op.properties:
            return _by_kind(name) | Effect.PRINTS | Effect.THROWS
        if "callback" in op.properties:
            return _by_kind(name) | Effect.PRINTS | Effect.THROWS
        if "total" in op.properties and _sizes_agree(op):
            return Effect.NONE
        if "unchecked" in op.properties and "definition" not in op.properties and _sizes_agree(op):
            return _by_kind(name)
        return _by_kind(name) | Effect.THROWS


def _sizes_agree(op: Operation) -> bool:
    """Whether a call applied element by element has no sizes to compare."""
    operands = operand_tuple(op)
    return len(operands) <= 1 or all([_is_scalar(operand.type) for operand in operands])


_SCALARS = frozenset(("stan.int", "stan.real", "stan.complex"))


def _is_scalar(type_: Attribute) -> bool:
    return type_.name in _SCALARS


def takes_any_size(variable: SSAValue) -> bool:
    """Whether a container was declared without sizes: it takes those of what is assigned."""
    if not isinstance(variable, OpResult):
        return False
    declaration = variable.op
    return declaration.name == "stan.declare" and not operand_tuple(declaration)


_OF_KIND = {
    FunctionKind.RNG: Effect.DRAWS,
    FunctionKind.LP: Effect.READS_TARGET | Effect.ADDS_TARGET | Effect.ADDS_JACOBIAN,
    FunctionKind.JACOBIAN: Effect.ADDS_JACOBIAN,
}


@lru_cache(maxsize=4096)
def _by_kind(name: str) -> Effect:
    return _OF_KIND.get(kind_of(name), Effect.NONE)


_TRAIT_OF: dict[type, type[HasEffects] | None] = {}


def effects_of(op: Operation) -> Effect:
    """The effects of `op` itself, without those of the ops in its regions."""
    cls = type(op)
    try:
        trait = _TRAIT_OF[cls]
    except KeyError:
        found = op.get_traits_of_type(HasEffects)
        trait = _TRAIT_OF[cls] = type(found[0]) if found else None
    return Effect.NONE if trait is None else trait.stan_effects(op)


def effects_within(op: Operation, calls: CallEffects | None = None) -> Effect:
    """The effects of executing `op`, regions included; `calls` sharpens calls of functions with a body."""
    found = calls.of(op) if calls is not None else effects_of(op)
    if op.regions:
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    found |= effects_within(inner, calls)
        if found & Effect.LEAVES_LOOP and op.has_trait(IsLoop):
            found &= ~Effect.LEAVES_LOOP
    return found


def conflict(first: Effect, second: Effect) -> bool:
    """Whether two neighbouring ops with these effects must keep their order.

    Two additions to the target do not conflict here: whether sums may be re-ordered is a matter of the level.
    Reads and writes of variables are compared without looking which variable; callers that know may ask less.
    """
    if first & _ORDERED and second & (_ORDERED | _TARGET_ADDS | Effect.WRITES_VAR):
        return True
    if second & _ORDERED and first & (_TARGET_ADDS | Effect.WRITES_VAR):
        return True
    for one, other in ((first, second), (second, first)):
        if one & Effect.READS_TARGET and other & _TARGET_ADDS:
            return True
        if one & Effect.WRITES_VAR and other & (Effect.READS_VAR | Effect.WRITES_VAR):
            return True
    return False


class CallEffects:
    """Effects of the functions of one program, from their bodies, which are looked at when first asked for.

    Formals are values and locals are private, so reading and writing variables, and exits, do not leave a function.
    """

    _PRIVATE = Effect.READS_VAR | Effect.WRITES_VAR | _EXITS

    def __init__(self, functions: Iterable[Operation], of_library: dict[Operation, Effect] | None = None) -> None:
        """`of_library`: what was found before of functions of the library, which no pass changes; more is added."""
        self._known: dict[str, Effect] = {}
        self._bodies: dict[str, Operation] = {}
        self._of_library = {} if of_library is None else of_library
        for function in functions:
            name = function.properties["sym_name"]
            assert isinstance(name, StringAttr)
            if function.regions[0].blocks:
                self._bodies[name.data] = function
                if (found := self._of_library.get(function)) is not None:
                    self._known[name.data] = found

    def _of_body(self, name: str) -> Effect:
        """The effects of a function: a fixpoint over those that it calls, directly or not."""
        if (found := self._known.get(name)) is not None:
            return found
        own: dict[str, Effect] = {}
        calls: dict[str, list[Operation]] = {}
        pending = [name]
        while pending:
            current = pending.pop()
            if current in self._known:
                continue
            self._known[current] = Effect.NONE
            own[current], calls[current] = _split(self._bodies[current])
            for call in calls[current]:
                pending += [called for called in _names_called(call) if called in self._bodies]
        changed = True
        while changed:
            changed = False
            for current in reversed(own):  # what was found last is called by what was found before
                summary = own[current]
                for call in calls[current]:
                    summary |= self.of(call)
                summary &= ~self._PRIVATE
                if summary != self._known[current]:
                    self._known[current] = summary
                    changed = True
        for current in own:
            if "library" in (body := self._bodies[current]).properties:
                self._of_library[body] = self._known[current]
        return self._known[name]

    def of(self, op: Operation) -> Effect:
        """Effects of `op` itself; of a call, those of the body it calls."""
        if op.name != "stan.call":
            return effects_of(op)
        symbol, callback = _names_called(op)
        if symbol not in self._bodies:
            own = effects_of(op)
        else:
            # A vectorised library call compares sizes before its body runs.
            own = self._of_body(symbol) | (Effect.THROWS if "definition" in op.properties else Effect.NONE)
        if callback in self._bodies:
            own = (own & ~Effect.PRINTS) | self._of_body(callback)
        return own


def _names_called(call: Operation) -> tuple[str, str]:
    """The symbols of the function with a body that a call means, and of the one that it passes on; '' for none."""
    properties = call.properties
    symbol = properties.get("definition") or ("user" in properties and properties.get("callee"))
    callback = properties.get("callback")
    return (
        symbol.data if type(symbol) is StringAttr else "",
        callback.data if type(callback) is StringAttr else "",
    )


def _split(function: Operation) -> tuple[Effect, list[Operation]]:
    """The effects of the ops in a function, but for its calls; and these."""
    found = Effect.NONE
    calls: list[Operation] = []
    for op in ops_within(function):
        if op.name == "stan.call":
            calls.append(op)
        else:
            found |= effects_of(op)
    return found, calls
