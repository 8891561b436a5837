"""What LLVM said of the processor is kept beside the compiled code, for this processor and this LLVM."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ulam.emit import jit, kept_host
from ulam.emit.object_cache import ObjectCache
from ulam.emit.target import VARIABLE, TargetError
from ulam.runtime.c_library import processor_numbers

PROGRAM = """
import sys
from ulam.emit import kept_host
from ulam.emit.object_cache import ObjectCache
print(kept_host.target(sys.argv[2], ObjectCache(sys.argv[1]), bytes.fromhex(sys.argv[3]), sys.argv[4]))
print([name for name in ("llvmlite", "xdsl", "numpy") if name in sys.modules])
"""


def _asked(folder: Path, target: str = "native", processor: str = "01ff", llvm: str = "1") -> tuple[str, str]:
    command = [sys.executable, "-c", PROGRAM, str(folder), target, processor, llvm]
    found, modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return found, modules


def test_llvm_is_asked_once(tmp_path: Path) -> None:
    expected = repr(jit.host())
    assert _asked(tmp_path) == (expected, "['llvmlite']")
    assert _asked(tmp_path) == (expected, "[]")
    assert _asked(tmp_path, "generic") == (repr(jit.target("generic")), "[]")
    assert _asked(tmp_path, processor="02ff")[1] == _asked(tmp_path, llvm="2")[1] == "['llvmlite']"
    assert _asked(tmp_path, processor="")[1] == "['llvmlite']", "of a processor that says nothing, nothing is kept"


def test_levels_are_those_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ulam.emit.jit")
    monkeypatch.setenv(VARIABLE, "x86-64-v9")
    with pytest.raises(TargetError, match="there is no such level"):
        kept_host.target("native", ObjectCache(tmp_path), b"1", "1")


def test_a_damaged_answer_is_asked_again(tmp_path: Path) -> None:
    first = _asked(tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-3])
    assert _asked(tmp_path) == first


def test_the_processor_says_the_same_on_all_its_cores() -> None:
    import os
    import threading

    found: list[bytes] = []

    def ask(core: int) -> None:
        os.sched_setaffinity(0, {core})
        found.append(processor_numbers())

    if hasattr(os, "sched_setaffinity"):
        for core in sorted(os.sched_getaffinity(0)):
            thread = threading.Thread(target=ask, args=(core,))
            thread.start()
            thread.join()
        assert set(found) == {processor_numbers()}
