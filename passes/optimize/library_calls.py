"""How passes write calls of library functions: the one door from the passes to the frontend.

Which overload a call means, what it returns, and the definition in library/*.stan, are the frontend's knowledge, and
passes import dialects only. So the frontend's module is imported here by name, when a pass first needs it: it is then
there under `stan-opt`, which may have read MLIR, as well as under the runtime's compiler, with nothing to register.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ulam.dialects import stan
    from ulam.frontend.functions.library_calls import LibraryDefinitions


@cache
def types() -> Any:
    """`call_types`, `binary_types` and `unary_type` of `frontend.library_calls`."""
    return import_module("ulam.frontend.functions.library_calls")


def definitions(program: stan.ProgramOp) -> LibraryDefinitions:
    """The definitions of library functions in a program; asking for one adds it."""
    return types().LibraryDefinitions(program)
