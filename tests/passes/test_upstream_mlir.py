"""Lowered units are MLIR to others, too: `mlir-opt` reads them, canonicalizes them, and they still compute the same."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _pytest.mark.structures import ParameterSet
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer

import ulam
from ulam.passes import lowering_pipeline, verify_facts
from ulam.passes.to_loops.programs import LoweredUnit
from ulam.passes.verify_dominance import run_on as verify_dominance
from ulam.runtime.modules.known_dialects import DIALECTS, load_dialect

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MLIR_OPT = shutil.which("mlir-opt-19")
PASSES = ("--canonicalize", "--cse")


def generic_text(module: ModuleOp) -> str:
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    return stream.getvalue()


def through_mlir_opt(module: ModuleOp) -> ModuleOp:
    """The module as upstream's passes leave it; our ops are unknown to them, so they keep each of these."""
    assert MLIR_OPT is not None
    command = [MLIR_OPT, "--allow-unregistered-dialect", "--mlir-print-op-generic", *PASSES]
    done = subprocess.run(command, input=generic_text(module), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    context = Context()
    for name in DIALECTS:
        context.register_dialect(name, lambda name=name: load_dialect(name))
    result = Parser(context, done.stdout).parse_module()
    result.verify()
    verify_dominance(result)
    verify_facts.run_on(result)
    return result


def _cases() -> Iterator[ParameterSet]:
    """The examples; in the ordinary run one of them."""
    for path in sorted(EXAMPLES.glob("*.stan")):
        for opt_level in (0, 3):
            usual = (path.stem, opt_level) == ("linear_regression", 3)
            marks = () if usual else (pytest.mark.slow,)
            yield pytest.param(path, opt_level, marks=marks, id=f"{path.stem}-{opt_level}")


@pytest.mark.skipif(MLIR_OPT is None, reason="there is no mlir-opt-19: apt-get install mlir-19-tools")
@pytest.mark.parametrize(("program", "opt_level"), list(_cases()))
def test_units_after_passes_of_mlir(program: Path, opt_level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All units that a model uses compute the same."""

    def model() -> ulam.StanModel:
        return ulam.StanModel(program, data=program.with_suffix(".json"), opt_level=opt_level, cache=False)

    expected = _computed(model())
    changed: list[str] = []
    finish = lowering_pipeline.finish_unit

    def finish_elsewhere(
        unit: LoweredUnit, opt_level: int, between: Callable[[], None] | None = None, **options: Any
    ) -> None:
        finish(unit, opt_level, between, **options)
        before = generic_text(unit.module)
        unit.module = through_mlir_opt(unit.module)
        if generic_text(unit.module) != before:
            changed.append(unit.kind.name)

    monkeypatch.setattr(lowering_pipeline, "finish_unit", finish_elsewhere)
    found = _computed(model())
    assert len(changed) > 5, changed
    assert expected.keys() == found.keys()
    for what, values in expected.items():
        # Upstream folds and orders what may be rounded differently once LLVM fuses and widens it.
        np.testing.assert_allclose(found[what], values, rtol=1e-12, atol=1e-13, err_msg=what)


def _computed(model: ulam.StanModel) -> dict[str, np.ndarray]:
    """What all units of a model say at a point."""
    theta = np.linspace(-0.3, 0.4, model.param_unc_num())
    computed: dict[str, np.ndarray] = {}
    for propto in (False, True):
        value, gradient = model.log_density_gradient(theta, propto=propto)
        _, product = model.log_density_hessian_vector_product(theta, np.cos(theta), propto=propto)
        computed |= {
            f"value, propto={propto}": np.array(model.log_density(theta, propto=propto)),
            f"value with gradient, propto={propto}": np.array(value),
            f"gradient, propto={propto}": gradient,
            f"product, propto={propto}": product,
        }
    constrained = model.param_constrain(theta, include_tp=True)
    computed["constrained"] = constrained
    computed["unconstrained"] = model.param_unconstrain(model.param_constrain(theta))
    return computed
