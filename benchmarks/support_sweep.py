"""Asks type checker and compiler of every overload of every library function whether it can be compiled.

    python benchmarks/support_sweep.py [--names normal_] [--state FILE]

They must agree: see `tests/oracles/signature_programs.py`. Functions that are in FILE are not tried again. Takes about
seven minutes of CPU time for all 43,000 calls.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from ulam.frontend.functions import signatures
from ulam.frontend.functions.support import unsupported_call, unsupported_type

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "oracles"))

from signature_programs import LibraryCall, at_fault, calls  # noqa: E402

IN_A_PROGRAM = 40


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--names", default="", help="only functions whose name contains this")
    parser.add_argument("--state", type=Path, help="file with the functions that agree; read and written")
    arguments = parser.parse_args(argv)
    done = set(arguments.state.read_text().split()) if arguments.state and arguments.state.exists() else set()
    tried = wrong = 0
    for name in signatures.names():
        if arguments.names not in name or name in done:
            continue
        group = [call for call in calls([name]) if not any(map(unsupported_type, call.types))]
        found = list(disagreements(group))
        tried += len(group)
        wrong += len(found)
        for line in found:
            print(line, flush=True)
        if arguments.state and not found:
            with arguments.state.open("a") as file:
                file.write(f"{name}\n")
    print(f"{tried} calls, {wrong} disagreements")
    return 1 if wrong else 0


def disagreements(group: Sequence[LibraryCall]) -> list[str]:
    """Calls of which checker and compiler say different things."""
    supported = [call for call in group if _said(call) is None]
    refused = [call for call in group if _said(call) is not None]
    lines = [
        f"{call}: the checker takes it, the compiler says {reason}"
        for start in range(0, len(supported), IN_A_PROGRAM)
        for call, reason in at_fault(supported[start : start + IN_A_PROGRAM])
    ]
    from ulam.frontend.check.context import Checker

    with patch.object(Checker, "unsupported", lambda *_: None):  # the compiler with no checker before it
        return lines + [
            f"{call}: the checker refuses it, and it compiles" for call in refused if not list(at_fault([call]))
        ]


def _said(call: LibraryCall) -> tuple[str, str] | None:
    return unsupported_call(call.signature.name, call.signature.arguments, call.signature.result)


if __name__ == "__main__":
    sys.exit(main())
