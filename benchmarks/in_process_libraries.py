"""A plugin for pytest: programs of a folder as libraries of this process, under the names that BridgeStan gives them.

`ULAM_TEST_MODELS` is the folder, which has `NAME/NAME.stan`. Used by client_suites.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import ulam


def pytest_configure() -> None:
    for program in sorted(Path(os.environ["ULAM_TEST_MODELS"]).glob("*/*.stan")):
        try:
            # another name of the same file is the same library
            os.link(ulam.StanProgram(program).bridgestan_library(), program.with_name(f"{program.stem}_model.so"))
        except ulam.CompileError as error:
            print(f"{program.name}: not compiled: {str(error).splitlines()[0]}")
