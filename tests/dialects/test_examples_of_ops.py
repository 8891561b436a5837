"""Every op of our dialects has an example in its docstring, which is parsed, verified, printed and read again; every
type and attribute with parameters, too."""

import re

import pytest
from op_examples import ATTRIBUTES, OPS, example_of, parsed, parsed_attribute
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import ParametrizedAttribute, TypeAttribute
from xdsl.irdl import IRDLOperation
from xdsl.printer import Printer


def printed(module: ModuleOp, generic: bool) -> str:
    from io import StringIO

    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    return stream.getvalue()


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_example(op: type[IRDLOperation]) -> None:
    module = parsed(example_of(op))
    assert any(isinstance(inner, op) for inner in module.walk())
    text = printed(module, generic=False)
    assert f'"{op.name}"' not in text
    assert printed(parsed(text), generic=False) == text
    generic = printed(module, generic=True)
    assert printed(parsed(generic), generic=False) == text


@pytest.mark.parametrize("cls", ATTRIBUTES, ids=lambda cls: cls.name)
def test_example_of_an_attribute(cls: type[ParametrizedAttribute]) -> None:
    sign = "!" if issubclass(cls, TypeAttribute) else "#"
    examples = re.findall(rf"`({sign}{re.escape(cls.name)}(?:<[^`]*)?)`", " ".join((cls.__doc__ or "").split()))
    if not cls.get_irdl_definition().parameters:
        examples.append(f"{sign}{cls.name}")
    assert examples, f"{cls.name} has no example"
    for example in examples:
        attribute = parsed_attribute(example)
        assert isinstance(attribute, cls) and str(attribute) == example
