"""rstanarm's large programs with data as it makes them for `y ~ x1 + ... + (1 | g)`, as posteriors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from posteriordb import Posterior
from public_sources import PublicProgram, Repositories

ROWS, COLUMNS, GROUPS = 500, 4, 20


INCLUDE = re.compile(r"^\s*#include\s+[<\"]?(?P<file>[^\s>\"]+)[>\"]?[^\n]*$", re.MULTILINE)


def rstanarm_posteriors(repositories: Repositories, folder: Path) -> Iterator[Posterior]:
    """The programs there are data for; they are written to `folder`, with what they include."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in MAKERS.items():
        data = {key: _json(value) for key, value in make(np.random.default_rng(20)).items()}
        model = folder / f"rstanarm-{name}.stan"
        model.write_text(with_includes(repositories.program(f"stan-dev/rstanarm/inst/stan/{name}.stan")), "utf-8")
        yield Posterior(f"rstanarm-{name}", model, json.dumps(data))


def with_includes(program: PublicProgram) -> str:
    """The text of a program with that of its includes in their places."""

    def included(found: re.Match[str]) -> str:
        for folder in program.folders:
            path = Path(folder) / found["file"].lstrip("/")
            if path.exists():
                return INCLUDE.sub(included, path.read_text(encoding="utf-8"))
        raise FileNotFoundError(found["file"])

    return INCLUDE.sub(included, program.code)


def _json(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _priors(dist_for_aux: int) -> dict[str, Any]:
    """Normal priors, exponential ones for what else a family has; and no smooth terms, weights, or offsets."""
    return {
        "K": COLUMNS,
        "xbar": np.zeros(COLUMNS),
        "dense_X": 1,
        "nnz_X": 0,
        "w_X": [],
        "v_X": [],
        "u_X": [],
        "K_smooth": 0,
        "smooth_map": [],
        "prior_PD": 0,
        "compute_mean_PPD": 1,
        "has_intercept": 1,
        "link": 1,
        "prior_dist": 1,
        "prior_dist_for_intercept": 1,
        "prior_dist_for_aux": dist_for_aux,
        "prior_dist_for_smooth": 0,
        "has_weights": 0,
        "weights": [],
        "has_offset": 0,
        "offset_": [],
        "prior_scale": np.full(COLUMNS, 2.5),
        "prior_scale_for_intercept": 10.0,
        "prior_scale_for_aux": 5.0,
        "prior_scale_for_smooth": [],
        "prior_mean": np.zeros(COLUMNS),
        "prior_mean_for_intercept": 0.0,
        "prior_mean_for_aux": 0.0,
        "prior_mean_for_smooth": [],
        "prior_df": np.ones(COLUMNS),
        "prior_df_for_intercept": 1.0,
        "prior_df_for_aux": 1.0,
        "prior_df_for_smooth": [],
        "global_prior_df": 0.0,
        "global_prior_scale": 0.0,
        "slab_df": 0.0,
        "slab_scale": 0.0,
        "num_normals": [],
    }


def _groups() -> dict[str, Any]:
    """One term `(1 | g)`."""
    return {
        "t": 1,
        "p": [1],
        "l": [GROUPS],
        "q": GROUPS,
        "len_theta_L": 1,
        "shape": [1.0],
        "scale": [1.0],
        "len_concentration": 0,
        "concentration": [],
        "len_regularization": 0,
        "regularization": [],
        "special_case": 1,
    }


def _design(rng: np.random.Generator) -> tuple[dict[str, Any], np.ndarray]:
    """Rows with a group each, and what they would have as linear predictor."""
    design = rng.normal(size=(ROWS, COLUMNS))
    group = rng.integers(1, GROUPS, ROWS)  # what both `0 <= v < q` and `1 <= V <= q` allow
    predictor = 0.3 + design @ rng.normal(scale=0.4, size=COLUMNS) + rng.normal(scale=0.5, size=GROUPS)[group]
    rows = {
        "N": ROWS,
        "X": design[np.newaxis],
        "S": np.zeros((ROWS, 0)),
        "num_non_zero": ROWS,
        "w": np.ones(ROWS),
        "v": group,
        "u": np.arange(ROWS + 1),
    }
    return rows, predictor


def _glm(dist_for_aux: int, outcome: Callable[[np.random.Generator, np.ndarray], dict[str, Any]]) -> Any:
    def make(rng: np.random.Generator) -> dict[str, Any]:
        rows, predictor = _design(rng)
        return {**_priors(dist_for_aux), **_groups(), **rows, **outcome(rng, predictor)}

    return make


def _counts(rng: np.random.Generator, predictor: np.ndarray) -> dict[str, Any]:
    mean = np.exp(0.5 * predictor)
    return {"y": rng.negative_binomial(3, 3 / (3 + mean)), "family": 7}


def _successes(rng: np.random.Generator, predictor: np.ndarray) -> dict[str, Any]:
    trials = rng.integers(1, 20, ROWS)
    return {"y": rng.binomial(trials, 1 / (1 + np.exp(-predictor))), "trials": trials, "family": 5}


def _reals(rng: np.random.Generator, predictor: np.ndarray) -> dict[str, Any]:
    z = ("scale", "mean", "df")
    return {
        "len_y": ROWS,
        "lb_y": -1e300,
        "ub_y": 1e300,
        "y": predictor + rng.normal(size=ROWS),
        "family": 1,
        "has_intercept_z": 0,
        "link_phi": 0,
        "z_dim": 0,
        "betareg_z": np.zeros((ROWS, 0)),
        "zbar": [],
        "prior_dist_z": 0,
        "prior_dist_for_intercept_z": 0,
        **{f"prior_{what}_z": [] for what in z},
        **{f"prior_{what}_for_intercept_z": 0.0 for what in z},
        "global_prior_scale_z": 0.0,
        "global_prior_df_z": 0.0,
        "slab_df_z": 0.0,
        "slab_scale_z": 0.0,
        "num_normals_z": [],
        "SSfun": 0,
        "input": [],
        "Dose": [],
    }


def _categories(rng: np.random.Generator, predictor: np.ndarray) -> dict[str, Any]:
    latent = predictor + rng.logistic(size=ROWS)
    return {
        "X": np.linalg.qr(rng.normal(size=(ROWS, COLUMNS)))[0][np.newaxis],  # coefficients are those of such a Q
        "J": 4,
        "y": 1 + np.searchsorted([-1.0, 0.5, 2.0], latent),
        "regularization": 1.0,
        "prior_counts": np.ones(4),
        "is_skewed": 0,
        "shape": 1.0,
        "rate": 1.0,
        "do_residuals": 0,
    }


def _events(rng: np.random.Generator) -> dict[str, Any]:
    """As `bernoulli.stan` has them: rows without the event, then rows with it."""
    rows, predictor = _design(rng)
    happened = rng.uniform(size=ROWS) < 1 / (1 + np.exp(-predictor))
    found: dict[str, Any] = {**_priors(0), **_groups(), "clogit": 0, "J": 0, "strata": [], "family": 5}
    counts = []
    for k, chosen in enumerate((~happened, happened)):
        count = int(chosen.sum())
        counts.append(count)
        found |= {f"{name}_X{k}": [] for name in ("w", "v", "u")}
        found |= {f"{name}{k}": [] for name in ("weights", "offset")}
        found |= {
            f"nnz_X{k}": 0,
            f"X{k}": rows["X"][:, chosen],
            f"S{k}": np.zeros((count, 0)),
            f"w{k}": np.ones(count),
            f"v{k}": rows["v"][chosen],
            f"u{k}": np.arange(1, count + 2),
        }
    return {**found, "N": counts, "num_non_zero": counts}


def _submodels(rng: np.random.Generator) -> dict[str, Any]:
    """As `mvmer.stan` has two outcomes, reals and counts, with an intercept of each for each group."""
    rows, predictor = _design(rng)
    none = np.zeros((0, 0))
    found: dict[str, Any] = {
        "M": 2,
        "has_weights": 0,
        "has_aux": [1, 0, 0],
        "resp_type": [1, 2, 0],
        "intercept_type": [1, 1, 0],
        "family": [1, 6],
        "link": [1, 1],
        **{name: [ROWS, ROWS, 0] for name in ("yNobs", "yNeta")},
        "yK": [COLUMNS, COLUMNS, 0],
        "t": 1,
        "p": [2],
        "l": [GROUPS],
        "q": 2 * GROUPS,
        "len_theta_L": 3,
        "bN1": GROUPS,
        "bK1": 2,
        "bK1_len": [1, 1, 0],
        "bK1_idx": [[1, 1], [2, 2], [0, 0]],
        "bN2": 0,
        "bK2": 0,
        "bK2_len": [0, 0, 0],
        "bK2_idx": np.zeros((3, 2), dtype=int),
        "yReal1": predictor + rng.normal(size=ROWS),
        "yInt2": rng.poisson(np.exp(0.5 * predictor)),
        "y_prior_dist": [1, 1, 0],
        "y_prior_dist_for_intercept": [1, 1],
        "y_prior_dist_for_aux": [3, 0],
        "prior_dist_for_cov": 2,
        "prior_PD": 0,
        "has_offset": [0, 0, 0],
        **{f"y_{name}": np.zeros(2) for name in ("global_prior_df", "global_prior_scale", "slab_df", "slab_scale")},
        **{f"y_prior_mean_for_{name}": np.zeros(2) for name in ("intercept", "aux")},
        **{f"y_prior_{what}_for_{name}": np.ones(2) for what in ("scale", "df") for name in ("intercept", "aux")},
        "len_concentration": 0,
        "len_regularization": 0,
        "b_prior_shape": [1.0],
        "b_prior_scale": [1.0],
        "b_prior_concentration": [],
        "b_prior_regularization": [],
        **{f"b1_prior_{name}": np.ones(2) for name in ("scale", "df")},
        **{f"b2_prior_{name}": [] for name in ("scale", "df")},
        "b1_prior_regularization": 1.0,
        "b2_prior_regularization": 1.0,
        "yInt1": [],
        "yInt3": [],
        "yReal2": [],
        "yReal3": [],
    }
    for number in (1, 2, 3):
        there = number < 3
        found |= {
            f"yX{number}": rows["X"][0] if there else none,
            f"yXbar{number}": np.zeros(COLUMNS) if there else [],
            f"y{number}_Z1": np.ones((1, ROWS)) if there else none,
            f"y{number}_Z1_id": rows["v"] if there else [],
            f"y{number}_Z2": none,
            f"y{number}_Z2_id": [],
            f"y{number}_offset": [],
            f"y_prior_mean{number}": np.zeros(COLUMNS) if there else [],
            **{f"y_prior_{what}{number}": np.ones(COLUMNS) if there else [] for what in ("scale", "df")},
        }
    return found


QUADRATURE = 7


def _joint(rng: np.random.Generator) -> dict[str, Any]:
    """As `jm.stan` has those two outcomes and a time of each group, Weibull, whose hazard depends on the predictor of
    the first outcome: rows of the events come first, then those of the quadrature."""
    found = _submodels(rng)
    happened = rng.uniform(size=GROUPS) < 0.6
    events, nodes = int(happened.sum()), GROUPS * QUADRATURE
    points = events + nodes
    ends = rng.exponential(2.0, GROUPS) + 0.1
    at, weights = np.polynomial.legendre.leggauss(QUADRATURE)
    times = np.concatenate([ends[happened], np.outer((at + 1) / 2, ends).ravel()])
    group = np.concatenate([np.arange(1, GROUPS + 1)[happened], np.tile(np.arange(1, GROUPS + 1), QUADRATURE)])
    covariates = rng.normal(size=(GROUPS, 2))
    none = np.zeros((0, 0))
    found |= {
        "e_prior_dist": 1,
        "e_prior_dist_for_intercept": 1,
        "e_prior_dist_for_aux": 1,
        "norm_const": 0.0,
        "e_K": 2,
        "Npat": GROUPS,
        "Nevents": events,
        "qnodes": QUADRATURE,
        "Npat_times_qnodes": nodes,
        "basehaz_type": 1,
        "basehaz_df": 1,
        "e_has_intercept": 1,
        "nrow_e_Xq": points,
        "e_Xq": covariates[group - 1],
        "e_times": times,
        "basehaz_X": np.log(times)[:, np.newaxis],
        "e_xbar": np.zeros(2),
        "e_weights": np.ones(GROUPS),
        "e_weights_rep": np.ones(nodes),
        "qwts": np.outer(weights / 2, ends).ravel(),
        "a_prior_dist": 1,
        "a_K": 1,
        "a_xbar": [0.0],
        "a_scale": [1.0],
        "assoc": 1,
        "assoc_uses": [[1, 0, 0], *[[0, 0, 0]] * 5],
        "has_assoc": [[1, 0], *[[0, 0]] * 15],
        **{f"sum_size_which_{name}": 0 for name in ("b", "coef", "interactions")},
        **{f"size_which_{name}": [0, 0] for name in ("b", "coef")},
        **{name: [] for name in ("which_b_zindex", "which_coef_zindex", "which_coef_xindex", "which_interactions")},
        "size_which_interactions": [0] * 8,
        "nrow_y_Xq": [points, points, 0],
        "auc_qnodes": 0,
        "nrow_y_Xq_auc": 0,
        "auc_qwts": [],
        "a_K_data": [0] * 8,
        "y_Xq_data": np.zeros((2 * points, 0)),
        "idx_q": [[1, points], [points + 1, 2 * points], [0, 0]],
        "has_grp": [0, 0],
        "grp_assoc": 0,
        "grp_idx": np.zeros((points, 2), dtype=int),
        **{f"e_prior_{what}": np.ones(2) for what in ("mean", "scale", "df")},
        **{f"e_prior_{what}_for_intercept": 1.0 for what in ("mean", "scale", "df")},
        **{f"e_prior_{what}_for_aux": [1.0] for what in ("mean", "scale", "df")},
        **{f"a_prior_{what}": [1.0] for what in ("mean", "scale", "df")},
        **{
            f"{part}_{name}": 1.0
            for part in ("e", "a")
            for name in ("global_prior_scale", "global_prior_df", "slab_df", "slab_scale")
        },
    }
    for number in (1, 2, 3):
        for use in ("eta", "eps", "auc"):
            read = number == 1 and use == "eta"
            found |= {
                f"y{number}_xq_{use}": rng.normal(size=(points, COLUMNS)) if read else np.zeros((0, COLUMNS)),
                f"y{number}_offset_{use}": [],
                f"y{number}_z1q_{use}": np.ones((1, points)) if read else np.zeros((int(number < 3), 0)),
                f"y{number}_z1q_id_{use}": group if read else [],
                f"y{number}_z2q_{use}": none,
                f"y{number}_z2q_id_{use}": [],
            }
    return found


MAKERS: dict[str, Callable[[np.random.Generator], dict[str, Any]]] = {
    "bernoulli": _events,
    "binomial": _glm(0, _successes),
    "continuous": _glm(3, _reals),
    "count": _glm(3, _counts),
    "jm": _joint,
    "mvmer": _submodels,
    "polr": _glm(0, _categories),
}
