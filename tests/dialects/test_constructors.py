"""Ops of our dialects are put together by the constructors beside their definitions, and nowhere else."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from op_examples import OPS, example_of, parsed
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, SymbolRefAttr, UnitAttr
from xdsl.ir import Operation, Region
from xdsl.irdl import IRDLOperation

from ulam.dialects import stan

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("api", "benchmarks", "emit", "frontend", "library", "passes", "runtime", "tools", "tracing")
DIALECTS = ("ad", "rt", "stan", "trace")
UPSTREAM = ("arith", "func", "scf")

GENERIC = {
    ("passes/rewriting.py", "applied_to"),
    ("passes/rewriting.py", "rebuild"),
    ("passes/rewriting.py", "with_body"),
    ("passes/rewriting.py", "copies"),
    ("passes/builder.py", "emit"),
    ("passes/loops/count_profile_entries.py", "op"),
    ("passes/loops/exponentials.py", "_write"),
    ("passes/loops/index_forms.py", "put"),
    ("passes/loops/op_writer.py", "integer"),
    ("passes/loops/op_writer.py", "real"),
    ("passes/loops/strip_rows.py", "_put"),
}
"""Functions that create ops of classes that they are given: copies of ops, and ops of upstream dialects."""


_MADE = re.compile(r"^from ulam\.dialects\.op_making import .*\bmade\b", re.MULTILINE)


def _places(module: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """The calls of a module, with the innermost function around each."""

    def walk(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
        for inner in ast.iter_child_nodes(node):
            name = inner.name if isinstance(inner, ast.FunctionDef) else function
            if isinstance(inner, ast.Call):
                yield name, inner
            yield from walk(inner, name)

    return walk(module, "")


def _is_of(node: ast.expr, modules: tuple[str, ...]) -> bool:
    """Whether an expression is `module.SomethingOp`, or `stan.BINARY_OPERATORS[...]`."""
    if isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules


def hand_made(text: str, path: str) -> list[str]:
    """Where a module puts ops together by hand: lists of operands and types, dictionaries of properties."""
    found: list[str] = []
    makes = _MADE.search(text) is not None
    for function, call in _places(ast.parse(text)):
        target = call.func
        if makes and isinstance(target, ast.Name) and target.id == "made":
            if not _is_of(call.args[0], UPSTREAM) and (path, function) not in GENERIC:
                found.append(f"{path}:{call.lineno}: {ast.unparse(call.args[0])}")
        if not isinstance(target, ast.Attribute):
            continue
        if target.attr == "create" or any(keyword.arg == "operands" for keyword in call.keywords):
            if not _is_of(target.value, UPSTREAM) and (path, function) not in GENERIC:
                found.append(f"{path}:{call.lineno}: {ast.unparse(target)}")
        elif target.attr in ("emit", "value") and call.args and _is_of(call.args[0], DIALECTS):
            found.append(f"{path}:{call.lineno}: {ast.unparse(call.args[0])}")
    return found


def test_no_op_is_put_together_by_hand() -> None:
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 300
    found = [place for path in files for place in hand_made(path.read_text(), str(path.relative_to(ROOT)))]
    assert not found, "use the constructor of the op:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "rt.LoadOp.create(operands=(a, b), result_types=(t,))",
        "stan.BINARY_OPERATORS['+'].create(operands=(a, b))",
        "type(op).create(operands=(a,))",
        "made(rt.LoadOp, (a, b), (t,))",
        "made(type(op), (a,))",
        "builder.emit(ad.TargetAddOp, (a,))",
        "self.builder.value(rt.NullOp, (), t)",
    ],
)
def test_what_is_made_by_hand_is_found(line: str) -> None:
    begin = "from ulam.dialects.op_making import made\n"
    assert hand_made(f"{begin}def f():\n    return {line}", "passes/x.py")
    assert not hand_made(f"{begin}builder.emit(scf.YieldOp, (a,)); made(arith.AddiOp, (a, b), (t,))", "passes/x.py")


# ---------------------------------------------------------------- what constructors make

FIELDS = {"name": "var_name", "type_": "result_type", "element": "res", "block": "number", "hook": "number"}
"""Parameters that are not named as what of the op they become."""
OF_OP = {
    "stan.program": {"name": "sym_name"},
    "stan.profile": {"name": "profile_name"},
    "stan.func": {"symbol": "sym_name"},
    "stan.read": {"variable": "var"},
    "stan.assign": {"variable": "var"},
}


def _argument(op: Any, name: str) -> Any:
    """What a constructor takes as `name` to make `op` again."""
    name = OF_OP.get(op.name, {}).get(name) or FIELDS.get(name, name)
    if name == "result_types":
        return op.result_types
    if name == "result_type":
        return op.result_types[0] if op.results else None
    if name in ("inputs", "outputs"):
        return getattr(op.function_type, name).data
    if name == "bounds":
        return (op.lower, op.upper, op.offset, op.multiplier)
    found = getattr(op, name)
    if name == "res":
        return found.type.element
    if name == "kinds":
        return tuple(kind.data for kind in found)
    if isinstance(found, Region):
        return found.clone()
    if name == "value" and isinstance(op, stan.ConstantOp):
        return found.value.data if isinstance(found, IntegerAttr | FloatAttr) else found.data
    if isinstance(found, SymbolRefAttr):
        return found.root_reference.data
    if isinstance(found, DenseArrayBase) and name in ("sizes", "autodiff"):
        return found.get_values()
    if isinstance(found, IntegerAttr) and name == "field":
        return found.value.data
    return found


def _is_flag(parameter: inspect.Parameter) -> bool:
    return parameter.annotation == "bool"


def made_again(op: Operation) -> Operation:
    """The op that the constructor makes of the parts of `op`."""
    arguments: list[Any] = []
    keywords: dict[str, Any] = {}
    for parameter in list(inspect.signature(type(op).__init__).parameters.values())[1:]:
        if parameter.name == "location":
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            arguments += getattr(op, parameter.name)
        elif _is_flag(parameter):
            assert parameter.kind is parameter.KEYWORD_ONLY, "marks are given by their names"
            keywords[parameter.name] = isinstance(op.properties.get(parameter.name), UnitAttr)
        elif parameter.kind is parameter.KEYWORD_ONLY:
            keywords[parameter.name] = _argument(op, parameter.name)
        else:
            arguments.append(_argument(op, parameter.name))
    return type(op)(*arguments, **keywords)


@pytest.mark.parametrize("op_class", OPS, ids=lambda op: op.name)
def test_constructor_makes_the_op_of_the_example(op_class: type[IRDLOperation]) -> None:
    assert op_class.__init__ is not IRDLOperation.__init__, f"{op_class.name} has no constructor"
    module = parsed(example_of(op_class))
    op = next(inner for inner in module.walk() if isinstance(inner, op_class))
    made = made_again(op)
    assert made.properties == op.properties
    assert made.result_types == op.result_types and list(made.operands) == list(op.operands)
    assert all(a.is_structurally_equivalent(b, {}) for a, b in zip(made.regions, op.regions, strict=True))


@pytest.mark.parametrize(
    ("callee", "options", "total"),
    [
        ("exp", {}, True),
        ("exp", {"user": True}, False),
        ("normal_lpdf", {}, False),
        ("f", {"definition": "size"}, True),
        ("size", {"definition": "normal_lpdf.1"}, False),
    ],
)
def test_calls_look_up_whether_they_may_throw(callee: str, options: dict[str, Any], total: bool) -> None:
    """Of the definition that is meant, if there is one."""
    assert ("total" in stan.CallOp(callee, (), stan.REAL, (), **options).properties) is total
