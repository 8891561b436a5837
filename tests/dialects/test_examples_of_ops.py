"""Every op of our dialects has an example in its docstring, which is parsed, verified, printed and read again."""

import pytest
from op_examples import OPS, example_of, parsed
from xdsl.dialects.builtin import ModuleOp
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
