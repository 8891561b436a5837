"""Large programs in pieces (kernel `evaluate_pieces`): what they compute, what a changed statement costs, and what
errors say then.

The programs are small; what counts as large is changed for the tests.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.emit import jit
from ulam.emit.object_cache import SUFFIX
from ulam.passes import pieces
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

PROGRAM = """\
functions {
  real penalty(real x, vector v) {
    return -square(x) * dot_self(v);
  }
}
data {
  int<lower=1> N;
  vector[N] y;
  array[N] int<lower=1, upper=3> g;
}
transformed data {
  vector[N] z = 2 * y;
  int K = N + 1;
}
parameters {
  real a;
  real<lower=0> s;
  vector[K] b;
  matrix[2, N] m;
  array[2] vector[3] v;
}
transformed parameters {
  vector[N] c = a + b[1:N];
}
model {
  real l = a * 2;
  a ~ normal(0, 1);
  s ~ exponential(1);
  b ~ normal(a, s);
  y ~ normal(c, s);
  for (n in 1:N) {
    real k = v[1][g[n]];
    k += v[2][g[n]];
    z[n] ~ normal(k, 1 + s);
  }
  target += penalty(l, to_vector(m));
  to_vector(m) ~ std_normal();
  {
    real early = l;
    early += s;
    target += -square(early);
  }
  l += 1;
  target += -square(l);
  v[1] ~ normal(l, 2);
  v[2] ~ student_t(4, l, 2);
  target += sum(columns_dot_self(m));
}
generated quantities {
  real r = normal_rng(a, s);
}
"""
DATA: dict[str, Any] = {"N": 4, "y": [0.5, -1, 2, 0.25], "g": [1, 3, 2, 1]}


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {"SMALLEST_PROGRAM": 0, "LEAST": 6, "USUAL": 12, "MOST": 30}.items():
        monkeypatch.setattr(pieces, name, value)
    monkeypatch.setenv("ULAM_CACHE_DIR", str(tmp_path))


def model_of(text: str, **options: Any) -> ulam.StanModel:
    return ulam.StanModel(text, data=options.pop("data", DATA), **options)


@pytest.fixture(scope="module")
def whole() -> ulam.StanModel:
    return model_of(PROGRAM, cache=False)


def first_gradient(model: ulam.StanModel) -> tuple[float, np.ndarray]:
    return model.log_density_gradient(np.full(model.param_unc_num(), 0.1))


def test_pieces_compute_what_the_program_does(whole: ulam.StanModel) -> None:
    model = model_of(PROGRAM, cache=False)
    theta = np.random.default_rng(1).normal(size=model.param_unc_num())
    for propto, jacobian in ((True, True), (False, True), (True, False)):
        value, gradient = model.log_density_gradient(theta, propto=propto, jacobian=jacobian)
        expected, slope = whole.log_density_gradient(theta, propto=propto, jacobian=jacobian)
        assert value == pytest.approx(expected, rel=1e-13)
        np.testing.assert_allclose(gradient, slope, rtol=1e-12)
        assert model.log_density(theta, propto=propto, jacobian=jacobian) == pytest.approx(expected, rel=1e-13)
    np.testing.assert_array_equal(
        model.param_constrain(theta, include_tp=True), whole.param_constrain(theta, include_tp=True)
    )


def test_a_changed_statement_costs_one_piece_and_other_lines_nothing(compiled: list[str]) -> None:
    first = first_gradient(model_of(PROGRAM))
    assert compiled.count("gradient_propto") >= 4
    compiled.clear()
    changed = first_gradient(model_of(PROGRAM.replace("v[2] ~ student_t(4,", "v[2] ~ student_t(5,")))
    assert compiled == ["gradient_propto"]
    assert changed[0] != first[0]
    compiled.clear()
    moved = "// one more line\n" + PROGRAM.replace("model {", "\nmodel { // here\n")
    assert first_gradient(model_of(moved))[0] == first[0]
    assert compiled == []


def message(work: Callable[[], object]) -> str:
    with pytest.raises(Exception) as raised:  # noqa: PT011  (of data or of the program; the text says which)
        work()
    return str(raised.value)


@pytest.mark.parametrize(
    ("before", "after", "data", "theta"),
    [
        ("", "", {**DATA, "g": [1, 4, 2, 1]}, 0.1),  # of the data block
        ("exponential(1)", "exponential(-1)", DATA, 0.1),  # in a piece, of data: found when it is bound
        ("real k = v[1][g[n]]", "real k = v[1][g[n] + 3]", DATA, 0.1),
    ],
)
def test_errors_name_the_present_line(before: str, after: str, data: dict[str, Any], theta: float) -> None:
    text = PROGRAM.replace(before, after) if before else PROGRAM

    def error(text: str, **options: Any) -> str:
        def work() -> None:
            model = model_of(text, data=data, **options)
            model.log_density_gradient(np.full(model.param_unc_num(), theta))

        return message(work)

    first = error(text)
    moved = "\n\n" + text
    assert first != error(moved) == error(moved, opt_level=0, cache=False)


def test_what_is_lost_of_the_cache_is_compiled_again(tmp_path: Path) -> None:
    first = first_gradient(model_of(PROGRAM))
    for number, path in enumerate(sorted(tmp_path.glob(f"*{SUFFIX}"))):
        if number % 3 == 0:
            path.unlink()
        elif number % 3 == 1:
            path.write_bytes(path.read_bytes()[:-9])
    again = first_gradient(model_of(PROGRAM))
    assert again[0] == first[0]
    np.testing.assert_array_equal(again[1], first[1])


def test_an_interrupt_ends_after_llvms_step_and_loses_no_piece_that_is_there(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compile_object, finished = jit.compile_object, list[str]()

    def interrupted(text: str, pipeline: jit.Pipeline, between: Callable[[], None], **options: Any) -> bytes:
        # LLVM is at work on the third, and takes as long as it is let; other threads may come here, too.
        if compiled.count("gradient_propto") == 2 and "interrupted" not in compiled:
            compiled.append("interrupted")
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(6000):
                between()
                time.sleep(0.01)
        code = compile_object(text, pipeline, between, **options)
        finished.append(options["prefix"])
        return code

    with monkeypatch.context() as patch:
        patch.setattr(jit, "compile_object", interrupted)
        with pytest.raises(KeyboardInterrupt):
            first_gradient(model_of(PROGRAM))
    assert compiled[-1] == "interrupted" and finished.count("gradient_propto.") == 2

    def compiled_now() -> tuple[int, float]:
        compiled.clear()
        value, _ = first_gradient(model_of(PROGRAM))
        return compiled.count("gradient_propto"), value

    others, value = compiled_now()
    monkeypatch.setenv("ULAM_CACHE_DIR", str(tmp_path / "another"))
    assert compiled_now() == (others + 2, value)


def test_programs_that_print_say_all_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    loud = PROGRAM.replace("  l += 1;", '  print("l is ", l);\n  l += 1;\n  print("now ", l);')
    first_gradient(model_of(loud))
    assert capsys.readouterr().out.split("\n")[:2] == ["l is 0.2", "now 1.2"]


def test_only_level_3_and_programs_without_profiles_are_taken_apart() -> None:
    profiled = PROGRAM.replace("s ~ exponential(1);", 'profile("s") { s ~ exponential(1); }')
    for text, options in (
        (PROGRAM, CompileOptions(opt_level=2, pieces=True)),
        (PROGRAM, CompileOptions(pieces=False)),
        (profiled, CompileOptions(pieces=True)),
    ):
        assert not Compiler(text, options=options).compiled("value_propto").pieces


def test_handles_and_libraries_of_large_programs() -> None:
    """A handle calls the pieces of its model; a library has none, it is compiled for itself."""
    model = model_of(PROGRAM)
    theta = np.full(model.param_unc_num(), 0.1)
    value, gradient = model.log_density_gradient(theta)
    handle = model.native_handle()
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, *[ctypes.c_void_p] * 4)
    found, slope = ctypes.c_double(), np.empty_like(theta)
    status = kind(handle.address)(
        theta.size, theta.ctypes.data, slope.ctypes.data, ctypes.addressof(found), handle.user_data
    )
    assert (status, found.value) == (0, value)
    np.testing.assert_array_equal(slope, gradient)

    library = ctypes.CDLL(model.bridgestan_library())
    library.bs_model_construct.restype = ctypes.c_void_p
    bound = library.bs_model_construct(json.dumps(DATA).encode(), ctypes.c_uint(1), None)
    slope[:] = 0
    pointers = [ctypes.c_void_p(a) for a in (theta.ctypes.data, ctypes.addressof(found), slope.ctypes.data)]
    assert library.bs_log_density_gradient(ctypes.c_void_p(bound), True, True, *pointers, None) == 0
    assert found.value == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(slope, gradient, rtol=1e-12)
    library.bs_model_destruct(ctypes.c_void_p(bound))
