"""Following changed values through a trace, in the order of the tape: see `update`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.runtime.errors import ArgumentError, UlamError
from ulam.tracing.copying import RecordWriter, Stream
from ulam.tracing.instrument.graph import ADDING, FUNCTION, OPAQUE, SKIPPED, Item, ValueType
from ulam.tracing.nodes import Node
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.layout import CONDITION, RESULT, Spot, spot_of
from ulam.tracing.tape.overlay import SEGMENT, Key, Taken, collected, key_of, parameter_key
from ulam.tracing.tape.recorder import NO_DRAWS, Draws, Recorder, Source
from ulam.tracing.tape.target import Terms, is_hidden, is_read, path_of, touching
from ulam.tracing.tape.values import converted, same
from ulam.tracing.update.interpret import Evaluator, Interpreter, Threw
from ulam.tracing.update.values import FullValues, ValueSetting
from ulam.tracing.versions import RecordedRun, draws_of, drop_segments, set_error

if TYPE_CHECKING:
    from ulam.tracing.trace import Trace

_segments = itertools.count(1)
_INSIDE = (-1, -3)
"""Why a call is looked at: something in it is to be."""
_TARGET = (-1, -4)
"""Why `target()` is looked at: what was added before has changed."""
_LAST = (1 << 62, 0)


class _Whole(Exception):
    """The traced function must run again: an op has thrown, or one that had does not any more."""

    def __init__(self, frame: Frame, key: Key) -> None:
        self.frame, self.key = frame, key


class _Again(Exception):
    """The call that is looked at must run again."""

    def __init__(self, frame: Frame, key: Key) -> None:
        self.frame, self.key = frame, key


class _Call:
    """A call while changes in it are followed: in the new version (`frame`) and in the old one."""

    def __init__(self, frame: Frame, old: Frame) -> None:
        self.frame, self.old = frame, old
        self.settings: dict[Key, ValueSetting] = {}
        self.result_changed = False
        self.why: dict[Key, set[tuple[int, int]]] = {}
        self._queue: list[Key] = []

    def mark(self, key: Key, why: tuple[int, int]) -> None:
        """To be looked at; `why`: the edge (-1: none) and which of its arguments, or which operand, has changed."""
        found = self.why.get(key)
        if found is None:
            self.why[key] = {why}
            heappush(self._queue, key)
        else:
            found.add(why)

    def mark_users(self, index: int, run: int) -> None:
        """All that uses value number `index` as it was defined in a run."""
        for use, runs in self.frame.runs.reached_by(index, run):
            for at in runs.tolist():
                self.mark((at, use.offset), (use.edge, use.argument))

    def next(self) -> Key | None:
        return heappop(self._queue) if self._queue else None


class Propagation:
    """Makes `version` of `base`. `source`: of random numbers, instead of those that were drawn."""

    def __init__(self, base: Trace, version: Trace, source: Source | None) -> None:
        self.base, self.version = base, version
        self.old, self.new = FullValues(base, base.tape), FullValues(version, version.tape)
        self.evaluator = Evaluator(version, source)
        self.recomputed: list[tuple[Frame, Key]] = []
        self.flips: list[tuple[Frame, Key]] = []
        self.rerun: list[tuple[Frame, Key]] = []
        self.unused: list[Node] = []
        self._settings: Sequence[ValueSetting] = ()
        self._marked = 1 << 62  # `target()` behind this addition is to be looked at
        self._waiting: dict[int, list[tuple[Key, tuple[int, int]]]] = {}  # of calls that are not looked at yet
        self._stack: list[tuple[_Call, Key]] = []

    def run(self, arguments: Mapping[int, Any], inside: Sequence[ValueSetting]) -> None:
        """`arguments`: of the traced function, by number; `inside`: other values."""
        tape = self.version.tape
        outer = _Call(self.version.root.frame, self.base.root.frame)
        self._settings = inside
        self._stack = [(outer, (-1, -1))]
        for setting in inside:
            self._touch(setting.frame, setting.key, _INSIDE)
        changed = [number for number, value in arguments.items() if not same(value, tape.arguments[number])]
        for number in changed:
            tape.arguments[number] = arguments[number]
            outer.mark_users(number + 2, -1)
        try:
            if (changed or inside) and self._opaque:
                if inside:
                    raise ArgumentError("values can be set only where all ops are recorded, and _lp functions entered")
                raise _Whole(outer.frame, (-1, 0))
            self._follow()
        except _Whole as whole:
            self._run_whole(whole)
        self._finish()

    @property
    def _opaque(self) -> bool:
        """Whether something happens that the trace does not show: it can only run again as a whole."""
        tables = self.version.tape.tables
        items = [item for graph in tables.graphs.values() for block in graph.blocks for item in block.items]
        return (
            self.version.context.leaves_out
            or bool(tables.stub)
            or any(is_hidden(item) or item.derived == "lost" for item in items)
            or any(operand.type == SKIPPED for item in items for operand in item.operands)
        )

    # ------------------------------------------------------------ following changes

    def _touch(self, frame: Frame, key: Key, why: tuple[int, int]) -> None:
        """To be looked at when the calls are that it is in. `frame`: of the old version."""
        active = {call.old.place: call for call, _ in self._stack}
        while frame.place not in active:
            self._waiting.setdefault(frame.place, []).append((key, why))
            assert frame.parent is not None
            key, why = key_of(frame.parent.spot(frame.call)), _INSIDE
            frame = frame.parent
        active[frame.place].mark(key, why)

    def _follow(self) -> None:
        stack = self._stack
        while stack:
            call, at = stack[-1]
            key = call.next()
            if key is None:
                stack.pop()
                if stack and call.result_changed:
                    self._after_call(at, call.frame, call.old)
                continue
            try:
                entered = self._look_at(call, key)
            except _Again as again:
                self._again(again, key)
                continue
            if entered is not None:
                stack.append((entered, key))

    def _again(self, again: _Again, key: Key) -> None:
        """Runs a call once more: the one that is looked at, or one that it was about to enter, at a key."""
        call, at = self._stack[-1]
        old = call.old
        if again.frame is call.frame:
            self._stack.pop()
            if not self._stack:
                raise _Whole(again.frame, again.key)
        else:
            at, inner = key, call.old.child(spot_of(key))
            assert inner is not None
            old = inner
        if self.base.failed:
            raise _Whole(again.frame, again.key)
        caller = self._stack[-1][0].frame
        self._drop_settings(path_of(old, again.key), path_of(old))
        frame = self._run_again(caller, at, again)
        if caller.parent is None and self.version.error is not None:
            return
        try:
            self._after_call(at, frame, old)
        except _Again as outer:
            self._again(outer, at)

    def _after_call(self, key: Key, frame: Frame, old: Frame) -> None:
        """A call is over, and may have returned another value."""
        call = self._stack[-1][0]
        spot = spot_of(key)
        item = call.frame.item_at(spot)
        changes = self.version.tape.changes.of(call.frame)
        if item.slot is None or key in changes.fixed:
            return
        new, before = self.new.result(frame), self.old.item(call.old, item, spot)
        changes.values[key] = new
        if not same(before, new):
            self._term(call, key, item, new)
            self._changed(call, key, item.index, before, new)

    def _look_at(self, call: _Call, key: Key) -> _Call | None:
        """Works out what is at a key; the call that must be followed first, if there is one."""
        frame = call.frame
        if key[0] < 0:
            self._set(call, key, call.settings[key])
            return None
        spot = spot_of(key)
        if not frame.has_step(spot.step) or self._is_behind_error(frame, key, spot):
            return None
        block = frame.block_at(spot)
        ordinal = spot.offset - len(block.arguments)
        if ordinal == len(block.items):
            self._jump(call, key, spot)
            return None
        item = block.items[ordinal] if ordinal >= 0 else None
        is_call = item is not None and bool(item.child)
        changes = self.version.tape.changes.get(frame.place)
        setting = call.settings.get(key)
        if setting is not None:
            self._set(call, key, setting)
        elif changes is not None and key in changes.fixed:
            pass
        elif item is None:
            self._argument(call, key, spot)
        elif not is_call:
            self._item(call, key, spot, item)
        return self._enter(call, key, spot, item) if item is not None and is_call else None

    @staticmethod
    def _is_behind_error(frame: Frame, key: Key, spot: Spot) -> bool:
        """Whether the run had ended before. Where it has ended, it may go on now: then all runs again."""
        if not frame.failed or spot.step < frame.steps - 1 or spot.in_header:
            return False
        block = frame.block_at(spot)
        ordinal, throwing = spot.offset - len(block.arguments), frame.throwing(spot.step)
        if throwing is None and ordinal >= 0:
            raise _Whole(frame, key)
        if ordinal == throwing and (ordinal == len(block.items) or not block.items[ordinal].child):
            raise _Whole(frame, key)
        return throwing is not None and ordinal > throwing

    def _set(self, call: _Call, key: Key, setting: ValueSetting) -> None:
        changes = self.version.tape.changes.of(call.frame)
        changes.values[key] = setting.value
        changes.fixed.add(key)
        call.frame.forget_values()
        if not same(setting.old, setting.value):
            if key[0] >= 0 and setting.is_op:
                self._term(call, key, call.frame.item_at(spot_of(key)), setting.value)
            self._changed(call, key, setting.index, setting.old, setting.value)

    @staticmethod
    def _changed(call: _Call, key: Key, index: int, old: Any, new: Any) -> None:
        if np.shape(old) != np.shape(new) and call.frame.parent is not None:
            raise _Again(call.frame, key)  # an assignment may want the old sizes
        call.mark_users(index, key[0])

    def _argument(self, call: _Call, key: Key, spot: Spot) -> None:
        frame = call.frame
        argument = frame.block_at(spot).arguments[spot.offset]
        source = frame.entered_from(spot)
        edge = None if source is None else frame.edge_taken(source)
        assert source is not None and edge is not None
        new = converted(self.new.operand(frame, edge.arguments[spot.offset], source), argument.type)
        old = self.old.value(call.old, argument.index, spot)
        if same(old, new):
            return
        if spot.in_header and spot.offset == len(frame.block_at(spot).arguments) - 1:
            self.version.tape.changes.of(frame).values[key] = new  # a count is recorded
        self._changed(call, key, argument.index, old, new)

    def _jump(self, call: _Call, key: Key, spot: Spot) -> None:
        frame, why = call.frame, call.why[key]
        block = frame.block_at(spot)
        if any(argument == CONDITION for _, argument in why):
            condition = block.edges[0].condition
            assert condition is not None
            if bool(self.new.operand(frame, condition, spot)) != bool(self.old.operand(call.old, condition, spot)):
                self.flips.append((frame, key))
                raise _Again(frame, key)
        edge = frame.edge_taken(spot)
        if edge is None:
            return
        for number, argument in why:
            if argument == RESULT:
                call.result_changed = True
            elif argument >= 0 and block.edges[number] is edge:
                silent = not frame.graph.blocks[edge.target - 1].record
                call.mark((key[0] + 1 if silent else 2 * (spot.step + 1), argument), (-1, 0))

    def _item(self, call: _Call, key: Key, spot: Spot, item: Item) -> None:
        frame = call.frame
        if item.derived == "void" and (item.name == "print" or not item.throws):
            return
        if frame.layout.is_hidden(item) or item.name == OPAQUE:
            raise _Again(frame, key)
        if is_read(item):
            new: Any = self._terms.target(self._terms.before(path_of(frame, key)))
        else:
            operands = [self.new.operand(frame, o, spot) for o in item.operands]
            new = self._evaluated(frame, key, spot, item, operands)
        self.recomputed.append((frame, key))
        if item.derived == "void":
            return
        old = self.old.item(call.old, item, spot)
        if same(old, new):
            return
        if not item.derived or item.derived == "condition":
            self.version.tape.changes.of(frame).values[key] = new
        self._term(call, key, item, new)
        self._changed(call, key, item.index, old, new)

    def _evaluated(self, frame: Frame, key: Key, spot: Spot, item: Item, operands: list[Any]) -> Any:
        try:
            if item.stream is None:
                return self.evaluator.value(item, operands)
            taken = frame.draws_taken(spot)
            had = draws_of(self.version)[taken.segment][taken.begin : taken.end]
            value, now = self.evaluator.drawn(item, operands, had)
        except Threw:
            raise _Whole(frame, key) from None
        if now.values.tobytes() != had.values.tobytes() or now.kinds.tobytes() != had.kinds.tobytes():
            number = next(_segments)
            self.version.other_draws[number] = now
            self.version.tape.changes.of(frame).draws[key] = Taken(number, 0, len(now))
        return value

    # ------------------------------------------------------------ the target

    @cached_property
    def _touched(self) -> set[str]:
        return touching(self.version.tape.tables)

    @cached_property
    def _terms(self) -> Terms:
        """The additions to the target in the new version, as far as it is made."""
        return self.base.terms(self._touched).copy()

    def _term(self, call: _Call, key: Key, item: Item, value: Any) -> None:
        """An op has another value: if it adds to the target, what follows is added anew."""
        if item.kind not in ADDING:
            return
        number = self._terms.find(call.frame.place, key)
        if number is None:  # of a run that an error had ended
            raise _Whole(call.frame, key)
        self._terms.set(number, value)
        if number < self._marked:
            self._marked = number
            self._mark_reads(number)

    def _mark_reads(self, number: int) -> None:
        """What asks for the target behind an addition."""
        for frame, key, count in self._terms.reads:
            if count > number:
                self._touch_new(frame, key)

    def _touch_new(self, frame: Frame, key: Key) -> None:
        """The same as `_touch`; what has run again need not be looked at."""
        if frame.segment in self._made_here:
            return
        self._touch(frame, key, _TARGET)

    @cached_property
    def _made_here(self) -> set[int]:
        return set(self.version.tape.segments) - set(self.base.tape.segments)

    # ------------------------------------------------------------ calls

    def _enter(self, call: _Call, key: Key, spot: Spot, item: Item) -> _Call:
        frame, old = call.frame.child(spot), call.old.child(spot)
        if frame is None or old is None:
            raise ArgumentError(f"the trace cannot be updated: what '{item.name}' did was not kept")
        inner = _Call(frame, old)
        inner.settings = {setting.key: setting for setting in self._settings if setting.frame.place == old.place}
        for at, why in self._waiting.pop(old.place, ()):
            inner.mark(at, why)
        for edge, number in call.why[key]:
            if edge == -1 and number >= 0 and parameter_key(number) not in inner.settings:
                self._parameter(inner, number)
        return inner

    def _parameter(self, call: _Call, number: int) -> None:
        changes = self.version.tape.changes.get(call.frame.place)
        if changes is not None and parameter_key(number) in changes.fixed:
            return
        if call.frame.graph.parameters[number].type.base == "other":
            raise _Again(call.frame, parameter_key(number))
        new, old = self.new.parameter(call.frame, number), self.old.parameter(call.old, number)
        if not same(old, new):
            if call.frame.graph.opaque:
                raise _Again(call.frame, parameter_key(number))
            self._changed(call, parameter_key(number), number + 2, old, new)

    # ------------------------------------------------------------ running again

    def _drop_settings(self, after: Any, within: Any) -> None:
        """What was to be set behind a jump that is taken no more, or an error."""
        for setting in self._settings:
            path = path_of(setting.frame, setting.key)
            if path > after and path[: len(within)] == within:
                self.unused.append(setting.node)

    def _run_again(self, caller: Frame, key: Key, again: _Again) -> Frame:
        """Runs a call once more; its frame. `key`: of the call in its caller."""
        frame, spot = again.frame, spot_of(key)
        item = caller.item_at(spot)
        path = path_of(caller, key)
        touches = item.child in self._touched
        begin = end = 0
        if touches:
            begin, end = self._terms.before((*path, (-2, 0))), self._terms.before((*path, _LAST))
        target = self._terms.target(begin) if touches else 0.0
        run = None
        if not self._has_settings(frame, again.key):
            run = self._natively(caller, spot, frame, target)
            if run is None or (run.error is not None and caller.parent is not None):
                raise _Whole(frame, again.key)
        else:
            run = self._interpreted(caller, [frame], [again.key])
            if run.error is not None:
                raise _Whole(frame, again.key)
        found = self._splice(caller, spot, frame, run)
        self.rerun.append((caller, key))
        if touches and run.error is None:
            before = self._terms.increments[begin:end].tobytes()
            others = Terms(found, self._touched)
            self._terms.replace(begin, end, path, others)
            if others.increments.tobytes() != before:
                self._marked = min(self._marked, begin)
                self._mark_reads(begin)
        return found

    def _natively(self, caller: Frame, spot: Spot, frame: Frame, target: float) -> RecordedRun | None:
        """By machine code; None if it must be the whole function."""
        is_root = caller.parent is None
        graph = frame.graph
        origin = self.version.runs[0]
        types = {n: parameter.type for n, parameter in enumerate(graph.parameters) if parameter.type != FUNCTION}
        if not is_root and (not origin.parts or any(t.base == "other" for t in types.values())):
            return None
        values = [self.new.parameter(frame, n) for n in types]
        source = None
        if caller.item_at(spot).stream is not None:
            draws = collected(frame, caller.draws_taken(spot), draws_of(self.version))
            source = self.evaluator.source(draws)
        run = origin.call(
            self.version.context, "" if is_root else graph.symbol, values, list(types.values()), source, target
        )
        if source is not None and (run.error is None or is_root):
            self.evaluator.went_on(run.continuation)
        return run

    def _interpreted(self, caller: Frame, frames: Sequence[Frame], keys: Sequence[Key]) -> RecordedRun:
        """Op by op. `caller`: of the first of the calls, which are open."""
        first = frames[0]
        spot = caller.spot(first.call)
        segments = draws_of(self.version)
        given = NO_DRAWS
        if caller.item_at(spot).stream is not None:
            given = collected(first, caller.draws_taken(spot), segments)

        def draws(frame: Frame, at: Spot) -> Draws:
            taken = frame.draws_taken(at)
            return segments[taken.segment][taken.begin : taken.end]

        target = 0.0
        if first.graph.symbol in self._touched:
            target = self._terms.target(self._terms.before(path_of(frames[-1], keys[-1])))
        writer = RecordWriter(self.version.tape.tables, self.version.context.max_copy)
        interpreter = Interpreter(
            frames, keys, writer, Stream(given), self.new, self.evaluator, draws, target, self._run_library
        )
        written = interpreter.run()
        if len(written.stream.left):
            self.evaluator.went_on(self.version.continuation.preceded_by(written.stream.left))
        self._fixed = written.changes
        shown, whole = written.writer.finish()
        origin = self.version.runs[0]
        run = RecordedRun(
            shown, (), (), written.stream.drawn, self.version.continuation, written.error, "", origin.again
        )
        run.keep_whole(whole)
        return run

    def _run_library(
        self, symbol: str, values: Sequence[Any], types: Sequence[ValueType]
    ) -> tuple[Recorder, UlamError | None]:
        """Runs a traced higher-order function. Raises ArgumentError where that is not possible."""
        origin, context = self.version.runs[0], self.version.context
        if not origin.parts or any(type_.base == "other" for type_ in types):
            raise ArgumentError(
                "the trace cannot be updated: a function of the library would have to run again by itself"
            )
        run = origin.call(context, symbol, values, types, None, 0.0)
        return run.whole(context), run.error

    def _splice(self, caller: Frame, spot: Spot, frame: Frame, run: RecordedRun) -> Frame:
        """Puts what has run again in the place of a call."""
        tape, key = self.version.tape, key_of(spot)
        number = next(_segments)
        tape.segments[number] = run.recorder
        self._made_here.add(number)
        self.version.runs[number] = run
        tape.changes.forget(frame.place)
        changes = tape.changes.of(caller)
        around = caller.parent is None and not run.is_written  # what calls the tracked function is recorded too
        place = run.recorder.children(0, 1)[0] if around else 0
        changes.calls[key] = number * SEGMENT + place
        changes.values.pop(key, None)
        if caller.item_at(spot).stream is not None:
            changes.draws[key] = Taken(number, 0, len(run.draws))
        if run.is_written:
            tape.changes.add(self._fixed, number * SEGMENT, caller.place, key)
        if caller.parent is None:
            set_error(self.version, run.error)
        found = caller.child(spot)
        assert found is not None
        return found

    def _has_settings(self, frame: Frame, before: Key) -> bool:
        """Whether something was set in a call before a place: a native run would know nothing of it."""
        changes = self.version.tape.changes
        own = changes.get(frame.place)
        if own is not None and any((0, 0) <= key < before for key in own.fixed):
            return True
        return any(changes[place].fixed and at < before for place, at in changes.within(frame.place).items())

    def _run_whole(self, whole: _Whole) -> None:
        """Runs the traced function again: natively, or on from where an op has thrown or did so before."""
        root = self.version.root
        caller = root.frame
        spot = caller.spot(root.at)
        child = caller.child(spot)
        if child is None:
            raise ArgumentError("the trace cannot be updated: nothing of it was kept")
        self._drop_settings(path_of(whole.frame, whole.key), ())
        if any(found.fixed for found in self.version.tape.changes.values()) and whole.frame is not caller:
            frames, keys = [whole.frame], [whole.key]
            while (parent := frames[0].parent) is not None and parent is not caller:
                keys.insert(0, key_of(parent.spot(frames[0].call)))
                frames.insert(0, parent)
            run = self._interpreted(caller, frames, keys)
        else:
            run = self._natively(caller, spot, child, 0.0)
            assert run is not None
        found = self._splice(caller, spot, child, run)
        self.rerun = [(caller, key_of(spot))]
        if run.error is None and found.graph.result.base not in ("void", "other"):  # a tuple is read from its fields
            self.version.tape.changes.of(caller).values[key_of(spot)] = self.new.result(found)
        self.__dict__.pop("_terms", None)
        self.version.tape.terms = None  # all is as recorded

    # ------------------------------------------------------------ the end

    def _finish(self) -> None:
        version = self.version
        drop_segments(version)
        root = version.root
        spot = root.frame.spot(root.at)
        child = root.frame.child(spot)
        if root.item.stream is not None and any(found.draws for found in version.tape.changes.values()):
            taken, segments = root.frame.draws_taken(spot), draws_of(version)
            drawn = segments[taken.segment][taken.begin : taken.end]
            version.draws = drawn if child is None else collected(child, taken, segments)
        if "_terms" in self.__dict__:
            version.set_terms(self._terms)
