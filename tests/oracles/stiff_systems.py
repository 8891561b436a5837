"""Stiff systems of the literature, with a program that solves them and gives sensitivities.

States at the end and the sensitivities, by the logarithms of the parameters, are what benchmarks/stiff_accuracy.py
computes from the equations in extended precision. F. Mazzia, C. Magherini, "Test Set for Initial Value Problem Solvers"
(HIRES, OREGO, VDPOL) has the same states, to 2e-12.
"""

from __future__ import annotations

import numpy as np

from ulam import StanModel

# Start, parameters, end, state there, sensitivities of its first element, absolute over relative tolerance.
SYSTEMS: dict[str, tuple[list[float], list[float], float, list[float], list[float], float]] = {
    "robertson": ([1, 0, 0], [0.04, 1e4, 3e7], 1e5,
                  [1.786592114209946e-02, 7.274751468436319e-08, 9.821340061103859e-01],
                  [-0.03172188512471366, 0.03169075834109506, -0.01584541008650186], 1e-6),
    "van_der_pol": ([2, 0], [1e6], 2.0, [1.706167732170465, -0.8928097010248165], [-4.1288936378e-4], 1e-2),
    "hires": ([1, 0, 0, 0, 0, 0, 0, 0.0057], [280, 1.81], 321.8122,
              [0.7371312573325668e-3, 0.1442485726316185e-3, 0.5888729740967575e-4, 0.1175651343283149e-2,
               0.2386356198831331e-2, 0.6238968252742796e-2, 0.2849998395185769e-2, 0.2850001604814231e-2],
              [-1.29995447082275e-4, -8.638554836108907e-3], 1e-2),
    "orego": ([1, 2, 3], [77.27, 0.161, 8.375e-6], 360.0,
              [0.1000814870318523e1, 0.1228178521549888e4, 0.1320554942846508e3],
              [-5.206959448628486e-3, 1.850805504270178e-3, 1.584100628849387e-3], 1e-2),
}  # fmt: skip
PROGRAM = """functions {
  vector f(real t, vector y, vector p, data int which) {
    if (which == 1)
      return [-p[1] * y[1] + p[2] * y[2] * y[3], p[1] * y[1] - p[2] * y[2] * y[3] - p[3] * square(y[2]),
              p[3] * square(y[2])]';
    if (which == 2) return [y[2], ((1 - square(y[1])) * y[2] - y[1]) * p[1]]';
    if (which == 3) {
      real bound = p[1] * y[6] * y[8];
      return [-1.71 * y[1] + 0.43 * y[2] + 8.32 * y[3] + 0.0007, 1.71 * y[1] - 8.75 * y[2],
              -10.03 * y[3] + 0.43 * y[4] + 0.035 * y[5], 8.32 * y[2] + 1.71 * y[3] - 1.12 * y[4],
              -1.745 * y[5] + 0.43 * y[6] + 0.43 * y[7],
              -bound + 0.69 * y[4] + 1.71 * y[5] - 0.43 * y[6] + 0.69 * y[7],
              bound - p[2] * y[7], -bound + p[2] * y[7]]';
    }
    return [p[1] * (y[2] + y[1] * (1 - p[3] * y[1] - y[2])), (y[3] - (1 + y[1]) * y[2]) / p[1], p[2] * (y[1] - y[3])]';
  }
}
data { int N; int P; vector[N] y0; real T; real tol; real atol; vector[N] weight; int which; }
parameters { vector<lower=0>[P] p; }
model { target += dot_product(weight, SOLVER(f, y0, 0, {T}, CONTROL, p, which)[1]); }
"""
CONTROL = {"ode_adjoint_tol_ctl": "tol, rep_vector(atol, N), tol, rep_vector(atol, N), tol, atol, 100000, 100, 1, 2, 2"}


def result(name: str, solver: str, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """The state at the end, by values, and the sensitivities of its first element."""
    y0, p, end, *_, ratio = SYSTEMS[name]
    code = PROGRAM.replace("SOLVER", solver).replace("CONTROL", CONTROL.get(solver, "tol, atol, 100000"))
    data = {"N": len(y0), "P": len(p), "y0": y0, "T": end, "tol": tolerance, "atol": ratio * tolerance,
            "which": 1 + [*SYSTEMS].index(name)}  # fmt: skip
    u = np.log(p)
    models = [StanModel(code, data | {"weight": list(map(float, row))}, opt_level=0) for row in np.eye(len(y0))]
    state = [model.log_density(u, jacobian=False) for model in models]
    return np.array(state), models[0].log_density_gradient(u, jacobian=False)[1]
