"""`ulam.h` over ctypes: its structures and their defaults are read from the header itself."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import numpy as np
from bridgestan_client import BridgeStanClient, ClientError

from ulam.runtime.libraries.archive import get_include

KINDS = {"size_t": ctypes.c_size_t, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
         "double": ctypes.c_double}  # fmt: skip
STATISTICS = ("lp", "accept_stat", "stepsize", "treedepth", "n_leapfrog", "divergent", "energy")
"""In the header's order."""


def header(name: str) -> str:
    """The text of a header, without comments."""
    return re.sub(r"/\*.*?\*/", "", Path(get_include(), name).read_text(), flags=re.DOTALL)


def _structure(name: str) -> Any:
    """A structure of the header."""
    bodies = re.findall(r"typedef struct \{([^}]*)\} (\w+);", header("ulam.h"))
    fields: list[tuple[str, Any]] = []
    for declaration in next(body for body, found in bodies if found == name).split(";"):
        words = declaration.strip().removeprefix("const ")
        if not words:
            continue
        kind, _, names = words.partition(" ")
        if "(*callback)" in words:
            fields.append(("callback", ctypes.c_void_p))
            continue
        for field in names.split(","):
            pointer = "*" in field
            fields.append((field.strip(" *"), ctypes.c_void_p if pointer else KINDS[kind]))
    return type(name, (ctypes.Structure,), {"_fields_": fields})


CONSTANTS: dict[str, int] = {}
for _body in re.findall(r"enum \{([^}]*)\}", header("ulam.h")):
    _next = 0
    for _entry in filter(str.strip, _body.split(",")):
        _name, _, _value = _entry.partition("=")
        CONSTANTS[_name.strip()] = _next = int(_value) if _value else _next
        _next += 1

Options, Output, Draw = (_structure(f"ulam_{name}") for name in ("sample_options", "sample_output", "draw"))
Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Draw), ctypes.c_void_p)
Gradient = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, *[ctypes.c_void_p] * 4)


def initialized(structure: Any, macro: str) -> Any:
    """A structure with the values of its macro."""
    found = re.search(rf"#define {macro}\s+\\?\s*\{{(.*?)\}}", header("ulam.h").replace("\\\n", ""), re.DOTALL)
    assert found is not None
    values: list[Any] = []
    for text in found[1].split(","):
        word = text.strip()
        if word.startswith("sizeof"):
            values.append(ctypes.sizeof(structure))
        elif word == "NULL":
            values.append(None)
        else:
            values.append(CONSTANTS[word] if word in CONSTANTS else float(word) if "." in word else int(word))
    assert len(values) == len(structure._fields_)
    return structure(*values)


class SampledClient(BridgeStanClient):
    """A model of a built library, with the functions of `ulam.h`."""

    def sample(self, callback: Any = None, rows: int | None = None, **options: Any) -> dict[str, Any]:
        """Draws: values, unconstrained, statistics (arrays of chains and rows), step_size, inv_metric, and `ended`."""
        kept: list[Any] = []
        given, output = initialized(Options, "ULAM_SAMPLE_OPTIONS"), initialized(Output, "ULAM_SAMPLE_OUTPUT")
        for name, value in options.items():
            if isinstance(value, np.ndarray | bytes):
                kept.append(ctypes.c_char_p(value) if isinstance(value, bytes) else np.ascontiguousarray(value, float))
                value = ctypes.cast(kept[-1], ctypes.c_void_p) if isinstance(value, bytes) else kept[-1].ctypes.data
            setattr(given, name, value)
        count = -(-given.draws // max(given.thin, 1)) + (-(-given.warmup // given.thin) if given.save_warmup else 0)
        length = output.rows = count if rows is None else rows
        chains = min(max(given.chains, 0), 100)
        shape = (self.n, self.n) if given.metric == CONSTANTS["ULAM_SAMPLE_DENSE"] else (self.n,)
        found: dict[str, Any] = {
            "values": np.full((chains, length, self.size(True, True)), np.nan),
            "unconstrained": np.full((chains, length, self.n), np.nan),
            "statistics": np.full((chains, length, len(STATISTICS)), np.nan),
            "step_sizes": np.full(chains, np.nan),
            "inv_metrics": np.full((chains, *shape), np.nan),
        }
        for name, array in found.items():
            setattr(output, name, array.ctypes.data)
        if callback is not None:
            kept.append(Callback(lambda draw, user: callback(draw.contents)))
            output.callback = ctypes.cast(kept[-1], ctypes.c_void_p)
        function = self.library.ulam_sample
        function.argtypes = [ctypes.c_void_p] * 4
        with self.message() as error:
            ended = function(self.model, ctypes.addressof(given), ctypes.addressof(output), error)
            if ended < 0:
                raise ClientError(self._take(error))
        return found | {"ended": ended}

    def native_handle(self, jacobian: bool = True) -> tuple[Any, int]:
        """The log density as a callback, and its last argument."""
        function, user = ctypes.c_void_p(), ctypes.c_void_p()
        native = self.library.ulam_native_handle
        native.argtypes = [ctypes.c_void_p, ctypes.c_bool, *[ctypes.c_void_p] * 3]
        with self.message() as error:
            if native(self.model, jacobian, ctypes.addressof(function), ctypes.addressof(user), error):
                raise ClientError(self._take(error))
        assert function.value is not None and user.value is not None
        return Gradient(function.value), user.value
