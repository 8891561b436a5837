"""Long chains of branches: what they compute, and that the work for them is in proportion to their length."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from work import lines_executed

import ulam
from ulam.frontend.parse.core import MAX_BRANCHES
from ulam.frontend.parse.statements import MAX_NESTING
from ulam.passes.value_form.split_branch_chains import LONGEST
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.errors import CompileError

pytestmark = pytest.mark.usefixtures("quick_code")


def _else_ifs(n: int, statement: Callable[[int], str], last: str) -> str:
    return " else ".join(f"if (x < {k}.5) {statement(k)}" for k in range(n)) + f" else {last}"


def _function(body: str) -> str:
    return f"functions {{ real f(real x) {{ {body} }} }} parameters {{ real x; }} model {{ target += f(x); }}"


CHAINS: dict[str, Callable[[int], str]] = {
    "else if": lambda n: _function("real a; " + _else_ifs(n, lambda k: f"a = x * {k};", "a = -x;") + " return a;"),
    "returns": lambda n: _function(_else_ifs(n, lambda k: f"return x * {k};", "return -x;")),
    "single ifs": lambda n: _function(" ".join(f"if (x < {k}.5) return x * {k};" for k in range(n)) + " return -x;"),
    "choices": lambda n: _function("return " + "".join(f"x < {k}.5 ? x * {k} : " for k in range(n)) + "-x;"),
    "choice of vectors": lambda n: _function(
        "return sum(" + "".join(f"x < {k}.5 ? [x * {k}]' : " for k in range(n)) + "[-x]');"
    ),
    "some return": lambda n: _function(
        "real a = 0; while (1) { "
        + _else_ifs(n, lambda k: f"return x * {k};" if k % 7 == 3 else f"a += x * {k};", "a -= x;")
        + " break; } return a;"
    ),
}
N = 2 * LONGEST + 7


@pytest.mark.parametrize(("kind", "level"), [*((kind, 0) for kind in CHAINS), ("some return", 3), ("choices", 3)])
def test_the_first_branch_that_holds_is_taken(kind: str, level: int) -> None:
    model = ulam.StanModel(CHAINS[kind](N), opt_level=level)
    for k in (0, 1, 3, LONGEST - 1, LONGEST, LONGEST + 1, 2 * LONGEST, N - 1, N, N + 5):
        factor = k if k < N else -1
        value, gradient = model.log_density_gradient(np.array([k + 0.25]))
        assert (value, gradient.tolist()) == (pytest.approx(factor * (k + 0.25)), [pytest.approx(factor)])


def test_conditions_are_evaluated_in_turn_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    functions = "functions { int p(int k) { print(k); return 0; } } "
    chain = " else ".join(f"if (p({k})) x = {k};" for k in range(N))
    choices = "".join(f"p({k}) ? {k} : " for k in range(N)) + "-1"
    ulam.StanModel(f"{functions} transformed data {{ int x; {chain} int y = {choices}; }}", opt_level=0)
    assert [int(line) for line in capsys.readouterr().out.split()] == [*range(N), *range(N)]


def test_choices_of_outputs() -> None:
    choices = "".join(f"x < {k}.5 ? x * {k} : " for k in range(N)) + "-x"
    text = (
        f"parameters {{ real x; }} transformed parameters {{ real<lower=({choices})> t = {choices}; real u = t; }} "
        f"generated quantities {{ real<upper=({choices})> g = {choices}; }}"
    )
    model = ulam.StanModel(text, opt_level=0)
    outputs = model.param_constrain(np.array([2.25]), include_tp=True, include_gq=True, rng=model.new_rng(1))
    assert outputs.tolist() == [2.25, 4.5, 4.5, 4.5]


def test_choices_where_no_statement_stands() -> None:
    choices = "".join(f"n == {k} ? {k} : " for k in range(N)) + "-1"
    text = (
        f"data {{ int n; }} parameters {{ vector[({choices}) > 50 ? 2 : 1] x; }} "
        f"model {{ int m = 0; while (m < ({choices}) && 1 == (({choices}) > 3)) m += 1; target += m * sum(x); }}"
    )
    for n, parameters, factor in ((2, 1, 0), (60, 2, 60)):
        model = ulam.StanModel(text, {"n": n}, opt_level=0)
        assert model.param_unc_num() == parameters
        assert model.log_density(np.ones(parameters)) == factor * parameters


def test_work_is_in_proportion_to_the_length() -> None:
    def work(count: int) -> int:
        compiler = Compiler(CHAINS["single ifs"](count), "model.stan", CompileOptions(0))
        return lines_executed(lambda: compiler.llvm_text("gradient_full"))

    work(2)  # what is imported and made once
    base, once, twice = (work(n * LONGEST) for n in (3, 4, 5))  # all so long that the function is split
    assert twice - once < 1.1 * (once - base)


def test_chains_are_longer_than_nests() -> None:
    assert MAX_BRANCHES > MAX_NESTING
    with pytest.raises(CompileError, match=f"more than {MAX_BRANCHES} branches in a row"):
        ulam.StanModel(CHAINS["choices"](MAX_BRANCHES + 1))
