"""The cache on disk: what is put comes back; what is damaged, foreign or not private never does."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ulam.emit import object_cache
from ulam.emit.object_cache import MAGIC, SUFFIX, CacheFolderError, ObjectCache, cache_key

KEY = "0123456789abcdef"
METADATA = {"name": "bernoulli", "sites": [{"line": 3}], "n_slots": 2}
OBJECTS = {"gradient_propto": bytes(range(256)) * 5, "setup": b""}


@pytest.fixture
def cache(tmp_path: Path) -> ObjectCache:
    return ObjectCache(tmp_path / "cache")


def entry_path(cache: ObjectCache, key: str = KEY) -> Path:
    return cache.folder / f"{key}{SUFFIX}"


def test_what_is_put_comes_back(cache: ObjectCache) -> None:
    assert cache.get(KEY) is None
    assert cache.put(KEY, METADATA, OBJECTS)
    entry = cache.get(KEY)
    assert entry is not None
    assert entry.metadata == METADATA
    assert entry.objects == OBJECTS
    assert [p.name for p in cache.folder.iterdir()] == [entry_path(cache).name]


def test_a_new_entry_replaces_the_old_one(cache: ObjectCache) -> None:
    cache.put(KEY, METADATA, OBJECTS)
    cache.put(KEY, {"name": "other"}, {})
    entry = cache.get(KEY)
    assert entry is not None and entry.metadata == {"name": "other"} and entry.objects == {}


def test_folder_is_private(cache: ObjectCache) -> None:
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o722])
def test_folders_that_others_may_write_are_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(CacheFolderError, match="others may write"):
        ObjectCache(folder)


def test_folders_of_others_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    with pytest.raises(CacheFolderError, match="belongs to somebody else"):
        ObjectCache(tmp_path)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheFolderError):
        ObjectCache(tmp_path / "file")
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(CacheFolderError, match="not a folder"):
        ObjectCache(tmp_path / "link")


def test_any_changed_byte_makes_the_entry_absent(cache: ObjectCache) -> None:
    cache.put(KEY, METADATA, {"f": b"code"})
    good = entry_path(cache).read_bytes()
    for position in range(len(good)):
        entry_path(cache).write_bytes(good[:position] + bytes([good[position] ^ 0x40]) + good[position + 1 :])
        assert cache.get(KEY) is None
        assert not entry_path(cache).exists()


def test_truncated_and_lengthened_entries_are_absent(cache: ObjectCache) -> None:
    cache.put(KEY, METADATA, {"f": b"code"})
    good = entry_path(cache).read_bytes()
    for data in [good[:n] for n in range(len(good))] + [good + b"x", b"", MAGIC]:
        entry_path(cache).write_bytes(data)
        assert cache.get(KEY) is None


def test_an_entry_of_another_key_is_foreign(cache: ObjectCache) -> None:
    cache.put(KEY, METADATA, OBJECTS)
    other = "f" * 16
    entry_path(cache).rename(entry_path(cache, other))
    assert cache.get(other) is None


def test_links_and_files_that_others_may_write_are_not_read(cache: ObjectCache, tmp_path: Path) -> None:
    cache.put(KEY, METADATA, OBJECTS)
    elsewhere = tmp_path / "elsewhere"
    entry_path(cache).rename(elsewhere)
    entry_path(cache).symlink_to(elsewhere)
    assert cache.get(KEY) is None
    entry_path(cache).unlink(missing_ok=True)
    cache.put(KEY, METADATA, OBJECTS)
    entry_path(cache).chmod(0o666)
    assert cache.get(KEY) is None


def test_a_pipe_is_not_waited_for(cache: ObjectCache) -> None:
    os.mkfifo(cache.folder / f"{KEY}.ulam", 0o600)
    assert cache.get(KEY) is None
    assert not (cache.folder / f"{KEY}.ulam").exists(), "what is not ours goes"


@pytest.mark.parametrize(
    "header",
    [b"", b"[]", b"{", b'{"metadata": {}}', b'{"metadata": [], "objects": []}', b'{"metadata": {}, "objects": [["a"]]}',
     b'{"metadata": {}, "objects": [["a", -1]]}', b'{"metadata": {}, "objects": [["a", 1]]}', b"[" * 100_000],
)  # fmt: skip
def test_contents_that_no_entry_has_are_absent(cache: ObjectCache, header: bytes) -> None:
    """Also where the digest is right."""
    payload = len(header).to_bytes(8, "little") + header
    (cache.folder / f"{KEY}.ulam").write_bytes(MAGIC + object_cache._digest(KEY, payload) + payload)
    assert cache.get(KEY) is None


def test_keys_cannot_name_other_files(cache: ObjectCache) -> None:
    for key in ("../evil", "", "a/b", "a.b"):
        with pytest.raises(ValueError, match="not a cache key"):
            cache.get(key)


def test_least_recently_used_entries_go_first(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "cache", limit=25_000)
    for age, key in enumerate(["a", "b", "c"]):
        cache.put(key, {}, {"f": bytes(7_000)})
        os.utime(entry_path(cache, key), (1_000_000 + age, 1_000_000 + age))
    assert cache.get("a") is not None  # used now
    cache.put("d", {}, {"f": bytes(7_000)})
    assert {p.stem for p in cache.folder.iterdir()} == {"a", "c", "d"}
    cache.put("e", {}, {"f": bytes(100_000)})
    assert {p.stem for p in cache.folder.iterdir()} == {"e"}
    cache.clear()
    assert not list(cache.folder.iterdir())


def test_a_folder_that_disappears_is_no_error(cache: ObjectCache) -> None:
    cache.folder.rmdir()
    assert cache.get(KEY) is None
    assert not cache.put(KEY, METADATA, OBJECTS)


def test_many_writers_and_readers(cache: ObjectCache) -> None:
    wrong: list[object] = []

    def work(n: int) -> None:
        for _ in range(30):
            cache.put(KEY, {"n": n}, {"f": bytes([n]) * 5000})
            entry = cache.get(KEY)
            if entry is None or set(entry.objects["f"]) != {entry.metadata["n"]}:
                wrong.append(entry)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_key_depends_on_everything() -> None:
    base = {
        "source": "model {}", "included": {"a.stan": "x"}, "options": {"opt_level": 3}, "versions": {"llvmlite": "1"},
        "cpu": "generic", "features": "+fma",
    }  # fmt: skip
    changes = {
        "source": "model { }", "included": {"a.stan": "y"}, "options": {"opt_level": 2}, "versions": {"llvmlite": "2"},
        "cpu": "other", "features": "-fma",
    }  # fmt: skip
    keys = {cache_key(**base)} | {cache_key(**(base | {name: value})) for name, value in changes.items()}
    assert len(keys) == len(base) + 1
    assert cache_key(**base) == cache_key(**dict(reversed(base.items())))


def test_folder_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ULAM_CACHE_DIR", str(tmp_path / "chosen"))
    assert ObjectCache().folder == tmp_path / "chosen"
    monkeypatch.delenv("ULAM_CACHE_DIR")
    assert Path(object_cache.default_folder()).name == "ulam"


def test_the_module_stands_alone() -> None:
    program = (
        "import sys, ulam.emit.object_cache; "
        "print([m for m in sys.modules if m.split('.')[0] in ('xdsl', 'numpy', 'llvmlite', 'platformdirs')])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# ---------------------------------------------------------------- one at a time


def test_one_at_a_time_makes_an_entry(cache: ObjectCache) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work(number: int) -> None:
        with cache.alone(KEY, lambda: None):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.005)
            inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8 and list(cache.folder.iterdir()) == []


def test_who_waits_can_be_ended_and_the_dead_are_not_waited_for(cache: ObjectCache) -> None:
    code = (
        "import os, sys; from ulam.emit.object_cache import ObjectCache\n"
        f"with ObjectCache(sys.argv[1]).alone({KEY!r}, lambda: None):\n"
        "    print('locked', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(cache.folder)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None and holder.stdout.readline() == b"locked\n"

    def refuse() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError), cache.alone(KEY, refuse):
        raise AssertionError("two at a time")
    with cache.alone("another", refuse):
        pass
    holder.kill()
    holder.communicate()
    with cache.alone(KEY, lambda: None):
        assert len(list(cache.folder.iterdir())) == 1
    assert list(cache.folder.iterdir()) == []


def test_where_no_file_can_be_locked_nobody_waits(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with cache.alone(KEY, lambda: pytest.fail("waited")):
        pass


def test_the_limit_is_chosen_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ULAM_CACHE_LIMIT", "1")
    cache = ObjectCache(tmp_path / "cache")
    for key in "abcd":
        cache.put(key, {}, {"f": bytes(400_000)})
    assert (cache.limit, cache.size()[0]) == (1 << 20, 2)
    monkeypatch.setenv("ULAM_CACHE_LIMIT", "much")
    with pytest.raises(CacheFolderError, match="should be a number of MiB"):
        ObjectCache(tmp_path / "cache")


def test_the_folder_is_gone_through_for_some_entries(tmp_path: Path) -> None:
    """Each process may write few entries: which ones look after the others is told by their keys."""
    folder = tmp_path / "cache"
    for number in range(256):
        key = cache_key(source=str(number), cpu="", features="")
        ObjectCache(folder, limit=100_000).put(key, {}, {"f": bytes(1_000)})
    assert ObjectCache(folder).size()[1] <= 200_000
