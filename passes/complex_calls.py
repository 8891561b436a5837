"""Calls that are written as operations on the parts of complex numbers, scalars and containers alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Attribute, Block, Region, SSAValue

from ulam.dialects import stan

if TYPE_CHECKING:
    from ulam.passes.complex_to_pairs import Pair, Splitting


def result_of_parts(
    writer: Splitting, name: str, arguments: Sequence[SSAValue], type_: Attribute
) -> Pair | SSAValue:
    """The result of a function of `complex_functions.OF_PARTS`; `type_` is the type of a result that is real."""
    if name == "to_complex":
        return _to_complex(writer, arguments)
    if name == "polar":
        radius, angle = (_as_real(writer, a) for a in arguments)
        directions = (writer.call(f, [angle], stan.REAL) for f in ("cos", "sin"))
        real, imag = (writer.binary("*", radius, direction) for direction in directions)
        return real, imag
    real, imag = writer.parts(arguments[0])
    if name == "get_real":
        return real
    if name == "get_imag":
        return imag
    if name == "conj":
        return real, writer.call("minus", [imag], imag.type)
    if name == "norm":
        return writer.binary("+", writer.binary("*", real, real), writer.binary("*", imag, imag))
    if name == "arg":
        return writer.call("atan2", [imag, real], type_)
    assert name == "abs"
    return writer.call("hypot", [real, imag], type_)


def _to_complex(writer: Splitting, arguments: Sequence[SSAValue]) -> Pair:
    values = [_as_real(writer, a) for a in arguments]
    if len(values) < 2:
        real = values[0] if values else writer.real(0.0)
        return real, writer.zeros(real)
    containers = [v for v in values if stan.dimensions(v.type)]
    if len(containers) == 1:  # the scalar goes with each element
        values = [
            v if v is containers[0] else writer.call("fill_like", [containers[0], v], containers[0].type)
            for v in values
        ]
    elif containers:
        values[0] = writer.call("sized_as", values, values[0].type)
    return values[0], values[1]


def _as_real(writer: Splitting, value: SSAValue) -> SSAValue:
    """An int, or an array of them, as reals."""
    if stan.scalar_of(value.type) != stan.INT:
        return value
    real = stan.array_of(stan.REAL, value.type.rank.data) if isinstance(value.type, stan.ArrayType) else stan.REAL
    return writer.value(stan.PromoteOp(value, real))


def written_over_elements(writer: Splitting, symbol: str, types: Sequence[Attribute], result: Attribute) -> stan.FuncOp:
    """`result f(types...)`, written with complex values, then taken apart as all functions are."""
    block = Block(arg_types=types)
    outer = writer.at, writer.end
    writer.at, writer.end = None, block
    first, *others = [a for a in block.args if stan.dimensions(a.type)]
    sizes = writer.call("dims", [first], stan.array_of(stan.INT, 1))
    shape = stan.dimensions(first.type)
    inner = first.type.element if isinstance(first.type, stan.ArrayType) else first.type
    positions = list(range(1, shape + 1))
    if inner == stan.COMPLEX_ROW_VECTOR or inner == stan.ROW_VECTOR:
        positions[-1] += 1  # behind the one row
    for other in others:
        first = writer.call("sized_as", [first, other], first.type)
    dims = [writer.value(stan.IndexOp(sizes, ("single",), (writer.int(p),), stan.INT)) for p in positions]
    variable = writer.value(stan.DeclareOp("result", result, dims))

    def nest(level: int, indices: list[SSAValue]) -> None:
        if level == shape:
            element = [
                writer.value(stan.IndexOp(a, ("single",) * shape, indices, stan.scalar_of(a.type)))
                if stan.dimensions(a.type)
                else a
                for a in block.args
            ]
            call = stan.CallOp(
                writer.functions[symbol].stan_name, element, stan.scalar_of(result), [1] * len(element),
                definition=symbol,
            )  # fmt: skip
            writer.insert(stan.AssignOp(variable, writer.value(call), ("single",) * shape, indices))
            return
        body = Block(arg_types=[stan.INT])
        one = writer.int(1)
        here, writer.end = writer.end, body
        nest(level + 1, [*indices, body.args[0]])
        writer.insert(stan.YieldOp())
        writer.end = here
        writer.insert(stan.ForOp(f"i{level}", one, dims[level], Region(body)))

    nest(0, [])
    writer.insert(stan.ReturnOp(writer.value(stan.ReadOp(variable))))
    writer.at, writer.end = outer
    name = symbol
    while name in writer.functions:
        name += ".1"
    base = writer.functions[symbol]
    function = stan.FuncOp(
        name, [f"x{n}" for n in range(len(types))], types, [result], Region(block),
        stan_name=base.stan_name, library=True, location=base.location,
    )  # fmt: skip
    writer.functions[name], writer.inputs[name] = function, tuple(types)
    writer.program.body.block.insert_op_before(function, base)
    writer.function(function)
    return function
