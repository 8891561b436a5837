"""Statements of the `stan` dialect that assign nothing: what is added to the target, and what is printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, LocationAttr, StringAttr, UnitAttr, i8
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.attributes import Flags, Text, flags, string, units
from ulam.dialects.op_making import give_parts
from ulam.dialects.plain_operation import PlainOperation, plain_operation
from ulam.dialects.stan.effects import AddsJacobian, AddsTarget, PrintsOrThrows, ReadsTarget
from ulam.dialects.stan.type_attributes import REAL, scalar_of
from ulam.dialects.stan.variables import kind_of_block


@plain_operation
class TargetAddOp(PlainOperation):
    """`target += value`, the sum of the entries if `value` is a container. `tilde`: written as `y ~ d(...)`.

    ```mlir
    stan.target_add tilde %x : !stan.real
    ```
    """

    name = "stan.target_add"
    value = operand_def()
    tilde = opt_prop_def(UnitAttr)
    traits = traits_def(AddsTarget())
    assembly_format = "(`tilde` $tilde^)? $value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue, *, tilde: bool = False, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(value,), properties=units(tilde=tilde), location=location)

    def verify_(self) -> None:
        _verify_increment(self, self.operands[0].type)


@plain_operation
class JacobianAddOp(PlainOperation):
    """`jacobian += value`: added to the target only where the Jacobian adjustment is asked for.

    ```mlir
    stan.jacobian_add %x : !stan.real
    ```
    """

    name = "stan.jacobian_add"
    value = operand_def()
    traits = traits_def(AddsJacobian())
    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(value,), location=location)

    def verify_(self) -> None:
        _verify_increment(self, self.operands[0].type)


def _verify_increment(op: Operation, type_: Attribute) -> None:
    if kind_of_block(op) in ("data", "transformed_data", "parameters", "generated_quantities"):
        raise VerifyException(f"the target is not there in the block {kind_of_block(op)}")
    if scalar_of(type_) != REAL:
        raise VerifyException(f"only reals and containers of reals are added to the target, not {type_}")


@plain_operation
class TargetOp(PlainOperation):
    """`target()`: the log density accumulated so far.

    ```mlir
    %sum = stan.target
    ```
    """

    name = "stan.target"
    res = result_def(REAL)
    traits = traits_def(ReadsTarget())
    assembly_format = "attr-dict"

    def __init__(self, *, location: LocationAttr | None = None) -> None:
        give_parts(self, result_types=(REAL,), location=location)


@plain_operation
class PrintOp(PlainOperation):
    """`print(...)`; `reject(...)` and `fatal_error(...)` by `kind` (`print`, `reject`, `fatal_error`).

    `pairs` has a 1 for each argument that is the real part of what is printed, with the imaginary one behind it.
    `layouts`, where an argument has arrays of tuples, which are tuples of arrays here: for each argument `.`, or the
    dimensions of the array and the fields of the tuple, as in `2(.0(..))`, with `c` for complex numbers, which are
    tuples of their parts here.

    ```mlir
    stan.print reject(%n, %x : !stan.int, !stan.real)
    ```
    """

    name = "stan.print"
    kind = prop_def(StringAttr)
    pairs = opt_prop_def(DenseArrayBase.constr(i8))
    layouts = opt_prop_def(StringAttr)
    arguments = var_operand_def()
    traits = traits_def(PrintsOrThrows())
    assembly_format = (
        "custom<Word>($kind) `(` ($arguments^ `:` type($arguments))? `)` (`pairs` $pairs^)? "
        "(`layouts` $layouts^)? attr-dict"
    )

    def __init__(
        self,
        kind: Text,
        arguments: Sequence[SSAValue],
        *,
        pairs: Flags | None = None,
        layouts: str = "",
        location: LocationAttr | None = None,
    ) -> None:
        properties: dict[str, Attribute] = {"kind": string(kind)}
        if pairs is not None:
            properties["pairs"] = flags(pairs)
        if layouts:
            properties["layouts"] = string(layouts)
        give_parts(self, operands=arguments, properties=properties, location=location)

    def verify_(self) -> None:
        kind = cast(StringAttr, self.properties["kind"]).data
        if kind not in ("print", "reject", "fatal_error"):
            raise VerifyException(f"kind is print, reject or fatal_error, not {kind}")
