"""`StanProgram`: a program without data, checked and compiled ahead; called with data it is a model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ulam.passes.units import density_unit
from ulam.runtime.arguments import chosen_level, profiling, read_source
from ulam.runtime.cached_compiler import CachedCompiler
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.data import DataSource
from ulam.runtime.externals import externals_of, forms, given
from ulam.runtime.interrupts import stoppable
from ulam.runtime.markup import markup
from ulam.runtime.model import StanModel
from ulam.runtime.named_text import NamedText
from ulam.runtime.names import GlobalVariable
from ulam.runtime.program import ProgramCode


class StanProgram:
    """A Stan program that was checked and compiled: `program(data)` is a `StanModel`, made in milliseconds.

    `source` is a path or the text of a program, as that of `StanModel`. What is compiled is kept in the cache, from
    which models have it; at level 4, which compiles for the data, it is the part that does not depend on them. So it is
    of large programs that have switches in their data: what they decide is compiled with the first data that have each.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | NamedText,
        *,
        opt_level: int | str | None = None,
        passes: str | None = None,
        include_paths: Sequence[str | os.PathLike[str]] = (),
        layouts: bool = True,
        external: Mapping[str, Any] | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.text, self.filename = read_source(source)
        self._arguments: dict[str, Any] = {
            "opt_level": opt_level, "passes": passes, "include_paths": tuple(include_paths), "layouts": layouts,
            "external": given(external),
        }  # fmt: skip
        paths = tuple(os.fspath(path) for path in include_paths)
        options = self._options = CompileOptions(
            include_paths=paths, profile=profiling(True), layouts=bool(layouts), pieces=True,
            externals=forms(self._arguments["external"]), **chosen_level(opt_level, passes),
        )  # fmt: skip
        externals = externals_of(options, self._arguments["external"])
        code = self._code = ProgramCode(CachedCompiler(self.text, self.filename, options), externals=externals)

        def work() -> list[GlobalVariable]:
            variables = [GlobalVariable.from_metadata(k, entry) for k, entry in enumerate(code.metadata()["globals"])]
            if not self._waits_for_data:
                code.unit(density_unit(1, True).name)
                code.unit("constrain")
            return variables

        self._variables = stoppable(work, time_limit)
        self.compile_seconds = code.seconds

    @property
    def _waits_for_data(self) -> bool:
        """Whether densities are compiled for data, or for values of the program's switches."""
        return self._options.wants_data or bool(self._code.metadata().get("switches"))

    def __call__(self, data: DataSource = None, **options: Any) -> StanModel:
        """The model with these data; `options` are those of `StanModel`."""
        source = NamedText(self.text, self.filename)
        return StanModel(source, data, **{**self._arguments, **options})

    def bridgestan_library(self) -> str:
        """The path of a shared library with BridgeStan's C interface, as `StanModel.bridgestan_library`."""

        def work() -> str:
            from ulam.runtime.libraries.bridgestan_library import library_of

            options = self._options
            return library_of(self.text, self.filename, options, None if self._waits_for_data else self._code)

        return stoppable(work)

    def declarations(self, block: str = "data") -> list[str]:
        """The variables of a block with their types, as `array[] int y`."""
        return [f"{variable.type} {variable.name}" for variable in self._variables if variable.block == block]

    def __repr__(self) -> str:
        return f"StanProgram({self.filename!r}, data: {', '.join(self.declarations()) or 'none'})"

    def _repr_html_(self) -> str:
        return f"<p>{markup(repr(self))}</p>\n<pre>{markup(self.text)}</pre>"
