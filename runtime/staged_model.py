"""A model's program in every form on its way to machine code, and models of modules. Part of `StanModel`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ulam.passes.pipelines import did_you_mean
from ulam.passes.units import DEFAULT_UNIT, UNITS
from ulam.runtime.compiler import STAGES, Compiler
from ulam.runtime.data import DataSource
from ulam.runtime.errors import ArgumentError, CompileError
from ulam.runtime.interrupts import held, stoppable
from ulam.runtime.named_text import MODULE_SUFFIX, NamedText
from ulam.runtime.program import compile_errors

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ulam.runtime.model import Recipe
    from ulam.runtime.program import BoundProgram

Shown = TypeVar("Shown")
DEFAULT_NAME = "module"


class StagedModel:
    """What shows a program on its way."""

    if TYPE_CHECKING:
        _recipe: Recipe
        _program: BoundProgram

        def __init__(self, source: Any, data: DataSource = None, **options: Any) -> None: ...

    @classmethod
    def from_module(cls, module: ModuleOp | str, data: DataSource = None, **options: Any) -> Self:
        """The model of a module with a `stan.program`, made by xDSL or any other way; or of the text of one.

        The module is verified: what is wrong with it is a `CompileError` with the place of the op. It is copied, not
        changed. `options` are those of the constructor. A `.mlir` file is a model by itself: `StanModel("m.mlir")`.
        """
        if not isinstance(module, str):
            check_module(module)
        return cls(NamedText(module_text(module), f"{_program_name(module)}{MODULE_SUFFIX}"), data, **options)

    def module(self, stage: str = "optimized", unit: str = DEFAULT_UNIT.name) -> ModuleOp:
        """The program in MLIR as a stage leaves it, a new `ModuleOp` of xDSL each time.

        Stages: `written`, `optimized` (after the passes of the level), `values` (value form); and of a `unit`, as the
        gradient's, `loops` (before the passes of units) and `lowered` (after them). docs/optimization.md has more.
        """
        if stage not in STAGES:
            raise ArgumentError(f"there is no stage {stage!r}{did_you_mean(str(stage), STAGES)}: {', '.join(STAGES)}")
        return self._shown(unit, lambda compiler: compiler.module_at(stage, unit))

    def llvm_ir(self, unit: str = DEFAULT_UNIT.name) -> str:
        """The LLVM IR of a unit, before LLVM's own passes."""
        return self._shown(unit, lambda compiler: compiler.llvm_text(unit))

    def assembly(self, unit: str = DEFAULT_UNIT.name) -> str:
        """The assembly of a unit, as it runs here."""
        return self._shown(unit, lambda compiler: compiler.assembly(unit))

    def _shown(self, unit: str, show: Callable[[Compiler], Shown]) -> Shown:
        """What a new compiler of this program shows."""
        if unit not in UNITS:
            raise ArgumentError(f"there is no unit {unit!r}{did_you_mean(str(unit), UNITS)}: {', '.join(UNITS)}")
        recipe = self._recipe

        def work() -> Shown:
            compiler = Compiler(recipe.text, recipe.filename, recipe.options.of_part)
            if unit != "setup" and (known := self._program.known_to_compiler(recipe.options)) is not None:
                compiler.specialize(known)
            with compile_errors():
                return held(lambda: show(compiler))

        return stoppable(work)


def check_module(module: ModuleOp) -> None:
    """Raises CompileError, with the op's place, for a module that breaks a rule or holds no program."""
    from xdsl.dialects.builtin import ModuleOp

    from ulam.dialects.places import place_of
    from ulam.runtime.modules.reading import verify_program
    from ulam.runtime.modules.verification import InvalidModuleError

    if not isinstance(module, ModuleOp):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(f"a module is a builtin.module of xDSL, or its text, found {type(module).__name__}")
    try:
        verify_program(module)
    except InvalidModuleError as error:
        place = place_of(error.location)
        where = "" if place is None else f"{place.filename.data}:{place.line.data}:{place.column.data}: "
        raise CompileError(f"{where}error: {error}") from None


def module_text(module: ModuleOp | str) -> str:
    """A module with the places of its ops, as text."""
    if isinstance(module, str):
        return module
    from io import StringIO

    from xdsl.printer import Printer

    stream = StringIO()
    Printer(stream, print_debuginfo=True).print_op(module)
    return stream.getvalue() + "\n"


def _program_name(module: ModuleOp | str) -> str:
    """The name of the program in a module, by which messages call it."""
    if not isinstance(module, str):
        for op in module.body.block.ops:
            if op.name == "stan.program":
                return op.properties["sym_name"].data  # pyright: ignore[reportAttributeAccessIssue]
    return DEFAULT_NAME
