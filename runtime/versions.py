"""Versions of what ulam consists of, for `ulam doctor`, `StanModel.model_info` and reports."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

STAN_VERSION = "2.40"
STAN_PATCH = "0"
PACKAGES = ("xdsl", "llvmlite", "numpy", "scipy", "scipy-openblas32", "typer", "rich", "platformdirs")


def package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def ulam_version() -> str:
    from ulam import __version__

    return __version__


def version_lines() -> list[str]:
    """`name: version` lines: the language, the packages, Python and the machine."""
    lines = [f"ulam: {ulam_version()}", f"Stan language: {STAN_VERSION}"]
    lines += [f"{name}: {package_version(name)}" for name in PACKAGES]
    lines.append(f"Python: {platform.python_version()} ({platform.system()} {platform.machine()})")
    return lines
