"""Modules with mutations end well: done or refused, with a message. `benchmarks/fuzz.py modules` tries more of them."""

from pathlib import Path

from mutated_modules import module_case, seeds

CASES = 300


def test_no_mutated_module_is_an_internal_error(tmp_path: Path) -> None:
    texts = seeds(Path(__file__).parents[2])
    assert len(texts) > 20
    problems = {number: module_case(texts, 1, number, tmp_path) for number in range(CASES)}
    assert not {number: problem for number, problem in problems.items() if problem is not None}
