"""SHA-256 without OpenSSL, which `hashlib` loads for it: 3 ms of a start that finds its program in the cache.

Python has the algorithm itself, under a name that depends on its version, and takes it from there in `random`, too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import sha256 as sha256
else:
    for _home in ("_sha2", "_sha256", "hashlib"):
        try:
            sha256 = import_module(_home).sha256
        except ImportError:
            continue
        break
