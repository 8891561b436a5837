"""The dialects that programs and units are written in, each imported when the first of its names is read."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.ir import Dialect

# Name of the dialect: module and object.
OWN_DIALECTS: dict[str, str] = {
    "stan": "ulam.dialects.stan:STAN",
    "rt": "ulam.dialects.rt:RT",
    "ad": "ulam.dialects.ad:AD",
    "trace": "ulam.dialects.trace:TRACE",
}
DIALECTS: dict[str, str] = {
    "builtin": "xdsl.dialects.builtin:Builtin",
    "arith": "xdsl.dialects.arith:Arith",
    "func": "xdsl.dialects.func:Func",
    "scf": "xdsl.dialects.scf:Scf",
    **OWN_DIALECTS,
}


def load_dialect(name: str) -> Dialect:
    """The dialect of a name."""
    module, _, found = DIALECTS[name].partition(":")
    return getattr(import_module(module), found)
