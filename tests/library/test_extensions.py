"""A function that Stan does not have: its definition in library/extensions.stan is all that it takes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ulam.library import catalog

LIBRARY = Path(catalog.__file__).parent

OWN = """
/* Kumaraswamy, on (0, 1). */
real kumaraswamy_lpdf(real y, real a, real b) {
  require_positive_finite(a);
  require_positive_finite(b);
  if (y <= 0 || y >= 1) return negative_infinity();
  return log(a) + log(b) + (a - 1) * log(y) + (b - 1) * log1m(y ^ a);
}

/* By inversion. */
real kumaraswamy_rng(real a, real b) {
  require_positive_finite(a);
  require_positive_finite(b);
  return (1 - uniform_rng(0, 1) ^ inv(b)) ^ inv(a);
}

real softer(real x) { return x / (1 + abs(x)); }

real lgamma_step(real x, real d);
"""

PROGRAM = """
data { int N; vector<lower=0, upper=1>[N] y; array[2] vector[N] z; }
parameters { real<lower=0> a; vector<lower=0>[N] b; }
model {
  y ~ kumaraswamy(a, b);
  target += kumaraswamy_lpdf(0.25 | a, 2) + sum(softer(b)) + lgamma_step(a, 1);
}
generated quantities {
  real total = kumaraswamy_lpdf(y | a, b);
  array[N] real drawn = kumaraswamy_rng(a, b);
  array[2] vector[N] soft = softer(z);
}
"""

CODE = '''
import shutil, sys
from pathlib import Path
from ulam.library import catalog
catalog._FOLDER = Path(sys.argv[1])
import numpy as np
from ulam import StanModel
from ulam.library.functions import function
data = {"N": 3, "y": [0.2, 0.5, 0.9], "z": [[1, -1, 3], [0, 0.5, -3]]}
model = StanModel(Path(sys.argv[2]).read_text(), data=data, opt_level=1, cache=False)
theta = np.array([0.3, -0.2, 0.1, 0.4])
value, gradient = model.log_density_gradient(theta, propto=False)
steps = 1e-6 * np.eye(4)
differences = [(model.log_density(theta + h, propto=False) - model.log_density(theta - h, propto=False)) / 2e-6
               for h in steps]
assert np.allclose(gradient, differences, rtol=1e-7), (gradient, differences)
drawn = model.param_constrain(theta, include_gq=True, rng=model.new_rng(1))
a, b, y = drawn[0], drawn[1:4], np.array(data["y"])
density = lambda y, b: np.log(a * b) + (a - 1) * np.log(y) + (b - 1) * np.log1p(-y**a)
assert np.isclose(drawn[4], density(y, b).sum())
own = density(y, b).sum() + density(0.25, 2) + (b / (1 + b)).sum() + np.log(a)
assert np.isclose(value, own + theta.sum()), (value, own + theta.sum())
assert len(set(drawn[5:8])) == 3 and (0 < drawn[5:8]).all() and (drawn[5:8] < 1).all()
z = np.array(data["z"])
assert np.allclose(drawn[8:].reshape(3, 2).T, z / (1 + abs(z)))
assert function("softer").is_total and function("lgamma_step").is_total and not function("kumaraswamy_lpdf").is_total
try:
    StanModel("model { 0.5 ~ kumaraswamy(1); }", cache=False)
except Exception as error:
    print(str(error).splitlines()[0])
sys.path.insert(0, sys.argv[3])
import list_functions
assert "kumaraswamy_lpdf(real, vector, real) => real" in list_functions.own_signatures()
assert "kumaraswamy_rng(vector, real) => array[] real" in list_functions.own_signatures()
assert "kumaraswamy" not in list_functions.text()  # the documents list Stan's functions
'''


@pytest.fixture
def own_library(tmp_path: Path) -> Path:
    """The library's files, with functions of one's own."""
    for path in LIBRARY.glob("*.stan"):
        shutil.copy(path, tmp_path)
    with (tmp_path / catalog.EXTENSIONS).open("a") as file:
        file.write(OWN)
    return tmp_path


def test_functions_of_ones_own(own_library: Path) -> None:
    """A density and its random numbers, a function and a primitive, with scalars and containers: values, gradients,
    messages, the lists of the documents."""
    program = own_library / "model.txt"
    program.write_text(PROGRAM)
    docs = str(Path(__file__).resolve().parents[2] / "docs")
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(own_library), str(program), docs], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "'kumaraswamy_lpdf' takes 3 arguments, but 2 are given" in done.stdout


