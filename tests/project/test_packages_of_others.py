"""A package outside of the repository adds a pass, a level, a distribution and an external function: all work by name,
in Python and in the commands, once it is installed with pip.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

PACKAGE = {
    "pyproject.toml": """
        [build-system]
        requires = []
        build-backend = "backend"
        backend-path = ["."]

        [project]
        name = "extras"
        version = "1.2"
        """,
    "entry_points.txt": """
        [ulam.passes]
        wider-scales = extras.passes:WiderScales

        [ulam.levels]
        wide = extras.passes:WIDE

        [ulam.library]
        extras = extras:LIBRARY
        """,
    "backend.py": """
        # Makes a wheel of the folder `extras`, with nothing but the standard library.
        from pathlib import Path
        from zipfile import ZipFile

        WHEEL = "Wheel-Version: 1.0\\nGenerator: here\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"


        def build_wheel(folder, config_settings=None, metadata_directory=None):
            name, info = "extras-1.2-py3-none-any.whl", "extras-1.2.dist-info"
            files = {str(path): path.read_text() for path in Path("extras").rglob("*") if path.is_file()}
            files[f"{info}/METADATA"] = "Metadata-Version: 2.1\\nName: extras\\nVersion: 1.2\\n"
            files[f"{info}/WHEEL"] = WHEEL
            files[f"{info}/entry_points.txt"] = Path("entry_points.txt").read_text()
            files[f"{info}/RECORD"] = "".join(f"{path},,\\n" for path in [*files, f"{info}/RECORD"])
            with ZipFile(Path(folder, name), "w") as wheel:
                for path, text in files.items():
                    wheel.writestr(path, text)
            return name
        """,
    "extras/__init__.py": """
        from pathlib import Path

        import ulam

        halved = ulam.external(lambda x: x / 2, lambda x, adjoint: adjoint / 2)
        LIBRARY = ulam.StanLibrary(Path(__file__).parent / "stan", external={"halved": halved, "tripled": halved})
        """,
    "extras/passes.py": """
        from dataclasses import dataclass
        from typing import ClassVar

        import ulam
        from ulam.dialects import stan
        from xdsl.context import Context
        from xdsl.dialects.builtin import FloatAttr, ModuleOp
        from xdsl.passes import ModulePass


        @dataclass(frozen=True)
        class WiderScales(ModulePass):
            # Constants 2.0 become 4.0.
            name: ClassVar[str] = "wider-scales"

            def apply(self, ctx: Context, op: ModuleOp) -> None:
                for inner in op.walk():
                    if isinstance(inner, stan.ConstantOp) and getattr(inner.value, "value", None) is not None:
                        if getattr(inner.value.value, "data", None) == 2.0 and isinstance(inner.value, FloatAttr):
                            inner.properties["value"] = FloatAttr(4.0, inner.value.type)


        WIDE = ulam.OptimizationLevel("wider-scales", like=0)
        """,
    "extras/stan/kumaraswamy.stan": """\
real kumaraswamy_lpdf(real y, real a, real b) {
  require_positive(a);
  require_positive(b);
  return log(a) + log(b) + (a - 1) * log(y) + (b - 1) * log1m(y ^ a);
}

real halved(real x);
""",
}
PROGRAM = """
functions { real tripled(real x); }
parameters { real<lower=0> a; }
model {
  [0.2, 0.5] ~ kumaraswamy(a, 2.0);
  target += halved(a) + sum(halved([a, a])) + tripled(a);
}
"""

USE = """
import json, sys
import ulam

program = open(sys.argv[1]).read()
found = {}
for name, options in {
    "plain": {"opt_level": 0}, "level": {"opt_level": "wide"}, "passes": {"passes": "wider-scales"},
}.items():
    model = ulam.StanModel(program, **options)
    value, gradient = model.log_density_gradient([0.0], propto=False)
    found[name] = [value, gradient[0], "extras" in sys.modules]
print(json.dumps(found))
"""


def expected(b: float) -> tuple[float, float]:
    """Log density and its derivative by log(a), at a = 1."""
    from math import log

    y = (0.2, 0.5)
    value = sum(log(b) + (b - 1) * log(1 - x) for x in y) + 2.0
    slope = sum(1 + log(x) - (b - 1) * x * log(x) / (1 - x) for x in y) + 2.0
    return value, slope + 1


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of processes that have the package."""
    folder = tmp_path_factory.mktemp("extras")
    for name, text in PACKAGE.items():
        path = folder / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if name.endswith(".stan") else dedent(text).lstrip())
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    target = folder / "installed"
    subprocess.run([*command, "--target", str(target), str(folder / "source")], check=True, timeout=300)
    (folder / "m.stan").write_text(PROGRAM)
    yield {
        **os.environ, "PYTHONPATH": str(target), "ULAM_CACHE_DIR": str(folder / "cache"),
        "PROGRAM": str(folder / "m.stan"), "FOLDER": str(folder),
    }  # fmt: skip


def run(environment: dict[str, str], *words: str, status: int = 0) -> str:
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def command(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def test_all_parts_by_name(installed: dict[str, str]) -> None:
    found = json.loads(run(installed, sys.executable, "-c", USE, installed["PROGRAM"]))
    for name, b in (("plain", 2.0), ("level", 4.0), ("passes", 4.0)):
        value, slope = expected(b)
        assert found[name][:2] == pytest.approx([value, slope], rel=1e-12), name
    again = json.loads(run(installed, sys.executable, "-c", USE, installed["PROGRAM"]))  # from the cache
    assert {name: values[:2] for name, values in again.items()} == {name: v[:2] for name, v in found.items()}


def test_all_parts_in_commands(installed: dict[str, str]) -> None:
    model = installed["PROGRAM"]
    point = ("--unconstrained", "0", "--no-propto")
    told = json.loads(run(installed, command("ulam"), "log-density", model, *point, "-O", "wide"))
    assert told["log_density"] == pytest.approx(expected(4.0)[0], rel=1e-12)
    shown = run(installed, command("stan-opt"), "-O", "wide", "-t", "stan", model)
    assert "kumaraswamy(a, 4" in shown and "real tripled(real x);" in shown


@pytest.mark.slow
def test_more_commands(installed: dict[str, str]) -> None:
    model = installed["PROGRAM"]
    point = ("--unconstrained", "0", "--no-propto")
    for options, b in (((), 2.0), (("--passes", "wider-scales"), 4.0)):
        told = json.loads(run(installed, command("ulam"), "log-density", model, *point, *options))
        assert told["log_density"] == pytest.approx(expected(b)[0], rel=1e-12)
    assert run(installed, command("ulam"), "check", model) == ""
    assert "wider-scales" in run(installed, command("stan-opt"), "--list-passes")


@pytest.mark.slow
def test_cached_code_goes_with_the_package(installed: dict[str, str]) -> None:
    run(installed, sys.executable, "-c", USE, installed["PROGRAM"])
    definitions = Path(installed["PYTHONPATH"], "extras", "stan", "kumaraswamy.stan")
    kept = definitions.read_text()
    definitions.write_text(kept.replace("return log(a)", "return 100 + log(a)"))
    try:
        found = json.loads(run(installed, sys.executable, "-c", USE, installed["PROGRAM"]))
        assert found["plain"][0] == pytest.approx(expected(2.0)[0] + 200, rel=1e-12)
    finally:
        definitions.write_text(kept)
    without = {**installed, "PYTHONPATH": ""}
    assert "there is no distribution 'kumaraswamy'" in run(
        without, command("ulam"), "log-density", installed["PROGRAM"], "--unconstrained", "0", status=1
    )
