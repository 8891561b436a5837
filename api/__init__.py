"""ulam compiles Stan programs to native code, in the process. `ulam.StanModel` is where to begin.

Names below are imported when first used: `import ulam` itself loads nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel as StanModel

__version__ = "0.1.0"

_HOMES = {
    "StanModel": "ulam.runtime.model",
}

__all__ = ["StanModel", "__version__"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ulam' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
