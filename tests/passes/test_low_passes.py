"""fold, cse, licm, dce and thread-target do not change what a function computes, stores and checks."""

from __future__ import annotations

from typing import Any

import pytest
from low_interpreter import Interpreter, Left, bits
from low_programs import build
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from ulam.dialects import ad
from ulam.passes import verify_dominance
from ulam.passes.loops import cse, dce, fold, licm, thread_target
from ulam.passes.loops.function_passes import FunctionPass

PASSES: dict[str, tuple[FunctionPass, ...]] = {
    "fold": (fold.Fold(),),
    "cse": (cse.Cse(),),
    "licm": (licm.Licm(),),
    "dce": (dce.Dce(),),
    "all": (fold.Fold(), cse.Cse(), licm.Licm(), fold.Fold(), cse.Cse(), dce.Dce()),
}


def run(module: ModuleOp, *, shared: bool = False, total: bool = False) -> Any:
    """Results and memory of one run, and what was added to the target, or its total.

    `shared`: both buffers are the same memory.
    """
    function = module.body.block.first_op
    assert isinstance(function, func.FuncOp)
    x = [1.5, -2.0, 0.25, 4.0]
    y = x if shared else [0.0, 1.0, -1.0, 7.5]
    interpreter = Interpreter()
    try:
        results = interpreter.call(function, (x, 0), (y, 0), 3, 0.75)
    except Left as left:
        return bits(x), bits(y), str(left)
    added: Any = interpreter.added
    if total:
        added = results[2]
        for value in interpreter.added:
            added += value
    return bits(x), bits(y), bits(results[:2]), bits(added)


@pytest.mark.parametrize("name", PASSES)
def test_results_stay_the_same(name: str) -> None:
    for seed in range(80):
        entry = seed % 2 == 0
        module = build(seed, entry=entry)
        expected = run(module), run(module, shared=not entry)
        for step in PASSES[name]:
            step.changes(module)
            module.verify()
            verify_dominance.run_on(module)
        assert (run(module), run(module, shared=not entry)) == expected, f"seed {seed}"


def test_target_is_threaded() -> None:
    for seed in range(80):
        module = build(seed, target=True)
        expected = run(module, total=True)
        thread_target.run_on(module)
        module.verify()
        verify_dominance.run_on(module)
        assert not any(isinstance(op, ad.TargetAddOp) for op in module.walk())
        assert run(module, total=True) == expected, f"seed {seed}"


def test_passes_find_something() -> None:
    """On the random functions, each pass removes or moves a good part of the ops."""
    sizes = {name: [0, 0] for name in PASSES}
    for seed in range(30):
        for name, passes in PASSES.items():
            module = build(seed)
            sizes[name][0] += sum(1 for _ in module.walk())
            for step in passes:
                step.changes(module)
            sizes[name][1] += sum(1 for _ in module.walk())
    assert sizes["licm"][0] == sizes["licm"][1]
    for name in ("fold", "cse", "dce"):
        assert sizes[name][1] < 0.9 * sizes[name][0]
    assert sizes["all"][1] < 0.5 * sizes["all"][0]
