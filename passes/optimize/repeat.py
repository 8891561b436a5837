"""`repeat{passes="a,b" max=4}`: runs passes one after the other until they change nothing, at most `max` times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.walk import blocks_of, following_op, operand_tuple
from ulam.library.records import record
from ulam.passes.analysis.scopes import Scope, bodies_of, own_scopes
from ulam.passes.nested import nested_passes
from ulam.passes.optimize.scope_passes import ScopePass
from ulam.passes.pipelines import PipelineError
from ulam.passes.running import TellingPass, remembered, run_passes, watched


@record(frozen=True)
class Repeat(ModulePass):
    """Runs the pipeline `passes` until it changes nothing, at most `max` times."""

    name = "repeat"

    passes: str
    max: int = 4

    def __post_init__(self) -> None:
        if not self.passes.strip():
            raise PipelineError("repeat: there are no passes to repeat")
        if self.max < 1:
            raise PipelineError(f"repeat: max is {self.max}, but must be at least 1")
        nested_passes(self.passes)  # wrong names are told before anything runs

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        entries = nested_passes(self.passes)
        now = _states(own_scopes(op))
        # What a pass has left behind in each scope, if it does nothing more to it. Passes that are equal do the same.
        done = remembered(dict[ModulePass, dict[Scope, State]])
        for _ in range(self.max):
            before = now
            for entry in entries:
                found = now
                stale = _stale(entry, done.get(entry, {}), now)
                if not stale and len(entries) > 1:
                    continue
                if isinstance(entry, ScopePass) and len(entries) > 1:
                    with watched(entry.name, op):
                        changed = entry.work_on(op, stale)
                    now = {**now, **_states(stale)} if changed else now
                elif run_passes(ctx, op, (entry,)) or not isinstance(entry, TellingPass):
                    now = _states(own_scopes(op))
                done[entry] = now
                for other in entries:
                    if isinstance(other, ScopePass) and entry.name in other.finds_no_more_after and other in done:
                        done[other] = _carried_over(done[other], found, now)
            if now == before:
                break


State = list[object]
"""The ops of a scope in order, with what may change about them. Tuples of operands are not changed but replaced."""


def _stale(entry: ModulePass, done: Mapping[Scope, State], now: Mapping[Scope, State]) -> list[Scope]:
    """The scopes that a pass has to look at."""
    stale = [scope for scope, state in now.items() if (known := done.get(scope)) is not state and known != state]
    is_local = not (isinstance(entry, ScopePass) and entry.asks_callees)
    return stale if is_local or all(isinstance(scope, stan.ProgramOp) for scope in stale) else list(now)


def _carried_over(
    done: Mapping[Scope, State], found: Mapping[Scope, State], left: Mapping[Scope, State]
) -> dict[Scope, State]:
    """What a pass is done with, where another one has changed scopes that it was done with, and left it no work."""
    return {
        scope: left[scope] if scope in left and found.get(scope) == state else state for scope, state in done.items()
    }


def _states(scopes: Iterable[Scope]) -> dict[Scope, State]:
    states: dict[Scope, State] = {}
    for scope in scopes:
        state: State = []
        for body in bodies_of((scope,)):
            _add_state(body.regions[0].block, state)
        states[scope] = state
    return states


def _add_state(block: Block, state: State) -> None:
    op = block.first_op
    while op is not None:
        state.append(op)
        state.append(operand_tuple(op))
        if op.properties:
            state += op.properties.values()
        if op.attributes:
            state += op.attributes.values()
        if op.regions:
            for inner in blocks_of(op):
                _add_state(inner, state)
        op = following_op(op)
