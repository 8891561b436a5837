"""The C runtime in Python: contexts and their pool, bound data, random number generators.

Entry points of compiled programs are called through `Context.run_*`, which release the interpreter lock while the
program runs.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ulam.library.statuses import STOPPED
from ulam.runtime.c_library import PrintSink, freed_by, library
from ulam.runtime.interrupts import raise_stopped

if TYPE_CHECKING:
    from ulam.runtime._calls import DensityCall
    from ulam.runtime.program import Unit

# Offsets of the public fields of `struct ulam_context`, as in c/context.h.
_ERROR_SITE, _ERROR_VALUES, _VALUE, _OUTPUT_LENGTH, _RNG = 16, 24, 64, 72, 80

KEEP_BYTES = 256 << 20
"""How much arena memory a context keeps from one evaluation to the next."""


class Generator(Protocol):
    """What a context draws random numbers from."""

    bitgen: int
    """The address of a `bitgen_t`."""


class Rng:
    """A stream of random numbers for `_rng` functions: PCG64DXSM, seeded by (seed, stream).

    Draws advance it; one thread uses it at a time (NumPy's lock is `generator.lock`).
    """

    def __init__(self, seed: int, stream: int = 0) -> None:
        from numpy.random import PCG64DXSM, SeedSequence

        if seed < 0 or stream < 0:
            raise ValueError(f"seed and stream must not be negative, found seed={seed}, stream={stream}")
        self.seed = seed
        self.stream = stream
        self.generator = PCG64DXSM(SeedSequence((seed, stream)))
        interface = self.generator.ctypes
        self.bitgen: int = interface.bit_generator.value
        """The address of the generator's `bitgen_t`."""

    def __repr__(self) -> str:
        return f"Rng(seed={self.seed}, stream={self.stream})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore_rng, (self.seed, self.stream, self.generator.state))


def _restore_rng(seed: int, stream: int, state: Any) -> Rng:
    rng = Rng(seed, stream)
    rng.generator.state = state
    return rng


def new_rng(seed: int, stream: int = 0) -> Rng:
    """A random number generator; different streams of one seed are independent."""
    return Rng(seed, stream)


class ProfileRecord(ctypes.Structure):
    """A region below another one, of one thread and phase; `parent` is the index of a row.

    Region -1, without a parent: whole evaluations.
    """

    _fields_ = [
        (name, ctypes.c_int64)
        for name in (
            "thread", "phase", "parent", "region", "passes", "gradient_passes", "forward_ticks", "reverse_ticks",
            "wall_ticks", "outlier_passes", "outlier_ticks", "kept", "others", "steps", "failed_steps",
        )
    ]  # fmt: skip


class ProfileEvent(ctypes.Structure):
    """One pass through a region."""

    _fields_ = [(name, ctypes.c_int64) for name in ("thread", "phase", "region", "reverse", "start", "ticks")]


class Sample(ctypes.Structure):
    """How often the sampler found a thread at a place (c/sampler.h)."""

    _fields_ = [("place", ctypes.c_uint64), ("count", ctypes.c_int64)]


_Record = TypeVar("_Record", ProfileRecord, ProfileEvent)


def array_of(kind: Any, count: int) -> Any:
    """A ctypes array of so many zeros, for C to write into, in memory of NumPy's: tests give that guard pages."""
    import numpy as np

    return (kind * count).from_buffer(np.zeros(count * ctypes.sizeof(kind), np.uint8))


def _records(read: Any, address: int, kind: type[_Record]) -> list[_Record]:
    count = read(address, None, 0)
    records = array_of(kind, count)
    read(address, ctypes.addressof(records), count)
    return list(records)


def running(status: int) -> int:
    """The status of a run. Raises if it was stopped."""
    if status == STOPPED:
        raise_stopped()
    return status


class Context:
    """A context of the C runtime: what one evaluation at a time needs. See c/context.h.

    `value` holds the result of `run_value` and `run_gradient` (`context.value.value`); `output_length.value` says
    how many bytes of printed text wait for `take_output`.
    """

    __slots__ = (
        "address", "value", "output_length", "_library", "_error_site", "_error_values", "_rng", "_rng_object", "_sink",
        "run_value", "run_gradient", "_owned",
    )  # fmt: skip

    def __init__(self, keep_bytes: int = KEEP_BYTES, *, stoppable: bool = True) -> None:
        self._library = library()
        address = self._library.ulam_context_new(keep_bytes)
        if not address:
            raise MemoryError("no memory for a context of the C runtime")
        self._owned = freed_by("ulam_context_free", address)
        self.address: int = address
        if stoppable:  # by SIGINT and time limits, as all that Python calls
            self._library.ulam_context_stoppable(address)
        self.value = ctypes.c_double.from_address(address + _VALUE)
        self.output_length = ctypes.c_int64.from_address(address + _OUTPUT_LENGTH)
        self._error_site = ctypes.c_int64.from_address(address + _ERROR_SITE)
        self._error_values = (ctypes.c_double * 4).from_address(address + _ERROR_VALUES)
        self._rng = ctypes.c_void_p.from_address(address + _RNG)
        self._rng_object: Generator | None = None
        self._sink: Any = None
        # For callers that count nanoseconds: the C functions themselves, to be called with `address` first.
        self.run_value = self._library.ulam_run_value
        """`run_value(address, entry, bound, theta, jacobian) -> status`"""
        self.run_gradient = self._library.ulam_run_gradient
        """`run_gradient(address, entry, bound, theta, gradient, jacobian) -> status`"""

    def run_plain(self, entry: int, bound: int) -> int:
        """`prepare()` when it needs no memory for bound data."""
        return running(self._library.ulam_run_plain(self.address, entry, bound))

    def run_bind(self, entry: int, data: BoundData) -> int:
        """`prepare()` or `bind()`: may fill slots of `data` and allocate memory that lives with it."""
        with data.lock:
            return running(self._library.ulam_run_bind(self.address, entry, data.address, data.memory))

    def run_dims(self, entry: int, bound: int, variable: int, rank: int) -> tuple[int, list[int]]:
        """Status and sizes of global variable number `variable`."""
        dims = array_of(ctypes.c_int64, rank + 1)  # after the sizes: how many unconstrained values
        status = self._library.ulam_run_dims(self.address, entry, bound, variable, ctypes.addressof(dims))
        return running(status), list(dims[:rank])

    def run_hessian_vector(
        self, entry: int, bound: int, theta: int, direction: int, gradient: int, product: int, jacobian: bool
    ) -> int:
        """Status; the gradient and the product of the Hessian with `direction` go to the addresses given."""
        return running(
            self._library.ulam_run_hessian_vector(
                self.address, entry, bound, theta, direction, gradient, product, jacobian
            )
        )

    def run_hessian(
        self, entry: int, bound: int, theta: int, n: int, direction: int, gradient: int, hessian: int, jacobian: bool
    ) -> int:
        """The same for all n directions; the address `direction` is scratch."""
        return running(
            self._library.ulam_run_hessian(self.address, entry, bound, theta, n, direction, gradient, hessian, jacobian)
        )

    def repeat_gradient(
        self, entry: int, bound: int, theta: int, gradient: int, jacobian: bool, count: int
    ) -> tuple[int, float]:
        """Status, and the seconds that `count` gradients at one point took; the first that fails ends it.

        It is the processor's time: on a busy machine, waiting for one would be most of it, and come in whole slices.
        """
        start = time.thread_time()
        status = self._library.ulam_repeat_gradient(self.address, entry, bound, theta, gradient, jacobian, count)
        return running(status), time.thread_time() - start

    def run_constrain(self, entry: int, bound: int, theta: int, out: int, include_tp: bool, include_gq: bool) -> int:
        return running(self._library.ulam_run_constrain(self.address, entry, bound, theta, out, include_tp, include_gq))

    def run_unconstrain(self, entry: int, bound: int, constrained: int, theta: int) -> int:
        return running(self._library.ulam_run_unconstrain(self.address, entry, bound, constrained, theta))

    @property
    def error_site(self) -> int:
        """Index into the program's site table of the last failure; -1 if none was recorded."""
        return self._error_site.value

    @property
    def error_values(self) -> list[float]:
        return list(self._error_values)

    @property
    def message(self) -> str:
        """Text of `reject`, `fatal_error` or a failed kernel of the last run; empty if there is none."""
        return self._library.ulam_message(self.address).decode("utf-8", "replace")

    @property
    def rng(self) -> Generator | None:
        return self._rng_object

    @rng.setter
    def rng(self, rng: Generator | None) -> None:
        self._rng_object = rng
        self._rng.value = rng.bitgen if rng is not None else None

    def set_print_sink(self, sink: Callable[[str], None] | None) -> None:
        """Each printed line goes to `sink` when it is printed; with None, lines wait for `take_output`."""
        if sink is None:
            function = None
        else:
            function = PrintSink(lambda text, length: sink(ctypes.string_at(text, length).decode("utf-8", "replace")))
        self._library.ulam_set_print_sink(self.address, function if function is not None else PrintSink())
        self._sink = function

    def take_output(self) -> str:
        """What was printed since the last call."""
        length = self.output_length.value
        if not length:
            return ""
        text = ctypes.string_at(self._library.ulam_output(self.address), length).decode("utf-8", "replace")
        self._library.ulam_clear_output(self.address)
        return text

    # ------------------------------------------------------------ profiles (c/profile.h)

    def attach_profile(self, events: int) -> None:
        """Records profiles from now on; the last `events` passes one by one."""
        if not self._library.ulam_profile_attach(self.address, events):
            raise MemoryError("no memory for a profile")

    def set_phase(self, phase: int) -> None:
        """Under which phase the next evaluations are recorded."""
        self._library.ulam_profile_set_phase(self.address, phase)

    def reset_profile(self) -> None:
        self._library.ulam_profile_reset(self.address)

    def profile_rows(self) -> list[ProfileRecord]:
        """The nodes of all trees, parents first."""
        return _records(self._library.ulam_profile_rows, self.address, ProfileRecord)

    def profile_events(self) -> list[ProfileEvent]:
        """The last passes through regions, in the order of their ends."""
        return _records(self._library.ulam_profile_events, self.address, ProfileEvent)

    def profile_overhead(self) -> tuple[float, float]:
        """Ticks that entering and leaving a region takes: those counted as its time, and others."""
        inside, outside = ctypes.c_double(), ctypes.c_double()
        self._library.ulam_profile_overhead(self.address, ctypes.byref(inside), ctypes.byref(outside))
        return inside.value, outside.value

    @property
    def arena_bytes(self) -> int:
        """Arena memory that the context holds now."""
        return self._library.ulam_context_bytes(self.address)


def density_call(unit: Unit, n: int, with_gradient: bool, keeps: bool) -> DensityCall:
    """Evaluations of a unit of `n` parameters for Python; `keeps`: with the same workspaces again and again."""
    from ulam.runtime._calls import DensityCall

    run = library().ulam_run_gradient if with_gradient else library().ulam_run_value
    address = ctypes.cast(run, ctypes.c_void_p).value
    assert address is not None
    return DensityCall(unit, address, unit.entry, unit.bound, n, with_gradient, keeps)


class ContextPool:
    """Contexts to take and give back, so that threads and re-entrant calls never share one.

    `take` and `give` are atomic; at most `keep` idle contexts stay.
    """

    def __init__(self, keep: int = 64, keep_bytes: int = KEEP_BYTES) -> None:
        self._idle: deque[Context] = deque(maxlen=keep)
        self._keep_bytes = keep_bytes

    def take(self) -> Context:
        try:
            return self._idle.pop()
        except IndexError:
            return Context(self._keep_bytes)

    def give(self, context: Context) -> None:
        if context._rng_object is not None:
            context.rng = None
        if context._sink is not None:
            context.set_print_sink(None)
        self._idle.append(context)

    @contextmanager
    def context(self, rng: Rng | None = None) -> Iterator[Context]:
        context = self.take()
        try:
            context.rng = rng
            yield context
        finally:
            self.give(context)


_LINE = 64
_ALIGNED = range(16 * _LINE, 1 << 22)
"""Bytes of arrays that are worth it: less is read at once, more is waited for."""


def _aligned(array: Any) -> Any:
    """An array, or a copy of it that begins with a line of the cache: vectors then are in one, not partly in two."""
    if array.nbytes not in _ALIGNED or array.ctypes.data % _LINE == 0:
        return array
    import numpy as np

    memory = np.empty(array.nbytes + _LINE, np.uint8)
    first = -memory.ctypes.data % _LINE
    copy = memory[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class BoundData:
    """The table of bound data, one slot of 8 bytes each, and the memory that its buffers live in.

    Filled under `lock`; what is filled does not change any more, so evaluations read it without a lock.
    """

    def __init__(self, slots: int) -> None:
        self._library = library()
        self.lock = threading.RLock()
        self.memory: int = self._library.ulam_bound_memory_new()
        if not self.memory:
            raise MemoryError("no memory for bound data")
        self._owned = freed_by("ulam_bound_memory_free", self.memory)
        self._tables: list[Any] = []  # superseded ones stay: an evaluation may still be reading them
        self._kept: list[Any] = []
        self.address = 0
        """Address of the table; valid until the next `ensure_slots` that grows it, and kept readable afterwards."""
        self.slots = 0
        self.ensure_slots(max(slots, 1))

    def ensure_slots(self, slots: int) -> None:
        """Room for `slots` slots: later units of a program may have more."""
        with self.lock:
            if slots <= self.slots:
                return
            table = array_of(ctypes.c_int64, 2 * slots)
            if self._tables:
                ctypes.memmove(table, self.address, 8 * self.slots)
            self._tables.append(table)
            self.address = ctypes.addressof(table)
            self.slots = 2 * slots

    def _slot_address(self, slot: int) -> int:
        if not 0 <= slot < self.slots:
            raise IndexError(f"slot {slot} of {self.slots}")
        return self.address + 8 * slot

    def set_int(self, slot: int, value: int) -> None:
        ctypes.c_int64.from_address(self._slot_address(slot)).value = value

    def set_real(self, slot: int, value: float) -> None:
        ctypes.c_double.from_address(self._slot_address(slot)).value = value

    def set_array(self, slot: int, array: Any) -> None:
        """A contiguous NumPy array (float64 or int32), in our element order; kept alive."""
        if not array.flags.c_contiguous:
            raise ValueError("a bound array must be contiguous")
        array = _aligned(array)
        self._kept.append(array)
        self.set_int(slot, array.ctypes.data)

    def get_int(self, slot: int) -> int:
        return ctypes.c_int32.from_address(self._slot_address(slot)).value

    def get_real(self, slot: int) -> float:
        return ctypes.c_double.from_address(self._slot_address(slot)).value

    def get_pointer(self, slot: int) -> int:
        return ctypes.c_int64.from_address(self._slot_address(slot)).value
