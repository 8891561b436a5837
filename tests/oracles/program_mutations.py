"""Programs with a few tokens or statements changed, as typing mistakes and worse would: for fuzzing.

`mutant(corpus, seed, number)` gives the same program for the same arguments, so that a run can be resumed and a failure
repeated.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

TOKEN = re.compile(
    r"\s+|//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"|[A-Za-z_]\w*|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|%/%|[-+*/<>=!.|&]=?|.", re.DOTALL
)
STATEMENT = re.compile(r"[^;{}]*[;{}]")

POOL = """
; { } ( ) [ ] , | ~ = == != < > <= >= + - * / % ^ ' ? : || && ! .* ./ += \\ %/% . .1 " // /* # $ @ \x00 \ufffd \u00e9
int real complex vector[2] row_vector[2] matrix[2,2] array[2] array[] tuple(int,real) simplex[2] ordered[2]
cholesky_factor_corr[2] cov_matrix[2] sum_to_zero_vector[2] void data parameters model functions target jacobian
if else while for in break continue return print reject profile("x") lower=0 upper=1 offset=1 multiplier=2
0 1 -1 2 2147483647 2147483648 99999999999999999999 1e308 1e999 0.5 1i 1_000 x y N n mu sigma normal normal_lpdf
normal_lupdf normal_rng normal_lcdf poisson std_normal sum exp log sqrt to_int to_vector rep_vector size rows pow
dot_product cholesky_decompose multi_normal ode_rk45 reduce_sum map_rect integrate_1d dae svd fft owens_t qr
lower_bound_jacobian to_complex append_row head segment categorical_logit hmm_marginal #include #include"x" T[0,]
target() (1,2) {1,2} [1,2] [[1,2],[3,4]] {} [] 1:2 , ,,
""".split()


def corpus_of(folders: Iterable[Path], limit: int = 40_000) -> list[str]:
    """The texts of all programs in some folders, without the longest."""
    texts: list[str] = []
    for folder in folders:
        for path in sorted(folder.rglob("*.stan")):
            text = path.read_text(encoding="utf-8", errors="replace")
            if 0 < len(text) <= limit:
                texts.append(text)
    return texts


def own_corpus() -> list[Path]:
    """The folders with programs of this project."""
    root = Path(__file__).parents[2]
    return [root / "examples", root / "docs", root / "tests"]


def mutant(corpus: Sequence[str], seed: int, number: int) -> str:
    """A program of the corpus with one to six changes."""
    rng = random.Random(f"{seed}:{number}")
    text = rng.choice(corpus)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        change = _statement_change if rng.random() < 0.35 else _token_change
        text = change(rng, text, rng.choice(corpus))
    return text


def _token_change(rng: random.Random, text: str, other: str) -> str:
    tokens = TOKEN.findall(text)
    if not tokens:
        return rng.choice(POOL)
    at = rng.randrange(len(tokens))
    kind = rng.randrange(8)
    if kind == 0:
        del tokens[at]
    elif kind == 1:
        tokens.insert(at, rng.choice(POOL))
    elif kind == 2:
        tokens[at] = rng.choice(POOL)
    elif kind == 3:
        tokens[at] = rng.choice(TOKEN.findall(other) or POOL)
    elif kind == 4:
        tokens[at] = rng.choice(tokens)
    elif kind == 5:
        with_ = rng.randrange(len(tokens))
        tokens[at], tokens[with_] = tokens[with_], tokens[at]
    elif kind == 6:
        del tokens[at : at + rng.randrange(1, 12)]
    else:
        end = at + rng.randrange(1, 6)
        tokens[at:end] = tokens[at:end] * rng.choice((2, 2, 3, 50))
    return "".join(tokens)


def _statement_change(rng: random.Random, text: str, other: str) -> str:
    statements = STATEMENT.findall(text)
    if not statements:
        return text
    at = rng.randrange(len(statements))
    kind = rng.randrange(5)
    if kind == 0:
        del statements[at]
    elif kind == 1:
        statements.insert(rng.randrange(len(statements)), statements[at])
    elif kind == 2:
        statements.insert(at, rng.choice(STATEMENT.findall(other) or [";"]))
    elif kind == 3:
        with_ = rng.randrange(len(statements))
        statements[at], statements[with_] = statements[with_], statements[at]
    else:
        statements[at] = rng.choice(STATEMENT.findall(other) or [";"])
    return "".join(statements)
