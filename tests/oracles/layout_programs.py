"""The kinds of random programs of sums over rows, with random data, that levels and layouts are tried on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from affine_programs import affine_data, affine_program
from applied_programs import applied_data, applied_program
from component_programs import component_data, component_program
from group_programs import group_data, group_program
from nest_programs import nest_data, nest_program
from outcome_programs import outcome_data, outcome_program
from row_programs import row_data, row_program
from state_programs import state_data, state_program

PROGRAMS: dict[str, tuple[Callable[[int], str], Callable[[int], dict[str, Any]]]] = {
    "rows": (row_program, row_data),
    "nests": (nest_program, nest_data),
    "groups": (group_program, group_data),
    "applied": (applied_program, applied_data),
    "states": (state_program, state_data),
    "outcomes": (outcome_program, outcome_data),
    "components": (component_program, component_data),
    "affine": (affine_program, affine_data),
}
"""Kind → the program of a seed, and its data."""
