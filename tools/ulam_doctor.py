"""`ulam doctor`: versions, and whether each part that compiling needs works on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable

from ulam.runtime.results import seconds_text
from ulam.runtime.versions import version_lines
from ulam.tools.exits import EXIT_FAILURE, EXIT_OK

PROGRAM = "parameters { real x; }\nmodel { x ~ normal(1, 2); }\n"


class DoctorCommand:
    """The command, which has no arguments."""

    def run(self) -> int:
        """Prints the findings; fails if a part does not work."""
        for line in version_lines():
            print(line)
        healthy = True
        for name, examination in EXAMINATIONS.items():
            try:
                finding = examination()
            except Exception as error:  # whatever is wrong here is what the command is for
                healthy = False
                finding = f"FAILED: {type(error).__name__}: {error}"
            print(f"{name}: {finding}")
        return EXIT_OK if healthy else EXIT_FAILURE


def _processor() -> str:
    from ulam.emit.jit import host

    found = host()
    return f"{found.cpu} ({found.triple})"


def _c_runtime() -> str:
    from ulam.runtime.c_library import library, library_path

    return f"works, ABI {library().ulam_abi()} ({library_path()})"


def _compiler() -> str:
    from ulam.runtime.model import StanModel

    start = time.perf_counter()
    value, gradient = StanModel(PROGRAM, cache=False).log_density_gradient([3.0])  # pyright: ignore[reportArgumentType]
    if abs(value + 0.5) > 1e-12 or abs(gradient[0] + 0.5) > 1e-12:
        raise ArithmeticError(f"a normal density came out as {value} with gradient {gradient[0]}, not -0.5 and -0.5")
    return f"works, {seconds_text(time.perf_counter() - start)} for a small program"


def _cache() -> str:
    from ulam.emit.object_cache import LIMIT_VARIABLE, ObjectCache

    cache = ObjectCache()
    files, size = cache.size()
    held = f"{files} files, {size / 2**20:.1f} of at most {cache.limit / 2**20:.0f} MiB ({LIMIT_VARIABLE})"
    return f"works, {held}, in {cache.folder}"


EXAMINATIONS: dict[str, Callable[[], str]] = {
    "Processor": _processor,
    "C runtime": _c_runtime,
    "Compiler": _compiler,
    "Cache": _cache,
}
