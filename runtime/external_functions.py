"""External functions that a user gives: `ulam.external`, and how compiled code finds them.

Compiled code has the name of a kernel for each (`library/externals.py`), never an address: who loads it asks
`Externals` for that. A Python function gets a C function around it that makes arrays of the pointers, and notes what it
raises; whoever reports the error of the call puts that beside it.
"""

from __future__ import annotations

import ctypes
import hashlib
import inspect
import math
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ulam.library.externals import (
    SYMBOL,
    ExternalArgument,
    ExternalForm,
    ExternalFunction,
    external_function,
    is_pullback,
)
from ulam.library.own_libraries import external_of
from ulam.library.records import record
from ulam.library.statuses import FATAL, OK, REJECTION
from ulam.runtime.c_library import library
from ulam.runtime.errors import ArgumentError, Rejection
from ulam.runtime.external_errors import note_exception

Shape = str | int | Sequence[str | int]
_SYMBOLS = re.compile(rb"(?<=\0)ulam_external(?:_pullback)?\$[\w$]+(?=\0)")
_INTERRUPT = 1  # ULAM_STOP_INTERRUPT of c/interrupts.h


@record(frozen=True)
class External:
    """A function that is given, made by `ulam.external`."""

    function: Any
    pullback: Any = None
    shape: tuple[str, ...] = ()
    version: str = ""

    def form(self, name: str) -> ExternalForm:
        """What the compiler is told of it."""
        identity = "; ".join(filter(None, (self.version, *map(_identity, (self.function, self.pullback)))))
        return ExternalForm(name, self.pullback is not None, self.shape, identity)


def external(function: Any, pullback: Any = None, *, shape: Shape = (), version: str = "") -> External:
    """A function for a program that declares it without a body: `StanModel(..., external={"f": ulam.external(f)})`.

    `function`: a Python function; `"lib.so:symbol"`, a C function of a shared library; a ctypes function, a `cfunc` of
    Numba, or an address. `pullback`: the same for its derivative, the function of its arguments and the adjoint of its
    result that gives the adjoints of its arguments of reals; without one, arguments that depend on parameters are
    errors.
    `shape`: the sizes of a result that is no scalar: the name of an argument that is as large, or for each size a
    number, an int argument, or `"size(x)"`, `"rows(x)"`, `"cols(x)"`, `"dims(x)[1]"` of an argument `x`. `version` goes
    into the key of cached code, with what can be told of the function itself.

    A Python function takes floats, ints and arrays that it must not change; its pullback returns a tuple of adjoints,
    or the only one. C functions: `docs/extending.md` has their arguments. Functions must depend on nothing but their
    arguments: they are called as often as compiled code likes, from any thread.
    """
    for part in (function, pullback):
        if part is not None:
            _check_part(part)
    sizes = (shape,) if isinstance(shape, str | int) else tuple(shape)
    return External(function, pullback, tuple(map(str, sizes)), str(version))


def _check_part(part: Any) -> None:
    if isinstance(part, str):
        _symbol(part)
    elif (address := _address_of(part)) is not None:
        if address <= 0:
            raise ArgumentError(f"an external function has an address that is none: {address}")
    elif not callable(part):
        raise ArgumentError(
            "an external function is a Python function, a C function as 'lib.so:symbol', a ctypes function, a cfunc "
            f"of Numba or an address, not {type(part).__name__}"
        )



# ---------------------------------------------------------------- what a function is


def _symbol(text: str) -> tuple[str, str]:
    path, colon, symbol = text.rpartition(":")
    if not colon or not symbol.isidentifier():
        raise ArgumentError(f"'{text}' is no C function: write FILE.so:SYMBOL")
    return path, symbol


def _address_of(part: Any) -> int | None:
    """The address of a function that is compiled; None of a Python function."""
    if isinstance(part, int) and not isinstance(part, bool):
        return part
    if isinstance(part, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return ctypes.cast(part, ctypes.c_void_p).value or 0
    address = getattr(part, "address", None)  # of Numba's cfunc
    return address if isinstance(address, int) else None


def _identity(part: Any) -> str:
    """What can be told of a function for the key of cached code, which never has its address."""
    if part is None:
        return ""
    if isinstance(part, str):
        path, symbol = _symbol(part)
        return f"{symbol} {_file_digest(path)}"
    code = getattr(part, "__code__", None)
    if code is None:
        return f"{type(part).__module__}.{type(part).__qualname__} {getattr(part, '__name__', '')}"
    return f"{part.__module__}.{part.__qualname__} {_code_digest(code)}"


def _file_digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return "not read"  # the linker's search finds it, or the message says that it is not there


def _code_digest(code: Any) -> str:
    digest = hashlib.sha256(code.co_code)
    for constant in code.co_consts:
        digest.update((_code_digest(constant) if inspect.iscode(constant) else repr(constant)).encode())
    digest.update(repr(code.co_names).encode())
    return digest.hexdigest()


@cache
def _opened(path: str) -> ctypes.CDLL:
    # A name without a folder is looked for as the system does; one with a folder is that file.
    return ctypes.CDLL(os.path.abspath(path) if os.path.exists(path) else path or None)


def _linked(name: str, text: str) -> int:
    """The address of a C function of a shared library."""
    path, symbol = _symbol(text)
    try:
        address = ctypes.cast(_opened(path)[symbol], ctypes.c_void_p).value
    except OSError as error:
        raise ArgumentError(f"the external function '{name}': '{path}' cannot be opened: {error}") from None
    except AttributeError:
        raise ArgumentError(f"the external function '{name}': '{path}' has no function '{symbol}'") from None
    assert address is not None
    return address


# ---------------------------------------------------------------- for compiled code


class Externals:
    """The external functions of a program, for code that is loaded. Lives as long as that."""

    def __init__(self, functions: Mapping[str, External]) -> None:
        self.functions = dict(functions)
        self._addresses: dict[str, int] = {}
        self._kept: list[Any] = []
        self._lock = threading.Lock()

    def addresses(self, code: bytes) -> dict[str, int]:
        """Where the functions are that object code calls, by the symbols that it has for them."""
        symbols = {symbol.decode() for symbol in _SYMBOLS.findall(code)}
        return {symbol: self._address(symbol) for symbol in sorted(symbols)}

    def c_functions(self, code: Iterable[bytes]) -> tuple[dict[str, str], list[str]]:
        """For a library of its own: kernel → symbol of the C function, and the shared libraries that have these.

        Raises ArgumentError for a function that is not in one.
        """
        kernels = {found.decode().removeprefix(SYMBOL) for part in code for found in _SYMBOLS.findall(part)}
        symbols: dict[str, str] = {}
        files: dict[str, None] = {}
        for kernel in sorted(kernels):
            name = external_function(kernel).name
            part = self._part(kernel)
            if not isinstance(part, str):
                raise ArgumentError(
                    f"a built library cannot have the external function '{name}', which lives in this process: give a "
                    "C function of a shared library, 'lib.so:symbol'"
                )
            _linked(name, part)  # raises if there is none
            path, symbols[kernel] = _symbol(part)
            if not os.path.exists(path):
                raise ArgumentError(f"the external function '{name}': there is no file '{path}' to link against")
            files[os.path.realpath(path)] = None
        return symbols, list(files)

    def _part(self, kernel: str) -> Any:
        """What was given for a kernel: the function, or its pullback."""
        name = external_function(kernel).name
        external = self.functions.get(name) or external_of(name)
        if external is None:
            raise ArgumentError(
                f"the program calls the external function '{name}', which was not given: "
                f"StanModel(..., external={{'{name}': ulam.external(...)}})"
            )
        return external.pullback if is_pullback(kernel) else external.function

    def _address(self, symbol: str) -> int:
        with self._lock:
            found = self._addresses.get(symbol)
            if found is None:
                found = self._addresses[symbol] = self._made(symbol.removeprefix(SYMBOL))
        return found

    def _made(self, kernel: str) -> int:
        declared, part = external_function(kernel), self._part(kernel)
        if isinstance(part, str):
            return _linked(declared.name, part)
        address = _address_of(part)
        if address is None:
            called = _PythonFunction(declared, part, is_pullback(kernel))
            part, address = called, called.address
        self._kept.append(part)
        return address

class _PythonFunction:
    """A Python function, or pullback, as a C function."""

    def __init__(self, declared: ExternalFunction, function: Callable[..., Any], pullback: bool) -> None:
        self._declared, self._function, self._pullback = declared, function, pullback
        self._inputs = [*declared.arguments, declared.result] if pullback else list(declared.arguments)
        types = [t for a in self._inputs for t in _types(a)]
        if pullback:
            types += [ctypes.c_void_p] * len(declared.adjoints)
        else:
            types += [ctypes.c_void_p, *[ctypes.c_int64] * declared.result.rank]
        self._callback = ctypes.CFUNCTYPE(ctypes.c_int, *types)(self._called)
        address = ctypes.cast(self._callback, ctypes.c_void_p).value
        assert address is not None
        self.address = address

    def _called(self, *passed: Any) -> int:
        try:
            rest = list(passed)
            arguments = [_taken(a, rest) for a in self._inputs]
            made = self._function(*arguments)
            if self._pullback:
                self._give_adjoints(made, arguments, rest)
            else:
                target, *dims = rest
                _write(target, made, self._declared.result, dims, "the result")
            return OK
        except BaseException as error:  # none may pass through C
            return self._failed(error)

    def _give_adjoints(self, made: Any, arguments: list[Any], targets: list[Any]) -> None:
        positions = self._declared.adjoints
        several = isinstance(made, tuple)
        if not several and len(positions) == 1:
            made, several = (made,), True
        if not several or len(made) != len(positions):
            found = f"{len(made)}" if several else type(made).__name__
            raise TypeError(f"the pullback returns a tuple of {len(positions)} adjoints, not {found}")
        for n, target, adjoint in zip(positions, targets, made, strict=True):
            what = f"the adjoint of argument {n + 1}"
            _write(target, adjoint, self._declared.arguments[n], np.shape(arguments[n]), what)

    def _failed(self, error: BaseException) -> int:
        if isinstance(error, KeyboardInterrupt):  # carried out when we are back in compiled code
            library().ulam_thread_stop(library().ulam_thread_handle(), _INTERRUPT)
        told = f"{type(error).__name__}: {error}" if not isinstance(error, Rejection) else str(error)
        told = told[:400]
        note_exception(f"{self._declared.name}: {told}", error)
        library().ulam_external_say(told.encode(errors="replace"))
        return REJECTION if isinstance(error, Rejection) else FATAL


def _types(argument: ExternalArgument) -> list[Any]:
    """The C types of an argument."""
    if not argument.rank:
        return [ctypes.c_int if argument.is_int else ctypes.c_double]
    return [ctypes.c_void_p, *[ctypes.c_int64] * argument.rank]


def _taken(argument: ExternalArgument, rest: list[Any]) -> Any:
    """The next argument, as Python sees it."""
    first = rest.pop(0)
    if not argument.rank:
        return first
    dims = [rest.pop(0) for _ in range(argument.rank)]
    array = _view(first, argument, dims)
    array.flags.writeable = False
    return array


def _view(address: int | None, argument: ExternalArgument, dims: Sequence[int]) -> np.ndarray[Any, Any]:
    """The elements of a container of compiled code, as an array of its sizes."""
    kind, dtype = (ctypes.c_int32, np.int32) if argument.is_int else (ctypes.c_double, np.float64)
    count = math.prod(dims)
    if not count or address is None:
        return np.empty(dims, dtype)
    memory: Any = (kind * count).from_address(address)
    flat = np.frombuffer(memory, dtype)
    if not argument.is_matrix:
        return flat.reshape(dims)
    return flat.reshape(*dims[:-2], dims[-1], dims[-2]).swapaxes(-1, -2)


def _write(target: int, made: Any, argument: ExternalArgument, dims: Sequence[int], what: str) -> None:
    """Puts a result where compiled code wants it."""
    array = np.asarray(made)
    if array.shape != tuple(dims):
        if dims or array.size != 1:
            raise ValueError(f"{what} has shape {array.shape}, but must have {tuple(dims)}")
        array = array.reshape(())
    if argument.is_int and array.dtype.kind not in "iub":
        raise TypeError(f"{what} has values of type {array.dtype}, but must have ints")
    if not dims:
        kind = ctypes.c_int32 if argument.is_int else ctypes.c_double
        kind.from_address(target).value = array.item()
    elif array.size:
        _view(target, argument, dims)[...] = array
