"""Values of special functions to 60 digits, and how near the C runtime has to be."""

from __future__ import annotations

import json
from pathlib import Path

REFERENCE: dict[str, list[list[float]]] = json.loads(
    (Path(__file__).parents[1] / "reference" / "special_functions.json").read_text()
)
# Relative; of the larger of value and argument's effect where the value passes zero.
TOLERANCE = {"gamma_p": 2e-13, "gamma_q": 2e-13, "inc_beta": 5e-13, "lambert_w0": 3e-14, "lambert_wm1": 3e-14,
             "lgamma_step": 5e-13, "normal_hazard_excess": 2e-14, "log_scaled_Phi": 2e-14}  # fmt: skip
