"""What code is made for, without LLVM where the cache knows what LLVM said: the key of an entry has it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ulam.emit.target import NATIVE, Host, chosen, named
from ulam.library.collector import without_collector
from ulam.library.digests import sha256

if TYPE_CHECKING:
    from ulam.emit.object_cache import ObjectCache


def target(name: str, cache: ObjectCache | None, processor: bytes, llvm: str) -> Host:
    """As `jit.target`. `processor` is what the processor says of itself, and `llvm` changes with LLVM's version."""
    if cache is None or not processor or "ulam.emit.jit" in sys.modules:
        from ulam.emit import jit

        return jit.target(name)
    host = chosen(_machine(cache, processor, llvm))
    return host if name == NATIVE else named(host, name)


def _machine(cache: ObjectCache, processor: bytes, llvm: str) -> Host:
    key = sha256(b"\0".join([b"host", processor, llvm.encode(), sys.platform.encode()])).hexdigest()
    entry = cache.get(key)
    match entry.metadata if entry is not None else None:
        case {"triple": str(triple), "cpu": str(cpu), "features": str(features)}:
            return Host(triple, cpu, features)
        case _:
            with without_collector():
                from ulam.emit import jit

            found = jit.machine()
            cache.put(key, {"triple": found.triple, "cpu": found.cpu, "features": found.features}, {})
            return found
