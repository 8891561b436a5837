"""What ends the regions of the `stan` dialect, and what its verifiers ask of regions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FunctionType, LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, traits_def, var_operand_def
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.op_making import give_parts
from ulam.dialects.plain_operation import PlainOperation, plain_operation
from ulam.dialects.stan.effects import IsLoop, LeavesLoop, Returns
from ulam.dialects.stan.type_attributes import INT


def types_of(values: Sequence[SSAValue]) -> list[Attribute]:
    return [value.type for value in values]


def verify_arguments(block: Block, expected: Sequence[Attribute], what: str) -> None:
    """Raises unless a block takes what it should."""
    if types_of(block.args) != list(expected):
        found = ", ".join(map(str, types_of(block.args)))
        raise VerifyException(f"{what}: block arguments are ({found}), not ({', '.join(map(str, expected))})")


def verify_end(region: Region, expected: Sequence[Attribute], leaves: bool) -> None:
    """The region ends in a `stan.yield` of `expected` types, or, if it may be left, in break, continue or return."""
    last = region.block.last_op
    if isinstance(last, YieldOp):
        if types_of(last.operands) != list(expected):
            raise VerifyException(f"yields ({', '.join(map(str, types_of(last.operands)))}), "
                                  f"not ({', '.join(map(str, expected))})")  # fmt: skip
    elif not (leaves and isinstance(last, (BreakOp, ContinueOp, ReturnOp))):
        raise VerifyException(f"a region ends in {last.name if last else 'nothing'} instead of stan.yield")


def _verify_in_loop(op: Operation) -> None:
    parent = op.parent_op()
    while parent is not None and not parent.has_trait(IsLoop):
        parent = None if parent.has_trait(IsolatedFromAbove) else parent.parent_op()
    if parent is None:
        raise VerifyException(f"{op.name} is not inside stan.for or stan.foreach or stan.while")


@plain_operation
class YieldOp(PlainOperation):
    """Ends a region, with the values it passes on.

    ```mlir
    %any = stan.or %n {
      stan.yield %k : !stan.int
    }
    ```
    """

    name = "stan.yield"
    arguments = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "($arguments^ `:` type($arguments))? attr-dict"

    def __init__(self, *arguments: SSAValue, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=arguments, location=location)


@plain_operation
class ConditionOp(PlainOperation):
    """Ends the condition of a `stan.while`: continue while `condition` is not 0, passing `arguments` on.

    ```mlir
    stan.while {
      stan.condition %n
    } do {
      stan.break
    }
    ```
    """

    name = "stan.condition"
    condition = operand_def(INT)
    arguments = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "$condition (`,` $arguments^ `:` type($arguments))? attr-dict"

    def __init__(self, condition: SSAValue, *arguments: SSAValue, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(condition, *arguments), location=location)

    def verify_(self) -> None:
        if (parent := self.parent_op()) is None or parent.name != "stan.while":
            raise VerifyException("stan.condition ends the condition of a stan.while")


@plain_operation
class BreakOp(PlainOperation):
    """`break;` Variable form only.

    ```mlir
    stan.for %i = %n to %k {
      stan.break
    }
    ```
    """

    name = "stan.break"
    traits = traits_def(IsTerminator(), LeavesLoop())
    assembly_format = "attr-dict"

    def __init__(self, *, location: LocationAttr | None = None) -> None:
        give_parts(self, location=location)

    def verify_(self) -> None:
        _verify_in_loop(self)


@plain_operation
class ContinueOp(PlainOperation):
    """`continue;` Variable form only.

    ```mlir
    stan.for %i = %n to %k {
      stan.continue
    }
    ```
    """

    name = "stan.continue"
    traits = traits_def(IsTerminator(), LeavesLoop())
    assembly_format = "attr-dict"

    def __init__(self, *, location: LocationAttr | None = None) -> None:
        give_parts(self, location=location)

    def verify_(self) -> None:
        _verify_in_loop(self)


@plain_operation
class ReturnOp(PlainOperation):
    """`return e;` Value form: only as the last op of a function's body.

    ```mlir
    stan.func @one() -> (!stan.int) {
      %one = stan.constant 1 : i32
      stan.return %one : !stan.int
    }
    ```
    """

    name = "stan.return"
    value = opt_operand_def()
    traits = traits_def(IsTerminator(), Returns())
    assembly_format = "($value^ `:` type($value))? attr-dict"

    def __init__(self, value: SSAValue | None = None, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=() if value is None else (value,), location=location)

    def verify_(self) -> None:
        function = self.parent_op()
        while function is not None and function.name not in ("stan.func", "stan.block"):
            function = function.parent_op()
        if function is None or function.name != "stan.func":
            raise VerifyException(f"{self.name} is not inside stan.func")
        if not isinstance(signature := function.properties.get("function_type"), FunctionType):
            return  # as the function's own verifier says
        expected = list(signature.outputs.data)
        if types_of(self.operands) != expected:
            raise VerifyException(f"returns ({', '.join(map(str, types_of(self.operands)))}), "
                                  f"not ({', '.join(map(str, expected))})")  # fmt: skip
