"""Compiled programs on disk: one file per entry, in a folder that only its user can write.

    cache = ObjectCache()                     # ULAM_CACHE_DIR, or the platform's cache folder
    key = cache_key(source=text, options={"opt_level": 3}, cpu=host().cpu, features=host().features)
    entry = cache.get(key)                    # None, or metadata and objects
    cache.put(key, metadata, {"gradient_propto": data})

An entry is `MAGIC`, the SHA-256 of key and payload, and the payload: the length of a JSON header, the header (metadata,
names and lengths of the objects), the objects. What is damaged, truncated or not ours is removed and counts as absent;
nothing of it is run. A hit needs neither xDSL nor the frontend.
"""

from __future__ import annotations

import json
import math
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache as memoize
from typing import TYPE_CHECKING, Any

from ulam.library.digests import sha256
from ulam.library.records import record

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"ulam object 1\n\0\0"
SUFFIX = ".ulam"
LOCK_SUFFIX = ".lock"
LONGEST_WAIT = 120.0
SECONDS_BETWEEN_TRIES = 0.02
DIGEST_BYTES = 32
LENGTH_BYTES = 8
LIMIT_VARIABLE = "ULAM_CACHE_LIMIT"
"""Environment variable: how many MiB a cache folder may hold before the entries unused for longest go."""
DEFAULT_LIMIT = 512
ENTRIES_BETWEEN_LOOKS = 16
"""The folder is gone through for one of so many entries, told by its key, and for each that is such a part of it:
it may have tens of thousands of files, and all processes write to it."""

_READ_ONLY = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):  # not through links; a pipe is not waited for
    _READ_ONLY |= getattr(os, _flag, 0)

SOURCE_FOLDERS = ("dialects", "emit", "frontend", "library", "passes", "runtime")


class CacheFolderError(Exception):
    """The folder cannot be trusted with code, or not be made."""


@record(frozen=True)
class Entry:
    """What was cached for one key."""

    metadata: dict[str, Any]
    objects: dict[str, bytes]


def default_folder() -> str:
    """`ULAM_CACHE_DIR`, or the folder the platform has for caches."""
    if chosen := os.environ.get("ULAM_CACHE_DIR"):
        return chosen
    import platformdirs

    return platformdirs.user_cache_dir("ulam", appauthor=False)


def chosen_limit() -> int:
    """Bytes that a folder may hold. Raises CacheFolderError for what is no number of MiB."""
    text = os.environ.get(LIMIT_VARIABLE, "")
    if text and not text.isdecimal():
        raise CacheFolderError(f"{LIMIT_VARIABLE} is '{text}', but should be a number of MiB, as {DEFAULT_LIMIT}")
    return int(text or DEFAULT_LIMIT) << 20


@memoize
def package_fingerprint() -> str:
    """Changes with any file of the compiler: names, sizes and times of the files of this package.

    Sources of C are told by the library that they are compiled to.
    """
    digest = sha256()
    folders = [os.path.join(os.path.dirname(os.path.dirname(__file__)), name) for name in reversed(SOURCE_FOLDERS)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            found = sorted([(entry.name, entry) for entry in entries if not entry.name.endswith((".c", ".h"))])
        lines: list[str] = []
        for name, entry in found:
            if not entry.is_dir():
                info = entry.stat()
                lines.append(f"{entry.path} {info.st_size} {info.st_mtime_ns}\n")
            elif name != "__pycache__":
                folders.append(entry.path)
        digest.update("".join(lines).encode())
    return digest.hexdigest()


def cache_key(
    *,
    source: str,
    included: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    versions: Mapping[str, str] | None = None,
    cpu: str,
    features: str,
) -> str:
    """The key of a program: the digest of all that its code depends on. `options` must be JSON-able."""
    parts = {
        "source": source,
        "included": dict(included or {}),
        "options": dict(options or {}),
        "versions": dict(versions or {}),
        "cpu": [cpu, features],
        "package": package_fingerprint(),
    }
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _is_private(info: os.stat_result) -> bool:
    """Owned by this user, and writable by nobody else."""
    if not hasattr(os, "geteuid"):
        return True
    return info.st_uid == os.geteuid() and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


class ObjectCache:
    """A folder of entries. May be used by several threads and processes at once."""

    def __init__(self, folder: str | os.PathLike[str] | None = None, limit: int | None = None) -> None:
        self._folder = os.fspath(folder) if folder is not None else default_folder()
        self.limit = chosen_limit() if limit is None else limit
        try:
            if not os.path.isdir(self._folder):
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            info = os.lstat(self._folder)
        except OSError as error:
            raise CacheFolderError(f"the cache folder '{self._folder}' cannot be used: {error}") from error
        if not stat.S_ISDIR(info.st_mode):
            raise CacheFolderError(f"the cache folder '{self._folder}' is not a folder")
        if not _is_private(info):
            raise CacheFolderError(
                f"the cache folder '{self._folder}' is not used: it belongs to somebody else, or others may write to it"
            )

    @property
    def folder(self) -> Path:
        from pathlib import Path

        return Path(self._folder)

    def get(self, key: str) -> Entry | None:
        """The entry of `key`, or None. A hit counts as a use."""
        path = self._path(key)
        try:
            data = self._read(path)
        except OSError:
            return None
        entry = _decode(key, data) if data is not None else None
        with suppress(OSError):
            if entry is None:
                os.unlink(path)
            else:
                os.utime(path)
        return entry

    def put(self, key: str, metadata: Mapping[str, Any], objects: Mapping[str, bytes]) -> bool:
        """Stores an entry in the place of what was there; False if the disk does not take it."""
        path = self._path(key)
        from tempfile import mkstemp

        temporary: str | None = None
        content = _encode(key, metadata, objects)
        try:
            descriptor, temporary = mkstemp(prefix="new-", suffix=".tmp", dir=self._folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except OSError:
            if temporary is not None:
                with suppress(OSError):
                    os.unlink(temporary)
            return False
        if key.startswith("0") or ENTRIES_BETWEEN_LOOKS * len(content) > self.limit:
            self.prune(keep=self.folder / f"{key}{SUFFIX}")
        return True

    @contextmanager
    def alone(self, key: str, wait: Callable[[], object]) -> Iterator[None]:
        """Of all threads and processes that want to make the entry of `key`, one at a time is in this block.

        `wait` is called now and then while another one is, and may raise. Where files cannot be locked, or after
        LONGEST_WAIT seconds, nobody waits. A process that ends, however, leaves the block.
        """
        path = os.path.join(self._folder, f"{key}{LOCK_SUFFIX}")
        descriptor = _locked(path, wait)
        try:
            yield
        finally:
            if descriptor >= 0:
                with suppress(OSError):
                    os.unlink(path)
                os.close(descriptor)

    def prune(self, keep: Path | None = None) -> None:
        """Removes what was not used for longest until the rest is within the limit; `keep` stays."""
        files: list[tuple[float, int, Path]] = []
        for path in self._files():
            with suppress(OSError):
                info = path.stat()
                files.append((info.st_mtime, info.st_size, path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self.limit:
                return
            if path != keep:
                with suppress(OSError):
                    path.unlink()
                total -= size

    def size(self) -> tuple[int, int]:
        """How many files there are, and their bytes."""
        sizes: list[int] = []
        for path in self._files():
            with suppress(OSError):
                sizes.append(path.stat().st_size)
        return len(sizes), sum(sizes)

    def clear(self) -> None:
        """Removes all entries."""
        for path in self._files():
            with suppress(OSError):
                path.unlink()

    def _files(self) -> Iterator[Path]:
        yield from self.folder.glob(f"*{SUFFIX}")
        yield from self.folder.glob("new-*.tmp")
        yield from self.folder.glob(f"*{LOCK_SUFFIX}")

    def _path(self, key: str) -> str:
        if not key.isalnum():
            raise ValueError(f"not a cache key: {key!r}")
        return os.path.join(self._folder, f"{key}{SUFFIX}")

    @staticmethod
    def _read(path: str) -> bytes | None:
        """The content of a regular file of ours; None if it is anything else."""
        descriptor = os.open(path, _READ_ONLY)
        with os.fdopen(descriptor, "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode) or not _is_private(info):
                return None
            return file.read()


def _locked(path: str, wait: Callable[[], object]) -> int:
    """A file that this thread has locked, by its descriptor; -1 if it cannot be."""
    try:
        import fcntl
    except ImportError:
        return -1
    end = time.monotonic() + LONGEST_WAIT
    while True:
        descriptor = -1
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0), 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except (BlockingIOError, FileNotFoundError):  # another has it, or has just removed it
            pass
        except OSError:  # a file system without locks
            end = -math.inf
        if descriptor >= 0:
            os.close(descriptor)
        if time.monotonic() > end:
            return -1
        wait()
        time.sleep(SECONDS_BETWEEN_TRIES)


def _encode(key: str, metadata: Mapping[str, Any], objects: Mapping[str, bytes]) -> bytes:
    lengths = [[name, len(data)] for name, data in objects.items()]
    header = json.dumps({"metadata": dict(metadata), "objects": lengths}).encode()
    payload = b"".join([len(header).to_bytes(LENGTH_BYTES, "little"), header, *objects.values()])
    return MAGIC + _digest(key, payload) + payload


def _digest(key: str, payload: bytes) -> bytes:
    return sha256(key.encode() + b"\n" + payload).digest()


def _decode(key: str, data: bytes) -> Entry | None:
    """The entry in `data`, or None if it is not whole, not of this format or of another key."""
    start = len(MAGIC) + DIGEST_BYTES
    payload = data[start:]
    if data[: len(MAGIC)] != MAGIC or data[len(MAGIC) : start] != _digest(key, payload):
        return None
    position = LENGTH_BYTES + int.from_bytes(payload[:LENGTH_BYTES], "little")
    try:
        header = json.loads(payload[LENGTH_BYTES:position])
        metadata, lengths = header["metadata"], {str(name): int(length) for name, length in header["objects"]}
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    objects: dict[str, bytes] = {}
    for name, length in lengths.items():
        objects[name] = payload[position : position + length]
        position += length
    if not isinstance(metadata, dict) or min(lengths.values(), default=0) < 0 or position != len(payload):
        return None
    return Entry(metadata, objects)
