"""Any pass can be named alone, for any form of a module: it works, or says which pass has to come first."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ulam.passes.errors import NotSupportedError, WrongFormError
from ulam.passes.lowering_pipeline import begin_unit, finish_unit, to_value_form
from ulam.passes.pipelines import PASSES, parse_pipeline, run_pipeline
from ulam.passes.units import UNITS
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.modules.verification import verify

PROGRAM = """functions {
  real f(real x, int n) {
    for (i in 1:n) { if (x > i) return i; }
    return x;
  }
}
data { int N; vector[N] y; }
transformed data { vector[N] z = exp(y); }
parameters { real x; }
model {
  real s = 0;
  for (i in 1:N) {
    if (x > i) break;
    s += x * z[i];
    if (s > 3) continue;
    s -= 1;
  }
  while (s > 10) { s -= 3; profile("p") { s -= 1; } }
  target += s + f(x, N);
}
generated quantities { real g = normal_rng(x, 1); }
"""
NEED_OPTIONS = {
    "print-analysis": "{analysis=constants}",
    "if-changed": '{passes="unroll-small" then="dce"}',
    "repeat": '{passes="copy-propagation"}',
    "specialize-data": None,
    "trace-instrument": None,
}
"""Options of passes that have no default; None: they are given more than options."""


def module_in(form: str) -> ModuleOp:
    compiler = Compiler(PROGRAM, options=CompileOptions(0))
    if form == "variables":
        return compiler.module
    unit = begin_unit(compiler.program, UNITS["gradient_propto"], 0)
    if form == "lowered":
        finish_unit(unit, 0)
    return unit.module


@pytest.mark.parametrize("form", ["variables", "begun", "lowered"])
def test_passes_alone(form: str) -> None:
    original = module_in(form)
    original.verify()
    for name in PASSES:
        if (options := NEED_OPTIONS.get(name, "")) is None:
            continue
        module = original.clone()
        try:
            for entry in parse_pipeline(name + options):
                entry.apply(Context(), module)
        except WrongFormError as error:
            assert str(error).startswith(f"{name}: ") and " first" in str(error)
        except NotSupportedError:
            continue
        else:
            module.verify()


NEVER_RETURN = """functions {
  vector f(real x) {
    if (x > 0) return rep_vector(x, 2);
    reject("f");
    return rep_vector(x, 3);
  }
  vector g(real x) {
    if (x > 0) return rep_vector(x, 2);
    else reject("g");
  }
}
transformed data { vector[2] a = f(-1); vector[2] b = g(-1); }
parameters { real y; }
model { y ~ normal(sum(f(-1.0)) + sum(g(-1.0)), 1); }
"""


@pytest.mark.parametrize("level", range(5))
def test_results_that_are_never_assigned_stay_verified(level: int) -> None:
    """A container takes the sizes of what is assigned; where a call surely throws, passes take the assignments out."""
    module = Compiler(NEVER_RETURN, options=CompileOptions(opt_level=0)).module
    run_pipeline(module, CompileOptions(opt_level=level).passes, lambda: verify(module))
    verify(module)
    function = begin_unit(to_value_form(module), UNITS["gradient_propto"], level)
    finish_unit(function, level)
    verify(function.module)
