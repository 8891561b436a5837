"""A program that builds on ulam, for type checkers: pyright's strict mode finds nothing in it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import ulam
from ulam.trace import Node, Scripted, print_levels


def evaluate(model: ulam.StanModel) -> float:
    value, gradient = model.log_density_gradient(np.zeros(model.param_unc_num()))
    values: npt.NDArray[np.float64] = model.param_constrain(gradient, include_tp=True)
    names: list[str] = model.param_unc_names()
    hessian = model.log_density_hessian(gradient)[2]
    value, product = model.log_density_hessian_vector_product(gradient, gradient)
    return value + float(values.sum()) + float(hessian @ gradient @ product) + len(names)


def estimate(model: ulam.StanModel) -> dict[str, float]:
    fit = model.optimize()
    errors = fit.standard_errors()
    draws = np.concatenate([model.laplace()["beta"], model.pathfinder()["beta"]])
    return {"beta": float(fit["beta"]), "error": float(errors["beta"]), "mean": float(draws.mean())}


def sample(model: ulam.StanModel) -> str:
    fit = model.sample(chains=2, warmup=200, draws=200, seed=1)
    theta: npt.NDArray[np.float64] = fit["theta"]
    fit.save("fit.npz")
    again = ulam.load("fit.npz")
    return f"{fit.summary()} {fit.diagnose()} {theta.mean()} {again.n_draws}"


def study() -> int:
    found = ulam.fit_many("model.stan", [{"N": 1}, {"N": 2}], chains=1)
    return len(found.missing)


def trace(model: ulam.StanModel) -> None:
    node: Node = model.track("f", 1, 0.5, rng=Scripted([0.5]))
    print_levels(node, 2)


def embed(model: ulam.StanModel) -> tuple[int, int, int]:
    handle: ulam.NativeHandle = model.native_handle(propto=False)
    return handle.address, handle.user_data, handle.n


def main() -> None:
    try:
        model = ulam.StanModel("model.stan", data={"N": 3, "y": np.ones(3), "k": [1, 2]}, opt_level=2)
        print(evaluate(model), estimate(model), sample(model), study(), embed(model))
        trace(model)
    except ulam.CompileError as error:
        print(error)
    except (ulam.DataError, ulam.Rejection, ulam.UlamError) as error:
        print(str(error))


if __name__ == "__main__":
    main()
