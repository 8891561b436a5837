"""A bounded share of the fuzzing that `benchmarks/fuzz.py` does with other seeds and more cases."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzzing import SLOW, TooLong, check, check_mutant, compile_mutant, data_case, run, within
from lowered_programs import lowering_case
from program_mutations import corpus_of, mutant, own_corpus

from ulam.runtime.errors import TimeLimit

CORPUS = corpus_of(own_corpus())
SEED = 20_000


@pytest.mark.parametrize("part", range(4))
def test_mutants_are_typed_or_reported(part: int) -> None:
    found = {n: check_mutant(CORPUS, SEED, n) for n in range(part * 50, part * 50 + 50)}
    assert {n: problem for n, problem in found.items() if problem is not None} == {}


def test_mutants_are_reproducible_and_of_both_kinds() -> None:
    assert mutant(CORPUS, 1, 2) == mutant(CORPUS, 1, 2) != mutant(CORPUS, 1, 3)
    taken = sum(check(mutant(CORPUS, SEED, n), lower=False)[0] for n in range(100))
    assert 2 < taken < 98


@pytest.mark.usefixtures("quick_code")
def test_mutants_that_are_taken_run_or_are_rejected() -> None:
    found = {n: compile_mutant(CORPUS, SEED, n) for n in range(12)}
    assert {n: problem for n, problem in found.items() if problem is not None and not problem.startswith(SLOW)} == {}


def test_random_programs_are_valid_for_llvm() -> None:
    found = {n: lowering_case(CORPUS, SEED, n) for n in (0, 2)}
    assert {n: problem for n, problem in found.items() if problem is not None and not problem.startswith(SLOW)} == {}


@pytest.mark.usefixtures("quick_code")
@pytest.mark.parametrize("block", ["transformed data", "model"])
def test_programs_without_end_are_ended(block: str) -> None:
    try:
        outcome = run(f"{block} {{ while (1) continue; }}", {}, 0, seconds=0.2)
    except TimeLimit:  # by the constructor
        outcome = "TimeLimit"
    assert outcome == "TimeLimit"


def test_odd_data_are_taken_or_reported(tmp_path: Path) -> None:
    assert {n: problem for n in range(80) if (problem := data_case(SEED, n, tmp_path)) is not None} == {}


def test_failures_are_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise KeyError("a mistake")

    with monkeypatch.context() as patched:
        patched.setattr("ulam.frontend.check.operators._binary", fail)
        assert "KeyError at" in str(check("model { target += 1 + 2; }")[1])
    with monkeypatch.context() as patched:
        patched.setattr("ulam.runtime.data.convert", fail)
        found = [str(data_case(SEED, n, tmp_path)) for n in range(20)]
        assert any("a mistake" in problem for problem in found)
    with pytest.raises(TooLong), within(1):
        while True:
            pass
