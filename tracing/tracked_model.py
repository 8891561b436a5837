"""The traces of a model: `track` for its functions, `track_density` and others for its blocks.

A base class of `StanModel`, the one thing of tracing that `runtime` knows. Imports nothing else of the tracer before a
trace is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from ulam.runtime.arguments import FloatArray, vector
from ulam.runtime.errors import ArgumentError
from ulam.runtime.interrupts import scoped, stoppable
from ulam.runtime.names import COMPLEX_PARTS, part_positions

if TYPE_CHECKING:
    from ulam.runtime.compile_options import CompileOptions
    from ulam.runtime.external_functions import Externals
    from ulam.runtime.model import StanModel
    from ulam.runtime.names import GlobalVariable
    from ulam.runtime.optimizers.failed_evaluations import FailureTally
    from ulam.tracing.contexts import TraceContext
    from ulam.tracing.explain.explanation import Explanation
    from ulam.tracing.gradients.gradient_check import GradientCheck
    from ulam.tracing.nodes import ItemNode, NestedCallNode
    from ulam.tracing.session import ModelRoot, TracedProgram
    from ulam.tracing.tape.recorder import Source

Point = npt.ArrayLike | Mapping[str, Any]
"""A vector of unconstrained values, or constrained ones by name."""


class TrackedModel:
    """What records the runs of a model; see `ulam.trace`.

    `rng` is `ulam.trace.Seeded`, `Scripted` or `Replay`, or an `Rng`, for what draws. With `on_error` "keep" a run that
    fails gives what was recorded until then, with `node.trace.error` set; with "raise" the exception has it as `trace`.
    `time_limit`: seconds after which the call ends with `TimeLimit`.
    """

    if TYPE_CHECKING:
        seed: int

        @property
        def source(self) -> tuple[str, str]: ...
        @property
        def options(self) -> CompileOptions: ...
        def bound_values(self) -> dict[str, Any]: ...
        def parameter_variables(self) -> list[GlobalVariable]: ...
        @property
        def externals(self) -> Externals | None: ...
        def param_unconstrain_json(self, theta_json: Mapping[str, Any]) -> FloatArray: ...
        def param_unc_names(self) -> list[str]: ...
        @cached_property
        def as_written(self) -> TrackedModel: ...
        def log_density(self, theta_unc: npt.ArrayLike, *, propto: bool = ..., jacobian: bool = ...) -> float: ...
        def log_density_gradient(
            self, theta_unc: npt.ArrayLike, *, propto: bool = ..., jacobian: bool = ...
        ) -> tuple[float, FloatArray]: ...

    @cached_property
    def traced_program(self) -> TracedProgram:
        """The functions of the program, for tracking."""
        from ulam.tracing.functions import traced_program

        return traced_program(*self.source, self.options, self.externals)

    @cached_property
    def _given(self) -> dict[str, Any]:
        """Data and transformed data as arguments: taken once for all traces. Fields of tuples: `t.1`."""
        values: dict[str, Any] = {}
        for name, value in self.bound_values().items():
            parts = {f"{name}.{part}": getattr(value, part) for part in COMPLEX_PARTS}
            values |= parts if value.dtype.kind == "c" else {name: value}
        return {name.replace(":", "."): value if value.ndim else value.item() for name, value in values.items()}

    def track(
        self,
        name: str,
        *arguments: Any,
        context: TraceContext | None = None,
        rng: Source | None = None,
        on_error: str = "keep",
        time_limit: float | None = None,
    ) -> ItemNode:
        """Runs a function of the program and records what it does; returns the node of the call.

        The target of functions that add to it starts at 0.
        """
        return stoppable(lambda: self.traced_program.track(name, arguments, context, rng, on_error), time_limit)

    @scoped
    def track_density(
        self,
        theta: Point,
        *,
        propto: bool = False,
        jacobian: bool = True,
        context: TraceContext | None = None,
        on_error: str = "keep",
        time_limit: float | None = None,
    ) -> NestedCallNode:
        """Evaluates the log density and records every op, `~`, `target +=` and transform; returns the node `log_prob`.

        `propto` drops terms that do not depend on the parameters, `jacobian` adds the change of variables. The value
        is, bit for bit, that of `log_density` of a model compiled with `opt_level=0`.
        """
        from ulam.tracing.gradients.gradient_check import Density
        from ulam.tracing.session import ModelRoot

        node = self._track_root(ModelRoot("log_prob", propto, jacobian), theta, context, None, on_error, time_limit)
        node.trace.density = Density(self, propto, jacobian)
        return node

    @scoped
    def check_gradient(
        self,
        theta: Point,
        *,
        propto: bool = False,
        jacobian: bool = True,
        rtol: float = 1e-12,
        differences: bool = True,
        time_limit: float | None = None,
    ) -> GradientCheck:
        """Traces the log density and compares the gradient on the tape, the compiled ones and central differences.

        True if they agree; printed, it says what does not, and which op is to blame. See `ulam.trace`.
        """
        from ulam.tracing.contexts import TraceContext

        def check() -> GradientCheck:
            context = TraceContext(containers="copy")
            node = self.track_density(theta, propto=propto, jacobian=jacobian, context=context, on_error="raise")
            return node.trace.check_gradient(rtol, differences=differences)

        return stoppable(check, time_limit)

    @scoped
    def track_transformed_parameters(
        self,
        theta: Point,
        *,
        context: TraceContext | None = None,
        on_error: str = "keep",
        time_limit: float | None = None,
    ) -> NestedCallNode:
        """Records the transforms of the parameters and the block `transformed parameters`."""
        from ulam.tracing.session import ModelRoot

        root = ModelRoot("transformed_parameters", jacobian=False)
        return self._track_root(root, theta, context, None, on_error, time_limit)

    @scoped
    def track_generated_quantities(
        self,
        theta: Point,
        *,
        rng: Source | None = None,
        context: TraceContext | None = None,
        on_error: str = "keep",
        time_limit: float | None = None,
    ) -> NestedCallNode:
        """Records the block `generated quantities`, after transformed parameters."""
        from ulam.tracing.session import ModelRoot

        root = ModelRoot("generated_quantities", jacobian=False)
        return self._track_root(root, theta, context, rng, on_error, time_limit)

    @scoped
    def track_transformed_data(
        self,
        *,
        rng: Source | None = None,
        context: TraceContext | None = None,
        on_error: str = "keep",
        time_limit: float | None = None,
    ) -> NestedCallNode:
        """Records the block `transformed data`, run once more; without `rng`, with the draws that the model has."""
        from ulam.runtime.native import Rng
        from ulam.tracing.session import ModelRoot

        rng = rng if rng is not None else Rng(self.seed)
        root = ModelRoot("transformed_data", jacobian=False)
        return self._track_root(root, None, context, rng, on_error, time_limit)

    @scoped
    def explain(
        self,
        theta: Any = None,
        *,
        propto: bool = False,
        jacobian: bool = True,
        tries: int = 1,
        seed: int | None = None,
        time_limit: float | None = None,
    ) -> Explanation:
        """Why the log density at a point is NaN or infinite, or a check fails there; the terms, if all is well.

        `theta` is what optimizers take as `init`: an unconstrained point, constrained values by name, or a radius.
        With `tries` so many points are drawn, the first that fails is explained, and all are counted by statement.
        See `ulam.tracing.explain.explainer.explain`.
        """
        from ulam.tracing.explain.explainer import explain

        return stoppable(
            lambda: explain(cast("StanModel", self), theta, propto=propto, jacobian=jacobian, tries=tries, seed=seed),
            time_limit,
        )

    def count_statements(self, points: Sequence[tuple[FloatArray, float]], tally: FailureTally) -> None:
        """Counts points where the log density (which comes with them) is not finite, by the first statement behind it.

        With constants, without the Jacobian adjustment, as initial points are checked.
        """
        from ulam.tracing.explain.explainer import count_statements

        count_statements(cast("StanModel", self), points, tally)

    def _track_root(
        self, root: ModelRoot, theta: Point | None, context: TraceContext | None, rng: Source | None, on_error: str,
        time_limit: float | None,
    ) -> NestedCallNode:  # fmt: skip
        return stoppable(lambda: self._tracked_root(root, theta, context, rng, on_error), time_limit)

    def _tracked_root(
        self, root: ModelRoot, theta: Point | None, context: TraceContext | None, rng: Source | None, on_error: str
    ) -> NestedCallNode:
        from ulam.tracing.nodes import NestedCallNode

        if context is not None and context.max_depth == 1:
            raise ArgumentError("max_depth=1 would record the value alone: log_density gives that")
        values = dict(self._given)
        if theta is not None:
            values |= self._parts(theta)
        node = self.traced_program.track_model(root, values, context, rng, on_error)
        assert isinstance(node, NestedCallNode)
        return node

    def _parts(self, theta: Point) -> dict[str, Any]:
        """A point, parameter by parameter: a float for a scalar, else a vector."""
        variables = self.parameter_variables()
        whole = self._unconstrained(theta)
        given: dict[str, Any] = {}
        parts = [part for variable in variables for part in variable.parts()]
        for part, place in zip(parts, part_positions(variables), strict=True):
            given[part.name.replace(":", ".")] = whole[place] if part.dims else float(whole[place][0])
        return given

    def _unconstrained(self, theta: Point) -> FloatArray:
        """A point as a vector of its own."""
        if isinstance(theta, Mapping):
            theta = self.param_unconstrain_json(theta)
        size = sum(math.prod(variable.unconstrained_dims) for variable in self.parameter_variables())
        return np.array(vector(theta, (size,), "theta"))
