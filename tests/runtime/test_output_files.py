"""Files that are written: nothing that was there is lost, nothing is left, errors name the file."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ulam.runtime import output_files
from ulam.runtime.json_text import json_line, plain
from ulam.runtime.output_files import check_writable, write_text, writing

IN_A_CHILD = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
NOBODY = 65534


@pytest.fixture(params=["unnamed", "named"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways in which a file is made: without a name where the system can, and with one."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    return request.param


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def in_a_child(act: Callable[[], object]) -> str:
    """What `act` raises in a process of its own: whatever it does to the process ends with it."""
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        try:
            act()
            told = ""
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(send, told.encode())
        os._exit(0)
    os.close(send)
    with os.fdopen(receive) as stream:
        told = stream.read()
    os.waitpid(child, 0)
    return told


def test_writing(tmp_path: Path, way: str) -> None:
    path = tmp_path / "a.txt"
    with writing(path) as file:
        file.write("new\n")
        assert names(tmp_path) == ([] if way == "unnamed" else [n for n in names(tmp_path) if n.startswith(".ulam-")])
    assert path.read_bytes() == b"new\n" and names(tmp_path) == ["a.txt"]
    with writing(path, binary=True) as file:
        file.write(b"\0")
    assert path.read_bytes() == b"\0" and names(tmp_path) == ["a.txt"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, SystemExit])
def test_what_is_not_finished_changes_nothing(tmp_path: Path, way: str, failure: type[BaseException]) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(failure), writing(path) as file:
        file.write("new" * 100_000)
        raise failure
    assert path.read_text() == "old" and names(tmp_path) == ["a.txt"]


def test_permissions_and_links_stay(tmp_path: Path, way: str) -> None:
    path, link = tmp_path / "a.txt", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to("a.txt")
    write_text(link, "new")
    assert link.is_symlink() and path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == 0o640
    dangling = tmp_path / "dangling"
    dangling.symlink_to("b.txt")
    write_text(dangling, "b")
    assert (tmp_path / "b.txt").read_text() == "b" and dangling.is_symlink()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("none/a.txt", "'.*none' does not exist"),
        ("file/a.txt", "'.*file' is no folder|Not a directory"),
        ("folder", "Is a directory"),
        ("x" * 300, "File name too long"),
        ("loop", "symbolic links"),
    ],
)
def test_what_cannot_be_written(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    before = names(tmp_path)
    for act in (check_writable, lambda path: write_text(path, "new")):
        with pytest.raises(OSError, match=reason) as caught:
            act(tmp_path / name)
        assert caught.value.filename == str(tmp_path / name)
    assert names(tmp_path) == before


def test_checking_changes_nothing(tmp_path: Path, way: str) -> None:
    path = tmp_path / "a.txt"
    check_writable(path)
    assert names(tmp_path) == []
    path.write_text("old")
    os.utime(path, (0, 0))
    check_writable(path)
    assert path.read_text() == "old" and path.stat().st_mtime == 0 and names(tmp_path) == ["a.txt"]


@IN_A_CHILD
def test_files_and_folders_that_are_protected(tmp_path: Path) -> None:
    folder, path = tmp_path / "folder", tmp_path / "a.txt"
    folder.mkdir(mode=0o755)
    path.write_text("old")
    path.chmod(0o444)
    folder.chmod(0o555)
    for part in (tmp_path, *tmp_path.parents):  # that the other user comes so far
        if part.owner() == tmp_path.owner() and part != Path("/tmp") and part.stat().st_uid == os.getuid():
            part.chmod(part.stat().st_mode | 0o011)

    def as_nobody(target: Path) -> Callable[[], None]:
        def act() -> None:
            if os.getuid() == 0:
                os.setuid(NOBODY)
            check_writable(target)

        return act

    assert "Permission denied" in in_a_child(as_nobody(path)) and str(path) in in_a_child(as_nobody(path))
    assert "cannot be written to: Permission denied" in in_a_child(as_nobody(folder / "b.txt"))


@IN_A_CHILD
def test_a_full_disk(tmp_path: Path, way: str) -> None:
    """Here a limit on the size of files, which is as good."""
    path = tmp_path / "a.txt"
    path.write_text("old")

    def act() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        write_text(path, "new" * 100_000)

    told = in_a_child(act)
    assert str(path) in told and os.strerror(errno.EFBIG) in told
    assert path.read_text() == "old" and names(tmp_path) == ["a.txt"]
    if os.path.exists("/dev/full"):
        with pytest.raises(OSError, match="No space left") as caught:
            write_text("/dev/full", "new")
        assert caught.value.filename == "/dev/full"


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files without a name are Linux's")
def test_a_kill_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    program = f"""
import os, signal
from ulam.runtime.output_files import writing
with writing({str(path)!r}) as file:
    file.write("new" * 100_000)
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == -signal.SIGKILL
    assert path.read_text() == "old" and names(tmp_path) == ["a.txt"]


def test_pipes_and_devices(tmp_path: Path) -> None:
    fifo, got = tmp_path / "fifo", list[str]()
    os.mkfifo(fifo)
    check_writable(fifo)
    reader = threading.Thread(target=lambda: got.append(fifo.read_text()))
    reader.start()
    write_text(fifo, "through")
    reader.join()
    assert got == ["through"] and stat.S_ISFIFO(fifo.stat().st_mode)
    check_writable("/dev/null")
    write_text("/dev/null", "gone")
    with pytest.raises(OSError):
        check_writable("/dev/fd/99")


@pytest.mark.parametrize("name", ["/dev/stdout", "out.txt", "/dev/fd/1", "/proc/self/fd/1"])
def test_own_streams(tmp_path: Path, name: str) -> None:
    """What standard output is redirected to goes on, with what was printed before."""
    program = f"""
from ulam.runtime.output_files import check_writable, write_text
print("before")
check_writable({name!r})
write_text({name!r}, "between\\n")
print("after")
"""
    with open(tmp_path / "out.txt", "w") as out:
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, stdout=out, check=True)
    assert (tmp_path / "out.txt").read_text() == "before\nbetween\nafter\n" and names(tmp_path) == ["out.txt"]
    piped = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert piped.stdout == ("before\nafter\n" if name == "out.txt" else "before\nbetween\nafter\n")


def test_a_place_that_is_chosen_at_the_end(tmp_path: Path) -> None:
    with writing(tmp_path / "a.csv", lambda: str(tmp_path / "a_2.csv")) as file:
        file.write("x")
    assert names(tmp_path) == ["a_2.csv"]


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """Python has bytes that are no UTF-8 as halves of characters, which no file can have."""
    write_text(tmp_path / "a.json", json_line({"file": os.fsdecode(b"\xff.stan")}))
    assert json.loads((tmp_path / "a.json").read_text()) == {"file": "\udcff.stan"}


def test_interrupts_at_any_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """An interrupt after each call of the system that writing makes: old or new content, and no other file."""
    path = tmp_path / "a.txt"
    calls = [0]

    def interrupting(call: Callable[..., Any], limit: int) -> Callable[..., Any]:
        def replaced(*arguments: Any, **options: Any) -> Any:
            result = call(*arguments, **options)
            calls[0] += 1
            if calls[0] == limit:
                raise KeyboardInterrupt
            return result

        return replaced

    ended = 0
    for limit in range(1, 9):
        path.write_text("old")
        calls[0] = 0
        with monkeypatch.context() as patch:
            for name in ("fchmod", "fsync", "link", "replace", "fchown"):
                patch.setattr(output_files.os, name, interrupting(getattr(os, name), limit))
            try:
                write_text(path, "new")
                ended += 1
            except KeyboardInterrupt:
                pass
        assert path.read_text() in ("old", "new") and names(tmp_path) == ["a.txt"]
    assert 0 < ended < 8


def test_plain_values_read_back() -> None:
    """What JSON does not have is written as Stan's data format has it, and is read as data."""
    import numpy as np

    from ulam.runtime.data import SPECIAL_NUMBERS

    infinity = float("inf")
    record = {"a": [1.5, infinity, -infinity, float("nan")], "b": np.array([[np.inf], [2.0]]), "c": np.float32(0.5)}
    text = json_line({**record, "d": (1, True, None), 5: np.int64(3), "e": np.bool_(True)})

    def refuse(word: str) -> None:
        raise AssertionError(word)

    read = json.loads(text, parse_constant=refuse)
    assert read == {
        "a": [1.5, "Infinity", "-Infinity", "NaN"], "b": [["Infinity"], [2.0]], "c": 0.5, "d": [1, True, None], "5": 3,
        "e": True,
    }  # fmt: skip
    assert {text for text in read["a"][1:]} <= set(SPECIAL_NUMBERS)
    assert plain(object).startswith("<class")


def test_nothing_else_writes_files() -> None:
    """But for caches, which have rules of their own (of objects, of the compiler's modules), a log for `perf`, a
    linker's objects in a folder that goes again, members of an archive, streams to nowhere."""
    root = Path(__file__).resolve().parents[2]
    opens = r"""(?<!archive\.)open\((?!os\.devnull)(?:[^()]|\(\))*["'][wax]b?["']"""
    writes = re.compile(opens + r"|\.write_(?:text|bytes)\(|os\.replace\(")
    found = {
        str(path.relative_to(root))
        for folder in ("api", "runtime", "tools")
        for path in (root / folder).rglob("*.py")
        if writes.search(path.read_text(encoding="utf-8"))
    }
    others = {"profiling/loaded_code.py", "libraries/build.py", "module_archive.py"}
    assert found == {"runtime/output_files.py", *(f"runtime/{name}" for name in others)}
