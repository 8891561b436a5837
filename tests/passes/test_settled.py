"""Functions that have not changed: passes are not asked about them again, and what passes say they change is true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from ulam.passes.loops.cse import Cse
from ulam.passes.loops.dce import Dce
from ulam.passes.loops.fold import Fold
from ulam.passes.loops.licm import Licm
from ulam.passes.loops.unit_modules import set_slots
from ulam.passes.lowering_pipeline import begin_unit, lower
from ulam.passes.nested import run_nested
from ulam.passes.pipelines import pass_class
from ulam.passes.running import PassObserver, observed_by, remembering
from ulam.passes.settled import ENTRIES, EVALUATE
from ulam.passes.units import UNITS
from ulam.runtime.compiler import Compiler

PROGRAM = """
functions {
  real depth(real x, vector v, int n) {
    real total = 0;
    for (i in 1:n) total += log1p_exp(v[i] * x) + v[i] * x;
    if (n < 2) return total; else return total + depth(x * 2, v, n - 1);
  }
}
data { int N; array[N] int<lower=1, upper=3> g; vector[N] x; array[N] int<lower=0, upper=1> y; vector[N] z; }
parameters { vector[3] a; real b; real<lower=0> s; }
model {
  a ~ normal(0, 1);
  for (n in 1:N) {
    if (g[n] == 1) target += bernoulli_logit_lpmf(y[n] | a[g[n]] + b * x[n]);
    else target += log_mix(inv_logit(b), normal_lpdf(z[n] | a[1], s), normal_lpdf(z[n] | a[2], s));
  }
  z ~ normal(a[g] + b * x, s);
  target += depth(b, a, 3);
}
"""


Change = Callable[..., bool]


class ChangedFunctions(PassObserver):
    """Passes that say which functions they change: those that they changed besides."""

    def __init__(self) -> None:
        self._before: list[dict[str, str]] = []
        self.found: dict[str, set[str]] = {}
        self.seen: set[str] = set()

    def before(self, name: str, module: ModuleOp | None) -> None:
        self._before.append({} if module is None else self._texts(module))

    def after(self, name: str, module: ModuleOp) -> None:
        before, after = self._before.pop(), self._texts(module)
        named = getattr(pass_class(name), "changes_only", None)
        if before and named in (ENTRIES, EVALUATE):
            self.seen.add(name)
            changed = {function for function in before if before[function] != after.get(function)} - named
            self.found |= {name: changed} if changed else {}

    @staticmethod
    def _texts(module: ModuleOp) -> dict[str, str]:
        return {op.sym_name.data: str(op) for op in module.body.block.ops if isinstance(op, func.FuncOp)}


def test_passes_change_the_functions_that_they_say() -> None:
    compiler = Compiler(PROGRAM)
    observer = ChangedFunctions()
    with observed_by(observer):
        lower(compiler.program, UNITS["gradient_propto"], 3)
    assert {"hoist-data", "unique-rows", "private-rows", "sum-arms", "defer-checks"} <= observer.seen
    # The place of errors, which no pass asks for.
    assert set(observer.found) <= {"defer-checks"}


@pytest.mark.parametrize("unit", ["gradient_propto", "constrain"])
def test_what_has_not_changed_is_not_looked_at_again(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    counts: list[Counter[str]] = []
    original = Cse.changes_function

    def counted(entry: Cse, function: func.FuncOp) -> bool:
        counts[-1][function.sym_name.data.partition(".")[0]] += 1
        return original(entry, function)

    monkeypatch.setattr(Cse, "changes_function", counted)
    for settles in (True, False):
        for cls in (Fold, Cse, Licm, Dce):
            monkeypatch.setattr(cls, "settles", settles)
        counts.append(Counter())
        texts.append(Compiler(PROGRAM).llvm_text(unit))
    assert texts[0] == texts[1]
    if unit == "gradient_propto":
        assert counts[0]["user"] < 0.7 * counts[1]["user"], counts
        assert counts[0]["evaluate"] <= counts[1]["evaluate"]


def test_passes_on_evaluations_leave_what_is_known_of_bind(monkeypatch: pytest.MonkeyPatch) -> None:
    """So does `hoist-data` where nothing more moves."""
    looked_at: list[str] = []
    original = Cse.changes_function

    def noted(entry: Cse, function: func.FuncOp) -> bool:
        looked_at.append(function.sym_name.data)
        return original(entry, function)

    monkeypatch.setattr(Cse, "changes_function", noted)
    unit = begin_unit(Compiler(PROGRAM).program, UNITS["gradient_propto"], 3)
    set_slots(unit.module, unit.n_slots)
    with remembering():
        run_nested(Context(), unit.module, "simplify,hoist-data,cse,cse")
        looked_at.clear()
        run_nested(Context(), unit.module, "hoist-data,defer-checks,sums-to-target,cse")
    assert "evaluate" in looked_at
    assert "bind" not in looked_at


def test_clean_ups_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes that do not need each other's leavings taken away are cleaned up behind together: 19 times, not 22."""
    looked_at = Counter[str]()
    for cls in (Cse, Dce):

        def noted(entry: Cse | Dce, function: func.FuncOp, original: Change = cls.changes_function) -> bool:
            looked_at[function.sym_name.data] += 1
            return original(entry, function)

        monkeypatch.setattr(cls, "changes_function", noted)
    Compiler(PROGRAM).llvm_text("gradient_propto")
    assert looked_at["evaluate"] <= 20
