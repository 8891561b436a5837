"""Random numbers against their distributions: a million draws of each, extreme parameters included, from a fixed seed.

    python benchmarks/rng_distributions.py [--only PREFIX] [--kind discrete] [--draws N] [--seed S] [--state FILE]
        [--write]

Draws of continuous distributions become uniform numbers by the distribution function of the library, which tails.py
compares with extended precision: Kolmogorov and Smirnov's statistic, and how many are in either tail of 1e-5. Draws of
integers are counted against the masses: chi-square over cells that are expected at least ten times. Of vectors and
matrices a scalar is taken whose distribution is known. A p-value below 1e-6 in any is a failure. With `--write` the
smallest of each become the table in docs/accuracy.md.

Shapes are not so small that a share of the draws that is seen here rounds to 0, or to 1.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import ulam

SMALLEST_P = 1e-6
TAIL = 1e-5
DOCUMENT = Path(__file__).parents[1] / "docs" / "accuracy.md"
BEGIN = "<!-- begin: random numbers, written by benchmarks/rng_distributions.py -->\n"
END = "<!-- end: random numbers -->"


class Case(NamedTuple):
    """A draw, as an expression in Stan, and its distribution, as arguments behind the bar."""

    draw: str
    distribution: str
    """Name and arguments: `gamma(2, 3)`."""
    outcome: str = "y"
    """What has that distribution, of the draw y."""
    type: str = "real"

    @property
    def is_discrete(self) -> bool:
        return self.type == "int"

    def function(self, suffix: str) -> str:
        """The call of its density or distribution function at the outcome."""
        name, _, arguments = self.distribution[:-1].partition("(")
        return f"{name}_{suffix}({self.outcome} | {arguments})"


def _own(name: str, *parameters: str, discrete: bool = False) -> list[Case]:
    kind = "int" if discrete else "real"
    return [Case(f"{name}_rng({p})", f"{name}({p})", type=kind) for p in parameters]


CASES = [
    *_own("std_normal", ""),
    *_own("normal", "1.5, 2", "-1e6, 1e-3"),
    *_own("cauchy", "1.5, 2", "1e10, 1e-3"),
    *_own("double_exponential", "1.5, 2"),
    *_own("logistic", "1.5, 2"),
    *_own("gumbel", "1.5, 2"),
    *_own("student_t", "3, 1.5, 2", "0.05, 0, 1", "1e6, 0, 1", "1, 0, 1", "0.03, 0, 1", "1e10, 0, 1"),
    *_own("skew_normal", "1.5, 2, 3", "0, 1, -50", "0, 1, 0", "0, 1, 1e4"),
    *_own("exp_mod_normal", "1.5, 2, 3", "0, 1, 0.01", "0, 1, 100", "0, 1, 1e4", "0, 1e-3, 1"),
    *_own("skew_double_exponential", "1.5, 2, 0.3", "0, 1, 0.001", "0, 1, 0.999"),
    *_own("von_mises", "0, 2", "0, 0.01", "0, 500", "1, 3", "0, 1e-6", "3, 1e5"),
    *_own("lognormal", "1.5, 2", "0, 50"),
    *_own("exponential", "3"),
    *_own("gamma", "2, 3", "0.1, 1", "1, 1", "1e5, 1", "0.3, 20", "0.03, 1", "1e8, 1"),
    *_own("inv_gamma", "2, 3", "0.1, 1", "1e5, 1", "0.05, 1"),
    *_own("chi_square", "3", "0.1", "1e5"),
    *_own("inv_chi_square", "3", "0.3", "1e5"),
    *_own("scaled_inv_chi_square", "3, 2", "0.3, 1"),
    *_own("weibull", "1.5, 2", "0.1, 1", "50, 1", "0.02, 1"),
    *_own("frechet", "1.5, 2", "0.1, 1", "50, 1"),
    *_own("rayleigh", "2"),
    *_own("pareto", "1.5, 2", "1, 0.05", "1, 100"),
    *_own("pareto_type_2", "0.5, 1.5, 2", "0, 1, 0.1", "0, 1, 0.05"),
    *_own("beta", "2, 3", "0.5, 0.5", "0.05, 3", "1, 1", "1e4, 2e4", "30, 2", "0.05, 1e6", "1e8, 1e8"),
    *_own("beta_proportion", "0.3, 5", "0.05, 2", "0.999, 1e4"),
    *_own("uniform", "-1, 3"),
    Case("loglogistic_rng(1.5, 2)", "logistic(log(1.5), 0.5)", "log(y)"),
    Case("loglogistic_rng(1.5, 0.05)", "logistic(log(1.5), 20)", "log(y)"),
    *_own("bernoulli", "0.3", "1e-4", discrete=True),
    *_own("bernoulli_logit", "-1.5", "9", "-14", discrete=True),
    *_own("binomial", "10, 0.3", "1000, 0.001", "1000000, 0.4", "20, 0.99", discrete=True),
    *_own("binomial", "2000000000, 1e-9", "2000000000, 0.7", discrete=True),
    *_own("beta_binomial", "10, 2, 3", "50, 0.1, 0.2", "30, 1e3, 1e3", "10000, 0.01, 5", discrete=True),
    *_own("discrete_range", "-3, 12", discrete=True),
    *_own("poisson", "0.01", "3", "9.9", "10.1", "1e4", "1e-6", "30", "1e8", discrete=True),
    *_own("poisson_log", "-3", "5", "18", discrete=True),
    *_own("neg_binomial", "2, 3", "0.05, 0.1", "100, 0.5", "1e-3, 1e-3", discrete=True),
    *_own("neg_binomial_2", "5, 2", "100, 0.1", "3, 1e6", "1e4, 0.01", "1e6, 1e8", discrete=True),
    *_own("neg_binomial_2_log", "1, 2", "4, 0.2", "-8, 1e-4", discrete=True),
    *_own("beta_neg_binomial", "2, 3, 4", "5, 10, 0.5", "100, 2, 0.1", discrete=True),
    *_own("yule_simon", "3", "0.9", discrete=True),
    *_own("hypergeometric", "5, 10, 20", "40, 30, 500", "1000, 100000, 200000", "5000, 10, 1000000", discrete=True),
    *_own("categorical", "[0.2, 0.5, 0.299, 0.001]'", discrete=True),
    *_own("categorical_logit", "[1, -2, 0.5, -8]'", "[800, 799, 0]'", discrete=True),
    Case("bernoulli_logit_glm_rng([[1, 2]], [0.3]', [0.5, -1]')[1]", "bernoulli_logit(-1.2)", type="int"),
    *(
        Case(
            f"hmm_latent_rng([[log(2), 0], [0, log(3)]], [[0.7, 0.3], [0.2, 0.8]], [0.4, 0.6]')[{time}]",
            f"categorical([{first}, {second}]' / 2.84)",
            type="int",
        )
        for time, first, second in ((1, 1.28, 1.56), (2, 0.68, 2.16))
    ),
    *_own("ordered_logistic", "0.3, [-1, 0.5, 6]'", "-13, [-1, 0.5, 6]'", discrete=True),
    *_own("ordered_probit", "0.3, [-1, 0.5, 4]'", discrete=True),
    Case("dirichlet_rng([0.5, 2, 3]')", "beta(2, 3.5)", "y[2]", "vector[3]"),
    Case("dirichlet_rng([0.05, 2, 3]')", "beta(0.05, 5)", "y[1]", "vector[3]"),
    Case("dirichlet_rng([0.05, 1e5]')", "beta(0.05, 1e5)", "y[1]", "vector[2]"),
    Case("multi_normal_rng([1, 2]', [[2, 1], [1, 3]])", "normal(-1, sqrt(3))", "y[1] - y[2]", "vector[2]"),
    Case("multi_normal_cholesky_rng([1, 2]', [[2, 0], [1, 3]])", "normal(2, sqrt(10))", "y[2]", "vector[2]"),
    Case("multi_student_t_rng(3, [1, 2]', [[2, 1], [1, 3]])", "student_t(3, -1, sqrt(3))", "y[1] - y[2]", "vector[2]"),
    Case("wishart_rng(5, [[2, 1], [1, 3]])", "gamma(2.5, 0.25)", "y[1, 1]", "matrix[2, 2]"),
    Case("wishart_rng(1.5, [[2, 1], [1, 3]])", "gamma(0.75, 0.5 / 7)", "sum(y)", "matrix[2, 2]"),
    Case("wishart_rng(1e4, [[2, 1], [1, 3]])", "gamma(5e3, 0.25)", "y[1, 1]", "matrix[2, 2]"),
    Case("inv_wishart_rng(5, [[2, 0], [0, 3]])", "inv_gamma(2, 1.5)", "y[2, 2]", "matrix[2, 2]"),
    Case("wishart_cholesky_rng(5, [[1, 0], [0.5, 2]])", "gamma(2.5, 0.5)", "square(y[1, 1])", "matrix[2, 2]"),
    Case("inv_wishart_cholesky_rng(5, [[1, 0], [0.5, 2]])", "inv_gamma(2, 2.125)", "dot_self(y[2])", "matrix[2, 2]"),
    Case("lkj_corr_cholesky_rng(3, 2)", "beta(2.5, 2.5)", "0.5 + 0.5 * y[2, 1]", "matrix[3, 3]"),
    Case("multi_student_t_cholesky_rng(3, [1, 2]', [[2, 0], [1, 3]])[2]", "student_t(3, 2, sqrt(10))"),
    Case("multinomial_rng([0.2, 0.5, 0.3]', 20)[2]", "binomial(20, 0.5)", type="int"),
    Case("multinomial_logit_rng([0, log(2), -1]', 20)[1]", "binomial(20, inv(3 + exp(-1)))", type="int"),
    Case("multinomial_rng([1e-6, 0.5, 0.499999]', 1000)[1]", "binomial(1000, 1e-6)", type="int"),
    Case("dirichlet_multinomial_rng([0.5, 2, 3]', 20)[2]", "beta_binomial(20, 2, 3.5)", type="int"),
    Case("lkj_corr_rng(3, 2)", "beta(2.5, 2.5)", "0.5 + 0.5 * y[3, 1]", "matrix[3, 3]"),
    Case("lkj_corr_rng(10, 50)", "beta(54, 54)", "0.5 + 0.5 * y[4, 2]", "matrix[10, 10]"),
    Case("lkj_corr_rng(4, 0.2)", "beta(1.2, 1.2)", "0.5 + 0.5 * y[4, 2]", "matrix[4, 4]"),
]


def uniform_numbers(case: Case, draws: int, seed: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Logs of the distribution function and of its complement at draws."""
    program = f"""data {{ int N; }}
generated quantities {{
  vector[N] below; vector[N] above;
  for (i in 1:N) {{
    {case.type} y = {case.draw};
    below[i] = {case.function("lcdf")};
    above[i] = {case.function("lccdf")};
  }}
}}"""
    model = ulam.StanModel(program, {"N": draws})
    found = model.param_constrain(np.zeros(0), include_gq=True, rng=model.new_rng(seed))
    return found[:draws], found[draws:]


def kolmogorov(numbers: npt.NDArray[np.float64]) -> float:
    """The p-value of the largest distance between the empirical distribution and the uniform one."""
    n = numbers.size
    ordered, steps = np.sort(numbers), np.arange(n + 1) / n
    distance = max(np.max(steps[1:] - ordered), np.max(ordered - steps[:-1]))
    x = distance * (math.sqrt(n) + 0.12 + 0.11 / math.sqrt(n))
    if x < 0.3:
        return 1.0
    return min(1.0, 2 * sum((-1) ** (k - 1) * math.exp(-2 * (k * x) ** 2) for k in range(1, 101)))


def poisson_p(count: int, rate: float) -> float:
    """Twice the smaller tail of a Poisson count."""
    terms = [math.exp(k * math.log(rate) - rate - math.lgamma(k + 1)) for k in range(count + 1)]
    return min(1.0, 2 * min(sum(terms), 1 - sum(terms) + terms[-1]))


def of_continuous(case: Case, draws: int, seed: int) -> dict[str, float]:
    """p-values: of all draws, and of the counts in the tails."""
    below, above = uniform_numbers(case, draws, seed)
    values = np.where(below < -0.5, np.exp(below), -np.expm1(above))
    tails = {"lower tail": below, "upper tail": above}
    return {"all": kolmogorov(values)} | {
        name: poisson_p(int(np.sum(logs < math.log(TAIL))), TAIL * draws) for name, logs in tails.items()
    }


def of_discrete(case: Case, draws: int, seed: int) -> dict[str, float]:
    """The p-value of chi-square over the outcomes that are expected often enough, the others in one cell."""
    text = f"data {{ int N; }} generated quantities {{ array[N] int k; for (i in 1:N) k[i] = {case.draw}; }}"
    model = ulam.StanModel(text, {"N": draws})
    drawn = model.param_constrain(np.zeros(0), include_gq=True, rng=model.new_rng(seed)).astype(int)
    outcomes, counts = np.unique(drawn, return_counts=True)
    mass = case.function("lpmf")
    text = (
        "data { int M; array[M] int k; } generated quantities { vector[M] p; "
        f"for (i in 1:M) {{ int y = k[i]; p[i] = exp({mass}); }} }}"
    )
    model = ulam.StanModel(text, {"M": outcomes.size, "k": outcomes.tolist()})
    masses = model.param_constrain(np.zeros(0), include_gq=True, rng=model.new_rng(seed))[: outcomes.size]
    often = masses * draws >= 10
    expected = np.append(masses[often] * draws, max(draws * (1 - masses[often].sum()), 0.0))
    seen = np.append(counts[often], counts[~often].sum())
    if expected[-1] < 10:  # too few for a cell of their own
        rest = poisson_p(int(seen[-1]), max(float(expected[-1]), 1e-9)) if seen[-1] or expected[-1] > 1e-6 else 1.0
        expected, seen = expected[:-1] * (seen[:-1].sum() / expected[:-1].sum()), seen[:-1]
    else:
        rest = 1.0
    statistic = float(np.sum((seen - expected) ** 2 / expected))
    return {"all": chi_square_p(statistic, max(expected.size - 1, 1)), "rare": rest}


def chi_square_p(x: float, degrees: int) -> float:
    """The upper tail, by Wilson and Hilferty's normal approximation."""
    z = ((x / degrees) ** (1 / 3) - (1 - 2 / (9 * degrees))) / math.sqrt(2 / (9 * degrees))
    return 0.5 * math.erfc(z / math.sqrt(2))


def p_values(case: Case, draws: int, seed: int) -> dict[str, float]:
    """By what is tested."""
    return (of_discrete if case.is_discrete else of_continuous)(case, draws, seed)


def table(cases: list[Case], found: dict[str, dict[str, float]]) -> list[str]:
    """Of the documentation: the parameters of each function, and the smallest p-value of all its draws."""
    by_name: dict[str, list[tuple[str, float]]] = {}
    for case in cases:
        name, _, arguments = case.draw.partition("(")
        by_name.setdefault(name, []).append((arguments.rpartition(")")[0], min(found[case.draw].values())))
    rows = [
        f"| {name} | {'; '.join(f'`{text}`' for text, _ in tried if text)} | {min(p for _, p in tried):.2g} |"
        for name, tried in by_name.items()
    ]
    return ["| function | parameters | smallest p |", "|---|---|--:|", *rows]


def read(state: Path | None) -> dict[str, dict[str, float]]:
    """What earlier runs with the same options have found, by draw."""
    lines = state.read_text().splitlines() if state and state.exists() else []
    return dict(map(json.loads, lines))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="draws that begin so")
    parser.add_argument("--kind", choices=("discrete", "continuous"), help="only these")
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--state", type=Path, help="file with what is done; read and written")
    parser.add_argument("--write", action="store_true", help="the table of the documentation")
    options = parser.parse_args()
    cases = [c for c in CASES if c.draw.startswith(options.only)]
    cases = [c for c in cases if options.kind != ("continuous" if c.is_discrete else "discrete")]
    found = read(options.state)
    for case in cases:
        if case.draw in found:
            continue
        found[case.draw] = p_values(case, options.draws, options.seed)
        bad = not min(found[case.draw].values()) >= SMALLEST_P
        shown = ", ".join(f"{name} {p:.2g}" for name, p in found[case.draw].items())
        print(f"{case.draw}: {shown}{'   <-- FAILS' if bad else ''}", flush=True)
        if options.state:
            with options.state.open("a") as file:
                file.write(json.dumps([case.draw, found[case.draw]]) + "\n")
    failures = sum(not min(found[c.draw].values()) >= SMALLEST_P for c in cases)
    tests = sum(len(found[c.draw]) for c in cases)
    summary = f"{len(cases)} distributions, {options.draws} draws each, {tests} p-values; {failures} failures"
    print(summary)
    if options.write:
        text = DOCUMENT.read_text()
        before, after = text.partition(BEGIN)[0], text.partition(END)[2]
        lines = "\n".join(table(cases, found))
        DOCUMENT.write_text(f"{before}{BEGIN}\n{summary}.\n\n{lines}\n\n{END}{after}")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
