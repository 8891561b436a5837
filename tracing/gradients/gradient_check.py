"""Is the gradient right? The tape's against the compiled one, at both ends of the levels, and central differences.

On a mismatch the ops of the run are taken one by one, at the values that they had, and the first one whose pullback is
not its derivative is named: this tells a wrong rule of the AD from a mistake in how rules are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.errors import ArgumentError, ProgramError
from ulam.tracing.gradients.adjoint import as_point, find_adjoints, has_adjoint
from ulam.tracing.gradients.moves import is_move
from ulam.tracing.gradients.op_library import NoDerivative
from ulam.tracing.nodes import ItemNode, NestedCallNode, Node
from ulam.tracing.tape.values import MISSING, Digest

if TYPE_CHECKING:
    from ulam.tracing.trace import Trace
    from ulam.tracing.tracked_model import TrackedModel

Gradient = npt.NDArray[np.float64]

DIFFERENCES_RTOL = 1e-5
"""Of central differences, extrapolated: what is left of rounding and truncation."""
_LOCAL_RTOL = 1e-5
_OF_SOLVERS = "a solver takes other steps where it is differentiated, and its results agree as far as its tolerances go"
_STEP = 2e-4
"""Of differences, relative to the point: with one extrapolation their error goes with its fourth power."""


@dataclass(frozen=True)
class Density:
    """Which log density was traced: of a model, with which of its terms."""

    model: TrackedModel
    propto: bool
    jacobian: bool


@dataclass
class GradientCheck:
    """What `check_gradient` found; true if all gradients agree.

    `tape`: the gradient on the tape. `compiled`: by optimization level (of a function, of the function alone), and
    `differences`, None if they were not asked for. Errors are relative to the larger of 1 and the greatest element.
    `node` is the first whose pullback is wrong; None where none is.
    """

    names: list[str]
    tape: Gradient
    compiled: dict[str, Gradient]
    differences: Gradient | None
    rtol: float
    values: dict[str, float] = field(default_factory=dict[str, float])
    """The traced value, and the compiled ones."""
    point: Gradient = field(default_factory=lambda: np.zeros(0))
    node: Node | None = None
    problem: str = ""

    def error(self, other: Gradient) -> float:
        """The greatest difference to the tape's gradient, relative to its scale; infinite if only one is a number."""
        return _distance(self.tape, other)

    @property
    def errors(self) -> dict[str, float]:
        """Of each compiled gradient, and of `differences`."""
        found = {name: self.error(gradient) for name, gradient in self.compiled.items()}
        return found if self.differences is None else {**found, "differences": self.error(self.differences)}

    @property
    def wrong(self) -> list[str]:
        """Which of them do not agree with the tape."""
        limits = {"differences": max(self.rtol, DIFFERENCES_RTOL)}
        return [name for name, error in self.errors.items() if not error <= limits.get(name, self.rtol)]

    def __bool__(self) -> bool:
        return not self.wrong

    def __str__(self) -> str:
        lines = [f"{'gradient':<14}{'error':>12}"]
        lines += [
            f"{name:<14}{error:>12.2g}{'   does not agree' if name in self.wrong else ''}"
            for name, error in self.errors.items()
        ]
        for name in self.wrong:
            other = self.differences if name == "differences" else self.compiled[name]
            assert other is not None
            worst = int(np.argmax(np.nan_to_num(np.abs(self.tape - other), nan=np.inf)))
            lines.append(f"{self.names[worst]}: {float(self.tape[worst])} on the tape, {float(other[worst])} by {name}")
        if self.problem:
            lines.append(self.problem)
        return "\n".join(lines)


def _distance(a: Gradient, b: Gradient) -> float:
    if not a.size:
        return 0.0
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    if not np.all(same | finite):
        return float("inf")
    scale = max(1.0, float(np.max(np.abs(a[finite]), initial=0.0)))
    return float(np.max(np.abs(a - b)[finite & ~same], initial=0.0)) / scale


# ---------------------------------------------------------------- the check


def check_gradient(trace: Trace, rtol: float = 1e-12, differences: bool = True) -> GradientCheck:
    """See `Trace.check_gradient`."""
    if trace.failed:
        raise ArgumentError("the run failed: there is no gradient to check")
    trace = trace.with_copies()
    density = trace.density
    check, value = _of_function(trace, rtol) if density is None else _of_density(trace, density, rtol)
    if differences:
        check.differences = central_differences(value, check.point)
    if not check:
        _find_culprit(trace, check)
    return check


Value = Callable[[Gradient], float]


def _of_density(trace: Trace, density: Density, rtol: float) -> tuple[GradientCheck, Value]:
    tape = np.asarray(find_adjoints(trace))
    parameters = trace.root.frame.graph.parameters
    theta = as_point(trace, [o.value for o, p in zip(trace.root.operands, parameters, strict=True) if not p.data])
    options = {"propto": density.propto, "jacobian": density.jacobian}
    written = density.model.as_written
    models = {"level 0": written, density.model.options.level_text: density.model}
    compiled = {name: model.log_density_gradient(theta, **options)[1] for name, model in models.items()}
    check = GradientCheck(density.model.param_unc_names(), tape, compiled, None, rtol)
    check.point, check.values = theta, {"tape": trace.root.value}
    check.values |= {name: model.log_density(theta, **options) for name, model in models.items()}
    if trace.tape.changes and check.values["tape"] != check.values["level 0"]:
        raise ArgumentError("values inside of the log density were changed: there is no compiled gradient of that")
    return check, lambda theta: written.log_density(theta, **options)


def _arguments(trace: Trace) -> tuple[list[str], list[Any], list[int]]:
    """Names and values of the traced function's arguments, and which of them are real."""
    parameters = trace.root.frame.graph.parameters
    reals = [n for n, parameter in enumerate(parameters) if has_adjoint(parameter.type)]
    return [p.name for p in parameters], list(trace.tape.arguments), reals


def _of_function(trace: Trace, rtol: float) -> tuple[GradientCheck, Value]:
    names, values, reals = _arguments(trace)
    root = trace.root
    if not has_adjoint(root.type) or root.type.rank:
        raise ArgumentError(f"'{root.function}' gives no real: there is no gradient to check")
    adjoints = find_adjoints(trace)
    library = trace.op_library
    whole = library.pullback(root, values, 1.0, whole=True)
    taken = [n for n in reals if whole[n] is not None]  # of `data` the compiled function has no derivative
    tape = _joined(adjoints[names[n]] for n in taken)
    labels = [name for n in taken for name in _labels(names[n], np.shape(values[n]))]
    check = GradientCheck(labels, tape, {"level 0": _joined(whole[n] for n in taken)}, None, rtol)
    check.values = {"tape": root.value, "level 0": library.value(root, values, whole=True)}
    check.point = _joined(values[n] for n in taken)

    def value(point: Gradient) -> float:
        changed, at = list(values), 0
        for n in taken:
            part = point[at : at + np.size(values[n])]
            changed[n] = part.reshape(np.shape(values[n])) if np.ndim(values[n]) else float(part[0])
            at += len(part)
        return library.value(root, changed, whole=True)

    return check, value


def _joined(parts: Iterable[Any]) -> Gradient:
    return np.concatenate([np.zeros(0), *(np.reshape(part, -1) for part in parts)])


def _labels(name: str, shape: tuple[int, ...]) -> list[str]:
    return [f"{name}{list(i + 1 for i in at)}" if shape else name for at in np.ndindex(*shape)]


def central_differences(value: Value, point: Gradient) -> Gradient:
    """Of second order, extrapolated once: element by element; NaN where an end cannot be evaluated."""
    found = np.empty(len(point))
    for n in range(len(point)):

        def along(step: float, n: int = n) -> float:
            moved = np.array(point)
            moved[n] += step
            return value(moved)

        found[n] = _slope(along, _STEP * max(1.0, abs(float(point[n]))))[0]
    return found


def _slope(along: Callable[[float], float], step: float) -> tuple[float, float]:
    """The derivative at 0 of a function of one number, and how far two estimates of it are apart."""
    try:
        wide = (along(step) - along(-step)) / (2 * step)
        narrow = (along(step / 2) - along(-step / 2)) / step
    except ProgramError:
        return float("nan"), float("inf")
    return float((4 * narrow - wide) / 3), abs(float(narrow - wide))


# ---------------------------------------------------------------- which node


def _find_culprit(trace: Trace, check: GradientCheck) -> None:
    """Names the first node whose pullback is not its derivative."""
    for node in _ops(trace):
        error = local_error(trace, node)
        if error > _LOCAL_RTOL:
            check.node = node
            span = node.span
            where = "" if span is None else f", {span.file}:{span.line}:{span.column},"
            parent = node.parent
            inside = "" if parent is None else f" in {parent.function}"
            check.problem = f"the pullback of {node}{inside}{where} is not its derivative: relative error {error:.2g}"
            if node.item.calls_function:
                check.problem += f"; {_OF_SOLVERS}, so try smaller ones before you blame it"
            return
    check.problem = "the pullback of each op is its derivative, as far as differences tell: "
    solver = next((node for node in _ops(trace) if node.item.calls_function), None)
    if solver is not None:
        check.problem += f"{_OF_SOLVERS} ({solver.function}), or "
    elif check.wrong == ["differences"]:
        check.problem += "these are not exact here, or "
    check.problem += "how pullbacks are put together is wrong"


def _ops(trace: Trace) -> Iterator[ItemNode]:
    """The ops that are compiled one by one, in the order of the tape."""
    stack: list[Iterator[Node]] = [iter([trace.root])]
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
        elif isinstance(node, NestedCallNode) and not node.is_opaque:
            stack.append(iter(node.children))
        elif isinstance(node, ItemNode) and has_adjoint(node.type) and not is_move(node.item):
            if node.item.kind != "target" or node.item.text:
                yield node


def local_error(trace: Trace, node: ItemNode) -> float:
    """How far a pullback is from the derivative, along random directions, beyond doubt; 0 where that cannot be told."""
    operands = [operand.value for operand in node.operands]
    if node.item.name == "target" or any(o is MISSING or isinstance(o, Digest) for o in (*operands, node.value)):
        return 0.0
    library = trace.op_library
    rng = np.random.default_rng(node.at)
    weights = rng.uniform(0.5, 1.5, np.shape(node.value))[()]
    try:
        adjoints = library.pullback(node, operands, weights)
    except (NoDerivative, ProgramError, ArgumentError):
        return 0.0
    worst = 0.0
    for n, (operand, adjoint) in enumerate(zip(operands, adjoints, strict=True)):
        if adjoint is None:
            continue
        for symmetric in (False, True):
            direction = rng.choice([-1.0, 1.0], np.shape(operand)) * rng.uniform(0.5, 1.5, np.shape(operand))
            if symmetric:  # what must be symmetric stays it
                if np.ndim(operand) != 2 or np.shape(operand)[0] != np.shape(operand)[1]:
                    break
                direction = direction + direction.T

            def along(step: float, n: int = n, direction: Any = direction) -> float:
                changed = list(operands)
                changed[n] = (
                    changed[n] + step * direction if np.ndim(changed[n]) else changed[n] + step * float(direction)
                )
                return float(np.sum(weights * library.value(node, changed)))

            size = max(1.0, float(np.max(np.abs(operand), initial=0.0)))
            small = float(np.min(np.abs(operand), initial=size)) or size
            expected, doubt = _slope(along, _STEP * min(size, max(small, 1e-3)))
            if np.isfinite(expected):
                found = float(np.sum(adjoint * direction))
                scale = max(abs(expected), abs(found), 1e-3 * float(np.sum(np.abs(adjoint * direction))), 1e-8)
                error = max(0.0, abs(found - expected) - 2 * doubt) if np.isfinite(found) else float("inf")
                worst = max(worst, error / scale)
                break
    return worst
