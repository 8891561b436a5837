"""What ulam exports is typed well enough for programs that are checked strictly."""

from __future__ import annotations

import inspect
import json
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import ulam

pytestmark = pytest.mark.embed

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "docs"))
import list_api  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def pyright_runs() -> None:
    """It is installed, and has the JavaScript engine that it loads when it first runs."""
    if shutil.which("pyright") is None or subprocess.run(["pyright", "--version"], capture_output=True).returncode:
        pytest.skip("pyright does not run here")


@pytest.mark.parametrize("program", ["consumer.py", "embedding_consumer.py"])
def test_strict_types_of_a_consumer(program: str, tmp_path: Path) -> None:
    """The package as it is installed, from a folder of somebody else's."""
    shutil.copy(HERE / program, tmp_path)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict", "include": [program]}))
    command = ["pyright", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert finished.returncode == 0 and "0 errors, 0 warnings" in finished.stdout, finished.stdout + finished.stderr


def uses_of_everything() -> str:
    """A program that names all that is exported, and all methods and properties of exported classes."""
    imports, uses = ["from __future__ import annotations", "", "import ulam"], list[str]()
    for module in list_api.module_names():
        if module in list_api.WITHOUT_LIST:
            continue
        imports += [f"import {module}"] * (module != "ulam")
        names = list_api.exported(module)
        uses += [f"{module.replace('.', '_')}_{name} = {module}.{name}" for name in names]
        if module.startswith("ulam.embed") or module == "ulam.ir":
            continue
        for name in names:
            value = getattr(import_module(module), name)
            if inspect.isclass(value) and (found := [member for member, _ in list_api.members(value)]):
                parts = ", ".join(f"x.{member}" for member in found)
                uses += [f"def of_{name}(x: {module}.{name}) -> list[object]:", f"    return [{parts}]"]
    program = ulam.build.Program("m")
    built = [program, program.value(1), program.type("int"), program.declare_function("f")]
    for value in built:
        parts = ", ".join(f"x.{member}" for member, _ in list_api.members(type(value)))
        uses += [f"def of_{type(value).__name__}() -> list[object]:", "    p = ulam.build.Program('m')"]
        uses += [f"    x = {_MADE[type(value).__name__]}", f"    return [x, {parts}]"]
    return "\n".join([*imports, "", *uses, ""])


_MADE = {
    "BuiltProgram": "p", "BuiltValue": "p.value(1)", "BuiltType": "p.type('int')",
    "BuiltFunction": "p.declare_function('f')",
}  # fmt: skip


def test_strict_types_of_everything(tmp_path: Path) -> None:
    (tmp_path / "everything.py").write_text(uses_of_everything())
    settings = {"typeCheckingMode": "strict", "include": ["everything.py"]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = ["pyright", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert finished.returncode == 0 and "0 errors, 0 warnings" in finished.stdout, finished.stdout + finished.stderr


def test_strict_types_find_a_mistake(tmp_path: Path) -> None:
    """The types say something: without the marker `py.typed` all would be unknown."""
    (tmp_path / "wrong.py").write_text("import ulam\n\nulam.StanModel('m.stan', optlevel=2).log_density('x').real\n")
    command = ["pyright", "--pythonpath", sys.executable, "wrong.py"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert finished.returncode == 1 and "optlevel" in finished.stdout
