"""`ulam cmdstan-home`: writes a folder that clients of CmdStan and BridgeStan take for an installation of these.

What is where cmdstanpy, cmdstanr and bridgestan look: `makefile` with CmdStan's version, `bin/`, `examples/bernoulli`,
and `bridgestan/Makefile`. Programs are short scripts that start ulam; the folder may be moved or made anew at any time.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ulam.runtime.output_files import write_text, writing
from ulam.runtime.versions import STAN_PATCH, STAN_VERSION
from ulam.tools.cmdstan.executable import interpreter_line, make_executable
from ulam.tools.cmdstan.programs import PROGRAMS
from ulam.tools.exits import EXIT_OK

MAKE = "ulam-make"

EXAMPLE = """\
data {
  int<lower=0> N;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  real<lower=0, upper=1> theta;
}
model {
  theta ~ uniform(0, 1);
  y ~ bernoulli(theta);
}
"""
EXAMPLE_DATA = '{"N": 10, "y": [0, 1, 0, 0, 0, 0, 0, 0, 0, 1]}\n'

_MAKEFILE = """\
{version}# Stands for the makefile of that name: `make` hands programs to ulam.
FLAGS = STANCFLAGS='$(STANCFLAGS)' STAN_THREADS='$(STAN_THREADS)' USER_HEADER='$(USER_HEADER)'

{rules}
print-%:
\t@echo '$* = $($*)'
"""

_RULE = "{target}: %.stan\n\t@{make} $(FLAGS) '$@'\n"


@dataclass(kw_only=True)
class CmdstanHomeCommand:
    """The arguments of `ulam cmdstan-home`."""

    folder: Path

    def run(self) -> int:
        """Writes the home, and prints what clients want in their environment."""
        for name, value in write_home(self.folder).items():
            print(f"export {name}={shlex.quote(value)}")
        return EXIT_OK


def write_home(folder: Path) -> Mapping[str, str]:
    """Writes the home, each file whole; the variables of the environment that lead clients there. Raises OSError."""
    home = Path(os.path.abspath(folder))
    for each in ("bin", "make", "bridgestan", os.path.join("examples", "bernoulli")):
        (home / each).mkdir(parents=True, exist_ok=True)
    make = home / "bin" / MAKE
    for name in PROGRAMS:
        write_program(home / "bin" / name, name)
    version = f"CMDSTAN_VERSION := {STAN_VERSION}.{STAN_PATCH}\n"
    example = home / "examples" / "bernoulli"
    texts = {
        home / "makefile": _makefile(make, version, "%", "build clean-all:\n\t@{make} $@\n"),
        home / "bridgestan" / "Makefile": _makefile(make, "", "%_model.so"),
        example / "bernoulli.stan": EXAMPLE,
        example / "bernoulli.data.json": EXAMPLE_DATA,
    }
    for path, text in texts.items():
        write_text(path, text)
    return {"CMDSTAN": str(home), "MAKE": str(make), "BRIDGESTAN": str(home / "bridgestan")}


def _makefile(make: Path, version: str, target: str, more: str = "") -> str:
    """For GNU make, which clients run where MAKE is not set."""
    called = shlex.quote(str(make)).replace("$", "$$")
    rules = (_RULE + more).format(target=target, make=called)
    return _MAKEFILE.format(version=version, rules=rules)


def write_program(path: Path, name: str) -> None:
    """A script that runs one of `PROGRAMS`."""
    with writing(path) as file:
        file.write(
            f"{interpreter_line()}import sys\n"
            "from ulam.tools.cmdstan.programs import main\n"
            f"sys.exit(main({name!r}, sys.argv[1:]))\n"
        )
        make_executable(file.fileno())
    if not os.access(path, os.X_OK):
        make_executable(str(path))
