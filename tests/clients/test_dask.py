"""Studies on Dask: its local cluster, with a worker that is killed in the middle."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.studies.progress import StudyProgress

distributed = pytest.importorskip("distributed")

PROGRAM = """
data { int<lower=0> N; vector[N] y; }
parameters { real mu; real<lower=0> sigma; }
model { mu ~ normal(0, 5); sigma ~ exponential(1); y ~ normal(mu, sigma); }
"""
SHORT: dict[str, Any] = {"chains": 1, "warmup": 100, "draws": 50, "seed": 2}


def data_sets(count: int) -> list[dict[str, Any]]:
    generator = np.random.default_rng(7)
    return [{"N": 5, "y": generator.normal(k % 7, 1, 5).tolist()} for k in range(count)]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Of a cluster that leaves it to the study how often a job runs again whose worker was lost."""
    from dask import config  # pyright: ignore[reportMissingImports]

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


def test_a_worker_is_killed_in_the_middle(client: Any) -> None:
    sets = data_sets(120)
    expected = ulam.fit_many(PROGRAM, sets, progress=False, **SHORT)
    workers = set(client.run(os.getpid).values())
    killed: list[int] = []

    def kill(update: StudyProgress) -> None:
        if update.done >= 30 and not killed:
            killed.append(min(workers))
            os.kill(killed[0], signal.SIGKILL)

    found = ulam.fit_many(PROGRAM, sets, executor=client.get_executor(), progress=kill, batch=4, **SHORT)
    assert killed and not found.errors and found.finished == set(range(120))
    for a, b in zip(found, expected, strict=True):
        assert a.index == b.index and np.array_equal(a["mu"], b["mu"]) and np.array_equal(a["sigma"], b["sigma"])


def test_a_data_set_that_ends_its_workers_is_named(client: Any) -> None:
    def end_worker(fit: Any) -> dict[str, Any]:
        if fit["mu"].mean() > 50:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"mu": fit["mu"]}

    sets = [*data_sets(10), {"N": 400, "y": [200.0] * 400}]
    found = ulam.fit_many(
        PROGRAM, sets, executor=client.get_executor(), extract=end_worker, progress=False, batch=3, **SHORT
    )
    assert found.errors.keys() == {10} and found.finished == set(range(10))
    assert "its worker was lost 3 times, the last time: KilledWorker" in found.errors[10]


def test_jobs_that_cannot_be_read_end_the_study(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = ModuleType("module_of_this_process_only")
    exec("def extract(fit):\n    return {}", absent.__dict__)
    monkeypatch.setitem(sys.modules, absent.__name__, absent)
    with pytest.raises(ModuleNotFoundError, match=absent.__name__):
        ulam.fit_many(
            PROGRAM, data_sets(3), executor=client.get_executor(), extract=absent.extract, progress=False, **SHORT
        )


def test_chains_of_one_fit(client: Any) -> None:
    model = ulam.StanModel(PROGRAM, data=data_sets(1)[0])
    options: dict[str, Any] = {"chains": 2, "warmup": 100, "draws": 50, "progress": False}
    here, there = model.sample(**options), model.sample(executor=client.get_executor(), **options)
    assert np.array_equal(here["mu"], there["mu"])
