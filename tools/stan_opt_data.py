"""`stan-opt --data`: what a program's data make known to its passes, `specialize-data` above all."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ulam.passes.known_data import KnownData
    from ulam.runtime.named_text import NamedText

SEED = 1234  # of transformed data that draw random numbers; what depends on these is not taken for known


def known_data(text: str, name: str, data: str | NamedText | None, include_paths: Sequence[str]) -> KnownData:
    """Binds the data of a program, as `StanModel` does. What transformed data print goes to standard error.

    Raises UlamError and OSError for what is wrong with program or data.
    """
    from ulam.runtime.compile_options import CompileOptions
    from ulam.runtime.compiler import Compiler
    from ulam.runtime.data import read_data
    from ulam.runtime.native import Rng
    from ulam.runtime.program import BoundProgram

    values = read_data(data)
    compiler = Compiler(text, name, CompileOptions(0, tuple(include_paths)))

    def show(printed: str) -> None:
        print(printed, end="", file=sys.stderr)

    return BoundProgram(compiler, values, partial(Rng, SEED), show).known_data()
