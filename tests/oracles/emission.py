"""Compiles `func.func` text and calls it: the tests' way through the emitter and the JIT."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, scf
from xdsl.parser import Parser

from ulam.dialects.ad import AD
from ulam.dialects.rt import RT
from ulam.emit import jit
from ulam.emit.llvm_module import emit_module
from ulam.emit.llvm_text import EmitOptions
from ulam.passes import verify_facts
from ulam.runtime import c_library

STRICT, LOOSE = 2, 3

CTYPES: dict[str, Any] = {"f64": ctypes.c_double, "i64": ctypes.c_int64, "i32": ctypes.c_int32, "i1": ctypes.c_bool}


class EmittedContext(ctypes.Structure):
    """The public part of `struct ulam_context`."""

    _fields_ = [
        ("arena_cursor", ctypes.c_void_p),
        ("arena_end", ctypes.c_void_p),
        ("error_site", ctypes.c_int64),
        ("error_values", ctypes.c_double * 4),
        ("arena_start", ctypes.c_void_p),
    ]


def new_context() -> Any:
    """A context of the runtime, as a pointer to its public part."""
    address = c_library.library().ulam_context_new(1 << 20)
    context = ctypes.cast(address, ctypes.POINTER(EmittedContext))
    assert context
    return context


def parse(text: str) -> builtin.ModuleOp:
    context = Context()
    for dialect in (builtin.Builtin, arith.Arith, func.Func, scf.Scf, RT, AD):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    verify_facts.run_on(module)
    return module


def emit(program: str | builtin.ModuleOp, level: int = STRICT) -> str:
    module = parse(program) if isinstance(program, str) else program
    return emit_module(module, EmitOptions(level, jit.host().fused))


def load(text: str | builtin.ModuleOp, level: int = STRICT, pipeline: jit.Pipeline = jit.HOT) -> jit.LinkedObject:
    llvm_text = emit(text, level)
    jit.verify(llvm_text)
    return jit.load_object(jit.compile_object(llvm_text, pipeline), c_library.library_path())


class Compiled:
    """One entry function: numpy arrays are passed as buffers, results come back as Python numbers."""

    def __init__(
        self,
        text: str | builtin.ModuleOp,
        results: Sequence[str] = (),
        level: int = STRICT,
        pipeline: jit.Pipeline = jit.HOT,
    ) -> None:
        self.loaded = load(text, level, pipeline)
        self.address = self.loaded.address("f")
        self.results = results
        self.context = new_context()
        self.bound = (ctypes.c_int64 * 32)()

    def call(self, *arguments: Any) -> tuple[int, tuple[Any, ...]]:
        """Status and results."""
        converted = [self.context, self.bound, *(_argument(a) for a in arguments)]
        outs = [CTYPES[t]() for t in self.results]
        types = [type(a) for a in converted] + [ctypes.c_void_p] * len(outs)
        function = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(self.address)
        status = function(*converted, *(ctypes.cast(ctypes.byref(o), ctypes.c_void_p) for o in outs))
        return status, tuple(o.value for o in outs)

    def __call__(self, *arguments: Any) -> Any:
        status, values = self.call(*arguments)
        assert status == 0, f"status {status}, site {self.context.contents.error_site}"
        return values[0] if len(values) == 1 else values


def _argument(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    if isinstance(value, float):
        return ctypes.c_double(value)
    if isinstance(value, int):
        return ctypes.c_int64(value)
    return value


def elementwise(name: str, arity: int = 1, level: int = STRICT) -> Callable[..., np.ndarray]:
    """A vectorised loop over `rt.math name`."""
    buffers = ", ".join(f"%a{i}: !rt.buf<f64>" for i in range(arity))
    loads = "\n".join(f"%x{i} = rt.load %a{i}[%i] : f64" for i in range(arity))
    values, types = ", ".join(f"%x{i}" for i in range(arity)), ", ".join(["f64"] * arity)
    compiled = Compiled(
        f"""func.func @f({buffers}, %out: !rt.buf<f64>, %n: i64) attributes {{rt.entry = #rt.entry}} {{
          %zero = arith.constant 0 : i64
          %one = arith.constant 1 : i64
          scf.for %i = %zero to %n step %one : i64 {{
            {loads}
            %r = rt.math "{name}"({values}) : ({types}) -> f64
            rt.store %r, %out[%i] : f64
          }}
          func.return
        }}""",
        level=level,
    )

    def run(*arguments: np.ndarray) -> np.ndarray:
        arrays = [np.ascontiguousarray(a, dtype=float) for a in arguments]
        out = np.empty_like(arrays[0])
        compiled(*arrays, out, len(out))
        return out

    return run
