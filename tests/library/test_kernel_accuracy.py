"""The sweep of benchmarks/kernel_accuracy.py has every differentiable kernel, or says which test has it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from ulam.library.kernels import KERNELS

ROOT = Path(__file__).parents[2]


def tables() -> dict[str, Any]:
    """The dictionaries at the top level of the script, which needs mpmath to run: their keys and literal values."""
    found: dict[str, Any] = {}
    for node in ast.parse((ROOT / "benchmarks" / "kernel_accuracy.py").read_text(encoding="utf-8")).body:
        target = (
            node.targets[0]
            if isinstance(node, ast.Assign)
            else node.target
            if isinstance(node, ast.AnnAssign)
            else None
        )
        if isinstance(target, ast.Name) and isinstance(node, ast.Assign | ast.AnnAssign):
            if isinstance(node.value, ast.Dict):
                keys = [ast.literal_eval(key) for key in node.value.keys if key is not None]
                values = [v.value if isinstance(v, ast.Constant) else None for v in node.value.values]
                found[target.id] = dict(zip(keys, values, strict=True))
    return found


def test_every_differentiable_kernel_is_swept() -> None:
    found = tables()
    differentiable = {name for name, kernel in KERNELS.items() if kernel.pullback}
    assert found["KERNELS"].keys() | found["ELSEWHERE"].keys() == differentiable
    assert not found["KERNELS"].keys() & found["ELSEWHERE"].keys()
    assert set(found["KERNELS"].values()) <= found["FUNCTIONS"].keys()
    for kernel, path in found["ELSEWHERE"].items():
        assert kernel in (ROOT / path).read_text(encoding="utf-8"), kernel
