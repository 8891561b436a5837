"""C functions called in another process, which may be one of another processor under emulation.

with Remote([str(driver)]) as remote:
    remote.open(library)
    x = remote.copy(np.ones(3))
    remote.call("ulam_sort_asc", 0, x, 3, y, order)
    remote.read(y, np.zeros(3))
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DRIVER = Path(__file__).with_suffix(".c")

_OPEN, _SYMBOL, _ALLOCATE, _WRITE, _READ, _CALL, _GENERATOR = range(7)
_INTEGERS, _REALS = 32, 8


def build_driver(compiler: str, folder: Path) -> Path:
    """The program that makes the calls."""
    made = folder / "remote_calls"
    subprocess.run([compiler, "-O1", "-std=gnu11", "-o", str(made), str(DRIVER), "-ldl"], check=True)
    return made


class Remote:
    """A process that makes calls. Addresses are numbers, and belong to that process."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._handles: list[int] = []
        self._symbols: dict[str, int] = {}

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def _send(self, command: int, *numbers: int, data: bytes = b"") -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(struct.pack(f"<q{len(numbers)}q", command, *numbers) + data)
        self._process.stdin.flush()

    def _take(self, count: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(count)
        assert len(data) == count, f"the process ended with {self._process.wait()}"
        return data

    def _number(self) -> int:
        return struct.unpack("<q", self._take(8))[0]

    def open(self, library: Path) -> None:
        """Makes the functions of a shared library known, those of a later one first."""
        path = str(library).encode()
        self._send(_OPEN, len(path), data=path)
        handle = self._number()
        assert handle, f"{library} cannot be opened"
        self._handles.insert(0, handle)
        self._symbols.clear()

    def symbol(self, name: str) -> int:
        """The address of a function."""
        for handle in self._handles if name not in self._symbols else ():
            self._send(_SYMBOL, handle, len(name), data=name.encode())
            if address := self._number():
                self._symbols[name] = address
                break
        return self._symbols[name]

    def allocate(self, count: int) -> int:
        """Bytes that are 0."""
        self._send(_ALLOCATE, count)
        return self._number()

    def write(self, address: int, data: bytes) -> None:
        """Sets memory."""
        self._send(_WRITE, address, len(data), data=data)

    def copy(self, array: NDArray[Any]) -> int:
        """The address of a copy of the array's elements."""
        address = self.allocate(array.nbytes)
        self.write(address, array.tobytes())
        return address

    def read(self, address: int, like: NDArray[Any]) -> NDArray[Any]:
        """The elements there, of the type and number of those of `like`."""
        self._send(_READ, address, like.nbytes)
        return np.frombuffer(self._take(like.nbytes), like.dtype).reshape(like.shape).copy()

    def generator(self, seed: int) -> int:
        """A random bit generator."""
        self._send(_GENERATOR, seed)
        return self._number()

    def _call(self, function: str | int, real: bool, arguments: Sequence[int | float]) -> bytes:
        address = function if isinstance(function, int) else self.symbol(function)
        integers = [a for a in arguments if isinstance(a, int)]
        reals = [a for a in arguments if not isinstance(a, int)]
        assert len(integers) <= _INTEGERS and len(reals) <= _REALS
        integers += [0] * (_INTEGERS - len(integers))
        reals += [0.0] * (_REALS - len(reals))
        self._send(_CALL, address, real, data=struct.pack(f"<{_INTEGERS}q{_REALS}d", *integers, *reals))
        return self._take(8)

    def call(self, function: str | int, *arguments: int | float) -> int:
        """What a function of int32 result returns; ints stand for integers and pointers, floats for doubles."""
        return struct.unpack("<i4x", self._call(function, False, arguments))[0]

    def call_pointer(self, function: str | int, *arguments: int | float) -> int:
        """The same for a function that returns a pointer."""
        return struct.unpack("<q", self._call(function, False, arguments))[0]

    def call_real(self, function: str | int, *arguments: int | float) -> float:
        """The same for a function that returns a double."""
        return struct.unpack("<d", self._call(function, True, arguments))[0]
