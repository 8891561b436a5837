"""Functions of the library that a large program calls: what they compute is what they do where they are in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

import ulam
from ulam.dialects import rt
from ulam.passes.to_loops import shared_functions
from ulam.runtime.externals import register_library

pytestmark = pytest.mark.usefixtures("quick_code")

TIMES = 8
TERMS = {
    "wiener": "wiener_lpdf({y} | a + {k}, 0.2, 0.4, b)",
    "one argument is data": "wiener_lpdf({y} | 1.5, 0.2, 0.4, b + {k})",
    "wiener of vectors": "wiener_lpdf(y | a + {k}, 0.2, 0.4, b * y)",
    "student_t_lcdf": "student_t_lcdf({y} | 3 * a, b, {k} + a)",
    "two of them": "log_modified_bessel_first_kind(a, {y} + {k}) + owens_t(a, b * {y})",
}


def program(term: str) -> str:
    terms = " ".join(f"target += {term.format(y=f'y[{k % 3 + 1}]', k=0.1 * k)};" for k in range(TIMES))
    return f"data {{ vector[3] y; }} parameters {{ real<lower=0> a; real b; }} model {{ {terms} }}"


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("name", TERMS)
def test_values_and_gradients(name: str, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for places in (2, 10**9):
        monkeypatch.setattr(shared_functions, "PLACES", places)
        model = ulam.StanModel(program(TERMS[name]), {"y": [0.7, 1.1, 1.9]}, opt_level=level, cache=False)
        found.append(model.log_density_gradient([0.4, 0.3]))
    (value, gradient), (expected, slope) = found
    assert value == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(gradient, slope, rtol=1e-12)


def test_they_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones are in place; so is a call of data, and of what is small."""
    monkeypatch.setattr(shared_functions, "PLACES", 2)
    assert calls("wiener_lpdf({y} | a, 0.2, 0.4, b)", "wiener_log_density") == [TIMES - 2]
    assert calls("wiener_lpdf({y} | a, 0.2, 0.4, b) + wiener_lpdf({y} | 2, 0.2, b, 0.1)", "wiener_log_density") == [
        TIMES - 1, TIMES - 1
    ]  # fmt: skip
    assert not calls("b * wiener_lpdf({y} | 1.5, 0.2, 0.4, 0.1)", "")
    assert not calls("owens_t(a, b)", "")


def calls(term: str, name: str) -> list[int]:
    """The number of calls of each version of a function, without those in the functions themselves."""
    model = ulam.StanModel(program(term), {"y": [0.7, 1.1, 1.9]}, opt_level=0, cache=False)
    module = model.module("lowered")
    assert isinstance(module, ModuleOp)
    entries = [op for op in module.body.block.ops if isinstance(op, func.FuncOp) and rt.EntryAttr.marks(op)]
    names = [op.callee.root_reference.data for e in entries for op in e.walk() if isinstance(op, func.CallOp)]
    return sorted(Counter(n for n in names if n.startswith(f"library.{name}") and ".forward" in n).values())


@pytest.mark.parametrize("unit", ["gradient_propto", "constrain"])
def test_each_version_is_called(unit: str) -> None:
    """Of parts of solvers, too, which are written for the numbers of states and parameters that are known."""
    text = """
functions { vector decay(real t, vector y, real a) { return -a * y; } }
parameters { real<lower=0> a; vector[2] y0; }
transformed parameters {
  array[1] vector[2] y = ode_bdf(decay, y0, 0, {1}, a);
  array[1] vector[2] z = ode_bdf(decay, [1, 1]', 0, {1}, a);
}
model { target += sum(y[1]) + sum(z[1]); }
"""
    module = ulam.StanModel(text, opt_level=3, cache=False).module("lowered", unit)
    assert isinstance(module, ModuleOp)
    written = {op.sym_name.data for op in module.body.block.ops if isinstance(op, func.FuncOp)}
    called = {op.callee.root_reference.data for op in module.walk() if isinstance(op, func.CallOp)}
    assert any(name.startswith("library.") for name in called)
    assert [name for name in written - called if name.startswith("library.")] == []


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One that divides by an int and rejects, and one that calls it twice; the third call of each is one."""
    monkeypatch.setattr(shared_functions, "PLACES", 2)
    monkeypatch.setattr(shared_functions, "LARGE", 1)
    (tmp_path / "shares.stan").write_text("""
real shared(real x, int n, int k) { return part_of_shared(x, n, k) + part_of_shared(x, 0, 1); }
real part_of_shared(real x, int n, int k) {
  if (n == 99) reject("too large: ", k);
  return exp(x) * (n %/% k);
}
""")
    register_library("shares", tmp_path)
    yield
    register_library("shares")


CALLS = 6
BLOCKS = {
    "transformed data": ("setup", "{{ {} }} parameters {{ real a; }}", "1.0"),
    "transformed parameters": ("constrain", "{{ {} }}", "a"),
    "model": ("gradient_propto", "{{ {} target += t; }}", "a"),
}


@pytest.mark.parametrize("line", [1, 3, 6])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.usefixtures("failing")
def test_an_error_is_at_the_call_in_the_program(block: str, line: int) -> None:
    unit, body, argument = BLOCKS[block]
    calls = "".join(f"\nt += shared({argument}, {'n, k' if k == line else '1, 1'});" for k in range(1, CALLS + 1))
    parameters = "" if block == "transformed data" else "parameters { real a; } "
    text = f"data {{ int n; int k; }} {parameters}{block} {body.format('real t = 0;' + calls)}"
    model = evaluated(text, block, n=1, k=1)
    assert "@library" in str(model.module("lowered", unit))
    place = f"line {line + 1}, column 6"
    with pytest.raises(ulam.UlamError, match="zero") as failure:
        evaluated(text, block, n=1, k=0)
    assert place in str(failure.value)
    with pytest.raises(ulam.UlamError, match="too large: 7") as failure:
        evaluated(text, block, n=99, k=7)
    assert "shares.stan', line 4" in str(failure.value)


def evaluated(text: str, block: str, **data: int) -> ulam.StanModel:
    """A model whose block has been run."""
    model = ulam.StanModel(text, data, opt_level=0, cache=False)
    if block == "model":
        model.log_density_gradient([0.0])
    else:
        model.param_constrain([0.0], include_tp=True, include_gq=True, rng=model.new_rng(1))
    return model


def test_indices_within_known_sizes_are_no_checks() -> None:
    """An index of a loop whose end is one of two constants is within an array: the function cannot fail for it."""
    text = """
        functions {
          real f(real s) {
            array[20] real x = rep_array(s, 20);
            int m = s == 0 ? 1 : 20;
            real t = 0;
            for (half in 0:(m == 1 ? 0 : 1)) for (j in 1:m) t += m == 1 ? 0 : half == 0 ? x[j] : 2 * x[j];
            return t;
          }
        }
        parameters { real s; }
        model { target += f(s); }
    """
    model = ulam.StanModel(text, opt_level=0)
    assert not model.density_gradient_unit().sites
    assert model.log_density([3.0]) == 20 * 3 * 3
