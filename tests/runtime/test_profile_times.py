"""What profiles count as the time of a region: of the processor, without passes that took far longer than others."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence

import pytest

from ulam.runtime.c_library import library
from ulam.runtime.native import Context, ProfileRecord
from ulam.runtime.profiling.check import AGREEMENT, RecordedGradient


def busy(seconds: float) -> Callable[[], None]:
    def run() -> None:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    return run


CURRENT: list[int] = []
"""Addresses of the contexts in which passes run."""


def recorded(passes: Sequence[Callable[[], None]]) -> list[ProfileRecord]:
    """Evaluations of one pass through a region each, which does what is given: the rows of both, and of others."""
    context = Context()
    context.attach_profile(0)
    runtime = library()
    begin, end = runtime.ulam_profile_begin, runtime.ulam_profile_end
    begin.argtypes = end.argtypes = [ctypes.c_void_p, *[ctypes.c_int32] * 3]
    for work in passes:

        @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
        def evaluation(address: int, bound: int, work: Callable[[], None] = work) -> int:
            begin(address, 0, 0, 0)
            CURRENT.append(address)
            work()
            CURRENT.pop()
            end(address, 0, 0, 0)
            return 0

        entry = ctypes.cast(evaluation, ctypes.c_void_p).value
        assert entry and context.run_plain(entry, 0) == 0
    rows = context.profile_rows()
    assert [row.region for row in rows[:2]] == [-1, 0] and rows[1].passes == len(passes)
    return rows


def seconds(ticks: int) -> float:
    return ticks * library().ulam_seconds_per_tick()


def test_waiting_is_not_counted() -> None:
    for row in recorded([lambda: time.sleep(0.02)] * 5):
        assert seconds(row.wall_ticks) > 0.1
        assert seconds(row.forward_ticks) < 0.02


def test_work_is_counted() -> None:
    start = time.thread_time()
    rows = recorded([busy(0.005)] * 8)
    took = time.thread_time() - start
    for row in rows:
        assert 0.04 < 1.02 * seconds(row.forward_ticks) and seconds(row.forward_ticks) < 1.1 * took
        assert row.wall_ticks >= row.forward_ticks and row.outlier_passes == 0


def test_one_long_pass_does_not_decide() -> None:
    """It counts as a usual one, and what was taken off is told."""
    for row in recorded([busy(0.0001)] * 60 + [busy(0.05)] + [busy(0.0001)] * 60):
        assert seconds(row.forward_ticks) < 0.04 < seconds(row.outlier_ticks)
        assert row.outlier_passes >= 1


def test_many_long_passes_do() -> None:
    """Work that is not the same in every pass is no outlier."""
    for row in recorded(([busy(0.0001)] * 9 + [busy(0.004)]) * 5):
        assert seconds(row.forward_ticks) > 0.02 and row.outlier_passes == 0


def test_what_is_taken_off_a_region_is_taken_off_what_is_around_it() -> None:
    """Also where it is no outlier there: a whole is never less than its parts, nor much more. The long pass is one also
    beside another that the machine made 50 times as long as it is."""

    def evaluation(region: float) -> Callable[[], None]:
        return lambda: (busy(0.006)(), begin_region(), busy(region)(), end_region())[0]

    runtime = library()

    def begin_region() -> None:
        runtime.ulam_profile_begin(CURRENT[-1], 1, 1, 0)

    def end_region() -> None:
        runtime.ulam_profile_end(CURRENT[-1], 1, 1, 0)

    rows = recorded([evaluation(0.0001)] * 20 + [evaluation(0.05)] + [evaluation(0.0001)] * 20)
    outer, inner = rows[1], rows[2]
    assert inner.outlier_passes == 1 and outer.outlier_passes == 0
    assert seconds(outer.outlier_ticks) > 0.03 and outer.forward_ticks > inner.forward_ticks


@pytest.mark.parametrize("passes", [1, 9])
def test_of_few_passes_all_count(passes: int) -> None:
    for row in recorded([busy(0.0001)] * (passes - 1) + [busy(0.02)]):
        assert seconds(row.forward_ticks) > 0.019 and row.outlier_passes == 0


def gradient(in_regions: float, outside: float, run: float, threads: int = 1) -> RecordedGradient:
    return RecordedGradient(in_regions, outside, run, 0, 0.0, 1.0, threads)


def test_the_report_says_why_a_sum_is_not_the_gradient() -> None:
    usual = gradient(8e-6, 1.5e-6, 1e-5)
    assert usual.recorded == pytest.approx(9.5e-6)
    assert usual.reason(usual.recorded * (1 + 0.9 * AGREEMENT)) == ""
    assert "95% of the one measured; 8.00 µs of it in regions" in dict(usual.facts(1e-5))["recorded"]
    assert "the machine's speed changed" in usual.reason(2e-5)
    assert "5.00 µs of each gradient pass before and after" in gradient(4e-6, 1e-6, 1e-5).reason(1e-5)
    assert "a point of its own" in gradient(8e-6, 1.5e-6, 1e-5, threads=2).reason(2e-5)
    waited = RecordedGradient(8e-6, 1.5e-6, 1e-5, 3, 0.002, 0.4, 1)
    facts = dict(waited.facts(1e-5))
    assert facts["processor"].startswith("40% of the time on the clock")
    assert facts["outliers"].startswith("3 evaluations took 2.00 ms longer")
