"""Time from source text and data to the first gradient, in a fresh process, imports included, stage by stage.

    python benchmarks/first_gradient.py [--repeat N] [--json] [MODEL.stan DATA.json]...

Each model runs in processes of its own: `cold` with an empty object cache, `cached` with what `cold` left there. Both
find Python's bytecode compiled, as after an installation. A stage has the CPU time of the process and the wall time, in
milliseconds, without the stages inside of it; of several runs the one with the least CPU time counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parent.parent / "examples"

IMPORTS = (
    "numpy", "llvmlite.binding", "ulam.runtime.model", "ulam.runtime.cached_compiler", "ulam.runtime.compiler",
    "ulam.frontend.parse.program", "ulam.frontend.check.program", "ulam.frontend.lower.program",
    "ulam.passes.pipelines", "ulam.passes.lowering_pipeline",
    "ulam.passes.autodiff.reverse_mode", "ulam.emit.llvm_module",
)  # fmt: skip
"""What a compile imports; a cached start imports the first four only, when it comes to them."""

STAGES = (
    ("parse", "ulam.frontend.parse.program", "parse_program"),
    ("type check", "ulam.frontend.check.program", "check_program"),
    ("to stan dialect", "ulam.frontend.lower.program", "lower_program"),
    ("passes of the level", "ulam.passes.pipelines", "run_pipeline"),
    ("value form", "ulam.passes.lowering_pipeline", "to_value_form"),
    ("lowering", "ulam.passes.lowering_pipeline", "begin_unit"),
    ("passes of the unit", "ulam.passes.lowering_pipeline", "finish_unit"),
    ("differentiation", "ulam.passes.autodiff.reverse_mode", "reverse_mode"),
    ("emission", "ulam.emit.llvm_module", "emit_module"),
    ("LLVM passes", "ulam.emit.jit", "_optimize"),
    ("LLVM code", "ulam.emit.jit", "compile_object"),
    ("link", "ulam.runtime.program", "load_object"),
)
"""Stage, module, function whose time it is."""

ORDER = (
    "interpreter", "imports", *(stage for stage, *_ in STAGES), "cache, data, bind", "first call", "total",
)  # fmt: skip

FORBIDDEN = (
    "xdsl", "llvmlite", "platformdirs", "orjson", "rich", "typer", "numpy.random", "importlib.metadata")  # fmt: skip
"""What a cached start does without."""


# ---------------------------------------------------------------- the measured process


class Stopwatch:
    """CPU and wall time of stages that may contain each other."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}
        self._inner: list[list[float]] = []

    @contextmanager
    def stage(self, name: str) -> Any:
        self._inner.append([0.0, 0.0])
        start = time.process_time(), time.perf_counter()
        try:
            yield
        finally:
            spent = [time.process_time() - start[0], time.perf_counter() - start[1]]
            inner = self._inner.pop()
            entry = self.times.setdefault(name, [0.0, 0.0])
            for k in range(2):
                entry[k] += spent[k] - inner[k]
                if self._inner:
                    self._inner[-1][k] += spent[k]

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            with self.stage(name):
                return function(*arguments, **options)

        return timed


def child(model_path: str, data_path: str, kind: str, started: float) -> None:
    """Compiles, binds and takes one gradient; prints the stages as JSON."""
    watch = Stopwatch()
    watch.times["interpreter"] = [time.process_time(), time.time() - started]
    with watch.stage("imports"):
        if kind == "cold":
            for name in IMPORTS:
                import_module(name)
                if name == "ulam.runtime.compiler":
                    import_module(name).load_stages()  # without the collector
        import numpy as np

        import ulam

        model_class = ulam.StanModel
        import ulam.runtime.cached_compiler
        import ulam.runtime.program
    for stage, module_name, function in STAGES:
        if kind == "cold" or module_name in sys.modules:
            module = sys.modules[module_name]
            setattr(module, function, watch.wrap(stage, getattr(module, function)))
    with watch.stage("cache, data, bind"):
        model = model_class(model_path, data=data_path)
    theta = np.full(model.param_unc_num(), 0.1)
    with watch.stage("cache, data, bind"):
        unit = model._program.unit("gradient_propto")  # pyright: ignore[reportPrivateUsage]
        assert unit.failure is None
    with watch.stage("first call"):
        model.log_density_gradient(theta)
    watch.times["total"] = [time.process_time(), time.time() - started]
    imported = sorted(name for name in FORBIDDEN if name in sys.modules)
    print(json.dumps({"stages": watch.times, "imported": imported}))


# ---------------------------------------------------------------- the report


def run(model: Path, data: Path, kind: str, cache: Path, bytecode: Path) -> dict[str, Any]:
    environment = {**os.environ, "ULAM_CACHE_DIR": str(cache), "PYTHONPYCACHEPREFIX": str(bytecode)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, __file__, "--child", str(model), str(data), kind, repr(time.time())]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{model}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(model: Path, data: Path, repeat: int, folder: Path) -> dict[str, Any]:
    """The best of several cold and cached runs."""
    found: dict[str, Any] = {"model": model.stem, "lines": len(model.read_text(encoding="utf-8").splitlines())}
    bytecode = folder / "bytecode"
    for kind in ("cold", "cached"):
        results = []
        for k in range(repeat):
            cache = folder / (f"{model.stem}.{k}" if kind == "cold" else f"{model.stem}.0")
            results.append(run(model, data, kind, cache, bytecode))
        found[kind] = min(results, key=lambda result: result["stages"]["total"][0])
    return found


def table(results: Sequence[dict[str, Any]]) -> str:
    """One block a model: a line for each stage, CPU and wall milliseconds cold and cached."""
    lines: list[str] = []
    for result in results:
        cold, cached = result["cold"]["stages"], result["cached"]["stages"]
        lines.append(f"{result['model']} ({result['lines']} lines), ms")
        lines.append(f"  {'':20} {'cold CPU':>10} {'wall':>8} {'cached CPU':>12} {'wall':>8}")
        for stage in ORDER:
            cells = [f"{1e3 * v:{w}.1f}" for v, w in zip(cold[stage], (10, 8), strict=True)]
            cells += [f"{1e3 * v:{w}.1f}" for v, w in zip(cached.get(stage, ()), (12, 8), strict=False)]
            lines.append(f"  {stage:20} {' '.join(cells)}")
        if result["cached"]["imported"]:
            lines.append(f"  a cached start imports {', '.join(result['cached']['imported'])}")
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], sys.argv[3], sys.argv[4], float(sys.argv[5]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="models, each followed by its data; default: the examples")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    files: list[Path] = arguments.files
    if len(files) % 2:
        parser.error("each model needs its data")
    pairs = list(zip(files[::2], files[1::2], strict=True))
    if not pairs:
        pairs = [(model, model.with_suffix(".json")) for model in sorted(EXAMPLES.glob("*.stan"))]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(*pairs[0], "cold", folder / "first", folder / "bytecode")  # compiles Python's bytecode
        results = [measure(model, data, arguments.repeat, folder) for model, data in pairs]
    print(json.dumps(results) if arguments.json else table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
