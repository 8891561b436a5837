"""Equal parts of long units that are one function compute what they did in place, bit by bit, errors included."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ulam
from ulam.emit import jit
from ulam.passes import idle_passes, lowering_pipeline
from ulam.passes.loops.share_parts import ShareParts
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

OUTCOME = """
  if (kind >= {k}) {{
    vector[N] mean = a[{k}] + x * b[{k}];
    for (n in 1:N) {{
      real error = y{k}[n] - mean[n];
      real weight = exp(-square(error)) + log1p(square(b[{k}]));
      if (y{k}[n] > 0) target += -square(error) * weight;
      else target += student_t_lpdf(y{k}[n] | 4, mean[n], s + least[{k}]);
    }}
    y{k} ~ logistic(mean, s - least[{k}]);
  }}
"""
PROGRAM = (
    "data { int N; int kind; vector[3] least; vector[N] x; vector[N] y1; vector[N] y2; vector[N] y3; }\n"
    "parameters { vector[3] a; vector[3] b; real<lower=0> s; }\n"
    "model {" + "".join(OUTCOME.format(k=k) for k in (1, 2, 3)) + " s ~ exponential(1); }"
)
N = 9
TOO_SMALL = np.array([0.1, 0.2, 0.3, 0.1, 0.2, 0.3, np.log(1.5)])
"""With s = 1.5, s - 2 is no scale: the second outcome fails, the first does not."""
QUICK = jit.Pipeline(speed=0, vectorize=False)


def data(kind: int) -> dict[str, object]:
    rng = np.random.default_rng(5)
    columns = {name: rng.normal(size=N).tolist() for name in ("x", "y1", "y2", "y3")}
    return {"N": N, "kind": kind, "least": [1, 2, 3], **columns}


def share_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    written = lowering_pipeline.lowering_pipeline

    def with_shared(*args: object, **options: object) -> str:
        return written(*args, **options).replace("share-parts{", "share-parts{above=10 least=6 ")  # type: ignore[arg-type]

    monkeypatch.setattr(lowering_pipeline, "lowering_pipeline", with_shared)
    monkeypatch.setattr(idle_passes, "MANY", 0)


@pytest.fixture(params=[0, pytest.param(3, marks=pytest.mark.slow)])
def level(request: pytest.FixtureRequest) -> int:
    return request.param


def test_shared_parts_compute_the_same(level: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [np.append(0.3 * np.sin(1.7 * np.arange(1, 7) + shift), 1.5) for shift in (0.0, 2.0)]

    def everything() -> list[object]:
        found: list[object] = []
        for kind in (1, 2, 3):
            model = ulam.StanModel(PROGRAM, data(kind), opt_level=level)
            for theta in points:
                value, gradient = model.log_density_gradient(theta)
                found.append((value, gradient.tolist()))
            if kind > 1:
                with pytest.raises(ulam.Rejection) as error:
                    model.log_density_gradient(TOO_SMALL)
                found.append(str(error.value))
        return found

    monkeypatch.setattr(jit, "HOT", QUICK)
    monkeypatch.setenv("ULAM_CACHE_DIR", str(tmp_path / "whole"))
    whole = everything()
    assert "-0.5" in str(whole[-1]) and "line " in str(whole[-1])
    share_everything(monkeypatch)
    monkeypatch.setenv("ULAM_CACHE_DIR", str(tmp_path / "shared"))
    assert everything() == whole


@pytest.mark.parametrize("opt_level", [0, 3])
def test_what_is_shared(opt_level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One function for the three outcomes, which knows of its memory what all its callers do.

    At level 3 as well: that an arm alone reads its data does not tell it from others.
    """
    options = CompileOptions(opt_level=opt_level)
    whole = Compiler(PROGRAM, options=options).llvm_text("gradient_propto")
    share_everything(monkeypatch)
    with collect_remarks() as remarks:
        shared = Compiler(PROGRAM, options=options).llvm_text("gradient_propto")
    (remark,) = (r for r in remarks if r.pass_name == "share-parts" and r.subject == "function evaluate")
    assert "are calls of" in remark.message
    definitions = re.findall(r"define internal i32 @(evaluate\.shared\d*)", shared)
    assert definitions
    assert sum(shared.count(f"@{name}(") for name in definitions) >= 4 * len(definitions)  # a definition, three calls
    assert len(shared.splitlines()) < 0.8 * len(whole.splitlines())


def test_short_units_are_left_alone() -> None:
    assert ShareParts().above == idle_passes.MANY
    assert ".shared" not in Compiler(PROGRAM, options=CompileOptions(opt_level=0)).llvm_text("gradient_propto")
