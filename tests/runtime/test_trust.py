"""What docs/trust.md says: nothing that is loaded as data is run, and files are not written where they say."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.errors import DataError

pytestmark = pytest.mark.usefixtures("quick_code")

PROGRAM = "data { real y; } parameters { real x; } model { x ~ normal(y, 1); }"


class Ran(Exception):
    """What was loaded has been run."""


def run() -> None:
    raise Ran


class Payload:
    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return run, ()


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a saved fit in it."""
    folder = tmp_path_factory.mktemp("trust") / "study"
    ulam.fit_many(PROGRAM, [{"y": 1.0}], chains=1, warmup=20, draws=10, output=folder, progress=False)
    return folder


def changed(path: Path, out: Path, change: Callable[[str, bytes], bytes], more: dict[str, bytes] | None = None) -> Path:
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
        for name, data in (more or {}).items():
            new.writestr(name, data)
    return out


def pickled_array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([Payload()], dtype=object), allow_pickle=True)
    return buffer.getvalue()


@pytest.mark.parametrize("member", ["values.npy", "more.npy"])
def test_pickles_in_archives_are_refused(member: str, study: Path, tmp_path: Path) -> None:
    with pytest.raises(Ran):  # a reader that trusts would run it
        np.load(io.BytesIO(pickled_array()), allow_pickle=True)
    payload = pickled_array()
    saved = study / "fit-000000.ulam"
    more = {member: payload} if member == "more.npy" else None
    path = changed(saved, tmp_path / "a.ulam", lambda name, data: payload if name == member else data, more)
    with pytest.raises(DataError, match="holds no numbers"):
        ulam.load(path)


def test_loading_makes_no_use_of_pickle_and_compiles_nothing(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any, **__: Any) -> None:
        raise Ran

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    monkeypatch.setattr("ulam.runtime.program.load_object", forbidden)
    assert ulam.load(study / "fit-000000.ulam")["x"].shape == (1, 10)
    assert ulam.load_study(study)[0].fit["x"].shape == (1, 10)


def test_members_with_paths_are_written_nowhere(study: Path, tmp_path: Path) -> None:
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    more = {"../outside.npy": b"", "/tmp/ulam-outside.txt": b"x", "../outside.txt": b"x"}
    path = changed(study / "fit-000000.ulam", inside / "a.ulam", lambda _, data: data, more)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(DataError, match="damaged"):
        ulam.load(path)
    assert set(tmp_path.rglob("*")) == before and not os.path.exists("/tmp/ulam-outside.txt")


def test_a_small_file_cannot_ask_for_much_memory(study: Path, tmp_path: Path) -> None:
    """An array that says it is larger than it is."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 10, 100000000000000), }".ljust(117) + b"\n"
    huge = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(80)
    change: Callable[[str, bytes], bytes] = lambda name, data: huge if name == "values.npy" else data  # noqa: E731
    with pytest.raises(DataError, match="another size than it says"):
        ulam.load(changed(study / "fit-000000.ulam", tmp_path / "a.ulam", change))


def test_a_link_in_the_place_of_a_fit_is_only_read(study: Path, tmp_path: Path) -> None:
    """And what is no fit there is told, and replaced, not what it leads to."""
    import shutil

    folder = tmp_path / "copy"
    shutil.copytree(study, folder)
    precious = tmp_path / "precious"
    precious.write_text("kept")
    (folder / "fit-000000.ulam").unlink()
    (folder / "fit-000000.ulam").symlink_to(precious)
    with pytest.warns(UserWarning, match="made again"):
        ulam.fit_many(PROGRAM, [{"y": 1.0}], chains=1, warmup=20, draws=10, output=folder, progress=False)
    assert precious.read_text() == "kept"


def test_includes_read_what_the_user_can_read(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("the secret of this file")
    (tmp_path / "below").mkdir()
    with pytest.raises(ulam.CompileError, match="the secret of this file"):
        ulam.StanModel("#include ../secret.txt\n", include_paths=[tmp_path / "below"])
