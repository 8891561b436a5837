"""The effects that ops declare as traits are true: xDSL's passes believe them, and programs compute what they did."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import emission
import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.traits import MemoryEffect
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

import ulam
from ulam.dialects.ad import AD
from ulam.dialects.rt import RT
from ulam.dialects.stan import STAN
from ulam.dialects.trace import TRACE
from ulam.passes import lowering_pipeline
from ulam.passes.loops.effects import EFFECTS
from ulam.passes.to_loops.programs import LoweredUnit

ROOT = Path(__file__).resolve().parents[2]
UPSTREAM: tuple[ModulePass, ...] = (CommonSubexpressionElimination(), DeadCodeElimination(), CanonicalizePass())


def test_every_op_says_what_it_does() -> None:
    """By one trait or more; but for what is a place for code, and is not executed."""
    silent = {
        op.name
        for dialect in (STAN, RT, AD, TRACE)
        for op in dialect.operations
        if not op.get_traits_of_type(MemoryEffect)
    }
    assert silent == {"stan.program", "stan.block", "stan.func"}
    assert all(cls in EFFECTS for dialect in (RT, AD) for cls in dialect.operations)


def _upstream(module: ModuleOp) -> None:
    context = Context()
    context.load_dialect(arith.Arith)  # whose constants take the place of what is folded
    for entry in UPSTREAM:
        entry.apply(context, module)
    module.verify()


def _ops(text: str) -> list[str]:
    module = emission.parse(text)
    _upstream(module)
    return [op.name for op in module.walk() if op.name.startswith(("rt.", "ad."))]


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (  # what was bound in between is another value
            """%a = rt.bound 0 : f64
            rt.set_bound 0, %x : f64
            %b = rt.bound 0 : f64
            %s = arith.addf %a, %b : f64
            rt.store %s, %p[%i] : f64""",
            ["rt.bound", "rt.set_bound", "rt.bound", "rt.store"],
        ),
        (
            """%a = rt.bound 0 : f64
            %b = rt.bound 0 : f64
            %s = arith.addf %a, %b : f64
            rt.store %s, %p[%i] : f64""",
            ["rt.bound", "rt.store"],
        ),
        (  # two buffers, one of which nobody has
            """%a = rt.alloc %i : !rt.buf<f64>
            %b = rt.alloc %i : !rt.buf<f64>
            %c = rt.alloc %i : !rt.buf<f64>
            rt.store %x, %a[%i] : f64
            rt.store %x, %b[%i] : f64""",
            ["rt.alloc", "rt.alloc", "rt.store", "rt.store"],
        ),
        (
            """%a = rt.load %p[%i] : f64
            rt.store %x, %p[%i] : f64
            %b = rt.load %p[%i] : f64
            %c = rt.load %p[%i] : f64
            %s = arith.addf %a, %b : f64
            %u = arith.addf %s, %c : f64
            rt.store %u, %p[%i] : f64""",
            ["rt.load", "rt.store", "rt.load", "rt.store"],
        ),
        (  # the first clears the element
            """%a = ad.take %p[%i]
            %b = ad.take %p[%i]
            %s = arith.addf %a, %b : f64
            rt.store %s, %p[%i] : f64""",
            ["ad.take", "ad.take", "rt.store"],
        ),
        (  # reads of the target see what was added in between
            """ad.target_add %x
            %a = ad.target
            ad.target_add %x
            %b = ad.target
            %s = arith.addf %a, %b : f64
            rt.store %s, %p[%i] : f64""",
            ["ad.target_add", "ad.target", "ad.target_add", "ad.target", "rt.store"],
        ),
        (  # both count
            """rt.check %t site 1
            rt.check %t site 1""",
            ["rt.check", "rt.check"],
        ),
        (
            """%n = rt.null : !rt.buf<f64>
            %a = ad.push %n, %x : f64
            %b = ad.push %n, %x : f64
            %l, %y = ad.pop %a : !rt.buf<f64>, f64
            %m, %z = ad.pop %a : !rt.buf<f64>, f64
            %s = arith.addf %y, %z : f64
            rt.store %s, %p[%i] : f64""",
            ["rt.null", "ad.push", "ad.pop", "rt.store"],
        ),
        (
            """%a = rt.math "exp"(%x) : (f64) -> f64
            %b = rt.math "exp"(%x) : (f64) -> f64
            %c = rt.math "log"(%x) : (f64) -> f64
            %s = arith.addf %a, %b : f64
            rt.store %s, %p[%i] : f64""",
            ["rt.math", "rt.store"],
        ),
    ],
)
def test_what_upstream_passes_make(body: str, left: list[str]) -> None:
    head = "func.func @f(%x: f64, %p: !rt.buf<f64>, %i: i64, %t: i1) attributes {rt.entry = #rt.entry}"
    assert _ops(f"{head} {{\n{body}\nfunc.return\n}}") == left


PROGRAMS: dict[str, tuple[str, dict[str, Any], list[float]]] = {
    "loops": (
        """data { int N; vector[N] y; array[N] int<lower=1, upper=N> k; }
        transformed data { real m = mean(y); vector[N] c = y - m; }
        parameters { real mu; real<lower=0> s; vector[N] z; }
        transformed parameters { vector[N] e = mu + z[k] * s; real t = 0; for (n in 1:N) t += e[n] * c[n]; }
        model {
          z ~ std_normal(); mu ~ normal(m, 1); s ~ lognormal(0, 1);
          real last = 0;
          for (n in 1:N) { if (c[n] > 0) last = 0.5 * last + e[n]; y[n] ~ normal(last + e[k[n]], s); }
          target += -square(t) / 100;
        }
        generated quantities { real g = t + last_of(e); }""".replace("last_of(e)", "e[N]"),
        {"N": 4, "y": [0.3, -1.2, 2.0, 0.4], "k": [2, 1, 4, 4]},
        [0.2, -0.3, 0.5, -0.1, 0.7, 0.2],
    ),
    "records": (
        """functions { real down(real x, int n) { return n > 0 ? sin(down(x, n - 1)) * x : x; } }
        data { int N; }
        parameters { real a; cholesky_factor_corr[3] L; simplex[3] p; }
        model {
          real x = a;
          while (x > -3) { x = x - 1 - square(a); target += -square(x); }
          profile("deep") { target += down(a, N); }
          L ~ lkj_corr_cholesky(2); p ~ dirichlet([1, 2, 3]');
          target += sum(L * p) + target() / 10;
        }""",
        {"N": 3},
        [0.4, 0.1, -0.2, 0.3, 0.2, -0.1],
    ),
}


def _values(text: Any, data: Any, point: Sequence[float], level: int) -> list[np.ndarray]:
    model = ulam.StanModel(text, data, opt_level=level, cache=False)
    theta = np.array(point) if len(point) else 0.1 * np.cos(np.arange(model.param_unc_num()))
    value, gradient = model.log_density_gradient(theta)
    parts = [np.array(value), gradient, np.array(model.log_density(theta, propto=False))]
    return [*parts, model.param_constrain(theta, include_tp=True)]


def _check(monkeypatch: pytest.MonkeyPatch, text: Any, data: Any, point: Sequence[float], level: int) -> None:
    expected = _values(text, data, point, level)
    begin, finish = lowering_pipeline.begin_unit, lowering_pipeline.finish_unit
    changed: list[bool] = []

    def begin_unit(*arguments: Any) -> LoweredUnit:
        unit = begin(*arguments)
        before = str(unit.module)
        _upstream(unit.module)
        changed.append(str(unit.module) != before)
        return unit

    def finish_unit(unit: LoweredUnit, *arguments: Any, **options: Any) -> None:
        finish(unit, *arguments, **options)
        _upstream(unit.module)

    with monkeypatch.context() as patch:
        patch.setattr(lowering_pipeline, "begin_unit", begin_unit)
        patch.setattr(lowering_pipeline, "finish_unit", finish_unit)
        found = _values(text, data, point, level)
    assert any(changed)  # the passes had something to do
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before differentiation, and ahead of emission."""
    text, data, point = PROGRAMS[name]
    _check(monkeypatch, text, data, point, 1)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "examples").glob("*.stan")))
def test_examples_compute_the_same(name: str, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = ROOT / "examples" / f"{name}.json"
    _check(monkeypatch, ROOT / "examples" / f"{name}.stan", data if data.exists() else None, [], level)
