"""A plugin for pytest: programs of a folder as libraries of this process, under the names that BridgeStan gives them.

`ULAM_TEST_MODELS` is the folder, which has `NAME/NAME.stan`. Used by client_suites.py.
"""

from __future__ import annotations

import os
from pathlib import Path

from ulam.runtime.compiler import CompileOptions
from ulam.runtime.data import read_data
from ulam.runtime.errors import CompileError
from ulam.runtime.libraries.bridgestan_library import library_of
from ulam.runtime.model import Recipe


def pytest_configure() -> None:
    for program in sorted(Path(os.environ["ULAM_TEST_MODELS"]).glob("*/*.stan")):
        text = program.read_text(encoding="utf-8")
        recipe = Recipe(text, str(program), read_data(None), 1, True, CompileOptions(), True)
        try:
            # another name of the same file is the same library
            os.link(library_of(recipe), program.with_name(f"{program.stem}_model.so"))
        except CompileError as error:
            print(f"{program.name}: not compiled: {str(error).splitlines()[0]}")
