"""The programs of a CmdStan home, by name: `main("stanc", words)`. Messages go to standard error; status 0 or 1."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from ulam.tools.exits import EXIT_FAILURE, UsageError, can_show_all, discard_output
from ulam.tools.interrupted import interrupted
from ulam.tools.messages import tell, warnings_told

PROGRAMS = {
    "stanc": "stanc",
    "stansummary": "stansummary",
    "print": "stansummary",
    "diagnose": "diagnose_files",
    "ulam-make": "make",
}
"""The module below this package whose `run` each is."""


def main(name: str, words: Sequence[str]) -> int:
    """Runs a program; the exit status."""
    can_show_all(sys.stdout)
    try:
        with warnings_told(name):
            status = import_module(f"ulam.tools.cmdstan.{PROGRAMS[name]}").run(words)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        discard_output()
        return EXIT_FAILURE
    except KeyboardInterrupt:
        return interrupted(name)
    except UsageError as error:
        tell("error", str(error), name)
        return EXIT_FAILURE
    except Exception as error:
        from ulam.tools.failures import failure

        return failure(error, name)
