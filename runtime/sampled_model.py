"""Draws of a model, and its log density for samplers of others. Part of `StanModel`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from ulam.runtime.arguments import FloatArray
from ulam.runtime.interrupts import stoppable
from ulam.runtime.native import Context
from ulam.runtime.program import BoundProgram, Failure, Unit

if TYPE_CHECKING:
    from ulam.runtime.errors import ProgramError
    from ulam.runtime.model import Recipe, StanModel
    from ulam.runtime.native_handle import NativeHandle
    from ulam.runtime.parallel_jobs import Executor
    from ulam.runtime.profiling.profiler import Profiler
    from ulam.runtime.sampling.chain import ChainProgress
    from ulam.runtime.sampling.chain_csv import ChainOutput
    from ulam.runtime.sampling.fit import SampleFit
    from ulam.runtime.sampling.generated import GeneratedQuantities
    from ulam.runtime.sampling.pathfinder import PathfinderResult
    from ulam.runtime.workspace import Workspace


class SampledModel:
    """What samples, and what samplers ask for."""

    if TYPE_CHECKING:
        _size: int
        _program: BoundProgram

        @property
        def recipe(self) -> Recipe: ...
        _profiler: Profiler | None
        _idle: list[Workspace]
        _show: Callable[[str], None]

        def param_constrain(self, theta_unc: FloatArray, *, include_tp: bool = ...) -> FloatArray: ...
        def finish_compiling(self) -> None: ...
        def _take(self) -> Workspace: ...
        def _fill(self, space: Workspace, theta: FloatArray) -> None: ...
        def _output(self, include_tp: bool, include_gq: bool) -> tuple[int, npt.NDArray[np.intp] | None]: ...
        def _density_unit(self, order: int, propto: bool, theta: FloatArray, jacobian: bool) -> Unit: ...
        def _density_error(self, unit: Unit, failure: Failure, space: Workspace, jacobian: bool) -> ProgramError: ...

    def sample(
        self,
        *,
        chains: int = 4,
        warmup: int = 1000,
        draws: int = 1000,
        seed: int = 1,
        init: Any = 2,
        thin: int = 1,
        target_accept: float = 0.8,
        max_depth: int = 10,
        metric: Any = "diag",
        step_size: Any = None,
        step_size_jitter: float = 0,
        integration_time: float | None = None,
        adapt: Mapping[str, Any] | None = None,
        save_warmup: bool = False,
        keep: bool = True,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: bool | Callable[[ChainProgress], None] = True,
        output: str | os.PathLike[str] | ChainOutput | None = None,
        time_limit: float | None = None,
        sampler: str = "nuts",
        first_chain: int = 1,
    ) -> SampleFit:
        """Draws from the posterior, by Hamiltonian Monte Carlo with Stan's adaptation: docs/sampling.md.

        `warmup` and `draws` count iterations of each chain, of which every `thin`-th is kept. `init` is what `optimize`
        takes (a number is the radius of uniform numbers on the unconstrained scale), a list of it with an entry for
        each chain, an array (chains, n), an earlier fit, or "pathfinder". `sampler`: "nuts" (has `max_depth`), or "hmc"
        with trajectories of the length `integration_time` (2 pi), or "fixed": parameters stay where they begin, and
        generated quantities are drawn. `metric`: the kind of mass matrix, or the inverse one to begin with: an array, a
        list with an array for each chain, a JSON file with `inv_metric`, an earlier fit. `adapt` has some of gamma,
        kappa, t0, init_buffer, term_buffer, window, and `engaged`, whether warmup adapts at all. Chains have the random
        numbers of those from `first_chain` on.

        Chains run in threads, `jobs` at a time (as many as there are processors), or as jobs of `executor`, any of
        `concurrent.futures`; the draws are the same. `progress`: a callback that is given a `ChainProgress` after each
        block of draws, or whether to show it. `output`: CSV files to which each block is appended; with `keep=False`
        the draws are only there. An interrupt (Ctrl-C), or `time_limit` seconds, ends the run with the draws that
        there are, and `fit.notes` says so.

        Raises ArgumentError for options that cannot be, InitializationError if a chain finds no initial point, and
        what the program raises other than rejections.
        """
        options = {name: value for name, value in locals().items() if name != "self"}

        def work() -> SampleFit:
            from ulam.runtime.sampling.sample import sample

            self.finish_compiling()
            return sample(cast("StanModel", self), **options)

        return stoppable(work, kept=True)

    def pathfinder(self, **options: Any) -> PathfinderResult:
        """Approximate draws, from paths of an optimizer: see `ulam.runtime.sampling.pathfinder.pathfinder`."""

        def work() -> PathfinderResult:
            from ulam.runtime.sampling.pathfinder import pathfinder

            self.finish_compiling()
            return pathfinder(cast("StanModel", self), **options)

        return stoppable(work, kept=True)

    def generate_quantities(self, draws: Any, **options: Any) -> GeneratedQuantities:
        """Generated quantities of draws: see `ulam.runtime.sampling.generated.generate_quantities`."""

        def work() -> GeneratedQuantities:
            from ulam.runtime.sampling.generated import generate_quantities

            self.finish_compiling()
            return generate_quantities(cast("StanModel", self), draws, **options)

        return stoppable(work, kept=True)

    def native_handle(self, *, propto: bool = True, jacobian: bool = True) -> NativeHandle:
        """The log density and its gradient as a C function, without Python in it: docs/native-handle.md."""

        def work() -> NativeHandle:
            from ulam.runtime.native_handle import NativeHandle

            def unit_of(order: int) -> Unit:
                return stoppable(lambda: self._density_unit(order, propto, np.zeros(self._size), jacobian))

            return NativeHandle(self._program, unit_of(1), self._size, jacobian, unit_of)

        return stoppable(work)

    def bridgestan_library(self) -> str:
        """The path of a shared library with BridgeStan's C interface: docs/bridgestan.md.

        It is the program's, for any data, and works in this process only, as long as that lives.
        """

        def work() -> str:
            from ulam.runtime.libraries.bridgestan_library import library_of

            recipe = self.recipe
            code = self._program.code if self._program.known_to_compiler(recipe.options) is None else None
            return library_of(recipe.text, recipe.filename, recipe.options, code, cache=recipe.cache)

        return stoppable(work)

    # ------------------------------------------------------------ what samplers ask for

    def new_context(self) -> Context:
        """A context of the caller's own for runs of this model."""
        context = Context()
        if self._profiler is not None:
            self._profiler.attach(context)
        return context

    def enter_phase(self, context: Context, phase: str) -> None:
        """Under which phase what follows is profiled."""
        if self._profiler is not None:
            self._profiler.enter(context, phase)

    def show_output(self, context: Context) -> None:
        """Shows what the program has printed in the context."""
        if context.output_length.value:
            self._show(context.take_output())

    def density_gradient_unit(self) -> Unit:
        """What evaluates gradients without constants. If its work on data failed, raises that error."""
        return self._density_unit(1, True, np.zeros(self._size), True)

    def constrain_unit(self) -> Unit:
        """What computes constrained values. If its work on data failed, raises that error."""
        unit = self._program.unit("constrain")
        if unit.failure is not None:
            self.param_constrain(np.zeros(self._size), include_tp=True)
        return unit

    def output_layout(self) -> tuple[int, npt.NDArray[np.intp] | None]:
        """How many constrained values there are in all, and the order that makes the compiled one that of
        `param_names`; None if they are the same.
        """
        return self._output(True, True)

    def density_error(self, theta_unc: FloatArray, status: int) -> ProgramError:
        """The error of a gradient, without constants, that returned `status` in a context that is gone."""
        space = self._take()
        try:
            self._fill(space, theta_unc)
            unit = self._density_unit(1, True, theta_unc, True)
            return self._density_error(unit, Failure(status, -1, (), ""), space, True)
        finally:
            self._idle.append(space)
