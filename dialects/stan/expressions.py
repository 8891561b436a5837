"""Expressions and effects of the `stan` dialect."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, ClassVar, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    f64,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    eq,
    irdl_op_definition,
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

from ulam.dialects.plain_operation import PlainOperation
from ulam.dialects.stan import syntax
from ulam.dialects.stan.effects import (
    AddsJacobian,
    AddsTarget,
    HasCallEffects,
    PrintsOrThrows,
    ReadsTarget,
    Throws,
    ThrowsOnMismatch,
)
from ulam.dialects.stan.types import (
    COMPLEX,
    INT,
    MATRICES,
    REAL,
    STRING,
    ArrayType,
    TupleType,
    VarType,
    array_of,
    dimensions,
    scalar_of,
)
from ulam.dialects.stan.variables import kind_of_block

if TYPE_CHECKING:
    from typing import Self

    from xdsl.parser import Parser
    from xdsl.printer import Printer


@irdl_op_definition
class ConstantOp(PlainOperation):
    """A literal: `2 : i32` is an int, `2.5 : f64` a real, a string only as an argument of print and reject.

    ```mlir
    %two = stan.constant 2 : i32
    ```
    """

    name = "stan.constant"
    value = prop_def(IntegerAttr | FloatAttr | StringAttr)
    res = result_def()
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        value = parser.parse_attribute()
        type_ = INT if isinstance(value, IntegerAttr) else REAL if isinstance(value, FloatAttr) else STRING
        return cls.create(result_types=(type_,), properties={"value": value}, attributes=syntax.parse_rest(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.properties["value"])
        syntax.print_rest(printer, self)

    def verify_(self) -> None:
        value = self.properties["value"]
        expected = INT if isinstance(value, IntegerAttr) else REAL if isinstance(value, FloatAttr) else STRING
        if self.results[0].type != expected:
            raise VerifyException(f"a constant {value} has type {expected}, not {self.results[0].type}")


class _Unary(PlainOperation):
    SYMBOL: ClassVar[str] = ""
    operand = operand_def()
    res = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return syntax.parse_operator(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_operator(printer, self)


class _Binary(PlainOperation):
    """Operands and result as in Stan's operator of the same name, containers and broadcasting included.

    Throws where Stan throws (sizes differ, integer division by zero). An int beside a real is promoted before.
    """

    SYMBOL: ClassVar[str] = ""
    left = operand_def()
    right = operand_def()
    res = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return syntax.parse_operator(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_operator(printer, self)

    def verify_(self) -> None:
        left, right, result = (scalar_of(v.type) for v in (*self.operands, self.results[0]))
        if (left == INT) != (right == INT):
            raise VerifyException(f"operands {left} and {right}: the int one needs a stan.promote")
        if self.SYMBOL in COMPARISONS:
            if self.results[0].type != INT:
                raise VerifyException("a comparison gives an int")
        elif self.SYMBOL in ("%", "%/%"):
            if not left == right == result == INT:
                raise VerifyException(f"`{self.SYMBOL}` is for ints")
        elif (result == INT) != (left == INT):
            raise VerifyException(f"operands {left} and {right} cannot give {result}")


COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))


_OF_REALS = "%x, %y : !stan.real"
_EXAMPLES = {
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), "%x, %y : (!stan.real, !stan.real) -> !stan.int"),
    **dict.fromkeys(("mod", "int_div"), "%n, %k : !stan.int"),
    **dict.fromkeys(("elt_mul", "elt_div", "elt_pow"), "%v, %v : !stan.vector"),
    "left_div": "%m, %v : (!stan.matrix, !stan.vector) -> !stan.vector",
    **dict.fromkeys(("neg", "plus"), "%x : !stan.real"),
    "not": "%n : !stan.int",
    "transpose": "%v : (!stan.vector) -> !stan.row_vector",
}
"""What the examples of operators apply them to."""


def _operator(base: type[PlainOperation], mnemonic: str, symbol: str, throws: bool) -> type[PlainOperation]:
    """An operator op: class `AddOp` of `stan.add`, with `SYMBOL` as written in Stan."""
    example = _EXAMPLES.get(mnemonic, _OF_REALS)
    class_name = "".join(part.capitalize() for part in mnemonic.split("_")) + "Op"
    namespace = {
        "name": f"stan.{mnemonic}",
        "SYMBOL": symbol,
        "__annotations__": {"SYMBOL": "ClassVar[str]"},
        "__doc__": f"Stan's operator `{symbol}`.\n\n```mlir\n%z = stan.{mnemonic} {example}\n```",
        "__module__": __name__,
        "traits": traits_def(ThrowsOnMismatch() if throws else Pure()),
    }
    return irdl_op_definition(cast("type[PlainOperation]", type(class_name, (base,), namespace)))


BINARY_OPERATORS = {
    symbol: _operator(_Binary, mnemonic, symbol, throws=symbol not in COMPARISONS)
    for mnemonic, symbol in (
        ("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/"), ("mod", "%"), ("int_div", "%/%"),
        ("elt_mul", ".*"), ("elt_div", "./"), ("left_div", "\\"), ("pow", "^"), ("elt_pow", ".^"),
        ("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="),
    )
}  # fmt: skip
"""Operator as written → op class."""

UNARY_OPERATORS = {
    symbol: _operator(_Unary, mnemonic, symbol, throws=False)
    for mnemonic, symbol in (("neg", "-"), ("plus", "+"), ("not", "!"), ("transpose", "'"))
}


@irdl_op_definition
class PromoteOp(_Unary):
    """An implicit conversion: int → real → complex, element-wise in containers and tuples.

    ```mlir
    %r = stan.promote %n : (!stan.int) -> !stan.real
    ```
    """

    name = "stan.promote"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        if not _promotes(self.operands[0].type, self.results[0].type):
            raise VerifyException(f"{self.operands[0].type} is not promoted to {self.results[0].type}")


def _promotes(source: Attribute, target: Attribute) -> bool:
    if source == target:
        return True
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return source.rank == target.rank and _promotes(source.element, target.element)
    if isinstance(source, TupleType) and isinstance(target, TupleType):
        pairs = zip(source.elements, target.elements, strict=False)
        return len(source.elements) == len(target.elements) and all(_promotes(s, t) for s, t in pairs)
    if source == INT:
        return target in (REAL, COMPLEX)
    return target.name == source.name.replace("stan.", "stan.complex_") or (source == REAL and target == COMPLEX)


@irdl_op_definition
class CallOp(PlainOperation):
    """A call of a function. `callee` is its name in Stan for library functions (`normal_lpdf`, never `normal_lupdf`),
    the symbol of its `stan.func` if `user` is set.

    `autodiff` has a 1 for each argument that Stan's static rule calls autodiff; `unnormalized`: the call may drop
    summands that have no autodiff argument. No result for functions that return nothing.
    A function passed to a higher-order function is `callback`, the symbol of its `stan.func`; it is not an operand.
    `captured` then has a 1 for each argument that is for the callback only: it is called with these added.
    `definition` is the symbol of the `stan.func` that defines a library function for these argument types; without
    one the conversion to loops knows the function itself.
    `unchecked`: the function's own requirements of its arguments are skipped (those of functions that it calls are
    not); outside of its domain the result is NaN instead of an error. Set where a rewrite puts a function in place of
    an expression that has no such requirements: `log(1 - x)`, which never throws, becomes an unchecked `log1m(x)`.
    `total`: the function of the library throws for no scalar arguments, nor for one container. Who makes a call sets it
    where `library/functions.py` says so; without it a call may throw.

    ```mlir
    %l = stan.call normal_lpdf(%v, %x, %y) unnormalized autodiff [0, 1, 1]
      : (!stan.vector, !stan.real, !stan.real) -> !stan.real
    ```
    """

    name = "stan.call"
    callee = prop_def(StringAttr)
    autodiff = prop_def(DenseArrayBase.constr(i8))
    unnormalized = opt_prop_def(UnitAttr)
    unchecked = opt_prop_def(UnitAttr)
    total = opt_prop_def(UnitAttr)
    user = opt_prop_def(UnitAttr)
    callback = opt_prop_def(StringAttr)
    captured = opt_prop_def(DenseArrayBase.constr(i8))
    definition = opt_prop_def(StringAttr)
    arguments = var_operand_def()
    res = opt_result_def()
    traits = traits_def(HasCallEffects())
    assembly_format = (
        "custom<Word>($callee) `(` $arguments `)` (`user` $user^)? (`unnormalized` $unnormalized^)? "
        "(`unchecked` $unchecked^)? (`total` $total^)? (`callback` $callback^)? "
        "(`captured` $captured^)? (`definition` $definition^)? "
        "`autodiff` $autodiff attr-dict `:` functional-type($arguments, $res)"
    )

    def verify_(self) -> None:
        autodiff = cast("DenseArrayBase[IntegerType]", self.properties["autodiff"])
        if len(autodiff) != len(self.operands):
            raise VerifyException(f"autodiff has {len(autodiff)} entries for {len(self.operands)} arguments")
        if "user" in self.properties and "definition" in self.properties:
            raise VerifyException("a call of a user's function has no library definition")
        if "user" in self.properties and "unchecked" in self.properties:
            raise VerifyException("a user's function has no requirements that could be skipped")
        if "user" in self.properties and "total" in self.properties:
            raise VerifyException("of a user's function it is not known that it never throws")
        if any(isinstance(o.type, VarType) for o in self.operands):
            raise VerifyException("arguments are values: a variable is read first")


@irdl_op_definition
class ArrayOp(PlainOperation):
    """`{a, b, c}`. Elements that are containers must have equal sizes.

    ```mlir
    %a = stan.array %x, %y : (!stan.real, !stan.real) -> !stan.array<1, !stan.real>
    ```
    """

    name = "stan.array"
    elements = var_operand_def()
    res = result_def(ArrayType)
    traits = traits_def(Throws())
    assembly_format = "$elements attr-dict `:` functional-type($elements, $res)"

    def verify_(self) -> None:
        result = self.results[0].type
        if any(array_of(o.type, 1) != result for o in self.operands):
            raise VerifyException(f"elements do not make {result}")


@irdl_op_definition
class RowVectorOp(PlainOperation):
    """`[a, b, c]`: a row vector of scalars, or a matrix of row vectors.

    ```mlir
    %r = stan.row_vector %x, %y : (!stan.real, !stan.real) -> !stan.row_vector
    ```
    """

    name = "stan.row_vector"
    elements = var_operand_def()
    res = result_def()
    traits = traits_def(Throws())
    assembly_format = "$elements attr-dict `:` functional-type($elements, $res)"

    def verify_(self) -> None:
        result = self.results[0].type
        element = MATRICES[result] if result in MATRICES else scalar_of(result)
        if any(o.type != element for o in self.operands) or element == result:
            raise VerifyException(f"elements do not make {result}")


@irdl_op_definition
class LiteralOp(PlainOperation):
    """`{{0.5, 1.5}, {2.5, 3.5}}` or `[...]` of numbers alone: `values` in the order written; `sizes`, outermost first.

    What is written with more than `FEW_NUMBERS` numbers is made so: one op, whatever its length.

    ```mlir
    %table = stan.literal array<f64: 0.5, 1.5, 2.5, 3.5> sizes array<i64: 2, 2> : !stan.matrix
    ```
    """

    name = "stan.literal"
    values = prop_def(DenseArrayBase)
    sizes = prop_def(DenseArrayBase)
    res = result_def()
    traits = traits_def(Pure())
    assembly_format = "qualified($values) `sizes` qualified($sizes) attr-dict `:` type($res)"

    def verify_(self) -> None:
        result = self.results[0].type
        sizes = self.shape
        scalar = INT if self.values.elt_type == i32 else REAL if self.values.elt_type == f64 else None
        if scalar != scalar_of(result) or not sizes or len(sizes) != dimensions(result):
            raise VerifyException(f"{len(sizes)} dimensions of {self.values.elt_type} do not make {result}")
        if min(sizes) < 1 or prod(sizes) != len(self.values):
            raise VerifyException(f"{len(self.values)} values do not fill the sizes {list(sizes)}")

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes, outermost first."""
        return tuple(cast("DenseArrayBase[IntegerType]", self.sizes).get_values())

    @property
    def numbers(self) -> tuple[int, ...] | tuple[float, ...]:
        """The values as they are written: the last index runs fastest."""
        if self.values.elt_type == f64:
            return cast("DenseArrayBase[Float64Type]", self.values).get_values()
        return cast("DenseArrayBase[IntegerType]", self.values).get_values()


FEW_NUMBERS = 64
"""Literals of so many numbers, or fewer, have an op for each: passes look into them, and into their memory LLVM."""


@irdl_op_definition
class TupleOp(PlainOperation):
    """`(a, b)`.

    ```mlir
    %pair = stan.tuple %n, %x : (!stan.int, !stan.real) -> !stan.tuple<[!stan.int, !stan.real]>
    ```
    """

    name = "stan.tuple"
    elements = var_operand_def()
    res = result_def(TupleType)
    traits = traits_def(Pure())
    assembly_format = "$elements attr-dict `:` functional-type($elements, $res)"

    def verify_(self) -> None:
        result = cast(TupleType, self.results[0].type)
        if [o.type for o in self.operands] != list(result.elements):
            raise VerifyException(f"elements do not make {result}")


@irdl_op_definition
class FieldOp(PlainOperation):
    """`t.1`; `field` counts from 1.

    ```mlir
    %first = stan.field 1 of %t : (!stan.tuple<[!stan.int, !stan.real]>) -> !stan.int
    ```
    """

    name = "stan.field"
    field = prop_def(IntegerAttr.constr(eq(i64)))
    value = operand_def(TupleType)
    res = result_def()
    traits = traits_def(Pure())
    assembly_format = "$field `of` $value attr-dict `:` functional-type($value, $res)"

    def verify_(self) -> None:
        elements = cast(TupleType, self.operands[0].type).elements
        number = cast(IntegerAttr, self.properties["field"]).value.data
        if not 1 <= number <= len(elements):
            raise VerifyException(f"a tuple of {len(elements)} has no field {number}")
        if self.results[0].type != elements.data[number - 1]:
            raise VerifyException(f"field {number} has type {elements.data[number - 1]}")


# ---------------------------------------------------------------- effects


@irdl_op_definition
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

    def verify_(self) -> None:
        _verify_increment(self, self.operands[0].type)


@irdl_op_definition
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

    def verify_(self) -> None:
        _verify_increment(self, self.operands[0].type)


def _verify_increment(op: Operation, type_: Attribute) -> None:
    if kind_of_block(op) in ("data", "transformed_data", "parameters", "generated_quantities"):
        raise VerifyException(f"the target is not there in the block {kind_of_block(op)}")
    if scalar_of(type_) != REAL:
        raise VerifyException(f"only reals and containers of reals are added to the target, not {type_}")


@irdl_op_definition
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


@irdl_op_definition
class PrintOp(PlainOperation):
    """`print(...)`; `reject(...)` and `fatal_error(...)` by `kind` (`print`, `reject`, `fatal_error`).

    ```mlir
    stan.print reject(%n, %x : !stan.int, !stan.real)
    ```
    """

    name = "stan.print"
    kind = prop_def(StringAttr)
    arguments = var_operand_def()
    traits = traits_def(PrintsOrThrows())
    assembly_format = "custom<Word>($kind) `(` ($arguments^ `:` type($arguments))? `)` attr-dict"

    def verify_(self) -> None:
        kind = cast(StringAttr, self.properties["kind"]).data
        if kind not in ("print", "reject", "fatal_error"):
            raise VerifyException(f"kind is print, reject or fatal_error, not {kind}")
