"""Variables of tuple type, and programs that read `target()`."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.errors import FatalError, Rejection
from ulam.runtime.names import GlobalVariable, by_name, unconstrained_positions

pytestmark = pytest.mark.usefixtures("quick_code")


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ULAM_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def gradient_is_right(m: ulam.StanModel, theta: np.ndarray) -> None:
    value, gradient = m.log_density_gradient(theta, propto=False)
    assert value == pytest.approx(m.log_density(theta, propto=False), rel=1e-12)
    for i, slope in enumerate(gradient):
        step = np.zeros_like(theta)
        step[i] = 1e-5
        up, down = (m.log_density(theta + s, propto=False) for s in (step, -step))
        assert slope == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-6)


P = np.array([-1.0, -2.0, 3.0])

TUPLES = {
    "fields": ("""
        parameters { vector[3] p; }
        model {
          tuple(real, vector[3]) t;
          t = (p[1], p);
          target += t.1 * sum(t.2);
          t.1 = 3 * p[2];
          target += t.1^2;
          t.2 = p .* p;
          target += sum(t.2);
        }""", 50.0),
    "functions and loops": ("""
        functions {
          tuple(real, vector) f(real x, vector v) { if (x > 0) return (x, v); return (-x, v * 2); }
          tuple(real, vector) g(real x, vector v) {
            for (i in 1:2) if (x < -i - 0.5) return (x * 3, v);
            return (-x, v * 2);
          }
        }
        parameters { vector[3] p; }
        model {
          tuple(real, vector[3]) t = f(p[1], p);
          target += t.1 * sum(t.2);
          for (i in 1:3) { t = f(t.1 * p[2], t.2); if (i > 1) t.1 = p[1]; }
          target += t.1^2 * sum(t.2);
          target += g(p[2], p).1 + sum(g(p[1], p).2);
        }""", -6.0),
    "nested": ("""
        parameters { vector[3] p; }
        model {
          tuple(real, tuple(vector[3], int)) t;
          for (i in 1:3) { t = (p[i], (p * i, i)); target += t.2.1[2] * t.2.2 * t.1; }
          t.2.1 = p;
          target += sum(t.2.1);
        }""", -36.0),
    "elements of elements": ("""
        parameters { vector[3] p; }
        model {
          array[2] tuple(real, vector[3]) t = {(p[1], p), (1, p)};
          t[2].2[3] = p[1];
          t[1].1 += p[2];
          t[2] = (t[1].1 * 2, t[2].2);
          (t[1].1, t[1].2[2]) = (p[3], 7);
          for (e in t) target += e.1 * sum(e.2);
          for (e in t[2:]) target += e.1;
        }""", 3 * (-1 + 7 + 3) - 6 * (-1 - 2 - 1) - 6),
    "arrays in functions": ("""
        functions {
          array[] tuple(real, vector) twice(array[] tuple(real, vector) a, real x) {
            array[2] tuple(real, vector[3]) b = a;
            for (i in 1:2) b[i].1 = a[i].1 * x;
            return b;
          }
        }
        parameters { vector[3] p; }
        model {
          array[2] tuple(real, vector[3]) t = twice({(p[1], p), (1, 2 * p)}, p[2]);
          tuple(real, array[2, 1] tuple(real, int)) u = (p[3], {{(p[1], 2)}, {(p[2], 3)}});
          u.2[2, 1].1 += 1;
          target += t[1].1 * t[2].1 * t[2].2[3] + u.2[1][1].1 * u.2[2, 1].2 + u.2[2, 1].1;
        }""", 2 * -2 * 6 - 3 - 1),
    "unpacking": ("""
        parameters { vector[3] p; }
        model { real a; vector[3] b; (a, b) = (p[1], p * 2); target += a * sum(b .* p); }""", -28.0),
    "promotion": ("parameters { vector[3] p; } model { tuple(real, real) t = (1, 2); target += t.1 * p[1] / t.2; }",
                  -0.5),
}  # fmt: skip


@pytest.mark.parametrize("name", TUPLES)
def test_local_tuples(name: str) -> None:
    text, expected = TUPLES[name]
    m = ulam.StanModel(text)
    assert m.log_density(P) == pytest.approx(expected)
    gradient_is_right(m, P)


def test_tuples_in_all_blocks() -> None:
    m = ulam.StanModel("""
        data { int n; tuple(int, vector[n]) d; tuple(tuple(int, real), array[2] int) e; }
        transformed data { tuple(real, vector[n]) td = (d.1 * 0.5, d.2 + 1); }
        parameters { vector[n] p; }
        transformed parameters { tuple(real, vector[n]) tp = (p[1] * e.1.2, p .* d.2); }
        model { target += tp.1 + sum(tp.2) * td.1 + dot_product(td.2, p) * e.2[2]; }
        generated quantities { tuple(real, tuple(int, row_vector[2])) gq = (tp.1, (e.1.1, [4, 5])); }
    """, {"n": 3, "d": {"1": 3, "2": [1.0, 2.0, 3.0]}, "e": ((7, 2.5), [3, 4])})  # fmt: skip
    gradient_is_right(m, P)
    tp, weights = -2.5, np.array([1.0, 2.0, 3.0])
    assert m.log_density(P) == pytest.approx(tp + (P * weights).sum() * 1.5 + ((weights + 1) * P).sum() * 4)
    names = m.param_names(include_tp=True, include_gq=True)
    values = m.param_constrain(P, include_tp=True, include_gq=True, rng=m.new_rng(1))
    assert names[3:] == ["tp:1", "tp:2.1", "tp:2.2", "tp:2.3", "gq:1", "gq:2:1", "gq:2:2.1", "gq:2:2.2"]
    assert list(values[3:]) == [-2.5, -1, -4, 9, -2.5, 7, 4, 5]


def test_sizes_of_tuples_are_checked() -> None:
    m = ulam.StanModel("parameters { vector[3] p; } model { tuple(vector[2], int) t = (p, 2); target += sum(t.1); }")
    with pytest.raises(FatalError, match=r"t\.1: sizes must match: 2 on the left, 3"):
        m.log_density(P)


def test_printing_tuples(capsys: pytest.CaptureFixture[str]) -> None:
    m = ulam.StanModel("parameters { real x; } model { print((1, x, (2, [3.5, 4]))); }")
    m.log_density(np.array([0.5]))
    assert capsys.readouterr().out == "(1,0.5,(2,[3.5,4]))\n"


def test_printing_arrays_of_tuples(capsys: pytest.CaptureFixture[str]) -> None:
    m = ulam.StanModel("""
        parameters { array[2] tuple(real, vector[2]) q; }
        model {
          array[2, 2] tuple(int, tuple(array[2] real, int)) a;
          for (i in 1:2) for (j in 1:2) a[i, j] = (i, ({i, j}, 7));
          tuple(int, array[0] tuple(int, int)) none;
          none.1 = 4;
          print(a, "; ", q[:1], a[1], none);
          if (q[1].1 > 5) reject("q is ", q);
        }""")
    theta = np.array([1, 2, 3, 4, 5, 6.5])
    m.log_density(theta)
    row = "[({0},([{0},1],7)),({0},([{0},2],7))]"
    said = f"[{row.format(1)},{row.format(2)}]; [(1,[2,3])]{row.format(1)}(4,[])\n"
    assert capsys.readouterr().out == said
    with pytest.raises(Rejection, match=re.escape("q is [(6,[2,3]),(4,[5,6.5])]")):
        m.log_density(np.array([6, 2, 3, 4, 5, 6.5]))


# Declarations and uses in tuples, and the same without.
EQUAL = [
    ("array[3] tuple(real<lower=0>, simplex[3]) a;", "a[{i}].1", "a[{i}].2",
     "array[3] real<lower=0> b; array[3] simplex[3] c;", "b[{i}]", "c[{i}]"),
    ("tuple(array[3] real<lower=-1, upper=2>, tuple(array[3] ordered[2], cov_matrix[2])) a;", "a.1[{i}]", "a.2.1[{i}]",
     "array[3] real<lower=-1, upper=2> b; array[3] ordered[2] c; cov_matrix[2] d;", "b[{i}]", "c[{i}]"),
    ("vector[2] u; array[3] tuple(array[2] tuple(vector<lower=u>[2], real), real<offset=1, multiplier=2>) a;",
     "a[{i}].2", "a[{i}].1[2].1",
     "vector[2] u; array[3, 2] vector<lower=u>[2] b; array[3, 2] real c; array[3] real<offset=1, multiplier=2> d;",
     "d[{i}]", "b[{i}, 2]"),
]  # fmt: skip


@pytest.mark.parametrize("case", EQUAL, ids=range(len(EQUAL)))
def test_parameters_in_tuples_are_those_outside_of_them(case: tuple[str, ...]) -> None:
    """The same values and slopes, to the last bit but for the order in which adjustments are added."""

    def model(declared: str, scalar: str, vector: str) -> ulam.StanModel:
        uses = "".join(
            f"target += {i} * {scalar.format(i=i)} * sum(square({vector.format(i=i)}));\n" for i in (1, 2, 3)
        )
        return ulam.StanModel(f"parameters {{ {declared} }} model {{ {uses} }}")

    tuples, plain = model(*case[:3]), model(*case[3:])
    if tuples.param_unc_num() != plain.param_unc_num():  # bounds of one vector are shared by the elements
        raise AssertionError(tuples.param_unc_names(), plain.param_unc_names())
    theta = np.random.default_rng(5).normal(size=tuples.param_unc_num())
    leaves = [v.name for v in tuples.parameter_variables()]
    places = unconstrained_positions(tuples.parameter_variables())
    moved = np.concatenate([theta[places[name]] for name in leaves])
    for jacobian in (True, False):
        value, gradient = tuples.log_density_gradient(theta, jacobian=jacobian)
        other, expected = plain.log_density_gradient(moved, jacobian=jacobian)
        assert value == other
        assert np.array_equal(np.concatenate([gradient[places[name]] for name in leaves]), expected)
    constrained = tuples.param_constrain(theta)
    assert tuples.param_unconstrain(constrained) == pytest.approx(theta)
    of_tuples, of_plain = (m.parameter_variables() for m in (tuples, plain))
    by_tuple, by_variable = by_name(of_tuples, constrained), by_name(of_plain, plain.param_constrain(moved))
    for one, two in zip(by_tuple.values(), by_variable.values(), strict=True):
        assert np.array_equal(one, two)
    values = json.dumps(nested(tuples, by_tuple))
    assert tuples.param_unconstrain_json(values) == pytest.approx(theta)


def nested(model: ulam.StanModel, values: dict[str, Any]) -> dict[str, Any]:
    """Values by field as JSON has them: tuples as objects, in arrays where they are."""

    def put(into: Any, variable: GlobalVariable, level: int, rank: int, value: Any) -> Any:
        if level == len(variable.fields) - 1:
            return np.asarray(value).tolist()
        if rank:
            old = into or [None] * len(value)
            return [put(o, variable, level, rank - 1, v) for o, v in zip(old, value, strict=True)]
        into = into or {}
        field = variable.fields[level + 1]
        ranks = (*variable.field_ranks, 0)
        into[field] = put(into.get(field), variable, level + 1, ranks[level + 1], value)
        return into

    found: dict[str, Any] = {}
    for variable in model.parameter_variables():
        root = variable.fields[0]
        ranks = (*variable.field_ranks, 0)
        found[root] = put(found.get(root), variable, 0, ranks[0], values[variable.name])
    return found


# ---------------------------------------------------------------- a function's result in a loop


def test_return_of_a_container_from_inside_loops() -> None:
    m = ulam.StanModel("""
        functions {
          vector f(vector v, int n) {
            for (i in 1:3) { if (n == 0) break; for (j in 1:i) if (v[i] > j) return v * v[2]; }
            while (n > 2) { if (n > 5) return v[1:2]; return f(v .* v, n - 1); }
            return -v[1:2] * v[3];
          }
        }
        parameters { vector[3] p; }
        model { for (n in 0:7) target += sum(f(p, n)); }""")  # fmt: skip
    assert m.log_density(P) == 9.0
    gradient_is_right(m, P)


# ---------------------------------------------------------------- target()


def test_target_is_the_sum_so_far(capsys: pytest.CaptureFixture[str]) -> None:
    m = ulam.StanModel("""
        parameters { real<lower=0> x; real y; }
        model {
          x ~ normal(0, 1);
          print("lp ", target());
          target += -0.5 * square(y * target());
          for (i in 1:3) { target += y * i; target += sin(target()); }
          if (y > 0.2) target += target() * 0.1;
          print("end ", target());
        }""")  # fmt: skip
    theta = np.array([0.3, 0.4])
    x, y = math.exp(0.3), 0.4
    for jacobian in (True, False):
        first = (0.3 if jacobian else 0) - 0.5 * x * x
        lp = first - 0.5 * (y * first) ** 2
        for i in (1, 2, 3):
            lp += y * i
            lp += math.sin(lp)
        lp *= 1.1
        assert m.log_density(theta, jacobian=jacobian) == pytest.approx(lp, rel=1e-14)
        lines = capsys.readouterr().out.splitlines()
        assert float(lines[0].removeprefix("lp ")) == pytest.approx(first, rel=1e-4)
        assert float(lines[1].removeprefix("end ")) == pytest.approx(lp, rel=1e-4)
    gradient_is_right(m, theta)


def test_functions_that_read_the_target() -> None:
    m = ulam.StanModel("""
        functions { real gain_lp(real x) { real before = target(); x ~ normal(0, 1); return target() - before; } }
        parameters { real x; }
        transformed parameters { real y = gain_lp(x * 2); }
        model { target += 2 * gain_lp(x) * y; }
        generated quantities { real z = y; }""")  # fmt: skip
    x = 0.7
    assert m.log_density(np.array([x])) == pytest.approx(-2 * x**2 - x**2 / 2 + 2 * (-(x**2) / 2) * (-2 * x**2))
    gradient_is_right(m, np.array([x]))
    values = m.param_constrain(np.array([x]), include_tp=True, include_gq=True, rng=m.new_rng(1))
    # outside of a density that drops constants, `~` keeps them
    assert values[1] == values[2] == pytest.approx(-2 * x**2 - 0.5 * math.log(2 * math.pi))
