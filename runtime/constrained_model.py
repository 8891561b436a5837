"""Constrained parameters of unconstrained ones, and back, with transformed parameters and generated quantities. Part of
`StanModel`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.arguments import FloatArray, vector, writable
from ulam.runtime.data import PARAMETER_VALUES, bind_values, read_data
from ulam.runtime.interrupts import limited, scoped, stoppable
from ulam.runtime.memory import room_for
from ulam.runtime.named_text import NamedText
from ulam.runtime.names import GlobalVariable, output_order, to_compiled
from ulam.runtime.program import Failure, Unit

if TYPE_CHECKING:
    from ulam.runtime.errors import ProgramError
    from ulam.runtime.native import Context, Rng
    from ulam.runtime.profiling.profiler import Profiler
    from ulam.runtime.program import BoundProgram
    from ulam.runtime.workspace import Workspace


class ConstrainedModel:
    """What maps unconstrained parameters to constrained ones and back."""

    if TYPE_CHECKING:
        _program: BoundProgram
        _parameters: list[GlobalVariable]
        _outputs: dict[tuple[bool, bool], tuple[int, npt.NDArray[np.intp] | None]]
        _shape: tuple[int, ...]
        _idle: list[Workspace]
        _profiler: Profiler | None
        _show: Callable[[str], None]

        def _take(self) -> Workspace: ...
        def _fill(self, space: Workspace, theta: npt.ArrayLike) -> None: ...
        def _show_again(self, unit: Unit, context: Context) -> None: ...

    def _written(self, include_tp: bool, include_gq: bool) -> list[GlobalVariable]:
        blocks = ["parameters"]
        blocks += ["transformed_parameters"] if include_tp else []
        blocks += ["generated_quantities"] if include_gq else []
        return self._program.of_block(*blocks)

    def _output(self, include_tp: bool, include_gq: bool) -> tuple[int, npt.NDArray[np.intp] | None]:
        """Length of the constrained vector, and the order that makes compiled output BridgeStan's."""
        key = (bool(include_tp), bool(include_gq))
        found = self._outputs.get(key)
        if found is None:
            variables = self._written(*key)
            count = sum(variable.size for variable in variables)
            with room_for(variables, count):
                found = self._outputs[key] = (count, output_order(variables))
        return found

    def param_constrain(
        self,
        theta_unc: npt.ArrayLike,
        *,
        include_tp: bool = False,
        include_gq: bool = False,
        out: FloatArray | None = None,
        rng: Rng | None = None,
        time_limit: float | None = None,
    ) -> FloatArray:
        """The constrained parameters, with transformed parameters and generated quantities if asked for.

        A call that was stopped leaves `rng` at some other place of its sequence.
        """
        if time_limit is not None:
            call = self.param_constrain
            return limited(time_limit, call, theta_unc, include_tp=include_tp, include_gq=include_gq, out=out, rng=rng)
        if include_gq and rng is None:
            raise ValueError("Error: must specify rng when including generated quantities")
        if not self._program.is_loaded("constrain"):
            again = partial(
                self.param_constrain, theta_unc, include_tp=include_tp, include_gq=include_gq, out=out, rng=rng
            )
            return stoppable(lambda: self._program.unit("constrain") and again())
        count, order = self._output(include_tp, include_gq)
        if isinstance(out, np.ndarray) and out.shape != (count,):
            raise ValueError(
                f"Error: out must be same size as number of constrained parameters: {count}, found shape {out.shape}"
            )
        target = None if out is None else writable(out, (count,))
        unit = self._program.unit("constrain")
        with room_for(self._written(include_tp, include_gq), count):
            result = np.full(count, np.nan)
        space = self._take()
        context = space.context
        try:
            self._fill(space, theta_unc)
            beyond = bool(include_tp or include_gq)
            if unit.failure is not None:
                raise self._constrain_error(unit, unit.failure, space, beyond)
            context.rng = rng
            if self._profiler is not None:
                self._profiler.enter(context, "generated quantities")
            status = context.run_constrain(
                unit.entry, unit.bound, space.theta_address, result.ctypes.data, bool(include_tp), bool(include_gq)
            )
            if context.output_length.value:
                self._show(context.take_output())
            if status:
                raise self._constrain_error(unit, Failure.of(status, context), space, beyond)
        finally:
            context.rng = None
            self._idle.append(space)
        if order is not None:
            result = result[order]
        if target is None:
            return result
        target[...] = result
        return out  # pyright: ignore[reportReturnType]

    def param_unconstrain(
        self, theta: npt.ArrayLike, *, out: FloatArray | None = None, time_limit: float | None = None
    ) -> FloatArray:
        """The unconstrained parameters of a constrained vector, in the order of `param_names`."""
        if time_limit is not None:
            return limited(time_limit, self.param_unconstrain, theta, out=out)
        if not self._program.is_loaded("unconstrain"):
            again = partial(self.param_unconstrain, theta, out=out)
            return stoppable(lambda: self._program.unit("unconstrain") and again())
        count, order = self._output(False, False)
        given = vector(theta, (count,), "theta")
        if order is None:
            compiled = np.ascontiguousarray(given)
        else:
            compiled = np.empty(count)
            compiled[order] = given
        return self._unconstrain(compiled, out)

    @scoped
    def param_unconstrain_json(
        self,
        theta_json: str | os.PathLike[str] | Mapping[str, Any] | NamedText,
        *,
        out: FloatArray | None = None,
        time_limit: float | None = None,
    ) -> FloatArray:
        """The unconstrained parameters of constrained ones given by name, as JSON text, a path or a mapping."""
        if time_limit is not None:
            return limited(time_limit, self.param_unconstrain_json, theta_json, out=out)
        parts: list[npt.NDArray[Any]] = []
        bind_values(
            self._parameters,
            read_data(theta_json, PARAMETER_VALUES),
            lambda variable: variable.dims,
            lambda variable, array: parts.append(to_compiled(variable, array)),
        )
        compiled = np.concatenate(parts) if parts else np.empty(0)
        return self._unconstrain(np.ascontiguousarray(compiled, dtype=np.float64), out)

    def _unconstrain(self, compiled: FloatArray, out: FloatArray | None) -> FloatArray:
        target = None if out is None else writable(out, self._shape)
        unit = self._program.unit("unconstrain")
        space = self._take()
        context = space.context
        try:
            status = context.run_unconstrain(unit.entry, unit.bound, compiled.ctypes.data, space.theta_address)
            if context.output_length.value:
                self._show(context.take_output())
            if status:
                raise unit.error(status, context)
            if target is None:
                return space.theta.copy()
            target[...] = space.theta
            return out  # pyright: ignore[reportReturnType]
        finally:
            self._idle.append(space)

    @scoped
    def _constrain_error(self, unit: Unit, failure: Failure, space: Workspace, beyond: bool) -> ProgramError:
        """The same for `param_constrain`. Generated quantities, which draw, are not run again and keep their errors."""
        context = space.context
        located = self._program.unit("locate_constrain")
        written = np.empty(self._output(True, False)[0])
        status = context.run_constrain(
            located.entry, located.bound, space.theta_address, written.ctypes.data, beyond, False
        )
        self._show_again(unit, context)
        return located.error(status, context) if status else unit.error_of(failure)
