"""The test suites of packages that use ulam in place of Stan's tools, from checkouts of them.

    python benchmarks/client_suites.py --bridgestan DIR      # with libraries of the process, and with built ones
    python benchmarks/client_suites.py --bridgestan DIR --ways process
    python benchmarks/client_suites.py --cmdstanpy DIR       # with a home of `ulam cmdstan-home`

The suites run unchanged, on a copy; cmdstanpy's wants `pytest-order` (in the extra `clients`), without which tests that
reload its modules come before others. A test that fails must be in client_suites.csv, with the reason; what is there
and passes is told, too. Ends with status 1 for failures without a reason.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
REASONS = FOLDER / "client_suites.csv"


@dataclass(frozen=True)
class Suite:
    """A suite: what of the checkout is copied, which tests run, and how the copy is made ready in each `way`.

    A way is a function of the copy that returns environment variables for the tests.
    """

    copied: Sequence[str]
    tests: Sequence[str]
    ways: Mapping[str, Callable[[Path], Mapping[str, str]]]
    more: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Further tests, or options of pytest, by way."""
    apart: bool = False
    """Each of `tests` in a process of its own."""


# ---------------------------------------------------------------- BridgeStan


def _in_process(copy: Path) -> Mapping[str, str]:
    """The plugin `in_process_libraries` makes the libraries in the process of the tests."""
    return {
        "PYTHONPATH": str(FOLDER),
        "PYTEST_PLUGINS": "in_process_libraries",
        "ULAM_TEST_MODELS": str(copy / "test_models"),
    }


def _built(copy: Path) -> Mapping[str, str]:
    """Files that `ulam build` makes; programs that it refuses have none. And a home, for tests that compile."""
    for program in sorted((copy / "test_models").glob("*/*.stan")):
        target = program.with_name(f"{program.stem}_model.so")
        done = _ulam("build", str(program), "-o", str(target))
        if done.returncode:
            print(f"{program.name}: not built: {(done.stderr.strip().splitlines() or ['?'])[0]}")
    home = copy / "home"
    _ulam("cmdstan-home", str(home)).check_returncode()
    return {"BRIDGESTAN": str(home / "bridgestan"), "MAKE": str(home / "bin" / "ulam-make")}


def _ulam(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ulam.tools.ulam_main", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


# ---------------------------------------------------------------- cmdstanpy


def _home(copy: Path) -> Mapping[str, str]:
    """A CmdStan home beside the tests."""
    home = copy / "cmdstan home"
    subprocess.run([sys.executable, "-m", "ulam.tools.ulam_main", "cmdstan-home", str(home)], check=True)
    found = {"CMDSTAN": str(home), "MAKE": str(home / "bin" / "ulam-make")}
    version = re.search(r"'(\d+)\.(\d+)", (copy / "cmdstanpy" / "_version.py").read_text(encoding="utf-8"))
    if version is not None and (int(version[1]), int(version[2])) < (1, 3):
        found["ULAM_CMDSTAN_VERSION"] = "2.36"  # whose columns its tests count
    return found


METHODS = ("sample", "optimize", "laplace", "pathfinder", "generate_quantities", "log_prob", "metadata")

SUITES = {
    "bridgestan": Suite(
        copied=("python/test", "test_models"),
        tests=("python/test/test_stanmodel.py",),
        ways={"process": _in_process, "built": _built, "second-order": _built},
        more={"built": ("python/test/test_compile.py",), "second-order": ("--run-type", "ad_hessian")},
    ),
    "cmdstanpy": Suite(
        copied=("cmdstanpy", "test"),
        tests=[f"test/test_{method}.py" for method in METHODS],
        ways={"home": _home},
        apart=True,  # some reload modules, after which objects of others are not of the same classes
    ),
}


# ---------------------------------------------------------------- runs


def run(name: str, checkout: Path, way: str, extra: Sequence[str]) -> bool:
    """Runs a suite in one way, prints what came of it; returns whether all failures have reasons."""
    suite = SUITES[name]
    with tempfile.TemporaryDirectory(prefix="client-suite-") as folder:
        copy = Path(folder)
        for part in suite.copied:
            source = checkout / part
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy / part)
        environment = {**os.environ, **suite.ways[way](copy)}
        results: dict[str, str] = {}
        for number, tests in enumerate([[test] for test in suite.tests] if suite.apart else [suite.tests]):
            report = copy / f"report-{number}.xml"
            command = [sys.executable, "-m", "pytest", "-q", "--disable-warnings", "--rootdir", str(copy)]
            command += ["-p", "no:cacheprovider", "-p", "no:xdist", f"--junitxml={report}"]
            command += [*suite.more.get(way, ()), *extra, *tests]
            subprocess.run(command, cwd=copy, env=environment, check=False)
            if not report.exists():
                print(f"{name} ({way}): the tests did not run")
                return False
            results |= outcomes(report)
    return tell(f"{name} ({way})", results, reasons_of(name, way))


def outcomes(report: Path) -> dict[str, str]:
    """Test → passed, failed or skipped, of a report in JUnit's form."""
    found: dict[str, str] = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        kinds = {child.tag for child in case}
        found[name] = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
    return found


def reasons_of(suite: str, way: str) -> dict[str, str]:
    """Pattern of a test's name → why it may fail."""
    with REASONS.open(encoding="utf-8", newline="") as file:
        return {row["test"]: row["reason"] for row in csv.DictReader(file) if row["suite"] in (suite, f"{suite}/{way}")}


def tell(title: str, results: Mapping[str, str], reasons: Mapping[str, str]) -> bool:
    """Prints the counts and every failure; returns whether all have reasons."""
    failed = [test for test, outcome in results.items() if outcome == "failed"]
    known = {test: why for test in failed for pattern, why in reasons.items() if fnmatch(test, pattern)}
    counts = Counter(results.values())
    ran = counts["passed"] + counts["failed"]
    share = 100 * counts["passed"] / max(ran, 1)
    print(f"\n{title}: {counts['passed']} of {ran} passed ({share:.0f}%), {counts['skipped']} skipped")
    for test in failed:
        print(f"  {test}: {known.get(test, 'NO REASON')}")
    for pattern in reasons:
        if not any(fnmatch(test, pattern) for test in failed):
            print(f"  {pattern} is said to fail, and does not")
    return ran > 0 and set(failed) == set(known)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in SUITES:
        parser.add_argument(f"--{name}", type=Path, metavar="DIR", help=f"a checkout of {name}")
    parser.add_argument("--ways", nargs="+", help="in which ways, if not all: see SUITES")
    parser.add_argument("--pytest", nargs=argparse.REMAINDER, default=[], help="the rest is options of pytest")
    arguments = parser.parse_args()
    good = []
    for name, suite in SUITES.items():
        checkout: Path | None = getattr(arguments, name)
        if checkout is None:
            continue
        for way in suite.ways:
            if arguments.ways is None or way in arguments.ways:
                good.append(run(name, checkout.resolve(), way, arguments.pytest))
    if not good:
        parser.error("no checkout of a suite, or none of the ways")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
