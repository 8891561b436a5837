"""The archive of compiled modules: what is imported from it is what the sources say, and it holds for these only."""

import importlib.util
import inspect
import sys
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

import ulam.dialects.integers
from ulam.runtime import module_archive

INTEGERS = "ulam.dialects.integers"


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module_archive, "PACKAGES", ("dialects",))
    path = tmp_path / "within" / "compiler.modules"
    module_archive._write(str(path))
    return path


def test_what_is_in_it_is_what_the_sources_say(archive: Path) -> None:
    finder = module_archive._read(str(archive))
    assert finder is not None
    for name, source, is_package in module_archive._modules():
        place = module_archive.ModulePlace(*finder._places[name])
        spec = importlib.util.spec_from_file_location(name, source)
        assert spec is not None and place[:3] == (spec.origin, spec.cached, is_package)
    assert {"ulam.dialects", "ulam.dialects.rt", "ulam.dialects.stan.expressions"} <= set(finder._places)
    assert [each.name for each in archive.parent.iterdir()] == [archive.name]


def test_a_module_of_it_is_like_one_of_a_file(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = ulam.dialects.integers
    finder = module_archive._read(str(archive))
    assert finder is not None and finder.find_spec(INTEGERS) is None  # what is reloaded comes from its file
    monkeypatch.delitem(sys.modules, INTEGERS)
    spec = finder.find_spec(INTEGERS)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    names = ("__file__", "__cached__", "__package__", "__doc__")
    assert [getattr(made, name) for name in names] == [getattr(usual, name) for name in names]
    assert made.quotient(-7, 2) == usual.quotient(-7, 2)
    assert inspect.getsource(made.quotient) == inspect.getsource(usual.quotient)
    monkeypatch.delitem(sys.modules, "ulam.dialects.stan", raising=False)
    package = finder.find_spec("ulam.dialects.stan")
    assert package is not None
    assert list(package.submodule_search_locations or ()) == [str(Path(package.origin or "").parent)]


@pytest.mark.parametrize(
    "damage", [lambda text: text[:-1], lambda text: text[:200], lambda text: b"", lambda text: b"?" + text]
)
def test_it_does_not_hold_if_it_is_damaged(archive: Path, damage: object) -> None:
    archive.write_bytes(damage(archive.read_bytes()))  # type: ignore[operator]
    assert module_archive._read(str(archive)) is None


def test_it_is_made_again_when_a_file_of_the_package_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module_archive, "PACKAGES", ("dialects",))
    path = tmp_path / "compiler.modules"
    monkeypatch.setattr(module_archive, "archive_path", lambda: str(path))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module_archive.use_archive()
    assert not path.exists()
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(SourceFileLoader, "_cache_bytecode", lambda *_: None)
    module_archive.use_archive()
    first = path.read_bytes()
    assert isinstance(sys.meta_path[0], module_archive.ArchiveFinder)
    module_archive.use_archive()
    assert path.read_bytes() == first
    monkeypatch.setattr(module_archive, "package_fingerprint", lambda: "0" * 64)
    assert module_archive._read(str(path)) is None
    module_archive.use_archive()
    assert path.read_bytes() != first and module_archive._read(str(path)) is not None


def test_where_it_is_follows_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    assert module_archive.archive_path().startswith(str(tmp_path))
    assert sys.implementation.cache_tag in Path(module_archive.archive_path()).name


def test_importing_falls_back_where_nothing_may_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr(module_archive, "archive_path", lambda: str(blocked / "compiler.modules"))
    before: list[object] = list(sys.meta_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    module_archive.use_archive()
    assert list(sys.meta_path) == before
    assert isinstance(import_module(INTEGERS), ModuleType)
