"""A thread that does jobs in order."""

from __future__ import annotations

import threading

import pytest

from ulam.runtime.job_thread import JobThread, Stopped


def test_results_have_the_order_of_the_jobs() -> None:
    with JobThread[int]("jobs") as thread:
        for number in range(50):
            thread.submit(lambda number=number: number * number)
        while not thread.wait(0.01):
            pass
    assert thread.results == [number * number for number in range(50)]


def test_no_jobs() -> None:
    with JobThread[int]("jobs") as thread:
        assert thread.wait(10.0)
    assert thread.results == []


def test_what_a_job_raises_is_raised_here_and_no_other_begins() -> None:
    begun: list[int] = []

    def job(number: int) -> int:
        begun.append(number)
        if number == 1:
            raise ZeroDivisionError("one")
        return number

    with pytest.raises(ZeroDivisionError, match="one"), JobThread[int]("jobs") as thread:
        for number in range(3):
            thread.submit(lambda number=number: job(number))
        thread.wait(10.0)
    assert begun == [0, 1]


def test_a_block_that_is_left_waits_for_the_present_job_only() -> None:
    running, left = threading.Event(), threading.Event()
    ended: list[str] = []

    def job() -> None:
        running.set()
        left.wait(10.0)
        while True:
            try:
                thread.unless_stopped()
            except Stopped:
                ended.append("stopped")
                raise

    with pytest.raises(KeyboardInterrupt), JobThread[None]("jobs") as thread:
        thread.submit(job)
        thread.submit(lambda: ended.append("begun"))
        assert running.wait(10.0)
        assert not thread.wait(0.01)
        left.set()
        raise KeyboardInterrupt
    assert ended == ["stopped"]
