"""Arguments of tuple type and complex ones, as users give them, and a function that takes their fields.

    real f(tuple(real, vector) t)        real f(real t.1, vector t.2) { return f((t.1, t.2)); }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from ulam.dialects import stan
from ulam.tracing.instrument.graph import ValueType
from ulam.tracing.instrument.names import value_type


@dataclass
class Formal:
    """An argument as users give it: of a tuple and of a complex number, which are several, its parts."""

    name: str
    type: ValueType
    parts: list[Formal] = field(default_factory=list["Formal"])
    is_complex: bool = False

    def leaves(self) -> list[Formal]:
        """What the compiled function takes."""
        return [leaf for part in self.parts for leaf in part.leaves()] if self.parts else [self]


def formals_of(fields: Sequence[tuple[str, Attribute]]) -> list[Formal]:
    """The arguments of a function of the compiled program: both parts of a complex number are one."""
    formals = [_formal(name, type_) for name, type_ in fields]
    made: list[Formal] = []
    for formal in formals:
        whole, _, part = formal.name.rpartition(".")
        if part == "imag" and made and made[-1].name == f"{whole}.real":
            made[-1] = Formal(whole, formal.type, [made[-1], formal], is_complex=True)
        else:
            made.append(formal)
    return made


def _formal(name: str, type_: Attribute) -> Formal:
    if not isinstance(type_, stan.TupleType):
        return Formal(name, value_type(type_))
    return Formal(name, value_type(type_), [_formal(f"{name}.{n}", e) for n, e in enumerate(type_.elements, 1)])


def takes_tuples(function: stan.FuncOp) -> bool:
    """Whether an argument of a function is a tuple."""
    return any(isinstance(type_, stan.TupleType) for type_ in function.function_type.inputs)


def fields_of(name: str, type_: Attribute) -> list[tuple[str, Attribute]]:
    """Names and types of the fields of a variable: itself, if it is no tuple."""
    if not isinstance(type_, stan.TupleType):
        return [(name, type_)]
    return [found for n, element in enumerate(type_.elements, 1) for found in fields_of(f"{name}.{n}", element)]


def called_with_fields(module: ModuleOp, function: stan.FuncOp) -> stan.FuncOp:
    """Adds the function that takes fields to the program."""
    signature = function.function_type
    names = [name.data for name in function.argument_names]
    marks = function.data_only.get_values()
    given = [fields_of(name, type_) for name, type_ in zip(names, signature.inputs, strict=True)]
    formals = [one for own in given for one in own]
    block = Block(arg_types=[type_ for _, type_ in formals])
    for value, (name, _) in zip(block.args, formals, strict=True):
        value.name_hint = name.replace(".", "_")
    values = iter(block.args)

    def whole(type_: Attribute) -> SSAValue:
        if not isinstance(type_, stan.TupleType):
            return next(values)
        made = stan.TupleOp([whole(element) for element in type_.elements], type_, location=function.location)
        block.add_op(made)
        return made.res

    arguments = [whole(type_) for type_ in signature.inputs]
    result = signature.outputs.data[0] if signature.outputs.data else None
    call = stan.CallOp(
        function.sym_name, arguments, result, [0] * len(arguments), user=True, location=function.location
    )
    block.add_ops((call, stan.ReturnOp(call.res, location=function.location)))
    made = stan.FuncOp(
        f"{function.sym_name.data}.fields",
        [name for name, _ in formals],
        [type_ for _, type_ in formals],
        list(signature.outputs),
        Region(block),
        stan_name=function.stan_name,
        data_only=[int(mark) for mark, own in zip(marks, given, strict=True) for _ in own],
        location=function.location,
    )
    program = next(op for op in module.body.block.ops if isinstance(op, stan.ProgramOp))
    program.body.block.insert_op_after(made, function)
    return made
