"""The tutorial examples/toy: its programs are what they say, its page shows what stands in the file."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ulam
from ulam.passes.pipelines import OWN_PASSES

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "toy"
TEXT = (FOLDER / "growth.toy").read_text(encoding="utf-8")
DATA = json.loads((FOLDER / "growth.json").read_text(encoding="utf-8"))
AT = np.array([50.0, 100.0, 1.2])
SAME = """functions { vector slowing(vector x) { return x ./ (1 + abs(x)); } }
data { int n; vector[n] age; vector[n] height; }
parameters { real start; real speed; real<lower=0> spread; }
model {
  start ~ normal(50, 20);
  speed ~ normal(0, 100);
  spread ~ exponential(1);
  vector[n] expected = start + speed * slowing(age / 5);
  height ~ normal(expected, spread + (age / 10) ^ 2);
}
"""


@pytest.fixture(scope="module")
def toy() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("toy_example", FOLDER / "toy.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["toy_example"] = module
    spec.loader.exec_module(module)
    yield module
    OWN_PASSES.unregister("toy-squares")


def test_it_is_short_and_uses_public_names() -> None:
    source = (FOLDER / "toy.py").read_text(encoding="utf-8")
    assert sum(bool(line.strip()) for line in source.splitlines()) <= 150
    assert set(re.findall(r"^(?:import|from) (ulam\S*)", source, re.MULTILINE)) == {"ulam", "ulam.ir"}
    names = set(re.findall(r"\bulam\.(\w+)", source)) - {"ir"}
    assert names <= set(ulam.__all__) and not re.search(r"\b(?:ulam|stan)\._", source)


def test_the_page_shows_the_file() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    source = (FOLDER / "toy.py").read_text(encoding="utf-8")
    shown = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(shown) >= 6 and all(part in source for part in shown)
    assert re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL) == [TEXT]
    for target in re.findall(r"\]\(([^)#]+)\)", re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)):
        assert (FOLDER / target).exists(), target


def test_the_program_is_that_of_stan(toy: ModuleType) -> None:
    model = toy.compiled(TEXT, DATA, cache=False)
    value, gradient = model.log_density_gradient(AT, propto=False)
    expected, of_stan = ulam.StanModel(SAME, DATA, cache=False).log_density_gradient(AT, propto=False)
    assert value == pytest.approx(expected, rel=1e-12) and gradient == pytest.approx(of_stan, rel=1e-10)
    fit = model.optimize(seed=1)
    assert fit.converged and [round(float(x)) for x in fit.constrained] == [51, 131, 4]


def test_the_pass(toy: ModuleType) -> None:
    model = toy.compiled(TEXT, DATA, passes="toy-squares", cache=False)
    written, optimized = (str(model.module(stage)) for stage in ("written", "optimized"))
    assert written.count("stan.elt_pow") == 1 and "stan.elt_pow" not in optimized
    assert re.search(r"stan\.call square\(.*\) .*!stan\.vector", optimized)
    plain = toy.compiled(TEXT, DATA, opt_level=0, cache=False)
    assert model.log_density(AT) == pytest.approx(plain.log_density(AT), rel=1e-12)


def test_the_derivative_rule(toy: ModuleType) -> None:
    x, adjoint, h = np.array([-2.0, -0.1, 0.3, 5.0]), np.array([1.0, 2.0, -1.0, 0.5]), 1e-6
    slope = (toy.slowing(x + h) - toy.slowing(x - h)) / (2 * h)
    assert toy.slowing_pullback(x, adjoint) == pytest.approx(adjoint * slope, rel=1e-6)


def test_mistakes_have_the_line(toy: ModuleType) -> None:
    with pytest.raises(ulam.CompileError, match=r"x\.toy:2:1: error: the library has no function 'nrmal_lpdf'"):
        toy.compiled("unknown a\na ~ nrmal(0, 1)", {"n": 1}, "x.toy")
    with pytest.raises(SyntaxError, match="'b' is not declared"):
        toy.compiled("unknown a\nb ~ normal(0, 1)", {"n": 1})
    with pytest.raises(ulam.CompileError, match=r"'slowing' is declared but not defined; give it: external="):
        ulam.StanModel.from_module(toy.Lowering("unknown a", "x.toy").module(), {"n": 1})
    model = toy.compiled("unknown a, s\na ~ normal(0, s)", {"n": 1}, "x.toy", cache=False)
    with pytest.raises(ulam.Rejection, match=r"sigma is -1.*'x\.toy', line 2"):
        model.log_density(np.array([1.0, -1.0]))
