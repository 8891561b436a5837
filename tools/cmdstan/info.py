"""What `info` tells of a program with CmdStan's command line."""

from __future__ import annotations

from collections.abc import Mapping

from ulam.runtime.versions import STAN_PATCH, STAN_VERSION


def version_numbers() -> Mapping[str, str]:
    """The version of the language, by the names that CmdStan's texts have."""
    major, minor = STAN_VERSION.split(".")
    return {"stan_version_major": major, "stan_version_minor": minor, "stan_version_patch": STAN_PATCH}


def info_text(threads: bool) -> str:
    """The versions and how the program was compiled. `threads`: whether one process may run several chains."""
    flags = {"STAN_THREADS": str(threads).lower()} | dict.fromkeys(
        ("STAN_MPI", "STAN_OPENCL", "STAN_NO_RANGE_CHECKS", "STAN_CPP_OPTIMS"), "false"
    )
    lines = [f"{name} = {value}" for name, value in version_numbers().items()]
    return "\n".join([*lines, *(f"{name}={value}" for name, value in flags.items()), ""])
