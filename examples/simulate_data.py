"""Writes the data of the examples that are simulated: `python examples/simulate_data.py` in any folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent


def logistic(rng: np.random.Generator) -> dict[str, Any]:
    n, k = 200, 4
    x = rng.normal(size=(n, k)).round(3)
    logit = 0.4 + x @ [1.2, -0.8, 0.3, 0.0]
    return {"N": n, "K": k, "x": x.tolist(), "y": (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int).tolist()}


def autoregressive(rng: np.random.Generator) -> dict[str, Any]:
    level, phi, sigma, length = 1.5, (0.55, 0.25), 0.7, 300
    y = [level, level]
    for _ in range(length + 50):
        y.append(level + phi[0] * (y[-1] - level) + phi[1] * (y[-2] - level) + sigma * rng.normal())
    return {"P": 2, "T": length, "y": np.round(y[-length:], 4).tolist()}


def gaussian_process(rng: np.random.Generator) -> dict[str, Any]:
    x = np.sort(rng.uniform(0, 10, 40)).round(3)
    y = 1.4 * np.sin(1.1 * x) + 0.3 * x - 1.5 + 0.25 * rng.normal(size=x.size)
    return {"N": x.size, "x": x.tolist(), "y": y.round(4).tolist()}


def hierarchical(rng: np.random.Generator) -> dict[str, Any]:
    groups, n = 25, 400
    scale = np.array([[0.9, 0.0], [0.3 * 0.5, 0.5 * np.sqrt(1 - 0.3**2)]])
    b = np.array([2.0, -0.7]) + rng.normal(size=(groups, 2)) @ scale.T
    group = rng.integers(0, groups, n)
    x = rng.normal(size=n).round(3)
    y = b[group, 0] + b[group, 1] * x + 0.6 * rng.normal(size=n)
    return {"N": n, "J": groups, "group": (group + 1).tolist(), "x": x.tolist(), "y": y.round(4).tolist()}


def main() -> None:
    for seed, make in enumerate((logistic, autoregressive, gaussian_process, hierarchical), start=1):
        data = make(np.random.default_rng(seed))
        lines = ",\n".join(f'  "{name}": {json.dumps(value)}' for name, value in data.items())
        (FOLDER / f"{make.__name__}.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
