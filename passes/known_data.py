"""What is known of a program's variables once its data are bound: what level 4 specialises a program on.

    with specializing_on(known):
        ...run passes...

The pass `specialize-data` asks for `data_to_specialize_on()`: None if nobody gave any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any

from ulam.library.records import record


@record(frozen=True)
class KnownData:
    """Values and sizes of global variables; of a tuple `t`, each field is one: `t.1`, `t.2.1`.

    `values`: of data and transformed data, as NumPy arrays of the variable's own shape. `dims`: sizes, of these and of
    parameters, transformed parameters and generated quantities.
    """

    values: Mapping[str, Any]
    dims: Mapping[str, tuple[int, ...]]

    @cached_property
    def digest(self) -> str:
        """Changes with every value and size."""
        from ulam.library.digests import sha256

        found = sha256()
        for name, value in self.values.items():
            found.update(f"{name} {value.dtype} {value.shape} ".encode() + value.tobytes())
        found.update(repr(sorted(self.dims.items())).encode())
        return found.hexdigest()


_given: ContextVar[KnownData | None] = ContextVar("known_data", default=None)


def data_to_specialize_on() -> KnownData | None:
    """What passes may take for known."""
    return _given.get()


@contextmanager
def specializing_on(known: KnownData | None) -> Iterator[None]:
    """Passes that run inside may take these data for known."""
    token = _given.set(known)
    try:
        yield
    finally:
        _given.reset(token)
