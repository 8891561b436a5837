"""Studies on loky's pools, with a process that is killed in the middle."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.studies.progress import StudyProgress

loky = pytest.importorskip("loky")

PROGRAM = "data { real y; } parameters { real mu; } model { mu ~ normal(0, 5); y ~ normal(mu, 1); }"
SHORT: dict[str, Any] = {"chains": 1, "warmup": 100, "draws": 50, "seed": 2}


@pytest.mark.parametrize("given", ["executor", "function"])
def test_a_process_is_killed_in_the_middle(given: str) -> None:
    sets = [{"y": float(k % 5)} for k in range(60)]
    expected = ulam.fit_many(PROGRAM, sets, progress=False, **SHORT)
    pool = loky.get_reusable_executor(max_workers=2)
    killed: list[int] = []

    def kill(update: StudyProgress) -> None:
        if update.done >= 20 and not killed:
            killed.append(min(pool._processes))
            os.kill(killed[0], signal.SIGKILL)

    def make() -> Any:
        nonlocal pool
        pool = loky.get_reusable_executor(max_workers=2)
        return pool

    try:
        chosen: Any = pool if given == "executor" else make
        found = ulam.fit_many(PROGRAM, sets, executor=chosen, progress=kill, batch=2, **SHORT)
    finally:
        loky.get_reusable_executor().shutdown(wait=True)
    assert killed and not found.errors and found.finished == set(range(60))
    for a, b in zip(found, expected, strict=True):
        assert a.index == b.index and np.array_equal(a["mu"], b["mu"])


def test_a_data_set_that_ends_its_process_is_named() -> None:
    def end_process(fit: Any) -> dict[str, Any]:
        if fit["mu"].mean() > 15:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"mu": fit["mu"]}

    sets = [{"y": float(y)} for y in (0, 1, 1000, 2)]
    try:
        found = ulam.fit_many(
            PROGRAM,
            sets,
            executor=lambda: loky.get_reusable_executor(max_workers=1),
            extract=end_process,
            progress=False,
            **SHORT,
        )
    finally:
        loky.get_reusable_executor().shutdown(wait=True)
    assert found.errors.keys() == {2} and "its worker was lost 3 times" in found.errors[2]
    assert found.finished == {0, 1, 3}
