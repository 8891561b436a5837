"""Files that are written: checked beforehand, written beside, and put in their place when they are whole.

What a file had stays until then, whatever happens: a full disk, an interrupt, a kill. Where the system can, what is not
whole has no name, so that nothing of it is left. A link stays, and what it leads to is replaced, with its permissions.
Devices, pipes and this process's own open files (`/dev/stdout`) are written as they are.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

FilePath = str | os.PathLike[str]

ENCODING = {"encoding": "utf-8", "errors": "backslashreplace", "newline": ""}
"""Of text. Names of files may have bytes that are no characters: they are escaped, in JSON's way."""

_LINKS = 40
"""How many links to links are followed."""


# ---------------------------------------------------------------- writing


@contextmanager
def writing(path: FilePath, chosen: Callable[[], str] | None = None, *, binary: bool = False) -> Iterator[IO[Any]]:
    """A file to write to. It is in its place when the block ends, and was never there if that raises.

    `chosen` may say at the end which other place in the same folder it takes. Raises OSError, with the name of the
    file.
    """
    name = os.fspath(path)
    options: dict[str, Any] = {"mode": "wb"} if binary else {"mode": "w", **ENCODING}
    with _named(name):
        place = _place(name)
        if not isinstance(place, str):
            with open(place.opened(), **options) as file:
                yield file
            return
        with Unfinished(name, place) as unfinished:
            with open(os.dup(unfinished.descriptor), **options) as file:
                yield file
            unfinished.put(place if chosen is None else chosen())


def write_text(path: FilePath, text: str) -> None:
    """A whole text to a file."""
    with writing(path) as file:
        file.write(text)


class GrowingFile:
    """A file that is in its place from the beginning and grows by whole blocks: what was appended is on the disk.

    If a block cannot be written, nothing of it stays. Raises OSError, with the name of the file.
    """

    def __init__(self, path: FilePath) -> None:
        self._name = os.fspath(path)
        with _named(self._name):
            place = _place(self._name)
            if isinstance(place, str):
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
                self._descriptor = os.open(place, flags, 0o666)
            else:
                self._descriptor = place.opened()
        self._is_file = isinstance(place, str)
        self._size = 0

    def append(self, block: bytes) -> None:
        """Adds a block; it is on the disk when this returns."""
        with _named(self._name):
            try:
                left = memoryview(block)
                while left:
                    left = left[os.write(self._descriptor, left) :]
                if self._is_file:
                    os.fsync(self._descriptor)
            except BaseException:
                if self._is_file:
                    with suppress(OSError):
                        os.ftruncate(self._descriptor, self._size)
                        os.lseek(self._descriptor, self._size, os.SEEK_SET)
                raise
        self._size += len(block)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def check_writable(path: FilePath) -> None:
    """Raises OSError, with the name of the file, if it could not be written. Changes nothing."""
    name = os.fspath(path)
    with _named(name):
        place = _place(name)
        if not isinstance(place, str):
            place.check()
            return
        with suppress(FileNotFoundError):
            os.close(os.open(place, os.O_WRONLY))
        with Unfinished(name, place):
            pass


def is_replaced(path: FilePath) -> bool:
    """Whether writing replaces a file, and does not send to a device or a pipe."""
    return isinstance(_place(os.fspath(path)), str)


def is_standard_output(path: FilePath) -> bool:
    """Whether writing sends to standard output, under whatever name."""
    try:
        place = _place(os.fspath(path))
    except OSError:
        return False
    return isinstance(place, _Stream) and place.number == 1


class Unfinished:
    """A file without a name in the folder where it will be, or with one of its own. `descriptor` is open to write."""

    def __init__(self, name: str, place: str) -> None:
        self.folder = os.path.dirname(place)
        self._given, self._name, self.descriptor = name, "", -1

    def __enter__(self) -> Unfinished:
        try:
            self.descriptor = self._opened()
        except OSError as error:
            raise _folder_error(error, self.folder, self._given) from None
        return self

    def __exit__(self, *_: object) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self._forget()

    def put(self, place: str) -> None:
        """Gives the file its name; what had that name is gone."""
        with suppress(FileNotFoundError):
            self._take_permissions(os.stat(place))
            os.fsync(self.descriptor)  # lest the old content is gone before the new one is on the disk
        try:
            if not self._name:
                self._name = self._another_name()
                _link(self.descriptor, self._name)
            os.replace(self._name, place)
            self._name = ""
        finally:
            self._forget()

    def _opened(self) -> int:
        flags = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
            try:
                return os.open(self.folder, flags | os.O_TMPFILE, 0o666)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
                    raise
        self._name = self._another_name()
        return os.open(self._name, flags | os.O_CREAT | os.O_EXCL, 0o666)

    def _another_name(self) -> str:
        return os.path.join(self.folder, f".ulam-{os.urandom(6).hex()}")

    def _take_permissions(self, old: os.stat_result) -> None:
        if hasattr(os, "fchown"):
            with suppress(OSError):  # only its owner may do so
                os.fchown(self.descriptor, old.st_uid, old.st_gid)
            os.fchmod(self.descriptor, stat.S_IMODE(old.st_mode))

    def _forget(self) -> None:
        if self._name:
            with suppress(FileNotFoundError):
                os.unlink(self._name)
            self._name = ""


def _link(descriptor: int, name: str) -> None:
    # Only with a folder's descriptor, which an absolute name makes no use of, does Python follow the link.
    os.link(f"/proc/self/fd/{descriptor}", name, src_dir_fd=descriptor)


# ---------------------------------------------------------------- where


class _Stream:
    """An open file of this process, by its number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def check(self) -> None:
        import fcntl

        if fcntl.fcntl(self.number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "is not open for writing")

    def opened(self) -> int:
        for stream in (sys.stdout, sys.stderr):  # what was printed before comes before
            stream.flush()
        return os.dup(self.number)


class _Device:
    """A device or a pipe."""

    def __init__(self, name: str) -> None:
        self.name = name

    def check(self) -> None:
        if not os.access(self.name, os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    def opened(self) -> int:
        return os.open(self.name, os.O_WRONLY)


def _place(name: str) -> str | _Stream | _Device:
    """What a name leads to: the file to replace, its links followed, or what is written as it is."""
    if (number := _own_stream(name)) is not None:
        os.fstat(number)
        return _Stream(number)
    try:
        found = os.stat(name)
    except FileNotFoundError:
        if not name or name.endswith(os.sep):
            raise
        return os.path.realpath(name)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if stat.S_ISBLK(found.st_mode):
        raise OSError(errno.EINVAL, "is a block device", name)
    if not stat.S_ISREG(found.st_mode):
        return _Device(name)
    for number in (1, 2):
        with suppress(OSError):
            if os.path.samestat(os.fstat(number), found):  # standard output is redirected to this very file
                return _Stream(number)
    return os.path.realpath(name)


def _own_stream(name: str) -> int | None:
    """The number of `/dev/stdout`, `/dev/fd/3` and the like."""
    own = {os.path.realpath(folder) for folder in ("/proc/self/fd", "/dev/fd")}
    for _ in range(_LINKS):
        folder, last = os.path.split(name)
        if last.isdecimal() and os.path.realpath(folder) in own:
            return int(last)
        if not os.path.islink(name):
            return None
        name = os.path.join(folder, os.readlink(name))
    return None


# ---------------------------------------------------------------- errors


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Errors that do not say which file they are of, or name our unfinished one, are of this file."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno is None or error.filename == name:
            raise
        raise OSError(error.errno, error.strerror, name) from None


def _folder_error(error: OSError, folder: str, name: str) -> OSError:
    """What is wrong with the folder of a file, said of the file."""
    if not os.path.exists(folder):
        reason = "does not exist"
    elif not os.path.isdir(folder):
        reason = "is no folder"
    else:
        reason = f"cannot be written to: {error.strerror}"
    return OSError(error.errno, f"the folder '{os.path.dirname(name) or folder}' {reason}", name)
