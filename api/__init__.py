"""ulam compiles Stan programs to native code, in the process. `ulam.StanModel` is where to begin.

Names below are imported when first used: `import ulam` itself loads nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ulam.library.own_libraries import StanLibrary as StanLibrary
    from ulam.passes.levels import OptimizationLevel as OptimizationLevel
    from ulam.passes.levels import register_level as register_level
    from ulam.passes.levels import register_pass as register_pass
    from ulam.runtime.building.entry import build as build
    from ulam.runtime.errors import CompileError as CompileError
    from ulam.runtime.errors import DataError as DataError
    from ulam.runtime.errors import FatalError as FatalError
    from ulam.runtime.errors import InitializationError as InitializationError
    from ulam.runtime.errors import Interrupted as Interrupted
    from ulam.runtime.errors import Rejection as Rejection
    from ulam.runtime.errors import SamplingError as SamplingError
    from ulam.runtime.errors import TimeLimit as TimeLimit
    from ulam.runtime.errors import UlamError as UlamError
    from ulam.runtime.external_functions import External as External
    from ulam.runtime.external_functions import external as external
    from ulam.runtime.externals import register_library as register_library
    from ulam.runtime.libraries.archive import get_include as get_include
    from ulam.runtime.libraries.linkers import BuildError as BuildError
    from ulam.runtime.model import StanModel as StanModel
    from ulam.runtime.native import Rng as Rng
    from ulam.runtime.native_handle import NativeHandle as NativeHandle
    from ulam.runtime.optimizers.curvature import CurvatureError as CurvatureError
    from ulam.runtime.optimizers.laplace import LaplaceResult as LaplaceResult
    from ulam.runtime.optimizers.multi_start import MultiStartResult as MultiStartResult
    from ulam.runtime.optimizers.result import OptimizationResult as OptimizationResult
    from ulam.runtime.sampling.fit import SampleFit as SampleFit
    from ulam.runtime.sampling.loading import load as load
    from ulam.runtime.sampling.pathfinder import PathfinderError as PathfinderError
    from ulam.runtime.sampling.pathfinder import PathfinderResult as PathfinderResult
    from ulam.runtime.stan_program import StanProgram as StanProgram
    from ulam.runtime.studies.fit_many import fit_many as fit_many
    from ulam.runtime.studies.sbc import sbc as sbc
    from ulam.runtime.studies.study import Study as Study
    from ulam.runtime.studies.study import StudyError as StudyError
    from ulam.runtime.studies.study import load_study as load_study

__version__ = "0.1.0"

_HOMES = {
    "BuildError": "ulam.runtime.libraries.linkers",
    "CompileError": "ulam.runtime.errors",
    "CurvatureError": "ulam.runtime.optimizers.curvature",
    "DataError": "ulam.runtime.errors",
    "External": "ulam.runtime.external_functions",
    "FatalError": "ulam.runtime.errors",
    "InitializationError": "ulam.runtime.errors",
    "Interrupted": "ulam.runtime.errors",
    "StanLibrary": "ulam.library.own_libraries",
    "LaplaceResult": "ulam.runtime.optimizers.laplace",
    "MultiStartResult": "ulam.runtime.optimizers.multi_start",
    "OptimizationLevel": "ulam.passes.levels",
    "NativeHandle": "ulam.runtime.native_handle",
    "OptimizationResult": "ulam.runtime.optimizers.result",
    "PathfinderError": "ulam.runtime.sampling.pathfinder",
    "PathfinderResult": "ulam.runtime.sampling.pathfinder",
    "Rejection": "ulam.runtime.errors",
    "Rng": "ulam.runtime.native",
    "SampleFit": "ulam.runtime.sampling.fit",
    "SamplingError": "ulam.runtime.errors",
    "StanModel": "ulam.runtime.model",
    "StanProgram": "ulam.runtime.stan_program",
    "Study": "ulam.runtime.studies.study",
    "StudyError": "ulam.runtime.studies.study",
    "TimeLimit": "ulam.runtime.errors",
    "UlamError": "ulam.runtime.errors",
    "fit_many": "ulam.runtime.studies.fit_many",
    "external": "ulam.runtime.external_functions",
    "build": "ulam.runtime.building.entry",
    "get_include": "ulam.runtime.libraries.archive",
    "load": "ulam.runtime.sampling.loading",
    "load_ipython_extension": "ulam.notebook",  # for `%load_ext ulam`
    "load_study": "ulam.runtime.studies.study",
    "register_level": "ulam.passes.levels",
    "register_library": "ulam.runtime.externals",
    "register_pass": "ulam.passes.levels",
    "sbc": "ulam.runtime.studies.sbc",
}

__all__ = [
    "BuildError", "CompileError", "CurvatureError", "DataError", "External", "FatalError", "InitializationError",
    "Interrupted", "LaplaceResult", "MultiStartResult", "NativeHandle", "OptimizationLevel", "OptimizationResult",
    "PathfinderError", "PathfinderResult", "Rejection", "Rng", "SampleFit", "SamplingError", "StanLibrary",
    "StanModel", "StanProgram", "Study", "StudyError", "TimeLimit", "UlamError", "__version__", "build", "external",
    "fit_many", "get_include", "load", "load_study", "register_level", "register_library", "register_pass", "sbc",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ulam' has no attribute {name!r}")
    from importlib import import_module

    from ulam.library.collector import without_collector

    with without_collector():
        value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
