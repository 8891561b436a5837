"""Directives of assembly formats that our dialects need besides xDSL's."""

from __future__ import annotations

from xdsl.irdl.declarative_assembly_format import CustomDirective

DIRECTIVES: dict[str, type[CustomDirective]] = {}
"""Name in a format → directive."""
