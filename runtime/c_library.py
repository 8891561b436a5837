"""The shared library of the C runtime: finding and opening it, the prototypes of its functions.

Cheap to import; the library is opened at first use.
"""

from __future__ import annotations

import ctypes
import os
import threading
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

STOP_INTERRUPT, STOP_TIME = 1, 2
"""Why (c/interrupts.h)."""

ABI = 3
"""As ULAM_ABI in c/context.h: the layout of a context and the meaning of kernels. Part of the key of cached objects."""

PrintSink = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)

_POINTER, _I32, _I64, _U64, _NOTHING = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64, None
_F64 = ctypes.c_double
_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ulam_abi": (_I32, ()),
    "ulam_processor": (_I64, (_POINTER, _I64)),
    "ulam_context_new": (_POINTER, (_I64,)),
    "ulam_context_free": (_NOTHING, (_POINTER,)),
    "ulam_context_bytes": (_I64, (_POINTER,)),
    "ulam_context_stoppable": (_NOTHING, (_POINTER,)),
    "ulam_machine_bytes": (_I64, ()),
    "ulam_available_bytes": (_I64, ()),
    "ulam_bound_memory_new": (_POINTER, ()),
    "ulam_bound_memory_free": (_NOTHING, (_POINTER,)),
    "ulam_bound_memory_alloc": (_POINTER, (_POINTER, _I64)),
    "ulam_message": (ctypes.c_char_p, (_POINTER,)),
    "ulam_run_plain": (_I32, (_POINTER, _POINTER, _POINTER)),
    "ulam_run_bind": (_I32, (_POINTER, _POINTER, _POINTER, _POINTER)),
    "ulam_run_dims": (_I32, (_POINTER, _POINTER, _POINTER, _I64, _POINTER)),
    "ulam_run_value": (_I32, (_POINTER, _POINTER, _POINTER, _POINTER, _I32)),
    "ulam_run_gradient": (_I32, (_POINTER, _POINTER, _POINTER, _POINTER, _POINTER, _I32)),
    "ulam_repeat_gradient": (_I32, (*[_POINTER] * 5, _I32, _I64)),
    "ulam_run_hessian_vector": (_I32, (*[_POINTER] * 7, _I32)),
    "ulam_run_hessian": (_I32, (*[_POINTER] * 4, _I64, *[_POINTER] * 3, _I32)),
    "ulam_run_constrain": (_I32, (_POINTER, _POINTER, _POINTER, _POINTER, _POINTER, _I32, _I32)),
    "ulam_run_unconstrain": (_I32, (_POINTER, _POINTER, _POINTER, _POINTER, _POINTER)),
    "ulam_profile_attach": (_I32, (_POINTER, _I64)),
    "ulam_profile_set_phase": (_NOTHING, (_POINTER, _I32)),
    "ulam_profile_reset": (_NOTHING, (_POINTER,)),
    "ulam_profile_rows": (_I64, (_POINTER, _POINTER, _I64)),
    "ulam_profile_events": (_I64, (_POINTER, _POINTER, _I64)),
    "ulam_profile_overhead": (_NOTHING, (_POINTER, _POINTER, _POINTER)),
    "ulam_scope_depth": (_I32, ()),
    "ulam_scope_enter": (_I32, (_I64,)),
    "ulam_scope_leave": (_NOTHING, (_I32,)),
    "ulam_stop_reasons": (_I32, ()),
    "ulam_stop_take": (_I32, ()),
    "ulam_thread_handle": (_POINTER, ()),
    "ulam_thread_stop": (_NOTHING, (_POINTER, _I32)),
    "ulam_hold": (_I32, (_I32,)),
    "ulam_deliver": (_I32, ()),
    "ulam_end_on_second": (_NOTHING, (_I32,)),
    "ulam_python": (_NOTHING, (_U64, *[_POINTER] * 4)),
    "ulam_ticks": (_I64, ()),
    "ulam_seconds_per_tick": (_F64, ()),
    "ulam_sampler_add": (_I32, (_U64, _U64)),
    "ulam_sampler_remove": (_NOTHING, (_U64,)),
    "ulam_sampler_ranges": (_I32, ()),
    "ulam_sampler_start": (_I32, (_I64,)),
    "ulam_sampler_stop": (_NOTHING, ()),
    "ulam_sampler_read": (_I64, (_POINTER, _I64, _POINTER)),
    "ulam_debugger_register": (_POINTER, (ctypes.c_char_p, _I64)),
    "ulam_debugger_unregister": (_NOTHING, (_POINTER,)),
    "ulam_seed_words": (_NOTHING, (_POINTER, _I64, _POINTER)),
    "ulam_uniform_numbers": (_NOTHING, (_POINTER, _F64, _F64, _I64, _POINTER)),
    "ulam_normal_quantiles": (_NOTHING, (_POINTER, _POINTER, _I64)),
    "ulam_csv_rows": (_I64, (_POINTER, _I64, _I64, _POINTER)),
    "ulam_beta_quantile": (_F64, (_F64, _F64, _F64)),
    "ulam_external_say": (_NOTHING, (ctypes.c_char_p,)),
    "ulam_native_handle_new": (_POINTER, (_I64, _I32, *[_POINTER] * 4)),
    "ulam_native_fatal_point": (_POINTER, (_POINTER,)),
    "ulam_native_handle_free": (_NOTHING, (_POINTER,)),
    "ulam_native_handle_add": (_NOTHING, (_POINTER, _I32, _POINTER, _POINTER)),
    "ulam_native_points": (ctypes.c_int, (_POINTER, _I32, _POINTER)),
    "ulam_xla_version": (_NOTHING, (_I32,)),
    "ulam_native_handle_ticket": (_I64, (_POINTER,)),
    "ulam_chain_new": (_POINTER, (*[_POINTER] * 7,)),
    "ulam_chain_free": (_NOTHING, (_POINTER,)),
    "ulam_chain_look": (_POINTER, (_POINTER,)),
    "ulam_chain_problem": (ctypes.c_char_p, (_I32,)),
    "ulam_chain_run": (_I32, (_POINTER, _POINTER)),
    "ulam_chain_metric": (_NOTHING, (_POINTER, _POINTER)),
    "ulam_try_leapfrog": (_I32, (*[_POINTER] * 3, _I64, _I64, _POINTER, _F64, _I64, *[_POINTER] * 3)),
    "ulam_try_turns": (_I64, (_I64, _I64, _POINTER, _POINTER)),
    "ulam_try_metric": (_I32, (*[_I64] * 3, _POINTER, _POINTER)),
    "ulam_try_generator": (_NOTHING, (_POINTER, _U64, _I64, _POINTER, _POINTER)),
    "ulam_try_values": (_I32, (*[ctypes.c_char_p] * 2, _POINTER, _I64, *[_POINTER] * 3, _I64)),
    "ulam_dual_averaging_restart": (_NOTHING, (_POINTER, _F64)),
    "ulam_dual_averaging_learn": (_F64, (_POINTER, _F64)),
    "ulam_dual_averaging_mean": (_F64, (_POINTER,)),
    "ulam_windows_begin": (_NOTHING, (_POINTER, *[_I64] * 4)),
    "ulam_windows_at": (_I32, (_POINTER, _I64)),
    "ulam_draw_quantities": (_I32, (*[_POINTER] * 4, *[_I64] * 3, *[_POINTER] * 4)),
    "ulam_set_print_sink": (_NOTHING, (_POINTER, PrintSink)),
    "ulam_text_say": (_NOTHING, (_POINTER, ctypes.c_char_p)),
    "ulam_output": (_POINTER, (_POINTER,)),
    "ulam_clear_output": (_NOTHING, (_POINTER,)),
}


RUNTIME_VARIABLE = "ULAM_RUNTIME"
"""Environment variable: the file of the C runtime to use instead of the package's own, such as one with guard pages."""


def library_path() -> Path:
    """The shared library of the C runtime, built with the package."""
    from pathlib import Path

    return Path(_library_file())


@cache
def _library_file() -> str:
    from fnmatch import filter as matching
    from importlib.machinery import EXTENSION_SUFFIXES

    if (other := os.environ.get(RUNTIME_VARIABLE)) is not None:
        return other

    import ulam.runtime

    # The one that installation builds for every Python first: a checkout may hold older ones.
    for pattern in ("_rt.abi3.so", f"_rt{EXTENSION_SUFFIXES[0]}", "_rt*.so", "_rt*.dylib", "_rt*.pyd"):
        for folder in ulam.runtime.__path__:
            for name in sorted(matching(os.listdir(folder), pattern)):
                return os.path.join(folder, name)
    raise ImportError("the C runtime of ulam is not built: install the package with `pip install .`")


@cache
def library() -> ctypes.CDLL:
    """The C runtime, with the prototypes of its functions for Python set."""
    loaded = ctypes.CDLL(_library_file())
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    if loaded.ulam_abi() != ABI:
        raise ImportError(f"{library_path()} is of another version of ulam: install the package again")
    names = ("PyGILState_Ensure", "PyGILState_Release", "PyOS_InterruptOccurred", "PyErr_SetInterrupt")
    functions = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p) for name in names]
    loaded.ulam_python(threading.main_thread().ident, *functions)
    return loaded


def freed_by(function: str, address: int) -> object:
    """What calls a function of the C runtime with the address when nobody refers to it, without any Python code.

    An interrupt that comes while `__del__` runs is lost: Python tells it to nobody.
    """
    from ulam.runtime._calls import owned

    return owned(address, _address_in_runtime(function))


@cache
def _address_in_runtime(name: str) -> int:
    found = ctypes.cast(getattr(library(), name), ctypes.c_void_p).value
    assert found is not None
    return found


def address_of(name: str) -> int | None:
    """Where a function is that compiled programs call: of the C runtime, of libm, of the process; None: nowhere."""
    for place in (library(), _process()):
        try:
            return ctypes.cast(place[name], ctypes.c_void_p).value
        except AttributeError:
            continue
    return None


@cache
def _process() -> ctypes.CDLL:
    """What is loaded into this process, libm too."""
    with suppress(OSError):  # elsewhere the C library has its functions
        ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(None)


_PROCESSOR_NUMBERS = 64


def processor_numbers() -> bytes:
    """What the processor says of itself; empty where nothing is known."""
    words = (ctypes.c_uint32 * _PROCESSOR_NUMBERS)()
    count = library().ulam_processor(ctypes.addressof(words), _PROCESSOR_NUMBERS)
    return bytes(words)[: 4 * count] if count <= _PROCESSOR_NUMBERS else b""


def exact_blocks() -> bool:
    """Whether code is to be emitted for a runtime that gives each block pages of its own (c/guard_pages.h)."""
    loaded = library()
    return hasattr(loaded, "ulam_guard_whole_lines") and not loaded.ulam_guard_whole_lines()


def machine_bytes() -> int:
    """Memory and swap space of this machine, or what this process may have of them."""
    return library().ulam_machine_bytes()


def available_bytes() -> int:
    """What of it is free."""
    return library().ulam_available_bytes()
