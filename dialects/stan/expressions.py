"""Expressions of the `stan` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    StringAttr,
    UnitAttr,
    f64,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    eq,
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

from ulam.dialects.attributes import UNIT, Flags, Text, flags, number, real, string
from ulam.dialects.op_making import give_parts
from ulam.dialects.plain_operation import PlainOperation, plain_operation
from ulam.dialects.stan import syntax
from ulam.dialects.stan.effects import HasCallEffects, Throws, ThrowsOnMismatch
from ulam.dialects.stan.type_attributes import (
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
from ulam.library.functions import function

if TYPE_CHECKING:
    from typing import Self

    from xdsl.parser import Parser
    from xdsl.printer import Printer


@lru_cache(maxsize=1024)
def _int(value: int) -> IntegerAttr[IntegerType]:
    return IntegerAttr(value, i32)


@plain_operation
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

    def __init__(self, value: int | float | str, *, location: LocationAttr | None = None) -> None:
        if isinstance(value, int):
            type_, attribute = INT, _int(int(value))
        elif isinstance(value, str):
            type_, attribute = STRING, string(value)
        else:
            type_, attribute = REAL, real(value)
        give_parts(self, result_types=(type_,), properties={"value": attribute}, location=location)

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

    def __init__(self, operand: SSAValue, result_type: Attribute, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(operand,), result_types=(result_type,), location=location)

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

    def __init__(
        self, left: SSAValue, right: SSAValue, result_type: Attribute, *, location: LocationAttr | None = None
    ) -> None:
        give_parts(self, operands=(left, right), result_types=(result_type,), location=location)

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


_OperatorT = TypeVar("_OperatorT", _Unary, _Binary)


def _operator(base: type[_OperatorT], mnemonic: str, symbol: str, throws: bool) -> type[_OperatorT]:
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
    return plain_operation(cast("type[_OperatorT]", type(class_name, (base,), namespace)))


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


@plain_operation
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


@plain_operation
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
    `total`: the function of the library throws for no scalar arguments, nor for one container. Set where
    `library/functions.py` says so of what is called; without it a call may throw.

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

    def __init__(
        self,
        callee: Text,
        arguments: Sequence[SSAValue],
        result_type: Attribute | None,
        autodiff: Flags,
        *,
        user: bool = False,
        unnormalized: bool = False,
        unchecked: bool = False,
        callback: Text | None = None,
        captured: Flags | None = None,
        definition: Text | None = None,
        location: LocationAttr | None = None,
    ) -> None:
        name = string(callee)
        properties: dict[str, Attribute] = {"callee": name, "autodiff": flags(autodiff)}
        if user:
            properties["user"] = UNIT
        elif function((name if definition is None else string(definition)).data.partition(".")[0]).is_total:
            properties["total"] = UNIT
        if unnormalized:
            properties["unnormalized"] = UNIT
        if unchecked:
            properties["unchecked"] = UNIT
        if callback is not None:
            properties["callback"] = string(callback)
        if captured is not None:
            properties["captured"] = flags(captured)
        if definition is not None:
            properties["definition"] = string(definition)
        give_parts(
            self,
            operands=arguments,
            result_types=() if result_type is None else (result_type,),
            properties=properties,
            location=location,
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


@plain_operation
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

    def __init__(
        self, elements: Sequence[SSAValue], result_type: Attribute, *, location: LocationAttr | None = None
    ) -> None:
        give_parts(self, operands=elements, result_types=(result_type,), location=location)

    def verify_(self) -> None:
        result = self.results[0].type
        if any(array_of(o.type, 1) != result for o in self.operands):
            raise VerifyException(f"elements do not make {result}")


@plain_operation
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

    def __init__(
        self, elements: Sequence[SSAValue], result_type: Attribute, *, location: LocationAttr | None = None
    ) -> None:
        give_parts(self, operands=elements, result_types=(result_type,), location=location)

    def verify_(self) -> None:
        result = self.results[0].type
        element = MATRICES[result] if result in MATRICES else scalar_of(result)
        if any(o.type != element for o in self.operands) or element == result:
            raise VerifyException(f"elements do not make {result}")


@plain_operation
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

    def __init__(
        self,
        values: DenseArrayBase,
        sizes: Sequence[int],
        result_type: Attribute,
        *,
        location: LocationAttr | None = None,
    ) -> None:
        give_parts(
            self,
            result_types=(result_type,),
            properties={"values": values, "sizes": DenseArrayBase.from_list(i64, sizes)},
            location=location,
        )

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


@plain_operation
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

    def __init__(
        self, elements: Sequence[SSAValue], result_type: Attribute, *, location: LocationAttr | None = None
    ) -> None:
        give_parts(self, operands=elements, result_types=(result_type,), location=location)

    def verify_(self) -> None:
        result = cast(TupleType, self.results[0].type)
        if [o.type for o in self.operands] != list(result.elements):
            raise VerifyException(f"elements do not make {result}")


@plain_operation
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

    def __init__(self, value: SSAValue, field: int, *, location: LocationAttr | None = None) -> None:
        assert isinstance(value.type, TupleType)
        give_parts(
            self,
            operands=(value,),
            result_types=(value.type.elements.data[field - 1],),
            properties={"field": number(field)},
            location=location,
        )

    def verify_(self) -> None:
        elements = cast(TupleType, self.operands[0].type).elements
        number = cast(IntegerAttr, self.properties["field"]).value.data
        if not 1 <= number <= len(elements):
            raise VerifyException(f"a tuple of {len(elements)} has no field {number}")
        if self.results[0].type != elements.data[number - 1]:
            raise VerifyException(f"field {number} has type {elements.data[number - 1]}")
