"""The examples in the docstrings of our ops, as modules."""

import re

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import IRDLOperation

from ulam.dialects.ad import AD
from ulam.dialects.rt import RT
from ulam.dialects.stan import STAN
from ulam.dialects.trace import TRACE
from ulam.runtime.modules.mlir_parser import LocatingParser
from ulam.runtime.modules.reading import program_context
from ulam.runtime.modules.verification import verify

OPS = [op for dialect in (STAN, RT, AD, TRACE) for op in dialect.operations]
ATTRIBUTES = [
    cls for dialect in (STAN, RT, AD, TRACE) for cls in dialect.attributes if issubclass(cls, ParametrizedAttribute)
]
_EXAMPLE = re.compile(r"```mlir\n(.*?)```", re.DOTALL)
LOW = (
    "func.func @example(%y: !rt.buf<f64>, %z: !rt.buf<f64>, %i: i64, %n: i64, %x: f64, %ok: i1) {{\n{}\nfunc.return\n}}"
)
STAN_FUNCTION = """stan.program @p {{
stan.func @example(x %x: !stan.real, y %y: !stan.real, n %n: !stan.int, k %k: !stan.int, v %v: !stan.vector,
  m %m: !stan.matrix, t %t: !stan.tuple<[!stan.int, !stan.real]>) {{
%var = stan.declare var[%n] : !stan.var<!stan.vector>
{}
stan.return
}}
}}"""


def example_of(op: type[IRDLOperation]) -> str:
    """The example in the docstring, within what it needs around it."""
    found = _EXAMPLE.search(op.__doc__ or "")
    assert found, f"{op.name} has no example"
    assert re.search(rf"\b{re.escape(op.name)}\b", found[1]), f"the example of {op.name} does not have it"
    text = found[1].strip()
    if text.startswith("stan.program"):
        return text
    if text.startswith(("stan.block", "stan.func")):
        return f"stan.program @p {{\n{text}\n}}"
    if op.dialect_name() in ("rt", "ad"):
        return LOW.format(text)
    record = "%record = trace.block 1 slots 4\n" if op.dialect_name() == "trace" else ""
    return STAN_FUNCTION.format(record + text)


def parsed(text: str) -> ModuleOp:
    module = LocatingParser(program_context(), text, "example.mlir").parse_module()
    verify(module)
    return module


def parsed_attribute(text: str) -> Attribute:
    return LocatingParser(program_context(), text, "example.mlir").parse_attribute()
