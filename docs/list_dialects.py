"""Writes `docs/dialects/NAME.md` for each of our dialects from its definitions: ops, types and attributes.

python docs/list_dialects.py            # rewrites the pages
python docs/list_dialects.py --check    # exit status 1 if one is not current

Everything stands where the op is defined: docstring and example, operands, results, properties, effects, the messages
of the verifier. `tests/dialects/test_examples_of_ops.py` parses, verifies, prints and reads all examples again.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from written_parts import write_pages
from xdsl.dialects.builtin import ArrayOfConstraint, DenseArrayBase, IntegerAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    AllOf,
    AnyAttr,
    AnyOf,
    AttrSizedOperandSegments,
    BaseAttr,
    EqAttrConstraint,
    OptionalDef,
    OptOperandDef,
    OptRegionDef,
    OptResultDef,
    ParamAttrConstraint,
    VarConstraint,
    VarOperandDef,
    VarRegionDef,
    VarResultDef,
)
from xdsl.irdl.constraints import RangeLengthConstraint, RangeOf
from xdsl.traits import OpTrait

from ulam.dialects.effects import Effect as LowEffect
from ulam.dialects.effects import LowEffects
from ulam.dialects.facts import Fact
from ulam.dialects.plain_operation import PlainOperation, assembly_format
from ulam.dialects.stan.effects import Effect as StanEffect
from ulam.dialects.stan.effects import HasEffects
from ulam.runtime.modules.known_dialects import OWN_DIALECTS, load_dialect

FOLDER = Path(__file__).with_name("dialects")
SCRIPT = Path(__file__).name

TRAITS = {
    "Pure": "no effects; may run where the program would not run it",
    "NoMemoryEffect": "no effects, but runs only where the program runs it",
    "RecursiveMemoryEffect": "the effects of the ops inside",
    "IsTerminator": "ends a block",
    "NoTerminator": "its block has no terminator",
    "IsolatedFromAbove": "uses no value of outside",
    "SymbolTable": "a table of symbols",
    "SymbolOpInterface": "has a symbol",
    "SingleBlockImplicitTerminator": "its block has a terminator that is not written",
}
"""What xDSL's own traits say, in our words."""

# ---------------------------------------------------------------- types of operands, values of properties


def told(constraint: Any) -> str:
    """What a constraint of xDSL allows."""
    match constraint:
        case RangeLengthConstraint():
            return told(constraint.constraint)
        case RangeOf():
            return told(constraint.constr)
        case AnyAttr():
            return "anything"
        case EqAttrConstraint():
            return f"`{constraint.attr}`"
        case BaseAttr():
            return _kind(constraint.attr)
        case VarConstraint():
            inner = told(constraint.constraint)
            return f"the {constraint.name}" if inner == "anything" else f"{inner}, the {constraint.name}"
        case AnyOf():
            return " or ".join(map(told, constraint.attr_constrs))
        case AllOf():
            return " and ".join(map(told, constraint.attr_constrs))
        case ArrayOfConstraint():
            return f"a list; each: {told(constraint.elem_range_constraint)}"
        case ParamAttrConstraint():
            return _with_parameters(constraint)
        case _:
            raise TypeError(f"{constraint!r} has no words yet: give it some in docs/{SCRIPT}")


_KINDS = {
    "StringAttr": "text", "UnitAttr": "set or not", "FloatAttr": "a real", "IntegerAttr": "an int",
    "DenseArrayBase": "numbers", "FunctionType": "a function type", "SymbolRefAttr": "a symbol", "ArrayAttr": "a list",
    "IntAttr": "an int",
}  # fmt: skip


def _kind(cls: type[Attribute]) -> str:
    """A class of attributes."""
    if (words := _KINDS.get(cls.__name__)) is not None:
        return words
    if issubclass(cls, ParametrizedAttribute) and issubclass(cls, TypeAttribute):
        return f"`!{cls.name}`"
    return f"`#{cls.name}`"


def _with_parameters(constraint: ParamAttrConstraint[Any]) -> str:
    base = constraint.base_attr
    if issubclass(base, IntegerAttr):
        return "an int"
    if issubclass(base, DenseArrayBase):
        return "numbers"
    inner = [told(each) for each in constraint.param_constrs]
    return f"`!{base.name}` of {', '.join(inner)}"


# ---------------------------------------------------------------- ops


def field_texts(cls: type) -> dict[str, str]:
    """The texts behind fields of a class and of its bases: name → what it says."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not base.__module__.startswith("ulam."):
            continue
        try:
            body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        except (OSError, TypeError, IndentationError):  # made by a function
            continue
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.Assign | ast.AnnAssign) and isinstance(text, ast.Expr):
                target = field.targets[0] if isinstance(field, ast.Assign) else field.target
                if isinstance(text.value, ast.Constant) and isinstance(target, ast.Name):
                    found[target.id] = " ".join(str(text.value.value).split())
    return found


def messages(function: Callable[..., object], seen: set[object] | None = None) -> Iterator[str]:
    """What a verifier, or a function of ours that it calls, says: the texts of its VerifyExceptions."""
    seen = set() if seen is None else seen
    function = inspect.unwrap(function)
    if function in seen or not getattr(function, "__module__", "").startswith("ulam."):
        return
    seen.add(function)
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id == "VerifyException":
            yield _text_of(node.args[0])
        elif isinstance(node.func, ast.Name):
            called = getattr(function, "__globals__", {}).get(node.func.id)
            if inspect.isfunction(called):
                yield from messages(called, seen)


def _text_of(node: ast.expr) -> str:
    """A text with … for what is put into it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else "…"


def _rows(op: type[PlainOperation]) -> Iterator[tuple[str, str, str]]:
    """Operands, results, properties and regions: which it is, its name, what it may be."""
    definition, members = op.get_irdl_definition(), field_texts(op)

    def row(kind: str, name: str, words: str, *, optional: bool, many: bool) -> tuple[str, str, str]:
        words = f"any number of {words}" if many else f"{words}, or none" if optional else words
        return kind, f"`{name}`", ". ".join(filter(None, (words, members.get(name, "").rstrip("."))))

    for name, each in definition.operands:
        many, optional = isinstance(each, VarOperandDef), isinstance(each, OptOperandDef)
        yield row("operand", name, told(each.constr), optional=optional, many=many and not optional)
    for name, each in definition.results:
        many, optional = isinstance(each, VarResultDef), isinstance(each, OptResultDef)
        yield row("result", name, told(each.constr), optional=optional, many=many and not optional)
    segments = {option.attribute_name for option in definition.options if isinstance(option, AttrSizedOperandSegments)}
    for name, each in definition.properties.items():
        if name not in segments:
            words = told(each.constr)
            optional = isinstance(each, OptionalDef) and words != "set or not"
            yield row("property", name, words, optional=optional, many=False)
    for name, each in definition.regions:
        many, optional = isinstance(each, VarRegionDef), isinstance(each, OptRegionDef)
        yield row("region", name, "ops", optional=optional, many=many and not optional)


def _effects(op: type[PlainOperation]) -> str:
    """What an op does besides computing its results, and what else is known of it."""
    return "; ".join(filter(None, map(_trait, sorted(op.traits, key=lambda trait: type(trait).__name__))))


def _trait(trait: OpTrait) -> str:
    if isinstance(trait, LowEffects):
        return _bits(trait.effects, LowEffect)
    said = " ".join((type(trait).__doc__ or "").split()).rstrip(".") if type(trait).__module__ != "xdsl.traits" else ""
    if isinstance(trait, HasEffects):
        bits = _bits(trait.EFFECTS, StanEffect)
        return f"{bits} ({said[:1].lower()}{said[1:]})" if bits and said else bits or said
    name = type(trait).__name__
    return TRAITS.get(name) or said or name


def _bits(effects: int, kinds: type[LowEffect] | type[StanEffect]) -> str:
    return " ".join(f"`{kind.name}`" for kind in kinds if kind.value & effects)


def _kinds_of_effects(ops: list[type[PlainOperation]]) -> str:
    """The kinds of effects that the ops of a dialect have, with what is noted where they are defined."""
    kinds: type[LowEffect] | type[StanEffect] = StanEffect
    if any(isinstance(trait, LowEffects) for op in ops for trait in op.traits):
        kinds = LowEffect
    rows = re.findall(r"^    ([A-Z_]+) = [1-9]\d*(?:  # (.*))?$", inspect.getsource(kinds), re.MULTILINE)
    table = "\n".join(f"| `{name}` | {_cell(words or name.lower().replace('_', ' '))} |" for name, words in rows)
    return f"## Kinds of effects\n\n| kind | |\n|---|---|\n{table}\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _section(op: type[PlainOperation]) -> Iterator[str]:
    yield f"### `{op.name}`\n"
    yield f"{inspect.cleandoc(op.__doc__ or '')}\n"
    if (written := assembly_format(op)) is not None:
        yield "Written as (xDSL's assembly format):\n"
        wrapped = textwrap.wrap(written, 112, break_long_words=False, break_on_hyphens=False)
        yield "\n".join(["```text", *wrapped, "```\n"])
    if rows := list(_rows(op)):
        yield "| | name | |\n|---|---|---|"
        yield "\n".join(f"| {kind} | {name} | {_cell(words)} |" for kind, name, words in rows) + "\n"
    yield f"Effects and traits: {_effects(op) or 'none'}.\n"
    if said := list(dict.fromkeys(messages(op.verify_))):
        yield "The verifier says:\n"
        yield "\n".join(f"* {_code(text)}" for text in said) + "\n"


def _code(text: str) -> str:
    """Text as code, which may have backquotes in it."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


# ---------------------------------------------------------------- types and attributes


def _attribute(cls: type[ParametrizedAttribute]) -> Iterator[str]:
    sign = "!" if issubclass(cls, TypeAttribute) else "#"
    yield f"### `{sign}{cls.name}`\n"
    yield f"{inspect.cleandoc(cls.__doc__ or '')}\n"
    members = field_texts(cls)
    parameters = [
        f"| `{name}` | {_cell(told(each.constr))}{members.get(name, '') and f'. {members[name]}'} |"
        for name, each in cls.get_irdl_definition().parameters
    ]
    if parameters:
        yield "| parameter | |\n|---|---|\n" + "\n".join(parameters) + "\n"
    verifiers: list[Callable[..., object]] = [cls.verify]
    if issubclass(cls, Fact):
        on = " ".join(f"`{op.name}`" for op in cls.ON if issubclass(op, Operation))
        yield f"Stands on: {on}.\n"
        verifiers.append(cls.verify_on)
    if said := list(dict.fromkeys(text for verifier in verifiers for text in messages(verifier))):
        yield "The verifier says:\n"
        yield "\n".join(f"* {_code(text)}" for text in said) + "\n"


# ---------------------------------------------------------------- pages


def page(name: str) -> str:
    """The page of a dialect."""
    dialect = load_dialect(name)
    module = sys.modules[OWN_DIALECTS[name].partition(":")[0]]
    ops = sorted((op for op in dialect.operations if issubclass(op, PlainOperation)), key=lambda op: op.name)
    attributes = [cls for cls in dialect.attributes if issubclass(cls, ParametrizedAttribute)]
    types = [cls for cls in attributes if issubclass(cls, TypeAttribute)]
    facts = [cls for cls in attributes if not issubclass(cls, TypeAttribute)]
    head, _, rest = inspect.cleandoc(module.__doc__ or "").partition("\n\n")
    path = inspect.getsourcefile(module)
    assert path is not None
    where = Path(path).resolve().relative_to(Path(__file__).resolve().parents[1])
    lines = [
        f"# The dialect `{name}`\n",
        f"{head}\n\n{rest}".rstrip() + "\n",
        f"This page is made of the definitions in [{where}](../../{where}) and the files beside it;\n`python "
        f"docs/{SCRIPT}` writes it anew. What the verifier says has … for what differs. What needs the whole\nmodule "
        "to be told (calls, symbols, terminators, dominance) is in "
        "[runtime/modules/verification.py](../../runtime/modules/verification.py).\n",
        _contents("Ops", [op.name for op in ops]),
        _contents("Types", [cls.name for cls in types]),
        _contents("Attributes", [cls.name for cls in facts]),
        "## Ops\n",
        *(line for op in ops for line in _section(op)),
    ]
    if types:
        lines += ["## Types\n", *(line for cls in types for line in _attribute(cls))]
    if facts:
        lines += ["## Attributes\n", *(line for cls in facts for line in _attribute(cls))]
    lines.append(_kinds_of_effects(ops))
    return "\n".join(line for line in lines if line).rstrip() + "\n"


def _contents(title: str, names: list[str]) -> str:
    if not names:
        return ""
    links = ", ".join(f"[`{name}`](#{re.sub(r'[^a-z0-9_-]', '', name)})" for name in names)
    return "\n".join(textwrap.wrap(f"**{title}**: {links}", 119, break_long_words=False, break_on_hyphens=False)) + "\n"


def pages() -> dict[Path, str]:
    """All pages with their texts."""
    return {FOLDER / f"{name}.md": page(name) for name in OWN_DIALECTS}


if __name__ == "__main__":
    sys.exit(write_pages(pages(), SCRIPT))
