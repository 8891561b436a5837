"""What the result of a run knows of its model without it, so that it can be read where nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ulam.runtime.names import GlobalVariable, constrained_names
from ulam.runtime.versions import ulam_version

if TYPE_CHECKING:
    from ulam.runtime.model import Recipe, StanModel


def _itself(model: StanModel) -> StanModel:
    return model


@dataclass
class ModelDescription:
    """The model's name, what it writes for each draw, and how to make it again: `make` gives the model. `written_by`
    says what made the run.
    """

    name: str
    variables: list[GlobalVariable]
    unconstrained_names: list[str]
    recipe: Recipe
    make: Callable[[], StanModel] = field(repr=False)
    compile_seconds: float = 0.0
    written_by: str = ""

    @staticmethod
    def of(model: StanModel) -> ModelDescription:
        """That of a model at hand."""
        return ModelDescription(
            model.name(), model.written_variables(), model.param_unc_names(), model.recipe, partial(_itself, model),
            model.compile_seconds, f"ulam {ulam_version()}",
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "model"}

    @cached_property
    def names(self) -> list[str]:
        """Names of the elements of a draw."""
        return list(constrained_names(self.variables))

    @cached_property
    def model(self) -> StanModel:
        """The model, which is compiled if it is not at hand."""
        return self.make()
