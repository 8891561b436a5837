"""The recorder of the C runtime and its random draws, in Python. See c/trace.h."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.c_library import freed_by, library
from ulam.runtime.errors import ArgumentError, UlamError
from ulam.runtime.native import Context, Rng, array_of


class DamagedTrace(UlamError):
    """A file that is no saved trace, or that does not have the contents that it was written with."""


MODES = {"stop": 0, "ring": 1, "spill": 2, "edges": 3}
CHUNK_BYTES = 1 << 20
EDGES_CHUNK_BYTES = 1 << 16
"""Where values are not kept: one that stays in the cache."""
PAGES_BYTES = 1 << 16
"""Of a file: a multiple of the size of pages, here and elsewhere."""
POOLED = 2
"""Recorders that are kept for the next run of the same kind, with their memory."""
SCANNED = 4096
"""Records that are read at a time."""
CUT = -2
"""State of a scan: the records end before the frame is over (-1: it is over)."""

_P, _I32, _I64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ulam_trace_new": (_P, (_I64, _I64, _I32, ctypes.c_char_p, ctypes.c_char_p)),
    "ulam_trace_free": (None, (_P,)),
    "ulam_trace_begin": (_I32, (_P, _P, _I64)),
    "ulam_trace_watch": (None, (_P, _P)),
    "ulam_trace_listen": (None, (_P, _P, _P)),
    "ulam_trace_finish": (_I32, (_P,)),
    "ulam_trace_touch": (None, (_P, _I64)),
    "ulam_trace_describe": (None, (_P, _P)),
    "ulam_trace_chunk": (_P, (_P, _I64, _P)),
    "ulam_trace_lend": (_I32, (_P, _I64, _P, _I64)),
    "ulam_trace_lend_side": (_I32, (_P, ctypes.c_char_p, _I64, _I64)),
    "ulam_trace_scan": (_I64, (_P, _P, _P, _P, _P, _I64)),
    "ulam_trace_resume": (_I32, (_P, _I64, _P, _P, _P)),
    "ulam_trace_children": (_I64, (_P, _I64, _P, _I64)),
    "ulam_trace_search_new": (_P, (_P, _P, _P, _I32, ctypes.c_double, ctypes.c_double)),
    "ulam_trace_search_free": (None, (_P,)),
    "ulam_trace_search_next": (_I64, (_P,)),
    "ulam_trace_search_path": (_I64, (_P, _P, _I64)),
    "ulam_draws_new": (_P, (_P, _P)),
    "ulam_draws_scripted": (_P, (_P, _P, _I64)),
    "ulam_draws_replayed": (_P, (_P, _P, _P, _I64, _I32)),
    "ulam_draws_free": (None, (_P,)),
    "ulam_draws_generator": (_P, (_P,)),
    "ulam_draws_read": (_I64, (_P, _P, _P, _I64)),
    "ulam_draws_problem": (_I32, (_P,)),
    "ulam_draws_taken": (_P, (_P,)),
    "ulam_draws_continue": (None, (_P, _P, _I32)),
}


@cache
def trace_library() -> ctypes.CDLL:
    """The C runtime, with the prototypes of the recorder set."""
    loaded = library()
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


ANY_VALUE, REAL, INT, CONTAINER = range(4)
"""Kinds of probes (`ULAM_PROBE_*`)."""
PROBE = np.dtype([("offset", np.int32), ("kind", np.int32)])
"""`ulam_trace_probe`."""


class Level(ctypes.Structure):
    """A call around what was found (`ulam_trace_level`)."""

    first: int
    latest: int
    position: int
    call: int
    _fields_ = [(name, _I64) for name in ("first", "latest", "position", "call")]


class BlockRow(ctypes.Structure):
    """What the recorder knows of a block (`ulam_trace_block`)."""

    _fields_ = [(name, _I32) for name in ("bytes", "nodes", "children", "returns")]


class Info(ctypes.Structure):
    """The state of a recorder (`ulam_trace_info`)."""

    _fields_ = [
        *((name, _I64) for name in ("chunk_bytes", "chunks", "first_kept", "bytes", "dropped")),
        *((name, _I64) for name in ("side_first", "side_bytes", "edge_bytes", "edge_width")),
        ("side", _P), ("edges", _P),
    ]  # fmt: skip


class Recorder:
    """Records of one run at a time. Not for several threads at once."""

    def __init__(self, limit_bytes: int = 1 << 30, overflow: str = "stop", chunk_bytes: int = 0) -> None:
        if overflow not in MODES:
            raise ValueError(f"overflow is one of {', '.join(MODES)}, not {overflow!r}")
        if limit_bytes < 4096:
            raise ValueError(f"limit_bytes is {limit_bytes}, but must be at least 4096")
        self.mode = overflow
        chunk_bytes = chunk_bytes or (EDGES_CHUNK_BYTES if overflow == "edges" else CHUNK_BYTES)
        self.chunk_bytes = min(chunk_bytes, limit_bytes)
        if overflow == "spill":  # chunks are pages of the file
            self.chunk_bytes = -(-self.chunk_bytes // PAGES_BYTES) * PAGES_BYTES
        self.limit_bytes = limit_bytes
        self._library = trace_library()
        self.address: int = self._new()
        self._owned = freed_by("ulam_trace_free", self.address)
        self._rows: Any = None
        self._kept: list[Any] = []
        self._callback: Any = None
        self.is_saved = False
        """Whether the records are from a file: they may be anything then."""
        self.replay: Callable[[], Recorder] | None = None
        """Of a recorder that keeps edges only: runs the program once more, and keeps all."""
        self._replayed: Recorder | None = None

    def _new(self) -> int:
        paths: list[str] = []
        for _ in range(2 if self.mode == "spill" else 0):  # records, and contents of containers
            handle, path = tempfile.mkstemp(prefix="ulam-trace-")
            os.close(handle)
            paths.append(path)
        given = [os.fsencode(path) for path in paths] or [None, None]
        address = self._library.ulam_trace_new(self.chunk_bytes, self.limit_bytes, MODES[self.mode], *given)
        for path in paths:
            os.unlink(path)  # it is open: its room is given back with the recorder, whatever happens
        if not address:
            raise MemoryError("no memory for a trace, or no file to spill it to")
        return address

    def begin(self, rows: Any) -> None:
        """Forgets what is there. `rows`: an array of `BlockRow`. Raises ArgumentError if one is longer than a chunk."""
        self._rows = rows
        self.replay = self._replayed = None
        self._kept.clear()
        if self._library.ulam_trace_begin(self.address, ctypes.addressof(rows), len(rows)):
            longest = max(row.bytes for row in rows)
            raise ArgumentError(
                f"limit_bytes is {self.limit_bytes}, but one block of the program records {longest} bytes at once"
            )

    def watch(self, draws: int) -> None:
        """The run that follows notes how many numbers it has taken: the address of the number; 0 if it takes none."""
        self._library.ulam_trace_watch(self.address, draws or None)

    def listen(self, context: int, callback: Any) -> None:
        """Hooks of the run that follows call this, with their number and the values; a context's address."""
        self._callback = callback
        self._library.ulam_trace_listen(self.address, context, ctypes.cast(callback, _P))

    def touch(self, byte_count: int) -> None:
        """Takes memory for so many bytes ahead of a run, so that the run need not wait for it."""
        self._library.ulam_trace_touch(self.address, byte_count)

    def finish(self) -> None:
        """After the run. Raises OSError if there was no room for what it recorded."""
        if self._library.ulam_trace_finish(self.address):
            where = f" in '{tempfile.gettempdir()}'" if self.mode == "spill" else ""
            raise OSError(f"there is no room for the trace{where}")

    def lend(self, chunks: Sequence[bytes], side: bytes, side_first: int = 0) -> None:
        """Reads a saved trace: chunks as they were, and the contents of containers, from the place `side_first` on.

        What is not there when it is read was not saved as it was: DamagedTrace.
        """
        self.is_saved = True
        for number, data in enumerate(chunks):
            memory = array_of(ctypes.c_char, len(data))
            ctypes.memmove(memory, data, len(data))
            self._kept.append(memory)
            self._library.ulam_trace_lend(self.address, number, ctypes.addressof(memory), len(data))
        self._library.ulam_trace_lend_side(self.address, side, len(side), side_first)

    def absent(self, what: str) -> Exception:
        """What to raise for records that are not there."""
        return DamagedTrace(f"the trace is damaged: there is {what}") if self.is_saved else LookupError(what)

    def info(self) -> Info:
        """Sizes and counts."""
        (info,) = array_of(Info, 1)
        self._library.ulam_trace_describe(self.address, ctypes.addressof(info))
        return info

    def chunk(self, number: int) -> tuple[int, int]:
        """Address and used bytes of a chunk; address 0 if it is gone."""
        used = _I64()
        base = self._library.ulam_trace_chunk(self.address, number, ctypes.addressof(used))
        return base or 0, used.value

    def whole(self) -> Recorder:
        """What has all records that there are: where only edges are kept, those of a second run."""
        return self if self.replay is None else self._with(self.chunk_bytes)

    def _with(self, place: int) -> Recorder:
        """What has the records at a place: where only edges are kept, only the first is there, others are replayed."""
        if self.replay is None or place < self._rows[1].bytes:
            return self
        if self._replayed is None:
            found = self.replay()
            if found.info().chunks != self.info().chunks:
                raise RuntimeError("the program did something else when it ran once more: its trace cannot be read")
            self._replayed = found
        return self._replayed

    def bytes_at(self, place: int, count: int) -> bytes:
        """Bytes of a record."""
        if (other := self._with(place)) is not self:
            return other.bytes_at(place, count)
        base, used = self.chunk(place // self.chunk_bytes)
        offset = place % self.chunk_bytes
        if not base or count < 0 or offset + count > used:
            raise self.absent(f"no record at {place}")
        return ctypes.string_at(base + offset, count)

    def words(self, places: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
        """The first `count` slots of the records at some places: a row for each."""
        if self.replay is not None and (other := self._with(self.chunk_bytes)) is not self:
            return other.words(places, count)
        if len(places) == 1:
            return np.frombuffer(self.bytes_at(int(places[0]) + 8, 8 * count), np.int64)[None]
        found = np.empty((len(places), count), np.int64)
        numbers = places // self.chunk_bytes
        slots = np.arange(count)
        for number in np.unique(numbers):
            base, used = self.chunk(int(number))
            here = numbers == number
            first = (places[here] % self.chunk_bytes) // 8 + 1
            if not base or int(first.max()) + count > used // 8:
                raise self.absent(f"no record at {int(places[here].max())}")
            data = np.frombuffer(memoryview((_I64 * (used // 8)).from_address(base)), np.int64)
            found[here] = data[first[:, None] + slots]
        return found

    def words_at(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """8 bytes at each of many places."""
        if self.replay is not None and len(places):
            return np.frombuffer(b"".join(self.bytes_at(int(place), 8) for place in places), np.int64)
        chunks, found = places // self.chunk_bytes, np.empty(len(places), np.int64)
        for number in np.unique(chunks):
            base, used = self.chunk(int(number))
            here = chunks == number
            offsets = places[here] % self.chunk_bytes
            if not base or int(offsets.max()) + 8 > used:
                raise self.absent(f"no record at {int(places[here].max())}")
            words = np.frombuffer(memoryview((_I64 * (used // 8)).from_address(base)), np.int64)
            found[here] = words[offsets // 8]
        return found

    def side(self, offset: int, count: int) -> bytes:
        """Bytes of the contents of containers. Raises LookupError for those that are not kept."""
        if (other := self.whole()) is not self:
            return other.side(offset, count)
        info = self.info()
        if count < 0 or not info.side_first <= offset <= info.side_bytes - count:
            raise self.absent(f"no contents at {offset}")
        return ctypes.string_at(info.side + offset - info.side_first, count)

    def scan(self, place: int, state: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], int, int]:
        """Up to SCANNED records of a frame from `place` on: blocks, places; where to go on, and the state then."""
        if (other := self._with(place)) is not self:
            return other.scan(place, state)
        blocks, places = np.empty(SCANNED, np.int32), np.empty(SCANNED, np.int64)
        at, status = _I64(place), _I64(state)
        count = self._library.ulam_trace_scan(
            self.address,
            ctypes.addressof(at),
            ctypes.addressof(status),
            blocks.ctypes.data,
            places.ctypes.data,
            SCANNED,
        )
        return blocks[:count], places[:count], at.value, status.value

    def search(
        self, probes: npt.NDArray[Any], starts: npt.NDArray[np.int64], test: int, limits: tuple[float, float]
    ) -> Iterator[tuple[int, list[Level]]]:
        """What passes the test, in the order of the records: the number of its probe, and the calls around it.

        `probes`: of type PROBE; those of block b are from starts[b] up to starts[b + 1].
        """
        if (other := self.whole()) is not self:
            yield from other.search(probes, starts, test, limits)
            return
        address = self._library.ulam_trace_search_new(
            self.address, probes.ctypes.data, starts.ctypes.data, test, *limits
        )
        if not address:
            raise MemoryError("no memory to search a trace")
        try:
            while (probe := self._library.ulam_trace_search_next(address)) >= 0:
                depth = self._library.ulam_trace_search_path(address, None, 0)
                levels = array_of(Level, depth)
                self._library.ulam_trace_search_path(address, ctypes.addressof(levels), depth)
                yield probe, list(levels)
        finally:
            self._library.ulam_trace_search_free(address)

    def resume(self, first: int) -> tuple[int, int, int] | None:
        """Where a frame goes on behind records that were dropped; the steps and positions that it had done by then."""
        place, steps, position = _I64(), _I64(), _I64()
        found = self._library.ulam_trace_resume(
            self.address, first, ctypes.addressof(place), ctypes.addressof(steps), ctypes.addressof(position)
        )
        return (place.value, steps.value, position.value) if found else None

    def children(self, place: int, count: int) -> list[int]:
        """Where the recorded calls of a record begin; -1 for those that are not there."""
        if (other := self._with(place)) is not self:
            return other.children(place, count)
        places = array_of(_I64, count)
        self._library.ulam_trace_children(self.address, place, ctypes.addressof(places), count)
        return list(places[:count])


class RecorderPool:
    """Recorders with their memory, for runs of the same kind. For several threads."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str, int], list[Recorder]] = {}
        self._lock = threading.Lock()

    def take(self, limit_bytes: int, overflow: str, longest: int) -> Recorder:
        """One that nobody reads any more, or a new one. `longest`: bytes of the longest record."""
        chunk_bytes = max(EDGES_CHUNK_BYTES if overflow == "edges" else CHUNK_BYTES, longest)
        if overflow == "edges":  # these keep a second run of their own
            return Recorder(limit_bytes, overflow, chunk_bytes)
        with self._lock:
            kept = self._kept.setdefault((limit_bytes, overflow, chunk_bytes), [])
            for recorder in kept:
                if sys.getrefcount(recorder) <= 3:
                    return recorder
            found = Recorder(limit_bytes, overflow, chunk_bytes)
            if len(kept) < POOLED:
                kept.append(found)
            return found


# ---------------------------------------------------------------- draws

DRAW_KINDS = ("uint64", "uint32", "double", "raw")
"""Kinds of numbers that a generator is asked for, as in c/trace_draws.c."""

UNIFORM = DRAW_KINDS.index("double")
"""That of a real from 0 up to 1."""


class DrawsExhausted(UlamError):
    """A function drew more random numbers than were given."""

    @classmethod
    def after(cls, count: int) -> DrawsExhausted:
        """With the text for a run that was given `count` numbers."""
        return cls(f"the function drew more random numbers than the {count} that were given")


class OtherDraws(UlamError):
    """A function draws other numbers than were replayed: they are those of another program, or of another run."""


class Seeded:
    """Random numbers from a seed (and, for independent ones, a stream)."""

    def __init__(self, seed: int, stream: int = 0) -> None:
        self.seed, self.stream = seed, stream

    def __repr__(self) -> str:
        return f"Seeded({self.seed}, {self.stream})" if self.stream else f"Seeded({self.seed})"


class Scripted:
    """Uniform numbers, each from 0 up to 1, that are drawn one after the other.

    A draw of a scalar distribution takes one, and is the quantile there: the value, or the least integer, where the
    distribution function reaches it. `uniform_rng`, `bernoulli_rng` and the like use it as their generator does: 1 is
    drawn where it is less than the probability. Draws with several values take those of the scalar draws that they are
    made of, one each: `multi_normal_rng` of n values takes n, for example.
    """

    def __init__(self, uniforms: Sequence[float]) -> None:
        self.uniforms = [float(u) for u in uniforms]
        wrong = [u for u in self.uniforms if not 0 <= u < 1]
        if wrong:
            raise ArgumentError(f"scripted draws are uniform numbers from 0 up to 1; {wrong[0]} is not")

    def __repr__(self) -> str:
        return f"Scripted({self.uniforms})"


class Replay:
    """The draws of another trace once more."""

    def __init__(self, trace: Any) -> None:
        self.draws: Draws = trace.draws
        self.continuation: Continuation = trace.continuation
        self.fills = False

    @classmethod
    def of(cls, draws: Draws, continuation: Continuation | None = None, fills: bool = False) -> Replay:
        """Draws that are at hand, then those of a continuation.

        `fills`: the continuation also has a number where another kind is asked for than was drawn.
        """
        made = cls.__new__(cls)
        made.draws, made.fills = draws, fills
        made.continuation = continuation or NO_CONTINUATION
        return made

    @property
    def scripted(self) -> bool:
        """Whether draws are made by inversion, as they were."""
        return self.draws.scripted or self.continuation.rest.scripted

    def __repr__(self) -> str:
        return f"Replay({len(self.draws)} draws)"


class Draws:
    """The numbers that a run took from its generator, in order. `scripted`: by inversion, see `Scripted`."""

    def __init__(self, values: npt.NDArray[np.uint64], kinds: npt.NDArray[np.uint8], scripted: bool = False) -> None:
        self.values, self.kinds, self.scripted = values, kinds, scripted

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, part: slice) -> Draws:
        return Draws(self.values[part], self.kinds[part], self.scripted)

    @staticmethod
    def joined(parts: Sequence[Draws]) -> Draws:
        """One after the other."""
        if not parts:
            return NO_DRAWS
        values, kinds = np.concatenate([p.values for p in parts]), np.concatenate([p.kinds for p in parts])
        return Draws(values, kinds, any(p.scripted for p in parts))


NO_DRAWS = Draws(np.zeros(0, np.uint64), np.zeros(0, np.uint8))


@dataclass(frozen=True)
class Continuation:
    """What a run would have drawn next: numbers that were given and not used, then those of a generator."""

    rest: Draws
    seed: int = 0
    stream: int = 0
    state: Any = None
    """Of the generator; None: there is none."""

    def generator(self) -> Rng | None:
        """A generator that goes on from there."""
        if self.state is None:
            return None
        found = Rng(self.seed, self.stream)
        found.generator.state = self.state
        return found

    def preceded_by(self, draws: Draws) -> Continuation:
        """The same behind other numbers."""
        return replace(self, rest=Draws.joined([draws, self.rest])) if len(draws) else self

    def after(self, used: int, generator: Rng | None) -> Continuation:
        """What is left once `used` numbers of `rest` were taken, and `generator` has gone on."""
        rest = self.rest[used:]
        if generator is None:
            return Continuation(rest)
        return Continuation(rest, generator.seed, generator.stream, generator.generator.state)


NO_CONTINUATION = Continuation(NO_DRAWS)

Source = Seeded | Scripted | Replay | Rng


class _Generator:
    """A generator of the C runtime for one run; stands in for `Rng` in a context."""

    def __init__(self, context: Context, source: Source) -> None:
        self._library = trace_library()
        self._rng: Rng | None = None
        self._given = NO_DRAWS  # before those of the continuation
        self._before = NO_CONTINUATION
        self._scripted = isinstance(source, Scripted) or isinstance(source, Replay) and source.scripted
        if isinstance(source, Scripted):
            values = np.array(source.uniforms)
            self._before = Continuation(Draws(values.view(np.uint64), np.full(len(values), UNIFORM, np.uint8), True))
            address = self._library.ulam_draws_scripted(context.address, values.ctypes.data, len(values))
        elif isinstance(source, Replay):
            self._given, self._before = source.draws, source.continuation
            self._rng = source.continuation.generator()
            draws = Draws.joined([source.draws, source.continuation.rest])
            address = self._library.ulam_draws_replayed(
                context.address, draws.values.ctypes.data, draws.kinds.ctypes.data, len(draws),
                draws.scripted,
            )  # fmt: skip
        else:
            self._rng = Rng(source.seed, source.stream) if isinstance(source, Seeded) else source
            address = self._library.ulam_draws_new(context.address, self._rng.bitgen)
        if not address:
            raise MemoryError("no memory for random draws")
        self._owned = freed_by("ulam_draws_free", address)
        self.address: int = address
        self.bitgen: int = self._library.ulam_draws_generator(address)
        self.counter: int = self._library.ulam_draws_taken(address)
        """The address of the number of draws so far."""
        if isinstance(source, Replay) and self._rng is not None:
            self._library.ulam_draws_continue(address, self._rng.bitgen, source.fills)

    @property
    def problem(self) -> int:
        """0, or why a run was left: 1, no draws were left; 2, numbers of another kind were asked for."""
        return self._library.ulam_draws_problem(self.address)

    def taken(self) -> Draws:
        """What was drawn."""
        count = self._library.ulam_draws_read(self.address, None, None, 0)
        values, kinds = np.zeros(count, np.uint64), np.zeros(count, np.uint8)
        self._library.ulam_draws_read(self.address, values.ctypes.data, kinds.ctypes.data, count)
        return Draws(values, kinds, self._scripted)

    @property
    def _used(self) -> int:
        return self._library.ulam_draws_read(self.address, None, None, 0)

    def beyond(self) -> Continuation:
        """What would be drawn next, once what is replayed is used up."""
        return self._before.after(max(self._used - len(self._given), 0), self._rng)

    def continuation(self) -> Continuation:
        """What would be drawn next."""
        return self.beyond().preceded_by(self._given[self._used :])


def generator(context: Context, source: Source) -> _Generator:
    """What the context draws from during one run; records what it gives."""
    if not isinstance(source, Seeded | Scripted | Replay | Rng):
        raise ArgumentError(f"rng is Seeded, Scripted, Replay or an Rng, not {type(source).__name__}")
    return _Generator(context, source)
