"""How a command ends that was interrupted. Imports nothing: `entry` needs it before all else."""

from __future__ import annotations

import sys

EXIT_INTERRUPTED = 130  # as of a shell, for what SIGINT has ended


def interrupted(command: str, kept: str = "") -> int:
    """Says on standard error that the command was interrupted, and what is there of its result; the exit status."""
    print(f"{command}: interrupted{kept and '; '}{kept}", file=sys.stderr)
    return EXIT_INTERRUPTED
