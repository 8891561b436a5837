"""A pass is found by its name: in the file of that name, as the class of that name. Pipelines are read as written."""

from __future__ import annotations

import re
import sys

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import parse_spec

from ulam.passes.lowering_pipeline import REASSOCIATING_LEVEL, VALUE_FORM, lowering_pipeline
from ulam.passes.nested import NestedPass, nested_passes
from ulam.passes.pipelines import (
    LEVELS,
    PASSES,
    PipelineError,
    level_pipeline,
    parse_pipeline,
    pass_class,
    pass_specs,
)
from ulam.passes.pipelines import pipeline_text as text_of
from ulam.passes.running import PassObserver, observed_by, run_passes
from ulam.passes.units import UNITS


@pytest.mark.parametrize("name", PASSES)
def test_file_and_class_have_the_name_of_the_pass(name: str) -> None:
    module, _, class_name = PASSES[name].partition(":")
    assert module.rpartition(".")[2] == name.replace("-", "_")
    words = "".join(word.capitalize() for word in name.split("-"))
    # Where a class that does the work has the name itself, the pass says that it is one.
    assert class_name in (words, f"{words}Pass")
    cls = pass_class(name)
    assert cls.name == name
    assert cls.__doc__ and not cls.__doc__.startswith(("The pass", f"{class_name}("))


def test_all_pass_classes_have_a_name() -> None:
    """Those that `PASSES` does not name are bases of others."""
    for name in PASSES:
        pass_class(name)
    classes: set[type[ModulePass]] = set()
    pending: list[type[ModulePass]] = [ModulePass]
    while pending:
        for cls in pending.pop().__subclasses__():
            pending.append(cls)
            if getattr(sys.modules.get(cls.__module__), cls.__name__, None) is not cls:
                continue  # of a module that a test made
            if cls.__module__.startswith("ulam.") and not cls.__subclasses__():
                classes.add(cls)
    assert classes == {pass_class(name) for name in PASSES}


def test_pipelines_as_mlir_writes_them() -> None:
    for level in LEVELS:
        text = level_pipeline(level)
        passes = parse_pipeline(text)
        assert parse_pipeline(f" builtin.module( {text} ) ") == passes
        assert parse_pipeline(text_of(passes)) == passes
    for unit in UNITS.values():
        for level in (0, REASSOCIATING_LEVEL):
            for few_passes in (False, True):
                text = lowering_pipeline(unit, level, few_passes=few_passes)
                assert parse_pipeline(f"builtin.module({text})")
    assert len(parse_pipeline(VALUE_FORM)) == 3
    assert parse_pipeline("builtin.module()") == parse_pipeline("") == []
    assert parse_pipeline("licm{ guarded=true } ,\n dce") == parse_pipeline("licm{guarded=true},dce")


@pytest.mark.parametrize(
    "options",
    [
        "", "a=true b=false c=12 d-e=unroll-small", 'a="x y{z=1},w" b=""', "a=007", "a", "a=1,2", "a=12x b=1-2",
        "a=-1.5", "a=True b=x_y", r'a="\n"', "a=trueish a=1",
    ],
)  # fmt: skip
def test_options_are_read_as_xdsl_reads_them(options: str) -> None:
    (entry,) = pass_specs(f"licm{{ {options} }}")
    assert entry == parse_spec(f"licm{{{options}}}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func(cse)", "no func.func"),
        ("builtin.module(cse,func.func(dce))", "no func.func"),
        ("builtin.module(cse", "no builtin.module"),
        ("cse,,dce", "Expected pass name"),
        ("cse{", "cannot read the pass pipeline"),
        ("fuse-loop", "did you mean 'fuse-loops'"),
        ("if-changed", "requires argument"),
        ('if-changed{passes="reverse-mode" then="cse"}', "reverse-mode does not tell"),
        ('if-changed{passes="unroll-small" then="licn"}', "did you mean 'licm'"),
    ],
)
def test_wrong_pipelines(text: str, message: str) -> None:
    with pytest.raises(PipelineError, match=re.escape(message)):
        parse_pipeline(text)


class _Seen(PassObserver):
    def __init__(self) -> None:
        self.names: list[str] = []

    def before(self, name: str, module: ModuleOp | None) -> None:
        self.names.append(f"{name} begins")

    def after(self, name: str, module: ModuleOp) -> None:
        self.names.append(name)


def test_observers_see_the_steps_of_nested_passes() -> None:
    seen = _Seen()
    with observed_by(seen):
        run_passes(Context(), ModuleOp([]), parse_pipeline("simplify,loop-hints"))
    assert [name for name in seen.names if "begins" not in name] == [
        "fold", "cse", "licm", "dce", "simplify", "loop-hints",
    ]  # fmt: skip
    assert seen.names[:2] == ["simplify begins", "fold begins"]
    run_passes(Context(), ModuleOp([]), parse_pipeline("simplify"))
    assert len(seen.names) == 12


def test_steps_are_passes() -> None:
    nested = [pass_class(name)() for name in PASSES if issubclass(pass_class(name), NestedPass)]
    assert {entry.name for entry in nested} == {"simplify", "lighten-loops", "fuse-loops"}
    for entry in nested:
        assert isinstance(entry, NestedPass) and nested_passes(entry.pipeline())
        assert parse_pipeline(entry.pipeline())
