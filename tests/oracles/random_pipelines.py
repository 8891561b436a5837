"""Random pipelines on random programs, and modules with mutations as models, for `benchmarks/fuzz.py`.

A pipeline is right, with the values of level 0, or refused; a module is a model, or an error that says what is wrong.
"""

from __future__ import annotations

import io
import random
import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import program_generator
import random_programs
import structured_programs
from fuzzing import RUN_SECONDS, SLOW, told, within
from mutated_modules import mutated

import ulam
from ulam.passes.pipeline_order import NEEDED, TO_LOOPS, check_order
from ulam.passes.pipelines import LEVELS, PASSES, PipelineError, level_pipeline, pass_class, pipeline_parts
from ulam.passes.units import UNITS
from ulam.runtime.errors import ArgumentError, CompileError, InternalCompilerError, TimeLimit, UlamError

PROGRAMS: tuple[tuple[Callable[[int], str], Any], ...] = (
    (random_programs.random_program, random_programs.DATA),
    (program_generator.generate, program_generator.DATA),
    (structured_programs.generate, structured_programs.DATA),
)
EXAMPLES = ("eight_schools", "linear_regression", "hierarchical")
ROOT = Path(__file__).parents[2]
NUMBERS = (0, 1, 2, 3, 7, 40, 1000)
TOLERANCE = 1e-9
"""Of the largest entry: passes may reorder sums and contract products."""

_HOMES = {name: home.removeprefix("ulam.passes.").partition(".")[0] for name, home in PASSES.items()}
OF_PROGRAM = [name for name, home in _HOMES.items() if home == "optimize" and name != "repeat"]
OF_UNITS = [name for name, home in _HOMES.items() if home in ("loops", "autodiff")]
ANY = [name for name in PASSES if name != "trace-instrument"]
_STOCK = ("print-analysis", "profile")


# ---------------------------------------------------------------- pipelines


def random_pipeline(r: random.Random) -> str:
    """Passes of levels with some exchanged, left out, doubled, and given options; or passes in any order."""
    kind = r.random()
    if kind < 0.1:
        return ",".join(_with_options(r, name) for name in r.choices(ANY, k=r.randrange(1, 6)))
    program = _changed(r, [text for _, text in pipeline_parts(level_pipeline(r.choice(list(LEVELS))))], OF_PROGRAM)
    if kind < 0.3:
        r.shuffle(program)
    if r.random() < 0.2:
        program = [f'repeat{{passes="{",".join(p for p in program if chr(34) not in p) or "copy-propagation"}" max=2}}']
    if kind < 0.55:
        return ",".join(program)
    return ",".join([*program, TO_LOOPS, *_unit_passes(r)])


def _unit_passes(r: random.Random) -> list[str]:
    from ulam.passes.lowering_pipeline import lowering_pipeline

    wanted = r.choice(("gradient_propto", "hessian_vector_propto"))
    unit = next((kind for name, kind in UNITS.items() if name.startswith(wanted)), UNITS["gradient_propto"])
    text = lowering_pipeline(unit, r.choice((0, 3)))
    parts = [part for name, part in pipeline_parts(text) if name != TO_LOOPS and "=" not in part and name in OF_UNITS]
    changed = _changed(r, parts, OF_UNITS)
    if r.random() < 0.3:  # any order that is allowed: what is needed stands where it stands
        first = [name for name in changed if name not in NEEDED]
        r.shuffle(first)
        changed = first
    return changed


def _changed(r: random.Random, parts: list[str], stock: Sequence[str]) -> list[str]:
    made: list[str] = []
    for part in parts:
        chance = r.random()
        if chance < 0.15:
            continue
        if chance < 0.25:
            made.append(_with_options(r, r.choice(stock)))
        if chance < 0.3:
            made.append(part)
        made.append(_with_options(r, part) if "{" not in part else part)
    return made


def _with_options(r: random.Random, name: str) -> str:
    """The pass with values for some of its options."""
    if name not in PASSES or name in ("repeat", "if-changed", "print-analysis", TO_LOOPS):
        return name
    given: list[str] = []
    for option in fields(pass_class(name)):
        kind = str(option.type)
        if r.random() < 0.7:
            continue
        if kind == "bool":
            given.append(f"{option.name.replace('_', '-')}={r.choice(('true', 'false'))}")
        elif kind == "int":
            given.append(f"{option.name.replace('_', '-')}={r.choice(NUMBERS)}")
        elif option.name == "when":
            given.append(f"when={r.choice(('always', 'useful'))}")
    return f"{name}{{{' '.join(given)}}}" if given else name


def _program(r: random.Random) -> tuple[str, Any]:
    if r.random() < 0.2:
        path = ROOT / "examples" / r.choice(EXAMPLES)
        return path.with_suffix(".stan").read_text(), str(path.with_suffix(".json"))
    generate, data = r.choice(PROGRAMS)
    return generate(r.randrange(10_000)), data


def pipeline_of(seed: int, number: int) -> tuple[str, str, Any]:
    """The pipeline, the program and the data of a case."""
    r = random.Random(f"pipelines {seed} {number}")
    text, data = _program(r)
    return random_pipeline(r), text, data


def pipeline_case(seed: int, number: int) -> str | None:
    """What is wrong with a random pipeline on a random program; None if it is right or refused."""
    pipeline, text, data = pipeline_of(seed, number)
    try:
        check_order(pipeline)
    except PipelineError:
        return None
    expected = _outcome(text, data, opt_level=0)
    found = _outcome(text, data, passes=pipeline)
    if "TimeLimit" in (expected, found):
        return f"{SLOW}{pipeline}"
    if found == "refused" and not isinstance(expected, str):
        return None
    difference = _difference(expected, found)
    return None if difference is None else f"{difference}; passes: {pipeline}"


def _outcome(text: str, data: Any, **options: Any) -> Any:
    """Values of a model at two points, or what it fails with."""
    values: list[Any] = []
    try:
        with within(300), warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            model = ulam.StanModel(
                text, data, cache=False, capture_stan_prints=True, time_limit=3 * RUN_SECONDS, **options
            )
            for low, high in ((-0.7, 0.9), (0.3, -0.4)):
                at = np.linspace(low, high, model.param_unc_num())
                values.append(_value(lambda at=at: model.log_density_gradient(at, time_limit=RUN_SECONDS)))
                values.append(_value(lambda at=at: model.log_density(at, propto=False, time_limit=RUN_SECONDS)))
                values.append(_value(lambda at=at: model.param_constrain(
                    at, include_tp=True, include_gq=True, rng=model.new_rng(1), time_limit=RUN_SECONDS)))  # fmt: skip
    except InternalCompilerError as error:
        return f"internal {told(error)}"
    except TimeLimit:
        return "TimeLimit"
    except (ArgumentError, CompileError) as error:
        return "refused" if "passes" in options and _is_refusal(error) else f"{type(error).__name__}: {error}"
    except UlamError as error:
        return type(error).__name__
    except Exception as error:
        return f"error {told(error)}"
    return values


def _is_refusal(error: Exception) -> bool:
    """Whether a message is about the pipeline."""
    return re.search(r"\bpass(es)? '|pipeline", str(error)) is not None


def _value(evaluate: Callable[[], Any]) -> Any:
    try:
        found = evaluate()
    except InternalCompilerError:
        raise
    except UlamError as error:
        return type(error).__name__
    parts = found if isinstance(found, tuple) else (found,)
    return np.concatenate([np.atleast_1d(np.asarray(part, dtype=float)) for part in parts])


def _difference(expected: Any, found: Any) -> str | None:
    if isinstance(expected, str) or isinstance(found, str):
        return None if str(expected) == str(found) else f"{str(expected)[:200]} and {str(found)[:600]}"
    for one, other in zip(expected, found, strict=True):
        if isinstance(one, str) or isinstance(other, str):
            if str(one) != str(other):
                return f"{str(one)[:200]} and {str(other)[:200]}"
            continue
        scale = 1 + np.max(np.abs(one[np.isfinite(one)]), initial=0)
        if not np.allclose(one, other, rtol=1e-6, atol=TOLERANCE * scale, equal_nan=True):
            return f"values differ: {one[:6]} and {other[:6]}"
    return None


# ---------------------------------------------------------------- modules as models


def model_seeds() -> list[tuple[str, Any]]:
    """Modules of programs with their data: as written, optimized, and in value form."""
    made: list[tuple[str, Any]] = []
    sources = [(generate(seed), data) for generate, data in PROGRAMS for seed in (1, 2)]
    for name in EXAMPLES:
        path = ROOT / "examples" / name
        sources.append((path.with_suffix(".stan").read_text(), str(path.with_suffix(".json"))))
    for text, data in sources:
        with suppress(UlamError):  # data that a random program refuses
            model = ulam.StanModel(text, data, opt_level=2)
            made += [(str(model.module(stage)), data) for stage in ("written", "optimized", "values")]
    return made


def model_case(seeds: Sequence[tuple[str, Any]], seed: int, number: int, folder: Path) -> str | None:
    """What is wrong with how a mutated module ends as a model; None if it is one, or refused with a message."""
    r = random.Random(f"models {seed} {number}")
    text, data = r.choice(seeds)
    path = folder / "module.mlir"
    path.write_text(mutated(text, r))
    with redirect_stderr(io.StringIO()):
        found = _outcome(str(path), data, opt_level=r.choice((0, 1, 2, 3)))
    if isinstance(found, str) and found.startswith(("internal ", "error ")):
        return found
    return f"{SLOW}{found}" if found == "TimeLimit" else None
