"""The external functions that a model is given, for those who make models; what there is to do for them is imported
when there are some (`external_functions`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ulam.library.externals import ExternalForm
    from ulam.runtime.compile_options import CompileOptions
    from ulam.runtime.external_functions import External, Externals


def given(functions: Mapping[str, Any] | None) -> dict[str, External]:
    """The argument `external` of models: what is no `External` stands for `ulam.external` of it."""
    if not functions:
        return {}
    from ulam.runtime.external_functions import External, external

    return {name: f if isinstance(f, External) else external(f) for name, f in functions.items()}


def forms(functions: Mapping[str, External]) -> tuple[ExternalForm, ...]:
    """What the compiler is told of them, in the order of their names."""
    return tuple(functions[name].form(name) for name in sorted(functions))


def externals_of(options: CompileOptions, functions: Mapping[str, External]) -> Externals | None:
    """The external functions for code that is compiled with these options; None if it has none."""
    if not options.externals:
        return None
    from ulam.runtime.external_functions import Externals

    return Externals(functions)


def register_library(
    name: str, folder: str | os.PathLike[str] | None = None, *, external: Mapping[str, Any] | None = None,
    version: str = "",
) -> None:  # fmt: skip
    """Makes the functions of a library known to all programs of this process.

    `folder`: the one with the `.stan` files of its definitions. `external`: external functions by name
    (`ulam.external`), for what these files, or programs, declare without a body. A library of that name that was
    registered before goes, and files that were read are read again.
    """
    from ulam.library.own_libraries import StanLibrary, register

    place = None if folder is None else os.path.abspath(folder)
    register(name, StanLibrary(place, given(external), version))
