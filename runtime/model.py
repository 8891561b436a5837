"""`StanModel`: a Stan program with its data, through BridgeStan's Python interface, and `optimize`.

Method names, arguments, shapes and exceptions are BridgeStan's (roualdes.us/bridgestan, Python API). Calls release the
interpreter lock; a model may be used by several threads at once, each call takes a workspace of its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ulam.library.collector import without_collector
from ulam.library.records import record
from ulam.passes.units import density_unit
from ulam.runtime import terminal
from ulam.runtime._calls import quicken
from ulam.runtime.arguments import FloatArray, chosen_level, profiling, random_seed, read_source, vector, writable
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.constrained_model import ConstrainedModel
from ulam.runtime.data import DataSource, Values, read_data
from ulam.runtime.early_data import check_declared
from ulam.runtime.errors import ProgramError
from ulam.runtime.externals import externals_of, forms, given
from ulam.runtime.interrupts import scoped, stoppable
from ulam.runtime.memory import room_for
from ulam.runtime.named_text import NamedText
from ulam.runtime.names import (
    GlobalVariable,
    constrained_names,
    unconstrained_names,
)
from ulam.runtime.native import Context, Rng, density_call
from ulam.runtime.program import BoundProgram, Failure, Unit, require_lines
from ulam.runtime.sampled_model import SampledModel
from ulam.runtime.second_order import SecondOrderModel
from ulam.runtime.staged_model import StagedModel
from ulam.runtime.workspace import Workspace
from ulam.tracing.tracked_model import TrackedModel

if TYPE_CHECKING:
    from ulam.runtime._calls import DensityCall
    from ulam.runtime.cached_compiler import CachedCompiler
    from ulam.runtime.compiler import Compiler
    from ulam.runtime.external_functions import External, Externals
    from ulam.runtime.layout_choices import LayoutChoice
    from ulam.runtime.optimizers.laplace import LaplaceResult
    from ulam.runtime.optimizers.result import OptimizationResult
    from ulam.runtime.profiling.profiler import Profiler
    from ulam.runtime.tiers import Tiers


@record(frozen=True, slots=True)
class Recipe:
    """What a model is made of: all that makes it again, in another process, too. Fields are only added at the end."""

    text: str
    filename: str
    values: Values
    seed: int
    capture_stan_prints: bool
    options: CompileOptions
    cache: bool
    profile_events: int = 0
    external: Mapping[str, External] = field(default_factory=dict[str, "External"])


class StanModel(ConstrainedModel, SecondOrderModel, SampledModel, TrackedModel, StagedModel):
    """A Stan program with data. Compiles what is used, when it is first used.

    `source` is the path of a `.stan` file or of an `.mlir` file, or the text of a program. `data` is a path, JSON text
    or a mapping. `opt_level` is 0 to 4, by default 3, or the name of a level of one's own; `passes`, instead, is a
    pipeline of passes (docs/optimization.md has both). `seed` is for random numbers drawn in transformed data. With
    `capture_stan_prints` printed lines go through Python's `sys.stdout`, else straight to the process's standard
    output. `profile`: whether the program's `profile` statements record (`profiler` has what), or `"statements"`,
    `"blocks"` or `"functions"` to have these recorded instead; the last `profile_events` passes are kept one by one.
    `lines`: the compiled code has a line table, for `line_profile` and debuggers. `layouts`: levels 3 and 4 choose
    layouts of the data (`layout_choices` has what was chosen). `external`: functions that the program declares without
    a body, by name (docs/extending.md). `tiered`: at levels 0 to 2 the log density and its gradient begin with code
    that is soon there, with the same bits, while LLVM optimises the other (`finish_compiling` waits for it).
    `time_limit`: seconds that this constructor may take; calls have limits of their own.

    SIGINT (Ctrl-C) ends every call, the constructor too, and leaves the model as it was before: in the main thread with
    KeyboardInterrupt, in others with `Interrupted`. A call with `time_limit` ends with `TimeLimit` after so many
    seconds, compiling included.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | NamedText,
        data: DataSource = None,
        *,
        seed: int = 1234,
        capture_stan_prints: bool = True,
        opt_level: int | str | None = None,
        passes: str | None = None,
        include_paths: Sequence[str | os.PathLike[str]] = (),
        cache: bool = True,
        profile: bool | str = True,
        profile_events: int = 0,
        lines: bool = False,
        layouts: bool = True,
        external: Mapping[str, Any] | None = None,
        tiered: bool = False,
        time_limit: float | None = None,
    ) -> None:
        def setup() -> None:
            if lines:
                require_lines()
            text, filename = read_source(source)
            paths = tuple(os.fspath(path) for path in include_paths)
            random_seed(seed)
            level = chosen_level(opt_level, passes)
            functions = given(external)
            further = {"profile": profiling(profile), "lines": lines, "layouts": bool(layouts), "pieces": True}
            options = CompileOptions(include_paths=paths, externals=forms(functions), **level, **further)
            values = read_data(data)
            self._setup(
                Recipe(text, filename, values, seed, capture_stan_prints, options, cache, profile_events, functions)
            )
            if tiered:
                from ulam.runtime.tiers import Tiers, require_same_bits

                require_same_bits(options.opt_level)
                self._tiers = Tiers(self._compiler, self._program)

        stoppable(setup, time_limit)

    def _setup(self, recipe: Recipe) -> None:
        text, values, seed, options = recipe.text, recipe.values, recipe.seed, recipe.options
        self.seed = seed
        self._show: Callable[[str], None] = _shown_by_python if recipe.capture_stan_prints else _written
        compiler = self._compiler = _compiler(text, recipe.filename, options, recipe.cache)
        self._tiers: Tiers | None = None
        compiler.inspect = partial(check_declared, values=values)
        make_rng = partial(Rng, seed)
        self._program = BoundProgram(
            compiler, values, make_rng, self._show, profile_events=recipe.profile_events,
            externals=externals_of(options, recipe.external),
        )  # fmt: skip
        self._profiler = self._program.profiler
        if self._profiler is not None:
            self._profiler.sources[recipe.filename] = text
        if (known := self._program.known_to_compiler(options)) is not None:
            compiler.specialize(known)
        declared = {variable.name.partition(":")[0] for variable in self._program.of_block("data")}
        kept = Values(values.name, {k: v for k, v in values.values.items() if k in declared}, values.is_json)
        self._recipe = replace(recipe, values=kept)
        self._parameters = self._program.of_block("parameters")
        self._size = sum(math.prod(variable.unconstrained_dims) for variable in self._parameters)
        self._shape = (self._size,)
        self._idle: list[Workspace] = []
        self._values: dict[bool, DensityCall] = {}
        self._gradients: dict[bool, DensityCall] = {}
        self._hessians: dict[bool, Unit] = {}
        self._outputs: dict[tuple[bool, bool], tuple[int, npt.NDArray[np.intp] | None]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, tuple(getattr(self._recipe, field.name) for field in fields(Recipe))

    def __repr__(self) -> str:
        return f"StanModel({self._recipe.filename!r}, {self._size} unconstrained parameters, seed={self.seed})"

    @property
    def recipe(self) -> Recipe:
        """All that makes the model again."""
        return self._recipe

    @property
    def source(self) -> tuple[str, str]:
        """The program's text and file name."""
        return self._recipe.text, self._recipe.filename

    @property
    def options(self) -> CompileOptions:
        """How the program is compiled."""
        return self._recipe.options

    @property
    def externals(self) -> Externals | None:
        """The functions that the program was given, as compiled code has them; None if it has none."""
        return self._program.code.externals

    @property
    def has_lines(self) -> bool:
        """Whether the compiled code has a line table."""
        return self._recipe.options.lines

    @cached_property
    def as_written(self) -> StanModel:
        """The same model compiled at level 0: no pass changes the program."""
        options = self.options.as_written
        same = self.options.of_part == options
        return self if same else model_of(replace(self._recipe, options=options))

    @cached_property
    def with_lines(self) -> StanModel:
        """The same model, with a line table in its compiled code."""
        if self.has_lines:
            return self
        require_lines()
        return model_of(replace(self._recipe, options=replace(self.options, lines=True)))

    def loaded_units(self) -> list[Unit]:
        """The units of the program that are in the process by now."""
        return self._program.loaded()

    def layout_choices(self, *, propto: bool = True) -> list[LayoutChoice]:
        """The layouts that the data have for gradients: of each statement which was chosen, from which figures of the
        data, and what prevented others. Nothing where the data are rejected, and of models with `layouts=False`.
        """
        return list(self._program.unit(density_unit(1, propto).name).layouts)

    # ------------------------------------------------------------ names and sizes

    def name(self) -> str:
        """The model's name: the file's, followed by `_model`."""
        return f"{self._program.name}_model"

    def model_info(self) -> str:
        """Versions and options that the model was compiled with."""
        from ulam.runtime.versions import version_lines

        return "\n".join([*version_lines(), self._recipe.options.about_level]) + "\n"

    def param_num(self, *, include_tp: bool = False, include_gq: bool = False) -> int:
        """The number of constrained parameters, with transformed parameters and generated quantities if asked for."""
        return self._output(include_tp, include_gq)[0]

    def param_unc_num(self) -> int:
        """The number of unconstrained parameters."""
        return self._size

    def param_names(self, *, include_tp: bool = False, include_gq: bool = False) -> list[str]:
        """Names of the elements, `a.2.1` for `a[2, 1]`, column-major; `t:1`, `t.2:1` are fields of tuples."""
        return list(constrained_names(self._written(include_tp, include_gq)))

    def param_unc_names(self) -> list[str]:
        """Names of the unconstrained parameters, in their order."""
        return list(unconstrained_names(self._parameters))

    def variable_names(self) -> list[str]:
        """The names of all variables that the program's blocks declare at their top, fields of tuples apart."""
        return [variable.name for variable in self._program.variables]

    def parameter_variables(self) -> list[GlobalVariable]:
        """The declared parameters, with their sizes."""
        return self._parameters

    def bound_values(self) -> dict[str, Any]:
        """Copies of the data and the transformed data, by name; `t:1` is the first field of a tuple."""
        return self._program.bound_values("data", "transformed_data")

    def written_variables(self) -> list[GlobalVariable]:
        """Parameters, transformed parameters and generated quantities, in the order of `param_names`."""
        return self._written(True, True)

    # ------------------------------------------------------------ log density

    def log_density(
        self, theta_unc: npt.ArrayLike, *, propto: bool = True, jacobian: bool = True, time_limit: float | None = None
    ) -> float:
        """The log density of an unconstrained point.

        `propto` drops terms that do not depend on the parameters; `jacobian` adds the change of variables.
        """
        if time_limit is None and (call := self._values.get(propto)) is not None:
            value = call.evaluate(self, theta_unc, jacobian, None)
            return call.evaluate(self, self._point(theta_unc), jacobian, None) if value is None else value
        return self._begin(StanModel.log_density, 0, time_limit, theta_unc, propto=propto, jacobian=jacobian)

    def log_density_gradient(
        self,
        theta_unc: npt.ArrayLike,
        *,
        propto: bool = True,
        jacobian: bool = True,
        out: FloatArray | None = None,
        time_limit: float | None = None,
    ) -> tuple[float, FloatArray]:
        """The log density and its gradient, written to `out` if that is given."""
        if time_limit is None and (call := self._gradients.get(propto)) is not None:
            found = call.evaluate(self, theta_unc, jacobian, out)
            return found if found is not None else self._converted(call, theta_unc, jacobian, out)
        evaluate = StanModel.log_density_gradient
        return self._begin(evaluate, 1, time_limit, theta_unc, propto=propto, jacobian=jacobian, out=out)

    def _converted(
        self, call: DensityCall, theta: npt.ArrayLike, jacobian: bool, out: FloatArray | None
    ) -> tuple[float, FloatArray]:
        """The same for arrays that compiled code cannot read or write as they are."""
        target = None if out is None else writable(out, self._shape)
        value, gradient = call.evaluate(self, self._point(theta), jacobian, None)
        if target is None:
            return value, gradient
        target[...] = gradient
        return value, out  # pyright: ignore[reportReturnType]

    def _begin(
        self,
        evaluate: Callable[..., Any],
        order: int,
        time_limit: float | None,
        theta: npt.ArrayLike,
        *,
        propto: bool,
        jacobian: bool,
        **options: Any,
    ) -> Any:
        """An evaluation within a time limit, or for which the unit must be compiled.

        Compiling and the run are one call: what stops the one also stops the other.
        """
        known = self._gradients if order else self._values

        def begin() -> Any:
            if propto not in known and not self._has_first_version(order, bool(propto)):
                self._density_unit(order, propto, theta, jacobian)
            return evaluate(self, theta, propto=bool(propto), jacobian=jacobian, **options)

        return stoppable(begin, time_limit)

    def _has_first_version(self, order: int, propto: bool) -> bool:
        known = self._gradients if order else self._values
        keeps = self._profiler is None
        return self._tiers is not None and self._tiers.begin(known, order, propto, self._size, keeps=keeps)

    def finish_compiling(self) -> None:
        """Waits until LLVM has optimised what evaluations began without (`tiered`)."""
        if self._tiers is not None:
            stoppable(self._tiers.end)

    def time_gradients(
        self, theta_unc: npt.ArrayLike, count: int, *, propto: bool = True, jacobian: bool = True
    ) -> float:
        """Seconds of the processor that `count` gradients at one point take, in a row, with no Python between them.

        Compiling is not part of it, nor is waiting for a processor. Raises what `log_density_gradient` raises.
        """
        call = self._gradients.get(propto)
        if call is None:
            again = partial(self.time_gradients, theta_unc, count, propto=bool(propto), jacobian=jacobian)
            return stoppable(lambda: self._density_unit(1, propto, theta_unc, jacobian) and again())
        unit = call.unit
        space = self._take()
        try:
            self._fill(space, theta_unc)
            context = space.context
            status, seconds = context.repeat_gradient(
                unit.entry, unit.bound, space.theta_address, space.gradient_address, jacobian, count
            )
            self._end_evaluation(unit, space, status, jacobian)
            return seconds
        finally:
            self._idle.append(space)

    @scoped
    def _density_error(self, unit: Unit, failure: Failure, space: Workspace, jacobian: bool) -> ProgramError:
        """The exception for an evaluation that failed.

        An optimised program may notice errors out of order, without their place, or in other words: the unit `locate`
        runs the program as it was written once more.
        """
        context = space.context
        located = self._program.unit("locate")
        status = context.run_value(space.address, located.entry, located.bound, space.theta_address, jacobian)
        self._show_again(unit, context)
        return located.error(status, context) if status else unit.error_of(failure)

    def _show_again(self, unit: Unit, context: Context) -> None:
        """Takes what a program printed when run once more; shows it if it had not run before: its `bind` failed."""
        output = context.take_output()
        if output and unit.failure is not None:
            self._show(output)

    def new_rng(self, seed: int) -> Rng:
        """A random number generator for generated quantities."""
        return Rng(seed)

    # ------------------------------------------------------------ estimates

    def optimize(self, algorithm: str = "lbfgs", **options: Any) -> OptimizationResult:
        """The mode of the log density: see `ulam.runtime.optimizers.optimize.optimize` for the options."""

        def work() -> OptimizationResult:
            from ulam.runtime.optimizers.optimize import optimize

            self.finish_compiling()
            with nullcontext() if self._profiler is None else self._profiler.in_phase("optimization"):
                return optimize(self, algorithm=algorithm, **options)  # pyright: ignore[reportArgumentType]

        return stoppable(work, kept=True)

    def laplace(self, mode: Any = None, **options: Any) -> LaplaceResult:
        """Draws from the normal approximation at a mode: see `ulam.runtime.optimizers.laplace.laplace`."""

        def work() -> LaplaceResult:
            from ulam.runtime.optimizers.laplace import laplace

            self.finish_compiling()
            return laplace(self, mode, **options)

        return stoppable(work, kept=True)

    @property
    def profiler(self) -> Profiler | None:
        """What the program's profile statements have recorded; None if it has none."""
        return self._profiler

    @property
    def compile_seconds(self) -> float:
        """Time spent so far on compiling and loading."""
        return self._program.code.seconds

    # ------------------------------------------------------------ calls

    def _density_unit(self, order: int, propto: bool, theta: npt.ArrayLike, jacobian: bool) -> Unit:
        """The unit with derivatives up to `order`, for this and all later calls; if its `bind` failed, raises what
        this evaluation would have.
        """
        unit = self._program.unit(density_unit(order, propto).name)
        if unit.failure is not None:
            space = self._take()
            try:
                self._fill(space, theta)
                raise self._density_error(unit, unit.failure, space, jacobian)
            finally:
                self._idle.append(space)
        if order == 2:
            self._hessians[bool(propto)] = unit
        else:
            calls = self._gradients if order else self._values
            calls[bool(propto)] = density_call(unit, self._size, bool(order), keeps=self._profiler is None)
        return unit

    def _take(self) -> Workspace:
        try:
            space = self._idle.pop()
        except IndexError:
            with room_for(self._parameters, self._size):
                space = Workspace(self._size)
            if self._profiler is not None:
                self._profiler.attach(space.context)
        if self._profiler is not None:
            self._profiler.enter(space.context)
        return space

    def _give(self, space: Workspace) -> None:
        self._idle.append(space)

    def _point(self, theta: npt.ArrayLike) -> FloatArray:
        """The argument as compiled code reads it."""
        return np.array(vector(theta, self._shape, "theta_unc"))

    def _end_evaluation(self, unit: Unit, space: Workspace, status: int, jacobian: bool) -> None:
        """Shows what the program has printed; raises if the evaluation failed, or was stopped."""
        context = space.context
        if context.output_length.value:
            self._show(context.take_output())
        if status:
            raise self._density_error(unit, Failure.of(status, context), space, jacobian)

    def _fill(self, space: Workspace, theta: npt.ArrayLike) -> None:
        if type(theta) is not np.ndarray or theta.shape != self._shape:
            theta = vector(theta, self._shape, "theta_unc")
        space.theta[:] = theta


def _shown_by_python(text: str) -> None:
    """Lines that the program printed, through Python's `sys.stdout`."""
    terminal.show_printed(text)


def _written(text: str) -> None:
    """Lines that the program printed, straight to the standard output of the process."""
    os.write(1, text.encode())


def _compiler(text: str, filename: str, options: CompileOptions, cache: bool) -> Compiler | CachedCompiler:
    if cache:
        with without_collector():
            from ulam.runtime.cached_compiler import CachedCompiler

        return CachedCompiler(text, filename, options)
    from ulam.runtime.compiler import Compiler

    return Compiler(text, filename, options)


def _described(method: Callable[..., Any]) -> str:
    """Signature and description of a method, as those of extension modules give them."""
    code, defaults = method.__code__, method.__kwdefaults__ or {}
    named = ", ".join(f"{name}={default!r}" for name, default in defaults.items())
    return f"{method.__name__}($self, {code.co_varnames[1]}, *, {named})\n--\n\n{method.__doc__}"


quicken(StanModel, _described(StanModel.log_density), _described(StanModel.log_density_gradient))


def model_of(recipe: Recipe) -> StanModel:
    """The model that a recipe is of."""
    model = StanModel.__new__(StanModel)
    model._setup(recipe)  # pyright: ignore[reportPrivateUsage]
    return model


def _restore(*values: Any) -> StanModel:
    """A model from a pickle, which has the fields of its recipe one after the other."""
    return model_of(Recipe(*values))
