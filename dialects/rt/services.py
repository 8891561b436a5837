"""Calls of the runtime: scalar functions, checks, kernels, of the `rt` dialect."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    LocationAttr,
    StringAttr,
    UnitAttr,
    f64,
    i1,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.attributes import Number, Text, number, string, units
from ulam.dialects.buffers import (
    NUMBER,
)
from ulam.dialects.effects import ANYTHING, Effect, LowEffects
from ulam.dialects.facts import Fact
from ulam.dialects.op_making import give_parts
from ulam.dialects.plain_attribute import plain_attribute
from ulam.dialects.plain_operation import PlainOperation, plain_operation


@plain_operation
class MathOp(PlainOperation):
    """A pure function of scalars, by Stan's name (`exp`, `lgamma`, `inv_logit`, ...).

    What is known of each is data: its LLVM form in `emit/primitives.py`, its derivative in
    `library/derivatives.txt`.

    ```mlir
    %e = rt.math exp(%x) : (f64) -> f64
    ```
    """

    name = "rt.math"
    function = prop_def(StringAttr)
    arguments = var_operand_def()
    res = result_def()
    traits = traits_def(Pure())
    assembly_format = "custom<Word>($function) `(` $arguments `)` attr-dict `:` functional-type($arguments, $res)"

    def __init__(
        self,
        function: Text,
        arguments: Sequence[SSAValue],
        result_type: Attribute = f64,
        *,
        location: LocationAttr | None = None,
    ) -> None:
        give_parts(
            self,
            operands=arguments,
            result_types=(result_type,),
            properties={"function": string(function)},
            location=location,
        )


@plain_operation
class CheckOp(PlainOperation):
    """Goes on if `ok`; else leaves the function with an error: site `site` of the program's site table, and `values`
    (up to four; f64 or integers) for its message.

    ```mlir
    rt.check %ok site 3 status 1 with %i, %n : i64, i64
    ```
    """

    name = "rt.check"
    ok = operand_def(i1)
    site = prop_def(NUMBER)
    status = opt_prop_def(NUMBER)
    """REJECTION, FATAL (also if absent) or LOCATE of `library/statuses.py`."""
    values = var_operand_def()
    traits = traits_def(LowEffects(Effect.LEAVE))
    assembly_format = "$ok `site` $site (`status` $status^)? (`with` $values^ `:` type($values))? attr-dict"

    def __init__(
        self,
        ok: SSAValue,
        site: Number,
        values: Sequence[SSAValue] = (),
        status: Number | None = None,
        *,
        location: LocationAttr | None = None,
    ) -> None:
        properties: dict[str, Attribute] = {"site": number(site)}
        if status is not None:
            properties["status"] = number(status)
        give_parts(self, operands=(ok, *values), properties=properties, location=location)

    def verify_(self) -> None:
        if len(self.values) > 4:
            raise VerifyException("the message of a check has at most four values")


@plain_operation
class StackGuardOp(PlainOperation):
    """Leaves the function with a fatal error if the thread's stack is nearly full. At the start of recursive functions.

    ```mlir
    rt.stack_guard site 3
    ```
    """

    name = "rt.stack_guard"
    site = prop_def(NUMBER)
    traits = traits_def(LowEffects(Effect.LEAVE))
    assembly_format = "`site` $site attr-dict"

    def __init__(self, site: Number, *, location: LocationAttr | None = None) -> None:
        give_parts(self, properties={"site": number(site)}, location=location)


@plain_operation
class KernelOp(PlainOperation):
    """A call of the C function `ulam_<function>(context, arguments...)` of the runtime.

    `throws`: the C function returns a status (0 fine), which is tested; an error takes site `site`. Such a kernel
    has no result. Effects, and the pullback of a differentiable kernel, are rows of `library/kernels.py`.

    ```mlir
    rt.kernel cholesky_decompose(%y, %n, %z) throws site 3 : (!rt.buf<f64>, i64, !rt.buf<f64>) -> ()
    ```
    """

    name = "rt.kernel"
    function = prop_def(StringAttr)
    throws = opt_prop_def(UnitAttr)
    site = opt_prop_def(NUMBER)
    arguments = var_operand_def()
    res = opt_result_def()
    traits = traits_def(LowEffects(ANYTHING))
    assembly_format = (
        "custom<Word>($function) `(` $arguments `)` (`throws` $throws^)? (`site` $site^)?"
        " attr-dict `:` functional-type($arguments, $res)"
    )

    def __init__(
        self,
        function: Text,
        arguments: Sequence[SSAValue],
        result_type: Attribute | None = None,
        *,
        throws: bool = False,
        site: Number | None = None,
        location: LocationAttr | None = None,
    ) -> None:
        properties: dict[str, Attribute] = {"function": string(function), **units(throws=throws)}
        if site is not None:
            properties["site"] = number(site)
        give_parts(
            self,
            operands=arguments,
            result_types=() if result_type is None else (result_type,),
            properties=properties,
            location=location,
        )

    def verify_(self) -> None:
        if self.throws is not None and (self.site is None or self.res is not None):
            raise VerifyException("a kernel that throws has a site and no result")


@plain_attribute
class HarmlessAttr(Fact):
    """The check may come late: going on with a bad value computes nonsense, but nothing unsafe."""

    name = "rt.harmless"
    ON = (CheckOp,)
