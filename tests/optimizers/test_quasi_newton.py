"""BFGS and L-BFGS: known minima, Stan's defaults, codes and texts, failed evaluations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ulam.runtime.optimizers.line_search import LineSearchOptions, Point, Vector, WolfeSearch, cubic_minimum, divide
from ulam.runtime.optimizers.quasi_newton import (
    EPSILON,
    RESET_NOTE,
    BFGSOptions,
    DenseInverseHessian,
    Iteration,
    LBFGSOptions,
    LimitedMemory,
    _Persistence,  # pyright: ignore[reportPrivateUsage]
    minimize,
)
from ulam.runtime.optimizers.termination import Termination

pytestmark = pytest.mark.usefixtures("quick_code")

Function = Callable[[Vector], tuple[float, Vector]]


def rosenbrock(x: Vector) -> tuple[float, Vector]:
    a, b = x[1:] - x[:-1] ** 2, 1 - x[:-1]
    gradient = np.zeros_like(x)
    gradient[:-1] = -400 * x[:-1] * a - 2 * b
    gradient[1:] += 200 * a
    return float(np.sum(100 * a**2 + b**2)), gradient


def quadratic(x: Vector) -> tuple[float, Vector]:
    scale = np.arange(1, x.size + 1, dtype=float)
    return float(0.5 * np.sum(scale * (x - 1) ** 2)), scale * (x - 1)


def objective_of(function: Function) -> Callable[[Vector], Point | None]:
    def objective(x: Vector) -> Point | None:
        value, gradient = function(x)
        return Point(x, value, gradient) if math.isfinite(value) and np.isfinite(gradient).all() else None

    return objective


def run(function: Function, start: Vector, kind: type[BFGSOptions] = LBFGSOptions, **options: float) -> list[Iteration]:
    objective = objective_of(function)
    first = objective(start)
    assert first is not None
    return list(minimize(objective, first, kind(**options)))  # pyright: ignore[reportArgumentType]


KINDS = [LBFGSOptions, BFGSOptions]
NO_TESTS: dict[str, Any] = {"tol_obj": 0, "tol_rel_obj": 0, "tol_grad": 0, "tol_rel_grad": 0, "tol_param": 0}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [2, 5, 30])
def test_rosenbrock(size: int, kind: type[BFGSOptions]) -> None:
    last = run(rosenbrock, np.full(size, 0.5), kind)[-1]
    assert last.termination.converged
    np.testing.assert_allclose(last.point.x, 1, atol=1e-4)


@pytest.mark.parametrize("history", [1, 5, 20])
def test_quadratic(history: int) -> None:
    steps = run(quadratic, np.full(8, 3.0), history_size=history)
    np.testing.assert_allclose(steps[-1].point.x, 1, atol=1e-4)
    values = [step.point.value for step in steps]
    assert values == sorted(values, reverse=True)


def test_first_step_is_along_the_gradient_with_init_alpha() -> None:
    first = run(quadratic, np.array([3.0, 3.0]), iter=1)[0]
    assert first.alpha0 == 1e-3
    np.testing.assert_allclose(first.point.x - 3, first.alpha * -quadratic(np.array([3.0, 3.0]))[1])
    assert first.termination is Termination.MAX_ITERATIONS
    assert first.termination.code == 40


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"tol_obj": 1e3}, Termination.OBJECTIVE),
        ({"tol_grad": 1e3}, Termination.GRADIENT),
        ({"tol_param": 1e3}, Termination.PARAMETERS),
        ({"tol_rel_obj": 1e16}, Termination.RELATIVE_OBJECTIVE),
        ({"tol_rel_grad": 1e17}, Termination.RELATIVE_GRADIENT),
        ({"tol_obj": 1e3, "tol_grad": 1e3, "iter": 1}, Termination.OBJECTIVE),
        ({"iter": 1, "tol_rel_obj": 1e16}, Termination.MAX_ITERATIONS),
    ],
)
def test_order_of_convergence_tests(options: dict[str, Any], expected: Termination) -> None:
    assert run(quadratic, np.full(3, 2.0), **options)[0].termination is expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("tolerance", "value", "expected"),
    [
        ("tol_obj", 1e-6, Termination.OBJECTIVE),
        ("tol_grad", 1e-4, Termination.GRADIENT),
        ("tol_param", 1e-4, Termination.PARAMETERS),
        ("tol_rel_obj", 1e9, Termination.RELATIVE_OBJECTIVE),
        ("tol_rel_grad", 1e9, Termination.RELATIVE_GRADIENT),
    ],
)
def test_each_convergence_test_alone(
    tolerance: str, value: float, expected: Termination, kind: type[BFGSOptions]
) -> None:
    steps = run(rosenbrock, np.full(4, 0.5), kind, **(NO_TESTS | {tolerance: value}))
    old, new = steps[-2].point, steps[-1].point
    assert [step.termination for step in steps[:-1]] == [Termination.RUNNING] * (len(steps) - 1)
    assert steps[-1].termination is expected
    change = abs(old.value - new.value)
    epsilon = np.finfo(float).eps
    measured = {
        "tol_obj": change,
        "tol_grad": np.linalg.norm(new.gradient),
        "tol_param": np.linalg.norm(new.x - old.x),
        "tol_rel_obj": change / max(abs(old.value), abs(new.value), 1) / epsilon,
    }
    if tolerance in measured:
        assert measured[tolerance] < value
    assert steps[-1].step_norm == pytest.approx(np.linalg.norm(new.x - old.x))


@pytest.mark.parametrize("kind", KINDS)
def test_without_tests_a_run_ends_at_the_limit_or_where_no_step_descends(kind: type[BFGSOptions]) -> None:
    assert run(rosenbrock, np.full(4, 0.5), kind, **NO_TESTS, iter=7)[-1].termination is Termination.MAX_ITERATIONS
    last = run(rosenbrock, np.full(4, 0.5), kind, **NO_TESTS)[-1]
    assert last.termination in (Termination.LINE_SEARCH_FAILED, Termination.MAX_ITERATIONS)
    np.testing.assert_allclose(last.point.x, 1, atol=1e-7)


def test_defaults_are_cmdstans() -> None:
    assert vars(LBFGSOptions()) == {
        "iter": 2000, "init_alpha": 0.001, "tol_obj": 1e-12, "tol_rel_obj": 1e4, "tol_grad": 1e-8,
        "tol_rel_grad": 1e7, "tol_param": 1e-8, "history_size": 5,
    }  # fmt: skip
    assert vars(BFGSOptions()) == {
        name: value for name, value in vars(LBFGSOptions()).items() if name != "history_size"
    }
    search = LineSearchOptions()
    assert (search.sufficient_decrease, search.curvature, search.smallest_step) == (1e-4, 0.9, 1e-12)
    assert (search.max_expansions, search.max_failures, search.smallest_interval) == (20, 10, 1e-16)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (0, "Successful step completed"),
        (10, "Convergence detected: absolute parameter change was below tolerance"),
        (20, "Convergence detected: absolute change in objective function was below tolerance"),
        (21, "Convergence detected: relative change in objective function was below tolerance"),
        (30, "Convergence detected: gradient norm is below tolerance"),
        (31, "Convergence detected: relative gradient magnitude is below tolerance"),
        (40, "Maximum number of iterations hit, may not be at an optimum"),
        (-1, "Line search failed to achieve a sufficient decrease, no more progress can be made"),
    ],
)
def test_codes_and_texts_are_stans(code: int, text: str) -> None:
    (found,) = [termination for termination in Termination if termination.code == code]
    assert found.text == text
    assert found.converged == (code in (10, 20, 21, 30, 31))
    assert found.failed == (code == -1)


def pairs(count: int, size: int) -> list[Point]:
    """Points with gradients of a quadratic, so that y.s > 0."""
    generator = np.random.default_rng(4)
    matrix = generator.normal(size=(size, size))
    matrix = matrix @ matrix.T + np.eye(size)
    return [Point(x, 0.0, matrix @ x) for x in generator.normal(size=(count, size))]


@pytest.mark.parametrize("block", [None, 3])
def test_limited_memory_is_the_two_loop_recursion(block: int | None) -> None:
    history, points = 3, pairs(7, 8)
    memory = LimitedMemory(8, history)
    if block is not None:
        memory._block = block
    for count in range(1, len(points)):
        old, new = points[count - 1 : count + 1]
        step_norm, factor = memory.update(old, new, reset=count in (1, 4))
        s, y = new.x - old.x, new.gradient - old.gradient
        assert step_norm == pytest.approx(np.linalg.norm(s))
        assert factor == pytest.approx(y @ y / (y @ s) if count in (1, 4) else 1.0)
        kept = points[max(0 if count < 4 else 3, count - history) : count + 1]
        steps = [(b.x - a.x, b.gradient - a.gradient) for a, b in zip(kept, kept[1:], strict=False)]
        q, weights = -new.gradient, []
        for s, y in reversed(steps):
            weights.append((s @ q) / (s @ y))
            q = q - weights[-1] * y
        s, y = steps[-1]
        r = q * (s @ y) / (y @ y)
        for (s, y), weight in zip(steps, reversed(weights), strict=True):
            r = r + (weight - (y @ r) / (s @ y)) * s
        np.testing.assert_allclose(memory.direction(new.gradient), r, rtol=1e-9)


@pytest.mark.parametrize("rows", [64, 3])
def test_dense_update_is_the_formula(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DenseInverseHessian, "ROWS", rows)
    points = pairs(5, 4)
    dense = DenseInverseHessian(4)
    matrix = np.eye(4)
    for count, (old, new) in enumerate(zip(points, points[1:], strict=False)):
        s, y = new.x - old.x, new.gradient - old.gradient
        rho = 1 / (y @ s)
        _, factor = dense.update(old, new, reset=count == 0)
        if count == 0:
            assert factor == pytest.approx(y @ y / (y @ s))
            matrix = np.eye(4) / factor
        left = np.eye(4) - rho * np.outer(s, y)
        matrix = left @ matrix @ left.T + rho * np.outer(s, s)
        np.testing.assert_allclose(dense.direction(new.gradient), -matrix @ new.gradient, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_search_resets_the_hessian_and_goes_on(kind: type[BFGSOptions]) -> None:
    failures = 0

    def moody(x: Vector) -> tuple[float, Vector]:
        nonlocal failures
        value, gradient = quadratic(x)
        failures -= 1
        return (math.nan if failures >= 0 else value), gradient

    objective = objective_of(moody)
    start = objective(np.full(3, 2.0))
    assert start is not None
    steps: list[Iteration] = []
    for iteration in minimize(objective, start, kind()):
        steps.append(iteration)
        # The second search tries a step and halves it as often as is allowed.
        failures = 1 + LineSearchOptions().max_failures if len(steps) == 1 else 0
    assert [step.note for step in steps[:3]] == ["", RESET_NOTE, ""]
    assert steps[1].alpha0 == 1e-3
    assert steps[-1].termination.converged
    np.testing.assert_allclose(steps[-1].point.x, 1, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_flat_function_ends_at_once(kind: type[BFGSOptions]) -> None:
    last = run(lambda x: (3.0, np.zeros(2)), np.ones(2), kind)[-1]
    assert (last.number, last.termination) == (1, Termination.OBJECTIVE)


@pytest.mark.parametrize("kind", KINDS)
def test_an_unbounded_function_ends(kind: type[BFGSOptions]) -> None:
    last = run(lambda x: (-float(x.sum()), -np.ones(2)), np.ones(2), kind)[-1]
    assert last.termination is Termination.LINE_SEARCH_FAILED


def test_a_search_between_neighbouring_numbers_ends() -> None:
    """Zooming in on a jump at a step where numbers are more than the smallest interval apart."""

    def jump(x: Vector) -> tuple[float, Vector]:
        return (-float(x[0]), -np.ones(1)) if x[0] < 1e6 / 3 else (1e9, -np.ones(1))

    assert run(jump, np.zeros(1), init_alpha=1e5)[-1].termination is Termination.LINE_SEARCH_FAILED


@pytest.mark.parametrize(
    ("numerator", "denominator", "expected"),
    [(1.0, 0.0, math.inf), (-1.0, 0.0, -math.inf), (0.0, 0.0, math.nan), (math.nan, 0.0, math.nan), (3.0, 2.0, 1.5)],
)
def test_divide(numerator: float, denominator: float, expected: float) -> None:
    assert divide(numerator, denominator) == pytest.approx(expected, nan_ok=True)


def test_failed_evaluations_shorten_the_step() -> None:
    def barrier(x: Vector) -> tuple[float, Vector]:
        if x[0] <= 0:
            return math.nan, x
        return float(x[0] - np.log(x[0])), 1 - 1 / x

    last = run(barrier, np.array([9.0]), init_alpha=50.0)[-1]
    assert last.termination.converged
    np.testing.assert_allclose(last.point.x, 1, rtol=1e-6)


def test_line_search_failure_keeps_the_start() -> None:
    def wall(x: Vector) -> tuple[float, Vector]:
        return (1.0, np.ones(1)) if x[0] == 2 else (math.nan, np.ones(1))

    steps = run(wall, np.array([2.0]))
    assert [step.termination for step in steps] == [Termination.LINE_SEARCH_FAILED]
    assert steps[0].point.x[0] == 2


def test_wrong_gradient_ends_with_a_failed_search() -> None:
    def lying(x: Vector) -> tuple[float, Vector]:
        return float(x @ x), -2 * x

    assert run(lying, np.array([1.0, 2.0]))[-1].termination is Termination.LINE_SEARCH_FAILED


def test_wolfe_conditions_hold() -> None:
    generator = np.random.default_rng(3)
    objective = objective_of(rosenbrock)
    for _ in range(50):
        start = objective(generator.uniform(-2, 2, 4))
        assert start is not None
        direction = -start.gradient
        slope = float(start.gradient @ direction)
        found = WolfeSearch(objective, start, direction, slope, 1e-3, LineSearchOptions()).run()
        assert found is not None
        alpha, reached, point = found
        assert reached == pytest.approx(point.gradient @ direction)
        assert point.value <= start.value + 1e-4 * min(alpha, 1e-3) * slope
        assert abs(point.gradient @ direction) <= 0.9 * abs(slope)


def test_cubic_minimum() -> None:
    # s^3 - 3 s: slope -3 at 0, minimum at 1; given at 2: value 2, slope 9.
    assert cubic_minimum(-3.0, 2.0, 2.0, 9.0, 1e-12, 3.0) == pytest.approx(1)
    assert cubic_minimum(-3.0, 2.0, 2.0, 9.0, 1e-12, 0.5) == 0.5
    # Falls everywhere: the upper end.
    assert cubic_minimum(-1.0, 1.0, -1.0, -1.0, 1e-12, 1.0) == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol_obj": -1}, "tol_obj must not be negative"),
        ({"tol_rel_grad": math.nan}, "tol_rel_grad must not be negative"),
        ({"tol_param": "1"}, "tol_param must be a number"),
        ({"init_alpha": 0}, "init_alpha must be positive"),
        ({"iter": 0}, "iter must be at least 1"),
        ({"iter": 10.5}, "iter must be an integer"),
        ({"history_size": True}, "history_size must be an integer"),
    ],
)
def test_options_are_checked(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LBFGSOptions(**options)  # pyright: ignore[reportArgumentType]


def test_bfgs_of_a_size_that_does_not_fit_in_memory_says_so() -> None:
    with pytest.raises(MemoryError, match="10000000 x 10000000 .*'lbfgs'"):
        DenseInverseHessian(10**7)


def test_a_relative_test_must_hold_for_a_while_unless_nothing_is_to_be_gained() -> None:
    objective = _Persistence(lambda x: Point(x, 0.0, x))
    for _ in range(99):
        objective(np.zeros(1))
    test, running = Termination.RELATIVE_GRADIENT, Termination.RUNNING
    assert objective.judged(test, 1.0, 1e-6) is running and objective.holding is test
    for _ in range(7):
        objective(np.zeros(1))
        assert objective.judged(test, 1.0, 1e-6) is running
    objective(np.zeros(1))
    assert objective.judged(test, 1.0, 1e-6) is test
    assert objective.judged(running, 1.0, 1e-6) is running and objective.holding is running
    assert objective.judged(test, 1.0, 1e-6) is running, "counted anew"
    assert objective.judged(test, 1.0, 1e-10) is test
    assert objective.judged(test, 1e9, 1e-6) is test, "as much as rounding takes"
    for other in (Termination.OBJECTIVE, Termination.GRADIENT, Termination.PARAMETERS, Termination.MAX_ITERATIONS):
        assert objective.judged(other, 1.0, 1.0) is other


def test_badly_conditioned_problems_do_not_end_by_accident(monkeypatch: pytest.MonkeyPatch) -> None:
    """Far from the maximum, a relative test holds now and then: a run ends where it keeps holding.

    Where one run of L-BFGS ends on such a problem hangs on every rounding, so the middle one of many starts counts. The
    relative test of the gradient says that g'Hg/2, what a further step promises, is below `promised`.
    """
    scales = np.logspace(0, 6, 10)

    def steep(x: Vector) -> tuple[float, Vector]:
        return 1e3 + float(0.5 * np.sum(scales * x**2)), scales * x

    starts = np.random.default_rng(1).uniform(-3, 3, (9, 10))
    promised = 0.5 * LBFGSOptions().tol_rel_grad * EPSILON * 1e3
    gap = np.median([run(steep, start)[-1].point.value - 1e3 for start in starts])
    monkeypatch.setattr("ulam.runtime.optimizers.quasi_newton.PERSISTENCE", 0.0)
    before = np.median([run(steep, start)[-1].point.value - 1e3 for start in starts])
    assert gap < 100 * promised < before, (gap, before)


def test_a_steep_start_is_left_by_a_step_of_length_1() -> None:
    """The first step of Stan's search, 0.001 of the gradient, leads out of the domain, and so do ten halvings of it."""

    def steep(x: Vector) -> tuple[float, Vector]:
        inside = bool(np.all(np.abs(x) < 100))
        return (1e10 * float(np.sum((x - 1) ** 2)) if inside else math.nan), 2e10 * (x - 1)

    steps = run(steep, np.full(3, 5.0))
    assert "step of length 1" in steps[0].note
    assert steps[-1].termination.converged
    np.testing.assert_allclose(steps[-1].point.x, 1, atol=1e-4)
