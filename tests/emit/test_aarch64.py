"""AArch64, emulated: the C runtime and compiled models give the values that they give on this machine.

Needs a cross compiler and QEMU (Debian: gcc-aarch64-linux-gnu, libc6-dev-arm64-cross, qemu-user), and from the package
index NumPy's library of random distributions for AArch64. The calls are the same on both sides: see remote_calls.py.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_calls import ELEMENTS, PULLBACKS, column_major, random
from numpy.typing import NDArray
from remote_calls import Remote, build_driver
from runtime_builds import BUILDS, build_runtime, c_compiler
from special_values import REFERENCE, TOLERANCE

import ulam
from ulam.emit import jit
from ulam.emit.primitives import PRIMITIVES
from ulam.emit.target import Host
from ulam.library.kernels import KERNELS, Kernel
from ulam.passes.units import UNITS
from ulam.runtime.c_library import library_path
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.names import to_compiled

CROSS_COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
MISSING = [tool for tool in (CROSS_COMPILER, EMULATOR) if shutil.which(tool) is None]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HOST = Host("aarch64-unknown-linux-gnu", "generic", "+neon")
SEED = 20240613

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    pytest.mark.skipif(c_compiler() is None, reason="there is no C compiler"),
]


def random_distributions() -> Path:
    """The folder of libnpyrandom.a for AArch64, of the version of NumPy that is here."""
    folder = BUILDS / f"numpy-{np.__version__}-aarch64"
    member = "numpy/random/lib/libnpyrandom.a"
    if not (folder / member).exists():
        platforms = [f"--platform={name}_aarch64" for name in ("manylinux_2_28", "manylinux_2_27", "manylinux2014")]
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", *platforms]
        done = subprocess.run([*pip, "-d", str(folder), f"numpy=={np.__version__}"], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"NumPy for AArch64 cannot be had: {done.stderr.strip().splitlines()[-1]}")
        (wheel,) = folder.glob("*.whl")
        zipfile.ZipFile(wheel).extract(member, folder)
    return (folder / member).parent


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    """This machine's runtime."""
    compiler = c_compiler()
    assert compiler is not None
    with Remote([str(build_driver(compiler, tmp_path_factory.mktemp("here")))]) as remote:
        remote.open(library_path())
        yield remote


@pytest.fixture(scope="module")
def runtime() -> Path:
    """The runtime for AArch64."""
    return build_runtime(compiler=CROSS_COMPILER, library_dirs=[random_distributions()])


@pytest.fixture(scope="module")
def there(runtime: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    """The same, emulated."""
    libc = subprocess.run([CROSS_COMPILER, "-print-file-name=libc.so.6"], capture_output=True, text=True, check=True)
    system = Path(libc.stdout.strip()).resolve().parents[1]
    driver = build_driver(CROSS_COMPILER, tmp_path_factory.mktemp("there"))
    with Remote([EMULATOR, "-L", str(system), str(driver)]) as remote:
        remote.open(runtime)
        yield remote


def new_context(remote: Remote) -> int:
    return remote.call_pointer("ulam_context_new", 1 << 20)


# ------------------------------------------------------------------------------------------------ kernels


def call_kernel(
    remote: Remote, name: str, inputs: list[Any], sizes: dict[str, int], values: list[float], pull_back: bool
) -> list[NDArray[Any]]:
    """The status and what is written by a kernel and, if asked for, by its pullback."""
    kernel = KERNELS[name]
    context = new_context(remote)
    remote.write(context + 80, np.array([remote.generator(SEED)]).tobytes())  # ctx->rng
    arguments, buffers, written = _arguments(remote, kernel, inputs, sizes, values)
    status = remote.call(f"ulam_{name}", context, *arguments)
    status = status if kernel.throws else 0
    results = [np.array([status])] + [remote.read(*buffer) for buffer in written if not status]
    if pull_back and kernel.pullback is not None and not status:
        reals = [(buffer, p) for buffer, p in zip(buffers, _buffers(kernel), strict=True) if p.element == "f64"]
        start = [np.zeros(b[1].size) if p.kind == "in" else random(i, b[1].size) for i, (b, p) in enumerate(reals)]
        adjoints = [remote.copy(adjoint) for adjoint in start]
        remote.call(f"ulam_{kernel.pullback}", context, *arguments, *adjoints)
        results += [remote.read(a, like) for a, like in zip(adjoints, start, strict=True)]
    return results


def _buffers(kernel: Kernel) -> list[Any]:
    return [p for p in kernel.parameters if p.is_buffer]


def _arguments(
    remote: Remote, kernel: Kernel, inputs: list[Any], sizes: dict[str, int], values: list[float]
) -> tuple[list[int | float], list[tuple[int, NDArray[Any]]], list[tuple[int, NDArray[Any]]]]:
    """The arguments after the context; the buffers among them; those that the kernel writes."""
    arguments: list[int | float] = []
    buffers: list[tuple[int, NDArray[Any]]] = []
    written: list[tuple[int, NDArray[Any]]] = []
    given, scalars = iter(inputs), iter(values)
    for p in kernel.parameters:
        if p.kind == "size":
            arguments.append(sizes[p.size])
        elif p.kind == "value":
            value = next(scalars)
            arguments.append(float(value) if p.element == "f64" else int(value))
        else:
            element = ELEMENTS[p.element]
            count = eval(p.size, {"min": min}, {**sizes, "value": int(values[0]) if values else 0})
            array = column_major(next(given)).astype(element) if p.kind == "in" else np.zeros(count, element)
            buffers.append((remote.copy(array), array))
            arguments.append(buffers[-1][0])
            if p.kind != "in":
                written.append(buffers[-1])
    return arguments, buffers, written


def compare(here: list[NDArray[Any]], there: list[NDArray[Any]], tolerance: float) -> None:
    assert len(here) == len(there)
    for expected, found in zip(here, there, strict=True):
        if expected.dtype.kind == "i" or not tolerance:
            np.testing.assert_array_equal(found, expected)
        else:
            scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


PACKED = ("multiply", [random(1, 131, 70), random(2, 70, 97)], {"m": 131, "k": 70, "n": 97})
CASES = [PACKED, *(case[:3] for case in PULLBACKS)]
LIBM = {"log_determinant", "log_determinant_spd", "svd", "singular_values", "eigendecompose_sym", "eigenvalues_sym"}
"""Kernels that call functions of libm, whose last bit may be another one there. All others give the same bits."""


@pytest.mark.parametrize("case", CASES, ids=[f"{case[0]}-{'x'.join(map(str, case[2].values()))}" for case in CASES])
def test_kernels_and_pullbacks(here: Remote, there: Remote, case: tuple[str, list[Any], dict[str, int]]) -> None:
    name, inputs, sizes = case
    tolerance = 1e-13 if name in LIBM else 0.0
    one, other = (call_kernel(side, name, inputs, sizes, [], True) for side in (here, there))
    compare(one, other, tolerance)


SIMPLEX = np.array([0.1, 0.2, 0.3, 0.4])  # also ordered, positive
FACTOR = np.tril(random(3, 4, 4)) * 0.3 + np.diag([1.0, 1.5, 2.0, 2.5])


def random_arguments(name: str) -> tuple[list[Any], list[float]]:
    """Arguments within the domain."""
    inputs, values = [], []
    reals, integers = iter((0.3, 1.2, 0.7)), iter((4, 5, 6))
    only_scalars = not any(p.kind == "in" for p in KERNELS[name].parameters)
    for p in KERNELS[name].parameters:
        if p.kind == "value" and p.element == "f64":
            values.append(next(reals) if only_scalars and "lkj" not in name else 6.0)
        elif p.kind == "value":
            values.append(next(integers))
        elif p.kind == "in" and p.size == "n":
            inputs.append(SIMPLEX)
        elif p.kind == "in":
            inputs.append(FACTOR if "cholesky" in name else FACTOR @ FACTOR.T)
    return inputs, values


@pytest.mark.parametrize("name", [name for name, kernel in KERNELS.items() if kernel.effects == "rng"])
def test_draws(here: Remote, there: Remote, name: str) -> None:
    inputs, values = random_arguments(name)
    results = [call_kernel(side, name, inputs, {"n": 4}, values, False) for side in (here, there)]
    assert results[0][0] == 0, "the arguments are outside of the domain"
    compare(results[0], results[1], 1e-12)


@pytest.mark.parametrize("name", [name for name in KERNELS if name.startswith("sort_")])
def test_sorting(here: Remote, there: Remote, name: str) -> None:
    x = np.random.default_rng(1).integers(-9, 9, 200)  # with ties
    one, other = (call_kernel(side, name, [x], {"n": x.size}, [], False) for side in (here, there))
    compare(one, other, 0.0)


# ------------------------------------------------------------------------------------------------ special functions


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_reference_values_of_special_functions(there: Remote, name: str) -> None:
    for *arguments, expected in REFERENCE[name]:
        found = there.call_real(f"ulam_{name}", *map(float, arguments))
        assert found == pytest.approx(expected, rel=TOLERANCE.get(name, 1e-14), abs=2e-15 if expected else 1e-16)


@pytest.mark.parametrize("name", [name for name, form in PRIMITIVES.items() if form.kind == "runtime"])
def test_special_functions(here: Remote, there: Remote, name: str) -> None:
    points = {"lambert_wm1": [-0.2], "inv_erfc": [0.7], "inv_Phi": [0.2]}
    arguments = points.get(name, [1.7, 2.4, 0.4, 0.6][: PRIMITIVES[name].arity])
    expected, found = (side.call_real(PRIMITIVES[name].target, *arguments) for side in (here, there))
    assert np.isfinite(expected)
    assert found == pytest.approx(expected, rel=1e-12)


# ------------------------------------------------------------------------------------------------ compiled models


class RemoteModel:
    """The gradient of a program, compiled for AArch64 and called there."""

    def __init__(self, remote: Remote, runtime: Path, source: Path, local: ulam.StanModel, folder: Path) -> None:
        self._remote, self._runtime, self._folder = remote, runtime, folder
        self._compiler = Compiler(source.read_text(), source.name, CompileOptions(opt_level=3))
        self._context = new_context(remote)
        self._memory = remote.call_pointer("ulam_bound_memory_new")
        slots = max(self._compiler.compiled(unit).n_slots for unit in ("setup", "gradient_propto"))
        self._bound = remote.allocate(16 * slots)
        program = local._program  # pyright: ignore[reportPrivateUsage]
        values = program.bound_values("data")
        for variable in program.of_block("data"):
            value = np.asarray(values[variable.name])
            stored = to_compiled(variable, value) if variable.n_dims else value
            content = np.array([remote.copy(stored), *value.shape]) if variable.n_dims else stored.reshape(1)
            remote.write(self._bound + 8 * variable.slot, content.tobytes())
        self._load("setup")
        self._run("ulam_run_bind", remote.symbol(UNITS["setup"].symbol("prepare")), self._bound, self._memory)
        self._load("gradient_propto")
        self._run("ulam_run_bind", remote.symbol(UNITS["gradient_propto"].symbol("bind")), self._bound, self._memory)

    def _load(self, unit: str) -> None:
        code, linked = self._folder / f"{unit}.o", self._folder / f"{unit}.so"
        code.write_bytes(self._compiler.compiled(unit).code)
        command = [CROSS_COMPILER, "-shared", code, self._runtime, "-lm", "-o", linked]
        subprocess.run(list(map(str, command)), check=True)
        self._remote.open(linked)

    def _run(self, function: str, *arguments: int) -> None:
        assert self._remote.call(function, self._context, *arguments) == 0

    def log_density_gradient(self, theta: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        """With the Jacobian, as StanModel's."""
        remote = self._remote
        gradient = remote.copy(np.zeros(theta.size))
        entry = remote.symbol(UNITS["gradient_propto"].symbol("evaluate"))
        self._run("ulam_run_gradient", entry, self._bound, remote.copy(theta), gradient, 1)
        value = remote.read(self._context + 64, np.zeros(1))  # ctx->value
        return float(value[0]), remote.read(gradient, theta)


@pytest.fixture
def for_aarch64(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is made for AArch64."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    monkeypatch.setattr(jit, "host", lambda: HOST)


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.stan")))
def test_gradients_of_models(
    name: str, there: Remote, runtime: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source = EXAMPLES / f"{name}.stan"
    local = ulam.StanModel(str(source), data=str(source.with_suffix(".json")))
    theta = np.random.default_rng(2).uniform(-0.5, 0.5, local.param_unc_num())
    value, gradient = local.log_density_gradient(theta)
    request.getfixturevalue("for_aarch64")
    model = RemoteModel(there, runtime, source, local, tmp_path)
    found, slopes = model.log_density_gradient(theta)
    assert found == pytest.approx(value, rel=1e-11)
    np.testing.assert_allclose(slopes, gradient, rtol=1e-10, atol=1e-10 * np.max(np.abs(gradient)))
