"""`bin/diagnose` of a CmdStan home: each check of chains' files, with what is wrong or that nothing is."""

from __future__ import annotations

from collections.abc import Sequence

from ulam.runtime.sampling.diagnose import diagnose
from ulam.tools.cmdstan.chain_files import ReadChains
from ulam.tools.exits import EXIT_OK, UsageError

CHECKS = {
    ("treedepth",): ("Checking tree depths.", "Treedepth satisfactory for all transitions."),
    ("divergences",): ("Checking for divergences.", "No divergent transitions found."),
    ("ebfmi",): ("Checking E-BFMI, from the energies.", "E-BFMI satisfactory."),
    ("ess_bulk", "ess_tail"): (
        "Checking rank-normalized split effective sample sizes.",
        "Rank-normalized split effective sample size satisfactory for all parameters.",
    ),
    ("rhat", "chains"): (
        "Checking rank-normalized split R-hat.",
        "Rank-normalized split R-hat values satisfactory for all parameters.",
    ),
    ("stuck", "nan", "draws"): ("Checking the draws themselves.", "All chains moved, and no value is NaN."),
}
"""The names of problems, what is printed before they are told, and what if there are none: words clients look for."""


def run(words: Sequence[str]) -> int:
    """The command; the exit status. Raises UsageError, DataError, OSError."""
    if "--help" in words or "-h" in words:
        print("Usage: diagnose FILE.csv ...")
        return EXIT_OK
    if not words:
        raise UsageError("give the CSV files of a model's chains")
    problems = diagnose(ReadChains(words)).problems
    for names, (title, satisfied) in CHECKS.items():
        found = [str(problem) for problem in problems if problem.name in names]
        print("\n".join([title, *(found or [satisfied])]), end="\n\n")
    print("Processing complete, no problems detected." if not problems else "Processing complete.")
    return EXIT_OK
