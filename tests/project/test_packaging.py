"""The packaging: every sub-package is listed, data files are shipped, importing is cheap and happens once."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig
import tomllib
import venv
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = {name: folder for name, folder in PROJECT["tool"]["setuptools"]["package-dir"].items()}


def folder_of(package: str) -> Path:
    """The folder of a package, as setuptools derives it from the mapping."""
    if package in FOLDERS:
        return ROOT / FOLDERS[package]
    parent, _, last = package.rpartition(".")
    return folder_of(parent) / last


def packages_on_disk() -> set[str]:
    found = {"ulam"}
    for package, folder in FOLDERS.items():
        if package == "ulam":
            continue
        for init in (ROOT / folder).rglob("__init__.py"):
            inner = init.parent.relative_to(ROOT / folder).parts
            found.add(".".join((package, *inner)))
    return found


def test_every_package_is_listed() -> None:
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages_on_disk()


@pytest.mark.parametrize("package", PROJECT["tool"]["setuptools"]["packages"])
def test_folders_of_code_are_packages(package: str) -> None:
    folder = folder_of(package)
    assert (folder / "__init__.py").is_file()
    for child in folder.iterdir():
        if child.is_dir() and any(child.glob("*.py")):
            assert (child / "__init__.py").is_file(), f"{child} has no __init__.py"


@pytest.mark.parametrize("package", PROJECT["tool"]["setuptools"]["packages"])
def test_data_files_are_shipped(package: str) -> None:
    data = PROJECT["tool"]["setuptools"]["package-data"]
    patterns = [*data.get("*", []), *data.get(package, [])]
    for path in folder_of(package).iterdir():
        if path.is_file() and path.suffix not in (".py", ".pyc", ".so", ".a") and not path.name.startswith("."):
            assert any(fnmatch(path.name, pattern) for pattern in patterns), f"{path} is not in package-data"


def test_sources_of_the_extension_are_in_the_distribution() -> None:
    manifest = (ROOT / "MANIFEST.in").read_text()
    assert "graft runtime/c" in manifest


def run_python(code: str, folder: Path, python: str | Path = sys.executable) -> str:
    environment = {**os.environ}
    finished = subprocess.run([python, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()


def test_import_from_another_folder(tmp_path: Path) -> None:
    assert run_python("import ulam.runtime.c_library as n; print(n.library().ulam_abi() == n.ABI)", tmp_path) == "True"


def test_links_of_the_editable_installation() -> None:
    """Every folder of the mapping, and every file of `api`, is linked: what is imported is the checkout."""
    links = {path.name: path.resolve() for path in (ROOT / "editable" / "ulam").iterdir() if path.is_symlink()}
    folders = {package.removeprefix("ulam."): ROOT / folder for package, folder in FOLDERS.items() if package != "ulam"}
    files = {path.name: path for path in (ROOT / FOLDERS["ulam"]).iterdir() if path.suffix in (".py", ".typed")}
    assert links == {**folders, **files}


def test_types_are_checked_in_every_folder() -> None:
    """pyright leaves out folders whose names begin with a dot, whatever it is told, and follows no links below those
    that it is told: each is named, by the name that the package has."""
    included = set(PROJECT["tool"]["pyright"]["include"])
    links = {path for path in (ROOT / "editable" / "ulam").iterdir() if path.is_dir() and path.is_symlink()}
    assert {str(path.relative_to(ROOT)) for path in links} | {FOLDERS["ulam"], "tests"} <= included
    for place in included:
        assert not any(part.startswith(".") for part in Path(place).parts), place
        assert (ROOT / place).exists(), place


def test_modules_hide_nothing() -> None:
    """The working folder comes first on Python's path: a module of ours must not be taken for one of the standard
    library, or for the package itself. `trace` is for the library's command line only."""
    hidden = sys.stdlib_module_names - {"trace"} | {"ulam"}
    folders = [ROOT / folder for folder in set(FOLDERS.values())]
    found = [path for folder in folders for path in folder.rglob("*.py") if path.stem in hidden]
    assert found == [], "rename them: `import ulam` fails in their folders"


IS_THE_PACKAGE = (
    "import ulam, ulam.runtime.c_library as n; print(ulam.StanModel.__name__, n.library().ulam_abi() == n.ABI)"
)


def test_import_from_the_folder_above_a_checkout(tmp_path: Path) -> None:
    """A folder `ulam` of the working folder, without an `__init__.py`, does not hide the package."""
    (tmp_path / "ulam").symlink_to(ROOT)
    assert run_python(IS_THE_PACKAGE, tmp_path) == "StanModel True", "install again: pip install -e ."


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-e",)], ids=["ordinary", "editable"])
def test_import_of_a_fresh_installation(options: tuple[str, ...], tmp_path: Path) -> None:
    """A clone named `ulam`, installed in an environment of its own: what it depends on is taken from this one."""
    checkout, environment, elsewhere = tmp_path / "ulam", tmp_path / "environment", tmp_path / "elsewhere"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(checkout)], check=True)
    venv.create(environment, with_pip=True)
    elsewhere.mkdir()
    python = environment / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", *options, str(checkout)], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    inner = (checkout, *sorted(checkout / folder for folder in FOLDERS.values()))
    for folder in (elsewhere, tmp_path, *inner):
        assert run_python(IS_THE_PACKAGE, folder, python) == "StanModel True", folder
        place = Path(run_python("import ulam; print(ulam.__file__)", folder, python))
        assert place.resolve() == (checkout / "api" / "__init__.py" if options else packages / "ulam" / "__init__.py")


def test_import_is_cheap(tmp_path: Path) -> None:
    heavy = "{'numpy', 'scipy', 'xdsl', 'llvmlite', 'typer', 'rich', 'scipy_openblas32', 'platformdirs'}"
    assert run_python(f"import sys, ulam; print(sorted({heavy} & set(sys.modules)))", tmp_path) == "[]"


CACHED_START = """
import sys
import numpy as np

early = set(sys.modules)
import ulam

model = ulam.StanModel("data { int N; vector[N] y; } parameters { real m; } model { y ~ normal(m, 1); }",
                       data={"N": 2, "y": [1.0, 2.0]})
model.log_density_gradient(np.array([0.5]))
print(*sorted(name for name in sys.modules if name not in early))
"""
NOT_FROM_THE_CACHE = (
    "xdsl", "llvmlite", "platformdirs", "typer", "rich", "scipy", "email", "urllib", "pathlib", "tempfile", "shutil",
    "difflib", "importlib.metadata", "importlib.resources", "numpy.random", "numpy.linalg", "concurrent", "subprocess",
    "ulam.runtime.profiling", "ulam.tracing.session", "ulam.runtime.optimizers", "ulam.runtime.sampling",
    "ulam.emit.jit", "ulam.frontend.parse", "ulam.frontend.check", "ulam.frontend.lower", "ulam.passes.optimize",
    "ulam.dialects.stan",
)  # fmt: skip
"""What a start from the cache does without, on the systems whose objects it loads itself."""


@pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="LLVM loads the objects")
def test_a_start_from_the_cache_imports_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ULAM_CACHE_DIR", str(tmp_path / "cache"))
    run_python(CACHED_START, tmp_path)
    imported = run_python(CACHED_START, tmp_path).split()
    unwanted = [name for name in imported if name.startswith(NOT_FROM_THE_CACHE)]
    assert not unwanted
    assert len([name for name in imported if name.startswith("ulam")]) < 60


def test_public_names_resolve(tmp_path: Path) -> None:
    assert run_python("import ulam; print(all(getattr(ulam, n) for n in ulam.__all__))", tmp_path) == "True"


def test_unknown_name() -> None:
    import ulam

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ulam.nothing


def test_version_is_the_distributions() -> None:
    import ulam

    assert ulam.__version__ == PROJECT["project"]["version"]
