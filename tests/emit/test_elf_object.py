"""Objects are loaded without LLVM, as LLVM loads them; what is strange to the loader is left to LLVM."""

from __future__ import annotations

import ctypes
import gc
import math
import platform
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ulam.emit import elf_object, jit
from ulam.emit.errors import CodeGenerationError
from ulam.runtime.c_library import address_of, library_path

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="objects of x86-64 Linux"
)

PROGRAM = """
@count = internal global i64 40
@table = internal global [2 x ptr] [ptr @twice, ptr @half]
@numbers = internal constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5], align 32
@zeros = internal global [1000 x i8] zeroinitializer, align 64
declare double @sin(double)
declare i64 @ulam_machine_bytes()
declare ptr @memset(ptr, i32, i64)
define internal double @twice(double %x) nounwind noinline { %y = fadd double %x, %x ret double %y }
define internal double @half(double %x) nounwind noinline { %y = fmul double %x, 0.5 ret double %y }
define i64 @counted() nounwind {
  %old = load i64, ptr @count %new = add i64 %old, 1 store i64 %new, ptr @count ret i64 %new }
define double @called(i64 %which, double %x) nounwind {
  %place = getelementptr [2 x ptr], ptr @table, i64 0, i64 %which
  %function = load ptr, ptr %place %y = call double %function(double %x) ret double %y }
define double @outside(double %x) nounwind { %y = call double @sin(double %x) ret double %y }
define ptr @taken() nounwind { ret ptr @sin }
define i64 @memory() nounwind { %y = call i64 @ulam_machine_bytes() ret i64 %y }
define double @number(i64 %k) nounwind {
  %place = getelementptr [4 x double], ptr @numbers, i64 0, i64 %k
  %y = load double, ptr %place ret double %y }
define i8 @filled() nounwind {
  call ptr @memset(ptr @zeros, i32 7, i64 1000) %place = getelementptr i8, ptr @zeros, i64 999
  %y = load i8, ptr %place ret i8 %y }
"""


def _called(address: Any, result: type, *arguments: float) -> Any:
    kinds = [ctypes.c_int64 if isinstance(value, int) else ctypes.c_double for value in arguments]
    return ctypes.CFUNCTYPE(result, *kinds)(address)(*arguments)


@pytest.fixture(scope="module")
def code() -> bytes:
    return jit.compile_object(PROGRAM, jit.ONCE)


def test_as_llvm_loads(code: bytes) -> None:
    ours = elf_object.load(code, address_of)
    assert ours is not None
    theirs = jit.load_object(code, library_path())
    for find in (ours.address, theirs.address):
        assert [_called(find("counted"), ctypes.c_int64) for _ in range(3)] == [41, 42, 43]
        assert _called(find("called"), ctypes.c_double, 0, 3.0) == 6.0
        assert _called(find("called"), ctypes.c_double, 1, 3.0) == 1.5
        assert _called(find("outside"), ctypes.c_double, 1.0) == math.sin(1.0)
        assert _called(_called(find("taken"), ctypes.c_int64), ctypes.c_double, 2.0) == math.sin(2.0)
        assert _called(find("memory"), ctypes.c_int64) > 0
        assert [_called(find("number"), ctypes.c_double, k) for k in range(4)] == [1.5, 2.5, 3.5, 4.5]
        assert _called(find("filled"), ctypes.c_int8) == 7


def test_names_that_are_not_there(code: bytes) -> None:
    loaded = elf_object.load(code, address_of)
    assert loaded is not None
    for name in ("nothing", "twice", "sin", ""):
        with pytest.raises(CodeGenerationError, match=f"'{name}' cannot be linked"):
            loaded.address(name)
    assert elf_object.load(code, lambda name: None if name == "sin" else address_of(name)) is None


def test_memory_goes_with_the_handle(code: bytes) -> None:
    def executable() -> int:
        return sum(" r-xp 00000000 00:00 0 " in line for line in Path("/proc/self/maps").read_text().splitlines())

    def writable() -> int:
        return sum(" rwx" in line for line in Path("/proc/self/maps").read_text().splitlines())

    before, found = executable(), writable()
    handles = [elf_object.load(code, address_of) for _ in range(5)]
    assert executable() > before
    assert writable() == found
    handles.clear()
    gc.collect()
    assert executable() <= before


def _patched(code: bytes, offset: int, form: str, value: int) -> bytes:
    changed = bytearray(code)
    struct.pack_into(form, changed, offset, value)
    return bytes(changed)


def _first_relocation(code: bytes) -> int:
    """Where the kind of the first relocation is."""
    start, number = struct.unpack_from("<Q", code, 40)[0], struct.unpack_from("<H", code, 60)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, start + 64 * k) for k in range(number)]
    return next(entry[4] for entry in sections if entry[1] == 4) + 8


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda code: b"",
    "not ELF": lambda code: b"MZ" + code[2:],
    "32 bits": lambda code: _patched(code, 4, "<B", 1),
    "other processor": lambda code: _patched(code, 18, "<H", 183),
    "a program": lambda code: _patched(code, 16, "<H", 2),
    "cut": lambda code: code[: len(code) // 2],
    "unknown relocation": lambda code: _patched(code, _first_relocation(code), "<I", 10),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_strange_is_left_to_llvm(change: str, code: bytes) -> None:
    assert elf_object.load(CHANGES[change](code), address_of) is None


@pytest.mark.parametrize("text", ["@a = thread_local global i64 1\ndefine ptr @f() nounwind { ret ptr @a }",
                                  "@a = common global i64 0\ndefine ptr @f() nounwind { ret ptr @a }"])  # fmt: skip
def test_kinds_of_memory_that_programs_do_not_have(text: str) -> None:
    code = jit.compile_object(text, jit.ONCE)
    loaded = elf_object.load(code, address_of)
    if loaded is not None:  # LLVM made an ordinary variable of it
        assert _called(loaded.address("f"), ctypes.c_int64) > 0


def test_programs_need_no_llvm_to_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    from ulam.runtime.compiler import Compiler
    from ulam.runtime.program import load_object

    compiler = Compiler("parameters { vector[3] x; } model { x ~ normal(0, 2); target += log1p_exp(x[1]); }")
    codes = {name: compiler.unit(name) for name in ("setup", "gradient_propto", "constrain")}
    monkeypatch.setattr(jit, "load_object", None)
    for name, found in codes.items():
        assert isinstance(load_object(found), elf_object.ElfObject), name
