"""Long units notice that there is an error, not which: what is told is what the program as it is written says."""

from __future__ import annotations

import numpy as np
import pytest

import ulam
from ulam.passes.idle_passes import MANY

_TERM = """
  if (y[1] > {k}) {{
    target += normal_lpdf(y | a * {k}.5, s);
    target += -square(a[index]) * log1p_exp(a[2]);
    a[1:2] ~ normal(y[1:2], exp(s) - {k});
  }}
"""
PROGRAM = f"""
data {{ int K; vector[K] y; int index; }}
parameters {{ vector[K] a; real<lower=0> s; }}
model {{ {"".join(_TERM.format(k=k) for k in range(40))} y ~ normal(a, s); }}
"""


@pytest.mark.parametrize(
    ("changes", "theta"),
    [
        ({}, [0.1, 0.2, 0.3, -3.0]),
        ({}, [0.1, np.inf, 0.3, 5.0]),
        ({"index": 5}, [0.1, 0.2, 0.3, 5.0]),
        ({"y": [100.0, 2.0, np.nan]}, [0.1, 0.2, 0.3, 5.0]),
    ],
)
def test_errors_are_those_of_the_program_as_written(changes: dict[str, object], theta: list[float]) -> None:
    data = {"K": 3, "y": [100.0, 2.0, 3.0], "index": 1, **changes}
    told: list[tuple[type[Exception], str]] = []
    for level in (0, 3):
        model = ulam.StanModel(PROGRAM, data, opt_level=level)
        with pytest.raises(ulam.UlamError) as error:
            model.log_density_gradient(np.array(theta))
        told.append((error.type, str(error.value)))
    assert told[0] == told[1]


def test_a_function_of_a_long_unit_leaves_at_one_place() -> None:
    model = ulam.StanModel(PROGRAM, {"K": 3, "y": [100.0, 2.0, 3.0], "index": 1})
    text = str(model.module("lowered", "gradient_full"))
    assert text.count("\n") > MANY
    checks = [line for line in text.splitlines() if "rt.check " in line]
    assert len(checks) > 10 and not any(" with " in line or "site -1 " not in line for line in checks)
    functions = model.llvm_ir("gradient_full").split("\ndefine ")
    assert max(text.count("call i32 @ulam.fail.0(") for text in functions) == 1
    assert "@ulam.fail.1(" not in "".join(functions)
