"""`StanModel(tiered=True)`: the same bits from the first version on, which nobody but evaluations uses; what becomes of
errors, forks and the end of the process while the other is compiled.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forks import in_child

import ulam
from ulam.emit import jit
from ulam.emit.errors import CodeGenerationError
from ulam.runtime import compiler

PROGRAM = """
data { int N; vector[N] y; array[N] int g; }
parameters { vector[3] b; real<lower=0> s; matrix[2, 2] m; }
model {
  b ~ student_t(4, 0, 1);
  m[1] ~ normal(log1p_exp(m[2, 1]), s);
  for (n in 1:N) {
    y[n] ~ normal(b[g[n]] * exp(-square(y[n] / s)), s + 0.3);
  }
  target += -log_sum_exp(b) - sum(tanh(b) .* b);
}
"""
DATA = {"N": 9, "y": np.linspace(-2, 3, 9), "g": [1, 2, 3, 3, 2, 1, 1, 2, 3]}
THETA = np.linspace(-0.7, 1.1, 8)

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")


@pytest.fixture(autouse=True)
def all_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "LONG_TEXT", 0)


class Llvm:
    """What LLVM was asked for, and a way to make it wait, or fail, when it is to optimise."""

    def __init__(self, compile_object: Callable[..., bytes]) -> None:
        self._compile_object = compile_object
        self.asked: list[tuple[str, bool]] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self.error: Exception | None = None
        self.at_first_version: Callable[[], None] | None = None

    def __call__(self, text: str, pipeline: jit.Pipeline, *arguments: Any, **options: Any) -> bytes:
        optimised = pipeline is not jit.VAST
        self.asked.append((options["prefix"], optimised))
        if optimised and options["prefix"].startswith(("gradient", "value")):
            assert self.go_on.wait(60)
            if self.error is not None:
                raise self.error
        if not optimised and (act := self.at_first_version) is not None:
            self.at_first_version = None  # several threads may come here
            act()
        return self._compile_object(text, pipeline, *arguments, **options)


@pytest.fixture
def llvm(monkeypatch: pytest.MonkeyPatch) -> Llvm:
    watched = Llvm(jit.compile_object)
    monkeypatch.setattr(jit, "compile_object", watched)
    return watched


def tiered(opt_level: int = 1, **options: Any) -> ulam.StanModel:
    return ulam.StanModel(PROGRAM, data=DATA, opt_level=opt_level, tiered=True, cache=False, **options)


def bits(evaluation: tuple[float, np.ndarray]) -> bytes:
    return np.append(evaluation[1], evaluation[0]).tobytes()


@pytest.mark.parametrize("level", [0, 2])
def test_both_versions_have_the_same_bits(level: int, llvm: Llvm) -> None:
    model = tiered(level)
    llvm.go_on.clear()
    first, value = bits(model.log_density_gradient(THETA)), model.log_density(THETA, propto=False)
    llvm.go_on.set()
    model.finish_compiling()
    assert {("gradient_propto.", False), ("gradient_propto.", True)} <= set(llvm.asked)
    assert bits(model.log_density_gradient(THETA)) == first
    assert model.log_density(THETA, propto=False) == value
    assert llvm.asked.count(("gradient_propto.", True)) == 1


def test_what_evaluates_often_waits(llvm: Llvm) -> None:
    model = tiered()
    model.optimize()
    assert all(optimised for _, optimised in llvm.asked)
    assert llvm.asked.count(("gradient_propto.", True)) == 1
    model.log_density(THETA)
    assert all(optimised for _, optimised in llvm.asked)


def test_an_error_of_the_thread_is_told_to_who_needs_the_code(llvm: Llvm) -> None:
    model = tiered()
    llvm.error = CodeGenerationError("no such instruction")
    first = bits(model.log_density_gradient(THETA))
    with pytest.raises(ulam.CompileError, match="no such instruction"):
        model.sample(chains=1, warmup=1, draws=1, progress=False)
    assert bits(model.log_density_gradient(THETA)) == first
    llvm.error = None
    model.sample(chains=1, warmup=1, draws=1, progress=False)


def test_an_interrupt_ends_waiting_and_leaves_what_waits_for_llvm(
    llvm: Llvm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ULAM_CACHE_DIR", str(tmp_path))

    def new() -> ulam.StanModel:
        return ulam.StanModel(PROGRAM, data=DATA, opt_level=1, tiered=True)

    model = new()
    llvm.at_first_version = interrupt
    with pytest.raises(KeyboardInterrupt):
        model.log_density_gradient(THETA)
    llvm.go_on.clear()
    first = bits(model.log_density_gradient(THETA))
    threading.Timer(0.1, interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        model.finish_compiling()
    assert bits(model.log_density_gradient(THETA)) == first
    llvm.go_on.set()
    model.finish_compiling()
    assert bits(model.log_density_gradient(THETA)) == first
    assert llvm.asked.count(("gradient_propto.", True)) == 1
    llvm.asked.clear()
    assert bits(new().log_density_gradient(THETA)) == first
    assert llvm.asked == []


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_a_fork_waits(llvm: Llvm) -> None:
    model = tiered()
    llvm.go_on.clear()
    first = bits(model.log_density_gradient(THETA))
    threading.Timer(0.1, llvm.go_on.set).start()
    other = "parameters { real x; } model { x ~ normal(0, 3); }"
    assert in_child(
        lambda: bits(model.log_density_gradient(THETA)) == first
        and ulam.StanModel(other, cache=False, opt_level=0).log_density([0.0]) == 0
    )


def test_the_process_ends() -> None:
    lines = "".join(f"target += normal_lpdf(x | {k}, exp(x));" for k in range(60))
    code = f"import ulam\nm = ulam.StanModel('parameters {{ real x; }} model {{ {lines} }}', opt_level=0, tiered=True, "
    code += "cache=False)\nprint(m.log_density_gradient([0.5])[0] < 0)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert (result.stdout, result.stderr, result.returncode) == ("True\n", "", 0)


def test_higher_levels_have_one_version() -> None:
    with pytest.raises(ValueError, match="levels 0 to 2"):
        tiered(3)
