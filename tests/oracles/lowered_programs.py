"""Random and written programs on their way to LLVM IR, of which nothing runs: many more can be tried than run.

What a pass builds wrongly ends in an internal error, in a pass after it or when LLVM verifies the unit. The programs
are valid: mutants, most of which are not, are for `fuzzing.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import program_generator
import structured_programs
from fuzzing import SECONDS, SLOW, TooLong, check, told, within
from llvmlite import binding
from random_programs import random_program
from row_programs import row_program

from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

UNITS_OF_MODELS = ("setup", "gradient_propto", "constrain", "hessian_vector_propto")
_SOURCES: tuple[Callable[[int], str], ...] = (
    row_program, row_program, random_program, program_generator.generate, structured_programs.generate,
)  # fmt: skip


def lowered_program(corpus: Sequence[str], seed: int, number: int) -> str:
    """The program of a case: every sixth is one of the corpus."""
    kind = number % (len(_SOURCES) + 1)
    if kind == len(_SOURCES):
        return random.Random(f"lower {seed}:{number}").choice(corpus)
    return _SOURCES[kind](1_000_003 * seed + number)


def lowering_case(corpus: Sequence[str], seed: int, number: int) -> str | None:
    """Lowers a program at level 3 and at another one; what went wrong, or None."""
    text = lowered_program(corpus, seed, number)
    if text in corpus and not check(text, lower=False)[0]:  # some show mistakes of users
        return None
    for level in (3, (0, 1, 2, 4)[number % 4]):
        for unit in UNITS_OF_MODELS:
            try:
                with within(4 * SECONDS):
                    options = CompileOptions(level, layouts=number % 7 != 0)
                    binding.parse_assembly(Compiler(text, "lowered.stan", options).llvm_text(unit)).verify()
            except TooLong as error:
                return f"{SLOW}level {level}, {unit}: {error}"
            except Exception as error:
                return f"level {level}, {unit}: {told(error)}"
    return None
