"""Linking with each linker that there is: what a library shows, what it needs, what it says of what nobody has."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import pytest
from elf_files import exports, needed

from ulam.emit import jit
from ulam.runtime.libraries import linkers
from ulam.runtime.libraries.archive import archive_path
from ulam.runtime.libraries.linkers import LINKERS, BuildError, link

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="libraries are built on Linux")

FUNCTIONS = """
declare double @exp(double)
declare i32 @ulam_abi()
define double @shown(double %x) {
  %y = call double @exp(double %x)
  %abi = call i32 @ulam_abi()
  %z = sitofp i32 %abi to double
  %sum = fadd double %y, %z
  ret double %sum
}
define double @not_shown(double %x) { ret double %x }
"""


def compiled(folder: Path, text: str) -> Path:
    path = folder / "functions.o"
    path.write_bytes(jit.compile_object(text))
    return path


@pytest.mark.parametrize("name", [linker.name for linker in LINKERS])
def test_each_linker(name: str, tmp_path: Path) -> None:
    if next(linker for linker in LINKERS if linker.name == name).find() is None:
        pytest.skip("not here")
    library = tmp_path / "lib.so"
    link([compiled(tmp_path, FUNCTIONS)], [archive_path()], ["shown"], [], library, name)
    assert exports(library) == {"shown"}
    assert {name.partition(".")[0] for name in needed(library)} <= {"libm", "libc"}
    assert any("libm" in name for name in needed(library)) or not any("libm.so" in f for f in linkers.c_library_files())
    function = ctypes.CDLL(str(library)).shown
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
    abi = function(0.0) - 1
    assert abi == int(abi) > 0
    with pytest.raises(BuildError, match=r"would need dgemm_, which neither"):
        text = "declare void @dgemm_()\ndefine void @shown() {\n call void @dgemm_()\n ret void }"
        link([compiled(tmp_path, text)], [archive_path()], ["shown"], [], library, name)


def test_no_linker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(linkers, "find_spec", lambda name: None)
    with pytest.raises(BuildError, match=r"no linker \(tried ld, ld.lld, cc, ziglang\): install binutils or lld .*pip"):
        link([], [], [], [], tmp_path / "lib.so")


def test_input_that_is_no_object(tmp_path: Path) -> None:
    broken = tmp_path / "broken.o"
    broken.write_text("no object")
    with pytest.raises(BuildError, match=r"the linker \S+ failed:\n.*broken.o"):
        link([broken], [], ["shown"], [], tmp_path / "lib.so")
